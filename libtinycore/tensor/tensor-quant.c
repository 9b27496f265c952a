/* SPDX-License-Identifier: MIT
 *
 * tensor-quant.c: weights in blocks, encoded on the host and decoded as plain operations; halves of bytes.
 *
 * A block is read as bytes: its scale is two of them put together, its numbers are bytes or halves
 * of them. All of that fuses into what uses the weights, so a product with a vector reads 8.5 or 4.5
 * bits for a weight and stores no weight. */
#include "tensor/tiny-tensor-quant.h"

#include <math.h>
#include <string.h>

#include "base/tiny-float.h"
#include "base/tiny-guard.h"
#include "base/tiny-memory.h"
#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"
#include "tensor/tiny-tensor-private.h"

enum { BLOCK = 32, SCALE_BYTES = 2 };

static TinyNode *decode_q8_0 (TinyBuild *self, TinyNode *bytes);
static TinyNode *decode_q4_0 (TinyBuild *self, TinyNode *bytes);
static void encode_q8_0 (const float *weights, guint8 *block);
static void encode_q4_0 (const float *weights, guint8 *block);

static const struct {
  gint64 n_bytes; /* of a block */
  TinyNode *(*decode) (TinyBuild *self,
                       TinyNode *bytes); /* (N, n_bytes - 2) u8 to (N, 32) f32 */
  void (*encode) (const float *weights, guint8 *block);
} formats[] = {
  [TINY_QUANT_Q8_0] = { 34, decode_q8_0, encode_q8_0 },
  [TINY_QUANT_Q4_0] = { 18, decode_q4_0, encode_q4_0 },
};

gsize
tiny_quant_get_n_bytes (TinyQuant format, gint64 n)
{
  return (guint) format >= G_N_ELEMENTS (formats) || n < 0 || n % BLOCK != 0
             ? 0
             : (gsize) (n / BLOCK * formats[format].n_bytes);
}

/* ---- to blocks ---- */
static void
put_scale (guint8 *block, float d)
{
  guint16 bits = tiny_float_to_bits (TINY_DTYPE_F16, d);
  block[0] = (guint8) bits;
  block[1] = (guint8) (bits >> 8);
}

static void
encode_q8_0 (const float *weights, guint8 *block)
{
  float most = 0;
  for (guint i = 0; i < BLOCK; i++)
    most = MAX (most, fabsf (weights[i]));
  float d = most / 127, inverse = d != 0 ? 1 / d : 0;
  put_scale (block, d);
  for (guint i = 0; i < BLOCK; i++)
    block[SCALE_BYTES + i] = (guint8) (gint8) roundf (weights[i] * inverse);
}

static guint8
to_half_byte (float x)
{
  return (guint8) CLAMP ((int) (x + 8.5f), 0, 15);
}

static void
encode_q4_0 (const float *weights, guint8 *block)
{
  float most = 0;
  for (guint i = 0; i < BLOCK; i++)
    if (fabsf (weights[i]) > fabsf (most))
      most = weights[i];
  float d = most / -8, inverse = d != 0 ? 1 / d : 0;
  put_scale (block, d);
  for (guint i = 0; i < BLOCK / 2; i++)
    block[SCALE_BYTES + i] = (guint8) (to_half_byte (weights[i] * inverse)
                                       | to_half_byte (weights[BLOCK / 2 + i] * inverse) << 4);
}

void
tiny_quant_encode (TinyQuant format, const float *weights, gint64 n, guint8 *out_blocks)
{
  g_return_if_fail ((guint) format < G_N_ELEMENTS (formats) && n >= 0 && n % BLOCK == 0);
  g_return_if_fail (n == 0 || (weights != NULL && out_blocks != NULL));
  for (gint64 i = 0; i < n / BLOCK; i++)
    formats[format].encode (weights + i * BLOCK, out_blocks + i * formats[format].n_bytes);
}

/* ---- from blocks ---- */
static TinyNode *
bits_as (TinyBuild *self, TinyNode *x, TinyDType dtype)
{
  return tiny_layout_elementwise (self->graph, TINY_OP_BITCAST, dtype, 1, &x);
}

/* (N, B) u8 to (N, 1) f32: the first two bytes as f16. */
static TinyNode *
decode_scale (TinyBuild *self, TinyNode *blocks)
{
  TinyNode *bytes[SCALE_BYTES];
  for (guint i = 0; i < SCALE_BYTES; i++)
    bytes[i]
        = tiny_build_cast (self, tiny_build_slice (self, blocks, 1, i, 1, 1), TINY_DTYPE_U16);
  TinyNode *high
      = tiny_build_binary (self, TINY_OP_SHL, bytes[1], tiny_build_like (self, bytes[1], 8));
  TinyNode *both = tiny_build_binary (self, TINY_OP_OR, bytes[0], high);
  return tiny_build_cast (self, bits_as (self, both, TINY_DTYPE_F16), TINY_DTYPE_F32);
}

