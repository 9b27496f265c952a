/* SPDX-License-Identifier: MIT
 *
 * tensor-check.h: a tensor as a device computes it against what each of its elements may be (model.h). */
#pragma once

#include "conformance.h"
#include "data.h"
#include "tiny.h"

G_BEGIN_DECLS

/* A tensor of made numbers on the subject's device (transfer floating). */
TinyTensor *conf_tensor_new (const ConfSubject *subject,
                             ConfClass data,
                             TinyDType dtype,
                             const gint64 *shape,
                             guint n_dims,
                             guint slot);
/* Takes @value; computes it and says what is wrong. @op stands for it among the worst errors. Gives how many
 * elements there were of which something is known. */
gsize conf_tensor_check (ConfTrial *trial,
                         const ConfSubject *subject,
                         TinyTensor *value,
                         TinyInstrOp op);

G_END_DECLS
