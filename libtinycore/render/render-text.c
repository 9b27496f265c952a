/* SPDX-License-Identifier: MIT
 *
 * render-text.c: templates filled in, statements, and constants as literals that read back as the
 * same value. */
#include <math.h>
#include <string.h>

#include "base/tiny-float.h"
#include "ir/tiny-dtype.h"
#include "render/render-private.h"

/* ---- templates ---- */
static gboolean
takes_word (const char **at, const char *word)
{
  gsize n = strlen (word);
  if (strncmp (*at, word, n) != 0)
    return FALSE;
  *at += n;
  return TRUE;
}

static void
append (GString *out, const char *text)
{
  g_string_append (out, text != NULL ? text : "");
}

char *
render_template (const char *template, const RenderArgs *args)
{
  if (template == NULL)
    return NULL;
  GString *out = g_string_new ("");
  for (const char *at = template; *at != '\0';) {
    if (*at != '$') {
      g_string_append_c (out, *at++);
      continue;
    }
    at++;
    if (takes_word (&at, "name")) {
      append (out, args->name);
      continue;
    }
    if (takes_word (&at, "params")) {
      append (out, args->params);
      continue;
    }
    char letter = *at != '\0' ? *at++ : '$';
    switch (letter) {
    case '0':
    case '1':
    case '2':
    case '3':
      append (out, args->texts[letter - '0']);
      break;
    case 't':
      append (out, args->type);
      break;
    case 'T':
      append (out, args->scalar_type);
      break;
    case 's':
      append (out, args->source_type);
      break;
    case 'n':
      g_string_append_printf (out, "%u", args->lanes);
      break;
    case 'a':
      g_string_append_printf (out, "%" G_GINT64_FORMAT, args->arg);
      break;
    case 'x':
      g_string_append_c (out, "xyz"[args->arg % 3]);
      break;
    default:
      g_string_append_c (out, letter);
      break; /* "$$" is a dollar */
    }
  }
  return g_string_free (out, FALSE);
}

/* ---- statements and choices: the dialect's spelling, or C's ---- */
static char *
spell_plain (const char *template,
             const char *plain,
             const char *type,
             const char *const texts[3])
{
  RenderArgs args
      = { .texts = { texts[0], texts[1], texts[2] }, .type = type, .scalar_type = type };
  return render_template (template != NULL ? template : plain, &args);
}

char *
render_constant (const TinyDialect *dialect,
                 const char *type,
                 const char *name,
                 const char *value)
{
  const char *const texts[3] = { name, value };
  return spell_plain (dialect->constant, "const $t $0 = $1", type, texts);
}

char *
render_mutable (const TinyDialect *dialect, const char *type, const char *name)
{
  const char *const texts[3] = { name };
  return spell_plain (dialect->mutable_open, "$t $0", type, texts);
}

char *
render_loop (const TinyDialect *dialect, const char *type, const char *name, const char *bound)
{
  const char *const texts[3] = { name, bound };
  return spell_plain (dialect->loop, "for ($t $0 = 0; $0 < $1; $0++)", type, texts);
}

char *
render_choice (const TinyDialect *dialect, const char *gate, const char *yes, const char *no)
{
  const char *const texts[3] = { gate, yes, no };
  return spell_plain (dialect->choose, "($0 ? $1 : $2)", NULL, texts);
}

char *
render_truth (const TinyDialect *dialect,
              const TinyLinear *linear,
              const TinyInstr *load,
              char *text)
{
  const char *scalar = dialect->types[TINY_DTYPE_BOOL];
  const char *template = load->lanes > 1 ? dialect->vector_ops[TINY_INSTR_CAST] : NULL;
  template = template != NULL ? template : dialect->ops[TINY_INSTR_CAST];
  if (load->dtype != TINY_DTYPE_BOOL || template == NULL
      || render_source (linear, load, 0)->op != TINY_INSTR_PARAM)
    return text;
  RenderArgs args = { .scalar_type = scalar, .lanes = load->lanes };
  g_autofree char *vector
      = load->lanes > 1 ? render_template (dialect->vector_type, &args) : NULL;
  args.type = args.source_type = vector != NULL ? vector : scalar;
  args.texts[0] = text;
  char *truth = render_template (template, &args);
  g_free (text);
  return truth;
}

/* ---- literals ---- */
static char *
cast_to (const TinyDialect *dialect, TinyDType dtype, const char *text)
{
  const char *type = dialect->types[dtype];
  RenderArgs args = { .texts = { text }, .type = type, .scalar_type = type };
  return type != NULL ? render_template (dialect->ops[TINY_INSTR_CAST], &args) : NULL;
}

