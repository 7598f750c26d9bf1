"""simt/cuda_api.h: what host code gets from CUDA's functions."""

from __future__ import annotations

import pytest
import torch

import simt
from tests.simt.kernels_of_expressions import DEVICE, ON_GPU, load

_SOURCE = (
    """
__constant__ float weights[8];
__device__ int counter;

__global__ void weighted(const float* x, float* out) { out[threadIdx.x] = x[threadIdx.x] * weights[threadIdx.x]; """
    """atomicAdd(&counter, 1); }
torch::Tensor symbols(torch::Tensor x, torch::Tensor w) {
  auto out = torch::empty_like(x);
  float host[8];
  cudaMemcpy(host, w.data_ptr<float>(), sizeof host, cudaMemcpyDefault);
  int zero = 0, count = 0;
  cudaMemcpyToSymbol(weights, host, 4 * sizeof(float));
  cudaMemcpyToSymbol(weights, host + 4, 4 * sizeof(float), 4 * sizeof(float));
  cudaMemcpyToSymbol(counter, &zero, sizeof zero);
  weighted<<<1, 8>>>(x.data_ptr<float>(), out.data_ptr<float>());
  cudaMemcpyFromSymbol(&count, counter, sizeof count);
  void* address = nullptr;
  size_t size = 0;
  cudaGetSymbolAddress(&address, weights);
  cudaGetSymbolSize(&size, weights);
  TORCH_CHECK(count == 8 && address && size == 32);
  return out;
}
int64_t past_the_symbol() {
  float host[9] = {};
  int64_t error = cudaMemcpyToSymbol(weights, host, sizeof host);
  TORCH_CHECK(cudaGetLastError() == error && cudaGetLastError() == cudaSuccess);
  return error;
}

__global__ void fill(int* p, int n, int v) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] += v + i; }
std::vector<int64_t> memory(int64_t n) {
  int *device = nullptr, *managed = nullptr, *pinned = nullptr;
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  TORCH_CHECK(cudaMalloc(&device, n * sizeof(int)) == cudaSuccess);
  TORCH_CHECK(cudaMallocManaged(&managed, 16) == cudaSuccess && cudaMallocHost(&pinned, n * sizeof(int)) == """
    """cudaSuccess);
  cudaMemsetAsync(device, 0, n * sizeof(int), stream);
  fill<<<(n + 31) / 32, 32, 0, stream>>>(device, n, 5);
  cudaMemcpyAsync(pinned, device, n * sizeof(int), cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  std::vector<int64_t> result(pinned, pinned + n);
  cudaFree(device); cudaFree(managed); cudaFreeHost(pinned); cudaFree(nullptr);
  cudaStreamDestroy(stream);
  return result;
}
int64_t free_twice() {
  float* p = nullptr;
  cudaMalloc((void**)&p, 64);
  cudaFree(p);
  int64_t error = cudaFree(p);
  cudaGetLastError();
  return error;
}
std::vector<int64_t> strided(torch::Tensor from, torch::Tensor to) {
  int64_t done = cudaMemcpy2D(to.data_ptr(), 3 * 4, from.data_ptr(), 5 * 4, 3 * 4, 2, cudaMemcpyDefault);
  int64_t refused = cudaMemcpy2D(to.data_ptr(), 3 * 4, from.data_ptr(), 5 * 4, 4 * 4, 2, cudaMemcpyDefault);
  cudaGetLastError();
  return {done, refused};
}

double timed(torch::Tensor x) {
  cudaEvent_t start, end;
  cudaEventCreate(&start);
  cudaEventCreate(&end);
  cudaEventRecord(start);
  for (int i = 0; i < 20; ++i) fill<<<100, 256>>>(x.data_ptr<int>(), x.numel(), i);
  cudaEventRecord(end);
  cudaEventSynchronize(end);
  float ms = -1;
  cudaEventElapsedTime(&ms, start, end);
  cudaEventDestroy(start);
  cudaEventDestroy(end);
  return ms;
}

std::vector<int64_t> device_facts() {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  int count, device, warp, shared, blocks, grid, block;
  cudaGetDeviceCount(&count);
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, 0);
  cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 256, 0);
  cudaOccupancyMaxPotentialBlockSize(&grid, &block, fill, 0, 0);
  int by_shared;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&by_shared, fill, 32, 40 * 1024);
  return {p.maxThreadsPerBlock, p.warpSize, (int64_t)p.sharedMemPerBlock, p.maxThreadsPerMultiProcessor, """
    """p.multiProcessorCount, p.major,
          warp, shared, blocks, grid, block, (int64_t)p.sharedMemPerMultiprocessor, by_shared, """
    """(int64_t)p.sharedMemPerBlockOptin, p.maxBlocksPerMultiProcessor};
}
std::string error_words(int64_t code) {
  return std::string(cudaGetErrorName((cudaError_t)code)) + ": " + cudaGetErrorString((cudaError_t)code);
}
int64_t wrong_device() { int64_t error = cudaSetDevice(99); cudaGetLastError(); return error; }

template <class T> __global__ void scaled(T* x, T factor, int n) { extern __shared__ char room[]; """
    """int i = threadIdx.x; if (i < n) x[i] *= factor; }
int64_t by_pointer(torch::Tensor x, double factor) {
  float* p = x.data_ptr<float>();
  float f = factor;
  int n = x.numel();
  void* arguments[] = {&p, &f, &n};
  return cudaLaunchKernel((const void*)scaled<float>, dim3(1), dim3(n), arguments, 0, nullptr);
}
int64_t big_shared(torch::Tensor x, int64_t bytes) {
  int64_t error = cudaFuncSetAttribute(scaled<float>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  cudaGetLastError();
  if (!error) scaled<float><<<1, x.numel(), bytes>>>(x.data_ptr<float>(), 2.0f, x.numel());
  return error ? error : (int64_t)cudaGetLastError();
}

void host_add(void* data) { *(int64_t*)data += 1; }
int64_t host_function() { int64_t n = 41; cudaLaunchHostFunc(nullptr, host_add, &n); cudaDeviceSynchronize(); """
    """return n; }
"""
)


