/* SPDX-License-Identifier: MIT
 *
 * test-matrix.c: products of matrices by a warp, their fragments in memory, and asynchronous copies.
 *
 * Each element is placed by what PTX says of its coordinates, one by one, not by the registers' formulas of run-matrix.c. */
#include "machine.h"
#include <math.h>
#include <string.h>

enum { M = 16, N = 8, MAX_K = 32, LANES = 32 };

/* ---- products ---- */

typedef struct {
  const char *name, *instruction;
  guint k, bits; /* of an element of A and B */
  guint n_a, n_b, n_c;
  gboolean is_float, has_half_sums, is_signed;
  guint8 e, m; /* bits of exponent and mantissa */
} Shape;

static const Shape shapes[] = {
  { "f16-k8", "m16n8k8.row.col.f32.f16.f16.f32", 8, 16, 2, 1, 4, TRUE, FALSE, FALSE, 5, 10 },
  { "f16-k16", "m16n8k16.row.col.f32.f16.f16.f32", 16, 16, 4, 2, 4, TRUE, FALSE, FALSE, 5, 10 },
  { "f16-sums", "m16n8k16.row.col.f16.f16.f16.f16", 16, 16, 4, 2, 2, TRUE, TRUE, FALSE, 5, 10 },
  { "bf16-k8", "m16n8k8.row.col.f32.bf16.bf16.f32", 8, 16, 2, 1, 4, TRUE, FALSE, FALSE, 8, 7 },
  { "bf16-k16", "m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, 4, 2, 4, TRUE, FALSE, FALSE, 8,
    7 },
  { "tf32-k4", "m16n8k4.row.col.f32.tf32.tf32.f32", 4, 32, 2, 1, 4, TRUE, FALSE, FALSE, 8, 23 },
  { "tf32-k8", "m16n8k8.row.col.f32.tf32.tf32.f32", 8, 32, 4, 2, 4, TRUE, FALSE, FALSE, 8, 23 },
  { "s8-k16", "m16n8k16.row.col.s32.s8.s8.s32", 16, 8, 2, 1, 4, FALSE, FALSE, TRUE, 0, 0 },
  { "s8-k32", "m16n8k32.row.col.s32.s8.s8.s32", 32, 8, 4, 2, 4, FALSE, FALSE, TRUE, 0, 0 },
  { "u8-k32", "m16n8k32.row.col.s32.u8.u8.s32", 32, 8, 4, 2, 4, FALSE, FALSE, FALSE, 0, 0 },
  { "e4m3-k32", "m16n8k32.row.col.f32.e4m3.e4m3.f32", 32, 8, 4, 2, 4, TRUE, FALSE, FALSE, 4,
    3 },
};

/* Small whole numbers, so that all sums are exact in any format. */
static guint32
encode (const Shape *shape, int value)
{
  if (!shape->is_float)
    return (guint32) value & 0xff;
  if (value == 0)
    return 0;
  int exponent = ilogb (value), bias = (1 << (shape->e - 1)) - 1;
  guint32 mantissa = (guint32) ((ldexp (abs (value), -exponent) - 1) * (1 << shape->m));
  return (value < 0 ? 1u << (shape->e + shape->m) : 0) | (guint32) (exponent + bias) << shape->m
         | mantissa;
}

static guint32
encode_sum (const Shape *shape, int value)
{
  float single = value;
  guint32 bits;
  memcpy (&bits, &single, sizeof bits);
  static const Shape half = { .is_float = TRUE, .e = 5, .m = 10 };
  return shape->has_half_sums ? encode (&half, value)
         : shape->is_float    ? bits
                              : (guint32) value;
}

/* The lane and the place of an element, counted through the words of a lane's fragment. */
static void
put (guint32 *words, guint n_words, guint lane, guint element, guint bits, guint32 value)
{
  guint bit = element * bits;
  words[lane * n_words + bit / 32] |= value << (bit % 32);
}

/* Element (row, k) of A: lanes hold @n neighbours; blocks of 8 rows, then of 4 n columns. */
static void
put_a (const Shape *shape, guint32 *words, guint row, guint k, int value)
{
  guint n = 32 / shape->bits, lane = row % 8 * 4 + k / n % 4;
  put (words, shape->n_a, lane, (k / (4 * n) * 2 + row / 8) * n + k % n, shape->bits,
       encode (shape, value));
}

static void
put_b (const Shape *shape, guint32 *words, guint k, guint column, int value)
{
  guint n = 32 / shape->bits, lane = column * 4 + k / n % 4;
  put (words, shape->n_b, lane, k / (4 * n) * n + k % n, shape->bits, encode (shape, value));
}

