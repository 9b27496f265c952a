/* SPDX-License-Identifier: MIT
 *
 * tensor-hash.c: hashes of bytes, of many messages at once.
 *
 * Keccak-f[1600] (FIPS 202) on 25 words of 64 bits for each message. A round is two kernels, the same ones for all
 * rounds and blocks of the message: what differs from one to the next, the constant of the round and the words of the
 * block, is always the first of what is stored and moves up. */
#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"
#include "tensor/tiny-layout.h"

enum {
  N_LANES = 25, /* lane 5 y + x */
  N_ROUNDS = 24,
  LANE_BYTES = 8,
  LARGEST_N_BLOCKS = 4096, /* each is some thousand nodes */
  CHUNK = 1 << 20,         /* of a hash: pages of PAGE, each of which becomes DIGEST bytes */
  PAGE = 4096,
  DIGEST = 16,
};

/* Bytes of a block, what ends a message, and bytes of the result: FIPS 202, sections 6.1 and 6.2. */
static const struct {
  const char *name;
  gint64 rate;
  guint ending;
  gint64 n_bytes;
} functions[] = {
  { "sha3_224", 144, 0x06, 28 },   { "sha3_256", 136, 0x06, 32 },
  { "sha3_384", 104, 0x06, 48 },   { "sha3_512", 72, 0x06, 64 },
  { "shake_128", 168, 0x1f, 16 },  { "shake_256", 136, 0x1f, 32 },
  { "keccak_256", 136, 0x01, 32 },
};
#define FUNCTION_NAMES "sha3_224|sha3_256|sha3_384|sha3_512|shake_128|shake_256|keccak_256"

/* Section 3.2.2, by how far lane 5 y + x is rotated. */
static const guint64 rotations[N_LANES] = { 0,  1,  62, 28, 27, 36, 44, 6,  55, 20, 3,  10, 43,
                                            25, 39, 41, 45, 15, 21, 8,  18, 2,  61, 56, 14 };

typedef struct {
  TinyNode *rotations;  /* (25) u64 */
  TinyNode *sources[3]; /* (25) i32: where π takes lane x, x + 1 and x + 2 of a row from */
  TinyNode *constants[N_ROUNDS]; /* (24) u64, of which the first counts */
} Tables;

/* Section 3.2.5: bit 2^j - 1 of the constant of round i is output 7 i + j of a shift register. */
static void
find_constants (guint64 *out)
{
  guint8 state = 1;
  for (guint i = 0; i < N_ROUNDS; i++) {
    out[i] = 0;
    for (guint j = 0; j < 7; j++) {
      out[i] |= (guint64) (state & 1) << ((1u << j) - 1);
      state = (guint8) (state << 1 ^ (state >> 7) * 0x71);
    }
  }
}

static TinyNode *
u64 (TinyBuild *b, guint64 value)
{
  return tiny_node_const_int (b->graph, TINY_DTYPE_U64, (gint64) value);
}

/* Numbers in memory. */
static TinyNode *
table_of (TinyBuild *b, TinyDType dtype, const guint64 *values, guint n)
{
  TinyNode *parts[N_LANES];
  for (guint i = 0; i < n; i++)
    parts[i] = tiny_build_reshape (b, tiny_node_const_int (b->graph, dtype, (gint64) values[i]),
                                   (gint64[]){ 1 }, 1);
  return tiny_build_store (b, tiny_build_cat (b, parts, n, 0));
}

/* @x (…, N, …) without its first, and with zeros at the end. */
static TinyNode *
move_up (TinyBuild *b, TinyNode *x, guint axis)
{
  gint64 pairs[6] = { 0 };
  if (x == NULL)
    return NULL;
  pairs[2 * axis + 1] = 1;
  x = tiny_build_pad (b, tiny_build_slice (b, x, axis, 1, 1, x->shape->v[axis] - 1), pairs, 0);
  return tiny_build_store (b, x);
}

static void
make_tables (TinyBuild *b, Tables *out)
{
  guint64 values[N_LANES];
  out->rotations = table_of (b, TINY_DTYPE_U64, rotations, N_LANES);
  for (guint d = 0; d < 3; d++) {
    for (guint lane = 0; lane < N_LANES; lane++) {
      guint x = (lane % 5 + d) % 5, y = lane / 5;
      values[lane] = 5 * x + (x + 3 * y) % 5;
    }
    out->sources[d] = table_of (b, TINY_DTYPE_I32, values, N_LANES);
  }
  find_constants (values);
  out->constants[0] = table_of (b, TINY_DTYPE_U64, values, N_ROUNDS);
  for (guint i = 1; i < N_ROUNDS; i++)
    out->constants[i] = move_up (b, out->constants[i - 1], 0);
}

