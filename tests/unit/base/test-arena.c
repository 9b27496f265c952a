/* SPDX-License-Identifier: MIT
 *
 * test-arena.c: an arena's memory is aligned, zeroed, disjoint, and stays where it is. */
#include "base/tiny-arena.h"

#include <string.h>

#include "../case-fails.h"

static void
test_alloc (void)
{
  g_autoptr (TinyArena) arena = tiny_arena_new ();
  g_autoptr (GRand) rand = g_rand_new_with_seed (3);
  g_autoptr (GPtrArray) blocks = g_ptr_array_new ();
  g_autoptr (GArray) sizes = g_array_new (FALSE, FALSE, sizeof (gsize));
  gsize total = 0;
  for (guint i = 0; i < 3000; i++) {
    gsize n = i % 500 == 499 ? 3 << 20 : (gsize) g_rand_int_range (rand, 0, 3000);
    guint8 *memory = tiny_arena_alloc (arena, n);
    g_assert_cmpuint (GPOINTER_TO_SIZE (memory) % 16, ==, 0);
    for (gsize j = 0; j < n; j++)
      g_assert_cmpuint (memory[j], ==, 0);
    memset (memory, (int) (i % 251 + 1), n);
    g_ptr_array_add (blocks, memory);
    g_array_append_val (sizes, n);
    total += n;
  }
  g_assert_cmpuint (tiny_arena_get_n_bytes (arena), >=, total);
  for (guint i = 0; i < blocks->len; i++) {
    const guint8 *memory = blocks->pdata[i];
    for (gsize j = 0; j < g_array_index (sizes, gsize, i); j++)
      if (memory[j] != i % 251 + 1) {
        CASE_FAILS ("block %u was overwritten at %" G_GSIZE_FORMAT, i, j);
        break;
      }
  }
}

static void
test_copy (void)
{
  g_autoptr (TinyArena) arena = tiny_arena_new ();
  char *text = tiny_arena_strdup (arena, "tensor");
  g_assert_cmpstr (text, ==, "tensor");
  g_assert_nonnull (tiny_arena_copy (arena, NULL, 0));
  tiny_arena_free (NULL);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/base/arena/alloc", test_alloc);
  g_test_add_func ("/base/arena/copy", test_copy);
  return g_test_run ();
}
