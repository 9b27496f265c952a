/* SPDX-License-Identifier: MIT
 *
 * tiny-build.c: beginning and ending an operation, and the checks they share. */
#include "tensor/tiny-build.h"

#include <math.h>
#include <string.h>

#include "base/interrupt-check.h"
#include "engine/tiny-history.h"
#include "ir/tiny-limit.h"
#include "ir/tiny-shape.h"
#include "rewrite/tiny-bounds.h"
#include "tensor/tiny-grad-mode.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-private.h"
#include "tensor/tiny-view.h"

/* Sizes in bytes and sums of indices stay far from the end of 64 bits. */
#define LARGEST_N_ELEMENTS ((gint64) 1 << 48)
/* A tensor each: more would be a mistake that fills the memory. */
enum { LARGEST_N_RESULTS = 1 << 16 };

/* ---- dtypes ----
 * The lattice, as bits of what each dtype goes into; the least common one is the result. Rows from
 * narrow to wide; a wider dtype has a larger rank. */
static const TinyDType lattice_order[]
    = { TINY_DTYPE_BOOL,   TINY_DTYPE_I8,  TINY_DTYPE_U8,   TINY_DTYPE_I16, TINY_DTYPE_U16,
        TINY_DTYPE_I32,    TINY_DTYPE_U32, TINY_DTYPE_I64,  TINY_DTYPE_U64, TINY_DTYPE_F8E4M3,
        TINY_DTYPE_F8E5M2, TINY_DTYPE_F16, TINY_DTYPE_BF16, TINY_DTYPE_F32, TINY_DTYPE_F64 };

static const guint32 lattice_parents[TINY_N_DTYPES] = {
#define BIT(dtype) TINY_DTYPE_BIT (TINY_DTYPE_##dtype)
  [TINY_DTYPE_BOOL] = BIT (I8) | BIT (U8),
  [TINY_DTYPE_I8] = BIT (I16),
  [TINY_DTYPE_U8] = BIT (I16) | BIT (U16),
  [TINY_DTYPE_I16] = BIT (I32),
  [TINY_DTYPE_U16] = BIT (I32) | BIT (U32),
  [TINY_DTYPE_I32] = BIT (I64),
  [TINY_DTYPE_U32] = BIT (I64) | BIT (U64),
  [TINY_DTYPE_I64] = BIT (F8E4M3) | BIT (F8E5M2),
  [TINY_DTYPE_U64] = BIT (F8E4M3) | BIT (F8E5M2),
  [TINY_DTYPE_F8E4M3] = BIT (F16) | BIT (BF16),
  [TINY_DTYPE_F8E5M2] = BIT (F16) | BIT (BF16),
  [TINY_DTYPE_F16] = BIT (F32),
  [TINY_DTYPE_BF16] = BIT (F32),
  [TINY_DTYPE_F32] = BIT (F64),
#undef BIT
};

static guint32
ancestors (TinyDType dtype)
{
  guint32 all = TINY_DTYPE_BIT (dtype);
  for (guint i = 0; i < G_N_ELEMENTS (lattice_order); i++)
    if (all & TINY_DTYPE_BIT (lattice_order[i]))
      all |= lattice_parents[lattice_order[i]];
  return all;
}

TinyDType
tiny_dtype_promote (TinyDType a, TinyDType b)
{
  if (a == b)
    return a;
  guint32 common = ancestors (a) & ancestors (b);
  gboolean integers = !tiny_dtype_is_float (a) && !tiny_dtype_is_float (b);
  for (guint i = 0; i < G_N_ELEMENTS (lattice_order); i++) {
    TinyDType dtype = lattice_order[i];
    if ((common & TINY_DTYPE_BIT (dtype)) == 0)
      continue;
    /* i64 and u64 have no common integer: they meet in the default float. */
    return integers && tiny_dtype_is_float (dtype) ? tiny_get_default_float () : dtype;
  }
  return TINY_DTYPE_F64;
}

