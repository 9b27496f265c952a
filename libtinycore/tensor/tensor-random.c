/* SPDX-License-Identifier: MIT
 *
 * tensor-random.c: random numbers as a function of a counter.
 *
 * Threefry2x32 with 20 rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011) maps a key and a counter of two words each to two random words. The key is
 * the seed, the counter is (element, how many draws there were before), so every device computes
 * the same integers. Kernels get both at launch: none is compiled for a seed. Without a seed the
 * process takes one by chance. The same function in plain C shuffles data on the host. */
#include "tensor/tiny-random.h"

#include <math.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-private.h"
#include "tensor/tiny-tensor-operations.h"

static const guint rotations[8] = { 13, 15, 26, 6, 17, 29, 16, 24 };
#define PARITY 0x1BD11BDAu

static TinyRandomState state; /* under the runtime's lock */
static gboolean is_seeded;

static void
ensure_seed (void)
{
  if (!is_seeded)
    state.seed = (guint64) g_random_int () << 32 | g_random_int ();
  is_seeded = TRUE;
}

void
tiny_threefry2x32 (const guint32 key[2], const guint32 counter[2], guint32 out[2])
{
  guint32 keys[3] = { key[0], key[1], PARITY ^ key[0] ^ key[1] };
  guint32 a = counter[0] + keys[0], b = counter[1] + keys[1];
  for (guint round = 0; round < 20; round++) {
    guint r = rotations[round % 8];
    a += b;
    b = (b << r | b >> (32 - r)) ^ a;
    if (round % 4 == 3) {
      guint i = round / 4 + 1;
      a += keys[i % 3];
      b += keys[(i + 1) % 3] + i;
    }
  }
  out[0] = a;
  out[1] = b;
}

static TinyNode *
word (TinyBuild *self, guint32 value)
{
  return tiny_node_const_int (self->graph, TINY_DTYPE_U32, value);
}

static TinyNode *
u32 (TinyBuild *self, TinyOp op, TinyNode *x, guint32 value)
{
  return tiny_layout_binary (self->graph, op, x, word (self, value));
}

/* A word of a key: a number, or a node that is not known before it runs. */
typedef struct {
  guint32 value;
  TinyNode *node; /* or NULL */
} KeyWord;

/* @x + (the word + @more): what is in parentheses is one value for all of @x. */
static TinyNode *
add_key (TinyBuild *self, TinyNode *x, KeyWord key, guint32 more)
{
  if (key.node == NULL)
    return u32 (self, TINY_OP_ADD, x, key.value + more);
  TinyNode *word = more == 0 ? key.node : u32 (self, TINY_OP_ADD, key.node, more);
  return tiny_layout_binary (self->graph, TINY_OP_ADD, x, word);
}

static void
build_rounds (TinyBuild *self, const KeyWord keys[3], TinyNode *x[2])
{
  TinyNode *a = add_key (self, x[0], keys[0], 0);
  TinyNode *b = add_key (self, x[1], keys[1], 0);
  for (guint round = 0; round < 20; round++) {
    guint r = rotations[round % 8];
    a = tiny_layout_binary (self->graph, TINY_OP_ADD, a, b);
    b = tiny_layout_binary (self->graph, TINY_OP_OR, u32 (self, TINY_OP_SHL, b, r),
                            u32 (self, TINY_OP_SHR, b, 32 - r));
    b = tiny_layout_binary (self->graph, TINY_OP_XOR, b, a);
    if (round % 4 == 3) {
      guint i = round / 4 + 1;
      a = add_key (self, a, keys[i % 3], 0);
      b = add_key (self, b, keys[(i + 1) % 3], i);
    }
  }
  x[0] = a;
  x[1] = b;
}

TinyNode *
tiny_random_number (TinyBuild *self, guint32 number)
{
  TinyNode *node = tiny_node_new (
      self->graph, TINY_OP_VARIABLE, TINY_DTYPE_I32, 1, 0, NULL, (gint32) number,
      tiny_graph_ints (self->graph, (gint64[]){ G_MININT32, G_MAXINT32 }, 2), NULL);
  return op_bitcast (self, node, TINY_DTYPE_U32);
}

