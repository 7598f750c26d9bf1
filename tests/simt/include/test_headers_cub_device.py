"""cub's device-wide functions against NumPy."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
import torch

from tests.simt.kernels_of_expressions import DEVICE, load

pytestmark = pytest.mark.slow  # kernels with these headers take long to compile

_SOURCE = r"""
#include <cub/cub.cuh>
#include <cuda/functional>
#include <cuda/std/functional>

// Calls a function twice: for the size of its temporary storage, and with it.
template <class F> void twice(F f) {
  void* storage = nullptr;
  size_t bytes = 0;
  TORCH_CHECK(f(storage, bytes) == cudaSuccess && bytes > 0);
  TORCH_CHECK(cudaMalloc(&storage, bytes) == cudaSuccess);
  TORCH_CHECK(f(storage, bytes) == cudaSuccess);
  TORCH_CHECK(cudaFree(storage) == cudaSuccess);
}
#define TWICE(...) twice([&](void* p, size_t& bytes) { return cub::__VA_ARGS__; })
struct Odd { __host__ __device__ bool operator()(int x) const { return x & 1; } };
struct Xor { __host__ __device__ int operator()(int a, int b) const { return a ^ b; } };
struct Times { __host__ __device__ int operator()(int a, int b) const { return a * b; } };
struct After { template <class K> __host__ __device__ bool operator()(K a, K b) const { return b < a; } };
struct Triple { const int* in; int* out; __device__ void operator()(int i) const { out[i] = 3 * in[i]; } };
struct Third { __host__ __device__ bool operator()(int x) const { return x % 3 == 0; } };

