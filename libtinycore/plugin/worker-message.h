/* SPDX-License-Identifier: MIT
 *
 * worker-message.h: what a program and the process that runs a backend for it say to each other.
 *
 * They share lanes. A lane is a piece of memory that both have mapped, a head and room for data, and a socket. One
 * request is under way in a lane at a time: the program writes it and raises `asked`, the worker obeys, writes the
 * answer and raises `answered`. Who waits looks for a moment, says that it sleeps, and then sleeps in the socket, where
 * the other writes a byte. The death of either side closes the socket. Each lane has a thread of its own in the worker,
 * so that requests of several threads run together; memory and new lanes come as descriptors.
 *
 * Both sides are of one version, so structs of tiny-plugin.h lie in a lane as they are. Pointers in them, and handles,
 * are the worker's: the program knows where the worker has mapped each lane. The worker trusts the program; the program
 * takes numbers and texts from the worker, and no pointer that it follows. It reads none back that it wrote. */
#pragma once

#include <stdatomic.h>

#include "device/tiny-table.h"

G_BEGIN_DECLS

/* The helper's second argument where it is to be a worker. */
#define TINY_SCAN_WORKER "worker"

enum {
  WORKER_FD = 3, /* the worker's first socket */
  WORKER_MAGIC = 0x79745701,
  WORKER_FORMAT = 1,       /* changes with this file and whatever lies in lanes */
  WORKER_HEAD = 8192,      /* bytes of a lane's head */
  WORKER_ROOM = 128 << 20, /* bytes for data; pages that nobody writes to take no memory */
  WORKER_NUMBERS = 6,
};

typedef enum {
#define WORKER_VERB(id, text) WORKER_##id,
#include "plugin/worker-verbs.def"
#undef WORKER_VERB
} WorkerVerb;

/* What a device has of the optional functions. */
enum { WORKER_HAS_QUEUES = 1u, WORKER_HAS_IMPORT_HOST = 2u, WORKER_HAS_TIMELINE = 4u };

typedef struct {
  guint32 magic, format;
  char version[32];   /* of the core that made the lane */
  guint64 base;       /* where the worker has mapped the lane; 0 before */
  guint32 is_crashed; /* the thread of this lane got a deadly signal */
  /* Each side writes its own line. */
  _Alignas(64) _Atomic guint32 asked; /* how many requests there were */
  _Atomic guint32 program_sleeps;
  _Alignas(64) _Atomic guint32 answered;
  _Atomic guint32 worker_sleeps;
  _Alignas(64) guint32 verb;
  TinyStatus status;
  guint64 numbers[WORKER_NUMBERS]; /* of the request, then of the answer */
  TinyPluginError error;
} WorkerHead;
G_STATIC_ASSERT (sizeof (WorkerHead) <= WORKER_HEAD);

static inline guint8 *
worker_data (WorkerHead *head)
{
  return (guint8 *) head + WORKER_HEAD;
}

/* ---- a lane's socket and its sleepers, for both sides ---- */

/* Sends a byte, with a descriptor unless @fd is -1: then, where bytes to wake by fill the socket, none. */
gboolean worker_send (int socket, int fd);
/* Takes a byte, and a descriptor if there is one; @flags as of recvmsg(). 0: the other side is gone; negative: errno
 * says why. Of several descriptors the last is in @out_fd (nullable: none is wanted), which has -1 or one that is
 * closed then; all others are closed, so that the other side cannot fill this process. */
gssize worker_receive (int socket, int *out_fd, int flags);

/* Makes @number @value and wakes who sleeps, as @sleeps says, at the other end of @socket. */
void worker_raise (_Atomic guint32 *number, guint32 value, _Atomic guint32 *sleeps, int socket);
/* Looks for @most_ns, at least once, whether @number has become @wanted. */
gboolean worker_look (_Atomic guint32 *number, guint32 wanted, gint64 most_ns);

/* How long to look before going to sleep: a wake-up costs both sides some microseconds. 0 where there is one
 * processor. */
gint64 worker_get_look_ns (void);

/* Memory that can be shared by sending the descriptor; -1 with errno set. */
int worker_memory_new (const char *name, gsize n_bytes);
/* Maps all of it at a multiple of @alignment, a power of two; NULL with errno set. */
void *worker_memory_map (int fd, gsize n_bytes, gsize alignment);

G_END_DECLS
