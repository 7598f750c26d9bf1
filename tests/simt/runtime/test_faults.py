"""Kernels that fail: is each failure caught, told with its reason, thread and line, and over when the next launch
comes?
"""

import contextlib
import multiprocessing
import os
import re
import resource
import threading
import time

import pytest
import torch

import simt

# Every kernel fails on a line that ends with "// here", or at its launch, which ends with "// launch".
SOURCE = (
    r"""
#include <torch/extension.h>
#include <vector>
__global__ void oob_write(float* x, int n, int off) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i + off] = 1;  // here
}
void run_after_free(torch::Tensor y) {
  float* x; cudaMalloc(&x, 8192); cudaFree(x);
  auto z = torch::zeros({64}); oob_write<<<1, 32>>>(x, 32, 5);
}
void run_oob_write(torch::Tensor x, int64_t off) { """
    r"""oob_write<<<(x.numel() + 31) / 32, 32>>>(x.data_ptr<float>(), x.numel(), off); }

__device__ float element(const float* p, int i) {
  return p[i];  // here
}
__global__ void oob_read(const float* in, float* out, int off) { out[threadIdx.x] = element(in, threadIdx.x + off); }
void run_oob_read(torch::Tensor x, torch::Tensor y, int64_t off) { """
    r"""oob_read<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), off); }

__global__ void far_write(float* x, long long off) {
  x[off] = 1;  // here
}
void run_far_write(torch::Tensor x, int64_t off) { far_write<<<1, 1>>>(x.data_ptr<float>(), off); }
__global__ void far_read(const float* x, float* y, long long off) {
  y[0] = x[off];  // here
}
void run_far_read(torch::Tensor x, int64_t off) { far_read<<<1, 1>>>(x.data_ptr<float>(), x.data_ptr<float>(), off); }
__global__ void never_set(float** rows) {
  rows[0][threadIdx.x] = 1;  // here
}
void run_never_set(torch::Tensor x) { never_set<<<1, 1>>>((float**)x.data_ptr()); }

__global__ void null_pointer(float* x) {
  x[threadIdx.x] = 1;  // here
}
void run_null_pointer() { null_pointer<<<1, 32>>>(nullptr); }

__global__ void modulo(int* x, int n) {
  x[threadIdx.x] = threadIdx.x % n;  // here
}
void run_modulo() { auto x = torch::zeros({2}, torch::kInt); modulo<<<1, 2>>>(x.data_ptr<int>(), 0); }

__global__ void misaligned(const float* x, float* y) {
  ((float4*)y)[threadIdx.x] = ((const float4*)(x + 1))[threadIdx.x];  // here
}
void run_misaligned() { auto x = torch::zeros({64}); misaligned<<<1, 4>>>(x.data_ptr<float>(), x.data_ptr<float>()); }

__device__ float deeper(float* x, int n) {
  float mine[32]; for (int i = 0; i < 32; i++) mine[i] = x[i % 2] + n;  // here
  return n <= 0 ? mine[n] : deeper(mine, n - 1) + mine[n % 32];
}
__global__ void recursion(float* x, int n) { x[0] = deeper(x, n); }
void run_recursion(int64_t n) { auto x = torch::zeros({2}); recursion<<<1, 1>>>(x.data_ptr<float>(), n); }

__global__ void big_array(float* x, int n) { float mine[200000]; """
    r"""for (int i = 0; i < n; i++) mine[i * 977 % 200000] = i; x[0] = mine[n]; }  // here
void run_big_array() { auto x = torch::zeros({2}); big_array<<<1, 1>>>(x.data_ptr<float>(), 9); }

__global__ void assertion(int* x, int n) {
  assert(threadIdx.x < n && "in range");  // here
}
void run_assertion() { assertion<<<2, 32>>>(nullptr, 10); }
__global__ void kernel_assert(int n) {
  CUDA_KERNEL_ASSERT(threadIdx.x < n);  // here
}
void run_kernel_assert() { kernel_assert<<<1, 32>>>(10); }
__global__ void trap() {
  if (threadIdx.x == 3) __trap();  // here
}
void run_trap() { trap<<<1, 32>>>(); }
__global__ void aborts() {
  if (threadIdx.x == 3) abort();  // here
}
void run_aborts() { aborts<<<1, 32>>>(); }
__global__ void throws(int* x) { if (threadIdx.x == 3) { std::vector<int> none; x[0] = none.at(threadIdx.x); } }
void run_throws() { auto x = torch::zeros({1}, torch::kInt); throws<<<1, 32>>>(x.data_ptr<int>()); }

__global__ void half_at_barrier() {
  if (threadIdx.x < 16) __syncthreads();  // here
}
void run_half_at_barrier() { half_at_barrier<<<1, 32>>>(); }
__global__ void early_return() {
  if (threadIdx.x == 5) return;
  __syncthreads();  // here
}
void run_early_return() { early_return<<<1, 32>>>(); }
__global__ void mask_without_caller(float* x) {
  x[threadIdx.x] = __shfl_down_sync(0x0000ffff, x[threadIdx.x], 1);  // here
}
void run_mask_without_caller() { auto x = torch::zeros({32}); mask_without_caller<<<1, 32>>>(x.data_ptr<float>()); }
__global__ void lanes_that_never_come(float* x) {
  if (threadIdx.x < 8) x[0] = __shfl_sync(0xffffffff, x[0], 0);  // here
  else __syncwarp(0xffffff00);
  __syncthreads();
}
void run_lanes_that_never_come() { auto x = torch::zeros({32}); lanes_that_never_come<<<1, 32>>>(x.data_ptr<float>()); }

__global__ void endless(volatile int* x) {
  while (x[0] == 0) { }  // here
}
void run_endless(torch::Tensor x) { endless<<<4, 32>>>(x.data_ptr<int>()); }
__global__ void one_is_endless(int* x) {
  if (threadIdx.x == 7 && blockIdx.x == 3) while (true) x[1]++;  // here
  __syncthreads();
}
void run_one_is_endless(torch::Tensor x) { one_is_endless<<<5, 64>>>(x.data_ptr<int>()); }
__global__ void endless_barriers() {
  while (true) __syncthreads();  // here
}
void run_endless_barriers(torch::Tensor x) { endless_barriers<<<2, 64>>>(); }
__global__ void endless_shuffles(int* x) {
  while (true) x[1] = __shfl_xor_sync(0xffffffff, x[0], 1);  // here
}
void run_endless_shuffles(torch::Tensor x) { endless_shuffles<<<1, 32>>>(x.data_ptr<int>()); }
__global__ void endless_mathematics(float* x) {
  while (x[0] < 1e30f) x[1] = sinf(x[1]) + expf(x[0]);  // here
}
void run_endless_mathematics(torch::Tensor x) { endless_mathematics<<<2, 32>>>((float*)x.data_ptr()); }
__global__ void endless_memory(int* x) {
  for (;;) { int* p = new int[3]; p[0] = x[0]; x[1] = p[0]; delete[] p; }  // here
}
void run_endless_memory(torch::Tensor x) { endless_memory<<<2, 32>>>(x.data_ptr<int>()); }

__global__ void fill(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = 2; }
void run_fill(torch::Tensor x) { fill<<<(x.numel() + 31) / 32, 32>>>(x.data_ptr<float>(), x.numel()); """
    r"""C10_CUDA_KERNEL_LAUNCH_CHECK(); }
void run_shape(torch::Tensor x, std::vector<int64_t> g, std::vector<int64_t> b) { """
    r"""fill<<<dim3(g[0], g[1], g[2]), dim3(b[0], b[1], b[2])>>>(x.data_ptr<float>(), x.numel()); }
int64_t run_looked(torch::Tensor x) { fill<<<1, 2000>>>(x.data_ptr<float>(), x.numel()); """
    r"""auto e = cudaGetLastError(); TORCH_CHECK(cudaGetLastError() == cudaSuccess); return e; }
int64_t run_peeked(torch::Tensor x) { fill<<<1, 2000>>>(x.data_ptr<float>(), x.numel()); """
    r"""auto e = cudaPeekAtLastError(); TORCH_CHECK(cudaGetLastError() == e); return e; }
void run_refused_then_sound(torch::Tensor x) { fill<<<1, 2000>>>(x.data_ptr<float>(), x.numel()); """
    r"""fill<<<1, 64>>>(x.data_ptr<float>(), x.numel()); }
void run_refused_then_throws(torch::Tensor x) { fill<<<1, 2000>>>(x.data_ptr<float>(), x.numel()); """
    r"""cudaGetLastError(); throw std::runtime_error("after"); }

__global__ void dynamic(float* x, int n) { extern __shared__ float s[]; s[threadIdx.x] = n; __syncthreads(); """
    r"""x[0] = s[0]; }
void run_dynamic(torch::Tensor x, int64_t bytes) { dynamic<<<1, 8, bytes>>>(x.data_ptr<float>(), 2); }
__global__ void dynamic_more(float* x) { extern __shared__ float s[]; s[16000 + threadIdx.x] = 2; __syncthreads(); """
    r"""x[0] = s[16000]; }
void run_dynamic_more(torch::Tensor x, int64_t bytes) {
  cudaFuncSetAttribute(dynamic_more, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes); """
    r"""dynamic_more<<<1, 8, bytes>>>(x.data_ptr<float>());
}
__global__ void much_static(float* x) { __shared__ float s[12289]; s[threadIdx.x] = 1; x[0] = s[0]; }
void run_much_static(torch::Tensor x) { much_static<<<1, 8>>>(x.data_ptr<float>()); }
__global__ void __launch_bounds__(128) bounded(float* x) { x[0] = 2; }
void run_bounded(torch::Tensor x, int64_t threads) { bounded<<<1, threads>>>(x.data_ptr<float>()); }
"""
)
LINES = SOURCE.split("\n")
HOSTS = [line.split(" {")[0] for line in LINES if line.startswith(("void run_", "int64_t run_"))]


