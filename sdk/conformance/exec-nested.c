/* SPDX-License-Identifier: MIT
 *
 * exec-nested.c: the second of two: loops in loops, branches in branches, a second gate, a second local array, barriers
 * in a loop; and the bits of floats that are no numbers. */
#include <math.h>
#include <string.h>

#include "exec.h"
#include "ir/tiny-dtype.h"
#include "oracle.h"

enum { N = 60 };

/* ---- loops in loops ---- */
/* register = register * factor + a + b */
static void
emit_stir (ConfScript *s, guint32 x, guint factor, guint32 a, guint32 b)
{
  guint32 now = CONF_EMIT (s, LOAD, U32, x);
  guint32 by = conf_emit_int (s, TINY_DTYPE_U32, factor);
  guint32 product = CONF_EMIT (s, MUL, U32, now, by);
  guint32 first = CONF_EMIT (s, CAST, U32, a), second = CONF_EMIT (s, CAST, U32, b);
  guint32 sum = CONF_EMIT (s, ADD, U32, product, first);
  guint32 all = CONF_EMIT (s, ADD, U32, sum, second);
  CONF_EMIT (s, STORE, VOID, x, all);
}

/* For each round of a loop: one of the same bound, one as long as the rounds before, one that never runs. */
static void
run_loops (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { POINTS = 8, BOUND = 6 };
  static const gint64 variables[] = { BOUND, 0 };
  guint32 found[POINTS] = { 0 }, *words = found, wanted = 1;
  gsize size = POINTS;
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "nested_loops"))
    return;
  ConfScript *s = &rig.script;
  conf_script_set_grid (s, 0, POINTS);
  guint32 out = conf_emit_param (s, TINY_DTYPE_U32, TINY_PARAM_WRITE, POINTS);
  guint32 bound = conf_emit_variable (s), none = conf_emit_variable (s),
          i = conf_emit_index (s, 0);
  guint32 x = conf_emit_arg (s, TINY_INSTR_REGISTER, TINY_DTYPE_U32, 0);
  guint32 one = conf_emit_int (s, TINY_DTYPE_U32, 1);
  CONF_EMIT (s, STORE, VOID, x, one);
  guint32 outer = CONF_EMIT (s, RANGE, I32, bound);
  guint32 same = CONF_EMIT (s, RANGE, I32, bound);
  guint32 seven = conf_emit_int (s, TINY_DTYPE_I32, 7);
  guint32 row = CONF_EMIT (s, MUL, I32, outer, seven);
  emit_stir (s, x, 31, row, same);
  CONF_EMIT (s, END, VOID, same);
  guint32 before = CONF_EMIT (s, RANGE, I32, outer);
  emit_stir (s, x, 5, before, outer);
  CONF_EMIT (s, END, VOID, before);
  guint32 never = CONF_EMIT (s, RANGE, I32, none);
  emit_stir (s, x, 1000003, never, bound);
  CONF_EMIT (s, END, VOID, never);
  CONF_EMIT (s, END, VOID, outer);
  guint32 result = CONF_EMIT (s, LOAD, U32, x), number = CONF_EMIT (s, CAST, U32, i);
  guint32 sum = CONF_EMIT (s, ADD, U32, result, number);
  CONF_EMIT (s, STORE, VOID, out, i, sum);
  for (guint o = 0; o < BOUND; o++) {
    for (guint p = 0; p < BOUND; p++)
      wanted = wanted * 31 + o * 7 + p;
    for (guint p = 0; p < o; p++)
      wanted = wanted * 5 + p + o;
  }
  if (conf_rig_run (&rig, subject, 1, &words, &size, variables))
    for (guint e = 0; e < POINTS; e++)
      conf_check (trial, found[e] == wanted + e, "point %u is %u, and %u is right", e, found[e],
                  wanted + e);
  conf_rig_end (&rig);
}

/* ---- gates and branches ---- */
typedef struct {
  guint32 words[3][N]; /* the outputs, then the input */
} Points;

static void
points_fill (Points *self, Points *wanted)
{
  for (guint b = 0; b < 3; b++)
    for (guint i = 0; i < N; i++)
      self->words[b][i] = b < 2 ? 770 + b : i * 40503u + 1;
  *wanted = *self;
}

static void
points_run (ConfRig *rig, const ConfSubject *subject, Points *self, const Points *wanted)
{
  static const gsize sizes[] = { N, N, N };
  guint32 *words[] = { self->words[0], self->words[1], self->words[2] };
  if (conf_rig_run (rig, subject, 3, words, sizes, NULL))
    for (guint b = 0; b < 2; b++)
      for (guint i = 0; i < N; i++)
        if (!conf_check (rig->raw.trial, self->words[b][i] == wanted->words[b][i],
                         "element %u of output %u is %u, and %u is right", i, b,
                         self->words[b][i], wanted->words[b][i]))
          break;
}

