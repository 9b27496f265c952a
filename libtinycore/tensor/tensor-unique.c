/* SPDX-License-Identifier: MIT
 *
 * tensor-unique.c: the different elements of a tensor, found on the host: their number is a size. */
#include <math.h>
#include <string.h>

#include "base/tiny-memory.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

enum { MANY = 4096 };

/* @n parts of @length elements each, one after the other. */
typedef struct {
  TinyDType dtype;
  const guint8 *data;
  gint64 n, length;
  gint32 *order;   /* of the parts */
  gint32 *group;   /* per part, which of the different ones it is */
  gint32 *counts;  /* per group */
  gint32 *leaders; /* per group, its first part */
  gint32 n_groups;
} Parts;

static int
compare_elements (const Parts *self, gint64 i, gint64 j)
{
  if (self->dtype == TINY_DTYPE_I64) {
    gint64 x = ((const gint64 *) self->data)[i], y = ((const gint64 *) self->data)[j];
    return (x > y) - (x < y);
  }
  if (self->dtype == TINY_DTYPE_U64) {
    guint64 x = ((const guint64 *) self->data)[i], y = ((const guint64 *) self->data)[j];
    return (x > y) - (x < y);
  }
  double x = tiny_tensor_decode (self->dtype, self->data, (gsize) i);
  double y = tiny_tensor_decode (self->dtype, self->data, (gsize) j);
  if (isnan (x) || isnan (y)) /* the greatest, and none equals another */
    return isnan (x) ? 1 : -1;
  return (x > y) - (x < y);
}

static int
compare_parts (gconstpointer a, gconstpointer b, gpointer data)
{
  const Parts *self = data;
  gint64 i = *(const gint32 *) a * self->length, j = *(const gint32 *) b * self->length;
  for (gint64 k = 0; k < self->length; k++) {
    int order = compare_elements (self, i + k, j + k);
    if (order != 0)
      return i == j ? 0 : order;
  }
  return 0;
}

/* Numbers the groups of equal neighbours in order, which is @order if that is known. FALSE: there is no memory. */
static gboolean
group_parts (Parts *self, gboolean sorts, const gint32 *order, GError **error)
{
  gint32 **const lists[] = { &self->order, &self->group, &self->counts, &self->leaders };
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++) {
    *lists[i] = tiny_memory_try ((gsize) self->n * sizeof (gint32), "its groups", error);
    if (*lists[i] == NULL)
      return FALSE;
  }
  for (gint32 i = 0; i < self->n; i++)
    self->order[i] = order != NULL ? order[i] : i;
  if (sorts && order == NULL)
    g_qsort_with_data (self->order, (gint) self->n, sizeof (gint32), compare_parts, self);
  for (gint32 i = 0; i < self->n; i++) {
    const gint32 *here = &self->order[i];
    if (i == 0 || compare_parts (here - 1, here, self) != 0) {
      self->counts[self->n_groups] = 0;
      self->leaders[self->n_groups++] = *here;
    }
    self->group[*here] = self->n_groups - 1;
    self->counts[self->n_groups - 1]++;
  }
  return TRUE;
}

static void
parts_clear (Parts *self)
{
  g_free (self->order);
  g_free (self->group);
  g_free (self->counts);
  g_free (self->leaders);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Parts, parts_clear)

static TinyTensor *
vector (TinyTensor *like, const gint32 *numbers, gint64 n)
{
  return tiny_tensor_new_from_data (tiny_tensor_get_device (like), TINY_DTYPE_I32, &n, 1,
                                    numbers, (gsize) n * sizeof (gint32));
}

static void
add_result (GPtrArray *out, TinyTensor *tensor)
{
  g_ptr_array_add (out, g_object_ref_sink (tensor));
}

/* Many single elements are sorted where they are. */
static GBytes *
find_order (TinyTensor *x, GError **error)
{
  g_autoptr (TinyTensor) order = g_object_ref_sink (tiny_tensor_argsort (x, 0, FALSE, TRUE));
  return tiny_tensor_get_data (order, error);
}

