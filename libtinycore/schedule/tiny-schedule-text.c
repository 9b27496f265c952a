/* SPDX-License-Identifier: MIT
 *
 * tiny-schedule-text.c: a schedule as text, for DEBUG and golden tests. */
#include "schedule/tiny-schedule.h"

static void
add_expression (GString *text, TinyNode *node)
{
  if (node->op == TINY_OP_CONST && tiny_dtype_is_float (node->dtype)) {
    g_string_append_printf (text, "%.9g", tiny_node_get_float (node));
  } else if (node->op == TINY_OP_CONST) {
    g_string_append_printf (text, "%" G_GINT64_FORMAT, node->arg);
  } else if (node->op == TINY_OP_RANGE) {
    g_string_append_printf (text, "i%u", tiny_range_get_number (node));
  } else if (node->op == TINY_OP_PARAM) {
    g_string_append_printf (text, "p%" G_GINT64_FORMAT, node->arg);
  } else {
    g_string_append (text, tiny_op_to_string (node->op));
    if (node->op == TINY_OP_REDUCE)
      g_string_append_printf (text, "_%s", tiny_op_to_string (node->arg));
    if (node->op == TINY_OP_CAST || node->op == TINY_OP_BITCAST)
      g_string_append_printf (text, "_%s", tiny_dtype_to_string (node->dtype));
    g_string_append (text, " (");
    for (guint i = 0; i < node->n_sources; i++) {
      g_string_append (text, i > 0 ? ", " : "");
      add_expression (text, node->sources[i]);
    }
    g_string_append_c (text, ')');
  }
}

static gboolean
is_small (TinyNode *node, guint *budget)
{
  if (*budget == 0)
    return FALSE;
  (*budget)--;
  for (guint i = 0; i < node->n_sources; i++)
    if (!is_small (node->sources[i], budget))
      return FALSE;
  return TRUE;
}

static void
add_buffer (GString *text, const TinySchedule *self, guint i)
{
  static const char letters[] = { 'i', 'o', 't' };
  const TinyScheduleBuffer *buffer = &self->buffers[i];
  g_string_append_printf (text, " %c%u", letters[buffer->kind], i);
}

char *
tiny_schedule_to_string (const TinySchedule *self)
{
  static const char *const kinds[] = { "input", "output", "temporary" };
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < self->n_buffers; i++) {
    const TinyScheduleBuffer *buffer = &self->buffers[i];
    g_string_append_printf (
        text, "buffer %u: %s %" G_GINT64_FORMAT ", %" G_GINT64_FORMAT " %s on %s\n", i,
        kinds[buffer->kind], buffer->slot, buffer->n_elements,
        tiny_dtype_to_string (buffer->dtype),
        buffer->device != NULL ? buffer->device : "nothing");
  }
  for (guint i = 0; i < self->n_arenas; i++)
    g_string_append_printf (text, "arena: %" G_GINT64_FORMAT " bytes on %s\n",
                            self->arenas[i].n_bytes, self->arenas[i].device);
  for (guint i = 0; i < self->n_items; i++) {
    const TinyScheduleItem *item = &self->items[i];
    guint budget = 400;
    g_string_append_printf (
        text, "%s %s on %s:", item->kind == TINY_SCHEDULE_COPY ? "copy" : "kernel",
        item->kind == TINY_SCHEDULE_COPY ? "" : item->kernel->text, item->device);
    for (guint j = 0; j < item->n_buffers; j++)
      add_buffer (text, self, item->buffers[j]);
    g_string_append_c (text, '\n');
    for (guint j = 0; item->kernel != NULL && j < item->kernel->n_sources; j++) {
      g_string_append (text, "  ");
      if (is_small (item->kernel->sources[j], &budget))
        add_expression (text, item->kernel->sources[j]);
      else
        g_string_append (text, "a large expression");
      g_string_append_c (text, '\n');
    }
  }
  return g_string_free (text, FALSE);
}
