"""python -m simt run: programs of several files, nvcc's options, and dialects of old programs."""

import pytest

MULTI = {
    "main.cpp": """
#include <cstdio>
#include "vec.h"
extern "C" double norm(const float* x, int n);
int main(int argc, char** argv) {
  float x[100]; for (int i = 0; i < 100; ++i) x[i] = i;
  scale(x, 100, 2.0f);
  printf("%g %g %s\\n", x[10], norm(x, 3), argc > 1 ? argv[1] : "-");
  shift(x, 100);
  printf("%g %g\\n", x[4], x[99]);
}
""",
    "vec.h": "#pragma once\nvoid scale(float* x, int n, float f);\nvoid shift(float* x, int n);\n",
    "vec.cu": """
#include "vec.h"
#include "times.cuh"
static __global__ void apply(float* x, int n, float f) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) x[i] = times(x[i], f);
}
__constant__ float offset[1];
void scale(float* x, int n, float f) {
  float* d; cudaMalloc(&d, n * 4); cudaMemcpy(d, x, n * 4, cudaMemcpyHostToDevice);
  apply<<<(n + 31) / 32, 32>>>(d, n, f);
  cudaMemcpy(x, d, n * 4, cudaMemcpyDeviceToHost); cudaFree(d);
}
""",
    "times.cuh": "#pragma once\n__device__ float times(float a, float b);\nextern __constant__ float offset[1];\n",
    "times.cu": """
#include "times.cuh"
#include "vec.h"
static __global__ void apply(float* x, int n) {
  __shared__ float s[32];
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  s[threadIdx.x] = offset[0] + threadIdx.x;
  SYNC
  if (i < n) x[i] = x[i] + s[31 - threadIdx.x];
}
__device__ float times(float a, float b) { return a * b; }
void shift(float* x, int n) {
  float o = 7; cudaMemcpyToSymbol(offset, &o, 4);
  float* d; cudaMalloc(&d, n * 4); cudaMemcpy(d, x, n * 4, cudaMemcpyHostToDevice);
  apply<<<(n + 31) / 32, 32>>>(d, n);
  cudaMemcpy(x, d, n * 4, cudaMemcpyDeviceToHost); cudaFree(d);
}
""",
    "norm.c": """
#include <math.h>
#include <stdlib.h>
double norm(const float* x, int n) {
  double* class = malloc(n * sizeof(double)), new = 0;
  for (int i = 0; i < n; ++i) { class[i] = x[i]; new += class[i] * class[i]; }
  free(class);
  return sqrt(new);
}
""",
}
# x = 2 i, the norm is sqrt(0 + 4 + 16); then x[i] += 7 + 31 - i % 32: 8 + 34 and 198 + 35.
MULTI_PRINTS = "20 4.47214 {}\n42 233\n"
SYNC = ("-D", "SYNC=__syncthreads();")
FILES = ("vec.cu", "times.cu", "main.cpp", "norm.c")


def test_several_files_are_one_program(simt):
    """Are CUDA, C++ and C files linked, with device functions and constants of other files?"""
    done = simt("run", *SYNC, "-O3", "-arch=sm_75", "-std=c++17", "-lm", *FILES, "hello", files=MULTI)
    assert (done.stdout, done.stderr, done.returncode) == (MULTI_PRINTS.format("hello"), "", 0)
    done = simt("run", *SYNC, *reversed(FILES), "--", "that.c")
    assert (done.stdout, done.stderr) == (MULTI_PRINTS.format("that.c"), "")


@pytest.mark.slow
def test_checks_cover_every_file(simt):
    """Does a checked run of several files report nothing for a sound program, and a race with the file that has it?"""
    done = simt("check", *SYNC, *FILES, files=MULTI)
    assert (done.stdout, done.returncode) == (MULTI_PRINTS.format("-"), 0), done.stderr
    done = simt("check", "-D", "SYNC=", *FILES)
    assert done.returncode == 1 and "race: times.cu, line 9, kernel apply" in done.stderr
    done = simt("count", *SYNC, *FILES)
    assert (done.stdout, done.returncode) == (MULTI_PRINTS.format("-"), 0) and "apply" in done.stderr


