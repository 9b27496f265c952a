/* SPDX-License-Identifier: MIT
 *
 * cuda-queue.c: a queue is a stream beside that of other libraries; a point is an event in a ring.
 *
 * Submitting copies uploads into the staging ring and enqueues; it waits only where that ring is full. What a
 * download brought is copied to the host by whoever sees its point reached first. The driver knows no wait with a
 * limit, so that one looks again and again, more and more seldom. */
#include "cuda.h"

enum { SPIN_NS = 20000, FIRST_SLEEP_NS = 50000, LAST_SLEEP_NS = 1000000 };

struct TinyPluginQueue {
  CudaStream stream;
  CudaEvent events[TINY_MAX_IN_FLIGHT]; /* of points, by their number */
  pthread_mutex_t lock;                 /* of what follows */
  uint64_t n_submitted, n_reached;      /* the last point of each kind */
  CudaStaging staging;
  TinyStatus failure; /* of the point behind n_reached: the queue is broken */
  char text[256];
};

static CudaEvent *
get_event (CudaQueue *queue, uint64_t point)
{
  return &queue->events[point % TINY_MAX_IN_FLIGHT];
}

/* ---- points; under the lock, with the context current ---- */
static TinyStatus
say_failure (const CudaQueue *queue, CudaError *error)
{
  return queue->failure == TINY_STATUS_OK
             ? TINY_STATUS_OK
             : tiny_fail (error, queue->failure, "%s", queue->text);
}

/* Downloads that are under way are lost: their memory may be gone when somebody heard of the failure. */
static void
break_queue (CudaDevice *device, CudaQueue *queue, int code)
{
  CudaError error = { .struct_size = sizeof error };
  queue->failure = cuda_answer (device, &error, TINY_STATUS_LAUNCH, code, "work of the device");
  snprintf (queue->text, sizeof queue->text, "%.250s", error.text);
  queue->staging.n_freed = queue->staging.n_taken;
}

static void
free_pieces (CudaQueue *queue, uint64_t last_point)
{
  for (CudaPiece *piece; (piece = cuda_staging_get_oldest (&queue->staging)) != NULL
                         && piece->point <= last_point;)
    cuda_staging_free_oldest (&queue->staging);
}

/* Moves n_reached on as far as the device is. */
static TinyStatus
look (CudaDevice *device, CudaQueue *queue, CudaError *error)
{
  while (queue->failure == TINY_STATUS_OK && queue->n_reached < queue->n_submitted) {
    const int code = cuda.EventQuery (*get_event (queue, queue->n_reached + 1));
    if (code == CUDA_NOT_READY)
      break;
    if (code != CUDA_SUCCESS)
      break_queue (device, queue, code);
    else
      free_pieces (queue, ++queue->n_reached);
  }
  return say_failure (queue, error);
}

TinyStatus
cuda_reached (CudaDevice *device, CudaQueue *queue, uint64_t *out_point, CudaError *error)
{
  TinyStatus status = cuda_enter (device, error);
  const bool is_in = status == TINY_STATUS_OK;
  pthread_mutex_lock (&queue->lock);
  if (is_in)
    status = look (device, queue, error);
  *out_point = queue->n_reached;
  pthread_mutex_unlock (&queue->lock);
  if (is_in)
    cuda_leave ();
  return status;
}

/* TIMEOUT: it is not reached yet. */
static TinyStatus
look_for (CudaDevice *device, CudaQueue *queue, uint64_t point, CudaError *error)
{
  pthread_mutex_lock (&queue->lock);
  TinyStatus status = point <= queue->n_reached ? TINY_STATUS_OK : look (device, queue, error);
  if (point <= queue->n_reached)
    status = TINY_STATUS_OK;
  else if (status == TINY_STATUS_OK)
    status = tiny_fail (error, TINY_STATUS_TIMEOUT, "point %llu is not reached yet",
                        (unsigned long long) point);
  pthread_mutex_unlock (&queue->lock);
  return status;
}

static void
pause_for (uint64_t waited_ns, uint64_t left_ns, uint64_t *sleep_ns)
{
  if (waited_ns < SPIN_NS)
    return;
  const uint64_t ns = *sleep_ns < left_ns ? *sleep_ns : left_ns;
  const struct timespec pause = { .tv_nsec = (long) ns };
  nanosleep (&pause, NULL);
  *sleep_ns = 2 * *sleep_ns < LAST_SLEEP_NS ? 2 * *sleep_ns : LAST_SLEEP_NS;
}

