/* SPDX-License-Identifier: MIT
 *
 * test-allocation.c: a plugin and the core have an error where there is no memory for them.
 *
 * Refused once is each request of the plugin's own code, be it as small as it may, and each of the core's code from
 * ALLOCATION_LARGE bytes on. Requests of drivers and compilers are granted. */
#include "../device-there.h"
#include "allocation.h"
#include "device/tiny-buffer.h"
#include "device/tiny-queue.h"
#include "device/tiny-table.h"
#include "engine/tiny-code.h"
#include "engine/tiny-plan.h"
#include "ir/tiny-text.h"
#include "tiny.h"

#define T(name) tiny_tensor_##name

static const struct {
  const char *device,
      *module;    /* NULL: it is in another process, and the core's own requests count */
  guint at_least; /* requests of those */
  guint n_acts;   /* of tensors */
} rows[] = {
  { "CPU", "tiny-cpu", 25, 6 },      { "CPU:CLANG", "tiny-cpu", 20, 3 },
  { "REF", "tiny-ref", 20, 3 },      { "REF::groups,items=32", "tiny-ref", 20, 3 },
  { "CL", "tiny-cl", 6, 3 },         { "WEBGPU", "tiny-webgpu", 5, 3 },
  { "NULL:CPU", "tiny-null", 6, 1 }, { "ISOLATED+REF", NULL, 2, 2 },
};

static gboolean
is_there (const char *device)
{
  g_autofree char *clang = g_find_program_in_path ("clang");
  g_autofree char *reason = device_find_obstacle (device);
  if (clang == NULL && g_str_equal (device, "CPU:CLANG"))
    reason = g_strdup ("there is no clang");
  if (reason != NULL)
    g_test_skip (reason);
  return reason == NULL;
}

/* ---- a device, from opening to closing ---- */
enum { N_SMALL = 64, N_LARGE = 1 << 26, MAPPED = 32 << 20 };

/* y = 2 a, of that many elements. */
static gboolean
make_code (TinyCode *out, TinyDevice *device, guint n, GError **error)
{
  g_autoptr (TinyGraph) graph = tiny_graph_new ();
  g_autofree char *text = g_strdup_printf (
      "%%y = param.f32{slot=0, shape=[%u]}\n"
      "%%a = param.f32{slot=1, shape=[%u]}\n"
      "%%i = range.index{number=0, kind=loop}(%u)\n"
      "sink{name=\"twice\"}(store(%%y, %%i, mul.f32(load.f32(%%a, %%i), 2.0)))\n",
      n, n, n);
  TinyNode *kernel = tiny_graph_parse (graph, text, error);
  return kernel != NULL && tiny_code_make (out, device, kernel, NULL, 0, NULL, error);
}

static gboolean
launch (TinyDevice *device,
        const TinyCodeHead *head,
        TinyProgram *program,
        TinyBuffer *const *buffers,
        GError **error)
{
  const TinySpan spans[]
      = { tiny_buffer_get_span (buffers[0]), tiny_buffer_get_span (buffers[1]) };
  const TinyCommand command = { .struct_size = sizeof command,
                                .type = TINY_COMMAND_DISPATCH,
                                .program = tiny_program_get_handle (program),
                                .buffers = spans,
                                .n_buffers = 2,
                                .grid = { head->grid[0], head->grid[1], head->grid[2] } };
  return tiny_device_submit (device, &command, 1, NULL, error);
}

static gboolean
run (TinyDevice *device, const TinyCode *code, GError **error)
{
  float numbers[N_SMALL], found[N_SMALL];
  for (guint i = 0; i < N_SMALL; i++)
    numbers[i] = (float) i;
  g_autoptr (TinyProgram) program
      = tiny_program_new (device, code->head.name, code->binary, 2, 0, code->head.group, error);
  g_autoptr (TinyBuffer) y = tiny_buffer_new (device, sizeof numbers);
  g_autoptr (TinyBuffer) a = tiny_buffer_new (device, sizeof numbers);
  g_autoptr (TinyBuffer) unused = tiny_buffer_new (device, MAPPED);
  const gboolean runs = (tiny_device_get_info (device)->flags & TINY_DEVICE_RUNS_NOTHING) == 0;
  if (program == NULL || !tiny_buffer_ensure (y, error) || !tiny_buffer_ensure (unused, error)
      || !tiny_buffer_upload (a, 0, numbers, sizeof numbers, error)
      || !launch (device, &code->head, program, (TinyBuffer *[]){ y, a }, error)
      || !tiny_buffer_download (y, 0, found, sizeof found, error))
    return FALSE;
  for (guint i = 0; runs && i < N_SMALL; i++)
    g_assert_cmpfloat (found[i], ==, 2 * numbers[i]);
  return TRUE;
}

static char *listing; /* the first of a device */

/* Each function of a device. */
static gboolean
open_device (gpointer name, GError **error)
{
  g_auto (TinyCode) small = { 0 }, large = { 0 };
  g_autoptr (TinyDevice) device
      = tiny_registry_open (tiny_registry_get_default (), name, error);
  if (device == NULL || !make_code (&small, device, N_SMALL, error)
      || !make_code (&large, device, N_LARGE, error) || !run (device, &small, error))
    return FALSE;
  if (tiny_device_get_renderer (device)->disassemble != NULL) {
    g_autofree char *text = tiny_device_disassemble (device, small.binary, error);
    if (text == NULL)
      return FALSE;
    if (listing == NULL)
      listing = g_strdup (text);
    g_assert_cmpstr (text, ==, listing);
  }
  g_autoptr (TinyQueue) queue = tiny_queue_new (device, error);
  return queue != NULL;
}