def line_of(kernel: str) -> int:
    """The line of the next "// here" from the kernel's head on, or before it in the function that it calls."""
    head = next(n for n, line in enumerate(LINES) if f" {kernel}(" in line and "__global__" in line)
    marked = [n for n, line in enumerate(LINES) if line.endswith("// here")]
    called = [n for n in marked if n < head and "__device__" in LINES[n - 1] and n > head - 4]
    return (called or [n for n in marked if n >= head])[0] + 1


@pytest.fixture(scope="module")
def kernels():
    return simt.load_inline(
        "test_faults", "\n".join(h + ";" for h in HOSTS), SOURCE, functions=[h.split("(")[0].split()[-1] for h in HOSTS]
    )


def failure(kernels, call) -> simt.KernelError:
    with pytest.raises(simt.KernelError) as caught:
        call()
    x = torch.zeros(70)
    kernels.run_fill(x)
    assert (x == 2).all(), "the next launch is spoilt"
    return caught.value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "reason", "thread", "words"),
    [
        ("null_pointer", "illegal_address", (0, 0, 0), "writes through a null pointer"),
        ("modulo", "division_by_zero", (0, 0, 0), "divides an integer by zero"),
        ("misaligned", "misaligned", (0, 0, 0), "not a multiple of their size"),
        ("big_array", "stack_overflow", (0, 0, 0), "64 KiB"),
        ("assertion", "device_assert", (10, 0, 0), 'threadIdx.x < n && "in range"'),
        ("kernel_assert", "device_assert", (10, 0, 0), "threadIdx.x < n"),
        ("trap", "device_assert", (3, 0, 0), "__trap()"),
        ("aborts", "device_assert", (3, 0, 0), "abort()"),
        ("half_at_barrier", "barrier_divergence", (16, 0, 0), "thread (16, 0, 0) and 15 others returned"),
        ("early_return", "barrier_divergence", (5, 0, 0), "30 others wait"),
        ("mask_without_caller", "warp_divergence", (16, 0, 0), "0x0000ffff"),
        ("lanes_that_never_come", "warp_divergence", None, "0xffffffff"),
    ],
)
def test_a_fault_is_told_with_thread_and_line(kernels, name, reason, thread, words):
    """Is each fault named with its reason, kernel, thread and the line where it happened?"""
    error = failure(kernels, getattr(kernels, f"run_{name}"))
    assert (error.reason, error.kernel) == (reason, name) and words in error.message
    assert error.thread == thread or thread is None
    assert (error.source, error.line) == ("cuda_sources", line_of(name)) and error.block[1:] == (0, 0)


