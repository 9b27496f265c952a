/* SPDX-License-Identifier: MIT
 *
 * cl-driver.c: the OpenCL loader, its platforms and devices, and errors.
 *
 * The loader is opened when somebody first asks for a device. Devices of all platforms that can run our
 * kernels are put in order: GPUs, accelerators, processors; of one kind those with more compute units
 * first. Drivers cannot be unloaded safely, so the loader stays open until the process ends. */
#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cl.h"

ClApi cl;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ClUnit units[CL_MAX_UNITS];
static uint32_t n_units;

/* ---- errors ---- */
TinyStatus
cl_fail (TinyPluginError *error, TinyStatus status, const char *format, ...)
{
  if (error == NULL || error->struct_size < sizeof *error)
    return status;
  va_list arguments;
  va_start (arguments, format);
  vsnprintf (error->text, sizeof error->text, format, arguments);
  va_end (arguments);
  error->hint[0] = '\0';
  error->vendor_code = 0;
  return status;
}

TinyStatus
cl_fail_call (TinyPluginError *error, TinyStatus status, cl_int code, const char *what)
{
#define NAME(name, number) { "CL_" #name, number },
  static const struct {
    const char *name;
    cl_int number;
  } names[] = { CL_ERRORS (NAME) };
#undef NAME
  const char *name = "an error of the driver's own";
  for (unsigned i = 0; i < CL_ARRAY_SIZE (names); i++)
    name = names[i].number == code ? names[i].name : name;
  if (code == CL_OUT_OF_HOST_MEMORY || code == CL_MEM_OBJECT_ALLOCATION_FAILURE)
    status = TINY_STATUS_OUT_OF_MEMORY;
  else if (code == CL_DEVICE_NOT_AVAILABLE)
    status = TINY_STATUS_DEVICE_LOST;
  cl_fail (error, status, "%s: %s (%d)", what, name, code);
  if (error != NULL && error->struct_size >= sizeof *error)
    error->vendor_code = code;
  return status;
}

