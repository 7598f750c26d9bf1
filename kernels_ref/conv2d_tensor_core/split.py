"""conv2d_tensor_core in float32's precision class: every factor is split in two TF32 numbers (3xTF32).

A float has 24 bits of mantissa, TF32 has 11 (10 of them stored). float = high + low + an error of less than 2^-22 of
it, so
    a * b = high(a) * high(b) + high(a) * low(b) + low(a) * high(b), and low * low, which is too small to count:
three products on tensor cores instead of one, with nearly float32's error. Not a step of the ladder: its answers are of
another precision class, and it is slower than steps/03, whose kernel it is otherwise. Graded as such by

    grader grade kernels_ref/conv2d_tensor_core/split.py --set PRECISION="'fp32'"

Method: Ootomo and Yokota, Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical
peak performance (2022), which also shows why sums are taken out of the tensor cores now and then.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor conv2d_tensor_core_forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);"

cuda_source = r"""
#include <climits>
#include <mma.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

using namespace nvcuda;

constexpr int TILE_ROWS = 64, TILE_COLUMNS = 128;  // values of y that a block makes, ...
constexpr int DOWN = 2, ACROSS = 2;                // ... each warp so many fragments of 16 x 16 of them
constexpr int TILE_K = 16;                         // rows of columns in shared memory at a time
constexpr int WARP_ROWS = 16 * DOWN, WARP_COLUMNS = 16 * ACROSS;
constexpr int WARPS_ACROSS = TILE_COLUMNS / WARP_COLUMNS, WARPS = TILE_ROWS / WARP_ROWS * WARPS_ACROSS;
constexpr int THREADS = 32 * WARPS;
// Floats from one row in shared memory to the next. A fragment is read as 8 rows of 4 floats, or 4 rows of 8: the first
// of each row must lie in another bank. wmma takes multiples of 4 alone.
constexpr int W_ROW = TILE_K + 4, C_ROW = TILE_COLUMNS + 8, Y_ROW = WARP_COLUMNS + 4;
// A thread fills every W_STEP-th row of the one tile, and every C_STEP-th of the other.
constexpr int W_STEP = THREADS / TILE_K, W_LOADS = TILE_ROWS / W_STEP;
constexpr int C_STEP = THREADS / TILE_COLUMNS, C_LOADS = TILE_K / C_STEP;

#if __CUDA_ARCH__ >= 800
// A float as the sum of two TF32 numbers: the nearest one, and the nearest one to what is left.
template <class Fragment>
__device__ void split(Fragment& high, Fragment& low) {  // high: as loaded
    for (int i = 0; i < high.num_elements; ++i) {
        const float value = high.x[i];
        high.x[i] = wmma::__float_to_tf32(value);
        low.x[i] = wmma::__float_to_tf32(value - high.x[i]);
    }
}

// A warp's 32 x 32 sums, in the registers of its lanes.
struct Sums {
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> tile[DOWN][ACROSS];

    __device__ Sums() {
#pragma unroll
        for (int i = 0; i < DOWN * ACROSS; ++i) wmma::fill_fragment(tile[i / ACROSS][i % ACROSS], 0.0f);
    }

    __device__ void add(const float* w, const float* c) {  // += w (32, TILE_K) times c (TILE_K, 32)
#pragma unroll
        for (int j = 0; j < ACROSS; ++j) {
            // Tensor cores cut their sums, where float32 rounds: after TILE_K of them a rounded addition takes over.
            wmma::fragment<wmma::accumulator, 16, 16, 8, float> part[DOWN];
#pragma unroll
            for (int i = 0; i < DOWN; ++i) wmma::fill_fragment(part[i], 0.0f);
#pragma unroll
            for (int k = 0; k < TILE_K; k += 8) {
                wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> b, b_low;
                wmma::load_matrix_sync(b, c + k * C_ROW + 16 * j, C_ROW);
                split(b, b_low);
#pragma unroll
                for (int i = 0; i < DOWN; ++i) {
                    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> a, a_low;
                    wmma::load_matrix_sync(a, w + 16 * i * W_ROW + k, W_ROW);
                    split(a, a_low);
                    wmma::mma_sync(part[i], a_low, b, part[i]);  // the small ones first; low times low is left out
                    wmma::mma_sync(part[i], a, b_low, part[i]);
                    wmma::mma_sync(part[i], a, b, part[i]);
                }
            }
#pragma unroll
            for (int i = 0; i < DOWN; ++i) {
                for (int e = 0; e < part[i].num_elements; ++e) tile[i][j].x[e] += part[i].x[e];
            }
        }
    }

