/* SPDX-License-Identifier: MIT
 *
 * test-beside.c: devices that compute what they claim and leave the rest to another device on their memory,
 * over two toy backends in this very file. What their tables must have, whose memory is whose, claims that
 * fail. */
#include <string.h>

#include "../case-fails.h"
#include "base/tiny-error.h"
#include "device/tiny-buffer.h"
#include "device/tiny-table.h"
#include "engine/tiny-claims.h"

struct TinyPluginBuffer {
  void *data;
  gboolean is_foreign;
};

static struct {
  gint n_buffers, n_imports;
  gsize misalignment;
  TinyStatus claim_status;
  TinyClaim claim;
} toy;
static char the_handle;

static void
toy_close (TinyPluginDevice *device)
{
}

static TinyStatus
toy_info (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  g_strlcpy (out->arch, "toy-arch", sizeof out->arch);
  out->flags = TINY_DEVICE_HOST_MEMORY;
  out->alignment = 64;
  return TINY_STATUS_OK;
}

static TinyStatus
toy_alloc (TinyPluginDevice *device,
           uint64_t n_bytes,
           TinyPluginBuffer **out,
           TinyPluginError *error)
{
  *out = g_new0 (TinyPluginBuffer, 1);
  (*out)->data = g_aligned_alloc (1, n_bytes + 64, 64);
  toy.n_buffers++;
  return TINY_STATUS_OK;
}

static void
toy_free (TinyPluginDevice *device, TinyPluginBuffer *buffer)
{
  *(buffer->is_foreign ? &toy.n_imports : &toy.n_buffers) -= 1;
  if (!buffer->is_foreign)
    g_aligned_free (buffer->data);
  g_free (buffer);
}

static TinyStatus
toy_map (TinyPluginDevice *device, TinyPluginBuffer *buffer, void **out, TinyPluginError *error)
{
  *out = (guint8 *) buffer->data + toy.misalignment;
  return TINY_STATUS_OK;
}

static TinyStatus
toy_import_host (TinyPluginDevice *device,
                 void *memory,
                 uint64_t n_bytes,
                 TinyPluginBuffer **out,
                 TinyPluginError *error)
{
  *out = g_new0 (TinyPluginBuffer, 1);
  **out = (TinyPluginBuffer){ memory, TRUE };
  toy.n_imports++;
  return TINY_STATUS_OK;
}

static TinyStatus
toy_submit (TinyPluginDevice *device,
            TinyPluginQueue *queue,
            const TinySubmit *work,
            TinyPluginError *error)
{
  return TINY_STATUS_OK;
}

static TinyStatus
toy_load (TinyPluginDevice *device,
          const TinyProgramArgs *args,
          TinyPluginProgram **out,
          TinyPluginError *error)
{
  *out = (TinyPluginProgram *) &the_handle;
  return TINY_STATUS_OK;
}

static void
toy_unload (TinyPluginDevice *device, TinyPluginProgram *program)
{
}

static TinyDeviceTable table = { .struct_size = sizeof (TinyDeviceTable),
                                 .close = toy_close,
                                 .info = toy_info,
                                 .alloc = toy_alloc,
                                 .free = toy_free,
                                 .submit = toy_submit,
                                 .program_load = toy_load,
                                 .program_unload = toy_unload,
                                 .map = toy_map,
                                 .import_host = toy_import_host };

static TinyStatus
toy_target (const char *arch, TinyTarget *out, TinyPluginError *error)
{
  g_strlcpy (out->arch, "kernels", sizeof out->arch);
  out->index_dtype = TINY_DTYPE_I32;
  out->dtypes_storage = TINY_DTYPE_BIT (TINY_DTYPE_I32) | TINY_DTYPE_BIT (TINY_DTYPE_U32);
  out->max_lanes = out->max_params = 1;
  out->max_grid[0] = out->max_grid[1] = out->max_grid[2] = 1;
  return TINY_STATUS_OK;
}

static TinyStatus
toy_compile (const TinyCompileArgs *args, void **data, uint64_t *size, TinyPluginError *error)
{
  g_assert_nonnull (args->operation);
  g_assert_null (args->linear);
  g_assert_cmpstr (args->arch, ==, "toy-arch");
  *data = tiny_host_get ()->alloc (4);
  *size = 4;
  return TINY_STATUS_OK;
}

static TinyStatus
toy_claim (const char *arch,
           const TinyOperation *operation,
           TinyClaim *out,
           TinyPluginError *error)
{
  g_assert_cmpstr (arch, ==, "toy-arch");
  g_assert_cmpuint (out->struct_size, ==, sizeof *out);
  *out = toy.claim;
  g_strlcpy (error->text, "it is on fire", sizeof error->text);
  return toy.claim_status;
}