static char *
integer_literal (const TinyDialect *dialect, TinyDType dtype, gint64 value)
{
  const char *suffix = dialect->suffix[dtype] != NULL ? dialect->suffix[dtype] : "";
  if (dtype == TINY_DTYPE_BOOL) {
    const char *truth = dialect->truth[value != 0];
    return g_strdup (truth != NULL ? truth : value != 0 ? "1" : "0");
  }
  if (dtype == TINY_DTYPE_U64)
    return g_strdup_printf ("%" G_GUINT64_FORMAT "%s", (guint64) value, suffix);
  /* The least number has no literal: its size alone is too large. */
  if (dtype == TINY_DTYPE_I64 && value == G_MININT64)
    return g_strdup_printf ("(-%" G_GINT64_FORMAT "%s - 1)", G_MAXINT64, suffix);
  if (dtype == TINY_DTYPE_I32 && value == G_MININT32)
    return g_strdup_printf ("(-%d%s - 1)", G_MAXINT32, suffix);
  g_autofree char *plain = g_strdup_printf (
      value < 0 ? "(%" G_GINT64_FORMAT "%s)" : "%" G_GINT64_FORMAT "%s", value, suffix);
  if (tiny_dtype_get_n_bytes (dtype) >= 4)
    return g_steal_pointer (&plain);
  return cast_to (dialect, dtype, plain);
}

static char *
bits_literal (const TinyDialect *dialect, TinyDType dtype, double value)
{
  static const TinyDType by_size[] = {
    [1] = TINY_DTYPE_U8, [2] = TINY_DTYPE_U16, [4] = TINY_DTYPE_U32, [8] = TINY_DTYPE_U64
  };
  TinyDType bits = by_size[tiny_dtype_get_n_bytes (dtype)];
  const char *type = dialect->types[dtype];
  g_autofree char *text
      = integer_literal (dialect, bits, (gint64) tiny_float_to_bits (dtype, value));
  RenderArgs args = { .texts = { text },
                      .type = type,
                      .scalar_type = type,
                      .source_type = dialect->types[bits],
                      .lanes = 1 };
  if (type == NULL || text == NULL)
    return NULL;
  return render_template (dialect->ops[TINY_INSTR_BITCAST], &args);
}

/* inf, neg_inf and nan are spelt for f32 and cast for f64; a small float has its bits. */
static char *
special_literal (const TinyDialect *dialect, TinyDType dtype, double value)
{
  const char *text = isnan (value) ? dialect->nan : value > 0 ? dialect->inf : dialect->neg_inf;
  if (text == NULL
      || (tiny_dtype_get_n_bytes (dtype) < 4 && dialect->types[TINY_DTYPE_U16] != NULL))
    return bits_literal (dialect, dtype, value);
  return dtype == TINY_DTYPE_F32 ? g_strdup (text) : cast_to (dialect, dtype, text);
}

static char *
float_literal (const TinyDialect *dialect, TinyDType dtype, double value)
{
  const char *suffix = dialect->suffix[dtype];
  if (isnan (value) || isinf (value))
    return special_literal (dialect, dtype, value);
  if (suffix == NULL && tiny_dtype_get_n_bytes (dtype) < 4)
    return bits_literal (dialect, dtype, value);
  if (value == 0 && dtype == TINY_DTYPE_F32 && dialect->zero != NULL)
    return g_strdup_printf (signbit (value) ? "(-%s)" : "%s", dialect->zero);
  /* The shortest that reads back as the same number. */
  char text[64];
  for (guint digits = 6; digits <= 17; digits++) {
    char format[8];
    g_snprintf (format, sizeof format, "%%.%ug", digits);
    g_ascii_formatd (text, sizeof text, format, value);
    if (tiny_float_round (dtype, g_ascii_strtod (text, NULL)) == value)
      break;
  }
  const char *point = strpbrk (text, ".e") == NULL ? ".0" : "";
  const char *format = signbit (value) ? "(%s%s%s)" : "%s%s%s";
  return g_strdup_printf (format, text, point, suffix != NULL ? suffix : "");
}

char *
render_literal (const TinyDialect *dialect, TinyDType dtype, gint64 arg)
{
  double value;
  if (!tiny_dtype_is_float (dtype))
    return integer_literal (dialect, dtype, arg);
  memcpy (&value, &arg, sizeof value);
  return float_literal (dialect, dtype, value);
}
