/* SPDX-License-Identifier: MIT
 *
 * tiny-safetensors.c: reads and writes the safetensors format.
 *
 * Everything that a header promises is checked against the size of the file; the data of an array is
 * read from the file when it is needed, and is never in memory for its own sake. */
#include "io/tiny-safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-memory.h"
#include "base/tiny-text-hash.h"
#include "base/tiny-whole-file.h"
#include "plugin/tiny-json.h"

enum { MAX_HEADER = 100 << 20, MAX_DIMS = 64 };

static const char *const dtype_names[TINY_N_DTYPES] = {
  [TINY_DTYPE_BOOL] = "BOOL",      [TINY_DTYPE_I8] = "I8",          [TINY_DTYPE_U8] = "U8",
  [TINY_DTYPE_I16] = "I16",        [TINY_DTYPE_U16] = "U16",        [TINY_DTYPE_I32] = "I32",
  [TINY_DTYPE_U32] = "U32",        [TINY_DTYPE_I64] = "I64",        [TINY_DTYPE_U64] = "U64",
  [TINY_DTYPE_F8E4M3] = "F8_E4M3", [TINY_DTYPE_F8E5M2] = "F8_E5M2", [TINY_DTYPE_F16] = "F16",
  [TINY_DTYPE_BF16] = "BF16",      [TINY_DTYPE_F32] = "F32",        [TINY_DTYPE_F64] = "F64",
};

TinySafetensors *
tiny_safetensors_new (void)
{
  TinySafetensors *self = g_new0 (TinySafetensors, 1);
  self->arrays = g_ptr_array_new_with_free_func ((GDestroyNotify) tiny_array_free);
  self->names = g_hash_table_new (tiny_text_hash, g_str_equal);
  self->metadata = g_hash_table_new_full (tiny_text_hash, g_str_equal, g_free, g_free);
  return self;
}

void
tiny_safetensors_free (TinySafetensors *self)
{
  if (self == NULL)
    return;
  g_hash_table_unref (self->names);
  g_ptr_array_unref (self->arrays);
  g_hash_table_unref (self->metadata);
  g_free (self);
}

TinyArray *
tiny_safetensors_find (const TinySafetensors *self, const char *name)
{
  return g_hash_table_lookup (self->names, name);
}

/* ---- reading ---- */
static TinyDType
read_dtype (JsonObject *entry, GError **error)
{
  const char *text = tiny_json_get_text (entry, "dtype", error);
  for (guint i = 0; text != NULL && i < TINY_N_DTYPES; i++)
    if (g_strcmp0 (dtype_names[i], text) == 0)
      return (TinyDType) i;
  if (*error == NULL && text == NULL)
    g_set_error_literal (error, TINY_ERROR, TINY_ERROR_FORMAT, "it has no dtype");
  else if (*error == NULL)
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "unknown dtype “%s”", text);
  return TINY_DTYPE_VOID;
}

/* The numbers of a list that are not negative; NULL with @error. */
static GArray *
read_numbers (JsonObject *entry, const char *key, GError **error)
{
  JsonArray *list = tiny_json_get_array (entry, key, error);
  guint n = list != NULL ? json_array_get_length (list) : 0;
  g_autoptr (GArray) out = g_array_new (FALSE, FALSE, sizeof (gint64));
  for (guint i = 0; i < n && n <= MAX_DIMS; i++) {
    JsonNode *node = json_array_get_element (list, i);
    gint64 value
        = JSON_NODE_HOLDS_VALUE (node) && json_node_get_value_type (node) == G_TYPE_INT64
              ? json_node_get_int (node)
              : -1;
    if (value >= 0)
      g_array_append_val (out, value);
  }
  if (list != NULL && out->len == n)
    return g_steal_pointer (&out);
  if (*error == NULL)
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "“%s” is no list of sizes", key);
  return NULL;
}

/* The bytes that an array of that shape has, -1 when they are more than @most. */
static gint64
count_bytes (TinyDType dtype, const gint64 *shape, guint n_dims, gint64 most)
{
  gint64 n = (gint64) tiny_dtype_get_n_bytes (dtype);
  for (guint i = 0; i < n_dims; i++)
    if (shape[i] == 0)
      return 0;
  for (guint i = 0; i < n_dims; i++) {
    if (n > most / shape[i])
      return -1;
    n *= shape[i];
  }
  return n;
}

