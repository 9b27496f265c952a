/* SPDX-License-Identifier: MIT
 *
 * tensor-dlpack.c: DLPack's structures to tensors and back.
 *
 * The structures are DLPack's ABI (dlpack.h 0.8 and 1.0): version, context and deleter of the versioned one stay where
 * they are in every later version. What is exported owns the memory, not the tensor: its deleter may be called where no
 * lock may be taken that tensors take. */
#include "tensor/tiny-dlpack.h"

#include <string.h>

#include "base/tiny-guard.h"
#include "engine/tiny-plan.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"
#include "tensor/tiny-view.h"

enum {
  DL_INT,
  DL_UINT,
  DL_FLOAT,
  DL_BFLOAT = 4,
  DL_BOOL = 6,
  DL_FLOAT8_E4M3FN = 10,
  DL_FLOAT8_E5M2 = 12
};
enum {
  DL_CPU = 1,
  DL_CUDA_HOST = 3,
  DL_ROCM_HOST = 11
}; /* the kinds of memory that the host has */
enum { DL_READ_ONLY = 1 };

typedef struct {
  gint32 type, id;
} DlDevice;

typedef struct {
  guint8 code, bits;
  guint16 lanes;
} DlType;

typedef struct {
  void *data;
  DlDevice device;
  gint32 n_dims;
  DlType type;
  gint64 *shape, *strides; /* in elements; no strides: row-major */
  guint64 byte_offset;
} DlTensor;

typedef struct DlManaged {
  DlTensor tensor;
  void *context;
  void (*deleter) (struct DlManaged *self);
} DlManaged;

typedef struct DlVersioned {
  guint32 major, minor;
  void *context;
  void (*deleter) (struct DlVersioned *self);
  guint64 flags;
  DlTensor tensor;
} DlVersioned;

static const struct {
  TinyDType dtype;
  guint8 code;
  gboolean is_new; /* of version 1 */
} types[] = {
  { TINY_DTYPE_BOOL, DL_BOOL, FALSE },         { TINY_DTYPE_I8, DL_INT, FALSE },
  { TINY_DTYPE_U8, DL_UINT, FALSE },           { TINY_DTYPE_I16, DL_INT, FALSE },
  { TINY_DTYPE_U16, DL_UINT, FALSE },          { TINY_DTYPE_I32, DL_INT, FALSE },
  { TINY_DTYPE_U32, DL_UINT, FALSE },          { TINY_DTYPE_I64, DL_INT, FALSE },
  { TINY_DTYPE_U64, DL_UINT, FALSE },          { TINY_DTYPE_F16, DL_FLOAT, FALSE },
  { TINY_DTYPE_BF16, DL_BFLOAT, FALSE },       { TINY_DTYPE_F32, DL_FLOAT, FALSE },
  { TINY_DTYPE_F64, DL_FLOAT, FALSE },         { TINY_DTYPE_F8E4M3, DL_FLOAT8_E4M3FN, TRUE },
  { TINY_DTYPE_F8E5M2, DL_FLOAT8_E5M2, TRUE },
};

/* ---- from others ---- */
typedef struct {
  gpointer managed;
  gboolean is_versioned;
} Foreign;

static void
foreign_free (gpointer data)
{
  Foreign *self = data;
  tiny_dlpack_free (self->managed, self->is_versioned);
  g_free (self);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Foreign, foreign_free)

void
tiny_dlpack_free (gpointer managed, gboolean is_versioned)
{
  if (managed == NULL)
    return;
  DlVersioned *versioned = managed;
  DlManaged *plain = managed;
  if (is_versioned && versioned->deleter != NULL)
    versioned->deleter (versioned);
  else if (!is_versioned && plain->deleter != NULL)
    plain->deleter (plain);
}

/* What is known of a foreign tensor once it has been checked. */
typedef struct {
  const DlTensor *tensor;
  gboolean is_read_only;
  TinyDType dtype;
  guint n;
  gint64 strides[TINY_MAX_RANK];
  guint8 *first; /* the element at position 0 */
  gsize n_elements;
} Look;

static TinyNode *unsupported (TinyBuild *b, const char *format, ...) G_GNUC_PRINTF (2, 3);

