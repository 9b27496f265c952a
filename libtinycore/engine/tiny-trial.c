/* SPDX-License-Identifier: MIT
 *
 * tiny-trial.c: memory of a kernel's own on which programs for it are run, timed and compared.
 *
 * Floats are uniform in [-1, 1), integers small and positive (no division by zero, no overflow),
 * bools 0 or 1. Integers that take part in addresses without a gate that looks at them, as a gather
 * has, are 0, which is inside of every buffer. */
#include "engine/tiny-trial.h"

#include <math.h>
#include <string.h>

#include "base/tiny-error.h"
#include "base/tiny-float.h"
#include "device/tiny-buffer.h"
#include "engine/tiny-debug.h"

enum { SEED = 0x5eed, POISON = 0x1dea };

enum {
  MIN_RUNS = 7, /* timed runs … */
  MAX_RUNS = 50,
  MIN_RUNS_NS = 500000,   /* … more of those that take microseconds, */
  MAX_RUNS_NS = 50000000, /* fewer of those that take long */
};
#define FIRST_FACTOR 1.5 /* so much slower than the best: it will not become it */

typedef struct {
  TinyParam param;
  TinyBuffer *buffer;
  gboolean is_address;
  guint8 *wanted; /* an output's contents to compare with, or NULL */
} Slot;

struct TinyTrial {
  TinyDevice *device;
  Slot *slots;
  TinySpan *spans;
  guint n_slots;
  double tolerance;
};

/* ---- values ---- */
static guint64
next_random (guint64 *state) /* splitmix64 */
{
  guint64 z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static gsize
slot_bytes (const Slot *slot)
{
  return (gsize) slot->param.n_elements
         * tiny_dtype_get_n_bytes ((TinyDType) slot->param.dtype);
}

/* Fills @data with values of the slot's dtype. */
static void
fill_values (const Slot *slot, guint64 seed, guint8 *data)
{
  TinyDType dtype = (TinyDType) slot->param.dtype;
  gsize n = (gsize) slot->param.n_elements, size = tiny_dtype_get_n_bytes (dtype);
  guint64 state = seed;
  for (gsize i = 0; i < n; i++) {
    guint64 random = next_random (&state);
    double unit = (double) (gint64) random * 0x1p-63;
    if (dtype == TINY_DTYPE_F32) {
      ((float *) data)[i] = (float) unit;
    } else {
      guint64 bits = tiny_dtype_is_float (dtype) ? tiny_float_to_bits (dtype, unit)
                     : dtype == TINY_DTYPE_BOOL  ? random & 1
                     : slot->is_address          ? 0
                                                 : 1 + random % 7;
      memcpy (data + i * size, &bits, size);
    }
  }
}

static guint8 *
host_memory (gsize n_bytes, GError **error)
{
  guint8 *data = g_try_malloc (MAX (n_bytes, 1));
  if (data == NULL)
    g_set_error (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY,
                 "search: no host memory for %" G_GSIZE_FORMAT " bytes", n_bytes);
  return data;
}

static gboolean
upload_values (const Slot *slot, guint64 seed, GError **error)
{
  gsize n_bytes = slot_bytes (slot);
  g_autofree guint8 *data = host_memory (n_bytes, error);
  if (data == NULL)
    return FALSE;
  fill_values (slot, seed, data);
  return n_bytes == 0 || tiny_buffer_upload (slot->buffer, 0, data, n_bytes, error);
}

/* ---- what the kernel says about its values ---- */
static double
ulp_of (TinyDType dtype)
{
  return tiny_dtype_is_float (dtype) ? ldexp (1, -(int) tiny_dtype_infos[dtype].mantissa_bits)
                                     : 0;
}

/* Marks the parameters that say where @access is, unless a gate looks at the same value first. */
static void
mark_addresses (TinyTrial *self, TinyGraph *graph, TinyNode *access)
{
  guint gate_at = access->op == TINY_OP_LOAD ? 2 : 3;
  TinyNode *gate = access->n_sources > gate_at ? access->sources[gate_at] : NULL;
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &access->sources[1], 1);
  g_autoptr (GPtrArray) checked
      = gate ? tiny_graph_toposort (graph, &gate, 1) : g_ptr_array_new ();
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    if (node->op == TINY_OP_LOAD && node->sources[0]->op == TINY_OP_PARAM
        && node->sources[0]->arg < self->n_slots && !g_ptr_array_find (checked, node, NULL))
      self->slots[node->sources[0]->arg].is_address = TRUE;
  }
}

