/* SPDX-License-Identifier: MIT
 *
 * tiny-graph.c: the pool of nodes, and walks over it.
 *
 * Nodes live in an arena and are found again through an open-addressing table keyed by all that
 * makes them what they are. Walks are iterative: graphs can be deeper than a stack. */
#include "ir/tiny-node.h"

#include <string.h>

#include "base/tiny-arena.h"
#include "base/tiny-stats.h"
#include "base/tiny-text-hash.h"
#include "ir/tiny-limit.h"
#include "ir/tiny-shape.h"

/* One step of an iterative depth-first walk. */
typedef struct {
  TinyNode *node;
  guint next;
} Frame;

typedef struct {
  gpointer *slots;
  guint size; /* a power of two */
  guint n;
} Table;

/* Slots of nodes beside their hashes, 0 where a slot is empty: a search touches the node it finds only. */
typedef struct {
  guint32 *hashes;
  TinyNode **nodes;
  guint size; /* a power of two */
} NodeTable;

struct TinyGraph {
  TinyArena *arena;
  NodeTable nodes;
  Table ints;
  Frame *stack; /* of walks, kept from one to the next */
  guint stack_size;
  gpointer *order; /* of nodes as walks leave them, kept as well */
  guint order_size;
  GHashTable *texts;
  guint n_nodes;
  guint32 mark;
  guint64 secret; /* in every hash: a file cannot choose nodes that collide */
};

TinyGraph *
tiny_graph_new (void)
{
  TinyGraph *self = g_new0 (TinyGraph, 1);
  TINY_COUNT (n_graphs, 1);
  self->arena = tiny_arena_new ();
  self->secret = tiny_hash_secret ();
  self->nodes.size = 256;
  self->nodes.hashes = g_new0 (guint32, self->nodes.size);
  self->nodes.nodes = g_new (TinyNode *, self->nodes.size);
  self->ints.size = 64;
  self->ints.slots = g_new0 (gpointer, self->ints.size);
  return self;
}

void
tiny_graph_free (TinyGraph *self)
{
  if (self == NULL)
    return;
  tiny_arena_free (self->arena);
  g_free (self->nodes.hashes);
  g_free (self->nodes.nodes);
  g_free (self->stack);
  g_free (self->order);
  g_free (self->ints.slots);
  g_clear_pointer (&self->texts, g_hash_table_unref);
  g_free (self);
}

guint
tiny_graph_get_n_nodes (TinyGraph *self)
{
  return self->n_nodes;
}

gsize
tiny_graph_get_n_bytes (TinyGraph *self)
{
  return tiny_arena_get_n_bytes (self->arena)
         + self->nodes.size * (sizeof (gpointer) + sizeof (guint32));
}

guint32
tiny_graph_begin_mark (TinyGraph *self)
{
  return ++self->mark;
}

static inline guint64
mix (guint64 hash, guint64 value)
{
  hash = (hash ^ value) * G_GUINT64_CONSTANT (0x9E3779B97F4A7C15);
  return hash ^ (hash >> 32);
}

static guint32
hash_ints (const TinyGraph *self, const gint64 *v, guint n)
{
  guint64 hash = self->secret ^ n;
  for (guint i = 0; i < n; i++)
    hash = mix (hash, (guint64) v[i]);
  return (guint32) hash;
}

const TinyInts *
tiny_graph_ints (TinyGraph *self, const gint64 *v, guint n)
{
  Table *table = &self->ints;
  guint i = hash_ints (self, v, n) & (table->size - 1);
  for (; table->slots[i] != NULL; i = (i + 1) & (table->size - 1)) {
    const TinyInts *found = table->slots[i];
    if (found->n == n && (n == 0 || memcmp (found->v, v, n * sizeof (gint64)) == 0))
      return found;
  }
  TinyInts *ints = tiny_arena_alloc (self->arena, sizeof (TinyInts) + n * sizeof (gint64));
  ints->n = n;
  if (n > 0)
    memcpy (ints->v, v, n * sizeof (gint64));
  table->slots[i] = ints;
  if (++table->n * 2 > table->size) {
    Table old = *table;
    table->size *= 2;
    table->slots = g_new0 (gpointer, table->size);
    for (guint j = 0; j < old.size; j++) {
      const TinyInts *moved = old.slots[j];
      if (moved == NULL)
        continue;
      guint k = hash_ints (self, moved->v, moved->n) & (table->size - 1);
      while (table->slots[k] != NULL)
        k = (k + 1) & (table->size - 1);
      table->slots[k] = (gpointer) moved;
    }
    g_free (old.slots);
  }
  return ints;
}

