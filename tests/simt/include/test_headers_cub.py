"""simt's cub primitives against sums and scans in Python."""

from __future__ import annotations

import itertools

import pytest
import torch

import simt
from tests.simt.kernels_of_expressions import _INCLUDES, DEVICE, ON_GPU, load

pytestmark = pytest.mark.slow  # kernels with these headers take long to compile

# cub of CUDA 13 has no operators of its own any more: those of libcu++ work in both.
_SOURCE = (
    """
#include <cub/cub.cuh>
#include <cuda/functional>
#include <cuda/std/functional>

struct Pair { double sum; int count; long long last; };
struct Join {
  __device__ Pair operator()(const Pair& a, const Pair& b) const { return {a.sum + b.sum, a.count + b.count, b.last}; }
};
// Which of several: an operation that is associative and does not commute.
struct Second { __device__ int operator()(int a, int b) const { return b < 0 ? a : b; } };

template <int N>
__global__ void warp_reductions(const int* x, int valid, int* out) {
  typedef cub::WarpReduce<int, N> Reduce;
  __shared__ typename Reduce::TempStorage temp[64];
  int t = threadIdx.x, logical = t / N;
  int* row = out + t * 8;
  Reduce mine(temp[logical]);
  row[0] = mine.Sum(x[t]);
  row[1] = mine.Sum(x[t], valid);
  row[2] = mine.Reduce(x[t], cuda::maximum<>{});
  row[3] = mine.Reduce(x[t], cuda::minimum<>{}, valid);
  row[4] = mine.HeadSegmentedSum(x[t], x[t] % 5 == 0 || t % N == 0);
  row[5] = mine.TailSegmentedSum(x[t], x[t] % 5 == 0);
  row[6] = mine.HeadSegmentedReduce(x[t], x[t] % 3 == 0, cuda::maximum<>{});
  row[7] = mine.Reduce(x[t], Second());
}
template <int N>
__global__ void warp_scans(const int* x, int* out) {
  typedef cub::WarpScan<int, N> Scan;
  __shared__ typename Scan::TempStorage temp[64];
  int t = threadIdx.x;
  int* row = out + t * 16;
  Scan scan(temp[t / N]);
  int a = x[t];
  scan.InclusiveSum(a, row[0]);
  scan.ExclusiveSum(a, row[1]);
  scan.InclusiveSum(a, row[2], row[3]);
  scan.ExclusiveSum(a, row[4], row[5]);
  scan.InclusiveScan(a, row[6], cuda::maximum<>{});
  scan.ExclusiveScan(a, row[7], 500, cuda::maximum<>{});
  scan.ExclusiveScan(a, row[8], -7, cuda::std::plus<>{}, row[9]);
  scan.Scan(a, row[10], row[11], 3, cuda::std::plus<>{});
  row[12] = scan.Broadcast(a, N / 2);
  scan.InclusiveScan(a, row[13], Second(), row[14]);
  scan.InclusiveSum(a, a);
  row[15] = a;
}
void warp(int n, int valid, torch::Tensor x, torch::Tensor sums, torch::Tensor scans) {
  const int* in = x.data_ptr<int>();
  int *s = sums.data_ptr<int>(), *c = scans.data_ptr<int>();
#define WARP(N) if (n == N) { warp_reductions<N><<<1, 64>>>(in, valid, s); warp_scans<N><<<1, 64>>>(in, c); }
  WARP(1) WARP(2) WARP(4) WARP(8) WARP(16) WARP(32)
}

template <int X, int Y, cub::BlockReduceAlgorithm Reduction, cub::BlockScanAlgorithm Scanning>
__global__ void blocks(const int* x, int valid, int* out) {
  typedef cub::BlockReduce<int, X, Reduction, Y> Reduce;
  typedef cub::BlockScan<int, X, Scanning, Y> Scan;
  typedef cub::BlockReduce<Pair, X, Reduction, Y> PairReduce;
  __shared__ union Temp {
    typename Reduce::TempStorage reduce;
    typename Scan::TempStorage scan;
    typename PairReduce::TempStorage pairs;
  } temp;
  int t = threadIdx.x + threadIdx.y * X, n = X * Y;
  int a = x[3 * t], all;
  int items[3] = {x[3 * t], x[3 * t + 1], x[3 * t + 2]}, scanned[3];
  int* one = out + 32 * t;
  int* total = out + 32 * n;
  int sum = Reduce(temp.reduce).Sum(a);
  __syncthreads();
  int part = Reduce(temp.reduce).Sum(a, valid);
  __syncthreads();
  int most = Reduce(temp.reduce).Reduce(a, cuda::maximum<>{});
  __syncthreads();
  int most_valid = Reduce(temp.reduce).Reduce(a, cuda::maximum<>{}, valid);
  __syncthreads();
  int sum3 = Reduce(temp.reduce).Sum(items);
  __syncthreads();
  int least3 = Reduce(temp.reduce).Reduce(items, cuda::minimum<>{});
  __syncthreads();
  int last = Reduce().Reduce(a, Second());
  __syncthreads();
  Pair pair = PairReduce(temp.pairs).Reduce(Pair{a * 0.5, 1, a}, Join());
  __syncthreads();
  if (t == 0) {
    total[0] = sum; total[1] = part; total[2] = most; total[3] = most_valid; total[4] = sum3; total[5] = least3;
    total[6] = last; total[7] = (int)(2 * pair.sum); total[8] = pair.count; total[9] = (int)pair.last;
  }
  Scan(temp.scan).InclusiveSum(a, one[0]);
  __syncthreads();
  Scan(temp.scan).ExclusiveSum(a, one[1]);
  __syncthreads();
  Scan(temp.scan).InclusiveSum(a, one[2], all);
  one[3] = all;
  __syncthreads();
  Scan(temp.scan).ExclusiveSum(a, one[4], all);
  one[5] = all;
  __syncthreads();
  Scan(temp.scan).InclusiveScan(a, one[6], cuda::maximum<>{});
  __syncthreads();
  Scan(temp.scan).ExclusiveScan(a, one[7], 500, cuda::maximum<>{});
  __syncthreads();
  Scan(temp.scan).ExclusiveScan(a, one[8], -9, cuda::std::plus<>{}, all);
  one[9] = all;
  __syncthreads();
  auto before = [](int aggregate) { return 1000 + aggregate; };
  Scan(temp.scan).ExclusiveSum(a, one[10], before);
  __syncthreads();
  Scan(temp.scan).InclusiveSum(a, one[11], before);
  __syncthreads();
  Scan(temp.scan).InclusiveSum(items, scanned);
  for (int i = 0; i < 3; ++i) one[12 + i] = scanned[i];
  __syncthreads();
  Scan(temp.scan).ExclusiveSum(items, scanned, all);
  for (int i = 0; i < 3; ++i) one[15 + i] = scanned[i];
  one[18] = all;
  __syncthreads();
  Scan(temp.scan).ExclusiveScan(items, scanned, -3, cuda::maximum<>{});
  for (int i = 0; i < 3; ++i) one[19 + i] = scanned[i];
  __syncthreads();
  Scan(temp.scan).InclusiveScan(items, scanned, Second());
  for (int i = 0; i < 3; ++i) one[22 + i] = scanned[i];
  __syncthreads();
  Scan(temp.scan).ExclusiveSum(items, items, before);
  for (int i = 0; i < 3; ++i) one[25 + i] = items[i];
  __syncthreads();
  Scan().InclusiveScan(a, one[28], Second(), one[29]);
}
void block(int which, int valid, torch::Tensor x, torch::Tensor out) {
  const int* in = x.data_ptr<int>();
  int* o = out.data_ptr<int>();
  if (which == 0) blocks<128, 1, cub::BLOCK_REDUCE_WARP_REDUCTIONS, cub::BLOCK_SCAN_RAKING><<<1, 128>>>(in, valid, o);
  if (which == 1) blocks<50, 1, cub::BLOCK_REDUCE_RAKING, cub::BLOCK_SCAN_RAKING_MEMOIZE><<<1, 50>>>(in, valid, o);
  if (which == 2) blocks<16, 10, cub::BLOCK_REDUCE_WARP_REDUCTIONS, """
    """cub::BLOCK_SCAN_WARP_SCANS><<<1, dim3(16, 10)>>>(in, valid, o);
}

// Loads in one way, adds the thread's number, stores in another.
template <class T, int ITEMS, cub::BlockLoadAlgorithm From, cub::BlockStoreAlgorithm To>
__global__ void moved(const T* x, T* out, int valid, bool whole) {
  typedef cub::BlockLoad<T, 64, ITEMS, From> Load;
  typedef cub::BlockStore<T, 64, ITEMS, To> Store;
  __shared__ union { typename Load::TempStorage load; typename Store::TempStorage store; } temp;
  T items[ITEMS];
  if (whole) Load(temp.load).Load(x, items);
  else Load(temp.load).Load(x, items, valid, (T)-5);
  __syncthreads();
  for (int i = 0; i < ITEMS; ++i) items[i] = items[i] * 2 + threadIdx.x;
  if (whole) Store(temp.store).Store(out, items);
  else Store(temp.store).Store(out, items, valid);
}
template <int ITEMS, class T>
void move_as(int way, const T* x, T* out, int valid, bool whole) {
  if (way == 0) moved<T, ITEMS, cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_DIRECT><<<1, 64>>>(x, out, valid, whole);
  if (way == 1) moved<T, ITEMS, cub::BLOCK_LOAD_STRIPED, cub::BLOCK_STORE_STRIPED><<<1, 64>>>(x, out, valid, whole);
  if (way == 2) moved<T, ITEMS, cub::BLOCK_LOAD_VECTORIZE, cub::BLOCK_STORE_VECTORIZE><<<1, 64>>>(x, out, valid, whole);
  if (way == 3) moved<T, ITEMS, cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_TRANSPOSE><<<1, 64>>>(x, out, valid, whole);
  if (way == 4) moved<T, ITEMS, cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE><<<1, 64>>>(x, out, """
    """valid, whole);
  if (way == 5) moved<T, ITEMS, cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_DIRECT><<<1, 64>>>(x, out, valid, whole);
}
void move(int items, int way, torch::Tensor x, torch::Tensor out, int valid, bool whole) {
  const float* in = x.data_ptr<float>();
  float* o = out.data_ptr<float>();
  if (items == 1) move_as<1>(way, in, o, valid, whole);
  if (items == 3) move_as<3>(way, in, o, valid, whole);
  if (items == 4) move_as<4>(way, in, o, valid, whole);
  if (items == 8) move_as<8>(way, in, o, valid, whole);
}

// A softmax of one row as courses write it.
template <int THREADS>
__global__ void softmax(const float* x, float* out, int n) {
  using BlockReduce = cub::BlockReduce<float, THREADS>;
  __shared__ typename BlockReduce::TempStorage temp_storage;
  __shared__ float shared_max, shared_sum;
  const float* row = x + blockIdx.x * n;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < n; i += THREADS) most = fmaxf(most, row[i]);
  most = BlockReduce(temp_storage).Reduce(most, cuda::maximum<>{});
  if (threadIdx.x == 0) shared_max = most;
  __syncthreads();
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += THREADS) sum += expf(row[i] - shared_max);
  sum = BlockReduce(temp_storage).Sum(sum);
  if (threadIdx.x == 0) shared_sum = sum;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += THREADS) out[blockIdx.x * n + i] = expf(row[i] - shared_max) / shared_sum;
}
void softmax_rows(torch::Tensor x, torch::Tensor out) { """
    """softmax<128><<<x.size(0), 128>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.size(1)); }
"""
)


