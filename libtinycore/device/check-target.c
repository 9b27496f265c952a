/* SPDX-License-Identifier: MIT
 *
 * check-target.c: what a plugin says of its hardware, checked before kernels are made by it: a number
 * that makes no sense is refused by its name, not guessed around. */
#include <string.h>

#include "base/tiny-error.h"
#include "device/tiny-table.h"
#include "ir/tiny-dtype.h"
#include "ir/tiny-unit.h"

/* Of what is in a range. */
typedef struct {
  const char *field;
  guint64 value, least, most;
} Range;

static gboolean refuse (const char *who, GError **error, const char *format, ...)
    G_GNUC_PRINTF (3, 4);

static gboolean
refuse (const char *who, GError **error, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_set_error (error, TINY_ERROR, TINY_ERROR_PLUGIN, "%s: the target's %s", who, text);
  return FALSE;
}

static gboolean
check_dtypes (const TinyTarget *target, const char *who, GError **error)
{
  const guint32 known = TINY_DTYPE_BIT (TINY_DTYPE_INDEX) - TINY_DTYPE_BIT (TINY_DTYPE_BOOL);
  const guint32 words = TINY_DTYPE_BIT (TINY_DTYPE_I32) | TINY_DTYPE_BIT (TINY_DTYPE_U32);
  /* the first are the contract's and the extensions */
  const guint64 ops = TINY_INSTR_BIT (TINY_INSTR_CMPEQ + 1) - TINY_INSTR_BIT (1);
  if ((target->dtypes_storage & ~known) != 0)
    return refuse (who, error, "dtypes_storage 0x%x has dtypes that this core does not know",
                   target->dtypes_storage);
  if ((target->dtypes_compute & ~known) != 0)
    return refuse (who, error, "dtypes_compute 0x%x has dtypes that this core does not know",
                   target->dtypes_compute);
  if ((target->dtypes_storage & words) != words)
    return refuse (who, error, "dtypes_storage 0x%x lacks i32 or u32, which every target has",
                   target->dtypes_storage);
  for (guint i = 0; i < G_N_ELEMENTS (target->ops); i++)
    if ((target->ops[i] & ~ops) != 0 || (target->ops[i] != 0 && (known & (1u << i)) == 0))
      return refuse (who, error,
                     "ops[%u] is 0x%" G_GINT64_MODIFIER
                     "x, of an op or a dtype that this core does not know",
                     i, target->ops[i]);
  return TRUE;
}

/* A row by itself, and what of the target it needs; the text is NULL where nothing is wrong (transfer full). */
static char *
check_unit (const TinyTarget *target, const TinyUnit *unit)
{
  const guint64 n_items = G_GUINT64_CONSTANT (1) << MIN (unit->n_thread_bits, 32);
  char *why = tiny_unit_check (unit);
  if (why != NULL)
    return why;
  for (TinyUnitMatrix i = 0; i < TINY_N_UNIT_MATRICES; i++)
    if ((target->dtypes_storage & TINY_DTYPE_BIT (tiny_unit_get_dtype (unit, i))) == 0)
      return g_strdup_printf ("its dtype %s is not in dtypes_storage",
                              tiny_dtype_to_string (tiny_unit_get_dtype (unit, i)));
  return n_items > 1 && n_items > MIN (target->max_group[0], target->max_group_total)
             ? g_strdup_printf ("takes %" G_GUINT64_FORMAT " work-items, and a group has %u",
                                n_items, MIN (target->max_group[0], target->max_group_total))
             : NULL;
}

static gboolean
check_units (const TinyTarget *target, const char *who, GError **error)
{
  static const TinyUnit none;
  const guint n = tiny_target_count_units (target);
  for (guint i = 0; i < TINY_MAX_UNITS; i++) {
    const TinyUnit *unit = &target->units[i];
    g_autofree char *why = i < n ? check_unit (target, unit)
                           : memcmp (unit, &none, sizeof none) != 0
                               ? g_strdup ("something stands behind the last row")
                               : NULL;
    if (why != NULL)
      return refuse (who, error, "units[%u]: %s", i, why);
  }
  return TRUE;
}

gboolean
tiny_target_check (const TinyTarget *target, const char *who, GError **error)
{
  const gboolean has_groups = (target->flags & TINY_TARGET_GROUPS) != 0;
  const guint64 any = has_groups ? 1 : 0;
  const Range ranges[] = {
    { "max_lanes", target->max_lanes, 1, G_MAXUINT16 },
    { "max_params", target->max_params, 1, G_MAXUINT32 },
    { "max_grid[0]", target->max_grid[0], 1, G_MAXUINT32 },
    { "max_grid[1]", target->max_grid[1], 1, G_MAXUINT32 },
    { "max_grid[2]", target->max_grid[2], 1, G_MAXUINT32 },
    { "max_group[0]", target->max_group[0], any, G_MAXUINT32 },
    { "max_group[1]", target->max_group[1], any, G_MAXUINT32 },
    { "max_group[2]", target->max_group[2], any, G_MAXUINT32 },
    { "max_group_total", target->max_group_total, any, G_MAXUINT32 },
  };
  if (memchr (target->arch, 0, sizeof target->arch) == NULL || target->arch[0] == 0)
    return refuse (who, error, "arch is %s", target->arch[0] == 0 ? "empty" : "endless");
  if (target->index_dtype != TINY_DTYPE_I32 && target->index_dtype != TINY_DTYPE_I64)
    return refuse (who, error, "index_dtype is %u, not i32 (%d) or i64 (%d)",
                   target->index_dtype, TINY_DTYPE_I32, TINY_DTYPE_I64);
  if (target->vector_bits % 8 != 0 || (target->vector_bits & (target->vector_bits - 1)) != 0)
    return refuse (who, error, "vector_bits is %u, not 0 or a power of two from 8 on",
                   target->vector_bits);
  for (guint i = 0; i < G_N_ELEMENTS (ranges); i++)
    if (ranges[i].value < ranges[i].least || ranges[i].value > ranges[i].most)
      return refuse (who, error,
                     "%s is %" G_GUINT64_FORMAT ", not from %" G_GUINT64_FORMAT
                     " to %" G_GUINT64_FORMAT,
                     ranges[i].field, ranges[i].value, ranges[i].least, ranges[i].most);
  return check_dtypes (target, who, error) && check_units (target, who, error);
}
