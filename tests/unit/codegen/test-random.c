/* SPDX-License-Identifier: MIT
 *
 * test-random.c: random kernels under random optimisations compute what their IR says.
 *
 * CODEGEN_SEED and CODEGEN_COUNT choose the kernels; a failure names the seed. */
#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "ir/tiny-text.h"
#include "kernels.h"

typedef struct {
  Build build;
  GRand *rand;
  TinyDType dtype;
  TinyNode *ranges[8]; /* those in scope */
  guint n;
  gint64 combinations;
  TinyNode *local; /* memory that the first store fills, or NULL */
} Random;

static gint
pick (Random *self, gint n)
{
  return g_rand_int_range (self->rand, 0, n);
}

static TinyNode *
new_range (Random *self)
{
  static const gint64 extents[] = { 1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 32, 33, 48 };
  gint64 extent;
  do
    extent = extents[pick (self, G_N_ELEMENTS (extents))];
  while (extent > 2 && self->combinations * extent > 3000);
  self->combinations *= extent;
  TinyNode *range = build_range (&self->build, extent);
  self->ranges[self->n++] = range;
  return range;
}

static TinyNode *
affine (Random *self, TinyNode *range, gint64 scale, gint64 offset)
{
  Build *b = &self->build;
  TinyNode *scaled = build_op (b, TINY_OP_MUL, range, build_number (b, scale));
  return build_op (b, TINY_OP_ADD, scaled, build_number (b, offset));
}

/* An address over some of the ranges in scope; *n_elements is the buffer it needs. */
static TinyNode *
random_index (Random *self, gint64 *n_elements, TinyNode **gate)
{
  Build *b = &self->build;
  TinyNode *index = build_number (b, 0);
  gint64 size = 1;
  guint start = pick (self, self->n), step = pick (self, 2) ? 1 : self->n - 1;
  guint n = 1 + pick (self, self->n);
  *gate = NULL;
  for (guint i = 0; i < n; i++) {
    TinyNode *range = self->ranges[(start + i * MAX (step, 1)) % self->n], *place = range;
    gint64 extent = tiny_range_get_extent (range), own = extent;
    switch (pick (self, 8)) {
    case 0: /* backwards */
      place = affine (self, range, -1, extent - 1);
      break;
    case 1: /* every other, from the second on */
      place = affine (self, range, 2, 1);
      own = 2 * extent;
      break;
    case 2: { /* a window that sticks out at both ends */
      place = affine (self, range, 1, -2);
      own = MAX (extent - 3, 1);
      TinyNode *in
          = build_op (b, TINY_OP_AND, build_op (b, TINY_OP_CMPLT, build_number (b, -1), place),
                      build_op (b, TINY_OP_CMPLT, place, build_number (b, own)));
      *gate = *gate ? build_op (b, TINY_OP_AND, *gate, in) : in;
      break;
    }
    case 3: { /* split in two and joined the other way round */
      gint64 d = 1 + pick (self, 6);
      TinyNode *high = build_op (b, TINY_OP_FLOORDIV, range, build_number (b, d));
      TinyNode *low = build_op (b, TINY_OP_FLOORMOD, range, build_number (b, d));
      gint64 rows = (extent + d - 1) / d;
      place = build_op (b, TINY_OP_ADD, build_op (b, TINY_OP_MUL, low, build_number (b, rows)),
                        high);
      own = rows * d;
      break;
    }
    default:
      break;
    }
    index = build_op (b, TINY_OP_MUL, index, build_number (b, own));
    index = build_op (b, TINY_OP_ADD, index, place);
    size *= own;
  }
  *n_elements = size;
  return index;
}

/* Any element of the local memory. */
static TinyNode *
random_local_load (Random *self)
{
  Build *b = &self->build;
  gint64 n = self->local->ints->v[0];
  TinyNode *index = build_number (b, pick (self, (gint) n));
  for (guint i = 0; i < self->n; i++)
    if (pick (self, 2))
      index = build_op (b, TINY_OP_ADD, index,
                        affine (self, self->ranges[i], 1 + pick (self, 3), 0));
  index = build_op (b, TINY_OP_FLOORMOD, index, build_number (b, n));
  return build_load (b, self->local, index, NULL);
}

