/* SPDX-License-Identifier: MIT
 *
 * module-state.c: the tensors of a module and of all in it: lists, the state dict, moving and casting. */
#include <string.h>

#include "base/tiny-guard.h"
#include "nn/module-private.h"
#include "tensor/tiny-tensor-inspect.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"
#include "tensor/tiny-tensor-shard.h"

/* Called for an entry that is a tensor, with its path. */
typedef void (*EntryVisitor) (TinyEntry *entry, const char *path, gpointer user_data);

static void
visit (TinyModule *self, const char *prefix, EntryVisitor visitor, gpointer user_data)
{
  GArray *entries = tiny_module_get_entries (self);
  for (guint i = 0; i < entries->len; i++) {
    TinyEntry *entry = &g_array_index (entries, TinyEntry, i);
    g_autofree char *path = g_strconcat (prefix, *prefix ? "." : "", entry->name, NULL);
    if (entry->child != NULL)
      visit (entry->child, path, visitor, user_data);
    else
      visitor (entry, path, user_data);
  }
}

typedef struct {
  TinyModuleVisitor visitor;
  gpointer user_data;
} Public;

static void
visit_public (TinyEntry *entry, const char *path, gpointer user_data)
{
  const Public *public = user_data;
  public->visitor (path, entry->tensor, entry->kind == TINY_ENTRY_PARAMETER, public->user_data);
}

void
tiny_module_visit (TinyModule *self, TinyModuleVisitor visitor, gpointer user_data)
{
  g_return_if_fail (TINY_IS_MODULE (self) && visitor != NULL);
  Public public = { visitor, user_data };
  visit (self, "", visit_public, &public);
}

void
tiny_module_apply (TinyModule *self, TinyModuleCallback callback, gpointer user_data)
{
  g_return_if_fail (TINY_IS_MODULE (self) && callback != NULL);
  GArray *entries = tiny_module_get_entries (self);
  for (guint i = 0; i < entries->len; i++) {
    TinyEntry *entry = &g_array_index (entries, TinyEntry, i);
    if (entry->child != NULL)
      tiny_module_apply (entry->child, callback, user_data);
  }
  callback (self, user_data);
}

/* ---- lists, each tensor once ---- */
typedef struct {
  TinyEntryKind kind;
  GHashTable *seen;
  GPtrArray *tensors;
  GStrvBuilder *paths;
} List;

static void
visit_list (TinyEntry *entry, const char *path, gpointer user_data)
{
  List *list = user_data;
  if (entry->kind != list->kind || !g_hash_table_add (list->seen, entry->tensor))
    return;
  g_ptr_array_add (list->tensors, entry->tensor);
  g_strv_builder_add (list->paths, path);
}

static GPtrArray *
collect (TinyModule *self, TinyEntryKind kind, char ***out_paths)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  g_autoptr (GStrvBuilder) paths = g_strv_builder_new ();
  List list = { kind, seen, g_ptr_array_new (), paths };
  visit (self, "", visit_list, &list);
  if (out_paths != NULL)
    *out_paths = g_strv_builder_end (paths);
  return list.tensors;
}

GPtrArray *
tiny_module_get_parameters (TinyModule *self)
{
  g_return_val_if_fail (TINY_IS_MODULE (self), NULL);
  return collect (self, TINY_ENTRY_PARAMETER, NULL);
}

char **
tiny_module_get_parameter_names (TinyModule *self)
{
  g_return_val_if_fail (TINY_IS_MODULE (self), NULL);
  char **paths;
  g_ptr_array_unref (collect (self, TINY_ENTRY_PARAMETER, &paths));
  return paths;
}

GPtrArray *
tiny_module_get_buffers (TinyModule *self)
{
  g_return_val_if_fail (TINY_IS_MODULE (self), NULL);
  return collect (self, TINY_ENTRY_BUFFER, NULL);
}

char **
tiny_module_get_buffer_names (TinyModule *self)
{
  g_return_val_if_fail (TINY_IS_MODULE (self), NULL);
  char **paths;
  g_ptr_array_unref (collect (self, TINY_ENTRY_BUFFER, &paths));
  return paths;
}

char **
tiny_module_get_child_names (TinyModule *self)
{
  g_return_val_if_fail (TINY_IS_MODULE (self), NULL);
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();
  GArray *entries = tiny_module_get_entries (self);
  for (guint i = 0; i < entries->len; i++) {
    TinyEntry *entry = &g_array_index (entries, TinyEntry, i);
    if (entry->child != NULL)
      g_strv_builder_add (names, entry->name);
  }
  return g_strv_builder_end (names);
}

