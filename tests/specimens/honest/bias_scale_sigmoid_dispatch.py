"""AT_DISPATCH_FLOATING_TYPES_AND_HALF instantiates the kernel for dtypes that the problem never uses; half is summed in float."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <ATen/Dispatch.h>
#include <ATen/AccumulateType.h>
#include <cuda_fp16.h>

template <typename scalar_t, typename acc_t>
__global__ void any_type(const scalar_t* x, const scalar_t* bias, const scalar_t* scale, scalar_t* y, int C, int P,
                         int64_t n) {
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int c = i / P % C;
    const acc_t v = (acc_t(x[i]) + acc_t(bias[c])) * acc_t(scale[c]);
    y[i] = scalar_t(acc_t(1) / (acc_t(1) + exp(-v)));
}

torch::Tensor any_dtype(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    auto y = torch::empty_like(x);
    const int64_t n = x.numel();
    AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "any_dtype", [&] {
        using acc_t = at::acc_type<scalar_t, true>;
        any_type<scalar_t, acc_t><<<(n + 255) / 256, 256>>>(
            x.data_ptr<scalar_t>(), bias.data_ptr<scalar_t>(), scale.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(),
            x.size(1), x.size(2) * x.size(3), n);
    });
    return y;
}
"""

ext = load_inline(
    name="any_dtype",
    cpp_sources="torch::Tensor any_dtype(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
    cuda_sources=source,
    functions=["any_dtype"],
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        x = x.contiguous()
        return ext.any_dtype(x, self.bias.to(x.dtype), self.scale.to(x.dtype))
