"""Host functions of CUDA in programs: the device, clocks, alignment, memory pools, streams and callbacks."""

import pytest

from tests.simt.cli.sources import CHECK

ALIGNED = (
    CHECK
    + r"""
#include <cstdint>
struct __align__(64) Line { char bytes[64]; };
__global__ void place(int* out) {
  __shared__ __align__(256) char a[100];
  __shared__ Line b[2];
  __shared__ double c[3];
  out[0] = (uintptr_t)a % 256; out[1] = (uintptr_t)b % 64; out[2] = (uintptr_t)c % 8;
  a[0] = b[0].bytes[0] = 0; c[0] = 0;
}
int main() {
  for (int bytes : {1, 17, 300, 5000}) {
    void *p, *q;
    CHECK(cudaMalloc(&p, bytes)); CHECK(cudaMallocAsync(&q, bytes, 0));
    printf("%d%d ", (int)((uintptr_t)p % 256), (int)((uintptr_t)q % 256));
    CHECK(cudaFree(p)); CHECK(cudaFree(q));
  }
  int *d, h[3];
  CHECK(cudaMalloc(&d, sizeof h));
  place<<<1, 1>>>(d);
  CHECK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost)); CHECK(cudaFree(d));
  printf("%d %d %d\n", h[0], h[1], h[2]);
}
"""
)


@pytest.mark.parametrize("command", ["run", "check"])
def test_memory_is_aligned_as_on_a_gpu(simt, command):
    """Does cudaMalloc return multiples of 256, and does shared memory have the alignment that __align__ requests?"""
    done = simt(command, "a.cu", files={"a.cu": ALIGNED})
    assert (done.stdout, done.returncode) == ("00 00 00 00 0 0 0\n", 0), done.stderr


CLOCKS = (
    CHECK
    + r"""
#include <ctime>
__device__ unsigned long long nanoseconds() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}
__global__ void spin(long long* out) {
  unsigned before, after;
  const unsigned long long start = nanoseconds();
  const long long cycles = clock64();
  const clock_t short_cycles = clock();
  asm volatile("mov.u32 %0, %%clock;" : "=r"(before));
  while (nanoseconds() - start < 40000000) { }
  asm volatile("mov.u32 %0, %%clock;" : "=r"(after));
  out[0] = clock64() - cycles; out[1] = clock() - short_cycles; out[2] = after - before; out[3] = nanoseconds() - start;
}
int main() {
  long long *d, h[4];
  CHECK(cudaMalloc(&d, sizeof h));
  spin<<<1, 1>>>(d);
  CHECK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost)); CHECK(cudaFree(d));
  for (int i = 0; i < 3; ++i) printf("%g ", (double)h[i] / h[3]);
}
"""
)


@pytest.mark.parametrize("device, gigahertz", [("T4", 1.59), ("H200", 1.98)])
def test_clocks_count_the_gpus_cycles(simt, device, gigahertz):
    """Do clock(), clock64() and %clock advance by the GPU's cycles in each nanosecond of %globaltimer?"""
    done = simt("run", "--device", device, "a.cu", files={"a.cu": CLOCKS})
    ratios = [float(word) for word in done.stdout.split()]
    assert len(ratios) == 3 and ratios == pytest.approx([gigahertz] * 3, rel=0.05), done.stderr


PROPERTIES = (
    CHECK
    + r"""
int main() {
  cudaDeviceProp p;
  CHECK(cudaGetDeviceProperties(&p, 0));
  printf("%.0f GB/s, ", 2.0 * p.memoryClockRate * (p.memoryBusWidth / 8) / 1e6);
  int v, failed = 0;
  for (int i = 1; i <= 43; ++i) failed += cudaDeviceGetAttribute(&v, (cudaDeviceAttr)i, 0) != cudaSuccess;
  for (auto a : {cudaDevAttrClockRate, cudaDevAttrMemoryClockRate, cudaDevAttrGlobalMemoryBusWidth,
                 cudaDevAttrEccEnabled, cudaDevAttrAsyncEngineCount, cudaDevAttrMaxTexture2DWidth,
                 cudaDevAttrMemoryPoolsSupported})
    { CHECK(cudaDeviceGetAttribute(&v, a, 0)); printf("%d ", v); }
  printf("%d\n", failed);
}
"""
)


