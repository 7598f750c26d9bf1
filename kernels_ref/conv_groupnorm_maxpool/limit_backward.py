"""conv_groupnorm_maxpool with its backward at the hardware's limit, fp32 class.

Forward is limit.py's: one convolution v on tensor cores, of which only statistics and each window's largest value reach
memory. These are kept for backward, a sixteenth of v:

- Only a window's maximum sends a gradient back, so the sums that GroupNorm's gradient needs are sums over windows: one
  small kernel makes them from what was kept. The gradients of all biases and scales are made of these sums as well.
- Then each block sweeps down an image, 4 rows at a time: it makes v again on tensor cores, finds each window's maximum
  anew, and so has gv, the gradient of v, in shared memory, in halves. Both products with it, that for gx and that for
  the weight's gradient, take it there, again on tensor cores. v and gv are half a gigabyte each, and neither is ever in
  memory. What gv gives to the two rows of gx below its own waits in registers for the next 4 rows. Tensor cores cut
  small products beside large ones, always towards 0: so x is taken about its middle, as signs then differ.

Three products of halves are nearly one of floats: see limit.py. For the formulas see backward.py.
benchmarks/data/bench.json has the times.

An image with a number far beyond all others takes a slow way, in double: halves have no digits left for the others.

For 3x3 kernels, up to 8 input and 64 output channels and windows of 4, on GPUs of compute capability 8.0 or later with
227 KB of shared memory a block. Every other shape, and every other GPU, has the kernels of backward.py, for float32.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = r"""
#include <climits>
#include <vector>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
// What the binding takes of <torch/extension.h>, at half its compile time.
#include <torch/types.h>
#if __has_include(<Python.h>)
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#endif

// From the CUDA source, which sees no header of torch: that is what makes it quick to compile.
bool conv_groupnorm_maxpool_fast(int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC, int64_t KH, int64_t KW,
                                 int64_t groups, int64_t pool, int64_t* floats);
const char* conv_groupnorm_maxpool_fast_forward(const float* x, const float* conv_weight, const float* conv_bias,
                                                const float* gn_weight, const float* gn_bias, const float* scale,
                                                float* y, float* kept, float* workspace, int64_t N, int64_t C,
                                                int64_t H, int64_t W, int64_t OC, int64_t groups, double eps,
                                                double clamp_min, double clamp_max, void* stream_of_torch);
const char* conv_groupnorm_maxpool_fast_backward(const float* gy, const float* x, const float* conv_weight,
                                                 const float* conv_bias, const float* gn_weight, const float* gn_bias,
                                                 const float* scale, const float* kept, float* gx,
                                                 float* gconv_weight, float* gconv_bias, float* ggn_weight,
                                                 float* ggn_bias, float* gscale, float* workspace, int64_t N, int64_t C,
                                                 int64_t H, int64_t W, int64_t OC, int64_t groups, double clamp_min,
                                                 double clamp_max, void* stream_of_torch);
const char* conv_groupnorm_maxpool_general_forward(const float* x, const float* conv_weight, const float* conv_bias,
                                                   const float* gn_weight, const float* gn_bias, const float* scale,
                                                   float* y, int* at, float* v, float* mean, float* rstd, int64_t N,
                                                   int64_t C, int64_t H, int64_t W, int64_t OC, int64_t KH, int64_t KW,
                                                   int64_t groups, double eps, int64_t pool, double clamp_min,
                                                   double clamp_max, void* stream_of_torch);
int64_t conv_groupnorm_maxpool_general_workspace(int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC, int64_t KH,
                                                 int64_t KW, int64_t groups);
const char* conv_groupnorm_maxpool_general_backward(const float* gy, const float* x, const float* conv_weight,
                                                    const float* gn_weight, const float* gn_bias, const float* scale,
                                                    const int* at, const float* v, const float* mean,
                                                    const float* rstd, float* gx, float* gconv_weight,
                                                    float* gconv_bias, float* ggn_weight, float* ggn_bias,
                                                    float* gscale, float* workspace, int64_t N, int64_t C, int64_t H,
                                                    int64_t W, int64_t OC, int64_t KH, int64_t KW, int64_t groups,
                                                    int64_t pool, void* stream_of_torch);

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

// y, and what backward needs: from the fast kernels one tensor, from the general ones at, v, mean and rstd.
std::vector<torch::Tensor> forward(torch::Tensor x, torch::Tensor conv_weight, torch::Tensor conv_bias,
                                   torch::Tensor gn_weight, torch::Tensor gn_bias, torch::Tensor scale, int64_t groups,
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
    TORCH_CHECK(H * W <= INT_MAX, "a channel of x has more than 2^31 - 1 pixels");
    TORCH_CHECK(scale.sizes() == torch::IntArrayRef({OC, 1, 1}), "scale must be (", OC, ", 1, 1), not ", scale.sizes());
    TORCH_CHECK(conv_bias.size(0) == OC && gn_weight.size(0) == OC && gn_bias.size(0) == OC,
                "every bias and weight needs one element for each of ", OC, " output channels");
    TORCH_CHECK(groups > 0 && OC % groups == 0, OC, " channels cannot be cut into ", groups, " equal groups");
    TORCH_CHECK(N * OC <= INT_MAX, "the output has more than 2^31 - 1 planes (images times channels)");
    const int64_t OH = H - KH + 1, OW = W - KW + 1;
    TORCH_CHECK(pool > 0 && pool <= OH && pool <= OW && pool <= 46340,
                "a pooling window of ", pool, " does not fit into the convolution's output (", OH, " x ", OW, ")");
    x = x.contiguous();
    conv_weight = conv_weight.contiguous();
    conv_bias = conv_bias.contiguous();
    gn_weight = gn_weight.contiguous();
    gn_bias = gn_bias.contiguous();
    scale = scale.contiguous();

    const c10::cuda::CUDAGuard guard(x.device());
    torch::Tensor y = torch::empty({N, OC, OH / pool, OW / pool}, x.options());
    const char* error = nullptr;
    int64_t floats[3];
    std::vector<torch::Tensor> made;
    if (conv_groupnorm_maxpool_fast(N, C, H, W, OC, KH, KW, groups, pool, floats)) {
        torch::Tensor kept = torch::empty({floats[0]}, x.options()), workspace = torch::empty({floats[1]}, x.options());
        error = conv_groupnorm_maxpool_fast_forward(
            x.data_ptr<float>(), conv_weight.data_ptr<float>(), conv_bias.data_ptr<float>(),
            gn_weight.data_ptr<float>(), gn_bias.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(),
            kept.data_ptr<float>(), workspace.data_ptr<float>(), N, C, H, W, OC, groups, eps, clamp_min, clamp_max,
            stream());
        made = {y, kept};
    } else {
        torch::Tensor at = torch::empty(y.sizes(), x.options().dtype(torch::kInt32));
        torch::Tensor v = torch::empty({N, OC, OH, OW}, x.options());
        torch::Tensor mean = torch::empty({N, groups}, x.options()), rstd = torch::empty({N, groups}, x.options());
        made = {y, at, v, mean, rstd};
        if (y.numel() == 0) return made;  // a grid of no blocks is a launch error
        error = conv_groupnorm_maxpool_general_forward(
            x.data_ptr<float>(), conv_weight.data_ptr<float>(), conv_bias.data_ptr<float>(),
            gn_weight.data_ptr<float>(), gn_bias.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(),
            at.data_ptr<int>(), v.data_ptr<float>(), mean.data_ptr<float>(), rstd.data_ptr<float>(), N, C, H, W, OC, KH,
            KW, groups, eps, pool, clamp_min, clamp_max, stream());
    }
    TORCH_CHECK(error == nullptr, "conv_groupnorm_maxpool: ", error);
    return made;
}

// The gradients of x and conv_weight (if they are needed), conv_bias, gn_weight, gn_bias and scale. kept: what forward
// has made for this.
std::vector<torch::Tensor> backward(torch::Tensor gy, torch::Tensor x, torch::Tensor conv_weight,
                                    torch::Tensor conv_bias, torch::Tensor gn_weight, torch::Tensor gn_bias,
                                    torch::Tensor scale, std::vector<torch::Tensor> kept, int64_t groups, int64_t pool,
                                    double clamp_min, double clamp_max, bool need_x, bool need_weight) {
    check(gy, "gy", 4, x.device());
    const int64_t N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
    const int64_t OC = conv_weight.size(0), KH = conv_weight.size(2), KW = conv_weight.size(3);
    const int64_t PH = (H - KH + 1) / pool, PW = (W - KW + 1) / pool;
    TORCH_CHECK(gy.sizes() == torch::IntArrayRef({N, OC, PH, PW}), "gy is ", gy.sizes());
    gy = gy.contiguous();  // sum().backward() sends one number with strides of 0
    x = x.contiguous();
    conv_weight = conv_weight.contiguous();
    conv_bias = conv_bias.contiguous();
    gn_weight = gn_weight.contiguous();
    gn_bias = gn_bias.contiguous();
    scale = scale.contiguous();

    const c10::cuda::CUDAGuard guard(x.device());
    torch::Tensor gx = torch::empty(need_x ? x.sizes() : torch::IntArrayRef({0}), x.options());
    torch::Tensor gconv_weight = torch::empty(need_weight ? conv_weight.sizes() : torch::IntArrayRef({0}), x.options());
    torch::Tensor gconv_bias = torch::empty({OC}, x.options()), gscale = torch::empty({OC, 1, 1}, x.options());
    torch::Tensor ggn_weight = torch::empty({OC}, x.options()), ggn_bias = torch::empty({OC}, x.options());
    std::vector<torch::Tensor> made = {gx, gconv_weight, gconv_bias, ggn_weight, ggn_bias, gscale};
    if (gy.numel() == 0) {
        for (torch::Tensor& t : made) t.zero_();
        return made;
    }
    float* to_x = need_x ? gx.data_ptr<float>() : nullptr;
    float* to_weight = need_weight ? gconv_weight.data_ptr<float>() : nullptr;
    const char* error = nullptr;
    int64_t floats[3];
    if (conv_groupnorm_maxpool_fast(N, C, H, W, OC, KH, KW, groups, pool, floats)) {
        torch::Tensor workspace = torch::empty({floats[2]}, x.options());
        error = conv_groupnorm_maxpool_fast_backward(
            gy.data_ptr<float>(), x.data_ptr<float>(), conv_weight.data_ptr<float>(), conv_bias.data_ptr<float>(),
            gn_weight.data_ptr<float>(), gn_bias.data_ptr<float>(), scale.data_ptr<float>(), kept[0].data_ptr<float>(),
            to_x, to_weight, gconv_bias.data_ptr<float>(), ggn_weight.data_ptr<float>(), ggn_bias.data_ptr<float>(),
            gscale.data_ptr<float>(), workspace.data_ptr<float>(), N, C, H, W, OC, groups, clamp_min, clamp_max,
            stream());
    } else {
        const int64_t needed = conv_groupnorm_maxpool_general_workspace(N, C, H, W, OC, KH, KW, groups);
        torch::Tensor workspace = torch::empty({needed}, x.options());
        error = conv_groupnorm_maxpool_general_backward(
            gy.data_ptr<float>(), x.data_ptr<float>(), conv_weight.data_ptr<float>(), gn_weight.data_ptr<float>(),
            gn_bias.data_ptr<float>(), scale.data_ptr<float>(), kept[0].data_ptr<int>(), kept[1].data_ptr<float>(),
            kept[2].data_ptr<float>(), kept[3].data_ptr<float>(), to_x, to_weight, gconv_bias.data_ptr<float>(),
            ggn_weight.data_ptr<float>(), ggn_bias.data_ptr<float>(), gscale.data_ptr<float>(),
            workspace.data_ptr<float>(), N, C, H, W, OC, KH, KW, groups, pool, stream());
    }
    TORCH_CHECK(error == nullptr, "conv_groupnorm_maxpool, backward: ", error);
    return made;
}
"""

cuda_source = r"""
#include <algorithm>
#include <climits>
#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int SPLIT = 3;                  // products of halves for one of floats
constexpr int W_SPLIT = 3;                // ... for the weight's gradient
constexpr int G_OCTETS = 2;               // pixels of gv that a warp has under way, divided by 32
constexpr int G_BLOCKS = 1;               // of gradient_kernel that a multiprocessor has
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
    float largest;   // of its numbers
    float least;     // of what is the largest that one thread met, without zeros; only thread 0 has it
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
        __shared__ float of_warp[WARPS], least_of_warp[WARPS];
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
            const unsigned least = __reduce_min_sync(ALL_LANES, __float_as_uint(mine > 0.0f ? mine : INFINITY));
            if (threadIdx.x % WARP == 0) least_of_warp[threadIdx.x / WARP] = __uint_as_float(least);
            __syncthreads();  // the tile is complete
            largest = 0.0f;
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
        if (threadIdx.x == 0) {
            least = INFINITY;
#pragma unroll
            for (int w = 0; w < WARPS; ++w) least = fminf(least, least_of_warp[w]);
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
// (N, OC, parts), where a part is what one warp has of an image; moments_count() of them are written. largest: of each
// tile of x, the largest magnitude; s.tiles further on, the least one of those that are the largest of some pixels.
template <int SPLIT, int MT, int R, int WARPS, int BLOCKS, bool WINDOWS>
__global__ void __launch_bounds__(WARPS * WARP, BLOCKS)
statistics_kernel(const float* x, const float* weight, const float* bias, const float* gamma, const float* factor,
                  float* windows, Moments* moments, float* largest, int parts, Shape s) {
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
        if (threadIdx.x == 0 && blockIdx.y == 0) largest[i] = tile.largest, largest[s.tiles + i] = tile.least;
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

// ---- outliers ----

// A number so many times as large as what is usual in its image is more than halves can stand: of x they keep no less
// than 2^-34 of the largest, and of gv, which it is multiplied by, 2^-34 of the largest as well. TF32's class has an
// error of 2^-11 anyway.
constexpr float OUTLYING = SPLIT == 3 ? 0x1p10f : 0x1p20f, DARK = 0x1p22f;

// The largest of image n, for a whole warp. usual: the largest of what statistics_kernel left; outlying: whether the
// largest is that far beyond it, or DARK times as far beyond all of a tile. Infinities are not: nothing is to be saved.
__device__ __forceinline__ float largest_of_image(const float* largest, int n, const Shape& s, float& usual,
                                                  bool& outlying) {
    const int tiles = s.tiles_x * s.tiles_y;
    float most = 0.0f, least = INFINITY;
    usual = 0.0f;
    for (int i = threadIdx.x % WARP; i < tiles; i += WARP) {
        const float* of_tile = largest + (int64_t)n * tiles + i;
        const float of_some = of_tile[s.tiles];
        most = fmaxf(most, of_tile[0]);
        least = fminf(least, of_some);
        if (of_some < INFINITY) usual = fmaxf(usual, of_some);
    }
    for (int o = WARP / 2; o > 0; o /= 2) {
        most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, o));
        usual = fmaxf(usual, __shfl_xor_sync(ALL_LANES, usual, o));
        least = fminf(least, __shfl_xor_sync(ALL_LANES, least, o));
    }
    outlying = most < INFINITY && (most > OUTLYING * usual || most > DARK * least);
    return most;
}

