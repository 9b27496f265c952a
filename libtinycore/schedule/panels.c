/* SPDX-License-Identifier: MIT
 *
 * panels.c: copies that only contractions read lie in memory as they are read.
 *
 * A contraction computes some neighbouring outputs at once, and for these it reads a panel of its
 * operand (…, K, N): a few columns of N, all of K. In rows of N elements that is a short piece of
 * each of K rows; as (…, N / B, K, B) it is one piece. So where a temporary is a mere copy, of
 * weights say, whose readers are all contractions over it with their vectors along N, it is written
 * in that order: its writer and its readers get two loops for the one along N, N / B and B. */
#include "rewrite/tiny-bounds.h"
#include "schedule/plan.h"
#include "schedule/weights.h"

typedef struct {
  guint item;
  TinyNode *access; /* the LOAD or STORE of the buffer */
  TinyNode *vector; /* the loop along N; NULL: it is two already */
} User;

typedef struct {
  Plan *plan;
  TinyGraph *graph;
  guint buffer;
  gint64 block, n, size; /* B; N; K × N, the elements of which panels are cut */
  GArray *users;         /* User; the writer first */
} Panels;

static PlanItem *
get_item (Panels *self, guint i)
{
  return &g_array_index (self->plan->items, PlanItem, i);
}

static gboolean
is_closed (const GPtrArray *order, TinyNode *range)
{
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    for (guint s = 1; s < node->n_sources && node->op == TINY_OP_REDUCE; s++)
      if (node->sources[s] == range)
        return TRUE;
  }
  return FALSE;
}

/* The loop of @index with stride 1. */
static TinyNode *
find_innermost (const Affine *index)
{
  for (guint i = 0; i < index->n; i++)
    if (index->terms[i].mul == 1)
      return index->terms[i].atom;
  return NULL;
}

/* The loop that goes on where @block steps end, or NULL. */
static TinyNode *
find_outer (const Affine *index, gint64 block)
{
  for (guint i = 0; i < index->n; i++)
    if (index->terms[i].mul == block)
      return index->terms[i].atom;
  return NULL;
}

/* Whether @index is made of whole rows of @n elements besides the loops along a row, and of whole
 * pieces of @size elements or of steps inside of one. */
static gboolean
is_in_rows (const Affine *index, gint64 block, gint64 n, gint64 size)
{
  for (guint i = 0; i < index->n; i++) {
    const AffineTerm *term = &index->terms[i];
    if (term->atom->op != TINY_OP_RANGE || term->mul <= 0)
      return FALSE;
    gint64 end = term->mul * tiny_range_get_extent (term->atom);
    gboolean along = (term->mul == 1 || term->mul % block == 0) && end <= n;
    if (!along && (term->mul % n != 0 || (term->mul % size != 0 && end > size)))
      return FALSE;
  }
  return index->offset == 0;
}

/* Whether vectors go along @range in each store that has it. */
static gboolean
is_vector_axis (Panels *self, TinyNode *kernel, TinyNode *range)
{
  for (guint i = 0; i < kernel->n_sources; i++) {
    const Affine *index = affine_read (&self->plan->affines, kernel->sources[i]->sources[1]);
    if (tiny_node_depends_on (self->graph, kernel->sources[i], range)
        && (index == NULL || affine_get_mul (index, range) != 1))
      return FALSE;
  }
  return TRUE;
}

/* The sum of products in which @load is a factor, and the other one is the same along @range. */
static TinyNode *
find_contraction (Panels *self, const GPtrArray *order, TinyNode *load, TinyNode *range)
{
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op != TINY_OP_REDUCE || node->arg != TINY_OP_ADD
        || node->sources[0]->op != TINY_OP_MUL)
      continue;
    for (guint s = 0; s < 2; s++) {
      TinyNode *x = node->sources[0]->sources[s], *other = node->sources[0]->sources[1 - s];
      while (x->op == TINY_OP_CAST)
        x = x->sources[0];
      if (x == load && !tiny_node_depends_on (self->graph, other, range))
        return node;
    }
  }
  return NULL;
}

/* How many outputs of @contraction use the same of @load. */
static gint64
count_uses (Panels *self, TinyNode *contraction, TinyNode *load)
{
  guint n;
  gint64 uses = 1;
  TinyNode *const *ranges = tiny_node_get_ranges (self->graph, contraction, &n);
  for (guint i = 0; i < n; i++)
    if (!tiny_node_depends_on (self->graph, load, ranges[i]))
      uses *= tiny_range_get_extent (ranges[i]);
  return uses;
}

/* The extent of the writer's loop along N; 0: it is not known yet. */
static gint64
count_columns (Panels *self)
{
  const User *writer = self->users->len > 0 ? &g_array_index (self->users, User, 0) : NULL;
  gboolean known = writer && writer->access->op == TINY_OP_STORE && writer->vector
                   && writer->vector->op == TINY_OP_RANGE;
  return known ? tiny_range_get_extent (writer->vector) : 0;
}

