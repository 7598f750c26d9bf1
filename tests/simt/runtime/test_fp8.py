"""Floats of 8 bits (cuda_fp8.h) in kernels, compared with torch's types and with CUDA's own header."""

import pytest
import torch

import simt
from simt.toolchain.headers import choose_header

SOURCE = r"""
#include <torch/extension.h>
#include <cuda_fp8.h>

template <class T> __global__ void narrow(const float* x, T* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = T(x[i]);
}
template <class T> __global__ void widen(const T* x, float* y, __half* h, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = float(x[i]), h[i] = __half(x[i]);
}
template <class T4> __global__ void by_fours(const float4* x, T4* y, float4* back, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = T4(x[i]), back[i] = float4(y[i]);
}
// Two numbers a thread by the instructions of sm_89, with the second in the upper half.
__global__ void by_ptx(const float2* x, unsigned short* y, unsigned short* z, unsigned* back, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __half2 h = __float22half2_rn(x[i]);
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(y[i]) : "f"(x[i].y), "f"(x[i].x));
  asm("cvt.rn.satfinite.e5m2x2.f16x2 %0, %1;" : "=h"(z[i]) : "r"(*(const unsigned*)&h));
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(back[i]) : "h"(y[i]));
}
// A row of weights with a scale for every 32 of them, a warp a row.
__global__ void scaled_product(const __nv_fp8x4_e4m3* w, const float* scales, const float4* x, float* y, int columns) {
  const int row = blockIdx.x, lane = threadIdx.x;
  float sum = 0;
  for (int c = lane; c < columns / 4; c += 32) {
    const float4 a = float4(w[row * columns / 4 + c]), b = x[c];
    sum += scales[row * columns / 32 + c / 8] * (a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w);
  }
  for (int offset = 16; offset; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
  if (lane == 0) y[row] = sum;
}

#define BOTH(kind, call) if (kind == 0) { using T = __nv_fp8_e4m3; using T4 = __nv_fp8x4_e4m3; call; } \
                         else { using T = __nv_fp8_e5m2; using T4 = __nv_fp8x4_e5m2; call; }
void run_narrow(int kind, torch::Tensor x, torch::Tensor y) {
  const int n = x.numel();
  BOTH(kind, (narrow<T><<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), (T*)y.data_ptr(), n)));
}
void run_widen(int kind, torch::Tensor x, torch::Tensor y, torch::Tensor h) {
  const int n = x.numel();
  BOTH(kind, (widen<T><<<(n + 127) / 128, 128>>>((const T*)x.data_ptr(), y.data_ptr<float>(),
                                                 (__half*)h.data_ptr(), n)));
}
void run_by_fours(int kind, torch::Tensor x, torch::Tensor y, torch::Tensor back) {
  const int n = x.numel() / 4;
  BOTH(kind, (by_fours<T4><<<(n + 127) / 128, 128>>>((const float4*)x.data_ptr(), (T4*)y.data_ptr(),
                                                     (float4*)back.data_ptr(), n)));
}
void run_by_ptx(torch::Tensor x, torch::Tensor y, torch::Tensor z, torch::Tensor back) {
  const int n = x.numel() / 2;
  by_ptx<<<(n + 127) / 128, 128>>>((const float2*)x.data_ptr(), (unsigned short*)y.data_ptr(),
                                   (unsigned short*)z.data_ptr(), (unsigned*)back.data_ptr(), n);
}
bool is_e4m3(torch::Tensor x) {
  return x.scalar_type() == torch::kFloat8_e4m3fn && (void*)x.data_ptr<at::Float8_e4m3fn>() == x.data_ptr();
}
void run_scaled_product(torch::Tensor w, torch::Tensor scales, torch::Tensor x, torch::Tensor y) {
  scaled_product<<<w.size(0), 32>>>((const __nv_fp8x4_e4m3*)w.data_ptr(), scales.data_ptr<float>(),
                                    (const float4*)x.data_ptr(), y.data_ptr<float>(), w.size(1));
}
"""
NAMES = ["run_narrow", "run_widen", "run_by_fours", "run_by_ptx", "run_scaled_product", "is_e4m3"]
DECLARED = (
    "void run_narrow(int kind, torch::Tensor x, torch::Tensor y);"
    "void run_widen(int kind, torch::Tensor x, torch::Tensor y, torch::Tensor h);"
    "void run_by_fours(int kind, torch::Tensor x, torch::Tensor y, torch::Tensor back);"
    "void run_by_ptx(torch::Tensor x, torch::Tensor y, torch::Tensor z, torch::Tensor back);"
    "void run_scaled_product(torch::Tensor w, torch::Tensor scales, torch::Tensor x, torch::Tensor y);"
    "bool is_e4m3(torch::Tensor x);"
)
KINDS = [(0, torch.float8_e4m3fn, 448.0), (1, torch.float8_e5m2, 57344.0)]


