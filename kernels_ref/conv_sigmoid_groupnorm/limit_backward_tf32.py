"""conv_sigmoid_groupnorm with its backward at the hardware's limit, tf32 class.

Forward is limit.py's, and keeps x and each group's mean and rstd. Backward, too, keeps the image that is being made on
the chip. Blocks of two rows each read x and gy once, make the sigmoids anew, and hold them in registers and gy in
shared memory while they tell each other their parts of the two means that GroupNorm's gradient needs. Then gy makes
room for the gradient of what the sigmoid was taken of, and from there both gx and gconv_weight are products on tensor
cores: nothing of the result's size is written. Tensor cores work on halves, which have TF32's 11 bits. For the formulas
see backward.py.

Where an image does not fit, or its rows do not lie well, the convolution runs twice, and its result's gradient is
written once and read twice. Every other shape, and every GPU before compute capability 8.0, has simple kernels.
benchmarks/data/bench.json has the times.

Halves are scaled by the largest value around, beside which others could lose their digits. Where that is so, around an
outlier, sums are made in double from global memory, slowly.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

PRECISION = "tf32"  # the class it is held to: as exact as eager where TF32 is allowed

cpp_source = r"""
#include <climits>
#include <vector>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
// What torch/extension.h has of use here: it takes half the time.
#include <torch/types.h>
#if __has_include(<Python.h>)
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#endif

// From the CUDA source, which sees no header of torch: that is what makes it quick to compile.
int64_t conv_sigmoid_groupnorm_workspace(int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC, int64_t KH, int64_t KW,
                                         int64_t groups);
const char* conv_sigmoid_groupnorm_launch(const float* x, const float* conv_weight, const float* conv_bias,
                                          const float* bias, const float* scale, const float* gn_weight,
                                          const float* gn_bias, float* y, float* means, float* workspace, int64_t N,
                                          int64_t C, int64_t H, int64_t W, int64_t OC, int64_t KH, int64_t KW,
                                          int64_t groups, double eps, void* stream);
int64_t conv_sigmoid_groupnorm_backward_workspace(int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC, int64_t KH,
                                                  int64_t KW, int64_t groups, bool sixteens);
const char* conv_sigmoid_groupnorm_backward_launch(
    const float* x, const float* gy, const float* weight, const float* conv_bias, const float* bias, const float* scale,
    const float* gn_weight, const float* means, float* gx, float* gweight, float* gconv_bias, float* gscale,
    float* ggn_weight, float* ggn_bias, float* workspace, int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC,
    int64_t KH, int64_t KW, int64_t groups, bool sixteens, void* stream);

// The kernels read bare memory: refuse a tensor that is not what they take it for.
static void check(const torch::Tensor& t, const char* name, int64_t dims, const torch::Device& device) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.device() == device, name, " is on ", t.device(), ", x on ", device, ": move both to one GPU");
    TORCH_CHECK(t.scalar_type() == torch::kFloat32, name, " is ", t.scalar_type(), ", not float32: use .float()");
    TORCH_CHECK(t.dim() == dims, name, " has ", t.dim(), " dimensions instead of ", dims);
    for (int64_t size : t.sizes()) TORCH_CHECK(size <= INT_MAX, name, " has a side longer than 2^31 - 1");
}

static void* stream() {
    return static_cast<void*>(c10::cuda::getCurrentCUDAStream().stream());
}

// y, and (N, groups, 2): each group's mean and rstd.
std::vector<torch::Tensor> conv_sigmoid_groupnorm_forward(torch::Tensor x, torch::Tensor conv_weight,
                                                          torch::Tensor conv_bias, torch::Tensor bias,
                                                          torch::Tensor scale, torch::Tensor gn_weight,
                                                          torch::Tensor gn_bias, int64_t groups, double eps) {
    check(x, "x", 4, x.device());
    check(conv_weight, "the convolution's weight", 4, x.device());
    check(conv_bias, "the convolution's bias", 1, x.device());
    check(gn_weight, "the normalisation's weight", 1, x.device());
    check(gn_bias, "the normalisation's bias", 1, x.device());
    check(bias, "bias", 3, x.device());
    check(scale, "scale", 3, x.device());
    const int64_t N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
    const int64_t OC = conv_weight.size(0), KH = conv_weight.size(2), KW = conv_weight.size(3);
    TORCH_CHECK(conv_weight.size(1) == C, "x has ", C, " channels, the weight is for ", conv_weight.size(1));
    TORCH_CHECK(H >= KH && W >= KW, "the image (", H, " x ", W, ") is smaller than the kernel (", KH, " x ", KW, ")");
    TORCH_CHECK(bias.sizes() == torch::IntArrayRef({OC, 1, 1}), "bias must be (", OC, ", 1, 1), not ", bias.sizes());
    TORCH_CHECK(scale.sizes() == torch::IntArrayRef({OC, 1, 1}), "scale must be (", OC, ", 1, 1), not ", scale.sizes());
    TORCH_CHECK(conv_bias.size(0) == OC && gn_weight.size(0) == OC && gn_bias.size(0) == OC,
                "every bias and weight needs one element for each of ", OC, " output channels");
    TORCH_CHECK(groups > 0 && OC % groups == 0, OC, " channels cannot be cut into ", groups, " equal groups");
    TORCH_CHECK(N * OC <= INT_MAX, "the output has more than 2^31 - 1 planes (images times channels)");
    x = x.contiguous();
    conv_weight = conv_weight.contiguous();
    conv_bias = conv_bias.contiguous();
    gn_weight = gn_weight.contiguous();
    gn_bias = gn_bias.contiguous();
    bias = bias.contiguous();
    scale = scale.contiguous();

    const c10::cuda::CUDAGuard guard(x.device());
    torch::Tensor y = torch::empty({N, OC, H - KH + 1, W - KW + 1}, x.options());
    torch::Tensor means = torch::empty({N, groups, 2}, x.options());
    if (y.numel() == 0) return {y, means};  // a grid of no blocks is a launch error
    const int64_t floats = conv_sigmoid_groupnorm_workspace(N, C, H, W, OC, KH, KW, groups);
    torch::Tensor workspace = torch::empty({floats}, x.options());
    const char* error = conv_sigmoid_groupnorm_launch(
        x.data_ptr<float>(), conv_weight.data_ptr<float>(), conv_bias.data_ptr<float>(), bias.data_ptr<float>(),
        scale.data_ptr<float>(), gn_weight.data_ptr<float>(), gn_bias.data_ptr<float>(), y.data_ptr<float>(),
        means.data_ptr<float>(), workspace.data_ptr<float>(), N, C, H, W, OC, KH, KW, groups, eps, stream());
    TORCH_CHECK(error == nullptr, "conv_sigmoid_groupnorm: ", error);
    return {y, means};
}

// x to gn_weight as forward took them, means from there -> the gradients of x and conv_weight (if they are needed), of
// conv_bias, which is that of bias, too, of scale, gn_weight and gn_bias.
std::vector<torch::Tensor> conv_sigmoid_groupnorm_backward(torch::Tensor gy, torch::Tensor x, torch::Tensor means,
                                                           torch::Tensor conv_weight, torch::Tensor conv_bias,
                                                           torch::Tensor bias, torch::Tensor scale,
                                                           torch::Tensor gn_weight, bool need_x, bool need_weight) {
    check(gy, "gy", 4, x.device());
    const int64_t N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3), groups = means.size(1);
    const int64_t OC = conv_weight.size(0), KH = conv_weight.size(2), KW = conv_weight.size(3);
    gy = gy.contiguous();  // sum().backward() sends one number with strides of 0
    x = x.contiguous();
    conv_weight = conv_weight.contiguous();
    conv_bias = conv_bias.contiguous();
    bias = bias.contiguous();
    scale = scale.contiguous();
    gn_weight = gn_weight.contiguous();

    const c10::cuda::CUDAGuard guard(x.device());
    const auto made = [&](torch::IntArrayRef sizes) {
        return gy.numel() == 0 ? torch::zeros(sizes, x.options()) : torch::empty(sizes, x.options());
    };
    torch::Tensor gx = need_x ? made(x.sizes()) : torch::Tensor();
    torch::Tensor gweight = need_weight ? made(conv_weight.sizes()) : torch::Tensor();
    torch::Tensor gconv_bias = made({OC}), gscale = made({OC, 1, 1}), ggn_weight = made({OC}), ggn_bias = made({OC});
    if (gy.numel() > 0) {
        const auto begins = [](const torch::Tensor& t) { return reinterpret_cast<uintptr_t>(t.data_ptr()); };
        const bool sixteens = (begins(x) | begins(gy)) % 16 == 0;  // they may be views
        const int64_t floats =
            conv_sigmoid_groupnorm_backward_workspace(N, C, H, W, OC, KH, KW, groups, sixteens);
        torch::Tensor workspace = torch::empty({floats}, x.options());
        const char* error = conv_sigmoid_groupnorm_backward_launch(
            x.data_ptr<float>(), gy.data_ptr<float>(), conv_weight.data_ptr<float>(), conv_bias.data_ptr<float>(),
            bias.data_ptr<float>(), scale.data_ptr<float>(), gn_weight.data_ptr<float>(), means.data_ptr<float>(),
            need_x ? gx.data_ptr<float>() : nullptr, need_weight ? gweight.data_ptr<float>() : nullptr,
            gconv_bias.data_ptr<float>(), gscale.data_ptr<float>(), ggn_weight.data_ptr<float>(),
            ggn_bias.data_ptr<float>(), workspace.data_ptr<float>(), N, C, H, W, OC, KH, KW, groups, sixteens,
            stream());
        TORCH_CHECK(error == nullptr, "conv_sigmoid_groupnorm, backward: ", error);
    }
    return {gx, gweight, gconv_bias, gscale, ggn_weight, ggn_bias};
}
"""

cuda_source = r"""
#include <algorithm>
#include <climits>
#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// ---- tensor cores: 8 channels, a 3x3 kernel, 32 channels ----

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define TENSOR_CORES
#endif

constexpr int SPLIT = 1;                        // products of halves for one of floats
constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffff;
constexpr int IN = 8, OUT = 32, TAPS = 9;         // channels of x and of y, weights of one of both
constexpr int WARPS = 8, THREADS = WARPS * WARP;  // a block
constexpr int TALL = 1, WIDE = 4;               // at a time a warp makes TALL * 16 channels of WIDE * 8 pixels
constexpr int ROWS = 2, COLUMNS = 254;            // pixels that a block makes at a time: a strip ...
constexpr int X_ROWS = ROWS + 2, X_ROW = 256;     // ... and those of x that it reads
constexpr int SEGMENTS = WARPS * TALL * 16 / OUT; // of a strip: what a warp makes ...
constexpr int SEGMENT = ROWS * X_ROW / SEGMENTS;  // ... with so many pixels in a row
constexpr int QUAD = 4, QUADS = OUT / QUAD;       // channels that are told of together
constexpr int MINE = OUT / WARPS;                 // channels that a warp normalises
constexpr int HEIGHT = X_ROWS * X_ROW / THREADS;  // pixels of x that a thread brings
// Bytes from the upper to the lower halves: all pixels of x, and two that are only read for results that nobody keeps.
constexpr int LOW = (X_ROWS * X_ROW + 2) * IN * 2;
// Floats from a row of sigmoids to the next, and from a channel to the next: 8 channels by 4 pairs lie in all banks.
constexpr int S_ROW = 260, S_CHANNEL = ROWS * S_ROW;
constexpr int VECTORS = 4;                        // float4 of a channel's strip that a lane has
static_assert(VECTORS * WARP * 4 >= ROWS * COLUMNS, "a warp reads a channel's strip in VECTORS steps");

struct Shape {
    int N, H, W, OH, OW, groups, tiles_x, tiles_y;
};

struct Shared {
    uint4 x[2 * LOW / 16];              // 8 halves a pixel: upper, then lower ones; before that, floats as they come
    float sigmoid[OUT * S_CHANNEL];
    float2 moments[OUT][SEGMENTS];      // mean and squared deviations of a segment's pixels
    float2 line[OUT];                   // factor and offset from a channel's sum to the exponent of its sigmoid
    float warp_max[WARPS];
    float reach;                        // of the weights
};

__device__ __forceinline__ float power_of_two(int e) {
    return __int_as_float((e + 127) << 23);
}

// Whether numbers up to `largest` can be scaled into halves, which reach from 2^-24 to 2^16. 2^one: what is to be 1
// there, so that the largest is 2^14 to 2^15.
__device__ __forceinline__ bool fits_halves(float largest, int& e) {
    e = (int)(__float_as_uint(largest) >> 23) - 127 - 14;
    if (largest == 0.0f) e = 0;
    return e >= -64 && e <= 36;  // infinity is none
}

// Halves cut small values off at 2^-39 of a tile's largest, small weights at 2^-39 of a channel's. The 72 products of a
// sum are off by 144 * 2^-39 * largest * reach then, at most: up to ENOUGH it is 2^-22 in a sigmoid's exponent, as a
// rule a tenth of it, less than float32 itself is off by. reach: see find_reach.
constexpr float ENOUGH = 512.0f;

// Beyond that, halves still do where no pixel is less than LEAST of the largest, but 0: what they cut off is then less
// than float32 rounds. Beside an outlier it is more.
constexpr float LEAST = 1.0f / 65536.0f;

__device__ __forceinline__ bool may_cut(float largest, float value) {
    return value != 0.0f && !(value >= largest * LEAST);
}

// Two floats as two half2: the nearest halves, and the nearest to what is left.
__device__ __forceinline__ void split(float a, float b, unsigned& high, unsigned& low) {
    const __half2 h = __floats2half2_rn(a, b);
    const float2 f = __half22float2(h);
    const __half2 l = __floats2half2_rn(a - f.x, b - f.y);
    high = *reinterpret_cast<const unsigned*>(&h);
    low = *reinterpret_cast<const unsigned*>(&l);
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2) v += __shfl_xor_sync(ALL_LANES, v, offset);
    return v;
}

// The largest weight times scale -> shared.reach, for all to read after the next barrier.
template <typename Memory>
__device__ __forceinline__ void find_reach(const float* weight, const float* scale, Memory& shared) {
    float reach = 0.0f;
#pragma unroll
    for (int i = 0; i < OUT * IN * TAPS / THREADS; ++i) {
        const int k = i * THREADS + threadIdx.x;
        reach = fmaxf(reach, fabsf(weight[k] * scale[k / (IN * TAPS)]));
    }
#pragma unroll
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        reach = fmaxf(reach, __shfl_xor_sync(ALL_LANES, reach, offset));
    }
    if (threadIdx.x % WARP == 0) shared.warp_max[threadIdx.x / WARP] = reach;
    __syncthreads();  // every warp's is there
#pragma unroll
    for (int warp = 0; warp < WARPS; ++warp) reach = fmaxf(reach, shared.warp_max[warp]);
    __syncthreads();  // all have read
    if (threadIdx.x == 0) shared.reach = reach;
}

#ifdef TENSOR_CORES
__device__ __forceinline__ void load_matrices(unsigned (&m)[4], unsigned at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(at));
}

// sums (16 channels, 8 pixels) = weights (16, 16) times x (16, 8)
__device__ __forceinline__ void multiply_first(float (&sum)[4], const unsigned (&w)[4], unsigned x0, unsigned x1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
                 : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
                 : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(x0), "r"(x1), "f"(0.0f));
}

// sums (16 channels, 8 pixels) += weights (16, 16) times x (16, 8)
__device__ __forceinline__ void multiply(float (&sum)[4], const unsigned (&w)[4], unsigned x0, unsigned x1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(x0), "r"(x1));
}

// sums (16, 8) += weights (16, 8) times x (8, 8)
__device__ __forceinline__ void multiply(float (&sum)[4], const unsigned (&w)[2], unsigned x) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(w[0]), "r"(w[1]), "r"(x));
}

// 1 / (1 + 2^z). 2^z may be infinity: the 0 that is then meant comes out.
__device__ __forceinline__ float sigmoid_of_exponent(float z) {
    float power, result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(z));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(1.0f + power));
    return result;
}

// All weights, spread over a warp's lanes as mma wants them, for as long as the warp lives. Lane 4 g + t has channels
// g + 8 i of y and 2 t, 2 t + 1 of x. Four steps take two taps each, (0, 3), (1, 4), (2, 5) and (6, 7); a short one, 8.
struct Weights {
    unsigned high[4][TALL][4], last_high[TALL][2];
    unsigned low[SPLIT == 3 ? 4 : 1][TALL][4], last_low[TALL][2];
    bool fit;  // halves have room for them

    // PLAIN: line is for the sum itself, not for its sigmoid's exponent.
    template <bool PLAIN>
    __device__ __forceinline__ void load(const float* weight, const float* conv_bias, const float* bias,
                                         const float* scale, int first, float2* line) {
        const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
        fit = true;
#pragma unroll
        for (int i = 0; i < 2 * TALL; ++i) {
            const int o = first + g + 8 * i;
            float w[2][TAPS], largest = 0.0f;
#pragma unroll
            for (int k = 0; k < 2 * TAPS; ++k) {
                w[k / TAPS][k % TAPS] = weight[(o * IN + 2 * t) * TAPS + k];
                largest = fmaxf(largest, fabsf(w[k / TAPS][k % TAPS]));
            }
            largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, 1));
            largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, 2));
            int one;
            const bool fits = fits_halves(largest, one);
            fit = fit && fits;
            const float factor = PLAIN ? 1.0f : -1.4426950408889634f * scale[o];  // 2^(log2(e) v) = e^v
            if (threadIdx.x / WARP % SEGMENTS == 0 && t == 0) {
                line[o] = make_float2(fits ? factor * power_of_two(one) : 0.0f, (conv_bias[o] + bias[o]) * factor);
            }
            const float unit = fits ? power_of_two(-one) : 0.0f;
            unsigned h[TAPS], l[TAPS];
#pragma unroll
            for (int k = 0; k < TAPS; ++k) split(w[0][k] * unit, w[1][k] * unit, h[k], l[k]);
#pragma unroll
            for (int s = 0; s < 4; ++s) {
                const int a = s < 3 ? s : 6, b = s < 3 ? s + 3 : 7;
                high[s][i / 2][i % 2] = h[a];
                high[s][i / 2][2 + i % 2] = h[b];
                if (SPLIT == 3) {
                    low[s][i / 2][i % 2] = l[a];
                    low[s][i / 2][2 + i % 2] = l[b];
                }
            }
            last_high[i / 2][i % 2] = h[8];
            last_low[i / 2][i % 2] = l[8];
        }
        fit = __all_sync(ALL_LANES, fit);
    }
};

