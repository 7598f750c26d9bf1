"""Ways to write kernels, launches, shared memory and host functions that nvcc takes: do they build, and do what they say?"""

import re

import pytest
import torch
import torch.nn.functional as F

import simt

# A form: what stands before the host function, and what the host function does. Each doubles n floats, from X to Y,
# in blocks of 64 threads.
KERNEL = "(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }\n"
OF_T = KERNEL.replace("float", "T")
FORMS = {
    "explicit_arguments": ("template <class T, int B> __global__ void k1" + OF_T, "k1<float, 64><<<G, 64>>>(X, Y, n);"),
    "deduced_arguments": ("template <class T> __global__ void k2" + OF_T, "k2<<<G, 64>>>(X, Y, n);"),
    "partly_explicit": ("template <int B, class T> __global__ void k3" + OF_T, "k3<64><<<G, 64, 0>>>(X, Y, n);"),
    "computed_arguments": (
        "constexpr int half_of(int n) { return n / 2; }\n"
        "template <int N, bool B> __global__ void k4(const float* x, float* y, int n) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = B ? N * x[i] : 0; }\n",
        "constexpr int W = 4; k4<half_of(W), (W > 3)><<<G, 64>>>(X, Y, n); k4<(W >> 1), (W >= 3)><<<G, 64, 0, 0>>>(X, Y, n);",
    ),
    "default_template_arguments": ("template <class T = float> __global__ void k5" + OF_T, "k5<><<<G, 64>>>(X, Y, n); k5<<<G, 64>>>(X, Y, n);"),
    "default_parameters": (
        "__global__ void k6(const float* x, float* y, int n, float a = 2, bool on = true) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n && on) y[i] = a * x[i]; }\n",
        "k6<<<G, 64>>>(X, Y, n); k6<<<G, 64>>>(X, Y, n, 2.0);",
    ),
    "namespaces": (
        "namespace a { namespace b { __global__ void k7" + KERNEL + "} template <class T> __global__ void k8" + OF_T + "}\n"
        "namespace { __global__ void k9" + KERNEL + "}\n"
        "static void also(const float* x, float* y, int n) { if (n < 0) return ::a::k8<<<1, 1>>>(x, y, n); else ::a::b::k7<<<(n + 63) / 64, 64>>>(x, y, n); }\n",
        "a::b::k7<<<G, 64>>>(X, Y, n); ::a::k8<float><<<G, 64>>>(X, Y, n); k9<<<G, 64>>>(X, Y, n); also(X, Y, n); { using namespace a; k8<<<G, 64>>>(X, Y, n); }",
    ),
    "structs_and_pointers_to_pointers": (
        "struct View { const float* x; float* y; int n; float spare[4]; };\n"
        "struct Twice { __device__ float operator()(float v) const { return 2 * v; } };\n"
        "template <class O> __global__ void k10(View v, O op) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < v.n) v.y[i] = op(v.x[i]); }\n"
        "__global__ void k11(const View v, float* const* rows) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < v.n) rows[0][i] = 2 * v.x[i]; }\n",
        "View v{X, Y, n}; k10<<<G, 64>>>(v, Twice()); k10<Twice><<<G, 64>>>(v, {}); float* row = Y; k11<<<G, 64>>>({X, Y, n}, &row);",
    ),
    "over_several_lines": (
        "template <class T, int A, int B> // two <<<\n__global__ void k12" + OF_T,
        """k12<float, // the type >>>
             2, /* a, b */ 3>
          <<< // here
            dim3(G, 1, 1), /* threads <<<1, 2>>> */ 64,
            0
          >>>( // now
            X, Y,
            n
          ); const char* s = R"(k<<<1, 2>>>(x))"; (void)s;""",
    ),
    "dispatch": (
        "template <class T, class I> __global__ void k13(const T* x, const I* at, T* y, int64_t n) {\n"
        "  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; if (i < n) y[i] = x[at[i]] * static_cast<T>(2); }\n",
        """auto at = torch::empty({n}, x.options().dtype(torch::kInt)); for (int i = 0; i < n; i++) at.data_ptr<int>()[i] = i;
           AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "a", [&] { AT_DISPATCH_INDEX_TYPES(at.scalar_type(), "b", ([&] {
             k13<scalar_t, index_t><<<G, 64, 0, at::cuda::getCurrentCUDAStream()>>>(
               x.data_ptr<scalar_t>(), at.data_ptr<index_t>(), y.data_ptr<scalar_t>(), x.numel()); })); });""",
    ),
    "macros": (
        "#define GO(kernel, ...) kernel<<<G, 64>>>(__VA_ARGS__)\n"
        "#define GO_OF(T, N) \\\n  k14<T, \\\n    N><<<G, \\\n  64>>>( \\\n  X, Y, n); \\\n  C10_CUDA_KERNEL_LAUNCH_CHECK()\n"
        "template <class T, int N> __global__ void k14" + OF_T + "__global__ void k15" + KERNEL,
        "GO_OF(float, 3); GO((k14<float, 2>), X, Y, n); GO(k15, X, Y, n);",
    ),
    "pointers_to_kernels": (
        "template <class T> __global__ void k16" + OF_T + "__global__ void k17" + KERNEL + "using Pointer = void (*)(const float*, float*, int);\n",
        """auto p = &k16<float>; p<<<G, 64>>>(X, Y, n); Pointer all[] = {k16<float>, k17}; all[1]<<<G, 64>>>(X, Y, n);
           (n > 3 ? k16<float> : k17)<<<G, 64>>>(X, Y, n); (*p)<<<G, 64>>>(X, Y, n); struct { Pointer run; } o{k17}; o.run<<<G, 64>>>(X, Y, n);""",
    ),
    "branches_without_braces": (
        "static __global__ void k18" + KERNEL + 'extern "C" __global__ void k19' + KERNEL,
        "if (n > 3) k18<<<G, 64>>>(X, Y, n); else k19<<<1, 1>>>(X, Y, 0); for (int r = 0; r < 2; r++) k19<<<G, 64>>>(X, Y, n); n > 3 ? k18<<<G, 64>>>(X, Y, n) : k19<<<1, 1>>>(X, Y, n);",
    ),
    "bounds_before_and_after": (
        "#define BS 64\n__global__ void __launch_bounds__(64) k20" + KERNEL + "__launch_bounds__(BS, 2) __global__ void k21" + KERNEL
        + "template <class T> __launch_bounds__(BS) __global__ void k22" + OF_T,
        "k20<<<G, 64>>>(X, Y, n); k21<<<G, 64>>>(X, Y, n); k22<float><<<G, 64>>>(X, Y, n); k22<<<G, 64>>>(X, Y, n);",
    ),
    "overloads_and_declarations": (
        "__global__ void k23(const float* x, float* y, int n);\n__global__ void k23(const float* x, double* y, int n);\n"
        "static void ahead(const float* x, float* y, int n) { k23<<<(n + 63) / 64, 64>>>(x, y, n); }\n"
        "__global__ void k23" + KERNEL + "__global__ void k23" + KERNEL.replace("float* y", "double* y"),
        "ahead(X, Y, n);",
    ),
    "null_pointers": (
        "template <class T> __global__ void k24(const T* x, T* y, const float* bias, int n) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i] + (bias ? bias[0] : 0); }\n",
        "k24<<<G, 64>>>(X, Y, NULL, n); k24<<<G, 64>>>(X, Y, nullptr, n); k24<<<G, 64>>>(X, Y, 0, n); k24<float><<<G, 64>>>(X, Y, 0, n);",
    ),
    "nested_templates": (
        "template <class A, class B = int> struct Pair { static constexpr int n = 2; };\ntemplate <class T> struct Wrap { using type = T; };\n"
        "template <class W> __global__ void k25" + KERNEL
        + "template <template <class...> class C, class T> __global__ void k26" + OF_T.replace("2 *", "C<T>::n *"),
        """k25<Wrap<Wrap<float>>><<<G, 64>>>(X, Y, n); k25<Pair<int, Wrap<float> > ><<<G, 64>>>(X, Y, n); k26<Pair, float><<<G, 64>>>(X, Y, n);
           k25<Wrap<Pair<Wrap<int>>>> <<<G, Pair<Wrap<Wrap<int>>>::n * 32>>>(X, Y, n);""",
    ),
    "lambdas_and_packs": (
        "template <class F> __global__ void k27(int n, F f) { for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) f(i); }\n"
        "template <class F> void parallel_for(int n, F&& f) { k27<<<2, 64>>>(n, std::forward<F>(f)); }\n"
        "template <class... A> __global__ void k28(float* y, int n, A... a) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = (a[i] + ...); }\n",
        """k28<<<G, 64>>>(Y, n, X, X); k28<const float*, const float*><<<G, 64>>>(Y, n, X, X);
           parallel_for(n, [=] __device__ (int i) { Y[i] = X[i] * 2; }); auto f = [X, Y] __host__ __device__ (int i) mutable { Y[i] = 2 * X[i]; };
           k27<decltype(f)><<<1, 32>>>(n, f);""",
    ),
    "sizes_and_streams": (
        "using Index = int64_t;\n__global__ void k29(const float* x, float* y, unsigned n) { auto i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }\n",
        """Index m = n; const dim3 b{64}; dim3 g{(unsigned)G}; g.y = 1; size_t none = 0; k29<<<g, b>>>(X, Y, m); k29<<<{(unsigned)G, 1}, {64}>>>(X, Y, m);
           cudaStream_t s; cudaStreamCreate(&s); k29<<<g.x, 64u, none, s>>>(X, Y, m); cudaStreamSynchronize(s); cudaStreamDestroy(s);
           auto stream = at::cuda::getCurrentCUDAStream(); k29<<<std::min<int64_t>(1024, G), 64, 64 * sizeof(float), stream.stream()>>>(X, Y, (int)m);""",
    ),
    "preprocessor": (
        "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n#error newer than the T4 that is played\n#endif\n#ifdef NOT_DEFINED\n"
        "__global__ void k30(const double* x, double* y, int n) {\n#else\n__global__ void k30(const float* x, float* y, int n) {\n#endif\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }\n#if 0\n it's no code: k<<<1, 1>>>(\n#endif\n",
        "\n#ifdef __CUDACC__\n  k30<<<G, \\\n 64>>>(X, Y, n);\n#endif\n",
    ),
    "by_pointer_call": (
        "__global__ void k31" + KERNEL,
        "const float* a = X; void* arguments[] = {&a, &Y, &n}; cudaLaunchKernel((void*)k31, dim3(G), dim3(64), arguments, 0, 0); cudaLaunchKernel((const void*)&k31, G, 64, arguments, 0, nullptr);",
    ),
    "kernels_loops_over_the_grid": (
        "#define LOOP(i, n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)\n"
        "__global__ void k32(const float* x, float* y, const int n) { LOOP(i, n) { y[i] = x[i] * 2; } }\n",
        "k32<<<2, 33>>>(X, Y, n);",
    ),
}
SHARED_KERNEL = """__global__ void k{i}(const float* x, float* y, int n) {{
  {declare}
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t; float v = i < n ? x[i] : 0;
  {store} __syncthreads(); if (i < n) y[i] = 2 * ({load}); }}
"""
# How shared memory is declared: declaration, store of v by thread t, load.
SHARED = {
    "two_dimensions": ("__shared__ float s[8][8 + 1];", "s[t / 8][t % 8] = v;", "s[t / 8][t % 8]"),
    "several_declarators": ("__shared__ float a[64], b[8][8], c;", "a[t] = v; b[t / 8][t % 8] = v; if (t == 0) c = 1;", "(a[t] + b[t / 8][t % 8]) / 2 * c"),
    "alignment": (
        "__shared__ __align__(16) float a[64]; alignas(16) __shared__ float b[64]; float __shared__ __align__(16) c[64];",
        "a[t] = v; b[t] = v; c[t] = (size_t)a % 16 + (size_t)b % 16 + (size_t)c % 16;", "(a[t] + b[t]) / 2 + c[t]",
    ),
    "order_of_qualifiers": ("volatile __shared__ float a[64]; static __shared__ float b[64]; __shared__ volatile float c[64];", "a[t] = v; b[t] = v; c[t] = -v;", "a[t] + b[t] + c[t]"),
    "union_and_struct": (
        "__shared__ union { float f[64]; int i[64]; } u; struct P { float v; int k; }; __shared__ P p[64]; __shared__ struct { float low[32], high[32]; } s;",
        "u.i[t] = __float_as_int(v); p[t].v = v; (t < 32 ? s.low[t] : s.high[t - 32]) = -v;", "u.f[t] + p[t].v + (t < 32 ? s.low[t] : s.high[t - 32])",
    ),
    "vectors": ("__shared__ float4 q[16]; __shared__ bool last; __shared__ double one;", "((float*)q)[t] = v; if (t == 0) { last = true; one = 1; }", "((float*)q)[t] * (last ? one : 0)"),
    "dynamic": ("extern __shared__ float d[];", "d[t] = v;", "d[t]"),
    "dynamic_of_another_type": ("extern __shared__ double d[];", "d[t] = v;", "(float)d[t]"),
    "dynamic_volatile": ("extern volatile __shared__ float d[]; alignas(16) extern __shared__ float e[];", "d[t] = v;", "e[t]"),
    "dynamic_rows": ("extern __shared__ float d[][8];", "d[t / 8][t % 8] = v;", "d[t / 8][t % 8]"),
    "dynamic_carved": ("float* a = (float*)everywhere; int* b = (int*)&a[64];", "a[t] = v; b[t] = t;", "a[b[t]]"),
    "at_namespace_scope": ("", "for_all[t] = v; if (t == 0) count_of_all = 2;", "for_all[t] * count_of_all / 2"),
    "through_a_function": ("", "through(nullptr)[t] = v;", "through(nullptr)[t]"),
}
SHARED_HEAD = """extern __shared__ char everywhere[];
__shared__ float for_all[64];
static __shared__ int count_of_all;
__device__ float* through(char* everywhere) { extern __shared__ float mine[]; return everywhere ? nullptr : mine; }
template <class T, int N> __global__ void sized(const float* x, float* y, int n) {
  __shared__ T s[N / 8][8]; int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t / 8][t % 8] = i < n ? x[i] : 0; __syncthreads(); if (i < n) y[i] = 2 * s[t / 8][t % 8]; }
"""


