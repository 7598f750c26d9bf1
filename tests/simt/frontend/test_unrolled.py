"""Are the loops unrolled for counting that nvcc would unroll, and no others, and do their results stay?"""

import pytest
import torch

import simt
from simt.frontend.rewrite import rewrite
from simt.frontend.source import Source
from simt.toolchain.units import rewrite_all

HEAD = """
#define TAPS 5
constexpr int N = 16, M = N * 2;
enum Tile { ROWS = 8, COLUMNS };
template <class T, int K> __global__ void kernel(T* x, const int n) {
  const int taps = TAPS; const int lane = threadIdx.x % 32, most = n;
"""


def unrolled(loop: str, before: str = "") -> bool:
    return (
        '_Pragma("GCC unroll'
        in rewrite(Source(f"{HEAD}{before}{loop}\n}}", "a.cu"), unrolled=True).text.split(HEAD.splitlines()[-1])[1]
    )


@pytest.mark.parametrize(
    "loop",
    [
        "for (int i = 0; i < N; i++) x[i] = 1;",
        "for (int i = 0; i < M / 4; ++i) x[i] = 1;",
        "for (int i = 0; i < K; ++i) x[i] = 1;",
        "for (int i = 0; i < TAPS; ++i) x[i] = 1;",
        "for (int i = 0; i < ROWS; ++i) x[i] = 1;",
        "for (int i = 0; i < taps; ++i) x[i] = 1;",
        "for (int offset = 16; offset > 0; offset /= 2) x[0] += offset;",
        "if (lane) for (int i = 0; i < 3; ++i) x[i] = 1;",
    ],
)
def test_loops_of_constant_length_are(loop):
    """Is a loop marked whose head names constants: literals, constexpr, macros, enumerators, template parameters?"""
    assert unrolled(loop)


@pytest.mark.parametrize(
    "loop",
    [
        "for (int i = 0; i < n; i++) x[i] = 1;",
        "for (int i = 0; i < most; i++) x[i] = 1;",
        "for (int i = lane; i < 64; i += 32) x[i] = 1;",
        "for (int i = threadIdx.x; i < 64; i += 32) x[i] = 1;",
        "for (int left = x[0] % 5; left > 0; left--) x[left] = 1;",
        "for (;;) break;",
        "for (T v : list) f(v);",
        "while (lane < N) {}",
    ],
)
def test_others_are_not(loop):
    """Does a loop stay as it is whose length only shows as it runs, also where the compiler could bound it?"""
    assert not unrolled(loop)


@pytest.mark.parametrize(
    "pragma",
    [
        "#pragma unroll 1\n",
        "#pragma nounroll\n",
        "#pragma unroll(1)\n",
        "#pragma GCC unroll 4\n",
        '_Pragma("GCC unroll 4") ',
    ],
)
def test_a_pragma_that_says_otherwise_holds(pragma):
    """Is a loop left alone that shall stay a loop, or that is unrolled already?"""
    assert unrolled("for (int i = 0; i < N; i++) x[i] = 1;", "#pragma unroll\n")
    text = rewrite(Source(f"{HEAD}{pragma}for (int i = 0; i < N; i++) x[i] = 1;\n}}", "a.cu"), unrolled=True).text
    assert text.count('_Pragma("GCC unroll 64")') == 0


def test_only_for_counting():
    """Do plain and checked builds keep their loops?"""
    loop = "for (int i = 0; i < N; i++) x[i] = 1;"
    for mode in ("plain", "check"):
        (rewritten,) = rewrite_all([Source(f"{HEAD}{loop}\n}}", "a.cu")], mode)
        assert "GCC unroll" not in rewritten.text


SOURCE = """
__global__ void sums(const float* x, float* y) {
  __shared__ float4 words[64];
  for (int i = threadIdx.x; i < 64; i += 32) words[i] = ((const float4*)x)[i];
  __syncthreads();
  float sum = 0.0f;
  if (threadIdx.x < 16)
    for (int step = 0; step < 32; step++) { float4 v = words[(threadIdx.x + step) % 64]; sum += v.x + v.y + v.z + v.w; }
  y[threadIdx.x] = sum;
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({32}, x.options());
  sums<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>());
  return y;
}
"""


@pytest.mark.slow
def test_a_side_of_a_branch_weighs_what_a_gpu_does_there():
    """Are of the instructions about 32 loads and 128 additions with 16 lanes, and few others: no counter, no address of
    each step?
    """
    module = simt.load_inline("unrolled_sums", "torch::Tensor run(torch::Tensor x);", SOURCE, functions=["run"])
    x = torch.arange(256.0)
    with simt.count() as report:
        y = module.run(x)
    words = x.reshape(64, 4).sum(1)
    assert torch.equal(
        y, torch.tensor([words[[(t + s) % 64 for s in range(32)]].sum() if t < 16 else 0.0 for t in range(32)])
    )
    (launch,) = report.launches
    assert launch.counters.shared_loads.requests == 32
    half = 32 + 32 * 4
    with_half = (launch.counters.warp_instructions * 32 - launch.counters.thread_instructions) / 16
    assert half <= with_half <= 1.3 * half
