/* SPDX-License-Identifier: MIT
 * split-reduce.c */
#include "schedule/plan.h"
void
schedule_split_reduces (Plan *plan)
{
}
