/* SPDX-License-Identifier: MIT
 *
 * run-integer.c: arithmetic, logic, shifts and bit fields of integers, as the PTX ISA defines them.
 *
 * Values are extended to 64 bits by their type, computed there, and cut to the type when they are written. */
#include "ptx-run.h"
#include "ptx-warp.h"

/* The lanes of an instruction of up to four operands, with x, y and z as numbers of its type; packed types part by part. */
#define LOOP(warp, instr, ...)                                                                 \
  const PtxOperand *out = ptx_operand (instr, 0);                                              \
  PtxType type = instr->type[0];                                                               \
  guint bits = ptx_types[type].bits;                                                           \
  const guint64 *a = ptx_source (warp, instr, 1);                                              \
  (void) bits;                                                                                 \
  PTX_EACH_LANE (warp, lane)                                                                   \
  {                                                                                            \
    guint64 x = ptx_extend (type, a[lane]), result = 0;                                        \
    (void) x;                                                                                  \
    __VA_ARGS__;                                                                               \
    ptx_put (warp, out, lane, ptx_truncate (bits, result));                                    \
  }

#define UNARY(name, expression)                                                                \
  void ptx_run_##name (PtxWarp *warp, const PtxInstr *instr)                                   \
  {                                                                                            \
    LOOP (warp, instr, result = (expression))                                                  \
  }
#define BINARY(name, expression)                                                               \
  void ptx_run_##name (PtxWarp *warp, const PtxInstr *instr)                                   \
  {                                                                                            \
    const guint64 *b = ptx_source (warp, instr, 2);                                            \
    LOOP (warp, instr, guint64 y = ptx_extend (type, b[lane]); (void) y;                       \
          result = (expression))                                                               \
  }
#define TERNARY(name, expression)                                                              \
  void ptx_run_##name (PtxWarp *warp, const PtxInstr *instr)                                   \
  {                                                                                            \
    const guint64 *b = ptx_source (warp, instr, 2), *c = ptx_source (warp, instr, 3);          \
    LOOP (warp, instr, guint64 y = ptx_extend (type, b[lane]), z = c[lane]; (void) y;          \
          result = (expression))                                                               \
  }

/* ---- sums, with carries ---- */

static guint64
saturate (PtxType type, gint64 value)
{
  return type == PTX_s32 ? (guint64) CLAMP (value, G_MININT32, G_MAXINT32) : (guint64) value;
}

static PtxType
part_type (PtxType type)
{
  return type == PTX_u16x2 ? PTX_u16 : type == PTX_s16x2 ? PTX_s16 : type;
}

typedef guint64 (*Pair) (PtxType type, guint64 x, guint64 y);

/* Both halves of a packed type, each by itself. */
static guint64
of_parts (PtxType type, guint64 a, guint64 b, Pair function)
{
  PtxType part = part_type (type);
  if (part == type)
    return function (type, ptx_extend (type, a), ptx_extend (type, b));
  guint64 low = function (part, ptx_extend (part, a), ptx_extend (part, b));
  guint64 high = function (part, ptx_extend (part, a >> 16), ptx_extend (part, b >> 16));
  return (low & 0xffff) | (high & 0xffff) << 16;
}

static guint64
sum (PtxType type, guint64 x, guint64 y)
{
  (void) type;
  return x + y;
}

static guint64
difference (PtxType type, guint64 x, guint64 y)
{
  (void) type;
  return x - y;
}

static gboolean
takes_carry (const PtxInstr *instr)
{
  const char *name = instr->op->name;
  return g_str_has_suffix (name, "c") && name[0] != '\0' && name[3] == 'c';
}

/* x + y + carry, or x - y - carry: the carry out is of the bits that the type has. */
static void
with_carry (PtxWarp *warp,
            const PtxInstr *instr,
            guint lane,
            guint64 x,
            guint64 y,
            gboolean is_minus,
            guint64 *out)
{
  guint bits = ptx_types[instr->type[0]].bits;
  guint64 carry = takes_carry (instr) ? warp->carry >> lane & 1 : 0;
  unsigned __int128 wide_x = ptx_truncate (bits, x), wide_y = ptx_truncate (bits, y);
  unsigned __int128 wide = is_minus ? wide_x - wide_y - carry : wide_x + wide_y + carry;
  *out = (guint64) wide;
  if (instr->flags & PTX_FLAG_CC)
    warp->carry = (warp->carry & ~(1u << lane)) | (guint32) (wide >> bits & 1) << lane;
}

