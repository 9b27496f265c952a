/* SPDX-License-Identifier: MIT
 *
 * tiny-recipe.c: schedule, codegen and render without a device. */
#include "engine/tiny-recipe.h"

#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-timing.h"
#include "ir/tiny-verify.h"
#include "render/tiny-render.h"

static void
kernel_free (gpointer data)
{
  TinyRecipeKernel *self = data;
  g_free (self->name);
  g_free (self->source);
  g_clear_pointer (&self->code, g_bytes_unref);
  g_free (self);
}

void
tiny_recipe_free (TinyRecipe *self)
{
  if (self == NULL)
    return;
  g_clear_pointer (&self->schedule, tiny_schedule_free);
  g_clear_pointer (&self->kernels, g_ptr_array_unref);
  g_free (self->kernel_of_item);
  g_free (self);
}

static const TinyTarget *
get_target (const char *name, gpointer target)
{
  return target;
}

/* @prefix and @name, and a number where another kernel has that. */
static char *
make_name (const TinyRecipe *self, const char *prefix, const char *name)
{
  char *unique = g_strconcat (prefix, name, NULL);
  for (guint n = 2, i = 0; i < self->kernels->len; i++)
    if (g_str_equal (((const TinyRecipeKernel *) self->kernels->pdata[i])->name, unique)) {
      g_free (unique);
      unique = g_strdup_printf ("%s%s_%u", prefix, name, n++);
      i = G_MAXUINT; /* from the first again */
    }
  return unique;
}

static void
measure (TinyRecipeKernel *kernel, const TinyLinear *linear)
{
  for (guint i = 0; i < linear->n_params; i++) {
    const TinyParam *param = &linear->params[i];
    guint64 n = param->n_elements * tiny_dtype_get_n_bytes ((TinyDType) param->dtype);
    kernel->binding_bytes = MAX (kernel->binding_bytes, n);
  }
  for (guint i = 0; i < linear->n_instrs; i++) {
    const TinyInstr *instr = &linear->instrs[i];
    if (instr->op == TINY_INSTR_LOCAL)
      kernel->local_bytes
          += (guint64) instr->arg * tiny_dtype_get_n_bytes ((TinyDType) instr->dtype);
  }
}

/* Renders @linear, and compiles it where that is wanted. */
static gboolean
write_code (TinyRecipeKernel *kernel,
            const TinyLinear *linear,
            const TinyRecipeOptions *options,
            GError **error)
{
  const TinyRenderer *renderer = options->renderer;
  if (renderer->dialect != NULL) {
    TinyDialect dialect = *renderer->dialect;
    if (!options->wants_code)
      dialect.prelude = NULL;
    kernel->source = tiny_render_source (linear, &dialect, error);
    if (kernel->source == NULL)
      return FALSE;
  }
  if (!options->wants_code)
    return TRUE;
  const TinyCompileArgs args = {
    .struct_size = sizeof args,
    .arch = options->target->arch,
    .name = linear->name,
    .source = kernel->source,
    .source_size = kernel->source != NULL ? strlen (kernel->source) : 0,
    .linear = linear,
  };
  kernel->code = tiny_renderer_compile (renderer, renderer->name, &args, error);
  g_clear_pointer (&kernel->source, g_free);
  return kernel->code != NULL;
}

static TinyRecipeKernel *
make_kernel (const TinyRecipe *self,
             TinyNode *node,
             const TinyRecipeOptions *options,
             GError **error)
{
  const TinyTarget *target = options->target;
  g_autoptr (TinyGraph) own = tiny_graph_new ();
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (own, tiny_graph_import (own, node), target, NULL, 0, error);
  if (program == NULL)
    return NULL;
  if (program->linear.n_params > target->max_params) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "it has %u buffers, %s takes %u at most", program->linear.n_params,
                 target->arch, target->max_params);
    return NULL;
  }
  TinyLinear linear = program->linear;
  TinyRecipeKernel *kernel = g_new0 (TinyRecipeKernel, 1);
  linear.name = kernel->name = make_name (self, options->prefix, program->linear.name);
  if (!write_code (kernel, &linear, options, error)) {
    kernel_free (kernel);
    return NULL;
  }
  kernel->n_params = linear.n_params;
  memcpy (kernel->grid, linear.grid, sizeof kernel->grid);
  memcpy (kernel->group, linear.group, sizeof kernel->group);
  measure (kernel, &linear);
  return kernel;
}

static GBytes *
digest_of (TinyNode *kernel)
{
  guint8 digest[16];
  g_autoptr (TinyGraph) own = tiny_graph_new ();
  tiny_node_digest (own, tiny_graph_import (own, kernel), digest);
  return g_bytes_new (digest, sizeof digest);
}

static gboolean
make_kernels (TinyRecipe *self, const TinyRecipeOptions *options, GError **error)
{
  g_autoptr (GHashTable) known = g_hash_table_new_full (g_bytes_hash, g_bytes_equal,
                                                        (GDestroyNotify) g_bytes_unref, NULL);
  for (guint i = 0; i < self->schedule->n_items; i++) {
    TinyNode *node = self->schedule->items[i].kernel;
    g_autoptr (GBytes) digest = digest_of (node);
    gpointer number;
    if (!g_hash_table_lookup_extended (known, digest, NULL, &number)) {
      TinyRecipeKernel *kernel = make_kernel (self, node, options, error);
      if (kernel == NULL) {
        g_prefix_error (error, "kernel %s: ", node->text ? node->text : "?");
        return FALSE;
      }
      number = GUINT_TO_POINTER (self->kernels->len);
      g_ptr_array_add (self->kernels, kernel);
      g_hash_table_insert (known, g_steal_pointer (&digest), number);
    }
    self->kernel_of_item[i] = GPOINTER_TO_UINT (number);
  }
  return TRUE;
}

TinyRecipe *
tiny_recipe_new (TinyGraph *graph,
                 TinyNode *sink,
                 const TinyRecipeOptions *options,
                 GError **error)
{
  const TinyScheduleOptions machine
      = { .find_target = get_target, .data = (gpointer) options->target };
  TINY_TIMED ("engine", "recipe");
  if (tiny_verify_is_wanted () && !tiny_graph_verify (graph, sink, TINY_STAGE_TENSOR, error)) {
    tiny_graph_free (graph);
    return NULL;
  }
  TinySchedule *schedule = tiny_schedule_new_with (graph, sink, &machine, error);
  if (schedule == NULL)
    return NULL;
  g_autoptr (TinyRecipe) self = g_new0 (TinyRecipe, 1);
  self->schedule = schedule;
  self->kernels = g_ptr_array_new_with_free_func (kernel_free);
  self->kernel_of_item = g_new0 (guint, schedule->n_items + 1);
  for (guint i = 0; i < schedule->n_items; i++)
    if (schedule->items[i].kind != TINY_SCHEDULE_KERNEL) {
      g_set_error_literal (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                           "a copy between devices cannot be exported");
      return NULL;
    }
  return make_kernels (self, options, error) ? g_steal_pointer (&self) : NULL;
}
