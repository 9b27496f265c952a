/* SPDX-License-Identifier: MIT
 *
 * operation.c: an operation by its definition, in long double, with what rounding may do to each element. */
#include "operation.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "oracle.h"
#include "tiny-plugin-kit.h"

enum { ALL = (1u << TINY_OPERATION_MAX_AXES) - 1 };

double
conf_operation_get_roundoff (TinyDType dtype)
{
  return tiny_dtype_is_float (dtype)
             ? ldexp (1, -(int) tiny_dtype_infos[dtype].mantissa_bits - 1)
             : 0;
}

gboolean
conf_operation_has_floats (const TinyOperation *operation)
{
  return tiny_dtype_is_float ((TinyDType) operation->operands[1].dtype);
}

/* ---- positions ---- */
typedef struct {
  const TinyOperation *operation;
  guint8 *const *buffers;
  gint64 at[TINY_OPERATION_MAX_AXES];
} Walk;

/* The next position of the axes in @mask, the last fastest; FALSE behind the last, where it is the first again. */
static gboolean
step (Walk *self, guint mask)
{
  for (guint i = TINY_OPERATION_MAX_AXES; i-- > 0;) {
    if (!(mask >> i & 1))
      continue;
    if (++self->at[i] < self->operation->extents[i])
      return TRUE;
    self->at[i] = 0;
  }
  return FALSE;
}

static gint64
find_place (const Walk *self, const TinyOperandView *view)
{
  gint64 place = view->offset;
  for (guint i = 0; i < self->operation->n_axes; i++)
    place += self->at[i] * view->strides[i];
  return place;
}

/* Goes on to where the window is; FALSE where that is padding. */
static gboolean
move_window (Walk *self)
{
  for (guint i = 0; i < 3; i++) {
    gint64 *y = &self->at[TINY_CONVOLUTION_OUT + i],
           *w = &self->at[TINY_CONVOLUTION_WINDOW + i];
    *y = *y * self->operation->window_step[i] + *w * self->operation->window_dilation[i]
         - self->operation->window_padding[i];
    *w = 0;
    if (*y < 0 || *y >= self->operation->window_input[i])
      return FALSE;
  }
  return TRUE;
}

static long double
get (const Walk *self, TinyOperandRole role)
{
  const TinyOperandView *view = tiny_find_operand (self->operation, role);
  Walk moved = *self;
  if (role == TINY_ROLE_A && self->operation->kind == TINY_OPERATION_CONVOLUTION
      && !move_window (&moved))
    return 0;
  const gint64 bits = conf_decode ((TinyDType) view->dtype, self->buffers[view->buffer],
                                   (gsize) find_place (&moved, view));
  return tiny_dtype_is_float ((TinyDType) view->dtype) ? conf_to_double (bits)
                                                       : (long double) bits;
}

/* ---- operands ---- */
gsize
conf_operation_get_n_bytes (const TinyOperation *operation, guint i)
{
  for (guint k = 0; k < operation->n_operands; k++)
    if (operation->operands[k].buffer == i)
      return operation->operands[k].n_elements
             * tiny_dtype_get_n_bytes ((TinyDType) operation->operands[k].dtype);
  return 0;
}

static guint64
mix (guint64 salt, guint64 i)
{
  guint64 x = (i + 1) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15)
              ^ (salt + 1) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  x ^= x >> 31;
  x *= G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return x ^ x >> 29;
}

/* In -4 … 4, or in ±(1/8 … 2), of which f16 has all that are drawn. */
static double
draw (ConfNumbers numbers, guint64 bits)
{
  if (numbers == CONF_NUMBERS_WHOLE)
    return (double) (gint64) (bits % 9) - 4;
  const double size = ldexp (1 + (double) (bits >> 8 & 0xff) / 256, -(int) (bits & 3));
  return numbers == CONF_NUMBERS_SIGNED && bits >> 40 & 1 ? -size : size;
}

