/* SPDX-License-Identifier: MIT
 *
 * group-declared.c: what a module, its devices and targets say of themselves makes sense by itself: names that are
 * there, numbers that can be, and the same each time. Whether it is so is for group-claims.c and all others. */
#include <math.h>
#include <string.h>

#include "device/device-private.h"
#include "device/tiny-table.h"
#include "fresh.h"
#include "render/tiny-render.h"

static gboolean
is_power_of_two (guint32 n)
{
  return n != 0 && (n & (n - 1)) == 0;
}

static gboolean
is_zero (const void *memory, gsize n)
{
  const guint8 *bytes = memory;
  for (gsize i = 0; i < n; i++)
    if (bytes[i] != 0)
      return FALSE;
  return TRUE;
}

/* A text of a fixed size: it ends, is UTF-8, and says something. */
static void
check_text (
    ConfTrial *trial, const char *text, gsize size, gboolean may_be_empty, const char *what)
{
  conf_check (trial, memchr (text, 0, size) != NULL, "%s has no end", what);
  conf_check (trial, g_utf8_validate (text, (gssize) strnlen (text, size), NULL),
              "%s is no UTF-8", what);
  conf_check (trial, may_be_empty || text[0] != 0, "%s is empty", what);
}

/* ---- the module ---- */
static void
check_name (ConfTrial *trial, const char *text, const char *what)
{
  conf_check (trial, text != NULL && text[0] != 0, "%s is %s", what, text ? "empty" : "NULL");
}

static void
run_names (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const TinyPluginModule *module = subject->module;
  if (!conf_needs (trial, module, "module"))
    return;
  check_name (trial, module->name, "the module's name");
  check_name (trial, module->vendor, "the module's vendor");
  check_name (trial, module->version, "the module's version");
  check_name (trial, module->license, "the module's license");
  const TinyRenderer *renderer = tiny_device_get_renderer (subject->device);
  check_name (trial, renderer->name, "the renderer's name");
  /* Without it what an older one compiled is taken for its own. */
  check_name (trial, renderer->code_version, "the renderer's code_version");
}

/* scan() twice: quickly, the same, each candidate whole. */
static void
run_candidates (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { MOST = 16, SECONDS = 2 };
  TinyCandidate found[2][MOST];
  uint32_t n[2] = { MOST, MOST };
  TinyPluginError error;
  memset (found, 0, sizeof found);
  for (guint time = 0; time < 2; time++) {
    for (guint i = 0; i < MOST; i++)
      found[time][i].struct_size = sizeof found[time][i];
    tiny_plugin_error_init (&error);
    gint64 begin = g_get_monotonic_time ();
    TinyStatus status = subject->module->scan (found[time], &n[time], &error);
    gint64 us = g_get_monotonic_time () - begin;
    conf_check (trial, status == TINY_STATUS_OK, "scan(): %s: %s",
                conf_status_to_string (status), error.text);
    conf_check (trial, us < SECONDS * G_USEC_PER_SEC,
                "scan() takes %" G_GINT64_FORMAT " ms, and opens nothing", us / 1000);
  }
  conf_check (trial, n[0] == n[1] && memcmp (found[0], found[1], sizeof found[0]) == 0,
              "scan() says something else the second time");
  for (guint i = 0; i < MIN (n[0], MOST); i++) {
    const TinyCandidate *one = &found[0][i];
    check_text (trial, one->id, sizeof one->id, FALSE, "a candidate's id");
    check_text (trial, one->name, sizeof one->name, FALSE, "a candidate's name");
    check_text (trial, one->driver, sizeof one->driver, TRUE, "a candidate's driver");
    conf_check (
        trial, one->device_class >= TINY_CLASS_CPU && one->device_class <= TINY_CLASS_SIMULATOR,
        "%.64s: device_class is %u, no TINY_CLASS_*", one->id, one->device_class);
    conf_check (trial, one->struct_size == sizeof *one,
                "%.64s: struct_size is %u, %u was given", one->id, one->struct_size,
                (guint) sizeof *one);
    conf_check (trial,
                one->flags == 0 && one->reserved0 == 0
                    && is_zero (one->reserved, sizeof one->reserved),
                "%.64s: flags or reserved fields are not 0", one->id);
  }
}

