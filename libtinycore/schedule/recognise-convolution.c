/* SPDX-License-Identifier: MIT
 *
 * recognise-convolution.c: sums of products over a window that moves, in any layout.
 *
 * A place of A is step·y + dilation·w - padding with y a loop of the output and w a summed one. Conditions on A say
 * which two belong together, where there are any. Of the others two do whose windows overlap: one step moves A
 * by less than the window is wide. What is left is a batch, a group or channels. In the gradient of a weight the
 * window is what was the output, and the batch is summed as channels are: it is a convolution as well. */
#include "schedule/recognise.h"

#include <string.h>

enum { N_PLACES = 3 };

/* One axis of A's places. */
typedef struct {
  Loop *out, *window; /* either may be NULL */
  const Affine *base; /* of its conditions: step·y + dilation·w */
  gboolean has_lower, has_upper;
  gint64 lower, upper; /* lower <= base < upper */
  gint64 step, dilation, stride;
} Place;

typedef struct {
  Recognition *self;
  Place places[N_PLACES];
  guint n;
} Window;

/* ---- conditions ---- */
static Place *
find_place (Window *window, const Affine *base)
{
  for (guint i = 0; i < window->n; i++)
    if (window->places[i].base == base)
      return &window->places[i];
  if (window->n == N_PLACES)
    return NULL;
  Place *place = &window->places[window->n++];
  *place = (Place){ .base = base, .step = 1, .dilation = 1 };
  return place;
}

/* A comparison of a sum of loops with a number. */
static gboolean
read_comparison (Window *window, TinyNode *node)
{
  const gboolean is_upper = tiny_node_is_const (node->sources[1]);
  const TinyNode *limit = node->sources[is_upper ? 1 : 0];
  const Affine *base = affine_read (window->self->pool, node->sources[is_upper ? 0 : 1]);
  if (!tiny_node_is_const (limit) || base == NULL || base->offset != 0)
    return FALSE;
  Place *place = find_place (window, base);
  if (place == NULL || (is_upper ? place->has_upper : place->has_lower))
    return FALSE;
  if (is_upper) {
    place->has_upper = TRUE;
    place->upper = limit->arg;
  } else {
    place->has_lower = TRUE;
    place->lower = limit->arg + 1;
  }
  return TRUE;
}

static gboolean
read_conditions (Window *window, TinyNode *gate)
{
  if (gate == NULL)
    return TRUE;
  if (gate->op == TINY_OP_AND)
    return read_conditions (window, gate->sources[0])
           && read_conditions (window, gate->sources[1]);
  return gate->op == TINY_OP_CMPLT && gate->sources[0]->dtype == TINY_DTYPE_INDEX
         && read_comparison (window, gate);
}

/* The loops that the conditions of @place are about. */
static gboolean
read_loops (Window *window, Place *place)
{
  Recognition *self = window->self;
  for (guint t = 0; t < place->base->n; t++) {
    const AffineTerm *term = &place->base->terms[t];
    Loop *loop = NULL;
    for (guint i = 0; i < self->n_loops; i++)
      if (self->loops[i].range == term->atom)
        loop = &self->loops[i];
    if (loop == NULL || loop->is_used || term->mul <= 0
        || (loop->is_reduced ? place->window : place->out) != NULL
        || loop->is_reduced != recognise_is_in (loop, TINY_ROLE_B))
      return FALSE;
    /* 0 where A has one position, which is where it begins. */
    const gint64 stride = loop->strides[TINY_ROLE_A] / term->mul;
    if (stride * term->mul != loop->strides[TINY_ROLE_A] || (t > 0 && place->stride != stride))
      return FALSE;
    place->stride = stride;
    loop->is_used = TRUE;
    if (loop->is_reduced) {
      place->window = loop;
      place->dilation = term->mul;
    } else {
      place->out = loop;
      place->step = term->mul;
    }
  }
  return place->base->n > 0;
}

/* ---- windows that overlap ---- */
static gint64
find_divisor (gint64 a, gint64 b)
{
  while (b != 0) {
    gint64 rest = a % b;
    a = b;
    b = rest;
  }
  return ABS (a);
}

/* Whether @out may move @loop, a window; in @out_place how. */
static gboolean
can_move (Loop *out, Loop *window, Place *out_place)
{
  const gint64 by_out = out->strides[TINY_ROLE_A], by_window = window->strides[TINY_ROLE_A];
  if (out->is_used || out->is_reduced || window->is_used || !window->is_reduced || by_out == 0
      || recognise_is_in (out, TINY_ROLE_B) || !recognise_is_in (window, TINY_ROLE_B)
      || (by_out < 0) != (by_window < 0))
    return FALSE;
  const gint64 divisor = find_divisor (by_out, by_window);
  *out_place = (Place){ .out = out,
                        .window = window,
                        .step = ABS (by_out) / divisor,
                        .dilation = ABS (by_window) / divisor,
                        .stride = by_out < 0 ? -divisor : divisor };
  return out_place->step < (window->extent - 1) * out_place->dilation + 1;
}

/* Pairs what overlaps, what moves least first. */
static void
pair_loops (Window *window)
{
  Recognition *self = window->self;
  gint64 least = 0;
  while (least < G_MAXINT64 && window->n < N_PLACES) {
    Place best = { NULL };
    least = G_MAXINT64;
    for (guint i = 0; i < self->n_loops; i++)
      for (guint j = 0; j < self->n_loops; j++) {
        Place place;
        if (!can_move (&self->loops[i], &self->loops[j], &place)
            || MAX (place.step, place.dilation) >= least)
          continue;
        least = MAX (place.step, place.dilation);
        best = place;
      }
    if (best.out == NULL)
      continue;
    best.out->is_used = best.window->is_used = TRUE;
    window->places[window->n++] = best;
  }
}