def _source():
    text, names = '#include <torch/extension.h>\n#include <cuda_runtime.h>\n#include <ATen/ATen.h>\n' + SHARED_HEAD, []

    def host(name, body):
        nonlocal text
        names.append(name)
        text += (
            f"torch::Tensor {name}(torch::Tensor x) {{\n  auto y = torch::full_like(x, NAN); int n = x.numel(); const int G = (n + 63) / 64;\n"
            f"  auto X = x.data_ptr<float>(), Y = y.data_ptr<float>(); (void)X; (void)Y; (void)G;\n  {body}\n  return y;\n}}\n"
        )

    for name, (before, body) in FORMS.items():
        text += before
        host(name, body)
    for i, (name, (declare, store, load)) in enumerate(SHARED.items(), 100):
        text += SHARED_KERNEL.format(i=i, declare=declare, store=store, load=load)
        host(name, f"k{i}<<<G, 64, 1024>>>(X, Y, n);")
    # Four instances of 16 to 48 KiB each, and one with much dynamic memory: the limit is for one of them at a time.
    host("many_sizes", "sized<float, 4096><<<G, 64>>>(X, Y, n); sized<double, 4096><<<G, 64>>>(X, Y, n); sized<float, 12288><<<G, 64>>>(X, Y, n); sized<float, 64><<<G, 64, 40000>>>(X, Y, n);")
    return text, names


