/* SPDX-License-Identifier: MIT
 *
 * cuda-module.c: modules, functions and launches.
 *
 * A module is a cubin, whose machine code nobody here can run: its digest finds the PTX that the shim of NVRTC kept. PTX
 * as such is taken too, as the real driver compiles it. */
#include "cuda-calls.h"
#include <stdlib.h>
#include <string.h>

struct CudaModule {
  PtxModule *ptx;
  GPtrArray *functions; /* of CudaFunction */
};

enum { JIT_INFO_LOG = 3, JIT_INFO_SIZE = 4, JIT_ERROR_LOG = 5, JIT_ERROR_SIZE = 6 };

/* ---- loading ---- */

static CUresult
check_arch (const void *cubin, char **out_reason)
{
  guint sm;
  if (!ptx_store_sm (cubin, &sm))
    return CUDA_ERROR_INVALID_IMAGE;
  if (sm / 10 == cuda_driver.sm / 10 && sm <= cuda_driver.sm)
    return 0;
  *out_reason
      = g_strdup_printf ("the cubin is for sm_%u, the device is %s", sm, cuda_driver.arch);
  return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* The text to run, of a cubin or of PTX. */
static CUresult
find_text (const void *image, char **out_text, char **out_reason)
{
  if (memcmp (image, "\177ELF", 4) != 0) {
    *out_text = g_strdup (image);
    return 0;
  }
  gsize n = ptx_store_size (image);
  g_autofree char *digest = n > 0 ? ptx_store_digest (image, n) : NULL;
  if (digest == NULL) {
    *out_reason = g_strdup ("the image is no cubin");
    return CUDA_ERROR_INVALID_IMAGE;
  }
  CUresult status = check_arch (image, out_reason);
  g_autofree char *path = ptx_store_path (digest);
  if (status != 0 || g_file_get_contents (path, out_text, NULL, NULL))
    return status;
  *out_reason = g_strdup_printf (
      "no PTX of this cubin is kept (%s): compile it by the simulated NVRTC", path);
  return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* Options come as numbers and values; a log's size goes in by value, and its length comes out in its place. */
static void
write_log (unsigned n, const int *options, void **values, const char *text)
{
  char *log = NULL;
  gsize size = 0;
  void **length = NULL;
  for (unsigned i = 0; i < n; i++) {
    if (options[i] == JIT_ERROR_LOG)
      log = values[i];
    if (options[i] == JIT_ERROR_SIZE) {
      size = (unsigned) (guintptr) values[i];
      length = &values[i];
    }
    if (options[i] == JIT_INFO_SIZE)
      values[i] = NULL;
  }
  if (log != NULL && size > 0)
    g_strlcpy (log, text, size);
  if (length != NULL)
    *length = (void *) (guintptr) MIN (strlen (text), size);
}

static void
free_module (CUmodule module)
{
  g_clear_pointer (&module->ptx, ptx_module_free);
  g_ptr_array_unref (module->functions);
  g_free (module);
}

static CUresult
load_module (CUmodule *out, const void *image, char **out_reason)
{
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;
  CUresult status = find_text (image, &text, out_reason);
  if (status != 0)
    return status;
  PtxModule *ptx = ptx_module_new (text, -1, cuda_driver.memory, &error);
  if (ptx == NULL) {
    *out_reason = g_strdup (error->message);
    return CUDA_ERROR_INVALID_PTX;
  }
  CUmodule module = g_new0 (struct CudaModule, 1);
  module->ptx = ptx;
  module->functions = g_ptr_array_new_with_free_func (g_free);
  *out = module;
  return 0;
}

CUDA_EXPORT
cuModuleLoadDataEx (
    CUmodule *out, const void *image, unsigned n, const int *options, void **values)
{
  CUDA_ENTER (CUDA_CONTEXT);
  g_autofree char *reason = NULL;
  if (out == NULL || image == NULL || (n > 0 && (options == NULL || values == NULL)))
    return CUDA_ERROR_INVALID_VALUE;
  CUresult status = load_module (out, image, &reason);
  write_log (n, options, values, reason != NULL ? reason : "");
  if (reason != NULL && n == 0)
    g_printerr ("simulated GPU: %s\n", reason);
  return status;
}

CUDA_EXPORT
cuModuleLoadData (CUmodule *out, const void *image)
{
  return cuModuleLoadDataEx (out, image, 0, NULL, NULL);
}

CUDA_EXPORT
cuModuleUnload (CUmodule module)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (module == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  CUresult status = cuda_wait_all (cuda_current ());
  if (status == 0)
    free_module (module);
  return status;
}

CUDA_EXPORT
cuModuleGetFunction (CUfunction *out, CUmodule module, const char *name)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (out == NULL || name == NULL || module == NULL)
    return module == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
  const PtxFunction *found = ptx_module_find (module->ptx, name);
  if (found == NULL)
    return CUDA_ERROR_NOT_FOUND;
  CUfunction function = g_new0 (struct CudaFunction, 1);
  *function = (struct CudaFunction){ found, 0, 32, module };
  g_mutex_lock (&cuda_driver.lock);
  g_ptr_array_add (module->functions, function);
  g_mutex_unlock (&cuda_driver.lock);
  *out = function;
  return 0;
}

CUDA_EXPORT
cuModuleGetGlobal_v2 (CUdeviceptr *out, gsize *out_n_bytes, CUmodule module, const char *name)
{
  CUDA_ENTER (CUDA_CONTEXT);
  guint64 address, n_bytes;
  if (name == NULL || module == NULL)
    return module == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
  if (!ptx_module_variable (module->ptx, name, &address, &n_bytes))
    return CUDA_ERROR_NOT_FOUND;
  if (out != NULL)
    *out = address;
  if (out_n_bytes != NULL)
    *out_n_bytes = n_bytes;
  return 0;
}

/* ---- functions ---- */

enum {
  MAX_THREADS = 0,
  SHARED_SIZE = 1,
  CONST_SIZE = 2,
  LOCAL_SIZE = 3,
  NUM_REGS = 4,
  PTX_VERSION = 5,
  BINARY_VERSION = 6,
  MAX_DYNAMIC = 8,
  CARVEOUT = 9,
  STATIC_LIMIT = 49152
};

static int
optin_limit (void)
{
  int limit = 0;
  cuDeviceGetAttribute (&limit, 97, 0);
  return limit;
}

CUDA_EXPORT
cuFuncGetAttribute (int *out, int attribute, CUfunction function)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (out == NULL || function == NULL)
    return function == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
  PtxKernelInfo info = ptx_function_info (function->function);
  const int values[] = {
    [MAX_THREADS] = info.max_threads != 0 ? (int) info.max_threads : 1024,
    [SHARED_SIZE] = info.n_shared_bytes,
    [LOCAL_SIZE] = info.n_local_bytes,
    [NUM_REGS] = function->n_registers,
    [PTX_VERSION] = cuda_driver.sm,
    [BINARY_VERSION] = cuda_driver.sm,
    [MAX_DYNAMIC] = MAX (function->max_dynamic, STATIC_LIMIT - (int) info.n_shared_bytes),
    [CARVEOUT] = -1,
    [14] = 0,
  };
  if (attribute < 0 || attribute >= (int) G_N_ELEMENTS (values))
    return CUDA_ERROR_INVALID_VALUE;
  *out = values[attribute];
  return 0;
}

