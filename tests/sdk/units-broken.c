/* SPDX-License-Identifier: MIT
 *
 * units-broken.c: the example of an offload plugin with more units (units-more.c), wrong in one way that
 * TINY_UNITS_FAULT names: its claims, or what it computes of what it accepted. Stands between its two files. */
#include <stdlib.h>

#include "units-more.h"

/* sample-compute.c, under other names. */
void inner_claim (const TinyOperation *operation, TinyClaim *out);
void inner_run (const TinyOperation *operation, void *const *memory);

static int
is (const char *fault)
{
  const char *wanted = getenv ("TINY_UNITS_FAULT");
  return wanted != NULL && strcmp (wanted, fault) == 0;
}

void
tiny_sample_claim (const TinyOperation *operation, TinyClaim *out)
{
  static _Atomic unsigned n, n_threads;
  static _Thread_local unsigned thread;
  if (!more_claim (operation, out))
    inner_claim (operation, out);
  const int is_accepted = out->verdict == TINY_CLAIM_ACCEPTED;
  if (is ("no-cost") && is_accepted)
    out->cost_ns = 0;
  if (is ("cost-of-nan") && is_accepted)
    out->cost_ns = UINT64_C (1) << 63;
  if (is ("no-reason") && !is_accepted)
    out->reason[0] = 0;
  if (is ("endless-reason"))
    memset (out->reason, 'x', sizeof out->reason);
  if (is ("unknown-verdict") && is_accepted)
    out->verdict = 2;
  if (is ("any-activation") && operation->activation > TINY_ACTIVATION_RELU) {
    out->verdict = TINY_CLAIM_ACCEPTED;
    out->cost_ns = 1;
  }
  if (is ("any-kind") && operation->kind > TINY_OPERATION_ATTENTION) {
    out->verdict = TINY_CLAIM_ACCEPTED;
    out->cost_ns = 1;
  }
  if (is ("nothing")) {
    out->verdict = TINY_CLAIM_DECLINED;
    snprintf (out->reason, sizeof out->reason, "not today");
  }
  if (is ("now-and-then") && is_accepted && ++n % 3 == 0)
    snprintf (out->reason, sizeof out->reason, "another one each time");
  if (is ("by-thread") && is_accepted) {
    thread = thread != 0 ? thread : ++n_threads;
    out->cost_ns += thread;
  }
}

static void
pack (TinyOperandView *view, int rows, int columns, int64_t n_columns)
{
  if (view->strides[rows] < view->strides[columns]) {
    view->strides[columns] = 1;
    view->strides[rows] = n_columns;
  }
}

static void
drop_operand (TinyOperation *operation, uint32_t role)
{
  for (uint32_t i = 0; i < operation->n_operands; i++)
    if (operation->operands[i].role == role)
      operation->operands[i].role = 99;
}

static void
change (TinyOperation *o)
{
  const int is_matmul = o->kind == TINY_OPERATION_MATMUL;
  if (is ("not-transposed") && is_matmul) {
    pack (&o->operands[1], TINY_MATMUL_M, TINY_MATMUL_K, o->extents[TINY_MATMUL_K]);
    pack (&o->operands[2], TINY_MATMUL_K, TINY_MATMUL_N, o->extents[TINY_MATMUL_N]);
  }
  if (is ("packed-rows") && is_matmul
      && o->operands[1].strides[TINY_MATMUL_M] > o->extents[TINY_MATMUL_K])
    o->operands[1].strides[TINY_MATMUL_M] = o->extents[TINY_MATMUL_K];
  if (is ("no-bias"))
    drop_operand (o, TINY_ROLE_BIAS);
  if (is ("no-activation"))
    o->activation = TINY_ACTIVATION_NONE;
  if (is ("no-scale"))
    o->scale = 1;
  if (is ("last-k") && is_matmul)
    o->extents[TINY_MATMUL_K]--;
  if (is ("one-batch"))
    o->extents[0] = 1;
  if (is ("no-offset"))
    o->operands[1].offset = 0;
  if (is ("no-mask") && o->kind == TINY_OPERATION_ATTENTION)
    drop_operand (o, TINY_ROLE_MASK);
  if (is ("not-causal"))
    o->flags = 0;
  if (is ("last-key") && o->kind == TINY_OPERATION_ATTENTION)
    o->extents[TINY_ATTENTION_KEY]--;
  if (is ("sum-for-product") && o->kind == TINY_OPERATION_REDUCTION)
    o->reduce = TINY_INSTR_ADD;
  for (int i = 0; i < 3 && !is_matmul; i++) {
    o->window_step[i] = is ("no-step") ? 1 : o->window_step[i];
    o->window_dilation[i] = is ("no-dilation") ? 1 : o->window_dilation[i];
    o->window_padding[i] = is ("no-padding") ? 0 : o->window_padding[i];
  }
}

void
tiny_sample_run (const TinyOperation *operation, void *const *memory)
{
  TinyOperation changed = *operation;
  change (&changed);
  if (is ("writes-outside"))
    ((float *) memory[0])[operation->operands[0].n_elements] = 1;
  if (is ("writes-input"))
    ((float *) memory[1])[0] += 1;
  if (operation->kind == TINY_OPERATION_REDUCTION
      || operation->kind == TINY_OPERATION_ATTENTION)
    more_run (&changed, memory);
  else if (operation->kind <= TINY_OPERATION_SOFTMAX)
    inner_run (&changed, memory);
  if (is ("not-divided") && operation->kind == TINY_OPERATION_SOFTMAX)
    ((float *) memory[0])[0] *= 1.00001f;
}
