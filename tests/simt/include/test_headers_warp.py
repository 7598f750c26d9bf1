"""simt/warp.h and simt/atomic.h against what the CUDA programming guide says, lane by lane in Python."""

from __future__ import annotations

import random

import pytest
import torch

import simt
from tests.simt.kernels_of_expressions import DEVICE, ON_GPU, load

WARPS = 2  # every check runs in a block of two warps
THREADS = 32 * WARPS

_SOURCE = (
    """
template <class T>
__global__ void shuffles(const int* plan, int steps, const T* values, T* out) {
  int t = threadIdx.x;
  for (int s = 0; s < steps; ++s) {
    int kind = plan[3 * s], width = plan[3 * s + 1], operand = plan[3 * s + 2];
    T v = values[t], r = v;
    if (kind == 0) r = __shfl_sync(0xffffffff, v, operand, width);
    if (kind == 1) r = __shfl_up_sync(0xffffffff, v, operand, width);
    if (kind == 2) r = __shfl_down_sync(0xffffffff, v, operand, width);
    if (kind == 3) r = __shfl_xor_sync(0xffffffff, v, operand, width);
    if (kind == 4) r = __shfl_sync(0xffffffff, v, t * 7 + operand, width);   // each lane asks another
    out[s * blockDim.x + t] = r;
  }
}
template <class T>
void launch(torch::Tensor plan, torch::Tensor values, torch::Tensor out) {
  shuffles<T><<<1, values.numel()>>>(plan.data_ptr<int>(), plan.size(0), POINTER(T, values), POINTER(T, out));
}
void shuffle(std::string type, torch::Tensor plan, torch::Tensor values, torch::Tensor out) {
  if (type == "int") launch<int>(plan, values, out);
  if (type == "unsigned") launch<unsigned>(plan, values, out);
  if (type == "long") launch<long>(plan, values, out);
  if (type == "long long") launch<long long>(plan, values, out);
  if (type == "unsigned long long") launch<unsigned long long>(plan, values, out);
  if (type == "float") launch<float>(plan, values, out);
  if (type == "double") launch<double>(plan, values, out);
  if (type == "half") launch<half>(plan, values, out);
  if (type == "half2") launch<half2>(plan, values, out);
  if (type == "bfloat16") launch<nv_bfloat16>(plan, values, out);
}

__global__ void masked(const unsigned* masks, int steps, const int* values, unsigned* out) {
  int t = threadIdx.x, lane = t % 32;
  for (int s = 0; s < steps; ++s) {
    unsigned mask = masks[s];
    unsigned* row = out + (s * blockDim.x + t) * 16;
    for (int i = 0; i < 16; ++i) row[i] = 0;
    int v = values[s * blockDim.x + t], all = 7;
    if (mask >> lane & 1) {
      row[0] = __ballot_sync(mask, v & 1);
      row[1] = __any_sync(mask, v & 1);
      row[2] = __all_sync(mask, v & 2);
      row[3] = __match_any_sync(mask, v);
      row[4] = __match_all_sync(mask, v & 4, &all);
      row[5] = all;
      row[6] = __reduce_add_sync(mask, v);
      row[7] = __reduce_min_sync(mask, v - 5);
      row[8] = __reduce_max_sync(mask, (unsigned)v);
      row[9] = __reduce_and_sync(mask, (unsigned)v);
      row[10] = __reduce_or_sync(mask, (unsigned)v);
      row[11] = __reduce_xor_sync(mask, (unsigned)v);
      row[12] = __shfl_sync(mask, v, __ffs(mask) - 1);
      row[13] = __match_any_sync(mask, (v & 3) * 0.5) == __match_any_sync(mask, (long long)(v & 3) << 40);
      row[14] = __reduce_max_sync(mask, v - 5);
      row[15] = __reduce_min_sync(mask, (unsigned)v);
    }
    __syncwarp();
  }
}
void vote(torch::Tensor masks, torch::Tensor values, torch::Tensor out) {
  masked<<<1, values.size(1)>>>(POINTER(unsigned, masks), masks.numel(), values.data_ptr<int>(), """
    """POINTER(unsigned, out));
}

__global__ void block_votes(const int* values, int steps, int* out) {
  int t = threadIdx.x + threadIdx.y * blockDim.x, n = blockDim.x * blockDim.y;
  for (int s = 0; s < steps; ++s) {
    int v = values[s * n + t];
    out[(s * n + t) * 3] = __syncthreads_count(v & 3);
    out[(s * n + t) * 3 + 1] = __syncthreads_and(v & 3) != 0;
    out[(s * n + t) * 3 + 2] = __syncthreads_or(v & 3) != 0;
  }
}
void block_vote(torch::Tensor values, torch::Tensor out) {
  block_votes<<<1, dim3(values.size(1) / 4, 4)>>>(values.data_ptr<int>(), values.size(0), out.data_ptr<int>());
}

__global__ void divergent(unsigned* out) {
  int t = threadIdx.x;
  unsigned together = 0;
  if (t % 3 == 0) together = __activemask();
  __syncwarp();
  out[t] = together;
}
void active(torch::Tensor out) { divergent<<<1, out.numel()>>>(POINTER(unsigned, out)); }

__global__ void neighbours(const int* x, int* out) {
  __shared__ int tile[64];
  int t = threadIdx.x;
  tile[t] = x[t];
  __syncwarp();
  out[t] = tile[t ^ 31];
}
void exchange_by_shared(torch::Tensor x, torch::Tensor out) { """
    """neighbours<<<1, 64>>>(x.data_ptr<int>(), out.data_ptr<int>()); }

__global__ void early_return(const float* x, float* out) {
  int t = threadIdx.x;
  if (t >= 20) return;
  out[t] = __shfl_down_sync(0xffffffff, x[t], 10);
}
void read_returned(torch::Tensor x, torch::Tensor out) { """
    """early_return<<<1, 32>>>(x.data_ptr<float>(), out.data_ptr<float>()); }

__global__ void all_atomics(const int* x, int n, int* i, unsigned* u, unsigned long long* l, float* f, double* d, """
    """int* old) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  int v = x[t];
  old[t] = atomicAdd(&i[0], 1);
  atomicAdd(&i[1], v); atomicSub(&i[2], v); atomicMin(&i[3], v); atomicMax(&i[4], v);
  atomicAnd(&i[5], ~(1 << (v & 31))); atomicOr(&i[6], 1 << (v & 31)); atomicXor(&i[7], v);
  atomicMax((unsigned*)&i[8], (unsigned)v);
  atomicInc(&u[0], 6); atomicDec(&u[1], 6); atomicAdd(&u[2], (unsigned)v); atomicMin(&u[3], (unsigned)v);
  atomicAdd(&l[0], (unsigned long long)v << 20); atomicMax(&l[1], (unsigned long long)v << 20);
  atomicMin((long long*)&l[2], (long long)v << 20); atomicOr(&l[3], 1ull << (v & 63));
  atomicAdd(&f[0], (float)v); atomicAdd(&d[0], (double)v); atomicAdd_block(&f[2], 0.0f);
  // float maximum by compare and swap
  int seen = __float_as_int(f[1]), assumed;
  do { assumed = seen; seen = atomicCAS((int*)&f[1], assumed, """
    """__float_as_int(fmaxf((float)v, __int_as_float(assumed)))); } while (assumed != seen);
  if (t == 0) { i[9] = atomicExch(&i[10], 77); f[3] = atomicExch(&f[4], 2.5f); u[4] = atomicCAS(&u[5], 1u, 9u); """
    """u[6] = atomicCAS(&u[7], 5u, 9u); }
}
void atomics(torch::Tensor x, torch::Tensor i, torch::Tensor u, torch::Tensor l, torch::Tensor f, torch::Tensor d, """
    """torch::Tensor old) {
  int n = x.numel();
  all_atomics<<<(n + 63) / 64, 64>>>(x.data_ptr<int>(), n, i.data_ptr<int>(), POINTER(unsigned, u), """
    """POINTER(unsigned long long, l),
                                     f.data_ptr<float>(), d.data_ptr<double>(), old.data_ptr<int>());
}

__global__ void clocks(long long* out) {
  long long start = clock64();
  __nanosleep(1000);
  __threadfence_block(); __threadfence(); __threadfence_system();
  out[0] = clock64() - start;
  float4 v = __ldcs((const float4*)(out + 2));
  __stcg((float4*)(out + 4), v);
}
void take_time(torch::Tensor out) { clocks<<<1, 1>>>((long long*)out.data_ptr()); }
"""
)