/* @x has the parts along its first axis; inverse positions get the shape of @self. */
static void
find_unique (TinyTensor *self,
             TinyTensor *x,
             gboolean sorts,
             gboolean wants_inverse,
             gboolean wants_counts,
             gboolean is_flat,
             GPtrArray *out,
             GError **error)
{
  g_autoptr (GBytes) bytes = tiny_tensor_get_data (x, error);
  if (bytes == NULL)
    return;
  gint64 n = x->shape[0], n_elements = tiny_tensor_get_n_elements (x);
  if (n > G_MAXINT32) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "more than 2^31 elements");
    return;
  }
  g_auto (Parts) parts = { .dtype = x->dtype,
                           .data = g_bytes_get_data (bytes, NULL),
                           .n = n,
                           .length = n == 0 ? 0 : n_elements / n };
  g_autoptr (GBytes) order
      = sorts && x->n_dims == 1 && n >= MANY ? find_order (x, error) : NULL;
  if (*error != NULL
      || !group_parts (&parts, sorts, order != NULL ? g_bytes_get_data (order, NULL) : NULL,
                       error))
    return;
  add_result (out, tiny_tensor_index_select (x, 0, vector (x, parts.leaders, parts.n_groups)));
  if (wants_inverse) {
    TinyTensor *inverse = vector (x, parts.group, n);
    add_result (out,
                is_flat ? tiny_tensor_reshape (inverse, self->shape, self->n_dims) : inverse);
  }
  if (wants_counts)
    add_result (out, vector (x, parts.counts, parts.n_groups));
}

static GPtrArray *
unique (const char *name,
        TinyTensor *given,
        gboolean sorts,
        gboolean wants_inverse,
        gboolean wants_counts,
        gint axis)
{
  GPtrArray *out = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GError) error = NULL;
  gboolean is_flat = axis == TINY_NO_AXIS;
  g_autoptr (TinyTensor) self = TINY_IS_TENSOR (given) ? g_object_ref_sink (given) : NULL;
  /* An argument that is none becomes the sticky error of what follows. */
  TinyTensor *moved = is_flat ? tiny_tensor_reshape (self, (gint64[]){ -1 }, 1) : NULL;
  if (is_flat && self != NULL && tiny_tensor_get_n_elements (self) == 0
      && self->error == NULL) {
    g_object_unref (g_object_ref_sink (moved));
    moved = tiny_tensor_reshape (self, (gint64[]){ 0 }, 1);
  }
  if (!is_flat)
    moved = tiny_tensor_movedim (self, (gint64[]){ axis }, 1, (gint64[]){ 0 }, 1);
  g_autoptr (TinyTensor) x = g_object_ref_sink (moved);
  if (x->error == NULL)
    find_unique (self, x, sorts, wants_inverse, wants_counts, is_flat, out, &error);
  else
    error = g_error_copy (x->error);
  if (error != NULL) {
    g_prefix_error (&error, "%s: ", name);
    g_ptr_array_set_size (out, 0);
    add_result (out, tiny_tensor_new_for_error (g_steal_pointer (&error)));
  } else if (!is_flat) {
    TinyTensor *values = g_object_ref (out->pdata[0]);
    g_object_unref (out->pdata[0]);
    out->pdata[0] = g_object_ref_sink (
        tiny_tensor_movedim (values, (gint64[]){ 0 }, 1, (gint64[]){ axis }, 1));
    g_object_unref (values);
  }
  return out;
}

GPtrArray *
tiny_tensor_unique (TinyTensor *self,
                    gboolean sorted,
                    gboolean return_inverse,
                    gboolean return_counts,
                    gint axis)
{
  (void) sorted; /* they always are */
  return unique ("unique", self, TRUE, return_inverse, return_counts, axis);
}

GPtrArray *
tiny_tensor_unique_consecutive (TinyTensor *self,
                                gboolean return_inverse,
                                gboolean return_counts,
                                gint axis)
{
  return unique ("unique_consecutive", self, FALSE, return_inverse, return_counts, axis);
}
