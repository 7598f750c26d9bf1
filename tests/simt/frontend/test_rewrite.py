"""The rewriter by itself, without a compiler: what it finds, what it keeps, what it refuses."""

import pytest

import simt
from simt.frontend.rewrite import rewrite
from simt.frontend.source import Source


def rewritten(source: str, checked: bool = False) -> str:
    return rewrite(Source(source, "cuda_sources"), checked=checked).text


@pytest.mark.parametrize(
    ("source", "kernels"),
    [
        (
            '__global__ void a(int* x) {}\nstatic __global__ void b() {}\nextern "C" __global__ void c();',
            ["a", "b", "c"],
        ),
        ("__global__ void __launch_bounds__(256, 2) a() {}\n__launch_bounds__(64) __global__ void b() {}", ["a", "b"]),
        (
            "template <int N, class T = float> __global__ void a(T (&x)[N]) {}\n"
            "template <> __global__ void a<3, int>(int (&x)[3]) {}",
            ["a"],
        ),
        ("template <class T> __global__ void a(T* x) {}\ntemplate __global__ void a<float>(float*);", ["a"]),
        ("#define KERNEL __global__ void\nKERNEL a(int n) {}\nint b(int n);", ["a"]),
        ("#define K(name) __global__ void name\nK(a)(int n) {}", []),
        ("#if X\n#define G __global__\n#else\n#define G\n#endif\nG void a(int n) {}", []),
        ("__global__ typename std::enable_if<(N > 3), void>::type a(int n) {}", ["a"]),
        ('// __global__ void a() {}\n/* __global__ void b() {} */ const char* s = "__global__ void c() {}";', []),
    ],
)
def test_kernels_are_found(source, kernels):
    """Are exactly the declared kernels found: qualified, bounded, specialised, hidden in macros and comments?"""
    assert rewrite(Source(source, "cuda_sources")).kernels == kernels


@pytest.mark.parametrize(
    ("declaration", "names"),
    [
        ("__shared__ float a[4][5], b, *c;", ["a", "b", "c"]),
        ("__shared__ struct { float u; int v; } s;", ["s"]),
        ("__shared__ union U { float f[4]; int i[4]; } u;", ["u"]),
        ("volatile __shared__ float a[2]; float __shared__ b[2]; static __shared__ int c;", ["a", "b", "c"]),
        ("alignas(16) __shared__ float a[4]; __shared__ __align__(8) float b[4];", ["a", "b"]),
        ("__shared__ std::conditional_t<(N > 2), int, float> a[N];", ["a"]),
        ("extern __shared__ float a[];", []),
        ("extern float __shared__ a[]; __shared__ extern float2 b[];", []),
        ("__shared__ float static a[3]; std::pair<int, A<B>> __shared__ b;", ["a", "b"]),
    ],
)
def test_static_shared_arrays_are_named(declaration, names):
    """Is every array and variable of a __shared__ declaration listed, so that it can be marked as never written?"""
    assert rewrite(Source(f"__global__ void k() {{ {declaration} }}", "cuda_sources")).shared == names


@pytest.mark.parametrize("marks", [("<< <", ">> >"), ("< <<", "> >>"), ("<<<", ">> >"), ("<< <", ">>>")])
def test_launches_with_a_space_in_their_marks(marks):
    """Is a launch whose marks a formatter split the same launch, and are shifts and template arguments left alone?"""
    after = "int y = a << b > c; A<B<C<int> > > z; A<B<C<int>> > w; o << x; friend O& operator<< <T>(O&, T);"
    source = "__global__ void k() {} void f() { k<<<1, 2>>>(); " + after + " }"
    spaced = source.replace("<<<", marks[0]).replace("2>>>", "2" + marks[1])
    assert rewritten(spaced).replace(" ", "") == rewritten(source).replace(" ", "")
    assert after.replace(" ", "") in rewritten(spaced).replace(" ", "")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_launch_in_a_macro_keeps_its_continuations(newline):
    """Does every line of a macro that launches over several lines still end with its backslash?"""
    macro = ["#define GO(T, N) \\", "  k<T, \\", "    N><<<1, \\", "      2>>>( \\", "        x)"]
    text = rewritten(newline.join([*macro, "int after;"]))
    lines = text.split("\n")
    assert [line.rstrip("\r").endswith("\\") for line in lines] == [True] * 4 + [False, False]
    assert "<<<" not in text


@pytest.mark.parametrize(
    "source",
    [
        "#define HD __host__ __device__\nvoid run() { k<<<1, 1>>>(x); }",
        "__device__ float table[2] = {1.f, 2.f};\nvoid run() { k<<<1, 1>>>(x); }",
        "template <class F> void each(F f) { k<<<1, 1>>>(f); }\n"
        "void run() { each([=] __device__ (int i) { x[i] = 0; }); }",
        "__device__ int f(int n = (3));\nvoid run() { k<<<1, 1>>>(x); }",
    ],
)
def test_a_launch_on_the_host_is_not_taken_for_one_in_a_kernel(source):
    """Does a __device__ nearby leave a host function's launch alone?"""
    assert "simt::launch" in rewritten(source)


