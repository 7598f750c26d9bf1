// CUDA's errors: number, name and text of each, and the host thread's last error.
#pragma once

#include <simt/host.h>
#include <simt/runtime.h>

// clang-format off: a table, one error a line
#define SIMT_CUDA_ERRORS(each)                                                                         \
  each(0, cudaSuccess, "no error")                                                                     \
  each(1, cudaErrorInvalidValue, "invalid argument")                                                   \
  each(2, cudaErrorMemoryAllocation, "out of memory")                                                  \
  each(3, cudaErrorInitializationError, "initialization error")                                        \
  each(4, cudaErrorCudartUnloading, "driver shutting down")                                            \
  each(9, cudaErrorInvalidConfiguration, "invalid configuration argument")                             \
  each(12, cudaErrorInvalidPitchValue, "invalid pitch argument")                                       \
  each(13, cudaErrorInvalidSymbol, "invalid device symbol")                                            \
  each(17, cudaErrorInvalidDevicePointer, "invalid device pointer")                                    \
  each(18, cudaErrorInvalidTexture, "invalid texture")                                                 \
  each(20, cudaErrorInvalidChannelDescriptor, "invalid channel descriptor")                            \
  each(21, cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")                       \
  each(26, cudaErrorInvalidFilterSetting, "linear filtering not supported for non-float type")         \
  each(27, cudaErrorInvalidNormSetting, "read as normalized float not supported for 32-bit non float type") \
  each(35, cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version") \
  each(52, cudaErrorMissingConfiguration, "__global__ function call is not configured")                \
  each(98, cudaErrorInvalidDeviceFunction, "invalid device function")                                  \
  each(100, cudaErrorNoDevice, "no CUDA-capable device is detected")                                   \
  each(101, cudaErrorInvalidDevice, "invalid device ordinal")                                          \
  each(200, cudaErrorInvalidKernelImage, "device kernel image is invalid")                             \
  each(201, cudaErrorDeviceUninitialized, "invalid device context")                                    \
  each(209, cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device") \
  each(214, cudaErrorECCUncorrectable, "uncorrectable ECC error encountered")                          \
  each(218, cudaErrorInvalidPtx, "a PTX JIT compilation failed")                                       \
  each(304, cudaErrorOperatingSystem, "OS call failed or operation not supported on this OS")          \
  each(400, cudaErrorInvalidResourceHandle, "invalid resource handle")                                 \
  each(401, cudaErrorIllegalState, "the operation cannot be performed in the present state")           \
  each(500, cudaErrorSymbolNotFound, "named symbol not found")                                         \
  each(600, cudaErrorNotReady, "device not ready")                                                     \
  each(700, cudaErrorIllegalAddress, "an illegal memory access was encountered")                       \
  each(701, cudaErrorLaunchOutOfResources, "too many resources requested for launch")                  \
  each(702, cudaErrorLaunchTimeout, "the launch timed out and was terminated")                         \
  each(704, cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled")                       \
  each(705, cudaErrorPeerAccessNotEnabled, "peer access has not been enabled")                         \
  each(709, cudaErrorContextIsDestroyed, "context is destroyed")                                       \
  each(710, cudaErrorAssert, "device-side assert triggered")                                           \
  each(712, cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped") \
  each(713, cudaErrorHostMemoryNotRegistered, \
       "pointer does not correspond to a registered memory region")                                    \
  each(714, cudaErrorHardwareStackError, "hardware stack error")                                       \
  each(715, cudaErrorIllegalInstruction, "an illegal instruction was encountered")                     \
  each(716, cudaErrorMisalignedAddress, "misaligned address")                                          \
  each(717, cudaErrorInvalidAddressSpace, "operation not supported on global/shared address space")    \
  each(718, cudaErrorInvalidPc, "invalid program counter")                                             \
  each(719, cudaErrorLaunchFailure, "unspecified launch failure")                                      \
  each(720, cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch")               \
  each(800, cudaErrorNotPermitted, "operation not permitted")                                          \
  each(801, cudaErrorNotSupported, "operation not supported")                                          \
  each(802, cudaErrorSystemNotReady, "system not yet initialized")                                     \
  each(900, cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")     \
  each(901, cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture") \
  each(903, cudaErrorStreamCaptureUnmatched, "the capture was not initiated in this stream")           \
  each(910, cudaErrorGraphExecUpdateFailure, \
       "the graph update was not performed because it included changes which violated constraints specific to " \
       "instantiated graph update")                                                                    \
  each(999, cudaErrorUnknown, "unknown error")
// clang-format on

#define SIMT_ENUMERATOR(code, name, text) name = code,
typedef enum cudaError { SIMT_CUDA_ERRORS(SIMT_ENUMERATOR) } cudaError_t;
#undef SIMT_ENUMERATOR

inline const char* cudaGetErrorString(cudaError_t error) {
  switch ((int)error) {
#define SIMT_CASE(code, name, text) \
  case code: return text;
    SIMT_CUDA_ERRORS(SIMT_CASE)
#undef SIMT_CASE
    default: return "unrecognized error code";
  }
}
inline const char* cudaGetErrorName(cudaError_t error) {
  switch ((int)error) {
#define SIMT_CASE(code, name, text) \
  case code: return #name;
    SIMT_CUDA_ERRORS(SIMT_CASE)
#undef SIMT_CASE
    default: return "unrecognized error code";
  }
}
#undef SIMT_CUDA_ERRORS

inline cudaError_t cudaGetLastError() { return (cudaError_t)simt::take_error(); }
inline cudaError_t cudaPeekAtLastError() { return (cudaError_t)simt::peek_error(); }

namespace simt {
inline cudaError_t failed(cudaError_t error, const char* text) {
  set_error(error, text);
  return error;
}
#ifdef SIMT_CHECK
// In a checked build this follows, after a comma, a call whose result the program ignores.
struct Dropped {
  const char* call;
  const char* file;
  int line;
  Dropped(const char* call, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : call(call), file(file), line(line) {}
};
inline void operator,(cudaError_t error, const Dropped& by) {
  if (error != cudaSuccess && error != cudaErrorNotReady)
    drop_error(by.call, error, cudaGetErrorName(error), by.file, by.line);
}
#endif
inline cudaError_t only_device_0(int ordinal) {
  return ordinal == 0 || ordinal == -1 /* get_device() of a tensor here */ ? cudaSuccess
                                                                           : failed(cudaErrorInvalidDevice,
                                                                                    "there is only device 0");
}
}  // namespace simt
