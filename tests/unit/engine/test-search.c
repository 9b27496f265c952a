/* SPDX-License-Identifier: MIT
 *
 * test-search.c: BEAM on the real CPU backend, whose compiler is made wrong, slow or unwilling for some
 * programs on the way, or whose clock tells tales: the plugin's own tables with a few functions before
 * them. */
#include <dlfcn.h>
#include <gio/gio.h>
#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "codegen/tiny-codegen.h"
#include "engine/tiny-debug.h"
#include "engine/tiny-search.h"
#include "engine/tiny-tuned.h"
#include "ir/tiny-text.h"

/* What goes wrong in compile(): for programs with vectors of @lanes, by default the machine's, which the
 * heuristic's have; ENDLESS: programs without them are said to take ten seconds for each point of the
 * grid, others a microsecond. */
static struct {
  enum { NOTHING, WRONG_SUM, REFUSED, ENDLESS } fault;
  guint lanes;
  gulong sleep_us;
  gint n_compiles, n_until_stop;
  GCancellable *stop; /* cancelled at compilation @n_until_stop */
} fault;

static const TinyRenderer *own;
static guint n_warnings;
static gint n_compiles; /* of the last search */

static gboolean
has_lanes (const TinyLinear *linear, guint lanes)
{
  for (guint i = 0; i < linear->n_instrs; i++)
    if (linear->instrs[i].lanes == lanes)
      return TRUE;
  return FALSE;
}

/* The first float addition becomes another operation. */
static void
spoil (TinyInstr *instrs, guint n)
{
  for (guint i = 0; i < n; i++) {
    gboolean is_float = instrs[i].dtype == TINY_DTYPE_F32;
    if (fault.fault == WRONG_SUM && is_float
        && (instrs[i].op == TINY_INSTR_ADD || instrs[i].op == TINY_INSTR_MULACC)) {
      instrs[i].op = instrs[i].op == TINY_INSTR_ADD ? TINY_INSTR_SUB : TINY_INSTR_MAX;
      if (instrs[i].op == TINY_INSTR_MAX)
        instrs[i].n_sources = 2;
      return;
    }
  }
}

static TinyStatus
compile (const TinyCompileArgs *args, void **data, uint64_t *size, TinyPluginError *error)
{
  if (g_atomic_int_add (&fault.n_compiles, 1) + 1 == fault.n_until_stop)
    g_cancellable_cancel (fault.stop);
  if (fault.sleep_us > 0)
    g_usleep (fault.sleep_us);
  if (fault.fault == NOTHING || !has_lanes (args->linear, fault.lanes))
    return own->compile (args, data, size, error);
  if (fault.fault == REFUSED) {
    g_strlcpy (error->text, "no such luck", sizeof error->text);
    return TINY_STATUS_COMPILE;
  }
  TinyLinear linear = *args->linear;
  g_autofree TinyInstr *instrs
      = g_memdup2 (linear.instrs, linear.n_instrs * sizeof (TinyInstr));
  spoil (instrs, linear.n_instrs);
  linear.instrs = instrs;
  TinyCompileArgs changed = *args;
  changed.linear = &linear;
  return own->compile (&changed, data, size, error);
}

/* ---- a device on which some programs are endless ---- */
static GHashTable *endless_binaries; /* checksums */
static GHashTable *endless_programs; /* TinyPluginProgram → times launched */
static TinyDeviceTable table;
static const TinyDeviceTable *own_table;
static GMutex lock;

static char *
checksum (const void *data, uint64_t size)
{
  return g_compute_checksum_for_data (G_CHECKSUM_SHA256, data, size);
}

static TinyStatus
note_endless (const TinyCompileArgs *args, void **data, uint64_t *size, TinyPluginError *error)
{
  TinyStatus status = own->compile (args, data, size, error);
  g_mutex_lock (&lock);
  if (status == TINY_STATUS_OK && !has_lanes (args->linear, fault.lanes))
    g_hash_table_add (endless_binaries, checksum (*data, *size));
  g_mutex_unlock (&lock);
  return status;
}

static TinyStatus
load_program (TinyPluginDevice *device,
              const TinyProgramArgs *args,
              TinyPluginProgram **out,
              TinyPluginError *error)
{
  TinyStatus status = own_table->program_load (device, args, out, error);
  g_autofree char *sum = checksum (args->data, args->size);
  if (status == TINY_STATUS_OK)
    g_hash_table_remove (endless_programs, *out); /* an address that was used before */
  if (status == TINY_STATUS_OK && g_hash_table_contains (endless_binaries, sum))
    g_hash_table_insert (endless_programs, *out, GUINT_TO_POINTER (0));
  return status;
}

