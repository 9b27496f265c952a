/* SPDX-License-Identifier: MIT
 *
 * active-roots.c: the ring of the roots that a step may have to do with: those that are in no memory, and those that want
 * gradients. Under the runtime's lock. */
#include "engine/node-users.h"
#include "engine/runtime-private.h"

static TinyRoot active = { .next_active = &active, .previous_active = &active };

TinyRoot *
tiny_runtime_get_active_roots (void)
{
  return &active;
}

void
active_roots_leave (TinyRoot *root)
{
  if (root->next_active == NULL)
    return;
  root->next_active->previous_active = root->previous_active;
  root->previous_active->next_active = root->next_active;
  root->next_active = root->previous_active = NULL;
}

void
active_roots_update (TinyRoot *root)
{
  const gboolean is_active = root->wants_gradients || !tiny_runtime_is_realized (root->node);
  if (!is_active)
    active_roots_leave (root);
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
  if (root->node != NULL)
    active_roots_update (root);
}
