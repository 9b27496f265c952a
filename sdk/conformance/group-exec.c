/* SPDX-License-Identifier: MIT
 *
 * group-exec.c: programs: every point of a grid runs once and with what it was given, up to the limits
 * that the target declares; what is no program is refused. */
#include <string.h>

#include "exec.h"
#include "oracle.h"

enum { MAX_POINTS = 1 << 20, ZONE = 64 /* words */ };

void
conf_rig_end (ConfRig *self)
{
  conf_raw_unload (&self->raw, self->program);
  conf_script_clear (&self->script);
  conf_raw_end (&self->raw);
}

gboolean
conf_rig_begin (ConfRig *self, ConfTrial *trial, const ConfSubject *subject, const char *name)
{
  memset (self, 0, sizeof *self);
  if (!conf_raw_begin (&self->raw, trial, subject))
    return FALSE;
  conf_script_init (&self->script, name);
  return TRUE;
}

gboolean
conf_rig_run (ConfRig *self,
              const ConfSubject *subject,
              guint n_buffers,
              guint32 *const *words,
              const gsize *sizes,
              const gint64 *variables)
{
  g_autofree TinySpan *spans = g_new0 (TinySpan, n_buffers);
  self->program = conf_raw_build (&self->raw, subject, &self->script);
  gboolean good = self->program != NULL;
  for (guint i = 0; i < n_buffers && good; i++) {
    gsize n_bytes = sizes[i] * sizeof (guint32);
    spans[i] = (TinySpan){ conf_raw_alloc (&self->raw, n_bytes), 0, n_bytes };
    good = spans[i].buffer != NULL
           && conf_raw_upload (&self->raw, spans[i].buffer, 0, words[i], n_bytes);
  }
  const TinyCommand command
      = conf_dispatch (self->program, conf_script_get (&self->script), spans, variables);
  good = good && conf_raw_submit (&self->raw, &command, 1, self->script.name);
  for (guint i = 0; i < n_buffers && good; i++)
    good = conf_raw_download (&self->raw, spans[i].buffer, 0, words[i], spans[i].n_bytes);
  for (guint i = 0; i < n_buffers; i++)
    conf_raw_free (&self->raw, spans[i].buffer);
  return good;
}

/* ---- grids ---- */
/* The number of this point among all, counted along axis 0 first. */
static guint32
emit_number (ConfScript *script, const guint32 extents[3])
{
  guint32 x = conf_emit_index (script, 0), y = conf_emit_index (script, 1),
          z = conf_emit_index (script, 2);
  guint32 width = conf_emit_int (script, TINY_DTYPE_I32, extents[0]);
  guint32 height = conf_emit_int (script, TINY_DTYPE_I32, extents[1]);
  guint32 row = CONF_EMIT (script, MUL, I32, z, height);
  row = CONF_EMIT (script, ADD, I32, row, y);
  guint32 first = CONF_EMIT (script, MUL, I32, row, width);
  return CONF_EMIT (script, ADD, I32, first, x);
}

/* out[number] = out[number] * 3 + number: each point once. args: grid, group. */
static void
run_grid (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  guint32 extents[3], n = 1;
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "points"))
    return;
  ConfScript *script = &rig.script;
  for (guint axis = 0; axis < 3; axis++) {
    conf_script_set_grid (script, axis, (guint) self->args[axis]);
    conf_script_set_group (script, axis, (guint) self->args[3 + axis]);
    extents[axis] = (guint32) (self->args[axis] * self->args[3 + axis]);
    n *= extents[axis];
  }
  gsize size = n + ZONE;
  g_autofree guint32 *words = g_new (guint32, size);
  guint32 out
      = conf_emit_param (script, TINY_DTYPE_U32, TINY_PARAM_READ | TINY_PARAM_WRITE, size);
  guint32 number = emit_number (script, extents);
  guint32 x = CONF_EMIT (script, LOAD, U32, out, number);
  guint32 three = conf_emit_int (script, TINY_DTYPE_U32, 3);
  guint32 product = CONF_EMIT (script, MUL, U32, x, three);
  guint32 position = CONF_EMIT (script, CAST, U32, number);
  guint32 sum = CONF_EMIT (script, ADD, U32, product, position);
  CONF_EMIT (script, STORE, VOID, out, number, sum);
  for (gsize i = 0; i < size; i++)
    words[i] = (guint32) i * 40503u + 1;
  if (conf_rig_run (&rig, subject, 1, &words, &size, NULL))
    for (guint32 i = 0; i < size; i++) {
      guint32 before = i * 40503u + 1, wanted = i < n ? before * 3 + i : before;
      if (!conf_check (trial, words[i] == wanted, "word %u of %u points is %u, and %u is right",
                       i, n, words[i], wanted))
        break;
    }
  conf_rig_end (&rig);
}

