/* SPDX-License-Identifier: MIT
 *
 * tiny-executable.c: a kernel made runnable on a device, through the caches.
 *
 * A disk entry's key digests the kernel's IR, the target's whole description, the renderer with its
 * version, the plugin's file and the build of this library, so whatever could change the code
 * changes the key. Kernels that are not cached are compiled on all cores, each in a graph of its
 * own that is dropped whole. */
#include "engine/tiny-executable.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "base/interrupt-check.h"
#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "base/tiny-memory.h"
#include "base/tiny-parallel.h"
#include "base/tiny-timing.h"
#include "base/tiny-trace.h"
#include "device/tiny-backend.h"
#include "device/tiny-watch.h"
#include "engine/runtime-private.h"
#include "engine/tiny-cache.h"
#include "engine/tiny-claims.h"
#include "engine/tiny-code.h"
#include "engine/tiny-tuned.h"
#include "plugin/tiny-record.h"

/* One kernel on its way. */
typedef struct {
  TinyDevice *device;
  TinyNode *kernel;               /* of a shared graph, read only */
  const TinyOperation *operation; /* to compute instead, or NULL */
  char digest[33], key[33];       /* of the kernel alone; of all that makes the binary */
  char *opts;                     /* a list that was found for it, or NULL */
  const char *opts_file;          /* where that is from, or NULL */
  guint n_nodes;                  /* of the kernel as scheduled */
  TinyCode code;
  GError *error;
  gboolean from_disk;
  TinyExecutable *executable; /* (owned): in the end */
} Job;

static GMutex loaded_lock; /* held as long as kernels are compiled */
static GHashTable
    *loaded; /* "device/key" → TinyExecutable; a device that is opened again is another one */

/* Those that have no users, in the order in which they lost the last. */
static struct {
  GMutex lock; /* of all counts of users too; taken after the other, and held for moments */
  GQueue queue;
  gsize n_bytes;
} spares;

/* ---- users ---- */
static void
executable_free (TinyExecutable *self)
{
  g_object_unref (self->program);
  g_free (self->name);
  g_free (self->opts);
  g_free (self->key);
  g_free (self);
}

static void
take_spare_out (TinyExecutable *self)
{
  g_queue_unlink (&spares.queue, &self->spare);
  spares.n_bytes -= self->n_code;
}

TinyExecutable *
tiny_executable_ref (TinyExecutable *self)
{
  g_mutex_lock (&spares.lock);
  if (self->n_users++ == 0)
    take_spare_out (self);
  g_mutex_unlock (&spares.lock);
  return self;
}

/* (nullable) (transfer full): the one that is let go of next. */
static TinyExecutable *
find_oldest_spare (guint most, gsize most_bytes)
{
  g_mutex_lock (&spares.lock);
  const gboolean is_wanted = spares.queue.length > most || spares.n_bytes > most_bytes;
  TinyExecutable *self = is_wanted ? spares.queue.head->data : NULL;
  if (self != NULL)
    take_spare_out (self);
  g_mutex_unlock (&spares.lock);
  return self;
}

/* A fourth more goes than has to: unloading waits for a device's queue. Under the lock of what is loaded. */
static void
unload_spares (void)
{
  guint most = TINY_MAX_SPARES;
  gsize most_bytes = TINY_MAX_SPARE_BYTES;
  TinyExecutable *oldest;
  while ((oldest = find_oldest_spare (most, most_bytes)) != NULL) {
    g_hash_table_remove (loaded, oldest->key);
    most = TINY_MAX_SPARES / 4 * 3;
    most_bytes = TINY_MAX_SPARE_BYTES / 4 * 3;
  }
}

void
tiny_executable_unref (TinyExecutable *self)
{
  if (self == NULL)
    return;
  g_mutex_lock (&spares.lock);
  if (--self->n_users == 0) {
    self->spare.data = self;
    g_queue_push_tail_link (&spares.queue, &self->spare);
    spares.n_bytes += self->n_code;
  }
  const gboolean are_many
      = spares.queue.length > TINY_MAX_SPARES || spares.n_bytes > TINY_MAX_SPARE_BYTES;
  g_mutex_unlock (&spares.lock);
  if (are_many && g_mutex_trylock (&loaded_lock)) { /* else who has it does that in the end */
    unload_spares ();
    g_mutex_unlock (&loaded_lock);
  }
}

