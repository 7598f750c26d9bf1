"""conv_groupnorm_maxpool at the hardware's limit, fp32 class.

One convolution on tensor cores, and one small kernel. A warp keeps its channels' weights in registers and lets pixels
pass by: halves, 8 channels in 16 bytes, so that one ldmatrix gives mma all it needs for two taps. Three products of
halves, as in 3xTF32, are nearly one of floats, at half the cost of that. Scales that are powers of two, one a channel
for the weights and one a tile for x, keep halves in their range whatever the numbers are. What mma leaves in
registers is summed up there, about a value of its own image, and of each window only the largest value is stored;
where the factors to come are negative, the weights are negated first. The next tile comes from memory meanwhile. The
second kernel merges a group's moments and normalises its windows.

Beside a number far beyond all others halves have few digits left for the rest of its tile. The result shows nothing of
that, as such a number makes the variance; but a group that does not see it, for its weights are 0, is less exact there.

For 3x3 kernels, up to 8 input channels and windows of 4, on GPUs of compute capability 8.0 or later with 150 KB of
shared memory a block. Every other shape, and every other GPU, has the kernels of step 4.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# What the binding needs of torch: <torch/extension.h> has it, too, and takes twice as long to compile. Where there is
# no GPU, load_inline is simt's, which needs none of it.
binding_headers = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
"""

cpp_source = r"""
#include <climits>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

// From the CUDA source, which sees no header of torch: that is what makes it quick to compile.
int64_t conv_groupnorm_maxpool_workspace(int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC, int64_t KH, int64_t KW,
                                         int64_t groups, int64_t pool);
const char* conv_groupnorm_maxpool_launch(const float* x, const float* conv_weight, const float* conv_bias,
                                          const float* gn_weight, const float* gn_bias, const float* scale, float* y,
                                          float* workspace, int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC,
                                          int64_t KH, int64_t KW, int64_t groups, double eps, int64_t pool,
                                          double clamp_min, double clamp_max, void* stream);

// The kernels read bare memory: refuse a tensor that is not what they take it for.
static void check(const at::Tensor& t, const char* name, int64_t dims, const at::Device& device) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == device, name, " is on ", t.device(), ", x on ", device, ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == at::kFloat, name, " is ", t.scalar_type(), ", not float32: use .float()");
    TORCH_CHECK(t.dim() == dims, name, " has ", t.dim(), " dimensions instead of ", dims);
    for (int64_t size : t.sizes()) TORCH_CHECK(size <= INT_MAX, name, " has a side longer than 2^31 - 1");
}

at::Tensor conv_groupnorm_maxpool_forward(at::Tensor x, at::Tensor conv_weight, at::Tensor conv_bias,
                                          at::Tensor gn_weight, at::Tensor gn_bias, at::Tensor scale, int64_t groups,
                                          double eps, int64_t pool, double clamp_min, double clamp_max) {
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
    TORCH_CHECK(scale.sizes() == at::IntArrayRef({OC, 1, 1}), "scale must be (", OC, ", 1, 1), not ", scale.sizes());
    TORCH_CHECK(conv_bias.size(0) == OC && gn_weight.size(0) == OC && gn_bias.size(0) == OC,
                "every bias and weight needs one element for each of ", OC, " output channels");
    TORCH_CHECK(groups > 0 && OC % groups == 0, OC, " channels cannot be cut into ", groups, " equal groups");
    TORCH_CHECK(N * OC <= INT_MAX, "the output has more than 2^31 - 1 planes (images times channels)");
    const int64_t OH = H - KH + 1, OW = W - KW + 1;
    TORCH_CHECK(pool > 0 && pool <= OH && pool <= OW,
                "a pooling window of ", pool, " does not fit into the convolution's output (", OH, " x ", OW, ")");
    x = x.contiguous();
    conv_weight = conv_weight.contiguous();
    conv_bias = conv_bias.contiguous();
    gn_weight = gn_weight.contiguous();
    gn_bias = gn_bias.contiguous();
    scale = scale.contiguous();

    const c10::cuda::CUDAGuard guard(x.device());
    at::Tensor y = at::empty({N, OC, OH / pool, OW / pool}, x.options());
    if (y.numel() == 0) return y;  // a grid of no blocks is a launch error
    const int64_t floats = conv_groupnorm_maxpool_workspace(N, C, H, W, OC, KH, KW, groups, pool);
    at::Tensor workspace = at::empty({floats}, x.options());
    const char* error = conv_groupnorm_maxpool_launch(
        x.data_ptr<float>(), conv_weight.data_ptr<float>(), conv_bias.data_ptr<float>(), gn_weight.data_ptr<float>(),
        gn_bias.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(), workspace.data_ptr<float>(), N, C, H,
        W, OC, KH, KW, groups, eps, pool, clamp_min, clamp_max,
        static_cast<void*>(c10::cuda::getCurrentCUDAStream().stream()));
    TORCH_CHECK(error == nullptr, "conv_groupnorm_maxpool: ", error);
    return y;
}
"""

