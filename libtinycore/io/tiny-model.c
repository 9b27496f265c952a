/* SPDX-License-Identifier: MIT
 *
 * tiny-model.c: from tensors to a graph whose leaves are inputs and weights. */
#include <string.h>

#include "base/tiny-guard.h"
#include "base/tiny-text-hash.h"
#include "engine/runtime-private.h"
#include "io/model-private.h"
#include "ir/tiny-shape.h"
#include "ir/tiny-shard.h"
#include "ir/tiny-text.h"
#include "tensor/tiny-tensor-private.h"

G_DEFINE_FINAL_TYPE (TinyModel, tiny_model, G_TYPE_OBJECT)

/* ---- parts ---- */
static void
port_free (gpointer data)
{
  TinyPort *self = data;
  g_free (self->name);
  g_free (self->shape);
  g_free (self);
}

TinyPort *
tiny_port_new (const char *name, const TinyNode *node)
{
  TinyPort *self = g_new0 (TinyPort, 1);
  self->name = g_strdup (name);
  self->dtype = (TinyDType) node->dtype;
  self->n_dims = node->shape->n;
  self->shape = g_memdup2 (node->shape->v, node->shape->n * sizeof (gint64));
  self->n_bytes
      = (gsize) tiny_shape_get_n_elements (node->shape) * tiny_dtype_get_n_bytes (self->dtype);
  return self;
}

static void
tiny_model_finalize (GObject *object)
{
  TinyModel *self = TINY_MODEL (object);
  tiny_graph_free (self->graph);
  g_ptr_array_unref (self->inputs);
  g_ptr_array_unref (self->weights);
  g_ptr_array_unref (self->outputs);
  g_ptr_array_unref (self->examples);
  g_hash_table_unref (self->metadata);
  g_clear_pointer (&self->tensors, g_ptr_array_unref);
  G_OBJECT_CLASS (tiny_model_parent_class)->finalize (object);
}

static void
tiny_model_class_init (TinyModelClass *class)
{
  G_OBJECT_CLASS (class)->finalize = tiny_model_finalize;
}

static void
tiny_model_init (TinyModel *self)
{
  self->graph = tiny_graph_new ();
  self->sink = tiny_node_sink (self->graph, 0, NULL, NULL);
  self->inputs = g_ptr_array_new_with_free_func (port_free);
  self->outputs = g_ptr_array_new_with_free_func (port_free);
  self->weights = g_ptr_array_new_with_free_func ((GDestroyNotify) tiny_array_free);
  self->examples = g_ptr_array_new_with_free_func ((GDestroyNotify) tiny_array_free);
  self->metadata = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
}

TinyModel *
tiny_model_new_empty (void)
{
  return g_object_new (TINY_TYPE_MODEL, NULL);
}

/* ---- checks ---- */
static gboolean
check_name (const char *what, const char *name, GHashTable *seen, GError **error)
{
  if (!tiny_text_is_name (name) || g_str_has_prefix (name, "weights."))
    g_set_error (
        error, TINY_ERROR, TINY_ERROR_INVALID,
        "model: “%s” cannot name an %s: letters, digits and underscores, with dots between "
        "them, not only digits, not weights.…",
        name, what);
  else if (!g_hash_table_add (seen, (gpointer) name))
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "model: there are two %ss “%s”", what,
                 name);
  else
    return TRUE;
  return FALSE;
}

static gboolean
check_names (const char *what, const GPtrArray *ports, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (tiny_text_hash, g_str_equal);
  for (guint i = 0; i < ports->len; i++)
    if (!check_name (what, ((const TinyPort *) ports->pdata[i])->name, seen, error))
      return FALSE;
  return TRUE;
}

TinyNode **
tiny_model_find_params (TinyModel *self)
{
  TinyNode **params = g_new0 (TinyNode *, self->inputs->len + self->weights->len + 1);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self->graph, &self->sink, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_PARAM && node->arg < self->inputs->len + self->weights->len)
      params[node->arg] = node;
  }
  return params;
}

gboolean
tiny_model_check (TinyModel *self, GError **error)
{
  if (!check_names ("input", self->inputs, error)
      || !check_names ("output", self->outputs, error))
    return FALSE;
  g_autofree TinyNode **params = tiny_model_find_params (self);
  for (guint i = 0; i < self->inputs->len; i++)
    if (params[i] == NULL) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "model: no output reads input “%s”",
                   ((const TinyPort *) self->inputs->pdata[i])->name);
      return FALSE;
    }
  return TRUE;
}

