/* SPDX-License-Identifier: MIT
 *
 * tiny-claims.c: asking a device's plugin, deciding, and operations in words. */
#include "engine/tiny-claims.h"

#include <string.h>

#include "base/tiny-env.h"
#include "ir/tiny-dtype.h"

/* ---- deciding ---- */
static gboolean
is_known (const GArray *log, const TinyVerdict *verdict)
{
  for (guint i = 0; i < log->len; i++) {
    const TinyVerdict *other = &g_array_index (log, TinyVerdict, i);
    if (memcmp (&other->operation, &verdict->operation, sizeof other->operation) == 0
        && other->is_taken == verdict->is_taken)
      return TRUE;
  }
  return FALSE;
}

gboolean
tiny_claims_decide (TinyDevice *device,
                    const TinyOperation *operation,
                    double own_ns,
                    GArray *log)
{
  if (tiny_env_get_int (TINY_ENV_NO_CLAIM))
    return FALSE;
  if (operation == NULL)
    return tiny_device_has_claims (device);
  if (!tiny_device_claims_kind (device, operation->kind))
    return FALSE;
  TinyVerdict verdict = { .operation = *operation, .own_ns = own_ns };
  tiny_device_claim (device, operation, &verdict.claim);
  const guint64 cost = verdict.claim.cost_ns;
  verdict.is_taken
      = verdict.claim.verdict == TINY_CLAIM_ACCEPTED && cost > 0 && (double) cost < own_ns;
  if (log != NULL && !is_known (log, &verdict))
    g_array_append_val (log, verdict);
  return verdict.is_taken;
}

char *
tiny_verdict_to_string (const TinyVerdict *verdict)
{
  const TinyClaim *claim = &verdict->claim;
  const char *colon = claim->reason[0] != 0 ? ": " : "";
  g_autofree char *reason = g_utf8_make_valid (claim->reason, -1);
  if (claim->verdict != TINY_CLAIM_ACCEPTED)
    return g_strdup_printf ("declined%s%s", claim->reason[0] ? colon : ", no reason given",
                            reason);
  if (claim->cost_ns == 0)
    return g_strdup_printf ("not taken, as no cost is given%s%s", colon, reason);
  return g_strdup_printf (
      "%s, %.1f us there, kernels %.1f us%s%s", verdict->is_taken ? "accepted" : "not worth it",
      (double) claim->cost_ns * 1e-3, verdict->own_ns * 1e-3, colon, reason);
}

/* ---- in words ---- */
static const char *
pick (const char *const *names, guint n, guint i)
{
  return i < n ? names[i] : "unknown";
}

const char *
tiny_operation_kind_to_string (guint kind)
{
  static const char *const names[]
      = { "none",     "matmul", "convolution", "reduction", "softmax", "attention",
          "cholesky", "lu",     "triangular",  "qr",        "svd",     "eigh" };
  return pick (names, G_N_ELEMENTS (names), kind);
}

const char *
tiny_operand_role_to_string (guint role)
{
  static const char *const names[]
      = { "output", "a", "b", "bias", "mask", "b2", "output2", "output3" };
  return pick (names, G_N_ELEMENTS (names), role);
}

const char *
tiny_activation_to_string (guint activation)
{
  static const char *const names[] = { "none", "relu", "sigmoid", "tanh", "silu", "gelu" };
  return pick (names, G_N_ELEMENTS (names), activation);
}

static gboolean
has_role (const TinyOperation *operation, TinyOperandRole role)
{
  for (guint i = 0; i < operation->n_operands; i++)
    if (operation->operands[i].role == role)
      return TRUE;
  return FALSE;
}

char *
tiny_operation_to_name (const TinyOperation *operation)
{
  GString *name = g_string_new (tiny_operation_kind_to_string (operation->kind));
  for (guint i = 0; i < operation->n_axes; i++)
    if (operation->extents[i] != 1)
      g_string_append_printf (name, "_%" G_GINT64_FORMAT, (gint64) operation->extents[i]);
  if (operation->scale != 1)
    g_string_append (name, "_scale");
  if (has_role (operation, TINY_ROLE_BIAS))
    g_string_append (name, "_bias");
  if (has_role (operation, TINY_ROLE_MASK))
    g_string_append (name, "_mask");
  if (operation->flags & TINY_OPERATION_CAUSAL)
    g_string_append (name, "_causal");
  if (operation->activation != TINY_ACTIVATION_NONE)
    g_string_append_printf (name, "_%s", tiny_activation_to_string (operation->activation));
  return g_string_free (name, FALSE);
}

/* By the terms of third order (Golub and Van Loan); of an iteration what it usually takes. */
static gint64
count_factor_flops (const TinyOperation *operation)
{
  static const double each[]
      = { [TINY_OPERATION_CHOLESKY] = 1 / 3.0, [TINY_OPERATION_LU] = 2 / 3.0,
          [TINY_OPERATION_TRIANGULAR] = 1,     [TINY_OPERATION_QR] = 8 / 3.0,
          [TINY_OPERATION_SVD] = 21,           [TINY_OPERATION_EIGH] = 9 };
  const gint64 *extents = operation->extents;
  double n = (double) extents[TINY_FACTOR_BATCH] * (double) extents[TINY_FACTOR_ROW]
             * (double) extents[TINY_FACTOR_COLUMN];
  n *= (double) extents[operation->kind == TINY_OPERATION_TRIANGULAR ? TINY_FACTOR_RIGHT
                                                                     : TINY_FACTOR_VALUE];
  return (gint64) (n * each[operation->kind]);
}

gint64
tiny_operation_count_flops (const TinyOperation *operation)
{
  if (operation->kind >= TINY_OPERATION_CHOLESKY && operation->kind <= TINY_OPERATION_EIGH)
    return count_factor_flops (operation);
  const gint64 each = operation->kind == TINY_OPERATION_MATMUL
                              || operation->kind == TINY_OPERATION_CONVOLUTION
                          ? 2
                          : 1;
  gint64 n = each;
  for (guint i = 0; i < operation->n_axes; i++)
    n *= operation->extents[i];
  if (operation->kind != TINY_OPERATION_ATTENTION)
    return n;
  /* Not both sums for each other: scores, and what they weigh. */
  const gint64 depth = operation->extents[TINY_ATTENTION_DEPTH],
               value = operation->extents[TINY_ATTENTION_VALUE];
  return n / depth / value * 2 * (depth + value);
}

gint64
tiny_operation_count_bytes (const TinyOperation *operation)
{
  gint64 n = 0;
  for (guint i = 0; i < operation->n_operands; i++)
    n += (gint64) operation->operands[i].n_elements
         * (gint64) tiny_dtype_get_n_bytes (operation->operands[i].dtype);
  return n;
}
