/* SPDX-License-Identifier: MIT
 *
 * pass-reduce.c: REDUCE becomes a REGISTER and loops; STOREs get the loops around them.
 *
 *   register r(outer loops…); store r, neutral element            before the loops
 *   a = load after(r, that store, loops…); store r, a op value    inside
 *   load after(r, end(inner loop, stores…))                       the result, after them
 *
 * All REDUCEs over the same ranges share one nest: their updates are closed by the same END. An
 * END lists its range first, then what happens inside it; its value depends on the loops around
 * it only. A register's sources are the loops it is used in, so that its first store is repeated
 * with them. The SINK ends as SINK(END(outermost, …)…).
 *
 * A STORE that fills LOCAL memory in each round of a reduction happens there: what reads the memory
 * names it as AFTER the loops of that STORE.
 *
 * STOREs happen in the order of the SINK inside the loops that they share. What is stored to LOCAL
 * memory is read back by others: they name it as AFTER the END (or the STORE) that filled it. */
#include "codegen/codegen-private.h"

#include <string.h>

typedef struct {
  GPtrArray *members; /* REDUCEs, before */
  GPtrArray *values;  /* their values: all must be ready before one is lowered */
  gboolean lowered;
} Nest;

typedef struct {
  TinyGraph *graph;
  const TinyTarget *target;
  TinyNodeMap map, nests; /* of a RANGE: the Nest it is the first range of */
  GPtrArray *all_nests;
  guint n_registers;
} Lower;

static void
nest_free (Nest *nest)
{
  g_ptr_array_unref (nest->members);
  g_ptr_array_unref (nest->values);
  g_free (nest);
}

static void
lower_clear (Lower *self)
{
  tiny_node_map_clear (&self->map);
  tiny_node_map_clear (&self->nests);
  g_ptr_array_unref (self->all_nests);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Lower, lower_clear)

static TinyNode *
after (TinyGraph *graph, TinyNode *x, guint n, TinyNode *const *first, TinyNode *extra)
{
  g_autofree TinyNode **sources = g_new (TinyNode *, n + 2);
  guint used = 0;
  sources[used++] = x;
  if (extra != NULL)
    sources[used++] = extra;
  for (guint i = 0; i < n; i++)
    sources[used++] = first[i];
  return tiny_node_new (graph, TINY_OP_AFTER, x->dtype, x->lanes, used, sources, 0, NULL, NULL);
}

static TinyNode *
store_register (TinyGraph *graph, TinyNode *reg, TinyNode *value)
{
  TinyNode *sources[] = { reg, value };
  return tiny_node_new (graph, TINY_OP_STORE, TINY_DTYPE_VOID, value->lanes, 2, sources, 0,
                        NULL, NULL);
}

/* Of how many products it is the sum; 0: it is none of products alone. */
static guint
count_products (TinyNode *value)
{
  if (value->op != TINY_OP_ADD)
    return value->op == TINY_OP_MUL;
  guint x = count_products (value->sources[0]);
  guint y = x > 0 ? count_products (value->sources[1]) : 0;
  return y > 0 ? x + y : 0;
}

guint
tiny_codegen_count_products (const TinyTarget *target, TinyNode *value)
{
  gboolean fuses = value->dtype != TINY_DTYPE_BOOL
                   && tiny_target_has (target, TINY_INSTR_MULACC, value->dtype);
  return fuses ? count_products (value) : 0;
}

/* acc op value; a sum of products becomes a chain of MULACCs on the accumulator. */
static TinyNode *
accumulate (Lower *self, TinyOp op, TinyNode *acc, TinyNode *value)
{
  if (op != TINY_OP_ADD || tiny_codegen_count_products (self->target, value) == 0)
    return tiny_node_binary (self->graph, op, acc, value);
  if (value->op == TINY_OP_MUL)
    return tiny_node_mulacc (self->graph, value->sources[0], value->sources[1], acc);
  acc = accumulate (self, op, acc, value->sources[0]);
  return accumulate (self, op, acc, value->sources[1]);
}