// What the halves of forward keep of a number: in TF32's class 11 bits, or else the mean and rstd are not those of v.
__device__ __forceinline__ double as_factor(float v) {
    if constexpr (SPLIT == 3) return v;
    const uint32_t bits = __float_as_uint(v);
    return __uint_as_float((bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu);  // the nearest, of two the even one
}

// v at one pixel of an image, in double, from a channel's weights and bias.
__device__ __forceinline__ double exact_v(const float* image, const float* weight, float bias, int row, int column,
                                          const Shape& s) {
    double v = bias;
    for (int k = 0; k < s.C * 9; ++k) {
        const float* line = image + ((int64_t)(k / 9) * s.H + row + k % 9 / 3) * s.W;
        v += as_factor(weight[k]) * as_factor(line[column + k % 3]);
    }
    return v;
}

// A group's mean and 1 / sqrt(variance + eps), its planes' deviations and windows by sums in double, from x: a few
// pixels far beyond all others make the mean and the variance alone, and no other pixels' errors are there to cancel
// theirs. about: some pixels' mean. All threads of a block must call it; it ends with a barrier.
__device__ __noinline__ float2 exact_statistics(const float* image, const float* weight, const float* bias,
                                                const float* gamma, const float* factor, float* windows,
                                                float* deviations, double about, int channels, float eps,
                                                Shape s) {
    __shared__ double of_warp[2][THREADS / WARP];
    const int pixels = s.OH * s.OW, PH = s.OH / 4, PW = s.OW / 4, pitch = s.tiles_x * (WIDE / 4);
    double all = 0.0, squares = 0.0;
    for (int c = 0; c < channels; ++c) {
        double v[2] = {};
        for (int i = threadIdx.x; i < pixels; i += THREADS) {
            const double d = exact_v(image, weight + c * s.C * 9, bias[c], i / s.OW, i % s.OW, s) - about;
            v[0] += d;
            v[1] += d * d;
        }
        for (int h = 0; h < 2; ++h) {
            for (int o = WARP / 2; o > 0; o /= 2) v[h] += __shfl_xor_sync(ALL_LANES, v[h], o);
            if (threadIdx.x % WARP == 0) of_warp[h][threadIdx.x / WARP] = v[h];
        }
        __syncthreads();  // all warps have written
        double sum = 0.0;
        for (int w = 0; w < THREADS / WARP; ++w) sum += of_warp[0][w], squares += of_warp[1][w];
        if (threadIdx.x == 0) deviations[c] = sum;
        all += sum;
        const float sign = (gamma[c] < 0.0f) != (factor[c] < 0.0f) ? -1.0f : 1.0f;
        for (int i = threadIdx.x; i < PH * PW; i += THREADS) {
            const int row = i / PW, px = i % PW;
            double best = -INFINITY;
            for (int p = 0; p < 16; ++p) {
                const int y = row * 4 + p / 4, x = px * 4 + p % 4;
                best = fmax(best, exact_v(image, weight + c * s.C * 9, bias[c], y, x, s) * sign);
            }
            windows[(c * PH + row) * pitch + px / 8 * 8 + px % 2 * 4 + px % 8 / 2] = best * sign;
        }
        __syncthreads();  // nobody reads the warps' sums any more, and the windows are there
    }
    const double count = (double)channels * pixels, off = all / count;
    if (threadIdx.x == 0) {
        for (int c = 0; c < channels; ++c) deviations[c] -= off * pixels;
    }
    return {(float)(about + off), 1.0f / sqrtf((float)(squares / count - off * off) + eps)};
}

// windows (N, OC, PH, tiles_x * 32), eight of them in statistics_kernel's order -> y (N, OC, PH, PW): ((v - mean) *
// rstd * gamma + beta) * factor, kept between low and high. One block a group of an image. means (N, groups): mean and
// rstd; deviations (N, OC): each plane's sum of v - mean. The bounds keep exact_statistics from taking registers.
__global__ void __launch_bounds__(THREADS, 6)
finish_kernel(float* windows, const Moments* moments, const float* gamma, const float* beta, const float* factor,
              const float* x, const float* weight, const float* bias, const float* largest, float* y, float2* means,
              float* deviations, int channels_a_group, int parts, int makers, Shape s, float eps, float low,
              float high) {
    constexpr int BATCH = 4, WARPS = THREADS / WARP;  // rows of windows that a warp reads before it writes
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, groups = s.OC / channels_a_group;
    const int PH = s.OH / 4, PW = s.OW / 4, pitch = s.tiles_x * (WIDE / 4);
    const int first = blockIdx.x % groups * channels_a_group;
    const int64_t plane = (int64_t)blockIdx.x * channels_a_group;
    const int count = moments_count(s, blockIdx.x / groups, makers);
    float2 of_group;
    float usual;
    bool outlying;
    largest_of_image(largest, blockIdx.x / groups, s, usual, outlying);
    if (outlying) {
        of_group = exact_statistics(x + (int64_t)(blockIdx.x / groups) * s.C * s.H * s.W, weight + first * s.C * 9,
                                    bias + first, gamma + first, factor + first, windows + plane * (PH * pitch),
                                    deviations + plane, moments[plane * parts].mean, channels_a_group, eps, s);
    } else {
        of_group = statistics_of_group<THREADS>(moments + plane * parts, channels_a_group, count, parts, eps);
    }
    if (threadIdx.x == 0) means[blockIdx.x] = of_group;
    for (int k = warp; k < channels_a_group && !outlying; k += WARPS) {
        float sum = 0.0f;
        for (int i = lane; i < count; i += WARP) {
            const Moments m = moments[(plane + k) * parts + i];
            sum += m.count * (m.mean - of_group.x);
        }
#pragma unroll
        for (int o = WARP / 2; o > 0; o /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, o);
        if (lane == 0) deviations[plane + k] = sum;
    }
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

// ---- backward: sums over windows ----

// Backward sweeps over an image in strips of 4 rows and 128 columns of v. Where an image is wider, the next strip
// begins 124 columns on: its first 4 columns, the halo, belong to the one before, and are made again for what lies
// right of them.
constexpr int STEP = WIDE - 4, STRIP_WINDOWS = WIDE / 4;
constexpr int TAPS = 9;

// Which of two nearly equal pixels is the maximum makes all the difference to a gradient, and float32 does not know it
// where they are closer than its errors: then sums in double decide, a few times in a million. TF32 has too many such
// pixels, in eager as well.
constexpr bool EXACT = SPLIT == 3;

// As exponent_for, for numbers of backward: what leaves room for sums, and for bounds that are a little too low.
__device__ __forceinline__ int exponent_of_gradient(float largest) {
    const int e = 9 + 127 - (int)(__float_as_uint(largest) >> 23);
    return largest == 0.0f ? 0 : min(max(e, -110), 110);
}

// v at a window's first pixel, which counts where the normalisation's weight or the scale is 0: all pixels are equal.
__device__ float first_of_window(const float* x, const float* weight, float bias, const Shape& s, int n, int c, int row,
                                 int column) {
    float sum = bias;
    for (int k = 0; k < s.C * 9; ++k) {
        sum += x[(((int64_t)n * s.C + k / 9) * s.H + row + k % 9 / 3) * s.W + column + k % 3] * weight[c * s.C * 9 + k];
    }
    return sum;
}

// About the mean of image n, of some of its numbers: see gradient_kernel. For a whole warp. In TF32's class 0: other
// numbers would round otherwise than in forward.
__device__ float middle_of_image(const float* x, const float* largest, int n, const Shape& s) {
    constexpr int SOME = 4;  // for each lane
    if (SPLIT != 3) return 0.0f;
    float usual, sum = 0.0f;
    bool outlying;
    largest_of_image(largest, n, s, usual, outlying);
    const int64_t all = (int64_t)s.C * s.H * s.W;
    for (int i = 0; i < SOME; ++i) {
        const float v = x[n * all + all * (threadIdx.x % WARP * SOME + i) / (WARP * SOME)];
        sum += fminf(fmaxf(v, -usual), usual);  // NaN is none of either
    }
    for (int o = WARP / 2; o > 0; o /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, o);
    return outlying ? 0.0f : sum * (1.0f / (WARP * SOME));
}

// One block a group of an image. gy (N, OC, PH, PW) -> gm: gy where the clamp let the maximum pass, 0 elsewhere, for
// every strip 32 windows, eight in statistics_kernel's order: (N, OC, PH, strips, 32). sums (N, OC): of gm, and of gm
// times the maximum's xh. terms (N, groups): a, b, what no |gv| of the group exceeds, and the middle of the image.
__global__ void __launch_bounds__(THREADS)
window_sums_kernel(const float* gy, const float* windows, const float2* means, const float* gamma, const float* beta,
                   const float* factor, const float* x, const float* weight, const float* bias, const float* largest,
                   float* gm, float2* sums, float4* terms, int channels_a_group, int strips, Shape s, float low,
                   float high) {
    constexpr int BATCH = 4, WARPS = THREADS / WARP;  // rows of windows that a warp reads before it writes
    __shared__ float of_warp[3][CHUNK][WARPS];        // sums of gm, of gm * (v - mean) * down, and the largest |gm|
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int groups = s.OC / channels_a_group, first = blockIdx.x % groups * channels_a_group;
    const int PH = s.OH / 4, PW = s.OW / 4, pitch = s.tiles_x * (WIDE / 4);
    const float2 of_group = means[blockIdx.x];
    // rstd's power of two, or 0: times v - mean before anything large is
    const float down = __uint_as_float(__float_as_uint(of_group.y) & 0x7f800000);
    for (int k = 0; k < channels_a_group; ++k) {
        const int c = first + k;
        const int64_t plane = (int64_t)blockIdx.x * channels_a_group + k;
        const float f = factor[c], slope = of_group.y * gamma[c] * f, offset = beta[c] * f;
        const bool level = gamma[c] == 0.0f || f == 0.0f;
        float sum = 0.0f, weighted = 0.0f, most = 0.0f;
        for (int strip = 0; strip < strips; ++strip) {
            const int px = strip * (STEP / 4) + lane / 8 * 8 + lane % 4 * 2 + lane % 8 / 4;
            const bool counts = px < PW && (strip == 0 || lane > 0);  // the halo was counted before
            const float* from = windows + plane * (PH * pitch) + px / 8 * 8 + px % 2 * 4 + px % 8 / 2;
            const float* of_gy = gy + plane * (PH * PW) + px;
            float* to = gm + (plane * PH * strips + strip) * STRIP_WINDOWS + lane;
            for (int begin = warp; begin < PH; begin += WARPS * BATCH) {
                float v[BATCH], g[BATCH];
#pragma unroll
                for (int j = 0; j < BATCH; ++j) {
                    const int row = begin + j * WARPS;
                    const bool in = row < PH && px < PW;
                    v[j] = in ? from[row * pitch] : 0.0f;
                    g[j] = in ? of_gy[row * PW] : 0.0f;
                }
#pragma unroll
                for (int j = 0; j < BATCH; ++j) {
                    const int row = begin + j * WARPS;
                    if (row >= PH) continue;
                    if (level && px < PW) {
                        v[j] = first_of_window(x, weight, bias[c], s, blockIdx.x / groups, c, row * 4, px * 4);
                    }
                    const float d = v[j] - of_group.x, u = d * slope + offset;
                    const float passed = low <= u && u <= high ? g[j] : 0.0f;
                    to[(int64_t)row * strips * STRIP_WINDOWS] = passed;
                    if (!counts) continue;
                    sum += passed;
                    weighted += passed * (d * down);  // 0 times NaN is NaN, as in eager
                    most = fmaxf(most, fabsf(passed));
                }
            }
        }
#pragma unroll
        for (int o = WARP / 2; o > 0; o /= 2) {
            sum += __shfl_xor_sync(ALL_LANES, sum, o);
            weighted += __shfl_xor_sync(ALL_LANES, weighted, o);
            most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, o));
        }
        if (lane == 0) of_warp[0][k][warp] = sum, of_warp[1][k][warp] = weighted, of_warp[2][k][warp] = most;
    }
    __syncthreads();  // all warps have written
    if (warp > 0) return;
    const float middle = middle_of_image(x, largest, blockIdx.x / groups, s);
    if (lane > 0) return;
    float a = 0.0f, b = 0.0f, bound = 0.0f;
    for (int k = 0; k < channels_a_group; ++k) {
        float2 sum = {0.0f, 0.0f};
        float most = 0.0f;
        for (int w = 0; w < WARPS; ++w) {
            sum = {sum.x + of_warp[0][k][w], sum.y + of_warp[1][k][w]};
            most = fmaxf(most, of_warp[2][k][w]);
        }
        sum.y *= down > 0.0f ? of_group.y / down : of_group.y;
        sums[(int64_t)blockIdx.x * channels_a_group + k] = sum;
        const float f = gamma[first + k] * factor[first + k];
        a += f * sum.x;
        b += f * sum.y;
        bound = fmaxf(bound, fabsf(f) * most);
    }
    const float count = (float)channels_a_group * s.OH * s.OW, part = 1.0f / count;
    a *= part;
    b *= part;
    // |xh| is at most the root of how many there are.
    terms[blockIdx.x] = {a, b, (bound + fabsf(a) + fabsf(b) * sqrtf(count)) * of_group.y, middle};
}