const char *
tiny_graph_text (TinyGraph *self, const char *text)
{
  if (self->texts == NULL)
    self->texts = g_hash_table_new (tiny_text_hash, g_str_equal);
  char *found = g_hash_table_lookup (self->texts, text);
  if (found == NULL) {
    found = tiny_arena_strdup (self->arena, text);
    g_hash_table_add (self->texts, found);
  }
  return found;
}

const char *
tiny_graph_try_text (TinyGraph *self, const char *text)
{
  return tiny_arena_reserve (self->arena, strlen (text) + 1) ? tiny_graph_text (self, text)
                                                             : NULL;
}

static inline gboolean
are_same (TinyNode *const *a, TinyNode *const *b, guint n)
{
  for (guint i = 0; i < n; i++)
    if (a[i] != b[i])
      return FALSE;
  return TRUE;
}

static guint
find_free_slot (const NodeTable *table, guint32 hash)
{
  guint slot = hash & (table->size - 1);
  while (table->hashes[slot] != 0)
    slot = (slot + 1) & (table->size - 1);
  return slot;
}

static void
grow_nodes (NodeTable *table)
{
  NodeTable old = *table;
  table->size *= 2;
  table->hashes = g_new0 (guint32, table->size);
  table->nodes = g_new (TinyNode *, table->size);
  for (guint i = 0; i < old.size; i++)
    if (old.hashes[i] != 0) {
      guint slot = find_free_slot (table, old.hashes[i]);
      table->hashes[slot] = old.hashes[i];
      table->nodes[slot] = old.nodes[i];
    }
  g_free (old.hashes);
  g_free (old.nodes);
}

TinyNode *
tiny_node_new (TinyGraph *graph,
               TinyOp op,
               TinyDType dtype,
               guint lanes,
               guint n_sources,
               TinyNode *const *sources,
               gint64 arg,
               const TinyInts *ints,
               const char *text)
{
  if (ints != NULL)
    ints = tiny_graph_ints (graph, ints->v, ints->n);
  if (text != NULL)
    text = tiny_graph_text (graph, text);
  return tiny_node_new_interned (graph, op, dtype, lanes, n_sources, sources, arg, ints, text);
}

TinyNode *
tiny_node_new_interned (TinyGraph *graph,
                        TinyOp op,
                        TinyDType dtype,
                        guint lanes,
                        guint n_sources,
                        TinyNode *const *sources,
                        gint64 arg,
                        const TinyInts *ints,
                        const char *text)
{
  TINY_COUNT (n_nodes_asked, 1);
  guint64 hash
      = mix (mix (graph->secret ^ (op | dtype << 16 | (guint64) lanes << 32), (guint64) arg),
             GPOINTER_TO_SIZE (ints) ^ (GPOINTER_TO_SIZE (text) << 1));
  for (guint i = 0; i < n_sources; i++)
    hash = mix (hash, sources[i]->id + 1);
  guint32 hash32 = MAX ((guint32) hash, 1);

  NodeTable *table = &graph->nodes;
  guint slot = hash32 & (table->size - 1);
  for (; table->hashes[slot] != 0; slot = (slot + 1) & (table->size - 1)) {
    if (table->hashes[slot] != hash32)
      continue;
    TinyNode *found = table->nodes[slot];
    if (found->op == op && found->dtype == dtype && found->lanes == lanes
        && found->n_sources == n_sources && found->arg == arg && found->ints == ints
        && found->text == text && are_same (found->sources, sources, n_sources))
      return found;
  }
  TinyNode *node
      = tiny_arena_alloc (graph->arena, sizeof (TinyNode) + n_sources * sizeof (gpointer));
  TINY_COUNT (n_nodes, 1);
  TinyNode **own_sources = (TinyNode **) (node + 1);
  node->op = op;
  node->dtype = dtype;
  node->lanes = lanes;
  node->n_sources = n_sources;
  node->id = graph->n_nodes++;
  node->arg = arg;
  node->ints = ints;
  node->text = text;
  node->sources = own_sources;
  if (n_sources > 0)
    memcpy (own_sources, sources, n_sources * sizeof (gpointer));
  node->shape = tiny_shape_of_node (graph, node);
  table->hashes[slot] = hash32;
  table->nodes[slot] = node;
  if (graph->n_nodes * 2 > table->size)
    grow_nodes (table);
  node->limits = tiny_limits_of_node (graph, node);
  return node;
}

