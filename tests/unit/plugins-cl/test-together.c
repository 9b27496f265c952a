/* SPDX-License-Identifier: MIT
 *
 * test-together.c: tensors of OpenCL and of the CPU backend in one program: copies both ways, errors where
 * they are mixed without one, a training step with data on one and the model on the other, and memory that
 * the program made itself. */
#include <dlfcn.h>

#include "../../device-there.h"
#include "tiny.h"

#include "../../../plugins/cl/cl-api.h"

#define T(name) tiny_tensor_##name
enum { N = 1000 };

static TinyTensor *
numbers (const char *device, guint n, float step)
{
  g_autofree float *values = g_new (float, n);
  for (guint i = 0; i < n; i++)
    values[i] = (float) i * step;
  return g_object_ref_sink (T (new_from_data) (device, TINY_DTYPE_F32, (gint64[]){ n }, 1,
                                               values, n * sizeof (float)));
}

static void
check_numbers (TinyTensor *tensor, guint n, float step)
{
  g_autoptr (GError) error = NULL;
  g_autofree float *found = g_new (float, n);
  T (copy_data) (tensor, found, n * sizeof (float), &error);
  g_assert_no_error (error);
  for (guint i = 0; i < n; i++)
    g_assert_cmpfloat (found[i], ==, (float) i * step);
}

static void
test_copies (void)
{
  g_autoptr (TinyTensor) here = numbers ("CPU", N, 1), there = numbers ("CL", N, 2);
  g_autoptr (TinyTensor) moved = g_object_ref_sink (T (to) (here, "CL"));
  g_autoptr (TinyTensor) back = g_object_ref_sink (T (to) (there, "CPU"));
  g_autoptr (TinyTensor) sum_there = g_object_ref_sink (T (add) (moved, there));
  g_autoptr (TinyTensor) sum_here = g_object_ref_sink (T (add) (here, back));
  check_numbers (sum_there, N, 3);
  check_numbers (sum_here, N, 3);
  g_assert_cmpstr (T (get_device) (sum_there), ==, "CL");
  g_assert_cmpstr (T (get_device) (sum_here), ==, "CPU");
  /* There and back in one expression, and a part that begins inside its buffer. */
  g_autoptr (TinyTensor) round = g_object_ref_sink (
      T (to) (T (mul_number) (T (to) (T (add) (here, here), "CL"), 2), "CPU"));
  check_numbers (round, N, 4);
}

static void
test_mixed (void)
{
  g_autoptr (TinyTensor) here = numbers ("CPU", N, 1), there = numbers ("CL", N, 2);
  g_autoptr (TinyTensor) sum = g_object_ref_sink (T (add) (here, there));
  const GError *error = T (get_error) (sum);
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "CPU"));
  g_assert_nonnull (strstr (error->message, "CL"));
  check_numbers (here, N, 1);
  check_numbers (there, N, 2);
}

/* One weight per input, y = x·w: a step of descent where data stay on the CPU and the model on CL. */
static float
train (const char *data_device, const char *model_device)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = numbers (data_device, 64, 0.01f);
  g_autoptr (TinyTensor) w = numbers (model_device, 64, 0.001f);
  float value = 0;
  for (guint step = 0; step < 4; step++) {
    g_autoptr (TinyTensor) loss = g_object_ref_sink (T (square) (T (sub) (
        T (sum) (T (mul) (T (to) (x, model_device), w), NULL, 0, FALSE), T (scalar) (1))));
    TinyTensor *gradient;
    g_assert_true (tiny_gradient (loss, &w, 1, &gradient, &error));
    g_assert_no_error (error);
    T (copy_data) (loss, &value, sizeof value, &error);
    g_assert_no_error (error);
    g_assert_true (T (assign) (w, T (sub) (w, T (mul_number) (gradient, 0.005)), &error));
    g_assert_cmpstr (T (get_device) (w), ==, model_device);
    g_object_unref (gradient);
  }
  return value;
}

static void
test_training (void)
{
  float alone = train ("CPU", "CPU"), apart = train ("CPU", "CL"),
        swapped = train ("CL", "CPU");
  g_assert_cmpfloat (alone, <, 0.5);
  g_assert_cmpfloat_with_epsilon (alone, apart, 1e-5);
  g_assert_cmpfloat_with_epsilon (alone, swapped, 1e-5);
}

/* ---- the same on both ---- */
static TinyTensor *
f_idiv (TinyTensor *x, TinyTensor *y)
{
  return T (idiv) (x, y);
}
static TinyTensor *
f_mod (TinyTensor *x, TinyTensor *y)
{
  return T (mod) (x, y);
}
static TinyTensor *
f_wrap (TinyTensor *x, TinyTensor *y)
{
  return T (sub) (T (mul) (x, y), T (neg) (T (add) (x, x)));
}
static TinyTensor *
f_choose (TinyTensor *x, TinyTensor *y)
{
  return T (where) (T (lt) (x, y), T (maximum) (x, y), x);
}
static TinyTensor *
f_bool (TinyTensor *x, TinyTensor *y)
{
  return T (ne) (T (cast) (x, TINY_DTYPE_BOOL), T (lt) (x, y));
}
static TinyTensor *
f_float (TinyTensor *x, TinyTensor *y)
{
  return T (cast) (T (add) (T (cast) (x, TINY_DTYPE_F32), T (cast) (y, TINY_DTYPE_F32)),
                   TINY_DTYPE_F16);
}