// One warp a channel: what is summed over the images, in their order. deviations (N, OC): each plane's sum of v - mean.
// of_middles: what the weight's gradient lacks where x is taken about the images' middles.
__global__ void channels_kernel(const float2* sums, const float4* terms, const float2* means, const float* deviations,
                                const float* gamma, const float* beta, const float* factor, float* ggamma,
                                float* gbeta, float* gfactor, float* gbias, float* of_middles, int N,
                                int channels_a_group, Shape s) {
    const int c = blockIdx.x, groups = s.OC / channels_a_group;
    const double pixels = (double)s.OH * s.OW;
    double sum = 0.0, weighted = 0.0, of_v = 0.0, of_middle = 0.0;
    for (int n = threadIdx.x; n < N; n += WARP) {
        const int64_t plane = (int64_t)n * s.OC + c, group = (int64_t)n * groups + c / channels_a_group;
        const float2 of_plane = sums[plane];
        const float4 ab = terms[group];
        const double rstd = means[group].y;
        sum += of_plane.x;
        weighted += of_plane.y;
        const double gm = (double)gamma[c] * factor[c] * of_plane.x;
        const double gv = (gm - ab.x * pixels - ab.y * rstd * deviations[plane]) * rstd;
        of_v += gv;
        of_middle += gv * ab.w;
    }
    for (int o = WARP / 2; o > 0; o /= 2) {
        sum += __shfl_xor_sync(ALL_LANES, sum, o);
        weighted += __shfl_xor_sync(ALL_LANES, weighted, o);
        of_v += __shfl_xor_sync(ALL_LANES, of_v, o);
        of_middle += __shfl_xor_sync(ALL_LANES, of_middle, o);
    }
    if (threadIdx.x > 0) return;
    ggamma[c] = weighted * factor[c];
    gbeta[c] = sum * factor[c];
    gfactor[c] = weighted * gamma[c] + sum * beta[c];
    gbias[c] = of_v;
    of_middles[c] = of_middle;
}

// parts (blocks, 9, CHUNK, IN) -> gweight (OC, C, 9), summed over the blocks: one warp each, in an order of their own.
// of_middles: see channels_kernel.
__global__ void weight_kernel(const float* parts, const float* of_middles, float* gweight, int blocks, Shape s) {
    const int at = blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const int tap = at / (CHUNK * IN), c = at / IN % CHUNK, k = at % IN;
    if (tap >= TAPS || c >= s.OC || k >= s.C) return;  // a whole warp
    float sum = 0.0f;
    for (int i = lane; i < blocks; i += WARP) sum += parts[(int64_t)i * (TAPS * CHUNK * IN) + at];
#pragma unroll
    for (int o = WARP / 2; o > 0; o /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, o);
    if (lane == 0) gweight[(c * s.C + k) * TAPS + tap] = sum + of_middles[c];
}

// ---- backward on tensor cores: v again, gv, gx and the weight's gradient from one strip in shared memory ----

constexpr int G_WARPS = 8, G_THREADS = G_WARPS * WARP;
constexpr bool BOTH = SPLIT == 3 || W_SPLIT == 3;           // the strip's lower halves are needed, too
constexpr int G_PLANE = 4 * COLUMNS + 1;                    // pixels of 8 channels of gv; odd, for other banks
constexpr int G_LOW = CHUNK / 8 * G_PLANE * 16;             // bytes from upper to lower halves
// Where there is room for one block alone, the next strip of x comes while it works; of two, one works while one waits.
constexpr bool AHEAD = G_BLOCKS == 1;
constexpr int HALVES = SPLIT == 3 ? 2 : 1;                  // upper and lower ones of the weights
constexpr int X_ROWS = 6, X_PIXELS = X_ROWS * COLUMNS, X_LOW = X_PIXELS * 16;

struct Strip {
    uint4 gv[(BOTH ? 2 : 1) * CHUNK / 8 * G_PLANE];          // two columns of zeros, and 128 of gv, four times
    uint4 x[(BOTH ? 2 : 1) * X_PIXELS];                      // all that these were made from
    uint4 weight[HALVES][CHUNK / 16][5][WARP];               // as the product for v takes them
    uint2 weight_of_x[HALVES][TAPS][CHUNK / 16][WARP];       // as that for gx does
    float raw[AHEAD ? IN * X_ROWS * RAW : 4];                // x as it comes
    float4 of_channel[CHUNK];  // gv = v * x + y, and gm * z where the maximum is; w: many times v's error
    float up[CHUNK], largest[CHUNK], magnitude[CHUNK];       // of the weights: scale, largest, sum of magnitudes ...
    float whole[CHUNK];                                      // ... and sum
};
static_assert(sizeof(Strip) <= (G_BLOCKS == 1 ? 227 : 113) * 1024, "a block has so much shared memory");

// Which part of an image is swept: `strips` of 4 rows in `parts`, `across` next to each other.
struct Sweep {
    int strips, parts, across, units;
};

#ifdef TENSOR_CORES
// d = a * b
__device__ __forceinline__ void mma16_first(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.0f));
}

__device__ __forceinline__ void fragments(uint32_t (&m)[4], uint32_t at) { fragments(m[0], m[1], m[2], m[3], at); }
__device__ __forceinline__ void transposed(uint32_t (&m)[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(at));
}

// 6 rows of 8 pixels: at the shifts 0 and 1 side by side; at shift 2 each row and the one below, and the rows 2 to 5.
struct Patch {
    uint32_t two[6][2], third[4][2], last[4];

    __device__ __forceinline__ void load(uint32_t pair, uint32_t single) {
#pragma unroll
        for (int r = 0; r < 6; r += 2) {
            fragments(two[r][0], two[r][1], two[r + 1][0], two[r + 1][1], pair + r * COLUMNS * 16);
        }
        fragments(third[0][0], third[0][1], third[2][0], third[2][1], single);
        fragments(third[1][0], third[1][1], third[3][0], third[3][1], single + COLUMNS * 16);
        fragments(last, single + 2 * COLUMNS * 16);
    }
};

// acc[row] (+)= w * pixels for 4 rows of 8 pixels. For each row in the same order, so that equal pixels give equal
// sums: of equal ones the first is the maximum.
template <bool FIRST>
__device__ __forceinline__ void product(const uint32_t (&w)[5][4], const Patch& b, float (&acc)[4][4]) {
#pragma unroll
    for (int k = 0; k < 3; ++k) {
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            if (FIRST && k == 0) mma16_first(acc[r], w[k], b.two[r + k][0], b.two[r + k][1]);
            else mma16(acc[r], w[k], b.two[r + k][0], b.two[r + k][1]);
        }
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) mma16(acc[r], w[3], b.third[r][0], b.third[r][1]);
#pragma unroll
    for (int r = 0; r < 4; ++r) mma8(acc[r], w[4][0], w[4][1], b.last[r]);
}

