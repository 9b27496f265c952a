/* SPDX-License-Identifier: MIT
 *
 * exec-structure.c: what is around the ops of a program: loops, branches, registers, local memory. */
#include "exec.h"

/* ---- loops ---- */
/* out[i] = the sum of k * (k is odd ? 3 : 1) for k < i * variable, by loops, an IF and a register. */
static void
run_loops (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  enum { N = 40 };
  const gint64 factor = 3;
  gsize size = N;
  g_autofree guint32 *words = g_new0 (guint32, N);
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "loops"))
    return;
  ConfScript *s = &rig.script;
  conf_script_set_grid (s, 0, N);
  guint32 out = conf_emit_param (s, TINY_DTYPE_U32, TINY_PARAM_WRITE, N);
  guint32 variable = conf_emit_variable (s), i = conf_emit_index (s, 0);
  guint32 sum = conf_emit_arg (s, TINY_INSTR_REGISTER, TINY_DTYPE_U32, 0);
  guint32 zero = conf_emit_int (s, TINY_DTYPE_U32, 0),
          one = conf_emit_int (s, TINY_DTYPE_I32, 1);
  guint32 no = conf_emit_int (s, TINY_DTYPE_I32, 0), two = conf_emit_int (s, TINY_DTYPE_U32, 2);
  CONF_EMIT (s, STORE, VOID, sum, zero);
  guint32 bound = CONF_EMIT (s, MUL, I32, i, variable);
  guint32 k = CONF_EMIT (s, RANGE, I32, bound);
  guint32 value = CONF_EMIT (s, CAST, U32, k);
  guint32 now = CONF_EMIT (s, LOAD, U32, sum);
  guint32 more = CONF_EMIT (s, ADD, U32, now, value);
  CONF_EMIT (s, STORE, VOID, sum, more);
  guint32 bit = CONF_EMIT (s, AND, I32, k, one);
  guint32 odd = CONF_EMIT (s, CMPLT, BOOL, no, bit);
  guint32 branch = CONF_EMIT (s, IF, VOID, odd);
  guint32 again = CONF_EMIT (s, LOAD, U32, sum);
  guint32 twice = CONF_EMIT (s, MUL, U32, value, two);
  guint32 most = CONF_EMIT (s, ADD, U32, again, twice);
  CONF_EMIT (s, STORE, VOID, sum, most);
  CONF_EMIT (s, ENDIF, VOID, branch);
  CONF_EMIT (s, END, VOID, k);
  guint32 result = CONF_EMIT (s, LOAD, U32, sum);
  CONF_EMIT (s, STORE, VOID, out, i, result);
  if (conf_rig_run (&rig, subject, 1, &words, &size, &factor))
    for (guint e = 0; e < N; e++) {
      guint32 wanted = 0;
      for (guint t = 0; t < e * factor; t++)
        wanted += t % 2 ? 3 * t : t;
      conf_check (trial, words[e] == wanted, "element %u is %u, and %u is right", e, words[e],
                  wanted);
    }
  conf_rig_end (&rig);
}

enum { MOST_ROUNDS = 1 << 24 }; /* that are counted */

