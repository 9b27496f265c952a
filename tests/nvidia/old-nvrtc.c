/* SPDX-License-Identifier: MIT
 *
 * old-nvrtc.c: a compiler of an older version, as far as it is asked before it is to compile anything: it knows no
 * architecture after sm_86. With -DNOTHING_KNOWN it does not know which it knows. A program it refuses with 9 where its
 * builtins are open, as NVRTC looks for them by a bare name, else with 7. */
#include <dlfcn.h>
#include <stddef.h>

int nvrtcVersion (int *major, int *minor);
int nvrtcGetNumSupportedArchs (int *n);
int nvrtcGetSupportedArchs (int *archs);

int
nvrtcVersion (int *major, int *minor)
{
  *major = 11;
  *minor = 2;
  return 0;
}

int
nvrtcGetNumSupportedArchs (int *n)
{
#ifdef NOTHING_KNOWN
  *n = -1;
#else
  *n = 2;
#endif
  return 0;
}

int
nvrtcGetSupportedArchs (int *archs)
{
  archs[0] = 35;
  archs[1] = 86;
  return 0;
}

int nvrtcCreateProgram (void **out);

int
nvrtcCreateProgram (void **out)
{
  *out = NULL;
  return dlopen ("libnvrtc-builtins.so.11.2", RTLD_NOW | RTLD_NOLOAD) != NULL ? 9 : 7;
}

/* The others only have to be there. */
#define THERE(name)                                                                            \
  int name (void);                                                                             \
  int name (void) { return 1; }
/* clang-format off */
THERE (nvrtcCompileProgram)
THERE (nvrtcGetCUBINSize)
THERE (nvrtcGetProgramLogSize)
THERE (nvrtcGetProgramLog)
THERE (nvrtcDestroyProgram)
#ifndef NO_CUBIN
THERE (nvrtcGetCUBIN)
#endif
