/* SPDX-License-Identifier: MIT
 *
 * tiny-claims.h: who computes a recognised operation: a unit of the device, or kernels.
 *
 * The scheduler recognises, the plugin says what it would take, and here is decided: what is accepted for less
 * time than the kernels would take by the scheduler's estimate is the unit's. */
#pragma once

#include "device/tiny-device.h"

G_BEGIN_DECLS

/* One answer. */
typedef struct {
  TinyOperation operation;
  TinyClaim claim;
  double own_ns; /* of the kernels that it replaces */
  gboolean is_taken;
} TinyVerdict;

/* Whether a unit of @device is to compute @operation; NULL: whether it is asked at all. Each verdict is appended to
 * @log, of TinyVerdict, once, unless that is NULL. */
gboolean tiny_claims_decide (TinyDevice *device,
                             const TinyOperation *operation,
                             double own_ns,
                             GArray *log);

/* As a C identifier: "matmul_64_48_32_bias_relu"; free with g_free(). */
char *tiny_operation_to_name (const TinyOperation *operation);
/* What a launch does, at most. */
gint64 tiny_operation_count_flops (const TinyOperation *operation);
gint64 tiny_operation_count_bytes (const TinyOperation *operation);
/* True of an output. */
static inline gboolean
tiny_role_is_written (guint role)
{
  return role == TINY_ROLE_OUTPUT || role >= TINY_ROLE_OUTPUT2;
}
const char *tiny_operation_kind_to_string (guint kind);
const char *tiny_operand_role_to_string (guint role);
const char *tiny_activation_to_string (guint activation);
/* Why it is taken or not, in words; free with g_free(). */
char *tiny_verdict_to_string (const TinyVerdict *verdict);

G_END_DECLS
