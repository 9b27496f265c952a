/* SPDX-License-Identifier: MIT
 *
 * replay-code.c: the programs of a record, made again.
 *
 * For the backend that was recorded from what its compiler was given: the same source or linear program. For another
 * one from the kernel's IR, with what that one's own target makes of it: other binaries, the same parameters. */
#include <string.h>

#include "base/tiny-error.h"
#include "device/device-private.h"
#include "engine/tiny-code.h"
#include "ir/tiny-text.h"
#include "ir/tiny-verify.h"
#include "tools/replay.h"

/* Fields of a COMPILE frame. */
enum { VERSION = 2, ARCH, NAME, SOURCE, LINEAR, OPERATION, KERNEL };

void
replay_code_free (ReplayCode *self)
{
  if (self == NULL)
    return;
  g_clear_pointer (&self->binary, g_bytes_unref);
  g_free (self->name);
  g_free (self->arch);
  g_free (self->dtypes);
  g_free (self);
}

/* What is recorded of the kernel beside its code. */
static void
read_params (ReplayCode *self,
             const TinyLinear *linear,
             const TinyOperation *operation,
             const TinyRecordFrame *compile)
{
  const guint n = linear != NULL ? linear->n_params : operation->n_buffers;
  self->name = g_strdup (compile->fields[NAME].bytes);
  self->n_params = n;
  self->dtypes = g_new0 (guint32, n + 1);
  for (guint i = 0; linear != NULL && i < n; i++)
    self->dtypes[i] = (linear->params[i].flags & TINY_PARAM_WRITE) != 0
                          ? linear->params[i].dtype
                          : TINY_DTYPE_VOID;
  if (linear != NULL) {
    self->n_variables = linear->n_variables;
    memcpy (self->group, linear->group, sizeof self->group);
  } else {
    self->group[0] = self->group[1] = self->group[2] = 1;
    if (operation->operands[0].buffer < n)
      self->dtypes[operation->operands[0].buffer] = operation->operands[0].dtype;
  }
}

static TinyStatus
compile_again (ReplayCode *self,
               TinyDevice *device,
               const TinyCompileArgs *args,
               TinyPluginError *plugin_error)
{
  void *data = NULL;
  uint64_t size = 0;
  TinyStatus status = tiny_renderer_call_compile (tiny_device_get_renderer (device), args,
                                                  &data, &size, plugin_error);
  if (status >= 0 && data == NULL && size != 0)
    status = TINY_STATUS_INTERNAL; /* as the core has it */
  if (status >= 0)
    self->binary = g_bytes_new_with_free_func (data, size, tiny_host_get ()->free, data);
  return status;
}

/* From IR, as engine/ does it for any kernel. */
static gboolean
compile_foreign (
    ReplayCode *self, TinyDevice *device, const char *text, gsize size, GError **error)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_auto (TinyCode) code = { 0 };
  g_autofree char *copy = g_strndup (text, size);
  TinyNode *kernel = tiny_graph_parse (graph, copy, error);
  if (kernel == NULL || !tiny_graph_verify (graph, kernel, TINY_STAGE_KERNEL, error)
      || !tiny_code_make (&code, device, kernel, NULL, 0, NULL, error))
    return FALSE;
  if (code.head.n_params != self->n_params || code.head.n_variables != self->n_variables) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                 "its IR has %u parameters and %u variables, its linear program %u and %u",
                 code.head.n_params, code.head.n_variables, self->n_params, self->n_variables);
    return FALSE;
  }
  self->binary = g_bytes_ref (code.binary);
  self->has_grid = TRUE;
  memcpy (self->grid, code.head.grid, sizeof self->grid);
  memcpy (self->group, code.head.group, sizeof self->group);
  g_free (self->name);
  self->name = g_strdup (code.head.name);
  return TRUE;
}

static gboolean
is_operation (const TinyOperation *operation, gsize size)
{
  return size == sizeof *operation && operation->n_buffers <= TINY_OPERATION_MAX_OPERANDS;
}

/* NULL where there are none. */
static const void *
get_bytes (GBytes *data, gsize *out_n)
{
  *out_n = 0;
  return data != NULL ? g_bytes_get_data (data, out_n) : NULL;
}

static gboolean
make (ReplayCode *self,
      const ReplayOptions *options,
      TinyDevice *device,
      gboolean foreign,
      const TinyRecordFrame *compile,
      TinyStatus *out_status,
      TinyPluginError *plugin_error,
      GError **error)
{
  g_autoptr (GBytes) source_data = NULL, linear_data = NULL, operation_data = NULL,
                     kernel_data = NULL;
  const TinyRecordField *fields = compile->fields;
  TinyLinear program;
  if (!tiny_record_get_data (options->record, fields[SOURCE].number, &source_data, error)
      || !tiny_record_get_data (options->record, fields[LINEAR].number, &linear_data, error)
      || !tiny_record_get_data (options->record, fields[OPERATION].number, &operation_data,
                                error)
      || !tiny_record_get_data (options->record, fields[KERNEL].number, &kernel_data, error))
    return FALSE;
  gsize n_source, n_linear, n_operation, n_kernel;
  const void *source = get_bytes (source_data, &n_source),
             *linear = get_bytes (linear_data, &n_linear),
             *operation = get_bytes (operation_data, &n_operation),
             *kernel = get_bytes (kernel_data, &n_kernel);
  if (linear != NULL ? !tiny_record_read_linear (linear, n_linear, &program)
                     : !is_operation (operation, n_operation)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                 "its linear program, or operation, is damaged");
    return FALSE;
  }
  read_params (self, linear != NULL ? &program : NULL, operation, compile);
  if (foreign && kernel == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "%s is there only as %s for the recorded backend", self->name,
                 operation != NULL ? "an operation that was claimed" : "a linear program");
    return FALSE;
  }
  self->arch = g_strdup (tiny_device_get_arch (device));
  if (foreign)
    return compile_foreign (self, device, kernel, n_kernel, error);
  g_autofree char *text = source != NULL ? g_strndup (source, n_source) : NULL;
  const TinyCompileArgs args = { .struct_size = sizeof args,
                                 .arch = self->arch,
                                 .name = self->name,
                                 .source = text,
                                 .source_size = n_source,
                                 .linear = linear != NULL ? &program : NULL,
                                 .operation = linear != NULL ? NULL : operation };
  *out_status = compile_again (self, device, &args, plugin_error);
  return *out_status >= 0;
}

ReplayCode *
replay_code_make (const ReplayOptions *options,
                  TinyDevice *device,
                  gboolean foreign,
                  const TinyRecordFrame *compile,
                  TinyStatus *out_status,
                  TinyPluginError *plugin_error,
                  GError **error)
{
  ReplayCode *self = g_new0 (ReplayCode, 1);
  *out_status = TINY_STATUS_OK;
  if (!make (self, options, device, foreign, compile, out_status, plugin_error, error))
    g_clear_pointer (&self, replay_code_free);
  if (self == NULL && error != NULL && *error != NULL)
    g_prefix_error (error, "kernel %s: ", (const char *) compile->fields[NAME].bytes);
  return self;
}
