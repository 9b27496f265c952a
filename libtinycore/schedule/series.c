/* SPDX-License-Identifier: MIT
 *
 * series.c: kernels of a schedule that differ in whole numbers alone become one.
 *
 * The T steps of a recurrence are T kernels, which read and write at another place each and are the same otherwise.
 * Kernels are in a series if their graphs are equal node by node, but for constants that are added or compared. In
 * each that differs, b + a × v stands for the constant, where v is a variable and a the greatest factor that all
 * differences have: places stay the multiples that they were, so what was aligned is. What runs in step shares a v, as
 * a place and the number of the step do. */
#include <string.h>

#include "base/tiny-digest.h"
#include "base/tiny-timing.h"
#include "schedule/tiny-schedule.h"
#include "schedule/weights.h"

enum {
  LEAST = 4,     /* kernels of a series: fewer are compiled with what each knows */
  MOST = 1 << 30 /* numbers are between this and its negative: differences are 32 bits */
};

/* A kernel with its numbers. */
typedef struct {
  TinyDigest structure; /* of all but the numbers */
  guint item;
  GPtrArray *numbers; /* CONST nodes, in the order in which they are met */
} Member;

static void
member_free (gpointer data)
{
  Member *self = data;
  g_ptr_array_unref (self->numbers);
  g_free (self);
}

/* Whether a number that @node reads may be a variable: extents and strides are what kernels are made for. */
static gboolean
takes_variables (const TinyNode *node)
{
  switch (node->op) {
  case TINY_OP_ADD:
  case TINY_OP_SUB:
  case TINY_OP_MAX:
  case TINY_OP_CMPLT:
  case TINY_OP_CMPNE:
  case TINY_OP_WHERE:
    return TRUE;
  default:
    return FALSE;
  }
}

static gboolean
is_number (const TinyNode *node)
{
  return node->op == TINY_OP_CONST && node->arg > -MOST && node->arg < MOST
         && (node->dtype == TINY_DTYPE_INDEX || node->dtype == TINY_DTYPE_I32
             || node->dtype == TINY_DTYPE_I64)
         && !tiny_node_is_open (node);
}

static Member *
member_new (TinyGraph *graph, const TinyScheduleItem *item, guint i)
{
  Member *self = g_new0 (Member, 1);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, (TinyNode **) &item->kernel, 1);
  g_autofree gboolean *is_fixed = g_new0 (gboolean, order->len);
  self->item = i;
  self->numbers = g_ptr_array_new ();
  for (guint k = 0; k < order->len; k++) {
    const TinyNode *node = order->pdata[k];
    for (guint s = 0; s < node->n_sources && !takes_variables (node); s++)
      is_fixed[node->sources[s]->place] = TRUE;
  }
  tiny_digest_absorb (&self->structure, g_str_hash (item->device));
  tiny_digest_absorb (&self->structure, (guint64) item->n_buffers << 32 | item->n_written);
  for (guint k = 0; k < order->len; k++) {
    TinyNode *node = order->pdata[k];
    const gboolean is_open = !is_fixed[k] && is_number (node);
    if (is_open)
      g_ptr_array_add (self->numbers, node);
    tiny_digest_absorb (&self->structure,
                        node->op | (guint64) node->dtype << 16 | (guint64) node->lanes << 32);
    tiny_digest_absorb (&self->structure, is_open ? 0 : (guint64) node->arg);
    tiny_digest_absorb (&self->structure,
                        (guint64) (gsize) node->ints); /* equal ones are the same in a graph */
    if (node->op != TINY_OP_SINK)                      /* whose text is the kernel's name */
      tiny_digest_absorb (&self->structure, (guint64) (gsize) node->text);
    for (guint s = 0; s < node->n_sources; s++)
      tiny_digest_absorb (&self->structure, node->sources[s]->place);
  }
  return self;
}

static int
compare_members (gconstpointer a, gconstpointer b)
{
  const Member *x = *(const Member *const *) a, *y = *(const Member *const *) b;
  const int order = memcmp (&x->structure, &y->structure, sizeof x->structure);
  return order != 0 ? order : (int) x->item - (int) y->item;
}

static gint64
get_number (const Member *member, guint i)
{
  return ((const TinyNode *) member->numbers->pdata[i])->arg;
}

