"""Images are lowered to columns a few at a time into one workspace, with two kernels in a loop over chunks of the batch."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="chunks",
    cpp_sources="torch::Tensor chunks(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t chunk);",
    cuda_sources=r"""
#include <torch/torch.h>

__global__ void lower_kernel(const float* x, float* columns, int C, int H, int W, int k, int OH, int OW) {
    const int p = blockIdx.x * blockDim.x + threadIdx.x, K = C * k * k, P = OH * OW;
    if (p >= P) return;
    const int row = blockIdx.y, n = blockIdx.z, c = row / (k * k), i = row / k % k, j = row % k;
    columns[((size_t)n * K + row) * P + p] = x[(((size_t)n * C + c) * H + p / OW + i) * W + p % OW + j];
}
__global__ void multiply_kernel(const float* columns, const float* weight, const float* bias, float* y, int OC, int K, int P) {
    const int p = blockIdx.x * blockDim.x + threadIdx.x, oc = blockIdx.y, n = blockIdx.z;
    if (p >= P) return;
    float sum = 0.0f;
    for (int i = 0; i < K; ++i) sum = fmaf(weight[oc * K + i], columns[((size_t)n * K + i) * P + p], sum);
    y[((size_t)n * OC + oc) * P + p] = sum + bias[oc];
}
torch::Tensor chunks(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t chunk) {
    const int N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3), OC = weight.size(0), k = weight.size(2);
    const int OH = H - k + 1, OW = W - k + 1, P = OH * OW, K = C * k * k;
    auto y = x.new_empty({N, OC, OH, OW});
    auto columns = x.new_empty({chunk, K, P});
    for (int64_t first = 0; first < N; first += chunk) {
        const int count = std::min<int64_t>(chunk, N - first);
        lower_kernel<<<dim3((P + 127) / 128, K, count), 128>>>(x[first].data_ptr<float>(), columns.data_ptr<float>(), C, H,
                                                               W, k, OH, OW);
        multiply_kernel<<<dim3((P + 127) / 128, OC, count), 128>>>(
            columns.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
            y.narrow(0, first, count).data_ptr<float>(), OC, K, P);
    }
    return y;
}
""",
    functions=["chunks"],
)


class ModelNew(nn.Module):
    chunk = 2

    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        return ext.chunks(x.contiguous(), self.conv.weight, self.conv.bias, self.chunk)
