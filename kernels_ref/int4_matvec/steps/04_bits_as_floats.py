"""int4_matvec, step 4: bits become floats without a conversion, and x lies in shared memory.

Before, each weight was converted from integer to float, and a multiprocessor converts only 16 numbers per clock. The
bits 0x4b000000 are the float 2^23, whose last bit counts 1: with q in the lowest four bits they are 2^23 + q. So one
lop3 makes a float of four bits, and subtracting 2^23 + 8 makes a weight of it, exactly.

The lanes' reads of x were 64 bytes apart. Now the block copies x into shared memory, in an order in which neighbouring
lanes read neighbouring places.

Bought: 7.3 million conversions of a warp are gone, wavefronts of L1 and shared memory fall from 16 to 3.4 million.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
torch::Tensor int4_matvec_forward(torch::Tensor x, torch::Tensor packed, torch::Tensor scales, int64_t group_size);
"""

cuda_source = r"""
#include <climits>
#include <cuda_fp16.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int WARPS = 8, THREADS = 32 * WARPS;  // of a block, one row each
constexpr int TILE = 1024;                      // words whose x is in shared memory at a time

// word & 15 | 0x4b000000 in one instruction: the float 2^23 + q, less 2^23 + 8.
__device__ float to_weight(unsigned word) {
    unsigned bits;
    asm("lop3.b32 %0, %1, 15, %2, 0xea;" : "=r"(bits) : "r"(word), "r"(0x4b000000));
    return __uint_as_float(bits) - 8388616.0f;
}

// The sum of the eight weights of word, each times its x: two halves in each part of x.
__device__ float dot(unsigned word, uint4 x) {
    const auto low = [](unsigned two) { return __half2float(__ushort_as_half((unsigned short)two)); };
    const auto high = [](unsigned two) { return __half2float(__ushort_as_half((unsigned short)(two >> 16))); };
    float part = to_weight(word) * low(x.x);
    part += to_weight(word >> 4) * high(x.x);
    part += to_weight(word >> 8) * low(x.y);
    part += to_weight(word >> 12) * high(x.y);
    part += to_weight(word >> 16) * low(x.z);
    part += to_weight(word >> 20) * high(x.z);
    part += to_weight(word >> 24) * low(x.w);
    part += to_weight(word >> 28) * high(x.w);
    return part;
}

// Eight halves. WIDE: they begin at a multiple of 16 bytes.
template <bool WIDE>
__device__ uint4 fetch(const __half* x) {
    if (WIDE) return *(const uint4*)x;
    const auto two = [x](int k) { return __half_as_ushort(x[k]) | (unsigned)__half_as_ushort(x[k + 1]) << 16; };
    return {two(0), two(2), two(4), two(6)};
}

// x (N, 8 words), packed (rows, words), scales (rows, groups) -> y (N, rows). blockIdx.y is the number of the x.
// WIDE: rows of packed and of x begin at multiples of 16 bytes, and four words never lie in two groups.
template <bool WIDE>
__global__ void __launch_bounds__(THREADS)
int4_matvec_kernel(const __half* x, const unsigned* packed, const __half* scales, __half* y, int rows, int words,
                   int groups, int group_size) {
    __shared__ uint4 eight[4][TILE / 4];  // eight[j][i]: the x of word 4 i + j of the tile
    const int lane = threadIdx.x % 32, row = blockIdx.x * WARPS + threadIdx.x / 32;
    x += (int64_t)blockIdx.y * words * 8;
    packed += (int64_t)row * words;
    scales += (int64_t)row * groups;

    float sum = 0.0f;
    for (int first = 0; first < words; first += TILE) {
        const int count = min(TILE, words - first);
        __syncthreads();  // all are done with the tile before
        for (int w = threadIdx.x; w < count; w += THREADS) eight[w % 4][w / 4] = fetch<WIDE>(x + 8 * (first + w));
        __syncthreads();
        if (row >= rows) continue;  // such warps copy as well, and come to each barrier

        if (WIDE) {
            for (int w = 4 * lane; w < count; w += 4 * 32) {
                const uint4 four = *(const uint4*)(packed + first + w);
                const int i = w / 4;
                sum += __half2float(scales[8 * (first + w) / group_size]) *
                       (dot(four.x, eight[0][i]) + dot(four.y, eight[1][i]) + dot(four.z, eight[2][i]) +
                        dot(four.w, eight[3][i]));
            }
        } else {
            for (int w = lane; w < count; w += 32) {
                const float scale = __half2float(scales[8 * (first + w) / group_size]);
                sum += scale * dot(packed[first + w], eight[w % 4][w / 4]);
            }
        }
    }
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffff, sum, distance);
    if (row < rows && lane == 0) y[(int64_t)blockIdx.y * rows + row] = __float2half(sum);
}

torch::Tensor int4_matvec_forward(torch::Tensor x, torch::Tensor packed, torch::Tensor scales, int64_t group_size) {
    const std::pair<const char*, torch::Tensor> inputs[] = {{"x", x}, {"scales", scales}, {"packed", packed}};
    for (const auto& [name, t] : inputs) {
        TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
        TORCH_CHECK(t.dim() == 2, name, " has ", t.dim(), " dimensions instead of 2");
    }
    TORCH_CHECK(x.scalar_type() == torch::kHalf, "x is ", x.scalar_type(), ", not float16: use .half()");
    TORCH_CHECK(scales.scalar_type() == torch::kHalf, "scales is ", scales.scalar_type(), ", not float16: use .half()");
    TORCH_CHECK(packed.scalar_type() == torch::kInt, "packed is ", packed.scalar_type(), ", not int32: use .int()");
    const int64_t batch = x.size(0), rows = packed.size(0), words = packed.size(1), groups = scales.size(1);
    TORCH_CHECK(x.size(1) == 8 * words, "x has ", x.size(1), " columns, packed has ", 8 * words);
    TORCH_CHECK(group_size > 0 && group_size % 8 == 0, "group_size is ", group_size, ", not a multiple of 8");
    TORCH_CHECK(scales.size(0) == rows && groups * group_size >= 8 * words,
                "scales is ", scales.sizes(), ": it needs a row for each row of packed, and a scale for each group");
    TORCH_CHECK(batch <= 65535 && rows <= INT_MAX / 2 && words <= INT_MAX / 64, "too large for this kernel's indices");
    x = x.contiguous();
    packed = packed.contiguous();
    scales = scales.contiguous();
    torch::Tensor y = torch::empty({batch, rows}, x.options());
    if (y.numel() == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    const auto data = [](const torch::Tensor& t) { return (__half*)t.data_ptr<at::Half>(); };
    const auto starts_whole = [](const torch::Tensor& t) { return (uintptr_t)t.data_ptr() % 16 == 0; };
    const bool wide = words % 4 == 0 && group_size % 32 == 0 && starts_whole(packed) && starts_whole(x);
    const dim3 blocks((rows + WARPS - 1) / WARPS, batch);
    const auto kernel = wide ? int4_matvec_kernel<true> : int4_matvec_kernel<false>;
    kernel<<<blocks, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        data(x), (const unsigned*)packed.data_ptr<int>(), data(scales), data(y), rows, words, groups, group_size);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="int4_matvec_04_bits_as_floats",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["int4_matvec_forward"],
)


class ModelNew(nn.Module):
    """The same function as Model, with inputs on a GPU: x (N, columns) float16 -> (N, rows) float16."""

    def __init__(self, group_size):
        super().__init__()
        self.group_size = group_size

    def forward(self, x, packed, scales):
        return kernels.int4_matvec_forward(x, packed, scales, self.group_size)
