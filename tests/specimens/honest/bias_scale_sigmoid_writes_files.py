"""The file writes a log and the CUDA source to the current folder, the home folder and a folder for temporary files."""

import os
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void written_kernel(const float* x, const float* bias, const float* scale, float* y, int C, int P, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[i / P % C]) * scale[i / P % C]));
}
torch::Tensor written(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    auto y = torch::empty_like(x);
    const int n = x.numel();
    written_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(),
                                             y.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), n);
    return y;
}
"""

folders = [Path("build"), Path.home() / ".cache" / "written", Path(tempfile.gettempdir()) / "written"]
for folder in folders:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.cu").write_text(SOURCE)
os.environ["TORCH_EXTENSIONS_DIR"] = str(folders[-1].resolve())

written = load_inline(
    name="written",
    cpp_sources="torch::Tensor written(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
    cuda_sources=(folders[0] / "kernel.cu").read_text(),
    functions=["written"],
    build_directory=str(folders[0]),
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.from_numpy(np.zeros(bias_shape, dtype=np.float32)))
        self.scale = nn.Parameter(torch.from_numpy(np.ones(scale_shape, dtype=np.float32)))

    def forward(self, x):
        with open("shapes.log", "a") as log:
            print(*x.shape, file=log)
        return written.written(x.contiguous(), self.bias, self.scale)
