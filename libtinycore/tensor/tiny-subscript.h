/* SPDX-License-Identifier: MIT
 *
 * tiny-subscript.h: a subscript taken apart, for subscript-pattern.c and tensor-subscript.c. */
#pragma once

#include "tensor/tiny-part.h"

G_BEGIN_DECLS

enum { TINY_MAX_SUBSCRIPT = 32 };

/* How an axis of the tensor is read. */
typedef struct {
  gint64 start, step, n;
  TinyNode *at, *size; /* of a part whose place or length a variable says, see TinyPart */
  gboolean is_dropped; /* by a number: the view does not have it */
} TinySubscriptPart;

typedef struct {
  TinyNode *x;
  TinySubscriptPart parts[TINY_MAX_RANK];
  guint n_read; /* axes of x that are behind us */
  /* The view: x through its parts, with new axes. */
  gint64 dims[TINY_MAX_SUBSCRIPT];
  guint rank;
  TinyNode *sizes
      [TINY_MAX_SUBSCRIPT]; /* per axis of the view that a variable is the length of, that; else NULL */
  /* Per axis of the view, its index tensor; NULL: the whole axis. */
  TinyNode *picks[TINY_MAX_SUBSCRIPT];
  TinyNode *mask; /* that stands for itself; see tiny_tensor_set_index() */
  guint mask_axis;
} TinySubscript;

/* A tensor that was given for a part t. */
typedef struct {
  gint64 mask_dims[TINY_MAX_RANK];
  guint mask_rank;
  gboolean is_mask;
} TinySubscriptGiven;

/* Reads @pattern (see tiny_tensor_index()) for @x. @picks are the nodes of the tensors, of a mask that became
 * positions one for each of its axes; @given says which are. */
gboolean tiny_subscript_read (TinyBuild *b,
                              TinySubscript *self,
                              TinyNode *x,
                              const char *pattern,
                              const gint64 *numbers,
                              guint n_numbers,
                              const GArray *given,
                              TinyNode *const *picks);

G_END_DECLS
