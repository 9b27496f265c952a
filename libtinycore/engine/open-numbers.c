/* SPDX-License-Identifier: MIT
 *
 * open-numbers.c: which numbers of a graph are variables of its plan, and the nodes that read them.
 *
 * A family are the graphs of one structure. It begins with constants: a program has some such graphs, each with a
 * kernel that knows its numbers. From MANY on, what has differed among them is open. An address or a number costs a kernel
 * nothing as a variable; a mask does. Large graphs whose masks differ, and that combine many values, stay as they are: there
 * a kernel with constants is worth more than the time to compile it. */
#include "engine/open-numbers.h"

#include <math.h>
#include <string.h>

#include "base/tiny-reuse.h"
#include "ir/tiny-limit.h"
#include "ir/tiny-shape.h"

enum {
  MANY = 3, /* graphs that are planned with constants … */
  MANY_LARGE
  = 16, /* … if large: a mask at a variable's place takes up to twice the time of one at a constant's */
  MOST_FAMILIES = 1024 /* known at a time */
};
/* Elements of all nodes of a graph: it is large, and its masks stay constants. */
#define LARGE         ((double) (1 << 20))
#define MOST_ELEMENTS ((double) (1 << 26))

typedef struct {
  guint64 structure[2];
  guint n, n_seen;
  gint64 *numbers;   /* of the first graph */
  gboolean *differs; /* some later one has another */
} Family;

static GHashTable *families; /* structure → Family, under the runtime's lock */

static guint
hash_structure (gconstpointer key)
{
  return (guint) ((const Family *) key)->structure[0];
}

static gboolean
equal_structures (gconstpointer a, gconstpointer b)
{
  return memcmp (((const Family *) a)->structure, ((const Family *) b)->structure,
                 2 * sizeof (guint64))
         == 0;
}

static void
family_free (gpointer data)
{
  Family *self = data;
  g_free (self->numbers);
  g_free (self->differs);
  g_free (self);
}

/* ---- the numbers of a graph ---- */
void
open_numbers_init (OpenNumbers *self)
{
  tiny_reuse_array (&self->numbers, sizeof (OpenNumber));
  tiny_reuse_array (&self->first, sizeof (guint));
}

void
open_numbers_close (OpenNumbers *self)
{
  g_free ((gpointer) self->is_open);
  self->is_open = NULL;
}

void
open_numbers_clear (OpenNumbers *self)
{
  open_numbers_close (self);
  g_clear_pointer (&self->numbers, g_array_unref);
  g_clear_pointer (&self->first, g_array_unref);
}

static void
set_first (OpenNumbers *self, guint place, guint number)
{
  const guint none = G_MAXUINT;
  while (self->first->len < place)
    g_array_append_val (self->first, none);
  g_array_append_val (self->first, number);
}

static guint
get_first (const OpenNumbers *self, guint place)
{
  return place < self->first->len ? g_array_index (self->first, guint, place) : G_MAXUINT;
}

static const OpenNumber *
get_number (const OpenNumbers *self, guint i)
{
  return &g_array_index (self->numbers, OpenNumber, i);
}

/* Numbers that 32 bits hold: those of a wider float or integer are looked at when it comes to that. */
static gboolean
is_number (const TinyNode *node)
{
  return node->op == TINY_OP_CONST && node->dtype != TINY_DTYPE_BOOL
         && node->dtype != TINY_DTYPE_INDEX && node->dtype != TINY_DTYPE_VOID
         && !tiny_node_is_open (node);
}

/* What a value and its mask are padded by is one number. */
static guint
find_alike (OpenNumbers *self, const TinyNode *node)
{
  enum { BACK = 8 };
  guint n = self->numbers->len;
  for (guint i = n; i-- > 0 && n - i <= BACK;) {
    const TinyNode *other = get_number (self, i)->node;
    if (other->op != node->op || other->ints != node->ints
        || other->sources[0]->shape != node->sources[0]->shape)
      continue;
    while (i > 0 && get_number (self, i - 1)->node == other)
      i--;
    return i;
  }
  return G_MAXUINT;
}

