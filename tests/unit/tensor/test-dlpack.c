/* SPDX-License-Identifier: MIT
 *
 * test-dlpack.c: memory is shared with what exports and imports DLPack's structures, kept as long as it
 * is used and given back once; what cannot be shared is copied or refused. The structures here are
 * written down anew, from the specification. Memory without a structure: tiny_tensor_new_from_blob(). */
#include "tensor/tiny-dlpack.h"

#include <stdlib.h>
#include <string.h>

#include "engine/tiny-devices.h"
#include "tensor/tiny-tensor-import.h"
#include "tensor/tiny-tensor-operations.h"

typedef struct {
  void *data;
  gint32 device_type, device_id, n_dims;
  guint8 code, bits;
  guint16 lanes;
  gint64 *shape, *strides;
  guint64 byte_offset;
} Tensor;

typedef struct Plain {
  Tensor tensor;
  void *context;
  void (*deleter) (struct Plain *);
} Plain;

typedef struct Versioned {
  guint32 major, minor;
  void *context;
  void (*deleter) (struct Versioned *);
  guint64 flags;
  Tensor tensor;
} Versioned;

static int n_deleted;

static void
count_plain (Plain *self)
{
  n_deleted++;
}

static void
count_versioned (Versioned *self)
{
  n_deleted++;
}

static float *
new_floats (guint n)
{
  float *data = aligned_alloc (256, 256 * (1 + n / 64));
  for (guint i = 0; i < n; i++)
    data[i] = (float) i;
  return data;
}

static Plain
describe (void *data, gint32 n_dims, gint64 *shape, gint64 *strides)
{
  return (Plain){ { data, 1, 0, n_dims, 2, 32, 1, shape, strides, 0 }, NULL, count_plain };
}

static void
check_values (TinyTensor *tensor, const char *wanted)
{
  g_autofree char *text = tiny_tensor_to_string (tensor);
  g_assert_cmpstr (text, ==, wanted);
}

static TinyTensor *
import (Plain *plain, TinyDlpackCopy copy)
{
  return g_object_ref_sink (tiny_tensor_new_from_dlpack (plain, FALSE, NULL, copy));
}

static void
check_refused (TinyTensor *tensor, int code, const char *text)
{
  const GError *error = tiny_tensor_get_error (tensor);
  g_assert_error (error, TINY_ERROR, code);
  g_assert_nonnull (strstr (error->message, text));
  g_object_unref (tensor);
}

/* The graph may hold on to memory until it is swept, which a realisation does. */
static void
sweep (const int *count, int wanted)
{
  for (guint i = 0; i < 10000 && *count < wanted; i++) {
    g_autoptr (TinyTensor) other = g_object_ref_sink (tiny_tensor_add_number (
        tiny_tensor_new_from_data (NULL, TINY_DTYPE_F32, NULL, 0, &(float){ (float) i }, 4),
        1));
    if (!tiny_tensor_realize (other, NULL))
      return; /* there is no device */
  }
}

static void
test_shared (void)
{
  g_autofree float *data = new_floats (6);
  Plain plain = describe (data, 2, (gint64[]){ 2, 3 }, NULL);
  n_deleted = 0;
  TinyTensor *tensor = import (&plain, TINY_DLPACK_COPY_NEVER);
  data[0] = 8;
  check_values (tensor, "[[8., 1., 2.],\n [3., 4., 5.]]");
  g_autoptr (GError) error = NULL;
  TinyTensor *sum = g_object_ref_sink (tiny_tensor_add_number (tensor, 1));
  g_assert_true (tiny_tensor_assign (tensor, sum, &error));
  g_assert_true (tiny_tensor_realize (tensor, &error));
  g_assert_cmpfloat (data[5], ==, 6);
  g_object_unref (sum);
  g_assert_cmpint (n_deleted, ==, 0);
  TinyTensor *view = g_object_ref_sink (tiny_tensor_reshape (tensor, (gint64[]){ 6 }, 1));
  g_object_unref (tensor);
  g_assert_cmpint (n_deleted, ==, 0);
  check_values (view, "[9., 2., 3., 4., 5., 6.]");
  g_object_unref (view);
  sweep (&n_deleted, 1);
  g_assert_cmpint (n_deleted, ==, 1);
}

