/* SPDX-License-Identifier: MIT
 *
 * worker-module.c: a backend whose module is loaded in a worker.
 *
 * The first worker serves the module's own functions and the first device; each further device gets one of its own,
 * so that it is the only one to be lost. A module's worker that was lost is replaced by the next that
 * is needed.
 *
 * What a module is, beside its functions, comes as a description: two numbers and a list of texts, each behind a
 * byte that says whether it is there. */
#include <string.h>

#include "base/tiny-clean.h"
#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "base/tiny-memory.h"
#include "plugin/tiny-worker.h"
#include "plugin/worker-describe.h"

typedef struct {
  GMutex lock;
  char *path;
  guint timeout_ms, load_timeout_ms;
  TinyWorker *main; /* or NULL, as long as there is none */
  GBytes *description;
  TinyRenderer *renderers;
  TinyDialect *dialects;
} Module;

static void
module_free (gpointer data)
{
  Module *self = data;
  tiny_worker_unref (self->main);
  g_clear_pointer (&self->description, g_bytes_unref);
  g_free (self->renderers);
  g_free (self->dialects);
  g_free (self->path);
  g_mutex_clear (&self->lock);
  g_free (self);
}

/* ---- workers ---- */

/* Has @worker load the module; @out is its description. */
static gboolean
load (Module *self, TinyWorker *worker, GBytes **out, GError **error)
{
  TinyPluginError plugin_error;
  TinyStatus status;
  tiny_plugin_error_init (&plugin_error);
  g_autofree char *file = g_path_get_basename (self->path);
  TinyWorkerLane *lane = tiny_worker_begin (worker, &status, &plugin_error);
  if (lane == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_DEVICE_LOST, "%s: %s", file, plugin_error.text);
    return FALSE;
  }
  WorkerHead *head = tiny_worker_lane_get_head (lane);
  tiny_worker_lane_copy (lane, self->path, strlen (self->path) + 1);
  status = tiny_worker_lane_ask (lane, WORKER_LOAD, self->load_timeout_ms, &plugin_error);
  const guint64 n = head->numbers[0];
  guint8 *copy = NULL;
  if (status >= 0 && n <= WORKER_ROOM) {
    copy = tiny_memory_try (n, file, error);
    *out = copy != NULL ? g_bytes_new_take (memcpy (copy, worker_data (head), n), n) : NULL;
  } else if (tiny_worker_is_lost (worker))
    g_set_error (error, TINY_ERROR, TINY_ERROR_DEVICE_LOST, "%s: %s", file, plugin_error.text);
  else { /* as tiny_backend_load() said it there, cut off; the number is the error's */
    g_autofree char *text = tiny_clean_text (plugin_error.text, sizeof plugin_error.text);
    g_set_error_literal (error, TINY_ERROR, n <= TINY_ERROR_IO ? (gint) n : TINY_ERROR_PLUGIN,
                         text);
  }
  tiny_worker_end (lane);
  return *out != NULL;
}

static TinyWorker *
start (Module *self, GError **error)
{
  TinyWorker *worker = tiny_worker_new (self->timeout_ms, error);
  g_autoptr (GBytes) description = NULL;
  if (worker == NULL || !load (self, worker, &description, error)) {
    tiny_worker_unref (worker);
    return NULL;
  }
  if (self->description == NULL)
    self->description = g_bytes_ref (description);
  if (g_bytes_equal (self->description, description))
    return worker;
  g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN,
               "%s was replaced by another backend while the program runs", self->path);
  tiny_worker_unref (worker);
  return NULL;
}

/* A reference to the module's worker; under the lock. */
static TinyWorker *
get_main (Module *self, GError **error)
{
  if (self->main != NULL && tiny_worker_is_lost (self->main))
    g_clear_pointer (&self->main, tiny_worker_unref);
  if (self->main == NULL)
    self->main = start (self, error);
  return self->main != NULL ? tiny_worker_ref (self->main) : NULL;
}

static TinyStatus
fail (TinyPluginError *plugin_error, GError *error)
{
  g_strlcpy (plugin_error->text, error->message, sizeof plugin_error->text);
  TinyStatus status
      = error->code == TINY_ERROR_DEVICE_LOST ? TINY_STATUS_DEVICE_LOST : TINY_STATUS_INTERNAL;
  g_error_free (error);
  return status;
}

/* A lane for a function of the module, and its worker, whose reference is the caller's. */
static TinyWorkerLane *
begin (Module *self, TinyWorker **out_worker, TinyStatus *out_status, TinyPluginError *error)
{
  GError *wrong = NULL;
  g_mutex_lock (&self->lock);
  *out_worker = get_main (self, &wrong);
  g_mutex_unlock (&self->lock);
  TinyWorkerLane *lane = NULL;
  if (*out_worker == NULL)
    *out_status = fail (error, wrong);
  else
    lane = tiny_worker_begin (*out_worker, out_status, error);
  if (lane == NULL)
    g_clear_pointer (out_worker, tiny_worker_unref);
  return lane;
}

