"""What no CPU can stand in for is refused by its name, with the student's line; what only looks so is not."""

from __future__ import annotations

import pytest

import simt
from simt.frontend.rewrite import rewrite
from simt.frontend.source import Source


def _in_kernel(text: str) -> str:
    return f"__global__ void k(float* x) {{\n  {text}\n}}"


@pytest.mark.parametrize(
    ("source", "line", "name", "words"),
    [
        # textures and surfaces
        ("int a;\ntexture<float, 2, cudaReadModeElementType> image;", 2, "texture", "texture references"),
        ("#include <cuda_runtime.h>\nsurface<void, 2> image;", 2, "surface", "surface references"),
        ("textureReference* t;", 1, "textureReference", "texture references"),
        (_in_kernel("x[0] = tex2DLod<float>(t, 1, 2, 0);"), 2, "tex2DLod", "mipmaps"),
        (_in_kernel("float4 v = tex2Dgather<float4>(t, 1, 2);"), 2, "tex2Dgather", "gather"),
        ("void f() {\n  cudaMallocMipmappedArray(&a, &d, e, 4);\n}", 2, "cudaMallocMipmappedArray", "mipmaps"),
        # launches from a kernel
        ("__global__ void c() {}\n" + _in_kernel("c<<<1, 1>>>();"), 3, "", "dynamic parallelism"),
        ("__global__ void c() {}\n__device__ void d() {\n  c<<<1, 1>>>();\n}", 3, "", "dynamic parallelism"),
        (_in_kernel("f(cudaStreamTailLaunch);"), 2, "cudaStreamTailLaunch", "dynamic parallelism"),
        # Hopper's
        ("__global__ void k(const __grid_constant__ CUtensorMap map) {}", 1, "CUtensorMap", "TMA"),
        ("void f() {\n  cuTensorMapEncodeTiled(&m);\n}", 2, "cuTensorMapEncodeTiled", "TMA"),
        (
            _in_kernel("cde::cp_async_bulk_tensor_2d_global_to_shared(s, &m, 0, 0, b);"),
            2,
            "cp_async_bulk_tensor_2d_global_to_shared",
            "TMA",
        ),
        (_in_kernel("cuda::ptx::mbarrier_init(&b, 1);"), 2, "cuda::ptx", "libcu++"),
        (_in_kernel("cuda::device::memcpy_async_tx(a, b, n, bar);"), 2, "cuda::device", "libcu++"),
        ("__global__ void __cluster_dims__(2, 1, 1) k() {}", 1, "__cluster_dims__", "clusters"),
        (_in_kernel("auto c = cooperative_groups::this_cluster();"), 2, "this_cluster", "clusters"),
        (
            "void f() {\n  a.id = cudaLaunchAttributeClusterDimension;\n}",
            2,
            "cudaLaunchAttributeClusterDimension",
            "launches with this attribute",
        ),
        (
            _in_kernel("cudaGridDependencySynchronize();"),
            2,
            "cudaGridDependencySynchronize",
            "programmatic dependent launch",
        ),
        # graphs, driver, several GPUs
        ("void f() {\n  cudaGraphAddMemAllocNode(&n, g, 0, 0, &p);\n}", 2, "cudaGraphAddMemAllocNode", "CUDA graphs"),
        ("cudaGraphConditionalHandle handle;", 1, "cudaGraphConditionalHandle", "CUDA graphs"),
        ("void f() {\n  cudaStreamGetCaptureInfo(s, &c);\n}", 2, "cudaStreamGetCaptureInfo", "CUDA graphs"),
        ("void f() {\n  cuLaunchKernel(k);\n}", 2, "cuLaunchKernel", "driver API"),
        ("void f() {\n  cudaMemcpy3DPeer(&p);\n}", 2, "cudaMemcpy3DPeer", "second GPU"),
        # assembly
        (_in_kernel('asm("tcgen05.fence::after_thread_sync;");'), 2, "tcgen05.fence::after_thread_sync", "PTX"),
        (_in_kernel('__asm__("griddepcontrol.wait;");'), 2, "griddepcontrol.wait", "PTX"),
        # libraries
        ("#include <thrust/async/sort.h>", 1, "#include <thrust/async/sort.h>", "thrust"),
        ("void f() {\n  thrust::async::sort(a, b);\n}", 2, "thrust::async", "thrust"),
        ("#include <cub/device/device_spmv.cuh>", 1, "#include <cub/device/device_spmv.cuh>", "cub"),
        ("void f() {\n  cub::DeviceSpmv::CsrMV(t, n, a, b, c);\n}", 2, "cub::DeviceSpmv", "cub"),
        (_in_kernel("typedef cub::BlockRadixSort<float, 128, 4> Sort;"), 2, "cub::BlockRadixSort", "cub"),
        ("#include <cutlass/gemm/device/gemm.h>", 1, "#include <cutlass/gemm/device/gemm.h>", "cutlass"),
        ("#include <cute/tensor.hpp>", 1, "#include <cute/tensor.hpp>", "cute"),
        ("#include <curand_mtgp32_host.h>", 1, "#include <curand_mtgp32_host.h>", "cuRAND"),
        ("curandStateMtgp32_t* states;", 1, "curandStateMtgp32_t", "MT19937, XORWOW, Philox4x32-10 and MRG32k3a work"),
        (
            "void f() {\n  curandCreateGenerator(&g, CURAND_RNG_PSEUDO_MTGP32);\n}",
            2,
            "CURAND_RNG_PSEUDO_MTGP32",
            "MTGP32",
        ),
        (
            "void f() {\n  curandCreateGenerator(&g, CURAND_RNG_QUASI_SCRAMBLED_SOBOL32);\n}",
            *(2, "CURAND_RNG_QUASI_SCRAMBLED_SOBOL32", "scrambled direction vectors"),
        ),
        ("void f() {\n  curandGetScrambleConstants32(&c);\n}", 2, "curandGetScrambleConstants32", "your own vectors"),
        (_in_kernel("int k = curand_discrete(&state, d);"), 2, "curand_discrete", "other than Poisson's"),
        ("void f() {\n  cublasSgemm(h);\n}", 2, "cublasSgemm", "cuBLAS"),
        ("void f() {\n  auto h = at::cuda::getCurrentCUDABlasHandle();\n}", 2, "getCurrentCUDABlasHandle", "cuBLAS"),
        ("cudnnHandle_t h;", 1, "cudnnHandle_t", "cuDNN"),
        ("void f() {\n  cufftExecC2C(p, a, b, d);\n}", 2, "cufftExecC2C", "cuFFT"),
        ("void f() {\n  ncclAllReduce(a);\n}", 2, "ncclAllReduce", "NCCL"),
        ("#include <cuda_fp6.h>", 1, "#include <cuda_fp6.h>", "6-bit floats"),
        ("__nv_fp4_e2m1 a;", 1, "__nv_fp4_e2m1", "floats of 4 and 6 bits"),
        ("__nv_fp8_e8m0 a;", 1, "__nv_fp8_e8m0", "scales of 8"),
        ("#include <cuda/std/chrono>", 1, "#include <cuda/std/chrono>", "libcu++"),
        (_in_kernel("cuda::counting_semaphore<cuda::thread_scope_block> s;"), 2, "cuda::counting_semaphore", "libcu++"),
        (_in_kernel("__mbarrier_init(&b, 1);"), 2, "__mbarrier_init", "cuda::barrier works"),
        ("using namespace nvcuda::experimental;", 1, "nvcuda::experimental", "experimental"),
        (_in_kernel("nvcuda::wmma::bmma_sync(d, a, b, c);"), 2, "bmma_sync", "single bits"),
        # torch's
        ("auto y = torch::nn::ReLU()(x);", 1, "torch::nn", "torch's C\\+\\+ modules"),
        ("struct F : public torch::autograd::Function<F> {};", 1, "torch::autograd", "autograd"),
    ],
)
def test_a_feature_is_refused_by_name_and_line(source, line, name, words):
    """Is each feature one error, in one sentence, with the line that uses it first?"""
    with pytest.raises(simt.Unsupported, match=words) as caught:
        rewrite(Source(source, "cuda_sources"))
    first = caught.value.diagnostics[0]
    assert (first.source, first.line, first.severity) == ("cuda_sources", line, "error")
    assert first.text == source.split("\n")[line - 1]
    assert f"`{name}`" in first.message or not name
    assert "cannot run on the CPU" in first.message and first.message.endswith(".")


