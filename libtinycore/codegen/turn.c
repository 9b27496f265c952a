/* SPDX-License-Identifier: MIT
 *
 * turn.c: a square of vectors is turned in registers: rows become columns.
 *
 * The place of an element is the bits of its row's number and then those of its lane's. Each round
 * interleaves the rows of the first half with those of the second: the first bit of the row becomes
 * the last of the lane, the first bit of the lane the last of the row. After as many rounds as a
 * number has bits, rows and lanes have changed places. Every vector is made of two others, which
 * processors have an instruction for. */
#include <string.h>

#include "codegen/codegen-private.h"

/* The lanes of @a and @b in turn, the lower halves of both or the upper ones. */
static TinyNode *
interleave (TinyGraph *graph, TinyNode *a, TinyNode *b, gboolean upper)
{
  guint n = a->lanes;
  g_autofree TinyNode **lanes = g_new (TinyNode *, n);
  for (guint i = 0; i < n; i++) {
    TinyNode *from = i % 2 == 0 ? a : b;
    lanes[i] = tiny_node_new (graph, TINY_OP_EXTRACT, a->dtype, 1, 1, &from,
                              (upper ? n / 2 : 0) + i / 2, NULL, NULL);
  }
  return tiny_node_new (graph, TINY_OP_VECTOR, a->dtype, n, n, lanes, 0, NULL, NULL);
}

void
tiny_turn_square (TinyGraph *graph, TinyNode **rows, guint n)
{
  g_autofree TinyNode **before = g_new (TinyNode *, n);
  for (guint round = 1; round < n; round *= 2) {
    memcpy (before, rows, n * sizeof *rows);
    for (guint i = 0; i < n; i++)
      rows[i] = interleave (graph, before[i / 2], before[i / 2 + n / 2], i % 2 == 1);
  }
}