@pytest.mark.parametrize(
    "device, printed",
    [
        # The bandwidths are those of NVIDIA's datasheets.
        ("T4", "320 GB/s, 1590000 5001000 256 1 3 131072 1 0\n"),
        ("A100", "1555 GB/s, 1410000 1215000 5120 1 3 131072 1 0\n"),
        ("RTX 4060 Laptop", "256 GB/s, 2370000 8001000 128 0 1 131072 1 0\n"),
    ],
)
def test_properties_are_the_gpus(simt, device, printed):
    """Are clocks, bus and limits those of the GPU, and is every attribute up to number 43 known?"""
    assert simt("run", "--device", device, "a.cu", files={"a.cu": PROPERTIES}).stdout == printed


POOLS = (
    CHECK
    + r"""
__global__ void fill(int* p, int n, int v) { int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = v + i; }
void CUDART_CB note(void* data) { ++*(int*)data; }
void CUDART_CB called(cudaStream_t s, cudaError_t e, void* data) { *(int*)data += e == cudaSuccess ? 10 : 100; }
int main() {
  cudaMemPool_t pool, own; cudaDeviceGetDefaultMemPool(&pool, 0);
  unsigned long long keep = ~0ull, used, high, reserved;
  cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
  cudaStream_t s; cudaStreamCreate(&s);
  int *a, *b, h[4];
  cudaMallocAsync(&a, 1000 * sizeof(int), s); cudaMallocAsync((void**)&b, 4000, s);
  fill<<<4, 256, 0, s>>>(a, 1000, 5);
  cudaMemcpyAsync(h, a + 996, sizeof h, cudaMemcpyDeviceToHost, s);
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used);
  cudaFreeAsync(a, s); cudaFreeAsync(b, s); cudaStreamSynchronize(s);
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high);
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved);
  printf("%d %llu %llu %d ", h[3], used, high, reserved >= high);
  cudaMemPoolTrimTo(pool, 0); cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved);
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used); printf("%llu %llu\n", reserved, used);
  cudaMemPoolProps props = {}; props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice; props.location.id = 0;
  printf("%d ", cudaMemPoolCreate(&own, &props)); cudaMallocFromPoolAsync(&a, 64, own, s);
  cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemCurrent, &used); printf("%llu ", used); cudaFree(a);
  cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemCurrent, &used);
  printf("%llu %d\n", used, cudaMemPoolDestroy(own));
  int least, greatest, p; unsigned f; cudaDeviceGetStreamPriorityRange(&least, &greatest);
  cudaStream_t high_s; cudaStreamCreateWithPriority(&high_s, cudaStreamNonBlocking, greatest - 3);
  cudaStreamGetPriority(high_s, &p); cudaStreamGetFlags(high_s, &f);
  printf("%d %d %d %u\n", least, greatest, p == greatest, f);
  int count = 0; cudaLaunchHostFunc(s, note, &count); cudaStreamAddCallback(s, called, &count, 0);
  cudaStreamSynchronize(s); printf("%d\n", count);
  int* m; cudaMallocManaged(&m, 4096); cudaMemLocation host{cudaMemLocationTypeHost, 0};
  printf("%d %d %d %d\n", cudaMemPrefetchAsync(m, 4096, 0, s), cudaMemAdvise(m, 4096, cudaMemAdviseSetReadMostly, 0),
    cudaMemPrefetchAsync(m, 4096, host, 0, s), cudaMemPrefetchAsync(m, 4096, cudaCpuDeviceId));
  size_t lim; cudaDeviceGetLimit(&lim, cudaLimitMallocHeapSize); printf("%zu\n", lim);
  cudaEvent_t e; cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
  cudaEventRecordWithFlags(e, s, cudaEventRecordDefault);
  cudaFree(m); cudaStreamDestroy(s); cudaStreamDestroy(high_s); cudaEventDestroy(e);
}
"""
)
# Element 999 is 5 + 999; two allocations of 4,000 bytes are in use, and none once they are freed and trimmed; the own
# pool has 64 bytes in use until they are freed; a priority beyond the highest is the highest, of a non-blocking stream;
# the host function adds 1 and the callback 10.
POOLS_PRINT = "1004 8000 8000 1 0 0\n0 64 0 0\n0 -5 1 1\n11\n0 0 0 0\n8388608\n"