static void
put_c (const Shape *shape, guint32 *words, guint row, guint column, int value)
{
  put (words, shape->n_c, row % 8 * 4 + column / 2, row / 8 * 2 + column % 2,
       shape->has_half_sums ? 16 : 32, encode_sum (shape, value));
}

static void
append_words (GString *text, const char *prefix, guint n)
{
  for (guint i = 0; i < n; i++)
    g_string_append_printf (text, "%s%s%u", i > 0 ? ", " : "{", prefix, i);
  g_string_append (text, "}");
}

static void
append_loads (GString *text, const char *prefix, const char *param, guint n)
{
  g_string_append_printf (text, "ld.param.u64 %%d0, [%s]; mad.wide.u32 %%d0, %%r, %u, %%d0;\n",
                          param, n * 4);
  for (guint i = 0; i < n; i++)
    g_string_append_printf (text, "ld.global.b32 %s%u, [%%d0+%u];\n", prefix, i, 4 * i);
}

static char *
text_of (const Shape *shape)
{
  GString *text = g_string_new (
      MACHINE_HEAD
      ".visible .entry k (.param .u64 d, .param .u64 a, .param .u64 b, .param .u64 c) {\n"
      ".reg .b32 %r, %a<4>, %b<2>, %c<4>, %e<4>; .reg .b64 %d0; mov.u32 %r, %tid.x;\n");
  append_loads (text, "%a", "a", shape->n_a);
  append_loads (text, "%b", "b", shape->n_b);
  append_loads (text, "%c", "c", shape->n_c);
  g_string_append_printf (text, "mma.sync.aligned.%s ", shape->instruction);
  append_words (text, "%e", shape->n_c);
  g_string_append (text, ", ");
  append_words (text, "%a", shape->n_a);
  g_string_append (text, ", ");
  append_words (text, "%b", shape->n_b);
  g_string_append (text, ", ");
  append_words (text, "%c", shape->n_c);
  g_string_append_printf (text, "; ld.param.u64 %%d0, [d]; mad.wide.u32 %%d0, %%r, %u, %%d0;\n",
                          shape->n_c * 4);
  for (guint i = 0; i < shape->n_c; i++)
    g_string_append_printf (text, "st.global.b32 [%%d0+%u], %%e%u;\n", 4 * i, i);
  g_string_append (text, "ret; }\n");
  return g_string_free (text, FALSE);
}

static int
draw (const Shape *shape)
{
  return g_test_rand_int_range (shape->is_float || shape->is_signed ? -8 : 0, 9);
}

static void
test_product (gconstpointer data)
{
  const Shape *shape = data;
  guint32 a[LANES * 4] = { 0 }, b[LANES * 2] = { 0 }, c[LANES * 4] = { 0 },
                    d[LANES * 4] = { 0 }, wanted[LANES * 4] = { 0 };
  int left[M][MAX_K], right[MAX_K][N];
  for (guint k = 0; k < shape->k; k++) {
    for (guint row = 0; row < M; row++)
      put_a (shape, a, row, k, left[row][k] = draw (shape));
    for (guint column = 0; column < N; column++)
      put_b (shape, b, k, column, right[k][column] = draw (shape));
  }
  for (guint row = 0; row < M; row++)
    for (guint column = 0; column < N; column++) {
      int sum = g_test_rand_int_range (-100, 100);
      put_c (shape, c, row, column, sum);
      for (guint k = 0; k < shape->k; k++)
        sum += left[row][k] * right[k][column];
      put_c (shape, wanted, row, column, sum);
    }
  g_autofree char *text = text_of (shape);
  PtxFault fault = machine_run (&(Machine){
      .text = text,
      .threads = LANES,
      .arrays = { { d, sizeof d }, { a, sizeof a }, { b, sizeof b }, { c, sizeof c } } });
  g_assert_cmpstr (fault.text, ==, "");
  for (guint i = 0; i < LANES * shape->n_c; i++)
    g_assert_cmphex (d[i], ==, wanted[i]);
}

/* ---- fragments ---- */

#define FRAGMENT(instruction)                                                                  \
  MACHINE_HEAD                                                                                 \
  ".visible .entry k (.param .u64 o, .param .u64 x) {\n.shared .align 16 .b16 s[256];\n"       \
  ".reg .b32 %r<9>; .reg .b64 %d<6>; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 16; "         \
  "mov.u64 %d2, s; add.s64 %d2, %d2, %d1;\n"                                                   \
  "ld.param.u64 %d0, [x]; add.s64 %d0, %d0, %d1; ld.global.v4.u32 {%r1, %r2, %r3, %r4}, "      \
  "[%d0];\n"                                                                                   \
  "ld.param.u64 %d3, [o]; add.s64 %d3, %d3, %d1;\n" instruction "ret; }\n"

