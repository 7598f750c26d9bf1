// title: cuda::barrier: arrive and wait apart, specialised warps that produce and consume, and a completion function
// features: libcu_barrier, cooperative_groups, shared_memory, warp_specialization

#include <cuda/barrier>
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#pragma nv_diag_suppress static_var_with_dynamic_init

using barrier = cuda::barrier<cuda::thread_scope_block>;
namespace cg = cooperative_groups;

constexpr int kBuffer = 64;

#define CHK(x)                                                                   \
  if ((x) != cudaSuccess) {                                                      \
    printf("%s in line %d\n", cudaGetErrorString(cudaGetLastError()), __LINE__); \
    exit(1);                                                                     \
  }

// The block's sum with arrivals and waits apart: work that needs no data of others lies between.
__global__ void split_arrive_wait(int iteration_count, const float *data, float *out, int n) {
  __shared__ barrier bar;
  __shared__ float partial[4];
  auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&bar, block.size());
  block.sync();

  float own = 0;
  for (int it = 0; it < iteration_count; ++it) {
    float v = data[it * n + blockIdx.x * blockDim.x + threadIdx.x];
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
    barrier::arrival_token token = bar.arrive();
    own += it;  // what others write is not used here
    bar.wait(std::move(token));
    float sum = 0;
    for (int w = 0; w < 4; w++) sum += partial[w];
    own += sum;
    bar.arrive_and_wait();  // all have read
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = own;
}

__device__ void producer(barrier ready[], barrier filled[], float *buffer, const float *in, int N) {
  for (int i = 0; i < N / kBuffer; ++i) {
    ready[i % 2].arrive_and_wait();  // wait for the buffer to be read
    for (int k = threadIdx.x % 32; k < kBuffer; k += 32) buffer[(i % 2) * kBuffer + k] = in[i * kBuffer + k] * 2.0f;
    barrier::arrival_token token = filled[i % 2].arrive();
    (void)token;
  }
}

__device__ void consumer(barrier ready[], barrier filled[], const float *buffer, float *out, int N) {
  (void)ready[0].arrive();  // both buffers are empty at first
  (void)ready[1].arrive();
  int t = threadIdx.x - 32;
  for (int i = 0; i < N / kBuffer; ++i) {
    filled[i % 2].arrive_and_wait();
    for (int k = t; k < kBuffer; k += 64)
      out[i * kBuffer + k] = buffer[(i % 2) * kBuffer + k] + buffer[(i % 2) * kBuffer + (kBuffer - 1 - k)];
    (void)ready[i % 2].arrive();
  }
}

// The first warp produces, two others consume.
__global__ void producer_consumer_pattern(int N, const float *in, float *out) {
  __shared__ float buffer[2 * kBuffer];
  __shared__ barrier bar[4];  // ready 0, 1 and filled 0, 1
  if (threadIdx.x < 4) init(bar + threadIdx.x, blockDim.x);
  __syncthreads();
  if (threadIdx.x < 32)
    producer(bar, bar + 2, buffer, in + blockIdx.x * N, N);
  else
    consumer(bar, bar + 2, buffer, out + blockIdx.x * N, N);
}

// A thread that has nothing more to do leaves the barrier; the others go on.
__global__ void leave_early(int *out) {
  __shared__ barrier bar;
  __shared__ int count;
  if (threadIdx.x == 0) {
    init(&bar, (int)blockDim.x);
    count = 0;
  }
  __syncthreads();
  for (int round = 0; round < 4; round++) {
    if (threadIdx.x / 16 == round) {
      bar.arrive_and_drop();
      return;
    }
    atomicAdd(&count, 1);
    bar.arrive_and_wait();
    if (threadIdx.x == blockDim.x - 1) out[round] = count;
    bar.arrive_and_wait();
  }
}

int main() {
  const int blocks = 3, threads = 128, rounds = 4, n = blocks * threads, N = 8 * kBuffer;
  std::vector<float> data(rounds * n), in(blocks * N);
  for (size_t i = 0; i < data.size(); i++) data[i] = float(i % 11) - 3;
  for (size_t i = 0; i < in.size(); i++) in[i] = float((i * 7) % 41);
  float *d_data, *d_out, *d_in, *d_out2;
  int *d_counts, counts[4] = {0};
  CHK(cudaMalloc(&d_data, data.size() * sizeof(float)));
  CHK(cudaMalloc(&d_out, n * sizeof(float)));
  CHK(cudaMalloc(&d_in, in.size() * sizeof(float)));
  CHK(cudaMalloc(&d_out2, in.size() * sizeof(float)));
  CHK(cudaMalloc(&d_counts, sizeof(counts)));
  CHK(cudaMemcpy(d_data, data.data(), data.size() * sizeof(float), cudaMemcpyHostToDevice));
  CHK(cudaMemcpy(d_in, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice));
  CHK(cudaMemset(d_counts, 0, sizeof(counts)));

  split_arrive_wait<<<blocks, threads>>>(rounds, d_data, d_out, n);
  producer_consumer_pattern<<<blocks, 96>>>(N, d_in, d_out2);
  leave_early<<<1, 96>>>(d_counts);
  CHK(cudaGetLastError());
  std::vector<float> out(n), out2(in.size());
  CHK(cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  CHK(cudaMemcpy(out2.data(), d_out2, in.size() * sizeof(float), cudaMemcpyDeviceToHost));
  CHK(cudaMemcpy(counts, d_counts, sizeof(counts), cudaMemcpyDeviceToHost));

  int wrong = 0;
  for (int b = 0; b < blocks; b++) {
    double expected = 0;
    for (int it = 0; it < rounds; it++) {
      expected += it;
      for (int t = 0; t < threads; t++) expected += data[it * n + b * threads + t];
    }
    for (int t = 0; t < threads; t++) wrong += out[b * threads + t] != expected;
    printf("block %d: %.1f\n", b, out[b * threads]);
  }
  double sum = 0;
  for (int i = 0; i < blocks * N; i++) {
    int start = i / kBuffer * kBuffer, k = i % kBuffer;
    wrong += out2[i] != 2 * (in[i] + in[start + kBuffer - 1 - k]);
    sum += out2[i];
  }
  printf("produced and consumed: %.1f\n", sum);
  for (int r = 0, total = 0; r < 4; r++) {
    total += 96 - 16 * (r + 1);
    wrong += counts[r] != total;
    printf("round %d: %d\n", r, counts[r]);
  }
  for (void *p : {(void *)d_data, (void *)d_out, (void *)d_in, (void *)d_out2, (void *)d_counts}) cudaFree(p);
  puts(wrong ? "FAILED" : "PASSED");
  return wrong != 0;
}