static TinyNode *
unsupported (TinyBuild *b, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  if (b->error == NULL)
    g_set_error (&b->error, TINY_ERROR, TINY_ERROR_UNSUPPORTED, "%s: %s", b->name, text);
  return NULL;
}

static gboolean
find_dtype (TinyBuild *b, Look *out)
{
  const DlType type = out->tensor->type;
  for (guint i = 0; i < G_N_ELEMENTS (types); i++)
    if (types[i].code == type.code && type.lanes == 1
        && tiny_dtype_get_n_bytes (types[i].dtype) * 8 == type.bits) {
      out->dtype = types[i].dtype;
      return TRUE;
    }
  return unsupported (b, "no tensor has DLPack's type code %u of %u bits and %u lanes",
                      type.code, type.bits, type.lanes)
         != NULL;
}

static gboolean
find_sizes (TinyBuild *b, Look *out)
{
  const DlTensor *tensor = out->tensor;
  if (tensor->n_dims < 0 || !tiny_build_check_shape (b, tensor->shape, (guint) tensor->n_dims))
    return tiny_build_fail (b, "%d axes", tensor->n_dims) != NULL;
  out->n = (guint) tensor->n_dims;
  out->n_elements = 1;
  for (guint i = out->n; i-- > 0;) {
    out->strides[i] = tensor->strides != NULL ? tensor->strides[i] : (gint64) out->n_elements;
    out->n_elements *= (gsize) tensor->shape[i];
  }
  if (out->n_elements > 0 && tensor->data == NULL)
    return tiny_build_fail (b, "there is no memory") != NULL;
  out->first = tensor->data != NULL ? (guint8 *) tensor->data + tensor->byte_offset : NULL;
  return TRUE;
}

static gboolean
look_at (TinyBuild *b, const Foreign *foreign, Look *out)
{
  *out = (Look){ .tensor = NULL };
  if (foreign->managed == NULL)
    return tiny_build_fail (b, "there is no structure") != NULL;
  const DlVersioned *versioned = foreign->managed;
  if (foreign->is_versioned && versioned->major != 1)
    return unsupported (
               b, "version %u.%u of DLPack; 1 is understood, and the one without a version",
               versioned->major, versioned->minor)
           != NULL;
  out->tensor = foreign->is_versioned ? &versioned->tensor
                                      : &((const DlManaged *) foreign->managed)->tensor;
  out->is_read_only = foreign->is_versioned && (versioned->flags & DL_READ_ONLY) != 0;
  const gint32 type = out->tensor->device.type;
  if (type != DL_CPU && type != DL_CUDA_HOST && type != DL_ROCM_HOST)
    return unsupported (
               b,
               "memory of DLPack's device type %d is not the host's: copy it to the host first",
               type)
           != NULL;
  return find_dtype (b, out) && find_sizes (b, out);
}

/* The order of the axes in which the elements lie one after the other; FALSE: there is none. */
static gboolean
find_order (const Look *look, gint64 *order)
{
  const gint64 *shape = look->tensor->shape;
  for (guint i = 0; i < look->n; i++) {
    guint at = i; /* by stride; those of size 1, whose strides say nothing, before the others */
    while (at > 0 && shape[order[at - 1]] != 1
           && (shape[i] == 1 || look->strides[order[at - 1]] < look->strides[i])) {
      order[at] = order[at - 1];
      at--;
    }
    order[at] = i;
  }
  gint64 expected = 1;
  for (guint i = look->n; i-- > 0;) {
    if (shape[order[i]] != 1 && look->strides[order[i]] != expected)
      return FALSE;
    expected *= shape[order[i]];
  }
  return TRUE;
}

/* The elements in row-major order, copied to @out. */
static void
gather_elements (const Look *look, guint8 *out)
{
  const gsize size = tiny_dtype_get_n_bytes (look->dtype);
  gint64 at[TINY_MAX_RANK] = { 0 };
  const guint8 *from = look->first;
  for (gsize i = 0; i < look->n_elements; i++, out += size) {
    memcpy (out, from, size);
    for (guint axis = look->n; axis-- > 0;) {
      from += look->strides[axis] * (gint64) size;
      if (++at[axis] < look->tensor->shape[axis])
        break;
      from -= look->strides[axis] * (gint64) size * at[axis];
      at[axis] = 0;
    }
  }
}