static void
end (TinyWorkerLane *lane, TinyWorker *worker)
{
  tiny_worker_end (lane);
  tiny_worker_unref (worker);
}

/* ---- functions of the module ---- */
static TinyStatus
module_scan (gpointer data, TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  TinyStatus status;
  TinyWorker *worker;
  TinyWorkerLane *lane = begin (data, &worker, &status, error);
  if (lane == NULL)
    return status;
  WorkerHead *head = tiny_worker_lane_get_head (lane);
  const guint32 room = *n;
  head->numbers[0] = room;
  status = tiny_worker_lane_ask (lane, WORKER_SCAN, 0, error);
  if (status >= 0) {
    *n = (guint32) head->numbers[0];
    memcpy (out, worker_data (head), MIN (*n, room) * sizeof *out);
  }
  end (lane, worker);
  return status;
}

static TinyStatus
module_open (gpointer data,
             const char *id,
             TinyPluginDevice **out,
             const TinyDeviceTable **out_table,
             TinyPluginError *error)
{
  Module *self = data;
  GError *wrong = NULL;
  g_mutex_lock (&self->lock);
  TinyWorker *worker = get_main (self, &wrong);
  if (worker != NULL && tiny_worker_has_device (worker)) {
    tiny_worker_unref (worker);
    worker = start (self, &wrong);
  }
  if (worker != NULL)
    tiny_worker_set_device (worker, TRUE);
  g_mutex_unlock (&self->lock);
  return worker != NULL ? tiny_worker_open_device (worker, id, out, out_table, error)
                        : fail (error, wrong);
}

static TinyStatus
module_target (
    gpointer data, guint renderer, const char *arch, TinyTarget *out, TinyPluginError *error)
{
  TinyStatus status;
  TinyWorker *worker;
  TinyWorkerLane *lane = begin (data, &worker, &status, error);
  if (lane == NULL)
    return status;
  WorkerHead *head = tiny_worker_lane_get_head (lane);
  head->numbers[0] = renderer;
  tiny_worker_lane_copy (lane, out, sizeof *out);
  head->numbers[1] = tiny_worker_lane_copy (lane, arch, strlen (arch) + 1);
  status = tiny_worker_lane_ask (lane, WORKER_TARGET, 0, error);
  if (status >= 0)
    memcpy (out, worker_data (head), sizeof *out);
  end (lane, worker);
  return status;
}

static TinyStatus
module_claim (gpointer data,
              guint renderer,
              const char *arch,
              const TinyOperation *operation,
              TinyClaim *out,
              TinyPluginError *error)
{
  TinyStatus status;
  TinyWorker *worker;
  TinyWorkerLane *lane = begin (data, &worker, &status, error);
  if (lane == NULL)
    return status;
  WorkerHead *head = tiny_worker_lane_get_head (lane);
  head->numbers[0] = renderer;
  tiny_worker_lane_copy (lane, out, sizeof *out);
  head->numbers[1] = tiny_worker_lane_copy (lane, arch, strlen (arch) + 1);
  head->numbers[2] = tiny_worker_lane_copy (lane, operation, sizeof *operation);
  status = tiny_worker_lane_ask (lane, WORKER_CLAIM, 0, error);
  if (status >= 0)
    memcpy (out, worker_data (head), sizeof *out);
  end (lane, worker);
  return status;
}

/* ---- compiling ---- */

/* Copies into the lane, of which the first that finds no room clears *@good. */
static gpointer
place (TinyWorkerLane *lane, gconstpointer data, gsize n_bytes, gboolean *good)
{
  guint64 address = data != NULL ? tiny_worker_lane_copy (lane, data, n_bytes) : 0;
  *good = *good && (address != 0 || data == NULL);
  return GSIZE_TO_POINTER (address);
}

static gpointer
place_text (TinyWorkerLane *lane, const char *text, gboolean *good)
{
  return place (lane, text, text != NULL ? strlen (text) + 1 : 0, good);
}

static const TinyLinear *
place_linear (TinyWorkerLane *lane, const TinyLinear *linear, gboolean *good)
{
  if (linear == NULL)
    return NULL;
  TinyLinear there = *linear;
  there.name = place_text (lane, linear->name, good);
  there.instrs = place (lane, linear->instrs, linear->n_instrs * sizeof *linear->instrs, good);
  there.sources
      = place (lane, linear->sources, linear->n_sources * sizeof *linear->sources, good);
  there.params = place (lane, linear->params, linear->n_params * sizeof *linear->params, good);
  return place (lane, &there, sizeof there, good);
}

