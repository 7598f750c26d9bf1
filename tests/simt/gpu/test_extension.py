"""Does an extension whose halves were compiled apart do on a GPU what nvcc's does?"""

import pytest
import torch

from simt.errors import CompileError
from simt.runtime import gpu_extension

pytestmark = pytest.mark.gpu

CPP = """
torch::Tensor scale(torch::Tensor x, int64_t times);
void set_weight(double weight);
torch::Tensor too_many(torch::Tensor x);
int64_t architecture();
"""
CUDA = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

__constant__ float weight;

template <typename T>
__global__ void scale_kernel(const T* __restrict__ x, T* y, int64_t n) {
    extern __shared__ unsigned char bytes[];
    T* tile = reinterpret_cast<T*>(bytes);
    const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] * static_cast<T>(weight) : T(0);
    __syncthreads();
    if (i < n) y[i] = tile[threadIdx.x];
}

void set_weight(double value) {
    const float v = static_cast<float>(value);
    C10_CUDA_CHECK(cudaMemcpyToSymbol(weight, &v, sizeof v));
}

torch::Tensor scale(torch::Tensor x, int64_t times) {
    TORCH_CHECK(times > 0, "times is ", times, " for ", x.numel(), " elements");
    const at::cuda::CUDAGuard guard(x.device());
    torch::Tensor y = torch::empty_like(x);
    const int64_t n = x.numel();
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale", [&] {
        for (int64_t i = 0; i < times; ++i) {
            scale_kernel<scalar_t><<<(n + 255) / 256, 256, 256 * sizeof(scalar_t), at::cuda::getCurrentCUDAStream()>>>(
                i ? y.data_ptr<scalar_t>() : x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n);
            C10_CUDA_KERNEL_LAUNCH_CHECK();
        }
    });
    return y;
}

int64_t architecture() { return __CUDA_ARCH_LIST__; }

torch::Tensor too_many(torch::Tensor x) {
    scale_kernel<float><<<1, 4096>>>(x.data_ptr<float>(), x.data_ptr<float>(), 1);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return x;
}
"""


@pytest.fixture(scope="module")
def extension():
    made = gpu_extension.load_inline(
        "split_extension", CPP, CUDA, functions=["scale", "set_weight", "too_many", "architecture"]
    )
    assert gpu_extension.ways["split_extension"] == "split"
    return made


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_templates_constants_and_shared_memory(extension, dtype):
    extension.set_weight(1.5)
    x = torch.randn(1000, 7, dtype=dtype, device="cuda")
    torch.testing.assert_close(extension.scale(x, 3), x * 1.5**3)


def test_message_with_a_number(extension):
    with pytest.raises(RuntimeError, match="times is -2 for 6 elements"):
        extension.scale(torch.zeros(6, device="cuda"), -2)


def test_architecture(extension):
    """Does host code learn for which architecture its kernels are compiled, as nvcc tells it?"""
    major, minor = torch.cuda.get_device_capability()
    assert extension.architecture() == 100 * major + 10 * minor


def test_refused_launch(extension):
    """Does CUDA's own error for a launch reach Python, and is the next launch sound?

    CUDA 13.0 calls it "invalid argument" for nvcc's extensions, too, where its headers promise another error.
    """
    x = torch.ones(8, device="cuda")
    with pytest.raises(RuntimeError, match=r"invalid (configuration )?argument"):
        extension.too_many(x)
    extension.set_weight(2.0)
    assert extension.scale(x, 1).tolist() == [2.0] * 8


def test_stream_and_graph(extension):
    """Do launches go to the current stream, so that a CUDA graph records them?"""
    extension.set_weight(2.0)
    x = torch.ones(300, device="cuda")
    extension.scale(x, 1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = extension.scale(x, 2)
    x.fill_(3.0)
    graph.replay()
    assert y.tolist() == [12.0] * 300


def test_mistake(extension):
    with pytest.raises(CompileError, match='cuda_sources, line 1: identifier "y" is undefined'):
        gpu_extension.load_inline(
            "split_mistake", "void f();", "__global__ void k() { y = 1; }\nvoid f() { k<<<1, 1>>>(); }", functions=["f"]
        )
