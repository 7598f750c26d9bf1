"""cudaLaunchKernelEx and cudaLaunchKernelExC: launches by a configuration, with attributes."""

import pytest

from tests.simt.cli.sources import CHECK

PROGRAM = (
    CHECK
    + r"""
#include <cooperative_groups.h>
template <class T> __global__ void add(const T* a, T* b, long n, float by) {
  extern __shared__ char room[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  room[threadIdx.x] = 1;
  if (i < n) b[i] = a[i] + (T)by;
}
__global__ void meet(int* x) {
  if (threadIdx.x == 0) x[blockIdx.x] = blockIdx.x;
  cooperative_groups::this_grid().sync();
  if (threadIdx.x == 0 && blockIdx.x == 0)
    for (int i = 1; i < gridDim.x; ++i) x[0] += x[i];
}
__global__ void over(int* x) { x[0] = 5; }
__global__ void over(float* x) { x[0] = 6; }
int main() {
  const int n = 1000;
  int *a, *b;
  cudaStream_t stream;
  CHECK(cudaMallocManaged(&a, n * sizeof(int)));
  CHECK(cudaMallocManaged(&b, n * sizeof(int)));
  CHECK(cudaStreamCreate(&stream));
  for (int i = 0; i < n; ++i) a[i] = i;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((n + 127) / 128);
  config.blockDim = 128;
  config.dynamicSmemBytes = 128;
  config.stream = stream;
  cudaLaunchAttribute attribute[1];
  attribute[0].id = cudaLaunchAttributePriority;
  attribute[0].val.priority = 0;
  config.attrs = attribute;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, add<int>, a, b, n, 2));
  CHECK(cudaStreamSynchronize(stream));
  printf("%d ", b[n - 1]);
  long m = n;
  float by = 3;
  void* arguments[] = {&a, &b, &m, &by};
  CHECK(cudaLaunchKernelExC(&config, (const void*)add<int>, arguments));
  CHECK(cudaDeviceSynchronize());
  printf("%d ", b[n - 1]);
  void (*chosen)(const int*, int*, long, float) = add<int>;
  CHECK(cudaLaunchKernelEx(&config, chosen, a, b, n, 4.5f));
  CHECK(cudaDeviceSynchronize());
  printf("%d ", b[n - 1]);
  attribute[0].id = cudaLaunchAttributeCooperative;
  attribute[0].val.cooperative = 1;
  CHECK(cudaLaunchKernelEx(&config, meet, b));
  CHECK(cudaDeviceSynchronize());
  printf("%d ", b[0]);
  config.numAttrs = 0;
  CHECK(cudaLaunchKernelEx(&config, (void (*)(int*))over, b));
  CHECK(cudaDeviceSynchronize());
  printf("%d\n", b[0]);
  config.blockDim = 2000;
#ifdef LOOKED_AT
  if (cudaLaunchKernelEx(&config, meet, b) == cudaSuccess) return 1;
#else
  cudaLaunchKernelEx(&config, meet, b);  // dropped
#endif
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaStreamDestroy(stream));
}
"""
)


@pytest.mark.parametrize("command", ["run", pytest.param("check", marks=pytest.mark.slow)])
def test_kernels_are_launched_by_a_configuration(simt, command):
    """Do kernels get converted arguments and shared memory, is a launch cooperative, does a returned error count?"""
    done = simt(command, "-DLOOKED_AT", "a.cu", files={"a.cu": PROGRAM})
    assert (done.stdout, done.returncode) == ("1001 1002 1003 28 5\n", 0), done.stderr


def test_an_error_of_such_a_launch_that_is_dropped_is_reported(simt):
    """Has the finding the line of the call, also where a preprocessor line stands before it?"""
    done = simt("check", "a.cu", files={"a.cu": PROGRAM})
    line = next(n for n, text in enumerate(PROGRAM.splitlines(), 1) if text.endswith("// dropped"))
    assert done.returncode == 1 and f"unchecked_error: a.cu, line {line}: kernel meet was not launched" in done.stderr
    assert "Check the result of cudaLaunchKernelEx." in done.stderr


ADDRESSES = (
    CHECK
    + r"""
__global__ void twice(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }
template <class T> __global__ void next(T* x, int n) { if (threadIdx.x < n) x[threadIdx.x] += 1; }
int main() {
  float* x;
  int n = 8;
  CHECK(cudaMallocManaged(&x, 8 * sizeof(float)));
  for (int i = 0; i < 8; ++i) x[i] = 3;
  void* arguments[] = {&x, &n};
  const void* table[] = {(const void*)twice, reinterpret_cast<const void*>(&next<float>),
                         n > 4 ? (void*)twice : nullptr};
  for (const void* kernel : table) CHECK(cudaLaunchKernel(kernel, dim3(1), dim3(32), arguments, 0, nullptr));
  CHECK(cudaDeviceSynchronize());
  printf("%g ", x[7]);
  cudaLaunchConfig_t config = {};
  config.gridDim = 1;
  config.blockDim = 32;
  CHECK(cudaLaunchKernelExC(&config, table[1], arguments));
  CHECK(cudaDeviceSynchronize());
  printf("%g\n", x[7]);
  if (cudaLaunchKernel((const void*)&n, dim3(1), dim3(32), arguments, 0, nullptr) == cudaSuccess) return 1;
  if (cudaLaunchKernelExC(&config, nullptr, nullptr) == cudaSuccess) return 2;
  cudaGetLastError();
  CHECK(cudaFree(x));
}
"""
)


@pytest.mark.parametrize("command", ["run", pytest.param("check", marks=pytest.mark.slow)])
def test_kernels_are_launched_by_addresses_in_variables(simt, command):
    """Do kernels from a table of void* run, and is another address an error?"""
    done = simt(command, "a.cu", files={"a.cu": ADDRESSES})
    assert (done.stdout, done.returncode) == ("14 15\n", 0), done.stderr
