/* SPDX-License-Identifier: MIT
 *
 * cl-driver.c: the OpenCL loader, its platforms and devices, and errors.
 *
 * The loader is opened when somebody first asks for a device. Devices of all platforms that can run our
 * kernels are listed: GPUs, then accelerators, then processors. Drivers cannot be unloaded safely, so
 * the loader stays open until the process ends. */
#include <unistd.h>

#include "cl.h"
#include "tiny-plugin-driver.h"

ClApi cl;
ClDevice cl_devices[CL_MAX_DEVICES];
uint32_t cl_n_devices;
static char reasons[768]; /* why devices that there are cannot be used */
static const char missing[]
    = "install the OpenCL loader and the device's driver, such as ocl-icd-libopencl1 with "
      "intel-opencl-icd or, for processors, pocl-opencl-icd";

TinyStatus
cl_check (ClError *error, TinyStatus status, cl_int code, const char *what)
{
#define ROW(name, number, status) { "CL_" #name, number, status },
  static const TinyCode codes[] = { CL_ERRORS (ROW) };
#undef ROW
  return tiny_check_code (error, codes, TINY_KIT_N (codes), status, code, what);
}

/* ---- devices ---- */
#define GET(what) get_number (device, CL_DEVICE_##what)
static uint64_t
get_number (cl_device_id device, cl_uint what)
{
  uint64_t value = 0; /* of 4 or 8 bytes, little-endian */
  return cl.GetDeviceInfo (device, what, sizeof value, &value, NULL) == CL_SUCCESS ? value : 0;
}