static void
sum_or_difference (PtxWarp *warp, const PtxInstr *instr, gboolean is_minus)
{
  const guint64 *b = ptx_source (warp, instr, 2);
  gboolean is_carried = takes_carry (instr) || (instr->flags & PTX_FLAG_CC) != 0,
           is_cut = (instr->flags & PTX_FLAG_SAT) != 0;
  gboolean is_packed = ptx_types[instr->type[0]].lanes > 1;
  LOOP (warp, instr, {
    guint64 y = ptx_extend (type, b[lane]);
    if (is_carried)
      with_carry (warp, instr, lane, x, y, is_minus, &result);
    else if (is_packed)
      result = of_parts (type, a[lane], b[lane], is_minus ? difference : sum);
    else
      result = is_minus ? x - y : x + y;
    result = is_cut ? saturate (type, result) : result;
  })
}

void
ptx_run_add (PtxWarp *warp, const PtxInstr *instr)
{
  sum_or_difference (warp, instr, FALSE);
}

void
ptx_run_sub (PtxWarp *warp, const PtxInstr *instr)
{
  sum_or_difference (warp, instr, TRUE);
}

/* ---- products ---- */

static guint64
product (PtxType type, guint64 x, guint64 y, guint mode)
{
  guint bits = ptx_types[type].bits;
  if (mode != PTX_MODE_hi)
    return x * y;
  return ptx_is_signed (type) ? (guint64) (((__int128) (gint64) x * (gint64) y) >> bits)
                              : (guint64) (((unsigned __int128) x * y) >> bits);
}

static guint
product_bits (const PtxInstr *instr)
{
  guint bits = ptx_types[instr->type[0]].bits;
  return instr->chosen[PTX_CLASS_MODE] == PTX_MODE_wide ? 2 * bits : bits;
}

void
ptx_run_mul (PtxWarp *warp, const PtxInstr *instr)
{
  const guint64 *b = ptx_source (warp, instr, 2);
  guint mode = instr->chosen[PTX_CLASS_MODE];
  LOOP (warp, instr, {
    result = product (type, x, ptx_extend (type, b[lane]), mode);
    bits = product_bits (instr);
  })
}

void
ptx_run_mad (PtxWarp *warp, const PtxInstr *instr)
{
  const guint64 *b = ptx_source (warp, instr, 2), *c = ptx_source (warp, instr, 3);
  guint mode = instr->chosen[PTX_CLASS_MODE];
  gboolean is_carried = takes_carry (instr) || (instr->flags & PTX_FLAG_CC) != 0,
           is_cut = (instr->flags & PTX_FLAG_SAT) != 0;
  LOOP (warp, instr, {
    guint64 p = product (type, x, ptx_extend (type, b[lane]), mode);
    if (is_carried)
      with_carry (warp, instr, lane, p, c[lane], FALSE, &result);
    else if (is_cut)
      result = saturate (type,
                         (gint64) ptx_extend (type, p) + (gint64) ptx_extend (type, c[lane]));
    else
      result = p + c[lane];
    bits = product_bits (instr);
  })
}

static guint64
quotient (PtxType type, guint64 x, guint64 y, gboolean is_rest)
{
  if (y == 0)
    return is_rest ? x : G_MAXUINT64;
  if (!ptx_is_signed (type))
    return is_rest ? x % y : x / y;
  if (y == G_MAXUINT64)
    return is_rest ? 0 : -x;
  return (guint64) (is_rest ? (gint64) x % (gint64) y : (gint64) x / (gint64) y);
}

static gint64
byte_of (PtxType type, guint64 word, guint i)
{
  guint64 byte = word >> (8 * i) & 0xff;
  return type == PTX_s32 ? (gint8) byte : (gint64) byte;
}

static guint64
dot_of_bytes (const PtxInstr *instr, guint64 a, guint64 b, guint64 c)
{
  gint64 sum_of = (gint64) c;
  for (guint i = 0; i < 4; i++)
    sum_of += byte_of (instr->type[0], a, i) * byte_of (instr->type[1], b, i);
  return (guint64) sum_of;
}

static guint64
smaller (PtxType type, guint64 x, guint64 y)
{
  gboolean is_less = ptx_is_signed (type) ? (gint64) x < (gint64) y : x < y;
  return is_less ? x : y;
}

static guint64
larger (PtxType type, guint64 x, guint64 y)
{
  return smaller (type, x, y) == x ? y : x;
}

/* clang-format off */
BINARY (div, quotient (type, x, y, FALSE))
BINARY (rem, quotient (type, x, y, TRUE))
UNARY (abs, (gint64) x < 0 ? -x : x)
UNARY (neg, -x)
BINARY (min, of_parts (type, a[lane], b[lane], smaller))
BINARY (max, of_parts (type, a[lane], b[lane], larger))
TERNARY (sad, z + (larger (type, x, y) - smaller (type, x, y)))
TERNARY (dp4a, dot_of_bytes (instr, a[lane], b[lane], z))
BINARY (and, x & y)
BINARY (or, x | y)
BINARY (xor, x ^ y)
UNARY (not, ~x)
UNARY (cnot, x == 0)
/* clang-format on */

