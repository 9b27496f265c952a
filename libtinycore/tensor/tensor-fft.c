/* SPDX-License-Identifier: MIT
 *
 * tensor-fft.c: Fourier transforms of any size. A complex number is two on a last axis.
 *
 * Cooley and Tukey (1965): of N = P Q numbers, those at distance Q are transformed by the matrix of P,
 * turned, and the rest is a transform of Q. P is a small divisor; where only a large prime is left it is a
 * matrix as well, or from 512 on a convolution with a chirp (Bluestein 1970), of a size that is a power
 * of 2. Angles are whole parts of a turn, brought to an eighth of one before a float sees them. Inside, the
 * real and imaginary parts are apart, (B, N) each. */
#include <math.h>
#include <string.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"

enum { LARGEST_RADIX = 16, LEAST_CHIRP = 512 };

typedef struct {
  TinyNode *re, *im; /* im: NULL for 0 */
} Pair;

static Pair
multiply (TinyBuild *b, Pair x, Pair y)
{
  if (x.im == NULL)
    return (Pair){ tiny_build_mul (b, x.re, y.re), tiny_build_mul (b, x.re, y.im) };
  return (Pair){
    tiny_build_sub (b, tiny_build_mul (b, x.re, y.re), tiny_build_mul (b, x.im, y.im)),
    tiny_build_add (b, tiny_build_mul (b, x.re, y.im), tiny_build_mul (b, x.im, y.re))
  };
}

/* ---- angles ---- */

/* exp (sign 2πi r / n) of whole numbers @r from 0 to below @n. */
static Pair
turns (TinyBuild *b, TinyNode *r, gint64 n, gint sign, TinyDType dtype)
{
  TinyNode *four = tiny_build_mul (b, r, tiny_build_like (b, r, 4));
  /* The nearest quarter, and what is left: from -n/2 to n/2 of a quarter. */
  TinyNode *twice = tiny_build_add (b, tiny_build_mul (b, four, tiny_build_like (b, four, 2)),
                                    tiny_build_like (b, four, (double) n));
  TinyNode *quarter
      = tiny_build_binary (b, TINY_OP_IDIV, twice, tiny_build_like (b, four, 2.0 * (double) n));
  TinyNode *rest = tiny_build_sub (
      b, four, tiny_build_mul (b, quarter, tiny_build_like (b, quarter, (double) n)));
  TinyNode *angle
      = tiny_build_mul_number (b, tiny_build_cast (b, rest, dtype), G_PI_2 / (double) n);
  TinyNode *sine = op_sin (b, angle), *cosine = op_cos (b, angle);
  TinyNode *one = tiny_build_like (b, quarter, 1), *zero = tiny_build_like (b, quarter, 0);
  TinyNode *is_odd = tiny_build_binary (b, TINY_OP_CMPNE,
                                        tiny_build_binary (b, TINY_OP_AND, quarter, one), zero);
  TinyNode *two = tiny_build_like (b, quarter, 2);
  TinyNode *half = tiny_build_binary (b, TINY_OP_AND, quarter, two);
  TinyNode *next = tiny_build_binary (b, TINY_OP_AND, tiny_build_add (b, quarter, one), two);
  TinyNode *re = tiny_build_where (b, is_odd, sine, cosine);
  TinyNode *im = tiny_build_where (b, is_odd, cosine, sine);
  TinyNode *is_left = tiny_build_binary (b, TINY_OP_CMPNE, next, zero);
  TinyNode *is_below = tiny_build_binary (b, TINY_OP_CMPNE, half, zero);
  re = tiny_build_where (b, is_left, op_neg (b, re), re);
  im = tiny_build_where (b, is_below, op_neg (b, im), im);
  return (Pair){ tiny_build_store (b, re),
                 tiny_build_store (b, sign < 0 ? op_neg (b, im) : im) };
}

