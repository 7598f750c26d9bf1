"""A chain of functors is passed to a kernel template as one object, and a function pointer chooses the launcher."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
struct Affine {
    const float *bias, *scale;
    int C, P;
    __device__ float operator()(float x, int64_t i) const { return (x + bias[i / P % C]) * scale[i / P % C]; }
};
struct Sigmoid {
    __device__ float operator()(float v, int64_t) const { return 1.0f / (1.0f + expf(-v)); }
};
template <typename First, typename Second>
struct Chain {
    First first;
    Second second;
    __device__ float operator()(float x, int64_t i) const { return second(first(x, i), i); }
};

template <typename F, int PER_THREAD>
__global__ void map_kernel(const float* x, float* y, int64_t n, F f) {
    const int64_t start = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) * PER_THREAD;
#pragma unroll
    for (int k = 0; k < PER_THREAD; ++k)
        if (start + k < n) y[start + k] = f(x[start + k], start + k);
}

template <int PER_THREAD>
static void launch(const torch::Tensor& x, torch::Tensor& y, Chain<Affine, Sigmoid> f) {
    const int64_t n = x.numel(), blocks = (n + 128 * PER_THREAD - 1) / (128 * PER_THREAD);
    map_kernel<Chain<Affine, Sigmoid>, PER_THREAD><<<blocks, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, f);
}

torch::Tensor mapped(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    auto y = torch::empty_like(x);
    Chain<Affine, Sigmoid> f{{bias.data_ptr<float>(), scale.data_ptr<float>(), (int)x.size(1), (int)(x.size(2) * x.size(3))}, {}};
    using Launcher = void (*)(const torch::Tensor&, torch::Tensor&, Chain<Affine, Sigmoid>);
    const Launcher launchers[] = {&launch<1>, &launch<4>};
    launchers[x.numel() > 4096](x, y, f);
    return y;
}
"""

functors = load_inline(
    name="functors",
    cpp_sources="torch::Tensor mapped(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
    cuda_sources=source,
    functions=["mapped"],
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return functors.mapped(x.contiguous(), self.bias, self.scale)
