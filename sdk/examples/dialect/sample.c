/* SPDX-License-Identifier: MIT
 *
 * sample.c: a whole backend of the dialect kind: it says how its language spells things, and the core
 * writes the kernels. Here the language is C, the compiler is cc and the device is this machine.
 *
 * What to replace: the dialect and target() by your language and hardware, compile() by your
 * compiler, what begins with tiny_host_ and tiny_library_ by your driver. Read from the bottom. */
#include <tiny-plugin-host.h>

enum { MAX_PARAMS = 64 };
extern const TinyHost *host; /* made at the end */

/* ---- the language ---- */
static const TinyDialect dialect = {
  .struct_size = sizeof dialect,
  .prelude
  = "#include <math.h>\n"
    "#define DIV(t, a, b) ((b) == 0 ? (a) : (t) -1 < 0 && (b) == (t) -1 ? -(a) : (a) / (b))\n"
    "#define MOD(t, a, b) ((b) == 0 || ((t) -1 < 0 && (b) == (t) -1) ? 0 : (a) % (b))\n",
  .types = { [TINY_DTYPE_BOOL] = "_Bool",
             [TINY_DTYPE_I8] = "signed char",
             [TINY_DTYPE_U8] = "unsigned char",
             [TINY_DTYPE_I16] = "short",
             [TINY_DTYPE_U16] = "unsigned short",
             [TINY_DTYPE_I32] = "int",
             [TINY_DTYPE_U32] = "unsigned int",
             [TINY_DTYPE_I64] = "long long",
             [TINY_DTYPE_U64] = "unsigned long long",
             [TINY_DTYPE_F32] = "float",
             [TINY_DTYPE_F64] = "double" },
  .kernel_open = "void kernel (void **buffers, const long long *variables)\n{\n  $params;\n"
                 "  for (long long z = 0; z < $2; z++)\n  for (long long y = 0; y < $1; y++)\n"
                 "  for (long long x = 0; x < $0; x++) {\n",
  .kernel_close = "  }\n}\n",
  .param_read = "const $T *$0 = buffers[$a]",
  .param_write = "$T *$0 = buffers[$a]",
  .param_separator = ";\n  ",
  .variable = "const long long $0 = variables[$a]",
  .grid = "$x",
  .ops = { TINY_C_OPS, [TINY_INSTR_CAST] = "(($t) $0)",
           [TINY_INSTR_BITCAST] = "((union { $s from; $t to; }) { .from = $0 }.to)",
           [TINY_INSTR_NEG] = "(($t) -$0)", [TINY_INSTR_SQRT] = "(($t) sqrt ($0))",
           [TINY_INSTR_TRUNC] = "(($t) trunc ($0))", [TINY_INSTR_ADD] = "(($t) ($0 + $1))",
           [TINY_INSTR_SUB] = "(($t) ($0 - $1))", [TINY_INSTR_MUL] = "(($t) ($0 * $1))",
           [TINY_INSTR_IDIV] = "(($t) DIV ($t, $0, $1))",
           [TINY_INSTR_MOD] = "(($t) MOD ($t, $0, $1))",
           [TINY_INSTR_MULACC] = "(($t) ($0 * $1 + $2))" },
  .suffix = { [TINY_DTYPE_F32] = "f",
              [TINY_DTYPE_U32] = "u",
              [TINY_DTYPE_I64] = "ll",
              [TINY_DTYPE_U64] = "ull" },
};

/* ---- the hardware, as data: what is not declared, the core makes from what is ---- */
static TinyStatus
target (const char *arch, TinyTarget *out, TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_OUT (out, error));
  TINY_TRY (tiny_check_arch (arch, "c", error));
  TINY_FILL (out, .arch = "c", .index_dtype = TINY_DTYPE_I64, .max_lanes = 1,
             .max_params = MAX_PARAMS, .max_grid = { INT32_MAX, INT32_MAX, INT32_MAX },
             .max_group = { 1, 1, 1 }, .max_group_total = 1);
  uint32_t dtypes = 0;
  for (uint32_t dtype = 0; dtype < TINY_N_DTYPES; dtype++)
    dtypes |= dialect.types[dtype] != NULL ? TINY_DTYPE_BIT (dtype) : 0;
  tiny_target_declare (out, dtypes, 0, 0);
  return TINY_STATUS_OK;
}