// Pixels below each other in x, of all channels.
struct Column {
    float value[HEIGHT][IN];

    __device__ __forceinline__ static int row() { return threadIdx.x / X_ROW * HEIGHT; }
    __device__ __forceinline__ static int column() { return threadIdx.x % X_ROW; }

    // From the image at x, whose pixel at (y0, x0) is the tile's first; 0 where it ends.
    __device__ __forceinline__ void load(const float* x, const Shape& s, int y0, int x0) {
        const int y = y0 + row(), first = x0 + column();
        const float* at = x + (size_t)y * s.W + first;
#pragma unroll
        for (int r = 0; r < HEIGHT; ++r) {
            const bool inside = y + r < s.H && first < s.W;
#pragma unroll
            for (int c = 0; c < IN; ++c) value[r][c] = inside ? __ldg(at + ((size_t)c * s.H + r) * s.W) : 0.0f;
        }
    }

    // From what start_copy brought: X_ROWS whole rows of each channel, one after another. Anything where they end.
    __device__ __forceinline__ void load(const float* copied, const Shape& s) {
        const float* at = copied + row() * s.W + column();
#pragma unroll
        for (int r = 0; r < HEIGHT; ++r)
#pragma unroll
            for (int c = 0; c < IN; ++c) value[r][c] = at[c * X_ROWS * X_ROW + r * s.W];
    }

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < HEIGHT * IN; ++i) value[i / IN][i % IN] = 0.0f;
    }

    // Leaves the warp's largest magnitude in shared.warp_max. exists: false for pixels that nobody needs.
    template <typename Memory>
    __device__ __forceinline__ void measure(Memory& shared, bool exists = true) const {
        float largest = 0.0f;  // of all but NaN, which is NaN in halves as well
#pragma unroll
        for (int i = 0; i < HEIGHT * IN; ++i) largest = fmaxf(largest, fabsf(value[i / IN][i % IN]));
        largest = __uint_as_float(__reduce_max_sync(ALL_LANES, exists ? __float_as_uint(largest) : 0u));
        if (threadIdx.x % WARP == 0) shared.warp_max[threadIdx.x / WARP] = largest;
    }

    // Whether a result may see nothing in this column but what halves of such a tile cut off.
    __device__ __forceinline__ bool cut(float largest) const {
        static_assert(HEIGHT == 4 && ROWS == 2, "a thread has what two results see");
        float of_row[HEIGHT] = {};
#pragma unroll
        for (int i = 0; i < HEIGHT * IN; ++i) of_row[i / IN] = fmaxf(of_row[i / IN], fabsf(value[i / IN][i % IN]));
        const float both = fmaxf(of_row[1], of_row[2]);
        return may_cut(largest, fmaxf(of_row[0], both)) || may_cut(largest, fmaxf(both, of_row[3]));
    }

    // Every thread's pixels -> halves, when all have measured. BOTH: also the lower ones. Returns whether they have
    // room for the tile and keep its digits. 2^one: what they count in. reach: of the weights.
    template <bool BOTH, typename Memory>
    __device__ __forceinline__ bool store(Memory& shared, int& one, float reach, bool exists = true) const {
        float largest = 0.0f;
#pragma unroll
        for (int warp = 0; warp < WARPS; ++warp) largest = fmaxf(largest, shared.warp_max[warp]);
        if (!fits_halves(largest, one)) return false;
        if (!(largest * reach <= ENOUGH) && __syncthreads_or(exists && cut(largest))) return false;
        const float unit = power_of_two(-one);
        uint4* to = shared.x + row() * X_ROW + column();
#pragma unroll
        for (int r = 0; r < HEIGHT; ++r) {
            uint4 high, low;
            split(value[r][0] * unit, value[r][1] * unit, high.x, low.x);
            split(value[r][2] * unit, value[r][3] * unit, high.y, low.y);
            split(value[r][4] * unit, value[r][5] * unit, high.z, low.z);
            split(value[r][6] * unit, value[r][7] * unit, high.w, low.w);
            to[r * X_ROW] = high;
            if (BOTH) to[LOW / 16 + r * X_ROW] = low;
        }
        return true;
    }
};

// The sums of a warp's channels at 8 * WIDE pixels. at: this lane's rows of the matrices for two taps below each other,
// two beside each other, and the last tap.
__device__ __forceinline__ void convolve(const Weights& w, const unsigned (&at)[3], int offset,
                                         float (&sum)[TALL][WIDE][4]) {
#pragma unroll
    for (int s = 0; s < 4; ++s) {
        unsigned high[WIDE / 2][4];  // 8 pixels of both taps, then 8 more
        const unsigned from = (s < 3 ? at[0] + s * 16 : at[1]) + offset;
#pragma unroll
        for (int i = 0; i < WIDE / 2; ++i) load_matrices(high[i], from + i * 256);
        if constexpr (SPLIT == 3) {  // the small products first; low times low is too small to count
            unsigned low[WIDE / 2][4];
#pragma unroll
            for (int i = 0; i < WIDE / 2; ++i) load_matrices(low[i], from + i * 256 + LOW);
#pragma unroll
            for (int i = 0; i < TALL * WIDE; ++i) {
                const int m = i / WIDE, n = i % WIDE;
                if (s == 0) multiply_first(sum[m][n], w.low[s][m], high[n / 2][n % 2 * 2], high[n / 2][n % 2 * 2 + 1]);
                else multiply(sum[m][n], w.low[s][m], high[n / 2][n % 2 * 2], high[n / 2][n % 2 * 2 + 1]);
            }
#pragma unroll
            for (int i = 0; i < TALL * WIDE; ++i) {
                const int m = i / WIDE, n = i % WIDE;
                multiply(sum[m][n], w.high[s][m], low[n / 2][n % 2 * 2], low[n / 2][n % 2 * 2 + 1]);
            }
        }
#pragma unroll
        for (int i = 0; i < TALL * WIDE; ++i) {
            const int m = i / WIDE, n = i % WIDE;
            const unsigned x0 = high[n / 2][n % 2 * 2], x1 = high[n / 2][n % 2 * 2 + 1];
            if (SPLIT == 1 && s == 0) multiply_first(sum[m][n], w.high[s][m], x0, x1);
            else multiply(sum[m][n], w.high[s][m], x0, x1);
        }
    }
    unsigned last[WIDE / 2][4];  // 8 pixels' upper halves, 8 more, and their lower halves
#pragma unroll
    for (int i = 0; i < WIDE / 2; ++i) load_matrices(last[i], at[2] + offset + i * 256);
#pragma unroll
    for (int product = SPLIT - 1; product >= 0; --product) {
#pragma unroll
        for (int i = 0; i < TALL * WIDE; ++i) {
            const int m = i / WIDE, n = i % WIDE;
            const unsigned x = last[n / 2][(product == 1 ? 2 : 0) + n % 2];
            multiply(sum[m][n], product == 2 ? w.last_low[m] : w.last_high[m], x);
        }
    }
}

// The same, but each tap's sums are added in float32: tensor cores cut their sums where float32 rounds, and errors of
// one sign add up over an image.
__device__ __forceinline__ void convolve_exactly(const Weights& w, const unsigned (&at)[3], int offset,
                                                 float (&sum)[TALL][WIDE][4]) {
#pragma unroll
    for (int i = 0; i < TALL * WIDE * 4; ++i) sum[i / 4 / WIDE][i / 4 % WIDE][i % 4] = 0.0f;
#pragma unroll
    for (int s = 0; s < 5; ++s) {
        const unsigned from = (s < 3 ? at[0] + s * 16 : s == 3 ? at[1] : at[2]) + offset;
        unsigned high[WIDE / 2][4], low[WIDE / 2][4];  // the last tap: upper, then lower halves, both in `high`
#pragma unroll
        for (int i = 0; i < WIDE / 2; ++i) {
            load_matrices(high[i], from + i * 256);
            if (s < 4) load_matrices(low[i], from + i * 256 + LOW);
        }
        float part[TALL * WIDE][4] = {};
#pragma unroll
        for (int product = 0; product < 3; ++product) {  // the small ones first
#pragma unroll
            for (int i = 0; i < TALL * WIDE; ++i) {
                const int m = i / WIDE, n = i % WIDE / 2, k = i % WIDE % 2;
                const unsigned (&x)[4] = product == 1 && s < 4 ? low[n] : high[n];
                if (s < 4) multiply(part[i], product == 0 ? w.low[s][m] : w.high[s][m], x[2 * k], x[2 * k + 1]);
                else multiply(part[i], product == 0 ? w.last_low[m] : w.last_high[m], x[(product == 1 ? 2 : 0) + k]);
            }
        }
#pragma unroll
        for (int i = 0; i < TALL * WIDE * 4; ++i) sum[i / 4 / WIDE][i / 4 % WIDE][i % 4] += part[i / 4][i % 4];
    }
}

// The same sums in double from global memory, for outliers, infinities and what else halves have no room for.
__device__ __noinline__ void convolve_slowly(const float* x, const float* weight, int H, int W, int oy, int ox,
                                             float* sums) {
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
#pragma unroll 1
    for (int i = 0; i < TALL * WIDE * 4; ++i) {  // as in sum[TALL][WIDE][4]
        const float* w = weight + (i / 4 / WIDE * 16 + i % 4 / 2 * 8 + g) * IN * TAPS;
        const int column = ox + i / 4 % WIDE * 8 + 2 * t + i % 2;
        double sum = 0.0;
#pragma unroll 1
        for (int k = 0; k < IN * TAPS; ++k) {
            const int row = min(oy + k % TAPS / 3, H - 1);
            sum += (double)x[((size_t)(k / TAPS) * H + row) * W + min(column + k % 3, W - 1)] * w[k];
        }
        sums[i] = sum;
    }
}

// A warp's segment in its channels, `first` and on -> their sigmoids at `to`, rows of pixels in steps of S_CHANNEL a
// channel; `count` of them exist. MOMENTS: theirs, too -> shared.moments[.][segment]. VALUES: the sums, no sigmoids.
// fits, one: Column::store's. The pixels begin at (row, column) of the tile, (oy, ox) of y.
enum { SIGMOIDS, MOMENTS, VALUES };

template <int MAKE>
__device__ __forceinline__ void make_segment(const Weights& w, Shared& shared, bool fits, int one, int first,
                                             int segment, int row, int column, int count, float* to, const float* x,
                                             const float* weight, const float* scale, const Shape& s, int oy, int ox) {
    const int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4, matrix = lane / 8;
    const unsigned tile = (unsigned)__cvta_generic_to_shared(shared.x) + (row * X_ROW + column) * 16;
    const int pixel = lane % 8 + matrix / 2 * 8;  // matrices: 8 pixels at both taps, then 8 more
    const int last = 2 * X_ROW + 2 + lane % 8 + matrix % 2 * 8;
    const unsigned at[3] = {tile + (pixel + matrix % 2 * X_ROW) * 16, tile + (2 * X_ROW + pixel + matrix % 2) * 16,
                            tile + last * 16 + (SPLIT == 3 ? matrix / 2 * LOW : 0)};
    const bool halves = fits && w.fit;
    float2 line[2 * TALL];
#pragma unroll
    for (int i = 0; i < 2 * TALL; ++i) {
        line[i] = shared.line[first + g + 8 * i];
        const float factor = MAKE == VALUES ? 1.0f : -1.4426950408889634f * scale[first + g + 8 * i];
        line[i].x = halves ? line[i].x * power_of_two(one) : factor;
    }
    to += (first + g) * S_CHANNEL + 2 * t;
    // About the segment's first pixel: sums of squares about 0 have no correct digit where the mean is large.
    float shift[2 * TALL], deviations[2 * TALL], squares[2 * TALL];
#pragma unroll
    for (int i = 0; i < 2 * TALL; ++i) deviations[i] = squares[i] = 0.0f;
#pragma unroll 1
    for (int j = 0; j < SEGMENT; j += 8 * WIDE) {
        float sum[TALL][WIDE][4];  // of channels 16 m + g (and + 8, last two) at pixels 8 n + 2 t (and + 1)
        if (halves) {
            if constexpr (SPLIT == 3) convolve_exactly(w, at, j * 16, sum);
            else convolve(w, at, j * 16, sum);
        } else {
            float sums[TALL * WIDE * 4];
            convolve_slowly(x, weight + first * IN * TAPS, s.H, s.W, oy, ox + j, sums);
#pragma unroll
            for (int i = 0; i < TALL * WIDE * 4; ++i) sum[i / 4 / WIDE][i / 4 % WIDE][i % 4] = sums[i];
        }
#pragma unroll
        for (int i = 0; i < TALL * WIDE * 4; ++i) {
            float& v = sum[i / 4 / WIDE][i / 4 % WIDE][i % 4];
            const float2 k = line[i / 4 / WIDE * 2 + i % 4 / 2];
            v = MAKE == VALUES ? v * k.x + k.y : sigmoid_of_exponent(v * k.x + k.y);
        }
        if (MAKE == MOMENTS && j == 0) {
#pragma unroll
            for (int i = 0; i < 2 * TALL; ++i) shift[i] = __shfl_sync(ALL_LANES, sum[i / 2][0][i % 2 * 2], lane & ~3);
        }
        if (j + 8 * WIDE <= count) {
#pragma unroll
            for (int i = 0; i < TALL * WIDE * 2; ++i) {
                const int m = i / WIDE / 2, h = i / WIDE % 2, n = i % WIDE;
                const float a = sum[m][n][2 * h], b = sum[m][n][2 * h + 1];
                *reinterpret_cast<float2*>(to + (16 * m + 8 * h) * S_CHANNEL + j + 8 * n) = make_float2(a, b);
                if (MAKE == MOMENTS) {
                    const float e = a - shift[2 * m + h], f = b - shift[2 * m + h];
                    deviations[2 * m + h] += e + f;
                    squares[2 * m + h] += e * e;
                    squares[2 * m + h] += f * f;
                }
            }
        } else {
#pragma unroll
            for (int i = 0; i < TALL * WIDE * 2; ++i) {
                const int m = i / WIDE / 2, h = i / WIDE % 2, n = i % WIDE, p = j + 8 * n + 2 * t;
                const float a = sum[m][n][2 * h], b = sum[m][n][2 * h + 1];
                float* pair = to + (16 * m + 8 * h) * S_CHANNEL + j + 8 * n;
                // the one after the last may be written too, into a place that nobody reads
                if (p < count) *reinterpret_cast<float2*>(pair) = make_float2(a, b);
                if (MAKE == MOMENTS) {
                    const float e = p < count ? a - shift[2 * m + h] : 0.0f;
                    const float f = p + 1 < count ? b - shift[2 * m + h] : 0.0f;
                    deviations[2 * m + h] += e + f;
                    squares[2 * m + h] += e * e;
                    squares[2 * m + h] += f * f;
                }
            }
        }
    }
    if (MAKE == MOMENTS) {
        const float part = 1.0f / min(count, SEGMENT);
#pragma unroll
        for (int i = 0; i < 2 * TALL; ++i) {
#pragma unroll
            for (int offset = 1; offset < 4; offset *= 2) {
                deviations[i] += __shfl_xor_sync(ALL_LANES, deviations[i], offset);
                squares[i] += __shfl_xor_sync(ALL_LANES, squares[i], offset);
            }
            const float off = deviations[i] * part;
            const float2 moments = make_float2(shift[i] + off, squares[i] - deviations[i] * off);
            if (t == 0) shared.moments[first + g + 8 * i][segment] = moments;
        }
    }
}
#endif

// ---- a whole image on the chip ----

constexpr unsigned long long NOT_YET = ~0ull;  // a part that nobody wrote

