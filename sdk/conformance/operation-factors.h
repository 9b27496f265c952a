/* SPDX-License-Identifier: MIT
 *
 * operation-factors.h: cases of group operations that are about linear algebra (operation-factors.c). */
#pragma once

#include "conformance.h"

G_BEGIN_DECLS

void conf_list_factors (const ConfSubject *subject, ConfList *out);

G_END_DECLS
