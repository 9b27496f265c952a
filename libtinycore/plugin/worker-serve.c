/* SPDX-License-Identifier: MIT
 *
 * worker-serve.c: the process in which a backend runs for a program.
 *
 * A thread for each lane, and the first one, which takes new lanes and ends the process, with all that it
 * started, when the program is gone. A deadly signal marks the lane in whose thread it came and then does what it
 * does. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/tiny-error.h"
#include "device/device-private.h"
#include "plugin/tiny-helper.h"
#include "plugin/tiny-worker.h"
#include "plugin/worker-describe.h"

enum { LOOK_MS = 1000 };

typedef struct {
  TinyPluginDevice *handle;
  TinyDeviceTable table;
} Device;

typedef struct {
  int socket, received; /* the last descriptor that came, or -1 */
  WorkerHead *head;
} Lane;

static TinyBackend *backend; /* once LOAD has made it */
/* Raised by each answer: the program, which orders requests of different lanes, is no part of this process. */
static atomic_uint n_answered;

/* ---- deadly signals ---- */
static __thread WorkerHead *of_this_thread;

static void
mark_crash (int number)
{
  if (of_this_thread != NULL)
    of_this_thread->is_crashed = 1;
  raise (number); /* by default, after this */
}

static void
watch_crashes (void)
{
  static const int numbers[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS };
  const struct sigaction how = { .sa_handler = mark_crash, .sa_flags = SA_RESETHAND };
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    sigaction (numbers[i], &how, NULL);
}

/* ---- answers ---- */
static TinyStatus
fail (TinyPluginError *error, const char *text)
{
  g_strlcpy (error->text, text, sizeof error->text);
  return TINY_STATUS_INTERNAL;
}

/* The answer's data. */
static TinyStatus
give (Lane *lane, gconstpointer data, gsize n_bytes, TinyPluginError *error)
{
  if (n_bytes > WORKER_ROOM)
    return fail (error, "the answer is too large for another process");
  memcpy (worker_data (lane->head), data, n_bytes);
  lane->head->numbers[0] = n_bytes;
  return TINY_STATUS_OK;
}

static TinyStatus
give_error (Lane *lane, GError *wrong, TinyPluginError *error)
{
  lane->head->numbers[0]
      = wrong->domain == TINY_ERROR ? (guint64) wrong->code : TINY_ERROR_PLUGIN;
  TinyStatus status = fail (error, wrong->message);
  g_error_free (wrong);
  return status;
}

/* ---- the module ---- */
static TinyStatus
load (Lane *lane, TinyPluginError *error)
{
  GError *wrong = NULL;
  backend = tiny_backend_load ((const char *) worker_data (lane->head), &wrong);
  if (backend == NULL)
    return give_error (lane, wrong, error);
  g_autoptr (GBytes) description = worker_description_write (tiny_backend_get_module (backend));
  gsize n = 0;
  const guint8 *data = description != NULL ? g_bytes_get_data (description, &n) : NULL;
  if (data == NULL) {
    lane->head->numbers[0] = TINY_ERROR_OUT_OF_MEMORY;
    return fail (error, "no memory for what the module declares");
  }
  return give (lane, data, n, error);
}

static TinyStatus
scan (Lane *lane, TinyPluginError *error)
{
  const guint32 room = (guint32) lane->head->numbers[0];
  GError *wrong = NULL;
  g_autofree TinyCandidates *found = tiny_backend_scan (backend, &wrong);
  if (found == NULL)
    return give_error (lane, wrong, error);
  TinyStatus status
      = give (lane, found->at, MIN (found->n, room) * sizeof (TinyCandidate), error);
  lane->head->numbers[0] = found->n;
  return status;
}

static TinyStatus
open_device (Lane *lane, TinyPluginError *error)
{
  const TinyDeviceTable *table = NULL;
  GError *wrong = NULL;
  Device *device = g_new0 (Device, 1);
  TinyStatus status = tiny_backend_open_device (
      backend, (const char *) worker_data (lane->head), &device->handle, &table, error);
  if (status >= 0
      && !tiny_device_table_copy (&device->table, table, tiny_backend_get_name (backend),
                                  &wrong))
    status = give_error (lane, wrong, error);
  if (status < 0) {
    g_free (device);
    return status;
  }
  lane->head->numbers[0] = GPOINTER_TO_SIZE (device);
  lane->head->numbers[1] = (device->table.queue_create != NULL ? WORKER_HAS_QUEUES : 0)
                           | (device->table.import_host != NULL ? WORKER_HAS_IMPORT_HOST : 0)
                           | (device->table.wait != NULL ? WORKER_HAS_TIMELINE : 0);
  return status;
}

static const TinyRenderer *
get_renderer (const Lane *lane)
{
  return &tiny_backend_get_module (backend)->renderers[lane->head->numbers[0]];
}

static TinyStatus
target (Lane *lane, TinyPluginError *error)
{
  return tiny_renderer_call_target (get_renderer (lane),
                                    GSIZE_TO_POINTER (lane->head->numbers[1]),
                                    (TinyTarget *) worker_data (lane->head), error);
}

