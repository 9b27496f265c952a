/* SPDX-License-Identifier: MIT
 *
 * verify.c: whether a certificate holds: it is of this very binary and suite, what it says of the subject is so
 * here, it names every case that its run had and what each is, all that follows from them (score, status,
 * level, worst errors) is what it says, and a random part of them comes out as it says. Nothing that can be
 * known here is taken from the certificate; what cannot (when, where and how long it ran, and with which seed) is
 * looked at for what could not be, and printed as what nobody has verified. */
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

#include "base/tiny-clean.h"
#include "base/tiny-error.h"
#include "certificate.h"
#include "elf-note.h"
#include "plugin/tiny-json.h"

enum { MAX_BYTES = 256 << 20, MIN_CASES = 20 };

typedef struct {
  JsonObject *certificate; /* that is in doubt */
  JsonArray *cases;
  guint n_wrong;
} Verify;

/* A certificate is somebody else's, and so are its words. */
G_GNUC_PRINTF (1, 2)
static void
say (const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_autofree char *clean = tiny_clean_text (text, strlen (text));
  puts (clean);
}

G_GNUC_PRINTF (2, 3)
static void
object_to (Verify *self, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  if (self->n_wrong++ < 20)
    say ("  %s", text);
}

/* ---- reading it ---- */
static JsonNode *
load (const char *path, GError **error)
{
  g_autoptr (JsonNode) root = tiny_json_load (path, MAX_BYTES, error);
  if (root == NULL)
    g_prefix_error (error, "%s: ", path);
  else if (!conf_certificate_check_form (json_node_get_object (root), error))
    g_prefix_error (error, "%s: this is no certificate: ", path);
  else
    return g_steal_pointer (&root);
  return NULL;
}

/* ---- what can be seen without running ---- */
static void
compare_text (Verify *self, const char *what, const char *said, const char *found)
{
  if (!g_str_equal (said, found))
    object_to (self, "it is of another %s: %s, and here is %s", what, said, found);
}

static void
check_identity (Verify *self, const ConfRunning *running)
{
  g_autofree char *digest = conf_file_digest (running->wanted->path);
  g_autofree char *build_id = conf_file_build_id (running->wanted->path);
  g_autofree char *suite = conf_file_build_id (running->options->program);
  compare_text (self, "build of the plugin",
                conf_certificate_text (self->certificate, "subject", "build_id"), build_id);
  compare_text (self, "file", conf_certificate_text (self->certificate, "subject", "sha256"),
                digest);
  compare_text (self, "version of the suite",
                conf_certificate_text (self->certificate, "suite", "version"), TINY_VERSION);
  compare_text (self, "build of the suite",
                conf_certificate_text (self->certificate, "suite", "build_id"), suite);
}

static void
compare_node (Verify *self, const char *what, JsonNode *said, JsonNode *found)
{
  if (said != NULL && json_node_equal (said, found))
    return;
  g_autofree char *its = said ? json_to_string (said, FALSE) : g_strdup ("nothing");
  g_autofree char *ours = json_to_string (found, FALSE);
  object_to (self, "of the subject it says %s %.200s, and here it is %.200s", what, its, ours);
}

/* What the opened subject says of itself. The name of a device and how much memory it has are of the machine,
 * and the certificate is as good on another. */
static void
check_subject (Verify *self, const ConfRunning *running)
{
  static const char *const of_machine[] = { "device", "id", "title", "memory_bytes", NULL };
  JsonObject *said = json_object_get_object_member (self->certificate, "subject");
  g_autoptr (GList) names = json_object_get_members (running->facts);
  for (GList *at = names; at != NULL; at = at->next) {
    JsonNode *its = json_object_get_member (said, at->data);
    JsonNode *ours = json_object_get_member (running->facts, at->data);
    if (!g_strv_contains (of_machine, at->data))
      compare_node (self, at->data, its, ours);
    else if (its == NULL || !json_node_equal (its, ours)) {
      g_autofree char *text = its ? json_to_string (its, FALSE) : g_strdup ("nothing");
      g_autofree char *here = json_to_string (ours, FALSE);
      say ("  note: its %s is %.200s, and here it is %.200s", (const char *) at->data, text,
           here);
    }
  }
}

/* ---- what only its writer knows ---- */
/* The longest of its cases, in seconds. */
static double
find_longest (const Verify *self)
{
  double longest = 0;
  for (guint i = 0; i < json_array_get_length (self->cases); i++) {
    JsonObject *it = json_array_get_object_element (self->cases, i);
    longest
        = MAX (longest, (double) json_object_get_int_member_with_default (it, "us", 0) / 1e6);
  }
  return longest;
}

