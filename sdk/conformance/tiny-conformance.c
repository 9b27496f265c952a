/* SPDX-License-Identifier: MIT
 *
 * tiny-conformance.c: the conformance suite; `tinycore conformance` starts it.
 *
 * This process finds out, asks and reports; it never loads the plugin. Workers do, which are this
 * program again (serve.c). */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/tiny-arguments.h"
#include "base/tiny-clean.h"
#include "run.h"
#include "serve.h"

static int
fail_usage (const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_printerr ("tinycore conformance: %s; see --help\n", text);
  return CONF_EXIT_USAGE;
}

static gboolean
read_seed (const char *text, guint64 *out)
{
  if (text == NULL)
    return TRUE;
  if (g_str_equal (text, "random")) {
    *out = (guint64) g_get_real_time () * 2654435761u >> 8;
    return TRUE;
  }
  return g_ascii_string_to_unsigned (text, 10, 0, G_MAXUINT64, out, NULL);
}

static int
start (const ConfOptions *options)
{
  return options->verify   ? conf_verify (options)
         : options->ladder ? conf_ladder (options)
                           : conf_run (options);
}

/* As they are written on the command line. */
typedef struct {
  ConfOptions options;
  char *level, *seed;
  char **filters;
  const char **given; /* the options */
  int n_jobs;
} CommandLine;

/* What is asked for, and which options say how; those that are not here go with everything. */
enum { OF_RUN = 1 << 0, OF_LIST = 1 << 1, OF_LADDER = 1 << 2, OF_VERIFY = 1 << 3 };
static const struct {
  const char *option;
  guint with;
} companions[] = {
  { "level", OF_RUN | OF_LIST },
  { "filter", OF_RUN | OF_LIST },
  { "seed", OF_RUN | OF_LIST },
  { "expect", OF_RUN | OF_LIST },
  { "fail-fast", OF_RUN },
  { "resume", OF_RUN },
  { "tap", OF_RUN },
  { "json", OF_RUN },
  { "junit", OF_RUN },
  { "html", OF_RUN },
  { "part", OF_VERIFY },
};

static gboolean
parse (CommandLine *self, int *argc, char ***argv, GError **error)
{
  ConfOptions *options = &self->options;
  const GOptionEntry entries[] = {
    { "level", 0, 0, G_OPTION_ARG_STRING, &self->level, "core, full, models or stress",
      "LEVEL" },
    { "filter", 0, 0, G_OPTION_ARG_STRING_ARRAY, &self->filters, "run these cases only",
      "GLOB" },
    { "list", 0, 0, G_OPTION_ARG_NONE, &options->list, "name the cases and run none", NULL },
    { "jobs", 'j', 0, G_OPTION_ARG_INT, &self->n_jobs, "workers at once", "N" },
    { "seed", 0, 0, G_OPTION_ARG_STRING, &self->seed,
      "of everything random: a number, or “random”", "N" },
    { "timeout-scale", 0, 0, G_OPTION_ARG_DOUBLE, &options->timeout_scale,
      "times as long as usual", "X" },
    { "manifest", 0, 0, G_OPTION_ARG_FILENAME, &options->manifest,
      "of the plugin's file; else one beside it, or an installed one that names it", "FILE" },
    { "progress", 0, 0, G_OPTION_ARG_DOUBLE, &options->progress,
      "seconds between lines that say how far it is, without a terminal (15; 0: none)", "S" },
    { "fail-fast", 0, 0, G_OPTION_ARG_NONE, &options->fail_fast,
      "stop at the first case that fails", NULL },
    { "tap", 0, 0, G_OPTION_ARG_NONE, &options->tap, "print TAP", NULL },
    { "junit", 0, 0, G_OPTION_ARG_FILENAME, &options->junit, "write JUnit's XML", "FILE" },
    { "html", 0, 0, G_OPTION_ARG_FILENAME, &options->html, "write a page", "FILE" },
    { "expect", 0, 0, G_OPTION_ARG_FILENAME, &options->expect, "failures that are known",
      "FILE" },
    { "resume", 0, 0, G_OPTION_ARG_NONE, &options->resume, "go on with an interrupted run",
      NULL },
    { "verify", 0, 0, G_OPTION_ARG_FILENAME, &options->verify,
      "run a random part of a certificate again", "FILE" },
    { "part", 0, 0, G_OPTION_ARG_DOUBLE, &options->part, "of it, 0 to 1 (0.05)", "X" },
    { "ladder", 0, 0, G_OPTION_ARG_NONE, &options->ladder, "say what to write next", NULL },
    { "json", 0, 0, G_OPTION_ARG_FILENAME, &options->json, "write the certificate", "FILE" },
    G_OPTION_ENTRY_NULL,
  };
  g_autoptr (GOptionContext) context = g_option_context_new ("DEVICE|FILE.so");
  g_option_context_set_summary (
      context,
      "Checks a backend against the contract: a device, named as in DEV=, or a "
      "plugin's file.\nExit status: 0 all that must pass passed, 1 something failed, 2 "
      "wrong command line,\n3 nothing ran or not all, 4 a crash or hang among the "
      "failures, 77 the device is not here.\nOf cases, “recorded” are measured and judged by "
      "nobody, “absent” are about what the device\ndoes not declare; neither counts.");
  g_option_context_add_main_entries (context, entries, NULL);
  self->given = tiny_arguments_list_given (entries, *argc, *argv);
  return tiny_arguments_check (entries, *argc, *argv, error)
         && g_option_context_parse (context, argc, argv, error);
}

