/* SPDX-License-Identifier: MIT
 *
 * pass-barriers.c: where the items of a work-group wait for each other.
 *
 * What one item writes to LOCAL memory another may read, and what one has read another may write
 * anew: between the two there is a BARRIER. It stands before the outermost loop that holds the
 * later access and not the earlier one, so that it happens as seldom as it can. What a round of a
 * loop leaves undone meets the next round: then the loop ends with a barrier. All items come to
 * each, because loops have constant bounds and gates are no branches. */
#include "codegen/codegen-private.h"

/* LOCALs by their order in the program, those from the last bit on together. */
typedef struct {
  guint64 reads, writes;
} Accesses;

/* What happens before the first barrier of a block, and after its last: all, where it has none. */
typedef struct {
  Accesses first, last;
  gboolean has_barrier;
} Summary;

typedef struct {
  const TinyLinear *linear;
  guint8 *locals; /* by instruction: a LOCAL's bit */
  guint8 *before; /* … whether a barrier comes before it */
} Barriers;

static gboolean
clash (Accesses earlier, Accesses later)
{
  return ((earlier.writes & later.reads) | (earlier.reads & later.writes)) != 0;
}

static void
add (Accesses *sum, Accesses more)
{
  sum->reads |= more.reads;
  sum->writes |= more.writes;
}

static Summary
look_at (const Barriers *self, guint32 i)
{
  const TinyInstr *instr = &self->linear->instrs[i];
  Summary result = { { 0, 0 }, { 0, 0 }, FALSE };
  if (instr->op != TINY_INSTR_LOAD && instr->op != TINY_INSTR_STORE)
    return result;
  guint32 memory = self->linear->sources[instr->sources];
  if (self->linear->instrs[memory].op != TINY_INSTR_LOCAL)
    return result;
  guint64 bit = G_GUINT64_CONSTANT (1) << self->locals[memory];
  result.first = instr->op == TINY_INSTR_LOAD ? (Accesses){ bit, 0 } : (Accesses){ 0, bit };
  result.last = result.first;
  return result;
}

/* Goes through a block from *at to its END, where *at is left, or to the end of the program. */
static Summary
walk (Barriers *self, guint32 *at)
{
  Summary block = { { 0, 0 }, { 0, 0 }, FALSE };
  for (; *at < self->linear->n_instrs; ++*at) {
    guint op = self->linear->instrs[*at].op;
    guint32 here = *at;
    if (op == TINY_INSTR_END)
      break;
    Summary next = look_at (self, here);
    if (op == TINY_INSTR_RANGE) {
      ++*at;
      next = walk (self, at);
      if (clash (next.last, next.first)) {
        self->before[*at] = TRUE;
        next.has_barrier = TRUE;
        next.last = (Accesses){ 0, 0 };
      }
    }
    if (clash (block.last, next.first)) {
      self->before[here] = TRUE;
      block.has_barrier = TRUE;
      block.last = (Accesses){ 0, 0 };
    }
    if (!block.has_barrier)
      add (&block.first, next.first);
    if (next.has_barrier)
      block.last = (Accesses){ 0, 0 };
    block.has_barrier = block.has_barrier || next.has_barrier;
    add (&block.last, next.last);
  }
  return block;
}

static void
insert_barriers (TinyLinear *linear, const guint8 *before)
{
  GArray *instrs = g_array_new (FALSE, FALSE, sizeof (TinyInstr));
  g_autofree guint32 *at = g_new (guint32, linear->n_instrs + 1);
  const TinyInstr barrier = { .op = TINY_INSTR_BARRIER, .lanes = 1 };
  for (guint32 i = 0; i < linear->n_instrs; i++) {
    if (before[i])
      g_array_append_val (instrs, barrier);
    at[i] = instrs->len;
    g_array_append_val (instrs, linear->instrs[i]);
  }
  for (guint32 i = 0; i < linear->n_sources; i++)
    ((guint32 *) linear->sources)[i] = at[linear->sources[i]];
  g_free ((gpointer) linear->instrs);
  linear->n_instrs = instrs->len;
  linear->instrs = (TinyInstr *) g_array_free (instrs, FALSE);
}

gboolean
tiny_pass_barriers (TinyCodegen *cg, GError **error)
{
  TinyLinear *linear = &cg->program->linear;
  g_autofree guint8 *locals = g_new0 (guint8, linear->n_instrs + 1);
  g_autofree guint8 *before = g_new0 (guint8, linear->n_instrs + 1);
  Barriers self = { linear, locals, before };
  guint n_locals = 0;
  guint32 at = 0;
  for (guint32 i = 0; i < linear->n_instrs; i++)
    if (linear->instrs[i].op == TINY_INSTR_LOCAL)
      locals[i] = (guint8) MIN (n_locals++, 63);
  if (n_locals == 0 || linear->group[0] * linear->group[1] * linear->group[2] == 1)
    return TRUE;
  walk (&self, &at);
  insert_barriers (linear, before);
  return TRUE;
}
