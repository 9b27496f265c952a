/* SPDX-License-Identifier: MIT
 *
 * tiny-bounds.c: interval analysis, memoised on the nodes.
 *
 * Sources first, on a stack of its own, so depth costs no C stack. INDEX saturates at the ends of
 * its range; every other integer falls back to its dtype's whole range where a result could wrap. */
#include "rewrite/tiny-bounds.h"

typedef struct {
  gint64 min, max;
} Interval;

gint64
tiny_floor_div (gint64 x, gint64 y)
{
  if (y == -1)
    return x == G_MININT64 ? G_MAXINT64 : -x;
  gint64 q = x / y;
  return q - (x % y != 0 && (x < 0) != (y < 0));
}

gint64
tiny_floor_mod (gint64 x, gint64 y)
{
  if (y == -1)
    return 0;
  gint64 r = x % y;
  return r + (r != 0 && (r < 0) != (y < 0) ? y : 0);
}

gint64
tiny_gcd (gint64 x, gint64 y)
{
  guint64 a = x < 0 ? -(guint64) x : (guint64) x, b = y < 0 ? -(guint64) y : (guint64) y;
  while (b != 0) {
    guint64 r = a % b;
    a = b;
    b = r;
  }
  return (gint64) MIN (a, (guint64) G_MAXINT64);
}

/* ---- intervals ---- */
static Interval
whole (TinyDType dtype)
{
  if (dtype == TINY_DTYPE_VOID || tiny_dtype_is_float (dtype))
    return (Interval){ G_MININT64, G_MAXINT64 };
  return (Interval){ tiny_dtype_get_min (dtype), tiny_dtype_get_max (dtype) };
}

/* Results are computed in 128 bits: no sum or product of two 64-bit numbers leaves that. */
static Interval
fit (TinyDType dtype, __int128 min, __int128 max)
{
  Interval all = whole (dtype);
  if (dtype == TINY_DTYPE_INDEX) {
    /* Outside alone it is no number, least of all the end: address arithmetic of kernel texts wraps there. */
    if ((min < all.min && max <= all.min) || (max > all.max && min >= all.max))
      return all;
    return (Interval){ (gint64) CLAMP (min, all.min, all.max),
                       (gint64) CLAMP (max, all.min, all.max) };
  }
  /* A u64 that reaches G_MAXINT64 stands for all above it. */
  gboolean open = dtype == TINY_DTYPE_U64 && max >= G_MAXINT64;
  if (min < all.min || max > all.max || open)
    return all;
  return (Interval){ (gint64) min, (gint64) max };
}

static Interval
corners (TinyDType dtype, Interval x, Interval y, __int128 (*f) (gint64, gint64))
{
  __int128 v[4] = { f (x.min, y.min), f (x.min, y.max), f (x.max, y.min), f (x.max, y.max) };
  return fit (dtype, MIN (MIN (v[0], v[1]), MIN (v[2], v[3])),
              MAX (MAX (v[0], v[1]), MAX (v[2], v[3])));
}

static __int128
times (gint64 x, gint64 y)
{
  return (__int128) x * y;
}
static __int128
quotient (gint64 x, gint64 y)
{
  return (__int128) x / y;
}
static __int128
floor_quotient (gint64 x, gint64 y)
{
  return y == -1 ? -(__int128) x : tiny_floor_div (x, y);
}
static __int128
shift_left (gint64 x, gint64 y)
{
  return (__int128) x * ((__int128) 1 << y);
}
static __int128
shift_right (gint64 x, gint64 y)
{
  return x >> y;
}

static gboolean
is_open (TinyDType dtype, Interval x)
{
  return dtype == TINY_DTYPE_U64 && x.max == G_MAXINT64;
}

static Interval
divide (TinyDType dtype, TinyOp op, Interval x, Interval y)
{
  if (y.min <= 0 && y.max >= 0)
    return whole (dtype);
  if (is_open (dtype, x) || is_open (dtype, y))
    return (Interval){ 0, G_MAXINT64 };
  return corners (dtype, x, y, op == TINY_OP_IDIV ? quotient : floor_quotient);
}

