/* SPDX-License-Identifier: MIT
 *
 * codegen-private.h: what the passes of codegen/ share. */
#pragma once

#include "codegen/tiny-codegen.h"

G_BEGIN_DECLS

/* One compilation on its way through the passes. */
typedef struct {
  TinyGraph *graph;
  const TinyTarget *target;
  TinyNode *root;      /* the SINK, rewritten by each pass */
  const TinyOpt *opts; /* given by hand */
  guint n_opts;
  gboolean heuristic;  /* TRUE: opts are to be chosen */
  GArray *applied;     /* TinyOpt */
  GArray *most_rounds; /* gint64 for each RANGE of the program: its largest bound */
  TinyLinearProgram *program;
} TinyCodegen;

typedef gboolean (*TinyPassFunc) (TinyCodegen *cg, GError **error);

/* The passes, in the order of pass-list.c. */
gboolean tiny_pass_loops (TinyCodegen *cg, GError **error);
gboolean tiny_pass_simplify (TinyCodegen *cg, GError **error);
gboolean tiny_pass_words (TinyCodegen *cg, GError **error);
gboolean tiny_pass_stores (TinyCodegen *cg, GError **error);
gboolean tiny_pass_wide (TinyCodegen *cg, GError **error);
gboolean tiny_pass_decompose (TinyCodegen *cg, GError **error);
gboolean tiny_pass_optimise (TinyCodegen *cg, GError **error);
gboolean tiny_pass_expand (TinyCodegen *cg, GError **error);
gboolean tiny_pass_bound (TinyCodegen *cg, GError **error);
gboolean tiny_pass_blocks (TinyCodegen *cg, GError **error);
gboolean tiny_pass_reduce (TinyCodegen *cg, GError **error);
gboolean tiny_pass_index (TinyCodegen *cg, GError **error);
gboolean tiny_pass_linearise (TinyCodegen *cg, GError **error);
gboolean tiny_pass_barriers (TinyCodegen *cg, GError **error);
gboolean tiny_pass_place (TinyCodegen *cg, GError **error);
gboolean tiny_pass_rounds (TinyCodegen *cg, GError **error);

/* Fills @cg->program's estimates from the kernel before it is optimised. */
void tiny_codegen_estimate (TinyCodegen *cg);

/* Dtype and size of the program's parameters, as they are in @cg->root by now. */
void tiny_codegen_list_params (TinyCodegen *cg);

/* Runs the passes before optimise. */
gboolean tiny_codegen_prepare (TinyCodegen *cg, GError **error);

/* What @kernel is after the pass of that name, with the optimisations of @opts_text: for tests. */
TinyNode *tiny_codegen_run_until (TinyGraph *graph,
                                  TinyNode *kernel,
                                  const TinyTarget *target,
                                  const char *opts_text,
                                  const char *pass,
                                  GError **error);

/* ---- pass-wide.c ---- */
/* The nodes that were looked at; {0} at first. */
typedef struct {
  TinyNodeMap known;
} TinyExact;

/* TINY_DTYPE_BIT of each float dtype that has all values @node can have. */
guint32 tiny_exact_find (TinyExact *self, const TinyNode *node);
void tiny_exact_clear (TinyExact *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TinyExact, tiny_exact_clear)

/* ---- grid.c ---- */
typedef struct {
  gint64 sizes[3];      /* along the target's axes */
  gboolean is_numbered; /* all points, along the first axis first */
} TinyGrid;

/* Lays axes of @extents, innermost first, out on the target's grid; FALSE: it is too small. */
gboolean
tiny_grid_lay_out (const TinyTarget *target, const gint64 *extents, guint n, TinyGrid *out);
/* What each of the axes is as an expression in GRIDs. */
void tiny_grid_get_indices (
    TinyGraph *graph, const TinyGrid *self, const gint64 *extents, guint n, TinyNode **out);

/* ---- turn.c ---- */
/* Turns @rows, @n vectors of @n lanes, in place; @n is a power of two. */
void tiny_turn_square (TinyGraph *graph, TinyNode **rows, guint n);

/* ---- fold.c ---- */
/* tiny_node_new() that folds constants, neutral elements and what bounds decide, and keeps sums
 * as (shared part) + constant so that neighbouring addresses share what they have in common. */
TinyNode *
tiny_fold_node (TinyGraph *graph, TinyNode *like, guint lanes, TinyNode *const *sources);
TinyNode *tiny_fold_binary (TinyGraph *graph, TinyOp op, TinyNode *x, TinyNode *y);

/* @root with free occurrences of from[i] replaced; what a REDUCE or END closes is not free. */
TinyNode *tiny_codegen_replace (
    TinyGraph *graph, TinyNode *root, TinyNode *const *from, TinyNode *const *to, guint n);

/* The neutral element of REDUCE with @op. */
TinyNode *tiny_reduce_identity (TinyGraph *graph, TinyOp op, TinyDType dtype, guint lanes);

/* Whether node(range = l) is node(range = 0) + stride * l for every l of the range. */
gboolean
tiny_index_stride (TinyGraph *graph, TinyNode *node, TinyNode *range, gint64 *out_stride);

/* How many MULACCs in a row add @value to an accumulator on @target; 0: it is added as it is. */
guint tiny_codegen_count_products (const TinyTarget *target, TinyNode *value);

/* The number of the highest RANGE under @root, plus one. */
guint tiny_codegen_count_ranges (TinyGraph *graph, TinyNode *root);

/* The loops around @store, outermost first. Free with g_free(). */
TinyNode **tiny_codegen_get_loops (TinyGraph *graph, TinyNode *store, guint *out_n);

static inline gboolean
tiny_target_has (const TinyTarget *target, TinyInstrOp op, TinyDType dtype)
{
  return (target->ops[dtype] & TINY_INSTR_BIT (op)) != 0;
}

G_END_DECLS
