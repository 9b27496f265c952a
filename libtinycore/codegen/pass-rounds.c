/* SPDX-License-Identifier: MIT
 *
 * pass-rounds.c: no more rounds than the target allows.
 *
 * Some targets end all loops of a work-item together after so many rounds (TinyTarget.max_rounds). A loop that may
 * come near has its body several times in a round, so that fewer rounds do the same in the same order:
 *
 *   range i < n { body (i) }  becomes  range r < (n + 3) / 4 { body (4 r)  if (4 r + 1 < n) body (4 r + 1) … }
 *
 * The loop that makes the most rounds is doubled until all of them together are few enough; a short one is copied whole.
 * An inner loop is entered as often as before, so it is the inner ones that grow. A kernel that would grow beyond
 * MAX_INSTRS is refused: its numbers would be wrong. */
#include "codegen/linear-copy.h"

#include "base/tiny-error.h"

enum { MAX_INSTRS = 1 << 14 };

typedef struct {
  guint32 range, end;
  gint32 parent;  /* the loop around it; -1: none */
  gint64 most;    /* rounds, as far as is known when it is compiled */
  gint64 copies;  /* of the body in a round; @most: there is no loop */
  gboolean fixed; /* @most is the bound */
} Loop;

typedef struct {
  const TinyLinear *linear;
  GArray *loops; /* Loop, in the program's order */
  LinearCopy copy;
} Rounds;

/* ---- counting ---- */
static void
find_loops (Rounds *self, const GArray *most)
{
  const TinyLinear *linear = self->linear;
  gint32 open = -1;
  for (guint32 i = 0; i < linear->n_instrs; i++) {
    const TinyInstr *instr = &linear->instrs[i];
    if (instr->op == TINY_INSTR_RANGE) {
      const TinyInstr *bound = &linear->instrs[linear->sources[instr->sources]];
      Loop loop = { .range = i,
                    .parent = open,
                    .most = MAX (g_array_index (most, gint64, self->loops->len), 0),
                    .copies = 1,
                    .fixed = bound->op == TINY_INSTR_CONST };
      open = (gint32) self->loops->len;
      g_array_append_val (self->loops, loop);
    } else if (instr->op == TINY_INSTR_END) {
      Loop *loop = &g_array_index (self->loops, Loop, open);
      loop->end = i;
      open = loop->parent;
    }
  }
}

static Loop *
loop_at (const Rounds *self, gint32 i)
{
  return &g_array_index (self->loops, Loop, i);
}

static gint64
rounds_of (const Loop *loop)
{
  return loop->most / loop->copies + (loop->most % loop->copies != 0);
}

/* How often a work-item comes to the END of loop @i. */
static double
count_ends (const Rounds *self, gint32 i)
{
  const Loop *loop = loop_at (self, i);
  double n = loop->copies >= loop->most ? 0 : (double) rounds_of (loop);
  for (gint32 j = loop->parent; j >= 0; j = loop_at (self, j)->parent)
    n *= (double) rounds_of (loop_at (self, j)) * (double) loop_at (self, j)->copies;
  return n;
}

static double
count_all_ends (const Rounds *self)
{
  double n = 0;
  for (gint32 i = 0; i < (gint32) self->loops->len; i++)
    n += count_ends (self, i);
  return n;
}

static double
count_instrs (const Rounds *self)
{
  double n = self->linear->n_instrs;
  for (guint i = 0; i < self->loops->len; i++) {
    double size = loop_at (self, i)->end - loop_at (self, i)->range;
    for (gint32 j = loop_at (self, i)->parent; j >= 0; j = loop_at (self, j)->parent)
      size *= (double) loop_at (self, j)->copies;
    n += size * (double) (loop_at (self, i)->copies - 1);
  }
  return n;
}

/* Counters stay below 2^31 in the last round, too. */
static gboolean
may_grow (const Loop *loop)
{
  return loop->copies < loop->most && loop->copies < MAX_INSTRS
         && loop->most < G_MAXINT32 - 2 * loop->copies;
}

/* Doubles bodies until the target allows what is left. */
static gboolean
choose_copies (Rounds *self, guint64 max_rounds, GError **error)
{
  const double wanted = count_all_ends (self);
  while (count_all_ends (self) > (double) max_rounds) {
    Loop *best = NULL;
    double most = 0;
    for (gint32 i = 0; i < (gint32) self->loops->len; i++)
      if (may_grow (loop_at (self, i)) && count_ends (self, i) > most) {
        best = loop_at (self, i);
        most = count_ends (self, i);
      }
    if (best != NULL)
      best->copies = MIN (2 * best->copies, best->most);
    if (best != NULL && count_instrs (self) <= MAX_INSTRS)
      continue;
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "its loops make up to %.0f rounds for an element, the target ends them after "
                 "%" G_GUINT64_FORMAT " and copies of their bodies would make the kernel too "
                 "long; compute it in parts",
                 wanted, max_rounds);
    return FALSE;
  }
  return TRUE;
}