static Interval
remainder_of (TinyDType dtype, TinyOp op, Interval x, Interval y)
{
  if (y.min <= 0 && y.max >= 0)
    return whole (dtype);
  if (is_open (dtype, y))
    return (Interval){ 0, x.max };
  gint64 most = MAX (y.max, y.min == G_MININT64 ? G_MAXINT64 : -y.min) - 1;
  if (is_open (dtype, x))
    return (Interval){ 0, most };
  gboolean truncates = op == TINY_OP_MOD;
  if (truncates && y.min == G_MININT64)
    return (Interval){ MIN (x.min, 0), MAX (x.max, 0) };
  if (truncates && y.max < 0) /* the divisor's sign does not matter */
    y = (Interval){ -y.max, -y.min };
  if (y.min == y.max && (!truncates || x.min >= 0)
      && tiny_floor_div (x.min, y.min) == tiny_floor_div (x.max, y.min))
    return (Interval){ tiny_floor_mod (x.min, y.min), tiny_floor_mod (x.max, y.min) };
  if (truncates)
    return (Interval){ x.min >= 0 ? 0 : MAX (x.min, -most),
                       x.max <= 0 ? 0 : MIN (x.max, most) };
  if (y.min > 0)
    return (Interval){ 0, x.min >= 0 ? MIN (x.max, most) : most };
  return (Interval){ x.max <= 0 ? MAX (x.min, -most) : -most, 0 };
}

/* The least 2^k - 1 that is not below x. */
static gint64
fill (gint64 x)
{
  for (guint s = 1; s < 64; s *= 2)
    x |= x >> s;
  return x;
}

static Interval
bitwise (TinyDType dtype, TinyOp op, Interval x, Interval y)
{
  if (x.min < 0 && y.min < 0)
    return whole (dtype);
  if (op == TINY_OP_AND)
    return (Interval){ dtype == TINY_DTYPE_BOOL ? MIN (x.min, y.min) : 0,
                       x.min < 0   ? y.max
                       : y.min < 0 ? x.max
                                   : MIN (x.max, y.max) };
  if (x.min < 0 || y.min < 0)
    return whole (dtype);
  gint64 max = fill (MAX (x.max, y.max));
  return (Interval){ op == TINY_OP_OR ? MAX (x.min, y.min) : 0, max };
}

static Interval
shift (TinyDType dtype, TinyOp op, Interval x, Interval y)
{
  gint64 n_bits = dtype == TINY_DTYPE_INDEX ? 62 : 8 * (gint64) tiny_dtype_get_n_bytes (dtype);
  if (y.min < 0 || y.max >= n_bits)
    return whole (dtype);
  if (op == TINY_OP_SHL)
    return corners (dtype, x, y, shift_left);
  if (is_open (dtype, x))
    return (Interval){ 0, y.min == 0 ? G_MAXINT64 : (gint64) (G_MAXUINT64 >> y.min) };
  return corners (dtype, x, y, shift_right);
}

static const Interval unknown_bool = { 0, 1 }, always = { 1, 1 }, never = { 0, 0 };

static Interval
compare (TinyNode *node, Interval x, Interval y)
{
  TinyDType dtype = node->sources[0]->dtype;
  if (tiny_dtype_is_float (dtype))
    return unknown_bool;
  gboolean less = x.max<y.min, more = x.min> y.max;
  gboolean same = x.min == x.max && y.min == y.max && x.min == y.min && !is_open (dtype, x);
  if (node->op == TINY_OP_CMPLT) {
    if (is_open (dtype, y) && y.min == G_MAXINT64)
      return unknown_bool;
    return less ? always : x.min >= y.max && !is_open (dtype, y) ? never : unknown_bool;
  }
  gboolean is_ne = node->op == TINY_OP_CMPNE;
  if (less || more)
    return is_ne ? always : never;
  return same ? (is_ne ? never : always) : unknown_bool;
}

static Interval
cast (TinyNode *node, Interval x)
{
  TinyDType from = node->sources[0]->dtype;
  Interval all = whole (node->dtype);
  if (tiny_dtype_is_float (from) || from == TINY_DTYPE_VOID)
    return all;
  if (node->dtype == TINY_DTYPE_BOOL)
    return x.min > 0 || x.max < 0 ? always : x.min == 0 && x.max == 0 ? never : unknown_bool;
  if (is_open (from, x) || x.min < all.min || x.max > all.max)
    return all;
  return x;
}

/* TRUE: it may be the neutral element, whatever it combines. */
static gboolean
may_be_empty (const TinyNode *reduce)
{
  gboolean is_empty = FALSE;
  for (guint i = 1; i < reduce->n_sources; i++) {
    const TinyNode *range = reduce->sources[i];
    is_empty = is_empty || (range->op == TINY_OP_RANGE && range->sources[0]->vmin <= 0);
  }
  return is_empty;
}

