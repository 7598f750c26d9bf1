"""Ways to write launches and shared memory that nvcc takes: do they build, and do what they say?"""

import pytest
import torch

import simt

# A form: what stands before the host function, and what the host function does. Each doubles n floats, from X to Y,
# in blocks of 64 threads.
KERNEL = (
    "(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }\n"
)
OF_T = KERNEL.replace("float", "T")
FORMS = {
    "explicit_arguments": ("template <class T, int B> __global__ void k1" + OF_T, "k1<float, 64><<<G, 64>>>(X, Y, n);"),
    "deduced_arguments": ("template <class T> __global__ void k2" + OF_T, "k2<<<G, 64>>>(X, Y, n);"),
    "partly_explicit": ("template <int B, class T> __global__ void k3" + OF_T, "k3<64><<<G, 64, 0>>>(X, Y, n);"),
    "computed_arguments": (
        "constexpr int half_of(int n) { return n / 2; }\n"
        "template <int N, bool B> __global__ void k4(const float* x, float* y, int n) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = B ? N * x[i] : 0; }\n",
        "constexpr int W = 4; k4<half_of(W), (W > 3)><<<G, 64>>>(X, Y, n); "
        "k4<(W >> 1), (W >= 3)><<<G, 64, 0, 0>>>(X, Y, n);",
    ),
    "default_template_arguments": (
        "template <class T = float> __global__ void k5" + OF_T,
        "k5<><<<G, 64>>>(X, Y, n); k5<<<G, 64>>>(X, Y, n);",
    ),
    "default_parameters": (
        "__global__ void k6(const float* x, float* y, int n, float a = 2, bool on = true) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n && on) y[i] = a * x[i]; }\n",
        "k6<<<G, 64>>>(X, Y, n); k6<<<G, 64>>>(X, Y, n, 2.0);",
    ),
    "namespaces": (
        "namespace a { namespace b { __global__ void k7"
        + KERNEL
        + "} template <class T> __global__ void k8"
        + OF_T
        + "}\n"
        "namespace { __global__ void k9" + KERNEL + "}\n"
        "static void also(const float* x, float* y, int n) { if (n < 0) return ::a::k8<<<1, 1>>>(x, y, n); "
        "else ::a::b::k7<<<(n + 63) / 64, 64>>>(x, y, n); }\n",
        "a::b::k7<<<G, 64>>>(X, Y, n); ::a::k8<float><<<G, 64>>>(X, Y, n); k9<<<G, 64>>>(X, Y, n); also(X, Y, n); "
        "{ using namespace a; k8<<<G, 64>>>(X, Y, n); }",
    ),
    "structs_and_pointers_to_pointers": (
        "struct View { const float* x; float* y; int n; float spare[4]; };\n"
        "struct Twice { __device__ float operator()(float v) const { return 2 * v; } };\n"
        "template <class O> __global__ void k10(View v, O op) { int i = blockIdx.x * blockDim.x + threadIdx.x; "
        "if (i < v.n) v.y[i] = op(v.x[i]); }\n"
        "__global__ void k11(const View v, float* const* rows) { int i = blockIdx.x * blockDim.x + threadIdx.x; "
        "if (i < v.n) rows[0][i] = 2 * v.x[i]; }\n",
        "View v{X, Y, n}; k10<<<G, 64>>>(v, Twice()); k10<Twice><<<G, 64>>>(v, {}); float* row = Y; "
        "k11<<<G, 64>>>({X, Y, n}, &row);",
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
        "  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; "
        "if (i < n) y[i] = x[at[i]] * static_cast<T>(2); }\n",
        """auto at = torch::empty({n}, x.options().dtype(torch::kInt)); """
        """for (int i = 0; i < n; i++) at.data_ptr<int>()[i] = i;
           AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "a", """
        """[&] { AT_DISPATCH_INDEX_TYPES(at.scalar_type(), "b", ([&] {
             k13<scalar_t, index_t><<<G, 64, 0, at::cuda::getCurrentCUDAStream()>>>(
               x.data_ptr<scalar_t>(), at.data_ptr<index_t>(), y.data_ptr<scalar_t>(), x.numel()); })); });""",
    ),
    "macros": (
        "#define GO(kernel, ...) kernel<<<G, 64>>>(__VA_ARGS__)\n"
        "#define GO_OF(T, N) \\\n  k14<T, \\\n    N><<<G, \\\n  64>>>( \\\n  X, Y, n); \\\n"
        "  C10_CUDA_KERNEL_LAUNCH_CHECK()\n"
        "template <class T, int N> __global__ void k14" + OF_T + "__global__ void k15" + KERNEL,
        "GO_OF(float, 3); GO((k14<float, 2>), X, Y, n); GO(k15, X, Y, n);",
    ),
    "macros_of_a_configuration": (
        "#ifdef __INTELLISENSE__\n#define SIZES(grid, block)\n#else\n#define SIZES(grid, block) <<<grid, block>>>\n"
        "#endif\n#define LOTS /* of threads */ <<<dim3(G, 1), \\\n  64, 0>>>\n"
        "__global__ void k15a" + KERNEL + "template <class T, int N> __global__ void k15b" + OF_T,
        "k15a SIZES(G, 64)(X, Y, n); k15b<float, 3> SIZES (dim3(G, 1), 64) (X, Y, n); k15a LOTS(X, Y, n);",
    ),
    "pointers_to_kernels": (
        "template <class T> __global__ void k16"
        + OF_T
        + "__global__ void k17"
        + KERNEL
        + "using Pointer = void (*)(const float*, float*, int);\n",
        """auto p = &k16<float>; p<<<G, 64>>>(X, Y, n); Pointer all[] = {k16<float>, k17}; all[1]<<<G, 64>>>(X, Y, n);
           (n > 3 ? k16<float> : k17)<<<G, 64>>>(X, Y, n); (*p)<<<G, 64>>>(X, Y, n); struct { Pointer run; } o{k17}; """
        """o.run<<<G, 64>>>(X, Y, n);""",
    ),
    "branches_without_braces": (
        "static __global__ void k18" + KERNEL + 'extern "C" __global__ void k19' + KERNEL,
        "if (n > 3) k18<<<G, 64>>>(X, Y, n); else k19<<<1, 1>>>(X, Y, 0); "
        "for (int r = 0; r < 2; r++) k19<<<G, 64>>>(X, Y, n); "
        "n > 3 ? k18<<<G, 64>>>(X, Y, n) : k19<<<1, 1>>>(X, Y, n);",
    ),
    "bounds_before_and_after": (
        "#define BS 64\n__global__ void __launch_bounds__(64) k20"
        + KERNEL
        + "__launch_bounds__(BS, 2) __global__ void k21"
        + KERNEL
        + "template <class T> __launch_bounds__(BS) __global__ void k22"
        + OF_T,
        "k20<<<G, 64>>>(X, Y, n); k21<<<G, 64>>>(X, Y, n); k22<float><<<G, 64>>>(X, Y, n); k22<<<G, 64>>>(X, Y, n);",
    ),
    "overloads_and_declarations": (
        "__global__ void k23(const float* x, float* y, int n);\n"
        "__global__ void k23(const float* x, double* y, int n);\n"
        "static void ahead(const float* x, float* y, int n) { k23<<<(n + 63) / 64, 64>>>(x, y, n); }\n"
        "__global__ void k23" + KERNEL + "__global__ void k23" + KERNEL.replace("float* y", "double* y"),
        "ahead(X, Y, n);",
    ),
    "null_pointers": (
        "template <class T> __global__ void k24(const T* x, T* y, const float* bias, int n) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i] + (bias ? bias[0] : 0); }\n",
        "k24<<<G, 64>>>(X, Y, NULL, n); k24<<<G, 64>>>(X, Y, nullptr, n); k24<<<G, 64>>>(X, Y, 0, n); "
        "k24<float><<<G, 64>>>(X, Y, 0, n);",
    ),
    "nested_templates": (
        "template <class A, class B = int> struct Pair { static constexpr int n = 2; };\n"
        "template <class T> struct Wrap { using type = T; };\n"
        "template <class W> __global__ void k25"
        + KERNEL
        + "template <template <class...> class C, class T> __global__ void k26"
        + OF_T.replace("2 *", "C<T>::n *"),
        """k25<Wrap<Wrap<float>>><<<G, 64>>>(X, Y, n); k25<Pair<int, Wrap<float> > ><<<G, 64>>>(X, Y, n); """
        """k26<Pair, float><<<G, 64>>>(X, Y, n);
           k25<Wrap<Pair<Wrap<int>>>> <<<G, Pair<Wrap<Wrap<int>>>::n * 32>>>(X, Y, n);""",
    ),
    "lambdas_and_packs": (
        "template <class F> __global__ void k27(int n, F f) { "
        "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) f(i); }\n"
        "template <class F> void parallel_for(int n, F&& f) { k27<<<2, 64>>>(n, std::forward<F>(f)); }\n"
        "template <class... A> __global__ void k28(float* y, int n, A... a) { "
        "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = (a[i] + ...); }\n",
        """k28<<<G, 64>>>(Y, n, X, X); k28<const float*, const float*><<<G, 64>>>(Y, n, X, X);
           parallel_for(n, [=] __device__ (int i) { Y[i] = X[i] * 2; }); """
        """auto f = [X, Y] __host__ __device__ (int i) mutable { Y[i] = 2 * X[i]; };
           k27<decltype(f)><<<1, 32>>>(n, f);""",
    ),
    "sizes_and_streams": (
        "using Index = int64_t;\n__global__ void k29(const float* x, float* y, unsigned n) { "
        "auto i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }\n",
        """Index m = n; const dim3 b{64}; dim3 g{(unsigned)G}; g.y = 1; size_t none = 0; k29<<<g, b>>>(X, Y, m); """
        """k29<<<{(unsigned)G, 1}, {64}>>>(X, Y, m);
           cudaStream_t s; cudaStreamCreate(&s); k29<<<g.x, 64u, none, s>>>(X, Y, m); cudaStreamSynchronize(s); """
        """cudaStreamDestroy(s);
           auto stream = at::cuda::getCurrentCUDAStream(); """
        """k29<<<std::min<int64_t>(1024, G), 64, 64 * sizeof(float), stream.stream()>>>(X, Y, (int)m);""",
    ),
    "preprocessor": (
        "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n#error newer than the T4 that is played\n#endif\n"
        "#ifdef NOT_DEFINED\n"
        "__global__ void k30(const double* x, double* y, int n) {\n#else\n"
        "__global__ void k30(const float* x, float* y, int n) {\n#endif\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }\n#if 0\n"
        " it's no code: k<<<1, 1>>>(\n#endif\n",
        "\n#ifdef __CUDACC__\n  k30<<<G, \\\n 64>>>(X, Y, n);\n#endif\n",
    ),
    "by_pointer_call": (
        "__global__ void k31" + KERNEL,
        "const float* a = X; void* arguments[] = {&a, &Y, &n}; "
        "cudaLaunchKernel((void*)k31, dim3(G), dim3(64), arguments, 0, 0); "
        "cudaLaunchKernel((const void*)&k31, G, 64, arguments, 0, nullptr);",
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
    "several_declarators": (
        "__shared__ float a[64], b[8][8], c;",
        "a[t] = v; b[t / 8][t % 8] = v; if (t == 0) c = 1;",
        "(a[t] + b[t / 8][t % 8]) / 2 * c",
    ),
    "alignment": (
        "__shared__ __align__(16) float a[64]; alignas(16) __shared__ float b[64]; "
        "float __shared__ __align__(16) c[64];",
        "a[t] = v; b[t] = v; c[t] = (size_t)a % 16 + (size_t)b % 16 + (size_t)c % 16;",
        "(a[t] + b[t]) / 2 + c[t]",
    ),
    "order_of_qualifiers": (
        "volatile __shared__ float a[64]; static __shared__ float b[64]; __shared__ volatile float c[64];",
        "a[t] = v; b[t] = v; c[t] = -v;",
        "a[t] + b[t] + c[t]",
    ),
    "union_and_struct": (
        "__shared__ union { float f[64]; int i[64]; } u; struct P { float v; int k; }; __shared__ P p[64]; "
        "__shared__ struct { float low[32], high[32]; } s;",
        "u.i[t] = __float_as_int(v); p[t].v = v; (t < 32 ? s.low[t] : s.high[t - 32]) = -v;",
        "u.f[t] + p[t].v + (t < 32 ? s.low[t] : s.high[t - 32])",
    ),
    "vectors": (
        "__shared__ float4 q[16]; __shared__ bool last; __shared__ double one;",
        "((float*)q)[t] = v; if (t == 0) { last = true; one = 1; }",
        "((float*)q)[t] * (last ? one : 0)",
    ),
    "dynamic": ("extern __shared__ float d[];", "d[t] = v;", "d[t]"),
    "dynamic_of_another_type": ("extern __shared__ double d[];", "d[t] = v;", "(float)d[t]"),
    "dynamic_volatile": (
        "extern volatile __shared__ float d[]; alignas(16) extern __shared__ float e[];",
        "d[t] = v;",
        "e[t]",
    ),
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
    text, names = "#include <torch/extension.h>\n#include <cuda_runtime.h>\n#include <ATen/ATen.h>\n" + SHARED_HEAD, []

    def host(name, body):
        nonlocal text
        names.append(name)
        text += (
            f"torch::Tensor {name}(torch::Tensor x) {{\n  auto y = torch::full_like(x, NAN); int n = x.numel(); "
            f"const int G = (n + 63) / 64;\n"
            f"  auto X = x.data_ptr<float>(), Y = y.data_ptr<float>(); (void)X; (void)Y; (void)G;\n  {body}\n"
            f"  return y;\n}}\n"
        )

    for name, (before, body) in FORMS.items():
        text += before
        host(name, body)
    for i, (name, (declare, store, load)) in enumerate(SHARED.items(), 100):
        text += SHARED_KERNEL.format(i=i, declare=declare, store=store, load=load)
        host(name, f"k{i}<<<G, 64, 1024>>>(X, Y, n);")
    # Four instances of 16 to 48 KiB each, and one with much dynamic memory: the limit is for one of them at a time.
    host(
        "many_sizes",
        "sized<float, 4096><<<G, 64>>>(X, Y, n); sized<double, 4096><<<G, 64>>>(X, Y, n); "
        "sized<float, 12288><<<G, 64>>>(X, Y, n); sized<float, 64><<<G, 64, 40000>>>(X, Y, n);",
    )
    return text, names


@pytest.fixture(scope="module")
def forms():
    text, names = _source()
    return simt.load_inline(
        "test_launch", "\n".join(f"torch::Tensor {n}(torch::Tensor x);" for n in names), text, functions=names
    )


@pytest.mark.slow
@pytest.mark.parametrize("form", [*FORMS, *SHARED, "many_sizes"])
def test_a_form_doubles_its_input(forms, form):
    """Does each way to write a launch or shared memory build together with all others, and compute?"""
    x = torch.randn(1000)
    assert torch.equal(getattr(forms, form)(x), 2 * x)


@pytest.mark.slow
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
    assert simt.take_launches() == [
        ("plain", (1, 1, 1), (4, 2, 1)),
        ("plain", (2, 1, 1), (4, 2, 1)),
        ("tk", (3, 1, 1), (5, 1, 1)),
    ]
    assert simt.take_launches() == []
    module.run(torch.zeros(64), 40)
    newest = simt.take_launches()
    assert len(newest) == 16 and [grid[0] for _, grid, _ in newest] == [*range(26, 41), 3]


@pytest.mark.slow
def test_an_idle_launch_is_noted_and_runs_no_thread():
    """Are launches examined and noted under idle=True, with memory left as it was, and run again after it?"""
    source = """
    __global__ void fill(float* y) { y[threadIdx.x] = 1; }
    void run(torch::Tensor y, int64_t threads) {
      fill<<<1, threads>>>(y.data_ptr<float>());
      TORCH_CHECK(cudaGetLastError() == cudaSuccess, "refused");
    }"""
    module = simt.load_inline("idle", "void run(torch::Tensor y, int64_t threads);", source, functions=["run"])
    y = torch.zeros(32)
    simt.take_launches()
    with simt.run(idle=True):
        module.run(y, 32)
        with pytest.raises((RuntimeError, simt.KernelError)):
            module.run(y, 5000)
    assert not y.any() and simt.take_launches()[0] == ("fill", (1, 1, 1), (32, 1, 1))
    module.run(y, 32)
    assert y.all()


@pytest.mark.parametrize("size", [128, 1024, 1088, 2056, 4112, 40000])
def test_dynamic_shared_memory_begins_where_it_asks_to(size):
    """Is it aligned for a swizzled tile of Hopper, though its size is no multiple of that?"""
    alignment = 128 if size <= 1024 else 1024
    source = f"""
    __global__ void k(int* y) {{
        extern __shared__ __align__({alignment}) unsigned char tile[];
        tile[{size} - 1] = 1;
        y[0] = (int)(__cvta_generic_to_shared(tile) % {alignment});
        y[1] = (int)((size_t)tile % {alignment});
    }}
    torch::Tensor run(torch::Tensor y) {{ k<<<1, 1, {size}>>>(y.data_ptr<int>()); return y; }}
    """
    kernels = simt.load_inline("aligned", "torch::Tensor run(torch::Tensor y);", source, functions=["run"])
    assert kernels.run(torch.full((2,), -1, dtype=torch.int32)).tolist() == [0, 0]
