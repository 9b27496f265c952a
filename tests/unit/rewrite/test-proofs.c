/* SPDX-License-Identifier: MIT
 *
 * test-proofs.c: proves each row of each table on random and boundary values.
 *
 * For every row and every dtype that it admits: what it matches is filled with random expressions
 * until it fires, and then both sides must have the same value, to the bit, under several
 * assignments. A row that never fires is a failure, as is a text row that does not fire on one of
 * its dtypes. Where the left side has no specified value, any right side will do. */
#include "expressions.h"
#include "ir/tiny-check.h"
#include "rewrite/tiny-rule-text.h"
#include "rewrite/tiny-simplify.h"

enum { N_INSTANCES = 60, N_ASSIGNMENTS = 6, MAX_TRIES = 6000, LEAST_CHECKS = 60 };

typedef struct {
  Maker maker;
  TinyPattern pattern;
  TinyNode *bound[26];
} Instance;

static gboolean
has_reduce (const TinyPattern *p)
{
  for (guint i = 0; i < p->n; i++)
    if (p->parts[i].kind == TINY_PART_OP && p->parts[i].op == TINY_OP_REDUCE)
      return TRUE;
  return FALSE;
}

static TinyDType
pick_dtype (Instance *self, guint32 mask)
{
  for (guint i = 0; i < 200; i++) {
    TinyDType dtype = g_rand_int_range (self->maker.random, 1, TINY_N_DTYPES);
    if (mask >> dtype & 1)
      return dtype;
  }
  return TINY_DTYPE_VOID;
}

static gint
roll (Instance *self, gint n)
{
  return g_rand_int_range (self->maker.random, 0, n);
}

/* The dtype that operands of part @i must have because a letter under it is bound, or a literal
 * wants a float. */
static guint32
get_wanted (Instance *self, guint i)
{
  const TinyPart *part = &self->pattern.parts[i];
  if (part->var >= 0 && self->bound[part->var] != NULL)
    return 1u << self->bound[part->var]->dtype;
  if (part->kind == TINY_PART_LITERAL)
    return part->is_float ? tiny_dtype_class_from_string ("float", 5)
                          : tiny_dtype_class_from_string ("bits", 4);
  if (part->kind != TINY_PART_OP)
    return part->dtypes;
  if (tiny_op_infos[part->op].op_class == TINY_OP_CLASS_COMPARE)
    return 1u << TINY_DTYPE_BOOL;
  return part->dtypes;
}

static TinyNode *fill (Instance *self, guint i, TinyDType dtype, guint lanes);

static TinyOp
pick_op (Instance *self, guint n_sources, TinyDType dtype)
{
  for (guint t = 0; t < 100; t++) {
    TinyOp op = (TinyOp) roll (self, TINY_N_OPS);
    if (tiny_op_is_elementwise (op) && tiny_op_infos[op].least == (gint) n_sources
        && (tiny_op_infos[op].op_class != TINY_OP_CLASS_COMPARE || dtype == TINY_DTYPE_BOOL))
      return op;
  }
  return TINY_N_OPS;
}

static TinyNode *
fill_memory (Instance *self, const TinyPart *part, TinyDType dtype, guint lanes)
{
  TinyGraph *graph = self->maker.graph;
  struct {
    TinyInts ints;
    gint64 v[1];
  } shape = { { 1 }, { PARAM_SIZE } };
  TinyDType of = dtype == TINY_DTYPE_VOID ? TINY_DTYPE_F32 : dtype;
  TinyNode *s[4]
      = { tiny_node_new (graph, TINY_OP_PARAM, of, 1, 0, NULL, 0, &shape.ints, NULL) };
  guint n = part->open ? (roll (self, 2) ? 2 : 4) : part->n_sources;
  gboolean is_load = part->op == TINY_OP_LOAD;
  for (guint j = 1; j < n; j++) {
    gboolean is_gate = j == (is_load ? 2 : 3), is_index = j == 1;
    TinyDType wants = is_gate ? TINY_DTYPE_BOOL : is_index ? TINY_DTYPE_INDEX : of;
    guint width = is_index ? 1 : lanes;
    if (j < part->n_sources)
      s[j] = fill (self, part->sources[j], wants, width);
    else if (is_load && j == 3 && roll (self, 2))
      s[j] = tiny_node_new (graph, TINY_OP_CONST, of, width, 0, NULL, 0, NULL, NULL);
    else
      s[j] = random_expression (&self->maker, wants, width);
    if (s[j] == NULL)
      return NULL;
  }
  return tiny_node_new (graph, part->op, dtype, is_load ? lanes : 1, n, s, 0, NULL, NULL);
}