static guint
note_places (OpenNumbers *self, const TinyNode *node)
{
  const gint64 *v = node->ints->v;
  guint first = self->numbers->len;
  for (guint i = 0; i < node->ints->n / 2; i++) {
    gint64 whole = MAX (node->sources[0]->shape->v[i], node->shape->v[i]);
    gint64 part = MIN (node->sources[0]->shape->v[i], node->shape->v[i]);
    if (whole == part)
      continue;
    OpenNumber number = { node, i, v[2 * i], whole - part };
    g_array_append_val (self->numbers, number);
  }
  return first < self->numbers->len ? first : G_MAXUINT;
}

gboolean
open_numbers_note (OpenNumbers *self, const TinyNode *node, guint place, gint64 *out_rest)
{
  if (is_number (node)) {
    OpenNumber number = { node, 0, node->arg, 0 };
    out_rest[0] = self->numbers->len;
    set_first (self, place, self->numbers->len);
    g_array_append_val (self->numbers, number);
    return TRUE;
  }
  if ((node->op != TINY_OP_SHRINK && node->op != TINY_OP_PAD)
      || node->shape->n > TINY_LIMIT_MAX_RANK)
    return FALSE;
  guint first = find_alike (self, node);
  if (first == G_MAXUINT)
    first = note_places (self, node);
  if (first == G_MAXUINT)
    return FALSE;
  set_first (self, place, first);
  memset (out_rest, 0, node->ints->n * sizeof *out_rest);
  memcpy (out_rest, node->shape->v, node->shape->n * sizeof *out_rest);
  out_rest[node->ints->n] = first;
  return TRUE;
}

/* ---- deciding ---- */

/* Elements of the longer side of a SHRINK or PAD along the number's axis. */
static gint64
get_whole (const OpenNumber *number)
{
  const TinyNode *node = number->node;
  return MAX (node->sources[0]->shape->v[number->axis], node->shape->v[number->axis]);
}

/* The 32 bits that stand for a number, whose dtype is one that @number has; positions are counted in as many. */
static gboolean
get_bits (const OpenNumber *number, gint64 *out)
{
  const TinyNode *node = number->node;
  *out = number->value;
  if (node->op != TINY_OP_CONST)
    return get_whole (number) <= G_MAXINT32;
  if (!tiny_dtype_is_float ((TinyDType) node->dtype))
    return number->value >= G_MININT32 && number->value <= G_MAXINT32;
  double wide = tiny_node_get_float (node);
  float narrow = (float) wide;
  gint32 bits;
  memcpy (&bits, &narrow, sizeof bits);
  *out = bits;
  return (double) narrow == wide; /* no NaN either: it has more bits than a value */
}

static Family *
find_family (const OpenNumbers *self, const guint64 structure[2])
{
  const Family probe = { .structure = { structure[0], structure[1] } };
  if (families == NULL)
    families = g_hash_table_new_full (hash_structure, equal_structures, NULL, family_free);
  Family *family = g_hash_table_lookup (families, &probe);
  if (family != NULL)
    return family;
  if (g_hash_table_size (families) >= MOST_FAMILIES)
    g_hash_table_remove_all (families);
  family = g_new0 (Family, 1);
  *family = probe;
  family->n = self->numbers->len;
  family->numbers = g_new (gint64, family->n + 1);
  family->differs = g_new0 (gboolean, family->n + 1);
  for (guint i = 0; i < family->n; i++)
    family->numbers[i] = get_number (self, i)->value;
  g_hash_table_add (families, family);
  return family;
}

gboolean
open_numbers_decide (OpenNumbers *self,
                     const guint64 structure[2],
                     double n_elements,
                     gboolean reduces)
{
  gint64 bits;
  if (self->numbers->len == 0)
    return FALSE;
  Family *family = find_family (self, structure);
  guint n_open = 0, n_masks = 0;
  gboolean fits = family->n == self->numbers->len;
  for (guint i = 0; i < self->numbers->len && fits; i++) {
    const OpenNumber *number = get_number (self, i);
    family->differs[i] = family->differs[i] || number->value != family->numbers[i];
    n_open += family->differs[i];
    n_masks += family->differs[i] && number->node->op == TINY_OP_PAD;
    fits = !family->differs[i] || get_bits (number, &bits);
  }
  const double most = n_masks == 0 ? INFINITY : reduces ? LARGE : MOST_ELEMENTS;
  const guint many = n_masks > 0 && n_elements > LARGE ? MANY_LARGE : MANY;
  family->n_seen += family->n_seen <= many;
  if (!fits || n_elements > most || n_open == 0 || n_open > OPEN_MOST || family->n_seen <= many)
    return FALSE;
  self->is_open = g_memdup2 (family->differs, family->n * sizeof *family->differs);
  return TRUE;
}

