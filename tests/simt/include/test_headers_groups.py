"""simt/cooperative_groups.h against the same groups made of lists in Python."""

from __future__ import annotations

import pytest
import torch

from tests.simt.kernels_of_expressions import DEVICE, load

THREADS = 96

_SOURCE = (
    """
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;

struct Wide { double a, b; int c; };

// What any group offers; written once for all kinds.
template <class Group>
__device__ void common(const Group& g, int v, int* out) {
  out[0] = g.thread_rank();
  out[1] = g.size();
  out[2] = g.shfl(v, 1 % g.size());
  out[3] = g.shfl_up(v, 1);
  out[4] = g.shfl_down(v, 2);
  out[5] = g.any(v % 7 == 0);
  out[6] = g.all(v % 7 != 1);
  out[7] = g.ballot(v & 1);
  out[8] = g.match_any(v % 3);
  int all = 5;
  out[9] = g.match_all(v & 0, all);
  out[10] = all;
  out[11] = cg::reduce(g, v, cg::plus<int>());
  out[12] = cg::reduce(g, v, cg::less<int>());
  out[13] = cg::reduce(g, v, cg::greater<int>());
  out[14] = cg::reduce(g, v, cg::bit_xor<int>()) + cg::reduce(g, v, cg::bit_or<int>()) + cg::reduce(g, v, """
    """cg::bit_and<int>());
  out[15] = cg::inclusive_scan(g, v);
  out[16] = cg::exclusive_scan(g, v, cg::plus<int>());
  out[17] = (int)(2 * cg::reduce(g, v * 0.5, cg::plus<double>()));
  Wide wide = {v * 1.0, v * 2.0, v};
  wide = g.shfl(wide, g.size() - 1);
  out[18] = (int)(wide.a + wide.b) + wide.c;
  out[19] = cg::reduce(g, v, [](int a, int b) { return a > b ? a : b; });
  cg::sync(g);
  g.sync();
}

template <int N>
__global__ void tiles(const int* x, int* out) {
  auto tile = cg::tiled_partition<N>(cg::this_thread_block());
  int t = threadIdx.x;
  common(tile, x[t], out + t * 24);
  out[t * 24 + 20] = tile.meta_group_rank();
  out[t * 24 + 21] = tile.meta_group_size();
  out[t * 24 + 22] = tile.shfl_xor(x[t], 3 % N);
  static_assert(tile.num_threads() == N, "known when compiled");
}
void tile(int n, torch::Tensor x, torch::Tensor out) {
  const int* in = x.data_ptr<int>();
  int* o = out.data_ptr<int>();
  if (n == 1) tiles<1><<<1, 96>>>(in, o);
  if (n == 2) tiles<2><<<1, 96>>>(in, o);
  if (n == 4) tiles<4><<<1, 96>>>(in, o);
  if (n == 8) tiles<8><<<1, 96>>>(in, o);
  if (n == 16) tiles<16><<<1, 96>>>(in, o);
  if (n == 32) tiles<32><<<1, 96>>>(in, o);
}

__global__ void coalesced_lanes(const int* x, int* out) {
  int t = threadIdx.x;
  if (t % 3 != 1) {
    auto g = cg::coalesced_threads();
    common(g, x[t], out + t * 24);
  }
}
void coalesced(torch::Tensor x, torch::Tensor out) { """
    """coalesced_lanes<<<1, 96>>>(x.data_ptr<int>(), out.data_ptr<int>()); }

__global__ void partitions(int kind, const int* x, int* out) {
  int t = threadIdx.x;
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  if (kind == 0) common(cg::labeled_partition(warp, x[t] % 5), x[t], out + t * 24);
  if (kind == 1) common(cg::binary_partition(warp, x[t] % 5 < 2), x[t], out + t * 24);
  if (kind == 2) common(cg::tiled_partition<4>(cg::tiled_partition<16>(warp)), x[t], out + t * 24);
}
void partition(int kind, torch::Tensor x, torch::Tensor out) { """
    """partitions<<<1, 96>>>(kind, x.data_ptr<int>(), out.data_ptr<int>()); }

// The reduction of NVIDIA's introduction to cooperative groups, in our words: any thread_group will do.
__device__ int sum_in(cg::thread_group g, int* room, int v) {
  int rank = g.thread_rank();
  for (int half = g.size() / 2; half > 0; half /= 2) {
    room[rank] = v;
    g.sync();
    if (rank < half) v += room[rank + half];
    g.sync();
  }
  return v;
}
__global__ void any_group(const int* x, int* out) {
  __shared__ int room[64];
  cg::thread_block block = cg::this_thread_block();
  int t = block.thread_rank();
  int whole = sum_in(block, room, x[t]);
  block.sync();
  auto part = cg::tiled_partition(block, 8);
  int eighth = sum_in(part, room + t / 8 * 8, x[t]);
  cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
  int sixteenth = sum_in(tile, room + t / 16 * 16, x[t]);
  out[t * 3] = whole; out[t * 3 + 1] = eighth; out[t * 3 + 2] = sixteenth;
}
void any(torch::Tensor x, torch::Tensor out) { any_group<<<1, dim3(16, 4)>>>(x.data_ptr<int>(), out.data_ptr<int>()); }

__global__ void block_facts(int* out) {
  auto b = cg::this_thread_block();
  auto grid = cg::this_grid();
  int* row = out + grid.thread_rank() * 12;
  row[0] = b.thread_rank(); row[1] = b.size(); row[2] = b.group_index().x; row[3] = b.group_index().y;
  row[4] = b.thread_index().x; row[5] = b.thread_index().y; row[6] = b.dim_threads().x; row[7] = grid.size();
  row[8] = grid.block_rank(); row[9] = grid.num_blocks(); row[10] = grid.dim_blocks().y; row[11] = b.group_dim().y;
}
void facts(torch::Tensor out) { block_facts<<<dim3(3, 2), dim3(4, 5)>>>(out.data_ptr<int>()); }

__global__ void two_phases(const float* x, float* partial, float* out, int n) {
  cg::grid_group grid = cg::this_grid();
  float sum = 0;
  for (int i = grid.thread_rank(); i < n; i += grid.size()) sum += x[i];
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  sum = cg::reduce(warp, sum, cg::plus<float>());
  if (warp.thread_rank() == 0) partial[grid.thread_rank() / 32] = sum;
  grid.sync();
  if (grid.thread_rank() == 0) {
    out[0] = 0;
    for (int i = 0; i < (int)grid.size() / 32; ++i) out[0] += partial[i];
    out[1] = grid.is_valid();
  }
}
int64_t whole_grid(torch::Tensor x, torch::Tensor partial, torch::Tensor out) {
  const float* in = x.data_ptr<float>();
  float *p = partial.data_ptr<float>(), *o = out.data_ptr<float>();
  int n = x.numel();
  void* arguments[] = {&in, &p, &o, &n};
  return cudaLaunchCooperativeKernel((void*)two_phases, dim3(4), dim3(64), arguments, 0, nullptr);
}

__global__ void copied(const float* x, float* out, int n) {
  __shared__ alignas(16) float tile[100];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, tile, x, sizeof(float) * n);
  cg::wait(block);
  int t = threadIdx.x;
  for (int i = t; i < n; i += 64) out[i] = tile[n - 1 - i];
}
__global__ void elected(int* out) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  cg::invoke_one(tile, [=] { atomicAdd(out, 1); });
  int first = cg::invoke_one_broadcast(tile, [] { return (int)threadIdx.x; });
  out[1 + threadIdx.x] = first / 8;
}
void elect(torch::Tensor out) { elected<<<1, 32>>>(out.data_ptr<int>()); }

void copy(torch::Tensor x, torch::Tensor out) { """
    """copied<<<1, 64>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.numel()); }
"""
)


