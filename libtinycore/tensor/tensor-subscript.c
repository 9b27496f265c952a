/* SPDX-License-Identifier: MIT
 *
 * tensor-subscript.c: x[…] of Python, read and assigned.
 *
 * A subscript is taken apart in two: the view (numbers, slices, new axes), which is movement, and
 * the picks (tensors of integers), which read at positions that are data. The picked axes are made
 * one, so that several index tensors are one read at position i * size + j. Masks become picks
 * before: their number of elements is a size, so they are read by the host. */
#include <string.h>

#include "ir/tiny-limit.h"
#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tensor-select.h"
#include "tensor/tiny-positions.h"
#include "tensor/tiny-subscript.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-view.h"

/* ---- what was given ---- */

/* The tensors of a subscript, masks replaced by the positions of what is true in them. */
typedef struct {
  GPtrArray *tensors; /* owned; an argument that is no tensor is NULL */
  GArray *given;      /* of TinySubscriptGiven, one for each that was given */
  GError *error;
} Picked;

static void
unref_tensor (gpointer tensor)
{
  if (tensor != NULL)
    g_object_unref (tensor);
}

static void
picked_clear (Picked *self)
{
  g_clear_pointer (&self->tensors, g_ptr_array_unref);
  g_clear_pointer (&self->given, g_array_unref);
  g_clear_error (&self->error);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Picked, picked_clear)

/* Consumes floating tensors. @first come before the others. Masks stay when @keeps_masks. */
static Picked
pick_up (TinyTensor *const *first,
         guint n_first,
         TinyTensor *const *tensors,
         guint n,
         gboolean keeps_masks)
{
  Picked self = { .tensors = g_ptr_array_new_with_free_func (unref_tensor),
                  .given = g_array_new (FALSE, TRUE, sizeof (TinySubscriptGiven)) };
  for (guint i = 0; i < n_first; i++)
    g_ptr_array_add (self.tensors,
                     TINY_IS_TENSOR (first[i]) ? g_object_ref_sink (first[i]) : NULL);
  if (n > 0 && tensors == NULL)
    self.error
        = g_error_new (TINY_ERROR, TINY_ERROR_INVALID, "%u tensors wanted, none given", n);
  for (guint i = 0; tensors != NULL && i < n; i++) {
    TinyTensor *tensor = TINY_IS_TENSOR (tensors[i]) ? g_object_ref_sink (tensors[i]) : NULL;
    TinySubscriptGiven given
        = { .is_mask = !keeps_masks && tensor != NULL
                       && tiny_tensor_get_dtype (tensor) == TINY_DTYPE_BOOL };
    if (given.is_mask) {
      const gint64 *dims = tiny_tensor_get_shape (tensor, &given.mask_rank);
      memcpy (given.mask_dims, dims, given.mask_rank * sizeof (gint64));
      if (self.error == NULL)
        tiny_select_positions (tensor, n_first > 0 ? self.tensors->pdata[0] : NULL,
                               self.tensors, &self.error);
      g_object_unref (tensor);
    } else {
      g_ptr_array_add (self.tensors, tensor);
    }
    g_array_append_val (self.given, given);
  }
  return self;
}

static gboolean
begin (TinyBuild *b, const char *name, Picked *picked)
{
  gboolean good = tiny_build_begin_some (b, name, picked->tensors->len,
                                         (TinyTensor *const *) picked->tensors->pdata, 0,
                                         TINY_TAKES_ANY | TINY_TAKES_SYMBOLIC);
  if (good && picked->error != NULL) {
    b->error = g_error_copy (picked->error);
    g_prefix_error (&b->error, "%s: ", name);
  }
  return good && b->error == NULL;
}

/* ---- the view ---- */
static TinyPart
place_of (const TinySubscriptPart *part)
{
  return (TinyPart){ .start = part->start, .at = part->at, .n = part->n, .size = part->size };
}

/* Whether a variable says where the part of axis @i is, or how long that or the axis. */
static gboolean
is_symbolic (const TinySubscript *self, guint i)
{
  return self->parts[i].at != NULL || self->parts[i].size != NULL
         || (tiny_limit_get (self->x, i) != NULL
             && (self->parts[i].n < self->x->shape->v[i] || self->parts[i].is_dropped));
}