@pytest.mark.parametrize(
    "source",
    [
        "int texture = 3, cub = 2, cute, surface; x.asm_; // asm volatile",
        "bool f(int texture, int n) { return texture < n; }",
        "bool f(int surface, int n) { return n > 0 && surface < n; }",
        'const char* s = "thrust::sort and cublasSgemm";',
        "struct S { int cuda; }; int f(S s) { return s.cuda; }",
        "float f(float tex2D) { return tex2D + 1; }",
        "auto s = at::cuda::getCurrentCUDAStream();",
        "namespace F = torch::nn::functional;",
        "c10::cuda::CUDAGuard device_guard(x.device());",
        "int culture, cudaGraphics, currant, cu, curandom;",
        "template <class T> struct Device; Device<int>* d; int latch = 0, device = 1;",
        "#include <cub/cub.cuh>\ntypedef cub::BlockReduce<float, 128> Reduce; float m = cub::Max()(1.f, 2.f);",
        "#include <cub/device/device_scan.cuh>\nvoid f() { cub::DeviceReduce::Sum(t, n, a, b, c); }",
        "#define TWICE(...) cub::__VA_ARGS__; cub::__VA_ARGS__",
        "#include <thrust/sort.h>\nvoid f() { thrust::sort(thrust::cuda::par.on(s), a, b); }",
        "#include <mma.h>\nusing namespace nvcuda; wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;",
        "#include <cuda/atomic>\ncuda::atomic_ref<int, cuda::thread_scope_device> a(x); "
        "cuda::std::numeric_limits<float> l;",
        "#include <cuda_pipeline.h>\nvoid f() { __pipeline_commit(); }",
        "#include <curand_kernel.h>\n#include <curand.h>\nvoid f(curandState* s) { curand_init(1, 2, 3, s); }",
        "curandStateSobol32_t* s; int t = CURAND_RNG_QUASI_SOBOL32, u = CURAND_RNG_PSEUDO_MT19937;",
        "#include <cuda/barrier>\ncuda::barrier<cuda::thread_scope_block>* b;",
        "#include <cooperative_groups/reduce.h>\nnamespace cg = cooperative_groups;",
        '#include <nvtx3/nvToolsExt.h>\nvoid f() { nvtxRangePush("a"); nvtxRangePop(); }',
    ],
)
def test_what_works_or_only_looks_refused_is_kept(source):
    """Do names of a student's own, comments, strings, torch's namespaces and supported parts pass?"""
    assert rewrite(Source(source, "cuda_sources")).text == source


def test_host_sources_may_use_assembly():
    """Is `asm` the host compiler's own in cpp_sources?"""
    text = 'void f() { asm volatile("" ::: "memory"); }'
    assert rewrite(Source(text, "cpp_sources"), cuda=False).text == text


def test_every_use_is_told_once_a_line():
    """Do two features give two errors, and one that a line uses twice one?"""
    with pytest.raises(simt.Unsupported) as caught:
        rewrite(
            Source(
                "float f() { return tex2DLod<float>(a, 0, 0, 1) + tex2DLod<float>(b, 0, 0, 1); }\n"
                "void g() { thrust::async::sort(a, b); }"
            )
        )
    assert [(d.line, d.message.split(":")[0]) for d in caught.value.diagnostics] == [(1, "`tex2DLod`"), (2, "`thrust")]