static TinyNode *
shared_node (
    TinyBuild *b, const Look *look, const gint64 *order, TinyDevice *device, Foreign **foreign)
{
  const gsize n_bytes = look->n_elements * tiny_dtype_get_n_bytes (look->dtype);
  g_autoptr (TinyBuffer) buffer
      = tiny_buffer_new_host (device, look->first, n_bytes, foreign_free, *foreign, &b->error);
  if (buffer == NULL)
    return NULL;
  *foreign = NULL;
  gint64 sizes[TINY_MAX_RANK], back[TINY_MAX_RANK];
  for (guint i = 0; i < look->n; i++) {
    sizes[i] = look->tensor->shape[order[i]];
    back[order[i]] = i;
  }
  TinyNode *node = tiny_runtime_buffer_node (buffer, look->dtype, sizes, look->n);
  return tiny_build_permute (b, node, back, look->n);
}

static TinyNode *
copied_node (TinyBuild *b, const Look *look, TinyDevice *device)
{
  const gsize n_bytes = look->n_elements * tiny_dtype_get_n_bytes (look->dtype);
  g_autofree guint8 *data = g_try_malloc (n_bytes);
  if (data == NULL) {
    g_set_error (&b->error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY,
                 "%s: no host memory for %" G_GSIZE_FORMAT " bytes", b->name, n_bytes);
    return NULL;
  }
  gather_elements (look, data);
  g_autoptr (TinyBuffer) buffer = tiny_buffer_new (device, n_bytes);
  if (!tiny_buffer_ensure (buffer, &b->error)
      || !tiny_buffer_upload (buffer, 0, data, n_bytes, &b->error))
    return NULL;
  return tiny_runtime_buffer_node (buffer, look->dtype, look->tensor->shape, look->n);
}

/* Takes @foreign where its memory is used. */
static TinyNode *
foreign_node (TinyBuild *b, TinyDevice *device, TinyDlpackCopy copy, Foreign **foreign)
{
  Look look;
  gint64 order[TINY_MAX_RANK];
  if (!look_at (b, *foreign, &look))
    return NULL;
  if (look.n_elements == 0)
    return tiny_node_broadcast (b->graph, tiny_build_number (b, look.dtype, 0),
                                look.tensor->shape, look.n);
  b->device = g_intern_string (tiny_device_get_name (device));
  const char *why = look.is_read_only            ? "it is read-only"
                    : !find_order (&look, order) ? "its elements are not dense"
                    : !tiny_buffer_can_be_host (device, look.first)
                        ? "the device wants other memory or alignment"
                        : NULL;
  if (why == NULL && copy != TINY_DLPACK_COPY_ALWAYS)
    return shared_node (b, &look, order, device, foreign);
  if (copy == TINY_DLPACK_COPY_NEVER)
    return unsupported (b, "memory at %p cannot be shared without a copy: %s",
                        (void *) look.first, why);
  return copied_node (b, &look, device);
}

TinyTensor *
tiny_tensor_new_from_dlpack (gpointer managed,
                             gboolean is_versioned,
                             const char *device_name,
                             TinyDlpackCopy copy)
{
  TinyBuild b;
  TinyNode *node = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (Foreign) foreign = g_new (Foreign, 1);
  *foreign = (Foreign){ managed, is_versioned };
  if (device_name == NULL)
    device_name = tiny_runtime_get_default_device (&error);
  TinyDevice *device
      = device_name != NULL ? tiny_engine_get_device (device_name, &error) : NULL;
  if (tiny_build_begin (&b, "from_dlpack", 0, NULL)) {
    if (device == NULL)
      b.error = g_steal_pointer (&error);
    else
      node = foreign_node (&b, device, copy, &foreign);
  }
  return tiny_build_end (&b, node);
}

/* ---- to others ---- */
typedef struct {
  DlVersioned versioned;
  DlManaged plain;
  TinyBuffer *buffer; /* NULL: no elements */
  gint64 shape[TINY_MAX_RANK], strides[TINY_MAX_RANK];
} Exported;

static void
exported_free (Exported *self)
{
  g_clear_object (&self->buffer);
  g_free (self);
}

static void
delete_versioned (DlVersioned *self)
{
  exported_free (self->context);
}

