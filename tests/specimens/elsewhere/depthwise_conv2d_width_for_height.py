"""The padding's check of the rows compares with the width."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void depthwise(const float* x, const float* w, float* y, int C, int H, int W, int K, int OH, int OW,
                          int stride, int padding, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int ow = i % OW;
    int oh = (i / OW) % OH;
    int plane = i / (OW * OH);
    int c = plane % C;
    float acc = 0.0f;
    for (int kh = 0; kh < K; kh++) {
        int ih = oh * stride + kh - padding;
        if (ih < 0 || ih >= W) continue;
        for (int kw = 0; kw < K; kw++) {
            int iw = ow * stride + kw - padding;
            if (iw < 0 || iw >= W) continue;
            acc += x[(plane * H + ih) * W + iw] * w[(c * K + kh) * K + kw];
        }
    }
    y[i] = acc;
}

torch::Tensor run(torch::Tensor x, torch::Tensor w, int stride, int padding) {
    int H = x.size(2), W = x.size(3), K = w.size(2);
    int OH = (H + 2 * padding - K) / stride + 1, OW = (W + 2 * padding - K) / stride + 1;
    auto y = torch::empty({x.size(0), x.size(1), OH, OW}, x.options());
    int total = y.numel();
    depthwise<<<(total + 255) / 256, 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), x.size(1),
                                            H, W, K, OH, OW, stride, padding, total);
    return y;
}
"""

extension = load_inline(
    name="depthwise_planes",
    cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor w, int stride, int padding);",
    cuda_sources=source,
    functions=["run"],
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, kernel_size, stride=1, padding=0, bias=False):
        super().__init__()
        self.conv2d = nn.Conv2d(in_channels, in_channels, kernel_size, stride, padding, groups=in_channels, bias=bias)

    def forward(self, x):
        return extension.run(x, self.conv2d.weight, self.conv2d.stride[0], self.conv2d.padding[0])
