"""Counting mode: are short sides of branches, also with branches in them, run by all lanes, and long ones by those that
take them?

ncu shows so of nvcc's code on an H200: benchmarks/COUNTERS.md, ratio_interval and the divergent micro-kernels.
"""

import pytest
import torch

import simt

SOURCE = (
    r"""
#include <torch/extension.h>

// Each computes 32 lanes' ranks among n numbers, equal ones in their order.
__global__ void short_circuit(const float* x, int* rank, int n) {
  const int i = threadIdx.x;
  const float mine = x[i];
  int r = 0;
  for (int k = 0; k < n; ++k) r += x[k] < mine || (x[k] == mine && k < i);
  rank[i] = r;
}

__global__ void else_if(const float* x, int* rank, int n) {
  const int i = threadIdx.x;
  const float mine = x[i];
  int r = 0;
  for (int k = 0; k < n; ++k) {
    if (x[k] < mine) ++r;
    else if (x[k] == mine) r += k < i;
  }
  rank[i] = r;
}

// The second side is longer than what nvcc switches off lane by lane.
__global__ void long_side(const float* x, int* rank, int n) {
  const int i = threadIdx.x;
  const float mine = x[i];
  int r = 0;
  unsigned h = i;
  for (int k = 0; k < n; ++k) {
    if (x[k] < mine) {
      ++r;
    } else {
      h = h * 1664525u + (h >> 7), h ^= h << 13, h = h * 22695477u + (h >> 5), h ^= h << 17, """
    r"""h = h * 69069u + (h >> 3), h ^= h << 5;
      h = h * 1103515245u + (h >> 9), h ^= h << 11, h = h * 134775813u + (h >> 6), h ^= h << 3;
      r += x[k] == mine && k < i;
    }
  }
  rank[i] = r + (h == 12345u && i > 64);
}

// The turn of a loop ends with so little that a compiler may give each side of the branch its own copy.
__device__ float larger(float best, float v) { return v > best || isnan(v) ? v : best; }

__global__ void maximum(const float* x, float* most, int n) {
  float best = -INFINITY;
  for (int k = 0; k < n; ++k) best = larger(best, x[k * 32 + threadIdx.x]);
  most[threadIdx.x] = best;
}

void run_maximum(torch::Tensor x, torch::Tensor most) { """
    r"""maximum<<<1, 32>>>(x.data_ptr<float>(), most.data_ptr<float>(), x.size(0)); }

void run(std::string name, torch::Tensor x, torch::Tensor rank) {
  const auto kernel = name == "short_circuit" ? short_circuit : name == "else_if" ? else_if : long_side;
  kernel<<<1, 32>>>(x.data_ptr<float>(), rank.data_ptr<int>(), x.numel());
}
"""
)


@pytest.fixture(scope="module")
def module():
    with simt.run(mode="count"):
        declared = (
            "void run(std::string name, torch::Tensor x, torch::Tensor rank); "
            "void run_maximum(torch::Tensor x, torch::Tensor most);"
        )
        return simt.load_inline("predicated", declared, SOURCE, functions=["run", "run_maximum"])


@pytest.mark.parametrize(
    "name, least, most", [("short_circuit", 31.5, 32.0), ("else_if", 31.5, 32.0), ("long_side", 1.0, 24.0)]
)
def test_lanes(module, name, least, most):
    """Of numbers in no order, half are smaller than a lane's: are nearly all lanes counted active where the sides are
    short, and far fewer where one is long?
    """
    x = torch.randperm(32, generator=torch.Generator().manual_seed(3)).float() // 2
    rank = torch.empty(32, dtype=torch.int32)
    with simt.count() as report:
        module.run(name, x, rank)
    assert rank.tolist() == x.argsort(stable=True).argsort().tolist()
    (launch,) = report.launches
    assert least <= launch.counters.active_lanes <= most
    assert launch.counters.working_lanes < 27  # those that a predicate does not switch off


def test_end_of_a_turn(module):
    """Do the lanes whose maximum rises go on in step with the others?"""
    x = torch.randn(64, 32, generator=torch.Generator().manual_seed(3))
    most = torch.empty(32)
    with simt.count() as report:
        module.run_maximum(x, most)
    assert torch.equal(most, x.amax(0))
    (launch,) = report.launches
    assert launch.counters.active_lanes > 31.5
    assert launch.counters.working_lanes < 31.9
