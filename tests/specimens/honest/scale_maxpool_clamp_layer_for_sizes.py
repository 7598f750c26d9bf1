"""nn.MaxPool2d is constructed only to hold the kernel size, and 3-D grids and blocks cover the result."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="pool_3d_grid",
    cpp_sources="torch::Tensor pool(torch::Tensor x, torch::Tensor scale, int64_t k, double low, double high);",
    cuda_sources=r"""
__device__ __forceinline__ float larger(float a, float b) { return a > b || isnan(a) ? a : b; }

__global__ void pool_kernel(const float* x, const float* scale, float* y, int C, int H, int W, int k, float low, float high,
                            int planes) {
    const int OH = H / k, OW = W / k;
    const int ow = blockIdx.x * blockDim.x + threadIdx.x, oh = blockIdx.y * blockDim.y + threadIdx.y;
    const int plane = blockIdx.z * blockDim.z + threadIdx.z;
    if (ow >= OW || oh >= OH || plane >= planes) return;
    const float s = scale[plane % C];
    const float* window = x + ((size_t)plane * H + oh * k) * W + ow * k;
    float best = window[0] * s;
    for (int i = 0; i < k; ++i)
        for (int j = 0; j < k; ++j) best = larger(best, window[(size_t)i * W + j] * s);
    if (!isnan(best)) best = fminf(fmaxf(best, low), high);
    y[((size_t)plane * OH + oh) * OW + ow] = best;
}

torch::Tensor pool(torch::Tensor x, torch::Tensor scale, int64_t k, double low, double high) {
    const int N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3), planes = N * C;
    auto y = torch::empty({N, C, H / k, W / k}, x.options());
    const dim3 block(8, 4, 4);
    const dim3 grid((W / k + 7) / 8, (H / k + 3) / 4, (planes + 3) / 4);
    pool_kernel<<<grid, block>>>(x.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(), C, H, W, k, low, high,
                                 planes);
    return y;
}
""",
    functions=["pool"],
)


class ModelNew(nn.Module):
    def __init__(self, scale_shape, maxpool_kernel_size, clamp_min, clamp_max):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(scale_shape))
        self.maxpool = nn.MaxPool2d(maxpool_kernel_size)
        self.bounds = float(clamp_min), float(clamp_max)

    def forward(self, x):
        return ext.pool(x.contiguous(), self.scale, self.maxpool.kernel_size, *self.bounds)
