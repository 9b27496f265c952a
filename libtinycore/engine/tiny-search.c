/* SPDX-License-Identifier: MIT
 *
 * tiny-search.c: BEAM=n: lists of optimisations for one kernel, tried on the device.
 *
 * The beam holds the best lists so far; it begins with the heuristic's and with none. Each round
 * makes every list that is one step from one of them (codegen/tiny-opt-space.h), compiles them side
 * by side, and runs them one after the other while nothing else runs; it ends when a round brings
 * nothing faster or the time is over. The last word has a run-off of the best against the
 * heuristic's program in turns.
 *
 * A compiler cannot be stopped from outside, and what is stopped has cost its time. So what would take
 * too long is not begun: a program whose compilation would, going by its length and the heuristic's; a
 * launch that would, going by a slice of its grid, and that slice going by the list it came from. What
 * takes too long all the same, or crashes, does so in a process of its own (tiny-trial-host.h). */
#include "engine/tiny-search.h"

#include <stdlib.h>
#include <string.h>

#include "base/interrupt-check.h"
#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "base/tiny-parallel.h"
#include "codegen/tiny-opt-space.h"
#include "device/tiny-watch.h"
#include "engine/tiny-debug.h"
#include "engine/tiny-trial-host.h"

enum {
  CHUNK = 6,       /* lists compiled together, per processor */
  N_FINALISTS = 4, /* besides the heuristic */
  FINAL_RUNS = 15,
  STEP_SLOWDOWN = 32, /* what one step may cost at most, for the guess before a slice */
  NONE_SLOWDOWN = 1000,
};
#define SLICE_FACTOR 3.0  /* a slice so much slower than the best ends a candidate */
#define ENOUGH       0.98 /* less than this part of the heuristic's time is faster */
#define PROGRESS     0.99 /* less than this part of the best before is progress */
#define SEARCH_SHARE 0.9  /* of the time; the rest is the run-off's */

typedef struct Candidate Candidate;
struct Candidate {
  char *opts;      /* as applied */
  gint64 guess_ns; /* that it takes at most, before it has run */
  guint64 ns;      /* the least of its runs; 0: not run */
  gboolean expanded;
  TinyLinearProgram *linear; /* until it is compiled */
  TinyCode code;
  guint program; /* its number on the trial */
};

typedef struct {
  TinyDevice *device;
  TinyNode *kernel;
  const TinySearchOptions *options;
  TinySearchResult *result;
  const char *name;
  gint64 start_ns, deadline_ns;
  TinyOptSpace *space;
  TinyTrialHost *trial;
  GMutex lock;       /* of seen and of the result's counters while threads compile */
  GHashTable *seen;  /* digests of linear programs */
  GHashTable *lists; /* texts that were made */
  GPtrArray *beam;   /* Candidate, the fastest first */
  Candidate *heuristic;
  double ns_per_instr; /* of compiling */
  gint is_stopped;     /* atomic: the caller's thread is to stop … */
  GError *stopped;     /* … for this reason, which that thread alone touches */
} Search;

TinySearchOptions
tiny_search_get_options (void)
{
  return (TinySearchOptions){
    .beam = (guint) MAX (tiny_env_get_int (TINY_ENV_BEAM), 0),
    .seconds = MAX (tiny_env_get_int (TINY_ENV_BEAM_SECONDS), 1),
    .timeout_ms = MAX (tiny_env_get_int (TINY_ENV_BEAM_TIMEOUT), 1),
  };
}

void
tiny_search_result_clear (TinySearchResult *self)
{
  g_clear_pointer (&self->opts, g_free);
}

static Candidate *
candidate_new (const char *opts, gint64 guess_ns)
{
  Candidate *self = g_new0 (Candidate, 1);
  self->opts = g_strdup (opts);
  self->guess_ns = guess_ns;
  return self;
}

static void
candidate_free (gpointer data)
{
  Candidate *self = data;
  g_clear_pointer (&self->linear, tiny_linear_program_free);
  tiny_code_clear (&self->code);
  g_free (self->opts);
  g_free (self);
}

static void
count (Search *self, guint *counter)
{
  g_mutex_lock (&self->lock);
  (*counter)++;
  g_mutex_unlock (&self->lock);
}

static gboolean
is_over (const Search *self)
{
  return g_atomic_int_get (&self->is_stopped) || tiny_debug_now_ns () >= self->deadline_ns;
}

