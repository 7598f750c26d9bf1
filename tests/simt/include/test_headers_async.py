"""Asynchronous copies, cuda::barrier and cuda::pipeline: data are there after the wait, and on the CPU not before."""

from __future__ import annotations

import pytest
import torch

from tests.simt.include.async_kernels import HEADERS, X, make_declarations, run_kernel
from tests.simt.kernels_of_expressions import ON_GPU, load

_SOURCE = (
    HEADERS
    + """
// Sums of tiles of 64 through two buffers: the copy of the next tile is under way while this one is added up.
__global__ void buffered(const float* x, float* out, int n) {
  __shared__ float tile[2][64];
  int t = threadIdx.x;
  float sum = 0;
  __pipeline_memcpy_async(&tile[0][t], x + t, 4);
  __pipeline_commit();
  for (int i = 0; i < n; ++i) {
    if (i + 1 < n) __pipeline_memcpy_async(&tile[(i + 1) % 2][t], x + (i + 1) * 64 + t, sizeof(float));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    sum += tile[i % 2][63 - t];
    __syncthreads();
  }
  out[t] = sum;
}
KERNEL(buffered)

__global__ void widths(const float* x, float* out, int n) {
  __shared__ float4 room[64];
  float* mine = (float*)&room[threadIdx.x];
  for (int i = 0; i < 4; ++i) mine[i] = -1;
  const float* from = x + 4 * threadIdx.x;
  if (n == 16) __pipeline_memcpy_async(mine, from, 16);
  if (n == 8) __pipeline_memcpy_async(mine + 2, from + 2, 8);
  if (n == 4) __pipeline_memcpy_async(mine + 3, from + 1, 4);
  if (n == 12) __pipeline_memcpy_async(mine, from, 16, 12);     // 4 bytes read, 12 zero
  if (n == 0) __pipeline_memcpy_async(mine, from, 16, 16);      // nothing read
  if (n == 6) __pipeline_memcpy_async(mine, from, 8, 6);        // 2 bytes read
  __pipeline_commit();
  __pipeline_wait_prior(0);
  for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = mine[i];
}
KERNEL(widths)

// What stands there after each wait: on the CPU a copy arrives as late as it may.
__global__ void late(const float* x, float* out, int n) {
  __shared__ float a[64], b[64], c[64];
  int t = threadIdx.x;
  a[t] = b[t] = c[t] = -1;
  __pipeline_memcpy_async(&a[t], x + t, 4);
  __pipeline_commit();
  __pipeline_memcpy_async(&b[t], x + t, 4);
  __pipeline_commit();
  __pipeline_memcpy_async(&c[t], x + t, 4);
  out[t] = a[t];                 // not waited for
  __pipeline_wait_prior(1);
  out[64 + t] = a[t];            // here
  out[128 + t] = b[t];           // may still be under way
  __pipeline_wait_prior(0);
  out[192 + t] = b[t];           // here
  out[256 + t] = c[t];           // not committed
  __pipeline_commit();
  __pipeline_wait_prior(0);
  out[320 + t] = c[t];           // here
}
KERNEL(late)

// Any number of bytes from and to any address.
__global__ void bytes(const float* x, float* out, int n) {
  __shared__ __align__(16) char room[160];
  auto block = cg::this_thread_block();
  int from = n / 10000, to = n / 100 % 100, size = n % 100;
  for (int i = threadIdx.x; i < 160; i += 64) room[i] = -1;
  __syncthreads();
  cg::memcpy_async(block, room + to, (const char*)x + from, size);
  cg::wait(block);
  for (int i = threadIdx.x; i < 160; i += 64) ((char*)out)[i] = room[i];
}
KERNEL(bytes)

__global__ void stages(const float* x, float* out, int n) {
  __shared__ float tile[2][128];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, tile[0], x, cuda::aligned_size_t<16>(512));
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    if (i + 1 < n) {
      cg::memcpy_async(block, tile[(i + 1) % 2], x + 128 * (i + 1), cuda::aligned_size_t<16>(512));
      cg::wait_prior<1>(block);
    } else {
      cg::wait(block);
    }
    sum += tile[i % 2][threadIdx.x] * tile[i % 2][127 - threadIdx.x];
    block.sync();
  }
  out[threadIdx.x] = sum;
}
KERNEL(stages)

__global__ void group_late(const float* x, float* out, int n) {
  __shared__ float a[64];
  int t = threadIdx.x;
  auto block = cg::this_thread_block();
  a[t] = -1;
  block.sync();
  cg::memcpy_async(block, a, x, 256);
  out[t] = a[t];                       // copied by this thread itself
  cg::wait(block);
  out[64 + t] = a[63 - t];
}
KERNEL(group_late)

using Barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void rounds(const float* x, float* out, int n) {
  __shared__ Barrier bar;
  __shared__ float room[64];
  int t = threadIdx.x;
  if (t == 0) init(&bar, blockDim.x);
  __syncthreads();
  float v = x[t];
  for (int i = 0; i < n; ++i) {
    room[t] = v;
    Barrier::arrival_token token = bar.arrive();
    v = v * 0.5f;
    bar.wait(std::move(token));
    v += room[(t + 1) % 64];
    bar.arrive_and_wait();
  }
  out[t] = v;
}
KERNEL(rounds)

// Half of the threads only give: they arrive and do not wait. Some leave.
__global__ void givers(const float* x, float* out, int n) {
  __shared__ Barrier full;
  __shared__ float room[32];
  int t = threadIdx.x;
  if (t == 0) init(&full, 64);
  __syncthreads();
  if (t >= 32) {
    room[t - 32] = x[t];
    (void)full.arrive();
    return;
  }
  full.arrive_and_wait();
  out[t] = room[31 - t];
  if (t == 5) { full.arrive_and_drop(); return; }
  full.arrive(t == 0 ? 33 : 1);
  full.wait_parity(true);
  out[32 + t] = room[t];
}
KERNEL(givers)

__global__ void joined(const float* x, float* out, int n) {
  __shared__ Barrier bar;
  __shared__ __align__(16) float room[64];
  int t = threadIdx.x;
  auto block = cg::this_thread_block();
  room[t] = -1;
  if (t == 0) init(&bar, block.size());
  block.sync();
  cuda::memcpy_async(block, room, x, cuda::aligned_size_t<16>(256), bar);
  out[t] = room[t];
  bar.arrive_and_wait();
  out[64 + t] = room[63 - t];
  bar.arrive_and_wait();
  cuda::memcpy_async(&room[t], &x[63 - t], sizeof(float), bar);       // each thread its own
  bar.arrive_and_wait();
  out[128 + t] = room[63 - t];
}
KERNEL(joined)

__global__ void alone(const float* x, float* out, int n) {
  __shared__ float room[2][64];
  int t = threadIdx.x;
  room[0][t] = room[1][t] = -1;
  auto pipe = cuda::make_pipeline();
  for (int i = 0; i < 2; ++i) {
    pipe.producer_acquire();
    cuda::memcpy_async(&room[i][t], x + i * 64 + t, sizeof(float), pipe);
    pipe.producer_commit();
  }
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    cuda::pipeline_consumer_wait_prior<1>(pipe);
    sum += room[i % 2][t] * (i + 1);
    pipe.consumer_release();
    pipe.producer_acquire();
    if (i + 2 < n) cuda::memcpy_async(&room[i % 2][t], x + (i + 2) * 64 + t, sizeof(float), pipe);
    pipe.producer_commit();
  }
  out[t] = sum;
}
KERNEL(alone)

// All threads fill and empty two stages.
__global__ void unified(const float* x, float* out, int n) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ float room[2][64];
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int t = threadIdx.x;
  float sum = 0;
  for (int done = 0, asked = 0; done < n; ++done) {
    for (; asked < n && asked < done + 2; ++asked) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, room[asked % 2], x + asked * 64, sizeof(float) * 64, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += room[done % 2][63 - t] * (done + 1);
    pipe.consumer_release();
  }
  out[t] = sum;
}
KERNEL(unified)

// The second warp fills, the first one empties.
__global__ void parted(const float* x, float* out, int n) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ float room[2][32];
  auto block = cg::this_thread_block();
  int t = threadIdx.x;
  auto role = t < 32 ? cuda::pipeline_role::consumer : cuda::pipeline_role::producer;
  auto pipe = cuda::make_pipeline(block, &state, role);
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    if (role == cuda::pipeline_role::producer) {
      pipe.producer_acquire();
      cuda::memcpy_async(&room[i % 2][t - 32], x + i * 32 + t - 32, sizeof(float), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      sum += room[i % 2][31 - t] * (i + 1);
      pipe.consumer_release();
    }
  }
  out[t] = sum;
}
KERNEL(parted)
"""
)
_NAMES = [
    "buffered",
    "widths",
    "late",
    "bytes",
    "stages",
    "group_late",
    "rounds",
    "givers",
    "joined",
    "alone",
    "unified",
    "parted",
]


