"""The launch is captured in a CUDA graph per shape and replayed on a static input; without a GPU it is made directly."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

graphed = load_inline(
    name="graphed_sigmoid",
    cpp_sources="torch::Tensor fused(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);",
    cuda_sources=r"""
#include <c10/cuda/CUDAStream.h>

__global__ void fused_kernel(const float* __restrict__ x, const float* __restrict__ bias,
                             const float* __restrict__ scale, float* __restrict__ y, int C, int P, size_t total) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < total) {
        int c = (i / P) % C;
        y[i] = 1.f / (1.f + expf((x[i] + bias[c]) * -scale[c]));
    }
}

torch::Tensor fused(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    auto y = torch::empty_like(x);
    size_t total = x.numel();
    if (total)
        fused_kernel<<<(total + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(), x.size(1),
            x.size(2) * x.size(3), total);
    return y;
}
""",
    functions=["fused"],
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.graphs = {}

    def capture(self, x):
        static_x = x.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            graphed.fused(static_x, self.bias, self.scale)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            static_y = graphed.fused(static_x, self.bias, self.scale)
        return graph, static_x, static_y

    def forward(self, x):
        x = x.contiguous()
        if not torch.cuda.is_available() or torch.is_grad_enabled():
            return graphed.fused(x, self.bias, self.scale)
        if x.shape not in self.graphs:
            self.graphs[x.shape] = self.capture(x)
        graph, static_x, static_y = self.graphs[x.shape]
        static_x.copy_(x)
        graph.replay()
        return static_y.clone()  # the next replay writes to static_y
