/* SPDX-License-Identifier: MIT
 *
 * heuristic.h: what the heuristic knows of a kernel while it chooses. */
#pragma once

#include "optimise.h"

G_BEGIN_DECLS

enum {
  MAX_AXES = 24,
  MIN_GRID_FLOPS = 30000, /* below, waking threads costs more than it saves */
  MIN_POINT_WORK = 4096,  /* elements that a grid point should handle */
  POINTS_PER_THREAD = 8,
  STAGE_MIN_TILES = 4,    /* that read a copy, to be worth making it */
  MERGE_MIN_READERS = 16, /* of a vector, to be worth its conditions at the ends of rows */
  MIN_SHORT_LANES = 4,    /* of a reduced axis that has no more rounds than these */
  MAX_SHORT = 4,          /* rounds of a reduced loop that becomes none */
  MAX_BODY = 64,          /* instructions of all elementwise copies */
  MAX_TILE_COPIES = 14,   /* of a contraction's vectors */
  MIN_SCALARS = 16,       /* registers of a target without vectors that are enough for tiles */
  MAX_LOCAL_COPIES = 6,   /* where loops around LOCALs have them too, for values of their own */
  MAX_STREAMED_COPIES = 12, /* the same where panels come from the third cache for each tile, */
  STREAMED_REGISTERS = 27,  /* and these are enough: two vectors a row, and their operands */
  MAX_TURNED = 16,          /* rows of a square that is turned in registers */
  MAX_ROW_COPIES = 8,       /* accumulators of a reduction with lanes on a reduced axis */
  MAX_WINDOW = 16,          /* taps of a sum that become copies */
  MAX_WINDOW_COPIES = 160,  /* of what is summed */
  MAX_WINDOW_VECTORS = 8,   /* of one row */
  MAX_APART = 4             /* windows that have conditions in common, not elements */
};

typedef struct {
  TinyNode *node;
  gint64 strides[MAX_AXES]; /* by axis of the kernel */
  gboolean uneven[MAX_AXES];
} Access;

/* REDUCEs over the same ranges. */
typedef struct {
  TinyNode *reduce; /* the first of them */
  guint n_reduces;
  gint64 work;   /* of the first */
  GArray *loads; /* Access, those inside */
} Nest;

typedef struct {
  TinyAxes *axes;
  TinyGraph *graph;
  const TinyTarget *target;
  guint n_origins;
  TinyNode *origins[MAX_AXES]; /* the kernel's ranges, before anything was split */
  GArray *accesses;            /* Access: loads and stores outside of nests */
  GArray *nests;               /* Nest, the largest first */
  guint lanes;                 /* full vector of the widest dtype */
  gint64 work;
  gint64 copies[MAX_AXES]; /* by origin: of each value that depends on it; 0: one */
  gint64 most_copies;      /* along the second axis of a tile */
  gint64 most_streamed;    /* the same where panels come from the third cache for each tile */
  int vector_axis;         /* the output axis with lanes, by origin; -1: none */
  gint64 staged;           /* operand to stage outside of the innermost output axes; -1: none */
  guint n_inside;          /* how many axes these are */
} Plan;

static inline gint64
combinations (TinyGraph *graph, TinyNode *node)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (graph, node, &n);
  gint64 count = 1;
  for (guint i = 0; i < n; i++)
    count *= tiny_range_get_extent (ranges[i]);
  return count;
}

static inline gint64
extent_of (Plan *plan, guint origin)
{
  return tiny_range_get_extent (plan->origins[origin]);
}

static inline gboolean
depends (Plan *plan, TinyNode *node, guint origin)
{
  return tiny_node_depends_on (plan->graph, node, plan->origins[origin]);
}

/* Which range of the kernel the axis is, or was before it was split. */
static inline guint
origin_of (Plan *plan, guint axis)
{
  guint origin = 0;
  while (plan->origins[origin] != tiny_axes_get (plan->axes, axis)->origin)
    origin++;
  return origin;
}

static inline gboolean
is_reduced_by (Nest *nest, TinyNode *range)
{
  for (guint i = 1; i < nest->reduce->n_sources; i++)
    if (nest->reduce->sources[i] == range)
      return TRUE;
  return FALSE;
}

/* What is computed for each of @n that are wanted, in blocks of @block. */
static inline double
tiny_plan_waste (gint64 n, gint64 block)
{
  return (double) ((n + block - 1) / block * block) / (double) n;
}

/* ---- doing ---- */
static inline gboolean
apply (Plan *plan, TinyOptKind kind, guint axis, gint64 amount)
{
  return tiny_axes_apply (plan->axes, (TinyOpt){ kind, axis, amount }, NULL);
}

/* Copies of @node in all. */
static inline gint64
count_copies (Plan *plan, TinyNode *node)
{
  gint64 n = 1;
  for (guint i = 0; i < plan->n_origins; i++)
    if (plan->copies[i] > 1 && depends (plan, node, i))
      n *= plan->copies[i];
  return n;
}

/* Splits @lanes off the axis of @origin, after padding it to @multiple. */
gboolean tiny_plan_apply_lanes (Plan *plan, guint origin, guint lanes, gint64 multiple);
/* The largest divisor of @n that is at most @most. */
gint64 tiny_plan_largest_divisor (gint64 n, gint64 most);
/* Puts the outputs into the order in which what @stream reads lies in memory. */
void tiny_plan_walk_in_order (Plan *plan, const Access *stream);

/* Makes loops over at most so many rounds that @nest reduces none; how many copies that makes. */
gint64 tiny_plan_unroll (Plan *plan, Nest *nest, gint64 most);

/* heuristic-turn.c: TRUE if @access is a load that is consecutive along @axis and not along @origin. */
gboolean tiny_plan_is_turned (const Access *access, guint origin, guint axis);
/* The load that is turned when @origin has the lanes, or NULL: squares fill the registers. Its axis is left in
 * @out_axis. */
const Access *tiny_plan_find_turned (Plan *plan, guint origin, guint *out_axis);
/* Gives @origin lanes, and copies to the axis along which squares are turned; FALSE: none are. Where squares go
 * past the end of a row, the next row is in the same lines: it comes next. */
gboolean tiny_plan_turn (Plan *plan, guint origin, guint lanes);

/* tile.c: how many outputs read the same of @access, besides those of one vector along @vector. */
gint64 tiny_plan_count_readers (Plan *plan, const Access *access, guint vector);
/* tile.c: gives @nest lanes along @vector, the best tile, and copies of what its tiles share. */
void tiny_plan_tile (Plan *plan, Nest *nest, guint vector, guint lanes);
/* tile.c: gives all nests tiles of single numbers. */
void tiny_plan_tile_scalars (Plan *plan);

/* heuristic-window.c: how many steps of @access along reduced axis @tap one step along @axis is, if taps go that far;
 * or 0. */
gint64 tiny_plan_count_shift (Plan *plan, const Access *access, int axis, guint tap);
/* heuristic-window.c: gives @nest, a sum of a few taps that neighbours share, lanes along @vector, copies of its taps
 * and of outputs beside each other; FALSE: it is no such sum. */
gboolean tiny_plan_window (Plan *plan, Nest *nest, guint vector, guint lanes);

/* tile-group.c: the tile of a kernel's one contraction; FALSE: it has none. */
gboolean tiny_plan_group_tile (Plan *plan);
/* heuristic-group.c: everything, for a target with work-groups. */
void tiny_plan_groups (Plan *plan);

G_END_DECLS