static TinyNode *
view (TinyBuild *b, const TinySubscript *self)
{
  TinyNode *x = self->x;
  for (guint i = 0; i < self->n_read; i++) {
    const TinySubscriptPart *part = &self->parts[i];
    const TinyPart place = place_of (part);
    x = is_symbolic (self, i) ? tiny_part_read (b, x, i, &place)
                              : tiny_build_slice (b, x, i, part->start, part->step, part->n);
  }
  return tiny_build_reshape (b, x, self->dims, self->rank);
}

/* @part, of one part's axis, where it came from on an axis of @size; zeros elsewhere. */
static TinyNode *
spread_out (
    TinyBuild *b, TinyNode *part, guint axis, const TinySubscriptPart *from, gint64 size)
{
  const TinyPart place = place_of (from);
  if (part != NULL && (from->at != NULL || from->size != NULL))
    return tiny_part_spread (b, part, axis, &place, size);
  if (part == NULL || (from->n == size && from->step == 1))
    return part;
  if (from->step == -1 && from->n == size)
    return tiny_node_flip (b->graph, part, (gint64[]){ axis }, 1);
  if (from->step != 1 && from->n > 1) {
    gint64 sign = from->step < 0 ? -1 : 1;
    return tiny_node_shear (b->graph, part, axis, axis, sign, 0, -sign * from->start,
                            sign * from->step, size);
  }
  gint64 pairs[2 * TINY_MAX_RANK] = { 0 };
  pairs[2 * axis] = from->start;
  pairs[2 * axis + 1] = size - from->start - from->n;
  return tiny_node_pad (b->graph, part, pairs, part->shape->n);
}

/* x where the view is @value. */
static TinyNode *
unview (TinyBuild *b, const TinySubscript *self, TinyNode *value)
{
  const TinyInts *shape = self->x->shape;
  gint64 dims[TINY_MAX_RANK];
  gboolean is_whole = TRUE;
  if (value == NULL)
    return NULL;
  for (guint i = 0; i < shape->n; i++) {
    dims[i] = self->parts[i].n;
    is_whole = is_whole && dims[i] == shape->v[i] && self->parts[i].size == NULL;
  }
  if (tiny_shape_get_n_elements (value->shape) == 0)
    return self->x;
  value = tiny_build_reshape (b, value, dims, shape->n);
  TinyNode *inside = tiny_node_broadcast (b->graph, tiny_build_number (b, TINY_DTYPE_BOOL, 1),
                                          dims, shape->n);
  for (guint i = 0; i < shape->n; i++) {
    value = spread_out (b, value, i, &self->parts[i], shape->v[i]);
    inside = spread_out (b, inside, i, &self->parts[i], shape->v[i]);
  }
  return is_whole ? value : tiny_build_where (b, inside, value, self->x);
}

/* ---- the picks ---- */

/* The view with its picked axes made one, and where it is read. */
typedef struct {
  gint64
      order[TINY_MAX_SUBSCRIPT]; /* of the view's axes: @at others, the picked ones, the rest */
  guint n_picked, at;
  gint64 joined[TINY_MAX_SUBSCRIPT + 1]; /* the view in that order, its picked axes one */
  guint n_joined;
  gint64 result[2 * TINY_MAX_SUBSCRIPT]; /* the shape of what is read */
  guint n_result;
  TinyNode *view;
  TinyNode *positions; /* on the joined axis, -1 where one is outside; of the picks' shape */
} Picks;

/* Where the picked axes go: where the first is if they are neighbours, else to the front. Picks
 * without axes are numbers, which neither part others nor are parted from them (PyTorch's rule). */
static void
place_picks (const TinySubscript *self, Picks *out)
{
  guint n_runs = 0, first = 0, n_others = 0;
  gboolean was_picked = FALSE;
  for (guint i = 0; i < self->rank; i++) {
    if (self->picks[i] == NULL) {
      was_picked = FALSE;
      n_others++;
    } else if (self->picks[i]->shape->n > 0) {
      if (!was_picked && n_runs++ == 0)
        first = n_others;
      was_picked = TRUE;
    }
  }
  out->at = n_runs == 1 ? first : 0;
}