// Both kinds of weights into shared memory, scaled by powers of two; returns the exponent of those for gx. In 16
// channels row g of the product for v is channel 2 g, row g + 8 the next one: so a lane has two channels side by side.
__device__ __forceinline__ int bring_weights(Strip& strip, const float* weight, const float* gamma, const float* factor,
                                             const Shape& s) {
    const int terms = s.C * TAPS;
    {
        const int c = threadIdx.x / 4;
        static_assert(G_THREADS == CHUNK * 4, "four threads a channel");
        float largest = 0.0f, sum = 0.0f, whole = 0.0f;
        for (int k = threadIdx.x % 4; c < s.OC && k < terms; k += 4) {
            const float v = fabsf(weight[c * terms + k]);
            if (v < INFINITY) largest = fmaxf(largest, v);
            sum += v;
            whole += (float)as_factor(weight[c * terms + k]);
        }
        sum += __shfl_xor_sync(ALL_LANES, sum, 1);
        sum += __shfl_xor_sync(ALL_LANES, sum, 2);
        whole += __shfl_xor_sync(ALL_LANES, whole, 1);
        whole += __shfl_xor_sync(ALL_LANES, whole, 2);
        largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(ALL_LANES, largest, 2));
        if (threadIdx.x % 4 == 0) {  // where the factors to come are negative, the smallest v gives the maximum
            const bool minus = c < s.OC && (gamma[c] < 0.0f) != (factor[c] < 0.0f);
            strip.up[c] = power_of_two(exponent_for(largest)) * (minus ? -1.0f : 1.0f);
            strip.largest[c] = largest;
            strip.magnitude[c] = sum;
            strip.whole[c] = whole;
        }
    }
    __syncthreads();  // each channel's scale is known
    float largest = 0.0f;
    for (int c = 0; c < CHUNK; ++c) largest = fmaxf(largest, strip.largest[c]);
    const int exponent = exponent_for(largest);
    const float up_of_x = power_of_two(exponent);
    const auto at = [&](int c, int k, int tap) {
        return c < s.OC && k < s.C && tap < TAPS ? weight[c * terms + k * TAPS + tap] : 0.0f;
    };
    for (int i = threadIdx.x; i < CHUNK / 16 * 5 * WARP; i += G_THREADS) {
        const int m = i / (5 * WARP), step = i / WARP % 5, g = i % WARP / 4, t = i % 4;
        uint32_t high[4], low[4];
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const int c = m * 16 + 2 * g + q % 2;
            const int tap = step < 3 ? step * 3 + q / 2 : step == 3 ? 2 + q / 2 * 3 : q < 2 ? 8 : TAPS;
            const float a = at(c, 2 * t, tap) * strip.up[c], b = at(c, 2 * t + 1, tap) * strip.up[c];
            high[q] = halves(a, b);
            low[q] = rest(high[q], a, b);
        }
        strip.weight[0][m][step][i % WARP] = {high[0], high[1], high[2], high[3]};
        if constexpr (SPLIT == 3) strip.weight[HALVES - 1][m][step][i % WARP] = {low[0], low[1], low[2], low[3]};
    }
    for (int i = threadIdx.x; i < TAPS * (CHUNK / 16) * WARP; i += G_THREADS) {
        const int tap = i / (CHUNK / 16 * WARP), m = i / WARP % (CHUNK / 16), g = i % WARP / 4, t = i % 4;
        uint32_t high[2], low[2];
#pragma unroll
        for (int q = 0; q < 2; ++q) {
            const int c = m * 16 + 8 * q + 2 * t;
            const float a = at(c, g, tap) * up_of_x, b = at(c + 1, g, tap) * up_of_x;
            high[q] = halves(a, b);
            low[q] = rest(high[q], a, b);
        }
        strip.weight_of_x[0][tap][m][i % WARP] = {high[0], high[1]};
        if constexpr (SPLIT == 3) strip.weight_of_x[HALVES - 1][tap][m][i % WARP] = {low[0], low[1]};
    }
    return exponent;
}

// Starts to bring the rows of x that a strip needs; beyond the image come zeros.
__device__ __forceinline__ void bring_x(Strip& strip, const float* image, const float* x, int y0, int x0, bool vector,
                                        const Shape& s) {
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(strip.raw);
    for (int u = warp; u < s.C * X_ROWS; u += G_WARPS) {
        const int row = y0 + u % X_ROWS;
        const float* from = image + ((int64_t)(u / X_ROWS) * s.H + row) * s.W + x0;
        if (vector) {
            for (int c = lane * 4; c < (s.W > WIDE ? RAW : WIDE); c += WARP * 4) {  // else zeros are there
                const bool in = row < s.H && x0 + c < s.W;
                copy16(to + (u * RAW + c) * 4, in ? from + c : x, in);
            }
        } else {
            for (int c = lane; c < COLUMNS; c += WARP) {
                const bool in = row < s.H && x0 + c < s.W;
                copy4(to + (u * RAW + c) * 4, in ? from + c : x, in);
            }
        }
    }
}

// raw, or the image itself, -> x, in halves.
__device__ __forceinline__ void halve_x(Strip& strip, const float* image, int y0, int x0, float up, float off,
                                        const Shape& s) {
    const auto pixel = [&](int row, int column) {
        const int i = row * COLUMNS + column;
        float v[IN];
        if constexpr (AHEAD) {
            const float* at = strip.raw + row * RAW + column;
#pragma unroll
            for (int k = 0; k < IN; ++k) v[k] = fmaf(at[k * X_ROWS * RAW], up, off);
        } else {
            const int channels = y0 + row < s.H && x0 + column < s.W ? s.C : 0;
            int at = (y0 + row) * s.W + x0 + column;
#pragma unroll
            for (int k = 0; k < IN; ++k, at += s.H * s.W) v[k] = k < channels ? fmaf(__ldg(image + at), up, off) : 0.0f;
        }
        const uint4 high = {halves(v[0], v[1]), halves(v[2], v[3]), halves(v[4], v[5]), halves(v[6], v[7])};
        strip.x[i] = high;
        if constexpr (BOTH) {
            strip.x[X_PIXELS + i] = {rest(high.x, v[0], v[1]), rest(high.y, v[2], v[3]), rest(high.z, v[4], v[5]),
                                     rest(high.w, v[6], v[7])};
        }
    };
    static_assert(G_THREADS % WIDE == 0 && X_ROWS % (G_THREADS / WIDE) == 0, "a thread has one column");
#pragma unroll
    for (int row = 0; row < X_ROWS; row += G_THREADS / WIDE) {
        pixel(row + threadIdx.x / WIDE, threadIdx.x % WIDE);
    }
    if (threadIdx.x < 2 * X_ROWS) pixel(threadIdx.x / 2, WIDE + threadIdx.x % 2);
}

// Which pixels of a window of 4 x 4 have the largest value of one channel, or, where EXACT, come closer to it than
// `room`: bit row times 4 plus column of each. A lane has two columns of the window, its neighbour the others; `half`
// is 0 or 1 of the channels in acc.
__device__ __forceinline__ unsigned largest_of_window(const float (&acc)[4][4], int half, float room) {
    float best = acc[0][2 * half];
#pragma unroll
    for (int i = 1; i < 8; ++i) best = fmaxf(best, acc[i / 2][2 * half + i % 2]);
    best = fmaxf(best, __shfl_xor_sync(ALL_LANES, best, 1));
    const float limit = EXACT ? best - room : best;
    unsigned found = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        if (acc[i / 2][2 * half + i % 2] >= limit) found |= 1u << (i / 2 * 4 + i % 2);
    }
    found <<= threadIdx.x % 2 * 2;
    return found | __shfl_xor_sync(ALL_LANES, found, 1);
}

// The place of the largest v, row times 4 plus column, in the window at row y, column x of an image, by sums in double:
// a warp's lanes share the terms. sign: -1 where the smallest is asked for.
__device__ __forceinline__ int exact_place(const float* image, const float* weight, float sign, int y, int x,
                                           const Shape& s) {
    constexpr int SHARE = (IN * TAPS + WARP - 1) / WARP;
    float w[SHARE];
    int64_t offset[SHARE];
#pragma unroll
    for (int i = 0; i < SHARE; ++i) {
        const int k = threadIdx.x % WARP + i * WARP;
        const bool in = k < s.C * TAPS;
        w[i] = in ? weight[k] : 0.0f;
        offset[i] = in ? ((int64_t)(k / TAPS) * s.H + k % TAPS / 3 + y) * s.W + k % 3 + x : 0;
    }
    double best = -INFINITY;
    int place = 0;
#pragma unroll 1
    for (int row = 0; row < 4; ++row) {
        double sum[4] = {};
#pragma unroll
        for (int i = 0; i < SHARE; ++i) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                if (w[i] != 0.0f) sum[j] += (double)w[i] * image[offset[i] + j];
            }
            offset[i] += s.W;
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            for (int o = WARP / 2; o > 0; o /= 2) sum[j] += __shfl_xor_sync(ALL_LANES, sum[j], o);
            if (sum[j] * sign > best) best = sum[j] * sign, place = row * 4 + j;
        }
    }
    return place;
}

// gv of a strip: v for 16 channels and 32 columns at a time, from it gv as a product and a sum, into shared memory.
__device__ __forceinline__ void make_gv(Strip& strip, const float* image, const float* weight, const float* gm, int n,
                                        int y0, int across, int rows, int columns, const Sweep& sweep,
                                        const Shape& s) {
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    const int m = warp % (CHUNK / 16), PH = s.OH / 4, c = m * 16 + 2 * g;  // the lane's first channel
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(strip.x);
    const uint32_t pair = at + (lane / 16 * COLUMNS + lane % 8 + lane / 8 % 2) * 16;
    const uint32_t single = at + (lane / 8 * COLUMNS + lane % 8 + 2) * 16;
    uint32_t w[5][4], w_low[5][4];
#pragma unroll
    for (int k = 0; k < 5; ++k) {
        const uint4 v = strip.weight[0][m][k][lane];
        w[k][0] = v.x, w[k][1] = v.y, w[k][2] = v.z, w[k][3] = v.w;
        if constexpr (SPLIT == 3) {
            const uint4 l = strip.weight[HALVES - 1][m][k][lane];
            w_low[k][0] = l.x, w_low[k][1] = l.y, w_low[k][2] = l.z, w_low[k][3] = l.w;
        }
    }
    const float4 of[2] = {strip.of_channel[c], strip.of_channel[c + 1]};
    char* const to = reinterpret_cast<char*>(strip.gv) + ((m * 2 + g / 4) * G_PLANE + 2 + 2 * t) * 16 + g % 4 * 4;
    for (int j = warp / (CHUNK / 16); j < 4; j += G_WARPS / (CHUNK / 16)) {
        float of_window[2][4] = {};  // the lane's windows in the four octets
        if (y0 / 4 < PH) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                if (c + h >= s.OC) continue;
                const int64_t row = (((int64_t)n * s.OC + c + h) * PH + y0 / 4) * sweep.across + across;
                const float4 v = *reinterpret_cast<const float4*>(gm + row * STRIP_WINDOWS + j * 8 + t / 2 * 4);
                of_window[h][0] = v.x * of[h].z;
                of_window[h][1] = v.y * of[h].z;
                of_window[h][2] = v.z * of[h].z;
                of_window[h][3] = v.w * of[h].z;
            }
        }
