/* SPDX-License-Identifier: MIT
 *
 * exec-carried.c: elements of every dtype go through registers, local memory, gates and constants, and come out as they
 * were; many registers and constants at once, blocks in blocks, and what a program reads of what it stored. */
#include <string.h>

#include "exec.h"
#include "ir/tiny-dtype.h"
#include "oracle.h"

enum { POINTS = 3, M = 16, ROWS = 5, FAR = 1 << 28 };

gboolean
conf_has_dtype (const TinyTarget *target, TinyDType dtype)
{
  return (target->dtypes_storage & target->dtypes_compute & TINY_DTYPE_BIT (dtype)) != 0;
}

static guint32
emit_times (ConfScript *s, guint32 a, gint64 b)
{
  return CONF_EMIT (s, MUL, I32, a, conf_emit_int (s, TINY_DTYPE_I32, b));
}

static guint32
emit_plus (ConfScript *s, guint32 a, gint64 b)
{
  return CONF_EMIT (s, ADD, I32, a, conf_emit_int (s, TINY_DTYPE_I32, b));
}

static guint32
emit_less (ConfScript *s, guint32 i, gint64 most)
{
  return CONF_EMIT (s, CMPLT, BOOL, i, conf_emit_int (s, TINY_DTYPE_I32, most));
}

/* ---- elements of one dtype ---- */

/* Element k, as a CONST has it: of either sign, with bits in every byte. */
static gint64
element_at (TinyDType dtype, guint k)
{
  if (dtype == TINY_DTYPE_BOOL)
    return k % 3 == 1;
  if (tiny_dtype_is_float (dtype))
    return conf_from_double (((gint) (k % 13) - 6) * (dtype == TINY_DTYPE_F64 ? 1.0 / 3 : 0.5));
  guint64 bits = 0;
  conf_encode (dtype, &bits, 0, (gint64) ((k + 1) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15)));
  return conf_decode (dtype, &bits, 0);
}

typedef struct {
  TinyDType dtype;
  gsize width;
  guint8 *in, *out, *wanted; /* in: 2 rows of each point, out: ROWS of all points */
} Carried;

static void
carried_init (Carried *self, TinyDType dtype)
{
  const gsize width = tiny_dtype_get_n_bytes (dtype);
  *self = (Carried){ .dtype = dtype, .width = width };
  self->in = g_malloc0 (2 * POINTS * M * width);
  self->out = g_malloc0 (ROWS * POINTS * M * width);
  self->wanted = g_malloc0 (ROWS * POINTS * M * width);
  for (guint k = 0; k < 2 * POINTS * M; k++) {
    conf_encode (dtype, self->in, k, element_at (dtype, k));
  }
}

static void
carried_clear (Carried *self)
{
  g_free (self->in);
  g_free (self->out);
  g_free (self->wanted);
}

/* Element @j of row @row of point @i is @value of the input, or the constant where it is below 0. */
static void
want (Carried *self, guint row, guint i, guint j, gint value)
{
  guint8 *to = self->wanted + ((row * POINTS + i) * M + j) * self->width;
  if (value < 0)
    conf_encode (self->dtype, to, 0, element_at (self->dtype, 100));
  else
    memcpy (to, self->in + (gsize) value * self->width, self->width);
}

static void
carried_run (Carried *self, ConfRig *rig, const ConfSubject *subject, guint n_rows)
{
  const gint64 bound = M; /* no compiler is to unroll it */
  guint32 *words[] = { (guint32 *) (gpointer) self->out, (guint32 *) (gpointer) self->in };
  const gsize sizes[] = { ROWS * POINTS * M * self->width / sizeof (guint32),
                          2 * POINTS * M * self->width / sizeof (guint32) };
  if (!conf_rig_run (rig, subject, 2, words, sizes, &bound))
    return;
  for (guint k = 0; k < n_rows * POINTS * M; k++) {
    const guint8 *got = self->out + k * self->width, *right = self->wanted + k * self->width;
    g_autofree char *is = conf_value_to_string (self->dtype, conf_decode (self->dtype, got, 0));
    g_autofree char *should
        = conf_value_to_string (self->dtype, conf_decode (self->dtype, right, 0));
    if (!conf_check (rig->raw.trial, memcmp (got, right, self->width) == 0,
                     "row %u, point %u, element %u is %s, and %s is right", k / M / POINTS,
                     k / M % POINTS, k % M, is, should))
      break;
  }
}