static guint64
logic_of_three (guint64 a, guint64 b, guint64 c, guint table)
{
  guint64 result = 0;
  for (guint i = 0; i < 8; i++)
    if (table >> i & 1)
      result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return result;
}

void
ptx_run_lop3 (PtxWarp *warp, const PtxInstr *instr)
{
  const guint64 *b = ptx_source (warp, instr, 2), *c = ptx_source (warp, instr, 3),
                *table = ptx_source (warp, instr, 4);
  LOOP (warp, instr, result = logic_of_three (a[lane], b[lane], c[lane], table[lane]))
}

/* ---- shifts ---- */

/* The whole of a 32-bit amount counts, and more than there are bits shift all out. */
static guint64
shifted_right (PtxType type, guint64 x, guint32 n)
{
  guint bits = ptx_types[type].bits;
  if (ptx_is_signed (type))
    return (guint64) ((gint64) x >> MIN (n, bits - 1));
  return n >= bits ? 0 : x >> n;
}

static guint64
funnel (guint64 low, guint64 high, guint32 n, guint mode, gboolean is_left)
{
  guint64 both = (high & G_MAXUINT32) << 32 | (low & G_MAXUINT32);
  n = mode == PTX_MODE_wrap ? n & 31 : MIN (n, 32);
  return is_left ? both << n >> 32 : both >> n;
}

/* clang-format off */
BINARY (shl, (guint32) b[lane] >= bits ? 0 : x << (guint32) b[lane])
BINARY (shr, shifted_right (type, x, b[lane]))
TERNARY (shf_l, funnel (x, y, z, instr->chosen[PTX_CLASS_MODE], TRUE))
TERNARY (shf_r, funnel (x, y, z, instr->chosen[PTX_CLASS_MODE], FALSE))
/* clang-format on */

/* ---- bits ---- */

/* A field may lie beyond the last bit: there it has the sign, or zeros. */
static guint64
field_of (PtxType type, guint64 x, guint start, guint n)
{
  guint bits = ptx_types[type].bits;
  guint64 sign = ptx_is_signed (type) && n > 0 ? x >> MIN (start + n - 1, bits - 1) & 1 : 0;
  guint64 value = start < bits ? ptx_truncate (bits, x) >> start : 0;
  guint there = start < bits ? MIN (n, bits - start) : 0;
  value = there > 0 ? ptx_truncate (there, value) : 0;
  return sign && there < 64 ? value | G_MAXUINT64 << there : value;
}

static guint64
with_field (guint64 field, guint64 x, guint bits, guint start, guint n)
{
  if (start >= bits || n == 0)
    return x;
  guint64 mask = ptx_truncate (MIN (n, bits - start), G_MAXUINT64) << start;
  return (x & ~mask) | (field << start & mask);
}

void
ptx_run_bfi (PtxWarp *warp, const PtxInstr *instr)
{
  const guint64 *b = ptx_source (warp, instr, 2), *c = ptx_source (warp, instr, 3),
                *d = ptx_source (warp, instr, 4);
  LOOP (warp, instr,
        result = with_field (a[lane], b[lane], bits, c[lane] & 0xff, d[lane] & 0xff))
}

static guint64
highest_bit (const PtxInstr *instr, guint64 x)
{
  guint bits = ptx_types[instr->type[0]].bits;
  if (ptx_is_signed (instr->type[0]) && (gint64) x < 0)
    x = ~x;
  x = ptx_truncate (bits, x);
  if (x == 0)
    return G_MAXUINT64;
  guint place = 63 - __builtin_clzll (x);
  return instr->flags & PTX_FLAG_SHIFTAMT ? bits - 1 - place : place;
}

static guint64
reversed (guint64 x, guint bits)
{
  guint64 result = 0;
  for (guint i = 0; i < bits; i++)
    result |= (x >> i & 1) << (bits - 1 - i);
  return result;
}

/* The place in eight bytes that byte @i of the result comes from; bit 3: its sign in all bits. */
static guint
permutation (guint mode, guint selector, guint i)
{
  guint n = selector & 3;
  switch (mode) {
  case PTX_MODE_f4e:
    return n + i;
  case PTX_MODE_b4e:
    return (n - i) & 7;
  case PTX_MODE_rc8:
    return n;
  case PTX_MODE_ecl:
    return MAX (i, n);
  case PTX_MODE_ecr:
    return MIN (i, n);
  case PTX_MODE_rc16:
    return 2 * (n & 1) + (i & 1);
  default:
    return selector >> (4 * i) & 15;
  }
}

