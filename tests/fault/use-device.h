/* SPDX-License-Identifier: MIT
 *
 * use-device.h: a device used through each of its functions, and one used asynchronously. */
#pragma once

#include <string.h>

#include "device/tiny-buffer.h"
#include "device/tiny-program.h"
#include "device/tiny-queue.h"
#include "plugin/tiny-registry.h"

enum { N = 1024 };

/* out[0] = @value */
static inline GBytes *
compile (TinyDevice *device, float value, GError **error)
{
  const guint index = tiny_device_get_target (device)->index_dtype;
  const double wide = value;
  gint64 bits;
  memcpy (&bits, &wide, sizeof bits);
  const TinyInstr instrs[]
      = { { .op = TINY_INSTR_PARAM, .dtype = TINY_DTYPE_F32, .lanes = 1 },
          { .op = TINY_INSTR_CONST, .dtype = (uint8_t) index, .lanes = 1 },
          { .op = TINY_INSTR_CONST, .dtype = TINY_DTYPE_F32, .lanes = 1, .arg = bits },
          { .op = TINY_INSTR_STORE, .lanes = 1, .n_sources = 3 } };
  const uint32_t sources[] = { 0, 1, 2 };
  const TinyParam param = { TINY_DTYPE_F32, TINY_PARAM_WRITE, N };
  const TinyLinear linear = { .struct_size = sizeof linear,
                              .name = "put",
                              .instrs = instrs,
                              .sources = sources,
                              .params = &param,
                              .n_instrs = G_N_ELEMENTS (instrs),
                              .n_sources = G_N_ELEMENTS (sources),
                              .n_params = 1,
                              .grid = { 1, 1, 1 },
                              .group = { 1, 1, 1 } };
  const TinyCompileArgs args = { .struct_size = sizeof args,
                                 .arch = tiny_device_get_arch (device),
                                 .name = "put",
                                 .linear = &linear };
  return tiny_device_compile (device, &args, error);
}

static inline gboolean
launch (TinyDevice *device, TinyProgram *program, TinyBuffer *buffer, GError **error)
{
  const TinySpan span = tiny_buffer_get_span (buffer);
  const TinyCommand command = { .struct_size = sizeof command,
                                .type = TINY_COMMAND_DISPATCH,
                                .program = tiny_program_get_handle (program),
                                .buffers = &span,
                                .n_buffers = 1,
                                .grid = { 1, 1, 1 } };
  return tiny_device_submit (device, &command, 1, NULL, error);
}

/* Every function of a device at least once; the result is checked. */
static inline gboolean
use (TinyDevice *device, float value, GError **error)
{
  const guint32 group[] = { 1, 1, 1 };
  float numbers[N] = { 0 }, found[N];
  for (guint i = 0; i < N; i++)
    numbers[i] = (float) i;
  g_autoptr (GBytes) code = compile (device, value, error);
  if (code == NULL)
    return FALSE;
  if (tiny_device_get_renderer (device)->disassemble != NULL) {
    g_autofree char *text = tiny_device_disassemble (device, code, error);
    if (text == NULL)
      return FALSE;
    g_assert_cmpuint (strlen (text), >, 20);
  }
  g_autoptr (TinyProgram) program = tiny_program_new (device, "put", code, 1, 0, group, error);
  g_autoptr (TinyBuffer) buffer = tiny_buffer_new (device, sizeof numbers);
  if (program == NULL || !tiny_buffer_upload (buffer, 0, numbers, sizeof numbers, error)
      || !launch (device, program, buffer, error)
      || !tiny_buffer_download (buffer, 0, found, sizeof found, error))
    return FALSE;
  g_assert_cmpfloat (found[0], ==, value);
  for (guint i = 1; i < N; i++)
    g_assert_cmpfloat (found[i], ==, (float) i);
  g_clear_object (&buffer);
  g_clear_object (&program);
  tiny_device_trim (device); /* reaches free() */
  g_autoptr (TinyQueue) queue = tiny_queue_new (device, error);
  if (queue == NULL)
    return FALSE;
  g_clear_object (&queue);
  return tiny_device_submit (device, NULL, 0, NULL,
                             error); /* sees what those that say nothing did */
}

static inline gboolean
open_and_use (TinyRegistry *from, const char *name, GError **error)
{
  g_autoptr (TinyDevice) device = tiny_registry_open (from, name, error);
  return device != NULL && use (device, 42, error);
}

/* Six launches on one queue, without waiting in between; what became of each, as text. */
static inline char *
launch_six (TinyRegistry *from, const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyDevice) device = tiny_registry_open (from, name, &error);
  g_assert_no_error (error);
  const guint32 group[] = { 1, 1, 1 };
  g_autoptr (GBytes) code = compile (device, 7, &error);
  g_assert_no_error (error);
  g_autoptr (TinyProgram) program = tiny_program_new (device, "put", code, 1, 0, group, &error);
  g_assert_no_error (error);
  g_autoptr (TinyBuffer) buffer = tiny_buffer_new (device, N * sizeof (float));
  g_assert_true (tiny_buffer_ensure (buffer, &error));
  const TinySpan span = tiny_buffer_get_span (buffer);
  const TinyCommand command = { .struct_size = sizeof command,
                                .type = TINY_COMMAND_DISPATCH,
                                .program = tiny_program_get_handle (program),
                                .buffers = &span,
                                .n_buffers = 1,
                                .grid = { 1, 1, 1 } };
  const TinyWork work = { &command, 1, NULL, NULL, NULL };
  TinyQueue *queue = tiny_device_get_queue (device);
  GString *out = g_string_new (NULL);
  guint64 points[6] = { 0 };
  for (guint i = 0; i < G_N_ELEMENTS (points); i++)
    tiny_queue_enqueue (queue, &work, &points[i], NULL);
  for (guint i = 0; i < G_N_ELEMENTS (points); i++) {
    gboolean good = tiny_queue_wait (queue, points[i], G_MAXUINT64, &error);
    g_string_append_printf (out, "%s; ", good ? "good" : strstr (error->message, ": ") + 2);
    g_clear_error (&error);
  }
  float found = 0;
  gboolean good = tiny_buffer_download (buffer, 0, &found, sizeof found, &error);
  g_string_append_printf (out, "%g %s", (double) found, good ? "" : error->message);
  return g_string_free (out, FALSE);
}
