"""thrust against NumPy: algorithms on device vectors, iterators, random numbers, and sequential calls in kernels."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from tests.simt.kernels_of_expressions import DEVICE, load

pytestmark = pytest.mark.slow  # one source with everything, which takes long to compile

_SOURCE = r"""
#include <thrust/adjacent_difference.h>
#include <thrust/binary_search.h>
#include <thrust/complex.h>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/equal.h>
#include <thrust/extrema.h>
#include <thrust/find.h>
#include <thrust/gather.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/reverse_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/logical.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/random.h>
#include <thrust/remove.h>
#include <thrust/replace.h>
#include <thrust/reverse.h>
#include <thrust/scan.h>
#include <thrust/scatter.h>
#include <thrust/sequence.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/tabulate.h>
#include <thrust/transform_reduce.h>
#include <thrust/transform_scan.h>
#include <thrust/unique.h>
using namespace thrust::placeholders;
using Vector = thrust::device_vector<int>;
struct Sum { template <class T> __host__ __device__ int operator()(const T& t) const {
  return thrust::get<0>(t) + 10 * thrust::get<1>(t); } };
struct Odd { __host__ __device__ bool operator()(int x) const { return x & 1; } };

Vector compute(int what, Vector a, Vector b) {
  const int n = a.size();
  Vector r(n), s(n);
  auto cut = [&](Vector::iterator end) { r.resize(end - r.begin()); };
  auto both = thrust::make_zip_iterator(thrust::make_tuple(a.begin(), b.begin()));
  switch (what) {
    case 0: thrust::transform(a.begin(), a.end(), b.begin(), r.begin(), 3 * _1 - _2); break;
    case 1: thrust::transform(both, both + n, r.begin(), Sum()); break;
    case 2: thrust::inclusive_scan(a.begin(), a.end(), r.begin()); break;
    case 3: thrust::exclusive_scan(a.begin(), a.end(), r.begin(), 7, thrust::maximum<int>()); break;
    case 4: r = a; thrust::sort(r.begin(), r.end(), thrust::greater<int>()); break;
    case 5: thrust::sequence(r.begin(), r.end()); thrust::stable_sort_by_key(a.begin(), a.end(), r.begin()); break;
    case 6: cut(thrust::copy_if(a.begin(), a.end(), b.begin(), r.begin(), Odd())); break;
    case 7: r = a; cut(thrust::remove_if(r.begin(), r.end(), Odd())); break;
    case 8: r = a; thrust::stable_partition(r.begin(), r.end(), Odd()); break;
    case 9: r = a; cut(thrust::unique(r.begin(), r.end())); break;
    case 10: {
      auto nowhere = thrust::make_discard_iterator();
      cut(thrust::reduce_by_key(a.begin(), a.end(), b.begin(), nowhere, r.begin()).second);
      break;
    }
    case 11: thrust::sequence(s.begin(), s.end(), n - 1, -1); thrust::gather(s.begin(), s.end(), a.begin(), r.begin());
      break;
    case 12: thrust::sequence(s.begin(), s.end(), n - 1, -1); thrust::scatter(a.begin(), a.end(), s.begin(), r.begin());
      break;
    case 13: thrust::sort(a.begin(), a.end()); thrust::lower_bound(a.begin(), a.end(), b.begin(), b.end(), r.begin());
      break;
    case 14: thrust::sort(a.begin(), a.end()); thrust::binary_search(a.begin(), a.end(), b.begin(), b.end(), r.begin());
      break;
    case 15: thrust::sort(a.begin(), a.end()); thrust::sort(b.begin(), b.end()); r.resize(2 * n);
      thrust::merge(a.begin(), a.end(), b.begin(), b.end(), r.begin()); break;
    case 16: thrust::adjacent_difference(a.begin(), a.end(), r.begin()); break;
    case 17: thrust::replace_copy_if(a.begin(), a.end(), r.begin(), _1 < 0, 99); break;
    case 18: thrust::tabulate(r.begin(), r.end(), _1 * _1); break;
    case 19: thrust::copy(thrust::make_reverse_iterator(a.end()), thrust::make_reverse_iterator(a.begin()), r.begin());
      break;
    case 20: thrust::transform_inclusive_scan(a.begin(), a.end(), r.begin(), _1 * _1, thrust::plus<int>()); break;
    case 21: thrust::inclusive_scan_by_key(a.begin(), a.end(), b.begin(), r.begin()); break;
    case 22: thrust::sort(a.begin(), a.end()); a.erase(thrust::unique(a.begin(), a.end()), a.end());
      thrust::sort(b.begin(), b.end()); b.erase(thrust::unique(b.begin(), b.end()), b.end());
      cut(thrust::set_difference(a.begin(), a.end(), b.begin(), b.end(), r.begin())); break;
    case 23: thrust::sort(both, both + n); thrust::copy(b.begin(), b.end(), r.begin()); break;
    case 24: {
      auto squares = thrust::make_transform_iterator(thrust::counting_iterator<int>(0), _1 * 2 % 7);
      auto picked = thrust::make_permutation_iterator(a.begin(), squares);
      thrust::copy(picked, picked + n, r.begin());
      break;
    }
    case 25: {
      auto twos = thrust::make_constant_iterator(2);
      thrust::exclusive_scan(twos, twos + n, r.begin());
      break;
    }
    case 26: {  // vectors
      r = Vector{4, 5};
      r.push_back(6), r.insert(r.begin() + 1, 2, 9), r.pop_back(), r.erase(r.begin()), r.resize(5, -1);
      thrust::host_vector<int> h = r;
      h[0] = h.back() + (int)r[1], r = h, r[1] += 100;
      thrust::swap(r, s), s.swap(r);
      break;
    }
    case 27: r.resize(10);
      r[0] = thrust::reduce(a.begin(), a.end()), r[1] = thrust::reduce(a.begin(), a.end(), -99, thrust::maximum<int>());
      r[2] = thrust::count(a.begin(), a.end(), 2), r[3] = thrust::max_element(a.begin(), a.end()) - a.begin();
      r[4] = thrust::inner_product(a.begin(), a.end(), b.begin(), 5);
      r[5] = thrust::find(a.begin(), a.end(), 3) - a.begin(), r[6] = thrust::any_of(a.begin(), a.end(), _1 > 1000);
      r[7] = thrust::transform_reduce(a.begin(), a.end(), Odd(), 0, thrust::plus<int>());
      r[8] = thrust::equal(a.begin(), a.end(), thrust::host_vector<int>(a).begin());
      r[9] = thrust::minmax_element(a.begin(), a.end()).first - a.begin();
      break;
    case 28: thrust::reverse_copy(a.begin(), a.end(), r.begin()), thrust::swap_ranges(r.begin(), r.end(), b.begin()),
      r = b; break;
  }
  return r;
}
torch::Tensor run(int what, torch::Tensor a, torch::Tensor b) {
  thrust::device_ptr<int> x(a.data_ptr<int>()), y(b.data_ptr<int>());
  Vector r = compute(what, Vector(x, x + a.numel()), Vector(y, y + b.numel()));
  auto out = torch::empty({(int64_t)r.size()}, a.options());
  thrust::copy(r.begin(), r.end(), thrust::device_ptr<int>(out.data_ptr<int>()));
  return out;
}