/* Every element that @view names; what a convolution reads only where it has places. */
static void
fill_view (const TinyOperation *operation,
           const TinyOperandView *view,
           ConfNumbers numbers,
           guint64 salt,
           guint8 *data)
{
  const TinyDType dtype = (TinyDType) view->dtype;
  TinyOperation named = *operation;
  if (operation->kind == TINY_OPERATION_CONVOLUTION && view->role == TINY_ROLE_A)
    for (guint i = 0; i < 3; i++)
      named.extents[TINY_CONVOLUTION_OUT + i] = operation->window_input[i];
  guint mask = 0;
  for (guint i = 0; i < TINY_OPERATION_MAX_AXES; i++)
    mask |= view->strides[i] != 0 ? 1u << i : 0;
  Walk walk = { .operation = &named };
  do {
    const gsize place = (gsize) find_place (&walk, view);
    const double value = draw (numbers, mix (salt * 8 + view->role, place));
    const gboolean is_unsigned = !tiny_dtype_is_float (dtype) && !tiny_dtype_is_signed (dtype);
    conf_encode (dtype, data, place,
                 tiny_dtype_is_float (dtype) ? conf_from_double (value)
                                             : (gint64) (is_unsigned ? fabs (value) : value));
  } while (step (&walk, mask));
}

/* What no view names has to be left alone, and unread: a NaN is seen in every result. */
static void
fill_background (const TinyOperandView *view, guint8 *data)
{
  const TinyDType dtype = (TinyDType) view->dtype;
  memset (data, 0x7f, view->n_elements * tiny_dtype_get_n_bytes (dtype));
  for (gsize e = 0; e < view->n_elements && tiny_dtype_is_float (dtype); e++)
    conf_encode (dtype, data, e, conf_from_double ((double) NAN));
}

void
conf_operation_fill (
    const TinyOperation *operation, guint i, ConfNumbers numbers, guint64 salt, guint8 *data)
{
  gboolean is_begun = FALSE;
  for (guint k = 0; k < operation->n_operands; k++) {
    const TinyOperandView *view = &operation->operands[k];
    if (view->buffer != i)
      continue;
    if (!is_begun)
      fill_background (view, data);
    is_begun = TRUE;
    if (view->role != TINY_ROLE_OUTPUT)
      fill_view (operation, view, numbers, salt, data);
  }
}

/* ---- what comes out ---- */

/* A number, and how far from it a device may be. */
typedef struct {
  long double value, bound;
} Result;

/* The bound of a sum of @n numbers whose sizes are @sizes together, each rounded once when it was made. */
static long double
bound_of_sum (const TinyOperation *operation, gint64 n, long double sizes)
{
  const long double u = conf_operation_get_roundoff ((TinyDType) operation->compute_dtype);
  const long double ku = (long double) n * u;
  return ku >= 1 ? INFINITY : ku / (1 - ku) * sizes;
}

/* What is rounded once more. */
static void
round_result (const TinyOperation *operation, Result *r)
{
  r->bound += conf_operation_get_roundoff ((TinyDType) operation->compute_dtype)
              * (fabsl (r->value) + r->bound);
}

/* Sums of whole numbers are exact, whatever their order, as long as each part is: then nothing may be off. */
static Result
multiply (Walk *self, guint summed)
{
  long double sum = 0, sizes = 0;
  gint64 n = 0;
  gboolean is_whole = TRUE;
  do {
    const long double product = get (self, TINY_ROLE_A) * get (self, TINY_ROLE_B);
    is_whole = is_whole && product == rintl (product);
    sum += product;
    sizes += fabsl (product);
    n++;
  } while (step (self, summed));
  const double u = conf_operation_get_roundoff ((TinyDType) self->operation->compute_dtype);
  if (is_whole && (u == 0 || sizes * u <= 1))
    return (Result){ sum, 0 };
  return (Result){ sum, bound_of_sum (self->operation, n, sizes) };
}

