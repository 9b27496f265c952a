/* SPDX-License-Identifier: MIT
 *
 * tiny-recorders.c: a list of the recordings that run, one for each thread at most. */
#include "engine/tiny-recorders.h"

#include "engine/runtime-private.h"

typedef struct {
  TinyLaunches *launches;
  guint64 number;
  guint64 n_roots; /* that there were before */
  gpointer parts[TINY_N_RECORDED];
} Running;

static GArray *running; /* Running; NULL until there is one */
static guint64 n_begun;

static __thread TinyActing acting;

static Running *
find (guint64 number)
{
  for (guint i = 0; number != 0 && i < running->len; i++)
    if (g_array_index (running, Running, i).number == number)
      return &g_array_index (running, Running, i);
  return NULL;
}

/* Of this thread; its recording may have ended on another one. */
static TinyActing *
get_acting (void)
{
  if (acting.own == 0)
    return &acting;
  tiny_runtime_lock ();
  if (find (acting.own) == NULL)
    acting = (TinyActing){ NULL, 0 };
  tiny_runtime_unlock ();
  return &acting;
}

TinyLaunches **
tiny_launches_get_recorder (void)
{
  return &get_acting ()->recorder;
}

void
tiny_recorders_begin (TinyLaunches *launches)
{
  Running one = { launches, ++n_begun, tiny_runtime_count_roots (), { NULL } };
  if (running == NULL)
    running = g_array_new (FALSE, FALSE, sizeof (Running));
  g_array_append_val (running, one);
  acting = (TinyActing){ launches, one.number };
}

guint64
tiny_recorders_end (TinyLaunches *launches)
{
  for (guint i = 0; running != NULL && i < running->len; i++)
    if (g_array_index (running, Running, i).launches == launches) {
      const guint64 number = g_array_index (running, Running, i).number;
      g_array_remove_index_fast (running, i);
      return number;
    }
  return 0;
}

gboolean
tiny_recorders_is_any (void)
{
  return running != NULL && running->len > 0;
}

guint64
tiny_recorders_get_own (void)
{
  return get_acting ()->own;
}

void
tiny_recorders_set_part (TinyRecorded part, gpointer data)
{
  Running *own = find (acting.own);
  if (own != NULL)
    own->parts[part] = data;
}

gpointer
tiny_recorders_get_part (TinyRecorded part)
{
  const Running *own = find (acting.own);
  return own != NULL ? own->parts[part] : NULL;
}

guint64
tiny_recorders_get_target (void)
{
  const TinyActing *self = get_acting ();
  return self->recorder != NULL ? self->own : 0;
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
  const guint64 number = tiny_recorders_get_own ();
  const Running *own = find (number);
  if (owner != 0 || own == NULL)
    return owner != number;
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
