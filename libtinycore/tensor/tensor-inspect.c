/* SPDX-License-Identifier: MIT
 *
 * tensor-inspect.c: the plan that realising a tensor would run, kernel by kernel.
 *
 * The plan is the one that realising finds in the cache then. Sources are not kept beside programs, so they are made once more. */
#include "tensor/tiny-tensor-inspect.h"

#include <string.h>

#include "base/tiny-guard.h"
#include "engine/tiny-plan.h"
#include "ir/tiny-text.h"
#include "render/tiny-render.h"
#include "tensor/tiny-tensor-private.h"

G_DEFINE_BOXED_TYPE (TinyKernelInfo,
                     tiny_kernel_info,
                     tiny_kernel_info_copy,
                     tiny_kernel_info_free)

TinyKernelInfo *
tiny_kernel_info_copy (const TinyKernelInfo *self)
{
  TinyKernelInfo *copy = g_new (TinyKernelInfo, 1);
  *copy = (TinyKernelInfo){ g_strdup (self->name),
                            g_strdup (self->device),
                            g_strdup (self->text),
                            g_strdup (self->source),
                            g_strdup (self->optimisations),
                            self->n_flops,
                            self->n_bytes };
  return copy;
}

void
tiny_kernel_info_free (TinyKernelInfo *self)
{
  g_free (self->name);
  g_free (self->device);
  g_free (self->text);
  g_free (self->source);
  g_free (self->optimisations);
  g_free (self);
}

static void
info_free (gpointer info)
{
  tiny_kernel_info_free (info);
}

static char *
make_source (TinyDevice *device, TinyNode *kernel, GError **error)
{
  TinyDevice *runner = tiny_device_get_runner (device);
  const TinyRenderer *renderer = tiny_device_get_renderer (runner);
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (graph, tiny_graph_import (graph, kernel),
                              tiny_device_get_target (runner), NULL, 0, error);
  if (program == NULL)
    return NULL;
  return renderer->dialect != NULL
             ? tiny_render_source (&program->linear, renderer->dialect, error)
             : tiny_linear_to_string (&program->linear);
}

static TinyKernelInfo *
describe (const TinyPlan *plan, guint i, GError **error)
{
  const TinySchedule *schedule = tiny_plan_get_schedule (plan);
  const TinyScheduleItem *item = &schedule->items[i];
  TinyDevice *device;
  const TinyExecutable *executable = tiny_plan_get_item (plan, i, &device);
  TinyKernelInfo *info = g_new0 (TinyKernelInfo, 1);
  info->device = g_strdup (item->device);
  info->name = g_strdup (executable != NULL ? executable->name : "copy");
  if (executable == NULL)
    return info;
  info->text = tiny_graph_print (schedule->graph, item->kernel);
  info->optimisations = g_strdup (executable->opts);
  info->n_flops = executable->n_flops;
  info->n_bytes = executable->n_bytes;
  if (item->operation == NULL)
    info->source = make_source (device, item->kernel, error);
  if (item->operation != NULL || info->source != NULL)
    return info;
  tiny_kernel_info_free (info);
  return NULL;
}

static gboolean
list_roots (TinyTensor *const *tensors, guint n, GPtrArray *out_roots, GError **error)
{
  for (guint i = 0; i < n; i++) {
    TinyTensor *tensor = tensors[i];
    tiny_return_error_unless (TINY_IS_TENSOR (tensor), error, FALSE, "no tensor given");
    if (tensor->error != NULL) {
      g_propagate_error (error, g_error_copy (tensor->error));
      return FALSE;
    }
    g_ptr_array_add (out_roots, &tensor->root);
  }
  return tiny_runtime_check (error);
}

static gboolean
schedule_locked (const GPtrArray *roots, GPtrArray *out, GError **error)
{
  TinyPlan *plan;
  if (!tiny_runtime_find_plan ((TinyRoot *const *) roots->pdata, roots->len, &plan, error))
    return FALSE;
  for (guint i = 0; plan != NULL && i < tiny_plan_get_schedule (plan)->n_items; i++) {
    TinyKernelInfo *info = describe (plan, i, error);
    if (info == NULL)
      return FALSE;
    g_ptr_array_add (out, info);
  }
  return TRUE;
}

GPtrArray *
tiny_tensor_schedule (TinyTensor *self,
                      TinyTensor *const *others,
                      guint n_others,
                      GError **error)
{
  tiny_return_error_unless (TINY_IS_LIST (others, n_others), error, NULL,
                            "others are counted, but none are given");
  g_autoptr (GPtrArray) roots = g_ptr_array_new ();
  g_autoptr (GPtrArray) found = g_ptr_array_new_with_free_func (info_free);
  tiny_runtime_open_default_device ();
  if (!tiny_runtime_lock_or_stop (error))
    return NULL;
  gboolean good = list_roots (&self, 1, roots, error)
                  && list_roots (others, n_others, roots, error)
                  && schedule_locked (roots, found, error);
  tiny_runtime_unlock ();
  return good ? g_steal_pointer (&found) : NULL;
}

char *
tiny_tensor_print_graph (TinyTensor *self, GError **error)
{
  g_autoptr (GPtrArray) roots = g_ptr_array_new ();
  tiny_runtime_open_default_device ();
  if (!tiny_runtime_lock_or_stop (error))
    return NULL;
  char *text
      = list_roots (&self, 1, roots, error) ? tiny_runtime_print (&self->root, error) : NULL;
  tiny_runtime_unlock ();
  return text;
}

/* ---- names ---- */
void
tiny_tensor_set_label (TinyTensor *self, const char *label)
{
  g_return_if_fail (TINY_IS_TENSOR (self) && label != NULL);
  tiny_runtime_lock ();
  TinyNode *node = self->root.node;
  while (node != NULL && node->op == TINY_OP_RESHAPE)
    node = node->sources[0];
  if (node != NULL && node->op == TINY_OP_ASSIGN)
    node = node->sources[0];
  const gboolean has_memory = node != NULL && tiny_runtime_is_memory (node);
  for (guint i = 0; has_memory && i < MAX (node->n_sources, 1); i++) {
    TinyNode *piece = node->n_sources > 0 ? node->sources[i] : node;
    TinyBuffer *buffer = tiny_runtime_get_buffer (piece);
    const char *before = tiny_buffer_get_label (buffer);
    if (before == NULL || strlen (before) < strlen (label))
      tiny_buffer_set_label (buffer, g_intern_string (label));
  }
  tiny_runtime_unlock ();
}
