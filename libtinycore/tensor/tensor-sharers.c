/* SPDX-License-Identifier: MIT
 *
 * tensor-sharers.c: memory that several tensors see, before it is written in place.
 *
 * A copy shares the memory of what it is of until one of them changes. Who writes in place (the host, a recording, an
 * assignment to what a recording goes on to use) has the others given copies first; views follow what they are of. */
#include "engine/runtime-private.h"
#include "engine/tiny-plan.h"
#include "engine/tiny-recorders.h"
#include "tensor/tiny-build.h"
#include "tensor/tiny-tensor-private.h"
#include "tensor/tiny-view.h"

/* ---- who has memory ---- */

/* What @root has, which is no view: (nullable) a BUFFER, or an UNSHARD of some. */
static TinyNode *
get_memory (const TinyRoot *root, GHashTable *views)
{
  TinyNode *memory = tiny_runtime_get_memory (root->node);
  return tiny_runtime_is_memory (memory) && !g_hash_table_contains (views, root) ? memory
                                                                                 : NULL;
}

static TinyBuffer *
get_buffer (TinyNode *memory)
{
  return tiny_runtime_get_buffer (tiny_runtime_get_piece (memory, 0));
}

GHashTable *
tiny_tensor_list_owners (void)
{
  GHashTable *owners = g_hash_table_new (NULL, NULL);
  g_autoptr (GHashTable) views = tiny_view_list_all ();
  TinyRoot *head = tiny_runtime_get_roots ();
  for (TinyRoot *root = head->next; root != head; root = root->next) {
    TinyNode *memory = get_memory (root, views);
    const TinyRoot *before
        = memory != NULL ? g_hash_table_lookup (owners, get_buffer (memory)) : NULL;
    if (memory != NULL && (before == NULL || root->number < before->number))
      g_hash_table_insert (owners, get_buffer (memory), root);
  }
  return owners;
}

void
tiny_tensor_mark_owners (void)
{
  g_autoptr (GHashTable) owners = tiny_tensor_list_owners ();
  GHashTableIter iter;
  gpointer buffer, root;
  g_hash_table_iter_init (&iter, owners);
  while (g_hash_table_iter_next (&iter, &buffer, &root))
    if (tiny_buffer_is_recorded (buffer))
      ((TinyRoot *) root)->is_recorded = TRUE;
}

gboolean
tiny_tensor_is_recorded (TinyTensor *self)
{
  TinyNode *memory = tiny_runtime_get_memory (self->root.node);
  return self->root.is_recorded && tiny_runtime_is_memory (memory)
         && tiny_buffer_is_recorded (get_buffer (memory));
}

/* ---- copies for the others ---- */
static GHashTable *
list_buffers (TinyNode *memory)
{
  GHashTable *buffers = g_hash_table_new (NULL, NULL);
  for (guint i = 0; i < tiny_runtime_count_pieces (memory); i++)
    g_hash_table_add (buffers, tiny_runtime_get_buffer (tiny_runtime_get_piece (memory, i)));
  return buffers;
}

/* The roots of tensors that see @memory, moved or not, and are no views of @self. */
static GPtrArray *
list_sharers (TinyTensor *self, const TinyNode *memory)
{
  g_autoptr (GHashTable) views = tiny_view_list_roots (self);
  GPtrArray *sharers = g_ptr_array_new ();
  TinyRoot *head = tiny_runtime_get_roots ();
  const TinyMovedSearch search = tiny_view_begin_search (memory);
  for (TinyRoot *root = head->next; root != head; root = root->next)
    if (root != &self->root && tiny_view_is_moved (&search, root->node)
        && !g_hash_table_contains (views, root))
      g_ptr_array_add (sharers, root);
  return sharers;
}

