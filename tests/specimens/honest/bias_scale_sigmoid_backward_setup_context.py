"""setup_context saves what backward needs, and backward is once_differentiable."""

import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="setup_context",
    cpp_sources="""
torch::Tensor forward(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);
std::tuple<torch::Tensor, torch::Tensor, torch::Tensor> backward(torch::Tensor gy, torch::Tensor x, torch::Tensor y,
                                                                 torch::Tensor bias, torch::Tensor scale);
""",
    cuda_sources=r"""
#include <tuple>

__global__ void forward_kernel(const float* x, const float* bias, const float* scale, float* y, int C, int P, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[i / P % C]) * scale[i / P % C]));
}
__global__ void backward_kernel(const float* gy, const float* x, const float* y, const float* bias, const float* scale,
                                float* gx, int C, int P, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) gx[i] = gy[i] * y[i] * (1.0f - y[i]) * scale[i / P % C];
}
// A block per channel walks over all images: one order, whatever the schedule.
__global__ void sums_kernel(const float* gy, const float* x, const float* y, const float* bias, const float* scale,
                            float* gbias, float* gscale, int N, int C, int P) {
    __shared__ double first[128], second[128];
    const int c = blockIdx.x, t = threadIdx.x;
    double b = 0.0, s = 0.0;
    for (int i = t; i < N * P; i += 128) {
        const size_t at = ((size_t)(i / P) * C + c) * P + i % P;
        const double g = (double)gy[at] * y[at] * (1.0 - y[at]);
        b += g;
        s += g * ((double)x[at] + bias[c]);
    }
    first[t] = b;
    second[t] = s;
    for (int half = 64; half; half /= 2) {
        __syncthreads();
        if (t < half) first[t] += first[t + half], second[t] += second[t + half];
    }
    if (t == 0) {
        gbias[c] = (float)(first[0] * scale[c]);
        gscale[c] = (float)second[0];
    }
}
torch::Tensor forward(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    auto y = torch::empty_like(x);
    const int n = x.numel();
    forward_kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(),
                                             y.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), n);
    return y;
}
std::tuple<torch::Tensor, torch::Tensor, torch::Tensor> backward(torch::Tensor gy, torch::Tensor x, torch::Tensor y,
                                                                 torch::Tensor bias, torch::Tensor scale) {
    auto gx = torch::empty_like(x), gbias = torch::empty_like(bias), gscale = torch::empty_like(scale);
    const int n = x.numel(), C = x.size(1), P = x.size(2) * x.size(3);
    backward_kernel<<<(n + 127) / 128, 128>>>(gy.data_ptr<float>(), x.data_ptr<float>(), y.data_ptr<float>(),
        bias.data_ptr<float>(), scale.data_ptr<float>(), gx.data_ptr<float>(), C, P, n);
    sums_kernel<<<C, 128>>>(gy.data_ptr<float>(), x.data_ptr<float>(), y.data_ptr<float>(), bias.data_ptr<float>(),
        scale.data_ptr<float>(), gbias.data_ptr<float>(), gscale.data_ptr<float>(), x.size(0), C, P);
    return {gx, gbias, gscale};
}
""",
    functions=["forward", "backward"],
)


class BiasScaleSigmoid(torch.autograd.Function):
    @staticmethod
    def forward(x, bias, scale):
        return ext.forward(x.contiguous(), bias, scale)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        x, bias, scale, y = ctx.saved_tensors
        return ext.backward(grad_output.contiguous(), x.contiguous(), y, bias, scale)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return BiasScaleSigmoid.apply(x, self.bias, self.scale)