static TinyArray *
read_array (const char *name,
            JsonObject *entry,
            TinyOpenedFile *file,
            guint64 start,
            gint64 *out_begin,
            GError **error)
{
  const gint64 n_data = (gint64) (tiny_opened_file_get_size (file) - start);
  TinyDType dtype = read_dtype (entry, error);
  g_autoptr (GArray) shape = *error == NULL ? read_numbers (entry, "shape", error) : NULL;
  g_autoptr (GArray) span = shape != NULL ? read_numbers (entry, "data_offsets", error) : NULL;
  if (span == NULL)
    return NULL;
  if (span->len != 2) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                 "“data_offsets” are %u numbers, not where its data begins and ends",
                 span->len);
    return NULL;
  }
  gint64 begin = *out_begin = g_array_index (span, gint64, 0);
  gint64 end = g_array_index (span, gint64, 1);
  if (end < begin || end > n_data) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                 "its data is said to be from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT
                 " of %" G_GINT64_FORMAT " bytes",
                 begin, end, n_data);
    return NULL;
  }
  gint64 wanted
      = count_bytes (dtype, (const gint64 *) (void *) shape->data, shape->len, n_data);
  if (wanted != end - begin) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                 "its shape and its %" G_GINT64_FORMAT " bytes of data disagree", end - begin);
    return NULL;
  }
  return tiny_array_new_in_file (name, dtype, (const gint64 *) (void *) shape->data, shape->len,
                                 file, start + (guint64) begin);
}

static gboolean
read_metadata (TinySafetensors *self, JsonObject *entry, GError **error)
{
  g_autoptr (GList) keys = entry != NULL ? json_object_get_members (entry) : NULL;
  for (GList *at = keys; at != NULL; at = at->next) {
    const char *text = tiny_json_get_text (entry, at->data, error);
    if (*error != NULL)
      return FALSE;
    text = text != NULL ? text : "";
    char *copy = tiny_memory_try (strlen (text) + 1, "a text", error);
    if (copy == NULL)
      return FALSE;
    g_hash_table_insert (self->metadata, g_strdup (at->data), strcpy (copy, text));
  }
  return *error == NULL;
}

typedef struct {
  gint64 begin, end;
  const char *name;
} Span;

static int
compare_spans (gconstpointer a, gconstpointer b)
{
  const Span *x = a, *y = b;
  return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1)
         : x->end < y->end    ? -1
                              : x->end > y->end;
}

/* The format has the arrays one after the other, from the beginning of the data to its end. */
static gboolean
check_spans (TinyVector *all, gint64 n_data, GError **error)
{
  gint64 end = 0;
  Span *spans = (Span *) (gpointer) all->data;
  const gsize n = all->n_bytes / sizeof (Span);
  if (n > 1)
    qsort (spans, n, sizeof (Span), compare_spans);
  for (gsize i = 0; i < n; i++) {
    const Span *span = &spans[i];
    if (span->begin != end) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                   "“%s”: its data begins at byte %" G_GINT64_FORMAT
                   ", %s byte %" G_GINT64_FORMAT " where the one before ends",
                   span->name, span->begin, span->begin < end ? "before" : "beyond", end);
      return FALSE;
    }
    end = span->end;
  }
  if (end == n_data)
    return TRUE;
  g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
               "%" G_GINT64_FORMAT
               " bytes of data, of which its arrays are the first %" G_GINT64_FORMAT,
               n_data, end);
  return FALSE;
}

/* A file that is being read. */
typedef struct {
  TinySafetensors *out;
  TinyOpenedFile *file;
  guint64 start;    /* of the data */
  TinyVector spans; /* of Span */
} Reading;

