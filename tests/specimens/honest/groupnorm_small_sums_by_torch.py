"""Kernels reduce each plane to a few moments, and PyTorch combines those small tensors before the last kernel."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="plane_moments",
    cpp_sources="torch::Tensor moments(torch::Tensor x);\ntorch::Tensor affine(torch::Tensor x, torch::Tensor factor, torch::Tensor centre, torch::Tensor offset);",
    cuda_sources=r"""
// x (planes, P) -> moments (planes, 2): mean and mean squared distance to it, by a warp per plane, in double
__global__ void moments_kernel(const float* x, double* moments, int P) {
    x += (size_t)blockIdx.x * P;
    double sum = 0.0;
    for (int p = threadIdx.x; p < P; p += 32) sum += x[p];
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, o);
    const double mean = sum / P;
    sum = 0.0;
    for (int p = threadIdx.x; p < P; p += 32) sum += (x[p] - mean) * (x[p] - mean);
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, o);
    if (threadIdx.x == 0) moments[2 * blockIdx.x] = mean, moments[2 * blockIdx.x + 1] = sum / P;
}
__global__ void affine_kernel(const float* x, const double* factor, const double* centre, const float* offset, float* y,
                              int C, int P) {
    const int plane = blockIdx.x;
    for (int p = threadIdx.x; p < P; p += blockDim.x)
        y[(size_t)plane * P + p] = (float)((x[(size_t)plane * P + p] - centre[plane]) * factor[plane]) + offset[plane % C];
}
torch::Tensor moments(torch::Tensor x) {
    auto result = torch::empty({x.size(0), x.size(1), 2}, x.options().dtype(torch::kDouble));
    moments_kernel<<<x.size(0) * x.size(1), 32>>>(x.data_ptr<float>(), result.data_ptr<double>(),
                                                  x.numel() / (x.size(0) * x.size(1)));
    return result;
}
torch::Tensor affine(torch::Tensor x, torch::Tensor factor, torch::Tensor centre, torch::Tensor offset) {
    auto y = torch::empty_like(x);
    affine_kernel<<<x.size(0) * x.size(1), 128>>>(x.data_ptr<float>(), factor.data_ptr<double>(),
        centre.data_ptr<double>(), offset.data_ptr<float>(), y.data_ptr<float>(), x.size(1),
        x.numel() / (x.size(0) * x.size(1)));
    return y;
}
""",
    functions=["moments", "affine"],
)


class ModelNew(nn.Module):
    def __init__(self, num_features, num_groups):
        super().__init__()
        self.gn = nn.GroupNorm(num_groups, num_features)

    def forward(self, x):
        x = x.contiguous()
        n, c = x.shape[:2]
        groups = self.gn.num_groups
        mean, spread = ext.moments(x).view(n, groups, c // groups, 2).unbind(-1)
        centre = mean.mean(-1, keepdim=True)
        variance = (spread + (mean - centre) ** 2).mean(-1, keepdim=True)
        factor = (variance + self.gn.eps).rsqrt().expand(n, groups, c // groups).reshape(n, c) * self.gn.weight
        centres = centre.expand(n, groups, c // groups).reshape(n, c)
        return ext.affine(x, factor.contiguous(), centres.contiguous(), self.gn.bias)
