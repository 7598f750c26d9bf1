"""groupnorm with its backward: sums over planes first, from which groups, channels and elements take what they need.

Forward, with xh[n, c, p] = (x[n, c, p] - mean[n, g]) * rstd[n, g], is y = xh * weight[c] + bias[c]. An element moves
its whole group through mean and deviation, so that the gradient of x has three terms. From the gradient gy of y, in
Python:

    for n, c in every image and channel:                                        # two sums over the pixels of a plane
        plain[n, c]    = sum(gy[n, c, p] for p in pixels)
        weighted[n, c] = sum(gy[n, c, p] * xh[n, c, p] for p in pixels)
    gbias[c] = sum of plain[n, c] over n;  gweight[c] = sum of weighted[n, c] over n
    for n, g in every image and group, with M elements in a group:              # means over the group
        a[n, g] = sum(weight[c] * plain[n, c] for c in the group) / M
        b[n, g] = sum(weight[c] * weighted[n, c] for c in the group) / M
    for n, c, p in every image, channel and pixel:
        gx[n, c, p] = (gy[n, c, p] * weight[c] - a[n, g] - xh[n, c, p] * b[n, g]) * rstd[n, g]

Kernels: group_statistics_kernel and normalise_kernel, the forward; plane_sums_kernel, one block a plane;
group_means_kernel, one thread a group; gx_kernel, one element a thread and step; channel_sums_kernel, one thread a
channel. Every sum has one order: no atomics, the same bits each time. xh is computed again from x, mean and rstd: to
save it would take as many bytes as x.

Your task: fill in the 4 places marked YOUR CODE HERE, so that ModelNew has the gradients that Model in
kernels_ref/groupnorm/model.py has, for any shape.

  1. add up gy and gy * xh over the plane's pixels; thread 0 stores both (about 15 lines)
  2. from the sums of this group's planes, its two means (about 10 lines)
  3. every pixel's gradient from its gy and xh, and its group's a and b (about 9 lines)
  4. add up this channel's two sums over the images, in one order (about 9 lines)

Grade it, with or without a GPU:  grader grade kernels_student/groupnorm_backward.py
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
std::vector<torch::Tensor> groupnorm_forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t groups,
                                             double eps);
std::vector<torch::Tensor> plane_sums(torch::Tensor gy, torch::Tensor x, torch::Tensor mean, torch::Tensor rstd);
torch::Tensor gradient_of_x(torch::Tensor gy, torch::Tensor x, torch::Tensor mean, torch::Tensor rstd,
                            torch::Tensor weight, torch::Tensor plain, torch::Tensor weighted);
std::vector<torch::Tensor> gradients_of_weights(torch::Tensor plain, torch::Tensor weighted);
"""

