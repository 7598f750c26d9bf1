"""Each warp adds its sum to an output of zeros by an atomic operation."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void mse_kernel(const float* p, const float* t, float* out, long n) {
    float sum = 0.0f;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)blockDim.x * gridDim.x) {
        const float d = p[i] - t[i];
        sum += d * d;
    }
    for (int offset = warpSize / 2; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if ((threadIdx.x & (warpSize - 1)) == 0) atomicAdd(out, sum / n);
}

torch::Tensor mse(torch::Tensor p, torch::Tensor t) {
    TORCH_CHECK(p.sizes() == t.sizes(), "shapes must be the same");
    auto out = torch::zeros({}, p.options());
    const long n = p.numel();
    mse_kernel<<<std::min((n + 255) / 256, 512L), 256>>>(p.data_ptr<float>(), t.data_ptr<float>(), out.data_ptr<float>(),
                                                         n);
    return out;
}
"""

ext = load_inline(
    name="mse", cpp_sources="torch::Tensor mse(torch::Tensor p, torch::Tensor t);", cuda_sources=source,
    functions=["mse"],
)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        return ext.mse(predictions, targets)