static void
delete_plain (DlManaged *self)
{
  exported_free (self->context);
}

static gboolean
find_type (TinyDType dtype, gboolean is_versioned, DlType *out, GError **error)
{
  for (guint i = 0; i < G_N_ELEMENTS (types); i++)
    if (types[i].dtype == dtype && (is_versioned || !types[i].is_new)) {
      *out = (DlType){ types[i].code, (guint8) (tiny_dtype_get_n_bytes (dtype) * 8), 1 };
      return TRUE;
    }
  g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED, "to_dlpack: DLPack %s has no %s",
               is_versioned ? "1.0" : "before 1.0", tiny_dtype_to_string (dtype));
  return FALSE;
}

/* Where the elements of something lie in memory: of the BUFFER that it is made of by movement. */
typedef struct {
  TinyNode *memory;
  guint n;
  gint64 shape[TINY_MAX_RANK], strides[TINY_MAX_RANK], offset; /* in elements */
} Place;

static void
set_rows (Place *self, const TinyInts *shape)
{
  gint64 stride = 1;
  self->n = shape->n;
  for (guint i = shape->n; i-- > 0; stride *= MAX (shape->v[i], 1)) {
    self->shape[i] = shape->v[i];
    self->strides[i] = stride;
  }
}

/* Axes that lie one in the other are taken together and apart again; FALSE: no strides say where the elements are. */
static gboolean
reshape_place (Place *self, const TinyInts *shape)
{
  Place was = *self;
  guint from = 0;
  set_rows (self, shape);
  for (guint to = 0; to < shape->n;) {
    gint64 of_was = 1, of_now = 1;
    guint first = from, first_to = to;
    do {
      if (of_now <= of_was && to < shape->n)
        of_now *= shape->v[to++];
      else
        of_was *= was.shape[from++];
    } while (of_now != of_was || (to < shape->n && shape->v[to] == 1));
    while (from < was.n && was.shape[from] == 1)
      from++;
    gint64 stride = 0, wanted = 0;
    for (guint i = from; i-- > first;) {
      if (was.shape[i] == 1)
        continue;
      if (wanted != 0 && was.strides[i] != wanted)
        return FALSE;
      stride = wanted == 0 ? was.strides[i] : stride;
      wanted = was.strides[i] * was.shape[i];
    }
    for (guint i = to; i-- > first_to; stride *= shape->v[i])
      self->strides[i] = stride;
  }
  return TRUE;
}

/* Element p of an axis is at p s + k m + o, k the place on another. */
static gboolean
shear_place (Place *self, const gint64 *v, gint64 size)
{
  const gint64 s = v[2], m = v[3], o = v[4], d = v[5];
  const gint64 last = (size - 1) * s + o + MAX (m, 0) * (self->shape[v[1]] - 1);
  const gint64 first = o + MIN (m, 0) * (self->shape[v[1]] - 1);
  if (d != 1 || s < 1 || first < 0 || last >= self->shape[v[0]]
      || self->strides[v[1]] + m * self->strides[v[0]] <= 0)
    return FALSE;
  self->offset += o * self->strides[v[0]];
  self->strides[v[1]] += m * self->strides[v[0]];
  self->strides[v[0]] *= s;
  self->shape[v[0]] = size;
  return TRUE;
}

/* After one step of movement. */
static gboolean
move_place (Place *self, const TinyNode *node)
{
  const gint64 *v = node->ints != NULL ? node->ints->v : NULL;
  const Place was = *self;
  switch ((TinyOp) node->op) {
  case TINY_OP_DETACH:
    return TRUE;
  case TINY_OP_RESHAPE:
    return reshape_place (self, node->shape);
  case TINY_OP_PERMUTE:
    for (guint i = 0; i < self->n; i++) {
      self->shape[i] = was.shape[v[i]];
      self->strides[i] = was.strides[v[i]];
    }
    return TRUE;
  case TINY_OP_SHRINK:
    for (guint i = 0; i < self->n; i++) {
      self->offset += v[2 * i] * self->strides[i];
      self->shape[i] = node->shape->v[i];
    }
    return TRUE;
  case TINY_OP_SHEAR:
    return shear_place (self, v, node->shape->v[v[0]]);
  default:
    return FALSE; /* backwards or repeated: not every library takes such strides */
  }
}

