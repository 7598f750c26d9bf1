// Host code beside machine code that was compiled apart. A kernel is a function here, as with nvcc: its body passes the
// addresses of its arguments on, and its mangled name, which the dynamic linker knows, is that of the machine code.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace simt::gpu {

// What one `kernel<<<grid, block, shared, stream>>>` says. Returns true for any, so that the call that follows has a place
// in the expression.
bool configure_launch(dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream);
inline bool configure(dim3 grid, dim3 block, std::size_t shared = 0, cudaStream_t stream = nullptr) {
  return !configure_launch(grid, block, shared, stream);
}

// Returns CUDA's handle of the kernel, or of the variable in device memory, that this address of the host stands for.
// An address that stands for none is returned as it is: CUDA reports it.
const void* find_kernel(const void* stub);
cudaError_t find_symbol(const void* shadow, void** address, std::size_t* bytes);

// A kernel, looked up at its first launch.
class Kernel {
 public:
  explicit Kernel(const void* stub) : handle_(find_kernel(stub)) {}
  void launch(void** arguments) const;

 private:
  const void* handle_;
};

template <class F>
const void* kernel_of(F function) {
  if constexpr (std::is_pointer_v<F> || std::is_function_v<std::remove_pointer_t<F>>)
    return find_kernel(reinterpret_cast<const void*>(function));
  else
    return find_kernel(static_cast<const void*>(function));
}

// ---- CUDA's functions that take a kernel ----

template <class F>
cudaError_t func_set_attribute(F kernel, cudaFuncAttribute attribute, int value) {
  return ::cudaFuncSetAttribute(kernel_of(kernel), attribute, value);
}
template <class F>
cudaError_t func_set_cache_config(F kernel, cudaFuncCache config) {
  // CUDA has no such function for a handle; the share of shared memory is what the preference decides.
  const int shares[] = {-1, 100, 0, 50};  // of no preference, shared memory, L1, both alike
  return ::cudaFuncSetAttribute(kernel_of(kernel), cudaFuncAttributePreferredSharedMemoryCarveout, shares[config]);
}
template <class F>
cudaError_t func_get_attributes(cudaFuncAttributes* attributes, F kernel) {
  return ::cudaFuncGetAttributes(attributes, kernel_of(kernel));
}
template <class F>
cudaError_t most_blocks(int* blocks, F kernel, int threads, std::size_t shared) {
  return ::cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel_of(kernel), threads, shared);
}
template <class F>
cudaError_t most_blocks(int* blocks, F kernel, int threads, std::size_t shared, unsigned flags) {
  return ::cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel_of(kernel), threads, shared, flags);
}
cudaError_t best_block(int* grid, int* block, const void* kernel, std::size_t shared, int most);
template <class F>
cudaError_t best_block(int* grid, int* block, F kernel, std::size_t shared = 0, int most = 0) {
  return best_block(grid, block, kernel_of(kernel), shared, most);
}
template <class F>
cudaError_t launch_kernel(F kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared = 0,
                          cudaStream_t stream = nullptr) {
  return ::cudaLaunchKernel(kernel_of(kernel), grid, block, arguments, shared, stream);
}
template <class F>
cudaError_t launch_cooperative(F kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared = 0,
                               cudaStream_t stream = nullptr) {
  return ::cudaLaunchCooperativeKernel(kernel_of(kernel), grid, block, arguments, shared, stream);
}
template <class... P, class... A>
cudaError_t launch_extended(const cudaLaunchConfig_t* configuration, void (*kernel)(P...), A&&... given) {
  return [&](P... converted) {
    void* arguments[] = {nullptr, (void*)&converted...};
    return ::cudaLaunchKernelExC(configuration, kernel_of(kernel), arguments + 1);
  }(std::forward<A>(given)...);
}

// ---- CUDA's functions that take a variable in device memory ----

cudaError_t to_symbol(const void* shadow, const void* from, std::size_t bytes, std::size_t offset, cudaMemcpyKind kind);
cudaError_t from_symbol(void* to, const void* shadow, std::size_t bytes, std::size_t offset, cudaMemcpyKind kind);
cudaError_t to_symbol(const void* shadow, const void* from, std::size_t bytes, std::size_t offset, cudaMemcpyKind kind,
                      cudaStream_t stream);
cudaError_t from_symbol(void* to, const void* shadow, std::size_t bytes, std::size_t offset, cudaMemcpyKind kind,
                        cudaStream_t stream);

template <class T>
cudaError_t memcpy_to_symbol(const T& symbol, const void* from, std::size_t bytes, std::size_t offset = 0,
                             cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  return to_symbol(&symbol, from, bytes, offset, kind);
}
template <class T>
cudaError_t memcpy_from_symbol(void* to, const T& symbol, std::size_t bytes, std::size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  return from_symbol(to, &symbol, bytes, offset, kind);
}
template <class T>
cudaError_t memcpy_to_symbol_async(const T& symbol, const void* from, std::size_t bytes, std::size_t offset = 0,
                                   cudaMemcpyKind kind = cudaMemcpyHostToDevice, cudaStream_t stream = nullptr) {
  return to_symbol(&symbol, from, bytes, offset, kind, stream);
}
template <class T>
cudaError_t memcpy_from_symbol_async(void* to, const T& symbol, std::size_t bytes, std::size_t offset = 0,
                                     cudaMemcpyKind kind = cudaMemcpyDeviceToHost, cudaStream_t stream = nullptr) {
  return from_symbol(to, &symbol, bytes, offset, kind, stream);
}
template <class T>
cudaError_t get_symbol_address(void** address, const T& symbol) {
  std::size_t bytes;
  return find_symbol(&symbol, address, &bytes);
}
template <class P, class T>
cudaError_t get_symbol_address(P** address, const T& symbol) {
  return get_symbol_address(reinterpret_cast<void**>(address), symbol);
}
template <class T>
cudaError_t get_symbol_size(std::size_t* bytes, const T& symbol) {
  void* address;
  return find_symbol(&symbol, &address, bytes);
}

}  // namespace simt::gpu
