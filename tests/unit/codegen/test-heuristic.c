/* SPDX-License-Identifier: MIT
 *
 * test-heuristic.c: which optimisations are chosen where they decide over speed: panels that are
 * copied or read in place, several contractions in one nest, rows shorter than vectors, windows of a few taps. */
#include <string.h>

#include "kernels.h"

static char *
choose (Build *b, TinyNode *sink)
{
  TinyTarget target = vector_target ();
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (b->graph, sink, &target, NULL, 0, &error);
  g_assert_no_error (error);
  g_test_message ("%s", program->opts);
  return g_strdup (program->opts);
}

/* The product of (M, K) and (K, N), whose parameters begin at @slot. */
static TinyNode *
product (Build *b, guint slot, TinyNode *i, TinyNode *j, TinyNode *k)
{
  gint64 M = tiny_range_get_extent (i), N = tiny_range_get_extent (j),
         K = tiny_range_get_extent (k);
  TinyNode *x
      = build_load (b, build_param (b, TINY_DTYPE_F32, slot, M * K), INDEX (b, i, k), NULL);
  TinyNode *y
      = build_load (b, build_param (b, TINY_DTYPE_F32, slot + 1, K * N), INDEX (b, k, j), NULL);
  return build_reduce (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, x, y), 1, &k);
}

static TinyNode *
matmul (Build *b, gint64 M, gint64 N, gint64 K, guint n_products)
{
  TinyNode *i = build_range (b, M), *j = build_range (b, N), *k = build_range (b, K);
  TinyNode *sum = product (b, 1, i, j, k);
  for (guint n = 1; n < n_products; n++)
    sum = build_op (b, TINY_OP_ADD, sum, product (b, 1 + 2 * n, i, j, k));
  return build_sink (b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, M * N),
                                     INDEX (b, i, j), sum, NULL));
}

static char *
choose_matmul (gint64 M, gint64 N, gint64 K, guint n_products)
{
  BUILD ();
  return choose (b, matmul (b, M, N, K, n_products));
}

/* Panels that stay in the cache for all rows are read where they are, and the rows go to the
 * threads; others are copied, and go to the threads themselves. */
static void
test_in_place (void)
{
  g_autofree char *small = choose_matmul (3136, 64, 256, 1);
  g_autofree char *large = choose_matmul (1024, 1024, 1024, 1);
  g_assert_null (strstr (small, "stage"));
  g_assert_null (strstr (small, "swap"));
  g_assert_nonnull (strstr (small, "grid(0,0)"));
  g_assert_nonnull (strstr (large, "stage(0,1)"));
}

/* Panels that lie in one piece are not copied, however large; all rows are computed for one of them
 * before the next. */
static void
test_dense (void)
{
  BUILD ();
  gint64 M = 196, N = 1024, K = 1024;
  TinyNode *i = build_range (b, M), *block = build_range (b, N / 32), *j = build_range (b, 32);
  TinyNode *k = build_range (b, K);
  TinyNode *x
      = build_load (b, build_param (b, TINY_DTYPE_F32, 1, M * K), INDEX (b, i, k), NULL);
  TinyNode *y
      = build_load (b, build_param (b, TINY_DTYPE_F32, 2, K * N), INDEX (b, block, k, j), NULL);
  TinyNode *sum = build_reduce (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, x, y), 1, &k);
  g_autofree char *opts
      = choose (b, build_sink (b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, M * N),
                                               INDEX (b, i, block, j), sum, NULL)));
  g_assert_null (strstr (opts, "stage"));
  g_assert_nonnull (strstr (opts, "swap(0,1)"));
}

/* How many vectors a tile of the product of (@M, 512) and (512, 2048) has side by side. */
static gint64
choose_n_vectors (gint64 M)
{
  g_autofree char *opts = choose_matmul (M, 2048, 512, 1);
  const char *at = strstr (opts, "upcast(1,");
  return at != NULL ? g_ascii_strtoll (strchr (at, ',') + 1, NULL, 10) : 1;
}

/* Rows that do not stay in the second cache (2 MiB) are read again by each column of tiles: these are wider. */
static void
test_streaming_rows (void)
{
  g_assert_cmpint (choose_n_vectors (2048), >, choose_n_vectors (256));
}