/* With the context current. */
static TinyStatus
wait_for (
    CudaDevice *device, CudaQueue *queue, uint64_t point, uint64_t timeout_ns, CudaError *error)
{
  const uint64_t start = tiny_now_ns ();
  uint64_t sleep_ns = FIRST_SLEEP_NS;
  for (;;) {
    const TinyStatus status = look_for (device, queue, point, error);
    const uint64_t waited = tiny_now_ns () - start;
    if (status != TINY_STATUS_TIMEOUT || waited >= timeout_ns)
      return status;
    if (timeout_ns == UINT64_MAX)
      cuda.EventSynchronize (
          *get_event (queue, point)); /* what it answers is looked at above */
    else
      pause_for (waited, timeout_ns - waited, &sleep_ns);
  }
}

TinyStatus
cuda_wait (
    CudaDevice *device, CudaQueue *queue, uint64_t point, uint64_t timeout_ns, CudaError *error)
{
  pthread_mutex_lock (&queue->lock);
  const bool is_reached = point <= queue->n_reached;
  pthread_mutex_unlock (&queue->lock);
  if (is_reached)
    return TINY_STATUS_OK;
  TINY_TRY (cuda_enter (device, error));
  const TinyStatus status = wait_for (device, queue, point, timeout_ns, error);
  cuda_leave ();
  return status;
}

/* ---- submission; with the context current ---- */
typedef struct {
  CudaDevice *device;
  CudaQueue *queue;
  uint64_t point; /* this submission's */
  CudaError *error;
} Run;

static TinyStatus
answer (const Run *run, int code, const char *what)
{
  return cuda_answer (run->device, run->error, TINY_STATUS_LAUNCH, code, what);
}

/* Waits for all of the queue, and brings home what was downloaded. */
static TinyStatus
finish (const Run *run)
{
  CudaQueue *queue = run->queue;
  const int code = cuda.StreamSynchronize (queue->stream);
  pthread_mutex_lock (&queue->lock);
  if (code != CUDA_SUCCESS)
    break_queue (run->device, queue, code);
  free_pieces (queue, UINT64_MAX);
  const TinyStatus status = say_failure (queue, run->error);
  pthread_mutex_unlock (&queue->lock);
  return status;
}

/* Waits for the oldest piece, which another thread may free meanwhile. */
static TinyStatus
wait_for_oldest (const Run *run)
{
  CudaStaging *staging = &run->queue->staging;
  pthread_mutex_lock (&run->queue->lock);
  CudaPiece *piece = cuda_staging_get_oldest (staging);
  const uint64_t number = staging->n_freed;
  pthread_mutex_unlock (&run->queue->lock);
  if (piece == NULL)
    return TINY_STATUS_OK;
  TINY_TRY (answer (run, cuda.EventSynchronize (piece->event), "waiting for a copy"));
  pthread_mutex_lock (&run->queue->lock);
  if (staging->n_freed == number && staging->n_taken > number)
    cuda_staging_free_oldest (staging);
  pthread_mutex_unlock (&run->queue->lock);
  return TINY_STATUS_OK;
}

static TinyStatus
take_piece (const Run *run, size_t size, CudaPiece **out)
{
  CudaQueue *queue = run->queue;
  for (*out = NULL; *out == NULL;) {
    pthread_mutex_lock (&queue->lock);
    const int code = cuda_staging_open (&queue->staging);
    if (code == CUDA_SUCCESS)
      *out = cuda_staging_take (&queue->staging, size);
    if (*out != NULL)
      (*out)->point = run->point;
    pthread_mutex_unlock (&queue->lock);
    TINY_TRY (answer (run, code, "making room for copies"));
    if (*out == NULL)
      TINY_TRY (wait_for_oldest (run));
  }
  return TINY_STATUS_OK;
}

