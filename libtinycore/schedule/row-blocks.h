/* SPDX-License-Identifier: MIT
 *
 * row-blocks.h: reductions of long rows in blocks. */
#pragma once

#include "schedule/plan.h"

G_BEGIN_DECLS

/* @kernel where each reduction of a row that it computes is one of the results of the row's blocks, which @out_parts,
 * a SINK of STOREs into memory of the kernel, computes before it. NULL: its rows are short, or not to be cut. */
TinyNode *
schedule_block_rows (Plan *plan, const char *device, TinyNode *kernel, TinyNode **out_parts);

G_END_DECLS