/* A member of the header, the only one that is in memory. */
static gboolean
read_member (const char *name, JsonNode *value, gpointer user_data, GError **error)
{
  Reading *self = user_data;
  GError *wrong = NULL;
  JsonObject *entry = JSON_NODE_HOLDS_OBJECT (value) ? json_node_get_object (value) : NULL;
  if (JSON_NODE_HOLDS_NULL (value) && g_str_equal (name, "__metadata__"))
    return TRUE;
  if (entry == NULL)
    g_set_error_literal (&wrong, TINY_ERROR, TINY_ERROR_FORMAT, "it is not an object");
  else if (g_str_equal (name, "__metadata__"))
    read_metadata (self->out, entry, &wrong);
  else {
    Span span = { 0 };
    TinyArray *array = read_array (name, entry, self->file, self->start, &span.begin, &wrong);
    if (array != NULL) {
      span.name = array->name;
      span.end = span.begin + (gint64) tiny_array_get_n_bytes (array);
      g_ptr_array_add (self->out->arrays, array);
      g_hash_table_insert (self->out->names, array->name, array);
      if (!tiny_vector_append (&self->spans, &span, sizeof span))
        tiny_memory_fail (self->spans.n_bytes, "its arrays", &wrong);
    }
  }
  if (wrong != NULL)
    g_propagate_prefixed_error (error, wrong, "“%s”: ", name);
  return wrong == NULL;
}

static TinySafetensors *
parse (TinyOpenedFile *file, GError **error)
{
  const guint64 size = tiny_opened_file_get_size (file);
  guint64 length = G_MAXUINT64;
  if (size >= sizeof length && !tiny_opened_file_read (file, 0, &length, sizeof length, error))
    return NULL;
  length = GUINT64_FROM_LE (length);
  if (length > MAX_HEADER || length > size - sizeof length) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                 "%s: it is no safetensors file, or cut off: %" G_GUINT64_FORMAT " bytes",
                 tiny_opened_file_get_path (file), size);
    return NULL;
  }
  const guint64 start = sizeof length + length;
  g_autoptr (GBytes) header
      = tiny_opened_file_read_bytes (file, sizeof length, (gsize) length, error);
  if (header == NULL)
    return NULL;
  g_autoptr (TinySafetensors) self = tiny_safetensors_new ();
  Reading reading = { self, file, start, { NULL, 0, 0 } };
  const gboolean good = tiny_json_visit (g_bytes_get_data (header, NULL), (gssize) length,
                                         read_member, &reading, error)
                        && check_spans (&reading.spans, (gint64) (size - start), error);
  tiny_vector_clear (&reading.spans);
  if (good)
    return g_steal_pointer (&self);
  g_prefix_error (error, "%s: ", tiny_opened_file_get_path (file));
  return NULL;
}

TinySafetensors *
tiny_safetensors_load (const char *path, GError **error)
{
  g_autoptr (TinyOpenedFile) file = tiny_opened_file_new (path, error);
  return file != NULL ? parse (file, error) : NULL;
}

/* ---- writing ---- */
static int
compare_arrays (gconstpointer a, gconstpointer b)
{
  const TinyArray *x = *(const TinyArray *const *) a, *y = *(const TinyArray *const *) b;
  int x_bytes = (int) tiny_dtype_get_n_bytes (x->dtype);
  int y_bytes = (int) tiny_dtype_get_n_bytes (y->dtype);
  return x_bytes != y_bytes ? y_bytes - x_bytes : strcmp (x->name, y->name);
}

static void
add_array (JsonBuilder *json, const TinyArray *array, gsize offset)
{
  json_builder_set_member_name (json, array->name);
  json_builder_begin_object (json);
  json_builder_set_member_name (json, "dtype");
  json_builder_add_string_value (json, dtype_names[array->dtype]);
  json_builder_set_member_name (json, "shape");
  json_builder_begin_array (json);
  for (guint i = 0; i < array->n_dims; i++)
    json_builder_add_int_value (json, array->shape[i]);
  json_builder_end_array (json);
  json_builder_set_member_name (json, "data_offsets");
  json_builder_begin_array (json);
  json_builder_add_int_value (json, (gint64) offset);
  json_builder_add_int_value (json, (gint64) (offset + tiny_array_get_n_bytes (array)));
  json_builder_end_array (json);
  json_builder_end_object (json);
}

static void
add_metadata (JsonBuilder *json, GHashTable *metadata)
{
  g_autoptr (GList) keys
      = g_list_sort (g_hash_table_get_keys (metadata), (GCompareFunc) strcmp);
  json_builder_set_member_name (json, "__metadata__");
  json_builder_begin_object (json);
  for (GList *at = keys; at != NULL; at = at->next) {
    json_builder_set_member_name (json, at->data);
    json_builder_add_string_value (json, g_hash_table_lookup (metadata, at->data));
  }
  json_builder_end_object (json);
}