/* The ranges that any member is inside of. */
static GPtrArray *
outer_ranges (Lower *self, Nest *nest)
{
  GPtrArray *outer = g_ptr_array_new ();
  /* Finding ranges for the first time uses marks itself: it comes before ours. */
  for (guint i = 0; i < nest->values->len; i++) {
    guint n;
    tiny_node_get_ranges (self->graph, tiny_node_map_get (&self->map, nest->values->pdata[i]),
                          &n);
  }
  guint32 seen = tiny_graph_begin_mark (self->graph);
  TinyNode *first = nest->members->pdata[0];
  for (guint i = 1; i < first->n_sources; i++)
    first->sources[i]->mark = seen;
  for (guint i = 0; i < nest->values->len; i++) {
    guint n;
    TinyNode *value = tiny_node_map_get (&self->map, nest->values->pdata[i]);
    TinyNode *const *ranges = tiny_node_get_ranges (self->graph, value, &n);
    for (guint j = 0; j < n; j++) {
      if (ranges[j]->mark != seen)
        g_ptr_array_add (outer, ranges[j]);
      ranges[j]->mark = seen;
    }
  }
  return outer;
}

static void
lower_nest (Lower *self, Nest *nest)
{
  TinyGraph *graph = self->graph;
  TinyNode *first = nest->members->pdata[0];
  guint n_loops = first->n_sources - 1, n = nest->members->len;
  g_autoptr (GPtrArray) outer = outer_ranges (self, nest);
  g_autofree TinyNode **registers = g_new (TinyNode *, n);
  g_autofree TinyNode **inside = g_new (TinyNode *, n + 1);
  for (guint i = 0; i < n; i++) {
    TinyNode *member = nest->members->pdata[i];
    TinyNode *value = tiny_node_map_get (&self->map, member->sources[0]);
    TinyOp op = member->arg;
    registers[i]
        = tiny_node_new (graph, TINY_OP_REGISTER, value->dtype, value->lanes, outer->len,
                         (TinyNode *const *) outer->pdata, self->n_registers++, NULL, NULL);
    TinyNode *identity = tiny_reduce_identity (graph, op, value->dtype, value->lanes);
    TinyNode *init = store_register (graph, registers[i], identity);
    TinyNode *place = after (graph, registers[i], n_loops, first->sources + 1, init);
    TinyNode *acc = tiny_node_new (graph, TINY_OP_LOAD, value->dtype, value->lanes, 1, &place,
                                   0, NULL, NULL);
    inside[i + 1] = store_register (graph, registers[i], accumulate (self, op, acc, value));
  }
  TinyNode *end = NULL;
  for (guint i = n_loops; i >= 1; i--) {
    TinyNode *pair[] = { first->sources[i], end };
    inside[0] = first->sources[i];
    end = tiny_node_new (graph, TINY_OP_END, TINY_DTYPE_VOID, 1, end ? 2 : n + 1,
                         end ? pair : inside, 0, NULL, NULL);
  }
  for (guint i = 0; i < n; i++) {
    TinyNode *place = after (graph, registers[i], 0, NULL, end);
    TinyNode *result = tiny_node_new (graph, TINY_OP_LOAD, registers[i]->dtype,
                                      registers[i]->lanes, 1, &place, 0, NULL, NULL);
    tiny_node_map_set (&self->map, nest->members->pdata[i], result);
  }
  nest->lowered = TRUE;
}

static void
find_nests (Lower *self, GPtrArray *order)
{
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op != TINY_OP_REDUCE || node->n_sources == 1)
      continue;
    Nest *nest = tiny_node_map_get (&self->nests, node->sources[1]);
    if (nest == NULL) {
      nest = g_new0 (Nest, 1);
      nest->members = g_ptr_array_new ();
      nest->values = g_ptr_array_new ();
      g_ptr_array_add (self->all_nests, nest);
      tiny_node_map_set (&self->nests, node->sources[1], nest);
    }
    g_ptr_array_add (nest->members, node);
    g_ptr_array_add (nest->values, node->sources[0]);
  }
}

