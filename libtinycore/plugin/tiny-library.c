/* SPDX-License-Identifier: MIT
 *
 * tiny-library.c: where the loader would find a library: ld.so(8), and the layout of its cache
 * (glibc, sysdeps/generic/dl-cache.h: 48 bytes of head, 24 of each entry, texts). */
#include "plugin/tiny-library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tiny-descriptor.h"
#include "base/tiny-env.h"

#define CACHE       "/etc/ld.so.cache"
#define CACHE_MAGIC "glibc-ld.so.cache1.1"

enum { MAX_LIBRARIES = 512, ANSWERS_WITHIN_US = 1000000, MAX_ANSWER = 64 << 10 };

/* ---- folders ---- */
/* (transfer full): the folders of a run path, "$ORIGIN" replaced. */
static char **
expand_path (const TinyElf *needer, const char *path)
{
  g_autofree char *origin = g_path_get_dirname (needer->path);
  g_auto (GStrv) parts = g_strsplit (path, ":", -1);
  GPtrArray *out = g_ptr_array_new ();
  for (guint i = 0; parts[i] != NULL; i++) {
    GString *folder = g_string_new (parts[i]);
    g_string_replace (folder, "${ORIGIN}", origin, 0);
    g_string_replace (folder, "$ORIGIN", origin, 0);
    g_ptr_array_add (out, g_string_free (folder, FALSE));
  }
  g_ptr_array_add (out, NULL);
  return (char **) g_ptr_array_free (out, FALSE);
}

static gboolean
fits (const TinyElf *needer, const char *path)
{
  ElfW (Ehdr) head;
  int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  gboolean read = fd >= 0 && pread (fd, &head, sizeof head, 0) == (gssize) sizeof head;
  if (fd >= 0)
    close (fd);
  return read && memcmp (head.e_ident, needer->head.e_ident, EI_DATA + 1) == 0
         && head.e_machine == needer->head.e_machine;
}

static char *
find_in (const TinyElf *needer, const char *const *folders, const char *name)
{
  for (guint i = 0; folders != NULL && folders[i] != NULL; i++) {
    g_autofree char *path = g_build_filename (folders[i], name, NULL);
    if (folders[i][0] != 0 && fits (needer, path))
      return g_steal_pointer (&path);
  }
  return NULL;
}

static char *
find_in_tag (const TinyElf *needer, gint64 tag, const char *name)
{
  guint64 at;
  const char *path
      = tiny_elf_find_tag (needer, tag, &at) ? tiny_elf_get_text (needer, at) : NULL;
  g_auto (GStrv) folders = path ? expand_path (needer, path) : NULL;
  return find_in (needer, (const char *const *) folders, name);
}

/* ---- the loader's cache ---- */
typedef struct {
  gint32 flags;
  guint32 key, value, os_version;
  guint64 hwcap;
} CacheEntry;

static char *
find_in_cache (const TinyElf *needer, const char *name)
{
  g_autofree char *data = NULL;
  gsize size = 0;
  const gsize magic = strlen (CACHE_MAGIC), head = 48;
  if (!g_file_get_contents (CACHE, &data, &size, NULL))
    return NULL;
  const char *base = g_strstr_len (data, (gssize) MIN (size, 1 << 20), CACHE_MAGIC);
  /* An older table may come before it; offsets count from this one's head. */
  if (base == NULL || size - (gsize) (base - data) < head)
    return NULL;
  gsize room = size - (gsize) (base - data);
  guint32 n;
  memcpy (&n, base + magic, sizeof n);
  for (guint32 i = 0; i < n && head + (i + 1) * sizeof (CacheEntry) <= room; i++) {
    CacheEntry entry;
    memcpy (&entry, base + head + i * sizeof entry, sizeof entry);
    if (entry.key >= room || entry.value >= room
        || memchr (base + entry.key, 0, room - entry.key) == NULL
        || memchr (base + entry.value, 0, room - entry.value) == NULL)
      return NULL;
    if (strcmp (base + entry.key, name) == 0 && fits (needer, base + entry.value))
      return g_strdup (base + entry.value);
  }
  return NULL;
}

