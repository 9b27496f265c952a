/* SPDX-License-Identifier: MIT
 *
 * report-junit.c: JUnit's XML, as CI servers read it: a suite for each group, crashes as errors,
 * what is absent or expected to fail as skipped. */
#include <string.h>

#include "certificate.h"

/* Text that an XML file may hold: no control characters, markup escaped. */
static char *
escape (const char *text)
{
  g_autofree char *copy = g_utf8_make_valid (text, -1);
  for (char *c = copy; *c != 0; c++)
    if ((guchar) *c < 0x20 && *c != '\n' && *c != '\t')
      *c = '?';
  return g_markup_escape_text (copy, -1);
}

static void
add_details (GString *out, JsonObject *object)
{
  for (guint i = 0; conf_text_at (object, "messages", i) != NULL; i++) {
    g_autofree char *text = escape (conf_text_at (object, "messages", i));
    g_string_append_printf (out, "%s\n", text);
  }
  static const char *const others[] = { "stack", "said" };
  for (guint i = 0; i < G_N_ELEMENTS (others); i++) {
    g_autofree char *text
        = escape (json_object_get_string_member_with_default (object, others[i], ""));
    if (text[0] != 0)
      g_string_append_printf (out, "%s:\n%s\n", others[i], text);
  }
}

static void
add_case (GString *out, const ConfReported *it, const char *group, const char *name)
{
  g_autofree char *message = escape (conf_text_at (it->object, "messages", 0)
                                         ? conf_text_at (it->object, "messages", 0)
                                         : it->outcome);
  gboolean is_expected = !it->is_bad && g_str_equal (it->outcome, "failed");
  gboolean is_plain = g_str_equal (it->outcome, "failed") || g_str_equal (it->outcome, "passed")
                      || g_str_equal (it->outcome, "recorded");
  gint64 us = json_object_get_int_member_with_default (it->object, "us", 0);
  g_string_append_printf (out,
                          "    <testcase classname=\"%s\" name=\"%s\" time=\"%" G_GINT64_FORMAT
                          ".%06" G_GINT64_FORMAT "\">\n",
                          group, name, us / 1000000, us % 1000000);
  if (it->is_bad) {
    const char *word = is_plain ? "failure" : "error";
    g_string_append_printf (out, "      <%s type=\"%s\" message=\"%s\">", word, it->outcome,
                            message);
    add_details (out, it->object);
    g_string_append_printf (out, "</%s>\n", word);
  } else if (is_expected) {
    g_string_append_printf (out, "      <skipped message=\"expected to fail: %s\"/>\n",
                            message);
  } else if (g_str_equal (it->outcome, "not run")) {
    g_string_append (out, "      <error type=\"not run\" message=\"it has not run\"/>\n");
  }
  g_string_append (out, "    </testcase>\n");
}

/* The part before the slash, escaped, and the one behind it. */
static char *
split_name (const char *whole, char **out_name)
{
  const char *slash = strchr (whole, '/');
  g_autofree char *group = slash ? g_strndup (whole, (gsize) (slash - whole)) : g_strdup ("");
  *out_name = escape (slash ? slash + 1 : whole);
  return escape (group);
}

static void
add_suite (GString *out, const char *group, const GString *inner, const guint counts[4])
{
  if (inner->len > 0)
    g_string_append_printf (out,
                            "  <testsuite name=\"%s\" tests=\"%u\" failures=\"%u\" "
                            "errors=\"%u\" skipped=\"%u\">\n%s  </testsuite>\n",
                            group, counts[0], counts[1], counts[2], counts[3], inner->str);
}

typedef struct {
  GString *out, *inner;
  char *group;     /* of what @inner holds */
  guint counts[4]; /* tests, failures, errors, skipped */
} Junit;

static void
enter_group (Junit *self, const char *group)
{
  if (self->group != NULL && g_str_equal (self->group, group))
    return;
  if (self->group != NULL)
    add_suite (self->out, self->group, self->inner, self->counts);
  g_string_truncate (self->inner, 0);
  memset (self->counts, 0, sizeof self->counts);
  g_free (self->group);
  self->group = g_strdup (group);
}

static void
count_case (Junit *self, const ConfReported *it)
{
  gboolean not_run = g_str_equal (it->outcome, "not run");
  gboolean is_failure = g_str_equal (it->outcome, "failed")
                        || g_str_equal (it->outcome, "passed")
                        || g_str_equal (it->outcome, "recorded");
  self->counts[0]++;
  if (it->is_bad && is_failure)
    self->counts[1]++;
  else if (it->is_bad || not_run)
    self->counts[2]++;
  else if (g_str_equal (it->outcome, "failed"))
    self->counts[3]++;
}

static void
add_absent (Junit *self, JsonObject *object)
{
  g_autofree char *name = NULL;
  g_autofree char *group = split_name (json_object_get_string_member (object, "name"), &name);
  g_autofree char *reason = escape (json_object_get_string_member (object, "reason"));
  enter_group (self, group);
  self->counts[0]++;
  self->counts[3]++;
  g_string_append_printf (self->inner,
                          "    <testcase classname=\"%s\" name=\"%s\">\n"
                          "      <skipped message=\"%s\"/>\n    </testcase>\n",
                          group, name, reason);
}

char *
conf_report_junit (JsonObject *certificate)
{
  JsonArray *cases = conf_certificate_cases (certificate);
  JsonArray *absent = json_object_get_array_member (certificate, "absent");
  Junit self = { .out = g_string_new (NULL), .inner = g_string_new (NULL) };
  g_autofree char *title = escape (conf_certificate_text (certificate, "subject", "spec"));
  g_string_printf (self.out,
                   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                   "<testsuites name=\"tinycore conformance %s\">\n",
                   title);
  for (guint i = 0; i < json_array_get_length (cases); i++) {
    ConfReported it = conf_certificate_case (cases, i);
    g_autofree char *name = NULL;
    g_autofree char *group = split_name (it.name, &name);
    enter_group (&self, group);
    count_case (&self, &it);
    add_case (self.inner, &it, group, name);
  }
  for (guint i = 0; i < json_array_get_length (absent); i++)
    add_absent (&self, json_array_get_object_element (absent, i));
  enter_group (&self, "");
  g_free (self.group);
  g_string_free (self.inner, TRUE);
  g_string_append (self.out, "</testsuites>\n");
  return g_string_free (self.out, FALSE);
}
