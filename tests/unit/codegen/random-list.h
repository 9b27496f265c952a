/* SPDX-License-Identifier: MIT
 *
 * random-list.h: lists of optimisations as somebody may write them. */
#pragma once

#include "codegen/tiny-opt-space.h"

/* (transfer full): any list as text; with a @space, without the optimisations that do not fit after those before them. */
char *random_list_draw (GRand *rand, TinyOptSpace *space);