/* How many numbers that were made vectors of themselves are there at a time, at most. */
static guint
count_broadcasts (const TinyLinear *linear)
{
  g_autofree guint32 *last = g_new0 (guint32, linear->n_instrs);
  guint most = 0;
  for (guint32 i = 0; i < linear->n_instrs; i++)
    for (guint32 s = 0; s < linear->instrs[i].n_sources; s++)
      last[linear->sources[linear->instrs[i].sources + s]] = i;
  for (guint32 i = 0; i < linear->n_instrs; i++) {
    guint n = 0;
    for (guint32 k = 0; k <= i; k++)
      n += linear->instrs[k].op == TINY_INSTR_VECTOR && linear->instrs[k].n_sources == 1
           && last[k] > i;
    most = MAX (most, n);
  }
  return most;
}

/* A tile that reads a copy makes one element of its rows a vector, multiplies with it, and takes the next: all of
 * them at once, with the sums, would be more than there are registers. */
static void
test_broadcasts (void)
{
  BUILD ();
  TinyTarget target = vector_target ();
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyLinearProgram) program = tiny_codegen_compile (
      b->graph, matmul (b, 1024, 1024, 1024, 1), &target, NULL, 0, &error);
  g_assert_no_error (error);
  g_assert_nonnull (strstr (program->opts, "stage(0,1)"));
  g_assert_cmpuint (count_broadcasts (&program->linear), <=, 2); /* one is 0 */
}

/* The products of all UPCASTs and the number of sums fit the registers. */
static void
test_two_products (void)
{
  g_autofree char *opts = choose_matmul (512, 256, 64, 2);
  gint64 n_sums = 2;
  for (const char *at = opts; (at = strstr (at, "upcast(")) != NULL; at++)
    n_sums *= g_ascii_strtoll (strchr (at, ',') + 1, NULL, 10);
  g_assert_cmpint (n_sums, >, 2);
  g_assert_cmpint (n_sums, <, 32);
}

/* Stores beside a product, each in a loop of its own, as of statistics of a row, leave it its tile. */
static void
test_many_stores (void)
{
  enum { N_STORES = 12 };
  BUILD ();
  const gint64 M = 96, N = 64, K = 64;
  TinyNode *stores[N_STORES + 1];
  TinyNode *i = build_range (b, M), *j = build_range (b, N), *k = build_range (b, K);
  stores[0] = build_store (b, build_param (b, TINY_DTYPE_F32, 0, M * N), INDEX (b, i, j),
                           product (b, N_STORES + 1, i, j, k), NULL);
  for (guint s = 1; s <= N_STORES; s++)
    stores[s] = build_store (b, build_param (b, TINY_DTYPE_F32, s, M), i,
                             tiny_node_const_float (b->graph, TINY_DTYPE_F32, s), NULL);
  g_autofree char *opts
      = choose (b, tiny_node_sink (b->graph, G_N_ELEMENTS (stores), stores, NULL));
  g_assert_nonnull (strstr (opts, "lanes(1,16) upcast(0,"));
}

/* Chooses for @n applications of @op to each of 4096 elements. */
static char *
choose_row (TinyOp op, guint n)
{
  BUILD ();
  TinyNode *i = build_range (b, 4096);
  TinyNode *x = build_load (b, build_param (b, TINY_DTYPE_F32, 1, 4096), i, NULL);
  for (guint k = 0; k < n; k++)
    x = tiny_op_infos[op].least == 1 ? tiny_node_unary (b->graph, op, x)
                                     : build_op (b, op, x, build_number (b, k + 2));
  TinyNode *out = build_param (b, TINY_DTYPE_F32, 0, 4096);
  return choose (b, build_sink (b, build_store (b, out, i, x, NULL)));
}

/* A short body is there several times, one that fills a round by itself once: a sine is 150 instructions. */
static void
test_copies (void)
{
  g_autofree char *one = choose_row (TINY_OP_SQRT, 1), *more = choose_row (TINY_OP_SQRT, 24);
  g_autofree char *sine = choose_row (TINY_OP_SIN, 1), *exps = choose_row (TINY_OP_EXP2, 3);
  g_assert_nonnull (strstr (one, "upcast(0,4)"));
  g_assert_nonnull (strstr (more, "upcast(0,2)"));
  g_assert_null (strstr (sine, "upcast"));
  g_assert_null (strstr (exps, "upcast"));
}

