"""__init__ and forward take further arguments, which all have defaults, some of them only by keyword."""

from typing import Optional

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="optional_out",
    cpp_sources="torch::Tensor f(torch::Tensor x, torch::Tensor b, torch::Tensor s, c10::optional<torch::Tensor> out, int64_t threads);".replace("c10::", "std::"),
    cuda_sources=r"""
#include <optional>
__global__ void k(const float* x, const float* b, const float* s, float* y, int64_t C, int64_t P, int64_t n) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.f / (1.f + expf(-(x[i] + b[(i / P) % C]) * s[(i / P) % C]));
}
torch::Tensor f(torch::Tensor x, torch::Tensor b, torch::Tensor s, std::optional<torch::Tensor> out, int64_t threads) {
    torch::Tensor y = out.has_value() ? out.value() : torch::empty_like(x);
    TORCH_CHECK(y.sizes() == x.sizes() && y.is_contiguous());
    const int64_t n = x.numel();
    k<<<(n + threads - 1) / threads, threads>>>(x.data_ptr<float>(), b.data_ptr<float>(), s.data_ptr<float>(),
                                                y.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), n);
    return y;
}
""",
    functions=["f"],
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape, threads: int = 256, *, device: Optional[torch.device] = None, **unused):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape, device=device))
        self.scale = nn.Parameter(torch.randn(scale_shape, device=device))
        self.threads = threads

    def forward(self, x, out: Optional[torch.Tensor] = None, *, threads: Optional[int] = None):
        return ext.f(x.contiguous(), self.bias, self.scale, out, threads or self.threads)
