/* SPDX-License-Identifier: MIT
 *
 * replay.c: what the compiler makes of a corpus of programs for targets that need not be here, a line for each.
 *
 * usage: replay CORPUS [--target NAME] [--case PATTERN] [--dump DIR]. A line is sorted text:
 *
 *   CASE TARGET plans=P kernels=K launches=L bytes=B temporary=T memory=M SCHEDULE KERNEL…
 *
 * P schedules were made; L launches of K different kernels move B bytes by the core's estimate; T bytes are in the schedules'
 * arenas, M is the most memory in use beyond what there was before. SCHEDULE digests the schedules' text without
 * kernels' names; each KERNEL, in the order of first launches, is a digest of its optimisations and one of its linear program. With
 * --dump DIR holds the texts, a file a line.
 *
 * Each case runs in a process forked from one that has opened the target and nothing else: no case sees another's plans. */
#include <dlfcn.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/tiny-codegen.h"
#include "engine/tiny-executable.h"
#include "engine/tiny-plan.h"
#include "engine/tiny-runtime.h"
#include "paper.h"
#include "replay.h"

static const struct {
  const char *name;
  ReplayCorpus add;
} corpora[] = {
  { "attention", replay_add_attention }, { "examples", replay_add_examples },
  { "inventory", replay_add_inventory }, { "models", replay_add_models },
  { "random", replay_add_random },       { "scans", replay_add_scans },
};

static const char *const target_names[] = {
#define REPLAY_TARGET(name, ...) name,
#include "targets.def"
#undef REPLAY_TARGET
};

enum { CASE_SECONDS = 120 };

static char *option_target, *option_case, *option_dump;

/* ---- what is noted of a case ---- */
typedef struct {
  char *name, *opts;
  gint64 n_bytes;
  char *listing; /* for --dump */
} Kernel;

static struct {
  TinyDevice *device;
  PaperTakeLaunches take_launches;
  GHashTable *kernels; /* PaperProgram → Kernel */
  GString *schedules;
  guint n_schedules;
  gint64 temporary_bytes;
  guint64 memory_before;
} noted;

static guint64
fnv (const char *text)
{
  guint64 hash = G_GUINT64_CONSTANT (0xcbf29ce484222325);
  for (; *text != 0; text++)
    hash = (hash ^ (guint8) *text) * G_GUINT64_CONSTANT (0x100000001b3);
  return hash ^ hash >> 29;
}

/* @n letters that stand for six bits each. */
static void
append_digest (GString *out, guint64 digest, guint n)
{
  static const char letters[]
      = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  for (guint i = 0; i < n; i++, digest >>= 6)
    g_string_append_c (out, letters[digest & 63]);
}

/* The listing of what the heuristic makes of @kernel, as the engine does it. */
static char *
list_kernel (TinyNode *kernel)
{
  g_autoptr (TinyGraph) own = tiny_graph_new ();
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (own, tiny_graph_import (own, kernel),
                              tiny_device_get_target (noted.device), NULL, 0, NULL);
  return program != NULL ? tiny_linear_to_string (&program->linear) : NULL;
}

static void
note_kernel (const TinyExecutable *executable, TinyNode *node)
{
  PaperProgram *program = tiny_program_get_handle (executable->program);
  if (g_hash_table_contains (noted.kernels, program))
    return;
  Kernel *kernel = g_new0 (Kernel, 1);
  kernel->name = g_strdup (executable->name);
  kernel->opts = g_strdup (executable->opts);
  kernel->n_bytes = executable->n_bytes;
  kernel->listing = option_dump != NULL ? list_kernel (node) : NULL;
  g_hash_table_insert (noted.kernels, program, kernel);
}

/* Adds the schedule's text, in which kernels have no names. */
static void
note_text (const TinySchedule *schedule)
{
  g_autofree char *text = tiny_schedule_to_string (schedule);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++) {
    const char *on = g_str_has_prefix (lines[i], "kernel ") ? strstr (lines[i], " on ") : NULL;
    g_string_append_printf (noted.schedules, "%s%s\n", on != NULL ? "kernel" : "",
                            on != NULL ? on : lines[i]);
  }
}

