"""Assignments to threadIdx and its kin are refused, as by nvcc, with their line."""

from __future__ import annotations

import pytest

import simt
from simt.frontend.rewrite import rewrite
from simt.frontend.source import Source


def _in_kernel(text: str) -> str:
    return f"__global__ void k(float* x) {{\n  {text}\n}}"


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("threadIdx.x = 0;", "threadIdx.x"),
        ("if (blockIdx.y=1) return;", "blockIdx.y"),
        ("blockDim . z += 2;", "blockDim.z"),
        ("x[0] = gridDim.x++;", "gridDim.x"),
        ("x[--threadIdx.x] = 1;", "threadIdx.x"),
        ("threadIdx.x >>= 1;", "threadIdx.x"),
        ("blockIdx = dim3(1);", "blockIdx"),
    ],
)
def test_an_assignment_is_refused(text, name, checked):
    """Is it one error with its line, whether the build is checked or not?"""
    with pytest.raises(simt.CompileError) as caught:
        rewrite(Source(_in_kernel(text), "cuda_sources"), checked=checked)
    (error,) = caught.value.diagnostics
    assert (error.source, error.line, error.severity) == ("cuda_sources", 2, "error")
    assert error.message == (
        f"`{name}` is a built-in variable, which cannot be assigned to; write `==` to compare, or assign to a variable "
        "of your own."
    )


@pytest.mark.parametrize(
    "source",
    [
        _in_kernel("x[0] = threadIdx.x == 0; x[1] = threadIdx.x >= 1 && blockIdx.x <= 2 || gridDim.x != 3;"),
        _in_kernel("int n = 5, i = n - -threadIdx.x + threadIdx.x - n--; x[i++] = blockDim.x << 2;"),
        _in_kernel("uint3 blockIdx = {0, 0, 0}; blockIdx.x = 1;"),
        "__device__ void f(uint3& threadIdx) { threadIdx.x = 1; }",
        "#define blockIdx virtual_block\n__device__ uint3 virtual_block;\n" + _in_kernel("blockIdx.x = 1;"),
        "struct S { dim3 blockDim; }; void f(S s) { s.blockDim.x = 3; dim3 gridDim; gridDim.x = 1; }\n"
        "__device__ void g(S s) { s.blockDim.x = 3; }",
    ],
)
def test_what_nvcc_accepts_is_kept(source):
    """Are comparisons, the student's own variables and members left alone?"""
    rewrite(Source(source, "cuda_sources"))
