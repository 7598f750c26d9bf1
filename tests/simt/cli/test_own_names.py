"""Do programs run, and are they checked, that have own names of CUDA's qualifiers or macros named as in headers?"""

import pytest

from tests.simt.cli.sources import line_of

MAIN = r"""
int main() {
  int *p, h[64];
  cudaMalloc(&p, sizeof h);
  cudaMemset(p, 0, sizeof h);
  k<<<1, 64>>>(p);
  cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost);
  printf("%d\n", h[7]);
  cudaFree(p);
}
"""
SHARED = r"""
#include <stdio.h>
#define SHARED __shared__
#define TABLE int __shared__
__global__ void k(int* out) {
  SHARED int table[64]; TABLE few[3];
  table[threadIdx.x] = threadIdx.x;
  if (threadIdx.x < 3) few[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = table[63 - threadIdx.x] + few[threadIdx.x % 3];
}
"""
KERNEL = r"""
#include <stdio.h>
#define KERNEL __global__ void
KERNEL k(int* out) { out[threadIdx.x] = out[threadIdx.x + 1] + 57; }  // reads
"""
CLOCK = r"""
#include <stdio.h>
#include <time.h>
#define TICK() clock()
#define HOST_TICK() ::clock()
__global__ void k(int* out) {
  const clock_t a = TICK(), b = ::clock();
  for (const long long c = clock64(); clock64() - c < 2000000;) {}
  out[threadIdx.x] = 57 * ((unsigned)(TICK() - a) >= 1900000 && (unsigned)(::clock() - b) >= 1900000);
  if (threadIdx.x % 64) return;
}
static const bool host = HOST_TICK() < 60 * CLOCKS_PER_SEC;
"""
OWN_CLOCK = r"""
#include <stdio.h>
#define clock() 57
__global__ void k(int* out) { out[threadIdx.x] = clock(); }
static const int host = clock();
"""
SHORT_NAMES = r"""
#include <stdio.h>
#define M 16
#define N 16
#define K 16
#define A 1
#define F 2
#include <mma.h>
#include <cooperative_groups.h>
__global__ void k(int* out) {
  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, M, N, K, float> c;
  nvcuda::wmma::fill_fragment(c, 50.0f);
  auto tile = cooperative_groups::tiled_partition<N>(cooperative_groups::this_thread_block());
  out[threadIdx.x] = (int)c.x[0] + (threadIdx.x == 7 ? (int)tile.thread_rank() : 0);
}
"""
ATTRIBUTES = r"""
#include <stdio.h>
#define used 1
#define aligned 16
#define noinline 0
__noinline__ __device__ int mirror(int i) { return 63 - i; }
__global__ void k(int* out) {
  __shared__ int s[64];
  __shared__ __align__(aligned) int t[64];
  s[threadIdx.x] = threadIdx.x, t[threadIdx.x] = used;
  __syncthreads();
  out[threadIdx.x] = s[mirror(threadIdx.x)] + t[threadIdx.x];
}
"""


# A function of NVIDIA's helper_math.h, which is one of C++20, too.
LERP = r"""
#include <cmath>
#include <stdio.h>
inline __host__ __device__ float lerp(float a, float b, float t) { return a + t * (b - a); }
inline __host__ __device__ float4 lerp(float4 a, float4 b, float t) { return {lerp(a.x, b.x, t), b.y, a.z, b.w}; }
static const double host = std::lerp(1.0, 3.0f, 0.25);
__global__ void k(int* out) {
  const float4 zero = {};
  out[threadIdx.x] = (int)(lerp(threadIdx.x, 107, 0.5f) + lerp(zero, zero, 0.5f).x);
}
"""


@pytest.mark.parametrize(
    "text",
    [SHARED, CLOCK, OWN_CLOCK, SHORT_NAMES, ATTRIBUTES, LERP],
    ids=["shared", "clock", "own_clock", "short", "words", "lerp"],
)
def test_it_runs_and_no_check_objects(simt, text):
    for command in ("run", "check"):
        done = simt(command, "own.cu", files={"own.cu": text + MAIN})
        assert (done.returncode, done.stdout) == (0, "57\n"), done.stderr


def test_a_finding_names_the_parameter_of_a_kernel_behind_a_macro(simt):
    done = simt("check", "own.cu", files={"own.cu": KERNEL + MAIN})
    assert done.returncode == 1
    assert f"own.cu, line {line_of(KERNEL, '// reads')}" in done.stderr and "element 64 of `out`" in done.stderr
