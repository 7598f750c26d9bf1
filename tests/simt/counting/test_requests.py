"""Does simt.count keep, of each line, a request that was really made, with what a brute-force count says it costs?"""

import random

import pytest
import torch

import simt

SOURCE = r"""
#include <torch/extension.h>
template <class T>
__global__ void global_access(const int* index, const T* from, T* to) {
  const int at = index[blockIdx.x * blockDim.x + threadIdx.x];
  if (at < 0) return;
  const T value = from[at];                                                 // @load
  to[at] = value;                                                           // @store
}
template <class T>
__global__ void shared_access(const int* index, float* out) {
  __shared__ T table[1024];
  const int t = threadIdx.x, at = index[t];
  table[t] = T{};                                                           // @fill
  __syncthreads();
  if (at < 0) return;
  volatile char* raw = (volatile char*)table;
  const T value = table[at];                                                // @shared load
  __syncwarp(__activemask());
  table[at] = value;                                                        // @shared store
  if (t < 0) out[t] = raw[5];
}
template <class T>
void global_of(const int* at, int blocks, torch::Tensor a, torch::Tensor b) {
  global_access<T><<<blocks, 32>>>(at, (const T*)a.data_ptr(), (T*)b.data_ptr());
}
void run_global_access(std::string type, torch::Tensor index, torch::Tensor a, torch::Tensor b) {
  const auto run = type == "float" ? global_of<float> : type == "double" ? global_of<double> : global_of<float4>;
  run(index.data_ptr<int>(), index.numel() / 32, a, b);
}
void run_shared_access(std::string type, torch::Tensor index, torch::Tensor a, torch::Tensor b) {
  const int* at = index.data_ptr<int>();
  if (type == "float") shared_access<float><<<1, 32>>>(at, b.data_ptr<float>());
  if (type == "double") shared_access<double><<<1, 32>>>(at, b.data_ptr<float>());
  if (type == "float4") shared_access<float4><<<1, 32>>>(at, b.data_ptr<float>());
}

__global__ void dynamic(const float* x, float* y, int stride) {
  extern __shared__ float tile[];
  tile[threadIdx.x] = x[threadIdx.x + 1];                                   // @from the second
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x * stride % 1024];                       // @strided
}
void run_dynamic(torch::Tensor x, torch::Tensor y, int stride) {
  dynamic<<<3, 1024, 4096>>>(x.data_ptr<float>(), y.data_ptr<float>(), stride);
}
"""
SIZES = {"float": 4, "double": 8, "float4": 16}


@pytest.fixture(scope="module")
def kernels():
    tensors = "std::string type, torch::Tensor index, torch::Tensor a, torch::Tensor b"
    declared = (
        f"void run_global_access({tensors}); void run_shared_access({tensors}); "
        f"void run_dynamic(torch::Tensor x, torch::Tensor y, int stride);"
    )
    return simt.load_inline(
        "requests", declared, SOURCE, functions=["run_global_access", "run_shared_access", "run_dynamic"]
    )


def at_line(report, mark, kind):
    """The request of that kind in the marked line."""
    number = next(
        n for n, text in enumerate(SOURCE.split("\n"), 1) if f"// @{mark}" in text and f"@{mark} " not in text
    )
    (line,) = (line for line in report.lines if line.line == number)
    return line, next(r for r in line.requests if r.kind == kind)


