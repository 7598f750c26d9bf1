"""Is the store of what a device function returns seen, though g++ lets the call write it itself?"""

import pytest
import torch

import simt

SOURCE = r"""
struct Pair {
  float x, twice;
  float more[6];
};
__device__ __noinline__ float4 load(const float* x, int i) { return {x[i], x[i] + 1, x[i] + 2, x[i] + 3}; }
__device__ __noinline__ Pair pair(const float* x, int i) { return {x[i], 2 * x[i], {}}; }
template <class T>
__device__ __noinline__ T same(T value) { return value; }
struct Point { float x, y, z; };
__device__ __noinline__ Point operator+(Point a, Point b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
struct Tile {
  float4 rows[32];
  __device__ __noinline__ float4 at(int i) const { return rows[i]; }
};
__global__ void k(const float* x, float* y, Tile all) {
  const float4 zero{0, 0, 0, 0};
  const int i = threadIdx.x, j = 31 - i;
  auto scaled = [&](int n) { return float4{x[n], 0, 0, 0}; };
  __shared__ KIND shared[32];
  SHARE
  BARRIER
  y[i] = shared[j].x + (scaled(i).x + zero.x + all.at(0).x) * 0;
}
torch::Tensor f(torch::Tensor x) {
  auto y = torch::empty_like(x);
  k<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), Tile{});
  return y;
}
"""
# The type of what is shared -> statements that store element i of x in element i of it.
STORES = {
    "float4": [
        "shared[i] = load(x, i);",
        "shared[i] = i < 40 ? load(x, i) : zero;",
        "*(shared + i) = same<float4>(load(x, i));",
        "reinterpret_cast<float4*>(shared)[i] = load(x, i);",
        "*(float4*)&shared[i] = load(x, i);",
        "float4 own; own = load(x, i); shared[i] = own;",
        "shared[i] = scaled(i);",
        "all.rows[i] = load(x, i); shared[i] = all.at(i);",
    ],
    "Pair": ["shared[i] = pair(x, i);", "shared[i] = same(pair(x, i));"],
    "Point": ["shared[i] = Point{x[i], 0, 0} + Point{};"],
}


def check(kind: str, store: str, barrier: str) -> tuple[torch.Tensor, torch.Tensor, list[simt.Finding]]:
    """Return the kernel's input, its output, and what the checks find."""
    source = SOURCE.replace("KIND", kind).replace("SHARE", store).replace("BARRIER", barrier)
    module = simt.load_inline("returned", "torch::Tensor f(torch::Tensor x);", source, functions=["f"])
    x = torch.rand(32)
    with simt.check() as report:
        y = module.f(x)
    return x, y, report.findings


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "store"), [(kind, store) for kind in STORES for store in STORES[kind]])
def test_the_store_of_a_result_counts(kind, store):
    """Is it seen to be written, and in a race where the barrier is missing?"""
    x, y, findings = check(kind, store, "__syncthreads();")
    assert torch.equal(y, x.flip(0)) and findings == []
    _, _, findings = check(kind, store, "")
    assert "race" in [found.check for found in findings]
    lines = SOURCE.split("\n")
    assert any("SHARE" in lines[found.line - 1] or "y[i] =" in lines[found.line - 1] for found in findings)
