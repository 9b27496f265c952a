/* SPDX-License-Identifier: MIT
 *
 * webgpu-library.c: the WebGPU library, opened at run time, and waiting for what it promises.
 *
 * The interface has no version of its own, and libraries from before it was settled have the same
 * names with other structs. What can be told is told: all functions have to be there, among them
 * those that came last; a struct that the library fills has to end where ours ends, hold numbers that
 * a device can have, and leave alone what lies behind it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "webgpu.h"

WebgpuFunctions wgpu;
WGPUInstance wgpu_instance;

static void *library;
static bool can_wait; /* by wgpuInstanceWaitAny() with a timeout */

static const char *const names[] = {
  "libwgpu_native.so",    "libwebgpu_dawn.so",    "libwebgpu.so",
  "libwgpu_native.dylib", "libwebgpu_dawn.dylib",
};

/* ---- opening ---- */
static const struct {
  const char *name;
  size_t offset;
  bool is_optional;
} symbols[] = {
#define FUNCTION(result, name, parameters, arguments)                                          \
  { "wgpu" #name, offsetof (WebgpuFunctions, name), false },
#define OPTIONAL(result, name, parameters, arguments)                                          \
  { "wgpu" #name, offsetof (WebgpuFunctions, name), true },
#include "webgpu-symbols.def"
#undef OPTIONAL
#undef FUNCTION
};

static TinyStatus
open_file (TinyPluginError *error)
{
  const char *wanted = getenv ("TINY_WEBGPU_LIBRARY");
  if (wanted != NULL && wanted[0] != '\0') {
    library = dlopen (wanted, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL)
      return TINY_STATUS_OK;
    TinyStatus status
        = webgpu_fail (error, TINY_STATUS_DRIVER, "TINY_WEBGPU_LIBRARY: %s", dlerror ());
    webgpu_hint (error, "name the file of a WebGPU library such as libwgpu_native.so");
    return status;
  }
  for (size_t i = 0; i < sizeof names / sizeof *names && library == NULL; i++)
    library = dlopen (names[i], RTLD_NOW | RTLD_LOCAL);
  if (library != NULL)
    return TINY_STATUS_OK;
  TinyStatus status
      = webgpu_fail (error, TINY_STATUS_DRIVER,
                     "no WebGPU library is there (looked for %s and %s)", names[0], names[1]);
  webgpu_hint (error, "install wgpu-native or Dawn, or name its file in TINY_WEBGPU_LIBRARY");
  return status;
}

static TinyStatus
find_functions (TinyPluginError *error)
{
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *function = dlsym (library, symbols[i].name);
    if (function == NULL && !symbols[i].is_optional)
      return webgpu_fail (error, TINY_STATUS_DRIVER,
                          "the WebGPU library lacks %s: it is none, or of an older interface",
                          symbols[i].name);
    memcpy ((char *) &wgpu + symbols[i].offset, &function, sizeof function);
  }
  /* The name of an interface before this one, which had other structs. */
  if (dlsym (library, "wgpuGetInstanceCapabilities") != NULL)
    return webgpu_fail (error, TINY_STATUS_DRIVER,
                        "the WebGPU library has the interface from before "
                        "wgpuGetInstanceFeatures, with other structs");
  return TINY_STATUS_OK;
}

static TinyStatus
make_instance (TinyPluginError *error)
{
  const WGPUInstanceFeatureName timed = WGPUInstanceFeatureName_TimedWaitAny;
  WGPUInstanceDescriptor descriptor = { 0 };
  /* OpenGL would show the same hardware again, and looks for a window system first. */
  WGPUInstanceExtras extras
      = { .chain = { .sType = WGPUSType_InstanceExtras },
          .backends
          = WGPUInstanceBackend_Vulkan | WGPUInstanceBackend_Metal | WGPUInstanceBackend_DX12 };
  if (wgpu.GetVersion != NULL)
    descriptor.nextInChain = &extras.chain;
  /* wgpu-native ends the program in some standard functions, and has one of its own to wait with. */
  can_wait = wgpu.DevicePoll == NULL && wgpu.HasInstanceFeature (timed) != 0;
  if (can_wait) {
    descriptor.requiredFeatureCount = 1;
    descriptor.requiredFeatures = &timed;
  }
  wgpu_instance = wgpu.CreateInstance (&descriptor);
  if (wgpu_instance == NULL)
    return webgpu_fail (error, TINY_STATUS_DRIVER, "wgpuCreateInstance gives no instance");
  return TINY_STATUS_OK;
}

TinyStatus
webgpu_library_open (TinyPluginError *error)
{
  if (wgpu_instance != NULL)
    return TINY_STATUS_OK;
  TinyStatus status = library == NULL ? open_file (error) : TINY_STATUS_OK;
  if (status == TINY_STATUS_OK)
    status = find_functions (error);
  if (status == TINY_STATUS_OK)
    status = make_instance (error);
  if (status != TINY_STATUS_OK && library != NULL) {
    dlclose (library); /* another may be named next time */
    library = NULL;
  }
  return status;
}

/* The library stays mapped: its threads and drivers may still be about. */
void
webgpu_library_close (void)
{
  if (wgpu_instance != NULL)
    wgpu.InstanceRelease (wgpu_instance);
  wgpu_instance = NULL;
}

/* ---- checks ---- */
static bool
is_power_of_two (uint32_t value)
{
  return value != 0 && (value & (value - 1)) == 0;
}

bool
webgpu_check_limits (WGPUAdapter adapter, WGPULimits *limits)
{
  enum { BEHIND = 256, MARK = 0xA5 };
  union {
    WGPULimits limits;
    unsigned char bytes[sizeof (WGPULimits) + BEHIND];
  } room;
  memset (&room, MARK, sizeof room);
  room.limits.nextInChain = NULL;
  if (wgpu.AdapterGetLimits (adapter, &room.limits) != WGPUStatus_Success)
    return false;
  for (size_t i = sizeof (WGPULimits); i < sizeof room; i++)
    if (room.bytes[i] != MARK)
      return false;
  *limits = room.limits;
  return limits->maxImmediateSize != MARK * 0x01010101u && limits->maxBindGroups >= 4
         && limits->maxBindGroups < 1u << 16 && limits->maxStorageBuffersPerShaderStage >= 4
         && is_power_of_two (limits->minStorageBufferOffsetAlignment)
         && is_power_of_two (limits->minUniformBufferOffsetAlignment)
         && limits->minStorageBufferOffsetAlignment <= 4096
         && limits->maxStorageBufferBindingSize >= 1u << 16
         && limits->maxStorageBufferBindingSize <= limits->maxBufferSize
         && limits->maxComputeWorkgroupSizeX >= 64
         && limits->maxComputeWorkgroupSizeX <= limits->maxComputeInvocationsPerWorkgroup
         && limits->maxComputeWorkgroupsPerDimension >= 1u << 10;
}

/* ---- waiting ---- */
void
webgpu_answer (WebgpuAnswer *answer, bool is_good, void *object, WGPUStringView text)
{
  answer->is_good = is_good;
  answer->object = is_good ? object : NULL;
  webgpu_copy_text (answer->text, sizeof answer->text, text);
  atomic_store (&answer->is_done, true);
}

bool
webgpu_wait (WGPUDevice device, WGPUFuture future, const WebgpuAnswer *answer)
{
  const atomic_bool *done = &answer->is_done;
  enum { PATIENCE_SECONDS = 600, MOST_SLEEP_NS = 1000000 };
  const uint64_t end = webgpu_now_ns () + PATIENCE_SECONDS * UINT64_C (1000000000);
  long sleep_ns = 1000;
  while (!atomic_load (done)) {
    if (can_wait) {
      WGPUFutureWaitInfo info = { .future = future };
      if (wgpu.InstanceWaitAny (wgpu_instance, 1, &info, end - webgpu_now_ns ())
          != WGPUWaitStatus_Success)
        return atomic_load (done);
      continue;
    }
    if (wgpu.DevicePoll != NULL && device != NULL)
      wgpu.DevicePoll (device, 1, NULL);
    else
      wgpu.InstanceProcessEvents (wgpu_instance);
    if (atomic_load (done))
      return true;
    if (webgpu_now_ns () > end)
      return false;
    nanosleep (&(struct timespec){ .tv_nsec = sleep_ns }, NULL);
    sleep_ns = sleep_ns * 2 < MOST_SLEEP_NS ? sleep_ns * 2 : MOST_SLEEP_NS;
  }
  return true;
}