/* Puts a copy in the place of @memory where it is part of @sharers. Nodes stay where they are meanwhile. */
static gboolean
give_copies (TinyNode *memory, const GPtrArray *sharers, GError **error)
{
  TinyGraph *graph = tiny_runtime_get_graph ();
  const guint n = tiny_runtime_count_pieces (memory);
  g_autofree TinyRoot *kept = g_new0 (TinyRoot, n);
  g_autofree TinyRoot **roots = g_new (TinyRoot *, n);
  g_autofree TinyNode **from = g_new (TinyNode *, n), **to = g_new (TinyNode *, n);
  for (guint i = 0; i < n; i++) {
    TinyBuffer *old = tiny_runtime_get_buffer (from[i] = tiny_runtime_get_piece (memory, i));
    const TinyInts *shape = from[i]->shape;
    g_autoptr (TinyBuffer) buffer
        = tiny_buffer_new (tiny_buffer_get_device (old), tiny_buffer_get_n_bytes (old));
    TinyNode *sources[]
        = { tiny_runtime_buffer_node (buffer, (TinyDType) from[i]->dtype, shape->v, shape->n),
            from[i] };
    to[i] = sources[0];
    tiny_runtime_add_root (
        &kept[i], tiny_node_new (graph, TINY_OP_ASSIGN, (TinyDType) from[i]->dtype, 1, 2,
                                 sources, (gint64) tiny_recorders_get_target (), NULL, NULL));
    roots[i] = &kept[i];
  }
  gboolean good = tiny_runtime_realize (roots, n, error);
  for (guint i = 0; good && i < sharers->len; i++) {
    TinyRoot *root = sharers->pdata[i];
    tiny_runtime_move_root (root, tiny_graph_substitute (graph, root->node, from, to, n));
  }
  for (guint i = 0; i < n; i++)
    tiny_runtime_remove_root (&kept[i]);
  return good;
}

/* Likewise; but what was there before a recording began is copied once, not by every replay. */
static gboolean
part_from (TinyNode *memory, const GPtrArray *sharers, GError **error)
{
  TinyLaunches **recorder = tiny_launches_get_recorder (), *kept = *recorder;
  g_autoptr (GPtrArray) older = g_ptr_array_new (), newer = g_ptr_array_new ();
  for (guint i = 0; i < sharers->len; i++) {
    TinyRoot *root = sharers->pdata[i];
    const gboolean is_newer = kept != NULL && root->number >= tiny_launches_get_n_roots (kept)
                              && root->recording == tiny_recorders_get_own ();
    g_ptr_array_add (is_newer ? newer : older, root);
  }
  *recorder = NULL;
  gboolean good = older->len == 0 || give_copies (memory, older, error);
  *recorder = kept;
  return good && (newer->len == 0 || give_copies (memory, newer, error));
}

gboolean
tiny_tensor_part_memory (TinyTensor *self, GError **error)
{
  g_autoptr (GHashTable) buffers = list_buffers (tiny_runtime_get_memory (self->root.node));
  if (!tiny_runtime_realize_readers (buffers, FALSE, error))
    return FALSE;
  tiny_runtime_hold ();
  TinyNode *memory = tiny_runtime_get_memory (self->root.node);
  g_autoptr (GPtrArray) sharers = list_sharers (self, memory);
  gboolean good = part_from (memory, sharers, error);
  tiny_runtime_release ();
  return good;
}

/* What @node is but for movement; NULL where a walk with the @seen mark came by already. */
static TinyNode *
walk_to_source (TinyNode *node, guint32 seen)
{
  while (node->mark != seen && tiny_view_is_movement (node)) {
    node->mark = seen;
    node = node->sources[0];
  }
  const gboolean is_known = node->mark == seen;
  node->mark = seen;
  return is_known ? NULL : node;
}

/* All memory that is @written and seen by roots older than @number. */
static GPtrArray *
list_older (GHashTable *written, guint64 number)
{
  GPtrArray *all = g_ptr_array_new ();
  TinyRoot *head = tiny_runtime_get_roots ();
  const guint32 seen = tiny_graph_begin_mark (tiny_runtime_get_graph ());
  for (TinyRoot *root = head->next; root != head; root = root->next) {
    TinyNode *memory = root->number < number ? walk_to_source (root->node, seen) : NULL;
    if (memory != NULL && tiny_runtime_has_piece (memory, written))
      g_ptr_array_add (all, memory);
  }
  return all;
}

gboolean
tiny_tensor_part_older (GHashTable *written, guint64 number, GError **error)
{
  TinyRoot *head = tiny_runtime_get_roots ();
  gboolean good = TRUE;
  tiny_runtime_hold ();
  g_autoptr (GPtrArray) all = list_older (written, number);
  for (guint i = 0; good && i < all->len; i++) {
    g_autoptr (GPtrArray) older = g_ptr_array_new ();
    const TinyMovedSearch search = tiny_view_begin_search (all->pdata[i]);
    for (TinyRoot *root = head->next; root != head; root = root->next)
      if (root->number < number && tiny_view_is_moved (&search, root->node))
        g_ptr_array_add (older, root);
    good = give_copies (all->pdata[i], older, error);
  }
  tiny_runtime_release ();
  return good;
}

