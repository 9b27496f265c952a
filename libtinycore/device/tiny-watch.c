/* SPDX-License-Identifier: MIT
 *
 * tiny-watch.c: in which function of which backend each thread is, and what is written when the program dies there.
 *
 * Each thread has a place, in an array that the handler can look through. The handler is given a thread's own
 * stack and memory in any state, so it only reads what was prepared, and calls nothing that signal-safety(7) does
 * not list. A thread that is in no function is the backend's own when what it executes lies in the backend's file,
 * or in memory of no file, such as a kernel, while another thread is in one of its functions: /proc/self/maps says
 * which. */
#include "device/tiny-watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { N_PLACES = 512 };

struct TinyWatch {
  char *note_path, *module, *head;
  gsize n_head;
};

__thread TinyWatchPlace *tiny_watch_here __attribute__ ((tls_model ("initial-exec")));

static TinyWatchPlace places[N_PLACES];
static gint is_taken[N_PLACES];
static __thread guint n_untrusted_here __attribute__ ((tls_model ("initial-exec")));
static gint n_untrusted; /* in all threads, and beside them */
static gint is_ending;   /* exit() was called: what crashes now has its reasons in that */
static TinyWatchPlace
    crowd; /* of the threads beyond: what it holds may be anybody's, and is not used */

/* ---- places ---- */
static void
give_place (gpointer data)
{
  TinyWatchPlace *place = data;
  tiny_watch_here = NULL;
  if (place != &crowd)
    g_atomic_int_set (&is_taken[place - places], FALSE);
}

static GPrivate owner = G_PRIVATE_INIT (give_place);

TinyWatchPlace *
tiny_watch_claim (void)
{
  TinyWatchPlace *place = &crowd;
  for (guint i = 0; i < N_PLACES && place == &crowd; i++)
    if (g_atomic_int_compare_and_exchange (&is_taken[i], FALSE, TRUE))
      place = &places[i];
  g_private_set (&owner, place);
  tiny_watch_here = place;
  return place;
}

/* ---- untrusted kernels ---- */
void
tiny_watch_count_untrusted (gint change)
{
  g_atomic_int_add (&n_untrusted, change);
}

TinyUntrusted
tiny_watch_begin_untrusted (gboolean is_untrusted)
{
  if (!is_untrusted)
    return FALSE;
  n_untrusted_here++;
  tiny_watch_count_untrusted (1);
  return TRUE;
}

void
tiny_watch_end_untrusted (TinyUntrusted *self)
{
  if (!*self)
    return;
  tiny_watch_count_untrusted (-1);
  n_untrusted_here--;
}

gboolean
tiny_watch_is_untrusted (void)
{
  return n_untrusted_here > 0;
}

gboolean
tiny_watch_has_untrusted (void)
{
  return g_atomic_int_get (&n_untrusted) > 0;
}

/* ---- notes; all of this runs in a signal handler ---- */
static void
put (int fd, const char *text, gsize n)
{
  for (gssize written = 1; n > 0 && written > 0; text += written, n -= (gsize) written)
    written = write (fd, text, n);
}

static void
put_text (int fd, const char *text)
{
  put (fd, text, strlen (text));
}

static void
put_number (int fd, int number)
{
  char text[2] = { (char) ('0' + number / 10 % 10), (char) ('0' + number % 10) };
  put (fd, text, sizeof text);
}

static void
write_note (const TinyWatch *watch, const char *function, int number)
{
  int fd = open (watch->note_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0)
    return;
  put (fd, watch->head, watch->n_head);
  put_text (fd, "function ");
  put_text (fd, function);
  put_text (fd, number > 0 ? "\nsignal " : "\nexit");
  if (number > 0)
    put_number (fd, number);
  put_text (fd, "\nend\n");
  close (fd);
}

static guintptr
get_instruction (const ucontext_t *context)
{
#if defined(__x86_64__)
  return (guintptr) context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
  return (guintptr) context->uc_mcontext.pc;
#else
  return 0;
#endif
}

static guintptr
read_hex (const char **at)
{
  guintptr value = 0;
  for (;; (*at)++) {
    char c = **at;
    if (c >= '0' && c <= '9')
      value = value << 4 | (guintptr) (c - '0');
    else if (c >= 'a' && c <= 'f')
      value = value << 4 | (guintptr) (c - 'a' + 10);
    else
      return value;
  }
}

