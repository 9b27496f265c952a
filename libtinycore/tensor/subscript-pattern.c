/* SPDX-License-Identifier: MIT
 *
 * subscript-pattern.c: reads the pattern of a subscript, part by part, along the axes of a tensor. */
#include <string.h>

#include "ir/tiny-limit.h"
#include "ir/tiny-shape.h"
#include "tensor/tiny-subscript.h"

static TinyNode *
no_axis_left (TinyBuild *b, const TinySubscript *self)
{
  g_autofree char *text = tiny_shape_to_string (self->x->shape);
  return tiny_build_fail (b, "too many indices for shape %s", text);
}

static gboolean
add_axis (TinyBuild *b, TinySubscript *self, gint64 size, TinyNode *pick)
{
  if (self->rank == TINY_MAX_SUBSCRIPT)
    return tiny_build_fail (b, "more than %d axes", TINY_MAX_SUBSCRIPT) != NULL;
  self->picks[self->rank] = pick;
  self->dims[self->rank++] = size;
  return TRUE;
}

/* The next axis of x, whole. */
static gboolean
read_whole (TinyBuild *b, TinySubscript *self, TinyNode *pick)
{
  if (self->n_read == self->x->shape->n)
    return no_axis_left (b, self) != NULL;
  gint64 size = self->x->shape->v[self->n_read];
  self->parts[self->n_read++] = (TinySubscriptPart){ .step = 1, .n = size };
  return add_axis (b, self, size, pick);
}

static TinySubscriptPart
of_part (const TinyPart *part, gboolean is_dropped)
{
  return (TinySubscriptPart){ .start = part->start,
                              .step = 1,
                              .n = part->n,
                              .at = part->at,
                              .size = part->size,
                              .is_dropped = is_dropped };
}

/* An element at a place that a variable says, or along an axis whose size is one. */
static gboolean
read_one (TinyBuild *b, TinySubscript *self, TinyNode *index)
{
  TinyPart part;
  if (!tiny_part_find_one (b, self->x, self->n_read, index, &part))
    return FALSE;
  self->parts[self->n_read++] = of_part (&part, TRUE);
  return TRUE;
}

/* From a place to another, either NULL: open. */
static gboolean
read_places (TinyBuild *b, TinySubscript *self, TinyNode *start, TinyNode *stop)
{
  TinyPart part;
  if (self->n_read == self->x->shape->n)
    return no_axis_left (b, self) != NULL;
  if (!tiny_part_find (b, self->x, self->n_read, start, stop, &part))
    return FALSE;
  self->parts[self->n_read++] = of_part (&part, FALSE);
  if (!add_axis (b, self, part.n, NULL))
    return FALSE;
  self->sizes[self->rank - 1] = part.size;
  return TRUE;
}

static gboolean
read_number (TinyBuild *b, TinySubscript *self, gint64 at)
{
  if (self->n_read == self->x->shape->n)
    return no_axis_left (b, self) != NULL;
  gint64 size = self->x->shape->v[self->n_read];
  if (at < -size || at >= size)
    return tiny_build_fail (b,
                            "index %" G_GINT64_FORMAT
                            " is out of range for axis %u of size %" G_GINT64_FORMAT,
                            at, self->n_read, size)
           != NULL;
  if (tiny_limit_get (self->x, self->n_read) != NULL)
    return read_one (b, self, tiny_node_const_int (b->graph, TINY_DTYPE_I64, at));
  self->parts[self->n_read++] = (TinySubscriptPart){
    .start = at < 0 ? at + size : at, .step = 1, .n = 1, .is_dropped = TRUE
  };
  return TRUE;
}