void
tiny_build_threefry_by (TinyBuild *self, TinyNode *const key[2], TinyNode *x[2])
{
  TinyNode *mixed = tiny_layout_binary (self->graph, TINY_OP_XOR, key[0], key[1]);
  const KeyWord keys[3]
      = { { 0, key[0] }, { 0, key[1] }, { 0, u32 (self, TINY_OP_XOR, mixed, PARITY) } };
  build_rounds (self, keys, x);
}

void
tiny_build_threefry (TinyBuild *self, const guint32 key[2], TinyNode *x[2])
{
  const KeyWord keys[3]
      = { { key[0], NULL }, { key[1], NULL }, { PARITY ^ key[0] ^ key[1], NULL } };
  build_rounds (self, keys, x);
}

/* The same for @n counters, with what a capture keeps in memory (random-capture.c). */
static void
build_captured (
    TinyBuild *self, TinyNode *const words[3], guint32 n_before, gint64 n, TinyNode *x[2])
{
  TinyNode *mixed = tiny_layout_binary (self->graph, TINY_OP_XOR, words[0], words[1]);
  TinyNode *keys[3] = { words[0], words[1], u32 (self, TINY_OP_XOR, mixed, PARITY) };
  KeyWord spread[3];
  for (guint i = 0; i < 3; i++)
    spread[i] = (KeyWord){ 0, tiny_build_expand (self, keys[i], &n, 1) };
  x[1] = u32 (self, TINY_OP_ADD, words[2], state.n_draws - 1 - n_before);
  x[1] = tiny_build_expand (self, x[1], &n, 1);
  build_rounds (self, spread, x);
}

void
tiny_tensor_manual_seed (guint64 value)
{
  tiny_runtime_lock ();
  state = (TinyRandomState){ value, 0 };
  is_seeded = TRUE;
  tiny_random_capture_note_seed ();
  tiny_runtime_unlock ();
}

TinyRandomState
tiny_random_get_state (void)
{
  ensure_seed ();
  return state;
}

void
tiny_random_set_state (TinyRandomState value)
{
  state = value;
}

void
tiny_random_key (guint32 key[2])
{
  ensure_seed ();
  guint32 seeds[2] = { (guint32) state.seed, (guint32) (state.seed >> 32) };
  tiny_threefry2x32 (seeds, (guint32[]){ G_MAXUINT32, state.n_draws++ }, key);
}

/* ---- batches ---- */
static _Thread_local TinyRandomBatch *innermost;

void
tiny_random_enter_batch (TinyRandomBatch *self)
{
  self->outer = innermost;
  innermost = self;
}

void
tiny_random_leave_batch (TinyRandomBatch *self)
{
  innermost = self->outer;
}

gboolean
tiny_random_spread (TinyBuild *self, gint64 n, TinyNode **counters)
{
  for (TinyRandomBatch *batch = innermost; batch != NULL; batch = batch->outer) {
    if (batch->randomness == TINY_RANDOMNESS_SAME)
      continue;
    if (batch->randomness == TINY_RANDOMNESS_ERROR || counters == NULL)
      return tiny_build_fail (
                 self,
                 "random numbers in vmap: randomness “same” draws them once for all of the "
                 "batch%s; or draw them outside",
                 counters == NULL ? "" : ", “different” anew for each")
             != NULL;
    if (n > 0 && batch->size > G_MAXUINT32 / n)
      return tiny_build_fail (self, "at most 2^32 elements can be drawn for a batch") != NULL;
    TinyNode *index = tiny_tensor_get_node (batch->index);
    if (n > 0)
      *counters = tiny_build_add (self, *counters, u32 (self, TINY_OP_MUL, index, (guint32) n));
    n *= MAX (batch->size, 1);
  }
  return TRUE;
}

/* A word of the seed as programs get it: a number at launch, so that one is compiled for all seeds. Numbers that are
 * equal are one variable of a program; the salts keep the seed's words apart from each other and from draws. */
static TinyNode *
seed_word (TinyBuild *self, guint i)
{
  static const guint32 salts[] = { 0x53656564u, 0xA0761D64u };
  const guint32 word = (guint32) (state.seed >> (32 * i));
  return u32 (self, TINY_OP_XOR, tiny_random_number (self, word ^ salts[i]), salts[i]);
}

