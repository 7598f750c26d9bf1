"""Python code that takes a GPU for granted: device="cuda", .cuda(), is_cuda, streams, events, a graph, properties."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

DEVICE = torch.device("cuda")

by_name = load_inline(
    name="by_name",
    cpp_sources="void squash(torch::Tensor x, torch::Tensor bias, torch::Tensor scale, torch::Tensor y, int64_t stream);",
    cuda_sources=r"""
__global__ void squash_kernel(const float* x, const float* bias, const float* scale, float* y, int channels, int pixels,
                              long total) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < total; i += (long)gridDim.x * blockDim.x) {
        const int c = i / pixels % channels;
        y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[c]) * scale[c]));
    }
}

void squash(torch::Tensor x, torch::Tensor bias, torch::Tensor scale, torch::Tensor y, int64_t stream) {
    TORCH_CHECK(x.is_cuda() && y.is_cuda(), "x and y must be on the GPU");
    if (x.numel() == 0) return;
    squash_kernel<<<(x.numel() + 127) / 128, 128, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
        x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(), x.size(1),
        x.size(2) * x.size(3), x.numel());
}
""",
    functions=["squash"],
)


class ModelNew(nn.Module):
    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape, device=DEVICE))
        self.scale = nn.Parameter(torch.randn(scale_shape, device="cuda:0"))
        self.side = torch.cuda.Stream()
        self.warps = torch.cuda.get_device_properties(DEVICE).multi_processor_count
        self.graphs = {}
        self.cuda()

    def forward(self, x):
        assert x.is_cuda and x.device.type == "cuda" and self.warps > 0
        x = x.to(DEVICE).contiguous().cuda()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        if x.shape not in self.graphs:
            self.graphs[x.shape] = self.capture(torch.empty_like(x, device="cuda"))
        graph, static_x, static_y = self.graphs[x.shape]
        static_x.copy_(x)
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        assert start.elapsed_time(end) >= 0
        return static_y.clone()

    def capture(self, static_x):
        static_x.zero_()
        static_y = torch.empty(static_x.shape, device=static_x.device)
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            by_name.squash(static_x, self.bias, self.scale, static_y, self.side.cuda_stream)
        torch.cuda.current_stream().wait_stream(self.side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            stream = torch.cuda.current_stream().cuda_stream
            by_name.squash(static_x, self.bias, self.scale, static_y, stream)
        return graph, static_x, static_y
