/* SPDX-License-Identifier: MIT
 *
 * test-kernel-texts.c: kernel texts changed by chance reach no memory but their own, and compute what REF does.
 *
 *   test-kernel-texts FILE [--seed N] [--count N] [--minutes N] [--devices A,B] [--verbose]
 *
 * FILE has the texts that are changed. What is accepted of the results runs on REF as it is, on the first device
 * as the heuristic has it and on one of all devices with optimisations by chance (texts as they are: with each of a
 * list, on all), over numbers most of which are no
 * elements of anything, in memory between pages that fault. Outputs are those of REF to the bit where the contract
 * leaves nothing open (docs/contract-ops.md). Who is stopped by a fault or hangs is named with its seed and text. */
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "base/tiny-float.h"
#include "codegen/tiny-codegen.h"
#include "device/tiny-buffer.h"
#include "device/tiny-program.h"
#include "engine/tiny-code.h"
#include "engine/tiny-plan.h"
#include "guarded.h"
#include "ir/tiny-shape.h"
#include "ir/tiny-text.h"
#include "kernel-change.h"
#include "kernel-values.h"
#include "schedule/kernel-text.h"

enum {
  MAX_DEVICES = 4,
  MAX_PARAMS = 8,
  MAX_ROUNDS = 1 << 13, /* of all loops of a kernel */
  KERNEL_SECONDS = 30,
  MOST_FAILURES = 10,
  EXIT_SKIP = 77
};

static gint64 option_seed = 1, option_count = 1000, option_minutes = 0;
static char *option_devices = NULL;
static gboolean option_verbose = FALSE;

static struct {
  guint64 n_texts, n_accepted, n_long, n_runs, n_opts, n_exact, n_open, n_raced, n_uncompiled;
  guint n_failures;
} tally;

typedef struct {
  TinyDevice *device;
  TinyBuffer *buffers[MAX_PARAMS]; /* of the guarded pages */
} Place;

static Place reference, places[MAX_DEVICES];
static guint n_places;
static Guarded guarded[MAX_PARAMS];

static char current[1 << 14], current_program[700]; /* what a signal handler writes */

/* A text, and what it runs on. */
typedef struct {
  GRand *random;
  TinyGraph *graph;
  KernelText kernel;
  guint8 *before[MAX_PARAMS], *wanted[MAX_PARAMS];
  gsize n_bytes[MAX_PARAMS];
  gboolean is_open[MAX_PARAMS]; /* an output that is not defined to the bit */
} Case;

static void
case_clear (Case *self)
{
  for (guint i = 0; i < MAX_PARAMS; i++) {
    g_free (self->before[i]);
    g_free (self->wanted[i]);
  }
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Case, case_clear)

static guint
pick (Case *self, guint n)
{
  return (guint) g_rand_int_range (self->random, 0, (gint32) n);
}

/* ---- preparing ---- */
/* FALSE where it would take long or much. */
static gboolean
prepare (Case *self)
{
  gint64 rounds = 1, sizes[MAX_PARAMS];
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->graph, &self->kernel.sink, 1);
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_RANGE
        && (__builtin_mul_overflow (rounds, MAX (tiny_range_get_extent (node), 1), &rounds)
            || rounds > MAX_ROUNDS))
      return FALSE;
  }
  if (self->kernel.n_params > MAX_PARAMS)
    return FALSE;
  for (guint i = 0; i < self->kernel.n_params; i++) {
    const gint64 size
        = (gint64) tiny_dtype_get_n_bytes ((TinyDType) self->kernel.params[i]->dtype);
    sizes[i] = tiny_shape_get_n_elements (self->kernel.params[i]->shape);
    if (sizes[i] > GUARDED_MAX_BYTES / size)
      return FALSE;
    self->n_bytes[i] = (gsize) (sizes[i] * size);
  }
  for (guint i = 0; i < self->kernel.n_params; i++) {
    self->before[i] = g_malloc0 (self->n_bytes[i]);
    if (i >= self->kernel.n_outputs)
      kernel_fill (self->random, (TinyDType) self->kernel.params[i]->dtype, self->before[i],
                   sizes[i], sizes[pick (self, self->kernel.n_params)]);
  }
  return TRUE;
}