/* A convolution of @W columns whose borders are gates, so that rows follow each other; @C channels
 * to @O. */
static TinyNode *
build_convolution (Build *b, gint64 C, gint64 O, gint64 H, gint64 W)
{
  TinyNode *o = build_range (b, O), *y = build_range (b, H), *x = build_range (b, W);
  TinyNode *k[] = { build_range (b, C), build_range (b, 3) };
  TinyNode *column
      = build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_ADD, x, k[1]), build_number (b, -1));
  TinyNode *gate
      = build_op (b, TINY_OP_AND, build_op (b, TINY_OP_CMPLT, build_number (b, -1), column),
                  build_op (b, TINY_OP_CMPLT, column, build_number (b, W)));
  TinyNode *index = build_op (b, TINY_OP_ADD, INDEX (b, k[0], y, x),
                              build_op (b, TINY_OP_ADD, k[1], build_number (b, -1)));
  TinyNode *image = build_load (b, build_param (b, TINY_DTYPE_F32, 1, C * H * W), index, gate);
  TinyNode *w = build_load (b, build_param (b, TINY_DTYPE_F32, 2, C * O * 3),
                            INDEX (b, k[0], k[1], o), NULL);
  TinyNode *sum = build_reduce (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, image, w), 2, k);
  return build_sink (b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, O * H * W),
                                     INDEX (b, o, y, x), sum, NULL));
}

/* Rows that leave lanes empty become one axis with what is around them, where many outputs read
 * them; what that computes is what the kernel says, for rows shorter and longer than a vector. */
static void
test_short_rows (void)
{
  gint64 sizes[][2] = { { 56, 56 }, { 7, 7 }, { 5, 20 }, { 3, 1 }, { 1, 9 } };
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    BUILD ();
    check_everywhere (b, build_convolution (b, 3, 16, sizes[i][0], sizes[i][1]));
  }
  BUILD ();
  g_autofree char *uneven = choose (b, build_convolution (b, 64, 64, 56, 56));
  g_autofree char *even = choose (b, build_convolution (b, 64, 64, 64, 64));
  g_autofree char *few = choose (b, build_convolution (b, 64, 4, 56, 56));
  g_assert_true (g_str_has_prefix (uneven, "merge(1,2) "));
  /* A copy of rows that are one would hold each element for each tap; others share a row among the taps. */
  g_assert_null (strstr (uneven, "stage"));
  g_assert_nonnull (strstr (even, "stage(1,0)"));
  g_assert_null (strstr (few, "merge"));
  g_assert_null (strstr (even, "merge"));
}

/* Rows of which a variable says how many are stored: threads get pieces with a loop that can end. */
static char *
choose_rows (gboolean is_limited)
{
  BUILD ();
  gint64 M = 512, N = 12, K = 64;
  TinyNode *i = build_range (b, M), *j = build_range (b, N), *k = build_range (b, K);
  TinyNode *n = tiny_node_new (b->graph, TINY_OP_VARIABLE, TINY_DTYPE_I32, 1, 0, NULL, 0,
                               tiny_graph_ints (b->graph, (gint64[]){ 0, M }, 2), NULL);
  TinyNode *gate = build_op (b, TINY_OP_CMPLT, tiny_node_cast (b->graph, i, TINY_DTYPE_I32), n);
  TinyNode *x
      = build_load (b, build_param (b, TINY_DTYPE_F32, 1, M * N * K), INDEX (b, i, j, k), NULL);
  TinyNode *sum = build_reduce (b, TINY_OP_ADD, x, 1, &k);
  return choose (b,
                 build_sink (b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, M * N),
                                             INDEX (b, i, j), sum, is_limited ? gate : NULL)));
}

static void
test_limited (void)
{
  g_autofree char *whole = choose_rows (FALSE), *limited = choose_rows (TRUE);
  g_assert_null (strstr (whole, "split(0,32)"));
  g_assert_nonnull (strstr (limited, "split(0,32)"));
}