/* Turns of (row times column) / n, (rows, columns). */
static Pair
table (TinyBuild *b, gint64 rows, gint64 columns, gint64 n, gint sign, TinyDType dtype)
{
  TinyNode *row = tiny_build_iota (b, TINY_DTYPE_I64, rows);
  row = tiny_build_reshape (b, row, (gint64[]){ rows, 1 }, 2);
  TinyNode *product = tiny_build_mul (b, row, tiny_build_iota (b, TINY_DTYPE_I64, columns));
  if (product == NULL)
    return (Pair){ NULL, NULL };
  TinyNode *r
      = tiny_build_binary (b, TINY_OP_MOD, product, tiny_build_like (b, product, (double) n));
  return turns (b, r, n, sign, dtype);
}

/* ---- transforms of (B, N) ---- */
static TinyNode *
shaped (TinyBuild *b, TinyNode *x, gint64 p, gint64 q, gint64 r)
{
  return x == NULL ? NULL : tiny_build_reshape (b, x, (gint64[]){ p, q, r }, 3);
}

/* @x (B, P, Q) by the matrix of P: sum over p of x (B, 1, P, Q) w (P', P, 1). */
static Pair
by_matrix (TinyBuild *b, Pair x, gint sign)
{
  gint64 n = x.re->shape->v[1], axes[] = { 2 };
  Pair w = table (b, n, n, n, sign, (TinyDType) x.re->dtype);
  Pair wide = { tiny_build_unsqueeze (b, w.re, 2), tiny_build_unsqueeze (b, w.im, 2) };
  Pair y = { tiny_build_unsqueeze (b, x.re, 1),
             x.im == NULL ? NULL : tiny_build_unsqueeze (b, x.im, 1) };
  y = multiply (b, y, wide);
  return (Pair){
    tiny_build_store (b, tiny_build_squeeze (b, tiny_build_sum (b, y.re, axes, 1), axes, 1)),
    tiny_build_store (b, tiny_build_squeeze (b, tiny_build_sum (b, y.im, axes, 1), axes, 1))
  };
}

static Pair transform (TinyBuild *b, Pair x, gint sign);

static Pair
padded (TinyBuild *b, Pair x, gint64 more)
{
  const gint64 pairs[] = { 0, 0, 0, more };
  return (Pair){ tiny_build_pad (b, x.re, pairs, 0),
                 x.im == NULL ? NULL : tiny_build_pad (b, x.im, pairs, 0) };
}

/* nk = (n² + k² - (k - n)²) / 2: numbers times a chirp, convolved with its inverse, times a chirp. */
static Pair
by_chirp (TinyBuild *b, Pair x, gint sign)
{
  gint64 n = x.re->shape->v[1], m = 1;
  TinyDType dtype = (TinyDType) x.re->dtype;
  while (m < 2 * n - 1)
    m *= 2;
  TinyNode *at = tiny_build_iota (b, TINY_DTYPE_I64, n);
  TinyNode *square = tiny_build_binary (b, TINY_OP_MOD, tiny_build_mul (b, at, at),
                                        tiny_build_like (b, at, 2.0 * (double) n));
  Pair chirp = turns (b, square, 2 * n, sign, dtype);
  /* The inverse at 0 … n-1, and at the end, where a circle begins, at -1, -2 … */
  TinyNode *parts[2] = { chirp.re, op_neg (b, chirp.im) };
  for (guint i = 0; i < 2; i++) {
    TinyNode *late = tiny_build_slice (b, parts[i], 0, 1, 1, n - 1);
    if (late == NULL)
      return (Pair){ NULL, NULL };
    late = tiny_node_flip (b->graph, late, (gint64[]){ 0 }, 1);
    TinyNode *early = tiny_build_pad (b, parts[i], (gint64[]){ 0, m - n }, 0);
    late = tiny_build_pad (b, late, (gint64[]){ m - n + 1, 0 }, 0);
    parts[i] = tiny_build_reshape (b, tiny_build_add (b, early, late), (gint64[]){ 1, m }, 2);
  }
  Pair filter = transform (b, (Pair){ parts[0], parts[1] }, -1);
  Pair y = transform (b, padded (b, multiply (b, x, chirp), m - n), -1);
  y = transform (b, multiply (b, y, filter), 1);
  if (y.re == NULL || y.im == NULL)
    return (Pair){ NULL, NULL };
  y.re = tiny_build_mul_number (b, tiny_build_slice (b, y.re, 1, 0, 1, n), 1 / (double) m);
  y.im = tiny_build_mul_number (b, tiny_build_slice (b, y.im, 1, 0, 1, n), 1 / (double) m);
  return multiply (b, y, chirp);
}

