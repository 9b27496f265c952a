/* SPDX-License-Identifier: MIT
 *
 * verify.c: whether a certificate holds: it is of this very binary and suite, it names every case that
 * there is, its score is that of its cases, and a random part of them comes out as it says. */
#include <stdio.h>
#include <string.h>

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

G_GNUC_PRINTF (2, 3)
static void
object_to (Verify *self, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  if (self->n_wrong++ < 20)
    printf ("  %s\n", text);
}

/* ---- reading it ---- */
static gboolean
has_parts (JsonObject *object)
{
  static const struct {
    const char *name;
    JsonNodeType type;
  } parts[] = { { "subject", JSON_NODE_OBJECT }, { "suite", JSON_NODE_OBJECT },
                { "run", JSON_NODE_OBJECT },     { "score", JSON_NODE_OBJECT },
                { "cases", JSON_NODE_ARRAY },    { "absent", JSON_NODE_ARRAY } };
  if (g_strcmp0 (json_object_get_string_member_with_default (object, "format", ""), CONF_FORMAT)
      != 0)
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    if (!json_object_has_member (object, parts[i].name)
        || json_node_get_node_type (json_object_get_member (object, parts[i].name))
               != parts[i].type)
      return FALSE;
  JsonArray *cases = json_object_get_array_member (object, "cases");
  for (guint i = 0; i < json_array_get_length (cases); i++) {
    JsonNode *node = json_array_get_element (cases, i);
    JsonObject *it = JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
    if (it == NULL || !json_object_has_member (it, "name")
        || !json_object_has_member (it, "outcome") || !json_object_has_member (it, "must"))
      return FALSE;
  }
  return TRUE;
}

static JsonNode *
load (const char *path, GError **error)
{
  g_autoptr (JsonNode) root = tiny_json_load (path, MAX_BYTES, error);
  if (root == NULL)
    g_prefix_error (error, "%s: ", path);
  else if (!has_parts (json_node_get_object (root)))
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "%s: this is no certificate (%s)", path,
                 CONF_FORMAT);
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
  compare_text (self, "build of the plugin",
                conf_certificate_text (self->certificate, "subject", "build_id"), build_id);
  compare_text (self, "file", conf_certificate_text (self->certificate, "subject", "sha256"),
                digest);
  compare_text (self, "version of the suite",
                conf_certificate_text (self->certificate, "suite", "version"), TINY_VERSION);
}

static void
check_score (Verify *self)
{
  JsonArray *absent = json_object_get_array_member (self->certificate, "absent");
  g_autoptr (JsonObject) score = conf_score_new (self->cases, absent);
  g_autoptr (GList) names = json_object_get_members (score);
  for (GList *at = names; at != NULL; at = at->next) {
    gint64 here = json_object_get_int_member (score, at->data);
    if (here != conf_certificate_score (self->certificate, at->data))
      object_to (self, "its score says %" G_GINT64_FORMAT " %s, its cases %" G_GINT64_FORMAT,
                 conf_certificate_score (self->certificate, at->data), (const char *) at->data,
                 here);
  }
}

/* That each has the cases of the other, which a run without filters has. */
static void
check_names (Verify *self, const ConfRunning *running, ConfLevel level)
{
  g_autoptr (GHashTable) here = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GHashTable) there = g_hash_table_new (g_str_hash, g_str_equal);
  JsonObject *run = json_object_get_object_member (self->certificate, "run");
  gboolean is_whole
      = json_array_get_length (json_object_get_array_member (run, "filters")) == 0;
  for (guint i = 0; i < running->planned->len; i++)
    g_hash_table_add (here, ((const ConfPlanned *) running->planned->pdata[i])->name);
  for (guint i = 0; i < json_array_get_length (self->cases); i++) {
    ConfReported it = conf_certificate_case (self->cases, i);
    g_hash_table_add (there, (gpointer) it.name);
    if (!g_hash_table_contains (here, it.name))
      object_to (self, "it has a case %s, which there is not", it.name);
  }
  for (guint i = 0; i < running->planned->len && is_whole; i++) {
    const ConfPlanned *planned = running->planned->pdata[i];
    if (planned->level <= level && !g_hash_table_contains (there, planned->name))
      object_to (self, "it leaves out the case %s", planned->name);
  }
}

/* ---- running a part ---- */
/* Keeps of running's cases a random part of those that the certificate has. */
static void
choose_part (Verify *self, ConfRunning *running, double part)
{
  g_autoptr (GHashTable) chosen = g_hash_table_new (g_str_hash, g_str_equal);
  guint n = json_array_get_length (self->cases);
  guint n_wanted = MIN (n, MAX ((guint) (part * n), MIN_CASES));
  for (guint i = 0; i < n; i++) { /* each of those that are left with the same chance */
    ConfReported it = conf_certificate_case (self->cases, i);
    guint n_left = n_wanted - MIN (n_wanted, g_hash_table_size (chosen));
    if (g_random_int_range (0, (gint32) (n - i)) < (gint32) n_left)
      g_hash_table_add (chosen, (gpointer) it.name);
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

static int
verify_running (Verify *self, ConfRunning *running)
{
  const ConfOptions *options = running->options;
  printf ("%s: %s, level %s, seed %" G_GUINT64_FORMAT "\n", options->verify, options->spec,
          conf_level_to_string (options->level), options->seed);
  check_identity (self, running);
  check_score (self);
  check_names (self, running, options->level);
  if (self->n_wrong == 0) {
    choose_part (self, running, options->part);
    conf_running_run (running);
    compare_results (self, running);
  }
  guint n_all = json_array_get_length (self->cases);
  if (self->n_wrong > 0)
    printf ("the certificate does not hold\n");
  else
    printf ("the certificate holds: %u of its %u cases ran again and came out the same\n",
            running->planned->len, n_all);
  return self->n_wrong > 0           ? CONF_EXIT_FAILED
         : running->planned->len > 0 ? CONF_EXIT_PASSED
                                     : CONF_EXIT_BELOW;
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
  ConfOptions own = *options;
  self.cases = conf_certificate_cases (self.certificate);
  own.level = conf_level_from_string (conf_certificate_text (self.certificate, "run", "level"));
  own.seed
      = g_ascii_strtoull (conf_certificate_text (self.certificate, "run", "seed"), NULL, 10);
  if (own.spec == NULL)
    own.spec = conf_certificate_text (self.certificate, "subject", "spec");
  own.filters = NULL;
  if (own.level == CONF_N_LEVELS)
    own.level = CONF_CORE;
  if (conf_running_begin (&running, &own, &status))
    status = verify_running (&self, &running);
  else if (running.planned != NULL && running.planned->len > 0)
    printf ("the certificate does not hold: the plugin cannot be opened\n");
  conf_running_end (&running);
  return status;
}
