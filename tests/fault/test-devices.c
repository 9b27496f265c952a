/* SPDX-License-Identifier: MIT
 *
 * test-devices.c: CPU, OpenCL and WebGPU in one program, where one of them refuses memory or a launch, or
 * is lost: that device says so, by name, and the others go on. cl-faults.c and webgpu-fault.c go wrong
 * when they are told, around the real things. */
#include <dlfcn.h>

#include "../device-there.h"
#include "tiny.h"

#define T(name) tiny_tensor_##name
enum { N = 1 << 19 }; /* f32: more than the 1 MiB up to which cl-faults.c gives memory */

typedef void (*SetFault) (const char *name);
static SetFault set_cl_fault, set_webgpu_fault;

static void
set_fault (const char *device, const char *fault)
{
  (g_str_equal (device, "CL") ? set_cl_fault : set_webgpu_fault) (fault);
}

static TinyTensor *
numbers (const char *device)
{
  return g_object_ref_sink (
      T (to) (T (contiguous) (T (arange) (TINY_DTYPE_F32, 0, N, 1)), device));
}

/* On the device of @x, in memory that no tensor before had the size for. */
static TinyTensor *
twice (TinyTensor *x)
{
  return T (cat) ((TinyTensor *[]){ x, x }, 2, 0);
}

/* The first N of them. */
static void
check_numbers (TinyTensor *tensor, float step)
{
  g_autoptr (GError) error = NULL;
  gsize n_bytes = T (get_n_bytes) (tensor);
  g_autofree float *found = g_malloc (n_bytes);
  T (copy_data) (tensor, found, n_bytes, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < N; i += 1023)
    g_assert_cmpfloat (found[i], ==, (float) i * step);
}

/* New tensors on @device, a kernel there and a copy back. */
static void
works (const char *device)
{
  g_autoptr (TinyTensor) x = numbers (device);
  g_autoptr (TinyTensor) home = g_object_ref_sink (T (to) (T (mul_number) (x, 3), "CPU"));
  check_numbers (home, 3);
}

/* Consumes @tensor: it cannot be had, for a reason that names the device. */
static void
fails (TinyTensor *tensor, int code, const char *device)
{
  g_autoptr (TinyTensor) owned = g_object_ref_sink (tensor);
  g_autoptr (GError) error = NULL;
  g_assert_false (T (realize) (owned, &error));
  g_test_message ("%s", error->message);
  g_assert_error (error, TINY_ERROR, code);
  g_assert_nonnull (strstr (error->message, device));
}

static const struct {
  const char *device, *other, *fault;
  int code; /* TinyError */
  gboolean stays;
} rows[] = {
  { "CL", "WEBGPU", "no-memory", TINY_ERROR_OUT_OF_MEMORY, FALSE },
  { "CL", "WEBGPU", "launch", TINY_ERROR_LAUNCH, FALSE },
  { "WEBGPU", "CL", "memory", TINY_ERROR_OUT_OF_MEMORY, FALSE },
  { "CL", "WEBGPU", "lost", TINY_ERROR_DEVICE_LOST, TRUE },
  { "WEBGPU", "CPU", "lost", TINY_ERROR_DEVICE_LOST, TRUE },
};

static void
test_fault (gconstpointer data)
{
  guint i = GPOINTER_TO_UINT (data);
  const char *device = rows[i].device, *other = rows[i].other;
  g_autofree char *reason = device_find_obstacle (device);
  if (reason != NULL) {
    g_test_skip (reason);
    return;
  }
  if (device_find_obstacle (other) != NULL)
    other = "CPU";
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyTensor) x = numbers (device), y = numbers (other), z = numbers ("CPU");
  check_numbers (x, 1);
  check_numbers (y, 1);
  set_fault (device, rows[i].fault);
  fails (twice (x), rows[i].code, device);
  works (other);
  works ("CPU");
  /* In one call: what the others compute is there, now or when it is asked for again. */
  g_autoptr (TinyTensor) there = g_object_ref_sink (T (mul_number) (twice (x), 2));
  g_autoptr (TinyTensor) here = g_object_ref_sink (T (mul_number) (y, 2));
  g_assert_false (T (realize_many) ((TinyTensor *[]){ here, there }, 2, &error));
  g_assert_error (error, TINY_ERROR, rows[i].code);
  check_numbers (here, 2);
  set_fault (device, "");
  if (!rows[i].stays) {
    check_numbers (there, 2);
    check_numbers (x, 1);
    works (device);
  } else {
    fails (twice (x), rows[i].code, device);
    fails (T (to) (x, other), rows[i].code, device);
    fails (T (to) (y, device), rows[i].code, device);
    g_assert_false (T (copy_data) (x, (float[1]){ 0 }, 4, NULL));
  }
  works (other);
  check_numbers (y, 1);
  check_numbers (z, 1);
}

static SetFault
find_fault (const char *variable, const char *name)
{
  void *library = dlopen (g_getenv (variable), RTLD_NOW | RTLD_LOCAL);
  SetFault found = NULL;
  g_assert_nonnull (library);
  *(void **) &found = dlsym (library, name);
  g_assert_nonnull (found);
  return found;
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  set_cl_fault = find_fault ("TINY_OPENCL_LIBRARY", "cl_fault");
  set_webgpu_fault = find_fault ("TINY_WEBGPU_LIBRARY", "webgpu_fault");
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *path
        = g_strdup_printf ("/fault/devices/%s-%s", rows[i].device, rows[i].fault);
    g_test_add_data_func (path, GUINT_TO_POINTER (i), test_fault);
  }
  return g_test_run ();
}