/* The transposed matrix, and with @adds another one in order added. */
static TinyNode *
transposition (Build *b, gint64 M, gint64 N, gboolean adds)
{
  TinyNode *i = build_range (b, M), *j = build_range (b, N);
  TinyNode *x
      = build_load (b, build_param (b, TINY_DTYPE_F32, 1, M * N), INDEX (b, j, i), NULL);
  if (adds)
    x = build_op (
        b, TINY_OP_ADD, x,
        build_load (b, build_param (b, TINY_DTYPE_F32, 2, M * N), INDEX (b, i, j), NULL));
  return build_sink (
      b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, M * N), INDEX (b, i, j), x, NULL));
}

/* An operand that lies the other way is read as it lies, in squares of a vector's lanes that are turned, and
 * gives the same where squares do not fit. */
static void
test_turned (void)
{
  gint64 sizes[][2] = { { 32, 64 }, { 33, 70 }, { 64, 5 }, { 5, 64 }, { 17, 16 } };
  for (guint i = 0; i < 2 * G_N_ELEMENTS (sizes); i++) {
    BUILD ();
    check_everywhere (b, transposition (b, sizes[i / 2][0], sizes[i / 2][1], i % 2 == 1));
  }
  BUILD ();
  g_autofree char *copy = choose (b, transposition (b, 2048, 2048, FALSE));
  g_autofree char *sum = choose (b, transposition (b, 2048, 2048, TRUE));
  g_autofree char *narrow = choose (b, transposition (b, 4, 2048, FALSE));
  g_assert_true (g_str_has_prefix (copy, "lanes(1,16) upcast(0,16) "));
  g_assert_true (g_str_has_prefix (sum, "lanes(1,16) upcast(0,16) "));
  g_assert_null (strstr (narrow, "lanes"));
}

/* A convolution's weight (O, I, taps) as (taps, I, O). */
static TinyNode *
weight (Build *b, gint64 O, gint64 I, gint64 taps)
{
  TinyNode *t = build_range (b, taps), *i = build_range (b, I), *o = build_range (b, O);
  TinyNode *x = build_load (b, build_param (b, TINY_DTYPE_F32, 1, O * I * taps),
                            INDEX (b, o, i, t), NULL);
  return build_sink (b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, O * I * taps),
                                     INDEX (b, t, i, o), x, NULL));
}

/* Taps that fill more than half of a square are turned as well, and O comes outside: the taps of one I lie beside
 * those of the next. */
static void
test_turned_weights (void)
{
  gint64 sizes[][3]
      = { { 16, 5, 9 }, { 20, 3, 9 }, { 33, 2, 25 }, { 16, 3, 5 }, { 18, 4, 17 } };
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    BUILD ();
    check_everywhere (b, weight (b, sizes[i][0], sizes[i][1], sizes[i][2]));
  }
  BUILD ();
  g_autofree char *nine = choose (b, weight (b, 512, 512, 9));
  g_autofree char *four = choose (b, weight (b, 512, 512, 4));
  g_assert_true (g_str_has_prefix (
      nine, "lanes(2,16) pad(0,16) upcast(0,16) swap(0,1) swap(1,2) swap(0,1) "));
  g_assert_null (strstr (four, "lanes"));
}

/* Where tap @k of output @i reads a row of @n; the gate that it does is and'ed to @gate. */
static TinyNode *
shift (Build *b, TinyNode *i, gint64 stride, TinyNode *k, gint64 n, TinyNode **gate)
{
  TinyNode *at = build_op (b, TINY_OP_MUL, i, build_number (b, stride));
  at = build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_ADD, at, k),
                 build_number (b, -(tiny_range_get_extent (k) / 2)));
  TinyNode *inside
      = build_op (b, TINY_OP_AND, build_op (b, TINY_OP_CMPLT, build_number (b, -1), at),
                  build_op (b, TINY_OP_CMPLT, at, build_number (b, n)));
  *gate = *gate ? build_op (b, TINY_OP_AND, *gate, inside) : inside;
  return at;
}

