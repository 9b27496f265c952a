/* SPDX-License-Identifier: MIT
 *
 * test-answer.c: a worker whose memory is damaged may answer anything: each answer is understood or refused with a
 * reason, and a worker that answers without end takes bounded memory and time and is said to be damaged. */
#include <glib/gstdio.h>
#include <string.h>

#include "answer.h"
#include "base/tiny-error.h"
#include "folder.h"
#include "worker.h"

/* An answer of each kind. */
static const char *const answers[] = {
  "{\"ready\": {}}",
  "{\"case\": {\"name\": \"a/b\", \"level\": 0, \"flags\": 1, \"seconds\": 60}}",
  "{\"absent\": {\"name\": \"a/b\", \"reason\": \"none\"}}",
  "{\"end\": 2}",
  "{\"result\": {\"name\": \"a/b\", \"outcome\": \"failed\", \"us\": 5, \"messages\": [\"no\"],"
  " \"records\": [{\"what\": \"x\", \"value\": 1.5, \"unit\": \"ns\"}],"
  " \"errors\": [{\"op\": 1, \"dtype\": 2, \"unit\": \"ulp\", \"worst\": 0.5, \"most\": 1.0}],"
  " \"files\": [{\"suffix\": \"txt\", \"text\": \"t\"}]}}",
  "{\"error\": {\"text\": \"no\", \"code\": 1}}",
  "{\"rung\": 0}",
  "{\"gap\": \"why\"}",
  "{\"top\": 1}",
};

static gboolean
is_read (const char *line, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (JsonNode) node = conf_answer_parse (line, size, &error);
  g_assert_true ((node != NULL) == (error == NULL));
  if (node == NULL) {
    g_assert_cmpuint (strlen (error->message), >, 5);
    return FALSE;
  }
  JsonObject *object = json_node_get_object (node);
  if (json_object_has_member (object, "case")) {
    JsonObject *named = json_object_get_object_member (object, "case");
    g_assert_cmpuint (strlen (json_object_get_string_member (named, "name")), >=, 2);
  }
  return TRUE;
}

static void
test_whole (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (answers); i++)
    g_assert_true (is_read (answers[i], strlen (answers[i])));
}

static void
test_wrong (void)
{
  static const char *const lines[] = {
    "{}",
    "{\"end\": \"2\"}",
    "{\"end\": 2, \"top\": 1}",
    "{\"case\": {\"level\": 0, \"flags\": 1, \"seconds\": 60}}",
    "{\"case\": {\"name\": \"\", \"level\": 0, \"flags\": 1, \"seconds\": 60}}",
    "{\"case\": {\"name\": \"a b/c\", \"level\": 0, \"flags\": 1, \"seconds\": 60}}",
    "{\"case\": {\"name\": \"a/b\", \"level\": 9, \"flags\": 1, \"seconds\": 60}}",
    "{\"case\": {\"name\": \"a/b\", \"level\": 0, \"flags\": 1, \"seconds\": -1}}",
    "{\"case\": []}",
    "{\"result\": {\"name\": \"a/b\", \"outcome\": \"good\", \"us\": 5}}",
    "{\"result\": {\"name\": \"a/b\", \"outcome\": \"failed\", \"us\": 5, \"messages\": [1]}}",
    "{\"result\": {\"name\": \"a/b\", \"outcome\": \"failed\", \"us\": 5, \"records\": [{}]}}",
    "{\"rung\": 1000}",
    "{\"ready\": {\"name\": \"x\"}}",
  };
  for (guint i = 0; i < G_N_ELEMENTS (lines); i++)
    g_assert_false (is_read (lines[i], strlen (lines[i])));
}

