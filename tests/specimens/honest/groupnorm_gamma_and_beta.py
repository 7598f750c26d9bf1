"""The weights are called gamma and beta, and a buffer of the same shape is registered between them."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="gamma_beta",
    cpp_sources="torch::Tensor gamma_beta(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta, int64_t G, double eps);",
    cuda_sources=r"""
// One thread per group: slow, and easy to check.
__global__ void moments_kernel(const float* x, double* moments, int64_t elements, int64_t groups, double eps) {
    const int64_t g = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (g >= groups) return;
    double sum = 0.0, squares = 0.0;
    for (int64_t i = 0; i < elements; ++i) {
        const double v = x[g * elements + i];
        sum += v;
        squares += v * v;
    }
    const double mean = sum / elements;
    moments[2 * g] = mean;
    moments[2 * g + 1] = rsqrt(fmax(squares / elements - mean * mean, 0.0) + eps);
}
__global__ void apply_kernel(const float* x, const double* moments, const float* gamma, const float* beta, float* y,
                             int64_t C, int64_t P, int64_t per_group, int64_t n) {
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int64_t c = i / P % C, g = i / P / per_group;
    y[i] = (float)((x[i] - moments[2 * g]) * moments[2 * g + 1]) * gamma[c] + beta[c];
}
torch::Tensor gamma_beta(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta, int64_t G, double eps) {
    const int64_t N = x.size(0), C = x.size(1), n = x.numel(), P = n / (N * C);
    auto moments = torch::empty({N * G, 2}, x.options().dtype(torch::kFloat64));
    auto y = torch::empty_like(x);
    moments_kernel<<<(N * G + 31) / 32, 32>>>(x.data_ptr<float>(), moments.data_ptr<double>(), n / (N * G), N * G, eps);
    apply_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), moments.data_ptr<double>(), gamma.data_ptr<float>(),
                                           beta.data_ptr<float>(), y.data_ptr<float>(), C, P, C / G, n);
    return y;
}
""",
    functions=["gamma_beta"],
)


class ModelNew(nn.Module):
    def __init__(self, num_features, num_groups, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(num_features))
        self.register_buffer("ones", torch.ones(num_features))
        self.beta = nn.Parameter(torch.zeros(num_features))
        self.num_groups, self.eps = num_groups, eps

    def forward(self, x):
        gamma = (self.gamma * self.ones).view(-1, 1)
        return ext.gamma_beta(x.contiguous(), gamma, self.beta.unsqueeze(1), self.num_groups, self.eps)