static TinyNode *
xor_of (TinyBuild *b, TinyNode *x, TinyNode *y)
{
  return tiny_build_binary (b, TINY_OP_XOR, x, y);
}

/* @x rotated to the left by @by, from 0 to 63: no shift is by 64. */
static TinyNode *
rotate (TinyBuild *b, TinyNode *x, TinyNode *by)
{
  TinyNode *rest = tiny_build_sub (b, u64 (b, 63), by);
  TinyNode *low = tiny_build_binary (b, TINY_OP_SHR,
                                     tiny_build_binary (b, TINY_OP_SHR, x, u64 (b, 1)), rest);
  return tiny_build_binary (b, TINY_OP_OR, tiny_build_binary (b, TINY_OP_SHL, x, by), low);
}

/* Lanes x + @by of each row, (B, 1, 5). */
static TinyNode *
roll_row (TinyBuild *b, TinyNode *x, gint64 by)
{
  TinyNode *parts[]
      = { tiny_build_slice (b, x, 2, by, 1, 5 - by), tiny_build_slice (b, x, 2, 0, 1, by) };
  return tiny_build_cat (b, parts, 2, 2);
}

/* θ and ρ: every lane with the parity of the columns beside its own, rotated. */
static TinyNode *
mix_columns (TinyBuild *b, const Tables *tables, TinyNode *state)
{
  gint64 n = state->shape->v[0];
  TinyNode *rows = tiny_build_reshape (b, state, (gint64[]){ n, 5, 5 }, 3);
  TinyNode *parity = tiny_build_slice (b, rows, 1, 0, 1, 1);
  for (gint64 y = 1; y < 5; y++)
    parity = xor_of (b, parity, tiny_build_slice (b, rows, 1, y, 1, 1));
  TinyNode *beside
      = xor_of (b, roll_row (b, parity, 4), rotate (b, roll_row (b, parity, 1), u64 (b, 1)));
  TinyNode *mixed = tiny_build_reshape (b, xor_of (b, rows, beside), state->shape->v, 2);
  return tiny_build_store (b, rotate (b, mixed, tables->rotations));
}

/* π, χ and ι. */
static TinyNode *
mix_rows (TinyBuild *b, const Tables *tables, TinyNode *state, guint round)
{
  TinyNode *lanes[3];
  for (guint d = 0; d < 3; d++)
    lanes[d] = op_index_select (b, state, 1, tables->sources[d]);
  TinyNode *next = tiny_build_binary (b, TINY_OP_AND, op_bitwise_not (b, lanes[1]), lanes[2]);
  TinyNode *is_first
      = tiny_build_binary (b, TINY_OP_CMPEQ, tiny_build_iota (b, TINY_DTYPE_I32, N_LANES),
                           tiny_build_number (b, TINY_DTYPE_I32, 0));
  TinyNode *constant = tiny_build_slice (b, tables->constants[round], 0, 0, 1, 1);
  constant = tiny_build_where (b, is_first, constant, u64 (b, 0));
  return tiny_build_store (b, xor_of (b, xor_of (b, lanes[0], next), constant));
}

/* @x (B, N) with N a multiple of 8 as words (B, N / 8), the first byte being the lowest. */
static TinyNode *
words_of (TinyBuild *b, TinyNode *x)
{
  gint64 n = x->shape->v[0], n_words = x->shape->v[1] / LANE_BYTES;
  x = tiny_build_reshape (b, x, (gint64[]){ n, n_words, LANE_BYTES }, 3);
  TinyNode *shift = tiny_build_iota (b, TINY_DTYPE_U64, LANE_BYTES);
  shift = tiny_build_mul (b, shift, u64 (b, 8));
  x = tiny_build_binary (b, TINY_OP_SHL, tiny_build_cast (b, x, TINY_DTYPE_U64), shift);
  x = tiny_build_reduce (b, TINY_OP_ADD, x, (gint64[]){ 2 }, 1);
  return tiny_build_squeeze (b, x, (gint64[]){ 2 }, 1);
}

