/* SPDX-License-Identifier: MIT
 *
 * render-inline.c: which values stand as expressions where they are used.
 *
 * A scalar used once, in the block where it is computed, can stand at its use: nothing is computed
 * more often than before. What reads memory or a register may do so only when nothing is written
 * and no block begins or ends on the way there. A value moves with its user when that moves too, so the
 * instructions are gone through from the last to the first. Vectors are always named: a dialect may
 * have to spell a vector op lane by lane, and would compute an expression as often. */
#include "render/render-private.h"

/* Instructions that a read must not move across. */
static gboolean
is_fence (guint op)
{
  switch (op) {
  case TINY_INSTR_STORE:
  case TINY_INSTR_BARRIER:
  case TINY_INSTR_RANGE:
  case TINY_INSTR_END:
  case TINY_INSTR_IF:
  case TINY_INSTR_ENDIF:
    return TRUE;
  default:
    return FALSE;
  }
}

static gboolean
has_value (const TinyInstr *instr)
{
  switch (instr->op) {
  case TINY_INSTR_PARAM:
  case TINY_INSTR_LOCAL:
  case TINY_INSTR_REGISTER:
    return FALSE;
  default:
    return !is_fence (instr->op);
  }
}

/* Whether the access to a vector is spelt lane by lane, so that its parts occur many times. */
static gboolean
goes_by_lanes (const TinyLinear *linear, const TinyDialect *dialect, const TinyInstr *instr)
{
  if (instr->lanes == 1 || render_source (linear, instr, 0)->op == TINY_INSTR_REGISTER)
    return FALSE;
  gboolean is_load = instr->op == TINY_INSTR_LOAD;
  guint gate_at = is_load ? 2 : 3;
  if (instr->n_sources == 4 && render_source (linear, instr, gate_at)->lanes > 1)
    return (is_load ? dialect->load_masked : dialect->store_masked) == NULL;
  return (is_load ? dialect->load_vector : dialect->store_vector) == NULL;
}

/* Whether @instr wants a name for its sources, not an expression. */
static gboolean
wants_names (const TinyLinear *linear, const TinyDialect *dialect, const TinyInstr *instr)
{
  /* A loop's bound is read again on every turn. */
  if (instr->op == TINY_INSTR_EXTRACT || instr->op == TINY_INSTR_RANGE)
    return TRUE;
  if (instr->op == TINY_INSTR_VECTOR && instr->n_sources == 1)
    return dialect->broadcast == NULL;
  if (instr->op != TINY_INSTR_LOAD && instr->op != TINY_INSTR_STORE)
    return FALSE;
  return goes_by_lanes (linear, dialect, instr);
}

/* n_fences[i]: fences before instruction i; scope[i]: the block it stands in. */
static void
find_scopes (const TinyLinear *linear, guint *n_fences, guint *scope)
{
  guint open = 0;
  n_fences[0] = 0;
  for (guint i = 0; i < linear->n_instrs; i++) {
    const TinyInstr *instr = &linear->instrs[i];
    n_fences[i + 1] = n_fences[i] + is_fence (instr->op);
    if ((instr->op == TINY_INSTR_END || instr->op == TINY_INSTR_ENDIF) && instr->n_sources > 0)
      open = scope[linear->sources[instr->sources]];
    scope[i] = open;
    if (instr->op == TINY_INSTR_RANGE || instr->op == TINY_INSTR_IF)
      open = i + 1;
  }
}

guint8 *
render_inline (const TinyLinear *linear, const TinyDialect *dialect)
{
  guint n = linear->n_instrs;
  guint8 *result = g_new0 (guint8, n + 1);
  g_autofree guint *n_fences = g_new0 (guint, n + 1), *scope = g_new0 (guint, n + 1);
  g_autofree guint *n_uses = g_new0 (guint, n + 1), *place = g_new0 (guint, n + 1);
  g_autofree guint8 *is_named = g_new0 (guint8, n + 1);
  find_scopes (linear, n_fences, scope);
  for (guint i = n; i-- > 0;) {
    const TinyInstr *instr = &linear->instrs[i];
    guint user = place[i]; /* set by its users, which come later */
    place[i] = i;
    if (has_value (instr) && n_uses[i] == 0) {
      result[i] = RENDER_UNUSED;
      continue;
    }
    if (instr->op == TINY_INSTR_CONST && instr->lanes == 1) {
      result[i] = RENDER_INLINE;
    } else if (instr->op == TINY_INSTR_VARIABLE && instr->dtype == TINY_DTYPE_I64) {
      result[i] = RENDER_INLINE;
    } else if (has_value (instr) && n_uses[i] == 1 && !is_named[i] && instr->lanes == 1
               && scope[i] == scope[user]) {
      gboolean is_still = n_fences[user] == n_fences[i];
      if (instr->op != TINY_INSTR_LOAD || is_still) {
        result[i] = RENDER_INLINE_SHORT;
        place[i] = user;
      }
    }
    gboolean names = wants_names (linear, dialect, instr);
    for (guint j = 0; j < instr->n_sources; j++) {
      guint s = linear->sources[instr->sources + j];
      n_uses[s]++;
      is_named[s] |= names;
      place[s] = place[i];
    }
  }
  return result;
}