/* Rows of 8 elements lie one behind the other; lane l of matrix m gets elements 2 (l % 4) and the next of its row l / 4. */
static void
check_fragment (const char *text, gboolean is_transposed, gboolean is_store)
{
  guint16 memory[256], lanes[LANES][4][2], out[256];
  for (guint i = 0; i < 256; i++)
    memory[i] = g_test_rand_int ();
  for (guint lane = 0; lane < LANES; lane++)
    for (guint m = 0; m < 4; m++)
      for (guint j = 0; j < 2; j++) {
        guint row = lane / 4, column = lane % 4 * 2 + j;
        lanes[lane][m][j]
            = memory[64 * m + (is_transposed ? 8 * column + row : 8 * row + column)];
      }
  void *in = is_store ? (void *) lanes : (void *) memory,
       *wanted = is_store ? (void *) memory : (void *) lanes;
  PtxFault fault
      = machine_run (&(Machine){ .text = text,
                                 .threads = LANES,
                                 .arrays = { { out, sizeof out }, { in, sizeof memory } } });
  g_assert_cmpstr (fault.text, ==, "");
  g_assert_cmpmem (out, sizeof out, wanted, sizeof memory);
}

static void
test_fragments (void)
{
#define LOAD(trans)                                                                            \
  FRAGMENT ("st.shared.v4.u32 [%d2], {%r1, %r2, %r3, %r4}; bar.sync 0;\n"                      \
            "ldmatrix.sync.aligned.m8n8.x4" trans                                              \
            ".shared.b16 {%r5, %r6, %r7, %r8}, [%d2]; st.global.v4.u32 [%d3], {%r5, %r6, "     \
            "%r7, %r8};\n")
#define STORE(trans)                                                                           \
  FRAGMENT ("stmatrix.sync.aligned.m8n8.x4" trans                                              \
            ".shared.b16 [%d2], {%r1, %r2, %r3, %r4}; bar.sync 0;\n"                           \
            "ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%d2]; st.global.v4.u32 [%d3], {%r5, "     \
            "%r6, %r7, %r8};\n")
  check_fragment (LOAD (""), FALSE, FALSE);
  check_fragment (LOAD (".trans"), TRUE, FALSE);
  check_fragment (STORE (""), FALSE, TRUE);
  check_fragment (STORE (".trans"), TRUE, TRUE);
}

/* ---- asynchronous copies ---- */

#define COPY(wait)                                                                             \
  FRAGMENT ("cp.async.cg.shared.global [%d2], [%d0], 16; cp.async.commit_group;\n"             \
            "add.s64 %d4, %d2, 0; cp.async.ca.shared.global [%d2], [%d0], 4, 0; "              \
            "cp.async.commit_group;\n" wait                                                    \
            "bar.sync 0; ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%d2]; st.global.v4.u32 "      \
            "[%d3], {%r5, %r6, %r7, %r8};\n")

static void
copy (const char *text, const guint32 *in, guint32 *out)
{
  PtxFault fault = machine_run (
      &(Machine){ .text = text,
                  .threads = LANES,
                  .arrays = { { out, LANES * 16 }, { (void *) in, LANES * 16 } } });
  g_assert_cmpstr (fault.text, ==, "");
}

/* The second copy zeroes the first word; each wait lets through what it says and no more. */
static void
test_copies (void)
{
  guint32 in[LANES * 4], out[LANES * 4];
  for (guint i = 0; i < LANES * 4; i++)
    in[i] = i + 1;
  copy (COPY ("cp.async.wait_group 0;\n"), in, out);
  for (guint i = 0; i < LANES * 4; i++)
    g_assert_cmpuint (out[i], ==, i % 4 == 0 ? 0 : in[i]);
  copy (COPY ("cp.async.wait_all;\n"), in, out);
  g_assert_cmpuint (out[4], ==, 0);
  copy (COPY ("cp.async.wait_group 1;\n"), in, out);
  g_assert_cmpmem (out, sizeof out, in, sizeof in);
  copy (COPY (""), in, out);
  for (guint i = 0; i < LANES * 4; i++)
    g_assert_cmpuint (out[i], !=, in[i]);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++) {
    g_autofree char *path = g_strconcat ("/simulators/nvidia/matrix/", shapes[i].name, NULL);
    g_test_add_data_func (path, &shapes[i], test_product);
  }
  g_test_add_func ("/simulators/nvidia/matrix/fragments", test_fragments);
  g_test_add_func ("/simulators/nvidia/matrix/copies", test_copies);
  return g_test_run ();
}