static void
lower_node (Lower *self, TinyNode *node, Nest *nest)
{
  if (nest != NULL) {
    if (!nest->lowered)
      lower_nest (self, nest);
    return;
  }
  if (node->op == TINY_OP_REDUCE) {
    tiny_node_map_set (&self->map, node, tiny_node_map_get (&self->map, node->sources[0]));
    return;
  }
  g_autofree TinyNode **many = node->n_sources > 8 ? g_new (TinyNode *, node->n_sources) : NULL;
  TinyNode *few[8], **sources = many ? many : few;
  for (guint i = 0; i < node->n_sources; i++)
    sources[i] = tiny_node_map_get (&self->map, node->sources[i]);
  tiny_node_map_set (&self->map, node, tiny_node_with_sources (self->graph, node, sources));
}

typedef struct {
  TinyNode *node;
  Nest *nest;
  TinyNode *const *sources;
  guint n_sources, next;
} Frame;

static Frame
frame_of (Lower *self, TinyNode *node)
{
  if (node->op == TINY_OP_REDUCE && node->n_sources > 1) {
    Nest *nest = tiny_node_map_get (&self->nests, node->sources[1]);
    return (Frame){ node, nest, (TinyNode *const *) nest->values->pdata, nest->values->len, 0 };
  }
  return (Frame){ node, NULL, node->sources, node->n_sources, 0 };
}

/* Sources first, where a REDUCE also waits for the values of all others in its nest. */
static void
lower_all (Lower *self, TinyNode *root)
{
  g_autoptr (GArray) stack = g_array_new (FALSE, FALSE, sizeof (Frame));
  Frame start = frame_of (self, root);
  g_array_append_val (stack, start);
  while (stack->len > 0) {
    Frame *frame = &g_array_index (stack, Frame, stack->len - 1);
    if (frame->next == frame->n_sources) {
      if (tiny_node_map_get (&self->map, frame->node) == NULL)
        lower_node (self, frame->node, frame->nest);
      g_array_set_size (stack, stack->len - 1);
      continue;
    }
    TinyNode *source = frame->sources[frame->next++];
    if (tiny_node_map_get (&self->map, source) != NULL)
      continue;
    Frame next = frame_of (self, source);
    g_array_append_val (stack, next);
  }
}

/* ---- the order of stores ---- */
static TinyNode *
memory_of (TinyNode *store)
{
  TinyNode *memory = store->sources[0];
  while (memory->op == TINY_OP_AFTER)
    memory = memory->sources[0];
  return memory;
}

/* All that has to be there before @store, and with a REDUCE all that its nest reads. */
static void
find_needed (Lower *self, TinyNode *store, TinyNodeMap *out)
{
  g_autoptr (GPtrArray) left = g_ptr_array_new ();
  for (guint i = 1; i < store->n_sources; i++)
    g_ptr_array_add (left, store->sources[i]);
  while (left->len > 0) {
    TinyNode *node = g_ptr_array_remove_index_fast (left, left->len - 1);
    if (tiny_node_map_get (out, node) != NULL)
      continue;
    tiny_node_map_set (out, node, node);
    Frame frame = frame_of (self, node);
    for (guint i = 0; i < frame.n_sources; i++)
      g_ptr_array_add (left, frame.sources[i]);
  }
}

static void
take_store (Lower *self, TinyNode *sink, guint at, gboolean *taken, GPtrArray *out)
{
  g_auto (TinyNodeMap) needed = { 0 };
  if (taken[at])
    return;
  taken[at] = TRUE;
  find_needed (self, sink->sources[at], &needed);
  for (guint i = 0; i < sink->n_sources; i++)
    if (memory_of (sink->sources[i])->op == TINY_OP_LOCAL
        && tiny_node_map_get (&needed, memory_of (sink->sources[i])) != NULL)
      take_store (self, sink, i, taken, out);
  g_ptr_array_add (out, sink->sources[at]);
}

/* REDUCEs of one nest run together, for several stores: what any of them reads from LOCAL memory is
 * filled before the first of these stores. */