/* No endless program is launched again once it has shown what it is. */
static TinyStatus
submit (TinyPluginDevice *device,
        TinyPluginQueue *queue,
        const TinySubmit *submit,
        TinyPluginError *error)
{
  TinyStatus status = own_table->submit (device, queue, submit, error);
  for (guint i = 0; i < submit->n_commands && submit->out_ns != NULL; i++) {
    const TinyCommand *command = &submit->commands[i];
    guint64 points = (guint64) command->grid[0] * command->grid[1] * command->grid[2];
    gpointer n_launches;
    submit->out_ns[i] = points * 1000;
    if (!g_hash_table_lookup_extended (endless_programs, command->program, NULL, &n_launches))
      continue;
    submit->out_ns[i] = points * 10000000000u;
    g_assert_cmpuint (GPOINTER_TO_UINT (n_launches), ==, 0);
    g_hash_table_insert (endless_programs, command->program, GUINT_TO_POINTER (1));
  }
  return status;
}

static const TinyPluginModule *own_module;

static TinyStatus
open_endless (const char *id,
              TinyPluginDevice **out,
              const TinyDeviceTable **out_table,
              TinyPluginError *error)
{
  TinyStatus status = own_module->open (id, out, &own_table, error);
  table = *own_table;
  table.program_load = load_program;
  table.submit = submit;
  *out_table = &table;
  return status;
}

/* ---- the backend ---- */

/* Vectors are kept from the heuristic, not from those who ask for them by hand. */
static TinyStatus
modest_target (const char *arch, TinyTarget *out, TinyPluginError *error)
{
  TinyStatus status = own->target (arch, out, error);
  out->vector_bits = 0;
  return status;
}

static TinyDevice *
open_device (gboolean modest)
{
  g_autoptr (GError) error = NULL;
  static TinyRenderer renderers[2];
  static TinyPluginModule modules[2];
  TinyPluginError plugin_error = { .struct_size = sizeof plugin_error };
  void *handle = dlopen (CPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  g_assert_nonnull (handle);
  TinyPluginEntry entry;
  *(void **) &entry = dlsym (handle, TINY_PLUGIN_ENTRY_SYMBOL);
  TinyPluginModule *module = &modules[modest];
  own_module = entry (0, &plugin_error);
  *module = *own_module;
  if (fault.fault == ENDLESS)
    module->open = open_endless;
  own = &module->renderers[0];
  renderers[modest] = *own;
  renderers[modest].compile = fault.fault == ENDLESS ? note_endless : compile;
  if (modest)
    renderers[modest].target = modest_target;
  module->renderers = &renderers[modest];
  module->n_renderers = 1;
  g_autoptr (TinyBackend) backend = tiny_backend_new (module, CPU_PLUGIN, &error);
  g_assert_no_error (error);
  const TinyDeviceOptions options = { .name = "CPU", .id = "cpu" };
  TinyDevice *device = tiny_device_new (backend, &options, &error);
  g_assert_no_error (error);
  if (fault.lanes == 0)
    fault.lanes = tiny_device_get_target (device)->vector_bits / 32;
  return device;
}

/* ---- kernels ---- */
static const char matmul[]
    = "// stage: kernel\n"
      "%i = range.index{number=0, kind=loop}(64)\n%j = range.index{number=1, kind=loop}(64)\n"
      "%k = range.index{number=2, kind=reduce}(64)\n"
      "%a = load.f32(param.f32{slot=1, shape=[4096]}, add.index(mul.index(%i, 64), %k))\n"
      "%b = load.f32(param.f32{slot=2, shape=[4096]}, add.index(mul.index(%k, 64), %j))\n"
      "sink{name=\"small_matmul\"}(store(param.f32{slot=0, shape=[4096]}, "
      "add.index(mul.index(%i, 64), %j), reduce.f32{op=add}(mul.f32(%a, %b), %k)))\n";

static TinyNode *
parse (TinyGraph *graph, const char *text)
{
  g_autoptr (GError) error = NULL;
  TinyNode *kernel = tiny_graph_parse (graph, text, &error);
  g_assert_no_error (error);
  return kernel;
}

static void
search (gboolean modest,
        const char *text,
        const TinySearchOptions *options,
        TinySearchResult *out)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_autoptr (TinyDevice) device = open_device (modest);
  n_warnings = 0;
  tiny_search_run (device, parse (graph, text), options, out, &error);
  g_assert_no_error (error);
  g_assert_nonnull (out->opts);
  g_assert_cmpuint (out->ns_best, <=, out->ns_heuristic);
  n_compiles = fault.n_compiles;
  memset (&fault, 0, sizeof fault);
}

