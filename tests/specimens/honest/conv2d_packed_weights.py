"""load_reference packs weights into another layout once; forward reads the packed copy and never the parameters."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="packed_conv",
    cpp_sources="torch::Tensor packed_conv(torch::Tensor x, torch::Tensor packed, torch::Tensor bias, int64_t k);",
    cuda_sources=r"""
constexpr int GROUP = 4;  // output channels of one thread

// packed (OC / GROUP, C, k, k, GROUP), filled up with zeros
__global__ void packed_kernel(const float* x, const float4* packed, const float* bias, float* y, int C, int H, int W, int OC,
                              int k) {
    const int OH = H - k + 1, OW = W - k + 1, p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= OH * OW) return;
    const int row = p / OW, column = p % OW, group = blockIdx.y, n = blockIdx.z;
    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
    for (int c = 0; c < C; ++c)
        for (int i = 0; i < k; ++i)
            for (int j = 0; j < k; ++j) {
                const float v = x[(((size_t)n * C + c) * H + row + i) * W + column + j];
                const float4 w = packed[((group * C + c) * k + i) * k + j];
                sum.x += v * w.x, sum.y += v * w.y, sum.z += v * w.z, sum.w += v * w.w;
            }
    const float sums[GROUP] = {sum.x, sum.y, sum.z, sum.w};
    for (int g = 0; g < GROUP; ++g) {
        const int oc = group * GROUP + g;
        if (oc < OC) y[((size_t)n * OC + oc) * OH * OW + p] = sums[g] + bias[oc];
    }
}

torch::Tensor packed_conv(torch::Tensor x, torch::Tensor packed, torch::Tensor bias, int64_t k) {
    const int N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3), OC = bias.size(0);
    auto y = torch::empty({N, OC, H - k + 1, W - k + 1}, x.options());
    const int P = (H - k + 1) * (W - k + 1);
    packed_kernel<<<dim3((P + 63) / 64, (OC + GROUP - 1) / GROUP, N), 64>>>(
        x.data_ptr<float>(), (const float4*)packed.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), C, H, W,
        OC, k);
    return y;
}
""",
    functions=["packed_conv"],
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.packed = None

    def load_reference(self, model):
        self.conv.load_state_dict(model.conv.state_dict())
        weight = self.conv.weight.detach()
        missing = -weight.shape[0] % 4
        weight = torch.cat([weight, weight.new_zeros(missing, *weight.shape[1:])])
        self.packed = weight.unflatten(0, (-1, 4)).permute(0, 2, 3, 4, 1).contiguous()

    def forward(self, x):
        return ext.packed_conv(x.contiguous(), self.packed, self.conv.bias, self.conv.kernel_size[0])