@pytest.fixture(scope="module")
def api():
    return load(
        _SOURCE,
        [
            "torch::Tensor symbols(torch::Tensor x, torch::Tensor w)",
            "int64_t past_the_symbol()",
            "std::vector<int64_t> memory(int64_t n)",
            "int64_t free_twice()",
            "std::vector<int64_t> strided(torch::Tensor a, torch::Tensor b)",
            "double timed(torch::Tensor x)",
            "std::vector<int64_t> device_facts()",
            "std::string error_words(int64_t code)",
            "int64_t wrong_device()",
            "int64_t by_pointer(torch::Tensor x, double factor)",
            "int64_t big_shared(torch::Tensor x, int64_t bytes)",
            "int64_t host_function()",
        ],
    )


@pytest.mark.slow
def test_symbols(api):
    """Does constant memory hold what was copied into it, in parts too, and come back?"""
    x, w = torch.arange(8.0, device=DEVICE), torch.linspace(1, 2, 8).to(DEVICE)
    assert torch.equal(api.symbols(x, w), x * w)


@pytest.mark.slow
def test_copy_past_a_symbol_is_refused(api):
    """Is a copy larger than the variable cudaErrorInvalidValue, told once?"""
    assert api.past_the_symbol() == 1


def test_memory_and_streams(api):
    """Do allocations, memset, a kernel on a stream and the copy back work together?"""
    assert api.memory(70) == [5 + i for i in range(70)]


@pytest.mark.skipif(ON_GPU, reason="a GPU may hand the error on to later calls")
def test_free_twice_is_refused(api):
    """Is the second cudaFree of a pointer an error and not a crash?"""
    assert api.free_twice() == 1


