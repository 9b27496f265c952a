/* SPDX-License-Identifier: MIT
 *
 * tiny-module.c: the base of layers: what a module is made of, and applying it.
 *
 * A module is a list of named entries: parameters, buffers, children. Layers look their tensors up by
 * name when they are applied, because moving a module to another device replaces them. */
#include "nn/tiny-module.h"

#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-guard.h"
#include "nn/module-private.h"
#include "tensor/tiny-found.h"
#include "tensor/tiny-default-float.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

typedef struct {
  GArray *entries;
  GError *error;
  gboolean training;
} TinyModulePrivate;

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (TinyModule, tiny_module, G_TYPE_OBJECT)

#define PRIVATE(self) ((TinyModulePrivate *) tiny_module_get_instance_private (self))

/* Buffers with an assignment that waits; owned by their modules. Under the runtime's lock. */
static GHashTable *moved;

static void
forget_moved (TinyTensor *tensor)
{
  tiny_runtime_lock ();
  if (moved != NULL)
    g_hash_table_remove (moved, tensor);
  tiny_runtime_unlock ();
}

void
tiny_entry_set_tensor (TinyEntry *self, TinyTensor *tensor)
{
  if (self->tensor != NULL)
    forget_moved (self->tensor);
  g_set_object (&self->tensor, tensor);
}

static void
entry_clear (gpointer data)
{
  TinyEntry *entry = data;
  g_free (entry->name);
  tiny_entry_set_tensor (entry, NULL);
  g_clear_object (&entry->child);
}

static void
tiny_module_finalize (GObject *object)
{
  TinyModulePrivate *private = PRIVATE (TINY_MODULE (object));
  g_array_unref (private->entries);
  g_clear_error (&private->error);
  G_OBJECT_CLASS (tiny_module_parent_class)->finalize (object);
}

/* ---- applying ---- */
TinyTensor *
tiny_tensor_new_invalid (const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  GError *error = g_error_new_valist (TINY_ERROR, TINY_ERROR_INVALID, format, arguments);
  va_end (arguments);
  return tiny_tensor_new_for_error (error);
}

TinyTensor *
tiny_tensor_new_alias (TinyTensor *tensor)
{
  tiny_runtime_lock ();
  TinyTensor *alias
      = tensor->error != NULL
            ? tiny_tensor_new_for_error (g_error_copy (tensor->error))
            : tiny_tensor_new_for_node (tiny_tensor_get_node (tensor), tensor->device);
  alias->weak = tensor->weak;
  alias->weak_value = tensor->weak_value;
  tiny_runtime_unlock ();
  return alias;
}

/* What an implementation gave, floating: another object when others may hold it. */
static TinyTensor *
as_floating (TinyModule *self, TinyTensor *result)
{
  if (result == NULL)
    return tiny_tensor_new_invalid ("%s: forward gave no tensor", G_OBJECT_TYPE_NAME (self));
  if (g_object_is_floating (result))
    return result;
  TinyTensor *alias = tiny_tensor_new_alias (result);
  g_object_unref (result);
  return alias;
}

static TinyTensor *
forward_one_only (TinyModule *self, TinyTensor *x)
{
  if (TINY_MODULE_GET_CLASS (self)->forward_many == NULL)
    return tiny_tensor_new_invalid ("%s implements neither forward nor forward_many",
                                    G_OBJECT_TYPE_NAME (self));
  g_autoptr (GPtrArray) results = tiny_module_call (self, &x, 1);
  return g_object_ref (results->pdata[0]);
}

static void
tiny_module_class_init (TinyModuleClass *class)
{
  class->forward = forward_one_only;
  G_OBJECT_CLASS (class)->finalize = tiny_module_finalize;
}

static void
tiny_module_init (TinyModule *self)
{
  TinyModulePrivate *private = PRIVATE (self);
  private->entries = g_array_new (FALSE, TRUE, sizeof (TinyEntry));
  g_array_set_clear_func (private->entries, entry_clear);
  private->training = TRUE;
}

/* (transfer full) (nullable): why the module cannot be applied. In training mode its buffers get the values
 * that wait for them: when forward moves one, what has read the value before would have to be computed at
 * once, and know no gradients any more. */