/* Each cut short anywhere, and with up to four bytes of it changed. */
static void
test_garbled (void)
{
  guint n_refused = 0;
  for (guint i = 0; i < G_N_ELEMENTS (answers); i++) {
    const gsize size = strlen (answers[i]);
    for (gsize n = 0; n < size; n++)
      g_assert_false (is_read (answers[i], n));
    for (guint j = 0; j < 1000; j++) {
      g_autofree char *line = g_strdup (answers[i]);
      for (guint n = 1 + j % 4; n > 0; n--)
        line[g_test_rand_int_range (0, (gint32) size)] = (char) g_test_rand_int_range (0, 256);
      n_refused += !is_read (line, size);
    }
  }
  g_assert_cmpuint (n_refused, >, 1000);
}

/* ---- workers ---- */
static const struct {
  const char *does; /* in the shell; descriptor 3 is its answers */
  int ends;         /* the sum of 1 << ConfEnd that it may end as */
  const char *why;  /* a part of what is said of it, or NULL */
} liars[] = {
  { "echo '{\"case\": {\"level\": 0}}' >&3; sleep 60", 1 << CONF_END_WORDS, "name is missing" },
  { "while :; do echo '{\"case\": {}}'; done >&3", 1 << CONF_END_WORDS, "is missing" },
  { "exec tr '\\0' '{' </dev/zero >&3", 1 << CONF_END_WORDS, "does not end" },
  { "exec tr '\\0' x </dev/zero >&3", 1 << CONF_END_WORDS, "does not end" },
  { "exec yes >&3", 1 << CONF_END_TIME, "not done in time" },
  { "exec yes", 1 << CONF_END_TIME, "not done in time" },
  { "exec yes '!' >&3", 1 << CONF_END_TIME, NULL },
  { "printf '{\"rung\": ' >&3; exit 5", 1 << CONF_END_EXIT, "exit status 5" },
  { "head -c 200000 /dev/urandom >&3; exit 5", 1 << CONF_END_EXIT | 1 << CONF_END_WORDS, NULL },
};

static void
test_liars (void)
{
  static const char script[] = "#!/bin/sh\neval \"$3\"\n";
  g_autofree char *folder = g_dir_make_tmp ("tiny-answer-XXXXXX", NULL);
  g_autofree char *program = g_build_filename (folder, "worker", NULL);
  g_auto (GStrv) environment = g_get_environ ();
  g_assert_true (
      g_file_set_contents_full (program, script, -1, G_FILE_SET_CONTENTS_NONE, 0700, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (liars); i++) {
    const ConfWorkerSetup setup = { .program = program,
                                    .environment = environment,
                                    .folder = folder,
                                    .device = (char *) liars[i].does,
                                    .path = (char *) "",
                                    .id = (char *) "" };
    g_autoptr (GError) error = NULL;
    ConfWorker *worker = conf_worker_new (&setup, CONF_WORKER_OPEN, &error);
    g_assert_no_error (error);
    for (guint n = 0; worker->end == CONF_END_NONE; n++) {
      g_autoptr (JsonNode) node = conf_worker_wait (worker, 2 * G_USEC_PER_SEC);
      g_assert_true (node == NULL && n == 0);
      g_assert_cmpuint (worker->received.room, <=, 4 * CONF_MAX_ANSWER);
      g_assert_cmpuint (worker->said_text->allocated_len, <=, 4 * CONF_MAX_ANSWER);
    }
    g_autofree char *why = conf_worker_explain (worker);
    if (!(liars[i].ends >> worker->end & 1)
        || (liars[i].why != NULL && strstr (why, liars[i].why) == NULL))
      g_error ("“%s” has ended as %u: it %s", liars[i].does, worker->end, why);
    conf_worker_free (worker);
  }
  conf_folder_remove_tree (folder);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/sdk-conformance/answer/whole", test_whole);
  g_test_add_func ("/sdk-conformance/answer/wrong", test_wrong);
  g_test_add_func ("/sdk-conformance/answer/garbled", test_garbled);
  g_test_add_func ("/sdk-conformance/answer/liars", test_liars);
  return g_test_run ();
}