def test_recursion_runs_out_of_stack(kernels):
    """Does shallow recursion work, and deep recursion say that the stack is full?"""
    kernels.run_recursion(20)
    error = failure(kernels, lambda: kernels.run_recursion(10**6))
    assert error.reason == "stack_overflow" and abs(error.line - line_of("recursion")) <= 1


def test_a_cpp_exception_in_a_kernel_is_a_fault(kernels):
    """Does an exception that host code could throw end the kernel, not the process?"""
    error = failure(kernels, kernels.run_throws)
    assert error.reason == "device_assert" and error.kernel == "throws" and "vector" in error.message


@pytest.mark.parametrize(
    ("guard", "size", "off", "words"),
    [
        ("end", 64, 1, r"writes element 64 of `x` \(64 elements\): 1 element past its end"),
        ("end", 64, 1 << 28, "element 2684354.. of `x`"),
        ("front", 64, -(1 << 28), "element -2684354.. of `x`"),
        ("front", 64, -1, r"writes element -1 of `x` \(64 elements\): before its start"),
        ("front", 64, -40, "before its start"),
        ("end", 61, 1, r"wrote outside `x` \(244 bytes\)"),
        ("front", 61, 40, "wrote outside `x`"),
    ],
)
def test_a_write_outside_a_tensor_is_found(kernels, guard, size, off, words):
    """Is a write past either end found: by the fence where the tensor ends at it, by the marks around it elsewhere?"""
    with simt.run(guard=guard):
        error = failure(kernels, lambda: kernels.run_oob_write(torch.zeros(size), off))
    assert error.reason == "out_of_bounds" and re.search(words, error.message)
    assert error.line == line_of("oob_write") or "wrote outside" in words


