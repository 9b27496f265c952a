/* SPDX-License-Identifier: MIT
 *
 * tiny-rules.c: compiles tables of rules and finds the one that fires.
 *
 * Each row becomes one form per order of the operands of commutative ops in it, so that matching
 * never backtracks. Forms lie in a bucket by root op, the most specific first. Whether a form can
 * match at all depends on the dtype of the root and the ops of its first two sources: for each of
 * these a bucket has the set of forms that admit it, as bits, and what is tried is the
 * intersection. A node that matches nothing costs a few words of AND. */
#include "rewrite/tiny-rules.h"

#include <string.h>

#include "base/tiny-env.h"
#include "base/tiny-error.h"
#include "base/tiny-stats.h"
#include "ir/tiny-eval.h"
#include "rewrite/tiny-bounds.h"
#include "rewrite/tiny-rewrite.h"
#include "rewrite/tiny-rule-text.h"
#include "rewrite/tiny-simplify.h"

/* One row. */
typedef struct {
  const TinyRule *rule;
  const char *table;
  gboolean has_become;
  TinyPattern become;
  guint64 tries, hits; /* relaxed: racing threads may lose a count */
} Row;

/* One order of the operands of one row. */
typedef struct {
  guint row;
  guint weight;
  TinyPattern pattern;
  guint n_vars;
  guint8 vars[26];
} Form;

typedef struct {
  guint n_forms, n_words;
  Form *forms;
  guint64 *by_dtype;     /* [TINY_N_DTYPES][n_words] */
  guint64 *by_source[2]; /* [TINY_N_OPS + 1][n_words]; the last row: no such source */
} Bucket;

struct TinyRuleSet {
  Row *rows;
  guint n_rows;
  Bucket buckets[TINY_N_OPS];
};

/* ---- compiling ---- */
static guint
weigh (const TinyPattern *p)
{
  static const guint weights[] = { 0, 2, 3, 0, 5 };
  guint total = 0, seen = 0;
  for (guint i = 0; i < p->n; i++) {
    const TinyPart *part = &p->parts[i];
    total += weights[part->kind] + (part->arg >= 0);
    if (part->var >= 0) {
      total += (seen >> part->var & 1) != 0;
      seen |= 1u << part->var;
    }
  }
  return total;
}

static void
add_form (GArray *forms, guint row, const TinyPattern *pattern)
{
  Form form = { .row = row, .weight = weigh (pattern), .pattern = *pattern };
  guint seen = 0;
  for (guint i = 0; i < pattern->n; i++)
    if (pattern->parts[i].var >= 0)
      seen |= 1u << pattern->parts[i].var;
  for (guint8 v = 0; v < 26; v++)
    if (seen >> v & 1)
      form.vars[form.n_vars++] = v;
  g_array_append_val (forms, form);
}

static gboolean
occurs_once (const TinyPattern *p, gint8 var)
{
  guint n = 0;
  for (guint i = 0; i < p->n; i++)
    n += p->parts[i].var == var;
  return n == 1;
}

/* Exchanging parts @i and @j would match the same nodes. Two letters that nothing else speaks of
 * are bound in the order they stand in, once. */
static gboolean
is_same_form (const TinyPattern *p, guint i, guint j)
{
  const TinyPart *a = &p->parts[i], *b = &p->parts[j];
  if (a->kind == TINY_PART_VAR && b->kind == TINY_PART_VAR && a->dtypes == b->dtypes
      && occurs_once (p, a->var) && occurs_once (p, b->var))
    return TRUE;
  return a->kind == b->kind && a->kind != TINY_PART_OP && a->var == b->var
         && a->value == b->value && a->is_float == b->is_float;
}