/* Integers of every size, 0, -1 and the extremes among them, by vectors and one by one: no bit differs. */
static void
test_integers (void)
{
  static const struct {
    const char *name;
    TinyTensor *(*function) (TinyTensor *, TinyTensor *);
  } rows[] = { { "idiv", f_idiv },     { "mod", f_mod },   { "wrap", f_wrap },
               { "choose", f_choose }, { "bool", f_bool }, { "float", f_float } };
  for (TinyDType dtype = TINY_DTYPE_I8; dtype <= TINY_DTYPE_U64; dtype++) {
    guint8 bytes[2][512];
    for (guint i = 0; i < sizeof bytes[0]; i++) {
      guint8 edge[] = { 0, 0xff, i % 8 == 7 ? 0x80 : 0 };
      for (guint k = 0; k < 2; k++)
        bytes[k][i] = i % 64 < 24 ? edge[(i / 8 + k) % 3] : (guint8) g_test_rand_int ();
      bytes[1][i] |= 1; /* what a quotient by 0 is, targets choose */
    }
    for (guint r = 0; r < G_N_ELEMENTS (rows); r++)
      for (gint64 n = 64; n >= 37; n -= 27) {
        GBytes *found[2];
        for (guint d = 0; d < 2; d++) {
          g_autoptr (GError) error = NULL;
          gsize n_bytes = (gsize) n * tiny_dtype_get_n_bytes (dtype);
          TinyTensor *x[2];
          for (guint k = 0; k < 2; k++)
            x[k] = g_object_ref_sink (
                T (new_from_data) (d ? "CPU" : "CL", dtype, &n, 1, bytes[k], n_bytes));
          g_autoptr (TinyTensor) y = g_object_ref_sink (rows[r].function (x[0], x[1]));
          found[d] = T (get_data) (y, &error);
          g_assert_no_error (error);
          g_object_unref (x[0]);
          g_object_unref (x[1]);
        }
        if (!g_bytes_equal (found[0], found[1]))
          g_error ("%s of %s differs", rows[r].name, tiny_dtype_to_string (dtype));
        g_bytes_unref (found[0]);
        g_bytes_unref (found[1]);
      }
  }
}

/* ---- memory of the program's own ---- */
static ClApi cl;

static gboolean
open_loader (void)
{
  void *handle = dlopen ("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
#define LOAD(needed, type, name, parameters, arguments)                                        \
  *(void **) &cl.name = handle != NULL ? dlsym (handle, "cl" #name) : NULL;
  CL_FUNCTIONS (LOAD)
#undef LOAD
  return cl.CreateBuffer != NULL;
}

static void
test_import (void)
{
  g_autoptr (GError) error = NULL;
  float values[N];
  for (guint i = 0; i < N; i++)
    values[i] = (float) i;
  g_assert_true (open_loader ());
  cl_context context = T (get_import_context) ("CL", &error);
  g_assert_no_error (error);
  cl_int code;
  cl_mem memory = cl.CreateBuffer (context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                   sizeof values, values, &code);
  g_assert_cmpint (code, ==, CL_SUCCESS);
  {
    g_autoptr (TinyTensor) x
        = g_object_ref_sink (T (new_import) ("CL", TINY_DTYPE_F32, (gint64[]){ N }, 1, memory));
    cl.ReleaseMemObject (memory); /* the tensor keeps it */
    check_numbers (x, N, 1);
    g_autoptr (TinyTensor) twice = g_object_ref_sink (T (mul_number) (x, 2));
    check_numbers (twice, N, 2);
    /* Nothing was copied: what is assigned lands in the memory that was given. */
    g_assert_true (T (assign) (x, T (mul_number) (x, 3), &error));
    g_assert_no_error (error);
    check_numbers (x, N, 3);
    g_assert_cmpfloat (values[5], ==, 15);
  }
  /* What does not fit, is of another context, or of a device that imports nothing. */
  memory = cl.CreateBuffer (context, CL_MEM_READ_WRITE, 16, NULL, &code);
  g_autoptr (TinyTensor) large
      = g_object_ref_sink (T (new_import) ("CL", TINY_DTYPE_F32, (gint64[]){ N }, 1, memory));
  g_assert_error (T (get_error) (large), TINY_ERROR, TINY_ERROR_INVALID);
  g_assert_nonnull (strstr (T (get_error) (large)->message, "4000 bytes are needed"));
  g_autoptr (TinyTensor) elsewhere
      = g_object_ref_sink (T (new_import) ("CPU", TINY_DTYPE_F32, (gint64[]){ 4 }, 1, memory));
  g_assert_error (T (get_error) (elsewhere), TINY_ERROR, TINY_ERROR_UNSUPPORTED);
  g_assert_null (T (get_import_context) ("CPU", &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED);
  cl.ReleaseMemObject (memory);
  cl_platform_id platform;
  cl_device_id device;
  g_assert_cmpint (cl.GetPlatformIDs (1, &platform, NULL), ==, CL_SUCCESS);
  g_assert_cmpint (cl.GetDeviceIDs (platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), ==,
                   CL_SUCCESS);
  cl_context other = cl.CreateContext (NULL, 1, &device, NULL, NULL, &code);
  memory = cl.CreateBuffer (other, CL_MEM_READ_WRITE, 16, NULL, &code);
  g_autoptr (TinyTensor) foreign
      = g_object_ref_sink (T (new_import) ("CL", TINY_DTYPE_F32, (gint64[]){ 4 }, 1, memory));
  g_assert_error (T (get_error) (foreign), TINY_ERROR, TINY_ERROR_INVALID);
  g_assert_nonnull (strstr (T (get_error) (foreign)->message, "CL_INVALID_CONTEXT"));
  cl.ReleaseMemObject (memory);
}

int
main (int argc, char *argv[])
{
  if (!device_is_there ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/together/copies", test_copies);
  g_test_add_func ("/together/mixed", test_mixed);
  g_test_add_func ("/together/training", test_training);
  g_test_add_func ("/together/integers", test_integers);
  g_test_add_func ("/together/import", test_import);
  return g_test_run ();
}
