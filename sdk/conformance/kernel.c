/* SPDX-License-Identifier: MIT
 *
 * kernel.c: compiling and launching one kernel. */
#include "kernel.h"

#include <string.h>

#include "base/tiny-error.h"
#include "codegen/tiny-codegen.h"
#include "device/tiny-buffer.h"
#include "device/tiny-program.h"
#include "engine/tiny-code.h"
#include "ir/tiny-dtype.h"
#include "ir/tiny-text.h"
#include "ir/tiny-verify.h"

/* Beside each span; what is written there is seen. */
enum { N_KEPT = 12, ZONE_BYTES = 256, ZONE_BYTE = 0xa5, MAX_PARAMS = 128 };

struct ConfKernel {
  TinyDevice *device;
  TinyTarget target;
  char *text, *asked_opts;
  TinyLinearProgram *made;
  TinyProgram *program;
  guint64 least_ns; /* of its launches */
};

static GQueue kept = G_QUEUE_INIT; /* the last used first */

static void
kernel_free (gpointer data)
{
  ConfKernel *self = data;
  g_clear_object (&self->program);
  g_clear_pointer (&self->made, tiny_linear_program_free);
  g_clear_object (&self->device);
  g_free (self->text);
  g_free (self->asked_opts);
  g_free (self);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (ConfKernel, kernel_free)

void
conf_kernels_clear (void)
{
  g_queue_clear_full (&kept, kernel_free);
}

/* ---- making one ---- */
static TinyLinearProgram *
generate (const TinyTarget *target, const char *text, const char *opts_text, GError **error)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_autofree TinyOpt *opts = NULL; /* of none is not NULL, which asks the heuristic */
  guint n_opts = 0;
  if (opts_text != NULL && (opts = tiny_opts_from_string (opts_text, &n_opts, error)) == NULL)
    return NULL;
  TinyNode *sink = tiny_graph_parse (graph, text, error);
  if (sink == NULL || !tiny_graph_verify (graph, sink, TINY_STAGE_KERNEL, error))
    return NULL;
  TinyLinearProgram *made = tiny_codegen_compile (graph, sink, target, opts, n_opts, error);
  if (made != NULL && !tiny_verify_linear (&made->linear, target, error))
    g_clear_pointer (&made, tiny_linear_program_free);
  return made;
}

static ConfKernel *
kernel_new (TinyDevice *device,
            const TinyTarget *target,
            const char *text,
            const char *opts,
            GError **error)
{
  g_autoptr (ConfKernel) self = g_new0 (ConfKernel, 1);
  self->device = g_object_ref (device);
  self->target = *target;
  self->text = g_strdup (text);
  self->asked_opts = g_strdup (opts);
  self->made = generate (target, text, opts, error);
  g_autoptr (GBytes) binary
      = self->made != NULL ? tiny_code_compile (device, self->made, NULL, error) : NULL;
  if (binary == NULL)
    return NULL;
  const TinyLinear *linear = &self->made->linear;
  self->program = tiny_program_new (device, linear->name, binary, linear->n_params,
                                    linear->n_variables, linear->group, error);
  return self->program != NULL ? g_steal_pointer (&self) : NULL;
}

ConfKernel *
conf_kernel_get (TinyDevice *device, const char *text, const char *opts, GError **error)
{
  return conf_kernel_get_for (device, tiny_device_get_target (device), text, opts, error);
}

ConfKernel *
conf_kernel_get_for (TinyDevice *device,
                     const TinyTarget *target,
                     const char *text,
                     const char *opts,
                     GError **error)
{
  for (GList *l = kept.head; l != NULL; l = l->next) {
    ConfKernel *self = l->data;
    if (self->device != device || strcmp (self->text, text) != 0
        || g_strcmp0 (self->asked_opts, opts) != 0
        || memcmp (&self->target, target, sizeof *target) != 0)
      continue;
    g_queue_unlink (&kept, l);
    g_queue_push_head_link (&kept, l);
    return self;
  }
  ConfKernel *self = kernel_new (device, target, text, opts, error);
  if (self == NULL)
    return NULL;
  g_queue_push_head (&kept, self);
  if (kept.length > N_KEPT)
    kernel_free (g_queue_pop_tail (&kept));
  return self;
}

guint
conf_kernel_count (const ConfKernel *self, TinyInstrOp op, TinyDType dtype, guint lanes)
{
  const TinyLinear *linear = &self->made->linear;
  guint n = 0;
  for (guint i = 0; i < linear->n_instrs; i++) {
    const TinyInstr *instr = &linear->instrs[i];
    guint last
        = instr->n_sources > 0 ? linear->sources[instr->sources + instr->n_sources - 1] : i;
    n += instr->op == op && linear->instrs[last].dtype == dtype && instr->lanes >= lanes;
  }
  return n;
}

double
conf_kernel_count_work (const ConfKernel *self)
{
  const TinyLinear *linear = &self->made->linear;
  double work = 0, rounds = 1;
  for (guint axis = 0; axis < 3; axis++)
    rounds *= (double) linear->grid[axis] * linear->group[axis];
  g_autofree double *outside = g_new (double, linear->n_instrs); /* of each loop, its rounds */
  for (guint i = 0; i < linear->n_instrs; i++) {
    const TinyInstr *instr = &linear->instrs[i];
    const guint32 *sources = &linear->sources[instr->sources];
    if (instr->op == TINY_INSTR_RANGE) {
      const TinyInstr *bound = &linear->instrs[sources[0]];
      outside[i] = rounds;
      rounds *= bound->op == TINY_INSTR_CONST ? (double) bound->arg : 1;
    } else if (instr->op == TINY_INSTR_END)
      rounds = outside[sources[0]];
    work += rounds * instr->lanes;
  }
  return work;
}

