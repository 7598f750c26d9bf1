"""torch hides operators and conversions of 16-bit floats from CUDA sources: does load_inline do the same on the CPU?"""

from __future__ import annotations

import pytest
import torch

import simt
from simt.runtime.extension import filter_flags, load
from simt.toolchain import headers
from simt.toolchain.half_macros import TORCH_FLAGS

pytestmark = pytest.mark.slow

SHOWN = [flag.replace("-D", "-U") for flag in TORCH_FLAGS]
DECLARED = "void run(torch::Tensor x);"
# Statements on the half2 p and q, the halves h and g, and the bfloat16 b, which what torch defines hides, and y.
HALF = "y[0] = __half2float(h + g); y[1] = __half2float(-h); ++h; h *= g; y[2] = __half2float(h--); y[3] = h >= g;"
HALF2 = "p = p / q; ++p; y[0] = __low2float(p); y[1] = __high2float(-p--); y[2] = __low2float(p); y[3] = p == q;"
CONVERSIONS = "y[0] = h; h = y[1] + 2; y[1] = (float)h; h = 7; y[2] = (int)h; __half z(0.25); y[3] = float(z);"
BFLOAT16 = "y[0] = b; b = y[1] + 2; y[1] = (float)b; b = 7; y[2] = (int)b; __nv_bfloat16 z(0.25); y[3] = float(z);"
STATEMENTS = {
    "-U__CUDA_NO_HALF_OPERATORS__": (HALF, [5, -3, 8, 1]),
    "-U__CUDA_NO_HALF2_OPERATORS__": (HALF2, [4, -2, 3, 0]),
    "-U__CUDA_NO_HALF_CONVERSIONS__": (CONVERSIONS, [3, 3, 7, 0.25]),
    "-U__CUDA_NO_BFLOAT16_CONVERSIONS__": (BFLOAT16, [5, 3, 7, 0.25]),
}


def write_kernel(statements: str) -> str:
    return f"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void kernel(float* y) {{
    __half h = __float2half(3), g = __float2half(2);
    __half2 p = __floats2half2_rn(6, 4), q = __floats2half2_rn(2, 4);
    __nv_bfloat16 b = __float2bfloat16(5);
    {statements}
}}
void run(torch::Tensor x) {{ kernel<<<1, 1>>>(x.data_ptr<float>()); }}
"""


def build(statements: str, **arguments):
    return simt.load_inline("half_macros", DECLARED, write_kernel(statements), functions=["run"], **arguments)


def run(statements: str, **arguments) -> list[float]:
    x = torch.tensor([0.0, 1.0, 0.0, 0.0])
    build(statements, **arguments).run(x)
    return x.tolist()


@pytest.mark.parametrize("flag", STATEMENTS)
def test_each_flag_shows_what_its_macro_hides(flag):
    """Are the statements refused with torch's flags and with all others undefined, and run where their own is?"""
    statements, expected = STATEMENTS[flag]
    for flags in ([], [other for other in SHOWN if other != flag], [flag, flag.replace("-U", "-D")]):
        with pytest.raises(simt.CompileError) as caught:
            build(statements, extra_cuda_cflags=flags)
        assert {(d.source, d.line) for d in caught.value.diagnostics if d.severity == "error"} == {("cuda_sources", 8)}
    assert run(statements, extra_cuda_cflags=[flag]) == expected
    assert run(statements, extra_cuda_cflags=[" ".join(["-O3", *SHOWN])]) == expected


@pytest.mark.parametrize("mode", ["check", "count"])
def test_probes(mode):
    """Are the same operators hidden and shown in builds with probes?"""
    with getattr(simt, mode)():
        assert run(HALF, extra_cuda_cflags=SHOWN) == STATEMENTS[SHOWN[0]][1]
        with pytest.raises(simt.CompileError):
            build(HALF)