/* ---- what the contract leaves open ---- */
static gboolean
is_known_divisor (const TinyNode *y)
{
  return y->op == TINY_OP_CONST && y->arg != 0;
}

static gboolean
is_known_count (const TinyNode *y)
{
  return y->op == TINY_OP_CONST && y->arg >= 0
         && y->arg < 8 * (gint64) tiny_dtype_get_n_bytes ((TinyDType) y->dtype);
}

static gboolean
is_open (const TinyNode *node)
{
  const gboolean is_float = tiny_dtype_is_float ((TinyDType) node->dtype);
  const gboolean from_float
      = node->n_sources > 0 && tiny_dtype_is_float ((TinyDType) node->sources[0]->dtype);
  switch (node->op) {
  case TINY_OP_CAST:
    return from_float && !is_float && node->dtype != TINY_DTYPE_BOOL;
  case TINY_OP_BITCAST:
    return from_float || is_float;
  case TINY_OP_IDIV:
  case TINY_OP_MOD:
  case TINY_OP_FLOORDIV:
  case TINY_OP_FLOORMOD:
    return !is_known_divisor (node->sources[1]);
  case TINY_OP_SHL:
  case TINY_OP_SHR:
    return !is_known_count (node->sources[1]);
  case TINY_OP_MAX:
  case TINY_OP_REDUCE:
  case TINY_OP_MULACC:
    return is_float;
  case TINY_OP_RECIP:
  case TINY_OP_SQRT:
  case TINY_OP_EXP2:
  case TINY_OP_LOG2:
  case TINY_OP_SIN:
  case TINY_OP_FDIV:
    return TRUE;
  default:
    return FALSE;
  }
}

static gboolean
find_open (Case *self, TinyNode *store)
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->graph, &store, 1);
  for (guint i = 0; i < order->len; i++)
    if (is_open (order->pdata[i]))
      return TRUE;
  return FALSE;
}

/* ---- running ---- */
static TinyCommand
make_dispatch (Case *self, const Place *place, TinySpan *spans, guint n)
{
  for (guint i = 0; i < n; i++)
    spans[i] = (TinySpan){ tiny_buffer_get_handle (place->buffers[i]),
                           (guint64) (guarded[i].data - guarded[i].pages), guarded[i].n_bytes };
  return (TinyCommand){ .struct_size = sizeof (TinyCommand),
                        .type = TINY_COMMAND_DISPATCH,
                        .buffers = spans,
                        .n_buffers = n };
}

/* Once at either end of the pages. @wanted: what is written becomes it. NULL: it is right. */
static char *
launch (Case *self, const Place *place, TinyProgram *program, const TinyCodeHead *head)
{
  const gboolean is_first = self->wanted[0] == NULL;
  for (guint at_end = 0; at_end < 2; at_end++) {
    g_autoptr (GError) error = NULL;
    TinySpan spans[MAX_PARAMS];
    for (guint i = 0; i < self->kernel.n_params; i++)
      guarded_place (&guarded[i], self->before[i], self->n_bytes[i], at_end == 1,
                     i < self->kernel.n_outputs);
    TinyCommand command = make_dispatch (self, place, spans, head->n_params);
    command.program = tiny_program_get_handle (program);
    memcpy (command.grid, head->grid, sizeof command.grid);
    if (!tiny_device_submit (place->device, &command, 1, NULL, &error))
      return g_strdup_printf ("launch: %s", error->message);
    tally.n_runs++;
    for (guint i = 0; i < self->kernel.n_params; i++) {
      const TinyDType dtype = (TinyDType) self->kernel.params[i]->dtype;
      const gsize size = tiny_dtype_get_n_bytes (dtype);
      if (!guarded_is_clean (&guarded[i]))
        return g_strdup_printf ("it writes beside param %u", i);
      if (i >= self->kernel.n_outputs)
        continue;
      if (is_first && self->wanted[i] == NULL)
        self->wanted[i] = g_memdup2 (guarded[i].data, self->n_bytes[i]);
      for (gsize at = 0; at < self->n_bytes[i] && !self->is_open[i]; at += size) {
        guint64 found = 0, wanted = 0;
        memcpy (&found, guarded[i].data + at, size);
        memcpy (&wanted, self->wanted[i] + at, size);
        if (found != wanted
            && !(tiny_dtype_is_float (dtype) && isnan (tiny_float_from_bits (dtype, found))
                 && isnan (tiny_float_from_bits (dtype, wanted))))
          return g_strdup_printf ("element %" G_GSIZE_FORMAT
                                  " of output %u is 0x%" G_GINT64_MODIFIER
                                  "x, not 0x%" G_GINT64_MODIFIER "x as on REF",
                                  at / size, i, found, wanted);
      }
    }
  }
  return NULL;
}

