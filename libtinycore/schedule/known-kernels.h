/* SPDX-License-Identifier: MIT
 *
 * known-kernels.h: kernels that were made in this plan, by all that they depend on. */
#pragma once

#include "schedule/plan.h"

G_BEGIN_DECLS

/* The first word of a key. */
enum { KERNEL_OF_STAGE = 1, KERNEL_OF_PAIR };

/* All that a kernel depends on, with numbers in the place of the buffers. */
typedef struct {
  GArray *words;      /* guint64 */
  GArray *buffers;    /* guint: the buffer of each number */
  GPtrArray *pending; /* TinyNode: those whose turn has not come; empty between calls */
} KernelKey;

KnownKernels *known_kernels_new (void);
void known_kernels_free (KnownKernels *self);

/* An empty key, of which there is one at a time. */
KernelKey *known_kernels_begin_key (KnownKernels *self);
/* Adds words, each converted to guint64. */
#define KERNEL_KEY_ADD(self, ...)                                                              \
  g_array_append_vals ((self)->words, ((const guint64[]){ __VA_ARGS__ }),                      \
                       sizeof ((const guint64[]){ __VA_ARGS__ }) / sizeof (guint64))

/* The number of @buffer, or the number of buffers where it has none. */
guint kernel_key_find_number (const KernelKey *self, guint buffer);
/* Adds the number of @buffer, a new one unless it has one, and what is known of it. */
void kernel_key_add_buffer (KernelKey *self, Plan *plan, guint buffer);

/* True if such a kernel was asked for before. Then the kernel and the buffers of @out_item are filled, or its kernel is
 * NULL where none came of it. */
gboolean known_kernels_find (Plan *plan, const KernelKey *key, PlanItem *out_item);
/* Notes that @item came of it; NULL: nothing did. */
void known_kernels_note (Plan *plan, const KernelKey *key, const PlanItem *item);

G_END_DECLS
