/* SPDX-License-Identifier: MIT
 *
 * tiny-recurrent-layers.c: LSTM, GRU and plain recurrence, and one step of each.
 *
 * A sequence is unrolled: the graph has a copy of the step for each time. What the input adds to the gates
 * is one product for all times; the state of each time is stored, or later ones would compute it again. */
#include "nn/tiny-recurrent-layers.h"

#include <math.h>
#include <string.h>

#include "nn/module-private.h"
#include "nn/tiny-layers.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"
#include "tensor/tiny-tensor-shard.h"

typedef enum { LSTM, GRU, RNN_TANH, RNN_RELU } Kind;

static const char *const kind_names[] = { "lstm", "gru", "rnn", "rnn" };
static const guint n_gates[] = { 4, 3, 1, 1 };
static const guint n_states[] = { 2, 1, 1, 1 };

/* h, and c of an LSTM; borrowed. */
typedef struct {
  TinyTensor *v[2];
} State;

/* Gate @i of (…, gates * H). */
static TinyTensor *
gate (TinyTensor *gates, guint i, gint64 n_hidden)
{
  return tiny_tensor_slice (gates, -1, i * n_hidden, (i + 1) * n_hidden, 1);
}

/* @x is what the input adds to the gates: (B, 4H); @projection is (P, H) or NULL. */
static State
step_lstm (GPtrArray *kept,
           TinyTensor *x,
           TinyTensor *h,
           State before,
           gint64 n,
           TinyTensor *projection)
{
  TinyTensor *gates = tiny_keep (kept, tiny_tensor_add (x, h));
  TinyTensor *kept_c = tiny_tensor_mul (tiny_tensor_sigmoid (gate (gates, 1, n)), before.v[1]);
  TinyTensor *new_c = tiny_tensor_mul (tiny_tensor_sigmoid (gate (gates, 0, n)),
                                       tiny_tensor_tanh (gate (gates, 2, n)));
  TinyTensor *c = tiny_keep (kept, tiny_tensor_contiguous (tiny_tensor_add (kept_c, new_c)));
  TinyTensor *out = tiny_tensor_sigmoid (gate (gates, 3, n));
  TinyTensor *y = tiny_tensor_mul (out, tiny_tensor_tanh (c));
  if (projection != NULL)
    y = tiny_tensor_linear (y, projection, NULL);
  return (State){ { tiny_keep (kept, tiny_tensor_contiguous (y)), c } };
}

static State
step_gru (GPtrArray *kept, TinyTensor *x, TinyTensor *h, State before, gint64 n)
{
  TinyTensor *r = tiny_tensor_sigmoid (tiny_tensor_add (gate (x, 0, n), gate (h, 0, n)));
  TinyTensor *z = tiny_keep (
      kept, tiny_tensor_sigmoid (tiny_tensor_add (gate (x, 1, n), gate (h, 1, n))));
  TinyTensor *from_h = tiny_tensor_mul (r, gate (h, 2, n));
  TinyTensor *fresh = tiny_tensor_tanh (tiny_tensor_add (gate (x, 2, n), from_h));
  TinyTensor *rest = tiny_tensor_sub (tiny_tensor_scalar (1), z);
  TinyTensor *y
      = tiny_tensor_add (tiny_tensor_mul (rest, fresh), tiny_tensor_mul (z, before.v[0]));
  return (State){ { tiny_keep (kept, tiny_tensor_contiguous (y)) } };
}

static State
step_rnn (GPtrArray *kept, Kind kind, TinyTensor *x, TinyTensor *h)
{
  TinyTensor *sum = tiny_tensor_add (x, h);
  TinyTensor *y = kind == RNN_TANH ? tiny_tensor_tanh (sum) : tiny_tensor_relu (sum);
  return (State){ { tiny_keep (kept, tiny_tensor_contiguous (y)) } };
}

static State
step (Kind kind,
      GPtrArray *kept,
      TinyTensor *x,
      State before,
      TinyTensor *weight,
      TinyTensor *bias,
      TinyTensor *projection,
      gint64 n)
{
  TinyTensor *h = tiny_keep (kept, tiny_tensor_linear (before.v[0], weight, bias));
  switch (kind) {
  case LSTM:
    return step_lstm (kept, x, h, before, n, projection);
  case GRU:
    return step_gru (kept, x, h, before, n);
  case RNN_TANH:
  case RNN_RELU:
    return step_rnn (kept, kind, x, h);
  }
  g_assert_not_reached ();
}

