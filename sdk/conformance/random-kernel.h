/* SPDX-License-Identifier: MIT
 *
 * random-kernel.h: random kernels whose every result is exact, as lists of steps that stay kernels
 * whatever is changed in them, so that a failing one can be made smaller. */
#pragma once

#include "conformance.h"
#include "kernel.h"

G_BEGIN_DECLS

enum { RANDOM_KERNEL_STEPS = 14, RANDOM_KERNEL_LOADS = 3 };

typedef struct {
  guint8 op;      /* a row of the table in random-kernel.c */
  guint8 dtype;   /* of integers or f32 */
  guint8 from[3]; /* earlier steps */
  guint32 number;
} RandomStep;

typedef struct {
  guint n;            /* steps, of which the last is stored */
  guint8 extents[3];  /* of the axes; 0: there is none */
  guint8 n_reduced;   /* the last value is summed over so many; 0: it is not */
  guint8 reduce;      /* by which op */
  guint8 way;         /* the optimisations */
  gboolean no_floats; /* the target may round them otherwise */
  guint64 seed;       /* of the data */
  RandomStep steps[RANDOM_KERNEL_STEPS];
} RandomKernel;

void random_kernel_generate (RandomKernel *self, guint64 seed, gboolean no_floats);
/* Free with g_free(). */
char *random_kernel_to_text (const RandomKernel *self);
/* Elements that it loads of each parameter, which are those that it computes. */
gsize random_kernel_count (const RandomKernel *self);
/* Makes its axes shorter until it has @most elements or fewer. */
void random_kernel_shorten (RandomKernel *self, gsize most);
/* Instructions of a launch on @device; 0: it cannot be compiled. */
double random_kernel_count_work (const RandomKernel *self, TinyDevice *device);
/* Runs it on @device, and with no optimisations on @reference: what is wrong, or NULL. @out_ns, where it is not NULL,
 * is how long the fastest launch on @device took so far. */
char *random_kernel_run (const RandomKernel *self,
                         TinyDevice *device,
                         TinyDevice *reference,
                         guint64 *out_ns);
/* The @i-th way to make it simpler; FALSE when there are no more. */
gboolean random_kernel_simplify (const RandomKernel *self, guint i, RandomKernel *out);

G_END_DECLS