static char *
find_in_usual (const TinyElf *needer, const char *name)
{
  static const char *const usual[]
      = { "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib", NULL };
  Dl_info info;
  /* Beside this machine's C library: whatever a distribution calls that folder. */
  if (dladdr ((void *) fopen, &info) != 0 && info.dli_fname != NULL) {
    g_autofree char *folder = g_path_get_dirname (info.dli_fname);
    const char *const folders[] = { folder, NULL };
    char *found = find_in (needer, folders, name);
    if (found != NULL)
      return found;
  }
  return find_in (needer, usual, name);
}

char *
tiny_library_find (const TinyElf *needer, const char *name)
{
  guint64 unused;
  if (strchr (name, '/') != NULL)
    return fits (needer, name) ? g_strdup (name) : NULL;
  char *found = NULL;
  if (!tiny_elf_find_tag (needer, DT_RUNPATH, &unused))
    found = find_in_tag (needer, DT_RPATH, name);
  const char *list = tiny_env_is_privileged () ? NULL : g_getenv ("LD_LIBRARY_PATH");
  if (found == NULL && list != NULL) {
    g_auto (GStrv) folders = g_strsplit_set (list, ":;", -1);
    found = find_in (needer, (const char *const *) folders, name);
  }
  if (found == NULL)
    found = find_in_tag (needer, DT_RUNPATH, name);
  if (found == NULL)
    found = find_in_cache (needer, name);
  return found ? found : find_in_usual (needer, name);
}

char *
tiny_library_get_own_path (void)
{
  Dl_info own, program;
  if (dladdr ((void *) tiny_library_get_own_path, &own) == 0 || own.dli_fname == NULL)
    return NULL;
  if (dladdr ((void *) getauxval (AT_PHDR), &program) != 0
      && program.dli_fbase == own.dli_fbase)
    return g_file_read_link ("/proc/self/exe", NULL);
  /* Where /lib is a link to /usr/lib, a library that was loaded from /lib lies in /usr. */
  char *real = realpath (own.dli_fname, NULL);
  char *path = g_strdup (real != NULL ? real : own.dli_fname);
  free (real);
  return path;
}

/* ---- what is missing ---- */
char *
tiny_library_find_missing (const char *path, char **out_needer)
{
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GPtrArray) queue = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (queue, g_strdup (path));
  *out_needer = NULL;
  for (guint i = 0; i < queue->len && i < MAX_LIBRARIES; i++) {
    g_autoptr (TinyElf) elf = tiny_elf_open (queue->pdata[i], NULL);
    for (guint j = 0; elf != NULL && j < elf->needed->len; j++) {
      const char *name = elf->needed->pdata[j];
      if (!g_hash_table_add (seen, g_strdup (name)))
        continue;
      char *found = tiny_library_find (elf, name);
      if (found == NULL) {
        *out_needer = i > 0 ? g_strdup (elf->path) : NULL;
        return g_strdup (name);
      }
      g_ptr_array_add (queue, found);
    }
  }
  return NULL;
}

/* ---- packages ---- */
/* All that is written to @fd before @end_us; FALSE where there may be more. */
static gboolean
read_until (int fd, gint64 end_us, GString *out)
{
  char part[4096];
  for (;;) {
    const gint64 left_us = end_us - g_get_monotonic_time ();
    struct pollfd polled = { fd, POLLIN, 0 };
    if (left_us <= 0 || out->len > MAX_ANSWER)
      return FALSE;
    if (poll (&polled, 1, (int) (left_us / 1000) + 1) <= 0)
      continue;
    const gssize n = read (fd, part, sizeof part);
    if (n <= 0)
      return n == 0;
    g_string_append_len (out, part, n);
  }
}