static void
order_axes (const TinySubscript *self, Picks *out)
{
  guint n = 0, n_others = 0;
  for (guint i = 0; i < self->rank && n_others < out->at; i++)
    if (self->picks[i] == NULL && n_others++ < out->at)
      out->order[n++] = i;
  for (guint i = 0; i < self->rank; i++)
    if (self->picks[i] != NULL)
      out->order[n++] = i;
  out->n_picked = n - out->at;
  n_others = 0;
  for (guint i = 0; i < self->rank; i++)
    if (self->picks[i] == NULL && n_others++ >= out->at)
      out->order[n++] = i;
}

/* i * size + j of all picks; each counts from the end when negative, -1 if one is outside. */
static TinyNode *
join_positions (TinyBuild *b, const TinySubscript *self, const Picks *picks, gint64 n_joined)
{
  TinyDType dtype = n_joined > G_MAXINT32 ? TINY_DTYPE_I64 : TINY_DTYPE_I32;
  TinyNode *joined = NULL, *all_inside = NULL;
  for (guint i = 0; i < picks->n_picked; i++) {
    guint axis = (guint) picks->order[picks->at + i];
    gint64 size = self->dims[axis];
    TinyNode *position = tiny_build_positions (b, picks->view, axis, self->picks[axis]);
    if (picks->n_picked == 1 || position == NULL)
      return position;
    TinyNode *inside = tiny_build_is_inside (b, position, size);
    /* Outside, the low bits of a wide position may be anything. */
    position = tiny_build_cast (b, position, dtype);
    joined = joined == NULL
                 ? position
                 : tiny_build_add (
                     b, tiny_build_mul (b, joined, tiny_build_number (b, dtype, (double) size)),
                     position);
    all_inside
        = all_inside == NULL ? inside : tiny_build_binary (b, TINY_OP_AND, all_inside, inside);
  }
  return tiny_build_where (b, all_inside, joined, tiny_build_number (b, dtype, -1));
}

static gboolean
find_picks (TinyBuild *b, const TinySubscript *self, TinyNode *x, Picks *out)
{
  memset (out, 0, sizeof *out);
  out->view = x;
  place_picks (self, out);
  order_axes (self, out);
  gint64 n_joined = 1;
  for (guint i = 0; i < self->rank; i++) {
    gint64 size = self->dims[out->order[i]];
    gboolean picked = i >= out->at && i < out->at + out->n_picked;
    n_joined *= picked ? size : 1;
    if (!picked || i == out->at)
      out->joined[out->n_joined++] = size;
  }
  out->joined[out->at] = n_joined;
  out->positions = join_positions (b, self, out, n_joined);
  if (out->positions == NULL)
    return FALSE;
  const TinyInts *shape = out->positions->shape;
  for (guint i = 0; i < out->n_joined; i++) {
    if (i != out->at)
      out->result[out->n_result++] = out->joined[i];
    for (guint j = 0; i == out->at && j < shape->n; j++)
      out->result[out->n_result++] = shape->v[j];
  }
  return tiny_build_check_shape (b, out->result, out->n_result);
}

static gboolean
has_picks (const TinySubscript *self)
{
  for (guint i = 0; i < self->rank; i++)
    if (self->picks[i] != NULL)
      return TRUE;
  return FALSE;
}

static TinyNode *
join_axes (TinyBuild *b, const TinySubscript *self, const Picks *picks, TinyNode *x)
{
  x = tiny_build_permute (b, x, picks->order, self->rank);
  return tiny_build_reshape (b, x, picks->joined, picks->n_joined);
}

static TinyNode *
part_axes (TinyBuild *b, const TinySubscript *self, const Picks *picks, TinyNode *x)
{
  gint64 dims[TINY_MAX_SUBSCRIPT], inverse[TINY_MAX_SUBSCRIPT];
  for (guint i = 0; i < self->rank; i++) {
    dims[i] = self->dims[picks->order[i]];
    inverse[picks->order[i]] = i;
  }
  return tiny_build_permute (b, tiny_build_reshape (b, x, dims, self->rank), inverse,
                             self->rank);
}

