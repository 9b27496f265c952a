/* SPDX-License-Identifier: MIT
 *
 * tiny-record.c: reading a record.
 *
 * The file is mapped, and nothing in it is believed: every frame is checked against its row when the file is opened,
 * so that whoever reads frames meets no field that is not there. What handles and numbers of data
 * name is for the reader of the frames to look up; what data hold is checked when they are fetched. */
#include <string.h>

#include "base/tiny-error.h"
#include "plugin/record-private.h"

static const TinyRecordRow rows[] = {
#define RECORD_FRAME(id, name, fields) { name, fields, FALSE },
#define RECORD_CALL(id, name, fields)  { name, fields, TRUE },
#include "plugin/record-frames.def"
#undef RECORD_FRAME
#undef RECORD_CALL
};

typedef struct {
  const guint8 *bytes;
  gsize n_bytes;
  const char *digest;
} Block;

struct TinyRecord {
  char *path;
  GMappedFile *map;
  const guint8 *bytes;
  gsize size;
  guint64 cut, last_call;
  GArray *frames;      /* guint64: offsets */
  GHashTable *results; /* of pairs: a call, and the offset of its result */
  GArray *blocks;      /* Block, by number - 1 */
};

/* ---- rows ---- */
const TinyRecordRow *
tiny_record_get_row (TinyRecordKind kind)
{
  return &rows[kind];
}

gboolean
tiny_record_row_get_field (
    const TinyRecordRow *row, guint i, const char **out_name, gsize *out_length, char *out_kind)
{
  const char *at = row->fields;
  for (; i > 0 && at != NULL; i--)
    if ((at = strchr (at, ' ')) != NULL)
      at++;
  if (at == NULL || *at == 0)
    return FALSE;
  const char *colon = strchr (at, ':');
  *out_name = at;
  *out_length = (gsize) (colon - at);
  *out_kind = colon[1];
  return TRUE;
}

/* FNV-1a, of words; what is left over counts as one with zeros. */
guint64
record_checksum (const void *data, gsize size)
{
  guint64 sum = G_GUINT64_CONSTANT (0xcbf29ce484222325);
  for (gsize i = 0; i < size; i += 8) {
    guint64 word = 0;
    memcpy (&word, (const guint8 *) data + i, MIN (8, size - i));
    sum = (sum ^ GUINT64_FROM_LE (word)) * G_GUINT64_CONSTANT (0x100000001b3);
    sum ^= sum >> 32;
  }
  return sum;
}

void
tiny_record_digest (const void *data, gsize size, char out[33])
{
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  g_checksum_update (sum, data, (gssize) size);
  g_strlcpy (out, g_checksum_get_string (sum), 33);
}

/* ---- frames ---- */
static gboolean
fail (const TinyRecord *self, guint64 offset, GError **error, const char *what)
{
  g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "%s: byte %" G_GUINT64_FORMAT ": %s",
               self->path, offset, what);
  return FALSE;
}

static guint64
read_word (const guint8 *at)
{
  guint64 word;
  memcpy (&word, at, sizeof word);
  return GUINT64_FROM_LE (word);
}

static gboolean
is_text (const guint8 *bytes, gsize n_bytes)
{
  return n_bytes > 0 && memchr (bytes, 0, n_bytes) == bytes + n_bytes - 1;
}

/* Takes a field of that kind from the bytes at @at, of which there are @left. FALSE: it does not fit. */
static gboolean
take_field (const guint8 **at, gsize *left, char kind, TinyRecordField *out)
{
  if (*left < 8)
    return FALSE;
  out->number = read_word (*at);
  *at += 8;
  *left -= 8;
  if (strchr ("uihd", kind) != NULL)
    return TRUE;
  const guint64 n = out->number, padded = n + (-n & 7u);
  if (n > *left || padded > *left)
    return FALSE;
  out->bytes = *at;
  out->n_bytes = n;
  *at += padded;
  *left -= padded;
  return kind == 't'   ? is_text (out->bytes, n)
         : kind == 'c' ? record_check_commands (out->bytes, n)
                       : TRUE;
}

static gboolean
read_fields (const guint8 *at, gsize left, TinyRecordFrame *out)
{
  const TinyRecordRow *row = &rows[out->kind];
  const char *name;
  gsize length;
  char kind;
  for (guint i = 0; tiny_record_row_get_field (row, i, &name, &length, &kind); i++) {
    g_assert (i < TINY_RECORD_MAX_FIELDS);
    if (!take_field (&at, &left, kind, &out->fields[i]))
      return FALSE;
  }
  return left == 0;
}

/* Reads the frame at @offset; *@out_end is where it ends, 0 where it is cut off. */
static gboolean
read_frame (const TinyRecord *self,
            guint64 offset,
            TinyRecordFrame *out,
            guint64 *out_end,
            GError **error)
{
  const guint8 *head = self->bytes + offset;
  const gsize left = self->size - offset;
  guint64 words[RECORD_HEAD_WORDS];
  *out = (TinyRecordFrame){ .offset = offset };
  *out_end = 0;
  if (left < RECORD_HEAD_BYTES)
    return TRUE;
  for (guint i = 0; i < RECORD_HEAD_WORDS; i++)
    words[i] = read_word (head + 8 * i);
  if (words[RECORD_HEAD_CHECK] != record_checksum (head, 8 * RECORD_HEAD_CHECK)
      || words[RECORD_N_BYTES] % 8 != 0)
    return fail (self, offset, error, "the head of a frame is damaged");
  if (words[RECORD_N_BYTES] > left - RECORD_HEAD_BYTES)
    return TRUE;
  const gsize n_bytes = words[RECORD_N_BYTES];
  if (words[RECORD_CHECK] != record_checksum (head + RECORD_HEAD_BYTES, n_bytes))
    return fail (self, offset, error, "a frame is damaged");
  if (words[RECORD_KIND] >= TINY_N_RECORD_KINDS)
    return fail (self, offset, error, "a frame of a kind that this version does not know");
  out->kind = (TinyRecordKind) words[RECORD_KIND];
  out->call = words[RECORD_CALL_NUMBER];
  *out_end = offset + RECORD_HEAD_BYTES + n_bytes;
  return read_fields (head + RECORD_HEAD_BYTES, n_bytes, out)
         || fail (self, offset, error, "a frame does not have the fields of its kind");
}

