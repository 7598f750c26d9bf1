"""A workspace from cudaMalloc lies in a static pointer, grows with the input, and is used again by later calls."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="static_workspace",
    cpp_sources="torch::Tensor lse_static(torch::Tensor x);",
    cuda_sources=r"""
static float* workspace = nullptr;
static size_t capacity = 0;

static float* reserve(size_t count) {
    if (count > capacity) {
        cudaFree(workspace);
        TORCH_CHECK(cudaMalloc(&workspace, count * sizeof(float)) == cudaSuccess, "no memory for the workspace");
        capacity = count;
    }
    return workspace;
}
__global__ void tops_kernel(const float* x, float* tops, int C, int P, int pixels) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    float top = -INFINITY;
    for (int c = 0; c < C; ++c) top = fmaxf(top, x[((size_t)(i / P) * C + c) * P + i % P]);
    tops[i] = top;
}
__global__ void sums_kernel(const float* x, const float* tops, float* y, int C, int P, int pixels) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    const float shift = isinf(tops[i]) ? 0.0f : tops[i];
    float sum = 0.0f;
    for (int c = 0; c < C; ++c) sum += expf(x[((size_t)(i / P) * C + c) * P + i % P] - shift);
    y[i] = shift + logf(sum);
}
torch::Tensor lse_static(torch::Tensor x) {
    auto y = torch::empty({x.size(0), 1, x.size(2), x.size(3)}, x.options());
    const int pixels = y.numel(), C = x.size(1), P = x.size(2) * x.size(3);
    float* tops = reserve(pixels);
    tops_kernel<<<(pixels + 63) / 64, 64>>>(x.data_ptr<float>(), tops, C, P, pixels);
    sums_kernel<<<(pixels + 63) / 64, 64>>>(x.data_ptr<float>(), tops, y.data_ptr<float>(), C, P, pixels);
    return y;
}
""",
    functions=["lse_static"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.lse_static(x.contiguous())
