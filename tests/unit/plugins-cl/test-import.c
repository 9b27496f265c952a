/* SPDX-License-Identifier: MIT
 *
 * test-import.c: memory that the program made itself with OpenCL: it becomes a tensor without a copy, and
 * what does not fit is refused. */
#include <dlfcn.h>

#include "../../device-there.h"
#include "tiny.h"

#include "../../../plugins/cl/cl-api.h"

#define T(name) tiny_tensor_##name
enum { N = 1000 };

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
  g_test_add_func ("/import/memory", test_import);
  return g_test_run ();
}
