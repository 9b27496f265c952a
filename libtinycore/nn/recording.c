/* SPDX-License-Identifier: MIT
 *
 * recording.c: the engine's capture, in the terms of tensors.
 *
 * What is recorded has no branches and knows memory by its address. So a replay is right where inputs are those tensors, or
 * stand for them: the same ones twice or views of one another where they were so then, and no other part of what is recorded. An
 * input that was recorded may have been found by the function in another way as well: whoever else holds it, that is not
 * known until there is a recording of other inputs. */
#include "nn/recording.h"

#include "engine/runtime-private.h"
#include "engine/tiny-capture.h"
#include "engine/tiny-plan.h"
#include "tensor/tiny-found.h"
#include "tensor/tiny-random.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"
#include "tensor/tiny-view.h"

/* Whether another tensor may be in the place of an input. */
typedef enum { IS_UNKNOWN, IS_FREE, IS_FIXED } Freedom;

typedef struct {
  TinyTensor *tensor;  /* (owned) */
  TinyTensor *base;    /* (owned): what it was a view of in the end, or itself */
  guint first;         /* the first input that was the same tensor */
  guint node;          /* the number of its first node */
  gboolean is_written; /* it, or what it was a view of */
  gboolean requires_grad;
  Freedom freedom;
  TinyBuffer *memory; /* (not owned): of the last replay that wrote to it */
} Input;

struct Recording {
  TinyCapture *capture;
  TinyRandomCapture *random; /* what replays draw */
  TinyFound *found;          /* what it depends on besides */
  gboolean is_recorded;
  GArray *inputs;     /* Input */
  GPtrArray *outputs; /* their sizes may be variables */
  guint64 n_roots;    /* that there were before it */
  gint64 n_buffers;   /* likewise */
  GPtrArray *written; /* the inputs of the coming replay that are */
  guint64 n_waiting;  /* see tiny_runtime_count_waiting() */
  GHashTable *state;  /* TinyBuffer, written, that there were before */
  TinyNode **nodes;   /* room for those of all inputs, so that replaying allocates nothing */
  guint n_nodes;
};

static Input *
get_input (const Recording *self, guint i)
{
  return &g_array_index (self->inputs, Input, i);
}

/* What inputs that are views had to themselves was the recording's. */
static void
reread_inputs (Recording *self)
{
  for (guint i = 0; i < self->inputs->len; i++)
    if (get_input (self, i)->tensor->base != NULL)
      tiny_view_refresh (tiny_view_get_base (get_input (self, i)->tensor));
}

gboolean
recording_is_own (Recording *self)
{
  return tiny_capture_is_own (self->capture);
}

void
recording_free (Recording *self)
{
  if (self == NULL)
    return;
  if (self->capture != NULL && !self->is_recorded) {
    tiny_capture_end (self->capture, NULL);
    reread_inputs (self);
  }
  g_clear_pointer (&self->capture, tiny_capture_free);
  g_clear_pointer (&self->random, tiny_random_capture_free);
  g_clear_pointer (&self->found, tiny_found_free);
  g_array_unref (self->inputs);
  g_ptr_array_unref (self->outputs);
  g_ptr_array_unref (self->written);
  g_clear_pointer (&self->state, g_hash_table_unref);
  g_free (self->nodes);
  g_free (self);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Recording, recording_free)

static void
input_clear (gpointer data)
{
  Input *input = data;
  g_clear_object (&input->tensor);
  g_clear_object (&input->base);
}

/* Each input on several devices is a node for each of them, and what is there twice is one. How many there are; @out may be NULL. */
static guint
list_nodes (Recording *self, TinyTensor *const *tensors, TinyNode **out)
{
  guint n_nodes = 0;
  for (guint i = 0; i < self->inputs->len; i++) {
    if (get_input (self, i)->first != i)
      continue;
    TinyNode *memory = tiny_runtime_get_memory (tiny_tensor_get_node (tensors[i]));
    for (guint k = 0; k < tiny_runtime_count_pieces (memory); k++, n_nodes++)
      if (out != NULL)
        out[n_nodes] = tiny_runtime_get_piece (memory, k);
  }
  return n_nodes;
}

/* Its memory, or on several devices the first piece of it. */
static TinyBuffer *
get_memory (TinyTensor *tensor)
{
  TinyNode *node = tiny_runtime_get_memory (tiny_tensor_get_node (tensor));
  return tiny_runtime_is_memory (node)
             ? tiny_runtime_get_buffer (tiny_runtime_get_piece (node, 0))
             : NULL;
}