static void
check_date (Verify *self, const char *text)
{
  g_autoptr (GDateTime) date = g_date_time_new_from_iso8601 (text, NULL);
  g_autoptr (GDateTime) now = g_date_time_new_now_utc ();
  if (date == NULL)
    object_to (self, "its run.date “%.60s” is no date as 2026-01-31T12:00:00Z", text);
  else if (g_date_time_difference (date, now) > G_TIME_SPAN_DAY)
    object_to (self, "its run.date %.60s is yet to come", text); /* a clock may be a day off */
}

/* What could not be of any run. That the rest is true nobody can tell but who wrote it. */
static void
check_run (Verify *self)
{
  JsonObject *run = json_object_get_object_member (self->certificate, "run");
  const char *seed = conf_certificate_text (self->certificate, "run", "seed");
  const double seconds = json_object_get_double_member_with_default (run, "seconds", -1);
  const gint64 kept = json_object_get_int_member_with_default (run, "kept", -1);
  const guint n_cases = json_array_get_length (self->cases);
  check_date (self, conf_certificate_text (self->certificate, "run", "date"));
  if (!g_ascii_string_to_unsigned (seed, 10, 0, G_MAXUINT64, NULL, NULL))
    object_to (self, "its run.seed “%.60s” is no number of 64 bits", seed);
  if (conf_certificate_text (self->certificate, "run", "host")[0] == 0)
    object_to (self, "its run.host is missing");
  if (kept < 0 || kept > n_cases)
    object_to (self, "its run.kept is %" G_GINT64_FORMAT ", and it has %u cases", kept,
               n_cases);
  if (!(seconds >= 0 && seconds < 1e9))
    object_to (self, "its run.seconds is %g, which is no time", seconds);
  else if (kept == 0 && seconds < find_longest (self))
    object_to (self, "its run.seconds is %g, and one of its cases took %g s", seconds,
               find_longest (self));
}

/* Names of the file, and the driver, may be others elsewhere. */
static void
note_text (const Verify *self, const char *name, const char *found)
{
  const char *said = conf_certificate_text (self->certificate, "subject", name);
  if (!g_str_equal (said, found))
    say ("  note: its %s is “%.200s”, and here it is “%.200s”", name, said, found);
}

static void
check_file (Verify *self, const ConfRunning *running)
{
  JsonObject *subject = json_object_get_object_member (self->certificate, "subject");
  JsonObject *suite = json_object_get_object_member (self->certificate, "suite");
  g_autofree char *file = g_path_get_basename (running->wanted->path);
  GStatBuf info = { 0 };
  const gint64 said = json_object_get_int_member_with_default (subject, "bytes", -1);
  const gint64 major = json_object_get_int_member_with_default (suite, "abi_major", -1);
  const gint64 minor = json_object_get_int_member_with_default (suite, "abi_minor", -1);
  if (g_stat (running->wanted->path, &info) != 0 || said != info.st_size)
    object_to (self,
               "it is of a file of %" G_GINT64_FORMAT
               " bytes, and here it has %" G_GINT64_FORMAT,
               said, (gint64) info.st_size);
  if (major != TINY_PLUGIN_ABI_MAJOR || minor != TINY_PLUGIN_ABI_MINOR)
    object_to (self,
               "it is of plugin ABI %" G_GINT64_FORMAT ".%" G_GINT64_FORMAT
               ", and here it is %d.%d",
               major, minor, TINY_PLUGIN_ABI_MAJOR, TINY_PLUGIN_ABI_MINOR);
  note_text (self, "spec", running->options->spec);
  note_text (self, "file", file);
  note_text (self, "driver", conf_running_get_driver (running));
}

static void
print_unverified (const Verify *self)
{
  JsonObject *run = json_object_get_object_member (self->certificate, "run");
  say ("taken at its word, as nothing here can tell: that it ran on %s, for %.1f s, with seed "
       "%s, on “%s”; and of "
       "cases that did not run again now, their outcome, messages and times",
       conf_certificate_text (self->certificate, "run", "date"),
       json_object_get_double_member_with_default (run, "seconds", 0),
       conf_certificate_text (self->certificate, "run", "seed"),
       conf_certificate_text (self->certificate, "run", "host"));
}