typedef struct {
  guint32 out, in, bound, first; /* the point's own first element of a row */
} Places;

static Places
emit_places (ConfScript *s, TinyDType dtype)
{
  Places self;
  conf_script_set_grid (s, 0, POINTS);
  self.out = conf_emit_param (s, dtype, TINY_PARAM_WRITE, ROWS * POINTS * M);
  self.in = conf_emit_param (s, dtype, TINY_PARAM_READ, 2 * POINTS * M);
  self.bound = conf_emit_variable (s);
  self.first = emit_times (s, conf_emit_index (s, 0), M);
  return self;
}

static guint32
emit_load (ConfScript *s, TinyDType dtype, guint32 from, guint32 at)
{
  return conf_emit (s, TINY_INSTR_LOAD, dtype, 0, 2, (const guint32[]){ from, at });
}

static void
emit_row (ConfScript *s, const Places *places, guint row, guint32 j, guint32 value)
{
  guint32 at
      = emit_plus (s, CONF_EMIT (s, ADD, I32, places->first, j), (gint64) row * POINTS * M);
  CONF_EMIT (s, STORE, VOID, places->out, at, value);
}

/* Rows: a register; a closed gate's alternative, from memory, at an index far from any; a constant's; what a store whose
 * gate is closed, as far away, left. args: the dtype. */
static void
run_registers (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const TinyDType dtype = (TinyDType) self->args[0];
  Carried it;
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "registers"))
    return;
  carried_init (&it, dtype);
  ConfScript *s = &rig.script;
  const Places places = emit_places (s, dtype);
  guint32 x = conf_emit_arg (s, TINY_INSTR_REGISTER, dtype, 0);
  guint32 constant = conf_emit_int (s, dtype, element_at (dtype, 100));
  CONF_EMIT (s, STORE, VOID, x, constant);
  guint32 j = CONF_EMIT (s, RANGE, I32, places.bound);
  guint32 at = CONF_EMIT (s, ADD, I32, places.first, j), second = emit_plus (s, at, POINTS * M);
  emit_row (s, &places, 0, j, conf_emit (s, TINY_INSTR_LOAD, dtype, 0, 1, &x));
  CONF_EMIT (s, STORE, VOID, x, emit_load (s, dtype, places.in, at));
  guint32 open = emit_less (s, j, 7), odd = emit_less (s, j, 11);
  guint32 below = emit_plus (s, at, -FAR), above = emit_plus (s, at, FAR);
  guint32 far = CONF_EMIT (s, WHERE, I32, odd, below, above);
  guint32 place = CONF_EMIT (s, WHERE, I32, open, at, far);
  guint32 other = emit_load (s, dtype, places.in, second);
  guint32 one = conf_emit (s, TINY_INSTR_LOAD, dtype, 0, 4,
                           (const guint32[]){ places.in, place, open, other });
  emit_row (s, &places, 1, j, one);
  guint32 two = conf_emit (s, TINY_INSTR_LOAD, dtype, 0, 4,
                           (const guint32[]){ places.in, place, open, constant });
  emit_row (s, &places, 2, j, two);
  guint32 inside = emit_plus (s, at, 3 * POINTS * M);
  guint32 target = CONF_EMIT (s, WHERE, I32, open, inside, far);
  CONF_EMIT (s, STORE, VOID, places.out, target, other, open);
  CONF_EMIT (s, END, VOID, j);
  for (guint i = 0; i < POINTS; i++)
    for (guint e = 0; e < M; e++) {
      want (&it, 0, i, e, e == 0 ? -1 : (gint) (i * M + e - 1));
      want (&it, 1, i, e, (gint) (i * M + e + (e < 7 ? 0 : POINTS * M)));
      want (&it, 2, i, e, e < 7 ? (gint) (i * M + e) : -1);
      if (e < 7)
        want (&it, 3, i, e, (gint) (i * M + e + POINTS * M));
      else /* as it was */
        memcpy (it.wanted + ((3 * POINTS + i) * M + e) * it.width,
                it.out + ((3 * POINTS + i) * M + e) * it.width, it.width);
    }
  carried_run (&it, &rig, subject, 4);
  carried_clear (&it);
  conf_rig_end (&rig);
}