/* A slice of numbers along an axis whose size is a variable. */
static gboolean
read_slice_of_variable (TinyBuild *b, TinySubscript *self, const gint64 *numbers)
{
  gint64 size = self->x->shape->v[self->n_read];
  TinyNode *start = numbers[0] == 0 || numbers[0] <= -size
                        ? NULL
                        : tiny_node_const_int (b->graph, TINY_DTYPE_I64, numbers[0]);
  TinyNode *stop
      = numbers[1] >= size ? NULL : tiny_node_const_int (b->graph, TINY_DTYPE_I64, numbers[1]);
  if (numbers[2] != 1)
    return tiny_build_fail (b,
                            "the size of axis %u is a variable: only steps of 1 go along it, "
                            "others along the whole before it is shortened",
                            self->n_read)
           != NULL;
  return read_places (b, self, start, stop);
}

static gboolean
read_slice (TinyBuild *b, TinySubscript *self, const gint64 *numbers)
{
  if (self->n_read == self->x->shape->n)
    return no_axis_left (b, self) != NULL;
  if (tiny_limit_get (self->x, self->n_read) != NULL)
    return read_slice_of_variable (b, self, numbers);
  TinySubscriptPart *part = &self->parts[self->n_read];
  gint64 start = numbers[0];
  part->step = numbers[2];
  if (!tiny_build_slice_bounds (b, self->x->shape->v[self->n_read], &start, numbers[1],
                                part->step, &part->n))
    return FALSE;
  part->start = start;
  self->n_read++;
  return add_axis (b, self, part->n, NULL);
}

static gboolean
mask_fits (TinyBuild *b, TinySubscript *self, const gint64 *dims, guint rank)
{
  guint left = self->x->shape->n - self->n_read;
  if (rank <= left && memcmp (dims, self->x->shape->v + self->n_read, rank * sizeof *dims) == 0)
    return TRUE;
  g_autofree char *mask = tiny_shape_to_string (tiny_graph_ints (b->graph, dims, rank));
  g_autofree char *shape = tiny_shape_to_string (self->x->shape);
  return tiny_build_fail (b, "a mask of shape %s does not fit shape %s at axis %u", mask, shape,
                          self->n_read)
         != NULL;
}

/* A mask that became positions, one tensor for each of its axes; without axes it makes one. */
static gboolean
read_positions (TinyBuild *b,
                TinySubscript *self,
                const TinySubscriptGiven *given,
                TinyNode *const *picks)
{
  if (!mask_fits (b, self, given->mask_dims, given->mask_rank))
    return FALSE;
  if (given->mask_rank == 0)
    return add_axis (b, self, 1, picks[0]);
  for (guint i = 0; i < given->mask_rank; i++)
    if (!read_whole (b, self, picks[i]))
      return FALSE;
  return TRUE;
}

/* Whether @pick is an element for all values of its variables; else it is a position like those that are data. */
static gboolean
is_place_inside (TinyBuild *b, const TinySubscript *self, TinyNode *pick)
{
  gint64 lo, hi;
  return self->n_read < self->x->shape->n && tiny_part_is_symbolic (b, pick)
         && tiny_build_get_bounds (b, pick, &lo, &hi) && lo >= 0
         && hi < self->x->shape->v[self->n_read];
}

static gboolean
read_tensor (TinyBuild *b, TinySubscript *self, TinyNode *pick)
{
  if (pick->dtype != TINY_DTYPE_BOOL) {
    if (!tiny_dtype_is_integer (pick->dtype))
      return tiny_build_fail (b, "an index tensor has integers or bool, not %s",
                              tiny_dtype_to_string ((TinyDType) pick->dtype))
             != NULL;
    return is_place_inside (b, self, pick) ? read_one (b, self, pick)
                                           : read_whole (b, self, pick);
  }
  if (!mask_fits (b, self, pick->shape->v, pick->shape->n))
    return FALSE;
  self->mask = pick;
  self->mask_axis = self->rank;
  for (guint i = 0; i < pick->shape->n; i++)
    if (!read_whole (b, self, NULL))
      return FALSE;
  return TRUE;
}

