"""An autograd function, whose backward calls torch, around a kernel that gets a list of sizes."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <vector>

__global__ void layer_norm_kernel(const float* x, const float* gamma, const float* beta, float* y, float* mean_out,
                                  float* rstd_out, int n, float eps) {
    __shared__ float s_sum[256], s_sq[256];
    const float* row = x + (size_t)blockIdx.x * n;
    const int tid = threadIdx.x;
    float sum = 0.f;
    for (int i = tid; i < n; i += blockDim.x) sum += row[i];
    s_sum[tid] = sum;
    __syncthreads();
    for (int k = blockDim.x / 2; k > 0; k /= 2) {
        if (tid < k) s_sum[tid] += s_sum[tid + k];
        __syncthreads();
    }
    const float mean = s_sum[0] / n;
    float sq = 0.f;
    for (int i = tid; i < n; i += blockDim.x) {
        const float d = row[i] - mean;
        sq += d * d;
    }
    s_sq[tid] = sq;
    __syncthreads();
    for (int k = blockDim.x / 2; k > 0; k /= 2) {
        if (tid < k) s_sq[tid] += s_sq[tid + k];
        __syncthreads();
    }
    const float rstd = rsqrtf(s_sq[0] / n + eps);
    for (int i = tid; i < n; i += blockDim.x) y[(size_t)blockIdx.x * n + i] = (row[i] - mean) * rstd * gamma[i] + beta[i];
    if (tid == 0) {
        mean_out[blockIdx.x] = mean;
        rstd_out[blockIdx.x] = rstd;
    }
}

std::vector<torch::Tensor> layer_norm_forward(torch::Tensor x, std::vector<int64_t> shape, torch::Tensor gamma,
                                              torch::Tensor beta, double eps) {
    int64_t n = 1;
    for (auto s : shape) n *= s;
    const int64_t rows = x.numel() / n;
    auto y = torch::empty_like(x);
    auto mean = torch::empty({rows}, x.options()), rstd = torch::empty({rows}, x.options());
    layer_norm_kernel<<<rows, 256>>>(x.data_ptr<float>(), gamma.data_ptr<float>(), beta.data_ptr<float>(),
                                     y.data_ptr<float>(), mean.data_ptr<float>(), rstd.data_ptr<float>(), n, eps);
    return {y, mean, rstd};
}
"""

ext = load_inline(
    name="layer_norm_forward",
    cpp_sources="std::vector<torch::Tensor> layer_norm_forward(torch::Tensor x, std::vector<int64_t> shape, "
    "torch::Tensor gamma, torch::Tensor beta, double eps);",
    cuda_sources=source,
    functions=["layer_norm_forward"],
)


class LayerNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shape, weight, bias, eps):
        y, mean, rstd = ext.layer_norm_forward(x.contiguous(), shape, weight, bias, eps)
        ctx.save_for_backward(x, weight, mean, rstd)
        ctx.shape = shape
        return y

    @staticmethod
    def backward(ctx, grad):
        x, weight, mean, rstd = ctx.saved_tensors
        rows = x.numel() // weight.numel()
        x_hat = (x.reshape(rows, -1) - mean[:, None]) * rstd[:, None]
        flat = grad.reshape(rows, -1)
        g = flat * weight.flatten()
        dx = rstd[:, None] * (g - g.mean(1, keepdim=True) - x_hat * (g * x_hat).mean(1, keepdim=True))
        return dx.view_as(x), None, (flat * x_hat).sum(0).view(ctx.shape), flat.sum(0).view(ctx.shape), None


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple):
        super().__init__()
        self.shape = list(normalized_shape)
        self.weight = nn.Parameter(torch.ones(normalized_shape))
        self.bias = nn.Parameter(torch.zeros(normalized_shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return LayerNormFunction.apply(x, self.shape, self.weight, self.bias, 1e-5)
