/* SPDX-License-Identifier: MIT
 *
 * text.c: optimisations and linear programs as text.
 *
 * Optimisations read "lanes(1,16) upcast(0,6)", no optimisations "none" or nothing;
 * tiny_opts_from_string() takes what tiny_opts_to_string() gives. A linear program is one instruction a line,
 * indented by its loops. */
#include "codegen/codegen-private.h"

#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-memory.h"

static const char *const opt_names[TINY_N_OPTS] = { "lanes", "upcast", "unroll", "pad",
                                                    "grid",  "swap",   "split",  "stage",
                                                    "merge", "group" };

char *
tiny_opts_to_string (const TinyOpt *opts, guint n)
{
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < n; i++)
    g_string_append_printf (text, "%s%s(%u,%" G_GINT64_FORMAT ")", i > 0 ? " " : "",
                            opt_names[opts[i].kind], opts[i].axis, opts[i].amount);
  return g_string_free (text, FALSE);
}

static gboolean
parse_opt (const char *word, TinyOpt *out)
{
  const char *open = strchr (word, '(');
  for (guint kind = 0; kind < TINY_N_OPTS && open != NULL; kind++) {
    gsize n = strlen (opt_names[kind]);
    if ((gsize) (open - word) != n || memcmp (word, opt_names[kind], n) != 0)
      continue;
    char *end;
    guint64 axis = g_ascii_strtoull (open + 1, &end, 10);
    if (end == open + 1 || *end != ',' || axis > G_MAXUINT16)
      return FALSE;
    const char *number = end + 1;
    gint64 amount = g_ascii_strtoll (number, &end, 10);
    *out = (TinyOpt){ kind, (guint) axis, amount };
    return end != number && end[0] == ')' && end[1] == 0;
  }
  return FALSE;
}

TinyOpt *
tiny_opts_from_string (const char *text, guint *out_n, GError **error)
{
  static const char space[] = " \t\n";
  enum { LONGEST = 80 };
  gsize n_words = 0;
  for (const char *at = text; *(at += strspn (at, space)) != 0; at += strcspn (at, space))
    n_words++;
  g_autofree TinyOpt *opts = tiny_memory_try (n_words * sizeof *opts, "optimisations", error);
  guint n = 0;
  for (const char *at = text; opts != NULL && *(at += strspn (at, space)) != 0;) {
    char word[LONGEST + 1] = { 0 };
    const gsize length = strcspn (at, space);
    memcpy (word, at, MIN (length, LONGEST));
    at += length;
    if (length > LONGEST) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                   "optimisations: wanted kind(axis,amount), found a word of %" G_GSIZE_FORMAT
                   " bytes",
                   length);
      return NULL;
    }
    if (strcmp (word, "none") != 0 && !parse_opt (word, &opts[n++])) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_FORMAT,
                   "optimisations: wanted kind(axis,amount), found \"%s\"", word);
      return NULL;
    }
  }
  *out_n = n;
  return g_steal_pointer (&opts);
}

/* ---- linear programs ---- */
static const char *
instr_name (guint op)
{
  for (guint i = 0; i < TINY_N_OPS; i++)
    if (tiny_op_infos[i].instr == (TinyInstrOp) op)
      return tiny_op_infos[i].text;
  return "?";
}

static void
append_value (GString *text, const TinyInstr *instr)
{
  if (instr->op == TINY_INSTR_CONST && tiny_dtype_is_float (instr->dtype)) {
    double value;
    memcpy (&value, &instr->arg, sizeof value);
    g_string_append_printf (text, " %.17g", value);
  } else if (instr->op == TINY_INSTR_CONST || instr->op == TINY_INSTR_PARAM
             || instr->op == TINY_INSTR_VARIABLE || instr->op == TINY_INSTR_GRID
             || instr->op == TINY_INSTR_GROUP || instr->op == TINY_INSTR_LOCAL
             || instr->op == TINY_INSTR_REGISTER || instr->op == TINY_INSTR_EXTRACT) {
    g_string_append_printf (text, " %" G_GINT64_FORMAT, instr->arg);
  }
}

char *
tiny_linear_to_string (const TinyLinear *linear)
{
  GString *text = g_string_new (NULL);
  guint depth = 0;
  g_string_append_printf (text, "// stage: linear\n// %s: grid %u %u %u, ", linear->name,
                          linear->grid[0], linear->grid[1], linear->grid[2]);
  if (linear->group[0] * linear->group[1] * linear->group[2] > 1)
    g_string_append_printf (text, "group %u %u %u, ", linear->group[0], linear->group[1],
                            linear->group[2]);
  g_string_append_printf (text, "%u parameters\n", linear->n_params);
  for (guint i = 0; i < linear->n_instrs; i++) {
    const TinyInstr *instr = &linear->instrs[i];
    if (instr->op == TINY_INSTR_END || instr->op == TINY_INSTR_ENDIF)
      depth--;
    g_string_append_printf (text, "%*s%%%u = %s.%s", (int) (2 * depth), "", i,
                            instr_name (instr->op), tiny_dtype_to_string (instr->dtype));
    if (instr->lanes > 1)
      g_string_append_printf (text, "x%u", instr->lanes);
    append_value (text, instr);
    for (guint s = 0; s < instr->n_sources; s++)
      g_string_append_printf (text, "%s%%%u", s > 0 ? ", " : " ",
                              linear->sources[instr->sources + s]);
    g_string_append_c (text, '\n');
    if (instr->op == TINY_INSTR_RANGE || instr->op == TINY_INSTR_IF)
      depth++;
  }
  return g_string_free (text, FALSE);
}