def test_a_missing_file_and_a_missing_main_are_named(simt):
    """Is a source that does not exist an error and no argument, and is a main missing if no file has one?"""
    done = simt("run", *SYNC, "vec.cu", "none.c", files=MULTI)
    assert done.returncode == 2 and "none.c does not exist" in done.stderr
    done = simt("run", *SYNC, "vec.cu", "times.cu", "norm.c")
    assert done.returncode == 3 and "The program has no main(). Define one." in done.stderr
    done = simt("run", "a.c", files={"a.c": "#include <cuda_runtime.h>\nint main() { return 0; }\n"})
    assert done.returncode == 3 and "Rename a.c to a.cpp." in done.stderr


@pytest.mark.parametrize("standard, printed", [("c99", "199901\n"), ("c11", "201112\n")])
def test_a_program_in_c(simt, standard, printed):
    """Is a C file a program of its own, in the standard that -std names?"""
    text = '#include <stdio.h>\nint main(void) { printf("%ld\\n", __STDC_VERSION__); return 0; }\n'
    assert simt("run", f"-std={standard}", "a.c", files={"a.c": text}).stdout == printed


OPENMP = r"""
#include <cstdio>
#include <omp.h>
__global__ void add(int* p, int v) { atomicAdd(p, v); }
int main() {
  int* d; cudaMalloc(&d, 16); cudaMemset(d, 0, 16);
  int threads[4] = {}, h[4];
  #pragma omp parallel num_threads(4)
  {
    int t = omp_get_thread_num();
    threads[t] = omp_get_num_threads();
    cudaStream_t s; cudaStreamCreate(&s);
    add<<<2, 32, 0, s>>>(d + t, t + 1);
    cudaStreamSynchronize(s); cudaStreamDestroy(s);
  }
  cudaMemcpy(h, d, 16, cudaMemcpyDeviceToHost); cudaFree(d);
  for (int t = 0; t < 4; ++t) printf("%d:%d ", threads[t], h[t]);
}
"""


@pytest.mark.parametrize("option", [["-Xcompiler", "-fopenmp"], ["--compiler-options=-Wall,-fopenmp"]])
def test_openmp(simt, option):
    """Do the threads of a parallel region launch kernels, each its own?"""
    done = simt("run", *option, "a.cu", files={"a.cu": OPENMP})
    assert (done.stdout, done.stderr) == ("4:64 4:128 4:192 4:256 ", "")


DIALECT = r"""
#include <cstdio>
#include <cuda_runtime.h>
#define min(a,b) ((a)<(b)?(a):(b))
#define max(a,b) ((a)>(b)?(a):(b))
#define MAX 100
#define N 64
#define T float
#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) return 1; } while (0)
#define P printf
#define REVERSE a[threadIdx.x] = x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = a[31 - threadIdx.x];
#define I int
#define D 3
#define E 4
#ifdef USE_TEXTURES
texture<float, 1, cudaReadModeElementType> tex;
__global__ void k2() { float f = tex1Dfetch(tex, 0); }
#endif
#if CUDART_VERSION < 9000
void f() { cudaThreadSynchronize(); cublasHandle_t h; }
#else
#define SHARED
#endif
#if 0
#include <thrust/device_vector.h>
cudnnHandle_t h;
#endif
extern __shared__ float ext1[];
__global__ void k(T* x, int n) {
  __shared__ T s[N];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { s[threadIdx.x] = min(x[i], (float)MAX); x[i] = s[threadIdx.x]; }
}
__global__ void d1(float* x) { extern float __shared__ a[]; REVERSE }
__global__ void d2(float* x) { __shared__ extern float a[]; REVERSE }
__global__ void d3(float* x) { float __shared__ a[32]; __shared__ float2 static b; REVERSE }
int main() {
  float h[N], *d; for (int i = 0; i < N; ++i) h[i] = 2 * i;
  CHECK(cudaMalloc(&d, sizeof h)); CHECK(cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice));
  k << <N / 32, 32, 32 * sizeof(T) >> >(d, N);
  k<< < N / 32, dim3(32), 32 * sizeof(T)>> > (d, N);
  k <<< 2, 32, 128 >>> (d, N);
  d1<<<1, 32, 32 * sizeof(float)>>>(d); d2<<<1, 32, 128>>>(d); d3<<<1, 32>>>(d);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 64; i += 9) P("%g ", h[i]); P("\n");
  cudaFree(d);
  return 0;
}
"""


