/* SPDX-License-Identifier: MIT
 *
 * tiny-idx.c: reads IDX: two zero bytes, a code of the dtype, the number of axes, their sizes as
 * big-endian 32-bit numbers, then the elements, big-endian.
 *
 * zlib unpacks gzip, and gives the rest as it is; this file sees the unpacked stream only. */
#include "io/tiny-idx.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <zlib.h>

#include "base/tiny-clean.h"
#include "base/tiny-guard.h"
#include "base/tiny-memory.h"

typedef struct {
  guint8 code;
  TinyDType dtype;
} ElementType;

G_STATIC_ASSERT (G_N_ELEMENTS (((TinyIdx *) NULL)->shape) == TINY_IDX_MAX_DIMS);

static const ElementType element_types[] = {
  { 0x08, TINY_DTYPE_U8 },  { 0x09, TINY_DTYPE_I8 },  { 0x0B, TINY_DTYPE_I16 },
  { 0x0C, TINY_DTYPE_I32 }, { 0x0D, TINY_DTYPE_F32 }, { 0x0E, TINY_DTYPE_F64 },
};

typedef struct {
  const char *path;
  gzFile file;
  gsize offset; /* in the unpacked stream */
} Stream;

static gboolean
fail (const Stream *self, GError **error, const char *what)
{
  g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "%s: at byte %" G_GSIZE_FORMAT ": %s",
               self->path, self->offset, what);
  return FALSE;
}

/* Up to @n bytes; fewer only at the end. -1 and @error when the packed data is damaged. */
static gssize
read_some (Stream *self, gpointer out, gsize n, GError **error)
{
  gsize done = 0;
  while (done < n) {
    int got = gzread (self->file, (guint8 *) out + done, (unsigned) MIN (n - done, G_MAXINT32));
    int code = Z_OK;
    const char *reason = gzerror (self->file, &code);
    /* At the end of a file that was cut gzread () gives what there is, and has an error. */
    if (got < 0 && code == Z_MEM_ERROR) {
      tiny_memory_fail (n, self->path, error);
      return -1;
    }
    if (got < 0 || (got == 0 && code != Z_OK && code != Z_STREAM_END)) {
      g_autofree char *what = g_strdup_printf ("damaged or truncated: %s", reason);
      fail (self, error, what);
      return -1;
    }
    if (got == 0)
      break;
    done += (gsize) got;
    self->offset += (gsize) got;
  }
  return (gssize) done;
}

static gboolean
open_stream (Stream *self, GError **error)
{
  if (!g_file_test (self->path, G_FILE_TEST_IS_REGULAR)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: %s", self->path,
                 g_file_test (self->path, G_FILE_TEST_EXISTS) ? "not a regular file"
                                                              : "no such file");
    return FALSE;
  }
  self->file = gzopen (self->path, "rbe");
  if (self->file == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_IO, "%s: cannot be read: %s", self->path,
                 g_strerror (errno));
    return FALSE;
  }
  gzbuffer (self->file, 65536);
  return TRUE;
}

static gboolean
read_head (Stream *self, TinyIdx *idx, gsize max_bytes, gsize *out_n_bytes, GError **error)
{
  guint8 magic[4], sizes[4 * TINY_IDX_MAX_DIMS];
  gssize got = read_some (self, magic, sizeof magic, error);
  if (got < 0)
    return FALSE;
  if (got < (gssize) sizeof magic)
    return fail (self, error,
                 got == 0 ? "wanted an IDX file, found nothing"
                          : "truncated: wanted 4 bytes of magic");
  self->offset = 0;
  if (magic[0] == 0x1f && magic[1] == 0x8b)
    return fail (self, error, "damaged or truncated: a gzip file with a wrong header");
  for (guint i = 0; i < G_N_ELEMENTS (element_types); i++)
    if (element_types[i].code == magic[2])
      idx->dtype = element_types[i].dtype;
  if (magic[0] != 0 || magic[1] != 0 || idx->dtype == TINY_DTYPE_VOID || magic[3] == 0
      || magic[3] > TINY_IDX_MAX_DIMS) {
    g_autofree char *what
        = g_strdup_printf ("wanted the magic of an IDX file (00 00, a type, 1 to %d axes), "
                           "found %02x %02x %02x %02x",
                           TINY_IDX_MAX_DIMS, magic[0], magic[1], magic[2], magic[3]);
    return fail (self, error, what);
  }
  self->offset = 4;
  idx->n_dims = magic[3];
  got = read_some (self, sizes, 4 * idx->n_dims, error);
  if (got < 0)
    return FALSE;
  if (got < (gssize) (4 * idx->n_dims))
    return fail (self, error, "truncated within the sizes");
  gsize n_bytes = tiny_dtype_get_n_bytes (idx->dtype);
  for (guint i = 0; i < idx->n_dims; i++) {
    guint32 size;
    memcpy (&size, sizes + 4 * i, 4);
    idx->shape[i] = GUINT32_FROM_BE (size);
    if (!g_size_checked_mul (&n_bytes, n_bytes, (gsize) idx->shape[i]) || n_bytes > max_bytes) {
      g_autofree char *what = g_strdup_printf (
          "the sizes ask for more than the allowed %" G_GSIZE_FORMAT " bytes", max_bytes);
      return fail (self, error, what);
    }
  }
  *out_n_bytes = n_bytes;
  return TRUE;
}

