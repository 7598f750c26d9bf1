"""Threads and blocks that work together: is the result right in every order that a GPU might run them in?"""

import pytest
import torch

import simt

SOURCE = (
    r"""
#include <torch/extension.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define I(t) t.data_ptr<int>()
#define P(t) t.data_ptr<float>()

__device__ unsigned int finished = 0;
__global__ void last_block_adds(const float* x, float* partial, float* out, int n) {
  __shared__ float s[128]; __shared__ bool last;
  int t = threadIdx.x; float v = 0;
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) v += x[i];
  s[t] = v; __syncthreads();
  for (int o = blockDim.x / 2; o > 0; o >>= 1) { if (t < o) s[t] += s[t + o]; __syncthreads(); }
  if (t == 0) { partial[blockIdx.x] = s[0]; __threadfence(); last = atomicInc(&finished, gridDim.x) == gridDim.x - 1; }
  __syncthreads();
  if (!last) return;
  v = 0; for (int i = t; i < gridDim.x; i += blockDim.x) v += ((volatile float*)partial)[i];
  s[t] = v; __syncthreads();
  for (int o = blockDim.x / 2; o > 0; o >>= 1) { if (t < o) s[t] += s[t + o]; __syncthreads(); }
  if (t == 0) { out[0] = s[0]; finished = 0; }
}
void run_last_block_adds(torch::Tensor x, torch::Tensor partial, torch::Tensor out) { """
    r"""last_block_adds<<<partial.numel(), 128>>>(P(x), P(partial), P(out), x.numel()); }

__device__ int lock = 0;
__global__ void lock_by_retrying(int* x) {
  bool done = false;
  while (!done) if (atomicCAS(&lock, 0, 1) == 0) { __threadfence(); x[0] = ((volatile int*)x)[0] + 1; """
    r"""__threadfence(); atomicExch(&lock, 0); done = true; }
}
__global__ void lock_by_one_thread(int* x) {
  if (threadIdx.x == 0) { while (atomicCAS(&lock, 0, 1) != 0); x[0] += 64; __threadfence(); atomicExch(&lock, 0); }
  __syncthreads();
}
__global__ void lock_lane_by_lane(int* x) {
  for (int i = 0; i < 32; i++) if (threadIdx.x % 32 == i) { while (atomicCAS(&lock, 0, 1) != 0); x[0] += 1; """
    r"""__threadfence(); atomicExch(&lock, 0); }
}
void run_lock_by_retrying(torch::Tensor x) { lock_by_retrying<<<8, 64>>>(I(x)); }
void run_lock_by_one_thread(torch::Tensor x) { lock_by_one_thread<<<8, 64>>>(I(x)); }
void run_lock_lane_by_lane(torch::Tensor x) { lock_lane_by_lane<<<8, 64>>>(I(x)); }

__global__ void take_turns(int* ticket, volatile int* done, int* x) {
  __shared__ int b;
  if (threadIdx.x == 0) b = atomicAdd(ticket, 1);      """
    r"""// blocks are numbered as they start, so an earlier one always runs
  __syncthreads();
  if (threadIdx.x == 0) { if (b > 0) while (done[b - 1] == 0) { } x[b] = (b > 0 ? x[b - 1] : 0) + 1; """
    r"""__threadfence(); done[b] = 1; }
}
void run_take_turns(torch::Tensor ticket, torch::Tensor done, torch::Tensor x) { """
    r"""take_turns<<<x.numel(), 32>>>(I(ticket), I(done), I(x)); }

__global__ void rotate_in_place(float* x, int n) {
  auto grid = cg::this_grid(); int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int r = 0; r < 3; r++) { float v = x[(i + 1) % n]; grid.sync(); x[i] = v; grid.sync(); }
}
void run_rotate_in_place(torch::Tensor x) { float* p = P(x); int n = x.numel(); void* a[] = {&p, &n}; """
    r"""cudaLaunchCooperativeKernel((void*)rotate_in_place, n / 64, 64, a, 0, 0); }
__global__ void shared_across_grid_sync(float* x) {
  __shared__ float s[64]; extern __shared__ float d[]; auto grid = cg::this_grid(); """
    r"""int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i; d[t] = 2 * i; cg::this_thread_block().sync(); grid.sync(); x[i] = s[63 - t] + d[63 - t];
}
void run_shared_across_grid_sync(torch::Tensor x) { float* p = P(x); void* a[] = {&p}; """
    r"""C10_CUDA_CHECK(cudaLaunchCooperativeKernel((void*)shared_across_grid_sync, dim3(x.numel() / 64), dim3(64), """
    r"""a, 64 * sizeof(float))); }

__global__ void rotate_by_barriers(float* x, int times) {
  extern __shared__ float s[]; int t = threadIdx.x; s[t] = x[t]; __syncthreads();
  for (int r = 0; r < times; r++) { float v = s[(t + 1) % blockDim.x]; __syncthreads(); s[t] = v; __syncthreads(); }
  x[t] = s[t];
}
void run_rotate_by_barriers(torch::Tensor x, int64_t times) { """
    r"""rotate_by_barriers<<<1, x.numel(), x.numel() * sizeof(float)>>>(P(x), times); }

__global__ void prefix_of_first(const float* x, float* y, int n) {
  int t = threadIdx.x; unsigned mask = __ballot_sync(0xffffffffu, t < n);
  if (t < n) { float v = x[t]; for (int o = 1; o < 32; o <<= 1) { float u = __shfl_up_sync(mask, v, o); """
    r"""if (t >= o) v += u; } y[t] = v; }
}
void run_prefix_of_first(torch::Tensor x, torch::Tensor y, int64_t n) { """
    r"""prefix_of_first<<<1, x.numel()>>>(P(x), P(y), n); }
__global__ void sums_of_sixteen(const float* x, float* y) {
  int t = threadIdx.x; float v = x[t]; for (int o = 8; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o, 16); """
    r"""y[t] = v;
}
void run_sums_of_sixteen(torch::Tensor x, torch::Tensor y) { sums_of_sixteen<<<1, x.numel()>>>(P(x), P(y)); }
__global__ void sums_of_eight(const float* x, float* y) {
  auto tile = cg::tiled_partition<8>(cg::tiled_partition<32>(cg::this_thread_block())); int t = threadIdx.x; """
    r"""float v = x[t];
  for (int o = tile.size() / 2; o > 0; o /= 2) v += tile.shfl_down(v, o);
  y[t] = tile.shfl(v, 0);
}
void run_sums_of_eight(torch::Tensor x, torch::Tensor y) { sums_of_eight<<<1, x.numel()>>>(P(x), P(y)); }
__global__ void numbered_by_one_atomic(int* counter, int* out) {
  if (threadIdx.x % 3 == 0) { auto g = cg::coalesced_threads(); int p; """
    r"""if (g.thread_rank() == 0) p = atomicAdd(counter, g.size()); out[threadIdx.x] = g.shfl(p, 0) + g.thread_rank(); }
}
void run_numbered_by_one_atomic(torch::Tensor counter, torch::Tensor out) { """
    r"""numbered_by_one_atomic<<<1, out.numel()>>>(I(counter), I(out)); }

__global__ void who_was_first(int* first) { if (threadIdx.x == 0) atomicCAS(first, -1, (int)blockIdx.x); """
    r"""atomicCAS(first + 1 + blockIdx.x, -1, (int)threadIdx.x); }
void run_who_was_first(torch::Tensor first) { who_was_first<<<first.numel() - 1, 50>>>(I(first)); }
"""
)
HOSTS = [line.split(" {")[0] for line in SOURCE.split("\n") if line.startswith("void run_")]


