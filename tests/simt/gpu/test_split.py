"""Are host and device code told apart, and does the host's half launch what the source says?

The host's half is compiled with a runtime that prints each launch: the name under which the machine code is looked up,
and the arguments as the kernel would read them. The expected lines are written by hand.
"""

import subprocess
from pathlib import Path

import pytest

from simt.frontend.source import Source
from simt.gpu.items import NotSplit
from simt.gpu.split import split
from simt.toolchain.compilers import find_compiler
from simt.toolchain.headers import SIMT

FAKE = Path(__file__).with_name("fake_cuda")

SOURCE = r"""#include <cuda_runtime.h>
#include <cstdio>
#include <vector>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

constexpr int THREADS = 128;  // of a block
#define CALL(kernel, n) kernel<<<1, 2>>>(n)

__constant__ float weights[4];
static __device__ int counter = 0;

struct Pair {
    int a, b;
    __device__ Pair(int x) : a{x}, b(x + threadIdx.x) { __syncthreads(); }
    __host__ __device__ Pair() : a(7), b(8) {}
    __device__ int sum() const {
        return a + b + threadIdx.x;
    }
};

template <typename T>
__device__ __forceinline__ T twice(T x) { return x + __ldg(&x) + blockIdx.x; }

__host__ __device__ inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

__global__ void plain(const float* __restrict__ x, int n, float scale = 2.5f) { twice(x[threadIdx.x]); }
static __global__ void __launch_bounds__(THREADS) hidden(int n) {
    if (n > 0) { __syncthreads(); }
}
__global__ void nothing() {}
__global__ void nothing_said(void) {}
__global__ void unnamed(int, float) {}
template <typename T, int N, bool = true>
__global__ void versions(T x, const int n) {
    extern __shared__ float tile[];
    tile[0] = x;
}
template <typename... Ts>
__global__ void many(Ts... xs) {}
template <>
__global__ void versions<float, 9, true>(float x, const int n) { x = 0; }
__global__ void overloaded(int n) {}
__global__ void overloaded(float n) {}
__global__ void takes(Pair p, long n) {}
namespace inner { namespace {
__global__ void deep(int n) {}
} }
__global__ void
declared_first(int n);
__global__ void declared_first(int n)
{
    const auto text = "}";  // a brace in a string
}

template <int N>
void run_version(int n) {
    versions<double, N><<<dim3(2, 3), THREADS, 64>>>(n, n);
}

int main() {
    const float value = 1.5f;
    std::vector<int> all{1};
    plain<<<ceil_div(257, THREADS), THREADS>>>(&value, all[0]);
    plain<<<1, 1, 0, nullptr>>>(&value, 3.9, 4);
    hidden <<< 4 , THREADS >>> (5);
    nothing<<<1, 1>>>();
    nothing_said<<<1, 1>>>();
    unnamed<<<1, 1>>>(1, 2);
    versions<float, 4><<<1, 32>>>(1, 2);
    versions<float, 9><<<1, 32>>>(1, 2);
    run_version<5>(6);
    many<<<1, 1>>>(1, 2.5, 3L);
    overloaded<<<1, 1>>>(1);
    overloaded<<<1, 1>>>(1.0f);
    takes<<<1, 1>>>(Pair(), 9);
    inner::deep<<<1, 1>>>(1);
    declared_first<<<1, 1>>>(1);
    CALL(hidden, 11);
    if (value > 2) hidden<<<1, 1>>>(100); else hidden<<<1, 1>>>(12);
    auto kernel = &versions<float, 4, true>;
    kernel<<<1, 1>>>(1, 13);
    cudaFuncSetAttribute(versions<float, 4>, cudaFuncAttributeMaxDynamicSharedMemorySize, 70000);
    cudaFuncSetCacheConfig(hidden, cudaFuncCachePreferL1);
    int n = 14, grid, block;
    void* arguments[] = {&n};
    cudaLaunchKernel((void*)hidden, dim3(1), dim3(1), arguments, 0, nullptr);
    cudaLaunchCooperativeKernel((const void*)hidden, dim3(1), dim3(1), arguments, 0, nullptr);
    cudaLaunchConfig_t configuration;
    configuration.gridDim = 15;
    cudaLaunchKernelEx(&configuration, unnamed, 16, 17);
    cudaOccupancyMaxPotentialBlockSize(&grid, &block, hidden, 0, 0);
    std::printf("best %d %d\n", grid, block);
    float w[4] = {1, 2, 3, 4}, back[2];
    cudaMemcpyToSymbol(weights, w, sizeof w);
    cudaMemcpyFromSymbol(back, weights, sizeof back, 4);
    std::printf("back %g %g\n", back[0], back[1]);
    std::printf("too far %d\n", cudaMemcpyToSymbol(weights, w, sizeof w, 1020) == cudaErrorInvalidValue);
    int* place;
    cudaGetSymbolAddress((void**)&place, counter);
}
"""

