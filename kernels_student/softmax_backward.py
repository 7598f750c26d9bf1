"""softmax with its backward: a row's one sum of y * gy, taken from each gradient that comes in.

y = softmax(x), so dy[d]/dx[c] = y[d] * ((1 if c == d else 0) - y[c]): a column moves its own share, and through the
sum in the denominator all others. From the gradient gy of y, in Python:

    for r in every row:
        dot = sum(y[r, d] * gy[r, d] for d in columns)
        for c in columns:
            gx[r, c] = y[r, c] * (gy[r, c] - dot)

Forward's result is all that has to be saved: x appears nowhere, and no exponential is taken a second time.

Kernels: softmax_kernel, the forward; softmax_backward_kernel, one block a row, whose threads walk over it twice.

Your task: fill in the one place marked YOUR CODE HERE, so that ModelNew has the gradients that Model in
kernels_ref/softmax/model.py has, for any shape.

  1. pass 1, the row's sum of y * gy; pass 2, store the gradient of each column (about 6 lines)

Grade it, with or without a GPU:  grader grade kernels_student/softmax_backward.py
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
torch::Tensor softmax_forward(torch::Tensor x);
torch::Tensor softmax_backward(torch::Tensor gy, torch::Tensor y);
"""

cuda_source = r"""
#include <climits>
#include <ATen/Dispatch.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;  // a block: a power of two

// Largest of every thread's v, returned to every thread of the block. All of them must call it. T is float or double.
template <typename T>
__device__ T block_max(T v) {
    __shared__ T partial[THREADS];
    partial[threadIdx.x] = v;
    __syncthreads();  // all have written
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half && partial[threadIdx.x + half] > partial[threadIdx.x]) {
            partial[threadIdx.x] = partial[threadIdx.x + half];
        }
        __syncthreads();  // this level is complete
    }
    v = partial[0];
    __syncthreads();  // all have read: the next call may write
    return v;
}

// Sum of every thread's v, returned to every thread of the block. All of them must call it.
template <typename T>
__device__ T block_sum(T v) {
    __shared__ T partial[THREADS];
    partial[threadIdx.x] = v;
    __syncthreads();  // all have written
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();  // this level is complete
    }
    v = partial[0];
    __syncthreads();  // all have read: the next call may write
    return v;
}

// One block a row: x (rows, columns) -> y, the same shape.
template <typename T>
__global__ void softmax_kernel(const T* x, T* y, int64_t columns) {
    x += blockIdx.x * columns;
    y += blockIdx.x * columns;
    T top = -INFINITY;
    for (int64_t c = threadIdx.x; c < columns; c += THREADS) top = x[c] > top ? x[c] : top;
    top = block_max(top);

    T sum = 0;
    for (int64_t c = threadIdx.x; c < columns; c += THREADS) sum += exp(x[c] - top);
    sum = block_sum(sum);

    for (int64_t c = threadIdx.x; c < columns; c += THREADS) y[c] = exp(x[c] - top) / sum;
}

// One block a row: gy, y (rows, columns) -> gx, the same shape.
template <typename T>
__global__ void softmax_backward_kernel(const T* gy, const T* y, T* gx, int64_t columns) {
    gy += blockIdx.x * columns;  // from here on gy[0], y[0] and gx[0] are the first elements of this block's row
    y += blockIdx.x * columns;
    gx += blockIdx.x * columns;
    // YOUR CODE HERE: pass 1, the row's sum of y * gy; pass 2, store the gradient of each column (about 6 lines)
}

// The kernels read bare memory: refuse a tensor that is not what they take it for.
static void check(const torch::Tensor& t, const char* name, const torch::Tensor& like) {
    TORCH_CHECK(t.is_cuda(), name, " is on ", t.device(), ": move it to the GPU with .cuda()");
    TORCH_CHECK(t.scalar_type() == torch::kFloat32 || t.scalar_type() == torch::kFloat64, name, " is ",
                t.scalar_type(), ", not float32 or float64: use .float()");
    TORCH_CHECK(t.device() == like.device() && t.scalar_type() == like.scalar_type(), name, " is not like y");
}

torch::Tensor softmax_forward(torch::Tensor x) {
    check(x, "x", x);
    TORCH_CHECK(x.dim() == 2, "x has ", x.dim(), " dimensions instead of 2");
    const int64_t rows = x.size(0), columns = x.size(1);
    TORCH_CHECK(rows <= INT_MAX, "x has more than 2^31 - 1 rows");
    x = x.contiguous();

    torch::Tensor y = torch::empty_like(x);
    if (y.numel() == 0) return y;  // a grid of no blocks is a launch error

    const c10::cuda::CUDAGuard guard(x.device());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softmax_forward", [&] {
        softmax_kernel<scalar_t><<<rows, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), columns);
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}

// y: what forward made. Returns gx.
torch::Tensor softmax_backward(torch::Tensor gy, torch::Tensor y) {
    check(gy, "gy", y);
    gy = gy.contiguous();  // sum().backward() sends one number with strides of 0

    torch::Tensor gx = torch::empty_like(y);
    if (gx.numel() == 0) return gx;

    const c10::cuda::CUDAGuard guard(y.device());
    AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "softmax_backward", [&] {
        softmax_backward_kernel<scalar_t><<<y.size(0), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            gy.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), gx.data_ptr<scalar_t>(), y.size(1));
    });
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return gx;
}
"""

kernels = load_inline(
    name="softmax_backward",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["softmax_forward", "softmax_backward"],
)


class Softmax(torch.autograd.Function):
    """What autograd calls: forward saves what backward reads, backward returns one gradient per argument."""

    @staticmethod
    def forward(ctx, x):
        y = kernels.softmax_forward(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gy):
        # Autograd calls this only where x, the one argument, needs its gradient.
        return kernels.softmax_backward(gy, *ctx.saved_tensors)


class ModelNew(nn.Module):
    """The same function as Model with the same gradient: x (rows, columns) on a GPU -> the same shape."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return Softmax.apply(x)

# Made from kernels_ref/softmax/backward.py by `grader student`; skeleton 0cc388dba467.