static TinyStatus
toy_init (const TinyHost *host, TinyPluginError *error)
{
  return TINY_STATUS_OK;
}

static TinyStatus
toy_scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  *n = 0;
  return TINY_STATUS_OK;
}

static TinyStatus
toy_open (const char *id,
          TinyPluginDevice **out,
          const TinyDeviceTable **out_table,
          TinyPluginError *error)
{
  *out = (TinyPluginDevice *) &the_handle;
  *out_table = &table;
  return TINY_STATUS_OK;
}

static TinyRenderer
make_renderer (gboolean claims_only)
{
  return (TinyRenderer){ .struct_size = sizeof (TinyRenderer),
                         .flags = claims_only ? TINY_RENDERER_CLAIMS_ONLY : 0,
                         .name = "TOY",
                         .target = claims_only ? NULL : toy_target,
                         .compile = toy_compile,
                         .claim = claims_only ? toy_claim : NULL };
}

static TinyBackend *
make_backend (const TinyRenderer *renderer, guint n_renderers, guint flags, GError **error)
{
  const TinyPluginModule module = { .struct_size = sizeof module,
                                    .flags = flags,
                                    .abi_major = TINY_PLUGIN_ABI_MAJOR,
                                    .name = flags != 0 ? "BESIDE" : "HOST",
                                    .n_renderers = n_renderers,
                                    .renderers = renderer,
                                    .init = toy_init,
                                    .scan = toy_scan,
                                    .open = toy_open };
  return tiny_backend_new (&module, NULL, error);
}

/* The device that kernels run on, and one beside it. */
static TinyDevice *
open_beside (TinyDevice **out_runner, GError **error)
{
  const TinyRenderer plain = make_renderer (FALSE), claims = make_renderer (TRUE);
  g_autoptr (TinyBackend) host = make_backend (&plain, 1, 0, NULL);
  g_autoptr (TinyBackend) beside = make_backend (&claims, 1, TINY_MODULE_BESIDE_HOST, NULL);
  *out_runner = tiny_device_new (host, &(TinyDeviceOptions){ .name = "HOST" }, NULL);
  g_assert_nonnull (*out_runner);
  return tiny_device_new (
      beside, &(TinyDeviceOptions){ .name = "BESIDE", .code = host, .runner = *out_runner },
      error);
}

/* ---- tests ---- */
static void
check_refused (const TinyRenderer *renderer, guint n, guint flags, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_assert_null (make_backend (renderer, n, flags, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_PLUGIN);
  if (strstr (error->message, part) == NULL)
    CASE_FAILS ("“%s” wanted in: %s", part, error->message);
}

static void
test_modules (void)
{
  TinyRenderer plain = make_renderer (FALSE), claims = make_renderer (TRUE);
  check_refused (&plain, 1, TINY_MODULE_BESIDE_HOST, "more than claims");
  check_refused (&claims, 1, 0, "does not run beside the host");
  check_refused (NULL, 0, TINY_MODULE_BESIDE_HOST, "no renderer that claims");
  check_refused (&claims, 1, TINY_MODULE_BESIDE_HOST | TINY_MODULE_ANY_RENDERER,
                 "any renderer");
  claims.claim = NULL;
  check_refused (&claims, 1, TINY_MODULE_BESIDE_HOST, "slot claim");
  claims.claim = toy_claim;
  claims.flags |= 2;
  check_refused (&claims, 1, TINY_MODULE_BESIDE_HOST, "flags");
  plain.flags = 4;
  check_refused (&plain, 1, 0, "flags");
}

static void
test_memory (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyDevice) runner = NULL;
  TinyDevice *device = open_beside (&runner, &error);
  g_assert_no_error (error);
  g_assert_true (tiny_device_get_runner (device) == runner);
  g_assert_true (tiny_device_get_runner (runner) == runner);
  g_assert_cmpstr (tiny_device_get_arch (device), ==, "kernels");
  g_autoptr (TinyBuffer) buffer = tiny_buffer_new (device, 1000);
  g_autoptr (TinyBuffer) view = tiny_buffer_new_view (buffer, 64, 64);
  g_assert_true (tiny_buffer_ensure (buffer, &error));
  TinyPluginBuffer *twin = tiny_buffer_get_handle_on (buffer, runner, &error);
  g_assert_nonnull (twin);
  g_assert_true (twin->data == tiny_buffer_map (buffer));
  g_assert_true (tiny_buffer_get_handle_on (view, runner, &error) == twin);
  g_assert_true (tiny_buffer_get_handle_on (view, device, &error)
                 == tiny_buffer_get_handle (buffer));
  g_assert_cmpint (toy.n_imports, ==, 1);
  g_clear_pointer (&view, tiny_buffer_unref);
  g_clear_pointer (&buffer, tiny_buffer_unref);
  g_object_unref (device);
  g_assert_cmpint (toy.n_imports, ==, 0);
  g_assert_cmpint (toy.n_buffers, ==, 0);
}