/* ---- the device ---- */
static void
run_info (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum {
    KNOWN = TINY_DEVICE_HOST_MEMORY | TINY_DEVICE_OVERLAPS | TINY_DEVICE_RUNS_NOTHING
            | TINY_DEVICE_NON_COHERENT,
    LARGEST_ELEMENT = 8,
    MOST_TRANSFER = 64
  };
  TinyDeviceInfo info[2];
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  memset (info, 0, sizeof info);
  for (guint time = 0; time < 2; time++) {
    info[time].struct_size = sizeof info[time];
    TinyStatus status = raw.table->info (raw.device, &info[time], &raw.error);
    conf_check (trial, status == TINY_STATUS_OK, "info(): %s: %s",
                conf_status_to_string (status), raw.error.text);
  }
  conf_check (trial, memcmp (&info[0], &info[1], sizeof info[0]) == 0,
              "info() says something else the second time");
  const TinyDeviceInfo *it = &info[0];
  check_text (trial, it->name, sizeof it->name, FALSE, "the device's name");
  check_text (trial, it->arch, sizeof it->arch, TRUE, "the device's arch");
  conf_check (
      trial, is_power_of_two (it->alignment) && it->alignment >= LARGEST_ELEMENT,
      "info(): alignment is %u; wanted is a power of two from %d, the size of the largest "
      "element, to %d, as spans begin at multiples of it",
      it->alignment, LARGEST_ELEMENT, TINY_SPAN_ALIGNMENT);
  conf_check (
      trial,
      it->transfer_bytes == 0
          || (is_power_of_two (it->transfer_bytes) && it->transfer_bytes <= MOST_TRANSFER),
      "transfer_bytes is %u", it->transfer_bytes);
  conf_check (trial, (it->flags & ~(guint) KNOWN) == 0, "flags are 0x%x", it->flags);
  conf_check (trial, it->reserved0 == 0 && is_zero (it->reserved, sizeof it->reserved),
              "reserved fields are not 0");
  conf_raw_end (&raw);
}

/* ---- the target ---- */
static TinyStatus
ask_target (const ConfSubject *subject,
            const char *arch,
            TinyTarget *out,
            TinyPluginError *error)
{
  memset (out, 0, sizeof *out);
  out->struct_size = sizeof *out;
  memcpy (out->arch, tiny_device_get_info (subject->device)->arch, sizeof out->arch);
  tiny_plugin_error_init (error);
  return tiny_renderer_call_target (tiny_device_get_renderer (subject->device), arch, out,
                                    error);
}

static void
check_limits (ConfTrial *trial, const TinyTarget *it)
{
  conf_check (trial, is_power_of_two (it->max_lanes), "max_lanes is %u, no power of two",
              it->max_lanes);
  conf_check (trial, it->max_params > 0, "max_params is 0: a program has an output at least");
  for (guint axis = 0; axis < 3; axis++) {
    conf_check (trial, it->max_grid[axis] > 0, "max_grid of axis %u is 0", axis);
    conf_check (trial, (it->flags & TINY_TARGET_GROUPS) == 0 || it->max_group[axis] > 0,
                "max_group of axis %u is 0, and the target has groups", axis);
  }
  conf_check (trial, (it->flags & TINY_TARGET_GROUPS) == 0 || it->max_group_total > 0,
              "max_group_total is 0, and the target has groups");
}

static void
run_target (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const guint64 known = (TINY_INSTR_BIT (TINY_INSTR_CMPEQ + 1) - 1) & ~TINY_INSTR_BIT (0);
  const guint32 needed = TINY_DTYPE_BIT (TINY_DTYPE_I32) | TINY_DTYPE_BIT (TINY_DTYPE_U32);
  TinyTarget target[2];
  TinyPluginError error;
  for (guint time = 0; time < 2; time++) {
    TinyStatus status = ask_target (subject, subject->target->arch, &target[time], &error);
    conf_check (trial, status == TINY_STATUS_OK, "target(“%s”), which it gave: %s: %s",
                subject->target->arch, conf_status_to_string (status), error.text);
  }
  conf_check (trial, memcmp (&target[0], &target[1], sizeof target[0]) == 0,
              "target() says something else the second time");
  conf_check (trial, strcmp (target[0].arch, subject->target->arch) == 0,
              "target(“%s”), which it gave, is another arch: “%.255s”", subject->target->arch,
              target[0].arch);
  const TinyTarget *it = &target[0];
  check_text (trial, it->arch, sizeof it->arch, FALSE, "the target's arch");
  check_limits (trial, it);
  conf_check (trial, it->index_dtype == TINY_DTYPE_I32 || it->index_dtype == TINY_DTYPE_I64,
              "index_dtype is %u, neither I32 nor I64", it->index_dtype);
  conf_check (trial, (it->dtypes_storage & needed) == needed,
              "dtypes_storage is 0x%x, without i32 or u32", it->dtypes_storage);
  for (guint dtype = 0; dtype < G_N_ELEMENTS (it->ops); dtype++)
    conf_check (
        trial,
        (it->ops[dtype] & ~known) == 0 && (dtype < TINY_DTYPE_INDEX || it->ops[dtype] == 0),
        "ops of dtype %u are 0x%" G_GINT64_MODIFIER "x: some are none", dtype, it->ops[dtype]);
  conf_check (trial, is_zero (it->reserved, sizeof it->reserved), "reserved fields are not 0");
}