CUDA_EXPORT
cuFuncSetAttribute (CUfunction function, int attribute, int value)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (function == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  int n_static = ptx_function_info (function->function).n_shared_bytes;
  if (attribute == MAX_DYNAMIC && (value < 0 || value > optin_limit () - n_static))
    return CUDA_ERROR_INVALID_VALUE;
  if (attribute == MAX_DYNAMIC)
    function->max_dynamic = value;
  return attribute == MAX_DYNAMIC || attribute == CARVEOUT || attribute == 14
             ? 0
             : CUDA_ERROR_INVALID_VALUE;
}

CUDA_EXPORT
cuOccupancyMaxActiveBlocksPerMultiprocessor (int *out,
                                             CUfunction function,
                                             int n_threads,
                                             gsize n_dynamic)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (out == NULL || function == NULL || n_threads <= 0)
    return function == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
  gsize n_shared = ptx_function_info (function->function).n_shared_bytes + n_dynamic + 1024;
  *out = MIN (MIN (2048 / n_threads, 32), (int) (233472 / n_shared));
  return 0;
}

/* ---- launches ---- */

typedef struct {
  const PtxFunction *function;
  PtxLaunch launch;
  void *params;
} Launch;

static void
free_launch (gpointer data)
{
  g_free (((Launch *) data)->params);
  g_free (data);
}

static void
launch_now (CUcontext context, gpointer data)
{
  Launch *launch = data;
  PtxFault fault;
  if (!ptx_launch (launch->function, &launch->launch, &fault))
    cuda_break (context, fault.code, fault.text);
}

static gboolean
is_shape (const CUfunction function, const guint32 grid[3], const guint32 block[3])
{
  PtxKernelInfo info = ptx_function_info (function->function);
  guint64 n_threads = (guint64) block[0] * block[1] * MIN (block[2], 1024);
  guint most = info.max_threads != 0 ? info.max_threads : 1024;
  for (guint i = 0; i < 3; i++)
    if (grid[i] == 0 || block[i] == 0
        || (info.required[0] != 0 && info.required[i] != block[i]))
      return FALSE;
  return grid[0] <= G_MAXINT32 && grid[1] <= 65535 && grid[2] <= 65535 && block[0] <= 1024
         && block[1] <= 1024 && block[2] <= 64 && n_threads <= most;
}