/* ---- from tensors ---- */

/* Names of memory: TinyBuffer → char *. */
static void
note_name (const char *name, TinyTensor *tensor, gboolean trainable, gpointer names)
{
  TinyNode *node = tiny_tensor_get_node (tensor);
  while (node != NULL && node->op == TINY_OP_RESHAPE)
    node = node->sources[0];
  if (node != NULL && node->op == TINY_OP_BUFFER)
    g_hash_table_insert (names, tiny_runtime_get_buffer (node), g_strdup (name));
}

/* Adds the memory behind @node to the weights, as the next slot. */
static TinyNode *
add_weight (TinyModel *self, TinyNode *node, GHashTable *names, GError **error)
{
  TinyBuffer *buffer = tiny_runtime_get_buffer (node);
  gsize n_bytes = (gsize) tiny_shape_get_n_elements (node->shape)
                  * tiny_dtype_get_n_bytes ((TinyDType) node->dtype);
  g_autofree void *data = g_try_malloc (MAX (n_bytes, 1));
  if (data == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY,
                 "model: no memory for a weight of %" G_GSIZE_FORMAT " bytes", n_bytes);
    return NULL;
  }
  if (!tiny_buffer_ensure (buffer, error)
      || !tiny_buffer_download (buffer, 0, data, n_bytes, error))
    return NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_take (g_steal_pointer (&data), n_bytes);
  const char *known = g_hash_table_lookup (names, buffer);
  g_autofree char *name
      = known != NULL ? g_strdup (known) : g_strdup_printf ("constant%u", self->weights->len);
  gint64 slot = self->inputs->len + self->weights->len;
  g_ptr_array_add (self->weights, tiny_array_new (name, (TinyDType) node->dtype, node->shape->v,
                                                  node->shape->n, bytes));
  return tiny_node_new (self->graph, TINY_OP_PARAM, node->dtype, 1, 0, NULL, slot, node->shape,
                        NULL);
}

static TinyNode *
find_input (TinyModel *self, TinyNode *node, TinyTensor *const *inputs)
{
  for (guint i = 0; i < self->inputs->len; i++) {
    TinyNode *input = tiny_tensor_get_node (inputs[i]);
    while (input->op == TINY_OP_RESHAPE)
      input = input->sources[0];
    if (input == node)
      return tiny_node_new (self->graph, TINY_OP_PARAM, node->dtype, 1, 0, NULL, i, node->shape,
                            NULL);
  }
  return NULL;
}

TinyNode *
tiny_model_copy_node (TinyGraph *graph, const TinyNode *node, TinyNode *const *sources)
{
  const char *text = node->op == TINY_OP_KERNEL ? node->text : NULL; /* others': a device */
  return tiny_node_new (graph, node->op, node->dtype, node->lanes, node->n_sources, sources,
                        node->arg, node->ints, text);
}

/* What @node of tensors is in the model's graph. */
static TinyNode *
copy_node (TinyModel *self,
           TinyNode *node,
           TinyNode *const *sources,
           TinyTensor *const *inputs,
           GHashTable *names,
           GError **error)
{
  switch (node->op) {
  case TINY_OP_BUFFER: {
    TinyNode *input = find_input (self, node, inputs);
    return input != NULL ? input : add_weight (self, node, names, error);
  }
  case TINY_OP_UNSHARD:
    return node->arg == TINY_SHARD_WHOLE
               ? sources[0]
               : tiny_node_join (self->graph, sources, node->n_sources, (guint) node->arg);
  case TINY_OP_COPY:
  case TINY_OP_DETACH:
  case TINY_OP_AFTER:
  case TINY_OP_LIMIT: /* what it means is in the masks that were made with it */
  case TINY_OP_SLOPED:
    return sources[0];
  case TINY_OP_GRADIENT:
    return sources[node->ints->v[0]];
  case TINY_OP_VARIABLE: /* the number of a draw */
    if (node->text == NULL)
      return tiny_node_const_int (self->graph, (TinyDType) node->dtype, node->arg);
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "model: an output depends on the variable %s, which a model has no place for",
                 node->text);
    return NULL;
  case TINY_OP_ASSIGN:
    g_set_error_literal (
        error, TINY_ERROR, TINY_ERROR_INVALID,
        "model: an output reads what is assigned but not computed yet; realise "
        "the module's tensors before its outputs are built");
    return NULL;
  default:
    return tiny_model_copy_node (self->graph, node, sources);
  }
}

