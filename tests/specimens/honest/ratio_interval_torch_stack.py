"""One kernel divides, another sorts copies in shared memory, and torch.stack and views put the columns together."""

import math

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="bitonic",
    cpp_sources="torch::Tensor divide(torch::Tensor a, torch::Tensor b);\ntorch::Tensor sort_rows(torch::Tensor rows);",
    cuda_sources=r"""
__global__ void divide_kernel(const float* a, const float* b, float* r, int64_t n) {
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) r[i] = __fdiv_rn(a[i], b[i]);
}
__global__ void sort_kernel(const float* rows, float* sorted, int W, int size) {
    extern __shared__ float s[];
    for (int i = threadIdx.x; i < size; i += blockDim.x) s[i] = i < W ? rows[(size_t)blockIdx.x * W + i] : INFINITY;
    for (int k = 2; k <= size; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < size; i += blockDim.x) {
                const int partner = i ^ j;
                if (partner > i && (s[i] > s[partner]) == ((i & k) == 0)) {
                    const float t = s[i];
                    s[i] = s[partner];
                    s[partner] = t;
                }
            }
        }
    __syncthreads();
    for (int i = threadIdx.x; i < W; i += blockDim.x) sorted[(size_t)blockIdx.x * W + i] = s[i];
}
torch::Tensor divide(torch::Tensor a, torch::Tensor b) {
    auto r = torch::empty_like(a);
    divide_kernel<<<(a.numel() + 127) / 128, 128>>>(a.data_ptr<float>(), b.data_ptr<float>(), r.data_ptr<float>(), a.numel());
    return r;
}
torch::Tensor sort_rows(torch::Tensor rows) {
    const int W = rows.size(-1);
    int size = 1;
    while (size < W) size *= 2;
    auto sorted = torch::empty_like(rows);
    sort_kernel<<<rows.numel() / W, 64, size * sizeof(float)>>>(rows.data_ptr<float>(), sorted.data_ptr<float>(), W, size);
    return sorted;
}
""",
    functions=["divide", "sort_rows"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        a, b = x.unbind(1)
        ratio = ext.sort_rows(ext.divide(a.contiguous(), b.contiguous()))
        w = ratio.shape[-1]
        below = max(0, math.floor(w / 2 - 0.98 * math.sqrt(w)))
        below = max(0, int((w / 2 - 0.98 * w**0.5) // 1))
        median = (ratio[..., (w - 1) // 2] + ratio[..., w // 2]) / 2  # few elements: glue
        return torch.stack([median, ratio[..., below], ratio[..., w - 1 - below]], dim=1).unsqueeze(-1)