/* A device's table is a constant: another device does not change it, nor does its end. */
static void
run_table (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  TinyPluginDevice *devices[2] = { NULL };
  const TinyDeviceTable *tables[2] = { NULL };
  TinyDeviceTable was = { 0 };
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (devices); i++) {
    const TinyStatus status = tiny_backend_open_device (subject->backend, subject->id,
                                                        &devices[i], &tables[i], &raw.error);
    if (status == TINY_STATUS_BUSY) /* one program has it once */
      break;
    if (!conf_check (trial, status == TINY_STATUS_OK && tables[i] != NULL, "open(): %s: %s",
                     conf_status_to_string (status), raw.error.text))
      break;
    if (i == 0)
      memcpy (&was, tables[0], MIN (tables[0]->struct_size, sizeof was));
  }
  for (guint i = G_N_ELEMENTS (devices); i-- > 0;) {
    if (devices[i] == NULL || tables[i] == NULL)
      continue;
    conf_check (trial, memcmp (&was, tables[0], MIN (was.struct_size, sizeof was)) == 0,
                "a device's table changes when another one is opened or closed");
    was.close (devices[i]);
  }
  conf_raw_end (&raw);
}

/* An arch of which it knows no word. */
static void
run_unknown_arch (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  TinyTarget target;
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  TinyStatus status = ask_target (subject, "no-such-architecture", &target, &raw.error);
  TinyStatus wanted = status == TINY_STATUS_UNSUPPORTED ? status : TINY_STATUS_INVALID;
  conf_raw_check_failure (&raw, status, wanted, "target(“no-such-architecture”)");
  conf_raw_end (&raw);
}

/* ---- subnormals that are said to be flushed ---- */
/* out = in * 0.5, in + in, of numbers about the least normal one: none of what comes is subnormal, or
 * the numbers went in as 0. */
static void
run_flushes (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { N = 4 };
  const float in[N] = { 0x1p-126f, 0x1.8p-126f, 0x1p-127f, 0x1.8p-128f };
  float out[2 * N];
  guint n_flushed = 0;
  ConfRaw raw;
  if (!conf_raw_begin (&raw, trial, subject))
    return;
  g_auto (ConfScript) script;
  conf_script_init (&script, "flushes");
  conf_script_set_grid (&script, 0, N);
  guint32 to = conf_emit_param (&script, TINY_DTYPE_F32, TINY_PARAM_WRITE, 2 * N);
  guint32 from = conf_emit_param (&script, TINY_DTYPE_F32, TINY_PARAM_READ, N);
  guint32 i = conf_emit_index (&script, 0), x = CONF_EMIT (&script, LOAD, F32, from, i);
  double half = 0.5;
  gint64 bits;
  memcpy (&bits, &half, sizeof bits);
  guint32 factor = conf_emit_arg (&script, TINY_INSTR_CONST, TINY_DTYPE_F32, bits);
  guint32 product = CONF_EMIT (&script, MUL, F32, x, factor);
  guint32 sum = CONF_EMIT (&script, ADD, F32, x, x);
  guint32 n = conf_emit_int (&script, TINY_DTYPE_I32, N),
          j = CONF_EMIT (&script, ADD, I32, i, n);
  CONF_EMIT (&script, STORE, VOID, to, i, product);
  CONF_EMIT (&script, STORE, VOID, to, j, sum);
  TinyPluginProgram *program = conf_raw_build (&raw, subject, &script);
  TinyPluginBuffer *a = conf_raw_alloc (&raw, sizeof out),
                   *b = conf_raw_alloc (&raw, sizeof in);
  const TinySpan spans[] = { { a, 0, sizeof out }, { b, 0, sizeof in } };
  const TinyCommand command = conf_dispatch (program, conf_script_get (&script), spans, NULL);
  if (!conf_has_failed (trial) && conf_raw_upload (&raw, b, 0, in, sizeof in)
      && conf_raw_submit (&raw, &command, 1, "dispatch")
      && conf_raw_download (&raw, a, 0, out, sizeof out)) {
    for (guint k = 0; k < N; k++)
      n_flushed += (out[k] == 0) + (out[N + k] == 0);
    conf_check (
        trial, n_flushed > 0,
        "the target has TINY_TARGET_FLUSHES_SUBNORMALS, and neither products nor sums of "
        "f32 lose any");
  }
  conf_raw_free (&raw, a);
  conf_raw_free (&raw, b);
  conf_raw_unload (&raw, program);
  conf_raw_end (&raw);
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  const ConfCase names = { .run = run_names }, candidates = { .run = run_candidates };
  const ConfCase info = { .run = run_info }, target = { .run = run_target };
  const ConfCase arch = { .run = run_unknown_arch }, flushes = { .run = run_flushes };
  if (subject->device == NULL)
    return;
  conf_list_add (out, &names, "names");
  conf_list_add (out, &candidates, "candidates");
  conf_list_add (out, &info, "info");
  conf_list_add (out, &(const ConfCase){ .run = run_table }, "table");
  if (tiny_device_get_renderer (subject->device)->target == NULL) {
    conf_list_absent (out, "the renderer has no target", "target");
    return;
  }
  conf_list_add (out, &target, "target");
  conf_list_add (out, &arch, "unknown-arch");
  if ((subject->target->flags & TINY_TARGET_FLUSHES_SUBNORMALS) != 0)
    conf_list_add (out, &flushes, "flushes-subnormals");
  else
    conf_list_absent (out, "the target has not TINY_TARGET_FLUSHES_SUBNORMALS",
                      "flushes-subnormals");
}

const ConfGroup conf_group_declared
    = { "declared", "what module, device and target say of themselves makes sense", list };