/* Positions that are data count along axes of numbers, beside such axes. */
static gboolean
check_picks (TinyBuild *b, const TinySubscript *self, const TinyNode *x)
{
  gboolean has_limits = x->limits != NULL;
  for (guint i = 0; i < self->rank; i++)
    has_limits = has_limits || (self->picks[i] != NULL && self->picks[i]->limits != NULL);
  return !has_limits
         || tiny_build_fail (
                b, "positions that are data do not go with a size that is a variable: "
                   "take them of the whole, and shorten that afterwards")
                != NULL;
}

/* ---- reading ---- */

/* Whether all of the tensors are places that variables say: then what is read is a part, not a copy. */
static gboolean
are_places (TinyBuild *b)
{
  for (guint i = 1; i < b->n; i++)
    if (!tiny_part_is_symbolic (b, b->x[i]) && b->x[i]->op != TINY_OP_CONST)
      return FALSE;
  return TRUE;
}

static TinyNode *
read_node (TinyBuild *b, const TinySubscript *self)
{
  TinyNode *x = view (b, self);
  if (!has_picks (self) || x == NULL)
    return x;
  if (!check_picks (b, self, x))
    return NULL;
  Picks picks;
  if (!find_picks (b, self, x, &picks))
    return NULL;
  x = join_axes (b, self, &picks, x);
  return tiny_build_select (b, x, picks.at, picks.positions);
}

TinyTensor *
tiny_tensor_index (TinyTensor *self,
                   const char *pattern,
                   const gint64 *numbers,
                   guint n_numbers,
                   TinyTensor *const *tensors,
                   guint n_tensors)
{
  TinyBuild b;
  TinyNode *node = NULL;
  TinySubscript subscript;
  g_auto (Picked) picked = pick_up (&self, 1, tensors, n_tensors, FALSE);
  if (begin (&b, "index", &picked) && (!are_places (&b) || tiny_view_begin (&b))
      && tiny_subscript_read (&b, &subscript, b.x[0], pattern, numbers, n_numbers, picked.given,
                              b.x + 1))
    node = read_node (&b, &subscript);
  return tiny_build_end (&b, node);
}

/* ---- writing ---- */

/* @value in the shape of what the subscript reads; more axes than that may be there, of size 1. */
static TinyNode *
fit_value (TinyBuild *b, TinyNode *value, const gint64 *dims, guint rank)
{
  guint extra = value->shape->n > rank ? value->shape->n - rank : 0;
  for (guint i = 0; i < extra; i++)
    if (value->shape->v[i] != 1)
      extra = 0;
  if (extra > 0)
    value = tiny_build_reshape (b, value, value->shape->v + extra, rank);
  for (guint i = 0; i < rank; i++) /* -1 would keep a size */
    g_assert (dims[i] >= 0);
  return tiny_build_expand (b, value, dims, rank);
}

static TinyNode *
write_picks (TinyBuild *b, const TinySubscript *self, TinyNode *value, gboolean accumulate)
{
  Picks picks;
  TinyNode *x = view (b, self);
  if (x == NULL || !check_picks (b, self, x) || !find_picks (b, self, x, &picks))
    return NULL;
  x = join_axes (b, self, &picks, x);
  value = fit_value (b, value, picks.result, picks.n_result);
  if (x == NULL || value == NULL)
    return NULL;
  gint64 dims[TINY_MAX_SUBSCRIPT + 1], own[TINY_MAX_SUBSCRIPT + 1];
  gint64 n = tiny_shape_get_n_elements (picks.positions->shape);
  for (guint i = 0; i < picks.n_joined; i++) {
    dims[i] = i == picks.at ? n : picks.joined[i];
    own[i] = i == picks.at ? n : 1;
  }
  value = tiny_build_reshape (b, value, dims, picks.n_joined);
  TinyNode *positions = tiny_build_reshape (b, picks.positions, own, picks.n_joined);
  TinyNode *written
      = accumulate
            ? tiny_build_add (b, x, tiny_build_scatter_sum (b, x, picks.at, positions, value))
            : tiny_build_put (b, x, picks.at, positions, value);
  return written == NULL ? NULL : unview (b, self, part_axes (b, self, &picks, written));
}

