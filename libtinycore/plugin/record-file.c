/* SPDX-License-Identifier: MIT
 *
 * record-file.c: the file of a record, written as the program goes.
 *
 * The file is made when there is something to be written, so that a program whose backends cannot be recorded leaves
 * none. One lock for all threads. What cannot be written whole is taken back, so that the file ends with a frame, and
 * recording ends with one warning; the program goes on. A process that was forked records nothing. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/tiny-descriptor.h"
#include "base/tiny-env.h"
#include "plugin/record-private.h"

enum { LEAST_BYTES = 16 << 10 };

static struct {
  GMutex lock;
  gint is_on;
  int fd;
  char *path;
  pid_t pid;
  guint64 n_bytes, most_bytes;
  const char *most_reason; /* what is said where it has them */
  guint64 n_calls;
  guint64 n_data;
  GHashTable *data;   /* digest → number */
  TinyVector payload; /* of the frame that is written */
} file = { .fd = -1 };

/* ---- frames ---- */

/* Under the lock. */
static void
stop (const char *reason)
{
  g_atomic_int_set (&file.is_on, FALSE);
  g_warning ("TINY_RECORD=%s: %s; nothing more is recorded", file.path, reason);
}

/* Under the lock. Frames are written with one call where they are small. */
static void
append (TinyRecordKind kind, guint64 call, const TinyVector *payload)
{
  guint64 head[RECORD_HEAD_WORDS]
      = { [RECORD_KIND] = GUINT64_TO_LE (kind), [RECORD_CALL_NUMBER] = GUINT64_TO_LE (call) };
  const gsize n_bytes = payload->n_bytes;
  head[RECORD_N_BYTES] = GUINT64_TO_LE (n_bytes);
  head[RECORD_CHECK] = GUINT64_TO_LE (record_checksum (payload->data, n_bytes));
  head[RECORD_HEAD_CHECK]
      = GUINT64_TO_LE (record_checksum (head, RECORD_HEAD_CHECK * sizeof *head));
  if (!tiny_write_all (file.fd, head, sizeof head)
      || !tiny_write_all (file.fd, payload->data, n_bytes)) {
    const int reason = errno;
    if (ftruncate (file.fd, (off_t) file.n_bytes) != 0)
      g_debug ("%s: a frame that is cut off stays", file.path);
    stop (g_strerror (reason));
    return;
  }
  file.n_bytes += sizeof head + n_bytes;
}

static void
pad (TinyVector *out)
{
  static const guint8 zeros[8];
  tiny_vector_append (out, zeros, -out->n_bytes & 7u);
}

/* Under the lock: the record says why it ends, for which there is always room. */
static void
end (const char *reason)
{
  const gsize size = strlen (reason) + 1;
  tiny_vector_clear (&file.payload);
  record_put_number (&file.payload, size);
  tiny_vector_append (&file.payload, reason, size);
  pad (&file.payload);
  if (!file.payload.is_short)
    append (TINY_RECORD_STOPPED, ++file.n_calls, &file.payload);
  if (g_atomic_int_get (&file.is_on))
    stop (reason);
}

/* FALSE: there is no room for the frame, or no memory, and the record has ended; under the lock. */
static gboolean
has_room (const TinyVector *payload)
{
  enum { SPARE = 4096 };
  const char *why = payload->is_short ? "there is no memory for it"
                    : file.n_bytes + payload->n_bytes + SPARE > file.most_bytes
                        ? file.most_reason
                        : NULL;
  if (why != NULL)
    end (why);
  return why == NULL;
}

static void
put_values (TinyVector *out, const TinyRecordRow *row, const RecordValue *values)
{
  const char *name;
  gsize length;
  char kind;
  out->n_bytes = 0;
  for (guint i = 0; tiny_record_row_get_field (row, i, &name, &length, &kind); i++) {
    const RecordValue *value = &values[i];
    gsize n_bytes = value->n_bytes;
    const void *bytes = value->bytes;
    if (strchr ("uihd", kind) != NULL) {
      record_put_number (out, value->number);
      continue;
    }
    if (kind == 't') {
      bytes = bytes != NULL ? bytes : "";
      n_bytes = strlen (bytes) + 1;
    }
    record_put_number (out, n_bytes);
    if (n_bytes > 0)
      tiny_vector_append (out, bytes, n_bytes);
    pad (out);
  }
}

