/* SPDX-License-Identifier: MIT
 *
 * verdict.h: what follows from the cases of a certificate: its score, its exit status and the level that it
 * certifies. Whoever writes one, verifies one or is given one by a vendor computes it here, so that what a
 * certificate says of itself is believed by nobody. */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

#define CONF_FORMAT "tinycore-conformance 1"

/* plugins.md calls it C10; README.md says what each is. */
enum {
  CONF_EXIT_PASSED = 0,
  CONF_EXIT_FAILED = 1,
  CONF_EXIT_USAGE = 2,
  CONF_EXIT_BELOW = 3, /* nothing ran, or not all that must pass has passed */
  CONF_EXIT_CRASHED = 4,
  CONF_EXIT_ABSENT = 77
};

typedef struct {
  const char *name, *outcome, *level;
  JsonObject *object;
  gboolean must;
  gboolean is_bad; /* it counts as a failure */
} ConfReported;

/* Whether @certificate has every member that these functions and the reports read, each of its type. Errors:
 * %TINY_ERROR_FORMAT naming the member. */
gboolean conf_certificate_check_form (JsonObject *certificate, GError **error);

JsonArray *conf_certificate_cases (JsonObject *certificate);
ConfReported conf_certificate_case (JsonArray *cases, guint i);
gint64 conf_certificate_score (JsonObject *certificate, const char *what);
/* A text of part @part, "" where there is none. */
const char *conf_certificate_text (JsonObject *certificate, const char *part, const char *name);

/* The score of these cases. */
JsonObject *conf_score_new (JsonArray *cases, JsonArray *absent);
/* The exit status that @score and its cases stand for. */
int conf_score_status (JsonObject *score, JsonArray *cases);
/* "core" and the like: the highest level of which all that must pass has passed, in a whole run; or "none". */
const char *conf_certified_level (JsonObject *certificate);
/* What @certificate says of itself and its cases do not: one text for each (transfer full). */
GPtrArray *conf_certificate_contradictions (JsonObject *certificate);

G_END_DECLS