/* Both outputs; returns the input. */
static guint32
emit_params (ConfScript *s, guint32 outs[2])
{
  conf_script_set_grid (s, 0, N);
  for (guint b = 0; b < 2; b++)
    outs[b] = conf_emit_param (s, TINY_DTYPE_U32, TINY_PARAM_WRITE, N);
  return conf_emit_param (s, TINY_DTYPE_U32, TINY_PARAM_READ, N);
}

static guint32
emit_less (ConfScript *s, guint32 i, gint64 most)
{
  return CONF_EMIT (s, CMPLT, BOOL, i, conf_emit_int (s, TINY_DTYPE_I32, most));
}

static guint32
emit_more (ConfScript *s, guint32 i, gint64 least)
{
  return CONF_EMIT (s, CMPLT, BOOL, conf_emit_int (s, TINY_DTYPE_I32, least), i);
}

/* Two loads and two stores, each with a gate of its own. */
static void
run_gates (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  Points points, wanted;
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "two_gates"))
    return;
  ConfScript *s = &rig.script;
  guint32 outs[2], in = emit_params (s, outs);
  guint32 i = conf_emit_index (s, 0);
  guint32 five = conf_emit_int (s, TINY_DTYPE_U32, 5),
          nine = conf_emit_int (s, TINY_DTYPE_U32, 9);
  guint32 low = emit_less (s, i, 40), high = emit_more (s, i, 20), most = emit_less (s, i, 50),
          least = emit_more (s, i, 10);
  guint32 x = CONF_EMIT (s, LOAD, U32, in, i, low, five),
          y = CONF_EMIT (s, LOAD, U32, in, i, high, nine);
  CONF_EMIT (s, STORE, VOID, outs[0], i, x, most);
  CONF_EMIT (s, STORE, VOID, outs[1], i, y, least);
  points_fill (&points, &wanted);
  for (guint e = 0; e < N; e++) {
    if (e < 50)
      wanted.words[0][e] = e < 40 ? points.words[2][e] : 5;
    if (e > 10)
      wanted.words[1][e] = e > 20 ? points.words[2][e] : 9;
  }
  points_run (&rig, subject, &points, &wanted);
  conf_rig_end (&rig);
}

/* A branch in a branch, and one behind both. */
static void
run_branches (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  Points points, wanted;
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "nested_branches"))
    return;
  ConfScript *s = &rig.script;
  guint32 outs[2], in = emit_params (s, outs);
  guint32 i = conf_emit_index (s, 0), x = CONF_EMIT (s, LOAD, U32, in, i);
  guint32 low = emit_less (s, i, 40), middle = emit_more (s, i, 20),
          high = emit_more (s, i, 50);
  guint32 outer = CONF_EMIT (s, IF, VOID, low);
  CONF_EMIT (s, STORE, VOID, outs[0], i, x);
  guint32 inner = CONF_EMIT (s, IF, VOID, middle);
  CONF_EMIT (s, STORE, VOID, outs[1], i, x);
  CONF_EMIT (s, ENDIF, VOID, inner);
  CONF_EMIT (s, ENDIF, VOID, outer);
  guint32 behind = CONF_EMIT (s, IF, VOID, high);
  CONF_EMIT (s, STORE, VOID, outs[1], i, x);
  CONF_EMIT (s, ENDIF, VOID, behind);
  points_fill (&points, &wanted);
  for (guint e = 0; e < N; e++) {
    if (e < 40)
      wanted.words[0][e] = points.words[2][e];
    if ((e > 20 && e < 40) || e > 50)
      wanted.words[1][e] = points.words[2][e];
  }
  points_run (&rig, subject, &points, &wanted);
  conf_rig_end (&rig);
}

/* ---- barriers in a loop ---- */
enum { ROUNDS = 5, GROUPS = 3 };

/* The result of run_turns(). */
static void
take_turns (guint32 *words, guint items)
{
  g_autofree guint32 *before = g_new (guint32, items);
  for (guint r = 0; r < ROUNDS; r++) {
    memcpy (before, words, items * sizeof *before);
    for (guint i = 0; i < items; i++)
      words[i] = words[i] * 3 + before[items - 1 - i] + 7 * (items - 1 - i) + r;
  }
}

/* In each round an item adds what the item opposite had, from one local array, and its number, from another.
 * args: items. */
