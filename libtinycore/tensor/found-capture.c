/* SPDX-License-Identifier: MIT
 *
 * found-capture.c: what a recorded function found, as a list of numbers of objects and one of gradients.
 *
 * A gradient comes into the list when the function touches it first: what it reads then was there before, what it
 * writes first does not depend on that. Objects are not kept alive: whose number was noted and is gone has changed. */
#include "engine/runtime-private.h"
#include "engine/tiny-plan.h"
#include "engine/tiny-recorders.h"
#include "tensor/tiny-default-float.h"
#include "tensor/tiny-found.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

typedef struct {
  GWeakRef object;
  TinyFoundNumber get;
  gint64 number;
  const char *what; /* NULL: the function sets it first */
  gboolean stays;   /* the function may not change it */
} Note;

/* The gradient of a tensor. */
typedef struct {
  TinyTensor *tensor; /* (owned) (nullable): once it is recorded NULL where it is an input */
  gint input;         /* the number of that, or -1 */
  TinyTensor *before; /* (owned) (nullable): of the recording */
  TinyTensor *after;  /* (owned) (nullable): of each replay */
  TinyTensor *holder; /* (owned) (nullable): of an input, that which has it */
  gboolean matters;   /* what was there before, or that nothing was */
  gboolean is_set;    /* by the function */
  gboolean is_input;  /* what was there is read */
  gboolean stays;     /* the tensor has after a replay what it had before */
} Gradient;

/* Settings of the process, on which nearly all depends that makes tensors. */
static guint64
get_default_float (void)
{
  return (guint64) tiny_get_default_float ();
}

static guint64
get_default_device (void)
{
  return (guint64) (guintptr) tiny_runtime_get_default_device (NULL); /* interned */
}

static const struct {
  guint64 (*get) (void);
  const char *what;
} settings[] = {
  { get_default_float, "the default float" },
  { get_default_device, "the default device" },
};

struct TinyFound {
  GPtrArray *notes;     /* Note */
  GPtrArray *gradients; /* Gradient */
  TinyCapture *capture;
  guint64 n_roots; /* that there were before */
  guint64 n_variables;
  guint64 n_toggled; /* how often a tensor no longer required a gradient, or did again */
  guint64 settings[G_N_ELEMENTS (settings)];
  GError *error; /* the first that was met */
};

/* Of this thread's recording, or NULL. Under the runtime's lock. */
static TinyFound *
get_current (void)
{
  return tiny_recorders_get_part (TINY_RECORDED_FOUND);
}

static void
note_free (gpointer data)
{
  Note *note = data;
  g_weak_ref_clear (&note->object);
  g_free (note);
}

static void
gradient_free (gpointer data)
{
  Gradient *gradient = data;
  g_clear_object (&gradient->tensor);
  g_clear_object (&gradient->before);
  g_clear_object (&gradient->after);
  g_clear_object (&gradient->holder);
  g_free (gradient);
}

/* Together, as gradients share most of their work. What waits and depends on an argument of a function that is transformed
 * stays as it is. */
static void
realize_gradients (void)
{
  g_autoptr (GPtrArray) all = g_ptr_array_new ();
  for (TinyTensor *t = tiny_tensor_get_first_variable (); t != NULL; t = t->next)
    if (t->grad != NULL && t->grad->error == NULL && !tiny_tensor_is_realized (t->grad))
      g_ptr_array_add (all, t->grad);
  if (tiny_tensor_realize_many ((TinyTensor *const *) all->pdata, all->len, NULL))
    return;
  for (guint i = 0; i < all->len; i++)
    tiny_tensor_realize (all->pdata[i], NULL);
}

TinyFound *
tiny_found_new (void)
{
  TinyFound *self = g_new0 (TinyFound, 1);
  self->notes = g_ptr_array_new_with_free_func (note_free);
  self->gradients = g_ptr_array_new_with_free_func (gradient_free);
  realize_gradients ();
  return self;
}

void
tiny_found_free (TinyFound *self)
{
  if (self == NULL)
    return;
  g_ptr_array_unref (self->notes);
  g_ptr_array_unref (self->gradients);
  g_clear_error (&self->error);
  g_free (self);
}

void
tiny_found_begin (TinyFound *self, TinyCapture *capture)
{
  self->capture = capture;
  self->n_roots = tiny_runtime_count_roots ();
  self->n_variables = tiny_tensor_count_variables ();
  for (guint i = 0; i < G_N_ELEMENTS (settings); i++)
    self->settings[i] = settings[i].get ();
  tiny_recorders_set_part (TINY_RECORDED_FOUND, self);
}