static Interval
reduce (TinyNode *node, Interval x)
{
  if (node->arg == TINY_OP_MAX)
    return may_be_empty (node) ? whole (node->dtype) : x;
  if (node->arg != TINY_OP_ADD || node->n_sources < 2 || node->dtype == TINY_DTYPE_BOOL)
    return whole (node->dtype);
  __int128 count = 1;
  for (guint i = 1; i < node->n_sources; i++) {
    TinyNode *range = node->sources[i];
    gint64 extent = range->op == TINY_OP_RANGE ? range->sources[0]->vmax : 1;
    if (range->op == TINY_OP_RANGE && range->sources[0]->vmin != extent)
      return whole (node->dtype);
    count *= extent;
    if (count > G_MAXINT64)
      return whole (node->dtype);
  }
  Interval n = { (gint64) count, (gint64) count };
  return is_open (node->dtype, x) ? whole (node->dtype) : corners (node->dtype, x, n, times);
}

static Interval
binary (TinyNode *node, Interval x, Interval y)
{
  TinyDType dtype = node->dtype;
  switch (node->op) {
  case TINY_OP_ADD:
    return dtype == TINY_DTYPE_BOOL
               ? bitwise (dtype, TINY_OP_OR, x, y)
               : fit (dtype, (__int128) x.min + y.min, (__int128) x.max + y.max);
  case TINY_OP_SUB:
    return dtype == TINY_DTYPE_BOOL || is_open (dtype, x) || is_open (dtype, y)
               ? whole (dtype)
               : fit (dtype, (__int128) x.min - y.max, (__int128) x.max - y.min);
  case TINY_OP_MUL:
    return dtype == TINY_DTYPE_BOOL ? bitwise (dtype, TINY_OP_AND, x, y)
                                    : corners (dtype, x, y, times);
  case TINY_OP_IDIV:
  case TINY_OP_FLOORDIV:
    return divide (dtype, node->op, x, y);
  case TINY_OP_MOD:
  case TINY_OP_FLOORMOD:
    return remainder_of (dtype, node->op, x, y);
  case TINY_OP_MAX:
    return (Interval){ MAX (x.min, y.min), MAX (x.max, y.max) };
  case TINY_OP_AND:
  case TINY_OP_OR:
  case TINY_OP_XOR:
    return bitwise (dtype, node->op, x, y);
  case TINY_OP_SHL:
  case TINY_OP_SHR:
    return shift (dtype, node->op, x, y);
  default:
    return whole (dtype);
  }
}

static Interval
join (const TinyNode *node)
{
  Interval all = { G_MAXINT64, G_MININT64 };
  for (guint i = 0; i < node->n_sources; i++) {
    all.min = MIN (all.min, node->sources[i]->vmin);
    all.max = MAX (all.max, node->sources[i]->vmax);
  }
  return all;
}

/* @x, whose bounds are @all, where @gate is true. */
static Interval
narrow (const TinyNode *gate, const TinyNode *x, Interval all)
{
  if (gate->op == TINY_OP_AND && gate->dtype == TINY_DTYPE_BOOL)
    return narrow (gate->sources[0], x, narrow (gate->sources[1], x, all));
  if (gate->op != TINY_OP_CMPLT || is_open (x->dtype, all))
    return all;
  if (gate->sources[0] == x)
    all.max = MIN (all.max, gate->sources[1]->vmax - 1);
  else if (gate->sources[1] == x)
    all.min = MAX (all.min, gate->sources[0]->vmin + 1);
  return all;
}

static Interval
where (const TinyNode *node, Interval gate)
{
  const TinyNode *x = node->sources[1], *y = node->sources[2];
  Interval yes = { x->vmin, x->vmax }, no = { y->vmin, y->vmax };
  if (gate.min == gate.max)
    return gate.min ? yes : no;
  Interval narrowed = narrow (node->sources[0], x, yes);
  if (narrowed.min <= narrowed.max) /* else it is never true, which is not said here */
    yes = narrowed;
  return (Interval){ MIN (yes.min, no.min), MAX (yes.max, no.max) };
}

