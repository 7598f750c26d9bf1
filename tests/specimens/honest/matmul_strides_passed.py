"""The kernel takes any strides, so forward never makes its inputs contiguous; two functions share one binding by hand."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="any_strides",
    cpp_sources=r"""
torch::Tensor any_strides(const torch::Tensor& a, const torch::Tensor& b);

static std::string describe(const torch::Tensor& a) { return c10::str("strides ", a.strides()); }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("any_strides", &any_strides, "product of two matrices of any strides");
    m.def("describe", &describe);
}
""",
    cuda_sources=r"""
__global__ void strides_kernel(const float* a, const float* b, float* c, int M, int K, int N, long am, long ak, long bk,
                               long bn) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < M * N; i += gridDim.x * blockDim.x) {
        const int m = i / N, n = i % N;
        float sum = 0.0f;
        for (int k = 0; k < K; ++k) sum += a[m * am + k * ak] * b[k * bk + n * bn];
        c[i] = sum;
    }
}
torch::Tensor any_strides(const torch::Tensor& a, const torch::Tensor& b) {
    const int M = a.size(0), K = a.size(1), N = b.size(1);
    torch::Tensor c = torch::empty({M, N}, a.options());
    strides_kernel<<<128, 128>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), M, K, N, a.stride(0),
                                 a.stride(1), b.stride(0), b.stride(1));
    return c;
}
""",
)


class ModelNew(nn.Module):
    def forward(self, A, B):
        assert ext.describe(A).startswith("strides")
        return ext.any_strides(A, B)
