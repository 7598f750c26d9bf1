"""A __device__ variable counts finished blocks; the last one resets it, so that each call begins with zero."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <c10/cuda/CUDAException.h>

__device__ unsigned int finished = 0;

// Blocks of one pixel each take a share of the channels; the last block to finish a grid adds the shares of all pixels.
__global__ void share_kernel(const float* x, float* tops, float* sums, float* y, int C, int P, int pixels, int shares) {
    const int pixel = blockIdx.x * blockDim.x + threadIdx.x, share = blockIdx.y;
    if (pixel < pixels) {
        const float* column = x + (size_t)(pixel / P) * C * P + pixel % P;
        const int first = share * C / shares, last = (share + 1) * C / shares;
        float top = -INFINITY, sum = 0.0f;
        for (int c = first; c < last; ++c) top = fmaxf(top, column[(size_t)c * P]);
        const float shift = isinf(top) ? 0.0f : top;
        for (int c = first; c < last; ++c) sum += expf(column[(size_t)c * P] - shift);
        tops[(size_t)share * pixels + pixel] = shift;
        sums[(size_t)share * pixels + pixel] = sum;
    }
    __threadfence();
    __shared__ bool is_last;
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicAdd(&finished, 1u) == gridDim.x * gridDim.y - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    for (int i = threadIdx.x; i < pixels; i += blockDim.x) {
        float top = -INFINITY, sum = 0.0f;
        for (int s = 0; s < shares; ++s)
            if (__ldcg(&sums[(size_t)s * pixels + i]) > 0.0f) top = fmaxf(top, __ldcg(&tops[(size_t)s * pixels + i]));
        const float shift = isinf(top) ? 0.0f : top;
        for (int s = 0; s < shares; ++s) {
            const float part = __ldcg(&sums[(size_t)s * pixels + i]);
            if (part > 0.0f) sum += isinf(part) ? part : part * expf(__ldcg(&tops[(size_t)s * pixels + i]) - shift);
        }
        y[i] = shift + logf(sum);
    }
    if (threadIdx.x == 0) finished = 0;
}

torch::Tensor counted(torch::Tensor x) {
    const int C = x.size(1), P = x.size(2) * x.size(3), pixels = x.size(0) * P, shares = 3;
    auto y = torch::empty({x.size(0), 1, x.size(2), x.size(3)}, x.options());
    auto tops = torch::empty({shares, pixels}, x.options()), sums = torch::empty_like(tops);
    share_kernel<<<dim3((pixels + 127) / 128, shares), 128>>>(x.data_ptr<float>(), tops.data_ptr<float>(),
        sums.data_ptr<float>(), y.data_ptr<float>(), C, P, pixels, shares);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

ext = load_inline(name="counted", cpp_sources="torch::Tensor counted(torch::Tensor x);", cuda_sources=source, functions=["counted"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.counted(x.contiguous())
