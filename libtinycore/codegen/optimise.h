/* SPDX-License-Identifier: MIT
 *
 * optimise.h: a kernel's axes while optimisations are applied to them. */
#pragma once

#include "codegen/codegen-private.h"

G_BEGIN_DECLS

/* One axis: what is left of a range of the kernel after inner parts were split off. */
typedef struct {
  TinyNode *origin; /* the kernel's range */
  TinyNode *node;   /* stands for this part in the expression of the origin */
  gint64 extent;
  TinyRangeKind kind;
  gboolean is_reduce;
} TinyAxis;

/* A range of the kernel and what becomes of it. */
typedef struct {
  TinyNode *range, *expression;
  gint64 valid;     /* extent before padding, or 0: not padded */
  gint64 multiple;  /* what it was padded to a multiple of */
  GPtrArray *inner; /* RANGEs split off that no axis stands for, innermost last */
} TinyOrigin;

enum { TINY_GROUP_AXES = 3 };

/* A range of the kernel that is split over an axis of the work-group. */
typedef struct {
  TinyNode *origin;
  guint axis;
} TinyPart;

typedef struct {
  TinyCodegen *cg;
  TinyNode *root;     /* the kernel whose ranges the axes are */
  GArray *axes;       /* TinyAxis in loop order, outputs first */
  GArray *origins;    /* TinyOrigin */
  GHashTable *locals; /* of the kernel's LOCALs: what they become */
  GArray *stages;     /* TinyStage */
  GPtrArray *stores;  /* the kernel's STOREs, as they are built */
  GPtrArray *fills;   /* STOREs to LOCALs that it did not have, those that others read first */
  GArray *parts;      /* TinyPart */
  TinyNode *items[TINY_GROUP_AXES]; /* RANGEs of the work-group's axes */
  guint n_items;                    /* how many there are */
  guint n_numbers, n_locals;        /* of RANGEs and LOCALs so far */
  guint n_outputs;                  /* axes that are not reduced */
} TinyAxes;

/* A LOAD of the kernel that reads a copy made anew inside the first axes. */
typedef struct {
  TinyNode *load;
  guint n_outside;
  TinyNode *reduce; /* whose loop the last of them is; NULL: it is a loop of all stores */
} TinyStage;

TinyAxes *tiny_axes_new (TinyCodegen *cg);
void tiny_axes_free (TinyAxes *self);
static inline TinyAxis *
tiny_axes_get (TinyAxes *self, guint i)
{
  return &g_array_index (self->axes, TinyAxis, i);
}
/* Begins anew with the ranges of @root. */
void tiny_axes_set_root (TinyAxes *self, TinyNode *root);
/* Applies one optimisation and notes it in the program. Errors: %TINY_ERROR_INVALID. */
gboolean tiny_axes_apply (TinyAxes *self, TinyOpt opt, GError **error);
/* FALSE when some value that depends on the kernel's @range has lanes along another already. */
gboolean tiny_axes_can_have_lanes (TinyAxes *self, TinyNode *range);
/* The kernel over the axes as they are now. */
TinyNode *tiny_axes_build (TinyAxes *self);
/* Where the axis of the kernel's range @origin is; -1: nowhere. */
int tiny_axes_find (TinyAxes *self, TinyNode *origin);

/* Whether @extent rounds of axis @i have room on the grid besides those that are on it. */
gboolean tiny_axes_fit_grid (TinyAxes *self, guint i, gint64 extent);

/* True if a copy of @load in vectors along its range @along holds what the steps of a window read only once. */
gboolean tiny_axes_has_window (TinyAxes *self, TinyNode *load, TinyNode *along);
gboolean tiny_axes_all_stores_depend_on (TinyAxes *self, TinyNode *origin);

/* Whether @node depends on @range or is a REDUCE over it. */
gboolean tiny_axes_involves (TinyGraph *graph, TinyNode *node, TinyNode *range);

/* What became of the kernel's @range, or NULL. */
TinyOrigin *tiny_axes_find_origin (TinyAxes *self, TinyNode *range);

