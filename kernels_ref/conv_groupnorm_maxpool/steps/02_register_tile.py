"""conv_groupnorm_maxpool, step 2: the convolution in tiles, the largest part first.

Before, the convolution alone took most of the time: each of its products fetched both its factors. Now it is the last
step of conv2d's ladder: the input tile and the weights are in shared memory, and a thread makes four pixels in eight
channels from registers. Kernels that are not 3 x 3 take a plainer way through the same function.

Bought: the convolution's instructions fall from 6,634 to 471 million, its requests of global loads from 589 to 2.7
million.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
torch::Tensor conv_groupnorm_maxpool_forward(torch::Tensor x, torch::Tensor conv_weight, torch::Tensor conv_bias,
                                             torch::Tensor gn_weight, torch::Tensor gn_bias, torch::Tensor scale,
                                             int64_t groups, double eps, int64_t pool, double clamp_min,
                                             double clamp_max);
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

// x, weight, bias -> y. A block makes one tile in every channel.
template <int K>
__global__ void __launch_bounds__(TILE_X * WARPS)
conv2d_kernel(const float* x, const float* weight, const float* bias, float* y, Shape s) {
    // blockIdx.x counts tiles: along the image, down the image, then from image to image.
    const int x0 = blockIdx.x % s.tiles_x * TILE_X, y0 = blockIdx.x / s.tiles_x % s.tiles_y * TILE_Y;
    const int64_t n = blockIdx.x / s.tiles_x / s.tiles_y;
    const int ox = x0 + threadIdx.x, oy = y0 + threadIdx.y * DOWN;  // the thread's first pixel
    const int64_t pixels = (int64_t)s.OH * s.OW;
    x += n * s.C * s.H * s.W;
    y += n * s.OC * pixels + (int64_t)oy * s.OW + ox;

    for (int first = 0; first < s.OC; first += OUT) {
        float sum[DOWN][OUT];
        convolve<K>(x, weight, bias, s, y0, x0, first, sum);
        if (ox >= s.OW) continue;  // its threads still help to fill the tiles
        float* at = y + first * pixels;
#pragma unroll
        for (int o = 0; o < OUT; ++o) {
#pragma unroll
            for (int d = 0; d < DOWN; ++d) {
                if (first + o < s.OC && oy + d < s.OH) at[d * s.OW] = sum[d][o];
            }
            at += pixels;
        }
    }
}

// Sum of every thread's v, returned to every thread of the block. All of them must call it.
__device__ float block_sum(float v) {
    __shared__ float of_warp[THREADS / WARP];
    for (int offset = WARP / 2; offset > 0; offset /= 2) v += __shfl_down_sync(ALL_LANES, v, offset);
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = v;
    __syncthreads();  // all warps have written
    float sum = 0.0f;
    for (int warp = 0; warp < THREADS / WARP; ++warp) sum += of_warp[warp];
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

    float squares = 0.0f, deviations = 0.0f;
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

// y = (x - mean) * rstd * weight + bias, for x and y (N, C, pixels) of `total` elements, one a thread.
__global__ void normalise_kernel(const float* x, const float* mean, const float* rstd, const float* weight,
                                 const float* bias, float* y, int64_t total, int64_t C, int64_t channels,
                                 int64_t pixels) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= total) return;
    const int64_t plane = i / pixels, c = plane % C, group = plane / channels;  // over all images
    y[i] = (x[i] - mean[group]) * rstd[group] * weight[c] + bias[c];
}

// out = in * scale[c], for in and out (N, C, pixels) of `total` elements, one a thread.
__global__ void times_scale_kernel(const float* in, const float* scale, float* out, int64_t total,
                                   int64_t C, int64_t pixels) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < total) out[i] = in[i] * scale[i / pixels % C];
}

// in (planes, H, W) -> out (planes, PH, PW), `total` elements, one a thread: the largest of a pool x pool window.
__global__ void maxpool_kernel(const float* in, float* out, int64_t total, int H, int W, int pool, int PH, int PW) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= total) return;
    const int64_t px = i % PW, py = i / PW % PH, plane = i / PW / PH;
    float best = -INFINITY;
    for (int dy = 0; dy < pool; ++dy) {
        for (int dx = 0; dx < pool; ++dx) {
            const float value = in[(plane * H + py * pool + dy) * W + px * pool + dx];
            if (value > best || isnan(value)) best = value;  // fmaxf would hide a NaN
        }
    }
    out[i] = best;
}

// out = in kept between clamp_min and clamp_max, `total` elements, one a thread.
__global__ void clamp_kernel(const float* in, float* out, int64_t total, float clamp_min, float clamp_max) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= total) return;
    float v = in[i];
    if (v < clamp_min) v = clamp_min;
    if (v > clamp_max) v = clamp_max;
    out[i] = v;
}

// The kernels read bare memory: refuse a tensor that is not what they take it for.
static void check(const torch::Tensor& t, const char* name, int64_t dims, const torch::Device& device) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == device, name, " is on ", t.device(), ", x on ", device, ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == torch::kFloat32, name, " is ", t.scalar_type(), ", not float32: use .float()");
    TORCH_CHECK(t.dim() == dims, name, " has ", t.dim(), " dimensions instead of ", dims);
    for (int64_t size : t.sizes()) TORCH_CHECK(size <= INT_MAX, name, " has a side longer than 2^31 - 1");
}

torch::Tensor conv_groupnorm_maxpool_forward(torch::Tensor x, torch::Tensor conv_weight, torch::Tensor conv_bias,
                                             torch::Tensor gn_weight, torch::Tensor gn_bias, torch::Tensor scale,
                                             int64_t groups, double eps, int64_t pool, double clamp_min,
                                             double clamp_max) {
    check(x, "x", 4, x.device());
    check(conv_weight, "the convolution's weight", 4, x.device());
    check(conv_bias, "the convolution's bias", 1, x.device());
    check(gn_weight, "the normalisation's weight", 1, x.device());
    check(gn_bias, "the normalisation's bias", 1, x.device());
    check(scale, "scale", 3, x.device());
    const int64_t N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
    const int64_t OC = conv_weight.size(0), KH = conv_weight.size(2), KW = conv_weight.size(3);
    TORCH_CHECK(conv_weight.size(1) == C, "x has ", C, " channels, the weight is for ", conv_weight.size(1));
    TORCH_CHECK(H >= KH && W >= KW, "the image (", H, " x ", W, ") is smaller than the kernel (", KH, " x ", KW, ")");
    TORCH_CHECK(scale.sizes() == torch::IntArrayRef({OC, 1, 1}), "scale must be (", OC, ", 1, 1), not ", scale.sizes());
    TORCH_CHECK(conv_bias.size(0) == OC && gn_weight.size(0) == OC && gn_bias.size(0) == OC,
                "every bias and weight needs one element for each of ", OC, " output channels");
    TORCH_CHECK(groups > 0 && OC % groups == 0, OC, " channels cannot be cut into ", groups, " equal groups");
    TORCH_CHECK(N * OC <= INT_MAX, "the output has more than 2^31 - 1 planes (images times channels)");
    const int64_t OH = H - KH + 1, OW = W - KW + 1, pixels = OH * OW;
    TORCH_CHECK(pool > 0 && pool <= OH && pool <= OW,
                "a pooling window of ", pool, " does not fit into the convolution's output (", OH, " x ", OW, ")");
    x = x.contiguous();
    conv_weight = conv_weight.contiguous();
    conv_bias = conv_bias.contiguous();
    gn_weight = gn_weight.contiguous();
    gn_bias = gn_bias.contiguous();
    scale = scale.contiguous();

    const int64_t PH = OH / pool, PW = OW / pool;
    torch::Tensor y = torch::empty({N, OC, PH, PW}, x.options());
    if (y.numel() == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    torch::Tensor v = torch::empty({N, OC, OH, OW}, x.options());
    const int64_t tiles_x = (OW + TILE_X - 1) / TILE_X, tiles_y = (OH + TILE_Y - 1) / TILE_Y;
    TORCH_CHECK(N * tiles_x * tiles_y <= INT_MAX, "the output has more than 2^31 - 1 tiles");
    const Shape s = {(int)C, (int)H, (int)W, (int)OC, (int)KH, (int)KW, (int)OH, (int)OW, (int)tiles_x, (int)tiles_y};
    const auto conv2d = KH == 3 && KW == 3 ? conv2d_kernel<3> : conv2d_kernel<0>;
    conv2d<<<N * tiles_y * tiles_x, dim3(TILE_X, WARPS), 0, stream>>>(
        x.data_ptr<float>(), conv_weight.data_ptr<float>(), conv_bias.data_ptr<float>(), v.data_ptr<float>(), s);
    C10_CUDA_KERNEL_LAUNCH_CHECK();

    torch::Tensor mean = torch::empty({N * groups}, x.options()), rstd = torch::empty({N * groups}, x.options());
    group_statistics_kernel<<<N * groups, THREADS, 0, stream>>>(
        v.data_ptr<float>(), mean.data_ptr<float>(), rstd.data_ptr<float>(), OC / groups * pixels, eps);
    C10_CUDA_KERNEL_LAUNCH_CHECK();

    const int64_t total = v.numel(), blocks = (total + THREADS - 1) / THREADS;
    TORCH_CHECK(blocks <= INT_MAX, "the output has more elements than a grid of blocks of ", THREADS, " threads");
    torch::Tensor normal = torch::empty_like(v);
    normalise_kernel<<<blocks, THREADS, 0, stream>>>(
        v.data_ptr<float>(), mean.data_ptr<float>(), rstd.data_ptr<float>(), gn_weight.data_ptr<float>(),
        gn_bias.data_ptr<float>(), normal.data_ptr<float>(), total, OC, OC / groups, pixels);
    C10_CUDA_KERNEL_LAUNCH_CHECK();

    torch::Tensor scaled = torch::empty_like(v), pooled = torch::empty_like(y);
    times_scale_kernel<<<blocks, THREADS, 0, stream>>>(
        normal.data_ptr<float>(), scale.data_ptr<float>(), scaled.data_ptr<float>(), total, OC, pixels);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    const int64_t windows = y.numel(), window_blocks = (windows + THREADS - 1) / THREADS;
    maxpool_kernel<<<window_blocks, THREADS, 0, stream>>>(
        scaled.data_ptr<float>(), pooled.data_ptr<float>(), windows, OH, OW, pool, PH, PW);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    clamp_kernel<<<window_blocks, THREADS, 0, stream>>>(
        pooled.data_ptr<float>(), y.data_ptr<float>(), windows, clamp_min, clamp_max);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="conv_groupnorm_maxpool_02_register_tile",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["conv_groupnorm_maxpool_forward"],
)


class ModelNew(nn.Module):
    """The same function as Model: x (N, in_channels, H, W) float32 on a GPU -> (N, out_channels, PH, PW)."""

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
        return kernels.conv_groupnorm_maxpool_forward(
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
