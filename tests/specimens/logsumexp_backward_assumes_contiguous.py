"""The gradient that comes in is read as if it were contiguous."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
constexpr int THREADS = 128;

__global__ void forward_kernel(const float* x, float* y, int C, int pixels, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    x += i / pixels * C * pixels + i % pixels;
    float top = x[0];
    for (int c = 1; c < C; ++c) top = fmaxf(top, x[c * pixels]);
    float sum = 0.0f; if (isinf(top)) top = 0.0f;
    for (int c = 0; c < C; ++c) sum += expf(x[c * pixels] - top);
    y[i] = top + logf(sum);
}

__global__ void backward_kernel(const float* gy, const float* x, const float* y, float* gx, int C, int pixels, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int first = i / pixels * C * pixels + i % pixels;
    for (int c = 0; c < C; ++c) {
        gx[first + c * pixels] = gy[i] * expf(x[first + c * pixels] - y[i]);
    }
}

torch::Tensor forward(torch::Tensor x) {
    x = x.contiguous();
    int C = x.size(1), pixels = x.size(2) * x.size(3), total = x.size(0) * pixels;
    auto y = torch::empty({x.size(0), 1, x.size(2), x.size(3)}, x.options());
    forward_kernel<<<(total + THREADS - 1) / THREADS, THREADS>>>(x.data_ptr<float>(), y.data_ptr<float>(), C, pixels, total);
    return y;
}

torch::Tensor backward(torch::Tensor gy, torch::Tensor x, torch::Tensor y) {
    x = x.contiguous();
    int C = x.size(1), pixels = x.size(2) * x.size(3), total = x.size(0) * pixels;
    auto gx = torch::empty_like(x);
    backward_kernel<<<(total + THREADS - 1) / THREADS, THREADS>>>(
        gy.data_ptr<float>(), x.data_ptr<float>(), y.data_ptr<float>(), gx.data_ptr<float>(), C, pixels, total);
    return gx;
}
"""

module = load_inline(
    name="log_sum_exp",
    cpp_sources="torch::Tensor forward(torch::Tensor x); torch::Tensor backward(torch::Tensor gy, torch::Tensor x, torch::Tensor y);",
    cuda_sources=cuda_source,
    functions=["forward", "backward"],
)


class LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = module.forward(x)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, gy):
        x, y = ctx.saved_tensors
        return module.backward(gy, x, y)


class ModelNew(nn.Module):
    def forward(self, x):
        return LogSumExp.apply(x)
