/* SPDX-License-Identifier: MIT
 *
 * recognise-reduction.c: sums, products and maxima of what lies in one buffer, in any layout. */
#include "schedule/recognise.h"

#include "ir/tiny-op.h"

enum { N_AXES = TINY_REDUCTION_REDUCED - TINY_REDUCTION_KEPT };

gboolean
recognise_reduction (Recognition *self)
{
  const TinyNode *core = self->core;
  guint n_kept = 0, n_reduced = 0;
  if (core->op != TINY_OP_REDUCE || core->n_sources < 2
      || (core->arg != TINY_OP_ADD && core->arg != TINY_OP_MUL && core->arg != TINY_OP_MAX)
      || core->dtype != self->out->compute_dtype
      || !recognise_load (self, core->sources[0], &self->accesses[TINY_ROLE_A])
      || self->accesses[TINY_ROLE_A].gate != NULL || !recognise_list_loops (self))
    return FALSE;
  recognise_join_loops (self, FALSE);
  self->out->kind = TINY_OPERATION_REDUCTION;
  self->out->n_axes = TINY_REDUCTION_REDUCED + N_AXES;
  self->out->reduce = tiny_op_infos[core->arg].instr;
  for (guint i = 0; i < self->n_loops; i++) {
    guint *n = self->loops[i].is_reduced ? &n_reduced : &n_kept;
    const guint first
        = self->loops[i].is_reduced ? TINY_REDUCTION_REDUCED : TINY_REDUCTION_KEPT;
    if (*n < N_AXES)
      recognise_set_axis (self, first + (*n)++, &self->loops[i]);
  }
  return n_reduced > 0 && recognise_add_operands (self);
}
