/* SPDX-License-Identifier: MIT
 *
 * What a recognised operation means: its definition in tiny-plugin.h, as plain loops. */
#include <math.h>

#include "evaluate.h"

#include "tiny-plugin-kit.h"

typedef struct {
  const TinyOperation *operation;
  Array *const *slots;
  gint64 at[TINY_OPERATION_MAX_AXES]; /* the axes' positions */
} Run;

static gint64
find_place (const Run *run, const TinyOperandView *operand)
{
  gint64 at = operand->offset;
  for (guint i = 0; i < TINY_OPERATION_MAX_AXES; i++)
    at += run->at[i] * operand->strides[i];
  g_assert_cmpint (at, >=, 0);
  g_assert_cmpint (at, <, operand->n_elements);
  return at;
}

/* @x of dtype @from as @to. */
static Element
convert (Element x, TinyDType from, TinyDType to)
{
  return from == to ? x : element_compute (TINY_OP_CAST, to, from, &x);
}

static Element
get (const Run *run, TinyOperandRole role)
{
  const TinyOperandView *operand = tiny_find_operand (run->operation, role);
  g_assert_nonnull (operand);
  const Array *buffer = run->slots[operand->buffer];
  g_assert_cmpint (buffer->dtype, ==, operand->dtype);
  g_assert_cmpint (buffer->n, ==, operand->n_elements);
  return convert (buffer->v[find_place (run, operand)], operand->dtype,
                  run->operation->compute_dtype);
}

static Element
combine (const Run *run, TinyOp op, Element x, Element y)
{
  Element both[] = { x, y };
  return element_compute (op, run->operation->compute_dtype, run->operation->compute_dtype,
                          both);
}

static double
activate (guint activation, double x)
{
  switch (activation) {
  case TINY_ACTIVATION_NONE:
    return x;
  case TINY_ACTIVATION_RELU:
    return x > 0 ? x : 0;
  case TINY_ACTIVATION_SIGMOID:
    return 1 / (1 + exp (-x));
  case TINY_ACTIVATION_TANH:
    return tanh (x);
  case TINY_ACTIVATION_SILU:
    return x / (1 + exp (-x));
  case TINY_ACTIVATION_GELU:
    return x * (1 + tanh (sqrt (2 / G_PI) * (x + 0.044715 * x * x * x))) / 2;
  default:
    g_assert_not_reached ();
  }
}

static Element
finish (const Run *run, Element x)
{
  const TinyOperation *operation = run->operation;
  gboolean is_float = tiny_dtype_is_float (operation->compute_dtype);
  if (operation->scale != 1) {
    g_assert_true (is_float);
    x = combine (run, TINY_OP_MUL, x, (Element){ .f = operation->scale });
  }
  if (tiny_find_operand (operation, TINY_ROLE_BIAS) != NULL)
    x = combine (run, TINY_OP_ADD, x, get (run, TINY_ROLE_BIAS));
  if (is_float)
    x.f = activate (operation->activation, x.f);
  else if (operation->activation == TINY_ACTIVATION_RELU)
    x = combine (run, TINY_OP_MAX, x, (Element){ .i = 0 });
  else
    g_assert_cmpint (operation->activation, ==, TINY_ACTIVATION_NONE);
  return convert (x, operation->compute_dtype, operation->operands[0].dtype);
}

/* ---- loops ---- */

/* Sets the axes in @mask to their @k-th position. */
static void
set_position (Run *run, guint mask, gint64 k)
{
  for (guint i = TINY_OPERATION_MAX_AXES; i-- > 0;)
    if (mask >> i & 1) {
      run->at[i] = k % run->operation->extents[i];
      k /= run->operation->extents[i];
    }
}

static gint64
count_positions (const TinyOperation *operation, guint mask)
{
  gint64 n = 1;
  for (guint i = 0; i < TINY_OPERATION_MAX_AXES; i++)
    n *= mask >> i & 1 ? operation->extents[i] : 1;
  return n;
}

/* ---- kinds ---- */

/* The input of a convolution where the window is now; 0 around it. */
static Element
get_input (const Run *run)
{
  const TinyOperation *operation = run->operation;
  Run moved = *run;
  for (guint i = 0; i < 3; i++) {
    gint64 *y = &moved.at[TINY_CONVOLUTION_OUT + i],
           *w = &moved.at[TINY_CONVOLUTION_WINDOW + i];
    *y = *y * operation->window_step[i] + *w * operation->window_dilation[i]
         - operation->window_padding[i];
    *w = 0;
    if (*y < 0 || *y >= operation->window_input[i])
      return element_get_identity (TINY_OP_ADD, operation->compute_dtype);
  }
  return get (&moved, TINY_ROLE_A);
}

static Element
multiply (Run *run, guint summed)
{
  Element sum = element_get_identity (TINY_OP_ADD, run->operation->compute_dtype);
  for (gint64 k = 0; k < count_positions (run->operation, summed); k++) {
    set_position (run, summed, k);
    Element x = run->operation->kind == TINY_OPERATION_CONVOLUTION ? get_input (run)
                                                                   : get (run, TINY_ROLE_A);
    sum = combine (run, TINY_OP_ADD, sum,
                   combine (run, TINY_OP_MUL, x, get (run, TINY_ROLE_B)));
  }
  return sum;
}

