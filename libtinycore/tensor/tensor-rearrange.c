/* SPDX-License-Identifier: MIT
 *
 * tensor-rearrange.c: axes regrouped by a formula of names: "b (h w) c -> b c h w".
 *
 * Both sides are lists of groups of names. The tensor gets one axis for each name on the left, these
 * are brought in the order of the right, and are joined by its groups. */
#include <string.h>

#include "ir/tiny-shape.h"
#include "tensor/operations-private.h"

enum { MAX_NAMES = 32 };

typedef struct {
  char name[32]; /* of an axis; "1": of size 1 */
  gint64 size;   /* -1: not known yet */
  guint group;   /* which axis of the tensor it is part of */
} Name;

typedef struct {
  Name names[MAX_NAMES];
  guint n, n_groups;
} Side;

static Name *
add_name (TinyBuild *b, Side *self, const char *text, gsize length, guint group)
{
  if (self->n == MAX_NAMES || length >= sizeof self->names[0].name)
    return (Name *) (gpointer) tiny_build_fail (
        b, "too many or too long names, at most %d of %d letters", MAX_NAMES,
        (int) sizeof self->names[0].name - 1);
  Name *name = &self->names[self->n++];
  *name = (Name){ .size = -1, .group = group };
  memcpy (name->name, text, length);
  if (length == 1 && text[0] == '1')
    name->size = 1;
  return name;
}

/* The axes of "...", named by numbers that no formula can name: .0 .1 … */
static gboolean
add_rest (TinyBuild *b, Side *self, guint n_rest, guint *group, gboolean in_group)
{
  for (guint i = 0; i < n_rest; i++) {
    g_autofree char *text = g_strdup_printf (".%u", i);
    if (add_name (b, self, text, strlen (text), in_group ? *group : (*group)++) == NULL)
      return FALSE;
  }
  return TRUE;
}

static gboolean
is_name (char c)
{
  return g_ascii_isalnum (c) || c == '_';
}

static gboolean
parse_side (TinyBuild *b, const char *text, guint n_rest, Side *out)
{
  gboolean in_group = FALSE;
  guint group = 0, n_ellipses = 0;
  *out = (Side){ .n = 0 };
  for (const char *c = text; *c != '\0';) {
    const char *end = c;
    while (is_name (*end))
      end++;
    if (g_ascii_isspace (*c)) {
      c++;
    } else if (end > c) {
      if (add_name (b, out, c, (gsize) (end - c), in_group ? group : group++) == NULL)
        return FALSE;
      c = end;
    } else if (g_str_has_prefix (c, "...") && n_ellipses++ == 0) {
      if (!add_rest (b, out, n_rest, &group, in_group))
        return FALSE;
      c += 3;
    } else if ((*c == '(' && !in_group) || (*c == ')' && in_group)) {
      group += *c == ')';
      in_group = *c == '(';
      c++;
    } else {
      return tiny_build_fail (b, "“%s” is not understood from “%.*s” on", text,
                              (int) g_utf8_strlen (c, 8), c)
             != NULL;
    }
  }
  out->n_groups = group;
  return !in_group || tiny_build_fail (b, "“%s” lacks a )", text) != NULL;
}

static Name *
find_name (Side *self, const char *text)
{
  for (guint i = 0; i < self->n; i++)
    if (strcmp (self->names[i].name, text) == 0 && strcmp (text, "1") != 0)
      return &self->names[i];
  return NULL;
}

static gboolean
check_names (TinyBuild *b, Side *left, Side *right)
{
  Side *sides[] = { left, right };
  for (guint s = 0; s < 2; s++)
    for (guint i = 0; i < sides[s]->n; i++) {
      const Name *name = &sides[s]->names[i];
      if (strcmp (name->name, "1") == 0)
        continue;
      const char *text = name->name[0] == '.' ? "..." : name->name;
      if (find_name (sides[s], name->name) != name)
        return tiny_build_fail (b, "“%s” is twice on one side", text) != NULL;
      if (find_name (sides[1 - s], name->name) == NULL)
        return tiny_build_fail (b, "“%s” is on the %s side only", text,
                                s == 0 ? "left" : "right")
               != NULL;
    }
  return TRUE;
}

