"""conv_groupnorm_logsumexp with its backward: one walk back through five operators, then the convolution's gradients.

Forward, for every image n, channel c of group g and pixel p:

    v  = conv(x)                                        # kept for backward: computing it again is a whole convolution
    xh = (v - mean[n, g]) * rstd[n, g]
    t  = tanh(xh * gn_weight[c] + gn_bias[c])
    z  = v + hardswish(t)                               # t lies in -1 .. 1, where hardswish(t) = t * (t + 3) / 6
    y[n, 0, p] = log(sum(exp(z[n, c, p]) for c in channels))

Backward, from the gradient gy of y, in Python. v goes into z twice, by itself and through the normalisation:

    gz = gy[n, 0, p] * exp(z - y[n, 0, p])              # the softmax, as in logsumexp_backward
    gu = gz * (2 * t + 3) / 6 * (1 - t * t)             # hardswish's derivative times tanh's
    plain[n, c]    = sum(gu for p in pixels)            # from here on as in groupnorm_backward, with gu in gy's place
    weighted[n, c] = sum(gu * xh for p in pixels)
    ggn_bias[c] = sum of plain[n, c] over n;  ggn_weight[c] = sum of weighted[n, c] over n
    a[n, g] = sum(gn_weight[c] * plain[n, c] for c in the group) / the number of elements in a group
    b[n, g] = sum(gn_weight[c] * weighted[n, c] for c in the group) / the same number
    gv = gz + (gu * gn_weight[c] - a[n, g] - xh * b[n, g]) * rstd[n, g]
    gconv_bias[c] = sum of gv over n and p;  gx and gconv_weight from gv as in conv2d_backward

hardswish has corners at -3 and 3, which tanh never reaches: within -1 and 1 PyTorch's derivative is the one above, too.

Kernels: conv2d_kernel, group_statistics_kernel, norm_residual_logsumexp_kernel, the forward; plane_sums_kernel and
gv_kernel, one block a plane, both of which compute gz and gu anew from v: a tanh and an exp cost less than to store two
numbers and fetch them again; group_means_kernel, one thread a group; images_kernel, one thread a sum over the images,
in their order. gx_kernel and weight_parts_kernel, the convolution's, are repeated: the file stays whole, as it is
handed in alone. No atomics: each sum has one order, and so the same bits each time. Kept from forward: x, v, y, mean,
rstd and the weights.

Your task: fill in the 4 places marked YOUR CODE HERE, so that ModelNew has the gradients that Model in
kernels_ref/conv_groupnorm_logsumexp/model.py has, for any shape.

  1. t and z as in forward, then gz and gu (about 4 lines)
  2. add up gu and gu * xh over the plane's pixels; thread 0 stores both (about 20 lines)
  3. from the sums of this group's planes, its two means (about 10 lines)
  4. gv from gz, gu and its group's a and b; thread 0 stores the sum of gv (about 18 lines)

Grade it, with or without a GPU:  grader grade kernels_student/conv_groupnorm_logsumexp_backward.py
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
std::vector<torch::Tensor> conv_groupnorm_logsumexp_forward(torch::Tensor x, torch::Tensor conv_weight,
                                                            torch::Tensor conv_bias, torch::Tensor gn_weight,
                                                            torch::Tensor gn_bias, int64_t groups, double eps);
std::vector<torch::Tensor> plane_sums(torch::Tensor gy, torch::Tensor y, torch::Tensor v, torch::Tensor mean,
                                      torch::Tensor rstd, torch::Tensor gn_weight, torch::Tensor gn_bias);
std::vector<torch::Tensor> gradient_of_v(torch::Tensor gy, torch::Tensor y, torch::Tensor v, torch::Tensor mean,
                                         torch::Tensor rstd, torch::Tensor gn_weight, torch::Tensor gn_bias,
                                         torch::Tensor plain, torch::Tensor weighted);
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

// v (N, C, pixels) -> y (N, pixels), `total` elements: logsumexp over the channels of
// v + hardswish(tanh((v - mean) * rstd * gn_weight + gn_bias)).
template <typename T>
__global__ void norm_residual_logsumexp_kernel(const T* v, const T* mean, const T* rstd, const T* gn_weight,
                                               const T* gn_bias, T* y, int64_t total, int C, int channels_a_group,
                                               int64_t pixels) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    const int64_t n = i / pixels;
    v += n * C * pixels + i % pixels;  // this pixel in channel 0; channel c lies c * pixels further on
    mean += n * (C / channels_a_group);
    rstd += n * (C / channels_a_group);

    T top = -INFINITY;  // the largest z so far
    T sum = 0;          // of exp(z - top)
    for (int c = 0; c < C; ++c) {
        const int group = c / channels_a_group;
        const T value = v[c * pixels];
        const T t = tanh((value - mean[group]) * rstd[group] * gn_weight[c] + gn_bias[c]);
        const T z = value + t * (t + 3) / 6;
        if (z > top) {
            sum = sum * exp(top - z) + 1;  // the first time, exp(-infinity) is 0
            top = z;
        } else {
            sum += exp(z - top);
        }
    }
    y[i] = top + log(sum);
}

// One element's way back from y to z and to u = xh * w + b, the normalisation's result: sets gz and gu.
template <typename T>
__device__ void gradients_of_z_and_u(T gy, T y, T v, T xh, T w, T b, T& gz, T& gu) {
    // YOUR CODE HERE: t and z as in forward, then gz and gu (about 4 lines)
}

// One block a plane n * C + c: gy, y (N, pixels), v (N, C, pixels) -> the plane's sums of gu and of gu * xh, both (N,
// C).
template <typename T>
__global__ void plane_sums_kernel(const T* gy, const T* y, const T* v, const T* mean, const T* rstd, const T* gn_weight,
                                  const T* gn_bias, T* plain, T* weighted, int C, int channels_a_group,
                                  int64_t pixels) {
    // YOUR CODE HERE: add up gu and gu * xh over the plane's pixels; thread 0 stores both (about 20 lines)
}

// One thread a group of an image: a and b, the group's means of weight * gu and of weight * gu * xh.
template <typename T>
__global__ void group_means_kernel(const T* plain, const T* weighted, const T* weight, T* a, T* b,
                                   int groups_of_all_images, int C, int channels_a_group, int64_t pixels) {
    // YOUR CODE HERE: from the sums of this group's planes, its two means (about 10 lines)
}

// One block a plane: gv (N, C, pixels), and each plane's sum of it, total (N, C).
template <typename T>
__global__ void gv_kernel(const T* gy, const T* y, const T* v, const T* mean, const T* rstd, const T* gn_weight,
                          const T* gn_bias, const T* a, const T* b, T* gv, T* total, int C, int channels_a_group,
                          int64_t pixels) {
    // YOUR CODE HERE: gv from gz, gu and its group's a and b; thread 0 stores the sum of gv (about 18 lines)
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

// Returns y, and what backward needs besides: v, mean and rstd.
std::vector<torch::Tensor> conv_groupnorm_logsumexp_forward(torch::Tensor x, torch::Tensor conv_weight,
                                                            torch::Tensor conv_bias, torch::Tensor gn_weight,
                                                            torch::Tensor gn_bias, int64_t groups, double eps) {
    check(x, "x", 4, x);
    check(conv_weight, "the convolution's weight", 4, x);
    check(conv_bias, "the convolution's bias", 1, x);
    check(gn_weight, "the normalisation's weight", 1, x);
    check(gn_bias, "the normalisation's bias", 1, x);
    const int64_t N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
    const int64_t OC = conv_weight.size(0), KH = conv_weight.size(2), KW = conv_weight.size(3);
    TORCH_CHECK(conv_weight.size(1) == C, "x has ", C, " channels, the weight is for ", conv_weight.size(1));
    TORCH_CHECK(H >= KH && W >= KW, "the image (", H, " x ", W, ") is smaller than the kernel (", KH, " x ", KW, ")");
    TORCH_CHECK(H * W <= INT_MAX, "a channel of x has more than 2^31 - 1 pixels");
    TORCH_CHECK(conv_bias.size(0) == OC && gn_weight.size(0) == OC && gn_bias.size(0) == OC,
                "every bias and weight needs one element for each of ", OC, " output channels");
    TORCH_CHECK(groups > 0 && OC % groups == 0, OC, " channels cannot be cut into ", groups, " equal groups");
    TORCH_CHECK(N * OC <= INT_MAX, "the result has more than 2^31 - 1 planes (images times channels)");
    x = x.contiguous();
    conv_weight = conv_weight.contiguous();
    conv_bias = conv_bias.contiguous();
    gn_weight = gn_weight.contiguous();
    gn_bias = gn_bias.contiguous();

    const int64_t OH = H - KH + 1, OW = W - KW + 1, pixels = OH * OW;
    torch::Tensor y = torch::empty({N, 1, OH, OW}, x.options()), v = torch::empty({N, OC, OH, OW}, x.options());
    torch::Tensor mean = torch::empty({N, groups}, x.options()), rstd = torch::empty({N, groups}, x.options());
    if (y.numel() == 0) return {y, v, mean, rstd};  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "conv_groupnorm_logsumexp_forward", [&] {
        conv2d_kernel<scalar_t><<<blocks_for(v.numel()), THREADS, 0, stream>>>(
            x.data_ptr<scalar_t>(), conv_weight.data_ptr<scalar_t>(), conv_bias.data_ptr<scalar_t>(),
            v.data_ptr<scalar_t>(), v.numel(), C, H, W, OC, KH, KW, OH, OW);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
        group_statistics_kernel<scalar_t><<<N * groups, THREADS, 0, stream>>>(
            v.data_ptr<scalar_t>(), mean.data_ptr<scalar_t>(), rstd.data_ptr<scalar_t>(), v.numel() / (N * groups),
            eps);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
        norm_residual_logsumexp_kernel<scalar_t><<<blocks_for(y.numel()), THREADS, 0, stream>>>(
            v.data_ptr<scalar_t>(), mean.data_ptr<scalar_t>(), rstd.data_ptr<scalar_t>(),
            gn_weight.data_ptr<scalar_t>(),
            gn_bias.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), y.numel(), OC, OC / groups, pixels);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return {y, v, mean, rstd};
}

// Sums of gu and of gu * xh over each plane, both (N, OC).
std::vector<torch::Tensor> plane_sums(torch::Tensor gy, torch::Tensor y, torch::Tensor v, torch::Tensor mean,
                                      torch::Tensor rstd, torch::Tensor gn_weight, torch::Tensor gn_bias) {
    check(gy, "gy", 4, v);
    const int64_t N = v.size(0), C = v.size(1), groups = mean.size(1);
    gy = gy.contiguous();  // sum().backward() sends one number with strides of 0
    gn_weight = gn_weight.contiguous();
    gn_bias = gn_bias.contiguous();
    torch::Tensor plain = torch::empty({N, C}, v.options()), weighted = torch::empty({N, C}, v.options());
    if (v.numel() == 0) return {plain, weighted};

    const c10::cuda::CUDAGuard guard(v.device());
    AT_DISPATCH_FLOATING_TYPES(v.scalar_type(), "plane_sums", [&] {
        plane_sums_kernel<scalar_t><<<N * C, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            gy.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), v.data_ptr<scalar_t>(), mean.data_ptr<scalar_t>(),
            rstd.data_ptr<scalar_t>(), gn_weight.data_ptr<scalar_t>(), gn_bias.data_ptr<scalar_t>(),
            plain.data_ptr<scalar_t>(), weighted.data_ptr<scalar_t>(), C, C / groups, v.size(2) * v.size(3));
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return {plain, weighted};
}

// gv, like v, and its sums over each plane (N, OC).
std::vector<torch::Tensor> gradient_of_v(torch::Tensor gy, torch::Tensor y, torch::Tensor v, torch::Tensor mean,
                                         torch::Tensor rstd, torch::Tensor gn_weight, torch::Tensor gn_bias,
                                         torch::Tensor plain, torch::Tensor weighted) {
    const int64_t N = v.size(0), C = v.size(1), pixels = v.size(2) * v.size(3), groups = mean.size(1);
    gy = gy.contiguous();
    gn_weight = gn_weight.contiguous();
    gn_bias = gn_bias.contiguous();
    torch::Tensor gv = torch::empty_like(v), total = torch::empty({N, C}, v.options());
    if (v.numel() == 0) return {gv, total};

    const c10::cuda::CUDAGuard guard(v.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    torch::Tensor a = torch::empty({N, groups}, v.options()), b = torch::empty({N, groups}, v.options());
    AT_DISPATCH_FLOATING_TYPES(v.scalar_type(), "gradient_of_v", [&] {
        group_means_kernel<scalar_t><<<blocks_for(N * groups), THREADS, 0, stream>>>(
            plain.data_ptr<scalar_t>(), weighted.data_ptr<scalar_t>(), gn_weight.data_ptr<scalar_t>(),
            a.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(), N * groups, C, C / groups, pixels);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
        gv_kernel<scalar_t><<<N * C, THREADS, 0, stream>>>(
            gy.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), v.data_ptr<scalar_t>(), mean.data_ptr<scalar_t>(),
            rstd.data_ptr<scalar_t>(), gn_weight.data_ptr<scalar_t>(), gn_bias.data_ptr<scalar_t>(),
            a.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(), gv.data_ptr<scalar_t>(), total.data_ptr<scalar_t>(), C,
            C / groups, pixels);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return {gv, total};
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
    name="conv_groupnorm_logsumexp_backward",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=[
        "conv_groupnorm_logsumexp_forward",
        "plane_sums",
        "gradient_of_v",
        "gradient_of_x",
        "gradient_of_weight",
        "sum_of_images",
    ],
)


class ConvGroupnormLogsumexp(torch.autograd.Function):
    """What autograd calls: forward saves what backward reads, backward returns one gradient per argument."""

    @staticmethod
    def forward(ctx, x, conv_weight, conv_bias, gn_weight, gn_bias, groups, eps):
        y, v, mean, rstd = kernels.conv_groupnorm_logsumexp_forward(
            x, conv_weight, conv_bias, gn_weight, gn_bias, groups, eps
        )
        ctx.save_for_backward(x, y, v, mean, rstd, conv_weight, gn_weight, gn_bias)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gy):
        x, *of_result, conv_weight, gn_weight, gn_bias = ctx.saved_tensors  # in the middle: y, v, mean, rstd
        need_x, need_weight, need_bias, need_gn_weight, need_gn_bias = ctx.needs_input_grad[:5]
        gx = gweight = gbias = None
        plain, weighted = kernels.plane_sums(gy, *of_result, gn_weight, gn_bias)
        if need_x or need_weight or need_bias:
            gv, total = kernels.gradient_of_v(gy, *of_result, gn_weight, gn_bias, plain, weighted)
            gx = kernels.gradient_of_x(gv, x, conv_weight) if need_x else None
            gweight = kernels.gradient_of_weight(gv, x, conv_weight) if need_weight else None
            gbias = kernels.sum_of_images(total) if need_bias else None
        ggn_weight = kernels.sum_of_images(weighted) if need_gn_weight else None
        ggn_bias = kernels.sum_of_images(plain) if need_gn_bias else None
        return gx, gweight, gbias, ggn_weight, ggn_bias, None, None


class ModelNew(nn.Module):
    """The same function as Model with the same gradients: x (N, in_channels, H, W) on a GPU -> (N, 1, OH, OW)."""

    def __init__(self, in_channels, out_channels, kernel_size, groups, eps=1e-5):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)  # holds weights, is never called
        self.group_norm = nn.GroupNorm(groups, out_channels, eps=eps)  # holds weights, is never called

    def forward(self, x):
        gn = self.group_norm
        return ConvGroupnormLogsumexp.apply(
            x, self.conv.weight, self.conv.bias, gn.weight, gn.bias, gn.num_groups, gn.eps
        )

# Made from kernels_ref/conv_groupnorm_logsumexp/backward.py by `grader student`; skeleton 4321db8e7459.
