"""The extension's files lie in a folder next to this one, and load() builds them."""

import os

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load

HERE = os.path.dirname(os.path.abspath(__file__))
extension = load(
    name="scaled",
    sources=[os.path.join(HERE, "csrc", "binding.cpp"), os.path.join(HERE, "csrc", "kernel.cu")],
    extra_include_paths=[os.path.join(HERE, "csrc")],
    extra_cuda_cflags=["-O3", "--use_fast_math"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features))

    def forward(self, x):
        return extension.run(x, self.scale)
