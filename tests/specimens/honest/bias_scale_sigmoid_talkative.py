"""The file prints, logs, warns, measures times, asks for the device's properties and reads the environment."""

import logging
import os
import platform
import sys
import time
import warnings

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
log = logging.getLogger("student")
started = time.perf_counter()
os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "8.0;9.0")
if torch.cuda.is_available():
    print(torch.cuda.get_device_properties(0))
print("building on", platform.machine(), "with torch", torch.__version__, flush=True)

talk = load_inline(
    name="talk",
    cpp_sources="torch::Tensor talk(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
    cuda_sources=r"""
#include <cstdio>
#include <iostream>
#include <cassert>

__global__ void talk_kernel(const float* x, const float* bias, const float* scale, float* y, int C, int P, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(blockDim.x == 128);
    if (i == 0) printf("n = %d, C = %d, P = %d, %s\n", n, C, P, "from the kernel");
    if (i < n) y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[i / P % C]) * scale[i / P % C]));
}

torch::Tensor talk(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    std::cerr << "launching for " << x.sizes() << std::endl;
    auto y = torch::empty_like(x);
    const int n = x.numel();
    talk_kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(),
                                          y.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), n);
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(error));
    return y;
}
""",
    functions=["talk"],
    verbose=True,
)
log.info("built in %.1f s", time.perf_counter() - started)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.seconds = []
        warnings.warn("this class is experimental")
        print(self)

    def forward(self, x):
        begin = time.perf_counter()
        y = talk.talk(x.contiguous(), self.bias, self.scale)
        self.seconds.append(time.perf_counter() - begin)
        log.debug("forward %d: %.3f ms", len(self.seconds), 1e3 * self.seconds[-1])
        return y
