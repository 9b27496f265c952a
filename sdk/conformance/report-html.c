/* SPDX-License-Identifier: MIT
 *
 * report-html.c: the certificate as a page that needs nothing else: no script, no other file. */
#include "certificate.h"

#include <string.h>

static const char style[]
    = "body{font:15px/1.45 system-ui,sans-serif;max-width:76em;margin:2em auto;padding:0 1em;"
      "color:#1a1a1a;background:#fff}h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}"
      "table{border-collapse:collapse;margin:.6em 0}td,th{border:1px solid #ccc;padding:.2em "
      ".5em;text-align:left;vertical-align:top}th{background:#f2f2f2}td.n{text-align:right}"
      "td.native{background:#cfe8cf}td.emulated{background:#fdf0c4}td.unsupported{background:"
      "#eee;color:#666}td.bad{background:#f6caca}pre{background:#f6f6f6;padding:.6em;overflow:"
      "auto}.verdict{font-size:1.2em;padding:.5em .8em;border-radius:.3em;display:inline-block}"
      ".good{background:#cfe8cf}.poor{background:#f6caca}";

static void
add_escaped (GString *out, const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text ? text : "", -1);
  g_autofree char *escaped = g_markup_escape_text (valid, -1);
  g_string_append (out, escaped);
}

static void
add_cell (GString *out, const char *kind, const char *text)
{
  g_string_append_printf (out, kind[0] ? "<td class=\"%s\">" : "<td%s>", kind);
  add_escaped (out, text);
  g_string_append (out, "</td>");
}

static void
add_number (GString *out, double value)
{
  char text[32];
  g_snprintf (text, sizeof text, "%.4g", value);
  add_cell (out, "n", text);
}

/* ---- parts ---- */
static void
add_row (GString *out, const char *name, const char *value)
{
  if (value == NULL || value[0] == 0)
    return;
  g_string_append (out, "<tr><th>");
  add_escaped (out, name);
  g_string_append (out, "</th>");
  add_cell (out, "", value);
  g_string_append (out, "</tr>\n");
}

static void
add_identity (GString *out, JsonObject *certificate)
{
  static const struct {
    const char *title, *part, *name;
  } rows[] = {
    { "backend", "subject", "name" },      { "vendor", "subject", "vendor" },
    { "version", "subject", "version" },   { "file", "subject", "file" },
    { "build-id", "subject", "build_id" }, { "SHA-256", "subject", "sha256" },
    { "device", "subject", "device" },     { "id", "subject", "id" },
    { "name", "subject", "title" },        { "driver", "subject", "driver" },
    { "architecture", "subject", "arch" }, { "renderer", "subject", "renderer" },
    { "suite", "suite", "version" },       { "suite's build-id", "suite", "build_id" },
    { "level", "run", "level" },           { "seed", "run", "seed" },
    { "machine", "run", "host" },          { "date", "run", "date" },
  };
  g_string_append (out, "<table>\n");
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    add_row (out, rows[i].title,
             conf_certificate_text (certificate, rows[i].part, rows[i].name));
  g_string_append (out, "</table>\n");
}

static void
add_score (GString *out, JsonObject *certificate)
{
  static const char *const counts[] = { "must",     "passed",  "failed",   "crashed", "hung",
                                        "expected", "not run", "recorded", "absent" };
  g_string_append (out, "<table><tr>");
  for (guint i = 0; i < G_N_ELEMENTS (counts); i++)
    g_string_append_printf (out, "<th>%s</th>", counts[i]);
  g_string_append (out, "</tr><tr>");
  for (guint i = 0; i < G_N_ELEMENTS (counts); i++) {
    gint64 n = conf_certificate_score (certificate, counts[i]);
    gboolean is_bad = n > 0 && i >= 2 && i <= 4;
    g_string_append_printf (out, "<td class=\"%s\">%" G_GINT64_FORMAT "</td>",
                            is_bad ? "bad" : "n", n);
  }
  g_string_append (out, "</tr></table>\n");
}

