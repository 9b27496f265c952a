/* SPDX-License-Identifier: MIT
 *
 * model-files.c: a model as NAME.tir and NAME.safetensors, and back. */
#include <glib/gstdio.h>
#include <string.h>

#include "base/tiny-clean.h"
#include "base/tiny-error.h"
#include "base/tiny-guard.h"
#include "base/tiny-opened-file.h"
#include "base/tiny-whole-file.h"
#include "io/model-private.h"
#include "ir/tiny-shape.h"
#include "ir/tiny-text.h"
#include "ir/tiny-verify.h"

enum { MAX_GRAPH = 64 << 20 };
#define WEIGHTS  "weights."
#define EXAMPLES "examples."

/* The file of the weights of @path; NULL when that does not end as it should. */
static char *
get_weights_path (const char *path)
{
  if (!g_str_has_suffix (path, ".tir"))
    return NULL;
  g_autofree char *stem = g_strndup (path, strlen (path) - strlen (".tir"));
  return g_strconcat (stem, ".safetensors", NULL);
}

/* ---- saving ---- */
static char *
print_graph (TinyModel *self)
{
  g_auto (TinyNodeMap) names = { 0 };
  g_autoptr (GPtrArray) weight_names = g_ptr_array_new_with_free_func (g_free);
  g_autofree TinyNode **params = tiny_model_find_params (self);
  for (guint i = 0; i < self->outputs->len; i++)
    tiny_node_map_set (&names, self->sink->sources[i],
                       ((TinyPort *) self->outputs->pdata[i])->name);
  for (guint i = 0; i < self->inputs->len; i++)
    tiny_node_map_set (&names, params[i], ((TinyPort *) self->inputs->pdata[i])->name);
  for (guint i = 0; i < self->weights->len; i++) {
    const TinyArray *weight = self->weights->pdata[i];
    g_ptr_array_add (weight_names, g_strconcat (WEIGHTS, weight->name, NULL));
    tiny_node_map_set (&names, params[self->inputs->len + i], weight_names->pdata[i]);
  }
  g_autofree char *text = tiny_graph_print_named (self->graph, self->sink, &names);
  return g_strconcat ("// stage: tensor\n", text, NULL);
}

static gboolean
save_weights (TinyModel *self, const char *path, GError **error)
{
  g_autoptr (TinySafetensors) file = tiny_safetensors_new ();
  GHashTableIter iter;
  gpointer key, value;
  for (guint i = 0; i < self->weights->len; i++) {
    const TinyArray *a = self->weights->pdata[i];
    g_ptr_array_add (file->arrays, tiny_array_rename (a, a->name));
  }
  for (guint i = 0; i < self->examples->len; i++) {
    const TinyArray *a = self->examples->pdata[i];
    g_autofree char *name = g_strconcat (EXAMPLES, a->name, NULL);
    g_ptr_array_add (file->arrays, tiny_array_rename (a, name));
  }
  g_hash_table_iter_init (&iter, self->metadata);
  while (g_hash_table_iter_next (&iter, &key, &value))
    g_hash_table_insert (file->metadata, g_strdup (key), g_strdup (value));
  return tiny_safetensors_write (file, path, NULL, error);
}

gboolean
tiny_model_save (TinyModel *self, const char *path, GError **error)
{
  g_auto (TinyMessage) message = error;
  tiny_return_error_unless (TINY_IS_MODEL (self), error, FALSE, "no model given");
  tiny_return_error_unless (path != NULL, error, FALSE, "no path given");
  g_autofree char *weights = get_weights_path (path);
  if (weights == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: a model's file ends in .tir",
                 path);
    return FALSE;
  }
  g_autofree char *text = print_graph (self);
  return save_weights (self, weights, error) && tiny_whole_file_write (path, text, -1, error);
}

/* ---- loading ---- */
typedef struct {
  TinyModel *model;
  const char *weights_path;
  TinySafetensors *file; /* or NULL and @file_error */
  GError *file_error;
  TinyGraph *graph;   /* as read */
  GHashTable *labels; /* TinyNode → char * */
} Loading;

