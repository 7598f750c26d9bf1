"""Programs and scripts for the tests of `python -m simt`."""

import textwrap

CHECK = (
    """
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { """
    """fprintf(stderr, "line %d: %s\\n", __LINE__, cudaGetErrorString(e)); exit(1); } } while (0)
"""
)
FILL = """
__global__ void fill(int* p, int n, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = value;  // here
}
"""
SOUND = (
    CHECK
    + FILL
    + """
int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 100, last;
  int* p;
  CHECK(cudaMalloc(&p, n * sizeof(int)));
  fill<<<(n + 31) / 32, 32>>>(p, n, 7);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&last, p + n - 1, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d elements, the last is %d\\n", n, last);
  CHECK(cudaFree(p));
  return argc > 2 ? atoi(argv[2]) : 0;
}
"""
)


SCRIPT = textwrap.dedent(
    """
    import sys
    import torch
    from torch.utils.cpp_extension import load_inline
    CUDA = '''
    __global__ void fill(float* p, int n, float value) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) p[i] = value;
    }
    torch::Tensor filled(torch::Tensor x, double value) {
      TORCH_CHECK(x.is_cuda());
      auto y = torch::empty_like(x);
      fill<<<(y.numel() + 31) / 32, 32>>>(y.data_ptr<float>(), y.numel() PAST, value);
      return y;
    }
    '''
    module = load_inline("filled", "torch::Tensor filled(torch::Tensor x, double value);", CUDA, functions=["filled"])
    """
)
MODEL = SCRIPT + textwrap.dedent(
    """
    class ModelNew(torch.nn.Module):
        def __init__(self, value):
            super().__init__()
            self.value = value
        def forward(self, x):
            y = module.filled(x, self.value)
            print(y.sum().item())
            return y
    def get_init_inputs():
        return [2.0]
    def get_inputs():
        return [torch.zeros(10, device="cuda")]
    """
)


PAST_THE_END = SOUND.replace("if (i < n)", "if (i <= n)")


def line_of(source: str, mark: str) -> int:
    return next(n for n, line in enumerate(source.split("\n"), 1) if mark in line)
