// Finds the machine code for the kernels and variables of one extension, and launches it. Linked into each extension
// that was split, so that a name is looked up in that extension's own machine code.
#include <cuda_runtime.h>

#include <dlfcn.h>

#include <algorithm>
#include <mutex>

#include <gpu/host.h>

namespace simt::gpu {

namespace {

struct Configuration {
  dim3 grid, block;
  std::size_t shared;
  cudaStream_t stream;
};
thread_local Configuration configuration;

// The machine code, which stays mapped while the process lives: CUDA may load it lazily.
const void* code = nullptr;
cudaLibrary_t library = nullptr;
cudaError_t loaded = cudaErrorNotReady;
std::once_flag once;

cudaError_t load() {
  std::call_once(once, [] {
    loaded = code ? cudaLibraryLoadData(&library, code, nullptr, nullptr, 0, nullptr, nullptr, 0)
                  : cudaErrorInvalidDeviceFunction;
  });
  return loaded;
}

// Returns the mangled name of a function or a variable of this extension, or nullptr.
const char* name_of(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 && info.dli_saddr == address ? info.dli_sname : nullptr;
}

cudaError_t copy(const void* shadow, std::size_t offset, std::size_t bytes, char** place) {
  void* address;
  std::size_t size;
  if (const cudaError_t error = find_symbol(shadow, &address, &size)) return error;
  if (offset > size || bytes > size - offset) return cudaErrorInvalidValue;
  *place = static_cast<char*>(address) + offset;
  return cudaSuccess;
}

}  // namespace

const void* find_kernel(const void* stub) {
  const char* name = name_of(stub);
  cudaKernel_t kernel;
  if (!name || load() != cudaSuccess || cudaLibraryGetKernel(&kernel, library, name) != cudaSuccess) return stub;
  return reinterpret_cast<const void*>(kernel);
}

cudaError_t find_symbol(const void* shadow, void** address, std::size_t* bytes) {
  const char* name = name_of(shadow);
  if (!name) return cudaErrorInvalidSymbol;
  if (const cudaError_t error = load()) return error;
  return cudaLibraryGetGlobal(address, bytes, library, name) == cudaSuccess ? cudaSuccess : cudaErrorInvalidSymbol;
}

bool configure_launch(dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream) {
  configuration = {grid, block, shared, stream};
  return true;
}

void Kernel::launch(void** arguments) const {
  // An error stays where cudaGetLastError finds it.
  cudaLaunchKernel(handle_, configuration.grid, configuration.block, arguments, configuration.shared,
                   configuration.stream);
}

cudaError_t best_block(int* grid, int* block, const void* kernel, std::size_t shared, int most) {
  cudaFuncAttributes attributes;
  if (const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel)) return error;
  int device, multiprocessors, best = 0;
  if (const cudaError_t error = cudaGetDevice(&device)) return error;
  if (const cudaError_t error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device))
    return error;
  const int largest = most > 0 ? std::min(most, attributes.maxThreadsPerBlock) : attributes.maxThreadsPerBlock;
  for (int threads = (largest + 31) / 32 * 32; threads > 0; threads -= 32) {
    int blocks;
    const int tried = std::min(threads, largest);
    if (const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, tried, shared))
      return error;
    if (blocks * tried > best) {
      best = blocks * tried;
      *block = tried;
      *grid = blocks * multiprocessors;
    }
  }
  return cudaSuccess;
}

cudaError_t to_symbol(const void* shadow, const void* from, std::size_t bytes, std::size_t offset,
                      cudaMemcpyKind kind) {
  char* place;
  if (const cudaError_t error = copy(shadow, offset, bytes, &place)) return error;
  return cudaMemcpy(place, from, bytes, kind);
}
cudaError_t from_symbol(void* to, const void* shadow, std::size_t bytes, std::size_t offset, cudaMemcpyKind kind) {
  char* place;
  if (const cudaError_t error = copy(shadow, offset, bytes, &place)) return error;
  return cudaMemcpy(to, place, bytes, kind);
}
cudaError_t to_symbol(const void* shadow, const void* from, std::size_t bytes, std::size_t offset, cudaMemcpyKind kind,
                      cudaStream_t stream) {
  char* place;
  if (const cudaError_t error = copy(shadow, offset, bytes, &place)) return error;
  return cudaMemcpyAsync(place, from, bytes, kind, stream);
}
cudaError_t from_symbol(void* to, const void* shadow, std::size_t bytes, std::size_t offset, cudaMemcpyKind kind,
                        cudaStream_t stream) {
  char* place;
  if (const cudaError_t error = copy(shadow, offset, bytes, &place)) return error;
  return cudaMemcpyAsync(to, place, bytes, kind, stream);
}

}  // namespace simt::gpu

// Called once, before any function of the extension, with the machine code in memory that stays.
extern "C" __attribute__((visibility("default"))) void simt_gpu_set_code(const void* cubin) { simt::gpu::code = cubin; }
