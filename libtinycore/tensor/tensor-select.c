/* SPDX-License-Identifier: MIT
 *
 * tensor-select.c: what is as large as the data says.
 *
 * A shape is known before anything runs, so these wait for the data and count on the host. */
#include "tensor/tensor-select.h"

#include <string.h>

#include "base/tiny-memory.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-positions.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

/* The positions along one axis of what is true, @n of them; the axis has @size and @inner elements
 * below each of its own. FALSE: there is no memory. */
static gboolean
add_positions (GPtrArray *out,
               const char *device,
               const guint8 *mask,
               gsize n_all,
               gint64 n,
               gint64 size,
               gint64 inner,
               GError **error)
{
  gboolean wide = size > G_MAXINT32;
  gsize n_bytes = (gsize) n * (wide ? 8 : 4);
  g_autofree gpointer data = tiny_memory_try (n_bytes, "positions", error);
  gint64 at = 0;
  if (data == NULL)
    return FALSE;
  for (gsize i = 0; i < n_all; i++)
    if (mask[i]) {
      gint64 position = (gint64) i / inner % size;
      if (wide)
        ((gint64 *) data)[at++] = position;
      else
        ((gint32 *) data)[at++] = (gint32) position;
    }
  g_ptr_array_add (out,
                   g_object_ref_sink (tiny_tensor_new_from_data (
                       device, wide ? TINY_DTYPE_I64 : TINY_DTYPE_I32, &n, 1, data, n_bytes)));
  return TRUE;
}

gboolean
tiny_select_positions (TinyTensor *mask, TinyTensor *like, GPtrArray *out, GError **error)
{
  guint rank;
  /* Reading puts a mask that may be anywhere on the default device. */
  const char *device = tiny_tensor_get_device (mask);
  if (device == NULL && like != NULL)
    device = tiny_tensor_get_device (like);
  g_autoptr (GBytes) bytes = tiny_tensor_get_data (mask, error);
  if (bytes == NULL)
    return FALSE;
  const gint64 *dims = tiny_tensor_get_shape (mask, &rank);
  gsize n_all;
  const guint8 *values = g_bytes_get_data (bytes, &n_all);
  gint64 n = 0, inner = (gint64) n_all;
  for (gsize i = 0; i < n_all; i++)
    n += values[i] != 0;
  if (rank == 0)
    return add_positions (out, device, values, n_all, n, 1, 1, error);
  for (guint i = 0; i < rank; i++) {
    inner = dims[i] == 0 ? 1 : inner / dims[i];
    if (!add_positions (out, device, values, n_all, n, MAX (dims[i], 1), inner, error))
      return FALSE;
  }
  return TRUE;
}

/* ---- results and refusals ---- */
static TinyTensor *
failed (const char *name, GError *error)
{
  g_prefix_error (&error, "%s: ", name);
  return tiny_tensor_new_for_error (error);
}

static TinyTensor *refused (const char *name, const char *format, ...) G_GNUC_PRINTF (2, 3);

static TinyTensor *
refused (const char *name, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  return tiny_tensor_new_for_error (
      g_error_new (TINY_ERROR, TINY_ERROR_INVALID, "%s: %s", name, text));
}

/* What is no tensor, or carries an error, as the operation's result; else NULL. */
static TinyTensor *
unusable (const char *name, TinyTensor *tensor)
{
  if (!TINY_IS_TENSOR (tensor))
    return refused (name, "an argument is no tensor");
  const GError *error = tiny_tensor_get_error (tensor);
  return error == NULL ? NULL : tiny_tensor_new_for_error (g_error_copy (error));
}

static TinyTensor *
sunk (TinyTensor *tensor)
{
  return TINY_IS_TENSOR (tensor) ? g_object_ref_sink (tensor) : NULL;
}

/* ---- masks ---- */
TinyTensor *
tiny_tensor_nonzero (TinyTensor *self)
{
  g_autoptr (TinyTensor) mask = sunk (tiny_tensor_cast (self, TINY_DTYPE_BOOL));
  g_autoptr (GPtrArray) positions = g_ptr_array_new_with_free_func (g_object_unref);
  GError *error = NULL;
  TinyTensor *bad = unusable ("nonzero", mask);
  if (bad != NULL)
    return bad;
  if (!tiny_select_positions (mask, NULL, positions, &error))
    return failed ("nonzero", error);
  if (mask->n_dims == 0) {
    gint64 dims[] = { tiny_tensor_get_n_elements (positions->pdata[0]), 0 };
    return tiny_tensor_zeros (TINY_DTYPE_I32, dims, 2);
  }
  return tiny_tensor_stack ((TinyTensor *const *) positions->pdata, positions->len, 1);
}

