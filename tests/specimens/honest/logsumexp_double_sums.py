"""Sums are double, and the result is more precise than float32 asks for."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="double_lse",
    cpp_sources="torch::Tensor double_lse(torch::Tensor x);",
    cuda_sources=r"""
__global__ void double_lse_kernel(const float* x, float* y, int C, int P, int pixels) {
    const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= pixels) return;
    x += (size_t)(pixel / P) * C * P + pixel % P;
    double top = x[0];
    for (int c = 1; c < C; ++c) top = fmax(top, (double)x[(size_t)c * P]);
    if (isinf(top)) { y[pixel] = (float)top; return; }
    double sum = 0.0;
    for (int c = 0; c < C; ++c) sum += exp((double)x[(size_t)c * P] - top);
    y[pixel] = (float)(top + log(sum));
}

torch::Tensor double_lse(torch::Tensor x) {
    const int pixels = x.size(0) * x.size(2) * x.size(3);
    auto y = x.new_empty({x.size(0), 1, x.size(2), x.size(3)});
    double_lse_kernel<<<(pixels + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1),
                                                  x.size(2) * x.size(3), pixels);
    return y;
}
""",
    functions=["double_lse"],
)


class ModelNew(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        return ext.double_lse(x.contiguous())
