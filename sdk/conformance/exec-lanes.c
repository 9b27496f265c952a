/* SPDX-License-Identifier: MIT
 *
 * exec-lanes.c: vectors keep their lanes apart: through EXTRACT and VECTOR, registers, gates, local memory, and at
 * addresses that are no vector's where the target says that it takes them. */
#include <string.h>

#include "exec.h"
#include "ir/tiny-dtype.h"
#include "oracle.h"

enum { MOST = 16, ROWS = 9, SPACE = 2 * MOST }; /* elements of a row and what stays between */

/* ---- what comes of it ---- */
typedef struct {
  ConfScript *script;
  TinyDType dtype;
  gsize width;
  guint lanes, shift; /* how far behind a vector's place accesses are */
  guint8 *in, *out, *wanted;
  guint n_rows;
  guint32 to, from;
} Vectors;

static void
vectors_init (Vectors *self, ConfScript *script, const ConfCase *it)
{
  const TinyDType dtype = (TinyDType) it->args[0];
  const gsize width = tiny_dtype_get_n_bytes (dtype), n = ROWS * SPACE * width;
  *self = (Vectors){ .script = script, .dtype = dtype, .width = width };
  self->lanes = (guint) it->args[1];
  self->shift = (guint) it->args[2];
  self->in = g_malloc0 (n);
  self->out = g_malloc0 (n);
  for (guint k = 0; k < ROWS * SPACE; k++) {
    const gint64 x = (gint64) k * 37 % 101 - 50;
    const gint64 bits = tiny_dtype_is_float (dtype) ? conf_from_double ((double) x) : x;
    conf_encode (dtype, self->in, k, bits);
    conf_encode (dtype, self->out, k, tiny_dtype_is_float (dtype) ? conf_from_double (99) : 99);
  }
  self->wanted = g_memdup2 (self->out, n);
  self->to = conf_emit_param (script, dtype, TINY_PARAM_WRITE, ROWS * SPACE);
  self->from = conf_emit_param (script, dtype, TINY_PARAM_READ, ROWS * SPACE);
}

static void
vectors_clear (Vectors *self)
{
  g_free (self->in);
  g_free (self->out);
  g_free (self->wanted);
}

static guint32
emit_at (Vectors *self, guint element)
{
  return conf_emit_int (self->script, TINY_DTYPE_I32, element);
}

/* That row @row of the input is: from @shift elements behind its start on. */
static guint
place_of (const Vectors *self, guint row)
{
  return row * SPACE + self->shift;
}

static guint32
emit_load (Vectors *self, guint row)
{
  const guint32 sources[] = { self->from, emit_at (self, place_of (self, row)) };
  return conf_emit_lanes (self->script, TINY_INSTR_LOAD, self->dtype, self->lanes, 2, sources);
}

/* Lane i of the next row of the output is to be element @from[i] of the input. */
static void
emit_row (Vectors *self, guint32 vector, const guint *from)
{
  const guint row = self->n_rows++;
  const guint32 sources[] = { self->to, emit_at (self, place_of (self, row)), vector };
  conf_emit_lanes (self->script, TINY_INSTR_STORE, TINY_DTYPE_VOID, self->lanes, 3, sources);
  for (guint i = 0; i < self->lanes; i++)
    memcpy (self->wanted + (place_of (self, row) + i) * self->width,
            self->in + from[i] * self->width, self->width);
}

static void
vectors_run (Vectors *self, ConfRig *rig, const ConfSubject *subject)
{
  const gsize size = ROWS * SPACE * self->width / sizeof (guint32), sizes[] = { size, size };
  guint32 *words[] = { (guint32 *) (gpointer) self->out, (guint32 *) (gpointer) self->in };
  const gint64 open = 1;
  if (!conf_rig_run (rig, subject, 2, words, sizes, &open))
    return;
  for (guint k = 0; k < ROWS * SPACE; k++) {
    const guint8 *got = self->out + k * self->width, *right = self->wanted + k * self->width;
    g_autofree char *is = conf_value_to_string (self->dtype, conf_decode (self->dtype, got, 0));
    g_autofree char *should
        = conf_value_to_string (self->dtype, conf_decode (self->dtype, right, 0));
    if (!conf_check (rig->raw.trial, memcmp (got, right, self->width) == 0,
                     "row %u, element %u is %s, and %s is right", k / SPACE, k % SPACE, is,
                     should))
      break;
  }
}

/* ---- what is emitted ---- */
static guint
turned (const Vectors *self, guint i)
{
  return (i * 3 + 1) % self->lanes;
}

static guint32
emit_turned (Vectors *self, guint32 x, guint row, guint *out_from)
{
  guint32 lanes[MOST];
  for (guint i = 0; i < self->lanes; i++) {
    lanes[i]
        = conf_emit (self->script, TINY_INSTR_EXTRACT, self->dtype, turned (self, i), 1, &x);
    out_from[i] = place_of (self, row) + turned (self, i);
  }
  return conf_emit_lanes (self->script, TINY_INSTR_VECTOR, self->dtype, self->lanes,
                          self->lanes, lanes);
}

static gboolean
is_open (guint i)
{
  return i % 3 != 1 && i % 7 != 0;
}

/* A bool for each lane, from a variable that is 1. */
static guint32
emit_gate (Vectors *self, guint32 variable)
{
  ConfScript *s = self->script;
  guint32 lanes[MOST], one = conf_emit_int (s, TINY_DTYPE_I32, 1),
                       two = conf_emit_int (s, TINY_DTYPE_I32, 2);
  guint32 opens = CONF_EMIT (s, CMPLT, BOOL, variable, two),
          closes = CONF_EMIT (s, CMPLT, BOOL, variable, one);
  for (guint i = 0; i < self->lanes; i++)
    lanes[i] = is_open (i) ? opens : closes;
  return conf_emit_lanes (s, TINY_INSTR_VECTOR, TINY_DTYPE_BOOL, self->lanes, self->lanes,
                          lanes);
}

