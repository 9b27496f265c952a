/* SPDX-License-Identifier: MIT
 *
 * tiny-matrix.h: batches of matrices (B, M, N), of which methods of linear algebra store one after the
 * other, the row or column at hand first (tensor-linalg.c). */
#pragma once

#include "tensor/tiny-build.h"

G_BEGIN_DECLS

enum { TINY_BATCH, TINY_ROW, TINY_COLUMN };

/* (…, M, N) as (B, M, N); narrow floats as f32. */
TinyNode *tiny_matrix_take (TinyBuild *b, TinyNode *x, gboolean square);
/* A and B with equal leading axes and dtypes, B as (…, N, M); whether that was a vector, (…, N). */
gboolean tiny_matrix_take_both (
    TinyBuild *b, TinyNode *x, TinyNode *y, TinyNode **out, gboolean *is_vector);
/* @x (B, M, N) with the leading axes and dtype of @like; @drop of its last axes, of size 1, go. */
TinyNode *tiny_matrix_give (TinyBuild *b, TinyNode *x, const TinyNode *like, guint drop);

TinyNode *tiny_matrix_zeros (TinyBuild *b, TinyNode *like, gint64 rows, gint64 columns);
TinyNode *tiny_matrix_identity (TinyBuild *b, TinyNode *like, gint64 n);
TinyNode *tiny_matrix_transposed (TinyBuild *b, TinyNode *x);
/* That @n columns are few enough to walk over them. */
gboolean tiny_matrix_check_steps (TinyBuild *b, gint64 n);
/* Elements @from up to before @to along @axis. */
TinyNode *tiny_matrix_part (TinyBuild *b, TinyNode *x, guint axis, gint64 from, gint64 to);
TinyNode *tiny_matrix_first (TinyBuild *b, TinyNode *x, guint axis);
/* @x without its first along @axis, and with @last, or zeros, at the end. */
TinyNode *tiny_matrix_move_up (TinyBuild *b, TinyNode *x, guint axis, TinyNode *last);
/* Row k of @x (B, K, N) moved to the right by k: where it was before columns were moved up. */
TinyNode *tiny_matrix_move_back (TinyBuild *b, TinyNode *x);
/* 1 where the row that is not @used has the largest of @column (B, M, 1), the first of equals; nowhere in one
 * without numbers. */
TinyNode *tiny_matrix_find_pivot (TinyBuild *b, TinyNode *column, TinyNode *used);

G_END_DECLS
