/* SPDX-License-Identifier: MIT
 *
 * names.c: the names of kernels: the operations that each computes, then its loops.
 *
 * A name is made from the kernel alone, so that equal kernels have one name wherever they come from, and no cache
 * tells them apart. Passes make kernels without names; this comes last, once for each kernel.
 *
 * The walk goes from what is stored to what is loaded and notes a word for each operation, in the order in which they
 * are computed, each word once. Addresses and conditions on counters are no words. A name keeps the words of the
 * highest rank: contractions and reductions, then functions of one value, then arithmetic. */
#include <string.h>

#include "schedule/work.h"

enum { MAX_LOOPS = 64, MAX_WORDS = 32, MAX_SHOWN = 4, LONGEST = 60, LEAST_MIXED = 20 };

/* MINOR, such as arithmetic with constants and choices, is shown where there is nothing else. */
typedef enum { MINOR, ARITHMETIC, FUNCTION, REDUCTION } Rank;

typedef struct {
  const char *text;
  Rank rank;
} Word;

typedef struct {
  Plan *plan;
  TinyNodeMap seen;
  Word words[MAX_WORDS + 1]; /* one for “random” */
  guint n_words;
  guint n_mixed; /* XORs of u32, of which random numbers have many */
  guint n_contractions;
  GPtrArray *reduces; /* the ranges of REDUCEs */
} Naming;

static const Word op_words[TINY_N_OPS] = {
  [TINY_OP_CAST] = { "cast", MINOR },
  [TINY_OP_BITCAST] = { "bitcast", MINOR },
  [TINY_OP_NEG] = { "neg", MINOR },
  [TINY_OP_RECIP] = { "div", ARITHMETIC },
  [TINY_OP_SQRT] = { "sqrt", FUNCTION },
  [TINY_OP_EXP2] = { "exp", FUNCTION },
  [TINY_OP_LOG2] = { "log", FUNCTION },
  [TINY_OP_SIN] = { "sin", FUNCTION },
  [TINY_OP_ADD] = { "add", ARITHMETIC },
  [TINY_OP_SUB] = { "sub", ARITHMETIC },
  [TINY_OP_MUL] = { "mul", ARITHMETIC },
  [TINY_OP_IDIV] = { "div", ARITHMETIC },
  [TINY_OP_FDIV] = { "div", ARITHMETIC },
  [TINY_OP_MOD] = { "mod", ARITHMETIC },
  [TINY_OP_MAX] = { "maximum", ARITHMETIC },
  [TINY_OP_CMPLT] = { "less", MINOR },
  [TINY_OP_CMPNE] = { "differ", MINOR },
  [TINY_OP_CMPEQ] = { "equal", MINOR },
  [TINY_OP_AND] = { "and", MINOR },
  [TINY_OP_OR] = { "or", MINOR },
  [TINY_OP_XOR] = { "xor", MINOR },
  [TINY_OP_SHL] = { "shift", MINOR },
  [TINY_OP_SHR] = { "shift", MINOR },
  [TINY_OP_WHERE] = { "where", MINOR },
  [TINY_OP_MULACC] = { "mulacc", ARITHMETIC },
  [TINY_OP_TRUNC] = { "trunc", FUNCTION },
};

/* Words of the highest ranks that follow each other, and one word for them. */
static const struct {
  const char *words[4];
  const char *one;
} phrases[] = {
  { { "max", "exp", "sum", "log" }, "log_softmax" },
  { { "max", "exp", "sum" }, "softmax" },
  { { "sum", "sqrt" }, "norm" },
};

static void
add_word (Naming *self, const char *text, Rank rank)
{
  for (guint i = 0; i < self->n_words; i++)
    if (g_str_equal (self->words[i].text, text)) {
      self->words[i].rank = MAX (self->words[i].rank, rank);
      return;
    }
  if (self->n_words < MAX_WORDS)
    self->words[self->n_words++] = (Word){ text, rank };
}

/* ---- contractions ---- */
static TinyNode *
skip_casts (TinyNode *node)
{
  while (node->op == TINY_OP_CAST)
    node = node->sources[0];
  return node;
}