LAUNCHED = """\
plain(float const*, int, float) <<<3x1x1, 128x1x1, 0>>> [1.5] 1 2.5
plain(float const*, int, float) <<<1x1x1, 1x1x1, 0>>> [1.5] 3 4
hidden(int) <<<4x1x1, 128x1x1, 0>>> 5
nothing() <<<1x1x1, 1x1x1, 0>>>
nothing_said() <<<1x1x1, 1x1x1, 0>>>
unnamed(int, float) <<<1x1x1, 1x1x1, 0>>> 1 2
void versions<float, 4, true>(float, int) <<<1x1x1, 32x1x1, 0>>> 1 2
void versions<float, 9, true>(float, int) <<<1x1x1, 32x1x1, 0>>> 1 2
void versions<double, 5, true>(double, int) <<<2x3x1, 128x1x1, 64>>> 6 6
void many<int, double, long>(int, double, long) <<<1x1x1, 1x1x1, 0>>> 1 2.5 3
overloaded(int) <<<1x1x1, 1x1x1, 0>>> 1
overloaded(float) <<<1x1x1, 1x1x1, 0>>> 1
takes(Pair, long) <<<1x1x1, 1x1x1, 0>>> {7} 9
inner::simt_unnamed::deep(int) <<<1x1x1, 1x1x1, 0>>> 1
declared_first(int) <<<1x1x1, 1x1x1, 0>>> 1
hidden(int) <<<1x1x1, 2x1x1, 0>>> 11
hidden(int) <<<1x1x1, 1x1x1, 0>>> 12
void versions<float, 4, true>(float, int) <<<1x1x1, 1x1x1, 0>>> 1 13
attribute of _Z8versionsIfLi4ELb1EEvT_i: 70000
attribute of _Z6hiddeni: 0
hidden(int) <<<1x1x1, 1x1x1, 0>>> 14
cooperative hidden(int) <<<1x1x1, 1x1x1, 0>>> 14
unnamed(int, float) <<<15x1x1, 1x1x1, 0>>> 16 17
best 20 768
symbol weights
symbol weights
back 2 3
symbol weights
too far 1
symbol counter
""".splitlines()


def _run(source: str, folder: Path) -> list[str]:
    """Compile the host's half of a program and return the lines that it prints."""
    text = '#include <gpu/host.h>\n#include <gpu/names.h>\n#line 1 "cuda_sources"\n' + split(Source(source)).host
    # As loading an extension does: the machine code comes first.
    text += (
        '\nextern "C" void simt_gpu_set_code(const void*);\nstatic bool simt_set = (simt_gpu_set_code("code"), true);\n'
    )
    (folder / "host.cpp").write_text(text, encoding="utf-8")
    program = folder / "program"
    includes = [f"-I{FAKE}", f"-I{SIMT / 'include'}"]
    files = [str(folder / "host.cpp"), str(SIMT / "src/gpu/launch.cpp")]
    command = [find_compiler()[0], "-std=c++20", "-fPIC", "-rdynamic", *includes, *files, "-o", str(program), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()


def test_what_is_launched(tmp_path):
    """Does every way to launch or to name a kernel reach the one that nvcc's rules choose, with its arguments?"""
    assert _run(SOURCE, tmp_path) == LAUNCHED


def test_lines_stay():
    """Does each line keep its number on both sides, so that messages name the student's own?"""
    parts = split(Source(SOURCE))
    for text in (parts.device, parts.host):
        assert text.count("\n") == SOURCE.count("\n")
    numbered = list(zip(SOURCE.splitlines(), parts.device.splitlines(), parts.host.splitlines()))
    kept_on_device = [line for line, device, _ in numbered if "twice" in line and device == line]
    kept_on_host = [line for line, _, host in numbered if "std::vector<int> all" in line and host == line]
    assert len(kept_on_device) == 2 and len(kept_on_host) == 1


def test_what_each_side_sees():
    """Does the device get no host code, and the host no device code?"""
    parts = split(Source(SOURCE))
    for word in ("main", "std::vector", "run_version", "<vector>", "cudaMemcpyToSymbol"):
        assert word not in parts.device
    assert (
        "<cstdio>" in parts.device and "<cstdio>" not in split(Source(SOURCE), standard=False).device
    )  # NVRTC has none
    for word in ("__ldg", "threadIdx", "__syncthreads", "tile[0]", "cooperative_groups.h"):
        assert word not in parts.host
    for word in ("ceil_div", "struct Pair", "constexpr int THREADS", "weights"):
        assert word in parts.device and word in parts.host
    assert parts.symbols == ["weights", "counter"]
    assert {"plain", "hidden", "versions", "deep"} <= set(parts.kernels) and "versions" in parts.templates


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("#include <curand_kernel.h>\n__global__ void k() {}", "cuRAND"),
        ('#include "own.cuh"\n__global__ void k() {}', "own.cuh"),
        ("__global__ void k() {}\n__global__ void m() { k<<<1, 1>>>(); }", "line 2"),
        ("__managed__ int n;", "managed"),
        ("__global__ void k() {}\n#define RUN(k) k<<<1, 1>>>\nvoid f() { RUN(k)(); }", "macro in line 2"),
        ("#define K(n) __global__ void n() {}\nK(a)\nK(b)", "macro K"),
        ("#ifdef A\n__global__ void k() {\n#else\n__global__ void k(int) {\n#endif\n}", "line 2"),
        ("#ifdef __CUDACC__\n#endif\n__global__ void k() {}", "nvcc"),
        ("__global__ void k(void (*f)(int)) {}", "function pointer"),
        ("namespace a { __global__ void k() {}", "namespace"),
    ],
)
def test_what_goes_to_nvcc(source, reason):
    """Is a source that has no safe split refused, with the reason?"""
    with pytest.raises(NotSplit, match=reason):
        split(Source(source))
