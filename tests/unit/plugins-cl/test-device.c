/* SPDX-License-Identifier: MIT
 *
 * test-device.c: the OpenCL backend's device: commands that may overlap end as if they had not, spans
 * are checked, what does not compile says why, damaged programs and too large buffers are refused. */
#include "../../device-there.h"
#include "../case-fails.h"
#include "base/tiny-error.h"
#include "device/tiny-buffer.h"
#include "device/tiny-program.h"
#include "engine/tiny-plan.h"
#include "engine/tiny-runtime.h"

enum { N_BUFFERS = 6, N_BYTES = 1 << 12, N_COMMANDS = 120 };

static TinyDevice *
get_device (void)
{
  g_autoptr (GError) error = NULL;
  TinyDevice *device = tiny_engine_get_device ("CL", &error);
  g_assert_no_error (error);
  return device;
}

static TinySpan
part (TinyBuffer *buffer, guint64 offset, guint64 n_bytes)
{
  return (TinySpan){ tiny_buffer_get_handle (buffer), offset, n_bytes };
}

/* Of which buffers' numbers the commands since the last that waited read and wrote: may this one run
 * together with them? */
static gboolean
may_overlap (guint reads, guint writes, guint *read, guint *written)
{
  gboolean may = ((reads | writes) & *written) == 0 && (writes & *read) == 0;
  *read = reads | (may ? *read : 0);
  *written = writes | (may ? *written : 0);
  return may;
}

/* Random copies between a few buffers, uploads and downloads among them, against memcpy(). */
static void
test_order (void)
{
  TinyDevice *device = get_device ();
  g_autoptr (GError) error = NULL;
  TinyBuffer *buffers[N_BUFFERS];
  g_autofree guint8 *model = g_malloc (N_BUFFERS * N_BYTES);
  g_autofree guint8 *host = g_malloc (N_COMMANDS * N_BYTES);
  g_autofree guint8 *seen = g_malloc (N_BYTES);
  for (guint round = 0; round < 20; round++) {
    TinyCommand commands[N_COMMANDS];
    guint64 ns[N_COMMANDS];
    guint read = 0, written = 0;
    for (guint i = 0; i < N_BUFFERS; i++) {
      buffers[i] = tiny_buffer_new (device, N_BYTES);
      for (guint j = 0; j < N_BYTES; j++)
        model[i * N_BYTES + j] = (guint8) g_test_rand_int ();
      g_assert_true (tiny_buffer_upload (buffers[i], 0, model + i * N_BYTES, N_BYTES, &error));
    }
    for (guint i = 0; i < N_COMMANDS; i++) {
      guint to = (guint) g_test_rand_int_range (0, N_BUFFERS);
      guint from = (to + (guint) g_test_rand_int_range (1, N_BUFFERS)) % N_BUFFERS;
      guint n = (guint) g_test_rand_int_range (0, N_BYTES / 2);
      guint at = (guint) g_test_rand_int_range (0, N_BYTES / 2);
      guint8 *own = host + i * N_BYTES;
      commands[i] = (TinyCommand){ .struct_size = sizeof (TinyCommand),
                                   .type = TINY_COMMAND_COPY,
                                   .dst = part (buffers[to], at, n),
                                   .src = part (buffers[from], N_BYTES / 2 - at, n) };
      if (i % 7 == 3) {
        memset (own, (gint) i, n);
        commands[i].type = TINY_COMMAND_UPLOAD;
        commands[i].host = own;
        memcpy (model + to * N_BYTES + at, own, n);
      } else if (i % 7 == 5 && i > 0) { /* into what the next upload reads */
        commands[i].type = TINY_COMMAND_DOWNLOAD;
        commands[i].host = own;
      } else
        memcpy (model + to * N_BYTES + at, model + from * N_BYTES + N_BYTES / 2 - at, n);
      if (may_overlap (commands[i].type == TINY_COMMAND_UPLOAD ? 0 : 1u << from,
                       commands[i].type == TINY_COMMAND_DOWNLOAD ? 0 : 1u << to, &read,
                       &written))
        commands[i].flags = TINY_COMMAND_OVERLAPS;
    }
    g_assert_true (
        tiny_device_submit (device, commands, N_COMMANDS, round % 2 ? ns : NULL, &error));
    g_assert_no_error (error);
    for (guint i = 0; i < N_BUFFERS; i++) {
      g_assert_true (tiny_buffer_download (buffers[i], 0, seen, N_BYTES, &error));
      g_assert_cmpmem (seen, N_BYTES, model + i * N_BYTES, N_BYTES);
      tiny_buffer_unref (buffers[i]);
    }
  }
}

