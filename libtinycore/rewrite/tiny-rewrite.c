/* SPDX-License-Identifier: MIT
 *
 * tiny-rewrite.c: the driver: sources first, to the fixpoint, each node once.
 *
 * A memo has for every node met what it finally became. A node whose sources are
 * final is rebuilt over them; if a row fires, the result is pushed and the node waits for what
 * becomes of that. The stack is on the heap. */
#include "rewrite/tiny-rewrite.h"

#include <string.h>

#include "rewrite/tiny-memo.h"
#include "rewrite/tiny-simplify.h"

/* Results of results without end: a table that breaks its own termination law. */
enum { MAX_CHAIN = 2000, SMALL = 8 };

typedef struct {
  TinyNode *node;    /* whose final form is wanted */
  TinyNode *rebuilt; /* the same over final sources, once they are */
  TinyNode *awaited; /* what a row made of that */
  guint chain;       /* firings in a row that led here */
} Frame;

struct TinyRewriter {
  TinyGraph *graph;
  const TinyRuleSet *set;
  gpointer user;
  TinyMemo final;
  GArray *stack;
  guint n_given_up;
  TinyRewriter *inner;
};

/* In the memo of a node that waits for its own result. */
static TinyNode waiting;

TinyRewriter *
tiny_rewriter_new (TinyGraph *graph, const TinyRuleSet *set)
{
  TinyRewriter *self = g_new0 (TinyRewriter, 1);
  self->graph = graph;
  self->set = set;
  self->stack = g_array_new (FALSE, FALSE, sizeof (Frame));
  return self;
}

void
tiny_rewriter_free (TinyRewriter *self)
{
  if (self == NULL)
    return;
  tiny_memo_clear (&self->final);
  tiny_rewriter_free (self->inner);
  g_array_unref (self->stack);
  g_free (self);
}

guint
tiny_rewriter_get_n_given_up (TinyRewriter *self)
{
  return self->n_given_up;
}

TinyRewriter *
tiny_rewriter_get_inner (TinyRewriter *self)
{
  if (self->inner == NULL)
    self->inner = tiny_rewriter_new (self->graph, tiny_simplify_index_set ());
  return self->inner;
}

static void
push (TinyRewriter *self, TinyNode *node, guint chain)
{
  Frame frame = { node, NULL, NULL, chain };
  g_array_append_val (self->stack, frame);
}

/* TRUE when all sources of @node are final; pushes those that are not. One that waits for its own
 * result stands for itself: only unsound rules come to that. */
static gboolean
are_sources_final (TinyRewriter *self, TinyNode *node)
{
  gboolean ready = TRUE;
  for (guint i = node->n_sources; i-- > 0;)
    if (tiny_memo_get (&self->final, node->sources[i]) == NULL) {
      push (self, node->sources[i], 0);
      ready = FALSE;
    }
  return ready;
}

static TinyNode *
rebuild (TinyRewriter *self, TinyNode *node)
{
  TinyNode *small[SMALL];
  gboolean changed = FALSE;
  guint n = node->n_sources;
  TinyNode **sources = n <= SMALL ? small : g_new (TinyNode *, n);
  for (guint i = 0; i < n; i++) {
    sources[i] = tiny_memo_get (&self->final, node->sources[i]);
    if (sources[i] == &waiting)
      sources[i] = node->sources[i];
    changed = changed || sources[i] != node->sources[i];
  }
  TinyNode *result = changed ? tiny_node_with_sources (self->graph, node, sources) : node;
  if (sources != small)
    g_free (sources);
  return result;
}

static void
finish (TinyRewriter *self, TinyNode *node, TinyNode *rebuilt, TinyNode *final)
{
  tiny_memo_set (&self->final, node, final);
  tiny_memo_set (&self->final, rebuilt, final);
  g_array_set_size (self->stack, self->stack->len - 1);
}

/* One step of the node on top of the stack. */
static void
step (TinyRewriter *self)
{
  Frame frame = g_array_index (self->stack, Frame, self->stack->len - 1);
  TinyNode *known = tiny_memo_get (&self->final, frame.node);
  if (frame.awaited != NULL) {
    TinyNode *became = tiny_memo_get (&self->final, frame.awaited);
    finish (self, frame.node, frame.rebuilt, became == &waiting ? frame.awaited : became);
    return;
  }
  if (known != NULL) {
    g_array_set_size (self->stack, self->stack->len - 1);
    return;
  }
  if (!are_sources_final (self, frame.node))
    return;
  TinyNode *rebuilt = rebuild (self, frame.node);
  known = tiny_memo_get (&self->final, rebuilt);
  if (known != NULL) {
    finish (self, frame.node, rebuilt, known == &waiting ? rebuilt : known);
    return;
  }
  TinyNode *became = tiny_rule_set_apply (self->set, self->graph, rebuilt, self->user, self);
  known = became == NULL ? rebuilt : tiny_memo_get (&self->final, became);
  if (known == &waiting || (known == NULL && frame.chain >= MAX_CHAIN)) {
    self->n_given_up++;
    known = rebuilt;
  }
  if (known != NULL) {
    finish (self, frame.node, rebuilt, known);
    return;
  }
  tiny_memo_set (&self->final, frame.node, &waiting);
  tiny_memo_set (&self->final, rebuilt, &waiting);
  Frame *top = &g_array_index (self->stack, Frame, self->stack->len - 1);
  top->rebuilt = rebuilt;
  top->awaited = became;
  push (self, became, frame.chain + 1);
}

TinyNode *
tiny_rewriter_run (TinyRewriter *self, TinyNode *root)
{
  TinyNode *final = tiny_memo_get (&self->final, root);
  if (final != NULL)
    return final;
  push (self, root, 0);
  while (self->stack->len > 0)
    step (self);
  return tiny_memo_get (&self->final, root);
}

TinyNode *
tiny_rewrite (TinyGraph *graph, TinyNode *root, const TinyRuleSet *set, gpointer user)
{
  g_autoptr (TinyRewriter) rewriter = tiny_rewriter_new (graph, set);
  rewriter->user = user;
  return tiny_rewriter_run (rewriter, root);
}

/* ---- traces ---- */
static void
print (GString *out, TinyNode *node, guint depth)
{
  const char *dtype = tiny_dtype_to_string (node->dtype);
  if (node->op == TINY_OP_CONST) {
    if (tiny_dtype_is_float (node->dtype))
      g_string_append_printf (out, "%.17g", tiny_node_get_float (node));
    else
      g_string_append_printf (out, "%" G_GINT64_FORMAT, node->arg);
    return;
  }
  if (node->op == TINY_OP_RANGE) {
    g_string_append_printf (out, "r%u", tiny_range_get_number (node));
    return;
  }
  g_string_append_printf (out, "%s.%s", tiny_op_to_string (node->op), dtype);
  if (node->lanes > 1)
    g_string_append_printf (out, "x%u", node->lanes);
  if (node->n_sources == 0) {
    g_string_append_printf (out, "[%" G_GINT64_FORMAT "]", node->arg);
    return;
  }
  if (depth == 0) {
    g_string_append (out, "(...)");
    return;
  }
  for (guint i = 0; i < node->n_sources; i++) {
    g_string_append (out, i == 0 ? "(" : ", ");
    print (out, node->sources[i], depth - 1);
  }
  g_string_append_c (out, ')');
}

char *
tiny_node_to_expression (TinyNode *node, guint depth)
{
  GString *out = g_string_new (NULL);
  print (out, node, depth);
  return g_string_free (out, FALSE);
}
