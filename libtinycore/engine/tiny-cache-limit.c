/* SPDX-License-Identifier: MIT
 *
 * tiny-cache-limit.c: the account of a folder, and who goes when it is full.
 *
 * A file "account" in the folder says what the others take and when they were last counted. Each
 * process adds what it writes, under the file's lock; who passes the limit counts anew and removes
 * the oldest. The account may be wrong (a process was killed before it wrote, or could not get the
 * lock, for which nobody waits): so all is counted anew every day, and where the account is missing
 * or makes no sense. A time that is more than an hour ahead is from a clock that was wrong, and says
 * nothing. A file that goes while another process reads it is read to its end. */
#include "engine/tiny-cache-limit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tiny-descriptor.h"
#include "base/tiny-memory.h"

enum { BLOCK = 4096, HOUR_S = 3600, DAY_S = 24 * HOUR_S, SUFFIX = 6 /* of mkstemp() */ };
static const char account_name[] = "account";
static const char account_magic[8] = "TINYACC1";

typedef struct {
  char magic[8];
  gint64 n_bytes;
  gint64 counted_s; /* seconds since 1970 */
} Account;

typedef struct {
  char *name;
  gint64 n_bytes, used_s, used_ns;
} Entry;

static GMutex lock; /* the file's lock is for processes */

static int
compare_entries (gconstpointer a, gconstpointer b)
{
  const Entry *x = a, *y = b;
  if (x->used_s != y->used_s)
    return x->used_s < y->used_s ? -1 : 1;
  return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

static gint64
round_up (gint64 n_bytes)
{
  return (n_bytes + BLOCK - 1) / BLOCK * BLOCK;
}

static gboolean
is_temporary (const char *name)
{
  const char *dot = strrchr (name, '.');
  return dot != NULL && strlen (dot + 1) == SUFFIX;
}

static gboolean
is_ahead (gint64 time_s, gint64 now_s)
{
  return time_s > now_s && time_s - HOUR_S > now_s;
}

/* Adds an entry, and what it takes; where there is no memory for it, it stays in the folder. */
static void
add_entry (TinyVector *entries,
           const char *name,
           const struct stat *about,
           gint64 now_s,
           gint64 *total)
{
  Entry entry = { g_strdup (name), round_up (about->st_size), about->st_mtim.tv_sec,
                  about->st_mtim.tv_nsec };
  if (is_ahead (entry.used_s, now_s))
    entry.used_s = entry.used_ns = 0;
  *total += entry.n_bytes;
  if (!tiny_vector_append (entries, &entry, sizeof entry))
    g_free (entry.name);
}

/* Lists the entries of the folder; what they take. What a process that died was writing goes; what a
 * process may be writing now is its own. */
static gint64
list_entries (DIR *folder, gint64 now_s, TinyVector *entries)
{
  gint64 total = 0;
  for (struct dirent *item; (item = readdir (folder)) != NULL;) {
    struct stat about;
    gboolean is_account = strcmp (item->d_name, account_name) == 0;
    if (is_account || fstatat (dirfd (folder), item->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0
        || !S_ISREG (about.st_mode))
      continue;
    const gint64 written_s = about.st_mtim.tv_sec;
    if (!is_temporary (item->d_name))
      add_entry (entries, item->d_name, &about, now_s, &total);
    else if (now_s - written_s > HOUR_S || is_ahead (written_s, now_s))
      unlinkat (dirfd (folder), item->d_name, 0);
  }
  return total;
}

/* Counts what is there and makes room where it is too much; what is left. */
static gint64
count_and_trim (const char *path, gint64 limit, gint64 now_s)
{
  DIR *folder = opendir (path);
  g_auto (TinyVector) list = { NULL };
  if (folder == NULL)
    return 0;
  gint64 total = list_entries (folder, now_s, &list);
  Entry *entries = (Entry *) list.data;
  const gsize n = list.n_bytes / sizeof *entries;
  const gboolean is_full = total > limit;
  if (is_full)
    qsort (entries, n, sizeof *entries, compare_entries);
  for (gsize i = 0; i < n; i++) {
    if (is_full && total > limit / 4 * 3
        && (unlinkat (dirfd (folder), entries[i].name, 0) == 0 || errno == ENOENT))
      total -= entries[i].n_bytes;
    g_free (entries[i].name);
  }
  closedir (folder);
  return total;
}

static gboolean
is_sound (const Account *account, gint64 now_s)
{
  gint64 age_s = now_s - account->counted_s;
  return memcmp (account->magic, account_magic, sizeof account_magic) == 0
         && account->n_bytes >= 0 && age_s >= 0 && age_s <= DAY_S;
}

void
tiny_cache_limit_add (const char *folder, gint64 n_bytes, gint64 limit)
{
  g_autofree char *path = g_build_filename (folder, account_name, NULL);
  gint64 now_s = g_get_real_time () / G_USEC_PER_SEC;
  g_mutex_lock (&lock);
  int fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd >= 0 && flock (fd, LOCK_EX | LOCK_NB) == 0) {
    Account account = { { 0 } };
    gboolean sound = pread (fd, &account, sizeof account, 0) == (gssize) sizeof account
                     && is_sound (&account, now_s);
    account.n_bytes += round_up (n_bytes);
    if (!sound || account.n_bytes > limit) {
      memcpy (account.magic, account_magic, sizeof account_magic);
      account.n_bytes = count_and_trim (folder, limit, now_s);
      account.counted_s = now_s;
    }
    TinyFileLimit most;
    tiny_file_limit_hold (&most);
    /* What is not written whole is not sound, and counted anew. */
    if (pwrite (fd, &account, sizeof account, 0) != (gssize) sizeof account
        && ftruncate (fd, 0) != 0)
      g_debug ("%s cannot be written", path);
    tiny_file_limit_release (&most);
  }
  if (fd >= 0)
    close (fd);
  g_mutex_unlock (&lock);
}

void
tiny_cache_limit_touch (const char *path)
{
  /* A cache that cannot be written to is not trimmed either. */
  if (utimensat (AT_FDCWD, path, NULL, 0) != 0)
    g_debug ("%s: %s", path, g_strerror (errno));
}