guint
tiny_executables_count (void)
{
  g_mutex_lock (&loaded_lock);
  const guint n = loaded != NULL ? g_hash_table_size (loaded) : 0;
  g_mutex_unlock (&loaded_lock);
  return n;
}

/* ---- keys ---- */
static int
find_build_id (struct dl_phdr_info *info, size_t size, void *data)
{
  GString *out = data;
  const gsize here = (gsize) &find_build_id;
  gboolean ours = FALSE;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW (Phdr) *segment = &info->dlpi_phdr[i];
    gsize start = info->dlpi_addr + segment->p_vaddr;
    ours = ours
           || (segment->p_type == PT_LOAD && here >= start && here < start + segment->p_memsz);
  }
  for (int i = 0; ours && i < info->dlpi_phnum; i++) {
    const ElfW (Phdr) *segment = &info->dlpi_phdr[i];
    if (segment->p_type == PT_NOTE)
      g_string_append_len (out, (const char *) (info->dlpi_addr + segment->p_vaddr),
                           (gssize) segment->p_memsz);
  }
  return ours;
}

/* The notes of the library this code is in: the linker's build id among them. */
static const GString *
get_build_id (void)
{
  static gsize id = 0;
  if (g_once_init_enter (&id)) {
    GString *found = g_string_new (TINY_VERSION);
    dl_iterate_phdr (find_build_id, found);
    g_once_init_leave (&id, (gsize) found);
  }
  return (const GString *) id;
}

static void
to_hex (const guint8 digest[16], char out[33])
{
  for (guint i = 0; i < 16; i++)
    g_snprintf (out + 2 * i, 3, "%02x", digest[i]);
}

void
tiny_executable_make_key (TinyDevice *device, gconstpointer what, gsize size, char out[33])
{
  guint8 digest[32];
  gsize length = sizeof digest;
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  const TinyRenderer *renderer = tiny_device_get_renderer (device);
  const char *texts[]
      = { renderer->name, renderer->code_version, tiny_device_get_code_stamp (device) };
  const int modes[] = { tiny_env_get_int (TINY_ENV_NO_OPT) };
  g_checksum_update (sum, what, (gssize) size);
  g_checksum_update (sum, (const guchar *) get_build_id ()->str, (gssize) get_build_id ()->len);
  g_checksum_update (sum, (const guchar *) tiny_device_get_target (device),
                     sizeof (TinyTarget));
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    if (texts[i] != NULL)
      g_checksum_update (sum, (const guchar *) texts[i], (gssize) strlen (texts[i]) + 1);
  g_checksum_update (sum, (const guchar *) modes, sizeof modes);
  g_checksum_get_digest (sum, digest, &length);
  to_hex (digest, out);
}

/* The key of what the heuristic makes of the kernel. */
static void
make_key (Job *job)
{
  TINY_TIMED ("engine", "key");
  guint8 digest[32];
  TinyGraph *own = tiny_graph_new ();
  tiny_node_digest (own, tiny_graph_import (own, job->kernel), digest);
  job->n_nodes = tiny_graph_get_n_nodes (own);
  tiny_graph_free (own);
  to_hex (digest, job->digest);
  tiny_executable_make_key (job->device, digest, 16, job->key);
}

/* Of what the device's plugin makes of the operation. */
static void
make_operation_key (Job *job)
{
  const TinyOperation *operation = job->operation;
  const guint8 is_untrusted = tiny_node_is_untrusted (job->kernel);
  g_autofree char *maker = tiny_device_describe_claims (job->device);
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  g_checksum_update (sum, (const guchar *) operation, sizeof *operation);
  g_checksum_update (sum, &is_untrusted, 1);
  g_checksum_update (sum, (const guchar *) get_build_id ()->str, (gssize) get_build_id ()->len);
  g_checksum_update (sum, (const guchar *) maker, -1);
  g_strlcpy (job->key, g_checksum_get_string (sum), sizeof job->key);
}