void reduce(torch::Tensor x, torch::Tensor out) {
  int n = x.numel(), *in = x.data_ptr<int>(), *to = out.data_ptr<int>();
  TWICE(DeviceReduce::Sum(p, bytes, in, to, n));
  TWICE(DeviceReduce::Min(p, bytes, in, to + 1, n));
  TWICE(DeviceReduce::Max(p, bytes, in, to + 2, n));
  TWICE(DeviceReduce::ArgMin(p, bytes, in, to + 3, to + 4, n));
  TWICE(DeviceReduce::ArgMax(p, bytes, in, to + 5, to + 6, n));
  TWICE(DeviceReduce::Reduce(p, bytes, in, to + 7, n, Xor(), 5));
  TWICE(DeviceReduce::TransformReduce(p, bytes, in, to + 8, n, cuda::std::plus<>{}, Odd(), 0));
  TWICE(DeviceReduce::Sum(p, bytes, in, to + 9, 0));
}
void scan(torch::Tensor x, torch::Tensor keys, torch::Tensor out) {
  int n = x.numel(), *in = x.data_ptr<int>(), *k = keys.data_ptr<int>(), *to = out.data_ptr<int>();
  TWICE(DeviceScan::ExclusiveSum(p, bytes, in, to, n));
  TWICE(DeviceScan::InclusiveSum(p, bytes, in, to + n, n));
  TWICE(DeviceScan::ExclusiveScan(p, bytes, in, to + 2 * n, cuda::maximum<>{}, -3, n));
  TWICE(DeviceScan::InclusiveScan(p, bytes, in, to + 3 * n, cuda::minimum<>{}, n));
  TWICE(DeviceScan::ExclusiveSumByKey(p, bytes, k, in, to + 4 * n, n));
  TWICE(DeviceScan::InclusiveSumByKey(p, bytes, k, in, to + 5 * n, n));
  cudaMemcpy(to + 6 * n, in, n * sizeof(int), cudaMemcpyDeviceToDevice);
  TWICE(DeviceScan::InclusiveSum(p, bytes, to + 6 * n, n));
}
// Returns how many were selected.
int select_items(int what, torch::Tensor x, torch::Tensor flags, torch::Tensor out, torch::Tensor rest) {
  int n = x.numel(), *in = x.data_ptr<int>(), *to = out.data_ptr<int>(), *other = rest.data_ptr<int>();
  unsigned char* f = flags.data_ptr<unsigned char>();
  int *count, host[2] = {};
  cudaMalloc(&count, sizeof host);
  cudaMemset(count, 0, sizeof host);
  if (what == 0) TWICE(DeviceSelect::Flagged(p, bytes, in, f, to, count, n));
  if (what == 1) TWICE(DeviceSelect::If(p, bytes, in, to, count, n, Odd()));
  if (what == 2) TWICE(DeviceSelect::Unique(p, bytes, in, to, count, n));
  if (what == 3) TWICE(DevicePartition::Flagged(p, bytes, in, f, to, count, n));
  if (what == 4) TWICE(DevicePartition::If(p, bytes, in, to, count, n, Odd()));
  if (what == 5) TWICE(DeviceRunLengthEncode::Encode(p, bytes, in, to, other, count, n));
  if (what == 6) TWICE(DeviceRunLengthEncode::NonTrivialRuns(p, bytes, in, to, other, count, n));
  if (what == 7) TWICE(DeviceReduce::ReduceByKey(p, bytes, in, to, in, other, count, cuda::std::plus<>{}, n));
  if (what == 8) TWICE(DeviceSelect::UniqueByKey(p, bytes, in, f, to, cub::DiscardOutputIterator<>(), count, n));
  if (what == 9) TWICE(DeviceSelect::FlaggedIf(p, bytes, in, in, to, count, n, Third()));
  cudaMemcpy(host, count, sizeof host, cudaMemcpyDeviceToHost);
  cudaFree(count);
  return host[0];
}
template <class K> void sort_as(int what, int first, int last, K* keys, K* keys_out, int* v, int* v_out, int n) {
  if (what == 0) TWICE(DeviceRadixSort::SortPairs(p, bytes, keys, keys_out, v, v_out, n, first, last));
  if (what == 1) TWICE(DeviceRadixSort::SortPairsDescending(p, bytes, keys, keys_out, v, v_out, n, first, last));
  if (what == 2) {
    cub::DoubleBuffer<K> k(keys, keys_out);
    cub::DoubleBuffer<int> values(v, v_out);
    TWICE(DeviceRadixSort::SortPairs(p, bytes, k, values, n, first, last));
    if (k.Current() != keys_out) cudaMemcpy(keys_out, keys, n * sizeof(K), cudaMemcpyDeviceToDevice);
    if (values.Current() != v_out) cudaMemcpy(v_out, v, n * sizeof(int), cudaMemcpyDeviceToDevice);
  }
  if (what == 3)
    TWICE(DeviceMergeSort::StableSortPairs(p, bytes, keys, v, n, After()));
}
void sort(int what, int first, int last, torch::Tensor k, torch::Tensor k_out, torch::Tensor v, torch::Tensor v_out) {
  int n = k.numel(), *values = v.data_ptr<int>(), *to = v_out.data_ptr<int>();
  if (k.scalar_type() == torch::kFloat32)
    sort_as(what, first, last, k.data_ptr<float>(), k_out.data_ptr<float>(), values, to, n);
  if (k.scalar_type() == torch::kInt64)
    sort_as(what, first, last, k.data_ptr<int64_t>(), k_out.data_ptr<int64_t>(), values, to, n);
  if (k.scalar_type() == torch::kUInt8)
    sort_as(what, first, last, k.data_ptr<unsigned char>(), k_out.data_ptr<unsigned char>(), values, to, n);
}
void segments(torch::Tensor x, torch::Tensor offsets, torch::Tensor sums, torch::Tensor sorted) {
  int n = x.numel(), s = sums.numel() / 2, *o = offsets.data_ptr<int>();
  float *in = x.data_ptr<float>(), *to = sums.data_ptr<float>(), *out = sorted.data_ptr<float>();
  TWICE(DeviceSegmentedReduce::Sum(p, bytes, in, to, s, o, o + 1));
  TWICE(DeviceSegmentedReduce::Max(p, bytes, in, to + s, s, o, o + 1));
  TWICE(DeviceSegmentedSort::SortKeys(p, bytes, in, out, n, s, o, o + 1));
  TWICE(DeviceSegmentedRadixSort::SortKeysDescending(p, bytes, in, out + n, n, s, o, o + 1));
}
void histogram(torch::Tensor x, torch::Tensor levels, torch::Tensor even, torch::Tensor range) {
  int n = x.numel();
  float* in = x.data_ptr<float>();
  TWICE(DeviceHistogram::HistogramEven(p, bytes, in, even.data_ptr<int>(), (int)even.numel() + 1, -1.0f, 1.0f, n));
  TWICE(DeviceHistogram::HistogramRange(p, bytes, in, range.data_ptr<int>(), (int)levels.numel(),
                                        levels.data_ptr<float>(), n));
}
void each(torch::Tensor x, torch::Tensor out) {
  int n = x.numel(), *in = x.data_ptr<int>(), *to = out.data_ptr<int>();
  TWICE(DeviceAdjacentDifference::SubtractLeftCopy(p, bytes, in, to, n));
  TWICE(DeviceAdjacentDifference::SubtractRightCopy(p, bytes, in, to + n, n));
  cub::DeviceFor::Bulk(n, Triple{in, to + 2 * n});
  cub::DeviceTransform::Transform(cuda::std::make_tuple(in, in + 0), to + 3 * n, n, Times());
}
"""
_DECLARED = [
    "void reduce(torch::Tensor x, torch::Tensor out)",
    "void scan(torch::Tensor x, torch::Tensor keys, torch::Tensor out)",
    "int select_items(int what, torch::Tensor x, torch::Tensor flags, torch::Tensor out, torch::Tensor rest)",
    "void sort(int what, int first, int last, torch::Tensor k, torch::Tensor k_out, torch::Tensor v, "
    "torch::Tensor v_out)",
    "void segments(torch::Tensor x, torch::Tensor offsets, torch::Tensor sums, torch::Tensor sorted)",
    "void histogram(torch::Tensor x, torch::Tensor levels, torch::Tensor even, torch::Tensor range)",
    "void each(torch::Tensor x, torch::Tensor out)",
]
N = 777


@cache
def library():
    """Build the functions above once."""
    return load(_SOURCE, _DECLARED)


@pytest.fixture
def random():
    return np.random.default_rng(3)


def on_device(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array.copy()).to(DEVICE)


def empty(*shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype, device=DEVICE)


def test_reductions(random):
    """Are sums, extremes with the first of equal positions, own operators and the empty sum right?"""
    x = random.integers(-50, 50, N, dtype=np.int32)
    out = empty(10)
    library().reduce(on_device(x), out)
    expected = [x.sum(), x.min(), x.max(), x.min(), x.argmin(), x.max(), x.argmax()]
    expected += [np.bitwise_xor.reduce(x) ^ 5, (x & 1).sum(), 0]
    assert out.tolist() == [int(e) for e in expected]


def test_scans(random):
    """Are scans right, also those that begin anew at each key, and in place?"""
    x = random.integers(-9, 9, N, dtype=np.int32)
    keys = np.sort(random.integers(0, 90, N, dtype=np.int32))
    out = empty(7, N)
    library().scan(on_device(x), on_device(keys), out)
    starts = np.searchsorted(keys, keys)  # of each item's run
    total = np.cumsum(x)
    before = np.concatenate([[0], total])[:-1]
    most = np.maximum.accumulate(np.concatenate([[-3], x]))[:-1]
    expected = [before, total, most, np.minimum.accumulate(x), before - before[starts], total - before[starts], total]
    for got, wanted in zip(out.cpu().numpy(), expected):
        np.testing.assert_array_equal(got, wanted)


def runs_of(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first positions and the lengths of the runs of equal neighbours."""
    first = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))
    return first, np.diff(np.concatenate([first, [len(x)]]))