static guint64
permuted (guint64 a, guint64 b, guint64 selector, guint mode)
{
  guint64 both = (b & G_MAXUINT32) << 32 | (a & G_MAXUINT32), result = 0;
  for (guint i = 0; i < 4; i++) {
    guint place = permutation (mode, selector, i);
    guint64 byte = both >> (8 * (place & 7)) & 0xff;
    if (place & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

/* Results of 32 bits, whatever the type. */
#define COUNT(name, expression)                                                                \
  void ptx_run_##name (PtxWarp *warp, const PtxInstr *instr)                                   \
  {                                                                                            \
    LOOP (warp, instr, result = (expression); bits = 32)                                       \
  }

/* clang-format off */
UNARY (brev, reversed (x, bits))
COUNT (bfind, highest_bit (instr, ptx_extend (type, a[lane])))
COUNT (clz, x == 0 ? ptx_types[type].bits : (guint64) __builtin_clzll (x) - (64 - ptx_types[type].bits))
COUNT (popc, (guint64) __builtin_popcountll (x))
TERNARY (prmt, permuted (x, y, z, instr->chosen[PTX_CLASS_MODE]))
/* clang-format on */

void
ptx_run_bfe (PtxWarp *warp, const PtxInstr *instr)
{
  const guint64 *b = ptx_source (warp, instr, 2), *c = ptx_source (warp, instr, 3);
  LOOP (warp, instr, result = field_of (type, x, b[lane] & 0xff, c[lane] & 0xff))
}

/* ---- comparisons and choices ---- */

static gboolean
compare (PtxType type, guint relation, guint64 x, guint64 y)
{
  gboolean is_less = ptx_is_signed (type) ? (gint64) x < (gint64) y : x < y;
  switch (relation) {
  case PTX_EQ:
    return x == y;
  case PTX_NE:
    return x != y;
  case PTX_LT:
  case PTX_LO:
    return is_less;
  case PTX_LE:
  case PTX_LS:
    return is_less || x == y;
  case PTX_GT:
  case PTX_HI:
    return !is_less && x != y;
  default:
    return !is_less;
  }
}

/* With the predicate behind a comparison, where there is one. */
static gboolean
joined (const PtxWarp *warp, const PtxInstr *instr, guint group, guint lane, gboolean is_true)
{
  if (ptx_n_operands (instr, group) == 0)
    return is_true;
  gboolean other = ptx_is_true (warp, ptx_operand (instr, group), lane);
  guint how = instr->chosen[PTX_CLASS_BOOL];
  return how == PTX_OR    ? is_true || other
         : how == PTX_XOR ? is_true != other
                          : is_true && other;
}

void
ptx_run_setp (PtxWarp *warp, const PtxInstr *instr)
{
  const guint64 *a = ptx_source (warp, instr, 2), *b = ptx_source (warp, instr, 3);
  PtxType type = instr->type[0];
  PTX_EACH_LANE (warp, lane)
  {
    gboolean is_true = compare (type, instr->chosen[PTX_CLASS_COMPARE],
                                ptx_extend (type, a[lane]), ptx_extend (type, b[lane]));
    gboolean first = joined (warp, instr, 4, lane, is_true),
             second = joined (warp, instr, 4, lane, !is_true);
    ptx_put (warp, ptx_operand (instr, 0), lane, first);
    ptx_put (warp, ptx_operand (instr, 1), lane, second);
  }
}

void
ptx_run_set (PtxWarp *warp, const PtxInstr *instr)
{
  const guint64 *a = ptx_source (warp, instr, 1), *b = ptx_source (warp, instr, 2);
  PtxType type = instr->type[1];
  guint64 yes = instr->type[0] == PTX_f32 ? 0x3f800000 : G_MAXUINT32;
  PTX_EACH_LANE (warp, lane)
  {
    gboolean is_true = compare (type, instr->chosen[PTX_CLASS_COMPARE],
                                ptx_extend (type, a[lane]), ptx_extend (type, b[lane]));
    ptx_put (warp, ptx_operand (instr, 0), lane,
             joined (warp, instr, 3, lane, is_true) ? yes : 0);
  }
}

void
ptx_run_selp (PtxWarp *warp, const PtxInstr *instr)
{
  const guint64 *b = ptx_source (warp, instr, 2);
  LOOP (warp, instr, result = ptx_is_true (warp, ptx_operand (instr, 3), lane) ? x : b[lane])
}

/* The first where the third is not negative; -0 is not, NaN is. */
void
ptx_run_slct (PtxWarp *warp, const PtxInstr *instr)
{
  const guint64 *b = ptx_source (warp, instr, 2), *c = ptx_source (warp, instr, 3);
  gboolean is_float = instr->type[1] == PTX_f32;
  LOOP (warp, instr, {
    guint32 word = c[lane];
    gboolean is_first
        = is_float ? word <= 0x7f800000 || word == (guint32) 1 << 31 : (gint32) word >= 0;
    result = is_first ? x : b[lane];
  })
}
