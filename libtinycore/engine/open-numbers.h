/* SPDX-License-Identifier: MIT
 *
 * open-numbers.h: graphs that differ in numbers alone share a plan.
 *
 * The numbers of a graph are where its SHRINKs begin, where its PADs put their source, and its constants. Asked for
 * once, a graph is planned with them as they are, which is the fastest there is. Where the same structure comes with
 * one set of numbers after another, as a loop over single elements makes it, those that changed so far become
 * variables of one plan for all. */
#pragma once

#include "engine/tiny-runtime.h"

G_BEGIN_DECLS

enum { OPEN_MOST = 12 }; /* variables of a plan: what the smallest target promises */

/* One number, or that of several nodes which always have the same. */
typedef struct {
  const TinyNode *node; /* the first that has it */
  guint axis;           /* of a SHRINK or PAD */
  gint64 value, max;    /* of a SHRINK or PAD: 0 .. max; of a CONST: its arg */
} OpenNumber;

/* Of a graph whose nodes are looked at in order. */
typedef struct {
  GArray *numbers; /* OpenNumber */
  /* guint, of nodes by their place: the first number, or G_MAXUINT; others have none */
  GArray *first;
  /* of each number, once that is known: it is a variable; or NULL */
  const gboolean *is_open;
} OpenNumbers;

/* With the lists of numbers that were noted before, if they were not cleared but closed. */
void open_numbers_init (OpenNumbers *self);
void open_numbers_close (OpenNumbers *self);
void open_numbers_clear (OpenNumbers *self);
/* Notes what numbers @node, the @place-th, has; places only go up. What is in @out_rest beside them has to be the same in graphs that
 * share a plan: as many as @node has ints, and one more. FALSE: it has none. */
gboolean
open_numbers_note (OpenNumbers *self, const TinyNode *node, guint place, gint64 *out_rest);
/* Whether a graph of @structure with these numbers takes the plan that is for several of them: fills @is_open then.
 * @n_elements is of all that is computed, @reduces whether anything is combined. */
gboolean open_numbers_decide (OpenNumbers *self,
                              const guint64 structure[2],
                              double n_elements,
                              gboolean reduces);
/* @node, the @place-th, over @sources in @graph with its open numbers as variables; NULL: it has none. */
TinyNode *open_numbers_remake (const OpenNumbers *self,
                               TinyGraph *graph,
                               const TinyNode *node,
                               guint place,
                               TinyNode *const *sources);
/* Appends the open numbers' values to @variables (TinyBoundVariable). */
void open_numbers_bind (const OpenNumbers *self, GArray *variables);

G_END_DECLS