/* Rows: one local array, turned around; another; the first behind gates; the second after stores behind gates.
 * args: the dtype. */
static void
run_local (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const TinyDType dtype = (TinyDType) self->args[0];
  Carried it;
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "local"))
    return;
  carried_init (&it, dtype);
  ConfScript *s = &rig.script;
  const Places places = emit_places (s, dtype);
  guint32 one = conf_emit_arg (s, TINY_INSTR_LOCAL, dtype, M),
          two = conf_emit_arg (s, TINY_INSTR_LOCAL, dtype, M);
  guint32 constant = conf_emit_int (s, dtype, element_at (dtype, 100));
  guint32 j = CONF_EMIT (s, RANGE, I32, places.bound);
  guint32 at = CONF_EMIT (s, ADD, I32, places.first, j), second = emit_plus (s, at, POINTS * M);
  guint32 turned = emit_plus (s, emit_times (s, j, -1), M - 1);
  CONF_EMIT (s, STORE, VOID, one, turned, emit_load (s, dtype, places.in, at));
  CONF_EMIT (s, STORE, VOID, two, j, emit_load (s, dtype, places.in, second));
  CONF_EMIT (s, END, VOID, j);
  guint32 k = CONF_EMIT (s, RANGE, I32, places.bound);
  emit_row (s, &places, 0, k, emit_load (s, dtype, one, k));
  emit_row (s, &places, 1, k, emit_load (s, dtype, two, k));
  guint32 open = emit_less (s, k, 5);
  emit_row (
      s, &places, 2, k,
      conf_emit (s, TINY_INSTR_LOAD, dtype, 0, 4, (const guint32[]){ one, k, open, constant }));
  CONF_EMIT (s, STORE, VOID, two, k, constant, open);
  CONF_EMIT (s, END, VOID, k);
  guint32 q = CONF_EMIT (s, RANGE, I32, places.bound);
  emit_row (s, &places, 3, q, emit_load (s, dtype, two, q));
  CONF_EMIT (s, END, VOID, q);
  for (guint i = 0; i < POINTS; i++)
    for (guint e = 0; e < M; e++) {
      const gint first = (gint) (i * M + M - 1 - e), other = (gint) (i * M + e + POINTS * M);
      want (&it, 0, i, e, first);
      want (&it, 1, i, e, other);
      want (&it, 2, i, e, e < 5 ? first : -1);
      want (&it, 3, i, e, e < 5 ? -1 : other);
    }
  carried_run (&it, &rig, subject, 4);
  carried_clear (&it);
  conf_rig_end (&rig);
}

