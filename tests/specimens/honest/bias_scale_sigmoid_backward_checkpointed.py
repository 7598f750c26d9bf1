"""torch.utils.checkpoint runs forward again in backward; the Function asks needs_input_grad and keeps nothing but its inputs."""

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="checkpointed",
    cpp_sources="torch::Tensor sigmoid(torch::Tensor x, torch::Tensor b, torch::Tensor s);\n"
    "std::vector<torch::Tensor> gradients(torch::Tensor g, torch::Tensor x, torch::Tensor b, torch::Tensor s, bool wants_x);",
    cuda_sources=r"""
template <typename T> __device__ T activate(T v) { return T(1) / (T(1) + exp(-v)); }

__global__ void sigmoid_kernel(const float* x, const float* b, const float* s, float* y, int C, int P) {
    const int plane = blockIdx.x;
    for (int p = threadIdx.x; p < P; p += blockDim.x)
        y[(size_t)plane * P + p] = activate((x[(size_t)plane * P + p] + b[plane % C]) * s[plane % C]);
}
__global__ void gradients_kernel(const float* g, const float* x, const float* b, const float* s, float* gx, float* parts, int C,
                                 int P) {
    const int plane = blockIdx.x, c = plane % C;
    float sum = 0.0f, weighted = 0.0f;
    for (int p = threadIdx.x; p < P; p += 32) {
        const size_t at = (size_t)plane * P + p;
        const float v = x[at] + b[c], y = activate(v * s[c]), d = g[at] * y * (1.0f - y);
        if (gx) gx[at] = d * s[c];
        sum += d;
        weighted += d * v;
    }
    for (int o = 16; o; o /= 2) {
        sum += __shfl_down_sync(0xffffffff, sum, o);
        weighted += __shfl_down_sync(0xffffffff, weighted, o);
    }
    if (threadIdx.x == 0) parts[2 * plane] = sum * s[c], parts[2 * plane + 1] = weighted;
}
torch::Tensor sigmoid(torch::Tensor x, torch::Tensor b, torch::Tensor s) {
    auto y = torch::empty_like(x);
    sigmoid_kernel<<<x.size(0) * x.size(1), 64>>>(x.data_ptr<float>(), b.data_ptr<float>(), s.data_ptr<float>(),
                                                  y.data_ptr<float>(), x.size(1), x.size(2) * x.size(3));
    return y;
}
std::vector<torch::Tensor> gradients(torch::Tensor g, torch::Tensor x, torch::Tensor b, torch::Tensor s, bool wants_x) {
    auto parts = torch::empty({x.size(0), x.size(1), 2}, x.options());
    torch::Tensor gx;
    if (wants_x) gx = torch::empty_like(x);
    gradients_kernel<<<x.size(0) * x.size(1), 32>>>(g.data_ptr<float>(), x.data_ptr<float>(), b.data_ptr<float>(),
        s.data_ptr<float>(), wants_x ? gx.data_ptr<float>() : nullptr, parts.data_ptr<float>(), x.size(1),
        x.size(2) * x.size(3));
    return {gx, parts};
}
""",
    functions=["sigmoid", "gradients"],
)


class Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias, scale):
        ctx.save_for_backward(x, bias, scale)
        ctx.set_materialize_grads(False)
        return ext.sigmoid(x, bias, scale)

    @staticmethod
    def backward(ctx, grad):
        if grad is None:
            return None, None, None
        x, bias, scale = ctx.saved_tensors
        wants_x, wants_bias, wants_scale = ctx.needs_input_grad
        gx, parts = ext.gradients(grad.contiguous(), x, bias, scale, wants_x)
        gbias, gscale = parts.sum(0).t()  # of N * C values each
        return gx, gbias.view_as(bias) if wants_bias else None, gscale.view_as(scale) if wants_scale else None


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return checkpoint(Fused.apply, x.contiguous(), self.bias, self.scale, use_reentrant=False)