/* What the heuristic does not know, the search finds: here that there are vectors. */
static void
test_finds (void)
{
  g_auto (TinySearchResult) result = { 0 };
  search (TRUE, matmul, &(TinySearchOptions){ 2, 20, 5000 }, &result);
  g_test_message ("%s: %" G_GUINT64_FORMAT " ns, heuristic %" G_GUINT64_FORMAT " ns",
                  result.opts, result.ns_best, result.ns_heuristic);
  g_assert_false (result.is_heuristic);
  g_assert_nonnull (strstr (result.opts, "lanes("));
  g_assert_cmpuint (result.ns_best * 2, <, result.ns_heuristic);
  g_assert_cmpuint (result.n_wrong + result.n_failed, ==, 0);
  g_assert_cmpuint (result.n_same, >, 0);
  g_assert_cmpuint (n_warnings, ==, 0);
}

/* A program that computes something else is warned of and never wins. */
static void
test_wrong (void)
{
  g_auto (TinySearchResult) result = { 0 };
  fault.fault = WRONG_SUM;
  fault.lanes = 16;
  search (TRUE, matmul, &(TinySearchOptions){ 2, 20, 5000 }, &result);
  g_assert_cmpuint (result.n_wrong, >, 0);
  g_assert_cmpuint (n_warnings, ==, result.n_wrong);
  g_assert_false (g_regex_match_simple ("lanes\\([0-9]+,16\\)", result.opts, 0, 0));
}

/* What the compiler refuses is left out. */
static void
test_refused (void)
{
  g_auto (TinySearchResult) result = { 0 };
  fault.fault = REFUSED;
  fault.lanes = 16;
  search (TRUE, matmul, &(TinySearchOptions){ 1, 20, 5000 }, &result);
  g_assert_cmpuint (result.n_failed, >, 0);
  g_assert_cmpuint (n_warnings, ==, 0);
}

/* The time for a kernel is kept, give or take what was begun; the heuristic's list is the answer. */
static void
test_seconds (void)
{
  g_auto (TinySearchResult) result = { 0 };
  fault.sleep_us = 200000;
  gint64 start = tiny_debug_now_ns ();
  search (FALSE, matmul, &(TinySearchOptions){ 2, 0.1, 5000 }, &result);
  g_assert_cmpint (tiny_debug_now_ns () - start, <, (gint64) 10000000000);
  g_assert_true (result.is_heuristic);
  g_assert_cmpuint (result.n_tried, ==, 0);
}

/* Nothing is handed to the compiler that would take longer than the time-out, nothing run. */
static void
test_timeout (void)
{
  g_auto (TinySearchResult) result = { 0 };
  search (FALSE, matmul, &(TinySearchOptions){ 1, 20, 1e-6 }, &result);
  g_assert_cmpint (n_compiles, ==, 1); /* the heuristic's own */
  g_assert_true (result.is_heuristic);
  g_assert_cmpuint (result.n_slow, >, 0);
  g_assert_cmpuint (result.n_slow, ==, result.n_tried - result.n_same);
  g_assert_cmpuint (result.n_timed, ==, 0);
}

/* A launch that would take longer than the time-out ends a candidate before its second launch. */
static void
test_endless (void)
{
  g_auto (TinySearchResult) result = { 0 };
  endless_binaries = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  endless_programs = g_hash_table_new (NULL, NULL);
  fault.fault = ENDLESS;
  search (FALSE, matmul, &(TinySearchOptions){ 2, 20, 5000 }, &result);
  g_assert_cmpuint (g_hash_table_size (endless_binaries), >, 0);
  g_assert_cmpuint (result.n_slow, >, 0);
  g_assert_nonnull (strstr (result.opts, "lanes("));
  g_hash_table_unref (endless_binaries);
  g_hash_table_unref (endless_programs);
}

