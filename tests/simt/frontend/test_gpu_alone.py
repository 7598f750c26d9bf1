"""Sources with parts for GPUs alone, and with the headers that a binding of its own needs: do they build and run?"""

import torch

import simt

CUDA = r"""
#include <cstdint>
__global__ void add_kernel(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1.0f;
}
void launch(float* x, int n) { add_kernel<<<(n + 255) / 256, 256>>>(x, n); }
#ifndef __SIMT__
__global__ void barrier_kernel(unsigned at) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at)); }
bool on_gpu() { return true; }
#else
bool on_gpu() { return false; }
#endif
"""
# As much of torch as a binding needs without <torch/extension.h>.
CPP = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
void launch(float* x, int n);
bool on_gpu();
at::Tensor add(const at::Tensor& x) {
    auto y = at::empty_like(x);
    y.copy_(x);
    launch(y.data_ptr<float>(), y.numel());
    return y;
}
bool in_cpp() {
#ifdef __SIMT__
    return !on_gpu();
#else
    return false;
#endif
}
"""


def test_code_for_gpus_alone_is_left_out():
    """Is PTX behind #ifndef __SIMT__ no error, and is the macro defined in CUDA and in C++ sources?"""
    made = simt.load_inline(
        name="gpu_alone", cpp_sources=CPP, cuda_sources=CUDA, functions=["add", "in_cpp"], no_implicit_headers=True
    )
    assert made.in_cpp()
    x = torch.arange(300.0)
    assert torch.equal(made.add(x), x + 1)