@pytest.fixture(scope="module")
def kernels():
    return load(_SOURCE, make_declarations(_NAMES))


_early = pytest.mark.skipif(ON_GPU, reason="a GPU's copy may come early")


@pytest.mark.slow
def test_two_buffers(kernels):
    """Does a tile that was copied while the one before was in use come out right?"""
    expected = sum((X[64 * i : 64 * i + 64].flip(0) for i in range(9)), torch.zeros(64))
    assert torch.equal(run_kernel(kernels, "buffered", X, 64, 9), expected)


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (16, lambda x: x),
        (8, lambda x: torch.stack([x[:, 0] * 0 - 1, x[:, 0] * 0 - 1, x[:, 2], x[:, 3]], 1)),
        (4, lambda x: torch.stack([x[:, 0] * 0 - 1] * 3 + [x[:, 1]], 1)),
        (12, lambda x: torch.stack([x[:, 0]] + [x[:, 0] * 0] * 3, 1)),
        (0, lambda x: x * 0),
        (
            6,
            lambda x: torch.stack(
                [
                    (x[:, 0].contiguous().view(torch.int32) & 0xFFFF).view(torch.float32),
                    x[:, 0] * 0,
                    x[:, 0] * 0 - 1,
                    x[:, 0] * 0 - 1,
                ],
                1,
            ),
        ),
    ],
)
def test_widths_and_zeros(kernels, n, expected):
    """Are 4, 8 and 16 bytes copied, and the end filled with zeros where the program says so?"""
    assert torch.equal(run_kernel(kernels, "widths", X, 256, n).view(64, 4), expected(X[:256].view(64, 4)))