static GError *
prepare (TinyModule *self)
{
  TinyModulePrivate *private = PRIVATE (self);
  GError *error = NULL;
  if (private->error != NULL)
    return g_error_copy (private->error);
  if (TINY_DEBUG (2))
    tiny_module_label_parameters (self);
  g_autoptr (GPtrArray) waiting = g_ptr_array_new ();
  for (guint i = 0; g_atomic_int_get (&private->training) && i < private->entries->len; i++) {
    const TinyEntry *entry = &g_array_index (private->entries, TinyEntry, i);
    if (entry->kind == TINY_ENTRY_BUFFER && !tiny_tensor_is_realized (entry->tensor))
      g_ptr_array_add (waiting, entry->tensor);
  }
  if (waiting->len > 0)
    tiny_tensor_realize_many ((TinyTensor *const *) waiting->pdata, waiting->len, &error);
  return error;
}

static TinyTensor *
refuse_null (TinyModule *self)
{
  return tiny_tensor_new_invalid ("%s: the input is NULL", G_OBJECT_TYPE_NAME (self));
}

TinyTensor *
tiny_module_forward (TinyModule *self, TinyTensor *x)
{
  g_autoptr (TinyTensor) input = TINY_IS_TENSOR (x) ? g_object_ref_sink (x) : NULL;
  if (!TINY_IS_MODULE (self))
    return tiny_tensor_new_invalid ("module_forward: no module is given");
  if (input == NULL)
    return refuse_null (self);
  GError *error = prepare (self);
  if (error != NULL)
    return tiny_tensor_new_for_error (error);
  return as_floating (self, TINY_MODULE_GET_CLASS (self)->forward (self, input));
}

static GPtrArray *
call_implementation (TinyModule *self, GPtrArray *inputs)
{
  const TinyModuleClass *class = TINY_MODULE_GET_CLASS (self);
  if (class->forward_many != NULL)
    return class->forward_many (self, inputs);
  GPtrArray *results = g_ptr_array_new ();
  g_ptr_array_add (results,
                   inputs->len != 1 ? tiny_tensor_new_invalid (
                       "%s takes 1 input, not %u", G_OBJECT_TYPE_NAME (self), inputs->len)
                   : inputs->pdata[0] == NULL ? refuse_null (self)
                                              : class->forward (self, inputs->pdata[0]));
  return results;
}

GPtrArray *
tiny_module_call (TinyModule *self, TinyTensor *const *inputs, guint n_inputs)
{
  g_autoptr (GPtrArray) given = tiny_kept_new ();
  GPtrArray *results = tiny_kept_new ();
  GError *error = NULL;
  for (guint i = 0; inputs != NULL && i < n_inputs; i++)
    g_ptr_array_add (given, TINY_IS_TENSOR (inputs[i]) ? g_object_ref_sink (inputs[i]) : NULL);
  if (!TINY_IS_MODULE (self) || given->len < n_inputs)
    error = g_error_new_literal (TINY_ERROR, TINY_ERROR_INVALID,
                                 given->len < n_inputs
                                     ? "module_call: inputs are counted, but none are given"
                                     : "module_call: no module is given");
  else
    error = prepare (self);
  GPtrArray *made = error == NULL ? call_implementation (self, given) : NULL;
  for (guint i = 0; made != NULL && i < made->len; i++)
    tiny_keep (results, as_floating (self, made->pdata[i]));
  if (made != NULL) {
    g_ptr_array_set_free_func (made, NULL); /* its elements have been taken */
    g_ptr_array_unref (made);
  }
  if (error != NULL)
    tiny_keep (results, tiny_tensor_new_for_error (error));
  else if (results->len == 0)
    tiny_keep (results, as_floating (self, NULL));
  return results;
}

const GError *
tiny_module_get_error (TinyModule *self)
{
  g_return_val_if_fail (TINY_IS_MODULE (self), NULL);
  return PRIVATE (self)->error;
}

/* A TinyFoundNumber. */
static gint64
get_mode (gpointer self)
{
  return g_atomic_int_get (&PRIVATE (self)->training);
}

void
tiny_module_set_training (TinyModule *self, gboolean training)
{
  g_return_if_fail (TINY_IS_MODULE (self));
  TinyModulePrivate *private = PRIVATE (self);
  tiny_found_set (self, get_mode);
  g_atomic_int_set (&private->training, training != FALSE);
  for (guint i = 0; i < private->entries->len; i++) {
    TinyEntry *entry = &g_array_index (private->entries, TinyEntry, i);
    if (entry->child != NULL)
      tiny_module_set_training (entry->child, training);
  }
}