/* out: how often a loop of that bound runs, the sum of its counters. args: bound, whether it is a constant. */
static void
run_rounds (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  const gint64 bound = self->args[0];
  gsize size = 2;
  guint32 found[2] = { 99, 99 }, *words = found, wanted[2] = { 0 };
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "rounds"))
    return;
  ConfScript *s = &rig.script;
  guint32 out = conf_emit_param (s, TINY_DTYPE_U32, TINY_PARAM_WRITE, 2);
  guint32 variable
      = self->args[1] ? conf_emit_int (s, TINY_DTYPE_I32, bound) : conf_emit_variable (s);
  guint32 registers[2], zero = conf_emit_int (s, TINY_DTYPE_U32, 0),
                        one = conf_emit_int (s, TINY_DTYPE_U32, 1);
  for (guint i = 0; i < 2; i++) {
    registers[i] = conf_emit_arg (s, TINY_INSTR_REGISTER, TINY_DTYPE_U32, 0);
    CONF_EMIT (s, STORE, VOID, registers[i], zero);
  }
  guint32 k = CONF_EMIT (s, RANGE, I32, variable);
  guint32 counter = CONF_EMIT (s, CAST, U32, k);
  for (guint i = 0; i < 2; i++) {
    guint32 now = CONF_EMIT (s, LOAD, U32, registers[i]);
    guint32 more = CONF_EMIT (s, ADD, U32, now, i == 0 ? one : counter);
    CONF_EMIT (s, STORE, VOID, registers[i], more);
  }
  CONF_EMIT (s, END, VOID, k);
  for (guint i = 0; i < 2; i++) {
    guint32 at = conf_emit_int (s, TINY_DTYPE_I32, i);
    guint32 result = CONF_EMIT (s, LOAD, U32, registers[i]);
    CONF_EMIT (s, STORE, VOID, out, at, result);
  }
  for (; wanted[0] < MAX (bound, 0); wanted[0]++)
    wanted[1] += wanted[0];
  if (conf_rig_run (&rig, subject, 1, &words, &size, &bound))
    conf_check (
        trial, found[0] == wanted[0] && found[1] == wanted[1],
        "a loop of bound %d ran %u times, %u is right; its counters add up to %u, %u is "
        "right",
        (int) bound, found[0], wanted[0], found[1], wanted[1]);
  conf_rig_end (&rig);
}

/* ---- local memory ---- */
/* Items of a group write their own element, wait, and read that of the item opposite;
 * without groups a point writes all and reads it back. args: items, elements of local memory, groups. */
static void
run_local (ConfTrial *trial, const ConfSubject *subject, const ConfCase *self)
{
  guint items = (guint) self->args[0], n_local = (guint) self->args[1],
        groups = (guint) self->args[2];
  gsize size = (gsize) items * groups;
  guint rounds = n_local / items; /* elements of each item */
  const gint64 n_rounds = rounds;
  g_autofree guint32 *words = g_new0 (guint32, size);
  ConfRig rig;
  if (!conf_rig_begin (&rig, trial, subject, "local_memory"))
    return;
  ConfScript *s = &rig.script;
  conf_script_set_grid (s, 0, groups);
  conf_script_set_group (s, 0, items);
  guint32 out = conf_emit_param (s, TINY_DTYPE_U32, TINY_PARAM_WRITE, size);
  guint32 local = conf_emit_arg (s, TINY_INSTR_LOCAL, TINY_DTYPE_U32, n_local);
  guint32 i = conf_emit_index (s, 0);
  guint32 item = items > 1 ? conf_emit_arg (s, TINY_INSTR_GROUP, TINY_DTYPE_I32, 0)
                           : conf_emit_int (s, TINY_DTYPE_I32, 0);
  guint32 step = conf_emit_int (s, TINY_DTYPE_I32, items);
  guint32 bound = conf_emit_variable (s); /* no compiler is to unroll it */
  guint32 r = CONF_EMIT (s, RANGE, I32, bound);
  guint32 row = CONF_EMIT (s, MUL, I32, r, step);
  guint32 at = CONF_EMIT (s, ADD, I32, row, item);
  guint32 both = CONF_EMIT (s, ADD, I32, at, i);
  guint32 value = CONF_EMIT (s, CAST, U32, both);
  CONF_EMIT (s, STORE, VOID, local, at, value);
  CONF_EMIT (s, END, VOID, r);
  if (items > 1)
    conf_emit_arg (s, TINY_INSTR_BARRIER, TINY_DTYPE_VOID, 0);
  guint32 sum = conf_emit_arg (s, TINY_INSTR_REGISTER, TINY_DTYPE_U32, 0);
  guint32 zero = conf_emit_int (s, TINY_DTYPE_U32, 0);
  guint32 last = conf_emit_int (s, TINY_DTYPE_I32, (gint64) items - 1);
  guint32 minus = conf_emit_int (s, TINY_DTYPE_I32, -1);
  guint32 negative = CONF_EMIT (s, MUL, I32, item, minus);
  guint32 opposite = CONF_EMIT (s, ADD, I32, last, negative);
  CONF_EMIT (s, STORE, VOID, sum, zero);
  guint32 q = CONF_EMIT (s, RANGE, I32, bound);
  guint32 other_row = CONF_EMIT (s, MUL, I32, q, step);
  guint32 other = CONF_EMIT (s, ADD, I32, other_row, opposite);
  guint32 x = CONF_EMIT (s, LOAD, U32, local, other);
  guint32 now = CONF_EMIT (s, LOAD, U32, sum);
  guint32 more = CONF_EMIT (s, ADD, U32, now, x);
  CONF_EMIT (s, STORE, VOID, sum, more);
  CONF_EMIT (s, END, VOID, q);
  guint32 result = CONF_EMIT (s, LOAD, U32, sum);
  CONF_EMIT (s, STORE, VOID, out, i, result);
  if (conf_rig_run (&rig, subject, 1, &words, &size, &n_rounds))
    for (guint e = 0; e < size; e++) {
      guint mirror = items - 1 - e % items, group = e / items;
      guint32 wanted = 0;
      for (guint t = 0; t < rounds; t++)
        wanted += t * items + mirror + group * items + mirror;
      if (!conf_check (trial, words[e] == wanted, "item %u of group %u: %u, and %u is right",
                       e % items, group, words[e], wanted))
        break;
    }
  conf_rig_end (&rig);
}

