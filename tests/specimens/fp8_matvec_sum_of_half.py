"""Each lane adds the sums of its groups in a half."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
torch::Tensor fp8_matvec_forward(torch::Tensor x, torch::Tensor weight, torch::Tensor scales, int64_t group_size);
"""

cuda_source = r"""
#include <climits>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int WARPS = 8;  // of a block, one row each

// x (N, columns), weight (rows, columns), scales (rows, groups) -> y (N, rows). blockIdx.y is the number of the x.
__global__ void fp8_matvec_kernel(const __half* x, const __nv_fp8_e4m3* weight, const float* scales, __half* y,
                                  int rows, int columns, int groups, int group_size) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= rows) return;  // the whole warp: no lane waits for another one
    x += (int64_t)blockIdx.y * columns;
    weight += (int64_t)row * columns;
    scales += (int64_t)row * groups;

    __half sum = __float2half(0.0f);
    for (int group = 0; group < groups; ++group) {
        const int first = group * group_size, end = min(first + group_size, columns);
        float part = 0.0f;
        for (int c = first + lane; c < end; c += 32) part += (float)weight[c] * __half2float(x[c]);
        sum = __float2half(__half2float(sum) + part * scales[group]);
    }
    for (int distance = 16; distance > 0; distance /= 2) sum = __hadd(sum, __shfl_down_sync(0xffffffff, sum, distance));
    if (lane == 0) y[(int64_t)blockIdx.y * rows + row] = sum;
}

torch::Tensor fp8_matvec_forward(torch::Tensor x, torch::Tensor weight, torch::Tensor scales, int64_t group_size) {
    const std::pair<const char*, torch::Tensor> inputs[] = {{"x", x}, {"weight", weight}, {"scales", scales}};
    for (const auto& [name, t] : inputs) {
        TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
        TORCH_CHECK(t.dim() == 2, name, " has ", t.dim(), " dimensions instead of 2");
    }
    TORCH_CHECK(x.scalar_type() == torch::kHalf, "x is ", x.scalar_type(), ", not float16: use .half()");
    TORCH_CHECK(weight.scalar_type() == torch::kFloat8_e4m3fn, "weight is ", weight.scalar_type(),
                ", not float8_e4m3fn: use .to(torch.float8_e4m3fn)");
    TORCH_CHECK(scales.scalar_type() == torch::kFloat, "scales is ", scales.scalar_type(),
                ", not float32: use .float()");
    const int64_t batch = x.size(0), rows = weight.size(0), columns = weight.size(1), groups = scales.size(1);
    TORCH_CHECK(x.size(1) == columns, "x has ", x.size(1), " columns, weight has ", columns);
    TORCH_CHECK(group_size > 0 && scales.size(0) == rows && groups == (columns + group_size - 1) / group_size,
                "scales is ", scales.sizes(), ": it needs a row for each row of weight, and a scale for each group");
    TORCH_CHECK(batch <= 65535 && rows <= INT_MAX / 2 && columns <= INT_MAX / 2 && group_size <= INT_MAX / 2,
                "too large for this kernel's indices");
    x = x.contiguous();
    weight = weight.contiguous();
    scales = scales.contiguous();
    torch::Tensor y = torch::empty({batch, rows}, x.options());
    if (y.numel() == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    const auto data = [](const torch::Tensor& t) { return (__half*)t.data_ptr<at::Half>(); };
    const dim3 blocks((rows + WARPS - 1) / WARPS, batch);
    fp8_matvec_kernel<<<blocks, 32 * WARPS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        data(x), (const __nv_fp8_e4m3*)weight.data_ptr(), scales.data_ptr<float>(), data(y), rows, columns, groups,
        group_size);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

kernels = load_inline(
    name="fp8_matvec", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["fp8_matvec_forward"]
)


class ModelNew(nn.Module):
    """The same function as Model, with inputs on a GPU: x (N, columns) float16 -> (N, rows) float16."""

    def __init__(self, group_size):
        super().__init__()
        self.group_size = group_size

    def forward(self, x, weight, scales):
        return kernels.fp8_matvec_forward(x, weight, scales, self.group_size)
