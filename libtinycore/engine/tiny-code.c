/* SPDX-License-Identifier: MIT
 *
 * tiny-code.c: codegen, render and the plugin's compiler, one after the other. */
#include "engine/tiny-code.h"

#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-timing.h"
#include "engine/tiny-cache.h"
#include "engine/tiny-claims.h"
#include "engine/tiny-debug.h"
#include "ir/tiny-text.h"
#include "plugin/tiny-record.h"
#include "render/tiny-render.h"

void
tiny_code_head_fill (TinyCodeHead *head, const TinyLinearProgram *program)
{
  const TinyLinear *linear = &program->linear;
  head->n_params = linear->n_params;
  head->n_variables = linear->n_variables;
  memcpy (head->grid, linear->grid, sizeof head->grid);
  memcpy (head->group, linear->group, sizeof head->group);
  head->reads = 0;
  for (guint i = 0; i < MIN (linear->n_params, 64); i++)
    if (linear->params[i].flags & TINY_PARAM_READ)
      head->reads |= G_GUINT64_CONSTANT (1) << i;
  head->n_flops = program->n_flops;
  head->dtype = program->dtype;
  head->n_bytes = program->n_bytes;
  g_strlcpy (head->name, linear->name, sizeof head->name);
  g_strlcpy (head->opts, program->opts ? program->opts : "", sizeof head->opts);
}

static void
keep_source (const TinyLinear *linear, const char *tag, const char *source, GError **error)
{
  g_autofree char *listing = source ? NULL : tiny_linear_to_string (linear);
  g_autofree char *file
      = g_strdup_printf ("%s-%.8s.%s", linear->name, tag, source ? "c" : "txt");
  g_autofree char *path = tiny_cache_keep_failed (file, source ? source : listing);
  if (path != NULL)
    g_prefix_error (error, "kernel %s (its source is in %s): ", linear->name, path);
  else
    g_prefix_error (error, "kernel %s: ", linear->name);
}

GBytes *
tiny_code_compile (TinyDevice *device,
                   const TinyLinearProgram *program,
                   const char *tag,
                   GError **error)
{
  const TinyRenderer *renderer = tiny_device_get_renderer (device);
  const TinyLinear *linear = &program->linear;
  g_autofree char *source = NULL;
  if (renderer->dialect != NULL) {
    TINY_TIMED ("compile", "render");
    source = tiny_render_source (linear, renderer->dialect, error);
    if (source == NULL)
      return NULL;
  }
  if (TINY_DEBUG (3) && tag != NULL)
    tiny_debug_print_kernel (program, source);
  TinyCompileArgs args = {
    .struct_size = sizeof args,
    .arch = tiny_device_get_target (device)->arch,
    .name = linear->name,
    .source = source,
    .source_size = source ? strlen (source) : 0,
    .linear = linear,
  };
  TinyTiming timing = tiny_timing_begin ("compile", renderer->name);
  GBytes *binary = tiny_device_compile (device, &args, error);
  tiny_timing_end (&timing);
  if (tag == NULL)
    return binary;
  if (binary == NULL)
    keep_source (linear, tag, source, error);
  else if (TINY_DEBUG (7))
    tiny_debug_print_assembly (device, binary);
  return binary;
}

/* A record says of what IR a binary was made, so that others can make one of their own. */
static void
note_kernel (TinyGraph *graph, TinyNode *kernel, const TinyLinearProgram *program)
{
  if (!tiny_record_is_on ())
    return;
  g_autofree char *text = kernel != NULL ? tiny_graph_print (graph, kernel) : NULL;
  tiny_record_set_kernel (text, program != NULL ? program->opts : NULL);
}

gboolean
tiny_code_make (TinyCode *self,
                TinyDevice *device,
                TinyNode *kernel,
                const TinyOpt *opts,
                guint n_opts,
                const char *tag,
                GError **error)
{
  gint64 start = tiny_debug_now_ns ();
  g_autoptr (TinyGraph) own = tiny_graph_new ();
  TinyNode *imported = tiny_graph_import (own, kernel);
  TinyTiming timing = tiny_timing_begin ("compile", "codegen");
  g_autoptr (TinyLinearProgram) program = tiny_codegen_compile (
      own, imported, tiny_device_get_target (device), opts, n_opts, error);
  tiny_timing_end (&timing);
  gint64 middle = tiny_debug_now_ns ();
  self->ns_codegen = middle - start;
  if (program == NULL) {
    g_prefix_error (error, "%s: kernel %s: ", tiny_device_get_name (device),
                    kernel->text ? kernel->text : "?");
    return FALSE;
  }
  tiny_code_head_fill (&self->head, program);
  note_kernel (own, imported, program);
  self->binary = tiny_code_compile (device, program, tag, error);
  note_kernel (NULL, NULL, NULL);
  self->ns_compile = tiny_debug_now_ns () - middle;
  return self->binary != NULL;
}

gboolean
tiny_code_make_operation (TinyCode *self,
                          TinyDevice *device,
                          const TinyOperation *operation,
                          GError **error)
{
  gint64 start = tiny_debug_now_ns ();
  g_autofree char *name = tiny_operation_to_name (operation);
  self->head = (TinyCodeHead){ .n_params = operation->n_buffers,
                               .grid = { 1, 1, 1 },
                               .group = { 1, 1, 1 },
                               .dtype = operation->compute_dtype,
                               .n_flops = tiny_operation_count_flops (operation),
                               .n_bytes = tiny_operation_count_bytes (operation) };
  for (guint i = 0; i < operation->n_operands; i++)
    if (!tiny_role_is_written (operation->operands[i].role))
      self->head.reads |= G_GUINT64_CONSTANT (1) << operation->operands[i].buffer;
  g_strlcpy (self->head.name, name, sizeof self->head.name);
  TinyTiming timing = tiny_timing_begin ("compile", "operation");
  self->binary = tiny_device_compile_operation (device, operation, self->head.name, error);
  tiny_timing_end (&timing);
  if (self->binary == NULL)
    g_prefix_error (error, "operation %s, which it claimed: ", name);
  self->ns_compile = tiny_debug_now_ns () - start;
  return self->binary != NULL;
}

void
tiny_code_clear (TinyCode *self)
{
  g_clear_pointer (&self->binary, g_bytes_unref);
}
