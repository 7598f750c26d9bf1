// title: sums with cooperative groups: a group passed to a function, tiles, cg::reduce, one launch with a grid barrier
// features: cooperative_groups, grid_sync, reduction, cooperative_launch, templates

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace cg = cooperative_groups;

#define CUDA_TRY(expr)                                                               \
  do {                                                                               \
    if (cudaError_t e_ = (expr); e_ != cudaSuccess) {                                \
      std::fprintf(stderr, "%d: %s: %s\n", __LINE__, #expr, cudaGetErrorString(e_)); \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (0)

// Every thread of g calls it; thread 0 of the group gets the sum. The group may be of any kind.
template <typename Group>
__device__ int reduce_sum(Group g, int* temp, int val) {
  int lane = g.thread_rank();
  for (int i = g.size() / 2; i > 0; i /= 2) {
    temp[lane] = val;
    g.sync();
    if (lane < i) val += temp[lane + i];
    g.sync();
  }
  return val;
}

__device__ int thread_sum(const int* input, int n) {
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += blockDim.x * gridDim.x) {
    int4 in = reinterpret_cast<const int4*>(input)[i];
    sum += in.x + in.y + in.z + in.w;
  }
  return sum;
}

__global__ void sum_kernel_block(int* sum, const int* input, int n) {
  int my_sum = thread_sum(input, n);
  extern __shared__ int temp[];
  auto g = cg::this_thread_block();
  int block_sum = reduce_sum(g, temp, my_sum);
  if (g.thread_rank() == 0) atomicAdd(sum, block_sum);
}

template <int tile_sz>
__device__ int reduce_sum_tile_shfl(cg::thread_block_tile<tile_sz> g, int val) {
  for (int i = g.size() / 2; i > 0; i /= 2) val += g.shfl_down(val, i);
  return val;
}

template <int tile_sz>
__global__ void sum_kernel_tiles(int* sum, const int* input, int n) {
  int my_sum = thread_sum(input, n);
  auto tile = cg::tiled_partition<tile_sz>(cg::this_thread_block());
  int tile_sum = reduce_sum_tile_shfl<tile_sz>(tile, my_sum);
  if (tile.thread_rank() == 0) atomicAdd(sum, tile_sum);
}

__global__ void sum_kernel_tile_memory(int* sum, const int* input, int n) {
  extern __shared__ int temp[];
  int my_sum = thread_sum(input, n);
  cg::thread_block block = cg::this_thread_block();
  cg::thread_group tile32 = cg::tiled_partition(block, 32);
  int offset = block.thread_rank() - tile32.thread_rank();
  int tile_sum = reduce_sum(tile32, &temp[offset], my_sum);
  if (tile32.thread_rank() == 0) atomicAdd(sum, tile_sum);
}

__global__ void sum_kernel_cg_reduce(int* sum, int* most, const int* input, int n) {
  int mine = thread_sum(input, n);
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  int largest = cg::reduce(warp, mine, cg::greater<int>());
  int total = cg::reduce(warp, mine, cg::plus<int>());
  if (warp.thread_rank() == 0) {
    atomicAdd(sum, total);
    atomicMax(most, largest);
  }
}

__global__ void sum_kernel_grid(int* partial, int* sum, const int* input, int n) {
  extern __shared__ int temp[];
  cg::grid_group grid = cg::this_grid();
  cg::thread_block block = cg::this_thread_block();
  int block_sum = reduce_sum(block, temp, thread_sum(input, n));
  if (block.thread_rank() == 0) partial[blockIdx.x] = block_sum;
  cg::sync(grid);
  if (grid.thread_rank() == 0)
    for (int b = 0; b < gridDim.x; b++) *sum += partial[b];
}

int main() {
  int n = 1 << 13, blockSize = 128, nBlocks = 8;
  int sharedBytes = blockSize * sizeof(int);
  int *sum, *data, *partial, *most;
  CUDA_TRY(cudaMallocManaged(&sum, sizeof(int)));
  CUDA_TRY(cudaMallocManaged(&most, sizeof(int)));
  CUDA_TRY(cudaMallocManaged(&data, n * sizeof(int)));
  CUDA_TRY(cudaMalloc(&partial, nBlocks * sizeof(int)));
  int expected = 0;
  std::vector<int> by_thread(blockSize * nBlocks, 0);
  for (int i = 0; i < n; i++) {
    data[i] = (i * 17) % 29 - 3;
    expected += data[i];
    by_thread[(i / 4) % by_thread.size()] += data[i];
  }
  int expected_most = -1000000;
  for (int v : by_thread) expected_most = v > expected_most ? v : expected_most;

  int failures = 0;
  auto show = [&](const char* name) {
    CUDA_TRY(cudaGetLastError());
    CUDA_TRY(cudaDeviceSynchronize());
    std::printf("%-14s %d\n", name, *sum);
    failures += *sum != expected;
    *sum = 0;
  };
  *sum = 0;
  *most = -1000000;
  sum_kernel_block<<<nBlocks, blockSize, sharedBytes>>>(sum, data, n);
  show("block");
  sum_kernel_tiles<32><<<nBlocks, blockSize>>>(sum, data, n);
  show("tiles of 32");
  sum_kernel_tiles<16><<<nBlocks, blockSize>>>(sum, data, n);
  show("tiles of 16");
  sum_kernel_tiles<4><<<nBlocks, blockSize>>>(sum, data, n);
  show("tiles of 4");
  sum_kernel_tile_memory<<<nBlocks, blockSize, sharedBytes>>>(sum, data, n);
  show("tile memory");
  sum_kernel_cg_reduce<<<nBlocks, blockSize>>>(sum, most, data, n);
  show("cg::reduce");
  std::printf("largest sum of a thread %d\n", *most);
  failures += *most != expected_most;

  int cooperative = 0;
  CUDA_TRY(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
  if (!cooperative) {
    std::fprintf(stderr, "this device has no cooperative launch\n");
    return 1;
  }
  void* arguments[] = {&partial, &sum, &data, &n};
  CUDA_TRY(
      cudaLaunchCooperativeKernel((void*)sum_kernel_grid, dim3(nBlocks), dim3(blockSize), arguments, sharedBytes, 0));
  show("grid");

  CUDA_TRY(cudaFree(sum));
  CUDA_TRY(cudaFree(most));
  CUDA_TRY(cudaFree(data));
  CUDA_TRY(cudaFree(partial));
  std::puts(failures ? "FAILED" : "PASSED");
  return failures ? 1 : 0;
}