static gboolean
copy_graph (TinyModel *self,
            TinyTensor *const *inputs,
            TinyNode *const *roots,
            guint n_roots,
            GHashTable *names,
            GError **error)
{
  g_auto (TinyNodeMap) map = { 0 };
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  g_autoptr (GPtrArray) order = tiny_graph_toposort (tiny_runtime_get_graph (), roots, n_roots);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    g_ptr_array_set_size (sources, 0);
    for (guint s = 0; s < node->n_sources; s++)
      g_ptr_array_add (sources, tiny_node_map_get (&map, node->sources[s]));
    TinyNode *copy
        = copy_node (self, node, (TinyNode *const *) sources->pdata, inputs, names, error);
    if (copy == NULL)
      return FALSE;
    tiny_node_map_set (&map, node, copy);
  }
  g_ptr_array_set_size (sources, 0);
  for (guint i = 0; i < n_roots; i++)
    g_ptr_array_add (sources, tiny_node_map_get (&map, roots[i]));
  self->sink = tiny_node_sink (self->graph, n_roots, (TinyNode *const *) sources->pdata, NULL);
  return TRUE;
}

/* (nullable): the memory that @tensor, on one device, is in. */
static TinyBuffer *
find_memory (TinyTensor *tensor)
{
  if (!tiny_tensor_is_realized (tensor))
    return NULL;
  TinyNode *memory = tiny_runtime_get_memory (tiny_tensor_get_node (tensor));
  return memory->op == TINY_OP_BUFFER ? tiny_runtime_get_buffer (memory) : NULL;
}

/* Whether it is one that a model can be made of. */
static gboolean
check_tensor (TinyTensor *tensor, const char *what, const char *name, GError **error)
{
  if (TINY_IS_TENSOR (tensor) && tensor->error == NULL && name != NULL)
    return TRUE;
  if (TINY_IS_TENSOR (tensor) && tensor->error != NULL)
    g_propagate_error (error, g_error_copy (tensor->error));
  else
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "model: %s “%s” is no tensor, or has no name", what, name != NULL ? name : "");
  return FALSE;
}

static gboolean
check_input (TinyTensor *tensor, const char *name, GError **error)
{
  if (!check_tensor (tensor, "input", name, error))
    return FALSE;
  if (tiny_devices_count (tensor->device) > 1)
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "model: input “%s” is on %s: one device is wanted", name, tensor->device);
  else if (find_memory (tensor) == NULL)
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "model: input “%s” is not in memory; make it by empty", name);
  else
    return TRUE;
  return FALSE;
}

/* What is in memory is known to come from nothing, unless it is an input. */
static gboolean
check_output (TinyTensor *tensor,
              const char *name,
              TinyTensor *const *inputs,
              guint n_inputs,
              GError **error)
{
  if (!check_tensor (tensor, "output", name, error))
    return FALSE;
  gboolean good = !tiny_tensor_is_realized (tensor);
  const TinyBuffer *memory = find_memory (tensor);
  for (guint i = 0; memory != NULL && i < n_inputs; i++)
    good = good || find_memory (inputs[i]) == memory;
  if (!good)
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "model: output “%s” is computed already, so nothing says from what", name);
  return good;
}

static gboolean
build (TinyModel *self,
       TinyTensor *const *inputs,
       const char *const *input_names,
       guint n_inputs,
       TinyTensor *const *outputs,
       const char *const *output_names,
       guint n_outputs,
       TinyModule *module,
       GError **error)
{
  g_autoptr (GHashTable) names = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  g_autoptr (GPtrArray) roots = g_ptr_array_new ();
  if (module != NULL)
    tiny_module_visit (module, note_name, names);
  for (guint i = 0; i < n_inputs; i++) {
    if (!check_input (inputs[i], input_names[i], error))
      return FALSE;
    g_ptr_array_add (self->inputs,
                     tiny_port_new (input_names[i], tiny_tensor_get_node (inputs[i])));
  }
  for (guint i = 0; i < n_outputs; i++) {
    if (!check_output (outputs[i], output_names[i], inputs, n_inputs, error))
      return FALSE;
    TinyNode *node = tiny_tensor_get_node (outputs[i]);
    g_ptr_array_add (roots, node);
    g_ptr_array_add (self->outputs, tiny_port_new (output_names[i], node));
  }
  return copy_graph (self, inputs, (TinyNode *const *) roots->pdata, n_outputs, names, error)
         && tiny_model_check (self, error);
}

