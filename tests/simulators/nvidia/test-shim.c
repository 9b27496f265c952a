/* SPDX-License-Identifier: MIT
 *
 * test-shim.c: a cubin of the real compiler, made through the shim, runs on the simulated driver; another one does not.
 *
 * TINY_NVRTC_LIBRARY names the shim, SIMULATED_GPU_NVRTC the compiler; without that the tests are skipped. */
#include "cuda-calls.h"
#include <dlfcn.h>
#include <string.h>

static const char source[] = "extern \"C\" __global__ void k (float *o, float x) { "
                             "o[threadIdx.x] = x * (float) threadIdx.x; }";

static struct {
  int (*create) (
      void **, const char *, const char *, int, const char *const *, const char *const *);
  int (*compile) (void *, int, const char *const *);
  int (*size) (void *, size_t *);
  int (*cubin) (void *, char *);
  int (*destroy) (void **);
} nvrtc;

static gboolean
open_shim (void)
{
  static const char *const names[]
      = { "nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetCUBINSize", "nvrtcGetCUBIN",
          "nvrtcDestroyProgram" };
  const char *compiler = g_getenv ("SIMULATED_GPU_NVRTC"),
             *shim = g_getenv ("TINY_NVRTC_LIBRARY");
  if (compiler == NULL || !g_file_test (compiler, G_FILE_TEST_EXISTS)) {
    g_test_skip ("needs NVIDIA's compiler, which ./setup test fetches");
    return FALSE;
  }
  void *library = dlopen (shim, RTLD_NOW);
  g_assert_nonnull (library);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    g_assert_nonnull (((void **) &nvrtc)[i] = dlsym (library, names[i]));
  return TRUE;
}

static char *
compile (const char *arch, gsize *out_n)
{
  g_autofree char *option = g_strconcat ("--gpu-architecture=", arch, NULL);
  const char *const options[] = { option, "--minimal" };
  void *program;
  g_assert_cmpint (nvrtc.create (&program, source, "k.cu", 0, NULL, NULL), ==, 0);
  g_assert_cmpint (nvrtc.compile (program, G_N_ELEMENTS (options), options), ==, 0);
  g_assert_cmpint (nvrtc.size (program, out_n), ==, 0);
  char *cubin = g_malloc (*out_n);
  g_assert_cmpint (nvrtc.cubin (program, cubin), ==, 0);
  nvrtc.destroy (&program);
  return cubin;
}

static void
make_context (void)
{
  CUcontext context;
  g_assert_cmpint (cuInit (0), ==, 0);
  g_assert_cmpint (cuDevicePrimaryCtxRetain (&context, 0), ==, 0);
  g_assert_cmpint (cuCtxSetCurrent (context), ==, 0);
}

static void
test_run (void)
{
  CUmodule module;
  CUfunction kernel;
  CUdeviceptr array;
  float out[32], x = 1.5f;
  gsize n;
  if (!open_shim ())
    return;
  make_context ();
  g_autofree char *cubin = compile ("sm_90a", &n);
  g_assert_cmpint (cuModuleLoadData (&module, cubin), ==, 0);
  g_assert_cmpint (cuModuleGetFunction (&kernel, module, "k"), ==, 0);
  g_assert_cmpint (cuMemAlloc_v2 (&array, sizeof out), ==, 0);
  void *params[] = { &array, &x };
  g_assert_cmpint (cuLaunchKernel (kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL), ==, 0);
  g_assert_cmpint (cuMemcpyDtoH_v2 (out, array, sizeof out), ==, 0);
  for (guint i = 0; i < 32; i++)
    g_assert_cmpfloat (out[i], ==, x * (float) i);
  g_assert_cmpint (cuMemFree_v2 (array), ==, 0);
  g_assert_cmpint (cuModuleUnload (module), ==, 0);
}

/* The section of the kernel's machine code, at the table that the head names. */
static void
spoil_code (char *cubin)
{
  guint64 table, offset;
  guint16 n;
  memcpy (&table, cubin + 40, sizeof table);
  memcpy (&n, cubin + 60, sizeof n);
  for (guint i = 0; i < n; i++) {
    guint64 flags;
    memcpy (&flags, cubin + table + i * 64 + 8, sizeof flags);
    memcpy (&offset, cubin + table + i * 64 + 24, sizeof offset);
    if (flags & 4) /* of instructions */
      cubin[offset] ^= 1;
  }
}

/* For other hardware, with other code, and cut off anywhere in its tables. */
static void
test_refusals (void)
{
  CUmodule module;
  gsize n;
  if (!open_shim ())
    return;
  make_context ();
  g_autofree char *other = compile ("sm_80", &n);
  g_assert_cmpint (cuModuleLoadData (&module, other), ==, CUDA_ERROR_NO_BINARY_FOR_GPU);
  g_autofree char *newer = compile ("sm_100", &n);
  g_assert_cmpint (cuModuleLoadData (&module, newer), ==, CUDA_ERROR_NO_BINARY_FOR_GPU);
  g_autofree char *cubin = compile ("sm_90a", &n);
  spoil_code (cubin);
  g_assert_cmpint (cuModuleLoadData (&module, cubin), ==, CUDA_ERROR_NO_BINARY_FOR_GPU);
  g_autofree char *whole = ptx_store_digest (cubin, n);
  g_assert_nonnull (whole);
  for (gsize cut = 64; cut < n; cut += 61) {
    g_autofree char *part = g_memdup2 (cubin, cut), *digest = ptx_store_digest (part, cut);
    g_assert_true (digest == NULL || strcmp (digest, whole) == 0);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/simulators/nvidia/shim/run", test_run);
  g_test_add_func ("/simulators/nvidia/shim/refusals", test_refusals);
  return g_test_run ();
}