TinyNode *
tiny_node_with_sources (TinyGraph *graph, TinyNode *node, TinyNode *const *sources)
{
  if (node->n_sources == 0
      || memcmp (node->sources, sources, node->n_sources * sizeof (gpointer)) == 0)
    return node;
  return tiny_node_new_interned (graph, node->op, node->dtype, node->lanes, node->n_sources,
                                 sources, node->arg, node->ints, node->text);
}

static inline void
push (TinyGraph *self, guint depth, TinyNode *node)
{
  if (depth == self->stack_size) {
    self->stack_size = MAX (2 * depth, 64);
    self->stack = g_renew (Frame, self->stack, self->stack_size);
  }
  self->stack[depth] = (Frame){ node, 0 };
}

static inline void
leave (TinyGraph *self, guint n, TinyNode *node)
{
  if (n == self->order_size) {
    self->order_size = MAX (2 * n, 64);
    self->order = g_renew (gpointer, self->order, self->order_size);
  }
  node->place = n;
  self->order[n] = node;
}

/* Lists what is under @roots in self->order, sources first; how many there are. */
static guint
list_order (TinyGraph *self, TinyNode *const *roots, guint n_roots)
{
  guint n = 0;
  guint32 seen = tiny_graph_begin_mark (self);
  for (guint r = 0; r < n_roots; r++) {
    if (roots[r]->mark == seen)
      continue;
    roots[r]->mark = seen;
    push (self, 0, roots[r]);
    for (guint depth = 1; depth > 0;) {
      Frame *top = &self->stack[depth - 1];
      if (top->next == top->node->n_sources) {
        leave (self, n++, top->node);
        depth--;
        continue;
      }
      TinyNode *source = top->node->sources[top->next++];
      if (source->mark == seen)
        continue;
      source->mark = seen;
      push (self, depth++, source);
    }
  }
  TINY_COUNT (n_listed, n);
  return n;
}

void
tiny_graph_toposort_into (TinyGraph *self,
                          TinyNode *const *roots,
                          guint n_roots,
                          GPtrArray *order)
{
  const guint n = list_order (self, roots, n_roots);
  g_ptr_array_set_size (order, (gint) n);
  if (n > 0)
    memcpy (order->pdata, self->order, n * sizeof (gpointer));
}

GPtrArray *
tiny_graph_toposort (TinyGraph *self, TinyNode *const *roots, guint n_roots)
{
  GPtrArray *order = g_ptr_array_new ();
  tiny_graph_toposort_into (self, roots, n_roots, order);
  return order;
}

guint *
tiny_graph_list_places (const GPtrArray *order, TinyNode *const *roots, guint n_roots)
{
  gsize n = n_roots;
  for (guint i = 0; i < order->len; i++)
    n += ((const TinyNode *) order->pdata[i])->n_sources;
  guint *places = g_new (guint, n + 1), *at = places;
  for (guint i = 0; i < order->len; i++) {
    const TinyNode *node = order->pdata[i];
    for (guint s = 0; s < node->n_sources; s++)
      *at++ = node->sources[s]->place;
  }
  for (guint r = 0; r < n_roots; r++)
    *at++ = roots[r]->place;
  return places;
}

/* Rebuilds @node over the mapped sources. */
static TinyNode *
rebuild (TinyGraph *graph, TinyNode *node, const TinyNodeMap *map)
{
  TinyNode *small[8];
  TinyNode **sources = node->n_sources <= 8 ? small : g_new (TinyNode *, node->n_sources);
  for (guint i = 0; i < node->n_sources; i++)
    sources[i] = tiny_node_map_get (map, node->sources[i]);
  TinyNode *result = tiny_node_new (graph, node->op, node->dtype, node->lanes, node->n_sources,
                                    sources, node->arg, node->ints, node->text);
  if (sources != small)
    g_free (sources);
  return result;
}

static gboolean
is_changed (const TinyNode *node, const TinyNodeMap *map)
{
  for (guint i = 0; i < node->n_sources; i++)
    if (tiny_node_map_get (map, node->sources[i]) != node->sources[i])
      return TRUE;
  return FALSE;
}

TinyNode *
tiny_graph_substitute (
    TinyGraph *self, TinyNode *root, TinyNode *const *from, TinyNode *const *to, guint n)
{
  g_auto (TinyNodeMap) map = { 0 };
  for (guint i = 0; i < n; i++)
    tiny_node_map_set (&map, from[i], to[i]);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (self, &root, 1);
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (tiny_node_map_get (&map, node) == NULL)
      tiny_node_map_set (&map, node,
                         is_changed (node, &map) ? rebuild (self, node, &map) : node);
  }
  return tiny_node_map_get (&map, root);
}

