/* SPDX-License-Identifier: MIT
 *
 * tiny-lu.h: Gauss's factors of matrices (B, M, N). */
#pragma once

#include "tensor/tiny-build.h"

G_BEGIN_DECLS

typedef struct {
  TinyNode *packed; /* (B, M, N): U, and below its diagonal L without its ones */
  TinyNode *pivots; /* (B, K) i32: the row that step k exchanged row k with, from 0 */
  TinyNode *rows;   /* (B, M) i32: row i of L U is that row of A */
} TinyLu;

/* By a library of the device. FALSE: there is none, or an error was set. */
gboolean tiny_lu_take (TinyBuild *b, TinyNode *a, TinyLu *out);
/* Row rows[i] of @x (B, M, N) as row i. */
TinyNode *tiny_lu_permute (TinyBuild *b, TinyNode *rows, TinyNode *x);
/* P with A = P L U. */
TinyNode *tiny_lu_permutation (TinyBuild *b, const TinyLu *self);
/* P's determinant, (B, 1, 1). */
TinyNode *tiny_lu_parity (TinyBuild *b, const TinyLu *self);
/* (B, N, 1) */
TinyNode *tiny_lu_diagonal (TinyBuild *b, TinyNode *packed);
/* X of L U X = @y; NaNs where there is a zero on U's diagonal. */
TinyNode *tiny_lu_solve (TinyBuild *b, const TinyLu *self, TinyNode *y);

G_END_DECLS
