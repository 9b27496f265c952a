/* SPDX-License-Identifier: MIT
 *
 * group-record.c: how fast it is: kept in the certificate, and judged by nobody here.
 *
 * A measurement is as large as the device can do in part of a second, and takes a small part of its memory: it begins
 * with little and becomes larger while that is quick. */
#include <string.h>

#include "fresh.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor.h"

enum {
  N_LAUNCHES = 300,
  N_BATCH = 64,
  LEAST_BYTES = 4 << 10,
  COPY_BYTES = 32 << 20,
  LEAST_US = 150000,
  MOST_US = 5000000
};

static gint64
now_us (void)
{
  return g_get_monotonic_time ();
}

/* ---- launches ---- */
/* Of a program that does next to nothing, where the device runs any. */
static void
write_little (ConfScript *script)
{
  conf_script_init (script, "nothing_much");
  guint32 out = conf_emit_param (script, TINY_DTYPE_U32, TINY_PARAM_WRITE, 1);
  guint32 zero = conf_emit_int (script, TINY_DTYPE_I32, 0);
  guint32 value = conf_emit_int (script, TINY_DTYPE_U32, 1);
  CONF_EMIT (script, STORE, VOID, out, zero, value);
}

static void
run_launches (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  TinyCommand commands[N_BATCH];
  TinyPluginBuffer *buffers[TINY_OPERATION_MAX_OPERANDS] = { NULL };
  TinySpan spans[TINY_OPERATION_MAX_OPERANDS];
  ConfRaw raw;
  g_auto (ConfStep) step = { 0 };
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  if (conf_only_claims (subject)) {
    conf_step_init (&step, trial, subject);
  } else {
    step = (ConfStep){ .subject = subject, .n_buffers = 1, .n_bytes = { 64 } };
    write_little (&step.script);
  }
  TinyPluginProgram *program = conf_has_failed (trial) ? NULL : conf_step_build (&step, &raw);
  conf_step_alloc (&step, &raw, buffers);
  conf_step_get_spans (&step, buffers, spans);
  if (!step.is_claimed)
    spans[0].n_bytes = 4;
  for (guint i = 0; i < N_BATCH && !conf_has_failed (trial); i++)
    commands[i] = conf_step_dispatch (&step, program, spans);
  for (guint batch = 1; batch <= N_BATCH && !conf_has_failed (trial); batch += N_BATCH - 1) {
    conf_raw_submit (&raw, commands, batch, "warming up");
    gint64 begin = now_us (), us = 0;
    guint n = 0;
    for (; n < N_LAUNCHES && us < MOST_US && !conf_has_failed (trial); us = now_us () - begin)
      n += conf_raw_submit (&raw, commands, batch, "launch");
    if (n > 0)
      conf_record (trial, batch == 1 ? "submit of one launch" : "launch in a submit of 64",
                   (double) us * 1000 / n / batch, "ns");
  }
  conf_step_free (&step, &raw, buffers);
  conf_raw_unload (&raw, program);
  conf_raw_end (&raw);
}

/* ---- copies ---- */
static gboolean
copy_once (ConfRaw *raw, TinyPluginBuffer *const *buffers, guint8 *data, guint64 n, guint kind)
{
  return kind == 0   ? conf_raw_upload (raw, buffers[0], 0, data, n)
         : kind == 1 ? conf_raw_download (raw, buffers[0], 0, data, n)
                     : conf_raw_copy (raw, buffers[1], 0, buffers[0], 0, n);
}

/* The most bytes of one of two buffers that leave room for others. */
static guint64
most_bytes (const ConfRaw *raw)
{
  const guint64 most = raw->info->max_buffer_bytes, memory = raw->info->memory_bytes;
  guint64 n = MIN (most ? most : COPY_BYTES, memory ? memory / 8 : COPY_BYTES);
  return MIN (n, COPY_BYTES);
}

/* The largest size, beginning with a small one, up to @most, at which one copy takes no longer than a tenth of a
 * second or so. */
static guint64
find_size (
    ConfRaw *raw, TinyPluginBuffer *const *buffers, guint8 *data, guint64 most, guint kind)
{
  enum { TIMES = 8 };
  guint64 n = MIN (most, LEAST_BYTES);
  for (;;) {
    const gint64 begin = now_us ();
    if (!copy_once (raw, buffers, data, n, kind) || n == most
        || (now_us () - begin) * TIMES > LEAST_US)
      return n;
    n = MIN (most, n * TIMES);
  }
}

static void
time_copies (ConfRaw *raw, TinyPluginBuffer *const *buffers, guint8 *data, guint64 most)
{
  static const char *const names[] = { "upload", "download", "copy on the device" };
  for (guint kind = 0; kind < 3 && !conf_has_failed (raw->trial); kind++) {
    const guint64 n = find_size (raw, buffers, data, most, kind);
    guint times = 0;
    gint64 begin = now_us (), us = 0;
    for (; us < LEAST_US && !conf_has_failed (raw->trial); us = now_us () - begin)
      times += copy_once (raw, buffers, data, n, kind);
    conf_record (raw->trial, names[kind], (double) n * times / (double) MAX (us, 1) / 1000,
                 "GB/s");
  }
}