static TinyNode *
decode_q8_0 (TinyBuild *self, TinyNode *bytes)
{
  return tiny_build_cast (self, bits_as (self, bytes, TINY_DTYPE_I8), TINY_DTYPE_F32);
}

/* The low halves, then the high ones: byte i >> 4k is weight 16k + i. In 32 bits, the lanes of the
 * result: halves of a byte are then made where they are converted. */
static TinyNode *
decode_q4_0 (TinyBuild *self, TinyNode *bytes)
{
  gint64 n = bytes->shape->v[0], half = BLOCK / 2;
  bytes = tiny_build_cast (self, bytes, TINY_DTYPE_I32);
  TinyNode *twice = tiny_build_expand (self, tiny_build_unsqueeze (self, bytes, 1),
                                       (gint64[]){ n, 2, half }, 3);
  TinyNode *count = tiny_build_iota (self, TINY_DTYPE_I32, 2);
  TinyNode *shift = tiny_build_mul (self, count, tiny_build_like (self, count, 4));
  shift = tiny_build_reshape (self, shift, (gint64[]){ 1, 2, 1 }, 3);
  TinyNode *q = tiny_build_binary (self, TINY_OP_SHR, twice, shift);
  q = tiny_build_binary (self, TINY_OP_AND, q, tiny_build_like (self, q, 15));
  q = tiny_build_sub (self, q, tiny_build_like (self, q, 8));
  q = tiny_build_reshape (self, q, (gint64[]){ n, BLOCK }, 2);
  return tiny_build_cast (self, q, TINY_DTYPE_F32);
}

static TinyNode *
dequantize_node (
    TinyBuild *self, TinyNode *blocks, TinyQuant format, const gint64 *shape, guint n_dims)
{
  const TinyInts *wanted = tiny_graph_ints (self->graph, shape, n_dims);
  g_autofree char *shape_text = tiny_shape_to_string (wanted);
  if (blocks->dtype != TINY_DTYPE_U8)
    return tiny_build_fail (self, "blocks are u8, not %s",
                            tiny_dtype_to_string ((TinyDType) blocks->dtype));
  if (n_dims == 0 || shape[n_dims - 1] % BLOCK != 0)
    return tiny_build_fail (self, "the last size of %s is no multiple of %d", shape_text,
                            BLOCK);
  gint64 n = tiny_shape_get_n_elements (wanted), each = formats[format].n_bytes;
  gint64 found = tiny_shape_get_n_elements (blocks->shape);
  if (found != n / BLOCK * each)
    return tiny_build_fail (self,
                            "%s takes %" G_GINT64_FORMAT " bytes, there are %" G_GINT64_FORMAT,
                            shape_text, n / BLOCK * each, found);
  blocks = tiny_build_reshape (self, blocks, (gint64[]){ n / BLOCK, each }, 2);
  TinyNode *bytes = tiny_build_slice (self, blocks, 1, SCALE_BYTES, 1, each - SCALE_BYTES);
  TinyNode *q = formats[format].decode (self, bytes);
  return tiny_build_reshape (self, tiny_build_mul (self, q, decode_scale (self, blocks)), shape,
                             n_dims);
}

TinyTensor *
tiny_tensor_dequantize (TinyTensor *blocks, TinyQuant format, const gint64 *shape, guint n_dims)
{
  TinyBuild b;
  TinyNode *node = NULL;
  if (tiny_build_begin (&b, "dequantize", 1, &blocks)
      && tiny_build_check_shape (&b, shape, n_dims)) {
    if ((guint) format >= G_N_ELEMENTS (formats))
      tiny_build_fail (&b, "%d is no format", (int) format);
    else
      node = dequantize_node (&b, b.x[0], format, shape, n_dims);
  }
  return tiny_build_end (&b, node);
}

