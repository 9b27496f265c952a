/* SPDX-License-Identifier: MIT
 *
 * tiny-text-head.c: what stands before the sources of a call: op, dtype, attributes. */
#include "ir/tiny-cursor.h"

#include <string.h>

#include "ir/tiny-check.h"

void
tiny_text_head_clear (TinyTextHead *self)
{
  g_clear_pointer (&self->ints, g_array_unref);
  g_clear_pointer (&self->text, g_free);
}

static gboolean
parse_arg (TinyCursor *self, TinyTextHead *head, TinyArgStyle style)
{
  if (style == TINY_ARG_OP) {
    tiny_cursor_skip_space (self);
    gsize n = tiny_word_length (self->p);
    TinyOp op = tiny_op_from_string (self->p, (gssize) n);
    char buffer[24];
    if (op == TINY_N_OPS)
      return tiny_cursor_fail (self, self->p, "expected an op, found %s",
                               tiny_cursor_found (self->p, buffer));
    self->p += n;
    head->arg = op;
    return TRUE;
  }
  gint64 value;
  const char *at = self->p;
  if (!tiny_cursor_read_integer (self, &value))
    return FALSE;
  if (style == TINY_ARG_RANGE) {
    if (value < 0 || value > G_MAXUINT32)
      return tiny_cursor_fail (self, at, "a range's number has 32 bits");
    value |= head->arg;
  }
  head->arg = value;
  return TRUE;
}

static gboolean
parse_kind (TinyCursor *self, TinyTextHead *head)
{
  tiny_cursor_skip_space (self);
  gsize n = tiny_word_length (self->p);
  for (int kind = 0; kind < TINY_N_RANGE_KINDS; kind++)
    if (tiny_word_is (self->p, n, tiny_range_kind_to_string (kind))) {
      head->arg |= (gint64) kind << 32;
      self->p += n;
      return TRUE;
    }
  char buffer[24];
  return tiny_cursor_fail (self, self->p, "expected a kind of range, found %s",
                           tiny_cursor_found (self->p, buffer));
}

/* Which of the comma-separated names @word is, or -1. */
static int
find_field (const char *names, const char *word, gsize n)
{
  if (names == NULL || strchr (names, ',') == NULL)
    return -1;
  g_auto (GStrv) parts = g_strsplit (names, ",", -1);
  for (int i = 0; parts[i] != NULL; i++)
    if (tiny_word_is (word, n, parts[i]))
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
parse_field (TinyCursor *self, TinyTextHead *head, const char *at, guint field, guint n_fields)
{
  gint64 value;
  if (head->ints == NULL) {
    head->ints = g_array_new (FALSE, TRUE, sizeof (gint64));
    g_array_set_size (head->ints, n_fields);
  }
  if (head->fields >> field & 1 || head->ints->len != n_fields)
    return tiny_cursor_fail (self, at, "attribute given twice");
  head->fields |= 1u << field;
  if (!tiny_cursor_read_integer (self, &value))
    return FALSE;
  g_array_index (head->ints, gint64, field) = value;
  return TRUE;
}

static gboolean
parse_attribute (TinyCursor *self, TinyTextHead *head)
{
  const TinyOpRule *rule = &tiny_op_rules[head->op];
  tiny_cursor_skip_space (self);
  const char *at = self->p;
  gsize n = tiny_word_length (at);
  char buffer[24];
  if (n == 0)
    return tiny_cursor_fail (self, at, "expected an attribute, found %s",
                             tiny_cursor_found (at, buffer));
  self->p += n;
  if (!tiny_cursor_expect (self, '='))
    return FALSE;
  int field = find_field (rule->ints, at, n);
  if (field >= 0)
    return parse_field (self, head, at, (guint) field, count_fields (rule->ints));
  gboolean generic = tiny_word_is (at, n, "arg");
  if (tiny_word_is (at, n, rule->arg) || generic) {
    if (head->has_arg || (generic && head->has_kind))
      return tiny_cursor_fail (self, at, "attribute given twice");
    head->has_arg = TRUE;
    head->has_kind |= generic;
    return parse_arg (self, head, generic ? TINY_ARG_NUMBER : rule->arg_style);
  }
  if (rule->arg_style == TINY_ARG_RANGE && tiny_word_is (at, n, "kind")) {
    if (head->has_kind)
      return tiny_cursor_fail (self, at, "attribute given twice");
    head->has_kind = TRUE;
    return parse_kind (self, head);
  }
  if (tiny_word_is (at, n, rule->ints) || tiny_word_is (at, n, "ints")) {
    if (head->ints != NULL)
      return tiny_cursor_fail (self, at, "attribute given twice");
    head->ints = g_array_new (FALSE, FALSE, sizeof (gint64));
    return tiny_cursor_read_list (self, head->ints);
  }
  if (tiny_word_is (at, n, rule->text) || tiny_word_is (at, n, "text")) {
    if (head->text != NULL)
      return tiny_cursor_fail (self, at, "attribute given twice");
    return tiny_cursor_read_string (self, &head->text);
  }
  return tiny_cursor_fail (self, at, "%s has no attribute %s", tiny_op_infos[head->op].text,
                           tiny_cursor_found (at, buffer));
}

gboolean
tiny_cursor_read_head (TinyCursor *self, TinyTextHead *head)
{
  const char *at = self->p;
  gsize n = tiny_word_length (at);
  char buffer[24];
  head->op = tiny_op_from_string (at, (gssize) n);
  head->lanes = 1;
  if (head->op == TINY_N_OPS)
    return tiny_cursor_fail (self, at, "unknown op %s", tiny_cursor_found (at, buffer));
  self->p += n;
  if (*self->p == '.') {
    self->p++;
    if (!tiny_cursor_read_type (self, &head->dtype, &head->lanes))
      return FALSE;
  }
  if (!tiny_cursor_take_adjacent (self, '{'))
    return TRUE;
  do {
    if (!parse_attribute (self, head))
      return FALSE;
  } while (tiny_cursor_take (self, ','));
  const char *names = tiny_op_rules[head->op].ints;
  if (head->fields != 0 && head->fields != (1u << count_fields (names)) - 1)
    return tiny_cursor_fail (self, at, "%s wants all of %s", tiny_op_infos[head->op].text,
                             names);
  return tiny_cursor_expect (self, '}');
}
