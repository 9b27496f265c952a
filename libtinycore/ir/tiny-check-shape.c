/* SPDX-License-Identifier: MIT
 *
 * tiny-check-shape.c: whether shapes fit, asked before tiny_node_new() computes with them.
 *
 * Sizes are bounded so that element numbers fit in INDEX with room to spare, counting axes of size
 * 0 as 1: strides, too, stay in bounds. */
#include "ir/tiny-check-private.h"

#include "ir/tiny-dtype.h"
#include "ir/tiny-shape.h"

enum { MAX_RANK = 32 };

#define FAIL(...) return g_strdup_printf (__VA_ARGS__)

static char *
check_size (const gint64 *dims, guint n)
{
  if (n > MAX_RANK)
    FAIL ("%u axes, more than %d", n, MAX_RANK);
  gint64 size = 1;
  for (guint i = 0; i < n; i++) {
    if (dims[i] < 0)
      FAIL ("axis %u has size %" G_GINT64_FORMAT, i, dims[i]);
    if (__builtin_mul_overflow (size, MAX (dims[i], 1), &size)
        || size > tiny_dtype_get_max (TINY_DTYPE_INDEX))
      FAIL ("more elements than an index can count");
  }
  return NULL;
}

static char *
check_elementwise (guint n, TinyNode *const *sources)
{
  const TinyInts *shape = NULL;
  for (guint i = 0; i < n; i++) {
    const TinyInts *s = sources[i]->shape;
    if (s == NULL || s->n == 0)
      continue;
    if (shape == NULL)
      shape = s;
    if (!tiny_shape_equal (s, shape)) {
      g_autofree char *a = tiny_shape_to_string (shape), *b = tiny_shape_to_string (s);
      FAIL ("shapes %s and %s differ", a, b);
    }
  }
  return NULL;
}

/* Axis numbers below @rank, each at most once. */
static char *
check_axes (const TinyInts *axes, guint rank)
{
  guint32 seen = 0;
  for (guint i = 0; i < axes->n; i++) {
    if (axes->v[i] < 0 || axes->v[i] >= (gint64) rank)
      FAIL ("axis %" G_GINT64_FORMAT " of %u", axes->v[i], rank);
    if (seen >> axes->v[i] & 1)
      FAIL ("axis %" G_GINT64_FORMAT " twice", axes->v[i]);
    seen |= 1u << axes->v[i];
  }
  return NULL;
}

static char *
check_reshape (const TinyInts *in, const TinyInts *ints)
{
  char *why = check_size (ints->v, ints->n);
  if (why == NULL && tiny_shape_get_n_elements (in) != tiny_shape_get_n_elements (ints)) {
    g_autofree char *a = tiny_shape_to_string (in), *b = tiny_shape_to_string (ints);
    FAIL ("%s and %s differ in their number of elements", a, b);
  }
  return why;
}

static char *
check_expand (const TinyInts *in, const TinyInts *ints)
{
  char *why = check_size (ints->v, ints->n);
  if (why != NULL)
    return why;
  gboolean fits = in->n == ints->n;
  for (guint i = 0; fits && i < in->n; i++)
    fits = in->v[i] == ints->v[i] || in->v[i] == 1;
  if (!fits) {
    g_autofree char *a = tiny_shape_to_string (in), *b = tiny_shape_to_string (ints);
    FAIL ("%s does not expand to %s", a, b);
  }
  return NULL;
}