/* Both or none. */
static gboolean
alloc_both (ConfRaw *raw, TinyPluginBuffer **buffers, guint64 n_bytes)
{
  buffers[0] = conf_raw_try_alloc (raw, n_bytes);
  buffers[1] = buffers[0] ? conf_raw_try_alloc (raw, n_bytes) : NULL;
  if (buffers[1] == NULL) {
    conf_raw_free (raw, buffers[0]);
    buffers[0] = NULL;
  }
  return buffers[1] != NULL;
}

static void
run_copies (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  guint64 n = MAX (most_bytes (&raw), LEAST_BYTES) / 64 * 64;
  TinyPluginBuffer *buffers[2] = { NULL };
  while (!alloc_both (&raw, buffers, n) && n > LEAST_BYTES)
    n = MAX (n / 128 * 64, LEAST_BYTES);
  g_autofree guint8 *data = g_malloc0 (n);
  if (conf_check (trial, buffers[1] != NULL, "there is no memory for two buffers of %u bytes",
                  LEAST_BYTES))
    time_copies (&raw, buffers, data, n);
  conf_raw_free (&raw, buffers[0]);
  conf_raw_free (&raw, buffers[1]);
  conf_raw_end (&raw);
}

/* ---- a matrix product ---- */
static TinyTensor *
new_square (const ConfSubject *subject, gint64 n)
{
  const gint64 shape[] = { n, n };
  gsize n_values = (gsize) (n * n);
  g_autofree float *values = g_new (float, n_values);
  for (gsize i = 0; i < n_values; i++)
    values[i] = (float) (i % 17) / 16;
  return g_object_ref_sink (tiny_tensor_new_from_data (tiny_device_get_name (subject->device),
                                                       TINY_DTYPE_F32, shape, 2, values,
                                                       n_values * sizeof *values));
}

static gint64
time_product (ConfTrial *trial, TinyTensor *a, TinyTensor *b)
{
  GError *error = NULL;
  gint64 begin = now_us ();
  g_autoptr (TinyTensor) product = g_object_ref_sink (tiny_tensor_matmul (a, b));
  tiny_tensor_realize (product, &error);
  conf_check_error (trial, error, "matmul");
  return now_us () - begin;
}

/* The operands and the result of it take a small part of the memory there is. */
static gboolean
has_room (const ConfSubject *subject, gint64 n)
{
  const TinyDeviceInfo *info = tiny_device_get_info (subject->device);
  const guint64 bytes = (guint64) (n * n) * sizeof (float);
  return (info->max_buffer_bytes == 0 || bytes <= info->max_buffer_bytes)
         && (info->memory_bytes == 0 || bytes <= info->memory_bytes / 16);
}

/* Larger ones until one takes its time, or the next one, eight times the work, would take too much of it. */
static void
run_product (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { LEAST = 16, MOST = 2048 };
  for (gint64 n = LEAST; !conf_has_failed (trial); n *= 2) {
    g_autoptr (TinyTensor) a = new_square (subject, n);
    g_autoptr (TinyTensor) b = new_square (subject, n);
    time_product (trial, a, b); /* compiles */
    gint64 best = time_product (trial, a, b);
    for (guint i = 0; i < 2 && best < 10 * LEAST_US; i++)
      best = MIN (best, time_product (trial, a, b));
    if (best < LEAST_US / 5 && n < MOST && has_room (subject, 2 * n))
      continue;
    g_autofree char *what = g_strdup_printf ("matmul f32 %" G_GINT64_FORMAT, n);
    if (!conf_has_failed (trial))
      conf_record (trial, what, 2e-3 * (double) (n * n * n) / (double) MAX (best, 1),
                   "GFLOP/s");
    return;
  }
}

/* ---- from nothing to a result ---- */
static void
run_first (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  ConfSubject own;
  GError *error = NULL;
  gint64 begin = now_us ();
  TinyBackend *backend = tiny_backend_load (subject->path, &error);
  gint64 loaded = now_us ();
  if (!conf_check_error (trial, error, "load"))
    return;
  if (conf_fresh_open (trial, subject, &own)) {
    gint64 opened = now_us ();
    conf_fresh_use (trial, &own);
    gint64 used = now_us ();
    conf_fresh_use (trial, &own);
    conf_record (trial, "load and init", (double) (loaded - begin) / 1000, "ms");
    conf_record (trial, "open", (double) (opened - loaded) / 1000, "ms");
    conf_record (trial, "first result", (double) (used - opened) / 1000, "ms");
    conf_record (trial, "second result", (double) (now_us () - used) / 1000, "ms");
    conf_fresh_close (&own);
  }
  g_object_unref (backend);
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  const guint flags = CONF_RECORD | CONF_ALONE;
  const ConfCase first = { .run = run_first, .flags = flags | CONF_FRESH };
  const ConfCase launches = { .run = run_launches, .flags = flags };
  const ConfCase copies = { .run = run_copies, .flags = flags };
  const ConfCase product
      = { .run = run_product, .level = CONF_FULL, .flags = flags, .seconds = 120 };
  conf_list_add (out, &first, "first-result");
  if (subject->device == NULL)
    return;
  conf_list_add (out, &launches, "launches");
  conf_list_add (out, &copies, "copies");
  if ((subject->target->ops[TINY_DTYPE_F32] & TINY_INSTR_BIT (TINY_INSTR_MUL)) != 0)
    conf_list_add (out, &product, "matmul");
  else
    conf_list_absent (out, "the target does not multiply f32", "matmul");
}

const ConfGroup conf_group_record = { "record", "how fast it is", list };