cuda_source = r"""
#include <algorithm>
#include <climits>
#include <vector>
#include <ATen/Dispatch.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int WARP = 32;
constexpr int THREADS = 256;           // a block: a whole number of warps
constexpr int64_t MAX_GRID_Y = 65535;

// Sum of every thread's v, returned to every thread of the block. All of them must call it. T is float or double.
template <typename T>
__device__ T block_sum(T v) {
    __shared__ T warp_sum[THREADS / WARP];
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        v += __shfl_down_sync(0xffffffff, v, offset);  // lane 0 ends with the sum of its warp
    }
    if (threadIdx.x % WARP == 0) warp_sum[threadIdx.x / WARP] = v;
    __syncthreads();  // all warps have written
    T sum = 0;
    for (int warp = 0; warp < THREADS / WARP; ++warp) sum += warp_sum[warp];
    __syncthreads();  // all have read: the next call may write
    return sum;
}

// One block a group: x (groups of all images, elements) -> mean, rstd = 1 / sqrt(variance + eps), both (groups).
template <typename T>
__global__ void group_statistics_kernel(const T* x, T* mean, T* rstd, int64_t elements, T eps) {
    x += blockIdx.x * elements;
    T sum = 0;
    for (int64_t i = threadIdx.x; i < elements; i += THREADS) sum += x[i];
    const T centre = block_sum(sum) / elements;

    T squares = 0, deviations = 0;
    for (int64_t i = threadIdx.x; i < elements; i += THREADS) {
        const T d = x[i] - centre;
        squares += d * d;
        deviations += d;
    }
    // The deviations from the exact mean sum to 0. What is left is the rounding error of centre: take it out again.
    const T error = block_sum(deviations) / elements;
    const T variance = block_sum(squares) / elements - error * error;

    if (threadIdx.x == 0) {
        mean[blockIdx.x] = centre + error;
        rstd[blockIdx.x] = 1 / sqrt((variance > 0 ? variance : 0) + eps);
    }
}

// y = (x - mean) * rstd * weight + bias, for x (N, C, pixels). blockIdx.x is the plane n * C + c; the threads of
// all its blocks (blockIdx.y) walk over its pixels side by side.
template <typename T>
__global__ void normalise_kernel(const T* x, const T* mean, const T* rstd, const T* weight, const T* bias, T* y,
                                 int C, int channels_a_group, int64_t pixels) {
    const int c = blockIdx.x % C;
    const int group = blockIdx.x / channels_a_group;  // over all images, as C is a whole number of groups
    const T m = mean[group], r = rstd[group], w = weight[c], b = bias[c];
    x += blockIdx.x * pixels;
    y += blockIdx.x * pixels;
    const int64_t step = (int64_t)gridDim.y * THREADS;
    for (int64_t p = blockIdx.y * THREADS + threadIdx.x; p < pixels; p += step) {
        y[p] = (x[p] - m) * r * w + b;
    }
}

// One block a plane n * C + c: gy, x (N, C, pixels) -> the plane's sums of gy and of gy * xh, both (N, C).
template <typename T>
__global__ void plane_sums_kernel(const T* gy, const T* x, const T* mean, const T* rstd, T* plain, T* weighted,
                                  int channels_a_group, int64_t pixels) {
    // YOUR CODE HERE: add up gy and gy * xh over the plane's pixels; thread 0 stores both (about 15 lines)
}

// One thread a group of an image: a and b, the group's means of weight * gy and of weight * gy * xh.
template <typename T>
__global__ void group_means_kernel(const T* plain, const T* weighted, const T* weight, T* a, T* b,
                                   int groups_of_all_images, int C, int channels_a_group, int64_t pixels) {
    // YOUR CODE HERE: from the sums of this group's planes, its two means (about 10 lines)
}

// gx = (gy * weight - a - xh * b) * rstd. Blocks and threads as in normalise_kernel.
template <typename T>
__global__ void gx_kernel(const T* gy, const T* x, const T* mean, const T* rstd, const T* weight, const T* a,
                          const T* b, T* gx, int C, int channels_a_group, int64_t pixels) {
    // YOUR CODE HERE: every pixel's gradient from its gy and xh, and its group's a and b (about 9 lines)
}

// One thread a channel: plain, weighted (N, C) -> gbias, gweight (C), in the order of the images.
template <typename T>
__global__ void channel_sums_kernel(const T* plain, const T* weighted, T* gbias, T* gweight, int64_t N, int C) {
    // YOUR CODE HERE: add up this channel's two sums over the images, in one order (about 9 lines)
}

// The kernels read bare memory: refuse a tensor that is not what they take it for.
static void check(const torch::Tensor& t, const char* name, const torch::Tensor& x) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == x.device(), name, " is on ", t.device(), ", x on ", x.device(), ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == torch::kFloat32 || t.scalar_type() == torch::kFloat64, name, " is ",
                t.scalar_type(), ", not float32 or float64: use .float()");
    TORCH_CHECK(t.scalar_type() == x.scalar_type(), name, " is ", t.scalar_type(), ", x is ", x.scalar_type());
}

// About 4 pixels a thread.
static dim3 planes(int64_t NC, int64_t pixels) {
    return dim3(NC, std::min((pixels + 4 * THREADS - 1) / (4 * THREADS), MAX_GRID_Y));
}

// Returns y, mean and rstd.
std::vector<torch::Tensor> groupnorm_forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t groups,
                                             double eps) {
    check(x, "x", x);
    check(weight, "weight", x);
    check(bias, "bias", x);
    TORCH_CHECK(x.dim() >= 2, "x has ", x.dim(), " dimensions: it needs a batch and channels");
    const int64_t N = x.size(0), C = x.size(1);
    TORCH_CHECK(groups > 0 && C % groups == 0, C, " channels cannot be cut into ", groups, " equal groups");
    TORCH_CHECK(weight.numel() == C && bias.numel() == C,
                "weight and bias need one element for each of ", C, " channels");
    TORCH_CHECK(N * C <= INT_MAX, "x has more than 2^31 - 1 planes (images times channels)");
    x = x.contiguous();
    weight = weight.contiguous();
    bias = bias.contiguous();

    torch::Tensor y = torch::empty_like(x);
    torch::Tensor mean = torch::empty({N, groups}, x.options()), rstd = torch::empty({N, groups}, x.options());
    if (y.numel() == 0) return {y, mean, rstd};  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const int64_t pixels = x.numel() / (N * C);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "groupnorm_forward", [&] {
        group_statistics_kernel<scalar_t><<<N * groups, THREADS, 0, stream>>>(
            x.data_ptr<scalar_t>(), mean.data_ptr<scalar_t>(), rstd.data_ptr<scalar_t>(),
            x.numel() / (N * groups), eps);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
        normalise_kernel<scalar_t><<<planes(N * C, pixels), THREADS, 0, stream>>>(
            x.data_ptr<scalar_t>(), mean.data_ptr<scalar_t>(), rstd.data_ptr<scalar_t>(), weight.data_ptr<scalar_t>(),
            bias.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), C, C / groups, pixels);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return {y, mean, rstd};
}

// Sums of gy and of gy * xh over each plane, both (N, C).
std::vector<torch::Tensor> plane_sums(torch::Tensor gy, torch::Tensor x, torch::Tensor mean, torch::Tensor rstd) {
    check(gy, "gy", x);
    const int64_t N = x.size(0), C = x.size(1), groups = mean.size(1);
    gy = gy.contiguous();  // sum().backward() sends one number with strides of 0
    x = x.contiguous();

    torch::Tensor plain = torch::zeros({N, C}, x.options()), weighted = torch::zeros({N, C}, x.options());
    if (x.numel() == 0) return {plain, weighted};

    const c10::cuda::CUDAGuard guard(x.device());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "plane_sums", [&] {
        plane_sums_kernel<scalar_t><<<N * C, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            gy.data_ptr<scalar_t>(), x.data_ptr<scalar_t>(), mean.data_ptr<scalar_t>(), rstd.data_ptr<scalar_t>(),
            plain.data_ptr<scalar_t>(), weighted.data_ptr<scalar_t>(), C / groups, x.numel() / (N * C));
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return {plain, weighted};
}

torch::Tensor gradient_of_x(torch::Tensor gy, torch::Tensor x, torch::Tensor mean, torch::Tensor rstd,
                            torch::Tensor weight, torch::Tensor plain, torch::Tensor weighted) {
    const int64_t N = x.size(0), C = x.size(1), groups = mean.size(1);
    gy = gy.contiguous();
    x = x.contiguous();
    weight = weight.contiguous();

    torch::Tensor gx = torch::empty_like(x);
    if (gx.numel() == 0) return gx;

    const c10::cuda::CUDAGuard guard(x.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const int64_t pixels = x.numel() / (N * C);
    torch::Tensor a = torch::empty({N, groups}, x.options()), b = torch::empty({N, groups}, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "gradient_of_x", [&] {
        group_means_kernel<scalar_t><<<(N * groups + THREADS - 1) / THREADS, THREADS, 0, stream>>>(
            plain.data_ptr<scalar_t>(), weighted.data_ptr<scalar_t>(), weight.data_ptr<scalar_t>(),
            a.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(), N * groups, C, C / groups, pixels);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
        gx_kernel<scalar_t><<<planes(N * C, pixels), THREADS, 0, stream>>>(
            gy.data_ptr<scalar_t>(), x.data_ptr<scalar_t>(), mean.data_ptr<scalar_t>(), rstd.data_ptr<scalar_t>(),
            weight.data_ptr<scalar_t>(), a.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(), gx.data_ptr<scalar_t>(), C,
            C / groups, pixels);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return gx;
}

// gweight and gbias.
std::vector<torch::Tensor> gradients_of_weights(torch::Tensor plain, torch::Tensor weighted) {
    const int64_t N = plain.size(0), C = plain.size(1);
    torch::Tensor gweight = torch::empty({C}, plain.options()), gbias = torch::empty({C}, plain.options());

    const c10::cuda::CUDAGuard guard(plain.device());
    AT_DISPATCH_FLOATING_TYPES(plain.scalar_type(), "gradients_of_weights", [&] {
        channel_sums_kernel<scalar_t><<<(C + THREADS - 1) / THREADS, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            plain.data_ptr<scalar_t>(), weighted.data_ptr<scalar_t>(), gbias.data_ptr<scalar_t>(),
            gweight.data_ptr<scalar_t>(), N, C);
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return {gweight, gbias};
}
"""

