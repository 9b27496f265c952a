/* SPDX-License-Identifier: MIT
 *
 * tiny-tensor-quant.h: weights in blocks of few bits, as GGUF files hold them.
 *
 * A block is 32 weights that are neighbours along the last axis, with one scale. The formats are
 * ggml's, byte for byte (ggml-common.h, block_q8_0 and block_q4_0). */
#pragma once

#include "tensor/tiny-tensor.h"

G_BEGIN_DECLS

/**
 * TinyQuant:
 * @TINY_QUANT_Q8_0: 34 bytes: scale d (f16, little endian), 32 numbers q of 8 bits, signed;
 *   w = d * q
 * @TINY_QUANT_Q4_0: 18 bytes: scale d (f16, little endian), 16 bytes whose low halves are the q of
 *   weights 0 to 15 and whose high halves those of weights 16 to 31; w = d * (q - 8)
 *
 * A format of blocks of 32 weights.
 *
 * Since: 0.1
 */
typedef enum {
  TINY_QUANT_Q8_0,
  TINY_QUANT_Q4_0,
} TinyQuant;

/**
 * tiny_quant_get_n_bytes:
 * @format: a format
 * @n: number of weights, a multiple of 32
 *
 * Bytes of the blocks of so many weights.
 *
 * Returns: the size, 0 when @n is no multiple of 32
 *
 * Since: 0.1
 */
TINY_API gsize tiny_quant_get_n_bytes (TinyQuant format, gint64 n);

/**
 * tiny_quant_encode:
 * @format: a format
 * @weights: (array length=n): finite weights
 * @n: how many, a multiple of 32
 * @out_blocks: (out caller-allocates): room for tiny_quant_get_n_bytes()
 *
 * Rounds weights to blocks on the host, as ggml's reference does: Q8_0 to the nearest of 127
 * steps of the largest magnitude (halves away from 0), Q4_0 to the nearest of 16 steps of which the
 * largest magnitude is the one at -8. Off by at most half a step of the block.
 *
 * Since: 0.1
 */
TINY_API void
tiny_quant_encode (TinyQuant format, const float *weights, gint64 n, guint8 *out_blocks);

/**
 * tiny_tensor_dequantize:
 * @blocks: u8 of any shape, the blocks one after the other in row-major order of the weights
 * @format: of @blocks
 * @shape: (array length=n_dims): of the weights; the last size is a multiple of 32
 * @n_dims: how many axes, at least 1
 *
 * The weights as f32, lazily: what uses them reads the blocks, and nothing else is stored unless it is
 * asked for. Shifts, masks and casts are exact, the product d * q is rounded once. Memory of
 * a file can be given with tiny_tensor_new_from_data() and kept as it is.
 *
 * Errors: %TINY_ERROR_INVALID when @blocks are not u8, not as many bytes as @shape wants, or the last
 * size is no multiple of 32.
 *
 * Returns: (transfer floating): the weights
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_dequantize (TinyTensor *blocks,
                                             TinyQuant format,
                                             const gint64 *shape,
                                             guint n_dims);

/**
 * tiny_tensor_quantize:
 * @self: floats, the last size is a multiple of 32
 * @format: a format
 * @error: return location
 *
 * Realises @self and rounds it to blocks by tiny_quant_encode().
 *
 * Errors: those of realising; %TINY_ERROR_INVALID when @self is not of f32 or the last size is no
 * multiple of 32.
 *
 * Returns: (transfer full) (nullable): u8 (N), the blocks, on the device of @self
 *
 * Since: 0.1
 */
TINY_API TinyTensor *tiny_tensor_quantize (TinyTensor *self, TinyQuant format, GError **error);

G_END_DECLS