TinyModel *
tiny_model_new (TinyTensor *const *inputs,
                const char *const *input_names,
                guint n_inputs,
                TinyTensor *const *outputs,
                const char *const *output_names,
                guint n_outputs,
                TinyModule *module,
                GError **error)
{
  tiny_return_error_unless (n_outputs > 0 && outputs != NULL && output_names != NULL, error,
                            NULL, "no outputs, or no names of them, are given");
  tiny_return_error_unless (
      TINY_IS_LIST (inputs, n_inputs) && TINY_IS_LIST (input_names, n_inputs), error, NULL,
      "inputs are counted, but they or their names are not given");
  tiny_return_error_unless (module == NULL || TINY_IS_MODULE (module), error, NULL,
                            "what names the weights is no module");
  g_autoptr (TinyModel) self = tiny_model_new_empty ();
  tiny_runtime_lock ();
  gboolean good = build (self, inputs, input_names, n_inputs, outputs, output_names, n_outputs,
                         module, error);
  tiny_runtime_unlock ();
  return good ? g_steal_pointer (&self) : NULL;
}

/* ---- what goes with it ---- */
void
tiny_model_set_metadata (TinyModel *self, const char *key, const char *text)
{
  g_return_if_fail (TINY_IS_MODEL (self) && key != NULL);
  if (text == NULL)
    g_hash_table_remove (self->metadata, key);
  else
    g_hash_table_insert (self->metadata, g_strdup (key), g_strdup (text));
}

static gboolean
is_called (gconstpointer array, gconstpointer name)
{
  return g_str_equal (((const TinyArray *) array)->name, name);
}

gboolean
tiny_model_keep_examples (TinyModel *self,
                          const char *input,
                          const TinyArray *from,
                          GError **error)
{
  const TinyPort *port = NULL;
  for (guint i = 0; i < self->inputs->len; i++)
    if (g_str_equal (((const TinyPort *) self->inputs->pdata[i])->name, input))
      port = self->inputs->pdata[i];
  gsize n_bytes = tiny_array_get_n_bytes (from);
  if (port == NULL || port->n_bytes == 0 || n_bytes % port->n_bytes != 0) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 port == NULL ? "model: there is no input “%s”"
                              : "model: the examples of “%s” are no whole number of inputs",
                 input);
    return FALSE;
  }
  guint before;
  if (g_ptr_array_find_with_equal_func (self->examples, input, is_called, &before))
    g_ptr_array_remove_index (self->examples, before);
  g_autofree gint64 *shape = g_new (gint64, port->n_dims + 1);
  shape[0] = (gint64) (n_bytes / port->n_bytes);
  memcpy (shape + 1, port->shape, port->n_dims * sizeof *shape);
  g_ptr_array_add (self->examples,
                   tiny_array_new_as (from, input, port->dtype, shape, port->n_dims + 1));
  return TRUE;
}

gboolean
tiny_model_set_examples (TinyModel *self, const char *input, GBytes *examples, GError **error)
{
  tiny_return_error_unless (TINY_IS_MODEL (self), error, FALSE, "no model given");
  tiny_return_error_unless (input != NULL, error, FALSE, "no name of an input given");
  tiny_return_error_unless (examples != NULL, error, FALSE, "no examples given");
  const gint64 n_bytes = (gint64) g_bytes_get_size (examples);
  g_autoptr (TinyArray) from = tiny_array_new (input, TINY_DTYPE_U8, &n_bytes, 1, examples);
  return tiny_model_keep_examples (self, input, from, error);
}

/* ---- to tensors ---- */
guint
tiny_model_get_n_inputs (TinyModel *self)
{
  g_return_val_if_fail (TINY_IS_MODEL (self), 0);
  return self->inputs->len;
}

guint
tiny_model_get_n_outputs (TinyModel *self)
{
  g_return_val_if_fail (TINY_IS_MODEL (self), 0);
  return self->outputs->len;
}