static void
check_refused (TinyDevice *device,
               const TinyCommand *command,
               TinyError code,
               const char *part_of_message)
{
  g_autoptr (GError) error = NULL;
  g_assert_false (tiny_device_submit (device, command, 1, NULL, &error));
  g_assert_error (error, TINY_ERROR, (gint) code);
  if (strstr (error->message, part_of_message) == NULL)
    CASE_FAILS ("“%s” is not in: %s", part_of_message, error->message);
}

static void
test_bad_commands (void)
{
  TinyDevice *device = get_device ();
  g_autoptr (TinyBuffer) buffer = tiny_buffer_new (device, 64);
  g_autoptr (TinyDevice) other = NULL;
  char bytes[128] = { 0 };
  g_assert_true (tiny_buffer_ensure (buffer, NULL));
  TinyCommand command = { .struct_size = sizeof command,
                          .type = TINY_COMMAND_UPLOAD,
                          .dst = part (buffer, 0, 1 << 20),
                          .host = bytes };
  check_refused (device, &command, TINY_ERROR_INVALID, "copying: CL_INVALID_VALUE");
  command.dst = part (buffer, (guint64) -8, 16);
  check_refused (device, &command, TINY_ERROR_INVALID, "copying: CL_INVALID_VALUE");
  command.type = 77;
  check_refused (device, &command, TINY_ERROR_UNSUPPORTED, "unknown type 77");
}

static GBytes *
compile (TinyDevice *device, const char *source, GError **error)
{
  const TinyLinear linear = { .struct_size = sizeof linear,
                              .name = "kernel_one",
                              .grid = { 1, 1, 1 },
                              .group = { 1, 1, 1 } };
  const TinyCompileArgs args = { .struct_size = sizeof args,
                                 .arch = tiny_device_get_arch (device),
                                 .name = linear.name,
                                 .source = source,
                                 .source_size = strlen (source),
                                 .linear = &linear };
  return tiny_device_compile (device, &args, error);
}

static void
test_programs (void)
{
  TinyDevice *device = get_device ();
  static const guint32 group[3] = { 1, 1, 1 };
  g_autoptr (GError) error = NULL;
  g_assert_null (compile (device, "__kernel void tiny_kernel_one () { nonsense }\n", &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_COMPILE);
  g_assert_nonnull (strstr (error->message, "nonsense"));
  g_clear_error (&error);
  g_autoptr (GBytes) good = compile (device, "__kernel void tiny_kernel_one () { }\n", &error);
  g_assert_no_error (error);
  g_autoptr (TinyProgram) program
      = tiny_program_new (device, "kernel_one", good, 0, 0, group, &error);
  g_assert_no_error (error);
  const TinyCommand command = { .struct_size = sizeof command,
                                .type = TINY_COMMAND_DISPATCH,
                                .program = tiny_program_get_handle (program),
                                .grid = { 3, 2, 1 } };
  guint64 ns = 0;
  g_assert_true (tiny_device_submit (device, &command, 1, &ns, &error));
  g_assert_no_error (error);
  /* Every part damaged or cut off. */
  gsize size;
  const guint8 *data = g_bytes_get_data (good, &size);
  for (gsize at = 0; at < size; at += size / 40 + 1) {
    g_autofree guint8 *copy = g_memdup2 (data, size);
    copy[at] ^= 0x55;
    g_autoptr (GBytes) damaged = g_bytes_new (copy, size), cut = g_bytes_new (data, at);
    g_assert_null (tiny_program_new (device, "kernel_one", damaged, 0, 0, group, NULL));
    g_assert_null (tiny_program_new (device, "kernel_one", cut, 0, 0, group, NULL));
  }
}

static void
test_memory (void)
{
  TinyDevice *device = get_device ();
  const TinyDeviceInfo *info = tiny_device_get_info (device);
  g_autoptr (GError) error = NULL;
  g_autoptr (TinyBuffer) large = tiny_buffer_new (device, info->max_buffer_bytes + 1);
  g_assert_false (tiny_buffer_ensure (large, &error));
  g_assert_error (error, TINY_ERROR, TINY_ERROR_OUT_OF_MEMORY);
  g_assert_nonnull (strstr (error->message, "a buffer of "));
  g_autoptr (TinyBuffer) none = tiny_buffer_new (device, 0);
  g_assert_true (tiny_buffer_ensure (none, NULL));
}

int
main (int argc, char *argv[])
{
  if (!device_is_there ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/device/order", test_order);
  g_test_add_func ("/device/bad-commands", test_bad_commands);
  g_test_add_func ("/device/programs", test_programs);
  g_test_add_func ("/device/memory", test_memory);
  return g_test_run ();
}
