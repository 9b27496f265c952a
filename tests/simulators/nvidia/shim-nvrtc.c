/* SPDX-License-Identifier: MIT
 *
 * shim-nvrtc.c: an NVRTC that calls the real one, named by SIMULATED_GPU_NVRTC, and keeps the PTX of each cubin.
 *
 * Programs, options and results are the real library's. When a cubin is fetched, the PTX of the same program is written to
 * the store, from which the simulated driver runs it. */
#include "cuda-front.h"
#include <dlfcn.h>
#include <string.h>

#define SHIM_EXPORT __attribute__ ((visibility ("default")))
enum { NVRTC_ERROR_INTERNAL_ERROR = 11 };

static void *
open_beside (const char *path, const char *prefix)
{
  g_autofree char *folder = g_path_get_dirname (path);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const char *name;
  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    if (g_str_has_prefix (name, prefix)) {
      g_autofree char *full = g_build_filename (folder, name, NULL);
      return dlopen (full, RTLD_NOW | RTLD_GLOBAL);
    }
  return NULL;
}

/* The real library, opened once. */
static void *
real_library (void)
{
  static gsize once;
  static void *library;
  if (g_once_init_enter (&once)) {
    const char *path = g_getenv ("SIMULATED_GPU_NVRTC");
    if (path != NULL) {
      open_beside (path, "libnvrtc-builtins.so");
      library = dlopen (path, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == NULL)
      g_printerr ("simulated NVRTC: SIMULATED_GPU_NVRTC names no library: %s\n",
                  path != NULL ? dlerror () : "it is not set");
    g_once_init_leave (&once, 1);
  }
  return library;
}

static void *
real (const char *name)
{
  void *library = real_library ();
  return library != NULL ? dlsym (library, name) : NULL;
}

/* name, parameters, arguments */
#define FORWARDED(F)                                                                           \
  F (nvrtcVersion, (int *major, int *minor), (major, minor))                                   \
  F (nvrtcGetNumSupportedArchs, (int *n), (n))                                                 \
  F (nvrtcGetSupportedArchs, (int *archs), (archs))                                            \
  F (nvrtcCreateProgram,                                                                       \
     (void **program, const char *source, const char *name, int n, const char *const *headers, \
      const char *const *includes),                                                            \
     (program, source, name, n, headers, includes))                                            \
  F (nvrtcDestroyProgram, (void **program), (program))                                         \
  F (nvrtcCompileProgram, (void *program, int n, const char *const *options),                  \
     (program, n, options))                                                                    \
  F (nvrtcGetPTXSize, (void *program, size_t *n), (program, n))                                \
  F (nvrtcGetPTX, (void *program, char *text), (program, text))                                \
  F (nvrtcGetCUBINSize, (void *program, size_t *n), (program, n))                              \
  F (nvrtcGetProgramLogSize, (void *program, size_t *n), (program, n))                         \
  F (nvrtcGetProgramLog, (void *program, char *text), (program, text))                         \
  F (nvrtcAddNameExpression, (void *program, const char *name), (program, name))               \
  F (nvrtcGetLoweredName, (void *program, const char *name, const char **out),                 \
     (program, name, out))
#define FORWARD(name, parameters, arguments)                                                   \
  SHIM_EXPORT int name parameters;                                                             \
  SHIM_EXPORT int name parameters                                                              \
  {                                                                                            \
    int (*function) parameters = (int (*) parameters) real (#name);                            \
    return function != NULL ? function arguments : NVRTC_ERROR_INTERNAL_ERROR;                 \
  }
/* clang-format off */
FORWARDED (FORWARD)
/* clang-format on */

SHIM_EXPORT const char *nvrtcGetErrorString (int status);
SHIM_EXPORT const char *
nvrtcGetErrorString (int status)
{
  const char *(*function) (int) = (const char *(*) (int) ) real ("nvrtcGetErrorString");
  return function != NULL ? function (status) : "the simulated NVRTC has no real one";
}

static gboolean
store (void *program, const char *cubin, gsize n_cubin)
{
  size_t n;
  g_autofree char *digest = ptx_store_digest (cubin, n_cubin);
  if (digest == NULL || nvrtcGetPTXSize (program, &n) != 0)
    return FALSE;
  g_autofree char *text = g_malloc0 (n + 1), *path = ptx_store_path (digest);
  g_autofree char *folder = g_path_get_dirname (path);
  return nvrtcGetPTX (program, text) == 0 && g_mkdir_with_parents (folder, 0777) == 0
         && g_file_set_contents (path, text, -1, NULL);
}

SHIM_EXPORT int nvrtcGetCUBIN (void *program, char *cubin);
SHIM_EXPORT int
nvrtcGetCUBIN (void *program, char *cubin)
{
  size_t n;
  int (*function) (void *, char *) = (int (*) (void *, char *)) real ("nvrtcGetCUBIN");
  int status = function != NULL ? function (program, cubin) : NVRTC_ERROR_INTERNAL_ERROR;
  if (status == 0 && nvrtcGetCUBINSize (program, &n) == 0 && !store (program, cubin, n))
    g_printerr ("simulated NVRTC: the PTX of a program could not be kept\n");
  return status;
}
