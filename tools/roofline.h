/* SPDX-License-Identifier: MIT
 *
 * roofline.h: kernels against the roofs of their device, as a table and as a picture. */
#pragma once

#include "engine/tiny-roof.h"
#include "tools/bench-cases.h"

/* One kernel of a case; what is the same kernel is one point. */
typedef struct {
  char *text; /* the case */
  char *name; /* the kernel */
  TinyDType dtype;
  guint n_launches;
  double ns, gflops, gbps, intensity, share;
  TinyRoofBound bound;
} RooflinePoint;

typedef struct {
  TinyDevice *device; /* borrowed */
  const TinyRoof *roof;
  GArray *points; /* RooflinePoint */
} Roofline;

/* Measures the roofs where they are not known, or @again. */
gboolean roofline_init (Roofline *self, TinyDevice *device, gboolean again, GError **error);
void roofline_clear (Roofline *self);
/* Replays @capture and adds a point for each of its kernels on the device. */
gboolean roofline_add (
    Roofline *self, const BenchCase *bench, TinyCapture *capture, guint n_runs, GError **error);

void roofline_print_roofs (const Roofline *self, gboolean json);
/* Points from @first on. */
void roofline_print_points (const Roofline *self, guint first, gboolean json);

/* An SVG 1.1 document; free with g_free(). */
char *roofline_to_svg (const Roofline *self);