static void
loading_clear (Loading *self)
{
  g_clear_pointer (&self->file, tiny_safetensors_free);
  g_clear_error (&self->file_error);
  g_clear_pointer (&self->graph, tiny_graph_free);
  g_clear_pointer (&self->labels, g_hash_table_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Loading, loading_clear)

static TinyNode *
read_graph (Loading *self, const char *path, GError **error)
{
  g_autoptr (GHashTable) names = NULL;
  GStatBuf info;
  if (g_stat (path, &info) == 0 && (!S_ISREG (info.st_mode) || info.st_size > MAX_GRAPH)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: wanted a file of at most 64 MiB", path);
    return NULL;
  }
  g_autoptr (TinyOpenedFile) file = tiny_opened_file_new (path, error);
  const gsize size = file != NULL ? (gsize) tiny_opened_file_get_size (file) : 0;
  g_autoptr (GBytes) bytes
      = file != NULL ? tiny_opened_file_read_bytes (file, 0, size, error) : NULL;
  if (bytes == NULL)
    return NULL;
  const char *text = g_bytes_get_data (bytes, NULL);
  self->graph = tiny_graph_new ();
  TinyNode *root = tiny_graph_parse_named (self->graph, text, &names, error);
  if (root != NULL && root->op != TINY_OP_SINK)
    root = tiny_node_sink (self->graph, 1, &root, NULL);
  if (root == NULL || !tiny_graph_verify (self->graph, root, TINY_STAGE_TENSOR, error)) {
    g_prefix_error (error, "%s: ", path);
    return NULL;
  }
  self->labels = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  GHashTableIter iter;
  gpointer label, node;
  g_hash_table_iter_init (&iter, names);
  while (g_hash_table_iter_next (&iter, &label, &node))
    if (tiny_text_is_name (label))
      g_hash_table_insert (self->labels, node, g_strdup (label));
  return root;
}

static int
compare_slots (gconstpointer a, gconstpointer b)
{
  const TinyNode *x = *(const TinyNode *const *) a, *y = *(const TinyNode *const *) b;
  return x->arg != y->arg ? (x->arg > y->arg) - (x->arg < y->arg) : (int) x->id - (int) y->id;
}

static gboolean
add_weight (Loading *self, const TinyNode *param, const char *name, GError **error)
{
  const TinyArray *array = self->file != NULL ? tiny_safetensors_find (self->file, name) : NULL;
  if (self->file == NULL) {
    g_set_error (error, TINY_ERROR, self->file_error->code,
                 "weight “%s” is to be in a file beside the graph: %s", name,
                 self->file_error->message);
    return FALSE;
  }
  if (array == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "%s: weight “%s” is missing",
                 self->weights_path, name);
    return FALSE;
  }
  if (array->dtype != (TinyDType) param->dtype || array->n_dims != param->shape->n
      || memcmp (array->shape, param->shape->v, array->n_dims * sizeof (gint64)) != 0) {
    g_autofree char *wanted = tiny_shape_to_string (param->shape);
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                 "%s: weight “%s” is not the %s of %s that the graph wants", self->weights_path,
                 name, tiny_dtype_to_string ((TinyDType) param->dtype), wanted);
    return FALSE;
  }
  g_ptr_array_add (self->model->weights, tiny_array_rename (array, name));
  return TRUE;
}

/* Makes ports and weights of the PARAMs; out: their slots in the model, by place in @params. */
static gboolean
sort_params (Loading *self, GPtrArray *params, guint *slots, GError **error)
{
  guint n_inputs = 0;
  g_ptr_array_sort (params, compare_slots);
  for (guint pass = 0; pass < 2; pass++)
    for (guint i = 0; i < params->len; i++) {
      const TinyNode *param = params->pdata[i];
      const char *label = g_hash_table_lookup (self->labels, param);
      if ((label != NULL && g_str_has_prefix (label, WEIGHTS)) != (pass == 1))
        continue;
      if (pass == 1) {
        slots[i] = n_inputs + self->model->weights->len;
        if (!add_weight (self, param, label + strlen (WEIGHTS), error))
          return FALSE;
        continue;
      }
      g_autofree char *other = g_strdup_printf ("input%u", n_inputs);
      slots[i] = n_inputs++;
      g_ptr_array_add (self->model->inputs, tiny_port_new (label ? label : other, param));
    }
  return TRUE;
}

/* TRUE for what a saved model may consist of. Memory, devices, sizes and rules belong to a running program, and the
 * numbers and names in a file are none of them. */
