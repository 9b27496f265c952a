/* SPDX-License-Identifier: MIT
 *
 * factor.c: one table of what the operations of linear algebra are given and give. */
#include "schedule/factor.h"

#include <string.h>

enum { MAX_OPERANDS = 4, NO_AXIS = 0, N_TEXT_EXTENTS = TINY_FACTOR_RIGHT + 1 };

/* An operand's role, the axes of its rows and columns, and its dtype where that is not the operation's. */
typedef struct {
  guint8 role, row, column, dtype;
} Operand;

#define ROW    TINY_FACTOR_ROW
#define COLUMN TINY_FACTOR_COLUMN
#define LEFT   TINY_FACTOR_LEFT
#define RIGHT  TINY_FACTOR_RIGHT
#define VALUE  TINY_FACTOR_VALUE
static const struct {
  const char *name;
  guint n_outputs, flags;
  gboolean is_square;
  Operand operands[MAX_OPERANDS]; /* outputs first; those after the last are zeros */
} kinds[] = {
  { "cholesky",
    1,
    0,
    TRUE,
    { { TINY_ROLE_OUTPUT, ROW, COLUMN }, { TINY_ROLE_A, ROW, COLUMN } } },
  { "lu",
    3,
    0,
    FALSE,
    { { TINY_ROLE_OUTPUT, ROW, COLUMN },
      { TINY_ROLE_OUTPUT2, VALUE, NO_AXIS, TINY_DTYPE_I32 },
      { TINY_ROLE_OUTPUT3, ROW, NO_AXIS, TINY_DTYPE_I32 },
      { TINY_ROLE_A, ROW, COLUMN } } },
  { "triangular",
    1,
    TINY_OPERATION_UPPER | TINY_OPERATION_UNIT,
    TRUE,
    { { TINY_ROLE_OUTPUT, ROW, RIGHT },
      { TINY_ROLE_A, ROW, COLUMN },
      { TINY_ROLE_B, ROW, RIGHT } } },
  { "qr",
    2,
    0,
    FALSE,
    { { TINY_ROLE_OUTPUT, ROW, LEFT },
      { TINY_ROLE_OUTPUT2, LEFT, COLUMN },
      { TINY_ROLE_A, ROW, COLUMN } } },
  { "svd",
    3,
    0,
    FALSE,
    { { TINY_ROLE_OUTPUT, ROW, LEFT },
      { TINY_ROLE_OUTPUT2, VALUE, NO_AXIS },
      { TINY_ROLE_OUTPUT3, RIGHT, COLUMN },
      { TINY_ROLE_A, ROW, COLUMN } } },
  { "eigh",
    2,
    0,
    TRUE,
    { { TINY_ROLE_OUTPUT, VALUE, NO_AXIS },
      { TINY_ROLE_OUTPUT2, ROW, COLUMN },
      { TINY_ROLE_A, ROW, COLUMN } } },
};
#undef ROW
#undef COLUMN
#undef LEFT
#undef RIGHT
#undef VALUE

enum { FIRST = TINY_OPERATION_CHOLESKY };

/* ---- operations ---- */
static gboolean
add_operand (TinyOperation *out, const Operand *operand, TinyDType dtype)
{
  TinyOperandView *view = &out->operands[out->n_operands];
  const guint axes[] = { operand->row, operand->column, TINY_FACTOR_BATCH };
  gint64 n = 1;
  view->role = operand->role;
  view->dtype = operand->dtype != 0 ? operand->dtype : dtype;
  view->buffer = out->n_operands;
  for (guint i = 0; i < G_N_ELEMENTS (axes); i++) {
    if (axes[i] == NO_AXIS && i < 2)
      continue;
    view->strides[axes[i]] = n;
    if (n > G_MAXINT64 / 16 / out->extents[axes[i]])
      return FALSE;
    n *= out->extents[axes[i]];
  }
  view->n_elements = (guint64) n;
  out->n_buffers = ++out->n_operands;
  return TRUE;
}

