/* SPDX-License-Identifier: MIT
 *
 * whole-lapack.c: a library with all symbols that the CPU backend wants of a LAPACK; none computes anything. */
#include <stddef.h>

#define LAPACK_SYMBOL(name, params)                                                            \
  void s##name##_ (void);                                                                      \
  void d##name##_ (void);                                                                      \
  void s##name##_ (void) {}                                                                    \
  void d##name##_ (void) {}
#include "cpu-lapack.def"
