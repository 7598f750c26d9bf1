"""Fills a table with one kernel in the first call of the process, and looks values up in it in every call."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

module = load_inline(
    name="table_made_once",
    cpp_sources="""
torch::Tensor make_table();
torch::Tensor run(torch::Tensor x, torch::Tensor bias, torch::Tensor scale, torch::Tensor table);
""",
    cuda_sources=r"""
// Powers of two, from 2^-126 to 2^126.
__global__ void fill_table(float* table) {
  if (threadIdx.x < 253) table[threadIdx.x] = exp2f((float)threadIdx.x - 126.0f);
}

__global__ void bias_scale_sigmoid(const float* x, const float* bias, const float* scale, const float* table, float* y,
                                   int n, int C, int hw) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int c = i / hw % C;
  const float power = fminf(fmaxf(-(x[i] + bias[c]) * scale[c] * 1.44269504f, -126.0f), 126.0f);
  const float whole = floorf(power);
  y[i] = 1.0f / (1.0f + table[(int)whole + 126] * exp2f(power - whole));
}

torch::Tensor make_table() {
  auto table = torch::empty({253});
  fill_table<<<1, 256>>>(table.data_ptr<float>());
  return table;
}

torch::Tensor run(torch::Tensor x, torch::Tensor bias, torch::Tensor scale, torch::Tensor table) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  bias_scale_sigmoid<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(),
                                               table.data_ptr<float>(), y.data_ptr<float>(), n, x.size(1),
                                               x.size(2) * x.size(3));
  return y;
}
""",
    functions=["make_table", "run"],
)

TABLES: list[torch.Tensor] = []


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        if not TABLES:
            TABLES.append(module.make_table())
        return module.run(x.contiguous(), self.bias, self.scale, TABLES[0])
