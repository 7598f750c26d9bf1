"""A kernel whose requests the tests of pictures draw."""

import re

import pytest
import torch

import simt

SOURCE = r"""
#include <torch/extension.h>
__global__ void columns(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x * 32];                                     // @strided
}
__global__ void turned(const float* x, float* y, int pad) {
  extern __shared__ float tile[];
  const int c = threadIdx.x, r = threadIdx.y, row = 32 + pad;
  tile[r * row + c] = x[r * 32 + c];                                        // @rows
  __syncthreads();
  y[r * 32 + c] = tile[c * row + r];                                        // @columns
}
void run(torch::Tensor x, torch::Tensor y, int pad) {
  columns<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>());
  turned<<<1, dim3(32, 32), 32 * (32 + pad) * 4>>>(x.data_ptr<float>(), y.data_ptr<float>(), pad);
}
"""


@pytest.fixture(scope="module")
def counted():
    """Lines by their marks, of a launch without padding and of one with."""
    module = simt.load_inline(
        "pictures", "void run(torch::Tensor x, torch::Tensor y, int pad);", SOURCE, functions=["run"]
    )
    numbers = {m[1]: n for n, text in enumerate(SOURCE.split("\n"), 1) if (m := re.search(r"// @(\w+)", text))}
    found = []
    for pad in (0, 1):
        with simt.count() as report:
            module.run(torch.zeros(1024), torch.zeros(1024), pad)
        found.append(
            {mark: next(line for line in report.lines if line.line == n) for mark, n in numbers.items()}
            | {"launches": report.launches}
        )
    return found
