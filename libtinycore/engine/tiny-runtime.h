/* SPDX-License-Identifier: MIT
 *
 * tiny-runtime.h: the process-wide tensor graph, the memory behind its buffers, and realising.
 *
 * Tensor nodes of the whole process live in one graph under one lock. Whoever holds a tensor node
 * across unlocking holds it in a TinyRoot, which the runtime updates when it sweeps the graph or
 * when a value has been realised. */
#pragma once

#include "device/tiny-buffer.h"
#include "ir/tiny-node.h"

G_BEGIN_DECLS

/* The lock is recursive. All of tensor/ and autograd/ runs under it while it touches nodes. */
void tiny_runtime_lock (void);
void tiny_runtime_unlock (void);
/* To the end of the scope. */
typedef gboolean TinyRuntimeHold;
static inline void
tiny_runtime_hold_end (TinyRuntimeHold *self)
{
  tiny_runtime_unlock ();
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TinyRuntimeHold, tiny_runtime_hold_end)
#define TINY_RUNTIME_HOLD                                                                      \
  g_auto (TinyRuntimeHold) hold G_GNUC_UNUSED = (tiny_runtime_lock (), TRUE)
/* The same; FALSE with an error and without the lock when the thread is told to stop while it waits for another. */
gboolean tiny_runtime_lock_or_stop (GError **error);
/* Whether the lock could be had at once. */
gboolean tiny_runtime_try_lock (void);
/* Calls @let_go (@data) under the lock and then @destroy (@data) without it: now, or when who has it is done. For who must
 * not wait, such as who drops a last reference while he holds another language's lock. */
void tiny_runtime_defer (gpointer data, GDestroyNotify let_go, GDestroyNotify destroy);
/* FALSE in a process that was forked while another thread was in the midst of computing: nothing there can be relied on. */
gboolean tiny_runtime_check (GError **error);
TinyGraph *tiny_runtime_get_graph (void);

/* A node kept alive, and kept up to date. Embedded in its owner; @node may change at any call of
 * the runtime that may sweep or realise. */
typedef struct TinyRoot {
  TinyNode *node;
  struct TinyRoot *next, *previous;
  struct TinyRoot *next_active, *previous_active; /* among those that wait or want gradients */
  struct TinyRoot *next_wanting, *previous_wanting; /* among those that want gradients */
  gboolean wants_gradients; /* what is made of it keeps its history, see tiny-history.h */
  guint64 number;           /* counts up */
  guint64 recording;        /* for which it was made, or 0, see tiny-recorders.h */
  gboolean is_recorded;     /* of who has memory that a recording writes */
} TinyRoot;
void tiny_runtime_add_root (TinyRoot *root, TinyNode *node);
void tiny_runtime_remove_root (TinyRoot *root);
void tiny_root_set_wants_gradients (TinyRoot *root, gboolean wants);

/* Data that GRADIENT nodes with that arg refer to, the caller's own until there is one: it goes to
 * @destroy some time after the last of them is gone, without the lock. */
gint64 tiny_runtime_attach (gpointer data, GDestroyNotify destroy);
gpointer tiny_runtime_get_attached (gint64 id);

/* Between them nodes stay where they are, whatever is realised by what is called meanwhile. Under
 * the lock. */
void tiny_runtime_hold (void);
void tiny_runtime_release (void);

/* A BUFFER node of that shape for @buffer, of which the graph takes a reference until the node is
 * swept. */
TinyNode *
tiny_runtime_buffer_node (TinyBuffer *buffer, TinyDType dtype, const gint64 *dims, guint n);
/* The node of @buffers: as above of a single one; of @n on @devices an UNSHARD along @axis (ir/tiny-shard.h). */
TinyNode *tiny_runtime_memory_node (TinyDType dtype,
                                    const TinyInts *shape,
                                    const char *devices,
                                    gint64 axis,
                                    TinyBuffer *const *buffers,
                                    guint n);
/* Whether @node is a BUFFER, or an UNSHARD of BUFFERs. */
gboolean tiny_runtime_is_memory (const TinyNode *node);
/* (transfer none): the memory behind a BUFFER node. */
TinyBuffer *tiny_runtime_get_buffer (TinyNode *node);

/* A variable with the value that it has in one run. In the tensor graph of the process a VARIABLE's arg is its value: what
 * a tensor computes depends on nothing that changes later. */
typedef struct {
  const char *
      name; /* interned; NULL: a number that one program is to serve all values of, and no input of a recording */
  gint64 min, max, value;
} TinyBoundVariable;
/* That of a VARIABLE node of that graph. */
TinyBoundVariable tiny_runtime_get_variable (const TinyNode *node);
/* What has the same value in each run, and is nobody's input. */
static inline TinyBoundVariable
tiny_bound_variable_of (gint64 value)
{
  return (TinyBoundVariable){ NULL, value, value, value };
}
/* Whether both are the same variable, of whatever value. */
gboolean tiny_bound_variable_is_same (const TinyBoundVariable *a, const TinyBoundVariable *b);

/* Makes the values of @roots exist: afterwards each root's node is a BUFFER, or a RESHAPE of one,
 * and every other root that shared a realised part reads it from memory. An ASSIGN root becomes
 * its buffer; unrealised roots elsewhere that read the old contents are realised first.
 *
 * Errors: those of scheduling, compiling and running; roots are unchanged then. */
gboolean tiny_runtime_realize (TinyRoot *const *roots, guint n, GError **error);
/* Realises every root that was assigned to and is not computed yet: for this thread's recording where there is one, else for
 * none. What cannot be computed then waits on, and is an error of who asks for it. */
gboolean tiny_runtime_realize_assignments (GError **error);

/* The name of the device that tensors are made on when none is named (DEV=…, opened on first use);
 * interned. */
const char *tiny_runtime_get_default_device (GError **error);

/* Opens that device before the lock is taken for something that will need it: a plugin that hangs in opening keeps
 * no others then. Errors come when it is used. */
void tiny_runtime_open_default_device (void);

/* ---- counters, for tests, bench and DEBUG ---- */
typedef struct {
  guint64 n_kernels, n_schedules, n_schedule_hits, n_compiles, n_disk_hits, n_sweeps;
  guint64 n_flops, n_bytes;
  guint64 ns_schedule, ns_codegen, ns_compile, ns_run;
} TinyCounters;
/* Launches that were submitted once more, whether planned or replayed. */
void tiny_runtime_count_run (gint64 ns, guint n_kernels, guint64 n_flops, guint64 n_bytes);
void tiny_runtime_get_counters (TinyCounters *out);
void tiny_runtime_reset_counters (void);

G_END_DECLS
