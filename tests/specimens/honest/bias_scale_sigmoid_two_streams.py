"""Halves of the batch run on two CUDA streams that wait for each other by events; without a GPU one after the other."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

kernels = load_inline(
    name="halves",
    cpp_sources="void half_batch(torch::Tensor x, torch::Tensor bias, torch::Tensor scale, torch::Tensor y);",
    cuda_sources=r"""
#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/CUDAException.h>

__global__ void half_kernel(const float* x, const float* bias, const float* scale, float* y, int C, int P) {
    const int plane = blockIdx.x;
    for (int p = threadIdx.x; p < P; p += blockDim.x) {
        const float v = (x[(size_t)plane * P + p] + bias[plane % C]) * scale[plane % C];
        y[(size_t)plane * P + p] = 1.0f / (1.0f + expf(-v));
    }
}

void half_batch(torch::Tensor x, torch::Tensor bias, torch::Tensor scale, torch::Tensor y) {
    if (x.numel() == 0) return;
    half_kernel<<<x.size(0) * x.size(1), 128, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(), x.size(1),
        x.size(2) * x.size(3));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
""".replace("at::cuda::getCurrentCUDAStream", "c10::cuda::getCurrentCUDAStream"),
    functions=["half_batch"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.streams = [torch.cuda.Stream(), torch.cuda.Stream()] if torch.cuda.is_available() else []

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        middle = x.shape[0] // 2
        parts = [(x[:middle], y[:middle]), (x[middle:], y[middle:])]
        if not self.streams:
            for source, target in parts:
                kernels.half_batch(source, self.bias, self.scale, target)
            return y
        ready = torch.cuda.Event()
        ready.record()
        for stream, (source, target) in zip(self.streams, parts):
            stream.wait_event(ready)
            with torch.cuda.stream(stream):
                kernels.half_batch(source, self.bias, self.scale, target)
            done = torch.cuda.Event()
            done.record(stream)
            torch.cuda.current_stream().wait_event(done)
            x.record_stream(stream)
            y.record_stream(stream)
        return y