/* Every fault of compiling the heuristic's own program is an error. */
static void
test_errors (void)
{
  g_autoptr (GError) error = NULL;
  g_auto (TinySearchResult) result = { 0 };
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  fault.fault = REFUSED;
  g_autoptr (TinyDevice) device = open_device (FALSE);
  const TinySearchOptions options = { 1, 1, 1000 };
  g_assert_false (tiny_search_run (device, parse (graph, matmul), &options, &result, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_COMPILE);
  g_clear_error (&error);
  memset (&fault, 0, sizeof fault);
  TinyNode *kernel
      = parse (graph, "// stage: kernel\n%v = variable.index{number=0}\n"
                      "sink{name=\"v\"}(store(param.f32{slot=0, shape=[4]}, %v, 1.0))\n");
  g_assert_false (tiny_search_run (device, kernel, &options, &result, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED);
}

static void
count_warning (const char *domain, GLogLevelFlags level, const char *text, gpointer unused)
{
  n_warnings++;
  g_assert_nonnull (strstr (text, "kernel small_matmul with "));
  g_assert_nonnull (strstr (text, "lanes("));
  g_assert_nonnull (strstr (text, "computes something else"));
}

/* ---- what is kept of searches ---- */
static TinyTunedKey tuned_key;

static gpointer
get_opts (gpointer unused)
{
  const char *origin;
  return tiny_tuned_get_opts (&tuned_key, &origin, NULL);
}

/* A search whose thread is told to stop ends with what was begun, keeps nothing, and can be had again. */
static void
test_stopped (void)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_autoptr (TinyDevice) device = open_device (FALSE);
  const char *origin;
  guint n_before, n_kept;
  g_free (tiny_tuned_export (&n_before));
  tiny_env_set_int (TINY_ENV_NO_CACHE, 1);
  tiny_env_set_int (TINY_ENV_BEAM_SECONDS, 5);
  tiny_env_set_int (TINY_ENV_BEAM, 1);
  tuned_key = (TinyTunedKey){ device, parse (graph, matmul), "00000000000000000000000000000002",
                              "stopped" };
  for (guint i = 1; i <= 4; i += 3) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GCancellable) cancellable = g_cancellable_new ();
    fault.n_compiles = 0;
    fault.n_until_stop = (gint) i;
    fault.stop = cancellable;
    g_cancellable_push_current (cancellable);
    g_assert_null (tiny_tuned_get_opts (&tuned_key, &origin, &error));
    g_cancellable_pop_current (cancellable);
    g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    g_assert_cmpint (fault.n_compiles, <=, (gint) (i + 6 * g_get_num_processors ()));
    g_free (tiny_tuned_export (&n_kept));
    g_assert_cmpuint (n_kept, ==, n_before);
  }
  fault.n_until_stop = 0;
  g_autofree char *opts = get_opts (NULL);
  g_assert_nonnull (opts);
  memset (&fault, 0, sizeof fault);
}

/* A result serves searches that are as wide or narrower; what several threads look for at once is kept once. */
static void
test_kept (void)
{
  enum { N_THREADS = 3 };
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_autoptr (TinyDevice) device = open_device (FALSE);
  GThread *threads[N_THREADS];
  gint n_before = 0;
  guint n_kept;
  tiny_env_set_int (TINY_ENV_NO_CACHE, 1);
  tiny_env_set_int (TINY_ENV_BEAM_SECONDS, 1);
  tuned_key = (TinyTunedKey){ device, parse (graph, matmul), "00000000000000000000000000000001",
                              "key" };
  for (guint beam = 1; beam <= 2; beam++) {
    tiny_env_set_int (TINY_ENV_BEAM, (gint) beam);
    for (guint i = 0; i < N_THREADS; i++)
      threads[i] = g_thread_new ("searcher", get_opts, NULL);
    for (guint i = 0; i < N_THREADS; i++)
      g_free (g_thread_join (threads[i]));
    g_assert_cmpint (fault.n_compiles, >, n_before);
    n_before = fault.n_compiles;
    g_autofree char *opts = get_opts (NULL), *all = tiny_tuned_export (&n_kept);
    g_assert_nonnull (opts);
    g_assert_cmpuint (n_kept, ==, 1);
    g_assert_nonnull (strstr (all, opts));
    g_assert_cmpint (fault.n_compiles, ==, n_before);
  }
  tiny_env_set_int (TINY_ENV_BEAM, 1);
  g_free (get_opts (NULL));
  g_assert_cmpint (fault.n_compiles, ==, n_before);
  memset (&fault, 0, sizeof fault);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL);
  g_log_set_handler ("tinycore", G_LOG_LEVEL_WARNING, count_warning, NULL);
  g_test_add_func ("/engine/search/finds", test_finds);
  g_test_add_func ("/engine/search/wrong", test_wrong);
  g_test_add_func ("/engine/search/refused", test_refused);
  g_test_add_func ("/engine/search/seconds", test_seconds);
  g_test_add_func ("/engine/search/timeout", test_timeout);
  g_test_add_func ("/engine/search/endless", test_endless);
  g_test_add_func ("/engine/search/errors", test_errors);
  g_test_add_func ("/engine/search/kept", test_kept);
  g_test_add_func ("/engine/search/stopped", test_stopped);
  return g_test_run ();
}
