/* SPDX-License-Identifier: MIT
 *
 * affine.h: index arithmetic while a kernel is being made.
 *
 * An Affine is offset + Σ mul·atom; an atom is a RANGE, a position read from memory, or a FLOORDIV
 * or FLOORMOD that nothing simpler expresses. Equal affines of one pool are the same pointer. Bounds are exact for
 * ranges and safe for the rest. */
#pragma once

#include "base/tiny-arena.h"
#include "ir/tiny-node.h"

G_BEGIN_DECLS

typedef struct {
  TinyNode *atom;
  gint64 mul;
} AffineTerm;

typedef struct Affine Affine;
struct Affine {
  gint64 offset, lo, hi; /* lo <= value <= hi */
  guint32 hash, n;
  TinyNode *node; /* the expression, once asked for */
  AffineTerm terms[];
};

typedef struct {
  TinyGraph *graph;
  TinyArena *arena;
  const Affine **slots; /* open addressing */
  guint size, n;
  TinyNodeMap atoms; /* → AffineAtom */
  TinyNodeMap read;  /* of an address: the Affine that affine_read() found */
} AffinePool;

/* What is known of an atom. */
typedef struct {
  gint64 lo, hi;
  const Affine *inner; /* of a FLOORDIV or FLOORMOD; NULL: neither */
  gint64 divisor;
} AffineAtom;

void affine_pool_init (AffinePool *self, TinyGraph *graph);
void affine_pool_clear (AffinePool *self);
const AffineAtom *affine_pool_get_atom (AffinePool *self, TinyNode *atom);

const Affine *affine_const (AffinePool *pool, gint64 value);
const Affine *affine_range (AffinePool *pool, TinyNode *range);
/* @node of INDEX, whatever it is, known to be lo .. hi. */
const Affine *affine_opaque (AffinePool *pool, TinyNode *node, gint64 lo, gint64 hi);
/* a·x + b·y + offset */
const Affine *affine_sum (
    AffinePool *pool, const Affine *x, gint64 a, const Affine *y, gint64 b, gint64 offset);
/* a·x + offset */
const Affine *affine_scale (AffinePool *pool, const Affine *x, gint64 a, gint64 offset);
const Affine *affine_div (AffinePool *pool, const Affine *x, gint64 divisor); /* rounds down */
const Affine *affine_mod (AffinePool *pool, const Affine *x, gint64 divisor);
TinyNode *affine_to_node (AffinePool *pool, const Affine *x);
/* The sum that an address is; NULL where it is none. */
const Affine *affine_read (AffinePool *pool, TinyNode *node);
/* Whether @position, of any integer dtype, can only be one of 0 .. size-1. */
gboolean affine_is_position_within (TinyNode *position, gint64 size);
/* The same of @position, of any integer dtype and within 0 and what INDEX holds. */
const Affine *affine_read_position (AffinePool *pool, TinyNode *position);
/* @x with each RANGE that is a key of @to replaced by its Affine. */
const Affine *affine_replace (AffinePool *pool, const Affine *x, const TinyNodeMap *to);
/* True if @x is a sum of multiples of RANGEs alone. */
gboolean affine_counts_only (const Affine *x);
/* The multiple of @atom in @x. */
gint64 affine_get_mul (const Affine *x, TinyNode *atom);

static inline gboolean
affine_is_const (const Affine *x, gint64 value)
{
  return x->n == 0 && x->offset == value;
}

G_END_DECLS
