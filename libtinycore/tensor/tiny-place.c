/* SPDX-License-Identifier: MIT
 *
 * tiny-place.c: devices by name, memory on them, and what the host has to do with it. */
#include "tensor/tiny-place.h"

#include <string.h>

#include "engine/runtime-private.h"
#include "engine/tiny-plan.h"
#include "ir/tiny-shape.h"
#include "ir/tiny-shard.h"
#include "tensor/tiny-tensor-private.h"

enum { PART_BYTES = 1 << 20 };

/* ---- devices ---- */
void
tiny_place_clear (TinyPlace *self)
{
  g_clear_pointer (&self->devices, g_ptr_array_unref);
  g_clear_error (&self->error);
}

static void
check_distinct (TinyPlace *self)
{
  for (guint i = 0; self->error == NULL && i < self->devices->len; i++)
    for (guint k = 0; self->error == NULL && k < i; k++)
      if (self->devices->pdata[k] == self->devices->pdata[i])
        g_set_error (&self->error, TINY_ERROR, TINY_ERROR_INVALID, "device %s is there twice",
                     tiny_device_get_name (self->devices->pdata[i]));
}

static void
join_names (TinyPlace *self)
{
  g_autoptr (GString) names = g_string_new (NULL);
  for (guint i = 0; i < self->devices->len; i++)
    g_string_append_printf (names, "%s%s", i > 0 ? ";" : "",
                            tiny_device_get_name (self->devices->pdata[i]));
  self->name = g_intern_string (names->str);
}

TinyPlace
tiny_place_open_all (const char *const *names)
{
  TinyPlace self = { .devices = g_ptr_array_new () };
  for (guint i = 0; names != NULL && names[i] != NULL && self.error == NULL; i++)
    tiny_engine_add_devices (names[i], self.devices, &self.error);
  if (self.error == NULL && self.devices->len == 0)
    g_set_error_literal (&self.error, TINY_ERROR, TINY_ERROR_INVALID, "no device is given");
  check_distinct (&self);
  if (self.error != NULL)
    g_clear_pointer (&self.devices, g_ptr_array_unref);
  else
    join_names (&self);
  return self;
}

TinyPlace
tiny_place_open (const char *names)
{
  if (names != NULL)
    return tiny_place_open_all ((const char *const[]){ names, NULL });
  TinyPlace self = { .is_default = TRUE };
  const char *name = tiny_runtime_get_default_device (&self.error);
  TinyDevice *device = name != NULL ? tiny_engine_get_device (name, &self.error) : NULL;
  if (device == NULL)
    return self;
  self.devices = g_ptr_array_new ();
  g_ptr_array_add (self.devices, device);
  join_names (&self);
  return self;
}

gboolean
tiny_place_check (TinyBuild *build, const TinyPlace *self)
{
  if (self->devices != NULL || build->error != NULL)
    return build->error == NULL;
  build->error = g_error_copy (self->error);
  if (!self->is_default) /* else it is said of DEV, which no operation named */
    g_prefix_error (&build->error, "%s: ", build->name);
  return FALSE;
}

TinyDevice *
tiny_place_get_device (TinyBuild *build, const TinyPlace *self)
{
  if (!tiny_place_check (build, self))
    return NULL;
  if (self->devices->len == 1)
    return self->devices->pdata[0];
  tiny_build_fail (build, "one device is wanted, not %s", self->name);
  return NULL;
}

/* ---- memory ---- */
TinyNode *
tiny_place_new_memory (TinyBuild *build,
                       const TinyPlace *self,
                       TinyDType dtype,
                       const gint64 *shape,
                       guint n,
                       const TinyNode *like)
{
  if (!tiny_place_check (build, self))
    return NULL;
  const guint n_devices = self->devices->len;
  gint64 axis = TINY_SHARD_WHOLE;
  if (like != NULL && like->op == TINY_OP_UNSHARD && g_strcmp0 (like->text, self->name) == 0
      && like->arg < (gint64) n)
    axis = like->arg;
  g_autoptr (GPtrArray) buffers
      = g_ptr_array_new_with_free_func ((GDestroyNotify) tiny_buffer_unref);
  for (guint d = 0; d < n_devices; d++) {
    gsize n_bytes = tiny_dtype_get_n_bytes (dtype);
    for (guint i = 0; i < n; i++)
      n_bytes *= (gsize) (i == axis ? like->sources[d]->shape->v[axis] : shape[i]);
    g_ptr_array_add (buffers, tiny_buffer_new (self->devices->pdata[d], n_bytes));
  }
  build->device = self->name;
  return tiny_runtime_memory_node (dtype, tiny_graph_ints (build->graph, shape, n),
                                   n_devices > 1 ? self->name : NULL, axis,
                                   (TinyBuffer *const *) buffers->pdata, n_devices);
}