@pytest.fixture(scope="module")
def kernels():
    return load(
        _SOURCE,
        [
            "void tile(int n, torch::Tensor x, torch::Tensor out)",
            "void coalesced(torch::Tensor x, torch::Tensor out)",
            "void partition(int kind, torch::Tensor x, torch::Tensor out)",
            "void any(torch::Tensor x, torch::Tensor out)",
            "void facts(torch::Tensor out)",
            "int64_t whole_grid(torch::Tensor x, torch::Tensor partial, torch::Tensor out)",
            "void elect(torch::Tensor out)",
            "void copy(torch::Tensor x, torch::Tensor out)",
        ],
    )


def _common(values: list[int], rank: int, up_source: int, down_source: int) -> list[int]:
    """The first 20 results of `common` for one thread of a group that holds these values."""
    v, n = values[rank], len(values)

    def ranks(test):
        return sum(1 << r for r, w in enumerate(values) if test(w))

    xor, disjunction, conjunction = 0, 0, -1
    for w in values:
        xor, disjunction, conjunction = xor ^ w, disjunction | w, conjunction & w
    full = 2**n - 1
    last = values[-1]
    return [
        rank,
        n,
        values[1 % n],
        values[up_source],
        values[down_source],
        int(any(w % 7 == 0 for w in values)),
        int(all(w % 7 != 1 for w in values)),
        ranks(lambda w: w & 1),
        ranks(lambda w: w % 3 == v % 3),
        full,
        1,
        sum(values),
        min(values),
        max(values),
        xor + disjunction + conjunction,
        sum(values[: rank + 1]),
        sum(values[:rank]),
        sum(values),
        4 * last,
        max(values),
    ]