/* ---- the frame ---- */
TinyNode *
tiny_build_fail (TinyBuild *self, const char *format, ...)
{
  if (self->error != NULL)
    return NULL;
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  self->error = g_error_new (TINY_ERROR, TINY_ERROR_INVALID, "%s: %s", self->name, text);
  return NULL;
}

/* The dtype that a plain number takes among operands of dtype @strong. */
static TinyDType
weak_dtype (const TinyTensor *number, TinyDType strong)
{
  if (tiny_dtype_is_float (strong))
    return strong;
  if (number->weak == TINY_WEAK_FLOAT)
    return tiny_get_default_float ();
  return strong == TINY_DTYPE_BOOL ? number->dtype : strong;
}

/* A constant; of integers what is left of @value in so many bits. */
static TinyNode *
wrapped_number (TinyBuild *self, TinyDType dtype, double value)
{
  if (tiny_dtype_is_float (dtype))
    return tiny_node_const_float (self->graph, dtype, value);
  /* Out of range of 64 bits a conversion would be undefined. */
  gint64 whole = isnan (value) ? 0
                 : value >= 18446744073709551616.0 || value < -9223372036854775808.0
                     ? G_MININT64
                 : value >= 9223372036854775808.0 ? (gint64) (guint64) value
                                                  : (gint64) value;
  if (dtype == TINY_DTYPE_BOOL)
    whole = value != 0;
  return tiny_node_const_int (self->graph, dtype, whole);
}

/* A plain number, or what is calculated from such, in @dtype: numbers are rounded once. */
static TinyNode *
strengthen (TinyBuild *self, const TinyTensor *number, TinyDType dtype)
{
  TinyNode *node = number->root.node;
  return node->op == TINY_OP_CONST ? wrapped_number (self, dtype, number->weak_value)
                                   : tiny_build_cast (self, node, dtype);
}

/* Plain numbers take the dtype of what they meet; conditions have none that counts. */
static void
resolve_weak (TinyBuild *self, TinyTakes takes)
{
  TinyDType strong = TINY_DTYPE_VOID;
  guint n_strong = 0, n_weak = 0;
  for (guint i = 0; i < self->n; i++) {
    if (self->x[i] == NULL)
      continue;
    gboolean is_weak = self->tensors[i]->weak != TINY_WEAK_NONE;
    n_weak += is_weak;
    n_strong += !is_weak;
    if (is_weak || (i < 8 && takes & TINY_TAKES_GATE << i))
      continue;
    TinyDType dtype = (TinyDType) self->x[i]->dtype;
    strong = strong == TINY_DTYPE_VOID ? dtype : tiny_dtype_promote (strong, dtype);
  }
  for (guint i = 0; i < self->n && strong != TINY_DTYPE_VOID; i++)
    if (self->x[i] != NULL && self->tensors[i]->weak != TINY_WEAK_NONE)
      self->x[i] = strengthen (self, self->tensors[i], weak_dtype (self->tensors[i], strong));
  self->is_weak = takes & TINY_TAKES_WEAK && n_weak > 0 && n_strong == 0;
}

static void
meet_devices (TinyBuild *self)
{
  for (guint i = 0; i < self->n; i++) {
    const char *device = self->tensors[i] != NULL ? self->tensors[i]->device : NULL;
    if (device == NULL || device == self->device)
      continue;
    if (self->device != NULL)
      tiny_build_fail (self, "arguments are on %s and on %s: move one with to()", self->device,
                       device);
    else
      self->device = device;
  }
}

/* FALSE with an error when the thread is to stop instead of waiting. Who asks is told so once, and the results that it gets
 * may be arguments of the next operation. */
static gboolean
take_lock (TinyBuild *self)
{
  self->is_locked = tiny_runtime_try_lock ();
  for (guint i = 0; !self->is_locked && i < self->n; i++) {
    const GError *error = self->tensors[i] != NULL ? self->tensors[i]->error : NULL;
    if (error != NULL && tiny_interrupt_is_error (error)) {
      self->error = g_error_copy (error);
      return FALSE;
    }
  }
  return self->is_locked || (self->is_locked = tiny_runtime_lock_or_stop (&self->error));
}

