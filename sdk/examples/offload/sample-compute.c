/* SPDX-License-Identifier: MIT
 *
 * sample-compute.c: a made-up unit that multiplies matrices in tiles, another one for softmax, and what they take on.
 *
 * A convolution is a product of matrices as well: its rows are output positions, its columns output channels, and
 * what is summed are input channels and places in the window. So both kinds are four lists of axes, and one loop
 * over tiles. In hardware load_tile() would be a DMA engine and multiply_tiles() the unit. */
#include <math.h>

#include "tiny-sample.h"

enum { TILE = 16 };

/* Which axes of an operation are looped over from outside, and which are rows, columns and sums. */
typedef struct {
  int outer[4], rows[4], columns[4], sums[4]; /* each ends with -1 or is full */
} Axes;

static const Axes axes_of_matmul
    = { { 0, 1, 2, 3 }, { TINY_MATMUL_M, -1 }, { TINY_MATMUL_N, -1 }, { TINY_MATMUL_K, -1 } };
static const Axes axes_of_convolution
    = { { TINY_CONVOLUTION_GROUP, -1 },
        { TINY_CONVOLUTION_BATCH, TINY_CONVOLUTION_OUT, TINY_CONVOLUTION_OUT + 1,
          TINY_CONVOLUTION_OUT + 2 },
        { TINY_CONVOLUTION_OUT_CHANNEL, -1 },
        { TINY_CONVOLUTION_IN_CHANNEL, TINY_CONVOLUTION_WINDOW, TINY_CONVOLUTION_WINDOW + 1,
          TINY_CONVOLUTION_WINDOW + 2 } };

static const Axes *
find_axes (const TinyOperation *operation)
{
  return operation->kind == TINY_OPERATION_MATMUL        ? &axes_of_matmul
         : operation->kind == TINY_OPERATION_CONVOLUTION ? &axes_of_convolution
                                                         : NULL;
}

static int
count_axes (const int axes[4])
{
  int n = 0;
  while (n < 4 && axes[n] >= 0)
    n++;
  return n;
}

/* The positions along all of @axes. */
static int64_t
count (const TinyOperation *operation, const int axes[4])
{
  int64_t n = 1;
  for (int i = 0; i < count_axes (axes); i++)
    n *= operation->extents[axes[i]];
  return n;
}

/* ---- claiming ---- */

static void
decline (TinyClaim *out, const char *why)
{
  out->verdict = TINY_CLAIM_DECLINED;
  snprintf (out->reason, sizeof out->reason, "%s", why);
}

static const int softmax_rows[] = { 0, 1, 2, 3 };

/* A row at a time: as if it began in 1 us and did 16 elements in a nanosecond. */
static void
claim_softmax (const TinyOperation *operation, TinyClaim *out)
{
  const int64_t n = operation->extents[TINY_SOFTMAX_AXIS];
  if (n < TILE) {
    decline (out, "its rows are too short to fill the pipeline");
    return;
  }
  out->verdict = TINY_CLAIM_ACCEPTED;
  out->cost_ns = 1000 + (uint64_t) (count (operation, softmax_rows) * n) / 16;
  snprintf (out->reason, sizeof out->reason, "rows of %lld in one pass", (long long) n);
}

void
tiny_sample_claim (const TinyOperation *operation, TinyClaim *out)
{
  const Axes *axes = find_axes (operation);
  if (axes == NULL && operation->kind != TINY_OPERATION_SOFTMAX) {
    decline (out, "the units multiply matrices, convolve and compute softmax, nothing else");
    return;
  }
  for (uint32_t i = 0; i < operation->n_operands; i++)
    if (operation->operands[i].dtype != TINY_DTYPE_F32
        || operation->operands[i].role > TINY_ROLE_BIAS) {
      decline (out, "the unit has f32 operands and a bias");
      return;
    }
  if (operation->compute_dtype != TINY_DTYPE_F32
      || operation->activation > TINY_ACTIVATION_RELU) {
    decline (out, "its output stage has a scale, a bias and relu, in f32");
    return;
  }
  if (axes == NULL) {
    claim_softmax (operation, out);
    return;
  }
  const int64_t rows = count (operation, axes->rows),
                columns = count (operation, axes->columns),
                sums = count (operation, axes->sums);
  if (rows < TILE / 2 || columns < TILE / 2 || sums < TILE / 2) {
    decline (out, "its tiles of 16 x 16 would be less than half full");
    return;
  }
  /* As if it multiplied a tile with another in 16 ns, and took 2 us to begin. */
  const int64_t tiles = ((rows + TILE - 1) / TILE) * ((columns + TILE - 1) / TILE)
                        * ((sums + TILE - 1) / TILE) * count (operation, axes->outer);
  out->verdict = TINY_CLAIM_ACCEPTED;
  out->cost_ns = 2000 + 16 * (uint64_t) tiles;
  snprintf (out->reason, sizeof out->reason, "%lld tiles of 16 x 16 x 16", (long long) tiles);
}

