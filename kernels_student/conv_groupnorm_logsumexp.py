"""conv_groupnorm_logsumexp: a convolution, statistics, and five operators in one kernel (KernelBench level 2, 92).

What is to be computed, in Python:

    v = conv(x)                                                         # as in conv2d
    for n, p in every image and pixel:
        for c in channels:
            t = tanh((v[n, c, p] - mean[n, group of c]) * rstd[n, group of c] * gn_weight[c] + gn_bias[c])
            z[c] = v[n, c, p] + t * clamp(t + 3, 0, 6) / 6
        y[n, 0, p] = log(sum(exp(z)))

Kernels: conv2d_kernel, one thread an element; group_statistics_kernel, one block a group; and, one thread a pixel,
norm_residual_logsumexp_kernel: z is never stored, nor computed twice, because the sum of exponentials is kept relative
to the largest z so far and is rescaled when a larger one comes.

Your task: fill in the one place marked YOUR CODE HERE, so that ModelNew computes what Model in
kernels_ref/conv_groupnorm_logsumexp/model.py computes, for any shape.

  1. walk over this pixel's channels: normalise, tanh, hardswish, add, and sum up exp (about 21 lines)

Grade it, with or without a GPU:  grader grade kernels_student/conv_groupnorm_logsumexp.py
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
torch::Tensor conv_groupnorm_logsumexp_forward(torch::Tensor x, torch::Tensor conv_weight, torch::Tensor conv_bias,
                                               torch::Tensor gn_weight, torch::Tensor gn_bias, int64_t groups,
                                               double eps);
"""

