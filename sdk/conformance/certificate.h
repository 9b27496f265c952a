/* SPDX-License-Identifier: MIT
 *
 * certificate.h: what a run found, as one document that every report is made from. README.md says
 * what is in it. */
#pragma once

#include "run.h"
#include "verdict.h"

G_BEGIN_DECLS

/* Of a run that is over. */
JsonObject *conf_certificate_new (const ConfRunning *running);

/* ---- what reports read ---- */
/* Element @i of the texts @name of @object, or NULL behind the last. */
const char *conf_text_at (JsonObject *object, const char *name, guint i);

/* What the subject has of each op (capabilities.c): [{"op", "dtypes": {"f32": "native", …}}], and the
 * worst error of each op, dtype and unit: [{"op", "dtype", "unit", "worst", "most", "case"}]. */
JsonArray *conf_capabilities_new (JsonObject *facts);
JsonArray *conf_worst_errors_new (JsonArray *cases);

/* As files (transfer full). */
char *conf_report_junit (JsonObject *certificate);
char *conf_report_html (JsonObject *certificate);

/* Prints a summary for people, or TAP (report-text.c), which begins with a line before the cases run. */
void conf_report_tap_begin (void);
void conf_report_text (JsonObject *certificate);
void conf_report_tap (JsonObject *certificate);

G_END_DECLS
