"""conv_groupnorm_maxpool with its backward: forward notes where each maximum was, backward starts from there.

Forward, for every image n, channel c of group g and pixel p:

    v  = conv(x)                                        # kept for backward: computing it again is a whole convolution
    xh = (v - mean[n, g]) * rstd[n, g]
    u  = xh * gn_weight[c] + gn_bias[c]
    y at window = clamp(max(u * scale[c] for the window's pixels), clamp_min, clamp_max)

Backward, from the gradient gy of y, in Python. In each window only the first maximum counts, and only if it was not
clamped:

    gm = gy[n, c, window] if clamp_min <= maximum <= clamp_max else 0       # on the border it passes, as in PyTorch
    plain[n, c]    = sum(gm for the windows of a plane)
    weighted[n, c] = sum(gm * (xh at the window's first maximum) for the windows of a plane)
    ggn_bias[c]   = scale[c] * sum of plain[n, c] over n
    ggn_weight[c] = scale[c] * sum of weighted[n, c] over n
    gscale[c]     = gn_weight[c] * sum of weighted[n, c] over n + gn_bias[c] * sum of plain[n, c] over n    # gm * u
    factor[c] = gn_weight[c] * scale[c]                                     # what stands between xh and the maximum
    a[n, g] = sum(factor[c] * plain[n, c] for c in the group) / the number of elements in a group
    b[n, g] = sum(factor[c] * weighted[n, c] for c in the group) / the same number
    gv = ((gm at a first maximum, 0 elsewhere) * factor[c] - a[n, g] - xh * b[n, g]) * rstd[n, g]
    gconv_bias[c] = sum of gv over n and p;  gx and gconv_weight from gv as in conv2d_backward

So gm is 0 nearly everywhere, and gv nowhere: mean and deviation carry each maximum's gradient to the whole group, also
to the last rows and columns, which no window reaches.

Kernels: conv2d_kernel, group_statistics_kernel and norm_scale_maxpool_clamp_kernel, the forward. plane_sums_kernel, one
block a plane, walks over its windows; group_means_kernel, one thread a group; gv_kernel, one block a plane, asks for
each pixel whether it is its window's place; channels_kernel, one thread a channel, adds over the images, in their
order. The convolution's gx_kernel, weight_parts_kernel and images_kernel are repeated: the file stays whole, as it is
handed in alone. No atomics: each sum has one order, and so the same bits each time. Kept from forward: x, v, mean,
rstd, for each window its maximum's place (`at`: row times pool plus column, or -1 where the clamp stopped it), and the
weights. The normalised image is not: xh is two operations away from v.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
std::vector<torch::Tensor> conv_groupnorm_maxpool_forward(torch::Tensor x, torch::Tensor conv_weight,
                                                          torch::Tensor conv_bias, torch::Tensor gn_weight,
                                                          torch::Tensor gn_bias, torch::Tensor scale, int64_t groups,
                                                          double eps, int64_t pool, double clamp_min,
                                                          double clamp_max);
std::vector<torch::Tensor> plane_sums(torch::Tensor gy, torch::Tensor at, torch::Tensor v, torch::Tensor mean,
                                      torch::Tensor rstd, int64_t pool);
std::vector<torch::Tensor> gradient_of_v(torch::Tensor gy, torch::Tensor at, torch::Tensor v, torch::Tensor mean,
                                         torch::Tensor rstd, torch::Tensor gn_weight, torch::Tensor scale,
                                         torch::Tensor plain, torch::Tensor weighted, int64_t pool);
std::vector<torch::Tensor> gradients_of_channels(torch::Tensor plain, torch::Tensor weighted, torch::Tensor gn_weight,
                                                 torch::Tensor gn_bias, torch::Tensor scale);
torch::Tensor gradient_of_x(torch::Tensor gy, torch::Tensor x, torch::Tensor weight);
torch::Tensor gradient_of_weight(torch::Tensor gy, torch::Tensor x, torch::Tensor weight);
torch::Tensor sum_of_images(torch::Tensor parts);
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
constexpr int64_t MAX_POOL = 46340;    // its square is below 2^31

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

// v (N, C, H, W) -> y (N, C, PH, PW), `total` elements: the maximum over a pool x pool window of
// ((v - mean) * rstd * gn_weight + gn_bias) * scale, kept between clamp_min and clamp_max. at, like y: the first
// maximum's place in its window, -1 where the clamp has changed it or it is NaN.
template <typename T>
__global__ void norm_scale_maxpool_clamp_kernel(const T* v, const T* mean, const T* rstd, const T* gn_weight,
                                                const T* gn_bias, const T* scale, T* y, int* at, int64_t total, int C,
                                                int channels_a_group, int H, int W, int pool, int PH, int PW,
                                                T clamp_min, T clamp_max) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    const int px = i % PW;
    const int py = i / PW % PH;
    const int64_t plane = i / PW / PH;  // n * C + c
    const int c = plane % C;
    const int64_t group = plane / channels_a_group;  // over all images, as C is a whole number of groups
    const T m = mean[group], r = rstd[group], w = gn_weight[c], b = gn_bias[c], s = scale[c];

    T best = -INFINITY;
    int place = 0;
    for (int dy = 0; dy < pool; ++dy) {
        const T* row = v + (plane * H + (int64_t)py * pool + dy) * W + (int64_t)px * pool;
        for (int dx = 0; dx < pool; ++dx) {
            const T value = ((row[dx] - m) * r * w + b) * s;
            if (value > best || isnan(value)) best = value, place = dy * pool + dx;  // of equal values the first stays
        }
    }
    at[i] = clamp_min <= best && best <= clamp_max ? place : -1;
    if (best < clamp_min) best = clamp_min;
    if (best > clamp_max) best = clamp_max;
    y[i] = best;
}

// One block a plane n * C + c: gy, at (N, C, PH, PW), v (N, C, H, W) -> the plane's sums of gm and of gm * xh, both
// (N, C).
template <typename T>
__global__ void plane_sums_kernel(const T* gy, const int* at, const T* v, const T* mean, const T* rstd, T* plain,
                                  T* weighted, int channels_a_group, int H, int W, int pool, int PH, int PW) {
    // >>> exercise: add up gm, and gm times xh at the window's place; thread 0 stores both sums (about 18 lines)
    const int64_t group = blockIdx.x / channels_a_group;  // over all images
    const T m = mean[group], r = rstd[group];
    const int64_t first = (int64_t)blockIdx.x * PH * PW;
    v += (int64_t)blockIdx.x * H * W;
    T sum = 0, products = 0;
    for (int64_t i = threadIdx.x; i < (int64_t)PH * PW; i += THREADS) {
        const int place = at[first + i];
        if (place < 0) continue;  // the clamp has stopped it
        const int64_t row = i / PW * pool + place / pool, column = i % PW * pool + place % pool;
        sum += gy[first + i];
        products += gy[first + i] * ((v[row * W + column] - m) * r);
    }
    sum = block_sum(sum);
    products = block_sum(products);
    if (threadIdx.x == 0) {
        plain[blockIdx.x] = sum;
        weighted[blockIdx.x] = products;
    }
    // <<<
}

// One thread a group of an image: a and b, the group's means of factor * gm and of factor * gm * xh, where
// factor = gn_weight[c] * scale[c].
template <typename T>
__global__ void group_means_kernel(const T* plain, const T* weighted, const T* gn_weight, const T* scale, T* a, T* b,
                                   int groups_of_all_images, int C, int channels_a_group, int64_t pixels) {
    // >>> exercise: from the sums of this group's planes, its two means (about 11 lines)
    const int group = blockIdx.x * blockDim.x + threadIdx.x;
    if (group >= groups_of_all_images) return;
    T sum = 0, products = 0;
    for (int plane = group * channels_a_group; plane < (group + 1) * channels_a_group; ++plane) {
        const T factor = gn_weight[plane % C] * scale[plane % C];
        sum += factor * plain[plane];
        products += factor * weighted[plane];
    }
    const T elements = T(channels_a_group) * T(pixels);
    a[group] = sum / elements;
    b[group] = products / elements;
    // <<<
}

// One block a plane: gv (N, C, H, W), and each plane's sum of it, total (N, C).
template <typename T>
__global__ void gv_kernel(const T* gy, const int* at, const T* v, const T* mean, const T* rstd, const T* gn_weight,
                          const T* scale, const T* a, const T* b, T* gv, T* total, int C, int channels_a_group, int H,
                          int W, int pool, int PH, int PW) {
    // >>> exercise: each pixel's gm (0 unless it is the place), then gv; thread 0 stores its sum (about 20 lines)
    const int c = blockIdx.x % C;
    const int64_t group = blockIdx.x / channels_a_group;
    const T m = mean[group], r = rstd[group], factor = gn_weight[c] * scale[c];
    const T mean_gm = a[group], mean_gm_xh = b[group];
    const int64_t pixels = (int64_t)H * W, first = blockIdx.x * pixels;
    T sum = 0;
    for (int64_t p = threadIdx.x; p < pixels; p += THREADS) {
        const int row = p / W, column = p % W, py = row / pool, px = column / pool;
        T gm = 0;
        if (py < PH && px < PW) {  // the last rows and columns may belong to no window
            const int64_t window = ((int64_t)blockIdx.x * PH + py) * PW + px;
            if (at[window] == row % pool * pool + column % pool) gm = gy[window];
        }
        const T xh = (v[first + p] - m) * r;
        const T g = (gm * factor - mean_gm - xh * mean_gm_xh) * r;
        gv[first + p] = g;
        sum += g;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) total[blockIdx.x] = sum;
    // <<<
}

// One thread a channel: plain, weighted (N, C) -> ggn_weight, ggn_bias, gscale (C), in the order of the images.
template <typename T>
__global__ void channels_kernel(const T* plain, const T* weighted, const T* gn_weight, const T* gn_bias, const T* scale,
                                T* ggn_weight, T* ggn_bias, T* gscale, int64_t N, int C) {
    // >>> exercise: add this channel's two sums over the images, in order; store the three gradients (about 10 lines)
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= C) return;
    T sum = 0, products = 0;
    for (int64_t n = 0; n < N; ++n) {
        sum += plain[n * C + c];
        products += weighted[n * C + c];
    }
    ggn_weight[c] = products * scale[c];
    ggn_bias[c] = sum * scale[c];
    gscale[c] = products * gn_weight[c] + sum * gn_bias[c];
    // <<<
}

// The convolution's gradients, as in conv2d_backward. Here gy is the gradient of the convolution's result.

// gy (N, OC, OH, OW), weight (OC, C, KH, KW) -> gx (N, C, H, W), `total` elements.
template <typename T>
__global__ void gx_kernel(const T* gy, const T* weight, T* gx, int64_t total,
                          int C, int H, int W, int OC, int KH, int KW, int OH, int OW) {
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
}

// Stage 2: parts (rows, count) -> sums (count), one thread each, in the order of the rows.
template <typename T>
__global__ void images_kernel(const T* parts, T* sums, int64_t rows, int64_t count) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    T sum = 0;
    for (int64_t row = 0; row < rows; ++row) sum += parts[row * count + i];
    sums[i] = sum;
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

static int64_t blocks_for(int64_t threads) {
    const int64_t blocks = (threads + THREADS - 1) / THREADS;
    TORCH_CHECK(blocks <= INT_MAX, "more elements than a grid of blocks of ", THREADS, " threads");
    return blocks;
}

// Returns y, and what backward needs besides: at, v, mean and rstd.
std::vector<torch::Tensor> conv_groupnorm_maxpool_forward(torch::Tensor x, torch::Tensor conv_weight,
                                                          torch::Tensor conv_bias, torch::Tensor gn_weight,
                                                          torch::Tensor gn_bias, torch::Tensor scale, int64_t groups,
                                                          double eps, int64_t pool, double clamp_min,
                                                          double clamp_max) {
    check(x, "x", 4, x);
    check(conv_weight, "the convolution's weight", 4, x);
    check(conv_bias, "the convolution's bias", 1, x);
    check(gn_weight, "the normalisation's weight", 1, x);
    check(gn_bias, "the normalisation's bias", 1, x);
    check(scale, "scale", 3, x);
    const int64_t N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
    const int64_t OC = conv_weight.size(0), KH = conv_weight.size(2), KW = conv_weight.size(3);
    TORCH_CHECK(conv_weight.size(1) == C, "x has ", C, " channels, the weight is for ", conv_weight.size(1));
    TORCH_CHECK(H >= KH && W >= KW, "the image (", H, " x ", W, ") is smaller than the kernel (", KH, " x ", KW, ")");
    TORCH_CHECK(H * W <= INT_MAX, "a channel of x has more than 2^31 - 1 pixels");
    TORCH_CHECK(conv_bias.size(0) == OC && gn_weight.size(0) == OC && gn_bias.size(0) == OC,
                "every bias and weight needs one element for each of ", OC, " output channels");
    TORCH_CHECK(groups > 0 && OC % groups == 0, OC, " channels cannot be cut into ", groups, " equal groups");
    TORCH_CHECK(N * OC <= INT_MAX, "the result has more than 2^31 - 1 planes (images times channels)");
    TORCH_CHECK(scale.sizes() == torch::IntArrayRef({OC, 1, 1}), "scale must be (", OC, ", 1, 1), not ", scale.sizes());
    const int64_t OH = H - KH + 1, OW = W - KW + 1;
    TORCH_CHECK(pool > 0 && pool <= OH && pool <= OW && pool <= MAX_POOL,
                "a pooling window of ", pool, " does not fit into the convolution's output (", OH, " x ", OW, ")");
    x = x.contiguous();
    conv_weight = conv_weight.contiguous();
    conv_bias = conv_bias.contiguous();
    gn_weight = gn_weight.contiguous();
    gn_bias = gn_bias.contiguous();
    scale = scale.contiguous();

    torch::Tensor y = torch::empty({N, OC, OH / pool, OW / pool}, x.options());
    torch::Tensor at = torch::empty(y.sizes(), x.options().dtype(torch::kInt32));
    torch::Tensor v = torch::empty({N, OC, OH, OW}, x.options());
    torch::Tensor mean = torch::empty({N, groups}, x.options()), rstd = torch::empty({N, groups}, x.options());
    if (y.numel() == 0) return {y, at, v, mean, rstd};  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "conv_groupnorm_maxpool_forward", [&] {
        conv2d_kernel<scalar_t><<<blocks_for(v.numel()), THREADS, 0, stream>>>(
            x.data_ptr<scalar_t>(), conv_weight.data_ptr<scalar_t>(), conv_bias.data_ptr<scalar_t>(),
            v.data_ptr<scalar_t>(), v.numel(), C, H, W, OC, KH, KW, OH, OW);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
        group_statistics_kernel<scalar_t><<<N * groups, THREADS, 0, stream>>>(
            v.data_ptr<scalar_t>(), mean.data_ptr<scalar_t>(), rstd.data_ptr<scalar_t>(), v.numel() / (N * groups),
            eps);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
        norm_scale_maxpool_clamp_kernel<scalar_t><<<blocks_for(y.numel()), THREADS, 0, stream>>>(
            v.data_ptr<scalar_t>(), mean.data_ptr<scalar_t>(), rstd.data_ptr<scalar_t>(),
            gn_weight.data_ptr<scalar_t>(),
            gn_bias.data_ptr<scalar_t>(), scale.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), at.data_ptr<int>(),
            y.numel(), OC, OC / groups, OH, OW, pool, OH / pool, OW / pool, clamp_min, clamp_max);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return {y, at, v, mean, rstd};
}

// Sums of gm and of gm * xh over each plane, both (N, OC).
std::vector<torch::Tensor> plane_sums(torch::Tensor gy, torch::Tensor at, torch::Tensor v, torch::Tensor mean,
                                      torch::Tensor rstd, int64_t pool) {
    check(gy, "gy", 4, v);
    const int64_t N = v.size(0), C = v.size(1), groups = mean.size(1);
    gy = gy.contiguous();  // sum().backward() sends one number with strides of 0
    torch::Tensor plain = torch::empty({N, C}, v.options()), weighted = torch::empty({N, C}, v.options());
    if (v.numel() == 0) return {plain, weighted};

    const c10::cuda::CUDAGuard guard(v.device());
    AT_DISPATCH_FLOATING_TYPES(v.scalar_type(), "plane_sums", [&] {
        plane_sums_kernel<scalar_t><<<N * C, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            gy.data_ptr<scalar_t>(), at.data_ptr<int>(), v.data_ptr<scalar_t>(), mean.data_ptr<scalar_t>(),
            rstd.data_ptr<scalar_t>(), plain.data_ptr<scalar_t>(), weighted.data_ptr<scalar_t>(), C / groups, v.size(2),
            v.size(3), pool, at.size(2), at.size(3));
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return {plain, weighted};
}

// gv, like v, and its sums over each plane (N, OC).
std::vector<torch::Tensor> gradient_of_v(torch::Tensor gy, torch::Tensor at, torch::Tensor v, torch::Tensor mean,
                                         torch::Tensor rstd, torch::Tensor gn_weight, torch::Tensor scale,
                                         torch::Tensor plain, torch::Tensor weighted, int64_t pool) {
    const int64_t N = v.size(0), C = v.size(1), H = v.size(2), W = v.size(3), groups = mean.size(1);
    gy = gy.contiguous();
    gn_weight = gn_weight.contiguous();
    scale = scale.contiguous();
    torch::Tensor gv = torch::empty_like(v), total = torch::empty({N, C}, v.options());
    if (v.numel() == 0) return {gv, total};

    const c10::cuda::CUDAGuard guard(v.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    torch::Tensor a = torch::empty({N, groups}, v.options()), b = torch::empty({N, groups}, v.options());
    AT_DISPATCH_FLOATING_TYPES(v.scalar_type(), "gradient_of_v", [&] {
        group_means_kernel<scalar_t><<<blocks_for(N * groups), THREADS, 0, stream>>>(
            plain.data_ptr<scalar_t>(), weighted.data_ptr<scalar_t>(), gn_weight.data_ptr<scalar_t>(),
            scale.data_ptr<scalar_t>(), a.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(), N * groups, C, C / groups,
            H * W);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
        gv_kernel<scalar_t><<<N * C, THREADS, 0, stream>>>(
            gy.data_ptr<scalar_t>(), at.data_ptr<int>(), v.data_ptr<scalar_t>(), mean.data_ptr<scalar_t>(),
            rstd.data_ptr<scalar_t>(), gn_weight.data_ptr<scalar_t>(), scale.data_ptr<scalar_t>(),
            a.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(), gv.data_ptr<scalar_t>(), total.data_ptr<scalar_t>(), C,
            C / groups, H, W, pool, at.size(2), at.size(3));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return {gv, total};
}

// ggn_weight, ggn_bias (OC) and gscale (OC, 1, 1).
std::vector<torch::Tensor> gradients_of_channels(torch::Tensor plain, torch::Tensor weighted, torch::Tensor gn_weight,
                                                 torch::Tensor gn_bias, torch::Tensor scale) {
    const int64_t N = plain.size(0), C = plain.size(1);
    gn_weight = gn_weight.contiguous();
    gn_bias = gn_bias.contiguous();
    scale = scale.contiguous();
    torch::Tensor ggn_weight = torch::empty_like(gn_weight), ggn_bias = torch::empty_like(gn_bias);
    torch::Tensor gscale = torch::empty_like(scale);

    const c10::cuda::CUDAGuard guard(plain.device());
    AT_DISPATCH_FLOATING_TYPES(plain.scalar_type(), "gradients_of_channels", [&] {
        channels_kernel<scalar_t><<<blocks_for(C), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            plain.data_ptr<scalar_t>(), weighted.data_ptr<scalar_t>(), gn_weight.data_ptr<scalar_t>(),
            gn_bias.data_ptr<scalar_t>(), scale.data_ptr<scalar_t>(), ggn_weight.data_ptr<scalar_t>(),
            ggn_bias.data_ptr<scalar_t>(), gscale.data_ptr<scalar_t>(), N, C);
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return {ggn_weight, ggn_bias, gscale};
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

// parts (images, ...) -> the sum over the images, in their order.
torch::Tensor sum_of_images(torch::Tensor parts) {
    torch::Tensor sums = torch::empty(parts.sizes().slice(1), parts.options());
    const c10::cuda::CUDAGuard guard(parts.device());
    AT_DISPATCH_FLOATING_TYPES(parts.scalar_type(), "sum_of_images", [&] {
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
    return sum_of_images(parts);
}
"""

