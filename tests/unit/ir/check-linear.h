/* SPDX-License-Identifier: MIT
 *
 * check-linear.h: whether a linear program is legal, or for what reason it is refused. */
#pragma once

#include <string.h>

#include "../case-fails.h"
#include "base/tiny-error.h"
#include "ir/tiny-verify.h"

/* @reason NULL: it is legal; else part of the message. */
static inline void
check_linear (const TinyLinear *linear, const TinyTarget *target, const char *reason)
{
  g_autoptr (GError) error = NULL;
  gboolean legal = tiny_verify_linear (linear, target, &error);
  if (reason == NULL) {
    g_assert_no_error (error);
    g_assert_true (legal);
  } else if (legal) {
    CASE_FAILS ("not refused: %s", reason);
  } else {
    g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
    if (strstr (error->message, reason) == NULL)
      CASE_FAILS ("refused for another reason: %s, not %s", error->message, reason);
  }
}

/* Builds the program @p anew, changes it, and checks. */
#define BREAK(reason, ...)                                                                     \
  do {                                                                                         \
    build (&p);                                                                                \
    __VA_ARGS__;                                                                               \
    check_linear (&p.linear, &p.target, reason);                                               \
  } while (0)