/* ---- copying ---- */
/* @dtype is the result's. */
static guint32
append_op (Rounds *self, TinyInstrOp op, TinyDType dtype, guint32 x, guint32 y)
{
  const TinyInstr like = { .op = op, .dtype = dtype, .lanes = 1 };
  return linear_copy_append (&self->copy, like, 2, (guint32[]){ x, y });
}

static guint32
append_number (Rounds *self, TinyDType dtype, gint64 number)
{
  const TinyInstr like = { .op = TINY_INSTR_CONST, .dtype = dtype, .lanes = 1, .arg = number };
  return linear_copy_append (&self->copy, like, 0, NULL);
}

/* (bound + copies - 1) / copies; copies of a bound that is not fixed are a power of two, or there is no loop. */
static guint32
append_rounds (Rounds *self, const Loop *loop, TinyDType dtype, guint32 bound)
{
  if (loop->fixed)
    return append_number (self, dtype, rounds_of (loop));
  guint32 more = append_number (self, dtype, loop->copies - 1);
  guint32 sum = append_op (self, TINY_INSTR_ADD, dtype, bound, more);
  guint32 shift = append_number (self, dtype, g_bit_storage ((gulong) loop->copies) - 1);
  return append_op (self, TINY_INSTR_SHR, dtype, sum, shift);
}

static void copy_block (Rounds *self, guint32 from, guint32 to, guint *next);

static void
copy_loop (Rounds *self, guint *next)
{
  const guint loops_here = *next;
  const Loop *loop = loop_at (self, (gint32) loops_here);
  const TinyInstr *range = &self->linear->instrs[loop->range];
  const TinyDType dtype = (TinyDType) range->dtype;
  const guint32 bound = self->copy.at[self->linear->sources[range->sources]];
  const gboolean has_loop = loop->copies == 1 || loop->copies < loop->most;
  const gint64 last = (rounds_of (loop) - 1) * loop->copies; /* of the counter before copies */
  guint32 opened = 0, first = 0;
  if (has_loop && loop->copies == 1)
    opened = linear_copy_instr (&self->copy, loop->range);
  else if (has_loop) {
    guint32 rounds = append_rounds (self, loop, dtype, bound);
    opened = linear_copy_append (&self->copy, *range, 1, &rounds);
    guint32 step = append_number (self, dtype, loop->copies);
    first = append_op (self, TINY_INSTR_MUL, dtype, opened, step);
  }
  for (gint64 i = 0; i < loop->copies; i++) {
    const gboolean is_sure = loop->fixed ? last + i < loop->most : has_loop && i == 0;
    const TinyInstr gate = { .op = TINY_INSTR_IF, .lanes = 1 };
    guint32 block = 0;
    if (loop->copies > 1) {
      guint32 number = append_number (self, dtype, i);
      self->copy.at[loop->range] = !has_loop ? number
                                   : i == 0
                                       ? first
                                       : append_op (self, TINY_INSTR_ADD, dtype, first, number);
    }
    if (!is_sure && loop->copies > 1) {
      guint32 has = append_op (self, TINY_INSTR_CMPLT, TINY_DTYPE_BOOL,
                               self->copy.at[loop->range], bound);
      block = linear_copy_append (&self->copy, gate, 1, &has);
    }
    *next = loops_here + 1;
    copy_block (self, loop->range + 1, loop->end, next);
    if (!is_sure && loop->copies > 1)
      linear_copy_append (&self->copy, (TinyInstr){ .op = TINY_INSTR_ENDIF, .lanes = 1 }, 1,
                          &block);
  }
  if (has_loop)
    linear_copy_append (&self->copy, self->linear->instrs[loop->end], 1, &opened);
}

/* Copies [@from, @to), whose first loop is @next; it is the one after them then. */
static void
copy_block (Rounds *self, guint32 from, guint32 to, guint *next)
{
  for (guint32 i = from; i < to; i++)
    if (self->linear->instrs[i].op == TINY_INSTR_RANGE) {
      guint32 end = loop_at (self, (gint32) *next)->end;
      copy_loop (self, next);
      i = end;
    } else
      linear_copy_instr (&self->copy, i);
}

gboolean
tiny_pass_rounds (TinyCodegen *cg, GError **error)
{
  TinyLinear *linear = &cg->program->linear;
  if (cg->target->max_rounds == 0)
    return TRUE;
  g_autoptr (GArray) loops = g_array_new (FALSE, FALSE, sizeof (Loop));
  Rounds self = { .linear = linear, .loops = loops };
  guint next = 0;
  find_loops (&self, cg->most_rounds);
  if (count_all_ends (&self) <= (double) cg->target->max_rounds)
    return TRUE;
  if (!choose_copies (&self, cg->target->max_rounds, error))
    return FALSE;
  linear_copy_begin (&self.copy, linear);
  copy_block (&self, 0, linear->n_instrs, &next);
  linear_copy_end (&self.copy, linear);
  return TRUE;
}
