/* SPDX-License-Identifier: MIT
 *
 * tiny-opt-space.c: which lists of optimisations fit a kernel, and which lie near one.
 *
 * The rows below are the kinds of optimisation and the amounts worth trying; a new kind is a row.
 * Whether something fits is asked of tiny_axes_apply() alone: each list that is handed out was
 * applied to the kernel's axes from the start. */
#include "codegen/tiny-opt-space.h"

#include <string.h>

#include "base/tiny-error.h"
#include "optimise.h"

enum {
  MAX_AMOUNTS = 12,
  MAX_OPTS = 24,       /* of a list that a search makes */
  REGISTER_FACTOR = 4, /* copies, in multiples of the target's vector registers */
  MIN_REGISTERS = 8,   /* taken for a target that says less */
};

typedef enum {
  AMOUNT_LIST,     /* those of the row */
  AMOUNT_LANES,    /* halves of the target's full vector */
  AMOUNT_ITEMS,    /* halves of the target's full work-group */
  AMOUNT_AXES,     /* the axes after this one */
  AMOUNT_OPERANDS, /* the LOADs of parameters */
} AmountSource;

static const struct {
  TinyOptKind kind;
  AmountSource source;
  gboolean pads;   /* an axis that the amount does not divide may be padded first */
  gboolean copies; /* makes `amount` copies of what is inside */
  gint64 amounts[MAX_AMOUNTS];
} rows[] = {
  { TINY_OPT_LANES, AMOUNT_LANES, TRUE, FALSE, { 0 } },
  { TINY_OPT_UPCAST, AMOUNT_LIST, TRUE, TRUE, { 2, 3, 4, 6, 7, 8, 12, 14, 16 } },
  { TINY_OPT_UNROLL, AMOUNT_LIST, FALSE, TRUE, { 2, 4, 8, 16 } },
  { TINY_OPT_GROUP, AMOUNT_ITEMS, TRUE, FALSE, { 0 } },
  { TINY_OPT_GRID, AMOUNT_LIST, FALSE, FALSE, { 0, -1 } },
  { TINY_OPT_SPLIT, AMOUNT_LIST, FALSE, FALSE, { 4, 8, 16, 32, 64, 128, 256, 512 } },
  { TINY_OPT_SWAP, AMOUNT_AXES, FALSE, FALSE, { 0 } },
  { TINY_OPT_STAGE, AMOUNT_OPERANDS, FALSE, FALSE, { 0 } },
  { TINY_OPT_MERGE, AMOUNT_AXES, FALSE, FALSE, { 0 } },
};

struct TinyOptSpace {
  TinyGraph *graph;
  TinyCodegen cg;
  TinyLinearProgram *program; /* what the passes write besides the kernel */
  guint n_operands;
};

/* Whether the row's amounts are parts of an axis. */
static gboolean
is_size (guint row)
{
  return rows[row].source == AMOUNT_LIST || rows[row].source == AMOUNT_LANES
         || rows[row].source == AMOUNT_ITEMS;
}

/* A list under construction. */
typedef struct {
  TinyOpt opts[MAX_OPTS];
  guint n;
} List;

typedef struct {
  TinyOptSpace *space;
  GHashTable *seen; /* texts */
  GPtrArray *out;   /* the same, in order */
} Found;

TinyOptSpace *
tiny_opt_space_new (TinyNode *kernel, const TinyTarget *target, GError **error)
{
  g_autoptr (TinyOptSpace) self = g_new0 (TinyOptSpace, 1);
  self->graph = tiny_graph_new ();
  self->program = g_new0 (TinyLinearProgram, 1);
  self->cg = (TinyCodegen){ .graph = self->graph,
                            .target = target,
                            .root = tiny_graph_import (self->graph, kernel),
                            .applied = g_array_new (FALSE, FALSE, sizeof (TinyOpt)),
                            .program = self->program };
  if (!tiny_codegen_prepare (&self->cg, error))
    return NULL;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->graph, &self->cg.root, 1);
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    self->n_operands += node->op == TINY_OP_LOAD && node->sources[0]->op == TINY_OP_PARAM;
  }
  return g_steal_pointer (&self);
}

void
tiny_opt_space_free (TinyOptSpace *self)
{
  if (self == NULL)
    return;
  g_clear_pointer (&self->cg.applied, g_array_unref);
  g_clear_pointer (&self->program, tiny_linear_program_free);
  g_clear_pointer (&self->graph, tiny_graph_free);
  g_free (self);
}