@pytest.fixture(scope="module")
def kernels():
    return load(
        _SOURCE,
        [
            "void shuffle(std::string type, torch::Tensor plan, torch::Tensor values, torch::Tensor out)",
            "void vote(torch::Tensor masks, torch::Tensor values, torch::Tensor out)",
            "void block_vote(torch::Tensor values, torch::Tensor out)",
            "void active(torch::Tensor out)",
            "void exchange_by_shared(torch::Tensor x, torch::Tensor out)",
            "void read_returned(torch::Tensor x, torch::Tensor out)",
            "void atomics(torch::Tensor x, torch::Tensor i, torch::Tensor u, torch::Tensor l, torch::Tensor f, "
            "torch::Tensor d, torch::Tensor old)",
            "void take_time(torch::Tensor out)",
        ],
    )


# ---- shuffles ----


def source_lane(kind: int, lane: int, operand: int, width: int) -> int:
    """The lane whose value the programming guide says a shuffle returns."""
    first = lane // width * width
    last = first + width - 1
    if kind == 4:
        operand += lane * 7
    if kind in (0, 4):
        return first + operand % width  # "srcLane modulo width"
    operand %= 32  # only five bits reach the hardware
    if kind == 1:
        return lane - operand if lane - operand >= first else lane  # "no wrap around the value of width"
    if kind == 2:
        return lane + operand if lane + operand <= last else lane
    return lane ^ operand if lane ^ operand <= last else lane  # earlier groups may be read, later ones not