static TinyNode *
random_load (Random *self)
{
  Build *b = &self->build;
  gint64 n;
  if (self->local != NULL && pick (self, 3) == 0)
    return random_local_load (self);
  TinyNode *gate, *index = random_index (self, &n, &gate);
  return build_load (b, build_param (b, self->dtype, b->n_params++, n), index, gate);
}

static TinyNode *random_value (Random *self, guint depth);

static TinyNode *
random_reduce (Random *self, guint depth)
{
  static const TinyOp ops[] = { TINY_OP_ADD, TINY_OP_ADD, TINY_OP_MAX, TINY_OP_MUL };
  gint64 combinations = self->combinations;
  TinyNode *ranges[2];
  guint n = 1 + pick (self, 2), before = self->n;
  if (self->n + n > G_N_ELEMENTS (self->ranges))
    return random_load (self);
  for (guint i = 0; i < n; i++)
    ranges[i] = new_range (self);
  TinyNode *value = random_value (self, depth - 1);
  TinyNode *result
      = build_reduce (&self->build, ops[pick (self, G_N_ELEMENTS (ops))], value, n, ranges);
  if (pick (self, 3) == 0) /* a second one over the same ranges, of the first or beside it */
    result = build_op (&self->build, TINY_OP_ADD, result,
                       build_reduce (&self->build, TINY_OP_MAX,
                                     pick (self, 2)
                                         ? value
                                         : build_op (&self->build, TINY_OP_SUB, value, result),
                                     n, ranges));
  self->n = before;
  self->combinations = combinations;
  return result;
}

static TinyNode *
random_value (Random *self, guint depth)
{
  static const TinyOp ops[]
      = { TINY_OP_ADD, TINY_OP_SUB, TINY_OP_MUL, TINY_OP_MUL, TINY_OP_MAX };
  Build *b = &self->build;
  if (depth == 0 || b->n_params >= MAX_PARAMS - 1)
    return random_load (self);
  gint kind = pick (self, 8);
  if (kind < 3)
    return random_reduce (self, depth);
  if (kind == 3) {
    TinyNode *x = random_load (self), *r = self->ranges[pick (self, self->n)];
    TinyNode *gate = build_op (b, TINY_OP_CMPLT, r, build_number (b, pick (self, 20)));
    return tiny_node_where (b->graph, gate, x, tiny_node_cast (b->graph, r, self->dtype));
  }
  TinyNode *x = random_value (self, depth - 1), *y = random_value (self, depth - 1);
  return build_op (b, ops[pick (self, G_N_ELEMENTS (ops))], x, y);
}

/* Fills local memory anew in each round of the loops in scope. */
static TinyNode *
random_local_store (Random *self)
{
  Build *b = &self->build;
  gint64 combinations = self->combinations, n = 1;
  guint before = self->n, n_inner = pick (self, 3);
  for (guint i = 0; i < n_inner; i++)
    n *= tiny_range_get_extent (new_range (self));
  TinyNode *index = build_index (b, n_inner, self->ranges + before);
  TinyNode *value = random_value (self, 2);
  self->local = tiny_node_new (b->graph, TINY_OP_LOCAL, self->dtype, 1, before, self->ranges, 0,
                               tiny_graph_ints (b->graph, &n, 1), NULL);
  self->n = before;
  self->combinations = combinations;
  return build_store (b, self->local, index, value, NULL);
}

