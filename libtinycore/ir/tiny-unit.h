/* SPDX-License-Identifier: MIT
 *
 * tiny-unit.h: rows of matrix units (TinyUnit of tiny-plugin.h), as the core reads them. */
#pragma once

#include <glib.h>

#include "tiny-plugin.h"

G_BEGIN_DECLS

/* The matrices of a unit, in the order of the instruction's sources. */
typedef enum { TINY_UNIT_A, TINY_UNIT_B, TINY_UNIT_C, TINY_N_UNIT_MATRICES } TinyUnitMatrix;

/* How many rows @target has. */
guint tiny_target_count_units (const TinyTarget *target);

TinyDType tiny_unit_get_dtype (const TinyUnit *self, TinyUnitMatrix matrix);
/* The elements of @matrix that one work-item has. */
guint tiny_unit_get_lanes (const TinyUnit *self, TinyUnitMatrix matrix);

/* NULL, or what is wrong with the row by itself (transfer full). */
char *tiny_unit_check (const TinyUnit *self);

/* True if a value of @dtype and @lanes may be a fragment of one of @target's units. */
gboolean tiny_target_has_fragment (const TinyTarget *target, TinyDType dtype, guint lanes);

G_END_DECLS