// Blocks: `teams` times a block for each two rows. A team makes every teams-th image, and all blocks must be resident.
// parts (N, QUADS, strips): mean and squared deviations of four channels in two rows, NOT_YET at first: its own arrival
// says that it is there.
__global__ void __launch_bounds__(THREADS, 2)
image_kernel(const float* x, const float* weight, const float* conv_bias, const float* bias, const float* scale,
             const float* gn_weight, const float* gn_bias, unsigned long long* parts, float* y, float2* means, Shape s,
             int teams, float eps) {
#ifdef TENSOR_CORES
    extern __shared__ __align__(16) unsigned char memory[];
    Shared& shared = *reinterpret_cast<Shared*>(memory);
    const int strips = s.OH / ROWS, y0 = blockIdx.x % strips * ROWS, team = blockIdx.x / strips;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int segment = warp % SEGMENTS, first = warp / SEGMENTS * 16 * TALL;  // what the warp makes
    const int row = segment / (SEGMENTS / ROWS), column = segment % (SEGMENTS / ROWS) * SEGMENT, count = s.OW - column;
    const int quad = warp * MINE / QUAD;           // four channels, of which the warp normalises some
    const int vectors = s.OW / 2;                  // float4 of a channel's two rows
    const int quads = QUADS / s.groups, members = strips * quads;  // parts of a group
    const float elements = QUAD * ROWS * s.OW;     // of a part
    const float a_part = 1.0f / elements, a_member = 1.0f / members, a_group = a_part * a_member;
    const size_t image = (size_t)IN * s.H * s.W, plane = (size_t)s.OH * s.OW;
    const float4* mine = reinterpret_cast<const float4*>(shared.sigmoid + warp * MINE * S_CHANNEL) + lane;

    // Starts to bring X_ROWS rows of every channel: they are neighbours. 16 bytes a thread and channel.
    const auto start_copy = [&](int n) {
        if (n < s.N && threadIdx.x % X_ROW < s.W) {
            const size_t channel = (size_t)s.H * s.W * (THREADS / X_ROW);
            const int first = threadIdx.x / X_ROW;
            const float* from = x + n * image + ((size_t)first * s.H + y0) * s.W + threadIdx.x % X_ROW * 4;
            const unsigned to = (unsigned)__cvta_generic_to_shared(shared.x) + threadIdx.x * 16;
#pragma unroll
            for (int c = 0; c < IN * X_ROW / THREADS; ++c) {
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                             :: "r"(to + c * THREADS * 16), "l"(from) : "memory");
                from += channel;
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    bool fits = false;
    int one = 0;
    const auto finish_copy = [&] {
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();  // everybody's pieces are there
        Column pixels;
        pixels.load(reinterpret_cast<const float*>(shared.x), s);
        pixels.measure(shared, Column::column() < s.W);
        __syncthreads();  // all have measured, and read what came
        fits = pixels.store<SPLIT == 3>(shared, one, shared.reach, Column::column() < s.W);
    };

    Weights w;
    start_copy(team);
    find_reach(weight, scale, shared);
    w.load<false>(weight, conv_bias, bias, scale, first, shared.line);
    finish_copy();
    __syncthreads();  // halves and shared.line are complete
    for (int n = team; n < s.N; n += teams) {
        if (count > 0) {
            float* to = shared.sigmoid + row * s.OW + column;
            make_segment<MOMENTS>(w, shared, fits, one, first, segment, row, column, count, to, x + n * image, weight,
                                  scale, s, y0 + row, column);
        }
        __syncthreads();  // sigmoids and moments are complete, and x has been used
        start_copy(n + teams);

        float mean = 0.0f;
        if (warp < QUADS) {  // a lane has one channel's segment
            const int inside = max(0, min(SEGMENT, s.OW - lane % (SEGMENTS / ROWS) * SEGMENT));
            const int size = lane < QUAD * SEGMENTS ? inside : 0;
            float2 m = make_float2(0.0f, 0.0f);
            if (size > 0) m = shared.moments[warp * QUAD + lane / SEGMENTS][lane % SEGMENTS];
            mean = warp_sum(m.x * size) * a_part;
            const float e = m.x - mean;
            const float off = warp_sum(e * size) * a_part;  // the mean's own rounding error
            float squares = warp_sum(m.y + e * e * size) - off * off * elements;
            mean += off;
            if (mean != mean || squares != squares) mean = squares = __uint_as_float(0x7fc00000);  // a NaN, not NOT_YET
            const unsigned long long part = (unsigned long long)__float_as_uint(squares) << 32 | __float_as_uint(mean);
            if (lane == 0) {
                asm volatile("st.relaxed.gpu.global.u64 [%0], %1;"
                             :: "l"(parts + ((size_t)n * QUADS + warp) * strips + y0 / ROWS), "l"(part) : "memory");
            }
        }

        if (n + teams < s.N) finish_copy();  // meanwhile the other parts arrive

        float rstd;
        {
            const unsigned long long* at = parts + ((size_t)n * QUADS + quad / quads * quads) * strips;
            float shift = 0.0f, deviations = 0.0f, between = 0.0f, within = 0.0f;
            for (int p0 = 0; p0 < members; p0 += 4 * WARP) {
                unsigned long long part[4];
                bool waiting;
                do {
                    waiting = false;
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        const int p = p0 + i * WARP + lane;
                        part[i] = 0;
                        if (p < members) {
                            asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                                         : "=l"(part[i]) : "l"(at + p) : "memory");
                        }
                        waiting = waiting || part[i] == NOT_YET;
                    }
                } while (__any_sync(ALL_LANES, waiting));
                if (p0 == 0) {  // about the mean of some
                    const float some = lane < members ? __uint_as_float((unsigned)part[0]) : 0.0f;
                    shift = warp_sum(some) * (1.0f / min(WARP, members));
                }
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const float e = p0 + i * WARP + lane < members ? __uint_as_float((unsigned)part[i]) - shift : 0.0f;
                    deviations += e;
                    between += e * e;
                    within += __uint_as_float((unsigned)(part[i] >> 32));
                }
            }
            deviations = warp_sum(deviations);
            between = warp_sum(between);
            within = warp_sum(within);
            const float off = deviations * a_member, squares = within + elements * (between - deviations * off);
            const float variance = squares < 0.0f ? 0.0f : squares * a_group;  // fmaxf would hide a NaN
            mean = shift + off;
            rstd = rsqrtf(variance + eps);
            if (y0 == 0 && lane == 0) means[n * s.groups + quad / quads] = make_float2(mean, rstd);
        }
        float4* to = reinterpret_cast<float4*>(y + ((size_t)n * OUT + warp * MINE) * plane + (size_t)y0 * s.OW) + lane;
#pragma unroll
        for (int c = 0; c < MINE; ++c, to += plane / 4) {
            const int channel = warp * MINE + c;
            const float factor = rstd * gn_weight[channel], offset = gn_bias[channel] - mean * factor;
            float4 v[VECTORS];
#pragma unroll
            for (int k = 0; k < VECTORS; ++k) v[k] = mine[c * (S_CHANNEL / 4) + k * WARP];
#pragma unroll
            for (int k = 0; k < VECTORS; ++k) {
                v[k].x = v[k].x * factor + offset;
                v[k].y = v[k].y * factor + offset;
                v[k].z = v[k].z * factor + offset;
                v[k].w = v[k].w * factor + offset;
                if (k * WARP + lane < vectors) __stcs(to + k * WARP, v[k]);
            }
        }
        __syncthreads();  // everybody is done with the sigmoids, and the next image's halves are complete
    }
#endif
}

// ---- any image: the convolution twice ----

// LAST: normalised values -> y; else each tile's moments in every channel -> parts (N, OUT, tiles). Blocks take tiles
// of ROWS x COLUMNS of all images in turn. lines (N, OUT): factor and offset from a channel's sigmoid to y.
template <bool LAST>
__global__ void __launch_bounds__(THREADS, 2)
tiles_kernel(const float* x, const float* weight, const float* conv_bias, const float* bias, const float* scale,
             const float2* lines, float2* parts, float* y, Shape s) {
#ifdef TENSOR_CORES
    extern __shared__ __align__(16) unsigned char memory[];
    Shared& shared = *reinterpret_cast<Shared*>(memory);
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int segment = warp % SEGMENTS, first = warp / SEGMENTS * 16 * TALL;
    const int row = segment / (SEGMENTS / ROWS), column = segment % (SEGMENTS / ROWS) * SEGMENT;
    const int64_t tiles = (int64_t)s.tiles_x * s.tiles_y;
    const size_t plane = (size_t)s.OH * s.OW;
    Weights w;
    find_reach(weight, scale, shared);
    w.load<false>(weight, conv_bias, bias, scale, first, shared.line);
    if (threadIdx.x < 2) {  // read for results that nobody keeps
        shared.x[X_ROWS * X_ROW + threadIdx.x] = make_uint4(0, 0, 0, 0);
        if (SPLIT == 3) shared.x[LOW / 16 + X_ROWS * X_ROW + threadIdx.x] = make_uint4(0, 0, 0, 0);
    }
    for (int64_t tile = blockIdx.x; tile < tiles * s.N; tile += gridDim.x) {
        const int64_t n = tile / tiles;
        const int x0 = tile % tiles % s.tiles_x * COLUMNS, y0 = tile % tiles / s.tiles_x * ROWS;
        const int rows = min(ROWS, s.OH - y0), columns = min(COLUMNS, s.OW - x0);
        const float* image = x + n * IN * s.H * s.W;
        int one;
        Column pixels;
        pixels.load(image, s, y0, x0);
        pixels.measure(shared);
        __syncthreads();  // all have measured, and nobody reads the last tile any more
        const bool fits = pixels.store<SPLIT == 3>(shared, one, shared.reach);
        __syncthreads();  // halves are complete
        if (row < rows && column < columns) {
            float* to = shared.sigmoid + row * S_ROW + column;
            constexpr int MAKE = LAST ? SIGMOIDS : MOMENTS;
            make_segment<MAKE>(w, shared, fits, one, first, segment, row, column, columns - column, to, image, weight,
                               scale, s, y0 + row, x0 + column);
        }
        __syncthreads();  // sigmoids and moments are complete
        if (LAST) {
#pragma unroll
            for (int c = 0; c < MINE; ++c) {
                const int channel = warp * MINE + c;
                const float* from = shared.sigmoid + channel * S_CHANNEL + lane;
                const float2 k = lines[n * OUT + channel];
                float* to = y + (n * OUT + channel) * plane + (size_t)y0 * s.OW + x0 + lane;
                for (int r = 0; r < rows; ++r, to += s.OW) {
#pragma unroll
                    for (int i = 0; i < X_ROW / WARP; ++i) {
                        if (i * WARP + lane < columns) to[i * WARP] = from[r * S_ROW + i * WARP] * k.x + k.y;
                    }
                }
            }
        } else if (threadIdx.x < OUT * SEGMENTS) {  // a lane has a channel's segment; its neighbours have the others
            const int channel = threadIdx.x / SEGMENTS, i = threadIdx.x % SEGMENTS;
            const int inside = max(0, min(SEGMENT, columns - i % (SEGMENTS / ROWS) * SEGMENT));
            const int count = i / (SEGMENTS / ROWS) < rows ? inside : 0;
            const float2 m = count > 0 ? shared.moments[channel][i] : make_float2(0.0f, 0.0f);
            const float part = 1.0f / (rows * columns);
            float mean = m.x * count;
#pragma unroll
            for (int offset = 1; offset < SEGMENTS; offset *= 2) mean += __shfl_xor_sync(ALL_LANES, mean, offset);
            mean *= part;
            const float e = m.x - mean;
            float off = e * count, squares = m.y + e * e * count;
#pragma unroll
            for (int offset = 1; offset < SEGMENTS; offset *= 2) {
                off += __shfl_xor_sync(ALL_LANES, off, offset);
                squares += __shfl_xor_sync(ALL_LANES, squares, offset);
            }
            off *= part;
            const float2 moments = make_float2(mean + off, squares - off * off * (rows * columns));
            if (i == 0) parts[(n * OUT + channel) * tiles + tile % tiles] = moments;
        }
    }
#endif
}

// What is known of some numbers: how many, their mean, and the sum of their squared deviations from it.
struct Moments {
    float count, mean, squares;
};

// The same while parts are put together: the errors of a mean and of rstd are errors of one sign in all of a group.
struct WideMoments {
    double count, mean, squares;
};

// Moments of both together (Chan, Golub and LeVeque, 1979).
__device__ WideMoments merged(const WideMoments& a, const WideMoments& b) {
    const double count = a.count + b.count;
    if (count == 0.0) return a;
    const double d = b.mean - a.mean, part = b.count / count;
    return {count, a.mean + d * part, a.squares + b.squares + d * d * a.count * part};
}

// Moments of what all of the block's threads have, for thread 0. Always in the same order.
__device__ WideMoments block_merged(WideMoments m) {
    __shared__ WideMoments of_warp[WARPS];
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        m = merged(m, {__shfl_down_sync(ALL_LANES, m.count, offset), __shfl_down_sync(ALL_LANES, m.mean, offset),
                       __shfl_down_sync(ALL_LANES, m.squares, offset)});  // lane 0 ends with its warp's
    }
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = m;
    __syncthreads();  // all warps have written
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < WARPS; ++warp) m = merged(m, of_warp[warp]);
    }
    return m;
}

// One block a group: parts -> lines, as above, and means (N, groups): mean and rstd.
__global__ void lines_kernel(const float2* parts, const float* gn_weight, const float* gn_bias,
                             float2* lines, float2* means, Shape s, float eps) {
    const int channels = OUT / s.groups;
    const int64_t tiles = (int64_t)s.tiles_x * s.tiles_y;
    parts += blockIdx.x * channels * tiles;
    WideMoments m = {0.0, 0.0, 0.0};
    for (int64_t i = threadIdx.x; i < channels * tiles; i += THREADS) {
        const int64_t tile = i % tiles;
        const int rows = min((int64_t)ROWS, s.OH - tile / s.tiles_x * ROWS);
        const int columns = min((int64_t)COLUMNS, s.OW - tile % s.tiles_x * COLUMNS);
        m = merged(m, {(double)(rows * columns), parts[i].x, parts[i].y});
    }
    m = block_merged(m);
    if (threadIdx.x > 0) return;
    const float variance = m.squares < 0.0 ? 0.0 : m.squares / m.count;  // fmax would hide a NaN
    const float rstd = 1.0f / sqrtf(variance + eps);
    means[blockIdx.x] = make_float2(m.mean, rstd);
    for (int c = blockIdx.x % s.groups * channels, i = 0; i < channels; ++c, ++i) {
        const float factor = rstd * gn_weight[c];
        lines[(int64_t)blockIdx.x * channels + i] = make_float2(factor, gn_bias[c] - m.mean * factor);
    }
}

// ---- backward: a whole image on the chip ----

// What backward's sums are made of, for every channel of y: 72 sums of gq times x, then the sums of gq, of gy, of
// gy * sh and, in the tf32 class, of gq times x's lower halves, convolved. A block leaves a row of them.
constexpr int OF_Q = IN * TAPS, OF_GY = OF_Q + 1, OF_GY_SH = OF_Q + 2, OF_LOW = OF_Q + 3, SUMS = 3 * WARP;
static_assert(SUMS > OF_LOW, "lanes for every sum of a channel");

// The convolution's weights as the second factors of mma, in halves. Lane 4 g + t has channel g of the result, and 2 t
// and 2 t + 1 (and + 8) of what is summed over.
struct Packed {
    uint4 conv[4][2][2][WARP];  // [step][16 channels of y][upper, lower]: both of 8 channels, then both of 8 more
    uint4 conv_last[2][WARP];   // [upper, lower]: 4 times 8 channels of y
    uint4 gx[3][2][3][WARP];    // [kx][16 channels of y][ky], times scale: both upper, then both lower
    float2 line[OUT];           // factor and offset from a channel's sum to the exponent of its sigmoid
    int conv_one[OUT];          // 2^one: what a channel's weights count in
    int conv_fits, gx_fits;     // whether halves have room for them
    int gx_one;
    float reach;                // the largest weight times scale
};

// One block.
__global__ void __launch_bounds__(THREADS)
pack_kernel(const float* weight, const float* conv_bias, const float* bias, const float* scale, Packed* packed) {
#ifdef TENSOR_CORES
    __shared__ float largest[OUT];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4;
    for (int o = warp; o < OUT; o += WARPS) {
        float most = 0.0f;
        for (int k = lane; k < IN * TAPS; k += WARP) most = fmaxf(most, fabsf(weight[o * IN * TAPS + k]));
        most = __uint_as_float(__reduce_max_sync(ALL_LANES, __float_as_uint(most)));
        if (lane == 0) largest[o] = most;
    }
    __syncthreads();  // all channels' are there
    float most = 0.0f;
    bool conv_fits = true;
    for (int o = 0; o < OUT; ++o) {
        int one;
        most = fmaxf(most, largest[o] * fabsf(scale[o]));
        conv_fits = fits_halves(largest[o], one) && conv_fits;
    }
    int gx_one;
    const bool gx_fits = fits_halves(most, gx_one);
    if (threadIdx.x == 0) {
        packed->conv_fits = conv_fits;
        packed->gx_fits = gx_fits;
        packed->gx_one = gx_one;
        packed->reach = most;
    }
    if (threadIdx.x < OUT) {
        const int o = threadIdx.x;
        int one;
        const bool fits = fits_halves(largest[o], one);
        const float factor = -1.4426950408889634f * scale[o];  // 2^(log2(e) v) = e^v
        packed->line[o] = make_float2(fits ? factor * power_of_two(one) : 0.0f, (conv_bias[o] + bias[o]) * factor);
        packed->conv_one[o] = one;
    }
    // The pair of channels 2 t, 2 t + 1 of x in a channel of y, at a tap.
    const auto pair = [&](int o, int tap, unsigned& high, unsigned& low) {
        int one;
        const float unit = fits_halves(largest[o], one) ? power_of_two(-one) : 0.0f;
        const float* w = weight + (o * IN + 2 * t) * TAPS + tap;
        split(w[0] * unit, w[TAPS] * unit, high, low);
    };
    for (int i = warp; i < 4 * 2; i += WARPS) {
        const int s = i / 2, o = i % 2 * 16 + g, a = s < 3 ? s : 6, b = s < 3 ? s + 3 : 7;
        uint4 high, low;
        pair(o, a, high.x, low.x);
        pair(o, b, high.y, low.y);
        pair(o + 8, a, high.z, low.z);
        pair(o + 8, b, high.w, low.w);
        packed->conv[s][i % 2][0][lane] = high;
        packed->conv[s][i % 2][1][lane] = low;
    }
    if (warp == 0) {
        uint4 high, low;
        pair(g, 8, high.x, low.x);
        pair(g + 8, 8, high.y, low.y);
        pair(g + 16, 8, high.z, low.z);
        pair(g + 24, 8, high.w, low.w);
        packed->conv_last[0][lane] = high;
        packed->conv_last[1][lane] = low;
    }
    const float unit = gx_fits ? power_of_two(-gx_one) : 0.0f;
    for (int i = warp; i < 3 * 2 * 3; i += WARPS) {
        const int kx = i / 6, first = i / 3 % 2 * 16 + 2 * t, tap = i % 3 * 3 + kx;
        const auto value = [&](int o) { return weight[(o * IN + g) * TAPS + tap] * scale[o] * unit; };
        uint4 both;
        split(value(first), value(first + 1), both.x, both.z);
        split(value(first + 8), value(first + 9), both.y, both.w);
        packed->gx[kx][i / 3 % 2][i % 3][lane] = both;
    }
#endif
}

constexpr int PIXELS = ROWS * X_ROW / WARPS;     // of a row: what a warp makes, in all channels
constexpr int GY_CHANNEL = 516;                  // floats to the next channel of gy: a warp's reads lie in all banks
constexpr int Q_ROW = X_ROW + 2, Q_PLANE = ROWS * Q_ROW;  // gq in halves, 8 channels a pixel, 2 zeros before a row
constexpr int Q_LOW = OUT / 8 * Q_PLANE;         // 16 bytes each from the upper to the lower halves
constexpr int EDGES = ROWS * 8;                  // values of gx that a thread sends to the next block, each with n
constexpr int PARTS = 4;                         // parts of a row of which warps make sums of gq * x
constexpr int FRAGMENTS = 2 * (TAPS + 1) * 4;    // sums that a part has, a warp's lanes each
constexpr int MY_SUMS = FRAGMENTS / WARPS;       // of those, how many a thread looks after
static_assert(2 * Q_LOW * 16 == OUT * GY_CHANNEL * 4, "gq takes gy's place");

struct GradientShared {
    uint4 x[2 * LOW / 16];             // as in Shared; then, with `more`, the sums of gq * x of every part
    uint4 more[PARTS * FRAGMENTS * WARP / 4 - 2 * LOW / 16];
    uint4 gy[2 * Q_LOW];               // floats; then gq in halves, or as floats where halves have no room
    float2 of_gy[OUT][WARPS];          // every warp's sums of gy and gy * (s - mean)
    float4 terms[QUADS];               // of an image and four channels: rstd, mean * b * rstd^2 - a * rstd, b * rstd^2
    float2 means[QUADS];
    float warp_max[WARPS];
};

#ifdef TENSOR_CORES
__device__ __forceinline__ void load_transposed(unsigned (&m)[4], unsigned at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(at));
}

