/* SPDX-License-Identifier: MIT
 *
 * test-kit.c: the plugins' kit: architectures print and parse back, what is damaged is refused at
 * every byte, a library that is missing or another says so. */
#include <glib.h>
#include <glib/gstdio.h>

#include "device/tiny-table.h"
#include "tiny-plugin-kit.h"

static const char *const names[] = { "groups", "f16", "bits", "local" };
static const uint64_t least[] = { 0, 0, 32, 0 };
enum { N = G_N_ELEMENTS (names) };

static TinyStatus
parse (const char *text, uint64_t *values, TinyPluginError *error)
{
  tiny_plugin_error_init (error);
  return tiny_arch_parse ("hw", names, N, text, least, values, error);
}

static void
test_arch (void)
{
  static const struct {
    const char *text, *is; /* from hw,groups,local=64 */
  } rows[] = {
    { "", "hw,groups,local=64" },
    { "hw", "hw,bits=32" },
    { "hw,f16,local=7", "hw,f16,bits=32,local=7" },
    { "-groups,+f16,bits=128", "hw,f16,bits=128,local=64" },
    { "bits=1", "hw,groups,bits,local=64" },
    { "local=0", "hw,groups" },
  };
  static const char *const bad[] = { "hw2",
                                     "hw,what",
                                     "bits=",
                                     "bits=x",
                                     "bits=1x",
                                     "bits=99999999999999999999",
                                     "bits=4294967296",
                                     "-bits=3",
                                     ",",
                                     "groups,",
                                     "-",
                                     "bits=-1",
                                     "groups f16" };
  TinyPluginError error;
  char text[256];
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    uint64_t values[N] = { 1, 0, 0, 64 }, again[N] = { 5, 5, 5, 5 };
    g_assert_cmpint (parse (rows[i].text, values, &error), ==, TINY_STATUS_OK);
    tiny_arch_print ("hw", names, N, values, text);
    g_assert_cmpstr (text, ==, rows[i].is);
    again[2] = 0;
    g_assert_cmpint (parse (text, again, &error), ==, TINY_STATUS_OK);
    g_assert_cmpint ((gint) again[3], ==, (gint) values[3]);
  }
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    uint64_t values[N] = { 0 };
    g_test_message ("“%s”", bad[i]);
    g_assert_cmpint (parse (bad[i], values, &error), ==, TINY_STATUS_INVALID);
    g_assert_nonnull (strstr (error.text, "no part of an architecture of hw"));
    g_assert_nonnull (strstr (error.hint, "NAME=NUMBER of groups, f16, bits, local"));
  }
}

static void
test_arch_room (void)
{
  static const char *const long_names[]
      = { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
          "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
          "cccccccccccccccccccccccccccccccccccccccccccccccccccc",
          "dddddddddddddddddddddddddddddddddddddddddddddddddddd" };
  const uint64_t values[N] = { 1 << 30, 1 << 30, 1 << 30, 1 << 30 };
  struct {
    char text[256], behind;
  } room = { "", 77 };
  g_assert_false (tiny_arch_print ("hw", long_names, N, values, room.text));
  g_assert_cmpstr (room.text, ==, "");
  g_assert_cmpint (room.behind, ==, 77);
  /* What is printed can be read. */
  uint64_t large[N] = { 0, 0, UINT64_C (1) << 40, 1 };
  TinyPluginError error;
  g_assert_true (tiny_arch_print ("hw", names, N, large, room.text));
  g_assert_cmpint (parse (room.text, large, &error), ==, TINY_STATUS_OK);
  g_assert_cmpuint (large[2], ==, UINT32_MAX);
}

static TinyStatus
unpack (const void *data, gsize size, guint32 *out_head, const void **out, gsize *out_size)
{
  TinyPluginError error;
  tiny_plugin_error_init (&error);
  const TinyProgramArgs args
      = { .struct_size = sizeof args, .name = "kernel", .data = data, .size = size };
  return tiny_unpack (&args, out_head, 2 * sizeof *out_head, out, out_size, &error);
}

static void
test_pack (void)
{
  const guint32 head[2] = { 7, 9 };
  const gsize n = 37;
  guint32 seen[2];
  void *room = NULL, *data = NULL;
  const void *bytes = NULL;
  uint64_t size = 0;
  gsize n_bytes = 0;
  TinyPacked *packed = tiny_pack (tiny_host_get (), head, sizeof head, n, &room);
  memset (room, 42, n);
  tiny_pack_end (packed, n, &data, &size);
  g_assert_cmpint (unpack (data, size, seen, &bytes, &n_bytes), ==, TINY_STATUS_OK);
  g_assert_cmpmem (seen, sizeof seen, head, sizeof head);
  g_assert_cmpmem (bytes, n_bytes, room, n);
  for (gsize i = 0; i < size; i++) {
    g_autofree guint8 *copy = g_memdup2 (data, size), *part = g_memdup2 (data, i);
    copy[i] ^= 0x10;
    g_assert_cmpint (unpack (copy, size, seen, &bytes, &n_bytes), ==, TINY_STATUS_CORRUPT);
    g_assert_cmpint (unpack (part, i, seen, &bytes, &n_bytes), ==, TINY_STATUS_CORRUPT);
  }
  tiny_host_get ()->free (data);
}