@pytest.fixture(scope="module")
def kernels():
    return simt.load_inline(
        "test_schedule",
        "\n".join(h + ";" for h in HOSTS),
        SOURCE,
        functions=[h.split("(")[0].split()[-1] for h in HOSTS],
    )


@pytest.fixture(params=["forward", "reverse", 0, 12345])
def order(request):
    with simt.run(schedule=request.param, seconds=5):
        yield request.param


def integers(n: int) -> torch.Tensor:
    return torch.zeros(n, dtype=torch.int32)


@pytest.mark.slow
def test_the_last_block_sees_all_others(kernels, order):
    """Does a sum in one launch, whose last block adds what the others left, work again and again?"""
    x = torch.randint(0, 9, (10000,)).float()
    for _ in range(3):
        out = torch.zeros(1)
        kernels.run_last_block_adds(x, torch.zeros(37), out)
        assert out.item() == x.sum().item()


@pytest.mark.parametrize("name", ["lock_by_retrying", "lock_by_one_thread", "lock_lane_by_lane"])
def test_spin_locks_exclude(kernels, order, name):
    """Do 512 increments under a spin lock all count, however the lock is taken?"""
    x = integers(1)
    getattr(kernels, f"run_{name}")(x)
    assert x.item() == 512


def test_blocks_can_wait_for_earlier_ones(kernels, order):
    """Does a chain of blocks in which each waits for the one that started before it end?"""
    x = integers(100)
    kernels.run_take_turns(integers(1), integers(100), x)
    assert x.tolist() == list(range(1, 101))


