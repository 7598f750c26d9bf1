"""python -m simt check: does a kernel that writes far outside of its arrays get its report, and harm nothing else?"""

import resource

import pytest

STRIDE = r"""
#include <cstdio>
#include <cuda_runtime.h>
__global__ void clear(float* y, int n) {
  for (int i = threadIdx.x; i < n; i -= blockDim.x) y[i] = 0;
}
int main() {
  float* y;
  if (cudaMalloc(&y, 240 * sizeof(float)) != cudaSuccess) return 1;
  clear<<<2, 64>>>(y, 240);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}
"""
HOST = r"""
#include <cstdio>
#include <cuda_runtime.h>
__global__ void add(const int* x, int* sum) { atomicAdd(sum, x[threadIdx.x]); }
int main() {
  int* x, sum = 0;
  if (cudaMalloc(&x, 128) != cudaSuccess || cudaMemset(x, 0, 128) != cudaSuccess) return 1;
  add<<<1, 32>>>(x, &sum);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}
"""


def _limit(gibibytes):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (gibibytes << 30, gibibytes << 30))


@pytest.mark.parametrize("gibibytes", [12, 16, 24])
def test_fences_are_narrow_where_memory_is_limited(simt, gibibytes):
    """Is the report there though other memory lies behind the fences, which are 1 MB wide then?"""
    done = simt("check", "a.cu", files={"a.cu": STRIDE}, preexec_fn=_limit(gibibytes))
    assert done.returncode == 1 and "out_of_bounds: a.cu, line 5, kernel clear: Thread (0, 0, 0)" in done.stderr


def test_a_write_to_the_stack_of_the_host(simt):
    """Is the address of a variable of main no memory for a kernel?"""
    done = simt("check", "a.cu", files={"a.cu": HOST})
    assert done.returncode == 1 and "line 4, kernel add" in done.stderr and "host" in done.stderr, done.stderr
