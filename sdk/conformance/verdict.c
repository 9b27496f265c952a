/* SPDX-License-Identifier: MIT
 *
 * verdict.c: what follows from the cases of a certificate. It reads JSON only, and knows nothing of runs: the
 * command that installs bundles is made of it as well. */
#include "verdict.h"

#include "base/tiny-error.h"
#include "form.h"

static const char *const levels[] = { "core", "full", "models", "stress", NULL };
static const char *const outcomes[]
    = { "passed", "failed", "recorded", "crashed", "ended", "hung", "not run", NULL };

static const char *
text_of (JsonObject *object, const char *name)
{
  return json_object_get_string_member_with_default (object, name, "");
}

/* ---- its form ---- */
static gboolean
check_case (JsonObject *object, GError **error)
{
  static const ConfMember expectation[]
      = { { "state", G_TYPE_STRING, FALSE }, { "text", G_TYPE_STRING, TRUE } };
  static const ConfMember errors[] = { { "op", G_TYPE_INT64, FALSE },
                                       { "dtype", G_TYPE_INT64, FALSE },
                                       { "unit", G_TYPE_STRING, FALSE },
                                       { "worst", G_TYPE_DOUBLE, FALSE },
                                       { "most", G_TYPE_DOUBLE, FALSE } };
  return conf_form_check_word (object, "outcome", outcomes, error)
         && conf_form_check_word (object, "level", levels, error)
         && conf_form_check_array (object, "messages", NULL, 0, error)
         && conf_form_check_array (object, "errors", errors, G_N_ELEMENTS (errors), error)
         && (!json_object_has_member (object, "expectation")
             || conf_form_check_members (json_object_get_object_member (object, "expectation"),
                                         "expectation.", expectation,
                                         G_N_ELEMENTS (expectation), error));
}

/* Numbers, whatever they are called. */
static gboolean
check_score_form (JsonObject *score, GError **error)
{
  g_autoptr (GList) names = json_object_get_members (score);
  for (GList *at = names; at != NULL; at = at->next) {
    const ConfMember member = { at->data, G_TYPE_INT64, FALSE };
    if (!conf_form_check_members (score, "score.", &member, 1, error))
      return FALSE;
  }
  return TRUE;
}

static const ConfMember of_whole[]
    = { { "subject", G_TYPE_NONE, FALSE },     { "suite", G_TYPE_NONE, FALSE },
        { "run", G_TYPE_NONE, FALSE },         { "score", G_TYPE_NONE, FALSE },
        { "certified", G_TYPE_STRING, FALSE }, { "status", G_TYPE_INT64, FALSE },
        { "cases", G_TYPE_INVALID, FALSE },    { "absent", G_TYPE_INVALID, FALSE },
        { "worst", G_TYPE_INVALID, FALSE },    { "capabilities", G_TYPE_INVALID, TRUE } };
static const ConfMember of_subject[]
    = { { "spec", G_TYPE_STRING, FALSE },     { "sha256", G_TYPE_STRING, FALSE },
        { "build_id", G_TYPE_STRING, FALSE }, { "file", G_TYPE_STRING, TRUE },
        { "driver", G_TYPE_STRING, TRUE },    { "bytes", G_TYPE_INT64, TRUE } };
static const ConfMember of_suite[] = { { "version", G_TYPE_STRING, FALSE },
                                       { "build_id", G_TYPE_STRING, FALSE },
                                       { "abi_major", G_TYPE_INT64, TRUE },
                                       { "abi_minor", G_TYPE_INT64, TRUE } };
static const ConfMember of_run[]
    = { { "level", G_TYPE_STRING, FALSE },    { "seed", G_TYPE_STRING, FALSE },
        { "filters", G_TYPE_INVALID, FALSE }, { "complete", G_TYPE_BOOLEAN, FALSE },
        { "date", G_TYPE_STRING, TRUE },      { "host", G_TYPE_STRING, TRUE },
        { "seconds", G_TYPE_DOUBLE, TRUE },   { "kept", G_TYPE_INT64, TRUE } };
static const ConfMember of_absent[]
    = { { "name", G_TYPE_STRING, FALSE }, { "reason", G_TYPE_STRING, FALSE } };
static const ConfMember of_case[]
    = { { "name", G_TYPE_STRING, FALSE },   { "outcome", G_TYPE_STRING, FALSE },
        { "level", G_TYPE_STRING, FALSE },  { "must", G_TYPE_BOOLEAN, FALSE },
        { "stack", G_TYPE_STRING, TRUE },   { "messages", G_TYPE_INVALID, TRUE },
        { "errors", G_TYPE_INVALID, TRUE }, { "expectation", G_TYPE_NONE, TRUE },
        { "us", G_TYPE_INT64, TRUE } };

