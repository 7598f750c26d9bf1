"""Postponed annotations, a frozen dataclass with slots, a match statement, a protocol and an assignment expression."""

from __future__ import annotations

import dataclasses
import enum
import sys
from typing import NamedTuple, Protocol, Self, TypeAlias

import torch
from torch import Tensor, nn
from torch.utils import cpp_extension

Shape: TypeAlias = "tuple[int, ...]"


class Launcher(Protocol):
    def __call__(self, x: Tensor, bias: Tensor, scale: Tensor, threads: int) -> Tensor: ...


class Size(enum.Enum):
    SMALL = enum.auto()
    LARGE = enum.auto()


class Weights(NamedTuple):
    bias: Tensor
    scale: Tensor


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    threads: dict[Size, int] = dataclasses.field(default_factory=lambda: {Size.SMALL: 64, Size.LARGE: 256})

    @classmethod
    def default(cls) -> Self:
        return cls()

    def pick(self, n: int) -> int:
        match n:
            case 0 | 1:
                return 32
            case many if many < 1000:
                return self.threads[Size.SMALL]
            case _:
                return self.threads[Size.LARGE]


if sys.version_info >= (3, 12):
    exec("type Pair[T] = tuple[T, T]\ndef same[T](value: T) -> T: return value")

kernels = cpp_extension.load_inline(
    name="modern",
    cpp_sources="torch::Tensor modern(torch::Tensor x, torch::Tensor bias, torch::Tensor scale, int64_t threads);",
    cuda_sources=r"""
template <auto Slope = 1> __device__ constexpr float negate(float v) { return -v * Slope; }

__global__ void modern_kernel(const float* x, const float* bias, const float* scale, float* y, int C, int P, int n) {
    if (const int i = blockIdx.x * blockDim.x + threadIdx.x; i < n) {
        const auto [b, s] = [&] { struct Both { float b, s; }; return Both{bias[i / P % C], scale[i / P % C]}; }();
        y[i] = 1.0f / (1.0f + expf(negate<>((x[i] + b) * s)));
    }
}

torch::Tensor modern(torch::Tensor x, torch::Tensor bias, torch::Tensor scale, int64_t threads) {
    auto y = torch::empty_like(x);
    const auto n = static_cast<int>(x.numel());
    modern_kernel<<<(n + threads - 1) / threads, threads>>>(
        x.const_data_ptr<float>(), bias.const_data_ptr<float>(), scale.const_data_ptr<float>(),
        y.mutable_data_ptr<float>(), x.size(1), x.size(2) * x.size(3), n);
    return y;
}
""",
    functions=["modern"],
)
launch: Launcher = kernels.modern


class ModelNew(nn.Module):
    bias: nn.Parameter
    scale: nn.Parameter

    def __init__(self: ModelNew, bias_shape: Shape, scale_shape: Shape) -> None:
        super().__init__()
        self.config = Config.default()
        self.bias, self.scale = (nn.Parameter(torch.randn(shape)) for shape in (bias_shape, scale_shape))

    def forward(self, x: Tensor) -> Tensor:
        if not (x := x.contiguous()).numel():
            return x.clone()
        weights = Weights(self.bias, self.scale)
        return launch(x, *weights, self.config.pick(x.numel()))