static void
run_turns (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const guint items = (guint) self->args[0];
  gsize size = (gsize) items * GROUPS;
  g_autofree guint32 *words = g_new (guint32, size), *wanted = g_new (guint32, size);
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "turns"))
    return;
  ConfScript *s = &rig.script;
  conf_script_set_grid (s, 0, GROUPS);
  conf_script_set_group (s, 0, items);
  guint32 out = conf_emit_param (s, TINY_DTYPE_U32, TINY_PARAM_READ | TINY_PARAM_WRITE, size);
  guint32 values = conf_emit_arg (s, TINY_INSTR_LOCAL, TINY_DTYPE_U32, items),
          numbers = conf_emit_arg (s, TINY_INSTR_LOCAL, TINY_DTYPE_U32, items);
  guint32 i = conf_emit_index (s, 0),
          item = conf_emit_arg (s, TINY_INSTR_GROUP, TINY_DTYPE_I32, 0);
  guint32 minus = conf_emit_int (s, TINY_DTYPE_I32, -1),
          last = conf_emit_int (s, TINY_DTYPE_I32, (gint64) items - 1);
  guint32 negative = CONF_EMIT (s, MUL, I32, item, minus);
  guint32 opposite = CONF_EMIT (s, ADD, I32, last, negative);
  guint32 x = conf_emit_arg (s, TINY_INSTR_REGISTER, TINY_DTYPE_U32, 0);
  guint32 first = CONF_EMIT (s, LOAD, U32, out, i);
  CONF_EMIT (s, STORE, VOID, x, first);
  guint32 seven = conf_emit_int (s, TINY_DTYPE_U32, 7), own = CONF_EMIT (s, CAST, U32, item);
  guint32 number = CONF_EMIT (s, MUL, U32, own, seven);
  CONF_EMIT (s, STORE, VOID, numbers, item, number);
  guint32 bound = conf_emit_int (s, TINY_DTYPE_I32, ROUNDS);
  guint32 r = CONF_EMIT (s, RANGE, I32, bound);
  guint32 now = CONF_EMIT (s, LOAD, U32, x);
  CONF_EMIT (s, STORE, VOID, values, item, now);
  conf_emit_arg (s, TINY_INSTR_BARRIER, TINY_DTYPE_VOID, 0);
  guint32 other = CONF_EMIT (s, LOAD, U32, values, opposite),
          its = CONF_EMIT (s, LOAD, U32, numbers, opposite);
  guint32 three = conf_emit_int (s, TINY_DTYPE_U32, 3), round = CONF_EMIT (s, CAST, U32, r);
  guint32 product = CONF_EMIT (s, MUL, U32, now, three);
  guint32 sum = CONF_EMIT (s, ADD, U32, product, other);
  guint32 more = CONF_EMIT (s, ADD, U32, sum, its), all = CONF_EMIT (s, ADD, U32, more, round);
  CONF_EMIT (s, STORE, VOID, x, all);
  conf_emit_arg (s, TINY_INSTR_BARRIER, TINY_DTYPE_VOID, 0);
  CONF_EMIT (s, END, VOID, r);
  guint32 result = CONF_EMIT (s, LOAD, U32, x);
  CONF_EMIT (s, STORE, VOID, out, i, result);
  for (gsize e = 0; e < size; e++)
    words[e] = wanted[e] = (guint32) e * 40503u + 1;
  for (guint g = 0; g < GROUPS; g++)
    take_turns (wanted + g * items, items);
  if (conf_rig_run (&rig, subject, 1, &words, &size, NULL))
    for (gsize e = 0; e < size; e++)
      if (!conf_check (trial, words[e] == wanted[e],
                       "item %" G_GSIZE_FORMAT " is %u, and %u is right", e, words[e],
                       wanted[e]))
        break;
  conf_rig_end (&rig);
}

/* ---- bits ---- */
/* Infinities, NaNs of either sign and of any payload, quiet or not; the exponent is all ones in each. */
static guint
fill_bits (guint64 *out, guint n_bits, guint n_mantissa)
{
  const guint64 one = 1, sign = one << (n_bits - 1), quiet = one << (n_mantissa - 1),
                exponent = (sign - 1) >> n_mantissa << n_mantissa;
  const guint64 payloads[]
      = { 0, 1, 2, quiet, quiet | 1, quiet | 0x155, quiet - 1, quiet | (quiet - 1) };
  guint n = 0;
  for (guint i = 0; i < G_N_ELEMENTS (payloads); i++)
    for (guint s = 0; s < 2; s++)
      out[n++] = exponent | (payloads[i] & ((quiet << 1) - 1)) | (s ? sign : 0);
  return n;
}