/* ---- many at once ---- */
/* args: how many registers, which hold numbers of the input while others are written, and as many constants. */
static void
run_many (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { MOST = 64 };
  const guint n = (guint) self->args[0];
  guint32 found[MOST] = { 0 }, in[MOST], registers[MOST], *words[] = { found, in };
  const gsize sizes[] = { n, n };
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "many_registers"))
    return;
  ConfScript *s = &rig.script;
  guint32 out = conf_emit_param (s, TINY_DTYPE_U32, TINY_PARAM_WRITE, n),
          from = conf_emit_param (s, TINY_DTYPE_U32, TINY_PARAM_READ, n);
  for (guint i = 0; i < n; i++) {
    in[i] = i * 40503u + 1;
    registers[i] = conf_emit_arg (s, TINY_INSTR_REGISTER, TINY_DTYPE_U32, 0);
    guint32 at = conf_emit_int (s, TINY_DTYPE_I32, i);
    CONF_EMIT (s, STORE, VOID, registers[i], emit_load (s, TINY_DTYPE_U32, from, at));
  }
  for (guint i = 0; i < n; i++) {
    guint32 x = CONF_EMIT (s, LOAD, U32, registers[i]);
    guint32 more = conf_emit_int (s, TINY_DTYPE_U32, 1000 + 77 * i);
    guint32 sum = CONF_EMIT (s, ADD, U32, x, more), at = conf_emit_int (s, TINY_DTYPE_I32, i);
    CONF_EMIT (s, STORE, VOID, out, at, sum);
  }
  if (conf_rig_run (&rig, subject, 2, words, sizes, NULL))
    for (guint i = 0; i < n; i++)
      conf_check (trial, found[i] == in[i] + 1000 + 77 * i,
                  "register %u of %u gives %u, and %u is right", i, n, found[i],
                  in[i] + 1000 + 77 * i);
  conf_rig_end (&rig);
}

/* ---- blocks in blocks ---- */
enum { DEPTH = 5, N = 40, ALL_ROUNDS = 2 * 3 * 2 * 3 * 4 };

/* Point i goes in as deep as it has bits, and counts. */
static void
run_branches (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  guint32 found[N], *words = found, blocks[DEPTH];
  gsize size = N;
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "deep_branches"))
    return;
  ConfScript *s = &rig.script;
  conf_script_set_grid (s, 0, N);
  guint32 out = conf_emit_param (s, TINY_DTYPE_U32, TINY_PARAM_WRITE, N);
  guint32 i = conf_emit_index (s, 0);
  CONF_EMIT (s, STORE, VOID, out, i, conf_emit_int (s, TINY_DTYPE_U32, 0));
  for (guint d = 0; d < DEPTH; d++) {
    guint32 open = emit_less (s, i, N - 7 * ((gint64) d + 1));
    blocks[d] = CONF_EMIT (s, IF, VOID, open);
    CONF_EMIT (s, STORE, VOID, out, i, conf_emit_int (s, TINY_DTYPE_U32, d + 1));
  }
  for (guint d = DEPTH; d-- > 0;)
    CONF_EMIT (s, ENDIF, VOID, blocks[d]);
  memset (found, 0xff, sizeof found);
  if (conf_rig_run (&rig, subject, 1, &words, &size, NULL))
    for (guint e = 0; e < N; e++) {
      guint32 wanted = 0;
      while (wanted < DEPTH && e + 7 * (wanted + 1) < N)
        wanted++;
      conf_check (trial, found[e] == wanted, "point %u went %u deep, and %u is right", e,
                  found[e], wanted);
    }
  conf_rig_end (&rig);
}