static void
note_schedule (const TinySchedule *schedule, const GArray *verdicts, gpointer unused)
{
  g_autoptr (GPtrArray) kernels = g_ptr_array_new ();
  for (guint i = 0; i < schedule->n_items; i++)
    if (schedule->items[i].kind == TINY_SCHEDULE_KERNEL)
      g_ptr_array_add (kernels, schedule->items[i].kernel);
  g_autofree TinyExecutable **executables = g_new0 (TinyExecutable *, kernels->len + 1);
  noted.n_schedules++;
  note_text (schedule);
  for (guint i = 0; i < schedule->n_arenas; i++)
    noted.temporary_bytes += schedule->arenas[i].n_bytes;
  /* The plan asks for the same again, and fails as this does. */
  if (tiny_executables_get (noted.device, schedule->graph, (TinyNode *const *) kernels->pdata,
                            NULL, kernels->len, executables, NULL))
    for (guint i = 0; i < kernels->len; i++) {
      note_kernel (executables[i], kernels->pdata[i]);
      tiny_executable_unref (executables[i]);
    }
}

void
replay_begin_launches (void)
{
  guint32 n;
  noted.take_launches (&n);
}

void
replay_begin (void)
{
  TinyDeviceMemory memory;
  g_string_truncate (noted.schedules, 0);
  noted.n_schedules = 0;
  noted.temporary_bytes = 0;
  tiny_device_reset_peak (noted.device);
  tiny_device_get_memory (noted.device, &memory);
  noted.memory_before = memory.live_bytes;
  replay_begin_launches ();
}

/* ---- one line ---- */
static void
dump (const char *name, const char *target, const char *line, const GPtrArray *programs)
{
  g_autofree char *file = g_strdup_printf ("%s.%s", name, target);
  g_strdelimit (file, "/:", '-');
  g_autofree char *path = g_build_filename (option_dump, file, NULL);
  g_autoptr (GString) text = g_string_new (line);
  g_string_append (text, noted.schedules->str);
  for (guint i = 0; i < programs->len; i++) {
    const Kernel *kernel = g_hash_table_lookup (noted.kernels, programs->pdata[i]);
    g_string_append_printf (text,
                            "\n---- %s, %" G_GINT64_FORMAT " bytes a launch; opts: %s\n%s",
                            kernel->name, kernel->n_bytes, kernel->opts, kernel->listing);
  }
  if (!g_file_set_contents (path, text->str, (gssize) text->len, NULL))
    g_printerr ("replay: cannot write %s\n", path);
}

static void
write_line (FILE *out, const ReplayCase *what, const char *target, const char *error)
{
  guint32 n_launches = 0;
  TinyDeviceMemory memory;
  g_autoptr (GPtrArray) programs = g_ptr_array_new (); /* in the order of their first launch */
  g_autoptr (GString) line = g_string_new (NULL);
  g_string_printf (line, "%s %s", what->name, target);
  PaperProgram *const *launches = noted.take_launches (&n_launches);
  gint64 n_bytes = 0;
  for (guint i = 0; i < n_launches; i++) {
    const Kernel *kernel = g_hash_table_lookup (noted.kernels, launches[i]);
    g_assert (kernel != NULL);
    n_bytes += kernel->n_bytes;
    if (!g_ptr_array_find (programs, launches[i], NULL))
      g_ptr_array_add (programs, launches[i]);
  }
  tiny_device_get_memory (noted.device, &memory);
  g_string_append_printf (line,
                          " plans=%u kernels=%u launches=%u bytes=%" G_GINT64_FORMAT
                          " temporary=%" G_GINT64_FORMAT " memory=%" G_GUINT64_FORMAT " ",
                          noted.n_schedules, programs->len, n_launches, n_bytes,
                          noted.temporary_bytes, memory.peak_bytes - noted.memory_before);
  append_digest (line, fnv (noted.schedules->str), 6);
  for (guint i = 0; i < programs->len; i++) {
    const Kernel *kernel = g_hash_table_lookup (noted.kernels, programs->pdata[i]);
    g_string_append_c (line, ' ');
    append_digest (line, fnv (kernel->opts), 2);
    append_digest (line, ((PaperProgram *) programs->pdata[i])->digest, 4);
  }
  if (error != NULL)
    g_string_append_printf (line, " error: %s", error);
  g_string_append_c (line, '\n');
  fputs (line->str, out);
  if (option_dump != NULL)
    dump (what->name, target, line->str, programs);
}

/* ---- all of them ---- */
static void
run_case (const ReplayCase *what, const char *target, FILE *out)
{
  g_autoptr (GError) error = NULL;
  alarm (CASE_SECONDS);
  replay_begin ();
  if (what->run (what->data, &error))
    g_clear_error (&error);
  write_line (out, what, target, error != NULL ? error->message : NULL);
  fflush (out);
}

/* Runs @work (@data) in a process of its own, whose end is waited for. */
static gboolean
run_apart (void (*work) (gconstpointer, const char *, FILE *),
           gconstpointer data,
           const char *target,
           FILE *out)
{
  int status = 0;
  fflush (NULL);
  const pid_t child = fork ();
  if (child == 0) {
    work (data, target, out);
    _exit (0);
  }
  return child > 0 && waitpid (child, &status, 0) == child && status == 0;
}