/* ---- the rest ---- */
static gboolean
add_place (Window *window, Loop *loop)
{
  if (window->n == N_PLACES)
    return FALSE;
  window->places[window->n++] = (Place){ .out = loop->is_reduced ? NULL : loop,
                                         .window = loop->is_reduced ? loop : NULL,
                                         .step = 1,
                                         .dilation = 1,
                                         .stride = loop->strides[TINY_ROLE_A] };
  loop->is_used = TRUE;
  return TRUE;
}

/* Gives axis @axis to the longest loop that is left of a kind, and places to others if it @may have them. */
static gboolean
place_rest (
    Window *window, guint axis, gboolean is_reduced, gboolean in_a, gboolean in_b, gboolean may)
{
  Recognition *self = window->self;
  Loop *longest = NULL;
  for (guint i = 0; i < 2 * self->n_loops; i++) { /* first to look, then to place */
    Loop *loop = &self->loops[i % self->n_loops];
    if (loop->is_used || loop->is_reduced != is_reduced
        || recognise_is_in (loop, TINY_ROLE_A) != in_a
        || recognise_is_in (loop, TINY_ROLE_B) != in_b)
      continue;
    if (i < self->n_loops)
      longest = longest == NULL || longest->extent < loop->extent ? loop : longest;
    else if (loop != longest && (!may || !add_place (window, loop)))
      return FALSE;
  }
  recognise_set_axis (self, axis, longest);
  return TRUE;
}

static void
sort_places (Window *window)
{
  for (guint i = 1; i < window->n; i++)
    for (guint j = i;
         j > 0 && ABS (window->places[j].stride) > ABS (window->places[j - 1].stride); j--) {
      const Place place = window->places[j];
      window->places[j] = window->places[j - 1];
      window->places[j - 1] = place;
    }
}

/* Writes down the places; the unused ones are of one position. FALSE: no window moves, and nothing is around A. */
static gboolean
describe_places (Window *window)
{
  Recognition *self = window->self;
  TinyOperation *out = self->out;
  gboolean is_moved = FALSE;
  sort_places (window);
  for (guint i = 0; i < N_PLACES; i++) {
    const Place *place = &window->places[i];
    out->window_input[i] = out->window_step[i] = out->window_dilation[i] = 1;
    if (i >= window->n)
      continue;
    const guint y = TINY_CONVOLUTION_OUT + i, w = TINY_CONVOLUTION_WINDOW + i;
    recognise_set_axis (self, y, place->out);
    recognise_set_axis (self, w, place->window);
    gint64 *strides = out->operands[TINY_ROLE_A].strides;
    strides[y] = place->stride;
    strides[w] = 0;
    const gint64 last
        = (out->extents[y] - 1) * place->step + (out->extents[w] - 1) * place->dilation;
    const gint64 padding = place->has_lower ? place->lower : 0;
    const gint64 input = (place->has_upper ? place->upper : last + 1) - padding;
    if (input < 1)
      return FALSE;
    out->window_step[i] = place->step;
    out->window_dilation[i] = place->dilation;
    out->window_padding[i] = padding;
    out->window_input[i] = input;
    self->accesses[TINY_ROLE_A].moved += padding * place->stride;
    is_moved = is_moved || place->window != NULL || place->base != NULL;
  }
  return is_moved;
}

/* With A and B as they are. @overlaps: only if there is a window that moves. */
static gboolean
try_order (Recognition *self, gboolean overlaps)
{
  Window window = { .self = self };
  for (guint i = 0; i < self->n_loops; i++)
    self->loops[i].is_used = FALSE;
  if (self->accesses[TINY_ROLE_B].gate != NULL
      || !read_conditions (&window, self->accesses[TINY_ROLE_A].gate))
    return FALSE;
  for (guint i = 0; i < window.n; i++)
    if (!read_loops (&window, &window.places[i]))
      return FALSE;
  pair_loops (&window);
  if (overlaps && window.n == 0)
    return FALSE;
  return place_rest (&window, TINY_CONVOLUTION_IN_CHANNEL, TRUE, TRUE, TRUE, TRUE)
         && place_rest (&window, TINY_CONVOLUTION_BATCH, FALSE, TRUE, FALSE, TRUE)
         && place_rest (&window, TINY_CONVOLUTION_OUT_CHANNEL, FALSE, FALSE, TRUE, FALSE)
         && place_rest (&window, TINY_CONVOLUTION_GROUP, FALSE, TRUE, TRUE, FALSE)
         && describe_places (&window) && recognise_add_operands (self);
}

/* Whether an element of one operand meets several of the other: else it is a sum of products, used once. */
static gboolean
uses_elements_again (const Recognition *self)
{
  for (guint i = 0; i < self->n_loops; i++) {
    const Loop *loop = &self->loops[i];
    if (recognise_is_in (loop, TINY_ROLE_A) != recognise_is_in (loop, TINY_ROLE_B))
      return TRUE;
  }
  return FALSE;
}

gboolean
recognise_convolution (Recognition *self)
{
  if (!recognise_products (self) || !recognise_list_loops (self) || !uses_elements_again (self))
    return FALSE;
  const TinyOperation begun = *self->out;
  for (guint i = 0; i < 4; i++) {
    *self->out = begun;
    self->out->kind = TINY_OPERATION_CONVOLUTION;
    self->out->n_axes = TINY_CONVOLUTION_WINDOW + N_PLACES;
    self->accesses[TINY_ROLE_A].moved = self->accesses[TINY_ROLE_B].moved = 0;
    if (try_order (self, i < 2))
      return TRUE;
    recognise_swap (self);
  }
  return FALSE;
}
