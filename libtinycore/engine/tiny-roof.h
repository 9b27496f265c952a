/* SPDX-License-Identifier: MIT
 *
 * tiny-roof.h: what a device can do at most: arithmetic by dtype, memory by level.
 *
 * Measured by running generated kernels the way all kernels run, once; then found in the cache
 * folder under the device, its plugin, its renderer and this very library.
 *
 * The roofs are those of Williams, Waterman and Patterson, "Roofline: an insightful visual
 * performance model for multicore architectures" (2009). */
#pragma once

#include "device/tiny-device.h"

G_BEGIN_DECLS

enum { TINY_ROOF_MAX_LEVELS = 4 };

/* Caches from the nearest to the processors outwards, memory last. */
typedef struct {
  char name[8];
  guint64 n_bytes; /* what it holds for all threads together; memory: G_MAXUINT64 */
  double read;     /* GB/s, reading alone */
  double triad;    /* GB/s of a[i] = b[i] * s + c[i], 0 where it was not measured */
} TinyRoofLevel;

typedef struct {
  double gflops[TINY_N_DTYPES]; /* of multiply-add; 0 where the device does not compute in it */
  guint n_levels;
  TinyRoofLevel levels[TINY_ROOF_MAX_LEVELS];
} TinyRoof;

/* The roof of @device, from memory or the cache folder; NULL when it was never measured. Cheap. */
const TinyRoof *tiny_roof_find (TinyDevice *device);
/* As above, and measures when there is none, or anew when @again: a fraction of a second. Valid as
 * long as the process. Errors: those of compiling and running. */
const TinyRoof *tiny_roof_measure (TinyDevice *device, gboolean again, GError **error);

/* What bounds a kernel of @n_flops operations in @dtype that touches @n_bytes. */
typedef struct {
  double ns;     /* the least time it can take */
  double gflops; /* of the arithmetic roof */
  double gbps;   /* of the memory roof that counts for so many bytes */
  const char *level;
  gboolean by_memory; /* which of the two it is that bounds */
} TinyRoofBound;
TinyRoofBound
tiny_roof_bound (const TinyRoof *self, TinyDType dtype, double n_flops, double n_bytes);

G_END_DECLS
