"""The weights lie in an nn.ParameterList, and a buffer counts the calls of forward."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="listed",
    cpp_sources="std::vector<torch::Tensor> listed(torch::Tensor x, std::vector<torch::Tensor> weights, int64_t groups, double eps);",
    cuda_sources=r"""
#include <vector>

__global__ void listed_kernel(const float* x, const float* w, const float* b, float* y, float* means, int C, int per_group,
                              int P, float eps) {
    extern __shared__ double sums[];
    const int n = per_group * P, t = threadIdx.x, T = blockDim.x;
    const size_t start = (size_t)blockIdx.x * n;
    double sum = 0, squares = 0;
    for (int i = t; i < n; i += T) {
        const double v = x[start + i];
        sum += v, squares += v * v;
    }
    sums[t] = sum, sums[T + t] = squares;
    for (int half = T / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) sums[t] += sums[t + half], sums[T + t] += sums[T + t + half];
    }
    __syncthreads();
    const double mean = sums[0] / n, variance = sums[T] / n - mean * mean;
    const float rstd = (float)(1.0 / sqrt((variance > 0 ? variance : 0) + eps));
    if (t == 0) means[blockIdx.x] = (float)mean;
    for (int i = t; i < n; i += T) {
        const int c = blockIdx.x % (C / per_group) * per_group + i / P;
        y[start + i] = (float)(x[start + i] - mean) * rstd * w[c] + b[c];
    }
}

std::vector<torch::Tensor> listed(torch::Tensor x, std::vector<torch::Tensor> weights, int64_t groups, double eps) {
    auto y = torch::empty_like(x), means = torch::empty({x.size(0), groups}, x.options());
    const int C = x.size(1), threads = 64;
    listed_kernel<<<x.size(0) * groups, threads, 2 * threads * sizeof(double)>>>(
        x.data_ptr<float>(), weights[0].data_ptr<float>(), weights[1].data_ptr<float>(), y.data_ptr<float>(),
        means.data_ptr<float>(), C, C / groups, x.numel() / x.size(0) / C, eps);
    return {y, means};
}
""",
    functions=["listed"],
)


class ModelNew(nn.Module):
    def __init__(self, num_features, num_groups):
        super().__init__()
        self.weights = nn.ParameterList([torch.ones(num_features), torch.zeros(num_features)])
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("last_means", torch.empty(0), persistent=False)
        self.num_groups = num_groups

    def forward(self, x):
        self.calls += 1
        y, self.last_means = ext.listed(x.contiguous(), list(self.weights), self.num_groups, 1e-5)
        return y