/* ---- numbers ---- */
static Note *
find_note (const TinyFound *self, gpointer object, TinyFoundNumber get)
{
  for (guint i = 0; i < self->notes->len; i++) {
    Note *note = self->notes->pdata[i];
    g_autoptr (GObject) noted = g_weak_ref_get (&note->object);
    if (noted == object && note->get == get)
      return note;
  }
  return NULL;
}

static void
add_note (TinyFound *self, gpointer object, TinyFoundNumber get, const char *what)
{
  Note *note = g_new0 (Note, 1);
  g_weak_ref_init (&note->object, object);
  note->get = get;
  note->number = get (object);
  note->what = what;
  g_ptr_array_add (self->notes, note);
}

void
tiny_found_note (gpointer object, TinyFoundNumber get, const char *what)
{
  if (tiny_recorders_get_own () == 0)
    return;
  tiny_runtime_lock ();
  TinyFound *current = get_current ();
  if (current != NULL && find_note (current, object, get) == NULL)
    add_note (current, object, get, what);
  tiny_runtime_unlock ();
}

void
tiny_found_keep (gpointer object, TinyFoundNumber get, const char *what)
{
  if (tiny_recorders_get_own () == 0)
    return;
  tiny_runtime_lock ();
  TinyFound *current = get_current ();
  if (current != NULL) {
    tiny_found_note (object, get, what);
    find_note (current, object, get)->stays = TRUE;
  }
  tiny_runtime_unlock ();
}

void
tiny_found_set (gpointer object, TinyFoundNumber get)
{
  tiny_found_note (object, get, NULL);
}

/* Whose gradient it is where those are the inputs. */
static TinyTensor *
get_tensor (const Gradient *self, TinyTensor *const *inputs)
{
  return self->input >= 0 ? inputs[self->input] : self->tensor;
}

const char *
tiny_found_get_change (TinyFound *self, TinyTensor *const *inputs)
{
  if (self->n_toggled != tiny_tensor_count_toggled ())
    return "which tensors require gradients";
  for (guint i = 0; i < G_N_ELEMENTS (settings); i++)
    if (self->settings[i] != settings[i].get ())
      return settings[i].what;
  for (guint i = 0; i < self->notes->len; i++) {
    Note *note = self->notes->pdata[i];
    g_autoptr (GObject) object = note->what != NULL ? g_weak_ref_get (&note->object) : NULL;
    if (note->what != NULL && (object == NULL || note->get (object) != note->number))
      return note->what;
  }
  for (guint i = 0; i < self->gradients->len; i++) {
    const Gradient *gradient = self->gradients->pdata[i];
    if (gradient->matters
        && (gradient->before == NULL) != (get_tensor (gradient, inputs)->grad == NULL))
      return "which tensors have gradients";
  }
  return NULL;
}

/* ---- gradients ---- */
static Gradient *
find_gradient (const TinyFound *self, const TinyTensor *tensor)
{
  for (guint i = 0; i < self->gradients->len; i++)
    if (((Gradient *) self->gradients->pdata[i])->tensor == tensor)
      return self->gradients->pdata[i];
  return NULL;
}

/* Puts @grad in memory that nobody else has, without recording that. */
static gboolean
settle (TinyTensor *grad, GError **error)
{
  TinyLaunches **recorder = tiny_launches_get_recorder (), *kept = *recorder;
  *recorder = NULL;
  gboolean good
      = tiny_tensor_own_memory (grad, "jit", error) && tiny_tensor_realize (grad, error);
  *recorder = kept;
  return good;
}

/* Takes the nodes of @grad as inputs. */
static gboolean
add_inputs (TinyFound *self, TinyTensor *grad, GError **error)
{
  TinyNode *memory = tiny_runtime_get_memory (tiny_tensor_get_node (grad));
  gboolean good = TRUE;
  for (guint i = 0; i < tiny_runtime_count_pieces (memory) && good; i++)
    good = tiny_capture_add_input (self->capture, tiny_runtime_get_piece (memory, i), error);
  return good;
}