void
open_numbers_bind (const OpenNumbers *self, GArray *variables)
{
  for (guint i = 0; self->is_open != NULL && i < self->numbers->len; i++) {
    const OpenNumber *number = get_number (self, i);
    TinyBoundVariable variable = { NULL, 0, number->max, 0 };
    if (self->is_open[i] && get_bits (number, &variable.value))
      g_array_append_val (variables, variable);
  }
}

/* ---- the nodes ---- */
static TinyNode *
make_variable (const OpenNumbers *self, TinyGraph *graph, guint i)
{
  const OpenNumber *number = get_number (self, i);
  gint64 bounds[] = { 0, number->max };
  guint at = 0;
  if (number->node->op == TINY_OP_CONST) {
    bounds[0] = G_MININT32;
    bounds[1] = G_MAXINT32;
  }
  for (guint k = 0; k < i; k++)
    at += self->is_open[k];
  return tiny_node_new (graph, TINY_OP_VARIABLE, TINY_DTYPE_I32, 1, 0, NULL, at,
                        tiny_graph_ints (graph, bounds, 2), NULL);
}

static TinyNode *
make_number (TinyGraph *graph, TinyNode *variable, TinyDType dtype)
{
  if (tiny_dtype_is_float (dtype))
    variable = tiny_node_new (graph, TINY_OP_BITCAST, TINY_DTYPE_F32, 1, 1, &variable, 0, NULL,
                              NULL);
  return tiny_node_cast (graph, variable, dtype);
}

/* @n elements of @x along @axis from @start on, zeros where there are none: position i is read at i + start. */
static TinyNode *
read_from (TinyGraph *graph, TinyNode *x, guint axis, TinyNode *start, gint64 n)
{
  gint64 dims[TINY_LIMIT_MAX_RANK];
  TinyNode *at = tiny_node_new (graph, TINY_OP_IOTA, TINY_DTYPE_I32, 1, 0, NULL, 0,
                                tiny_graph_ints (graph, &n, 1), NULL);
  at = tiny_node_binary (graph, TINY_OP_ADD, at, tiny_node_broadcast (graph, start, &n, 1));
  for (guint i = 0; i < x->shape->n; i++)
    dims[i] = i == axis ? n : 1;
  at = tiny_node_reshape (graph, at, dims, x->shape->n);
  memcpy (dims, x->shape->v, x->shape->n * sizeof *dims);
  dims[axis] = n;
  at = tiny_node_broadcast (graph, at, dims, x->shape->n);
  return tiny_node_gather (graph, x, axis, at);
}

TinyNode *
open_numbers_remake (const OpenNumbers *self,
                     TinyGraph *graph,
                     const TinyNode *node,
                     guint place,
                     TinyNode *const *sources)
{
  guint first = get_first (self, place), n_open = 0;
  if (self->is_open == NULL || first == G_MAXUINT)
    return NULL;
  if (node->op == TINY_OP_CONST)
    return self->is_open[first] ? make_number (graph, make_variable (self, graph, first),
                                               (TinyDType) node->dtype)
                                : NULL;
  const TinyNode *owner = get_number (self, first)->node;
  gint64 ints[2 * TINY_LIMIT_MAX_RANK];
  TinyNode *x = sources[0];
  memcpy (ints, node->ints->v, node->ints->n * sizeof *ints);
  for (guint i = first; i < self->numbers->len && get_number (self, i)->node == owner; i++) {
    guint axis = get_number (self, i)->axis;
    if (!self->is_open[i])
      continue;
    TinyNode *start = make_variable (self, graph, i);
    if (node->op == TINY_OP_PAD)
      start = tiny_node_unary (graph, TINY_OP_NEG, start);
    x = read_from (graph, x, axis, start, node->shape->v[axis]);
    ints[2 * axis] = 0;
    ints[2 * axis + 1] = node->op == TINY_OP_PAD ? 0 : node->shape->v[axis];
    n_open++;
  }
  return n_open > 0 ? tiny_node_move (graph, (TinyOp) node->op, x, ints, node->ints->n) : NULL;
}
