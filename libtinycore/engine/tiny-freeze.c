/* SPDX-License-Identifier: MIT
 *
 * tiny-freeze.c: what a replay need not compute again.
 *
 * A launch that reads only memory which no replay changes (weights, not inputs), and no variable that one may, gives the same each
 * time: packed or cast weights, tables. Such launches are taken out in one walk over the list. Their
 * results were in temporary memory, which others use later in the step; they get memory of their own,
 * and the launches that read them are pointed there. */
#include "engine/launches-private.h"

/* A piece of temporary memory whose content has moved. */
typedef struct {
  TinyBinding place, own;
} Moved;

typedef struct {
  TinyLaunches *frozen, *rest;
  TinyLaunches *from;
  GHashTable *changing; /* plugin buffers that replays are given or write */
  GArray *moved;        /* Moved */
} Freeze;

static void
freeze_clear (Freeze *self)
{
  g_clear_pointer (&self->frozen, tiny_launches_free);
  g_clear_pointer (&self->rest, tiny_launches_free);
  g_hash_table_unref (self->changing);
  for (guint i = 0; i < self->moved->len; i++)
    tiny_buffer_unref (g_array_index (self->moved, Moved, i).own.buffer);
  g_array_unref (self->moved);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Freeze, freeze_clear)

static gboolean
is_same (const TinyBinding *x, const TinyBinding *y)
{
  return x->buffer == y->buffer && x->offset == y->offset && x->n_bytes == y->n_bytes;
}

static const Moved *
find_moved (Freeze *self, const TinyBinding *place)
{
  for (guint i = 0; i < self->moved->len; i++)
    if (tiny_bindings_overlap (&g_array_index (self->moved, Moved, i).place, place))
      return &g_array_index (self->moved, Moved, i);
  return NULL;
}

/* @place is about to be written: what was there before is of no use to those that come. */
static void
forget_moved (Freeze *self, const TinyBinding *place)
{
  for (guint i = self->moved->len; i-- > 0;) {
    Moved *moved = &g_array_index (self->moved, Moved, i);
    if (!tiny_bindings_overlap (&moved->place, place))
      continue;
    tiny_buffer_unref (moved->own.buffer);
    g_array_remove_index (self->moved, i);
  }
}

static gboolean
is_constant (Freeze *self, const TinyBinding *read)
{
  if (read->is_temporary)
    return find_moved (self, read) != NULL;
  return !g_hash_table_contains (self->changing, tiny_buffer_get_handle (read->buffer));
}

static gboolean
can_freeze (Freeze *self, const Launch *launch, const TinyBinding *bindings)
{
  gboolean can = !launch->is_part;
  for (guint i = 0; i < launch->n_variables && can; i++) {
    const TinyBoundVariable *bound
        = &g_array_index (self->from->variables, LaunchVariable, launch->first_variable + i)
               .bound;
    can = bound->min == bound->max;
  }
  for (guint i = 0; i < launch->n_bindings && can; i++)
    can = i < launch->n_written ? bindings[i].is_temporary : is_constant (self, &bindings[i]);
  return can;
}

/* Memory of their own for the first @n bindings. */
static gboolean
move_results (Freeze *self, TinyBinding *bindings, guint n)
{
  for (guint i = 0; i < n; i++) {
    TinyBuffer *own
        = tiny_buffer_new (tiny_buffer_get_device (bindings[i].buffer), bindings[i].n_bytes);
    Moved moved = { bindings[i], { own, 0, bindings[i].n_bytes, TRUE } };
    forget_moved (self, &bindings[i]);
    g_array_append_val (self->moved, moved);
    bindings[i] = moved.own;
    if (!tiny_buffer_ensure (own, NULL))
      return FALSE;
  }
  return TRUE;
}

