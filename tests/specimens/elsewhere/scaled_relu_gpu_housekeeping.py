"""Streams, events, memory figures, autocast and generators of torch.cuda around the kernel."""

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
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features, device="cuda"))
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self.blocks, self.memory = 4 * properties.multi_processor_count, properties.total_memory
        self.name = torch.cuda.get_device_name(0), torch.cuda.get_device_capability()
        self.stream = torch.cuda.Stream()
        self.event = torch.cuda.Event(enable_timing=True, blocking=True)

    def forward(self, x):
        x = x.to("cuda", non_blocking=True).cuda(non_blocking=True)
        if not x.is_cuda or x.device != self.scale.device:
            raise RuntimeError("x must be on the GPU")
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        used = torch.cuda.max_memory_allocated() + torch.cuda.memory_allocated(x.device) + torch.cuda.memory_reserved()
        free, total = torch.cuda.mem_get_info()
        assert used >= 0 and free <= total == self.memory
        with torch.cuda.device(x.device), torch.cuda.stream(self.stream):
            self.stream.wait_stream(torch.cuda.current_stream(x.device))
            y = extension.run(x.contiguous(), self.scale)
        torch.cuda.current_stream().wait_stream(self.stream)
        self.event.record()
        self.event.synchronize()
        with torch.cuda.amp.autocast(enabled=False), torch.autocast(device_type="cuda", enabled=False):
            y = y.type(torch.cuda.FloatTensor)
        with torch.cuda.nvtx.range("done"):
            torch.cuda.synchronize(x.device)
        y.record_stream(torch.cuda.current_stream())
        generator = torch.Generator(device="cuda")
        generator.manual_seed(1)
        assert torch.randn(3, generator=generator, device="cuda").get_device() == torch.cuda.current_device() == 0
        return y.to(x.device).float()
