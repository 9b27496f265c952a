/* SPDX-License-Identifier: MIT
 *
 * tiny-lanes.c: launches on several devices, side by side.
 *
 * A submission blocks until it is done, so what shall overlap needs threads: the caller works through
 * the first lane, threads from a pool through the others, each in the order of the list. A step is
 * what is submitted at once: neighbouring launches of one device, or a copy. Before it begins it waits
 * for the last step of each other lane that it depends on; what those depend on is over by then. All
 * waits are for earlier steps, so the earliest that is not done can always go on. */
#include "engine/tiny-lanes.h"

#include "base/tiny-fork.h"

enum { MAX_LANES = 32 }; /* devices beyond share the last */

typedef struct {
  guint first, end, lane;
  gint *waits; /* by lane: the number of a step, or -1 */
  gboolean is_done;
} Step;

struct TinyLanes {
  TinyLaunches *launches;
  GArray *steps; /* Step */
  TinyDevice *devices[MAX_LANES];
  guint n;
  /* While running. */
  GMutex lock;
  GCond changed;
  TinyLanesRun run;
  guint n_running; /* lanes */
  gboolean failed;
  GError *error;
};

typedef struct {
  TinyLanes *lanes;
  guint lane;
} Job;

/* ---- what waits for what ---- */
static guint
find_lane (TinyLanes *self, TinyDevice *device)
{
  guint lane = 0;
  while (lane < self->n && self->devices[lane] != device)
    lane++;
  if (lane == self->n && self->n < MAX_LANES)
    self->devices[self->n++] = device;
  return MIN (lane, MAX_LANES - 1);
}

static void
list_steps (TinyLanes *self)
{
  const GArray *launches = self->launches->launches;
  for (guint i = 0; i < launches->len;) {
    TinyDevice *device = g_array_index (launches, Launch, i).device;
    guint end = i + 1;
    while (device != NULL && end < launches->len
           && g_array_index (launches, Launch, end).device == device)
      end++;
    Step step = { .first = i, .end = end, .lane = find_lane (self, device) };
    g_array_append_val (self->steps, step);
    i = end;
  }
}

static const TinyBinding *
get_bindings (const TinyLanes *self, const Launch *launch)
{
  return &g_array_index (self->launches->bindings, TinyBinding, launch->first_binding);
}

static gboolean
launches_meet (const TinyLanes *self, const Launch *a, const Launch *b)
{
  const TinyBinding *of_a = get_bindings (self, a), *of_b = get_bindings (self, b);
  for (guint i = 0; i < a->n_bindings; i++)
    for (guint j = 0; j < b->n_bindings; j++)
      if ((i < a->n_written || j < b->n_written) && tiny_bindings_overlap (&of_a[i], &of_b[j]))
        return TRUE;
  return FALSE;
}

static gboolean
steps_meet (const TinyLanes *self, const Step *a, const Step *b)
{
  const Launch *launches = &g_array_index (self->launches->launches, Launch, 0);
  for (guint i = a->first; i < a->end; i++)
    for (guint j = b->first; j < b->end; j++)
      if (launches_meet (self, &launches[i], &launches[j]))
        return TRUE;
  return FALSE;
}

/* The last step before number @at of each lane that it has to wait for. */
static void
find_waits (TinyLanes *self, guint at)
{
  Step *step = &g_array_index (self->steps, Step, at);
  step->waits = g_new (gint, self->n);
  for (guint lane = 0; lane < self->n; lane++)
    step->waits[lane] = -1;
  for (gint i = (gint) at - 1; i >= 0; i--) {
    const Step *before = &g_array_index (self->steps, Step, i);
    if (before->lane != step->lane && step->waits[before->lane] < 0
        && steps_meet (self, before, step))
      step->waits[before->lane] = i;
  }
}

static void
step_clear (gpointer data)
{
  g_free (((Step *) data)->waits);
}

TinyLanes *
tiny_lanes_new (TinyLaunches *launches)
{
  TinyLanes *self = g_new0 (TinyLanes, 1);
  self->launches = launches;
  self->steps = g_array_new (FALSE, FALSE, sizeof (Step));
  g_array_set_clear_func (self->steps, step_clear);
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  list_steps (self);
  for (guint i = 0; i < self->steps->len; i++)
    find_waits (self, i);
  return self;
}

void
tiny_lanes_free (TinyLanes *self)
{
  if (self == NULL)
    return;
  g_array_unref (self->steps);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self);
}

guint
tiny_lanes_get_n (TinyLanes *self)
{
  return self->n;
}

/* ---- running; all under the lock but the steps themselves ---- */
static gboolean
must_wait (const TinyLanes *self, const Step *step)
{
  for (guint lane = 0; lane < self->n; lane++)
    if (step->waits[lane] >= 0 && !g_array_index (self->steps, Step, step->waits[lane]).is_done)
      return TRUE;
  return FALSE;
}

static void
run_step (TinyLanes *self, Step *step)
{
  GError *error = NULL;
  while (!self->failed && must_wait (self, step))
    g_cond_wait (&self->changed, &self->lock);
  if (self->failed)
    return;
  g_mutex_unlock (&self->lock);
  gboolean good = self->run (self->launches, step->first, step->end, &error);
  g_mutex_lock (&self->lock);
  step->is_done = good;
  if (!good && !self->failed)
    self->error = error;
  else
    g_clear_error (&error);
  self->failed = self->failed || !good;
  g_cond_broadcast (&self->changed);
}

static void
run_lane (gpointer data, gpointer unused)
{
  Job *job = data;
  TinyLanes *self = job->lanes;
  const guint lane = job->lane;
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->steps->len; i++) {
    Step *step = &g_array_index (self->steps, Step, i);
    if (step->lane == lane)
      run_step (self, step);
  }
  self->n_running--;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock); /* the last touch: who waits may free it */
}

static gpointer
run_thread (gpointer job)
{
  run_lane (job, NULL);
  return NULL;
}

/* As many threads as there are lanes to run: one that had to wait for a thread might be what the
 * others wait for. After a fork GLib would wait for those of the parent: then each job gets one of its own. */
static void
start_lane (Job *job)
{
  static gsize threads = 0;
  if (tiny_fork_count () > 0) {
    g_thread_unref (g_thread_new ("tiny-lane", run_thread, job));
    return;
  }
  if (g_once_init_enter (&threads))
    g_once_init_leave (&threads, (gsize) g_thread_pool_new (run_lane, NULL, -1, FALSE, NULL));
  g_thread_pool_push ((GThreadPool *) threads, job, NULL);
}

gboolean
tiny_lanes_submit (TinyLanes *self, TinyLanesRun run, GError **error)
{
  Job jobs[MAX_LANES];
  if (self->n == 0) /* a view of an input, say, takes no launch */
    return TRUE;
  self->run = run;
  self->failed = FALSE;
  self->n_running = self->n;
  for (guint i = 0; i < self->steps->len; i++)
    g_array_index (self->steps, Step, i).is_done = FALSE;
  for (guint lane = 0; lane < self->n; lane++)
    jobs[lane] = (Job){ self, lane };
  for (guint lane = 1; lane < self->n; lane++)
    start_lane (&jobs[lane]);
  run_lane (&jobs[0], NULL);
  g_mutex_lock (&self->lock);
  while (self->n_running > 0)
    g_cond_wait (&self->changed, &self->lock);
  g_mutex_unlock (&self->lock);
  if (self->failed)
    g_propagate_error (error, g_steal_pointer (&self->error));
  return !self->failed;
}