@pytest.fixture(scope="module")
def kernels():
    return load(
        _SOURCE,
        [
            "void warp(int n, int valid, torch::Tensor x, torch::Tensor sums, torch::Tensor scans)",
            "void block(int which, int valid, torch::Tensor x, torch::Tensor out)",
            "void move(int items, int way, torch::Tensor x, torch::Tensor out, int valid, bool whole)",
            "void softmax_rows(torch::Tensor x, torch::Tensor out)",
        ],
    )


def _second(values: list[int]) -> int:
    result = values[0]
    for v in values[1:]:
        result = result if v < 0 else v
    return result


def _numbers(n: int, seed: int) -> list[int]:
    return torch.randint(-200, 1000, (n,), generator=torch.Generator().manual_seed(seed)).tolist()


@pytest.mark.slow
@pytest.mark.parametrize(("n", "valid"), [(1, 1), (2, 1), (4, 3), (8, 5), (16, 16), (32, 11), (32, 32)])
def test_warps(kernels, n, valid):
    """Do reductions, segments and scans of logical warps come out as those of lists?"""
    x = _numbers(64, n)
    sums = torch.zeros(64, 8, dtype=torch.int32, device=DEVICE)
    scans = torch.zeros(64, 16, dtype=torch.int32, device=DEVICE)
    kernels.warp(n, valid, torch.tensor(x, dtype=torch.int32, device=DEVICE), sums, scans)
    sums, scans = sums.tolist(), scans.tolist()
    for first in range(0, 64, n):
        v = x[first : first + n]
        assert [sums[first][i] for i in (0, 1, 2, 3, 7)] == [
            sum(v),
            sum(v[:valid]),
            max(v),
            min(v[:valid]),
            _second(v),
        ], first
        starts = [i for i in range(n) if v[i] % 5 == 0 or i == 0]
        for a, b in zip(starts, [*starts[1:], n], strict=True):
            assert sums[first + a][4] == sum(v[a:b]), (first, a)
        ends = [i for i in range(n) if v[i] % 5 == 0]
        ends = ends if ends and ends[-1] == n - 1 else [*ends, n - 1]
        for a, b in zip([0, *(e + 1 for e in ends[:-1])], ends, strict=True):
            assert sums[first + a][5] == sum(v[a : b + 1]), (first, a)
        starts = sorted({0, *(i for i in range(n) if v[i] % 3 == 0)})
        for a, b in zip(starts, [*starts[1:], n], strict=True):
            assert sums[first + a][6] == max(v[a:b]), (first, a)
        for i in range(n):
            upto, before = v[: i + 1], v[:i]
            assert scans[first + i] == [
                sum(upto), sum(before), sum(upto), sum(v), sum(before), sum(v), max(upto), max([500, *before]),
                sum(before) - 7, sum(v), 3 + sum(upto), 3 + sum(before), v[n // 2], _second(upto), _second(v),
                sum(upto),
            ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("which", "threads"), [(0, 128), (1, 50), (2, 160)])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.62, 1])
