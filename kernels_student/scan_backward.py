"""scan with its backward: the gradient of a prefix sum is the suffix sum of the gradient that comes in.

x[j] is a term of each y[i] with i >= j, with factor 1. So its gradient is the sum of all gy from j on. From the
gradient gy of y, in Python:

    total = 0
    for j in reversed(range(length)):
        total += gy[j]
        gx[j] = total

That is the same scan from the other end: where forward takes element i, backward takes element length - 1 - i. It
needs neither x nor y, so that nothing is saved.

Kernels: scan_blocks_kernel and add_offsets_kernel, the forward, which also scan the sums of backward's blocks;
suffix_blocks_kernel and add_suffix_offsets_kernel, the same for parts that are counted from the end.

Your task: fill in the 2 places marked YOUR CODE HERE, so that ModelNew has the gradients that Model in
kernels_ref/scan/model.py has, for any shape.

  1. find this thread's element, counted from the end; scan; store as the forward does (about 5 lines)
  2. as add_offsets_kernel, for the same elements as above (about 4 lines)

Grade it, with or without a GPU:  grader grade kernels_student/scan_backward.py
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
torch::Tensor scan_forward(torch::Tensor x);
torch::Tensor scan_backward(torch::Tensor gy);
"""

cuda_source = r"""
#include <ATen/Dispatch.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;  // a block, and as many elements

// Returns the sum of v over this thread and all lower ones of the block. All must call it. T is float or double.
template <typename T>
__device__ T block_scan(T v) {
    __shared__ T buffer[2][THREADS];  // a round reads one and writes the other
    const int t = threadIdx.x;
    buffer[0][t] = v;
    __syncthreads();  // all values are there
    int from = 0;
    for (int distance = 1; distance < THREADS; distance *= 2) {
        const T own = buffer[from][t];
        buffer[1 - from][t] = t >= distance ? buffer[from][t - distance] + own : own;
        from = 1 - from;
        __syncthreads();  // this round is complete
    }
    return buffer[from][t];
}

// y[i] = the sum of x from the first element of i's block up to i; sums[block] = the sum of the block's elements.
// x and y (length) may be the same memory.
template <typename T>
__global__ void scan_blocks_kernel(const T* x, T* y, T* sums, int64_t length) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const T sum = block_scan(i < length ? x[i] : T(0));
    if (i < length) y[i] = sum;
    if (threadIdx.x == THREADS - 1) sums[blockIdx.x] = sum;
}

// y[i] += the sum of all blocks before i's. ends[block] is the sum of all elements up to the block's last one.
template <typename T>
__global__ void add_offsets_kernel(T* y, const T* ends, int64_t length) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= length || blockIdx.x == 0) return;
    y[i] += ends[blockIdx.x - 1];
}

// Block 0 has the last THREADS elements, block 1 those before them, and so on; thread 0 has the last one of its block.
// gx[j] = the sum of gy from j to the last element of j's block; sums[block] = the sum of the block's elements.
template <typename T>
__global__ void suffix_blocks_kernel(const T* gy, T* gx, T* sums, int64_t length) {
    // YOUR CODE HERE: find this thread's element, counted from the end; scan; store as the forward does (about 5 lines)
}

// gx[j] += the sum of all blocks behind j's. ends[block] is the sum of blocks 0 to `block`.
template <typename T>
__global__ void add_suffix_offsets_kernel(T* gx, const T* ends, int64_t length) {
    // YOUR CODE HERE: as add_offsets_kernel, for the same elements as above (about 4 lines)
}

// The kernels read bare memory: refuse a tensor that is not what they take it for.
static void check(const torch::Tensor& t, const char* name) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.scalar_type() == torch::kFloat32 || t.scalar_type() == torch::kFloat64, name, " is ",
                t.scalar_type(), ", not float32 or float64: use .float()");
    TORCH_CHECK(t.dim() == 1, name, " has ", t.dim(), " dimensions instead of 1");
}

// Scans x into y, both `length` elements, on the current stream.
template <typename T>
static void scan(const T* x, T* y, int64_t length, const torch::TensorOptions& options) {
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const int64_t blocks = (length + THREADS - 1) / THREADS;
    torch::Tensor sums = torch::empty({blocks}, options);
    T* const sums_at = sums.data_ptr<T>();
    scan_blocks_kernel<T><<<blocks, THREADS, 0, stream>>>(x, y, sums_at, length);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    if (blocks == 1) return;
    scan<T>(sums_at, sums_at, blocks, options);
    add_offsets_kernel<T><<<blocks, THREADS, 0, stream>>>(y, sums_at, length);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

torch::Tensor scan_forward(torch::Tensor x) {
    check(x, "x");
    x = x.contiguous();

    torch::Tensor y = torch::empty_like(x);
    if (x.numel() == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scan_forward", [&] {
        scan<scalar_t>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.numel(), x.options());
    });
    return y;
}

torch::Tensor scan_backward(torch::Tensor gy) {
    check(gy, "gy");
    gy = gy.contiguous();  // sum().backward() sends one number with a stride of 0

    torch::Tensor gx = torch::empty_like(gy);
    const int64_t length = gy.numel();
    if (length == 0) return gx;

    const c10::cuda::CUDAGuard guard(gy.device());
    const auto stream = c10::cuda::getCurrentCUDAStream();
    const int64_t blocks = (length + THREADS - 1) / THREADS;
    torch::Tensor sums = torch::empty({blocks}, gy.options());
    AT_DISPATCH_FLOATING_TYPES(gy.scalar_type(), "scan_backward", [&] {
        scalar_t* const sums_at = sums.data_ptr<scalar_t>();
        suffix_blocks_kernel<scalar_t><<<blocks, THREADS, 0, stream>>>(
            gy.data_ptr<scalar_t>(), gx.data_ptr<scalar_t>(), sums_at, length);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
        if (blocks == 1) return;  // from the lambda
        scan<scalar_t>(sums_at, sums_at, blocks, gy.options());
        add_suffix_offsets_kernel<scalar_t><<<blocks, THREADS, 0, stream>>>(
            gx.data_ptr<scalar_t>(), sums_at, length);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return gx;
}
"""

kernels = load_inline(
    name="scan_backward",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["scan_forward", "scan_backward"],
)


class Scan(torch.autograd.Function):
    """What autograd calls: forward saves nothing, backward returns one gradient per argument."""

    @staticmethod
    def forward(ctx, x):
        return kernels.scan_forward(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gy):
        # Autograd calls this only where x, the one argument, needs its gradient.
        return kernels.scan_backward(gy)


class ModelNew(nn.Module):
    """The same function as Model with the same gradient: x (length,) on a GPU -> (length,)."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return Scan.apply(x)

# Made from kernels_ref/scan/backward.py by `grader student`; skeleton ac2cb1fc73b0.