/* The largest divisor up to LARGEST_RADIX; @n itself when it has none, or is that small. */
static gint64
radix_of (gint64 n)
{
  if (n <= LARGEST_RADIX)
    return n;
  for (gint64 p = LARGEST_RADIX; p > 1; p--)
    if (n % p == 0)
      return p;
  for (gint64 p = LARGEST_RADIX + 1; p * p <= n; p++)
    if (n % p == 0)
      return p;
  return n;
}

static Pair
transform (TinyBuild *b, Pair x, gint sign)
{
  if (x.re == NULL || b->error != NULL)
    return (Pair){ NULL, NULL };
  gint64 batch = x.re->shape->v[0], n = x.re->shape->v[1], p = radix_of (n), q = n / p;
  if (p >= LEAST_CHIRP)
    return by_chirp (b, x, sign);
  x = (Pair){ shaped (b, x.re, batch, p, q), shaped (b, x.im, batch, p, q) };
  x = by_matrix (b, x, sign);
  if (q > 1) {
    x = multiply (b, x, table (b, p, q, n, sign, (TinyDType) x.re->dtype));
    x = transform (
        b,
        (Pair){
            tiny_build_reshape (b, tiny_build_store (b, x.re), (gint64[]){ batch * p, q }, 2),
            tiny_build_reshape (b, tiny_build_store (b, x.im), (gint64[]){ batch * p, q }, 2) },
        sign);
    /* Result k1 + P k2 is at (k1, k2). */
    x.re = tiny_build_transpose (b, shaped (b, x.re, batch, p, q), 1, 2);
    x.im = tiny_build_transpose (b, shaped (b, x.im, batch, p, q), 1, 2);
  }
  return (Pair){ tiny_build_reshape (b, x.re, (gint64[]){ batch, n }, 2),
                 tiny_build_reshape (b, x.im, (gint64[]){ batch, n }, 2) };
}

/* ---- along an axis ---- */

/* The parts of (…, 2), or real numbers. */
static Pair
take (TinyBuild *b, TinyNode *x, gboolean is_real)
{
  guint rank = x->shape->n;
  if (tiny_dtype_get_n_bytes ((TinyDType) x->dtype) < 4)
    x = tiny_build_cast (b, x, TINY_DTYPE_F32);
  if (is_real)
    return (Pair){ x, NULL };
  if (rank < 1 || x->shape->v[rank - 1] != 2) {
    g_autofree char *text = tiny_shape_to_string (x->shape);
    tiny_build_fail (b, "complex numbers are two on the last axis, (…, 2), not %s", text);
    return (Pair){ NULL, NULL };
  }
  gint64 last[] = { rank - 1 };
  return (Pair){ tiny_build_squeeze (b, tiny_build_slice (b, x, rank - 1, 0, 1, 1), last, 1),
                 tiny_build_squeeze (b, tiny_build_slice (b, x, rank - 1, 1, 1, 1), last, 1) };
}

static TinyNode *
give (TinyBuild *b, Pair x, TinyDType dtype)
{
  if (x.re == NULL || x.im == NULL)
    return NULL;
  TinyNode *both[] = { tiny_build_unsqueeze (b, x.re, x.re->shape->n),
                       tiny_build_unsqueeze (b, x.im, x.im->shape->n) };
  return tiny_build_cast (b, tiny_build_cat (b, both, 2, x.re->shape->n), dtype);
}

/* @x with @axis last, cut or filled up with zeros to @n elements. */
static TinyNode *
bring (TinyBuild *b, TinyNode *x, guint axis, gint64 n)
{
  gint64 pairs[2 * TINY_MAX_RANK] = { 0 };
  if (x == NULL)
    return NULL;
  x = tiny_build_transpose (b, x, axis, x->shape->n - 1);
  if (x == NULL)
    return NULL;
  pairs[2 * x->shape->n - 1] = n - x->shape->v[x->shape->n - 1];
  return tiny_build_pad (b, x, pairs, 0);
}

