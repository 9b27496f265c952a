/* SPDX-License-Identifier: MIT
 *
 * cuda-device.c: initialisation, the device's properties, contexts, errors, and faults that are asked for. */
#include "cuda-calls.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

CudaDriver cuda_driver;
enum { MAX_CURRENT = 64 };
static __thread struct {
  CUcontext stack[MAX_CURRENT];
  guint n;
} current;

/* ---- beginnings of calls ---- */

static const char *
setting (const char *name, const char *otherwise)
{
  g_autofree char *full = g_strconcat ("SIMULATED_GPU_", name, NULL);
  const char *value = g_getenv (full);
  return value != NULL && *value != '\0' ? value : otherwise;
}

static guint64
number_setting (const char *name, guint64 otherwise)
{
  const char *value = setting (name, NULL);
  return value != NULL ? g_ascii_strtoull (value, NULL, 0) : otherwise;
}

/* "NAME:N=CODE": CODE for the call that is the N-th, or for all. */
static CUresult
asked_fault (const char *row, const char *name, guint64 n_call)
{
  gsize n = strlen (name);
  if (strncmp (row, name, n) != 0 || (row[n] != ':' && row[n] != '='))
    return 0;
  const char *code = strchr (row, '=');
  guint64 wanted = row[n] == ':' ? g_ascii_strtoull (row + n + 1, NULL, 10) : n_call;
  return code != NULL && wanted == n_call ? (CUresult) g_ascii_strtoull (code + 1, NULL, 10)
                                          : 0;
}

static CUresult
fault_of_call (const char *name)
{
  const char *faults = setting ("FAULTS", NULL);
  if (faults == NULL)
    return 0;
  g_mutex_lock (&cuda_driver.lock);
  if (cuda_driver.calls == NULL)
    cuda_driver.calls = g_hash_table_new (g_str_hash, g_str_equal);
  guint64 n = GPOINTER_TO_SIZE (g_hash_table_lookup (cuda_driver.calls, name)) + 1;
  g_hash_table_insert (cuda_driver.calls, (char *) name, GSIZE_TO_POINTER (n));
  g_mutex_unlock (&cuda_driver.lock);
  g_auto (GStrv) rows = g_strsplit (faults, ",", -1);
  for (char **row = rows; *row != NULL; row++)
    if (asked_fault (*row, name, n) != 0)
      return asked_fault (*row, name, n);
  return 0;
}

CUcontext
cuda_current (void)
{
  return current.n > 0 ? current.stack[current.n - 1] : NULL;
}

CUresult
cuda_enter (const char *name, CudaNeed need)
{
  CUresult fault = fault_of_call (name);
  if (fault != 0)
    return fault;
  if (need >= CUDA_INITIALISED && cuda_driver.process != getpid ())
    return CUDA_ERROR_NOT_INITIALIZED;
  CUcontext context = cuda_current ();
  if (need == CUDA_CONTEXT && (context == NULL || context->n_retained == 0))
    return CUDA_ERROR_INVALID_CONTEXT;
  return need == CUDA_CONTEXT ? g_atomic_int_get (&context->sticky) : 0;
}

void
cuda_break (CUcontext context, int code, const char *text)
{
  if (g_atomic_int_compare_and_exchange (&context->sticky, 0, code))
    g_printerr ("simulated GPU: %d: %s\n", code, text);
}

guint64
cuda_draw (void)
{
  guint64 n = __atomic_add_fetch (&cuda_driver.n_drawn, 1, __ATOMIC_RELAXED);
  guint64 z = (cuda_driver.seed + n) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  return z ^ (z >> 27);
}

/* ---- initialisation ---- */

static gboolean
read_arch (void)
{
  const char *arch = setting ("ARCH", "sm_90a");
  guint64 sm = g_str_has_prefix (arch, "sm_") ? g_ascii_strtoull (arch + 3, NULL, 10) : 0;
  cuda_driver.arch = g_strdup (arch);
  cuda_driver.sm = sm;
  return sm >= 50 && sm < 256;
}