/* Notes how kernel @i reads the buffer; FALSE: not as panels, or not as those before. */
static gboolean
add_reader (Panels *self, guint i, const GPtrArray *order, TinyNode *load)
{
  const Affine *index = affine_read (&self->plan->affines, load->sources[1]);
  TinyNode *vector = index ? find_innermost (index) : NULL;
  if (vector == NULL || vector->op != TINY_OP_RANGE || load->n_sources > 2
      || is_closed (order, vector))
    return FALSE;
  TinyNode *contraction = find_contraction (self, order, load, vector);
  gint64 n = tiny_range_get_extent (vector), size = 0;
  gboolean split = n == self->block;
  gint64 n_whole = count_columns (self);
  TinyNode *outer = vector;
  while (n < n_whole && (outer = find_outer (index, n)) != NULL && outer->op == TINY_OP_RANGE
         && tiny_range_get_extent (outer) > 1)
    n *= tiny_range_get_extent (outer);
  for (guint t = 0; t < index->n; t++)
    if (is_closed (order, index->terms[t].atom))
      size = MAX (size, index->terms[t].mul * tiny_range_get_extent (index->terms[t].atom));
  if (contraction == NULL || n % self->block != 0 || n == self->block || size == 0
      || size % n != 0 || !is_in_rows (index, self->block, n, size)
      || !is_vector_axis (self, get_item (self, i)->kernel, vector)
      || count_uses (self, contraction, load) < schedule_weights.pack_min_reuse
      || (self->n != 0 && (self->n != n || self->size != size)))
    return FALSE;
  self->n = n;
  self->size = size;
  User user = { i, load, split ? NULL : vector };
  g_array_append_val (self->users, user);
  return TRUE;
}

/* Whether kernel @i, the buffer's writer, is a mere copy; notes it. */
static gboolean
add_writer (Panels *self, guint i, const GPtrArray *order)
{
  TinyNode *store = get_item (self, i)->kernel->sources[0];
  for (guint k = 0; k < order->len; k++) {
    TinyNode *node = order->pdata[k];
    if (node->op == TINY_OP_REDUCE || (node->op == TINY_OP_STORE && node != store))
      return FALSE;
  }
  const Affine *index = affine_read (&self->plan->affines, store->sources[1]);
  TinyNode *vector = index ? find_innermost (index) : NULL;
  User user = { i, store, vector };
  g_array_insert_val (self->users, 0, user);
  return vector != NULL && store->n_sources == 3;
}

/* Looks at all that item @i does with the buffer. */
static gboolean
look_at (Panels *self, guint i)
{
  const PlanItem *item = get_item (self, i);
  guint slot = 0, n_loads = 0;
  while (slot < item->n_buffers && item->buffers[slot] != self->buffer)
    slot++;
  if (slot == item->n_buffers)
    return TRUE;
  if (item->kind != TINY_SCHEDULE_KERNEL || item->operation != NULL)
    return FALSE;
  TinyNode *kernel = item->kernel, *load = NULL;
  const GPtrArray *order = schedule_list_nodes (self->plan, kernel);
  for (guint k = 0; k < order->len; k++) {
    TinyNode *node = order->pdata[k];
    if (node->op == TINY_OP_LOAD && node->sources[0]->op == TINY_OP_PARAM
        && node->sources[0]->arg == slot) {
      load = node;
      n_loads++;
    }
  }
  return slot < item->n_written ? n_loads == 0 && add_writer (self, i, order)
                                : n_loads == 1 && add_reader (self, i, order, load);
}

/* ---- the other order ---- */
/* Where @index of rows is in panels; ranges are looked up in @to. */
static TinyNode *
index_in_panels (Panels *self,
                 const Affine *index,
                 const User *user,
                 GHashTable *to,
                 const Affine *outer,
                 const Affine *inner)
{
  AffinePool *pool = &self->plan->affines;
  gint64 panel = self->size / self->n * self->block;
  const Affine *sum = affine_const (pool, 0);
  for (guint i = 0; i < index->n; i++) {
    const AffineTerm *term = &index->terms[i];
    if (term->atom == user->vector) {
      sum = affine_sum (pool, sum, 1, outer, panel, 0);
      sum = affine_sum (pool, sum, 1, inner, 1, 0);
      continue;
    }
    gint64 mul = term->mul == 1                ? 1
                 : term->mul < self->n         ? term->mul / self->block * panel
                 : term->mul % self->size == 0 ? term->mul
                                               : term->mul / self->n * self->block;
    TinyNode *range = g_hash_table_lookup (to, term->atom);
    sum = affine_sum (pool, sum, 1, affine_range (pool, range), mul, 0);
  }
  return affine_to_node (pool, sum);
}

