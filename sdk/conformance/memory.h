/* SPDX-License-Identifier: MIT
 *
 * memory.h: cases of group memory that are not in its own file. */
#pragma once

#include "raw.h"

G_BEGIN_DECLS

/* Large transfers, and host memory at any address (memory-large.c). */
void conf_list_large (ConfList *out);
/* Memory of others (memory-import.c). */
void conf_list_import (const ConfSubject *subject, ConfList *out);

G_END_DECLS
