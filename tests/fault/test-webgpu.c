/* SPDX-License-Identifier: MIT
 *
 * test-webgpu.c: what goes wrong in a WebGPU library, its driver or its device is an answer that says
 * so, and after it others work. The faults come from webgpu-fault.c, the rest is the real thing. */
#include <inttypes.h>
#include <sys/resource.h>

#include "../unit/case-fails.h"
#include "../unit/plugins-webgpu/webgpu-harness.h"

static void (*set_fault) (const char *name);

/* out[i] = out[i] + 1 */
static void
build_add (Script *s, guint n)
{
  script_init (s);
  s->linear.name = "add";
  s->linear.grid[0] = n;
  guint32 out = emit_param (s, TINY_DTYPE_I32, n);
  guint32 at = emit_arg (s, TINY_INSTR_GRID, TINY_DTYPE_I32, 0);
  guint32 sum
      = emit (s, ADD, I32, 1, emit (s, LOAD, I32, 1, out, at), emit_int (s, TINY_DTYPE_I32, 1));
  emit (s, STORE, VOID, 1, out, at, sum);
}

static TinyStatus
run_add (Rig *rig, guint n)
{
  g_autofree Script *s = g_new (Script, 1);
  g_autofree gint32 *data = g_new0 (gint32, n);
  void *const at[] = { data };
  const gsize size = n * sizeof *data;
  build_add (s, n);
  TinyStatus status = webgpu_run (rig, s, at, &size, NULL);
  for (guint i = 0; i < n && status == TINY_STATUS_OK; i++)
    g_assert_cmpint (data[i], ==, 1);
  return status;
}

static void
says (const TinyPluginError *error, const char *text)
{
  g_test_message ("%s (%s)", error->text, error->hint);
  if (strstr (error->text, text) == NULL)
    CASE_FAILS ("“%s” is not in: %s", text, error->text);
}