/* Of a node whose sources' bounds are known. */
static Interval
compute (TinyNode *node)
{
  TinyDType dtype = node->dtype;
  if (dtype == TINY_DTYPE_VOID || tiny_dtype_is_float (dtype))
    return whole (dtype);
  Interval s[3];
  for (guint i = 0; i < MIN (node->n_sources, 3); i++)
    s[i] = (Interval){ node->sources[i]->vmin, node->sources[i]->vmax };
  TinyOpClass op_class = tiny_op_infos[node->op].op_class;
  if (op_class == TINY_OP_CLASS_COMPARE)
    return compare (node, s[0], s[1]);
  if (op_class == TINY_OP_CLASS_BINARY)
    return binary (node, s[0], s[1]);
  switch (node->op) {
  case TINY_OP_CONST:
    /* Above G_MAXINT64: open, with a floor that is true. */
    if (dtype == TINY_DTYPE_U64 && node->arg < 0)
      return (Interval){ G_MAXINT64, G_MAXINT64 };
    return (Interval){ node->arg, node->arg };
  case TINY_OP_RANGE:
    return s[0].max <= 0 ? never : (Interval){ 0, s[0].max - 1 };
  case TINY_OP_LANES:
    return (Interval){ 0, (gint64) node->lanes - 1 };
  case TINY_OP_VARIABLE:
    return node->ints != NULL && node->ints->n == 2
               ? (Interval){ node->ints->v[0], node->ints->v[1] }
               : whole (dtype);
  case TINY_OP_GRID:
  case TINY_OP_GROUP:
  case TINY_OP_IOTA:
    return node->ints != NULL && node->ints->n == 1 && node->ints->v[0] > 0
               ? fit (dtype, 0, node->ints->v[0] - 1)
               : whole (dtype);
  case TINY_OP_NEG:
    return dtype == TINY_DTYPE_BOOL || is_open (dtype, s[0])
               ? whole (dtype)
               : fit (dtype, -(__int128) s[0].max, -(__int128) s[0].min);
  case TINY_OP_WHERE:
    return where (node, s[0]);
  case TINY_OP_CAST:
    return cast (node, s[0]);
  case TINY_OP_VECTOR:
    return join (node);
  case TINY_OP_EXTRACT:
  case TINY_OP_AFTER:
    return s[0];
  case TINY_OP_REDUCE:
    return reduce (node, s[0]);
  default:
    return whole (dtype);
  }
}

static void
settle (TinyNode *node)
{
  Interval found = compute (node);
  node->vmin = found.min;
  node->vmax = found.max;
  node->bounds = 1;
}

void
tiny_node_get_bounds (TinyNode *node, gint64 *out_min, gint64 *out_max)
{
  if (!node->bounds) {
    gboolean ready = TRUE;
    for (guint i = 0; i < node->n_sources; i++)
      ready = ready && node->sources[i]->bounds;
    if (ready) {
      settle (node);
    } else {
      g_autoptr (GPtrArray) stack = g_ptr_array_new ();
      g_ptr_array_add (stack, node);
      while (stack->len > 0) {
        TinyNode *top = stack->pdata[stack->len - 1];
        guint before = stack->len;
        for (guint i = 0; i < top->n_sources; i++)
          if (!top->sources[i]->bounds)
            g_ptr_array_add (stack, top->sources[i]);
        if (stack->len > before)
          continue;
        settle (top);
        g_ptr_array_set_size (stack, (gint) stack->len - 1);
      }
    }
  }
  *out_min = node->vmin;
  *out_max = node->vmax;
}

/* ---- divisors ---- */
/* The budget keeps shared and deep expressions cheap: 1 is always a true answer. */
static gint64
find_divisor (TinyNode *node, guint *budget)
{
  if (*budget == 0)
    return 1;
  --*budget;
  gint64 x, y, product;
  switch (node->op) {
  case TINY_OP_CONST:
    return node->dtype == TINY_DTYPE_INDEX ? tiny_gcd (node->arg, 0) : 1;
  case TINY_OP_MUL:
    x = find_divisor (node->sources[0], budget);
    y = find_divisor (node->sources[1], budget);
    return __builtin_mul_overflow (x, y, &product) ? MAX (x, y) : product;
  case TINY_OP_ADD:
  case TINY_OP_SUB:
  case TINY_OP_MAX:
    x = find_divisor (node->sources[0], budget);
    return x == 1 ? 1 : tiny_gcd (x, find_divisor (node->sources[1], budget));
  case TINY_OP_WHERE:
    x = find_divisor (node->sources[1], budget);
    return x == 1 ? 1 : tiny_gcd (x, find_divisor (node->sources[2], budget));
  case TINY_OP_FLOORMOD:
    x = find_divisor (node->sources[0], budget);
    return x == 1 ? 1 : tiny_gcd (x, find_divisor (node->sources[1], budget));
  case TINY_OP_FLOORDIV:
    if (!tiny_node_is_const (node->sources[1]) || node->sources[1]->arg == 0)
      return 1;
    x = find_divisor (node->sources[0], budget);
    y = tiny_gcd (node->sources[1]->arg, 0);
    return x % y == 0 ? x / y : 1;
  default:
    return 1;
  }
}

gint64
tiny_node_get_divisor (TinyNode *node)
{
  guint budget = 64;
  return node->dtype == TINY_DTYPE_INDEX ? find_divisor (node, &budget) : 1;
}