void
tiny_module_set_requires_grad (TinyModule *self, gboolean requires_grad)
{
  g_return_if_fail (TINY_IS_MODULE (self));
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (self);
  for (guint i = 0; i < parameters->len; i++)
    tiny_tensor_set_requires_grad (parameters->pdata[i], requires_grad);
}

void
tiny_module_zero_grad (TinyModule *self)
{
  g_return_if_fail (TINY_IS_MODULE (self));
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (self);
  for (guint i = 0; i < parameters->len; i++)
    tiny_tensor_clear_grad (parameters->pdata[i]);
}

/* ---- the state dict ---- */
static void
visit_state (TinyEntry *entry, const char *path, gpointer user_data)
{
  if (entry->persistent)
    g_hash_table_insert (user_data, g_strdup (path), g_object_ref (entry->tensor));
}

GHashTable *
tiny_module_get_state_dict (TinyModule *self)
{
  g_return_val_if_fail (TINY_IS_MODULE (self), NULL);
  GHashTable *state = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  visit (self, "", visit_state, state);
  return state;
}

static char *
shape_text (TinyTensor *tensor)
{
  GString *text = g_string_new ("(");
  for (guint i = 0; i < tensor->n_dims; i++)
    g_string_append_printf (text, i == 0 ? "%" G_GINT64_FORMAT : ", %" G_GINT64_FORMAT,
                            tensor->shape[i]);
  g_string_append (text, tensor->n_dims == 1 ? ",)" : ")");
  return g_string_free (text, FALSE);
}

static gboolean
same_shape (const TinyTensor *a, const TinyTensor *b)
{
  return a->n_dims == b->n_dims
         && memcmp (a->shape, b->shape, a->n_dims * sizeof *a->shape) == 0;
}

static void
append_name (GString *list, const char *kind, const char *name)
{
  g_string_append_printf (list, "%s%s “%s”", list->len > 0 ? ", " : "", kind, name);
}

/* Names sorted, so that a message is always the same. */
static GList *
sorted_names (GHashTable *table)
{
  return g_list_sort (g_hash_table_get_keys (table), (GCompareFunc) strcmp);
}

/* Everything that is wrong, in one error. */
static gboolean
check_state (GHashTable *own, GHashTable *state, gboolean strict, GError **error)
{
  g_autoptr (GString) wrong = g_string_new (NULL);
  g_autoptr (GList) names = sorted_names (own), given = sorted_names (state);
  for (GList *at = names; at != NULL; at = at->next) {
    TinyTensor *value = g_hash_table_lookup (state, at->data);
    TinyTensor *tensor = g_hash_table_lookup (own, at->data);
    if (!g_hash_table_contains (state, at->data)) {
      if (strict)
        append_name (wrong, "missing", at->data);
      continue;
    }
    if (value == NULL) {
      append_name (wrong, "no tensor", at->data);
    } else if (value->error != NULL) {
      append_name (wrong, "failed", at->data);
      g_string_append_printf (wrong, ": %s", value->error->message);
    } else if (!same_shape (tensor, value)) {
      g_autofree char *want = shape_text (tensor), *found = shape_text (value);
      append_name (wrong, "of another shape", at->data);
      g_string_append_printf (wrong, ": %s, not %s", found, want);
    }
  }
  for (GList *at = given; strict && at != NULL; at = at->next)
    if (!g_hash_table_contains (own, at->data))
      append_name (wrong, "unexpected", at->data);
  if (wrong->len > 0)
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "load_state_dict: %s", wrong->str);
  return wrong->len == 0;
}

/* Computed before the first of them is written: reading a value may fail. */
static gboolean
load (GHashTable *own, GHashTable *state, GError **error)
{
  g_autoptr (GPtrArray) targets = g_ptr_array_new (), values = tiny_kept_new ();
  GHashTableIter at;
  gpointer name, tensor;
  g_hash_table_iter_init (&at, own);
  while (g_hash_table_iter_next (&at, &name, &tensor)) {
    TinyTensor *value = g_hash_table_lookup (state, name);
    if (value == NULL)
      continue;
    g_ptr_array_add (targets, tensor);
    value = tiny_tensor_cast (tiny_tensor_detach (value), ((TinyTensor *) tensor)->dtype);
    value = tiny_tensor_shard_like (value, tensor);
    tiny_keep (values, value);
  }
  if (!tiny_tensor_realize_many ((TinyTensor *const *) values->pdata, values->len, error))
    return FALSE;
  for (guint i = 0; i < targets->len; i++)
    if (!tiny_tensor_assign (targets->pdata[i], values->pdata[i], error))
      return FALSE;
  return tiny_tensor_realize_many ((TinyTensor *const *) targets->pdata, targets->len, error);
}