/* What follows from its cases, and from the subject. */
static void
check_conclusions (Verify *self, const ConfRunning *running)
{
  g_autoptr (GPtrArray) wrong = conf_certificate_contradictions (self->certificate);
  g_autoptr (JsonNode) worst = json_node_new (JSON_NODE_ARRAY);
  g_autoptr (JsonNode) able = json_node_new (JSON_NODE_ARRAY);
  for (guint i = 0; i < wrong->len; i++)
    object_to (self, "%s", (const char *) wrong->pdata[i]);
  json_node_take_array (worst, conf_worst_errors_new (self->cases));
  json_node_take_array (able, conf_capabilities_new (running->facts));
  if (!json_node_equal (worst, json_object_get_member (self->certificate, "worst")))
    object_to (self, "its worst errors are not those of its cases");
  compare_node (self, "capabilities",
                json_object_get_member (self->certificate, "capabilities"), able);
}

/* Both have the same names with the same reasons, in whatever order. */
static void
check_absent (Verify *self, const ConfRunning *running)
{
  JsonArray *said = json_object_get_array_member (self->certificate, "absent");
  g_autoptr (GHashTable) here = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GHashTable) there = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < json_array_get_length (running->absent); i++) {
    JsonObject *it = json_array_get_object_element (running->absent, i);
    g_hash_table_insert (here, (gpointer) json_object_get_string_member (it, "name"),
                         (gpointer) json_object_get_string_member (it, "reason"));
  }
  for (guint i = 0; i < json_array_get_length (said); i++) {
    JsonObject *it = json_array_get_object_element (said, i);
    const char *name = json_object_get_string_member (it, "name");
    const char *reason = g_hash_table_lookup (here, name);
    if (g_strcmp0 (reason, json_object_get_string_member (it, "reason")) != 0)
      object_to (self, "it says that %s is absent: %s; here %s", name,
                 json_object_get_string_member (it, "reason"), reason ? reason : "it is not");
    g_hash_table_add (there, (gpointer) name);
  }
  GHashTableIter iter;
  gpointer name;
  g_hash_table_iter_init (&iter, here);
  while (g_hash_table_iter_next (&iter, &name, NULL))
    if (!g_hash_table_contains (there, name))
      object_to (self, "it does not say that %s is absent", (const char *) name);
}

static void
check_case (Verify *self, const ConfReported *it, const ConfPlanned *planned)
{
  if (planned == NULL) {
    object_to (self, "it has a case %s, which there is not", it->name);
    return;
  }
  if (!g_str_equal (it->level, conf_level_to_string (planned->level)))
    object_to (self, "it says that %s is of level %s, which is %s", it->name, it->level,
               conf_level_to_string (planned->level));
  if (it->must != ((planned->flags & CONF_RECORD) == 0))
    object_to (self, "it says that %s %s pass, which %s", it->name,
               it->must ? "must" : "need not", it->must ? "need not" : "must");
}

/* That it has the cases that a run like its own has, each once and as what it is. */
static void
check_names (Verify *self, const ConfRunning *running)
{
  const ConfOptions *options = running->options;
  g_autoptr (GHashTable) here = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GHashTable) there = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < running->planned->len; i++) {
    ConfPlanned *planned = running->planned->pdata[i];
    g_hash_table_insert (here, planned->name, planned);
  }
  for (guint i = 0; i < json_array_get_length (self->cases); i++) {
    ConfReported it = conf_certificate_case (self->cases, i);
    if (!g_hash_table_add (there, (gpointer) it.name))
      object_to (self, "it has the case %s twice", it.name);
    check_case (self, &it, g_hash_table_lookup (here, it.name));
  }
  for (guint i = 0; i < running->planned->len; i++) {
    const ConfPlanned *planned = running->planned->pdata[i];
    if (conf_is_wanted (planned, options->level, options->filters)
        && !g_hash_table_contains (there, planned->name))
      object_to (self, "it leaves out the case %s", planned->name);
  }
}

/* ---- running a part ---- */
/* Keeps of running's cases a random part of those that have run for the certificate. */
static void
choose_part (Verify *self, ConfRunning *running, double part)
{
  g_autoptr (GHashTable) chosen = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GPtrArray) ran = g_ptr_array_new ();
  for (guint i = 0; i < json_array_get_length (self->cases); i++) {
    ConfReported it = conf_certificate_case (self->cases, i);
    if (!g_str_equal (it.outcome, "not run"))
      g_ptr_array_add (ran, (gpointer) it.name);
  }
  guint n_wanted = MIN (ran->len, MAX ((guint) (part * ran->len), MIN_CASES));
  for (guint i = 0; i < ran->len; i++) { /* each of those that are left with the same chance */
    guint n_left = n_wanted - MIN (n_wanted, g_hash_table_size (chosen));
    if (g_random_int_range (0, (gint32) (ran->len - i)) < (gint32) n_left)
      g_hash_table_add (chosen, ran->pdata[i]);
  }
  for (guint i = running->planned->len; i-- > 0;)
    if (!g_hash_table_contains (chosen,
                                ((const ConfPlanned *) running->planned->pdata[i])->name))
      g_ptr_array_remove_index (running->planned, i);
}