static gboolean
is_shared_right (const CUfunction function, guint32 n_dynamic)
{
  guint64 n_static = ptx_function_info (function->function).n_shared_bytes;
  guint64 most = MAX ((guint64) function->max_dynamic,
                      n_static < STATIC_LIMIT ? STATIC_LIMIT - n_static : 0);
  return n_dynamic <= most && n_static + n_dynamic <= (guint64) optin_limit ();
}

/* The buffer that @extra names: as long as the kernel's parameters. */
static CUresult
packed_params (void **extra, gsize n_wanted, void **out)
{
  const void *bytes = NULL;
  gsize n = 0;
  for (; *extra != NULL; extra += 2) {
    if ((guintptr) *extra == 1)
      bytes = extra[1];
    else if ((guintptr) *extra == 2)
      n = *(gsize *) extra[1];
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  gboolean is_long = n == n_wanted || n == ((n_wanted + 7) & ~(gsize) 7);
  if (!is_long || (bytes == NULL && n > 0)) {
    g_printerr ("simulated GPU: the kernel has %zu bytes of parameters, the launch %zu\n",
                n_wanted, n);
    return CUDA_ERROR_INVALID_VALUE;
  }
  *out = g_memdup2 (bytes, n);
  return 0;
}

static CUresult
single_params (const PtxFunction *function, void **params, gsize n_bytes, void **out)
{
  guint8 *bytes = g_malloc0 (MAX (n_bytes, 1));
  *out = bytes;
  for (guint i = 0; i < function->params->len; i++) {
    const PtxSlot *slot = &g_array_index (function->params, PtxSlot, i);
    if (params[i] == NULL)
      return CUDA_ERROR_INVALID_VALUE;
    memcpy (bytes + slot->offset, params[i], slot->n_bytes);
  }
  return 0;
}

static CUresult
take_params (const PtxFunction *function, void **params, void **extra, void **out)
{
  gsize n_bytes = ptx_function_info (function).n_param_bytes;
  if (n_bytes > (cuda_driver.sm >= 70 && cuda_driver.driver_version >= 12010 ? 32764 : 4096)
      || (params != NULL && extra != NULL))
    return CUDA_ERROR_INVALID_VALUE;
  if (extra != NULL)
    return packed_params (extra, n_bytes, out);
  return params != NULL ? single_params (function, params, n_bytes, out)
         : n_bytes == 0 ? 0
                        : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
launch (CUfunction function,
        const guint32 grid[3],
        const guint32 block[3],
        guint32 n_dynamic,
        CUstream stream,
        void **params,
        void **extra)
{
  if (function == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!is_shape (function, grid, block) || !is_shared_right (function, n_dynamic))
    return CUDA_ERROR_INVALID_VALUE;
  Launch *item = g_new0 (Launch, 1);
  item->function = function->function;
  CUresult status = take_params (item->function, params, extra, &item->params);
  if (status != 0) {
    free_launch (item);
    return status;
  }
  PtxLaunch *wanted = &item->launch;
  memcpy (wanted->grid, grid, sizeof wanted->grid);
  memcpy (wanted->block, block, sizeof wanted->block);
  wanted->n_dynamic_shared = n_dynamic;
  wanted->params = item->params;
  wanted->n_param_bytes = ptx_function_info (item->function).n_param_bytes;
  wanted->seed = cuda_draw ();
  wanted->max_steps = cuda_driver.max_steps;
  wanted->is_checked = cuda_driver.is_checked;
  return cuda_enqueue (stream, launch_now, item, free_launch);
}

CUDA_EXPORT
cuLaunchKernel (CUfunction function,
                unsigned grid_x,
                unsigned grid_y,
                unsigned grid_z,
                unsigned block_x,
                unsigned block_y,
                unsigned block_z,
                unsigned n_dynamic,
                CUstream stream,
                void **params,
                void **extra)
{
  CUDA_ENTER (CUDA_CONTEXT);
  const guint32 grid[] = { grid_x, grid_y, grid_z }, block[] = { block_x, block_y, block_z };
  return launch (function, grid, block, n_dynamic, stream, params, extra);
}

typedef struct {
  guint32 grid[3], block[3], n_dynamic;
  CUstream stream;
  const void *attributes;
  guint32 n_attributes;
} LaunchConfig;
G_STATIC_ASSERT (sizeof (LaunchConfig) == 56);

CUDA_EXPORT
cuLaunchKernelEx (const LaunchConfig *config, CUfunction function, void **params, void **extra);
CUDA_EXPORT
cuLaunchKernelEx (const LaunchConfig *config, CUfunction function, void **params, void **extra)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (config == NULL || config->n_attributes > 0)
    return config == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
  return launch (function, config->grid, config->block, config->n_dynamic, config->stream,
                 params, extra);
}