/* ---- parameters ---- */
/* out[i] = the sum of (k + 1) * in[k][i]: no two may change places. */
static void
run_params (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { N = 64 };
  guint n = (guint) self->args[0];
  gsize sizes[512] = { 0 };
  guint32 *words[512] = { NULL }, params[512] = { 0 };
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "many_params"))
    return;
  ConfScript *script = &rig.script;
  conf_script_set_grid (script, 0, N);
  for (guint k = 0; k < n; k++) {
    params[k] = conf_emit_param (script, TINY_DTYPE_U32,
                                 k == 0 ? TINY_PARAM_WRITE : TINY_PARAM_READ, N);
    sizes[k] = N;
    words[k] = g_new (guint32, N);
    for (guint i = 0; i < N; i++)
      words[k][i] = k * 977 + i * 13;
  }
  guint32 i = conf_emit_index (script, 0), sum = conf_emit_int (script, TINY_DTYPE_U32, 7);
  for (guint k = 1; k < n; k++) {
    guint32 x = CONF_EMIT (script, LOAD, U32, params[k], i);
    guint32 weight = conf_emit_int (script, TINY_DTYPE_U32, k + 1);
    guint32 product = CONF_EMIT (script, MUL, U32, x, weight);
    sum = CONF_EMIT (script, ADD, U32, sum, product);
  }
  CONF_EMIT (script, STORE, VOID, params[0], i, sum);
  if (conf_rig_run (&rig, subject, n, words, sizes, NULL))
    for (guint e = 0; e < N; e++) {
      guint32 wanted = 7;
      for (guint k = 1; k < n; k++)
        wanted += (k + 1) * (k * 977 + e * 13);
      if (!conf_check (trial, words[0][e] == wanted,
                       "element %u of a sum of %u parameters is %u, and %u is right", e, n,
                       words[0][e], wanted))
        break;
    }
  for (guint k = 0; k < n; k++)
    g_free (words[k]);
  conf_rig_end (&rig);
}

/* out[k] = variable k, at values at the ends of what an i32 holds. */
static void
run_variables (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  static const gint64 values[]
      = { 0, 1, -1, G_MAXINT32, G_MININT32, 65536, -65536, 12345678, -7, 255, -256, 32767 };
  enum { MOST = G_N_ELEMENTS (values) };
  guint n = (guint) self->args[0];
  gsize size = MOST;
  guint32 *words = g_new0 (guint32, MOST);
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "variables"))
    return;
  ConfScript *script = &rig.script;
  guint32 variables[MOST];
  guint32 out = conf_emit_param (script, TINY_DTYPE_I32, TINY_PARAM_WRITE, MOST);
  for (guint k = 0; k < n; k++)
    variables[k] = conf_emit_variable (script);
  for (guint k = 0; k < n; k++) {
    guint32 at = conf_emit_int (script, TINY_DTYPE_I32, k);
    CONF_EMIT (script, STORE, VOID, out, at, variables[k]);
  }
  if (conf_rig_run (&rig, subject, 1, &words, &size, values))
    for (guint k = 0; k < n; k++)
      conf_check (trial, (gint32) words[k] == values[k],
                  "variable %u of %u is %d, and %" G_GINT64_FORMAT " was given", k, n,
                  (gint32) words[k], values[k]);
  g_free (words);
  conf_rig_end (&rig);
}

