/* SPDX-License-Identifier: MIT
 *
 * webgpu-api.h: declarations. The part of the standard C interface "webgpu.h" that the backend uses.
 *
 * Written from the published interface, which is the same for every implementation: names, numbers
 * and the order of members are the standard's and not ours to choose; webgpu-symbols.def has the
 * functions. Nothing else is in this file. webgpu-library.c checks what it can of a library that
 * it opened against these declarations, since structs have no version of their own. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef uint64_t WGPUFlags;
typedef uint32_t WGPUBool;

typedef struct {
  const char *data;
  size_t length;
} WGPUStringView;
#define WGPU_STRLEN SIZE_MAX

typedef struct WGPUAdapterImpl *WGPUAdapter;
typedef struct WGPUBindGroupImpl *WGPUBindGroup;
typedef struct WGPUBindGroupLayoutImpl *WGPUBindGroupLayout;
typedef struct WGPUBufferImpl *WGPUBuffer;
typedef struct WGPUCommandBufferImpl *WGPUCommandBuffer;
typedef struct WGPUCommandEncoderImpl *WGPUCommandEncoder;
typedef struct WGPUComputePassEncoderImpl *WGPUComputePassEncoder;
typedef struct WGPUComputePipelineImpl *WGPUComputePipeline;
typedef struct WGPUDeviceImpl *WGPUDevice;
typedef struct WGPUInstanceImpl *WGPUInstance;
typedef struct WGPUPipelineLayoutImpl *WGPUPipelineLayout;
typedef struct WGPUQuerySetImpl *WGPUQuerySet;
typedef struct WGPUQueueImpl *WGPUQueue;
typedef struct WGPUSamplerImpl *WGPUSampler;
typedef struct WGPUShaderModuleImpl *WGPUShaderModule;
typedef struct WGPUSurfaceImpl *WGPUSurface;
typedef struct WGPUTextureViewImpl *WGPUTextureView;

/* ---- numbers ---- */
typedef enum { WGPUStatus_Success = 1, WGPUStatus_Force32 = 0x7FFFFFFF } WGPUStatus;
typedef enum {
  WGPUWaitStatus_Success = 1,
  WGPUWaitStatus_TimedOut = 2,
  WGPUWaitStatus_Force32 = 0x7FFFFFFF
} WGPUWaitStatus;
typedef enum {
  WGPUMapAsyncStatus_Success = 1,
  WGPUMapAsyncStatus_Force32 = 0x7FFFFFFF
} WGPUMapAsyncStatus;
typedef enum {
  WGPUPopErrorScopeStatus_Success = 1,
  WGPUPopErrorScopeStatus_Force32 = 0x7FFFFFFF
} WGPUPopErrorScopeStatus;
typedef enum {
  WGPUQueueWorkDoneStatus_Success = 1,
  WGPUQueueWorkDoneStatus_Force32 = 0x7FFFFFFF
} WGPUQueueWorkDoneStatus;
typedef enum {
  WGPURequestAdapterStatus_Success = 1,
  WGPURequestAdapterStatus_Force32 = 0x7FFFFFFF
} WGPURequestAdapterStatus;
typedef enum {
  WGPURequestDeviceStatus_Success = 1,
  WGPURequestDeviceStatus_Force32 = 0x7FFFFFFF
} WGPURequestDeviceStatus;
typedef enum {
  WGPUDeviceLostReason_Unknown = 1,
  WGPUDeviceLostReason_Destroyed = 2,
  WGPUDeviceLostReason_Force32 = 0x7FFFFFFF
} WGPUDeviceLostReason;
typedef enum {
  WGPUErrorType_NoError = 1,
  WGPUErrorType_Validation = 2,
  WGPUErrorType_OutOfMemory = 3,
  WGPUErrorType_Internal = 4,
  WGPUErrorType_Unknown = 5,
  WGPUErrorType_Force32 = 0x7FFFFFFF
} WGPUErrorType;
typedef enum {
  WGPUErrorFilter_Validation = 1,
  WGPUErrorFilter_OutOfMemory = 2,
  WGPUErrorFilter_Internal = 3,
  WGPUErrorFilter_Force32 = 0x7FFFFFFF
} WGPUErrorFilter;
typedef enum {
  WGPUCallbackMode_WaitAnyOnly = 1,
  WGPUCallbackMode_AllowProcessEvents = 2,
  WGPUCallbackMode_AllowSpontaneous = 3,
  WGPUCallbackMode_Force32 = 0x7FFFFFFF
} WGPUCallbackMode;
typedef enum {
  WGPUAdapterType_DiscreteGPU = 1,
  WGPUAdapterType_IntegratedGPU = 2,
  WGPUAdapterType_CPU = 3,
  WGPUAdapterType_Unknown = 4,
  WGPUAdapterType_Force32 = 0x7FFFFFFF
} WGPUAdapterType;
typedef enum {
  WGPUBackendType_Undefined = 0,
  WGPUBackendType_Null = 1,
  WGPUBackendType_WebGPU = 2,
  WGPUBackendType_D3D11 = 3,
  WGPUBackendType_D3D12 = 4,
  WGPUBackendType_Metal = 5,
  WGPUBackendType_Vulkan = 6,
  WGPUBackendType_OpenGL = 7,
  WGPUBackendType_OpenGLES = 8,
  WGPUBackendType_Force32 = 0x7FFFFFFF
} WGPUBackendType;
typedef enum {
  WGPUFeatureLevel_Undefined = 0,
  WGPUFeatureLevel_Compatibility = 1,
  WGPUFeatureLevel_Core = 2,
  WGPUFeatureLevel_Force32 = 0x7FFFFFFF
} WGPUFeatureLevel;
typedef enum {
  WGPUPowerPreference_Undefined = 0,
  WGPUPowerPreference_LowPower = 1,
  WGPUPowerPreference_HighPerformance = 2,
  WGPUPowerPreference_Force32 = 0x7FFFFFFF
} WGPUPowerPreference;
typedef enum {
  WGPUFeatureName_TimestampQuery = 9,
  WGPUFeatureName_ShaderF16 = 11,
  WGPUFeatureName_Force32 = 0x7FFFFFFF
} WGPUFeatureName;
typedef enum {
  WGPUInstanceFeatureName_TimedWaitAny = 1,
  WGPUInstanceFeatureName_Force32 = 0x7FFFFFFF
} WGPUInstanceFeatureName;
typedef enum { WGPUQueryType_Timestamp = 2, WGPUQueryType_Force32 = 0x7FFFFFFF } WGPUQueryType;
typedef enum {
  WGPUBufferBindingType_BindingNotUsed = 0,
  WGPUBufferBindingType_Uniform = 2,
  WGPUBufferBindingType_Storage = 3,
  WGPUBufferBindingType_ReadOnlyStorage = 4,
  WGPUBufferBindingType_Force32 = 0x7FFFFFFF
} WGPUBufferBindingType;
typedef enum { WGPUSType_ShaderSourceWGSL = 2, WGPUSType_Force32 = 0x7FFFFFFF } WGPUSType;