kernels = load_inline(
    name="groupnorm_backward",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["groupnorm_forward", "plane_sums", "gradient_of_x", "gradients_of_weights"],
)


class GroupNorm(torch.autograd.Function):
    """What autograd calls: forward saves what backward reads, backward returns one gradient per argument."""

    @staticmethod
    def forward(ctx, x, weight, bias, groups, eps):
        y, mean, rstd = kernels.groupnorm_forward(x, weight, bias, groups, eps)
        ctx.save_for_backward(x, mean, rstd, weight)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gy):
        x, mean, rstd, weight = ctx.saved_tensors
        plain, weighted = kernels.plane_sums(gy, x, mean, rstd)
        gx = gweight = gbias = None
        if ctx.needs_input_grad[0]:
            gx = kernels.gradient_of_x(gy, x, mean, rstd, weight, plain, weighted)
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            gweight, gbias = kernels.gradients_of_weights(plain, weighted)
        return gx, gweight, gbias, None, None


class ModelNew(nn.Module):
    """The same normalisation as Model with the same gradients: x (N, num_features, ...) on a GPU -> the same shape."""

    def __init__(self, num_features, num_groups):
        super().__init__()
        self.gn = nn.GroupNorm(num_groups=num_groups, num_channels=num_features)  # holds the weights, is never called

    def forward(self, x):
        return GroupNorm.apply(x, self.gn.weight, self.gn.bias, self.gn.num_groups, self.gn.eps)

# Made from kernels_ref/groupnorm/backward.py by `grader student`; skeleton 132a7c9a60db.
