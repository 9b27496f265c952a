/* SPDX-License-Identifier: MIT
 *
 * cuda-plugin.c: the module's table and its one exported symbol. */
#include "cuda.h"

/* The one device of a library that TINY_CUDA_LIBRARY names, which may drive what is on no PCI bus. */
static const TinyCandidate named = { .struct_size = sizeof named,
                                     .id = "cuda-0",
                                     .name = "the first device of TINY_CUDA_LIBRARY",
                                     .device_class = TINY_CLASS_GPU };

static TinyStatus
list (TinyCandidate out[CUDA_MAX_DEVICES], uint32_t *n, CudaError *error)
{
  if (tiny_getenv ("TINY_CUDA_LIBRARY") == NULL)
    return cuda_scan_files ("", out, n, error);
  out[0] = named;
  *n = 1;
  return TINY_STATUS_OK;
}

static TinyStatus
scan (TinyCandidate *out, uint32_t *n, CudaError *error)
{
  TinyCandidate found[CUDA_MAX_DEVICES];
  uint32_t n_found;
  TINY_TRY (list (found, &n_found, error));
  return tiny_scan_copy (found, n_found, sizeof found[0], out, n);
}

static TinyStatus
open_device (const char *id,
             CudaDevice **out,
             const TinyDeviceTable **out_table,
             CudaError *error)
{
  TinyCandidate found[CUDA_MAX_DEVICES];
  uint32_t n_found;
  TINY_TRY (list (found, &n_found, error));
  TINY_TRY (tiny_check_id (found, n_found, sizeof found[0], id, error));
  *out_table = &cuda_device_table;
  return cuda_device_open (id, out, error);
}

static TinyStatus
compile (const TinyCompileArgs *args, void **out, uint64_t *out_size, CudaError *error)
{
  return nvidia_compile (cuda_host, args, out, out_size, error);
}

static TinyStatus
disassemble (const void *data, uint64_t size, char **out, CudaError *error)
{
  return nvidia_describe (cuda_host, data, size, out, error);
}

static const TinyRenderer renderer = {
  .struct_size = sizeof (TinyRenderer),
  .name = "CUDA",
  .code_version = "1",
  .dialect = &nvidia_dialect,
  .target = nvidia_target,
  .compile = compile,
  .disassemble = disassemble,
};

TINY_KIT_MODULE (cuda_host,
                 .name = "CUDA",
                 .vendor = "tinycore",
                 .version = CUDA_VERSION,
                 .license = "MIT",
                 .n_renderers = 1,
                 .renderers = &renderer,
                 .scan = scan,
                 .open = open_device)