#pragma unroll G_OCTETS
        for (int octet = 0; octet < 4; ++octet) {
            const int column = j * 32 + octet * 8;
            float acc[4][4];
            Patch high;
            high.load(pair + column * 16, single + column * 16);
            if constexpr (SPLIT == 3) {  // small products first: tensor cores do not round a sum but cut it off
                Patch low;
                low.load(pair + X_LOW + column * 16, single + X_LOW + column * 16);
                product<true>(w_low, high, acc);
                product<false>(w, low, acc);
                product<false>(w, high, acc);
            } else {
                product<true>(w, high, acc);
            }
            float extra[2];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                if (octet == k) extra[0] = of_window[0][k], extra[1] = of_window[1][k];
            }
            int place[2];
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const unsigned found = largest_of_window(acc, h, of[h].w);
                place[h] = __ffs(found) - 1;  // of equal ones the first
                if constexpr (EXACT) {  // not where the first two are as large: a plain surface has equal pixels
                    const bool plain = found % 4 == 3 && acc[0][2 * h] == acc[0][2 * h + 1];
                    const bool doubtful = (found & (found - 1)) > 0 && !plain && fabsf(extra[h]) > 0.0f;
                    unsigned pending = __ballot_sync(ALL_LANES, doubtful && t % 2 == 0);
                    for (; pending > 0; pending &= pending - 1) {
                        const int who = __ffs(pending) - 1, channel = m * 16 + who / 4 * 2 + h;
                        const int exact = exact_place(image, weight + channel * s.C * TAPS,
                                                      strip.up[channel] < 0.0f ? -1.0f : 1.0f, y0,
                                                      across * STEP + column + who % 4 / 2 * 4, s);
                        if (lane / 2 == who / 2) place[h] = exact;
                    }
                }
                place[h] -= t % 2 * 2;
            }
            const auto put = [&](int r, int k, bool in) {
                float v[2];
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    v[h] = fmaf(acc[r][2 * h + k], of[h].x, of[h].y);
                    if (place[h] == r * 4 + k) v[h] += extra[h];
                    if (!in) v[h] = 0.0f;
                }
                const uint32_t both = halves(v[0], v[1]);
                char* const there = to + (r * COLUMNS + column + k) * 16;
                *reinterpret_cast<uint32_t*>(there) = both;
                if constexpr (BOTH) *reinterpret_cast<uint32_t*>(there + G_LOW) = rest(both, v[0], v[1]);
            };
            if (rows == 4 && column + 8 <= columns) {
#pragma unroll
                for (int i = 0; i < 8; ++i) put(i / 2, i % 2, true);
            } else {
#pragma unroll
                for (int i = 0; i < 8; ++i) put(i / 2, i % 2, i / 2 < rows && column + 2 * t + i % 2 < columns);
            }
        }
    }
}

// Adds what a strip's gv gives to 6 rows of gx, for a warp's 16 columns. Tensor cores cut their sums off, floats are
// rounded: so floats take over after a few products.
__device__ __forceinline__ void add_gx(const Strip& strip, float (&sum)[6][4]) {
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    // 16 pixels of 8 channels, then of 8 more
    const uint32_t base =
        (uint32_t)__cvta_generic_to_shared(strip.gv) + (lane / 16 * G_PLANE + warp * 16 + 2 + lane % 16) * 16;
#pragma unroll 1
    for (int m = 0; m < CHUNK / 16; ++m) {
#pragma unroll
        for (int kx = 0; kx < 3; ++kx) {
            uint32_t a[4][4], low[4][4];
            uint2 w[3], w_low[3];
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const uint32_t at = base + (m * 2 * G_PLANE + r * COLUMNS - kx) * 16;
                fragments(a[r], at);
                if constexpr (SPLIT == 3) fragments(low[r], at + G_LOW);
            }
#pragma unroll
            for (int ky = 0; ky < 3; ++ky) {
                w[ky] = strip.weight_of_x[0][ky * 3 + kx][m][lane];
                if constexpr (SPLIT == 3) w_low[ky] = strip.weight_of_x[HALVES - 1][ky * 3 + kx][m][lane];
            }
            if constexpr (SPLIT == 3) {
                float part[6][4];
#pragma unroll
                for (int i = 0; i < 36; ++i) {  // small products first
                    const int ky = i / 4 % 3, r = i % 4;
                    if (i >= 24) mma16(part[r + ky], a[r], w[ky].x, w[ky].y);
                    else if (i >= 12) mma16(part[r + ky], a[r], w_low[ky].x, w_low[ky].y);
                    else if (ky == 0 || r == 3) mma16_first(part[r + ky], low[r], w[ky].x, w[ky].y);
                    else mma16(part[r + ky], low[r], w[ky].x, w[ky].y);
                }
#pragma unroll
                for (int i = 0; i < 24; ++i) sum[i / 4][i % 4] += part[i / 4][i % 4];
            } else {
#pragma unroll
                for (int i = 0; i < 12; ++i) mma16(sum[i % 4 + i / 4], a[i % 4], w[i / 4].x, w[i / 4].y);
            }
        }
    }
}

// Adds a strip's products of gv and x to the weight's gradient, for a warp's 16 channels and every other 16 columns.
// Tensor cores cut small numbers off beside large ones: three products of 16 pixels are all they add up, but in TF32's
// class.
__device__ __forceinline__ void add_weight(const Strip& strip, int columns, float (&total)[TAPS][4]) {
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, m = warp % (CHUNK / 16);
    const int pixel = lane % 8 + lane / 16 * 8;
    // 8 pixels of 8 channels and of 8 more, then 8 pixels further on
    const uint32_t base =
        (uint32_t)__cvta_generic_to_shared(strip.gv) + ((m * 2 + lane / 8 % 2) * G_PLANE + 2 + pixel) * 16;
    const uint32_t x_base = (uint32_t)__cvta_generic_to_shared(strip.x) +
                            (lane % 16) * 16 + (W_SPLIT == 3 ? lane / 16 * X_LOW : lane / 16 * 16);
#pragma unroll 1
    for (int column = warp / (CHUNK / 16) * 16; column < columns; column += G_WARPS / (CHUNK / 16) * 16) {
        uint32_t a[4][4], low[4][4];
        float sum[TAPS][4];
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            transposed(a[r], base + (r * COLUMNS + column) * 16);
            if constexpr (W_SPLIT == 3) transposed(low[r], base + G_LOW + (r * COLUMNS + column) * 16);
        }
#pragma unroll
        for (int row = 0; row < 6; ++row) {  // of x
            uint32_t b[3][4];  // W_SPLIT 3: 16 pixels, and their lower halves; else 16 pixels, and those one column on
            if constexpr (W_SPLIT == 3) {
#pragma unroll
                for (int kx = 0; kx < 3; ++kx) transposed(b[kx], x_base + (row * COLUMNS + column + kx) * 16);
            } else {
                transposed(b[0], x_base + (row * COLUMNS + column) * 16);
                b[1][0] = b[0][2], b[1][1] = b[0][3];
                uint32_t both[4];
                transposed(both, x_base + (row * COLUMNS + column + 1) * 16);
                b[2][0] = both[2], b[2][1] = both[3];
            }
            float part[TAPS][4];
#pragma unroll
            for (int p = W_SPLIT == 3 ? 0 : 3; p < 4; ++p) {  // small products first
#pragma unroll
                for (int kx = 0; kx < 3; ++kx) {
#pragma unroll
                    for (int ky = 0; ky < 3; ++ky) {
                        const int r = row - ky, tap = ky * 3 + kx;
                        if (r < 0 || r > 3) continue;
                        if constexpr (W_SPLIT != 3) {
                            mma16(total[tap], a[r], b[kx][0], b[kx][1]);
                        } else if (p == 0) {
                            mma16_first(part[tap], low[r], b[kx][0], b[kx][1]);
                        } else if (p == 1) {
                            mma16(part[tap], a[r], b[kx][2], b[kx][3]);
                        } else if (p == 2) {
                            mma16(part[tap], a[r], b[kx][0], b[kx][1]);
                        } else {
#pragma unroll
                            for (int i = 0; i < 4; ++i) sum[tap][i] = r > 0 ? sum[tap][i] + part[tap][i] : part[tap][i];
                        }
                    }
                }
            }
        }
        if constexpr (W_SPLIT == 3) {
#pragma unroll
            for (int i = 0; i < 4 * TAPS; ++i) total[i / 4][i % 4] += sum[i / 4][i % 4];
        }
    }
}
#endif

// A unit of gradient_kernel in double, from global memory, for images in which halves lose what counts: a number far
// beyond all others takes their digits, in v and so which one is the largest, and what it is itself multiplied by. Only
// gv is in shared memory, as floats, of so many channels at a time as there is room for. `sums`: a double for each of
// the block's part of the weight's gradient. All threads must call it; it begins and ends with a barrier.
__device__ __noinline__ void outlying_unit(Strip& strip, const float* image, const float* weight, const float* bias,
                                           const float* gamma, const float* factor, const float2* means,
                                           const float4* terms, const float* gm, float* gx, float* parts, bool add,
                                           int n, int across, int part, int channels_a_group, const Sweep& sweep,
                                           const Shape& s) {
    constexpr int CHANNELS = BOTH ? CHUNK : CHUNK / 2, TERMS = TAPS * CHUNK * IN, SHARE = TERMS / G_THREADS;
    static_assert(CHANNELS * 4 * WIDE * sizeof(float) <= sizeof(strip.gv), "gv of a strip as floats");
    float* const gv = reinterpret_cast<float*>(strip.gv);  // [channel][4][WIDE]
    const int x0 = across * STEP, columns = min(WIDE, s.OW - x0), PH = s.OH / 4;
    const int halo = across > 0 ? 4 : 0;  // columns that belong to the strip to the left
    const int begin = (int64_t)part * sweep.strips / sweep.parts;
    const int end = (int64_t)(part + 1) * sweep.strips / sweep.parts, start = begin - (part > 0);
    double sums[SHARE] = {};
    for (int k = start; k < end; ++k) {
        const int y0 = k * 4, rows = min(4, s.OH - y0);
        for (int first = 0; first < s.OC; first += CHANNELS) {
            const int channels = min(CHANNELS, s.OC - first);
            __syncthreads();  // nobody reads the last gv any more
            for (int i = threadIdx.x; i < channels * STRIP_WINDOWS; i += G_THREADS) {  // one window a thread
                const int window = i % STRIP_WINDOWS, c = first + i / STRIP_WINDOWS;
                const int64_t group = (int64_t)n * (s.OC / channels_a_group) + c / channels_a_group;
                const double mean = means[group].x, rstd = means[group].y, a = terms[group].x, b = terms[group].y;
                const double sign = strip.up[c] < 0.0f ? -1.0 : 1.0;
                float* const to = gv + i / STRIP_WINDOWS * (4 * WIDE) + window * 4;
                double best = -INFINITY;
                int place = 0;
                for (int p = 0; p < 16; ++p) {
                    const int row = p / 4, column = window * 4 + p % 4;
                    if (row >= rows || column >= columns) continue;
                    const double d = exact_v(image, weight + c * s.C * TAPS, bias[c], y0 + row, x0 + column, s) - mean;
                    if (d * sign > best) best = d * sign, place = p;
                    to[row * WIDE + p % 4] = -(a + b * (d * rstd)) * rstd;
                }
                if (k * 4 + 3 >= s.OH || window * 4 + 3 >= columns) continue;  // no window
                const int64_t line = (((int64_t)n * s.OC + c) * PH + k) * sweep.across + across;
                const float of_window = gm[line * STRIP_WINDOWS + window / 8 * 8 + window % 2 * 4 + window % 8 / 2];
                to[place / 4 * WIDE + place % 4] += (double)gamma[c] * factor[c] * of_window * rstd;
            }
            __syncthreads();  // gv is complete
            for (int i = threadIdx.x; gx != nullptr && i < s.C * WIDE; i += G_THREADS) {
                const int column = i % WIDE;
                if (column < halo || x0 + column >= s.W) continue;
                for (int r = 0; r < 6; ++r) {
                    const int row = y0 + r;
                    if (row < begin * 4 || row >= (end == sweep.strips ? s.H : end * 4)) continue;
                    float& to = gx[(((int64_t)n * s.C + i / WIDE) * s.H + row) * s.W + x0 + column];
                    double sum = first > 0 || (r < 2 && k > start) ? to : 0.0f;  // what the strip above gave
                    for (int c = 0; c < channels; ++c) {
                        const float* w = weight + ((first + c) * s.C + i / WIDE) * TAPS;
                        for (int tap = 0; tap < TAPS; ++tap) {
                            const int y = r - tap / 3, x = column - tap % 3;
                            if (y < 0 || y >= rows || x < 0 || x >= columns) continue;
                            sum += (double)w[tap] * gv[(c * 4 + y) * WIDE + x];
                        }
                    }
                    to = sum;
                }
            }
            for (int i = 0; parts != nullptr && k >= begin && i < SHARE; ++i) {
                const int at = i * G_THREADS + threadIdx.x, tap = at / (CHUNK * IN), c = at / IN % CHUNK - first;
                if (c < 0 || c >= channels || at % IN >= s.C) continue;
                const float* from = image + ((int64_t)(at % IN) * s.H + y0 + tap / 3) * s.W + x0 + tap % 3;
                double sum = 0.0;
                for (int row = 0; row < rows; ++row, from += s.W) {
                    for (int x = halo; x < columns; ++x) sum += gv[(c * 4 + row) * WIDE + x] * as_factor(from[x]);
                }
                sums[i] += sum;
            }
        }
    }
    __syncthreads();  // nobody reads gv any more, and the last unit's sums are there
    for (int i = 0; parts != nullptr && i < SHARE; ++i) {
        float& to = parts[(int64_t)blockIdx.x * TERMS + i * G_THREADS + threadIdx.x];
        to = add ? to + sums[i] : sums[i];
    }
    for (int i = threadIdx.x; i < (int)(sizeof(strip.gv) / 16); i += G_THREADS) strip.gv[i] = {};  // as it was
    __syncthreads();  // all is there for the next unit
}

