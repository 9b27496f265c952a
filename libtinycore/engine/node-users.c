/* SPDX-License-Identifier: MIT
 *
 * node-users.c: counts who has a node. Walks are iterative, as graphs may be deeper than a stack. */
#include "engine/node-users.h"

static GPtrArray *stack, *lost;
static guint n_alive;

guint
node_users_count_alive (void)
{
  return n_alive;
}

void
node_users_set_alive (guint n)
{
  n_alive = n;
}

GPtrArray *
node_users_get_lost (void)
{
  if (lost == NULL)
    lost = g_ptr_array_new ();
  return lost;
}

static GPtrArray *
get_stack (void)
{
  if (stack == NULL)
    stack = g_ptr_array_new ();
  return stack;
}

static TinyNode *
pop (void)
{
  return stack->len > 0 ? g_ptr_array_steal_index_fast (stack, stack->len - 1) : NULL;
}

void
node_users_add (TinyNode *node)
{
  if (node->n_users++ > 0)
    return;
  n_alive++;
  for (get_stack (); node != NULL; node = pop ())
    for (guint i = 0; i < node->n_sources; i++) {
      TinyNode *source = node->sources[i];
      if (source->n_users++ > 0)
        continue;
      n_alive++;
      if (source->n_sources > 0)
        g_ptr_array_add (stack, source);
    }
}

static void
lose (TinyNode *node)
{
  n_alive--;
  if (node->n_sources > 0)
    g_ptr_array_add (get_stack (), node);
  else if (node->op == TINY_OP_BUFFER)
    g_ptr_array_add (node_users_get_lost (), node);
}

void
node_users_drop (TinyNode *node)
{
  g_assert (node->n_users > 0);
  if (--node->n_users > 0)
    return;
  lose (node);
  for (get_stack (), node = pop (); node != NULL; node = pop ())
    for (guint i = 0; i < node->n_sources; i++)
      if (--node->sources[i]->n_users == 0)
        lose (node->sources[i]);
}
