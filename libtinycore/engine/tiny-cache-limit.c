/* SPDX-License-Identifier: MIT
 *
 * tiny-cache-limit.c: the account of a folder, and who goes when it is full.
 *
 * A file "account" in the folder says what the others take and when they were last counted. Each
 * process adds what it writes, under the file's lock; who passes the limit counts anew and removes
 * the oldest. The account may be wrong (a process was killed before it wrote, or could not get the
 * lock, for which nobody waits): so all is counted anew every day, and where the account is missing
 * or makes no sense. A file that goes while another process reads it is read to its end. */
#include "engine/tiny-cache-limit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tiny-descriptor.h"

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

static void
clear_entry (gpointer data)
{
  g_free (((Entry *) data)->name);
}

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

/* Lists the entries of the folder. What a process that died was writing goes; what a process may be
 * writing now is its own. */
static GArray *
list_entries (DIR *folder, gint64 now_s)
{
  GArray *entries = g_array_new (FALSE, FALSE, sizeof (Entry));
  g_array_set_clear_func (entries, clear_entry);
  for (struct dirent *item; (item = readdir (folder)) != NULL;) {
    struct stat about;
    gboolean is_account = strcmp (item->d_name, account_name) == 0;
    if (is_account || fstatat (dirfd (folder), item->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0
        || !S_ISREG (about.st_mode))
      continue;
    if (is_temporary (item->d_name)) {
      if (now_s - about.st_mtim.tv_sec > HOUR_S)
        unlinkat (dirfd (folder), item->d_name, 0);
      continue;
    }
    Entry entry = { g_strdup (item->d_name), round_up (about.st_size), about.st_mtim.tv_sec,
                    about.st_mtim.tv_nsec };
    g_array_append_val (entries, entry);
  }
  return entries;
}

/* Counts what is there and makes room where it is too much; what is left. */
static gint64
count_and_trim (const char *path, gint64 limit, gint64 now_s)
{
  DIR *folder = opendir (path);
  if (folder == NULL)
    return 0;
  g_autoptr (GArray) entries = list_entries (folder, now_s);
  gint64 total = 0;
  for (guint i = 0; i < entries->len; i++)
    total += g_array_index (entries, Entry, i).n_bytes;
  if (total > limit) {
    g_array_sort (entries, compare_entries);
    for (guint i = 0; i < entries->len && total > limit / 4 * 3; i++) {
      const Entry *entry = &g_array_index (entries, Entry, i);
      if (unlinkat (dirfd (folder), entry->name, 0) == 0 || errno == ENOENT)
        total -= entry->n_bytes;
    }
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