/* The header, padded so that the data is aligned. */
static char *
make_header (TinySafetensors *self)
{
  g_autoptr (JsonBuilder) json = json_builder_new ();
  gsize offset = 0;
  g_ptr_array_sort (self->arrays, compare_arrays);
  json_builder_begin_object (json);
  if (g_hash_table_size (self->metadata) > 0)
    add_metadata (json, self->metadata);
  for (guint i = 0; i < self->arrays->len; i++) {
    add_array (json, self->arrays->pdata[i], offset);
    offset += tiny_array_get_n_bytes (self->arrays->pdata[i]);
  }
  json_builder_end_object (json);
  g_autoptr (JsonNode) root = json_builder_get_root (json);
  g_autofree char *header = json_to_string (root, FALSE);
  gsize padding = (8 - strlen (header) % 8) % 8;
  return g_strdup_printf ("%s%*s", header, (int) padding, "");
}

static gboolean
fail_io (const char *path, GError **error)
{
  int reason = errno;
  g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: %s", path, g_strerror (reason));
  return FALSE;
}

static gboolean
write_array (const TinyArray *array,
             TinyArrayReader reader,
             gpointer user_data,
             FILE *file,
             GError **error)
{
  g_autoptr (GBytes) data = array->data != NULL || array->file != NULL
                                ? tiny_array_read (array, error)
                                : reader (array, user_data, error);
  if (data == NULL)
    return FALSE;
  gsize size;
  const void *bytes = g_bytes_get_data (data, &size);
  if (size != tiny_array_get_n_bytes (array)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "“%s” has %" G_GSIZE_FORMAT " bytes, not the %" G_GSIZE_FORMAT " of its shape",
                 array->name, size, tiny_array_get_n_bytes (array));
    return FALSE;
  }
  return size == 0 || fwrite (bytes, 1, size, file) == size || fail_io (array->name, error);
}

static gboolean
write_all (const TinySafetensors *self,
           const char *header,
           TinyArrayReader reader,
           gpointer user_data,
           FILE *file,
           GError **error)
{
  guint64 length = GUINT64_TO_LE ((guint64) strlen (header));
  if (fwrite (&length, sizeof length, 1, file) != 1 || fputs (header, file) < 0)
    return fail_io ("its header", error);
  for (guint i = 0; i < self->arrays->len; i++)
    if (!write_array (self->arrays->pdata[i], reader, user_data, file, error))
      return FALSE;
  return TRUE;
}

static gboolean
check_names (const TinySafetensors *self, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < self->arrays->len; i++) {
    const TinyArray *array = self->arrays->pdata[i];
    const char *why = !g_utf8_validate (array->name, -1, NULL) ? "is no name in UTF-8"
                      : g_str_equal (array->name, "__metadata__")
                          ? "is a name of the format's own"
                      : !g_hash_table_add (seen, (gpointer) array->name) ? "is there twice"
                      : dtype_names[array->dtype] == NULL ? "has a dtype that the format lacks"
                                                          : NULL;
    if (why != NULL) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "“%s” %s", array->name, why);
      return FALSE;
    }
  }
  return TRUE;
}

gboolean
tiny_safetensors_write_streamed (TinySafetensors *self,
                                 const char *path,
                                 TinyArrayReader reader,
                                 gpointer user_data,
                                 gsize *out_data_offset,
                                 GError **error)
{
  if (!check_names (self, error)) {
    g_prefix_error (error, "%s: ", path);
    return FALSE;
  }
  g_autofree char *header = make_header (self);
  TinyWholeFile file;
  if (!tiny_whole_file_open (&file, path, error))
    return FALSE;
  gboolean good = write_all (self, header, reader, user_data, file.file, error);
  if (!good)
    g_prefix_error (error, "%s: ", path);
  good = tiny_whole_file_close (&file, good, error);
  if (out_data_offset != NULL)
    *out_data_offset = sizeof (guint64) + strlen (header);
  return good;
}

gboolean
tiny_safetensors_write (TinySafetensors *self,
                        const char *path,
                        gsize *out_data_offset,
                        GError **error)
{
  return tiny_safetensors_write_streamed (self, path, NULL, NULL, out_data_offset, error);
}