/* ---- lists ---- */
static void
list_rounds (ConfList *out, const TinyTarget *target)
{
  static const gint64 bounds[] = { 0, 1, -1, 2, 255, 256, 257, 70001 };
  for (guint i = 0; i < 2 * G_N_ELEMENTS (bounds); i++) {
    const gint64 bound = bounds[i / 2];
    const char *constant = i % 2 ? "constant-" : "";
    const ConfCase it = { .run = run_rounds, .args = { bound, i % 2 } };
    if (bound > conf_most_rounds (target, bound))
      conf_list_absent (out, "the target's max_rounds is less", "rounds/%s%d", constant,
                        (int) bound);
    else
      conf_list_add (out, &it, "rounds/%s%s%d", constant, bound < 0 ? "minus-" : "",
                     (int) ABS (bound));
  }
  for (guint i = 0; i < 2; i++) {
    const gint64 most = conf_most_rounds (target, MOST_ROUNDS);
    const ConfCase it = { .run = run_rounds, .args = { most, i } };
    const char *constant = i ? "constant-" : "";
    if (target->max_rounds == 0)
      conf_list_absent (out, "the target has no max_rounds", "rounds/%smost", constant);
    else
      conf_list_add (out, &it, "rounds/%smost", constant);
  }
}

static void
list_locals (ConfList *out, const TinyTarget *target)
{
  static const guint items[] = { 1, 2, 8, 31, 64, 256 };
  guint most = target->local_bytes / sizeof (guint32);
  if (most == 0) {
    conf_list_absent (out, "the target has no local memory", "local");
    return;
  }
  for (guint i = 0; i < G_N_ELEMENTS (items); i++) {
    guint n = items[i];
    const ConfCase little = { .run = run_local, .args = { n, 4 * n, 5 } };
    const ConfCase full = { .run = run_local, .args = { n, most / n * n, 3 } };
    const guint64 size[6] = { 3, 1, 1, n, 1, 1 };
    const char *limit = conf_find_grid_limit (target, size);
    if (limit == NULL && 4 * n > most)
      limit = "the target has less local memory";
    if (limit != NULL) {
      conf_list_absent (out, limit, "local/%u-items", n);
      conf_list_absent (out, limit, "local/%u-items-full", n);
      continue;
    }
    conf_list_add (out, &little, "local/%u-items", n);
    /* A dialect declares it in the point's own memory then (local_open), and shader compilers take minutes for
     * an array of that size there. */
    if (n == 1 && (target->flags & TINY_TARGET_GROUPS) != 0)
      conf_list_absent (out, "the target has work-groups: full local memory is asked of those",
                        "local/1-items-full");
    else
      conf_list_add (out, &full, "local/%u-items-full", n);
  }
}

void
conf_list_structure (ConfList *out, const TinyTarget *target)
{
  conf_list_add (out, &(const ConfCase){ .run = run_loops }, "loops");
  list_rounds (out, target);
  list_locals (out, target);
}
