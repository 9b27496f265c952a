/* SPDX-License-Identifier: MIT
 *
 * tiny-recorders.c: a list of the recordings that run, one for each thread at most. */
#include "engine/tiny-recorders.h"

#include "engine/runtime-private.h"

typedef struct {
  TinyLaunches *launches;
  guint64 number;
  guint64 n_roots; /* that there were before */
} Running;

static GArray *running; /* Running; NULL until there is one */
static guint64 n_begun;

static __thread TinyActing acting;

TinyLaunches **
tiny_launches_get_recorder (void)
{
  return &acting.recorder;
}

static const Running *
find (guint64 number)
{
  for (guint i = 0; number != 0 && i < running->len; i++)
    if (g_array_index (running, Running, i).number == number)
      return &g_array_index (running, Running, i);
  return NULL;
}

void
tiny_recorders_begin (TinyLaunches *launches)
{
  Running one = { launches, ++n_begun, tiny_runtime_count_roots () };
  if (running == NULL)
    running = g_array_new (FALSE, FALSE, sizeof (Running));
  g_array_append_val (running, one);
  acting = (TinyActing){ launches, one.number };
}

void
tiny_recorders_end (TinyLaunches *launches)
{
  for (guint i = 0; running != NULL && i < running->len; i++)
    if (g_array_index (running, Running, i).launches == launches) {
      if (g_array_index (running, Running, i).number == acting.own)
        acting = (TinyActing){ NULL, 0 };
      g_array_remove_index_fast (running, i);
    }
}

gboolean
tiny_recorders_is_any (void)
{
  return running != NULL && running->len > 0;
}

guint64
tiny_recorders_get_own (void)
{
  return acting.own;
}

guint64
tiny_recorders_get_target (void)
{
  return acting.recorder != NULL ? acting.own : 0;
}

guint64
tiny_recorders_get_running (guint64 number)
{
  return number != 0 && find (number) != NULL ? number : 0;
}

guint64
tiny_recorders_get_owner (const TinyRoot *root)
{
  return tiny_recorders_get_running (root->recording);
}

gboolean
tiny_recorders_is_apart (const TinyRoot *root)
{
  if (!tiny_recorders_is_any ())
    return FALSE;
  const guint64 owner = tiny_recorders_get_owner (root);
  const Running *own = find (acting.own);
  if (owner != 0 || own == NULL)
    return owner != acting.own;
  return root->number >= own->n_roots;
}

TinyActing
tiny_recorders_act_for (guint64 number)
{
  const TinyActing before = acting;
  const Running *other = find (number);
  acting = other != NULL ? (TinyActing){ other->launches, number } : (TinyActing){ NULL, 0 };
  return before;
}

void
tiny_recorders_act_again (TinyActing before)
{
  acting = before;
}
