/* SPDX-License-Identifier: MIT
 *
 * tiny-parallel.c: threads that take the next item until there is none. */
#include "base/tiny-parallel.h"

typedef struct {
  GFunc func;
  gpointer const *items, data;
  guint n, next; /* atomic */
} Work;

static gpointer
take_items (gpointer data)
{
  Work *work = data;
  guint i;
  while ((i = g_atomic_int_add (&work->next, 1)) < work->n)
    work->func (work->items[i], work->data);
  return NULL;
}

void
tiny_parallel_run (GFunc func, gpointer const *items, guint n, gpointer data)
{
  Work work = { .func = func, .items = items, .data = data, .n = n };
  g_autoptr (GPtrArray) threads = g_ptr_array_new ();
  for (guint i = 1; i < MIN (n, g_get_num_processors ()); i++) {
    GThread *thread = g_thread_try_new ("tiny-parallel", take_items, &work, NULL);
    if (thread == NULL)
      break;
    g_ptr_array_add (threads, thread);
  }
  take_items (&work);
  for (guint i = 0; i < threads->len; i++)
    g_thread_join (threads->pdata[i]);
}
