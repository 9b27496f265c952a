/* SPDX-License-Identifier: MIT
 *
 * recognise-matmul.c: products of matrices, in batches, in any layout.
 *
 * A sum over one loop of a product of two loads. A loop of the output that both loads depend on is a
 * batch; one that only one of them depends on is a row or a column, the longest of each, the others
 * are batches in which the other operand stays the same. */
#include "schedule/recognise.h"

enum { N_BATCHES = TINY_MATMUL_M - TINY_MATMUL_BATCH };

typedef struct {
  TinyNode *rows, *columns; /* loops, or NULL */
  TinyNode *batches[N_BATCHES];
  guint n_batches;
} Loops;

/* Gives @range the place of *slot if it is longer; what then has none. */
static TinyNode *
keep_longest (TinyNode **slot, TinyNode *range)
{
  TinyNode *before = *slot;
  if (before != NULL && tiny_range_get_extent (before) >= tiny_range_get_extent (range))
    return range;
  *slot = range;
  return before;
}

static gboolean
sort_loops (Recognition *self, const Access *a, const Access *b, Loops *out)
{
  for (guint i = 0; i < self->output.at->n; i++) {
    TinyNode *range = self->output.at->terms[i].atom;
    gboolean in_a = affine_get_mul (a->at, range) != 0,
             in_b = affine_get_mul (b->at, range) != 0;
    if (!in_a && !in_b)
      return FALSE;
    if (in_a != in_b)
      range = keep_longest (in_a ? &out->rows : &out->columns, range);
    if (range == NULL)
      continue;
    if (out->n_batches == N_BATCHES)
      return FALSE;
    out->batches[out->n_batches++] = range;
  }
  return TRUE;
}

/* Outermost first: by their strides in the output. */
static void
order_batches (Recognition *self, Loops *loops)
{
  const Affine *at = self->output.at;
  for (guint i = 1; i < loops->n_batches; i++)
    for (guint j = i; j > 0
                      && ABS (affine_get_mul (at, loops->batches[j]))
                             > ABS (affine_get_mul (at, loops->batches[j - 1]));
         j--) {
      TinyNode *range = loops->batches[j];
      loops->batches[j] = loops->batches[j - 1];
      loops->batches[j - 1] = range;
    }
}

gboolean
recognise_matmul (Recognition *self)
{
  const TinyNode *core = self->core;
  TinyNode *product = core->n_sources == 2 ? core->sources[0] : NULL;
  Access operands[2];
  if (core->op != TINY_OP_REDUCE || core->arg != TINY_OP_ADD || product == NULL
      || product->op != TINY_OP_MUL || core->dtype != self->out->compute_dtype)
    return FALSE;
  for (guint i = 0; i < 2; i++)
    if (!recognise_load (self, product->sources[i], &operands[i]) || operands[i].gate != NULL
        || affine_get_mul (operands[i].at, core->sources[1]) == 0)
      return FALSE;
  Loops loops = { NULL };
  if (!sort_loops (self, &operands[0], &operands[1], &loops)
      || (loops.rows == NULL && loops.columns == NULL))
    return FALSE; /* a product of numbers of the same place: nothing of it is used again */
  /* Columns are what lies closer together in the output. */
  const Affine *at = self->output.at;
  gint64 of_row = loops.rows != NULL ? ABS (affine_get_mul (at, loops.rows)) : 0;
  gint64 of_column = loops.columns != NULL ? ABS (affine_get_mul (at, loops.columns)) : 0;
  if (loops.rows != NULL && (loops.columns == NULL ? of_row == 1 : of_row < of_column)) {
    Access other = operands[0];
    TinyNode *range = loops.rows;
    operands[0] = operands[1];
    operands[1] = other;
    loops.rows = loops.columns;
    loops.columns = range;
  }
  order_batches (self, &loops);
  self->out->kind = TINY_OPERATION_MATMUL;
  self->out->n_axes = TINY_MATMUL_K + 1;
  for (guint i = 0; i < loops.n_batches; i++)
    recognise_set_axis (self, TINY_MATMUL_BATCH + i, loops.batches[i]);
  recognise_set_axis (self, TINY_MATMUL_M, loops.rows);
  recognise_set_axis (self, TINY_MATMUL_N, loops.columns);
  recognise_set_axis (self, TINY_MATMUL_K, core->sources[1]);
  return recognise_add_operands (self, operands, 2);
}
