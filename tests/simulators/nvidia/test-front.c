/* SPDX-License-Identifier: MIT
 *
 * test-front.c: the simulated driver runs kernels over streams, is as strict as it says, and keeps its faults. */
#include "cuda-front.h"
#include "cuda-calls.h"
#include "machine.h"
#include <string.h>

static const char text[]
    = MACHINE_HEAD ".visible .entry twice (.param .u64 p, .param .u32 n)\n{\n"
                   ".reg .b32 %r<5>; .reg .b64 %d<4>; .reg .pred %q;\n"
                   "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; "
                   "mad.lo.s32 %r0, %r0, %r1, %r2;\n"
                   "ld.param.u32 %r3, [n]; setp.ge.u32 %q, %r0, %r3; @%q bra END;\n"
                   "ld.param.u64 %d0, [p]; mul.wide.u32 %d1, %r0, 4; add.s64 %d0, %d0, %d1;\n"
                   "ld.global.u32 %r4, [%d0]; add.u32 %r4, %r4, %r4; st.global.u32 [%d0], "
                   "%r4;\nEND: ret;\n}\n";

enum { N = 1000, N_BYTES = N * 4 };

typedef struct {
  CUcontext context;
  CUstream stream;
  CUmodule module;
  CUfunction twice;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer data)
{
  CUdevice device;
  g_assert_cmpint (cuInit (0), ==, 0);
  g_assert_cmpint (cuDeviceGet (&device, 0), ==, 0);
  g_assert_cmpint (cuDevicePrimaryCtxRetain (&fixture->context, device), ==, 0);
  g_assert_cmpint (cuCtxPushCurrent_v2 (fixture->context), ==, 0);
  g_assert_cmpint (cuStreamCreate (&fixture->stream, 1), ==, 0);
  g_assert_cmpint (cuModuleLoadData (&fixture->module, text), ==, 0);
  g_assert_cmpint (cuModuleGetFunction (&fixture->twice, fixture->module, "twice"), ==, 0);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  g_assert_cmpint (cuModuleUnload (fixture->module), ==, 0);
  g_assert_cmpint (cuStreamDestroy_v2 (fixture->stream), ==, 0);
  g_assert_cmpint (cuCtxPopCurrent_v2 (NULL), ==, 0);
  g_assert_cmpint (cuDevicePrimaryCtxRelease_v2 (0), ==, 0);
}

static CUresult
launch (
    const Fixture *fixture, CUdeviceptr array, guint n_blocks, guint n_threads, gsize n_bytes)
{
  struct {
    CUdeviceptr array;
    guint32 n;
  } arguments = { array, N };
  void *extra[] = { (void *) 1, &arguments, (void *) 2, &n_bytes, NULL };
  return cuLaunchKernel (fixture->twice, n_blocks, 1, 1, n_threads, 1, 1, 0, fixture->stream,
                         NULL, extra);
}

/* In, doubled, out, in one stream, waited for by an event. */
static void
test_run (Fixture *fixture, gconstpointer data)
{
  CUdeviceptr array;
  CUevent event;
  guint32 *in, *out;
  g_assert_cmpint (cuMemAlloc_v2 (&array, N_BYTES), ==, 0);
  g_assert_cmpuint (array % 256, ==, 0);
  g_assert_cmpint (cuMemHostAlloc ((void **) &in, N_BYTES, 1), ==, 0);
  g_assert_cmpint (cuMemHostAlloc ((void **) &out, N_BYTES, 1), ==, 0);
  for (guint i = 0; i < N; i++)
    in[i] = i;
  g_assert_cmpint (cuEventCreate (&event, 2), ==, 0);
  g_assert_cmpint (cuMemcpyHtoDAsync_v2 (array, in, N_BYTES, fixture->stream), ==, 0);
  g_assert_cmpint (launch (fixture, array, 4, 256, 12), ==, 0);
  g_assert_cmpint (cuMemcpyDtoHAsync_v2 (out, array, N_BYTES, fixture->stream), ==, 0);
  g_assert_cmpint (cuEventRecord (event, fixture->stream), ==, 0);
  g_assert_cmpint (cuEventSynchronize (event), ==, 0);
  g_assert_cmpint (cuEventQuery (event), ==, 0);
  for (guint i = 0; i < N; i++)
    g_assert_cmpuint (out[i], ==, 2 * i);
  g_assert_cmpint (cuEventDestroy_v2 (event), ==, 0);
  g_assert_cmpint (cuMemFreeHost (in), ==, 0);
  g_assert_cmpint (cuMemFreeHost (out), ==, 0);
  g_assert_cmpint (cuMemFree_v2 (array), ==, 0);
}

/* A stream that waits for no event of another overtakes it, some time. */
static void
test_missing_wait (Fixture *fixture, gconstpointer data)
{
  gboolean is_ordered = GPOINTER_TO_INT (data);
  CUstream other;
  CUevent event;
  CUdeviceptr array;
  guint n_wrong = 0;
  g_assert_cmpint (cuStreamCreate (&other, 1), ==, 0);
  g_assert_cmpint (cuEventCreate (&event, 2), ==, 0);
  g_assert_cmpint (cuMemAlloc_v2 (&array, N_BYTES), ==, 0);
  for (guint round = 0; round < 50; round++) {
    guint32 value = 0;
    g_assert_cmpint (cuMemsetD32Async (array, round + 1, N, other), ==, 0);
    g_assert_cmpint (cuEventRecord (event, other), ==, 0);
    if (is_ordered)
      g_assert_cmpint (cuStreamWaitEvent (fixture->stream, event, 0), ==, 0);
    g_assert_cmpint (launch (fixture, array, 4, 256, 16), ==, 0);
    g_assert_cmpint (cuCtxSynchronize (), ==, 0);
    g_assert_cmpint (cuMemcpyDtoH_v2 (&value, array, sizeof value), ==, 0);
    n_wrong += value != 2 * (round + 1);
  }
  g_assert_true ((n_wrong == 0) == is_ordered);
  g_assert_cmpint (cuMemFree_v2 (array), ==, 0);
  g_assert_cmpint (cuEventDestroy_v2 (event), ==, 0);
  g_assert_cmpint (cuStreamDestroy_v2 (other), ==, 0);
}