/* Maxima are exact; a product of K numbers is rounded K - 1 times. */
static Result
reduce (Walk *self, guint reduced)
{
  const TinyOperation *operation = self->operation;
  const double u = conf_operation_get_roundoff ((TinyDType) operation->compute_dtype);
  long double sum = 0, sizes = 0, product = 1, most = -INFINITY;
  gint64 n = 0;
  gboolean is_whole = TRUE;
  do {
    const long double x = get (self, TINY_ROLE_A);
    is_whole = is_whole && x == rintl (x);
    sum += x;
    sizes += fabsl (x);
    product *= x;
    most = MAX (most, x);
    n++;
  } while (step (self, reduced));
  if (operation->reduce == TINY_INSTR_MAX)
    return (Result){ most, 0 };
  if (operation->reduce == TINY_INSTR_MUL)
    return (Result){ product, is_whole && fabsl (product) * u <= 1
                                  ? 0
                                  : bound_of_sum (operation, n, fabsl (product)) };
  return (Result){ sum, is_whole && sizes * u <= 1 ? 0 : bound_of_sum (operation, n, sizes) };
}

/* Each power is off by what the rounding of its exponent, of x · scale and of the distance from the maximum, makes
 * of it, and by 3 units of EXP2 (bounds.def); the sum of K powers is off by as much and K units more, and its
 * reciprocal by 2.5. What is below the least normal number may be lost. */
static Result
divide_powers (Walk *self)
{
  const TinyOperation *operation = self->operation;
  const double u = conf_operation_get_roundoff ((TinyDType) operation->compute_dtype);
  const long double scale = operation->scale, own = get (self, TINY_ROLE_A) * scale;
  const gint64 at = self->at[TINY_SOFTMAX_AXIS], n = operation->extents[TINY_SOFTMAX_AXIS];
  long double sum = 0, most = -INFINITY, largest = 0;
  for (gint64 pass = 0; pass < 2; pass++)
    for (gint64 k = 0; k < n; k++) {
      self->at[TINY_SOFTMAX_AXIS] = k;
      const long double x = get (self, TINY_ROLE_A) * scale;
      most = pass == 0 ? MAX (most, x) : most;
      largest = MAX (largest, fabsl (x));
      sum += pass == 0 ? 0 : expl (x - most);
    }
  self->at[TINY_SOFTMAX_AXIS] = at;
  const long double value = expl (own - most) / sum;
  /* Exponents: two roundings of x · scale, one of the distance, two of its way to base 2. */
  const long double each = u * (4 * largest + 6 * largest + 6);
  const long double relative = 2 * each + bound_of_sum (operation, n, 1) + 8 * u;
  return (Result){ value, relative / (1 - MIN (relative, 0.5L)) * value
                              + conf_least_normal ((TinyDType) operation->compute_dtype) };
}

/* The score of the key that the axes are at, before the softmax; -∞ where it does not count. In @out_size, what all
 * that it is made of is together. */
static Result
find_score (Walk *self, long double *out_size)
{
  const TinyOperation *operation = self->operation;
  const long double u = conf_operation_get_roundoff ((TinyDType) operation->compute_dtype);
  const long double scale = fabsl ((long double) operation->scale);
  const gint64 n = operation->extents[TINY_ATTENTION_DEPTH];
  long double sum = 0, sizes = 0, mask = 0;
  *out_size = 0;
  if (operation->flags & TINY_OPERATION_CAUSAL
      && self->at[TINY_ATTENTION_KEY] > self->at[TINY_ATTENTION_QUERY]
                                            + operation->extents[TINY_ATTENTION_KEY]
                                            - operation->extents[TINY_ATTENTION_QUERY])
    return (Result){ -INFINITY, 0 };
  do {
    const long double product = get (self, TINY_ROLE_A) * get (self, TINY_ROLE_B);
    sum += product;
    sizes += fabsl (product);
  } while (step (self, 1u << TINY_ATTENTION_DEPTH));
  if (tiny_find_operand (operation, TINY_ROLE_MASK) != NULL)
    mask = get (self, TINY_ROLE_MASK);
  *out_size = sizes * scale + fabsl (mask);
  /* The sum, its scale, which may be taken of a factor as well, and the mask. */
  return (Result){ sum * operation->scale + mask,
                   bound_of_sum (operation, n, sizes * scale) + 4 * u * *out_size };
}

