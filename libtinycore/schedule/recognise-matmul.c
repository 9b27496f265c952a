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
  Loop *rows, *columns, *sums;
} Loops;

static gboolean
find_loops (Recognition *self, Loops *out)
{
  for (guint i = 0; i < self->n_loops; i++) {
    Loop *loop = &self->loops[i];
    const gboolean in_a = recognise_is_in (loop, TINY_ROLE_A),
                   in_b = recognise_is_in (loop, TINY_ROLE_B);
    if (!in_a && !in_b)
      return FALSE;
    Loop **slot = loop->is_reduced ? &out->sums
                  : in_a && in_b   ? NULL
                  : in_a           ? &out->rows
                                   : &out->columns;
    if (loop->is_reduced && (*slot != NULL || in_a != in_b))
      return FALSE;
    if (slot != NULL && (*slot == NULL || (*slot)->extent < loop->extent))
      *slot = loop;
  }
  return out->sums != NULL && (out->rows != NULL || out->columns != NULL);
}

/* What lies closer together in the output are columns. */
static void
order_operands (Recognition *self, Loops *loops)
{
  Loop *rows = loops->rows, *columns = loops->columns;
  const gint64 of_row = rows != NULL ? ABS (rows->strides[TINY_ROLE_OUTPUT]) : 0,
               of_column = columns != NULL ? ABS (columns->strides[TINY_ROLE_OUTPUT]) : 0;
  if (rows == NULL || (columns != NULL ? of_row >= of_column : of_row != 1))
    return;
  recognise_swap (self);
  loops->rows = columns;
  loops->columns = rows;
}

gboolean
recognise_matmul (Recognition *self)
{
  Loops loops = { NULL };
  guint n_batches = 0;
  if (!recognise_products (self) || self->accesses[TINY_ROLE_A].gate != NULL
      || self->accesses[TINY_ROLE_B].gate != NULL || !recognise_list_loops (self))
    return FALSE;
  recognise_join_loops (self, FALSE);
  if (!find_loops (self, &loops))
    return FALSE;
  order_operands (self, &loops);
  self->out->kind = TINY_OPERATION_MATMUL;
  self->out->n_axes = TINY_MATMUL_K + 1;
  recognise_set_axis (self, TINY_MATMUL_M, loops.rows);
  recognise_set_axis (self, TINY_MATMUL_N, loops.columns);
  recognise_set_axis (self, TINY_MATMUL_K, loops.sums);
  for (guint i = 0; i < self->n_loops; i++)
    if (!self->loops[i].is_used && n_batches < N_BATCHES)
      recognise_set_axis (self, TINY_MATMUL_BATCH + n_batches++, &self->loops[i]);
  return recognise_add_operands (self);
}