def test_spaced_launches_macros_and_branches_that_are_left_out(simt):
    """Do launches that a formatter split, shared memory in any word order, macros with usual names, and what only a GPU
    has in branches that are not compiled, run? x = min(2 i, 100) three times, then its first 32 reversed three times.
    """
    done = simt("run", "a.cu", files={"a.cu": DIALECT})
    values = [min(2 * i, 100) for i in range(64)]
    values[:32] = values[31::-1]
    assert (done.stdout, done.stderr) == ("".join(f"{v} " for v in values[::9]) + "\n", "")
    done = simt("run", "-DUSE_TEXTURES", "a.cu")
    assert (
        done.returncode == 3
        and "`texture`: CUDA has removed texture references" in done.stderr
        and "cublas" not in done.stderr
    )


SHARED_MACROS = r"""
#include <cstdio>
#define DYNAMIC(T, n) extern T __shared__ n[]
#define WITH_END(T, n) extern __shared__ T n[];
#define TILE(T, n, size) \
  __shared__ T n[size]  // rows of a warp
#define MANY(T, ...) __shared__ T __VA_ARGS__
#define USUAL TILE(int, tile, 32)
#define KERNEL(name, T) \
  __global__ void name(T* x) { \
    USUAL; \
    tile[threadIdx.x] = x[threadIdx.x]; \
    __syncthreads(); \
    x[threadIdx.x] = tile[31 - threadIdx.x]; \
  }
KERNEL(reverse, int)
__global__ void shift(int* x) {
  DYNAMIC(int, s);
  USUAL;
  MANY(int, a[32],
       b[4][8]);
  s[threadIdx.x] = x[threadIdx.x];
  a[threadIdx.x] = tile[threadIdx.x] = 100;
  b[threadIdx.x / 8][threadIdx.x % 8] = __LINE__;
  __syncthreads();
  x[threadIdx.x] = s[(threadIdx.x + 1) % 32] + a[31 - threadIdx.x] + tile[31 - threadIdx.x] + b[0][1];
}
__global__ void twice(int* x) {
  WITH_END(int, all)
  all[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = 2 * all[threadIdx.x ^ 1];
}
int main() {
  int* x;
  cudaMallocManaged(&x, 128);
  for (int i = 0; i < 32; i++) x[i] = i;
  reverse<<<1, 32>>>(x);
  shift<<<1, 32, 128>>>(x);
  twice<<<1, 32, 128>>>(x);
  cudaDeviceSynchronize();
  printf("%d %d\n", x[0], x[31]);
  cudaFree(x);
}
"""


@pytest.mark.parametrize("command", ["run", pytest.param("check", marks=pytest.mark.slow)])
def test_macros_that_declare_shared_memory(simt, command):
    """Are they what they stand for, with lines as they were? 31 - i, then that of i + 1 with 200 and a line, twice."""
    line = SHARED_MACROS[: SHARED_MACROS.index("__LINE__")].count("\n") + 1
    done = simt(command, "a.cu", files={"a.cu": SHARED_MACROS})
    assert (done.stdout, done.returncode) == (f"{2 * (229 + line)} {2 * (200 + line)}\n", 0), done.stderr


def test_an_index_in_such_an_array_is_checked(simt):
    text = SHARED_MACROS.replace("tile[31 - threadIdx.x] + b", "tile[32 - threadIdx.x] + b")
    done = simt("check", "a.cu", files={"a.cu": text})
    line = text[: text.index("tile[32 -")].count("\n") + 1
    assert done.returncode == 1 and f"out_of_bounds: a.cu, line {line}, kernel shift" in done.stderr
    assert "`tile`" in done.stderr


