"""The input is cloned, and three kernels work in place on the clone, which is returned."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

kernels = load_inline(
    name="in_place_on_copy",
    cpp_sources="void add_(torch::Tensor y, torch::Tensor b);\nvoid mul_(torch::Tensor y, torch::Tensor s);\nvoid sigmoid_(torch::Tensor y);",
    cuda_sources=r"""
#define EACH(i, n) for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)

__global__ void add_kernel(float* y, const float* b, int64_t C, int64_t P, int64_t n) { EACH(i, n) y[i] += b[i / P % C]; }
__global__ void mul_kernel(float* y, const float* s, int64_t C, int64_t P, int64_t n) { EACH(i, n) y[i] *= s[i / P % C]; }
__global__ void sigmoid_kernel(float* y, int64_t n) { EACH(i, n) y[i] = 1 / (1 + expf(-y[i])); }

#define GRID(t) <<<std::min<int64_t>(((t).numel() + 127) / 128, 1024), 128>>>

void add_(torch::Tensor y, torch::Tensor b) {
    add_kernel GRID(y) (y.data_ptr<float>(), b.data_ptr<float>(), y.size(1), y.stride(1), y.numel());
}
void mul_(torch::Tensor y, torch::Tensor s) {
    mul_kernel GRID(y) (y.data_ptr<float>(), s.data_ptr<float>(), y.size(1), y.stride(1), y.numel());
}
void sigmoid_(torch::Tensor y) { sigmoid_kernel GRID(y) (y.data_ptr<float>(), y.numel()); }
""",
    functions=["add_", "mul_", "sigmoid_"],
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        y = x.clone(memory_format=torch.contiguous_format)
        kernels.add_(y, self.bias)
        kernels.mul_(y, self.scale)
        kernels.sigmoid_(y)
        return y