/* ---- recording ---- */
/* Inputs that are equal expressions would have the same memory; and of views only the recording has it. */
static gboolean
own_inputs (TinyTensor *const *inputs, guint n, GError **error)
{
  for (guint i = 0; i < n; i++)
    if (TINY_IS_TENSOR (inputs[i]) && !recording_is_variable (inputs[i])
        && !tiny_tensor_stand_apart (inputs[i], "jit", error))
      return FALSE;
  if (!recording_realize_inputs (inputs, n, error))
    return FALSE;
  for (guint i = 0; i < n; i++)
    if (!recording_is_variable (inputs[i]) && get_memory (inputs[i]) == NULL) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "jit: input %u has no elements", i);
      return FALSE;
    }
  return TRUE;
}

static guint
find_first (TinyTensor *const *inputs, guint i)
{
  guint first = 0;
  while (inputs[first] != inputs[i])
    first++;
  return first;
}

static void
add_inputs (Recording *self, TinyTensor *const *inputs, guint n)
{
  guint n_nodes = 0;
  for (guint i = 0; i < n; i++) {
    Input input = { .tensor = g_object_ref (inputs[i]),
                    .base = g_object_ref (tiny_view_get_base (inputs[i])),
                    .first = find_first (inputs, i),
                    .requires_grad = inputs[i]->requires_grad,
                    .node = n_nodes };
    TinyNode *memory = tiny_runtime_get_memory (tiny_tensor_get_node (inputs[i]));
    if (input.first == i)
      n_nodes += tiny_runtime_count_pieces (memory);
    g_array_append_val (self->inputs, input);
  }
}

Recording *
recording_begin (TinyTensor *const *inputs, guint n, GError **error)
{
  g_autoptr (Recording) self = g_new0 (Recording, 1);
  self->inputs = g_array_new (FALSE, TRUE, sizeof (Input));
  g_array_set_clear_func (self->inputs, input_clear);
  self->outputs = g_ptr_array_new_with_free_func (g_object_unref);
  self->written = g_ptr_array_new ();
  if (!recording_prepare (inputs, n, error))
    return NULL;
  tiny_view_refresh_all ();
  if (!tiny_tensor_part_all (error) || !own_inputs (inputs, n, error))
    return NULL;
  self->found = tiny_found_new ();
  add_inputs (self, inputs, n);
  g_autofree TinyNode **nodes = g_new0 (TinyNode *, list_nodes (self, inputs, NULL) + 1);
  const guint n_nodes = list_nodes (self, inputs, nodes);
  self->n_buffers = tiny_runtime_count_buffers ();
  self->capture = tiny_capture_begin (nodes, n_nodes, error);
  if (self->capture == NULL)
    return NULL;
  tiny_launches_set_owners (tiny_capture_get_launches (self->capture),
                            tiny_tensor_list_owners ());
  self->n_roots = tiny_runtime_count_roots ();
  self->random = tiny_random_capture_begin ();
  tiny_found_begin (self->found, self->capture);
  return g_steal_pointer (&self);
}

/* The number of the input that is @tensor, or is a view of it if @or_view; or -1. */
static gint
find_input (const Recording *self, const TinyTensor *tensor, gboolean or_view)
{
  for (guint i = 0; i < self->inputs->len; i++)
    if (get_input (self, i)->tensor == tensor
        || (or_view && get_input (self, i)->base == tensor))
      return (gint) i;
  return -1;
}

/* Whether @output stays a view: of what is there at each replay, and is no input. */
static gboolean
stays_view (Recording *self, TinyTensor *output)
{
  TinyTensor *base = tiny_view_get_base (output);
  for (TinyTensor *at = output; at != NULL; at = at->base)
    if (find_input (self, at, FALSE) >= 0)
      return FALSE;
  return get_memory (base) != NULL && find_input (self, base, TRUE) < 0;
}

/* Whether @output is state: it had its memory before. */
static gboolean
owns_memory (const Recording *self, TinyTensor *output)
{
  TinyNode *memory = tiny_runtime_get_memory (tiny_tensor_get_node (output));
  return tiny_launches_get_owner (tiny_capture_get_launches (self->capture), memory)
         == &output->root;
}

/* Gives @output, which is no view, memory that no other tensor has, and no input: later ones are others, and state may be
 * changed outside. What is state has that. */
