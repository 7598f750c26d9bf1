"""simt/wmma.h in programs: a tiled product, its counts, the architecture it is built for, and misuse with its line."""

from __future__ import annotations

import pytest
import torch

import simt
from tests.simt.kernels_of_expressions import DEVICE, ON_GPU, load

# A matrix product as courses write it: tiles in shared memory, four warps a block, 32 x 32 results.
_MATMUL = """
#include <mma.h>
using namespace nvcuda;

__global__ void tiled(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ __align__(32) half ta[32][24];
  __shared__ __align__(32) half tb[16][40];
  int warp = threadIdx.x / 32, row = blockIdx.y * 32, column = blockIdx.x * 32;
  int wr = warp / 2 * 16, wc = warp % 2 * 16;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int step = 0; step < k; step += 16) {
    for (int i = threadIdx.x; i < 512; i += 128) {
      ta[i / 16][i % 16] = __float2half(a[(row + i / 16) * k + step + i % 16]);
      tb[i / 32][i % 32] = __float2half(b[(step + i / 32) * n + column + i % 32]);
    }
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::load_matrix_sync(fa, &ta[wr][0], 24);
    wmma::load_matrix_sync(fb, &tb[0][wc], 40);
    wmma::mma_sync(sum, fa, fb, sum);
    __syncthreads();
  }
  wmma::store_matrix_sync(c + (row + wr) * n + column + wc, sum, n, wmma::mem_row_major);
}
void matmul(torch::Tensor a, torch::Tensor b, torch::Tensor c) {
  int m = a.size(0), k = a.size(1), n = b.size(1);
  tiled<<<dim3(n / 32, m / 32), 128>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, n, k);
}
"""

_FAULTS = """
#include <mma.h>
using namespace nvcuda;
typedef wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> A;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> B;
typedef wmma::fragment<wmma::accumulator, 16, 16, 16, float> C;
__global__ void bad(int what, const half* x, float* out, int lda) {
  int lane = threadIdx.x % 32;
  A a; B b; C c;
  wmma::fill_fragment(a, __float2half(1)); wmma::fill_fragment(b, __float2half(1)); wmma::fill_fragment(c, 0.0f);
  if (what == 0) wmma::load_matrix_sync(a, x + 8, lda);                       // pointer
  if (what == 1) wmma::load_matrix_sync(a, x, lda);                           // stride
  if (what == 2) wmma::load_matrix_sync(a, x + 16 * (lane / 16), lda);        // differ
  if (what == 3 && lane != 7) wmma::mma_sync(c, a, b, c);                     // lane 7
  if (what == 4) {
    if (lane == 9) return;
    wmma::mma_sync(c, a, b, c);                                               // gone
  }
  if (what == 5) wmma::store_matrix_sync(out, c, 18, wmma::mem_row_major);    // result
  if (what == 6) {
    if (lane < 16) wmma::load_matrix_sync(a, x, lda);                         // one half
    else wmma::load_matrix_sync(a, x, lda);                                   // the other
  }
  out[threadIdx.x] = c.x[0] + __half2float(a.x[0]);
}
void run(int what, int threads, torch::Tensor x, torch::Tensor out, int lda) {
  bad<<<1, threads>>>(what, POINTER(half, x), out.data_ptr<float>(), lda);
}
"""


@pytest.fixture(scope="module")
def courses():
    return load(_MATMUL, ["void matmul(torch::Tensor a, torch::Tensor b, torch::Tensor c)"])


@pytest.mark.slow
def test_a_tiled_matrix_product(courses):
    """Does a matmul with shared tiles and four warps come out as torch's?"""
    generator = torch.Generator().manual_seed(1)
    a = torch.randn(64, 80, generator=generator).half().float()
    b = torch.randn(80, 96, generator=generator).half().float()
    c = torch.zeros(64, 96, device=DEVICE)
    courses.matmul(a.to(DEVICE), b.to(DEVICE), c)
    exact = a.double() @ b.double()
    assert (c.cpu().double() - exact).abs().max() <= 2.0**-20 * (a.double().abs() @ b.double().abs()).max()


@pytest.mark.slow
@pytest.mark.skipif(ON_GPU, reason="only simt counts")
def test_what_is_counted_of_fragments(courses):
    """Are a lane's accesses to memory and mma_sync counted, and nothing for the registers that fragments lie in?"""
    m, n, k = 64, 96, 80
    a, b, c = torch.randn(m, k).half().float(), torch.randn(k, n).half().float(), torch.zeros(m, n)
    with simt.count(sample=1 << 30) as report:
        courses.matmul(a, b, c)
    counters = report.kernels[0].counters
    blocks, steps, warps = m // 32 * n // 32, k // 16, 4
    products = blocks * steps * warps
    assert counters.mix["tensor"] == 32 * products
    # Of a row_major matrix_a of halves a lane takes neighbours two by two: 4 requests; a matrix_b is turned over: 4 as
    # well.
    assert counters.shared_loads.requests == 8 * products
    assert counters.shared_loads.lanes == 32 * 8 * products
    assert counters.global_stores.requests == blocks * warps * 4
    assert counters.global_loads.requests == blocks * steps * 2 * 16
    assert counters.local_loads.requests == counters.local_stores.requests == 0
    # Rows of 24 halves: 8 rows of 4 words each lie in different banks. Rows of 40 likewise.
    assert counters.shared_loads.conflicts == 0


