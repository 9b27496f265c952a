/* SPDX-License-Identifier: MIT
 *
 * words.h: elements smaller than a word, in words. */
#pragma once

#include "codegen/codegen-private.h"

G_BEGIN_DECLS

/* Whether buffers of @dtype are ones of words on @target. */
static inline gboolean
tiny_words_packs (const TinyTarget *target, TinyDType dtype)
{
  return dtype != TINY_DTYPE_VOID && tiny_dtype_get_n_bytes (dtype) < 4
         && (target->dtypes_storage & TINY_DTYPE_BIT (dtype)) == 0;
}

/* How many elements are in a word. */
static inline gint64
tiny_words_count (TinyDType dtype)
{
  return 4 / (gint64) tiny_dtype_get_n_bytes (dtype);
}

/* The PARAM of u32 that is the memory of @param. */
TinyNode *tiny_words_buffer (TinyGraph *graph, TinyNode *param);
/* The bits of @value in a u32, zeros above. */
TinyNode *tiny_words_from_value (TinyGraph *graph, TinyNode *value);

/* words.c: @cg->root with STOREs of whole words; LOADs are as they were.
 *
 * Errors: %TINY_ERROR_UNSUPPORTED where no loop's rounds make up whole words. */
TinyNode *tiny_words_rewrite_stores (TinyCodegen *cg, GError **error);

G_END_DECLS