/* Whether @node is a part of memory that strides describe. */
static gboolean
find_place (TinyNode *node, Place *out)
{
  if (tiny_runtime_is_memory (node)) {
    *out = (Place){ .memory = node };
    set_rows (out, node->shape);
    return TRUE;
  }
  return (tiny_op_is_movement ((TinyOp) node->op) || node->op == TINY_OP_DETACH)
         && find_place (node->sources[0], out) && move_place (out, node);
}

/* A view is where it is in the memory of what it is a view of, which nobody else's is; others are as a whole. Where
 * no strides say where a view is, its value as it is now is @copy. */
static gboolean
find_node (TinyTensor *self, TinyTensor **copy, Place *out, GError **error)
{
  TinyTensor *base = tiny_view_get_base (self);
  if (!tiny_tensor_own_memory (base, "to_dlpack", error) || !tiny_tensor_realize (base, error))
    return FALSE;
  if (find_place (base == self ? self->root.node : tiny_view_read (self), out))
    return TRUE;
  *copy = g_object_ref_sink (tiny_tensor_cast (self, self->dtype));
  return tiny_tensor_own_memory (*copy, "to_dlpack", error)
         && tiny_tensor_realize (*copy, error) && find_place ((*copy)->root.node, out);
}

/* The memory of @self; under the lock. */
static gboolean
find_memory (
    TinyTensor *self, TinyBuffer **out_buffer, void **out_data, Place *out, GError **error)
{
  g_autoptr (TinyTensor) copy = NULL;
  *out = (Place){ .n = self->n_dims };
  if (tiny_tensor_get_n_elements (self) == 0) {
    set_rows (out, self->root.node->shape);
    return tiny_tensor_realize (self, error);
  }
  if (!find_node (self, &copy, out, error))
    return FALSE;
  if (out->memory->op == TINY_OP_UNSHARD) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "to_dlpack: the tensor is in several pieces of memory, on %s: move it to one "
                 "device",
                 out->memory->text);
    return FALSE;
  }
  TinyBuffer *buffer = tiny_runtime_get_buffer (out->memory);
  *out_data = tiny_buffer_map (buffer);
  if (*out_data == NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "to_dlpack: memory of %s has no host address: move the tensor to a device "
                 "that computes in host memory",
                 tiny_buffer_get_device_name (buffer));
    return FALSE;
  }
  if (!tiny_buffer_begin_access (buffer, FALSE, 0, tiny_buffer_get_n_bytes (buffer), error))
    return FALSE;
  tiny_buffer_share (buffer);
  *out_buffer = tiny_buffer_ref (buffer);
  return TRUE;
}

gpointer
tiny_tensor_to_dlpack (TinyTensor *self, gboolean is_versioned, GError **error)
{
  tiny_return_error_unless (TINY_IS_TENSOR (self), error, NULL, "no tensor given");
  DlType type;
  TinyBuffer *buffer = NULL;
  void *data = NULL;
  Place place = { NULL };
  tiny_runtime_open_default_device ();
  if (!tiny_runtime_lock_or_stop (error))
    return NULL;
  gboolean good
      = self->error == NULL || (g_propagate_error (error, g_error_copy (self->error)), FALSE);
  good = good && find_type (self->dtype, is_versioned, &type, error)
         && find_memory (self, &buffer, &data, &place, error);
  tiny_runtime_unlock ();
  if (!good)
    return NULL;
  Exported *out = g_new0 (Exported, 1);
  out->buffer = buffer;
  memcpy (out->shape, place.shape, sizeof out->shape);
  memcpy (out->strides, place.strides, sizeof out->strides);
  /* Some that take it do not look at byte_offset. */
  if (data != NULL)
    data = (guint8 *) data + (gsize) place.offset * tiny_dtype_get_n_bytes (self->dtype);
  const DlTensor tensor
      = { data, { DL_CPU, 0 }, (gint32) self->n_dims, type, out->shape, out->strides, 0 };
  out->versioned = (DlVersioned){ 1, 0, out, delete_versioned, 0, tensor };
  out->plain = (DlManaged){ tensor, out, delete_plain };
  return is_versioned ? (gpointer) &out->versioned : (gpointer) &out->plain;
}
