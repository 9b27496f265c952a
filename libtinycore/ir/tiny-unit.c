/* SPDX-License-Identifier: MIT
 *
 * tiny-unit.c: rows of matrix units. */
#include "ir/tiny-unit.h"

#include "ir/tiny-dtype.h"

#define FAIL(...) return g_strdup_printf (__VA_ARGS__)

#define MAX_LANE_BITS 15u
enum { BIT = 0x0f };

guint
tiny_target_count_units (const TinyTarget *target)
{
  guint n = 0;
  while (n < TINY_MAX_UNITS && target->units[n].a_dtype != TINY_DTYPE_VOID)
    n++;
  return n;
}

static const guint8 *
get_list (const TinyUnit *self, TinyUnitMatrix matrix)
{
  const guint8 *const lists[] = { self->a, self->b, self->c };
  return lists[matrix];
}

static guint
count_bits (const guint8 *list)
{
  guint n = 0;
  while (n < G_N_ELEMENTS (((TinyUnit *) 0)->a) && list[n] != 0)
    n++;
  return n;
}

TinyDType
tiny_unit_get_dtype (const TinyUnit *self, TinyUnitMatrix matrix)
{
  const guint8 dtypes[] = { self->a_dtype, self->b_dtype, self->c_dtype };
  return (TinyDType) dtypes[matrix];
}

guint
tiny_unit_get_lanes (const TinyUnit *self, TinyUnitMatrix matrix)
{
  return 1u << (count_bits (get_list (self, matrix)) - self->n_thread_bits);
}

/* How often @list has the bit @entry. */
static guint
count_entry (const guint8 *list, guint entry)
{
  guint n = 0;
  for (guint i = 0; i < count_bits (list); i++)
    n += list[i] == entry;
  return n;
}

/* Each bit of both its axes once, and none of the third. */
static char *
check_list (const TinyUnit *self, TinyUnitMatrix matrix)
{
  static const char names[] = "abc";
  static const guint8 axes[TINY_N_UNIT_MATRICES][2] = { { TINY_UNIT_M, TINY_UNIT_K },
                                                        { TINY_UNIT_K, TINY_UNIT_N },
                                                        { TINY_UNIT_M, TINY_UNIT_N } };
  const guint8 *list = get_list (self, matrix), *axis = axes[matrix];
  const guint n = count_bits (list), n_same = count_entry (list, TINY_UNIT_SAME);
  const guint extents[] = { [TINY_UNIT_M >> 4] = self->m_bits,
                            [TINY_UNIT_N >> 4] = self->n_bits,
                            [TINY_UNIT_K >> 4] = self->k_bits };
  guint n_wanted = n_same;
  for (guint i = n; i < G_N_ELEMENTS (self->a); i++)
    if (list[i] != 0)
      FAIL ("%c[%u] is 0x%02x behind the list's end", names[matrix], i, list[i]);
  for (guint i = 0; i < 2; i++)
    for (guint bit = 0; bit < extents[axis[i] >> 4]; bit++, n_wanted++)
      if (count_entry (list, axis[i] | bit) != 1)
        FAIL ("%c has 0x%02x %u times, not once", names[matrix], axis[i] | bit,
              count_entry (list, axis[i] | bit));
  if (n != n_wanted)
    FAIL ("%c has %u bits, and %u of them are its rows' and columns'", names[matrix], n,
          n_wanted);
  if (n_same > 0 && matrix == TINY_UNIT_C)
    FAIL ("c has an element twice");
  if (n > self->n_thread_bits + MAX_LANE_BITS)
    FAIL ("%c has 1 << %u lanes, and an instruction 1 << %u at most", names[matrix],
          n - self->n_thread_bits, MAX_LANE_BITS);
  if (n < self->n_thread_bits)
    FAIL ("%c has %u bits, and %u choose the work-item", names[matrix], n, self->n_thread_bits);
  return NULL;
}

char *
tiny_unit_check (const TinyUnit *self)
{
  const guint8 extents[] = { self->m_bits, self->n_bits, self->k_bits };
  guint32 reserved = self->reserved0;
  for (guint i = 0; i < G_N_ELEMENTS (self->reserved); i++)
    reserved |= self->reserved[i];
  if (reserved != 0)
    FAIL ("its reserved fields are not 0");
  if (self->n_fragments == 1 || self->n_fragments == 2)
    FAIL ("%u fragments, and it takes 3", self->n_fragments);
  for (TinyUnitMatrix i = 0; i < TINY_N_UNIT_MATRICES; i++) {
    const TinyDType dtype = tiny_unit_get_dtype (self, i);
    if (dtype <= TINY_DTYPE_BOOL || dtype >= TINY_DTYPE_INDEX)
      FAIL ("%u is no dtype of a matrix", dtype);
    if (extents[i] > BIT)
      FAIL ("an extent is 1 << %u, and 1 << %d is the most", extents[i], BIT);
  }
  if (tiny_dtype_is_float ((TinyDType) self->a_dtype)
          != tiny_dtype_is_float ((TinyDType) self->c_dtype)
      || tiny_dtype_is_float ((TinyDType) self->b_dtype)
             != tiny_dtype_is_float ((TinyDType) self->c_dtype))
    FAIL ("its dtypes are floats and integers");
  for (TinyUnitMatrix i = 0; i < TINY_N_UNIT_MATRICES; i++) {
    char *why = check_list (self, i);
    if (why != NULL)
      return why;
  }
  return NULL;
}

gboolean
tiny_target_has_fragment (const TinyTarget *target, TinyDType dtype, guint lanes)
{
  for (guint i = 0; i < tiny_target_count_units (target); i++)
    for (TinyUnitMatrix matrix = 0; matrix < TINY_N_UNIT_MATRICES; matrix++)
      if (tiny_unit_get_dtype (&target->units[i], matrix) == dtype
          && tiny_unit_get_lanes (&target->units[i], matrix) == lanes)
        return TRUE;
  return FALSE;
}