/* With a NUL behind, which is not counted. */
static gpointer
place_source (TinyWorkerLane *lane, const TinyCompileArgs *args, gboolean *good)
{
  guint64 address = 0;
  if (args->source == NULL)
    return NULL;
  char *here = tiny_worker_lane_place (lane, args->source_size + 1, 1, &address);
  *good = *good && here != NULL;
  if (here != NULL) {
    memcpy (here, args->source, args->source_size);
    here[args->source_size] = 0;
  }
  return GSIZE_TO_POINTER (address);
}

static TinyStatus
place_compile (TinyWorkerLane *lane, const TinyCompileArgs *args, TinyPluginError *error)
{
  gboolean good = TRUE;
  TinyCompileArgs there = *args;
  there.arch = place_text (lane, args->arch, &good);
  there.name = place_text (lane, args->name, &good);
  there.source = place_source (lane, args, &good);
  there.linear = place_linear (lane, args->linear, &good);
  there.operation = place (lane, args->operation, sizeof *args->operation, &good);
  tiny_worker_lane_get_head (lane)->numbers[1]
      = GPOINTER_TO_SIZE (place (lane, &there, sizeof there, &good));
  return good ? TINY_STATUS_OK : tiny_worker_too_large (error);
}

/* The answer's data, from the host's allocator, with a NUL behind. */
static TinyStatus
take_data (WorkerHead *head, void **out_data, uint64_t *out_size, TinyPluginError *error)
{
  const guint64 size = head->numbers[0];
  if (size > WORKER_ROOM)
    return tiny_worker_too_large (error);
  char *data = tiny_host_get ()->alloc (size + 1);
  if (data == NULL) {
    g_snprintf (error->text, sizeof error->text,
                "no memory for %" G_GUINT64_FORMAT " bytes of its process's answer", size);
    return TINY_STATUS_OUT_OF_MEMORY;
  }
  memcpy (data, worker_data (head), size);
  data[size] = 0;
  *out_data = data;
  *out_size = size;
  return TINY_STATUS_OK;
}

static TinyStatus
module_compile (gpointer data,
                guint renderer,
                const TinyCompileArgs *args,
                void **out_data,
                uint64_t *out_size,
                TinyPluginError *error)
{
  TinyStatus status;
  TinyWorker *worker;
  TinyWorkerLane *lane = begin (data, &worker, &status, error);
  if (lane == NULL)
    return status;
  WorkerHead *head = tiny_worker_lane_get_head (lane);
  head->numbers[0] = renderer;
  status = place_compile (lane, args, error);
  if (status >= 0)
    status = tiny_worker_lane_ask (lane, WORKER_COMPILE, 0, error);
  if (status >= 0)
    status = take_data (head, out_data, out_size, error);
  end (lane, worker);
  return status;
}

static TinyStatus
module_disassemble (gpointer data,
                    guint renderer,
                    const void *code,
                    uint64_t size,
                    char **out_text,
                    TinyPluginError *error)
{
  TinyStatus status;
  TinyWorker *worker;
  TinyWorkerLane *lane = begin (data, &worker, &status, error);
  if (lane == NULL)
    return status;
  WorkerHead *head = tiny_worker_lane_get_head (lane);
  void *text = NULL;
  uint64_t n_text;
  head->numbers[0] = renderer;
  head->numbers[1] = size;
  status = tiny_worker_lane_copy (lane, code, size) != 0 ? TINY_STATUS_OK
                                                         : tiny_worker_too_large (error);
  if (status >= 0)
    status = tiny_worker_lane_ask (lane, WORKER_DISASSEMBLE, 0, error);
  if (status >= 0)
    status = take_data (head, &text, &n_text, error);
  *out_text = text;
  end (lane, worker);
  return status;
}

/* ---- the module ---- */

/* The table that the backend reads; functions of it are never called, there are only those that the plugin has. */
static TinyBackend *
make_backend (Module *self, GError **error)
{
  TinyPluginModule module;
  const TinyModuleProxy proxy = { .data = self,
                                  .free = module_free,
                                  .scan = module_scan,
                                  .open = module_open,
                                  .target = module_target,
                                  .compile = module_compile,
                                  .disassemble = module_disassemble,
                                  .claim = module_claim };
  if (!worker_description_read (self->description, &module, &self->renderers, &self->dialects,
                                error)) {
    module_free (self);
    return NULL;
  }
  return tiny_backend_new_proxy (&module, self->path, &proxy, error);
}

TinyBackend *
tiny_worker_load_backend (const TinyManifest *manifest, GError **error)
{
  const int timeout_ms = tiny_env_get_int (TINY_ENV_ISOLATED_TIMEOUT);
  Module *self = g_new0 (Module, 1);
  g_mutex_init (&self->lock);
  self->path = g_strdup (manifest->module);
  self->timeout_ms = timeout_ms >= 0 ? (guint) timeout_ms : manifest->call_timeout_ms;
  self->load_timeout_ms = manifest->timeout_ms;
  TinyWorker *worker = get_main (self, error);
  if (worker == NULL) {
    module_free (self);
    return NULL;
  }
  tiny_worker_unref (worker);
  return make_backend (self, error);
}