static TinyStatus
compile (Lane *lane, TinyPluginError *error)
{
  void *data = NULL;
  uint64_t size = 0;
  TinyStatus status = tiny_renderer_call_compile (
      get_renderer (lane), GSIZE_TO_POINTER (lane->head->numbers[1]), &data, &size, error);
  if (status >= 0 && data == NULL && size != 0)
    return fail (error, "the renderer returned no code");
  if (status >= 0)
    status = give (lane, data, size, error);
  tiny_host_get ()->free (data);
  return status;
}

static TinyStatus
disassemble (Lane *lane, TinyPluginError *error)
{
  char *text = NULL;
  TinyStatus status = tiny_renderer_call_disassemble (
      get_renderer (lane), worker_data (lane->head), lane->head->numbers[1], &text, error);
  if (status >= 0)
    status = give (lane, text != NULL ? text : "", text != NULL ? strlen (text) + 1 : 1, error);
  tiny_host_get ()->free (text);
  return status;
}

static TinyStatus
claim (Lane *lane, TinyPluginError *error)
{
  const guint64 *numbers = lane->head->numbers;
  return tiny_renderer_call_claim (get_renderer (lane), GSIZE_TO_POINTER (numbers[1]),
                                   GSIZE_TO_POINTER (numbers[2]),
                                   (TinyClaim *) worker_data (lane->head), error);
}

/* ---- memory that is shared ---- */
static TinyStatus
map_memory (Lane *lane, TinyPluginError *error)
{
  const gsize n_bytes = lane->head->numbers[0];
  while (lane->received < 0)
    if (worker_receive (lane->socket, &lane->received, 0) <= 0)
      _exit (0);
  void *mapped = worker_memory_map (lane->received, n_bytes, lane->head->numbers[1]);
  if (mapped != NULL && n_bytes >= 2 << 20)
    madvise (mapped, n_bytes, MADV_HUGEPAGE);
  close (lane->received);
  lane->received = -1;
  if (mapped == NULL) {
    g_snprintf (error->text, sizeof error->text, "shared memory: %s", g_strerror (errno));
    return TINY_STATUS_OUT_OF_MEMORY;
  }
  lane->head->numbers[0] = GPOINTER_TO_SIZE (mapped);
  return TINY_STATUS_OK;
}

/* ---- the device ---- */
static TinyStatus
alloc (const Device *device, guint64 *numbers, TinyPluginError *error)
{
  TinyPluginBuffer *buffer = NULL;
  const guint64 n_bytes = numbers[1];
  TinyStatus status
      = numbers[2] != 0 ? device->table.import_host (
            device->handle, GSIZE_TO_POINTER (numbers[2]), n_bytes, &buffer, error)
                        : device->table.alloc (device->handle, n_bytes, &buffer, error);
  numbers[0] = GPOINTER_TO_SIZE (buffer);
  if (status >= 0 && buffer == NULL)
    return fail (error, "the plugin says OK and gives no buffer");
  return status;
}

/* What became of work that was waited for, the program learns by its point: it is no failure of submit(). */
static TinyStatus
submit (const Device *device, guint64 *numbers, TinyPluginError *error)
{
  TinyPluginQueue *queue = GSIZE_TO_POINTER (numbers[1]);
  uint64_t point = 0;
  TinySubmit work = *(const TinySubmit *) GSIZE_TO_POINTER (numbers[2]);
  const gboolean waits = numbers[3] != 0 && device->table.wait != NULL;
  work.out_point = device->table.wait != NULL ? &point : NULL;
  TinyStatus status = device->table.submit (device->handle, queue, &work, error), waited = 0;
  if (status >= 0 && waits && point != 0) {
    TinyPluginError ignored;
    tiny_plugin_error_init (&ignored);
    waited = device->table.wait (device->handle, queue, point, UINT64_MAX, &ignored);
  }
  numbers[0] = point;
  numbers[1] = waited < 0;
  return status;
}

static TinyStatus
obey_device (Lane *lane, TinyPluginError *error)
{
  WorkerHead *head = lane->head;
  guint64 *numbers = head->numbers;
  Device *device = GSIZE_TO_POINTER (numbers[0]);
  const TinyDeviceTable *table = &device->table;
  gpointer handle = GSIZE_TO_POINTER (numbers[1]), made = NULL;
  uint64_t point = 0;
  TinyStatus status = TINY_STATUS_OK;
  switch ((WorkerVerb) head->verb) {
  case WORKER_CLOSE:
    table->close (device->handle);
    g_free (device);
    return status;
  case WORKER_INFO:
    return table->info (device->handle, (TinyDeviceInfo *) worker_data (head), error);
  case WORKER_ALLOC:
    return alloc (device, numbers, error);
  case WORKER_FREE:
    table->free (device->handle, handle);
    return status;
  case WORKER_QUEUE_CREATE:
    status = table->queue_create (device->handle, (TinyPluginQueue **) &made, error);
    numbers[0] = GPOINTER_TO_SIZE (made);
    return status;
  case WORKER_QUEUE_DESTROY:
    table->queue_destroy (device->handle, handle);
    return status;
  case WORKER_SUBMIT:
    return submit (device, numbers, error);
  case WORKER_WAIT:
    return table->wait (device->handle, handle, numbers[2], numbers[3], error);
  case WORKER_REACHED:
    status = table->reached (device->handle, handle, &point, error);
    numbers[0] = point;
    return status;
  case WORKER_PROGRAM_LOAD:
    status = table->program_load (device->handle, handle, (TinyPluginProgram **) &made, error);
    numbers[0] = GPOINTER_TO_SIZE (made);
    return status;
  case WORKER_PROGRAM_UNLOAD:
    table->program_unload (device->handle, handle);
    return status;
  default:
    return fail (error, "an unknown request");
  }
}