// gx (N, C, H, W), and of each block a part of the weight's gradient, (blocks, 9, CHUNK, IN); null where one is not
// needed. Blocks sweep down images, or parts of them, one strip after another: v once more, then gv, which never leaves
// shared memory. A strip's gv reaches two rows of gx further than the strip: those wait in registers for the next one.
// largest: of x, by forward's tiles.
__global__ void __launch_bounds__(G_THREADS, G_BLOCKS)
gradient_kernel(const float* x, const float* weight, const float* bias, const float* gamma, const float* factor,
                const float2* means, const float4* terms, const float* largest, const float* gm, float* gx,
                float* parts, int channels_a_group, Sweep sweep, Shape s) {
#ifdef TENSOR_CORES
    extern __shared__ uint4 shared[];
    Strip& strip = *reinterpret_cast<Strip*>(shared);
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    const int groups = s.OC / channels_a_group;
    const bool vector = s.W % 4 == 0 && reinterpret_cast<uintptr_t>(x) % 16 == 0;
    for (int i = threadIdx.x; i < (int)(sizeof(strip.gv) / 16); i += G_THREADS) strip.gv[i] = {};
    if constexpr (AHEAD) {
        for (int i = threadIdx.x; i < IN * X_ROWS * RAW; i += G_THREADS) strip.raw[i] = 0.0f;  // not all may come
    }
    const int weight_exponent = bring_weights(strip, weight, gamma, factor, s);
    for (int unit = blockIdx.x; unit < sweep.units; unit += gridDim.x) {
        const int n = unit / (sweep.across * sweep.parts), across = unit / sweep.parts % sweep.across;
        const int part = unit % sweep.parts, x0 = across * STEP, columns = min(WIDE, s.OW - x0);
        const int begin = (int64_t)part * sweep.strips / sweep.parts;
        const int end = (int64_t)(part + 1) * sweep.strips / sweep.parts;
        const float* image = x + (int64_t)n * s.C * s.H * s.W;
        float usual;
        bool outlying;
        const float most = largest_of_image(largest, n, s, usual, outlying);
        if (outlying) {
            outlying_unit(strip, image, weight, bias, gamma, factor, means, terms, gm, gx, parts, unit >= gridDim.x, n,
                          across, part, channels_a_group, sweep, s);
            continue;
        }
        float bound = 0.0f;
        for (int i = lane; i < groups; i += WARP) {
            const float of_group = terms[(int64_t)n * groups + i].z;
            if (of_group < INFINITY) bound = fmaxf(bound, of_group);
        }
        bound = __uint_as_float(__reduce_max_sync(ALL_LANES, __float_as_uint(bound)));
        const int x_exponent = exponent_for(most), exponent = exponent_of_gradient(bound);
        const float x_up = power_of_two(x_exponent), back = power_of_two(-exponent);
        const float middle = terms[(int64_t)n * groups].w;  // x is taken about it
        __syncthreads();  // weights are there, and nobody reads the last unit's strip any more
        if constexpr (AHEAD) bring_x(strip, image, x, (begin - (part > 0)) * 4, x0, vector, s);
        if (threadIdx.x < CHUNK) {
            const int c = threadIdx.x;
            float4 of = {};
            if (c < s.OC) {
                const int64_t group = (int64_t)n * groups + c / channels_a_group;
                const float2 m = means[group];
                const float4 ab = terms[group];
                const float unit_of_gv = m.y * power_of_two(exponent), b = ab.y * unit_of_gv;
                of.x = -b * (m.y * power_of_two(-x_exponent) / strip.up[c]);
                of.y = -(ab.x * unit_of_gv + b * ((fmaf(middle, strip.whole[c], bias[c]) - m.x) * m.y));
                of.z = gamma[c] * factor[c] * unit_of_gv;
                of.w = 0x1p-22f * (strip.magnitude[c] * fabsf(strip.up[c])) * ((most + fabsf(middle)) * x_up);
            }
            strip.of_channel[c] = of;
        }
        float total[TAPS][4] = {};  // of the weight's gradient: channels g, g + 8 of gv and 2 t, 2 t + 1 of x
        float sum[6][4] = {};       // of gx: pixels g, g + 8 and channels 2 t, 2 t + 1
        const int64_t plane = (int64_t)s.H * s.W;
        float* const to_x = gx + ((int64_t)n * s.C + 2 * t) * plane + x0 + warp * 16 + g;
        bool mine[4];  // what the lane writes of these
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int column = warp * 16 + g + i / 2 * 8;
            mine[i] = 2 * t + i % 2 < s.C && x0 + column < s.W && (across == 0 || column >= 4);
        }
        for (int k = begin - (part > 0); k < end; ++k) {
            const int y0 = k * 4;
            if constexpr (AHEAD) wait_for_copies();
            __syncthreads();  // x is there, and nobody reads the last strip any more
            halve_x(strip, image, y0, x0, x_up, -middle * x_up, s);
            __syncthreads();  // x is complete in halves
            if constexpr (AHEAD) {
                if (k + 1 < end) bring_x(strip, image, x, y0 + 4, x0, vector, s);
            }
            make_gv(strip, image, weight, gm, n, y0, across, min(4, s.OH - y0), columns, sweep, s);
            __syncthreads();  // gv is complete
            if (gx != nullptr && x0 + warp * 16 < s.W) {
                add_gx(strip, sum);
                const int rows = k < begin ? 0 : min(k + 1 == sweep.strips ? 6 : 4, s.H - y0);
                const float down = power_of_two(-weight_exponent);
                float* to = to_x + (int64_t)y0 * s.W;
#pragma unroll
                for (int r = 0; r < 6; ++r, to += s.W) {
                    if (r >= rows) break;
                    if (mine[0]) to[0] = sum[r][0] * back * down;
                    if (mine[1]) to[plane] = sum[r][1] * back * down;
                    if (mine[2]) to[8] = sum[r][2] * back * down;
                    if (mine[3]) to[plane + 8] = sum[r][3] * back * down;
                }
#pragma unroll
                for (int i = 0; i < 24; ++i) sum[i / 4][i % 4] = i < 8 ? sum[i / 4 + 4][i % 4] : 0.0f;
            }
            if (parts != nullptr && k >= begin) {
                if (across > 0) {  // the halo's weight was counted in the strip to the left
                    __syncthreads();  // nobody reads gv for gx any more
                    for (int i = threadIdx.x; i < (BOTH ? 2 : 1) * CHUNK / 8 * 16; i += G_THREADS) {
                        strip.gv[i / 16 * G_PLANE + i / 4 % 4 * COLUMNS + 2 + i % 4] = {};
                    }
                    __syncthreads();  // the halo is gone
                }
                add_weight(strip, columns, total);
            }
        }
        if (parts == nullptr) continue;
        float* to = parts + ((int64_t)blockIdx.x * TAPS * CHUNK + warp % (CHUNK / 16) * 16 + g) * IN + 2 * t;
        const float down = back * power_of_two(-x_exponent);
        for (int half = 0; half < G_WARPS / (CHUNK / 16); ++half) {  // one after another, in their order
            __syncthreads();  // the half before is there
            if (warp / (CHUNK / 16) != half) continue;
            const bool add = half > 0 || unit >= gridDim.x;
#pragma unroll
            for (int i = 0; i < 2 * TAPS; ++i) {
                float2& at = *reinterpret_cast<float2*>(to + (i / 2 * CHUNK + i % 2 * 8) * IN);
                const float2 before = add ? at : make_float2(0.0f, 0.0f);
                at = {fmaf(total[i / 2][i % 2 * 2], down, before.x), fmaf(total[i / 2][i % 2 * 2 + 1], down, before.y)};
            }
        }
    }
#endif
}

// ---- any shape, any GPU: backward.py's kernels ----

namespace general {

constexpr int64_t MAX_GRID_Y = 65535;

// x (N, C, H, W), weight (OC, C, KH, KW), bias (OC) -> y (N, OC, OH, OW), `total` elements.
__global__ void conv2d_kernel(const float* x, const float* weight, const float* bias, float* y, int64_t total,
                              int C, int H, int W, int OC, int KH, int KW, int OH, int OW) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;  // the last block has threads to spare

    const int ox = i % OW;
    const int oy = i / OW % OH;
    const int oc = i / OW / OH % OC;
    const int64_t n = i / OW / OH / OC;  // 64 bits: the products below may pass 2^31

    float sum = bias[oc];
    for (int c = 0; c < C; ++c) {
        for (int ky = 0; ky < KH; ++ky) {
            const float* x_row = x + ((n * C + c) * H + oy + ky) * W + ox;
            const float* w_row = weight + (((int64_t)oc * C + c) * KH + ky) * KW;
            for (int kx = 0; kx < KW; ++kx) {
                sum += x_row[kx] * w_row[kx];
            }
        }
    }
    y[i] = sum;
}

// Sum of every thread's v, returned to every thread of the block. All of them must call it.
__device__ float block_sum(float v) {
    __shared__ float warp_sum[THREADS / WARP];
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        v += __shfl_down_sync(ALL_LANES, v, offset);  // lane 0 ends with the sum of its warp
    }
    if (threadIdx.x % WARP == 0) warp_sum[threadIdx.x / WARP] = v;
    __syncthreads();  // all warps have written
    float sum = 0;
    for (int warp = 0; warp < THREADS / WARP; ++warp) sum += warp_sum[warp];
    __syncthreads();  // all have read: the next call may write
    return sum;
}

// One block a group: x (groups of all images, elements) -> mean, rstd = 1 / sqrtf(variance + eps), both (groups).
__global__ void group_statistics_kernel(const float* x, float* mean, float* rstd, int64_t elements, float eps) {
    x += blockIdx.x * elements;
    float sum = 0;
    for (int64_t i = threadIdx.x; i < elements; i += THREADS) sum += x[i];
    const float centre = block_sum(sum) / elements;

    float squares = 0, deviations = 0;
    for (int64_t i = threadIdx.x; i < elements; i += THREADS) {
        const float d = x[i] - centre;
        squares += d * d;
        deviations += d;
    }
    // The deviations from the exact mean sum to 0. What is left is the rounding error of centre: take it out again.
    const float error = block_sum(deviations) / elements;
    const float variance = block_sum(squares) / elements - error * error;

    if (threadIdx.x == 0) {
        mean[blockIdx.x] = centre + error;
        rstd[blockIdx.x] = 1 / sqrtf((variance > 0 ? variance : 0) + eps);
    }
}