/* The function touches the gradient of @tensor for the first time. */
static Gradient *
note_gradient (TinyFound *self, TinyTensor *tensor, gboolean is_read)
{
  TinyTensor *before = tensor->grad;
  Gradient *gradient = g_new0 (Gradient, 1);
  gradient->tensor = g_object_ref (tensor);
  gradient->input = -1;
  g_set_object (&gradient->before, before);
  gradient->matters = is_read && tensor->variable <= self->n_variables;
  gradient->is_input = gradient->matters && before != NULL && before->error == NULL
                       && tiny_tensor_get_n_elements (before) > 0;
  g_ptr_array_add (self->gradients, gradient);
  if (gradient->is_input && self->error == NULL
      && !(settle (before, &self->error) && add_inputs (self, before, &self->error)))
    g_prefix_error (&self->error, "jit: a gradient that the function reads: ");
  return gradient;
}

/* Under the runtime's lock. */
static void
touch (TinyTensor *tensor, gboolean is_read)
{
  if (tiny_recorders_get_own () == 0)
    return;
  TinyFound *current = get_current ();
  Gradient *gradient = current != NULL ? find_gradient (current, tensor) : NULL;
  if (current != NULL && gradient == NULL)
    gradient = note_gradient (current, tensor, is_read);
  if (gradient != NULL)
    gradient->is_set = gradient->is_set || !is_read;
  if (gradient != NULL && !is_read && !gradient->matters)
    g_clear_object (&gradient->before); /* its memory is free for what comes */
}

TinyTensor *
tiny_tensor_find_grad (TinyTensor *self)
{
  tiny_runtime_lock ();
  touch (self, TRUE);
  TinyTensor *grad = self->grad;
  tiny_runtime_unlock ();
  return grad;
}

void
tiny_tensor_leave_grad (TinyTensor *self, TinyTensor *grad)
{
  tiny_runtime_lock ();
  touch (self, FALSE);
  TinyTensor *before = self->grad;
  self->grad = grad;
  g_clear_object (&before);
  tiny_runtime_unlock ();
}

/* ---- what is left ---- */

/* True if the function set @gradient, and it waits to be computed. */
static gboolean
waits (const Gradient *gradient)
{
  TinyTensor *grad = gradient->is_set ? gradient->tensor->grad : NULL;
  return grad != NULL && grad != gradient->before && grad->error == NULL
         && !tiny_tensor_is_realized (grad);
}

void
tiny_found_add_parts (GPtrArray *roots)
{
  TinyFound *self = tiny_recorders_get_target () != 0 ? get_current () : NULL;
  if (self == NULL)
    return;
  TinyGraph *graph = tiny_runtime_get_graph ();
  g_autofree TinyNode **nodes = g_new (TinyNode *, roots->len);
  for (guint i = 0; i < roots->len; i++)
    nodes[i] = ((const TinyRoot *) roots->pdata[i])->node;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, nodes, roots->len);
  const guint32 seen = tiny_graph_begin_mark (graph);
  for (guint i = 0; i < order->len; i++)
    ((TinyNode *) order->pdata[i])->mark = seen;
  for (guint i = 0; i < self->gradients->len; i++) {
    const Gradient *gradient = self->gradients->pdata[i];
    if (waits (gradient) && gradient->tensor->grad->root.node->mark == seen)
      g_ptr_array_add (roots, &gradient->tensor->grad->root);
  }
}

/* The tensor that replays compute: what was there before the recording is another's. */
static TinyTensor *
make_left (TinyFound *self, TinyTensor *grad)
{
  return grad->root.number >= self->n_roots && grad->base == NULL
             ? g_object_ref (grad)
             : g_object_ref_sink (tiny_tensor_cast (grad, grad->dtype));
}

GPtrArray *
tiny_found_list_left (TinyFound *self, GError **error)
{
  g_autoptr (GPtrArray) left = g_ptr_array_new ();
  for (guint i = 0; i < self->gradients->len; i++) {
    Gradient *gradient = self->gradients->pdata[i];
    TinyTensor *grad = gradient->tensor->grad;
    gradient->stays = grad == gradient->before && (grad != NULL || !gradient->is_set);
    if (gradient->stays || grad == NULL)
      continue;
    gradient->after = make_left (self, grad);
    g_ptr_array_add (left, gradient->after);
    if (gradient->after->error == NULL && tiny_tensor_get_n_elements (grad) > 0
        && !tiny_tensor_own_memory (gradient->after, "jit", error))
      return NULL;
  }
  return g_steal_pointer (&left);
}