/* CONF_EXIT_PASSED where no option would be ignored. */
static int
check_companions (const CommandLine *self)
{
  const ConfOptions *options = &self->options;
  const guint what = options->list             ? OF_LIST
                     : options->ladder         ? OF_LADDER
                     : options->verify != NULL ? OF_VERIFY
                                               : OF_RUN;
  const char *name = what == OF_LIST     ? "--list"
                     : what == OF_LADDER ? "--ladder"
                     : what == OF_VERIFY ? "--verify"
                                         : "a run";
  if (options->list + options->ladder + (options->verify != NULL) > 1)
    return fail_usage ("--list, --ladder and --verify exclude each other");
  for (guint i = 0; i < G_N_ELEMENTS (companions); i++) {
    if ((companions[i].with & what) != 0
        || !g_strv_contains (self->given, companions[i].option))
      continue;
    if (companions[i].with == OF_VERIFY)
      return fail_usage ("--%s goes with --verify CERTIFICATE alone", companions[i].option);
    return fail_usage ("--%s is of a run, and %s would ignore it", companions[i].option, name);
  }
  return CONF_EXIT_PASSED;
}

/* CONF_EXIT_PASSED where all of it can be meant. */
static int
check (CommandLine *self)
{
  ConfOptions *options = &self->options;
  options->filters = self->filters;
  options->n_jobs = (guint) self->n_jobs;
  options->level = self->level ? conf_level_from_string (self->level) : CONF_CORE;
  if (options->level == CONF_N_LEVELS)
    return fail_usage ("there is no level “%s”: core, full, models, stress", self->level);
  if (self->n_jobs < 1 || self->n_jobs > 256)
    return fail_usage ("--jobs %d is not from 1 to 256", self->n_jobs);
  if (!(options->timeout_scale >= 0.01 && options->timeout_scale <= 1000))
    return fail_usage ("--timeout-scale %g is not from 0.01 to 1000", options->timeout_scale);
  if (!(options->progress >= 0 && options->progress <= 86400))
    return fail_usage ("--progress %g is not from 0 to 86400", options->progress);
  if (!read_seed (self->seed, &options->seed))
    return fail_usage ("--seed “%s” is neither a number from 0 to %" G_GUINT64_FORMAT
                       " nor “random”",
                       self->seed, G_MAXUINT64);
  if (!(options->part >= 0 && options->part <= 1))
    return fail_usage ("--part %g is not from 0 to 1", options->part);
  return check_companions (self);
}

/* No output takes the place of what is read, or of another output. */
static int
check_outputs (const ConfOptions *options)
{
  const char *files[] = { options->json,     options->junit,  options->html,  options->spec,
                          options->manifest, options->expect, options->verify };
  enum { N_OUTPUTS = 3 };
  char *paths[G_N_ELEMENTS (files)];
  int status = CONF_EXIT_PASSED;
  for (guint i = 0; i < G_N_ELEMENTS (files); i++) {
    char *real = files[i] ? realpath (files[i], NULL) : NULL;
    paths[i] = real || files[i] == NULL ? real : g_canonicalize_filename (files[i], NULL);
  }
  for (guint i = 0; i < N_OUTPUTS && status == CONF_EXIT_PASSED; i++)
    for (guint j = i + 1; j < G_N_ELEMENTS (files) && status == CONF_EXIT_PASSED; j++)
      if (paths[i] != NULL && g_strcmp0 (paths[i], paths[j]) == 0
          && (j >= N_OUTPUTS || g_file_test (paths[i], G_FILE_TEST_IS_REGULAR)
              || !g_file_test (paths[i], G_FILE_TEST_EXISTS)))
        status = fail_usage (j < N_OUTPUTS ? "%s is to be two reports"
                                           : "%s would be lost: it is read as well",
                             files[i]);
  for (guint i = 0; i < G_N_ELEMENTS (files); i++)
    free (paths[i]);
  return status;
}

static void
clear (CommandLine *self)
{
  const ConfOptions *options = &self->options;
  const char *texts[] = { options->manifest, options->expect, options->json, options->junit,
                          options->html,     options->verify, self->level,   self->seed };
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    g_free ((char *) texts[i]);
  g_strfreev (self->filters);
  g_free (self->given);
}

int
main (int argc, char **argv)
{
  if (argc > 1 && g_str_equal (argv[1], "--serve"))
    return conf_serve (argc - 1, argv + 1);
  setlocale (LC_ALL, "");
  tiny_clean_printerr ();
  g_set_prgname ("tinycore conformance");
  g_autofree char *program = g_file_read_link ("/proc/self/exe", NULL);
  g_autoptr (GError) error = NULL;
  CommandLine line = { .n_jobs = (int) MIN (g_get_num_processors (), 4),
                       .options = { .program = program ? program : argv[0],
                                    .seed = 1,
                                    .timeout_scale = 1,
                                    .part = 0.05,
                                    .progress = 15 } };
  int status;
  if (!parse (&line, &argc, &argv, &error))
    status = fail_usage ("%s", error->message);
  else if (argc != 2 && !(argc == 1 && line.options.verify != NULL))
    status = fail_usage (argc < 2 ? "a device or a plugin's file is missing"
                                  : "one device or file is tested at a time");
  else if ((status = check (&line)) == CONF_EXIT_PASSED) {
    line.options.spec = argc > 1 ? argv[1] : NULL; /* then as the certificate says */
    status = check_outputs (&line.options);
    if (status == CONF_EXIT_PASSED)
      status = start (&line.options);
  }
  clear (&line);
  if ((fflush (stdout) != 0 || ferror (stdout)) && status == CONF_EXIT_PASSED) {
    g_printerr ("tinycore conformance: standard output cannot be written\n");
    status = CONF_EXIT_FAILED;
  }
  return status;
}
