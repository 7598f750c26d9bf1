"""cuda::atomic and cuda::atomic_ref against the same operations on Python's numbers."""

from __future__ import annotations

import random

import pytest
import torch

from tests.simt.kernels_of_expressions import DEVICE, load

# name: (type in CUDA, torch's, bits, signed)
_INTEGERS = {
    "int": (torch.int32, 32, True),
    "unsigned": (torch.int32, 32, False),
    "long long": (torch.int64, 64, True),
    "unsigned long long": (torch.int64, 64, False),
}
_SOURCE = (
    """
#include <cuda/atomic>
#include <cuda/std/limits>

// Every operation once, by one thread: the value before, the value after.
template <class T, class A>
__device__ void each(A a, T v, T w, T* out, T& object) {
  int n = 0;
#define TELL(expression) { a.store(v); out[n++] = (T)(expression); out[n++] = object; }
  TELL(a.load())
  TELL(a.exchange(w))
  TELL(a.fetch_add(w))
  TELL(a.fetch_sub(w, cuda::memory_order_relaxed))
  TELL(a.fetch_and(w, cuda::memory_order_acquire))
  TELL(a.fetch_or(w, cuda::memory_order_release))
  TELL(a.fetch_xor(w, cuda::memory_order_acq_rel))
  TELL(a.fetch_min(w, cuda::std::memory_order_seq_cst))
  TELL(a.fetch_max(w))
  TELL(a++)
  TELL(++a)
  TELL(a--)
  TELL(--a)
  TELL(a += w)
  TELL(a -= w)
  TELL(a &= w)
  TELL(a |= w)
  TELL(a ^= w)
  TELL(a = w)
  T expected = w;
  TELL(a.compare_exchange_strong(expected, v ^ w))
  out[n++] = expected;
  TELL(a.compare_exchange_strong(expected, v ^ w, cuda::memory_order_acq_rel, cuda::memory_order_relaxed))
  out[n++] = expected;
#undef TELL
}
template <class T>
__global__ void operations(const T* x, T* out, int n) {
  __shared__ T room;
  if (threadIdx.x) return;
  for (int i = 0; i < n; ++i) {
    each<T>(cuda::atomic_ref<T, cuda::thread_scope_device>(out[(i + 1) * 48 - 1]), x[2 * i], x[2 * i + 1], """
    """out + i * 48, out[(i + 1) * 48 - 1]);
    T first = out[i * 48];
    each<T>(cuda::atomic_ref<T, cuda::thread_scope_block>(room), x[2 * i], x[2 * i + 1], out + i * 48, room);
    out[(i + 1) * 48 - 2] = first;
  }
}
void run(std::string type, torch::Tensor x, torch::Tensor out) {
  int n = x.numel() / 2;
#define RUN(T) if (type == #T) operations<T><<<1, 2>>>(POINTER(T, x), POINTER(T, out), n);
  RUN(int) RUN(unsigned) RUN(long long) RUN(unsigned long long)
}

__global__ void totals(const float* x, float* sums, double* wide, int* extremes, int n) {
  __shared__ cuda::atomic<int, cuda::thread_scope_block> here;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) here = 0;
  __syncthreads();
  if (i < n) {
    cuda::atomic_ref<float, cuda::thread_scope_device>(sums[0]).fetch_add(x[i], cuda::memory_order_relaxed);
    cuda::atomic_ref<double, cuda::thread_scope_device>(wide[0]).fetch_add(x[i], cuda::memory_order_relaxed);
    cuda::atomic_ref<int>(extremes[0]).fetch_min((int)(x[i] * 1000));
    cuda::atomic_ref<int>(extremes[1]).fetch_max((int)(x[i] * 1000));
    here.fetch_add(1, cuda::memory_order_relaxed);
  }
  __syncthreads();
  if (threadIdx.x == 0) cuda::atomic_ref<int>(extremes[2]) += here.load();
}
void total(torch::Tensor x, torch::Tensor sums, torch::Tensor wide, torch::Tensor extremes) {
  totals<<<(x.numel() + 127) / 128, 128>>>(x.data_ptr<float>(), sums.data_ptr<float>(), wide.data_ptr<double>(), """
    """extremes.data_ptr<int>(), x.numel());
}

// A message from block to block: the last block to come adds up what all have left.
__device__ cuda::atomic<unsigned, cuda::thread_scope_device> arrived{0};
__global__ void last_block(float* partial, float* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = blockIdx.x + 1.0f;
    last = arrived.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) sum += partial[b];
    *out = sum;
    arrived = 0;
  }
}
void add_last(torch::Tensor partial, torch::Tensor out) { """
    """last_block<<<partial.numel(), 32>>>(partial.data_ptr<float>(), out.data_ptr<float>()); }

// Two threads of two warps of one block hand a value back and forth.
__global__ void ping_pong(int* out, int rounds) {
  __shared__ cuda::atomic<int, cuda::thread_scope_block> ball;
  __shared__ int value;
  if (threadIdx.x == 0) { ball = 0; value = 0; }
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    int own = threadIdx.x / 32;
    for (int i = own; i < rounds; i += 2) {
      for (int seen = ball.load(cuda::memory_order_acquire); seen != i; """
    """seen = ball.load(cuda::memory_order_acquire)) ball.wait(seen);
      value = value * 3 + own;
      ball.store(i + 1, cuda::memory_order_release);
      ball.notify_all();
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) { out[0] = value; out[1] = ball; }
}
void hand_over(torch::Tensor out, int rounds) { ping_pong<<<1, 64>>>(out.data_ptr<int>(), rounds); }

__global__ void others(float* f, int** pointers, int* out) {
  cuda::atomic_ref<float> a(f[0]);
  out[0] = (int)a.exchange(2.5f);
  out[1] = (int)(a.fetch_sub(1.0f) * 10);
  out[2] = (int)(a.load() * 10);
  float expected = 1.5f;
  out[3] = a.compare_exchange_weak(expected, 7.0f);
  cuda::atomic_ref<int*> p(pointers[0]);
  int* before = p.fetch_add(3);
  out[4] = p.load() - before;
  out[5] = p.fetch_sub(1) - before;
  cuda::std::atomic<int> plain{5};
  out[6] = plain++ + plain.load();
  out[7] = cuda::std::numeric_limits<int>::max();
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
  out[8] = a.is_lock_free();
  out[9] = (int)f[0];
}
void other(torch::Tensor f, torch::Tensor room, torch::Tensor out) {
  others<<<1, 1>>>(f.data_ptr<float>(), (int**)room.data_ptr(), out.data_ptr<int>());
}
"""
)