typedef struct {
  gint sign;
  guint norm; /* backward, ortho, forward */
} Options;

static double
scale_of (const Options *options, gint64 n)
{
  return options->norm == 1                            ? 1 / sqrt ((double) n)
         : (options->norm == 0) == (options->sign > 0) ? 1 / (double) n
                                                       : 1;
}

static Pair
along (TinyBuild *b, Pair x, gint64 dim, gint64 n, const Options *options)
{
  guint axis;
  const Pair nothing = { NULL, NULL };
  if (x.re == NULL || !tiny_build_axis (b, x.re, (gint) CLAMP (dim, G_MININT, G_MAXINT), &axis))
    return nothing;
  n = n == 0 ? x.re->shape->v[axis] : n;
  if (n < 1 || n > 1 << 24) {
    tiny_build_fail (b, "%" G_GINT64_FORMAT " numbers are not transformed, 1 to 2^24 are", n);
    return nothing;
  }
  x = (Pair){ bring (b, x.re, axis, n), bring (b, x.im, axis, n) };
  if (x.re == NULL)
    return nothing;
  const TinyInts *shape = x.re->shape;
  guint last = shape->n - 1;
  gint64 n_elements = tiny_shape_get_n_elements (shape);
  if (n_elements == 0)
    return (Pair){ tiny_build_transpose (b, x.re, axis, last),
                   tiny_build_transpose (b, x.re, axis, last) };
  gint64 dims[] = { n_elements / n, n };
  x.re = tiny_build_reshape (b, x.re, dims, 2);
  x.im = x.im == NULL ? NULL : tiny_build_reshape (b, x.im, dims, 2);
  x = transform (b, x, options->sign);
  TinyNode **parts[] = { &x.re, &x.im };
  for (guint i = 0; i < 2; i++) {
    TinyNode *y = tiny_build_mul_number (b, *parts[i], scale_of (options, n));
    *parts[i]
        = tiny_build_transpose (b, tiny_build_reshape (b, y, shape->v, shape->n), axis, last);
  }
  return x;
}

static gboolean
take_norm (TinyBuild *b, const char *norm, Options *out)
{
  return tiny_build_word (b, norm, "backward|ortho|forward", &out->norm);
}

static TinyNode *
complex_to_complex (
    TinyBuild *b, TinyNode *x, gint64 n, gint64 dim, const char *norm, gint sign)
{
  Options options = { .sign = sign };
  if (!take_norm (b, norm, &options))
    return NULL;
  return give (b, along (b, take (b, x, FALSE), dim, n, &options), (TinyDType) x->dtype);
}

TinyNode *
op_fft (TinyBuild *b, TinyNode *self, gint64 n, gint64 dim, const char *norm)
{
  return complex_to_complex (b, self, n, dim, norm, -1);
}

TinyNode *
op_ifft (TinyBuild *b, TinyNode *self, gint64 n, gint64 dim, const char *norm)
{
  return complex_to_complex (b, self, n, dim, norm, 1);
}

/* The first half and the middle: what follows is its mirror image. */
static Pair
first_half (TinyBuild *b, Pair x, gint64 dim)
{
  guint axis;
  if (x.re == NULL || x.im == NULL
      || !tiny_build_axis (b, x.re, (gint) CLAMP (dim, G_MININT, G_MAXINT), &axis))
    return (Pair){ NULL, NULL };
  gint64 n = x.re->shape->v[axis] / 2 + 1;
  return (Pair){ tiny_build_slice (b, x.re, axis, 0, 1, n),
                 tiny_build_slice (b, x.im, axis, 0, 1, n) };
}

TinyNode *
op_rfft (TinyBuild *b, TinyNode *self, gint64 n, gint64 dim, const char *norm)
{
  Options options = { .sign = -1 };
  if (!take_norm (b, norm, &options))
    return NULL;
  Pair x = along (b, take (b, self, TRUE), dim, n, &options);
  return give (b, first_half (b, x, dim), (TinyDType) self->dtype);
}