@pytest.mark.parametrize("command", ["run", "check"])
def test_pools_streams_and_host_functions(simt, command):
    """Do stream-ordered allocations use their pools, and do priorities, callbacks and advice do what CUDA's do?"""
    done = simt(command, "a.cu", files={"a.cu": POOLS})
    assert (done.stdout, done.returncode) == (POOLS_PRINT, 0), done.stderr


@pytest.mark.parametrize(
    "call, instead",
    [
        ("cudaThreadSynchronize();", "cudaDeviceSynchronize()"),
        ("cudaThreadExit();", "cudaDeviceReset()"),
        ("cudaBindTexture(0, t, p, 4);", "cudaResourceTypeLinear"),
    ],
)
def test_a_removed_name_is_refused_with_its_successor(simt, call, instead):
    """Is a name that CUDA removed one error that says what to write?"""
    done = simt("run", "a.cu", files={"a.cu": f"#include <cuda_runtime.h>\nint main() {{\n  {call}\n}}\n"})
    name = call.partition("(")[0]
    assert done.returncode == 3 and f"a.cu, line 3: `{name}`: CUDA has removed this" in done.stderr
    assert instead in done.stderr and "Use a GPU" not in done.stderr


ATTACHED = (
    CHECK
    + r"""
__global__ void one(int* p) { *p = 1; }
int main() {
  int* p; cudaStream_t s;
  CHECK(cudaStreamCreate(&s)); CHECK(cudaMallocManaged(&p, sizeof(int), cudaMemAttachHost));
  *p = 7;
  CHECK(cudaStreamAttachMemAsync(s, p)); CHECK(cudaStreamSynchronize(s));
  one<<<1, 1, 0, s>>>(p);
  CHECK(cudaStreamAttachMemAsync(s, p, 0, cudaMemAttachHost)); CHECK(cudaStreamSynchronize(s));
  printf("%d\n", *p);
  CHECK(cudaFree(p)); CHECK(cudaStreamDestroy(s));
}
"""
)


def test_managed_memory_is_attached_to_a_stream(simt):
    """Does a program that attaches managed memory to a stream run?"""
    done = simt("run", "a.cu", files={"a.cu": ATTACHED})
    assert (done.stdout, done.returncode) == ("1\n", 0), done.stderr


OCCUPANCY = (
    CHECK
    + r"""
__global__ void k() {}
size_t bytes_of(int threads) { return threads > 256 ? 200000 : 4 * threads; }
int main() {
  int grid, block, same;
  CHECK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, k, [](int threads) { return 8 * threads; }));
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &same, k));
  printf("%d ", block == same);
  CHECK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, k, bytes_of, 512));
  printf("%d\n", block);
}
"""
)


def test_a_block_size_is_chosen_by_what_each_size_needs(simt):
    """Does the choice of a block size ask how much shared memory each size needs?"""
    done = simt("run", "a.cu", files={"a.cu": OCCUPANCY})
    assert (done.stdout, done.returncode) == ("1 256\n", 0), done.stderr


RESIDENT = (
    CHECK
    + r"""
#include <cooperative_groups.h>
__global__ void __launch_bounds__(256) bounded(int* x) {
  __shared__ int tile[5000];
  tile[threadIdx.x] = 1;
  __syncthreads();
  cooperative_groups::this_grid().sync();
  if (threadIdx.x == 0) atomicAdd(x, tile[blockDim.x - 1]);
}
int main() {
  int grid, block, by_function, blocks, too_many, value, *x;
  cudaFuncAttributes facts;
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  CHECK(cudaFuncGetAttributes(&facts, bounded));
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, bounded));
  CHECK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &by_function, bounded, [](int) { return 0; }));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&too_many, bounded, 512, 0));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 256, 10000));
  printf("%d %d %d %d %d\n", facts.maxThreadsPerBlock, block, by_function, too_many, blocks);
  CHECK(cudaMalloc(&x, sizeof *x));
  CHECK(cudaMemset(x, 0, sizeof *x));
  void* arguments[] = {&x};
  const int all = blocks * device.multiProcessorCount;
  CHECK(cudaLaunchCooperativeKernel((void*)bounded, dim3(all), dim3(256), arguments, 10000, 0));
  CHECK(cudaMemcpy(&value, x, sizeof value, cudaMemcpyDeviceToHost));
  printf("%d ", value == all);
  printf("%s\n", cudaGetErrorName(cudaLaunchCooperativeKernel((void*)bounded, all + 1, 256, arguments, 10000, 0)));
  CHECK(cudaFree(x));
}
"""
)