/* Weights are a softmax, of scores that are off themselves; then a sum of products, in which each weight is off by
 * as much of itself. */
static Result
attend (Walk *self)
{
  const TinyOperation *operation = self->operation;
  const double u = conf_operation_get_roundoff ((TinyDType) operation->compute_dtype);
  const gint64 n = operation->extents[TINY_ATTENTION_KEY];
  gint64 *key = &self->at[TINY_ATTENTION_KEY];
  g_autofree long double *scores = g_new (long double, n);
  long double most = -INFINITY, largest = 0, off = 0, powers = 0, sum = 0, sizes = 0,
              values = 0;
  for (*key = 0; *key < n; ++*key) {
    long double size;
    const Result score = find_score (self, &size);
    scores[*key] = score.value;
    most = MAX (most, score.value);
    largest = MAX (largest, size);
    off = MAX (off, score.bound);
  }
  for (*key = 0; *key < n; ++*key) {
    const long double power = expl (scores[*key] - most), value = get (self, TINY_ROLE_B2);
    powers += power;
    sum += power * value;
    sizes += power * fabsl (value);
    values += fabsl (value);
  }
  *key = 0;
  /* Exponents as in divide_powers(). */
  const long double each = off + u * (10 * largest + 6);
  const long double relative = 2 * each + bound_of_sum (operation, n, 1) + 8 * u;
  return (Result){ sum / powers,
                   (relative / (1 - MIN (relative, 0.5L)) + bound_of_sum (operation, n + 1, 1))
                           * (sizes / powers)
                       + values * conf_least_normal ((TinyDType) operation->compute_dtype) };
}

/* An activation f, the most that it stretches an error, and how far off it is itself: it is made of at most three
 * EXP2 or RECIP, each off by 3 units of its result (bounds.def), and of about as many products and sums, all of
 * numbers no larger than 2 or the result's: 16 units cover them. */
static long double
activate (guint activation, long double x, long double *out_stretch)
{
  *out_stretch = 1;
  switch (activation) {
  case TINY_ACTIVATION_RELU:
    return x > 0 ? x : 0;
  case TINY_ACTIVATION_SIGMOID:
    *out_stretch = 0.25L;
    return 1 / (1 + expl (-x));
  case TINY_ACTIVATION_TANH:
    return tanhl (x);
  case TINY_ACTIVATION_SILU:
    *out_stretch = 1.1L;
    return x / (1 + expl (-x));
  case TINY_ACTIVATION_GELU:
    *out_stretch = 1.13L;
    return x * (1 + tanhl (sqrtl (2 / (long double) G_PI) * (x + 0.044715L * x * x * x))) / 2;
  default:
    return x;
  }
}

static void
add_epilogue (const Walk *self, Result *r)
{
  const TinyOperation *operation = self->operation;
  if (operation->scale != 1) {
    /* As a device holds it. */
    const gint64 bits = conf_from_double (operation->scale);
    const long double scale = conf_to_double (bits);
    r->value *= scale;
    r->bound *= fabsl (scale);
    /* The factor is rounded as well. */
    round_result (operation, r);
    round_result (operation, r);
  }
  if (tiny_find_operand (operation, TINY_ROLE_BIAS) != NULL) {
    r->value += get (self, TINY_ROLE_BIAS);
    if (r->bound > 0 || r->value != rintl (r->value))
      round_result (operation, r);
  }
  long double stretch;
  const long double u = conf_operation_get_roundoff ((TinyDType) operation->compute_dtype);
  r->value = activate (operation->activation, r->value, &stretch);
  r->bound *= stretch;
  if (operation->activation > TINY_ACTIVATION_RELU)
    r->bound += 16 * u * (1 + fabsl (r->value));
}