__device__ __forceinline__ void add(float (&sum)[4], const float (&part)[4], float factor = 1.0f) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[i] += part[i] * factor;
}

// Tensor cores cut their sums where float32 rounds, and errors of one sign add up over an image: so in the fp32 class
// every product of 16 is added in float32. part: both small products, or nothing yet in the tf32 class. first: there is
// no sum yet.
__device__ __forceinline__ void finish_product(float (&sum)[4], float (&part)[4], const unsigned (&high)[4],
                                               unsigned w0, unsigned w1, bool first = false) {
    if (SPLIT == 3) {
        multiply(part, high, w0, w1);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[i] = first ? part[i] : sum[i] + part[i];
    } else if (first) {
        multiply_first(sum, high, w0, w1);
    } else {
        multiply(sum, high, w0, w1);
    }
}

__device__ __forceinline__ void spread(unsigned (&w)[4][2], const uint4& a, const uint4& b) {
    w[0][0] = a.x, w[0][1] = a.y, w[1][0] = a.z, w[1][1] = a.w;
    w[2][0] = b.x, w[2][1] = b.y, w[3][0] = b.z, w[3][1] = b.w;
}

// Sums of gy and gy * (s - mean) over the warp's pixels, for each channel. s: as q below. WHOLE: the row goes on beyond
// these pixels.
template <bool WHOLE>
__device__ __forceinline__ void sums_of_gy(const float (&s)[4][4][4], const float* gy, int count,
                                           GradientShared& shared) {
    const int warp = threadIdx.x / WARP, g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int o = 0; o < 4; ++o) {
        const float mean = shared.means[2 * o + t / 2].x;
        float plain[2] = {}, weighted[2] = {};
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            const int p = i / 4 * 16 + i % 4 / 2 * 8;
            if (!WHOLE && p >= count) continue;
            const float v = gy[(8 * o + i % 2) * GY_CHANNEL + p];
            plain[i % 2] += v;
            weighted[i % 2] += v * (s[i / 4][o][i % 4] - mean);
        }
#pragma unroll
        for (int j = 0; j < 2; ++j) {
#pragma unroll
            for (int offset = 4; offset < WARP; offset *= 2) {
                plain[j] += __shfl_xor_sync(ALL_LANES, plain[j], offset);
                weighted[j] += __shfl_xor_sync(ALL_LANES, weighted[j], offset);
            }
            if (g == 0) shared.of_gy[8 * o + 2 * t + j][warp] = make_float2(plain[j], weighted[j]);
        }
    }
}

// Two rows of gx, from `to` on in each channel: pixels 16 i + g (and + 8, last two) of a warp, channels 2 t (and + 1).
__device__ __forceinline__ void store_gx(float* to, const Shape& s, const float (&upper)[2][4],
                                         const float (&lower)[2][4]) {
    const int column = threadIdx.x / WARP * WARP + threadIdx.x % WARP / 4, channel = 2 * (threadIdx.x % 4);
    const int plane = s.H * s.W;
    to += (size_t)channel * plane + column;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int p = i / 4 * 16 + i % 4 / 2 * 8;
        if (column + p >= s.W) continue;
        float* at = to + (i % 2 ? plane : 0) + p;
        __stcs(at, upper[i / 4][i % 4]);
        __stcs(at + s.W, lower[i / 4][i % 4]);
    }
}

// Sums of channels 8 o + 2 t (and + 1) at pixels 16 p + g (and + 8, last two), as in q[p][o][4], in double from global
// memory, for outliers, infinities and what else halves have no room for.
__device__ __noinline__ void convolve_pixels_slowly(const float* x, const float* weight, int H, int W, int oy, int ox,
                                                    float* sums) {
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
#pragma unroll 1
    for (int i = 0; i < 64; ++i) {
        const float* w = weight + (i / 4 % 4 * 8 + 2 * t + i % 2) * IN * TAPS;
        const int column = ox + i / 16 * 16 + i % 4 / 2 * 8 + g;
        double sum = 0.0;
#pragma unroll 1
        for (int k = 0; k < IN * TAPS; ++k) {
            const size_t row = (size_t)(k / TAPS) * H + oy + k % TAPS / 3;
            sum += (double)x[row * W + min(column + k % 3, W - 1)] * w[k];
        }
        sums[i] = sum;
    }
}

// A block's part of X_ROWS rows of gx, as in sum[X_ROWS][2][4], from floats of gq.
__device__ __noinline__ void gx_slowly(const float* gq, const float* weight, const float* scale, int OW, float* sums) {
    const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4, warp = threadIdx.x / WARP;
#pragma unroll 1
    for (int i = 0; i < X_ROWS * 8; ++i) {
        const int column = warp * WARP + i / 4 % 2 * 16 + i % 4 / 2 * 8 + g, c = 2 * t + i % 2;
        double sum = 0.0;
#pragma unroll 1
        for (int k = 0; k < OUT * ROWS * 3; ++k) {  // channel, row and kx
            const int o = k / (ROWS * 3), r = k / 3 % ROWS, ky = i / 8 - r, at = column - k % 3;
            if (ky < 0 || ky > 2 || at < 0 || at >= OW) continue;
            const double w = (double)weight[(o * IN + c) * TAPS + ky * 3 + k % 3] * scale[o];
            sum += gq[o * GY_CHANNEL + r * X_ROW + at] * w;
        }
        sums[i] = sum;
    }
}
#endif

// As in image_kernel, a team of blocks makes every teams-th image, a block two of its rows. From gy and s = sigmoid(v *
// scale), which is made anew from x, each block's part of a and b goes to all others of the team; then
//     gq = (gy * gn_weight - a - (s - mean) * rstd * b) * rstd * s * (1 - s)
// takes gy's place in shared memory, in halves: gq * x summed over the pixels is gconv_weight without its scale, and
// gq times weight and scale is gx. Two rows of gx need the block before's gq, too: that block sends its products by
// `edges`, each with the image's number, so that no fence is needed, which would empty the cache of the weights.
// gv itself, and v, are needed nowhere: sums of gv are scale times those of gq, and a sum of gq * v is what the sums of
// gq * x make with the weights. This v has to be the one that s was made of: where gq is not 0 an exact v may be far
// away. So in the tf32 class, where s knows no lower halves, the weights' are left out, and x's wherever it counts; not
// where sums are made in double, for there it knows both.
__global__ void __launch_bounds__(THREADS, 2)
image_gradients_kernel(const float* x, const float* gy, const float* weight, const float* scale,
                       const float* gn_weight, const float2* means, const Packed* packed, unsigned long long* parts,
                       unsigned long long* edges, float* gx, float* sums, Shape s, int teams) {
#ifdef TENSOR_CORES
    extern __shared__ __align__(16) unsigned char memory[];
    GradientShared& shared = *reinterpret_cast<GradientShared*>(memory);
    const int strips = s.OH / ROWS, strip = blockIdx.x % strips, y0 = strip * ROWS, team = blockIdx.x / strips;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4, matrix = lane / 8;
    const int row = warp / (WARPS / ROWS), column = warp % (WARPS / ROWS) * PIXELS;  // where the warp's pixels begin
    const int count = s.OW - column - g;  // of them exist, counted from this lane's first
    const bool whole = column + PIXELS <= s.OW;
    const int quads = QUADS / s.groups, members = strips * quads;  // parts of a group
    const float a_group = 1.0f / ((float)QUAD * quads * s.OH * s.OW);
    const size_t image = (size_t)IN * s.H * s.W, plane = (size_t)s.OH * s.OW;
    const unsigned x_at = (unsigned)__cvta_generic_to_shared(shared.x);
    const unsigned q_at = (unsigned)__cvta_generic_to_shared(shared.gy);
    const float* gy_floats = reinterpret_cast<const float*>(shared.gy);

    // Starts to bring X_ROWS rows of every channel of x: they are neighbours.
    const auto start_x = [&](int n) {
        if (n < s.N && threadIdx.x % X_ROW < s.W) {
            const float* from = x + n * image + (size_t)y0 * s.W + threadIdx.x % X_ROW * 4;
#pragma unroll
            for (int c = 0; c < IN; ++c) {
                if (c % (THREADS / X_ROW) != threadIdx.x / X_ROW) continue;
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                             :: "r"(x_at + (c * X_ROW + threadIdx.x % X_ROW) * 16),
                                "l"(from + (size_t)c * s.H * s.W) : "memory");
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    // And ROWS rows of every channel of gy, a warp its MINE channels.
    const auto start_gy = [&](int n) {
        if (n < s.N) {
            const float* from = gy + ((size_t)n * OUT + warp * MINE) * plane + (size_t)y0 * s.OW + lane * 4;
            unsigned to = q_at + (warp * MINE * GY_CHANNEL + lane * 4) * 4;
#pragma unroll
            for (int c = 0; c < MINE; ++c, from += plane, to += GY_CHANNEL * 4) {
#pragma unroll
                for (int k = 0; k < VECTORS; ++k) {
                    const int bytes = k * WARP + lane < s.OW / 2 ? 16 : 0;  // and zeros where the rows end
                    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                                 :: "r"(to + k * WARP * 16), "l"(bytes ? from + k * WARP * 4 : from), "r"(bytes)
                                 : "memory");
                }
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    bool fits = false;
    int one = 0;
    // x has been brought, gy perhaps not yet: makes halves of x.
    const auto finish_x = [&] {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();  // everybody's pieces are there
        Column pixels;
        if (Column::column() < s.W) pixels.load(reinterpret_cast<const float*>(shared.x), s);
        else pixels.clear();  // times gq, which is 0 there: may be anything but NaN
        pixels.measure(shared);
        __syncthreads();  // all have measured, and read what came
        fits = pixels.store<true>(shared, one, packed->reach);
        if (threadIdx.x < 2) {  // pixels that are only read for results that nobody keeps
            shared.x[X_ROWS * X_ROW + threadIdx.x] = make_uint4(0, 0, 0, 0);
            shared.x[LOW / 16 + X_ROWS * X_ROW + threadIdx.x] = make_uint4(0, 0, 0, 0);
        }
    };

    float total[MY_SUMS] = {};             // of gq * x: this thread's fragments
    float of_gy = 0.0f, of_gy_sh = 0.0f;   // of channel warp * MINE + lane / WARPS, the same in 8 lanes
    start_x(team);
    start_gy(team);
    finish_x();
    __syncthreads();  // halves are complete
    for (int n = team; n < s.N; n += teams) {
        const bool halves = fits && packed->conv_fits;
        if (threadIdx.x < QUADS) shared.means[threadIdx.x] = means[n * s.groups + threadIdx.x / quads];

        // s: of channels 8 o + 2 t (and + 1) at pixels 16 p + g (and + 8, last two)
        float q[4][4][4];
        if (column >= s.OW) {
#pragma unroll
            for (int i = 0; i < 64; ++i) q[i / 16][i / 4 % 4][i % 4] = 0.0f;
        } else if (halves) {
            // matrices: 8 pixels at a tap, 8 more, and both at the other tap
            const unsigned first = x_at + (row * X_ROW + column + lane % 8 + matrix % 2 * 8) * 16;
#pragma unroll
            for (int step = 0; step < 4; ++step) {
                const unsigned from = first + (step < 3 ? step + matrix / 2 * X_ROW : 2 * X_ROW + matrix / 2) * 16;
                unsigned w[4][2], l[4][2] = {};
                spread(w, packed->conv[step][0][0][lane], packed->conv[step][1][0][lane]);
                if (SPLIT == 3) spread(l, packed->conv[step][0][1][lane], packed->conv[step][1][1][lane]);
#pragma unroll
                for (int p = 0; p < 4; ++p) {
                    unsigned high[4], low[4];
                    load_matrices(high, from + p * 256);
                    if (SPLIT == 3) load_matrices(low, from + p * 256 + LOW);
                    float part[4][4];
                    if (SPLIT == 3) {
#pragma unroll
                        for (int o = 0; o < 4; ++o) multiply_first(part[o], high, l[o][0], l[o][1]);
#pragma unroll
                        for (int o = 0; o < 4; ++o) multiply(part[o], low, w[o][0], w[o][1]);
                    }
#pragma unroll
                    for (int o = 0; o < 4; ++o) finish_product(q[p][o], part[o], high, w[o][0], w[o][1], step == 0);
                }
            }
            const unsigned from = first + (2 * X_ROW + 2) * 16 + matrix / 2 * LOW;  // the last tap, upper and lower
            const uint4 w = packed->conv_last[0][lane], l = packed->conv_last[1][lane];
#pragma unroll
            for (int p = 0; p < 4; ++p) {
                unsigned last[4];
                load_matrices(last, from + p * 256);
                const unsigned high[2] = {last[0], last[1]}, low[2] = {last[2], last[3]};
                const unsigned w8[4] = {w.x, w.y, w.z, w.w}, l8[4] = {l.x, l.y, l.z, l.w};
                float part[4][4] = {};
                if (SPLIT == 3) {
#pragma unroll
                    for (int o = 0; o < 4; ++o) multiply(part[o], high, l8[o]);
#pragma unroll
                    for (int o = 0; o < 4; ++o) multiply(part[o], low, w8[o]);
                }
#pragma unroll
                for (int o = 0; o < 4; ++o) {
                    multiply(SPLIT == 3 ? part[o] : q[p][o], high, w8[o]);
                    if (SPLIT == 3) add(q[p][o], part[o]);
                }
            }
        } else {
            float sums[64];
            convolve_pixels_slowly(x + n * image, weight, s.H, s.W, y0 + row, column, sums);
#pragma unroll
            for (int i = 0; i < 64; ++i) q[i / 16][i / 4 % 4][i % 4] = sums[i];
        }
        const float x_unit = halves ? power_of_two(one) : 1.0f;
#pragma unroll
        for (int o = 0; o < 4; ++o) {
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const int channel = 8 * o + 2 * t + j;
                const float2 line = packed->line[channel];
                const float factor = (halves ? line.x : -1.4426950408889634f * scale[channel]) * x_unit;
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    float& v = q[i / 2][o][i % 2 * 2 + j];
                    v = sigmoid_of_exponent(v * factor + line.y);
                }
            }
        }

        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();  // gy and the means are there
        const float* gy_mine = gy_floats + 2 * t * GY_CHANNEL + row * s.OW + column + g;
        if (whole) sums_of_gy<true>(q, gy_mine, count, shared);
        else sums_of_gy<false>(q, gy_mine, count, shared);
        __syncthreads();  // every warp's sums are there
        {
            float2 m = shared.of_gy[warp * QUAD + lane / WARPS][lane % WARPS];
            const float2 mean = shared.means[warp];
#pragma unroll
            for (int offset = 1; offset < WARPS; offset *= 2) {
                m.x += __shfl_xor_sync(ALL_LANES, m.x, offset);
                m.y += __shfl_xor_sync(ALL_LANES, m.y, offset);
            }
            m.y *= mean.y;
            of_gy += m.x;
            of_gy_sh += m.y;
            const float gamma = gn_weight[warp * QUAD + lane / WARPS];
            m.x *= gamma;
            m.y *= gamma;
#pragma unroll
            for (int offset = WARPS; offset < WARP; offset *= 2) {
                m.x += __shfl_xor_sync(ALL_LANES, m.x, offset);
                m.y += __shfl_xor_sync(ALL_LANES, m.y, offset);
            }
            if (m.x != m.x || m.y != m.y) m.x = m.y = __uint_as_float(0x7fc00000);  // a NaN, not NOT_YET
            const unsigned long long part = (unsigned long long)__float_as_uint(m.y) << 32 | __float_as_uint(m.x);
            if (lane == 0) {
                asm volatile("st.relaxed.gpu.global.u64 [%0], %1;"
                             :: "l"(parts + ((size_t)n * QUADS + warp) * strips + strip), "l"(part) : "memory");
            }
            // every block's part is awaited
            const unsigned long long* at = parts + ((size_t)n * QUADS + warp / quads * quads) * strips;
            float a = 0.0f, b = 0.0f;
            for (int p0 = 0; p0 < members; p0 += 4 * WARP) {
                unsigned long long others[4];
                bool waiting;
                do {
                    waiting = false;
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        const int p = p0 + i * WARP + lane;
                        others[i] = 0;
                        if (p < members) {
                            asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                                         : "=l"(others[i]) : "l"(at + p) : "memory");
                        }
                        waiting = waiting || others[i] == NOT_YET;
                    }
                } while (__any_sync(ALL_LANES, waiting));
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    a += __uint_as_float((unsigned)others[i]);
                    b += __uint_as_float((unsigned)(others[i] >> 32));
                }
            }
            a = warp_sum(a) * a_group;
            b = warp_sum(b) * a_group;
            b *= mean.y * mean.y;
            if (lane == 0) shared.terms[warp] = make_float4(mean.y, mean.x * b - a * mean.y, b, 0.0f);
        }
        __syncthreads();  // a and b are there

        float most = 0.0f;
#pragma unroll
        for (int o = 0; o < 4; ++o) {
            const float4 k = shared.terms[2 * o + t / 2];
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const float gamma = gn_weight[8 * o + 2 * t + j] * k.x;
#pragma unroll
                for (int i = 0; i < 8; ++i) {  // beyond the row's end, too: into places that get zeros below
                    float& v = q[i / 2][o][i % 2 * 2 + j];
                    const float up = gy_mine[(8 * o + j) * GY_CHANNEL + i / 2 * 16 + i % 2 * 8];
                    const float gs = up * gamma + (k.y - v * k.z);
                    v = gs * (v - v * v);
                    most = fmaxf(most, fabsf(v));
                }
            }
        }
        most = __uint_as_float(__reduce_max_sync(ALL_LANES, __float_as_uint(most)));
        if (lane == 0) shared.warp_max[warp] = most;
        __syncthreads();  // gy has been used, and every warp's largest is there
