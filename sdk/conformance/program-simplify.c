/* SPDX-License-Identifier: MIT
 *
 * program-simplify.c: smaller programs from one that fails. */
#include "program-steps.h"

/* Without step @at, whose users take its first source. */
static gboolean
without (const Program *self, guint at, Program *out)
{
  if (self->n < 2)
    return FALSE;
  *out = *self;
  guint instead = self->steps[at].from[0];
  if (at == 0 || step_kinds[self->steps[at].op].n == 0) {
    for (guint k = at + 1; k < self->n; k++)
      for (guint j = 0; j < step_kinds[self->steps[k].op].n; j++)
        if (self->steps[k].from[j] == at)
          return FALSE;
    instead = 0;
  }
  for (guint k = at + 1; k < self->n; k++) {
    out->steps[k - 1] = self->steps[k];
    for (guint j = 0; j < 3; j++) {
      guint from = self->steps[k].from[j];
      from = from == at ? instead : from;
      out->steps[k - 1].from[j] = (guint8) (from > at ? from - 1 : from);
    }
  }
  out->n--;
  return out->steps[0].op == 0;
}

enum { WAYS_A_STEP = 16 };

gboolean
program_simplify (const Program *self, guint i, Program *out)
{
  if (i < self->n && without (self, self->n - 1 - i, out))
    return TRUE;
  *out = *self;
  if (i < self->n)
    return TRUE; /* the same again: a way that is none */
  i -= self->n;
  if (i >= self->n * WAYS_A_STEP)
    return FALSE;
  Step *step = &out->steps[i / WAYS_A_STEP];
  guint way = i % WAYS_A_STEP;
  if (way < 3 && step_kinds[step->op].n > way && step->from[way] > 0)
    step->from[way] = 0;
  else if (way == 3 && step->op != 0 && step_kinds[step->op].n < 2)
    step->op = 0, step->size = 4;
  else if (way == 4 && step->size > 0)
    step->size--;
  else if (way == 5 && step->dtype != TINY_DTYPE_F32)
    step->dtype = TINY_DTYPE_F32;
  else if (way == 6 && step->op == 0 && step->p[3] % 8 != 1)
    step->p[3] = 1;
  else if (way == 7 && step->op == 0 && step->p[0] % MAX_AXES > 1)
    step->p[0] = step->p[0] % MAX_AXES - 1;
  else if (way >= 10 && step->p[way - 10] > 0)
    step->p[way - 10] = way - 10 == 0 && step->op == 0 ? step->p[0]
                        : step->p[way - 10] / 2 < 64   ? 0
                                                       : step->p[way - 10] % 64;
  else if (way == 8 && out->one_by_one)
    out->one_by_one = FALSE;
  else if (way == 9 && step->op == 0 && step->size > 4)
    step->size = 4;
  return TRUE;
}