/* Asks for a list of optimisations that was found for the kernel, which changes the key. */
static void
find_opts (Job *job)
{
  TinyTunedKey tuned = { .device = job->device, .kernel = job->kernel };
  g_strlcpy (tuned.digest, job->digest, sizeof tuned.digest);
  g_strlcpy (tuned.key, job->key, sizeof tuned.key);
  job->opts = tiny_tuned_get_opts (&tuned, &job->opts_file, &job->error);
  if (job->opts == NULL)
    return;
  g_autofree char *text = g_strdup_printf ("%s %s", job->key, job->opts);
  g_autofree char *digest = g_compute_checksum_for_string (G_CHECKSUM_SHA256, text, -1);
  g_strlcpy (job->key, digest, sizeof job->key);
}

/* ---- making a binary ---- */

/* By the list that was found for it; TRUE unless it does not fit. */
static gboolean
generate_tuned (Job *job)
{
  guint n;
  g_autofree TinyOpt *opts = tiny_opts_from_string (job->opts, &n, &job->error);
  if (opts != NULL)
    tiny_code_make (&job->code, job->device, job->kernel, opts, n, job->key, &job->error);
  if (!g_error_matches (job->error, TINY_ERROR, TINY_ERROR_INVALID))
    return TRUE;
  g_warning ("%s%s%s: the heuristic is used instead", job->opts_file ? job->opts_file : "",
             job->opts_file ? ": " : "", job->error->message);
  g_clear_error (&job->error);
  return FALSE;
}

static void
generate (Job *job)
{
  TINY_TIMED ("engine", "kernel");
  g_auto (TinyUntrusted) untrusted
      = tiny_watch_begin_untrusted (tiny_node_is_untrusted (job->kernel));
  if (job->operation != NULL)
    tiny_code_make_operation (&job->code, job->device, job->operation, &job->error);
  else if (job->opts == NULL || !generate_tuned (job))
    tiny_code_make (&job->code, job->device, job->kernel, NULL, 0, job->key, &job->error);
}

static gboolean
load_from_disk (Job *job)
{
  TINY_TIMED ("engine", "cache read");
  if (TINY_DEBUG (3) || tiny_record_is_on ()) /* a person wants to see code being made */
    return FALSE;
  g_autoptr (GBytes) entry = tiny_cache_load (job->key);
  gsize size;
  const guint8 *data = entry ? g_bytes_get_data (entry, &size) : NULL;
  if (data == NULL || size < sizeof (TinyCodeHead))
    return FALSE;
  memcpy (&job->code.head, data, sizeof (TinyCodeHead));
  job->code.binary
      = g_bytes_new_from_bytes (entry, sizeof (TinyCodeHead), size - sizeof (TinyCodeHead));
  job->from_disk = TRUE;
  return TRUE;
}

static void
store_on_disk (Job *job)
{
  TINY_TIMED ("engine", "cache write");
  gsize size;
  const guint8 *data = g_bytes_get_data (job->code.binary, &size);
  g_auto (TinyVector) whole = { NULL };
  if (!tiny_vector_append (&whole, &job->code.head, sizeof (TinyCodeHead))
      || !tiny_vector_append (&whole, data, size))
    return; /* it is made anew another time */
  g_autoptr (GBytes) payload = tiny_vector_steal_bytes (&whole);
  tiny_cache_store (job->key, payload);
}

/* @is_stopped: a gint, of all jobs. The caller's thread alone is told to stop, the others see it here. */
static void
run_job (gpointer data, gpointer is_stopped)
{
  gint64 start = tiny_trace_begin ();
  Job *job = data;
  if (g_atomic_int_get ((gint *) is_stopped) || !tiny_interrupt_check (&job->error)) {
    g_atomic_int_set ((gint *) is_stopped, TRUE);
    return;
  }
  if (!load_from_disk (job)) {
    generate (job);
    if (job->error == NULL)
      store_on_disk (job);
    else if (tiny_interrupt_is_error (job->error))
      g_atomic_int_set ((gint *) is_stopped, TRUE);
  }
  const TinyTraceArg args[] = { { "device", tiny_device_get_name (job->device), 0 },
                                { "from", job->from_disk ? "disk" : "codegen", 0 },
                                { "optimisations", job->code.head.opts, 0 } };
  const char *name = job->operation != NULL ? job->code.head.name : job->kernel->text;
  tiny_trace_end (start, "compile", name ? name : "kernel", args, G_N_ELEMENTS (args));
}

