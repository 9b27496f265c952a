/* SPDX-License-Identifier: MIT
 *
 * test-profile.c: what TINY_PROFILE records of a program with threads, a replay and a copy between
 * devices: JSON with every kernel launched, spans of one thread nested or apart, and nothing of a
 * forked child. */
#include <json-glib/json-glib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tiny-env.h"
#include "base/tiny-trace.h"
#include "engine/tiny-runtime.h"
#include "tiny.h"

enum { N_THREADS = 3, N_ROUNDS = 20, N_REPLAYS = 50 };

static char *path;

static TinyTensor *
iota (gint64 n)
{
  return g_object_ref_sink (tiny_tensor_add_number (
      tiny_tensor_cast (tiny_tensor_arange (TINY_DTYPE_I32, 0, (double) n, 1), TINY_DTYPE_F32),
      1));
}

static gpointer
realize_some (gpointer data)
{
  for (guint i = 0; i < N_ROUNDS; i++) {
    g_autoptr (TinyTensor) x = iota (8 + GPOINTER_TO_INT (data) + i % 3);
    g_autoptr (TinyTensor) y = g_object_ref_sink (tiny_tensor_sum (x, NULL, 0, FALSE));
    g_assert_true (tiny_tensor_realize (x, NULL) && tiny_tensor_realize (y, NULL));
  }
  return NULL;
}

static gboolean
twice (TinyTensor *const *inputs,
       guint n_inputs,
       TinyTensor **outputs,
       guint n_outputs,
       gpointer user_data,
       GError **error)
{
  outputs[0] = g_object_ref_sink (tiny_tensor_mul_number (inputs[0], 2));
  return tiny_tensor_realize (outputs[0], error);
}

/* Does all of it; returns how many kernels were launched. */
static guint
run_program (void)
{
  g_autoptr (GError) error = NULL;
  GThread *threads[N_THREADS];
  for (guint i = 0; i < N_THREADS; i++)
    threads[i] = g_thread_new ("realizer", realize_some, GINT_TO_POINTER (i));
  for (guint i = 0; i < N_THREADS; i++)
    g_thread_join (threads[i]);
  g_autoptr (TinyTensor) x = iota (100);
  g_autoptr (TinyJit) jit = tiny_jit_new (twice, NULL, NULL, 1);
  for (guint i = 0; i < N_REPLAYS + 2; i++)
    g_assert_true (tiny_jit_call (jit, &x, 1, NULL, &error));
  g_autoptr (TinyTensor) away = g_object_ref_sink (tiny_tensor_to (x, "CPU"));
  g_assert_true (tiny_tensor_realize (away, &error));
  float values[100];
  g_assert_true (tiny_tensor_copy_data (away, values, sizeof values, &error));
  TinyCounters counters;
  tiny_runtime_get_counters (&counters);
  return (guint) counters.n_kernels;
}

typedef struct {
  gint64 thread, start, end; /* ns */
  const char *category, *name;
} Span;

static int
compare_spans (gconstpointer a, gconstpointer b)
{
  const Span *x = a, *y = b;
  if (x->thread != y->thread)
    return x->thread < y->thread ? -1 : 1;
  if (x->start != y->start)
    return x->start < y->start ? -1 : 1;
  return x->end > y->end ? -1 : x->end < y->end;
}

static GArray *
read_spans (JsonParser *parser)
{
  JsonArray *events = json_object_get_array_member (
      json_node_get_object (json_parser_get_root (parser)), "traceEvents");
  GArray *spans = g_array_new (FALSE, FALSE, sizeof (Span));
  g_autoptr (GHashTable) named = g_hash_table_new (NULL, NULL);
  for (guint i = 0; i < json_array_get_length (events); i++) {
    JsonObject *event = json_array_get_object_element (events, i);
    const char *phase = json_object_get_string_member (event, "ph");
    gint64 thread = json_object_get_int_member (event, "tid");
    g_assert_cmpint (json_object_get_int_member (event, "pid"), ==, getpid ());
    if (g_str_equal (phase, "M")) {
      g_hash_table_add (named, GINT_TO_POINTER (thread));
      continue;
    }
    g_assert_cmpstr (phase, ==, "X");
    g_assert_true (g_hash_table_contains (named, GINT_TO_POINTER (thread)));
    gint64 start = (gint64) (json_object_get_double_member (event, "ts") * 1e3 + 0.5);
    gint64 length = (gint64) (json_object_get_double_member (event, "dur") * 1e3 + 0.5);
    Span span = { thread, start, start + length, json_object_get_string_member (event, "cat"),
                  json_object_get_string_member (event, "name") };
    g_array_append_val (spans, span);
  }
  g_array_sort (spans, compare_spans);
  return spans;
}