/* x where the mask is not true, @value elsewhere. */
static TinyNode *
write_mask (TinyBuild *b, const TinySubscript *self, TinyNode *value)
{
  TinyNode *x = view (b, self);
  gint64 dims[TINY_MAX_SUBSCRIPT];
  for (guint i = 0; i < self->rank; i++) {
    gboolean masked = i >= self->mask_axis && i < self->mask_axis + self->mask->shape->n;
    dims[i] = masked ? self->dims[i] : 1;
  }
  TinyNode *mask = tiny_build_reshape (b, self->mask, dims, self->rank);
  value = tiny_build_reshape (b, value, NULL, 0);
  return unview (b, self, tiny_build_where (b, mask, value, x));
}

/* What is written to a part whose length is a variable is as long as that, or one element for all. */
static gboolean
check_value (TinyBuild *b, const TinySubscript *self, const TinyNode *value)
{
  if (value == NULL)
    return FALSE;
  for (guint i = 0; i < self->rank; i++) {
    gint at = (gint) i - (gint) self->rank + (gint) value->shape->n;
    TinyNode *size = at >= 0 ? tiny_limit_get (value, (guint) at) : NULL;
    gboolean is_one = at < 0 || value->shape->v[at] == 1;
    if (size != self->sizes[i] && !(size == NULL && is_one))
      return tiny_build_fail (b,
                              "along axis %u of the part it and what is written differ in "
                              "size: one is a variable, or both are "
                              "different ones",
                              i)
             != NULL;
  }
  return TRUE;
}

static TinyNode *
write_node (TinyBuild *b, const TinySubscript *self, TinyNode *value, gboolean accumulate)
{
  value = tiny_build_cast (b, value, (TinyDType) self->x->dtype);
  if (self->mask != NULL)
    return write_mask (b, self, value);
  if (has_picks (self))
    return write_picks (b, self, value, accumulate);
  if (!check_value (b, self, value))
    return NULL;
  value = fit_value (b, value, self->dims, self->rank);
  if (value != NULL && accumulate)
    value = tiny_build_add (b, view (b, self), value);
  else if (value == view (b, self)) /* as the last part of x[0] += 1 is */
    return self->x;
  return unview (b, self, value);
}

/* (transfer floating): @self with @value where the subscript reads. */
static TinyTensor *
written (const char *name,
         TinyTensor *self,
         const char *pattern,
         const gint64 *numbers,
         guint n_numbers,
         TinyTensor *const *tensors,
         guint n_tensors,
         TinyTensor *value,
         gboolean accumulate)
{
  TinyBuild b;
  TinyNode *node = NULL;
  TinySubscript subscript;
  TinyTensor *first[] = { self, value };
  /* One value for all needs no positions: nobody has to wait for the mask. */
  gboolean keeps_mask = !accumulate && n_tensors == 1 && TINY_IS_TENSOR (value)
                        && tiny_tensor_get_n_elements (value) == 1;
  g_auto (Picked) picked = pick_up (first, 2, tensors, n_tensors, keeps_mask);
  if (begin (&b, name, &picked)
      && tiny_subscript_read (&b, &subscript, b.x[0], pattern, numbers, n_numbers, picked.given,
                              b.x + 2))
    node = write_node (&b, &subscript, b.x[1], accumulate);
  return tiny_build_end (&b, node);
}

gboolean
tiny_tensor_set_index (TinyTensor *self,
                       const char *pattern,
                       const gint64 *numbers,
                       guint n_numbers,
                       TinyTensor *const *tensors,
                       guint n_tensors,
                       TinyTensor *value,
                       GError **error)
{
  gboolean floating = TINY_IS_TENSOR (self) && g_object_is_floating (self);
  if (floating)
    g_object_ref (self);
  TinyTensor *changed = written ("set_index", self, pattern, numbers, n_numbers, tensors,
                                 n_tensors, value, FALSE);
  if (floating)
    g_object_force_floating (G_OBJECT (self));
  return tiny_tensor_assign (self, changed, error);
}

TinyTensor *
tiny_tensor_index_put (TinyTensor *self,
                       TinyTensor *const *indices,
                       guint n_indices,
                       TinyTensor *values,
                       gboolean accumulate)
{
  g_autofree char *pattern = g_strnfill (indices != NULL ? n_indices : 0, 't');
  return written ("index_put", self, pattern, NULL, 0, indices, n_indices, values, accumulate);
}
