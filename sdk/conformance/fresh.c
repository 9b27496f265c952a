/* SPDX-License-Identifier: MIT
 *
 * fresh.c: opening and closing the subject in a process of one's own, and what that leaves behind. */
#include "fresh.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "serve.h"

gboolean
conf_fresh_open (ConfTrial *trial, const ConfSubject *bare, ConfSubject *out)
{
  GError *error = NULL;
  *out = *bare;
  out->backend = tiny_backend_load (bare->path, &error);
  if (!conf_check_error (trial, error, "load"))
    return FALSE;
  const TinyDeviceOptions options
      = { .name = tiny_backend_get_name (out->backend), .id = bare->id, .is_alone = TRUE };
  out->device = tiny_device_new (out->backend, &options, &error);
  if (!conf_check_error (trial, error, "open")) {
    g_clear_object (&out->backend);
    return FALSE;
  }
  out->target = tiny_device_get_target (out->device);
  return TRUE;
}

void
conf_fresh_close (ConfSubject *self)
{
  g_clear_object (&self->device);
  g_clear_object (&self->backend);
}

/* ---- use ---- */
gboolean
conf_fresh_use (ConfTrial *trial, const ConfSubject *subject)
{
  ConfRaw raw;
  ConfStep step;
  if (!conf_raw_begin (&raw, trial, subject))
    return FALSE;
  TinyPluginProgram *program
      = conf_step_init (&step, trial, subject) ? conf_step_build (&step, &raw) : NULL;
  if (program != NULL)
    conf_step_use (&step, &raw, program, 0);
  conf_raw_unload (&raw, program);
  conf_step_clear (&step);
  conf_raw_end (&raw);
  return !conf_has_failed (trial);
}

void
conf_child_exit (int status)
{
  conf_crash_expect_exit (); /* the worker's own last words are not meant */
  exit (status);
}

/* ---- numbers ---- */
static guint
count_entries (const char *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  guint n = 0;
  while (dir != NULL && g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

ConfUsage
conf_usage_get (void)
{
  ConfUsage out = { .n_fds = count_entries ("/proc/self/fd"),
                    .n_threads = count_entries ("/proc/self/task") };
  g_autofree char *text = NULL;
  if (g_file_get_contents ("/proc/self/statm", &text, NULL, NULL)) {
    g_auto (GStrv) fields = g_strsplit (text, " ", 3);
    if (g_strv_length (fields) == 3)
      out.rss_bytes = g_ascii_strtoll (fields[1], NULL, 10) * sysconf (_SC_PAGESIZE);
  }
  struct mallinfo2 memory = mallinfo2 ();
  out.malloc_bytes = (gint64) (memory.uordblks + memory.hblkhd);
  return out;
}

/* @n times; FALSE where it failed. The process was *@out_before, and is *@out_after. */
static gboolean
work_often (ConfTrial *trial,
            guint n,
            gboolean (*work) (ConfTrial *trial, gpointer data),
            gpointer data,
            ConfUsage *out_before,
            ConfUsage *out_after)
{
  *out_before = conf_usage_get ();
  for (guint i = 0; i < n; i++)
    if (!work (trial, data))
      return FALSE;
  *out_after = conf_usage_get ();
  return TRUE;
}

/* A table of the driver's that becomes twice as large does so in one stretch; what is lost grows in all of them. */
void
conf_check_growth (ConfTrial *trial,
                   guint n,
                   gint64 bytes,
                   gboolean (*work) (ConfTrial *trial, gpointer data),
                   gpointer data)
{
  enum { STRETCHES = 3 };
  ConfUsage before, after;
  gint64 rss = G_MAXINT64, allocated = 0;
  if (!work_often (trial, n, work, data, &before, &after))
    return;
  for (guint i = 0; i < STRETCHES && (allocated > bytes || rss > 16 * bytes); i++) {
    if (!work_often (trial, n, work, data, &before, &after))
      return;
    conf_check (trial, after.n_fds <= before.n_fds, "%u times took %u file descriptors", n,
                after.n_fds - before.n_fds);
    conf_check (trial, after.n_threads <= before.n_threads, "%u times left %u threads", n,
                after.n_threads - before.n_threads);
    rss = after.rss_bytes - before.rss_bytes;
    allocated = after.malloc_bytes - before.malloc_bytes;
  }
  /* What is only there, and not handed out, may be free memory that was not given back: it counts
   * where it is much more. */
  conf_check (trial, allocated <= bytes && rss <= 16 * bytes,
              "%u times took %" G_GINT64_FORMAT " bytes of malloc(), %" G_GINT64_FORMAT
              " of the process; %" G_GINT64_FORMAT " are allowed",
              n, allocated, rss, bytes);
}

/* ---- guards ---- */
static gsize
guarded_size (gsize n)
{
  gsize page = (gsize) sysconf (_SC_PAGESIZE);
  return (n + page - 1) / page * page + page;
}

gpointer
conf_guarded_new (gsize n)
{
  gsize page = (gsize) sysconf (_SC_PAGESIZE), size = guarded_size (n);
  guint8 *memory
      = mmap (NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect (memory + size - page, page, PROT_NONE) != 0)
    g_error ("no memory for a guarded block of %" G_GSIZE_FORMAT " bytes", n);
  return memory + size - page - n;
}

void
conf_guarded_free (gpointer memory, gsize n)
{
  gsize page = (gsize) sysconf (_SC_PAGESIZE), size = guarded_size (n);
  munmap ((guint8 *) memory + n + page - size, size);
}
