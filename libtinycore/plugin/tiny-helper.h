/* SPDX-License-Identifier: MIT
 *
 * tiny-helper.h: the helper process, which loads a plugin so that the program need not: what it is
 * asked for, and what came of it. */
#pragma once

#include "base/tiny-error.h"

G_BEGIN_DECLS

/* TinyHelperTask.what: everything that the module declares, a line of JSON for each part
 * (tools/inspect-module.h). */
#define TINY_HELPER_INSPECT     "inspect"
#define TINY_HELPER_INSPECT_END "{\"part\":\"end\"}\n" /* its last line */

/* Exit status of a helper that finds a program of another version at its other side, which it says itself where it can. */
#define TINY_HELPER_OTHER 76
#define TINY_HELPER_OTHER_TEXT                                                                 \
  "the helper program (tiny-scan) is of another version than the library: it was replaced "    \
  "after this program began, or TINY_SCAN_HELPER names it; start the program again"

typedef struct {
  const char *module; /* its path */
  const char *what;   /* NULL: a scan */
  guint timeout_ms;
} TinyHelperTask;

typedef struct {
  char *report;   /* what it wrote, up to where it ended */
  char *failure;  /* how the plugin ended it too early, or NULL */
  TinyError code; /* of failure */
  int signal;     /* that ended it, unless it was out of time; or 0 */
  guint took_us;
} TinyHelperResult;

/* Runs the helper and waits for it. FALSE is for a helper that cannot be run (%TINY_ERROR_PLUGIN), or
 * no memory for its report (%TINY_ERROR_OUT_OF_MEMORY); what goes wrong with the plugin is in the result. */
gboolean tiny_helper_run (const TinyHelperTask *task, TinyHelperResult *out, GError **error);
void tiny_helper_result_clear (TinyHelperResult *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TinyHelperResult, tiny_helper_result_clear)

G_END_DECLS