/* Two random words for each of the elements of @shape. */
static gboolean
draw (TinyBuild *self, const gint64 *shape, guint n, TinyNode *out[2])
{
  if (!tiny_build_check_shape (self, shape, n))
    return FALSE;
  gint64 n_elements = 1;
  for (guint i = 0; i < n; i++)
    n_elements *= shape[i];
  if (n_elements > G_MAXUINT32)
    return tiny_build_fail (self, "at most 2^32 elements can be drawn at once") != NULL;
  guint32 n_before;
  TinyNode *words[3];
  ensure_seed ();
  out[0] = tiny_build_iota (self, TINY_DTYPE_U32, n_elements);
  if (!tiny_random_spread (self, n_elements, &out[0]))
    return FALSE;
  out[1] = tiny_random_number (self, state.n_draws++);
  if (n_elements > 0 && tiny_random_capture_get_words (self, words, &n_before))
    build_captured (self, words, n_before, n_elements, out);
  else if (n_elements > 0)
    tiny_build_threefry_by (self, (TinyNode *[]){ seed_word (self, 0), seed_word (self, 1) },
                            out);
  if (self->error != NULL)
    return FALSE;
  out[0] = tiny_node_reshape (self->graph, out[0], shape, n);
  out[1] = n_elements > 0 ? tiny_node_reshape (self->graph, out[1], shape, n) : out[0];
  return TRUE;
}

/* As many bits as the dtype has, so that nothing rounds up to 1. */
static TinyNode *
unit_interval (TinyBuild *self, TinyDType dtype, TinyNode *const words[2])
{
  guint n_bits = tiny_dtype_infos[dtype].mantissa_bits + 1;
  if (dtype != TINY_DTYPE_F64) {
    /* Through i32, which machines without unsigned conversions have. */
    TinyNode *bits = u32 (self, TINY_OP_SHR, words[0], 32 - n_bits);
    bits = tiny_layout_cast (self->graph, bits, TINY_DTYPE_I32);
    bits = tiny_layout_cast (self->graph, bits, TINY_DTYPE_F32);
    bits = tiny_build_mul (self, bits, tiny_build_like (self, bits, ldexp (1, -(int) n_bits)));
    return tiny_build_cast (self, bits, dtype);
  }
  TinyNode *high = u32 (self, TINY_OP_SHR, words[0], 5),
           *low = u32 (self, TINY_OP_SHR, words[1], 6);
  high = tiny_layout_cast (self->graph, high, TINY_DTYPE_F64);
  low = tiny_layout_cast (self->graph, low, TINY_DTYPE_F64);
  high = tiny_build_mul (self, high, tiny_build_like (self, high, ldexp (1, -27)));
  low = tiny_build_mul (self, low, tiny_build_like (self, low, ldexp (1, -53)));
  return tiny_build_add (self, high, low);
}

static TinyNode *
uniform_node (
    TinyBuild *self, TinyDType dtype, const gint64 *shape, guint n, double low, double high)
{
  TinyNode *words[2];
  if (!tiny_build_check_dtype (self, dtype))
    return NULL;
  if (!tiny_dtype_is_float (dtype))
    return tiny_build_fail (self, "takes a float dtype, not %s", tiny_dtype_to_string (dtype));
  if (!draw (self, shape, n, words))
    return NULL;
  TinyNode *unit = unit_interval (self, dtype, words);
  if (low == 0 && high == 1)
    return unit;
  unit = tiny_build_mul (self, unit, tiny_build_like (self, unit, high - low));
  return tiny_build_add (self, unit, tiny_build_like (self, unit, low));
}

TinyNode *
op_rand (TinyBuild *b, TinyDType dtype, const gint64 *shape, guint n_dims)
{
  return uniform_node (b, dtype, shape, n_dims, 0, 1);
}

TinyNode *
op_uniform (
    TinyBuild *b, TinyDType dtype, const gint64 *shape, guint n_dims, double low, double high)
{
  if (!isfinite (low) || !isfinite (high) || low > high)
    return tiny_build_fail (b, "nothing lies from %g up to %g", low, high);
  return uniform_node (b, dtype, shape, n_dims, low, high);
}

/* The product of all sizes but the first. */
static double
fan_in (const gint64 *shape, guint n)
{
  double fan = 1;
  for (guint i = 1; i < n; i++)
    fan *= (double) shape[i];
  return fan;
}