/* The user's kernel over the buffer in panels. Ranges after its vector loop get the next numbers. */
static void
rewrite (Panels *self, const User *user)
{
  TinyGraph *graph = self->graph;
  PlanItem *item = get_item (self, user->item);
  AffinePool *pool = &self->plan->affines;
  g_autoptr (GHashTable) to = g_hash_table_new (NULL, NULL);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &item->kernel, 1);
  g_autofree TinyNode **from = g_new (TinyNode *, order->len + 1);
  g_autofree TinyNode **made = g_new (TinyNode *, order->len + 1);
  const Affine *outer = NULL, *inner = NULL;
  guint n = 0, at = user->vector ? tiny_range_get_number (user->vector) : G_MAXUINT;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *range = order->pdata[i];
    if (range->op != TINY_OP_RANGE)
      continue;
    guint number = tiny_range_get_number (range);
    from[n] = range;
    made[n] = number <= at
                  ? range
                  : tiny_node_range_const (graph, number + 1, tiny_range_get_kind (range),
                                           tiny_range_get_extent (range));
    g_hash_table_insert (to, range, made[n++]);
  }
  if (user->vector != NULL) {
    TinyRangeKind kind = tiny_range_get_kind (user->vector);
    outer = affine_range (
        pool, tiny_node_range_const (graph, at, kind,
                                     tiny_range_get_extent (user->vector) / self->block));
    inner = affine_range (pool, tiny_node_range_const (graph, at + 1, kind, self->block));
    for (guint i = 0; i < n; i++)
      if (from[i] == user->vector)
        made[i] = affine_to_node (pool, affine_sum (pool, outer, self->block, inner, 1, 0));
  }
  const Affine *rows = affine_read (pool, user->access->sources[1]);
  TinyNode *index = index_in_panels (self, rows, user, to, outer, inner);
  TinyNode *param = user->access->sources[0], *kernel = item->kernel;
  if (user->access->op == TINY_OP_LOAD) {
    from[n] = user->access;
    made[n++] = tiny_node_new (graph, TINY_OP_LOAD, user->access->dtype, 1, 2,
                               (TinyNode *[]){ param, index }, 0, NULL, NULL);
    item->kernel = tiny_graph_substitute (graph, kernel, from, made, n);
    return;
  }
  TinyNode *value = tiny_graph_substitute (graph, user->access->sources[2], from, made, n);
  TinyNode *store = tiny_node_new (graph, TINY_OP_STORE, TINY_DTYPE_VOID, 1, 3,
                                   (TinyNode *[]){ param, index, value }, 0, NULL, NULL);
  item->kernel = tiny_node_sink (graph, 1, &store, NULL);
}

static gboolean
can_be_panels (Panels *self, const GArray *items)
{
  for (guint i = 0; i < items->len; i++)
    if (!look_at (self, g_array_index (items, guint, i)))
      return FALSE;
  if (self->users->len < 2 || self->n == 0)
    return FALSE;
  const User *writer = &g_array_index (self->users, User, 0);
  if (writer->access->op != TINY_OP_STORE || writer->vector->op != TINY_OP_RANGE
      || tiny_range_get_extent (writer->vector) != self->n)
    return FALSE;
  const Affine *index = affine_read (&self->plan->affines, writer->access->sources[1]);
  return is_in_rows (index, self->n, self->n, self->size);
}

/* The items (guint) that have each temporary; NULL for other buffers. */
static GArray **
find_items (Plan *plan)
{
  GArray **items = g_new0 (GArray *, plan->buffers->len + 1);
  for (guint i = 0; i < plan->items->len; i++) {
    const PlanItem *item = &g_array_index (plan->items, PlanItem, i);
    for (guint j = 0; j < item->n_buffers; j++) {
      guint b = item->buffers[j];
      if (schedule_get_buffer (plan, b)->kind != TINY_SCHEDULE_TEMPORARY)
        continue;
      if (items[b] == NULL)
        items[b] = g_array_new (FALSE, FALSE, sizeof (guint));
      g_array_append_val (items[b], i);
    }
  }
  return items;
}

void
schedule_lay_panels (Plan *plan)
{
  g_autofree GArray **items = find_items (plan);
  for (guint b = 0; b < plan->buffers->len; b++) {
    if (items[b] == NULL)
      continue;
    g_autoptr (GArray) users = g_array_new (FALSE, FALSE, sizeof (User));
    Panels self = { plan, plan->graph, b, schedule_weights.pack_block, 0, 0, users };
    if (can_be_panels (&self, items[b]))
      for (guint i = 0; i < users->len; i++)
        rewrite (&self, &g_array_index (users, User, i));
    g_array_unref (items[b]);
  }
}