/* The axes after @opts, or NULL. */
static TinyAxes *
apply_all (TinyOptSpace *self, const TinyOpt *opts, guint n, GError **error)
{
  g_array_set_size (self->cg.applied, 0);
  g_autoptr (TinyAxes) axes = tiny_axes_new (&self->cg);
  for (guint i = 0; i < n; i++)
    if (!tiny_axes_apply (axes, opts[i], error))
      return NULL;
  return g_steal_pointer (&axes);
}

gboolean
tiny_opt_space_check (TinyOptSpace *self, const char *text, GError **error)
{
  guint n;
  g_autofree TinyOpt *opts = tiny_opts_from_string (text, &n, error);
  if (opts == NULL)
    return FALSE;
  g_autoptr (TinyAxes) axes = apply_all (self, opts, n, error);
  return axes != NULL;
}

static int
find_row (TinyOptKind kind)
{
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    if (rows[i].kind == kind)
      return (int) i;
  return -1;
}

/* ---- how large a list makes the kernel ---- */
static gboolean
is_too_large (TinyOptSpace *self, const List *list)
{
  gint64 copies = 1;
  gint64 registers = MAX (self->cg.target->n_vector_registers, MIN_REGISTERS);
  for (guint i = 0; i < list->n; i++) {
    int row = find_row (list->opts[i].kind);
    if (row >= 0 && rows[row].copies && list->opts[i].amount > 0)
      copies *= MIN (list->opts[i].amount, G_MAXINT8);
    if (copies > REGISTER_FACTOR * registers)
      return TRUE;
  }
  return FALSE;
}

static void
add_list (Found *found, const List *list)
{
  g_autofree char *text
      = list->n > 0 ? tiny_opts_to_string (list->opts, list->n) : g_strdup ("none");
  if (g_hash_table_contains (found->seen, text) || is_too_large (found->space, list))
    return;
  g_autoptr (TinyAxes) axes = apply_all (found->space, list->opts, list->n, NULL);
  if (axes == NULL)
    return;
  g_ptr_array_add (found->out, text);
  g_hash_table_add (found->seen, g_steal_pointer (&text));
}

/* ---- one step ---- */
static gboolean
insert_opt (List *list, guint at, TinyOpt opt)
{
  if (list->n == MAX_OPTS)
    return FALSE;
  memmove (&list->opts[at + 1], &list->opts[at], (list->n - at) * sizeof (TinyOpt));
  list->opts[at] = opt;
  list->n++;
  return TRUE;
}

static void
remove_opt (List *list, guint at)
{
  list->n--;
  memmove (&list->opts[at], &list->opts[at + 1], (list->n - at) * sizeof (TinyOpt));
}

/* The amounts of @row for @axis; returns how many. */
static guint
list_amounts (TinyOptSpace *self, guint row, guint axis, guint n_axes, gint64 *out)
{
  guint n = 0;
  switch (rows[row].source) {
  case AMOUNT_LIST:
    for (guint i = 0; i < MAX_AMOUNTS && (i == 0 || rows[row].amounts[i] > 0); i++)
      out[n++] = rows[row].amounts[i];
    break;
  case AMOUNT_LANES:
    for (gint64 lanes = self->cg.target->max_lanes; lanes > 1 && n < MAX_AMOUNTS; lanes /= 2)
      out[n++] = lanes;
    break;
  case AMOUNT_ITEMS:
    for (gint64 items = self->cg.target->max_group_total; items > 1 && n < MAX_AMOUNTS;
         items /= 2)
      out[n++] = items;
    break;
  case AMOUNT_AXES:
    for (guint other = axis + 1; other < n_axes && n < MAX_AMOUNTS; other++)
      out[n++] = other;
    break;
  case AMOUNT_OPERANDS:
    for (; n < MIN (self->n_operands, MAX_AMOUNTS); n++)
      out[n] = n;
    break;
  }
  return n;
}

