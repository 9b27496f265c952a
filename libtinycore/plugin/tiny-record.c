/* SPDX-License-Identifier: MIT
 *
 * tiny-record.c: reading a record.
 *
 * Nothing in the file is believed: every frame is checked against its row when the file is opened,
 * so that whoever reads frames meets no field that is not there. What handles and numbers of data
 * name is for the reader of the frames to look up. Frames stay in memory; data are read from the file, and checked,
 * when they are fetched. */
#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-memory.h"
#include "base/tiny-opened-file.h"
#include "plugin/record-private.h"

static const TinyRecordRow rows[] = {
#define RECORD_FRAME(id, name, fields) { name, fields, FALSE },
#define RECORD_CALL(id, name, fields)  { name, fields, TRUE },
#include "plugin/record-frames.def"
#undef RECORD_FRAME
#undef RECORD_CALL
};

enum { DIGEST_BYTES = 33, PART_BYTES = 1 << 20 };

typedef struct {
  guint64 offset;
  gsize n_bytes;
  char digest[DIGEST_BYTES];
} Block;

typedef struct {
  guint64 offset, call;
  TinyRecordKind kind;
  GBytes *body;
} Kept;

struct TinyRecord {
  TinyOpenedFile *file;
  guint8 *part; /* PART_BYTES, while it is opened */
  guint64 cut, last_call;
  TinyVector frames;   /* Kept: all but those of data */
  GHashTable *results; /* of pairs: a call, and the number of the frame with its result */
  TinyVector blocks;   /* Block, by number - 1 */
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

/* The checksum of what has that @sum with @data behind it. */
static guint64
add_checksum (guint64 sum, const void *data, gsize size)
{
  for (gsize i = 0; i < size; i += 8) {
    guint64 word = 0;
    memcpy (&word, (const guint8 *) data + i, MIN (8, size - i));
    sum = (sum ^ GUINT64_FROM_LE (word)) * G_GUINT64_CONSTANT (0x100000001b3);
    sum ^= sum >> 32;
  }
  return sum;
}

static const guint64 sum_of_nothing = G_GUINT64_CONSTANT (0xcbf29ce484222325);

/* FNV-1a, of words; what is left over counts as one with zeros. */
guint64
record_checksum (const void *data, gsize size)
{
  return add_checksum (sum_of_nothing, data, size);
}

void
tiny_record_digest (const void *data, gsize size, char out[DIGEST_BYTES])
{
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  g_checksum_update (sum, data, (gssize) size);
  g_strlcpy (out, g_checksum_get_string (sum), DIGEST_BYTES);
}

/* ---- frames ---- */
static gboolean
fail (const TinyRecord *self, guint64 offset, GError **error, const char *what)
{
  g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "%s: byte %" G_GUINT64_FORMAT ": %s",
               tiny_opened_file_get_path (self->file), offset, what);
  return FALSE;
}

static gboolean
no_memory (const TinyRecord *self, gsize n_more, GError **error)
{
  return tiny_memory_fail (self->frames.n_bytes + self->blocks.n_bytes + n_more,
                           tiny_opened_file_get_path (self->file), error);
}

static const Kept *
get_kept (const TinyRecord *self, guint i)
{
  return (const Kept *) (gpointer) self->frames.data + i;
}