/* A convolution of each of @C channels by itself, with @K × @K taps; channels come last or first. */
static TinyNode *
build_depthwise (Build *b, gint64 C, gint64 N, gint64 K, gint64 stride, gboolean is_last)
{
  gint64 n = (N + stride - 1) / stride;
  TinyNode *first = is_last ? NULL : build_range (b, C);
  TinyNode *y = build_range (b, n), *x = build_range (b, n);
  TinyNode *c = is_last ? build_range (b, C) : first;
  TinyNode *k[] = { build_range (b, K), build_range (b, K) }, *gate = NULL;
  TinyNode *row = shift (b, y, stride, k[0], N, &gate);
  TinyNode *column = shift (b, x, stride, k[1], N, &gate);
  TinyNode *width = build_number (b, N), *channels = build_number (b, C);
  TinyNode *at = build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, row, width), column);
  at = is_last ? build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, at, channels), c)
               : build_op (b, TINY_OP_ADD,
                           build_op (b, TINY_OP_MUL, c, build_number (b, N * N)), at);
  TinyNode *image = build_load (b, build_param (b, TINY_DTYPE_F32, 1, C * N * N), at, gate);
  TinyNode *w = build_load (b, build_param (b, TINY_DTYPE_F32, 2, K * K * C),
                            INDEX (b, k[0], k[1], c), NULL);
  TinyNode *sum = build_reduce (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, image, w), 2, k);
  TinyNode *to = is_last ? INDEX (b, y, x, c) : INDEX (b, c, y, x);
  return build_sink (
      b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, C * n * n), to, sum, NULL));
}

/* A convolution of @C channels to @O, which come last in weights and result, with 3 × 3 taps. */
static TinyNode *
build_gated (Build *b, gint64 B, gint64 C, gint64 O, gint64 N)
{
  TinyNode *batch = build_range (b, B), *y = build_range (b, N), *x = build_range (b, N);
  TinyNode *o = build_range (b, O), *gate = NULL;
  TinyNode *k[] = { build_range (b, 3), build_range (b, 3), build_range (b, C) };
  TinyNode *row = shift (b, y, 1, k[0], N, &gate), *column = shift (b, x, 1, k[1], N, &gate);
  TinyNode *at = build_op (b, TINY_OP_MUL, INDEX (b, batch, k[2]), build_number (b, N * N));
  at = build_op (b, TINY_OP_ADD, at, build_op (b, TINY_OP_MUL, row, build_number (b, N)));
  TinyNode *image = build_load (b, build_param (b, TINY_DTYPE_F32, 1, B * C * N * N),
                                build_op (b, TINY_OP_ADD, at, column), gate);
  TinyNode *w = build_load (b, build_param (b, TINY_DTYPE_F32, 2, 9 * C * O),
                            INDEX (b, k[0], k[1], k[2], o), NULL);
  TinyNode *sum = build_reduce (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, image, w), 3, k);
  return build_sink (b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, B * N * N * O),
                                     INDEX (b, batch, y, x, o), sum, NULL));
}

/* How many loads of parameter @slot a program has. */
static guint
count_loads (const TinyLinear *linear, gint64 slot)
{
  guint n = 0;
  for (guint i = 0; i < linear->n_instrs; i++) {
    const TinyInstr *load = &linear->instrs[i];
    if (load->op != TINY_INSTR_LOAD)
      continue;
    const TinyInstr *from = &linear->instrs[linear->sources[load->sources]];
    n += from->op == TINY_INSTR_PARAM && from->arg == slot;
  }
  return n;
}

/* All taps of a window become copies, and rows beside each other load once what they have in common. */
static void
test_window (void)
{
  gint64 sizes[][4]
      = { { 3, 20, 3, 1 }, { 2, 33, 3, 2 }, { 5, 7, 3, 1 }, { 2, 18, 4, 1 }, { 2, 16, 5, 1 } };
  for (guint i = 0; i < 2 * G_N_ELEMENTS (sizes); i++) {
    const gint64 *s = sizes[i / 2];
    BUILD ();
    check_everywhere (b, build_depthwise (b, s[0], s[1], s[2], s[3], i % 2 == 1));
  }
  for (gint64 stride = 1; stride <= 2; stride++) {
    BUILD ();
    TinyTarget target = vector_target ();
    gboolean is_last = stride > 1;
    gint64 n = 0, n_vectors = is_last ? 1 : 4;
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyLinearProgram) program = tiny_codegen_compile (
        b->graph, build_depthwise (b, 64, 56 * stride, 3, stride, is_last), &target, NULL, 0,
        &error);
    g_assert_no_error (error);
    g_test_message ("%s", program->opts);
    g_assert_nonnull (strstr (program->opts, "unroll(3,3) unroll(4,3)"));
    const char *copies = strstr (program->opts, "upcast(1,");
    if (copies != NULL)
      n = g_ascii_strtoll (strchr (copies, ',') + 1, NULL, 10);
    g_assert_cmpint (n, >=, 3);
    g_assert_cmpuint (count_loads (&program->linear, 1), ==,
                      n_vectors * 3 * ((n - 1) * stride + 3));
  }
}