/* One optimisation more, before place @at. */
static void
add_insertions (Found *found, const List *list, guint at)
{
  TinyOptSpace *space = found->space;
  g_autoptr (TinyAxes) axes = apply_all (space, list->opts, at, NULL);
  guint n_axes = axes ? axes->axes->len : 0;
  for (guint row = 0; row < G_N_ELEMENTS (rows); row++)
    for (guint axis = 0; axis < n_axes; axis++) {
      gint64 amounts[MAX_AMOUNTS], extent = tiny_axes_get (axes, axis)->extent;
      guint n = list_amounts (space, row, axis, n_axes, amounts);
      for (guint i = 0; i < n; i++) {
        List longer = *list;
        gboolean sized = is_size (row) && amounts[i] > 0;
        if ((sized && amounts[i] > extent) || (rows[row].kind == TINY_OPT_GRID && extent == 1)
            || (rows[row].kind == TINY_OPT_SPLIT && amounts[i] == extent))
          continue;
        if (!insert_opt (&longer, at, (TinyOpt){ rows[row].kind, axis, amounts[i] }))
          return;
        if (sized && extent % amounts[i] != 0
            && (!rows[row].pads
                || !insert_opt (&longer, at, (TinyOpt){ TINY_OPT_PAD, axis, amounts[i] })))
          continue;
        add_list (found, &longer);
      }
    }
}

/* What goes before all others, and leaves fewer axes to them. */
static void
add_merges (Found *found, const List *list)
{
  g_autoptr (TinyAxes) axes = apply_all (found->space, NULL, 0, NULL);
  for (guint axis = 0; axis + 1 < axes->n_outputs; axis++) {
    List longer = *list;
    if (insert_opt (&longer, 0, (TinyOpt){ TINY_OPT_MERGE, axis, axis + 1 }))
      add_list (found, &longer);
    longer.n = 1;
    add_list (found, &longer);
  }
}

/* Optimisation @at with another amount; the padding of its axis goes along. */
static void
add_changes (Found *found, const List *list, guint at)
{
  TinyOpt opt = list->opts[at];
  int row = find_row (opt.kind), pad = -1;
  g_autoptr (TinyAxes) axes = apply_all (found->space, list->opts, at, NULL);
  if (row < 0 || axes == NULL)
    return;
  for (guint i = 0; i < at; i++)
    if (list->opts[i].kind == TINY_OPT_PAD && list->opts[i].axis == opt.axis)
      pad = (int) i;
  gint64 amounts[MAX_AMOUNTS], extent = tiny_axes_get (axes, opt.axis)->extent;
  guint n = list_amounts (found->space, (guint) row, opt.axis, axes->axes->len, amounts);
  for (guint i = 0; i < n; i++) {
    List changed = *list;
    gboolean sized = is_size ((guint) row) && amounts[i] > 0;
    if (amounts[i] == opt.amount || (sized && amounts[i] > extent))
      continue;
    changed.opts[at].amount = amounts[i];
    if (pad >= 0 && rows[row].pads && opt.amount > 0
        && changed.opts[pad].amount % opt.amount == 0)
      changed.opts[pad].amount = changed.opts[pad].amount / opt.amount * amounts[i];
    else if (sized && extent % amounts[i] != 0 && rows[row].pads)
      insert_opt (&changed, at, (TinyOpt){ TINY_OPT_PAD, opt.axis, amounts[i] });
    add_list (found, &changed);
  }
}

/* Where the grid is laid out and operands are staged, after which little fits: the first GRID or
 * STAGE, or the SPLIT just before. */
static guint
find_grid (const List *list)
{
  guint at = 0;
  while (at < list->n && list->opts[at].kind != TINY_OPT_GRID
         && list->opts[at].kind != TINY_OPT_STAGE)
    at++;
  return at > 0 && at < list->n && list->opts[at - 1].kind == TINY_OPT_SPLIT ? at - 1 : at;
}

char **
tiny_opt_space_get_neighbours (TinyOptSpace *self, const char *text)
{
  guint n;
  List list = { .n = 0 };
  g_autofree TinyOpt *opts = tiny_opts_from_string (text, &n, NULL);
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  Found found = { self, seen, g_ptr_array_new () };
  g_hash_table_add (seen, (gpointer) (opts && n > 0 ? text : "none"));
  if (opts != NULL && n < MAX_OPTS) {
    memcpy (list.opts, opts, n * sizeof *opts);
    list.n = n;
    for (guint i = 0; i < n; i++)
      add_changes (&found, &list, i);
    add_insertions (&found, &list, find_grid (&list));
    add_merges (&found, &list);
    add_insertions (&found, &list, n);
    for (guint i = 0; i < n; i++) {
      List shorter = list;
      remove_opt (&shorter, i);
      add_list (&found, &shorter);
    }
  }
  g_ptr_array_add (found.out, NULL);
  return (char **) g_ptr_array_free (found.out, FALSE);
}
