/* SPDX-License-Identifier: MIT
 *
 * devices.c: which device computes each node, and that no op mixes two.
 *
 * PARAM and COPY name a device; everything else is computed where its sources are. CONST and IOTA
 * are nowhere: they join what uses them. */
#include "base/tiny-error.h"
#include "schedule/plan.h"

/* Numbers of what was not looked at, of what is nowhere, and of the first device. */
enum { UNKNOWN, NOWHERE, FIRST };

static guint
remember (Plan *plan, const TinyNode *node, const char *device)
{
  GPtrArray *names = plan->device_names;
  guint i = 0, number;
  while (device != NULL && i < names->len && names->pdata[i] != device)
    i++;
  if (device != NULL && i == names->len)
    g_ptr_array_add (names, (gpointer) device);
  number = device != NULL ? FIRST + i : NOWHERE;
  tiny_node_numbers_set (&plan->devices, node, number);
  return number;
}

/* A number as in @devices; UNKNOWN: it has not been looked at. */
static guint
look_up (Plan *plan, const TinyNode *node)
{
  const guint number = tiny_node_numbers_get (&plan->devices, node);
  if (number == UNKNOWN && (node->op == TINY_OP_PARAM || node->op == TINY_OP_COPY))
    return remember (plan, node, node->text);
  return number;
}

/* Nodes that a pass made since the check are where their first source that knows is. */
const char *
schedule_get_device (Plan *plan, TinyNode *node)
{
  guint number = look_up (plan, node);
  g_autoptr (GPtrArray) stack = number == UNKNOWN ? g_ptr_array_new () : NULL;
  if (stack != NULL)
    g_ptr_array_add (stack, node);
  while (stack != NULL && stack->len > 0) {
    TinyNode *top = stack->pdata[stack->len - 1];
    number = NOWHERE;
    for (guint i = 0; i < top->n_sources && number == NOWHERE; i++) {
      number = look_up (plan, top->sources[i]);
      if (number == UNKNOWN)
        g_ptr_array_add (stack, top->sources[i]);
    }
    if (number == UNKNOWN)
      continue;
    tiny_node_numbers_set (&plan->devices, top, number);
    g_ptr_array_set_size (stack, (gint) stack->len - 1);
  }
  return number != NOWHERE ? plan->device_names->pdata[number - FIRST] : NULL;
}

static gboolean
check_node (Plan *plan, TinyNode *node, GError **error)
{
  const char *device = NULL;
  if (node->op == TINY_OP_PARAM || node->op == TINY_OP_COPY) {
    device = node->text;
  } else {
    for (guint i = 0; i < schedule_count_values (node); i++) {
      const char *other = schedule_get_device (plan, node->sources[i]);
      if (device == NULL)
        device = other;
      else if (other != NULL && other != device) {
        g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                     "%s: operands are on %s and on %s; move one with a copy",
                     tiny_op_to_string (node->op), device, other);
        return FALSE;
      }
    }
    if (device == NULL && node->op == TINY_OP_CONTIGUOUS)
      device = node->text;
  }
  remember (plan, node, device);
  if (device != NULL && plan->only_device == NULL)
    plan->only_device = device;
  return TRUE;
}

static void
add_input (Plan *plan, TinyNode *param)
{
  while (plan->n_inputs <= param->arg)
    schedule_add_buffer (plan, TINY_SCHEDULE_INPUT, TINY_DTYPE_VOID, 0, NULL, plan->n_inputs++);
  TinyScheduleBuffer *buffer = schedule_get_buffer (plan, param->arg);
  buffer->dtype = param->dtype;
  buffer->n_elements = tiny_shape_get_n_elements (param->shape);
  buffer->device = param->text;
}

gboolean
schedule_check_devices (Plan *plan, TinyNode *sink, GError **error)
{
  const GPtrArray *order = schedule_list_under (plan, sink->sources, sink->n_sources);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->shape == NULL) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID, "schedule: %s has no shape",
                   tiny_op_to_string (node->op));
      return FALSE;
    }
    if (node->shape->n > SCHEDULE_MAX_RANK) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                   "schedule: %s has %u axes, at most %d are possible",
                   tiny_op_to_string (node->op), node->shape->n, SCHEDULE_MAX_RANK);
      return FALSE;
    }
    if (node->op == TINY_OP_BUFFER
        || (node->op == TINY_OP_PARAM && (node->arg < 0 || node->arg > G_MAXUINT16))) {
      g_set_error (error, TINY_ERROR, TINY_ERROR_INVALID,
                   "schedule: %s is no leaf of a tensor graph in numbered form",
                   tiny_op_to_string (node->op));
      return FALSE;
    }
    if (!check_node (plan, node, error))
      return FALSE;
    if (node->op == TINY_OP_PARAM)
      add_input (plan, node);
  }
  if (plan->only_device == NULL)
    plan->only_device = sink->text;
  return TRUE;
}
