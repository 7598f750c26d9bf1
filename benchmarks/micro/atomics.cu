// Atomic additions to one word, to a word a lane, a word a warp; with their results used; aggregated by hand; and in floats.
// sizes: 12 22 (log2 of the threads)
#include "micro.h"

__global__ void one_counter(const int* x, int* counter) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (x[i] > 0) atomicAdd(counter, 1);
}

__global__ void one_sum(const int* x, int* counter) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(counter, x[i] ^ i);
}

__global__ void a_counter_a_lane(const int* x, int* counter) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&counter[i % 32], x[i] ^ i);
}

__global__ void a_counter_a_thread(const int* x, int* counter) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&counter[i], x[i]);
}

__global__ void a_place_for_each(const int* x, int* counter, int* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = atomicAdd(&counter[i % 1024], x[i]);
}

__global__ void aggregated(const int* x, int* counter) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int sum = x[i] ^ i;
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(counter, sum);
}

// A place in a list for each that wants one: a warp asks once, for all of its lanes. There are eight lists, one a warp of the block: of an
// address that is the same in all lanes nvcc adds the values up once more, by instructions of its own.
__global__ void a_place_in_a_list(const int* x, int* counter, int* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  const unsigned wanted = __ballot_sync(0xffffffffu, (x[i] ^ i) % 3 != 0);
  int first = 0;
  if (lane == 0) first = atomicAdd(&counter[threadIdx.x / 32], __popc(wanted));
  y[i] = __shfl_sync(0xffffffffu, first, 0) + __popc(wanted & ((1u << lane) - 1));
}

__global__ void one_float(const float* x, float* sum) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(sum, x[i]);
}

__global__ void a_float_a_lane(const float* x, float* sum) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&sum[i % 32], x[i]);
}

__global__ void largest(const int* x, int* most) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicMax(&most[i % 4096 / 8], x[i] ^ i);
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 12);
  int *x = memory<int>(n), *y = memory<int>(n), *z = memory<int>(n);
  measure("one counter", [&] { one_counter<<<n / 256, 256>>>(x, y); });
  measure("one sum", [&] { one_sum<<<n / 256, 256>>>(x, y); });
  measure("a counter a lane", [&] { a_counter_a_lane<<<n / 256, 256>>>(x, y); });
  measure("a counter a thread", [&] { a_counter_a_thread<<<n / 256, 256>>>(x, y); });
  measure("result used", [&] { a_place_for_each<<<n / 256, 256>>>(x, y, z); });
  measure("aggregated", [&] { aggregated<<<n / 256, 256>>>(x, y); });
  measure("a place in a list", [&] { a_place_in_a_list<<<n / 256, 256>>>(x, y, z); });
  measure("one float", [&] { one_float<<<n / 256, 256>>>((float*)x, (float*)y); });
  measure("a float a lane", [&] { a_float_a_lane<<<n / 256, 256>>>((float*)x, (float*)y); });
  measure("maximum", [&] { largest<<<n / 256, 256>>>(x, y); });
}
