"""Checked builds of tensor-core fragments, asynchronous copies, libcu++ and cub: defects are named, sound kernels are
not.
"""

from __future__ import annotations

import pytest
import torch

import simt
from tests.simt.kernels_of_expressions import _INCLUDES, ON_GPU, load

pytestmark = pytest.mark.skipif(ON_GPU, reason="checks run on the CPU")

_SOURCE = """
#include <cuda_pipeline.h>
#include <cooperative_groups/memcpy_async.h>
#include <cub/cub.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <mma.h>
using namespace nvcuda;
namespace cg = cooperative_groups;
using Block = cuda::barrier<cuda::thread_scope_block>;
typedef cub::BlockReduce<float, 64> Reduce;

// x: 1024 floats, h: 256 halves, out: 1024 floats; blocks of 64 threads. Odd cases have one defect.
__global__ void cases(int n, const float* x, const half* h, float* out, unsigned* counter) {
  __shared__ __align__(32) half tile[256];
  __shared__ __align__(16) float room[128];
  __shared__ typename Reduce::TempStorage temp;
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ Block bar;
  auto block = cg::this_thread_block();
  int t = threadIdx.x;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::col_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  if (n <= 5) {
    if (n != 5) for (int i = t; i < 256; i += 64) tile[i] = h[i];
    if (n != 3) __syncthreads();
    wmma::fill_fragment(c, 0.0f);
    wmma::load_matrix_sync(a, h, n == 1 ? 24 : 16);                             // past the end
    wmma::load_matrix_sync(b, tile, 16);                                        // tile
    wmma::mma_sync(c, a, b, c);
    for (int i = 0; i < c.num_elements; ++i) c.x[i] *= 2;
    wmma::store_matrix_sync(out + 256 * (t / 32) + (n == 2 ? 512 : 0), c, 16, wmma::mem_col_major);
  }
  if (n >= 6 && n <= 9) {
    float sum = 0;
    __pipeline_memcpy_async(&room[t], x + (n == 9 ? 1000 : 0) + t, 4);          // from
    __pipeline_commit();
    for (int i = 1; i < 5; ++i) {
      __pipeline_memcpy_async(&room[i % 2 * 64 + t], x + 64 * i + t, 4);        // next
      __pipeline_commit();
      if (n != 7) __pipeline_wait_prior(1);
      __syncthreads();
      sum += room[(i - 1) % 2 * 64 + 63 - t];                                   // use
      __syncthreads();
    }
    out[t] = sum;
  }
  if (n == 10 || n == 11) {
    float sum = Reduce(temp).Sum(x[t]);                                         // first
    if (n == 10) __syncthreads();
    float most = Reduce(temp).Reduce(x[t], cub::Max());                         // second
    if (t == 0) out[blockIdx.x] = sum + most;
  }
  if (n == 12 || n == 13) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> arrived(*counter);
    __shared__ bool last;
    if (t == 0) {
      out[blockIdx.x] = blockIdx.x;                                             // message
      last = arrived.fetch_add(1, n == 12 ? cuda::memory_order_acq_rel : cuda::memory_order_relaxed) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t < gridDim.x) out[64 + t] = out[t] + 1;                        // received
  }
  if (n == 14 || n == 15) {
    if (t == 0) init(&bar, 64);
    __syncthreads();
    room[t] = x[t];                                                             // give
    Block::arrival_token token = bar.arrive();
    if (n == 14) bar.wait(std::move(token));
    out[t] = room[63 - t];                                                      // take
    if (n == 15) bar.wait(std::move(token));
  }
  if (n == 16 || n == 17) {
    auto pipe = cuda::make_pipeline(block, &state);
    float sum = 0;
    for (int done = 0, asked = 0; done < 4; ++done) {
      for (; asked < 4 && asked < done + 2; ++asked) {
        pipe.producer_acquire();
        cuda::memcpy_async(block, room + asked % 2 * 64, x + asked * 64, sizeof(float) * 64, pipe);  // stage's copy
        pipe.producer_commit();
      }
      if (n == 16) pipe.consumer_wait();
      sum += room[done % 2 * 64 + 63 - t];                                      // stage
      if (n == 17) pipe.consumer_wait();
      pipe.consumer_release();
    }
    out[t] = sum;
  }
  if (n == 18 || n == 19) {
    cg::memcpy_async(block, room, x, 256);                                      // together
    if (n == 18) cg::wait(block);
    else block.sync();
    out[t] = room[63 - t];                                                      // copied
  }
  if (n == 20 || n == 21) {
    if (t == 0) init(&bar, 64);
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 5; ++i) {
      room[t] = x[64 * i + t];                                                  // fill
      bar.arrive_and_wait();
      sum += room[63 - t];                                                      // drain
      if (n == 20) bar.wait(bar.arrive());
    }
    out[t] = sum;
  }
  if (n == 22 || n == 23) {
    unsigned old = *counter, assumed;                                           // guess
    if (n == 23) atomicAdd(counter, old);                                       // add
    else do {
      assumed = old;
      old = atomicCAS(counter, assumed, __float_as_uint(x[t] + __uint_as_float(assumed)));
    } while (assumed != old);
  }
  if (n >= 24 && n <= 27) {
    auto tile = cg::tiled_partition<32>(block);
    unsigned first;
    if (tile.thread_rank() == 0) first = atomicAdd(counter, 32);
    if (n == 24) first = __shfl_sync(~0u, first, 0);
    if (n == 25) first = __shfl_sync(~0u, first, 1);                            // lane 1
    if (n == 26) first = tile.shfl(first, 0);
    if (n == 27) first = tile.shfl(first, 1);                                   // rank 1
    if (n % 2 == 0) out[(first + tile.thread_rank()) % 1024] = 1;
  }
}
void run(int n, int blocks, torch::Tensor x, torch::Tensor h, torch::Tensor out, torch::Tensor counter) {
  cases<<<blocks, 64>>>(n, x.data_ptr<float>(), POINTER(half, h), out.data_ptr<float>(), POINTER(unsigned, counter));
}
"""