#pragma unroll
        for (int i = 0; i < WARPS; ++i) most = fmaxf(most, shared.warp_max[i]);
        int q_one;
        const bool q_fits = fits_halves(most, q_one) && fits && packed->gx_fits;
        // From here on gq in halves, 0 beyond its rows' ends.
        if (q_fits) {
            const float unit = power_of_two(-q_one);
            unsigned* to = reinterpret_cast<unsigned*>(shared.gy) + (row * Q_ROW + 2 + column + g) * 4 + t;
#pragma unroll
            for (int i = 0; i < 32; ++i) {
                const int p = i / 8, o = i / 2 % 4, h = i % 2;
                unsigned high, low;
                split(q[p][o][2 * h] * unit, q[p][o][2 * h + 1] * unit, high, low);
                to[(o * Q_PLANE + 16 * p + 8 * h) * 4] = high;
                to[(o * Q_PLANE + 16 * p + 8 * h + Q_LOW) * 4] = low;
            }
            if (!whole) {
#pragma unroll
                for (int p = 0; p < PIXELS; p += 8) {
                    if (p < count) continue;
                    for (int o = 0; o < 8; ++o) to[(o * Q_PLANE + p) * 4] = 0;  // both halves
                }
            }
            if (warp == 0) {  // zeros before the rows: 2 of 2 rows of 4 planes of both halves
                shared.gy[lane / 4 * Q_PLANE + lane / 2 % 2 * Q_ROW + lane % 2] = make_uint4(0, 0, 0, 0);
            }
        } else {
            float* to = reinterpret_cast<float*>(shared.gy) + row * X_ROW + column + g;
#pragma unroll
            for (int i = 0; i < 64; ++i) {
                const int channel = i / 4 % 4 * 8 + 2 * t + i % 2, p = i / 16 * 16 + i % 4 / 2 * 8;
                to[channel * GY_CHANNEL + p] = p < count ? q[i / 16][i / 4 % 4][i % 4] : 0.0f;
            }
        }
        __syncthreads();  // gq is complete

        if (q_fits) {
            // Warps: 16 channels of gq, and 64 columns of both rows. x's rows 0 to 3 meet gq's rows 0 and 1.
            const int half = warp % 2, part = warp / 2;
            // of channels 16 half + g (and + 8, last two) of gq, 2 t and 2 t + 1 of x; then of gq alone, where t is 0
            float sum[TAPS + 1][4] = {};
            float of_low[TAPS][4] = {};  // in the tf32 class: of lower halves of x, which no sigmoid has seen
            const unsigned ones = g == 0 ? 0x3c003c00 : 0;
#pragma unroll 1
            for (int j = part * PIXELS; j < min(part * PIXELS + PIXELS, s.OW); j += 16) {
                // gq, transposed: 8 channels at 8 pixels, 8 channels more, and both at the next 8 pixels
                const unsigned at = q_at + ((half * 2 + matrix % 2) * Q_PLANE + 2 + j + lane % 8 + matrix / 2 * 8) * 16;
                unsigned high[ROWS][4], low[ROWS][4];
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    load_transposed(high[r], at + r * Q_ROW * 16);
                    load_transposed(low[r], at + (r * Q_ROW + Q_LOW) * 16);
                }
                float alone[4];
                multiply_first(alone, low[0], ones, ones);
                multiply(alone, low[1], ones, ones);
                multiply(alone, high[0], ones, ones);
                multiply(alone, high[1], ones, ones);
                sum[TAPS][0] += alone[0];
                sum[TAPS][2] += alone[2];
                // x, transposed: 8 pixels, 8 more, and the lower halves of both
                const unsigned from = x_at + (j + lane % 8 + matrix % 2 * 8) * 16 + matrix / 2 * LOW;
#pragma unroll
                for (int y = 0; y < X_ROWS; ++y) {
                    unsigned b[3][4];
#pragma unroll
                    for (int kx = 0; kx < 3; ++kx) load_transposed(b[kx], from + (y * X_ROW + kx) * 16);
                    float products[ROWS * 3][4];  // of row r of gq at tap (y - r, kx), in the fp32 class
#pragma unroll
                    for (int product = 0; product < 3; ++product) {
#pragma unroll
                        for (int i = 0; i < ROWS * 3; ++i) {
                            const int r = i / 3, kx = i % 3, ky = y - r, half_of_x = product == 1 ? 2 : 0;
                            if (ky < 0 || ky > 2) continue;
                            const unsigned (&q)[4] = product == 0 ? low[r] : high[r];
                            const unsigned x0 = b[kx][half_of_x], x1 = b[kx][half_of_x + 1];
                            float (&alike)[4] = product == 1 ? of_low[ky * 3 + kx] : sum[ky * 3 + kx];
                            if (SPLIT == 1) multiply(alike, q, x0, x1);
                            else if (product == 0) multiply_first(products[i], q, x0, x1);
                            else multiply(products[i], q, x0, x1);
                        }
                    }
#pragma unroll
                    for (int i = 0; i < ROWS * 3; ++i) {
                        const int ky = y - i / 3;
                        if (SPLIT == 3 && ky >= 0 && ky <= 2) add(sum[ky * 3 + i % 3], products[i]);
                    }
                }
            }
            // v * scale may owe x's lower halves up to 2^(one + gx_one + 25). Where this counts: what they add to a sum
            // of gq * v, in what the weights count in, beside the sums of gq.
            if (SPLIT == 1 && one + packed->gx_one > -27) {
                const auto convolved = [&](int tap, unsigned w, int i) {
                    const float2 f = __half22float2(*reinterpret_cast<const __half2*>(&w));
                    sum[TAPS][2 * i + 1] += of_low[tap][2 * i] * f.x + of_low[tap][2 * i + 1] * f.y;
                };
#pragma unroll
                for (int step = 0; step < 4; ++step) {
                    const uint4 w = packed->conv[step][half][0][lane];
                    const int a = step < 3 ? step : 6, b = step < 3 ? step + 3 : 7;
                    convolved(a, w.x, 0);
                    convolved(b, w.y, 0);
                    convolved(a, w.z, 1);
                    convolved(b, w.w, 1);
                }
                const uint4 w = packed->conv_last[0][lane];
                convolved(8, half ? w.z : w.x, 0);
                convolved(8, half ? w.w : w.y, 1);
#pragma unroll
                for (int i = 1; i < 4; i += 2) {
                    sum[TAPS][i] += __shfl_xor_sync(ALL_LANES, sum[TAPS][i], 1);
                    sum[TAPS][i] += __shfl_xor_sync(ALL_LANES, sum[TAPS][i], 2);
                }
            }
            if (SPLIT == 1) {
#pragma unroll
                for (int i = 0; i < TAPS; ++i) add(sum[i], of_low[i]);
            }
            __syncthreads();  // x's halves have been used
            float* to = reinterpret_cast<float*>(shared.x) + (part * FRAGMENTS + half * FRAGMENTS / 2) * WARP + lane;
#pragma unroll
            for (int i = 0; i < FRAGMENTS / 2; ++i) to[i * WARP] = sum[i / 4][i % 4];
            __syncthreads();  // every part's sums are there
            const float* from = reinterpret_cast<const float*>(shared.x) + threadIdx.x;
            const float back = power_of_two(q_one), x_back = power_of_two(one);
#pragma unroll
            for (int i = 0; i < MY_SUMS; ++i) {
                float v = 0.0f;
#pragma unroll
                for (int p = 0; p < PARTS; ++p) v += from[p * FRAGMENTS * WARP + i * THREADS];
                const bool of_x = (warp + i * WARPS) % (FRAGMENTS / 2) < TAPS * 4 || warp % 2;
                total[i] += v * back * (of_x ? x_back : 1.0f);
            }
        } else {
#pragma unroll 1
            for (int i = 0; i < MY_SUMS; ++i) {
                const int fragment = warp + i * WARPS, j = fragment % (FRAGMENTS / 2);
                const int o = fragment / (FRAGMENTS / 2) * 16 + g + j % 4 / 2 * 8, c = 2 * t + j % 2;
                const float* from = x + n * image + ((size_t)c * s.H + y0 + j / 12) * s.W + j / 4 % 3;
                double v = 0.0;
                for (int p = 0; p < ROWS * s.OW; ++p) {
                    const int r = p / s.OW, at = p % s.OW;
                    const float pixel = j < TAPS * 4 ? from[(size_t)r * s.W + at] : 1.0f - j % 2;
                    v += (double)gy_floats[o * GY_CHANNEL + r * X_ROW + at] * pixel;
                }
#pragma unroll
                for (int k = 0; k < MY_SUMS; ++k) total[k] += i == k ? (float)v : 0.0f;
                if (SPLIT == 1) reinterpret_cast<float*>(shared.x)[fragment * WARP + lane] = v;
            }
            if (SPLIT == 1 && !fits) {  // v knew the weights' lower halves: what they add to a sum of gq * v
                __syncthreads();  // all sums are there
#pragma unroll 1
                for (int i = 0; i < MY_SUMS; ++i) {
                    const int fragment = warp + i * WARPS, j = fragment % (FRAGMENTS / 2);
                    if (j < TAPS * 4 || j % 2 == 0 || t > 0) continue;
                    const int second = j % 4 / 2, o = fragment / (FRAGMENTS / 2) * 16 + g + second * 8;
                    const float* from = reinterpret_cast<const float*>(shared.x) + lane;
                    const float unit = power_of_two(-packed->conv_one[o]);
                    float low = 0.0f;
                    for (int k = 0; k < IN * TAPS; ++k) {
                        const int c = k / TAPS, at = fragment - j + k % TAPS * 4 + second * 2 + c % 2;
                        const float w = weight[o * IN * TAPS + k] * unit;
                        low += from[at * WARP + c / 2] * (w - __half2float(__float2half_rn(w)));
                    }
#pragma unroll
                    for (int k = 0; k < MY_SUMS; ++k) total[k] -= i == k ? low : 0.0f;
                }
            }
        }
        __syncthreads();  // nobody needs x, or what took its place
        start_x(n + teams);

        float sum[X_ROWS][2][4];  // rows of gx at pixels 16 i + g (and + 8, last two), channels 2 t (and + 1)
        const bool has_gx = gx != nullptr && warp * WARP < s.W;
        if (has_gx) {
            if (q_fits) {
                // matrices: 8 pixels of 8 channels, 8 pixels more, and both of the next 8 channels
                const unsigned at = q_at + (2 + warp * WARP + lane % 8 + matrix % 2 * 8 + matrix / 2 * Q_PLANE) * 16;
#pragma unroll
                for (int k = 0; k < 6; ++k) {
                    const int kx = k / 2;
                    const unsigned from = at + (k % 2 * 2 * Q_PLANE - kx) * 16;
                    unsigned high[ROWS][2][4], low[ROWS][2][4];
#pragma unroll
                    for (int i = 0; i < ROWS * 2; ++i) {
                        const unsigned pixel = from + (i / 2 * Q_ROW + i % 2 * 16) * 16;
                        load_matrices(high[i / 2][i % 2], pixel);
                        if (SPLIT == 3) load_matrices(low[i / 2][i % 2], pixel + Q_LOW * 16);
                    }
#pragma unroll
                    for (int ky = 0; ky < 3; ++ky) {
                        const uint4 w = packed->gx[kx][k % 2][ky][lane];
                        float part[ROWS * 2][4];
                        if (SPLIT == 3) {
#pragma unroll
                            for (int i = 0; i < ROWS * 2; ++i) multiply_first(part[i], high[i / 2][i % 2], w.z, w.w);
#pragma unroll
                            for (int i = 0; i < ROWS * 2; ++i) multiply(part[i], low[i / 2][i % 2], w.x, w.y);
                        }
#pragma unroll
                        for (int i = 0; i < ROWS * 2; ++i) {
                            finish_product(sum[i / 2 + ky][i % 2], part[i], high[i / 2][i % 2], w.x, w.y,
                                           k == 0 && (i / 2 == 1 || ky == 0));
                        }
                    }
                }
                const float back = power_of_two(q_one), weight_back = power_of_two(packed->gx_one);
#pragma unroll
                for (int i = 0; i < X_ROWS * 8; ++i) sum[i / 8][i / 4 % 2][i % 4] *= back * weight_back;
            } else {
                float sums[X_ROWS * 8];
                gx_slowly(gy_floats, weight, scale, s.OW, sums);
#pragma unroll
                for (int i = 0; i < X_ROWS * 8; ++i) sum[i / 8][i / 4 % 2][i % 4] = sums[i];
            }
            // The last two rows are the next block's first two, or the image's last.
            if (strip + 1 == strips) {
                store_gx(gx + n * image + (size_t)(y0 + ROWS) * s.W, s, sum[2], sum[3]);
            } else {
#pragma unroll
                for (int i = 0; i < EDGES; ++i) {
                    const unsigned value = __float_as_uint(sum[ROWS + i / 8][i / 4 % 2][i % 4]);
                    const unsigned long long stamped = (unsigned long long)n << 32 | value;
                    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;"
                                 :: "l"(edges + (size_t)(blockIdx.x * EDGES + i) * THREADS + threadIdx.x), "l"(stamped)
                                 : "memory");
                }
            }
        }
        __syncthreads();  // nobody needs gq
        start_gy(n + teams);
        if (n + teams < s.N) finish_x();
        // the block before's edges are awaited
        if (has_gx) {
            if (strip > 0) {
                unsigned long long v[EDGES];
                bool waiting;
                do {
                    waiting = false;
#pragma unroll
                    for (int i = 0; i < EDGES; ++i) {
                        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v[i])
                                     : "l"(edges + (size_t)((blockIdx.x - 1) * EDGES + i) * THREADS + threadIdx.x)
                                     : "memory");
                        waiting = waiting || (int)(v[i] >> 32) != n;
                    }
                } while (__any_sync(ALL_LANES, waiting));
#pragma unroll
                for (int i = 0; i < EDGES; ++i) sum[i / 8][i / 4 % 2][i % 4] += __uint_as_float((unsigned)v[i]);
            }
            store_gx(gx + n * image + (size_t)y0 * s.W, s, sum[0], sum[1]);
        }
        __syncthreads();  // the next image's halves are complete
    }

    float* to = sums + (size_t)blockIdx.x * OUT * SUMS;
#pragma unroll
    for (int i = 0; i < MY_SUMS; ++i) {
        const int fragment = warp + i * WARPS, j = fragment % (FRAGMENTS / 2);
        const int o = fragment / (FRAGMENTS / 2) * 16 + g + j % 4 / 2 * 8, c = 2 * t + j % 2;
        if (j < TAPS * 4) to[o * SUMS + c * TAPS + j / 4] = total[i];
        else if (c == 0) to[o * SUMS + OF_Q] = total[i];
        else if (c == 1) to[o * SUMS + OF_LOW] = total[i];
    }
    if (lane % WARPS == 0) {
        to += (warp * MINE + lane / WARPS) * SUMS;
        to[OF_GY] = of_gy;
        to[OF_GY_SH] = of_gy_sh;
    }
#endif
}

// One block a channel of y: rows (count, OUT, SUMS) -> every gradient but x's. gweight may be null.
__global__ void __launch_bounds__(THREADS)
finish_kernel(const float* rows, int64_t count, const Packed* packed, const float* weight, const float* conv_bias,
              const float* bias, const float* scale, float* gweight, float* gconv_bias, float* gscale,
              float* ggn_weight, float* ggn_bias) {
    __shared__ float part[WARPS][SUMS], sum[SUMS];
    const int o = blockIdx.x, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (int i = lane; i < SUMS; i += WARP) {
        float v = 0.0f;
        if (i <= OF_LOW) {
#pragma unroll 8
            for (int64_t r = warp; r < count; r += WARPS) v += rows[(r * OUT + o) * SUMS + i];
        }
        part[warp][i] = v;
    }
    __syncthreads();  // every warp's are there
    if (threadIdx.x < SUMS) {
        float v = 0.0f;
        for (int i = 0; i < WARPS; ++i) v += part[i][threadIdx.x];
        sum[threadIdx.x] = v;
    }
    __syncthreads();  // all sums are there
    if (gweight != nullptr && threadIdx.x < IN * TAPS) {
        gweight[o * IN * TAPS + threadIdx.x] = sum[threadIdx.x] * scale[o];
    }
    if (warp > 0) return;
    // In the tf32 class with the upper halves of the weights, and less what x's lower ones add.
    const bool upper = SPLIT == 1 && packed->conv_fits;
    const float unit = upper ? power_of_two(-packed->conv_one[o]) : 1.0f, back = 1.0f / unit;
    float products = 0.0f;
    for (int i = lane; i < IN * TAPS; i += WARP) {
        const float w = weight[o * IN * TAPS + i] * unit;
        products += sum[i] * (upper ? __half2float(__float2half_rn(w)) : w);
    }
    products = warp_sum(products);
    if (upper) products = (products - sum[OF_LOW]) * back;
    if (lane > 0) return;
    gconv_bias[o] = sum[OF_Q] * scale[o];
    gscale[o] = products + (conv_bias[o] + bias[o]) * sum[OF_Q];
    ggn_weight[o] = sum[OF_GY_SH];
    ggn_bias[o] = sum[OF_GY];
}

// ---- backward of any image: the convolution twice, gv in global memory ----

// What the kernels below leave behind for each tile and channel, to be summed: two sums, and the largest magnitude.
struct Part {
    float first, second, largest;
};

