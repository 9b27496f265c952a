/* SPDX-License-Identifier: MIT
 *
 * tiny-print.c: writes the text form.
 *
 * A node gets a statement of its own, numbered in topological order, unless it is a constant (a
 * literal) or an elementwise op with one user and a short text: those stand inside their user. */
#include "ir/tiny-text.h"

#include <math.h>
#include <string.h>

#include "ir/tiny-check.h"
#include "ir/tiny-eval.h"
#include "ir/tiny-text-private.h"

enum { MAX_INLINE = 56 };

const char *
tiny_text_print_float (TinyDType dtype, double value, char *buffer)
{
  if (isnan (value))
    return strcpy (buffer, "nan");
  if (isinf (value))
    return strcpy (buffer, value < 0 ? "-inf" : "inf");
  if (value == trunc (value) && fabs (value) < 1e15)
    return g_ascii_formatd (buffer, 30, "%.1f", value);
  gint64 bits = tiny_eval_from_double (dtype, value);
  for (int digits = 1; digits <= 17; digits++) {
    char format[8];
    g_snprintf (format, sizeof format, "%%.%dg", digits);
    g_ascii_formatd (buffer, 30, format, value);
    if (tiny_eval_from_double (dtype, g_ascii_strtod (buffer, NULL)) == bits)
      break;
  }
  if (strpbrk (buffer, ".e") == NULL)
    strcat (buffer, ".0");
  return buffer;
}

gboolean
tiny_text_infer (TinyOp op,
                 TinyDType dtype,
                 guint lanes,
                 guint i,
                 guint n,
                 TinyNode *const *sources,
                 TinyDType *out_dtype,
                 guint *out_lanes)
{
  const TinyNode *model = NULL; /* the source that says the dtype */
  gboolean is_bool = FALSE, is_index = FALSE;
  *out_dtype = dtype;
  *out_lanes = lanes;
  switch (tiny_op_infos[op].op_class) {
  case TINY_OP_CLASS_UNARY:
  case TINY_OP_CLASS_BINARY:
  case TINY_OP_CLASS_MOVEMENT:
    return TRUE;
  case TINY_OP_CLASS_TENSOR:
    return op != TINY_OP_GATHER || i == 0;
  case TINY_OP_CLASS_TERNARY:
    is_bool = op == TINY_OP_WHERE && i == 0;
    break;
  case TINY_OP_CLASS_COMPARE:
    if (n != 2)
      return FALSE;
    model = sources[1 - i];
    break;
  case TINY_OP_CLASS_MEMORY:
    if (i == 0)
      return FALSE;
    is_index = i == 1 && n > 1 && !(op == TINY_OP_STORE && n == 2);
    is_bool = i == (op == TINY_OP_LOAD ? 2 : 3);
    if (is_index || is_bool)
      *out_lanes = 1;
    else if (op == TINY_OP_STORE) {
      model = sources[0];
      if (n == 2 && model != NULL)
        *out_lanes = model->lanes;
    }
    if (op == TINY_OP_STORE && !is_index && !is_bool && model == NULL)
      return FALSE;
    break;
  case TINY_OP_CLASS_REDUCE:
    return i == 0;
  default:
    if (op == TINY_OP_AFTER)
      return i == 0;
    if (op == TINY_OP_IF && i == 0)
      is_bool = TRUE;
    else if (op != TINY_OP_VECTOR && !(op == TINY_OP_RANGE && i == 0))
      return FALSE;
    *out_lanes = 1;
  }
  if (is_bool)
    *out_dtype = TINY_DTYPE_BOOL;
  else if (is_index)
    *out_dtype = TINY_DTYPE_INDEX;
  else if (tiny_op_infos[op].op_class == TINY_OP_CLASS_COMPARE || model != NULL) {
    if (model == NULL || model->op == TINY_OP_CONST)
      return FALSE;
    *out_dtype = model->dtype;
  }
  return TRUE;
}

static void
append_type (GString *out, TinyDType dtype, guint lanes)
{
  g_string_append (out, tiny_dtype_infos[dtype].text);
  if (lanes != 1)
    g_string_append_printf (out, "x%u", lanes);
}

