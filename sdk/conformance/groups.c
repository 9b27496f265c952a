/* SPDX-License-Identifier: MIT
 *
 * groups.c: all groups, in the order in which they run. */
#include "conformance.h"

extern const ConfGroup conf_group_memory, conf_group_numerics, conf_group_tensors,
    conf_group_kernels, conf_group_claims, conf_group_random, conf_group_models;

const ConfGroup *const conf_groups[]
    = { &conf_group_memory, &conf_group_numerics, &conf_group_tensors, &conf_group_kernels,
        &conf_group_claims, &conf_group_random,   &conf_group_models,  NULL };
