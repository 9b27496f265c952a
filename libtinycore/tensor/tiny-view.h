/* SPDX-License-Identifier: MIT
 *
 * tiny-view.h: tensors that are views of others.
 *
 * What an operation that only moves elements gives is a view of its argument, its base: what is assigned to
 * one is assigned to the other. A view remembers the movement, as steps from its base. Writing to a view
 * becomes an assignment of the whole base; after any assignment all views of the base are read anew. Neither
 * keeps the other alive: views of what is gone are views of what that was a view of, or of nothing. Under
 * the runtime's lock. */
#pragma once

#include "tensor/tiny-build.h"

G_BEGIN_DECLS

/* From here on results are views of the first argument, where they only move its elements. Its node may
 * become a placeholder, which movement does not merge with. Returns TRUE. */
gboolean tiny_view_begin (TinyBuild *self);
/* @node with the argument in the placeholder's place. In *@out_steps (transfer full) how it is read; NULL
 * where it is no view. */
TinyNode *
tiny_view_end (TinyBuild *self, TinyNode *node, gint64 **out_steps, guint *out_n_steps);
/* Makes @self a view of @base; takes @steps. */
void tiny_view_link (TinyTensor *self, TinyTensor *base, gint64 *steps, guint n_steps);
/* @self is a view of nothing any more, with the value that it has. */
void tiny_view_unlink (TinyTensor *self);
/* @self goes: its views are those of its base. */
void tiny_view_forget (TinyTensor *self);
/* What @self is a view of in the end; itself if of nothing. */
TinyTensor *tiny_view_get_base (TinyTensor *self);
/* The value of the base where that of @self is @value; NULL with an error where elements of @self stand for
 * several. */
TinyNode *tiny_view_write (TinyBuild *build, TinyTensor *self, TinyNode *value);
/* What @self, a view, is, read anew; of a variable a node that is nobody else's. */
TinyNode *tiny_view_read (TinyTensor *self);
/* Reads all views of @base anew. */
void tiny_view_refresh (TinyTensor *base);
/* Reads the views of all tensors anew. */
void tiny_view_refresh_all (void);
/* Whether the memory of @self is among @written, a set of TinyBuffer. */
gboolean tiny_view_is_written (TinyTensor *self, GHashTable *written);
/* Reads the views of all tensors anew of which that is so. */
void tiny_view_refresh_written (GHashTable *written);
/* (transfer container): from the roots of all views to that of what each is a view of in the end. */
GHashTable *tiny_view_list_all (void);
/* (transfer container): the roots of all views of @base. */
GHashTable *tiny_view_list_roots (TinyTensor *base);
/* Whether @self is of what it is a view of in the end the part that @other is of that. */
gboolean tiny_view_is_same_part (TinyTensor *self, TinyTensor *other);

/* Whether @node is its first source moved, or of another size, and no more. */
gboolean tiny_view_is_movement (const TinyNode *node);
/* Who is made of one node by movement alone: nodes are looked at once in a search, between whose steps nothing else
 * marks nodes. */
typedef struct {
  const TinyNode *source;
  guint32 yes, no;
} TinyMovedSearch;
TinyMovedSearch tiny_view_begin_search (const TinyNode *source);
/* Whether @node is the source, or the source moved. */
gboolean tiny_view_is_moved (const TinyMovedSearch *self, TinyNode *node);
/* How many views of @base are. */
guint tiny_view_count (TinyTensor *base, const TinyMovedSearch *search);

G_END_DECLS
