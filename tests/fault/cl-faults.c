/* SPDX-License-Identifier: MIT
 *
 * cl-faults.c: an OpenCL loader that passes every call on to the real one and is wrong in the way that
 * CL_FAULT names, or cl_fault() was last told: "no-devices", "old" (OpenCL 1.1), "no-compiler", "no-nan",
 * "no-context", "lost" and "launch" (from the CL_FAULT_AFTER-th launch on), "no-memory" (for buffers above 1 MiB),
 * "embedded" (no 64-bit integers, no memory shared with the host, queues in order). */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tiny-plugin.h"

#include "../../plugins/cl/cl-api.h"

void cl_fault (const char *name);

static ClApi real;
static int n_launches;
static const char *told;

void
cl_fault (const char *name)
{
  told = name;
}

__attribute__ ((constructor)) static void
load (void)
{
  void *handle = dlopen ("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
#define LOAD(needed, type, name, parameters, arguments)                                        \
  *(void **) &real.name = handle != NULL ? dlsym (handle, "cl" #name) : NULL;
  CL_FUNCTIONS (LOAD)
#undef LOAD
}

static int
is_fault (const char *name)
{
  const char *fault = told != NULL ? told : getenv ("CL_FAULT");
  return fault != NULL && strcmp (fault, name) == 0;
}

static int
is_late (void)
{
  const char *after = getenv ("CL_FAULT_AFTER");
  return n_launches >= (after != NULL ? atoi (after) : 0);
}

/* A fault's answer for a call; 0: the real one's. */
static cl_int
fail_info (cl_uint what, size_t room, void *out)
{
  const struct {
    const char *fault;
    cl_uint what;
    const char *text; /* NULL: a number, 0 */
  } rows[] = { { "old", CL_DEVICE_VERSION, "OpenCL 1.1 of old" },
               { "no-compiler", CL_DEVICE_COMPILER_AVAILABLE, NULL },
               { "no-nan", CL_DEVICE_SINGLE_FP_CONFIG, NULL },
               { "embedded", CL_DEVICE_PROFILE, "EMBEDDED_PROFILE" },
               { "embedded", CL_DEVICE_EXTENSIONS, "" },
               { "embedded", CL_DEVICE_SVM_CAPABILITIES, NULL },
               { "embedded", CL_DEVICE_QUEUE_PROPERTIES, NULL } };
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].what == what && out != NULL && is_fault (rows[i].fault)) {
      memset (out, 0, room);
      if (rows[i].text != NULL)
        strncpy (out, rows[i].text, room - 1);
      return 1;
    }
  return 0;
}

#define FORWARD(needed, type, name, parameters, arguments)                                     \
  type cl##name parameters;                                                                    \
  type cl##name parameters { BEFORE_##name return real.name arguments; }
#define REFUSE(fault, code)                                                                    \
  if (is_fault (fault)) {                                                                      \
    *out_code = code;                                                                          \
    return NULL;                                                                               \
  }
#define BEFORE_GetPlatformIDs                                                                  \
  if (real.GetPlatformIDs == NULL)                                                             \
    return CL_PLATFORM_NOT_FOUND_KHR;
#define BEFORE_GetDeviceIDs                                                                    \
  if (is_fault ("no-devices"))                                                                 \
    return CL_DEVICE_NOT_FOUND;
#define BEFORE_GetDeviceInfo                                                                   \
  if (fail_info (what, room, out))                                                             \
    return CL_SUCCESS;
#define BEFORE_CreateContext REFUSE ("no-context", CL_OUT_OF_HOST_MEMORY)
#define BEFORE_CreateBuffer                                                                    \
  if (size > 1 << 20)                                                                          \
  REFUSE ("no-memory", CL_MEM_OBJECT_ALLOCATION_FAILURE)
#define BEFORE_EnqueueNDRangeKernel                                                            \
  n_launches++;                                                                                \
  if (is_fault ("launch") && is_late ())                                                       \
    return CL_OUT_OF_RESOURCES;
#define BEFORE_WaitForEvents                                                                   \
  if (is_fault ("lost") && is_late ())                                                         \
    return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
#define BEFORE_GetPlatformInfo
#define BEFORE_CreateCommandQueue
#define BEFORE_ReleaseCommandQueue
#define BEFORE_Finish
#define BEFORE_CreateSubBuffer
#define BEFORE_GetMemObjectInfo
#define BEFORE_RetainMemObject
#define BEFORE_ReleaseMemObject
#define BEFORE_CreateProgramWithSource
#define BEFORE_CreateProgramWithBinary
#define BEFORE_BuildProgram
#define BEFORE_GetProgramInfo
#define BEFORE_GetProgramBuildInfo
#define BEFORE_ReleaseProgram
#define BEFORE_CreateKernelsInProgram
#define BEFORE_SetKernelArg
#define BEFORE_ReleaseKernel
#define BEFORE_EnqueueReadBuffer
#define BEFORE_EnqueueWriteBuffer
#define BEFORE_EnqueueCopyBuffer
#define BEFORE_EnqueueBarrierWithWaitList
#define BEFORE_GetEventProfilingInfo
#define BEFORE_ReleaseEvent
#define BEFORE_SVMAlloc
#define BEFORE_SVMFree
CL_FUNCTIONS (FORWARD)