/* A loop in each loop; the innermost stirs what it is told of all counters. */
static void
run_loops (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  static const gint64 bounds[DEPTH] = { 2, 3, 2, 3, 4 };
  guint32 found = 0, *words = &found, loops[DEPTH], wanted = 1;
  gsize size = 1;
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "deep_loops"))
    return;
  ConfScript *s = &rig.script;
  guint32 out = conf_emit_param (s, TINY_DTYPE_U32, TINY_PARAM_WRITE, 1), variables[DEPTH];
  for (guint d = 0; d < DEPTH; d++)
    variables[d] = conf_emit_variable (s);
  guint32 x = conf_emit_arg (s, TINY_INSTR_REGISTER, TINY_DTYPE_U32, 0);
  CONF_EMIT (s, STORE, VOID, x, conf_emit_int (s, TINY_DTYPE_U32, 1));
  guint32 number = conf_emit_int (s, TINY_DTYPE_I32, 0);
  for (guint d = 0; d < DEPTH; d++) {
    loops[d] = CONF_EMIT (s, RANGE, I32, variables[d]);
    guint32 row = emit_times (s, number, 5);
    number = CONF_EMIT (s, ADD, I32, row, loops[d]);
  }
  guint32 now = CONF_EMIT (s, LOAD, U32, x), by = conf_emit_int (s, TINY_DTYPE_U32, 31);
  guint32 product = CONF_EMIT (s, MUL, U32, now, by), more = CONF_EMIT (s, CAST, U32, number);
  CONF_EMIT (s, STORE, VOID, x, CONF_EMIT (s, ADD, U32, product, more));
  for (guint d = DEPTH; d-- > 0;)
    CONF_EMIT (s, END, VOID, loops[d]);
  guint32 zero = conf_emit_int (s, TINY_DTYPE_I32, 0);
  CONF_EMIT (s, STORE, VOID, out, zero, CONF_EMIT (s, LOAD, U32, x));
  for (guint k = 0; k < ALL_ROUNDS; k++) {
    guint32 rest = k, place = 1, all = 0;
    for (guint d = DEPTH; d-- > 0; place *= 5) {
      all += rest % (guint32) bounds[d] * place;
      rest /= (guint32) bounds[d];
    }
    wanted = wanted * 31 + all;
  }
  if (conf_rig_run (&rig, subject, 1, &words, &size, bounds))
    conf_check (trial, found == wanted, "five loops gave %u, and %u is right", found, wanted);
  conf_rig_end (&rig);
}

/* A loop of i64, by its bound: as a variable, and as a constant. args: the bound, what is right. */
static void
run_wide_rounds (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const gint64 bound = self->args[0];
  guint32 found[2] = { 99, 99 }, *words = found;
  gsize size = 2;
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "wide_rounds"))
    return;
  ConfScript *s = &rig.script;
  guint32 out = conf_emit_param (s, TINY_DTYPE_U32, TINY_PARAM_WRITE, 2);
  const guint32 bounds[]
      = { conf_emit_variable_of (s, TINY_DTYPE_I64), conf_emit_int (s, TINY_DTYPE_I64, bound) };
  for (guint i = 0; i < 2; i++) {
    guint32 x = conf_emit_arg (s, TINY_INSTR_REGISTER, TINY_DTYPE_U32, 0);
    CONF_EMIT (s, STORE, VOID, x, conf_emit_int (s, TINY_DTYPE_U32, 0));
    guint32 k = CONF_EMIT (s, RANGE, I64, bounds[i]);
    guint32 now = CONF_EMIT (s, LOAD, U32, x);
    guint32 more = CONF_EMIT (s, ADD, U32, now, conf_emit_int (s, TINY_DTYPE_U32, 1));
    CONF_EMIT (s, STORE, VOID, x, more);
    CONF_EMIT (s, END, VOID, k);
    guint32 result = CONF_EMIT (s, LOAD, U32, x), at = conf_emit_int (s, TINY_DTYPE_I32, i);
    CONF_EMIT (s, STORE, VOID, out, at, result);
  }
  if (conf_rig_run (&rig, subject, 1, &words, &size, &bound))
    for (guint i = 0; i < 2; i++)
      conf_check (trial, found[i] == self->args[1],
                  "a loop of the bound %" G_GINT64_FORMAT " ran %u times, and %u is right",
                  bound, found[i], (guint) self->args[1]);
  conf_rig_end (&rig);
}

