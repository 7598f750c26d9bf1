// torch's side of CUDA (streams, guards, checks), CUDA's own names, and the table of functions for Python.
#pragma once

#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>

#include <simt/cuda.h>
#include <simt/function.h>
#include <simt/pybind.h>

// Torch declares these conversions, and __ldg() of its types, for nvcc only.
template <> inline constexpr bool simt::is_torchs_type<c10::Half, __half> = true;
template <> inline constexpr bool simt::is_torchs_type<c10::BFloat16, __nv_bfloat16> = true;
namespace c10 {
SIMT_INLINE Half __ldg(const Half* pointer) { return *pointer; }
SIMT_INLINE BFloat16 __ldg(const BFloat16* pointer) { return *pointer; }
}  // namespace c10

namespace torch::headeronly {
// torch declares it for nvcc only.
template <class T>
struct RestrictPtrTraits {
  typedef T* __restrict__ PtrType;
};
}  // namespace torch::headeronly
namespace at {
using torch::headeronly::RestrictPtrTraits;
}

namespace c10::cuda {

struct CUDAStream {
  cudaStream_t stream() const { return nullptr; }
  operator cudaStream_t() const { return nullptr; }
  c10::DeviceIndex device_index() const { return 0; }
  void synchronize() const {}
  bool query() const { return true; }
};
inline CUDAStream getCurrentCUDAStream(c10::DeviceIndex = -1) { return {}; }
inline CUDAStream getDefaultCUDAStream(c10::DeviceIndex = -1) { return {}; }
inline CUDAStream getStreamFromPool(bool = false, c10::DeviceIndex = -1) { return {}; }
inline void setCurrentCUDAStream(CUDAStream) {}
inline void device_synchronize() {}
inline c10::DeviceIndex current_device() { return 0; }
inline c10::DeviceIndex device_count() { return 1; }

struct CUDAGuard {
  template <class... T>
  explicit CUDAGuard(const T&...) {}
  template <class T>
  void set_device(const T&) {}
};
struct OptionalCUDAGuard {
  template <class... T>
  explicit OptionalCUDAGuard(const T&...) {}
  template <class T>
  void set_device(const T&) {}
};
struct CUDAStreamGuard {
  template <class T>
  explicit CUDAStreamGuard(const T&) {}
};

inline void check(cudaError_t error, const char* file, int line) {
  if (error == cudaSuccess) return;
  const char* text = simt::error_text(static_cast<int>(error));
  TORCH_CHECK(false, "CUDA error: ", cudaGetErrorString(error), text ? ": " : "", text ? text : "", " (", file, ":",
              line, ")");
}

}  // namespace c10::cuda

namespace at::cuda {
using namespace c10::cuda;
inline cudaDeviceProp* getCurrentDeviceProperties() {
  static cudaDeviceProp properties = [] {
    cudaDeviceProp p;
    cudaGetDeviceProperties(&p, 0);
    return p;
  }();
  return &properties;
}
inline cudaDeviceProp* getDeviceProperties(c10::DeviceIndex) { return getCurrentDeviceProperties(); }
inline int warp_size() { return 32; }
inline bool is_available() { return true; }
template <class T>
T ATenCeilDiv(T a, T b) {
  return (a + b - 1) / b;
}
}  // namespace at::cuda
namespace at {
using at::cuda::ATenCeilDiv;
}
namespace torch::cuda {
using namespace at::cuda;
inline void synchronize(int64_t = -1) {}
}  // namespace torch::cuda

#define C10_CUDA_CHECK(call) ::c10::cuda::check((call), __FILE__, __LINE__)
#define AT_CUDA_CHECK(call) C10_CUDA_CHECK(call)
#define TORCH_CUDA_CHECK(call) C10_CUDA_CHECK(call)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define TORCH_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_KERNEL_LAUNCH_CHECK()
#define C10_CUDA_CHECK_WARN(call) (void)(call)

#undef CUDA_KERNEL_ASSERT
#define CUDA_KERNEL_ASSERT(...) SIMT_ASSERT(__VA_ARGS__)
#undef CUDA_KERNEL_ASSERT_MSG
#define CUDA_KERNEL_ASSERT_MSG(condition, ...) SIMT_ASSERT(condition)