// v (N, C, H, W) -> y (N, C, PH, PW), `total` elements: the maximum over a pool x pool window of
// ((v - mean) * rstd * gn_weight + gn_bias) * scale, kept between clamp_min and clamp_max. at, like y: the first
// maximum's place in its window, -1 where the clamp has changed it or it is NaN.
__global__ void norm_scale_maxpool_clamp_kernel(const float* v, const float* mean, const float* rstd,
                                                const float* gn_weight, const float* gn_bias, const float* scale,
                                                float* y, int* at, int64_t total, int C, int channels_a_group, int H,
                                                int W, int pool, int PH, int PW, float clamp_min, float clamp_max) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    const int px = i % PW;
    const int py = i / PW % PH;
    const int64_t plane = i / PW / PH;  // n * C + c
    const int c = plane % C;
    const int64_t group = plane / channels_a_group;  // over all images, as C is a whole number of groups
    const float m = mean[group], r = rstd[group], w = gn_weight[c], b = gn_bias[c], s = scale[c];

    float best = -INFINITY;
    int place = 0;
    for (int dy = 0; dy < pool; ++dy) {
        const float* row = v + (plane * H + (int64_t)py * pool + dy) * W + (int64_t)px * pool;
        for (int dx = 0; dx < pool; ++dx) {
            const float value = ((row[dx] - m) * r * w + b) * s;
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
__global__ void plane_sums_kernel(const float* gy, const int* at, const float* v, const float* mean,
                                  const float* rstd, float* plain, float* weighted, int channels_a_group, int H,
                                  int W, int pool, int PH, int PW) {
    const int64_t group = blockIdx.x / channels_a_group;  // over all images
    const float m = mean[group], r = rstd[group];
    const int64_t first = (int64_t)blockIdx.x * PH * PW;
    v += (int64_t)blockIdx.x * H * W;
    float sum = 0, products = 0;
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
        weighted[blockIdx.x] = products + 0.0f * m;  // NaN in a group of NaN, as in eager
    }
}

// One thread a group of an image: a and b, the group's means of factor * gm and of factor * gm * xh, where
// factor = gn_weight[c] * scale[c].
__global__ void group_means_kernel(const float* plain, const float* weighted, const float* gn_weight,
                                   const float* scale, float* a, float* b, int groups_of_all_images, int C,
                                   int channels_a_group, int64_t pixels) {
    const int group = blockIdx.x * blockDim.x + threadIdx.x;
    if (group >= groups_of_all_images) return;
    float sum = 0, products = 0;
    for (int plane = group * channels_a_group; plane < (group + 1) * channels_a_group; ++plane) {
        const float factor = gn_weight[plane % C] * scale[plane % C];
        sum += factor * plain[plane];
        products += factor * weighted[plane];
    }
    const float elements = float(channels_a_group) * float(pixels);
    a[group] = sum / elements;
    b[group] = products / elements;
}

// One block a plane: gv (N, C, H, W), and each plane's sum of it, total (N, C).
__global__ void gv_kernel(const float* gy, const int* at, const float* v, const float* mean, const float* rstd,
                          const float* gn_weight, const float* scale, const float* a, const float* b, float* gv,
                          float* total, int C, int channels_a_group, int H, int W, int pool, int PH, int PW) {
    const int c = blockIdx.x % C;
    const int64_t group = blockIdx.x / channels_a_group;
    const float m = mean[group], r = rstd[group], factor = gn_weight[c] * scale[c];
    const float mean_gm = a[group], mean_gm_xh = b[group];
    const int64_t pixels = (int64_t)H * W, first = blockIdx.x * pixels;
    float sum = 0;
    for (int64_t p = threadIdx.x; p < pixels; p += THREADS) {
        const int row = p / W, column = p % W, py = row / pool, px = column / pool;
        float gm = 0;
        if (py < PH && px < PW) {  // the last rows and columns may belong to no window
            const int64_t window = ((int64_t)blockIdx.x * PH + py) * PW + px;
            if (at[window] == row % pool * pool + column % pool) gm = gy[window];
        }
        const float xh = (v[first + p] - m) * r;
        const float g = (gm * factor - mean_gm - xh * mean_gm_xh) * r;
        gv[first + p] = g;
        sum += g;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) total[blockIdx.x] = sum;
}

// One thread a channel: plain, weighted (N, C) -> ggn_weight, ggn_bias, gscale (C), in the order of the images.
__global__ void channels_kernel(const float* plain, const float* weighted, const float* gn_weight,
                                const float* gn_bias, const float* scale, float* ggn_weight, float* ggn_bias,
                                float* gscale, int64_t N, int C) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= C) return;
    float sum = 0, products = 0;
    for (int64_t n = 0; n < N; ++n) {
        sum += plain[n * C + c];
        products += weighted[n * C + c];
    }
    ggn_weight[c] = products * scale[c];
    ggn_bias[c] = sum * scale[c];
    gscale[c] = products * gn_weight[c] + sum * gn_bias[c];
}

// The convolution's gradients, as in conv2d_backward. Here gy is the gradient of the convolution's result.

// gy (N, OC, OH, OW), weight (OC, C, KH, KW) -> gx (N, C, H, W), `total` elements.
__global__ void gx_kernel(const float* gy, const float* weight, float* gx, int64_t total,
                          int C, int H, int W, int OC, int KH, int KW, int OH, int OW) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    const int ix = i % W;
    const int iy = i / W % H;
    const int c = i / W / H % C;
    const int64_t n = i / W / H / C;
    float sum = 0;
    for (int oc = 0; oc < OC; ++oc) {
        for (int ky = 0; ky < KH; ++ky) {
            const int oy = iy - ky;  // the window that has this pixel in its row ky
            if (oy < 0 || oy >= OH) continue;
            const float* gy_row = gy + ((n * OC + oc) * OH + oy) * OW;
            const float* w_row = weight + (((int64_t)oc * C + c) * KH + ky) * KW;
            for (int kx = 0; kx < KW; ++kx) {
                const int ox = ix - kx;
                if (ox >= 0 && ox < OW) sum += gy_row[ox] * w_row[kx];
            }
        }
    }
    gx[i] = sum;
}

// The sum over the warp's 32 lanes, in lane 0. All of them must call it.
__device__ float warp_sum(float v) {
    for (int offset = WARP / 2; offset > 0; offset /= 2) v += __shfl_down_sync(ALL_LANES, v, offset);
    return v;
}

// Stage 1 of gweight, one warp for each of `weights` elements and each row blockIdx.y of parts (rows, weights). Row r
// has images r, r + rows, r + 2 * rows, ... : one image a row, unless there are more images than a grid may have rows.
__global__ void weight_parts_kernel(const float* gy, const float* x, float* parts, int64_t N, int64_t weights,
                                    int C, int H, int W, int OC, int KH, int KW, int OH, int OW) {
    const int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / WARP;  // this warp's element of weight
    const int lane = threadIdx.x % WARP;
    if (i >= weights) return;  // all lanes together
    const int kx = i % KW;
    const int ky = i / KW % KH;
    const int c = i / KW / KH % C;
    const int oc = i / KW / KH / C;
    float sum = 0;
    for (int64_t n = blockIdx.y; n < N; n += gridDim.y) {
        const float* gy_plane = gy + (n * OC + oc) * OH * OW;
        const float* x_plane = x + (n * C + c) * H * W + (int64_t)ky * W + kx;
        for (int p = lane; p < OH * OW; p += WARP) {
            sum += gy_plane[p] * x_plane[(int64_t)(p / OW) * W + p % OW];
        }
    }
    sum = warp_sum(sum);
    if (lane == 0) parts[blockIdx.y * weights + i] = sum;
}

// Stage 2: parts (rows, count) -> sums (count), one thread each, in the order of the rows.
__global__ void images_kernel(const float* parts, float* sums, int64_t rows, int64_t count) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float sum = 0;
    for (int64_t row = 0; row < rows; ++row) sum += parts[row * count + i];
    sums[i] = sum;
}

}  // namespace general

// ---- launches ----

// What the tensor cores' kernels need for a shape; fast: whether they can take it.
struct Plan {
    bool fast;
    int64_t windows, tiles, gm;               // elements of what forward and backward leave for their later kernels
    int64_t kept, of_forward, of_backward;    // floats: of what forward leaves for backward; of workspace
    int64_t parts;                            // moments a channel
    int blocks;                               // of gradient_kernel
    Shape s;
    Sweep sweep;
};

// Blocks of statistics_kernel and of gradient_kernel that the GPU holds at a time; 0 where one cannot run or was not
// compiled for tensor cores.
struct Resident {
    int multiprocessors, major;
    int64_t forward, backward;
};

template <typename Kernel>
static int64_t resident_blocks(Kernel kernel, int threads, int bytes, int multiprocessors) {
    cudaFuncAttributes attributes = {};
    int blocks = 0;
    if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess || attributes.ptxVersion < 80 ||
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) != cudaSuccess ||
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, bytes) != cudaSuccess) {
        cudaGetLastError();  // that a GPU has too little shared memory is no error here
        blocks = 0;
    }
    return (int64_t)blocks * multiprocessors;
}

static Resident resident() {
    static Resident known[16];  // asking takes longer than launching
    int device = 0, multiprocessors = 0, major = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    Resident& k = known[device % 16];
    if (device < 16 && k.multiprocessors == multiprocessors && k.major == major) return k;
    k = {multiprocessors, major, 0, 0};
    if (major >= 8) {
        k.forward = resident_blocks(statistics_kernel<SPLIT, TALL, ROWS, WARPS, BLOCKS, true>, WARPS * WARP,
                                    tile_bytes(SPLIT, ROWS), multiprocessors);
        k.backward = resident_blocks(gradient_kernel, G_THREADS, sizeof(Strip), multiprocessors);
    }
    return k;
}

static Plan plan(int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC, int64_t KH, int64_t KW, int64_t groups,
                 int64_t pool) {
    Plan p = {};
    if (N == 0 || C == 0 || C > IN || OC > CHUNK || KH != 3 || KW != 3 || pool != 4) return p;
    const Resident on = resident();
    if (on.forward == 0 || on.backward == 0) return p;
    const int64_t OH = H - 2, OW = W - 2, PH = OH / 4;
    const int64_t tiles_x = (OW + WIDE - 1) / WIDE, tiles_y = (OH + ROWS - 1) / ROWS, of_image = tiles_x * tiles_y;
    const int64_t strips = (OH + 3) / 4, across = W <= WIDE ? 1 : (W - 4 + STEP - 1) / STEP;
    p.tiles = N * of_image;
    if ((IN + 1) * H * W >= INT_MAX) return p;
    if (p.tiles >= INT_MAX || N * strips * across >= INT_MAX || N * OC >= INT_MAX) return p;
    if (PH * across * STRIP_WINDOWS >= INT_MAX || PH * tiles_x * (WIDE / 4) >= INT_MAX) return p;
    p.fast = true;
    const int64_t blocks = std::min(p.tiles, on.forward);
    p.s = {(int)C, (int)H, (int)W, (int)OC, (int)OH, (int)OW, (int)tiles_x, (int)tiles_y, (int)p.tiles, (int)blocks};
    p.parts = std::min(of_image, of_image * blocks / p.tiles + 2) * (WARPS * TALL * 16 / CHUNK);
    p.windows = N * OC * PH * tiles_x * (WIDE / 4);
    p.kept = p.windows + 2 * N * groups + N * OC + 2 * p.tiles;
    p.of_forward = N * OC * 3 * p.parts;
    p.gm = N * OC * PH * across * STRIP_WINDOWS;
    // An image is cut into as many parts as keep the GPU busiest; every part but the first makes one strip twice.
    int64_t parts = 1, best = INT64_MAX;
    for (int64_t i = 1; i <= strips; ++i) {
        const int64_t rounds = (N * across * i + on.backward - 1) / on.backward;
        const int64_t cost = rounds * ((strips + i - 1) / i + (i > 1));
        if (cost < best) best = cost, parts = i;
    }
    const int64_t units = N * across * parts;
    p.sweep = {(int)strips, (int)parts, (int)across, (int)units};
    p.blocks = std::min(units, on.backward);
    p.of_backward = p.gm + 4 * N * groups + 2 * N * OC + CHUNK + (int64_t)p.blocks * TAPS * CHUNK * IN;
    return p;
}