def test_copy_of_rows(api):
    """Does cudaMemcpy2D take rows from one pitch to another, and refuse rows wider than the pitch?"""
    source = torch.arange(10, dtype=torch.int32, device=DEVICE)
    target = torch.zeros(6, dtype=torch.int32, device=DEVICE)
    assert api.strided(source, target) == [0, 12]
    assert target.tolist() == [0, 1, 2, 5, 6, 7]


def test_events_measure_time(api):
    """Is the time between two events more than none and less than the test took?"""
    x = torch.zeros(25600, dtype=torch.int32, device=DEVICE)
    api.timed(x)
    assert 0 < api.timed(x) < 10_000


def test_device_facts_agree(api):
    """Do properties, attributes and occupancy tell the same device?"""
    (
        threads,
        warp,
        shared,
        per_mp,
        count,
        major,
        warp2,
        optin,
        blocks,
        grid,
        block,
        shared_mp,
        by_shared,
        optin2,
        blocks_mp,
    ) = api.device_facts()
    assert (threads, warp, warp2, shared) == (1024, 32, 32, 48 * 1024)
    assert major >= 7
    assert optin == optin2 > shared
    assert blocks == min(per_mp // 256, blocks_mp)
    assert block % 32 == 0
    assert grid == count * (per_mp // block)
    assert by_shared == min(shared_mp // (41 * 1024), blocks_mp)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "cudaSuccess: no error"),
        (1, "cudaErrorInvalidValue: invalid argument"),
        (2, "cudaErrorMemoryAllocation: out of memory"),
        (9, "cudaErrorInvalidConfiguration: invalid configuration argument"),
        (101, "cudaErrorInvalidDevice: invalid device ordinal"),
        (400, "cudaErrorInvalidResourceHandle: invalid resource handle"),
        (600, "cudaErrorNotReady: device not ready"),
        (700, "cudaErrorIllegalAddress: an illegal memory access was encountered"),
        (701, "cudaErrorLaunchOutOfResources: too many resources requested for launch"),
        (719, "cudaErrorLaunchFailure: unspecified launch failure"),
        (720, "cudaErrorCooperativeLaunchTooLarge: too many blocks in cooperative launch"),
        (801, "cudaErrorNotSupported: operation not supported"),
    ],
)
def test_error_words(api, code, words):
    """Are names and sentences CUDA's own?"""
    assert api.error_words(code) == words


def test_wrong_device(api):
    """Is a device that is not there an error?"""
    assert api.wrong_device() == 101


def test_launch_by_pointer(api):
    """Does cudaLaunchKernel hand every argument to a template kernel?"""
    x = torch.arange(50.0, device=DEVICE)
    assert api.by_pointer(x, 3.0) == 0
    assert torch.equal(x, torch.arange(50.0, device=DEVICE) * 3)


@pytest.mark.skipif(ON_GPU, reason="the limit is the device's own there")
def test_shared_memory_beyond_the_default(api):
    """Is more than 48 KiB allowed after asking, up to the device's limit and not beyond?"""
    x = torch.ones(4)
    limit = api.device_facts()[7]
    assert api.big_shared(x, limit) == 0
    assert x.tolist() == [2.0] * 4
    assert api.big_shared(x, limit + 1) == 1


def test_host_function(api):
    """Is a function launched on a stream called with its data?"""
    assert api.host_function() == 42


@pytest.mark.skipif(ON_GPU, reason="simt's own mark")
def test_new_memory_is_marked():
    """Does memory that cudaMalloc gave and nobody wrote hold the mark, so that it shows?"""
    module = load(
        """
int64_t first_word() { unsigned* p; cudaMalloc(&p, 64); int64_t word = p[3]; cudaFree(p); return word; }
""",
        ["int64_t first_word()"],
    )
    with simt.run(guard="end"):
        assert module.first_word() == simt.GLOBAL_MARK