// Each tile again from x: v = conv(x) + bias, of which s = sigmoid(v * scale) and sh = (s - mean) * rstd are made anew.
// means (N, groups): mean and rstd; LAST: terms (N, groups): a and b.
// !LAST: parts: sums of gy and gy * sh. LAST: gv; parts: sums of gv and gq * v, largest of gv.
template <bool LAST>
__global__ void __launch_bounds__(THREADS, 2)
gradient_kernel(const float* x, const float* gy, const float* weight, const float* conv_bias, const float* bias,
                const float* scale, const float* gn_weight, const float2* means, const float2* terms, Part* parts,
                float* gv, Shape s) {
#ifdef TENSOR_CORES
    extern __shared__ __align__(16) unsigned char memory[];
    Shared& shared = *reinterpret_cast<Shared*>(memory);
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, segment = warp % SEGMENTS;
    const int first = warp / SEGMENTS * 16 * TALL;
    const int row = segment / (SEGMENTS / ROWS), column = segment % (SEGMENTS / ROWS) * SEGMENT;
    const int64_t tiles = (int64_t)s.tiles_x * s.tiles_y;
    const size_t plane = (size_t)s.OH * s.OW;
    Weights w;
    find_reach(weight, scale, shared);
    w.load<true>(weight, conv_bias, bias, scale, first, shared.line);
    if (threadIdx.x < 2) {  // read for results that nobody keeps
        shared.x[X_ROWS * X_ROW + threadIdx.x] = make_uint4(0, 0, 0, 0);
        if (SPLIT == 3) shared.x[LOW / 16 + X_ROWS * X_ROW + threadIdx.x] = make_uint4(0, 0, 0, 0);
    }
    for (int64_t tile = blockIdx.x; tile < tiles * s.N; tile += gridDim.x) {
        const int64_t n = tile / tiles;
        const int x0 = tile % tiles % s.tiles_x * COLUMNS, y0 = tile % tiles / s.tiles_x * ROWS;
        const int rows = min(ROWS, s.OH - y0), columns = min(COLUMNS, s.OW - x0);
        const float* image = x + n * IN * s.H * s.W;
        int one;
        Column pixels;
        pixels.load(image, s, y0, x0);
        pixels.measure(shared);
        __syncthreads();  // all have measured, and nobody reads the last tile any more
        const bool fits = pixels.store<SPLIT == 3>(shared, one, shared.reach);
        __syncthreads();  // halves are complete
        if (row < rows && column < columns) {
            make_segment<VALUES>(w, shared, fits, one, first, segment, row, column, columns - column,
                                 shared.sigmoid + row * S_ROW + column, image, weight, scale, s, y0 + row, x0 + column);
        }
        __syncthreads();  // v is complete
#pragma unroll 1
        for (int c = 0; c < MINE; ++c) {
            const int channel = warp * MINE + c, group = channel / (OUT / s.groups);
            const float* from = shared.sigmoid + channel * S_CHANNEL + lane;
            const size_t at = (n * OUT + channel) * plane + (size_t)y0 * s.OW + x0 + lane;
            const float2 m = means[n * s.groups + group];
            const float factor = scale[channel], exponent = -1.4426950408889634f * factor;
            float2 ab = make_float2(0.0f, 0.0f);
            if (LAST) ab = terms[n * s.groups + group];
            const float a = ab.x * m.y, b = ab.y * m.y * m.y, gamma = gn_weight[channel] * m.y;
            Part part = {};
            for (int r = 0; r < rows; ++r) {
                float g[X_ROW / WARP];
#pragma unroll
                for (int i = 0; i < X_ROW / WARP; ++i) {
                    g[i] = i * WARP + lane < columns ? __ldg(gy + at + (size_t)r * s.OW + i * WARP) : 0.0f;
                }
#pragma unroll
                for (int i = 0; i < X_ROW / WARP; ++i) {
                    if (i * WARP + lane >= columns) continue;
                    const float v = from[r * S_ROW + i * WARP], sigmoid = sigmoid_of_exponent(v * exponent);
                    if (LAST) {
                        // gy * 1 - a would round alike for all gy of one exponent, and sums would show it
                        const float gs = g[i] * gamma - (a + (sigmoid - m.x) * b), gq = gs * sigmoid * (1.0f - sigmoid);
                        const float result = gq * factor;
                        gv[at + (size_t)r * s.OW + i * WARP] = result;
                        part.first += result;
                        part.second += gq * v;
                        part.largest = fmaxf(part.largest, fabsf(result));
                    } else {
                        part.first += g[i];
                        part.second += g[i] * ((sigmoid - m.x) * m.y);
                    }
                }
            }
            part.first = warp_sum(part.first);
            part.second = warp_sum(part.second);
            part.largest = __uint_as_float(__reduce_max_sync(ALL_LANES, __float_as_uint(part.largest)));
            if (lane == 0) parts[(n * OUT + channel) * tiles + tile % tiles] = part;
        }
    }
#endif
}

// One block a group: parts -> sums of each channel, both (N, OUT); !LAST: terms (N, groups): a and b, the means of both
// over a group, weighted. LAST: terms: the largest gv, and 0.
template <bool LAST>
__global__ void group_sums_kernel(const Part* parts, const float* gn_weight, float* first, float* second, float2* terms,
                                  Shape s) {
    __shared__ float2 of_channel[OUT];
    const int channels = OUT / s.groups, lane = threadIdx.x % WARP;
    const int64_t tiles = (int64_t)s.tiles_x * s.tiles_y;
    for (int c = threadIdx.x / WARP; c < channels; c += WARPS) {
        const int64_t channel = (int64_t)blockIdx.x * channels + c;
        Part sum = {};
        for (int64_t i = lane; i < tiles; i += WARP) {
            const Part part = parts[channel * tiles + i];
            sum.first += part.first;
            sum.second += part.second;
            sum.largest = fmaxf(sum.largest, part.largest);
        }
        sum.first = warp_sum(sum.first);
        sum.second = warp_sum(sum.second);
#pragma unroll
        for (int offset = WARP / 2; offset > 0; offset /= 2) {
            sum.largest = fmaxf(sum.largest, __shfl_xor_sync(ALL_LANES, sum.largest, offset));
        }
        if (lane == 0) {
            first[channel] = sum.first;
            second[channel] = sum.second;
            const float gamma = gn_weight[channel % OUT];
            of_channel[c] = make_float2(LAST ? sum.largest : sum.first * gamma, LAST ? 0.0f : sum.second * gamma);
        }
    }
    __syncthreads();  // all channels are there
    if (threadIdx.x > 0) return;
    float2 all = make_float2(0.0f, 0.0f);
    for (int c = 0; c < channels; ++c) {
        all.x = LAST ? fmaxf(all.x, of_channel[c].x) : all.x + of_channel[c].x;
        all.y += of_channel[c].y;
    }
    const float part = 1.0f / ((float)channels * s.OH * s.OW);
    terms[blockIdx.x] = LAST ? all : make_float2(all.x * part, all.y * part);
}

// rows (count, columns) -> the sum of each column, one warp each, in an order of their own. Blocks of THREADS.
__global__ void columns_kernel(const float* rows, float* sums, int64_t count, int columns) {
    const int c = blockIdx.x * WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (c >= columns) return;  // a whole warp
    float sum = 0.0f;
    for (int64_t i = lane; i < count; i += WARP) sum += rows[i * columns + c];
    sum = warp_sum(sum);
    if (lane == 0) sums[c] = sum;
}

// The largest gv of every image's groups, and the weights' reach -> largest (N + 1). One block.
__global__ void largest_kernel(const float2* of_group, const float* weight, const float* scale, float* largest, int N,
                               int groups) {
    __shared__ struct {
        float warp_max[WARPS], reach;
    } shared;
    find_reach(weight, scale, shared);
    if (threadIdx.x == 0) largest[N] = shared.reach;
    for (int n = threadIdx.x; n < N; n += THREADS) {
        float most = 0.0f;
        for (int i = 0; i < groups; ++i) most = fmaxf(most, of_group[n * groups + i].x);
        largest[n] = most;
    }
}

constexpr int G_TALL = 8, G_WIDE = 32;                     // pixels that a block makes at a time, one row a warp
constexpr int G_ROW = G_WIDE + 2, G_PIXELS = (G_TALL + 2) * G_ROW;  // and those that it reads
static_assert(G_TALL == WARPS, "one row a warp");
constexpr int STEPS = TAPS * OUT / 16;                     // of 16 channels of gv, for gx

#ifdef TENSOR_CORES
// CHANNELS planes of the image at `from`, (height, width) pixels, in halves -> planes of 8 channels: first the upper
// halves of all, then, if BOTH, the lower ones. ROWS_ rows of COLUMNS_ pixels from (y0, x0), 0 beyond the edges.
template <int CHANNELS, int ROWS_, int COLUMNS_, bool BOTH>
__device__ __forceinline__ void bring(const float* from, uint4* to, int height, int width, int y0, int x0, float unit) {
    constexpr int PIXELS = ROWS_ * COLUMNS_;
    for (int i = threadIdx.x; i < PIXELS * (CHANNELS / 8); i += THREADS) {
        const int p = i % PIXELS, y = y0 + p / COLUMNS_, x = x0 + p % COLUMNS_;
        const bool inside = y >= 0 && y < height && x >= 0 && x < width;
        const float* at = from + ((size_t)(i / PIXELS * 8) * height + y) * width + x;
        float v[8];
#pragma unroll
        for (int c = 0; c < 8; ++c) v[c] = inside ? __ldg(at + (size_t)c * height * width) * unit : 0.0f;
        uint4 high, low;
        split(v[0], v[1], high.x, low.x);
        split(v[2], v[3], high.y, low.y);
        split(v[4], v[5], high.z, low.z);
        split(v[6], v[7], high.w, low.w);
        to[i] = high;
        if (BOTH) to[PIXELS * (CHANNELS / 8) + i] = low;
    }
}
#endif

// gx[n, c, y, x] = sum of gv[n, o, y - ky, x - kx] * weight[o, c, ky, kx]. largest: of each image's gv.
__global__ void __launch_bounds__(THREADS, 2)
gx_tensor_kernel(const float* gv, const float* weight, const float* largest, float* gx, Shape s) {
#ifdef TENSOR_CORES
    extern __shared__ __align__(16) unsigned char memory[];
    uint4* halves = reinterpret_cast<uint4*>(memory);  // (OUT / 8) planes of G_PIXELS pixels, twice
    __shared__ float warp_max[WARPS];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4, matrix = lane / 8;
    int weight_one;
    float most = 0.0f;
    for (int i = threadIdx.x; i < OUT * IN * TAPS; i += THREADS) most = fmaxf(most, fabsf(weight[i]));
    most = __uint_as_float(__reduce_max_sync(ALL_LANES, __float_as_uint(most)));
    if (lane == 0) warp_max[warp] = most;
    __syncthreads();  // all warps have written
    for (int i = 0; i < WARPS; ++i) most = fmaxf(most, warp_max[i]);
    const bool fits_weight = fits_halves(most, weight_one);
    const float weight_unit = fits_weight ? power_of_two(-weight_one) : 0.0f;

    // Step 2 k + i takes tap k and channels 16 i + 2 t, + 1, + 8, + 9 of gv. Lane: channel g of x.
    unsigned high[STEPS][2], low[SPLIT == 3 ? STEPS : 1][2];
#pragma unroll
    for (int k = 0; k < STEPS; ++k) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const float* w = weight + ((k % 2 * 16 + i * 8 + 2 * t) * IN + g) * TAPS + k / 2;
            unsigned h, l;
            split(w[0] * weight_unit, w[IN * TAPS] * weight_unit, h, l);
            high[k][i] = h;
            if (SPLIT == 3) low[k][i] = l;
        }
    }
    const int tiles_x = (s.W + G_WIDE - 1) / G_WIDE, tiles_y = (s.H + G_TALL - 1) / G_TALL;
    const unsigned base = (unsigned)__cvta_generic_to_shared(halves);
    constexpr int PLANE = G_PIXELS * 16, LOWER = OUT / 8 * PLANE;
    for (int64_t tile = blockIdx.x; tile < (int64_t)tiles_x * tiles_y * s.N; tile += gridDim.x) {
        const int64_t n = tile / (tiles_x * tiles_y);
        const int y0 = tile / tiles_x % tiles_y * G_TALL, x0 = tile % tiles_x * G_WIDE, y = y0 + warp;
        const float* image = gv + n * OUT * s.OH * s.OW;
        int one;
        const bool fit = fits_halves(largest[n], one) && fits_weight;
        float sum[2][4] = {};  // channels 2 t, 2 t + 1 at pixels 16 i + g (and + 8, last two)
        __syncthreads();  // nobody reads the last tile any more
        if (fit) {
            bring<OUT, G_TALL + 2, G_ROW, SPLIT == 3>(image, halves, s.OH, s.OW, y0 - 2, x0 - 2, power_of_two(-one));
        }
        __syncthreads();  // halves are complete
        if (fit) {
            // matrices: 8 pixels of 8 channels, 8 pixels more, and both of the next 8 channels
            const unsigned at = base + ((warp + 2) * G_ROW + 2 + lane % 8 + matrix % 2 * 8) * 16 + matrix / 2 * PLANE;
#pragma unroll
            for (int tap = 0; tap < TAPS; ++tap) {
#pragma unroll
                for (int i = 0; i < 2; ++i) {
#pragma unroll
                    for (int k = 2 * tap; k < 2 * tap + 2; ++k) {
                        const unsigned from = at - (tap / 3 * G_ROW + tap % 3) * 16 + k % 2 * 2 * PLANE + i * 256;
                        unsigned a[4];
                        load_matrices(a, from);
                        unsigned b[4];
                        if (SPLIT == 3) load_matrices(b, from + LOWER);
                        const int l = SPLIT == 3 ? k : 0;
                        float part[4];
                        if (SPLIT == 3) multiply_first(part, a, low[l][0], low[l][1]);
                        if (SPLIT == 3) multiply(part, b, high[k][0], high[k][1]);
                        finish_product(sum[i], part, a, high[k][0], high[k][1]);
                    }
                }
            }
        } else {
            for (int i = 0; i < 8; ++i) {
                const int c = 2 * t + i % 2, column = x0 + i / 4 * 16 + i % 4 / 2 * 8 + g;
                double slow = 0.0;
                for (int k = 0; k < OUT * TAPS; ++k) {
                    const int oy = y - k % TAPS / 3, ox = column - k % 3;
                    const bool inside = oy >= 0 && oy < s.OH && ox >= 0 && ox < s.OW;
                    const float w = weight[(k / TAPS * IN + c) * TAPS + k % TAPS];
                    if (inside) slow += (double)image[((size_t)(k / TAPS) * s.OH + oy) * s.OW + ox] * w;
                }
#pragma unroll
                for (int j = 0; j < 8; ++j) if (i == j) sum[j / 4][j % 4] = slow;
            }
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int c = 2 * t + i % 2, column = x0 + i / 4 * 16 + i % 4 / 2 * 8 + g;
            const float sum_of = sum[i / 4][i % 4];
            const float v = fit ? sum_of * power_of_two(one) * power_of_two(weight_one) : sum_of;
            if (y < s.H && column < s.W) gx[((n * IN + c) * s.H + y) * s.W + column] = v;
        }
    }
#endif
}

#ifdef TENSOR_CORES
// A warp's sums over two rows of a tile, as in total[TAPS][4] below, in double from global memory, for outliers,
// infinities and what else halves have no room for. gv, x: the image's.
__device__ __noinline__ void gweight_slowly(const float* gv, const float* x, int H, int W, int oy, int ox,
                                            float* sums) {
    const int lane = threadIdx.x % WARP, half = threadIdx.x / WARP % 2, OH = H - 2, OW = W - 2;
    const int rows = min(2, OH - oy), columns = min(G_WIDE, OW - ox);
#pragma unroll 1
    for (int i = 0; i < TAPS * 4; ++i) {
        const int o = half * 16 + lane / 4 + i % 4 / 2 * 8, c = 2 * (lane % 4) + i % 2;
        const float* of_gv = gv + ((size_t)o * OH + oy) * OW + ox;
        const float* of_x = x + ((size_t)c * H + oy + i / 12) * W + ox + i / 4 % 3;
        double sum = 0.0;
#pragma unroll 1
        for (int r = 0; r < rows; ++r) {
            for (int k = 0; k < columns; ++k) sum += (double)of_gv[r * OW + k] * of_x[r * W + k];
        }
        sums[i] = sum;
    }
}
#endif

