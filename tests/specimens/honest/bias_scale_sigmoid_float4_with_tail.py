"""Four values at a time, with scalar code for what is left of each plane and for planes that begin in between."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <cstdint>

__device__ __forceinline__ float act(float x, float b, float s) { return 1.0f / (1.0f + __expf(-(x + b) * s)); }

__global__ void __launch_bounds__(128)
vector_kernel(const float* __restrict__ x, const float* __restrict__ bias, const float* __restrict__ scale,
              float* __restrict__ y, int C, int P) {
    const int plane = blockIdx.x;
    const float b = __ldg(&bias[plane % C]), s = __ldg(&scale[plane % C]);
    x += (int64_t)plane * P;
    y += (int64_t)plane * P;
    const bool aligned = ((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) & 15) == 0;
    const int vectors = aligned ? P / 4 : 0;
    const float4* x4 = reinterpret_cast<const float4*>(x);
    float4* y4 = reinterpret_cast<float4*>(y);
    for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
        float4 v = x4[i];
        v.x = act(v.x, b, s), v.y = act(v.y, b, s), v.z = act(v.z, b, s), v.w = act(v.w, b, s);
        y4[i] = v;
    }
    for (int i = 4 * vectors + threadIdx.x; i < P; i += blockDim.x) y[i] = act(x[i], b, s);
}

torch::Tensor vectors(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    auto y = torch::empty_like(x);
    const int planes = x.size(0) * x.size(1);
    vector_kernel<<<planes, 128>>>(x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(),
                                   y.data_ptr<float>(), x.size(1), x.size(2) * x.size(3));
    return y;
}
"""

extension = load_inline(
    name="float4_tail",
    cpp_sources="torch::Tensor vectors(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
    cuda_sources=cuda_source,
    functions=["vectors"],
    extra_cuda_cflags=["-O3", "--use_fast_math", "-lineinfo"],
    extra_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        assert x.dtype == torch.float32, "float32 only"
        return extension.vectors(x.contiguous(), self.bias, self.scale)
