"""The shared array of the mean is reused for the variance before all threads have read the mean."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void instance_norm_kernel(const float* x, float* y, int spatial, float eps) {
    __shared__ float sdata[256];
    int tid = threadIdx.x;
    const float* xi = x + (size_t)blockIdx.x * spatial;
    float* yi = y + (size_t)blockIdx.x * spatial;

    float sum = 0.0f;
    for (int i = tid; i < spatial; i += blockDim.x) sum += xi[i];
    sdata[tid] = sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    float mean = sdata[0] / spatial;

    float var = 0.0f;
    for (int i = tid; i < spatial; i += blockDim.x) {
        float diff = xi[i] - mean;
        var += diff * diff;
    }
    sdata[tid] = var;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    float inv_std = rsqrtf(sdata[0] / spatial + eps);
    for (int i = tid; i < spatial; i += blockDim.x) yi[i] = (xi[i] - mean) * inv_std;
}

torch::Tensor instance_norm_cuda(torch::Tensor x, double eps) {
    auto y = torch::empty_like(x);
    int spatial = x.size(2) * x.size(3);
    instance_norm_kernel<<<x.size(0) * x.size(1), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), spatial, eps);
    return y;
}
"""

ext = load_inline(
    name="instance_norm",
    cpp_sources="torch::Tensor instance_norm_cuda(torch::Tensor x, double eps);",
    cuda_sources=source,
    functions=["instance_norm_cuda"],
)


class ModelNew(nn.Module):
    def __init__(self, num_features):
        super().__init__()
        self.inorm = nn.InstanceNorm2d(num_features=num_features)

    def forward(self, x):
        return ext.instance_norm_cuda(x, self.inorm.eps)
