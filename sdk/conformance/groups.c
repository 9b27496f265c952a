/* SPDX-License-Identifier: MIT
 *
 * groups.c: all groups, in the order in which they run. */
#include "conformance.h"

/* clang-format off: one a line */
extern const ConfGroup conf_group_hygiene;
extern const ConfGroup conf_group_skew;
extern const ConfGroup conf_group_lifecycle;
extern const ConfGroup conf_group_memory;
extern const ConfGroup conf_group_limits;
extern const ConfGroup conf_group_order;
extern const ConfGroup conf_group_exec;
extern const ConfGroup conf_group_faults;

const ConfGroup *const conf_groups[] = {
  &conf_group_hygiene, &conf_group_skew,   &conf_group_lifecycle,
  &conf_group_memory,  &conf_group_limits, &conf_group_order,
  &conf_group_exec,    &conf_group_faults, NULL,
};
/* clang-format on */