static char *
check_pairs (TinyOp op, const TinyInts *in, const TinyInts *ints)
{
  gint64 dims[MAX_RANK];
  if (ints->n != 2 * in->n)
    FAIL ("%u numbers for %u axes", ints->n, in->n);
  for (guint i = 0; i < in->n; i++) {
    gint64 a = ints->v[2 * i], b = ints->v[2 * i + 1];
    if (op == TINY_OP_SHRINK) {
      if (a < 0 || b < a || b > in->v[i])
        FAIL ("%" G_GINT64_FORMAT " to %" G_GINT64_FORMAT
              " of axis %u of size %" G_GINT64_FORMAT,
              a, b, i, in->v[i]);
      dims[i] = b - a;
    } else if (a < 0 || b < 0 || __builtin_add_overflow (in->v[i], a, &dims[i])
               || __builtin_add_overflow (dims[i], b, &dims[i])) {
      FAIL ("pads axis %u by %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT, i, a, b);
    }
  }
  return check_size (dims, in->n);
}

static char *
check_shear (const TinyInts *in, const TinyInts *ints)
{
  gint64 dims[MAX_RANK], at, along;
  if (ints->n != 7)
    FAIL ("%u numbers, not 7", ints->n);
  const gint64 *v = ints->v;
  if (v[0] < 0 || v[0] >= (gint64) in->n || v[1] < 0 || v[1] >= (gint64) in->n)
    FAIL ("axes %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT " of %u", v[0], v[1], in->n);
  if (v[0] == v[1] && v[3] != 0)
    FAIL ("steps along its own axis");
  if (v[5] < 1)
    FAIL ("divisor %" G_GINT64_FORMAT, v[5]);
  for (guint i = 0; i < in->n; i++)
    dims[i] = (gint64) i == v[0] ? v[6] : in->v[i];
  char *why = check_size (dims, in->n);
  if (why != NULL)
    return why;
  if (__builtin_mul_overflow (v[6], v[2], &at)
      || __builtin_mul_overflow (in->v[v[1]], v[3], &along)
      || __builtin_add_overflow (at, along, &at) || __builtin_add_overflow (at, v[4], &at)
      || at > tiny_dtype_get_max (TINY_DTYPE_INDEX)
      || at < tiny_dtype_get_min (TINY_DTYPE_INDEX)
      || v[5] > tiny_dtype_get_max (TINY_DTYPE_INDEX))
    FAIL ("reads beyond what an index can count");
  return NULL;
}

static char *
check_moved (TinyOp op, TinyNode *source, const TinyInts *ints)
{
  const TinyInts *in = source->shape;
  if (in == NULL)
    FAIL ("its source has no shape");
  if (in->n > MAX_RANK)
    FAIL ("its source has %u axes, more than %d", in->n, MAX_RANK);
  if (ints == NULL)
    FAIL ("has no list of integers");
  switch (op) {
  case TINY_OP_RESHAPE:
    return check_reshape (in, ints);
  case TINY_OP_EXPAND:
    return check_expand (in, ints);
  case TINY_OP_PAD:
  case TINY_OP_SHRINK:
    return check_pairs (op, in, ints);
  case TINY_OP_SHEAR:
    return check_shear (in, ints);
  case TINY_OP_PERMUTE:
    if (ints->n != in->n)
      FAIL ("%u numbers for %u axes", ints->n, in->n);
    return check_axes (ints, in->n);
  default: /* FLIP, REDUCE over axes */
    return check_axes (ints, in->n);
  }
}

static char *
check_assign (TinyNode *const *sources)
{
  const TinyInts *to = sources[0]->shape, *from = sources[1]->shape;
  if (to == NULL || from == NULL)
    FAIL ("its sources have no shapes");
  if (from->n != 0 && !tiny_shape_equal (to, from)) {
    g_autofree char *a = tiny_shape_to_string (to), *b = tiny_shape_to_string (from);
    FAIL ("shapes %s and %s differ", a, b);
  }
  return NULL;
}

/* Pieces differ along @axis alone; with axis -1 in nothing. */
static char *
check_pieces (guint n_sources, TinyNode *const *sources, gint64 axis)
{
  gint64 dims[MAX_RANK];
  const TinyInts *first = sources[0]->shape;
  for (guint i = 0; i < n_sources; i++)
    if (sources[i]->shape == NULL || sources[i]->shape->n > MAX_RANK)
      FAIL ("source %u has no shape", i + 1);
  if (axis < -1 || axis >= (gint64) first->n)
    FAIL ("axis %" G_GINT64_FORMAT " of %u", axis, first->n);
  for (guint k = 0; k < first->n; k++)
    dims[k] = first->v[k];
  for (guint i = 1; i < n_sources; i++) {
    const TinyInts *shape = sources[i]->shape;
    gboolean fits = shape->n == first->n;
    for (guint k = 0; fits && k < first->n; k++)
      fits = k == axis ? !__builtin_add_overflow (dims[k], shape->v[k], &dims[k])
                       : shape->v[k] == first->v[k];
    if (!fits) {
      g_autofree char *a = tiny_shape_to_string (first), *b = tiny_shape_to_string (shape);
      FAIL ("pieces of shapes %s and %s along axis %" G_GINT64_FORMAT, a, b, axis);
    }
  }
  return check_size (dims, first->n);
}

static char *
check_limit (TinyNode *const *sources, gint64 axis)
{
  if (sources[0]->shape == NULL || sources[1]->shape == NULL || sources[1]->shape->n > 0)
    FAIL ("wants a tensor and a size without axes");
  if (axis < 0 || axis >= (gint64) sources[0]->shape->n)
    FAIL ("axis %" G_GINT64_FORMAT " of %u", axis, sources[0]->shape->n);
  return NULL;
}

/* Positions have the axes of what they are in; all but one are of the same size. */
static char *
check_gather (TinyNode *const *sources, gint64 axis)
{
  const TinyInts *from = sources[0]->shape, *at = sources[1]->shape;
  if (from == NULL || at == NULL)
    FAIL ("its sources have no shapes");
  if (axis < 0 || axis >= (gint64) from->n)
    FAIL ("axis %" G_GINT64_FORMAT " of %u", axis, from->n);
  gboolean fits = from->n == at->n;
  for (guint i = 0; fits && i < from->n; i++)
    fits = i == axis || from->v[i] == at->v[i];
  if (!fits) {
    g_autofree char *a = tiny_shape_to_string (from), *b = tiny_shape_to_string (at);
    FAIL ("positions of shape %s in %s along axis %" G_GINT64_FORMAT, b, a, axis);
  }
  return check_size (at->v, at->n);
}

/* Which of the sources it is, how many are outputs, how many of the others are made again. */
static char *
check_gradient (guint n_sources, TinyNode *const *sources, const TinyInts *ints)
{
  if (ints == NULL || ints->n != 3)
    FAIL ("wants three numbers");
  const gint64 *v = ints->v;
  if (v[1] < 1 || v[1] > (gint64) n_sources || v[0] < 0 || v[0] >= v[1] || v[2] < 0
      || v[2] > (gint64) n_sources - v[1])
    FAIL ("output %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT ", %" G_GINT64_FORMAT
          " of the others, where there are %u sources",
          v[0], v[1], v[2], n_sources);
  for (guint i = 0; i < n_sources; i++)
    if (sources[i]->shape == NULL)
      FAIL ("source %u has no shape", i + 1);
  return NULL;
}

char *
tiny_check_shapes (
    TinyOp op, guint n_sources, TinyNode *const *sources, gint64 arg, const TinyInts *ints)
{
  if (tiny_op_is_elementwise (op))
    return check_elementwise (n_sources, sources);
  if (tiny_op_is_movement (op))
    return check_moved (op, sources[0], ints);
  switch (op) {
  case TINY_OP_PARAM:
  case TINY_OP_BUFFER:
  case TINY_OP_IOTA:
  case TINY_OP_KERNEL:
    if (ints == NULL)
      FAIL ("has no shape");
    if (op == TINY_OP_IOTA && ints->n != 1)
      FAIL ("has one axis, not %u", ints->n);
    for (guint i = 0; i < n_sources; i++)
      if (sources[i]->shape == NULL)
        FAIL ("source %u has no shape", i + 1);
    return check_size (ints->v, ints->n);
  case TINY_OP_LOCAL:
  case TINY_OP_GRID:
  case TINY_OP_GROUP:
    if (ints == NULL || ints->n != 1)
      FAIL ("has no size");
    return check_size (ints->v, ints->n);
  case TINY_OP_REDUCE:
    if (ints == NULL)
      return NULL;
    if (n_sources != 1)
      FAIL ("over axes takes no ranges");
    return check_moved (op, sources[0], ints);
  case TINY_OP_ASSIGN:
    return check_assign (sources);
  case TINY_OP_GRADIENT:
    return check_gradient (n_sources, sources, ints);
  case TINY_OP_GATHER:
    return check_gather (sources, arg);
  case TINY_OP_UNSHARD:
    return check_pieces (n_sources, sources, arg);
  case TINY_OP_LIMIT:
    return check_limit (sources, arg);
  default:
    return NULL;
  }
}