OPEN_LAUNCHES = r"""
#include <cstdio>
#define RUN(k) k<<<1, 32>>>
#define RUN1(k, a) k<<<1, 32>>>(a)
#define GO add<<<1, 32>>>
#define SIZED(k, n) \
  k<<<(n) >> 5, \
      32>>>
#define WHOLE(k, grid, block, ...) do { k<<<grid, block>>>(__VA_ARGS__); cudaDeviceSynchronize(); } while (0)
__global__ void add(int* x, int v = 7) { x[threadIdx.x] += v; }
template <int N> __global__ void add_constant(int* x) { x[threadIdx.x] += N; }
int main() {
  int* x;
  cudaMallocManaged(&x, 32 * sizeof(int));
  cudaMemset(x, 0, 32 * sizeof(int));
  RUN(add)(x, 1);
  RUN1(add_constant<10>, x);
  GO(x);
  GO(x, 100);
  SIZED(add, 32)(x, 1000);
  WHOLE((add_constant<10000>), dim3(1, 1), 32, x);
  RUN(add_constant<100000>)(x);
  cudaDeviceSynchronize();
  printf("%d\n", x[31]);
  cudaFree(x);
}
"""


@pytest.mark.parametrize("command", ["run", pytest.param("check", marks=pytest.mark.slow)])
def test_macros_that_end_with_the_marks_of_a_launch(simt, command):
    """Do they launch what their users name, with the arguments that their users write behind them?"""
    done = simt(command, "a.cu", files={"a.cu": OPEN_LAUNCHES})
    assert (done.stdout, done.returncode) == ("111118\n", 0), done.stderr


def test_an_open_launch_in_a_macro_does_not_hide_a_mistake_behind_it(simt):
    done = simt("run", "a.cu", files={"a.cu": OPEN_LAUNCHES.replace("k<<<1, 32>>>(a)", "k<<<1, 32>>(a)")})
    assert done.returncode == 3 and "a.cu, line 4: A launch is kernel<<<grid, block>>>(arguments)." in done.stderr


MACROS = r"""
#include <cstdio>
#include <cuda_runtime.h>
#define print printf
#define launch 3
#define config 4
#define local static
#define whole 5
#define named 6
#define Site 7
#define Dropped 8
#define dynamic_shared 9
#define body 10
#define arguments 11
__global__ void k(float4* p, int n) {
  extern __shared__ float s[];
  float before;
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  before = s[n - 1 - threadIdx.x];
  p[threadIdx.x] = {before, launch, whole, Site};
  if (threadIdx.x == 0) print("%d %g\n", n, before);
}
local int count = 8;
int main() {
  float4 *d, h[8];
  cudaMalloc(&d, sizeof h);
  k<<<1, count, count * sizeof(float), 0>>>(d, count);
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  void* parameters[] = {&d, &count};
  cudaLaunchKernel((void*)k, dim3(1), dim3(count), parameters, count * sizeof(float));
  cudaDeviceSynchronize();
  print("%g %g %g %g\n", h[2].x, h[2].y, h[2].z, h[2].w);
  cudaFree(d);
}
"""


@pytest.mark.parametrize("command", ["run", pytest.param("check", marks=pytest.mark.slow)])
def test_macros_with_names_that_rewritten_text_uses(simt, command):
    """Does a program run that defines macros with the names of simt's own functions?"""
    done = simt(command, "a.cu", files={"a.cu": MACROS})
    assert (done.stdout, done.returncode) == ("8 7\n8 7\n5 3 5 7\n", 0), done.stderr


NO_RETURN = r"""
#include <cstdio>
int first(int a) { if (a > 5) return 3; printf("first\n"); }
int second(int a) { printf("second\n"); return a; }
__global__ void k() {}
bool launch(int n) { printf("launch %d\n", n); k<<<1, 1>>>(); cudaDeviceSynchronize(); }
void* nothing(void* p) { printf("nothing\n"); }
int main() { first(1); launch(2); nothing(nullptr); printf("end\n"); return 0; }
"""


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_function_without_its_return_returns(simt, command):
    """Does a host function that lacks a return statement return to its caller, as in what nvcc compiles?"""
    done = simt(command, "a.cu", files={"a.cu": NO_RETURN})
    assert (done.stdout, done.returncode) == ("first\nlaunch 2\nnothing\nend\n", 0), done.stderr