/* The larger first, so that none is left to run alone at the end. */
static int
compare_sizes (gconstpointer a, gconstpointer b)
{
  const Job *x = *(const Job *const *) a, *y = *(const Job *const *) b;
  return x->n_nodes != y->n_nodes ? (x->n_nodes > y->n_nodes ? -1 : 1)
                                  : strcmp (x->key, y->key);
}

/* FALSE with an error where they were stopped; what else goes wrong is in the jobs. */
static gboolean
run_jobs (GPtrArray *jobs, GError **error)
{
  gint is_stopped = FALSE;
  if (TINY_DEBUG (3)) { /* what they print stays together */
    g_ptr_array_foreach (jobs, run_job, &is_stopped);
  } else {
    g_ptr_array_sort (jobs, compare_sizes);
    tiny_parallel_run (run_job, jobs->pdata, jobs->len, &is_stopped);
  }
  for (guint i = 0; is_stopped; i++) {
    const Job *job = jobs->pdata[i];
    if (job->error == NULL || !tiny_interrupt_is_error (job->error))
      continue;
    g_propagate_error (error, g_error_copy (job->error));
    return FALSE;
  }
  return TRUE;
}

static void
job_free (gpointer data)
{
  Job *job = data;
  tiny_code_clear (&job->code);
  tiny_executable_unref (job->executable);
  g_free (job->opts);
  g_clear_error (&job->error);
  g_free (job);
}

static void
count_job (const Job *job)
{
  TinyCounters *counters = tiny_runtime_counters ();
  counters->n_compiles += !job->from_disk;
  counters->n_disk_hits += job->from_disk;
  counters->ns_codegen += (guint64) job->code.ns_codegen;
  counters->ns_compile += (guint64) job->code.ns_compile;
}

static TinyExecutable *
load_job (Job *job, GError **error)
{
  TINY_TIMED ("engine", "load");
  const TinyCodeHead *head = &job->code.head;
  g_auto (TinyUntrusted) untrusted
      = tiny_watch_begin_untrusted (tiny_node_is_untrusted (job->kernel));
  g_autoptr (TinyProgram) program
      = tiny_program_new (job->device, head->name, job->code.binary, head->n_params,
                          head->n_variables, head->group, error);
  if (program == NULL)
    return NULL;
  TinyExecutable *executable = g_new0 (TinyExecutable, 1);
  executable->n_users = 1;
  executable->n_code = g_bytes_get_size (job->code.binary);
  executable->name = g_strdup (head->name);
  executable->opts = g_strdup (head->opts);
  executable->program = g_steal_pointer (&program);
  executable->is_untrusted = untrusted;
  executable->n_params = head->n_params;
  executable->n_variables = head->n_variables;
  memcpy (executable->grid, head->grid, sizeof executable->grid);
  executable->reads = head->reads;
  executable->n_flops = head->n_flops;
  executable->dtype = (TinyDType) head->dtype;
  executable->n_bytes = head->n_bytes;
  return executable;
}

/* A program that loads is kept; one from disk that does not is compiled again. */
static TinyExecutable *
finish_job (Job *job, GError **error)
{
  if (job->error != NULL) {
    g_propagate_error (error, g_steal_pointer (&job->error));
    return NULL;
  }
  TinyExecutable *executable = load_job (job, job->from_disk ? NULL : error);
  if (executable == NULL && job->from_disk) {
    tiny_code_clear (&job->code);
    job->from_disk = FALSE;
    generate (job);
    if (job->error != NULL) {
      g_propagate_error (error, g_steal_pointer (&job->error));
      return NULL;
    }
    store_on_disk (job);
    executable = load_job (job, error);
  }
  return executable;
}

