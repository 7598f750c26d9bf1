"""conv_groupnorm_maxpool: im2col, a matrix product, statistics, and the rest in one kernel (KernelBench level 2, 85).

What is to be computed, in Python:

    v = conv(x)                                                         # as in im2col_conv
    for n, c, py, px in every position of y:
        window = v[n, c, py * pool : (py + 1) * pool, px * pool : (px + 1) * pool]
        window = ((window - mean[n, group of c]) * rstd[n, group of c] * gn_weight[c] + gn_bias[c]) * scale[c]
        y[n, c, py, px] = clamp(max(window), clamp_min, clamp_max)

Kernels: im2col_kernel and matmul_kernel, a few images at a time; group_statistics_kernel, one block a group, over all
of v; norm_scale_maxpool_clamp_kernel, one thread a window: the normalised image is not stored. A negative scale turns
the largest value into the smallest, so that the maximum must come last.
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
#include <algorithm>
#include <climits>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int WARP = 32;
constexpr int THREADS = 256;                 // a block: a whole number of warps
constexpr int TILE = 16;                     // a block of the product makes TILE x TILE elements
constexpr int64_t COLUMN_FLOATS = 1 << 23;   // 32 MB of columns at a time: they are still in L2 when they are read
constexpr int64_t MAX_GRID_Y = 65535;

// x (images, C, H, W) -> columns (images, K, OH * OW) with K = C * KH * KW; `total` elements.
__global__ void im2col_kernel(const float* x, float* columns, int64_t total,
                              int C, int H, int W, int KH, int KW, int OH, int OW) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;

    const int ox = i % OW;
    const int oy = i / OW % OH;
    const int64_t row = i / OW / OH;  // over all images
    const int kx = row % KW;
    const int ky = row / KW % KH;
    const int64_t plane = row / KW / KH;  // n * C + c, the channel over all images
    columns[i] = x[(plane * H + oy + ky) * W + ox + kx];
}

// y[n] = weight (OC, K) times columns[n] (K, pixels) + bias, with n = blockIdx.y.
// A block makes one tile of y. Step by step along K, its threads fetch a tile of weight and a tile of columns into
// shared memory, one element each, and then every thread adds the TILE products of its row and its column.
__global__ void matmul_kernel(const float* weight, const float* columns, const float* bias, float* y,
                              int OC, int K, int64_t pixels) {
    __shared__ float w_tile[TILE][TILE];
    __shared__ float c_tile[TILE][TILE];

    // The tiles of y are numbered along blockIdx.x, which may be far larger than blockIdx.y.
    const int64_t tiles_a_row = (pixels + TILE - 1) / TILE;
    const int row = blockIdx.x / tiles_a_row * TILE + threadIdx.y;
    const int64_t column = blockIdx.x % tiles_a_row * TILE + threadIdx.x;
    columns += (int64_t)blockIdx.y * K * pixels;
    y += (int64_t)blockIdx.y * OC * pixels;

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        // Past the edge of a matrix stands a zero, which adds nothing. No thread may leave: all must reach the barrier.
        const int w_k = k0 + threadIdx.x;
        const int c_k = k0 + threadIdx.y;
        w_tile[threadIdx.y][threadIdx.x] = row < OC && w_k < K ? weight[(int64_t)row * K + w_k] : 0.0f;
        c_tile[threadIdx.y][threadIdx.x] = c_k < K && column < pixels ? columns[c_k * pixels + column] : 0.0f;
        __syncthreads();  // the tiles are complete

        for (int k = 0; k < TILE; ++k) {
            sum += w_tile[threadIdx.y][k] * c_tile[k][threadIdx.x];
        }
        __syncthreads();  // nobody reads the tiles any more
    }
    if (row < OC && column < pixels) y[row * pixels + column] = sum + bias[row];
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

// v (N, C, H, W) -> y (N, C, PH, PW), `total` elements: the maximum over a pool x pool window of
// ((v - mean) * rstd * gn_weight + gn_bias) * scale, kept between clamp_min and clamp_max.
__global__ void norm_scale_maxpool_clamp_kernel(const float* v, const float* mean, const float* rstd,
                                                const float* gn_weight, const float* gn_bias, const float* scale,
                                                float* y, int64_t total, int C, int channels_a_group, int H, int W,
                                                int pool, int PH, int PW, float clamp_min, float clamp_max) {
    // >>> exercise: find this thread's window; normalise, scale its pixels; keep the largest; clamp (about 19 lines)
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    const int px = i % PW;
    const int py = i / PW % PH;
    const int64_t plane = i / PW / PH;  // n * C + c
    const int c = plane % C;
    const int64_t group = plane / channels_a_group;  // over all images, as C is a whole number of groups
    const float m = mean[group], r = rstd[group], w = gn_weight[c], b = gn_bias[c], s = scale[c];

    float best = -INFINITY;
    for (int dy = 0; dy < pool; ++dy) {
        const float* row = v + (plane * H + (int64_t)py * pool + dy) * W + (int64_t)px * pool;
        for (int dx = 0; dx < pool; ++dx) {
            const float value = ((row[dx] - m) * r * w + b) * s;
            if (value > best || isnan(value)) best = value;  // fmaxf would hide a NaN
        }
    }
    if (best < clamp_min) best = clamp_min;
    if (best > clamp_max) best = clamp_max;
    y[i] = best;
    // <<<
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
    const int64_t OH = H - KH + 1, OW = W - KW + 1, pixels = OH * OW;
    TORCH_CHECK(pool > 0 && pool <= OH && pool <= OW,
                "a pooling window of ", pool, " does not fit into the convolution's output (", OH, " x ", OW, ")");
    x = x.contiguous();
    conv_weight = conv_weight.contiguous();
    conv_bias = conv_bias.contiguous();
    gn_weight = gn_weight.contiguous();
    gn_bias = gn_bias.contiguous();
    scale = scale.contiguous();

    torch::Tensor y = torch::empty({N, OC, OH / pool, OW / pool}, x.options());
    const int64_t total = y.numel();
    if (total == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const int64_t K = C * KH * KW;
    TORCH_CHECK(K <= INT_MAX, "a window of ", K, " values is longer than 2^31 - 1");
    const int64_t chunk = std::clamp<int64_t>(COLUMN_FLOATS / (K * pixels), 1, std::min(N, MAX_GRID_Y));
    torch::Tensor columns = torch::empty({chunk, K, pixels}, x.options());
    torch::Tensor v = torch::empty({N, OC, OH, OW}, x.options());
    const int64_t tiles = ((OC + TILE - 1) / TILE) * ((pixels + TILE - 1) / TILE);
    for (int64_t first = 0; first < N; first += chunk) {
        const int64_t images = std::min(chunk, N - first);
        const int64_t elements = images * K * pixels;
        im2col_kernel<<<(elements + THREADS - 1) / THREADS, THREADS, 0, stream>>>(
            x.data_ptr<float>() + first * C * H * W, columns.data_ptr<float>(), elements, C, H, W, KH, KW, OH, OW);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
        matmul_kernel<<<dim3(tiles, images), dim3(TILE, TILE), 0, stream>>>(
            conv_weight.data_ptr<float>(), columns.data_ptr<float>(), conv_bias.data_ptr<float>(),
            v.data_ptr<float>() + first * OC * pixels, OC, K, pixels);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }

    torch::Tensor mean = torch::empty({N * groups}, x.options());
    torch::Tensor rstd = torch::empty({N * groups}, x.options());
    group_statistics_kernel<<<N * groups, THREADS, 0, stream>>>(
        v.data_ptr<float>(), mean.data_ptr<float>(), rstd.data_ptr<float>(), v.numel() / (N * groups), eps);
    C10_CUDA_KERNEL_LAUNCH_CHECK();

    norm_scale_maxpool_clamp_kernel<<<(total + THREADS - 1) / THREADS, THREADS, 0, stream>>>(
        v.data_ptr<float>(), mean.data_ptr<float>(), rstd.data_ptr<float>(), gn_weight.data_ptr<float>(),
        gn_bias.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(), total, OC, OC / groups, OH, OW,
        pool, OH / pool, OW / pool, clamp_min, clamp_max);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="conv_groupnorm_maxpool",
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
