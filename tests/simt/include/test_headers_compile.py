"""What simt's headers accept and refuse, line by line, as nvcc 13.0 does."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import simt
from simt.toolchain.compilers import find_compiler

_INCLUDE = Path(simt.__file__).parent / "include"

# A C library of 2025 or later declares these itself.
_NEW_LIBRARY = (
    """
extern "C" { double sinpi(double) noexcept; float sinpif(float) noexcept; double cospi(double) noexcept; """
    """float cospif(float) noexcept;
double rsqrt(double) noexcept; float rsqrtf(float) noexcept; }
"""
)
_BEFORE = """#include <simt/cuda.h>
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
struct Pair { int a, b; };
"""
_CROWDED = """
#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <numeric>
#include <cooperative_groups/reduce.h>
#include <math_constants.h>
using namespace std;
using namespace cooperative_groups;
"""

ACCEPTED = """
__half f01(__half a) { a += 1.0f; return a; }
float f02() { __half h = 1; h = 2.0; float g = h; return g; }
float f03(__half a) { return expf(a) + fmaxf(a, 0.f); }
long f04(__half a) { return (long)a; }
__nv_bfloat16 f05(__half a) { return static_cast<__nv_bfloat16>(a); }
int f06(char a) { return __shfl_sync(~0u, a, 0); }
void f07(float* p) { atomicAdd(p, 1.0); }
int f08(int a) { __builtin_assume(a > 0); return a / 2; }
int f09() { cg::thread_group g = cg::tiled_partition(cg::this_thread_block(), 4); return g.thread_rank(); }
int f10() { cg::thread_group g = cg::this_grid(); return g.size(); }
__half2 f11(float a) { return __half2(a, a); }
float f12(__half a) { return a ? 1.f : 0.f; }
__half2 f13() { __half2 h{}; __half z{}; h.x = z; return h; }
int f14() { auto c = cg::coalesced_threads(); return cg::tiled_partition(c, 4).size(); }
__half f15(long a) { return __half(a); }
float f16(const float* x, const float4* y, const half2* z) { return __ldg(x) + __ldg(y).x + __low2float(__ldg(z)); }
void f17(float4* x) { __stcs(x, make_float4(1, 2, 3, 4)); }
unsigned f18(int i, unsigned u) { return max(i, u) + min(u, 3u) + min(i, 3); }
double f19(float x, double y) { return min(x, y) + max(y, x) + min(x, 1.f); }
void f20(float* p) { cudaMalloc(&p, 4); cudaMalloc((void**)&p, 4); cudaMallocAsync(&p, 4, 0); }
template <class Group> int f21(const Group& g) { return g.shfl_down(1, 2) + g.thread_rank(); }
int f22() { return f21(cg::tiled_partition<8>(cg::this_thread_block())) + f21(cg::coalesced_threads()); }
template <unsigned N> int f23(cg::thread_block_tile<N> tile) { return tile.size(); }
int f24() { return f23(cg::tiled_partition<16>(cg::this_thread_block())); }
int f25(cg::thread_block_tile<32, cg::thread_block> tile) { return tile.meta_group_rank(); }
"""

# nvcc refuses each of these lines.
REFUSED = """
float g01(int a, float b) { return min(a, b); }
float g02(float b) { return max(0, b); }
size_t g03(size_t a, int b) { return min(a, b); }
long g04(long a, int b) { return min(a, b); }
__half g05(__half a) { return a + 1.0f; }
bool g06(__half a) { return a < 1.0f; }
bool g07(__half a) { return isnan(a); }
float g08(__half a) { return exp(a); }
float2 g09(float2 a) { return __shfl_sync(~0u, a, 0); }
void* g10(void* p) { return __shfl_sync(~0u, p, 0); }
void g11(long* p) { atomicAdd(p, 1L); }
void g12(float* p) { atomicMax(p, 1.f); }
float g13() { return CUDART_INF_F; }
double g14(int a) { return rsqrt(a); }
Pair g15(const Pair* a) { return __ldg(a); }
int g16(int a) { return cg::reduce(cg::tiled_partition<32>(cg::this_thread_block()), a, cg::plus<int>()); }
__half g17(__half a, __half b) { return max(a, b); }
unsigned g18(unsigned a) { return abs(a); }
float g19(float v) { return __shfl_down(v, 1); }
auto g21() { return cg::binary_partition(cg::this_thread_block(), true); }
int g20() { return cg::tiled_partition<48>(cg::this_thread_block()).size(); }
"""

AMONG_OTHER_NAMES = (
    """
float h01(float a, int i, unsigned u, size_t z) { """
    """return min(a, 1.0f) + max(i, 3) + min(u, 3u) + max(z, (size_t)3) + std::min(a, 2.f); }
double h02(float a) { return abs(a) + pow(a, 2) + sqrt(a) + isnan(a) + floor(a) + round(a) + exp(a) + min(a, """
    """2.0) + fma(a, a, a); }
short h03(short a, short b) { return min(a, b); }
void h04() { auto block = this_thread_block(); sync(block); block.sync(); }
float h05(float a) { auto t = tiled_partition<32>(this_thread_block()); """
    """return cooperative_groups::reduce(t, a, cooperative_groups::plus<float>()); }
float h06(float x) { return CUDART_INF_F + sinpi(x) + rsqrt(x) + norm3df(x, x, x); }
"""
)


def _errors(text: str) -> tuple[set[int], str]:
    """Lines of the source with an error, and what the compiler said."""
    command = [
        find_compiler()[0],
        "-std=c++20",
        "-w",
        "-fsyntax-only",
        "-fmax-errors=0",
        f"-I{_INCLUDE / 'shim'}",
        f"-I{_INCLUDE}",
        "-x",
        "c++",
        "-",
    ]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    # An error inside a template counts for the line that asked for it.
    return {int(n) for n in re.findall(r"^<stdin>:(\d+):\d+: +(?:error|required from)", done.stderr, re.M)}, done.stderr


def test_what_nvcc_accepts():
    """Does everything compile that nvcc takes, beside a newer C library's own names too?"""
    lines, said = _errors(_NEW_LIBRARY + _BEFORE + ACCEPTED)
    assert not lines and "error" not in said, said


def test_what_nvcc_refuses():
    """Is every line an error here that is one there: ambiguous, missing its #include, or no such overload?"""
    lines, said = _errors(_BEFORE + REFUSED)
    first = _BEFORE.count("\n") + 2
    assert lines == set(range(first, first + REFUSED.count("\n") - 1)), said


def test_among_other_names():
    """Are min, abs, reduce and the others clear under `using namespace std` and `cooperative_groups`?"""
    lines, said = _errors(_BEFORE + _CROWDED + AMONG_OTHER_NAMES)
    assert not lines and "error" not in said, said


def test_empty_unit_stays_cheap():
    """Do the headers leave no templates to be instantiated in a unit that uses none?"""
    command = [find_compiler()[0], "-std=c++20", "-O2", "-S", "-o", "-", f"-I{_INCLUDE}", "-x", "c++", "-"]
    done = subprocess.run(command, input="#include <simt/cuda.h>\n", capture_output=True, text=True, check=True)
    assert not re.search(r"^\s*call|^_Z\w+:", done.stdout, re.M)