/* ---- what was stored is read ---- */
static void
run_stored (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  guint32 found[2 * N], *words = found;
  gsize size = 2 * N;
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "stored"))
    return;
  ConfScript *s = &rig.script;
  conf_script_set_grid (s, 0, N);
  guint32 out = conf_emit_param (s, TINY_DTYPE_U32, TINY_PARAM_READ | TINY_PARAM_WRITE, 2 * N);
  guint32 i = conf_emit_index (s, 0), before = emit_load (s, TINY_DTYPE_U32, out, i);
  guint32 three = conf_emit_int (s, TINY_DTYPE_U32, 3);
  CONF_EMIT (s, STORE, VOID, out, i, CONF_EMIT (s, MUL, U32, before, three));
  guint32 now = emit_load (s, TINY_DTYPE_U32, out, i);
  CONF_EMIT (s, STORE, VOID, out, i, CONF_EMIT (s, ADD, U32, now, three));
  guint32 last = emit_load (s, TINY_DTYPE_U32, out, i);
  CONF_EMIT (s, STORE, VOID, out, emit_plus (s, i, N), CONF_EMIT (s, MUL, U32, last, three));
  for (guint e = 0; e < 2 * N; e++)
    found[e] = e * 40503u + 1;
  if (conf_rig_run (&rig, subject, 1, &words, &size, NULL))
    for (guint e = 0; e < 2 * N; e++) {
      const guint32 stored = (e % N * 40503u + 1) * 3 + 3, wanted = e < N ? stored : stored * 3;
      if (!conf_check (trial, found[e] == wanted, "element %u is %u, and %u is right", e,
                       found[e], wanted))
        break;
    }
  conf_rig_end (&rig);
}

/* ---- lists ---- */
static void
list_dtypes (ConfList *out, const TinyTarget *target)
{
  for (TinyDType dtype = TINY_DTYPE_BOOL; dtype <= TINY_DTYPE_F64; dtype++) {
    const char *d = tiny_dtype_to_string (dtype);
    const gsize local = 2 * MAX (M * tiny_dtype_get_n_bytes (dtype), 64);
    const ConfCase registers = { .run = run_registers, .args = { dtype } };
    const ConfCase in_local = { .run = run_local, .args = { dtype } };
    const char *limit = conf_has_dtype (target, dtype)
                            ? NULL
                            : "the target does not store it, or not compute with it";
    if (limit == NULL)
      conf_list_add (out, &registers, "carried/registers-%s", d);
    else
      conf_list_absent (out, limit, "carried/registers-%s", d);
    if (limit == NULL && local > target->local_bytes)
      limit = "the target has less local memory";
    if (limit == NULL)
      conf_list_add (out, &in_local, "carried/local-%s", d);
    else
      conf_list_absent (out, limit, "carried/local-%s", d);
  }
}

void
conf_list_carried (ConfList *out, const TinyTarget *target)
{
  static const gint64 bounds[][2]
      = { { 3 - (G_GINT64_CONSTANT (1) << 32), 0 }, { G_MININT64 + 2, 0 }, { 5, 5 } };
  list_dtypes (out, target);
  conf_list_add (out, &(const ConfCase){ .run = run_many, .args = { 12 } }, "carried/many-12");
  conf_list_add (out, &(const ConfCase){ .run = run_many, .args = { 64 } }, "carried/many-64");
  conf_list_add (out, &(const ConfCase){ .run = run_branches }, "nested/deep-branches");
  if (conf_most_rounds (target, ALL_ROUNDS) < ALL_ROUNDS)
    conf_list_absent (out, "the target's max_rounds is less", "nested/deep-loops");
  else
    conf_list_add (out, &(const ConfCase){ .run = run_loops }, "nested/deep-loops");
  conf_list_add (out, &(const ConfCase){ .run = run_stored }, "carried/stored");
  for (guint i = 0; i < G_N_ELEMENTS (bounds); i++) {
    const ConfCase wide = { .run = run_wide_rounds, .args = { bounds[i][0], bounds[i][1] } };
    if ((target->ops[TINY_DTYPE_I64] & TINY_INSTR_BIT (TINY_INSTR_ADD)) != 0)
      conf_list_add (out, &wide, "rounds/i64-%u", i);
    else
      conf_list_absent (out, "the target has no i64", "rounds/i64-%u", i);
  }
}