static TinyNode *
order_fills (Lower *self, TinyNode *sink)
{
  g_autofree gboolean *taken = g_new0 (gboolean, sink->n_sources + 1);
  g_autoptr (GPtrArray) stores = g_ptr_array_new ();
  gboolean has_local = FALSE;
  for (guint i = 0; i < sink->n_sources; i++)
    has_local = has_local || memory_of (sink->sources[i])->op == TINY_OP_LOCAL;
  if (!has_local)
    return sink;
  for (guint i = 0; i < sink->n_sources; i++)
    take_store (self, sink, i, taken, stores);
  return tiny_node_sink (self->graph, stores->len, (TinyNode *const *) stores->pdata,
                         sink->text);
}

/* ---- the loops of stores ---- */

/* What comes later reads and writes the LOCALs of @stores not before @done, which holds them. */
static void
order_locals (TinyGraph *graph, GPtrArray *stores, TinyNode *done, GPtrArray *later)
{
  g_autoptr (GPtrArray) places = g_ptr_array_new (), ordered = g_ptr_array_new ();
  for (guint i = 0; i < stores->len && later->len > 0; i++) {
    TinyNode *place = ((TinyNode *) stores->pdata[i])->sources[0];
    if (memory_of (stores->pdata[i])->op != TINY_OP_LOCAL
        || g_ptr_array_find (places, place, NULL))
      continue;
    g_ptr_array_add (places, place);
    g_ptr_array_add (ordered, after (graph, place, 1, &done, NULL));
  }
  if (places->len == 0)
    return;
  /* In one walk over what they share, and all at once: @done has these places itself. */
  TinyNode *all = tiny_node_sink (graph, later->len, (TinyNode *const *) later->pdata, NULL);
  all = tiny_graph_substitute (graph, all, (TinyNode *const *) places->pdata,
                               (TinyNode *const *) ordered->pdata, places->len);
  memcpy (later->pdata, all->sources, later->len * sizeof *later->pdata);
}

/* Adds to @out those of @store's loops that are in neither it nor @around. */
static void
add_loops (TinyGraph *graph, TinyNode *store, GPtrArray *around, GPtrArray *out)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (graph, store, &n);
  for (guint i = 0; i < n; i++)
    if (!g_ptr_array_find (around, ranges[i], NULL) && !g_ptr_array_find (out, ranges[i], NULL))
      g_ptr_array_add (out, ranges[i]);
}

static gboolean
is_in_any (TinyGraph *graph, TinyNode *store, GPtrArray *loops)
{
  for (guint i = 0; i < loops->len; i++)
    if (tiny_node_depends_on (graph, store, loops->pdata[i]))
      return TRUE;
  return FALSE;
}

/* Takes the first of @left, and what shares loops other than @around with what is taken, out of it, in
 * order. @out_loop: the outermost of these loops, NULL: there is none. A copy of a store may not depend
 * on a loop that others do; it is in that loop with them. */
static GPtrArray *
take_connected (TinyGraph *graph, GPtrArray *left, GPtrArray *around, TinyNode **out_loop)
{
  GPtrArray *taken = g_ptr_array_new ();
  g_autoptr (GPtrArray) loops = g_ptr_array_new ();
  add_loops (graph, left->pdata[0], around, loops);
  for (guint known = 0; known < loops->len;) {
    known = loops->len;
    for (guint i = 1; i < left->len; i++)
      if (is_in_any (graph, left->pdata[i], loops))
        add_loops (graph, left->pdata[i], around, loops);
  }
  *out_loop = NULL;
  for (guint i = 0; i < loops->len; i++)
    if (*out_loop == NULL
        || tiny_range_get_number (loops->pdata[i]) < tiny_range_get_number (*out_loop))
      *out_loop = loops->pdata[i];
  g_ptr_array_add (taken, g_ptr_array_remove_index (left, 0));
  for (guint i = 0; i < left->len;)
    if (is_in_any (graph, left->pdata[i], loops))
      g_ptr_array_add (taken, g_ptr_array_remove_index (left, i));
    else
      i++;
  return taken;
}

