// What a program can query about the device: cudaDeviceProp, cudaDeviceAttr, and their values for the simulated GPU.
#pragma once

#include <string.h>

#include <simt/cuda_errors.h>

// Fields without a value in simt::Device or in the programming guide's table of limits are 0.
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
  size_t totalConstMem;
  int major, minor, clockRate;
  size_t textureAlignment, texturePitchAlignment, surfaceAlignment;
  int multiProcessorCount, integrated, canMapHostMemory, computeMode, concurrentKernels, ECCEnabled;
  int deviceOverlap, kernelExecTimeoutEnabled, tccDriver, isMultiGpuBoard, multiGpuBoardGroupID;
  int maxTexture1D, maxTexture2D[2], maxTexture3D[3], maxTexture1DLayered[2], maxTexture2DLayered[3];
  int maxTextureCubemap, maxTextureCubemapLayered[2];
  int maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3];
  int pciBusID, pciDeviceID, pciDomainID, asyncEngineCount, unifiedAddressing;
  int memoryClockRate, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize;
  int maxThreadsPerMultiProcessor, globalL1CacheSupported, localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, concurrentManagedAccess, pageableMemoryAccess,
      pageableMemoryAccessUsesHostPageTables;
  int cooperativeLaunch, cooperativeMultiDeviceLaunch, maxBlocksPerMultiProcessor, streamPrioritiesSupported,
      hostNativeAtomicSupported, singleToDoublePrecisionPerfRatio;
  int computePreemptionSupported, directManagedMemAccessFromHost, canUseHostPointerForRegisteredMem,
      accessPolicyMaxWindowSize, hostRegisterSupported, memoryPoolsSupported;
  size_t sharedMemPerBlockOptin, reservedSharedMemPerBlock;
};

namespace simt {
// Sets what all the GPUs of simt/devices.py have alike: compute capability 7.5 to 9.0.
inline void set_common_properties(cudaDeviceProp& p) {
  p.reservedSharedMemPerBlock = 1024;
  p.warpSize = 32;
  p.memPitch = 2147483647;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024, p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 2147483647, p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.totalConstMem = 65536;
  p.textureAlignment = p.surfaceAlignment = 512;
  p.texturePitchAlignment = 32;
  p.maxTexture1D = p.maxTexture2D[0] = p.maxSurface2D[0] = 131072;
  p.maxTexture2D[1] = p.maxSurface2D[1] = 65536;
  for (int i = 0; i < 3; ++i) p.maxTexture3D[i] = p.maxSurface3D[i] = 16384;
  p.maxTexture1DLayered[0] = p.maxTexture2DLayered[0] = p.maxTexture2DLayered[1] = 32768;
  p.maxSurface1D = p.maxSurface1DLayered[0] = p.maxSurface2DLayered[0] = p.maxSurface2DLayered[1] = 32768;
  p.maxTexture1DLayered[1] = p.maxTexture2DLayered[2] = p.maxSurface1DLayered[1] = p.maxSurface2DLayered[2] = 2048;
  p.maxTextureCubemap = p.maxTextureCubemapLayered[0] = 32768, p.maxTextureCubemapLayered[1] = 2046;
  p.concurrentKernels = p.unifiedAddressing = p.canMapHostMemory = p.managedMemory = p.cooperativeLaunch = 1;
  p.globalL1CacheSupported = p.localL1CacheSupported = p.deviceOverlap = p.streamPrioritiesSupported = 1;
  p.concurrentManagedAccess = p.computePreemptionSupported = p.canUseHostPointerForRegisteredMem = 1;
  p.hostRegisterSupported = p.memoryPoolsSupported = 1;
}
}  // namespace simt

inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  if (const cudaError_t error = simt::only_device_0(ordinal)) return error;
  const simt::Device& d = simt::device();
  *properties = {};
  cudaDeviceProp& p = *properties;
  simt::set_common_properties(p);
  ::strncpy(p.name, d.name, sizeof p.name - 1);
  p.totalGlobalMem = (size_t)d.global_bytes;
  p.sharedMemPerBlock = (size_t)d.shared_per_block;
  p.sharedMemPerBlockOptin = (size_t)d.shared_per_block_optin;
  p.sharedMemPerMultiprocessor = (size_t)d.shared_per_multiprocessor;
  p.regsPerBlock = p.regsPerMultiprocessor = d.registers_per_multiprocessor;
  p.major = d.major, p.minor = d.minor;
  p.clockRate = d.clock_khz;
  p.multiProcessorCount = d.multiprocessors;
  p.memoryClockRate = d.memory_khz, p.memoryBusWidth = d.memory_bus_bits;
  p.asyncEngineCount = d.copy_engines;
  p.ECCEnabled = d.has_ecc;
  p.singleToDoublePrecisionPerfRatio = d.minor == 0 ? 2 : d.major == 7 ? 32 : 64;  // 64 double-precision units or 1, 2
  p.l2CacheSize = (int)d.l2_bytes;
  p.maxThreadsPerMultiProcessor = d.threads_per_multiprocessor;
  p.maxBlocksPerMultiProcessor = d.blocks_per_multiprocessor;
  return cudaSuccess;
}

enum cudaComputeMode {
  cudaComputeModeDefault,
  cudaComputeModeExclusive,
  cudaComputeModeProhibited,
  cudaComputeModeExclusiveProcess
};