/* The module without a device; @fault is armed. */
static TinyStatus
try_open (Rig *rig, const char *fault)
{
  TinyCandidate candidate = { .struct_size = sizeof candidate };
  guint32 n = 1;
  memset (rig, 0, sizeof *rig);
  rig->error.struct_size = sizeof rig->error;
  rig->library = dlopen (WEBGPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  TinyPluginEntry entry = (TinyPluginEntry) dlsym (rig->library, TINY_PLUGIN_ENTRY_SYMBOL);
  rig->module = entry (TINY_PLUGIN_ABI_MINOR, &rig->error);
  g_assert_cmpint (rig->module->init (&rig_host, &rig->error), ==, TINY_STATUS_OK);
  set_fault (fault);
  TinyStatus status = rig->module->scan (&candidate, &n, &rig->error);
  if (status == TINY_STATUS_OK)
    status = rig->module->open (candidate.id, &rig->device, &rig->table, &rig->error);
  set_fault ("");
  return status;
}

static void
give_up (Rig *rig)
{
  rig->module->fini ();
  dlclose (rig->library);
}

static void
test_works (void)
{
  Rig rig;
  webgpu_open (&rig);
  g_assert_cmpint (run_add (&rig, 1000), ==, TINY_STATUS_OK);
  rig_close (&rig);
}

static void
test_library (void)
{
  static const struct {
    const char *path, *says;
  } rows[] = {
    { "/nowhere/libwgpu_native.so", "TINY_WEBGPU_LIBRARY: /nowhere/libwgpu_native.so" },
    { REF_PLUGIN, "lacks wgpuCreateInstance" },
    { "/etc/passwd", "TINY_WEBGPU_LIBRARY" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    Rig rig;
    g_setenv ("TINY_WEBGPU_LIBRARY", rows[i].path, TRUE);
    g_assert_cmpint (try_open (&rig, ""), ==, TINY_STATUS_DRIVER);
    says (&rig.error, rows[i].says);
    give_up (&rig);
  }
  g_setenv ("TINY_WEBGPU_LIBRARY", WEBGPU_FAULT, TRUE);
  test_works ();
}

static void
test_no_adapter (void)
{
  Rig rig;
  g_assert_cmpint (try_open (&rig, "adapters"), ==, TINY_STATUS_NO_DEVICE);
  says (&rig.error, "finds no adapter");
  g_assert_nonnull (strstr (rig.error.hint, "Vulkan driver"));
  give_up (&rig);
}

static void
test_no_device (void)
{
  Rig rig;
  g_assert_cmpint (try_open (&rig, "device"), ==, TINY_STATUS_DRIVER);
  says (&rig.error, "gives no device");
  give_up (&rig);
}

/* A library from before the interface was settled: other structs under the same names. */
static void
test_other_structs (void)
{
  Rig rig;
  g_assert_cmpint (try_open (&rig, "limits"), ==, TINY_STATUS_DRIVER);
  says (&rig.error, "structs are not those");
  give_up (&rig);
}

static void
test_unknown_device (void)
{
  Rig rig;
  webgpu_open (&rig);
  TinyPluginDevice *device = NULL;
  const TinyDeviceTable *table = NULL;
  g_assert_cmpint (rig.module->open ("vulkan-0-0:9", &device, &table, &rig.error), ==,
                   TINY_STATUS_NO_DEVICE);
  says (&rig.error, "vulkan-0-0:9");
  rig_close (&rig);
}

/* The device goes during a launch: that and every later call say so, another device works. */
static void
test_lost (void)
{
  Rig rig;
  TinyPluginBuffer *buffer = NULL;
  webgpu_open (&rig);
  g_assert_cmpint (run_add (&rig, 10), ==, TINY_STATUS_OK);
  set_fault ("lost");
  g_assert_cmpint (run_add (&rig, 10), ==, TINY_STATUS_DEVICE_LOST);
  says (&rig.error, "the device was lost");
  set_fault ("");
  g_assert_cmpint (rig.table->alloc (rig.device, 64, &buffer, &rig.error), ==,
                   TINY_STATUS_DEVICE_LOST);
  g_assert_cmpint (webgpu_submit (&rig, NULL, 0), ==, TINY_STATUS_DEVICE_LOST);
  rig_close (&rig);
  test_works ();
}

static void
test_memory (void)
{
  Rig rig;
  TinyPluginBuffer *buffer = NULL;
  webgpu_open (&rig);
  set_fault ("memory");
  g_assert_cmpint (rig.table->alloc (rig.device, 64, &buffer, &rig.error), ==,
                   TINY_STATUS_OUT_OF_MEMORY);
  says (&rig.error, "out of device memory");
  set_fault ("");
  g_assert_cmpint (run_add (&rig, 10), ==, TINY_STATUS_OK);
  rig_close (&rig);
}

/* Without a fault: the process may not have that much memory. */
static void
test_real_memory (void)
{
  enum { SIZE = 1 << 30 };
  Rig rig;
  TinyPluginBuffer *buffer = NULL;
  struct rlimit before, now;
  gsize pages = 0;
  g_autofree char *text = NULL;
  webgpu_open (&rig);
  g_assert_true (g_file_get_contents ("/proc/self/statm", &text, NULL, NULL));
  pages = (gsize) g_ascii_strtoull (text, NULL, 10);
  getrlimit (RLIMIT_AS, &before);
  now = before;
  now.rlim_cur = pages * 4096 + SIZE / 2;
  setrlimit (RLIMIT_AS, &now);
  TinyStatus status = rig.table->alloc (rig.device, SIZE, &buffer, &rig.error);
  setrlimit (RLIMIT_AS, &before);
  says (&rig.error, "memory");
  g_assert_cmpint (status, ==, TINY_STATUS_OUT_OF_MEMORY);
  g_assert_cmpint (run_add (&rig, 10), ==, TINY_STATUS_OK);
  rig_close (&rig);
}

static void
test_sizes (void)
{
  Rig rig;
  TinyPluginBuffer *buffer = NULL;
  g_assert_cmpint (try_open (&rig, "small"), ==, TINY_STATUS_OK);
  g_assert_cmpint (rig.table->alloc (rig.device, UINT64_C (1) << 60, &buffer, &rig.error), ==,
                   TINY_STATUS_OUT_OF_MEMORY);
  says (&rig.error, "uffer size");
  g_assert_cmpint (run_add (&rig, 1 << 14), ==, TINY_STATUS_OK);
  g_assert_cmpint (run_add (&rig, (1 << 14) + 1), ==, TINY_STATUS_UNSUPPORTED);
  says (&rig.error, "65540 bytes, the device binds no more than 65536");
  rig_close (&rig);
}

/* A shader that is none: the message of the library's compiler, and the device goes on. */
static void
test_shader (void)
{
  static const char head[] = "//tiny wgsl 1 points=64 variables=0 buffers=1\n";
  static const struct {
    const char *source;
    TinyStatus status;
    const char *says;
  } rows[] = {
    { "fn broken( {", TINY_STATUS_COMPILE, "expected" },
    { "@compute @workgroup_size(64) fn tiny_kernel_add() { let x: u32 = 1.5f; }",
      TINY_STATUS_COMPILE, "u32" },
    { "@compute @workgroup_size(64) fn other() { }", TINY_STATUS_COMPILE, "add" },
    { "fn tiny_kernel_add() { \xff }", TINY_STATUS_CORRUPT, "is not the program" },
    { "@compute @workgroup_size(4096) fn tiny_kernel_add() { }", TINY_STATUS_COMPILE, "add" },
  };
  Rig rig;
  g_autofree Script *s = g_new (Script, 1);
  TinyPluginProgram *program = NULL;
  webgpu_open (&rig);
  build_add (s, 10);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *text = g_strconcat (head, rows[i].source, "\n", NULL);
    g_assert_cmpint (rig_load (&rig, s, text, strlen (text), &program), ==, rows[i].status);
    says (&rig.error, rows[i].says);
  }
  g_assert_cmpint (rig_load (&rig, s, "", 0, &program), ==, TINY_STATUS_CORRUPT);
  g_assert_cmpint (rig_load (&rig, s, head, sizeof head - 3, &program), ==,
                   TINY_STATUS_CORRUPT);
  s->linear.n_params = 2;
  g_assert_cmpint (rig_load (&rig, s, head, sizeof head - 1, &program), ==,
                   TINY_STATUS_CORRUPT);
  g_assert_cmpint (run_add (&rig, 10), ==, TINY_STATUS_OK);
  rig_close (&rig);
}

/* Spans outside their buffers, and launches that the device cannot run. */
static void
test_commands (void)
{
  Rig rig;
  char host[64] = { 0 };
  g_autofree Script *s = g_new (Script, 1);
  TinyPluginProgram *program = NULL;
  webgpu_open (&rig);
  build_add (s, 10);
  g_assert_cmpint (webgpu_load (&rig, s, &program), ==, TINY_STATUS_OK);
  TinyPluginBuffer *buffer = webgpu_alloc (&rig, 64);
  const TinySpan whole = { buffer, 0, 64 }, beyond = { buffer, 32, 64 },
                 odd = { buffer, 4, 40 };
  const TinySpan wrapping = { buffer, UINT64_MAX - 3, 8 };
  TinyCommand command = webgpu_copy_command (TINY_COMMAND_UPLOAD, beyond, host);
  g_assert_cmpint (webgpu_submit (&rig, &command, 1), ==, TINY_STATUS_INVALID);
  command = webgpu_copy_command (TINY_COMMAND_DOWNLOAD, wrapping, host);
  g_assert_cmpint (webgpu_submit (&rig, &command, 1), ==, TINY_STATUS_INVALID);
  command = webgpu_copy_command (TINY_COMMAND_COPY, whole, NULL);
  command.src.offset = 4;
  g_assert_cmpint (webgpu_submit (&rig, &command, 1), ==, TINY_STATUS_INVALID);
  command = webgpu_copy_command (77, whole, NULL);
  g_assert_cmpint (webgpu_submit (&rig, &command, 1), ==, TINY_STATUS_UNSUPPORTED);
  command = (TinyCommand){ .struct_size = sizeof command,
                           .type = TINY_COMMAND_DISPATCH,
                           .program = program,
                           .buffers = &beyond,
                           .n_buffers = 1,
                           .grid = { 10, 1, 1 } };
  g_assert_cmpint (webgpu_submit (&rig, &command, 1), ==, TINY_STATUS_INVALID);
  command.buffers = &odd;
  g_assert_cmpint (webgpu_submit (&rig, &command, 1), ==, TINY_STATUS_UNSUPPORTED);
  command.buffers = &whole;
  command.grid[0] = command.grid[1] = 1 << 17;
  g_assert_cmpint (webgpu_submit (&rig, &command, 1), ==, TINY_STATUS_UNSUPPORTED);
  command.grid[0] = 10;
  command.grid[1] = 1;
  g_assert_cmpint (webgpu_submit (&rig, &command, 1), ==, TINY_STATUS_OK);
  rig.table->free (rig.device, buffer);
  rig.table->program_unload (rig.device, program);
  rig_close (&rig);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  void *fault = dlopen (WEBGPU_FAULT, RTLD_NOW | RTLD_LOCAL);
  if (fault == NULL)
    g_error ("%s", dlerror ());
  *(void **) &set_fault = dlsym (fault, "webgpu_fault");
  g_test_add_func ("/fault/webgpu/works", test_works);
  g_test_add_func ("/fault/webgpu/library", test_library);
  g_test_add_func ("/fault/webgpu/no-adapter", test_no_adapter);
  g_test_add_func ("/fault/webgpu/no-device", test_no_device);
  g_test_add_func ("/fault/webgpu/other-structs", test_other_structs);
  g_test_add_func ("/fault/webgpu/unknown-device", test_unknown_device);
  g_test_add_func ("/fault/webgpu/lost", test_lost);
  g_test_add_func ("/fault/webgpu/memory", test_memory);
  g_test_add_func ("/fault/webgpu/real-memory", test_real_memory);
  g_test_add_func ("/fault/webgpu/sizes", test_sizes);
  g_test_add_func ("/fault/webgpu/shader", test_shader);
  g_test_add_func ("/fault/webgpu/commands", test_commands);
  return g_test_run ();
}