static gboolean
own_output (Recording *self, TinyTensor *output, GError **error)
{
  TinyBuffer *memory = get_memory (output);
  if (output->base != NULL || memory == NULL || tiny_tensor_get_node (output)->limits != NULL)
    return TRUE;
  if (owns_memory (self, output))
    return tiny_tensor_part_memory (output, error);
  TinyRoot other
      = { 0 }; /* an input that was a view may not see what was its memory any more */
  if (tiny_capture_has_input (self->capture, memory))
    tiny_runtime_add_root (&other, tiny_tensor_get_node (output));
  gboolean good
      = tiny_tensor_own_memory (output, "jit", error) && tiny_tensor_realize (output, error);
  tiny_runtime_remove_root (&other);
  return good;
}

static gboolean
own_outputs (Recording *self, TinyTensor *const *outputs, guint n, GError **error)
{
  for (guint i = 0; i < n; i++)
    if (!stays_view (self, outputs[i]))
      tiny_view_unlink (outputs[i]);
  for (guint i = 0; i < n; i++) {
    if (find_input (self, outputs[i], FALSE) >= 0) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                   "jit: output %u is an input itself, not another tensor with its values", i);
      return FALSE;
    }
    if (!own_output (self, outputs[i], error))
      return FALSE;
  }
  return TRUE;
}

/* Computes the results, and the gradients that are left. */
static gboolean
realize_outputs (Recording *self, TinyTensor *const *outputs, guint n, GError **error)
{
  g_autoptr (GPtrArray) all = tiny_found_list_left (self->found, error);
  if (all == NULL)
    return FALSE;
  for (guint i = 0; i < n; i++)
    g_ptr_array_add (all, outputs[i]);
  return tiny_tensor_realize_many ((TinyTensor *const *) all->pdata, all->len, error);
}

/* What of the memory that is written are inputs, and what is state. */
static void
find_written (Recording *self)
{
  g_autoptr (GHashTable) older = tiny_runtime_list_buffers (self->n_buffers);
  GHashTableIter iter;
  gpointer buffer;
  self->state = g_hash_table_new (NULL, NULL);
  g_hash_table_iter_init (&iter, tiny_capture_get_written (self->capture));
  while (g_hash_table_iter_next (&iter, &buffer, NULL))
    if (g_hash_table_contains (older, buffer))
      g_hash_table_add (self->state, buffer);
  for (guint i = 0; i < self->inputs->len; i++) {
    Input *input = get_input (self, i);
    gboolean is_part = input->base != input->tensor;
    input->is_written
        = is_part
              ? tiny_view_is_written (input->base, self->state)
              : tiny_capture_writes_input (self->capture, get_input (self, input->first)->node);
  }
}

/* (transfer container) */
static TinyTensor **
list_tensors (const Recording *self)
{
  TinyTensor **all = g_new (TinyTensor *, self->inputs->len + 1);
  for (guint i = 0; i < self->inputs->len; i++)
    all[i] = get_input (self, i)->tensor;
  return all;
}

gboolean
recording_end (Recording *self, TinyTensor *const *outputs, guint n, GError **error)
{
  gboolean good = realize_outputs (self, outputs, n, error)
                  && tiny_runtime_realize_assignments (error)
                  && own_outputs (self, outputs, n, error)
                  && tiny_random_capture_end (self->random, error);
  g_autofree TinyTensor **inputs = list_tensors (self);
  good = tiny_found_end (self->found, inputs, self->inputs->len, good ? error : NULL) && good;
  self->is_recorded = TRUE;
  good = tiny_capture_end (self->capture, good ? error : NULL) && good;
  reread_inputs (self);
  /* What there was before and was only computed meanwhile stays what it is. */
  good = good
         && tiny_tensor_part_older (tiny_capture_get_written (self->capture), self->n_roots,
                                    error);
  if (!good)
    return FALSE;
  for (guint i = 0; i < n; i++)
    g_ptr_array_add (self->outputs, g_object_ref (outputs[i]));
  find_written (self);
  tiny_tensor_mark_owners ();
  return TRUE;
}

/* ---- whether it is right ---- */
gboolean
recording_check_n (Recording *self, guint n, GError **error)
{
  if (n != self->inputs->len)
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "jit: recorded with %u inputs, called with %u", self->inputs->len, n);
  return n == self->inputs->len;
}

/* Whether @now and @other are parts of one tensor as they were in the recording, which writes to the first. */
static gboolean
is_same_pair (const Recording *self, guint i, guint k, TinyTensor *const *now)
{
  const Input *x = get_input (self, i), *y = get_input (self, k);
  const gboolean is_one = tiny_view_get_base (now[i]) == tiny_view_get_base (now[k]);
  return is_one == (x->base == y->base)
         && (!is_one
             || (tiny_view_is_same_part (x->tensor, now[i])
                 && tiny_view_is_same_part (y->tensor, now[k])));
}