// clang-format off: a table, one attribute a line: its number, its name after cudaDevAttr, and the property with its value
#define SIMT_DEVICE_ATTRIBUTES(each) \
  each(1, MaxThreadsPerBlock, maxThreadsPerBlock) \
  each(2, MaxBlockDimX, maxThreadsDim[0]) \
  each(3, MaxBlockDimY, maxThreadsDim[1]) \
  each(4, MaxBlockDimZ, maxThreadsDim[2]) \
  each(5, MaxGridDimX, maxGridSize[0]) \
  each(6, MaxGridDimY, maxGridSize[1]) \
  each(7, MaxGridDimZ, maxGridSize[2]) \
  each(8, MaxSharedMemoryPerBlock, sharedMemPerBlock) \
  each(9, TotalConstantMemory, totalConstMem) \
  each(10, WarpSize, warpSize) \
  each(11, MaxPitch, memPitch) \
  each(12, MaxRegistersPerBlock, regsPerBlock) \
  each(13, ClockRate, clockRate) \
  each(14, TextureAlignment, textureAlignment) \
  each(15, GpuOverlap, deviceOverlap) \
  each(16, MultiProcessorCount, multiProcessorCount) \
  each(17, KernelExecTimeout, kernelExecTimeoutEnabled) \
  each(18, Integrated, integrated) \
  each(19, CanMapHostMemory, canMapHostMemory) \
  each(20, ComputeMode, computeMode) \
  each(21, MaxTexture1DWidth, maxTexture1D) \
  each(22, MaxTexture2DWidth, maxTexture2D[0]) \
  each(23, MaxTexture2DHeight, maxTexture2D[1]) \
  each(24, MaxTexture3DWidth, maxTexture3D[0]) \
  each(25, MaxTexture3DHeight, maxTexture3D[1]) \
  each(26, MaxTexture3DDepth, maxTexture3D[2]) \
  each(27, MaxTexture2DLayeredWidth, maxTexture2DLayered[0]) \
  each(28, MaxTexture2DLayeredHeight, maxTexture2DLayered[1]) \
  each(29, MaxTexture2DLayeredLayers, maxTexture2DLayered[2]) \
  each(30, SurfaceAlignment, surfaceAlignment) \
  each(31, ConcurrentKernels, concurrentKernels) \
  each(32, EccEnabled, ECCEnabled) \
  each(33, PciBusId, pciBusID) \
  each(34, PciDeviceId, pciDeviceID) \
  each(35, TccDriver, tccDriver) \
  each(36, MemoryClockRate, memoryClockRate) \
  each(37, GlobalMemoryBusWidth, memoryBusWidth) \
  each(38, L2CacheSize, l2CacheSize) \
  each(39, MaxThreadsPerMultiProcessor, maxThreadsPerMultiProcessor) \
  each(40, AsyncEngineCount, asyncEngineCount) \
  each(41, UnifiedAddressing, unifiedAddressing) \
  each(42, MaxTexture1DLayeredWidth, maxTexture1DLayered[0]) \
  each(43, MaxTexture1DLayeredLayers, maxTexture1DLayered[1]) \
  each(50, PciDomainId, pciDomainID) \
  each(51, TexturePitchAlignment, texturePitchAlignment) \
  each(52, MaxTextureCubemapWidth, maxTextureCubemap) \
  each(53, MaxTextureCubemapLayeredWidth, maxTextureCubemapLayered[0]) \
  each(54, MaxTextureCubemapLayeredLayers, maxTextureCubemapLayered[1]) \
  each(55, MaxSurface1DWidth, maxSurface1D) \
  each(56, MaxSurface2DWidth, maxSurface2D[0]) \
  each(57, MaxSurface2DHeight, maxSurface2D[1]) \
  each(58, MaxSurface3DWidth, maxSurface3D[0]) \
  each(59, MaxSurface3DHeight, maxSurface3D[1]) \
  each(60, MaxSurface3DDepth, maxSurface3D[2]) \
  each(61, MaxSurface1DLayeredWidth, maxSurface1DLayered[0]) \
  each(62, MaxSurface1DLayeredLayers, maxSurface1DLayered[1]) \
  each(63, MaxSurface2DLayeredWidth, maxSurface2DLayered[0]) \
  each(64, MaxSurface2DLayeredHeight, maxSurface2DLayered[1]) \
  each(65, MaxSurface2DLayeredLayers, maxSurface2DLayered[2]) \
  each(75, ComputeCapabilityMajor, major) \
  each(76, ComputeCapabilityMinor, minor) \
  each(78, StreamPrioritiesSupported, streamPrioritiesSupported) \
  each(79, GlobalL1CacheSupported, globalL1CacheSupported) \
  each(80, LocalL1CacheSupported, localL1CacheSupported) \
  each(81, MaxSharedMemoryPerMultiprocessor, sharedMemPerMultiprocessor) \
  each(82, MaxRegistersPerMultiprocessor, regsPerMultiprocessor) \
  each(83, ManagedMemory, managedMemory) \
  each(84, IsMultiGpuBoard, isMultiGpuBoard) \
  each(85, MultiGpuBoardGroupID, multiGpuBoardGroupID) \
  each(86, HostNativeAtomicSupported, hostNativeAtomicSupported) \
  each(87, SingleToDoublePrecisionPerfRatio, singleToDoublePrecisionPerfRatio) \
  each(88, PageableMemoryAccess, pageableMemoryAccess) \
  each(89, ConcurrentManagedAccess, concurrentManagedAccess) \
  each(90, ComputePreemptionSupported, computePreemptionSupported) \
  each(91, CanUseHostPointerForRegisteredMem, canUseHostPointerForRegisteredMem) \
  each(95, CooperativeLaunch, cooperativeLaunch) \
  each(96, CooperativeMultiDeviceLaunch, cooperativeMultiDeviceLaunch) \
  each(97, MaxSharedMemoryPerBlockOptin, sharedMemPerBlockOptin) \
  each(99, HostRegisterSupported, hostRegisterSupported) \
  each(100, PageableMemoryAccessUsesHostPageTables, pageableMemoryAccessUsesHostPageTables) \
  each(101, DirectManagedMemAccessFromHost, directManagedMemAccessFromHost) \
  each(106, MaxBlocksPerMultiprocessor, maxBlocksPerMultiProcessor) \
  each(111, ReservedSharedMemoryPerBlock, reservedSharedMemPerBlock) \
  each(115, MemoryPoolsSupported, memoryPoolsSupported)
// clang-format on

#define SIMT_ENUMERATOR(number, name, property) cudaDevAttr##name = number,
enum cudaDeviceAttr { SIMT_DEVICE_ATTRIBUTES(SIMT_ENUMERATOR) };
#undef SIMT_ENUMERATOR

inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int ordinal) {
  cudaDeviceProp p;
  if (!value) return simt::failed(cudaErrorInvalidValue, "cudaDeviceGetAttribute got no place for the value");
  if (const cudaError_t error = cudaGetDeviceProperties(&p, ordinal)) return error;
  switch ((int)attribute) {
#define SIMT_CASE(number, name, property) \
  case number: *value = (int)p.property; break;
    SIMT_DEVICE_ATTRIBUTES(SIMT_CASE)
#undef SIMT_CASE
    default: return simt::failed(cudaErrorInvalidValue, "simt does not know this device attribute");
  }
  return cudaSuccess;
}
#undef SIMT_DEVICE_ATTRIBUTES