/* A load whose closed lanes are others of memory, and a store that leaves what was there. */
static void
emit_gated (Vectors *self, guint32 variable, guint32 other, const guint *from_other)
{
  guint from[MOST];
  const guint32 gate = emit_gate (self, variable);
  const guint32 load[] = { self->from, emit_at (self, place_of (self, 3)), gate, other };
  for (guint i = 0; i < self->lanes; i++)
    from[i] = is_open (i) ? place_of (self, 3) + i : from_other[i];
  emit_row (self,
            conf_emit_lanes (self->script, TINY_INSTR_LOAD, self->dtype, self->lanes, 4, load),
            from);
  const guint row = self->n_rows++;
  const guint32 store[] = { self->to, emit_at (self, place_of (self, row)), other, gate };
  conf_emit_lanes (self->script, TINY_INSTR_STORE, TINY_DTYPE_VOID, self->lanes, 4, store);
  for (guint i = 0; i < self->lanes; i++)
    if (is_open (i))
      memcpy (self->wanted + (place_of (self, row) + i) * self->width,
              self->in + from_other[i] * self->width, self->width);
}

/* Two vectors into local memory, and one from the middle of both. */
static void
emit_local (Vectors *self, guint32 x, guint32 y)
{
  ConfScript *s = self->script;
  const guint n = self->lanes, behind = self->shift;
  guint from[MOST];
  guint32 local = conf_emit_arg (s, TINY_INSTR_LOCAL, self->dtype, 3 * MOST);
  const guint32 first[] = { local, emit_at (self, behind), x },
                second[] = { local, emit_at (self, behind + n), y },
                middle[] = { local, emit_at (self, 2 * behind) };
  conf_emit_lanes (s, TINY_INSTR_STORE, TINY_DTYPE_VOID, n, 3, first);
  conf_emit_lanes (s, TINY_INSTR_STORE, TINY_DTYPE_VOID, n, 3, second);
  for (guint i = 0; i < n; i++) {
    const guint at = behind + i;
    from[i] = at < n ? place_of (self, 0) + at : place_of (self, 1) + at - n;
  }
  emit_row (self, conf_emit_lanes (s, TINY_INSTR_LOAD, self->dtype, n, 2, middle), from);
}

/* args: dtype, lanes, how far behind a vector's place accesses are. */
static void
run_lanes (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const gboolean is_masked = (subject->target->flags & TINY_TARGET_MASKED) != 0;
  guint from[MOST], from_x[MOST], from_lane[MOST];
  Vectors it;
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "lanes"))
    return;
  ConfScript *s = &rig.script;
  vectors_init (&it, s, self);
  guint32 variable = conf_emit_variable (s);
  guint32 x = emit_load (&it, 0), y = emit_load (&it, 1);
  for (guint i = 0; i < it.lanes; i++) {
    from_x[i] = place_of (&it, 0) + i;
    from_lane[i] = place_of (&it, 1) + it.lanes - 1;
  }
  emit_row (&it, x, from_x);
  guint32 stirred = emit_turned (&it, x, 0, from);
  emit_row (&it, stirred, from);
  guint32 last = conf_emit (s, TINY_INSTR_EXTRACT, it.dtype, it.lanes - 1, 1, &y);
  emit_row (&it, conf_emit_lanes (s, TINY_INSTR_VECTOR, it.dtype, it.lanes, 1, &last),
            from_lane);
  guint32 held = conf_emit_lanes (s, TINY_INSTR_REGISTER, it.dtype, it.lanes, 0, NULL);
  CONF_EMIT (s, STORE, VOID, held, stirred);
  emit_row (&it, conf_emit_lanes (s, TINY_INSTR_LOAD, it.dtype, it.lanes, 1, &held), from);
  if (is_masked)
    emit_gated (&it, variable, stirred, from);
  if (subject->target->local_bytes >= 3 * MOST * it.width)
    emit_local (&it, x, y);
  vectors_run (&it, &rig, subject);
  vectors_clear (&it);
  conf_rig_end (&rig);
}

void
conf_list_lanes (ConfList *out, const TinyTarget *target)
{
  static const TinyDType dtypes[]
      = { TINY_DTYPE_I32, TINY_DTYPE_F32, TINY_DTYPE_U8, TINY_DTYPE_F16, TINY_DTYPE_I64 };
  for (guint d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (guint i = 0; i < 6; i++) {
      const guint lanes = i / 2 == 0 ? 2 : i / 2 == 1 ? 4 : MOST;
      const guint shift = i % 2 ? MIN (3, lanes - 1) : 0;
      const ConfCase it = { .run = run_lanes, .args = { dtypes[d], lanes, shift } };
      g_autofree char *name = g_strdup_printf (
          "lanes/%s/%s%u", tiny_dtype_to_string (dtypes[d]), shift ? "unaligned-" : "", lanes);
      const char *limit = lanes > target->max_lanes ? "the target has not so many lanes"
                          : !conf_has_dtype (target, dtypes[d])
                              ? "the target does not store it, or not compute with it"
                          : shift && !(target->flags & TINY_TARGET_UNALIGNED)
                              ? "the target has not TINY_TARGET_UNALIGNED"
                              : NULL;
      if (limit == NULL)
        conf_list_add (out, &it, "%s", name);
      else
        conf_list_absent (out, limit, "%s", name);
    }
}