/* (…, N) integers of @n_bytes each as (…, N, n_bytes) u8, the lowest first. */
static TinyNode *
bytes_of (TinyBuild *b, TinyNode *x, gint64 n_bytes)
{
  if (x == NULL)
    return NULL;
  TinyDType dtype = (TinyDType) x->dtype;
  x = tiny_build_unsqueeze (b, x, x->shape->n);
  TinyNode *shift = tiny_build_iota (b, dtype, n_bytes);
  shift = tiny_build_mul (b, shift, tiny_build_number (b, dtype, 8));
  x = tiny_build_binary (b, TINY_OP_SHR, x, shift);
  x = tiny_build_binary (b, TINY_OP_AND, x, tiny_build_number (b, dtype, 255));
  return tiny_build_cast (b, x, TINY_DTYPE_U8);
}

/* The words of all blocks (B, blocks, 25) of messages (B, N): the message, its ending, zeros and a last bit. */
static TinyNode *
blocks_of (TinyBuild *b, TinyNode *messages, gint64 rate, guint ending)
{
  gint64 batch = messages->shape->v[0], n = messages->shape->v[1], n_blocks = n / rate + 1;
  gint64 whole = n_blocks * rate;
  TinyNode *at = tiny_build_iota (b, TINY_DTYPE_I32, whole);
  TinyNode *none = tiny_build_number (b, TINY_DTYPE_U8, 0), *marks = none;
  const struct {
    gint64 at;
    guint value;
  } bits[] = { { n, ending }, { whole - 1, 0x80 } };
  for (guint i = 0; i < 2; i++) {
    TinyNode *is_here = tiny_build_binary (
        b, TINY_OP_CMPEQ, at, tiny_build_number (b, TINY_DTYPE_I32, (double) bits[i].at));
    marks = tiny_build_binary (
        b, TINY_OP_OR, marks,
        tiny_build_where (b, is_here, tiny_build_number (b, TINY_DTYPE_U8, bits[i].value),
                          none));
  }
  if (n == 0)
    messages = tiny_node_broadcast (b->graph, none, (gint64[]){ batch, whole }, 2);
  else
    messages = tiny_build_pad (b, messages, (gint64[]){ 0, 0, 0, whole - n }, 0);
  TinyNode *words = words_of (b, tiny_build_binary (b, TINY_OP_OR, messages, marks));
  gint64 n_words = rate / LANE_BYTES;
  words = tiny_build_reshape (b, words, (gint64[]){ batch, n_blocks, n_words }, 3);
  return tiny_build_store (
      b, tiny_build_pad (b, words, (gint64[]){ 0, 0, 0, 0, 0, N_LANES - n_words }, 0));
}

/* The hashes (B, n_bytes) of messages (B, N). */
static TinyNode *
absorb (TinyBuild *b, const Tables *tables, TinyNode *messages, guint function)
{
  gint64 rate = functions[function].rate, n_bytes = functions[function].n_bytes;
  gint64 batch = messages->shape->v[0], n_blocks = messages->shape->v[1] / rate + 1;
  if (n_blocks > LARGEST_N_BLOCKS)
    return tiny_build_fail (b,
                            "a message of %" G_GINT64_FORMAT " bytes, at most %" G_GINT64_FORMAT
                            " are possible: hash() takes any number",
                            messages->shape->v[1], LARGEST_N_BLOCKS * rate - 1);
  TinyNode *blocks = blocks_of (b, messages, rate, functions[function].ending);
  TinyNode *state = tiny_node_broadcast (b->graph, u64 (b, 0), (gint64[]){ batch, N_LANES }, 2);
  for (gint64 i = 0; i < n_blocks && b->error == NULL; i++) {
    TinyNode *block
        = tiny_build_squeeze (b, tiny_build_slice (b, blocks, 1, 0, 1, 1), (gint64[]){ 1 }, 1);
    state = tiny_build_store (b, xor_of (b, state, block));
    for (guint round = 0; round < N_ROUNDS && b->error == NULL; round++)
      state = mix_rows (b, tables, mix_columns (b, tables, state), round);
    blocks = i + 1 < n_blocks ? move_up (b, blocks, 1) : NULL;
  }
  gint64 n_words = (n_bytes + LANE_BYTES - 1) / LANE_BYTES;
  if (state == NULL || b->error != NULL)
    return NULL;
  TinyNode *bytes = bytes_of (b, tiny_build_slice (b, state, 1, 0, 1, n_words), LANE_BYTES);
  bytes = tiny_build_reshape (b, bytes, (gint64[]){ batch, n_words * LANE_BYTES }, 2);
  return tiny_build_slice (b, bytes, 1, 0, 1, n_bytes);
}

