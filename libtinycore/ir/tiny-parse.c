/* SPDX-License-Identifier: MIT
 *
 * tiny-parse.c: reads the text form.
 *
 * Recursive descent over the bytes; the words are tiny-cursor.c's, what stands before sources is tiny-text-head.c's.
 * A number without a dtype stays an Operand until the op that uses it is known. Nothing is made that
 * tiny_check_node() would refuse, so any input is safe; the limits below bound the stack and what later passes do
 * with a graph. */
#include "ir/tiny-text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-memory.h"
#include "base/tiny-text-hash.h"
#include "ir/tiny-cursor.h"
#include "ir/tiny-check.h"
#include "ir/tiny-eval.h"
#include "ir/tiny-text-private.h"

enum { MAX_DEPTH = 200, MAX_RANGES = 4096, MAX_NUMBER = 400 };

typedef struct {
  TinyCursor cursor;
  TinyGraph *graph;
  GHashTable *names; /* label to node */
  guint depth, n_ranges;
} Parser;

/* A node, or a number whose dtype is still open. */
typedef struct {
  const char *at;
  TinyNode *node;
  enum { IS_INTEGER, IS_FLOAT, IS_BOOL } kind;
  gboolean negative;
  guint64 magnitude;
  double value;
} Operand;

/* ---- numbers ---- */
/* "-1.5e3", "inf", "true": not yet of a dtype. */
static gboolean
parse_literal (Parser *self, Operand *out)
{
  const char *p = self->cursor.p;
  out->negative = *p == '-';
  p += out->negative;
  gsize n = tiny_word_length (p);
  gboolean is_true = tiny_word_is (p, n, "true");
  if (is_true || tiny_word_is (p, n, "false")) {
    if (out->negative)
      return tiny_cursor_fail (&self->cursor, self->cursor.p, "a bool has no sign");
    out->kind = IS_BOOL;
    out->magnitude = is_true;
    self->cursor.p = p + n;
    return TRUE;
  }
  if (tiny_word_is (p, n, "inf") || tiny_word_is (p, n, "nan")) {
    out->kind = IS_FLOAT;
    out->value = *p == 'n' ? NAN : out->negative ? -INFINITY : INFINITY;
    self->cursor.p = p + n;
    return TRUE;
  }
  const char *digits = p;
  p += strspn (p, "0123456789");
  gboolean is_float = FALSE;
  if (*p == '.') {
    is_float = TRUE;
    p++;
    p += strspn (p, "0123456789");
  }
  if (*p == 'e' || *p == 'E') {
    is_float = TRUE;
    p++;
    p += *p == '+' || *p == '-';
    if (!g_ascii_isdigit (*p))
      return tiny_cursor_fail (&self->cursor, p, "an exponent without digits");
    p += strspn (p, "0123456789");
  }
  if (p == digits || p - digits > MAX_NUMBER || (is_float && digits[0] == '.'))
    return tiny_cursor_fail (&self->cursor, self->cursor.p, "not a number");
  g_autofree char *text = g_strndup (digits, (gsize) (p - digits));
  out->kind = is_float ? IS_FLOAT : IS_INTEGER;
  out->value = g_ascii_strtod (text, NULL);
  if (isinf (out->value))
    return tiny_cursor_fail (&self->cursor, self->cursor.p, "number beyond every dtype");
  if (out->negative)
    out->value = -out->value;
  if (!is_float) {
    errno = 0;
    out->magnitude = g_ascii_strtoull (text, NULL, 10);
    if (errno != 0)
      out->kind = IS_FLOAT; /* as a float it may do */
  }
  self->cursor.p = p;
  return TRUE;
}

