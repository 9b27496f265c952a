/* SPDX-License-Identifier: MIT
 *
 * optimizer-counts.c: how many steps each parameter was in, which one without a gradient is not.
 *
 * Those that were always in the same steps share a count, so that its numbers are computed once for all of them: a group has one until
 * a step leaves some of its parameters out. */
#include "engine/tiny-plan.h"
#include "nn/optimizer-private.h"
#include "tensor/tiny-tensor-operations.h"
#include "tensor/tiny-tensor-private.h"

static void
clear_count (gpointer data)
{
  TinyCount *self = data;
  g_clear_object (&self->steps);
  g_clear_object (&self->corrections);
  g_clear_object (&self->product);
  for (guint i = 0; i < G_N_ELEMENTS (self->numbers); i++)
    g_clear_object (&self->numbers[i]);
}

void
tiny_count_unref (gpointer count)
{
  g_rc_box_release_full (count, clear_count);
}

TinyTensor *
tiny_numbers_new (const char *device, TinyDType dtype, gint64 n, guint n_dims, double value)
{
  const double wide[] = { value, value, value };
  const float narrow[] = { (float) value, (float) value, (float) value };
  g_assert (n <= (gint64) G_N_ELEMENTS (wide));
  return g_object_ref_sink (tiny_tensor_new_from_data (
      device, dtype, &n, n_dims,
      dtype == TINY_DTYPE_F64 ? (gconstpointer) wide : (gconstpointer) narrow,
      (gsize) n * tiny_dtype_get_n_bytes (dtype)));
}

gboolean
tiny_number_set (TinyTensor *self, double value, GError **error)
{
  const float narrow = (float) value;
  return self->dtype == TINY_DTYPE_F64
             ? tiny_tensor_write_data (self, &value, sizeof value, error)
             : tiny_tensor_write_data (self, &narrow, sizeof narrow, error);
}

TinyCount *
tiny_count_new (TinyRule rule, const char *device, TinyDType dtype)
{
  TinyCount *self = g_rc_box_new0 (TinyCount);
  const guint n = tiny_rule_get_state (rule)->n_numbers;
  self->steps = tiny_numbers_new (device, dtype, 1, 0, 0);
  if (n > 0)
    self->corrections = tiny_numbers_new (device, dtype, n, 1, 1);
  if (rule == TINY_RULE_NADAM)
    self->product = tiny_numbers_new (device, dtype, 1, 0, 1);
  return self;
}

/* Sets @to to the number that @from is. */
static gboolean
copy_number (TinyTensor *to, TinyTensor *from, GError **error)
{
  double value;
  return from == NULL
         || (tiny_tensor_item (from, &value, error) && tiny_number_set (to, value, error));
}

/* At once, also in a recording: what a count begins with is not to be done again. */
static TinyCount *
copy_count (TinyRule rule, const TinyCount *from, GError **error)
{
  TinyLaunches **recorder = tiny_launches_get_recorder (), *kept = *recorder;
  *recorder = NULL;
  TinyCount *self = tiny_count_new (rule, from->steps->device, from->steps->dtype);
  gboolean good = copy_number (self->steps, from->steps, error)
                  && copy_number (self->product, from->product, error);
  *recorder = kept;
  if (!good)
    g_clear_pointer (&self, tiny_count_unref);
  return self;
}

static void
replace (TinyGroup *group, guint i, TinyCount *count)
{
  tiny_count_unref (group->counts->pdata[i]);
  group->counts->pdata[i] = g_rc_box_acquire (count);
  group->n_divided++;
}

gboolean
tiny_counts_split (TinyOptimizer *self, TinyGroup *group, GError **error)
{
  for (guint i = 0; i < group->counts->len; i++) {
    TinyCount *count = group->counts->pdata[i];
    count->has_step = count->has_rest = FALSE;
    count->apart = NULL;
  }
  for (guint i = 0; i < group->counts->len; i++) {
    TinyCount *count = group->counts->pdata[i];
    if (((TinyTensor *) group->parameters->pdata[i])->grad != NULL)
      count->has_step = TRUE;
    else
      count->has_rest = TRUE;
  }
  for (guint i = 0; i < group->counts->len; i++) {
    TinyCount *count = group->counts->pdata[i];
    if (!count->has_rest || ((TinyTensor *) group->parameters->pdata[i])->grad == NULL)
      continue;
    if (count->apart == NULL) {
      g_autoptr (TinyCount) apart = copy_count (self->rule, count, error);
      if (apart == NULL)
        return FALSE;
      apart->has_step = TRUE;
      count->apart = apart;
      replace (group, i, apart);
    } else {
      replace (group, i, count->apart);
    }
  }
  return TRUE;
}

gboolean
tiny_counts_unshare (TinyOptimizer *self, TinyGroup *group, GError **error)
{
  for (guint i = 1; group->counts != NULL && i < group->counts->len; i++) {
    g_autoptr (TinyCount) own = copy_count (self->rule, group->counts->pdata[i], error);
    if (own == NULL)
      return FALSE;
    replace (group, i, own);
  }
  return TRUE;
}

static gboolean
is_same_number (TinyTensor *x, TinyTensor *y)
{
  double a = 0, b = 0;
  return x == NULL
         || (tiny_tensor_item (x, &a, NULL) && tiny_tensor_item (y, &b, NULL) && a == b);
}

void
tiny_counts_share (TinyGroup *group)
{
  for (guint i = 1; group->counts != NULL && i < group->counts->len; i++) {
    const TinyCount *own = group->counts->pdata[i];
    for (guint j = 0; j < i; j++) {
      TinyCount *other = group->counts->pdata[j];
      if (own != other && is_same_number (own->steps, other->steps)
          && is_same_number (own->product, other->product)) {
        replace (group, i, other);
        break;
      }
    }
  }
}
