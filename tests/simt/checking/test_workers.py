"""Does simt.check() say the same, whichever of the CPU's threads runs which block?"""

import pytest
import torch

import simt

# Block b writes the elements of all blocks from b on, after it has waited as long as `order` says.
SOURCE = """
__global__ void overlap(float* out, const int* wait, int* sink, int n, int step) {
  int mine = 0;
  for (int i = 0; i < wait[blockIdx.x]; i++) mine += i % 7;
  if (mine < 0) *sink = mine;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x)
    out[i] = step * blockIdx.x;
}
void run(torch::Tensor out, torch::Tensor wait, torch::Tensor sink, int64_t step) {
  overlap<<<wait.numel(), 32>>>(out.data_ptr<float>(), wait.data_ptr<int>(), sink.data_ptr<int>(), out.numel(), step);
}
"""
BLOCKS = 8


@pytest.fixture(scope="module")
def module():
    declared = "void run(torch::Tensor out, torch::Tensor wait, torch::Tensor sink, int64_t step);"
    return simt.load_inline("test_workers", declared, SOURCE, functions=["run"])


@pytest.mark.parametrize(("step", "severity"), [(0, "warning"), (1, "error")])
def test_the_first_race_is_reported(module, monkeypatch, step, severity):
    """Do one, two and four threads report the race of blocks 0 and 1 at their first element, as the only one?

    Other elements and other blocks race in the same line. Which of them a worker sees depends on what it runs.
    """
    waits = torch.Generator().manual_seed(0)
    told = set()
    for threads in (1, 2, *[4] * 40):
        monkeypatch.setenv("SIMT_THREADS", str(threads))
        wait = torch.randint(0, 40_000, (BLOCKS,), dtype=torch.int32, generator=waits)
        with simt.check() as report:
            module.run(torch.zeros(32 * BLOCKS), wait, torch.zeros(1, dtype=torch.int32), step)
        (race,) = [f for f in report.findings if f.check == "race"]
        told.add((race.severity, race.block, race.thread, race.other_block, race.other_thread, race.index))
    assert told == {(severity, (1, 0, 0), (0, 0, 0), (0, 0, 0), (0, 0, 0), 32)}


def test_an_error_is_not_hidden_by_a_warning(module):
    """Is a race an error where its first pair of blocks writes the same value, and a later one does not?"""
    source = SOURCE.replace("step * blockIdx.x", "blockIdx.x / 4")
    other = simt.load_inline(
        "test_workers_mixed",
        "void run(torch::Tensor out, torch::Tensor wait, torch::Tensor sink, int64_t step);",
        source,
        functions=["run"],
    )
    with simt.check() as report:
        wait, sink = torch.zeros(BLOCKS, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
        other.run(torch.zeros(32 * BLOCKS), wait, sink, 0)
    (race,) = [f for f in report.findings if f.check == "race"]
    assert race.severity == "error" and race.block == (4, 0, 0)