def test_blocks(kernels, which, threads, share):
    """Do reductions and scans of blocks, whole or in part, with one item a thread or three, equal those of lists?"""
    valid = max(1, round(threads * share))
    x = _numbers(3 * threads, which)
    out = torch.zeros(32 * threads + 32, dtype=torch.int32, device=DEVICE)
    kernels.block(which, valid, torch.tensor(x, dtype=torch.int32, device=DEVICE), out)
    out = out.tolist()
    v = x[::3]
    total = out[32 * threads : 32 * threads + 10]
    assert total == [sum(v), sum(v[:valid]), max(v), max(v[:valid]), sum(x), min(x), _second(v), sum(v), threads, v[-1]]
    sums = [0, *itertools.accumulate(v)]
    sums3 = [0, *itertools.accumulate(x)]
    for t in range(threads):
        row, items = out[32 * t : 32 * t + 30], range(3 * t, 3 * t + 3)
        assert row == [
            sums[t + 1], sums[t], sums[t + 1], sums[-1], sums[t], sums[-1], max(v[: t + 1]), max([500, *v[:t]]),
            sums[t] - 9, sums[-1], 1000 + sums[-1] + sums[t], 1000 + sums[-1] + sums[t + 1],
            *(sums3[i + 1] for i in items), *(sums3[i] for i in items), sums3[-1],
            *(max([-3, *x[:i]]) for i in items), *(_second(x[: i + 1]) for i in items),
            *(1000 + sums3[-1] + sums3[i] for i in items), _second(v[: t + 1]), _second(v),
        ], t  # fmt: skip


