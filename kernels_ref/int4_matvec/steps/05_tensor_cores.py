"""int4_matvec, step 5: tensor cores multiply, and unpacking takes two instructions for two weights.

Before, each weight took a shift, a lop3, a subtraction, a multiplication and the conversion of its x. `mma.sync`
multiplies 16 x 16 halves of 16 rows by 16 x 8 halves of eight x and adds in float32; an x that does not exist is 0. The
bits 0x6400 are the half 1024, so a lop3 makes two halves 1024 + q of two weights. No subtraction follows: another mma
adds -1032 times the same x to the same sum. The 16 columns may come in any order that x has, too: a pair has columns k
and k + 4 of a word, and x is put into this order when the block copies it. The warps of a block share 16 rows; each
takes every eighth piece of 128 columns, in which a row has one scale.

Bought: instructions fall from 67 to 27 million. From here on the bytes of the weights decide, and up to eight x take no
more of them than one.
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

constexpr int WARPS = 8, THREADS = 32 * WARPS;
constexpr int ROWS = 16;      // of a block
constexpr int PIECE = 16;     // words of each row that a warp takes at a time, of one group
constexpr int STAGED = 1024;  // words of x in shared memory: of one x, or of eight with an eighth of the words each

// c (16, 8) += a (16, 16) times b (16, 8), of a warp; see "Matrix Fragments for mma.m16n8k16" in the PTX ISA.
__device__ __forceinline__ void multiply(float c[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                                         unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// word & 0x000f000f | 0x64006400 in one instruction: two halves, 1024 + q for each q.
__device__ unsigned merge(unsigned word) {
    unsigned both;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(both) : "r"(word), "r"(0x000f000f), "r"(0x64006400));
    return both;
}

// c += the eight weights of word upper, of one row, and of lower, of the row eight further down, times their x.
__device__ __forceinline__ void add(float c[4], unsigned upper, unsigned lower, uint4 x) {
    constexpr unsigned less = 0xe408e408;  // two halves of -1032
    multiply(c, merge(upper), merge(lower), merge(upper >> 4), merge(lower >> 4), x.x, x.y);
    multiply(c, less, less, less, less, x.x, x.y);
    multiply(c, merge(upper >> 8), merge(lower >> 8), merge(upper >> 12), merge(lower >> 12), x.z, x.w);
    multiply(c, less, less, less, less, x.z, x.w);
}

// x (N, 8 words), packed (rows, words), scales (rows, groups) -> y (N, rows). blockIdx.y counts VECTORS x each.
// Rows of packed and of x begin at multiples of 16 bytes, and words_per_group is a multiple of PIECE.
template <int VECTORS>
__global__ void __launch_bounds__(THREADS)
mma_kernel(const __half* x, const unsigned* packed, const __half* scales, __half* y, int batch, int rows, int words,
           int groups, int words_per_group) {
    constexpr int TILE = STAGED / VECTORS;
    // Of word 4 i + j of the tile: x 0 and 4, 1 and 5, 2 and 6, 3 and 7. Neighbouring lanes read neighbouring places.
    __shared__ uint4 eight[4][TILE / 4][VECTORS];
    __shared__ float part[WARPS][ROWS][8];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int n = lane / 4, four = lane % 4 * 4;  // this lane's x, and its words of a piece
    const int upper = blockIdx.x * ROWS + n, lower = upper + 8;
    const unsigned* from_upper = packed + (int64_t)upper * words;
    const unsigned* from_lower = packed + (int64_t)lower * words;

    float sum[4] = {};
    for (int first = 0; first < words; first += TILE) {
        __syncthreads();  // all are done with the tile before
        for (int i = threadIdx.x; i < STAGED; i += THREADS) {
            const int vector = blockIdx.y * VECTORS + i / TILE, w = i % TILE;
            uint4 v = {};
            if (vector < batch && first + w < words) v = *(const uint4*)(x + ((int64_t)vector * words + first + w) * 8);
            eight[w % 4][w / 4][i / TILE] = {v.x & 0xffff | v.z << 16, v.x >> 16 | v.z & 0xffff0000,
                                             v.y & 0xffff | v.w << 16, v.y >> 16 | v.w & 0xffff0000};
        }
        __syncthreads();

        const int end = min(TILE, words - first);
        for (int piece = warp * PIECE; piece < end; piece += WARPS * PIECE) {
            const int w = piece + four;  // words past the end are multiplied by an x of 0
            const bool exists = w < end;
            const uint4 a = exists && upper < rows ? *(const uint4*)(from_upper + first + w) : uint4{};
            const uint4 b = exists && lower < rows ? *(const uint4*)(from_lower + first + w) : uint4{};
            const int group = (first + piece) / words_per_group;
            float c[4] = {};
            const bool given = n < VECTORS;
            add(c, a.x, b.x, given ? eight[0][w / 4][n % VECTORS] : uint4{});
            add(c, a.y, b.y, given ? eight[1][w / 4][n % VECTORS] : uint4{});
            add(c, a.z, b.z, given ? eight[2][w / 4][n % VECTORS] : uint4{});
            add(c, a.w, b.w, given ? eight[3][w / 4][n % VECTORS] : uint4{});
            const float scale_upper = upper < rows ? __half2float(scales[(int64_t)upper * groups + group]) : 0.0f;
            const float scale_lower = lower < rows ? __half2float(scales[(int64_t)lower * groups + group]) : 0.0f;
            sum[0] += scale_upper * c[0];
            sum[1] += scale_upper * c[1];
            sum[2] += scale_lower * c[2];
            sum[3] += scale_lower * c[3];
        }
    }
    const int two = lane % 4 * 2;  // this lane's columns of sum
    part[warp][n][two] = sum[0];
    part[warp][n][two + 1] = sum[1];
    part[warp][n + 8][two] = sum[2];
    part[warp][n + 8][two + 1] = sum[3];
    __syncthreads();
    if (threadIdx.x >= ROWS * VECTORS) return;
    const int row = threadIdx.x % ROWS, vector = threadIdx.x / ROWS;
    float total = 0.0f;
    for (int k = 0; k < WARPS; ++k) total += part[k][row][vector];
    const int to_row = blockIdx.x * ROWS + row, to_vector = blockIdx.y * VECTORS + vector;
    if (to_row < rows && to_vector < batch) y[(int64_t)to_vector * rows + to_row] = __float2half(total);
}

// The same for any shape: one warp a row, one word a lane. blockIdx.y is the number of the x.
__global__ void any_kernel(const __half* x, const unsigned* packed, const __half* scales, __half* y, int rows,
                           int words, int groups, int words_per_group) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int w = lane; w < words; w += 32) {
        const unsigned word = packed[(int64_t)row * words + w];
        float part = 0.0f;
        for (int k = 0; k < 8; ++k) {
            part += ((int)(word >> 4 * k & 15) - 8) * __half2float(x[((int64_t)blockIdx.y * words + w) * 8 + k]);
        }
        sum += part * __half2float(scales[(int64_t)row * groups + w / words_per_group]);
    }
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffff, sum, distance);
    if (lane == 0) y[(int64_t)blockIdx.y * rows + row] = __float2half(sum);
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
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const auto starts_whole = [](const torch::Tensor& t) { return (uintptr_t)t.data_ptr() % 16 == 0; };
    const int words_per_group = group_size / 8;
    const unsigned* from = (const unsigned*)packed.data_ptr<int>();
    if (words % 4 == 0 && words_per_group % PIECE == 0 && starts_whole(packed) && starts_whole(x)) {
        const int vectors = batch == 1 ? 1 : 8;
        const auto kernel = batch == 1 ? mma_kernel<1> : mma_kernel<8>;
        const dim3 blocks((rows + ROWS - 1) / ROWS, (batch + vectors - 1) / vectors);
        kernel<<<blocks, THREADS, 0, stream>>>(data(x), from, data(scales), data(y), batch, rows, words, groups,
                                               words_per_group);
    } else {
        any_kernel<<<dim3((rows + WARPS - 1) / WARPS, batch), THREADS, 0, stream>>>(
            data(x), from, data(scales), data(y), rows, words, groups, words_per_group);
    }
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="int4_matvec_05_tensor_cores",
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