static void
look (TinyTrial *self, TinyNode *kernel)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  TinyNode *root = tiny_graph_import (graph, kernel);
  g_autoptr (GPtrArray) order = tiny_graph_toposort (graph, &root, 1);
  double rounding = 0, sums = 0;
  for (guint i = 0; i < order->len; i++) {
    TinyNode *node = order->pdata[i];
    double ulp = ulp_of ((TinyDType) node->dtype);
    rounding = MAX (rounding, ulp);
    if (node->op == TINY_OP_REDUCE) {
      double length = 1;
      for (guint s = 1; s < node->n_sources; s++)
        length *= (double) MAX (tiny_range_get_extent (node->sources[s]), 1);
      sums = MAX (sums, ulp * sqrt (length));
    } else if (node->op == TINY_OP_LOAD || node->op == TINY_OP_STORE) {
      mark_addresses (self, graph, node);
    }
  }
  self->tolerance = 32 * rounding + 8 * sums;
}

/* ---- memory ---- */
TinyTrial *
tiny_trial_new (TinyDevice *device,
                TinyNode *kernel,
                const TinyParam *params,
                guint n_params,
                GError **error)
{
  g_autoptr (TinyTrial) self = g_new0 (TinyTrial, 1);
  self->device = device;
  self->n_slots = n_params;
  self->slots = g_new0 (Slot, n_params + 1);
  self->spans = g_new0 (TinySpan, n_params + 1);
  for (guint i = 0; i < n_params; i++)
    self->slots[i].param = params[i];
  look (self, kernel);
  for (guint i = 0; i < n_params; i++) {
    Slot *slot = &self->slots[i];
    slot->buffer = tiny_buffer_new (device, slot_bytes (slot));
    if (!tiny_buffer_ensure (slot->buffer, error) || !upload_values (slot, SEED + i, error))
      return NULL;
    self->spans[i] = tiny_buffer_get_span (slot->buffer);
  }
  return g_steal_pointer (&self);
}

void
tiny_trial_free (TinyTrial *self)
{
  if (self == NULL)
    return;
  for (guint i = 0; i < self->n_slots; i++) {
    tiny_buffer_unref (self->slots[i].buffer);
    g_free (self->slots[i].wanted);
  }
  g_free (self->slots);
  g_free (self->spans);
  g_free (self);
}

/* Of what is in a parameter before programs write it. */
static guint64
output_seed (const TinyTrial *self, guint i)
{
  return self->slots[i].param.flags & TINY_PARAM_READ ? SEED + i : POISON + i;
}

gboolean
tiny_trial_reset (TinyTrial *self, GError **error)
{
  for (guint i = 0; i < self->n_slots; i++)
    if (self->slots[i].param.flags & TINY_PARAM_WRITE
        && !upload_values (&self->slots[i], output_seed (self, i), error))
      return FALSE;
  return TRUE;
}

/* ---- running ---- */
static guint
last_axis (const guint32 grid[3])
{
  return grid[2] > 1 ? 2 : grid[1] > 1 ? 1 : 0;
}

guint32
tiny_trial_count_slices (const guint32 grid[3])
{
  return MAX (grid[last_axis (grid)], 1);
}

gboolean
tiny_trial_run (TinyTrial *self,
                TinyProgram *program,
                const guint32 grid[3],
                gboolean slice,
                guint64 *out_ns,
                GError **error)
{
  TinyCommand command = { .struct_size = sizeof command,
                          .type = TINY_COMMAND_DISPATCH,
                          .program = tiny_program_get_handle (program),
                          .buffers = self->spans,
                          .n_buffers = self->n_slots,
                          .grid = { grid[0], grid[1], grid[2] } };
  if (slice)
    command.grid[last_axis (grid)] = 1;
  guint64 ns = 0;
  gint64 start = tiny_debug_now_ns ();
  if (!tiny_device_submit (self->device, &command, 1, &ns, error))
    return FALSE;
  *out_ns = ns > 0 ? ns : (guint64) (tiny_debug_now_ns () - start);
  return TRUE;
}

gboolean
tiny_trial_run_warm (TinyTrial *self,
                     TinyProgram *program,
                     const guint32 grid[3],
                     guint64 *out_ns,
                     GError **error)
{
  return tiny_trial_run (self, program, grid, FALSE, out_ns, error)
         && tiny_trial_run (self, program, grid, FALSE, out_ns, error);
}