typedef WGPUFlags WGPUBufferUsage;
#define WGPUBufferUsage_MapRead      UINT64_C (0x1)
#define WGPUBufferUsage_MapWrite     UINT64_C (0x2)
#define WGPUBufferUsage_CopySrc      UINT64_C (0x4)
#define WGPUBufferUsage_CopyDst      UINT64_C (0x8)
#define WGPUBufferUsage_Uniform      UINT64_C (0x40)
#define WGPUBufferUsage_Storage      UINT64_C (0x80)
#define WGPUBufferUsage_QueryResolve UINT64_C (0x200)
typedef WGPUFlags WGPUMapMode;
#define WGPUMapMode_Read UINT64_C (0x1)
typedef WGPUFlags WGPUShaderStage;
#define WGPUShaderStage_Compute UINT64_C (0x4)

/* ---- structs ---- */
typedef struct WGPUChainedStruct {
  struct WGPUChainedStruct *next;
  WGPUSType sType;
} WGPUChainedStruct;

typedef struct {
  uint64_t id;
} WGPUFuture;
typedef struct {
  WGPUFuture future;
  WGPUBool completed;
} WGPUFutureWaitInfo;

typedef struct {
  WGPUChainedStruct *nextInChain;
  size_t timedWaitAnyMaxCount;
} WGPUInstanceLimits;
typedef struct {
  WGPUChainedStruct *nextInChain;
  size_t requiredFeatureCount;
  const WGPUInstanceFeatureName *requiredFeatures;
  const WGPUInstanceLimits *requiredLimits;
} WGPUInstanceDescriptor;

typedef struct {
  WGPUChainedStruct *nextInChain;
  WGPUStringView vendor, architecture, device, description;
  WGPUBackendType backendType;
  WGPUAdapterType adapterType;
  uint32_t vendorID, deviceID;
  uint32_t subgroupMinSize, subgroupMaxSize;
} WGPUAdapterInfo;