/* args: the float, the integer of its size, bits of the mantissa, whether it comes from the integer. */
static void
run_bits (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { MOST = 16 };
  const TinyDType from = (TinyDType) self->args[self->args[3] ? 1 : 0],
                  to = (TinyDType) self->args[self->args[3] ? 0 : 1];
  const guint n_bytes = (guint) tiny_dtype_get_n_bytes (from);
  guint64 bits[MOST];
  guint32 buffers[2][2 * MOST] = { { 0 } }, *words[] = { buffers[0], buffers[1] };
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "bits"))
    return;
  const guint n = fill_bits (bits, 8 * n_bytes, (guint) self->args[2]);
  const gsize sizes[] = { n * n_bytes / 4, n * n_bytes / 4 };
  for (guint k = 0; k < n; k++) /* little endian, as all devices are */
    memcpy ((guint8 *) buffers[1] + k * n_bytes, &bits[k], n_bytes);
  ConfScript *s = &rig.script;
  conf_script_set_grid (s, 0, n);
  guint32 out = conf_emit_param (s, to, TINY_PARAM_WRITE, n),
          in = conf_emit_param (s, from, TINY_PARAM_READ, n), i = conf_emit_index (s, 0);
  guint32 x = conf_emit (s, TINY_INSTR_LOAD, from, 0, 2, (const guint32[]){ in, i });
  guint32 y = conf_emit (s, TINY_INSTR_BITCAST, to, 0, 1, &x);
  CONF_EMIT (s, STORE, VOID, out, i, y);
  if (conf_rig_run (&rig, subject, 2, words, sizes, NULL))
    for (guint k = 0; k < n; k++) {
      guint64 found = 0;
      memcpy (&found, (const guint8 *) buffers[0] + k * n_bytes, n_bytes);
      if (!conf_check (trial, found == bits[k],
                       "the bits 0x%" G_GINT64_MODIFIER "x became 0x%" G_GINT64_MODIFIER "x",
                       bits[k], found))
        break;
    }
  conf_rig_end (&rig);
}

/* The float of @dtype that lies at @bytes. */
static double
read_float (TinyDType dtype, const guint8 *bytes)
{
  guint64 raw = 0;
  memcpy (&raw, bytes, tiny_dtype_get_n_bytes (dtype));
  return conf_to_double (conf_decode (dtype, &raw, 0));
}

/* A NaN of any payload is cast to a NaN, an infinity to itself. args: the f32 or f64, its mantissa's bits, the other. */
static void
run_casts (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { MOST = 16 };
  const TinyDType from = (TinyDType) self->args[0], to = (TinyDType) self->args[2];
  const guint n_bytes = (guint) tiny_dtype_get_n_bytes (from);
  guint64 bits[MOST];
  guint32 buffers[2][2 * MOST] = { { 0 } }, *words[] = { buffers[0], buffers[1] };
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "casts"))
    return;
  const guint n = fill_bits (bits, 8 * n_bytes, (guint) self->args[1]);
  const gsize sizes[] = { n * tiny_dtype_get_n_bytes (to) / 4, n * n_bytes / 4 };
  for (guint k = 0; k < n; k++)
    memcpy ((guint8 *) buffers[1] + k * n_bytes, &bits[k], n_bytes);
  ConfScript *s = &rig.script;
  conf_script_set_grid (s, 0, n);
  guint32 out = conf_emit_param (s, to, TINY_PARAM_WRITE, n),
          in = conf_emit_param (s, from, TINY_PARAM_READ, n), i = conf_emit_index (s, 0);
  guint32 x = conf_emit (s, TINY_INSTR_LOAD, from, 0, 2, (const guint32[]){ in, i });
  guint32 y = conf_emit (s, TINY_INSTR_CAST, to, 0, 1, &x);
  CONF_EMIT (s, STORE, VOID, out, i, y);
  if (conf_rig_run (&rig, subject, 2, words, sizes, NULL))
    for (guint k = 0; k < n; k++) {
      const double x_k
          = read_float (from, (const guint8 *) &bits[k]),
          y_k = read_float (to, (const guint8 *) buffers[0] + k * tiny_dtype_get_n_bytes (to));
      if (!conf_check (trial, isnan (x_k) ? isnan (y_k) : x_k == y_k,
                       "of the bits 0x%" G_GINT64_MODIFIER "x came %g, and %g is right",
                       bits[k], y_k, x_k))
        break;
    }
  conf_rig_end (&rig);
}