static Job *
job_new (TinyDevice *device, TinyNode *kernel, const TinyOperation *operation)
{
  Job *job = g_new0 (Job, 1);
  job->device = operation != NULL ? device : tiny_device_get_runner (device);
  job->kernel = kernel;
  job->operation = operation;
  if (operation != NULL) {
    make_operation_key (job);
  } else {
    make_key (job);
    find_opts (job);
  }
  return job;
}

static char *
full_key (const Job *job)
{
  return g_strdup_printf ("%p/%s", (gconstpointer) job->device, job->key);
}

/* The job of kernel @i: one for all that are the same node. Under the lock. */
static Job *
find_job (GHashTable *jobs,
          TinyDevice *device,
          TinyNode *kernel,
          const TinyOperation *operation)
{
  gconstpointer what = operation != NULL ? (gconstpointer) operation : kernel;
  Job *job = g_hash_table_lookup (jobs, what);
  if (job == NULL) {
    job = job_new (device, kernel, operation);
    g_hash_table_insert (jobs, (gpointer) what, job);
  }
  return job;
}

gboolean
tiny_executables_get (TinyDevice *device,
                      TinyGraph *graph,
                      TinyNode *const *kernels,
                      const TinyOperation *const *operations,
                      guint n,
                      TinyExecutable **out_executables,
                      GError **error)
{
  g_autoptr (GHashTable) jobs = g_hash_table_new_full (NULL, NULL, NULL, job_free);
  g_autofree Job **job_of = g_new (Job *, n + 1);
  g_autoptr (GPtrArray) missing = g_ptr_array_new ();
  g_autoptr (GHashTable) asked = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_mutex_lock (&loaded_lock);
  if (loaded == NULL)
    loaded = g_hash_table_new_full (g_str_hash, g_str_equal, NULL,
                                    (GDestroyNotify) executable_free);
  gboolean good = TRUE;
  for (guint i = 0; good && i < n; i++) {
    const guint n_jobs = g_hash_table_size (jobs);
    job_of[i] = find_job (jobs, device, kernels[i], operations != NULL ? operations[i] : NULL);
    if (g_hash_table_size (jobs) == n_jobs)
      continue;
    if (job_of[i]->error != NULL) { /* stopped in a search */
      g_propagate_error (error, g_steal_pointer (&job_of[i]->error));
      good = FALSE;
      break;
    }
    g_autofree char *key = full_key (job_of[i]);
    if (!g_hash_table_contains (loaded, key) && g_hash_table_add (asked, g_strdup (key)))
      g_ptr_array_add (missing, job_of[i]);
    good = tiny_interrupt_check (error);
  }
  good = good && run_jobs (missing, error);
  for (guint i = 0; good && i < missing->len; i++) {
    Job *job = missing->pdata[i];
    if (!(good = tiny_interrupt_check (error)))
      break;
    job->executable = finish_job (job, error);
    count_job (job);
    good = job->executable != NULL;
    if (good) {
      job->executable->key = full_key (job);
      g_hash_table_insert (loaded, job->executable->key, job->executable);
    }
  }
  for (guint i = 0; good && i < n; i++) {
    if (job_of[i]->executable == NULL) {
      g_autofree char *key = full_key (job_of[i]);
      job_of[i]->executable = tiny_executable_ref (g_hash_table_lookup (loaded, key));
    }
    out_executables[i] = tiny_executable_ref (job_of[i]->executable);
  }
  unload_spares ();
  g_mutex_unlock (&loaded_lock);
  return good;
}

GBytes *
tiny_kernel_compile (
    TinyDevice *device, TinyNode *kernel, const TinyOpt *opts, guint n_opts, GError **error)
{
  Job job = { .device = device, .kernel = kernel };
  make_key (&job);
  g_auto (TinyUntrusted) untrusted
      = tiny_watch_begin_untrusted (tiny_node_is_untrusted (kernel));
  tiny_code_make (&job.code, device, kernel, opts, n_opts, job.key, error);
  return job.code.binary;
}
