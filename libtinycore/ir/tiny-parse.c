/* SPDX-License-Identifier: MIT
 *
 * tiny-parse.c: reads the text form.
 *
 * Recursive descent over the bytes. A number without a dtype stays a Literal until the op that
 * uses it is known. Nothing is made that tiny_check_node() would refuse, so any input is safe; the
 * limits below bound the stack and what later passes do with a graph. */
#include "ir/tiny-text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/tiny-error.h"
#include "ir/tiny-check.h"
#include "ir/tiny-eval.h"
#include "ir/tiny-text-private.h"

enum { MAX_DEPTH = 200, MAX_RANGES = 4096, MAX_NUMBER = 400 };

typedef struct {
  TinyGraph *graph;
  const char *start, *p;
  GHashTable *names; /* label to node */
  guint depth, n_ranges;
  GError **error;
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

/* What stands before the sources of a call. */
typedef struct {
  TinyOp op;
  TinyDType dtype;
  guint lanes;
  gint64 arg;
  GArray *ints; /* of gint64, or NULL */
  char *text;
  guint fields; /* bits of the numbers given by name */
  gboolean has_arg, has_kind;
} Head;

static void
head_clear (Head *self)
{
  g_clear_pointer (&self->ints, g_array_unref);
  g_clear_pointer (&self->text, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Head, head_clear)

static gboolean fail (Parser *self, const char *at, const char *format, ...)
    G_GNUC_PRINTF (3, 4);

static gboolean
fail (Parser *self, const char *at, const char *format, ...)
{
  guint line = 1;
  const char *line_start = self->start;
  for (const char *p = self->start; p < at; p++)
    if (*p == '\n') {
      line++;
      line_start = p + 1;
    }
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  g_autofree char *valid = g_utf8_make_valid (message, -1);
  g_set_error (self->error, TINY_ERROR, TINY_ERROR_FORMAT, "%u:%u: %s", line,
               (guint) (at - line_start) + 1, valid);
  return FALSE;
}

static void
skip_space (Parser *self)
{
  for (;;) {
    if (self->p[0] == '/' && self->p[1] == '/')
      self->p += strcspn (self->p, "\n");
    else if (g_ascii_isspace (*self->p))
      self->p++;
    else
      return;
  }
}

static gboolean
take (Parser *self, char c)
{
  skip_space (self);
  if (*self->p != c)
    return FALSE;
  self->p++;
  return TRUE;
}

/* What stands at @at, for messages. */
static const char *
found (const char *at, char buffer[24])
{
  if (*at == 0)
    return "the end";
  gsize n = 1;
  while (n < 16 && (g_ascii_isalnum (at[n]) || at[n] == '_') && g_ascii_isalnum (at[0]))
    n++;
  g_snprintf (buffer, 24, "'%.*s'", (int) n, at);
  return buffer;
}

/* The same without skipping: what continues an expression follows it at once. */
static gboolean
take_adjacent (Parser *self, char c)
{
  return *self->p == c && take (self, c);
}

static gboolean
expect (Parser *self, char c)
{
  char buffer[24];
  return take (self, c)
         || fail (self, self->p, "expected '%c', found %s", c, found (self->p, buffer));
}

/* Letters, digits and underscores from here on. */
static gsize
word_length (const char *p)
{
  gsize n = 0;
  while (g_ascii_isalnum (p[n]) || p[n] == '_')
    n++;
  return n;
}

static gboolean
word_is (const char *word, gsize n, const char *text)
{
  return text != NULL && strlen (text) == n && memcmp (word, text, n) == 0;
}

/* "f32", "f32x8" */
static gboolean
parse_type (Parser *self, TinyDType *out_dtype, guint *out_lanes)
{
  const char *at = self->p;
  gsize n = word_length (at);
  char name[32];
  *out_lanes = 1;
  if (n > 0 && n < sizeof name) {
    memcpy (name, at, n);
    name[n] = 0;
    self->p += n;
    if (tiny_dtype_from_string (name, out_dtype))
      return TRUE;
    char *x = strrchr (name, 'x');
    if (x != NULL && x[1] >= '1' && x[1] <= '9') {
      char *end;
      guint64 lanes = g_ascii_strtoull (x + 1, &end, 10);
      if (*end == 0 && lanes > G_MAXUINT16)
        return fail (self, at, "more than %d lanes", G_MAXUINT16);
      *x = 0;
      *out_lanes = (guint) lanes;
      if (*end == 0 && tiny_dtype_from_string (name, out_dtype))
        return TRUE;
    }
  }
  char buffer[24];
  return fail (self, at, "expected a dtype, found %s", found (at, buffer));
}

static gboolean
parse_integer (Parser *self, gint64 *out)
{
  skip_space (self);
  const char *at = self->p;
  char *end, buffer[24];
  if (!g_ascii_isdigit (at[*at == '-']))
    return fail (self, at, "expected an integer, found %s", found (at, buffer));
  errno = 0;
  *out = g_ascii_strtoll (at, &end, 10);
  if (errno != 0)
    return fail (self, at, "integer beyond 64 bits");
  self->p = end;
  return TRUE;
}

static gboolean
parse_list (Parser *self, GArray *out)
{
  if (!expect (self, '['))
    return FALSE;
  if (take (self, ']'))
    return TRUE;
  do {
    gint64 value;
    if (!parse_integer (self, &value))
      return FALSE;
    g_array_append_val (out, value);
  } while (take (self, ','));
  return expect (self, ']');
}

static gboolean
parse_string (Parser *self, char **out)
{
  if (!expect (self, '"'))
    return FALSE;
  g_autoptr (GString) text = g_string_new (NULL);
  while (*self->p != '"') {
    const char *at = self->p;
    if (*at == 0 || *at == '\n')
      return fail (self, at, "text without an end");
    if (*at != '\\') {
      g_string_append_c (text, *self->p++);
      continue;
    }
    static const char escapes[] = "n\nt\tr\r\"\"\\\\";
    const char *escape = at[1] != 0 ? strchr (escapes, at[1]) : NULL;
    if (at[1] == 'x' && g_ascii_isxdigit (at[2]) && g_ascii_isxdigit (at[3])) {
      int byte = g_ascii_xdigit_value (at[2]) * 16 + g_ascii_xdigit_value (at[3]);
      if (byte == 0)
        return fail (self, at, "a text cannot hold \\x00");
      g_string_append_c (text, (char) byte);
      self->p += 4;
    } else if (escape != NULL && (escape - escapes) % 2 == 0) {
      g_string_append_c (text, escape[1]);
      self->p += 2;
    } else {
      return fail (self, at, "unknown escape in a text");
    }
  }
  self->p++;
  *out = g_string_free (g_steal_pointer (&text), FALSE);
  return TRUE;
}

/* ---- attributes ---- */
static gboolean
parse_arg (Parser *self, Head *head, TinyArgStyle style)
{
  if (style == TINY_ARG_OP) {
    skip_space (self);
    gsize n = word_length (self->p);
    TinyOp op = tiny_op_from_string (self->p, (gssize) n);
    char buffer[24];
    if (op == TINY_N_OPS)
      return fail (self, self->p, "expected an op, found %s", found (self->p, buffer));
    self->p += n;
    head->arg = op;
    return TRUE;
  }
  gint64 value;
  const char *at = self->p;
  if (!parse_integer (self, &value))
    return FALSE;
  if (style == TINY_ARG_RANGE) {
    if (value < 0 || value > G_MAXUINT32)
      return fail (self, at, "a range's number has 32 bits");
    value |= head->arg;
  }
  head->arg = value;
  return TRUE;
}

static gboolean
parse_kind (Parser *self, Head *head)
{
  skip_space (self);
  gsize n = word_length (self->p);
  for (int kind = 0; kind < TINY_N_RANGE_KINDS; kind++)
    if (word_is (self->p, n, tiny_range_kind_to_string (kind))) {
      head->arg |= (gint64) kind << 32;
      self->p += n;
      return TRUE;
    }
  char buffer[24];
  return fail (self, self->p, "expected a kind of range, found %s", found (self->p, buffer));
}

/* Which of the comma-separated names @word is, or -1. */
static int
find_field (const char *names, const char *word, gsize n)
{
  if (names == NULL || strchr (names, ',') == NULL)
    return -1;
  g_auto (GStrv) parts = g_strsplit (names, ",", -1);
  for (int i = 0; parts[i] != NULL; i++)
    if (word_is (word, n, parts[i]))
      return i;
  return -1;
}

static guint
count_fields (const char *names)
{
  guint n = 1;
  for (const char *p = names; *p != 0; p++)
    n += *p == ',';
  return n;
}

static gboolean
parse_field (Parser *self, Head *head, const char *at, guint field, guint n_fields)
{
  gint64 value;
  if (head->ints == NULL) {
    head->ints = g_array_new (FALSE, TRUE, sizeof (gint64));
    g_array_set_size (head->ints, n_fields);
  }
  if (head->fields >> field & 1 || head->ints->len != n_fields)
    return fail (self, at, "attribute given twice");
  head->fields |= 1u << field;
  if (!parse_integer (self, &value))
    return FALSE;
  g_array_index (head->ints, gint64, field) = value;
  return TRUE;
}

static gboolean
parse_attribute (Parser *self, Head *head)
{
  const TinyOpRule *rule = &tiny_op_rules[head->op];
  skip_space (self);
  const char *at = self->p;
  gsize n = word_length (at);
  char buffer[24];
  if (n == 0)
    return fail (self, at, "expected an attribute, found %s", found (at, buffer));
  self->p += n;
  if (!expect (self, '='))
    return FALSE;
  int field = find_field (rule->ints, at, n);
  if (field >= 0)
    return parse_field (self, head, at, (guint) field, count_fields (rule->ints));
  gboolean generic = word_is (at, n, "arg");
  if (word_is (at, n, rule->arg) || generic) {
    if (head->has_arg || (generic && head->has_kind))
      return fail (self, at, "attribute given twice");
    head->has_arg = TRUE;
    head->has_kind |= generic;
    return parse_arg (self, head, generic ? TINY_ARG_NUMBER : rule->arg_style);
  }
  if (rule->arg_style == TINY_ARG_RANGE && word_is (at, n, "kind")) {
    if (head->has_kind)
      return fail (self, at, "attribute given twice");
    head->has_kind = TRUE;
    return parse_kind (self, head);
  }
  if (word_is (at, n, rule->ints) || word_is (at, n, "ints")) {
    if (head->ints != NULL)
      return fail (self, at, "attribute given twice");
    head->ints = g_array_new (FALSE, FALSE, sizeof (gint64));
    return parse_list (self, head->ints);
  }
  if (word_is (at, n, rule->text) || word_is (at, n, "text")) {
    if (head->text != NULL)
      return fail (self, at, "attribute given twice");
    return parse_string (self, &head->text);
  }
  return fail (self, at, "%s has no attribute %s", tiny_op_infos[head->op].text,
               found (at, buffer));
}

static gboolean
parse_head (Parser *self, Head *head)
{
  const char *at = self->p;
  gsize n = word_length (at);
  char buffer[24];
  head->op = tiny_op_from_string (at, (gssize) n);
  head->lanes = 1;
  if (head->op == TINY_N_OPS)
    return fail (self, at, "unknown op %s", found (at, buffer));
  self->p += n;
  if (*self->p == '.') {
    self->p++;
    if (!parse_type (self, &head->dtype, &head->lanes))
      return FALSE;
  }
  if (!take_adjacent (self, '{'))
    return TRUE;
  do {
    if (!parse_attribute (self, head))
      return FALSE;
  } while (take (self, ','));
  const char *names = tiny_op_rules[head->op].ints;
  if (head->fields != 0 && head->fields != (1u << count_fields (names)) - 1)
    return fail (self, at, "%s wants all of %s", tiny_op_infos[head->op].text, names);
  return expect (self, '}');
}

/* ---- numbers ---- */
/* "-1.5e3", "inf", "true": not yet of a dtype. */
static gboolean
parse_literal (Parser *self, Operand *out)
{
  const char *p = self->p;
  out->negative = *p == '-';
  p += out->negative;
  gsize n = word_length (p);
  gboolean is_true = word_is (p, n, "true");
  if (is_true || word_is (p, n, "false")) {
    if (out->negative)
      return fail (self, self->p, "a bool has no sign");
    out->kind = IS_BOOL;
    out->magnitude = is_true;
    self->p = p + n;
    return TRUE;
  }
  if (word_is (p, n, "inf") || word_is (p, n, "nan")) {
    out->kind = IS_FLOAT;
    out->value = *p == 'n' ? NAN : out->negative ? -INFINITY : INFINITY;
    self->p = p + n;
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
      return fail (self, p, "an exponent without digits");
    p += strspn (p, "0123456789");
  }
  if (p == digits || p - digits > MAX_NUMBER || (is_float && digits[0] == '.'))
    return fail (self, self->p, "not a number");
  g_autofree char *text = g_strndup (digits, (gsize) (p - digits));
  out->kind = is_float ? IS_FLOAT : IS_INTEGER;
  out->value = g_ascii_strtod (text, NULL);
  if (isinf (out->value))
    return fail (self, self->p, "number beyond every dtype");
  if (out->negative)
    out->value = -out->value;
  if (!is_float) {
    errno = 0;
    out->magnitude = g_ascii_strtoull (text, NULL, 10);
    if (errno != 0)
      out->kind = IS_FLOAT; /* as a float it may do */
  }
  self->p = p;
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
    return fail (self, number->at, "the number is no value of %s",
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
  if (!take_adjacent (self, '(') || take (self, ')'))
    return TRUE;
  do {
    Operand operand = { 0 };
    if (!parse_operand (self, &operand))
      return FALSE;
    g_array_append_val (operands, operand);
  } while (take (self, ','));
  return expect (self, ')');
}

static gboolean
resolve_sources (Parser *self, const Head *head, GArray *operands, TinyNode **sources)
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
        return fail (self, operand->at, "this number needs a dtype, as in 1:i32");
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
  const char *at = self->p;
  g_auto (Head) head = { 0 };
  g_autoptr (GArray) operands = g_array_new (FALSE, FALSE, sizeof (Operand));
  if (self->depth == MAX_DEPTH)
    return fail (self, at, "nested more than %d deep", MAX_DEPTH);
  self->depth++;
  if (!parse_head (self, &head) || !parse_sources (self, operands))
    return FALSE;
  self->depth--;
  g_autofree TinyNode **sources = g_new (TinyNode *, operands->len + 1);
  if (!resolve_sources (self, &head, operands, sources))
    return FALSE;
  const TinyInts *ints = NULL;
  if (head.ints != NULL)
    ints = tiny_graph_ints (self->graph, (gint64 *) (gpointer) head.ints->data, head.ints->len);
  if (head.op == TINY_OP_RANGE && ++self->n_ranges > MAX_RANGES)
    return fail (self, at, "more than %d ranges", MAX_RANGES);
  g_autofree char *why = tiny_check_node (head.op, head.dtype, head.lanes, operands->len,
                                          sources, head.arg, ints, head.text);
  if (why != NULL)
    return fail (self, at, "%s: %s", tiny_op_infos[head.op].text, why);
  out->node = tiny_node_new (self->graph, head.op, head.dtype, head.lanes, operands->len,
                             sources, head.arg, ints, head.text);
  return TRUE;
}

/* A word, or several with dots between them. */
static gsize
name_length (const char *p)
{
  gsize n = word_length (p), more;
  while (n > 0 && p[n] == '.' && (more = word_length (p + n + 1)) > 0)
    n += more + 1;
  return n;
}

gboolean
tiny_text_is_name (const char *name)
{
  gsize n = strlen (name);
  return n > 0 && name_length (name) == n && strspn (name, "0123456789") < n;
}

static gboolean
parse_name (Parser *self, char **out)
{
  self->p++; /* % */
  gsize n = name_length (self->p);
  if (n == 0)
    return fail (self, self->p, "a name is missing after %%");
  *out = g_strndup (self->p, n);
  self->p += n;
  return TRUE;
}

static gboolean
parse_reference (Parser *self, Operand *out)
{
  g_autofree char *name = NULL;
  const char *at = self->p;
  if (!parse_name (self, &name))
    return FALSE;
  out->node = g_hash_table_lookup (self->names, name);
  return out->node != NULL || fail (self, at, "%%%s is not defined above", name);
}

static gboolean
parse_operand (Parser *self, Operand *out)
{
  skip_space (self);
  out->at = self->p;
  if (*self->p == '%')
    return parse_reference (self, out);
  gsize n = word_length (self->p);
  gboolean is_number = g_ascii_isdigit (*self->p) || *self->p == '-' || *self->p == '.'
                       || word_is (self->p, n, "true") || word_is (self->p, n, "false")
                       || word_is (self->p, n, "inf") || word_is (self->p, n, "nan");
  if (!is_number) {
    char buffer[24];
    if (n == 0)
      return fail (self, self->p, "expected an op, found %s", found (self->p, buffer));
    return parse_call (self, out);
  }
  if (!parse_literal (self, out))
    return FALSE;
  if (*self->p != ':')
    return TRUE;
  self->p++;
  TinyDType dtype;
  guint lanes;
  return parse_type (self, &dtype, &lanes) && resolve (self, out, dtype, lanes);
}

/* "[%name =] expression", up to the end of the line. */
static gboolean
parse_statement (Parser *self, TinyNode **out)
{
  g_autofree char *name = NULL;
  const char *at = self->p;
  Operand value = { 0 };
  if (*at == '%') {
    if (!parse_name (self, &name))
      return FALSE;
    if (!take (self, '=')) {
      g_clear_pointer (&name, g_free);
      self->p = at;
    } else if (g_hash_table_contains (self->names, name)) {
      return fail (self, at, "%%%s is defined twice", name);
    }
  }
  if (!parse_operand (self, &value))
    return FALSE;
  if (value.node == NULL) {
    if (value.kind != IS_BOOL)
      return fail (self, value.at, "this number needs a dtype, as in 1:i32");
    if (!resolve (self, &value, TINY_DTYPE_BOOL, 1))
      return FALSE;
  }
  *out = value.node;
  if (name != NULL)
    g_hash_table_insert (self->names, g_steal_pointer (&name), value.node);
  const char *end = self->p;
  skip_space (self);
  char buffer[24];
  if (*self->p != 0 && memchr (end, '\n', (gsize) (self->p - end)) == NULL)
    return fail (self, self->p, "expected a new line, found %s", found (self->p, buffer));
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
  g_autoptr (GHashTable) names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  Parser self = { .graph = graph, .start = text, .p = text, .names = names, .error = error };
  TinyNode *root = NULL;
  skip_space (&self);
  while (*self.p != 0)
    if (!parse_statement (&self, &root))
      return NULL;
  if (root == NULL)
    fail (&self, self.p, "there is no statement");
  else
    *out_names = g_steal_pointer (&names);
  return root;
}
