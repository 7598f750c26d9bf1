"""conv_groupnorm_logsumexp, step 4: the convolution leaves behind what it knows.

Before, the statistics read back half a gigabyte that had just been in registers. Now each warp leaves count, mean and
squared deviations of its pixels in every channel, and a tiny kernel merges them in a fixed order. The convolution also
leaves each pixel's largest value: tanh and hardswish move it by less than 1, so that it can shift the logsumexp and no
sum is rescaled any more. What is left of the last kernel is three special functions an element, four pixels a thread.

Bought: what the kernels read and write falls from 1.6 to 1.2 GB. The instructions of what follows the convolution fall
from 469 to 113 million, those of the convolution rise from 471 to 565 million.
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
#include <climits>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffff;
constexpr int THREADS = 256;                       // a block, but for the convolution's: a whole number of warps
constexpr int DOWN = 4;                            // pixels below each other that a thread makes ...
constexpr int OUT = 8;                             // ... in so many channels, two float4
constexpr int IN = 8;                              // channels of x that are in shared memory at a time
constexpr int TILE_X = 32, WARPS = 4, TILE_Y = WARPS * DOWN;  // pixels that a block makes
constexpr int CHANNELS = 256;                      // whose parameters are in shared memory at a time

// The convolution's sizes: x (N, C, H, W), weight (OC, C, KH, KW) -> (N, OC, OH, OW), in tiles of TILE_Y x TILE_X.
struct Shape {
    int C, H, W, OC, KH, KW, OH, OW, tiles_x, tiles_y;
};

// This thread's pixels of the tile at (y0, x0) of the image at x, in the channels `first` to first + OUT - 1: the sums
// of bias and window. K: rows and columns of the kernel, known to the compiler; 0: any other size. All threads must
// call it.
template <int K>
__device__ __forceinline__ void convolve(const float* __restrict__ x, const float* __restrict__ weight,
                                         const float* __restrict__ bias, const Shape& s, int y0, int x0, int first,
                                         float (&sum)[DOWN][OUT]) {
    const int lane = threadIdx.x, row = threadIdx.y * DOWN;  // of the thread's first pixel in the tile
#pragma unroll
    for (int o = 0; o < OUT; ++o) {
        const float b = first + o < s.OC ? bias[first + o] : 0.0f;
#pragma unroll
        for (int d = 0; d < DOWN; ++d) sum[d][o] = b;
    }

    if constexpr (K == 0) {  // from global memory; beyond the edge, where nobody looks, is the last pixel again
        const int ox = min(x0 + lane, s.OW - 1);
        for (int c = 0; c < s.C; ++c) {
            for (int k = 0; k < s.KH * s.KW; ++k) {
                float value[DOWN];
#pragma unroll
                for (int d = 0; d < DOWN; ++d) {
                    value[d] = x[((int64_t)c * s.H + min(y0 + row + d, s.OH - 1) + k / s.KW) * s.W + ox + k % s.KW];
                }
#pragma unroll
                for (int o = 0; o < OUT; ++o) {
                    const bool exists = first + o < s.OC;
                    const float w = exists ? weight[((int64_t)(first + o) * s.C + c) * s.KH * s.KW + k] : 0.0f;
#pragma unroll
                    for (int d = 0; d < DOWN; ++d) sum[d][o] += value[d] * w;
                }
            }
        }
    } else {
        constexpr int ROWS = TILE_Y + K - 1, COLUMNS = TILE_X + K - 1;  // of x that a tile needs
        const int64_t plane = (int64_t)s.H * s.W;
        __shared__ float tile[IN][ROWS][COLUMNS];
        __shared__ __align__(16) float w[IN * K * K][OUT];
        for (int c0 = 0; c0 < s.C; c0 += IN) {
            const int channels = min(IN, s.C - c0);
            __syncthreads();  // nobody reads the last weights any more, nor the last tile
            for (int i = threadIdx.y * TILE_X + lane; i < OUT * IN * K * K; i += TILE_X * WARPS) {
                const int o = i / (IN * K * K), k = i % (IN * K * K);
                const bool exists = first + o < s.OC && k < channels * K * K;
                w[k][o] = exists ? weight[((int64_t)(first + o) * s.C + c0) * K * K + k] : 0.0f;
            }
            if (first == 0 || s.C > IN) {  // up to IN channels stay for all channels of the result
                for (int r = threadIdx.y; r < ROWS; r += WARPS) {
                    const bool low = y0 + r < s.H && x0 + lane < s.W, high = y0 + r < s.H && x0 + TILE_X + lane < s.W;
                    const float* at = x + ((int64_t)c0 * s.H + y0 + r) * s.W + x0 + lane;
                    for (int c = 0; c < channels; ++c, at += plane) {
                        tile[c][r][lane] = low ? at[0] : 0.0f;
                        if (lane < COLUMNS - TILE_X) tile[c][r][TILE_X + lane] = high ? at[TILE_X] : 0.0f;
                    }
                }
            }
            __syncthreads();  // both are complete

            for (int c = 0; c < channels; ++c) {
#pragma unroll
                for (int kx = 0; kx < K; ++kx) {
                    float column[DOWN + K - 1];
#pragma unroll
                    for (int i = 0; i < DOWN + K - 1; ++i) column[i] = tile[c][row + i][lane + kx];
#pragma unroll
                    for (int ky = 0; ky < K; ++ky) {
                        const float4* four = reinterpret_cast<const float4*>(w[c * K * K + ky * K + kx]);
                        const float4 low = four[0], high = four[1];
#pragma unroll
                        for (int d = 0; d < DOWN; ++d) {
                            sum[d][0] += column[d + ky] * low.x;
                            sum[d][1] += column[d + ky] * low.y;
                            sum[d][2] += column[d + ky] * low.z;
                            sum[d][3] += column[d + ky] * low.w;
                            sum[d][4] += column[d + ky] * high.x;
                            sum[d][5] += column[d + ky] * high.y;
                            sum[d][6] += column[d + ky] * high.z;
                            sum[d][7] += column[d + ky] * high.w;
                        }
                    }
                }
            }
        }
    }
}

// What is known of some numbers: how many, their mean, and the sum of their squared deviations from it.
struct Moments {
    float count, mean, squares;
};

// Moments of both together (Chan, Golub and LeVeque, 1979).
__device__ Moments merged(const Moments& a, const Moments& b) {
    if (a.count == 0.0f || b.count == 0.0f) return a.count == 0.0f ? b : a;  // 0 times infinity is no number
    const float count = a.count + b.count;
    const float d = b.mean - a.mean, part = b.count / count;
    return {count, a.mean + d * part, a.squares + b.squares + d * d * a.count * part};
}

// Moments of the pixels that a warp has in channel o, for lane 0: `inside` tells which of them the image has, `count`
// of them, and `part` is 1 / count. They are taken about one of them, lane 0's first: a sum of squares about 0 has no
// correct digit where the mean is large.
__device__ __forceinline__ Moments moments_of_warp(const float (&sum)[DOWN][OUT], int o, const bool (&inside)[DOWN],
                                                   float count, float part) {
    const float shift = __shfl_sync(ALL_LANES, sum[0][o], 0);
    float deviations = 0.0f, squares = 0.0f;
#pragma unroll
    for (int d = 0; d < DOWN; ++d) {
        const float e = inside[d] ? sum[d][o] - shift : 0.0f;
        deviations += e;
        squares += e * e;
    }
#pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        deviations += __shfl_down_sync(ALL_LANES, deviations, offset);
        squares += __shfl_down_sync(ALL_LANES, squares, offset);
    }
    const float off = deviations * part;
    return {count, shift + off, squares - deviations * off};
}

// x, weight, bias -> v; moments (N, OC, parts): of each warp's pixels, for every channel, with a part for each warp of
// a tile; top (N, pixels): the largest v of a pixel's channels. A block makes one tile in every channel.
template <int K>
__global__ void __launch_bounds__(TILE_X * WARPS)
conv2d_moments_kernel(const float* x, const float* weight, const float* bias, float* v, Moments* moments, float* top,
                      Shape s) {
    // blockIdx.x counts tiles: along the image, down the image, then from image to image.
    const int x0 = blockIdx.x % s.tiles_x * TILE_X, y0 = blockIdx.x / s.tiles_x % s.tiles_y * TILE_Y;
    const int64_t n = blockIdx.x / s.tiles_x / s.tiles_y;
    const int ox = x0 + threadIdx.x, oy = y0 + threadIdx.y * DOWN;  // the thread's first pixel
    bool inside[DOWN];  // which of the thread's pixels the image has
#pragma unroll
    for (int d = 0; d < DOWN; ++d) inside[d] = ox < s.OW && oy + d < s.OH;
    const float count = max(0, min(DOWN, s.OH - oy)) * min(TILE_X, s.OW - x0);  // of the warp's pixels
    const float part = 1.0f / fmaxf(count, 1.0f);
    const int64_t pixels = (int64_t)s.OH * s.OW;
    const int parts = s.tiles_x * s.tiles_y * WARPS;
    x += n * s.C * s.H * s.W;
    v += n * s.OC * pixels + (int64_t)oy * s.OW + ox;
    top += n * pixels + (int64_t)oy * s.OW + ox;
    moments += n * s.OC * parts + blockIdx.x % (s.tiles_x * s.tiles_y) * WARPS + threadIdx.y;

    float largest[DOWN];
#pragma unroll
    for (int d = 0; d < DOWN; ++d) largest[d] = -INFINITY;
    for (int first = 0; first < s.OC; first += OUT) {
        float sum[DOWN][OUT];
        convolve<K>(x, weight, bias, s, y0, x0, first, sum);
#pragma unroll
        for (int o = 0; o < OUT; ++o) {
            if (first + o >= s.OC) break;
            const Moments m = moments_of_warp(sum, o, inside, count, part);
            if (threadIdx.x == 0) *moments = m;
#pragma unroll
            for (int d = 0; d < DOWN; ++d) {
                largest[d] = fmaxf(largest[d], sum[d][o]);
                if (inside[d]) v[d * s.OW] = sum[d][o];
            }
            moments += parts;  // of the next channel
            v += pixels;
        }
    }
#pragma unroll
    for (int d = 0; d < DOWN; ++d) {
        if (inside[d]) top[d * s.OW] = largest[d];
    }
}

// One block a group: moments (groups of all images, count) -> mean, rstd = 1 / sqrt(variance + eps), both (groups).
// Always in the same order, so that the result is the same each time, as it would not be with atomic additions.
__global__ void merge_kernel(const Moments* moments, float* mean, float* rstd, int64_t count, float eps) {
    __shared__ Moments of_warp[THREADS / WARP];
    moments += blockIdx.x * count;
    Moments m = {0.0f, 0.0f, 0.0f};
    for (int64_t i = threadIdx.x; i < count; i += THREADS) m = merged(m, moments[i]);
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        m = merged(m, {__shfl_down_sync(ALL_LANES, m.count, offset), __shfl_down_sync(ALL_LANES, m.mean, offset),
                       __shfl_down_sync(ALL_LANES, m.squares, offset)});  // lane 0 ends with those of its warp
    }
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = m;
    __syncthreads();  // all warps have written
    if (threadIdx.x > 0) return;
    for (int warp = 1; warp < THREADS / WARP; ++warp) m = merged(m, of_warp[warp]);
    const float variance = m.squares < 0.0f ? 0.0f : m.squares / m.count;  // fmaxf would hide a NaN
    mean[blockIdx.x] = m.mean;
    rstd[blockIdx.x] = 1.0f / sqrtf(variance + eps);
}

// v + hardswish(tanh(u)). tanh is at most 1, so that hardswish's clamp of t + 3 to 0 .. 6 never does anything.
__device__ float with_residual(float v, float u) {
    // exp may overflow to infinity: 2 / infinity is the 0 that is meant.
    const float t = 1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * u));
    return v + t * fmaf(t, 1.0f / 6.0f, 0.5f);
}

// v (N, C, pixels) -> y (N, pixels): logsumexp over the channels of z = v + hardswish(tanh((v - mean) * rstd *
// gn_weight + gn_bias)), shifted by the largest v in `top`: z lies between v - 1 and v + 1, so no exponential can
// overflow, and one of them is no less than exp(-1). A thread makes VECTOR neighbouring pixels; blockIdx.x counts
// blocks image by image.
template <int VECTOR>
__global__ void __launch_bounds__(THREADS)
norm_residual_logsumexp_kernel(const float* v, const float* top, const float* mean, const float* rstd,
                               const float* gn_weight, const float* gn_bias, float* y, int C, int channels_a_group,
                               int64_t pixels, int blocks_an_image) {
    __shared__ float4 of_channel[CHANNELS];  // mean, rstd * weight, bias
    const int64_t n = blockIdx.x / blocks_an_image;
    const int64_t p = ((int64_t)(blockIdx.x % blocks_an_image) * THREADS + threadIdx.x) * VECTOR;
    v += n * C * pixels + p;

    float shift[VECTOR], sum[VECTOR];
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) shift[k] = p < pixels ? top[n * pixels + p + k] : 0.0f, sum[k] = 0.0f;
    for (int c0 = 0; c0 < C; c0 += CHANNELS) {
        const int channels = min(CHANNELS, C - c0);
        __syncthreads();  // nobody reads the last ones any more
        for (int i = threadIdx.x; i < channels; i += THREADS) {
            const int64_t group = (n * C + c0 + i) / channels_a_group;  // over all images
            of_channel[i] = {mean[group], rstd[group] * gn_weight[c0 + i], gn_bias[c0 + i], 0.0f};
        }
        __syncthreads();  // all are there
        if (p >= pixels) continue;
#pragma unroll 4
        for (int c = 0; c < channels; ++c) {
            const float4 f = of_channel[c];
            const float* at = v + (c0 + c) * pixels;
            if constexpr (VECTOR == 4) {
                const float4 four = *reinterpret_cast<const float4*>(at);
                sum[0] += __expf(with_residual(four.x, (four.x - f.x) * f.y + f.z) - shift[0]);
                sum[1] += __expf(with_residual(four.y, (four.y - f.x) * f.y + f.z) - shift[1]);
                sum[2] += __expf(with_residual(four.z, (four.z - f.x) * f.y + f.z) - shift[2]);
                sum[3] += __expf(with_residual(four.w, (four.w - f.x) * f.y + f.z) - shift[3]);
            } else {
                sum[0] += __expf(with_residual(*at, (*at - f.x) * f.y + f.z) - shift[0]);
            }
        }
    }
    if (p >= pixels) return;
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) y[n * pixels + p + k] = shift[k] + logf(sum[k]);
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
    torch::Tensor v = torch::empty({N, OC, OH, OW}, x.options()), top = torch::empty({N, pixels}, x.options());
    const int64_t tiles_x = (OW + TILE_X - 1) / TILE_X, tiles_y = (OH + TILE_Y - 1) / TILE_Y;
    TORCH_CHECK(N * tiles_x * tiles_y <= INT_MAX, "the output has more than 2^31 - 1 tiles");
    const Shape s = {(int)C, (int)H, (int)W, (int)OC, (int)KH, (int)KW, (int)OH, (int)OW, (int)tiles_x, (int)tiles_y};
    const int64_t parts = tiles_x * tiles_y * WARPS;
    torch::Tensor moments = torch::empty({N * OC * parts, 3}, x.options());
    const auto conv2d = KH == 3 && KW == 3 ? conv2d_moments_kernel<3> : conv2d_moments_kernel<0>;
    conv2d<<<N * tiles_y * tiles_x, dim3(TILE_X, WARPS), 0, stream>>>(
        x.data_ptr<float>(), conv_weight.data_ptr<float>(), conv_bias.data_ptr<float>(), v.data_ptr<float>(),
        reinterpret_cast<Moments*>(moments.data_ptr<float>()), top.data_ptr<float>(), s);
    C10_CUDA_KERNEL_LAUNCH_CHECK();

    torch::Tensor mean = torch::empty({N * groups}, x.options()), rstd = torch::empty({N * groups}, x.options());
    merge_kernel<<<N * groups, THREADS, 0, stream>>>(
        reinterpret_cast<const Moments*>(moments.data_ptr<float>()), mean.data_ptr<float>(), rstd.data_ptr<float>(),
        OC / groups * parts, eps);
    C10_CUDA_KERNEL_LAUNCH_CHECK();

    // Four neighbours are one float4 only if every plane begins at a multiple of 16 bytes.
    const int vector = pixels % 4 == 0 ? 4 : 1;
    const int64_t blocks_an_image = (pixels + THREADS * vector - 1) / (THREADS * vector);
    TORCH_CHECK(N * blocks_an_image <= INT_MAX, "the output has more than 2^31 - 1 blocks of ", THREADS, " threads");
    const auto tail = vector == 4 ? norm_residual_logsumexp_kernel<4> : norm_residual_logsumexp_kernel<1>;
    tail<<<N * blocks_an_image, THREADS, 0, stream>>>(
        v.data_ptr<float>(), top.data_ptr<float>(), mean.data_ptr<float>(), rstd.data_ptr<float>(),
        gn_weight.data_ptr<float>(), gn_bias.data_ptr<float>(), y.data_ptr<float>(), OC, OC / groups, pixels,
        blocks_an_image);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="conv_groupnorm_logsumexp_04_statistics_in_epilogue",
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
