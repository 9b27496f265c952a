/* SPDX-License-Identifier: MIT
 *
 * Proves that what is kept for a row lies in the output where nobody can tell, and stays in local
 * memory where somebody could: an element is read after it was overwritten, another grid point or
 * another reader sees the output, it is of another dtype or not wholly written, or the kernel is
 * larger than the cache. What is computed is right every time. */
#include "kernels.h"

enum { N_ROWS = 12, GAP = 32 };

typedef enum {
  PLAIN,    /* out[i, j] = l[j] / sum of l */
  BACKWARD, /* out[i, j] = l[n - 1 - j] / sum of l */
  BOTH,     /* out[i, j] = (l[j] + l[n - 1 - j]) / sum of l */
  TWO,      /* PLAIN, and other[i, j] = l[j] */
  LATER,    /* PLAIN, and then other[i] = sum of l */
  ADDS,     /* out[i, j] = out[i, j] + l[j] / sum of l */
  TURNED,   /* out[j, i] = l[j] / sum of l */
  OTHER,    /* PLAIN, but l is of f64 */
} Shape;

typedef struct {
  const char *name;
  Shape shape;
  gint64 n, gap;   /* elements of a row; between rows of the output */
  guint64 cache;   /* of the target */
  gboolean places; /* when optimised */
} PlaceRow;

static const PlaceRow rows[] = {
  { "plain", PLAIN, 512, 0, 1 << 20, TRUE },
  { "gap", PLAIN, 512, GAP, 1 << 20, TRUE },
  { "short", PLAIN, 6, 0, 1 << 20, TRUE },
  { "odd", PLAIN, 515, 0, 1 << 20, TRUE },
  { "two-outputs", TWO, 512, 0, 1 << 20, TRUE },
  { "large", PLAIN, 512, 0, 1 << 10, FALSE },
  { "unknown", PLAIN, 512, 0, 0, FALSE },
  { "backward", BACKWARD, 512, 0, 1 << 20, FALSE },
  { "both-ends", BOTH, 512, 0, 1 << 20, FALSE },
  { "later", LATER, 512, 0, 1 << 20, FALSE },
  { "adds", ADDS, 512, 0, 1 << 20, FALSE },
  { "turned", TURNED, 512, 0, 1 << 20, FALSE },
  { "other-dtype", OTHER, 512, 0, 1 << 20, FALSE },
};

static TinyNode *
build_kernel (Build *b, const PlaceRow *row)
{
  TinyGraph *graph = b->graph;
  const gint64 n = row->n, pitch = n + row->gap;
  TinyDType dtype = row->shape == OTHER ? TINY_DTYPE_F64 : TINY_DTYPE_F32;
  TinyNode *i = build_range (b, N_ROWS), *j = build_range (b, n), *k = build_range (b, n);
  TinyNode *fill = build_range (b, n);
  TinyNode *in = build_param (b, TINY_DTYPE_F32, 1, N_ROWS * n);
  TinyNode *out = build_param (b, TINY_DTYPE_F32, 0, N_ROWS * pitch);
  TinyNode *local = tiny_node_new (graph, TINY_OP_LOCAL, dtype, 1, 1, &i, 0,
                                   tiny_graph_ints (graph, &n, 1), NULL);
  TinyNode *x = build_load (b, in, INDEX (b, i, fill), NULL);
  TinyNode *square = build_op (b, TINY_OP_MUL, x, x);
  TinyNode *last = build_number (b, n - 1), *minus = build_number (b, -1);
  TinyNode *back = build_op (b, TINY_OP_ADD, last, build_op (b, TINY_OP_MUL, j, minus));
  TinyNode *here = build_load (b, local, j, NULL), *there = build_load (b, local, back, NULL);
  TinyNode *sum = build_reduce (b, TINY_OP_ADD, build_load (b, local, k, NULL), 1, &k);
  TinyNode *value = row->shape == BACKWARD ? there
                    : row->shape == BOTH   ? build_op (b, TINY_OP_ADD, here, there)
                                           : here;
  value = build_op (b, TINY_OP_MUL, value, tiny_node_unary (graph, TINY_OP_RECIP, sum));
  if (row->shape == OTHER)
    value = tiny_node_cast (graph, value, TINY_DTYPE_F32);
  TinyNode *base = build_op (b, TINY_OP_MUL, i, build_number (b, pitch));
  TinyNode *at = row->shape == TURNED ? INDEX (b, j, i) : build_op (b, TINY_OP_ADD, base, j);
  if (row->shape == ADDS)
    value = build_op (b, TINY_OP_ADD, build_load (b, out, at, NULL), value);
  TinyNode *stores[3]
      = { build_store (b, local, fill, tiny_node_cast (graph, square, dtype), NULL),
          build_store (b, out, at, value, NULL) };
  if (row->shape == TWO || row->shape == LATER) {
    TinyNode *other = build_param (b, TINY_DTYPE_F32, 2, N_ROWS * n), *m = build_range (b, n);
    TinyNode *again = build_reduce (b, TINY_OP_MAX, build_load (b, local, m, NULL), 1, &m);
    stores[2] = row->shape == TWO ? build_store (b, other, INDEX (b, i, j), here, NULL)
                                  : build_store (b, other, i, again, NULL);
  }
  return tiny_node_sink (graph, stores[2] == NULL ? 2 : 3, stores, "rows");
}

static gboolean
has_local (TinyGraph *graph, TinyNode *sink, const TinyTarget *target, const char *opts_text)
{
  g_autoptr (GError) error = NULL;
  guint n_opts;
  g_autofree TinyOpt *opts = tiny_opts_from_string (opts_text, &n_opts, &error);
  g_autoptr (TinyLinearProgram) program
      = tiny_codegen_compile (graph, sink, target, opts, n_opts, &error);
  g_assert_no_error (error);
  gboolean found = FALSE;
  for (guint i = 0; i < program->linear.n_instrs; i++)
    found = found || program->linear.instrs[i].op == TINY_INSTR_LOCAL;
  return found;
}

/* Lists of optimisations; the last pads rows whose length is no multiple of 8: blocks of the padded
 * output are masked or overlap, and what overlaps would be divided twice. */
static void
test_place (gconstpointer data)
{
  static const char *const opts[]
      = { "grid(0,0)", "lanes(1,4) upcast(1,2) lanes(2,4) lanes(3,4) grid(0,0)",
          "pad(1,16) lanes(1,16) grid(0,0)" };
  const PlaceRow *row = data;
  TinyTarget target = vector_target ();
  target.cache_bytes[2] = row->cache;
  BUILD ();
  TinyNode *sink = build_kernel (b, row);
  g_free (check_kernel (b, sink, &target, NULL));
  g_free (check_kernel (b, sink, &target, ""));
  for (guint i = 0; i < G_N_ELEMENTS (opts); i++) {
    if (i == (row->n % 8 == 0 ? 2 : 1))
      continue;
    g_free (check_kernel (b, sink, &target, opts[i]));
    g_assert_cmpint (has_local (graph, sink, &target, opts[i]), !=, row->places && i < 2);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *path = g_strdup_printf ("/codegen/place/%s", rows[i].name);
    g_test_add_data_func (path, &rows[i], test_place);
  }
  return g_test_run ();
}