PLAN = [(k, w, o) for k in range(5) for w in (1, 2, 4, 8, 16, 32) for o in (0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31)]
PLAN += [(k, w, o) for k in (1, 2, 3) for w in (8, 32) for o in (32, 33, 47)] + [(0, 16, 35), (0, 32, 40)]

TYPES = {
    "int": torch.int32,
    "unsigned": torch.int32,
    "long": torch.int64,
    "long long": torch.int64,
    "unsigned long long": torch.int64,
    "float": torch.float32,
    "double": torch.float64,
    "half": torch.float16,
    "half2": torch.float32,
    "bfloat16": torch.bfloat16,
}


@pytest.mark.slow
@pytest.mark.parametrize("type", TYPES)
def test_shuffles_read_the_lane_that_the_guide_says(kernels, type):
    """Does every shuffle, width and distance give the right lane's value, bit for bit?"""
    bits = torch.randint(-(2**63), 2**63 - 1, (THREADS,), dtype=torch.int64, generator=torch.Generator().manual_seed(1))
    size = torch.empty(0, dtype=TYPES[type]).element_size()
    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}[size]
    values = bits.to(integers).to(DEVICE)
    out = torch.zeros(len(PLAN), THREADS, dtype=integers, device=DEVICE)
    kernels.shuffle(type, torch.tensor(PLAN, dtype=torch.int32, device=DEVICE), values, out)
    wanted = [[t // 32 * 32 + source_lane(k, t % 32, o, w) for t in range(THREADS)] for k, w, o in PLAN]
    assert torch.equal(out.cpu(), values.cpu()[torch.tensor(wanted)])


@pytest.mark.slow
@pytest.mark.skipif(ON_GPU, reason="undefined on a GPU")
def test_a_lane_that_returned_reads_as_never_written(kernels):
    """Does a shuffle from a lane that is gone show the mark of unwritten memory?"""
    x, out = torch.arange(32.0), torch.zeros(32)
    kernels.read_returned(x, out)
    assert out[:10].tolist() == list(range(10, 20))
    assert (out[10:20].view(torch.int32) == simt.SHARED_MARK).all()


# ---- votes, matches, reductions ----


def _wanted(mask: int, values: list[int], lane: int) -> list[int]:
    lanes = [x for x in range(32) if mask >> x & 1]
    if lane not in lanes:
        return [0] * 16
    group = [values[x] for x in lanes]

    def of(test):
        return sum(1 << x for x in lanes if test(values[x]))

    same = len({v & 4 for v in group}) == 1
    xor, conjunction, disjunction = 0, 2**32 - 1, 0
    for v in group:
        xor, conjunction, disjunction = xor ^ v, conjunction & v, disjunction | v
    return [
        of(lambda v: v & 1),
        int(any(v & 1 for v in group)),
        int(all(v & 2 for v in group)),
        of(lambda v: v == values[lane]),
        mask if same else 0,
        int(same),
        sum(group),
        (min(group) - 5) % 2**32,
        max(group),
        conjunction,
        disjunction,
        xor,
        values[lanes[0]],
        1,
        (max(group) - 5) % 2**32,
        min(group),
    ]


def test_votes_matches_and_reductions(kernels):
    """Do the collectives on whole and partial warps agree with the same sets in Python?"""
    numbers = random.Random(3)
    masks = [0xFFFFFFFF, 0xFFFF, 0xAAAAAAAA, 1, 0x80000000] + [
        numbers.getrandbits(32) | 1 << numbers.randrange(32) for _ in range(15)
    ]
    values = [
        [numbers.choice([2, 3, 6, 7, numbers.randrange(1000)]) if s % 3 else 2 + 4 * (s % 2) for _ in range(THREADS)]
        for s in range(len(masks))
    ]
    out = torch.zeros(len(masks), THREADS, 16, dtype=torch.int32, device=DEVICE)
    signed = [m - 2**32 if m >> 31 else m for m in masks]
    kernels.vote(
        torch.tensor(signed, dtype=torch.int32, device=DEVICE),
        torch.tensor(values, dtype=torch.int32, device=DEVICE),
        out,
    )
    got = (out.cpu().long() & 0xFFFFFFFF).tolist()
    for s, mask in enumerate(masks):
        for t in range(THREADS):
            warp = values[s][t // 32 * 32 : t // 32 * 32 + 32]
            assert got[s][t] == _wanted(mask, warp, t % 32), (hex(mask), t)


def test_block_votes(kernels):
    """Do the barriers that count see every thread of a two-dimensional block, none twice?"""
    numbers = random.Random(4)
    rows = [[0] * 96, [1] * 96, [4] * 96, [0] * 95 + [2]] + [
        [numbers.randrange(5) for _ in range(96)] for _ in range(6)
    ]
    out = torch.zeros(len(rows), 96, 3, dtype=torch.int32, device=DEVICE)
    kernels.block_vote(torch.tensor(rows, dtype=torch.int32, device=DEVICE), out)
    for row, got in zip(rows, out.tolist(), strict=True):
        yes = sum(bool(v & 3) for v in row)
        assert got == [[yes, int(yes == 96), int(yes > 0)]] * 96


def test_active_mask_names_the_lanes_in_the_branch(kernels):
    """Do the lanes inside a branch see each other, and those outside nothing?"""
    out = torch.zeros(THREADS, dtype=torch.int32, device=DEVICE)
    kernels.active(out)
    for t, got in enumerate((out.cpu().long() & 0xFFFFFFFF).tolist()):
        first = t // 32 * 32
        assert got == (sum(1 << (x - first) for x in range(first, first + 32) if x % 3 == 0) if t % 3 == 0 else 0)


def test_syncwarp_orders_shared_memory(kernels):
    """Is what another lane wrote to shared memory there after __syncwarp()?"""
    x = torch.randperm(64, dtype=torch.int32).to(DEVICE)
    out = torch.zeros_like(x)
    kernels.exchange_by_shared(x, out)
    assert torch.equal(out, x[torch.arange(64, device=DEVICE) ^ 31])


# ---- atomics ----


def test_atomics_lose_nothing(kernels):
    """Do many blocks at once leave what one after the other would, and see every value between?"""
    n = 5000
    x = torch.randint(0, 1000, (n,), dtype=torch.int32, generator=torch.Generator().manual_seed(2))
    values = x.tolist()
    i, u, f = torch.zeros(16, dtype=torch.int32), torch.zeros(16, dtype=torch.int32), torch.zeros(8)
    i[3], i[5], i[10] = 10**9, -1, 5
    u[3], u[5], u[7] = 10**9, 1, 1
    length, d = torch.zeros(4, dtype=torch.int64), torch.zeros(1, dtype=torch.float64)
    length[2], f[4] = 2**60, 1.25
    old = torch.zeros(n, dtype=torch.int32)
    x, i, u, length, f, d, old = (t.to(DEVICE) for t in (x, i, u, length, f, d, old))
    kernels.atomics(x, i, u, length, f, d, old)
    assert sorted(old.tolist()) == list(range(n))
    cleared, set_, xor = -1, 0, 0
    for v in values:
        cleared, set_, xor = cleared & ~(1 << (v & 31)), set_ | 1 << (v & 31), xor ^ v

    def signed(w):
        return (w & 2**32 - 1) - (2**32 if w >> 31 & 1 else 0)

    assert i[:11].tolist() == [
        n,
        sum(values),
        -sum(values),
        min(values),
        max(values),
        signed(cleared),
        signed(set_),
        xor,
        max(values),
        5,
        77,
    ]
    downs = 0
    for _ in range(n):
        downs = 6 if downs == 0 or downs > 6 else downs - 1
    assert u[:8].tolist() == [n % 7, downs, sum(values), min(values), 1, 9, 1, 1]
    assert length.tolist() == [
        sum(values) << 20,
        max(values) << 20,
        min(values) << 20,
        signed_64(sum({1 << (v & 63) for v in values})),
    ]
    assert f[:5].tolist() == [float(sum(values)), float(max(values)), 0.0, 1.25, 2.5]
    assert d.tolist() == [float(sum(values))]


def signed_64(w: int) -> int:
    return w - 2**64 if w >> 63 else w


def test_clock_and_hints(kernels):
    """Does the clock move, and do cached loads and stores move whole vectors?"""
    out = torch.zeros(8, dtype=torch.int64, device=DEVICE)
    out[2], out[3] = 123, 456
    kernels.take_time(out)
    assert out[0] > 0
    assert out[4:6].tolist() == [123, 456]


@pytest.mark.skipif(ON_GPU and torch.cuda.get_device_capability() < (9, 0), reason="needs compute capability 9.0")
def test_vector_atomics():
    """Does atomicAdd on float2 and float4 add each element?"""
    module = load(
        """
__global__ void add(float4* a, float2* b) { atomicAdd(a, make_float4(1, 2, 3, 4)); atomicAdd(b, make_float2(5, 6)); }
void run(torch::Tensor x) { add<<<10, 32>>>((float4*)x.data_ptr<float>(), (float2*)(x.data_ptr<float>() + 4)); }
""",
        ["void run(torch::Tensor x)"],
    )
    x = torch.zeros(8, device=DEVICE)
    module.run(x)
    assert x.tolist() == [320.0 * k for k in (1, 2, 3, 4, 5, 6, 0, 0)]
