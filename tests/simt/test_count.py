"""Counting mode: do the counters say what a brute-force count of the same threads says, lane by lane and warp by warp?"""

import json
import math
import random
from collections import Counter
from pathlib import Path

import pytest
import torch

import simt
from simt import counts

SOURCE = r"""
#include <torch/extension.h>

// Lane l touches element index[l] of a table, or none where that is negative.
template <class T>
__global__ void global_access(const int* index, const T* from, T* to) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int at = index[t];                                                  // @index
  if (at < 0) return;
  const T value = from[at];                                                 // @global load
  to[at] = value;                                                           // @global store
}

template <class T>
__global__ void shared_access(const int* index, float* out) {
  __shared__ T table[1024];
  const int t = threadIdx.x, at = index[blockIdx.x * blockDim.x + t];
  volatile char* raw = (volatile char*)table;
  if (t == 0) raw[0] = 0;
  __syncthreads();
  if (at < 0) return;
  const T value = table[at];                                                // @shared load
  __syncwarp(__activemask());
  table[at] = value;                                                        // @shared store
  if (t < 0) out[t] = raw[5];
}

#define CASES(name, ...)                                                                         \
  void run_##name(std::string type, torch::Tensor index, torch::Tensor a, torch::Tensor b, int threads) { \
    const int blocks = index.numel() / threads;                                                  \
    const int* at = index.data_ptr<int>();                                                       \
    if (type == "char") name<char><<<blocks, threads>>>(at, __VA_ARGS__(char));                  \
    if (type == "short") name<short><<<blocks, threads>>>(at, __VA_ARGS__(short));               \
    if (type == "float") name<float><<<blocks, threads>>>(at, __VA_ARGS__(float));               \
    if (type == "double") name<double><<<blocks, threads>>>(at, __VA_ARGS__(double));            \
    if (type == "float4") name<float4><<<blocks, threads>>>(at, __VA_ARGS__(float4));            \
  }
#define TABLES(T) (const T*)a.data_ptr(), (T*)b.data_ptr()
#define NOTHING(T) (float*)b.data_ptr()
CASES(global_access, TABLES)
CASES(shared_access, NOTHING)

__global__ void transposed(const float* x, float* y, int pad) {
  extern __shared__ float tile[];
  const int c = threadIdx.x, r = threadIdx.y;
  tile[r * (32 + pad) + c] = x[r * 32 + c];                                 // @tile rows
  __syncthreads();
  y[r * 32 + c] = tile[c * (32 + pad) + r];                                 // @tile columns
}
void run_transposed(torch::Tensor x, torch::Tensor y, int pad) {
  transposed<<<1, dim3(32, 32), 32 * (32 + pad) * 4>>>(x.data_ptr<float>(), y.data_ptr<float>(), pad);
}

__global__ void bins(const int* to, int* count, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&count[to[i]], 1);                                   // @atomic
}
void run_bins(torch::Tensor to, torch::Tensor count) {
  bins<<<(to.numel() + 127) / 128, 128>>>(to.data_ptr<int>(), count.data_ptr<int>(), to.numel());
}
__global__ void shared_bins(const int* to, int* count, int n) {
  __shared__ int own[64];
  if (threadIdx.x < 64) own[threadIdx.x] = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&own[to[i]], 1);                                     // @shared atomic
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&count[threadIdx.x], own[threadIdx.x]);
}
void run_shared_bins(torch::Tensor to, torch::Tensor count) {
  shared_bins<<<(to.numel() + 127) / 128, 128>>>(to.data_ptr<int>(), count.data_ptr<int>(), to.numel());
}

// An atomic addition of something else than 1.
__global__ void shared_sums(const int* to, int* sums) {
  __shared__ int own[64];
  if (threadIdx.x < 64) own[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&own[to[threadIdx.x]], threadIdx.x);                            // @shared sum
  __syncthreads();
  if (threadIdx.x < 64) sums[threadIdx.x] = own[threadIdx.x];
}
void run_shared_sums(torch::Tensor to, torch::Tensor sums) { shared_sums<<<1, 128>>>(to.data_ptr<int>(), sums.data_ptr<int>()); }

__constant__ float weight[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
__device__ float offset[32];
__global__ void weighted(const float* x, float* y, int n) {
  const int t = threadIdx.x;
  float sum = offset[t % 32];                                               // @device variable
  for (int k = 0; k < n; k++)
    sum += x[t] * weight[k];                                                // @constant
  y[t] = sum + weight[t % 9];                                               // @constants
}
void run_weighted(torch::Tensor x, torch::Tensor y, int n) { weighted<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n); }

__global__ void early(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = x[i];                                                              // @early
}
void run_early(torch::Tensor x, torch::Tensor y, int n, int blocks, int threads) {
  early<<<blocks, threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
}

// A thread's own number of steps, far more than what is kept of it at once, with and without barriers between.
__global__ void long_loops(volatile const float* x, float* y, const int* steps, int meet) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int round = 0; round < 3; round++) {
    for (int k = 0; k < steps[i]; k++)                                      // @steps
      sum += x[k % 64];                                                     // @long
    if (meet) __syncthreads();                                              // @barrier
  }
  y[i] = sum;
}
void run_long_loops(torch::Tensor x, torch::Tensor y, torch::Tensor steps, int threads, int meet) {
  long_loops<<<steps.numel() / threads, threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), steps.data_ptr<int>(), meet);
}

// Lanes of a warp that need one another to go on, as they may since Volta.
__global__ void locked(int* lock, int* count) {
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      *(volatile int*)count = *(volatile int*)count + 1;                    // @locked
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
__global__ void locked_outside(int* lock, int* count) {
  while (atomicCAS(lock, 0, 1) != 0) {}
  *(volatile int*)count = *(volatile int*)count + 1;
  __threadfence();
  atomicExch(lock, 0);
}
void run_locked(torch::Tensor lock, torch::Tensor count, bool outside) {
  if (outside) locked_outside<<<2, 64>>>(lock.data_ptr<int>(), count.data_ptr<int>());
  else locked<<<2, 64>>>(lock.data_ptr<int>(), count.data_ptr<int>());
}

__device__ __noinline__ float looked_up(volatile const float* x, int i, int depth) {
  if (depth == 0) return x[i];                                              // @called
  return looked_up(x, i, depth - 1) + x[depth];                             // @depth
}
__global__ void calls(const float* x, float* y) {
  const int t = threadIdx.x;
  float v = 0;
  if (t % 2) v = looked_up(x, t, t % 4);
  v += x[t];                                                                // @after the call
  y[t] = v + looked_up(x, t, 1);
}
void run_calls(torch::Tensor x, torch::Tensor y) { calls<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>()); }

__global__ void chosen(volatile const int* x, int* y) {
  const int t = threadIdx.x;
  int v = 0;
  switch (t % 8) {
    case 0: v = x[1]; break;                                                // @case
    case 1: v = x[2] * 3; break;
    case 2: v = x[3] + 5; break;
    case 3: v = x[4] ^ 7; break;
    case 4: v = x[5] - 9; break;
    case 5: v = x[6] * x[7]; break;
    case 6: v = x[8] / 3; break;
    default: v = x[9];
  }
  y[t] = v + x[t];                                                          // @after the switch
}
void run_chosen(torch::Tensor x, torch::Tensor y) { chosen<<<1, 64>>>(x.data_ptr<int>(), y.data_ptr<int>()); }

struct Plain { float a, b, c, d; };
struct Three { float a, b, c; };
__global__ void structures(const Plain* p, Plain* q, const Three* s, Three* t) {
  const int i = threadIdx.x;
  q[i] = p[i];                                                              // @four floats
  t[i] = s[i];                                                              // @three floats
}
void run_structures(torch::Tensor x, torch::Tensor y) {
  structures<<<1, 32>>>((const Plain*)x.data_ptr(), (Plain*)y.data_ptr(), (const Three*)x.data_ptr(), (Three*)y.data_ptr());
}

__global__ void saxpy(float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = a * x[i] + y[i];
}
void run_saxpy(torch::Tensor x, torch::Tensor y) { saxpy<<<y.numel() / 64, 64>>>(2.0f, x.data_ptr<float>(), y.data_ptr<float>()); }

// Block b runs b % 7 + 1 times over its elements.
__global__ void uneven(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k <= blockIdx.x % 7; k++) sum += ((volatile const float*)x)[i];
  y[i] = sum;
}
void run_uneven(torch::Tensor x, torch::Tensor y) { uneven<<<y.numel() / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>()); }

__global__ void windows(const float* x, float* y, int width) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < width; k++) sum += x[i + k];
  y[i] = sum;
}
void run_windows(torch::Tensor x, torch::Tensor y, int width) { windows<<<y.numel() / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), width); }

__global__ void shuffled(const float* x, float* y) {
  float v = x[threadIdx.x];
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  if (threadIdx.x % 32 == 0) y[threadIdx.x / 32] = v;
}
void run_shuffled(torch::Tensor x, torch::Tensor y) { shuffled<<<1, 128>>>(x.data_ptr<float>(), y.data_ptr<float>()); }

// A function whose end is where lanes meet again, called by another, in a branch and outside.
__device__ int warp_sum(int value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
  return value;
}
__device__ int block_sum(int value) {
  __shared__ int sums[8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  value = warp_sum(value);
  if (lane == 0) sums[warp] = value;                                        // @a warp's sum
  __syncthreads();
  if (warp == 0) value = warp_sum(lane < 8 ? sums[lane] : 0);
  return value;
}
__global__ void summed(const int* x, int* y, int n) {
  int own = 0;
  for (int i = threadIdx.x; i < n; i += 256) own += x[i];
  const int sum = block_sum(own);
  y[threadIdx.x] = sum;                                                     // @after sums
}
void run_summed(torch::Tensor x, torch::Tensor y) { summed<<<1, 256>>>(x.data_ptr<int>(), y.data_ptr<int>(), x.numel()); }

__global__ void braced(float* y) {
  *reinterpret_cast<float4*>(y + 4 * threadIdx.x) = {1.0f * threadIdx.x, 2.0f, 3.0f, 4.0f};  // @braced
}
void run_braced(torch::Tensor y) { braced<<<1, 32>>>(y.data_ptr<float>()); }

__global__ void fails(float* y) {
  y[threadIdx.x] = 1;
  if (threadIdx.x == 5) __trap();
}
void run_fails(torch::Tensor y) { fails<<<4, 32>>>(y.data_ptr<float>()); }
"""