static gboolean
add_frame (TinyRecord *self, const TinyRecordFrame *frame, GError **error)
{
  const TinyRecordField *fields = frame->fields;
  if (self->frames->len == 0
      && (frame->kind != TINY_RECORD_HEAD || fields[0].number != TINY_RECORD_FORMAT))
    return fail (self, frame->offset, error,
                 frame->kind != TINY_RECORD_HEAD
                     ? "a record begins with a frame that says of what"
                     : "it was made by another version, whose format this one does not know");
  if (frame->kind != TINY_RECORD_RESULT && frame->call <= self->last_call)
    return fail (self, frame->offset, error, "a call has a number out of order");
  self->last_call = MAX (self->last_call, frame->call);
  if (frame->kind == TINY_RECORD_DATA) {
    const Block block = { fields[2].bytes, fields[2].n_bytes, fields[1].bytes };
    if (fields[0].number != self->blocks->len + 1)
      return fail (self, frame->offset, error, "a block of data has a number out of order");
    g_array_append_val (self->blocks, block);
    return TRUE;
  }
  g_array_append_val (self->frames, frame->offset);
  if (frame->kind == TINY_RECORD_RESULT) {
    guint64 *pair = g_new (guint64, 2);
    pair[0] = frame->call;
    pair[1] = frame->offset;
    g_hash_table_replace (self->results, pair, pair);
  }
  return TRUE;
}

static gboolean
read_all (TinyRecord *self, GError **error)
{
  guint64 offset = strlen (TINY_RECORD_MAGIC);
  if (self->size < offset || memcmp (self->bytes, TINY_RECORD_MAGIC, offset) != 0)
    return fail (self, 0, error, "this is no record, which TINY_RECORD=FILE makes");
  while (offset < self->size) {
    TinyRecordFrame frame;
    guint64 end;
    if (!read_frame (self, offset, &frame, &end, error))
      return FALSE;
    if (end == 0) {
      self->cut = offset;
      break;
    }
    if (!add_frame (self, &frame, error))
      return FALSE;
    offset = end;
  }
  return self->frames->len > 0 || fail (self, offset, error, "the record is empty");
}

TinyRecord *
tiny_record_open (const char *path, GError **error)
{
  g_autoptr (TinyRecord) self = g_new0 (TinyRecord, 1);
  g_autoptr (GError) wrong = NULL;
  self->path = g_strdup (path);
  self->frames = g_array_new (FALSE, FALSE, sizeof (guint64));
  self->blocks = g_array_new (FALSE, FALSE, sizeof (Block));
  self->results = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  if (g_file_test (path, G_FILE_TEST_EXISTS) && !g_file_test (path, G_FILE_TEST_IS_REGULAR)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: a record is a plain file", path);
    return NULL;
  }
  self->map = g_mapped_file_new (path, FALSE, &wrong);
  if (self->map == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s", wrong->message);
    return NULL;
  }
  self->bytes = (const guint8 *) g_mapped_file_get_contents (self->map);
  self->size = g_mapped_file_get_length (self->map);
  return read_all (self, error) ? g_steal_pointer (&self) : NULL;
}

void
tiny_record_free (TinyRecord *self)
{
  if (self == NULL)
    return;
  g_array_unref (self->frames);
  g_array_unref (self->blocks);
  g_hash_table_unref (self->results);
  g_clear_pointer (&self->map, g_mapped_file_unref);
  g_free (self->path);
  g_free (self);
}

/* ---- what is in it ---- */
guint
tiny_record_get_n_frames (const TinyRecord *self)
{
  return self->frames->len;
}

/* It was read before. */
static void
read_again (const TinyRecord *self, guint64 offset, TinyRecordFrame *out)
{
  guint64 end;
  gboolean good = read_frame (self, offset, out, &end, NULL);
  g_assert (good && end != 0);
}

void
tiny_record_get_frame (const TinyRecord *self, guint i, TinyRecordFrame *out)
{
  read_again (self, g_array_index (self->frames, guint64, i), out);
}

gboolean
tiny_record_get_result (const TinyRecord *self, guint64 call, TinyRecordFrame *out)
{
  const guint64 *pair = g_hash_table_lookup (self->results, &call);
  if (pair == NULL)
    return FALSE;
  read_again (self, pair[1], out);
  return TRUE;
}

guint64
tiny_record_get_cut (const TinyRecord *self)
{
  return self->cut;
}

gboolean
tiny_record_get_data (
    const TinyRecord *self, guint64 id, const void **out, gsize *out_size, GError **error)
{
  char digest[33];
  *out = NULL;
  *out_size = 0;
  if (id == 0)
    return TRUE;
  if (id > self->blocks->len) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                 "%s: there is no block of data %" G_GUINT64_FORMAT, self->path, id);
    return FALSE;
  }
  const Block *block = &g_array_index (self->blocks, Block, id - 1);
  tiny_record_digest (block->bytes, block->n_bytes, digest);
  if (strcmp (digest, block->digest) != 0)
    return fail (self, (guint64) (block->bytes - self->bytes), error,
                 "a block of data is not what its digest says");
  *out = block->bytes;
  *out_size = block->n_bytes;
  return TRUE;
}