gboolean
tiny_build_begin (TinyBuild *self, const char *name, guint n, TinyTensor *const *tensors)
{
  return tiny_build_begin_some (self, name, n, tensors, 0, TINY_TAKES_ANY);
}

gboolean
tiny_build_begin_some (TinyBuild *self,
                       const char *name,
                       guint n,
                       TinyTensor *const *tensors,
                       guint optional,
                       TinyTakes takes)
{
  gboolean is_missing = n > 0 && tensors == NULL;
  /* Not the few: they are filled below. */
  memset (self, 0, G_STRUCT_OFFSET (TinyBuild, few_tensors));
  self->name = name;
  self->n = is_missing ? 0 : n;
  guint n_wanted = n;
  n = self->n;
  gboolean few = n <= G_N_ELEMENTS (self->few_x);
  self->tensors = few ? self->few_tensors : g_new0 (TinyTensor *, n);
  self->x = few ? self->few_x : g_new0 (TinyNode *, n);
  for (guint i = 0; i < n; i++) {
    self->x[i] = NULL;
    self->tensors[i] = tensors[i] != NULL && TINY_IS_TENSOR (tensors[i])
                           ? g_object_ref_sink (tensors[i])
                           : NULL;
  }
  if (!take_lock (self))
    return FALSE;
  self->graph = tiny_runtime_get_graph ();
  tiny_runtime_check (&self->error);
  if (is_missing)
    tiny_build_fail (self, "%u tensors wanted, none given", n_wanted);
  for (guint i = 0; i < n; i++) {
    if (tensors[i] == NULL && i < 32 && (optional >> i & 1))
      continue;
    if (self->tensors[i] == NULL)
      tiny_build_fail (self, "argument %u is no tensor", i + 1);
    else if (self->tensors[i]->error != NULL && self->error == NULL)
      self->error = g_error_copy (self->tensors[i]->error);
    else
      self->x[i] = self->tensors[i]->root.node;
  }
  if ((takes & TINY_TAKES_SYMBOLIC) == 0)
    tiny_build_refuse_symbolic (self);
  if (self->error == NULL)
    meet_devices (self);
  if (self->error == NULL)
    resolve_weak (self, takes);
  return self->error == NULL
         && tiny_build_take (self, takes & (TINY_TAKES_SYMBOLIC - 1), n, self->x);
}

/* Plain numbers are none of the narrow ones. */
gboolean
tiny_build_widen (TinyBuild *self)
{
  TinyDType dtype = TINY_DTYPE_VOID;
  for (guint i = 0; i < self->n; i++)
    if (self->x[i] != NULL && tiny_dtype_is_float (self->x[i]->dtype))
      dtype = dtype == TINY_DTYPE_VOID
                  ? (TinyDType) self->x[i]->dtype
                  : tiny_dtype_promote (dtype, (TinyDType) self->x[i]->dtype);
  if (dtype == TINY_DTYPE_VOID || tiny_dtype_get_n_bytes (dtype) >= 4)
    return TRUE;
  self->narrow = dtype;
  for (guint i = 0; i < self->n; i++)
    if (self->x[i] != NULL && tiny_dtype_is_float (self->x[i]->dtype))
      self->x[i] = self->tensors[i]->weak != TINY_WEAK_NONE
                       ? strengthen (self, self->tensors[i], TINY_DTYPE_F32)
                       : tiny_build_cast (self, self->x[i], TINY_DTYPE_F32);
  return TRUE;
}

/* What a result has to be before a tensor may hold it. */
static TinyNode *
check_result (TinyBuild *self, TinyNode *node)
{
  if (node == NULL || !tiny_build_check_shape (self, node->shape->v, node->shape->n))
    return NULL;
  if (tiny_limit_get_refusal (node) != NULL)
    return tiny_build_fail (self, "%s", tiny_limit_get_refusal (node));
  if (tiny_shape_get_n_elements (node->shape) > 0)
    return node;
  /* Nothing to compute: neither the scheduler nor a device ever sees an empty tensor. */
  TinyNode *zero = tiny_build_number (self, (TinyDType) node->dtype, 0);
  if (tiny_is_grad_enabled ())
    zero = tiny_build_beside (self, zero, node);
  return tiny_node_broadcast (self->graph, zero, node->shape->v, node->shape->n);
}