@pytest.fixture(scope="module")
def kernels():
    return load(
        _SOURCE,
        ["void run(int n, int blocks, torch::Tensor x, torch::Tensor h, torch::Tensor out, torch::Tensor counter)"],
    )


def _findings(kernels, n: int, blocks: int = 1) -> list[simt.Finding]:
    x = torch.randn(1024, generator=torch.Generator().manual_seed(1))
    with simt.check() as report:
        kernels.run(n, blocks, x, torch.randn(256).half(), torch.zeros(1024), torch.zeros(1, dtype=torch.int32))
    return report.findings


def _line(marker: str) -> int:
    return next(i for i, text in enumerate((_INCLUDES + _SOURCE).split("\n"), 1) if text.endswith(marker))


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 2, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26])
def test_no_finding_on_sound_kernels(kernels, n):
    """Do the ways in which these wait for each other count as order between their accesses?"""
    findings = _findings(kernels, n, blocks=5 if n in (12, 22, 24, 26) else 1)
    assert not findings, "\n".join(map(str, findings))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "check", "line", "other"),
    [
        (1, "out_of_bounds", "// past the end", None),
        (3, "race", "// tile", None),
        (5, "uninitialized", "// tile", None),
        (7, "race", "// use", "// from"),
        (9, "out_of_bounds", "// from", None),
        (11, "race", "// first", "// second"),
        (13, "race", "// received", "// message"),
        (15, "race", "// take", "// give"),
        (17, "race", "// stage", "// stage's copy"),
        (19, "race", "// copied", "// together"),
        (21, "race", "// drain", "// fill"),
        (23, "race", "// guess", "// add"),
        (25, "uninitialized", "// lane 1", None),
        (27, "uninitialized", "// rank 1", None),
    ],
)
def test_a_defect_is_named_with_its_line(kernels, n, check, line, other):
    """Is the one defect found where the student wrote the call, and rightly named?"""
    findings = [f for f in _findings(kernels, n, blocks=5 if n == 13 else 1) if f.check == check]
    assert findings, f"no {check}"
    lines = {(f.line, f.other_line) for f in findings}
    assert any(_line(line) in pair and (other is None or _line(other) in pair) for pair in lines), lines