static void
add_orders (GArray *forms, guint row, TinyPattern *pattern, guint from)
{
  for (guint i = from; i < pattern->n; i++) {
    TinyPart *part = &pattern->parts[i];
    if (part->kind != TINY_PART_OP || !tiny_op_is_commutative (part->op) || part->n_sources != 2
        || is_same_form (pattern, part->sources[0], part->sources[1]))
      continue;
    add_orders (forms, row, pattern, i + 1);
    guint8 swapped = part->sources[0];
    part->sources[0] = part->sources[1];
    part->sources[1] = swapped;
    add_orders (forms, row, pattern, i + 1);
    swapped = part->sources[0];
    part->sources[0] = part->sources[1];
    part->sources[1] = swapped;
    return;
  }
  add_form (forms, row, pattern);
}

static int
compare_forms (gconstpointer a, gconstpointer b)
{
  const Form *x = a, *y = b;
  if (x->weight != y->weight)
    return x->weight > y->weight ? -1 : 1;
  return x->row < y->row ? -1 : x->row > y->row;
}

static gboolean
admits_source (const TinyPattern *p, guint s, guint op)
{
  const TinyPart *root = &p->parts[0];
  if (s >= root->n_sources)
    return root->open || op == TINY_N_OPS;
  if (op == TINY_N_OPS)
    return FALSE;
  const TinyPart *part = &p->parts[root->sources[s]];
  return part->kind == TINY_PART_VAR || (part->kind == TINY_PART_OP && part->op == op)
         || ((part->kind == TINY_PART_CONST || part->kind == TINY_PART_LITERAL)
             && op == TINY_OP_CONST);
}

static void
fill_bucket (Bucket *bucket, TinyOp op, GArray *all)
{
  for (guint i = 0; i < all->len; i++)
    bucket->n_forms += g_array_index (all, Form, i).pattern.parts[0].op == op;
  if (bucket->n_forms == 0)
    return;
  bucket->forms = g_new (Form, bucket->n_forms);
  guint n = 0;
  for (guint i = 0; i < all->len; i++)
    if (g_array_index (all, Form, i).pattern.parts[0].op == op)
      bucket->forms[n++] = g_array_index (all, Form, i);
  qsort (bucket->forms, n, sizeof (Form), compare_forms);
  bucket->n_words = (n + 63) / 64;
  gboolean compares = tiny_op_infos[op].op_class == TINY_OP_CLASS_COMPARE;
  bucket->by_dtype = g_new0 (guint64, TINY_N_DTYPES * bucket->n_words);
  for (guint s = 0; s < 2; s++)
    bucket->by_source[s] = g_new0 (guint64, (TINY_N_OPS + 1) * bucket->n_words);
  for (guint i = 0; i < n; i++) {
    const TinyPattern *p = &bucket->forms[i].pattern;
    guint64 bit = G_GUINT64_CONSTANT (1) << (i % 64);
    for (guint d = 0; d < TINY_N_DTYPES; d++)
      if (compares || (p->parts[0].dtypes >> d & 1))
        bucket->by_dtype[d * bucket->n_words + i / 64] |= bit;
    for (guint s = 0; s < 2; s++)
      for (guint o = 0; o <= TINY_N_OPS; o++)
        if (admits_source (p, s, o))
          bucket->by_source[s][o * bucket->n_words + i / 64] |= bit;
  }
}

/* Variables of the result are bound by the match, and there is one way to make the result. */
static char *
check_row (const TinyRule *rule, const TinyPattern *match, const TinyPattern *become)
{
  if (match->parts[0].kind != TINY_PART_OP)
    return g_strdup ("what it matches is not an op");
  if ((rule->become != NULL) == (rule->build != NULL))
    return g_strdup ("needs either a text or a builder for what it becomes");
  guint bound = 0, used = 0, constants = 0;
  for (guint i = 0; i < match->n; i++)
    if (match->parts[i].var >= 0) {
      bound |= 1u << match->parts[i].var;
      constants |= (guint) (match->parts[i].kind == TINY_PART_CONST) << match->parts[i].var;
    }
  for (guint i = 0; rule->become != NULL && i < become->n; i++)
    if (become->parts[i].var >= 0) {
      used |= 1u << become->parts[i].var;
      if (become->parts[i].kind == TINY_PART_CONST && !(constants >> become->parts[i].var & 1))
        return g_strdup ("computes with what is not bound as a constant");
    }
  return (used & ~bound) != 0 ? g_strdup ("its result uses a letter that is not bound") : NULL;
}