TinyNode *
tiny_build_detach (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || !tiny_dtype_is_float (x->dtype) || (x->op == TINY_OP_DETACH && x->arg == 0)
      || (x->n_sources == 0 && !tiny_history_has (x)))
    return x;
  return tiny_layout_unary (self->graph, TINY_OP_DETACH, x);
}

/* @self as a plain number, which has no dtype of its own; truth values have. */
static TinyTensor *
weakened (TinyTensor *self)
{
  const TinyNode *node = self->root.node;
  if (self->dtype == TINY_DTYPE_I32)
    self->weak = TINY_WEAK_INT;
  else if (self->dtype == TINY_DTYPE_F32)
    self->weak = TINY_WEAK_FLOAT;
  if (node->op == TINY_OP_CONST)
    self->weak_value
        = self->weak == TINY_WEAK_INT ? (double) node->arg : tiny_node_get_float (node);
  return self;
}

/* (transfer floating): of @node; without one of the error, which is given away or copied. */
static TinyTensor *
result_of (TinyBuild *self, TinyNode *node)
{
  guint n_steps = 0;
  g_autofree gint64 *steps = NULL;
  if (!self->is_locked)
    return tiny_tensor_new_for_error (g_error_copy (self->error));
  node = tiny_build_lower (self, node);
  if (self->error == NULL)
    node = tiny_view_end (self, node, &steps, &n_steps);
  if (node != NULL && self->narrow != TINY_DTYPE_VOID && node->dtype == TINY_DTYPE_F32)
    node = tiny_build_cast (self, node, self->narrow);
  if (self->error == NULL)
    tiny_build_check_left (self, node);
  node = self->error == NULL ? check_result (self, node) : NULL;
  if (!tiny_is_grad_enabled ())
    node = tiny_build_detach (self, node);
  if (node == NULL && self->error == NULL)
    tiny_build_fail (self, "no result");
  if (self->error != NULL)
    tiny_build_explain_symbolic (self);
  if (node == NULL || self->error != NULL)
    return tiny_tensor_new_for_error (g_error_copy (self->error));
  TinyTensor *result = tiny_tensor_new_for_node (node, self->device);
  gboolean is_empty = tiny_shape_get_n_elements (node->shape) == 0;
  if (steps != NULL && !is_empty)
    tiny_view_link (result, self->tensors[0], g_steal_pointer (&steps), n_steps);
  else if (self->base != NULL && node != self->base && !is_empty)
    result->is_part = TRUE;
  return self->is_weak ? weakened (result) : result;
}

static void
finish (TinyBuild *self)
{
  for (guint i = 0; self->is_locked && i < self->n; i++)
    if (self->tensors[i] != NULL && tiny_tensor_recycle (self->tensors[i]))
      self->tensors[i] = NULL;
  if (self->is_locked)
    tiny_runtime_unlock ();
  for (guint i = 0; i < self->n; i++)
    g_clear_object (&self->tensors[i]);
  if (self->tensors != self->few_tensors)
    g_free (self->tensors);
  if (self->x != self->few_x)
    g_free (self->x);
  g_clear_error (&self->error);
}

TinyTensor *
tiny_build_end (TinyBuild *self, TinyNode *node)
{
  TinyTensor *result = result_of (self, node);
  finish (self);
  return result;
}

void
tiny_build_end_many (TinyBuild *self,
                     guint n,
                     TinyNode *const *nodes,
                     TinyTensor **const *results)
{
  for (guint i = 0; i < n; i++)
    if (results[i] != NULL)
      *results[i] = g_object_ref_sink (result_of (self, nodes[i]));
  finish (self);
}