/* A tile whose rows have conditions at their ends goes along such a row, not along the batch, and has the steps along
 * it as copies: what cannot be read is not loaded, what can be is loaded without a condition for the column. */
static void
test_conditions (void)
{
  for (guint i = 0; i < 2; i++) {
    BUILD ();
    check_everywhere (b, build_gated (b, 2, 3, 18, 5 + 4 * i));
  }
  BUILD ();
  TinyTarget target = vector_target ();
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyLinearProgram) program = tiny_codegen_compile (
      b->graph, build_gated (b, 8, 512, 512, 7), &target, NULL, 0, &error);
  g_assert_no_error (error);
  g_test_message ("%s", program->opts);
  g_assert_nonnull (strstr (program->opts, "upcast(2,7)"));
  g_assert_nonnull (strstr (program->opts, "unroll(5,3)"));
  g_assert_cmpuint (count_loads (&program->linear, 1), ==, 7);
}

/* Results up to each position of blocks of @n, for @columns columns; with @scales each block has a factor. */
static TinyNode *
scan_blocks (Build *b, TinyOp op, gint64 n_blocks, gint64 n, gint64 columns, gboolean scales)
{
  TinyNode *i = build_range (b, n_blocks), *j = build_range (b, n),
           *column = build_range (b, columns), *k = build_range (b, n);
  TinyNode *at = build_op (b, TINY_OP_ADD, j, k);
  TinyNode *gate = build_op (b, TINY_OP_CMPLT, build_number (b, n - 2), at);
  TinyNode *row = build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_ADD, INDEX (b, i, j), k),
                            build_number (b, 1 - n));
  TinyNode *index = build_op (
      b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, row, build_number (b, columns)), column);
  TinyNode *x
      = build_load (b, build_param (b, TINY_DTYPE_F32, 1, n_blocks * n * columns), index, gate);
  if (scales)
    x = build_op (b, TINY_OP_MUL, x,
                  build_load (b, build_param (b, TINY_DTYPE_F32, 2, n_blocks), i, NULL));
  return build_sink (
      b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, n_blocks * n * columns),
                      INDEX (b, i, j, column), build_reduce (b, op, x, 1, &k), NULL));
}

static guint
count_instrs (Build *b, TinyNode *sink, TinyInstrOp op)
{
  TinyTarget target = vector_target ();
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (b->graph, sink, &target, NULL, 0, &error);
  g_assert_no_error (error);
  g_test_message ("%s", program->opts);
  guint n = 0;
  for (guint32 i = 0; i < program->linear.n_instrs; i++)
    n += program->linear.instrs[i].op == op;
  return n;
}

/* The loop over a short window is gone. Blocks beside each other share its conditions; windows that move on along an
 * axis other than the vectors' read each of their elements once. */
