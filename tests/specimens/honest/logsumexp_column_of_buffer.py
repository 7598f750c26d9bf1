"""The kernel writes maximum, sum and result side by side, and forward returns the strided column of results."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="three_columns",
    cpp_sources="void three_columns(torch::Tensor x, torch::Tensor columns);",
    cuda_sources=r"""
__global__ void __launch_bounds__(64) columns_kernel(const float* x, float3* columns, int C, int P, int pixels) {
    const int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= pixels) return;
    const float* column = x + (size_t)(i / P) * C * P + i % P;
    float top = -INFINITY, sum = 0.0f;
    for (int c = 0; c < C; ++c) top = fmaxf(top, column[(size_t)c * P]);
    const float shift = isinf(top) ? 0.0f : top;
    for (int c = 0; c < C; ++c) sum += expf(column[(size_t)c * P] - shift);
    columns[i] = make_float3(top, sum, shift + logf(sum));
}
void three_columns(torch::Tensor x, torch::Tensor columns) {
    const int pixels = columns.size(0);
    columns_kernel<<<(pixels + 63) / 64, 64>>>(x.data_ptr<float>(),
                                               reinterpret_cast<float3*>(columns.data_ptr<float>()), x.size(1),
                                               x.size(2) * x.size(3), pixels);
}
""",
    functions=["three_columns"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        n, _, h, w = x.shape
        columns = x.new_empty(n * h * w, 3)
        ext.three_columns(x.contiguous(), columns)
        return columns[:, 2].view(n, 1, h, w)
