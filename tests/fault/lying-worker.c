/* SPDX-License-Identifier: MIT
 *
 * lying-worker.c: the worker of worker-serve.c, but that the answers it gives are changed before the program sees them:
 * by chance, of the seed in TINY_TEST_LIE, from some answer on; or as the word there says. "drip": it never answers
 * again, and sends a byte now and then; "flood": as many as the socket takes, with descriptors; "deaf": it says that it
 * sleeps and takes no byte out of its socket; "other": it is of another version. */
#include "lying-worker.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>

#include "plugin/worker-message.h"

static void
lie_and_raise (_Atomic guint32 *number, guint32 value, _Atomic guint32 *sleeps, int socket);
static gssize receive_or_not (int socket, int *out_fd, int flags);
static const char *get_own_version (void);
static const char version[] = TINY_VERSION;

#undef TINY_VERSION
#define TINY_VERSION      get_own_version ()
#define tiny_worker_serve lying_worker_serve
#define worker_raise      lie_and_raise
#define worker_receive    receive_or_not
#include "plugin/worker-serve.c"
#undef worker_raise
#undef worker_receive

enum { FIRST_LIE = 40, LANE_SENDS = 64 };

static const char *
get_lie (void)
{
  const char *lie = getenv ("TINY_TEST_LIE");
  return lie != NULL ? lie : "0";
}

static const char *
get_own_version (void)
{
  return strcmp (get_lie (), "other") == 0 ? "0.0.1" : version;
}

static gboolean
is_deaf (void)
{
  return strcmp (get_lie (), "deaf") == 0 && backend != NULL;
}

static gssize
receive_or_not (int socket, int *out_fd, int flags)
{
  return is_deaf () && of_this_thread != NULL ? 1 : worker_receive (socket, out_fd, flags);
}

static guint64
odd_number (GRand *chance, guint64 now)
{
  const guint64 numbers[] = { 0,
                              1,
                              2,
                              now + 1,
                              now - 1,
                              now << 32,
                              G_MAXUINT64,
                              G_MAXINT64,
                              G_MAXUINT32,
                              G_MAXINT32,
                              (gsize) WORKER_ROOM,
                              WORKER_ROOM + 1,
                              4096,
                              1ull << 63,
                              now ^ 1,
                              12345 };
  return numbers[g_rand_int_range (chance, 0, G_N_ELEMENTS (numbers))];
}

static void
scribble (GRand *chance, guint8 *data, gsize n)
{
  const guint8 byte = (guint8) g_rand_int (chance);
  const gboolean is_random = g_rand_boolean (chance);
  for (gsize i = 0; i < n; i++)
    data[i] = is_random ? (guint8) g_rand_int (chance) : byte;
}

/* One thing that is not so. */
static void
lie (WorkerHead *head, GRand *chance, int socket)
{
  static const int statuses[] = { 0, 1, 77, INT_MAX, INT_MIN, -1, -2, -3, -9, -14, -15, -1000 };
  const guint i = (guint) g_rand_int_range (chance, 0, WORKER_NUMBERS);
  switch (g_rand_int_range (chance, 0, 12)) {
  case 0:
  case 1:
    head->numbers[0] = odd_number (chance, head->numbers[0]);
    break;
  case 2:
    head->numbers[i] = odd_number (chance, head->numbers[i]);
    break;
  case 3:
  case 4:
    head->status = statuses[g_rand_int_range (chance, 0, G_N_ELEMENTS (statuses))];
    break;
  case 5:
    scribble (chance, (guint8 *) &head->error, sizeof head->error);
    head->status = -1;
    break;
  case 6:
  case 7: /* a part of the data */
    scribble (chance, worker_data (head) + g_rand_int_range (chance, 0, 600),
              (gsize) g_rand_int_range (chance, 1, 64));
    break;
  case 8:
    scribble (chance, worker_data (head), 1 << 16);
    break;
  case 9:
    head->asked = (guint32) odd_number (chance, head->asked);
    head->verb = (guint32) odd_number (chance, head->verb);
    break;
  case 10:
    head->answered = (guint32) odd_number (chance, head->answered);
    head->base = odd_number (chance, head->base);
    break;
  default:
    for (guint k = 0; k < LANE_SENDS; k++)
      worker_send (socket, k % 2 == 0 ? socket : -1);
  }
}

static void
lie_for_ever (const char *how, int socket)
{
  const gboolean drips = strcmp (how, "drip") == 0, floods = strcmp (how, "flood") == 0;
  while (drips || floods) {
    worker_send (socket, floods ? socket : -1);
    g_usleep (drips ? 50000 : 0);
  }
}

static void
lie_and_raise (_Atomic guint32 *number, guint32 value, _Atomic guint32 *sleeps, int socket)
{
  static _Atomic guint n_answers;
  const char *how = get_lie ();
  const guint seed = (guint) atoi (how), n = n_answers++;
  g_autoptr (GRand) chance = g_rand_new_with_seed (seed);
  const guint first = (guint) g_rand_int_range (chance, 1, FIRST_LIE);
  g_rand_set_seed (chance, seed * FIRST_LIE + n);
  if (seed != 0 && n >= first)
    lie (of_this_thread, chance, socket);
  if (seed == 0 && n == FIRST_LIE / 4)
    lie_for_ever (how, socket);
  if (is_deaf ())
    atomic_store (&of_this_thread->worker_sleeps, 1);
  worker_raise (number, value, sleeps, socket);
}