typedef struct {
  WGPUChainedStruct *nextInChain;
  uint32_t maxTextureDimension1D, maxTextureDimension2D, maxTextureDimension3D;
  uint32_t maxTextureArrayLayers;
  uint32_t maxBindGroups, maxBindGroupsPlusVertexBuffers, maxBindingsPerBindGroup;
  uint32_t maxDynamicUniformBuffersPerPipelineLayout;
  uint32_t maxDynamicStorageBuffersPerPipelineLayout;
  uint32_t maxSampledTexturesPerShaderStage, maxSamplersPerShaderStage;
  uint32_t maxStorageBuffersPerShaderStage, maxStorageTexturesPerShaderStage;
  uint32_t maxUniformBuffersPerShaderStage;
  uint64_t maxUniformBufferBindingSize, maxStorageBufferBindingSize;
  uint32_t minUniformBufferOffsetAlignment, minStorageBufferOffsetAlignment;
  uint32_t maxVertexBuffers;
  uint64_t maxBufferSize;
  uint32_t maxVertexAttributes, maxVertexBufferArrayStride;
  uint32_t maxInterStageShaderVariables;
  uint32_t maxColorAttachments, maxColorAttachmentBytesPerSample;
  uint32_t maxComputeWorkgroupStorageSize;
  uint32_t maxComputeInvocationsPerWorkgroup;
  uint32_t maxComputeWorkgroupSizeX, maxComputeWorkgroupSizeY, maxComputeWorkgroupSizeZ;
  uint32_t maxComputeWorkgroupsPerDimension;
  uint32_t maxImmediateSize;
} WGPULimits;

typedef struct {
  WGPUChainedStruct *nextInChain;
  WGPUFeatureLevel featureLevel;
  WGPUPowerPreference powerPreference;
  WGPUBool forceFallbackAdapter;
  WGPUBackendType backendType;
  WGPUSurface compatibleSurface;
} WGPURequestAdapterOptions;

/* Callbacks. */
typedef void (*WGPURequestAdapterCallback) (WGPURequestAdapterStatus status,
                                            WGPUAdapter adapter,
                                            WGPUStringView message,
                                            void *userdata1,
                                            void *userdata2);
typedef void (*WGPURequestDeviceCallback) (WGPURequestDeviceStatus status,
                                           WGPUDevice device,
                                           WGPUStringView message,
                                           void *userdata1,
                                           void *userdata2);
typedef void (*WGPUDeviceLostCallback) (const WGPUDevice *device,
                                        WGPUDeviceLostReason reason,
                                        WGPUStringView message,
                                        void *userdata1,
                                        void *userdata2);
typedef void (*WGPUUncapturedErrorCallback) (const WGPUDevice *device,
                                             WGPUErrorType type,
                                             WGPUStringView message,
                                             void *userdata1,
                                             void *userdata2);
typedef void (*WGPUPopErrorScopeCallback) (WGPUPopErrorScopeStatus status,
                                           WGPUErrorType type,
                                           WGPUStringView message,
                                           void *userdata1,
                                           void *userdata2);
typedef void (*WGPUBufferMapCallback) (WGPUMapAsyncStatus status,
                                       WGPUStringView message,
                                       void *userdata1,
                                       void *userdata2);
typedef void (*WGPUQueueWorkDoneCallback) (WGPUQueueWorkDoneStatus status,
                                           WGPUStringView message,
                                           void *userdata1,
                                           void *userdata2);
#define WGPU_CALLBACK_INFO(name)                                                               \
  typedef struct {                                                                             \
    WGPUChainedStruct *nextInChain;                                                            \
    WGPUCallbackMode mode;                                                                     \
    name##Callback callback;                                                                   \
    void *userdata1, *userdata2;                                                               \
  } name##CallbackInfo
WGPU_CALLBACK_INFO (WGPURequestAdapter);
WGPU_CALLBACK_INFO (WGPURequestDevice);
WGPU_CALLBACK_INFO (WGPUDeviceLost);
WGPU_CALLBACK_INFO (WGPUPopErrorScope);
WGPU_CALLBACK_INFO (WGPUBufferMap);
WGPU_CALLBACK_INFO (WGPUQueueWorkDone);
typedef struct {
  WGPUChainedStruct *nextInChain;
  WGPUUncapturedErrorCallback callback;
  void *userdata1, *userdata2;
} WGPUUncapturedErrorCallbackInfo;

/* Device and memory. */
typedef struct {
  WGPUChainedStruct *nextInChain;
  WGPUStringView label;
} WGPULabelDescriptor; /* queue, command encoder, command buffer and shader module begin and end so */
typedef WGPULabelDescriptor WGPUQueueDescriptor, WGPUCommandEncoderDescriptor,
    WGPUCommandBufferDescriptor, WGPUShaderModuleDescriptor;
