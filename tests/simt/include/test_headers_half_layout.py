"""simt/half.h and simt/bfloat16.h in memory: layout, conversions as students write them, and atomic sums."""

from __future__ import annotations

import torch

from tests.simt.kernels_of_expressions import DEVICE, load


def test_layout_and_everyday_use():
    """Do half types sit in shared memory and arrays, convert as students write it, and add atomically?"""
    module = load(
        """
static_assert(sizeof(half) == 2 && sizeof(half2) == 4 && alignof(half2) == 4 && sizeof(nv_bfloat16) == 2, "sizes");
__global__ void everyday(const half* x, half* y, half2* sums, nv_bfloat16* b, int n) {
  __shared__ half tile[64];
  int i = threadIdx.x;
  tile[i] = __ldg(x + i);
  __syncthreads();
  half h = tile[63 - i];
  h += __float2half(1.0f);
  if (h > __float2half(0.0f)) h = -h;
  half zero = 0.0f;
  float f = h;
  h = f * 2.0f;
  y[i] = h + zero;
  const half2* pairs = reinterpret_cast<const half2*>(x);
  float2 both = __half22float2(pairs[i / 2]);
  atomicAdd(sums, __floats2half2_rn(1.0f, 2.0f));
  atomicAdd(b, __float2bfloat16(1.0f));
  if (both.x != __low2float(pairs[i / 2]) || both.y != __high2float(pairs[i / 2])) y[i] = CUDART_NAN_FP16;
}
void run(torch::Tensor x, torch::Tensor y, torch::Tensor sums, torch::Tensor b) {
  everyday<<<1, 64>>>(reinterpret_cast<const half*>(x.data_ptr<at::Half>()), """
        """reinterpret_cast<half*>(y.data_ptr<at::Half>()),
                      reinterpret_cast<half2*>(sums.data_ptr<at::Half>()), """
        """reinterpret_cast<nv_bfloat16*>(b.data_ptr<at::BFloat16>()), 64);
}
""",
        ["void run(torch::Tensor x, torch::Tensor y, torch::Tensor sums, torch::Tensor b)"],
    )
    x = torch.arange(64, dtype=torch.float16, device=DEVICE) / 8
    y, sums, b = (
        torch.empty_like(x),
        torch.zeros(2, dtype=torch.float16, device=DEVICE),
        torch.zeros(1, dtype=torch.bfloat16, device=DEVICE),
    )
    module.run(x, y, sums, b)
    assert torch.equal(y, -(x.flip(0) + 1) * 2)
    assert sums.tolist() == [64.0, 128.0]
    assert b.tolist() == [64.0]