/* The shape that both broadcast to. */
static gboolean
common_shape (TinyTensor *a, TinyTensor *b, gint64 *dims, guint *out_n)
{
  *out_n = MAX (a->n_dims, b->n_dims);
  for (guint i = 0; i < *out_n; i++) {
    guint from_end = *out_n - i;
    gint64 x = from_end > a->n_dims ? 1 : a->shape[a->n_dims - from_end];
    gint64 y = from_end > b->n_dims ? 1 : b->shape[b->n_dims - from_end];
    if (x != y && x != 1 && y != 1)
      return FALSE;
    dims[i] = x == 1 ? y : x;
  }
  return TRUE;
}

static TinyTensor *
check_mask (const char *name, TinyTensor *self, TinyTensor *mask)
{
  TinyTensor *bad = unusable (name, self);
  if (bad == NULL)
    bad = unusable (name, mask);
  if (bad == NULL && mask->dtype != TINY_DTYPE_BOOL)
    bad = refused (name, "a mask is bool, not %s", tiny_dtype_to_string (mask->dtype));
  return bad;
}

TinyTensor *
tiny_tensor_masked_select (TinyTensor *self, TinyTensor *mask)
{
  g_autoptr (TinyTensor) x = sunk (self), chosen = sunk (mask);
  gint64 dims[TINY_MAX_RANK];
  guint n;
  TinyTensor *bad = check_mask ("masked_select", x, chosen);
  if (bad != NULL)
    return bad;
  if (!common_shape (x, chosen, dims, &n))
    return refused ("masked_select", "the shapes of mask and tensor do not broadcast");
  TinyTensor *wide = tiny_tensor_expand (chosen, dims, n);
  TinyTensor *picked
      = tiny_tensor_index (tiny_tensor_expand (x, dims, n), "t", NULL, 0, &wide, 1);
  return tiny_tensor_reshape (picked, (gint64[]){ -1 }, 1);
}

TinyTensor *
tiny_tensor_masked_scatter (TinyTensor *self, TinyTensor *mask, TinyTensor *source)
{
  g_autoptr (TinyTensor) x = sunk (self), chosen = sunk (mask), values = sunk (source);
  g_autoptr (GPtrArray) positions = g_ptr_array_new_with_free_func (g_object_unref);
  GError *error = NULL;
  TinyTensor *bad = check_mask ("masked_scatter", x, chosen);
  if (bad == NULL)
    bad = unusable ("masked_scatter", values);
  if (bad != NULL)
    return bad;
  gint64 dims[TINY_MAX_RANK];
  guint n_dims;
  if (!common_shape (x, chosen, dims, &n_dims))
    return refused ("masked_scatter", "the shapes of mask and tensor do not broadcast");
  g_autoptr (TinyTensor) wide = sunk (tiny_tensor_expand (chosen, dims, n_dims));
  if (!tiny_select_positions (wide, x, positions, &error))
    return failed ("masked_scatter", error);
  gint64 n = tiny_tensor_get_n_elements (positions->pdata[0]);
  gint64 n_values = tiny_tensor_get_n_elements (values);
  if (n > n_values)
    return refused ("masked_scatter",
                    "%" G_GINT64_FORMAT " are chosen, the source has %" G_GINT64_FORMAT, n,
                    n_values);
  TinyTensor *row = tiny_tensor_slice (tiny_tensor_reshape (values, &n_values, 1), 0, 0, n, 1);
  /* Without axes there is one position all the same. */
  TinyTensor *whole = n_dims == 0 ? tiny_tensor_reshape (x, (gint64[]){ 1 }, 1)
                                  : tiny_tensor_expand (x, dims, n_dims);
  TinyTensor *result = tiny_tensor_index_put (whole, (TinyTensor *const *) positions->pdata,
                                              positions->len, row, FALSE);
  return tiny_tensor_reshape (result, dims, n_dims);
}

/* ---- as many as the largest number says ---- */