@pytest.mark.parametrize(
    ("launch", "callee"),
    [
        ("return ::ns::k<<<1, 2>>>(x);", "{ ::ns::k(simt_a...); }"),
        ("if (a) k<<<1, 2>>>(x); else ::k<<<1, 2>>>(x);", "{ ::k(simt_a...); }"),
        ("k<A<B<C>>><<<1, 2>>>(x);", "{ k<A<B<C>>>(simt_a...); }"),
        ("k<(N > 3), f(N >> 1)><<<1, 2>>>(x);", "{ k<(N > 3), f(N >> 1)>(simt_a...); }"),
        ("(a ? k : m)<<<1, 2>>>(x);", "{ (a ? k : m)(simt_a...); }"),
        ("o->table[i]<<<1, 2>>>(x);", "{ o->table[i](simt_a...); }"),
        ("k<<<A<B<int>>::n, B<C<D<4>>>::n>>>(x);", "{ k(simt_a...); }"),
    ],
)
def test_the_launched_expression_is_taken_whole(launch, callee):
    """Is what stands before <<< taken from its beginning to its end, and nothing more?"""
    assert callee in rewritten(launch)


@pytest.mark.parametrize(
    ("source", "pointer"),
    [
        ("__global__ void apply(int n); void f() { apply<<<1, 2>>>(3); }", "::apply, ["),
        ('extern "C" { __global__ void apply(int n); } void f() { apply<<<1, 2>>>(3); }', "::apply, ["),
        ("template <int N> __global__ void fill(int n); void f() { fill<4><<<1, 2>>>(3); }", "::fill<4>, ["),
        ("namespace a { __global__ void apply(int n); void f() { apply<<<1, 2>>>(3); } }", " apply, ["),
        ("namespace a { __global__ void apply(int n); } void f() { a::apply<<<1, 2>>>(3); }", " a::apply, ["),
    ],
)
def test_a_kernel_is_told_from_a_function_of_the_same_name_in_std(source, pointer):
    """Does the pointer to a kernel in no namespace name that scope, which `using namespace std` adds nothing to?"""
    assert pointer in rewritten("using namespace std;\n" + source)


def test_null_pointers_stay_null_pointers():
    """Does 0 become nullptr where the kernel has a pointer, and stay a number where it has not?"""
    kernel = "__global__ void k(float* x, int n, const int* i);\n"
    assert "(nullptr, 0, nullptr)" in rewritten(kernel + "void f() { k<<<1, 1>>>(0, 0, NULL); }")


def test_a_parameter_hides_the_dynamic_shared_array_of_the_same_name():
    """Does an array at namespace scope reach the kernels that use it, and no function with a parameter of its name?"""
    source = (
        "extern __shared__ float s[];\n"
        "__device__ float sum(float* s, int n) { return s[n]; }\n"
        "__global__ void k(float* x) { x[0] = s[0]; }\n"
    )
    lines = rewritten(source).split("\n")
    assert "dynamic_shared" not in lines[1] and lines[2].count("dynamic_shared") == 1


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        ("int a;\n#include <cub/device/device_spmv.cuh>\n", 2, "cub"),
        ("#include <curand_mtgp32.h>\n", 1, "cuRAND"),
        ("void f() {\n  cuda::latch<cuda::thread_scope_block> b;\n}", 2, "libcu++"),
        ("texture<float> t;\n", 1, "texture"),
        ("__global__ void k() {\n\n  __shared__ int n = 0;\n}", 3, "initial value"),
        ("auto y = torch::nn::ReLU()(x);", 1, "torch::nn"),
        ("void f() { thrust::async::sort(a, b); }", 1, "thrust"),
    ],
)
def test_what_has_no_counterpart_is_refused_with_its_line(source, line, words):
    """Is the feature named, with the student's line?"""
    with pytest.raises(simt.Unsupported, match=words.replace("+", r"\+")) as caught:
        rewritten(source)
    first = caught.value.diagnostics[0]
    assert first.line == line and first.text == source.split("\n")[line - 1]


@pytest.mark.parametrize(
    "source",
    [
        "int texture = 3, cub = 2, cute; x.asm_; // asm volatile",
        'const char* s = "thrust::sort";',
        "struct S { int cuda; }; int f(S s) { return s.cuda; }",
    ],
)
def test_names_that_only_look_refused_are_kept(source):
    """Do variables, comments and strings with the name of a refused feature pass?"""
    assert rewritten(source) == source