static TinyNode *
fill_reduce (Instance *self, const TinyPart *part, TinyDType dtype, guint lanes)
{
  TinyGraph *graph = self->maker.graph;
  TinyNode *s[6] = { part->n_sources > 0 ? fill (self, part->sources[0], dtype, lanes)
                                         : random_expression (&self->maker, dtype, lanes) };
  guint n = 1;
  if (s[0] == NULL)
    return NULL;
  for (gint more = 1 + roll (self, 2); more > 0; more--) {
    TinyNode *range = roll (self, 6) == 0 ? tiny_node_const_index (graph, 0)
                                          : self->maker.ranges[roll (self, 3)];
    gboolean seen = FALSE;
    for (guint j = 1; j < n; j++)
      seen = seen || s[j] == range;
    if (!seen)
      s[n++] = range;
  }
  TinyOp ops[] = { TINY_OP_ADD, TINY_OP_MAX, TINY_OP_MUL };
  return tiny_node_new (graph, TINY_OP_REDUCE, dtype, lanes, n, s,
                        part->arg >= 0 ? part->arg : (gint64) ops[roll (self, 3)], NULL, NULL);
}

static TinyNode *
fill_vector (Instance *self, const TinyPart *part, TinyDType dtype, guint lanes)
{
  TinyNode *s[MAX_LANES];
  guint n = lanes == 1 || roll (self, 2) ? 1 : lanes;
  for (guint j = 0; j < n; j++) {
    s[j] = j < part->n_sources       ? fill (self, part->sources[j], dtype, 1)
           : j > 0 && roll (self, 4) ? s[j - 1]
                                     : random_expression (&self->maker, dtype, 1);
    if (s[j] == NULL)
      return NULL;
  }
  return tiny_node_new (self->maker.graph, TINY_OP_VECTOR, dtype, lanes, n, s, 0, NULL, NULL);
}

static TinyNode *
fill_op (Instance *self, guint i, TinyDType dtype, guint lanes)
{
  const TinyPart *part = &self->pattern.parts[i];
  TinyOp op
      = part->op == TINY_N_OPS ? pick_op (self, part->n_sources, dtype) : (TinyOp) part->op;
  TinyNode *s[TINY_RULE_MAX_SOURCES];
  gint64 arg = 0;
  if (op == TINY_N_OPS)
    return NULL;
  if (op == TINY_OP_LOAD || op == TINY_OP_STORE)
    return fill_memory (self, part, dtype, lanes);
  if (op == TINY_OP_REDUCE)
    return fill_reduce (self, part, dtype, lanes);
  if (op == TINY_OP_VECTOR)
    return fill_vector (self, part, dtype, lanes);
  gboolean compares = tiny_op_infos[op].op_class == TINY_OP_CLASS_COMPARE;
  TinyDType inner = dtype;
  if (compares && dtype != TINY_DTYPE_BOOL)
    return NULL;
  if (compares || op == TINY_OP_CAST || op == TINY_OP_BITCAST) {
    guint32 mask = compares ? part->dtypes : G_MAXUINT32;
    for (guint j = 0; j < part->n_sources; j++)
      mask &= get_wanted (self, part->sources[j]);
    inner = pick_dtype (self, mask);
    if (!compares && roll (self, 3) == 0 && (mask >> dtype & 1))
      inner = dtype;
  }
  if (inner == TINY_DTYPE_VOID
      || (tiny_op_is_elementwise (op) && !tiny_op_takes_dtype (op, inner)))
    return NULL;
  if (op == TINY_OP_EXTRACT) {
    lanes = MAX_LANES;
    arg = roll (self, MAX_LANES);
  }
  if ((op == TINY_OP_RANGE || op == TINY_OP_LANES) && dtype != TINY_DTYPE_INDEX)
    return NULL;
  if (op == TINY_OP_RANGE)
    lanes = 1;
  if (op == TINY_OP_RANGE)
    s[0] = tiny_node_const_index (self->maker.graph, 1);
  for (guint j = 0; j < part->n_sources && op != TINY_OP_RANGE; j++) {
    gboolean is_gate = op == TINY_OP_WHERE && j == 0;
    s[j] = fill (self, part->sources[j], is_gate ? TINY_DTYPE_BOOL : inner, lanes);
    if (s[j] == NULL)
      return NULL;
  }
  return tiny_node_new (self->maker.graph, op, dtype, op == TINY_OP_EXTRACT ? 1 : lanes,
                        part->n_sources, s, arg, NULL, NULL);
}