static gboolean
set_sizes (TinyBuild *b, Side *left, const char *names, const gint64 *sizes, guint n_sizes)
{
  g_auto (GStrv) given = g_strsplit_set (names != NULL ? names : "", " ,", -1);
  guint n = 0;
  for (guint i = 0; given[i] != NULL; i++) {
    if (given[i][0] == '\0')
      continue;
    Name *name = find_name (left, given[i]);
    if (name == NULL)
      return tiny_build_fail (b, "“%s” has a size, but is not in the formula", given[i])
             != NULL;
    if (n >= n_sizes || sizes == NULL || sizes[n] < 0)
      return tiny_build_fail (b, "“%s” has no size, or one below 0", given[i]) != NULL;
    name->size = sizes[n++];
  }
  return n == n_sizes || tiny_build_fail (b, "%u sizes for %u names", n_sizes, n) != NULL;
}

/* The sizes that are not given, from those of the tensor's axes. */
static gboolean
solve_group (TinyBuild *b, Side *left, guint group, gint64 whole)
{
  gint64 known = 1;
  Name *open = NULL;
  for (guint i = 0; i < left->n; i++) {
    Name *name = &left->names[i];
    if (name->group != group)
      continue;
    if (name->size < 0 && open != NULL)
      return tiny_build_fail (b, "give the size of “%s” or “%s”", open->name, name->name)
             != NULL;
    if (name->size < 0)
      open = name;
    else if (name->size > 0 && known > G_MAXINT64 / name->size)
      return tiny_build_fail (b, "sizes of axis %u are too large", group) != NULL;
    else
      known *= name->size;
  }
  if (open != NULL && known > 0)
    open->size = whole / known;
  if ((open != NULL && known == 0) || known * (open != NULL ? open->size : 1) != whole)
    return tiny_build_fail (b,
                            "axis %u of size %" G_GINT64_FORMAT
                            " is not made of parts of %" G_GINT64_FORMAT,
                            group, whole, known)
           != NULL;
  return TRUE;
}

static TinyNode *
apply (TinyBuild *b, TinyNode *x, Side *left, Side *right)
{
  gint64 apart[MAX_NAMES], order[MAX_NAMES], joined[MAX_NAMES], place[MAX_NAMES];
  guint n = 0, n_order = 0;
  for (guint i = 0; i < left->n; i++) /* those of size 1 come and go by reshaping */
    if (strcmp (left->names[i].name, "1") != 0) {
      place[i] = n;
      apart[n++] = left->names[i].size;
    }
  for (guint i = 0; i < right->n_groups; i++)
    joined[i] = 1;
  for (guint i = 0; i < right->n; i++) {
    const Name *name = find_name (left, right->names[i].name);
    if (name == NULL)
      continue;
    order[n_order++] = place[name - left->names];
    joined[right->names[i].group] *= name->size;
  }
  x = tiny_build_reshape (b, x, apart, n);
  x = tiny_build_permute (b, x, order, n);
  return tiny_build_check_shape (b, joined, right->n_groups)
             ? tiny_build_reshape (b, x, joined, right->n_groups)
             : NULL;
}

static guint
count_groups (const char *text)
{
  guint n = 0;
  gboolean in_group = FALSE;
  for (const char *c = text; *c != '\0'; c++) {
    n += !in_group && (*c == '(' || (is_name (*c) && !is_name (c[1])));
    in_group = *c == '(' || (in_group && *c != ')');
  }
  return n;
}

TinyNode *
op_rearrange (TinyBuild *b,
              TinyNode *x,
              const char *formula,
              const char *names,
              const gint64 *sizes,
              guint n_sizes)
{
  Side left, right;
  g_auto (GStrv) sides = g_strsplit (formula != NULL ? formula : "", "->", -1);
  if (g_strv_length (sides) != 2)
    return tiny_build_fail (b, "a formula has one ->, as “a b -> b a”");
  guint rank = x->shape->n, n_named = count_groups (sides[0]);
  guint n_rest = rank > n_named ? rank - n_named : 0;
  if (!parse_side (b, sides[0], n_rest, &left) || !parse_side (b, sides[1], n_rest, &right))
    return NULL;
  if (left.n_groups != rank) {
    g_autofree char *shape = tiny_shape_to_string (x->shape);
    return tiny_build_fail (b, "“%s” has %u axes, the tensor is %s", sides[0], left.n_groups,
                            shape);
  }
  if (!check_names (b, &left, &right) || !set_sizes (b, &left, names, sizes, n_sizes))
    return NULL;
  for (guint i = 0; i < rank; i++)
    if (!solve_group (b, &left, i, x->shape->v[i]))
      return NULL;
  return apply (b, x, &left, &right);
}