typedef struct {
  WGPUChainedStruct *nextInChain;
  WGPUStringView label;
  size_t requiredFeatureCount;
  const WGPUFeatureName *requiredFeatures;
  const WGPULimits *requiredLimits;
  WGPUQueueDescriptor defaultQueue;
  WGPUDeviceLostCallbackInfo deviceLostCallbackInfo;
  WGPUUncapturedErrorCallbackInfo uncapturedErrorCallbackInfo;
} WGPUDeviceDescriptor;
typedef struct {
  WGPUChainedStruct *nextInChain;
  WGPUStringView label;
  WGPUBufferUsage usage;
  uint64_t size;
  WGPUBool mappedAtCreation;
} WGPUBufferDescriptor;

/* Programs. */
typedef struct {
  WGPUChainedStruct chain;
  WGPUStringView code;
} WGPUShaderSourceWGSL;
typedef struct {
  WGPUChainedStruct *nextInChain;
  WGPUBufferBindingType type;
  WGPUBool hasDynamicOffset;
  uint64_t minBindingSize;
} WGPUBufferBindingLayout;
typedef struct {
  WGPUChainedStruct *nextInChain;
  uint32_t type;
} WGPUSamplerBindingLayout;
typedef struct {
  WGPUChainedStruct *nextInChain;
  uint32_t sampleType, viewDimension;
  WGPUBool multisampled;
} WGPUTextureBindingLayout;
typedef struct {
  WGPUChainedStruct *nextInChain;
  uint32_t access, format, viewDimension;
} WGPUStorageTextureBindingLayout;
typedef struct {
  WGPUChainedStruct *nextInChain;
  uint32_t binding;
  WGPUShaderStage visibility;
  uint32_t bindingArraySize;
  WGPUBufferBindingLayout buffer;
  WGPUSamplerBindingLayout sampler;
  WGPUTextureBindingLayout texture;
  WGPUStorageTextureBindingLayout storageTexture;
} WGPUBindGroupLayoutEntry;
typedef struct {
  WGPUChainedStruct *nextInChain;
  WGPUStringView label;
  size_t entryCount;
  const WGPUBindGroupLayoutEntry *entries;
} WGPUBindGroupLayoutDescriptor;
typedef struct {
  WGPUChainedStruct *nextInChain;
  WGPUStringView label;
  size_t bindGroupLayoutCount;
  const WGPUBindGroupLayout *bindGroupLayouts;
  uint32_t immediateSize;
} WGPUPipelineLayoutDescriptor;
typedef struct {
  WGPUChainedStruct *nextInChain;
  WGPUShaderModule module;
  WGPUStringView entryPoint;
  size_t constantCount;
  const void *constants;
} WGPUComputeState;
typedef struct {
  WGPUChainedStruct *nextInChain;
  WGPUStringView label;
  WGPUPipelineLayout layout;
  WGPUComputeState compute;
} WGPUComputePipelineDescriptor;

/* Launches. */
typedef struct {
  WGPUChainedStruct *nextInChain;
  uint32_t binding;
  WGPUBuffer buffer;
  uint64_t offset, size;
  WGPUSampler sampler;
  WGPUTextureView textureView;
} WGPUBindGroupEntry;
typedef struct {
  WGPUChainedStruct *nextInChain;
  WGPUStringView label;
  WGPUBindGroupLayout layout;
  size_t entryCount;
  const WGPUBindGroupEntry *entries;
} WGPUBindGroupDescriptor;
typedef struct {
  WGPUChainedStruct *nextInChain;
  WGPUStringView label;
  WGPUQueryType type;
  uint32_t count;
} WGPUQuerySetDescriptor;
typedef struct {
  WGPUChainedStruct *nextInChain;
  WGPUQuerySet querySet;
  uint32_t beginningOfPassWriteIndex, endOfPassWriteIndex;
} WGPUPassTimestampWrites;
typedef struct {
  WGPUChainedStruct *nextInChain;
  WGPUStringView label;
  const WGPUPassTimestampWrites *timestampWrites;
} WGPUComputePassDescriptor;

/* wgpu-native's own. */
#define WGPUInstanceBackend_Vulkan UINT64_C (0x1)
#define WGPUInstanceBackend_Metal  UINT64_C (0x4)
#define WGPUInstanceBackend_DX12   UINT64_C (0x8)
#define WGPUSType_InstanceExtras   ((WGPUSType) 0x00030004)
typedef struct {
  WGPUChainedStruct chain;
  WGPUFlags backends; /* 0: all */
  WGPUFlags flags;
  uint64_t others[32]; /* which zero leaves as they are */
} WGPUInstanceExtras;
typedef struct {
  const WGPUChainedStruct *nextInChain;
  WGPUFlags backends; /* 0: all */
} WGPUInstanceEnumerateAdapterOptions;