static gboolean
check_run (JsonObject *object, GError **error)
{
  return conf_form_check_members (object, "run.", of_run, G_N_ELEMENTS (of_run), error)
         && conf_form_check_word (object, "level", levels, error)
         && conf_form_check_array (object, "filters", NULL, 0, error);
}

static gboolean
check_parts (JsonObject *certificate, GError **error)
{
  return conf_form_check_members (certificate, "", of_whole, G_N_ELEMENTS (of_whole), error)
         && check_score_form (json_object_get_object_member (certificate, "score"), error)
         && conf_form_check_members (json_object_get_object_member (certificate, "subject"),
                                     "subject.", of_subject, G_N_ELEMENTS (of_subject), error)
         && conf_form_check_members (json_object_get_object_member (certificate, "suite"),
                                     "suite.", of_suite, G_N_ELEMENTS (of_suite), error)
         && check_run (json_object_get_object_member (certificate, "run"), error)
         && conf_form_check_array (certificate, "absent", of_absent, G_N_ELEMENTS (of_absent),
                                   error)
         && conf_form_check_array (certificate, "cases", of_case, G_N_ELEMENTS (of_case),
                                   error);
}

gboolean
conf_certificate_check_form (JsonObject *certificate, GError **error)
{
  static const ConfMember format = { "format", G_TYPE_STRING, FALSE };
  if (!conf_form_check_members (certificate, "", &format, 1, error))
    return FALSE;
  if (!g_str_equal (text_of (certificate, "format"), CONF_FORMAT)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "its format is not “%s”", CONF_FORMAT);
    return FALSE;
  }
  if (!check_parts (certificate, error))
    return FALSE;
  JsonArray *cases = conf_certificate_cases (certificate);
  for (guint i = 0; i < json_array_get_length (cases); i++)
    if (!check_case (json_array_get_object_element (cases, i), error)) {
      g_prefix_error (error, "cases[%u].", i);
      return FALSE;
    }
  return TRUE;
}

/* ---- reading ---- */
JsonArray *
conf_certificate_cases (JsonObject *certificate)
{
  return json_object_get_array_member (certificate, "cases");
}

static const char *
expectation_of (JsonObject *object)
{
  return json_object_has_member (object, "expectation")
             ? text_of (json_object_get_object_member (object, "expectation"), "state")
             : "";
}

ConfReported
conf_certificate_case (JsonArray *cases, guint i)
{
  JsonObject *object = json_array_get_object_element (cases, i);
  ConfReported out = { .name = text_of (object, "name"),
                       .outcome = text_of (object, "outcome"),
                       .level = text_of (object, "level"),
                       .object = object,
                       .must = json_object_get_boolean_member (object, "must") };
  const char *expectation = expectation_of (object);
  gboolean is_good
      = g_str_equal (out.outcome, "passed") || g_str_equal (out.outcome, "recorded");
  gboolean not_run = g_str_equal (out.outcome, "not run");
  /* An expectation is of a failure that was seen and understood: never of a crash. */
  gboolean is_expected
      = g_str_equal (expectation, "holds") && g_str_equal (out.outcome, "failed");
  out.is_bad = (!is_good && !not_run && !is_expected) || g_str_equal (expectation, "stale")
               || g_str_equal (expectation, "expired");
  return out;
}

gint64
conf_certificate_score (JsonObject *certificate, const char *what)
{
  return json_object_get_int_member_with_default (
      json_object_get_object_member (certificate, "score"), what, 0);
}

const char *
conf_certificate_text (JsonObject *certificate, const char *part, const char *name)
{
  return text_of (json_object_get_object_member (certificate, part), name);
}

/* ---- the score ---- */
static void
count (JsonObject *score, const char *what)
{
  gint64 now = json_object_get_int_member_with_default (score, what, 0);
  json_object_set_int_member (score, what, now + 1);
}

