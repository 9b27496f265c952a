/* SPDX-License-Identifier: MIT
 *
 * tiny-found.h: what a recorded function finds besides its inputs, and leaves besides its results.
 *
 * A recording has no branches: it is right where a replay finds what the recording found. Whether a tensor has a gradient, a
 * module's mode, the settings of an optimiser are numbers of objects, which whoever reads them notes here. A gradient that the
 * function reads is an input of the recording, and one that it leaves is a result. Under the runtime's lock. */
#pragma once

#include "engine/tiny-capture.h"
#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/* What the recording of this thread found so far. */
typedef struct TinyFound TinyFound;
/* Computes the gradients that wait: no recording is to do that. Before the capture begins. */
TinyFound *tiny_found_new (void);
void tiny_found_free (TinyFound *self);
/* What @capture records is about to be run by this thread. */
void tiny_found_begin (TinyFound *self, TinyCapture *capture);
/* Ends that. FALSE: something noted meanwhile cannot be part of a recording. From here on @inputs stand for those of a replay. */
gboolean
tiny_found_end (TinyFound *self, TinyTensor *const *inputs, guint n_inputs, GError **error);
/* Adds to @roots (TinyRoot *), which this thread is about to realise, the gradients that its recording has set and on the way
 * to which they are: computed later, for they are left, they would take all that work again. */
void tiny_found_add_parts (GPtrArray *roots);
/* (transfer container): the gradients that are left, each in memory of its own once it is computed; before the end. */
GPtrArray *tiny_found_list_left (TinyFound *self, GError **error);

/* The number of an object on which the recording of this thread depends, if there is one; @what it is, in words. */
typedef gint64 (*TinyFoundNumber) (gpointer object);
void tiny_found_note (gpointer object, TinyFoundNumber get, const char *what);
/* Likewise, of what a replay does not set: a recorded function has to leave it as it was. */
void tiny_found_keep (gpointer object, TinyFoundNumber get, const char *what);
/* The recorded function sets that number by itself: what it was before does not matter, unless it was noted. */
void tiny_found_set (gpointer object, TinyFoundNumber get);
/* What is not as the recording found it, or NULL. */
const char *tiny_found_get_change (TinyFound *self, TinyTensor *const *inputs);
/* How often @self holds @tensor. */
guint tiny_found_count_references (const TinyFound *self, const TinyTensor *tensor);

/* Before a replay: other inputs than those of the last keep the gradients that they got then. */
gboolean tiny_found_prepare (TinyFound *self, TinyTensor *const *inputs, GError **error);
/* The gradients that replays read, as they are now: computed, and after @n_before nodes in @nodes, unless that is NULL. How many
 * nodes there are then, or -1. */
gint tiny_found_read (TinyFound *self,
                      TinyTensor *const *inputs,
                      TinyNode **nodes,
                      guint n_before,
                      GError **error);
/* After a replay: tensors have the gradients that the function leaves. */
void tiny_found_leave (TinyFound *self, TinyTensor *const *inputs);

/* (transfer none) (nullable): the gradient of @self, of which a recording depends then. */
TinyTensor *tiny_tensor_find_grad (TinyTensor *self);
/* Takes @grad (transfer full) (nullable) as that of @self. */
void tiny_tensor_leave_grad (TinyTensor *self, TinyTensor *grad);

G_END_DECLS