/* Variables of 64 bits, where the target has such integers. */
static void
run_wide_variables (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  static const gint64 values[] = { G_MAXINT64,
                                   G_MININT64,
                                   -1,
                                   G_GINT64_CONSTANT (1) << 32,
                                   -(G_GINT64_CONSTANT (1) << 33) - 5,
                                   0x123456789abcdef0 };
  enum { MOST = G_N_ELEMENTS (values) };
  gint64 found[MOST] = { 0 };
  guint32 *words = (guint32 *) (gpointer) found;
  gsize size = 2 * MOST;
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "wide_variables"))
    return;
  ConfScript *script = &rig.script;
  guint32 out = conf_emit_param (script, TINY_DTYPE_I64, TINY_PARAM_WRITE, MOST);
  for (guint k = 0; k < MOST; k++) {
    guint32 variable = conf_emit_variable_of (script, TINY_DTYPE_I64);
    guint32 at = conf_emit_int (script, TINY_DTYPE_I32, k);
    CONF_EMIT (script, STORE, VOID, out, at, variable);
  }
  if (conf_rig_run (&rig, subject, 1, &words, &size, values))
    for (guint k = 0; k < MOST; k++)
      conf_check (trial, found[k] == values[k],
                  "variable %u is %" G_GINT64_FORMAT ", and %" G_GINT64_FORMAT " was given", k,
                  found[k], values[k]);
  conf_rig_end (&rig);
}

/* out[k] = constant k, each with every bit that it has. args: the dtype. */
static void
run_constants (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  static const gint64 integers[]
      = { 0,          1,          -1,         0x123456789abcdef0, G_MAXINT64,
          G_MININT64, G_MAXINT32, G_MININT32, G_MAXUINT32,        65537 };
  static const double floats[]
      = { 0.0, -0.0, 1.0 / 3, G_PI, -1e-30, 1e30, 16777217, -0x1p-126 };
  const TinyDType dtype = (TinyDType) self->args[0];
  const gboolean is_float = tiny_dtype_is_float (dtype);
  const guint n = is_float ? G_N_ELEMENTS (floats) : G_N_ELEMENTS (integers);
  guint64 wanted[16] = { 0 }, found[16] = { 0 };
  guint32 *words = (guint32 *) (gpointer) found;
  /* Whole words: what is behind the last one stays 0. */
  const guint in_word = MAX (sizeof *words / tiny_dtype_get_n_bytes (dtype), 1);
  const guint room = (n + in_word - 1) / in_word * in_word;
  gsize size = room * tiny_dtype_get_n_bytes (dtype) / sizeof *words;
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "constants"))
    return;
  ConfScript *script = &rig.script;
  guint32 out = conf_emit_param (script, dtype, TINY_PARAM_WRITE, room);
  for (guint k = 0; k < n; k++) {
    conf_encode (dtype, wanted, k, is_float ? conf_from_double (floats[k]) : integers[k]);
    guint32 constant = conf_emit_int (script, dtype, conf_decode (dtype, wanted, k));
    guint32 at = conf_emit_int (script, TINY_DTYPE_I32, k);
    CONF_EMIT (script, STORE, VOID, out, at, constant);
  }
  if (conf_rig_run (&rig, subject, 1, &words, &size, NULL))
    for (guint i = 0; i < size; i++)
      conf_check (trial, words[i] == ((const guint32 *) wanted)[i],
                  "32-bit word %u of %u constants is 0x%08x, and 0x%08x is right", i, n,
                  words[i], ((const guint32 *) wanted)[i]);
  conf_rig_end (&rig);
}

