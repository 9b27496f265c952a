/* SPDX-License-Identifier: MIT
 *
 * webgpu-library.c: the WebGPU library, opened at run time, and waiting for what it promises.
 *
 * The interface has no version of its own, and libraries from before it was settled have the same
 * names with other structs. What can be told is told: all functions have to be there, among them
 * those that came last; a struct that the library fills has to end where ours ends, hold numbers that
 * a device can have, and leave alone what lies behind it. */
#include "tiny-plugin-driver.h"
#include "webgpu.h"

WebgpuFunctions wgpu;
WGPUInstance wgpu_instance;

static bool can_wait; /* by wgpuInstanceWaitAny() with a timeout */

static const char *const names[]
    = { "libwgpu_native.so",    "libwebgpu_dawn.so",    "libwebgpu.so",
        "libwgpu_native.dylib", "libwebgpu_dawn.dylib", NULL };
static const TinySymbol symbols[] = {
#define FUNCTION(result, name, parameters, arguments)                                          \
  { "wgpu" #name, offsetof (WebgpuFunctions, name), false },
#define OPTIONAL(result, name, parameters, arguments)                                          \
  { "wgpu" #name, offsetof (WebgpuFunctions, name), true },
#include "webgpu-symbols.def"
};

TinyStatus
webgpu_library_open (Error *error)
{
  static const WGPUInstanceFeatureName timed = WGPUInstanceFeatureName_TimedWaitAny;
  /* OpenGL would show the same hardware again, and looks for a window system first. */
  WGPUInstanceExtras extras
      = { .chain = { .sType = WGPUSType_InstanceExtras },
          .backends
          = WGPUInstanceBackend_Vulkan | WGPUInstanceBackend_Metal | WGPUInstanceBackend_DX12 };
  void *library;
  if (wgpu_instance != NULL)
    return TINY_STATUS_OK;
  TINY_TRY (tiny_open_library (
      "TINY_WEBGPU_LIBRARY", names, symbols, TINY_KIT_N (symbols), &wgpu,
      "install wgpu-native or Dawn of the end of 2025 or later, or name its file, such as "
      "libwgpu_native.so, in TINY_WEBGPU_LIBRARY",
      &library, error));
  /* wgpu-native ends the program in some standard functions, and has one of its own to wait with. */
  can_wait = wgpu.DevicePoll == NULL && wgpu.HasInstanceFeature (timed) != 0;
  const WGPUInstanceDescriptor descriptor
      = { .nextInChain = wgpu.GetVersion != NULL ? &extras.chain : NULL,
          .requiredFeatureCount = can_wait,
          .requiredFeatures = &timed };
  wgpu_instance = wgpu.CreateInstance (&descriptor);
  return wgpu_instance != NULL
             ? TINY_STATUS_OK
             : tiny_fail (error, TINY_STATUS_DRIVER, "wgpuCreateInstance gives no instance");
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
bool
webgpu_check_limits (WGPUAdapter adapter, WGPULimits *limits)
{
  enum { MARK = 0xA5 };
  struct {
    WGPULimits limits;
    unsigned char behind[256];
  } room;
  memset (&room, MARK, sizeof room);
  room.limits.nextInChain = NULL;
  if (wgpu.AdapterGetLimits (adapter, &room.limits) != WGPUStatus_Success)
    return false;
  for (size_t i = 0; i < sizeof room.behind; i++)
    if (room.behind[i] != MARK)
      return false;
  *limits = room.limits;
  return limits->maxImmediateSize != MARK * 0x01010101u && limits->maxBindGroups >= 4
         && limits->maxBindGroups < 1u << 16 && limits->maxStorageBuffersPerShaderStage >= 4
         && limits->minStorageBufferOffsetAlignment != 0
         && limits->minUniformBufferOffsetAlignment <= 4096
         && 4096 % limits->minStorageBufferOffsetAlignment == 0
         && limits->maxStorageBufferBindingSize >= 1u << 16
         && limits->maxStorageBufferBindingSize <= limits->maxBufferSize
         && limits->maxComputeWorkgroupSizeX >= 64
         && limits->maxComputeWorkgroupSizeX <= limits->maxComputeInvocationsPerWorkgroup
         && limits->maxComputeWorkgroupsPerDimension >= 1u << 10;
}

/* ---- answers ---- */
void
webgpu_copy_text (char *out, size_t size, WGPUStringView text)
{
  const size_t n = text.data != NULL ? strnlen (text.data, text.length) : 0;
  snprintf (out, size, "%.*s", (int) n, n > 0 ? text.data : "");
}

WebgpuAnswer *
webgpu_ask (void)
{
  static WebgpuAnswer answers[64];
  static atomic_uint n;
  WebgpuAnswer *answer = &answers[atomic_fetch_add (&n, 1) % TINY_KIT_N (answers)];
  *answer = (WebgpuAnswer){ .text = "the library does not answer" };
  return answer;
}

void
webgpu_answer (WebgpuAnswer *out, bool is_good, uintptr_t value, WGPUStringView text)
{
  out->is_good = is_good;
  out->value = is_good ? value : 0;
  webgpu_copy_text (out->text, sizeof out->text, text);
  atomic_store (&out->is_done, true);
}

void
webgpu_wait (WGPUDevice device, WGPUFuture future, const WebgpuAnswer *answer)
{
  const uint64_t end = tiny_now_ns () + UINT64_C (600000000000);
  WGPUFutureWaitInfo info = { .future = future };
  struct timespec pause = { .tv_nsec = 1000 };
  while (!atomic_load (&answer->is_done) && tiny_now_ns () < end) {
    if (can_wait)
      wgpu.InstanceWaitAny (wgpu_instance, 1, &info, 1000000000);
    else if (wgpu.DevicePoll != NULL && device != NULL)
      wgpu.DevicePoll (device, 1, NULL);
    else
      wgpu.InstanceProcessEvents (wgpu_instance);
    if (!atomic_load (&answer->is_done))
      nanosleep (&pause, NULL);
    pause.tv_nsec = pause.tv_nsec < 500000 ? pause.tv_nsec * 2 : 1000000;
  }
}