static void
to_host_order (guint8 *data, gsize n_bytes, gsize size)
{
  if (G_BYTE_ORDER == G_BIG_ENDIAN)
    return;
  for (gsize i = 0; size > 1 && i + size <= n_bytes; i += size)
    for (gsize a = i, b = i + size - 1; a < b; a++, b--) {
      guint8 swapped = data[a];
      data[a] = data[b];
      data[b] = swapped;
    }
}

static gboolean
read_elements (Stream *self, TinyIdx *idx, gsize n_bytes, GError **error)
{
  g_auto (TinyVector) data = { NULL };
  guint8 chunk[65536];
  while (data.n_bytes < n_bytes) {
    gssize got = read_some (self, chunk, MIN (sizeof chunk, n_bytes - data.n_bytes), error);
    if (got < 0)
      return FALSE;
    if (got == 0) {
      g_autofree char *what = g_strdup_printf ("truncated: wanted %" G_GSIZE_FORMAT
                                               " bytes of elements, found %" G_GSIZE_FORMAT,
                                               n_bytes, data.n_bytes);
      return fail (self, error, what);
    }
    if (!tiny_vector_append (&data, chunk, (gsize) got))
      return tiny_memory_fail (n_bytes, self->path, error);
  }
  gssize more = read_some (self, chunk, 1, error);
  if (more < 0)
    return FALSE;
  if (more > 0) {
    self->offset--;
    return fail (self, error, "the file goes on after its last element");
  }
  to_host_order (data.data, n_bytes, tiny_dtype_get_n_bytes (idx->dtype));
  idx->data = tiny_vector_steal_bytes (&data);
  return TRUE;
}

gboolean
tiny_idx_load (const char *path, gsize max_bytes, TinyIdx *out_idx, GError **error)
{
  g_auto (TinyMessage) message = error;
  tiny_return_error_unless (path != NULL, error, FALSE, "no path given");
  tiny_return_error_unless (out_idx != NULL, error, FALSE, "no room for the array given");
  *out_idx = (TinyIdx){ .dtype = TINY_DTYPE_VOID };
  Stream stream = { .path = path };
  gsize n_bytes;
  gboolean is_read = open_stream (&stream, error)
                     && read_head (&stream, out_idx, max_bytes, &n_bytes, error)
                     && read_elements (&stream, out_idx, n_bytes, error);
  if (stream.file != NULL)
    gzclose_r (stream.file);
  if (!is_read)
    *out_idx = (TinyIdx){ .dtype = TINY_DTYPE_VOID };
  return is_read;
}

void
tiny_idx_clear (TinyIdx *self)
{
  if (self != NULL)
    g_clear_pointer (&self->data, g_bytes_unref);
}

TinyTensor *
tiny_idx_to_tensor (const TinyIdx *self, const char *device)
{
  static const TinyIdx none = { .dtype = TINY_DTYPE_VOID };
  self = self != NULL ? self : &none;
  gsize n_bytes = 0;
  gconstpointer data = self->data != NULL ? g_bytes_get_data (self->data, &n_bytes) : NULL;
  return tiny_tensor_new_from_data (device, self->dtype, self->shape, self->n_dims, data,
                                    n_bytes);
}