static gboolean
check_sizes (TinyModule *self, Kind kind, gint64 n_in, gint64 n_hidden)
{
  if (n_in < 1 || n_hidden < 1 || n_hidden > G_MAXINT32)
    tiny_module_fail (self, "%s: %" G_GINT64_FORMAT " features to %" G_GINT64_FORMAT,
                      kind_names[kind], n_in, n_hidden);
  return tiny_module_get_error (self) == NULL;
}

/* weight_ih, weight_hh, bias_ih, bias_hh and, where @n_projected is not 0, weight_hr with what follows in
 * their names. */
static void
init_weights (TinyModule *self,
              Kind kind,
              gint64 n_in,
              gint64 n,
              gint64 n_projected,
              gboolean bias,
              const char *suffix)
{
  gint64 n_gated = n_gates[kind] * n, n_back = n_projected > 0 ? n_projected : n;
  const struct {
    const char *name;
    gboolean is_there;
    guint n_dims;
    gint64 shape[2];
  } rows[] = {
    { "weight_ih", TRUE, 2, { n_gated, n_in } },
    { "weight_hh", TRUE, 2, { n_gated, n_back } },
    { "bias_ih", bias, 1, { n_gated } },
    { "bias_hh", bias, 1, { n_gated } },
    { "weight_hr", n_projected > 0, 2, { n_projected, n } },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *name = g_strconcat (rows[i].name, suffix, NULL);
    if (rows[i].is_there)
      tiny_module_init_parameter (
          self, name,
          tiny_uniform_around (rows[i].shape, rows[i].n_dims, 1 / sqrt ((double) n)));
  }
}

static TinyTensor *
weight (TinyModule *self, const char *name, const char *suffix)
{
  g_autofree char *full = g_strconcat (name, suffix, NULL);
  return tiny_module_own (self, full);
}

/* One result: what is wrong with the inputs. */
static GPtrArray *
give_wrong (TinyTensor *wrong)
{
  GPtrArray *results = g_ptr_array_new ();
  g_ptr_array_add (results, wrong);
  return results;
}

/* (transfer floating) (nullable): what is wrong with inputs of x, that ends with @n_in, and states. */
static TinyTensor *
find_wrong (Kind kind, GPtrArray *inputs, gint64 n_in, gboolean takes_lengths)
{
  const char *name = kind_names[kind];
  if (inputs->len != 1 && inputs->len != 1 + n_states[kind]
      && (!takes_lengths || inputs->len != 2 + n_states[kind]))
    return tiny_tensor_new_invalid ("%s: takes 1 input, or %u with the states, not %u", name,
                                    1 + n_states[kind], inputs->len);
  for (guint i = 0; i < inputs->len; i++) {
    TinyTensor *input = inputs->pdata[i];
    if (input == NULL)
      return tiny_tensor_new_invalid ("%s: input %u is NULL", name, i);
    if (input->error != NULL)
      return tiny_tensor_new_alias (input);
  }
  const TinyTensor *x = inputs->pdata[0];
  if (x->n_dims < 1 || x->shape[x->n_dims - 1] != n_in)
    return tiny_tensor_new_invalid ("%s: the input has %" G_GINT64_FORMAT
                                    " features, not %" G_GINT64_FORMAT,
                                    name, x->n_dims < 1 ? 0 : x->shape[x->n_dims - 1], n_in);
  return NULL;
}

/* Each step of a sequence is an expression of its own. */
static TinyTensor *
find_wrong_time (Kind kind, gint64 n_times)
{
  enum { MOST_TIMES = 1 << 14 };
  if (n_times < 1)
    return tiny_tensor_new_invalid ("%s: the sequence is empty", kind_names[kind]);
  if (n_times <= MOST_TIMES)
    return NULL;
  return tiny_tensor_new_invalid ("%s: a sequence of %" G_GINT64_FORMAT
                                  " steps; at most %d, longer ones in parts, with the states",
                                  kind_names[kind], n_times, MOST_TIMES);
}

