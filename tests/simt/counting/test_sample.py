"""A sample of blocks: is the memory that the whole grid touches told from it, whatever the blocks share?"""

import pytest
import torch

import simt

# Each kernel reads `table` and writes `out`, with 64 threads a block.
KERNELS = {
    "own and shared by all": "out[i] = table[i] + table[threadIdx.x];",
    "rows shared by 32 blocks": "out[i] = table[i / 2048 * 64 + threadIdx.x];",
    "neighbours share an edge": "out[i] = table[i > 0 ? i - 1 : 0] + table[i] + table[i + 1 < n ? i + 1 : i];",
    "every eighth sector": "if (threadIdx.x == 0) out[i] = table[i];",
    "a transpose": "int w = 512; out[i % w * (n / w) + i / w] = table[i];",
    "64 words far apart": "out[i] = table[i % 64 * (n / 64)];",
    "at random": "out[i] = table[(unsigned(i) * 2654435761u >> 8) % n];",
    "one block writes": "if (blockIdx.x == 0) out[i] = table[i];",
}
N = 64 * 4096


@pytest.fixture(scope="module")
def kernels():
    names = {name: f"kernel{number}" for number, name in enumerate(KERNELS)}
    bodies = "".join(
        f"__global__ void {names[name]}(const float* table, float* out, int n) {{\n"
        f"  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  {body}\n}}\n"
        f"void run_{names[name]}(torch::Tensor table, torch::Tensor out) {{\n"
        f"  {names[name]}<<<out.numel() / 64, 64>>>(table.data_ptr<float>(), out.data_ptr<float>(), out.numel());\n}}\n"
        for name, body in KERNELS.items()
    )
    functions = [f"run_{kernel}" for kernel in names.values()]
    declared = "".join(f"void {function}(torch::Tensor table, torch::Tensor out);" for function in functions)
    module = simt.load_inline("test_sample", declared, bodies, functions=functions)
    return {name: getattr(module, f"run_{kernel}") for name, kernel in names.items()}


@pytest.mark.parametrize(
    "sample", [pytest.param(8, marks=pytest.mark.slow), 24, pytest.param(200, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", KERNELS)
def test_distinct_sectors_of_the_grid(kernels, name, sample):
    """Is the estimate within 15 % of what a count of all 4,096 blocks gives?

    Sectors touched at random are the exception: that a part of them is missed, a small sample cannot know.
    """
    table, out = torch.zeros(N), torch.zeros(N)
    with simt.count() as report:
        kernels[name](table, out)
    (whole,) = report.launches
    assert whole.sampled == 4096
    with simt.count(sample=sample, partial=True) as report:
        kernels[name](table, out)
    (part,) = report.launches
    assert 0.9 * sample <= part.sampled <= sample + 3
    within = 0.6 if name == "at random" else 0.15
    for field in ("unique_sectors_read", "unique_sectors_written"):
        assert getattr(part, field) == pytest.approx(getattr(whole, field), rel=within, abs=4)
    # of the rest of a sector, and of the other half of 64 bytes, a sample knows less
    for field in ("unique_bytes_read", "unique_bytes_written", "unique_granules_read", "unique_granules_written"):
        assert getattr(part, field) == pytest.approx(getattr(whole, field), rel=max(within, 0.25), abs=128), field
