"""Tiles of eight lanes from cooperative groups reduce the maximum and the sum of one pixel."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

constexpr int LANES = 8;

__global__ void tiles_kernel(const float* x, float* y, int C, int P, int pixels) {
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<LANES>(block);
    const int pixel = blockIdx.x * (blockDim.x / LANES) + tile.meta_group_rank();
    const bool works = pixel < pixels;
    const float* column = x + (works ? (size_t)(pixel / P) * C * P + pixel % P : 0);
    float top = -INFINITY;
    if (works) for (int c = tile.thread_rank(); c < C; c += LANES) top = fmaxf(top, column[(size_t)c * P]);
    top = cg::reduce(tile, top, cg::greater<float>());
    const float shift = isinf(top) ? 0.0f : top;
    float sum = 0.0f;
    if (works) for (int c = tile.thread_rank(); c < C; c += LANES) sum += expf(column[(size_t)c * P] - shift);
    sum = cg::reduce(tile, sum, cg::plus<float>());
    if (works && tile.thread_rank() == 0) y[pixel] = shift + logf(sum);
}

torch::Tensor tiles(torch::Tensor x) {
    auto y = torch::empty({x.size(0), 1, x.size(2), x.size(3)}, x.options());
    const int pixels = y.numel(), a_block = 128 / LANES;
    tiles_kernel<<<(pixels + a_block - 1) / a_block, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1),
                                                            x.size(2) * x.size(3), pixels);
    return y;
}
"""

ext = load_inline(name="tiles", cpp_sources="torch::Tensor tiles(torch::Tensor x);", cuda_sources=source, functions=["tiles"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.tiles(x.contiguous())
