"""Maxima are found with atomicMax on integers that order like the floats, in a scratch tensor that is filled first."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="ordered",
    cpp_sources="torch::Tensor ordered(torch::Tensor x, torch::Tensor scale, int64_t k, double low, double high);",
    cuda_sources=r"""
__device__ int to_ordered(float v) {
    if (isnan(v)) return 0x7fffffff;
    const int bits = __float_as_int(v);
    return bits >= 0 ? bits : bits ^ 0x7fffffff;
}
__device__ float from_ordered(int v) { return v == 0x7fffffff ? nanf("") : __int_as_float(v >= 0 ? v : v ^ 0x7fffffff); }

__global__ void spread_kernel(const float* x, const float* scale, int* best, int C, int H, int W, int k, int64_t n) {
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int w = i % W / k, h = i / W % H / k, OH = H / k, OW = W / k;
    const int64_t plane = i / W / H;
    if (w < OW && h < OH) atomicMax(&best[(plane * OH + h) * OW + w], to_ordered(x[i] * scale[plane % C]));
}
__global__ void gather_kernel(const int* best, float* y, float low, float high, int64_t n) {
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float v = from_ordered(best[i]);
    y[i] = v < low ? low : v > high ? high : v;
}
torch::Tensor ordered(torch::Tensor x, torch::Tensor scale, int64_t k, double low, double high) {
    const int64_t N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
    auto best = torch::full({N, C, H / k, W / k}, std::numeric_limits<int>::min(), x.options().dtype(torch::kInt32));
    auto y = torch::empty(best.sizes(), x.options());
    spread_kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), scale.data_ptr<float>(), best.data_ptr<int>(), C, H,
                                                    W, k, x.numel());
    gather_kernel<<<(y.numel() + 255) / 256, 256>>>(best.data_ptr<int>(), y.data_ptr<float>(), low, high, y.numel());
    return y;
}
""",
    functions=["ordered"],
)


class ModelNew(nn.Module):
    def __init__(self, scale_shape, maxpool_kernel_size, clamp_min, clamp_max):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(scale_shape))
        self.k, self.low, self.high = maxpool_kernel_size, clamp_min, clamp_max

    def forward(self, x):
        return ext.ordered(x.contiguous(), self.scale, self.k, self.low, self.high)