TinyNode *
op_kaiming_uniform (TinyBuild *b, TinyDType dtype, const gint64 *shape, guint n_dims, double a)
{
  if (!tiny_build_check_shape (b, shape, n_dims))
    return NULL;
  double bound = sqrt (6 / (1 + a * a) / MAX (fan_in (shape, n_dims), 1));
  return uniform_node (b, dtype, shape, n_dims, -bound, bound);
}

TinyNode *
op_glorot_uniform (TinyBuild *b, TinyDType dtype, const gint64 *shape, guint n_dims)
{
  if (!tiny_build_check_shape (b, shape, n_dims))
    return NULL;
  double fan_out = n_dims > 0 ? (double) shape[0] : 1;
  double bound = sqrt (6 / MAX (fan_in (shape, n_dims) + fan_out, 1));
  return uniform_node (b, dtype, shape, n_dims, -bound, bound);
}

TinyNode *
op_scaled_uniform (TinyBuild *b, TinyDType dtype, const gint64 *shape, guint n_dims)
{
  if (!tiny_build_check_shape (b, shape, n_dims))
    return NULL;
  double n = n_dims > 0 ? fan_in (shape, n_dims) * (double) shape[0] : 1;
  double bound = 1 / sqrt (MAX (n, 1));
  return uniform_node (b, dtype, shape, n_dims, -bound, bound);
}

/* sqrt (-2 ln (1 - u)) cos (2 π v) of two uniform u and v. */
TinyNode *
op_randn (TinyBuild *b, TinyDType dtype, const gint64 *shape, guint n_dims)
{
  TinyNode *words[2], *more[2];
  if (!tiny_build_check_dtype (b, dtype))
    return NULL;
  if (!tiny_dtype_is_float (dtype))
    return tiny_build_fail (b, "takes a float dtype, not %s", tiny_dtype_to_string (dtype));
  if (!draw (b, shape, n_dims, words) || !draw (b, shape, n_dims, more))
    return NULL;
  TinyDType wide = dtype == TINY_DTYPE_F64 ? dtype : TINY_DTYPE_F32;
  TinyNode *u = unit_interval (b, wide, words), *v = unit_interval (b, wide, more);
  TinyNode *log = op_log (b, tiny_build_sub (b, tiny_build_like (b, u, 1), u));
  TinyNode *radius = tiny_build_unary (b, TINY_OP_SQRT,
                                       tiny_build_mul (b, log, tiny_build_like (b, log, -2)));
  TinyNode *angle = tiny_build_mul (b, v, tiny_build_like (b, v, 2 * G_PI));
  return tiny_build_cast (b, tiny_build_mul (b, radius, op_cos (b, angle)), dtype);
}

TinyNode *
op_normal (
    TinyBuild *b, TinyDType dtype, const gint64 *shape, guint n_dims, double mean, double std)
{
  if (!isfinite (mean) || !isfinite (std) || std < 0)
    return tiny_build_fail (b, "no distribution has mean %g and standard deviation %g", mean,
                            std);
  TinyNode *x = op_randn (b, dtype, shape, n_dims);
  x = tiny_build_mul (b, x, tiny_build_like (b, x, std));
  return tiny_build_add (b, x, tiny_build_like (b, x, mean));
}

TinyNode *
op_kaiming_normal (TinyBuild *b, TinyDType dtype, const gint64 *shape, guint n_dims, double a)
{
  if (!tiny_build_check_shape (b, shape, n_dims))
    return NULL;
  return op_normal (b, dtype, shape, n_dims, 0,
                    sqrt (2 / (1 + a * a) / MAX (fan_in (shape, n_dims), 1)));
}

TinyNode *
op_random_bits (TinyBuild *b, const gint64 *shape, guint n_dims)
{
  TinyNode *words[2] = { NULL };
  return draw (b, shape, n_dims, words) ? words[0] : NULL;
}

/* Both words of each number: low, then high. */
static void
split_words (TinyBuild *b, TinyNode *x, const TinyInts *shape, TinyNode *out[2])
{
  x = tiny_build_cast (b, x, TINY_DTYPE_U64);
  TinyNode *high = tiny_build_binary (b, TINY_OP_SHR, x,
                                      tiny_node_const_int (b->graph, TINY_DTYPE_U64, 32));
  out[0] = tiny_build_expand (b, tiny_build_cast (b, x, TINY_DTYPE_U32), shape->v, shape->n);
  out[1] = tiny_build_expand (b, tiny_build_cast (b, high, TINY_DTYPE_U32), shape->v, shape->n);
}

