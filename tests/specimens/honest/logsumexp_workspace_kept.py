"""Scratch memory is allocated once, kept in a buffer that is not saved, and grows when a larger input comes."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="scratch",
    cpp_sources="torch::Tensor with_scratch(torch::Tensor x, torch::Tensor scratch);",
    cuda_sources=r"""
__global__ void top_kernel(const float* x, float* top, int C, int P, int pixels) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    float best = -INFINITY;
    for (int c = 0; c < C; ++c) best = fmaxf(best, x[((size_t)(i / P) * C + c) * P + i % P]);
    top[i] = isinf(best) ? 0.0f : best;
}
__global__ void sum_kernel(const float* x, const float* top, float* y, int C, int P, int pixels) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    float sum = 0.0f;
    for (int c = 0; c < C; ++c) sum += expf(x[((size_t)(i / P) * C + c) * P + i % P] - top[i]);
    y[i] = top[i] + logf(sum);
}
torch::Tensor with_scratch(torch::Tensor x, torch::Tensor scratch) {
    auto y = torch::empty({x.size(0), 1, x.size(2), x.size(3)}, x.options());
    const int pixels = y.numel(), C = x.size(1), P = x.size(2) * x.size(3), blocks = (pixels + 127) / 128;
    TORCH_CHECK(scratch.numel() >= pixels);
    top_kernel<<<blocks, 128>>>(x.data_ptr<float>(), scratch.data_ptr<float>(), C, P, pixels);
    sum_kernel<<<blocks, 128>>>(x.data_ptr<float>(), scratch.data_ptr<float>(), y.data_ptr<float>(), C, P, pixels);
    return y;
}
""",
    functions=["with_scratch"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scratch", torch.empty(0), persistent=False)

    def forward(self, x):
        x = x.contiguous()
        needed = x.numel() // x.shape[1]
        if self.scratch.numel() < needed:
            self.scratch = torch.empty(needed, device=x.device)
        return ext.with_scratch(x, self.scratch)