static void
append_string (GString *out, const char *text)
{
  gboolean valid = g_utf8_validate (text, -1, NULL);
  g_string_append_c (out, '"');
  for (const guchar *p = (const guchar *) text; *p != 0; p++) {
    if (*p == '"' || *p == '\\')
      g_string_append_printf (out, "\\%c", *p);
    else if (*p == '\n')
      g_string_append (out, "\\n");
    else if (*p < 0x20 || *p == 0x7f || (*p >= 0x80 && !valid))
      g_string_append_printf (out, "\\x%02x", *p);
    else
      g_string_append_c (out, (char) *p);
  }
  g_string_append_c (out, '"');
}

/* Begins the next attribute. */
static void
append_name (GString *out, gboolean *any, const char *name)
{
  g_string_append (out, *any ? ", " : "{");
  g_string_append (out, name);
  g_string_append_c (out, '=');
  *any = TRUE;
}

static void
append_arg (GString *out, gboolean *any, const TinyOpRule *rule, gint64 arg)
{
  if (rule->arg != NULL && rule->arg_style == TINY_ARG_RANGE && arg >= 0
      && arg >> 32 < TINY_N_RANGE_KINDS) {
    append_name (out, any, rule->arg);
    g_string_append_printf (out, "%u", (guint) (arg & 0xffffffff));
    append_name (out, any, "kind");
    g_string_append (out, tiny_range_kind_to_string (arg >> 32));
  } else if (rule->arg != NULL && rule->arg_style == TINY_ARG_OP && arg >= 0
             && arg < TINY_N_OPS) {
    append_name (out, any, rule->arg);
    g_string_append (out, tiny_op_infos[arg].text);
  } else if (rule->arg != NULL || arg != 0) {
    append_name (out, any,
                 rule->arg != NULL && rule->arg_style == TINY_ARG_NUMBER ? rule->arg : "arg");
    g_string_append_printf (out, "%" G_GINT64_FORMAT, arg);
  }
}

static void
append_ints (GString *out, gboolean *any, const TinyOpRule *rule, const TinyInts *ints)
{
  if (ints == NULL)
    return;
  if (rule->ints != NULL && strchr (rule->ints, ',') != NULL) {
    g_auto (GStrv) names = g_strsplit (rule->ints, ",", -1);
    if (g_strv_length (names) == ints->n) {
      for (guint i = 0; i < ints->n; i++) {
        append_name (out, any, names[i]);
        g_string_append_printf (out, "%" G_GINT64_FORMAT, ints->v[i]);
      }
      return;
    }
  }
  gboolean named = rule->ints != NULL && strchr (rule->ints, ',') == NULL;
  append_name (out, any, named ? rule->ints : "ints");
  for (guint i = 0; i < ints->n; i++)
    g_string_append_printf (out, "%s%" G_GINT64_FORMAT, i > 0 ? ", " : "[", ints->v[i]);
  g_string_append (out, ints->n > 0 ? "]" : "[]");
}

/* "op.dtype{attributes}" */
static void
append_head (GString *out, const TinyNode *node)
{
  const TinyOpRule *rule = &tiny_op_rules[node->op];
  gboolean any = FALSE;
  g_string_append (out, tiny_op_infos[node->op].text);
  if (node->dtype != TINY_DTYPE_VOID || node->lanes != 1) {
    g_string_append_c (out, '.');
    append_type (out, node->dtype, node->lanes);
  }
  append_arg (out, &any, rule, node->arg);
  append_ints (out, &any, rule, node->ints);
  if (node->text != NULL) {
    append_name (out, &any, rule->text != NULL ? rule->text : "text");
    append_string (out, node->text);
  }
  if (any)
    g_string_append_c (out, '}');
}

/* A constant that its value, dtype and lanes say all about. */
static gboolean
is_literal (const TinyNode *node)
{
  return node->op == TINY_OP_CONST && node->n_sources == 0 && node->ints == NULL
         && node->text == NULL && node->dtype != TINY_DTYPE_VOID
         && tiny_eval_is_canonical (node->dtype, node->arg);
}

/* @typed: with its dtype behind it. */
static void
append_literal (GString *out, const TinyNode *node, gboolean typed)
{
  char buffer[32];
  if (tiny_dtype_is_float (node->dtype))
    g_string_append (
        out, tiny_text_print_float (node->dtype, tiny_eval_to_double (node->arg), buffer));
  else if (node->dtype == TINY_DTYPE_BOOL)
    g_string_append (out, node->arg ? "true" : "false");
  else if (node->dtype == TINY_DTYPE_U64)
    g_string_append_printf (out, "%" G_GUINT64_FORMAT, (guint64) node->arg);
  else
    g_string_append_printf (out, "%" G_GINT64_FORMAT, node->arg);
  if (typed) {
    g_string_append_c (out, ':');
    append_type (out, node->dtype, node->lanes);
  }
}

