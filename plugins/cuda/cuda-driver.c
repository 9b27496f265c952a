/* SPDX-License-Identifier: MIT
 *
 * cuda-driver.c: the driver's library and its errors.
 *
 * The library is opened when a device is, as its first call takes some hundred milliseconds and touches the device. It
 * cannot be unloaded safely and stays open until the process ends. */
#include "cuda.h"
#include "tiny-plugin-driver.h"

CudaApi cuda;

TinyStatus
cuda_check (CudaError *error, TinyStatus status, int code, const char *what)
{
#define ROW(name, number, status) { "CUDA_ERROR_" #name, number, status },
  static const TinyCode codes[] = { CUDA_ERRORS (ROW) };
#undef ROW
  return tiny_check_code (error, codes, TINY_KIT_N (codes), status, code, what);
}

static TinyStatus
open_driver (CudaError *error)
{
#define SYMBOL(needed, name, suffix, parameters)                                               \
  { "cu" #name suffix, offsetof (CudaApi, name), !needed },
  static const TinySymbol symbols[] = { CUDA_FUNCTIONS (SYMBOL) };
#undef SYMBOL
  static const char *const libraries[] = { "libcuda.so.1", NULL };
  static const char missing[]
      = "install the library of NVIDIA's driver, package libcuda1, of the "
        "same version as the kernel's driver";
  static void *library; /* stays open */
  if (library == NULL)
    TINY_TRY (tiny_open_library ("TINY_CUDA_LIBRARY", libraries, symbols, TINY_KIT_N (symbols),
                                 &cuda, missing, &library, error));
  const TinyStatus status
      = cuda_check (error, TINY_STATUS_DRIVER, cuda.Init (0), "beginning to use the driver");
  return status == TINY_STATUS_OK ? status : tiny_hint (status, error, "%s", missing);
}

/* The driver may set variables and install handlers when it is first asked. */
TinyStatus
cuda_open_driver (CudaError *error)
{
  static bool is_open;
  TinyProcess process;
  if (is_open)
    return TINY_STATUS_OK;
  tiny_process_keep (&process);
  const TinyStatus status = open_driver (error);
  tiny_process_restore (&process);
  is_open = status == TINY_STATUS_OK;
  return status;
}