/* Number @i of @n members as @out_first + @out_step × v, with v ≥ 0 for each in @out_values. FALSE: all have the same. */
static gboolean
find_progress (Member *const *members,
               guint n,
               guint i,
               gint64 *out_values,
               gint64 *out_first,
               gint64 *out_step)
{
  const gint64 first = get_number (members[0], i);
  gint64 step = 0, least = 0;
  for (guint k = 0; k < n; k++) {
    gint64 a = ABS (get_number (members[k], i) - first), b = ABS (step);
    while (a != 0) {
      const gint64 rest = b % a;
      b = a;
      a = rest;
    }
    /* What differs first says which way v goes: numbers that run against each other share it. */
    step = step < 0 || (step == 0 && get_number (members[k], i) < first) ? -b : b;
  }
  if (step == 0)
    return FALSE;
  for (guint k = 0; k < n; k++) {
    out_values[k] = (get_number (members[k], i) - first) / step;
    least = MIN (least, out_values[k]);
  }
  for (guint k = 0; k < n; k++)
    out_values[k] -= least;
  *out_first = first + step * least;
  *out_step = step;
  return TRUE;
}

static TinyNode *
make_number (
    TinyGraph *graph, TinyDType dtype, guint variable, gint64 most, gint64 first, gint64 step)
{
  const gint64 bounds[] = { 0, most };
  TinyNode *v = tiny_node_new (graph, TINY_OP_VARIABLE, TINY_DTYPE_I32, 1, 0, NULL, variable,
                               tiny_graph_ints (graph, bounds, 2), NULL);
  v = tiny_node_cast (graph, v, dtype);
  if (step != 1)
    v = tiny_node_binary (graph, TINY_OP_MUL, v, tiny_node_const_int (graph, dtype, step));
  return first == 0 ? v
                    : tiny_node_binary (graph, TINY_OP_ADD, v,
                                        tiny_node_const_int (graph, dtype, first));
}

/* Makes one kernel of @n that are alike. */
static void
join (TinySchedule *self, Member *const *members, guint n)
{
  const guint n_given = self->items[members[0]->item].n_variables;
  g_autoptr (GPtrArray) from = g_ptr_array_new (), to = g_ptr_array_new ();
  g_autoptr (GPtrArray) variables = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < members[0]->numbers->len; i++) {
    g_autofree gint64 *values = g_new (gint64, n);
    TinyNode *number = members[0]->numbers->pdata[i];
    gint64 first, step, most = 0;
    guint at = 0;
    if (!find_progress (members, n, i, values, &first, &step))
      continue;
    for (guint k = 0; k < n; k++)
      most = MAX (most, values[k]);
    while (at < variables->len
           && memcmp (variables->pdata[at], values, n * sizeof *values) != 0)
      at++;
    if (at == variables->len)
      g_ptr_array_add (variables, g_steal_pointer (&values));
    g_ptr_array_add (from, number);
    g_ptr_array_add (to, make_number (self->graph, (TinyDType) number->dtype, n_given + at,
                                      most, first, step));
  }
  if (variables->len == 0 || n_given + variables->len > schedule_weights.max_variables)
    return;
  TinyNode *kernel
      = tiny_graph_substitute (self->graph, self->items[members[0]->item].kernel,
                               (TinyNode **) from->pdata, (TinyNode **) to->pdata, from->len);
  for (guint k = 0; k < n; k++) {
    TinyScheduleItem *item = &self->items[members[k]->item];
    item->kernel = kernel;
    item->n_numbers = variables->len;
    item->numbers = g_new (gint64, variables->len);
    for (guint v = 0; v < variables->len; v++)
      item->numbers[v] = ((const gint64 *) variables->pdata[v])[k];
  }
}

void
tiny_schedule_join_series (TinySchedule *self)
{
  TINY_TIMED ("schedule", "series");
  g_autoptr (GPtrArray) members = g_ptr_array_new_with_free_func (member_free);
  for (guint i = 0; i < self->n_items; i++)
    if (self->items[i].kind == TINY_SCHEDULE_KERNEL && self->items[i].operation == NULL
        && self->items[i].n_numbers == 0)
      g_ptr_array_add (members, member_new (self->graph, &self->items[i], i));
  g_ptr_array_sort (members, compare_members);
  for (guint i = 0, n; i < members->len; i += n) {
    Member *const *first = (Member *const *) &members->pdata[i];
    for (n = 1;
         i + n < members->len
         && memcmp (&first[0]->structure, &first[n]->structure, sizeof first[0]->structure)
                == 0;)
      n++;
    if (n >= LEAST)
      join (self, first, n);
  }
}