@pytest.fixture(scope="module")
def kernels():
    return load(
        _SOURCE,
        [
            "void run(std::string type, torch::Tensor x, torch::Tensor out)",
            "void total(torch::Tensor x, torch::Tensor sums, torch::Tensor wide, torch::Tensor extremes)",
            "void add_last(torch::Tensor partial, torch::Tensor out)",
            "void hand_over(torch::Tensor out, int rounds)",
            "void other(torch::Tensor f, torch::Tensor room, torch::Tensor out)",
        ],
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", _INTEGERS)
def test_every_operation(kernels, name):
    """Does each operation return and leave what the C++ standard says, in global and in shared memory?"""
    dtype, bits, signed = _INTEGERS[name]
    pick = random.Random(name)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
    pairs = [(pick.randrange(low, high), pick.randrange(low, high)) for _ in range(40)] + [
        (0, 0),
        (low, high - 1),
        (high - 1, 1),
        (5, 5),
    ]

    def wrap(n: int) -> int:
        n &= 2**bits - 1
        return n - 2**bits if signed and n >> (bits - 1) else n

    x = torch.tensor([_as_signed(n, bits) for pair in pairs for n in pair], dtype=dtype)
    out = torch.zeros(len(pairs) * 48, dtype=dtype, device=DEVICE)
    kernels.run(name, x.to(DEVICE), out)
    for (v, w), got in zip(pairs, out.view(-1, 48).tolist(), strict=True):
        same = v == w
        expected = [
            v, v, v, w, v, v + w, v, v - w, v, v & w, v, v | w, v, v ^ w, v, min(v, w), v, max(v, w),
            v, v + 1, v + 1, v + 1, v, v - 1, v - 1, v - 1, v + w, v + w, v - w, v - w, v & w, v & w,
            v | w, v | w, v ^ w, v ^ w, w, w, int(same), v ^ w if same else v, w if same else v, 1, v ^ w, v,
        ]  # fmt: skip
        if same:
            expected[-3:] = [1, v ^ w, v]
        expected = [_as_signed(wrap(e), bits) for e in expected]
        assert got[: len(expected)] == expected, (v, w)
        assert got[46] == _as_signed(v, bits)


def _as_signed(n: int, bits: int) -> int:
    n &= 2**bits - 1
    return n - 2**bits if n >> (bits - 1) else n


def test_threads_of_all_blocks_add_up(kernels):
    """Is no addition, minimum or maximum lost?"""
    x = torch.randint(-8, 9, (5000,), generator=torch.Generator().manual_seed(4)).float()
    sums, wide = torch.zeros(1, device=DEVICE), torch.zeros(1, dtype=torch.float64, device=DEVICE)
    extremes = torch.tensor([10**6, -(10**6), 0], dtype=torch.int32, device=DEVICE)
    kernels.total(x.to(DEVICE), sums, wide, extremes)
    assert sums.item() == x.sum().item() == wide.item()
    assert extremes.tolist() == [x.min().item() * 1000, x.max().item() * 1000, 5000]


def test_the_last_block(kernels):
    """Does the block that comes last see what the others wrote before they arrived?"""
    for blocks in (1, 7, 300):
        partial, out = torch.zeros(blocks, device=DEVICE), torch.zeros(1, device=DEVICE)
        kernels.add_last(partial, out)
        assert out.item() == blocks * (blocks + 1) / 2


def test_wait_lets_the_other_thread_go_on(kernels):
    """Do two threads of a block that wait for each other's store take turns?"""
    out = torch.zeros(2, dtype=torch.int32, device=DEVICE)
    kernels.hand_over(out, 12)
    value = 0
    for i in range(12):
        value = value * 3 + i % 2
    assert out.tolist() == [value, 12]


def test_floats_pointers_and_the_standard_s_names(kernels):
    """Do floats, pointers and cuda::std::atomic work?"""
    out = torch.zeros(10, dtype=torch.int32, device=DEVICE)
    kernels.other(torch.tensor([4.0], device=DEVICE), torch.zeros(1, dtype=torch.int64, device=DEVICE), out)
    assert out.tolist() == [4, 25, 15, 1, 3, 3, 11, 2**31 - 1, 1, 7]
