/* SPDX-License-Identifier: MIT
 *
 * tiny-verify-index.c: addresses of a kernel stay within what INDEX can count.
 *
 * Interval arithmetic over INDEX nodes, from what is known: constants, extents of ranges. What
 * comes from memory or is bound at launch is taken to be a plausible element number; that it is
 * one is for the program to see to. Later passes may then add and multiply bounds freely. */
#include "ir/tiny-verify-private.h"

enum { UNKNOWN_BITS = 40 };

typedef struct {
  gint64 least, most;
} Interval;

static Interval
interval_of (const Interval *known, const TinyNodeMap *position, const TinyNode *node)
{
  return known[GPOINTER_TO_UINT (tiny_node_map_get (position, node)) - 1];
}

/* FALSE when a result leaves 64 bits. */
static gboolean
compute (TinyOp op, Interval x, Interval y, Interval *out)
{
  gint64 v[4];
  switch (op) {
  case TINY_OP_ADD:
    return !__builtin_add_overflow (x.least, y.least, &out->least)
           && !__builtin_add_overflow (x.most, y.most, &out->most);
  case TINY_OP_SUB:
    return !__builtin_sub_overflow (x.least, y.most, &out->least)
           && !__builtin_sub_overflow (x.most, y.least, &out->most);
  case TINY_OP_MUL:
    if (__builtin_mul_overflow (x.least, y.least, &v[0])
        || __builtin_mul_overflow (x.least, y.most, &v[1])
        || __builtin_mul_overflow (x.most, y.least, &v[2])
        || __builtin_mul_overflow (x.most, y.most, &v[3]))
      return FALSE;
    *out = (Interval){ MIN (MIN (v[0], v[1]), MIN (v[2], v[3])),
                       MAX (MAX (v[0], v[1]), MAX (v[2], v[3])) };
    return TRUE;
  case TINY_OP_MAX:
  default: /* WHERE: either */
    *out = (Interval){ MIN (x.least, y.least), MAX (x.most, y.most) };
    return TRUE;
  }
}

/* The quotient is no further from 0 than the dividend, but for rounding; the remainder is between
 * 0 and the divisor. */
static Interval
divide (TinyOp op, Interval x, Interval y)
{
  if (op == TINY_OP_FLOORMOD)
    return (Interval){ MIN (y.least, 0), MAX (y.most, 0) };
  gint64 far = MAX (x.most, -x.least - 1) + 1;
  return (Interval){ x.least < 0 || y.least < 0 ? -far : 0,
                     x.most > 0 || y.least < 0 ? far : 0 };
}

static gboolean
interval (const Interval *known,
          const TinyNodeMap *position,
          const TinyNode *node,
          Interval *out)
{
  const gint64 unknown = G_GINT64_CONSTANT (1) << UNKNOWN_BITS;
  *out = (Interval){ -unknown, unknown };
  switch (node->op) {
  case TINY_OP_CONST:
    *out = (Interval){ node->arg, node->arg };
    return TRUE;
  case TINY_OP_RANGE:
    *out = (Interval){ 0, MAX (node->sources[0]->arg - 1, 0) };
    return TRUE;
  case TINY_OP_ADD:
  case TINY_OP_SUB:
  case TINY_OP_MUL:
  case TINY_OP_MAX:
    return compute (node->op, interval_of (known, position, node->sources[0]),
                    interval_of (known, position, node->sources[1]), out);
  case TINY_OP_WHERE:
    return compute (node->op, interval_of (known, position, node->sources[1]),
                    interval_of (known, position, node->sources[2]), out);
  case TINY_OP_FLOORDIV:
  case TINY_OP_FLOORMOD:
    *out = divide (node->op, interval_of (known, position, node->sources[0]),
                   interval_of (known, position, node->sources[1]));
    return TRUE;
  default:
    return TRUE;
  }
}

const TinyNode *
tiny_verify_find_overflow (GPtrArray *order)
{
  g_autofree Interval *known = g_new (Interval, order->len + 1);
  g_auto (TinyNodeMap) position = { 0 };
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    known[i] = (Interval){ 0, 0 };
    tiny_node_map_set (&position, node, GUINT_TO_POINTER (i + 1));
    if (node->dtype == TINY_DTYPE_INDEX
        && (!interval (known, &position, node, &known[i])
            || known[i].least < tiny_dtype_get_min (TINY_DTYPE_INDEX)
            || known[i].most > tiny_dtype_get_max (TINY_DTYPE_INDEX)))
      return node;
  }
  return NULL;
}