static void
test_strides (void)
{
  g_autofree float *data = new_floats (24);
  const struct {
    gint64 shape[3], strides[3];
    guint64 byte_offset;
    gboolean is_shared;
    const char *wanted;
  } cases[] = {
    { { 1, 3, 2 }, { 1, 1, 3 }, 0, TRUE, "[[[0., 3.],\n  [1., 4.],\n  [2., 5.]]]" },
    { { 3, 1, 2 }, { 1, 3, 3 }, 0, TRUE, "[[[0., 3.]],\n\n [[1., 4.]],\n\n [[2., 5.]]]" },
    { { 2, 1, 3 }, { 1, 0, 2 }, 0, TRUE, "[[[0., 2., 4.]],\n\n [[1., 3., 5.]]]" },
    { { 1, 2, 2 }, { 99, 4, 2 }, 0, FALSE, "[[[0., 2.],\n  [4., 6.]]]" },
    { { 1, 2, 2 }, { 0, 0, 1 }, 0, FALSE, "[[[0., 1.],\n  [0., 1.]]]" },
    { { 1, 2, 2 }, { 0, -2, -1 }, 12, FALSE, "[[[3., 2.],\n  [1., 0.]]]" },
    { { 1, 1, 2 }, { 7, 7, 1 }, 4, FALSE, "[[[1., 2.]]]" }, /* not aligned */
    { { 1, 1, 2 }, { 7, 7, 1 }, 64, TRUE, "[[[16., 17.]]]" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gint64 shape[3], strides[3];
    memcpy (shape, cases[i].shape, sizeof shape);
    memcpy (strides, cases[i].strides, sizeof strides);
    Plain plain = describe (data, 3, shape, strides);
    plain.tensor.byte_offset = cases[i].byte_offset;
    n_deleted = 0;
    TinyTensor *tensor = import (&plain, TINY_DLPACK_COPY_IF_NEEDED);
    g_assert_cmpint (n_deleted, ==, !cases[i].is_shared);
    check_values (tensor, cases[i].wanted);
    g_object_unref (tensor);
    tensor = import (&plain, TINY_DLPACK_COPY_ALWAYS);
    check_values (tensor, cases[i].wanted);
    g_object_unref (tensor);
    if (!cases[i].is_shared)
      check_refused (import (&plain, TINY_DLPACK_COPY_NEVER), TINY_ERROR_UNSUPPORTED, "shared");
  }
}

static void
test_refused (void)
{
  g_autofree float *data = new_floats (4);
  gint64 sizes[17] = { 4 }, huge[2] = { 1 << 30, 1 << 30 }, negative[1] = { -1 };
  Plain good = describe (data, 1, sizes, NULL), bad;
  check_refused (import (NULL, TINY_DLPACK_COPY_IF_NEEDED), TINY_ERROR_INVALID, "no structure");
#define REFUSED(change, code, text)                                                            \
  bad = good;                                                                                  \
  bad.tensor.change;                                                                           \
  n_deleted = 0;                                                                               \
  check_refused (import (&bad, TINY_DLPACK_COPY_IF_NEEDED), TINY_ERROR_##code, text);          \
  g_assert_cmpint (n_deleted, ==, 1)
  REFUSED (device_type = 2, UNSUPPORTED, "device type 2");
  REFUSED (code = 5, UNSUPPORTED, "code 5");
  REFUSED (lanes = 4, UNSUPPORTED, "4 lanes");
  REFUSED (bits = 24, UNSUPPORTED, "24 bits");
  REFUSED (n_dims = -1, INVALID, "-1 axes");
  REFUSED (n_dims = 17, INVALID, "17 axes");
  REFUSED (shape = NULL, INVALID, "no sizes");
  REFUSED (shape = negative, INVALID, "negative");
  REFUSED (data = NULL, INVALID, "no memory");
  bad = describe (data, 2, huge, NULL);
  check_refused (import (&bad, TINY_DLPACK_COPY_IF_NEEDED), TINY_ERROR_INVALID, "2^48");
  Versioned versioned = { 2, 0, NULL, count_versioned, 0, good.tensor };
  n_deleted = 0;
  check_refused (g_object_ref_sink (tiny_tensor_new_from_dlpack (&versioned, TRUE, NULL,
                                                                 TINY_DLPACK_COPY_IF_NEEDED)),
                 TINY_ERROR_UNSUPPORTED, "version 2.0");
  g_assert_cmpint (n_deleted, ==, 1);
  check_refused (g_object_ref_sink (tiny_tensor_new_from_dlpack (&good, FALSE, "NO-SUCH", 0)),
                 TINY_ERROR_NO_DEVICE, "NO-SUCH");
  g_assert_cmpint (n_deleted, ==, 2);
}

static void
test_read_only (void)
{
  g_autofree float *data = new_floats (2);
  Versioned versioned
      = { 1, 1, NULL, count_versioned, 1, describe (data, 1, (gint64[]){ 2 }, NULL).tensor };
  n_deleted = 0;
  g_autoptr (TinyTensor) tensor = g_object_ref_sink (
      tiny_tensor_new_from_dlpack (&versioned, TRUE, NULL, TINY_DLPACK_COPY_IF_NEEDED));
  g_assert_cmpint (n_deleted, ==, 1);
  data[0] = 5;
  check_values (tensor, "[0., 1.]");
  check_refused (g_object_ref_sink (tiny_tensor_new_from_dlpack (&versioned, TRUE, NULL,
                                                                 TINY_DLPACK_COPY_NEVER)),
                 TINY_ERROR_UNSUPPORTED, "read-only");
}

static void
test_empty (void)
{
  Plain plain = describe (NULL, 2, (gint64[]){ 0, 3 }, NULL);
  n_deleted = 0;
  TinyTensor *tensor = import (&plain, TINY_DLPACK_COPY_NEVER);
  g_assert_cmpint (tiny_tensor_get_n_dims (tensor), ==, 2);
  g_assert_cmpint (n_deleted, ==, 1);
  g_autoptr (GError) error = NULL;
  Versioned *out = tiny_tensor_to_dlpack (tensor, TRUE, &error);
  g_assert_no_error (error);
  g_assert_cmpint (out->tensor.shape[1], ==, 3);
  tiny_dlpack_free (out, TRUE);
  tiny_dlpack_free (NULL, TRUE);
  g_object_unref (tensor);
}

static void
test_export (void)
{
  g_autoptr (GError) error = NULL;
  TinyTensor *tensor = g_object_ref_sink (
      tiny_tensor_add_number (tiny_tensor_arange (TINY_DTYPE_F32, 0, 4, 1), 1));
  Plain *plain = tiny_tensor_to_dlpack (tensor, FALSE, &error);
  Versioned *versioned = tiny_tensor_to_dlpack (tensor, TRUE, &error);
  g_assert_no_error (error);
  g_assert_true (plain->tensor.data == versioned->tensor.data);
  g_assert_cmpint (versioned->major, ==, 1);
  g_assert_cmpint (plain->tensor.bits, ==, 32);
  g_assert_cmpint (plain->tensor.code, ==, 2);
  g_assert_cmpint (plain->tensor.strides[0], ==, 1);
  float *data = plain->tensor.data;
  g_assert_cmpfloat (data[3], ==, 4);
  data[3] = 7;
  check_values (tensor, "[1., 2., 3., 7.]");
  /* What another tensor has too is copied: who writes there does not change that one. A view is where it is. */
  TinyTensor *other = g_object_ref_sink (tiny_tensor_contiguous (tensor));
  Plain *of_other = tiny_tensor_to_dlpack (other, FALSE, &error);
  g_assert_no_error (error);
  g_assert_true (of_other->tensor.data != plain->tensor.data);
  TinyTensor *view
      = g_object_ref_sink (tiny_tensor_index (tensor, "s", (gint64[]){ 1, 4, 2 }, 3, NULL, 0));
  Plain *of_view = tiny_tensor_to_dlpack (view, FALSE, &error);
  g_assert_no_error (error);
  g_assert_true (of_view->tensor.data == (gpointer) (data + 1));
  g_assert_cmpint (of_view->tensor.strides[0], ==, 2);
  g_object_unref (other);
  g_object_unref (view);
  tiny_dlpack_free (of_other, FALSE);
  g_object_unref (tensor);
  plain->deleter (plain);
  g_assert_cmpfloat (data[3], ==, 7);
  tiny_dlpack_free (versioned, TRUE);
  tiny_dlpack_free (of_view, FALSE);
}

static void
test_export_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) bad
      = g_object_ref_sink (tiny_tensor_zeros (TINY_DTYPE_F32, (gint64[]){ -1 }, 1));
  g_assert_null (tiny_tensor_to_dlpack (bad, TRUE, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_clear_error (&error);
  g_autoptr (TinyTensor) small
      = g_object_ref_sink (tiny_tensor_zeros (TINY_DTYPE_F8E5M2, (gint64[]){ 1 }, 1));
  g_assert_null (tiny_tensor_to_dlpack (small, FALSE, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED);
}

static int n_freed;

static void
free_floats (gpointer data)
{
  n_freed++;
  free (data);
}

/* @at bytes into memory of six floats. */
static TinyTensor *
blob_at (gsize at, const gint64 *shape, guint n)
{
  float *data = new_floats (16);
  gpointer memory = (guint8 *) data + at;
  memmove (memory, data, 6 * sizeof *data);
  return g_object_ref_sink (
      tiny_tensor_new_from_blob (NULL, TINY_DTYPE_F32, shape, n, memory, free_floats, data));
}

/* Memory is used where it may be, copied where it is not aligned, and freed once in any case. */
static void
test_blob (void)
{
  const gint64 shape[] = { 2, 3 };
  n_freed = 0;
  for (gsize at = 0; at <= 1; at++) {
    TinyTensor *tensor = blob_at (at, shape, 2);
    if (tiny_tensor_get_error (tensor) == NULL) {
      g_autoptr (TinyTensor) more = g_object_ref_sink (tiny_tensor_add_number (tensor, 1));
      check_values (tensor, "[[0., 1., 2.],\n [3., 4., 5.]]");
      g_object_unref (tensor);
      check_values (more, "[[1., 2., 3.],\n [4., 5., 6.]]");
    } else {
      g_object_unref (tensor); /* no device: freed as well */
    }
  }
  g_object_unref (blob_at (0, (gint64[]){ -1 }, 1));
  g_object_unref (blob_at (0, (gint64[]){ 3, 0 }, 2));
  sweep (&n_freed, 4);
  g_assert_cmpint (n_freed, ==, 4);
  g_autoptr (TinyTensor) none = g_object_ref_sink (
      tiny_tensor_new_from_blob (NULL, TINY_DTYPE_F32, shape, 2, NULL, NULL, NULL));
  g_assert_cmpstr (tiny_tensor_get_error (none)->message, ==, "from_blob: there is no memory");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  /* These two first: what the others describe on the stack may be let go of when the graph is swept. */
  g_test_add_func ("/tensor/dlpack/blob", test_blob);
  g_test_add_func ("/tensor/dlpack/shared", test_shared);
  g_test_add_func ("/tensor/dlpack/strides", test_strides);
  g_test_add_func ("/tensor/dlpack/refused", test_refused);
  g_test_add_func ("/tensor/dlpack/read-only", test_read_only);
  g_test_add_func ("/tensor/dlpack/empty", test_empty);
  g_test_add_func ("/tensor/dlpack/export", test_export);
  g_test_add_func ("/tensor/dlpack/export-refused", test_export_refused);
  return g_test_run ();
}