@pytest.mark.slow
@pytest.mark.parametrize("guard", [None, "end"])
@pytest.mark.parametrize(("name", "verb"), [("far_write", "writes"), ("far_read", "reads")])
def test_an_address_that_no_memory_can_have_is_no_null_pointer(kernels, name, verb, guard):
    """Is an index that leads out of all addresses told as read or write with the address, plainly and by the checks,
    and by neither as anything else?
    """
    x = torch.zeros(64)
    call = lambda: getattr(kernels, f"run_{name}")(x, 1 << 45)  # noqa: E731
    words = (
        rf"Thread \(0, 0, 0\) of block \(0, 0, 0\) {verb} "
        rf"at {x.data_ptr() + (1 << 47):#x}, which is not a valid address"
    )
    with simt.run(guard=guard):
        error = failure(kernels, call)
    assert (error.reason, error.line) == ("illegal_address", line_of(name)) and re.match(words, error.message)
    with simt.check() as report, contextlib.suppress(simt.KernelError):
        call()
    (finding,) = report.findings
    assert (finding.check, finding.line) == ("illegal_address", line_of(name)) and re.match(words, finding.message)


def test_a_pointer_that_was_never_set_is_no_misaligned_one(kernels):
    """Is a pointer read from memory that holds anything told with what it holds?"""
    error = failure(kernels, lambda: kernels.run_never_set(torch.full((2,), 0x4142434445464748)))
    assert error.reason == "illegal_address" and "writes at 0x4142434445464748" in error.message


@pytest.mark.parametrize(("guard", "off"), [("end", 1), ("front", -1)])
def test_a_read_outside_a_tensor_is_found_in_a_called_function(kernels, guard, off):
    """Is the line that of the access, in the function that the kernel called, and the tensor the one that was read?"""
    with simt.run(guard=guard):
        error = failure(kernels, lambda: kernels.run_oob_read(torch.zeros(32), torch.zeros(32), off))
    assert (
        error.reason == "out_of_bounds" and "reads element" in error.message and "`in` (32 elements)" in error.message
    )
    assert error.line == line_of("oob_read") and error.thread == ((31, 0, 0) if off > 0 else (0, 0, 0))


def leave_traces(kernels) -> None:
    """Makes and frees tensors, each a little smaller and so a little further: what is made next has had an owner on
    either side.
    """
    for pages in range(12, 0, -1):
        kernels.run_fill(torch.zeros(1024 * pages))


