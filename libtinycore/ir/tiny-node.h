/* SPDX-License-Identifier: MIT
 *
 * tiny-node.h: nodes and the graph that owns them.
 *
 * A node is an op, a dtype, a number of lanes, sources and one argument (a number, a list of
 * integers, a text: whichever the op uses, see ops.def). Nodes are immutable and hash-consed:
 * asking a graph for the same node twice gives the same pointer, so equality is ==. A graph owns
 * its nodes until it is freed. One thread uses a graph at a time.
 *
 * Tensor-stage nodes carry a shape; on kernel-stage nodes it is NULL. A source of shape () stands
 * for its one value everywhere, in every elementwise op; otherwise shapes of sources are equal. */
#pragma once

#include <glib.h>

#include "ir/tiny-dtype.h"
#include "ir/tiny-op.h"

G_BEGIN_DECLS

typedef struct TinyGraph TinyGraph;
typedef struct TinyNode TinyNode;

/* An interned list of integers: equal lists of one graph are the same pointer. */
typedef struct {
  guint n;
  gint64 v[];
} TinyInts;

struct TinyNode {
  guint16 op;            /* TinyOp */
  guint8 dtype;          /* TinyDType */
  guint8 bounds : 1;     /* vmin and vmax are known */
  guint8 n_computed : 2; /* times, up to 2, that it was and was not stored: engine/keep-computed.h */
  guint8 n_repeats : 3;  /* times, up to 7, that it was for a value that is held and not stored */
  guint16 lanes;         /* 1 is a scalar */
  guint16 n_ranges;
  guint32 n_sources;
  guint32 id;   /* order of creation in its graph, dense from 0 */
  guint32 mark; /* see tiny_graph_begin_mark() */
  guint32 n_users; /* in the tensor graph: engine/node-users.h */
  guint32 place; /* in the order that was made last, see tiny_graph_toposort() */
  gint64 arg;            /* number; floats as the bits of their double */
  const TinyInts *ints;  /* or NULL */
  const char *text;      /* interned in the graph, or NULL */
  const TinyInts *shape; /* tensor stage; else NULL */
  TinyNode *limits;      /* see ir/tiny-limit.h; mostly NULL */
  gint64 vmin, vmax;     /* of integers, memo of the range analysis */
  TinyNode *const *ranges; /* memo of tiny_node_get_ranges(); NULL: not known yet */
  TinyNode *const *sources;
};

/* What a loop axis is for. */
typedef enum {
  TINY_RANGE_LOOP,   /* a plain loop over outputs */
  TINY_RANGE_REDUCE, /* a plain loop that a reduce combines */
  TINY_RANGE_GRID,   /* spread over work-groups or threads */
  TINY_RANGE_GROUP,  /* spread over the items of a work-group */
  TINY_RANGE_UPCAST, /* outputs held side by side in registers */
  TINY_RANGE_UNROLL, /* reduced values computed side by side */
  TINY_RANGE_LANES,  /* the lanes of a vector, outputs or reduced */
  TINY_N_RANGE_KINDS
} TinyRangeKind;

/* ---- graphs ---- */
TinyGraph *tiny_graph_new (void);
void tiny_graph_free (TinyGraph *self);
guint tiny_graph_get_n_nodes (TinyGraph *self); /* one past the highest id */
gsize tiny_graph_get_n_bytes (TinyGraph *self);
const TinyInts *tiny_graph_ints (TinyGraph *self, const gint64 *v, guint n);
const char *tiny_graph_text (TinyGraph *self, const char *text);
/* The same of a text whose size a stranger decides; NULL: there is no memory. */
const char *tiny_graph_try_text (TinyGraph *self, const char *text);
/* A value no node's mark has yet: set mark to it to say "seen". */
guint32 tiny_graph_begin_mark (TinyGraph *self);

/* The one way to make a node. Computes its shape when its sources have one; the caller has checked
 * that they fit (ir/tiny-shape.h says how). @ints and @text may be anywhere in memory. */
TinyNode *tiny_node_new (TinyGraph *graph,
                         TinyOp op,
                         TinyDType dtype,
                         guint lanes,
                         guint n_sources,
                         TinyNode *const *sources,
                         gint64 arg,
                         const TinyInts *ints,
                         const char *text);

/* The same where @ints and @text are the graph's own. */
TinyNode *tiny_node_new_interned (TinyGraph *graph,
                                  TinyOp op,
                                  TinyDType dtype,
                                  guint lanes,
                                  guint n_sources,
                                  TinyNode *const *sources,
                                  gint64 arg,
                                  const TinyInts *ints,
                                  const char *text);

/* The same node of @graph over other sources. */
TinyNode *tiny_node_with_sources (TinyGraph *graph, TinyNode *node, TinyNode *const *sources);