gboolean
tiny_module_get_training (TinyModule *self)
{
  g_return_val_if_fail (TINY_IS_MODULE (self), FALSE);
  tiny_found_note (self, get_mode, "whether a module trains");
  return g_atomic_int_get (&PRIVATE (self)->training);
}

/* ---- making ---- */
GArray *
tiny_module_get_entries (TinyModule *self)
{
  return PRIVATE (self)->entries;
}

static TinyEntry *
find_own (TinyModule *self, const char *name, gsize length)
{
  GArray *entries = PRIVATE (self)->entries;
  for (guint i = 0; i < entries->len; i++) {
    TinyEntry *entry = &g_array_index (entries, TinyEntry, i);
    if (strncmp (entry->name, name, length) == 0 && entry->name[length] == 0)
      return entry;
  }
  return NULL;
}

static gboolean
check_name (TinyModule *self, const char *name, GError **error)
{
  const char *why = name == NULL || *name == 0                     ? "is empty"
                    : strchr (name, '.') != NULL                   ? "has a dot"
                    : find_own (self, name, strlen (name)) != NULL ? "is taken"
                    : !g_utf8_validate (name, -1, NULL)            ? "is not UTF-8"
                                                                   : NULL;
  if (why != NULL)
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: the name “%s” %s",
                 G_OBJECT_TYPE_NAME (self), name == NULL ? "" : name, why);
  return why == NULL;
}

/* Whether @tensor can be the tensor @name of that kind; it has memory of its own then. */
static gboolean
check_tensor (
    TinyModule *self, const char *name, TinyTensor *tensor, TinyEntryKind kind, GError **error)
{
  g_autoptr (GError) wrong = NULL;
  if (tensor->error != NULL)
    wrong = g_error_copy (tensor->error);
  else if (kind == TINY_ENTRY_PARAMETER && !tiny_dtype_is_float (tensor->dtype))
    g_set_error (&wrong, TINY_ERROR, TINY_ERROR_INVALID,
                 "a parameter is of floats, not %s: make it a buffer",
                 tiny_dtype_to_string (tensor->dtype));
  else if (tiny_tensor_own_memory (
               tensor, kind == TINY_ENTRY_PARAMETER ? "add_parameter" : "add_buffer", &wrong))
    return TRUE;
  g_propagate_prefixed_error (error, g_steal_pointer (&wrong),
                              "%s: “%s”: ", G_OBJECT_TYPE_NAME (self), name);
  return FALSE;
}

static TinyTensor *
add_tensor (TinyModule *self,
            const char *name,
            TinyTensor *tensor,
            TinyEntryKind kind,
            gboolean persistent,
            GError **error)
{
  g_autoptr (TinyTensor) owned = TINY_IS_TENSOR (tensor) ? g_object_ref_sink (tensor) : NULL;
  if (!TINY_IS_MODULE (self) || owned == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: the %s “%s” is NULL",
                 TINY_IS_MODULE (self) ? G_OBJECT_TYPE_NAME (self) : "module",
                 TINY_IS_MODULE (self) ? "tensor" : "module of", name == NULL ? "" : name);
    return NULL;
  }
  if ((tensor->error == NULL && !check_name (self, name, error))
      || !check_tensor (self, name == NULL ? "" : name, tensor, kind, error))
    return NULL;
  if (kind == TINY_ENTRY_PARAMETER)
    tiny_tensor_set_requires_grad (tensor, TRUE);
  TinyEntry entry = { .name = g_strdup (name),
                      .kind = kind,
                      .tensor = g_steal_pointer (&owned),
                      .persistent = persistent };
  g_array_append_val (PRIVATE (self)->entries, entry);
  return tensor;
}

TinyTensor *
tiny_module_add_parameter (TinyModule *self,
                           const char *name,
                           TinyTensor *tensor,
                           GError **error)
{
  return add_tensor (self, name, tensor, TINY_ENTRY_PARAMETER, TRUE, error);
}

TinyTensor *
tiny_module_add_buffer (
    TinyModule *self, const char *name, TinyTensor *tensor, gboolean persistent, GError **error)
{
  return add_tensor (self, name, tensor, TINY_ENTRY_BUFFER, persistent, error);
}

