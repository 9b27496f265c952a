/* SPDX-License-Identifier: MIT
 *
 * recognise.c: what recognisers share: accesses, axes, and the order in which kinds are tried. */
#include "schedule/recognise.h"

#include <string.h>

/* ---- accesses ---- */
static gboolean
is_sum_of_loops (const Affine *at)
{
  for (guint i = 0; at != NULL && i < at->n; i++)
    if (at->terms[i].atom->op != TINY_OP_RANGE)
      return FALSE;
  return at != NULL;
}

gboolean
recognise_load (Recognition *self, TinyNode *node, Access *out)
{
  if (node->op == TINY_OP_CAST)
    node = node->sources[0];
  if (node->op != TINY_OP_LOAD || node->sources[0]->op != TINY_OP_PARAM
      || node->sources[0] == self->store->sources[0])
    return FALSE;
  *out
      = (Access){ .param = node->sources[0], .at = affine_read (self->pool, node->sources[1]) };
  if (node->n_sources > 2) {
    const TinyNode *otherwise = node->sources[3];
    if (otherwise->op != TINY_OP_CONST || otherwise->arg != 0)
      return FALSE;
    out->gate = node->sources[2];
  }
  return is_sum_of_loops (out->at);
}

/* ---- axes and operands ---- */
void
recognise_set_axis (Recognition *self, guint axis, TinyNode *range)
{
  self->ranges[axis] = range;
  self->out->extents[axis] = range != NULL ? tiny_range_get_extent (range) : 1;
}

gboolean
recognise_add_operand (Recognition *self, TinyOperandRole role, const Access *access)
{
  TinyOperation *out = self->out;
  if (out->n_operands == TINY_OPERATION_MAX_OPERANDS)
    return FALSE;
  TinyOperandView *operand = &out->operands[out->n_operands++];
  *operand = (TinyOperandView){ .role = role,
                                .dtype = access->param->dtype,
                                .buffer = (uint32_t) access->param->arg,
                                .n_elements = (uint64_t) access->param->ints->v[0],
                                .offset = access->at->offset };
  guint n_found = 0;
  for (guint i = 0; i < TINY_OPERATION_MAX_AXES; i++) {
    if (self->ranges[i] == NULL)
      continue;
    operand->strides[i] = affine_get_mul (access->at, self->ranges[i]);
    n_found += operand->strides[i] != 0;
  }
  out->n_buffers = MAX (out->n_buffers, operand->buffer + 1);
  return n_found == access->at->n;
}

gboolean
recognise_add_operands (Recognition *self, const Access *accesses, guint n)
{
  static const TinyOperandRole roles[] = { TINY_ROLE_A, TINY_ROLE_B, TINY_ROLE_B2 };
  if (!recognise_add_operand (self, TINY_ROLE_OUTPUT, &self->output))
    return FALSE;
  for (guint i = 0; i < n; i++)
    if (!recognise_add_operand (self, roles[i], &accesses[i]))
      return FALSE;
  return self->bias.param == NULL || recognise_add_operand (self, TINY_ROLE_BIAS, &self->bias);
}

/* ---- kinds ---- */
static void
begin (Recognition *self)
{
  memset (self->out, 0, sizeof *self->out);
  memset (self->ranges, 0, sizeof self->ranges);
  *self->out = (TinyOperation){ .struct_size = sizeof *self->out,
                                .version = TINY_OPERATION_VERSION,
                                .scale = 1 };
  for (guint i = 0; i < TINY_OPERATION_MAX_AXES; i++)
    self->out->extents[i] = 1;
}

/* Whether every buffer of the kernel is an operand: nothing is computed beside the operation. */
static gboolean
uses_all_buffers (const TinyOperation *operation)
{
  guint64 used = 0;
  for (guint i = 0; i < operation->n_operands; i++)
    used |= G_GUINT64_CONSTANT (1) << operation->operands[i].buffer;
  return operation->operands[0].buffer == 0
         && used + 1 == G_GUINT64_CONSTANT (1) << operation->n_buffers;
}

gboolean
schedule_recognise (TinyGraph *graph, AffinePool *pool, TinyNode *kernel, TinyOperation *out)
{
  static gboolean (*const kinds[]) (Recognition * self) = { recognise_matmul };
  if (kernel->n_sources != 1 || kernel->sources[0]->n_sources != 3
      || kernel->sources[0]->sources[0]->op != TINY_OP_PARAM)
    return FALSE;
  TinyNode *store = kernel->sources[0];
  Recognition self = { .graph = graph, .pool = pool, .store = store, .out = out };
  self.output
      = (Access){ .param = store->sources[0], .at = affine_read (pool, store->sources[1]) };
  if (!is_sum_of_loops (self.output.at))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    begin (&self);
    recognise_epilogue (&self);
    if (kinds[i](&self))
      return uses_all_buffers (out);
  }
  return FALSE;
}