@pytest.mark.parametrize("items", [1, 3, 4, 8])
@pytest.mark.parametrize("way", range(6))
def test_loads_and_stores(kernels, items, way):
    """Does each thread get its neighbours (striped: its column), and does everything go back where it came from?"""
    n = 64 * items
    x = torch.randn(n, generator=torch.Generator().manual_seed(way))
    thread = torch.arange(n) % 64 if way == 1 else torch.arange(n) // items
    for valid, whole in [(n, True), (n, False), (n - 1, False), (n // 2 + 1, False), (1, False)]:
        out = torch.full((n,), 9.0, device=DEVICE)
        kernels.move(items, way, x.to(DEVICE), out, valid, whole)
        expected = torch.full((n,), 9.0)
        expected[:valid] = (x * 2 + thread)[:valid]
        assert torch.equal(out.cpu(), expected), (valid, whole)


def test_softmax(kernels):
    """Does the reduction that every course shows work, with storage in shared memory?"""
    x = torch.randn(5, 777, generator=torch.Generator().manual_seed(8)) * 4
    out = torch.zeros_like(x, device=DEVICE)
    kernels.softmax_rows(x.to(DEVICE), out)
    assert torch.allclose(out.cpu().double(), x.double().softmax(1), rtol=1e-5, atol=1e-9)


# What only the cub of CUDA 12 and before has, and what a GPU does not tell.
_HERE = (
    """
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
__global__ void operators(const float* x, float* out) {
  typedef cub::BlockReduce<float, 64> Reduce;
  typedef cub::KeyValuePair<int, float> Pair;
  typedef cub::BlockReduce<Pair, 64> Best;
  __shared__ typename Reduce::TempStorage temp;
  __shared__ Best::TempStorage best;
  int t = threadIdx.x;
  float sum = Reduce(temp).Reduce(x[t], cub::Sum());
  __syncthreads();
  float most = Reduce(temp).Reduce(x[t], cub::Max());
  __syncthreads();
  float least = Reduce(temp).Reduce(x[t], cub::Min());
  Pair largest = Best(best).Reduce(Pair(t, x[t]), cub::ArgMax());
  __syncthreads();
  Pair smallest = Best(best).Reduce(Pair(t, x[t]), cub::ArgMin());
  if (t == 0) {
    out[0] = sum; out[1] = most; out[2] = least; out[3] = largest.key; out[4] = smallest.key; out[5] = largest.value;
  }
}
void run_operators(torch::Tensor x, torch::Tensor out) { """
    """operators<<<1, 64>>>(x.data_ptr<float>(), out.data_ptr<float>()); }

__global__ void bad(int n, const float* x, float* out) {
  typedef cub::BlockReduce<float, 64> Reduce;
  __shared__ typename Reduce::TempStorage temp;
  float sum = 0;
  if (n == 0 || threadIdx.x < 32) {
    sum = Reduce(temp).Sum(x[threadIdx.x]);    // reduce
  }
  if (threadIdx.x == 0) out[0] = sum;
}

__global__ void without_initial(const float* x, float* out) {
  cub::BlockScan<float, 64>().ExclusiveScan(x[threadIdx.x], out[threadIdx.x], cub::Max());
}
void run_without_initial(torch::Tensor x, torch::Tensor out) { """
    """without_initial<<<1, 64>>>(x.data_ptr<float>(), out.data_ptr<float>()); }

void run_bad(int n, int threads, torch::Tensor x, torch::Tensor out) { """
    """bad<<<1, threads>>>(n, x.data_ptr<float>(), out.data_ptr<float>()); }
"""
)


@pytest.fixture(scope="module")
def only_here():
    if ON_GPU:
        pytest.skip("the cub of CUDA 13 lacks these, and a GPU does not tell")
    return load(
        _HERE,
        [
            "void run_operators(torch::Tensor x, torch::Tensor out)",
            "void run_without_initial(torch::Tensor x, torch::Tensor out)",
            "void run_bad(int n, int threads, torch::Tensor x, torch::Tensor out)",
        ],
    )


@pytest.mark.slow
def test_cub_s_own_operators(only_here):
    """Do cub::Sum, Max, Min, ArgMax and ArgMin work, with ties going to the smaller key?"""
    x = torch.randint(0, 9, (64,), generator=torch.Generator().manual_seed(1)).float()
    out = torch.zeros(6)
    only_here.run_operators(x, out)
    assert out.tolist() == [x.sum(), x.max(), x.min(), x.tolist().index(x.max()), x.tolist().index(x.min()), x.max()]


@pytest.mark.slow
def test_a_block_of_another_size_is_told(only_here):
    """Is a primitive made for 64 threads in a block of 96 one sentence with its line?"""
    with pytest.raises(
        simt.KernelError,
        match=r"cub::BlockReduce in line .* is for blocks of 64 x 1 x 1 threads, but this block has 96 x 1 x 1",
    ):
        only_here.run_bad(0, 96, torch.zeros(96), torch.zeros(96))


def test_threads_that_take_no_part_are_told(only_here):
    """Is a reduction that only half of the block reaches a divergent barrier in its line?"""
    with pytest.raises(simt.KernelError) as caught:
        only_here.run_bad(1, 64, torch.zeros(64), torch.zeros(64))
    line = next(i for i, text in enumerate((_INCLUDES + _HERE).split("\n"), 1) if text.endswith("// reduce"))
    assert caught.value.reason == "barrier_divergence" and caught.value.line == line


def test_an_undefined_result_shows(only_here):
    """Is the first result of an exclusive scan without initial value NaN, and the rest right?"""
    x, out = torch.rand(64, generator=torch.Generator().manual_seed(6)), torch.zeros(64)
    only_here.run_without_initial(x, out)
    assert out[0].isnan() and torch.equal(out[1:], x.cummax(0).values[:-1])