NAMES = (
    "run_global_access run_shared_access run_transposed run_bins run_shared_bins run_shared_sums run_weighted run_early run_long_loops run_locked run_calls "
    "run_chosen run_structures run_saxpy run_uneven run_windows run_shuffled run_summed run_braced run_fails"
).split()
DECLARED = "\n".join(
    line.split("{")[0].strip() + ";" for line in SOURCE.splitlines() if line.startswith("void run_")
) + "".join(f"\nvoid run_{n}(std::string type, torch::Tensor index, torch::Tensor a, torch::Tensor b, int threads);" for n in ("global_access", "shared_access"))
BYTES = {"char": 1, "short": 2, "float": 4, "double": 8, "float4": 16}


@pytest.fixture(scope="module")
def kernels():
    with simt.run(mode="count"):
        return simt.load_inline("counted", DECLARED, SOURCE, functions=NAMES)


def line_of(mark: str, source: str = SOURCE) -> int:
    return next(n for n, line in enumerate(source.splitlines(), 1) if line.rstrip().endswith(f"// @{mark}"))


def at(report: counts.Report, mark: str, source: str = SOURCE) -> simt.Counters:
    """The counters of the line with a mark."""
    return next((l.counters for l in report.lines if l.line == line_of(mark, source)), simt.Counters())