/* Whether what is written through input @i, which is a view, is written to what it is a view of now. */
static gboolean
is_same_view (const Recording *self, guint i, TinyTensor *const *now)
{
  const Input *input = get_input (self, i);
  if (now[i] == input->tensor || input->base == input->tensor)
    return TRUE;
  gint at = find_input (self, input->base, FALSE);
  return tiny_view_get_base (now[i]) == (at >= 0 ? now[at] : input->base)
         && tiny_view_is_same_part (input->tensor, now[i]);
}

/* Whether @now is the state of the recording, to which that writes. */
static gboolean
is_state (const Recording *self, TinyTensor *now, gboolean is_written)
{
  TinyTensor *base = tiny_view_get_base (now);
  TinyBuffer *memory = get_memory (base);
  gboolean writes = FALSE;
  return memory != NULL && base->root.is_recorded
         && tiny_capture_touches (self->capture, memory, &writes)
         && (is_written || g_hash_table_contains (self->state, memory));
}

/* Whether nobody but recordings holds @tensor. */
static gboolean
is_only_recorded (const TinyTensor *tensor, Recording *const *all, guint n_all)
{
  guint n = 0;
  for (guint i = 0; i < n_all; i++)
    n += tiny_found_count_references (all[i]->found, tensor);
  for (guint i = 0; i < n_all; i++)
    for (guint k = 0; k < all[i]->inputs->len; k++)
      n += (get_input (all[i], k)->tensor == tensor) + (get_input (all[i], k)->base == tensor);
  return g_atomic_int_get (&((GObject *) tensor)->ref_count) <= (gint) n;
}

/* Whether @now may be in the place of input @i. */
static gboolean
may_stand_for (Recording *self, guint i, TinyTensor *now, Recording *const *all, guint n_all)
{
  Input *input = get_input (self, i);
  if (recording_is_variable (now) || now == input->tensor)
    return TRUE;
  if (input->freedom == IS_UNKNOWN && is_only_recorded (input->tensor, all, n_all))
    input->freedom = IS_FREE;
  return input->freedom == IS_FREE && !is_state (self, now, input->is_written);
}

static const char *
find_change (Recording *self, TinyTensor *const *now, Recording *const *all, guint n_all)
{
  const guint n = self->inputs->len;
  for (guint i = 0; i < n; i++) {
    const Input *input = get_input (self, i);
    if (find_first (now, i) != input->first)
      return "which inputs are the same tensor";
    if (now[i]->requires_grad != input->requires_grad)
      return "which tensors require gradients";
    if (!may_stand_for (self, i, now[i], all, n_all))
      return "which inputs are tensors that the function has by itself";
    if (!input->is_written || recording_is_variable (now[i]))
      continue;
    if (!is_same_view (self, i, now))
      return "what an input that is written is a view of";
    for (guint k = 0; k < n; k++)
      if (k != i && !is_same_pair (self, i, k, now))
        return "which inputs are views of one tensor";
  }
  return tiny_found_get_change (self->found, now);
}

gboolean
recording_fits (
    Recording *self, TinyTensor *const *now, Recording *const *all, guint n_all, GError **why)
{
  for (guint i = 0; i < self->inputs->len; i++)
    if (!recording_check_kind (i, get_input (self, i)->tensor, now[i], why))
      return FALSE;
  const char *change = find_change (self, now, all, n_all);
  if (change != NULL)
    g_set_error (why, TINY_ERROR, TINY_ERROR_INVALID,
                 "jit: there is no recording for this: it was recorded otherwise: %s", change);
  return change == NULL;
}

/* Whether @other uses @tensor, which is no input of it. */
static gboolean
is_used_by (const Recording *other, TinyTensor *tensor)
{
  TinyBuffer *memory = get_memory (tensor);
  gboolean writes;
  return memory != NULL && tiny_capture_touches (other->capture, memory, &writes);
}

/* Whether an input was something that the function has by itself: what it computes of that in other calls may be missing. */
static gboolean
has_fixed (const Recording *self)
{
  gboolean has = FALSE;
  for (guint i = 0; i < self->inputs->len; i++)
    has = has || get_input (self, i)->freedom == IS_FIXED;
  return has;
}

void
recording_compare (Recording *self, Recording *other)
{
  for (guint i = 0; i < self->inputs->len; i++) {
    Input *input = get_input (self, i);
    if (input->freedom != IS_UNKNOWN || find_input (other, input->tensor, TRUE) >= 0
        || find_input (other, input->base, TRUE) >= 0)
      continue;
    if (is_used_by (other, input->base))
      input->freedom = IS_FIXED;
    else if (!has_fixed (other))
      input->freedom = IS_FREE;
  }
}

