"""CUDA's driver functions in programs, and those for several GPUs on a machine with one."""

import pytest

from tests.simt.cli.sources import CHECK

DRIVER = r"""
#include <cstdio>
#include <cuda.h>
__global__ void twice(int* p, int n) { int i = threadIdx.x; if (i < n) p[i] *= 2; }
int failures = 0;
void expect(CUresult got, CUresult want, int line) {
  if (got != want) printf("line %d: %d\n", line, (int)got), failures++;
}
#define OK(call) expect(call, CUDA_SUCCESS, __LINE__)
int main() {
  OK(cuInit(0));
  CUdevice device; CUcontext context, current; CUdeviceptr p; CUstream stream; CUevent a, b;
  OK(cuDeviceGet(&device, 0));
  expect(cuDeviceGet(&device, 7), CUDA_ERROR_INVALID_DEVICE, __LINE__);
  OK(cuDevicePrimaryCtxRetain(&context, 0)); OK(cuCtxSetCurrent(context)); OK(cuCtxGetCurrent(&current));
  int warp = 0, h[8]; float ms = -1; const char* name; char title[64]; size_t bytes;
  OK(cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
  OK(cuDeviceGetName(title, sizeof title, device)); OK(cuDeviceTotalMem(&bytes, device));
  OK(cuGetErrorName(CUDA_ERROR_NOT_FOUND, &name));
  OK(cuMemAlloc(&p, sizeof h)); OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&a, CU_EVENT_DEFAULT)); OK(cuEventCreate(&b, CU_EVENT_DEFAULT)); OK(cuEventRecord(a, stream));
  OK(cuMemsetD32Async(p, 1000, 8, stream));
  twice<<<1, 32, 0, stream>>>((int*)p, 8);
  OK(cuEventRecord(b, stream)); OK(cuStreamSynchronize(stream)); OK(cuEventElapsedTime(&ms, a, b));
  OK(cuMemsetD16(p, 0x0101, 2)); OK(cuMemcpyDtoH(h, p, sizeof h));
  expect(cuMemsetD32(p + 2, 1, 1), CUDA_ERROR_INVALID_VALUE, __LINE__);
  expect(cuMemFree(p + 1), CUDA_ERROR_INVALID_VALUE, __LINE__);
  OK(cuMemFree(p)); OK(cuEventDestroy(a)); OK(cuEventDestroy(b)); OK(cuStreamDestroy(stream));
  OK(cuDevicePrimaryCtxRelease(device));
  printf("%d %s %x %d %d %d\n", warp, name, h[0], h[1], current == context && ms >= 0, failures);
  return cudaGetLastError();
}
"""


@pytest.mark.parametrize("command", ["run", "check"])
def test_driver_functions_work_on_the_memory_of_launches(simt, command):
    """Do the driver's memory, streams and events work with <<<>>>, and are its errors its own?"""
    done = simt(command, "a.cu", files={"a.cu": DRIVER})
    assert (done.stdout, done.returncode) == ("32 CUDA_ERROR_NOT_FOUND 1010101 2000 1 0\n", 0), done.stderr


PEERS = (
    CHECK
    + r"""
int main() {
  int can = 7, h[4] = {1, 2, 3, 4}, *p, *q;
  CHECK(cudaDeviceCanAccessPeer(&can, 0, 0));
  cudaError_t enable = cudaDeviceEnablePeerAccess(1, 0), disable = cudaDeviceDisablePeerAccess(0);
  cudaGetLastError();
  CHECK(cudaMalloc(&p, sizeof h)); CHECK(cudaMalloc(&q, sizeof h));
  CHECK(cudaMemcpy(p, h, sizeof h, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpyPeer(q, 0, p, 0, sizeof h));
  CHECK(cudaMemcpyPeerAsync(p, 0, q + 2, 0, 8, 0));
  cudaError_t other = cudaMemcpyPeer(q, 1, p, 0, sizeof h);
  cudaGetLastError();
  CHECK(cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost));
  printf("%d %s %s %s ", can, cudaGetErrorName(enable), cudaGetErrorName(disable), cudaGetErrorName(other));
  printf("%d %d\n", h[0], h[2]);
  CHECK(cudaFree(p)); CHECK(cudaFree(q));
}
"""
)


def test_a_single_device_has_no_peers(simt):
    """Do the functions for several GPUs answer as on a machine with one?"""
    done = simt("run", "a.cu", files={"a.cu": PEERS})
    expected = "0 cudaErrorInvalidDevice cudaErrorPeerAccessNotEnabled cudaErrorInvalidDevice 3 3\n"
    assert (done.stdout, done.returncode) == (expected, 0), done.stderr