/* FALSE: leave all as it is; there is no memory, or part of a result would be read. */
static gboolean
place_launch (Freeze *self, const Launch *launch, const TinyBinding *given)
{
  g_autofree TinyBinding *bindings
      = g_memdup2 (given, launch->n_bindings * sizeof (TinyBinding));
  gboolean freezes = can_freeze (self, launch, bindings);
  for (guint i = launch->n_written; i < launch->n_bindings; i++) {
    const Moved *moved = find_moved (self, &bindings[i]);
    if (moved != NULL && !is_same (&moved->place, &bindings[i]))
      return FALSE;
    if (moved != NULL)
      bindings[i] = moved->own;
  }
  if (freezes && !move_results (self, bindings, launch->n_written))
    return FALSE;
  for (guint i = 0; i < launch->n_written && !freezes; i++)
    forget_moved (self, &bindings[i]);
  tiny_launches_add (freezes ? self->frozen : self->rest, *launch, bindings, self->from);
  return TRUE;
}

static void
find_changing (Freeze *self, TinyLaunches *launches, TinyBuffer *const *inputs, guint n_inputs)
{
  for (guint i = 0; i < n_inputs; i++)
    g_hash_table_add (self->changing, tiny_buffer_get_handle (inputs[i]));
  for (guint i = 0; i < launches->launches->len; i++) {
    const Launch *launch = &g_array_index (launches->launches, Launch, i);
    for (guint j = 0; j < launch->n_written; j++) {
      const TinyBinding *written
          = &g_array_index (launches->bindings, TinyBinding, launch->first_binding + j);
      if (!written->is_temporary)
        g_hash_table_add (self->changing, tiny_buffer_get_handle (written->buffer));
    }
  }
}

TinyLaunches *
tiny_launches_freeze (TinyLaunches *self, TinyBuffer *const *inputs, guint n_inputs)
{
  g_auto (Freeze) freeze
      = { tiny_launches_new (), tiny_launches_new (), self, g_hash_table_new (NULL, NULL),
          g_array_new (FALSE, FALSE, sizeof (Moved)) };
  find_changing (&freeze, self, inputs, n_inputs);
  for (guint i = 0; i < self->launches->len; i++) {
    const Launch *launch = &g_array_index (self->launches, Launch, i);
    if (!place_launch (&freeze, launch,
                       &g_array_index (self->bindings, TinyBinding, launch->first_binding)))
      return NULL;
  }
  if (freeze.frozen->launches->len == 0)
    return NULL;
  TinyLaunches before = *self;
  *self = *freeze.rest;
  *freeze.rest = before;
  return g_steal_pointer (&freeze.frozen);
}

guint
tiny_launches_get_source_version (TinyLaunches *self)
{
  guint version = 0;
  for (guint i = 0; i < self->bindings->len; i++) {
    const TinyBinding *binding = &g_array_index (self->bindings, TinyBinding, i);
    if (!binding->is_temporary)
      version += tiny_buffer_get_version (binding->buffer);
  }
  return version;
}

/* ---- what replays change, and what there was before ---- */
guint64
tiny_launches_get_n_roots (const TinyLaunches *self)
{
  return self->n_roots;
}

void
tiny_launches_each_memory (TinyLaunches *self, TinyMemoryFunction function, gpointer data)
{
  for (guint i = 0; i < self->launches->len; i++) {
    const Launch *launch = &g_array_index (self->launches, Launch, i);
    for (guint j = 0; j < launch->n_bindings; j++) {
      const TinyBinding *binding
          = &g_array_index (self->bindings, TinyBinding, launch->first_binding + j);
      if (!binding->is_temporary)
        function (binding->buffer, j < launch->n_written, data);
    }
  }
}

/* A TinyMemoryFunction. */
static void
add_written (TinyBuffer *buffer, gboolean is_written, gpointer out)
{
  if (is_written)
    g_hash_table_add (out, buffer);
}

void
tiny_launches_list_written (TinyLaunches *self, GHashTable *out)
{
  tiny_launches_each_memory (self, add_written, out);
}
