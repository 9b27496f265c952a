/* SPDX-License-Identifier: MIT
 *
 * join.h: two kernels as one. */
#pragma once

#include "schedule/plan.h"

G_BEGIN_DECLS

/* Makes one kernel of @first and @second, which may read what @first writes and not the other way
 * round. @n_readers says of each buffer how many kernels read it: what only @second does is not
 * stored. With @shares the loops of @first are the outermost of @second's; else they have none in
 * common. Returns FALSE where the two do not fit. */
gboolean schedule_join_kernels (Plan *plan,
                                const guint *n_readers,
                                const PlanItem *first,
                                const PlanItem *second,
                                gboolean shares,
                                PlanItem *out_item);

G_END_DECLS