@pytest.mark.parametrize(
    ("guard", "off", "words"), [("front", -1, "element -1 of `x`"), ("end", 1, "element 64 of `x`")]
)
def test_freed_memory_is_not_blamed_for_its_neighbour(kernels, guard, off, words):
    """Is the tensor named whose end was missed, although the bytes outside of it were once those of a tensor that is
    gone?
    """
    with simt.run(guard=guard):
        leave_traces(kernels)
        error = failure(kernels, lambda: kernels.run_oob_write(torch.zeros(64), off))
        with simt.check(guard=guard) as report:
            leave_traces(kernels)
            kernels.run_oob_write(torch.zeros(64), off)
    assert error.reason == "out_of_bounds" and words in error.message
    assert report.findings[0].check == "out_of_bounds" and words in report.findings[0].message


def test_use_after_free_is_told(kernels):
    """Is a kernel that was given freed memory told so, also when tensors have been made since?"""
    with simt.run(guard="end"):
        x = torch.zeros(64)
        error = failure(kernels, lambda: kernels.run_after_free(x))
    assert error.reason == "illegal_address" and "`x`, whose memory was already freed" in error.message
    with simt.check() as report, contextlib.suppress(simt.KernelError):  # which comes where the place is nobody's fence
        kernels.run_after_free(x)
    (finding,) = report.findings
    assert finding.check == "illegal_address" and "freed" in finding.message


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["endless", "one_is_endless", "endless_barriers", "endless_shuffles", "endless_mathematics", "endless_memory"],
)
def test_an_endless_kernel_is_named(kernels, name):
    """Is an endless kernel stopped soon after its limit: in all threads or in one, in barriers, shuffles, libm and
    malloc?
    """
    start = time.perf_counter()
    with simt.run(seconds=0.3):
        error = failure(kernels, lambda: getattr(kernels, f"run_{name}")(torch.zeros(2, dtype=torch.int32)))
    assert time.perf_counter() - start < 3
    assert (error.reason, error.kernel) == ("kernel_timeout", name) and abs(error.line - line_of(name)) <= 2
    if name == "one_is_endless":
        assert (error.block, error.thread) == ((3, 0, 0), (7, 0, 0))


# ---- limits ----


@pytest.mark.parametrize(
    ("grid", "block", "words"),
    [
        ((1, 1, 1), (126, 126, 1), "15,876 threads; the limit is 1,024"),
        ((1, 1, 1), (1025, 1, 1), "1,025 threads"),
        ((1, 1, 1), (1, 1, 65), "65 threads along z; the limit is 64"),
        ((1, 65536, 1), (1, 1, 1), "65,536 blocks along y; the limit along that axis is 65,535"),
        ((1, 1, 70000), (1, 1, 1), "70,000 blocks along z"),
        ((0, 1, 1), (1, 1, 1), "no block along x"),
        ((1, 1, 1), (1, 0, 1), "no thread along y"),
        ((-1, 1, 1), (1, 1, 1), "blocks along x; the limit"),
    ],
)
def test_a_launch_beyond_a_limit_names_it(kernels, grid, block, words):
    """Is a launch that nobody checks refused with the limit that it breaks, at the line of the launch?"""
    error = failure(kernels, lambda: kernels.run_shape(torch.zeros(4), grid, block))
    assert error.reason == "launch_error" and words in error.message and error.thread is None
    assert error.line == next(n for n, line in enumerate(LINES, 1) if line.startswith("void run_shape"))


@pytest.mark.parametrize(
    ("grid", "block"),
    [((1, 1, 1), (1024, 1, 1)), ((1, 1, 1), (4, 4, 64)), ((1, 65535, 1), (1, 1, 1)), ((1 << 20, 1, 1), (1, 1, 1))],
)
def test_a_launch_at_a_limit_runs(kernels, grid, block):
    """Does the largest allowed launch of each kind run?"""
    x = torch.zeros(1)
    kernels.run_shape(x, grid, block)
    assert x.item() == 2