GPtrArray *
tiny_build_end_list (TinyBuild *self, GPtrArray *nodes)
{
  GPtrArray *results = g_ptr_array_new_with_free_func (g_object_unref);
  guint n = self->error == NULL ? nodes->len : 1;
  for (guint i = 0; i < n; i++)
    g_ptr_array_add (results, g_object_ref_sink (result_of (
                                  self, self->error == NULL ? nodes->pdata[i] : NULL)));
  finish (self);
  return results;
}

/* ---- checks ---- */
gboolean
tiny_build_check_any (TinyBuild *self)
{
  if (self->n == 0)
    tiny_build_fail (self, "no tensors are given");
  return self->n > 0;
}

gboolean
tiny_build_check_list (TinyBuild *self, const char *name, gconstpointer list, guint n)
{
  if (n > 0 && list == NULL)
    tiny_build_fail (self, "%s: %u numbers wanted, none given", name, n);
  return n == 0 || list != NULL;
}

gboolean
tiny_build_check_n_results (TinyBuild *self, gint64 n)
{
  if (n > LARGEST_N_RESULTS)
    tiny_build_fail (self, "%" G_GINT64_FORMAT " results, at most %d are possible", n,
                     LARGEST_N_RESULTS);
  return n <= LARGEST_N_RESULTS;
}

gboolean
tiny_build_word (TinyBuild *self, const char *word, const char *words, guint *out_which)
{
  g_auto (GStrv) known = g_strsplit (words, "|", -1);
  for (*out_which = 0; known[*out_which] != NULL; (*out_which)++)
    if (g_strcmp0 (word, known[*out_which]) == 0)
      return TRUE;
  g_autofree char *all = g_strjoinv (", ", known);
  tiny_build_fail (self, "“%s” is none of %s", word != NULL ? word : "(null)", all);
  return FALSE;
}

gboolean
tiny_build_check_shape (TinyBuild *self, const gint64 *shape, guint n)
{
  gint64 n_elements = 1;
  if (n > TINY_MAX_RANK || (n > 0 && shape == NULL)) {
    tiny_build_fail (self,
                     n > TINY_MAX_RANK ? "%u axes, at most %d are possible"
                                       : "%u axes wanted, no sizes given (at most %d)",
                     n, TINY_MAX_RANK);
    return FALSE;
  }
  for (guint i = 0; i < n; i++) {
    if (shape[i] < 0) {
      tiny_build_fail (self, "size %" G_GINT64_FORMAT " of axis %u is negative", shape[i], i);
      return FALSE;
    }
    if (__builtin_mul_overflow (n_elements, MAX (shape[i], 1), &n_elements)
        || n_elements > LARGEST_N_ELEMENTS) {
      tiny_build_fail (self, "more than 2^48 elements are not possible");
      return FALSE;
    }
  }
  return TRUE;
}

gboolean
tiny_build_check_dtype (TinyBuild *self, TinyDType dtype)
{
  if ((guint) dtype < TINY_N_DTYPES && dtype != TINY_DTYPE_VOID && dtype != TINY_DTYPE_INDEX)
    return TRUE;
  tiny_build_fail (self, "%u is no dtype of a tensor", (guint) dtype);
  return FALSE;
}

/* Whether @x is calculated from numbers and variables alone. Each node is looked at once, and none below one of
 * data. */
static gboolean
is_known (TinyGraph *graph, TinyNode *x)
{
  g_autoptr (GPtrArray) pending = g_ptr_array_new ();
  guint32 seen = tiny_graph_begin_mark (graph);
  g_ptr_array_add (pending, x);
  while (pending->len > 0) {
    TinyNode *node = g_ptr_array_steal_index_fast (pending, pending->len - 1);
    if (node->op != TINY_OP_CONST && node->op != TINY_OP_VARIABLE && node->op != TINY_OP_RESHAPE
        && !tiny_op_is_elementwise (node->op))
      return FALSE;
    for (guint i = 0; i < node->n_sources; i++)
      if (node->sources[i]->mark != seen) {
        node->sources[i]->mark = seen;
        g_ptr_array_add (pending, node->sources[i]);
      }
  }
  return TRUE;
}