static TinyStatus
upload (const Run *run, const TinyCommand *command)
{
  CudaQueue *queue = run->queue;
  CudaPiece *piece;
  const CudaAddress dst = command->dst.buffer->memory + command->dst.offset;
  const uint64_t n_bytes = command->dst.n_bytes;
  pthread_mutex_lock (&queue->lock);
  const bool waits = cuda_staging_writes (&queue->staging, command->host, n_bytes);
  pthread_mutex_unlock (&queue->lock);
  if (waits)
    TINY_TRY (finish (run));
  for (uint64_t at = 0; at < n_bytes; at += CUDA_PIECE_BYTES) {
    const size_t size = n_bytes - at < CUDA_PIECE_BYTES ? n_bytes - at : CUDA_PIECE_BYTES;
    TINY_TRY (take_piece (run, size, &piece));
    memcpy (queue->staging.memory + piece->at, (const char *) command->host + at, size);
    TINY_TRY (answer (
        run,
        cuda.MemcpyHtoDAsync (dst + at, queue->staging.memory + piece->at, size, queue->stream),
        "an upload"));
    TINY_TRY (answer (run, cuda.EventRecord (piece->event, queue->stream), "an upload"));
  }
  return TINY_STATUS_OK;
}

/* A piece has its place on the host once its copy is under way: not before, as it may be freed by a failure. */
static TinyStatus
download (const Run *run, const TinyCommand *command)
{
  CudaQueue *queue = run->queue;
  CudaPiece *piece;
  const CudaAddress src = command->src.buffer->memory + command->src.offset;
  const uint64_t n_bytes = command->src.n_bytes;
  for (uint64_t at = 0; at < n_bytes; at += CUDA_PIECE_BYTES) {
    const size_t size = n_bytes - at < CUDA_PIECE_BYTES ? n_bytes - at : CUDA_PIECE_BYTES;
    TINY_TRY (take_piece (run, size, &piece));
    TINY_TRY (answer (
        run,
        cuda.MemcpyDtoHAsync (queue->staging.memory + piece->at, src + at, size, queue->stream),
        "a download"));
    TINY_TRY (answer (run, cuda.EventRecord (piece->event, queue->stream), "a download"));
    pthread_mutex_lock (&queue->lock);
    piece->host = (char *) command->host + at;
    pthread_mutex_unlock (&queue->lock);
  }
  return TINY_STATUS_OK;
}

static TinyStatus
copy (const Run *run, const TinyCommand *command)
{
  const TinySpan *dst = &command->dst, *src = &command->src;
  if (dst->n_bytes == 0)
    return TINY_STATUS_OK;
  return answer (run,
                 cuda.MemcpyDtoDAsync (dst->buffer->memory + dst->offset,
                                       src->buffer->memory + src->offset, dst->n_bytes,
                                       run->queue->stream),
                 "a copy");
}

static TinyStatus
run_command (const Run *run, const TinyCommand *command)
{
  TINY_TRY (TINY_CHECK_IN (command, TINY_COMMAND_OVERLAPS, run->error));
  switch (command->type) {
  case TINY_COMMAND_UPLOAD:
    return upload (run, command);
  case TINY_COMMAND_DOWNLOAD:
    return download (run, command);
  case TINY_COMMAND_COPY:
    return copy (run, command);
  case TINY_COMMAND_DISPATCH:
    return cuda_launch (run->device, run->queue->stream, command, run->error);
  default:
    return tiny_fail (run->error, TINY_STATUS_UNSUPPORTED, "a command of unknown type %u",
                      command->type);
  }
}

static TinyStatus
run_commands (const Run *run, const TinySubmit *submit, CudaEvent *times)
{
  const char *at = (const char *) submit->commands;
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    const TinyCommand *command = (const TinyCommand *) at;
    if (times != NULL)
      TINY_TRY (answer (run, cuda.EventRecord (times[2 * i], run->queue->stream), "timing"));
    TINY_TRY (run_command (run, command));
    if (times != NULL)
      TINY_TRY (
          answer (run, cuda.EventRecord (times[2 * i + 1], run->queue->stream), "timing"));
    at += command->struct_size; /* a newer core's commands are longer */
  }
  return TINY_STATUS_OK;
}

/* With a pair of events around each command, whose times are there when all is done. */
static TinyStatus
run_timed (const Run *run, const TinySubmit *submit, CudaEvent *times)
{
  for (uint32_t i = 0; i < 2 * submit->n_commands; i++)
    TINY_TRY (answer (run, cuda.EventCreate (&times[i], CUDA_EVENT_BLOCKING_SYNC), "timing"));
  TINY_TRY (run_commands (run, submit, times));
  TINY_TRY (finish (run));
  for (uint32_t i = 0; i < submit->n_commands; i++) {
    float ms = 0;
    TINY_TRY (
        answer (run, cuda.EventElapsedTime (&ms, times[2 * i], times[2 * i + 1]), "timing"));
    submit->out_ns[i] = ms > 0 ? (uint64_t) ((double) ms * 1e6) : 0;
  }
  return TINY_STATUS_OK;
}