def test_an_error_that_was_looked_at_is_the_programs_own(kernels):
    """Does code that takes the error and goes on get its code (1, as of CUDA 13) and no exception, and code that throws
    after it the reason?
    """
    assert kernels.run_looked(torch.zeros(4)) == 1 and kernels.run_peeked(torch.zeros(4)) == 1
    assert failure(kernels, lambda: kernels.run_refused_then_throws(torch.zeros(4))).reason == "launch_error"
    assert failure(kernels, lambda: kernels.run_refused_then_sound(torch.zeros(4))).reason == "launch_error"


@pytest.mark.parametrize(("name", "argument", "words"), [
    ("dynamic", 49153, "49,153 bytes of shared memory per block; the limit is 49,152 bytes on a T4, "
     "or 65,536 after cudaFuncSetAttribute"),
    ("dynamic", 1 << 20, "65,536 with cudaFuncSetAttribute"),
    ("dynamic_more", 65540, "65,540 bytes"),
    ("bounded", 129, "129 threads, but __launch_bounds__ promises at most 128"),
    ("much_static", None, "__shared__ arrays take 49,156 bytes"),
])  # fmt: skip
def test_resources_are_limited(kernels, name, argument, words):
    """Are shared memory, static and dynamic, and __launch_bounds__ limits that are named?"""
    arguments = (torch.zeros(1),) if argument is None else (torch.zeros(1), argument)
    error = failure(kernels, lambda: getattr(kernels, f"run_{name}")(*arguments))
    assert error.reason == "launch_error" and words in error.message


@pytest.mark.parametrize(("name", "argument"), [("dynamic", 49152), ("dynamic_more", 65536), ("bounded", 128)])
def test_resources_up_to_the_limit_are_given(kernels, name, argument):
    """Does a kernel that takes all it may, after cudaFuncSetAttribute too, run?"""
    x = torch.zeros(1)
    getattr(kernels, f"run_{name}")(x, argument)
    assert x.item() == 2


def test_dynamic_memory_that_was_not_asked_for_traps(kernels):
    """Does a kernel with dynamic shared memory, launched without any, say which launch argument is missing?"""
    error = failure(kernels, lambda: kernels.run_dynamic(torch.zeros(1), 0))
    assert error.reason == "out_of_bounds" and "third `<<<>>>` argument" in error.message


# ---- threads, processes, many launches ----


def test_a_fault_belongs_to_the_thread_that_launched(kernels):
    """Do two Python threads whose kernels fail get their own errors, and two others their results?"""
    wrong = []

    def failing(call, reason):
        for _ in range(20):
            try:
                call()
                wrong.append("no error")
            except simt.KernelError as error:
                if error.reason != reason:
                    wrong.append(error.reason)

    def sound():
        for _ in range(60):
            x = torch.zeros(200)
            kernels.run_fill(x)
            if not (x == 2).all():
                wrong.append("a launch was left out")

    threads = [
        threading.Thread(target=failing, args=a)
        for a in ((kernels.run_trap, "device_assert"), (kernels.run_null_pointer, "illegal_address"))
    ]
    threads += [threading.Thread(target=sound) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def _fill_and_fail(kernels, queue):
    x = torch.zeros(1000)
    kernels.run_fill(x)
    try:
        kernels.run_trap()
    except simt.KernelError as error:
        queue.put((bool((x == 2).all()), error.reason))


def test_a_forked_process_can_launch(kernels):
    """Do processes forked after a launch, which have none of its threads, run kernels and tell faults?"""
    kernels.run_fill(torch.zeros(100))
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    processes = [fork.Process(target=_fill_and_fail, args=(kernels, queue)) for _ in range(2)]
    for process in processes:
        process.start()
    assert [queue.get(timeout=30) for _ in processes] == [(True, "device_assert")] * 2
    for process in processes:
        process.join(30)
        assert process.exitcode == 0


@pytest.mark.slow
def test_launches_and_faults_leak_nothing(kernels):
    """Do 100,000 launches and 100 faults leave memory and open files as they were?"""
    x = torch.zeros(4)

    def some():
        for _ in range(50_000):
            kernels.run_fill(x)
        for call in (kernels.run_half_at_barrier, kernels.run_trap, lambda: kernels.run_recursion(10**6)) * 17:
            with pytest.raises(simt.KernelError):
                call()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, len(os.listdir("/proc/self/fd"))

    memory, files = some()
    more_memory, more_files = some()
    assert more_memory - memory < 2048 and more_files == files  # KiB