/* How many axes of x what is in @pattern reads. */
static guint
count_read (const char *pattern, const GArray *given, TinyNode *const *picks)
{
  guint n = 0, t = 0;
  for (const char *c = pattern; *c != '\0'; c++) {
    if (*c == 't' && t < given->len) {
      const TinySubscriptGiven *item = &g_array_index (given, TinySubscriptGiven, t++);
      n += item->is_mask                        ? item->mask_rank
           : (*picks)->dtype == TINY_DTYPE_BOOL ? (*picks)->shape->n
                                                : 1;
      picks += item->is_mask ? MAX (item->mask_rank, 1) : 1;
    } else if (*c == 'v' && t + 1 < given->len) {
      n++;
      t += 2;
      picks += 2;
    } else {
      n += *c == 'i' || *c == 's' || *c == ':';
    }
  }
  return n;
}

static gboolean
check_counts (TinyBuild *b, const char *pattern, guint n_numbers, guint n_tensors)
{
  guint numbers = 0, tensors = 0, ellipses = 0;
  if (pattern == NULL)
    return tiny_build_fail (b, "no pattern is given") != NULL;
  for (const char *c = pattern; *c != '\0'; c++) {
    if (strchr ("is:n.tv", *c) == NULL)
      return tiny_build_fail (b, "“%s” has “%c”, which is none of i s : n . t v", pattern,
                              g_ascii_isgraph (*c) ? *c : '?')
             != NULL;
    numbers += *c == 'i' ? 1 : *c == 's' ? 3 : 0;
    tensors += *c == 't' ? 1 : *c == 'v' ? 2 : 0;
    ellipses += *c == '.';
  }
  if (ellipses > 1)
    return tiny_build_fail (b, "“%s” has more than one ellipsis", pattern) != NULL;
  if (numbers != n_numbers || tensors != n_tensors)
    return tiny_build_fail (b, "“%s” wants %u numbers and %u tensors, %u and %u are given",
                            pattern, numbers, tensors, n_numbers, n_tensors)
           != NULL;
  return TRUE;
}

gboolean
tiny_subscript_read (TinyBuild *b,
                     TinySubscript *self,
                     TinyNode *x,
                     const char *pattern,
                     const gint64 *numbers,
                     guint n_numbers,
                     const GArray *given,
                     TinyNode *const *picks)
{
  *self = (TinySubscript){ .x = x };
  if (!check_counts (b, pattern, numbers == NULL ? 0 : n_numbers, given->len))
    return FALSE;
  guint n_read = count_read (pattern, given, picks), t = 0;
  guint n_open = x->shape->n > n_read ? x->shape->n - n_read : 0;
  gboolean has_ellipsis = strchr (pattern, '.') != NULL;
  gboolean good = TRUE;
  for (const char *c = pattern; good && (*c != '\0' || !has_ellipsis); c++) {
    if (*c == '.' || *c == '\0') {
      for (; good && n_open > 0; n_open--)
        good = read_whole (b, self, NULL);
      if (*c == '\0')
        break;
    } else if (*c == 'i') {
      good = read_number (b, self, *numbers++);
    } else if (*c == 's') {
      good = read_slice (b, self, numbers);
      numbers += 3;
    } else if (*c == 'n') {
      good = add_axis (b, self, 1, NULL);
    } else if (*c == ':') {
      good = read_whole (b, self, NULL);
    } else if (*c == 'v') {
      const TinySubscriptGiven *ends = &g_array_index (given, TinySubscriptGiven, t);
      good = !ends[0].is_mask && !ends[1].is_mask
                 ? read_places (b, self, picks[0], picks[1])
                 : tiny_build_fail (b, "a slice goes from one integer to another, not to bool")
                       != NULL;
      t += 2;
      picks += 2;
    } else {
      const TinySubscriptGiven *item = &g_array_index (given, TinySubscriptGiven, t++);
      good = item->is_mask ? read_positions (b, self, item, picks)
                           : read_tensor (b, self, *picks);
      picks += item->is_mask ? MAX (item->mask_rank, 1) : 1;
    }
  }
  return good;
}