/* Of two spans of a thread one holds the other, or they are apart. */
static void
check_nesting (GArray *spans)
{
  g_autoptr (GArray) open = g_array_new (FALSE, FALSE, sizeof (Span));
  for (guint i = 0; i < spans->len; i++) {
    const Span *span = &g_array_index (spans, Span, i);
    while (open->len > 0) {
      const Span *outer = &g_array_index (open, Span, open->len - 1);
      if (outer->thread == span->thread && outer->end > span->start)
        break;
      g_array_set_size (open, open->len - 1);
    }
    if (open->len > 0)
      g_assert_cmpint (span->end, <=, g_array_index (open, Span, open->len - 1).end);
    g_array_append_val (open, *span);
  }
}

static guint
count (GArray *spans, const char *category, const char *name)
{
  guint n = 0;
  for (guint i = 0; i < spans->len; i++) {
    const Span *span = &g_array_index (spans, Span, i);
    n += g_str_equal (span->category, category)
         && (name == NULL || g_str_equal (span->name, name));
  }
  return n;
}

static void
test_program (void)
{
  guint n_kernels = run_program ();
  pid_t child = fork ();
  if (child == 0) {
    tiny_trace_add (1, 2, "kernel", "of a child", NULL, 0);
    exit (0);
  }
  waitpid (child, NULL, 0);
  tiny_trace_add (tiny_timing_now_ns (), tiny_timing_now_ns (), "odd", "\"a\\\n\xff\x01", NULL,
                  0);
  tiny_trace_flush ();
  g_autoptr (GError) error = NULL;
  g_autoptr (JsonParser) parser = json_parser_new ();
  json_parser_load_from_file (parser, path, &error);
  g_assert_no_error (error);
  g_autoptr (GArray) spans = read_spans (parser);
  g_assert_cmpuint (count (spans, "kernel", NULL), ==, n_kernels);
  g_assert_cmpuint (count (spans, "kernel", "of a child"), ==, 0);
  g_assert_cmpuint (count (spans, "odd", "\"a\\\n\xef\xbf\xbd\x01"), ==, 1);
  g_assert_cmpuint (count (spans, "engine", "replay"), ==, N_REPLAYS);
  g_assert_cmpuint (count (spans, "copy", NULL), ==, 1);
  g_assert_cmpuint (count (spans, "transfer", "download"), >, 0);
  static const char *const some[] = { "schedule", "codegen", "compile", "submit", "engine" };
  for (guint i = 0; i < G_N_ELEMENTS (some); i++)
    g_assert_cmpuint (count (spans, some[i], NULL), >, 0);
  check_nesting (spans);
}

static gint goes_on = TRUE;

static gpointer
record_all_the_time (gpointer name)
{
  while (g_atomic_int_get (&goes_on))
    tiny_trace_add (1, 2, "odd", name, NULL, 0);
  return NULL;
}

/* A child's events are nobody's, also where another thread was writing one down when it was forked. */
static void
test_forks (void)
{
  g_autofree char *name = g_strnfill (20000, 'x');
  GThread *thread = g_thread_new ("recorder", record_all_the_time, name);
  for (guint i = 0; i < 20; i++) {
    pid_t child = fork ();
    if (child == 0) {
      alarm (10);
      tiny_trace_add (1, 2, "kernel", "of a child", NULL, 0);
      tiny_trace_flush ();
      _exit (0);
    }
    int status = -1;
    waitpid (child, &status, 0);
    g_assert_cmpint (status, ==, 0);
  }
  g_atomic_int_set (&goes_on, FALSE);
  g_thread_join (thread);
}

int
main (int argc, char **argv)
{
  g_autofree char *folder = g_dir_make_tmp ("tiny-profile-XXXXXX", NULL);
  g_autofree char *asked = g_build_filename (folder, "trace-%p.json", NULL);
  path = g_strdup_printf ("%s/trace-%d.json", folder, (int) getpid ());
  tiny_env_set_text (TINY_ENV_PROFILE, asked);
  tiny_env_set_text (TINY_ENV_DEV, "REF");
  tiny_env_set_int (TINY_ENV_NO_CACHE, 1); /* so that there is something to compile */
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/engine/profile/program", test_program);
  g_test_add_func ("/engine/profile/forks", test_forks);
  int result = g_test_run ();
  unlink (path);
  rmdir (folder);
  g_free (path);
  return result;
}