static gboolean
is_success (const char *outcome)
{
  return g_str_equal (outcome, "passed") || g_str_equal (outcome, "recorded");
}

static void
compare_results (Verify *self, const ConfRunning *running)
{
  g_autoptr (GHashTable) said = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < json_array_get_length (self->cases); i++) {
    ConfReported it = conf_certificate_case (self->cases, i);
    g_hash_table_insert (said, (gpointer) it.name, (gpointer) it.outcome);
  }
  for (guint i = 0; i < running->planned->len; i++) {
    const ConfPlanned *planned = running->planned->pdata[i];
    const char *before = g_hash_table_lookup (said, planned->name);
    const char *now = planned->result
                          ? json_object_get_string_member (planned->result, "outcome")
                          : "not run";
    if (is_success (before) != is_success (now))
      object_to (self, "%s: it says %s, and now it is %s: %s", planned->name, before, now,
                 planned->result && conf_text_at (planned->result, "messages", 0)
                     ? conf_text_at (planned->result, "messages", 0)
                     : "");
  }
}

/* What it is worth, which is not the same as that it holds. */
static void
print_verdict (const Verify *self, const ConfRunning *running)
{
  const char *level = conf_certified_level (self->certificate);
  if (self->n_wrong > 0) {
    printf ("the certificate does not hold\n");
    return;
  }
  printf ("the certificate holds: %u of its %u cases ran again and came out the same\n",
          running->planned->len, json_array_get_length (self->cases));
  if (running->options->filters[0] != NULL)
    printf ("it is of a filtered run and certifies nothing\n");
  else if (g_str_equal (level, "none"))
    printf ("it is of a run that did not pass and certifies nothing\n");
  else
    printf ("it certifies level %s\n", level);
  print_unverified (self);
}

static int
verify_running (Verify *self, ConfRunning *running)
{
  const ConfOptions *options = running->options;
  say ("%s: %s, level %s, seed %" G_GUINT64_FORMAT, options->verify, options->spec,
       conf_level_to_string (options->level), options->seed);
  conf_running_narrow_absent (running);
  check_identity (self, running);
  check_file (self, running);
  check_run (self);
  check_subject (self, running);
  check_names (self, running);
  check_absent (self, running);
  check_conclusions (self, running);
  if (self->n_wrong == 0) {
    choose_part (self, running, options->part);
    conf_running_run (running);
    compare_results (self, running);
  }
  print_verdict (self, running);
  return self->n_wrong > 0           ? CONF_EXIT_FAILED
         : running->planned->len > 0 ? CONF_EXIT_PASSED
                                     : CONF_EXIT_BELOW;
}

/* The options of the run that it is of. */
static ConfOptions
options_of (const ConfOptions *options, JsonObject *certificate, char **filters)
{
  ConfOptions out = *options;
  out.level = conf_level_from_string (conf_certificate_text (certificate, "run", "level"));
  out.seed = g_ascii_strtoull (conf_certificate_text (certificate, "run", "seed"), NULL, 10);
  if (out.spec == NULL)
    out.spec = conf_certificate_text (certificate, "subject", "spec");
  out.filters = filters;
  return out;
}

static char **
read_filters (JsonObject *certificate)
{
  JsonArray *array = json_object_get_array_member (
      json_object_get_object_member (certificate, "run"), "filters");
  guint n = json_array_get_length (array);
  char **out = g_new0 (char *, n + 1);
  for (guint i = 0; i < n; i++)
    out[i] = g_strdup (json_array_get_string_element (array, i));
  return out;
}

int
conf_verify (const ConfOptions *options)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (JsonNode) root = load (options->verify, &error);
  ConfRunning running = { 0 };
  int status = CONF_EXIT_FAILED;
  if (root == NULL) {
    g_printerr ("tinycore conformance: %s\n", error->message);
    return CONF_EXIT_USAGE;
  }
  Verify self = { .certificate = json_node_get_object (root) };
  self.cases = conf_certificate_cases (self.certificate);
  g_auto (GStrv) filters = read_filters (self.certificate);
  const ConfOptions own = options_of (options, self.certificate, filters);
  if (conf_running_begin (&running, &own, &status))
    status = verify_running (&self, &running);
  else if (running.planned != NULL && running.planned->len > 0)
    printf ("the certificate does not hold: the plugin cannot be opened\n");
  conf_running_end (&running);
  return status;
}
