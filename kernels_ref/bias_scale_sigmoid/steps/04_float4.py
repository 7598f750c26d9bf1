"""bias_scale_sigmoid, step 4: four float4 per thread, all fetched before the first is used; fast exp and division.

Before, a thread had one load under way, waited, computed, stored, and only then asked for the next. Now its 16 pixels
are four loads of 16 bytes that are under way together. exp and the division take one instruction of the
special-function unit each and a few around it: their error of a few last digits is of e^-v, and what sigmoid makes of
it is smaller. Planes that do not begin at a multiple of 16 bytes take single pixels.

Bought: load requests fall from 12 to 3 million, store requests from 8 to 2 million, blocks started from 262,144 to
65,536; what is left is the time that DRAM takes.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor bias_scale_sigmoid_forward(torch::Tensor x, torch::Tensor bias, torch::Tensor scale);"

cuda_source = r"""
#include <algorithm>
#include <cstdint>
#include <climits>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;                  // a block
constexpr int PIXELS = 16;                    // that a thread has under way at a time
constexpr int64_t MAX_GRID_Y = 65535;

// 1 / (1 + e^-v). Where e^-v passes 2^126, __fdividef gives the 0 that is meant.
__device__ float sigmoid(float v) { return __fdividef(1.0f, 1.0f + __expf(-v)); }

// x (N, C, pixels), bias (C), scale (C) -> y (N, C, pixels). blockIdx.x is the plane n * C + c; its blocks (blockIdx.y)
// take THREADS * PIXELS neighbouring pixels at a time. VECTOR pixels go in one access: 4 only where all are aligned.
template <int VECTOR>
__global__ void bias_scale_sigmoid_kernel(const float* __restrict__ x, const float* __restrict__ bias,
                                          const float* __restrict__ scale, float* __restrict__ y, int C,
                                          int64_t pixels) {
    const int c = blockIdx.x % C;
    const float b = bias[c], s = scale[c];
    x += blockIdx.x * pixels;
    y += blockIdx.x * pixels;
    const int64_t step = (int64_t)gridDim.y * THREADS * PIXELS;
    for (int64_t p0 = (int64_t)blockIdx.y * THREADS * PIXELS + threadIdx.x * VECTOR; p0 < pixels; p0 += step) {
        float v[PIXELS / VECTOR][VECTOR];
#pragma unroll
        for (int run = 0; run < PIXELS / VECTOR; ++run) {
            const int64_t p = p0 + run * THREADS * VECTOR;
            if (p >= pixels) continue;
            if constexpr (VECTOR == 4) {
                const float4 four = *reinterpret_cast<const float4*>(x + p);
                v[run][0] = four.x, v[run][1] = four.y, v[run][2] = four.z, v[run][3] = four.w;
            } else {
                v[run][0] = x[p];
            }
        }
#pragma unroll
        for (int run = 0; run < PIXELS / VECTOR; ++run) {
            const int64_t p = p0 + run * THREADS * VECTOR;
            if (p >= pixels) continue;
#pragma unroll
            for (int k = 0; k < VECTOR; ++k) v[run][k] = sigmoid((v[run][k] + b) * s);
            if constexpr (VECTOR == 4) {
                *reinterpret_cast<float4*>(y + p) = make_float4(v[run][0], v[run][1], v[run][2], v[run][3]);
            } else {
                y[p] = v[run][0];
            }
        }
    }
}

// The kernel reads bare memory: refuse a tensor that is not what it takes it for.
static void check(const torch::Tensor& t, const char* name, const torch::Device& device) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == device, name, " is on ", t.device(), ", x on ", device, ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == torch::kFloat32, name, " is ", t.scalar_type(), ", not float32: use .float()");
}

torch::Tensor bias_scale_sigmoid_forward(torch::Tensor x, torch::Tensor bias, torch::Tensor scale) {
    check(x, "x", x.device());
    check(bias, "bias", x.device());
    check(scale, "scale", x.device());
    TORCH_CHECK(x.dim() == 4, "x has ", x.dim(), " dimensions instead of 4");
    const int64_t N = x.size(0), C = x.size(1), pixels = x.size(2) * x.size(3);
    TORCH_CHECK(bias.sizes() == torch::IntArrayRef({C, 1, 1}), "bias must be (", C, ", 1, 1), not ", bias.sizes());
    TORCH_CHECK(scale.sizes() == torch::IntArrayRef({C, 1, 1}), "scale must be (", C, ", 1, 1), not ", scale.sizes());
    TORCH_CHECK(N * C <= INT_MAX, "x has more than 2^31 - 1 planes (images times channels)");
    x = x.contiguous();
    bias = bias.contiguous();
    scale = scale.contiguous();

    torch::Tensor y = torch::empty_like(x);
    if (y.numel() == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const int64_t blocks_a_plane = std::min((pixels + PIXELS * THREADS - 1) / (PIXELS * THREADS), MAX_GRID_Y);
    // Every plane begins at a multiple of 16 bytes if the first one does and planes are whole float4s.
    const bool aligned = pixels % 4 == 0 && reinterpret_cast<uintptr_t>(x.data_ptr<float>()) % 16 == 0 &&
                         reinterpret_cast<uintptr_t>(y.data_ptr<float>()) % 16 == 0;
    const auto kernel = aligned ? bias_scale_sigmoid_kernel<4> : bias_scale_sigmoid_kernel<1>;
    kernel<<<dim3(N * C, blocks_a_plane), THREADS, 0, stream>>>(
        x.data_ptr<float>(), bias.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(), C, pixels);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="bias_scale_sigmoid_04_float4",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["bias_scale_sigmoid_forward"],
)


class ModelNew(nn.Module):
    """The same function as Model: x (N, C, H, W) float32 on a GPU, bias and scale (C, 1, 1) -> (N, C, H, W)."""

    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return kernels.bias_scale_sigmoid_forward(x, self.bias, self.scale)
