/* SPDX-License-Identifier: MIT
 *
 * affine.c: sums of multiples of loop counters, and their division.
 *
 * What a RESHAPE does to an index is flatten and divide. Division takes out what is a multiple of
 * the divisor, then common factors, then a low part too small to matter; what is left becomes an
 * opaque atom. A sum puts x = c·floordiv(x, c) + floormod(x, c) back together, so that a reshape
 * undone by another leaves nothing. */
#include "schedule/affine.h"

#include <string.h>

#include "rewrite/tiny-bounds.h"

enum { MAX_TERMS = 64 };

typedef struct {
  gint64 offset;
  guint n;
  AffineTerm terms[MAX_TERMS];
} Draft;

void
affine_pool_init (AffinePool *self, TinyGraph *graph)
{
  *self = (AffinePool){ .graph = graph, .arena = tiny_arena_new (), .size = 1024 };
  self->slots = g_new0 (const Affine *, self->size);
}

void
affine_pool_clear (AffinePool *self)
{
  g_clear_pointer (&self->arena, tiny_arena_free);
  g_clear_pointer (&self->slots, g_free);
  tiny_node_map_clear (&self->atoms);
  tiny_node_map_clear (&self->read);
}

static gint64
floor_div (gint64 x, gint64 y)
{
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

static gint64
floor_mod (gint64 x, gint64 y)
{
  return x - y * floor_div (x, y);
}

static gint64
gcd (gint64 a, gint64 b)
{
  a = ABS (a);
  b = ABS (b);
  while (b != 0) {
    gint64 r = a % b;
    a = b;
    b = r;
  }
  return a;
}

const AffineAtom *
affine_pool_get_atom (AffinePool *self, TinyNode *atom)
{
  return tiny_node_map_get (&self->atoms, atom);
}

static const AffineAtom *
add_atom (
    AffinePool *pool, TinyNode *node, const Affine *inner, gint64 divisor, gint64 lo, gint64 hi)
{
  AffineAtom *atom = tiny_node_map_get (&pool->atoms, node);
  if (atom == NULL) {
    atom = tiny_arena_alloc (pool->arena, sizeof *atom);
    *atom = (AffineAtom){ lo, hi, inner, divisor };
    tiny_node_map_set (&pool->atoms, node, atom);
  }
  return atom;
}

static const Affine *
intern (AffinePool *pool, const Draft *draft)
{
  guint64 hash = (guint64) draft->offset * 0x9E3779B97F4A7C15u + draft->n;
  for (guint i = 0; i < draft->n; i++) {
    hash = (hash ^ draft->terms[i].atom->id) * 0x9E3779B97F4A7C15u;
    hash = ((hash >> 29) ^ hash ^ (guint64) draft->terms[i].mul) * 0xBF58476D1CE4E5B9u;
  }
  guint32 hash32 = (guint32) (hash >> 32);
  guint slot = hash32 & (pool->size - 1);
  gsize n_bytes = draft->n * sizeof (AffineTerm);
  for (; pool->slots[slot] != NULL; slot = (slot + 1) & (pool->size - 1)) {
    const Affine *found = pool->slots[slot];
    if (found->hash == hash32 && found->offset == draft->offset && found->n == draft->n
        && memcmp (found->terms, draft->terms, n_bytes) == 0)
      return found;
  }
  Affine *made = tiny_arena_alloc (pool->arena, sizeof *made + n_bytes);
  __int128 lo = draft->offset, hi = lo; /* what is opaque may have all of INDEX's values */
  made->offset = draft->offset;
  made->hash = hash32;
  made->n = draft->n;
  for (guint i = 0; i < draft->n; i++) {
    const AffineAtom *atom = affine_pool_get_atom (pool, draft->terms[i].atom);
    gint64 mul = draft->terms[i].mul;
    made->terms[i] = draft->terms[i];
    lo += (__int128) mul * (mul > 0 ? atom->lo : atom->hi);
    hi += (__int128) mul * (mul > 0 ? atom->hi : atom->lo);
  }
  const gint64 least = tiny_dtype_get_min (TINY_DTYPE_INDEX);
  const gint64 most = tiny_dtype_get_max (TINY_DTYPE_INDEX);
  made->lo = (gint64) CLAMP (lo, least, most);
  made->hi = (gint64) CLAMP (hi, least, most);
  pool->slots[slot] = made;
  if (++pool->n * 2 > pool->size) {
    const Affine **old = pool->slots;
    guint old_size = pool->size;
    pool->size *= 2;
    pool->slots = g_new0 (const Affine *, pool->size);
    for (guint i = 0; i < old_size; i++) {
      if (old[i] == NULL)
        continue;
      guint k = old[i]->hash & (pool->size - 1);
      while (pool->slots[k] != NULL)
        k = (k + 1) & (pool->size - 1);
      pool->slots[k] = old[i];
    }
    g_free (old);
  }
  return made;
}

/* Adds mul·atom; terms stay sorted by the atoms' ids. */
static void
draft_add (Draft *draft, TinyNode *atom, gint64 mul)
{
  guint i = 0;
  if (mul == 0)
    return;
  while (i < draft->n && draft->terms[i].atom->id < atom->id)
    i++;
  if (i < draft->n && draft->terms[i].atom == atom) {
    draft->terms[i].mul += mul;
    if (draft->terms[i].mul == 0) {
      memmove (draft->terms + i, draft->terms + i + 1,
               (draft->n - i - 1) * sizeof (AffineTerm));
      draft->n--;
    }
    return;
  }
  g_assert (draft->n < MAX_TERMS);
  memmove (draft->terms + i + 1, draft->terms + i, (draft->n - i) * sizeof (AffineTerm));
  draft->terms[i] = (AffineTerm){ atom, mul };
  draft->n++;
}

static void
draft_add_affine (Draft *draft, const Affine *x, gint64 mul)
{
  draft->offset += mul * x->offset;
  for (guint i = 0; i < x->n; i++)
    draft_add (draft, x->terms[i].atom, mul * x->terms[i].mul);
}

/* k·floormod(X, c) + k·c·floordiv(X, c) = k·X, as long as there is such a pair. */
static void
recombine (AffinePool *pool, Draft *draft)
{
  for (guint i = 0; i < draft->n; i++) {
    TinyNode *atom = draft->terms[i].atom;
    gint64 k = draft->terms[i].mul;
    if (atom->op != TINY_OP_FLOORMOD)
      continue;
    const AffineAtom *known = affine_pool_get_atom (pool, atom);
    const Affine *quotient = affine_div (pool, known->inner, known->divisor);
    if (quotient->n != 1 || quotient->offset != 0 || quotient->terms[0].mul != 1)
      continue;
    for (guint j = 0; j < draft->n; j++)
      if (draft->terms[j].atom == quotient->terms[0].atom
          && draft->terms[j].mul == k * known->divisor) {
        draft_add (draft, quotient->terms[0].atom, -k * known->divisor);
        draft_add (draft, atom, -k);
        draft_add_affine (draft, known->inner, k);
        i = G_MAXUINT; /* from the start */
        break;
      }
  }
}

const Affine *
affine_const (AffinePool *pool, gint64 value)
{
  Draft draft = { .offset = value };
  return intern (pool, &draft);
}

const Affine *
affine_range (AffinePool *pool, TinyNode *range)
{
  add_atom (pool, range, NULL, 0, 0, tiny_range_get_extent (range) - 1);
  Draft draft = { .offset = 0, .n = 1, .terms = { { range, 1 } } };
  return intern (pool, &draft);
}

const Affine *
affine_opaque (AffinePool *pool, TinyNode *node, gint64 lo, gint64 hi)
{
  add_atom (pool, node, NULL, 0, lo, hi);
  Draft draft = { .offset = 0, .n = 1, .terms = { { node, 1 } } };
  return intern (pool, &draft);
}

const Affine *
affine_sum (
    AffinePool *pool, const Affine *x, gint64 a, const Affine *y, gint64 b, gint64 offset)
{
  Draft draft;
  draft.n = 0;
  draft.offset = offset;
  draft_add_affine (&draft, x, a);
  draft_add_affine (&draft, y, b);
  recombine (pool, &draft);
  return intern (pool, &draft);
}

const Affine *
affine_scale (AffinePool *pool, const Affine *x, gint64 a, gint64 offset)
{
  Draft draft;
  if (a == 1 && offset == 0)
    return x;
  draft.n = 0;
  draft.offset = offset;
  draft_add_affine (&draft, x, a);
  return intern (pool, &draft);
}

/* An atom that stands for @x divided by @divisor, or its rest. */
static const Affine *
quotient_atom (AffinePool *pool, TinyOp op, const Affine *x, gint64 divisor)
{
  const Affine *inner = x;
  if (x->n == 1 && x->offset == 0 && x->terms[0].mul == 1) {
    const AffineAtom *atom = affine_pool_get_atom (pool, x->terms[0].atom);
    if (op == TINY_OP_FLOORDIV && x->terms[0].atom->op == TINY_OP_FLOORDIV)
      return affine_div (pool, atom->inner, atom->divisor * divisor);
    if (op == TINY_OP_FLOORDIV && atom->inner != NULL && atom->divisor % divisor == 0)
      return affine_mod (pool, affine_div (pool, atom->inner, divisor),
                         atom->divisor / divisor);
    if (op == TINY_OP_FLOORMOD && x->terms[0].atom->op == TINY_OP_FLOORMOD
        && atom->divisor % divisor == 0)
      return affine_mod (pool, atom->inner, divisor);
  }
  TinyNode *node = tiny_node_binary (pool->graph, op, affine_to_node (pool, inner),
                                     tiny_node_const_index (pool->graph, divisor));
  if (op == TINY_OP_FLOORDIV)
    add_atom (pool, node, inner, divisor, floor_div (inner->lo, divisor),
              floor_div (inner->hi, divisor));
  else
    add_atom (pool, node, inner, divisor, 0, divisor - 1);
  Draft draft = { .offset = 0, .n = 1, .terms = { { node, 1 } } };
  return intern (pool, &draft);
}

/* Splits x = whole·step + low where low has the terms that step does not divide and an offset in
 * 0 .. step-1. */
static void
split (AffinePool *pool,
       const Affine *x,
       gint64 step,
       const Affine **out_whole,
       const Affine **out_low)
{
  Draft whole, low;
  whole.n = low.n = 0;
  low.offset = floor_mod (x->offset, step);
  whole.offset = floor_div (x->offset, step);
  for (guint i = 0; i < x->n; i++) {
    gboolean divides = x->terms[i].mul % step == 0;
    if (divides)
      draft_add (&whole, x->terms[i].atom, x->terms[i].mul / step);
    else
      draft_add (&low, x->terms[i].atom, x->terms[i].mul);
  }
  *out_whole = intern (pool, &whole);
  *out_low = intern (pool, &low);
}

/* The largest step, dividing @divisor, for which the low part of @x stays in 0 .. step-1. */
static gint64
find_step (AffinePool *pool, const Affine *x, gint64 divisor)
{
  gint64 best = 1;
  for (guint i = 0; i < x->n; i++) {
    gint64 step = gcd (x->terms[i].mul, divisor);
    const Affine *whole, *low;
    if (step <= best)
      continue;
    split (pool, x, step, &whole, &low);
    if (low->lo >= 0 && low->hi < step)
      best = step;
  }
  return best;
}

const Affine *
affine_div (AffinePool *pool, const Affine *x, gint64 divisor)
{
  const Affine *whole, *low, *part, *rest;
  g_assert (divisor > 0);
  if (divisor == 1)
    return x;
  split (pool, x, divisor, &whole, &low);
  if (floor_div (low->lo, divisor) == floor_div (low->hi, divisor))
    return affine_scale (pool, whole, 1, floor_div (low->lo, divisor));
  gint64 step = find_step (pool, low, divisor);
  if (step > 1) {
    split (pool, low, step, &part, &rest);
    low = affine_div (pool, part, divisor / step);
  } else {
    low = quotient_atom (pool, TINY_OP_FLOORDIV, low, divisor);
  }
  return affine_sum (pool, whole, 1, low, 1, 0);
}

const Affine *
affine_mod (AffinePool *pool, const Affine *x, gint64 divisor)
{
  const Affine *whole, *low, *part, *rest;
  g_assert (divisor > 0);
  if (divisor == 1)
    return affine_const (pool, 0);
  split (pool, x, divisor, &whole, &low);
  if (floor_div (low->lo, divisor) == floor_div (low->hi, divisor))
    return affine_scale (pool, low, 1, -divisor * floor_div (low->lo, divisor));
  gint64 step = find_step (pool, low, divisor);
  if (step > 1) {
    split (pool, low, step, &part, &rest);
    return affine_sum (pool, affine_mod (pool, part, divisor / step), step, rest, 1, 0);
  }
  return quotient_atom (pool, TINY_OP_FLOORMOD, low, divisor);
}

/* Large multiples first, then loops in their order: the same sum reads the same everywhere. */
static int
compare_terms (gconstpointer a, gconstpointer b)
{
  const AffineTerm *x = a, *y = b;
  if (ABS (x->mul) != ABS (y->mul))
    return ABS (x->mul) > ABS (y->mul) ? -1 : 1;
  if ((x->atom->op == TINY_OP_RANGE) != (y->atom->op == TINY_OP_RANGE))
    return x->atom->op == TINY_OP_RANGE ? -1 : 1;
  if (x->atom->op == TINY_OP_RANGE && x->atom->arg != y->atom->arg)
    return (x->atom->arg & 0xffffffff) < (y->atom->arg & 0xffffffff) ? -1 : 1;
  return x->atom->id < y->atom->id ? -1 : x->atom->id > y->atom->id;
}

TinyNode *
affine_to_node (AffinePool *pool, const Affine *x)
{
  TinyGraph *graph = pool->graph;
  AffineTerm terms[MAX_TERMS];
  TinyNode *sum = NULL;
  if (x->node != NULL)
    return x->node;
  memcpy (terms, x->terms, x->n * sizeof *terms);
  qsort (terms, x->n, sizeof *terms, compare_terms);
  for (guint i = 0; i < x->n; i++) {
    TinyNode *term = terms[i].atom;
    if (terms[i].mul != 1)
      term = tiny_node_binary (graph, TINY_OP_MUL, term,
                               tiny_node_const_index (graph, terms[i].mul));
    sum = sum == NULL ? term : tiny_node_binary (graph, TINY_OP_ADD, sum, term);
  }
  TinyNode *offset = tiny_node_const_index (graph, x->offset);
  if (sum == NULL)
    sum = offset;
  else if (x->offset != 0)
    sum = tiny_node_binary (graph, TINY_OP_ADD, sum, offset);
  ((Affine *) x)->node = sum;
  return sum;
}

static const Affine *
read_sum (AffinePool *pool, TinyNode *node)
{
  if (node->op == TINY_OP_CONST)
    return affine_const (pool, node->arg);
  if (node->op == TINY_OP_RANGE)
    return affine_range (pool, node);
  if (node->op == TINY_OP_CAST) { /* a position read from memory */
    gint64 lo, hi;
    tiny_node_get_bounds (node, &lo, &hi);
    return affine_opaque (pool, node, lo, hi);
  }
  if (node->n_sources != 2 || !tiny_op_is_elementwise (node->op))
    return NULL;
  const Affine *x = affine_read (pool, node->sources[0]);
  const Affine *y = affine_read (pool, node->sources[1]);
  if (x == NULL || y == NULL)
    return NULL;
  if (node->op == TINY_OP_ADD)
    return affine_sum (pool, x, 1, y, 1, 0);
  if (y->n > 0)
    return NULL;
  if (node->op == TINY_OP_MUL)
    return affine_scale (pool, x, y->offset, 0);
  if (y->offset <= 0)
    return NULL;
  return node->op == TINY_OP_FLOORDIV   ? affine_div (pool, x, y->offset)
         : node->op == TINY_OP_FLOORMOD ? affine_mod (pool, x, y->offset)
                                        : NULL;
}

const Affine *
affine_read (AffinePool *pool, TinyNode *node)
{
  if (node->dtype != TINY_DTYPE_INDEX)
    return NULL;
  const Affine *sum = tiny_node_map_get (&pool->read, node);
  if (sum != NULL)
    return sum;
  sum = read_sum (pool, node);
  if (sum != NULL)
    tiny_node_map_set (&pool->read, node, (gpointer) sum);
  return sum;
}

static const Affine *
replace_atom (AffinePool *pool, TinyNode *atom, const TinyNodeMap *to)
{
  const AffineAtom *info = affine_pool_get_atom (pool, atom);
  const Affine *part = info->inner != NULL ? affine_replace (pool, info->inner, to)
                                           : tiny_node_map_get (to, atom);
  if (info->inner != NULL)
    return atom->op == TINY_OP_FLOORDIV ? affine_div (pool, part, info->divisor)
                                        : affine_mod (pool, part, info->divisor);
  return part != NULL ? part : affine_range (pool, atom);
}

const Affine *
affine_replace (AffinePool *pool, const Affine *x, const TinyNodeMap *to)
{
  const Affine *sum = affine_const (pool, x->offset);
  for (guint i = 0; i < x->n; i++)
    sum = affine_sum (pool, sum, 1, replace_atom (pool, x->terms[i].atom, to), x->terms[i].mul,
                      0);
  return sum;
}

gboolean
affine_counts_only (const Affine *x)
{
  for (guint i = 0; i < x->n; i++)
    if (x->terms[i].atom->op != TINY_OP_RANGE)
      return FALSE;
  return TRUE;
}

gint64
affine_get_mul (const Affine *x, TinyNode *atom)
{
  for (guint i = 0; i < x->n; i++)
    if (x->terms[i].atom == atom)
      return x->terms[i].mul;
  return 0;
}

/* @position as an INDEX, calculated with as such where it cannot wrap: what counts on by one is seen to do so. */
static TinyNode *
as_index (TinyGraph *graph, TinyNode *position)
{
  gint64 lo, hi;
  tiny_node_get_bounds (position, &lo, &hi);
  gboolean wraps = lo <= tiny_dtype_get_min (position->dtype)
                   || hi >= tiny_dtype_get_max (position->dtype)
                   || hi > tiny_dtype_get_max (TINY_DTYPE_INDEX);
  if (position->op == TINY_OP_CAST && position->sources[0]->dtype == TINY_DTYPE_INDEX && !wraps)
    return position->sources[0];
  if ((position->op != TINY_OP_ADD && position->op != TINY_OP_MUL) || wraps)
    return tiny_node_cast (graph, position, TINY_DTYPE_INDEX);
  return tiny_node_binary (graph, position->op, as_index (graph, position->sources[0]),
                           as_index (graph, position->sources[1]));
}

const Affine *
affine_read_position (AffinePool *pool, TinyNode *position)
{
  return affine_read (pool, as_index (pool->graph, position));
}

gboolean
affine_is_position_within (TinyNode *position, gint64 size)
{
  gint64 lo, hi;
  tiny_node_get_bounds (position, &lo, &hi);
  return lo >= 0 && hi < size && position->dtype != TINY_DTYPE_U64;
}