/* Makes the constant that @number is as one of @dtype. */
static gboolean
resolve (Parser *self, Operand *number, TinyDType dtype, guint lanes)
{
  gint64 bits = 0;
  gboolean fits = FALSE;
  if (tiny_dtype_is_float (dtype) && number->kind != IS_BOOL) {
    bits = tiny_eval_from_double (dtype, number->value);
    double value = tiny_eval_to_double (bits);
    fits
        = isfinite (value) || (isinf (value) && isinf (number->value)) || isnan (number->value);
  } else if (dtype == TINY_DTYPE_BOOL) {
    bits = (gint64) number->magnitude;
    fits = number->kind != IS_FLOAT && number->magnitude <= 1 && !number->negative;
  } else if (tiny_dtype_is_integer (dtype) && number->kind == IS_INTEGER) {
    bits = (gint64) (number->negative ? 0 - number->magnitude : number->magnitude);
    gboolean sign_fits = (bits < 0) == (number->negative && number->magnitude != 0);
    fits = tiny_eval_wrap (dtype, bits) == bits
           && (tiny_dtype_is_unsigned (dtype) ? !number->negative : sign_fits);
  }
  if (!fits)
    return tiny_cursor_fail (&self->cursor, number->at, "the number is no value of %s",
                             tiny_dtype_infos[dtype].text);
  number->node
      = tiny_node_new (self->graph, TINY_OP_CONST, dtype, lanes, 0, NULL, bits, NULL, NULL);
  return TRUE;
}

/* ---- expressions ---- */
static gboolean parse_operand (Parser *self, Operand *out);

static gboolean
parse_sources (Parser *self, GArray *operands)
{
  if (!tiny_cursor_take_adjacent (&self->cursor, '(') || tiny_cursor_take (&self->cursor, ')'))
    return TRUE;
  do {
    Operand operand = { 0 };
    if (!parse_operand (self, &operand))
      return FALSE;
    g_array_append_val (operands, operand);
  } while (tiny_cursor_take (&self->cursor, ','));
  return tiny_cursor_expect (&self->cursor, ')');
}

static gboolean
resolve_sources (Parser *self, const TinyTextHead *head, GArray *operands, TinyNode **sources)
{
  for (guint i = 0; i < operands->len; i++)
    sources[i] = g_array_index (operands, Operand, i).node;
  for (guint i = 0; i < operands->len; i++) {
    Operand *operand = &g_array_index (operands, Operand, i);
    TinyDType dtype;
    guint lanes;
    if (operand->node != NULL)
      continue;
    if (!tiny_text_infer (head->op, head->dtype, head->lanes, i, operands->len, sources, &dtype,
                          &lanes)) {
      if (operand->kind != IS_BOOL)
        return tiny_cursor_fail (&self->cursor, operand->at,
                                 "this number needs a dtype, as in 1:i32");
      dtype = TINY_DTYPE_BOOL;
      lanes = 1;
    }
    if (!resolve (self, operand, dtype, lanes))
      return FALSE;
  }
  for (guint i = 0; i < operands->len; i++)
    sources[i] = g_array_index (operands, Operand, i).node;
  return TRUE;
}

static gboolean
parse_call (Parser *self, Operand *out)
{
  const char *at = self->cursor.p;
  g_auto (TinyTextHead) head = { 0 };
  g_autoptr (GArray) operands = g_array_new (FALSE, FALSE, sizeof (Operand));
  if (self->depth == MAX_DEPTH)
    return tiny_cursor_fail (&self->cursor, at, "nested more than %d deep", MAX_DEPTH);
  self->depth++;
  if (!tiny_cursor_read_head (&self->cursor, &head) || !parse_sources (self, operands))
    return FALSE;
  if (head.text != NULL && tiny_graph_try_text (self->graph, head.text) == NULL)
    return tiny_memory_fail (strlen (head.text) + 1, "a text", self->cursor.error);
  self->depth--;
  g_autofree TinyNode **sources = g_new (TinyNode *, operands->len + 1);
  if (!resolve_sources (self, &head, operands, sources))
    return FALSE;
  const TinyInts *ints = NULL;
  if (head.ints != NULL)
    ints = tiny_graph_ints (self->graph, (gint64 *) (gpointer) head.ints->data, head.ints->len);
  if (head.op == TINY_OP_RANGE && ++self->n_ranges > MAX_RANGES)
    return tiny_cursor_fail (&self->cursor, at, "more than %d ranges", MAX_RANGES);
  g_autofree char *why = tiny_check_node (head.op, head.dtype, head.lanes, operands->len,
                                          sources, head.arg, ints, head.text);
  if (why != NULL)
    return tiny_cursor_fail (&self->cursor, at, "%s: %s", tiny_op_infos[head.op].text, why);
  out->node = tiny_node_new (self->graph, head.op, head.dtype, head.lanes, operands->len,
                             sources, head.arg, ints, head.text);
  return TRUE;
}