/* ---- spans ---- */
/* Parameters that are parts of one buffer: what is around them stays as it was. */
static void
run_spans (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { N = 48 };
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "spans"))
    return;
  ConfScript *script = &rig.script;
  guint step = MAX (MAX (rig.raw.info->alignment, sizeof (guint32)), rig.raw.unit);
  guint64 to = (guint64) self->args[0] * step, from = to + N * sizeof (guint32) + 64;
  from = (from + step - 1) / step * step;
  guint64 size = conf_raw_round (&rig.raw, from + N * sizeof (guint32) + 256);
  g_autofree guint8 *before = g_malloc (size), *after = g_malloc (size);
  conf_script_set_grid (script, 0, N);
  guint32 out = conf_emit_param (script, TINY_DTYPE_U32, TINY_PARAM_WRITE, N);
  guint32 in = conf_emit_param (script, TINY_DTYPE_U32, TINY_PARAM_READ, N);
  guint32 i = conf_emit_index (script, 0);
  guint32 x = CONF_EMIT (script, LOAD, U32, in, i);
  CONF_EMIT (script, STORE, VOID, out, i, x);
  rig.program = conf_raw_build (&rig.raw, subject, script);
  TinyPluginBuffer *target = conf_raw_alloc (&rig.raw, size),
                   *source = conf_raw_alloc (&rig.raw, size);
  const TinySpan spans[]
      = { { target, to, N * sizeof (guint32) }, { source, from, N * sizeof (guint32) } };
  conf_fill (before, size, 1);
  if (!conf_has_failed (trial) && conf_raw_upload (&rig.raw, target, 0, before, size)) {
    conf_fill (after, size, 2);
    const TinyCommand command
        = conf_dispatch (rig.program, conf_script_get (script), spans, NULL);
    if (conf_raw_upload (&rig.raw, source, 0, after, size)
        && conf_raw_submit (&rig.raw, &command, 1, "a dispatch on spans")
        && conf_raw_download (&rig.raw, target, 0, after, size)) {
      guint64 end = to + N * sizeof (guint32);
      conf_check_fill (trial, after, to, 1, 0, "output, before its span");
      conf_check_fill (trial, after + to, end - to, 2, from, "output, its span");
      conf_check_fill (trial, after + end, size - end, 1, end, "output, behind its span");
    }
  }
  conf_raw_free (&rig.raw, target);
  conf_raw_free (&rig.raw, source);
  conf_rig_end (&rig);
}

/* ---- lists ---- */
const char *
conf_find_grid_limit (const TinyTarget *target, const guint64 size[6])
{
  const guint64 items = size[3] * size[4] * size[5];
  if (items > 1 && (target->flags & TINY_TARGET_GROUPS) == 0)
    return "the target has no work-groups";
  for (guint axis = 0; axis < 3; axis++)
    if ((target->max_grid[axis] != 0 && size[axis] > target->max_grid[axis])
        || (target->max_group[axis] != 0 && size[3 + axis] > target->max_group[axis]))
      return "more than the target has along an axis";
  return target->max_group_total != 0 && items > target->max_group_total
             ? "more items than a group of the target has"
             : NULL;
}

static void
list_grid (ConfList *out, const TinyTarget *target, ConfLevel level, const guint64 size[6])
{
  const char *limit = conf_find_grid_limit (target, size);
  g_autofree char *name
      = g_strdup_printf ("grid/%ux%ux%u/group/%ux%ux%u", (guint) size[0], (guint) size[1],
                         (guint) size[2], (guint) size[3], (guint) size[4], (guint) size[5]);
  const ConfCase it = { .run = run_grid,
                        .level = level,
                        .args = { (gint64) size[0], (gint64) size[1], (gint64) size[2],
                                  (gint64) size[3], (gint64) size[4], (gint64) size[5] } };
  if (limit != NULL)
    conf_list_absent (out, limit, "%s", name);
  else
    conf_list_add (out, &it, "%s", name);
}

/* One axis as long as the target declares, up to what a buffer can show. */
static void
list_longest (ConfList *out, const TinyTarget *target, guint axis)
{
  ConfCase it = { .run = run_grid, .args = { 1, 1, 1, 1, 1, 1 } };
  it.args[axis] = MIN (target->max_grid[axis], MAX_POINTS);
  if (it.args[axis] > 65535)
    conf_list_add (out, &it, "grid/longest/axis%u", axis);
  else
    conf_list_absent (out, "the target has no more than 65535", "grid/longest/axis%u", axis);
}

