"""The last block to count itself: may it reset the counter, and read what the others wrote before they counted?"""

import pytest
import torch

import simt

SOURCE = r"""
__device__ unsigned int counter = 0;
__global__ void total(const float* x, float* parts, float* y) {
  __shared__ bool is_last;
  BEFORE
  __syncthreads();
  if (threadIdx.x == 0) {
    AFTER
    is_last = atomicAdd(&counter, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  if (threadIdx.x == 0) {
    float sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += parts[b];
    y[0] = sum;
    counter = 0;
  }
}
torch::Tensor f(torch::Tensor x) {
  auto parts = torch::empty_like(x), y = torch::empty({1}, x.options());
  total<<<x.numel(), 32>>>(x.data_ptr<float>(), parts.data_ptr<float>(), y.data_ptr<float>());
  return y;
}
"""
WRITE = "if (threadIdx.x == 0) parts[blockIdx.x] = x[blockIdx.x];"
FENCE = "__threadfence();"
# What stands before the barrier and after it -> the lines of the races
ORDERS = {
    "a fence before the barrier": (f"{WRITE} {FENCE}", "", []),
    "a fence after the barrier": (WRITE, FENCE, []),
    "a write behind the fence": (FENCE, WRITE, ["sum += parts[b]"]),
    "no fence": (WRITE, "", ["sum += parts[b]"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("schedule", ["forward", "reverse"])
def test_reset_by_the_last_block(order, schedule):
    """Is the counter's own atomic operation ordered before the reset, and a write behind the fence not?"""
    before, after, expected = ORDERS[order]
    source = SOURCE.replace("BEFORE", before).replace("AFTER", after)
    module = simt.load_inline("last_block", "torch::Tensor f(torch::Tensor x);", source, functions=["f"])
    with simt.check(schedule=schedule) as report:
        assert module.f(torch.ones(5)).item() == 5
    assert {found.check for found in report.findings} == ({"race"} if expected else set())
    lines = source.split("\n")
    assert {text for text in expected if any(text in lines[found.line - 1] for found in report.findings)} == {*expected}
