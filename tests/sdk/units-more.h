/* SPDX-License-Identifier: MIT
 *
 * units-more.h: units for reductions and attention. */
#pragma once

#include "tiny-sample.h"

/* Whether there is a unit for operations of that kind; then @out says whether it takes @operation. */
int more_claim (const TinyOperation *operation, TinyClaim *out);
/* Computes what it took. */
void more_run (const TinyOperation *operation, void *const *memory);
