/* SPDX-License-Identifier: MIT
 *
 * cuda-entry.c: cuGetProcAddress (): the newest form of a function that a version of the API has. */
#include "cuda-calls.h"
#include <dlfcn.h>
#include <string.h>

enum { SYMBOL_NOT_FOUND = 1, VERSION_NOT_SUFFICIENT = 2 };

/* Names with a suffix are given by the plain one, as the real function does. */
static void *
find (const char *name)
{
  Dl_info info;
  if (dladdr ((void *) find, &info) == 0)
    return NULL;
  void *library = dlopen (info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (library == NULL)
    return NULL;
  g_autofree char *newest = g_strconcat (name, "_v2", NULL);
  void *symbol = dlsym (library, newest);
  symbol = symbol != NULL ? symbol : dlsym (library, name);
  dlclose (library);
  return symbol;
}

static CUresult
find_symbol (const char *name, void **out, int version, int *out_status)
{
  if (name == NULL || out == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  *out = g_str_has_suffix (name, "_v2") ? NULL : find (name);
  int status = *out == NULL ? SYMBOL_NOT_FOUND : version < 2000 ? VERSION_NOT_SUFFICIENT : 0;
  if (out_status != NULL)
    *out_status = status;
  return *out != NULL ? 0 : CUDA_ERROR_NOT_FOUND;
}

CUDA_EXPORT
cuGetProcAddress (const char *name, void **out, int version, guint64 flags)
{
  CUDA_ENTER (CUDA_ALWAYS);
  (void) flags;
  return find_symbol (name, out, version, NULL);
}

CUDA_EXPORT
cuGetProcAddress_v2 (const char *name, void **out, int version, guint64 flags, int *out_status)
{
  CUDA_ENTER (CUDA_ALWAYS);
  (void) flags;
  return find_symbol (name, out, version, out_status);
}