    __device__ void store(float* y, int i) const {  // the i-th 16 rows
#pragma unroll
        for (int j = 0; j < ACROSS; ++j) wmma::store_matrix_sync(y + 16 * j, tile[i][j], Y_ROW, wmma::mem_row_major);
    }
};
#else
// Before compute capability 8.0 there is no TF32: each lane keeps one column of the tile in float32.
struct Sums {
    float tile[WARP_ROWS] = {};

    __device__ void add(const float* w, const float* c) {
        for (int k = 0; k < TILE_K; ++k) {
#pragma unroll
            for (int r = 0; r < WARP_ROWS; ++r) tile[r] += w[r * W_ROW + k] * c[k * C_ROW + threadIdx.x % 32];
        }
    }

    __device__ void store(float* y, int i) const {
#pragma unroll
        for (int r = 0; r < 16; ++r) y[r * Y_ROW + threadIdx.x % 32] = tile[16 * i + r];
    }
};
#endif

// y = weight (OC, K) times columns (K, pixels) + bias for every image, where columns[(c, ky, kx)][(oy, ox)] is
// x[n, c, oy + ky, ox + kx]. blockIdx.x counts the tiles of all images.
__global__ void __launch_bounds__(THREADS, 2)
conv_kernel(const float* __restrict__ weight, const float* __restrict__ x, const float* __restrict__ bias,
            float* __restrict__ y, int C, int H, int W, int OC, int KH, int KW, int OW, int K,
            int64_t pixels, int64_t tiles_a_row, int64_t tiles) {
    __shared__ __align__(32) float w_tile[TILE_ROWS * W_ROW];
    __shared__ __align__(32) float c_tile[TILE_K * C_ROW];
    __shared__ __align__(32) float y_tile[WARPS][16 * Y_ROW];
    __shared__ int64_t offset[2][TILE_K];  // of a window position from a pixel's own place in x, for two tiles

    const int64_t n = blockIdx.x / tiles;
    const int tile = blockIdx.x % tiles;
    const int row0 = tile / tiles_a_row * TILE_ROWS;
    const int64_t column0 = tile % tiles_a_row * TILE_COLUMNS;
    x += n * C * H * W;
    y += n * OC * pixels;

    // A thread fills one column of w_tile and one of c_tile, always the same pixel's: past the last one, the last
    // one's.
    const int w_k = threadIdx.x % TILE_K, first_row = threadIdx.x / TILE_K;
    const int column = threadIdx.x % TILE_COLUMNS, first_k = threadIdx.x / TILE_COLUMNS;
    const int64_t pixel = min(column0 + column, pixels - 1);
    const float* x_at = x + pixel / OW * W + pixel % OW;

    auto find_offset = [&](int k0) {  // of the tile that begins at row k0
        if (threadIdx.x >= TILE_K) return;
        const int k = min(k0 + (int)threadIdx.x, K - 1);
        offset[k0 / TILE_K % 2][threadIdx.x] = ((int64_t)(k / KW / KH) * H + k / KW % KH) * W + k % KW;
    };
    float w_value[W_LOADS], c_value[C_LOADS];
    // All loads, each from a place that exists: rows of weight past the last make values that nobody stores.
    auto fetch = [&](int k0) {
#pragma unroll
        for (int i = 0; i < W_LOADS; ++i) {
            w_value[i] = weight[min(row0 + first_row + i * W_STEP, OC - 1) * (int64_t)K + min(k0 + w_k, K - 1)];
        }
#pragma unroll
        for (int i = 0; i < C_LOADS; ++i) c_value[i] = x_at[offset[k0 / TILE_K % 2][first_k + i * C_STEP]];
    };
    // Past the end of K zeros, in both tiles: 0 times whatever lay there may be NaN.
    auto put = [&](int k0) {
#pragma unroll
        for (int i = 0; i < W_LOADS; ++i) {
            w_tile[(first_row + i * W_STEP) * W_ROW + w_k] = k0 + w_k < K ? w_value[i] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < C_LOADS; ++i) {
            const int k = first_k + i * C_STEP;
            c_tile[k * C_ROW + column] = k0 + k < K ? c_value[i] : 0.0f;
        }
    };

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_row = warp / WARPS_ACROSS * WARP_ROWS, warp_column = warp % WARPS_ACROSS * WARP_COLUMNS;
    Sums sums;
    find_offset(0);
    find_offset(TILE_K);
    __syncthreads();  // the offsets are there
    fetch(0);
    for (int k0 = 0; k0 < K; k0 += TILE_K) {
        put(k0);
        __syncthreads();  // the tiles are complete, and nobody reads this tile's offsets any more
        find_offset(k0 + 2 * TILE_K);
        if (k0 + TILE_K < K) fetch(k0 + TILE_K);  // on its way while the warps multiply
        sums.add(w_tile + warp_row * W_ROW, c_tile + warp_column);
        __syncthreads();  // nobody reads the tiles any more
    }

    // Rows of y begin anywhere, wmma stores to multiples of 32 bytes alone: each warp by way of its own shared memory.
    for (int i = 0; i < DOWN; ++i) {
        sums.store(y_tile[warp], i);
        __syncwarp();  // its 16 rows are complete
        for (int r = 0; r < 16; ++r) {
            const int row = row0 + warp_row + 16 * i + r;
            const int64_t to = column0 + warp_column + lane;
            if (row < OC && to < pixels) y[row * pixels + to] = y_tile[warp][r * Y_ROW + lane] + bias[row];
        }
        __syncwarp();  // nobody reads them any more
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

torch::Tensor conv2d_tensor_core_forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
    check(x, "x", 4, x.device());
    check(weight, "weight", 4, x.device());
    check(bias, "bias", 1, x.device());
    const int64_t N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
    const int64_t OC = weight.size(0), KH = weight.size(2), KW = weight.size(3);
    TORCH_CHECK(weight.size(1) == C, "x has ", C, " channels, the weight is for ", weight.size(1));
    TORCH_CHECK(bias.size(0) == OC, "bias has ", bias.size(0), " elements for ", OC, " output channels");
    TORCH_CHECK(H >= KH && W >= KW, "the image (", H, " x ", W, ") is smaller than the kernel (", KH, " x ", KW, ")");
    x = x.contiguous();
    weight = weight.contiguous();
    bias = bias.contiguous();

    const int64_t OH = H - KH + 1, OW = W - KW + 1;
    torch::Tensor y = torch::empty({N, OC, OH, OW}, x.options());
    if (y.numel() == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const int64_t K = C * KH * KW, pixels = OH * OW;
    TORCH_CHECK(K <= INT_MAX, "a window of ", K, " values is longer than 2^31 - 1");
    const int64_t tiles_a_row = (pixels + TILE_COLUMNS - 1) / TILE_COLUMNS;
    const int64_t tiles = (OC + TILE_ROWS - 1) / TILE_ROWS * tiles_a_row;
    TORCH_CHECK(N * tiles <= INT_MAX, "y has more than 2^31 - 1 tiles");
    conv_kernel<<<N * tiles, THREADS, 0, stream>>>(
        weight.data_ptr<float>(), x.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
        C, H, W, OC, KH, KW, OW, K, pixels, tiles_a_row, tiles);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="conv2d_tensor_core_split",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["conv2d_tensor_core_forward"],
)


class ModelNew(nn.Module):
    """The same convolution as Model: x (N, in_channels, H, W) float32 on a GPU -> (N, out_channels, OH, OW)."""

    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)  # holds the weights, is never called

    def forward(self, x):
        return kernels.conv2d_tensor_core_forward(x, self.conv.weight, self.conv.bias)
