"""Dynamic shared memory holds a tile with its halo and all weights of one output channel, sized at run time."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="dynamic_shared",
    cpp_sources="torch::Tensor dynamic_shared(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);",
    cuda_sources=r"""
#include <c10/cuda/CUDAException.h>

constexpr int TILE = 8;

__global__ void shared_kernel(const float* x, const float* weight, const float* bias, float* y, int C, int H, int W, int OC,
                              int k) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int side = TILE + k - 1, OH = H - k + 1, OW = W - k + 1;
    float* tile = reinterpret_cast<float*>(memory);
    float* filter = tile + side * side;
    const int oc = blockIdx.z % OC, n = blockIdx.z / OC;
    const int thread = threadIdx.y * TILE + threadIdx.x;
    for (int i = thread; i < C * k * k; i += TILE * TILE) filter[i] = weight[(size_t)oc * C * k * k + i];
    const int row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
    const int row = row0 + threadIdx.y, column = column0 + threadIdx.x;
    float sum = bias[oc];
    for (int c = 0; c < C; ++c) {
        __syncthreads();
        for (int i = thread; i < side * side; i += TILE * TILE) {
            const int r = row0 + i / side, s = column0 + i % side;
            tile[i] = r < H && s < W ? x[(((size_t)n * C + c) * H + r) * W + s] : 0.0f;
        }
        __syncthreads();
        for (int i = 0; i < k; ++i)
            for (int j = 0; j < k; ++j)
                sum += tile[(threadIdx.y + i) * side + threadIdx.x + j] * filter[(c * k + i) * k + j];
    }
    if (row < OH && column < OW) y[(((size_t)n * OC + oc) * OH + row) * OW + column] = sum;
}

torch::Tensor dynamic_shared(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
    const int N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3), OC = weight.size(0), k = weight.size(2);
    const int OH = H - k + 1, OW = W - k + 1, side = TILE + k - 1;
    auto y = torch::empty({N, OC, OH, OW}, x.options());
    const size_t bytes = (side * side + C * k * k) * sizeof(float);
    C10_CUDA_CHECK(cudaFuncSetAttribute(shared_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    shared_kernel<<<dim3((OW + TILE - 1) / TILE, (OH + TILE - 1) / TILE, N * OC), dim3(TILE, TILE), bytes>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), C, H, W, OC, k);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
""",
    functions=["dynamic_shared"],
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels, kernel_size, kernel_size))
        self.bias = nn.Parameter(torch.empty(out_channels))
        nn.init.kaiming_uniform_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x):
        return ext.dynamic_shared(x.contiguous(), self.weight, self.bias)