def _signed(x: int) -> int:
    x &= 2**32 - 1
    return x - 2**32 if x >> 31 else x


def _check(got: list[list[int]], groups: list[list[int]], values: list[int]) -> None:
    """groups: the threads of each group, in the order of their ranks."""
    for group in groups:
        inside = [values[t] for t in group]
        n = len(group)
        for rank, t in enumerate(group):
            up = rank - 1 if rank >= 1 else rank
            down = rank + 2 if rank + 2 < n else rank
            assert got[t][:20] == [_signed(w) for w in _common(inside, rank, up, down)], t


@pytest.fixture
def values() -> list[int]:
    return torch.randint(0, 1000, (THREADS,), generator=torch.Generator().manual_seed(7)).tolist()


def _run(call, values: list[int]) -> list[list[int]]:
    out = torch.zeros(THREADS, 24, dtype=torch.int32, device=DEVICE)
    call(torch.tensor(values, dtype=torch.int32, device=DEVICE), out)
    return out.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 4, 8, 16, 32])
def test_tiles(kernels, values, n):
    """Do tiles of every size rank, shuffle, vote, match, reduce and scan as lists of their threads do?"""
    got = _run(lambda x, out: kernels.tile(n, x, out), values)
    _check(got, [list(range(first, first + n)) for first in range(0, THREADS, n)], values)
    for t in range(THREADS):
        assert got[t][20:23] == [t // n, THREADS // n, values[t ^ (3 % n)]]


@pytest.mark.slow
def test_coalesced_threads(kernels, values):
    """Is the group of a branch the lanes that took it, ranked in their order?"""
    got = _run(kernels.coalesced, values)
    _check(got, [[t for t in range(first, first + 32) if t % 3 != 1] for first in range(0, THREADS, 32)], values)
    assert all(got[t] == [0] * 24 for t in range(THREADS) if t % 3 == 1)


@pytest.mark.parametrize(
    ("kind", "label"), [(0, lambda v, t: v % 5), (1, lambda v, t: v % 5 < 2), (2, lambda v, t: t // 4)]
)
def test_partitions(kernels, values, kind, label):
    """Do labeled, binary and nested partitions put threads together by their label?"""
    got = _run(lambda x, out: kernels.partition(kind, x, out), values)
    groups = []
    for first in range(0, THREADS, 32):
        by_label: dict[int, list[int]] = {}
        for t in range(first, first + 32):
            by_label.setdefault(label(values[t], t), []).append(t)
        groups += by_label.values()
    _check(got, groups, values)


def test_a_function_of_any_group(kernels, values):
    """Does one function that takes a thread_group reduce over a block, a part and a tile?"""
    x = torch.tensor(values[:64], dtype=torch.int32, device=DEVICE)
    out = torch.zeros(64, 3, dtype=torch.int32, device=DEVICE)
    kernels.any(x, out)
    assert out[0, 0] == sum(values[:64])
    for first in range(0, 64, 8):
        assert out[first, 1] == sum(values[first : first + 8])
    for first in range(0, 64, 16):
        assert out[first, 2] == sum(values[first : first + 16])


def test_block_and_grid_facts(kernels):
    """Do ranks and sizes follow x first, then y?"""
    out = torch.zeros(120, 12, dtype=torch.int32, device=DEVICE)
    kernels.facts(out)
    for by in range(2):
        for bx in range(3):
            for ty in range(5):
                for tx in range(4):
                    rank, block = ty * 4 + tx, by * 3 + bx
                    assert out[block * 20 + rank].tolist() == [rank, 20, bx, by, tx, ty, 4, 120, block, 6, 2, 5]


def test_grid_sync(kernels):
    """Is what every block wrote before grid.sync() there after it?"""
    x = torch.arange(1000.0, device=DEVICE)
    partial, out = torch.zeros(8, device=DEVICE), torch.zeros(2, device=DEVICE)
    assert kernels.whole_grid(x, partial, out) == 0
    assert out.tolist() == [499500.0, 1.0]


@pytest.mark.parametrize("n", [1, 37, 100])
def test_memcpy_async(kernels, n):
    """Is every byte there after wait()?"""
    x = torch.arange(float(n), device=DEVICE)
    out = torch.zeros(n, device=DEVICE)
    kernels.copy(x, out)
    assert torch.equal(out, x.flip(0))


def test_invoke_one(kernels):
    """Does one thread of each tile act, and do all of the tile get what it returned?"""
    out = torch.zeros(33, dtype=torch.int32, device=DEVICE)
    kernels.elect(out)
    assert out.tolist() == [4] + [t // 8 for t in range(32)]