__global__ void sort_rows(int* x, int width) {
  int* row = x + (blockIdx.x * blockDim.x + threadIdx.x) * width;
  thrust::sort(thrust::seq, row, row + width);
  row[0] = thrust::reduce(thrust::seq, row, row + width);
}
void rows(torch::Tensor x) { sort_rows<<<2, x.size(0) / 2>>>(x.data_ptr<int>(), x.size(1)); }

void uniform(int seed, int64_t skip, torch::Tensor out, torch::Tensor whole) {
  thrust::device_ptr<float> to(out.data_ptr<float>());
  thrust::device_ptr<int> ints(whole.data_ptr<int>());
  thrust::minstd_rand engine(seed);
  engine.discard(skip);
  for (int i = 0; i < out.numel(); ++i) {
    thrust::uniform_real_distribution<float> real(-1, 3);
    thrust::uniform_int_distribution<int> numbers(-5, 5);
    to[i] = real(engine);
    ints[i] = numbers(engine);
  }
}
"""
_DECLARED = [
    "torch::Tensor run(int what, torch::Tensor a, torch::Tensor b)",
    "void rows(torch::Tensor x)",
    "void uniform(int seed, int64_t skip, torch::Tensor out, torch::Tensor whole)",
]
N = 300


@cache
def library():
    """Build the functions above once."""
    return load(_SOURCE, _DECLARED)


def by_key(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    """Return the parts of b that belong to runs of equal neighbours in a."""
    return np.split(b, np.flatnonzero(a[1:] != a[:-1]) + 1)


def reductions(a: np.ndarray, b: np.ndarray) -> list:
    first = [a.sum(), a.max(), (a == 2).sum(), a.argmax(), 5 + (a * b).sum(), np.flatnonzero(a == 3)[0], 0]
    return [*first, (a % 2).sum(), 1, a.argmin()]


EXPECTED = [
    lambda a, b: 3 * a - b,
    lambda a, b: a + 10 * b,
    lambda a, b: a.cumsum(),
    lambda a, b: np.maximum.accumulate(np.append(7, a))[:-1],
    lambda a, b: np.sort(a)[::-1],
    lambda a, b: np.argsort(a, kind="stable"),
    lambda a, b: a[b % 2 == 1],
    lambda a, b: a[a % 2 == 0],
    lambda a, b: np.concatenate([a[a % 2 == 1], a[a % 2 == 0]]),
    lambda a, b: [part[0] for part in by_key(a, a)],
    lambda a, b: [part.sum() for part in by_key(a, b)],
    lambda a, b: a[::-1],
    lambda a, b: a[::-1],
    lambda a, b: np.searchsorted(np.sort(a), b),
    lambda a, b: np.isin(b, a),
    lambda a, b: np.sort(np.concatenate([a, b])),
    lambda a, b: np.diff(a, prepend=0),
    lambda a, b: np.where(a < 0, 99, a),
    lambda a, b: np.arange(N) ** 2,
    lambda a, b: a[::-1],
    lambda a, b: (a * a).cumsum(),
    lambda a, b: np.concatenate([part.cumsum() for part in by_key(a, b)]),
    lambda a, b: np.setdiff1d(a, b),
    lambda a, b: b[np.lexsort([b, a])],
    lambda a, b: a[np.arange(N) * 2 % 7],
    lambda a, b: 2 * np.arange(N),
    lambda a, b: [8, 109, 5, -1, -1],
    reductions,
    lambda a, b: a[::-1],
]


@pytest.mark.parametrize("what", range(len(EXPECTED)))
def test_an_algorithm_agrees_with_numpy(what):
    """Is each algorithm's result the one of the same computation in NumPy?"""
    random = np.random.default_rng(what)
    a, b = random.integers(-6, 7, (2, N), dtype=np.int32)
    if what == 22:
        b = b[b > 2]
    got = library().run(what, torch.from_numpy(a).to(DEVICE), torch.from_numpy(b).to(DEVICE))
    np.testing.assert_array_equal(got.cpu().numpy(), EXPECTED[what](a, b))


def test_sequential_algorithms_run_in_a_kernel():
    """Does each thread sort and add up its own row?"""
    x = np.random.default_rng(1).integers(-99, 99, (64, 40), dtype=np.int32)
    rows = torch.from_numpy(x.copy()).to(DEVICE)
    library().rows(rows)
    expected = np.sort(x, axis=1)
    expected[:, 0] = x.sum(axis=1)
    np.testing.assert_array_equal(rows.cpu().numpy(), expected)


@pytest.mark.parametrize("seed, skip", [(1, 0), (12345, 7), (2147483646, 10**12)])
def test_random_numbers_are_those_of_the_recurrence(seed, skip):
    """Are engines, jumps and uniform distributions those that the documentation defines?"""
    out, whole = torch.empty(20, device=DEVICE), torch.empty(20, dtype=torch.int32, device=DEVICE)
    library().uniform(seed, skip, out, whole)
    m = 2**31 - 1
    x = seed * pow(48271, skip, m) % m
    for real, integer in zip(out.tolist(), whole.tolist()):
        x = x * 48271 % m
        assert real == pytest.approx((x - 1) / (m - 1) * 4 - 1, abs=1e-6)
        x = x * 48271 % m
        assert integer == int((x - 1) / (m - 1) * 11 - 5)