@pytest.fixture(scope="module")
def forms():
    text, names = _source()
    return simt.load_inline("test_launch", "\n".join(f"torch::Tensor {n}(torch::Tensor x);" for n in names), text, functions=names)


@pytest.mark.parametrize("form", [*FORMS, *SHARED, "many_sizes"])
def test_a_form_doubles_its_input(forms, form):
    """Does each way to write a launch or shared memory build together with all others, and compute?"""
    x = torch.randn(1000)
    assert torch.equal(getattr(forms, form)(x), 2 * x)


# ---- device code ----

DEVICE = r"""
#include <torch/extension.h>
#include <cuda_fp16.h>
__constant__ float w[9]; __constant__ float rows[3][3]; static __constant__ int whole; __constant__ struct { float a; int b; } both;
__constant__ float table[4] = {1, 2, 3, 4}; const __constant__ float fixed[2] = {2.f, 3.f};
__device__ float number; __device__ int seen = 0; __device__ const float three = 3.0f; __managed__ int shared_with_host = 7;
constexpr float two = 2.f; __device__ constexpr int lut[3] = {0, 1, 2}; static constexpr int other[] = {2, 3};
__host__ __device__ inline float twice(float v) { return 2 * v; }
__device__ __forceinline__ float f1(float v) { return v; } static __device__ __forceinline__ float f2(float v) { return v; }
__device__ inline __forceinline__ float f3(float v) { return v; } __noinline__ __device__ float f4(float v) { return v; } __inline__ __device__ float f5(float v) { return v; }
__device__ int factorial(int n) { return n <= 1 ? 1 : n * factorial(n - 1); }
template <class T> __device__ T same(T v) { return v; }
template <> __device__ float same<float>(float v) { return v; }
class Sum { float v_; public: __host__ __device__ Sum(float v = 0) : v_(v) {} __device__ Sum operator+(const Sum& o) const { return Sum(v_ + o.v_); } __device__ Sum& operator+=(float f) { v_ += f; return *this; } __device__ float get() const; };
__device__ float Sum::get() const { return v_; }
__device__ float2 operator*(float2 a, float b) { return make_float2(a.x * b, a.y * b); }
struct Base { __device__ virtual float run(float v) const { return v; } };
struct Derived : Base { __device__ float run(float v) const override { return 2 * v; } };
typedef float (*Function)(float); __device__ float doubled(float v) { return 2 * v; } __device__ Function pointer = doubled;
struct __align__(16) Four { float v[4]; };
__global__ void all(const float* x, float* out, int n) {
  int i = threadIdx.x; float v = x[i]; auto plus = [&](float a) { return a + v; }; auto same_here = [] __device__ (float a) { return a; };
  Sum s = Sum(v) + Sum(v); s += 0; Derived d; const Base* b = &d; Four four = {v, v, v, v}; atomicAdd(&seen, 1);
  const float results[] = {w[4] * v, rows[1][1] * v, whole * v, both.b * v, table[1] * v, fixed[0] * v, number * v, (three - 1) * v, two * v, lut[2] * v,
                           other[0] * v, twice(v), f1(f2(f3(f4(f5(2 * v))))), factorial(2) * v, same(2 * v), s.get(), (make_float2(v, 1) * 2.f).x,
                           b->run(v), pointer(v), plus(same_here(v)), four.v[0] + four.v[3], (shared_with_host - 5) * v};
  for (int k = 0; k < sizeof(results) / sizeof(float); k++) out[k * n + i] = results[k];
}
torch::Tensor run(torch::Tensor x) {
  float nine[9] = {1, 1, 1, 1, 2, 1, 1, 1, 1}; int two_ = 2; float number_ = 2; int none = 0;
  cudaMemcpyToSymbol(w, nine, sizeof(nine)); cudaMemcpyToSymbol(rows, nine, 9 * sizeof(float)); cudaMemcpyToSymbol(whole, &two_, sizeof(int));
  cudaMemcpyToSymbol(both, &two_, sizeof(int), offsetof(decltype(both), b)); cudaMemcpyToSymbol(number, &number_, sizeof(float)); cudaMemcpyToSymbol(seen, &none, sizeof(int));
  auto out = torch::full({22, x.numel()}, NAN); int n = x.numel();
  all<<<1, n>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
  int counted = 0; cudaMemcpyFromSymbol(&counted, seen, sizeof(int)); TORCH_CHECK(counted == n, "counted ", counted);
  return out;
}
"""


