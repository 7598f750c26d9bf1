"""Kernels on the CPU: do launches, barriers, orders and faults behave as CUDA says? One extension for all of them."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest
import torch

import simt

SOURCE = (
    r"""
#include <torch/extension.h>

__global__ void coordinates(int* out) {
  int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  int i = block * blockDim.x * blockDim.y * blockDim.z + thread;
  out[i] = i;
}
void run_coordinates(torch::Tensor out, std::vector<int64_t> grid, std::vector<int64_t> block) {
  coordinates<<<dim3(grid[0], grid[1], grid[2]), dim3(block[0], block[1], block[2])>>>(out.data_ptr<int>());
}

__global__ void block_sums(const float* x, float* sums, int n) {
  extern __shared__ float part[];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  part[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (t < s) part[t] += part[t + s];
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = part[0];
}
torch::Tensor run_block_sums(torch::Tensor x, int threads, bool ask_for_memory) {
  int n = x.numel(), blocks = (n + threads - 1) / threads;
  auto sums = torch::empty({blocks}, x.options());
  block_sums<<<blocks, threads, ask_for_memory ? threads * sizeof(float) : 0>>>(x.data_ptr<float>(), """
    r"""sums.data_ptr<float>(), n);
  return sums;
}

__global__ void racy_shift(float* x) {
  __shared__ float row[64];
  row[threadIdx.x] = threadIdx.x;
  x[threadIdx.x] = row[(threadIdx.x + 1) % 64];   // no barrier: depends on who ran first
}
torch::Tensor run_racy_shift() {
  auto x = torch::zeros({64});
  racy_shift<<<1, 64>>>(x.data_ptr<float>());
  return x;
}

__global__ void past_the_end(float* out, int shift) { out[(int)threadIdx.x + shift] = 1.0f; }
void run_past_the_end(torch::Tensor out, int shift) { past_the_end<<<1, 32>>>(out.data_ptr<float>(), shift); }

__global__ void two_barriers(float* x) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    x[0] = 1.0f;
    __syncthreads();
  }
}
void run_two_barriers(torch::Tensor x) { two_barriers<<<1, 64>>>(x.data_ptr<float>()); }

__global__ void half_a_warp(float* x) {
  if (threadIdx.x < 16) x[threadIdx.x] = __shfl_sync(0xffffffff, x[threadIdx.x], 20);
  else __syncthreads();
}
void run_half_a_warp(torch::Tensor x) { half_a_warp<<<1, 32>>>(x.data_ptr<float>()); }

__global__ void endless(float* x) {
  while (x[0] == 0.0f) x[1] += 1.0f;
}
void run_endless(torch::Tensor x) { endless<<<2, 64>>>(x.data_ptr<float>()); }

