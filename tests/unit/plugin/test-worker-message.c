/* SPDX-License-Identifier: MIT
 *
 * test-worker-message.c: a message brings the descriptor that is sent, and no number of descriptors that a worker
 * puts into messages stays in the program. */
#include "plugin/worker-message.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { N_MESSAGES = 100, MOST = 8 };

static guint
count_descriptors (void)
{
  guint n = 0;
  DIR *folder = opendir ("/proc/self/fd");
  g_assert_nonnull (folder);
  while (readdir (folder) != NULL)
    n++;
  closedir (folder);
  return n;
}

/* One byte with @n descriptors. */
static void
send_several (int socket, guint n)
{
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE (MOST * sizeof (int))];
  } control = { 0 };
  char byte = 0;
  struct iovec part = { &byte, 1 };
  struct msghdr message = { .msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = CMSG_SPACE (n * sizeof (int)) };
  control.head.cmsg_level = SOL_SOCKET;
  control.head.cmsg_type = SCM_RIGHTS;
  control.head.cmsg_len = CMSG_LEN (n * sizeof (int));
  memset (CMSG_DATA (&control.head), 0, n * sizeof (int)); /* number 0 */
  g_assert_cmpint (sendmsg (socket, &message, 0), ==, 1);
}

static void
test_several (void)
{
  int ends[2];
  g_assert_cmpint (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), ==, 0);
  const guint before = count_descriptors ();
  for (guint i = 0; i < N_MESSAGES; i++) {
    send_several (ends[0], 1 + i % MOST);
    g_assert_cmpint (worker_receive (ends[1], NULL, MSG_DONTWAIT), ==, 1);
  }
  g_assert_cmpuint (count_descriptors (), ==, before);
  int fd = -1;
  for (guint i = 0; i < N_MESSAGES; i++) {
    send_several (ends[0], 1 + i % MOST);
    g_assert_cmpint (worker_receive (ends[1], &fd, MSG_DONTWAIT), ==, 1);
    g_assert_cmpint (fd, >=, 0);
  }
  g_assert_cmpuint (count_descriptors (), ==, before + 1);
  g_assert_cmpint (fcntl (fd, F_GETFD), ==, FD_CLOEXEC);
  close (fd);
  g_assert_true (worker_send (ends[0], ends[0]));
  fd = -1;
  g_assert_cmpint (worker_receive (ends[1], &fd, MSG_DONTWAIT), ==, 1);
  g_assert_cmpint (fd, >=, 0);
  close (fd);
  close (ends[0]);
  close (ends[1]);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/plugin/worker-message/several", test_several);
  return g_test_run ();
}
