"""simt.check() on calls that must be made together, and on calls whose results are dropped: masks of a warp, CUDA's
errors.
"""

from typing import Any

import pytest
import torch

import simt
from simt.frontend.rewrite import rewrite
from simt.frontend.source import Source

SOURCE = (
    r"""
#include <vector>
__global__ void growing_masks(int* out) { out[threadIdx.x] = __ballot_sync(0xffffffffu >> (31 - threadIdx.x), 1); }
__global__ void halves(int* out) { out[threadIdx.x] = """
    r"""__popc(__ballot_sync(threadIdx.x < 16 ? 0xffffu : 0xffff0000u, 1)); }
__global__ void shrinking_masks(int* out) {
  unsigned mask = 0xffffffffu;
  for (int i = 0; i < 4; i++) {
    mask = __ballot_sync(mask, threadIdx.x >= 8 * i);
    if (!(mask >> threadIdx.x & 1)) return;
    out[threadIdx.x] = __popc(mask);
  }
}
__global__ void from_outside(int* out, int lane) { """
    r"""if (threadIdx.x < 8) out[threadIdx.x] = __shfl_sync(0xff, (int)threadIdx.x, lane); }
__global__ void across(int* out, int bits) { """
    r"""if (threadIdx.x < 8) out[threadIdx.x] = __shfl_xor_sync(0xff, (int)threadIdx.x, bits); }
__global__ void sum_of_half(int* out) {
  if (threadIdx.x >= 16) return;
  int v = 1;
  for (int d = 8; d > 0; d /= 2) v += __shfl_down_sync(0xffff, v, d);
  if (threadIdx.x == 0) out[0] = v;
}
"""
)
RUN = {
    "growing_masks": "",
    "halves": "",
    "shrinking_masks": "",
    "from_outside": ", argument",
    "across": ", argument",
    "sum_of_half": "",
}


@pytest.fixture(scope="module")
def kernels():
    hosts = "".join(
        f"void run_{k}(torch::Tensor out, int argument) {{ {k}<<<1, 32>>>(out.data_ptr<int>(){more}); }}\n"
        for k, more in RUN.items()
    )
    hosts += """
void dropped(torch::Tensor x) {
  cudaMemcpy(x.data_ptr(), nullptr, 4, cudaMemcpyHostToDevice);  // DROPPED
  if (x.numel() > 1) cudaFree((char*)x.data_ptr() + 4);  // DROPPED
}
int64_t taken(torch::Tensor x) {
  (void)cudaFree((char*)x.data_ptr() + 4);
  cudaMemcpy(x.data_ptr(), nullptr, 4, cudaMemcpyHostToDevice);
  cudaError_t error = cudaMemcpy(x.data_ptr(), nullptr, 4, cudaMemcpyHostToDevice);
  return cudaGetLastError() == error;
}
void no_fault(torch::Tensor x) {
  float* p = nullptr;
  cudaMalloc(&p, 16);
  cudaMemset(p, 0, 16); cudaFree(p);
}
"""
    declared = "".join(f"void run_{k}(torch::Tensor out, int argument);" for k in RUN)
    declared += "void dropped(torch::Tensor x); int64_t taken(torch::Tensor x); void no_fault(torch::Tensor x);"
    functions = [*(f"run_{k}" for k in RUN), "dropped", "taken", "no_fault"]
    module: Any = simt.load_inline("test_check_calls", declared, SOURCE + hosts, functions=functions)
    module.lines = [n for n, line in enumerate((SOURCE + hosts).split("\n"), 1) if line.endswith("// DROPPED")]
    return module


def findings(kernels, kernel: str, argument: int = 0) -> list[simt.Finding]:
    with simt.check() as report:
        getattr(kernels, f"run_{kernel}")(torch.zeros(32, dtype=torch.int32), argument)
    return report.findings


# ---- warps ----


@pytest.mark.slow
def test_are_differing_masks_of_one_call_seen(kernels):
    """Although each names its own lane, and the others have returned by the time that they are waited for."""
    (finding,) = findings(kernels, "growing_masks")
    assert (finding.check, finding.severity, finding.thread) == ("warp_divergence", "error", (1, 0, 0))
    assert "0x00000003" in finding.message and "0x00000001" in finding.message


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["halves", "shrinking_masks"])
def test_may_masks_differ_between_lanes_and_rounds(kernels, kernel):
    """Halves of a warp that vote apart, and a mask that each round makes smaller, are sound."""
    assert findings(kernels, kernel) == []


@pytest.mark.parametrize(("kernel", "inside", "outside"), [("from_outside", 7, 8), ("across", 4, 8)])
def test_does_a_shuffle_from_outside_of_the_mask_count(kernels, kernel, inside, outside):
    assert findings(kernels, kernel, inside) == []
    (finding,) = findings(kernels, kernel, outside)
    assert (finding.check, finding.severity, finding.count) == ("warp_divergence", "error", 8)


def test_is_the_end_of_a_reduction_a_mere_warning(kernels):
    """Its last lanes read beyond the mask, and the sum does not depend on theirs."""
    assert {(f.check, f.severity) for f in findings(kernels, "sum_of_half")} == {("warp_divergence", "warning")}


# ---- results that nobody takes ----


def test_are_dropped_errors_told_where_the_call_stands(kernels):
    with simt.check() as report:
        kernels.dropped(torch.zeros(64))
    assert [(f.check, f.severity, f.line) for f in report.findings] == [
        ("unchecked_error", "error", line) for line in kernels.lines
    ]
    assert "Check the result of cudaMemcpy." in report.findings[0].message


def test_is_an_error_that_is_looked_at_no_finding(kernels):
    """Whether by the result, by cudaGetLastError() later, or by a cast to void that says so."""
    with simt.check() as report:
        assert kernels.taken(torch.zeros(64)) == 1
        kernels.no_fault(torch.zeros(64))
    assert report.findings == []


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("void f() { cudaFree(p); }", True),
        ("void f() { if (p) cudaFree(p); }", True),
        ("void f() { ::cudaFree(p); }", True),
        ("void f() { for (;;) cudaFree(g(p)); }", True),
        ("void f() { (void)cudaFree(p); }", False),
        ("void f() { CHECK(cudaFree(p)); }", False),
        ("auto f() { return cudaFree(p); }", False),
        ("auto e = cudaFree(p);", False),
        ("#define cudaFree(p) g(p)\nvoid f() { cudaFree(p); }", False),
        ("void f() { cudaGetLastError(); cudaDeviceSynchronize(); }", False),
    ],
)
def test_is_a_call_marked_where_its_result_is_dropped(text, marked):
    assert ("simt::Dropped" in rewrite(Source(text, "a.cu"), checked=True).text) == marked
    assert "simt::Dropped" not in rewrite(Source(text, "a.cu")).text