/* @shape is that of c where there is one; h ends with @n_out. */
static TinyTensor *
find_wrong_state (Kind kind, GPtrArray *inputs, gint64 *shape, guint n_dims, gint64 n_out)
{
  gint64 n_hidden = shape[n_dims - 1];
  for (guint i = 1; i < inputs->len && i <= n_states[kind]; i++) {
    const TinyTensor *state = inputs->pdata[i];
    shape[n_dims - 1] = i == 1 ? n_out : n_hidden;
    if (state->n_dims != n_dims || memcmp (state->shape, shape, n_dims * sizeof *shape) != 0)
      return tiny_tensor_new_invalid (
          "%s: a state of this input is (%s%" G_GINT64_FORMAT ", %" G_GINT64_FORMAT ")",
          kind_names[kind], n_dims == 3 ? "L, " : "", shape[n_dims - 2], shape[n_dims - 1]);
  }
  return NULL;
}

static gboolean
is_lengths (const TinyTensor *lengths, gint64 n)
{
  return tiny_dtype_is_integer (lengths->dtype) && lengths->n_dims == 1
         && lengths->shape[0] == n;
}

/* ---- along a sequence ---- */
typedef struct {
  TinyModule parent_instance;
  Kind kind;
  gint64 n_in, n_hidden, n_projected;
  guint n_layers;
  gboolean batch_first, bidirectional;
} TinyRecurrentLayer;

TINY_DEFINE_LAYER (TinyRecurrentLayer, tiny_recurrent_layer)

/* Features of h. */
static gint64
n_out (const TinyRecurrentLayer *self)
{
  return self->n_projected > 0 ? self->n_projected : self->n_hidden;
}

static char *
suffix_of (guint layer, gboolean reverse)
{
  return g_strdup_printf ("_l%u%s", layer, reverse ? "_reverse" : "");
}

/* @now at time @t in rows of sequences that are longer (@lengths, (B)), @before in others, which have ended or, backwards,
 * not begun; @out is 0 there. */
static State
hold_rest (GPtrArray *kept,
           TinyTensor *lengths,
           gint64 t,
           State now,
           State before,
           guint n,
           TinyTensor **out)
{
  TinyTensor *is_on
      = tiny_tensor_unsqueeze (tiny_tensor_gt (lengths, tiny_tensor_scalar ((double) t)), 1);
  tiny_keep (kept, is_on);
  *out = tiny_keep (kept, tiny_tensor_where (is_on, now.v[0], tiny_tensor_scalar (0)));
  for (guint k = 0; k < n; k++)
    now.v[k] = tiny_keep (
        kept, tiny_tensor_contiguous (tiny_tensor_where (is_on, now.v[k], before.v[k])));
  return now;
}

/* One direction of one layer: x (T, B, I) to the states of all times in @out, T·(B, H). */
static State
run_direction (TinyRecurrentLayer *self,
               GPtrArray *kept,
               TinyTensor *x,
               guint layer,
               gboolean reverse,
               State state,
               TinyTensor *lengths,
               TinyTensor **out)
{
  TinyModule *module = TINY_MODULE (self);
  g_autofree char *suffix = suffix_of (layer, reverse);
  TinyTensor *all = tiny_tensor_linear (x, weight (module, "weight_ih", suffix),
                                        weight (module, "bias_ih", suffix));
  all = tiny_keep (kept, tiny_tensor_contiguous (all));
  gint64 n_times = x->shape[0];
  for (gint64 i = 0; i < n_times; i++) {
    gint64 t = reverse ? n_times - 1 - i : i;
    TinyTensor *at = tiny_keep (
        kept, tiny_tensor_squeeze (tiny_tensor_slice (all, 0, t, t + 1, 1), (gint[]){ 0 }, 1));
    State now = step (self->kind, kept, at, state, weight (module, "weight_hh", suffix),
                      weight (module, "bias_hh", suffix), weight (module, "weight_hr", suffix),
                      self->n_hidden);
    out[t] = now.v[0];
    state = lengths == NULL
                ? now
                : hold_rest (kept, lengths, t, now, state, n_states[self->kind], &out[t]);
  }
  return state;
}