/* Memory that the runner cannot use is an error, not a kernel on wrong addresses. */
static void
test_bad_memory (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyDevice) runner = NULL;
  toy.misalignment = 4;
  g_autoptr (TinyDevice) device = open_beside (&runner, NULL);
  g_autoptr (TinyBuffer) buffer = tiny_buffer_new (device, 1000);
  g_assert_true (tiny_buffer_ensure (buffer, NULL));
  g_assert_null (tiny_buffer_get_handle_on (buffer, runner, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_INVALID);
  toy.misalignment = 0;
}

static void
test_no_import (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyDevice) runner = NULL;
  table.import_host = NULL;
  g_assert_null (open_beside (&runner, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_UNSUPPORTED);
  g_assert_nonnull (strstr (error->message, "import_host"));
  table.import_host = toy_import_host;
}

static TinyStatus
import_nothing (TinyPluginDevice *device,
                void *handle,
                TinyPluginBuffer **out,
                uint64_t *out_n_bytes,
                TinyPluginError *error)
{
  *out_n_bytes = 16;
  return TINY_STATUS_OK;
}

/* A driver's memory that was imported is there, whatever the plugin answers. */
static void
test_import (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyDevice) runner = NULL;
  table.import = import_nothing;
  g_autoptr (TinyDevice) device = open_beside (&runner, NULL);
  table.import = NULL;
  g_assert_null (tiny_buffer_new_import (device, &table, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_PLUGIN);
  g_assert_nonnull (strstr (error->message, "import() gave no memory"));
}

static void
test_claims (void)
{
  g_autoptr (TinyDevice) runner = NULL;
  g_autoptr (TinyDevice) device = open_beside (&runner, NULL);
  g_autoptr (GArray) log = g_array_new (FALSE, FALSE, sizeof (TinyVerdict));
  const TinyOperation operation = { .kind = TINY_OPERATION_MATMUL };
  const struct {
    TinyStatus status;
    guint verdict, flags, cost_ns;
    gboolean is_taken;
    const char *text;
  } rows[] = {
    { 0, TINY_CLAIM_ACCEPTED, 0, 10, TRUE, "accepted, 0.0 us there" },
    { 0, TINY_CLAIM_ACCEPTED, 0, 0, FALSE, "no cost is given: why" },
    { 0, TINY_CLAIM_ACCEPTED, 0, 2000, FALSE, "not worth it" },
    { 0, TINY_CLAIM_DECLINED, 0, 10, FALSE, "declined: why" },
    { 0, 7, 0, 10, FALSE, "does not know" },
    { 0, TINY_CLAIM_ACCEPTED, 1, 10, FALSE, "does not know" },
    { TINY_STATUS_INTERNAL, TINY_CLAIM_ACCEPTED, 0, 10, FALSE, "it is on fire" },
  };
  g_assert_true (tiny_claims_decide (device, NULL, 0, NULL));
  g_assert_false (tiny_claims_decide (runner, NULL, 0, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_array_set_size (log, 0);
    toy.claim_status = rows[i].status;
    toy.claim = (TinyClaim){ .flags = rows[i].flags,
                             .verdict = rows[i].verdict,
                             .cost_ns = rows[i].cost_ns };
    memset (toy.claim.reason, 'x', sizeof toy.claim.reason); /* endless */
    memcpy (toy.claim.reason, "why", 4);
    g_assert_cmpint (tiny_claims_decide (device, &operation, 1000, log), ==, rows[i].is_taken);
    tiny_claims_decide (device, &operation, 1000, log); /* is noted once */
    g_assert_cmpuint (log->len, ==, 1);
    g_autofree char *text = tiny_verdict_to_string (&g_array_index (log, TinyVerdict, 0));
    if (strstr (text, rows[i].text) == NULL)
      CASE_FAILS ("“%s” wanted in: %s", rows[i].text, text);
  }
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) code = tiny_device_compile_operation (device, &operation, "x", &error);
  g_assert_no_error (error);
  g_assert_cmpuint (g_bytes_get_size (code), ==, 4);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/device/beside/modules", test_modules);
  g_test_add_func ("/device/beside/memory", test_memory);
  g_test_add_func ("/device/beside/bad-memory", test_bad_memory);
  g_test_add_func ("/device/beside/no-import", test_no_import);
  g_test_add_func ("/device/beside/import", test_import);
  g_test_add_func ("/device/beside/claims", test_claims);
  return g_test_run ();
}