gboolean
tiny_state_copy (GHashTable *own, GHashTable *state, gboolean strict, GError **error)
{
  if (!check_state (own, state, strict, error))
    return FALSE;
  tiny_runtime_open_default_device ();
  tiny_runtime_lock ();
  gboolean good = load (own, state, error);
  tiny_runtime_unlock ();
  return good;
}

gboolean
tiny_module_load_state_dict (TinyModule *self,
                             GHashTable *state,
                             gboolean strict,
                             GError **error)
{
  tiny_return_error_unless (TINY_IS_MODULE (self), error, FALSE, "no module given");
  tiny_return_error_unless (state != NULL, error, FALSE, "no state given");
  const GError *wrong = tiny_module_get_error (self);
  if (wrong != NULL) {
    g_propagate_error (error, g_error_copy (wrong));
    return FALSE;
  }
  g_autoptr (GHashTable) own = tiny_module_get_state_dict (self);
  return tiny_state_copy (own, state, strict, error);
}

/* ---- replacing all tensors ---- */
typedef struct {
  GHashTable *replaced; /* TinyTensor → its successor, so that what is shared stays shared */
  gboolean to_device;
  const char *device;
  TinyDType dtype;
} Replacing;

static void
visit_make (TinyEntry *entry, const char *path, gpointer user_data)
{
  Replacing *self = user_data;
  TinyTensor *tensor = entry->tensor;
  gboolean is_cast = tiny_dtype_is_float (tensor->dtype) && tensor->dtype != self->dtype;
  if (g_hash_table_contains (self->replaced, tensor) || (!self->to_device && !is_cast))
    return;
  TinyTensor *next = self->to_device
                         ? tiny_tensor_to (tiny_tensor_detach (tensor), self->device)
                         : tiny_tensor_cast (tiny_tensor_detach (tensor), self->dtype);
  g_hash_table_insert (self->replaced, tensor, g_object_ref_sink (next));
}

static void
visit_replace (TinyEntry *entry, const char *path, gpointer user_data)
{
  Replacing *self = user_data;
  TinyTensor *next = g_hash_table_lookup (self->replaced, entry->tensor);
  if (next == NULL)
    return;
  tiny_tensor_set_requires_grad (next, ((TinyTensor *) entry->tensor)->requires_grad);
  tiny_entry_set_tensor (entry, next);
}

static gboolean
replace (TinyModule *self, Replacing *how, GError **error)
{
  g_autoptr (GHashTable) replaced = g_hash_table_new_full (NULL, NULL, NULL, g_object_unref);
  how->replaced = replaced;
  visit (self, "", visit_make, how);
  g_autoptr (GPtrArray) next = g_ptr_array_new ();
  GHashTableIter at;
  gpointer value;
  g_hash_table_iter_init (&at, replaced);
  while (g_hash_table_iter_next (&at, NULL, &value))
    g_ptr_array_add (next, value);
  gboolean good = TRUE;
  for (guint i = 0; good && i < next->len; i++)
    good = tiny_tensor_own_memory (next->pdata[i], "module", error);
  if (!good || !tiny_tensor_realize_many ((TinyTensor *const *) next->pdata, next->len, error))
    return FALSE;
  visit (self, "", visit_replace, how);
  return TRUE;
}

gboolean
tiny_module_to (TinyModule *self, const char *device, GError **error)
{
  tiny_return_error_unless (TINY_IS_MODULE (self), error, FALSE, "no module given");
  Replacing how = { .to_device = TRUE, .device = device };
  return replace (self, &how, error);
}

gboolean
tiny_module_to_dtype (TinyModule *self, TinyDType dtype, GError **error)
{
  tiny_return_error_unless (TINY_IS_MODULE (self), error, FALSE, "no module given");
  if ((guint) dtype >= TINY_N_DTYPES || !tiny_dtype_is_float (dtype)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "module: tensors are cast to a float dtype, not %s",
                 (guint) dtype < TINY_N_DTYPES ? tiny_dtype_to_string (dtype)
                                               : "one that is none");
    return FALSE;
  }
  Replacing how = { .dtype = dtype };
  return replace (self, &how, error);
}

void
tiny_module_label_parameters (TinyModule *self)
{
  g_autoptr (GPtrArray) parameters = tiny_module_get_parameters (self);
  g_auto (GStrv) names = tiny_module_get_parameter_names (self);
  for (guint i = 0; i < parameters->len; i++)
    tiny_tensor_set_label (parameters->pdata[i], names[i]);
}
