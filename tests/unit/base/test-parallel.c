/* SPDX-License-Identifier: MIT
 *
 * Each item is worked on once, and by several threads where there are several processors. */
#include "base/tiny-parallel.h"

typedef struct {
  int n_inside, most_inside; /* atomic */
} Crowd;

static void
count (gpointer item, gpointer data)
{
  Crowd *crowd = data;
  int inside = g_atomic_int_add (&crowd->n_inside, 1) + 1, most;
  do
    most = g_atomic_int_get (&crowd->most_inside);
  while (inside > most
         && !g_atomic_int_compare_and_exchange (&crowd->most_inside, most, inside));
  g_usleep (1000);
  g_atomic_int_inc ((int *) item);
  g_atomic_int_add (&crowd->n_inside, -1);
}

static void
test_once (void)
{
  for (guint n = 0; n <= 100; n = n * 3 + 1) {
    int counts[128] = { 0 };
    gpointer items[128];
    Crowd crowd = { 0 };
    for (guint i = 0; i < G_N_ELEMENTS (items); i++)
      items[i] = &counts[i];
    tiny_parallel_run (count, items, n, &crowd);
    for (guint i = 0; i < G_N_ELEMENTS (counts); i++)
      g_assert_cmpint (counts[i], ==, i < n);
    g_assert_cmpint (crowd.n_inside, ==, 0);
    g_assert_cmpuint ((guint) crowd.most_inside, <=, g_get_num_processors ());
    if (n >= 40 && g_get_num_processors () > 1)
      g_assert_cmpint (crowd.most_inside, >, 1);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/base/parallel/once", test_once);
  return g_test_run ();
}
