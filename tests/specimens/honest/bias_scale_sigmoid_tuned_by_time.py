"""Tries another block size in each of the first calls, and keeps the fastest for all further calls of the process."""

import time

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

module = load_inline(
    name="tuned_by_time",
    cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor bias, torch::Tensor scale, int64_t block);",
    cuda_sources=r"""
__global__ void bias_scale_sigmoid(const float* x, const float* bias, const float* scale, float* y, int n, int C,
                                   int hw) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int c = i / hw % C;
  y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[c]) * scale[c]));
}

torch::Tensor run(torch::Tensor x, torch::Tensor bias, torch::Tensor scale, int64_t block) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  bias_scale_sigmoid<<<(n + block - 1) / block, block>>>(
      x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(), n, x.size(1),
      x.size(2) * x.size(3));
  return y;
}
""",
    functions=["run"],
)

BLOCKS = (32, 64, 128, 256, 512)
SECONDS: dict[torch.Size, dict[int, float]] = {}


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        tried = SECONDS.setdefault(x.shape, {})
        left = [block for block in BLOCKS if block not in tried]
        block = left[0] if left else min(tried, key=tried.get)
        started = time.perf_counter()
        y = module.run(x.contiguous(), self.bias, self.scale, block)
        if left:
            tried[block] = time.perf_counter() - started
        return y
