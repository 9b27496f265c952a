/* SPDX-License-Identifier: MIT
 *
 * groups.c: all groups, in the order in which they run. */
#include "conformance.h"

/* clang-format off */
extern const ConfGroup conf_group_hygiene;
extern const ConfGroup conf_group_declared;
extern const ConfGroup conf_group_skew;
extern const ConfGroup conf_group_tables;
extern const ConfGroup conf_group_lifecycle;
extern const ConfGroup conf_group_memory;
extern const ConfGroup conf_group_limits;
extern const ConfGroup conf_group_order;
extern const ConfGroup conf_group_points;
extern const ConfGroup conf_group_exec;
extern const ConfGroup conf_group_units;
extern const ConfGroup conf_group_numerics;
extern const ConfGroup conf_group_tensors;
extern const ConfGroup conf_group_kernels;
extern const ConfGroup conf_group_claims;
extern const ConfGroup conf_group_operations;
extern const ConfGroup conf_group_random;
extern const ConfGroup conf_group_faults;
extern const ConfGroup conf_group_replay;
extern const ConfGroup conf_group_pair;
extern const ConfGroup conf_group_models;
extern const ConfGroup conf_group_soak;
extern const ConfGroup conf_group_record;

/* In this order: what is quick, and what the rest stands on, first. */
const ConfGroup *const conf_groups[] = {
  &conf_group_hygiene,
  &conf_group_declared,
  &conf_group_skew,
  &conf_group_tables,
  &conf_group_lifecycle,
  &conf_group_memory,
  &conf_group_limits,
  &conf_group_order,
  &conf_group_points,
  &conf_group_exec,
  &conf_group_units,
  &conf_group_faults,
  &conf_group_replay,
  &conf_group_numerics,
  &conf_group_tensors,
  &conf_group_kernels,
  &conf_group_claims,
  &conf_group_operations,
  &conf_group_random,
  &conf_group_pair,
  &conf_group_models,
  &conf_group_soak,
  &conf_group_record,
  NULL,
};
/* clang-format on */