/* @opts NULL: by heuristic. NULL: right, or there is no such program. */
static char *
run_on (Case *self, const Place *place, const TinyOpt *opts, guint n_opts, gboolean *out_ran)
{
  g_auto (TinyCode) code = { 0 };
  g_autoptr (GError) error = NULL;
  g_autofree char *asked = opts != NULL ? tiny_opts_to_string (opts, n_opts) : NULL;
  const char *device = tiny_device_get_name (place->device);
  g_snprintf (current_program, sizeof current_program, "on %s, opts asked for: %s: ", device,
              asked != NULL ? asked : "the heuristic's");
  *out_ran = FALSE;
  if (!tiny_code_make (&code, place->device, self->kernel.sink, opts, n_opts, NULL, &error)) {
    /* The verifier knows no gates: what was a plausible number before may not be one that was put together. */
    const gboolean is_refused
        = g_error_matches (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED)
          || strstr (error->message, "may be more than an index can count") != NULL
          || (n_opts > 0 && g_error_matches (error, TINY_ERROR, TINY_ERROR_INVALID)
              && strstr (error->message, ": after ") == NULL);
    return is_refused ? NULL
                      : g_strdup_printf ("%sno program: %s", current_program, error->message);
  }
  g_autoptr (TinyProgram) program = tiny_program_new (
      place->device, code.head.name, code.binary, code.head.n_params, 0,
      (const guint32[]){ code.head.group[0], code.head.group[1], code.head.group[2] }, &error);
  if (program == NULL)
    return g_strdup_printf ("load: %s", error->message);
  *out_ran = TRUE;
  g_snprintf (current_program, sizeof current_program, "running on %s, opts %s: ", device,
              code.head.opts);
  char *problem = launch (self, place, program, &code.head);
  if (problem == NULL)
    return NULL;
  char *all = g_strdup_printf ("%s, opts %s: %s", device, code.head.opts, problem);
  g_free (problem);
  return all;
}

/* ---- elements that are stored more than once ---- */
/* The index of each round of @store, or -1 where it stores nothing; NULL: there are no loops. */
static TinyNode *
make_index_kernel (Case *self, TinyNode *store, gint64 *out_rounds)
{
  guint n;
  TinyGraph *graph = self->graph;
  TinyNode *const *ranges = tiny_node_get_ranges (graph, store, &n);
  TinyNode *round = tiny_node_const_index (graph, 0);
  *out_rounds = 1;
  for (guint i = 0; i < n; i++) {
    const gint64 extent = tiny_range_get_extent (ranges[i]);
    round = tiny_node_binary (
        graph, TINY_OP_ADD, ranges[i],
        tiny_node_binary (graph, TINY_OP_MUL, round, tiny_node_const_index (graph, extent)));
    *out_rounds *= extent;
  }
  if (n == 0 || *out_rounds == 0)
    return NULL;
  TinyNode *index = tiny_node_cast (graph, store->sources[1], TINY_DTYPE_I64);
  if (store->n_sources > 3)
    index = tiny_node_where (graph, store->sources[3], index,
                             tiny_node_const_int (graph, TINY_DTYPE_I64, -1));
  TinyNode *param = tiny_node_new (graph, TINY_OP_PARAM, TINY_DTYPE_I64, 1, 0, NULL, 0,
                                   tiny_graph_ints (graph, out_rounds, 1), NULL);
  TinyNode *sources[] = { param, round, index };
  TinyNode *put
      = tiny_node_new (graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, 3, sources, 0, NULL, NULL);
  return tiny_node_sink (graph, 1, &put, "indices");
}