gboolean
factor_init (TinyOperation *out,
             guint kind,
             guint flags,
             TinyDType dtype,
             const gint64 extents[FACTOR_N_EXTENTS])
{
  const guint row = kind - FIRST;
  memset (out, 0, sizeof *out);
  if (kind < FIRST || row >= G_N_ELEMENTS (kinds) || (flags & ~kinds[row].flags) != 0
      || (dtype != TINY_DTYPE_F32 && dtype != TINY_DTYPE_F64)
      || (kinds[row].is_square && extents[TINY_FACTOR_ROW] != extents[TINY_FACTOR_COLUMN]))
    return FALSE;
  *out = (TinyOperation){ .struct_size = sizeof *out,
                          .flags = flags,
                          .version = TINY_OPERATION_VERSION,
                          .kind = kind,
                          .n_axes = FACTOR_N_EXTENTS,
                          .compute_dtype = dtype,
                          .scale = 1 };
  for (guint i = 0; i < TINY_OPERATION_MAX_AXES; i++) {
    out->extents[i] = i < TINY_FACTOR_VALUE ? extents[i] : 1;
    if (out->extents[i] < 1)
      return FALSE;
  }
  out->extents[TINY_FACTOR_VALUE] = MIN (extents[TINY_FACTOR_ROW], extents[TINY_FACTOR_COLUMN]);
  for (guint i = 0; i < MAX_OPERANDS && (i == 0 || kinds[row].operands[i].role != 0); i++)
    if (!add_operand (out, &kinds[row].operands[i], dtype))
      return FALSE;
  return TRUE;
}

guint
factor_count_outputs (const TinyOperation *self)
{
  return kinds[self->kind - FIRST].n_outputs;
}

guint
factor_get_shape (const TinyOperation *self, guint i, gint64 dims[FACTOR_MAX_RANK])
{
  const Operand *operand = &kinds[self->kind - FIRST].operands[i];
  guint n = 0;
  dims[n++] = self->extents[TINY_FACTOR_BATCH];
  if (operand->column != NO_AXIS)
    dims[n++] = self->extents[operand->column];
  dims[n++] = self->extents[operand->row];
  return n;
}

/* ---- text ---- */
#define PREFIX "factor "

char *
factor_to_text (const TinyOperation *self)
{
  GString *text = g_string_new (NULL);
  g_string_append_printf (text, PREFIX "%s %s %u", kinds[self->kind - FIRST].name,
                          tiny_dtype_to_string ((TinyDType) self->compute_dtype), self->flags);
  for (guint i = 0; i < N_TEXT_EXTENTS; i++)
    g_string_append_printf (text, " %" G_GINT64_FORMAT, (gint64) self->extents[i]);
  return g_string_free (text, FALSE);
}

gboolean
factor_is_text (const char *text)
{
  return g_str_has_prefix (text, PREFIX);
}

gboolean
factor_from_text (TinyOperation *out, const char *text)
{
  enum { NAME = 1, DTYPE, FLAGS, EXTENTS, N_WORDS = EXTENTS + N_TEXT_EXTENTS };
  g_auto (GStrv) words = g_strsplit (text, " ", N_WORDS + 1);
  gint64 extents[FACTOR_N_EXTENTS] = { 0 };
  guint64 flags, extent;
  guint row = 0;
  TinyDType dtype;
  if (g_strv_length (words) != N_WORDS || !factor_is_text (text)
      || !tiny_dtype_from_string (words[DTYPE], &dtype)
      || !g_ascii_string_to_unsigned (words[FLAGS], 10, 0, G_MAXUINT32, &flags, NULL))
    return FALSE;
  for (guint i = 0; i < N_TEXT_EXTENTS; i++) {
    if (!g_ascii_string_to_unsigned (words[EXTENTS + i], 10, 1, G_MAXINT64, &extent, NULL))
      return FALSE;
    extents[i] = (gint64) extent;
  }
  while (row < G_N_ELEMENTS (kinds) && !g_str_equal (words[NAME], kinds[row].name))
    row++;
  return factor_init (out, FIRST + row, (guint) flags, dtype, extents);
}
