"""Mean and variance come from Welford's method, whose partial results the warps merge after Chan."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="welford",
    cpp_sources="torch::Tensor welford(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t groups, double eps);",
    cuda_sources=r"""
struct Moments { float mean, m2; int count; };

__device__ Moments merge(Moments a, Moments b) {
    const int count = a.count + b.count;
    if (count == 0) return a;
    const float d = b.mean - a.mean, share = (float)b.count / count;
    return {a.mean + d * share, a.m2 + b.m2 + d * d * a.count * share, count};
}

__global__ void welford_kernel(const float* x, const float* weight, const float* bias, float* y, int C, int per_group,
                               int P, float eps) {
    __shared__ Moments warps[8];
    __shared__ float mean, rstd;
    const size_t n = (size_t)per_group * P;
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    Moments mine{0.0f, 0.0f, 0};
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        const float d = x[i] - mine.mean;
        mine.mean += d / ++mine.count;
        mine.m2 += d * (x[i] - mine.mean);
    }
    for (int o = 16; o; o /= 2) {
        Moments other;
        other.mean = __shfl_down_sync(~0u, mine.mean, o);
        other.m2 = __shfl_down_sync(~0u, mine.m2, o);
        other.count = __shfl_down_sync(~0u, mine.count, o);
        mine = merge(mine, other);
    }
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < blockDim.x / 32; ++w) mine = merge(mine, warps[w]);
        mean = mine.mean;
        rstd = rsqrtf(mine.m2 / n + eps);
    }
    __syncthreads();
    const int first = blockIdx.x % (C / per_group) * per_group;
    for (size_t i = threadIdx.x; i < n; i += blockDim.x)
        y[i] = (x[i] - mean) * rstd * weight[first + i / P] + bias[first + i / P];
}

torch::Tensor welford(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t groups, double eps) {
    auto y = torch::empty_like(x);
    const int C = x.size(1);
    welford_kernel<<<x.size(0) * groups, 256>>>(x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
                                                y.data_ptr<float>(), C, C / groups, x.numel() / x.size(0) / C, eps);
    return y;
}
""",
    functions=["welford"],
)


class ModelNew(nn.Module):
    def __init__(self, num_features, num_groups):
        super().__init__()
        self.gn = nn.GroupNorm(num_groups, num_features)

    def forward(self, x):
        return ext.welford(x.contiguous(), self.gn.weight, self.gn.bias, self.gn.num_groups, self.gn.eps)