/* ---- shorthands; dtypes follow from the sources ---- */
TinyNode *tiny_node_unary (TinyGraph *graph, TinyOp op, TinyNode *x);
TinyNode *tiny_node_binary (TinyGraph *graph, TinyOp op, TinyNode *x, TinyNode *y);
TinyNode *tiny_node_where (TinyGraph *graph, TinyNode *gate, TinyNode *x, TinyNode *y);
TinyNode *tiny_node_mulacc (TinyGraph *graph, TinyNode *x, TinyNode *y, TinyNode *z);
TinyNode *tiny_node_cast (TinyGraph *graph, TinyNode *x, TinyDType dtype); /* x if it has it */
/* Integers wrap to the dtype, bool becomes 0 or 1; works for floats too. */
TinyNode *tiny_node_const_int (TinyGraph *graph, TinyDType dtype, gint64 value);
TinyNode *tiny_node_const_float (TinyGraph *graph, TinyDType dtype, double value);
/* A 0 for which any other value would do as well: nobody looks at it. */
TinyNode *tiny_node_open (TinyGraph *graph, TinyDType dtype);
gboolean tiny_node_is_open (const TinyNode *node);
TinyNode *tiny_node_const_index (TinyGraph *graph, gint64 value);
TinyNode *tiny_node_range (TinyGraph *graph, guint number, TinyRangeKind kind, TinyNode *bound);
TinyNode *tiny_node_range_const (TinyGraph *graph, guint number, TinyRangeKind kind, gint64 extent);
TinyNode *tiny_node_sink (TinyGraph *graph, guint n, TinyNode *const *sources, const char *name);
/* @sink, of a kernel that was given as text: what it does wrong is nobody's fault but its own. */
TinyNode *tiny_node_sink_untrusted (TinyGraph *graph, TinyNode *sink);
/* True for a SINK that tiny_node_sink_untrusted() made; @sink may be NULL. */
gboolean tiny_node_is_untrusted (const TinyNode *sink);

/* ---- reading ---- */
double tiny_node_get_float (const TinyNode *node); /* of a CONST of any dtype, as double */
static inline gboolean
tiny_node_is_const (const TinyNode *node)
{
  return node->op == TINY_OP_CONST;
}
gboolean tiny_node_is_const_int (const TinyNode *node, gint64 value); /* non-float constants */

static inline guint
tiny_range_get_number (const TinyNode *range)
{
  return (guint) (range->arg & 0xffffffff);
}
static inline TinyRangeKind
tiny_range_get_kind (const TinyNode *range)
{
  return (TinyRangeKind) (range->arg >> 32);
}
/* The loop's extent; its bound is a CONST. */
gint64 tiny_range_get_extent (const TinyNode *range);
const char *tiny_range_kind_to_string (TinyRangeKind kind);

/* The RANGEs a node's value depends on, by ascending id. A REDUCE over ranges closes them; what
 * comes AFTER an END does not depend on its range. Memoised. */
TinyNode *const *tiny_node_get_ranges (TinyGraph *graph, TinyNode *node, guint *out_n);
gboolean tiny_node_depends_on (TinyGraph *graph, TinyNode *node, TinyNode *range);

/* ---- walking ---- */
/* All nodes under @roots, sources before users, in a deterministic order. Free with
 * g_ptr_array_unref(). Until the next order is made of some of them, each node's place is its index. */
GPtrArray *tiny_graph_toposort (TinyGraph *self, TinyNode *const *roots, guint n_roots);
/* The same into @order, which is empty. */
void tiny_graph_toposort_into (TinyGraph *self,
                               TinyNode *const *roots,
                               guint n_roots,
                               GPtrArray *order);
/* True if @node is in @order, of which the above holds. */
static inline gboolean
tiny_node_is_in (const TinyNode *node, const GPtrArray *order)
{
  return node->place < order->len && order->pdata[node->place] == node;
}

/* Places in @order, which is the one that was made last of its nodes: of the sources of its first node, then of its
 * second, and so on, then of @roots. A pass that goes through them in this order needs no map. Free with g_free(). */
guint *tiny_graph_list_places (const GPtrArray *order, TinyNode *const *roots, guint n_roots);

/* @root with each from[i] replaced by to[i], rebuilt above them. */
TinyNode *tiny_graph_substitute (TinyGraph *self,
                                 TinyNode *root,
                                 TinyNode *const *from,
                                 TinyNode *const *to,
                                 guint n);

/* A copy of @root, a node of another graph, in this one. */
TinyNode *tiny_graph_import (TinyGraph *self, TinyNode *root);

/* A map from nodes of one graph to pointers. It costs what is in it, however large the graph is. Of a graph's nodes that
 * are nearly all in it each has the place of its id; else nodes made one after another lie side by side. */
typedef struct {
  const TinyNode *node; /* NULL: free */
  gpointer value;
} TinyNodeMapEntry;
typedef struct {
  TinyNodeMapEntry *entries;
  guint size; /* a power of two, or 0 */
  guint n;
  gboolean is_dense; /* the place of a node is its id */
} TinyNodeMap;
void tiny_node_map_clear (TinyNodeMap *self);
/* Makes room in an empty map for @n nodes that are few of their graph's. */
void tiny_node_map_reserve (TinyNodeMap *self, guint n);
void tiny_node_map_set (TinyNodeMap *self, const TinyNode *node, gpointer value);
/* The entry of @node, or the free one that it would get; there is one. */
static inline TinyNodeMapEntry *
tiny_node_map_find (const TinyNodeMap *self, const TinyNode *node)
{
  enum { RUN = 8 }; /* neighbours that stay together */
  if (self->is_dense)
    return &self->entries[node->id];
  guint slot = (node->id / RUN * 0x9E3779B1u >> 8) * RUN + node->id % RUN;
  for (slot &= self->size - 1;
       self->entries[slot].node != NULL && self->entries[slot].node != node;)
    slot = (slot + 1) & (self->size - 1);
  return &self->entries[slot];
}
static inline gpointer
tiny_node_map_get (const TinyNodeMap *self, const TinyNode *node)
{
  const gboolean is_beyond = self->is_dense ? node->id >= self->size : self->size == 0;
  return is_beyond ? NULL : tiny_node_map_find (self, node)->value;
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TinyNodeMap, tiny_node_map_clear)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TinyGraph, tiny_graph_free)

/* A 128-bit digest of the structure under @root that is the same in every graph and process. */
void tiny_node_digest (TinyGraph *graph, TinyNode *root, guint8 out_digest[16]);

G_END_DECLS