guint64
conf_kernel_get_ns (const ConfKernel *self)
{
  return self->least_ns;
}

/* ---- running it ---- */
typedef struct {
  TinyBuffer *buffer;
  guint8 *before; /* of the whole buffer */
  gsize n_before, n_span, n_all;
} Placed;

static void
placed_clear (Placed *self)
{
  g_clear_pointer (&self->buffer, tiny_buffer_unref);
  g_clear_pointer (&self->before, g_free);
}

/* What a launch is given of @param: a whole number of words where the target lacks dtypes of fewer bytes
 * (TinySpan in tiny-plugin.h). */
static gsize
count_bytes (const TinyTarget *target, const TinyParam *param)
{
  gsize n_bytes = (gsize) param->n_elements * tiny_dtype_get_n_bytes (param->dtype);
  for (guint i = TINY_DTYPE_BOOL; i <= TINY_DTYPE_F64; i++)
    if (tiny_dtype_get_n_bytes (i) < 4 && (target->dtypes_storage & TINY_DTYPE_BIT (i)) == 0)
      return (n_bytes + 3) & ~(gsize) 3;
  return n_bytes;
}

static gboolean
place (ConfKernel *self,
       Placed *out,
       const TinyParam *param,
       const ConfMemory *memory,
       guint offset,
       GError **error)
{
  const TinyDeviceInfo *info = tiny_device_get_info (self->device);
  const gsize unit = MAX (info->alignment, 16);
  out->n_before = offset * unit;
  out->n_span = count_bytes (&self->target, param);
  out->n_all
      = (out->n_before + MAX (out->n_span, memory->n_bytes) + ZONE_BYTES + 63) & ~(gsize) 63;
  out->before = g_malloc (out->n_all);
  memset (out->before, ZONE_BYTE, out->n_all);
  memcpy (out->before + out->n_before, memory->data, memory->n_bytes);
  out->buffer = tiny_buffer_new (self->device, out->n_all);
  return tiny_buffer_upload (out->buffer, 0, out->before, out->n_all, error);
}

static gboolean
launch (ConfKernel *self, const Placed *placed, guint n, GError **error)
{
  TinySpan spans[MAX_PARAMS];
  const TinyLinear *linear = &self->made->linear;
  for (guint i = 0; i < n; i++)
    spans[i] = (TinySpan){ tiny_buffer_get_handle (placed[i].buffer),
                           tiny_buffer_get_offset (placed[i].buffer) + placed[i].n_before,
                           placed[i].n_span };
  TinyCommand command = { .struct_size = sizeof command,
                          .type = TINY_COMMAND_DISPATCH,
                          .program = tiny_program_get_handle (self->program),
                          .buffers = spans,
                          .n_buffers = n };
  memcpy (command.grid, linear->grid, sizeof command.grid);
  const gint64 begin_us = g_get_monotonic_time ();
  if (!tiny_device_submit (self->device, &command, 1, NULL, error))
    return FALSE;
  const guint64 ns = (guint64) (g_get_monotonic_time () - begin_us) * 1000 + 1;
  self->least_ns = self->least_ns == 0 ? ns : MIN (self->least_ns, ns);
  return TRUE;
}

/* Reads parameter @i back and looks at what should be as it was. */
static gboolean
take_back (
    const Placed *placed, const TinyParam *param, guint i, ConfMemory *memory, GError **error)
{
  g_autofree guint8 *after = g_malloc (placed->n_all);
  if (!tiny_buffer_download (placed->buffer, 0, after, placed->n_all, error))
    return FALSE;
  const gboolean is_written = (param->flags & TINY_PARAM_WRITE) != 0;
  const gsize end = placed->n_before + MAX (placed->n_span, memory->n_bytes);
  for (gsize at = 0; at < placed->n_all; at++) {
    if (after[at] == placed->before[at] || (is_written && at >= placed->n_before && at < end))
      continue;
    g_set_error (error, TINY_ERROR, TINY_ERROR_LAUNCH,
                 "the kernel changed byte %" G_GSSIZE_FORMAT " of parameter %u, which %s",
                 (gssize) at - (gssize) placed->n_before, i,
                 is_written ? "is outside of it" : "it only reads");
    return FALSE;
  }
  memcpy (memory->data, after + placed->n_before, memory->n_bytes);
  return TRUE;
}

gboolean
conf_kernel_run (
    ConfKernel *self, ConfMemory *params, guint n_params, guint offset, GError **error)
{
  const TinyLinear *linear = &self->made->linear;
  g_autofree Placed *placed = g_new0 (Placed, n_params + 1);
  gboolean good = linear->n_params == n_params && n_params <= MAX_PARAMS;
  if (!good)
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "the kernel has %u parameters, not %u",
                 linear->n_params, n_params);
  for (guint i = 0; i < n_params && good; i++)
    good = place (self, &placed[i], &linear->params[i], &params[i], offset, error);
  good = good && launch (self, placed, n_params, error);
  for (guint i = 0; i < n_params && good; i++)
    good = take_back (&placed[i], &linear->params[i], i, &params[i], error);
  for (guint i = 0; i < n_params; i++)
    placed_clear (&placed[i]);
  return good;
}
