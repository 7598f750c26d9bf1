"""conv_sigmoid_groupnorm: a convolution that ends in a sigmoid, then group normalisation (KernelBench level 2, 21).

What is to be computed, in Python:

    for n, oc, oy, ox in every position of y:
        v = conv_bias[oc] + sum(x[n, c, oy + ky, ox + kx] * conv_weight[oc, c, ky, kx] for c, ky, kx in the window)
        y[n, oc, oy, ox] = sigmoid((v + bias[oc]) * scale[oc])
    for n, g in every image and group of neighbouring channels:
        y[n, group] = (y[n, group] - its mean) / sqrt(its variance + eps)
    y = y * gn_weight[c] + gn_bias[c]

Kernels: conv_bias_scale_sigmoid_kernel, one thread an element: what follows the sum is done while it is in a register,
so that three passes over y are saved; group_statistics_kernel, one block a group; normalise_kernel, in place.

Your task: fill in the one place marked YOUR CODE HERE, so that ModelNew computes what Model in
kernels_ref/conv_sigmoid_groupnorm/model.py computes, for any shape.

  1. the convolution of one element, then bias, scale and sigmoid before it is stored (about 18 lines)

Grade it, with or without a GPU:  grader grade kernels_student/conv_sigmoid_groupnorm.py
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
torch::Tensor conv_sigmoid_groupnorm_forward(torch::Tensor x, torch::Tensor conv_weight, torch::Tensor conv_bias,
                                             torch::Tensor bias, torch::Tensor scale, torch::Tensor gn_weight,
                                             torch::Tensor gn_bias, int64_t groups, double eps);
"""