SUMS = r"""
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
__global__ void sums(float* y) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, __half> sum;
    wmma::fill_fragment(a, __float2half(1.0f));
    wmma::fill_fragment(b, __float2half(0.5f));
    wmma::fill_fragment(sum, __float2half(0.0f));
    for (int k = 0; k < 8; ++k) wmma::mma_sync(sum, a, b, sum);
    if (threadIdx.x < 4) y[threadIdx.x] = __half2float(sum.x[threadIdx.x]);
}
void run(torch::Tensor x) { sums<<<1, 32>>>(x.data_ptr<float>()); }
"""


@pytest.mark.parametrize("mode", ["run", "check", "count"])
def test_tensor_cores_sum_halves(mode):
    """Is each product added once in every build? A probe within mma_sync would let two lanes compute it."""
    x = torch.zeros(4)
    with getattr(simt, mode)():
        simt.load_inline("half_sums", DECLARED, SUMS, functions=["run"]).run(x)
    assert x.tolist() == [64] * 4


def test_flags_of_cpp_sources_are_not_for_cuda_sources():
    """Is a flag in the wrong list without effect, as with torch?"""
    with pytest.raises(simt.CompileError):
        build(HALF, extra_cflags=SHOWN)


def test_cpp_sources_have_the_operators():
    """Has host code of cpp_sources all operators, as torch compiles it without nvcc's macros?"""
    cpp = """#include <cuda_fp16.h>
double product(double a, double b) { __half x = a, y = (float)b; return x < y ? (float)(x * y) : -1.0f; }
"""
    module = simt.load_inline("half_macros_cpp", [DECLARED, cpp], write_kernel(""), functions=["run", "product"])
    assert module.product(1.5, 2) == 3


def test_torchs_own_types():
    """Do at::Half and at::BFloat16 convert to and from CUDA's types, and do their own operators work?"""
    statements = """at::Half a = h; __half c = a * a; y[0] = a + g; y[1] = __half2float(c); a = __hadd(c, a); y[2] = a;
    at::BFloat16 e = b; y[3] = __bfloat162float((__nv_bfloat16)e) + __half2float(__ldg(&a));"""
    assert run(statements) == [5, 9, 12, 17]


def test_directives_of_a_file(tmp_path):
    """Does an #undef count that stands before a file's first #include, and in load_inline not after torch's headers?"""
    undefined = "".join(f"#undef {flag[2:]}\n" for flag in SHOWN)
    source = undefined + "#include <torch/extension.h>\n" + write_kernel(HALF)
    (tmp_path / "kernel.cu").write_text(source, encoding="utf-8")
    (tmp_path / "binding.cpp").write_text(
        f'#include <torch/extension.h>\n{DECLARED}\nPYBIND11_MODULE(m, m) {{ m.def("run", run); }}\n', encoding="utf-8"
    )
    x = torch.tensor([0.0, 1.0, 0.0, 0.0])
    load("half_macros_file", [str(tmp_path / "kernel.cu"), str(tmp_path / "binding.cpp")]).run(x)
    assert x.tolist() == STATEMENTS[SHOWN[0]][1]
    with pytest.raises(simt.CompileError):
        simt.load_inline("half_macros_undef", DECLARED, source, functions=["run"])


def test_headers_of_the_usual_build_are_those_of_warm_up(monkeypatch):
    """Does a build with torch's flags find all its precompiled headers after warm_up()?"""
    simt.warm_up()
    monkeypatch.setattr(headers, "_precompile", lambda *_: pytest.fail("a header was built"))
    assert run("y[0] = 42;") == [42, 1, 0, 0]


def test_flags_are_words_of_a_shell():
    """Are flags split as torch's shell splits them, and nvcc's long names of options known?"""
    given = ["-O3 -DA='1 2'", "--undefine-macro=B", "--define-macro", "C=1", "-I", "'x y'", "-lineinfo"]
    assert filter_flags(given) == ["-DA=1 2", "-U", "B", "-D", "C=1", "-I", "x y"]
