/* SPDX-License-Identifier: MIT
 *
 * webgpu-forward.c: every function of the interface, handed on to the library that TINY_TEST_WEBGPU
 * names. They are weak: webgpu-fault.c has some of its own instead. */
#include "webgpu-forward.h"

#include <dlfcn.h>
#include <stdlib.h>

static void *
find (const char *name)
{
  static void *library;
  if (library == NULL)
    library = dlopen (getenv ("TINY_TEST_WEBGPU"), RTLD_NOW | RTLD_LOCAL);
  void *function = library != NULL ? dlsym (library, name) : NULL;
  if (function == NULL)
    abort ();
  return function;
}

#define FUNCTION(result, name, parameters, arguments)                                          \
  result real_##name parameters                                                                \
  {                                                                                            \
    static result (*function) parameters;                                                      \
    if (function == NULL)                                                                      \
      *(void **) &function = find ("wgpu" #name);                                              \
    return function arguments;                                                                 \
  }                                                                                            \
  EXPORT __attribute__ ((weak)) result wgpu##name parameters;                                  \
  result wgpu##name parameters { return real_##name arguments; }
#define OPTIONAL FUNCTION
#include "webgpu-symbols.def"
