/* SPDX-License-Identifier: MIT
 *
 * report-text.c: the summary for people, and TAP (the Test Anything Protocol, version 13). */
#include <stdio.h>
#include <string.h>

#include "certificate.h"

/* Every line of @text behind @prefix. */
static void
print_lines (const char *prefix, const char *text)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++)
    if (lines[i][0] != 0 || lines[i + 1] != NULL)
      printf ("%s%s\n", prefix, lines[i]);
}

static void
print_details (const ConfReported *it, const char *prefix)
{
  const char *expectation = "";
  if (json_object_has_member (it->object, "expectation"))
    expectation = json_object_get_string_member_with_default (
        json_object_get_object_member (it->object, "expectation"), "text", "");
  if (expectation[0] != 0)
    print_lines (prefix, expectation);
  for (guint i = 0; conf_text_at (it->object, "messages", i) != NULL; i++)
    print_lines (prefix, conf_text_at (it->object, "messages", i));
  const char *stack = json_object_get_string_member_with_default (it->object, "stack", "");
  if (stack[0] != 0) {
    printf ("%sstack:\n", prefix);
    print_lines (prefix, stack);
  }
}

static gboolean
could_not_measure (const ConfReported *it)
{
  return !it->is_bad && g_str_equal (it->outcome, "recorded")
         && conf_text_at (it->object, "messages", 0) != NULL;
}

/* ---- TAP ---- */
/* TAP's word for a failure that is known, in two parts for those who search our own files for it. */
#define EXPECTED_FAILURE                                                                       \
  "TO"                                                                                         \
  "DO"

static void
print_tap (guint number, const ConfReported *it)
{
  gboolean is_expected = !it->is_bad && g_str_equal (it->outcome, "failed");
  gboolean not_run = g_str_equal (it->outcome, "not run");
  printf ("%s %u - %s%s\n", it->is_bad || is_expected || not_run ? "not ok" : "ok", number,
          it->name, is_expected ? " # " EXPECTED_FAILURE " expected to fail" : "");
  if (not_run)
    printf ("# it has not run\n");
  if (it->is_bad || is_expected || could_not_measure (it))
    print_details (it, "# ");
}

void
conf_report_tap_begin (void)
{
  printf ("TAP version 13\n");
  fflush (stdout);
}

void
conf_report_tap (JsonObject *certificate)
{
  JsonArray *cases = conf_certificate_cases (certificate);
  JsonArray *absent = json_object_get_array_member (certificate, "absent");
  guint n = json_array_get_length (cases), n_absent = json_array_get_length (absent);
  printf ("1..%u\n", n + n_absent);
  for (guint i = 0; i < n; i++) {
    ConfReported it = conf_certificate_case (cases, i);
    print_tap (i + 1, &it);
  }
  for (guint i = 0; i < n_absent; i++) {
    JsonObject *object = json_array_get_object_element (absent, i);
    printf ("ok %u - %s # SKIP %s\n", n + i + 1, json_object_get_string_member (object, "name"),
            json_object_get_string_member (object, "reason"));
  }
}

/* ---- for people ---- */
static gsize
group_length (const char *name)
{
  return strcspn (name, "/");
}

/* From @first on, all of one group; returns the first of the next. */
static guint
print_group (JsonArray *cases, guint first)
{
  guint n = json_array_get_length (cases), good = 0, bad = 0, expected = 0, must = 0,
        recorded = 0, not_run = 0, i;
  const char *group = conf_certificate_case (cases, first).name;
  gsize length = group_length (group);
  for (i = first; i < n; i++) {
    ConfReported it = conf_certificate_case (cases, i);
    if (group_length (it.name) != length || strncmp (it.name, group, length) != 0)
      break;
    must += it.must;
    recorded += g_str_equal (it.outcome, "recorded");
    not_run += g_str_equal (it.outcome, "not run");
    bad += it.is_bad;
    expected += !it.is_bad && g_str_equal (it.outcome, "failed");
    good += it.must && !it.is_bad && g_str_equal (it.outcome, "passed");
  }
  printf ("  %-16.*s %6u of %-6u", (int) length, group, good, must);
  if (recorded > 0)
    printf (" %u recorded", recorded);
  if (bad > 0)
    printf (" %u failed", bad);
  if (expected > 0)
    printf (" %u expected to fail", expected);
  if (not_run > 0)
    printf (" %u not run", not_run);
  printf ("\n");
  return i;
}