/* Takes @error where it says that the thread is to stop, which is not the candidate's fault. */
static void
note_stop (Search *self, GError **error)
{
  if (*error == NULL || self->stopped != NULL || !tiny_interrupt_is_error (*error))
    return;
  self->stopped = g_steal_pointer (error);
  g_atomic_int_set (&self->is_stopped, TRUE);
}

static void
ask_to_stop (Search *self)
{
  g_autoptr (GError) error = NULL;
  if (self->stopped == NULL && !tiny_interrupt_check (&error))
    note_stop (self, &error);
}

static void
show_failure (const Search *self, const Candidate *candidate, const GError *error)
{
  if (error != NULL && TINY_DEBUG (2))
    g_printerr ("search %s: %s: %s\n", self->name, candidate->opts, error->message);
}

/* ---- making programs ---- */

/* The linear program of a list; NULL opts: by heuristic. */
static TinyLinearProgram *
make_linear (Search *self, const char *opts, GError **error)
{
  guint n = 0;
  g_autofree TinyOpt *list = opts ? tiny_opts_from_string (opts, &n, error) : NULL;
  if (opts != NULL && list == NULL)
    return NULL;
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  return tiny_codegen_compile (graph, tiny_graph_import (graph, self->kernel),
                               tiny_device_get_target (self->device), list, n, error);
}

/* TRUE the first time a linear program is seen. */
static gboolean
is_new_program (Search *self, const TinyLinearProgram *program)
{
  g_autofree char *text = tiny_linear_to_string (&program->linear);
  char *digest = g_compute_checksum_for_string (G_CHECKSUM_SHA256, text, -1);
  g_mutex_lock (&self->lock);
  gboolean added = g_hash_table_add (self->seen, digest);
  g_mutex_unlock (&self->lock);
  return added;
}

static gboolean
is_too_long (const Search *self, const TinyLinearProgram *program)
{
  double ns = self->ns_per_instr * (double) program->linear.n_instrs;
  return ns > self->options->timeout_ms * 1e6;
}

/* On any thread: from a list to a binary. What is left out has none. */
static void
prepare (gpointer data, gpointer user_data)
{
  Candidate *candidate = data;
  Search *self = user_data;
  if (is_over (self))
    return;
  g_auto (TinyUntrusted) untrusted
      = tiny_watch_begin_untrusted (tiny_node_is_untrusted (self->kernel));
  count (self, &self->result->n_tried);
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyLinearProgram) program = make_linear (self, candidate->opts, &error);
  if (program == NULL && tiny_interrupt_is_error (error)) {
    note_stop (self, &error); /* other threads are told nothing */
  } else if (program == NULL) {
    count (self, &self->result->n_failed);
  } else if (!is_new_program (self, program)) {
    count (self, &self->result->n_same);
  } else if (is_too_long (self, program)) {
    count (self, &self->result->n_slow);
  } else {
    tiny_code_head_fill (&candidate->code.head, program);
    candidate->code.binary = tiny_code_compile (self->device, program, NULL, &error);
    if (candidate->code.binary == NULL)
      count (self, &self->result->n_failed);
  }
  show_failure (self, candidate, error);
}

static gboolean
run (Search *self, Candidate *candidate, gboolean slice, guint64 *out_ns, GError **error)
{
  return tiny_trial_host_run (self->trial, candidate->program, slice, out_ns, error);
}

/* ---- one candidate on the device ---- */

/* FALSE when a whole run would take too long, or would not be worth it. */
static gboolean
try_slice (Search *self, Candidate *candidate, GError **error)
{
  guint32 n_slices = tiny_trial_count_slices (candidate->code.head.grid);
  double threads = MAX (tiny_device_get_target (self->device)->n_threads, 1);
  double timeout = self->options->timeout_ms * 1e6;
  guint64 ns;
  if ((double) candidate->guess_ns * threads / n_slices > timeout)
    return FALSE;
  if (n_slices < 2 * threads)
    return TRUE;
  if (!run (self, candidate, TRUE, &ns, error))
    return FALSE;
  double whole = (double) ns * n_slices / threads;
  const Candidate *best = self->beam->pdata[0];
  /* A slice of a few microseconds says more about launching than about the kernel. */
  return whole <= timeout && (ns < 20000 || whole <= SLICE_FACTOR * (double) best->ns);
}

