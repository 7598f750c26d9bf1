// title: Launch configuration chosen from the device's properties, the attributes of a kernel and occupancy
// features: device_properties, occupancy, dynamic_shared_memory, function_attributes

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK_RC(call)                                                          \
  do {                                                                          \
    cudaError_t rc_ = (call);                                                   \
    if (rc_ != cudaSuccess) {                                                   \
      fprintf(stderr, "[%s:%d] %s\n", __func__, __LINE__, cudaGetErrorString(rc_)); \
      exit(EXIT_FAILURE);                                                       \
    }                                                                           \
  } while (0)

__global__ void square(int* x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) x[i] *= x[i];
}

// Reverses pieces of `piece` elements through dynamic shared memory that may need more than 48 KiB.
__global__ void reversePieces(int* x, int piece) {
  extern __shared__ int buffer[];
  int* mine = x + (size_t)blockIdx.x * piece;
  for (int i = threadIdx.x; i < piece; i += blockDim.x) buffer[i] = mine[i];
  __syncthreads();
  for (int i = threadIdx.x; i < piece; i += blockDim.x) mine[i] = buffer[piece - 1 - i];
}

static size_t sharedForBlock(int) { return 0; }

int main() {
  int devices = 0, device = 0;
  CHECK_RC(cudaGetDeviceCount(&devices));
  CHECK_RC(cudaGetDevice(&device));
  cudaDeviceProp prop;
  CHECK_RC(cudaGetDeviceProperties(&prop, device));
  fprintf(stderr, "%s, %d multiprocessors\n", prop.name, prop.multiProcessorCount);

  bool sane = devices >= 1 && prop.warpSize == 32 && prop.maxThreadsPerBlock == 1024 && prop.maxGridSize[1] == 65535 &&
              prop.sharedMemPerBlock == 48 * 1024 && prop.totalGlobalMem > 0 && prop.major >= 7;
  int value = 0;
  CHECK_RC(cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerBlock, device));
  sane = sane && value == prop.maxThreadsPerBlock;
  CHECK_RC(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, device));
  sane = sane && value == prop.major;
  CHECK_RC(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, device));
  sane = sane && value == prop.multiProcessorCount;
  printf("properties and attributes agree: %s\n", sane ? "yes" : "no");

  const int n = 3 * 14000;  // three pieces of 14,000 ints, 56,000 bytes each
  std::vector<int> x(n), got(n);
  for (int i = 0; i < n; i++) x[i] = i % 1000 - 500;
  int* d;
  CHECK_RC(cudaMalloc(&d, n * sizeof(int)));
  CHECK_RC(cudaMemcpy(d, x.data(), n * sizeof(int), cudaMemcpyHostToDevice));

  int minGrid = 0, block = 0, perSm = 0;
  CHECK_RC(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&minGrid, &block, square, sharedForBlock, 512));
  CHECK_RC(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&perSm, square, block, 0));
  sane = sane && block >= 32 && block <= 512 && minGrid >= prop.multiProcessorCount && perSm >= 1;
  int grid = std::min((n + block - 1) / block, perSm * prop.multiProcessorCount);
  square<<<std::min(grid, 64), block>>>(d, n);
  CHECK_RC(cudaGetLastError());

  cudaFuncAttributes attributes;
  CHECK_RC(cudaFuncGetAttributes(&attributes, reversePieces));
  const int piece = n / 3, bytes = piece * (int)sizeof(int);
  sane = sane && attributes.maxThreadsPerBlock >= 128 && attributes.sharedSizeBytes == 0;
  if ((size_t)bytes > prop.sharedMemPerBlock) {
    if ((size_t)bytes > prop.sharedMemPerBlockOptin) {
      puts("too little shared memory");
      return 1;
    }
    reversePieces<<<3, 256, bytes>>>(d, piece);  // refused: nobody has asked for so much yet
    cudaError_t refused = cudaGetLastError();
    printf("without the attribute: %s\n", cudaGetErrorName(refused));
    sane = sane && refused == cudaErrorInvalidValue;
    CHECK_RC(cudaFuncSetAttribute(reversePieces, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    CHECK_RC(cudaFuncSetAttribute(reversePieces, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
  }
  reversePieces<<<3, 256, bytes>>>(d, piece);
  CHECK_RC(cudaGetLastError());
  CHECK_RC(cudaMemcpy(got.data(), d, n * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK_RC(cudaFree(d));

  int wrong = 0;
  long long sum = 0;
  for (int p = 0; p < 3; p++)
    for (int i = 0; i < piece; i++) {
      int v = x[p * piece + piece - 1 - i];
      wrong += got[p * piece + i] != v * v;
      sum += (long long)got[p * piece + i] * (i % 7);
    }
  printf("checksum %lld\n", sum);
  printf("%s\n", wrong == 0 && sane ? "PASSED" : "FAILED");
  return wrong == 0 && sane ? 0 : 1;
}
