"""Own layers in a list hold the weights, and one kernel does a linear layer with its ReLU."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void linear_kernel(const float* x, const float* w, const float* b, float* y, int batch, int in, int out,
                              bool relu) {
    const int o = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32, row = blockIdx.y;
    if (o >= out) return;
    float sum = 0.0f;
    for (int i = lane; i < in; i += 32) sum += x[row * in + i] * w[o * in + i];
    for (int offset = 16; offset; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (lane == 0) {
        sum += b[o];
        y[row * out + o] = relu ? fmaxf(sum, 0.0f) : sum;
    }
}

torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b, bool relu) {
    auto y = torch::empty({x.size(0), w.size(0)}, x.options());
    dim3 grid((w.size(0) + 3) / 4, x.size(0));
    linear_kernel<<<grid, 128>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(),
                                 x.size(0), x.size(1), w.size(0), relu);
    return y;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("linear", &linear, py::arg("x"), py::arg("weight"), py::arg("bias"), py::arg("relu") = true);
}
"""

ext = load_inline(name="mlp_linear", cpp_sources="", cuda_sources=source)


class ModelNew(nn.Module):
    def __init__(self, input_size, layer_sizes, output_size):
        super().__init__()
        sizes = [input_size, *layer_sizes, output_size]
        self.fcs = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        for fc in self.fcs[:-1]:
            x = ext.linear(x, fc.weight, fc.bias)
        return ext.linear(x, self.fcs[-1].weight, bias=self.fcs[-1].bias, relu=False)