static gboolean
parse_reference (Parser *self, Operand *out)
{
  g_autofree char *name = NULL;
  const char *at = self->cursor.p;
  if (!tiny_cursor_read_name (&self->cursor, &name))
    return FALSE;
  out->node = g_hash_table_lookup (self->names, name);
  return out->node != NULL
         || tiny_cursor_fail (&self->cursor, at, "%%%s is not defined above", name);
}

static gboolean
parse_operand (Parser *self, Operand *out)
{
  tiny_cursor_skip_space (&self->cursor);
  out->at = self->cursor.p;
  if (*self->cursor.p == '%')
    return parse_reference (self, out);
  gsize n = tiny_word_length (self->cursor.p);
  gboolean is_number
      = g_ascii_isdigit (*self->cursor.p) || *self->cursor.p == '-' || *self->cursor.p == '.'
        || tiny_word_is (self->cursor.p, n, "true") || tiny_word_is (self->cursor.p, n, "false")
        || tiny_word_is (self->cursor.p, n, "inf") || tiny_word_is (self->cursor.p, n, "nan");
  if (!is_number) {
    char buffer[24];
    if (n == 0)
      return tiny_cursor_fail (&self->cursor, self->cursor.p, "expected an op, found %s",
                               tiny_cursor_found (self->cursor.p, buffer));
    return parse_call (self, out);
  }
  if (!parse_literal (self, out))
    return FALSE;
  if (*self->cursor.p != ':')
    return TRUE;
  self->cursor.p++;
  TinyDType dtype;
  guint lanes;
  return tiny_cursor_read_type (&self->cursor, &dtype, &lanes)
         && resolve (self, out, dtype, lanes);
}

/* "[%name =] expression", up to the end of the line. */
static gboolean
parse_statement (Parser *self, TinyNode **out)
{
  g_autofree char *name = NULL;
  const char *at = self->cursor.p;
  Operand value = { 0 };
  if (*at == '%') {
    if (!tiny_cursor_read_name (&self->cursor, &name))
      return FALSE;
    if (!tiny_cursor_take (&self->cursor, '=')) {
      g_clear_pointer (&name, g_free);
      self->cursor.p = at;
    } else if (g_hash_table_contains (self->names, name)) {
      return tiny_cursor_fail (&self->cursor, at, "%%%s is defined twice", name);
    }
  }
  if (!parse_operand (self, &value))
    return FALSE;
  if (value.node == NULL) {
    if (value.kind != IS_BOOL)
      return tiny_cursor_fail (&self->cursor, value.at,
                               "this number needs a dtype, as in 1:i32");
    if (!resolve (self, &value, TINY_DTYPE_BOOL, 1))
      return FALSE;
  }
  *out = value.node;
  if (name != NULL)
    g_hash_table_insert (self->names, g_steal_pointer (&name), value.node);
  const char *end = self->cursor.p;
  tiny_cursor_skip_space (&self->cursor);
  char buffer[24];
  if (*self->cursor.p != 0 && memchr (end, '\n', (gsize) (self->cursor.p - end)) == NULL)
    return tiny_cursor_fail (&self->cursor, self->cursor.p, "expected a new line, found %s",
                             tiny_cursor_found (self->cursor.p, buffer));
  return TRUE;
}

TinyNode *
tiny_graph_parse (TinyGraph *graph, const char *text, GError **error)
{
  g_autoptr (GHashTable) names = NULL;
  return tiny_graph_parse_named (graph, text, &names, error);
}

TinyNode *
tiny_graph_parse_named (TinyGraph *graph,
                        const char *text,
                        GHashTable **out_names,
                        GError **error)
{
  g_autoptr (GHashTable) names
      = g_hash_table_new_full (tiny_text_hash, g_str_equal, g_free, NULL);
  Parser self = { .graph = graph, .cursor = { text, text, error }, .names = names };
  TinyNode *root = NULL;
  tiny_cursor_skip_space (&self.cursor);
  while (*self.cursor.p != 0)
    if (!parse_statement (&self, &root))
      return NULL;
  if (root == NULL)
    tiny_cursor_fail (&self.cursor, self.cursor.p, "there is no statement");
  else
    *out_names = g_steal_pointer (&names);
  return root;
}