static guint
get_n_blocks (const TinyRecord *self)
{
  return (guint) (self->blocks.n_bytes / sizeof (Block));
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

static const char damaged[] = "a frame is damaged",
                  other_fields[] = "a frame does not have the fields of its kind";

/* FALSE: they are not those of its kind. */
static gboolean
read_fields (const Kept *kept, TinyRecordFrame *out)
{
  const TinyRecordRow *row = &rows[kept->kind];
  const char *name;
  gsize left, length;
  char kind;
  const guint8 *at = g_bytes_get_data (kept->body, &left);
  *out = (TinyRecordFrame){ .kind = kept->kind, .call = kept->call, .offset = kept->offset };
  for (guint i = 0; tiny_record_row_get_field (row, i, &name, &length, &kind); i++) {
    g_assert (i < TINY_RECORD_MAX_FIELDS);
    if (!take_field (&at, &left, kind, &out->fields[i]))
      return FALSE;
  }
  return left == 0;
}

static gboolean
check_order (TinyRecord *self, const Kept *kept, GError **error)
{
  if (tiny_record_get_n_frames (self) == 0 && kept->kind != TINY_RECORD_HEAD)
    return fail (self, kept->offset, error, "a record begins with a frame that says of what");
  if (kept->kind != TINY_RECORD_RESULT && kept->call <= self->last_call)
    return fail (self, kept->offset, error, "a call has a number out of order");
  self->last_call = MAX (self->last_call, kept->call);
  return TRUE;
}

/* Reads what comes before the data of a frame of @n_bytes, the first @left of them at @at. FALSE: it is something else. */
static gboolean
read_block (const guint8 *at, gsize left, guint64 n_bytes, guint64 *out_id, Block *out)
{
  const gsize n_part = left;
  TinyRecordField id, digest, data;
  if (!take_field (&at, &left, 'd', &id) || !take_field (&at, &left, 't', &digest)
      || !take_field (&at, &left, 'u', &data) || digest.n_bytes != DIGEST_BYTES)
    return FALSE;
  const guint64 n_left = n_bytes - (n_part - left);
  memcpy (out->digest, digest.bytes, DIGEST_BYTES);
  out->offset += n_part - left;
  out->n_bytes = data.number;
  *out_id = id.number;
  return data.number <= n_left && data.number + (-data.number & 7u) == n_left;
}

/* Data stay in the file. */
static gboolean
add_block (
    TinyRecord *self, const Kept *kept, guint64 n_bytes, guint64 checksum, GError **error)
{
  const guint64 begin = kept->offset + RECORD_HEAD_BYTES;
  Block block = { .offset = begin };
  guint64 sum = sum_of_nothing, id = 0;
  gboolean has_fields = FALSE;
  for (guint64 done = 0, n; done < n_bytes; done += n) {
    n = MIN (n_bytes - done, PART_BYTES);
    if (!tiny_opened_file_read (self->file, begin + done, self->part, n, error))
      return FALSE;
    if (done == 0)
      has_fields = read_block (self->part, n, n_bytes, &id, &block);
    sum = add_checksum (sum, self->part, n);
  }
  if (sum != checksum)
    return fail (self, kept->offset, error, damaged);
  if (!has_fields)
    return fail (self, kept->offset, error, other_fields);
  if (!check_order (self, kept, error))
    return FALSE;
  if (id != get_n_blocks (self) + 1)
    return fail (self, kept->offset, error, "a block of data has a number out of order");
  return tiny_vector_append (&self->blocks, &block, sizeof block)
         || no_memory (self, sizeof block, error);
}

static gboolean
add_frame (TinyRecord *self, Kept *kept, guint64 n_bytes, guint64 checksum, GError **error)
{
  TinyRecordFrame frame;
  g_autoptr (GBytes) body = tiny_opened_file_read_bytes (
      self->file, kept->offset + RECORD_HEAD_BYTES, n_bytes, error);
  if (body == NULL)
    return FALSE;
  if (record_checksum (g_bytes_get_data (body, NULL), n_bytes) != checksum)
    return fail (self, kept->offset, error, damaged);
  if (kept->kind >= TINY_N_RECORD_KINDS)
    return fail (self, kept->offset, error,
                 "a frame of a kind that this version does not know");
  kept->body = body;
  if (!read_fields (kept, &frame))
    return fail (self, kept->offset, error, other_fields);
  if (!check_order (self, kept, error))
    return FALSE;
  if (tiny_record_get_n_frames (self) == 0 && frame.fields[0].number != TINY_RECORD_FORMAT)
    return fail (self, kept->offset, error,
                 "it was made by another version, whose format this one does not know");
  if (kept->kind == TINY_RECORD_RESULT) {
    guint64 *pair = g_new (guint64, 2);
    pair[0] = kept->call;
    pair[1] = tiny_record_get_n_frames (self);
    g_hash_table_replace (self->results, pair, pair);
  }
  if (!tiny_vector_append (&self->frames, kept, sizeof *kept))
    return no_memory (self, sizeof *kept, error);
  g_bytes_ref (body);
  return TRUE;
}

/* Reads the frame at @offset; *@out_end is where it ends, 0 where it is cut off. */
static gboolean
read_frame (TinyRecord *self, guint64 offset, guint64 *out_end, GError **error)
{
  const guint64 left = tiny_opened_file_get_size (self->file) - offset;
  guint64 words[RECORD_HEAD_WORDS];
  *out_end = 0;
  if (left < RECORD_HEAD_BYTES)
    return TRUE;
  if (!tiny_opened_file_read (self->file, offset, words, sizeof words, error))
    return FALSE;
  const guint64 checksum = record_checksum (words, 8 * RECORD_HEAD_CHECK);
  for (guint i = 0; i < RECORD_HEAD_WORDS; i++)
    words[i] = GUINT64_FROM_LE (words[i]);
  const guint64 n_bytes = words[RECORD_N_BYTES];
  if (words[RECORD_HEAD_CHECK] != checksum || n_bytes % 8 != 0)
    return fail (self, offset, error, "the head of a frame is damaged");
  if (n_bytes > left - RECORD_HEAD_BYTES)
    return TRUE;
  Kept kept = { .offset = offset,
                .call = words[RECORD_CALL_NUMBER],
                .kind = (TinyRecordKind) MIN (words[RECORD_KIND], TINY_N_RECORD_KINDS) };
  *out_end = offset + RECORD_HEAD_BYTES + n_bytes;
  return kept.kind == TINY_RECORD_DATA
             ? add_block (self, &kept, n_bytes, words[RECORD_CHECK], error)
             : add_frame (self, &kept, n_bytes, words[RECORD_CHECK], error);
}

static gboolean
read_all (TinyRecord *self, GError **error)
{
  guint64 offset = strlen (TINY_RECORD_MAGIC);
  const guint64 size = tiny_opened_file_get_size (self->file);
  char magic[sizeof TINY_RECORD_MAGIC];
  if (size >= offset && !tiny_opened_file_read (self->file, 0, magic, offset, error))
    return FALSE;
  if (size < offset || memcmp (magic, TINY_RECORD_MAGIC, offset) != 0)
    return fail (self, 0, error, "this is no record, which TINY_RECORD=FILE makes");
  while (offset < size) {
    guint64 end;
    if (!read_frame (self, offset, &end, error))
      return FALSE;
    if (end == 0) {
      self->cut = offset;
      break;
    }
    offset = end;
  }
  return tiny_record_get_n_frames (self) > 0
         || fail (self, offset, error, "the record is empty");
}

TinyRecord *
tiny_record_open (const char *path, GError **error)
{
  g_autoptr (TinyRecord) self = g_new0 (TinyRecord, 1);
  self->results = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  self->file = tiny_opened_file_new (path, error);
  if (self->file == NULL)
    return NULL;
  self->part = tiny_memory_try (PART_BYTES, path, error);
  const gboolean good = self->part != NULL && read_all (self, error);
  g_clear_pointer (&self->part, g_free);
  return good ? g_steal_pointer (&self) : NULL;
}

void
tiny_record_free (TinyRecord *self)
{
  if (self == NULL)
    return;
  for (guint i = 0; i < tiny_record_get_n_frames (self); i++)
    g_bytes_unref (get_kept (self, i)->body);
  tiny_vector_clear (&self->frames);
  tiny_vector_clear (&self->blocks);
  g_hash_table_unref (self->results);
  g_clear_pointer (&self->file, tiny_opened_file_unref);
  g_free (self->part);
  g_free (self);
}

/* ---- what is in it ---- */
guint
tiny_record_get_n_frames (const TinyRecord *self)
{
  return (guint) (self->frames.n_bytes / sizeof (Kept));
}

void
tiny_record_get_frame (const TinyRecord *self, guint i, TinyRecordFrame *out)
{
  const gboolean good = read_fields (get_kept (self, i), out);
  g_assert (good); /* it was read before */
}

gboolean
tiny_record_get_result (const TinyRecord *self, guint64 call, TinyRecordFrame *out)
{
  const guint64 *pair = g_hash_table_lookup (self->results, &call);
  if (pair == NULL)
    return FALSE;
  tiny_record_get_frame (self, (guint) pair[1], out);
  return TRUE;
}

guint64
tiny_record_get_cut (const TinyRecord *self)
{
  return self->cut;
}

gboolean
tiny_record_get_data (const TinyRecord *self, guint64 id, GBytes **out, GError **error)
{
  char digest[DIGEST_BYTES];
  *out = NULL;
  if (id == 0)
    return TRUE;
  if (id > get_n_blocks (self)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                 "%s: there is no block of data %" G_GUINT64_FORMAT,
                 tiny_opened_file_get_path (self->file), id);
    return FALSE;
  }
  const Block *block = (const Block *) (gpointer) self->blocks.data + (id - 1);
  g_autoptr (GBytes) data
      = tiny_opened_file_read_bytes (self->file, block->offset, block->n_bytes, error);
  if (data == NULL)
    return FALSE;
  tiny_record_digest (g_bytes_get_data (data, NULL), block->n_bytes, digest);
  if (strcmp (digest, block->digest) != 0)
    return fail (self, block->offset, error, "a block of data is not what its digest says");
  *out = g_steal_pointer (&data);
  return TRUE;
}