static gboolean
compile_row (Row *row, guint number, GArray *forms, GError **error)
{
  TinyPattern match;
  g_autofree char *wrong = tiny_pattern_parse (row->rule->match, FALSE, &match);
  if (wrong == NULL && row->rule->become != NULL)
    wrong = tiny_pattern_parse (row->rule->become, TRUE, &row->become);
  row->has_become = row->rule->become != NULL;
  if (wrong == NULL)
    wrong = check_row (row->rule, &match, &row->become);
  if (wrong != NULL) {
    g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT, "rule table %s, row %s: %s", row->table,
                 row->rule->name, wrong);
    return FALSE;
  }
  if (match.parts[0].op != TINY_N_OPS) {
    add_orders (forms, number, &match, 0);
    return TRUE;
  }
  for (guint8 op = 0; op < TINY_N_OPS; op++)
    if (tiny_op_is_elementwise (op) && tiny_op_infos[op].least == match.parts[0].n_sources) {
      match.parts[0].op = op;
      add_form (forms, number, &match);
    }
  return TRUE;
}

/* Two unguarded rows with one text would make the result depend on the order of rows. */
static gboolean
check_twins (TinyRuleSet *self, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < self->n_rows; i++) {
    const TinyRule *rule = self->rows[i].rule;
    gboolean plain = rule->guard == NULL && rule->build == NULL;
    if (!g_hash_table_add (names, (gpointer) rule->name)
        || (plain && !g_hash_table_add (seen, (gpointer) rule->match))) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                   "rule table %s, row %s: another row has its name or matches the same",
                   self->rows[i].table, rule->name);
      return FALSE;
    }
  }
  return TRUE;
}

TinyRuleSet *
tiny_rule_set_new (const TinyRuleTable *const *tables, guint n_tables, GError **error)
{
  g_autoptr (TinyRuleSet) self = g_new0 (TinyRuleSet, 1);
  g_autoptr (GArray) forms = g_array_new (FALSE, FALSE, sizeof (Form));
  for (guint t = 0; t < n_tables; t++)
    self->n_rows += tables[t]->n_rules;
  self->rows = g_new0 (Row, self->n_rows);
  guint n = 0;
  for (guint t = 0; t < n_tables; t++)
    for (guint i = 0; i < tables[t]->n_rules; i++, n++) {
      self->rows[n].rule = &tables[t]->rules[i];
      self->rows[n].table = tables[t]->name;
      if (!compile_row (&self->rows[n], n, forms, error))
        return NULL;
    }
  if (!check_twins (self, error))
    return NULL;
  for (guint op = 0; op < TINY_N_OPS; op++)
    fill_bucket (&self->buckets[op], op, forms);
  return g_steal_pointer (&self);
}

void
tiny_rule_set_free (TinyRuleSet *self)
{
  if (self == NULL)
    return;
  for (guint op = 0; op < TINY_N_OPS; op++) {
    g_free (self->buckets[op].forms);
    g_free (self->buckets[op].by_dtype);
    g_free (self->buckets[op].by_source[0]);
    g_free (self->buckets[op].by_source[1]);
  }
  g_free (self->rows);
  g_free (self);
}

guint
tiny_rule_set_get_n_rules (const TinyRuleSet *self)
{
  return self->n_rows;
}

