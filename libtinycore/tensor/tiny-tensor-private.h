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

  TinyRoot root;      /* no node when there is an error */
  GError *error;      /* or NULL */
  const char *device; /* interned; NULL: the default one, or wherever it is used */
  TinyDType dtype;
  guint n_dims;
  gint64 *shape;
  TinyWeak weak;
  double weak_value;
  gboolean requires_grad;
  TinyTensor *grad;            /* (nullable) (owned) */
  TinyTensor *next, *previous; /* among those that require gradients */
};

/* (transfer floating): a tensor of @node. Under the runtime's lock. */
TinyTensor *tiny_tensor_new_for_node (TinyNode *node, const char *device);
/* (transfer floating): a tensor in error state; takes @error. */
TinyTensor *tiny_tensor_new_for_error (GError *error);
/* Its node; NULL when there is an error. Under the runtime's lock. */
TinyNode *tiny_tensor_get_node (TinyTensor *self);
void tiny_tensor_set_node (TinyTensor *self, TinyNode *node);
/* Sizes of @self in which variable @from was have @to there, another value of the same. */
void tiny_tensor_resize (TinyTensor *self, TinyNode *from, TinyNode *to);
/* The first of the tensors that require gradients. Under the runtime's lock. */
TinyTensor *tiny_tensor_get_first_variable (void);
/* Makes the tensor's memory its own: nothing else shares it, so that it can be assigned to. */
gboolean tiny_tensor_own_memory (TinyTensor *self, GError **error);
/* Element @i of @data, of any dtype. */
double tiny_tensor_decode (TinyDType dtype, gconstpointer data, gsize i);

G_END_DECLS
