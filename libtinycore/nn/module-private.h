/* SPDX-License-Identifier: MIT
 *
 * module-private.h: what the layers and optimisers of nn/ share: making modules without a way to fail at
 * once, and what forward has moved. */
#pragma once

#include "nn/tiny-module.h"

G_BEGIN_DECLS

/* A type of modules, private to its file, of a struct that begins with TinyModule; class_init follows. */
#define TINY_DEFINE_LAYER(Camel, lower)                                                        \
  typedef TinyModuleClass Camel##Class;                                                        \
  static GType lower##_get_type (void);                                                        \
  G_DEFINE_TYPE (Camel, lower, TINY_TYPE_MODULE)                                               \
  static void lower##_init (Camel *self) {}

typedef enum { TINY_ENTRY_PARAMETER, TINY_ENTRY_BUFFER, TINY_ENTRY_CHILD } TinyEntryKind;

typedef struct {
  char *name;
  TinyEntryKind kind;
  TinyTensor *tensor; /* or */
  TinyModule *child;
  gboolean persistent;
} TinyEntry;

/* @tensor (nullable) for what it held, which no step of an optimiser computes any more. */
void tiny_entry_set_tensor (TinyEntry *self, TinyTensor *tensor);
/* (element-type TinyEntry): in the order they were added. */
GArray *tiny_module_get_entries (TinyModule *self);

/* ---- for the layers here: what fails is what forward gives; see tiny_module_get_error() ---- */
void tiny_module_init_parameter (TinyModule *self, const char *name, TinyTensor *value);
void tiny_module_init_buffer (TinyModule *self,
                              const char *name,
                              TinyTensor *value,
                              gboolean persistent);
void tiny_module_init_child (TinyModule *self, const char *name, TinyModule *child);
/* Whether @self, of @type, takes @child. If not, it says so from now on if it is a module, and @child is given up. */
gboolean tiny_module_can_append (TinyModule *self, GType type, TinyModule *child);
/* The first call counts. */
void tiny_module_fail (TinyModule *self, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* (transfer none) (nullable): the tensor of that name in @self, such as a bias that may be missing. */
TinyTensor *tiny_module_own (TinyModule *self, const char *name);
/* (transfer floating): a tensor that carries %TINY_ERROR_INVALID. */
TinyTensor *tiny_tensor_new_invalid (const char *format, ...) G_GNUC_PRINTF (1, 2);
/* (transfer floating): another tensor of the same value. */
TinyTensor *tiny_tensor_new_alias (TinyTensor *tensor);
/* Sinks @tensor into @kept, so that it can be used more than once; returns it. */
TinyTensor *tiny_keep (GPtrArray *kept, TinyTensor *tensor);
/* What tiny_keep() fills. */
GPtrArray *tiny_kept_new (void);
/* Uniform over ±bound, of the default float. */
TinyTensor *tiny_uniform_around (const gint64 *shape, guint n_dims, double bound);

/* Copies the values of @state into the tensors of @own: tiny_module_load_state_dict(). */
gboolean tiny_state_copy (GHashTable *own, GHashTable *state, gboolean strict, GError **error);

/* (transfer none): adds what tiny_module_move_buffer() has moved since it was last realised. Under the
 * runtime's lock; tiny_module_forget_moved() once it is. */
void tiny_module_collect_moved (GPtrArray *tensors);
void tiny_module_forget_moved (void);

/* DEBUG=2 shows the module's tensors beside the kernels that read them. */
void tiny_module_label_parameters (TinyModule *self);

G_END_DECLS
