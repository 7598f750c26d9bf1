"""The CUDA source stands in a comment of the file, which the file reads, and builds in a temporary folder of its own."""

import os
import pathlib
import tempfile

import torch
import torch.nn as nn
from torch.utils.cpp_extension import CUDA_HOME, load_inline

# <cuda>
# __global__ void commented(const float* x, const float* bias, const float* scale, float* y, int C, int P, int n) {
#     const int i = blockIdx.x * blockDim.x + threadIdx.x;
#     if (i < n) y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[i / P % C]) * scale[i / P % C]));
# }
# torch::Tensor run_commented(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
#     auto y = torch::empty_like(x);
#     const int n = x.numel();
#     commented<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(),
#                                         y.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), n);
#     return y;
# }
# </cuda>

text = pathlib.Path(__file__).read_text(encoding="utf-8").split("# <cuda>\n", 1)[1].split("# </cuda>", 1)[0]
folder = tempfile.mkdtemp(prefix="own_")
ext = load_inline(
    name="commented",
    cpp_sources="torch::Tensor run_commented(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
    cuda_sources="".join(line.removeprefix("#") for line in text.splitlines(keepends=True)),
    functions=["run_commented"],
    build_directory=folder,
    extra_include_paths=[os.path.join(CUDA_HOME or "/usr/local/cuda", "include"), folder],
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return ext.run_commented(x.contiguous(), self.bias, self.scale)
