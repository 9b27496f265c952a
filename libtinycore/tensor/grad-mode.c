/* SPDX-License-Identifier: MIT
 *
 * grad-mode.c: whether this thread's results are detached, see tiny_build_end(). */
#include "tensor/tiny-grad-mode.h"

static _Thread_local gboolean is_disabled;

gboolean
tiny_set_grad_enabled (gboolean enabled)
{
  gboolean before = !is_disabled;
  is_disabled = !enabled;
  return before;
}

gboolean
tiny_is_grad_enabled (void)
{
  return !is_disabled;
}