TinyNode *
op_threefry (TinyBuild *b, TinyNode *self, TinyNode *seed)
{
  TinyNode *x[2], *key[2];
  TinyNode *both = tiny_build_add (b, self, seed); /* for its shape */
  if (both == NULL)
    return NULL;
  split_words (b, self, both->shape, x);
  split_words (b, seed, both->shape, key);
  if (b->error != NULL)
    return NULL;
  if (!tiny_build_is_empty (both))
    tiny_build_threefry_by (b, key, x);
  TinyNode *low = tiny_build_cast (b, x[0], TINY_DTYPE_U64),
           *high = tiny_build_cast (b, x[1], TINY_DTYPE_U64);
  high = tiny_build_binary (b, TINY_OP_SHL, high,
                            tiny_node_const_int (b->graph, TINY_DTYPE_U64, 32));
  return tiny_build_binary (b, TINY_OP_OR, low, high);
}

TinyNode *
op_rand_like (TinyBuild *b, TinyNode *self, TinyDType dtype)
{
  return op_rand (b, dtype == TINY_DTYPE_VOID ? (TinyDType) self->dtype : dtype, self->shape->v,
                  self->shape->n);
}

TinyNode *
op_randn_like (TinyBuild *b, TinyNode *self, TinyDType dtype)
{
  return op_randn (b, dtype == TINY_DTYPE_VOID ? (TinyDType) self->dtype : dtype,
                   self->shape->v, self->shape->n);
}

/* low + floor (word * span / 2^32) */
TinyNode *
op_randint (
    TinyBuild *b, TinyDType dtype, const gint64 *shape, guint n_dims, gint64 low, gint64 high)
{
  TinyNode *words[2];
  guint64 span = (guint64) high - (guint64) low;
  if (!tiny_build_check_dtype (b, dtype))
    return NULL;
  if (high <= low || span > (guint64) 1 << 32)
    return tiny_build_fail (
        b, "%" G_GINT64_FORMAT " up to %" G_GINT64_FORMAT " holds no or too many numbers", low,
        high);
  if (!tiny_dtype_is_integer (dtype))
    return tiny_build_fail (b, "takes an integer dtype, not %s", tiny_dtype_to_string (dtype));
  if (low < tiny_dtype_get_min (dtype) || high - 1 > tiny_dtype_get_max (dtype))
    return tiny_build_fail (
        b, "%" G_GINT64_FORMAT " up to %" G_GINT64_FORMAT " is not in the range of %s", low,
        high, tiny_dtype_to_string (dtype));
  if (!draw (b, shape, n_dims, words))
    return NULL;
  TinyNode *wide = tiny_layout_cast (b->graph, words[0], TINY_DTYPE_U64);
  TinyNode *factor = tiny_node_const_int (b->graph, TINY_DTYPE_U64, (gint64) span);
  TinyNode *shift = tiny_node_const_int (b->graph, TINY_DTYPE_U64, 32);
  wide = tiny_build_binary (b, TINY_OP_SHR, tiny_build_mul (b, wide, factor), shift);
  return tiny_build_add (b, tiny_build_cast (b, wide, dtype),
                         tiny_node_const_int (b->graph, dtype, low));
}

TinyNode *
op_dropout (TinyBuild *b, TinyNode *self, double p)
{
  TinyNode *words[2];
  if (!(p >= 0 && p <= 1))
    return tiny_build_fail (b, "the probability %g is not from 0 to 1", p);
  if (p == 0)
    return self;
  if (p == 1)
    return tiny_build_mul (b, self, tiny_build_like (b, self, 0));
  if (!draw (b, self->shape->v, self->shape->n, words))
    return NULL;
  TinyNode *keep
      = tiny_build_binary (b, TINY_OP_CMPLT, tiny_build_number (b, TINY_DTYPE_F32, p),
                           unit_interval (b, TINY_DTYPE_F32, words));
  TinyNode *scaled = tiny_build_mul (b, self, tiny_build_like (b, self, 1 / (1 - p)));
  return tiny_build_where (b, keep, scaled, tiny_build_like (b, self, 0));
}