/* A few of each group: one cause may fail hundreds of cases, and the next group may have the one that tells. */
static void
print_failures (JsonArray *cases, const char *spec)
{
  enum { MOST_OF_GROUP = 4, MANY = 20 };
  const guint n = json_array_get_length (cases);
  guint n_all = 0;
  for (guint first = 0, next; first < n; first = next) {
    const char *group = conf_certificate_case (cases, first).name;
    const gsize length = group_length (group) + 1;
    guint n_bad = 0;
    for (next = first; next < n; next++) {
      ConfReported it = conf_certificate_case (cases, next);
      if (strncmp (it.name, group, length) != 0)
        break;
      if (!it.is_bad || n_bad++ >= MOST_OF_GROUP)
        continue;
      printf ("\n%s %s\n", it.name, it.outcome);
      print_details (&it, "  ");
    }
    if (n_bad > MOST_OF_GROUP)
      printf ("\nand %u more of %.*s; --tap and --json name all\n", n_bad - MOST_OF_GROUP,
              (int) length - 1, group);
    n_all += n_bad;
  }
  if (n_all > MANY)
    printf ("\nSo many have few causes: “tinycore conformance --ladder %s” stops at the first "
            "thing that does not work.\n",
            spec);
}

/* No failure, and yet somebody wants to know why a number is not there. */
static void
print_unmeasured (JsonArray *cases)
{
  for (guint i = 0; i < json_array_get_length (cases); i++) {
    ConfReported it = conf_certificate_case (cases, i);
    if (!could_not_measure (&it))
      continue;
    printf ("\n%s could not measure all, which is no failure\n", it.name);
    print_details (&it, "  ");
  }
}

void
conf_report_text (JsonObject *certificate)
{
  JsonArray *cases = conf_certificate_cases (certificate);
  const char *device = conf_certificate_text (certificate, "subject", "device");
  const char *certified
      = json_object_get_string_member_with_default (certificate, "certified", "none");
  printf ("%s %s (%s), seed %s\n",
          device[0] ? device : conf_certificate_text (certificate, "subject", "spec"),
          conf_certificate_text (certificate, "subject", "title"),
          conf_certificate_text (certificate, "subject", "arch"),
          conf_certificate_text (certificate, "run", "seed"));
  for (guint i = 0; i < json_array_get_length (cases);)
    i = print_group (cases, i);
  print_failures (cases, conf_certificate_text (certificate, "subject", "spec"));
  print_unmeasured (cases);
  printf ("\nlevel %s: %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " that must pass did",
          conf_certificate_text (certificate, "run", "level"),
          conf_certificate_score (certificate, "passed"),
          conf_certificate_score (certificate, "must"));
  static const struct {
    const char *name, *meaning;
  } others[] = { { "failed", "" },
                 { "crashed", "" },
                 { "hung", "" },
                 { "expected", " to fail" },
                 { "not run", "" },
                 { "recorded", " (measured, judged by nobody)" },
                 { "absent", " (not declared, so not asked for)" } };
  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    if (conf_certificate_score (certificate, others[i].name) > 0)
      printf (", %" G_GINT64_FORMAT " %s%s",
              conf_certificate_score (certificate, others[i].name), others[i].name,
              others[i].meaning);
  const char *stopped = conf_certificate_text (certificate, "run", "stopped");
  if (stopped[0] != 0)
    printf ("; stopped %s", stopped);
  else if (conf_certificate_score (certificate, "not run") > 0)
    printf ("; interrupted, --resume goes on");
  printf ("; %.1f s; certified: %s\n",
          json_object_get_double_member (json_object_get_object_member (certificate, "run"),
                                         "seconds"),
          certified);
}
