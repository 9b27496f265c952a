/* SPDX-License-Identifier: MIT
 *
 * bench-cases.c: the cases of `tinycore bench`, one row of a table each. */
#include "tools/bench-cases.h"

#include <string.h>

#include "tensor/tiny-tensor-private.h"

#include "tools/bench-data.h"

enum { MAX_SIZES = 8, MAX_LAUNCHES = 65536, MAX_SIDE = 1 << 14 /* of a matrix that is factored */ };
#define MAX_SIZE ((gint64) 1 << 32)

/* Sizes come from the case's text, all dimensions in one list. */
static TinyTensor *
build_matmul (TinyTensor *const *in, const gint64 *sizes)
{
  return tiny_tensor_matmul (in[0], in[1]);
}

static TinyTensor *
build_elementwise (TinyTensor *const *in, const gint64 *sizes)
{
  TinyTensor *gate = tiny_tensor_sigmoid (tiny_tensor_add (tiny_tensor_mul (in[0], in[1]), in[2]));
  return tiny_tensor_mul (gate, tiny_tensor_tanh (in[3]));
}

static TinyTensor *
build_sum (TinyTensor *const *in, const gint64 *sizes)
{
  return tiny_tensor_sum (in[0], NULL, 0, FALSE);
}

static TinyTensor *
build_sum_rows (TinyTensor *const *in, const gint64 *sizes)
{
  return tiny_tensor_sum (in[0], (gint[]){ 1 }, 1, FALSE);
}

static TinyTensor *
build_softmax (TinyTensor *const *in, const gint64 *sizes)
{
  return tiny_tensor_softmax (in[0], -1);
}

static TinyTensor *
build_layernorm (TinyTensor *const *in, const gint64 *sizes)
{
  return tiny_tensor_layer_norm (in[0], &sizes[1], 1, in[1], in[2], 1e-5);
}

static TinyTensor *
build_conv (TinyTensor *const *in, const gint64 *sizes)
{
  return tiny_tensor_conv2d (in[0], in[1], NULL, NULL, 0, (gint64[]){ sizes[5] / 2 }, 1, NULL, 0, 1);
}

static TinyTensor *
build_depthwise (TinyTensor *const *in, const gint64 *sizes)
{
  return tiny_tensor_conv2d (in[0], in[1], NULL, NULL, 0, (gint64[]){ sizes[4] / 2 }, 1, NULL, 0, sizes[1]);
}

static TinyTensor *
build_transpose (TinyTensor *const *in, const gint64 *sizes)
{
  return tiny_tensor_contiguous (tiny_tensor_transpose (in[0], 0, 1));
}

static TinyTensor *
build_cumsum (TinyTensor *const *in, const gint64 *sizes)
{
  return tiny_tensor_cumsum (in[0], 0);
}

/* ---- factors of matrices; their results are those without free signs ---- */
static TinyTensor *
build_inv (TinyTensor *const *in, const gint64 *sizes)
{
  return tiny_tensor_inv (in[0]);
}

static TinyTensor *
build_solve (TinyTensor *const *in, const gint64 *sizes)
{
  return tiny_tensor_solve (in[0], in[1]);
}

static TinyTensor *
build_cholesky (TinyTensor *const *in, const gint64 *sizes)
{
  return tiny_tensor_cholesky (in[0], FALSE);
}

/* @out, as a function that gives one result would give it. */
static TinyTensor *
make_floating (TinyTensor *out)
{
  if (out != NULL)
    g_object_force_floating (G_OBJECT (out));
  return out;
}

static TinyTensor *
build_qr (TinyTensor *const *in, const gint64 *sizes)
{
  g_autoptr (TinyTensor) q = NULL;
  TinyTensor *r = NULL;
  tiny_tensor_qr (in[0], "reduced", &q, &r);
  return make_floating (r);
}

static TinyTensor *
build_svd (TinyTensor *const *in, const gint64 *sizes)
{
  g_autoptr (TinyTensor) u = NULL, vh = NULL;
  TinyTensor *s = NULL;
  tiny_tensor_svd (in[0], TRUE, &u, &s, &vh);
  return make_floating (s);
}

static TinyTensor *
build_eigh (TinyTensor *const *in, const gint64 *sizes)
{
  g_autoptr (TinyTensor) vectors = NULL;
  TinyTensor *values = NULL;
  tiny_tensor_eigh (in[0], FALSE, &values, &vectors);
  return make_floating (values);
}

/* N dependent kernels: each result is realised before the next uses it, so that however kernels are
 * fused there are N launches to replay. */