/* local.c: what the kernel's LOCALs take, those that are filled in the loop of @range @copies times. */
gint64 tiny_axes_count_local_bytes (TinyAxes *self, TinyNode *range, gint64 copies);
/* What all LOCAL memory takes at most, when @amount parts of @kind are split off axis @split;
 * %G_MAXUINT: off none. */
gint64
tiny_axes_count_all_bytes (TinyAxes *self, guint split, gint64 amount, TinyRangeKind kind);
/* Whether that is no more than the target has. */
gboolean tiny_axes_fit_local (TinyAxes *self, guint axis, gint64 amount, TinyRangeKind kind);
/* @memory is filled again in each round of a loop: when the loop is copied or becomes lanes, every
 * copy and lane gets memory of its own. */
void tiny_axes_grow_local (TinyAxes *self, TinyNode *memory);
/* Makes memory and index of an access, @sources, those of what @memory became. */
void tiny_axes_move_local (TinyAxes *self, TinyNode *memory, TinyNode **sources);

/* group.c: why @amount parts of @axis cannot go to the items of a work-group, or NULL. */
const char *tiny_axes_object_to_group (TinyAxes *self, guint axis, gint64 amount);
/* The RANGE over the items that take @n parts of the kernel's @origin. */
TinyNode *tiny_axes_take_items (TinyAxes *self, TinyNode *origin, gint64 n);
/* REDUCE with @op of @value over @items, for the kernel's @store. */
TinyNode *tiny_axes_combine_items (TinyAxes *self,
                                   TinyOp op,
                                   TinyNode *value,
                                   TinyNode *store,
                                   TinyNode *const *items,
                                   guint n);
/* @store, by the first item along each axis of the group that it does not have. */
TinyNode *tiny_axes_gate_items (TinyAxes *self, TinyNode *store);
/* What REDUCEs over items take of LOCAL memory at most, with @amount parts more of @origin. */
gint64 tiny_axes_count_part_bytes (TinyAxes *self,
                                   TinyNode *origin,
                                   gint64 amount,
                                   TinyRangeKind kind);

/* Puts @store, which fills LOCAL memory, among @stores. */
void tiny_axes_insert_fill (TinyGraph *graph, GPtrArray *stores, TinyNode *store);

/* stage.c: @sum + @scale * @x. */
TinyNode *tiny_axes_add_scaled (TinyGraph *graph, TinyNode *sum, TinyNode *x, gint64 scale);
/* The place of @ranges, with rows of @stride elements as the innermost part. */
TinyNode *tiny_axes_flatten (TinyAxes *self, TinyNode *const *ranges, guint n, gint64 stride);
/* The LOAD of a parameter that STAGE calls @operand, or NULL. */
TinyNode *tiny_axes_find_operand (TinyAxes *self, gint64 operand);
/* What reads a copy in place of @load, which @stage's became; the STORE that makes it is a
 * fill. */
TinyNode *tiny_axes_stage (TinyAxes *self, const TinyStage *stage, TinyNode *load);
/* STAGE as it is noted. */
TinyStage tiny_axes_get_stage (TinyAxes *self, TinyOpt opt);

/* What all copies take, when @amount more is split off axis @split. */
gint64 tiny_axes_count_stage_bytes (TinyAxes *self, guint split, gint64 amount);
const char *tiny_axes_object_to_stage (TinyAxes *self, TinyOpt opt);

/* size.c: why what @opt makes, parts of @kind, is too much, or NULL. */
const char *tiny_axes_object_to_size (TinyAxes *self, TinyOpt opt, TinyRangeKind kind);

/* merge-axes.c: why axis opt.axis and the next one cannot be one, or NULL. */
const char *tiny_axes_object_to_merge (TinyAxes *self, TinyOpt opt);
void tiny_axes_merge (TinyAxes *self, guint axis);

/* heuristic.c: chooses and applies. */
void tiny_axes_optimise (TinyAxes *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyAxes, tiny_axes_free)

G_END_DECLS
