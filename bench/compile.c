/* SPDX-License-Identifier: MIT
 *
 * compile.c: what the first step of a program costs, apart from running it, and what for.
 *
 * usage: bench-compile CASE, a model of bench/models or what `tinycore bench` takes (matmul:512).
 * Prints one JSON object. Times by pass (what the threads ran, summed) and counts are of all from
 * the process's start to the end of the first step. malloc is counted by standing before it.
 * $BENCH_START_NS is the moment at which the process was started, on CLOCK_MONOTONIC, by whoever
 * knows it. */
#include <json-glib/json-glib.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/tiny-stats.h"
#include "base/tiny-timing.h"
#include "bench/models/model.h"
#include "engine/tiny-runtime.h"
#include "tools/bench-cases.h"

/* ---- malloc ---- */
extern void *__libc_malloc (size_t n_bytes);
extern void *__libc_calloc (size_t n, size_t n_bytes);
extern void *__libc_realloc (void *memory, size_t n_bytes);

static guint64 n_mallocs, n_malloc_bytes;

static void
count (gsize n_bytes)
{
  __atomic_fetch_add (&n_mallocs, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add (&n_malloc_bytes, n_bytes, __ATOMIC_RELAXED);
}

void *
malloc (size_t n_bytes)
{
  count (n_bytes);
  return __libc_malloc (n_bytes);
}

void *
calloc (size_t n, size_t n_bytes)
{
  count (n * n_bytes);
  return __libc_calloc (n, n_bytes);
}

void *
realloc (void *memory, size_t n_bytes)
{
  count (n_bytes);
  return __libc_realloc (memory, n_bytes);
}

/* ---- time by pass ---- */
typedef struct {
  guint n;
  gint64 wall_ns, cpu_ns;
} Total;

static GMutex lock;
static GHashTable *totals; /* "category/name" → Total */
static GPtrArray *names;   /* in the order they were met */

static void
add_timing (const TinyTiming *timing, gpointer data)
{
  g_autofree char *name = g_strdup_printf ("%s/%s", timing->category, timing->name);
  g_mutex_lock (&lock);
  Total *total = g_hash_table_lookup (totals, name);
  if (total == NULL) {
    total = g_new0 (Total, 1);
    g_ptr_array_add (names, name);
    g_hash_table_insert (totals, g_steal_pointer (&name), total);
  }
  total->n++;
  total->wall_ns += timing->end_ns - timing->start_ns;
  total->cpu_ns += timing->cpu_ns;
  g_mutex_unlock (&lock);
}

/* ---- a case ---- */
static const ModelCase *const all_models[]
    = { gpt2_cases,         resnet_cases,    cnn_cases,
        resnet_train_cases, recurrent_cases, long_recurrent_cases };

typedef struct {
  Model model;
  BenchCase *operation; /* or this */
} Run;

static gboolean
set_up (Run *self, const char *name, GError **error)
{
  self->model.owned = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; i < G_N_ELEMENTS (all_models); i++)
    for (const ModelCase *at = all_models[i]; at->name != NULL; at++)
      if (g_str_equal (at->name, name)) {
        self->model.config = at->config;
        return at->set_up (&self->model, error);
      }
  self->operation = bench_case_new (name, error);
  return self->operation != NULL;
}

static gboolean
step (Run *self, GError **error)
{
  g_autoptr (TinyTensor) out = NULL;
  if (self->operation == NULL)
    return self->model.step (self->model.inputs, self->model.n_inputs, &out, 1, &self->model,
                             error);
  out = g_object_ref_sink (
      self->operation->build (self->operation->inputs, self->operation->sizes));
  return tiny_tensor_realize (out, error);
}

static void
clear (Run *self)
{
  g_clear_pointer (&self->model.owned, g_ptr_array_unref);
  g_free (self->model.parts);
  g_clear_pointer (&self->operation, bench_case_free);
}

/* ---- what is told ---- */
static void
set_number (JsonObject *object, const char *name, double value)
{
  json_object_set_double_member (object, name, value);
}