void run_block(torch::Tensor x, int threads, int shared) {
  past_the_end<<<1, threads, shared>>>(x.data_ptr<float>(), 0);
}
void run_block_checked(torch::Tensor x, int threads) {
  past_the_end<<<1, threads>>>(x.data_ptr<float>(), 0);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
void run_empty_grid(torch::Tensor x) { past_the_end<<<0, 32>>>(x.data_ptr<float>(), 0); }

__global__ void by_null(float* x) { x[3] = 1.0f; }
void run_by_null() { by_null<<<1, 1>>>(nullptr); }

__global__ void divide(int* x) { x[1] = 7 / x[0]; }
void run_divide(torch::Tensor x) { divide<<<1, 1>>>(x.data_ptr<int>()); }
"""
)
LINE_OF = {text.split("(")[0].split()[-1]: n for n, text in enumerate(SOURCE.split("\n"), 1) if "__global__" in text}
NAMES = [
    line.split("(")[0].split()[-1] for line in SOURCE.split("\n") if line.startswith(("void run", "torch::Tensor run"))
]
HEADS = [line.split(" {")[0] + ";" for line in SOURCE.split("\n") if line.startswith(("void run", "torch::Tensor run"))]


@pytest.fixture(scope="module")
def kernels():
    return simt.load_inline("test_runtime", "\n".join(HEADS), SOURCE, functions=NAMES)


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        ((1, 1, 1), (1, 1, 1)),
        ((3, 1, 1), (33, 1, 1)),
        ((2, 3, 4), (5, 4, 3)),
        ((1, 1, 7), (1, 1, 64)),
        ((70000, 1, 1), (2, 1, 1)),
    ],
)
def test_every_thread_runs_once_with_its_own_index(kernels, grid, block):
    """Does each thread of each block see its own coordinates, for 1-D to 3-D grids and blocks?"""
    n = torch.tensor(grid).prod() * torch.tensor(block).prod()
    out = torch.full((int(n),), -1, dtype=torch.int32)
    kernels.run_coordinates(out, list(grid), list(block))
    assert torch.equal(out, torch.arange(int(n), dtype=torch.int32))


@pytest.mark.parametrize("schedule", ["forward", "reverse", 1, 2**40])
@pytest.mark.parametrize("threads", [1, 32, 256, 1024])
def test_barriers_hold_in_every_order(kernels, threads, schedule):
    """Is a block reduction with barriers right, whichever thread starts first?"""
    x = torch.randn(5000)
    with simt.run(schedule=schedule):
        sums = kernels.run_block_sums(x, threads, True)
    padded = torch.zeros(sums.numel() * threads)
    padded[:5000] = x
    assert torch.allclose(sums.double(), padded.view(-1, threads).double().sum(1), atol=1e-4)


def test_a_race_shows_in_another_order(kernels):
    """Does a kernel that lacks a barrier give other results when the threads run in reverse?"""
    forward = kernels.run_racy_shift()
    with simt.run(schedule="reverse"):
        backward = kernels.run_racy_shift()
    assert not torch.equal(forward.nan_to_num(-1), backward.nan_to_num(-1))


def test_shared_memory_nobody_wrote_is_marked(kernels):
    """Does a read of shared memory before its write give the mark?"""
    first = kernels.run_racy_shift()[0:1]
    assert first.view(torch.int32).item() == simt.SHARED_MARK


def _fails(call, *arguments):
    with pytest.raises(simt.KernelError) as caught:
        call(*arguments)
    return caught.value


@pytest.mark.parametrize(
    ("guard", "shift", "words"), [("end", 40, "9 elements past its end"), ("front", -3, "element -3")]
)
def test_an_access_outside_a_tensor_is_named(kernels, guard, shift, words):
    """Is a write outside told with the parameter, the thread and the line?"""
    with simt.run(guard=guard):
        out = torch.zeros(64)
        error = _fails(kernels.run_past_the_end, out, shift)
    assert error.reason == "out_of_bounds" and "`out` (64 elements)" in error.message
    assert words in error.message or "1 element past" in error.message
    assert error.line == LINE_OF["past_the_end"] and error.block == (0, 0, 0) and error.thread is not None


def test_a_write_into_the_slack_is_found(kernels):
    """Is a write of one element past the end found where padding hides it from the page fence?"""
    with simt.run(guard="end"):
        out = torch.zeros(33)  # 132 bytes: 12 bytes of slack up to the fence
        error = _fails(kernels.run_past_the_end, out, 2)
    assert error.reason == "out_of_bounds" and "`out`" in error.message


@pytest.mark.slow
def test_shared_memory_that_was_not_asked_for_traps(kernels):
    """Does a launch without its third argument say so?"""
    error = _fails(kernels.run_block_sums, torch.randn(64), 64, False)
    assert error.reason == "out_of_bounds" and "third `<<<>>>` argument" in error.message


def test_different_barriers_do_not_match(kernels):
    """Are two halves of a block at two __syncthreads() an error that names both lines?"""
    error = _fails(kernels.run_two_barriers, torch.zeros(1))
    first = LINE_OF["two_barriers"] + 2
    assert (
        error.reason == "barrier_divergence"
        and f"line {first}" in error.message
        and f"line {first + 3}" in error.message
    )


def test_a_shuffle_whose_lanes_are_elsewhere_is_named(kernels):
    """Is a shuffle whose mask names lanes that wait at a barrier an error, not a hang?"""
    error = _fails(kernels.run_half_a_warp, torch.zeros(32))
    assert error.reason in ("warp_divergence", "barrier_divergence") and "0xffffffff" in error.message


def test_an_endless_kernel_is_stopped(kernels):
    """Does a kernel that never ends end with its name and line, within its limit?"""
    with simt.run(seconds=0.5):
        error = _fails(kernels.run_endless, torch.zeros(2))
    assert error.reason == "kernel_timeout" and error.kernel == "endless"
    assert LINE_OF["endless"] <= error.line <= LINE_OF["endless"] + 1


@pytest.mark.parametrize(
    ("threads", "shared", "words"),
    [(126 * 126, 0, "15,876 threads; the limit is 1,024"), (32, 60000, "60,000 bytes of shared memory")],
)
def test_a_launch_beyond_the_limits_says_which(kernels, threads, shared, words):
    """Is a launch that a GPU refuses refused here, although the code never looks at the error?"""
    error = _fails(kernels.run_block, torch.zeros(32), threads, shared)
    assert error.reason == "launch_error" and words in error.message and error.kernel == "past_the_end"


def test_a_checked_launch_fails_alike(kernels):
    """Does the same launch with a check after it give the same error?"""
    assert _fails(kernels.run_block_checked, torch.zeros(32), 2000).reason == "launch_error"


def test_an_empty_grid_is_an_error(kernels):
    """Is a grid of no blocks refused, as on a GPU?"""
    assert "no block along x" in _fails(kernels.run_empty_grid, torch.zeros(32)).message


def test_a_null_pointer_and_a_division_by_zero_are_named(kernels):
    """Are these two faults told apart?"""
    assert "null pointer" in _fails(kernels.run_by_null).message
    assert _fails(kernels.run_divide, torch.zeros(2, dtype=torch.int32)).reason == "division_by_zero"


def test_a_fault_leaves_the_next_launch_whole(kernels):
    """Does a sound launch work after each kind of fault?"""
    for spoil in (
        kernels.run_by_null,
        lambda: kernels.run_two_barriers(torch.zeros(1)),
        lambda: kernels.run_empty_grid(torch.zeros(1)),
    ):
        with pytest.raises(simt.KernelError):
            spoil()
        assert torch.allclose(kernels.run_block_sums(torch.ones(100), 128, True), torch.tensor([100.0]))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((torch.zeros(3),), "takes 2 arguments, but got 1"),
        ((torch.zeros(3), 1.5), "argument 2 should be an int, not a float"),
        (([1], 1), "argument 1 should be a Tensor"),
    ],
)
def test_wrong_arguments_are_a_type_error(kernels, arguments, words):
    """Do a missing argument and one of a wrong type say so in the function's own terms?"""
    with pytest.raises(TypeError, match=words):
        kernels.run_past_the_end(*arguments)


@pytest.mark.slow
def test_ctrl_c_stops_a_kernel(tmp_path):
    """Does an interrupt during a long kernel become a KeyboardInterrupt at once?"""
    script = textwrap.dedent(
        """
        import torch, simt
        source = '''__global__ void spin(float* x) { while (x[0] == 0.0f) x[1] += 1.0f; }
        void run(torch::Tensor x) { spin<<<1, 32>>>(x.data_ptr<float>()); }'''
        module = simt.load_inline("test_ctrl_c", "void run(torch::Tensor x);", source, functions=["run"])
        print("ready", flush=True)
        try:
            with simt.run(seconds=60):
                module.run(torch.zeros(2))
        except KeyboardInterrupt:
            print("stopped", flush=True)
        """
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=os.getcwd())
    assert process.stdout.readline() == "ready\n"
    import time

    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    assert out == "stopped\n" and process.returncode == 0