/* @x of @n / 2 + 1 numbers with the others, which are conjugates in reversed order. */
static TinyNode *
mirrored (TinyBuild *b, TinyNode *x, guint axis, gint64 n, gboolean is_im)
{
  gint64 m = n / 2 + 1, n_mirrored = n - m;
  x = bring (b, x, axis, m);
  if (x == NULL || n_mirrored == 0)
    return x;
  guint last = x->shape->n - 1;
  TinyNode *late = tiny_build_slice (b, x, last, 1, 1, n_mirrored);
  if (late == NULL || tiny_shape_get_n_elements (late->shape) == 0)
    return tiny_build_cat (b, (TinyNode *[]){ x, late }, 2, last);
  late = tiny_node_flip (b->graph, late, (gint64[]){ last }, 1);
  return tiny_build_cat (b, (TinyNode *[]){ x, is_im ? op_neg (b, late) : late }, 2, last);
}

TinyNode *
op_irfft (TinyBuild *b, TinyNode *self, gint64 n, gint64 dim, const char *norm)
{
  Options options = { .sign = 1 };
  guint axis;
  Pair x = take (b, self, FALSE);
  if (x.re == NULL || !take_norm (b, norm, &options)
      || !tiny_build_axis (b, x.re, (gint) CLAMP (dim, G_MININT, G_MAXINT), &axis))
    return NULL;
  n = n == 0 ? 2 * (x.re->shape->v[axis] - 1) : n;
  if (n < 1 || n > 1 << 24)
    return tiny_build_fail (b, "%" G_GINT64_FORMAT " numbers are not the result, 1 to 2^24 are",
                            n);
  guint last = x.re->shape->n - 1;
  x = (Pair){ mirrored (b, x.re, axis, n, FALSE), mirrored (b, x.im, axis, n, TRUE) };
  x = along (b, x, -1, n, &options);
  return tiny_build_cast (b, tiny_build_transpose (b, x.re, axis, last),
                          (TinyDType) self->dtype);
}

/* ---- along several axes ---- */
static TinyNode *
along_all (TinyBuild *b,
           TinyNode *self,
           const gint64 *dims,
           guint n_dims,
           const char *norm,
           gint sign,
           gboolean is_real)
{
  Options options = { .sign = sign };
  gint64 all[TINY_MAX_RANK];
  Pair x = take (b, self, is_real);
  if (x.re == NULL || !take_norm (b, norm, &options))
    return NULL;
  if (dims == NULL) {
    n_dims = x.re->shape->n;
    for (guint i = 0; i < n_dims; i++)
      all[i] = i;
    dims = all;
  }
  if (n_dims == 0 || n_dims > TINY_MAX_RANK)
    return tiny_build_fail (b, "there is no axis to transform");
  for (guint i = n_dims; i-- > 0;) {
    x = along (b, x, dims[i], 0, &options);
    if (is_real && i == n_dims - 1)
      x = first_half (b, x, dims[i]);
  }
  return give (b, x, (TinyDType) self->dtype);
}

TinyNode *
op_fftn (TinyBuild *b, TinyNode *self, const gint64 *dims, guint n_dims, const char *norm)
{
  return along_all (b, self, dims, n_dims, norm, -1, FALSE);
}

TinyNode *
op_ifftn (TinyBuild *b, TinyNode *self, const gint64 *dims, guint n_dims, const char *norm)
{
  return along_all (b, self, dims, n_dims, norm, 1, FALSE);
}

TinyNode *
op_rfftn (TinyBuild *b, TinyNode *self, const gint64 *dims, guint n_dims, const char *norm)
{
  return along_all (b, self, dims, n_dims, norm, -1, TRUE);
}

/* ---- complex numbers ---- */
TinyNode *
op_complex_mul (TinyBuild *b, TinyNode *self, TinyNode *other)
{
  Pair x = take (b, self, FALSE), y = take (b, other, FALSE);
  if (x.re == NULL || y.re == NULL)
    return NULL;
  return give (b, multiply (b, x, y),
               tiny_dtype_promote ((TinyDType) self->dtype, (TinyDType) other->dtype));
}