static void
set_count (JsonObject *object, const char *name, guint64 value)
{
  json_object_set_int_member (object, name, (gint64) value);
}

static JsonObject *
passes_to_json (void)
{
  JsonObject *object = json_object_new ();
  for (guint i = 0; i < names->len; i++) {
    const Total *total = g_hash_table_lookup (totals, names->pdata[i]);
    JsonObject *pass = json_object_new ();
    set_count (pass, "n", total->n);
    set_number (pass, "ms", (double) total->cpu_ns * 1e-6);
    set_number (pass, "wall_ms", (double) total->wall_ns * 1e-6);
    json_object_set_object_member (object, names->pdata[i], pass);
  }
  return object;
}

static void
print (JsonObject *object)
{
  g_autoptr (JsonNode) root = json_node_new (JSON_NODE_OBJECT);
  json_node_take_object (root, object);
  g_autofree char *text = json_to_string (root, FALSE);
  puts (text);
}

static gboolean
measure (const char *name, gint64 process_start, GError **error)
{
  __attribute__ ((cleanup (clear))) Run run = { 0 };
  gint64 start = tiny_timing_now_ns ();
  if (tiny_runtime_get_default_device (error) == NULL)
    return FALSE;
  gint64 opened = tiny_timing_now_ns ();
  if (!set_up (&run, name, error))
    return FALSE;
  TinyStats stats;
  TinyCounters counters;
  gint64 set_up_done = tiny_timing_now_ns ();
  if (!step (&run, error))
    return FALSE;
  gint64 first_done = tiny_timing_now_ns ();
  guint64 mallocs = n_mallocs, bytes = n_malloc_bytes;
  tiny_stats_get (&stats);
  tiny_runtime_get_counters (&counters);
  JsonObject *passes = passes_to_json ();
  gint64 warm_start = tiny_timing_now_ns ();
  if (!step (&run, error)) {
    json_object_unref (passes);
    return FALSE;
  }
  gint64 warm_ns = tiny_timing_now_ns () - warm_start;

  JsonObject *object = json_object_new ();
  json_object_set_string_member (object, "case", name);
  set_number (object, "start_ms", (double) (start - process_start) * 1e-6);
  set_number (object, "open_ms", (double) (opened - start) * 1e-6);
  set_number (object, "set_up_ms", (double) (set_up_done - opened) * 1e-6);
  set_number (object, "first_ms", (double) (first_done - set_up_done) * 1e-6);
  set_number (object, "run_ms", (double) warm_ns * 1e-6);
  set_count (object, "kernels", counters.n_kernels);
  set_count (object, "compiles", counters.n_compiles);
  set_count (object, "nodes", stats.n_nodes);
  set_count (object, "nodes_asked", stats.n_nodes_asked);
  set_count (object, "graphs", stats.n_graphs);
  set_count (object, "rule_visits", stats.n_rule_visits);
  set_count (object, "rule_tries", stats.n_rule_tries);
  set_count (object, "rule_hits", stats.n_rule_hits);
  set_count (object, "arena_bytes", stats.n_arena_bytes);
  set_count (object, "mallocs", mallocs);
  set_count (object, "malloc_bytes", bytes);
  json_object_set_object_member (object, "passes", passes);
  print (object);
  return TRUE;
}

int
main (int argc, char **argv)
{
  const char *started = g_getenv ("BENCH_START_NS");
  gint64 start = started ? g_ascii_strtoll (started, NULL, 10) : tiny_timing_now_ns ();
  if (argc != 2) {
    fprintf (stderr, "usage: bench-compile CASE\n");
    return 2;
  }
  totals = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  names = g_ptr_array_new ();
  tiny_timing_watch (add_timing, NULL);
  g_autoptr (GError) error = NULL;
  if (!measure (argv[1], start, &error)) {
    fprintf (stderr, "bench-compile: %s\n", error->message);
    return 1;
  }
  return 0;
}