static gboolean
upload_weights (TinyModel *self, GError **error)
{
  g_autoptr (GPtrArray) tensors = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; self->tensors == NULL && i < self->weights->len; i++)
    g_ptr_array_add (tensors,
                     g_object_ref_sink (tiny_array_upload (self->weights->pdata[i], NULL)));
  if (self->tensors != NULL)
    return TRUE;
  if (!tiny_tensor_realize_many ((TinyTensor *const *) tensors->pdata, tensors->len, error))
    return FALSE;
  self->tensors = g_steal_pointer (&tensors);
  return TRUE;
}

static gboolean
check_inputs (TinyModel *self, TinyTensor *const *inputs, guint n_inputs, GError **error)
{
  for (guint i = 0; i < MIN (n_inputs, self->inputs->len); i++) {
    const TinyPort *port = self->inputs->pdata[i];
    if (!check_tensor (inputs[i], "input", port->name, error))
      return FALSE;
    if (inputs[i]->dtype != port->dtype || inputs[i]->n_dims != port->n_dims
        || memcmp (inputs[i]->shape, port->shape, port->n_dims * sizeof (gint64)) != 0) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                   "model: input “%s” has another dtype or shape", port->name);
      return FALSE;
    }
  }
  if (n_inputs == self->inputs->len)
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "model: %u inputs given, it has %u",
               n_inputs, self->inputs->len);
  return FALSE;
}

static void
build_outputs (TinyModel *self, TinyTensor *const *inputs, TinyTensor **outputs)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  g_auto (TinyNodeMap) map = { 0 };
  g_autoptr (GPtrArray) sources = g_ptr_array_new ();
  g_autoptr (GPtrArray) order
      = tiny_graph_toposort (self->graph, self->sink->sources, self->sink->n_sources);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_PARAM) {
      guint slot = (guint) node->arg, n = self->inputs->len;
      tiny_node_map_set (
          &map, node,
          tiny_tensor_get_node (slot < n ? inputs[slot] : self->tensors->pdata[slot - n]));
      continue;
    }
    g_ptr_array_set_size (sources, 0);
    for (guint s = 0; s < node->n_sources; s++)
      g_ptr_array_add (sources, tiny_node_map_get (&map, node->sources[s]));
    tiny_node_map_set (&map, node,
                       tiny_model_copy_node (graph, node, (TinyNode *const *) sources->pdata));
  }
  for (guint i = 0; i < self->sink->n_sources; i++)
    outputs[i] = g_object_ref_sink (
        tiny_tensor_new_for_node (tiny_node_map_get (&map, self->sink->sources[i]), NULL));
}

gboolean
tiny_model_apply (TinyModel *self,
                  TinyTensor *const *inputs,
                  guint n_inputs,
                  TinyTensor **outputs,
                  GError **error)
{
  tiny_return_error_unless (TINY_IS_MODEL (self), error, FALSE, "no model given");
  tiny_return_error_unless (outputs != NULL, error, FALSE, "no room for the outputs given");
  tiny_return_error_unless (TINY_IS_LIST (inputs, n_inputs), error, FALSE,
                            "inputs are counted, but none are given");
  g_autoptr (GPtrArray) owned = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; i < n_inputs; i++)
    if (TINY_IS_TENSOR (inputs[i]))
      g_ptr_array_add (owned, g_object_ref_sink (inputs[i]));
  tiny_runtime_lock ();
  gboolean good = check_inputs (self, inputs, n_inputs, error) && upload_weights (self, error);
  if (good)
    build_outputs (self, inputs, outputs);
  tiny_runtime_unlock ();
  return good;
}

GPtrArray *
tiny_model_apply_list (TinyModel *self,
                       TinyTensor *const *inputs,
                       guint n_inputs,
                       GError **error)
{
  tiny_return_error_unless (TINY_IS_MODEL (self), error, NULL, "no model given");
  g_autoptr (GPtrArray) outputs = g_ptr_array_new_with_free_func (g_object_unref);
  g_autofree TinyTensor **room = g_new0 (TinyTensor *, tiny_model_get_n_outputs (self) + 1);
  if (!tiny_model_apply (self, inputs, n_inputs, room, error))
    return NULL;
  for (guint i = 0; i < tiny_model_get_n_outputs (self); i++)
    g_ptr_array_add (outputs, room[i]);
  return g_steal_pointer (&outputs);
}