/* The least and the largest of @x, which has elements. */
static gboolean
read_extremes (TinyTensor *x, double *out_least, double *out_most, GError **error)
{
  g_autoptr (TinyTensor) least = sunk (tiny_tensor_min (x, NULL, 0, FALSE));
  g_autoptr (TinyTensor) most = sunk (tiny_tensor_max (x, NULL, 0, FALSE));
  TinyTensor *ends[] = { least, most };
  return tiny_tensor_realize_many (ends, 2, error) && tiny_tensor_item (least, out_least, error)
         && tiny_tensor_item (most, out_most, error);
}

/* One more than the largest of @x, integers from 0; NULL, or the refusal. */
static TinyTensor *
count_classes (const char *name, TinyTensor *x, gint64 *out_n)
{
  double least = 0, most = -1;
  GError *error = NULL;
  TinyTensor *bad = unusable (name, x);
  if (bad != NULL)
    return bad;
  if (!tiny_dtype_is_integer (x->dtype))
    return refused (name, "takes integers, not %s", tiny_dtype_to_string (x->dtype));
  if (tiny_tensor_get_n_elements (x) > 0 && !read_extremes (x, &least, &most, &error))
    return failed (name, error);
  if (least < 0 || most > 1e14)
    return refused (name, "%g is no number to count up to", least < 0 ? least : most);
  *out_n = (gint64) most + 1;
  return NULL;
}

TinyTensor *
tiny_tensor_one_hot (TinyTensor *self, gint64 num_classes)
{
  TinyBuild b;
  TinyNode *node = NULL;
  g_autoptr (TinyTensor) x = sunk (self);
  TinyTensor *bad = num_classes == -1 ? count_classes ("one_hot", x, &num_classes) : NULL;
  if (bad != NULL)
    return bad;
  if (tiny_build_begin (&b, "one_hot", 1, &x) && tiny_build_check_shape (&b, &num_classes, 1)) {
    TinyDType dtype = (TinyDType) b.x[0]->dtype;
    if (!tiny_dtype_is_integer (dtype))
      tiny_build_fail (&b, "labels are integers, not %s", tiny_dtype_to_string (dtype));
    else if (tiny_build_check_labels (&b, b.x[0], num_classes, 0))
      node = tiny_build_cast (&b, tiny_build_one_hot (&b, b.x[0], num_classes), TINY_DTYPE_I32);
  }
  return tiny_build_end (&b, node);
}

/* How many of @x are 0, 1, … @n - 1. */
static TinyTensor *
count_each (TinyTensor *x, gint64 n)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (tiny_build_begin (&b, "bincount", 1, &x) && tiny_build_check_shape (&b, &n, 1)) {
    TinyNode *positions = tiny_build_wide_enough (&b, b.x[0], n);
    node = n > 0 && tiny_build_is_empty (positions)
               ? tiny_node_broadcast (b.graph, tiny_build_number (&b, TINY_DTYPE_I32, 0), &n, 1)
               : tiny_build_count_at (&b, positions, 0, n);
  }
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_bincount (TinyTensor *self, TinyTensor *weights, gint64 minlength)
{
  g_autoptr (TinyTensor) x = sunk (self), each = sunk (weights);
  gint64 n = 0, n_elements;
  TinyTensor *bad = count_classes ("bincount", x, &n);
  if (bad == NULL && weights != NULL)
    bad = unusable ("bincount", each);
  if (bad != NULL)
    return bad;
  n_elements = tiny_tensor_get_n_elements (x);
  if (x->n_dims != 1 || minlength < 0)
    return x->n_dims != 1 ? refused ("bincount", "takes a vector, not %u axes", x->n_dims)
                          : refused ("bincount", "minlength is below 0");
  if (each != NULL && (each->n_dims != 1 || each->shape[0] != n_elements))
    return refused ("bincount", "there is one weight for each of %" G_GINT64_FORMAT " elements",
                    n_elements);
  n = MAX (n, minlength);
  if (each == NULL)
    return count_each (x, n);
  if (!tiny_dtype_is_float (each->dtype)) {
    TinyTensor *integers = each;
    each = sunk (tiny_tensor_cast (integers, tiny_get_default_float ()));
    g_object_unref (integers);
  }
  return tiny_tensor_scatter_add (tiny_tensor_zeros (each->dtype, &n, 1), 0, x, each);
}