/* ---- lists ---- */
static void
list_casts (ConfList *out, const TinyTarget *target)
{
  static const struct {
    TinyDType from, to;
    guint n_mantissa;
  } rows[] = { { TINY_DTYPE_F32, TINY_DTYPE_F16, 23 },
               { TINY_DTYPE_F32, TINY_DTYPE_BF16, 23 },
               { TINY_DTYPE_F32, TINY_DTYPE_F64, 23 },
               { TINY_DTYPE_F64, TINY_DTYPE_F32, 52 } };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    const ConfCase it
        = { .run = run_casts, .args = { rows[i].from, rows[i].n_mantissa, rows[i].to } };
    const guint32 both = TINY_DTYPE_BIT (rows[i].from) | TINY_DTYPE_BIT (rows[i].to);
    const guint64 bit = TINY_INSTR_BIT (TINY_INSTR_CAST);
    const char *from = tiny_dtype_to_string (rows[i].from),
               *to = tiny_dtype_to_string (rows[i].to);
    const char *limit = NULL;
    if ((target->dtypes_storage & both) != both)
      limit = "the target does not store it";
    else if ((target->ops[rows[i].from] & target->ops[rows[i].to] & bit) == 0)
      limit = "the target has no CAST of it";
    else if ((target->flags & TINY_TARGET_REASSOCIATES) != 0)
      limit = "the target takes floats for real numbers";
    if (limit != NULL)
      conf_list_absent (out, limit, "bits/cast-%s-%s", from, to);
    else
      conf_list_add (out, &it, "bits/cast-%s-%s", from, to);
  }
}

static const char *
find_bits_limit (const TinyTarget *target, TinyDType a, TinyDType b)
{
  const guint32 both = TINY_DTYPE_BIT (a) | TINY_DTYPE_BIT (b);
  const guint64 bit = TINY_INSTR_BIT (TINY_INSTR_BITCAST);
  if ((target->dtypes_storage & both) != both)
    return "the target does not store it";
  if ((target->ops[a] & target->ops[b] & bit) == 0)
    return "the target has no BITCAST of it";
  return (target->flags & TINY_TARGET_REASSOCIATES) != 0
             ? "the target takes floats for real numbers"
             : NULL;
}

static void
list_bits (ConfList *out, const TinyTarget *target)
{
  static const struct {
    TinyDType dtype, integer;
    guint n_mantissa;
  } rows[] = { { TINY_DTYPE_F32, TINY_DTYPE_I32, 23 },
               { TINY_DTYPE_F64, TINY_DTYPE_I64, 52 },
               { TINY_DTYPE_F16, TINY_DTYPE_I16, 10 },
               { TINY_DTYPE_BF16, TINY_DTYPE_I16, 7 } };
  for (guint i = 0; i < 2 * G_N_ELEMENTS (rows); i++) {
    const ConfCase it
        = { .run = run_bits,
            .args = { rows[i / 2].dtype, rows[i / 2].integer, rows[i / 2].n_mantissa, i % 2 } };
    const char *limit = find_bits_limit (target, rows[i / 2].dtype, rows[i / 2].integer);
    const char *name = tiny_dtype_to_string (rows[i / 2].dtype), *way = i % 2 ? "to" : "from";
    if (limit != NULL)
      conf_list_absent (out, limit, "bits/%s-%s", way, name);
    else
      conf_list_add (out, &it, "bits/%s-%s", way, name);
  }
}

static void
list_turns (ConfList *out, const TinyTarget *target)
{
  static const guint items[] = { 2, 64 };
  for (guint i = 0; i < G_N_ELEMENTS (items); i++) {
    const guint64 size[6] = { GROUPS, 1, 1, items[i], 1, 1 };
    const ConfCase it = { .run = run_turns, .args = { items[i] } };
    const char *limit = conf_find_grid_limit (target, size);
    if (limit == NULL && 2 * items[i] * sizeof (guint32) > target->local_bytes)
      limit = "the target has less local memory";
    if (limit != NULL)
      conf_list_absent (out, limit, "nested/turns-%u", items[i]);
    else
      conf_list_add (out, &it, "nested/turns-%u", items[i]);
  }
}

void
conf_list_nested (ConfList *out, const TinyTarget *target)
{
  conf_list_add (out, &(const ConfCase){ .run = run_loops }, "nested/loops");
  conf_list_add (out, &(const ConfCase){ .run = run_gates }, "nested/gates");
  conf_list_add (out, &(const ConfCase){ .run = run_branches }, "nested/branches");
  list_turns (out, target);
  list_bits (out, target);
  list_casts (out, target);
}