@pytest.mark.parametrize(
    ("torch_words", "cpu_words"),
    [
        ("x.device().is_cuda()", "x.device().is_cpu()"),
        ("x.type().is_cuda()", "x.is_cpu()"),
        ("x.options().device(torch::kCUDA, 0)", "x.options().device(torch::kCPU, 0)"),
        ("c10::DeviceType::CUDA", "c10::DeviceType::CPU"),
        ('torch::Device("cuda:0")', 'torch::Device("cpu")'),
        ("x.cuda()", "x.cpu()"),
    ],
)
def test_words_for_the_gpu_become_words_for_the_cpu(torch_words, cpu_words):
    """Do checks and options that name the GPU hold for tensors on the CPU?"""
    assert "".join(rewritten(torch_words).split()) == "".join(cpu_words.split())


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("*p = {1, 2, 3, 4};", "*p"),
        ("out[i] = {1, 2};", "out[i]"),
        ("if (i < n) out[i] = {1, 2};", "out[i]"),
        ("for (;;) *(float4*)(p + 4 * i) = {};", "*(float4*)(p + 4 * i)"),
        ("else *reinterpret_cast<float4*>(p) = {1, 2, 3, 4};", "*reinterpret_cast<float4*>(p)"),
        ("((float4*)p)[i] = {a[0], {b}.x};", "((float4*)p)[i]"),
        ("if (k) ((float4*)p)[i] = {};", "((float4*)p)[i]"),
        ("s.rows[j]->q = {};", "s.rows[j]->q"),
        ("**pp = {};", "**pp"),
        ("*reinterpret_cast<float4*>(p) /* as one\n*/ = {1};", "*reinterpret_cast<float4*>(p)"),
        ("float v[4] = {1, 2, 3, 4};", None),
        ("const float4* p = {};", None),
        ("T* q[2] = {};", None),
        ("std::map<int, T*> m[3] = {};", None),
        ("void (*table[])(float*, int) = {k, l<float>};", None),
        ("at(*i)[0] = {1};", "at(*i)[0]"),
        ("v = {1, 2};", None),
        ("if (a[i] == b) {}", None),
        ("auto [a, b] = {1, 2};", None),
        ("f(x[0] = {1});", None),
        ("*(float4*)&x[4 * i] = {1, 2, 3, 4};", "*(float4*)&x[4 * i]"),
        ("*reinterpret_cast<float2*>(&x[i]) = {1, 2};", "*reinterpret_cast<float2*>(&x[i])"),
        ("int y = (a)&x[i] = {1};", None),
        ("struct { int n; } table[] = {{1}, {2}};", None),
        ("struct S : base<int> { int n; } *p[2] = {};", None),
        ("enum class E : char { a } e[1] = {};", None),
        ("switch (n) { default: {} } out[i] = {1, 2};", "out[i]"),
        ("struct { const char* name; int n; } runs[] = {{k, 1}};", None),
        ("union Word { int i; float f; } words[2] = {{1}};", None),
        ("struct { int n; } *pointers[2] = {};", None),
        ("if (k) { f(); } x[i] = {1, 2};", "x[i]"),
    ],
)
def test_a_braced_value_is_stored_as_a_whole(source, left):
    """Is `left = {…}` a function's value where left is in memory, and a declaration left alone?"""
    text = rewritten("void f() { " + source + " }")
    assert ("simt::whole" in text) == (left is not None)
    if left:
        assert f"= ::simt::whole<decltype({left})>(" in text


@pytest.mark.parametrize("value", ["make_float4(0, 0, 0, 0)", "float4{0, 0, 0, 0}", "float4()"])
@pytest.mark.parametrize("checked", [False, True])
def test_vectors_are_stored_as_a_whole(value, checked):
    """Is a vector of constants stored at once, where it is all that is stored?"""
    assert f"::simt::whole<decltype(x[i])>( {value});" in rewritten(f"void f() {{ x[i] = {value}; }}", checked=checked)
    assert "simt::whole" not in rewritten(f"void f() {{ x[i] = {value} + y; }}", checked=checked)
    assert "simt::whole" not in rewritten(f"void f() {{ float4 v = {value}; }}", checked=checked)
    assert "simt::whole" not in rewritten("void f() { x[i] = float4(y); }", checked=checked)


FUNCTIONS = """__device__ uint4 load(const uint4* p) { return *p; }
__device__ float one(const float* p) { return *p; }
template <class T> __device__ inline T same(T value) { return value; }
__device__ float* at(float* p) { return p; }
"""


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("t[i] = load(p);", " load(p)"),
        ("t[i] = i ? load(p) : zero;", " i ? load(p) : zero"),
        ("(*t).x = same<float>(one(q));", " same<float>(one(q))"),
        ("if (i) t[i] = load(p); else t[0] = zero;", " load(p)"),
        ("f(t[i] = load(p));", None),
        ("t[i] = one(q);", None),
        ("*at(q) = one(q);", None),
        ("uint4 v = load(p);", None),
        ("uint4& r = same(t[i]);", None),
        ("t[i] = t[j] = load(p);", None),
        ("t[i] = load;", None),
    ],
)
def test_a_checked_build_stores_returned_values_itself(statement, value):
    """Is a statement rewritten that stores what a device function returns, if that may be of a class?"""
    source = FUNCTIONS + f"__global__ void k(uint4* t, const uint4* p, float* q, int i, int j) {{ {statement} int n; }}"
    text = rewritten(source, checked=True)
    assert ("::simt::returned(" in text) == (value is not None)
    assert value is None or f"= ::simt::returned({value});" in text
    assert '::simt::local(n, "n")' in text
    assert "::simt::returned(" not in rewritten(source)