static void
append_source_literal (GString *out, const TinyNode *user, guint i)
{
  const TinyNode *node = user->sources[i];
  TinyDType dtype;
  guint lanes;
  gboolean inferred = tiny_text_infer (user->op, user->dtype, user->lanes, i, user->n_sources,
                                       user->sources, &dtype, &lanes);
  if (!inferred) {
    dtype = TINY_DTYPE_VOID;
    lanes = 1;
  }
  gboolean plain_bool = node->dtype == TINY_DTYPE_BOOL && dtype == TINY_DTYPE_VOID;
  append_literal (out, node, node->lanes != lanes || (node->dtype != dtype && !plain_bool));
}

static gboolean
stands_inside (const TinyNode *node, guint n_uses, const char *text)
{
  return n_uses == 1 && tiny_op_is_elementwise (node->op) && strlen (text) <= MAX_INLINE;
}

char *
tiny_graph_print (TinyGraph *graph, TinyNode *root)
{
  const TinyNodeMap none = { 0 };
  return tiny_graph_print_named (graph, root, &none);
}

char *
tiny_graph_print_named (TinyGraph *graph, TinyNode *root, const TinyNodeMap *names)
{
  GString *out = g_string_new (NULL);
  if (is_literal (root)) {
    append_literal (out, root, TRUE);
    g_string_append_c (out, '\n');
    return g_string_free (out, FALSE);
  }
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &root, 1);
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free);
  g_auto (TinyNodeMap) uses = { 0 }, map = { 0 };
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    tiny_node_map_set (&uses, node, GUINT_TO_POINTER (0));
    for (guint s = 0; s < node->n_sources; s++) {
      guint n = GPOINTER_TO_UINT (tiny_node_map_get (&uses, node->sources[s]));
      tiny_node_map_set (&uses, node->sources[s], GUINT_TO_POINTER (n + 1));
    }
  }
  guint n_named = 0;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    const char *name = tiny_node_map_get (names, node);
    if (is_literal (node) && name == NULL)
      continue;
    GString *text = g_string_new (NULL);
    if (is_literal (node))
      append_literal (text, node, TRUE);
    else
      append_head (text, node);
    for (guint s = 0; s < node->n_sources; s++) {
      g_string_append (text, s == 0 ? "(" : ", ");
      if (is_literal (node->sources[s]) && !tiny_node_map_get (names, node->sources[s]))
        append_source_literal (text, node, s);
      else
        g_string_append (text, tiny_node_map_get (&map, node->sources[s]));
    }
    if (node->n_sources > 0)
      g_string_append_c (text, ')');
    if (node == root) {
      g_string_append_printf (out, "%s\n", text->str);
    } else if (name != NULL) {
      g_string_append_printf (out, "%%%s = %s\n", name, text->str);
      g_string_printf (text, "%%%s", name);
    } else if (!stands_inside (node, GPOINTER_TO_UINT (tiny_node_map_get (&uses, node)),
                               text->str)) {
      g_string_append_printf (out, "%%%u = %s\n", n_named, text->str);
      g_string_printf (text, "%%%u", n_named++);
    }
    char *reference = g_string_free (text, FALSE);
    g_ptr_array_add (texts, reference);
    tiny_node_map_set (&map, node, reference);
  }
  return g_string_free (out, FALSE);
}

static void
append_shallow (GString *out, const TinyNode *node, guint depth)
{
  if (is_literal (node)) {
    append_literal (out, node, TRUE);
    return;
  }
  append_head (out, node);
  for (guint i = 0; i < node->n_sources; i++) {
    g_string_append (out, i == 0 ? "(" : ", ");
    if ((depth == 0 && node->sources[i]->n_sources > 0) || i == 6) {
      g_string_append (out, "…");
      if (i == 6)
        break;
    } else {
      append_shallow (out, node->sources[i], depth > 0 ? depth - 1 : 0);
    }
  }
  if (node->n_sources > 0)
    g_string_append_c (out, ')');
}

char *
tiny_node_to_string (const TinyNode *node)
{
  GString *out = g_string_new (NULL);
  append_shallow (out, node, 2);
  return g_string_free (out, FALSE);
}