static TinyStatus
obey (Lane *lane, TinyPluginError *error)
{
  switch ((WorkerVerb) lane->head->verb) {
  case WORKER_LOAD:
    return load (lane, error);
  case WORKER_UNLOAD:
    g_clear_object (&backend);
    return TINY_STATUS_OK;
  case WORKER_SCAN:
    return scan (lane, error);
  case WORKER_OPEN:
    return open_device (lane, error);
  case WORKER_TARGET:
    return target (lane, error);
  case WORKER_COMPILE:
    return compile (lane, error);
  case WORKER_DISASSEMBLE:
    return disassemble (lane, error);
  case WORKER_CLAIM:
    return claim (lane, error);
  case WORKER_MAP_MEMORY:
    return map_memory (lane, error);
  case WORKER_UNMAP_MEMORY:
    munmap (GSIZE_TO_POINTER (lane->head->numbers[0]), lane->head->numbers[1]);
    return TINY_STATUS_OK;
  default:
    return obey_device (lane, error);
  }
}

/* ---- lanes ---- */

/* Until there is request @wanted. */
static void
wait_for_request (Lane *lane, guint32 wanted, gint64 look_ns)
{
  WorkerHead *head = lane->head;
  if (worker_look (&head->asked, wanted, look_ns))
    return;
  for (;;) {
    atomic_store (&head->worker_sleeps, 1);
    if (atomic_load (&head->asked) == wanted)
      break;
    if (worker_receive (lane->socket, &lane->received, 0) <= 0)
      pause (); /* the program is gone: the first thread ends all */
  }
  atomic_store (&head->worker_sleeps, 0);
}

static void *
run_lane (void *data)
{
  Lane *lane = data;
  WorkerHead *head = lane->head;
  const gint64 look_ns = worker_get_look_ns ();
  of_this_thread = head;
  for (guint32 n = 1;; n++) {
    wait_for_request (lane, n, look_ns);
    atomic_load (&n_answered);
    if (n > 1) { /* the first is that the lane is there */
      tiny_plugin_error_init (&head->error);
      head->status = obey (lane, &head->error);
    }
    const gboolean is_last = n > 1 && head->verb == WORKER_UNLOAD;
    atomic_fetch_add (&n_answered, 1);
    worker_raise (&head->answered, n, &head->program_sleeps, lane->socket);
    if (is_last)
      _exit (0);
  }
  return NULL;
}

static gboolean
add_lane (int memory, int socket)
{
  pthread_t thread;
  pthread_attr_t how;
  void *mapped
      = mmap (NULL, WORKER_HEAD + WORKER_ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  close (memory);
  if (mapped == MAP_FAILED)
    return FALSE;
  Lane *lane = g_new0 (Lane, 1);
  lane->head = mapped;
  lane->socket = socket;
  lane->received = -1;
  if (lane->head->magic != WORKER_MAGIC || lane->head->format != WORKER_FORMAT
      || strcmp (lane->head->version, TINY_VERSION) != 0)
    _exit (TINY_HELPER_OTHER); /* nothing of a plugin has run */
  lane->head->base = GPOINTER_TO_SIZE (mapped);
  pthread_attr_init (&how);
  pthread_attr_setdetachstate (&how, PTHREAD_CREATE_DETACHED);
  int failure = pthread_create (&thread, &how, run_lane, lane);
  pthread_attr_destroy (&how);
  return failure == 0;
}

/* FALSE: the program is gone. */
static gboolean
wait_for_lane (int socket, pid_t parent, int *out_fd)
{
  struct pollfd polled = { socket, POLLIN, 0 };
  *out_fd = -1;
  for (;;) {
    int n = poll (&polled, 1, LOOK_MS);
    /* A child of the program may have its end of the socket. */
    if (getppid () != parent)
      return FALSE;
    if (n > 0)
      return worker_receive (socket, out_fd, 0) > 0 && *out_fd >= 0;
  }
}

void
tiny_worker_serve (int socket)
{
  const pid_t parent = getppid ();
  int memory, lane_socket;
  watch_crashes ();
  while (wait_for_lane (socket, parent, &memory)
         && wait_for_lane (socket, parent, &lane_socket))
    if (!add_lane (memory, lane_socket))
      break;
  kill (0, SIGKILL); /* this group: what the plugin has started, and this */
}