@pytest.fixture(scope="module")
def kernels():
    with simt.run(device="H200"):
        return simt.load_inline("fp8", DECLARED, SOURCE, functions=NAMES)


def floats() -> torch.Tensor:
    """Every float16, each a little smaller and larger, the numbers midway between neighbours, and random bits."""
    half = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.float16).float()
    draw = torch.Generator().manual_seed(8)
    bits = torch.randint(-(2**31), 2**31, (40000,), generator=draw).int().view(torch.float32)
    x = torch.cat([half, half * (1 + 1e-6), half * (1 - 1e-6), bits])
    return torch.cat([x, torch.zeros(-len(x) % 4)])


@pytest.mark.parametrize("kind, dtype, largest", KINDS)
def test_conversions_are_torchs_and_saturate(kernels, kind, dtype, largest):
    x = floats()
    y, fours, back = torch.empty(len(x), dtype=dtype), torch.empty(len(x), dtype=dtype), torch.empty_like(x)
    with simt.run(device="H200"):
        kernels.run_narrow(kind, x, y)
        kernels.run_by_fours(kind, x, fours, back)
    want = x.clamp(-largest, largest).to(dtype)
    number = ~x.isnan()
    assert torch.equal(y.view(torch.uint8)[number], want.view(torch.uint8)[number])
    assert y.float()[~number].isnan().all() and torch.equal(y.view(torch.uint8), fours.view(torch.uint8))
    assert torch.equal(back.nan_to_num(-1), want.float().nan_to_num(-1))


def test_torchs_names_of_the_types_are_in_the_light_header(kernels):
    """Does host code find a tensor's type and elements without the header of all operators?"""
    assert choose_header([DECLARED, SOURCE]) == "prelude"
    assert kernels.is_e4m3(torch.zeros(2).to(torch.float8_e4m3fn))
    assert not kernels.is_e4m3(torch.zeros(2).to(torch.float8_e5m2))


@pytest.mark.parametrize("kind, dtype, largest", KINDS)
def test_every_number_of_8_bits_is_widened_exactly(kernels, kind, dtype, largest):
    x = torch.arange(256).to(torch.uint8).view(dtype)
    y, h = torch.empty(256), torch.empty(256, dtype=torch.float16)
    with simt.run(device="H200"):
        kernels.run_widen(kind, x, y, h)
    assert torch.equal(y.isnan(), x.float().isnan()) and torch.equal(h.isnan(), y.isnan())
    assert torch.equal(y.nan_to_num(-1), x.float().nan_to_num(-1))
    assert torch.equal(h.float().nan_to_num(-1), y.nan_to_num(-1))


def test_instructions_of_inline_ptx(kernels):
    x = floats()
    x = x[~x.isnan()]
    x = x[: len(x) // 2 * 2]
    y, z = torch.empty(len(x), dtype=torch.float8_e4m3fn), torch.empty(len(x), dtype=torch.float8_e5m2)
    back = torch.empty(len(x), dtype=torch.float16)
    with simt.run(device="H200"):
        kernels.run_by_ptx(x, y, z, back)
    want = x.clamp(-448, 448).to(torch.float8_e4m3fn)
    assert torch.equal(y.view(torch.uint8), want.view(torch.uint8))
    assert torch.equal(back, want.to(torch.float16))
    want = x.half().float().clamp(-57344, 57344).to(torch.float8_e5m2)
    assert torch.equal(z.view(torch.uint8), want.view(torch.uint8))


def test_a_product_with_scales_for_groups_is_checked_and_counted(kernels):
    """Is a matrix-vector product right, without a finding, and does it load one byte a weight?"""
    rows, columns = 24, 256
    draw = torch.Generator().manual_seed(3)
    w = torch.randn(rows, columns, generator=draw)
    x = torch.randn(columns, generator=draw)
    scales = w.view(rows, -1, 32).abs().amax(2) / 448
    packed = (w.view(rows, -1, 32) / scales[..., None]).view(rows, columns).to(torch.float8_e4m3fn)
    want = (packed.double().view(rows, -1, 32) * scales.double()[..., None]).view(rows, columns) @ x.double()
    y = torch.empty(rows)
    with simt.check(device="H200") as report:
        checked = simt.load_inline("fp8", DECLARED, SOURCE, functions=NAMES)
        checked.run_scaled_product(packed, scales, x, y)
    assert not report.findings
    torch.testing.assert_close(y.double(), want, rtol=1e-5, atol=1e-4)
    with simt.count(device="H200") as counts:
        counted = simt.load_inline("fp8", DECLARED, SOURCE, functions=NAMES)
        counted.run_scaled_product(packed, scales, x, y)
    line = next(n for n, text in enumerate(SOURCE.splitlines(), 1) if "float4(w[row" in text)
    loads = [row.counters.global_loads for row in counts.lines if row.line == line]
    assert sum(each.bytes for each in loads) == rows * columns * (1 + 4)