/* True if neighbours along a loop of the result overlap in what they reduce over, as the windows of convolutions do. */
static gboolean
has_windows (Naming *self, TinyNode *operand)
{
  operand = skip_casts (operand);
  if (operand->op == TINY_OP_WHERE)
    operand = skip_casts (operand->sources[1]);
  const Affine *at = operand->op == TINY_OP_LOAD
                         ? affine_read (&self->plan->affines, operand->sources[1])
                         : NULL;
  for (guint i = 0; at != NULL && i < at->n; i++)
    for (guint j = 0; j < at->n; j++) {
      TinyNode *out = at->terms[i].atom, *in = at->terms[j].atom;
      if (out->op != TINY_OP_RANGE || in->op != TINY_OP_RANGE
          || tiny_range_get_kind (out) != TINY_RANGE_LOOP
          || tiny_range_get_kind (in) != TINY_RANGE_REDUCE)
        continue;
      gint64 step = ABS (at->terms[i].mul), tap = ABS (at->terms[j].mul);
      if (step < tap * tiny_range_get_extent (in) && tap < step * tiny_range_get_extent (out))
        return TRUE;
    }
  return FALSE;
}

/* True if @a depends on a loop of the result that @b does not depend on. */
static gboolean
has_own_loop (Naming *self, TinyNode *a, TinyNode *b)
{
  guint n;
  TinyNode *const *ranges = tiny_node_get_ranges (self->plan->graph, a, &n);
  for (guint i = 0; i < n; i++)
    if (tiny_range_get_kind (ranges[i]) == TINY_RANGE_LOOP
        && !tiny_node_depends_on (self->plan->graph, b, ranges[i]))
      return TRUE;
  return FALSE;
}

/* (nullable): the word for a sum of products of two values; NULL: it is another reduction. */
static const char *
get_contraction (Naming *self, TinyNode *reduce)
{
  TinyNode *product = skip_casts (reduce->sources[0]);
  if (reduce->arg != TINY_OP_ADD || product->op != TINY_OP_MUL
      || product->sources[0] == product->sources[1])
    return NULL;
  TinyNode *a = product->sources[0], *b = product->sources[1];
  gboolean is_shared = FALSE;
  for (guint i = 1; i < reduce->n_sources; i++)
    is_shared |= tiny_node_depends_on (self->plan->graph, a, reduce->sources[i])
                 && tiny_node_depends_on (self->plan->graph, b, reduce->sources[i]);
  if (!is_shared)
    return NULL;
  if (has_windows (self, a) || has_windows (self, b))
    return "conv";
  return has_own_loop (self, a, b) || has_own_loop (self, b, a) ? "matmul" : "dot";
}

/* Adds the word of @add for a bias: a value for each column. FALSE: it is another sum. */
static gboolean
add_bias (Naming *self, TinyNode *add)
{
  for (guint i = 0; i < 2; i++) {
    TinyNode *sum = skip_casts (add->sources[i]), *bias = skip_casts (add->sources[1 - i]);
    if (sum->op != TINY_OP_REDUCE || bias->op != TINY_OP_LOAD
        || get_contraction (self, sum) == NULL || !has_own_loop (self, sum, bias))
      continue;
    for (guint j = 0; j < self->n_words; j++)
      if (g_str_equal (self->words[j].text, "matmul"))
        self->words[j].text = "linear";
    return TRUE;
  }
  return FALSE;
}

/* ---- the walk ---- */
static void visit (Naming *self, TinyNode *node);

static void
visit_reduce (Naming *self, TinyNode *node)
{
  const char *contraction = get_contraction (self, node);
  if (contraction != NULL) {
    TinyNode *product = skip_casts (node->sources[0]);
    visit (self, product->sources[0]);
    visit (self, product->sources[1]);
    self->n_contractions++;
  } else {
    visit (self, node->sources[0]);
  }
  for (guint i = 1; i < node->n_sources; i++)
    if (!g_ptr_array_find (self->reduces, node->sources[i], NULL))
      g_ptr_array_add (self->reduces, node->sources[i]);
  add_word (self,
            contraction != NULL        ? contraction
            : node->arg == TINY_OP_ADD ? "sum"
            : node->arg == TINY_OP_MAX ? "max"
            : node->arg == TINY_OP_MUL ? "prod"
                                       : tiny_op_to_string (node->arg),
            REDUCTION);
}

