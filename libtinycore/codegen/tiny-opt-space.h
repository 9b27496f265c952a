/* SPDX-License-Identifier: MIT
 *
 * tiny-opt-space.h: which lists of optimisations fit a kernel, and which lie near one. */
#pragma once

#include "codegen/tiny-codegen.h"

G_BEGIN_DECLS

typedef struct TinyOptSpace TinyOptSpace;

/* Of @kernel, which is read only and imported, on @target. One thread uses it at a time. Errors:
 * those of the passes before optimise. */
TinyOptSpace *tiny_opt_space_new (TinyNode *kernel, const TinyTarget *target, GError **error);
void tiny_opt_space_free (TinyOptSpace *self);

/* Whether the list of @text fits. Errors: %TINY_ERROR_FORMAT, %TINY_ERROR_INVALID with the reason. */
gboolean tiny_opt_space_check (TinyOptSpace *self, const char *text, GError **error);

/* (transfer full) (element-type utf8): every list that fits and is one step from @text, without it:
 * an optimisation more, before the grid or at the end; one with another amount; one less. Amounts
 * come from the table in tiny-opt-space.c and from the target. What makes more copies than several
 * times the target's registers is left out. NULL-terminated. */
char **tiny_opt_space_get_neighbours (TinyOptSpace *self, const char *text);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyOptSpace, tiny_opt_space_free)

G_END_DECLS
