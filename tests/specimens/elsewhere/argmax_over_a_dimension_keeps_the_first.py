"""Each thread walks along the dimension and writes an index of 64 bits."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <limits>

template <typename T>
__global__ void argmax_kernel(const T* __restrict__ x, int64_t* __restrict__ y, int64_t outer, int64_t n, int64_t inner) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= outer * inner) return;
    const T* at = x + (i / inner) * n * inner + i % inner;
    T best = -std::numeric_limits<T>::infinity();
    int64_t index = 0;
    for (int64_t j = 0; j < n; ++j) {
        const T v = at[j * inner];
        if (v > best) {
            best = v;
            index = j;
        }
    }
    y[i] = index;
}

torch::Tensor argmax(torch::Tensor x, int64_t dim) {
    x = x.contiguous();
    int64_t outer = 1, inner = 1;
    std::vector<int64_t> shape;
    for (int64_t d = 0; d < x.dim(); ++d) {
        if (d < dim) outer *= x.size(d);
        if (d > dim) inner *= x.size(d);
        if (d != dim) shape.push_back(x.size(d));
    }
    auto y = torch::empty(shape, x.options().dtype(torch::kLong));
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "argmax", [&] {
        argmax_kernel<scalar_t><<<(outer * inner + 255) / 256, 256>>>(x.data_ptr<scalar_t>(), y.data_ptr<int64_t>(),
                                                                      outer, x.size(dim), inner);
    });
    return y;
}
"""

ext = load_inline(
    name="argmax", cpp_sources="torch::Tensor argmax(torch::Tensor x, int64_t dim);", cuda_sources=source,
    functions=["argmax"],
)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return ext.argmax(x, self.dim)