def test_device_code_of_every_kind():
    """Do constants, globals, tables, recursion, classes, operators, virtual calls and pointers to functions work on the device?"""
    x = torch.randn(100)
    out = simt.load_inline("test_device", "torch::Tensor run(torch::Tensor x);", DEVICE, functions=["run"]).run(x)
    assert torch.equal(out, (2 * x).expand(22, 100))


# ---- whole kernels, in the shapes that courses and benchmarks use ----

WHOLE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda.h>
#include <cfloat>
#define WARP 32
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
#define FLOAT4(value) (reinterpret_cast<float4*>(&(value))[0])
#define CUDA_CHECK(call) do { cudaError_t e = call; if (e != cudaSuccess) { fprintf(stderr, "%s at %d\n", cudaGetErrorString(e), __LINE__); exit(1); } } while (0)

template <typename T> __device__ __forceinline__ T warp_max(T v) {
#pragma unroll
  for (int mask = WARP >> 1; mask > 0; mask >>= 1) v = max(v, __shfl_xor_sync(0xffffffff, v, mask, WARP));
  return v;
}
template <typename T> __inline__ __device__ T block_sum(T v) {
  static __shared__ T part[32];
  int lane = threadIdx.x & 0x1f, warp = threadIdx.x >> 5;
  for (int offset = warpSize / 2; offset > 0; offset /= 2) v += __shfl_down_sync(~0u, v, offset);
  if (lane == 0) part[warp] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / 32.f ? part[lane] : (T)0.0f;
  if (warp == 0) for (int offset = 16; offset; offset >>= 1) v += __shfl_down_sync(~0u, v, offset);
  return v;
}
template <typename scalar_t> __global__ void softmax_kernel(const scalar_t* __restrict__ in, scalar_t* __restrict__ out, const int cols) {
  const scalar_t* x = in + (size_t)blockIdx.x * cols; auto* y = &out[blockIdx.x * cols];
  __shared__ float s_max, s_sum; __shared__ float red[WARP];
  float m = -INFINITY;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) m = fmaxf(m, static_cast<float>(x[i]));
  m = warp_max(m);
  if (threadIdx.x % WARP == 0) red[threadIdx.x / WARP] = m;
  __syncthreads();
  if (threadIdx.x < WARP) { float v = threadIdx.x < blockDim.x / WARP ? red[threadIdx.x] : -FLT_MAX; v = warp_max(v); if (threadIdx.x == 0) s_max = v; }
  __syncthreads();
  float sum = 0.f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += __expf((float)x[i] - s_max);
  sum = block_sum(sum);
  if (!threadIdx.x) s_sum = sum;
  __syncthreads();
  for (int i = threadIdx.x; i < cols; i += blockDim.x) y[i] = (scalar_t)(__expf((float)x[i] - s_max) / s_sum);
}
torch::Tensor softmax(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda() && x.dim() == 2, "x must be 2-D and on the GPU");
  auto y = torch::empty_like(x); cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "softmax", ([&] {
    softmax_kernel<scalar_t><<<x.size(0), 256, 0, stream>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.size(1)); }));
  AT_CUDA_CHECK(cudaGetLastError());
  return y;
}