/* The least of some runs, as long as it may still become the best. */
static gboolean
time_runs (Search *self, Candidate *candidate, guint64 first, GError **error)
{
  const Candidate *best = self->beam->pdata[0];
  return tiny_trial_host_time (self->trial, candidate->program, first, best->ns, &candidate->ns,
                               error);
}

/* Runs @candidate, compares and times it; FALSE: it is out. */
static gboolean
try_candidate (Search *self, Candidate *candidate, GError **error)
{
  TinySearchResult *result = self->result;
  const Candidate *best = self->beam->pdata[0];
  guint64 first;
  g_autofree char *why = NULL;
  if (!tiny_trial_host_add (self->trial, &candidate->code, &candidate->program, error))
    return FALSE;
  if (!try_slice (self, candidate, error)) {
    result->n_slow += *error == NULL;
    return FALSE;
  }
  if (!tiny_trial_host_reset (self->trial, error)
      || !run (self, candidate, FALSE, &first, error))
    return FALSE;
  result->n_timed++;
  if ((double) first > self->options->timeout_ms * 1e6) {
    result->n_slow++;
    return FALSE;
  }
  if ((double) first > 2 * SLICE_FACTOR * (double) best->ns && first > 100000)
    return FALSE;
  if (!tiny_trial_host_compare_outputs (self->trial, &why, error)) {
    if (why != NULL) {
      result->n_wrong++;
      g_warning ("search: kernel %s with %s computes something else and is not used: %s",
                 self->name, candidate->opts, why);
    }
    return FALSE;
  }
  return tiny_trial_host_reset (self->trial, error)
         && time_runs (self, candidate, first, error);
}

static int
compare_candidates (gconstpointer a, gconstpointer b)
{
  const Candidate *x = *(Candidate *const *) a, *y = *(Candidate *const *) b;
  guint64 x_ns = x->ns ? x->ns : G_MAXUINT64, y_ns = y->ns ? y->ns : G_MAXUINT64;
  return x_ns < y_ns ? -1 : x_ns > y_ns;
}

/* Puts what ran into the beam, fastest first; takes the candidates. */
static void
try_chunk (Search *self, GPtrArray *chunk)
{
  tiny_parallel_run (prepare, chunk->pdata, chunk->len, self);
  for (guint i = 0; i < chunk->len; i++) {
    Candidate *candidate = chunk->pdata[i];
    g_autoptr (GError) error = NULL;
    ask_to_stop (self);
    if (candidate->code.binary != NULL && !is_over (self)
        && try_candidate (self, candidate, &error)) {
      g_ptr_array_add (self->beam, candidate);
      g_ptr_array_sort (self->beam, compare_candidates);
      continue;
    }
    if (g_error_matches (error, TINY_ERROR, TINY_ERROR_TIMEOUT)) {
      if (++self->result->n_stopped == TINY_TRIAL_MAX_STOPPED)
        self->deadline_ns = 0;
      g_warning ("search: kernel %s with %s is not used: %s", self->name, candidate->opts,
                 error->message);
    } else {
      self->result->n_failed += error != NULL;
      show_failure (self, candidate, error);
    }
    candidate_free (candidate);
  }
}

/* ---- rounds ---- */

/* The lists next to those of the beam, a few from each parent in turn. */
static GPtrArray *
expand_beam (Search *self)
{
  GPtrArray *out = g_ptr_array_new_with_free_func (candidate_free);
  GPtrArray *parents = g_ptr_array_new ();
  g_autoptr (GPtrArray) lists = g_ptr_array_new_with_free_func ((GDestroyNotify) g_strfreev);
  guint longest = 0;
  for (guint i = 0; i < self->beam->len && parents->len < self->options->beam; i++) {
    Candidate *parent = self->beam->pdata[i];
    if (parent->expanded)
      continue;
    parent->expanded = TRUE;
    char **near = tiny_opt_space_get_neighbours (self->space, parent->opts);
    longest = MAX (longest, g_strv_length (near));
    g_ptr_array_add (parents, parent);
    g_ptr_array_add (lists, near);
  }
  for (guint k = 0; k < longest; k++)
    for (guint p = 0; p < parents->len; p++) {
      char **near = lists->pdata[p];
      const Candidate *parent = parents->pdata[p];
      if (k >= g_strv_length (near) || !g_hash_table_add (self->lists, g_strdup (near[k])))
        continue;
      gint64 from = parent->ns ? (gint64) parent->ns : parent->guess_ns;
      g_ptr_array_add (out, candidate_new (near[k], from * STEP_SLOWDOWN));
    }
  g_ptr_array_unref (parents);
  return out;
}