@pytest.mark.parametrize("device, blocks", [("T4", 2), ("H200", 7)])
def test_occupancy_is_that_of_a_cooperative_launch(simt, device, blocks):
    """Do __launch_bounds__ and __shared__ arrays count in what a multiprocessor holds, as they do at a launch?

    A block has 30,000 bytes; 65,536 bytes are on a multiprocessor of a T4, 233,472 on one of an H200, where CUDA keeps
    1,024 of each block's.
    """
    done = simt("run", "--device", device, "a.cu", files={"a.cu": RESIDENT})
    expected = f"256 256 256 0 {blocks}\n1 cudaErrorCooperativeLaunchTooLarge\n"
    assert (done.stdout, done.returncode) == (expected, 0), done.stderr


TOO_MUCH = (
    CHECK
    + r"""
int main() {
  float* a = nullptr;
  printf("%s ", cudaGetErrorName(cudaMalloc(&a, 1ull << 45)));
  printf("%s ", cudaGetErrorName(cudaMalloc(&a, 17ull << 30)));
  printf("%d ", a == nullptr);
  CHECK(cudaMalloc(&a, 1 << 20));
  CHECK(cudaFree(a));
  cudaMalloc(&a, 1ull << 40);
}
"""
)


@pytest.mark.parametrize("command", ["run", "check"])
def test_no_more_memory_is_given_than_the_device_has(simt, command):
    """Is a request for more than a T4's 16 GB an error of the program, as on a T4, and not the end of this machine?"""
    done = simt(command, "a.cu", files={"a.cu": TOO_MUCH})
    assert done.stdout == 2 * "cudaErrorMemoryAllocation " + "1 "
    if command == "check":
        line = TOO_MUCH.count("\n", 0, TOO_MUCH.index("1ull << 40")) + 1
        assert f"unchecked_error: a.cu, line {line}: cudaMalloc failed: the device does not have so" in done.stderr


COMPLEX = r"""
#include <cuComplex.h>
#include <complex>
#include <cstdio>
__global__ void k(const cuDoubleComplex* a, const cuDoubleComplex* b, cuDoubleComplex* out, double* length,
                  cuComplex* narrow) {
  int i = threadIdx.x;
  out[4 * i] = cuCadd(a[i], b[i]);
  out[4 * i + 1] = cuCmul(a[i], b[i]);
  out[4 * i + 2] = cuCdiv(a[i], b[i]);
  out[4 * i + 3] = cuCfma(a[i], b[i], cuConj(a[i]));
  length[i] = cuCabs(a[i]);
  narrow[i] = cuCdivf(cuComplexDoubleToFloat(a[i]), make_cuComplex(cuCreal(b[i]), cuCimag(b[i])));
}
int main() {
  const int n = 32;
  typedef std::complex<double> Z;
  cuDoubleComplex *a, *b, *out;
  double* length;
  cuComplex* narrow;
  cudaMallocManaged(&a, n * sizeof *a);
  cudaMallocManaged(&b, n * sizeof *b);
  cudaMallocManaged(&out, 4 * n * sizeof *b);
  cudaMallocManaged(&length, n * 8);
  cudaMallocManaged(&narrow, n * 8);
  for (int i = 0; i < n; i++) {
    a[i] = make_cuDoubleComplex(i - 7.5, 0.25 * i * i);
    b[i] = make_cuDoubleComplex(3 - i, 1 + i % 5);
  }
  k<<<1, n>>>(a, b, out, length, narrow);
  cudaDeviceSynchronize();
  double worst = 0;
  for (int i = 0; i < n; i++) {
    Z x(a[i].x, a[i].y), y(b[i].x, b[i].y), want[4] = {x + y, x * y, x / y, x * y + std::conj(x)};
    for (int j = 0; j < 4; j++)
      worst = fmax(worst, std::abs(Z(out[4 * i + j].x, out[4 * i + j].y) - want[j]) / std::abs(want[j]));
    worst = fmax(worst, fabs(length[i] / std::abs(x) - 1));
    worst = fmax(worst, 1e-8 * std::abs(Z(narrow[i].x, narrow[i].y) - want[2]) / std::abs(want[2]));
  }
  printf("%s %g %g\n", worst < 1e-14 ? "PASSED" : "FAILED", cuCabs(make_cuDoubleComplex(3e200, 4e200)),
         cuCabsf(make_cuFloatComplex(0, 0)));
  cudaFree(a);
  cudaFree(b);
  cudaFree(out);
  cudaFree(length);
  cudaFree(narrow);
}
"""