/* ---- the compiler: a command makes a shared object of the source ---- */
static const char command[] = "cc -O2 -w -fwrapv -ffp-contract=off -fno-strict-aliasing "
                              "-shared -fPIC -o $out -x c $in -lm";

static TinyStatus
compile (const TinyCompileArgs *args,
         void **out_data,
         uint64_t *out_size,
         TinyPluginError *error)
{
  return tiny_compile_by_command (host, command, args, out_data, out_size, error);
}

/* ---- the device: its memory is the host's, a program is a library ---- */
static void
device_close (TinyPluginDevice *device)
{
}

static TinyStatus
device_info (TinyPluginDevice *device, TinyDeviceInfo *out, TinyPluginError *error)
{
  TINY_TRY (TINY_CHECK_OUT (out, error));
  TINY_FILL (out, .flags = TINY_DEVICE_HOST_MEMORY, .name = "this machine by cc", .arch = "c",
             .alignment = 64);
  return TINY_STATUS_OK;
}

static TinyStatus
run (void *device, const TinyCommand *command, TinyPluginError *error)
{
  if (command->type != TINY_COMMAND_DISPATCH)
    return tiny_host_copy (command, error);
  void (*kernel) (char **, const int64_t *) = dlsym (command->program, "kernel");
  char *buffers[MAX_PARAMS];
  for (uint32_t i = 0; i < command->n_buffers; i++)
    buffers[i] = tiny_host_bytes (&command->buffers[i]);
  kernel (buffers, command->variables);
  return TINY_STATUS_OK;
}

static TinyStatus
submit (TinyPluginDevice *device,
        TinyPluginQueue *queue,
        const TinySubmit *work,
        TinyPluginError *error)
{
  return tiny_submit_each (work, run, device, error);
}

static const TinyDeviceTable device_table = { .struct_size = sizeof device_table,
                                              .close = device_close,
                                              .info = device_info,
                                              .alloc = tiny_host_alloc,
                                              .free = tiny_host_free,
                                              .map = tiny_host_map,
                                              .submit = submit,
                                              .program_load = tiny_library_load,
                                              .program_unload = tiny_library_unload };

/* ---- the module ---- */
static const TinyCandidate found = { .struct_size = sizeof found,
                                     .id = "sample",
                                     .name = "this machine by cc",
                                     .device_class = TINY_CLASS_SIMULATOR };

static TinyStatus
scan (TinyCandidate *out, uint32_t *n, TinyPluginError *error)
{
  return tiny_scan_copy (&found, 1, sizeof found, out, n);
}

/* A device without state of its own is any address that is not NULL. */
static TinyStatus
open_device (const char *id,
             TinyPluginDevice **out,
             const TinyDeviceTable **out_table,
             TinyPluginError *error)
{
  TINY_TRY (tiny_check_id (&found, 1, sizeof found, id, error));
  *out = (TinyPluginDevice *) &device_table;
  *out_table = &device_table;
  return TINY_STATUS_OK;
}

static const TinyRenderer renderer = { .struct_size = sizeof renderer,
                                       .name = "C",
                                       .code_version = "1",
                                       .dialect = &dialect,
                                       .target = target,
                                       .compile = compile };
TINY_KIT_MODULE (host,
                 .name = "SAMPLE",
                 .vendor = "example",
                 .version = "1.0",
                 .license = "MIT",
                 .n_renderers = 1,
                 .renderers = &renderer,
                 .scan = scan,
                 .open = open_device)