/* Which round comes last is open. */
static gboolean
find_race (Case *self, TinyNode *store)
{
  gint64 rounds;
  TinyNode *sink = make_index_kernel (self, store, &rounds);
  if (sink == NULL)
    return FALSE;
  g_auto (Case) other = { .random = self->random, .graph = self->graph };
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->graph, &sink, 1);
  g_autoptr (GPtrArray) from = g_ptr_array_new (), to = g_ptr_array_new ();
  other.kernel.n_outputs = other.kernel.n_params = 1;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op != TINY_OP_PARAM)
      continue;
    if (node->arg == 0) {
      other.kernel.params[0] = node;
      continue;
    }
    const guint slot = other.kernel.n_params++;
    g_ptr_array_add (from, node);
    other.kernel.params[slot]
        = tiny_node_new (self->graph, TINY_OP_PARAM, (TinyDType) node->dtype, 1, 0, NULL, slot,
                         node->ints, NULL);
    g_ptr_array_add (to, other.kernel.params[slot]);
    other.n_bytes[slot] = self->n_bytes[node->arg];
    other.before[slot] = g_memdup2 (self->before[node->arg], self->n_bytes[node->arg]);
  }
  other.kernel.sink = tiny_graph_substitute (self->graph, sink, (TinyNode *const *) from->pdata,
                                             (TinyNode *const *) to->pdata, from->len);
  other.n_bytes[0] = (gsize) rounds * sizeof (gint64);
  if (other.n_bytes[0] > GUARDED_MAX_BYTES)
    return TRUE;
  other.before[0] = g_malloc0 (other.n_bytes[0]);
  other.is_open[0] = TRUE;
  gboolean ran;
  const TinyOpt none = { 0 };
  g_autofree char *problem = run_on (&other, &reference, &none, 0, &ran);
  if (problem != NULL || !ran)
    return TRUE;
  g_autoptr (GHashTable) seen = g_hash_table_new (g_int64_hash, g_int64_equal);
  const gint64 *indices = (const gint64 *) (const void *) other.wanted[0];
  for (gint64 i = 0; i < rounds; i++)
    if (indices[i] >= 0 && !g_hash_table_add (seen, (gpointer) &indices[i]))
      return TRUE;
  return FALSE;
}

static void
look_at_outputs (Case *self)
{
  for (guint i = 0; i < self->kernel.sink->n_sources; i++) {
    TinyNode *store = self->kernel.sink->sources[i];
    const gboolean open = find_open (self, store), races = !open && find_race (self, store);
    self->is_open[store->sources[0]->arg] = open || races;
    tally.n_open += open;
    tally.n_raced += races;
    tally.n_exact += !open && !races;
  }
}

/* ---- one text ---- */
/* Lists that fit most kernels: an axis is rounded up before it is split. */
static guint
draw_opts (Case *self, TinyOpt *out)
{
  static const gint64 amounts[] = { 2, 3, 4, 8, 16 };
  static const TinyOptKind splits[] = { TINY_OPT_LANES, TINY_OPT_UPCAST, TINY_OPT_UNROLL };
  guint n = 0;
  for (guint rounds = 1 + pick (self, 2); rounds > 0; rounds--) {
    const guint axis = pick (self, 3);
    const gint64 amount = amounts[pick (self, G_N_ELEMENTS (amounts))];
    const TinyOptKind any = (TinyOptKind) pick (self, TINY_N_OPTS);
    const gboolean splits_it = pick (self, 4) > 0;
    if (splits_it && pick (self, 4) > 0)
      out[n++] = (TinyOpt){ TINY_OPT_PAD, axis, amount };
    out[n++] = (TinyOpt){ splits_it ? splits[pick (self, G_N_ELEMENTS (splits))] : any, axis,
                          any == TINY_OPT_GRID && !splits_it ? 0 : amount };
  }
  return n;
}

/* How many of its PARAMs are inputs: it has a STORE for each other. */
static gboolean
count_inputs (TinyGraph *graph, const char *text, guint *out_n)
{
  TinyNode *root = tiny_graph_parse (graph, text, NULL);
  gint64 n = 0;
  if (root == NULL || root->op != TINY_OP_SINK)
    return FALSE;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &root, 1);
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    n += node->op == TINY_OP_PARAM;
  }
  *out_n = (guint) MAX (n - root->n_sources, 0);
  return TRUE;
}