template <const int BM, const int BN, const int BK, const int TM>
__global__ void __launch_bounds__((BM * BN) / TM, 2) gemm_kernel(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C) {
  __shared__ float As[BM * BK]; __shared__ float Bs[BK * BN];
  const uint col = threadIdx.x % BN, row = threadIdx.x / BN;
  A += blockIdx.y * BM * K; B += blockIdx.x * BN; C += blockIdx.y * BM * N + blockIdx.x * BN;
  assert(BM * BK == blockDim.x);
  float sums[TM] = {0.0};
  for (uint k = 0; k < K; k += BK, A += BK, B += BK * N) {
    As[threadIdx.x] = A[threadIdx.x / BK * K + threadIdx.x % BK];
    Bs[threadIdx.x] = B[threadIdx.x / BN * N + threadIdx.x % BN];
    __syncthreads();
    for (uint dot = 0; dot < BK; ++dot) for (uint r = 0; r < TM; ++r) sums[r] += As[(row * TM + r) * BK + dot] * Bs[dot * BN + col];
    __syncthreads();
  }
  for (uint r = 0; r < TM; ++r) { float& c = C[(row * TM + r) * N + col]; c = alpha * sums[r] + beta * c; }
}
torch::Tensor gemm(torch::Tensor A, torch::Tensor B) {
  int M = A.size(0), K = A.size(1), N = B.size(1);
  auto C = torch::zeros({M, N}, torch::TensorOptions().dtype(A.dtype()).device(A.device()));
  const uint BM = 64, BN = 64, BK = 8, TM = 8;
  dim3 gridDim(CEIL_DIV(N, BN), CEIL_DIV(M, BM)); dim3 blockDim((BM * BN) / TM);
  gemm_kernel<BM, BN, BK, TM><<<gridDim, blockDim>>>(M, N, K, 1.0f, A.data_ptr<float>(), B.data_ptr<float>(), 0.0f, C.data_ptr<float>());
  return C;
}