/* Ends it unless it ends by itself; FALSE where it did not, or failed. Where the program ignores its children, what
 * it said counts alone. */
static gboolean
wait_until (pid_t pid, gint64 end_us)
{
  int status = 0;
  pid_t got;
  while ((got = waitpid (pid, &status, WNOHANG)) == 0 && g_get_monotonic_time () < end_us)
    g_usleep (1000);
  if (got == 0) {
    kill (pid, SIGKILL);
    waitpid (pid, &status, 0);
    return FALSE;
  }
  return got < 0 || (WIFEXITED (status) && WEXITSTATUS (status) == 0);
}

/* The first line that a program says, or NULL where it is absent, fails or takes its time; @name came out of a
 * file. */
static char *
ask (const char *program, const char *a, const char *b, const char *name)
{
  const gint64 end_us = g_get_monotonic_time () + ANSWERS_WITHIN_US;
  g_autofree char *path = g_find_program_in_path (program);
  const char *const argv[] = { path, a, b ? b : name, b ? name : NULL, NULL };
  int ends[2];
  pid_t pid;
  if (path == NULL || pipe2 (ends, O_CLOEXEC) != 0)
    return NULL;
  const TinySpawnEnd given[] = { { ends[1], 1 }, { -1, 2 } };
  const int failure = tiny_spawn (path, argv, NULL, FALSE, given, G_N_ELEMENTS (given), &pid);
  close (ends[1]);
  g_autoptr (GString) said = g_string_new (NULL);
  const gboolean good = failure == 0 && read_until (ends[0], end_us, said);
  close (ends[0]);
  if (failure != 0 || !wait_until (pid, good ? end_us : 0) || !good || said->len == 0)
    return NULL;
  return g_strndup (said->str, strcspn (said->str, "\n"));
}

/* Debian's name of a library's package: Policy Manual 8.1, "libfoo.so.1" → "libfoo1". */
static char *
guess_debian (const char *name)
{
  const char *mark = strstr (name, ".so");
  if (mark == NULL || mark == name)
    return NULL;
  GString *out = g_string_new_len (name, mark - name);
  const char *version = g_str_has_prefix (mark, ".so.") ? mark + strlen (".so.") : "";
  if (version[0] != 0 && g_ascii_isdigit (out->str[out->len - 1]))
    g_string_append_c (out, '-');
  g_string_append (out, version);
  g_string_ascii_down (out);
  g_string_replace (out, "_", "-", 0);
  return g_string_free (out, FALSE);
}

static gboolean
is_plain (const char *name)
{
  for (const char *c = name; *c != 0; c++)
    if (!g_ascii_isalnum (*c) && strchr ("._+-", *c) == NULL)
      return FALSE;
  return name[0] != 0 && name[0] != '-' && strlen (name) < 256;
}

char *
tiny_library_find_package (const char *name)
{
  /* The programs are found in PATH, which is not the privileged program's. */
  if (!is_plain (name) || tiny_env_is_privileged ())
    return NULL;
  g_autofree char *pattern = g_strconcat ("*/", name, NULL);
  g_autofree char *installed = ask ("dpkg-query", "-S", NULL, pattern);
  if (installed != NULL) { /* "libfoo1:amd64: /opt/lib/libfoo.so.1" */
    installed[strcspn (installed, ":,")] = 0;
    return g_steal_pointer (&installed);
  }
  g_autofree char *guess = guess_debian (name);
  g_autofree char *known = guess ? ask ("apt-cache", "show", "--no-all-versions", guess) : NULL;
  if (known != NULL)
    return g_steal_pointer (&guess);
  g_autofree char *capability
      = g_strconcat (name, sizeof (void *) == 8 ? "()(64bit)" : "", NULL);
  char *provider = ask ("rpm", "-q", "--whatprovides", capability);
  return provider ? provider : ask ("rpm", "-q", "--whatprovides", name);
}
