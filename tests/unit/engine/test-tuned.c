/* SPDX-License-Identifier: MIT
 *
 * test-tuned.c: whatever list stands in a file of TINY_TUNED or in the cache of searches, the kernel computes what it
 * says: by that list, or by the heuristic and with a warning. */
#include <glib/gstdio.h>
#include <string.h>

#include "../case-fails.h"
#include "../codegen/random-list.h"
#include "base/tiny-env.h"
#include "device/tiny-buffer.h"
#include "engine/tiny-cache.h"
#include "engine/tiny-executable.h"
#include "engine/tiny-plan.h"
#include "engine/tiny-tuned.h"
#include "ir/tiny-text.h"

enum { N_KERNELS = 160, MAX_ROWS = 24, MAX_COLUMNS = 24 };

/* Sums of rows and a number that no other kernel has. */
typedef struct {
  guint n_rows, n_columns;
  char *list;
  gboolean is_cached, fits;
} Row;

static Row rows[N_KERNELS];
static TinyDevice *device;
static guint n_warnings;

static TinyNode *
parse (TinyGraph *graph, guint i)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = g_strdup_printf (
      "// stage: kernel\n%%i = range.index{number=0, kind=loop}(%u)\n"
      "%%k = range.index{number=1, kind=reduce}(%u)\n"
      "%%x = load.i32(param.i32{slot=1, shape=[%u]}, add.index(mul.index(%%i, %u), %%k))\n"
      "sink{name=\"rows\"}(store(param.i32{slot=0, shape=[%u]}, %%i, "
      "add.i32(reduce.i32{op=add}(%%x, %%k), %u)))\n",
      rows[i].n_rows, rows[i].n_columns, rows[i].n_rows * rows[i].n_columns, rows[i].n_columns,
      rows[i].n_rows, i);
  TinyNode *kernel = tiny_graph_parse (graph, text, &error);
  g_assert_no_error (error);
  return kernel;
}

static void
to_hex (const guint8 digest[16], char out[33])
{
  for (guint i = 0; i < 16; i++)
    g_snprintf (out + 2 * i, 3, "%02x", digest[i]);
}

/* As a search that was wider than any keeps it. */
static void
store_in_cache (const guint8 digest[16], const char *list)
{
  char key[33];
  tiny_executable_make_key (device, digest, 16, key);
  g_autofree char *name = g_strconcat ("search ", key, NULL);
  g_autofree char *sum = g_compute_checksum_for_string (G_CHECKSUM_SHA256, name, -1);
  char *text = g_strdup_printf ("9 1000 900 %s", list);
  g_autoptr (GBytes) bytes = g_bytes_new_take (text, strlen (text));
  sum[32] = 0;
  tiny_cache_store (sum, bytes);
}

static void
write_lists (const char *path)
{
  GRand *rand = g_rand_new_with_seed (1);
  g_autofree char *target = tiny_tuned_target_of (device);
  g_autoptr (GString) file = g_string_new ("tinycore-tuned 1\n");
  for (guint i = 0; i < N_KERNELS; i++) {
    Row *row = &rows[i];
    guint8 digest[32];
    char hex[33];
    row->n_rows = (guint) g_rand_int_range (rand, 1, MAX_ROWS + 1);
    row->n_columns = (guint) g_rand_int_range (rand, 1, MAX_COLUMNS + 1);
    g_autoptr (TinyGraph) graph = tiny_graph_new ();
    TinyNode *kernel = parse (graph, i);
    g_autoptr (TinyOptSpace) space
        = tiny_opt_space_new (kernel, tiny_device_get_target (device), NULL);
    g_autofree char *list = random_list_draw (rand, i % 4 > 0 ? space : NULL);
    row->list = list[0] != 0 ? g_strdup (list + 1) : g_strdup ("none");
    row->fits = tiny_opt_space_check (space, row->list, NULL);
    row->is_cached = i % 2 != 0;
    tiny_node_digest (graph, kernel, digest);
    to_hex (digest, hex);
    if (row->is_cached)
      store_in_cache (digest, row->list);
    else
      g_string_append_printf (file, "%s %s %s # rows\n", hex, target, row->list);
  }
  g_assert_true (g_file_set_contents (path, file->str, (gssize) file->len, NULL));
  g_rand_free (rand);
}