_BUILT_FOR = """
#include <mma.h>
__global__ void tell(int* out) { *out = __CUDA_ARCH__; }
USES
void arch(torch::Tensor out) { tell<<<1, 1>>>(out.data_ptr<int>()); }
"""


@pytest.mark.slow
@pytest.mark.skipif(ON_GPU, reason="nvcc builds for the GPU that there is")
@pytest.mark.parametrize(("uses", "arch"), [("", 750), ("using T = nvcuda::wmma::precision::tf32;", 800)])
def test_tf32_is_built_as_for_gpus_that_have_it(uses, arch):
    """Does a source with TF32 keep its path for compute capability 8.0, and others theirs for 7.5?"""
    out = torch.zeros(1, dtype=torch.int32)
    load(_BUILT_FOR.replace("USES", uses), ["void arch(torch::Tensor out)"]).arch(out)
    assert out.item() == arch


_UNALIGNED = (
    """
#include <mma.h>
using namespace nvcuda;
__global__ void squared(const half* x, float* out) {
  __shared__ char before, tag[3];
  __shared__ half a[16][16], b[16][16];
  __shared__ struct { half rows[16][16]; } c;
  extern __shared__ half d[];
  for (int i = threadIdx.x; i < 256; i += 32) a[i / 16][i % 16] = b[i / 16][i % 16] = c.rows[i / 16][i % 16] = """
    """d[i] = x[i];
  if (threadIdx.x < 3) before = tag[threadIdx.x] = 1;
  __syncthreads();
  half* tiles[] = {&a[0][0], &b[0][0], &c.rows[0][0], d};
  for (int i = 0; i < 4; ++i) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    wmma::load_matrix_sync(fa, tiles[i], 16);
    wmma::load_matrix_sync(fb, tiles[i], 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(out + 256 * i, fc, 16, wmma::mem_row_major);
  }
}
void run(torch::Tensor x, torch::Tensor out) {
  squared<<<1, 32, 512 + 16>>>(POINTER(half, x), out.data_ptr<float>());
}
"""
)


@pytest.mark.slow
@pytest.mark.skipif(ON_GPU, reason="a GPU may place them otherwise")
def test_shared_tiles_lie_where_fragments_can_load_them():
    """Do tiles in shared memory that ask for no alignment work, whatever lies before and behind them?"""
    x = torch.randn(16, 16, generator=torch.Generator().manual_seed(3)).half().to(DEVICE)
    out = torch.zeros(4, 16, 16, device=DEVICE)
    load(_UNALIGNED, ["void run(torch::Tensor x, torch::Tensor out)"]).run(x, out)
    torch.testing.assert_close(out, (x.float() @ x.float()).expand(4, 16, 16), atol=1e-3, rtol=1e-3)


@pytest.fixture(scope="module")
def faults():
    if ON_GPU:
        pytest.skip("a GPU does not tell")
    return load(_FAULTS, ["void run(int what, int threads, torch::Tensor x, torch::Tensor out, int lda)"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "lda", "threads", "reason", "words", "marker"),
    [
        (
            0,
            16,
            32,
            "misaligned",
            "load_matrix_sync() in line {} needs a pointer that is a multiple of 32 bytes; "
            "this one is 16 bytes past one",
            "// pointer",
        ),
        (
            1,
            20,
            32,
            "misaligned",
            "leading dimension that is a multiple of 8 elements (16 bytes); it is 20",
            "// stride",
        ),
        (2, 16, 32, "warp_divergence", "the same pointer, leading dimension and layout in all lanes", "// differ"),
        (3, 16, 32, "warp_divergence", "mma_sync() in line {} needs all 32 lanes of the warp, but lane 7", "// lane 7"),
        (4, 16, 32, "warp_divergence", "needs all 32 lanes of the warp, but lane 9 has returned", "// gone"),
        (
            1,
            16,
            48,
            "warp_divergence",
            "needs all 32 lanes of the warp, but lane 16 does not exist: the block has only 48 threads",
            "// stride",
        ),
        (
            5,
            16,
            32,
            "misaligned",
            "store_matrix_sync() in line {} needs a leading dimension that is a multiple of 4 elements (16 bytes); "
            "it is 18",
            "// result",
        ),
        (6, 16, 32, "warp_divergence", "load_matrix_sync()", "// one half"),
    ],
)
def test_misuse_is_told_with_its_line(faults, what, lda, threads, reason, words, marker):
    """Is a call against the guide's rules one clear sentence, with the line and one of the threads?"""
    x, out = torch.zeros(2048, dtype=torch.float16), torch.zeros(1024)
    with pytest.raises(simt.KernelError) as caught:
        faults.run(what, threads, x, out, lda)
    error = caught.value
    assert error.reason == reason
    line = _line_of(marker)
    assert error.line == line and error.thread is not None
    assert words.format(line) in error.message


def _line_of(marker: str) -> int:
    from tests.simt.kernels_of_expressions import _INCLUDES

    return next(i for i, text in enumerate((_INCLUDES + _FAULTS).split("\n"), 1) if text.rstrip().endswith(marker))
