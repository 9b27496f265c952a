/* SPDX-License-Identifier: MIT
 *
 * expect.h: failures that are known.
 *
 *   { "format_version": 1, "expectations": [
 *     { "case": "memory/size/65*", "reason": "…", "link": "https://…", "expires": "2027-03-31" } ] }
 *
 * An expectation excuses a case that fails, for a time that somebody has set: at most a year. One whose
 * case passes is stale, one whose day is over has expired, and both fail. A crash, exit or hang is
 * never excused. */
#pragma once

#include "pool.h"

G_BEGIN_DECLS

typedef struct ConfExpect ConfExpect;

/* Errors: %TINY_ERROR_FORMAT naming the entry and what is wrong with it, %TINY_ERROR_IO. */
ConfExpect *conf_expect_load (const char *path, GError **error);
void conf_expect_free (ConfExpect *self);

/* Before anything runs, on the whole list: entries that name no case become cases that fail. */
void conf_expect_check (ConfExpect *self, GPtrArray *planned);
/* After all has run: gives the results that an entry names an "expectation": {"state": "holds",
 * "stale" or "expired", "text", "reason", "link", "expires"}. */
void conf_expect_apply (ConfExpect *self, const GPtrArray *planned);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (ConfExpect, conf_expect_free)

G_END_DECLS
