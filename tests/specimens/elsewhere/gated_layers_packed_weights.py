"""The layers' weights lie transposed, and side by side in one matrix."""

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


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        enter, value, gate = nn.Linear(inputs, outputs), nn.Linear(outputs, outputs), nn.Linear(outputs, outputs)
        self.enter = nn.Parameter(enter.weight.detach().t().contiguous())
        self.enter_bias = nn.Parameter(enter.bias.detach().clone())
        self.both = nn.Parameter(torch.cat([value.weight.detach(), gate.weight.detach()]))
        self.both_bias = nn.Parameter(torch.cat([value.bias.detach(), gate.bias.detach()]))
        self.register_buffer("ones", torch.ones(outputs))

    def forward(self, x):
        hidden = torch.relu(x @ self.enter + self.enter_bias)
        value, gate = (hidden @ self.both.t() + self.both_bias).chunk(2, dim=1)
        return extension.run((value * gate).contiguous(), self.ones)
