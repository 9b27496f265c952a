/* SPDX-License-Identifier: MIT
 *
 * tiny-rule-text.c: reads the text of one side of a rule into parts.
 *
 * A recursive descent over a line of a table: depth is that of the text, which is ours. */
#include "rewrite/tiny-rule-text.h"

#include <string.h>

typedef struct {
  const char *start, *at;
  gboolean is_result;
  TinyPattern *out;
  char *error;
} Reader;

static gboolean
fail (Reader *r, const char *what)
{
  if (r->error == NULL)
    r->error = g_strdup_printf ("%s at column %d of \"%s\"", what, (int) (r->at - r->start) + 1,
                                r->start);
  return FALSE;
}

static void
skip_spaces (Reader *r)
{
  while (*r->at == ' ')
    r->at++;
}

static gboolean
take (Reader *r, const char *token)
{
  skip_spaces (r);
  gsize n = strlen (token);
  if (strncmp (r->at, token, n) != 0)
    return FALSE;
  r->at += n;
  return TRUE;
}

guint32
tiny_dtype_class_from_string (const char *text, gsize length)
{
  static const struct {
    const char *name, *kinds;
    gboolean only_index;
  } classes[] = {
    { "index", "I", TRUE }, { "int", "I" },  { "uint", "U" },  { "integer", "IU" },
    { "bits", "BIU" },      { "bool", "B" }, { "float", "F" }, { "any", "BIUFN" },
  };
  guint32 mask = 0;
  for (guint i = 0; i < G_N_ELEMENTS (classes); i++) {
    if (strlen (classes[i].name) != length || memcmp (classes[i].name, text, length) != 0)
      continue;
    for (guint d = 0; d < TINY_N_DTYPES; d++)
      if (strchr (classes[i].kinds, tiny_dtype_infos[d].kind) != NULL
          && (!classes[i].only_index || d == TINY_DTYPE_INDEX))
        mask |= 1u << d;
  }
  return mask;
}

static gboolean
read_class (Reader *r, guint32 *out)
{
  const char *from = r->at;
  while (g_ascii_isalpha (*r->at))
    r->at++;
  *out = tiny_dtype_class_from_string (from, (gsize) (r->at - from));
  return *out != 0 || fail (r, "no such class of dtypes");
}

static TinyPart *
add_part (Reader *r, TinyPartKind kind, guint8 *out_number)
{
  if (r->out->n == TINY_RULE_MAX_PARTS) {
    fail (r, "too many parts");
    return NULL;
  }
  TinyPart *part = &r->out->parts[r->out->n];
  *part
      = (TinyPart){ .kind = kind, .var = -1, .arg = -1, .dtypes = G_MAXUINT32, .type_var = -1 };
  *out_number = (guint8) r->out->n++;
  return part;
}

static gboolean
read_literal (Reader *r, guint8 *out)
{
  TinyPart *part = add_part (r, TINY_PART_LITERAL, out);
  if (part == NULL)
    return FALSE;
  if (take (r, "true")) {
    part->value = 1;
    return TRUE;
  }
  if (take (r, "false"))
    return TRUE;
  char *end;
  part->value = g_ascii_strtoll (r->at, &end, 10);
  if (end == r->at)
    return fail (r, "expected a number");
  if (*end == '.') {
    double value = g_ascii_strtod (r->at, &end);
    part->is_float = TRUE;
    memcpy (&part->value, &value, sizeof value);
  }
  r->at = end;
  return TRUE;
}

/* ---- computed constants ---- */
static gboolean read_sum (Reader *r, guint8 *out);

static gboolean
combine (Reader *r, char operator, guint8 x, guint8 y, guint8 *out)
{
  TinyPart *part = add_part (r, TINY_PART_COMPUTE, out);
  if (part == NULL)
    return FALSE;
  part->op = (guint8) operator;
  part->n_sources = 2;
  part->sources[0] = x;
  part->sources[1] = y;
  return TRUE;
}

static gboolean
read_factor (Reader *r, guint8 *out)
{
  guint8 x, y;
  if (take (r, "("))
    return read_sum (r, out) && (take (r, ")") || fail (r, "expected )"));
  gboolean is_max = take (r, "max(");
  if (is_max || take (r, "min("))
    return read_sum (r, &x) && (take (r, ",") || fail (r, "expected ,")) && read_sum (r, &y)
           && (take (r, ")") || fail (r, "expected )"))
           && combine (r, is_max ? 'M' : 'm', x, y, out);
  skip_spaces (r);
  if (!g_ascii_islower (*r->at))
    return read_literal (r, out);
  TinyPart *part = add_part (r, TINY_PART_CONST, out);
  if (part == NULL)
    return FALSE;
  part->var = (gint8) (*r->at++ - 'a');
  return TRUE;
}

static gboolean
read_term (Reader *r, guint8 *out)
{
  guint8 x, y;
  if (!read_factor (r, &x))
    return FALSE;
  for (skip_spaces (r); *r->at == '*' || *r->at == '/' || *r->at == '%'; skip_spaces (r)) {
    char operator= * r->at++;
    if (!read_factor (r, &y) || !combine (r, operator, x, y, &x))
      return FALSE;
  }
  *out = x;
  return TRUE;
}

static gboolean
read_sum (Reader *r, guint8 *out)
{
  guint8 x, y;
  if (!read_term (r, &x))
    return FALSE;
  for (skip_spaces (r); *r->at == '+' || *r->at == '-'; skip_spaces (r)) {
    char operator= * r->at++;
    if (!read_term (r, &y) || !combine (r, operator, x, y, &x))
      return FALSE;
  }
  *out = x;
  return TRUE;
}