@pytest.mark.parametrize("command", ["run", pytest.param("check", marks=pytest.mark.slow)])
def test_complex_numbers_of_cucomplex(simt, command):
    """Do sums, products, quotients and lengths agree with std::complex, also where a square overflows?"""
    done = simt(command, "a.cu", files={"a.cu": COMPLEX})
    assert (done.stdout, done.returncode) == ("PASSED 5e+200 0\n", 0), done.stderr


POINTERS = (
    CHECK
    + r"""
#include <cstdlib>
__global__ void reverse(int* x) {
  extern __shared__ int tile[];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
void show(const void* p) {
  cudaPointerAttributes a;
  CHECK(cudaPointerGetAttributes(&a, p));
  printf("%d %d %d %d\n", a.type, a.device, a.devicePointer == p, a.hostPointer == p);
}
int main() {
  int *device, *managed, *pinned, *own = (int*)malloc(400);
  unsigned flags;
  CHECK(cudaMalloc(&device, 400)); CHECK(cudaMallocManaged(&managed, 400));
  CHECK(cudaHostAlloc(&pinned, 400, cudaHostAllocPortable));
  show(device + 99); show(managed); show(pinned + 1); show(own);
  CHECK(cudaHostGetFlags(&flags, pinned)); printf("%u\n", flags);
  CHECK(cudaHostRegister(own, 400, cudaHostRegisterDefault)); show(own);
  CHECK(cudaHostUnregister(own)); show(own);
  CHECK(cudaFree(device)); CHECK(cudaFree(managed)); CHECK(cudaFreeHost(pinned)); free(own);
  printf("%d\n", cudaHostGetFlags(&flags, &flags) != cudaSuccess); cudaGetLastError();
  int grid, block;
  CHECK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, reverse, [](int n) { return n * 128; }, 0));
  printf("%d\n", block * 128 <= 65536 && block >= 32);
}
"""
)


def test_attributes_of_pointers_and_block_sizes_by_shared_memory(simt):
    """Is each kind of memory reported by its type, and is a block chosen whose shared memory fits?"""
    done = simt("run", "a.cu", files={"a.cu": POINTERS})
    expected = "2 0 1 0\n3 0 1 1\n1 0 1 1\n0 -2 0 1\n3\n1 0 1 1\n0 -2 0 1\n1\n1\n"
    assert (done.stdout, done.returncode) == (expected, 0), done.stderr


REPLACED = (
    CHECK
    + r"""
#include <cstdlib>
#include <new>
int made, freed;
struct Many { int values[32]; };
int *d, *one;  // in local variables the compiler may leave out a new with its delete
Many* many;
void* operator new(size_t bytes) { ++made; return malloc(bytes); }
void operator delete(void* p) noexcept { ++freed; free(p); }
void operator delete(void* p, size_t) noexcept { ++freed; free(p); }
__global__ void fill(int* out) { out[threadIdx.x] = threadIdx.x; }
int main() {
  one = new int(1); many = new Many;
  printf("%d ", made);
  CHECK(cudaMalloc(&d, 128));
  fill<<<1, 32>>>(d);
  CHECK(cudaMemcpy(many, d, 128, cudaMemcpyDeviceToHost));
  printf("%d %d\n", many->values[31], *one);
  CHECK(cudaFree(d));
  freed = 0;
  delete one; delete many;
  printf("%d\n", freed);
}
"""
)


@pytest.mark.parametrize("command", ["run", pytest.param("check", marks=pytest.mark.slow)])
def test_a_program_may_replace_new_and_delete(simt, command):
    """Does the program's own operator new count what new makes, as without simt, while the checks are on?"""
    done = simt(command, "a.cu", files={"a.cu": REPLACED})
    assert (done.stdout, done.returncode) == ("2 31 1\n2\n", 0), done.stdout + done.stderr