static gboolean
is_value (TinyNode *node)
{
  return node->dtype != TINY_DTYPE_INDEX && node->op != TINY_OP_CONST;
}

static void
visit_elementwise (Naming *self, TinyNode *node)
{
  guint n_values = 0;
  for (guint i = 0; i < node->n_sources; i++) {
    visit (self, node->sources[i]);
    n_values += is_value (node->sources[i]);
  }
  if (n_values == 0 || (node->op == TINY_OP_ADD && add_bias (self, node)))
    return;
  self->n_mixed += node->op == TINY_OP_XOR && node->dtype == TINY_DTYPE_U32;
  const Word *word = &op_words[node->op];
  TinyNode *last = node->sources[node->n_sources - 1];
  if (node->op == TINY_OP_MAX && tiny_node_is_const (last) && last->arg == 0)
    add_word (self, "relu", FUNCTION);
  else if (word->text != NULL)
    add_word (self, word->text,
              word->rank == ARITHMETIC && n_values < node->n_sources && node->n_sources == 2
                  ? MINOR
                  : word->rank);
}

/* True if @load's address depends on a number that is in memory. */
static gboolean
is_at_position (Naming *self, TinyNode *load)
{
  const Affine *at = affine_read (&self->plan->affines, load->sources[1]);
  for (guint i = 0; at != NULL && i < at->n; i++) {
    TinyOp op = at->terms[i].atom->op;
    if (op != TINY_OP_RANGE && op != TINY_OP_FLOORDIV && op != TINY_OP_FLOORMOD
        && op != TINY_OP_VARIABLE)
      return TRUE;
  }
  return at == NULL;
}

static void
visit (Naming *self, TinyNode *node)
{
  if (!is_value (node) || tiny_node_map_get (&self->seen, node) != NULL)
    return;
  tiny_node_map_set (&self->seen, node, node);
  if (node->op == TINY_OP_REDUCE)
    visit_reduce (self, node);
  else if (tiny_op_is_elementwise (node->op))
    visit_elementwise (self, node);
  else if (node->op == TINY_OP_LOAD && is_at_position (self, node))
    add_word (self, "gather", FUNCTION);
}

/* ---- the text ---- */
static void
drop_word (Naming *self, guint at)
{
  memmove (&self->words[at], &self->words[at + 1], (--self->n_words - at) * sizeof (Word));
}

static void
drop_rank (Naming *self, Rank rank, guint n_kept)
{
  for (guint i = self->n_words; i-- > 0 && self->n_words > n_kept;)
    if (self->words[i].rank == rank)
      drop_word (self, i);
}

/* Puts one word in the place of each phrase. */
static gboolean
join_phrases (Naming *self)
{
  for (guint p = 0; p < G_N_ELEMENTS (phrases); p++) {
    guint at[G_N_ELEMENTS (phrases[p].words)], n = 0, n_found = 0;
    while (n < G_N_ELEMENTS (at) && phrases[p].words[n] != NULL)
      n++;
    for (guint i = 0; i < self->n_words && n_found < n; i++) {
      if (self->words[i].rank < FUNCTION)
        continue;
      if (!g_str_equal (self->words[i].text, phrases[p].words[n_found]))
        n_found = 0;
      if (g_str_equal (self->words[i].text, phrases[p].words[n_found]))
        at[n_found++] = i;
    }
    if (n_found < n)
      continue;
    while (--n > 0)
      drop_word (self, at[n]);
    self->words[at[0]] = (Word){ phrases[p].one, REDUCTION };
    return TRUE;
  }
  return FALSE;
}

