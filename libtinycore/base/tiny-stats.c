/* SPDX-License-Identifier: MIT
 *
 * tiny-stats.c: a block of counters for each thread; the block of one that ends is added to the
 * total. */
#include "base/tiny-stats.h"

#include <string.h>

enum { N_FIELDS = sizeof (TinyStats) / sizeof (guint64) };

typedef struct Block {
  TinyStats stats;
  struct Block *next, **link;
} Block;

static GMutex lock;
static Block *blocks;
static TinyStats ended; /* of threads that are no more */

__thread TinyStats *tiny_stats_block;

static void
add (TinyStats *sum, const TinyStats *more)
{
  guint64 *to = (guint64 *) sum;
  const guint64 *from = (const guint64 *) more;
  for (guint i = 0; i < N_FIELDS; i++)
    to[i] += __atomic_load_n (&from[i], __ATOMIC_RELAXED);
}

static void
end_block (gpointer data)
{
  Block *block = data;
  g_mutex_lock (&lock);
  add (&ended, &block->stats);
  *block->link = block->next;
  if (block->next != NULL)
    block->next->link = block->link;
  g_mutex_unlock (&lock);
  tiny_stats_block = NULL;
  g_free (block);
}

static GPrivate owner = G_PRIVATE_INIT (end_block);

TinyStats *
tiny_stats_begin_block (void)
{
  Block *block = g_new0 (Block, 1);
  g_mutex_lock (&lock);
  block->next = blocks;
  block->link = &blocks;
  if (blocks != NULL)
    blocks->link = &block->next;
  blocks = block;
  g_mutex_unlock (&lock);
  g_private_set (&owner, block);
  return tiny_stats_block = &block->stats;
}

void
tiny_stats_get (TinyStats *out)
{
  g_mutex_lock (&lock);
  *out = ended;
  for (const Block *block = blocks; block != NULL; block = block->next)
    add (out, &block->stats);
  g_mutex_unlock (&lock);
}

void
tiny_stats_since (const TinyStats *before, TinyStats *out)
{
  tiny_stats_get (out);
  for (guint i = 0; i < N_FIELDS; i++)
    ((guint64 *) out)[i] -= ((const guint64 *) before)[i];
}
