"""Everything inside is NHWC, through permute and contiguous, and the result comes back as a permuted view."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="conv_nhwc",
    cpp_sources="at::Tensor conv_nhwc(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b);",
    cuda_sources=r"""
// x (N, H, W, C), w (k, k, C, OC), b (OC) -> (N, OH, OW, OC)
__global__ void nhwc_kernel(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ b,
                            float* __restrict__ y, int H, int W, int C, int OC, int k, int total) {
    const int OH = H - k + 1, OW = W - k + 1;
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < total; at += gridDim.x * blockDim.x) {
        const int oc = at % OC, ow = at / OC % OW, oh = at / OC / OW % OH, n = at / OC / OW / OH;
        float sum = b[oc];
        for (int i = 0; i < k; ++i)
            for (int j = 0; j < k; ++j)
                for (int c = 0; c < C; ++c)
                    sum += x[((size_t)(n * H + oh + i) * W + ow + j) * C + c] * w[((i * k + j) * C + c) * OC + oc];
        y[at] = sum;
    }
}
at::Tensor conv_nhwc(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
    const int N = x.size(0), H = x.size(1), W = x.size(2), C = x.size(3), k = w.size(0), OC = w.size(3);
    auto y = at::empty({N, H - k + 1, W - k + 1, OC}, x.options());
    nhwc_kernel<<<std::min<int>((y.numel() + 127) / 128, 256), 128>>>(
        x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), H, W, C, OC, k, y.numel());
    return y;
}
""",
    functions=["conv_nhwc"],
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.filters, self.offsets = conv.weight, conv.bias

    def forward(self, x):
        y = ext.conv_nhwc(x.permute(0, 2, 3, 1).contiguous(), self.filters.permute(2, 3, 1, 0).contiguous(), self.offsets)
        return y.permute(0, 3, 1, 2)
