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
    gboolean copied = tiny_table_copy (&out, sizeof out, edge, G_STRUCT_OFFSET (Sized, b),
                                       "the struct", &error);
    g_assert_cmpint (copied, ==, size >= G_STRUCT_OFFSET (Sized, b));
    if (!copied)
      g_assert_error (error, TINY_ERROR, TINY_ERROR_PLUGIN);
    else
      g_assert_cmpuint (out.b, ==, size >= G_STRUCT_OFFSET (Sized, reserved) ? 2 : 0);
  }
}

static void
test_missing (void)
{
  Sized out;
  g_autoptr (GError) error = NULL;
  g_assert_false (tiny_table_copy (&out, sizeof out, NULL, 8, "the struct", &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_PLUGIN);
}

/* ---- every struct that plugins pass, by its row ---- */

/* Passed by address: as long as need be, or longer, it is taken. */
static void
check_sizes (TinyTableKind kind)
{
  const TinyTableRow *row = &tiny_table_rows[kind];
  g_autofree guint8 *bytes = g_malloc0 (row->size + 64), *out = g_malloc (row->size);
  for (guint32 size = 8; size <= row->size + 64; size += 8) {
    g_autoptr (GError) error = NULL;
    memcpy (bytes, &size, sizeof size);
    gboolean taken = tiny_table_take (kind, out, at_page_end (bytes, size), "ACME", &error);
    g_assert_cmpint (taken, ==, size >= row->least);
    if (!taken) {
      g_assert_error (error, TINY_ERROR, TINY_ERROR_PLUGIN);
      g_assert_true (g_str_has_prefix (error->message, "ACME: "));
      g_assert_nonnull (strstr (error->message, row->name));
    }
  }
}

/* A bit at byte @at is known, or refused with the name of plugin and struct. */
static void
check_bit (TinyTableKind kind, gsize at, guint8 bit, gboolean is_known)
{
  const TinyTableRow *row = &tiny_table_rows[kind];
  g_autofree guint8 *bytes = g_malloc0 (row->size), *out = g_malloc (row->size);
  const guint32 size = (guint32) row->size;
  memcpy (bytes, &size, sizeof size);
  bytes[at] = bit;
  g_autoptr (GError) error = NULL, taking = NULL;
  g_assert_cmpint (tiny_table_check (kind, bytes, "ACME", &error), ==, is_known);
  if (row->least > 0)
    g_assert_cmpint (tiny_table_take (kind, out, bytes, "ACME", &taking), ==, is_known);
  if (!is_known) {
    g_assert_error (error, TINY_ERROR, TINY_ERROR_PLUGIN);
    g_assert_true (g_str_has_prefix (error->message, "ACME: "));
    g_assert_nonnull (strstr (error->message, row->name));
  }
}

static void
test_rows (void)
{
  for (guint kind = 0; kind < TINY_N_TABLES; kind++) {
    const TinyTableRow *row = &tiny_table_rows[kind];
    if (row->least > 0)
      check_sizes ((TinyTableKind) kind);
    for (guint i = 0; i < 32; i++)
      check_bit ((TinyTableKind) kind, 4 + i / 8, (guint8) (1u << i % 8),
                 (row->flags & (1u << i)) != 0);
    g_assert_cmpuint (row->n_reserved, >, 0);
    for (gsize i = 0; i < row->n_reserved * 8; i++)
      check_bit ((TinyTableKind) kind, row->reserved + i, 1, FALSE);
    for (guint i = 0; row->padding != 0 && i < 4; i++)
      check_bit ((TinyTableKind) kind, row->padding + i, 1, FALSE);
  }
}

/* A target's values: each is refused by its name. */
static void
test_values (void)
{
  const TinyTarget good
      = { .struct_size = sizeof good,
          .flags = TINY_TARGET_GROUPS,
          .arch = "a",
          .index_dtype = TINY_DTYPE_I32,
          .dtypes_storage = TINY_DTYPE_BIT (TINY_DTYPE_I32) | TINY_DTYPE_BIT (TINY_DTYPE_U32),
          .max_lanes = 1,
          .max_params = 4,
          .max_grid = { 1, 1, 1 },
          .max_group = { 1, 1, 1 },
          .max_group_total = 1 };
#define AT(field) G_STRUCT_OFFSET (TinyTarget, field)
  const struct {
    gsize at;
    guint32 value;
    const char *field;
  } wrong[] = {
    { AT (arch), 0, "arch" },
    { AT (index_dtype), 77, "index_dtype" },
    { AT (index_dtype), TINY_DTYPE_F32, "index_dtype" },
    { AT (vector_bits), 7, "vector_bits" },
    { AT (vector_bits), 96, "vector_bits" },
    { AT (max_lanes), 0, "max_lanes" },
    { AT (max_lanes), 65536, "max_lanes" },
    { AT (max_params), 0, "max_params" },
    { AT (max_grid[2]), 0, "max_grid[2]" },
    { AT (max_group[1]), 0, "max_group[1]" },
    { AT (max_group_total), 0, "max_group_total" },
    { AT (dtypes_storage), TINY_DTYPE_BIT (TINY_DTYPE_I32), "dtypes_storage" },
    { AT (dtypes_storage), G_MAXUINT32, "dtypes_storage" },
    { AT (dtypes_compute), 1, "dtypes_compute" },
    { AT (ops[TINY_DTYPE_I32]), 1, "ops[6]" },
    { AT (ops[20]), 4, "ops[20]" },
    { AT (units[0].a_dtype), TINY_DTYPE_F32, "units[0]:" },
  };
#undef AT
  g_autoptr (GError) error = NULL;
  g_assert_true (tiny_target_check (&good, "ACME", &error));
  g_assert_no_error (error);
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    TinyTarget target = good;
    memcpy ((guint8 *) &target + wrong[i].at, &wrong[i].value, sizeof wrong[i].value);
    g_assert_false (tiny_target_check (&target, "ACME", &error));
    g_assert_error (error, TINY_ERROR, TINY_ERROR_PLUGIN);
    g_autofree char *start = g_strdup_printf ("ACME: the target's %s ", wrong[i].field);
    g_assert_true (g_str_has_prefix (error->message, start));
    g_clear_error (&error);
  }
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
  const uint32_t room = *n;
  *n = 40; /* more than the core has room for at first */
  for (uint32_t i = 0; i < MIN (room, 40); i++)
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
    g_autofree TinyCandidates *found = tiny_backend_scan (backend, &error);
    g_assert_cmpuint (found->n, ==, 40);
  }
}