/* Of a line of /proc/self/maps: the file that is mapped at @address, "" for none, NULL where the line is of others. */
static const char *
find_file (const char *line, guintptr address)
{
  const char *at = line;
  guintptr first = read_hex (&at);
  if (*at != '-')
    return NULL;
  at++;
  guintptr end = read_hex (&at);
  if (address < first || address >= end)
    return NULL;
  const char *path = strchr (at, '/');
  return path != NULL ? path : "";
}

/* Copies the path of what lies at @address, "" for memory of no file; FALSE where nothing does. */
static gboolean
look_up (guintptr address, char *out, gsize n_out)
{
  char buffer[1024];
  gsize n = 0;
  gboolean found = FALSE;
  int fd = open ("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  for (gssize got = 1; fd >= 0 && !found && got > 0;) {
    got = read (fd, buffer + n, sizeof buffer - 1 - n);
    n += got > 0 ? (gsize) got : 0;
    buffer[n] = 0;
    for (char *end; !found && (end = memchr (buffer, '\n', n)) != NULL;) {
      *end = 0;
      const char *path = find_file (buffer, address);
      found = path != NULL;
      for (gsize i = 0; found && i < n_out; i++)
        if ((out[i] = i < n_out - 1 ? path[i] : 0) == 0)
          break;
      n -= (gsize) (end + 1 - buffer);
      memmove (buffer, end + 1, n + 1);
    }
    if (n == sizeof buffer - 1)
      n = 0; /* a line that is too long is nobody's */
  }
  if (fd >= 0)
    close (fd);
  return found;
}

/* For a thread that is in no function: that of the backend whose own it seems to be. */
static TinyWatchPlace
guess_place (const ucontext_t *context)
{
  TinyWatchPlace none = { NULL, NULL };
  char path[512];
  if (tiny_watch_has_untrusted () || !look_up (get_instruction (context), path, sizeof path))
    return none;
  for (guint i = 0; i < N_PLACES; i++) {
    const TinyWatchPlace place = places[i];
    if (place.watch != NULL && place.function != NULL
        && (path[0] == 0 || strcmp (path, place.watch->module) == 0))
      return place;
  }
  return none;
}

static void
note_death (int number, siginfo_t *info, void *context)
{
  const int reason = errno;
  /* kill() of somebody else is no crash; abort() and raise() are. */
  const gboolean is_own = (info->si_code > 0 || info->si_code == SI_TKILL)
                          && !g_atomic_int_get (&is_ending) && n_untrusted_here == 0;
  TinyWatchPlace place = { NULL, NULL };
  if (is_own && tiny_watch_here != NULL && tiny_watch_here != &crowd)
    place = *tiny_watch_here;
  if (is_own && place.watch == NULL)
    place = guess_place (context);
  if (place.watch != NULL && place.function != NULL)
    write_note (place.watch, place.function, number);
  errno = reason;
  if (info->si_code <= 0)
    raise (number); /* a fault comes again by itself */
}

static void
install (void)
{
  static const int numbers[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
  struct sigaction how = { .sa_flags = SA_SIGINFO | SA_RESETHAND | SA_ONSTACK }, before;
  how.sa_sigaction = note_death;
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    if (sigaction (numbers[i], NULL, &before) == 0 && (before.sa_flags & SA_SIGINFO) == 0
        && before.sa_handler == SIG_DFL)
      sigaction (numbers[i], &how, NULL);
}

/* The program ends by exit() of this thread. */
__attribute__ ((destructor)) static void
note_exit (void)
{
  const TinyWatchPlace *here = tiny_watch_here;
  if (here != NULL && here != &crowd && here->watch != NULL && n_untrusted_here == 0)
    write_note (here->watch, here->function, 0);
  g_atomic_int_set (&is_ending, TRUE);
}

/* ---- watches ---- */
TinyWatch *
tiny_watch_new (const char *note_path, const char *module, const char *head)
{
  static gsize is_installed;
  TinyWatch *self = g_new0 (TinyWatch, 1);
  self->note_path = g_strdup (note_path);
  self->module = realpath (module, NULL);
  if (self->module == NULL)
    self->module = strdup (module);
  self->head = g_strdup (head);
  self->n_head = strlen (head);
  if (g_once_init_enter (&is_installed)) {
    install ();
    g_once_init_leave (&is_installed, 1);
  }
  return self;
}

void
tiny_watch_free (TinyWatch *self)
{
  if (self == NULL)
    return;
  g_free (self->note_path);
  free (self->module);
  g_free (self->head);
  g_free (self);
}