__constant__ float d_mask[9 * 9];
template <int R> __global__ void conv_kernel(const float* in, float* out, int H, int W) {
  constexpr int T = 16; __shared__ float tile[T + 2 * R][T + 2 * R];
  int x = blockIdx.x * T + threadIdx.x, y = blockIdx.y * T + threadIdx.y;
  for (int dy = threadIdx.y; dy < T + 2 * R; dy += T)
    for (int dx = threadIdx.x; dx < T + 2 * R; dx += T) {
      int iy = blockIdx.y * T + dy - R, ix = blockIdx.x * T + dx - R;
      tile[dy][dx] = iy >= 0 && iy < H && ix >= 0 && ix < W ? in[iy * W + ix] : 0.0f;
    }
  __syncthreads();
  if (x >= W || y >= H) return;
  float sum = 0;
  for (int i = 0; i <= 2 * R; i++) for (int j = 0; j <= 2 * R; j++) sum += tile[threadIdx.y + i][threadIdx.x + j] * d_mask[i * (2 * R + 1) + j];
  out[y * W + x] = sum;
}
torch::Tensor conv(torch::Tensor x, torch::Tensor mask) {
  CUDA_CHECK(cudaMemcpyToSymbol(d_mask, mask.contiguous().data_ptr<float>(), mask.numel() * sizeof(float)));
  auto y = torch::empty_like(x); int H = x.size(0), W = x.size(1); dim3 block(16, 16), grid(CEIL_DIV(W, 16), CEIL_DIV(H, 16));
  switch (mask.size(0)) {
    case 3: conv_kernel<1><<<grid, block>>>(x.data_ptr<float>(), y.data_ptr<float>(), H, W); break;
    case 5: conv_kernel<2><<<grid, block>>>(x.data_ptr<float>(), y.data_ptr<float>(), H, W); break;
    default: TORCH_CHECK(false, "no kernel for size ", mask.size(0));
  }
  return y;
}

__global__ void attention_kernel(const float* Q, const float* K, const float* V, int N, int d, float scale, float* O) {
  extern __shared__ float sram[]; float* Kj = sram; float* Vj = &sram[32 * d]; float* S = &sram[32 * d * 2];
  const int t = threadIdx.x, base = (blockIdx.x * gridDim.y + blockIdx.y) * N * d, row = base + (blockIdx.z * 32 + t) * d;
  float m = -INFINITY, l = 0;
  for (int j = 0; j < N / 32; j++) {
    for (int x = 0; x < d; x++) { Kj[t * d + x] = K[base + (j * 32 + t) * d + x]; Vj[t * d + x] = V[base + (j * 32 + t) * d + x]; }
    __syncthreads();
    float best = m;
    for (int y = 0; y < 32; y++) { float s = 0; for (int x = 0; x < d; x++) s += Q[row + x] * Kj[y * d + x]; S[t * 33 + y] = s * scale; best = max(best, s * scale); }
    const float old = expf(m - best); l *= old; m = best;
    for (int x = 0; x < d; x++) O[row + x] *= old;
    for (int y = 0; y < 32; y++) { const float p = __expf(S[t * 33 + y] - m); l += p; for (int x = 0; x < d; x++) O[row + x] += p * Vj[y * d + x]; }
    __syncthreads();
  }
  for (int x = 0; x < d; x++) O[row + x] /= l;
}
torch::Tensor attention(torch::Tensor Q, torch::Tensor K, torch::Tensor V) {
  const int B = Q.size(0), H = Q.size(1), N = Q.size(2), d = Q.size(3); auto O = torch::zeros_like(Q);
  const int bytes = (2 * 32 * d + 32 * 33) * sizeof(float); int most; cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlock, 0); TORCH_CHECK(bytes <= most);
  attention_kernel<<<dim3(B, H, N / 32), 32, bytes>>>(Q.data_ptr<float>(), K.data_ptr<float>(), V.data_ptr<float>(), N, d, 1.0 / sqrt(d), O.data_ptr<float>());
  return O;
}

__global__ void relu4_kernel(float* x, float* y, int N) {
  int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i < N) { float4 v = FLOAT4(x[i]); v.x = fmaxf(0.0f, v.x); v.y = fmaxf(0.0f, v.y); v.z = fmaxf(0.0f, v.z); v.w = fmaxf(0.0f, v.w); FLOAT4(y[i]) = v; }
}
torch::Tensor relu4(torch::Tensor x) {
  float *in, *out; size_t bytes = x.numel() * sizeof(float); CUDA_CHECK(cudaMalloc((void**)&in, bytes)); CUDA_CHECK(cudaMalloc(&out, bytes));
  cudaMemcpy(in, x.data_ptr<float>(), bytes, cudaMemcpyHostToDevice);
  relu4_kernel<<<CEIL_DIV(x.numel() / 4, 64), 64>>>(in, out, x.numel()); CUDA_CHECK(cudaDeviceSynchronize());
  auto y = torch::empty_like(x); cudaMemcpy(y.data_ptr<float>(), out, bytes, cudaMemcpyDeviceToHost); cudaFree(in); cudaFree(out);
  return y;
}

