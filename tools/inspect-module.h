/* SPDX-License-Identifier: MIT
 *
 * inspect-module.h: all that a plugin declares, reported from the helper process.
 *
 * A line of JSON for each part, written as soon as it is known, so that a plugin that crashes half
 * way is known up to there: "calling" before the plugin is called, "module", a "renderer" for each,
 * a "device" for each, "end". The fields are in the manual page. */
#pragma once

#include <glib.h>

#include "tiny-plugin.h"

G_BEGIN_DECLS

/* In the helper: writes lines to @descriptor. FALSE when they cannot be written. */
gboolean inspect_module (const char *path, int descriptor);

/* What becomes of an op on a dtype for a target. */
typedef enum {
  INSPECT_MEANINGLESS, /* there is no such op on that dtype */
  INSPECT_NATIVE,      /* the target declares it */
  INSPECT_EMULATED,    /* the core makes it of others */
  INSPECT_IMPOSSIBLE,  /* and of this target's cannot */
} InspectOpState;
const char *inspect_op_state_to_string (InspectOpState state);

/* Compiles a kernel of that op alone. @out_made_of: the ops that it became, "add mul", or why it is not
 * possible; NULL otherwise. */
InspectOpState
inspect_op (const TinyTarget *target, TinyInstrOp op, TinyDType dtype, char **out_made_of);
/* "add", …, or NULL for a number that is no op of the contract or its extensions. */
const char *inspect_op_name (guint op);

G_END_DECLS
