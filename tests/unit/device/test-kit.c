/* SPDX-License-Identifier: MIT
 *
 * test-kit.c: the plugins' kit: architectures print and parse back, what is damaged is refused at
 * every byte, a library that is missing or another says so. */
#include <glib.h>
#include <glib/gstdio.h>

#include "device/tiny-table.h"
#include "tiny-plugin-driver.h"
#include "tiny-plugin-host.h"

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
  for (gsize offset = 1; offset < 8; offset++) { /* what is mapped from a file lies anywhere */
    g_autofree guint8 *copy = g_malloc (offset + size);
    memcpy (copy + offset, data, size);
    g_assert_cmpint (unpack (copy + offset, size, seen, &bytes, &n_bytes), ==, TINY_STATUS_OK);
    g_assert_cmpmem (seen, sizeof seen, head, sizeof head);
    g_assert_cmpmem (bytes, n_bytes, room, n);
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

static void *
kit_alloc (uint64_t n_bytes)
{
  return g_malloc (n_bytes);
}

static guint
count_files (const char *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  guint n = 0;
  while (g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

/* A compiler that is a command: its result, its messages, and nothing left behind. */
static void
test_command (void)
{
  static const TinyHost host
      = { .struct_size = sizeof host, .alloc = kit_alloc, .free = g_free };
  static const struct {
    const char *command, *says; /* NULL: it succeeds */
  } rows[] = {
    { "tr a-z A-Z <$in >$out", NULL },
    { "echo seven is no eight; exit 3", "seven is no eight" },
    { "no-such-compiler-here $in", "no-such-compiler-here" },
    { "yes | head -c 100000; false", "y\ny" },
    { "true", "cannot be read" }, /* an empty result is none */
    { "rm $out", "cannot be read" },
    { "echo half >$TMPDIR/cc.s; echo stopped; kill -9 $$", "stopped" },
  };
  g_autofree char *folder = g_dir_make_tmp ("tiny-kit-XXXXXX", NULL);
  g_setenv ("TMPDIR", folder, TRUE);
  const TinyCompileArgs args
      = { .struct_size = sizeof args, .name = "kernel", .source = "hello", .source_size = 5 };
  /* Once more in a program that ignores its children: what they said of their end is nowhere then. */
  for (guint round = 0; round < 2 * G_N_ELEMENTS (rows); round++) {
    const guint i = round % G_N_ELEMENTS (rows);
    TinyPluginError error;
    g_autofree void *data = NULL;
    uint64_t size = 0;
    tiny_plugin_error_init (&error);
    signal (SIGCHLD, round < G_N_ELEMENTS (rows) ? SIG_DFL : SIG_IGN);
    TinyStatus status
        = tiny_compile_by_command (&host, rows[i].command, &args, &data, &size, &error);
    signal (SIGCHLD, SIG_DFL);
    g_assert_cmpint (status == TINY_STATUS_OK, ==, rows[i].says == NULL);
    if (rows[i].says != NULL)
      g_assert_nonnull (strstr (error.text, rows[i].says));
    else
      g_assert_cmpmem ((char *) data + size - 5, 5, "HELLO", 5);
    g_assert_cmpuint (count_files (folder), ==, 0);
  }
  g_assert_cmpint (g_rmdir (folder), ==, 0);
  TinyPluginError error;
  g_autofree void *data = NULL;
  uint64_t size = 0;
  tiny_plugin_error_init (&error); /* the folder is gone */
  g_assert_cmpint (tiny_compile_by_command (&host, "true", &args, &data, &size, &error), ==,
                   TINY_STATUS_INTERNAL);
  g_assert_nonnull (strstr (error.text, folder));
  /* A folder that cannot stand in a command line, or in a path of 240 bytes, is not used. */
  g_autofree char *endless = g_strnfill (240, '/');
  const char *const odd[] = { "/it's", "relative", endless };
  for (guint i = 0; i < G_N_ELEMENTS (odd); i++) {
    g_autofree void *copy = NULL;
    g_setenv ("TMPDIR", odd[i], TRUE);
    g_assert_cmpint (
        tiny_compile_by_command (&host, "cat $in >$out", &args, &copy, &size, &error), ==,
        TINY_STATUS_OK);
  }
  g_unsetenv ("TMPDIR");
}

/* A program that is no shared object is refused by name. */
static void
test_program (void)
{
  static const TinyHost host
      = { .struct_size = sizeof host, .alloc = kit_alloc, .free = g_free };
  void *bytes = NULL, *data;
  uint64_t size;
  TinyPacked *packed = tiny_pack (&host, "", 0, 5, &bytes);
  memcpy (bytes, "hello", 5);
  tiny_pack_end (packed, 5, &data, &size);
  TinyProgramArgs args
      = { .struct_size = sizeof args, .name = "kernel", .data = data, .size = size };
  TinyPluginProgram *program;
  TinyPluginError error;
  tiny_plugin_error_init (&error);
  g_assert_cmpint (tiny_library_load (NULL, &args, &program, &error), ==, TINY_STATUS_CORRUPT);
  g_assert_nonnull (strstr (error.text, "kernel: "));
  args.size--;
  g_assert_cmpint (tiny_library_load (NULL, &args, &program, &error), ==, TINY_STATUS_CORRUPT);
  g_assert_nonnull (strstr (error.text, "damaged"));
  g_free (data);
}

static TinyStatus
count_commands (void *context, const TinyCommand *command, TinyPluginError *error)
{
  guint *n = context;
  (*n)++;
  return command->type == TINY_COMMAND_DISPATCH
             ? tiny_fail (error, TINY_STATUS_LAUNCH, "number %u", *n)
             : tiny_host_copy (command, error);
}

/* Memory of the host, and commands longer than ours, as of a newer core. */
static void
test_host (void)
{
  struct {
    TinyCommand command;
    char of_later[32];
  } commands[3] = { { .command = { .type = TINY_COMMAND_UPLOAD } },
                    { .command = { .type = TINY_COMMAND_COPY } },
                    { .command = { .type = TINY_COMMAND_DOWNLOAD } } };
  _Alignas(64) char in[] = "abcdefgh";
  char out[9] = "........";
  guint64 ns[3] = { 0 };
  guint n = 0;
  TinyPluginBuffer *buffers[2], *huge;
  TinyPluginError error;
  tiny_plugin_error_init (&error);
  for (guint i = 0; i < 2; i++)
    g_assert_cmpint (tiny_host_alloc (NULL, 8, &buffers[i], &error), ==, TINY_STATUS_OK);
  g_assert_cmpint (tiny_host_alloc (NULL, UINT64_MAX, &huge, &error), ==,
                   TINY_STATUS_OUT_OF_MEMORY);
  g_assert_cmpint (tiny_host_alloc (NULL, UINT64_MAX / 2, &huge, &error), ==,
                   TINY_STATUS_OUT_OF_MEMORY);
  const TinySpan spans[2] = { { buffers[0], 2, 4 }, { buffers[1], 4, 4 } };
  for (guint i = 0; i < 3; i++)
    commands[i].command.struct_size = sizeof commands[i];
  commands[0].command.dst = commands[1].command.src = spans[0];
  commands[1].command.dst = commands[2].command.src = spans[1];
  commands[0].command.host = in;
  commands[2].command.host = out + 1;
  TinySubmit submit = { .struct_size = sizeof submit,
                        .commands = &commands[0].command,
                        .n_commands = 3,
                        .out_ns = ns };
  g_assert_cmpint (tiny_submit_each (&submit, count_commands, &n, &error), ==, TINY_STATUS_OK);
  g_assert_cmpstr (out, ==, ".abcd...");
  g_assert_cmpuint (n, ==, 3);
  commands[1].command.type = TINY_COMMAND_DISPATCH;
  g_assert_cmpint (tiny_submit_each (&submit, count_commands, &n, &error), ==,
                   TINY_STATUS_LAUNCH);
  g_assert_cmpstr (error.text, ==, "number 5");
  commands[1].command.type = 77;
  g_assert_cmpint (tiny_submit_each (&submit, count_commands, &n, &error), ==,
                   TINY_STATUS_UNSUPPORTED);
  for (guint i = 0; i < 2; i++)
    tiny_host_free (NULL, buffers[i]);
  /* Memory of others: used where it lies, and not given back. */
  void *mapped = NULL;
  TinyPluginBuffer *imported = NULL;
  g_assert_cmpint (tiny_host_import (NULL, in, sizeof in, &imported, &error), ==,
                   TINY_STATUS_OK);
  g_assert_cmpint (tiny_host_map (NULL, imported, &mapped, &error), ==, TINY_STATUS_OK);
  g_assert_true (mapped == (void *) in);
  const TinySpan span = { imported, 3, 1 };
  g_assert_true (tiny_host_bytes (&span) == in + 3);
  tiny_host_free (NULL, imported);
  g_assert_cmpint (tiny_host_import (NULL, in + 1, 1, &imported, &error), ==,
                   TINY_STATUS_INVALID);
}

/* ---- structs of other cores ---- */

/* A newer core's candidates are longer, and so are a newer plugin's: neither writes over the other's. */
static void
test_scan (void)
{
  struct {
    TinyCandidate known;
    guint64 later[3];
  } out[3], found[2] = { { .known = { .struct_size = sizeof found[0], .id = "a" } },
                         { .known = { .struct_size = sizeof found[0], .id = "b" } } };
  uint32_t n = 3;
  memset (out, 0x55, sizeof out);
  for (guint i = 0; i < 3; i++)
    out[i].known.struct_size = sizeof out[0];
  g_assert_cmpint (tiny_scan_copy (&found[0].known, 2, sizeof found[0], &out[0].known, &n), ==,
                   TINY_STATUS_OK);
  g_assert_cmpuint (n, ==, 2);
  for (guint i = 0; i < 2; i++) {
    g_assert_cmpstr (out[i].known.id, ==, found[i].known.id);
    g_assert_cmpuint (out[i].known.struct_size, ==, sizeof out[0]);
    for (guint k = 0; k < 3; k++)
      g_assert_cmphex (out[i].later[k], ==, G_GUINT64_CONSTANT (0x5555555555555555));
  }
  g_assert_cmphex ((guint8) out[2].known.id[0], ==, 0x55);
}

/* What is as long as minor 0 had it is taken, and filled no further than it is long. */
static void
test_fill (void)
{
  struct {
    TinyDeviceInfo known;
    guint64 later;
  } out = { .known.struct_size = TINY_SIZE_0_DEVICE_INFO, .later = 7 };
  const struct {
    TinyDeviceInfo known;
    guint64 later;
  } from = { .known.alignment = 64, .later = 9 };
  TinyPluginError error;
  tiny_plugin_error_init (&error);
  g_assert_cmpint (TINY_CHECK_OUT (&out.known, &error), ==, TINY_STATUS_OK);
  tiny_fill_struct (&out, &from, sizeof from);
  g_assert_cmpuint (out.known.alignment, ==, 64);
  g_assert_cmpuint (out.known.struct_size, ==, TINY_SIZE_0_DEVICE_INFO);
  g_assert_cmpuint (out.later, ==, 7);
  TINY_FILL (&out.known, .n_threads = 3);
  g_assert_cmpuint (out.known.n_threads, ==, 3);
  g_assert_cmpuint (out.known.alignment, ==, 0);
  g_assert_true (TINY_HAS (&out.known, reserved));
  out.known.struct_size--;
  g_assert_false (TINY_HAS (&out.known, reserved));
  g_assert_cmpint (TINY_CHECK_OUT (&out.known, &error), ==, TINY_STATUS_INVALID);
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
  g_test_add_func ("/kit/command", test_command);
  g_test_add_func ("/kit/program", test_program);
  g_test_add_func ("/kit/host", test_host);
  g_test_add_func ("/kit/scan", test_scan);
  g_test_add_func ("/kit/fill", test_fill);
  return g_test_run ();
}