def tables():
    rng = random.Random(4)
    yield list(range(32))
    yield [2 * lane for lane in range(32)]
    yield [lane * 33 % 512 for lane in range(32)]
    yield [1 + lane for lane in range(32)]
    yield [lane // 2 for lane in range(32)]
    for _ in range(12):
        yield [rng.randrange(-100, 500) for _ in range(32)]


def banks(addresses, size):
    """Wavefronts of lanes that each ask for other bytes than their neighbours, a plain loop over every group."""
    per = 32 if size <= 4 else 16 if size == 8 else 8
    total = 0
    for first in range(0, 32, per):
        words = {w for a in addresses[first : first + per] if a is not None for w in range(a // 4, (a + size) // 4)}
        total += max((sum(w % 32 == bank for w in words) for bank in range(32)), default=0)
    return total


@pytest.mark.slow
@pytest.mark.parametrize("type", SIZES)
def test_are_the_addresses_those_that_the_lanes_asked_for(kernels, type):
    size = SIZES[type]
    a, b = torch.zeros(4096), torch.zeros(4096)
    for table in tables():
        with simt.count() as report:
            kernels.run_global_access(type, torch.tensor(table, dtype=torch.int32), a, b)
        for mark, kind, array in (("load", "global_loads", "from"), ("store", "global_stores", "to")):
            line, request = at_line(report, mark, kind)
            assert request.addresses == tuple(i * size if i >= 0 else None for i in table)
            touched = {byte // 32 for i in table if i >= 0 for byte in range(i * size, (i + 1) * size)}
            assert request.sectors == len(touched) == getattr(line.counters, kind).sectors
            assert (request.array, request.element, request.bytes, request.start) == (array, size, size, 0)
            assert request.lanes == sum(i >= 0 for i in table)


@pytest.mark.parametrize("type", SIZES)
def test_are_wavefronts_of_a_shared_request_those_of_its_addresses(kernels, type):
    size = SIZES[type]
    a, b = torch.zeros(4096), torch.zeros(4096)
    for table in tables():
        if len(set(table)) < 32 and size > 4:
            continue  # neighbours that ask for the same have a rule of their own
        with simt.count() as report:
            kernels.run_shared_access(type, torch.tensor(table, dtype=torch.int32), a, b)
        _, request = at_line(report, "shared load", "shared_loads")
        assert request.addresses == tuple(i * size if i >= 0 else None for i in table)
        assert request.wavefronts == banks(request.addresses, size)
        assert request.array == "table"


def test_is_the_costliest_request_of_a_line_kept(kernels):
    good, bad = list(range(32)), [8 * lane for lane in range(32)]
    half = [8 * lane if lane < 16 else -1 for lane in range(32)]
    a, b = torch.zeros(4096), torch.zeros(4096)
    with simt.count() as report:
        kernels.run_global_access("float", torch.tensor(good + half + bad + bad, dtype=torch.int32), a, b)
    _, request = at_line(report, "load", "global_loads")
    assert (request.block, request.sectors, request.ideal_sectors, request.excess) == (2, 32, 4, 28)


def test_does_a_view_tell_where_in_its_sector_it_begins(kernels):
    a, b = torch.zeros(4096)[5:], torch.zeros(4096)
    with simt.count() as report:
        kernels.run_global_access("float", torch.arange(32, dtype=torch.int32), a, b)
    _, request = at_line(report, "load", "global_loads")
    assert (request.start, request.addresses[:2], request.sectors) == (20, (0, 4), 5)


def test_does_dynamic_shared_memory_tell_its_conflicts_and_a_shifted_load_its_fifth_sector(kernels):
    x, y = torch.zeros(2048), torch.zeros(2048)
    with simt.count() as report:
        kernels.run_dynamic(x, y, 8)
    _, load = at_line(report, "from the second", "global_loads")
    assert (load.array, load.addresses[0], load.sectors, load.ideal_sectors) == ("x", 4, 5, 4)
    _, strided = at_line(report, "strided", "shared_loads")
    assert (strided.array, strided.wavefronts, strided.ideal_wavefronts) == ("", 8, 1)
    assert strided.addresses == tuple(32 * lane for lane in range(32))
    _, store = at_line(report, "strided", "global_stores")
    assert (store.array, store.excess) == ("y", 0)


def test_is_the_same_request_kept_each_time(kernels):
    index = torch.randint(0, 500, (32 * 64,), dtype=torch.int32)
    a, b = torch.zeros(4096), torch.zeros(4096)
    kept = set()
    for _ in range(3):
        with simt.count() as report:
            kernels.run_global_access("float", index, a, b)
        kept.add(tuple(r for line in report.lines for r in line.requests))
    assert len(kept) == 1