/* All but the best are forgotten, with what they hold; the heuristic stays. */
static void
trim_beam (Search *self)
{
  guint keep = MAX (self->options->beam, N_FINALISTS);
  for (guint i = self->beam->len; i-- > keep;)
    if (self->beam->pdata[i] != self->heuristic)
      g_ptr_array_remove_index (self->beam, i);
}

static void
show_round (const Search *self, guint round)
{
  const Candidate *best = self->beam->pdata[0];
  if (TINY_DEBUG (2))
    g_printerr (
        "search %s: round %u, %.1f s: %u lists, %u timed, best %.2f us (heuristic %.2f us) "
        "%s\n",
        self->name, round, (double) (tiny_debug_now_ns () - self->start_ns) * 1e-9,
        self->result->n_tried, self->result->n_timed, (double) best->ns * 1e-3,
        (double) self->heuristic->ns * 1e-3, best->opts);
}

static void
run_rounds (Search *self)
{
  for (guint round = 1; !is_over (self); round++) {
    guint64 before = ((Candidate *) self->beam->pdata[0])->ns;
    g_autoptr (GPtrArray) next = expand_beam (self);
    guint n_chunk = CHUNK * g_get_num_processors ();
    if (next->len == 0)
      break;
    while (next->len > 0 && !is_over (self)) {
      g_autoptr (GPtrArray) chunk = g_ptr_array_new ();
      for (guint n = MIN (n_chunk, next->len); n > 0; n--)
        g_ptr_array_add (chunk, g_ptr_array_steal_index (next, 0));
      try_chunk (self, chunk);
    }
    trim_beam (self);
    show_round (self, round);
    if ((double) ((Candidate *) self->beam->pdata[0])->ns > PROGRESS * (double) before)
      break;
  }
}

/* ---- the run-off ---- */
static int
compare_ns (gconstpointer a, gconstpointer b)
{
  guint64 x = *(const guint64 *) a, y = *(const guint64 *) b;
  return x < y ? -1 : x > y;
}

/* The best few and the heuristic in turns; what has the least median wins, if it is clearly less
 * than the heuristic's. */
static gboolean
run_off (Search *self, GError **error)
{
  TinySearchResult *result = self->result;
  Candidate *finalists[N_FINALISTS + 1] = { self->heuristic };
  guint64 ns[N_FINALISTS + 1][FINAL_RUNS];
  guint n = 1, best = 0;
  for (guint i = 0; i < self->beam->len && n <= N_FINALISTS; i++) {
    Candidate *candidate = self->beam->pdata[i];
    if (candidate != self->heuristic && candidate->ns > 0
        && candidate->ns < self->heuristic->ns)
      finalists[n++] = candidate;
  }
  if (!tiny_trial_host_reset (self->trial, error))
    return FALSE;
  double share = self->options->seconds * (1 - SEARCH_SHARE) * 1e9;
  guint n_runs = (guint) CLAMP (share / (double) (self->heuristic->ns * n), 3, FINAL_RUNS);
  for (guint r = 0; r < n_runs; r++)
    for (guint i = 0; i < n; i++) {
      if (!tiny_interrupt_check (error))
        return FALSE;
      if (r > 0 && ns[i][r - 1] == G_MAXUINT64)
        ns[i][r] = G_MAXUINT64; /* failed before */
      else if (!tiny_trial_host_run_warm (self->trial, finalists[i]->program, &ns[i][r],
                                          i == 0 ? error : NULL)) {
        ns[i][r] = G_MAXUINT64;
        if (i == 0)
          return FALSE;
      }
    }
  for (guint i = 0; i < n; i++) {
    qsort (ns[i], n_runs, sizeof ns[i][0], compare_ns);
    if (ns[i][n_runs / 2] < ns[best][n_runs / 2])
      best = i;
  }
  if ((double) ns[best][n_runs / 2] >= ENOUGH * (double) ns[0][n_runs / 2])
    best = 0;
  result->opts = g_strdup (finalists[best]->opts);
  result->is_heuristic = best == 0;
  result->ns_heuristic = ns[0][n_runs / 2];
  result->ns_best = ns[best][n_runs / 2];
  return TRUE;
}

/* ---- all of it ---- */