@pytest.mark.parametrize("what", range(10))
def test_selections_and_runs(random, what):
    """Do selections, partitions (the rest in reverse), runs and unique keys agree with NumPy's masks?"""
    x = random.integers(0, 4, N, dtype=np.int32)
    flags = random.integers(0, 2, N, dtype=np.uint8)
    out, rest = empty(N), empty(N)
    count = library().select_items(what, on_device(x), on_device(flags), out, rest)
    first, lengths = runs_of(x)
    masks = {0: flags > 0, 1: x % 2 == 1, 3: flags > 0, 4: x % 2 == 1, 9: x % 3 == 0}
    got, other = out.cpu().numpy(), rest.cpu().numpy()
    if what in masks:
        mask = masks[what]
        wanted = np.concatenate([x[mask], x[~mask][::-1]]) if what in (3, 4) else x[mask]
        assert count == mask.sum()
        np.testing.assert_array_equal(got[: len(wanted)], wanted)
    elif what == 6:
        long = lengths > 1
        np.testing.assert_array_equal(got[:count], first[long])
        np.testing.assert_array_equal(other[:count], lengths[long])
    else:
        np.testing.assert_array_equal(got[:count], x[first])
        if what == 5:
            np.testing.assert_array_equal(other[:count], lengths)
        if what == 7:
            np.testing.assert_array_equal(other[:count], lengths * x[first])


