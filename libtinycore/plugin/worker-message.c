/* SPDX-License-Identifier: MIT
 *
 * worker-message.c: how a program and its worker wake each other and share memory. */
#include "plugin/worker-message.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/tiny-timing.h"

gboolean
worker_send (int socket, int fd)
{
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE (sizeof (int))];
  } control;
  char byte = 0;
  struct iovec part = { &byte, 1 };
  struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
  gssize sent;
  if (fd >= 0) {
    memset (&control, 0, sizeof control);
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN (sizeof fd);
    memcpy (CMSG_DATA (&control.head), &fd, sizeof fd);
    message.msg_control = &control;
    message.msg_controllen = sizeof control.bytes;
  }
  do
    sent = sendmsg (socket, &message, MSG_NOSIGNAL | (fd < 0 ? MSG_DONTWAIT : 0));
  while (sent < 0 && errno == EINTR);
  return sent == 1 || (fd < 0 && errno == EAGAIN);
}

/* The kernel has put all of a message's descriptors into this process, wanted or not. */
static void
take_descriptors (struct msghdr *message, int *out_fd)
{
  for (struct cmsghdr *head = CMSG_FIRSTHDR (message); head != NULL;
       head = CMSG_NXTHDR (message, head)) {
    const gsize n = head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS
                        ? (head->cmsg_len - CMSG_LEN (0)) / sizeof (int)
                        : 0;
    for (gsize i = 0; i < n; i++) {
      int fd;
      memcpy (&fd, CMSG_DATA (head) + i * sizeof fd, sizeof fd);
      if (out_fd != NULL && *out_fd >= 0)
        close (*out_fd);
      if (out_fd != NULL)
        *out_fd = fd;
      else
        close (fd);
    }
  }
}

gssize
worker_receive (int socket, int *out_fd, int flags)
{
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE (sizeof (int))]; /* two fit where its end is padded */
  } control;
  char byte;
  struct iovec part = { &byte, 1 };
  struct msghdr message = { .msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control.bytes };
  gssize got;
  do
    got = recvmsg (socket, &message, flags | MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got == 1)
    take_descriptors (&message, out_fd);
  return got;
}

/* Sequentially consistent, as is the sleeper's: either it sees the number, or we see that it sleeps. */
void
worker_raise (_Atomic guint32 *number, guint32 value, _Atomic guint32 *sleeps, int socket)
{
  atomic_store (number, value);
  if (atomic_load (sleeps) != 0 && atomic_exchange (sleeps, 0) != 0)
    worker_send (socket, -1);
}

static inline void
pause_briefly (void)
{
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause ();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

gboolean
worker_look (_Atomic guint32 *number, guint32 wanted, gint64 most_ns)
{
  enum { LOOKS = 32 };
  for (gint64 start = 0;;) {
    for (guint i = 0; i < LOOKS; i++) {
      if (atomic_load_explicit (number, memory_order_acquire) == wanted)
        return TRUE;
      pause_briefly ();
    }
    const gint64 now = tiny_timing_now_ns ();
    start = start == 0 ? now : start;
    if (now - start >= most_ns)
      return FALSE;
    sched_yield (); /* the other side may be waiting for this very processor */
  }
}

gint64
worker_get_look_ns (void)
{
  return g_get_num_processors () > 1 ? 30000 : 0;
}

int
worker_memory_new (const char *name, gsize n_bytes)
{
  struct rlimit most;
  /* The program would get SIGXFSZ. */
  if (getrlimit (RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY
      && n_bytes > most.rlim_cur) {
    errno = EFBIG;
    return -1;
  }
  int fd = memfd_create (name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0)
    return -1;
  if (ftruncate (fd, (off_t) n_bytes) != 0
      || fcntl (fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    int reason = errno;
    close (fd);
    errno = reason;
    return -1;
  }
  return fd;
}

void *
worker_memory_map (int fd, gsize n_bytes, gsize alignment)
{
  const gsize page = (gsize) sysconf (_SC_PAGESIZE), size = (n_bytes + page - 1) & ~(page - 1);
  const gsize spare = alignment > page ? alignment - page : 0;
  if (size < n_bytes || spare > G_MAXSSIZE - size) {
    errno = ENOMEM;
    return NULL;
  }
  /* Addresses first, then the memory in the part of them that fits; the rest goes back. */
  guint8 *room = mmap (NULL, size + spare, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED)
    return NULL;
  const gsize skip = alignment > 1 ? -GPOINTER_TO_SIZE (room) & (alignment - 1) : 0;
  if (mmap (room + skip, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0)
      == MAP_FAILED) {
    const int reason = errno;
    munmap (room, size + spare);
    errno = reason;
    return NULL;
  }
  if (skip > 0)
    munmap (room, skip);
  if (spare > skip)
    munmap (room + skip + size, spare - skip);
  return room + skip;
}