/* A node that part @i matches, or NULL when the dtype does not suit it. */
static TinyNode *
fill (Instance *self, guint i, TinyDType dtype, guint lanes)
{
  const TinyPart *part = &self->pattern.parts[i];
  TinyGraph *graph = self->maker.graph;
  gboolean is_float = tiny_dtype_is_float (dtype);
  TinyNode **bound = part->var >= 0 ? &self->bound[part->var] : NULL;
  if (bound != NULL && *bound != NULL)
    return (*bound)->dtype == dtype && (*bound)->lanes == lanes ? *bound : NULL;
  switch ((TinyPartKind) part->kind) {
  case TINY_PART_VAR:
  case TINY_PART_CONST:
    if (!(part->dtypes >> dtype & 1))
      return NULL;
    *bound = part->kind == TINY_PART_CONST ? random_const (&self->maker, dtype, lanes)
                                           : random_expression (&self->maker, dtype, lanes);
    return *bound;
  case TINY_PART_LITERAL: {
    gint64 value = part->value;
    if (part->is_float != is_float)
      return NULL;
    TinyNode *scalar = is_float ? NULL : tiny_node_const_int (graph, dtype, value);
    return tiny_node_new (graph, TINY_OP_CONST, dtype, lanes, 0, NULL,
                          is_float ? value : scalar->arg, NULL, NULL);
  }
  default:
    return fill_op (self, i, dtype, lanes);
  }
}

static gboolean
is_equal (const Value *a, const Value *b, guint lanes)
{
  for (guint i = 0; i < lanes; i++)
    if (a->ok[i] && (!b->ok[i] || a->v[i] != b->v[i]))
      return FALSE;
  return TRUE;
}

static guint
count_ok (const Value *a, guint lanes)
{
  guint n = 0;
  for (guint i = 0; i < lanes; i++)
    n += a->ok[i];
  return n;
}

/* One random instance: how many values were compared, or -1 when they differ (said why). */
static gint
try_instance (const TinyRuleSet *set,
              const TinyRule *rule,
              const TinyPattern *pattern,
              TinyDType dtype,
              GRand *random,
              gboolean *out_fired)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  Instance self = { .pattern = *pattern };
  gint checks = 0;
  gboolean compares = pattern->parts[0].op < TINY_N_OPS
                      && tiny_op_infos[pattern->parts[0].op].op_class == TINY_OP_CLASS_COMPARE;
  *out_fired = FALSE;
  maker_init (&self.maker, graph, random);
  self.maker.exact = has_reduce (pattern);
  /* The dtype given is that of the operands of a comparison. */
  if (compares)
    self.pattern.parts[0].dtypes = 1u << dtype;
  guint lanes = pattern->parts[0].op == TINY_OP_VECTOR
                        || pattern->parts[0].op == TINY_OP_EXTRACT || dtype == TINY_DTYPE_VOID
                        || g_rand_int_range (random, 0, 4) != 0
                    ? 1
                    : MAX_LANES;
  if (pattern->parts[0].op == TINY_OP_VECTOR && g_rand_boolean (random))
    lanes = MAX_LANES;
  TinyNode *node = fill (&self, 0, compares ? TINY_DTYPE_BOOL : dtype, lanes);
  if (node == NULL)
    return 0;
  TinyNode *result = tiny_rule_set_apply (set, graph, node, NULL, NULL);
  if (result == NULL)
    return 0;
  *out_fired = TRUE;
  for (guint k = 0; k < N_ASSIGNMENTS; k++) {
    Assignment assignment;
    assignment_init (&assignment, random);
    assignment.exact = self.maker.exact;
    Value a = evaluate (&assignment, node), b = evaluate (&assignment, result);
    assignment_clear (&assignment);
    guint width = MAX (lanes, node->lanes);
    checks += (gint) count_ok (&a, width);
    if (is_equal (&a, &b, width))
      continue;
    g_autofree char *x = tiny_node_to_expression (node, 9),
                    *y = tiny_node_to_expression (result, 9);
    g_test_message ("%s: %s -> %s: %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT "%s", rule->name,
                    x, y, a.v[0], b.v[0], b.ok[0] ? "" : " (unspecified)");
    return -1;
  }
  return checks;
}