TinyNode *
tiny_build_compute (TinyBuild *build, TinyNode *node)
{
  g_autofree TinyRoot *operands = g_new0 (TinyRoot, build->n);
  TinyRoot wanted = { 0 }, *root = &wanted;
  if (build->error != NULL)
    return NULL;
  tiny_runtime_add_root (&wanted, node);
  for (guint i = 0; i < build->n; i++)
    tiny_runtime_add_root (&operands[i], build->x[i]);
  tiny_runtime_realize (&root, 1, &build->error);
  build->graph = tiny_runtime_get_graph ();
  for (guint i = 0; i < build->n; i++) {
    build->x[i] = operands[i].node;
    tiny_runtime_remove_root (&operands[i]);
  }
  node = wanted.node;
  tiny_runtime_remove_root (&wanted);
  return build->error == NULL ? node : NULL;
}

const TinyNode *
tiny_place_find_cut (TinyBuild *build, TinyTensor *tensor)
{
  if (tiny_devices_count (tensor->device) < 2 || tiny_tensor_get_n_elements (tensor) == 0)
    return NULL;
  TinyNode *cut = tensor->root.node;
  if (cut->op == TINY_OP_ASSIGN)
    cut = cut->sources[0];
  if (tiny_node_is_nowhere (build->graph, cut)) /* it is not cut, and would go to one device */
    return NULL;
  if (cut->op != TINY_OP_UNSHARD)
    cut = tiny_build_compute (build, tensor->root.node);
  if (cut == NULL || cut->op == TINY_OP_UNSHARD)
    return cut;
  /* Seen in another shape than it is cut in. */
  cut = tiny_runtime_get_memory (cut);
  return cut->arg == TINY_SHARD_WHOLE
             ? cut
             : tiny_build_compute (
                 build, tiny_build_unary (build, TINY_OP_CONTIGUOUS, tensor->root.node));
}

/* ---- the host ---- */

/* How the bytes of piece @i lie in those of the whole: @n_rows runs of @n_bytes, @stride apart, from @begin on. */
typedef struct {
  gsize n_rows, n_bytes, stride, begin;
} Strip;

static Strip
find_strip (const TinyNode *memory, guint i)
{
  const gsize size = tiny_dtype_get_n_bytes ((TinyDType) memory->dtype);
  const gboolean is_cut = memory->op == TINY_OP_UNSHARD && memory->arg != TINY_SHARD_WHOLE;
  Strip out = { .n_rows = 1, .n_bytes = size, .stride = size };
  for (guint k = 0; k < memory->shape->n; k++) {
    const gboolean is_outer = is_cut && k < memory->arg;
    const TinyInts *piece = is_cut ? memory->sources[i]->shape : memory->shape;
    out.n_rows *= is_outer ? (gsize) memory->shape->v[k] : 1;
    out.n_bytes *= is_outer ? 1 : (gsize) piece->v[k];
    out.stride *= is_outer ? 1 : (gsize) memory->shape->v[k];
  }
  for (guint k = 0; is_cut && k < i; k++)
    out.begin += find_strip (memory, k).n_bytes;
  return out;
}

static gpointer
allocate (gsize n_bytes, GError **error)
{
  gpointer data = g_try_malloc (n_bytes);
  if (data == NULL)
    g_set_error (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY,
                 "no host memory for %" G_GSIZE_FORMAT " bytes", n_bytes);
  return data;
}

/* The bytes of the whole: @data, or those of @file from @at on. */
typedef struct {
  const guint8 *data;
  const TinyOpenedFile *file;
  guint64 at;
} Source;