/* For texts that nothing changed, on all devices. */
static const char *const ways[] = { "none",
                                    "pad(0,16) lanes(0,16)",
                                    "pad(0,16) lanes(0,16) pad(1,3)",
                                    "pad(1,16) lanes(1,16)",
                                    "pad(0,8) lanes(0,8) pad(1,4) upcast(1,4)",
                                    "pad(0,3) upcast(0,3) grid(0,0)",
                                    "pad(1,4) unroll(1,4)",
                                    "pad(2,4) unroll(2,4) pad(1,4) lanes(1,4)" };

static char *
run_all_ways (Case *self)
{
  char *problem = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (ways) * n_places && problem == NULL; i++) {
    gboolean fits;
    guint n_opts;
    g_autofree TinyOpt *opts = tiny_opts_from_string (ways[i / n_places], &n_opts, NULL);
    problem = run_on (self, &places[i % n_places], opts, n_opts, &fits);
    tally.n_opts += fits;
  }
  return problem;
}

static char *
run (const char *text, gboolean is_kept, GRand *random)
{
  guint n_inputs;
  gboolean ran;
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_auto (Case) self = { .random = random, .graph = graph };
  TinyOpt opts[4] = { { 0 } };
  if (!count_inputs (graph, text, &n_inputs)
      || !kernel_text_parse (&self.kernel, graph, text, n_inputs, NULL))
    return NULL;
  tally.n_accepted++;
  if (!prepare (&self)) {
    tally.n_long++;
    return NULL;
  }
  look_at_outputs (&self);
  char *problem = run_on (&self, &reference, opts, 0, &ran);
  if (problem == NULL && ran)
    problem = run_on (&self, &places[0], NULL, 0, &ran);
  if (problem != NULL)
    return problem;
  tally.n_uncompiled += !ran;
  if (problem == NULL && ran && is_kept)
    return run_all_ways (&self);
  gboolean fits = FALSE;
  for (guint tries = 0; problem == NULL && ran && !fits && tries < 3; tries++)
    problem
        = run_on (&self, &places[pick (&self, n_places)], opts, draw_opts (&self, opts), &fits);
  tally.n_opts += fits;
  return problem;
}

/* ---- the command ---- */
static void
on_signal (int number)
{
  const char *what = number == SIGALRM ? "it hangs\n" : "it crashes\n";
  alarm (0);
  if (write (2, current, strlen (current)) < 0
      || write (2, current_program, strlen (current_program)) < 0
      || write (2, what, strlen (what)) < 0)
    _exit (3);
  signal (number, SIG_DFL);
  raise (number);
}

static const GOptionEntry entries[] = {
  { "seed", 0, 0, G_OPTION_ARG_INT64, &option_seed, "the first text", "N" },
  { "count", 0, 0, G_OPTION_ARG_INT64, &option_count, "how many texts", "N" },
  { "minutes", 0, 0, G_OPTION_ARG_INT64, &option_minutes, "begin none after so long", "N" },
  { "devices", 0, 0, G_OPTION_ARG_STRING, &option_devices,
    "devices; CPU and one without AVX-512", "A,B" },
  { "verbose", 0, 0, G_OPTION_ARG_NONE, &option_verbose, "print every text", NULL },
  { NULL },
};

static void
run_all (GPtrArray *texts)
{
  const gint64 end = g_get_monotonic_time () + option_minutes * 60 * G_USEC_PER_SEC;
  for (gint64 seed = option_seed; seed < option_seed + option_count; seed++) {
    g_autoptr (GRand) random = g_rand_new_with_seed_array (
        (const guint32[]){ (guint32) seed, (guint32) (seed >> 32) }, 2);
    const char *original = texts->pdata[(guint64) seed % texts->len];
    if (option_minutes > 0 && g_get_monotonic_time () >= end)
      break;
    const gboolean is_kept = seed < (gint64) texts->len;
    g_autofree char *text = is_kept ? g_strdup (original) : kernel_change (original, random);
    g_snprintf (current, sizeof current, "seed %" G_GINT64_FORMAT ":\n%s", seed, text);
    alarm (KERNEL_SECONDS);
    current_program[0] = 0;
    tally.n_texts++;
    g_autofree char *problem = run (text, is_kept, random);
    if (option_verbose)
      fprintf (stderr, "%s", current);
    if (problem == NULL)
      continue;
    fprintf (stderr, "%s%s\n", current, problem);
    if (++tally.n_failures >= MOST_FAILURES)
      break;
  }
  alarm (0);
}