/* Those of inputs are those of the inputs of each replay. */
static void
number_inputs (Gradient *gradient, TinyTensor *const *inputs, guint n)
{
  for (guint i = 0; i < n && gradient->input < 0; i++)
    if (inputs[i] == gradient->tensor)
      gradient->input = (gint) i;
  if (gradient->input < 0)
    return;
  if (gradient->after != NULL)
    gradient->holder = g_object_ref (gradient->tensor);
  g_clear_object (&gradient->tensor);
}

/* Whether all is as it was of what replays do not set. */
static gboolean
check_kept (const TinyFound *self, GError **error)
{
  for (guint i = 0; i < self->notes->len; i++) {
    Note *note = self->notes->pdata[i];
    g_autoptr (GObject) object = note->stays ? g_weak_ref_get (&note->object) : NULL;
    if (object == NULL || note->get (object) == note->number)
      continue;
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "jit: replays of the function would not change %s: what changes that belongs "
                 "into one recorded function, which leaves it as it was, or outside of all",
                 note->what);
    return FALSE;
  }
  return TRUE;
}

gboolean
tiny_found_end (TinyFound *self, TinyTensor *const *inputs, guint n, GError **error)
{
  tiny_recorders_set_part (TINY_RECORDED_FOUND, NULL);
  self->n_toggled = tiny_tensor_count_toggled ();
  if (self->error == NULL)
    check_kept (self, &self->error);
  for (guint i = 0; i < self->gradients->len; i++)
    number_inputs (self->gradients->pdata[i], inputs, n);
  const gboolean good = self->error == NULL;
  if (!good)
    g_propagate_error (error, g_steal_pointer (&self->error));
  return good;
}

/* ---- replays ---- */
guint
tiny_found_count_references (const TinyFound *self, const TinyTensor *tensor)
{
  guint n = 0;
  for (guint i = 0; i < self->gradients->len; i++) {
    const Gradient *gradient = self->gradients->pdata[i];
    n += (gradient->tensor == tensor) + (gradient->holder == tensor);
  }
  return n;
}

/* Who had the gradient of the last replay, as another input, goes on to have that. */
static gboolean
leave_holder (Gradient *self, const TinyTensor *now, GError **error)
{
  TinyTensor *holder = self->holder;
  if (holder == NULL || holder == now || holder->grad != self->after
      || g_atomic_int_get (&((GObject *) holder)->ref_count) == 1)
    return TRUE;
  TinyTensor *copy = g_object_ref_sink (tiny_tensor_cast (self->after, self->after->dtype));
  g_object_unref (holder->grad);
  holder->grad = copy;
  return settle (copy, error);
}

gboolean
tiny_found_prepare (TinyFound *self, TinyTensor *const *inputs, GError **error)
{
  for (guint i = 0; i < self->gradients->len; i++) {
    Gradient *gradient = self->gradients->pdata[i];
    if (!leave_holder (gradient, get_tensor (gradient, inputs), error))
      return FALSE;
  }
  return TRUE;
}

gint
tiny_found_read (TinyFound *self,
                 TinyTensor *const *inputs,
                 TinyNode **nodes,
                 guint n_before,
                 GError **error)
{
  guint n = n_before;
  for (guint i = 0; i < self->gradients->len; i++) {
    const Gradient *gradient = self->gradients->pdata[i];
    if (!gradient->is_input)
      continue;
    TinyTensor *grad = get_tensor (gradient, inputs)->grad;
    if (!tiny_tensor_realize (grad, error)) {
      g_prefix_error (error, "jit: a gradient that the function reads: ");
      return -1;
    }
    TinyNode *memory = tiny_runtime_get_memory (grad->root.node);
    for (guint k = 0; k < tiny_runtime_count_pieces (memory); k++, n++)
      if (nodes != NULL)
        nodes[n] = tiny_runtime_get_piece (memory, k);
  }
  return (gint) n;
}

void
tiny_found_leave (TinyFound *self, TinyTensor *const *inputs)
{
  for (guint i = 0; i < self->gradients->len; i++) {
    Gradient *gradient = self->gradients->pdata[i];
    TinyTensor *tensor = get_tensor (gradient, inputs);
    if (gradient->stays)
      continue;
    if (tensor->grad != gradient->after)
      g_set_object (&tensor->grad, gradient->after);
    if (gradient->input >= 0 && gradient->after != NULL)
      g_set_object (&gradient->holder, tensor);
  }
}
