/* SPDX-License-Identifier: MIT
 *
 * faults.h: cases of group faults that are not in its own file. */
#pragma once

#include "conformance.h"

G_BEGIN_DECLS

/* disassemble(), context() and many programs (faults-listing.c). */
void conf_list_listing (const ConfSubject *subject, ConfList *out);

G_END_DECLS
