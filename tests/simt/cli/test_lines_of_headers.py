"""python -m simt check: does what simt's own headers do for a kernel have the line of the kernel that calls them?"""

import json

import pytest

from tests.simt.cli.sources import line_of

# One program, so that it is compiled once: its argument says what it does.
PROGRAM = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <thrust/execution_policy.h>
#include <thrust/fill.h>
namespace cg = cooperative_groups;

__global__ void fetch(cudaTextureObject_t texture, float* out) {
  out[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x);  // texture
}
__global__ void mix(cudaSurfaceObject_t surface) {
  float value;
  surf2Dread(&value, surface, threadIdx.x * 4, 0);  // surface
  surf2Dwrite(value, surface, 0, 0);  // written
}
__global__ void reduce(float* out) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  out[threadIdx.x] = cg::reduce(tile, 2147483647, cg::plus<int>());  // overflow
}
__global__ void divide(float* out) {
  out[threadIdx.x] = threadIdx.x % 0;  // division
}
__global__ void release(float* out) {
  cudaFree(out);  // free
}
int main(int argc, char** argv) {
  float *in, *out;
  cudaMalloc(&in, 32 * sizeof(float));
  cudaMalloc(&out, 32 * sizeof(float));
  cudaResourceDesc resource{};
  cudaTextureDesc description{};
  if (!strcmp(argv[1], "texture")) {
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear = {in, cudaCreateChannelDesc<float>(), 32 * sizeof(float)};
    cudaTextureObject_t texture;
    cudaCreateTextureObject(&texture, &resource, &description, nullptr);
    fetch<<<1, 32>>>(texture, out);
  } else if (!strcmp(argv[1], "surface")) {
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    cudaMallocArray(&array, &format, 32, 1, cudaArraySurfaceLoadStore);
    float values[32] = {};
    cudaMemcpy2DToArray(array, 0, 0, values, sizeof values, sizeof values, 1, cudaMemcpyHostToDevice);
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t surface;
    cudaCreateSurfaceObject(&surface, &resource);
    mix<<<1, 32>>>(surface);
  } else if (!strcmp(argv[1], "overflow")) {
    reduce<<<1, 32>>>(out);
  } else if (!strcmp(argv[1], "division")) {
    divide<<<1, 32>>>(out);
  } else if (!strcmp(argv[1], "free")) {
    release<<<1, 1>>>(out);
  } else {
    thrust::fill(thrust::device, (float*)nullptr, (float*)nullptr + 7, 1.0f);  // thrust
  }
  exit(cudaDeviceSynchronize());
}
"""
FINDINGS = {
    "texture": ("uninitialized", "of the memory of a texture or surface, which was never written"),
    "surface": ("race", "which thread (1, 0, 0) of the same block writes in line"),
    "overflow": ("int_overflow", "this addition overflows its type, `int`"),
    "division": ("division_by_zero", "divides an integer by zero"),
    "free": ("illegal_address", "frees an address that no `new` or malloc of a kernel has returned"),
    "thrust": ("illegal_address", "writes through a null pointer"),
}


@pytest.mark.parametrize("what", FINDINGS)
def test_the_line_is_that_of_the_call(simt, tmp_path, what):
    """Does each finding have the line of the kernel, or of the call of a device-wide function?"""
    check, words = FINDINGS[what]
    done = simt("check", "--json", "found.json", "a.cu", what, files={"a.cu": PROGRAM})
    found = json.loads((tmp_path / "found.json").read_text())["findings"]
    assert all(each["line"] for each in found), done.stderr
    line = line_of(PROGRAM, f"// {what}")
    assert any((each["check"], each["line"]) == (check, line) and words in each["message"] for each in found), found
    if what == "surface":
        assert f"writes in line {line_of(PROGRAM, '// written')} without a barrier" in done.stderr
