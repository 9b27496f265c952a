/* SPDX-License-Identifier: MIT
 *
 * recognise.c: what recognisers share: accesses, loops, axes, and the order in which kinds are tried. */
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

gboolean
recognise_products (Recognition *self)
{
  const TinyNode *core = self->core;
  TinyNode *product = core->n_sources > 1 ? core->sources[0] : NULL;
  return core->op == TINY_OP_REDUCE && core->arg == TINY_OP_ADD && product != NULL
         && product->op == TINY_OP_MUL && core->dtype == self->out->compute_dtype
         && recognise_load (self, product->sources[0], &self->accesses[TINY_ROLE_A])
         && recognise_load (self, product->sources[1], &self->accesses[TINY_ROLE_B]);
}

void
recognise_swap (Recognition *self)
{
  Access a = self->accesses[TINY_ROLE_A];
  self->accesses[TINY_ROLE_A] = self->accesses[TINY_ROLE_B];
  self->accesses[TINY_ROLE_B] = a;
  for (guint i = 0; i < self->n_loops; i++) {
    gint64 *strides = self->loops[i].strides, of_a = strides[TINY_ROLE_A];
    strides[TINY_ROLE_A] = strides[TINY_ROLE_B];
    strides[TINY_ROLE_B] = of_a;
  }
}

/* ---- loops ---- */
static gboolean
add_loop (Recognition *self, TinyNode *range, gboolean is_reduced)
{
  if (self->n_loops == RECOGNISE_MAX_LOOPS)
    return FALSE;
  Loop *loop = &self->loops[self->n_loops++];
  *loop = (Loop){ .range = range,
                  .extent = tiny_range_get_extent (range),
                  .is_reduced = is_reduced };
  for (guint role = 0; role < RECOGNISE_N_ROLES; role++)
    if (self->accesses[role].param != NULL)
      loop->strides[role] = affine_get_mul (self->accesses[role].at, range);
  return TRUE;
}

/* Outermost first: by what a step moves the output, and of reduced loops by their number. */
static void
sort_loops (Recognition *self)
{
  for (guint i = 1; i < self->n_loops; i++)
    for (guint j = i; j > 0; j--) {
      const Loop *before = &self->loops[j - 1], *loop = &self->loops[j];
      gint64 x = ABS (before->strides[TINY_ROLE_OUTPUT]),
             y = ABS (loop->strides[TINY_ROLE_OUTPUT]);
      if (before->is_reduced != loop->is_reduced ? !before->is_reduced
          : loop->is_reduced
              ? tiny_range_get_number (before->range) <= tiny_range_get_number (loop->range)
              : x >= y)
        break;
      Loop other = self->loops[j];
      self->loops[j] = self->loops[j - 1];
      self->loops[j - 1] = other;
    }
}

gboolean
recognise_list_loops (Recognition *self)
{
  const Affine *out = self->accesses[TINY_ROLE_OUTPUT].at;
  self->n_loops = 0;
  for (guint i = 0; i < out->n; i++)
    if (!add_loop (self, out->terms[i].atom, FALSE))
      return FALSE;
  for (guint i = 1; self->core->op == TINY_OP_REDUCE && i < self->core->n_sources; i++)
    if (!add_loop (self, self->core->sources[i], TRUE))
      return FALSE;
  for (guint i = 1; self->inner != NULL && i < self->inner->n_sources; i++)
    if (!add_loop (self, self->inner->sources[i], TRUE))
      return FALSE;
  sort_loops (self);
  for (guint role = 0; role < RECOGNISE_N_ROLES; role++) {
    guint n = 0;
    for (guint i = 0; i < self->n_loops; i++)
      n += self->loops[i].strides[role] != 0;
    if (self->accesses[role].param != NULL && n != self->accesses[role].at->n)
      return FALSE;
  }
  return TRUE;
}

static gboolean
can_join (const Loop *outer, const Loop *inner)
{
  if (outer->is_reduced != inner->is_reduced)
    return FALSE;
  for (guint role = 0; role < RECOGNISE_N_ROLES; role++)
    if (outer->strides[role] != inner->strides[role] * inner->extent)
      return FALSE;
  return TRUE;
}

void
recognise_join_loops (Recognition *self, gboolean only_without_a)
{
  for (guint i = 0; i < self->n_loops; i++)
    for (guint j = 0; j < self->n_loops; j++) {
      Loop *outer = &self->loops[i], *inner = &self->loops[j];
      if (i == j || !can_join (outer, inner)
          || (only_without_a && recognise_is_in (inner, TINY_ROLE_A)))
        continue;
      inner->extent *= outer->extent;
      inner->range = NULL;
      memmove (outer, outer + 1, (self->n_loops - i - 1) * sizeof *outer);
      self->n_loops--;
      i = 0;
      j = G_MAXUINT;
    }
}

/* ---- axes and operands ---- */
void
recognise_set_axis (Recognition *self, guint axis, Loop *loop)
{
  if (loop == NULL)
    return;
  loop->is_used = TRUE;
  self->out->extents[axis] = loop->extent;
  for (guint role = 0; role < RECOGNISE_N_ROLES; role++)
    self->out->operands[role].strides[axis] = loop->strides[role];
}

gboolean
recognise_add_operands (Recognition *self)
{
  TinyOperation *out = self->out;
  for (guint i = 0; i < self->n_loops; i++)
    if (!self->loops[i].is_used)
      return FALSE;
  for (guint role = 0; role < RECOGNISE_N_ROLES; role++) {
    const Access *access = &self->accesses[role];
    TinyOperandView view = out->operands[role];
    memset (&out->operands[role], 0, sizeof view);
    if (access->param == NULL)
      continue;
    view.role = role;
    view.dtype = access->param->dtype;
    view.buffer = (uint32_t) access->param->arg;
    view.n_elements = (uint64_t) access->param->ints->v[0];
    view.offset = access->at->offset + access->moved;
    out->n_buffers = MAX (out->n_buffers, view.buffer + 1);
    out->operands[out->n_operands++] = view;
  }
  return TRUE;
}

/* ---- kinds ---- */
static void
begin (Recognition *self)
{
  const Access output = self->accesses[TINY_ROLE_OUTPUT];
  memset (self->out, 0, sizeof *self->out);
  memset (self->accesses, 0, sizeof self->accesses);
  self->inner = NULL;
  self->accesses[TINY_ROLE_OUTPUT] = output;
  self->out->struct_size = sizeof *self->out;
  self->out->version = TINY_OPERATION_VERSION;
  self->out->scale = 1;
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
  static gboolean (*const kinds[]) (Recognition * self)
      = { recognise_matmul, recognise_convolution, recognise_reduction, recognise_softmax,
          recognise_attention };
  if (kernel->n_sources != 1 || kernel->sources[0]->n_sources != 3
      || kernel->sources[0]->sources[0]->op != TINY_OP_PARAM)
    return FALSE;
  TinyNode *store = kernel->sources[0];
  const Affine *at = affine_read (pool, store->sources[1]);
  if (!is_sum_of_loops (at))
    return FALSE;
  Recognition self = { .graph = graph, .pool = pool, .store = store, .out = out };
  self.accesses[TINY_ROLE_OUTPUT] = (Access){ .param = store->sources[0], .at = at };
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    begin (&self);
    recognise_epilogue (&self);
    if (kinds[i](&self))
      return uses_all_buffers (out);
  }
  return FALSE;
}