cuda_source = r"""
#include <algorithm>
#include <climits>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int WARP = 32;
constexpr int THREADS = 256;  // a block: a whole number of warps

// x (N, C, H, W), weight (OC, C, KH, KW), bias (OC) -> y (N, OC, OH, OW), `total` elements.
__global__ void conv2d_kernel(const float* x, const float* weight, const float* bias, float* y, int64_t total,
                              int C, int H, int W, int OC, int KH, int KW, int OH, int OW) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;  // the last block has threads to spare

    const int ox = i % OW;
    const int oy = i / OW % OH;
    const int oc = i / OW / OH % OC;
    const int64_t n = i / OW / OH / OC;  // 64 bits: the products below may pass 2^31

    float sum = bias[oc];
    for (int c = 0; c < C; ++c) {
        for (int ky = 0; ky < KH; ++ky) {
            const float* x_row = x + ((n * C + c) * H + oy + ky) * W + ox;
            const float* w_row = weight + (((int64_t)oc * C + c) * KH + ky) * KW;
            for (int kx = 0; kx < KW; ++kx) {
                sum += x_row[kx] * w_row[kx];
            }
        }
    }
    y[i] = sum;
}

// Sum of every thread's v, returned to every thread of the block. All of them must call it.
__device__ float block_sum(float v) {
    __shared__ float warp_sum[THREADS / WARP];
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        v += __shfl_down_sync(0xffffffff, v, offset);  // lane 0 ends with the sum of its warp
    }
    if (threadIdx.x % WARP == 0) warp_sum[threadIdx.x / WARP] = v;
    __syncthreads();  // all warps have written
    float sum = 0.0f;
    for (int warp = 0; warp < THREADS / WARP; ++warp) sum += warp_sum[warp];
    __syncthreads();  // all have read: the next call may write
    return sum;
}

// One block a group: x (groups of all images, elements) -> mean, rstd = 1 / sqrt(variance + eps), both (groups).
// A group's channels are neighbours, so that its elements lie in one piece.
__global__ void group_statistics_kernel(const float* x, float* mean, float* rstd, int64_t elements, float eps) {
    x += blockIdx.x * elements;
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < elements; i += THREADS) sum += x[i];
    const float centre = block_sum(sum) / elements;

    float squares = 0.0f;
    float deviations = 0.0f;
    for (int64_t i = threadIdx.x; i < elements; i += THREADS) {
        const float d = x[i] - centre;
        squares += d * d;
        deviations += d;
    }
    // The deviations from the exact mean sum to 0. What is left is the rounding error of centre: take it out again.
    const float error = block_sum(deviations) / elements;
    const float variance = fmaxf(block_sum(squares) / elements - error * error, 0.0f);

    if (threadIdx.x == 0) {
        mean[blockIdx.x] = centre + error;
        rstd[blockIdx.x] = 1.0f / sqrtf(variance + eps);
    }
}

// v (N, C, pixels) -> y (N, pixels), `total` elements: logsumexp over the channels of
// v + hardswish(tanh((v - mean) * rstd * gn_weight + gn_bias)).
__global__ void norm_residual_logsumexp_kernel(const float* v, const float* mean, const float* rstd,
                                               const float* gn_weight, const float* gn_bias, float* y,
                                               int64_t total, int C, int channels_a_group, int64_t pixels) {
    // YOUR CODE HERE: walk over this pixel's channels: normalise, tanh, hardswish, add, and sum up exp (about 21 lines)
}

// The kernels read bare memory: refuse a tensor that is not what they take it for.
static void check(const torch::Tensor& t, const char* name, int64_t dims, const torch::Device& device) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == device, name, " is on ", t.device(), ", x on ", device, ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == torch::kFloat32, name, " is ", t.scalar_type(), ", not float32: use .float()");
    TORCH_CHECK(t.dim() == dims, name, " has ", t.dim(), " dimensions instead of ", dims);
    for (int64_t size : t.sizes()) TORCH_CHECK(size <= INT_MAX, name, " has a side longer than 2^31 - 1");
}

torch::Tensor conv_groupnorm_logsumexp_forward(torch::Tensor x, torch::Tensor conv_weight, torch::Tensor conv_bias,
                                               torch::Tensor gn_weight, torch::Tensor gn_bias, int64_t groups,
                                               double eps) {
    check(x, "x", 4, x.device());
    check(conv_weight, "the convolution's weight", 4, x.device());
    check(conv_bias, "the convolution's bias", 1, x.device());
    check(gn_weight, "the normalisation's weight", 1, x.device());
    check(gn_bias, "the normalisation's bias", 1, x.device());
    const int64_t N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
    const int64_t OC = conv_weight.size(0), KH = conv_weight.size(2), KW = conv_weight.size(3);
    TORCH_CHECK(conv_weight.size(1) == C, "x has ", C, " channels, the weight is for ", conv_weight.size(1));
    TORCH_CHECK(H >= KH && W >= KW, "the image (", H, " x ", W, ") is smaller than the kernel (", KH, " x ", KW, ")");
    TORCH_CHECK(conv_bias.size(0) == OC && gn_weight.size(0) == OC && gn_bias.size(0) == OC,
                "every bias and weight needs one element for each of ", OC, " output channels");
    TORCH_CHECK(groups > 0 && OC % groups == 0, OC, " channels cannot be cut into ", groups, " equal groups");
    x = x.contiguous();
    conv_weight = conv_weight.contiguous();
    conv_bias = conv_bias.contiguous();
    gn_weight = gn_weight.contiguous();
    gn_bias = gn_bias.contiguous();

    const int64_t OH = H - KH + 1, OW = W - KW + 1, pixels = OH * OW;
    torch::Tensor y = torch::empty({N, 1, OH, OW}, x.options());
    if (y.numel() == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    torch::Tensor v = torch::empty({N, OC, OH, OW}, x.options());
    conv2d_kernel<<<(v.numel() + THREADS - 1) / THREADS, THREADS, 0, stream>>>(
        x.data_ptr<float>(), conv_weight.data_ptr<float>(), conv_bias.data_ptr<float>(), v.data_ptr<float>(),
        v.numel(), C, H, W, OC, KH, KW, OH, OW);
    C10_CUDA_KERNEL_LAUNCH_CHECK();

    torch::Tensor mean = torch::empty({N * groups}, x.options());
    torch::Tensor rstd = torch::empty({N * groups}, x.options());
    group_statistics_kernel<<<N * groups, THREADS, 0, stream>>>(
        v.data_ptr<float>(), mean.data_ptr<float>(), rstd.data_ptr<float>(), v.numel() / (N * groups), eps);
    C10_CUDA_KERNEL_LAUNCH_CHECK();

    norm_residual_logsumexp_kernel<<<(y.numel() + THREADS - 1) / THREADS, THREADS, 0, stream>>>(
        v.data_ptr<float>(), mean.data_ptr<float>(), rstd.data_ptr<float>(), gn_weight.data_ptr<float>(),
        gn_bias.data_ptr<float>(), y.data_ptr<float>(), y.numel(), OC, OC / groups, pixels);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="conv_groupnorm_logsumexp",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["conv_groupnorm_logsumexp_forward"],
)


class ModelNew(nn.Module):
    """The same function as Model: x (N, in_channels, H, W) float32 on a GPU -> (N, 1, OH, OW)."""

    def __init__(self, in_channels, out_channels, kernel_size, groups, eps=1e-5):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)  # holds weights, is never called
        self.group_norm = nn.GroupNorm(groups, out_channels, eps=eps)  # holds weights, is never called

    def forward(self, x):
        gn = self.group_norm
        return kernels.conv_groupnorm_logsumexp_forward(
            x, self.conv.weight, self.conv.bias, gn.weight, gn.bias, gn.num_groups, gn.eps
        )

# Made from kernels_ref/conv_groupnorm_logsumexp/solution.py by `grader student`; skeleton 9fa51d85cfac.