cuda_source = r"""
#include <algorithm>
#include <climits>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int WARP = 32;
constexpr int THREADS = 256;           // a block: a whole number of warps
constexpr int64_t MAX_GRID_Y = 65535;

// x (N, C, H, W), conv_weight (OC, C, KH, KW), conv_bias, bias, scale (OC) -> y (N, OC, OH, OW), `total` elements.
__global__ void conv_bias_scale_sigmoid_kernel(const float* x, const float* conv_weight, const float* conv_bias,
                                               const float* bias, const float* scale, float* y, int64_t total,
                                               int C, int H, int W, int OC, int KH, int KW, int OH, int OW) {
    // YOUR CODE HERE: the convolution of one element, then bias, scale and sigmoid before it is stored (about 18 lines)
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

// y = (x - mean) * rstd * weight + bias, for x (N, C, pixels). blockIdx.x is the plane n * C + c; the threads of
// all its blocks (blockIdx.y) walk over its pixels side by side.
__global__ void normalise_kernel(const float* x, const float* mean, const float* rstd,
                                 const float* weight, const float* bias, float* y,
                                 int C, int channels_a_group, int64_t pixels) {
    const int c = blockIdx.x % C;
    const int group = blockIdx.x / channels_a_group;  // over all images, as C is a whole number of groups
    const float m = mean[group], r = rstd[group], w = weight[c], b = bias[c];
    x += blockIdx.x * pixels;
    y += blockIdx.x * pixels;
    const int64_t step = (int64_t)gridDim.y * THREADS;
    for (int64_t p = blockIdx.y * THREADS + threadIdx.x; p < pixels; p += step) {
        y[p] = (x[p] - m) * r * w + b;
    }
}

// The kernels read bare memory: refuse a tensor that is not what they take it for.
static void check(const torch::Tensor& t, const char* name, int64_t dims, const torch::Device& device) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == device, name, " is on ", t.device(), ", x on ", device, ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == torch::kFloat32, name, " is ", t.scalar_type(), ", not float32: use .float()");
    TORCH_CHECK(t.dim() == dims, name, " has ", t.dim(), " dimensions instead of ", dims);
    for (int64_t size : t.sizes()) TORCH_CHECK(size <= INT_MAX, name, " has a side longer than 2^31 - 1");
}

torch::Tensor conv_sigmoid_groupnorm_forward(torch::Tensor x, torch::Tensor conv_weight, torch::Tensor conv_bias,
                                             torch::Tensor bias, torch::Tensor scale, torch::Tensor gn_weight,
                                             torch::Tensor gn_bias, int64_t groups, double eps) {
    check(x, "x", 4, x.device());
    check(conv_weight, "the convolution's weight", 4, x.device());
    check(conv_bias, "the convolution's bias", 1, x.device());
    check(bias, "bias", 3, x.device());
    check(scale, "scale", 3, x.device());
    check(gn_weight, "the normalisation's weight", 1, x.device());
    check(gn_bias, "the normalisation's bias", 1, x.device());
    const int64_t N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
    const int64_t OC = conv_weight.size(0), KH = conv_weight.size(2), KW = conv_weight.size(3);
    TORCH_CHECK(conv_weight.size(1) == C, "x has ", C, " channels, the weight is for ", conv_weight.size(1));
    TORCH_CHECK(H >= KH && W >= KW, "the image (", H, " x ", W, ") is smaller than the kernel (", KH, " x ", KW, ")");
    TORCH_CHECK(bias.sizes() == torch::IntArrayRef({OC, 1, 1}), "bias must be (", OC, ", 1, 1), not ", bias.sizes());
    TORCH_CHECK(scale.sizes() == torch::IntArrayRef({OC, 1, 1}), "scale must be (", OC, ", 1, 1), not ", scale.sizes());
    TORCH_CHECK(conv_bias.size(0) == OC && gn_weight.size(0) == OC && gn_bias.size(0) == OC,
                "every bias and weight needs one element for each of ", OC, " output channels");
    TORCH_CHECK(groups > 0 && OC % groups == 0, OC, " channels cannot be cut into ", groups, " equal groups");
    TORCH_CHECK(N * OC <= INT_MAX, "the output has more than 2^31 - 1 planes (images times channels)");
    x = x.contiguous();
    conv_weight = conv_weight.contiguous();
    conv_bias = conv_bias.contiguous();
    bias = bias.contiguous();
    scale = scale.contiguous();
    gn_weight = gn_weight.contiguous();
    gn_bias = gn_bias.contiguous();

    const int64_t OH = H - KH + 1, OW = W - KW + 1, pixels = OH * OW;
    torch::Tensor y = torch::empty({N, OC, OH, OW}, x.options());
    const int64_t total = y.numel();
    if (total == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    conv_bias_scale_sigmoid_kernel<<<(total + THREADS - 1) / THREADS, THREADS, 0, stream>>>(
        x.data_ptr<float>(), conv_weight.data_ptr<float>(), conv_bias.data_ptr<float>(), bias.data_ptr<float>(),
        scale.data_ptr<float>(), y.data_ptr<float>(), total, C, H, W, OC, KH, KW, OH, OW);
    C10_CUDA_KERNEL_LAUNCH_CHECK();

    torch::Tensor mean = torch::empty({N * groups}, x.options());
    torch::Tensor rstd = torch::empty({N * groups}, x.options());
    group_statistics_kernel<<<N * groups, THREADS, 0, stream>>>(
        y.data_ptr<float>(), mean.data_ptr<float>(), rstd.data_ptr<float>(), total / (N * groups), eps);
    C10_CUDA_KERNEL_LAUNCH_CHECK();

    // About 4 pixels a thread.
    const int64_t blocks_a_plane = std::min((pixels + 4 * THREADS - 1) / (4 * THREADS), MAX_GRID_Y);
    normalise_kernel<<<dim3(N * OC, blocks_a_plane), THREADS, 0, stream>>>(
        y.data_ptr<float>(), mean.data_ptr<float>(), rstd.data_ptr<float>(), gn_weight.data_ptr<float>(),
        gn_bias.data_ptr<float>(), y.data_ptr<float>(), OC, OC / groups, pixels);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="conv_sigmoid_groupnorm",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["conv_sigmoid_groupnorm_forward"],
)


class ModelNew(nn.Module):
    """The same function as Model: x (N, in_channels, H, W) float32 on a GPU -> (N, out_channels, OH, OW)."""

    def __init__(self, in_channels, out_channels, kernel_size, num_groups, bias_shape, scale_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)  # holds weights, is never called
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_channels)  # holds weights, is never called

    def forward(self, x):
        gn = self.group_norm
        return kernels.conv_sigmoid_groupnorm_forward(
            x, self.conv.weight, self.conv.bias, self.bias, self.scale, gn.weight, gn.bias, gn.num_groups, gn.eps
        )

# Made from kernels_ref/conv_sigmoid_groupnorm/solution.py by `grader student`; skeleton b16a00216dda.
