"""The sum is compensated after Kahan, and forward runs in inference mode."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cfloat>

// x (N, C, P) -> y (N, P)
__global__ void kahan_kernel(const float* x, float* y, int C, int P, int pixels) {
    const int stride = gridDim.x * blockDim.x;
    for (int pixel = blockIdx.x * blockDim.x + threadIdx.x; pixel < pixels; pixel += stride) {
        const float* column = x + (size_t)(pixel / P) * C * P + pixel % P;
        float top = -INFINITY;
        for (int c = 0; c < C; ++c) top = fmaxf(top, column[(size_t)c * P]);
        const float shift = fabsf(top) <= FLT_MAX ? top : 0.0f;
        float sum = 0.0f, lost = 0.0f;
        for (int c = 0; c < C; ++c) {
            const float term = expf(column[(size_t)c * P] - shift) - lost;
            const float next = sum + term;
            lost = isinf(next) ? 0.0f : (next - sum) - term;
            sum = next;
        }
        y[pixel] = shift + logf(sum);
    }
}

torch::Tensor kahan(torch::Tensor x) {
    x = x.contiguous();
    auto y = torch::empty({x.size(0), 1, x.size(2), x.size(3)}, x.options().requires_grad(false));
    const int pixels = y.numel();
    kahan_kernel<<<8, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), pixels);
    return y;
}
"""

ext = load_inline("kahan", ["torch::Tensor kahan(torch::Tensor x);"], [source], functions=["kahan"], extra_cuda_cflags=["-O2"])


class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()

    @torch.inference_mode()
    def forward(self, x):
        return ext.kahan(x)
