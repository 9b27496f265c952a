/* SPDX-License-Identifier: MIT
 *
 * cpu-plugin.c: the module's table and its one exported symbol. */
#include "cpu-lapack.h"

TINY_PLUGIN_NOTE (0);

const TinyHost *cpu_host;

static TinyStatus
init (const TinyHost *host, TinyPluginError *error)
{
  if (host == NULL || host->struct_size < TINY_SIZE_0_HOST || host->alloc == NULL
      || host->free == NULL)
    return tiny_fail (error, TINY_STATUS_INVALID, "init: incomplete host table");
  cpu_host = host;
  return TINY_STATUS_OK;
}

/* Devices are closed by now; the LLVM library stays open, it cannot be closed safely. */
static void
fini (void)
{
  cpu_llvm_finish ();
  cpu_host = NULL;
}

static const TinyRenderer renderers[] = {
  { .struct_size = sizeof (TinyRenderer),
    .name = "LLVM",
    .code_version = "6",
    .target = cpu_llvm_target,
    .compile = cpu_llvm_compile,
    .disassemble = cpu_llvm_disassemble,
    .claim = cpu_lapack_claim,
    .claim_kinds = CPU_LAPACK_KINDS },
  { .struct_size = sizeof (TinyRenderer),
    .name = "CLANG",
    .code_version = "2",
    .dialect = &cpu_dialect,
    .target = cpu_target,
    .compile = cpu_clang_compile,
    .disassemble = cpu_llvm_disassemble,
    .claim = cpu_lapack_claim,
    .claim_kinds = CPU_LAPACK_KINDS },
  { .struct_size = sizeof (TinyRenderer),
    .name = "C",
    .code_version = "1",
    .dialect = &cpu_portable_dialect,
    .target = cpu_portable_target,
    .compile = cpu_portable_compile,
    .disassemble = cpu_llvm_disassemble },
};

static const TinyPluginModule module = {
  .struct_size = sizeof (TinyPluginModule),
  .abi_major = TINY_PLUGIN_ABI_MAJOR,
  .abi_minor = TINY_PLUGIN_ABI_MINOR,
  .abi_minor_min = 0,
  .n_renderers = CPU_ARRAY_SIZE (renderers),
  .name = "CPU",
  .vendor = "tinycore",
  .version = CPU_VERSION,
  .license = "MIT",
  .renderers = renderers,
  .init = init,
  .fini = fini,
  .scan = cpu_scan,
  .open = cpu_open,
};

TINY_PLUGIN_EXPORT const TinyPluginModule *tiny_plugin_entry_1 (uint32_t host_minor,
                                                                TinyPluginError *error);

const TinyPluginModule *
tiny_plugin_entry_1 (uint32_t host_minor, TinyPluginError *error)
{
  return &module; /* serves every minor: it uses only what minor 0 has */
}
