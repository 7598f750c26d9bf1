"""conv2d with its backward: three gradients, each a gather, so that no two threads ever add to one number.

With y[n, oc, oy, ox] = bias[oc] + the sum of x[n, c, oy + ky, ox + kx] * weight[oc, c, ky, kx] over c, ky, kx, each
gradient adds up the products in which its element takes part. From the gradient gy of y, in Python:

    for n, c, iy, ix in every element of x:
        gx[n, c, iy, ix] = sum(gy[n, oc, iy - ky, ix - kx] * weight[oc, c, ky, kx] for every oc, ky, kx inside of gy)
    for oc, c, ky, kx in every element of weight:
        gweight[oc, c, ky, kx] = sum(gy[n, oc, oy, ox] * x[n, c, oy + ky, ox + kx] for every n, oy, ox)
    gbias[oc] = sum(gy[n, oc, oy, ox] for every n, oy, ox)

Kernels: conv2d_kernel, the forward; gx_kernel, one thread an element of x. Sums over images and pixels take two stages:
weight_parts_kernel and bias_parts_kernel, one warp an image's part of one sum; images_kernel, one thread a sum, adds
the parts up in the order of the images. So the gradients are the same to the last bit each time, which atomicAdd would
not promise.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
torch::Tensor conv2d_forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);
torch::Tensor gradient_of_x(torch::Tensor gy, torch::Tensor x, torch::Tensor weight);
torch::Tensor gradient_of_weight(torch::Tensor gy, torch::Tensor x, torch::Tensor weight);
torch::Tensor gradient_of_bias(torch::Tensor gy);
"""

