"""Order statistics are found by counting smaller ratios, without a sort; host code computes the ranks in Python."""

import math

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="ranks",
    cpp_sources="void ranks(torch::Tensor x, torch::Tensor y, int64_t below, int64_t above, int64_t middle, int64_t other);",
    cuda_sources=r"""
// x (N, 2, H, W), y (N, 3, H, 1); a block per (n, h)
__global__ void ranks_kernel(const float* x, float* y, int H, int W, int below, int above, int middle, int other) {
    __shared__ float median[2];
    const int n = blockIdx.x / H, h = blockIdx.x % H;
    const float *a = x + ((size_t)n * 2 * H + h) * W, *b = a + (size_t)H * W;
    for (int i = threadIdx.x; i < W; i += blockDim.x) {
        const float mine = a[i] / b[i];
        int rank = 0;
        for (int j = 0; j < W; ++j) {
            const float r = a[j] / b[j];
            rank += r < mine || (r == mine && j < i);
        }
        if (rank == below) y[(n * 3 + 1) * H + h] = mine;
        if (rank == above) y[(n * 3 + 2) * H + h] = mine;
        if (rank == middle) median[0] = mine;
        if (rank == other) median[1] = mine;
    }
    __syncthreads();
    if (threadIdx.x == 0) y[n * 3 * H + h] = (median[0] + median[1]) / 2;
}
void ranks(torch::Tensor x, torch::Tensor y, int64_t below, int64_t above, int64_t middle, int64_t other) {
    ranks_kernel<<<x.size(0) * x.size(2), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(2), x.size(3), below, above,
                                                middle, other);
}
""",
    functions=["ranks"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        n, _, h, w = x.shape
        y = torch.full((n, 3, h, 1), float("nan"), device=x.device)
        below = max(0, math.floor(w / 2 - 0.98 * math.sqrt(w)))
        ext.ranks(x.contiguous(), y, below, w - 1 - below, (w - 1) // 2, w // 2)
        return y