static void
test_refusals (Fixture *fixture, gconstpointer data)
{
  CUdeviceptr array, none;
  const char *name;
  void *symbol;
  int value, status;
  CUmodule module;
  g_assert_cmpint (cuMemAlloc_v2 (&array, N_BYTES), ==, 0);
  g_assert_cmpint (launch (fixture, array, 0, 256, 12), ==, CUDA_ERROR_INVALID_VALUE);
  g_assert_cmpint (launch (fixture, array, 1, 1025, 12), ==, CUDA_ERROR_INVALID_VALUE);
  g_assert_cmpint (launch (fixture, array, 1, 32, 8), ==, CUDA_ERROR_INVALID_VALUE);
  g_assert_cmpint (cuMemcpyHtoDAsync_v2 (array + 8, text, N_BYTES, fixture->stream), ==,
                   CUDA_ERROR_INVALID_VALUE);
  g_assert_cmpint (cuMemAlloc_v2 (&none, 0), ==, CUDA_ERROR_INVALID_VALUE);
  g_assert_cmpint (cuMemAlloc_v2 (&none, (gsize) 1 << 50), ==, CUDA_ERROR_OUT_OF_MEMORY);
  g_assert_cmpint (cuMemFree_v2 (array + 4), ==, CUDA_ERROR_INVALID_VALUE);
  g_assert_cmpint (cuStreamSynchronize ((CUstream) &value), ==, CUDA_ERROR_INVALID_HANDLE);
  g_assert_cmpint (cuModuleLoadData (&module, "no PTX"), ==, CUDA_ERROR_INVALID_PTX);
  g_assert_cmpint (
      cuModuleLoadData (
          &module,
          "\177ELF\2\1 and then nothing that a cubin has, for as long as its head is. "),
      ==, CUDA_ERROR_INVALID_IMAGE);
  g_assert_cmpint (cuPointerGetAttribute (&value, 9, array + 5), ==, 0);
  g_assert_cmpint (value, ==, 0);
  g_assert_cmpint (cuPointerGetAttribute (&value, 9, (CUdeviceptr) (guintptr) text), ==,
                   CUDA_ERROR_INVALID_VALUE);
  g_assert_cmpint (cuDeviceGetAttribute (&value, 75, 0), ==, 0);
  g_assert_cmpint (value, ==, 9);
  g_assert_cmpint (cuGetErrorName (700, &name), ==, 0);
  g_assert_cmpstr (name, ==, "CUDA_ERROR_ILLEGAL_ADDRESS");
  g_assert_cmpint (cuGetProcAddress_v2 ("cuNothing", &symbol, 12000, 0, &status), ==,
                   CUDA_ERROR_NOT_FOUND);
  g_assert_cmpint (cuMemFree_v2 (array), ==, 0);
  g_assert_cmpint (cuCtxPopCurrent_v2 (NULL), ==, 0);
  g_assert_cmpint (cuMemAlloc_v2 (&none, 4), ==, CUDA_ERROR_INVALID_CONTEXT);
  g_assert_cmpint (cuCtxPushCurrent_v2 (fixture->context), ==, 0);
}

static void
test_fault_asked (Fixture *fixture, gconstpointer data)
{
  CUdeviceptr array;
  g_setenv ("SIMULATED_GPU_FAULTS", "cuMemAlloc_v2:2=2,cuCtxGetDevice=999", TRUE);
  g_assert_cmpint (cuMemAlloc_v2 (&array, 4), ==, 0);
  g_assert_cmpint (cuMemFree_v2 (array), ==, 0);
  g_assert_cmpint (cuMemAlloc_v2 (&array, 4), ==, 2);
  g_assert_cmpint (cuCtxGetDevice (NULL), ==, 999);
  g_unsetenv ("SIMULATED_GPU_FAULTS");
}

/* In a process of its own: nothing works after a fault. */
static void
test_sticky (Fixture *fixture, gconstpointer data)
{
  CUdeviceptr array;
  if (!g_test_subprocess ()) {
    g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed ();
    g_test_trap_assert_stderr ("*700: kernel twice, line *, block 0 0 0, thread *: reads 4 "
                               "bytes at 0x*no memory is there*");
    return;
  }
  g_assert_cmpint (launch (fixture, 0x1000, 1, 32, 12), ==, 0);
  g_assert_cmpint (cuStreamSynchronize (fixture->stream), ==, CUDA_ERROR_ILLEGAL_ADDRESS);
  g_assert_cmpint (cuMemAlloc_v2 (&array, 4), ==, CUDA_ERROR_ILLEGAL_ADDRESS);
  g_assert_cmpint (cuCtxSynchronize (), ==, CUDA_ERROR_ILLEGAL_ADDRESS);
  exit (0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, data, function)                                                              \
  g_test_add ("/simulators/nvidia/front/" name, Fixture, data, set_up, function, tear_down)
  ADD ("run", NULL, test_run);
  ADD ("wait", GINT_TO_POINTER (TRUE), test_missing_wait);
  ADD ("missing-wait", GINT_TO_POINTER (FALSE), test_missing_wait);
  ADD ("refusals", NULL, test_refusals);
  ADD ("fault-asked", NULL, test_fault_asked);
  ADD ("sticky", NULL, test_sticky);
  return g_test_run ();
}