// floats: what the fast kernels keep from forward for backward, need for forward, and for backward. False where the
// general kernels have to do it.
bool conv_groupnorm_maxpool_fast(int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC, int64_t KH, int64_t KW,
                                 int64_t groups, int64_t pool, int64_t* floats) {
    const Plan p = plan(N, C, H, W, OC, KH, KW, groups, pool);
    floats[0] = p.kept, floats[1] = p.of_forward, floats[2] = p.of_backward;
    return p.fast;
}

static const char* message() {
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

// Returns what went wrong, or null. Every tensor is contiguous.
const char* conv_groupnorm_maxpool_fast_forward(const float* x, const float* conv_weight, const float* conv_bias,
                                                const float* gn_weight, const float* gn_bias, const float* scale,
                                                float* y, float* kept, float* workspace, int64_t N, int64_t C,
                                                int64_t H, int64_t W, int64_t OC, int64_t groups, double eps,
                                                double clamp_min, double clamp_max, void* stream_of_torch) {
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of_torch);
    const Plan p = plan(N, C, H, W, OC, 3, 3, groups, 4);
    float *windows = kept, *means = windows + p.windows, *deviations = means + 2 * N * groups;
    float* largest = deviations + N * OC;
    Moments* moments = reinterpret_cast<Moments*>(workspace);
    statistics_kernel<SPLIT, TALL, ROWS, WARPS, BLOCKS, true>
        <<<p.s.blocks, WARPS * WARP, tile_bytes(SPLIT, ROWS), stream>>>(x, conv_weight, conv_bias, gn_weight, scale,
                                                                        windows, moments, largest, p.parts, p.s);
    finish_kernel<<<N * groups, THREADS, 0, stream>>>(windows, moments, gn_weight, gn_bias, scale, x, conv_weight,
                                                      conv_bias, largest, y, reinterpret_cast<float2*>(means),
                                                      deviations, OC / groups, p.parts, WARPS * TALL * 16 / CHUNK, p.s,
                                                      eps, clamp_min, clamp_max);
    return message();
}

// gx and gconv_weight may be null.
const char* conv_groupnorm_maxpool_fast_backward(const float* gy, const float* x, const float* conv_weight,
                                                 const float* conv_bias, const float* gn_weight, const float* gn_bias,
                                                 const float* scale, const float* kept, float* gx,
                                                 float* gconv_weight, float* gconv_bias, float* ggn_weight,
                                                 float* ggn_bias, float* gscale, float* workspace, int64_t N, int64_t C,
                                                 int64_t H, int64_t W, int64_t OC, int64_t groups, double clamp_min,
                                                 double clamp_max, void* stream_of_torch) {
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of_torch);
    const Plan p = plan(N, C, H, W, OC, 3, 3, groups, 4);
    const float *windows = kept, *means = windows + p.windows, *deviations = means + 2 * N * groups;
    const float* largest = deviations + N * OC;
    const float2* of_groups = reinterpret_cast<const float2*>(means);
    float *gm = workspace, *terms = gm + p.gm, *sums = terms + 4 * N * groups, *of_middles = sums + 2 * N * OC;
    float* weights = of_middles + CHUNK;
    float4* ab = reinterpret_cast<float4*>(terms);
    float2* of_planes = reinterpret_cast<float2*>(sums);
    window_sums_kernel<<<N * groups, THREADS, 0, stream>>>(gy, windows, of_groups, gn_weight, gn_bias, scale, x,
                                                           conv_weight, conv_bias, largest, gm, of_planes, ab,
                                                           OC / groups, p.sweep.across, p.s, clamp_min, clamp_max);
    channels_kernel<<<OC, WARP, 0, stream>>>(of_planes, ab, of_groups, deviations, gn_weight, gn_bias, scale,
                                             ggn_weight, ggn_bias, gscale, gconv_bias, of_middles, N, OC / groups,
                                             p.s);
    if (gx != nullptr || gconv_weight != nullptr) {
        gradient_kernel<<<p.blocks, G_THREADS, sizeof(Strip), stream>>>(
            x, conv_weight, conv_bias, gn_weight, scale, of_groups, ab, largest, gm, gx,
            gconv_weight == nullptr ? nullptr : weights, OC / groups, p.sweep, p.s);
    }
    if (gconv_weight != nullptr) {
        weight_kernel<<<TAPS * CHUNK * IN / (THREADS / WARP), THREADS, 0, stream>>>(weights, of_middles,
                                                                                    gconv_weight, p.blocks, p.s);
    }
    return message();
}

// ---- launches of the general kernels ----

static int grid_for(int64_t threads) { return (threads + THREADS - 1) / THREADS; }

// v (N, OC, OH, OW) and at (N, OC, PH, PW) are for backward, as are mean and rstd (N, groups).
const char* conv_groupnorm_maxpool_general_forward(const float* x, const float* conv_weight, const float* conv_bias,
                                                   const float* gn_weight, const float* gn_bias, const float* scale,
                                                   float* y, int* at, float* v, float* mean, float* rstd, int64_t N,
                                                   int64_t C, int64_t H, int64_t W, int64_t OC, int64_t KH, int64_t KW,
                                                   int64_t groups, double eps, int64_t pool, double clamp_min,
                                                   double clamp_max, void* stream_of_torch) {
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of_torch);
    const int64_t OH = H - KH + 1, OW = W - KW + 1, PH = OH / pool, PW = OW / pool;
    const int64_t elements = N * OC * OH * OW, windows = N * OC * PH * PW;
    if ((elements + THREADS - 1) / THREADS > INT_MAX) return "more elements than a grid has threads";
    general::conv2d_kernel<<<grid_for(elements), THREADS, 0, stream>>>(x, conv_weight, conv_bias, v, elements, C, H, W,
                                                                       OC, KH, KW, OH, OW);
    general::group_statistics_kernel<<<N * groups, THREADS, 0, stream>>>(v, mean, rstd, OC / groups * OH * OW, eps);
    general::norm_scale_maxpool_clamp_kernel<<<grid_for(windows), THREADS, 0, stream>>>(
        v, mean, rstd, gn_weight, gn_bias, scale, y, at, windows, OC, OC / groups, OH, OW, pool, PH, PW, clamp_min,
        clamp_max);
    return message();
}

// Floats that the general backward needs: gv, sums, means, parts of the weight's gradient.
int64_t conv_groupnorm_maxpool_general_workspace(int64_t N, int64_t C, int64_t H, int64_t W, int64_t OC, int64_t KH,
                                                 int64_t KW, int64_t groups) {
    return N * OC * (H - KH + 1) * (W - KW + 1) + 3 * N * OC + 2 * N * groups +
           std::min<int64_t>(N, general::MAX_GRID_Y) * OC * C * KH * KW;
}

// gx and gconv_weight may be null.
const char* conv_groupnorm_maxpool_general_backward(const float* gy, const float* x, const float* conv_weight,
                                                    const float* gn_weight, const float* gn_bias, const float* scale,
                                                    const int* at, const float* v, const float* mean,
                                                    const float* rstd, float* gx, float* gconv_weight,
                                                    float* gconv_bias, float* ggn_weight, float* ggn_bias,
                                                    float* gscale, float* workspace, int64_t N, int64_t C, int64_t H,
                                                    int64_t W, int64_t OC, int64_t KH, int64_t KW, int64_t groups,
                                                    int64_t pool, void* stream_of_torch) {
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of_torch);
    const int64_t OH = H - KH + 1, OW = W - KW + 1, PH = OH / pool, PW = OW / pool, each = OC / groups;
    const int64_t of_weight = OC * C * KH * KW;
    if ((N * C * H * W + THREADS - 1) / THREADS > INT_MAX) return "more elements than a grid has threads";
    if ((of_weight * WARP + THREADS - 1) / THREADS > INT_MAX) return "more weights than a grid has warps";
    float *gv = workspace, *plain = gv + N * OC * OH * OW, *weighted = plain + N * OC, *total = weighted + N * OC;
    float *a = total + N * OC, *b = a + N * groups, *parts = b + N * groups;
    general::plane_sums_kernel<<<N * OC, THREADS, 0, stream>>>(gy, at, v, mean, rstd, plain, weighted, each, OH, OW,
                                                               pool, PH, PW);
    general::group_means_kernel<<<grid_for(N * groups), THREADS, 0, stream>>>(plain, weighted, gn_weight, scale, a, b,
                                                                              N * groups, OC, each, OH * OW);
    general::gv_kernel<<<N * OC, THREADS, 0, stream>>>(gy, at, v, mean, rstd, gn_weight, scale, a, b, gv, total, OC,
                                                       each, OH, OW, pool, PH, PW);
    general::channels_kernel<<<grid_for(OC), THREADS, 0, stream>>>(plain, weighted, gn_weight, gn_bias, scale,
                                                                   ggn_weight, ggn_bias, gscale, N, OC);
    general::images_kernel<<<grid_for(OC), THREADS, 0, stream>>>(total, gconv_bias, N, OC);
    if (gx != nullptr) {
        const int64_t elements = N * C * H * W;
        general::gx_kernel<<<grid_for(elements), THREADS, 0, stream>>>(gv, conv_weight, gx, elements, C, H, W, OC, KH,
                                                                       KW, OH, OW);
    }
    if (gconv_weight != nullptr) {
        const int64_t rows = std::min<int64_t>(N, general::MAX_GRID_Y);
        general::weight_parts_kernel<<<dim3(grid_for(of_weight * WARP), rows), THREADS, 0, stream>>>(
            gv, x, parts, N, of_weight, C, H, W, OC, KH, KW, OH, OW);
        general::images_kernel<<<grid_for(of_weight), THREADS, 0, stream>>>(parts, gconv_weight, rows, of_weight);
    }
    return message();
}
"""

kernels = load_inline(
    name="conv_groupnorm_maxpool_backward_fp32",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["forward", "backward"],
    extra_cuda_cflags=["-O3"],
    no_implicit_headers=True,
)


class ConvGroupnormMaxpool(torch.autograd.Function):
    """What autograd calls: forward keeps what backward reads, backward returns a gradient for each of its arguments."""

    @staticmethod
    def forward(ctx, x, conv_weight, conv_bias, gn_weight, gn_bias, scale, groups, eps, pool, clamp_min, clamp_max):
        y, *kept = kernels.forward(
            x, conv_weight, conv_bias, gn_weight, gn_bias, scale, groups, eps, pool, clamp_min, clamp_max
        )
        ctx.save_for_backward(x, conv_weight, conv_bias, gn_weight, gn_bias, scale, *kept)
        ctx.numbers = groups, pool, clamp_min, clamp_max
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gy):
        saved, needed = ctx.saved_tensors, ctx.needs_input_grad[:6]
        made = kernels.backward(gy, *saved[:6], saved[6:], *ctx.numbers, *needed[:2])
        return *(gradient if wanted else None for gradient, wanted in zip(made, needed)), *[None] * 5


class ModelNew(nn.Module):
    """The same function as Model with the same gradients: x (N, in_channels, H, W) -> (N, out_channels, PH, PW)."""

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
            x, self.conv.weight, self.conv.bias, gn.weight, gn.bias, self.scale,
            gn.num_groups, gn.eps, self.pool, self.clamp_min, self.clamp_max,
        )
