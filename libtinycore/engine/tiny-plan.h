/* SPDX-License-Identifier: MIT
 *
 * tiny-plan.h: a schedule whose kernels are compiled, and a list of launches ready to submit. */
#pragma once

#include "device/tiny-buffer.h"
#include "engine/tiny-executable.h"
#include "engine/tiny-runtime.h"
#include "schedule/tiny-schedule.h"

G_BEGIN_DECLS

/* Memory a launch touches. */
typedef struct {
  TinyBuffer *buffer;
  gint64 offset, n_bytes;
  gboolean is_temporary; /* of no meaning outside of the run */
} TinyBinding;

typedef struct TinyPlan TinyPlan;

/* Schedules @sink (as tiny_schedule_new(), which takes @graph) and compiles its kernels. @constants:
 * by slot, whether an input stays as it is from run to run; or NULL. */
TinyPlan *
tiny_plan_new (TinyGraph *graph, TinyNode *sink, const gboolean *constants, GError **error);
void tiny_plan_free (TinyPlan *self);

/* TRUE if @self, which was made without constants, is what would be made for these. */
gboolean tiny_plan_serves (const TinyPlan *self, const gboolean *constants);

/* Has @watcher called for each schedule that is made from now on, with what was asked about it (TinyVerdict); NULL: no more. For
 * tools, before any work is done. */
typedef void (*TinyPlanWatcher) (const TinySchedule *schedule,
                                 const GArray *verdicts,
                                 gpointer data);
void tiny_plan_set_watcher (TinyPlanWatcher watcher, gpointer data);

/* How many outputs it has: one of each root, or one a device; and which are those of root @i. */
guint tiny_plan_get_n_outputs (const TinyPlan *self);
TinySpread tiny_plan_get_spread (const TinyPlan *self, guint i);

/* Runs it on @inputs, by slot, with @variables, by number. out_outputs[i] (transfer full) is the memory of output i: new, or for
 * an ASSIGN the input's own. Nothing is returned on failure. */
gboolean tiny_plan_run (TinyPlan *self,
                        TinyBuffer *const *inputs,
                        const TinyBoundVariable *variables,
                        TinyBuffer **out_outputs,
                        GError **error);

/* Its schedule, and what runs item @i there (NULL: a copy); the plan's. */
const TinySchedule *tiny_plan_get_schedule (const TinyPlan *self);
const TinyExecutable *
tiny_plan_get_item (const TinyPlan *self, guint i, TinyDevice **out_device);

/* The plan that realising @roots would run, made if there is none yet; *@out_plan (transfer none) is NULL where nothing is
 * left to compute. Under the runtime's lock, as the next. */
gboolean
tiny_runtime_find_plan (TinyRoot *const *roots, guint n, TinyPlan **out_plan, GError **error);
/* All that lies under @root as text, with a PARAM for each BUFFER. */
char *tiny_runtime_print (const TinyRoot *root, GError **error);

/* ---- launches ---- */

/* Launches in order, with all that submitting them again needs. Holds references to its buffers, unless these are lent. */
typedef struct TinyLaunches TinyLaunches;

TinyLaunches *tiny_launches_new (void);
void tiny_launches_free (TinyLaunches *self);
/* @variables: as many as @executable has; or NULL where it has none. */
void tiny_launches_add_kernel (TinyLaunches *self,
                               TinyDevice *device,
                               TinyExecutable *executable,
                               const TinyBoundVariable *variables,
                               const TinyBinding *bindings,
                               guint n_bindings,
                               guint n_written);
/* The last that was added is a part of what it writes (TinyScheduleItem.is_part). */
void tiny_launches_mark_part (TinyLaunches *self);
/* Copies between devices. */
void
tiny_launches_add_copy (TinyLaunches *self, const TinyBinding *to, const TinyBinding *from);
/* For launches whose bindings were added without a buffer: binding i of them all is in @buffers[@which[i]], the caller's, until
 * this is called again. Both NULL: in none. */
void tiny_launches_lend (TinyLaunches *self, TinyBuffer *const *buffers, const guint *which);
/* Variable @i of launch @launch of such. */
void tiny_launches_set_variable (TinyLaunches *self,
                                 guint launch,
                                 guint i,
                                 const TinyBoundVariable *variable);
guint tiny_launches_get_n_kernels (TinyLaunches *self);
/* Every use of from[i] becomes one of to[i] from now on, all at once: a buffer may be in both. */
void tiny_launches_replace (TinyLaunches *self,
                            TinyBuffer *const *from,
                            TinyBuffer *const *to,
                            guint n);