# ---- brute force ----


def warps_of(addresses: list[int | None], threads: int) -> list[dict[int, int]]:
    """Lane -> address, of each warp of each block of `threads`; None: the lane takes no part."""
    found = []
    for block in range(0, len(addresses), threads):
        for start in range(block, block + threads, 32):
            warp = {t - start: addresses[t] for t in range(start, min(start + 32, block + threads)) if addresses[t] is not None}
            found.append(warp)
    return [w for w in found if w]


def sectors_of(warp: dict[int, int], size: int) -> int:
    return len({byte // 32 for a in warp.values() for byte in range(a, a + size)})


def used_by(warp: dict[int, int], size: int) -> int:
    return len({byte for a in warp.values() for byte in range(a, a + size)})


def passes(warp: dict[int, int], size: int) -> int:
    """The most words that one bank has to give."""
    words = {byte // 4 for a in warp.values() for byte in range(a, a + size)}
    return max(Counter(word % 32 for word in words).values(), default=0)


def neighbours_agree(warp: dict[int, int]) -> bool:
    return any(all(warp.get(lane ^ apart) == a for lane, a in warp.items()) for apart in (1, 2))


def wavefronts_of(warp: dict[int, int], size: int) -> tuple[int, int]:
    """Passes of a warp through the banks, and how many there would be without conflicts."""
    group = {8: 16, 16: 8}.get(size, 32)
    total = needed = 0
    for start in range(0, 32, min(32, 2 * group)):
        both = {lane: a for lane, a in warp.items() if start <= lane < start + 2 * group}
        parts = [both] if group == 32 or neighbours_agree(both) else [
            {lane: a for lane, a in both.items() if first <= lane < first + group} for first in (start, start + group)
        ]  # fmt: skip
        total += sum(passes(part, size) for part in parts)
        needed += len(both) * size / (2 if group < 32 and len(parts) == 1 else 1)
    return total, min(total, math.ceil(needed / 128))


def patterns(kind: str, threads: int, count: int, elements: int) -> list[int]:
    """Which element each of count threads touches; -1: none."""
    chance = random.Random(f"{kind} {threads}")
    made = {
        "stride 1": lambda t: t,
        "stride 2": lambda t: 2 * t,
        "stride 8": lambda t: 8 * t,
        "stride 32": lambda t: 32 * t,
        "offset 1": lambda t: t + 1,
        "offset 5": lambda t: t + 5,
        "one for all": lambda t: 7,
        "one for two": lambda t: t // 2,
        "one for four": lambda t: t // 4,
        "one for sixteen": lambda t: t // 16 * 3,
        "backwards": lambda t: count - 1 - t,
        "odd lanes": lambda t: t if t % 2 else -1,
        "first lane": lambda t: t if t % 32 == 0 else -1,
        "random": lambda t: chance.randrange(elements),
        "random lanes": lambda t: chance.randrange(elements) if chance.random() < 0.4 else -1,
        "squares": lambda t: t * t,
    }[kind]
    return [-1 if (i := made(t)) < 0 else i % elements for t in range(count)]


KINDS = (
    "stride 1", "stride 2", "stride 8", "stride 32", "offset 1", "offset 5", "one for all", "one for two", "one for four", "one for sixteen",
    "backwards", "odd lanes", "first lane", "random", "random lanes", "squares",
)  # fmt: skip


# ---- accesses ----


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", BYTES)
@pytest.mark.parametrize("threads", [96, 20])
def test_are_the_sectors_of_global_accesses_those_of_the_bytes(kernels, kind, size, threads):
    a, b = torch.zeros(1024 * 16 + 1, dtype=torch.uint8), torch.zeros(1024 * 16, dtype=torch.uint8)
    index = torch.tensor(patterns(kind, threads, 480, 1024), dtype=torch.int32)
    with simt.count() as report:
        kernels.run_global_access(size, index, a, b, threads)
    for mark, tensor, name in (("global load", a, "global_loads"), ("global store", b, "global_stores")):
        warps = warps_of([tensor.data_ptr() + int(i) * BYTES[size] if i >= 0 else None for i in index], threads)
        got = getattr(at(report, mark), name)
        assert got.requests == len(warps)
        assert got.lanes == sum(map(len, warps))
        assert got.bytes == got.lanes * BYTES[size]
        assert got.sectors == sum(sectors_of(w, BYTES[size]) for w in warps)
        assert got.used == sum(used_by(w, BYTES[size]) for w in warps)
        assert got.ideal_sectors == sum(math.ceil(used_by(w, BYTES[size]) / 32) for w in warps)
        assert got.addresses == sum(len(set(w.values())) for w in warps)
        start = tensor.data_ptr() & 64  # a GPU's tensors begin with a line
        assert got.lines == sum(len({(byte - start) // 128 for a in w.values() for byte in range(a, a + BYTES[size])}) for w in warps)
    assert at(report, "index").global_loads.requests == 480 // threads * math.ceil(threads / 32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", BYTES)
@pytest.mark.parametrize("threads", [96, 20])
def test_are_the_wavefronts_of_shared_accesses_those_of_the_banks(kernels, kind, size, threads):
    index = torch.tensor(patterns(kind, threads, 480, 1024), dtype=torch.int32)
    with simt.count() as report:
        kernels.run_shared_access(size, index, torch.zeros(1), torch.zeros(1024), threads)
    warps = warps_of([int(i) * BYTES[size] if i >= 0 else None for i in index], threads)
    expected = [wavefronts_of(w, BYTES[size]) for w in warps]
    for mark, name in (("shared load", "shared_loads"), ("shared store", "shared_stores")):
        got = getattr(at(report, mark), name)
        assert got.requests == len(warps)
        assert got.lanes == sum(map(len, warps))
        assert got.wavefronts == sum(total for total, _ in expected)
        assert got.conflicts == sum(total - ideal for total, ideal in expected)


@pytest.mark.parametrize("pad, conflicts", [(0, 31 * 32), (1, 0)])
def test_does_padding_end_the_conflicts_of_a_transposed_tile(kernels, pad, conflicts):
    x, y = torch.rand(32, 32), torch.empty(32, 32)
    with simt.count() as report:
        kernels.run_transposed(x, y, pad)
    assert torch.equal(y, x.T)
    assert at(report, "tile rows").shared_stores.conflicts == 0
    assert at(report, "tile columns").shared_loads.conflicts == conflicts


def test_are_structures_moved_in_pieces_that_their_alignment_allows(kernels):
    with simt.count() as report:
        kernels.run_structures(torch.zeros(512), torch.zeros(512))
    four, three = at(report, "four floats"), at(report, "three floats")
    assert (four.global_loads.requests, four.global_loads.bytes, four.global_loads.sectors) == (4, 512, 4 * 16)
    assert (three.global_stores.requests, three.global_stores.bytes) == (3, 384)


def test_is_a_braced_float4_stored_as_a_whole(kernels):
    y = torch.zeros(128)
    with simt.count() as report:
        kernels.run_braced(y)
    assert (at(report, "braced").global_stores.requests, at(report, "braced").global_stores.sectors) == (1, 16)
    assert y[4:8].tolist() == [1, 2, 3, 4]


def test_are_arguments_and_built_in_variables_no_accesses(kernels):
    x, y = torch.rand(640), torch.rand(640)
    with simt.count() as report:
        kernels.run_saxpy(x, y)
    (launch,) = report.launches
    c = launch.counters
    assert (c.global_loads.requests, c.global_stores.requests) == (40, 20)
    assert c.shared_loads.requests == c.local_loads.requests == c.constant_loads.requests == c.local_stores.requests == 0


# ---- atomics ----


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("spread", [1, 4, 64])
def test_is_contention_the_lanes_that_meet_at_one_address(kernels, spread, shared):
    to = torch.randint(spread, (1000,), generator=torch.Generator().manual_seed(3), dtype=torch.int32)
    count = torch.zeros(64, dtype=torch.int32)
    with simt.count() as report:
        (kernels.run_shared_bins if shared else kernels.run_bins)(to, count)
    assert torch.equal(count[:spread].long(), torch.bincount(to, minlength=spread))
    warps = warps_of([int(t) for t in to] + [None] * (-1000 % 128), 128)
    c = at(report, "shared atomic" if shared else "atomic")
    got = c.shared_atomics if shared else c.global_atomics
    assert (got.requests, got.lanes) == (len(warps), 1000)
    assert got.addresses == sum(len(set(w.values())) for w in warps)
    assert got.deepest == sum(max(Counter(w.values()).values()) for w in warps)
    assert got.lanes_per_address == got.deepest / got.requests


def test_are_lanes_at_one_word_of_shared_memory_served_in_turn_unless_they_add_one(kernels):
    to = torch.randint(40, (128,), generator=torch.Generator().manual_seed(5), dtype=torch.int32)
    with simt.count() as report:
        kernels.run_shared_sums(to, torch.zeros(64, dtype=torch.int32))
        kernels.run_shared_bins(to, torch.zeros(64, dtype=torch.int32))
    warps = warps_of([4 * int(t) for t in to], 128)
    in_turn = sum(max(Counter(a // 4 % 32 for a in w.values()).values()) for w in warps)
    at_once = sum(passes(w, 4) for w in warps)
    assert at_once < in_turn
    assert at(report, "shared sum").shared_atomics.wavefronts == in_turn
    assert at(report, "shared atomic").shared_atomics.wavefronts == at_once


def test_are_constants_a_memory_of_their_own(kernels):
    x, y = torch.rand(64), torch.empty(64)
    with simt.count() as report:
        kernels.run_weighted(x, y, 5)
    uniform, mixed = at(report, "constant"), at(report, "constants").constant_loads
    assert (uniform.constant_loads.requests, uniform.constant_loads.addresses) == (2 * 5, 2 * 5)
    assert (mixed.requests, mixed.addresses) == (2, 2 * 9)
    assert (at(report, "device variable").global_loads.requests, report.launches[0].counters.global_stores.requests) == (2, 2)


# ---- lanes ----


@pytest.mark.parametrize("n, threads", [(1000, 128), (1024, 128), (5, 64), (333, 48)])
def test_do_lanes_that_returned_no_longer_count(kernels, n, threads):
    blocks = -(-1024 // threads)
    x, y = torch.rand(blocks * threads), torch.empty(blocks * threads)
    with simt.count() as report:
        kernels.run_early(x, y, n, blocks, threads)
    warps = warps_of([t if t < n else None for t in range(blocks * threads)], threads)
    got = at(report, "early")
    assert (got.global_loads.requests, got.global_loads.lanes) == (len(warps), n)
    assert (got.global_stores.requests, got.global_stores.lanes) == (len(warps), n)


@pytest.mark.parametrize("schedule", ["forward", "reverse", 5])
@pytest.mark.parametrize("meet", [0, 1])
@pytest.mark.parametrize("threads", [32, 256, 1024])
def test_are_long_loops_of_different_lengths_counted_to_the_last_step(kernels, threads, meet, schedule):
    chance = random.Random(threads + meet)
    steps = torch.tensor([chance.choice([0, 3, 50, 700, 2000]) if chance.random() < 0.2 else 40 for _ in range(1024)], dtype=torch.int32)
    x, y = torch.ones(64), torch.empty(1024)
    with simt.count(schedule=schedule) as report:
        kernels.run_long_loops(x, y, steps, threads, meet)
    assert torch.equal(y.int(), 3 * steps)
    got = at(report, "long").global_loads
    assert got.lanes == 3 * int(steps.sum())
    assert got.requests == 3 * sum(int(steps[w : w + 32].max()) for w in range(0, 1024, 32))
    assert at(report, "barrier").barriers == (3 * 32 if meet else 0)


@pytest.mark.parametrize("outside", [False, True])
def test_do_lanes_that_need_one_another_go_on(kernels, outside):
    lock, count = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    with simt.count() as report:
        kernels.run_locked(lock, count, outside)
    assert int(count) == 128
    if not outside:
        assert at(report, "locked").global_loads.lanes == 128


def test_do_lanes_meet_again_after_a_call_that_some_of_them_made(kernels):
    x, y = torch.rand(64), torch.empty(64)
    with simt.count() as report:
        kernels.run_calls(x, y)
    after = at(report, "after the call").global_loads
    assert (after.requests, after.lanes) == (2, 64)
    called = at(report, "called").global_loads
    assert called.lanes == 32 + 64  # depth 1 or 3 of the odd lanes, then depth 1 of all
    assert at(report, "depth").global_loads.lanes == 16 * 1 + 16 * 3 + 64


def test_do_lanes_meet_again_after_a_switch(kernels):
    with simt.count() as report:
        kernels.run_chosen(torch.ones(64, dtype=torch.int32), torch.empty(64, dtype=torch.int32))
    case, after = at(report, "case").global_loads, at(report, "after the switch").global_loads
    assert (case.requests, case.lanes) == (2, 8)
    assert (after.requests, after.lanes) == (2, 64)


@pytest.mark.parametrize("n", [1, 255, 300, 1000])
def test_do_lanes_meet_again_after_functions_in_which_they_part_and_shuffle(kernels, n):
    x, y = torch.arange(n, dtype=torch.int32), torch.empty(256, dtype=torch.int32)
    with simt.count() as report:
        kernels.run_summed(x, y)
    assert int(y[0]) == n * (n - 1) // 2
    assert report.launches[0].counters.exchanges == (8 + 1) * 5
    one, after = at(report, "a warp's sum").shared_stores, at(report, "after sums").global_stores
    assert (one.requests, one.lanes) == (8, 8) and (after.requests, after.lanes) == (8, 256)


def test_are_shuffles_and_barriers_counted_by_warp(kernels):
    x, y = torch.rand(128), torch.empty(4)
    with simt.count() as report:
        kernels.run_shuffled(x, y)
    assert torch.allclose(y, x.view(4, 32).sum(1))
    c = report.launches[0].counters
    assert c.exchanges == 4 * 5
    assert (c.global_loads.requests, c.global_stores.requests, c.global_stores.lanes) == (4, 4, 4)


# ---- random programs against an interpreter of masks ----


class Program:
    """A random kernel of nested branches and loops, as CUDA and as what each warp does, statement by statement.

    Every condition reads a word of noise that no compiler knows; every access has a line of its own.
    """

    def __init__(self, seed: int):
        self.chance = random.Random(seed)
        self.noise = [self.chance.randrange(256) for _ in range(4096)]
        self.lines: list[str] = []
        self.statements = self.block(0, "")

    def block(self, depth: int, inside: str) -> list:
        """inside: "body" of a loop, an "if" in one, or neither."""
        made = []
        for _ in range(self.chance.randrange(1, 4)):
            kind = self.chance.choice(["touch", "touch", "if", "else", "for", "leave"] if depth < 4 else ["touch"])
            where = self.chance.randrange(4096)
            if kind == "touch":
                made.append(("touch", where))
            elif kind in ("if", "else"):
                within = "if" if inside else ""
                made.append(("if", where, self.chance.randrange(256), self.block(depth + 1, within), self.block(depth + 1, within) if kind == "else" else []))
            elif kind == "for":
                made.append(("for", where, self.block(depth + 1, "body")))
            elif inside and self.chance.random() < 0.8:
                made.append((self.chance.choice(["break", "continue"] if inside == "body" else ["break"]), where, self.chance.randrange(60)))
            elif self.chance.random() < 0.3:
                made.append(("return", where, self.chance.randrange(40)))
        return made or [("touch", 0)]

    def source(self, name: str) -> str:
        self.lines = [f"__global__ void {name}(volatile const int* noise, int* out) {{ int t = threadIdx.x, n = 1, s = 0;"]
        self.write(self.statements, 0)
        self.lines.append("out[t] = s; }")
        return "\n".join(self.lines)

    def noisy(self, where: int) -> str:
        return f"noise[({where} + t * 7 + n * 131) & 4095]"

    def write(self, statements: list, loops: int) -> None:
        for s in statements:
            if s[0] == "touch":
                self.lines.append(f"s += {self.noisy(s[1])}; n++;")
            elif s[0] == "if":
                self.lines.append(f"n++; if ({self.noisy(s[1])} < {s[2]}) {{")
                self.write(s[3], loops)
                if s[4]:
                    self.lines.append("} else {")
                    self.write(s[4], loops)
                self.lines.append("}")
            elif s[0] == "for":
                self.lines.append(f"n++; for (int i{loops} = 0, e{loops} = {self.noisy(s[1])} % 5; i{loops} < e{loops}; i{loops}++) {{ n++;")
                self.write(s[2], loops + 1)
                self.lines.append("}")
            else:
                what = "{ out[t] = -s; return; }" if s[0] == "return" else s[0] + ";"
                self.lines.append(f"n++; if ({self.noisy(s[1])} < {s[2]}) {what}")

    def expect(self, threads: int) -> tuple[Counter, Counter, list[int]]:
        """Requests and lanes of the reads of noise, by line; and each thread's sum."""
        self.requests, self.lanes, sums = Counter(), Counter(), []
        for start in range(0, threads, 32):
            lanes = range(start, min(start + 32, threads))
            self.n, self.s, self.gone = dict.fromkeys(lanes, 1), dict.fromkeys(lanes, 0), set()
            self.at = 1
            self.walk(self.statements, set(lanes), None, None)
            sums += [-self.s[t] if t in self.gone else self.s[t] for t in lanes]
        return self.requests, self.lanes, sums

    def read(self, where: int, line: int, mask: set[int]) -> dict[int, int]:
        if mask:
            self.requests[line] += 1
            self.lanes[line] += len(mask)
        return {t: self.noise[(where + t * 7 + self.n[t] * 131) & 4095] for t in mask}

    def walk(self, statements: list, mask: set[int], broken: set[int] | None, skipped: set[int] | None) -> set[int]:
        """Runs statements for the lanes of mask; returns those that come out at the end. self.at: the line."""
        for s in statements:
            line, self.at = self.at, self.at + 1
            if s[0] == "touch":
                for t, v in self.read(s[1], line, mask).items():
                    self.s[t] += v
                    self.n[t] += 1
                continue
            for t in mask:
                self.n[t] += 1
            values = self.read(s[1], line, mask)
            if s[0] == "if":
                yes = {t for t in mask if values[t] < s[2]}
                no = mask - yes
                yes = self.walk(s[3], yes, broken, skipped)
                if s[4]:
                    self.at += 1
                    no = self.walk(s[4], no, broken, skipped)
                self.at += 1
                mask = yes | no
            elif s[0] == "for":
                left, out, begin = {t: values[t] % 5 for t in mask}, set(), self.at
                inside = set(mask)
                while True:
                    inside = {t for t in inside if left[t] > 0}
                    for t in inside:
                        self.n[t] += 1
                        left[t] -= 1
                    self.at = begin
                    gone, again = set(), set()
                    inside = self.walk(s[2], inside, gone, again) | again
                    out |= gone
                    if not inside:
                        break
                self.at += 1
                mask = {t for t in mask if t not in self.gone}
            else:
                leaving = {t for t in mask if values[t] < s[2]}
                mask = mask - leaving
                if s[0] == "return":
                    self.gone |= leaving
                else:
                    (broken if s[0] == "break" else skipped).update(leaving)
        return mask


@pytest.fixture(scope="module")
def random_programs():
    programs = [Program(seed) for seed in range(40)]
    text, starts = ["#include <torch/extension.h>"], []
    for i, program in enumerate(programs):
        starts.append(sum(part.count("\n") + 1 for part in text))
        text.append(program.source(f"program{i}"))
    calls = "".join(f"if (i == {i}) program{i}<<<1, threads>>>(x.data_ptr<int>(), y.data_ptr<int>());\n" for i in range(len(programs)))
    text.append(f"void run(int i, torch::Tensor x, torch::Tensor y, int threads) {{ {calls} }}")
    with simt.run(mode="count"):
        module = simt.load_inline("random_programs", "void run(int i, torch::Tensor x, torch::Tensor y, int threads);", "\n".join(text), functions=["run"])
    return module, programs, starts


@pytest.mark.parametrize("number", range(40))
def test_do_warps_of_random_programs_part_and_meet_where_their_blocks_end(random_programs, number):
    module, programs, starts = random_programs
    program, threads = programs[number], 84
    requests, lanes, sums = program.expect(threads)
    y = torch.empty(threads, dtype=torch.int32)
    with simt.count(schedule=number) as report:
        module.run(number, torch.tensor(program.noise, dtype=torch.int32), y, threads)
    assert y.tolist() == sums
    got = {l.line - starts[number] - 1: l.counters.global_loads for l in report.lines if l.counters.global_loads.requests}
    assert {n: t.lanes for n, t in got.items()} == {n: c for n, c in lanes.items() if c}
    assert {n: t.requests for n, t in got.items()} == {n: c for n, c in requests.items() if c}


# ---- sums and samples ----


def test_are_the_flops_of_saxpy_two_an_element(kernels):
    x, y = torch.rand(640), torch.rand(640)
    with simt.count() as report:
        kernels.run_saxpy(x, y)
    c = report.launches[0].counters
    assert c.flops == 2 * 640
    assert (c.mix["fp32_add"], c.mix["fp32_mul"]) == (640, 640)
    assert c.active_lanes == c.working_lanes == 32


@pytest.mark.parametrize("width", [1, 2, 9, 40])
def test_are_unique_bytes_those_that_any_thread_touches(kernels, width):
    x, y = torch.rand(640 + 64), torch.empty(640)
    with simt.count() as report:
        kernels.run_windows(x, y, width)
    (launch,) = report.launches
    first = x.data_ptr()
    assert (launch.unique_bytes_read, launch.unique_bytes_written) == (4 * (640 + width - 1), 4 * 640)
    assert launch.unique_sectors_read == len({b // 32 for b in range(first, first + 4 * (640 + width - 1))})
    by_block = [len({b // 32 for b in range(first + 256 * i, first + 256 * i + 4 * (64 + width - 1))}) for i in range(10)]
    assert launch.block_unique_sectors_read == sum(by_block)


def test_is_a_sample_of_blocks_extrapolated_within_its_error(kernels):
    x = torch.rand(32 * 3000)
    y = torch.empty_like(x)
    true = sum(b % 7 + 1 for b in range(3000))
    with simt.count() as report:
        kernels.run_uneven(x, y)
    assert report.launches[0].sampled == 3000
    assert report.launches[0].counters.global_loads.requests == true
    assert not report.launches[0].error
    with simt.count(sample=200) as report:
        kernels.run_uneven(x, y)
    (launch,) = report.launches
    assert 200 <= launch.sampled <= 204
    error = launch.error["global_requests"]
    assert 0 < error < 0.1 * true
    assert abs(launch.counters.global_loads.requests - true) < 4 * error
    assert launch.counters.global_stores.requests == 3000
    assert launch.unique_bytes_written == pytest.approx(x.numel() * 4, rel=0.01)
    assert torch.equal(y, x * torch.tensor([sum([1.0] * (b % 7 + 1)) for b in range(3000)]).repeat_interleave(32)) or torch.isfinite(y).all()


def test_do_uneven_blocks_not_pass_for_blocks_that_share(kernels):
    n, threads = 32 * 20000, 64
    x, y = torch.rand(n), torch.zeros(n)
    with simt.count(sample=24, partial=True) as report:
        kernels.run_early(x, y, n - n // 3, n // threads, threads)  # a third of the blocks have nothing to do
    (launch,) = report.launches
    assert launch.sampled < 30
    assert launch.unique_bytes_written == pytest.approx(4 * (n - n // 3), rel=0.35)
    assert launch.unique_bytes_read == pytest.approx(4 * (n - n // 3), rel=0.35)


def test_do_blocks_outside_the_sample_run_unless_told_otherwise(kernels):
    x = torch.ones(32 * 500)
    for partial in (False, True):
        y = torch.zeros_like(x)
        with simt.count(sample=20, partial=partial) as report:
            kernels.run_uneven(x, y)
        ran = int((y.view(500, 32)[:, 0] != 0).sum())
        assert ran == (report.launches[0].sampled if partial else 500)
        assert y[0] == 1 and y[-1] == 499 % 7 + 1  # the first and the last block are always in it


def test_are_counts_the_same_in_every_order_and_on_any_number_of_threads(kernels, monkeypatch):
    to = torch.randint(64, (5000,), dtype=torch.int32)
    steps = torch.randint(80, (1024,), dtype=torch.int32)
    seen = []
    for threads, schedule in (("1", "forward"), ("2", "forward"), ("2", "reverse"), ("2", 9)):
        monkeypatch.setenv("SIMT_THREADS", threads)
        with simt.count(schedule=schedule) as report:
            kernels.run_shared_bins(to, torch.zeros(64, dtype=torch.int32))
            kernels.run_long_loops(torch.ones(64), torch.empty(1024), steps, 128, 1)
        seen.append([counts.counters_dict(k.counters) for k in report.kernels])
    assert all(s == seen[0] for s in seen)


def test_does_a_kernel_that_fails_say_so(kernels):
    with pytest.raises(simt.KernelError), simt.count() as report:
        kernels.run_fails(torch.zeros(32))
    assert [launch.complete for launch in report.launches] == [False]
    with simt.count() as report:
        kernels.run_saxpy(torch.rand(64), torch.rand(64))
    assert report.launches[0].counters.global_loads.requests == 4


STOPPED = """
#include <cooperative_groups.h>
__global__ void stopped(volatile float* x) {
    const float first = x[threadIdx.x];
    cooperative_groups::this_grid().sync();
    while (x[threadIdx.x] == first);
}
void run(torch::Tensor x) {
    float* at = x.data_ptr<float>();
    void* arguments[] = {&at};
    cudaLaunchCooperativeKernel((void*)stopped, dim3(40), dim3(32), arguments, 0, 0);
}
"""


def test_is_a_launch_told_that_ended_before_any_of_its_blocks():
    """Blocks that have met in a barrier of the whole grid have touched memory, the same sectors, and none has ended."""
    module = simt.load_inline("stopped", "void run(torch::Tensor x);", STOPPED, functions=["run"])
    with pytest.raises(simt.KernelError, match="did not end within the time limit"), simt.count(seconds=1) as report:
        module.run(torch.zeros(32))
    (launch,) = report.launches
    assert (launch.sampled, launch.complete) == (0, False) and launch.unique_bytes_read == 32 * 4


def test_are_launches_of_one_kernel_added_up(kernels):
    x, y = torch.rand(640), torch.rand(640)
    with simt.count() as report:
        kernels.run_saxpy(x, y)
        kernels.run_saxpy(x[:64].clone(), y[:64].clone())
        kernels.run_shuffled(x[:128].clone(), torch.empty(4))
    assert [(k.name, k.launches) for k in report.kernels] == [("saxpy", 2), ("shuffled", 1)]
    assert report.kernels[0].counters.global_stores.requests == 20 + 2
    with simt.count() as report:
        pass
    assert report.launches == [] and report.text() == "No kernel was launched."


def test_does_the_report_name_lines_and_go_to_json(kernels):
    with simt.count(device="H200") as report:
        kernels.run_transposed(torch.rand(32, 32), torch.empty(32, 32), 0)
    text = report.text({"cuda_sources": SOURCE})
    assert f"cuda_sources:{line_of('tile columns')}: " in text and "32.00 wavefronts a request" in text
    assert "y[r * 32 + c] = tile[c * (32 + pad) + r];" in text
    data = json.loads(report.json())
    assert data["launches"][0]["counters"]["shared_loads"]["conflicts"] == 31 * 32
    launch = data["launches"][0]
    assert launch["occupancy"]["device"] == "H200"
    assert launch["predicted"]["seconds"] == pytest.approx(simt.predict(report.launches[0], "H200").seconds)
    assert f"H200: predicted {1e6 * launch['predicted']['seconds']:.1f} µs, limited by {launch['predicted']['limit']}" in text


# ---- occupancy ----


@pytest.mark.parametrize(
    "device, threads, shared, registers, blocks, limited_by",
    [
        ("H100", 256, 0, 32, 8, ("warps", "registers")),
        ("H100", 1024, 0, 64, 1, ("registers",)),
        ("H100", 32, 0, 16, 32, ("blocks",)),
        ("A100", 128, 48 * 1024, 32, 3, ("shared",)),
        ("T4", 256, 16 * 1024, 32, 4, ("warps", "shared")),
        ("T4", 1024, 64 * 1024, 32, 1, ("warps", "shared")),
    ],
)
def test_does_the_scarcest_resource_limit_the_blocks(device, threads, shared, registers, blocks, limited_by):
    found = simt.occupancy(device, threads, shared, registers)
    assert (found.blocks, found.limited_by) == (blocks, limited_by)


def test_are_the_limits_those_that_ncu_told_on_an_h200():
    file = Path(__file__).parents[2] / "benchmarks" / "data" / "ncu.json"
    rows = [row for program in json.loads(file.read_text())["programs"].values() for row in program["small"]]
    assert len(rows) > 100
    for row in rows:
        shared = row.get("shared_static", 0) + row.get("shared_dynamic", 0)
        found = simt.occupancy("H200", math.prod(row["block"]), shared, row["registers"], math.prod(row["grid"]))
        assert found.limits["warps"] == row["limit_warps"], row["kernel"]
        assert found.limits["registers"] == row["limit_registers"], row["kernel"]
        assert found.limits["blocks"] == row["limit_blocks"], row["kernel"]