/* What @root sees but for movement, if that is memory. */
static TinyNode *
find_memory (const TinyRoot *root)
{
  TinyNode *node = root->node;
  while (tiny_view_is_movement (node))
    node = node->sources[0];
  return tiny_runtime_is_memory (node) ? node : NULL;
}

/* Each of @roots gets one for itself. */
static gboolean
give_own_copies (const GPtrArray *roots, GError **error)
{
  gboolean good = TRUE;
  for (guint i = 0; good && i < roots->len; i++) {
    g_autoptr (GPtrArray) one = g_ptr_array_new ();
    g_ptr_array_add (one, roots->pdata[i]);
    good = give_copies (find_memory (one->pdata[0]), one, error);
  }
  return good;
}

gboolean
tiny_tensor_part_all (GError **error)
{
  tiny_runtime_hold ();
  g_autoptr (GHashTable) owners = tiny_tensor_list_owners ();
  g_autoptr (GHashTable) views = tiny_view_list_all ();
  g_autoptr (GPtrArray) others = g_ptr_array_new ();
  TinyRoot *head = tiny_runtime_get_roots ();
  for (TinyRoot *root = head->next; root != head; root = root->next) {
    TinyNode *memory = get_memory (root, views);
    /* What a function makes while another thread records it stays what it is. */
    if (memory != NULL && g_hash_table_lookup (owners, get_buffer (memory)) != root
        && tiny_recorders_get_owner (root) == tiny_recorders_get_own ())
      g_ptr_array_add (others, root);
  }
  gboolean good = give_own_copies (others, error);
  tiny_runtime_release ();
  tiny_view_refresh_all ();
  return good;
}

/* Who keeps the memory that a replay writes: who has it for a recording, else the input that it is of. */
static GHashTable *
list_keepers (GHashTable *written, TinyTensor *const *inputs, guint n, GHashTable *views)
{
  GHashTable *keepers = g_hash_table_new (NULL, NULL);
  for (guint i = 0; i < n; i++) {
    /* A view of all of a tensor has the memory of that. */
    TinyNode *memory = tiny_runtime_get_memory (inputs[i]->root.node);
    TinyTensor *base = tiny_view_get_base (inputs[i]);
    const gboolean is_all = tiny_runtime_get_memory (base->root.node) == memory;
    g_hash_table_insert (keepers, memory, is_all ? &base->root : &inputs[i]->root);
  }
  TinyRoot *head = tiny_runtime_get_roots ();
  for (TinyRoot *root = head->next; root != head; root = root->next) {
    TinyNode *memory = root->is_recorded ? get_memory (root, views) : NULL;
    if (memory == NULL
        || !(g_hash_table_contains (keepers, memory)
             || tiny_runtime_has_piece (memory, written)))
      continue;
    const TinyRoot *before = g_hash_table_lookup (keepers, memory);
    if (before == NULL || !before->is_recorded || root->number < before->number)
      g_hash_table_insert (keepers, memory, root);
  }
  return keepers;
}

gboolean
tiny_tensor_part_written (GHashTable *written,
                          TinyTensor *const *inputs,
                          guint n,
                          GError **error)
{
  tiny_runtime_hold ();
  g_autoptr (GHashTable) views = tiny_view_list_all ();
  g_autoptr (GHashTable) keepers = list_keepers (written, inputs, n, views);
  g_autoptr (GPtrArray) sharers = g_ptr_array_new ();
  TinyRoot *head = tiny_runtime_get_roots ();
  for (TinyRoot *root = head->next; root != head; root = root->next) {
    TinyNode *memory = find_memory (root);
    if (memory == NULL
        || !(g_hash_table_contains (keepers, memory)
             || tiny_runtime_has_piece (memory, written)))
      continue;
    const TinyRoot *keeper = g_hash_table_lookup (keepers, memory);
    if (keeper != NULL && (root == keeper || g_hash_table_lookup (views, root) == keeper))
      continue;
    g_ptr_array_add (sharers, root);
  }
  gboolean good = give_own_copies (sharers, error);
  tiny_runtime_release ();
  return good;
}