TinyTensor *
tiny_tensor_quantize (TinyTensor *self, TinyQuant format, GError **error)
{
  tiny_return_error_unless (TINY_IS_TENSOR (self), error, NULL, "no tensor given");
  tiny_return_error_unless ((guint) format < G_N_ELEMENTS (formats), error, NULL,
                            "there is no such format");
  guint n_dims;
  const gint64 *shape = tiny_tensor_get_shape (self, &n_dims);
  if (tiny_tensor_get_error (self) == NULL
      && (tiny_tensor_get_dtype (self) != TINY_DTYPE_F32 || n_dims == 0
          || shape[n_dims - 1] % BLOCK != 0)) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                 "quantize: takes f32 whose last size is a multiple of %d", BLOCK);
    return NULL;
  }
  g_autoptr (GBytes) data = tiny_tensor_get_data (self, error);
  if (data == NULL)
    return NULL;
  gint64 n = tiny_tensor_get_n_elements (self);
  gint64 n_bytes = (gint64) tiny_quant_get_n_bytes (format, n);
  g_autofree guint8 *blocks = tiny_memory_try ((gsize) n_bytes, "quantize", error);
  if (blocks == NULL)
    return NULL;
  tiny_quant_encode (format, g_bytes_get_data (data, NULL), n, blocks);
  TinyTensor *result = tiny_tensor_new_from_data (tiny_tensor_get_device (self), TINY_DTYPE_U8,
                                                  &n_bytes, 1, blocks, (gsize) n_bytes);
  return g_object_ref_sink (result);
}

/* ---- halves of bytes ---- */

/* Neighbours along the last axis in one byte, the first of them low. */
TinyNode *
op_pack_int4 (TinyBuild *b, TinyNode *self)
{
  guint rank = self->shape->n;
  gint64 pairs[2 * TINY_MAX_RANK] = { 0 }, dims[TINY_MAX_RANK + 1];
  if (rank == 0)
    return tiny_build_fail (b, "takes (…, N), not a number");
  gint64 n = self->shape->v[rank - 1];
  memcpy (dims, self->shape->v, rank * sizeof *dims);
  dims[rank - 1] = n / 2 + n % 2;
  dims[rank] = 2;
  pairs[2 * rank - 1] = n % 2;
  TinyNode *x = tiny_build_cast (b, self, TINY_DTYPE_U8);
  if (tiny_build_is_empty (x))
    return tiny_node_broadcast (b->graph, tiny_build_like (b, x, 0), dims, rank);
  x = tiny_build_reshape (b, tiny_build_pad (b, x, pairs, 0), dims, rank + 1);
  TinyNode *low = tiny_build_slice (b, x, rank, 0, 1, 1);
  TinyNode *high = tiny_build_slice (b, x, rank, 1, 1, 1);
  low = tiny_build_binary (b, TINY_OP_AND, low, tiny_build_like (b, low, 15));
  high = tiny_build_binary (b, TINY_OP_SHL, high, tiny_build_like (b, high, 4));
  return tiny_build_squeeze (b, tiny_build_binary (b, TINY_OP_OR, low, high),
                             (gint64[]){ rank }, 1);
}

/* In 32 bits for the same reason as decode_q4_0(). */
TinyNode *
op_unpack_int4 (TinyBuild *b, TinyNode *self, gint64 n, gboolean is_signed)
{
  guint rank = self->shape->n;
  gint64 dims[TINY_MAX_RANK + 1];
  TinyDType dtype = is_signed ? TINY_DTYPE_I8 : TINY_DTYPE_U8;
  if (self->dtype != TINY_DTYPE_U8 || rank == 0)
    return tiny_build_fail (b, "takes bytes (…, M) of u8, not %u axes of %s", rank,
                            tiny_dtype_to_string ((TinyDType) self->dtype));
  gint64 n_all = 2 * self->shape->v[rank - 1];
  n = n == 0 ? n_all : n;
  if (n != n_all && n != n_all - 1)
    return tiny_build_fail (
        b, "%" G_GINT64_FORMAT " numbers are not in %" G_GINT64_FORMAT " bytes, two in each", n,
        self->shape->v[rank - 1]);
  memcpy (dims, self->shape->v, rank * sizeof *dims);
  dims[rank - 1] = n;
  if (tiny_build_is_empty (self))
    return tiny_node_broadcast (b->graph, tiny_build_number (b, dtype, 0), dims, rank);
  TinyNode *count = tiny_build_iota (b, TINY_DTYPE_I32, 2);
  TinyNode *shift = tiny_build_mul (b, count, tiny_build_like (b, count, 4));
  TinyNode *x = tiny_build_unsqueeze (b, tiny_build_cast (b, self, TINY_DTYPE_I32), rank);
  x = tiny_build_binary (b, TINY_OP_SHR, x, shift);
  x = tiny_build_binary (b, TINY_OP_AND, x, tiny_build_like (b, x, 15));
  if (is_signed) /* 8 to 15 are -8 to -1 */
    x = tiny_build_sub (b, tiny_build_binary (b, TINY_OP_XOR, x, tiny_build_like (b, x, 8)),
                        tiny_build_like (b, x, 8));
  dims[rank - 1] = n_all;
  x = tiny_build_reshape (b, x, dims, rank);
  return tiny_build_cast (b, tiny_build_slice (b, x, rank - 1, 0, 1, n), dtype);
}