kernels = load_inline(
    name="conv_groupnorm_maxpool_backward",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=[
        "conv_groupnorm_maxpool_forward",
        "plane_sums",
        "gradient_of_v",
        "gradients_of_channels",
        "gradient_of_x",
        "gradient_of_weight",
        "sum_of_images",
    ],
)


class ConvGroupnormMaxpool(torch.autograd.Function):
    """What autograd calls: forward saves what backward reads, backward returns one gradient per argument."""

    @staticmethod
    def forward(ctx, x, conv_weight, conv_bias, gn_weight, gn_bias, scale, groups, eps, pool, clamp_min, clamp_max):
        y, *of_result = kernels.conv_groupnorm_maxpool_forward(
            x, conv_weight, conv_bias, gn_weight, gn_bias, scale, groups, eps, pool, clamp_min, clamp_max
        )
        ctx.save_for_backward(x, *of_result, conv_weight, gn_weight, gn_bias, scale)
        ctx.pool = pool
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gy):
        x, *of_result, conv_weight, gn_weight, gn_bias, scale = ctx.saved_tensors  # in the middle: at, v, mean, rstd
        need_x, need_weight, need_bias, *need_channels = ctx.needs_input_grad[:6]
        gx = gweight = gbias = None
        of_channels = (None, None, None)  # gn_weight, gn_bias, scale
        plain, weighted = kernels.plane_sums(gy, *of_result, ctx.pool)
        if need_x or need_weight or need_bias:
            gv, total = kernels.gradient_of_v(gy, *of_result, gn_weight, scale, plain, weighted, ctx.pool)
            gx = kernels.gradient_of_x(gv, x, conv_weight) if need_x else None
            gweight = kernels.gradient_of_weight(gv, x, conv_weight) if need_weight else None
            gbias = kernels.sum_of_images(total) if need_bias else None
        if any(need_channels):
            made = kernels.gradients_of_channels(plain, weighted, gn_weight, gn_bias, scale)
            of_channels = [gradient if needed else None for gradient, needed in zip(made, need_channels)]
        return gx, gweight, gbias, *of_channels, None, None, None, None, None


class ModelNew(nn.Module):
    """The same function as Model with the same gradients: x (N, in_channels, H, W) on a GPU -> (N, out_channels, PH,
    PW).
    """

    def __init__(
        self, in_channels, out_channels, kernel_size, num_groups, scale_shape, maxpool_kernel_size, clamp_min, clamp_max
    ):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)  # holds weights, is never called
        self.group_norm = nn.GroupNorm(num_groups, out_channels)  # holds weights, is never called
        self.scale = nn.Parameter(torch.ones(scale_shape))
        self.pool = maxpool_kernel_size
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        gn = self.group_norm
        return ConvGroupnormMaxpool.apply(
            x,
            self.conv.weight,
            self.conv.bias,
            gn.weight,
            gn.bias,
            self.scale,
            gn.num_groups,
            gn.eps,
            self.pool,
            self.clamp_min,
            self.clamp_max,
        )