/* ---- expressions ---- */
static gboolean read_part (Reader *r, guint8 *out);

static gboolean
read_sources (Reader *r, TinyPart *part)
{
  for (gboolean first = TRUE; !take (r, ")"); first = FALSE) {
    if (!first && !take (r, ","))
      return fail (r, "expected , or )");
    if (!r->is_result && take (r, "...")) {
      part->open = TRUE;
      return take (r, ")") || fail (r, "expected )");
    }
    if (part->n_sources == TINY_RULE_MAX_SOURCES)
      return fail (r, "too many sources");
    if (!read_part (r, &part->sources[part->n_sources]))
      return FALSE;
    part->n_sources++;
  }
  if (part->op == TINY_N_OPS)
    return TRUE;
  const TinyOpInfo *info = &tiny_op_infos[part->op];
  if (part->n_sources < info->least || (info->most >= 0 && part->n_sources > info->most))
    return fail (r, "wrong number of sources before");
  return TRUE;
}

static gboolean
read_op (Reader *r, const char *name, gsize length, guint8 *out)
{
  TinyOp op = tiny_op_from_string (name, (gssize) length);
  gboolean any = !r->is_result && r->out->n == 0 && length == 3 && memcmp (name, "alu", 3) == 0;
  if (op == TINY_N_OPS && !any)
    return fail (r, "no such op before");
  TinyPart *part = add_part (r, TINY_PART_OP, out);
  if (part == NULL)
    return FALSE;
  part->op = (guint8) op;
  if (*r->at == '{') {
    const char *from = ++r->at;
    while (g_ascii_isalnum (*r->at))
      r->at++;
    part->arg = (int) tiny_op_from_string (from, r->at - from);
    if (part->arg == TINY_N_OPS || !take (r, "}"))
      return fail (r, "expected an op in braces");
  }
  if (take (r, ".") && !read_class (r, &part->dtypes))
    return FALSE;
  return take (r, "(") ? read_sources (r, part) : fail (r, "expected (");
}

static gboolean
read_part (Reader *r, guint8 *out)
{
  skip_spaces (r);
  if (r->is_result && take (r, "{"))
    return read_sum (r, out) && (take (r, "}") || fail (r, "expected }"));
  gboolean is_const = take (r, "#");
  const char *name = r->at;
  while (g_ascii_isalnum (*r->at) && (r->at > name || g_ascii_isalpha (*r->at)))
    r->at++;
  gsize length = (gsize) (r->at - name);
  if (length > 1 && !is_const && *r->at != '(' && *r->at != '.' && *r->at != '{')
    r->at = name; /* true, false */
  else if (length > 1 && !is_const)
    return read_op (r, name, length, out);
  if (r->at == name || length > 1)
    return is_const ? fail (r, "expected a letter") : read_literal (r, out);
  if (!g_ascii_islower (*name))
    return fail (r, "expected a small letter");
  TinyPart *part = add_part (r, is_const ? TINY_PART_CONST : TINY_PART_VAR, out);
  if (part == NULL)
    return FALSE;
  part->var = (gint8) (*name - 'a');
  return !take (r, ":") || read_class (r, &part->dtypes);
}

/* ---- dtypes of results ---- */
/* The variable whose dtype part @i has, or -1 where only its user knows. */
static gint8
find_type (const TinyPattern *p, guint i)
{
  const TinyPart *part = &p->parts[i];
  if (part->kind == TINY_PART_VAR || part->kind == TINY_PART_CONST)
    return part->var;
  if (part->kind != TINY_PART_OP || tiny_op_infos[part->op].op_class == TINY_OP_CLASS_COMPARE
      || tiny_op_infos[part->op].op_class == TINY_OP_CLASS_CONVERT)
    return -1;
  for (guint s = part->op == TINY_OP_WHERE ? 1 : 0; s < part->n_sources; s++) {
    gint8 found = find_type (p, part->sources[s]);
    if (found >= 0)
      return found;
  }
  return -1;
}

static gboolean
resolve_types (Reader *r)
{
  TinyPattern *p = r->out;
  for (guint i = 0; i < p->n; i++) {
    TinyPart *part = &p->parts[i];
    TinyOpClass op_class = tiny_op_infos[part->op].op_class;
    if (part->kind != TINY_PART_OP
        || (op_class != TINY_OP_CLASS_COMPARE && op_class != TINY_OP_CLASS_CONVERT))
      continue;
    for (guint s = 0; s < part->n_sources && part->type_var < 0; s++)
      part->type_var = find_type (p, part->sources[s]);
    if (part->type_var < 0)
      return fail (r, "the dtype of a comparison's or cast's operands does not follow");
  }
  return TRUE;
}

char *
tiny_pattern_parse (const char *text, gboolean is_result, TinyPattern *out)
{
  Reader r = { text, text, is_result, out, NULL };
  guint8 root;
  out->n = 0;
  if (!read_part (&r, &root))
    return r.error;
  skip_spaces (&r);
  if (*r.at != 0)
    fail (&r, "unexpected text");
  else if (is_result)
    resolve_types (&r);
  if (r.error == NULL && root != 0) {
    /* Computed constants come after their operands: exchange. */
    TinyPart first = out->parts[0];
    out->parts[0] = out->parts[root];
    out->parts[root] = first;
    for (guint i = 0; i < out->n; i++)
      for (guint s = 0; s < out->parts[i].n_sources; s++)
        if (out->parts[i].sources[s] == 0)
          out->parts[i].sources[s] = root;
  }
  return r.error;
}