static TinyTensor *
build_launch (TinyTensor *const *in, const gint64 *sizes)
{
  TinyTensor *x = g_object_ref (in[0]);
  for (gint64 i = 0; i < sizes[0]; i++) {
    TinyTensor *next = tiny_tensor_add_number (x, 1);
    g_object_unref (x);
    if (i == sizes[0] - 1)
      return next;
    x = g_object_ref_sink (next);
    if (!tiny_tensor_realize (x, NULL)) /* the last one will say why */
      g_debug ("launch: kernel %" G_GINT64_FORMAT " failed", i);
  }
  return x;
}

/* The matrix in blocks. */
static TinyTensor *
build_matvec_q8_0 (TinyTensor *const *in, const gint64 *sizes)
{
  return tiny_tensor_matmul (tiny_tensor_dequantize (in[0], TINY_QUANT_Q8_0, sizes, 2), in[1]);
}

static TinyTensor *
build_matvec_q4_0 (TinyTensor *const *in, const gint64 *sizes)
{
  return tiny_tensor_matmul (tiny_tensor_dequantize (in[0], TINY_QUANT_Q4_0, sizes, 2), in[1]);
}

/* How a case makes its inputs: each a list of indices into the sizes, -1 ending it. */
static const struct {
  const char *name, *form;
  guint n_sizes; /* as many numbers, or one for a square */
  gboolean square;
  gint64 most; /* of each number */
  TinyTensor *(*build) (TinyTensor *const *, const gint64 *);
  gint8 inputs[4][5];
  guint n_inputs;
  double offset; /* of the inputs, which are within a half of it */
  gboolean definite; /* the first, (N, N), is x + xᵀ with N added to the diagonal */
  guint n_weights;   /* the last of the inputs stay as they are from call to call, as in a model */
} table[] = {
  { "matmul", "matmul:1024 or matmul:MxKxN", 3, TRUE, MAX_SIZE, build_matmul, { { 0, 1, -1 }, { 1, 2, -1 } }, 2 },
  { "matvec", "matvec:4096 or matvec:MxN, :q8_0 and :q4_0 for weights in blocks,", 2, TRUE, MAX_SIZE, build_matmul, { { 0, 1, -1 }, { 1, -1 } }, 2 },
  { "elementwise", "elementwise:16777216", 1, FALSE, MAX_SIZE, build_elementwise,
    { { 0, -1 }, { 0, -1 }, { 0, -1 }, { 0, -1 } }, 4 },
  { "sum", "sum:4096x4096", 2, FALSE, MAX_SIZE, build_sum, { { 0, 1, -1 } }, 1, 0.5 },
  { "sumrows", "sumrows:4096x4096", 2, FALSE, MAX_SIZE, build_sum_rows, { { 0, 1, -1 } }, 1 },
  { "softmax", "softmax:4096x4096", 2, FALSE, MAX_SIZE, build_softmax, { { 0, 1, -1 } }, 1 },
  { "layernorm", "layernorm:4096x1024", 2, FALSE, MAX_SIZE, build_layernorm, { { 0, 1, -1 }, { 1, -1 }, { 1, -1 } }, 3 },
  { "conv", "conv:8x64x56x56:64x3x3", 7, FALSE, MAX_SIZE, build_conv, { { 0, 1, 2, 3, -1 }, { 4, 1, 5, 6, -1 } }, 2, .n_weights = 1 },
  { "depthwise", "depthwise:8x64x56x56:3x3", 6, FALSE, MAX_SIZE, build_depthwise, { { 0, 1, 2, 3, -1 }, { 1, 6, 4, 5, -1 } }, 2, .n_weights = 1 },
  { "transpose", "transpose:2048x2048", 2, FALSE, MAX_SIZE, build_transpose, { { 0, 1, -1 } }, 1 },
  { "cumsum", "cumsum:4194304", 1, FALSE, MAX_SIZE, build_cumsum, { { 0, -1 } }, 1, 0.5 },
  { "inv", "inv:512", 1, FALSE, MAX_SIDE, build_inv, { { 0, 0, -1 } }, 1, 0, TRUE },
  { "solve", "solve:512x16", 2, FALSE, MAX_SIDE, build_solve, { { 0, 0, -1 }, { 0, 1, -1 } }, 2, 0, TRUE },
  { "cholesky", "cholesky:512", 1, FALSE, MAX_SIDE, build_cholesky, { { 0, 0, -1 } }, 1, 0, TRUE },
  { "qr", "qr:512", 1, FALSE, MAX_SIDE, build_qr, { { 0, 0, -1 } }, 1 },
  { "svd", "svd:256", 1, FALSE, MAX_SIDE, build_svd, { { 0, 0, -1 } }, 1 },
  { "eigh", "eigh:256", 1, FALSE, MAX_SIDE, build_eigh, { { 0, 0, -1 } }, 1 },
  { "launch", "launch:100 (at most 65536)", 1, FALSE, MAX_LAUNCHES, build_launch, { { -1 } }, 1 },
  { "chain", "chain:100x4096: 100 kernels of 4096 elements", 2, FALSE, 1 << 24, build_launch, { { 1, -1 } }, 1 },
};