/* Adds a device, or says why not. Its id outlives updates of the driver and restarts, arch.dev does not. */
static void
add_device (cl_platform_id platform, cl_device_id device, uint32_t device_class)
{
  enum { NAME, VERSION, DRIVER, PROFILE, EXTENSIONS, PLATFORM, PLATFORM_VERSION, N_TEXTS };
  static const cl_uint keys[N_TEXTS]
      = { CL_DEVICE_NAME,       CL_DEVICE_VERSION, CL_DRIVER_VERSION,  CL_DEVICE_PROFILE,
          CL_DEVICE_EXTENSIONS, CL_PLATFORM_NAME,  CL_PLATFORM_VERSION };
  char texts[N_TEXTS][8192] = { { 0 } };
  ClDevice *self = &cl_devices[cl_n_devices];
  for (unsigned i = 0; i < PLATFORM; i++)
    cl.GetDeviceInfo (device, keys[i], sizeof texts[i] - 1, texts[i], NULL);
  for (unsigned i = PLATFORM; i < N_TEXTS; i++)
    cl.GetPlatformInfo (platform, keys[i], sizeof texts[i] - 1, texts[i], NULL);
  const uint64_t floats = GET (SINGLE_FP_CONFIG), alignment = GET (MEM_BASE_ADDR_ALIGN) / 8;
  const uint64_t params = GET (MAX_PARAMETER_SIZE) / 8;
  int major = 0, minor = 0;
  sscanf (texts[VERSION], "OpenCL %d.%d", &major, &minor);
  const char *lack = major * 10 + minor < 12     ? "has OpenCL before 1.2"
                     : !GET (AVAILABLE)          ? "is not available"
                     : !GET (COMPILER_AVAILABLE) ? "has no compiler"
                     : !GET (ENDIAN_LITTLE)      ? "is not little-endian"
                     : !(floats & CL_FP_INF_NAN) ? "has floats without infinities and NaNs"
                     : !(floats & CL_FP_ROUND_TO_NEAREST) ? "does not round floats to nearest"
                                                          : NULL;
  if (lack != NULL) {
    const size_t n = strlen (reasons);
    snprintf (reasons + n, sizeof reasons - n, "; %.200s %s", texts[NAME], lack);
    return;
  }
  const bool is_cpu = device_class == TINY_CLASS_CPU;
  const long l1 = sysconf (_SC_LEVEL1_DCACHE_SIZE), l2 = sysconf (_SC_LEVEL2_CACHE_SIZE);
  const bool is_full = strcmp (texts[PROFILE], "FULL_PROFILE") == 0;
  uint32_t hash = tiny_hash (tiny_hash (0, texts[PLATFORM], sizeof texts[0]), texts[NAME],
                             sizeof texts[0]);
  size_t items[8] = { 0 }; /* along each axis */
  cl.GetDeviceInfo (device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof items, items, NULL);
  unsigned twin = 0; /* of equal devices, the how many-th */
  for (uint32_t i = 0; i < cl_n_devices; i++)
    twin += strcmp (cl_devices[i].candidate.name, texts[NAME]) == 0;
  *self = (ClDevice){
    .device = device,
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .is_pocl = strcmp (texts[PLATFORM], CL_POCL) == 0,
    .candidate = { .struct_size = sizeof self->candidate, .device_class = device_class },
    .info = { .struct_size = sizeof self->info,
              .flags = TINY_DEVICE_OVERLAPS,
              .memory_bytes = GET (GLOBAL_MEM_SIZE),
              .max_buffer_bytes = GET (MAX_MEM_ALLOC_SIZE),
              .alignment = alignment > 64 ? (uint32_t) alignment : 64, /* powers of two */
              .n_threads = (uint32_t) GET (MAX_COMPUTE_UNITS) },
    .arch = { .groups = !is_cpu,
              .math = !is_cpu && is_full, /* a few units in the last place; slow in software */
              .rounded = (floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0,
              .flush = (floats & CL_FP_DENORM) == 0,
              .int64 = is_full || strstr (texts[EXTENSIONS], "cles_khr_int64") != NULL,
              .fp64 = strstr (texts[EXTENSIONS], "cl_khr_fp64") != NULL,
              .fp16 = strstr (texts[EXTENSIONS], "cl_khr_fp16") != NULL,
              .bits = is_cpu ? 32 * GET (NATIVE_VECTOR_WIDTH_FLOAT) : 128, /* of a load */
              .threads = GET (MAX_COMPUTE_UNITS),
              .group = GET (MAX_WORK_GROUP_SIZE),
              .z = items[2],
              .local = GET (LOCAL_MEM_SIZE),
              /* room is left for variables and for what drivers add */
              .params = params > 16 ? params - 8 : 8,
              /* a processor is the one that runs this, of which the C library knows more */
              .l1 = is_cpu && l1 > 0 ? (uint64_t) l1 : 0,
              .l2 = is_cpu && l2 > 0 ? (uint64_t) l2 : 0,
              .l3 = GET (GLOBAL_MEM_CACHE_SIZE),
              .dev = tiny_hash (tiny_hash (hash, texts[PLATFORM_VERSION], sizeof texts[0]),
                                texts[DRIVER], sizeof texts[0]) }
  };
  snprintf (self->candidate.id, sizeof self->candidate.id, "cl-%08x-%u", hash, twin);
  snprintf (self->candidate.name, sizeof self->candidate.name, "%.127s", texts[NAME]);
  snprintf (self->candidate.driver, sizeof self->candidate.driver, "%.30s %.30s",
            texts[PLATFORM], texts[DRIVER]);
  memcpy (self->info.name, self->candidate.name, sizeof self->info.name);
  tiny_arch_print (CL_ARCH, (const uint64_t *) &self->arch, self->info.arch);
  if (cl.SVMAlloc != NULL && cl.SVMFree != NULL
      && (GET (SVM_CAPABILITIES) & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0)
    self->info.flags |= TINY_DEVICE_HOST_MEMORY;
  cl_n_devices++;
}

static TinyStatus
find_devices (ClError *error)
{
#define SYMBOL(needed, type, name, parameters, arguments)                                      \
  { "cl" #name, offsetof (ClApi, name), !needed },
  static const TinySymbol symbols[] = { CL_FUNCTIONS (SYMBOL) };
#undef SYMBOL
  static const char *const libraries[] = { "libOpenCL.so.1", NULL };
  static const uint32_t kinds[][2] = { { CL_DEVICE_TYPE_GPU, TINY_CLASS_GPU },
                                       { CL_DEVICE_TYPE_ACCELERATOR, TINY_CLASS_NPU },
                                       { CL_DEVICE_TYPE_CPU, TINY_CLASS_CPU } };
  static void *library; /* stays open */
  cl_platform_id platforms[16];
  cl_device_id found[CL_MAX_DEVICES];
  cl_uint n_platforms = 0, n;
  reasons[0] = '\0';
  if (library == NULL)
    TINY_TRY (tiny_open_library ("TINY_OPENCL_LIBRARY", libraries, symbols,
                                 TINY_KIT_N (symbols), &cl, missing, &library, error));
  cl_int code = cl.GetPlatformIDs (TINY_KIT_N (platforms), platforms, &n_platforms);
  if (code == CL_SUCCESS && n_platforms == 0)
    code = CL_PLATFORM_NOT_FOUND_KHR;
  if (code != CL_SUCCESS)
    return tiny_hint (cl_check (error, TINY_STATUS_DRIVER, code, "asking for platforms"), error,
                      "%s", missing);
  for (unsigned k = 0; k < TINY_KIT_N (kinds); k++)
    for (cl_uint p = 0; p < n_platforms && p < TINY_KIT_N (platforms); p++) {
      code = cl.GetDeviceIDs (platforms[p], kinds[k][0], CL_MAX_DEVICES, found, &n);
      for (cl_uint d = 0;
           code == CL_SUCCESS && d < n && d < CL_MAX_DEVICES && cl_n_devices < CL_MAX_DEVICES;
           d++)
        add_device (platforms[p], found[d], kinds[k][1]);
    }
  return cl_n_devices > 0
             ? TINY_STATUS_OK
             : tiny_fail (error, TINY_STATUS_NO_DEVICE,
                          "no OpenCL platform has a device that can be used%s", reasons);
}

/* Drivers set variables and install handlers when they are first asked: PoCL does both. */
TinyStatus
cl_find_devices (ClError *error)
{
  TinyProcess process;
  if (cl_n_devices > 0)
    return TINY_STATUS_OK;
  tiny_process_keep (&process);
  TinyStatus status = find_devices (error);
  tiny_process_restore (&process);
  return status;
}
