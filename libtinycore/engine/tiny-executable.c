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

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "codegen/tiny-codegen.h"
#include "device/tiny-backend.h"
#include "engine/runtime-private.h"
#include "engine/tiny-cache.h"
#include "engine/tiny-debug.h"
#include "render/tiny-render.h"

/* ---- what a disk entry holds before the binary; fixed widths, same machine only ---- */
typedef struct {
  guint32 n_params, n_variables;
  guint32 grid[3], group[3];
  gint64 n_flops, n_bytes;
  char name[96];
  char opts[192];
} EntryHead;

/* One kernel on its way. */
typedef struct {
  TinyDevice *device;
  TinyGraph *graph; /* shared, read only */
  TinyNode *kernel;
  char key[33];
  EntryHead head;
  GBytes *binary;
  GError *error;
  gint64 ns_codegen, ns_compile;
  gboolean from_disk;
} Job;

static GMutex loaded_lock;
static GHashTable *loaded; /* "device name/key" → TinyExecutable */

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
make_key (Job *job)
{
  guint8 digest[32];
  gsize length = sizeof digest;
  TinyGraph *own = tiny_graph_new ();
  tiny_node_digest (own, tiny_graph_import (own, job->kernel), digest);
  tiny_graph_free (own);
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  const TinyRenderer *renderer = tiny_device_get_renderer (job->device);
  const char *texts[]
      = { renderer->name, renderer->code_version, tiny_device_get_code_stamp (job->device) };
  const int modes[] = { tiny_env_get_int (TINY_ENV_NO_OPT) };
  g_checksum_update (sum, digest, 16);
  g_checksum_update (sum, (const guchar *) get_build_id ()->str, (gssize) get_build_id ()->len);
  g_checksum_update (sum, (const guchar *) tiny_device_get_target (job->device),
                     sizeof (TinyTarget));
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    if (texts[i] != NULL)
      g_checksum_update (sum, (const guchar *) texts[i], (gssize) strlen (texts[i]) + 1);
  g_checksum_update (sum, (const guchar *) modes, sizeof modes);
  g_checksum_get_digest (sum, digest, &length);
  for (guint i = 0; i < 16; i++)
    g_snprintf (job->key + 2 * i, 3, "%02x", digest[i]);
}

/* ---- making a binary ---- */
static void
keep_source (Job *job, const char *name, const char *source, const TinyLinear *linear)
{
  g_autofree char *listing = source ? NULL : tiny_linear_to_string (linear);
  g_autofree char *file = g_strdup_printf ("%s-%.8s.%s", name, job->key, source ? "c" : "txt");
  g_autofree char *path = tiny_cache_keep_failed (file, source ? source : listing);
  if (path != NULL)
    g_prefix_error (&job->error, "kernel %s (its source is in %s): ", name, path);
  else
    g_prefix_error (&job->error, "kernel %s: ", name);
}

static gboolean
compile_linear (Job *job, TinyLinearProgram *program)
{
  const TinyRenderer *renderer = tiny_device_get_renderer (job->device);
  const TinyTarget *target = tiny_device_get_target (job->device);
  g_autofree char *source = NULL;
  gint64 start = tiny_trace_begin ();
  if (renderer->dialect != NULL) {
    source = tiny_render_source (&program->linear, renderer->dialect, &job->error);
    tiny_trace_end (start, "compile", "render", NULL, 0);
    if (source == NULL)
      return FALSE;
  }
  if (TINY_DEBUG (3))
    tiny_debug_print_kernel (program, source);
  TinyCompileArgs args = {
    .struct_size = sizeof args,
    .arch = target->arch,
    .name = program->linear.name,
    .source = source,
    .source_size = source ? strlen (source) : 0,
    .linear = &program->linear,
  };
  start = tiny_trace_begin ();
  job->binary = tiny_device_compile (job->device, &args, &job->error);
  tiny_trace_end (start, "compile", renderer->name, NULL, 0);
  if (job->binary == NULL) {
    keep_source (job, program->linear.name, source, &program->linear);
    return FALSE;
  }
  if (TINY_DEBUG (7))
    tiny_debug_print_assembly (job->device, job->binary);
  return TRUE;
}

static void
generate (Job *job)
{
  gint64 start = tiny_debug_now_ns ();
  g_autoptr (TinyGraph) own = tiny_graph_new ();
  TinyNode *kernel = tiny_graph_import (own, job->kernel);
  g_autoptr (TinyLinearProgram) program = tiny_codegen_compile (
      own, kernel, tiny_device_get_target (job->device), NULL, 0, &job->error);
  gint64 middle = tiny_debug_now_ns ();
  if (tiny_trace_is_on ())
    tiny_trace_add (start, middle, "compile", "codegen", NULL, 0);
  job->ns_codegen = middle - start;
  if (program == NULL) {
    g_prefix_error (&job->error, "kernel %s: ", job->kernel->text ? job->kernel->text : "?");
    return;
  }
  const TinyLinear *linear = &program->linear;
  EntryHead *head = &job->head;
  head->n_params = linear->n_params;
  head->n_variables = linear->n_variables;
  memcpy (head->grid, linear->grid, sizeof head->grid);
  memcpy (head->group, linear->group, sizeof head->group);
  head->n_flops = program->n_flops;
  head->n_bytes = program->n_bytes;
  g_strlcpy (head->name, linear->name, sizeof head->name);
  g_strlcpy (head->opts, program->opts ? program->opts : "", sizeof head->opts);
  compile_linear (job, program);
  job->ns_compile = tiny_debug_now_ns () - middle;
}