static TinyNode *
random_kernel (Random *self)
{
  Build *b = &self->build;
  TinyNode *stores[3];
  guint n_outputs = 1 + pick (self, 3), n_stores = 1 + (pick (self, 4) == 0), n_locals = 0;
  self->combinations = 1;
  b->n_params = n_stores;
  for (guint i = 0; i < n_outputs; i++) {
    new_range (self);
    if (self->local == NULL && pick (self, 6) == 0)
      stores[n_locals++] = random_local_store (self);
  }
  for (guint s = 0; s < n_stores; s++) {
    TinyNode *order[8];
    guint turn = pick (self, 3) == 0 ? pick (self, n_outputs) : 0;
    gint64 n = 1;
    for (guint i = 0; i < n_outputs; i++) {
      order[i] = self->ranges[(i + turn) % n_outputs];
      n *= tiny_range_get_extent (order[i]);
    }
    stores[n_locals + s]
        = build_store (b, build_param (b, self->dtype, s, n), build_index (b, n_outputs, order),
                       random_value (self, 3), NULL);
  }
  return tiny_node_sink (b->graph, n_locals + n_stores, stores, "random");
}

/* A list in which most entries make sense; those that do not apply are left out. */
static char *
random_opts (Random *self, TinyNode *sink, const TinyTarget *target)
{
  g_autoptr (GArray) opts = g_array_new (FALSE, FALSE, sizeof (TinyOpt));
  static const gint64 amounts[] = { 2, 2, 3, 4, 4, 8, 16 };
  for (guint i = 0; i < 8; i++) {
    TinyOpt opt = { pick (self, TINY_N_OPTS), pick (self, 5),
                    amounts[pick (self, G_N_ELEMENTS (amounts))] };
    const TinyOpt *last = opts->len > 0 ? &g_array_index (opts, TinyOpt, opts->len - 1) : NULL;
    if (opt.kind == TINY_OPT_SWAP || opt.kind == TINY_OPT_STAGE)
      opt.amount = pick (self, 4);
    if (last != NULL && last->kind == TINY_OPT_PAD && pick (self, 2)) /* a whole block */
      opt = (TinyOpt){ pick (self, 2), last->axis, last->amount };
    g_array_append_val (opts, opt);
    g_autoptr (GError) error = NULL;
    g_autoptr (TinyLinearProgram) program = tiny_codegen_compile (
        self->build.graph, sink, target, (TinyOpt *) opts->data, opts->len, &error);
    if (program == NULL) {
      g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
      g_array_set_size (opts, opts->len - 1);
    }
  }
  return tiny_opts_to_string ((TinyOpt *) opts->data, opts->len);
}

static void
test_random (void)
{
  const char *seed_text = g_getenv ("CODEGEN_SEED"), *count_text = g_getenv ("CODEGEN_COUNT");
  guint seed = seed_text ? (guint) atoi (seed_text) : 1;
  guint count = count_text ? (guint) atoi (count_text) : 250;
  TinyDType dtypes[] = { TINY_DTYPE_F64, TINY_DTYPE_F64, TINY_DTYPE_I32, TINY_DTYPE_I64 };
  TinyTarget targets[] = { scalar_target (), short_target (), vector_target (),
                           narrow_target (), group_target (), tiny_group_target () };
  for (guint i = seed; i < seed + count; i++) {
    Random self = { .rand = g_rand_new_with_seed (i) };
    g_autoptr (TinyGraph) graph = tiny_graph_new ();
    self.build.graph = graph;
    self.dtype = dtypes[i % G_N_ELEMENTS (dtypes)];
    TinyNode *sink = random_kernel (&self);
    TinyTarget target = with_room (&targets[pick (&self, G_N_ELEMENTS (targets))], sink);
    g_test_message ("seed %u", i);
    if (seed_text != NULL && count == 1) {
      g_autofree char *text = tiny_graph_print (graph, sink);
      g_printerr ("%s", text);
    }
    check_everywhere (&self.build, sink);
    for (guint j = 0; j < 4; j++) {
      g_autofree char *opts = random_opts (&self, sink, &target);
      g_free (check_kernel (&self.build, sink, &target, opts));
    }
    g_rand_free (self.rand);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  tiny_env_set_int (TINY_ENV_VERIFY, 1);
  g_test_add_func ("/codegen/random", test_random);
  return g_test_run ();
}