static void
test_device (gconstpointer data)
{
  const guint i = GPOINTER_TO_UINT (data);
  if (!is_there (rows[i].device))
    return;
  g_clear_pointer (&listing, g_free);
  /* Memory of a device is asked for a second time, for which a plugin may make several requests. */
  for (guint times = 1; times <= 4; times += 3) {
    const HeapAskers askers = { .always = rows[i].module,
                                .large = "test-fault",
                                .least = rows[i].module == NULL ? ALLOCATION_LARGE : 0,
                                .helper = (gconstpointer) tiny_host_get ()->alloc,
                                .times = times };
    const guint n = allocation_refuse_each (&askers, open_device, (gpointer) rows[i].device);
    if (n < rows[i].at_least)
      CASE_FAILS ("%u requests of %s, not the %u that it is known to make", n, rows[i].device,
                  rows[i].at_least);
  }
}

/* ---- tensors ---- */
enum { N_ROWS = 256, N_ALL = N_ROWS * N_ROWS };

static _Alignas(4096) float unit[N_ALL];
static const gint64 shape[] = { N_ROWS, N_ROWS };

static TinyTensor *
make_unit (const char *device)
{
  for (guint i = 0; i < N_ROWS; i++)
    unit[i * (N_ROWS + 1)] = 1;
  return g_object_ref_sink (
      T (new_from_data) (device, TINY_DTYPE_F32, shape, 2, unit, sizeof unit));
}

/* @number is everywhere in the diagonal of @tensor. */
static gboolean
check (TinyTensor *tensor, float number, GError **error)
{
  static float found[N_ALL];
  g_autoptr (TinyTensor) owned = g_object_ref_sink (tensor);
  if (!T (copy_data) (owned, found, sizeof found, error))
    return FALSE;
  for (guint i = 0; i < N_ROWS; i++)
    g_assert_cmpfloat (found[i * (N_ROWS + 1)], ==, number);
  return TRUE;
}

/* Numbers in, kernels, and a copy out. */
static gboolean
compute (gpointer device, GError **error)
{
  TinyDevice *own = tiny_engine_get_device (device, error);
  if (own == NULL)
    return FALSE;
  tiny_device_trim (own); /* so that memory is asked for */
  g_autoptr (TinyTensor) x = make_unit (device);
  return check (T (add_number) (T (mul_number) (x, 3), 1), 4, error);
}

/* Without a copy out, which a device that runs nothing has not. */
static gboolean
realize (gpointer device, GError **error)
{
  g_autoptr (TinyTensor) x = make_unit (device);
  g_autoptr (TinyTensor) more = g_object_ref_sink (T (add_number) (x, 1));
  return T (realize) (more, error);
}

static gboolean
factor (gpointer device, GError **error)
{
  g_autoptr (TinyTensor) x = make_unit (device);
  if (!check (T (cholesky) (x, FALSE), 1, error))
    return FALSE;
  TinyTensor *u, *s, *v;
  T (svd) (x, FALSE, &u, &s, &v);
  g_autoptr (TinyTensor) own_u = g_object_ref_sink (u), own_s = g_object_ref_sink (s),
                         own_v = g_object_ref_sink (v);
  return T (realize_many) ((TinyTensor *[]){ own_u, own_s, own_v }, 3, error);
}

static gboolean
import (gpointer device, GError **error)
{
  g_autoptr (TinyTensor) x = g_object_ref_sink (
      T (new_from_blob) (device, TINY_DTYPE_F32, shape, 2, unit, NULL, NULL));
  return check (T (mul_number) (x, 2), 2, error);
}

/* On the host, as large as the data say. */
static gboolean
choose (gpointer device, GError **error)
{
  g_autoptr (TinyTensor) x = make_unit (device);
  g_autoptr (TinyTensor) all = g_object_ref_sink (T (add_number) (x, 1));
  g_autoptr (TinyTensor) places = g_object_ref_sink (T (nonzero) (all));
  g_autoptr (GPtrArray) parts = T (unique) (all, TRUE, TRUE, TRUE, 1);
  return T (realize) (places, error) && T (realize) (parts->pdata[0], error)
         && T (realize) (parts->pdata[1], error);
}

static gboolean
quantize (gpointer device, GError **error)
{
  g_autoptr (TinyTensor) x = make_unit (device);
  g_autoptr (TinyTensor) found = T (quantize) (x, TINY_QUANT_Q8_0, error);
  return found != NULL && T (realize) (found, error);
}

/* Work on the host is the same for all devices, and a factorisation without LAPACK is many kernels. */
static const struct {
  const char *name;
  AllocationAct act;
} acts[] = {
  { "realize", realize }, { "compute", compute }, { "import", import },
  { "factor", factor },   { "select", choose },   { "quantize", quantize },
};

static void
test_tensors (gconstpointer data)
{
  const guint i = GPOINTER_TO_UINT (data);
  const HeapAskers askers = { .always = rows[i].module,
                              .large = "test-fault",
                              .least = ALLOCATION_LARGE,
                              .helper = (gconstpointer) tiny_host_get ()->alloc };
  if (!is_there (rows[i].device))
    return;
  for (guint k = 0; k < rows[i].n_acts; k++) {
    g_test_message ("%s", acts[k].name);
    allocation_refuse_each (&askers, acts[k].act, (gpointer) rows[i].device);
  }
}

int
main (int argc, char **argv)
{
  static const char *const names[]
      = { "CPU", "CPU-CLANG", "REF", "REF-groups", "CL", "WEBGPU", "NULL", "ISOLATED" };
  g_test_init (&argc, &argv, NULL);
  add_row_tests ("/fault/allocation/device", names, G_N_ELEMENTS (rows), test_device);
  add_row_tests ("/fault/allocation/tensors", names, G_N_ELEMENTS (rows), test_tensors);
  return g_test_run ();
}
