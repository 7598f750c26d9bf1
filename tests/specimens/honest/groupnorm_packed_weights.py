"""Weight and bias lie interleaved in one buffer of float2, which load_reference fills from a Model; it has no parameters."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__inline__ __device__ float block_sum(float v, float* warps) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = v;
    __syncthreads();
    v = 0;
    for (int w = 0; w < (int)(blockDim.x >> 5); ++w) v += warps[w];
    return v;
}

__global__ void packed_kernel(const float* x, const float2* affine, float* y, int C, int per_group, int P, float eps) {
    __shared__ float warps[32];
    const int n = per_group * P;
    const float* in = x + (size_t)blockIdx.x * n;
    float* out = y + (size_t)blockIdx.x * n;
    float s = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) s += in[i] - in[0];
    const float mean = in[0] + block_sum(s, warps) / n;
    s = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) s += (in[i] - mean) * (in[i] - mean);
    const float rstd = 1.0f / sqrtf(block_sum(s, warps) / n + eps);
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const float2 wb = affine[blockIdx.x % (C / per_group) * per_group + i / P];
        out[i] = (in[i] - mean) * rstd * wb.x + wb.y;
    }
}

torch::Tensor packed(torch::Tensor x, torch::Tensor affine, int64_t groups, double eps) {
    auto y = torch::empty_like(x);
    const int C = x.size(1);
    packed_kernel<<<x.size(0) * groups, 128>>>(x.data_ptr<float>(), (const float2*)affine.data_ptr<float>(),
                                               y.data_ptr<float>(), C, C / groups, x.numel() / x.size(0) / C, eps);
    return y;
}
"""

ext = load_inline(
    name="packed",
    cpp_sources="torch::Tensor packed(torch::Tensor x, torch::Tensor affine, int64_t groups, double eps);",
    cuda_sources=source,
    functions=["packed"],
)


class ModelNew(nn.Module):
    def __init__(self, num_features, num_groups):
        super().__init__()
        self.num_groups = num_groups
        self.eps = 1e-5
        self.register_buffer("affine", torch.zeros(num_features, 2))

    def load_reference(self, model):
        self.affine.copy_(torch.stack([model.gn.weight, model.gn.bias], dim=1))
        self.eps = model.gn.eps

    def forward(self, x):
        return ext.packed(x.contiguous(), self.affine, self.num_groups, self.eps)
