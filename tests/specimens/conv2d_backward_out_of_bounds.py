"""The gradient of x looks for windows below and to the right of the last one."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
constexpr int THREADS = 128;

__global__ void forward_kernel(const float* x, const float* weight, const float* bias, float* y,
                               int C, int H, int W, int OC, int K, int OH, int OW, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int ox = i % OW, oy = i / OW % OH, oc = i / OW / OH % OC, n = i / OW / OH / OC;
    float sum = bias[oc];
    for (int c = 0; c < C; ++c)
        for (int ky = 0; ky < K; ++ky)
            for (int kx = 0; kx < K; ++kx)
                sum += x[((n * C + c) * H + oy + ky) * W + ox + kx] * weight[((oc * C + c) * K + ky) * K + kx];
    y[i] = sum;
}

__global__ void gx_kernel(const float* gy, const float* weight, float* gx,
                          int C, int H, int W, int OC, int K, int OH, int OW, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int ix = i % W, iy = i / W % H, c = i / W / H % C, n = i / W / H / C;
    float sum = 0.0f;
    for (int oc = 0; oc < OC; ++oc)
        for (int ky = 0; ky < K; ++ky)
            for (int kx = 0; kx < K; ++kx) {
                int oy = iy - ky, ox = ix - kx;
                if (oy < 0 || ox < 0) continue;
                sum += gy[((n * OC + oc) * OH + oy) * OW + ox] * weight[((oc * C + c) * K + ky) * K + kx];
            }
    gx[i] = sum;
}

// One thread an element of weight.
__global__ void gweight_kernel(const float* gy, const float* x, float* gweight,
                               int N, int C, int H, int W, int OC, int K, int OH, int OW, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int kx = i % K, ky = i / K % K, c = i / K / K % C, oc = i / K / K / C;
    float sum = 0.0f;
    for (int n = 0; n < N; ++n)
        for (int oy = 0; oy < OH; ++oy)
            for (int ox = 0; ox < OW; ++ox)
                sum += gy[((n * OC + oc) * OH + oy) * OW + ox] * x[((n * C + c) * H + oy + ky) * W + ox + kx];
    gweight[i] = sum;
}

// One thread a channel.
__global__ void gbias_kernel(const float* gy, float* gbias, int N, int OC, int pixels) {
    int oc = blockIdx.x * blockDim.x + threadIdx.x;
    if (oc >= OC) return;
    float sum = 0.0f;
    for (int n = 0; n < N; ++n)
        for (int p = 0; p < pixels; ++p) sum += gy[(n * OC + oc) * pixels + p];
    gbias[oc] = sum;
}

torch::Tensor forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
    x = x.contiguous();
    int N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3), OC = weight.size(0), K = weight.size(2);
    int OH = H - K + 1, OW = W - K + 1, total = N * OC * OH * OW;
    auto y = torch::empty({N, OC, OH, OW}, x.options());
    forward_kernel<<<(total + THREADS - 1) / THREADS, THREADS>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), C, H, W, OC, K, OH, OW, total);
    return y;
}

std::vector<torch::Tensor> backward(torch::Tensor gy, torch::Tensor x, torch::Tensor weight) {
    gy = gy.contiguous();
    x = x.contiguous();
    int N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3), OC = weight.size(0), K = weight.size(2);
    int OH = H - K + 1, OW = W - K + 1;
    auto gx = torch::empty_like(x);
    auto gweight = torch::zeros_like(weight);
    auto gbias = torch::zeros({OC}, x.options());
    gx_kernel<<<(gx.numel() + THREADS - 1) / THREADS, THREADS>>>(
        gy.data_ptr<float>(), weight.data_ptr<float>(), gx.data_ptr<float>(), C, H, W, OC, K, OH, OW, gx.numel());
    gweight_kernel<<<(weight.numel() + THREADS - 1) / THREADS, THREADS>>>(
        gy.data_ptr<float>(), x.data_ptr<float>(), gweight.data_ptr<float>(), N, C, H, W, OC, K, OH, OW, weight.numel());
    gbias_kernel<<<(OC + THREADS - 1) / THREADS, THREADS>>>(gy.data_ptr<float>(), gbias.data_ptr<float>(), N, OC, OH * OW);
    return {gx, gweight, gbias};
}
"""

module = load_inline(
    name="conv2d",
    cpp_sources="""
torch::Tensor forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);
std::vector<torch::Tensor> backward(torch::Tensor gy, torch::Tensor x, torch::Tensor weight);
""",
    cuda_sources=cuda_source,
    functions=["forward", "backward"],
)


class Conv2d(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return module.forward(x, weight, bias)

    @staticmethod
    def backward(ctx, gy):
        return tuple(module.backward(gy, *ctx.saved_tensors))


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        return Conv2d.apply(x, self.conv.weight, self.conv.bias)