// gweight[o, c, ky, kx] = sum of gv[n, o, oy, ox] * x[n, c, oy + ky, ox + kx]. Each block leaves its sum: (blocks, OUT,
// IN * TAPS). Warps: 16 channels of gv and two rows each. Three products of halves in both classes: eager has cuDNN sum
// these in float32 even where TF32 is allowed. largest: of each image's gv, and the weights' reach.
__global__ void __launch_bounds__(THREADS, 2)
gweight_tensor_kernel(const float* gv, const float* x, const float* largest, float* parts, Shape s) {
#ifdef TENSOR_CORES
    extern __shared__ __align__(16) unsigned char memory[];
    constexpr int PIXELS = G_TALL * G_WIDE, PLANE = PIXELS * 16, LOWER = OUT / 8 * PLANE, X_LOWER = G_PIXELS * 16;
    constexpr int ROUNDS = (G_PIXELS + THREADS - 1) / THREADS;  // pixels of x that a thread brings
    uint4* gv_halves = reinterpret_cast<uint4*>(memory);
    uint4* x_halves = gv_halves + 2 * LOWER / 16;
    float* sums = reinterpret_cast<float*>(memory);  // of two warps at a time, at the end
    __shared__ float warp_max[WARPS];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4, matrix = lane / 8;
    const int half = warp % 2, row = warp / 2 * 2;
    const int tiles_x = (s.OW + G_WIDE - 1) / G_WIDE, tiles_y = (s.OH + G_TALL - 1) / G_TALL;
    const int64_t tiles = (int64_t)tiles_x * tiles_y * s.N;
    const unsigned base = (unsigned)__cvta_generic_to_shared(gv_halves);
    const unsigned x_base = (unsigned)__cvta_generic_to_shared(x_halves);
    float total[TAPS][4] = {};  // channels 16 half + g (and + 8, last two) of gv, 2 t and 2 t + 1 of x
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int64_t n = tile / (tiles_x * tiles_y);
        const int y0 = tile / tiles_x % tiles_y * G_TALL, x0 = tile % tiles_x * G_WIDE;
        const float *image = gv + n * OUT * s.OH * s.OW, *x_image = x + n * IN * s.H * s.W;
        float pixel[ROUNDS][IN], seen[ROUNDS], most = 0.0f;
#pragma unroll
        for (int k = 0; k < ROUNDS; ++k) {
            const int p = k * THREADS + threadIdx.x, y = y0 + p / G_ROW, column = x0 + p % G_ROW;
            const bool inside = p < G_PIXELS && y < s.H && column < s.W;
            seen[k] = 0.0f;
#pragma unroll
            for (int c = 0; c < IN; ++c) {
                pixel[k][c] = inside ? __ldg(x_image + ((size_t)c * s.H + y) * s.W + column) : 0.0f;
                seen[k] = fmaxf(seen[k], fabsf(pixel[k][c]));
            }
            most = fmaxf(most, seen[k]);
        }
        most = __uint_as_float(__reduce_max_sync(ALL_LANES, __float_as_uint(most)));
        if (lane == 0) warp_max[warp] = most;
        __syncthreads();  // all have measured, and nobody reads the last tile any more
#pragma unroll
        for (int i = 0; i < WARPS; ++i) most = fmaxf(most, warp_max[i]);
        int one, x_one;
        const bool fits_gv = fits_halves(largest[n], one);
        bool fit = fits_halves(most, x_one) && fits_gv;
        if (fit && !(most * largest[s.N] <= ENOUGH)) {
            bool cut = false;
#pragma unroll
            for (int k = 0; k < ROUNDS; ++k) cut = cut || may_cut(most, seen[k]);
            fit = !__syncthreads_or(cut);
        }
        if (fit) {
            const float x_unit = power_of_two(-x_one);
#pragma unroll
            for (int k = 0; k < ROUNDS; ++k) {
                const int p = k * THREADS + threadIdx.x;
                uint4 high, low;
                split(pixel[k][0] * x_unit, pixel[k][1] * x_unit, high.x, low.x);
                split(pixel[k][2] * x_unit, pixel[k][3] * x_unit, high.y, low.y);
                split(pixel[k][4] * x_unit, pixel[k][5] * x_unit, high.z, low.z);
                split(pixel[k][6] * x_unit, pixel[k][7] * x_unit, high.w, low.w);
                if (p < G_PIXELS) x_halves[p] = high, x_halves[G_PIXELS + p] = low;
            }
            bring<OUT, G_TALL, G_WIDE, true>(image, gv_halves, s.OH, s.OW, y0, x0, power_of_two(-one));
        }
        __syncthreads();  // halves are complete
        if (!fit) {
            float slow[TAPS * 4];
            gweight_slowly(image, x_image, s.H, s.W, y0 + row, x0, slow);
#pragma unroll
            for (int i = 0; i < TAPS * 4; ++i) total[i / 4][i % 4] += slow[i];
            continue;
        }
        const float back = power_of_two(one) * power_of_two(x_one);
#pragma unroll
        for (int j = 0; j < 4; ++j) {  // 16 pixels
            const int y = row + j / 2, x1 = j % 2 * 16;
            // gv, transposed: 8 channels at 8 pixels, 8 channels more, and both at the next 8 pixels
            const int pixel = y * G_WIDE + x1 + lane % 8 + matrix / 2 * 8;
            const unsigned at = base + (half * 2 + matrix % 2) * PLANE + pixel * 16;
            unsigned a[4], a_low[4];
            load_transposed(a, at);
            load_transposed(a_low, at + LOWER);
            // x, transposed: 8 pixels, 8 more, and the lower halves of both
            const int x_pixel = y * G_ROW + x1 + lane % 8 + matrix % 2 * 8;
            const unsigned x_at = x_base + x_pixel * 16 + matrix / 2 * X_LOWER;
#pragma unroll
            for (int k = 0; k < TAPS; ++k) {
                unsigned b[4];
                load_transposed(b, x_at + (k / 3 * G_ROW + k % 3) * 16);
                float part[4];  // tensor cores cut their sums, float32 rounds
                multiply_first(part, a_low, b[0], b[1]);
                multiply(part, a, b[2], b[3]);
                multiply(part, a, b[0], b[1]);
                add(total[k], part, back);
            }
        }
    }
    for (int r = 0; r < G_TALL; r += 2) {  // rows' sums, one after another
        __syncthreads();
        if (row == r) {
#pragma unroll
            for (int i = 0; i < 4 * TAPS; ++i) {
                const int o = half * 16 + g + i % 4 / 2 * 8, c = 2 * t + i % 2;
                float& at = sums[(o * IN + c) * TAPS + i / 4];
                at = (r > 0 ? at : 0.0f) + total[i / 4][i % 4];
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < OUT * IN * TAPS; i += THREADS) {
        parts[(int64_t)blockIdx.x * OUT * IN * TAPS + i] = sums[i];
    }
#endif
}

// ---- any shape, any GPU: step 4's kernels ----

namespace general {

constexpr int DOWN = 4;                            // pixels below each other that a thread makes ...
constexpr int OUT = 8;                             // ... in so many channels, two float4
constexpr int IN = 8;                              // channels of x that are in shared memory at a time
constexpr int TILE_X = 32, WARPS = 4, TILE_Y = WARPS * DOWN;  // pixels that a block makes
constexpr int64_t MAX_GRID_Y = 65535;

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

// sigmoid(v). exp may overflow to infinity: 1 / infinity is the 0 that is meant.
__device__ float sigmoid(float v) {
    return 1.0f / (1.0f + expf(-v));
}

// x, weight, conv_bias, bias, scale (OC) -> y: sigmoid((convolution + bias) * scale); moments (N, OC, parts): of each
// warp's pixels, for every channel, with a part for each warp of a tile. A block makes one tile in every channel.
template <int K>
__global__ void __launch_bounds__(TILE_X * WARPS)
conv_sigmoid_moments_kernel(const float* x, const float* weight, const float* conv_bias, const float* bias,
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
    const int64_t pixels = (int64_t)s.OH * s.OW;
    const int parts = s.tiles_x * s.tiles_y * WARPS;
    x += n * s.C * s.H * s.W;
    y += n * s.OC * pixels + (int64_t)oy * s.OW + ox;
    moments += n * s.OC * parts + blockIdx.x % (s.tiles_x * s.tiles_y) * WARPS + threadIdx.y;

    for (int first = 0; first < s.OC; first += OUT) {
        float sum[DOWN][OUT];
        convolve<K>(x, weight, conv_bias, s, y0, x0, first, sum);
#pragma unroll
        for (int o = 0; o < OUT; ++o) {
            if (first + o >= s.OC) break;
            const float b = bias[first + o], factor = scale[first + o];
#pragma unroll
            for (int d = 0; d < DOWN; ++d) {
                sum[d][o] = sigmoid((sum[d][o] + b) * factor);
                if (inside[d]) y[d * s.OW] = sum[d][o];
            }
            const Moments m = moments_of_warp(sum, o, inside, count, part);
            if (threadIdx.x == 0) *moments = m;
            moments += parts;  // of the next channel
            y += pixels;
        }
    }
}

// One block a group: moments (groups of all images, count) -> means (groups): mean, rstd = 1 / sqrt(variance + eps).
__global__ void merge_kernel(const Moments* moments, float2* means, int64_t count, float eps) {
    moments += blockIdx.x * count;
    WideMoments m = {0.0, 0.0, 0.0};
    for (int64_t i = threadIdx.x; i < count; i += THREADS) {
        m = merged(m, {moments[i].count, moments[i].mean, moments[i].squares});
    }
    m = block_merged(m);
    if (threadIdx.x > 0) return;
    const float variance = m.squares < 0.0 ? 0.0 : m.squares / m.count;  // fmax would hide a NaN
    means[blockIdx.x] = make_float2(m.mean, 1.0f / sqrtf(variance + eps));
}

// y = (y - mean) * rstd * weight + bias, in place, for y (N, C, pixels). blockIdx.x is the plane
// n * C + c; the threads of all its blocks (blockIdx.y) walk over its pixels side by side, VECTOR at a time.
template <int VECTOR>
__global__ void __launch_bounds__(THREADS)
normalise_kernel(float* y, const float2* means, const float* weight, const float* bias, int C, int channels_a_group,
                 int64_t pixels) {
    const int c = blockIdx.x % C;
    const int group = blockIdx.x / channels_a_group;  // over all images, as C is a whole number of groups
    const float m = means[group].x, f = means[group].y * weight[c], b = bias[c];
    y += blockIdx.x * pixels;
    const int64_t step = (int64_t)gridDim.y * THREADS * VECTOR;
    for (int64_t p = ((int64_t)blockIdx.y * THREADS + threadIdx.x) * VECTOR; p < pixels; p += step) {
        if constexpr (VECTOR == 4) {
            float4* at = reinterpret_cast<float4*>(y + p);
            const float4 v = *at;
            *at = {(v.x - m) * f + b, (v.y - m) * f + b, (v.z - m) * f + b, (v.w - m) * f + b};
        } else {
            y[p] = (y[p] - m) * f + b;
        }
    }
}

}  // namespace general

// ---- backward of any shape, on any GPU ----

namespace general {

// What conv_sigmoid_moments_kernel makes before the sigmoid: v = convolution + both biases.
template <int K>
__global__ void __launch_bounds__(TILE_X * WARPS)
values_kernel(const float* x, const float* weight, const float* conv_bias, const float* bias, float* v, Shape s) {
    const int x0 = blockIdx.x % s.tiles_x * TILE_X, y0 = blockIdx.x / s.tiles_x % s.tiles_y * TILE_Y;
    const int64_t n = blockIdx.x / s.tiles_x / s.tiles_y;
    const int ox = x0 + threadIdx.x, oy = y0 + threadIdx.y * DOWN;
    const int64_t pixels = (int64_t)s.OH * s.OW;
    x += n * s.C * s.H * s.W;
    v += n * s.OC * pixels + (int64_t)oy * s.OW + ox;
    for (int first = 0; first < s.OC; first += OUT) {
        float sum[DOWN][OUT];
        convolve<K>(x, weight, conv_bias, s, y0, x0, first, sum);
#pragma unroll
        for (int o = 0; o < OUT; ++o, v += pixels) {
            if (first + o >= s.OC) break;
#pragma unroll
            for (int d = 0; d < DOWN; ++d) {
                if (ox < s.OW && oy + d < s.OH) v[d * s.OW] = sum[d][o] + bias[first + o];
            }
        }
    }
}

// Sum of every thread's v, returned to every thread of the block. All of them must call it.
__device__ float block_sum(float v) {
    __shared__ float of_warp[THREADS / WARP];
    v = warp_sum(v);
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = v;
    __syncthreads();  // all warps have written
    float sum = 0.0f;
    for (int warp = 0; warp < THREADS / WARP; ++warp) sum += of_warp[warp];
    __syncthreads();  // all have read: the next call may write
    return sum;
}

// One block a plane n * OC + c: gy, v (N, OC, pixels) -> the plane's sums of gy and of gy * sh, both (N, OC). means
// (groups of all images): mean and rstd.
__global__ void plane_sums_kernel(const float* gy, const float* v, const float2* means, const float* scale,
                                  float* plain, float* weighted, int OC, int channels_a_group, int64_t pixels) {
    const float2 m = means[blockIdx.x / channels_a_group];
    const float factor = scale[blockIdx.x % OC];
    gy += blockIdx.x * pixels;
    v += blockIdx.x * pixels;
    float sum = 0.0f, products = 0.0f;
    for (int64_t p = threadIdx.x; p < pixels; p += THREADS) {
        sum += gy[p];
        products += gy[p] * ((sigmoid(v[p] * factor) - m.x) * m.y);
    }
    sum = block_sum(sum);
    products = block_sum(products);
    if (threadIdx.x == 0) {
        plain[blockIdx.x] = sum;
        weighted[blockIdx.x] = products;
    }
}

// One thread a group of an image: terms: a and b, the group's means of weight * gy and of weight * gy * sh.
__global__ void group_means_kernel(const float* plain, const float* weighted, const float* weight, float2* terms,
                                   int64_t groups_of_all_images, int OC, int channels_a_group, int64_t pixels) {
    const int64_t group = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (group >= groups_of_all_images) return;
    float sum = 0.0f, products = 0.0f;
    for (int64_t plane = group * channels_a_group; plane < (group + 1) * channels_a_group; ++plane) {
        sum += weight[plane % OC] * plain[plane];
        products += weight[plane % OC] * weighted[plane];
    }
    const float part = 1.0f / ((float)channels_a_group * pixels);
    terms[group] = make_float2(sum * part, products * part);
}

// One block a plane: gv, in v's place, and the plane's sums of gv and of gq * v, total and total_scale (N, OC).
__global__ void gv_kernel(const float* gy, float* v, const float2* means, const float2* terms, const float* scale,
                          const float* gn_weight, float* total, float* total_scale, int OC, int channels_a_group,
                          int64_t pixels) {
    const int c = blockIdx.x % OC;
    const float2 m = means[blockIdx.x / channels_a_group], ab = terms[blockIdx.x / channels_a_group];
    const float a = ab.x * m.y, b = ab.y * m.y * m.y, factor = scale[c], gamma = gn_weight[c] * m.y;
    gy += blockIdx.x * pixels;
    v += blockIdx.x * pixels;
    float sum = 0.0f, products = 0.0f;
    for (int64_t p = threadIdx.x; p < pixels; p += THREADS) {
        const float value = v[p], s = sigmoid(value * factor);
        const float gs = gy[p] * gamma - (a + (s - m.x) * b), gq = gs * s * (1.0f - s);
        v[p] = gq * factor;
        sum += gq * factor;
        products += gq * value;
    }
    sum = block_sum(sum);
    products = block_sum(products);
    if (threadIdx.x == 0) {
        total[blockIdx.x] = sum;
        total_scale[blockIdx.x] = products;
    }
}

// gv (N, OC, OH, OW), weight (OC, C, KH, KW) -> gx (N, C, H, W), `total` elements.
__global__ void gx_kernel(const float* gv, const float* weight, float* gx, int64_t total, Shape s) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    const int ix = i % s.W, iy = i / s.W % s.H, c = i / s.W / s.H % s.C;
    const int64_t n = i / s.W / s.H / s.C;
    float sum = 0.0f;
    for (int oc = 0; oc < s.OC; ++oc) {
        float part = 0.0f;  // a channel's: long sums round less in two steps
        for (int ky = 0; ky < s.KH; ++ky) {
            const int oy = iy - ky;  // the window that has this pixel in its row ky
            if (oy < 0 || oy >= s.OH) continue;
            const float* gv_row = gv + ((n * s.OC + oc) * s.OH + oy) * s.OW;
            const float* w_row = weight + (((int64_t)oc * s.C + c) * s.KH + ky) * s.KW;
            for (int kx = 0; kx < s.KW; ++kx) {
                const int ox = ix - kx;
                if (ox >= 0 && ox < s.OW) part += gv_row[ox] * w_row[kx];
            }
        }
        sum += part;
    }
    gx[i] = sum;
}

// Stage 1 of gweight, one warp for each of `weights` elements and each row blockIdx.y of parts (rows, weights). Row r
// has images r, r + rows, r + 2 * rows, ... : one image a row, unless there are more images than a grid may have rows.
__global__ void weight_parts_kernel(const float* gv, const float* x, float* parts, int64_t N, int64_t weights,
                                    Shape s) {
    const int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / WARP;  // this warp's element of weight
    const int lane = threadIdx.x % WARP;
    if (i >= weights) return;  // all lanes together
    const int kx = i % s.KW, ky = i / s.KW % s.KH, c = i / s.KW / s.KH % s.C, oc = i / s.KW / s.KH / s.C;
    float sum = 0.0f;
    for (int64_t n = blockIdx.y; n < N; n += gridDim.y) {
        const float* gv_plane = gv + (n * s.OC + oc) * s.OH * s.OW;
        const float* x_plane = x + (n * s.C + c) * s.H * s.W + (int64_t)ky * s.W + kx;
        for (int p = lane; p < s.OH * s.OW; p += WARP) {
            sum += gv_plane[p] * x_plane[(int64_t)(p / s.OW) * s.W + p % s.OW];
        }
    }
    sum = warp_sum(sum);
    if (lane == 0) parts[blockIdx.y * weights + i] = sum;
}

}  // namespace general

// ---- launches ----

// Whether what runs on this GPU was compiled with tensor cores' instructions.
static bool has_tensor_cores() {
    int device = 0, major = 0, minor = 0, arch = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
#if defined(__CUDA_ARCH_LIST__)
    for (const int compiled : {__CUDA_ARCH_LIST__}) {
        if (compiled <= major * 100 + minor * 10) arch = std::max(arch, compiled);
    }
#elif defined(__CUDA_ARCH__)
    arch = std::min(__CUDA_ARCH__, major * 100 + minor * 10);  // compiled for a CPU
#endif
    return arch >= 800;
}

static int multiprocessors() {
    int device = 0, count = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
    return count;
}

struct Plan {
    enum { IMAGE, TILES, GENERAL } kernels;
    int64_t parts, floats;  // of the workspace: elements before the last array, and all
    int64_t tiles_x, tiles_y, teams;
};

// How many blocks of a kernel, or of one that needs no more, the GPU holds at a time: 0 where it has too little shared
// memory.
template <typename Kernel>
static int64_t resident_blocks(Kernel kernel, int bytes) {
    int blocks = 0;
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) != cudaSuccess ||
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, THREADS, bytes) != cudaSuccess) {
        cudaGetLastError();  // no error of ours
        return 0;
    }
    return (int64_t)blocks * multiprocessors();
}

// Whether blocks may wait for each other. On a CPU they run one after another, until a barrier.
#ifdef __CUDA_ARCH_LIST__
constexpr bool BLOCKS_WAIT = true;
#else
constexpr bool BLOCKS_WAIT = false;
#endif

static Plan plan(int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC, int64_t KH, int64_t KW, int64_t groups) {
    Plan p = {};
    const int64_t OH = H - KH + 1, OW = W - KW + 1;
    if (C == IN && OC == OUT && KH == 3 && KW == 3 && has_tensor_cores()) {
        const int64_t resident = resident_blocks(image_kernel, sizeof(Shared));
        p.tiles_x = (OW + COLUMNS - 1) / COLUMNS;
        p.tiles_y = (OH + ROWS - 1) / ROWS;
        p.teams = std::min(N, resident / p.tiles_y);
        if (resident > 0) {
            // Room for the tiles also where the image stays on the chip: x may be a view that begins anywhere.
            p.parts = N * OUT * p.tiles_y * p.tiles_x * 2;
            p.floats = p.parts + N * OUT * 2;
            const bool whole = BLOCKS_WAIT && p.teams > 0 && p.tiles_x == 1 && H % 2 == 0 && W % 2 == 0;
            p.kernels = whole && groups <= QUADS ? Plan::IMAGE : Plan::TILES;
            return p;
        }
    }
    p.kernels = Plan::GENERAL;
    p.tiles_x = (OW + general::TILE_X - 1) / general::TILE_X;
    p.tiles_y = (OH + general::TILE_Y - 1) / general::TILE_Y;
    p.parts = N * OC * p.tiles_x * p.tiles_y * general::WARPS * 3;
    p.floats = p.parts;
    return p;
}

// Floats that a launch needs for itself.
int64_t conv_sigmoid_groupnorm_workspace(int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC, int64_t KH, int64_t KW,
                                         int64_t groups) {
    return plan(N, C, H, W, OC, KH, KW, groups).floats;
}

