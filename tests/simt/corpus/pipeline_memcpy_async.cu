// title: asynchronous copies to shared memory: cg::memcpy_async, cuda::pipeline with stages, and the C-like primitives
// features: memcpy_async, libcu_pipeline, cooperative_groups, shared_memory, templates, alignment

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>

#include <cassert>
#include <iostream>
#include <numeric>
#include <vector>

#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;

constexpr size_t kBatch = 128;

__device__ void compute(int* global_out, const int* shared_in) {
  global_out[threadIdx.x] += shared_in[threadIdx.x] * 3 - shared_in[blockDim.x - 1 - threadIdx.x];
}

__global__ void with_memcpy_async(int* global_out, const int* global_in, size_t size, size_t batch_sz) {
  auto grid = cg::this_grid();
  auto block = cg::this_thread_block();
  assert(size == batch_sz * grid.size());
  extern __shared__ int shared[];
  size_t local_idx = block.thread_rank();
  for (size_t batch = 0; batch < batch_sz; ++batch) {
    size_t block_batch_idx = block.group_index().x * block.size() + grid.size() * batch;
    cg::memcpy_async(block, shared, global_in + block_batch_idx, sizeof(int) * block.size());
    cg::wait(block);
    (void)local_idx;
    compute(global_out + block.group_index().x * block.size(), shared);
    block.sync();
  }
}

__global__ void with_barrier(int* global_out, const int* global_in, size_t batch_sz) {
  auto grid = cg::this_grid();
  auto block = cg::this_thread_block();
  __shared__ int shared[kBatch];
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  if (block.thread_rank() == 0) init(&barrier, block.size());
  block.sync();
  for (size_t batch = 0; batch < batch_sz; ++batch) {
    size_t start = block.group_index().x * block.size() + grid.size() * batch;
    cuda::memcpy_async(block, shared, global_in + start, sizeof(int) * block.size(), barrier);
    barrier.arrive_and_wait();
    compute(global_out + block.group_index().x * block.size(), shared);
    barrier.arrive_and_wait();
  }
}

template <size_t stages_count>
__global__ void with_staging(int* global_out, const int* global_in, size_t batch_sz) {
  auto grid = cg::this_grid();
  auto block = cg::this_thread_block();
  extern __shared__ int shared[];  // stages_count * block.size()
  size_t shared_offset[stages_count];
  for (int s = 0; s < stages_count; ++s) shared_offset[s] = s * block.size();

  __shared__ cuda::pipeline_shared_state<cuda::thread_scope::thread_scope_block, stages_count> shared_state;
  auto pipeline = cuda::make_pipeline(block, &shared_state);
  auto block_batch = [&](size_t batch) -> int { return block.group_index().x * block.size() + grid.size() * batch; };
  for (size_t compute_batch = 0, fetch_batch = 0; compute_batch < batch_sz; ++compute_batch) {
    for (; fetch_batch < batch_sz && fetch_batch < (compute_batch + stages_count); ++fetch_batch) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, shared + shared_offset[fetch_batch % stages_count],
                         global_in + block_batch(fetch_batch), sizeof(int) * block.size(), pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    compute(global_out + block.group_index().x * block.size(), shared + shared_offset[compute_batch % stages_count]);
    pipeline.consumer_release();
  }
}

// Each thread copies for itself, four ints at once, two groups under way.
__global__ void with_primitives(int* global_out, const int* global_in, int batch_sz) {
  __shared__ __align__(16) int shared[2][kBatch];
  const int start = blockIdx.x * blockDim.x;
  auto fetch = [&](int batch) {
    if (batch < batch_sz && threadIdx.x < kBatch / 4)
      __pipeline_memcpy_async(&shared[batch % 2][4 * threadIdx.x],
                              global_in + start + batch * gridDim.x * blockDim.x + 4 * threadIdx.x, sizeof(int4));
    __pipeline_commit();
  };
  fetch(0);
  for (int batch = 0; batch < batch_sz; batch++) {
    fetch(batch + 1);
    __pipeline_wait_prior(1);
    __syncthreads();
    compute(global_out + start, shared[batch % 2]);
    __syncthreads();
  }
}

int main() {
  const size_t blocks = 3, batches = 6, per_batch = blocks * kBatch, size = per_batch * batches;
  std::vector<int> in(size), out(per_batch), expected(per_batch, 0);
  for (size_t i = 0; i < size; i++) in[i] = int((i * 2654435761u) >> 22) - 500;
  for (size_t batch = 0; batch < batches; batch++)
    for (size_t b = 0; b < blocks; b++)
      for (size_t t = 0; t < kBatch; t++) {
        const int* part = &in[batch * per_batch + b * kBatch];
        expected[b * kBatch + t] += part[t] * 3 - part[kBatch - 1 - t];
      }
  int *d_in, *d_out;
  auto must = [](cudaError_t e) {
    if (e != cudaSuccess) std::cerr << cudaGetErrorString(e) << std::endl, std::exit(1);
  };
  must(cudaMalloc(&d_in, size * sizeof(int)));
  must(cudaMalloc(&d_out, per_batch * sizeof(int)));
  must(cudaMemcpy(d_in, in.data(), size * sizeof(int), cudaMemcpyHostToDevice));

  bool ok = true;
  const char* names[] = {"memcpy_async", "barrier", "one stage", "two stages", "four stages", "primitives"};
  for (int version = 0; version < 6; version++) {
    must(cudaMemset(d_out, 0, per_batch * sizeof(int)));
    const size_t bytes = kBatch * sizeof(int);
    switch (version) {
      case 0: with_memcpy_async<<<blocks, kBatch, bytes>>>(d_out, d_in, size, batches); break;
      case 1: with_barrier<<<blocks, kBatch>>>(d_out, d_in, batches); break;
      case 2: with_staging<1><<<blocks, kBatch, bytes>>>(d_out, d_in, batches); break;
      case 3: with_staging<2><<<blocks, kBatch, 2 * bytes>>>(d_out, d_in, batches); break;
      case 4: with_staging<4><<<blocks, kBatch, 4 * bytes>>>(d_out, d_in, batches); break;
      case 5: with_primitives<<<blocks, kBatch>>>(d_out, d_in, batches); break;
    }
    must(cudaGetLastError());
    must(cudaMemcpy(out.data(), d_out, per_batch * sizeof(int), cudaMemcpyDeviceToHost));
    std::cout << names[version] << ": sum " << std::accumulate(out.begin(), out.end(), 0LL)
              << (out == expected ? "" : " WRONG") << "\n";
    ok = ok && out == expected;
  }
  must(cudaFree(d_in));
  must(cudaFree(d_out));
  std::cout << (ok ? "PASSED" : "FAILED") << std::endl;
  return ok ? 0 : 1;
}
