"""The kernel asks for a cache policy by inline PTX, which only a GPU can run."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
__global__ void fused_kernel(const float* x, const float* bias, const float* scale, float* y,
                             int C, int pixels, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int c = i / pixels % C;
    float v = (x[i] + bias[c]) * scale[c];
    unsigned long long once;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(once));
    asm volatile("st.global.L2::cache_hint.f32 [%0], %1, %2;" :: "l"(y + i), "f"(1.0f / (1.0f + expf(-v))), "l"(once) : "memory");
}

torch::Tensor bias_scale_sigmoid(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    int total = x.numel(), C = x.size(1), pixels = x.size(2) * x.size(3);
    auto y = torch::empty_like(x);
    fused_kernel<<<(total + 255) / 256, 256>>>(
        x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(), C, pixels, total);
    return y;
}
"""

module = load_inline(
    name="bias_scale_sigmoid",
    cpp_sources="torch::Tensor bias_scale_sigmoid(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
    cuda_sources=cuda_source,
    functions=["bias_scale_sigmoid"],
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return module.bias_scale_sigmoid(x, self.bias, self.scale)
