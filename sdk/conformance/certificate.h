/* SPDX-License-Identifier: MIT
 *
 * certificate.h: what a run found, as one document that every report is made from. README.md says
 * what is in it. */
#pragma once

#include "run.h"

G_BEGIN_DECLS

#define CONF_FORMAT "tinycore-conformance 1"

/* Of a run that is over. */
JsonObject *conf_certificate_new (const ConfRunning *running);
/* The score of these cases. */
JsonObject *conf_score_new (JsonArray *cases, JsonArray *absent);
/* The exit status that its score stands for. */
int conf_certificate_status (JsonObject *certificate);

/* ---- what reports read ---- */
typedef struct {
  const char *name, *outcome;
  JsonObject *object;
  gboolean is_bad; /* it counts as a failure */
} ConfReported;

JsonArray *conf_certificate_cases (JsonObject *certificate);
ConfReported conf_certificate_case (JsonArray *cases, guint i);
gint64 conf_certificate_score (JsonObject *certificate, const char *what);
/* A text of part @part, "" where there is none. */
const char *conf_certificate_text (JsonObject *certificate, const char *part, const char *name);
/* Element @i of the texts @name of @object, or NULL behind the last. */
const char *conf_text_at (JsonObject *object, const char *name, guint i);

/* What the subject has of each op (capabilities.c): [{"op", "dtypes": {"f32": "native", …}}], and the
 * worst error of each op, dtype and unit: [{"op", "dtype", "unit", "worst", "most", "case"}]. */
JsonArray *conf_capabilities_new (JsonObject *facts);
JsonArray *conf_worst_errors_new (JsonArray *cases);

/* As files (transfer full). */
char *conf_report_junit (JsonObject *certificate);
char *conf_report_html (JsonObject *certificate);

/* Prints a summary for people, or TAP (report-text.c). */
void conf_report_text (JsonObject *certificate);
void conf_report_tap (JsonObject *certificate);

G_END_DECLS