/* The heuristic's program: compiled, run, its outputs kept, timed. */
static gboolean
set_up (Search *self, GError **error)
{
  g_autoptr (TinyLinearProgram) program = make_linear (self, NULL, error);
  if (program == NULL)
    return FALSE;
  const TinyLinear *linear = &program->linear;
  if (linear->n_variables > 0) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "kernel %s has variables, for which there are no values to try", linear->name);
    return FALSE;
  }
  is_new_program (self, program);
  Candidate *first = candidate_new (program->opts[0] ? program->opts : "none", 0);
  g_ptr_array_add (self->beam, first);
  self->heuristic = first;
  g_hash_table_add (self->lists, g_strdup (first->opts));
  tiny_code_head_fill (&first->code.head, program);
  gint64 start = tiny_debug_now_ns ();
  first->code.binary = tiny_code_compile (self->device, program, NULL, error);
  self->ns_per_instr
      = (double) (tiny_debug_now_ns () - start) / (double) MAX (linear->n_instrs, 64);
  self->name = first->code.head.name;
  if (first->code.binary == NULL)
    return FALSE;
  self->trial = tiny_trial_host_new (self->device, self->kernel, linear->params,
                                     linear->n_params, self->options->timeout_ms, error);
  self->space = tiny_opt_space_new (self->kernel, tiny_device_get_target (self->device), error);
  if (self->trial == NULL || self->space == NULL
      || !tiny_trial_host_add (self->trial, &first->code, &first->program, error)
      || !tiny_trial_host_reset (self->trial, error)
      || !run (self, first, FALSE, &first->ns, error)
      || !tiny_trial_host_keep_outputs (self->trial, error)
      || !tiny_trial_host_reset (self->trial, error))
    return FALSE;
  return time_runs (self, first, first->ns, error);
}

static void
add_none (Search *self)
{
  if (!g_hash_table_add (self->lists, g_strdup ("none")))
    return;
  g_autoptr (GPtrArray) chunk = g_ptr_array_new ();
  Candidate *none = candidate_new ("none", (gint64) self->heuristic->ns * NONE_SLOWDOWN);
  double worst
      = (double) none->guess_ns * MAX (tiny_device_get_target (self->device)->n_threads, 1);
  if (worst > self->options->timeout_ms * 1e6) {
    g_ptr_array_add (self->beam, none); /* it is not run, but what is near it is */
    return;
  }
  g_ptr_array_add (chunk, none);
  try_chunk (self, chunk);
}

gboolean
tiny_search_run (TinyDevice *device,
                 TinyNode *kernel,
                 const TinySearchOptions *options,
                 TinySearchResult *out,
                 GError **error)
{
  g_return_val_if_fail (options->beam > 0, FALSE);
  g_auto (TinyUntrusted) untrusted
      = tiny_watch_begin_untrusted (tiny_node_is_untrusted (kernel));
  gint64 now = tiny_debug_now_ns ();
  Search self = { .device = device,
                  .kernel = kernel,
                  .options = options,
                  .result = out,
                  .start_ns = now,
                  .deadline_ns = now + (gint64) (options->seconds * SEARCH_SHARE * 1e9),
                  .seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
                  .lists = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
                  .beam = g_ptr_array_new_with_free_func (candidate_free) };
  *out = (TinySearchResult){ 0 };
  g_mutex_init (&self.lock);
  gboolean good = set_up (&self, error);
  if (good) {
    add_none (&self);
    run_rounds (&self);
    good = self.stopped == NULL && run_off (&self, error);
    if (self.stopped != NULL)
      g_propagate_error (error, self.stopped);
  }
  if (good && TINY_DEBUG (2))
    g_printerr (
        "search %s: %s: %.2f us, heuristic %.2f us; %u lists, %u the same, %u timed, %u "
        "too slow, %u stopped, %u failed, %u wrong, %.1f s\n",
        self.name, out->opts, (double) out->ns_best * 1e-3, (double) out->ns_heuristic * 1e-3,
        out->n_tried, out->n_same, out->n_timed, out->n_slow, out->n_stopped, out->n_failed,
        out->n_wrong, (double) (tiny_debug_now_ns () - now) * 1e-9);
  g_clear_pointer (&self.trial, tiny_trial_host_free);
  g_clear_pointer (&self.space, tiny_opt_space_free);
  g_ptr_array_unref (self.beam);
  g_hash_table_unref (self.seen);
  g_hash_table_unref (self.lists);
  g_mutex_clear (&self.lock);
  return good;
}