/* ---- the loader ---- */
static TinyStatus
open_loader (TinyPluginError *error)
{
  const char *named = secure_getenv ("TINY_OPENCL_LIBRARY");
  const char *library = named != NULL && *named != '\0' ? named : "libOpenCL.so.1";
  void *handle = dlopen (library, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    cl_fail (error, TINY_STATUS_DRIVER, "no OpenCL loader: %s", dlerror ());
    if (error != NULL)
      snprintf (error->hint, sizeof error->hint,
                "install ocl-icd-libopencl1 and the driver of the device");
    return TINY_STATUS_DRIVER;
  }
#define LOAD(needed, type, name, arguments)                                                    \
  *(void **) &cl.name = dlsym (handle, "cl" #name);                                            \
  if (needed && cl.name == NULL)                                                               \
    return cl_fail (error, TINY_STATUS_DRIVER, "%s lacks cl%s: OpenCL 1.2 is needed", library, \
                    #name);
  CL_FUNCTIONS (LOAD)
#undef LOAD
  return TINY_STATUS_OK;
}

/* ---- devices ---- */
static uint64_t
get_number (cl_device_id device, cl_uint what)
{
  uint64_t value = 0; /* of 4 or 8 bytes, little-endian */
  return cl.GetDeviceInfo (device, what, sizeof value, &value, NULL) == CL_SUCCESS ? value : 0;
}

static void
get_text (cl_device_id device, cl_uint what, char *out, size_t room)
{
  memset (out, 0, room);
  size_t size = 0;
  cl.GetDeviceInfo (device, what, 0, NULL, &size);
  char *text = calloc (1, size + 1);
  if (text != NULL && cl.GetDeviceInfo (device, what, size, text, NULL) == CL_SUCCESS)
    snprintf (out, room, "%s", text + strspn (text, " "));
  free (text);
}

static uint32_t
hash_text (uint32_t hash, const char *text)
{
  do
    hash = (hash ^ (uint8_t) *text) * 16777619u; /* FNV-1a */
  while (*text++ != '\0');
  return hash;
}

/* Why our kernels cannot run there; NULL when they can. */
static const char *
find_obstacle (cl_device_id device, const char *version)
{
  int major = 0, minor = 0;
  const uint64_t floats = CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST;
  if (sscanf (version, "OpenCL %d.%d", &major, &minor) != 2 || major * 10 + minor < 12)
    return "its OpenCL is older than 1.2";
  if (!get_number (device, CL_DEVICE_AVAILABLE))
    return "it is not available";
  if (!get_number (device, CL_DEVICE_COMPILER_AVAILABLE))
    return "it has no compiler";
  if (!get_number (device, CL_DEVICE_ENDIAN_LITTLE))
    return "it is not little-endian";
  if ((get_number (device, CL_DEVICE_SINGLE_FP_CONFIG) & floats) != floats)
    return "its floats lack infinities, NaNs or rounding to nearest";
  return NULL;
}

/* The device as text, without what its driver's version changes: GPUs of a kind are told apart by @twin. */
static void
fill_identity (ClUnit *unit, const char *platform, const char *platform_version)
{
  char vendor[128], driver[128];
  get_text (unit->device, CL_DEVICE_NAME, unit->name, sizeof unit->name);
  get_text (unit->device, CL_DEVICE_VENDOR, vendor, sizeof vendor);
  get_text (unit->device, CL_DRIVER_VERSION, driver, sizeof driver);
  uint32_t hash = hash_text (hash_text (hash_text (2166136261u, platform), vendor), unit->name);
  uint32_t twin = 0;
  for (uint32_t i = 0; i < n_units; i++)
    twin += strcmp (units[i].name, unit->name) == 0;
  snprintf (unit->driver, sizeof unit->driver, "%.40s %.20s", platform, driver);
  snprintf (unit->id, sizeof unit->id, "cl-%08x-%u", hash, twin);
  unit->arch.dev = hash_text (hash_text (hash, platform_version), driver);
}

static void
fill_arch (ClUnit *unit, bool is_full, const char *extensions)
{
  ClArch *arch = &unit->arch;
  cl_device_id device = unit->device;
  bool is_cpu = unit->device_class == TINY_CLASS_CPU;
  uint64_t floats = get_number (device, CL_DEVICE_SINGLE_FP_CONFIG);
  const struct {
    bool has;
    unsigned word;
  } rows[] = { { !is_cpu, CL_GROUPS },
               { !is_cpu && is_full, CL_MATH },
               { (floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0, CL_ROUNDED },
               { (floats & CL_FP_DENORM) == 0, CL_FLUSH },
               { is_full || strstr (extensions, "cles_khr_int64") != NULL, CL_INT64 },
               { strstr (extensions, "cl_khr_fp64") != NULL, CL_FP64 },
               { strstr (extensions, "cl_khr_fp16") != NULL, CL_FP16 } };
  for (unsigned i = 0; i < CL_ARRAY_SIZE (rows); i++)
    arch->words |= rows[i].has ? 1u << rows[i].word : 0;
  arch->bits = 32 * get_number (device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
  arch->threads = get_number (device, CL_DEVICE_MAX_COMPUTE_UNITS);
  arch->local = get_number (device, CL_DEVICE_LOCAL_MEM_SIZE);
  /* a pointer each; room is left for variables and what drivers add */
  arch->params = get_number (device, CL_DEVICE_MAX_PARAMETER_SIZE) / 8 - 16;
  size_t sizes[8] = { 0 };
  cl.GetDeviceInfo (device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes, NULL);
  arch->group = get_number (device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  for (int axis = 0; axis < 2; axis++) /* the third axis is short on some and rarely needed */
    arch->group = sizes[axis] > 0 && sizes[axis] < arch->group ? sizes[axis] : arch->group;
  arch->l3 = get_number (device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
#ifdef _SC_LEVEL1_DCACHE_SIZE
  if (is_cpu) { /* it is the one that runs this */
    long l1 = sysconf (_SC_LEVEL1_DCACHE_SIZE), l2 = sysconf (_SC_LEVEL2_CACHE_SIZE);
    arch->l1 = l1 > 0 ? (uint64_t) l1 : 0;
    arch->l2 = l2 > 0 ? (uint64_t) l2 : 0;
  }
#endif
}

/* Adds a device, or says in @reasons why not. */
static void
add_unit (cl_platform_id platform, cl_device_id device, char *reasons, size_t room)
{
  char name[128] = "", platform_version[256] = "", version[64], extensions[8192], profile[64];
  cl.GetPlatformInfo (platform, CL_PLATFORM_NAME, sizeof name, name, NULL);
  cl.GetPlatformInfo (platform, CL_PLATFORM_VERSION, sizeof platform_version, platform_version,
                      NULL);
  get_text (device, CL_DEVICE_VERSION, version, sizeof version);
  get_text (device, CL_DEVICE_EXTENSIONS, extensions, sizeof extensions);
  get_text (device, CL_DEVICE_PROFILE, profile, sizeof profile);
  ClUnit unit = { .device = device };
  const char *obstacle = find_obstacle (device, version);
  fill_identity (&unit, name, platform_version);
  if (obstacle != NULL) {
    size_t used = strlen (reasons);
    snprintf (reasons + used, room - used, "%s%s: %s", used > 0 ? "; " : "", unit.name,
              obstacle);
    return;
  }
  uint64_t type = get_number (device, CL_DEVICE_TYPE);
  unit.device_class = (type & CL_DEVICE_TYPE_GPU) != 0           ? TINY_CLASS_GPU
                      : (type & CL_DEVICE_TYPE_ACCELERATOR) != 0 ? TINY_CLASS_NPU
                                                                 : TINY_CLASS_CPU;
  fill_arch (&unit, strncmp (profile, "FULL", 4) == 0, extensions);
  unit.memory_bytes = get_number (device, CL_DEVICE_GLOBAL_MEM_SIZE);
  unit.max_buffer_bytes = get_number (device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  unit.alignment = 64;
  while (unit.alignment < get_number (device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8)
    unit.alignment *= 2;
  uint64_t shared = cl.SVMAlloc != NULL ? get_number (device, CL_DEVICE_SVM_CAPABILITIES) : 0;
  unit.has_host_memory = (shared & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0;
  unit.is_out_of_order = (get_number (device, CL_DEVICE_QUEUE_PROPERTIES)
                          & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
                         != 0;
  cl_int code;
  unit.context = cl.CreateContext (NULL, 1, &device, NULL, NULL, &code);
  if (unit.context != NULL)
    units[n_units++] = unit;
}

static int
compare_units (const void *a, const void *b)
{
  static const int ranks[]
      = { [TINY_CLASS_GPU] = 0, [TINY_CLASS_NPU] = 1, [TINY_CLASS_CPU] = 2 };
  const ClUnit *x = a, *y = b;
  int rank = ranks[x->device_class] - ranks[y->device_class];
  int size = (x->arch.threads < y->arch.threads) - (x->arch.threads > y->arch.threads);
  return rank != 0 ? rank : size != 0 ? size : strcmp (x->id, y->id);
}

static TinyStatus
find_units (TinyPluginError *error)
{
  cl_platform_id platforms[16];
  cl_uint n_platforms = 0;
  char reasons[768] = "";
  TinyStatus status = cl.GetPlatformIDs == NULL ? open_loader (error) : TINY_STATUS_OK;
  if (status != TINY_STATUS_OK)
    return status;
  cl_int code = cl.GetPlatformIDs (CL_ARRAY_SIZE (platforms), platforms, &n_platforms);
  if (code != CL_SUCCESS && code != CL_PLATFORM_NOT_FOUND_KHR)
    return cl_fail_call (error, TINY_STATUS_DRIVER, code, "asking for platforms");
  n_platforms = code == CL_SUCCESS ? n_platforms : 0;
  for (cl_uint p = 0; p < n_platforms && p < CL_ARRAY_SIZE (platforms); p++) {
    cl_device_id devices[CL_MAX_UNITS];
    cl_uint n = 0;
    if (cl.GetDeviceIDs (platforms[p], CL_DEVICE_TYPE_ALL, CL_MAX_UNITS, devices, &n)
        != CL_SUCCESS)
      n = 0;
    for (cl_uint d = 0; d < n && d < CL_MAX_UNITS && n_units < CL_MAX_UNITS; d++)
      add_unit (platforms[p], devices[d], reasons, sizeof reasons);
  }
  qsort (units, n_units, sizeof units[0], compare_units);
  if (n_units > 0)
    return TINY_STATUS_OK;
  cl_fail (error, n_platforms == 0 ? TINY_STATUS_DRIVER : TINY_STATUS_NO_DEVICE, "%s%s",
           n_platforms == 0     ? "the OpenCL loader knows no platform"
           : reasons[0] == '\0' ? "no OpenCL platform has a device"
                                : "no OpenCL device is usable: ",
           reasons);
  if (error != NULL)
    snprintf (error->hint, sizeof error->hint,
              "install the driver of the device, such as intel-opencl-icd, mesa-opencl-icd or "
              "pocl-opencl-icd");
  return n_platforms == 0 ? TINY_STATUS_DRIVER : TINY_STATUS_NO_DEVICE;
}

TinyStatus
cl_find_units (TinyPluginError *error)
{
  pthread_mutex_lock (&lock);
  TinyStatus status = n_units > 0 ? TINY_STATUS_OK : find_units (error);
  pthread_mutex_unlock (&lock);
  return status;
}

uint32_t
cl_count_units (void)
{
  return n_units;
}

ClUnit *
cl_get_unit (uint32_t i)
{
  return &units[i];
}

void
cl_forget_units (void)
{
  while (n_units > 0)
    cl.ReleaseContext (units[--n_units].context);
}
