/* SPDX-License-Identifier: MIT
 *
 * tiny-part.h: parts of an axis whose begin and end are numbers, or are calculated from variables. */
#pragma once

#include "tensor/tiny-build.h"

G_BEGIN_DECLS

typedef struct {
  gint64 start;
  TinyNode *at;   /* where it begins; NULL: at @start */
  gint64 n;       /* how many elements, or the most that there may be */
  TinyNode *size; /* how many of them, of variables; NULL: all */
} TinyPart;

/* Whether @x is an integer without axes that is calculated from variables: no number, and no data. */
gboolean tiny_part_is_symbolic (TinyBuild *self, TinyNode *x);
/* What start:stop of Python takes of @axis; NULL: from its begin, or up to its end. What cannot be told for all
 * values of the variables is an error. */
gboolean tiny_part_find (
    TinyBuild *self, TinyNode *x, guint axis, TinyNode *start, TinyNode *stop, TinyPart *out);
/* The element at @index, which counts from the end where it is a negative number: n is 1. */
gboolean
tiny_part_find_one (TinyBuild *self, TinyNode *x, guint axis, TinyNode *index, TinyPart *out);
/* @x along @axis. */
TinyNode *tiny_part_read (TinyBuild *self, TinyNode *x, guint axis, const TinyPart *part);
/* @part, of that axis, at its place among @size elements, others being zeros. */
TinyNode *
tiny_part_spread (TinyBuild *self, TinyNode *x, guint axis, const TinyPart *part, gint64 size);

G_END_DECLS