static TinyTensor *
run_layer (TinyRecurrentLayer *self,
           GPtrArray *kept,
           TinyTensor *x,
           guint layer,
           const State *starts,
           TinyTensor *lengths,
           State *ends)
{
  guint n_directions = self->bidirectional ? 2 : 1;
  gint64 n_times = x->shape[0];
  TinyTensor *ways[2];
  for (guint d = 0; d < n_directions; d++) {
    g_autofree TinyTensor **out = g_new0 (TinyTensor *, n_times);
    ends[d] = run_direction (self, kept, x, layer, d == 1, starts[d], lengths, out);
    ways[d] = tiny_tensor_stack (out, (guint) n_times, 0);
  }
  TinyTensor *y = n_directions == 2 ? tiny_tensor_cat (ways, 2, -1) : ways[0];
  TinyModule *dropout = tiny_module_get_child (TINY_MODULE (self), "dropout");
  if (dropout != NULL && layer + 1 < self->n_layers)
    y = tiny_module_forward (dropout, y);
  return tiny_keep (kept, y);
}

/* x (T, B, I); states (L·D, B, H); lengths (B) or NULL. */
static GPtrArray *
run (TinyRecurrentLayer *self,
     GPtrArray *kept,
     TinyTensor *x,
     TinyTensor *const *given,
     TinyTensor *lengths)
{
  guint n_directions = self->bidirectional ? 2 : 1, n = self->n_layers * n_directions;
  g_autofree State *starts = g_new0 (State, n);
  g_autofree State *ends = g_new0 (State, n);
  for (guint i = 0; i < n; i++)
    for (guint k = 0; k < n_states[self->kind]; k++) {
      const gint64 shape[] = { x->shape[1], k == 0 ? n_out (self) : self->n_hidden };
      TinyTensor *start
          = given != NULL ? tiny_tensor_squeeze (tiny_tensor_slice (given[k], 0, i, i + 1, 1),
                                                 (gint[]){ 0 }, 1)
                          : tiny_tensor_to (tiny_tensor_zeros (x->dtype, shape, 2), x->device);
      starts[i].v[k] = tiny_keep (kept, start);
    }
  for (guint layer = 0; layer < self->n_layers && x->error == NULL; layer++)
    x = run_layer (self, kept, x, layer, starts + layer * n_directions, lengths,
                   ends + layer * n_directions);
  GPtrArray *results = g_ptr_array_new ();
  g_ptr_array_add (results, g_object_ref (x));
  for (guint k = 0; k < n_states[self->kind] && x->error == NULL; k++) {
    g_autofree TinyTensor **last = g_new (TinyTensor *, n);
    for (guint i = 0; i < n; i++)
      last[i] = ends[i].v[k];
    g_ptr_array_add (results, g_object_ref_sink (tiny_tensor_stack (last, n, 0)));
  }
  return results;
}

static GPtrArray *
tiny_recurrent_layer_forward_many (TinyModule *module, GPtrArray *inputs)
{
  TinyRecurrentLayer *self = (TinyRecurrentLayer *) module;
  TinyTensor *wrong = find_wrong (self->kind, inputs, self->n_in, TRUE);
  if (wrong != NULL)
    return give_wrong (wrong);
  g_autoptr (GPtrArray) kept = tiny_kept_new ();
  guint n_given = MIN (inputs->len - 1, n_states[self->kind]);
  TinyTensor *x = inputs->pdata[0], *states[2] = { NULL };
  TinyTensor *lengths = inputs->len > 1 + n_given ? inputs->pdata[1 + n_given] : NULL;
  gboolean is_single = x->n_dims == 2;
  if (x->n_dims != 3 && !is_single)
    return give_wrong (tiny_tensor_new_invalid ("%s: takes 2 or 3 axes, not %u",
                                                kind_names[self->kind], x->n_dims));
  gint batch_axis = self->batch_first ? 0 : 1;
  gint64 n_times = x->shape[is_single || !self->batch_first ? 0 : 1];
  wrong = find_wrong_time (self->kind, n_times);
  if (wrong != NULL)
    return give_wrong (wrong);
  gint64 shape[] = { self->n_layers * (self->bidirectional ? 2 : 1),
                     is_single ? 1 : x->shape[batch_axis], self->n_hidden };
  gint64 single[] = { shape[0], shape[2] };
  wrong = find_wrong_state (self->kind, inputs, is_single ? single : shape, is_single ? 2 : 3,
                            n_out (self));
  if (wrong == NULL && lengths != NULL && !is_lengths (lengths, is_single ? 0 : shape[1]))
    wrong = tiny_tensor_new_invalid ("%s: lengths are integers, one for each sequence",
                                     kind_names[self->kind]);
  if (wrong != NULL)
    return give_wrong (wrong);
  if (is_single)
    x = tiny_keep (kept, tiny_tensor_unsqueeze (x, 1));
  else if (self->batch_first)
    x = tiny_keep (kept, tiny_tensor_transpose (x, 0, 1));
  for (guint k = 0; k < n_given; k++)
    states[k] = tiny_keep (kept, is_single ? tiny_tensor_unsqueeze (inputs->pdata[k + 1], 1)
                                           : tiny_tensor_new_alias (inputs->pdata[k + 1]));
  GPtrArray *results = run (self, kept, x, n_given > 0 ? states : NULL, lengths);
  g_ptr_array_set_free_func (results, g_object_unref);
  GPtrArray *shaped = g_ptr_array_new ();
  for (guint i = 0; i < results->len; i++) {
    TinyTensor *result = results->pdata[i];
    g_ptr_array_add (shaped, is_single ? tiny_tensor_squeeze (result, (gint[]){ 1 }, 1)
                             : i == 0 && self->batch_first
                                 ? tiny_tensor_transpose (result, 0, 1)
                                 : g_object_ref (result));
  }
  g_ptr_array_unref (results);
  return shaped;
}

