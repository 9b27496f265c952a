/* SPDX-License-Identifier: MIT
 *
 * linear-copy.c: a list of instructions made from another. */
#include "codegen/linear-copy.h"

void
linear_copy_begin (LinearCopy *self, const TinyLinear *from)
{
  *self = (LinearCopy){ from, g_array_new (FALSE, FALSE, sizeof (TinyInstr)),
                        g_array_new (FALSE, FALSE, sizeof (guint32)),
                        g_new0 (guint32, from->n_instrs + 1) };
}

guint32
linear_copy_append (LinearCopy *self, TinyInstr like, guint n, const guint32 *sources)
{
  like.sources = self->sources->len;
  like.n_sources = n;
  g_array_append_vals (self->sources, sources, n);
  g_array_append_val (self->instrs, like);
  return self->instrs->len - 1;
}

guint32
linear_copy_instr (LinearCopy *self, guint32 i)
{
  const TinyInstr *instr = &self->from->instrs[i];
  g_autofree guint32 *sources = g_new (guint32, MAX (instr->n_sources, 1));
  for (guint s = 0; s < instr->n_sources; s++)
    sources[s] = self->at[self->from->sources[instr->sources + s]];
  return self->at[i] = linear_copy_append (self, *instr, instr->n_sources, sources);
}

void
linear_copy_end (LinearCopy *self, TinyLinear *linear)
{
  g_free (self->at);
  g_free ((gpointer) linear->instrs);
  g_free ((gpointer) linear->sources);
  linear->n_instrs = self->instrs->len;
  linear->n_sources = self->sources->len;
  linear->instrs = (TinyInstr *) g_array_free (self->instrs, FALSE);
  linear->sources = (guint32 *) g_array_free (self->sources, FALSE);
}