JsonObject *
conf_score_new (JsonArray *cases, JsonArray *absent)
{
  static const char *const counts[] = { "must",     "passed",  "failed",   "crashed", "hung",
                                        "expected", "not run", "recorded", "absent" };
  JsonObject *out = json_object_new ();
  for (guint i = 0; i < G_N_ELEMENTS (counts); i++)
    json_object_set_int_member (out, counts[i], 0);
  for (guint i = 0; i < json_array_get_length (cases); i++) {
    ConfReported it = conf_certificate_case (cases, i);
    const char *outcome = g_str_equal (it.outcome, "ended") ? "crashed" : it.outcome;
    if (it.must)
      count (out, "must");
    if (it.is_bad && (g_str_equal (outcome, "passed") || g_str_equal (outcome, "recorded")))
      outcome = "failed"; /* it was expected to fail, or that is over */
    else if (!it.is_bad && g_str_equal (outcome, "failed"))
      outcome = "expected";
    count (out, outcome);
  }
  json_object_set_int_member (out, "absent", json_array_get_length (absent));
  return out;
}

static gint64
number_of (JsonObject *score, const char *what)
{
  return json_object_get_int_member_with_default (score, what, 0);
}

int
conf_score_status (JsonObject *score, JsonArray *cases)
{
  if (number_of (score, "crashed") > 0 || number_of (score, "hung") > 0)
    return CONF_EXIT_CRASHED;
  if (number_of (score, "failed") > 0)
    return CONF_EXIT_FAILED;
  if (number_of (score, "passed") == 0 || number_of (score, "not run") > 0)
    return CONF_EXIT_BELOW;
  if (number_of (score, "must") == number_of (score, "passed"))
    return CONF_EXIT_PASSED;
  /* What is left are failures that were expected: of what everybody must pass none may be. */
  for (guint i = 0; i < json_array_get_length (cases); i++) {
    ConfReported it = conf_certificate_case (cases, i);
    if (g_str_equal (it.outcome, "failed") && g_str_equal (it.level, levels[0]))
      return CONF_EXIT_BELOW;
  }
  return CONF_EXIT_PASSED;
}

static gboolean
has_passed (JsonArray *cases, const char *level)
{
  for (guint i = 0; i < json_array_get_length (cases); i++) {
    ConfReported it = conf_certificate_case (cases, i);
    if (it.must && g_str_equal (it.level, level)
        && (it.is_bad || !g_str_equal (it.outcome, "passed")))
      return FALSE;
  }
  return TRUE;
}

const char *
conf_certified_level (JsonObject *certificate)
{
  JsonObject *run = json_object_get_object_member (certificate, "run");
  JsonArray *cases = conf_certificate_cases (certificate);
  const char *reached = "none";
  /* Without capabilities it was not opened. */
  if (json_array_get_length (json_object_get_array_member (run, "filters")) > 0
      || !json_object_get_boolean_member (run, "complete")
      || !json_object_has_member (certificate, "capabilities")
      || json_array_get_length (cases) == 0)
    return reached;
  for (guint i = 0; levels[i] != NULL && has_passed (cases, levels[i]); i++) {
    reached = levels[i];
    if (g_str_equal (reached, text_of (run, "level")))
      break; /* cases of more than was asked for are none that a run has */
  }
  return reached;
}

/* ---- what it says of itself ---- */
static void
check_score (JsonObject *certificate, JsonObject *score, GPtrArray *out)
{
  g_autoptr (GList) names = json_object_get_members (score);
  for (GList *at = names; at != NULL; at = at->next) {
    gint64 said = conf_certificate_score (certificate, at->data);
    gint64 here = number_of (score, at->data);
    if (said != here)
      g_ptr_array_add (out, g_strdup_printf ("its score says %" G_GINT64_FORMAT
                                             " %s, its cases %" G_GINT64_FORMAT,
                                             said, (const char *) at->data, here));
  }
}

GPtrArray *
conf_certificate_contradictions (JsonObject *certificate)
{
  GPtrArray *out = g_ptr_array_new_with_free_func (g_free);
  JsonArray *cases = conf_certificate_cases (certificate);
  g_autoptr (JsonObject) score
      = conf_score_new (cases, json_object_get_array_member (certificate, "absent"));
  gint64 status = json_object_get_int_member (certificate, "status");
  const char *certified = text_of (certificate, "certified");
  const char *level = conf_certified_level (certificate);
  check_score (certificate, score, out);
  if (status != conf_score_status (score, cases))
    g_ptr_array_add (out,
                     g_strdup_printf ("its status is %" G_GINT64_FORMAT ", and by its cases %d",
                                      status, conf_score_status (score, cases)));
  if (!g_str_equal (certified, level))
    g_ptr_array_add (out, g_strdup_printf ("it says certified: %s, and by its cases it is %s",
                                           certified, level));
  return out;
}
