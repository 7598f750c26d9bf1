"""The weights go to constant memory before each launch."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__constant__ float c_weight[4096];

__global__ void conv3d_kernel(const float* x, const float* bias, float* y, int N, int C, int D, int H, int W, int O,
                              int KD, int KH, int KW, int OD, int OH, int OW) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= N * O * OD * OH * OW) return;
    int ow = idx % OW, oh = idx / OW % OH, od = idx / (OW * OH) % OD, o = idx / (OW * OH * OD) % O;
    int n = idx / (OW * OH * OD * O);
    float acc = bias[o];
    for (int c = 0; c < C; ++c)
        for (int kd = 0; kd < KD; ++kd)
            for (int kh = 0; kh < KH; ++kh)
                for (int kw = 0; kw < KW; ++kw) {
                    int at = (((n * C + c) * D + od + kd) * H + oh + kh) * W + ow + kw;
                    acc = fmaf(x[at], c_weight[(((o * C + c) * KD + kd) * KH + kh) * KW + kw], acc);
                }
    y[idx] = acc;
}

torch::Tensor conv3d(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
    TORCH_CHECK(weight.numel() <= 4096, "too many weights for constant memory");
    auto stream = at::cuda::getCurrentCUDAStream();
    cudaMemcpyToSymbolAsync(c_weight, weight.data_ptr<float>(), weight.numel() * sizeof(float), 0,
                            cudaMemcpyDeviceToDevice, stream);
    const int OD = x.size(2) - weight.size(2) + 1, OH = x.size(3) - weight.size(3) + 1,
              OW = x.size(4) - weight.size(4) + 1;
    auto y = torch::empty({x.size(0), weight.size(0), OD, OH, OW}, x.options());
    conv3d_kernel<<<(y.numel() + 255) / 256, 256, 0, stream>>>(
        x.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1), x.size(2), x.size(3),
        x.size(4), weight.size(0), weight.size(2), weight.size(3), weight.size(4), OD, OH, OW);
    return y;
}
"""

module = load_inline(
    name="conv3d_constant",
    cpp_sources="torch::Tensor conv3d(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);",
    cuda_sources=source,
    functions=["conv3d"],
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels, *kernel_size))
        self.bias = nn.Parameter(torch.empty(out_channels))
        nn.init.kaiming_uniform_(self.weight)
        nn.init.zeros_(self.bias)

    @torch.no_grad()
    def forward(self, x):
        return module.conv3d(x.contiguous(), self.weight.contiguous(), self.bias)