static gboolean
contains (TinyModule *self, TinyModule *other)
{
  GArray *entries = PRIVATE (self)->entries;
  for (guint i = 0; i < entries->len && self != other; i++) {
    TinyModule *child = g_array_index (entries, TinyEntry, i).child;
    if (child != NULL && contains (child, other))
      return TRUE;
  }
  return self == other;
}

TinyModule *
tiny_module_add_child (TinyModule *self, const char *name, TinyModule *child, GError **error)
{
  g_autoptr (GObject) owned = (GObject *) child;
  tiny_return_error_unless (TINY_IS_MODULE (self), error, NULL, "no module given");
  tiny_return_error_unless (child == NULL || TINY_IS_MODULE (child), error, NULL,
                            "what is added is no module");
  if (!check_name (self, name, error))
    return NULL;
  if (child == NULL || contains (child, self)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: the module “%s” %s",
                 G_OBJECT_TYPE_NAME (self), name,
                 child == NULL ? "is NULL" : "contains the one that it is put into");
    return NULL;
  }
  TinyEntry entry = { .name = g_strdup (name),
                      .kind = TINY_ENTRY_CHILD,
                      .child = (TinyModule *) g_steal_pointer (&owned) };
  g_array_append_val (PRIVATE (self)->entries, entry);
  return child;
}

gboolean
tiny_module_can_append (TinyModule *self, GType type, TinyModule *child)
{
  if (G_TYPE_CHECK_INSTANCE_TYPE (self, type) && TINY_IS_MODULE (child))
    return TRUE;
  g_clear_object (&child);
  g_return_val_if_fail (TINY_IS_MODULE (self), FALSE);
  tiny_module_fail (self, "%s: nothing can be appended to it, or what was is no module",
                    G_OBJECT_TYPE_NAME (self));
  return FALSE;
}

void
tiny_module_fail (TinyModule *self, const char *format, ...)
{
  TinyModulePrivate *private = PRIVATE (self);
  if (private->error != NULL)
    return;
  va_list arguments;
  va_start (arguments, format);
  private->error = g_error_new_valist (TINY_ERROR, TINY_ERROR_INVALID, format, arguments);
  va_end (arguments);
}

/* Keeps @error as what is wrong with the module, unless something was. */
static void
keep_error (TinyModule *self, GError *error)
{
  if (PRIVATE (self)->error == NULL)
    PRIVATE (self)->error = error;
  else
    g_clear_error (&error);
}

void
tiny_module_init_parameter (TinyModule *self, const char *name, TinyTensor *value)
{
  GError *error = NULL;
  if (tiny_module_add_parameter (self, name, value, &error) == NULL)
    keep_error (self, error);
}

void
tiny_module_init_buffer (TinyModule *self,
                         const char *name,
                         TinyTensor *value,
                         gboolean persistent)
{
  GError *error = NULL;
  if (tiny_module_add_buffer (self, name, value, persistent, &error) == NULL)
    keep_error (self, error);
}

void
tiny_module_init_child (TinyModule *self, const char *name, TinyModule *child)
{
  GError *error = NULL;
  const GError *wrong = TINY_IS_MODULE (child) ? tiny_module_get_error (child) : NULL;
  if (wrong != NULL)
    keep_error (self, g_error_copy (wrong));
  if (tiny_module_add_child (self, name, child, &error) == NULL)
    keep_error (self, error);
}

TinyTensor *
tiny_module_own (TinyModule *self, const char *name)
{
  TinyEntry *entry = find_own (self, name, strlen (name));
  return entry == NULL ? NULL : entry->tensor;
}

TinyTensor *
tiny_keep (GPtrArray *kept, TinyTensor *tensor)
{
  g_ptr_array_add (kept, g_object_ref_sink (tensor));
  return tensor;
}

static void
unref_or_null (gpointer object)
{
  if (object != NULL)
    g_object_unref (object);
}

GPtrArray *
tiny_kept_new (void)
{
  return g_ptr_array_new_with_free_func (unref_or_null);
}

TinyTensor *
tiny_uniform_around (const gint64 *shape, guint n_dims, double bound)
{
  return tiny_tensor_uniform (tiny_get_default_float (), shape, n_dims, -bound, bound);
}

/* ---- by name ---- */
/* (nullable): the module in @self that @path is in; @out_name is what it is there. */
static TinyModule *
find_owner (TinyModule *self, const char *path, const char **out_name)
{
  for (const char *dot; (dot = strchr (path, '.')) != NULL; path = dot + 1) {
    TinyEntry *entry = find_own (self, path, (gsize) (dot - path));
    if (entry == NULL || entry->child == NULL)
      return NULL;
    self = entry->child;
  }
  *out_name = path;
  return self;
}