const TinyRule *
tiny_rule_set_get_rule (const TinyRuleSet *self,
                        guint i,
                        const char **out_table,
                        guint64 *out_tries,
                        guint64 *out_hits)
{
  const Row *row = &self->rows[i];
  if (out_table != NULL)
    *out_table = row->table;
  if (out_tries != NULL)
    *out_tries = __atomic_load_n (&row->tries, __ATOMIC_RELAXED);
  if (out_hits != NULL)
    *out_hits = __atomic_load_n (&row->hits, __ATOMIC_RELAXED);
  return row->rule;
}

static inline void
count (guint64 *counter)
{
  __atomic_store_n (counter, __atomic_load_n (counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* ---- matching ---- */
static gboolean
match_part (const TinyPattern *p, guint i, TinyNode *node, TinyMatch *match)
{
  const TinyPart *part = &p->parts[i];
  switch ((TinyPartKind) part->kind) {
  case TINY_PART_CONST:
    if (node->op != TINY_OP_CONST)
      return FALSE;
    G_GNUC_FALLTHROUGH;
  case TINY_PART_VAR:
    if (!(part->dtypes >> node->dtype & 1))
      return FALSE;
    if (match->var[part->var] == NULL)
      match->var[part->var] = node;
    return match->var[part->var] == node;
  case TINY_PART_LITERAL:
    return node->op == TINY_OP_CONST && part->is_float == tiny_dtype_is_float (node->dtype)
           && node->arg
                  == (part->is_float ? part->value : tiny_eval_wrap (node->dtype, part->value));
  case TINY_PART_OP:
    break;
  case TINY_PART_COMPUTE:
    g_return_val_if_reached (FALSE);
  }
  if (node->op != part->op || (part->arg >= 0 && node->arg != part->arg)
      || node->n_sources < part->n_sources
      || (node->n_sources > part->n_sources && !part->open))
    return FALSE;
  TinyDType dtype = tiny_op_infos[part->op].op_class == TINY_OP_CLASS_COMPARE
                        ? node->sources[0]->dtype
                        : node->dtype;
  if (!(part->dtypes >> dtype & 1))
    return FALSE;
  for (guint s = 0; s < part->n_sources; s++)
    if (!match_part (p, part->sources[s], node->sources[s], match))
      return FALSE;
  return TRUE;
}

/* ---- making the result ---- */
static gboolean
compute (const TinyPattern *p, guint i, const TinyMatch *match, gint64 *out)
{
  const TinyPart *part = &p->parts[i];
  if (part->kind != TINY_PART_COMPUTE) {
    *out = part->kind == TINY_PART_LITERAL ? part->value : match->var[part->var]->arg;
    return TRUE;
  }
  gint64 x, y;
  if (!compute (p, part->sources[0], match, &x) || !compute (p, part->sources[1], match, &y))
    return FALSE;
  switch (part->op) {
  case '+':
    return !__builtin_add_overflow (x, y, out);
  case '-':
    return !__builtin_sub_overflow (x, y, out);
  case '*':
    return !__builtin_mul_overflow (x, y, out);
  case '/':
    *out = y == 0 ? 0 : tiny_floor_div (x, y);
    return y != 0;
  case '%':
    *out = y == 0 ? 0 : tiny_floor_mod (x, y);
    return y != 0;
  default:
    *out = part->op == 'm' ? MIN (x, y) : MAX (x, y);
    return TRUE;
  }
}

static TinyNode *
make (const TinyPattern *p, guint i, const TinyMatch *match, TinyDType dtype)
{
  const TinyPart *part = &p->parts[i];
  guint lanes = match->root->lanes;
  gint64 value = part->value;
  switch ((TinyPartKind) part->kind) {
  case TINY_PART_VAR:
    return match->var[part->var];
  case TINY_PART_CONST:
  case TINY_PART_COMPUTE:
    if (!compute (p, i, match, &value)
        || (dtype == TINY_DTYPE_INDEX
            && (value < tiny_dtype_get_min (dtype) || value > tiny_dtype_get_max (dtype))))
      return NULL;
    G_GNUC_FALLTHROUGH;
  case TINY_PART_LITERAL:
    if (!tiny_dtype_is_float (dtype))
      value = tiny_eval_wrap (dtype, value);
    else if (!part->is_float)
      return NULL;
    return tiny_node_new (match->graph, TINY_OP_CONST, dtype, lanes, 0, NULL, value, NULL,
                          NULL);
  case TINY_PART_OP:
    break;
  }
  TinyDType inner = dtype;
  if (part->type_var >= 0)
    inner = match->var[part->type_var]->dtype;
  TinyNode *sources[TINY_RULE_MAX_SOURCES];
  for (guint s = 0; s < part->n_sources; s++) {
    gboolean is_gate = part->op == TINY_OP_WHERE && s == 0;
    sources[s] = make (p, part->sources[s], match, is_gate ? TINY_DTYPE_BOOL : inner);
    if (sources[s] == NULL)
      return NULL;
  }
  gboolean compares = tiny_op_infos[part->op].op_class == TINY_OP_CLASS_COMPARE;
  return tiny_node_new (match->graph, part->op, compares ? TINY_DTYPE_BOOL : dtype, lanes,
                        part->n_sources, sources, 0, NULL, NULL);
}

static TinyNode *
fire (const TinyRuleSet *self, const Form *form, TinyMatch *match)
{
  Row *row = &self->rows[form->row];
  count (&row->tries);
  TINY_COUNT (n_rule_tries, 1);
  for (guint i = 0; i < form->n_vars; i++)
    match->var[form->vars[i]] = NULL;
  TinyNode *node = match->root;
  if (!match_part (&form->pattern, 0, node, match)
      || (row->rule->guard != NULL && !row->rule->guard (match)))
    return NULL;
  TinyNode *result
      = row->has_become ? make (&row->become, 0, match, node->dtype) : row->rule->build (match);
  /* In a tensor graph a source of shape () may stand where the whole had a shape. */
  if (result == NULL || result == node || result->dtype != node->dtype
      || result->lanes != node->lanes || (node->shape != NULL && result->shape != node->shape))
    return NULL;
  count (&row->hits);
  TINY_COUNT (n_rule_hits, 1);
  if (G_UNLIKELY (tiny_env_get_int (TINY_ENV_TRACE_REWRITE) > 0)) {
    g_autofree char *before = tiny_node_to_expression (node, 4);
    g_autofree char *after = tiny_node_to_expression (result, 4);
    g_printerr ("%s/%s: %s -> %s\n", row->table, row->rule->name, before, after);
  }
  return result;
}

TinyNode *
tiny_rule_set_apply (const TinyRuleSet *self,
                     TinyGraph *graph,
                     TinyNode *node,
                     gpointer user,
                     TinyRewriter *rewriter)
{
  const Bucket *bucket = &self->buckets[node->op];
  TINY_COUNT (n_rule_visits, 1);
  guint n_words = bucket->n_words;
  if (n_words == 0)
    return NULL;
  const guint64 *by_dtype = bucket->by_dtype + node->dtype * n_words;
  guint op0 = node->n_sources > 0 ? node->sources[0]->op : TINY_N_OPS;
  guint op1 = node->n_sources > 1 ? node->sources[1]->op : TINY_N_OPS;
  const guint64 *by_first = bucket->by_source[0] + op0 * n_words;
  const guint64 *by_second = bucket->by_source[1] + op1 * n_words;
  TinyMatch match;
  match.graph = graph;
  match.root = node;
  match.user = user;
  match.rewriter = rewriter;
  for (guint w = 0; w < n_words; w++)
    for (guint64 left = by_dtype[w] & by_first[w] & by_second[w]; left != 0; left &= left - 1) {
      TinyNode *result
          = fire (self, &bucket->forms[w * 64 + (guint) __builtin_ctzll (left)], &match);
      if (result != NULL)
        return result;
    }
  return NULL;
}