/* What a case's numbers are in: a dtype, or for the matrix of matvec blocks. */
static const struct {
  const char *name;
  TinyQuant quant;
  TinyTensor *(*build) (TinyTensor *const *, const gint64 *);
} block_formats[] = {
  { "q8_0", TINY_QUANT_Q8_0, build_matvec_q8_0 },
  { "q4_0", TINY_QUANT_Q4_0, build_matvec_q4_0 },
};

typedef struct {
  TinyDType dtype;
  int blocks; /* of block_formats, or -1 */
} Format;

static gboolean
read_format (const char *text, guint row, const gint64 *sizes, Format *out)
{
  *out = (Format){ TINY_DTYPE_F32, -1 };
  if (*text == 0)
    return TRUE;
  if (*text++ != ':')
    return FALSE;
  gboolean takes_blocks = g_str_equal (table[row].name, "matvec") && sizes[1] % 32 == 0;
  for (guint i = 0; i < G_N_ELEMENTS (block_formats) && takes_blocks; i++)
    if (g_str_equal (text, block_formats[i].name))
      out->blocks = (int) i;
  return out->blocks >= 0 || tiny_dtype_from_string (text, &out->dtype);
}

/* Reads "8x64x56x56:64x3x3" into sizes. */
static gboolean
read_sizes (const char *text, gint64 *sizes, guint *out_n, char **out_rest)
{
  guint n = 0;
  const char *p = text;
  while (n < MAX_SIZES && g_ascii_isdigit (*p)) {
    char *end;
    sizes[n] = g_ascii_strtoll (p, &end, 10);
    if (sizes[n] <= 0 || sizes[n] > MAX_SIZE)
      return FALSE;
    n++;
    p = end;
    if (*p == 'x' || (*p == ':' && g_ascii_isdigit (p[1])))
      p++;
    else
      break;
  }
  *out_n = n;
  *out_rest = (char *) p;
  return n > 0;
}

static void
count_work (BenchCase *self, const char *name)
{
  const gint64 *s = self->sizes;
  double elements = (double) s[0] * (double) MAX (s[1], 1);
  double item = (double) tiny_dtype_get_n_bytes (tiny_tensor_get_dtype (self->inputs[0]));
  self->per = 1;
  if (g_str_equal (name, "matmul"))
    self->n_flops = 2.0 * (double) s[0] * (double) s[1] * (double) s[2];
  else if (g_str_equal (name, "matvec"))
    self->n_flops = 2.0 * elements;
  else if (g_str_equal (name, "conv"))
    self->n_flops = 2.0 * (double) (s[0] * s[1] * s[2] * s[3]) * (double) (s[4] * s[5] * s[6]);
  else if (g_str_equal (name, "depthwise"))
    self->n_flops = 2.0 * (double) (s[0] * s[1] * s[2] * s[3]) * (double) (s[4] * s[5]);
  if (g_str_equal (name, "elementwise"))
    self->n_bytes = 5 * item * (double) s[0];
  else if (g_str_equal (name, "matvec") || g_str_has_prefix (name, "sum"))
    self->n_bytes = item * (double) tiny_tensor_get_n_elements (self->inputs[0]);
  else if (g_str_equal (name, "softmax") || g_str_equal (name, "layernorm")
           || g_str_equal (name, "transpose") || g_str_equal (name, "cumsum"))
    self->n_bytes = 2 * item * elements;
  if (self->build == build_launch)
    self->per = (guint) s[0];
}

static TinyTensor *
make_input (guint i, const gint8 *dims, const gint64 *sizes, double offset, TinyDType dtype)
{
  gint64 shape[4];
  guint n = 0;
  for (; n < 4 && dims[n] >= 0; n++)
    shape[n] = sizes[dims[n]];
  if (n == 0)
    shape[n++] = 1;
  g_autofree char *name = g_strdup_printf ("input.%u", i);
  g_autoptr (TinyTensor) x = bench_tensor (name, shape, n, offset, 1);
  return g_object_ref_sink (tiny_tensor_cast (x, dtype));
}