/* ---- replaying ---- */

/* Sizes of outputs that are variables have the new values. */
static void
resize_outputs (Recording *self, TinyTensor *const *inputs)
{
  for (guint i = 0; i < self->inputs->len; i++) {
    Input *input = get_input (self, i);
    TinyTensor *before = input->tensor;
    if (!recording_is_variable (inputs[i])
        || tiny_tensor_get_node (before) == tiny_tensor_get_node (inputs[i]))
      continue;
    for (guint k = 0; k < self->outputs->len; k++)
      tiny_tensor_resize (self->outputs->pdata[k], tiny_tensor_get_node (before),
                          tiny_tensor_get_node (inputs[i]));
    g_set_object (&input->tensor, inputs[i]);
    g_set_object (&input->base, inputs[i]);
  }
}

/* What the replay wrote to inputs that are views belongs where these are views of. */
static gboolean
write_back (Recording *self, TinyTensor *const *inputs, GError **error)
{
  GHashTable *written = tiny_capture_get_written (self->capture);
  for (guint i = 0; i < self->inputs->len; i++) {
    TinyTensor *input = inputs[i];
    if (recording_is_variable (input) || input->base == NULL
        || !tiny_view_is_written (input, written))
      continue;
    g_autoptr (TinyTensor) value
        = g_object_ref_sink (tiny_tensor_new_for_node (input->root.node, input->device));
    tiny_view_refresh (tiny_view_get_base (input));
    if (!tiny_tensor_assign (input, value, error))
      return FALSE;
  }
  tiny_view_refresh_written (written);
  return TRUE;
}

/* The nodes of the inputs, and of the gradients that are read. */
static gboolean
read_nodes (Recording *self, TinyTensor *const *inputs, guint *out_n, GError **error)
{
  const guint n_inputs = list_nodes (self, inputs, NULL);
  gint n = tiny_found_read (self->found, inputs, NULL, n_inputs, error);
  if (n < 0)
    return FALSE;
  if (self->nodes == NULL || (guint) n > self->n_nodes) {
    g_free (self->nodes);
    self->nodes = g_new0 (TinyNode *, (guint) n + 1);
    self->n_nodes = (guint) n;
  }
  list_nodes (self, inputs, self->nodes);
  *out_n = (guint) tiny_found_read (self->found, inputs, self->nodes, n_inputs, error);
  return TRUE;
}

/* Others that came to see memory which is written now, of inputs or of the recording, get copies. */
static gboolean
part (Recording *self, TinyTensor *const *inputs, GError **error)
{
  g_ptr_array_set_size (self->written, 0);
  gboolean is_same = tiny_runtime_count_waiting () == self->n_waiting;
  for (guint i = 0; i < self->inputs->len; i++) {
    Input *input = get_input (self, i);
    if (!input->is_written || recording_is_variable (inputs[i]))
      continue;
    TinyBuffer *memory = get_memory (inputs[i]);
    g_ptr_array_add (self->written, inputs[i]);
    is_same = is_same && memory == input->memory && tiny_buffer_is_recorded (memory);
    tiny_buffer_set_recorded (memory);
    input->memory = memory;
  }
  if (is_same)
    return TRUE;
  /* A copy of what waits to be assigned shares its memory as well, once that is computed. */
  gboolean good = tiny_runtime_realize_assignments (error)
                  && tiny_tensor_part_written (tiny_capture_get_written (self->capture),
                                               (TinyTensor *const *) self->written->pdata,
                                               self->written->len, error);
  self->n_waiting = good ? tiny_runtime_count_waiting () : 0;
  return good;
}

gboolean
recording_replay (Recording *self, TinyTensor *const *inputs, GError **error)
{
  guint n_nodes;
  gboolean good = tiny_found_prepare (self->found, inputs, error) && part (self, inputs, error)
                  && read_nodes (self, inputs, &n_nodes, error)
                  && tiny_random_capture_before_replay (self->random, error)
                  && tiny_capture_replay (self->capture, self->nodes, n_nodes, error)
                  && write_back (self, inputs, error);
  if (good) {
    resize_outputs (self, inputs);
    tiny_found_leave (self->found, inputs);
  } else {
    tiny_random_capture_note_failure (self->random);
  }
  return good;
}

guint
recording_get_n_kernels (Recording *self)
{
  return tiny_capture_get_n_kernels (self->capture);
}
