/* SPDX-License-Identifier: MIT
 *
 * model-private.h: what a model is made of, for those who read, write and export it. */
#pragma once

#include "io/tiny-model.h"
#include "io/tiny-safetensors.h"
#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* A PARAM of the graph; its slot is the port's number. */
typedef struct {
  char *name;
  TinyDType dtype;
  gint64 *shape;
  guint n_dims;
  gsize n_bytes;
} TinyPort;

struct _TinyModel {
  GObject parent_instance;
  TinyGraph *graph;
  TinyNode *sink;      /* of the outputs; no text in the graph names a device */
  GPtrArray *inputs;   /* of TinyPort, slots from 0 */
  GPtrArray *weights;  /* of TinyArray, slots after those */
  GPtrArray *outputs;  /* of TinyPort, the sink's sources */
  GPtrArray *examples; /* of TinyArray called as inputs, with an axis for the examples before */
  GHashTable *metadata;
  GPtrArray *tensors; /* of TinyTensor, the weights in memory, once applied */
};

/* Elements of @from, of any shape, are the examples of that input. */
gboolean tiny_model_keep_examples (TinyModel *self,
                                   const char *input,
                                   const TinyArray *from,
                                   GError **error);
TinyPort *tiny_port_new (const char *name, const TinyNode *node);
/* An empty model with a graph. */
TinyModel *tiny_model_new_empty (void);
/* Checks names, and that inputs are read, once all is there. */
gboolean tiny_model_check (TinyModel *self, GError **error);
/* The PARAM of each slot, NULL where the graph has none; freed by the caller. */
TinyNode **tiny_model_find_params (TinyModel *self);

/* @node, of any graph, over @sources in @graph; without the device that it is on. */
TinyNode *
tiny_model_copy_node (TinyGraph *graph, const TinyNode *node, TinyNode *const *sources);

G_END_DECLS