@_early
def test_a_copy_is_there_once_waited_for_and_not_before(kernels):
    """Does a kernel that reads before its wait see what was there before?"""
    seen = run_kernel(kernels, "late", X, 384, 0).view(6, 64)
    for row, there in enumerate([False, True, False, True, False, True]):
        assert torch.equal(seen[row], X[:64] if there else torch.full((64,), -1.0)), row


@pytest.mark.parametrize(
    "where",
    [
        (0, 0, 99),
        (0, 16, 64),
        (1, 1, 37),
        (3, 3, 50),
        (4, 8, 12),
        (2, 6, 10),
        (2, 4, 6),
        (1, 2, 9),
        (7, 0, 1),
        (8, 24, 40),
        (0, 0, 0),
    ],
)
def test_any_bytes(kernels, where):
    """Is a group's copy exact for any alignment, and nothing beside it touched?"""
    source, target, size = where
    out = run_kernel(kernels, "bytes", X, 40, source * 10000 + target * 100 + size).view(torch.int8)
    expected = torch.full((160,), -1, dtype=torch.int8)
    expected[target : target + size] = X.view(torch.int8)[source : source + size]
    assert torch.equal(out, expected)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_group_in_stages(kernels, n):
    """Does wait_prior<1> leave the newest copy under way and bring the one before?"""
    tiles = X[: 128 * n].view(n, 128)
    products = [t[:64].double() * t.flip(0)[:64].double() for t in tiles]
    rounding = n * 2**-24 * sum(p.abs() for p in products)  # of n products added in any order, fused or not
    assert ((run_kernel(kernels, "stages", X, 64, n).double() - sum(products)).abs() <= 2 * rounding).all()


@_early
def test_a_group_s_copy_is_there_once_waited_for(kernels):
    """The same for cooperative_groups::memcpy_async."""
    seen = run_kernel(kernels, "group_late", X, 128, 0)
    assert torch.equal(seen[:64], torch.full((64,), -1.0)) and torch.equal(seen[64:], X[:64].flip(0))


def test_barrier_rounds(kernels):
    """Does arrive then wait keep the rounds of all threads apart?"""
    v = X[:64].clone()
    for _ in range(5):
        v = v * 0.5 + v.roll(-1)
    assert torch.allclose(run_kernel(kernels, "rounds", X, 64, 5), v, rtol=1e-6)


def test_threads_that_only_arrive_and_threads_that_drop_out(kernels):
    """Are arrivals counted, also several at once, and is one fewer expected after arrive_and_drop()?"""
    out = run_kernel(kernels, "givers", X, 64, 0)
    assert torch.equal(out[:32], X[32:64].flip(0))
    assert torch.equal(out[32:37], X[32:37]) and torch.equal(out[38:64], X[38:64]) and out[37] == 5


def test_copies_that_a_barrier_waits_for(kernels):
    """Are the copies of all threads there after the barrier, and on the CPU not before?"""
    out = run_kernel(kernels, "joined", X, 192, 0)
    if not ON_GPU:
        assert torch.equal(out[:64], torch.full((64,), -1.0))
    assert torch.equal(out[64:128], X[:64].flip(0)) and torch.equal(out[128:], X[:64])


@pytest.mark.parametrize("n", [2, 3, 8])
def test_a_pipeline_of_one_thread(kernels, n):
    """Does pipeline_consumer_wait_prior bring the older of two batches?"""
    expected = sum((X[64 * i : 64 * i + 64] * (i + 1) for i in range(n)), torch.zeros(64))
    assert torch.allclose(run_kernel(kernels, "alone", X, 64, n), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 9])
def test_a_pipeline_of_a_block(kernels, n):
    """Does each stage hold its tile while it is used, with all threads filling and emptying?"""
    expected = sum((X[64 * i : 64 * i + 64].flip(0) * (i + 1) for i in range(n)), torch.zeros(64))
    assert torch.allclose(run_kernel(kernels, "unified", X, 64, n), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 9])
def test_producers_and_consumers(kernels, n):
    """The same with one warp that fills and one that empties."""
    expected = sum((X[32 * i : 32 * i + 32].flip(0) * (i + 1) for i in range(n)), torch.zeros(32))
    out = run_kernel(kernels, "parted", X, 64, n)
    assert torch.allclose(out[:32], expected, rtol=1e-5, atol=1e-6) and torch.equal(out[32:], torch.zeros(32))