/* Puts @stores, which are inside of the loops @around, into the rest of their loops. */
static void
close_loops (TinyGraph *graph, GPtrArray *stores, GPtrArray *around, GPtrArray *out)
{
  g_autoptr (GPtrArray) left = g_ptr_array_copy (stores, NULL, NULL);
  while (left->len > 0) {
    TinyNode *done = left->pdata[0], *loop;
    g_autoptr (GPtrArray) same = take_connected (graph, left, around, &loop);
    if (loop != NULL) {
      g_autoptr (GPtrArray) inside = g_ptr_array_new ();
      g_ptr_array_add (inside, loop);
      g_ptr_array_add (around, loop);
      close_loops (graph, same, around, inside);
      g_ptr_array_set_size (around, (gint) around->len - 1);
      done = tiny_node_new (graph, TINY_OP_END, TINY_DTYPE_VOID, 1, inside->len,
                            (TinyNode *const *) inside->pdata, 0, NULL, NULL);
    }
    g_ptr_array_add (out, done);
    order_locals (graph, same, done, left);
  }
}

/* ---- copies of operands inside of reductions ---- */
/* Whether @store fills LOCAL memory in each round of a loop that a REDUCE closes. */
static gboolean
is_inside_nest (TinyGraph *graph, TinyNode *store)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (graph, store->sources[0], &n);
  for (guint i = 0; i < n && store->sources[0]->op == TINY_OP_LOCAL; i++)
    if (tiny_range_get_kind (ranges[i]) == TINY_RANGE_REDUCE)
      return TRUE;
  return FALSE;
}

/* Takes the stores that fill the same memory as the first of @inside, closes their own loops, and
 * lets all else read that memory after them. */
static void
place_copy (TinyGraph *graph, GPtrArray *inside, GPtrArray *others)
{
  g_autoptr (GPtrArray) same = g_ptr_array_new (), done = g_ptr_array_new ();
  g_autoptr (GPtrArray) around = g_ptr_array_new (), none = g_ptr_array_new ();
  TinyNode *memory = ((TinyNode *) inside->pdata[0])->sources[0];
  for (guint i = 0; i < inside->len;)
    if (((TinyNode *) inside->pdata[i])->sources[0] == memory)
      g_ptr_array_add (same, g_ptr_array_remove_index (inside, i));
    else
      i++;
  add_loops (graph, memory, none, around);
  close_loops (graph, same, around, done);
  TinyNode *then = after (graph, memory, done->len, (TinyNode *const *) done->pdata, NULL);
  TinyNode *all = tiny_node_sink (graph, others->len, (TinyNode *const *) others->pdata, NULL);
  all = tiny_graph_substitute (graph, all, &memory, &then, 1);
  memcpy (others->pdata, all->sources, others->len * sizeof *others->pdata);
}

static TinyNode *
place_copies (TinyGraph *graph, TinyNode *sink)
{
  g_autoptr (GPtrArray) inside = g_ptr_array_new (), others = g_ptr_array_new ();
  for (guint i = 0; i < sink->n_sources; i++)
    g_ptr_array_add (is_inside_nest (graph, sink->sources[i]) ? inside : others,
                     sink->sources[i]);
  if (inside->len == 0)
    return sink;
  while (inside->len > 0)
    place_copy (graph, inside, others);
  return tiny_node_sink (graph, others->len, (TinyNode *const *) others->pdata, sink->text);
}

gboolean
tiny_pass_reduce (TinyCodegen *cg, GError **error)
{
  cg->root = place_copies (cg->graph, cg->root);
  g_auto (Lower) self = { .graph = cg->graph, .target = cg->target };
  self.all_nests = g_ptr_array_new_with_free_func ((GDestroyNotify) nest_free);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (cg->graph, &cg->root, 1);
  find_nests (&self, order);
  cg->root = order_fills (&self, cg->root);
  lower_all (&self, cg->root);
  TinyNode *sink = tiny_node_map_get (&self.map, cg->root);
  g_autoptr (GPtrArray) stores = g_ptr_array_new ();
  g_autoptr (GPtrArray) roots = g_ptr_array_new (), around = g_ptr_array_new ();
  for (guint i = 0; i < sink->n_sources; i++)
    g_ptr_array_add (stores, sink->sources[i]);
  close_loops (cg->graph, stores, around, roots);
  cg->root
      = tiny_node_sink (cg->graph, roots->len, (TinyNode *const *) roots->pdata, sink->text);
  return TRUE;
}
