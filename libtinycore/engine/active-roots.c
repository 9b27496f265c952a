/* SPDX-License-Identifier: MIT
 *
 * active-roots.c: the ring of the roots that a step may have to do with: those that are in no memory, and those that want
 * gradients. These are in a second ring as well. Under the runtime's lock. */
#include "engine/node-users.h"
#include "engine/runtime-private.h"

static TinyRoot active = { .next_active = &active, .previous_active = &active };
static TinyRoot wanting = { .next_wanting = &wanting, .previous_wanting = &wanting };

TinyRoot *
tiny_runtime_get_active_roots (void)
{
  return &active;
}

TinyRoot *
tiny_runtime_get_wanting_roots (void)
{
  return &wanting;
}

static void
leave_wanting (TinyRoot *root)
{
  if (root->next_wanting == NULL)
    return;
  root->next_wanting->previous_wanting = root->previous_wanting;
  root->previous_wanting->next_wanting = root->next_wanting;
  root->next_wanting = root->previous_wanting = NULL;
}

static void
leave_active (TinyRoot *root)
{
  if (root->next_active == NULL)
    return;
  root->next_active->previous_active = root->previous_active;
  root->previous_active->next_active = root->next_active;
  root->next_active = root->previous_active = NULL;
}

void
active_roots_leave (TinyRoot *root)
{
  leave_active (root);
  leave_wanting (root);
}

void
active_roots_update (TinyRoot *root)
{
  const gboolean is_active = root->wants_gradients || !tiny_runtime_is_realized (root->node);
  if (!is_active)
    leave_active (root);
  if (!is_active || root->next_active != NULL)
    return;
  root->next_active = active.next_active;
  root->previous_active = &active;
  root->next_active->previous_active = root;
  active.next_active = root;
}

void
tiny_runtime_move_root (TinyRoot *root, TinyNode *node)
{
  node_users_add (node);
  node_users_drop (root->node);
  root->node = node;
  active_roots_update (root);
}

void
tiny_root_set_wants_gradients (TinyRoot *root, gboolean wants)
{
  root->wants_gradients = wants;
  if (root->node == NULL)
    return;
  active_roots_update (root);
  leave_wanting (root);
  if (!wants)
    return;
  root->next_wanting = wanting.next_wanting;
  root->previous_wanting = &wanting;
  root->next_wanting->previous_wanting = wanting.next_wanting = root;
}
