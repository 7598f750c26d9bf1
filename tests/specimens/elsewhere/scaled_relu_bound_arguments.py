"""Functions with defaults, keywords, optionals, strings and several results."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

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

std::tuple<torch::Tensor, int64_t> pair(const torch::Tensor& x, const c10::optional<torch::Tensor>& scale, bool fast) {
    return {launch(x, scale.has_value() ? *scale : torch::ones({x.size(1)})), fast ? 1 : 2};
}

std::vector<torch::Tensor> several(std::vector<torch::Tensor> inputs, const std::string& how, std::optional<double> low) {
    TORCH_CHECK(how == "relu" && !low, "unknown: ", how);
    return {launch(inputs[0], inputs[1]), inputs[0]};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("pair", &pair, py::arg("x"), py::arg("scale") = py::none(), py::kw_only(), py::arg("fast") = true);
    m.def("several", &several, "Several tensors.", py::arg("inputs"), py::arg("how") = "relu",
          py::arg("low") = std::nullopt);
    m.def("plain", [](torch::Tensor x, torch::Tensor scale) { return launch(x, scale); },
          py::call_guard<py::gil_scoped_release>());
}
"""
extension = load_inline(name="bound", cpp_sources="", cuda_sources=SOURCE)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features))

    def forward(self, x):
        y, ways = extension.pair(x, self.scale, fast=False)
        unscaled, _ = extension.pair(x)
        first, second = extension.several([x, self.scale], how="relu")
        assert ways == 2 and torch.equal(unscaled, torch.relu(x)) and torch.equal(y, first) and torch.equal(second, x)
        return extension.plain(x, self.scale)
