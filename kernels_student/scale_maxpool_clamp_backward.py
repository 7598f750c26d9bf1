"""scale_maxpool_clamp with its backward: forward notes where each maximum was, and backward sends the gradient there.

Of a window only its first maximum moves y, and only if the clamp let it through. From the gradient gy of y, in Python:

    for n, c, py, px in every position of y:
        v = the largest value of the window of x * scale[c]
        gv = gy[n, c, py, px] if clamp_min <= v <= clamp_max else 0      # on the border it passes; at NaN it does not
        gx at the place of the first maximum = gv * scale[c]             # 0 everywhere else
        gscale[c] += gv * (x at that place)

Forward keeps, for each window, that place as a number (`at`: row times pool plus column; -1 where the clamp stopped it)
and x there (`top`). Backward needs nothing else: x, sixteen times as large as y, need not be kept or read again.

Kernels: scale_maxpool_clamp_kernel, the forward, one thread a window; pixels_backward_kernel, one thread a pixel: it
asks its window whether it is the place, so that no two threads write one pixel; planes_backward_kernel, one block a
plane (n, c): the plane's part of gscale; channels_kernel, one thread a channel: adds up the parts, image after image.
So each sum has one order, and the gradients are the same to the last bit each time.

Your task: fill in the 3 places marked YOUR CODE HERE, so that ModelNew has the gradients that Model in
kernels_ref/scale_maxpool_clamp/model.py has, for any shape.

  1. find the window and the place in it; gx is gy * scale if that is the window's at (about 11 lines)
  2. add up gv * top over the windows, gv being 0 where `at` is -1; thread 0 stores it (about 8 lines)
  3. add up this channel's part of every image, in one order; store the sum (about 5 lines)

Grade it, with or without a GPU:  grader grade kernels_student/scale_maxpool_clamp_backward.py
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
std::vector<torch::Tensor> scale_maxpool_clamp_forward(torch::Tensor x, torch::Tensor scale, int64_t pool,
                                                       double clamp_min, double clamp_max);
torch::Tensor gradient_of_x(torch::Tensor gy, torch::Tensor at, torch::Tensor scale, int64_t H, int64_t W,
                            int64_t pool);
torch::Tensor gradient_of_scale(torch::Tensor gy, torch::Tensor at, torch::Tensor top);
"""