static void
test_library (void)
{
  static struct {
    void *(*allocate) (size_t);
    void (*other) (void);
  } table;
  TinySymbol symbols[] = { { "malloc", G_STRUCT_OFFSET (typeof (table), allocate), 0 },
                           { "no_such_function", G_STRUCT_OFFSET (typeof (table), other), 1 } };
  const char *const none[] = { "libnowhere.so.1", "libnothing.so", NULL };
  const char *const some[] = { "libnowhere.so.1", "libc.so.6", NULL };
  void *library = NULL;
  TinyPluginError error;
#define OPEN(names)                                                                            \
  (tiny_plugin_error_init (&error), tiny_open_library ("TINY_TEST_LIBRARY", names, symbols, 2, \
                                                       &table, "buy it", &library, &error))
  g_assert_cmpint (OPEN (none), ==, TINY_STATUS_DRIVER);
  g_assert_nonnull (strstr (error.text, "libnowhere.so.1"));
  g_assert_nonnull (strstr (error.text, "libnothing.so"));
  g_assert_cmpstr (error.hint, ==, "buy it");
  g_assert_cmpint (OPEN (some), ==, TINY_STATUS_OK);
  g_assert_nonnull (table.allocate);
  g_assert_null (table.other);
  dlclose (library);
  symbols[1].is_optional = 0;
  table.allocate = NULL; /* nothing of a library that lacks something */
  g_assert_cmpint (OPEN (some), ==, TINY_STATUS_DRIVER);
  g_assert_nonnull (strstr (error.text, "libc.so.6 lacks no_such_function"));
  g_assert_null (table.allocate);
  g_setenv ("TINY_TEST_LIBRARY", "/nowhere/lib.so", TRUE);
  g_assert_cmpint (OPEN (some), ==, TINY_STATUS_DRIVER);
  g_assert_nonnull (strstr (error.text, "TINY_TEST_LIBRARY: /nowhere/lib.so"));
#undef OPEN
}

static void
test_codes (void)
{
  static const TinyCode codes[]
      = { { "HW_FULL", 3, TINY_STATUS_OUT_OF_MEMORY }, { "HW_ODD", -4, 0 } };
  TinyPluginError error;
  tiny_plugin_error_init (&error);
#define CHECK(number) tiny_check_code (&error, codes, 2, TINY_STATUS_LAUNCH, number, "sending")
  g_assert_cmpint (CHECK (0), ==, TINY_STATUS_OK);
  g_assert_cmpint (CHECK (3), ==, TINY_STATUS_OUT_OF_MEMORY);
  g_assert_cmpstr (error.text, ==, "sending: HW_FULL (3)");
  g_assert_cmpint (CHECK (-4), ==, TINY_STATUS_LAUNCH);
  g_assert_cmpint (CHECK (99), ==, TINY_STATUS_LAUNCH);
  g_assert_cmpint ((gint) error.vendor_code, ==, 99);
  g_assert_cmpint (tiny_check_code (NULL, codes, 2, -5, 99, ""), ==, -5);
#undef CHECK
}

static void
test_errors (void)
{
  struct {
    guint32 struct_size, flags;
  } older = { sizeof older, 0 };
  TinyPluginError error;
  tiny_plugin_error_init (&error);
  g_assert_cmpint (tiny_fail (NULL, -5, "x"), ==, -5);
  g_assert_cmpint (tiny_fail ((TinyPluginError *) &older, -5, "a long text"), ==, -5);
  g_assert_cmpint (tiny_check_span (&(TinySpan){ NULL, 4, 4 }, 8, &error), ==, TINY_STATUS_OK);
  g_assert_cmpint (tiny_check_span (&(TinySpan){ NULL, 8, 0 }, 8, &error), ==, TINY_STATUS_OK);
  g_assert_cmpint (tiny_check_span (&(TinySpan){ NULL, 5, 4 }, 8, &error), <, 0);
  g_assert_cmpint (tiny_check_span (&(TinySpan){ NULL, 9, 0 }, 8, &error), <, 0);
  g_assert_cmpint (tiny_check_span (&(TinySpan){ NULL, UINT64_MAX, 2 }, 8, &error), <, 0);
  g_assert_nonnull (strstr (error.text, "outside its buffer of 8"));
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/kit/arch", test_arch);
  g_test_add_func ("/kit/arch-room", test_arch_room);
  g_test_add_func ("/kit/codes", test_codes);
  g_test_add_func ("/kit/pack", test_pack);
  g_test_add_func ("/kit/library", test_library);
  g_test_add_func ("/kit/errors", test_errors);
  return g_test_run ();
}
