"""Does simt.check() say the same, whichever of the CPU's threads runs which block?"""

import os
import subprocess
import sys
from pathlib import Path

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


def run_on(cpu: int) -> None:
    """Let all threads of this process run on one CPU."""
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), {cpu})


def test_a_stopped_kernel_keeps_no_place(monkeypatch):
    """Does a kernel end at once that writes where another one wrote when its time was up, on a busy machine, too?

    On one CPU with other programs each wait for a worker that will never go on takes a time slice.
    """
    module = simt.load_inline(
        "test_workers_stopped",
        "void run(torch::Tensor out, bool endless);",
        """
        __global__ void store(float* out, bool endless) {
          do out[blockIdx.x] = 1; while (endless);
        }
        void run(torch::Tensor out, bool endless) { store<<<2, 1>>>(out.data_ptr<float>(), endless); }
        """,
        functions=["run"],
    )
    monkeypatch.setenv("SIMT_THREADS", "2")
    out = torch.zeros(2)
    with simt.check(seconds=0.3), pytest.raises(simt.KernelError, match="time limit"):
        module.run(out, True)
    allowed = os.sched_getaffinity(0)
    busy = [sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{min(allowed)}}})\nwhile True: pass"]
    others = [subprocess.Popen(busy) for _ in range(3)]
    try:
        run_on(min(allowed))
        with simt.check(seconds=3.0) as report:
            module.run(out, False)
    finally:
        for each in others:
            each.kill()
            each.wait()
        for thread in Path("/proc/self/task").iterdir():
            os.sched_setaffinity(int(thread.name), allowed)
    assert not report.findings and out.tolist() == [1, 1]
