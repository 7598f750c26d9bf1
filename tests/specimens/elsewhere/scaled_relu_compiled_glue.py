"""A part of the work is left to torch.compile."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

extension = load_inline(
    name="scaled",
    cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor scale);",
    cuda_sources=r"""__global__ void scale_relu(const float* x, const float* scale, float* y, int count, int features) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        float v = x[i] * scale[i % features];
        y[i] = v > 0.0f ? v : 0.0f;
    }
}

torch::Tensor run(torch::Tensor x, torch::Tensor scale) {
    auto y = torch::empty_like(x);
    int count = x.numel();
    scale_relu<<<(count + 127) / 128, 128>>>(x.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(), count,
                                             x.size(1));
    return y;
}
""",
    functions=["run"],
)


@torch.compile
def shift(y):
    return torch.relu(y) + torch.sin(y) - torch.sin(y)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features))

    def forward(self, x):
        return shift(extension.run(x, self.scale))