/* Launches it and compares with the sums. */
static void
check_sums (guint i, const TinyExecutable *executable)
{
  g_autoptr (GError) error = NULL;
  const guint n = rows[i].n_rows * rows[i].n_columns;
  gint32 x[MAX_ROWS * MAX_COLUMNS], sums[MAX_ROWS];
  g_autoptr (TinyBuffer) in = tiny_buffer_new (device, n * sizeof *x);
  g_autoptr (TinyBuffer) out = tiny_buffer_new (device, rows[i].n_rows * sizeof *sums);
  for (guint k = 0; k < n; k++)
    x[k] = (gint32) (k * k % 97) - 40;
  g_assert_true (tiny_buffer_ensure (in, &error) && tiny_buffer_ensure (out, &error));
  g_assert_true (tiny_buffer_upload (in, 0, x, n * sizeof *x, &error));
  const TinySpan spans[] = { tiny_buffer_get_span (out), tiny_buffer_get_span (in) };
  TinyCommand command = { .struct_size = sizeof command,
                          .type = TINY_COMMAND_DISPATCH,
                          .program = tiny_program_get_handle (executable->program),
                          .buffers = spans,
                          .n_buffers = executable->n_params };
  memcpy (command.grid, executable->grid, sizeof command.grid);
  g_assert_true (tiny_device_submit (device, &command, 1, NULL, &error));
  g_assert_true (tiny_buffer_download (out, 0, sums, rows[i].n_rows * sizeof *sums, &error));
  for (guint r = 0; r < rows[i].n_rows; r++) {
    gint32 wanted = (gint32) i;
    for (guint k = 0; k < rows[i].n_columns; k++)
      wanted += x[r * rows[i].n_columns + k];
    if (sums[r] != wanted)
      CASE_FAILS ("kernel %u, row %u: %d, not %d, with \"%s\"", i, r, sums[r], wanted,
                  rows[i].list);
  }
}

static void
test_lists (void)
{
  guint n_fit = 0;
  for (guint i = 0; i < N_KERNELS; i++) {
    g_autoptr (TinyGraph) graph = tiny_graph_new ();
    g_autoptr (GError) error = NULL;
    TinyNode *kernel = parse (graph, i);
    TinyExecutable *executable;
    tiny_env_set_int (TINY_ENV_BEAM, rows[i].is_cached ? 1 : 0);
    n_warnings = 0;
    g_assert_true (tiny_executables_get (device, graph, &kernel, NULL, 1, &executable, &error));
    if (n_warnings != !rows[i].fits)
      CASE_FAILS ("kernel %u: %u warnings, with \"%s\"", i, n_warnings, rows[i].list);
    n_fit += rows[i].fits;
    check_sums (i, executable);
  }
  g_test_message ("%u of %u lists fit", n_fit, N_KERNELS);
  g_assert_cmpuint (n_fit, >, N_KERNELS / 2);
  g_assert_cmpuint (n_fit, <, N_KERNELS);
}

static void
count_warning (const char *domain, GLogLevelFlags level, const char *text, gpointer unused)
{
  n_warnings++;
  if (strstr (text, ": the heuristic is used instead") == NULL)
    CASE_FAILS ("%s", text);
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  g_test_init (&argc, &argv, NULL);
  g_autofree char *folder = g_dir_make_tmp ("tiny-tuned-XXXXXX", &error);
  g_autofree char *file = g_build_filename (folder, "tuned", NULL);
  g_setenv ("TINY_CACHE_DIR", folder, TRUE);
  g_setenv ("TINY_TUNED", file, TRUE);
  device = tiny_engine_get_device ("REF", &error);
  g_assert_no_error (error);
  write_lists (file);
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL);
  g_log_set_handler ("tinycore", G_LOG_LEVEL_WARNING, count_warning, NULL);
  g_test_add_func ("/engine/tuned/lists", test_lists);
  int status = g_test_run ();
  g_autofree char *remove = g_strdup_printf ("rm -r '%s'", folder);
  return system (remove) != 0 ? 1 : status;
}
