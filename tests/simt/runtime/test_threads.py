"""Does SIMT_THREADS say how many of the CPU's threads run a launch, also when there were more before?"""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import simt

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
SOURCE = """
__global__ void tickets(int* next, int* got) {
  int mine = 0;
  for (int i = 0; i < 2000; i++) mine += i % 7;  // long enough for a second thread to take a block meanwhile
  got[blockIdx.x] = atomicAdd(next, 1) + (mine < 0);
}
torch::Tensor run(int64_t blocks) {
  auto next = torch::zeros({1}, torch::dtype(torch::kInt)), got = torch::empty({blocks}, torch::dtype(torch::kInt));
  tickets<<<blocks, 1>>>(next.data_ptr<int>(), got.data_ptr<int>());
  return got;
}
"""


@pytest.mark.slow
def test_fewer_threads_than_before(monkeypatch):
    """With one thread, does block after block run in order, although the launch before had four?"""
    module = simt.load_inline("threads_tickets", "torch::Tensor run(int64_t blocks);", SOURCE, functions=["run"])
    for threads in ("4", "1", "4", "1"):
        monkeypatch.setenv("SIMT_THREADS", threads)
        with simt.run(schedule="forward"):
            got = [module.run(3000) for _ in range(5)]
        assert all(sorted(one.tolist()) == list(range(3000)) for one in got)
        if threads == "1":
            assert all(torch.equal(one, torch.arange(3000, dtype=torch.int32)) for one in got)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 8, 64])
@pytest.mark.parametrize("gibibytes", [2, 16])
def test_a_limit_of_address_space(threads, gibibytes):
    """Do many threads with checks leave each other room under a limit, as a grading sets it?

    On a machine of eight cores the checks' records once took all of it, and right kernels died.
    """

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (gibibytes << 30, gibibytes << 30))

    command = [sys.executable, "-m", "simt", "check", str(PROGRAMS / "matmul.cu")]
    environment = os.environ | {"SIMT_THREADS": str(threads)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, preexec_fn=limit, timeout=200)
    assert done.returncode == 0 and "No check found anything" in done.stderr, done.stdout + done.stderr