static TinyEntry *
find (TinyModule *self, const char *path)
{
  const char *name;
  TinyModule *owner = find_owner (self, path, &name);
  return owner == NULL ? NULL : find_own (owner, name, strlen (name));
}

TinyTensor *
tiny_module_get_parameter (TinyModule *self, const char *path)
{
  g_return_val_if_fail (TINY_IS_MODULE (self) && path != NULL, NULL);
  TinyEntry *entry = find (self, path);
  return entry == NULL || entry->kind != TINY_ENTRY_PARAMETER ? NULL : entry->tensor;
}

TinyTensor *
tiny_module_get_buffer (TinyModule *self, const char *path)
{
  g_return_val_if_fail (TINY_IS_MODULE (self) && path != NULL, NULL);
  TinyEntry *entry = find (self, path);
  return entry == NULL || entry->kind != TINY_ENTRY_BUFFER ? NULL : entry->tensor;
}

TinyModule *
tiny_module_get_child (TinyModule *self, const char *path)
{
  g_return_val_if_fail (TINY_IS_MODULE (self) && path != NULL, NULL);
  TinyEntry *entry = *path == 0 ? NULL : find (self, path);
  return *path == 0 ? self : entry == NULL ? NULL : entry->child;
}

gboolean
tiny_module_set_tensor (TinyModule *self, const char *path, TinyTensor *tensor, GError **error)
{
  g_autoptr (TinyTensor) owned = TINY_IS_TENSOR (tensor) ? g_object_ref_sink (tensor) : NULL;
  tiny_return_error_unless (TINY_IS_MODULE (self), error, FALSE, "no module given");
  tiny_return_error_unless (path != NULL, error, FALSE, "no path given");
  tiny_return_error_unless (tensor == NULL || owned != NULL, error, FALSE,
                            "what replaces the tensor is none");
  const char *name;
  TinyModule *owner = find_owner (self, path, &name);
  TinyEntry *entry = owner == NULL ? NULL : find_own (owner, name, strlen (name));
  if (entry == NULL || entry->child != NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: there is no tensor “%s”",
                 G_OBJECT_TYPE_NAME (self), path);
    return FALSE;
  }
  if (owned == NULL) {
    GArray *entries = PRIVATE (owner)->entries;
    g_array_remove_index (entries, (guint) (entry - (TinyEntry *) (void *) entries->data));
    return TRUE;
  }
  if (entry->tensor == owned)
    return TRUE;
  if (!check_tensor (owner, name, owned, entry->kind, error))
    return FALSE;
  tiny_entry_set_tensor (entry, owned);
  return TRUE;
}

gboolean
tiny_module_move_buffer (TinyModule *self, const char *name, TinyTensor *value, GError **error)
{
  g_autoptr (TinyTensor) held = TINY_IS_TENSOR (value) ? g_object_ref_sink (value) : NULL;
  tiny_return_error_unless (TINY_IS_MODULE (self), error, FALSE, "no module given");
  tiny_return_error_unless (name != NULL, error, FALSE, "no name given");
  tiny_return_error_unless (held != NULL, error, FALSE, "no tensor given");
  TinyTensor *buffer = tiny_module_get_buffer (self, name);
  if (buffer == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: there is no buffer “%s”",
                 G_OBJECT_TYPE_NAME (self), name);
    return FALSE;
  }
  tiny_runtime_lock ();
  gboolean good = tiny_tensor_assign (buffer, tiny_tensor_detach (held), error);
  if (moved == NULL)
    moved = g_hash_table_new (NULL, NULL);
  if (good)
    g_hash_table_add (moved, buffer);
  tiny_runtime_unlock ();
  return good;
}

void
tiny_module_collect_moved (GPtrArray *tensors)
{
  GHashTableIter at;
  gpointer tensor;
  if (moved == NULL)
    return;
  g_hash_table_iter_init (&at, moved);
  while (g_hash_table_iter_next (&at, &tensor, NULL))
    g_ptr_array_add (tensors, tensor);
}

void
tiny_module_forget_moved (void)
{
  if (moved != NULL)
    g_hash_table_remove_all (moved);
}