static void
test_windows (void)
{
  const gint64 sizes[][3] = { { 64, 8, 1 }, { 5, 8, 1 }, { 3, 16, 1 }, { 1, 13, 1 },
                              { 4, 8, 40 }, { 3, 7, 5 }, { 2, 20, 1 } };
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    BUILD ();
    check_everywhere (b, scan_blocks (b, i % 2 == 0 ? TINY_OP_ADD : TINY_OP_MAX, sizes[i][0],
                                      sizes[i][1], sizes[i][2], i % 3 == 0));
  }
  BUILD ();
  TinyNode *rows = scan_blocks (b, TINY_OP_ADD, 4096, 8, 1, FALSE);
  TinyNode *columns = scan_blocks (b, TINY_OP_ADD, 64, 8, 2048, FALSE);
  TinyNode *large = scan_blocks (b, TINY_OP_ADD, 64, 32, 2048, FALSE);
  TinyNode *scaled = scan_blocks (b, TINY_OP_ADD, 4096, 8, 1, TRUE);
  g_assert_cmpuint (count_instrs (b, rows, TINY_INSTR_RANGE), ==, 1);
  g_assert_cmpuint (count_instrs (b, scaled, TINY_INSTR_RANGE), ==, 1);
  g_assert_cmpuint (count_instrs (b, rows, TINY_INSTR_CMPLT), <=, 8);
  g_assert_cmpuint (count_instrs (b, rows, TINY_INSTR_LOAD), ==, 4 * 8);
  g_assert_cmpuint (count_instrs (b, columns, TINY_INSTR_LOAD), ==, 8);
  g_assert_cmpuint (count_instrs (b, columns, TINY_INSTR_STORE), ==, 8);
  g_assert_cmpuint (count_instrs (b, columns, TINY_INSTR_CMPLT), ==, 0);
  g_autofree char *opts = choose (b, large);
  g_assert_null (strstr (opts, "unroll"));
}

/* The sums of rows of @n numbers. */
static char *
choose_short_sums (gint64 n)
{
  BUILD ();
  TinyNode *i = build_range (b, 100), *k = build_range (b, n);
  TinyNode *x
      = build_load (b, build_param (b, TINY_DTYPE_F32, 1, 100 * n), INDEX (b, i, k), NULL);
  TinyNode *sink = build_sink (b, build_store (b, build_param (b, TINY_DTYPE_F32, 0, 100), i,
                                               build_reduce (b, TINY_OP_ADD, x, 1, &k), NULL));
  check_everywhere (b, sink);
  return choose (b, sink);
}

/* Short rows that are added up are read as vectors, not one number after the other. */
static void
test_short_sums (void)
{
  g_autofree char *four = choose_short_sums (4), *eight = choose_short_sums (8),
                  *many = choose_short_sums (32), *uneven = choose_short_sums (7);
  g_assert_nonnull (strstr (four, "lanes(1,4)"));
  g_assert_nonnull (strstr (eight, "lanes(1,8)"));
  g_assert_nonnull (strstr (many, "lanes(1,16)"));
  g_assert_null (strstr (uneven, "lanes(1"));
}

/* Rows that taps have in common are counted once: they stay in the cache, and few registers go to rows, not to columns
 * as where rows come from memory. */
static void
test_shared_rows (void)
{
  BUILD ();
  TinyTarget target = vector_target ();
  target.vector_bits = 256;
  target.max_lanes = 8;
  target.n_vector_registers = 16;
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyLinearProgram) program = tiny_codegen_compile (
      b->graph, build_gated (b, 1, 256, 256, 14), &target, NULL, 0, &error);
  g_assert_no_error (error);
  g_test_message ("%s", program->opts);
  g_assert_nonnull (strstr (program->opts, "upcast(1,14)"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/codegen/heuristic/in-place", test_in_place);
  g_test_add_func ("/codegen/heuristic/dense", test_dense);
  g_test_add_func ("/codegen/heuristic/streaming-rows", test_streaming_rows);
  g_test_add_func ("/codegen/heuristic/broadcasts", test_broadcasts);
  g_test_add_func ("/codegen/heuristic/two-products", test_two_products);
  g_test_add_func ("/codegen/heuristic/many-stores", test_many_stores);
  g_test_add_func ("/codegen/heuristic/copies", test_copies);
  g_test_add_func ("/codegen/heuristic/short-rows", test_short_rows);
  g_test_add_func ("/codegen/heuristic/limited", test_limited);
  g_test_add_func ("/codegen/heuristic/turned", test_turned);
  g_test_add_func ("/codegen/heuristic/turned-weights", test_turned_weights);
  g_test_add_func ("/codegen/heuristic/window", test_window);
  g_test_add_func ("/codegen/heuristic/conditions", test_conditions);
  g_test_add_func ("/codegen/heuristic/windows", test_windows);
  g_test_add_func ("/codegen/heuristic/short-sums", test_short_sums);
  g_test_add_func ("/codegen/heuristic/shared-rows", test_shared_rows);
  return g_test_run ();
}