/* Sums of these formats are not exact even of small whole numbers. */
static gboolean
is_too_coarse (const TinyPattern *pattern, TinyDType dtype)
{
  return has_reduce (pattern) && tiny_dtype_is_float (dtype)
         && tiny_dtype_infos[dtype].mantissa_bits < 7;
}

static guint32
get_root_dtypes (const TinyPattern *pattern)
{
  const TinyPart *root = &pattern->parts[0];
  guint32 all = (1u << TINY_N_DTYPES) - 1;
  if (root->op == TINY_OP_STORE)
    return 1u << TINY_DTYPE_VOID;
  return root->dtypes & all & ~(1u << TINY_DTYPE_VOID);
}

/* FALSE, with a message, when @rule is not shown to hold. */
static gboolean
prove (const TinyRuleTable *table, const TinyRule *rule, GRand *random)
{
  const TinyRuleTable alone = { table->name, rule, 1 }, *tables[] = { &alone };
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyRuleSet) set = tiny_rule_set_new (tables, 1, &error);
  TinyPattern pattern;
  g_assert_no_error (error);
  g_assert_null (tiny_pattern_parse (rule->match, FALSE, &pattern));
  guint32 dtypes = get_root_dtypes (&pattern);
  guint total = 0, max_tries = (dtypes & (dtypes - 1)) == 0 ? 20 * MAX_TRIES : MAX_TRIES;
  for (TinyDType dtype = 0; dtype < TINY_N_DTYPES; dtype++) {
    if (!(dtypes >> dtype & 1) || is_too_coarse (&pattern, dtype))
      continue;
    guint fired = 0;
    for (guint i = 0; i < max_tries && fired < N_INSTANCES; i++) {
      gboolean did;
      gint checks = try_instance (set, rule, &pattern, dtype, random, &did);
      if (checks < 0)
        return FALSE;
      fired += did && checks > 0;
      total += (guint) checks;
      if (i == max_tries / 2 && fired == 0)
        break; /* an op that this dtype does not have, or a guard */
    }
  }
  if (total < LEAST_CHECKS) {
    g_test_message ("%s/%s: only %u values compared", table->name, rule->name, total);
    return FALSE;
  }
  return TRUE;
}

static void
test_table (gconstpointer data)
{
  const TinyRuleTable *table = data;
  g_autoptr (GRand) random = g_rand_new_with_seed ((guint32) g_test_rand_int ());
  for (guint i = 0; i < table->n_rules; i++)
    if (!prove (table, &table->rules[i], random))
      g_test_fail ();
}

/* ---- the machine itself ---- */
static const TinyRule wrong_rows[] = {
  { "wrong-float-zero", "add.float(x, 0.0)", "x" },
  { "wrong-product", "mul.float(x, 0.0)", "0.0" },
  { "wrong-not", "cmpne.bool(cmplt.float(x, y), true)", "cmplt(y, x)" },
  { "wrong-division", "idiv.int(idiv(x, #a), #b)", "idiv(x, {a*b})" },
  { "wrong-quotient", "floordiv.index(add(x, #a), #a)", "add(x, 1)" },
  { "wrong-never", "add.index(x, #a)", "x", .guard = NULL },
  { "wrong-order", "where.any(c, x, y)", "where(c, y, x)" },
};

/* Rows that do not hold are found out. */
static void
test_wrong (void)
{
  const TinyRuleTable table = { "wrong", wrong_rows, G_N_ELEMENTS (wrong_rows) };
  g_autoptr (GRand) random = g_rand_new_with_seed (1);
  for (guint i = 0; i < table.n_rules; i++)
    g_assert_false (prove (&table, &table.rules[i], random));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  for (guint i = 0; tiny_rule_tables[i] != NULL; i++) {
    g_autofree char *path = g_strdup_printf ("/rewrite/proofs/%s", tiny_rule_tables[i]->name);
    g_test_add_data_func (path, tiny_rule_tables[i], test_table);
  }
  g_test_add_func ("/rewrite/proofs/wrong-rows", test_wrong);
  return g_test_run ();
}