@pytest.mark.parametrize("what", range(4))
@pytest.mark.parametrize("kind, bits", [("f", (0, 32)), ("l", (0, 64)), ("l", (2, 6)), ("B", (0, 8)), ("B", (3, 5))])
def test_sorts(random, what, kind, bits):
    """Are radix sorts stable and right for signs, for -0.0, for some bits and downwards? Merge sorts take any order."""
    keys = random.integers(-40, 40, N) / 4 if kind == "f" else random.integers(0, 256, N) - (128 if kind == "l" else 0)
    keys = keys.astype(np.dtype(kind if kind != "l" else "i8"))
    if kind == "f":
        keys[[5, 9]] = -0.0, np.inf
    order = keys if bits in ((0, 32), (0, 64), (0, 8)) or what == 3 else keys.view(f"u{keys.dtype.itemsize}")
    if order is not keys:
        order = (order >> bits[0]) & ((1 << (bits[1] - bits[0])) - 1)
    descending = what in (1, 3)
    wanted = np.argsort(-order.astype(float) if descending else order, kind="stable")
    k, v = on_device(keys), torch.arange(N, dtype=torch.int32, device=DEVICE)
    k_out, v_out = torch.zeros_like(k), torch.zeros_like(v)
    library().sort(what, *bits, k, k_out, v, v_out)
    if what == 3:  # in place
        k_out, v_out = k, v
    np.testing.assert_array_equal(v_out.cpu().numpy(), wanted)
    np.testing.assert_array_equal(k_out.cpu().numpy(), keys[wanted])


def test_segments(random):
    """Are reductions and sorts of rows of different lengths right, with empty rows?"""
    x = random.integers(-64, 64, N).astype(np.float32) / 4
    offsets = np.sort(random.integers(0, N, 30, dtype=np.int32))
    offsets[[0, -1]] = 0, N
    offsets[7] = offsets[8]
    sums, ordered = empty(2 * 29, dtype=torch.float32), empty(2, N, dtype=torch.float32)
    library().segments(on_device(x), on_device(offsets), sums, ordered)
    rows = [x[a:b] for a, b in itertools.pairwise(offsets)]
    got = sums.cpu().numpy()
    np.testing.assert_array_equal(got[:29], [row.sum() for row in rows])
    np.testing.assert_array_equal(got[29:], [row.max(initial=-np.inf) for row in rows])
    np.testing.assert_array_equal(ordered[0].cpu().numpy(), np.concatenate([np.sort(row) for row in rows]))
    np.testing.assert_array_equal(ordered[1].cpu().numpy(), np.concatenate([np.sort(row)[::-1] for row in rows]))


def test_histograms(random):
    """Do bins include their lower level and not the upper one, and is what lies outside left out?"""
    x = random.integers(-20, 20, N).astype(np.float32) / 16
    levels = np.array([-1.0, -0.5, 0.0, 0.125, 1.0], dtype=np.float32)
    even, ranges = empty(8), empty(4)
    library().histogram(on_device(x), on_device(levels), even, ranges)
    inside = x[x < 1]
    assert even.tolist() == np.histogram(inside, bins=8, range=(-1, 1))[0].tolist()
    assert ranges.tolist() == np.histogram(inside, bins=levels)[0].tolist()


def test_functions_of_each_item(random):
    """Are differences of neighbours, DeviceFor and DeviceTransform right?"""
    x = random.integers(-9, 9, N, dtype=np.int32)
    out = empty(4, N)
    library().each(on_device(x), out)
    left, right = np.diff(x, prepend=0), np.append(x[:-1] - x[1:], x[-1])
    np.testing.assert_array_equal(out.cpu().numpy(), [left, right, 3 * x, x * x])
