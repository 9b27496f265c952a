/* SPDX-License-Identifier: MIT
 *
 * subscript-pattern.c: reads the pattern of a subscript, part by part, along the axes of a tensor. */
#include <string.h>

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
  self->parts[self->n_read++] = (TinySubscriptPart){ 0, 1, size, FALSE };
  return add_axis (b, self, size, pick);
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
  self->parts[self->n_read++] = (TinySubscriptPart){ at < 0 ? at + size : at, 1, 1, TRUE };
  return TRUE;
}

static gboolean
read_slice (TinyBuild *b, TinySubscript *self, const gint64 *numbers)
{
  if (self->n_read == self->x->shape->n)
    return no_axis_left (b, self) != NULL;
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

static gboolean
read_tensor (TinyBuild *b, TinySubscript *self, TinyNode *pick)
{
  if (pick->dtype != TINY_DTYPE_BOOL) {
    if (!tiny_dtype_is_integer (pick->dtype))
      return tiny_build_fail (b, "an index tensor has integers or bool, not %s",
                              tiny_dtype_to_string ((TinyDType) pick->dtype))
             != NULL;
    return read_whole (b, self, pick);
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
    if (strchr ("is:n.t", *c) == NULL)
      return tiny_build_fail (b, "“%s” has “%c”, which is none of i s : n . t", pattern,
                              g_ascii_isgraph (*c) ? *c : '?')
             != NULL;
    numbers += *c == 'i' ? 1 : *c == 's' ? 3 : 0;
    tensors += *c == 't';
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
    } else {
      const TinySubscriptGiven *item = &g_array_index (given, TinySubscriptGiven, t++);
      good = item->is_mask ? read_positions (b, self, item, picks)
                           : read_tensor (b, self, *picks);
      picks += item->is_mask ? MAX (item->mask_rank, 1) : 1;
    }
  }
  return good;
}
