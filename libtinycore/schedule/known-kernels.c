/* SPDX-License-Identifier: MIT
 *
 * known-kernels.c: a table of the kernels that one plan has made, so that equal ones are made once.
 *
 * A long program asks for the same kernel over other buffers again and again, as the steps of a recurrence do. A key is a
 * row of words: addresses of nodes and of lists of integers, of which a graph has equal ones once, and numbers of
 * buffers in the order in which they were met. Rows that are equal have equal kernels. */
#include "schedule/known-kernels.h"

#include <string.h>

typedef struct {
  const guint64 *words;
  guint n_words;
  guint32 hash;
  TinyNode *kernel; /* NULL: none came of it */
  gboolean reads_target_elsewhere;
  guint n_buffers, n_written;
  const guint *numbers; /* of the buffers */
} Known;

struct KnownKernels {
  GHashTable *table; /* Known */
  KernelKey key;
};

guint
kernel_key_find_number (const KernelKey *self, guint buffer)
{
  guint number = 0;
  while (number < self->buffers->len && g_array_index (self->buffers, guint, number) != buffer)
    number++;
  return number;
}

void
kernel_key_add_buffer (KernelKey *self, Plan *plan, guint buffer)
{
  const TinyScheduleBuffer *info = schedule_get_buffer (plan, buffer);
  const guint number = kernel_key_find_number (self, buffer);
  if (number == self->buffers->len)
    g_array_append_val (self->buffers, buffer);
  KERNEL_KEY_ADD (self, number | (guint64) info->dtype << 32, (guint64) info->n_elements);
}

/* ---- the table ---- */
static guint
hash_known (gconstpointer p)
{
  return ((const Known *) p)->hash;
}

static gboolean
equal_known (gconstpointer a, gconstpointer b)
{
  const Known *x = a, *y = b;
  return x->hash == y->hash && x->n_words == y->n_words
         && memcmp (x->words, y->words, x->n_words * sizeof *x->words) == 0;
}

static Known
make_known (const KernelKey *key)
{
  const guint64 *words = (const guint64 *) (void *) key->words->data;
  guint64 hash = key->words->len;
  for (guint i = 0; i < key->words->len; i++) {
    hash = (hash ^ words[i]) * G_GUINT64_CONSTANT (0x9E3779B97F4A7C15);
    hash ^= hash >> 32;
  }
  return (Known){ .words = words, .n_words = key->words->len, .hash = (guint32) hash };
}

KnownKernels *
known_kernels_new (void)
{
  KnownKernels *self = g_new0 (KnownKernels, 1);
  self->table = g_hash_table_new (hash_known, equal_known);
  self->key.words = g_array_new (FALSE, FALSE, sizeof (guint64));
  self->key.buffers = g_array_new (FALSE, FALSE, sizeof (guint));
  self->key.pending = g_ptr_array_new ();
  return self;
}

void
known_kernels_free (KnownKernels *self)
{
  g_hash_table_unref (self->table);
  g_array_unref (self->key.words);
  g_array_unref (self->key.buffers);
  g_ptr_array_unref (self->key.pending);
  g_free (self);
}

KernelKey *
known_kernels_begin_key (KnownKernels *self)
{
  g_array_set_size (self->key.words, 0);
  g_array_set_size (self->key.buffers, 0);
  return &self->key;
}

gboolean
known_kernels_find (Plan *plan, const KernelKey *key, PlanItem *out_item)
{
  const Known probe = make_known (key);
  const Known *known = g_hash_table_lookup (plan->kernels->table, &probe);
  if (known == NULL)
    return FALSE;
  guint *buffers = tiny_arena_alloc (plan->arena, known->n_buffers * sizeof (guint));
  for (guint i = 0; i < known->n_buffers; i++)
    buffers[i] = g_array_index (key->buffers, guint, known->numbers[i]);
  *out_item = (PlanItem){ .kind = TINY_SCHEDULE_KERNEL,
                          .kernel = known->kernel,
                          .n_buffers = known->n_buffers,
                          .n_written = known->n_written,
                          .buffers = buffers,
                          .reads_target_elsewhere = known->reads_target_elsewhere };
  return TRUE;
}

void
known_kernels_note (Plan *plan, const KernelKey *key, const PlanItem *item)
{
  Known known = make_known (key);
  known.words = tiny_arena_copy (plan->arena, known.words, known.n_words * sizeof *known.words);
  if (item != NULL) {
    guint *numbers = tiny_arena_alloc (plan->arena, item->n_buffers * sizeof (guint));
    for (guint i = 0; i < item->n_buffers; i++)
      numbers[i] = kernel_key_find_number (key, item->buffers[i]);
    known.kernel = item->kernel;
    known.reads_target_elsewhere = item->reads_target_elsewhere;
    known.n_buffers = item->n_buffers;
    known.n_written = item->n_written;
    known.numbers = numbers;
  }
  g_hash_table_add (plan->kernels->table, tiny_arena_copy (plan->arena, &known, sizeof known));
}