static TinyStatus
run_all (const Run *run, const TinySubmit *submit)
{
  if (submit->out_ns == NULL)
    return run_commands (run, submit, NULL);
  CudaEvent *times = calloc ((size_t) submit->n_commands * 2 + 1, sizeof *times);
  if (times == NULL)
    return tiny_fail (run->error, TINY_STATUS_OUT_OF_MEMORY, "no memory for times");
  const TinyStatus status = run_timed (run, submit, times);
  for (uint32_t i = 0; i < 2 * submit->n_commands; i++)
    if (times[i] != NULL)
      cuda.EventDestroy (times[i]);
  free (times);
  return status;
}

static TinyStatus
end_submission (const Run *run, const TinySubmit *submit)
{
  CudaQueue *queue = run->queue;
  TINY_TRY (answer (run, cuda.EventRecord (*get_event (queue, run->point), queue->stream),
                    "ending a submission"));
  pthread_mutex_lock (&queue->lock);
  queue->n_submitted = run->point;
  pthread_mutex_unlock (&queue->lock);
  if (submit->out_point == NULL)
    return finish (run);
  *submit->out_point = run->point;
  return TINY_STATUS_OK;
}

/* A submission that failed runs no further afterwards, and its host memory is not written. */
static TinyStatus
begin (const Run *run, const TinySubmit *submit)
{
  pthread_mutex_lock (&run->queue->lock);
  TinyStatus status = say_failure (run->queue, run->error);
  pthread_mutex_unlock (&run->queue->lock);
  if (status != TINY_STATUS_OK)
    return status;
  status = run_all (run, submit);
  if (status == TINY_STATUS_OK)
    status = end_submission (run, submit);
  const Run silent = { .device = run->device, .queue = run->queue };
  if (status != TINY_STATUS_OK)
    finish (&silent);
  return status;
}

TinyStatus
cuda_submit (CudaDevice *device, CudaQueue *queue, const TinySubmit *submit, CudaError *error)
{
  TINY_TRY (TINY_CHECK_IN (submit, 0, error));
  TINY_TRY (cuda_enter (device, error));
  const Run run
      = { .device = device, .queue = queue, .point = queue->n_submitted + 1, .error = error };
  const TinyStatus status = begin (&run, submit);
  cuda_leave ();
  return status;
}

/* ---- queues ---- */
static void
free_queue (CudaQueue *queue)
{
  cuda_staging_close (&queue->staging);
  for (int i = 0; i < TINY_MAX_IN_FLIGHT; i++)
    if (queue->events[i] != NULL)
      cuda.EventDestroy (queue->events[i]);
  if (queue->stream != NULL)
    cuda.StreamDestroy (queue->stream);
}

static TinyStatus
fill_queue (CudaDevice *device, CudaQueue *queue, CudaError *error)
{
  int code = cuda.StreamCreate (&queue->stream, CUDA_STREAM_NON_BLOCKING);
  for (int i = 0; i < TINY_MAX_IN_FLIGHT && code == CUDA_SUCCESS; i++)
    code = cuda.EventCreate (&queue->events[i],
                             CUDA_EVENT_DISABLE_TIMING | CUDA_EVENT_BLOCKING_SYNC);
  const TinyStatus status
      = cuda_answer (device, error, TINY_STATUS_DRIVER, code, "making a queue");
  if (status != TINY_STATUS_OK)
    free_queue (queue);
  return status;
}

TinyStatus
cuda_queue_create (CudaDevice *device, CudaQueue **out, CudaError *error)
{
  TINY_TRY (cuda_enter (device, error));
  CudaQueue *queue = calloc (1, sizeof *queue);
  TinyStatus status
      = queue != NULL ? fill_queue (device, queue, error)
                      : tiny_fail (error, TINY_STATUS_OUT_OF_MEMORY, "no memory for a queue");
  cuda_leave ();
  if (status == TINY_STATUS_OK) {
    pthread_mutex_init (&queue->lock, NULL);
    *out = queue;
  } else
    free (queue);
  return status;
}

/* A lost device's stream and events stay the driver's until the process ends. */
void
cuda_queue_destroy (CudaDevice *device, CudaQueue *queue)
{
  if (cuda_enter (device, NULL) == TINY_STATUS_OK) {
    free_queue (queue);
    cuda_leave ();
  }
  pthread_mutex_destroy (&queue->lock);
  free (queue);
}