cuda_source = r"""
#include <algorithm>
#include <climits>
#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int SPLIT = 3;                  // products of halves for one of floats
constexpr int TALL = 2, ROWS = 16;         // a warp makes 16 * TALL channels, a block that many rows of pixels ...
constexpr int WARPS = 8, BLOCKS = 1;      // ... with so many warps, and a multiprocessor has so many blocks
constexpr int THREADS = 256;              // a block of every other kernel

// ---- the convolution on tensor cores: up to 8 channels, a 3x3 kernel ----

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define TENSOR_CORES
#endif

constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffff;
constexpr int IN = 8, CHUNK = 64;      // channels of x; channels of the result that a block makes
constexpr int WIDE = 128;              // pixels of a tile's row
constexpr int COLUMNS = WIDE + 2;      // ... of x that they need
constexpr int RAW = WIDE + 4;          // ... and of x as it comes from memory

// What is known of some numbers: how many, their mean, and the sum of their squared deviations from it.
struct Moments {
    float count, mean, squares;
};

// x (N, C, H, W) -> (N, OC, OH, OW), in `tiles` tiles, of which an image has tiles_x next to each other and tiles_y
// below each other. Each of `blocks` blocks makes some that follow each other, image after image.
struct Shape {
    int C, H, W, OC, OH, OW, tiles_x, tiles_y, tiles, blocks;
};

__host__ __device__ inline int first_tile(const Shape& s, int block) { return (int64_t)block * s.tiles / s.blocks; }
__host__ __device__ inline int block_of(const Shape& s, int tile) {
    const int64_t last = ((int64_t)tile + 1) * s.blocks - 1;
    return last <= UINT32_MAX ? (uint32_t)last / (uint32_t)s.tiles : last / s.tiles;
}

// Shared memory for a tile of so many rows.
__host__ __device__ constexpr int tile_bytes(int split, int rows) {
    return (rows + 2) * ((split == 3 ? 2 : 1) * COLUMNS * IN * 2 + IN * RAW * 4);
}

__device__ __forceinline__ float power_of_two(int e) {
    return __uint_as_float((uint32_t)(e + 127) << 23);
}

// e such that 2^e brings `largest` to 2^9 ... 2^10, where halves are at their best: 2^-24 is left of it at least.
__device__ __forceinline__ int exponent_for(float largest) {
    const int e = 9 + 127 - (int)(__float_as_uint(largest) >> 23);
    return largest == 0.0f ? 0 : min(max(e, -118), 40);
}

#ifdef TENSOR_CORES
// Two floats as the nearest halves.
__device__ __forceinline__ uint32_t halves(float low, float high) {
    const __half2 h = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&h);
}

// The nearest halves to what `h` leaves of both.
__device__ __forceinline__ uint32_t rest(uint32_t h, float low, float high) {
    const float2 f = __half22float2(*reinterpret_cast<const __half2*>(&h));
    return halves(low - f.x, high - f.y);
}

// d += a (16 channels x 16 terms) * b (16 terms x 8 pixels)
__device__ __forceinline__ void mma16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// d = c + a * b
__device__ __forceinline__ void mma16_from(float (&d)[4], const float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                           uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

// d += a (16 channels x 8 terms) * b (8 terms x 8 pixels)
__device__ __forceinline__ void mma8(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t b0) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(b0));
}

// Fragments of 8 pixels of 8 channels each, for b; a lane gives the address of one pixel.
__device__ __forceinline__ void fragments(uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d, uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at));
}
__device__ __forceinline__ void fragments(uint32_t& a, uint32_t& b, uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : "r"(at));
}

// Copies to shared memory that go on while the thread does something else; zeros where `in` is false.
__device__ __forceinline__ void copy16(uint32_t to, const float* from, bool in) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(in ? 16 : 0) : "memory");
}
__device__ __forceinline__ void copy4(uint32_t to, const float* from, bool in) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(in ? 4 : 0) : "memory");
}
__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}

// The weights of a warp's MT * 16 channels, in registers as mma has them. A register holds two channels of x. Terms are
// taken two taps at a time: 0 and 1, 3 and 4, 6 and 7 (pixels at the shifts 0 and 1 of a row), then of the third column
// 2 and 5 with 8 alone, or 5 and 8 with 2 alone: an even row of pixels takes the former, an odd one the latter, so that
// the same registers of pixels pair up for all rows.
template <int SPLIT, int MT>
struct Weights {
    static constexpr int TERMS = IN * 9, PITCH = TERMS + 1;
    uint32_t high[MT][5][4], low[SPLIT == 3 ? MT : 1][5][4];

    // Each channel is scaled by a power of two, and negated where `gamma` (of the normalisation) and `factor` have
    // different signs. unscale, bias_scaled (CHUNK, shared): what takes that back; the bias so scaled. `stage`: CHUNK *
    // PITCH floats of shared memory. All threads must call it; it ends with a barrier.
    __device__ __forceinline__ void load(const float* weight, const float* bias, const float* gamma,
                                         const float* factor, const Shape& s, int first, int local, float* stage,
                                         float* unscale, float* bias_scaled) {
        const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4, terms = s.C * 9, channels = min(CHUNK, s.OC - first);
        weight += (int64_t)first * terms;
        for (int i = threadIdx.x; i < CHUNK * TERMS; i += blockDim.x) {
            const int c = i / TERMS, k = i % TERMS;
            stage[c * PITCH + k] = c < channels && k < terms ? weight[c * terms + k] : 0.0f;
        }
        __syncthreads();  // the weights are there
#pragma unroll
        for (int m = 0; m < MT; ++m) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int c = local + m * 16 + h * 8 + g;
                const float* at = stage + c * PITCH + 2 * 9 * t;
                float largest = 0.0f;
#pragma unroll
                for (int k = 0; k < 18; ++k) {
                    const float v = fabsf(at[k]);
                    if (v < INFINITY) largest = fmaxf(largest, v);
                }
                largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, 1));
                largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, 2));
                const int e = exponent_for(largest);
                const bool minus = gamma && c < channels && (gamma[first + c] < 0.0f) != (factor[first + c] < 0.0f);
                const float sign = minus ? -1.0f : 1.0f, up = power_of_two(e) * sign;
                if (t == 0 && threadIdx.x < CHUNK / 16 / MT * WARP) {  // the other warps have the same
                    unscale[c] = power_of_two(-e) * sign;
                    bias_scaled[c] = c < channels ? bias[first + c] * up : 0.0f;
                }
#pragma unroll
                for (int k = 0; k < 9; ++k) {
                    const float a = at[k] * up, b = at[9 + k] * up;
                    put(high[m], k, h, halves(a, b));
                    if constexpr (SPLIT == 3) put(low[m], k, h, rest(halves(a, b), a, b));
                }
            }
        }
        __syncthreads();  // nobody reads the stage any more
    }

    __device__ __forceinline__ static void put(uint32_t (&a)[5][4], int k, int h, uint32_t v) {
        if (k % 3 < 2) a[k / 3][k % 3 * 2 + h] = v;
        if (k == 2 || k == 5) a[3][k / 3 * 2 + h] = v;
        if (k == 5 || k == 8) a[4][(k / 3 - 1) * 2 + h] = v;
    }
};

// A tile of R rows. Shared memory has R + 2 rows of x as they come, [channel][row][RAW], and the same pixel by pixel in
// halves, 8 channels in 16 bytes; with SPLIT 3 once more, what those halves leave.
template <int SPLIT, int R, int WARPS>
struct Tile {
    static constexpr int ROWS = R + 2, PIXELS = ROWS * COLUMNS, PLANES = SPLIT == 3 ? 2 : 1, THREADS = WARPS * WARP;
    static constexpr int USUAL = 8;  // for numbers from 2^-5 to 2^7
    static_assert(WARPS % IN == 0 || IN % WARPS == 0, "warps share the channels of x evenly");
    static_assert(CHUNK * Weights<SPLIT, 1>::PITCH <= IN * ROWS * RAW, "the weights are staged where x comes");
    uint4* pixels;
    float* raw;
    const float* x;
    const Shape& s;
    bool vector;     // rows begin at multiples of 16 bytes
    int exponent;    // of the scale of the tile in `pixels`
    bool settled;    // whether the image's scale was chosen by numbers that it has
    int n, y0, x0;   // the tile's image and place
    int next_n, next_y0, next_x0;

    __device__ __forceinline__ Tile(uint4* shared, const float* x, const Shape& s)
        : pixels(shared), raw(reinterpret_cast<float*>(shared + PLANES * PIXELS)), x(x), s(s),
          vector(s.W % 4 == 0 && reinterpret_cast<uintptr_t>(x) % 16 == 0), exponent(USUAL), settled(false), n(-1) {}

    // What no copy writes is zero: channels that there are not, and columns behind an image of one tile's width.
    __device__ __forceinline__ void clear() {
        for (int i = threadIdx.x; i < IN * ROWS * RAW; i += THREADS) raw[i] = 0.0f;
        for (int i = threadIdx.x; i < PLANES * ROWS * 2; i += THREADS) pixels[i / 2 * COLUMNS + WIDE + i % 2] = {};
        __syncthreads();  // all is zero
    }

    // Goes to tile i.
    __device__ __forceinline__ void start(int i) {
        const int of_image = s.tiles_x * s.tiles_y;
        next_n = i / of_image;
        next_y0 = i % of_image / s.tiles_x * R;
        next_x0 = i % of_image % s.tiles_x * WIDE;
        bring();
    }

    // Starts to bring the next tile; beyond the image come zeros. Nobody may be reading `raw`.
    __device__ __forceinline__ void bring() {
        const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
        const float* image = x + (int64_t)next_n * s.C * s.H * s.W;
        const uint32_t to = (uint32_t)__cvta_generic_to_shared(raw);
        if (vector) {
            constexpr int STEP = WARPS < IN ? 1 : WARPS / IN;  // rows
            static_assert(ROWS % STEP == 0, "warps share a channel's rows evenly");
            const int column = next_x0 + lane * 4;
            const bool in = column < s.W;
            for (int k = warp % IN; k < s.C; k += WARPS < IN ? WARPS : IN) {
                const float* from = image + ((int64_t)k * s.H + next_y0 + warp / IN) * s.W + (in ? column : 0);
                const uint32_t at = to + ((k * ROWS + warp / IN) * RAW + lane * 4) * 4;
                const int rows = s.H - next_y0 - warp / IN;  // that the image has from here
                if (rows >= ROWS) {
#pragma unroll
                    for (int r = 0; r < ROWS; r += STEP, from += STEP * s.W) copy16(at + r * RAW * 4, from, in);
                } else {
                    for (int r = 0; r < ROWS; r += STEP, from += STEP * s.W) {
                        copy16(at + r * RAW * 4, r < rows ? from : x, in && r < rows);
                    }
                }
            }
            if (s.tiles_x > 1) {
                for (int u = threadIdx.x; u < s.C * ROWS; u += THREADS) {
                    const int k = u / ROWS, row = next_y0 + u % ROWS;
                    const bool in = row < s.H && next_x0 + WIDE < s.W;
                    const float* from = image + ((int64_t)k * s.H + row) * s.W + next_x0 + WIDE;
                    copy16(to + (u * RAW + WIDE) * 4, in ? from : x, in);
                }
            }
        } else {
            for (int u = warp; u < s.C * ROWS; u += WARPS) {
                const int k = u / ROWS, row = next_y0 + u % ROWS;
                for (int c = lane; c < COLUMNS; c += WARP) {
                    const bool in = row < s.H && next_x0 + c < s.W;
                    const float* from = image + ((int64_t)k * s.H + row) * s.W + next_x0 + c;
                    copy4(to + (u * RAW + c) * 4, in ? from : x, in);
                }
            }
        }
    }

    // raw -> pixels; returns the largest magnitude that the thread met.
    __device__ __forceinline__ float halve() {
        const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
        const float up = power_of_two(exponent);
        float largest = 0.0f;
        const auto pixel = [&](int r, int c) {
            const float* at = raw + r * RAW + c;
            float v[IN];
#pragma unroll
            for (int k = 0; k < IN; ++k) {
                v[k] = at[k * ROWS * RAW];
                largest = fmaxf(largest, fabsf(v[k]));
                v[k] *= up;
            }
            const uint4 high = {halves(v[0], v[1]), halves(v[2], v[3]), halves(v[4], v[5]), halves(v[6], v[7])};
            pixels[r * COLUMNS + c] = high;
            if constexpr (SPLIT == 3) {
                pixels[PIXELS + r * COLUMNS + c] = {rest(high.x, v[0], v[1]), rest(high.y, v[2], v[3]),
                                                    rest(high.z, v[4], v[5]), rest(high.w, v[6], v[7])};
            }
        };
        constexpr int SEGMENTS = WIDE / WARP;
#pragma unroll 2
        for (int u = warp; u < ROWS * SEGMENTS; u += WARPS) pixel(u / SEGMENTS, u % SEGMENTS * WARP + lane);
        if (s.tiles_x > 1 || !vector) {
            for (int u = threadIdx.x; u < ROWS * 2; u += THREADS) pixel(u / 2, WIDE + u % 2);
        }
        return largest;
    }

    // The tile that was brought is made ready, and with `more` the next one begins to come. Halves go from 2^-24 to
    // 2^16: where the tile's largest number does not lie well between, it is done again with another scale; but once
    // there were numbers, an image's scale only falls. Returns true where an image begins. All threads must call it;
    // begins and ends with a barrier.
    __device__ __forceinline__ bool ready(bool more) {
        __shared__ float of_warp[WARPS];
        const bool fresh = n != next_n;
        n = next_n, y0 = next_y0, x0 = next_x0;
        settled = settled && !fresh;
        wait_for_copies();
        for (int attempt = 0; attempt < 2; ++attempt) {
            __syncthreads();  // all copies are there, and nobody reads the last tile any more
            const float mine = halve();
            // As integers: magnitudes are in the same order.
            const unsigned largest_of_warp = __reduce_max_sync(ALL_LANES, __float_as_uint(mine));
            if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = __uint_as_float(largest_of_warp);
            __syncthreads();  // the tile is complete
            float largest = 0.0f;
#pragma unroll
            for (int w = 0; w < WARPS; ++w) largest = fmaxf(largest, of_warp[w]);
            if (largest == 0.0f && fresh) exponent = USUAL;  // with any scale, zeros are zeros
            if (largest == 0.0f || largest == INFINITY) break;
            const int higher = exponent_for(largest) - exponent;
            const bool fits = higher >= -5 && (higher <= 6 || settled);  // 2^3 ... 2^15
            settled = true;
            if (fits) break;
            exponent += higher;
        }
        if (more) {
            next_x0 += WIDE;
            if (next_x0 >= s.OW) next_x0 = 0, next_y0 += R;
            if (next_y0 >= s.OH) next_y0 = 0, ++next_n;
            bring();
        }
        return fresh;
    }
};

// Fragments of pixels: 6 rows of 8, at the shifts 0 and 1 side by side, and at shift 2, one row beside the next.
struct Pixels {
    uint32_t two[6][2], third[6];

    // pair: address of the pixel (row lane / 16, column lane % 8 + lane / 8 % 2); single: of (lane / 8, lane % 8 + 2)
    __device__ __forceinline__ void load(uint32_t pair, uint32_t single) {
#pragma unroll
        for (int r = 0; r < 6; r += 2) {
            fragments(two[r][0], two[r][1], two[r + 1][0], two[r + 1][1], pair + r * COLUMNS * 16);
        }
        fragments(third[0], third[1], third[2], third[3], single);
        fragments(third[4], third[5], single + 4 * COLUMNS * 16);
    }
};

// acc[row][m] += w[m] * pixels, for NR rows of 8 pixels; FROM: acc[row][m] = from[m] + w[m] * pixels
template <int MT, int NR, bool FROM>
__device__ __forceinline__ void product(const uint32_t (&w)[MT][5][4], const Pixels& b, const float (&from)[MT][4],
                                        float (&acc)[NR][MT][4]) {
#pragma unroll
    for (int k = 0; k < 3; ++k) {
#pragma unroll
        for (int r = 0; r < NR; ++r) {
#pragma unroll
            for (int m = 0; m < MT; ++m) {
                if (FROM && k == 0) mma16_from(acc[r][m], from[m], w[m][k], b.two[r + k][0], b.two[r + k][1]);
                else mma16(acc[r][m], w[m][k], b.two[r + k][0], b.two[r + k][1]);
            }
        }
    }
#pragma unroll
    for (int r = 0; r < NR; ++r) {
#pragma unroll
        for (int m = 0; m < MT; ++m) mma16(acc[r][m], w[m][3 + r % 2], b.third[r + r % 2], b.third[r + r % 2 + 1]);
    }
#pragma unroll
    for (int r = 0; r < NR; ++r) {
#pragma unroll
        for (int m = 0; m < MT; ++m) {
            if (r % 2) mma8(acc[r][m], w[m][3][0], w[m][3][1], b.third[r]);
            else mma8(acc[r][m], w[m][4][2], w[m][4][3], b.third[r + 2]);
        }
    }
}

// acc[row][m] = from[m] + weights * pixels, for 4 rows of 8 pixels. SPLIT 3: (high + low) * (high + low) without low *
// low; small products first, and `from` last, as tensor cores do not round a sum but cut it off.
template <int SPLIT, int MT, int LOW>
__device__ __forceinline__ void convolve(const Weights<SPLIT, MT>& w, uint32_t pair, uint32_t single,
                                         const float (&from)[MT][4], float (&acc)[4][MT][4]) {
    Pixels high;
    high.load(pair, single);
    if constexpr (SPLIT == 3) {
        const float zero[MT][4] = {};
        Pixels low;
        low.load(pair + LOW, single + LOW);
        product<MT, 4, true>(w.low, high, zero, acc);
        product<MT, 4, false>(w.high, low, zero, acc);
        product<MT, 4, false>(w.high, high, zero, acc);
#pragma unroll
        for (int r = 0; r < 4; ++r) {
#pragma unroll
            for (int m = 0; m < MT; ++m) {
#pragma unroll
                for (int k = 0; k < 4; ++k) acc[r][m][k] += from[m][k / 2 * 2];
            }
        }
    } else {
        product<MT, 4, true>(w.high, high, from, acc);
    }
}

// Adds 4 rows of 8 pixels in a warp's channels to its sums. WINDOWS: leaves the largest of a window of 4 x 4, for a
// lane that of channel g + 8 * (t % 2) and of window t / 2.
template <int MT, bool WINDOWS>
__device__ __forceinline__ void add(const float (&acc)[4][MT][4], float (&sum)[MT][2], float (&squares)[MT][2],
                                    float (&best)[MT]) {
    const bool odd = threadIdx.x % 2;
#pragma unroll
    for (int m = 0; m < MT; ++m) {
        float top[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float left = 0.0f, right = 0.0f;
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const float a = acc[r][m][2 * h], b = acc[r][m][2 * h + 1];
                if constexpr (WINDOWS) top[h] = r ? fmaxf(top[h], fmaxf(a, b)) : fmaxf(a, b);
                left = r ? left + a : a;
                right = r ? right + b : b;
                squares[m][h] = fmaf(b, b, fmaf(a, a, squares[m][h]));
            }
            sum[m][h] += left + right;
        }
        if constexpr (WINDOWS) {  // neighbours have halves of one window in two channels; each takes one of these
            const float own = odd ? top[1] : top[0], other = odd ? top[0] : top[1];
            best[m] = fmaxf(own, __shfl_xor_sync(ALL_LANES, other, 1));
        }
    }
}
#endif

// Statistics of the convolution, and with WINDOWS the largest value of each window of 4 x 4, or the smallest where the
// signs of gamma and factor differ: (N, OC, OH / 4, tiles_x * 32), eight windows in the order 0 2 4 6 1 3 5 7. moments:
// (N, OC, parts), where a part is what one warp has of an image; moments_count() of them are written.
template <int SPLIT, int MT, int R, int WARPS, int BLOCKS, bool WINDOWS>
__global__ void __launch_bounds__(WARPS * WARP, BLOCKS)
statistics_kernel(const float* x, const float* weight, const float* bias, const float* gamma, const float* factor,
                  float* windows, Moments* moments, int parts, Shape s) {
#ifdef TENSOR_CORES
    using OfTile = Tile<SPLIT, R, WARPS>;
    constexpr int SHARES = CHUNK / 16 / MT, MAKERS = WARPS / SHARES, OCTETS = MT == 1 ? 2 : 1;
    constexpr int LOW = OfTile::PIXELS * 16;  // bytes from halves to what they leave
    extern __shared__ uint4 shared[];
    __shared__ float unscale[CHUNK], bias_scaled[CHUNK], shifts[WARPS][MT * 16];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    const int local = warp % SHARES * (MT * 16), maker = warp / SHARES, first = blockIdx.y * CHUNK;
    OfTile tile(shared, x, s);
    Weights<SPLIT, MT> w;
    w.load(weight, bias, gamma, factor, s, first, local, tile.raw, unscale, bias_scaled);
    tile.clear();
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(shared);
    const uint32_t pair = at + (lane / 16 * COLUMNS + lane % 8 + lane / 8 % 2) * 16;
    const uint32_t single = at + (lane / 8 * COLUMNS + lane % 8 + 2) * 16;
    const int PH = s.OH / 4, windows_a_row = s.tiles_x * (WIDE / 4);
    const int mine = first + local + g + 8 * (t % 2);  // the channel of the lane's windows; with m, 16 * m further on

    float from[MT][4], sum[MT][2], squares[MT][2];  // `from` as the accumulators lie
    int count = 0, exponent = 0;
    const int begin = first_tile(s, blockIdx.x), end = first_tile(s, blockIdx.x + 1);
    if (begin < end) tile.start(begin);
    for (int i = begin; i < end; ++i) {
        const bool fresh = tile.ready(i + 1 < end);
        const float up = power_of_two(tile.exponent), down = power_of_two(-tile.exponent);
        if (fresh) {
            // Sums are taken about a pixel's value: a sum of squares about 0 has no correct digit where the mean is
            // large. The first one's, or where it lies far off the fourth to the eighth, the seventh's: an outlier
            // of x reaches three.
            Pixels b;
            b.load(pair, single);
            const float zero[MT][4] = {};
            float acc[1][MT][4];
            product<MT, 1, true>(w.high, b, zero, acc);
#pragma unroll
            for (int m = 0; m < MT; ++m) {
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int c = m * 16 + h * 8 + g;
                    const float b = bias_scaled[local + c] * up;
                    const float first = __shfl_sync(ALL_LANES, acc[0][m][2 * h], lane & ~3);
                    const float other = __shfl_sync(ALL_LANES, acc[0][m][2 * h], lane | 3);
                    float spread = fmaxf(t > 1 ? fabsf(acc[0][m][2 * h] - other) : 0.0f,
                                         t > 0 ? fabsf(acc[0][m][2 * h + 1] - other) : 0.0f);
                    spread = fmaxf(spread, __shfl_xor_sync(ALL_LANES, spread, 1));
                    spread = fmaxf(spread, __shfl_xor_sync(ALL_LANES, spread, 2));
                    const float shift = b + (fabsf(first - other) > 8.0f * spread ? other : first);
                    if (t == 0) shifts[warp][c] = shift * down;
                    from[m][2 * h] = from[m][2 * h + 1] = b - shift;
                    sum[m][h] = squares[m][h] = 0.0f;
                }
            }
            __syncwarp();
            count = 0;
        } else if (tile.exponent != exponent) {
            const float f = exp2f(tile.exponent - exponent);
#pragma unroll
            for (int m = 0; m < MT; ++m) {
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    from[m][2 * h] *= f;
                    from[m][2 * h + 1] *= f;
                    sum[m][h] *= f;
                    squares[m][h] = squares[m][h] * f * f;
                }
            }
        }
        exponent = tile.exponent;

        float* const to = windows + (((int64_t)tile.n * s.OC + mine) * PH + tile.y0 / 4) * windows_a_row + tile.x0 / 4 +
                          t / 2 * 4;
        for (int job = maker; job < R; job += MAKERS) {  // 32 pixels of 4 rows
            const int strip = job / 4, column = (job + strip) % 4 * 32;
            const int rows = min(4, s.OH - tile.y0 - strip * 4), columns = min(32, s.OW - tile.x0 - column);
            if (rows <= 0 || columns <= 0) continue;
            count += rows * columns;
            float best[4][MT];
            const uint32_t offset = (strip * 4 * COLUMNS + column) * 16;
            const auto keep = [&](int j, const float (&of_octet)[MT]) {
#pragma unroll
                for (int m = 0; m < MT; ++m) {
#pragma unroll
                    for (int k = 0; k < 4; ++k) {
                        if (j == k) best[k][m] = of_octet[m];
                    }
                }
            };
            if (rows == 4 && columns == 32) {
#pragma unroll OCTETS
                for (int j = 0; j < 4; ++j) {
                    float acc[4][MT][4], of_octet[MT];
                    convolve<SPLIT, MT, LOW>(w, pair + offset + j * 128, single + offset + j * 128, from, acc);
                    add<MT, WINDOWS>(acc, sum, squares, of_octet);
                    if constexpr (WINDOWS) keep(j, of_octet);
                }
            } else {
                if constexpr (WINDOWS) {
                    const float none[MT] = {};
                    for (int j = 0; j < 4; ++j) keep(j, none);
                }
#pragma unroll 1
                for (int j = 0; j < 4 && j * 8 < columns; ++j) {
                    float acc[4][MT][4], of_octet[MT];
                    convolve<SPLIT, MT, LOW>(w, pair + offset + j * 128, single + offset + j * 128, from, acc);
                    if (rows < 4 || columns < j * 8 + 8) {
#pragma unroll
                        for (int r = 0; r < 4; ++r) {
#pragma unroll
                            for (int m = 0; m < MT; ++m) {
#pragma unroll
                                for (int k = 0; k < 4; ++k) {
                                    if (r >= rows || j * 8 + 2 * t + k % 2 >= columns) acc[r][m][k] = 0.0f;
                                }
                            }
                        }
                    }
                    add<MT, WINDOWS>(acc, sum, squares, of_octet);
                    if constexpr (WINDOWS) keep(j, of_octet);
                }
            }
            if constexpr (WINDOWS) {
                if (rows == 4) {
#pragma unroll
                    for (int m = 0; m < MT; ++m) {
                        if (mine + m * 16 >= s.OC) continue;
                        const int c = m * 16 + g + 8 * (t % 2);
                        const float f = unscale[local + c] * down, o = shifts[warp][c] * unscale[local + c];
                        float* const there = to + ((int64_t)m * 16 * PH + strip) * windows_a_row + column / 4;
                        *reinterpret_cast<float4*>(there) = {fmaf(best[0][m], f, o), fmaf(best[1][m], f, o),
                                                             fmaf(best[2][m], f, o), fmaf(best[3][m], f, o)};
                    }
                }
            }
        }

        if (i + 1 < end && tile.next_n == tile.n) continue;
        const int slot = (blockIdx.x - block_of(s, tile.n * s.tiles_x * s.tiles_y)) * MAKERS + maker;
        const float part = 1.0f / fmaxf((float)count, 1.0f);
#pragma unroll
        for (int m = 0; m < MT; ++m) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float a = sum[m][h], b = squares[m][h];
#pragma unroll
                for (int o = 1; o < 4; o *= 2) {
                    a += __shfl_xor_sync(ALL_LANES, a, o);
                    b += __shfl_xor_sync(ALL_LANES, b, o);
                }
                const int c = m * 16 + h * 8 + g;
                if (t == 0 && first + local + c < s.OC) {
                    const float f = unscale[local + c] * down, off = a * part;
                    moments[((int64_t)tile.n * s.OC + first + local + c) * parts + slot] =
                        {(float)count, fmaf(off, f, shifts[warp][c] * unscale[local + c]), (b - a * off) * f * f};
                }
            }
        }
    }
#endif
}

// Moments a channel that statistics_kernel writes of image n.
__host__ __device__ inline int moments_count(const Shape& s, int n, int makers) {
    const int tiles = s.tiles_x * s.tiles_y;
    return (block_of(s, n * tiles + tiles - 1) - block_of(s, n * tiles) + 1) * makers;
}

// Sums of both over the block, for all its threads. All of them must call it.
template <int THREADS>
__device__ __forceinline__ float2 sums_of_block(float2 v) {
    __shared__ float2 of_warp[THREADS / WARP];
#pragma unroll
    for (int o = WARP / 2; o > 0; o /= 2) {
        v.x += __shfl_xor_sync(ALL_LANES, v.x, o);
        v.y += __shfl_xor_sync(ALL_LANES, v.y, o);
    }
    __syncthreads();  // nobody reads the last call's any more
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = v;
    __syncthreads();  // all warps have written
    v = of_warp[0];
#pragma unroll
    for (int w = 1; w < THREADS / WARP; ++w) v = {v.x + of_warp[w].x, v.y + of_warp[w].y};
    return v;
}

// Mean and 1 / sqrt(variance + eps) of a group: `channels` times `count` moments, those of a channel `parts` after
// those of the one before. Always in the same order. All threads of a block must call it.
template <int THREADS>
__device__ __forceinline__ float2 statistics_of_group(const Moments* moments, int channels, int count, int parts,
                                                      float eps) {
    const float about = moments->mean;  // of some pixels: differences to it are small
    float2 v = {0.0f, 0.0f};
    for (int i = threadIdx.x; i < channels * count; i += THREADS) {
        const Moments m = moments[(int64_t)(i / count) * parts + i % count];
        v.x += m.count;
        v.y += m.count * (m.mean - about);
    }
    v = sums_of_block<THREADS>(v);
    const float all = v.x, mean = about + v.y / all;
    v = {0.0f, 0.0f};
    for (int i = threadIdx.x; i < channels * count; i += THREADS) {
        const Moments m = moments[(int64_t)(i / count) * parts + i % count];
        const float d = m.mean - mean;
        v.x += m.squares + m.count * d * d;
    }
    v = sums_of_block<THREADS>(v);
    const float variance = v.x < 0.0f ? 0.0f : v.x / all;  // fmaxf would hide a NaN
    return {mean, 1.0f / sqrtf(variance + eps)};
}

// windows (N, OC, PH, tiles_x * 32), eight of them in statistics_kernel's order -> y (N, OC, PH, PW): ((v - mean) *
// rstd * gamma + beta) * factor, kept between low and high. One block a group of an image.
__global__ void __launch_bounds__(THREADS)
finish_kernel(const float* windows, const Moments* moments, const float* gamma, const float* beta, const float* factor,
              float* y, int channels_a_group, int parts, int makers, Shape s, float eps, float low, float high) {
    constexpr int BATCH = 4, WARPS = THREADS / WARP;  // rows of windows that a warp reads before it writes
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, groups = s.OC / channels_a_group;
    const int PH = s.OH / 4, PW = s.OW / 4, pitch = s.tiles_x * (WIDE / 4);
    const int first = blockIdx.x % groups * channels_a_group;
    const int64_t plane = (int64_t)blockIdx.x * channels_a_group;
    const float2 of_group = statistics_of_group<THREADS>(
        moments + plane * parts, channels_a_group, moments_count(s, blockIdx.x / groups, makers), parts, eps);
    for (int k = 0; k < channels_a_group; ++k) {
        const int c = first + k;
        const float f = factor[c], a = of_group.y * gamma[c] * f, b = beta[c] * f;
        for (int px = lane; px < PW; px += WARP) {
            const float* from = windows + (plane + k) * (PH * pitch) + (px / 8 * 8 + px % 2 * 4 + px % 8 / 2);
            float* to = y + (plane + k) * (PH * PW) + px;
            for (int row = warp; row < PH; row += WARPS * BATCH) {
                float v[BATCH];
#pragma unroll
                for (int j = 0; j < BATCH; ++j) v[j] = row + j * WARPS < PH ? from[(row + j * WARPS) * pitch] : 0.0f;
#pragma unroll
                for (int j = 0; j < BATCH; ++j) {
                    float u = (v[j] - of_group.x) * a + b;
                    if (u < low) u = low;  // fmaxf would hide a NaN
                    if (u > high) u = high;
                    if (row + j * WARPS < PH) to[(row + j * WARPS) * PW] = u;
                }
            }
        }
    }
}

// ---- any shape, any GPU: step 4's kernels ----

namespace general {

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

// Moments of both together (Chan, Golub and LeVeque, 1979).
__device__ Moments merged(const Moments& a, const Moments& b) {
    const float count = a.count + b.count;
    if (count == 0.0f) return a;
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

// x, weight, bias -> moments (N, OC, parts): of each warp's pixels, for every channel, with a part for each warp of a
// tile; and from each window of POOL x POOL pixels the one that will be largest in the end, to y (N, OC, PH, PW).
// POOL = 0: all pixels, to y (N, OC, OH, OW). A block makes one tile in every channel.
//
// ((v - mean) * rstd * gn_weight + gn_bias) * scale rises with v where gn_weight and scale have one sign, and falls
// where they have two, rounded or not: its maximum is at the largest v of the window, or at the smallest. A NaN, which
// fmaxf hides, comes out all the same: it makes the group's mean one.
template <int K, int POOL>
__global__ void __launch_bounds__(TILE_X * WARPS)
conv2d_windows_kernel(const float* x, const float* weight, const float* bias, const float* gn_weight,
                      const float* scale, float* y, Moments* moments, Shape s) {
    // blockIdx.x counts tiles: along the image, down the image, then from image to image.
    const int x0 = blockIdx.x % s.tiles_x * TILE_X, y0 = blockIdx.x / s.tiles_x % s.tiles_y * TILE_Y;
    const int64_t n = blockIdx.x / s.tiles_x / s.tiles_y;
    const int ox = x0 + threadIdx.x, oy = y0 + threadIdx.y * DOWN;  // the thread's first pixel
    bool inside[DOWN];  // which of the thread's pixels the image has
#pragma unroll
    for (int d = 0; d < DOWN; ++d) inside[d] = ox < s.OW && oy + d < s.OH;
    const float count = max(0, min(DOWN, s.OH - oy)) * min(TILE_X, s.OW - x0);  // of the warp's pixels
    const float part = 1.0f / fmaxf(count, 1.0f);
    const int parts = s.tiles_x * s.tiles_y * WARPS;
    // Of y: rows and columns that fill no window are left out.
    const int rows = POOL ? s.OH / max(POOL, 1) : s.OH, columns = POOL ? s.OW / max(POOL, 1) : s.OW;
    x += n * s.C * s.H * s.W;
    y += n * s.OC * rows * columns;
    moments += n * s.OC * parts + blockIdx.x % (s.tiles_x * s.tiles_y) * WARPS + threadIdx.y;

    for (int first = 0; first < s.OC; first += OUT) {
        float sum[DOWN][OUT];
        convolve<K>(x, weight, bias, s, y0, x0, first, sum);
#pragma unroll
        for (int o = 0; o < OUT; ++o) {
            if (first + o >= s.OC) break;
            const Moments m = moments_of_warp(sum, o, inside, count, part);
            if (threadIdx.x == 0) *moments = m;
            if constexpr (POOL == 0) {
#pragma unroll
                for (int d = 0; d < DOWN; ++d) {
                    if (inside[d]) y[(int64_t)(oy + d) * columns + ox] = sum[d][o];
                }
            } else {
                const float sign = (gn_weight[first + o] < 0.0f) != (scale[first + o] < 0.0f) ? -1.0f : 1.0f;
#pragma unroll
                for (int d = 0; d < DOWN; d += POOL) {
                    float best = sign * sum[d][o];
#pragma unroll
                    for (int i = 1; i < POOL; ++i) best = fmaxf(best, sign * sum[d + i][o]);
#pragma unroll
                    for (int i = 1; i < POOL; i *= 2) best = fmaxf(best, __shfl_xor_sync(ALL_LANES, best, i));
                    const int py = (oy + d) / POOL, px = ox / POOL;
                    if (ox % POOL == 0 && py < rows && px < columns) y[(int64_t)py * columns + px] = sign * best;
                }
            }
            moments += parts;  // of the next channel
            y += (int64_t)rows * columns;
        }
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

// v (N, C, H, W) -> y (N, C, PH, PW), `total` elements, one a thread: the maximum over a pool x pool window of
// ((v - mean) * rstd * gn_weight + gn_bias) * scale, kept between clamp_min and clamp_max.
__global__ void norm_scale_maxpool_clamp_kernel(const float* v, const float* mean, const float* rstd,
                                                const float* gn_weight, const float* gn_bias, const float* scale,
                                                float* y, int64_t total, int C, int channels_a_group, int H, int W,
                                                int pool, int PH, int PW, float clamp_min, float clamp_max) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
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
}

// y = ((y - mean) * rstd * gn_weight + gn_bias) * scale, kept between clamp_min and clamp_max, in place, for y (N, C,
// windows). A block's threads walk over one plane; blockIdx.x is n * C + c.
__global__ void norm_scale_clamp_kernel(float* y, const float* mean, const float* rstd, const float* gn_weight,
                                        const float* gn_bias, const float* scale, int C, int channels_a_group,
                                        int64_t windows, float clamp_min, float clamp_max) {
    const int c = blockIdx.x % C;
    const int group = blockIdx.x / channels_a_group;  // over all images, as C is a whole number of groups
    const float m = mean[group], r = rstd[group], w = gn_weight[c], b = gn_bias[c], s = scale[c];
    y += blockIdx.x * windows;
    for (int64_t p = threadIdx.x; p < windows; p += THREADS) {
        float v = ((y[p] - m) * r * w + b) * s;
        if (v < clamp_min) v = clamp_min;
        if (v > clamp_max) v = clamp_max;
        y[p] = v;
    }
}

}  // namespace general

// ---- launches ----

struct Plan {
    bool tensor_cores, stored;  // stored: the convolution's result goes through memory
    int64_t parts, floats;      // moments a channel; floats of workspace that a launch needs
    int64_t tiles_x, tiles_y, blocks;
};

// Blocks of statistics_kernel that the GPU holds at a time; 0 where it cannot run or was not compiled for tensor cores.
static int64_t resident_blocks() {
    static struct { int multiprocessors, major; int64_t blocks; } known[16];  // asking takes longer than launching
    const auto kernel = statistics_kernel<SPLIT, TALL, ROWS, WARPS, BLOCKS, true>;
    int device = 0, multiprocessors = 0, major = 0, blocks = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    auto& k = known[device % 16];
    if (device < 16 && k.multiprocessors == multiprocessors && k.major == major) return k.blocks;
    cudaFuncAttributes attributes = {};
    const int bytes = tile_bytes(SPLIT, ROWS);
    if (major < 8 || cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess || attributes.ptxVersion < 80 ||
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) != cudaSuccess ||
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, WARPS * WARP, bytes) != cudaSuccess) {
        cudaGetLastError();  // that a GPU has too little shared memory is no error here
        blocks = 0;
    }
    k = {multiprocessors, major, (int64_t)blocks * multiprocessors};
    return k.blocks;
}

static Plan plan(int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC, int64_t KH, int64_t KW, int64_t groups,
                 int64_t pool) {
    Plan p = {};
    const int64_t OH = H - KH + 1, OW = W - KW + 1, PH = OH / pool;
    if (C <= IN && KH == 3 && KW == 3 && pool == 4) {
        const int64_t resident = resident_blocks();
        p.tiles_x = (OW + WIDE - 1) / WIDE;
        p.tiles_y = (OH + ROWS - 1) / ROWS;
        const int64_t of_image = p.tiles_x * p.tiles_y, tiles = N * of_image;
        if (resident > 0 && tiles < INT_MAX && N * OC < INT_MAX && OC <= 65535 * CHUNK &&
            PH * p.tiles_x * (WIDE / 4) < INT_MAX) {
            p.tensor_cores = true;
            p.blocks = std::min(tiles, resident);
            p.parts = std::min(of_image, of_image * p.blocks / tiles + 2) * (WARPS * TALL * 16 / CHUNK);
            p.floats = N * OC * (PH * p.tiles_x * (WIDE / 4) + 3 * p.parts);
            return p;
        }
    }
    p.tiles_x = (OW + general::TILE_X - 1) / general::TILE_X;
    p.tiles_y = (OH + general::TILE_Y - 1) / general::TILE_Y;
    p.parts = p.tiles_x * p.tiles_y * general::WARPS;
    p.stored = KH != 3 || KW != 3 || (pool != 1 && pool != 2 && pool != 4);
    p.floats = 3 * N * OC * p.parts + 2 * N * groups + (p.stored ? N * OC * OH * OW : 0);
    return p;
}

// Floats of workspace that a launch needs.
int64_t conv_groupnorm_maxpool_workspace(int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC, int64_t KH, int64_t KW,
                                         int64_t groups, int64_t pool) {
    return plan(N, C, H, W, OC, KH, KW, groups, pool).floats;
}

// Returns what went wrong, or null. Every tensor is contiguous, the workspace aligned to 16 bytes, y not empty.
const char* conv_groupnorm_maxpool_launch(const float* x, const float* conv_weight, const float* conv_bias,
                                          const float* gn_weight, const float* gn_bias, const float* scale, float* y,
                                          float* workspace, int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC,
                                          int64_t KH, int64_t KW, int64_t groups, double eps, int64_t pool,
                                          double clamp_min, double clamp_max, void* stream_of_torch) {
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of_torch);
    const int64_t OH = H - KH + 1, OW = W - KW + 1, PH = OH / pool, PW = OW / pool;
    const Plan p = plan(N, C, H, W, OC, KH, KW, groups, pool);
    if (p.tensor_cores) {
        const Shape s = {(int)C, (int)H, (int)W, (int)OC, (int)OH, (int)OW, (int)p.tiles_x, (int)p.tiles_y,
                         (int)(N * p.tiles_x * p.tiles_y), (int)p.blocks};
        Moments* moments = reinterpret_cast<Moments*>(workspace + N * OC * PH * p.tiles_x * (WIDE / 4));
        statistics_kernel<SPLIT, TALL, ROWS, WARPS, BLOCKS, true>
            <<<dim3(p.blocks, (OC + CHUNK - 1) / CHUNK), WARPS * WARP, tile_bytes(SPLIT, ROWS), stream>>>(
                x, conv_weight, conv_bias, gn_weight, scale, workspace, moments, p.parts, s);
        finish_kernel<<<N * groups, THREADS, 0, stream>>>(
            workspace, moments, gn_weight, gn_bias, scale, y, OC / groups, p.parts, WARPS * TALL * 16 / CHUNK, s, eps,
            clamp_min, clamp_max);
    } else {
        if (N * p.tiles_x * p.tiles_y > INT_MAX) return "the output has more than 2^31 - 1 tiles";
        const general::Shape s = {(int)C, (int)H, (int)W, (int)OC, (int)KH, (int)KW, (int)OH, (int)OW, (int)p.tiles_x,
                                  (int)p.tiles_y};
        Moments* moments = reinterpret_cast<Moments*>(workspace);
        float *mean = workspace + 3 * N * OC * p.parts, *rstd = mean + N * groups;
        float* v = p.stored ? rstd + N * groups : y;
        // Windows that divide a thread's pixels and a warp's are made at once; all others need v.
        const auto kernel = KH != 3 || KW != 3 ? general::conv2d_windows_kernel<0, 0>
                            : pool == 1        ? general::conv2d_windows_kernel<3, 1>
                            : pool == 2        ? general::conv2d_windows_kernel<3, 2>
                            : pool == 4        ? general::conv2d_windows_kernel<3, 4>
                                               : general::conv2d_windows_kernel<3, 0>;
        kernel<<<N * p.tiles_y * p.tiles_x, dim3(general::TILE_X, general::WARPS), 0, stream>>>(
            x, conv_weight, conv_bias, gn_weight, scale, v, moments, s);
        general::merge_kernel<<<N * groups, THREADS, 0, stream>>>(moments, mean, rstd, OC / groups * p.parts, eps);
        const int64_t total = N * OC * PH * PW, blocks = (total + THREADS - 1) / THREADS;
        if (blocks > INT_MAX) return "the output has more elements than a grid has threads";
        if (p.stored) {
            general::norm_scale_maxpool_clamp_kernel<<<blocks, THREADS, 0, stream>>>(
                v, mean, rstd, gn_weight, gn_bias, scale, y, total, OC, OC / groups, OH, OW, pool, PH, PW, clamp_min,
                clamp_max);
        } else {
            general::norm_scale_clamp_kernel<<<N * OC, THREADS, 0, stream>>>(
                y, mean, rstd, gn_weight, gn_bias, scale, OC, OC / groups, PH * PW, clamp_min, clamp_max);
        }
    }
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""

kernels = load_inline(
    name="conv_groupnorm_maxpool_fp32",
    cpp_sources=(binding_headers if torch.cuda.is_available() else "") + cpp_source,
    cuda_sources=cuda_source,
    functions=["conv_groupnorm_maxpool_forward"],
    extra_cuda_cflags=["-O3"],
    no_implicit_headers=True,
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
            x, self.conv.weight, self.conv.bias, gn.weight, gn.bias, self.scale,
            gn.num_groups, gn.eps, self.pool, self.clamp_min, self.clamp_max,
        )