static gboolean
has_place (const TinyNode *node, const TinyNode *root)
{
  switch (node->op) {
  case TINY_OP_BUFFER:
  case TINY_OP_ASSIGN:
  case TINY_OP_VARIABLE:
  case TINY_OP_LIMIT:
  case TINY_OP_UNSHARD:
  case TINY_OP_GRADIENT:
  case TINY_OP_AFTER:
    return FALSE;
  case TINY_OP_SINK:
    return node == root;
  default:
    return TRUE;
  }
}

/* Copies the graph with the model's slots, without devices. */
static gboolean
copy_graph (Loading *self, TinyNode *root, GError **error)
{
  TinyGraph *graph = self->model->graph;
  g_auto (TinyNodeMap) map = { 0 };
  g_autoptr (GPtrArray) sources = g_ptr_array_new (), params = g_ptr_array_new ();
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->graph, &root, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_PARAM)
      g_ptr_array_add (params, node);
    if (!has_place (node, root)) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED, "%s has no place in a model",
                   tiny_op_to_string (node->op));
      return FALSE;
    }
  }
  for (guint i = 0; i < root->n_sources; i++)
    if (root->sources[i]->dtype == TINY_DTYPE_INDEX) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                   "output %u is of dtype index, which is no tensor's: cast it", i);
      return FALSE;
    }
  g_autofree guint *slots = g_new0 (guint, params->len + 1);
  if (!sort_params (self, params, slots, error))
    return FALSE;
  for (guint i = 0; i < params->len; i++) {
    TinyNode *param = params->pdata[i];
    tiny_node_map_set (&map, param,
                       tiny_node_new (graph, TINY_OP_PARAM, param->dtype, 1, 0, NULL, slots[i],
                                      param->shape, NULL));
  }
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_PARAM)
      continue;
    g_ptr_array_set_size (sources, 0);
    for (guint s = 0; s < node->n_sources; s++)
      g_ptr_array_add (sources, tiny_node_map_get (&map, node->sources[s]));
    tiny_node_map_set (
        &map, node,
        node->op == TINY_OP_COPY
            ? sources->pdata[0]
            : tiny_model_copy_node (graph, node, (TinyNode *const *) sources->pdata));
  }
  self->model->sink = tiny_node_map_get (&map, root);
  return TRUE;
}

static void
name_outputs (Loading *self, TinyNode *root)
{
  for (guint i = 0; i < root->n_sources; i++) {
    const TinyNode *node = root->sources[i];
    g_autofree char *other
        = root->n_sources > 1 ? g_strdup_printf ("output%u", i) : g_strdup ("output");
    const char *label
        = node->op != TINY_OP_PARAM ? g_hash_table_lookup (self->labels, node) : NULL;
    g_ptr_array_add (self->model->outputs, tiny_port_new (label ? label : other, node));
  }
}

static gboolean
take_rest (Loading *self, GError **error)
{
  if (self->file == NULL)
    return TRUE;
  g_hash_table_unref (self->model->metadata);
  self->model->metadata = g_hash_table_ref (self->file->metadata);
  for (guint i = 0; i < self->file->arrays->len; i++) {
    const TinyArray *array = self->file->arrays->pdata[i];
    if (g_str_has_prefix (array->name, EXAMPLES)
        && !tiny_model_keep_examples (self->model, array->name + strlen (EXAMPLES), array,
                                      error))
      return FALSE;
  }
  return TRUE;
}

TinyModel *
tiny_model_load (const char *path, GError **error)
{
  g_auto (TinyMessage) message = error;
  tiny_return_error_unless (path != NULL, error, NULL, "no path given");
  g_autofree char *weights = get_weights_path (path);
  g_autoptr (TinyModel) model = tiny_model_new_empty ();
  g_auto (Loading) self = { .model = model, .weights_path = weights };
  if (weights == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "%s: a model's file ends in .tir",
                 path);
    return NULL;
  }
  TinyNode *root = read_graph (&self, path, error);
  if (root == NULL)
    return NULL;
  self.file = tiny_safetensors_load (weights, &self.file_error);
  gboolean good = self.file != NULL || !g_file_test (weights, G_FILE_TEST_EXISTS);
  if (!good) {
    g_propagate_error (error, g_steal_pointer (&self.file_error));
    return NULL;
  }
  if (!copy_graph (&self, root, error)) {
    g_prefix_error (error, "%s: ", path);
    return NULL;
  }
  name_outputs (&self, root);
  if (!tiny_model_check (model, error) || !take_rest (&self, error)) {
    g_prefix_error (error, "%s: ", path);
    return NULL;
  }
  return g_steal_pointer (&model);
}