static void
tiny_recurrent_layer_class_init (TinyRecurrentLayerClass *class)
{
  class->forward_many = tiny_recurrent_layer_forward_many;
}

static TinyModule *
recurrent_new (Kind kind,
               gint64 n_in,
               gint64 n_hidden,
               guint n_layers,
               gboolean bias,
               gboolean batch_first,
               double dropout,
               gboolean bidirectional,
               gint64 n_projected)
{
  TinyRecurrentLayer *self = g_object_new (tiny_recurrent_layer_get_type (), NULL);
  TinyModule *module = TINY_MODULE (self);
  guint n_directions = bidirectional ? 2 : 1;
  self->kind = kind;
  self->n_in = n_in;
  self->n_hidden = n_hidden;
  self->n_projected = n_projected;
  self->n_layers = n_layers;
  self->batch_first = batch_first;
  self->bidirectional = bidirectional;
  if (!check_sizes (module, kind, n_in, n_hidden))
    return module;
  if (n_layers < 1 || n_layers > 1024) {
    tiny_module_fail (module, "%s: %u layers are not 1 to 1024", kind_names[kind], n_layers);
    return module;
  }
  if (n_projected < 0 || n_projected >= n_hidden) {
    tiny_module_fail (module,
                      "%s: %" G_GINT64_FORMAT " features are not projected to %" G_GINT64_FORMAT
                      ": fewer of them are wanted, or 0 for none",
                      kind_names[kind], n_hidden, n_projected);
    return module;
  }
  for (guint i = 0; i < n_layers * n_directions; i++) {
    g_autofree char *suffix = suffix_of (i / n_directions, i % n_directions == 1);
    init_weights (module, kind, i < n_directions ? n_in : n_directions * n_out (self), n_hidden,
                  n_projected, bias, suffix);
  }
  if (dropout != 0)
    tiny_module_init_child (module, "dropout", tiny_dropout_new (dropout));
  return module;
}

TinyModule *
tiny_lstm_new (gint64 n_in,
               gint64 n_hidden,
               guint n_layers,
               gboolean bias,
               gboolean batch_first,
               double dropout,
               gboolean bidirectional,
               gint64 n_projected)
{
  return recurrent_new (LSTM, n_in, n_hidden, n_layers, bias, batch_first, dropout,
                        bidirectional, n_projected);
}

TinyModule *
tiny_gru_new (gint64 n_in,
              gint64 n_hidden,
              guint n_layers,
              gboolean bias,
              gboolean batch_first,
              double dropout,
              gboolean bidirectional)
{
  return recurrent_new (GRU, n_in, n_hidden, n_layers, bias, batch_first, dropout,
                        bidirectional, 0);
}

/* RNN_TANH, and a module with an error for a word that is neither of the two. */
static Kind
read_kind (const char *nonlinearity, TinyModule **out_wrong)
{
  gboolean is_relu = g_strcmp0 (nonlinearity, "relu") == 0;
  if (!is_relu && g_strcmp0 (nonlinearity, "tanh") != 0) {
    *out_wrong = g_object_new (tiny_recurrent_layer_get_type (), NULL);
    tiny_module_fail (*out_wrong, "rnn: the nonlinearity “%s” is none of tanh, relu",
                      nonlinearity == NULL ? "" : nonlinearity);
  }
  return is_relu ? RNN_RELU : RNN_TANH;
}

