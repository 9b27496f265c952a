/* SPDX-License-Identifier: MIT
 * packing.c */
#include "schedule/plan.h"
void
schedule_pack_operands (Plan *plan)
{
}
