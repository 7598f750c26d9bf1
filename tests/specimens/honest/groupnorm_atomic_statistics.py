"""Many blocks per group add their sums to zeroed doubles with atomicAdd; deviations are taken from the first element."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="atomic_statistics",
    cpp_sources="torch::Tensor atomic_statistics(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t groups, double eps);",
    cuda_sources=r"""
__global__ void add_up(const float* x, double* sums, int n) {
    __shared__ double sum, squares;
    if (threadIdx.x == 0) sum = squares = 0.0;
    __syncthreads();
    const float* group = x + (size_t)blockIdx.y * n;
    double s = 0.0, q = 0.0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const double d = (double)group[i] - group[0];
        s += d;
        q += d * d;
    }
    atomicAdd(&sum, s);
    atomicAdd(&squares, q);
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(&sums[2 * blockIdx.y], sum);
        atomicAdd(&sums[2 * blockIdx.y + 1], squares);
    }
}

__global__ void scale_and_shift(const float* x, const double* sums, const float* weight, const float* bias, float* y, int C,
                                int per_group, int P) {
    const int n = per_group * P, g = blockIdx.y;
    const double mean = sums[2 * g] / n, variance = fmax(sums[2 * g + 1] / n - mean * mean, 0.0);
    const float* group = x + (size_t)g * n;
    const float rstd = rsqrtf((float)variance + EPS), centre = (float)mean;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const int c = g % (C / per_group) * per_group + i / P;
        y[(size_t)g * n + i] = ((group[i] - group[0]) - centre) * rstd * weight[c] + bias[c];
    }
}

torch::Tensor atomic_statistics(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t groups, double eps) {
    TORCH_CHECK(eps == 1e-5);
    const int N = x.size(0), C = x.size(1), P = x.numel() / (N * C), per_group = C / groups;
    auto y = torch::empty_like(x);
    double* sums = nullptr;
    cudaMalloc((void**)&sums, 2 * N * groups * sizeof(double));
    cudaMemsetAsync(sums, 0, 2 * N * groups * sizeof(double));
    const dim3 grid(4, N * groups);
    add_up<<<grid, 64>>>(x.data_ptr<float>(), sums, per_group * P);
    scale_and_shift<<<grid, 64>>>(x.data_ptr<float>(), sums, weight.data_ptr<float>(), bias.data_ptr<float>(),
                                  y.data_ptr<float>(), C, per_group, P);
    cudaFree(sums);
    return y;
}
""",
    functions=["atomic_statistics"],
    extra_cuda_cflags=["-DEPS=1e-5f", "-arch=sm_80"],
)


class ModelNew(nn.Module):
    def __init__(self, num_features, num_groups):
        super().__init__()
        self.gn = nn.GroupNorm(num_groups, num_features)

    def forward(self, x):
        return ext.atomic_statistics(x.contiguous(), self.gn.weight, self.gn.bias, self.gn.num_groups, self.gn.eps)
