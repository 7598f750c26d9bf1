"""A C++ class is bound by hand, whose object holds the sizes and launches the kernel."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <memory>

__global__ void scale_relu(const float* x, const float* scale, float* y, int count, int features) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        float v = x[i] * scale[i % features];
        y[i] = v > 0.0f ? v : 0.0f;
    }
}

static torch::Tensor launch(torch::Tensor x, torch::Tensor scale) {
    auto y = torch::empty_like(x);
    int count = x.numel();
    scale_relu<<<(count + 127) / 128, 128>>>(x.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(), count,
                                             x.size(1));
    return y;
}

class Plan {
  public:
    Plan(int64_t features, bool checks) : features(features), checks(checks) {}
    torch::Tensor run(torch::Tensor x, torch::Tensor scale) {
        if (checks) TORCH_CHECK(x.size(1) == features, "x has ", x.size(1), " features");
        ++calls;
        return launch(x.contiguous(), scale);
    }
    int64_t features, calls = 0;
    bool checks;
};

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    py::class_<Plan, std::shared_ptr<Plan>>(m, "Plan")
        .def(py::init<int64_t, bool>(), py::arg("features"), py::arg("checks") = true)
        .def("run", &Plan::run, py::arg("x"), py::arg("scale"))
        .def_readonly("calls", &Plan::calls);
}
"""
extension = load_inline(name="bound", cpp_sources="", cuda_sources=SOURCE)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features))
        self.plan = extension.Plan(features)

    def forward(self, x):
        calls = self.plan.calls
        y = self.plan.run(x, scale=self.scale)
        assert self.plan.calls == calls + 1
        return y
