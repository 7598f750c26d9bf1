"""Comments in four languages and identifiers outside ASCII, in Python and in the CUDA source."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Ядро: один поток на элемент.  每個元素一個線程。  Ein Thread je Element.  スレッドごとに一要素。
источник = r"""
// y = σ((x + b)·s) — размер пачки не важен
__global__ void sigma_kernel(const float* x, const float* bias, const float* scale, float* y, int C, int P, int n) {
    const int ι = blockIdx.x * blockDim.x + threadIdx.x;  // 索引
    if (ι >= n) return;
    const int канал = ι / P % C;
    y[ι] = 1.0f / (1.0f + expf(-(x[ι] + bias[канал]) * scale[канал]));  /* «сигмоида» */
}

torch::Tensor sigma(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    auto y = torch::empty_like(x);
    const int n = x.numel();
    sigma_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(),
                                    y.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), n);
    return y;
}
"""

модуль = load_inline(
    name="sigma",
    cpp_sources="torch::Tensor sigma(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);  // объявление",
    cuda_sources=источник,
    functions=["sigma"],
)


class ModelNew(nn.Module):
    """Модель с теми же весами."""

    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, вход):
        return модуль.sigma(вход.contiguous(), self.bias, self.scale)
