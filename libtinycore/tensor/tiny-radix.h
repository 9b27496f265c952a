/* SPDX-License-Identifier: MIT
 *
 * tiny-radix.h: long rows of integers in order. */
#pragma once

#include "tensor/tiny-build.h"

G_BEGIN_DECLS

typedef struct {
  guint first_bit, n_bits; /* those that count: equal in the others, or in order already */
  gboolean wants_from;
  TinyNode *
      keys; /* (R, N), in memory; in order afterwards, unless only where they come from was wanted */
  TinyNode *from; /* afterwards: (R, N) i32, where in its row each was */
} TinyRadix;

/* Whether rows of @keys (R, N) are long enough. */
gboolean tiny_radix_is_worth_it (const TinyNode *keys);
/* Equal keys stay in order. Signed ones whose sign is among the bits are ordered by it. */
void tiny_radix_sort (TinyBuild *b, TinyRadix *self);

G_END_DECLS