/* ---- operands ---- */

/* How far from its beginning an operand is at one position along some axes. An element is where the steps along all
 * axes lead together. */
typedef struct {
  int64_t offset;
  int64_t place[3]; /* in the input of a convolution */
} Step;

/* The step at number @k of all positions along @axes, of which the last changes fastest. */
static Step
find_step (const TinyOperation *operation,
           const TinyOperandView *operand,
           const int axes[4],
           int64_t k)
{
  const int is_input
      = operation->kind == TINY_OPERATION_CONVOLUTION && operand->role == TINY_ROLE_A;
  Step step = { 0, { 0 } };
  for (int i = count_axes (axes); i-- > 0;) {
    const int axis = axes[i], y = axis - TINY_CONVOLUTION_OUT,
              w = axis - TINY_CONVOLUTION_WINDOW;
    const int64_t at = k % operation->extents[axis];
    k /= operation->extents[axis];
    if (is_input && w >= 0)
      step.place[w] += at * operation->window_dilation[w];
    else if (is_input && y >= 0)
      step.place[y] += at * operation->window_step[y] - operation->window_padding[y];
    else
      step.offset += at * operand->strides[axis];
  }
  for (int i = 0; is_input && i < 3; i++)
    step.offset += step.place[i] * operand->strides[TINY_CONVOLUTION_OUT + i];
  return step;
}

/* Steps @first to @first + @n - 1. */
static void
find_steps (const TinyOperation *operation,
            const TinyOperandView *operand,
            const int axes[4],
            int64_t first,
            int64_t n,
            Step out[TILE])
{
  for (int64_t i = 0; i < n; i++)
    out[i] = find_step (operation, operand, axes, first + i);
}

/* ---- computing ---- */

typedef struct {
  const TinyOperation *operation;
  const Axes *axes;
  void *const *memory;
  int64_t outer, n_rows, n_columns, n_sums;
} Run;

/* Where an operand begins in this round of the outer axes. */
static float *
find_begin (const Run *run, const TinyOperandView *operand)
{
  return (float *) run->memory[operand->buffer] + operand->offset
         + find_step (run->operation, operand, run->axes->outer, run->outer).offset;
}

static int64_t
least (int64_t a, int64_t b)
{
  return a < b ? a : b;
}

static int
is_padding (const TinyOperation *operation, const Step *line, const Step *sum)
{
  for (int i = 0; i < 3; i++) {
    const int64_t place = line->place[i] + sum->place[i];
    if (place < 0 || place >= operation->window_input[i])
      return 1;
  }
  return 0;
}

/* Fills @tile with what lies at @sums × @lines from (@sum, @line) on, and zeros around. */
static void
load_tile (const Run *run,
           uint32_t role,
           const int lines[4],
           int64_t line,
           int64_t n_lines,
           int64_t sum,
           float tile[TILE][TILE])
{
  const TinyOperation *operation = run->operation;
  const TinyOperandView *operand = tiny_find_operand (operation, role);
  const int has_padding = operation->kind == TINY_OPERATION_CONVOLUTION && role == TINY_ROLE_A;
  const float *begin = find_begin (run, operand);
  const int64_t n_sums = least (run->n_sums - sum, TILE);
  Step of_lines[TILE], of_sums[TILE];
  find_steps (operation, operand, lines, line, n_lines, of_lines);
  find_steps (operation, operand, run->axes->sums, sum, n_sums, of_sums);
  memset (tile, 0, sizeof (float) * TILE * TILE);
  for (int64_t k = 0; k < n_sums; k++)
    for (int64_t i = 0; i < n_lines; i++)
      if (!has_padding || !is_padding (operation, &of_lines[i], &of_sums[k]))
        tile[k][i] = begin[of_lines[i].offset + of_sums[k].offset];
}