static Result
compute (Walk *self)
{
  Result r = { 0, INFINITY };
  switch (self->operation->kind) {
  case TINY_OPERATION_MATMUL:
    r = multiply (self, 1u << TINY_MATMUL_K);
    break;
  case TINY_OPERATION_CONVOLUTION:
    r = multiply (self, 1u << TINY_CONVOLUTION_IN_CHANNEL | 7u << TINY_CONVOLUTION_WINDOW);
    break;
  case TINY_OPERATION_REDUCTION:
    r = reduce (self, 15u << TINY_REDUCTION_REDUCED);
    break;
  case TINY_OPERATION_SOFTMAX:
    return divide_powers (self);
  case TINY_OPERATION_ATTENTION:
    return attend (self);
  default:
    return r;
  }
  add_epilogue (self, &r);
  return r;
}

/* The axes of the output. */
static guint
find_outer (const TinyOperation *operation)
{
  switch (operation->kind) {
  case TINY_OPERATION_MATMUL:
    return ALL & ~(1u << TINY_MATMUL_K);
  case TINY_OPERATION_REDUCTION:
    return ALL & ~(15u << TINY_REDUCTION_REDUCED);
  case TINY_OPERATION_SOFTMAX:
    return ALL;
  case TINY_OPERATION_ATTENTION:
    return ALL & ~(1u << TINY_ATTENTION_KEY | 1u << TINY_ATTENTION_DEPTH);
  default:
    return ALL & ~(1u << TINY_CONVOLUTION_IN_CHANNEL | 7u << TINY_CONVOLUTION_WINDOW);
  }
}

/* Conversion to the output's dtype: to the nearest, of a number that is as far off as it may be. */
static long double
widen_bound (TinyDType to, TinyDType wide, const Result *r)
{
  if (!tiny_dtype_is_float (to))
    return r->bound;
  const gint64 bits = conf_from_double ((double) r->value);
  gint64 stored = 0;
  guint8 memory[8];
  conf_encode (to, memory, 0, bits);
  stored = conf_decode (to, memory, 0);
  if (r->bound == 0 && (to == wide || conf_to_double (stored) == (double) r->value))
    return 0;
  return r->bound + conf_ulp_of (to, fabsl (r->value) + r->bound) / 2;
}

static gboolean
check_element (ConfTrial *trial, const Walk *walk, double *worst, const char *what)
{
  Walk inner = *walk;
  const TinyOperandView *view = &walk->operation->operands[0];
  const TinyDType to = (TinyDType) view->dtype;
  const Result r = compute (&inner);
  const long double bound = widen_bound (to, (TinyDType) walk->operation->compute_dtype, &r);
  const gsize place = (gsize) find_place (walk, view);
  const gint64 bits = conf_decode (to, walk->buffers[view->buffer], place);
  const long double got = tiny_dtype_is_float (to) ? conf_to_double (bits) : (long double) bits;
  const long double off = fabsl (got - r.value);
  if (bound > 0)
    *worst = MAX (*worst, isfinite (off) ? (double) (off / bound) : 0x1p1000);
  if (trial == NULL) /* of a thread that says it itself */
    return off <= bound;
  return conf_check (trial, off <= bound,
                     "%s: element %" G_GSIZE_FORMAT
                     " is %.9Lg, and %.9Lg is right: off by %.3Lg, %.3Lg is allowed",
                     what, place, got, r.value, off, bound);
}

gboolean
conf_operation_check (ConfTrial *trial,
                      const TinyOperation *operation,
                      guint8 *const *buffers,
                      const char *what)
{
  Walk walk = { .operation = operation, .buffers = buffers };
  const guint outer = find_outer (operation);
  double worst = 0;
  gboolean good = TRUE;
  do
    good = check_element (trial, &walk, &worst, what);
  while (good && step (&walk, outer));
  if (worst > 0 && trial != NULL)
    conf_record (trial, "worst error", worst, "of its bound");
  return good;
}
