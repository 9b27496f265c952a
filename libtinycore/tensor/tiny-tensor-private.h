/* SPDX-License-Identifier: MIT
 *
 * tiny-tensor-private.h: what a tensor is made of, for tensor/ and autograd/. */
#pragma once

#include "engine/tiny-runtime.h"
#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

typedef enum {
  TINY_WEAK_NONE,
  TINY_WEAK_INT,   /* a plain integer: takes any other operand's dtype but bool */
  TINY_WEAK_FLOAT, /* a plain number: takes any other operand's float dtype */
} TinyWeak;

struct _TinyTensor {
  GInitiallyUnowned parent_instance;

  TinyRoot root; /* no node when there is an error */
  GError *error; /* or NULL; there is one where there is no node */
  const char *
      device; /* interned; NULL: the default one, or wherever it is used; of several devices: their
                         names with semicolons between */
  TinyDType dtype;
  guint n_dims;
  gint64 *shape; /* few_sizes, where these are enough */
  gint64 few_sizes[4];
  TinyWeak weak;
  double weak_value; /* where the node is a CONST */
  gboolean is_part;  /* of another tensor, without being a view of it */
  gboolean requires_grad;
  guint n_written;       /* how often it was written to in part and stayed an expression */
  gboolean had_backward; /* gradients of it were added to others */
  TinyTensor *grad;      /* (nullable) (owned) */
  guint64 variable;      /* where they are required: a number of its own */
  TinyTensor *next, *previous; /* among those that require gradients */

  /* See tiny-view.h. */
  TinyTensor *base; /* what this is a view of, or NULL */
  gint64 *steps;    /* how */
  guint n_steps;
  TinyTensor *views;                     /* the first of those of this one … */
  TinyTensor *next_view, *previous_view; /* … and the others of the base's */
  TinyTensor *next_base, *previous_base; /* among all that have views */
};

/* (transfer floating): a tensor of @node. Under the runtime's lock. */
TinyTensor *tiny_tensor_new_for_node (TinyNode *node, const char *device);
/* (transfer floating): a tensor in error state; takes @error. */
TinyTensor *tiny_tensor_new_for_error (GError *error);
/* Whether @self, whose reference this takes then, was kept for what is made next: nobody else knew it. */
gboolean tiny_tensor_recycle (TinyTensor *self);
/* Its node; NULL when there is an error. Under the runtime's lock. */
TinyNode *tiny_tensor_get_node (TinyTensor *self);
void tiny_tensor_set_node (TinyTensor *self, TinyNode *node);
/* Sizes of @self in which variable @from was have @to there, another value of the same. */
void tiny_tensor_resize (TinyTensor *self, TinyNode *from, TinyNode *to);
/* The first of the tensors that require gradients. Under the runtime's lock. */
TinyTensor *tiny_tensor_get_first_variable (void);
/* The number of the last tensor that came to require them. */
guint64 tiny_tensor_count_variables (void);
/* How often one of them no longer required a gradient, or did again. */
guint64 tiny_tensor_count_toggled (void);
/* Whether a gradient would flow from a node to a tensor that requires one. Under the runtime's lock. */
gboolean tiny_tensor_reaches_variable (TinyNode *root);
/* Makes the tensor's memory its own: nothing else shares it, so that it can be assigned to. It is a view
 * of nothing any more. @name is what the program called, for errors. */
gboolean tiny_tensor_own_memory (TinyTensor *self, const char *name, GError **error);
/* Likewise; but a view stays one, and has that memory until it is read anew. */
gboolean tiny_tensor_stand_apart (TinyTensor *self, const char *name, GError **error);
/* Before the memory of @self, which is realised and no view, is written in place: what waits and is made of it is
 * computed, and tensors that share it get copies. Its views follow it. */
gboolean tiny_tensor_part_memory (TinyTensor *self, GError **error);
/* Who has memory, as far as they are no views: from the first TinyBuffer to the TinyRoot that has had its value longest. */
GHashTable *tiny_tensor_list_owners (void);
/* Those of memory that a recording uses have it from now on, whoever else comes to see it; and whether @self is one. */
void tiny_tensor_mark_owners (void);
gboolean tiny_tensor_is_recorded (TinyTensor *self);
/* Every tensor that is no view and shares its memory with an older one gets a copy. */
gboolean tiny_tensor_part_all (GError **error);
/* Before a replay writes to @written, a set of TinyBuffer, and to @inputs: others that see that memory get copies. */
gboolean tiny_tensor_part_written (GHashTable *written,
                                   TinyTensor *const *inputs,
                                   guint n,
                                   GError **error);
/* Tensors of that memory, a set of TinyBuffer, whose root is older than @number get copies. */
gboolean tiny_tensor_part_older (GHashTable *written, guint64 number, GError **error);
/* Element @i of @data, of any dtype. */
double tiny_tensor_decode (TinyDType dtype, gconstpointer data, gsize i);

G_END_DECLS