static gboolean
load_from_disk (Job *job)
{
  if (TINY_DEBUG (3)) /* the person wants to see code being made */
    return FALSE;
  g_autoptr (GBytes) entry = tiny_cache_load (job->key);
  gsize size;
  const guint8 *data = entry ? g_bytes_get_data (entry, &size) : NULL;
  if (data == NULL || size < sizeof (EntryHead))
    return FALSE;
  memcpy (&job->head, data, sizeof (EntryHead));
  job->binary = g_bytes_new_from_bytes (entry, sizeof (EntryHead), size - sizeof (EntryHead));
  job->from_disk = TRUE;
  return TRUE;
}

static void
store_on_disk (Job *job)
{
  gsize size;
  const guint8 *data = g_bytes_get_data (job->binary, &size);
  GByteArray *whole = g_byte_array_sized_new ((guint) (sizeof (EntryHead) + size));
  g_byte_array_append (whole, (const guint8 *) &job->head, sizeof (EntryHead));
  g_byte_array_append (whole, data, (guint) size);
  g_autoptr (GBytes) payload = g_byte_array_free_to_bytes (whole);
  tiny_cache_store (job->key, payload);
}

static void
run_job (gpointer data, gpointer unused)
{
  Job *job = data;
  gint64 start = tiny_trace_begin ();
  if (!load_from_disk (job)) {
    generate (job);
    if (job->error == NULL)
      store_on_disk (job);
  }
  const TinyTraceArg args[] = { { "device", tiny_device_get_name (job->device), 0 },
                                { "from", job->from_disk ? "disk" : "codegen", 0 },
                                { "optimisations", job->head.opts, 0 } };
  tiny_trace_end (start, "compile", job->kernel->text ? job->kernel->text : "kernel", args,
                  G_N_ELEMENTS (args));
}

/* Runs the jobs, on threads when there are several to compile. */
static void
run_jobs (GPtrArray *jobs)
{
  guint n_threads = MIN (jobs->len, g_get_num_processors ());
  if (n_threads < 2 || TINY_DEBUG (3)) {
    for (guint i = 0; i < jobs->len; i++)
      run_job (jobs->pdata[i], NULL);
    return;
  }
  GThreadPool *pool = g_thread_pool_new (run_job, NULL, (gint) n_threads, FALSE, NULL);
  for (guint i = 0; i < jobs->len; i++)
    g_thread_pool_push (pool, jobs->pdata[i], NULL);
  g_thread_pool_free (pool, FALSE, TRUE);
}

static void
job_free (gpointer data)
{
  Job *job = data;
  g_clear_pointer (&job->binary, g_bytes_unref);
  g_clear_error (&job->error);
  g_free (job);
}

static void
count_job (const Job *job)
{
  TinyCounters *counters = tiny_runtime_counters ();
  counters->n_compiles += !job->from_disk;
  counters->n_disk_hits += job->from_disk;
  counters->ns_codegen += (guint64) job->ns_codegen;
  counters->ns_compile += (guint64) job->ns_compile;
}

static TinyExecutable *
load_job (Job *job, GError **error)
{
  const EntryHead *head = &job->head;
  gint64 start = tiny_trace_begin ();
  g_autoptr (TinyProgram) program
      = tiny_program_new (job->device, head->name, job->binary, head->n_params,
                          head->n_variables, head->group, error);
  tiny_trace_end (start, "compile", "load", NULL, 0);
  if (program == NULL)
    return NULL;
  TinyExecutable *executable = g_new0 (TinyExecutable, 1);
  executable->name = g_strdup (head->name);
  executable->opts = g_strdup (head->opts);
  executable->program = g_steal_pointer (&program);
  executable->n_params = head->n_params;
  executable->n_variables = head->n_variables;
  memcpy (executable->grid, head->grid, sizeof executable->grid);
  executable->n_flops = head->n_flops;
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
    g_clear_pointer (&job->binary, g_bytes_unref);
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

static char *
full_key (const Job *job)
{
  return g_strdup_printf ("%s/%s", tiny_device_get_name (job->device), job->key);
}

gboolean
tiny_executables_get (TinyDevice *device,
                      TinyGraph *graph,
                      TinyNode *const *kernels,
                      guint n,
                      TinyExecutable **out_executables,
                      GError **error)
{
  g_autoptr (GPtrArray) jobs = g_ptr_array_new_with_free_func (job_free);
  g_autoptr (GPtrArray) missing = g_ptr_array_new ();
  g_autoptr (GHashTable) asked = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_mutex_lock (&loaded_lock);
  if (loaded == NULL)
    loaded = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint i = 0; i < n; i++) {
    Job *job = g_new0 (Job, 1);
    job->device = device;
    job->graph = graph;
    job->kernel = kernels[i];
    make_key (job);
    g_ptr_array_add (jobs, job);
    g_autofree char *key = full_key (job);
    if (!g_hash_table_contains (loaded, key) && g_hash_table_add (asked, g_strdup (key)))
      g_ptr_array_add (missing, job);
  }
  run_jobs (missing);
  gboolean good = TRUE;
  for (guint i = 0; good && i < missing->len; i++) {
    Job *job = missing->pdata[i];
    TinyExecutable *executable = finish_job (job, error);
    count_job (job);
    good = executable != NULL;
    if (good)
      g_hash_table_insert (loaded, full_key (job), executable);
  }
  for (guint i = 0; good && i < n; i++) {
    g_autofree char *key = full_key (jobs->pdata[i]);
    out_executables[i] = g_hash_table_lookup (loaded, key);
  }
  g_mutex_unlock (&loaded_lock);
  return good;
}

GBytes *
tiny_kernel_compile (TinyDevice *device, TinyGraph *graph, TinyNode *kernel, GError **error)
{
  Job job = { .device = device, .graph = graph, .kernel = kernel };
  make_key (&job);
  generate (&job);
  if (job.error != NULL) {
    g_propagate_error (error, job.error);
    return NULL;
  }
  return job.binary;
}