cuda_source = r"""
#include <algorithm>
#include <climits>
#include <ATen/Dispatch.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int WARP = 32;
constexpr int THREADS = 256;           // a block: a whole number of warps
constexpr int64_t MAX_GRID_Y = 65535;

// x (N, C, H, W), weight (OC, C, KH, KW), bias (OC) -> y (N, OC, OH, OW), `total` elements. T is float or double.
template <typename T>
__global__ void conv2d_kernel(const T* x, const T* weight, const T* bias, T* y, int64_t total,
                              int C, int H, int W, int OC, int KH, int KW, int OH, int OW) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;  // the last block has threads to spare

    const int ox = i % OW;
    const int oy = i / OW % OH;
    const int oc = i / OW / OH % OC;
    const int64_t n = i / OW / OH / OC;  // 64 bits: the products below may pass 2^31

    T sum = bias[oc];
    for (int c = 0; c < C; ++c) {
        for (int ky = 0; ky < KH; ++ky) {
            const T* x_row = x + ((n * C + c) * H + oy + ky) * W + ox;
            const T* w_row = weight + (((int64_t)oc * C + c) * KH + ky) * KW;
            for (int kx = 0; kx < KW; ++kx) {
                sum += x_row[kx] * w_row[kx];
            }
        }
    }
    y[i] = sum;
}

// gy (N, OC, OH, OW), weight (OC, C, KH, KW) -> gx (N, C, H, W), `total` elements.
template <typename T>
__global__ void gx_kernel(const T* gy, const T* weight, T* gx, int64_t total,
                          int C, int H, int W, int OC, int KH, int KW, int OH, int OW) {
    // >>> exercise: find n, c, iy, ix; add up over oc and all windows with this pixel; store (about 20 lines)
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    const int ix = i % W;
    const int iy = i / W % H;
    const int c = i / W / H % C;
    const int64_t n = i / W / H / C;
    T sum = 0;
    for (int oc = 0; oc < OC; ++oc) {
        for (int ky = 0; ky < KH; ++ky) {
            const int oy = iy - ky;  // the window that has this pixel in its row ky
            if (oy < 0 || oy >= OH) continue;
            const T* gy_row = gy + ((n * OC + oc) * OH + oy) * OW;
            const T* w_row = weight + (((int64_t)oc * C + c) * KH + ky) * KW;
            for (int kx = 0; kx < KW; ++kx) {
                const int ox = ix - kx;
                if (ox >= 0 && ox < OW) sum += gy_row[ox] * w_row[kx];
            }
        }
    }
    gx[i] = sum;
    // <<<
}

// The sum over the warp's 32 lanes, in lane 0. All of them must call it.
template <typename T>
__device__ T warp_sum(T v) {
    for (int offset = WARP / 2; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffff, v, offset);
    return v;
}

// Stage 1 of gweight, one warp for each of `weights` elements and each row blockIdx.y of parts (rows, weights). Row r
// has images r, r + rows, r + 2 * rows, ... : one image a row, unless there are more images than a grid may have
// rows.
template <typename T>
__global__ void weight_parts_kernel(const T* gy, const T* x, T* parts, int64_t N, int64_t weights,
                                    int C, int H, int W, int OC, int KH, int KW, int OH, int OW) {
    const int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / WARP;  // this warp's element of weight
    const int lane = threadIdx.x % WARP;
    if (i >= weights) return;  // all lanes together
    // >>> exercise: find oc, c, ky, kx; each lane adds every 32nd pixel; lane 0 stores the sum (about 14 lines)
    const int kx = i % KW;
    const int ky = i / KW % KH;
    const int c = i / KW / KH % C;
    const int oc = i / KW / KH / C;
    T sum = 0;
    for (int64_t n = blockIdx.y; n < N; n += gridDim.y) {
        const T* gy_plane = gy + (n * OC + oc) * OH * OW;
        const T* x_plane = x + (n * C + c) * H * W + (int64_t)ky * W + kx;
        for (int p = lane; p < OH * OW; p += WARP) {
            sum += gy_plane[p] * x_plane[(int64_t)(p / OW) * W + p % OW];
        }
    }
    sum = warp_sum(sum);
    if (lane == 0) parts[blockIdx.y * weights + i] = sum;
    // <<<
}

// Stage 1 of gbias, one warp for each channel and each row of parts (rows, OC). Rows as above.
template <typename T>
__global__ void bias_parts_kernel(const T* gy, T* parts, int64_t N, int OC, int64_t pixels) {
    const int oc = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / WARP;
    const int lane = threadIdx.x % WARP;
    if (oc >= OC) return;  // all lanes together
    // >>> exercise: the same for gy alone (about 7 lines)
    T sum = 0;
    for (int64_t n = blockIdx.y; n < N; n += gridDim.y) {
        const T* gy_plane = gy + (n * OC + oc) * pixels;
        for (int64_t p = lane; p < pixels; p += WARP) sum += gy_plane[p];
    }
    sum = warp_sum(sum);
    if (lane == 0) parts[(int64_t)blockIdx.y * OC + oc] = sum;
    // <<<
}

// Stage 2: parts (rows, count) -> sums (count), one thread each, in the order of the rows.
template <typename T>
__global__ void images_kernel(const T* parts, T* sums, int64_t rows, int64_t count) {
    // >>> exercise: add up this thread's column of parts, from row 0 on (about 5 lines)
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    T sum = 0;
    for (int64_t row = 0; row < rows; ++row) sum += parts[row * count + i];
    sums[i] = sum;
    // <<<
}

// The kernels read bare memory: refuse a tensor that is not what they take it for.
static void check(const torch::Tensor& t, const char* name, int64_t dims, const torch::Tensor& x) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == x.device(), name, " is on ", t.device(), ", x on ", x.device(), ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == torch::kFloat32 || t.scalar_type() == torch::kFloat64, name, " is ",
                t.scalar_type(), ", not float32 or float64: use .float()");
    TORCH_CHECK(t.scalar_type() == x.scalar_type(), name, " is ", t.scalar_type(), ", x is ", x.scalar_type());
    TORCH_CHECK(t.dim() == dims, name, " has ", t.dim(), " dimensions instead of ", dims);
    for (int64_t size : t.sizes()) TORCH_CHECK(size <= INT_MAX, name, " has a side longer than 2^31 - 1");
}

static int64_t blocks_for(int64_t threads) { return (threads + THREADS - 1) / THREADS; }

torch::Tensor conv2d_forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
    check(x, "x", 4, x);
    check(weight, "weight", 4, x);
    check(bias, "bias", 1, x);
    const int64_t N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
    const int64_t OC = weight.size(0), KH = weight.size(2), KW = weight.size(3);
    TORCH_CHECK(weight.size(1) == C, "x has ", C, " channels, the weight is for ", weight.size(1));
    TORCH_CHECK(bias.size(0) == OC, "bias has ", bias.size(0), " elements for ", OC, " output channels");
    TORCH_CHECK(H >= KH && W >= KW, "the image (", H, " x ", W, ") is smaller than the kernel (", KH, " x ", KW, ")");
    TORCH_CHECK(H * W <= INT_MAX, "a channel of x has more than 2^31 - 1 pixels");
    x = x.contiguous();
    weight = weight.contiguous();
    bias = bias.contiguous();

    const int64_t OH = H - KH + 1, OW = W - KW + 1;
    torch::Tensor y = torch::empty({N, OC, OH, OW}, x.options());
    const int64_t total = y.numel();
    if (total == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "conv2d_forward", [&] {
        conv2d_kernel<scalar_t><<<blocks_for(total), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<scalar_t>(), weight.data_ptr<scalar_t>(), bias.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(),
            total, C, H, W, OC, KH, KW, OH, OW);
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}

torch::Tensor gradient_of_x(torch::Tensor gy, torch::Tensor x, torch::Tensor weight) {
    check(gy, "gy", 4, x);
    gy = gy.contiguous();  // sum().backward() sends one number with strides of 0
    weight = weight.contiguous();

    torch::Tensor gx = torch::empty(x.sizes(), x.options());
    const int64_t total = gx.numel();
    if (total == 0) return gx;

    const c10::cuda::CUDAGuard guard(x.device());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "gradient_of_x", [&] {
        gx_kernel<scalar_t><<<blocks_for(total), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            gy.data_ptr<scalar_t>(), weight.data_ptr<scalar_t>(), gx.data_ptr<scalar_t>(), total, x.size(1), x.size(2),
            x.size(3), weight.size(0), weight.size(2), weight.size(3), gy.size(2), gy.size(3));
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return gx;
}

// Stage 2 for both: parts (rows, ...) -> the sum over the rows.
static torch::Tensor sum_of_rows(const torch::Tensor& parts) {
    torch::Tensor sums = torch::empty(parts.sizes().slice(1), parts.options());
    AT_DISPATCH_FLOATING_TYPES(parts.scalar_type(), "sum_of_rows", [&] {
        images_kernel<scalar_t><<<blocks_for(sums.numel()), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            parts.data_ptr<scalar_t>(), sums.data_ptr<scalar_t>(), parts.size(0), sums.numel());
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return sums;
}

torch::Tensor gradient_of_weight(torch::Tensor gy, torch::Tensor x, torch::Tensor weight) {
    check(gy, "gy", 4, x);
    const int64_t N = x.size(0), C = x.size(1), OC = weight.size(0), KH = weight.size(2), KW = weight.size(3);
    gy = gy.contiguous();
    x = x.contiguous();
    if (gy.numel() == 0) return torch::zeros(weight.sizes(), x.options());

    const c10::cuda::CUDAGuard guard(x.device());
    const int64_t rows = std::min(N, MAX_GRID_Y);
    torch::Tensor parts = torch::empty({rows, OC, C, KH, KW}, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "gradient_of_weight", [&] {
        weight_parts_kernel<scalar_t>
            <<<dim3(blocks_for(weight.numel() * WARP), rows), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
                gy.data_ptr<scalar_t>(), x.data_ptr<scalar_t>(), parts.data_ptr<scalar_t>(), N, weight.numel(), C,
                x.size(2), x.size(3), OC, KH, KW, gy.size(2), gy.size(3));
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return sum_of_rows(parts);
}

torch::Tensor gradient_of_bias(torch::Tensor gy) {
    check(gy, "gy", 4, gy);
    const int64_t N = gy.size(0), OC = gy.size(1);
    gy = gy.contiguous();
    if (gy.numel() == 0) return torch::zeros({OC}, gy.options());

    const c10::cuda::CUDAGuard guard(gy.device());
    const int64_t rows = std::min(N, MAX_GRID_Y);
    torch::Tensor parts = torch::empty({rows, OC}, gy.options());
    AT_DISPATCH_FLOATING_TYPES(gy.scalar_type(), "gradient_of_bias", [&] {
        bias_parts_kernel<scalar_t>
            <<<dim3(blocks_for(OC * WARP), rows), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
                gy.data_ptr<scalar_t>(), parts.data_ptr<scalar_t>(), N, OC, gy.size(2) * gy.size(3));
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return sum_of_rows(parts);
}
"""

kernels = load_inline(
    name="conv2d_backward",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["conv2d_forward", "gradient_of_x", "gradient_of_weight", "gradient_of_bias"],
)


class Conv2d(torch.autograd.Function):
    """What autograd calls: forward saves what backward reads, backward returns one gradient per argument."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return kernels.conv2d_forward(x, weight, bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gy):
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        return (
            kernels.gradient_of_x(gy, x, weight) if of_x else None,
            kernels.gradient_of_weight(gy, x, weight) if of_weight else None,
            kernels.gradient_of_bias(gy) if of_bias else None,
        )


class ModelNew(nn.Module):
    """The same convolution as Model with the same gradients: x (N, in_channels, H, W) on a GPU -> (N, out_channels, OH,
    OW).
    """

    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)  # holds the weights, is never called

    def forward(self, x):
        return Conv2d.apply(x, self.conv.weight, self.conv.bias)
