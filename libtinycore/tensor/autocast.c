/* SPDX-License-Identifier: MIT
 *
 * autocast.c: the dtype of this thread's products, and what it makes of an operation's arguments. */
#include "tensor/tiny-autocast.h"

#include "tensor/tiny-build.h"

static _Thread_local TinyDType autocast = TINY_DTYPE_VOID;

gboolean
tiny_set_autocast (TinyDType dtype, GError **error)
{
  if (dtype != TINY_DTYPE_VOID && dtype != TINY_DTYPE_F16 && dtype != TINY_DTYPE_BF16) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "autocast: f16 or bf16, not %s",
                 (guint) dtype < TINY_N_DTYPES ? tiny_dtype_to_string (dtype)
                                               : "a dtype that is none");
    return FALSE;
  }
  autocast = dtype;
  return TRUE;
}

TinyDType
tiny_get_autocast (void)
{
  return autocast;
}

gboolean
tiny_build_autocast (TinyBuild *self, gboolean is_narrow)
{
  TinyDType wanted = is_narrow ? autocast : TINY_DTYPE_F32;
  for (guint i = 0; autocast != TINY_DTYPE_VOID && i < self->n; i++)
    if (self->x[i] != NULL && tiny_dtype_is_float (self->x[i]->dtype)
        && tiny_dtype_get_n_bytes ((TinyDType) self->x[i]->dtype) <= 4)
      self->x[i] = tiny_build_cast (self, self->x[i], wanted);
  return self->error == NULL;
}