/* ---- what reaches the core by its own ways ---- */
static TinyCandidate given;

static TinyStatus
scan_given (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  *n = 1;
  *out = given;
  return TINY_STATUS_OK;
}

/* The module of a backend, whose parts are wrong in one way each. */
static char *
find_wrong (const char *name, const TinyDialect *dialect, const TinyCandidate *candidate)
{
  const TinyRenderer renderer = { .struct_size = sizeof renderer,
                                  .name = "C",
                                  .dialect = dialect,
                                  .target = target,
                                  .compile = compile };
  const TinyPluginModule module = { .struct_size = sizeof module,
                                    .abi_major = TINY_PLUGIN_ABI_MAJOR,
                                    .n_renderers = 1,
                                    .name = name,
                                    .renderers = &renderer,
                                    .init = init,
                                    .scan = scan_given,
                                    .open = open_device };
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyBackend) backend = tiny_backend_new (&module, NULL, &error);
  given = *candidate;
  g_autofree TinyCandidates *found
      = backend != NULL ? tiny_backend_scan (backend, &error) : NULL;
  g_assert_true ((found == NULL) == (error != NULL));
  return g_strdup (error != NULL ? error->message : "");
}

static void
test_ways (void)
{
  const TinyDialect dialect = { .struct_size = sizeof dialect },
                    flagged = { .struct_size = sizeof flagged, .flags = 1 };
  const TinyCandidate good = { .struct_size = sizeof good, .id = "a" },
                      nameless = { .struct_size = sizeof good },
                      padded = { .struct_size = sizeof good, .id = "a", .reserved0 = 1 },
                      odd = { .struct_size = sizeof good, .flags = 2, .id = "a" };
  const struct {
    const char *name;
    const TinyDialect *dialect;
    const TinyCandidate *candidate;
    const char *says; /* after the plugin's name */
  } cases[] = {
    { "ACME", &dialect, &good, "" },
    { "ACME", &flagged, &good, "renderer 0: C: the dialect has flags 0x1" },
    { "ACME", &dialect, &nameless, "scan: candidate 0 has an empty id" },
    { "ACME", &dialect, &padded, "scan: number 0: a candidate has reserved bits set" },
    { "ACME", &dialect, &odd, "scan: number 0: a candidate has flags 0x2" },
    { "A.B", &dialect, &good, "the module table's name is" },
    { "2B", &dialect, &good, "the module table's name is" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *text = find_wrong (cases[i].name, cases[i].dialect, cases[i].candidate);
    const char *colon = strstr (text, ": ");
    g_assert_true (g_str_has_prefix (colon != NULL ? colon + 2 : "", cases[i].says));
    g_assert_cmpint (text[0] == 0, ==, cases[i].says[0] == 0);
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
  g_test_add_func ("/device/table/missing", test_missing);
  g_test_add_func ("/device/table/rows", test_rows);
  g_test_add_func ("/device/table/values", test_values);
  g_test_add_func ("/device/table/module", test_module);
  g_test_add_func ("/device/table/ways", test_ways);
  g_test_add_func ("/device/table/status", test_status);
  return g_test_run ();
}