static guint64
write_locked (TinyRecordKind kind, guint64 call, const RecordValue *values)
{
  put_values (&file.payload, tiny_record_get_row (kind), values);
  if (call == 0)
    call = ++file.n_calls;
  if (has_room (&file.payload))
    append (kind, call, &file.payload);
  return call;
}

static gboolean open_file (void);

/* Whether this process records now; takes the lock if so. */
static gboolean
begin (void)
{
  if (!g_atomic_int_get (&file.is_on))
    return FALSE;
  g_mutex_lock (&file.lock);
  if (g_atomic_int_get (&file.is_on) && file.pid == getpid () && (file.fd >= 0 || open_file ()))
    return TRUE;
  g_mutex_unlock (&file.lock);
  return FALSE;
}

guint64
record_write (TinyRecordKind kind, guint64 call, const RecordValue *values)
{
  if (!begin ())
    return 0;
  call = write_locked (kind, call, values);
  g_mutex_unlock (&file.lock);
  return call;
}

TinyStatus
record_result (
    guint64 call, TinyStatus status, const TinyPluginError *error, guint64 value, guint64 data)
{
  char text[sizeof error->text] = "", hint[sizeof error->hint] = "";
  if (status < 0 && error != NULL) {
    g_strlcpy (text, error->text, sizeof text);
    g_strlcpy (hint, error->hint, sizeof hint);
  }
  const RecordValue values[]
      = { RECORD_NUMBER ((gint64) status), RECORD_TEXT (text), RECORD_TEXT (hint),
          RECORD_NUMBER (value), RECORD_NUMBER (data) };
  if (call != 0)
    record_write (TINY_RECORD_RESULT, call, values);
  return status;
}

guint64
record_data (const void *data, gsize size)
{
  char digest[33];
  if (data == NULL || !g_atomic_int_get (&file.is_on))
    return 0;
  tiny_record_digest (data, size, digest);
  if (!begin ())
    return 0;
  guint64 number = GPOINTER_TO_SIZE (g_hash_table_lookup (file.data, digest));
  if (number == 0 && size < G_MAXUINT / 2) {
    number = ++file.n_data;
    g_hash_table_insert (file.data, g_strdup (digest), GSIZE_TO_POINTER (number));
    const RecordValue values[]
        = { RECORD_NUMBER (number), RECORD_TEXT (digest), { .bytes = data, .n_bytes = size } };
    write_locked (TINY_RECORD_DATA, 0, values);
  }
  g_mutex_unlock (&file.lock);
  return number;
}

gboolean
record_check_whole (const TinyVector *bytes)
{
  if (bytes->is_short && begin ()) {
    has_room (bytes);
    g_mutex_unlock (&file.lock);
  }
  return !bytes->is_short;
}

guint64
record_data_text (const char *text)
{
  return text != NULL ? record_data (text, strlen (text)) : 0;
}

/* ---- the beginning and the end ---- */

/* What is set of the environment that tinycore knows, a line each. */
static char *
describe_environment (void)
{
  GString *out = g_string_new (NULL);
  for (guint i = 0; i < TINY_N_ENVS; i++) {
    const char *name = tiny_env_get_name (i), *value = g_getenv (name);
    if (value != NULL)
      g_string_append_printf (out, "%s=%s\n", name, value);
  }
  return g_string_free (out, FALSE);
}