static gboolean
read_source (const Source *self, gsize offset, guint8 *out, gsize n, GError **error)
{
  if (self->file != NULL)
    return tiny_opened_file_read (self->file, self->at + offset, out, n, error);
  memcpy (out, self->data + offset, n);
  return TRUE;
}

/* At once where the host reaches the memory, else through a little of its own. */
static gboolean
upload_file (TinyBuffer *buffer, const Source *from, gsize begin, gsize n, GError **error)
{
  guint8 *host = tiny_buffer_map (buffer);
  if (host != NULL) {
    tiny_buffer_touch (buffer);
    return tiny_buffer_begin_access (buffer, TRUE, 0, n, error)
           && read_source (from, begin, host, n, error)
           && tiny_buffer_end_access (buffer, TRUE, 0, n, error);
  }
  g_autofree guint8 *part = allocate (MIN (n, PART_BYTES), error);
  gboolean good = part != NULL;
  for (gsize done = 0, size; good && done < n; done += size) {
    size = MIN (n - done, PART_BYTES);
    good = read_source (from, begin + done, part, size, error)
           && tiny_buffer_upload (buffer, done, part, size, error);
  }
  return good;
}

static gboolean
upload_piece (TinyNode *memory, guint i, const Source *from, GError **error)
{
  TinyBuffer *buffer = tiny_runtime_get_buffer (tiny_runtime_get_piece (memory, i));
  const Strip strip = find_strip (memory, i);
  const gsize n_bytes = strip.n_rows * strip.n_bytes;
  if (!tiny_buffer_ensure (buffer, error))
    return FALSE;
  if (strip.n_rows == 1 && from->file != NULL)
    return upload_file (buffer, from, strip.begin, n_bytes, error);
  if (strip.n_rows == 1)
    return tiny_buffer_upload (buffer, 0, from->data + strip.begin, n_bytes, error);
  g_autofree guint8 *piece = allocate (n_bytes, error);
  gboolean good = piece != NULL;
  for (gsize row = 0; good && row < strip.n_rows; row++)
    good = read_source (from, row * strip.stride + strip.begin, piece + row * strip.n_bytes,
                        strip.n_bytes, error);
  return good && tiny_buffer_upload (buffer, 0, piece, n_bytes, error);
}

static gboolean
download_piece (TinyNode *memory, guint i, guint8 *out, GError **error)
{
  TinyBuffer *buffer = tiny_runtime_get_buffer (tiny_runtime_get_piece (memory, i));
  const Strip strip = find_strip (memory, i);
  const gsize n_bytes = strip.n_rows * strip.n_bytes;
  if (strip.n_rows == 1)
    return tiny_buffer_download (buffer, 0, out + strip.begin, n_bytes, error);
  g_autofree guint8 *piece = allocate (n_bytes, error);
  if (piece == NULL || !tiny_buffer_download (buffer, 0, piece, n_bytes, error))
    return FALSE;
  for (gsize row = 0; row < strip.n_rows; row++)
    memcpy (out + row * strip.stride + strip.begin, piece + row * strip.n_bytes, strip.n_bytes);
  return TRUE;
}

static gboolean
upload_all (TinyNode *node, const Source *from, GError **error)
{
  TinyNode *memory = tiny_runtime_get_memory (node);
  for (guint i = 0; i < tiny_runtime_count_pieces (memory); i++)
    if (!upload_piece (memory, i, from, error))
      return FALSE;
  return TRUE;
}

gboolean
tiny_memory_upload (TinyNode *node, gconstpointer data, GError **error)
{
  return upload_all (node, &(Source){ .data = data }, error);
}

gboolean
tiny_memory_upload_file (TinyNode *node,
                         const TinyOpenedFile *file,
                         guint64 offset,
                         GError **error)
{
  return upload_all (node, &(Source){ .file = file, .at = offset }, error);
}

/* Of what is whole on each device one is read. */
gboolean
tiny_memory_download (TinyNode *node, gpointer out, GError **error)
{
  TinyNode *memory = tiny_runtime_get_memory (node);
  const gboolean is_cut = memory->op == TINY_OP_UNSHARD && memory->arg != TINY_SHARD_WHOLE;
  for (guint i = 0; i < (is_cut ? memory->n_sources : 1); i++)
    if (!download_piece (memory, i, out, error))
      return FALSE;
  return TRUE;
}