cuda_source = r"""
#include <climits>
#include <vector>
#include <ATen/Dispatch.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int WARP = 32;
constexpr int THREADS = 256;           // a block: a whole number of warps
constexpr int64_t MAX_POOL = 46340;    // its square is below 2^31

// x (N, C, H, W) -> y (N, C, PH, PW) of `total` elements, one a thread: the maximum of x * scale[c] over a pool x pool
// window, kept between low and high. at: the first maximum's place in its window, -1 where the clamp has changed it or
// it is NaN; top: x there. T is float or double.
template <typename T>
__global__ void scale_maxpool_clamp_kernel(const T* x, const T* scale, T* y, int* at, T* top, int64_t total, int64_t C,
                                           int64_t H, int64_t W, int pool, int64_t PH, int64_t PW, T low, T high) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= total) return;
    const int64_t px = i % PW, py = i / PW % PH;
    const int64_t plane = i / PW / PH;  // n * C + c
    const T s = scale[plane % C];
    const T* window = x + (plane * H + py * pool) * W + px * pool;
    T best = -INFINITY;
    int place = 0;
    for (int dy = 0; dy < pool; ++dy) {
        for (int dx = 0; dx < pool; ++dx) {
            const T v = window[dy * W + dx] * s;
            if (v > best || isnan(v)) best = v, place = dy * pool + dx;  // of equal values the first stays
        }
    }
    top[i] = window[place / pool * W + place % pool];
    at[i] = low <= best && best <= high ? place : -1;
    if (best < low) best = low;
    if (best > high) best = high;
    y[i] = best;
}

// One thread a pixel: gy, at (N, C, PH, PW) -> gx (N, C, H, W) of `total` elements.
template <typename T>
__global__ void pixels_backward_kernel(const T* gy, const int* at, const T* scale, T* gx, int64_t total, int64_t C,
                                       int64_t H, int64_t W, int pool, int64_t PH, int64_t PW) {
    // YOUR CODE HERE: find the window and the place in it; gx is gy * scale if that is the window's at (about 11 lines)
}

// Sum of every thread's v, returned to every thread of the block. All of them must call it.
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

// One block a plane (n, c): gy, at, top (N, C, windows) -> part (N, C), the plane's sum of gv * top.
template <typename T>
__global__ void planes_backward_kernel(const T* gy, const int* at, const T* top, T* part, int64_t windows) {
    // YOUR CODE HERE: add up gv * top over the windows, gv being 0 where `at` is -1; thread 0 stores it (about 8 lines)
}

// One thread a channel: part (N, C) -> gscale (C), in the order of the images.
template <typename T>
__global__ void channels_kernel(const T* part, T* gscale, int64_t N, int C) {
    // YOUR CODE HERE: add up this channel's part of every image, in one order; store the sum (about 5 lines)
}

// The kernels read bare memory: refuse a tensor that is not what they take it for.
static void check(const torch::Tensor& t, const char* name, const torch::Tensor& x) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == x.device(), name, " is on ", t.device(), ", x on ", x.device(), ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == torch::kFloat32 || t.scalar_type() == torch::kFloat64, name, " is ",
                t.scalar_type(), ", not float32 or float64: use .float()");
    TORCH_CHECK(t.scalar_type() == x.scalar_type(), name, " is ", t.scalar_type(), ", x is ", x.scalar_type());
}

static int64_t blocks_for(int64_t elements) {
    const int64_t blocks = (elements + THREADS - 1) / THREADS;
    TORCH_CHECK(blocks <= INT_MAX, "more elements than a grid of blocks of ", THREADS, " threads");
    return blocks;
}

// Returns y, at and top.
std::vector<torch::Tensor> scale_maxpool_clamp_forward(torch::Tensor x, torch::Tensor scale, int64_t pool,
                                                       double clamp_min, double clamp_max) {
    check(x, "x", x);
    check(scale, "scale", x);
    TORCH_CHECK(x.dim() == 4, "x has ", x.dim(), " dimensions instead of 4");
    const int64_t C = x.size(1), H = x.size(2), W = x.size(3);
    TORCH_CHECK(H <= INT_MAX && W <= INT_MAX && C <= INT_MAX, "x has a side longer than 2^31 - 1");
    TORCH_CHECK(scale.sizes() == torch::IntArrayRef({C, 1, 1}), "scale must be (", C, ", 1, 1), not ", scale.sizes());
    TORCH_CHECK(pool > 0 && pool <= H && pool <= W && pool <= MAX_POOL,
                "a pooling window of ", pool, " does not fit into the image (", H, " x ", W, ")");
    x = x.contiguous();
    scale = scale.contiguous();

    torch::Tensor y = torch::empty({x.size(0), C, H / pool, W / pool}, x.options());
    torch::Tensor at = torch::empty(y.sizes(), x.options().dtype(torch::kInt32)), top = torch::empty_like(y);
    const int64_t total = y.numel();
    if (total == 0) return {y, at, top};  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale_maxpool_clamp_forward", [&] {
        scale_maxpool_clamp_kernel<scalar_t><<<blocks_for(total), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<scalar_t>(), scale.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), at.data_ptr<int>(),
            top.data_ptr<scalar_t>(), total, C, H, W, pool, H / pool, W / pool, clamp_min, clamp_max);
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return {y, at, top};
}

torch::Tensor gradient_of_x(torch::Tensor gy, torch::Tensor at, torch::Tensor scale, int64_t H, int64_t W,
                            int64_t pool) {
    check(gy, "gy", scale);
    const int64_t N = at.size(0), C = at.size(1);
    gy = gy.contiguous();  // sum().backward() sends one number with strides of 0
    scale = scale.contiguous();
    torch::Tensor gx = torch::empty({N, C, H, W}, gy.options());
    if (gx.numel() == 0) return gx;

    const c10::cuda::CUDAGuard guard(gy.device());
    AT_DISPATCH_FLOATING_TYPES(gy.scalar_type(), "gradient_of_x", [&] {
        pixels_backward_kernel<scalar_t><<<blocks_for(gx.numel()), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            gy.data_ptr<scalar_t>(), at.data_ptr<int>(), scale.data_ptr<scalar_t>(), gx.data_ptr<scalar_t>(),
            gx.numel(), C, H, W, pool, at.size(2), at.size(3));
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return gx;
}

torch::Tensor gradient_of_scale(torch::Tensor gy, torch::Tensor at, torch::Tensor top) {
    check(gy, "gy", top);
    const int64_t N = at.size(0), C = at.size(1), windows = at.size(2) * at.size(3);
    gy = gy.contiguous();
    torch::Tensor gscale = torch::zeros({C, 1, 1}, gy.options());
    if (at.numel() == 0) return gscale;
    TORCH_CHECK(N * C <= INT_MAX, "x has more than 2^31 - 1 planes (images times channels)");

    const c10::cuda::CUDAGuard guard(gy.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    torch::Tensor part = torch::empty({N, C}, gy.options());
    AT_DISPATCH_FLOATING_TYPES(gy.scalar_type(), "gradient_of_scale", [&] {
        planes_backward_kernel<scalar_t><<<N * C, THREADS, 0, stream>>>(
            gy.data_ptr<scalar_t>(), at.data_ptr<int>(), top.data_ptr<scalar_t>(), part.data_ptr<scalar_t>(), windows);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
        channels_kernel<scalar_t><<<blocks_for(C), THREADS, 0, stream>>>(
            part.data_ptr<scalar_t>(), gscale.data_ptr<scalar_t>(), N, C);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return gscale;
}
"""

kernels = load_inline(
    name="scale_maxpool_clamp_backward",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["scale_maxpool_clamp_forward", "gradient_of_x", "gradient_of_scale"],
)


class ScaleMaxpoolClamp(torch.autograd.Function):
    """What autograd calls: forward saves what backward reads, backward returns one gradient per argument."""

    @staticmethod
    def forward(ctx, x, scale, pool, clamp_min, clamp_max):
        y, at, top = kernels.scale_maxpool_clamp_forward(x, scale, pool, clamp_min, clamp_max)
        ctx.save_for_backward(at, top, scale)
        ctx.size = (x.shape[2], x.shape[3], pool)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gy):
        at, top, scale = ctx.saved_tensors
        gx = kernels.gradient_of_x(gy, at, scale, *ctx.size) if ctx.needs_input_grad[0] else None
        gscale = kernels.gradient_of_scale(gy, at, top) if ctx.needs_input_grad[1] else None
        return gx, gscale, None, None, None


class ModelNew(nn.Module):
    """The same function as Model with the same gradients: x (N, C, H, W) on a GPU -> (N, C, H // pool, W // pool)."""

    def __init__(self, scale_shape, maxpool_kernel_size, clamp_min, clamp_max):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(scale_shape))
        self.pool = maxpool_kernel_size
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        return ScaleMaxpoolClamp.apply(x, self.scale, self.pool, self.clamp_min, self.clamp_max)

# Made from kernels_ref/scale_maxpool_clamp/backward.py by `grader student`; skeleton 61e5b698e03b.