/* The row of @text, its sizes and format; -1 and @error when it does not read as a case. */
static int
read_case (const char *text, gint64 *sizes, Format *format, GError **error)
{
  const char *colon = strchr (text, ':');
  gsize length = colon ? (gsize) (colon - text) : strlen (text);
  for (guint row = 0; row < G_N_ELEMENTS (table); row++) {
    if (strlen (table[row].name) != length || strncmp (table[row].name, text, length) != 0)
      continue;
    guint n = 0;
    char *rest = NULL;
    gboolean good = colon != NULL && read_sizes (colon + 1, sizes, &n, &rest)
                    && (n == table[row].n_sizes || (table[row].square && n == 1));
    for (guint i = 0; good && i < n; i++)
      good = sizes[i] <= table[row].most;
    for (; good && n < table[row].n_sizes; n++)
      sizes[n] = sizes[0];
    for (; n < MAX_SIZES; n++)
      sizes[n] = 1; /* an axis of size 1 is any of these */
    good = good && read_format (rest, row, sizes, format);
    if (good)
      return (int) row;
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "“%s” does not read as the case %s[:DTYPE], with sizes from 1 on", text,
                 table[row].form);
    return -1;
  }
  g_autoptr (GString) known = g_string_new (NULL);
  for (guint i = 0; i < G_N_ELEMENTS (table); i++)
    g_string_append_printf (known, "%s%s", i ? ", " : "", table[i].name);
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "there is no case “%s”; there are %s", text,
               known->str);
  return -1;
}

gboolean
bench_case_is_named (const char *text)
{
  const gsize length = strcspn (text, ":");
  for (guint row = 0; row < G_N_ELEMENTS (table); row++)
    if (strlen (table[row].name) == length && strncmp (table[row].name, text, length) == 0)
      return TRUE;
  return FALSE;
}

gboolean
bench_case_check (const char *text, GError **error)
{
  gint64 sizes[MAX_SIZES];
  Format format;
  return read_case (text, sizes, &format, error) >= 0;
}

BenchCase *
bench_case_new (const char *text, GError **error)
{
  Format format;
  g_autoptr (BenchCase) self = g_new0 (BenchCase, 1);
  int row = read_case (text, self->sizes, &format, error);
  if (row < 0)
    return NULL;
  if (!tiny_dtype_is_float (format.dtype)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: inputs are floats, not %s", text,
                 tiny_dtype_to_string (format.dtype));
    return NULL;
  }
  self->text = g_strdup (text);
  self->build = table[row].build;
  gboolean weighs = g_str_equal (table[row].name, "matvec"); /* by a matrix; the vector is f32 */
  self->n_weights = table[row].n_weights;
  for (guint i = 0; i < table[row].n_inputs; i++)
    self->inputs[self->n_inputs++]
        = make_input (i, table[row].inputs[i], self->sizes, table[row].offset,
                      weighs && i > 0 ? TINY_DTYPE_F32 : format.dtype);
  if (table[row].definite) {
    const gint64 n = self->sizes[0];
    g_autoptr (TinyTensor) x = self->inputs[0];
    self->inputs[0] = g_object_ref_sink (tiny_tensor_add (
        tiny_tensor_add (x, tiny_tensor_transpose (x, 0, 1)),
        tiny_tensor_mul_number (tiny_tensor_eye (format.dtype, n, n), (double) n)));
  }
  if (format.blocks >= 0) {
    TinyQuant quant = block_formats[format.blocks].quant;
    TinyTensor *blocks = tiny_tensor_quantize (self->inputs[0], quant, error);
    if (blocks == NULL)
      return NULL;
    g_object_unref (self->inputs[0]);
    self->inputs[0] = blocks;
    self->build = block_formats[format.blocks].build;
  }
  if (!tiny_tensor_realize_many (self->inputs, self->n_inputs, error)) {
    g_prefix_error (error, "%s: ", text);
    return NULL;
  }
  count_work (self, table[row].name);
  return g_steal_pointer (&self);
}

void
bench_case_free (BenchCase *self)
{
  if (self == NULL)
    return;
  for (guint i = 0; i < self->n_inputs; i++)
    g_clear_object (&self->inputs[i]);
  g_free (self->text);
  g_free (self);
}

/* The inputs that each call is given. */
static guint
get_nodes (const BenchCase *self, TinyNode *out[BENCH_MAX_INPUTS])
{
  guint n = self->n_inputs - self->n_weights;
  for (guint i = 0; i < n; i++)
    out[i] = tiny_tensor_get_node (self->inputs[i]);
  return n;
}

TinyCapture *
bench_case_begin_capture (const BenchCase *self, GError **error)
{
  TinyNode *nodes[BENCH_MAX_INPUTS];
  guint n = get_nodes (self, nodes);
  return tiny_capture_begin (nodes, n, error);
}

gboolean
bench_case_replay (const BenchCase *self, TinyCapture *capture, GError **error)
{
  TinyNode *nodes[BENCH_MAX_INPUTS];
  guint n = get_nodes (self, nodes);
  return tiny_capture_replay (capture, nodes, n, error);
}