TinyNode *
op_keccak (TinyBuild *b, TinyNode *self, const char *name)
{
  guint which, rank = self->shape->n;
  Tables tables;
  gint64 dims[TINY_MAX_RANK], batch = 1;
  if (!tiny_build_word (b, name, FUNCTION_NAMES, &which))
    return NULL;
  if (self->dtype != TINY_DTYPE_U8 || rank == 0)
    return tiny_build_fail (b, "takes bytes (…, N) of u8, not %u axes of %s", rank,
                            tiny_dtype_to_string ((TinyDType) self->dtype));
  for (guint i = 0; i + 1 < rank; i++)
    batch *= dims[i] = self->shape->v[i];
  dims[rank - 1] = functions[which].n_bytes;
  if (batch == 0)
    return tiny_node_broadcast (b->graph, tiny_build_number (b, TINY_DTYPE_U8, 0), dims, rank);
  make_tables (b, &tables);
  TinyNode *messages
      = tiny_build_reshape (b, self, (gint64[]){ batch, self->shape->v[rank - 1] }, 2);
  return tiny_build_reshape (b, absorb (b, &tables, messages, which), dims, rank);
}

/* ---- of anything ---- */
/* (N): the elements as they lie in memory. */
static TinyNode *
memory_of (TinyBuild *b, TinyNode *x)
{
  static const TinyDType words[] = {
    [1] = TINY_DTYPE_U8, [2] = TINY_DTYPE_U16, [4] = TINY_DTYPE_U32, [8] = TINY_DTYPE_U64
  };
  gint64 size = (gint64) tiny_dtype_get_n_bytes ((TinyDType) x->dtype);
  gint64 n = tiny_shape_get_n_elements (x->shape);
  if (n == 0)
    return tiny_node_broadcast (b->graph, tiny_build_number (b, TINY_DTYPE_U8, 0),
                                (gint64[]){ 0 }, 1);
  x = tiny_build_reshape (b, x, &n, 1);
  x = x->dtype == TINY_DTYPE_BOOL ? tiny_build_cast (b, x, TINY_DTYPE_U8)
                                  : op_bitcast (b, x, words[size]);
  return size == 1 ? x
                   : tiny_build_reshape (b, bytes_of (b, x, size), (gint64[]){ n * size }, 1);
}

/* (N) with zeros up to whole chunks, as pages; each page's digest, then that of a chunk's digests: (chunks, 16).
 * Of the pages that are all zeros one is hashed. */
static TinyNode *
hash_chunks (TinyBuild *b, const Tables *tables, TinyNode *bytes, gint64 n_chunks)
{
  enum { SHAKE_128 = 4 };
  gint64 n = bytes->shape->v[0], n_pages = n_chunks * (CHUNK / PAGE);
  gint64 n_hashed = MIN ((n + PAGE - 1) / PAGE + 1, n_pages), rest = n_pages - n_hashed;
  bytes = n == 0 ? tiny_node_broadcast (b->graph, tiny_build_number (b, TINY_DTYPE_U8, 0),
                                        (gint64[]){ n_hashed * PAGE }, 1)
                 : tiny_build_pad (b, bytes, (gint64[]){ 0, n_hashed * PAGE - n }, 0);
  bytes = absorb (b, tables, tiny_build_reshape (b, bytes, (gint64[]){ n_hashed, PAGE }, 2),
                  SHAKE_128);
  if (rest > 0 && bytes != NULL) {
    TinyNode *zeros = tiny_build_slice (b, bytes, 0, n_hashed - 1, 1, 1);
    zeros = tiny_build_expand (b, zeros, (gint64[]){ rest, DIGEST }, 2);
    bytes = tiny_build_cat (b, (TinyNode *[]){ bytes, zeros }, 2, 0);
  }
  bytes = tiny_build_reshape (b, bytes, (gint64[]){ n_chunks, CHUNK / PAGE * DIGEST }, 2);
  return absorb (b, tables, bytes, SHAKE_128);
}

TinyNode *
op_hash (TinyBuild *b, TinyNode *self)
{
  Tables tables;
  TinyNode *bytes = memory_of (b, self);
  make_tables (b, &tables);
  for (gboolean more = TRUE; more && bytes != NULL;) {
    gint64 n_chunks = MAX ((bytes->shape->v[0] + CHUNK - 1) / CHUNK, 1);
    more = n_chunks > 1;
    bytes = hash_chunks (b, &tables, bytes, n_chunks);
    if (bytes != NULL)
      bytes = tiny_build_reshape (b, bytes, (gint64[]){ n_chunks * DIGEST }, 1);
  }
  return bytes;
}
