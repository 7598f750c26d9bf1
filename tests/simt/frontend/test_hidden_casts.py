"""Casts in a checked build: which are hidden from the compiler, and what else with brackets is left as it is."""

import pytest

from simt.frontend.rewrite import rewrite
from simt.frontend.source import Source


def rewrite_body(text: str, **options) -> str:
    kernel = f"__global__ void k(float* p, int n) {{ {text} }}"
    return rewrite(Source(kernel), **options).text.split("{ ", 1)[1].rsplit(" }", 1)[0]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("a = *(float4*)&p[1];", "a = *(float4*)(::simt::Hidden)&p[1];"),
        ("a = ((const float2 *)p)[n];", "a = ((const float2 *)(::simt::Hidden)p)[n];"),
        ("return (std::pair<int, 3>**)(p);", "return (std::pair<int, 3>**)(::simt::Hidden)(p);"),
        ("f(reinterpret_cast<const int*>(p + 1));", "f(::simt::hidden_cast<const int*>(p + 1));"),
        ("reinterpret_cast<float4&>(p[n]) = a;", "(*::simt::hidden_cast<float4*>(&(p[n]))) = a;"),
    ],
)
def test_is_the_cast_hidden(written, expected):
    """In a checked build only."""
    assert rewrite_body(written, checked=True) == expected
    assert rewrite_body(written) == written


@pytest.mark.parametrize(
    "written",
    [
        "n = sizeof(float*) * (n);",
        "float f(float*);",
        "n = n * (n * (n));",
        "a = (float)n;",
        "auto at = reinterpret_cast<size_t>(p);",
        "if (n) *p = 1;",
        "using F = void (*)(int*);",
        "auto f = [](int*) { return 1; };",
    ],
)
def test_is_other_code_left_alone(written):
    assert rewrite_body(written, checked=True) == written


def test_are_casts_in_macros_hidden():
    text = "#define FLOAT4(x) (reinterpret_cast<float4*>(&(x))[0])\n__global__ void k() {}\nvoid h() { f((void**)&p); }"
    found = rewrite(Source(text), checked=True).text
    assert "(::simt::hidden_cast<float4*>(&(x))[0])" in found and "f((void**)&p)" in found


def test_casts_in_the_operands_of_asm():
    """Is an asm statement still rewritten if a cast is among its operands?"""
    text = '__global__ void k(half2 h, short* y) { asm("cvt.f32.f16 %0, %1;" : "=f"(*(float*)y) : "h"(*(short*)&h)); }'
    found = rewrite(Source(text), checked=True).text
    assert "asm(" not in found and "cvt_f32_f16(" in found and "(::simt::Hidden)&h" in found