static void
multiply_tiles (float a[TILE][TILE], float b[TILE][TILE], float sums[TILE][TILE])
{
  for (int k = 0; k < TILE; k++)
    for (int i = 0; i < TILE; i++)
      for (int j = 0; j < TILE; j++)
        sums[i][j] += a[k][i] * b[k][j];
}

/* The output stage: scale, bias, relu. */
static void
store_tile (const Run *run, int64_t row, int64_t column, float sums[TILE][TILE])
{
  const TinyOperation *operation = run->operation;
  const TinyOperandView *output = &operation->operands[0],
                        *bias = tiny_find_operand (operation, TINY_ROLE_BIAS);
  const int64_t n_rows = least (run->n_rows - row, TILE),
                n_columns = least (run->n_columns - column, TILE);
  Step out_rows[TILE], out_columns[TILE], bias_rows[TILE], bias_columns[TILE];
  find_steps (operation, output, run->axes->rows, row, n_rows, out_rows);
  find_steps (operation, output, run->axes->columns, column, n_columns, out_columns);
  if (bias != NULL) {
    find_steps (operation, bias, run->axes->rows, row, n_rows, bias_rows);
    find_steps (operation, bias, run->axes->columns, column, n_columns, bias_columns);
  }
  for (int64_t i = 0; i < n_rows; i++)
    for (int64_t j = 0; j < n_columns; j++) {
      float r = sums[i][j] * (float) operation->scale;
      if (bias != NULL)
        r += find_begin (run, bias)[bias_rows[i].offset + bias_columns[j].offset];
      if (operation->activation == TINY_ACTIVATION_RELU)
        r = r > 0 ? r : 0;
      find_begin (run, output)[out_rows[i].offset + out_columns[j].offset] = r;
    }
}

/* ---- softmax: of a row the largest, the sum of powers, and each power's part of it ---- */
static void
run_softmax (const TinyOperation *operation, void *const *memory)
{
  const TinyOperandView *input = tiny_find_operand (operation, TINY_ROLE_A),
                        *output = &operation->operands[0];
  const int64_t n = operation->extents[TINY_SOFTMAX_AXIS],
                in_step = input->strides[TINY_SOFTMAX_AXIS],
                out_step = output->strides[TINY_SOFTMAX_AXIS];
  for (int64_t row = 0; row < count (operation, softmax_rows); row++) {
    const float *x = (const float *) memory[input->buffer] + input->offset
                     + find_step (operation, input, softmax_rows, row).offset;
    float *y = (float *) memory[output->buffer] + output->offset
               + find_step (operation, output, softmax_rows, row).offset;
    const float scale = (float) operation->scale;
    float largest = -HUGE_VALF, sum = 0;
    for (int64_t i = 0; i < n; i++)
      largest = fmaxf (largest, x[i * in_step] * scale);
    for (int64_t i = 0; i < n; i++)
      sum += y[i * out_step] = expf (x[i * in_step] * scale - largest);
    for (int64_t i = 0; i < n; i++)
      y[i * out_step] /= sum;
  }
}

void
tiny_sample_run (const TinyOperation *operation, void *const *memory)
{
  const Axes *axes = find_axes (operation);
  if (axes == NULL) {
    run_softmax (operation, memory);
    return;
  }
  const int64_t n_outer = count (operation, axes->outer);
  float a[TILE][TILE], b[TILE][TILE], sums[TILE][TILE];
  Run run = { operation,
              axes,
              memory,
              0,
              count (operation, axes->rows),
              count (operation, axes->columns),
              count (operation, axes->sums) };
  for (; run.outer < n_outer; run.outer++)
    for (int64_t row = 0; row < run.n_rows; row += TILE)
      for (int64_t column = 0; column < run.n_columns; column += TILE) {
        memset (sums, 0, sizeof sums);
        for (int64_t sum = 0; sum < run.n_sums; sum += TILE) {
          load_tile (&run, TINY_ROLE_A, axes->rows, row, least (run.n_rows - row, TILE), sum,
                     a);
          load_tile (&run, TINY_ROLE_B, axes->columns, column,
                     least (run.n_columns - column, TILE), sum, b);
          multiply_tiles (a, b, sums);
        }
        store_tile (&run, row, column, sums);
      }
}