gboolean
tiny_build_get_bounds (TinyBuild *self, TinyNode *x, gint64 *out_lo, gint64 *out_hi)
{
  *out_lo = 1;
  *out_hi = 0;
  if (x == NULL || x->shape->n > 0)
    return FALSE;
  if (x->op == TINY_OP_CONST && tiny_dtype_is_float (x->dtype)) {
    double value = tiny_node_get_float (x);
    *out_lo = *out_hi = fabs (value) < (double) ((gint64) 1 << 53) ? (gint64) value : 0;
    return (double) *out_lo == value;
  }
  if (!tiny_dtype_is_integer (x->dtype))
    return FALSE;
  if (is_known (self->graph, x))
    tiny_node_get_bounds (x, out_lo, out_hi);
  return TRUE;
}

/* ---- values ---- */
TinyNode *
tiny_build_number (TinyBuild *self, TinyDType dtype, double value)
{
  /* Below zero an unsigned number is counted from the end, so two to the power of its bits is beyond on both sides. */
  double end = ldexp (1, 8 * (gint) tiny_dtype_get_n_bytes (dtype));
  gboolean is_signed = tiny_dtype_is_signed (dtype);
  if (tiny_dtype_is_integer (dtype) && dtype != TINY_DTYPE_INDEX
      && !(is_signed ? value >= -end / 2 && value <= end / 2 : value > -end && value <= end))
    tiny_build_fail (self, "the number %g is not in the range of %s", value,
                     tiny_dtype_to_string (dtype));
  return wrapped_number (self, dtype, value);
}

TinyNode *
tiny_build_like (TinyBuild *self, TinyNode *like, double value)
{
  return like == NULL ? NULL : tiny_build_number (self, (TinyDType) like->dtype, value);
}

TinyNode *
tiny_build_iota (TinyBuild *self, TinyDType dtype, gint64 n)
{
  if (n <= 0) {
    TinyNode *zero = tiny_build_number (self, dtype, 0);
    return tiny_node_broadcast (self->graph, zero, (gint64[]){ 0 }, 1);
  }
  TinyDType counted = n > G_MAXINT32 ? TINY_DTYPE_I64 : TINY_DTYPE_I32;
  if (dtype == TINY_DTYPE_U32 && n <= G_MAXUINT32)
    counted = TINY_DTYPE_U32;
  TinyNode *iota = tiny_node_new (self->graph, TINY_OP_IOTA, counted, 1, 0, NULL, 0,
                                  tiny_graph_ints (self->graph, &n, 1), NULL);
  return tiny_node_cast (self->graph, iota, dtype);
}

double
tiny_build_get_lowest (const TinyNode *x)
{
  return tiny_dtype_is_float (x->dtype) ? -INFINITY
                                        : (double) tiny_dtype_get_min ((TinyDType) x->dtype);
}

gboolean
tiny_build_is_empty (const TinyNode *x)
{
  return tiny_shape_get_n_elements (x->shape) == 0;
}

TinyNode *
tiny_build_store (TinyBuild *self, TinyNode *x)
{
  if (x == NULL || x->op == TINY_OP_CONTIGUOUS || tiny_runtime_is_memory (x)
      || tiny_build_is_empty (x))
    return x;
  return tiny_node_new (self->graph, TINY_OP_CONTIGUOUS, (TinyDType) x->dtype, 1, 1, &x, 0,
                        NULL, NULL);
}

TinyNode *
tiny_build_store_gradients (TinyBuild *self, TinyNode *x)
{
  TinyNode *sources[] = { tiny_build_store (self, x), x };
  return x == NULL || !tiny_dtype_is_float (x->dtype)
             ? sources[0]
             : tiny_node_new (self->graph, TINY_OP_GRADIENT, (TinyDType) x->dtype, 1, 2,
                              sources, TINY_RULE_STORED,
                              tiny_graph_ints (self->graph, (gint64[]){ 0, 1, 0 }, 3), NULL);
}
