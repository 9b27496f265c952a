/* SPDX-License-Identifier: MIT
 *
 * units-more.c: units for what the example has none for, reductions and attention, as their definitions' loops. */
#include <math.h>
#include <stdlib.h>

#include "units-more.h"

typedef struct {
  const TinyOperation *operation;
  void *const *memory;
  int64_t at[TINY_OPERATION_MAX_AXES];
} Walk;

static float *
get_place (const Walk *self, uint32_t role)
{
  const TinyOperandView *view = tiny_find_operand (self->operation, role);
  int64_t place = view->offset;
  for (int i = 0; i < TINY_OPERATION_MAX_AXES; i++)
    place += self->at[i] * view->strides[i];
  return (float *) self->memory[view->buffer] + place;
}

/* The next position of axes @first to before @end; 0 behind the last. */
static int
step (Walk *self, int first, int end)
{
  for (int i = end; i-- > first;) {
    if (++self->at[i] < self->operation->extents[i])
      return 1;
    self->at[i] = 0;
  }
  return 0;
}

int
more_claim (const TinyOperation *operation, TinyClaim *out)
{
  if (operation->kind != TINY_OPERATION_REDUCTION
      && operation->kind != TINY_OPERATION_ATTENTION)
    return 0;
  int is_known = operation->version == TINY_OPERATION_VERSION
                 && operation->compute_dtype == TINY_DTYPE_F32
                 && operation->activation == TINY_ACTIVATION_NONE
                 && (operation->flags & ~(uint32_t) TINY_OPERATION_CAUSAL) == 0;
  for (size_t i = 0; i < sizeof operation->reserved / sizeof *operation->reserved; i++)
    is_known = is_known && operation->reserved[i] == 0;
  for (uint32_t i = 0; i < operation->n_operands; i++) {
    const TinyOperandView *view = &operation->operands[i];
    is_known = is_known && view->dtype == TINY_DTYPE_F32 && view->role <= TINY_ROLE_B2
               && view->role != TINY_ROLE_BIAS && view->reserved[0] == 0
               && view->reserved[1] == 0;
  }
  out->verdict = is_known ? TINY_CLAIM_ACCEPTED : TINY_CLAIM_DECLINED;
  out->cost_ns = is_known;
  snprintf (out->reason, sizeof out->reason, "%s",
            is_known ? "plain loops" : "of f32, and no more");
  return 1;
}

static void
reduce (Walk *self)
{
  const uint32_t op = self->operation->reduce;
  do {
    double result = op == TINY_INSTR_ADD ? 0 : op == TINY_INSTR_MUL ? 1 : -INFINITY;
    do {
      const double x = *get_place (self, TINY_ROLE_A);
      result = op == TINY_INSTR_ADD   ? result + x
               : op == TINY_INSTR_MUL ? result * x
                                      : fmax (result, x);
    } while (step (self, TINY_REDUCTION_REDUCED, TINY_OPERATION_MAX_AXES));
    *get_place (self, TINY_ROLE_OUTPUT) = (float) (result * self->operation->scale);
  } while (step (self, TINY_REDUCTION_KEPT, TINY_REDUCTION_REDUCED));
}

/* The score of the key that the axes are at. */
static double
get_score (Walk *self)
{
  const TinyOperation *operation = self->operation;
  const int64_t last = self->at[TINY_ATTENTION_QUERY] + operation->extents[TINY_ATTENTION_KEY]
                       - operation->extents[TINY_ATTENTION_QUERY];
  double sum = 0;
  if (operation->flags & TINY_OPERATION_CAUSAL && self->at[TINY_ATTENTION_KEY] > last)
    return -INFINITY;
  do
    sum += (double) *get_place (self, TINY_ROLE_A) * *get_place (self, TINY_ROLE_B);
  while (step (self, TINY_ATTENTION_DEPTH, TINY_ATTENTION_DEPTH + 1));
  sum *= operation->scale;
  return tiny_find_operand (operation, TINY_ROLE_MASK) ? sum + *get_place (self, TINY_ROLE_MASK)
                                                       : sum;
}

static void
attend (Walk *self)
{
  const int64_t n = self->operation->extents[TINY_ATTENTION_KEY];
  int64_t *key = &self->at[TINY_ATTENTION_KEY];
  double *weights = malloc (sizeof *weights * (size_t) n);
  do {
    double largest = -INFINITY, sum = 0;
    for (*key = 0; *key < n; ++*key) {
      weights[*key] = get_score (self);
      largest = fmax (largest, weights[*key]);
    }
    for (int64_t k = 0; k < n; k++)
      sum += weights[k] = exp (weights[k] - largest);
    do {
      double result = 0;
      for (*key = 0; *key < n; ++*key)
        result += weights[*key] * *get_place (self, TINY_ROLE_B2);
      *key = 0;
      *get_place (self, TINY_ROLE_OUTPUT) = (float) (result / sum);
    } while (step (self, TINY_ATTENTION_VALUE, TINY_ATTENTION_VALUE + 1));
  } while (step (self, TINY_ATTENTION_BATCH, TINY_ATTENTION_QUERY + 1));
  free (weights);
}

void
more_run (const TinyOperation *operation, void *const *memory)
{
  Walk walk = { operation, memory, { 0 } };
  if (operation->kind == TINY_OPERATION_REDUCTION)
    reduce (&walk);
  else
    attend (&walk);
}
