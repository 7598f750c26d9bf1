"""conv_groupnorm_maxpool, step 1: a kernel for each operator, one thread per element.

As in the model's own lines: convolution, statistics, normalisation, scale, pooling, clamp. Each kernel reads all of
what the one before wrote, half a gigabyte up to the pooling, and every thread divides 64-bit numbers to find its place.

Bought: nothing yet. At full size simt counts 6 launches that read and write 3.8 GB, and 7,727 million warp-level
instructions, 6,634 million of them the convolution's.
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
constexpr int THREADS = 256;  // a block: a whole number of warps

// x (N, C, H, W), weight (OC, C, KH, KW), bias (OC) -> y (N, OC, OH, OW), `total` elements: thread i makes element i.
__global__ void conv2d_kernel(const float* x, const float* weight, const float* bias, float* y, int64_t total,
                              int C, int H, int W, int OC, int KH, int KW, int OH, int OW) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= total) return;  // the last block has threads to spare

    const int64_t ox = i % OW;
    const int64_t oy = i / OW % OH;
    const int64_t oc = i / OW / OH % OC;
    const int64_t n = i / OW / OH / OC;

    float sum = bias[oc];
    for (int c = 0; c < C; ++c) {
        for (int ky = 0; ky < KH; ++ky) {
            for (int kx = 0; kx < KW; ++kx) {
                sum += x[((n * C + c) * H + oy + ky) * W + ox + kx] * weight[((oc * C + c) * KH + ky) * KW + kx];
            }
        }
    }
    y[i] = sum;
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
    const int64_t total = v.numel(), blocks = (total + THREADS - 1) / THREADS;
    TORCH_CHECK(blocks <= INT_MAX, "the output has more elements than a grid of blocks of ", THREADS, " threads");
    conv2d_kernel<<<blocks, THREADS, 0, stream>>>(
        x.data_ptr<float>(), conv_weight.data_ptr<float>(), conv_bias.data_ptr<float>(), v.data_ptr<float>(), total,
        C, H, W, OC, KH, KW, OH, OW);
    C10_CUDA_KERNEL_LAUNCH_CHECK();

    torch::Tensor mean = torch::empty({N * groups}, x.options()), rstd = torch::empty({N * groups}, x.options());
    group_statistics_kernel<<<N * groups, THREADS, 0, stream>>>(
        v.data_ptr<float>(), mean.data_ptr<float>(), rstd.data_ptr<float>(), OC / groups * pixels, eps);
    C10_CUDA_KERNEL_LAUNCH_CHECK();

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
    name="conv_groupnorm_maxpool_01_one_operator_each",
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