static void
run_case_apart (gconstpointer what, const char *target, FILE *out)
{
  run_case (what, target, out);
}

static gboolean
open_target (const char *target)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *name = g_strconcat ("PAPER::", target, NULL);
  g_setenv ("DEV", name, TRUE);
  noted.device = tiny_engine_get_device (name, &error);
  void *module = dlopen (PAPER_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
  if (module != NULL)
    *(void **) &noted.take_launches = dlsym (module, PAPER_TAKE_LAUNCHES);
  if (noted.device == NULL || noted.take_launches == NULL) {
    g_printerr ("replay: %s: %s\n", target, error != NULL ? error->message : "no launches");
    return FALSE;
  }
  noted.kernels = g_hash_table_new (NULL, NULL);
  noted.schedules = g_string_new (NULL);
  tiny_plan_set_watcher (note_schedule, NULL);
  return TRUE;
}

static gboolean
is_wanted (const ReplayCase *what, const char *target)
{
  g_auto (GStrv) targets = g_strsplit (what->targets != NULL ? what->targets : target, " ", -1);
  return g_strv_contains ((const char *const *) targets, target)
         && (option_case == NULL || fnmatch (option_case, what->name, 0) == 0);
}

static void
run_target (gconstpointer cases, const char *target, FILE *out)
{
  const GArray *all = cases;
  if (!open_target (target))
    _exit (1);
  for (guint i = 0; i < all->len; i++) {
    const ReplayCase *what = &g_array_index (all, ReplayCase, i);
    if (is_wanted (what, target) && !run_apart (run_case_apart, what, target, out))
      fprintf (out, "%s %s error: it crashed or hung\n", what->name, target);
  }
  fflush (out);
}

ReplayCase *
replay_add (GArray *cases,
            gboolean (*run) (gconstpointer, GError **),
            gconstpointer data,
            const char *format,
            ...)
{
  va_list arguments;
  va_start (arguments, format);
  const ReplayCase one = { g_strdup_vprintf (format, arguments), run, data, NULL };
  va_end (arguments);
  g_array_append_val (cases, one);
  return &g_array_index (cases, ReplayCase, cases->len - 1);
}

/* Nothing of the machine and of who calls may change a line. */
static void
prepare (void)
{
  static const char *const own[]
      = { "DEBUG",         "BEAM",          "TINY_TUNED",  "TINY_NO_OPT",
          "TINY_NO_MERGE", "TINY_NO_CLAIM", "BACKEND",     "TINY_TUNED_OUT",
          "TINY_RECORD",   "TINY_PROFILE",  "TINY_EXPLAIN" };
  for (guint i = 0; i < G_N_ELEMENTS (own); i++)
    g_unsetenv (own[i]);
  g_setenv ("TINY_NO_CACHE", "1", TRUE);
  g_setenv ("TINY_PLUGIN_FILES", PAPER_MANIFEST, TRUE);
}

int
main (int argc, char **argv)
{
  const GOptionEntry entries[] = {
    { "target", 0, 0, G_OPTION_ARG_STRING, &option_target, "this target alone", "NAME" },
    { "case", 0, 0, G_OPTION_ARG_STRING, &option_case, "cases alone that match", "PATTERN" },
    { "dump", 0, 0, G_OPTION_ARG_FILENAME, &option_dump, "where to put the texts", "DIR" },
    G_OPTION_ENTRY_NULL,
  };
  g_autoptr (GOptionContext) context = g_option_context_new ("CORPUS");
  g_autoptr (GArray) cases = g_array_new (FALSE, FALSE, sizeof (ReplayCase));
  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, NULL))
    return 2;
  for (guint i = 0; i < G_N_ELEMENTS (corpora); i++)
    if (argc == 2 && g_str_equal (argv[1], corpora[i].name))
      corpora[i].add (cases);
  if (cases->len == 0) {
    g_printerr ("usage: replay CORPUS [--target NAME] [--case PATTERN] [--dump DIR]\n");
    return 2;
  }
  prepare ();
  gboolean good = TRUE;
  FILE *out = fdopen (dup (STDOUT_FILENO), "w"); /* that of cases is theirs */
  for (guint i = 0; i < G_N_ELEMENTS (target_names); i++)
    if (option_target == NULL || g_str_equal (option_target, target_names[i]))
      good = run_apart (run_target, cases, target_names[i], out) && good;
  return good ? 0 : 1;
}