static void
list_grids (ConfList *out, const TinyTarget *target)
{
  static const guint extents[] = { 1, 2, 3, 7, 31, 64, 65, 255, 256, 1000, 1023, 1024, 65535 };
  static const guint groups[] = { 2, 3, 7, 32, 33, 64, 100, 128, 255, 256, 512, 1024, 4096 };
  const guint64 mixed[][6]
      = { { 2, 3, 4, 1, 1, 1 },  { 5, 1, 7, 1, 1, 1 }, { 1, 13, 11, 1, 1, 1 },
          { 3, 2, 2, 4, 2, 1 },  { 2, 2, 2, 2, 2, 2 }, { 1, 3, 5, 8, 4, 2 },
          { 7, 1, 1, 16, 16, 1 } };
  for (guint axis = 0; axis < 3; axis++) {
    guint64 size[6] = { 1, 1, 1, 1, 1, 1 };
    for (guint i = 0; i < G_N_ELEMENTS (extents); i++) {
      size[axis] = extents[i];
      if (i > 0 || axis == 0)
        list_grid (out, target, i % 3 == 0 ? CONF_CORE : CONF_FULL, size);
    }
    list_longest (out, target, axis);
    size[axis] = 3;
    for (guint i = 0; i < G_N_ELEMENTS (groups); i++) {
      size[3 + axis] = groups[i];
      list_grid (out, target, i % 3 == 0 ? CONF_CORE : CONF_FULL, size);
    }
  }
  for (guint i = 0; i < G_N_ELEMENTS (mixed); i++)
    list_grid (out, target, CONF_CORE, mixed[i]);
}

static void
list_numbers (ConfList *out, const TinyTarget *target)
{
  static const guint params[] = { 1, 2, 3, 4, 5, 7, 8, 9, 10, 15, 16, 17, 24, 31, 32, 33, 64 };
  guint most = MIN (target->max_params, 512);
  for (guint i = 0; i < G_N_ELEMENTS (params); i++) {
    const ConfCase it = { .run = run_params, .args = { params[i] } };
    if (params[i] <= most)
      conf_list_add (out, &it, "params/%u", params[i]);
    else
      conf_list_absent (out, "the target takes not so many buffers", "params/%u", params[i]);
  }
  const ConfCase all = { .run = run_params, .args = { most } };
  if (most > 0)
    conf_list_add (out, &all, "params/all");
  for (guint n = 1; n <= 12; n += n < 4 ? 1 : 4) {
    const ConfCase it = { .run = run_variables, .args = { n } };
    conf_list_add (out, &it, "variables/%u", n);
  }
  for (guint n = 0; n < 8; n++)
    conf_list_add (out, &(const ConfCase){ .run = run_spans, .args = { n * n } },
                   "spans/at-%u-alignments", n * n);
}

static void
list_constants (ConfList *out, const TinyTarget *target)
{
  static const TinyDType dtypes[]
      = { TINY_DTYPE_I32, TINY_DTYPE_U32, TINY_DTYPE_F32, TINY_DTYPE_I64,
          TINY_DTYPE_U64, TINY_DTYPE_F64, TINY_DTYPE_I8,  TINY_DTYPE_U8,
          TINY_DTYPE_I16, TINY_DTYPE_U16, TINY_DTYPE_F16, TINY_DTYPE_BF16 };
  for (guint i = 0; i < G_N_ELEMENTS (dtypes); i++) {
    const ConfCase it = { .run = run_constants, .args = { dtypes[i] } };
    const char *name = tiny_dtype_to_string (dtypes[i]);
    const ConfCase wide = { .run = run_wide_variables };
    const gboolean is_narrow = tiny_dtype_get_n_bytes (dtypes[i]) < sizeof (guint32);
    if ((target->dtypes_storage & TINY_DTYPE_BIT (dtypes[i])) == 0
        || (is_narrow && !conf_has_dtype (target, dtypes[i]))) {
      conf_list_absent (out, "the target does not store it, or not compute with it",
                        "constants/%s", name);
      if (dtypes[i] == TINY_DTYPE_I64)
        conf_list_absent (out, "the target does not store it", "variables/i64");
      continue;
    }
    conf_list_add (out, &it, "constants/%s", name);
    if (dtypes[i] == TINY_DTYPE_I64)
      conf_list_add (out, &wide, "variables/i64");
  }
}

static void
list (const ConfSubject *subject, ConfList *out)
{
  if (subject->device == NULL)
    return;
  if (conf_only_claims (subject)) {
    conf_list_absent (out, CONF_NO_KERNELS, "kernels");
    return;
  }
  list_grids (out, subject->target);
  list_numbers (out, subject->target);
  list_constants (out, subject->target);
  conf_list_structure (out, subject->target);
  conf_list_nested (out, subject->target);
  conf_list_carried (out, subject->target);
  conf_list_lanes (out, subject->target);
}

const ConfGroup conf_group_exec
    = { "exec", "every point of a grid runs once, with what it was given", list };
