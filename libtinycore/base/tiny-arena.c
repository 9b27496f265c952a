/* SPDX-License-Identifier: MIT
 *
 * tiny-arena.c: a bump allocator over blocks that double in size up to 64 KiB, small
 * enough for malloc() to use them again. */
#include "base/tiny-arena.h"

#include <string.h>

#include "base/tiny-stats.h"

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 16, ALIGNMENT = 16 };

typedef struct Block {
  struct Block *next;
  gsize size, used; /* bytes after this header */
} Block;

struct TinyArena {
  Block *block; /* the one being filled; older ones follow */
  gsize next_size;
  gsize n_bytes; /* handed out */
};

TinyArena *
tiny_arena_new (void)
{
  TinyArena *self = g_new0 (TinyArena, 1);
  self->next_size = FIRST_BLOCK;
  return self;
}

void
tiny_arena_free (TinyArena *self)
{
  if (self == NULL)
    return;
  for (Block *block = self->block; block != NULL;) {
    Block *next = block->next;
    g_free (block);
    block = next;
  }
  g_free (self);
}

static gsize
align (gsize n_bytes)
{
  return (n_bytes + ALIGNMENT - 1) & ~(gsize) (ALIGNMENT - 1);
}

static void
add_block (TinyArena *self, Block *block, gsize size)
{
  block->size = size;
  block->next = self->block;
  self->block = block;
  self->next_size = MIN (self->next_size * 2, LARGEST_BLOCK);
}

static gboolean
has_room (const TinyArena *self, gsize n_bytes)
{
  return self->block != NULL && self->block->size - self->block->used >= n_bytes;
}

gboolean
tiny_arena_reserve (TinyArena *self, gsize n_bytes)
{
  n_bytes = align (n_bytes);
  if (has_room (self, n_bytes))
    return TRUE;
  const gsize size = MAX (self->next_size, n_bytes);
  Block *block = g_try_malloc0 (sizeof (Block) + ALIGNMENT + size);
  if (block != NULL)
    add_block (self, block, size);
  return block != NULL;
}

gpointer
tiny_arena_alloc (TinyArena *self, gsize n_bytes)
{
  n_bytes = align (n_bytes);
  if (!has_room (self, n_bytes)) {
    const gsize size = MAX (self->next_size, n_bytes);
    add_block (self, g_malloc0 (sizeof (Block) + ALIGNMENT + size), size);
  }
  Block *block = self->block;
  guint8 *base = (guint8 *) (((gsize) (block + 1) + ALIGNMENT - 1) & ~(gsize) (ALIGNMENT - 1));
  gpointer memory = base + block->used;
  block->used += n_bytes;
  self->n_bytes += n_bytes;
  TINY_COUNT (n_arena_bytes, n_bytes);
  return memory;
}

gpointer
tiny_arena_copy (TinyArena *self, gconstpointer data, gsize n_bytes)
{
  gpointer memory = tiny_arena_alloc (self, n_bytes);
  if (n_bytes > 0)
    memcpy (memory, data, n_bytes);
  return memory;
}

char *
tiny_arena_strdup (TinyArena *self, const char *text)
{
  return tiny_arena_copy (self, text, strlen (text) + 1);
}

gsize
tiny_arena_get_n_bytes (TinyArena *self)
{
  return self->n_bytes;
}