// Returns what went wrong, or null. Every tensor is contiguous, the workspace aligned to 16 bytes, y not empty.
// means (N, groups, 2): each group's mean and rstd.
const char* conv_sigmoid_groupnorm_launch(const float* x, const float* conv_weight, const float* conv_bias,
                                          const float* bias, const float* scale, const float* gn_weight,
                                          const float* gn_bias, float* y, float* means_of_groups, float* workspace,
                                          int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC, int64_t KH,
                                          int64_t KW, int64_t groups, double epsilon, void* stream_of_torch) {
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of_torch);
    float2* means = reinterpret_cast<float2*>(means_of_groups);
    float eps = epsilon;
    const int64_t OH = H - KH + 1, OW = W - KW + 1, pixels = OH * OW;
    Plan p = plan(N, C, H, W, OC, KH, KW, groups);
    Shape s = {(int)N, (int)H, (int)W, (int)OH, (int)OW, (int)groups, (int)p.tiles_x, (int)p.tiles_y};
    cudaError_t error = cudaSuccess;
    if (p.kernels == Plan::IMAGE && reinterpret_cast<uintptr_t>(x) % 16 == 0) {
        int teams = p.teams;
        void* parts = workspace;
        error = cudaMemsetAsync(parts, 0xff, N * QUADS * p.tiles_y * sizeof(float2), stream);
        if (error != cudaSuccess) return cudaGetErrorString(error);
        // Cooperative: blocks that wait for each other must all be resident, also where two streams want the GPU.
        void* arguments[] = {&x, &conv_weight, &conv_bias, &bias, &scale, &gn_weight, &gn_bias, &parts, &y, &means,
                             &s, &teams, &eps};
        error = cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(image_kernel), dim3(teams * p.tiles_y),
                                            dim3(THREADS), arguments, sizeof(Shared), stream);
        return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
    }
    if (p.kernels != Plan::GENERAL) {
        float2* parts = reinterpret_cast<float2*>(workspace);
        float2* lines = reinterpret_cast<float2*>(workspace + p.parts);
        const int64_t grid = std::min<int64_t>(N * p.tiles_x * p.tiles_y, 2 * multiprocessors());
        for (const auto kernel : {tiles_kernel<false>, tiles_kernel<true>}) {
            error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
            if (error != cudaSuccess) return cudaGetErrorString(error);
        }
        tiles_kernel<false><<<grid, THREADS, sizeof(Shared), stream>>>(
            x, conv_weight, conv_bias, bias, scale, nullptr, parts, nullptr, s);
        lines_kernel<<<N * groups, THREADS, 0, stream>>>(
            parts, gn_weight, gn_bias, lines, means, s, eps);
        tiles_kernel<true><<<grid, THREADS, sizeof(Shared), stream>>>(
            x, conv_weight, conv_bias, bias, scale, lines, nullptr, y, s);
        error = cudaGetLastError();
        return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
    }

    if (N * p.tiles_x * p.tiles_y > INT_MAX) return "the output has more than 2^31 - 1 tiles";
    const general::Shape g = {(int)C,  (int)H,  (int)W,  (int)OC,        (int)KH,
                              (int)KW, (int)OH, (int)OW, (int)p.tiles_x, (int)p.tiles_y};
    Moments* moments = reinterpret_cast<Moments*>(workspace);
    const bool three = KH == 3 && KW == 3;
    const auto conv = three ? general::conv_sigmoid_moments_kernel<3> : general::conv_sigmoid_moments_kernel<0>;
    conv<<<N * p.tiles_y * p.tiles_x, dim3(general::TILE_X, general::WARPS), 0, stream>>>(
        x, conv_weight, conv_bias, bias, scale, y, moments, g);
    general::merge_kernel<<<N * groups, THREADS, 0, stream>>>(
        moments, means, OC / groups * p.tiles_x * p.tiles_y * general::WARPS, eps);
    // About 16 pixels a thread. Four neighbours are one float4 only if every plane begins at a multiple of 16 bytes.
    const int64_t blocks_a_plane = std::min((pixels + 16 * THREADS - 1) / (16 * THREADS), general::MAX_GRID_Y);
    const auto normalise = pixels % 4 == 0 ? general::normalise_kernel<4> : general::normalise_kernel<1>;
    normalise<<<dim3(N * OC, blocks_a_plane), THREADS, 0, stream>>>(
        y, means, gn_weight, gn_bias, OC, OC / groups, pixels);
    error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

// ---- backward's launches ----

struct BackwardPlan {
    enum { IMAGE, TILES, GENERAL } kernels;
    int64_t tiles_x, tiles_y, teams;
    int64_t gradient_blocks, blocks;               // of TILES
    int64_t parts, first, second, terms, largest;  // where arrays begin in the workspace
    int64_t weights, rows, edges, packed, floats;
};

static int64_t aligned(int64_t floats) {
    return (floats + 3) / 4 * 4;
}

static BackwardPlan backward_plan(int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC, int64_t KH, int64_t KW,
                                  int64_t groups, bool sixteens) {
    BackwardPlan p = {};
    const int64_t OH = H - KH + 1, OW = W - KW + 1;
    if (C == IN && OC == OUT && KH == 3 && KW == 3 && has_tensor_cores()) {
        const int64_t resident = resident_blocks(image_gradients_kernel, sizeof(GradientShared));
        p.tiles_x = (OW + COLUMNS - 1) / COLUMNS;
        p.tiles_y = (OH + ROWS - 1) / ROWS;
        p.teams = std::min(N, resident / p.tiles_y);
        if (sixteens && BLOCKS_WAIT && p.teams > 0 && p.tiles_x == 1 && H % 2 == 0 && W % 2 == 0 && groups <= QUADS) {
            p.kernels = BackwardPlan::IMAGE;
            p.edges = aligned(N * QUADS * p.tiles_y * 2);  // after the parts; both are NOT_YET at first
            p.rows = p.edges + p.teams * p.tiles_y * EDGES * THREADS * 2;
            p.packed = p.rows + p.teams * p.tiles_y * OUT * SUMS;
            p.floats = p.packed + sizeof(Packed) / 4;
            return p;
        }
        if (resident > 0) {
            p.kernels = BackwardPlan::TILES;
            p.gradient_blocks = std::min<int64_t>(N * p.tiles_x * p.tiles_y, 2 * multiprocessors());
            p.blocks = std::min<int64_t>(N * ((H + G_TALL - 1) / G_TALL) * ((W + G_WIDE - 1) / G_WIDE),
                                         2 * multiprocessors());
            p.parts = aligned(N * OUT * OH * OW);  // after gv
            p.first = p.parts + N * OUT * p.tiles_x * p.tiles_y * 3;
            p.second = p.first + N * OUT;
            p.terms = p.second + N * OUT;
            p.largest = p.terms + N * groups * 2;
            p.weights = p.largest + N + 1;
            p.floats = p.weights + p.blocks * OUT * IN * TAPS;
            return p;
        }
    }
    p.kernels = BackwardPlan::GENERAL;
    p.tiles_x = (OW + general::TILE_X - 1) / general::TILE_X;
    p.tiles_y = (OH + general::TILE_Y - 1) / general::TILE_Y;
    p.rows = std::min(N, general::MAX_GRID_Y);
    p.terms = aligned(N * OC * OH * OW);  // after v
    p.first = p.terms + N * groups * 2;
    p.second = p.first + N * OC;
    p.weights = p.second + N * OC;
    p.floats = p.weights + p.rows * OC * C * KH * KW;
    return p;
}

// Floats that a launch needs for itself.
int64_t conv_sigmoid_groupnorm_backward_workspace(int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC, int64_t KH,
                                                  int64_t KW, int64_t groups, bool sixteens) {
    return backward_plan(N, C, H, W, OC, KH, KW, groups, sixteens).floats;
}

// What a launch reads and writes: see the binding. gx and gweight may be null.
struct Tensors {
    const float *x, *gy, *weight, *conv_bias, *bias, *scale, *gn_weight;
    const float2* means;
    float *gx, *gweight, *gconv_bias, *gscale, *ggn_weight, *ggn_bias, *workspace;
};

static cudaError_t launch_image(const Tensors& t, const BackwardPlan& p, Shape s, cudaStream_t stream) {
    float* w = t.workspace;
    Packed* packed = reinterpret_cast<Packed*>(w + p.packed);
    unsigned long long* parts = reinterpret_cast<unsigned long long*>(w);
    unsigned long long* edges = reinterpret_cast<unsigned long long*>(w + p.edges);
    int teams = p.teams;
    float* rows = w + p.rows;
    const int64_t blocks = p.teams * p.tiles_y;
    cudaError_t error = cudaMemsetAsync(w, 0xff, p.rows * sizeof(float), stream);
    if (error != cudaSuccess) return error;
    pack_kernel<<<1, THREADS, 0, stream>>>(t.weight, t.conv_bias, t.bias, t.scale, packed);
    // Cooperative: blocks that wait for each other must all be resident.
    Tensors u = t;
    void* arguments[] = {&u.x, &u.gy, &u.weight, &u.scale, &u.gn_weight, &u.means, &packed, &parts, &edges,
                         &u.gx, &rows, &s, &teams};
    error = cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(image_gradients_kernel), dim3(blocks),
                                        dim3(THREADS), arguments, sizeof(GradientShared), stream);
    if (error != cudaSuccess) return error;
    finish_kernel<<<OUT, THREADS, 0, stream>>>(rows, blocks, packed, t.weight, t.conv_bias, t.bias, t.scale, t.gweight,
                                               t.gconv_bias, t.gscale, t.ggn_weight, t.ggn_bias);
    return cudaGetLastError();
}

static cudaError_t launch_tiles(const Tensors& t, const BackwardPlan& p, const Shape& s, cudaStream_t stream) {
    const int64_t N = s.N, groups = s.groups;
    float *gv = t.workspace, *first = gv + p.first, *second = gv + p.second;
    float *largest = gv + p.largest, *weights = gv + p.weights;
    Part* parts = reinterpret_cast<Part*>(gv + p.parts);
    float2* terms = reinterpret_cast<float2*>(gv + p.terms);
    constexpr int GX_BYTES = 2 * OUT / 8 * G_PIXELS * 16;
    constexpr int GWEIGHT_BYTES = 2 * OUT / 8 * G_TALL * G_WIDE * 16 + 2 * G_PIXELS * 16;
    static_assert(GWEIGHT_BYTES >= OUT * IN * TAPS * 4, "the sums have room");
    constexpr auto BYTES = cudaFuncAttributeMaxDynamicSharedMemorySize;
    cudaError_t error = cudaFuncSetAttribute(gradient_kernel<false>, BYTES, sizeof(Shared));
    if (error == cudaSuccess) error = cudaFuncSetAttribute(gradient_kernel<true>, BYTES, sizeof(Shared));
    if (error == cudaSuccess) error = cudaFuncSetAttribute(gx_tensor_kernel, BYTES, GX_BYTES);
    if (error == cudaSuccess) error = cudaFuncSetAttribute(gweight_tensor_kernel, BYTES, GWEIGHT_BYTES);
    if (error != cudaSuccess) return error;

    gradient_kernel<false><<<p.gradient_blocks, THREADS, sizeof(Shared), stream>>>(
        t.x, t.gy, t.weight, t.conv_bias, t.bias, t.scale, t.gn_weight, t.means, nullptr, parts, nullptr, s);
    group_sums_kernel<false><<<N * groups, THREADS, 0, stream>>>(parts, t.gn_weight, first, second, terms, s);
    columns_kernel<<<OUT / WARPS, THREADS, 0, stream>>>(first, t.ggn_bias, N, OUT);
    columns_kernel<<<OUT / WARPS, THREADS, 0, stream>>>(second, t.ggn_weight, N, OUT);
    gradient_kernel<true><<<p.gradient_blocks, THREADS, sizeof(Shared), stream>>>(
        t.x, t.gy, t.weight, t.conv_bias, t.bias, t.scale, t.gn_weight, t.means, terms, parts, gv, s);
    group_sums_kernel<true><<<N * groups, THREADS, 0, stream>>>(parts, t.gn_weight, first, second, terms, s);
    columns_kernel<<<OUT / WARPS, THREADS, 0, stream>>>(first, t.gconv_bias, N, OUT);
    columns_kernel<<<OUT / WARPS, THREADS, 0, stream>>>(second, t.gscale, N, OUT);
    largest_kernel<<<1, THREADS, 0, stream>>>(terms, t.weight, t.scale, largest, N, groups);
    if (t.gx != nullptr) gx_tensor_kernel<<<p.blocks, THREADS, GX_BYTES, stream>>>(gv, t.weight, largest, t.gx, s);
    if (t.gweight != nullptr) {
        gweight_tensor_kernel<<<p.blocks, THREADS, GWEIGHT_BYTES, stream>>>(gv, t.x, largest, weights, s);
        columns_kernel<<<OUT * IN * TAPS / WARPS, THREADS, 0, stream>>>(weights, t.gweight, p.blocks, OUT * IN * TAPS);
    }
    return cudaGetLastError();
}

static const char* launch_general(const Tensors& t, const BackwardPlan& p, int64_t N, const general::Shape& s,
                                  int64_t groups, cudaStream_t stream) {
    using namespace general;
    const int64_t OC = s.OC, pixels = (int64_t)s.OH * s.OW, weights = OC * s.C * s.KH * s.KW;
    const int64_t elements = N * s.C * s.H * s.W, channels = OC / groups;
    if (elements > (int64_t)INT_MAX * ::THREADS) return "x has more elements than a grid has threads";
    if (weights > (int64_t)INT_MAX * ::WARPS) return "the weight has more elements than a grid has warps";
    if (N * s.tiles_x * s.tiles_y > INT_MAX) return "the output has more than 2^31 - 1 tiles";
    float *v = t.workspace, *first = v + p.first, *second = v + p.second, *parts = v + p.weights;
    float2* terms = reinterpret_cast<float2*>(v + p.terms);
    const auto blocks_for = [](int64_t count, int64_t each) { return (unsigned)((count + each - 1) / each); };
    const auto sum = [&](const float* rows, float* sums, int64_t count, int64_t columns) {
        columns_kernel<<<blocks_for(columns, ::WARPS), ::THREADS, 0, stream>>>(rows, sums, count, columns);
    };
    const auto values = s.KH == 3 && s.KW == 3 ? values_kernel<3> : values_kernel<0>;
    values<<<N * s.tiles_y * s.tiles_x, dim3(TILE_X, general::WARPS), 0, stream>>>(t.x, t.weight, t.conv_bias, t.bias,
                                                                                   v, s);
    plane_sums_kernel<<<N * OC, ::THREADS, 0, stream>>>(t.gy, v, t.means, t.scale, first, second, OC, channels, pixels);
    group_means_kernel<<<blocks_for(N * groups, ::THREADS), ::THREADS, 0, stream>>>(first, second, t.gn_weight, terms,
                                                                                    N * groups, OC, channels, pixels);
    sum(first, t.ggn_bias, N, OC);
    sum(second, t.ggn_weight, N, OC);
    gv_kernel<<<N * OC, ::THREADS, 0, stream>>>(t.gy, v, t.means, terms, t.scale, t.gn_weight, first, second, OC,
                                                channels, pixels);
    sum(first, t.gconv_bias, N, OC);
    sum(second, t.gscale, N, OC);
    if (t.gx != nullptr) {
        gx_kernel<<<blocks_for(elements, ::THREADS), ::THREADS, 0, stream>>>(v, t.weight, t.gx, elements, s);
    }
    if (t.gweight != nullptr) {
        weight_parts_kernel<<<dim3(blocks_for(weights, ::WARPS), p.rows), ::THREADS, 0, stream>>>(v, t.x, parts, N,
                                                                                                   weights, s);
        sum(parts, t.gweight, p.rows, weights);
    }
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

// Returns what went wrong, or null. Every tensor is contiguous, the workspace aligned to 16 bytes, gy not empty. means
// (N, groups, 2): forward's. gconv_bias is the gradient of bias as well. gx and gweight may be null.
const char* conv_sigmoid_groupnorm_backward_launch(
    const float* x, const float* gy, const float* weight, const float* conv_bias, const float* bias, const float* scale,
    const float* gn_weight, const float* means, float* gx, float* gweight, float* gconv_bias, float* gscale,
    float* ggn_weight, float* ggn_bias, float* workspace, int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC,
    int64_t KH, int64_t KW, int64_t groups, bool sixteens, void* stream_of_torch) {
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of_torch);
    const BackwardPlan p = backward_plan(N, C, H, W, OC, KH, KW, groups, sixteens);
    const int OH = H - KH + 1, OW = W - KW + 1;
    const Tensors t = {x, gy, weight, conv_bias, bias, scale, gn_weight, reinterpret_cast<const float2*>(means),
                       gx, gweight, gconv_bias, gscale, ggn_weight, ggn_bias, workspace};
    const Shape s = {(int)N, (int)H, (int)W, OH, OW, (int)groups, (int)p.tiles_x, (int)p.tiles_y};
    if (p.kernels == BackwardPlan::GENERAL) {
        const general::Shape g = {(int)C, (int)H, (int)W, (int)OC, (int)KH, (int)KW, OH, OW, s.tiles_x, s.tiles_y};
        return launch_general(t, p, N, g, groups, stream);
    }
    const cudaError_t error =
        p.kernels == BackwardPlan::IMAGE ? launch_image(t, p, s, stream) : launch_tiles(t, p, s, stream);
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""

kernels = load_inline(
    name="conv_sigmoid_groupnorm_backward_tf32",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["conv_sigmoid_groupnorm_forward", "conv_sigmoid_groupnorm_backward"],
    extra_cuda_cflags=["-O3"],
    no_implicit_headers=True,
)


class ConvSigmoidGroupnorm(torch.autograd.Function):
    """What autograd calls: backward returns a gradient for each argument of forward."""

    @staticmethod
    def forward(ctx, x, conv_weight, conv_bias, bias, scale, gn_weight, gn_bias, groups, eps):
        y, means = kernels.conv_sigmoid_groupnorm_forward(
            x, conv_weight, conv_bias, bias, scale, gn_weight, gn_bias, groups, eps
        )
        ctx.save_for_backward(x, means, conv_weight, conv_bias, bias, scale, gn_weight)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gy):
        need_x, need_weight, need_conv_bias, need_bias, need_scale = ctx.needs_input_grad[:5]
        need_gn_weight, need_gn_bias = ctx.needs_input_grad[5:7]
        gx, gweight, gconv_bias, gscale, ggn_weight, ggn_bias = kernels.conv_sigmoid_groupnorm_backward(
            gy, *ctx.saved_tensors, need_x, need_weight
        )
        # Equal, but two tensors: whoever adds to one gradient in place must not change the other.
        gbias = gconv_bias.clone().view_as(gscale) if need_bias else None
        return (
            gx if need_x else None, gweight if need_weight else None, gconv_bias if need_conv_bias else None, gbias,
            gscale if need_scale else None, ggn_weight if need_gn_weight else None, ggn_bias if need_gn_bias else None,
            None, None,
        )


class ModelNew(nn.Module):
    """The same function as Model with its gradients: x (N, in_channels, H, W) float32 -> (N, out_channels, OH, OW)."""

    def __init__(self, in_channels, out_channels, kernel_size, num_groups, bias_shape, scale_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)  # holds weights, is never called
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_channels)  # holds weights, is never called

    def forward(self, x):
        gn = self.group_norm
        return ConvSigmoidGroupnorm.apply(
            x, self.conv.weight, self.conv.bias, self.bias, self.scale, gn.weight, gn.bias, gn.num_groups, gn.eps
        )
