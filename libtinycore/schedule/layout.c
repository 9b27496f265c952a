/* SPDX-License-Identifier: MIT
 * layout.c */
#include "schedule/plan.h"
void
schedule_choose_layouts (Plan *plan)
{
}
