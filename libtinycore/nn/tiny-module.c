/* SPDX-License-Identifier: MIT
 *
 * tiny-module.c: the base of layers: named tensors, named children, the training flag. */
#include "nn/tiny-module.h"

#include "tensor/tiny-tensor-private.h"

typedef struct {
  char *name;
  TinyTensor *tensor; /* or */
  TinyModule *child;
  gboolean trainable;
} Entry;

typedef struct {
  GArray *entries;
  gboolean training;
} TinyModulePrivate;

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (TinyModule, tiny_module, G_TYPE_OBJECT)

#define PRIVATE(self) ((TinyModulePrivate *) tiny_module_get_instance_private (self))

static void
entry_clear (gpointer data)
{
  Entry *entry = data;
  g_free (entry->name);
  g_clear_object (&entry->tensor);
  g_clear_object (&entry->child);
}

static void
tiny_module_finalize (GObject *object)
{
  g_array_unref (PRIVATE (TINY_MODULE (object))->entries);
  G_OBJECT_CLASS (tiny_module_parent_class)->finalize (object);
}

static void
tiny_module_class_init (TinyModuleClass *class)
{
  G_OBJECT_CLASS (class)->finalize = tiny_module_finalize;
}

static void
tiny_module_init (TinyModule *self)
{
  TinyModulePrivate *private = PRIVATE (self);
  private->entries = g_array_new (FALSE, TRUE, sizeof (Entry));
  g_array_set_clear_func (private->entries, entry_clear);
  private->training = TRUE;
}

TinyTensor *
tiny_module_forward (TinyModule *self, TinyTensor *x)
{
  g_return_val_if_fail (TINY_IS_MODULE (self), NULL);
  return TINY_MODULE_GET_CLASS (self)->forward (self, x);
}

void
tiny_module_set_training (TinyModule *self, gboolean training)
{
  g_return_if_fail (TINY_IS_MODULE (self));
  TinyModulePrivate *private = PRIVATE (self);
  private->training = training != FALSE;
  for (guint i = 0; i < private->entries->len; i++) {
    Entry *entry = &g_array_index (private->entries, Entry, i);
    if (entry->child != NULL)
      tiny_module_set_training (entry->child, training);
  }
}

gboolean
tiny_module_get_training (TinyModule *self)
{
  g_return_val_if_fail (TINY_IS_MODULE (self), FALSE);
  return PRIVATE (self)->training;
}

TinyTensor *
tiny_module_add_tensor (TinyModule *self,
                        const char *name,
                        TinyTensor *tensor,
                        gboolean trainable)
{
  g_return_val_if_fail (TINY_IS_MODULE (self) && name != NULL && TINY_IS_TENSOR (tensor), NULL);
  Entry entry = { .name = g_strdup (name),
                  .tensor = g_object_ref_sink (tensor),
                  .trainable = trainable };
  g_autoptr (GError) error = NULL;
  if (trainable)
    tiny_tensor_set_requires_grad (tensor, TRUE);
  else
    tiny_tensor_own_memory (tensor, &error); /* a failure shows when it is realised */
  g_array_append_val (PRIVATE (self)->entries, entry);
  return tensor;
}

TinyModule *
tiny_module_add_child (TinyModule *self, const char *name, TinyModule *child)
{
  g_return_val_if_fail (TINY_IS_MODULE (self) && name != NULL && TINY_IS_MODULE (child), NULL);
  Entry entry = { .name = g_strdup (name), .child = child };
  g_array_append_val (PRIVATE (self)->entries, entry);
  return child;
}

static void
visit (TinyModule *self, const char *prefix, TinyModuleVisitor visitor, gpointer user_data)
{
  GArray *entries = PRIVATE (self)->entries;
  for (guint i = 0; i < entries->len; i++) {
    Entry *entry = &g_array_index (entries, Entry, i);
    g_autofree char *name = g_strconcat (prefix, *prefix ? "." : "", entry->name, NULL);
    if (entry->child != NULL)
      visit (entry->child, name, visitor, user_data);
    else
      visitor (name, entry->tensor, entry->trainable, user_data);
  }
}

void
tiny_module_visit (TinyModule *self, TinyModuleVisitor visitor, gpointer user_data)
{
  g_return_if_fail (TINY_IS_MODULE (self) && visitor != NULL);
  visit (self, "", visitor, user_data);
}

static void
collect_parameter (const char *name, TinyTensor *tensor, gboolean trainable, gpointer user_data)
{
  if (trainable)
    g_ptr_array_add (user_data, tensor);
}

static void
collect_state (const char *name, TinyTensor *tensor, gboolean trainable, gpointer user_data)
{
  if (!trainable)
    g_ptr_array_add (user_data, tensor);
}

GPtrArray *
tiny_module_get_parameters (TinyModule *self)
{
  GPtrArray *result = g_ptr_array_new ();
  tiny_module_visit (self, collect_parameter, result);
  return result;
}

GPtrArray *
tiny_module_get_state (TinyModule *self)
{
  GPtrArray *result = g_ptr_array_new ();
  tiny_module_visit (self, collect_state, result);
  return result;
}