/* Says which of @variables each variable of the launches is. FALSE: one of them, @out_other, is none of those. */
gboolean tiny_launches_number_variables (TinyLaunches *self,
                                         const TinyBoundVariable *variables,
                                         guint n,
                                         TinyBoundVariable *out_other);
/* From now on variable i of those has the value of @variables[i]. */
void tiny_launches_bind (TinyLaunches *self, const TinyBoundVariable *variables);
/* Of what is being recorded: how many roots there were before, see tiny_runtime_count_roots(). */
guint64 tiny_launches_get_n_roots (const TinyLaunches *self);
/* Likewise: who had memory before, by its first TinyBuffer; takes @owners. */
void tiny_launches_set_owners (TinyLaunches *self, GHashTable *owners);
TinyRoot *tiny_launches_get_owner (const TinyLaunches *self, TinyNode *memory);
/* Calls @function for each use of memory that outlives a run. */
typedef void (*TinyMemoryFunction) (TinyBuffer *buffer, gboolean is_written, gpointer data);
void tiny_launches_each_memory (TinyLaunches *self, TinyMemoryFunction function, gpointer data);
/* Adds to @out, a set of TinyBuffer, what they write and does not go with them. */
void tiny_launches_list_written (TinyLaunches *self, GHashTable *out);
/* Whether launches write in the memory of @buffer through another buffer than those of @except. */
gboolean tiny_launches_write (TinyLaunches *self,
                              TinyBuffer *buffer,
                              TinyBuffer *const *except,
                              guint n_except);
/* Copies all of @from to @to, as large and on the same device. */
gboolean
tiny_launches_copy (TinyLaunches *self, TinyBuffer *to, TinyBuffer *from, GError **error);
/* Appends all of @other. */
void tiny_launches_append (TinyLaunches *self, TinyLaunches *other);
/* Takes out the launches that would give the same again as long as nobody changes the buffers that
 * they read: not @inputs and nothing that launches of @self write. What they write is kept in memory
 * of its own. Returns them, or NULL where there are none; the rest wants them run once before. */
TinyLaunches *
tiny_launches_freeze (TinyLaunches *self, TinyBuffer *const *inputs, guint n_inputs);
/* A number that is another one after a buffer from outside was changed that @self reads. */
guint tiny_launches_get_source_version (TinyLaunches *self);
/* Runs them all. Allocates nothing after the first time. As long as they are among the first @n_unseen, whose results nobody
 * sees unless all goes well, the thread may be told to stop (base/interrupt-check.h). */
gboolean tiny_launches_submit (TinyLaunches *self, guint n_unseen, GError **error);
/* How many launches of a recording come before the first that writes what is more than temporary. */
guint tiny_launches_count_unseen (TinyLaunches *self);

/* Launch @i for those who watch: NULL for a copy. @out_ns: what it took the last time, once
 * tiny_launches_keep_times() was called. */
guint tiny_launches_get_n (TinyLaunches *self);
const TinyExecutable *
tiny_launches_get (TinyLaunches *self, guint i, TinyDevice **out_device, guint64 *out_ns);
void tiny_launches_keep_times (TinyLaunches *self);

/* What a recording is called with anew each time; stays the caller's. */
void tiny_launches_set_inputs (TinyLaunches *self, const GPtrArray *inputs);
/* Whether @buffer may be another one, or have another content, in the next run: one of the inputs, or
 * written so far. */
gboolean tiny_launches_changes (TinyLaunches *self, TinyBuffer *buffer);

/* The host reads or writes a tensor while this is recorded. */
void tiny_launches_touch (TinyLaunches *self);
gboolean tiny_launches_was_touched (TinyLaunches *self);

/* While not NULL, the launches of this thread's plan runs are appended here as well. */
TinyLaunches **tiny_launches_get_recorder (void);

/* The device of that name, opened on first use (transfer none). */
TinyDevice *tiny_engine_get_device (const char *name, GError **error);

/* How often a device that was lost was opened again: what knows devices by name looks anew then. */
guint tiny_engine_count_reopened (void);

/* Adds all devices that @names means, a range or a list with semicolons for example, to @out (transfer none). */
gboolean tiny_engine_add_devices (const char *names, GPtrArray *out, GError **error);

/* Whether @device is what tiny_engine_get_device() gives for its name. */
gboolean tiny_engine_owns_device (TinyDevice *device);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyPlan, tiny_plan_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyLaunches, tiny_launches_free)

G_END_DECLS