static gboolean
open_place (Place *self, const char *name, GError **error)
{
  self->device = tiny_engine_get_device (name, error);
  for (guint i = 0; i < MAX_PARAMS && self->device != NULL; i++) {
    self->buffers[i] = tiny_buffer_new_host (self->device, guarded[i].pages, GUARDED_MAX_BYTES,
                                             NULL, NULL, error);
    if (self->buffers[i] == NULL)
      return FALSE;
  }
  return self->device != NULL;
}

/* (transfer full): the texts of @path, which are apart by empty lines */
static GPtrArray *
read_texts (const char *path, GError **error)
{
  g_autofree char *all = NULL;
  if (!g_file_get_contents (path, &all, NULL, error))
    return NULL;
  GPtrArray *texts = g_ptr_array_new_with_free_func (g_free);
  g_auto (GStrv) blocks = g_strsplit (all, "\n\n", -1);
  for (guint i = 1; blocks[i] != NULL; i++) {
    const char *line = strchr (blocks[i], '\n'); /* after its name */
    if (line != NULL)
      g_ptr_array_add (texts, g_strconcat (line + 1, "\n", NULL));
  }
  return texts;
}

static void
catch_signals (void)
{
  const int signals[] = { SIGSEGV, SIGABRT, SIGTRAP, SIGALRM, SIGBUS, SIGFPE, SIGILL };
  static char stack[1 << 16]; /* a stack that overflowed has no room for the handler */
  sigaltstack (&(stack_t){ .ss_sp = stack, .ss_size = sizeof stack }, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (signals); i++)
    sigaction (signals[i],
               &(struct sigaction){ .sa_handler = on_signal, .sa_flags = SA_ONSTACK }, NULL);
}

int
main (int argc, char *argv[])
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GOptionContext) context = g_option_context_new ("FILE");
  setlocale (LC_ALL, "");
  g_option_context_add_main_entries (context, entries, NULL);
  g_autoptr (GPtrArray) texts = NULL;
  if (!g_option_context_parse (context, &argc, &argv, &error)
      || (texts = read_texts (argc == 2 ? argv[1] : "", &error)) == NULL) {
    fprintf (stderr, "test-kernel-texts: %s\n", error->message);
    return 2;
  }
  tiny_env_set_int (TINY_ENV_NO_CACHE, 1);
  for (guint i = 0; i < MAX_PARAMS; i++)
    guarded_init (&guarded[i]);
  g_auto (GStrv) names
      = g_strsplit (option_devices ? option_devices : "CPU;CPU::x86_64,haswell", ";", -1);
  gboolean ok = open_place (&reference, "REF", &error);
  for (guint i = 0; names[i] != NULL && n_places < MAX_DEVICES && ok; i++)
    ok = open_place (&places[n_places++], names[i], &error);
  if (!ok) {
    printf ("skipped: %s\n", error->message);
    return EXIT_SKIP;
  }
  catch_signals ();
  run_all (texts);
  printf ("%" G_GUINT64_FORMAT " texts, %" G_GUINT64_FORMAT " accepted, %" G_GUINT64_FORMAT
          " of them long, %" G_GUINT64_FORMAT " without a program; %" G_GUINT64_FORMAT
          " runs, %" G_GUINT64_FORMAT
          " programs with optimisations by chance; outputs: %" G_GUINT64_FORMAT
          " compared to the bit, %" G_GUINT64_FORMAT " left open, %" G_GUINT64_FORMAT
          " stored to more than once; %u failures\n",
          tally.n_texts, tally.n_accepted, tally.n_long, tally.n_uncompiled, tally.n_runs,
          tally.n_opts, tally.n_exact, tally.n_open, tally.n_raced, tally.n_failures);
  /* Texts that nothing was compared of prove nothing. */
  const gboolean is_empty = tally.n_exact < tally.n_texts / 5;
  if (is_empty && tally.n_failures == 0)
    fprintf (stderr, "too few texts were compared\n");
  return tally.n_failures != 0 || is_empty;
}