TinyModule *
tiny_rnn_new (gint64 n_in,
              gint64 n_hidden,
              guint n_layers,
              const char *nonlinearity,
              gboolean bias,
              gboolean batch_first,
              double dropout,
              gboolean bidirectional)
{
  TinyModule *wrong = NULL;
  Kind kind = read_kind (nonlinearity, &wrong);
  return wrong != NULL ? wrong
                       : recurrent_new (kind, n_in, n_hidden, n_layers, bias, batch_first,
                                        dropout, bidirectional, 0);
}

/* ---- one step ---- */
typedef struct {
  TinyModule parent_instance;
  Kind kind;
  gint64 n_in, n_hidden;
} TinyRecurrentCellLayer;

TINY_DEFINE_LAYER (TinyRecurrentCellLayer, tiny_recurrent_cell_layer)

static GPtrArray *
tiny_recurrent_cell_layer_forward_many (TinyModule *module, GPtrArray *inputs)
{
  TinyRecurrentCellLayer *self = (TinyRecurrentCellLayer *) module;
  TinyTensor *wrong = find_wrong (self->kind, inputs, self->n_in, FALSE);
  if (wrong != NULL)
    return give_wrong (wrong);
  g_autoptr (GPtrArray) kept = tiny_kept_new ();
  TinyTensor *x = inputs->pdata[0];
  gint64 shape[] = { x->shape[0], self->n_hidden };
  guint n_dims = x->n_dims;
  if (n_dims != 2)
    return give_wrong (tiny_tensor_new_invalid ("%s: a cell takes (B, I), not %u axes",
                                                kind_names[self->kind], n_dims));
  wrong = find_wrong_state (self->kind, inputs, shape, 2, self->n_hidden);
  shape[1] = self->n_hidden;
  if (wrong != NULL)
    return give_wrong (wrong);
  State state = { { NULL } };
  for (guint k = 0; k < n_states[self->kind]; k++)
    state.v[k] = tiny_keep (
        kept, inputs->len > 1
                  ? tiny_tensor_new_alias (inputs->pdata[k + 1])
                  : tiny_tensor_to (tiny_tensor_zeros (x->dtype, shape, 2), x->device));
  TinyTensor *from_x
      = tiny_keep (kept, tiny_tensor_linear (x, tiny_module_own (module, "weight_ih"),
                                             tiny_module_own (module, "bias_ih")));
  state = step (self->kind, kept, from_x, state, tiny_module_own (module, "weight_hh"),
                tiny_module_own (module, "bias_hh"), NULL, self->n_hidden);
  GPtrArray *results = g_ptr_array_new ();
  for (guint k = 0; k < n_states[self->kind]; k++)
    g_ptr_array_add (results, g_object_ref (state.v[k]));
  return results;
}

static void
tiny_recurrent_cell_layer_class_init (TinyRecurrentCellLayerClass *class)
{
  class->forward_many = tiny_recurrent_cell_layer_forward_many;
}

static TinyModule *
cell_new (Kind kind, gint64 n_in, gint64 n_hidden, gboolean bias)
{
  TinyRecurrentCellLayer *self = g_object_new (tiny_recurrent_cell_layer_get_type (), NULL);
  self->kind = kind;
  self->n_in = n_in;
  self->n_hidden = n_hidden;
  if (check_sizes (TINY_MODULE (self), kind, n_in, n_hidden))
    init_weights (TINY_MODULE (self), kind, n_in, n_hidden, 0, bias, "");
  return TINY_MODULE (self);
}

TinyModule *
tiny_lstm_cell_new (gint64 n_in, gint64 n_hidden, gboolean bias)
{
  return cell_new (LSTM, n_in, n_hidden, bias);
}

TinyModule *
tiny_gru_cell_new (gint64 n_in, gint64 n_hidden, gboolean bias)
{
  return cell_new (GRU, n_in, n_hidden, bias);
}

TinyModule *
tiny_rnn_cell_new (gint64 n_in, gint64 n_hidden, gboolean bias, const char *nonlinearity)
{
  TinyModule *wrong = NULL;
  Kind kind = read_kind (nonlinearity, &wrong);
  return wrong != NULL ? wrong : cell_new (kind, n_in, n_hidden, bias);
}