/* The group of a case that begins a new one, with what passed of what must. */
static void
add_groups (GString *out, JsonArray *cases)
{
  guint n = json_array_get_length (cases);
  g_string_append (out, "<h2>Groups</h2>\n<table><tr><th>group</th><th>passed</th><th>must</th>"
                        "</tr>\n");
  for (guint i = 0; i < n;) {
    const char *group = conf_certificate_case (cases, i).name;
    gsize length = strcspn (group, "/");
    guint passed = 0, must = 0;
    for (; i < n; i++) {
      ConfReported it = conf_certificate_case (cases, i);
      if (strncmp (it.name, group, length) != 0 || it.name[length] != '/')
        break;
      if (!json_object_get_boolean_member (it.object, "must"))
        continue;
      must++;
      passed += !it.is_bad && g_str_equal (it.outcome, "passed");
    }
    g_autofree char *name = g_strndup (group, length);
    g_string_append (out, "<tr>");
    add_cell (out, "", name);
    add_number (out, passed);
    add_cell (out, passed == must ? "n" : "bad", "");
    g_string_truncate (out, out->len - strlen ("</td>"));
    g_string_append_printf (out, "%u</td></tr>\n", must);
  }
  g_string_append (out, "</table>\n");
}

static void
add_failures (GString *out, JsonArray *cases)
{
  enum { MOST = 200 };
  guint n_shown = 0;
  for (guint i = 0; i < json_array_get_length (cases) && n_shown < MOST; i++) {
    ConfReported it = conf_certificate_case (cases, i);
    JsonArray *files = json_object_has_member (it.object, "files")
                           ? json_object_get_array_member (it.object, "files")
                           : NULL;
    if (!it.is_bad && !g_str_equal (it.outcome, "failed"))
      continue;
    if (n_shown++ == 0)
      g_string_append (out, "<h2>Failures</h2>\n");
    g_string_append (out, "<details open><summary><b>");
    add_escaped (out, it.name);
    g_string_append_printf (out, "</b> %s%s</summary>\n<pre>", it.outcome,
                            it.is_bad ? "" : ", as expected");
    if (json_object_has_member (it.object, "expectation")) {
      add_escaped (out, json_object_get_string_member (
                            json_object_get_object_member (it.object, "expectation"), "text"));
      g_string_append_c (out, '\n');
    }
    for (guint m = 0; conf_text_at (it.object, "messages", m) != NULL; m++) {
      add_escaped (out, conf_text_at (it.object, "messages", m));
      g_string_append_c (out, '\n');
    }
    add_escaped (out, json_object_get_string_member_with_default (it.object, "stack", ""));
    g_string_append (out, "</pre>\n");
    for (guint f = 0; files != NULL && f < json_array_get_length (files); f++) {
      JsonObject *file = json_array_get_object_element (files, f);
      g_string_append (out, "<p>");
      add_escaped (out, json_object_get_string_member (file, "suffix"));
      g_string_append (out, "</p><pre>");
      add_escaped (out, json_object_get_string_member (file, "text"));
      g_string_append (out, "</pre>\n");
    }
    g_string_append (out, "</details>\n");
  }
}

static void
add_capabilities (GString *out, JsonObject *certificate)
{
  JsonArray *rows = json_object_has_member (certificate, "capabilities")
                        ? json_object_get_array_member (certificate, "capabilities")
                        : NULL;
  if (rows == NULL || json_array_get_length (rows) == 0)
    return;
  g_autoptr (GList) dtypes = json_object_get_members (json_object_get_object_member (
      json_array_get_object_element (rows, 0), "dtypes")); /* the first op has all */
  g_string_append (out, "<h2>Capabilities</h2>\n<table><tr><th>op</th>");
  for (GList *at = dtypes; at != NULL; at = at->next)
    g_string_append_printf (out, "<th>%s</th>", (const char *) at->data);
  g_string_append (out, "</tr>\n");
  for (guint i = 0; i < json_array_get_length (rows); i++) {
    JsonObject *row = json_array_get_object_element (rows, i);
    JsonObject *have = json_object_get_object_member (row, "dtypes");
    g_string_append (out, "<tr><th>");
    add_escaped (out, json_object_get_string_member (row, "op"));
    g_string_append (out, "</th>");
    for (GList *at = dtypes; at != NULL; at = at->next) {
      const char *how = json_object_get_string_member_with_default (have, at->data, "");
      add_cell (out, how, how);
    }
    g_string_append (out, "</tr>\n");
  }
  g_string_append (out, "</table>\n");
}