/* Children-first order without marks: the other graph may be in use for reading elsewhere. */
TinyNode *
tiny_graph_import (TinyGraph *self, TinyNode *root)
{
  g_auto (TinyNodeMap) map = { 0 };
  g_autoptr (GArray) stack = g_array_new (FALSE, FALSE, sizeof (Frame));
  g_array_append_val (stack, ((Frame){ root, 0 }));
  while (stack->len > 0) {
    Frame *frame = &g_array_index (stack, Frame, stack->len - 1);
    if (frame->next == frame->node->n_sources) {
      if (tiny_node_map_get (&map, frame->node) == NULL)
        tiny_node_map_set (&map, frame->node, rebuild (self, frame->node, &map));
      g_array_set_size (stack, stack->len - 1);
      continue;
    }
    TinyNode *source = frame->node->sources[frame->next++];
    if (tiny_node_map_get (&map, source) == NULL)
      g_array_append_val (stack, ((Frame){ source, 0 }));
  }
  return tiny_node_map_get (&map, root);
}

void
tiny_node_map_clear (TinyNodeMap *self)
{
  g_clear_pointer (&self->entries, g_free);
  *self = (TinyNodeMap){ 0 };
}

enum { LEAST_PLACES = 32 };

void
tiny_node_map_reserve (TinyNodeMap *self, guint n)
{
  g_assert (self->n == 0);
  tiny_node_map_clear (self);
  for (self->size = LEAST_PLACES; self->size <= 2 * n;)
    self->size *= 2;
  self->entries = g_new0 (TinyNodeMapEntry, self->size);
  TINY_COUNT (n_map_entries, self->size);
}

/* Makes room for @node. */
static void
grow_map (TinyNodeMap *self, const TinyNode *node)
{
  enum { SPARSE = 4 }; /* places for each node, where it has that of its id */
  TinyNodeMap old = *self;
  guint last = node->id;
  for (guint i = 0; i < old.size; i++)
    if (old.entries[i].node != NULL)
      last = MAX (last, old.entries[i].node->id);
  self->is_dense = last / SPARSE <= old.n;
  self->size = MAX (2 * old.size, LEAST_PLACES);
  while (self->is_dense && self->size <= last)
    self->size *= 2;
  self->entries = g_new0 (TinyNodeMapEntry, self->size);
  TINY_COUNT (n_map_entries, self->size);
  for (guint i = 0; i < old.size; i++)
    if (old.entries[i].node != NULL)
      *tiny_node_map_find (self, old.entries[i].node) = old.entries[i];
  g_free (old.entries);
}

void
tiny_node_map_set (TinyNodeMap *self, const TinyNode *node, gpointer value)
{
  if (self->is_dense ? node->id >= self->size : self->n * 2 >= self->size)
    grow_map (self, node);
  TinyNodeMapEntry *entry = tiny_node_map_find (self, node);
  self->n += entry->node == NULL;
  *entry = (TinyNodeMapEntry){ node, value };
}

/* ---- digest ---- */
static void
update_string (GChecksum *sum, const char *text)
{
  g_checksum_update (sum, (const guchar *) text, (gssize) strlen (text) + 1);
}

void
tiny_node_digest (TinyGraph *graph, TinyNode *root, guint8 out_digest[16])
{
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &root, 1);
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  g_auto (TinyNodeMap) position = { 0 };
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    tiny_node_map_set (&position, node, GUINT_TO_POINTER (i + 1));
    gint64 head[5] = { node->dtype, node->lanes, node->n_sources, node->arg,
                       node->ints ? (gint64) node->ints->n : -1 };
    update_string (sum, tiny_op_infos[node->op].text);
    g_checksum_update (sum, (const guchar *) head, sizeof head);
    if (node->ints != NULL)
      g_checksum_update (sum, (const guchar *) node->ints->v, node->ints->n * sizeof (gint64));
    update_string (sum, node->text ? node->text : "");
    for (guint s = 0; s < node->n_sources; s++) {
      guint32 p = GPOINTER_TO_UINT (tiny_node_map_get (&position, node->sources[s]));
      g_checksum_update (sum, (const guchar *) &p, sizeof p);
    }
  }
  guint8 full[32];
  gsize length = sizeof full;
  g_checksum_get_digest (sum, full, &length);
  memcpy (out_digest, full, 16);
}