gboolean
tiny_trial_time (TinyTrial *self,
                 TinyProgram *program,
                 const guint32 grid[3],
                 guint64 first_ns,
                 guint64 best_ns,
                 guint64 *out_ns,
                 GError **error)
{
  guint64 least = first_ns, total = first_ns;
  for (guint i = 1; i < MAX_RUNS; i++) {
    guint64 ns;
    if ((i >= MIN_RUNS && total > MIN_RUNS_NS) || (i >= 2 && total > MAX_RUNS_NS))
      break;
    /* The first may have had to wake threads. */
    if ((i >= 2 || first_ns > 10 * MIN_RUNS_NS)
        && (double) least > FIRST_FACTOR * (double) best_ns)
      break;
    if (!tiny_trial_run (self, program, grid, FALSE, &ns, error))
      return FALSE;
    least = MIN (least, ns);
    total += ns;
  }
  *out_ns = MAX (least, 1);
  return TRUE;
}

/* ---- comparing ---- */
static guint8 *
download (const Slot *slot, GError **error)
{
  gsize n_bytes = slot_bytes (slot);
  g_autofree guint8 *data = host_memory (n_bytes, error);
  if (data == NULL
      || (n_bytes > 0 && !tiny_buffer_download (slot->buffer, 0, data, n_bytes, error)))
    return NULL;
  return g_steal_pointer (&data);
}

gboolean
tiny_trial_keep_outputs (TinyTrial *self, GError **error)
{
  gboolean written = FALSE;
  for (guint i = 0; i < self->n_slots; i++) {
    Slot *slot = &self->slots[i];
    if (!(slot->param.flags & TINY_PARAM_WRITE))
      continue;
    g_autofree guint8 *before = host_memory (slot_bytes (slot), error);
    g_clear_pointer (&slot->wanted, g_free);
    slot->wanted = download (slot, error);
    if (slot->wanted == NULL || before == NULL)
      return FALSE;
    fill_values (slot, output_seed (self, i), before);
    written = written || memcmp (before, slot->wanted, slot_bytes (slot)) != 0;
  }
  if (!written)
    g_set_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED,
                 "a run on %s leaves everything as it was",
                 tiny_device_get_name (self->device));
  return written;
}

static double
value_at (TinyDType dtype, const guint8 *data, gsize i)
{
  if (dtype == TINY_DTYPE_F32)
    return ((const float *) data)[i];
  guint64 bits = 0;
  gsize size = tiny_dtype_get_n_bytes (dtype);
  memcpy (&bits, data + i * size, size);
  return tiny_float_from_bits (dtype, bits);
}

/* The root mean square of the finite ones of @n values. */
static double
typical_size (TinyDType dtype, const guint8 *data, gsize n)
{
  double sum = 0;
  for (gsize i = 0; i < n; i++) {
    double value = value_at (dtype, data, i);
    sum += isfinite (value) ? value * value : 0;
  }
  return sqrt (sum / (double) MAX (n, 1));
}

static gboolean
compare_floats (const Slot *slot, double tolerance, const guint8 *got, char **out_why)
{
  TinyDType dtype = (TinyDType) slot->param.dtype;
  gsize n = (gsize) slot->param.n_elements;
  double typical = typical_size (dtype, slot->wanted, n);
  for (gsize i = 0; i < n; i++) {
    double a = value_at (dtype, slot->wanted, i), b = value_at (dtype, got, i);
    gboolean same = a == b || (isnan (a) && isnan (b))
                    || (isfinite (a) && fabs (a - b) <= tolerance * (fabs (a) + typical));
    if (!same) {
      *out_why = g_strdup_printf ("element %" G_GSIZE_FORMAT " is %.9g and not %.9g", i, b, a);
      return FALSE;
    }
  }
  return TRUE;
}

static gboolean
compare_slot (const Slot *slot, double tolerance, const guint8 *got, char **out_why)
{
  gsize n_bytes = slot_bytes (slot), i = 0;
  if (memcmp (slot->wanted, got, n_bytes) == 0)
    return TRUE;
  if (tiny_dtype_is_float ((TinyDType) slot->param.dtype))
    return compare_floats (slot, tolerance, got, out_why);
  while (slot->wanted[i] == got[i])
    i++;
  i /= tiny_dtype_get_n_bytes ((TinyDType) slot->param.dtype);
  *out_why = g_strdup_printf ("element %" G_GSIZE_FORMAT " differs", i);
  return FALSE;
}

gboolean
tiny_trial_compare_outputs (TinyTrial *self, char **out_why, GError **error)
{
  for (guint i = 0; i < self->n_slots; i++) {
    const Slot *slot = &self->slots[i];
    if (slot->wanted == NULL)
      continue;
    g_autofree guint8 *got = download (slot, error);
    if (got == NULL || !compare_slot (slot, self->tolerance, got, out_why))
      return FALSE;
  }
  return TRUE;
}
