// title: Driver API: attributes of the device agree with the runtime's, and error names
// features: driver_api, device_properties
// flags: -lcuda

#include <cstring>
#include <iostream>

#include <cuda.h>
#include <cuda_runtime.h>

namespace {
int failures = 0;

void expect(bool condition, const char* what) {
  if (!condition) {
    std::cout << "unexpected: " << what << '\n';
    ++failures;
  }
}

int driver(CUdevice_attribute attribute, CUdevice device) {
  int value = -1;
  expect(cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS, "cuDeviceGetAttribute");
  return value;
}

__global__ void gridStride(unsigned* counts, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&counts[i % 10], 1u);
}
}  // namespace

int main() {
  CUdevice device = -1;
  expect(cuInit(0) == CUDA_SUCCESS, "cuInit");
  expect(cuDeviceGet(&device, 0) == CUDA_SUCCESS, "cuDeviceGet");
  int version = 0, runtime = 0;
  expect(cuDriverGetVersion(&version) == CUDA_SUCCESS && version > 0, "cuDriverGetVersion");
  expect(cudaRuntimeGetVersion(&runtime) == cudaSuccess && runtime > 0, "cudaRuntimeGetVersion");
  char name[256] = "";
  expect(cuDeviceGetName(name, sizeof name, device) == CUDA_SUCCESS, "cuDeviceGetName");
  size_t bytes = 0;
  expect(cuDeviceTotalMem(&bytes, device) == CUDA_SUCCESS, "cuDeviceTotalMem");

  cudaDeviceProp prop;
  expect(cudaGetDeviceProperties(&prop, 0) == cudaSuccess, "cudaGetDeviceProperties");
  std::cerr << name << ", driver " << version << ", runtime " << runtime << '\n';
  expect(std::strcmp(name, prop.name) == 0, "name");
  expect(bytes == prop.totalGlobalMem, "memory");
  expect(driver(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) == prop.major, "major");
  expect(driver(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) == prop.minor, "minor");
  expect(driver(CU_DEVICE_ATTRIBUTE_WARP_SIZE, device) == 32, "warp size");
  expect(driver(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device) == prop.maxThreadsPerBlock, "threads of a block");
  expect(driver(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, device) == prop.maxThreadsDim[2], "depth of a block");
  expect(driver(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, device) == prop.maxGridSize[0], "grid");
  expect(driver(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) == prop.multiProcessorCount, "multiprocessors");
  expect(driver(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, device) == (int)prop.sharedMemPerBlock, "shared memory");

  const char *text = nullptr, *label = nullptr;
  expect(cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &label) == CUDA_SUCCESS, "cuGetErrorName");
  expect(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text) == CUDA_SUCCESS, "cuGetErrorString");
  std::cout << label << ": " << text << '\n';
  CUdevice none;
  expect(cuDeviceGet(&none, 1000) == CUDA_ERROR_INVALID_DEVICE, "a device that is not there");

  const int n = 12345;
  unsigned *counts, host[10];
  expect(cudaMalloc(&counts, sizeof host) == cudaSuccess, "cudaMalloc");
  expect(cudaMemset(counts, 0, sizeof host) == cudaSuccess, "cudaMemset");
  int blocks = driver(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  gridStride<<<blocks > 8 ? 8 : blocks, driver(CU_DEVICE_ATTRIBUTE_WARP_SIZE, device) * 4>>>(counts, n);
  expect(cudaGetLastError() == cudaSuccess, "launch");
  expect(cudaMemcpy(host, counts, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess, "cudaMemcpy");
  expect(cudaFree(counts) == cudaSuccess, "cudaFree");
  for (int d = 0; d < 10; d++) expect(host[d] == (unsigned)(n / 10 + (d < n % 10)), "a count");
  std::cout << "counts " << host[0] << " ... " << host[9] << '\n';
  std::cout << (failures ? "FAILED" : "PASSED") << std::endl;
  return failures != 0;
}