static void
choose_words (Naming *self)
{
  if (self->n_mixed >= LEAST_MIXED) {
    for (Rank rank = MINOR; rank < REDUCTION; rank++)
      drop_rank (self, rank, 0);
    memmove (&self->words[1], self->words, self->n_words * sizeof (Word));
    self->words[0] = (Word){ "random", REDUCTION };
    self->n_words++;
  }
  if (join_phrases (self))
    drop_rank (self, ARITHMETIC, 1);
  for (guint i = 0; i + 1 < self->n_words; i++)
    if (self->n_contractions > 1 && g_str_equal (self->words[i].text, "matmul")
        && g_str_equal (self->words[i + 1].text, "softmax")) {
      drop_word (self, i);
      self->words[i].text = "attention";
    }
  gboolean is_all_minor = TRUE;
  for (guint i = 0; i < self->n_words; i++)
    is_all_minor &= self->words[i].rank == MINOR;
  for (Rank rank = MINOR; rank <= REDUCTION; rank++)
    drop_rank (self, rank, rank == MINOR && !is_all_minor ? 0 : MAX_SHOWN);
}

static int
compare_numbers (gconstpointer a, gconstpointer b)
{
  const TinyNode *x = *(TinyNode *const *) a, *y = *(TinyNode *const *) b;
  return (int) tiny_range_get_number (x) - (int) tiny_range_get_number (y);
}

/* The STORE inside of the most loops. */
static TinyNode *
find_deepest (Plan *plan, TinyNode *kernel)
{
  TinyNode *best = NULL;
  guint n_best = 0, n;
  for (guint i = 0; i < kernel->n_sources; i++) {
    tiny_node_get_ranges (plan->graph, kernel->sources[i], &n);
    if (best == NULL || n > n_best) {
      best = kernel->sources[i];
      n_best = n;
    }
  }
  return best;
}

static char *
make_name (Naming *self, const PlanItem *item)
{
  TinyNode *loops[MAX_LOOPS], *store = find_deepest (self->plan, item->kernel);
  GString *name = g_string_new (NULL);
  choose_words (self);
  for (guint i = 0; i < self->n_words; i++)
    g_string_append_printf (name, "%s%s", i > 0 ? "_" : "", self->words[i].text);
  if (self->n_words == 0)
    g_string_append (name, is_value (store->sources[2]) ? "copy" : "fill");
  guint n = schedule_list_loops (self->plan, store, loops);
  for (guint i = 0; i < n; i++)
    g_string_append_printf (name, "_%" G_GINT64_FORMAT, tiny_range_get_extent (loops[i]));
  g_ptr_array_sort (self->reduces, compare_numbers);
  for (guint i = 0; i < self->reduces->len; i++)
    g_string_append_printf (name, "%s%" G_GINT64_FORMAT, i == 0 ? "_r" : "_",
                            tiny_range_get_extent (self->reduces->pdata[i]));
  if (n == 0 && self->reduces->len == 0)
    g_string_append (name, "_1");
  if (item->n_written > 1)
    g_string_append_printf (name, "_x%u", item->n_written);
  g_string_truncate (name, MIN (name->len, LONGEST));
  return g_string_free (name, FALSE);
}

void
schedule_name_kernels (Plan *plan)
{
  for (guint i = 0; i < plan->items->len; i++) {
    PlanItem *item = &g_array_index (plan->items, PlanItem, i);
    if (item->kind != TINY_SCHEDULE_KERNEL)
      continue;
    g_autoptr (GPtrArray) reduces = g_ptr_array_new ();
    Naming self = { .plan = plan, .reduces = reduces };
    for (guint j = 0; j < item->kernel->n_sources; j++)
      if (item->kernel->sources[j]->op == TINY_OP_STORE)
        visit (&self, item->kernel->sources[j]->sources[2]);
    g_autofree char *name = make_name (&self, item);
    item->kernel
        = tiny_node_sink (plan->graph, item->kernel->n_sources, item->kernel->sources, name);
    tiny_node_map_clear (&self.seen);
  }
}