def test_a_grid_wide_sync_separates(kernels, order):
    """Does a cooperative kernel that reads its neighbour's element before anyone writes rotate the whole array?"""
    x = torch.arange(256.0)
    kernels.run_rotate_in_place(x)
    assert torch.equal(x, torch.arange(256.0).roll(-3))


def test_shared_memory_survives_a_grid_wide_sync(kernels, order):
    """Does each block find its own static and dynamic shared memory again after a grid-wide sync?"""
    x = torch.zeros(256)
    kernels.run_shared_across_grid_sync(x)
    assert torch.equal(x, 3 * torch.arange(256.0).view(4, 64).flip(1).reshape(-1))


@pytest.mark.parametrize("threads", [1, 31, 33, 1000, 1024])
def test_barriers_in_a_loop(kernels, order, threads):
    """Does a block of any size rotate its values step by step through shared memory?"""
    x = torch.arange(float(threads))
    kernels.run_rotate_by_barriers(x, 7)
    assert torch.equal(x, torch.arange(float(threads)).roll(-7))


@pytest.mark.parametrize(("threads", "n"), [(32, 32), (32, 20), (32, 1), (31, 31), (7, 5), (1, 1)])
def test_shuffles_in_a_part_of_a_warp(kernels, order, threads, n):
    """Is a prefix sum by shuffles right where only n lanes of the warp take part, or where it has fewer than 32?"""
    x, y = torch.arange(1.0, threads + 1), torch.zeros(threads)
    kernels.run_prefix_of_first(x, y, n)
    assert torch.equal(y[:n], x[:n].cumsum(0)) and (y[n:] == 0).all()


@pytest.mark.parametrize(("name", "width"), [("sums_of_sixteen", 16), ("sums_of_eight", 8)])
def test_shuffles_in_segments(kernels, order, name, width):
    """Do shuffles with a width, and tiles, stay in their segment of the warp?"""
    x, y = torch.arange(64.0), torch.zeros(64)
    getattr(kernels, f"run_{name}")(x, y)
    assert torch.equal(y, x.view(-1, width).sum(1, keepdim=True).expand(-1, width).reshape(-1))


def test_coalesced_threads_share_an_atomic(kernels, order):
    """Do the threads in a branch get distinct numbers from one atomicAdd?"""
    counter, out = integers(1), torch.full((32,), -1, dtype=torch.int32)
    kernels.run_numbered_by_one_atomic(counter, out)
    assert counter.item() == 11 and sorted(out[::3].tolist()) == list(range(11)) and (out[1::3] == -1).all()


def test_the_order_is_the_one_asked_for(kernels):
    """Do blocks and threads start first to last, last to first, and by a seed in an order that the seed repeats?"""

    def first(schedule):
        seen = torch.full((9,), -1, dtype=torch.int32)
        with simt.run(schedule=schedule):
            kernels.run_who_was_first(seen)
        return seen.tolist()

    assert first("forward")[1:] == [0] * 8 and first("reverse")[1:] == [49] * 8
    assert first(7)[1:] == first(7)[1:] and len({tuple(first(seed)[1:]) for seed in range(8)}) > 1
