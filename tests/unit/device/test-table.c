/* SPDX-License-Identifier: MIT
 *
 * test-table.c: sized structs are copied as far as they go, and not a byte further. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/tiny-error.h"
#include "device/tiny-backend.h"
#include "device/tiny-table.h"

/* The last @size bytes before a page that cannot be read. */
static void *
at_page_end (const void *data, gsize size)
{
  gsize page = (gsize) sysconf (_SC_PAGESIZE);
  guint8 *pages
      = mmap (NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  g_assert_true (pages != MAP_FAILED);
  g_assert_cmpint (mprotect (pages + page, page, PROT_NONE), ==, 0);
  memcpy (pages + page - size, data, size);
  return pages + page - size;
}

typedef struct {
  guint32 struct_size, flags;
  guint64 a, b, reserved[2];
} Sized;

/* Every size, from nothing to more than the core knows, against the edge of a page. */
static void
test_copy (void)
{
  const Sized full = { .struct_size = sizeof full, .a = 1, .b = 2 };
  guint8 bytes[sizeof full + 64] = { 0 };
  for (guint32 size = 8; size <= sizeof bytes; size += 8) {
    Sized out;
    g_autoptr (GError) error = NULL;
    memcpy (bytes, &full, sizeof full);
    memcpy (bytes, &size, sizeof size);
    void *edge = at_page_end (bytes, size);
    gboolean copied
        = tiny_table_copy (&out, sizeof out, edge, G_STRUCT_OFFSET (Sized, b),
                           G_STRUCT_OFFSET (Sized, reserved), 2, "the struct", &error);
    g_assert_cmpint (copied, ==, size >= G_STRUCT_OFFSET (Sized, b));
    if (!copied)
      g_assert_error (error, TINY_ERROR, TINY_ERROR_PLUGIN);
    else
      g_assert_cmpuint (out.b, ==, size >= G_STRUCT_OFFSET (Sized, reserved) ? 2 : 0);
  }
}

static void
test_reserved (void)
{
  Sized out;
  g_autoptr (GError) error = NULL;
  const Sized set = { .struct_size = sizeof set, .reserved = { 0, 1 } };
  g_assert_false (tiny_table_copy (&out, sizeof out, &set, 8, G_STRUCT_OFFSET (Sized, reserved),
                                   2, "the struct", &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_PLUGIN);
  g_clear_error (&error);
  g_assert_false (tiny_table_copy (&out, sizeof out, NULL, 8, 0, 0, "the struct", &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_PLUGIN);
}

/* ---- a whole module against the edge ---- */
static TinyStatus
init (const TinyHost *host, TinyPluginError *error)
{
  return TINY_STATUS_OK;
}
static void
fini (void)
{
}
static TinyStatus
scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  *n = 40; /* more than the core has room for at first */
  for (uint32_t i = 0; out[0].flags == 0 && i < 16; i++)
    g_snprintf (out[i].id, sizeof out[i].id, "%u", i);
  return TINY_STATUS_OK;
}
static TinyStatus
open_device (const char *id,
             TinyPluginDevice **out,
             const TinyDeviceTable **table,
             TinyPluginError *error)
{
  return TINY_STATUS_NO_DEVICE;
}
static TinyStatus
target (const char *arch, TinyTarget *out, TinyPluginError *error)
{
  return TINY_STATUS_OK;
}
static TinyStatus
compile (const TinyCompileArgs *args, void **data, uint64_t *size, TinyPluginError *error)
{
  return TINY_STATUS_OK;
}

/* Renderers of an older, shorter and of a newer, longer struct lie one behind the other as the
 * plugin laid them out. */
static void
test_module (void)
{
  const gsize sizes[] = { G_STRUCT_OFFSET (TinyRenderer, disassemble), sizeof (TinyRenderer),
                          sizeof (TinyRenderer) + 24 };
  for (guint s = 0; s < G_N_ELEMENTS (sizes); s++) {
    guint8 bytes[2 * (sizeof (TinyRenderer) + 24)] = { 0 };
    for (guint i = 0; i < 2; i++) {
      TinyRenderer renderer = { .struct_size = (guint32) sizes[s],
                                .name = i ? "B" : "A",
                                .target = target,
                                .compile = compile };
      memcpy (bytes + i * sizes[s], &renderer, MIN (sizes[s], sizeof renderer));
    }
    TinyPluginModule module = {
      .struct_size = G_STRUCT_OFFSET (TinyPluginModule, reserved),
      .abi_major = TINY_PLUGIN_ABI_MAJOR,
      .n_renderers = 2,
      .name = "EDGE",
      .renderers = at_page_end (bytes, 2 * sizes[s]),
      .init = init,
      .fini = fini,
      .scan = scan,
      .open = open_device,
    };
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyBackend) backend
        = tiny_backend_new (at_page_end (&module, module.struct_size), NULL, &error);
    g_assert_no_error (error);
    g_assert_cmpstr (tiny_backend_find_renderer (backend, "b")->name, ==, "B");
    g_assert_null (tiny_backend_find_renderer (backend, "c"));
    g_autofree char *list = tiny_backend_list_renderers (backend);
    g_assert_cmpstr (list, ==, "A, B");
    g_autoptr (GArray) found = tiny_backend_scan (backend, &error);
    g_assert_cmpuint (found->len, ==, 40);
  }
}

static void
test_status (void)
{
  TinyPluginError plugin_error;
  g_autoptr (GError) error = NULL;
  memset (&plugin_error, 'x', sizeof plugin_error); /* texts without an end */
  g_assert_true (tiny_status_check (TINY_STATUS_OK, &plugin_error, "D", "w", &error));
  g_assert_false (tiny_status_check (TINY_STATUS_DRIVER, &plugin_error, "D", "w", &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_DRIVER);
  g_clear_error (&error);
  tiny_plugin_error_init (&plugin_error);
  g_assert_false (
      tiny_status_check (TINY_STATUS_OUT_OF_MEMORY, &plugin_error, "D", "w", &error));
  g_assert_cmpstr (error->message, ==, "D: w: out of memory");
  g_clear_error (&error);
  g_strlcpy (plugin_error.text, "no \xff", sizeof plugin_error.text);
  g_strlcpy (plugin_error.hint, "try", sizeof plugin_error.hint);
  g_assert_false (tiny_status_check (-77, &plugin_error, "D", "w", &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_PLUGIN);
  g_assert_true (g_utf8_validate (error->message, -1, NULL));
  g_assert_true (g_str_has_suffix (error->message, " (try)"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/device/table/copy", test_copy);
  g_test_add_func ("/device/table/reserved", test_reserved);
  g_test_add_func ("/device/table/module", test_module);
  g_test_add_func ("/device/table/status", test_status);
  return g_test_run ();
}
