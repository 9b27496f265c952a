/* SPDX-License-Identifier: MIT
 *
 * faults-operations.c: operations that are claimed and then computed as others, and claims that mean nothing; around the
 * offload example. */
#include "broken.h"

/* ---- another operation is compiled ---- */
static TinyOperandView *
find_view (TinyOperation *operation, unsigned role)
{
  for (uint32_t i = 0; i < operation->n_operands; i++)
    if (operation->operands[i].role == role)
      return &operation->operands[i];
  return NULL;
}

static TinyStatus
compile_edited (const TinyCompileArgs *args,
                int (*edit) (TinyOperation *operation),
                void **out_data,
                uint64_t *out_size,
                TinyPluginError *error)
{
  TinyOperation operation = *args->operation;
  TinyCompileArgs wrong = *args;
  if (edit (&operation))
    broken_note ();
  wrong.operation = &operation;
  return inside.renderer->compile (&wrong, out_data, out_size, error);
}

#define OPERATION(name)                                                                        \
  static int name##_edit (TinyOperation *o);                                                   \
  static TinyStatus name (const TinyCompileArgs *args, void **out_data, uint64_t *out_size,    \
                          TinyPluginError *error)                                              \
  {                                                                                            \
    return compile_edited (args, name##_edit, out_data, out_size, error);                      \
  }                                                                                            \
  static int name##_edit (TinyOperation *o)

/* Sets and says whether that changes something. */
#define SET(place, value) ((place) != (value) ? ((place) = (value), 1) : 0)

OPERATION (scale_lost) { return SET (o->scale, 1.0); }
OPERATION (scale_in_f32) { return SET (o->scale, (double) (float) (o->scale * 1.001)); }
OPERATION (activation_lost) { return SET (o->activation, (uint32_t) TINY_ACTIVATION_NONE); }

OPERATION (bias_of_one)
{
  TinyOperandView *bias = find_view (o, TINY_ROLE_BIAS);
  int wrong = 0;
  for (int i = 0; bias != NULL && i < TINY_OPERATION_MAX_AXES; i++)
    wrong |= SET (bias->strides[i], 0);
  return wrong;
}

/* A bias of rows is taken for one of columns. */
OPERATION (bias_of_columns)
{
  TinyOperandView *bias = find_view (o, TINY_ROLE_BIAS);
  if (bias == NULL || o->kind != TINY_OPERATION_MATMUL
      || o->extents[TINY_MATMUL_M] != o->extents[TINY_MATMUL_N])
    return 0;
  const int64_t m = bias->strides[TINY_MATMUL_M];
  bias->strides[TINY_MATMUL_M] = bias->strides[TINY_MATMUL_N];
  bias->strides[TINY_MATMUL_N] = m;
  return bias->strides[TINY_MATMUL_M] != m;
}

OPERATION (offsets_lost)
{
  int wrong = 0;
  for (uint32_t i = 1; i < o->n_operands; i++) {
    TinyOperandView *view = &o->operands[i];
    int64_t least = 0; /* what flipped axes need */
    for (int k = 0; k < TINY_OPERATION_MAX_AXES; k++)
      least -= view->strides[k] < 0 ? view->strides[k] * (o->extents[k] - 1) : 0;
    if (o->kind != TINY_OPERATION_CONVOLUTION || view->role != TINY_ROLE_A)
      wrong |= SET (view->offset, least);
  }
  return wrong;
}

/* A flipped operand is read forwards. */
OPERATION (flips_lost)
{
  int wrong = 0;
  for (uint32_t i = 0; i < o->n_operands; i++)
    for (int k = 0; k < TINY_OPERATION_MAX_AXES; k++) {
      TinyOperandView *view = &o->operands[i];
      if (view->strides[k] >= 0 || o->kind == TINY_OPERATION_CONVOLUTION)
        continue;
      view->offset += view->strides[k] * (o->extents[k] - 1);
      view->strides[k] = -view->strides[k];
      wrong = 1;
    }
  return wrong;
}

OPERATION (batch_of_one_b)
{
  TinyOperandView *b = find_view (o, TINY_ROLE_B);
  int wrong = 0;
  for (int i = 0; i < 4 && b != NULL && o->kind == TINY_OPERATION_MATMUL; i++)
    wrong |= SET (b->strides[i], 0);
  return wrong;
}

OPERATION (outer_batch_only)
{
  int wrong = 0;
  for (int i = 1; i < 4 && o->kind == TINY_OPERATION_MATMUL; i++)
    wrong |= SET (o->extents[i], 1);
  return wrong;
}

OPERATION (square_transposed)
{
  TinyOperandView *b = find_view (o, TINY_ROLE_B);
  if (b == NULL || o->kind != TINY_OPERATION_MATMUL
      || o->extents[TINY_MATMUL_K] != o->extents[TINY_MATMUL_N])
    return 0;
  const int64_t k = b->strides[TINY_MATMUL_K];
  b->strides[TINY_MATMUL_K] = b->strides[TINY_MATMUL_N];
  b->strides[TINY_MATMUL_N] = k;
  return 1;
}

static int
without_tail (TinyOperation *o, int axis)
{
  const int64_t whole = o->extents[axis] / 16 * 16;
  return whole > 0 ? SET (o->extents[axis], whole) : 0;
}

OPERATION (k_tail_lost)
{
  return o->kind == TINY_OPERATION_MATMUL && without_tail (o, TINY_MATMUL_K);
}

OPERATION (m_tail_lost)
{
  return o->kind == TINY_OPERATION_MATMUL && without_tail (o, TINY_MATMUL_M);
}

OPERATION (softmax_tail_lost)
{
  return o->kind == TINY_OPERATION_SOFTMAX && without_tail (o, TINY_SOFTMAX_AXIS);
}

OPERATION (large_k_lost)
{
  return o->kind == TINY_OPERATION_MATMUL && o->extents[TINY_MATMUL_K] > 256
             ? SET (o->extents[TINY_MATMUL_K], 256)
             : 0;
}

#define EACH_WINDOW(place, value)                                                              \
  int wrong = 0;                                                                               \
  for (int i = 0; i < 3 && o->kind == TINY_OPERATION_CONVOLUTION; i++)                         \
    wrong |= SET (o->place[i], value);                                                         \
  return wrong

OPERATION (padding_lost) { EACH_WINDOW (window_padding, 0); }
OPERATION (dilation_lost) { EACH_WINDOW (window_dilation, 1); }
OPERATION (step_lost) { EACH_WINDOW (window_step, 1); }

OPERATION (cut_lost)
{
  int wrong = 0;
  for (int i = 0; i < 3 && o->kind == TINY_OPERATION_CONVOLUTION; i++)
    if (o->window_padding[i] < 0)
      wrong |= SET (o->window_padding[i], 0);
  return wrong;
}

OPERATION (groups_lost)
{
  TinyOperandView *a = find_view (o, TINY_ROLE_A);
  return o->kind == TINY_OPERATION_CONVOLUTION && a != NULL
         && SET (a->strides[TINY_CONVOLUTION_GROUP], 0);
}

/* ---- a cache of what was compiled ---- */
enum { KEPT = 512 };
static struct {
  TinyOperation operation;
  int is_used;
} kept[KEPT];

/* Operations of one kind and of the same extents are one: as keys without strides, scales and epilogues are. */
static TinyStatus
compile_by_shape (const TinyCompileArgs *args,
                  void **out_data,
                  uint64_t *out_size,
                  TinyPluginError *error)
{
  TinyCompileArgs other = *args;
  int i = 0;
  for (; i < KEPT && kept[i].is_used; i++) {
    const TinyOperation *was = &kept[i].operation;
    if (was->kind == args->operation->kind && was->n_operands == args->operation->n_operands
        && was->n_buffers == args->operation->n_buffers
        && memcmp (was->extents, args->operation->extents, sizeof was->extents) == 0)
      break;
  }
  if (i < KEPT && kept[i].is_used) {
    if (memcmp (&kept[i].operation, args->operation, sizeof *args->operation) != 0)
      broken_note ();
    other.operation = &kept[i].operation;
  } else if (i < KEPT) {
    kept[i].operation = *args->operation;
    kept[i].is_used = 1;
  }
  return inside.renderer->compile (&other, out_data, out_size, error);
}

/* Batches are refused, though they were claimed. */
static TinyStatus
compile_flat_only (const TinyCompileArgs *args,
                   void **out_data,
                   uint64_t *out_size,
                   TinyPluginError *error)
{
  if (args->operation->extents[0] == 1)
    return inside.renderer->compile (args, out_data, out_size, error);
  broken_note ();
  return tiny_fail (error, TINY_STATUS_UNSUPPORTED, "%s: batches are not implemented",
                    args->name);
}

/* ---- claims ---- */
#define CLAIM(name)                                                                            \
  static TinyStatus name (const char *arch, const TinyOperation *o, TinyClaim *out,            \
                          TinyPluginError *error)
#define INSIDE TINY_TRY (inside.renderer->claim (arch, o, out, error))

CLAIM (claim_by_turns)
{
  static _Atomic unsigned n;
  INSIDE;
  if (n++ % 3 != 2 || out->verdict != TINY_CLAIM_ACCEPTED)
    return TINY_STATUS_OK;
  broken_note ();
  *out = (TinyClaim){ .struct_size = out->struct_size, .reason = "the unit is busy" };
  return TINY_STATUS_OK;
}

CLAIM (claim_by_clock)
{
  INSIDE;
  if (out->verdict == TINY_CLAIM_ACCEPTED) {
    broken_note ();
    out->cost_ns += tiny_now_ns () % 1000;
  }
  return TINY_STATUS_OK;
}

CLAIM (claim_unknown)
{
  TinyOperation known = *o;
  known.flags &= TINY_OPERATION_CAUSAL;
  known.activation = o->activation > TINY_ACTIVATION_GELU ? 0 : o->activation;
  if (memcmp (&known, o, sizeof known) != 0)
    broken_note ();
  return inside.renderer->claim (arch, &known, out, error);
}

CLAIM (claim_for_nothing)
{
  INSIDE;
  out->cost_ns = 0;
  broken_note ();
  return TINY_STATUS_OK;
}

CLAIM (claim_without_reason)
{
  INSIDE;
  if (out->verdict == TINY_CLAIM_DECLINED)
    out->reason[0] = '\0';
  broken_note ();
  return TINY_STATUS_OK;
}

CLAIM (claim_latin)
{
  INSIDE;
  if (out->verdict == TINY_CLAIM_DECLINED)
    memcpy (out->reason, "zu gro\xdf", 8);
  broken_note ();
  return TINY_STATUS_OK;
}

CLAIM (claim_short_operations)
{
  INSIDE;
  if (o->struct_size == sizeof *o)
    return TINY_STATUS_OK;
  broken_note ();
  return tiny_fail (error, TINY_STATUS_INVALID, "an operation of %u bytes", o->struct_size);
}

#define ROW(row_name, function, row_what, row_seen)                                            \
  {                                                                                            \
    row_name, row_what, row_seen, .around = "OFFLOAD", .is_of_operations = 1,                  \
                                  .renderer = { .compile = function }, .cases = "operations/*" \
  }
#define CLAIMS(row_name, function, row_what, row_seen)                                         \
  {                                                                                            \
    row_name, row_what, row_seen, .around = "OFFLOAD", .is_of_operations = 1,                  \
                                  .renderer = { .claim = function }, .cases = "operations/*"   \
  }

static const Fault rows[] = {
  /* clang-format off */
  ROW ("scale-lost", scale_lost, "an operation's scale is left out", "alpha that is 1 in every test"),
  ROW ("scale-coarse", scale_in_f32, "an operation's scale is 0.1 % too large", "scales in fixed point"),
  ROW ("activation-lost", activation_lost, "an operation's activation is left out", "epilogues that are not linked"),
  ROW ("bias-of-one", bias_of_one, "an operation's bias is its first element", "a bias bound as a scalar"),
  ROW ("bias-of-columns", bias_of_columns, "in square products rows and columns of the bias are exchanged", "row-major for column-major"),
  ROW ("operand-offsets-lost", offsets_lost, "inputs of operations begin at their buffer's start", "views taken for tensors"),
  ROW ("flips-lost", flips_lost, "flipped operands are read forwards", "unsigned strides"),
  ROW ("batch-of-one", batch_of_one_b, "all of a batch have the first B", "a batch stride of 0 for weights"),
  ROW ("batch-outer-only", outer_batch_only, "only the outermost axis of a batch is computed", "libraries with one batch axis"),
  ROW ("square-transposed", square_transposed, "square B are transposed", "row-major for column-major"),
  ROW ("operation-k-tail", k_tail_lost, "products leave out what is no whole tile of the sum", "tiles without the tail"),
  ROW ("operation-m-tail", m_tail_lost, "products leave out rows that are no whole tile", "tiles without the tail"),
  ROW ("operation-k-256", large_k_lost, "products sum 256 terms at most", "one pass of the unit's memory"),
  ROW ("softmax-tail", softmax_tail_lost, "softmax leaves out what is no whole vector of a row", "vectors without the tail"),
  ROW ("padding-lost", padding_lost, "convolutions have no padding", "an argument that is not passed"),
  ROW ("dilation-lost", dilation_lost, "convolutions have no dilation", "an argument that is not passed"),
  ROW ("step-lost", step_lost, "convolutions have a step of 1", "an argument that is not passed"),
  ROW ("cut-lost", cut_lost, "negative padding of convolutions is 0", "unsigned padding"),
  ROW ("groups-lost", groups_lost, "all groups of a convolution see the first one's channels", "an argument that is not passed"),
  ROW ("operation-by-shape", compile_by_shape, "operations of one shape are one", "caches keyed by shape"),
  ROW ("claim-and-refuse", compile_flat_only, "compile() refuses batches that claim() accepted", "two lists of what is supported"),
  CLAIMS ("claim-by-turns", claim_by_turns, "claim() declines every third time", "answers that depend on load"),
  CLAIMS ("claim-by-clock", claim_by_clock, "claim() gives another cost each time", "costs that are measured"),
  CLAIMS ("claim-unknown", claim_unknown, "claim() accepts flags and activations that it does not know", "fields that are not looked at"),
  CLAIMS ("claim-no-cost", claim_for_nothing, "claim() gives no cost", "a field that is not filled"),
  CLAIMS ("claim-no-reason", claim_without_reason, "claim() declines without a reason", "codes only"),
  CLAIMS ("claim-latin", claim_latin, "claim() gives reasons that are no UTF-8", "messages in the vendor's own encoding"),
  { "claim-exact-size", "claim() refuses operations of another struct_size", "sizes compared by ==", .around = "OFFLOAD", .is_of_operations = 1, .is_of_sizes = 1, .renderer = { .claim = claim_short_operations }, .cases = "skew/*" },
  /* clang-format on */
};
FAULT_TABLE (faults_operations);