static Element
reduce (Run *run, guint reduced)
{
  const TinyOp op = run->operation->reduce == TINY_INSTR_ADD   ? TINY_OP_ADD
                    : run->operation->reduce == TINY_INSTR_MUL ? TINY_OP_MUL
                                                               : TINY_OP_MAX;
  g_assert_true (op != TINY_OP_MAX || run->operation->reduce == TINY_INSTR_MAX);
  Element result = element_get_identity (op, run->operation->compute_dtype);
  for (gint64 k = 0; k < count_positions (run->operation, reduced); k++) {
    set_position (run, reduced, k);
    result = combine (run, op, result, get (run, TINY_ROLE_A));
  }
  return result;
}

/* Of the element that the axes are at, along @axis. */
static Element
get_softmax (Run *run, guint axis)
{
  const double scale = run->operation->scale, own = get (run, TINY_ROLE_A).f * scale;
  double sum = 0, largest = own;
  Run other = *run;
  for (guint pass = 0; pass < 2; pass++)
    for (gint64 k = 0; k < count_positions (run->operation, axis); k++) {
      set_position (&other, axis, k);
      const double x = get (&other, TINY_ROLE_A).f * scale;
      largest = MAX (largest, x);
      sum += pass == 0 ? 0 : exp (x - largest);
    }
  return convert ((Element){ .f = exp (own - largest) / sum }, run->operation->compute_dtype,
                  run->operation->operands[0].dtype);
}

/* The score of the key that the axes are at; -∞ where it is beyond the query. */
static double
get_score (Run *run)
{
  const TinyOperation *operation = run->operation;
  const gint64 *extents = operation->extents, key = run->at[TINY_ATTENTION_KEY];
  double sum = 0;
  if (operation->flags & TINY_OPERATION_CAUSAL
      && key > run->at[TINY_ATTENTION_QUERY] + extents[TINY_ATTENTION_KEY]
                   - extents[TINY_ATTENTION_QUERY])
    return -INFINITY;
  for (gint64 e = 0; e < extents[TINY_ATTENTION_DEPTH]; e++) {
    run->at[TINY_ATTENTION_DEPTH] = e;
    sum += get (run, TINY_ROLE_A).f * get (run, TINY_ROLE_B).f;
  }
  run->at[TINY_ATTENTION_DEPTH] = 0;
  sum *= operation->scale;
  return tiny_find_operand (operation, TINY_ROLE_MASK) ? sum + get (run, TINY_ROLE_MASK).f
                                                       : sum;
}

static Element
get_attention (Run *run)
{
  const gint64 n = run->operation->extents[TINY_ATTENTION_KEY];
  double largest = -INFINITY, weights = 0, sum = 0;
  gint64 *key = &run->at[TINY_ATTENTION_KEY];
  for (*key = 0; *key < n; ++*key)
    largest = MAX (largest, get_score (run));
  for (*key = 0; *key < n; ++*key) {
    const double weight = exp (get_score (run) - largest);
    weights += weight;
    sum += weight * get (run, TINY_ROLE_B2).f;
  }
  return convert ((Element){ .f = sum / weights }, run->operation->compute_dtype,
                  run->operation->operands[0].dtype);
}

static Element
compute (Run *run, guint inner)
{
  switch (run->operation->kind) {
  case TINY_OPERATION_MATMUL:
  case TINY_OPERATION_CONVOLUTION:
    return multiply (run, inner);
  case TINY_OPERATION_REDUCTION:
    return reduce (run, inner);
  default:
    g_assert_not_reached ();
  }
}

Array *
evaluate_operation (const TinyOperation *operation, Array *const *slots)
{
  static const guint inner_axes[] = {
    [TINY_OPERATION_MATMUL] = 1u << TINY_MATMUL_K,
    [TINY_OPERATION_CONVOLUTION]
    = 1u << TINY_CONVOLUTION_IN_CHANNEL | 7u << TINY_CONVOLUTION_WINDOW,
    [TINY_OPERATION_REDUCTION] = 15u << TINY_REDUCTION_REDUCED,
    [TINY_OPERATION_SOFTMAX] = 0,
    [TINY_OPERATION_ATTENTION] = 1u << TINY_ATTENTION_KEY | 1u << TINY_ATTENTION_DEPTH,
  };
  const TinyOperandView *output = &operation->operands[0];
  g_assert_cmpuint (operation->struct_size, ==, sizeof *operation);
  g_assert_cmpuint (operation->kind, <, G_N_ELEMENTS (inner_axes));
  g_assert_cmpint (output->role, ==, TINY_ROLE_OUTPUT);
  Array *out = array_new (output->dtype, slots[output->buffer]->n);
  g_autofree gboolean *is_written = g_new0 (gboolean, out->n + 1);
  guint inner = inner_axes[operation->kind], all = (1u << TINY_OPERATION_MAX_AXES) - 1;
  gint64 n = count_positions (operation, all & ~inner);
  g_assert_cmpint (n, ==, out->n);
  Run run = { operation, slots, { 0 } };
  for (guint i = operation->n_axes; i < TINY_OPERATION_MAX_AXES; i++)
    g_assert_cmpint (operation->extents[i], ==, 1);
  for (gint64 k = 0; k < n; k++) {
    set_position (&run, inner, 0);
    set_position (&run, all & ~inner, k);
    Element result = operation->kind == TINY_OPERATION_SOFTMAX
                         ? get_softmax (&run, 1u << TINY_SOFTMAX_AXIS)
                     : operation->kind == TINY_OPERATION_ATTENTION
                         ? get_attention (&run)
                         : finish (&run, compute (&run, inner));
    set_position (&run, inner, 0);
    gint64 at = find_place (&run, output);
    g_assert_false (is_written[at]);
    is_written[at] = TRUE;
    out->v[at] = result;
  }
  return out;
}