template <typename scalar_t> __global__ void rows_kernel(const torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> x, torch::PackedTensorAccessor32<scalar_t, 1> sums) {
  scalar_t sum = 0; for (int j = 0; j < x.size(1); j++) sum += x[blockIdx.x][j]; sums[blockIdx.x] = sum;
}
torch::Tensor rows(torch::Tensor x) {
  auto sums = torch::empty({x.size(0)}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rows", [&] { rows_kernel<scalar_t><<<x.size(0), 1>>>(x.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>(), sums.packed_accessor32<scalar_t, 1>()); });
  return sums;
}
"""
HEADS = [m + ";" for m in re.findall(r"^torch::Tensor \w+\([^)]*\)", WHOLE, re.MULTILINE)]


@pytest.fixture(scope="module")
def whole():
    return simt.load_inline("test_whole", "\n".join(HEADS), WHOLE, functions=[h.split("(")[0].split()[1] for h in HEADS])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_softmax_with_shuffles(whole, dtype):
    """Does a softmax of warp shuffles and a static array inside a device function agree with torch?"""
    x = torch.randn(8, 1000).to(dtype)
    torch.testing.assert_close(whole.softmax(x), x.softmax(1), atol=1e-5, rtol=1e-3 if dtype == torch.float16 else 1e-5)


def test_blocktiled_matmul(whole):
    """Does a matmul in tiles, with variables called gridDim and blockDim on the host, agree with torch?"""
    a, b = torch.randn(128, 64), torch.randn(64, 192)
    torch.testing.assert_close(whole.gemm(a, b), a @ b, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("size", [3, 5])
def test_convolution_with_constant_mask(whole, size):
    """Does a tiled convolution with its mask in constant memory agree with torch?"""
    x, mask = torch.randn(37, 50), torch.randn(size, size)
    torch.testing.assert_close(whole.conv(x, mask), F.conv2d(x[None, None], mask[None, None], padding=size // 2)[0, 0], atol=1e-4, rtol=1e-4)


def test_attention_with_carved_shared_memory(whole):
    """Does attention in blocks, with three arrays carved out of one, agree with torch?"""
    q, k, v = (torch.randn(2, 3, 64, 16) for _ in range(3))
    torch.testing.assert_close(whole.attention(q, k, v), F.scaled_dot_product_attention(q, k, v), atol=1e-4, rtol=1e-3)


def test_vector_loads_and_own_memory(whole):
    """Does a kernel on float4, on memory from cudaMalloc, agree with torch?"""
    x = torch.randn(1024)
    assert torch.equal(whole.relu4(x), x.relu())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_accessors_of_tensors_that_are_not_contiguous(whole, dtype):
    """Do packed accessors follow strides?"""
    x = torch.randn(30, 20).to(dtype).t()
    torch.testing.assert_close(whole.rows(x), x.sum(1))


# ---- between Python and C++ ----

VALUES = r"""
#include <torch/extension.h>
std::tuple<torch::Tensor, torch::Tensor> pair(torch::Tensor x) { return {x * 2, 1 - x}; }
std::vector<torch::Tensor> list(std::vector<torch::Tensor> xs, at::TensorList ys, const std::vector<int64_t>& n) { return {xs[0] * 2, ys[0] + n[1]}; }
double numbers(double s, bool minus, const std::string& mode, int64_t k, float f) { return (minus ? -s : s) + k + f + (mode == "a"); }
std::string text(std::string_view s) { return std::string(s) + "!"; }
torch::Tensor optionals(torch::Tensor x, torch::optional<torch::Tensor> b, std::optional<double> s) { if (b.has_value()) x = x + *b; if (s) x = x * *s; return x; }
torch::Tensor options(const torch::Tensor& x, at::IntArrayRef size, torch::ScalarType type, c10::Device device) { return x.reshape(size).to(type).to(device); }
torch::Tensor scalar(torch::Tensor& x, const at::Scalar& s) { return x.mul(s); }
void in_place(torch::Tensor x) { x.mul_(2); }
std::tuple<int, float, std::string, bool> mixed(std::tuple<int, double> a, std::array<int64_t, 2> b) { return {std::get<0>(a), std::get<1>(a), "q", b[1] > b[0]}; }
int64_t byte(uint8_t n) { return n; }
at::Tensor undefined() { return at::Tensor(); }
std::vector<std::vector<int64_t>> shapes(torch::Tensor x) { return {x.sizes().vec(), x.strides().vec()}; }
torch::Tensor fails(torch::Tensor x, int64_t how) {
  switch (how) {
    case 0: TORCH_CHECK(x.dim() == 2, "x has ", x.dim(), " dimensions");
    case 1: throw std::invalid_argument("bad value");
    case 2: throw std::out_of_range("bad index");
    case 3: TORCH_CHECK_INDEX(false, "bad index");
    case 4: TORCH_CHECK_TYPE(false, "bad type");
    case 5: TORCH_CHECK_VALUE(false, "bad value");
    case 6: return x.view({-1, 7});
    case 7: x.data_ptr<double>();
    case 8: assert(how == 9);
    case 9: AT_DISPATCH_INTEGRAL_TYPES(x.scalar_type(), "fails_of_type", [&] {});
    case 10: throw 3;
  }
  return x;
}
"""
VALUE_HEADS = [m + ";" for m in re.findall(r"^(?!#|\s)[^\n{]*\([^\n]*?\)(?= \{)", VALUES, re.MULTILINE)]


@pytest.fixture(scope="module")
def values():
    names = [re.search(r"(\w+)\(", h)[1] for h in VALUE_HEADS]
    return simt.load_inline("test_values", "\n".join(VALUE_HEADS), VALUES, functions=names)


def test_values_go_both_ways(values):
    """Do tensors, numbers, strings, lists, tuples, optionals, dtypes and devices arrive as what they are?"""
    x = torch.randn(6)
    double, less = values.pair(x)
    assert torch.equal(double, 2 * x) and torch.equal(less, 1 - x)
    assert [torch.equal(a, b) for a, b in zip(values.list([x], (x,), [1, 2]), [2 * x, x + 2])] == [True, True]
    assert values.numbers(1.5, True, "a", 3, 1) == 3.5 and values.numbers(torch.tensor(2.0), 0, "b", True, 0) == 3.0
    assert values.text("hä") == "hä!"
    assert torch.equal(values.optionals(x, None, None), x) and torch.equal(values.optionals(x, x, 0.5), x)
    y = values.options(x, [2, 3], torch.float64, "cpu")
    assert y.shape == (2, 3) and y.dtype == torch.float64
    assert torch.equal(values.scalar(x, 3), 3 * x) and torch.equal(values.scalar(x, 2.5), 2.5 * x)
    assert values.mixed((1, 2.5), [3, 4]) == (1, 2.5, "q", True)
    assert values.undefined() is None and values.shapes(x.view(2, 3)) == [[2, 3], [3, 1]]
    z = x.clone()
    assert values.in_place(z) is None and torch.equal(z, 2 * x)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda v, x: v.pair(), r"pair\(\): takes 1 argument, but got 0"),
        (lambda v, x: v.pair(x, x), "takes 1 argument, but got 2"),
        (lambda v, x: v.pair([x]), "argument 1 should be a Tensor, not a list"),
        (lambda v, x: v.pair(None), "argument 1 should be a Tensor, not None"),
        (lambda v, x: v.fails(x, 1.5), "argument 2 should be an int, not a float"),
        (lambda v, x: v.fails(x, "1"), "argument 2 should be an int, not a str"),
        (lambda v, x: v.byte(300), "does not fit the C\\+\\+ type: 300"),
        (lambda v, x: v.byte(-1), "does not fit the C\\+\\+ type: -1"),
        (lambda v, x: v.byte(1 << 70), "does not fit in 64 bits"),
        (lambda v, x: v.byte({}), "argument 1 is dict"),
        (lambda v, x: v.mixed((1,), [1, 2]), "should be a tuple of 2"),
        (lambda v, x: v.pair(x, nothing=1), "has no parameter named nothing"),
    ],
)
def test_wrong_arguments_are_named(values, call, words):
    """Does a wrong number or type of arguments give a TypeError that names the function and the argument?"""
    with pytest.raises(TypeError, match=words):
        call(values, torch.zeros(3))


@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        (0, RuntimeError, "x has 1 dimensions"), (1, ValueError, "bad value"), (2, IndexError, "bad index"), (3, IndexError, "bad index"),
        (4, TypeError, "bad type"), (5, ValueError, "bad value"), (6, RuntimeError, "invalid for input of size 3"),
        (7, RuntimeError, "expected scalar type Double"), (8, RuntimeError, "how == 9"), (9, NotImplementedError, "fails_of_type.*not implemented for 'Float'"),
        (10, RuntimeError, "threw"),
    ],
)  # fmt: skip
def test_exceptions_of_the_host_reach_python(values, how, kind, words):
    """Does each exception of host code become the one that torch's own binding makes, without a C++ backtrace?"""
    with pytest.raises(kind, match=words) as caught:
        values.fails(torch.zeros(3), how)
    assert "Exception raised from" not in str(caught.value) and type(caught.value) is kind


def test_the_newest_launches_are_kept_in_order_until_they_are_taken():
    """Name, grid and block of each launch, of many the last 16, and none of one that was refused?"""
    source = """
    template <class T> __global__ void tk(T* y) {}
    __global__ void plain(float* y) {}
    void run(torch::Tensor y, int64_t n) {
      for (int i = 0; i < n; ++i) plain<<<i + 1, dim3(4, 2, 1)>>>(y.data_ptr<float>());
      tk<float><<<3, 5>>>(y.data_ptr<float>());
      tk<float><<<0, 5>>>(y.data_ptr<float>());
      cudaGetLastError();
    }"""
    module = simt.load_inline("log_of_launches", "void run(torch::Tensor y, int64_t n);", source, functions=["run"])
    simt.take_launches()
    module.run(torch.zeros(64), 2)
    assert simt.take_launches() == [("plain", (1, 1, 1), (4, 2, 1)), ("plain", (2, 1, 1), (4, 2, 1)), ("tk", (3, 1, 1), (5, 1, 1))]
    assert simt.take_launches() == []
    module.run(torch.zeros(64), 40)
    newest = simt.take_launches()
    assert len(newest) == 16 and [grid[0] for _, grid, _ in newest] == [*range(26, 41), 3]


def test_arguments_of_kernelbench():
    """Does the call that KernelBench's examples make, with empty strings among the flags, work and forget nvcc's flags?"""
    source = "__global__ void k(float* x) { x[threadIdx.x] += VALUE; }\nvoid f(torch::Tensor x) { k<<<1, x.numel()>>>(x.data_ptr<float>()); }\n"
    module = simt.load_inline(
        name="test_kernelbench", cpp_sources="void f(torch::Tensor x);", cuda_sources=source, functions=["f"], verbose=False, with_cuda=True,
        extra_cflags=["", "-O3"], extra_ldflags=["", "-lcudart", "-lm"],
        extra_cuda_cflags=["-O3", "--use_fast_math", "-gencode", "arch=compute_80,code=sm_80", "-DVALUE=3", "--expt-relaxed-constexpr", "-std=c++17"],
    )  # fmt: skip
    x = torch.zeros(4)
    module.f(x)
    assert x.tolist() == [3.0] * 4