/* Under the lock. */
static void
write_head (void)
{
  struct utsname system;
  g_autoptr (GDateTime) now = g_date_time_new_now_utc ();
  g_autofree char *time = g_date_time_format_iso8601 (now);
  g_autofree char *environment = describe_environment ();
  g_autofree char *where
      = uname (&system) == 0
            ? g_strdup_printf ("%s %s %s", system.sysname, system.release, system.machine)
            : g_strdup ("");
  const char *program
      = g_get_prgname () != NULL ? g_get_prgname () : program_invocation_short_name;
  const RecordValue values[]
      = { RECORD_NUMBER (TINY_RECORD_FORMAT), RECORD_TEXT (TINY_VERSION), RECORD_TEXT (program),
          RECORD_NUMBER (getpid ()),          RECORD_TEXT (time),         RECORD_TEXT (where),
          RECORD_TEXT (environment) };
  write_locked (TINY_RECORD_HEAD, 0, values);
}

static void
finish (void)
{
  g_mutex_lock (&file.lock);
  const gboolean is_begun = file.fd >= 0 && file.pid == getpid ();
  if (is_begun && g_atomic_int_get (&file.is_on))
    write_locked (TINY_RECORD_END, 0, NULL);
  g_atomic_int_set (&file.is_on, FALSE);
  g_mutex_unlock (&file.lock);
}

/* A write beyond what the process may write would end it with a signal. */
static void
find_most_bytes (void)
{
  struct rlimit most;
  const int mib = tiny_env_get_int (TINY_ENV_RECORD_MB); /* 0: no limit */
  file.most_bytes = mib > 0 ? (guint64) mib << 20 : G_MAXINT64;
  file.most_reason = "it has as many MiB as TINY_RECORD_MB allows";
  if (getrlimit (RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY
      && most.rlim_cur < file.most_bytes) {
    file.most_bytes = most.rlim_cur;
    file.most_reason = "it has as many bytes as the process may write to a file (ulimit -f)";
  }
}

/* "%p" in the name is the process's number. */
static char *
make_path (const char *pattern)
{
  g_auto (GStrv) parts = g_strsplit (pattern, "%p", -1);
  g_autofree char *number = g_strdup_printf ("%d", (int) getpid ());
  return g_strjoinv (number, parts);
}

/* NULL, or what is wrong with the file. */
static const char *
open_path (void)
{
  struct stat info;
  if (file.most_bytes < LEAST_BYTES)
    return "the process may write too few bytes to a file (ulimit -f)";
  file.fd = open (file.path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
  if (file.fd < 0)
    return g_strerror (errno);
  if (fstat (file.fd, &info) != 0 || !S_ISREG (info.st_mode))
    return "it is no plain file, which a record has to be";
  if (flock (file.fd, LOCK_EX | LOCK_NB) != 0)
    return "another process records into it (“%p” in the name is the process's number)";
  if (ftruncate (file.fd, 0) != 0
      || !tiny_write_all (file.fd, TINY_RECORD_MAGIC, strlen (TINY_RECORD_MAGIC)))
    return g_strerror (errno);
  file.n_bytes = strlen (TINY_RECORD_MAGIC);
  return NULL;
}

/* Under the lock. FALSE: there will be no record, which was said. */
static gboolean
open_file (void)
{
  const char *wrong = open_path ();
  if (wrong == NULL) {
    write_head ();
    return g_atomic_int_get (&file.is_on);
  }
  g_atomic_int_set (&file.is_on, FALSE);
  if (file.fd >= 0)
    close (file.fd);
  file.fd = -1;
  g_warning ("TINY_RECORD=%s: %s; nothing is recorded", file.path, wrong);
  return FALSE;
}

static void
start (const char *pattern)
{
  file.path = make_path (pattern);
  file.pid = getpid ();
  find_most_bytes ();
  file.data = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_atomic_int_set (&file.is_on, TRUE);
  atexit (finish);
}

gboolean
tiny_record_is_on (void)
{
  static gsize is_started;
  if (g_once_init_enter (&is_started)) {
    const char *pattern = getauxval (AT_SECURE) ? NULL : tiny_env_get_text (TINY_ENV_RECORD);
    if (pattern != NULL && pattern[0] != 0)
      start (pattern);
    g_once_init_leave (&is_started, 1);
  }
  return g_atomic_int_get (&file.is_on);
}