static CUresult
initialise (void)
{
  if (!read_arch ()) {
    g_printerr ("simulated GPU: SIMULATED_GPU_ARCH is %s; sm_90a or alike is wanted\n",
                cuda_driver.arch);
    return CUDA_ERROR_NO_DEVICE;
  }
  cuda_driver.n_bytes = number_setting ("MEMORY", (guint64) 8 << 30);
  cuda_driver.seed = number_setting ("SEED", 1);
  cuda_driver.max_steps = number_setting ("STEPS", 0);
  cuda_driver.delay_us = number_setting ("DELAY_US", 200);
  cuda_driver.driver_version = number_setting ("DRIVER", 13000);
  cuda_driver.is_checked = number_setting ("CHECK", 0) != 0;
  cuda_driver.memory = ptx_memory_new (cuda_driver.n_bytes);
  cuda_driver.pinned = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  cuda_driver.primary.streams = g_ptr_array_new ();
  cuda_driver.process = getpid ();
  return cuda_driver.memory != NULL ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

CUDA_EXPORT
cuInit (unsigned flags)
{
  CUDA_ENTER (CUDA_ALWAYS);
  if (flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  g_mutex_lock (&cuda_driver.lock);
  CUresult status = cuda_driver.process == 0           ? initialise ()
                    : cuda_driver.process == getpid () ? 0
                                                       : CUDA_ERROR_NOT_INITIALIZED;
  g_mutex_unlock (&cuda_driver.lock);
  return status;
}

CUDA_EXPORT
cuDriverGetVersion (int *out_version)
{
  CUDA_ENTER (CUDA_ALWAYS);
  if (out_version == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  *out_version = number_setting ("DRIVER", 13000);
  return 0;
}

/* ---- the device ---- */

CUDA_EXPORT
cuDeviceGetCount (int *out_n)
{
  CUDA_ENTER (CUDA_INITIALISED);
  if (out_n == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  *out_n = 1;
  return 0;
}

CUDA_EXPORT
cuDeviceGet (CUdevice *out_device, int ordinal)
{
  CUDA_ENTER (CUDA_INITIALISED);
  if (out_device == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  *out_device = 0;
  return ordinal == 0 ? 0 : CUDA_ERROR_INVALID_DEVICE;
}

static const char bus_id[] = "0000:c1:00.0";

CUDA_EXPORT
cuDeviceGetByPCIBusId (CUdevice *out_device, const char *id)
{
  CUDA_ENTER (CUDA_INITIALISED);
  if (out_device == NULL || id == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  *out_device = 0;
  return g_ascii_strcasecmp (id, bus_id) == 0 ? 0 : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult
copy_text (char *out, int n, const char *text)
{
  if (out == NULL || n <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  g_strlcpy (out, text, n);
  return 0;
}

CUDA_EXPORT
cuDeviceGetPCIBusId (char *out, int n, CUdevice device)
{
  CUDA_ENTER (CUDA_INITIALISED);
  return device == 0 ? copy_text (out, n, bus_id) : CUDA_ERROR_INVALID_DEVICE;
}

CUDA_EXPORT
cuDeviceGetName (char *out, int n, CUdevice device)
{
  CUDA_ENTER (CUDA_INITIALISED);
  return device == 0 ? copy_text (out, n, setting ("NAME", "Simulated GPU"))
                     : CUDA_ERROR_INVALID_DEVICE;
}

CUDA_EXPORT
cuDeviceGetUuid_v2 (guint8 out[16], CUdevice device)
{
  CUDA_ENTER (CUDA_INITIALISED);
  if (out == NULL || device != 0)
    return out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
  memcpy (out, "simulated gpu 00", 16);
  return 0;
}

CUDA_EXPORT
cuDeviceTotalMem_v2 (gsize *out, CUdevice device)
{
  CUDA_ENTER (CUDA_INITIALISED);
  if (out == NULL || device != 0)
    return out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
  *out = cuda_driver.n_bytes;
  return 0;
}

/* sm, shared memory of an SM, and the most a block may opt in to; the last row holds for all above it */
static const struct {
  guint sm, n_shared, n_optin;
} shared_sizes[] = {
  { 75, 65536, 65536 },    { 80, 167936, 166912 },  { 86, 102400, 101376 },
  { 87, 167936, 166912 },  { 89, 102400, 101376 },  { 90, 233472, 232448 },
  { 103, 233472, 232448 }, { 255, 102400, 101376 },
};

static guint
shared_row (void)
{
  guint i = 0;
  while (shared_sizes[i].sm < cuda_driver.sm)
    i++;
  return i;
}

static int
attribute_of (int attribute)
{
  static const struct {
    int attribute, value;
  } values[] = {
    { 1, 1024 },   { 2, 1024 },     { 3, 1024 },  { 4, 64 },        { 5, G_MAXINT32 },
    { 6, 65535 },  { 7, 65535 },    { 8, 49152 }, { 9, 65536 },     { 10, 32 },
    { 12, 65536 }, { 13, 1980000 }, { 16, 132 },  { 31, 1 },        { 33, 0xc1 },
    { 34, 0 },     { 36, 2619000 }, { 37, 5120 }, { 38, 50 << 20 }, { 39, 2048 },
    { 40, 3 },     { 41, 1 },       { 50, 0 },    { 82, 65536 },    { 83, 1 },
    { 88, 0 },     { 89, 1 },       { 95, 1 },    { 99, 1 },        { 106, 32 },
    { 111, 1024 }, { 115, 1 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (values); i++)
    if (values[i].attribute == attribute)
      return values[i].value;
  switch (attribute) {
  case 75:
    return cuda_driver.sm / 10;
  case 76:
    return cuda_driver.sm % 10;
  case 81:
    return shared_sizes[shared_row ()].n_shared;
  case 97:
    return shared_sizes[shared_row ()].n_optin;
  default:
    return (attribute == 120 || attribute == 127) && cuda_driver.sm >= 90;
  }
}

CUDA_EXPORT
cuDeviceGetAttribute (int *out, int attribute, CUdevice device)
{
  CUDA_ENTER (CUDA_INITIALISED);
  if (out == NULL || attribute <= 0 || device != 0)
    return device != 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
  *out = attribute_of (attribute);
  return 0;
}

CUDA_EXPORT
cuDeviceCanAccessPeer (int *out, CUdevice device, CUdevice peer)
{
  CUDA_ENTER (CUDA_INITIALISED);
  if (out == NULL || device != 0 || peer != 0)
    return out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
  *out = 0;
  return 0;
}

/* ---- contexts ---- */

CUDA_EXPORT
cuDevicePrimaryCtxRetain (CUcontext *out, CUdevice device)
{
  CUDA_ENTER (CUDA_INITIALISED);
  if (out == NULL || device != 0)
    return out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
  g_atomic_int_inc (&cuda_driver.primary.n_retained);
  *out = &cuda_driver.primary;
  return 0;
}

CUDA_EXPORT
cuDevicePrimaryCtxRelease_v2 (CUdevice device)
{
  CUDA_ENTER (CUDA_INITIALISED);
  if (device != 0 || g_atomic_int_get (&cuda_driver.primary.n_retained) == 0)
    return device != 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_CONTEXT;
  g_atomic_int_add (&cuda_driver.primary.n_retained, -1);
  return 0;
}

static gboolean
is_context (CUcontext context)
{
  return context == &cuda_driver.primary && g_atomic_int_get (&context->n_retained) > 0;
}

CUDA_EXPORT
cuCtxPushCurrent_v2 (CUcontext context)
{
  CUDA_ENTER (CUDA_INITIALISED);
  if (!is_context (context) || current.n == MAX_CURRENT)
    return CUDA_ERROR_INVALID_CONTEXT;
  current.stack[current.n++] = context;
  return 0;
}

CUDA_EXPORT
cuCtxPopCurrent_v2 (CUcontext *out)
{
  CUDA_ENTER (CUDA_INITIALISED);
  if (current.n == 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  CUcontext context = current.stack[--current.n];
  if (out != NULL)
    *out = context;
  return 0;
}

CUDA_EXPORT
cuCtxGetCurrent (CUcontext *out)
{
  CUDA_ENTER (CUDA_INITIALISED);
  if (out == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  *out = cuda_current ();
  return 0;
}

CUDA_EXPORT
cuCtxSetCurrent (CUcontext context)
{
  CUDA_ENTER (CUDA_INITIALISED);
  if (context != NULL && !is_context (context))
    return CUDA_ERROR_INVALID_CONTEXT;
  current.n -= current.n > 0;
  if (context != NULL)
    current.stack[current.n++] = context;
  return 0;
}

CUDA_EXPORT
cuCtxGetDevice (CUdevice *out)
{
  CUDA_ENTER (CUDA_CONTEXT);
  if (out == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  *out = 0;
  return 0;
}

CUDA_EXPORT
cuCtxSynchronize (void)
{
  CUDA_ENTER (CUDA_CONTEXT);
  return cuda_wait_all (cuda_current ());
}

CUDA_EXPORT
cuCtxEnablePeerAccess (CUcontext peer, unsigned flags)
{
  CUDA_ENTER (CUDA_CONTEXT);
  (void) peer, (void) flags;
  return CUDA_ERROR_INVALID_DEVICE;
}

/* ---- errors ---- */

static const struct {
  CUresult number;
  const char *name, *words;
} errors[] = {
#define CUDA_ERROR_ROW(number, name, words)                                                    \
  { number, number == 0 ? "CUDA_SUCCESS" : "CUDA_ERROR_" #name, words },
  CUDA_ERRORS (CUDA_ERROR_ROW)
};

static CUresult
error_text (CUresult status, const char **out, gboolean is_name)
{
  if (out == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  *out = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (errors); i++)
    if (errors[i].number == status)
      *out = is_name ? errors[i].name : errors[i].words;
  return *out != NULL ? 0 : CUDA_ERROR_INVALID_VALUE;
}

CUDA_EXPORT
cuGetErrorName (CUresult status, const char **out) { return error_text (status, out, TRUE); }

CUDA_EXPORT
cuGetErrorString (CUresult status, const char **out) { return error_text (status, out, FALSE); }