static void
add_worst (GString *out, JsonObject *certificate)
{
  JsonArray *rows = json_object_get_array_member (certificate, "worst");
  if (json_array_get_length (rows) == 0)
    return;
  g_string_append (out, "<h2>Worst errors</h2>\n<table><tr><th>op</th><th>dtype</th>"
                        "<th>worst</th><th>allowed</th><th>unit</th><th>case</th></tr>\n");
  for (guint i = 0; i < json_array_get_length (rows); i++) {
    JsonObject *row = json_array_get_object_element (rows, i);
    g_string_append (out, "<tr>");
    add_cell (out, "", json_object_get_string_member (row, "op"));
    add_cell (out, "", json_object_get_string_member (row, "dtype"));
    add_number (out, json_object_get_double_member (row, "worst"));
    add_number (out, json_object_get_double_member (row, "most"));
    add_cell (out, "", json_object_get_string_member (row, "unit"));
    add_cell (out, "", json_object_get_string_member (row, "case"));
    g_string_append (out, "</tr>\n");
  }
  g_string_append (out, "</table>\n");
}

static void
add_records (GString *out, JsonArray *cases)
{
  gboolean any = FALSE;
  for (guint i = 0; i < json_array_get_length (cases); i++) {
    ConfReported it = conf_certificate_case (cases, i);
    JsonArray *records = json_object_has_member (it.object, "records")
                             ? json_object_get_array_member (it.object, "records")
                             : NULL;
    for (guint r = 0; records != NULL && r < json_array_get_length (records); r++) {
      JsonObject *record = json_array_get_object_element (records, r);
      if (!any)
        g_string_append (out, "<h2>Measured</h2>\n<table><tr><th>case</th><th>what</th>"
                              "<th>value</th><th>unit</th></tr>\n");
      any = TRUE;
      g_string_append (out, "<tr>");
      add_cell (out, "", it.name);
      add_cell (out, "", json_object_get_string_member (record, "what"));
      add_number (out, json_object_get_double_member (record, "value"));
      add_cell (out, "", json_object_get_string_member (record, "unit"));
      g_string_append (out, "</tr>\n");
    }
  }
  if (any)
    g_string_append (out, "</table>\n");
}

static void
add_absent (GString *out, JsonArray *absent)
{
  if (json_array_get_length (absent) == 0)
    return;
  g_string_append (out, "<h2>Absent</h2>\n<p>What the device does not declare, which is its "
                        "right; no part of the score.</p>\n<table>\n");
  for (guint i = 0; i < json_array_get_length (absent); i++) {
    JsonObject *row = json_array_get_object_element (absent, i);
    add_row (out, json_object_get_string_member (row, "name"),
             json_object_get_string_member (row, "reason"));
  }
  g_string_append (out, "</table>\n");
}

char *
conf_report_html (JsonObject *certificate)
{
  GString *out
      = g_string_new ("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
                      "<title>tinycore conformance: ");
  JsonArray *cases = conf_certificate_cases (certificate);
  const char *spec = conf_certificate_text (certificate, "subject", "spec");
  const char *certified = json_object_get_string_member (certificate, "certified");
  gboolean is_good = json_object_get_int_member (certificate, "status") == CONF_EXIT_PASSED;
  add_escaped (out, spec);
  g_string_append_printf (out, "</title><style>%s</style></head><body>\n<h1>", style);
  add_escaped (out, spec);
  g_string_append_printf (out,
                          "</h1>\n<p class=\"verdict %s\">%" G_GINT64_FORMAT
                          " of %" G_GINT64_FORMAT " that must pass did; certified: %s</p>\n",
                          is_good ? "good" : "poor",
                          conf_certificate_score (certificate, "passed"),
                          conf_certificate_score (certificate, "must"), certified);
  add_identity (out, certificate);
  add_score (out, certificate);
  add_failures (out, cases);
  add_groups (out, cases);
  add_capabilities (out, certificate);
  add_worst (out, certificate);
  add_records (out, cases);
  add_absent (out, json_object_get_array_member (certificate, "absent"));
  g_string_append (out, "</body></html>\n");
  return g_string_free (out, FALSE);
}
