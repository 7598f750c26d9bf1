"""The submission writes its CUDA source to a file, which load() builds."""

import os
import tempfile

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load

SOURCE = r"""
#include <torch/extension.h>

__global__ void scale_relu(const float* x, const float* scale, float* y, int count, int features) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = fmaxf(x[i] * scale[i % features], 0.0f);
}

torch::Tensor run(torch::Tensor x, torch::Tensor scale) {
  auto y = torch::empty_like(x);
  int count = x.numel();
  scale_relu<<<(count + 127) / 128, 128>>>(x.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(), count,
                                           x.size(1));
  return y;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""
path = os.path.join(tempfile.mkdtemp(), "kernel.cu")
with open(path, "w") as file:
    file.write(SOURCE)
extension = load(name="scaled", sources=[path])


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features))

    def forward(self, x):
        return extension.run(x, self.scale)
