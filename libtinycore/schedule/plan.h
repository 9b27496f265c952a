/* SPDX-License-Identifier: MIT
 *
 * plan.h: what the scheduler's passes share while one schedule is being made.
 *
 * Passes run in the order of their declarations here; see README.md for what each is for. */
#pragma once

#include "ir/tiny-node-numbers.h"
#include "ir/tiny-shape.h"
#include "schedule/affine.h"
#include "schedule/tiny-schedule.h"
#include "schedule/weights.h"

G_BEGIN_DECLS

enum { SCHEDULE_MAX_RANK = 32 };
#define SCHEDULE_NO_BUFFER G_MAXUINT

/* A value that is kept in memory, written by one kernel or copy; where a program's kernel leaves elements out, by zeros
 * before. */
typedef struct {
  TinyNode *node;
  const char *device;
  const TinyInts *order; /* order[i]: the axis stored i-th, outermost first; NULL: row-major */
  guint buffer;          /* in Plan.buffers, or SCHEDULE_NO_BUFFER */
  gboolean is_copied;    /* to another device: must be row-major */
  gboolean keeps_axes;   /* its kernel has a loop for each axis, as recognise.h wants it */
  const char *why;       /* it is stored, in words */
  double cost_stored,
      cost_again; /* where that was weighed, in ScheduleWeights' units; else 0 */
} Stage;

/* Of an item: a kernel that a program wrote (custom.c). It is a KERNEL in the schedule that comes of
 * the plan, but none for the passes here: it keeps to none of their laws. */
#define SCHEDULE_CUSTOM ((TinyScheduleItemKind) 2)

/* A kernel or copy before it is ordered. */
typedef struct {
  TinyScheduleItemKind kind;
  TinyNode *kernel;
  const char *device;
  guint n_buffers, n_written;
  guint *buffers;                  /* in the plan's arena */
  gboolean is_part;                /* see TinyScheduleItem */
  Stage *stage;                    /* that it computes, or NULL */
  const TinyOperation *operation;  /* that a unit computes instead of the kernel, or NULL */
  gboolean reads_target_elsewhere; /* reads buffers[0] at other places than it writes */
  guint n_waits;                   /* buffers that are to be written before, … */
  guint *waits;                    /* … and are not read (AFTER) */
} PlanItem;

/* How many of @node's sources it computes with; others only have to be there before. */
static inline guint
schedule_count_values (const TinyNode *node)
{
  return node->op == TINY_OP_AFTER ? 1 : node->n_sources;
}

typedef struct KnownKernels KnownKernels; /* known-kernels.h */

typedef struct {
  TinyGraph *graph;
  TinyArena *arena;
  AffinePool affines;
  TinyNodeMap nodes_of; /* of a kernel: see schedule_list_nodes() */
  GPtrArray *lists;     /* the lists that are there */
  TinyNodeMap works;    /* of a kernel: what work.c measured */
  TinyNodeMap detours;  /* of a kernel: what schedule_wants_detour() said */
  KnownKernels *kernels;
  guint n_roots;
  TinyNode **roots;   /* the values */
  GPtrArray *order;   /* see schedule_list_graph() */
  GPtrArray *ordered; /* the roots that it is of */
  TinyNode **targets; /* the PARAM that root i is assigned to, or NULL */
  guint n_inputs;
  GArray *buffers;   /* TinyScheduleBuffer; the inputs first. A later one of kind INPUT is that
                        input's memory after its ASSIGN */
  GPtrArray *stages; /* Stage, sources before users */
  TinyNodeMap stage_of;
  TinyNodeNumbers devices; /* of each node, see devices.c */
  GPtrArray *device_names; /* interned, by number */
  TinyNodeMap recomputed;  /* nodes that are not stored where they otherwise would be */
  TinyNodeMap repeated; /* axes along which they are read again, as bits, and one (layout.c) */
  GArray *items;        /* PlanItem */
  GArray *log;          /* ScheduleLogEntry, see constants.h */
  guint *outputs;       /* of each root: its buffer */
  TinySpread *spreads;  /* of each that was asked for, where any is on several devices */
  guint n_spreads;
  const char *only_device; /* when the graph speaks of a single one */
  TinyScheduleOptions options;
  GError *stopped; /* see schedule_goes_on() */
} Plan;

/* tiny-schedule.c: an empty plan. The graph and the arena are the caller's. */
void schedule_plan_init (Plan *self,
                         TinyGraph *graph,
                         TinyArena *arena,
                         const TinyScheduleOptions *options);
void schedule_plan_clear (Plan *self);

/* multi.c: @sink with a node for each device of what is on several; fills @spreads. NULL: an error. */
TinyNode *schedule_take_apart (Plan *plan, TinyNode *sink, GError **error);

/* devices.c: fills @devices and makes the inputs' buffers; fails where an op mixes devices. */
gboolean schedule_check_devices (Plan *plan, TinyNode *sink, GError **error);
/* The device that computes @node, or NULL where nothing below says. */
const char *schedule_get_device (Plan *plan, TinyNode *node);

/* All nodes under @roots, sources before users, each at its place; the plan's own, until it is asked for again. Made anew
 * where there are other roots than the last time. */
GPtrArray *schedule_list_under (Plan *plan, TinyNode *const *roots, guint n_roots);
/* The same of the plan's roots as they are now. */
GPtrArray *schedule_list_graph (Plan *plan);

/* @kernel and what it is made of, sources before users; the plan's own. */
const GPtrArray *schedule_list_nodes (Plan *plan, TinyNode *kernel);

/* What is known of @device (NULL: nothing). */
ScheduleMachine schedule_get_machine (Plan *plan, const char *device);

/* custom.c: whether all KERNELs are kernels, over what they say they are. */
gboolean schedule_check_customs (Plan *plan, GError **error);
/* KERNEL @node over memory for each of @sources. */
TinyNode *schedule_clean_custom (Plan *plan, TinyNode *node, TinyNode *const *sources);
/* The item that computes KERNEL @stage and the others of its call; FALSE when there is one already. */
gboolean schedule_lower_custom (Plan *plan, Stage *stage, PlanItem *out_item);
/* The item that fills buffer @output of @custom before it with zeros; FALSE where it stores each element itself. */
gboolean
schedule_lower_zeros (Plan *plan, const PlanItem *custom, guint output, PlanItem *out_item);

/* pass-canonical.c: rewrites plan->roots. */
void schedule_canonicalize (Plan *plan);
/* Asks at some of @i, which counts what a pass has done, whether the thread is to stop: FALSE, then the pass returns at
 * once, and scheduling with plan->stopped. Claims, which run a pass inside of theirs, are not asked. */
gboolean schedule_goes_on (Plan *plan, guint i);

/* roots.c: what is a root but for movement is read from there; rewrites plan->roots. */
void schedule_share_roots (Plan *plan);

/* split-reduce.c: large reductions with few results become two; rewrites plan->roots. */
void schedule_split_reduces (Plan *plan);

/* recompute.c: fills @recomputed with what is large beside what it is made from; whether there is
 * any. */
gboolean schedule_find_recomputed (Plan *plan);
/* Whether this layout computes such values anew. */
static inline gboolean
schedule_recomputes (const Plan *plan)
{
  return plan->recomputed.size > 0;
}

/* fusion.c: fills @stages and @stage_of. */
void schedule_choose_stages (Plan *plan);

/* layout.c: fills each stage's @order. */
void schedule_choose_layouts (Plan *plan);
/* Lets @stage only put in order what a new stage, which is returned, computes; NULL: no use. */
Stage *schedule_detour_stage (Plan *plan, Stage *stage);

/* indexing.c: the kernel that computes @stage into its buffer. Returns FALSE when there is nothing
 * to run. */
gboolean schedule_lower_stage (Plan *plan, Stage *stage, PlanItem *out_item);
/* A kernel that copies all of buffer @source to buffer @target. */
PlanItem schedule_copy_kernel (Plan *plan, guint target, guint source);

/* order.c: what assigns into inputs while others still read them gets a temporary and a late copy. */
gboolean schedule_resolve_hazards (Plan *plan, GError **error);
/* Puts plan->items in an order in which every read sees what it should, @is_thrifty: that holds little memory. Returns the
 * number that could not be placed, from index n - that number on. */
guint schedule_order_items (Plan *plan, gboolean is_thrifty);

/* Adds the buffers of what is stored of the sources that @after waits for, or below them. */
void schedule_add_waits (Plan *plan, TinyNode *after, GArray *buffers);

/* Of each item: the numbers of those that must run before it (GArray of guint; the caller frees). */
GArray **schedule_find_waits (Plan *plan);

/* packing.c: operands of contractions that are read across memory get a packed copy first. */
void schedule_pack_operands (Plan *plan);
/* True if @item is a contraction that would gather an operand, and packing does not help, or leaves so many lanes empty
 * along what it stores that it costs less to compute it with vectors along another axis, and to put it in order after. */
gboolean schedule_wants_detour (Plan *plan, const PlanItem *item);

/* join.c: leaves out of @buffers, a kernel's slots, what @stores do not use, and numbers the PARAMs of
 * @stores anew. Gives how many are left. */
guint schedule_drop_unused (
    Plan *plan, TinyNode **stores, guint n_stores, guint *buffers, guint n_buffers);

/* merge.c: kernels that share loops become one; the items are in an order to run. */
gboolean schedule_merge_kernels (Plan *plan, GError **error);

/* words.c: whether @kernel's results can be stored in whole words, where the target has nothing
 * smaller, and no row of it is computed again for each of its elements then. */
gboolean schedule_keeps_words (Plan *plan, const char *device, TinyNode *kernel);
gboolean schedule_stores_in_words (const ScheduleMachine *machine, TinyDType dtype);

/* share.c: what several loops of a kernel compute alike is computed once. Returns whether no
 * contraction is left that would be repeated by loops that it does not depend on. */
gboolean schedule_share_values (Plan *plan, PlanItem *item);

/* panels.c: what is copied for contractions alone lies in the order in which they read it. */
void schedule_lay_panels (Plan *plan);

/* names.c: gives the items' kernels their names. */
void schedule_name_kernels (Plan *plan);

/* explain.c: for each value that goes from kernel to kernel, why; free with g_free(). */
char *schedule_explain (Plan *plan);

/* memory-plan.c: gives temporaries their offsets. */
TinyScheduleArena *schedule_plan_memory (Plan *plan, guint *out_n_arenas);

guint schedule_add_buffer (Plan *plan,
                           TinyScheduleBufferKind kind,
                           TinyDType dtype,
                           gint64 n_elements,
                           const char *device,
                           gint64 slot);

/* Whether buffer @i is the memory of an input after its ASSIGN. */
gboolean schedule_is_assigned (Plan *plan, guint i);

static inline TinyScheduleBuffer *
schedule_get_buffer (Plan *plan, guint i)
{
  return &g_array_index (plan->buffers, TinyScheduleBuffer, i);
}

G_END_DECLS
