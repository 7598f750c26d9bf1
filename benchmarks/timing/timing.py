"""Time the same kernels in right and in wrong ways on a GPU: the figures of lesson 10.

    python benchmarks/timing/timing.py [--out FILE]

Needs nvcc and a GPU that no other program uses; takes about three minutes. The data file has, in milliseconds and in
the order of measurement:

    clocks      the clock in MHz with the GPU idle and with a program on it; an arithmetic kernel 600 times in a row
    first       calls 1 to 30 in a new process, three processes: the first call loads the kernel
    sync        a kernel by the host's clock, without and with a wait for the GPU; between two events; 20 in a row
    overhead    an empty kernel by the host's clock with a wait; between two events, with the GPU idle before, and
                with the GPU still busy during the launch; and as one of 1000 in a row
    l2          repeated reads and writes of a number of bytes: with L2 as the last run left it, and flushed
    samples     times in random order of a kernel, of its copy (same), and of one with 3 % more work (more)
    streams     a kernel on another stream: measured by events on the usual stream, and with a wait for the whole GPU
    contents    a product of bfloat16 matrices of zeros and of normal numbers; MHz and watts during it (the driver
                averages watts over a while and so over both)
    peaks       bytes per second of a copy and operations per second of multiply-adds
"""

from __future__ import annotations

import functools
import itertools
import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER

DATA = DATA_FOLDER / "timing.json"
MIB = 1 << 20

# scale reads and writes n floats, four per thread. In chains each thread does 8 multiply-adds (16 operations) in each
# of `rounds` rounds and stores one float.
CUDA = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void scale_kernel(const float4* x, float4* y, int64_t quads) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    float4 v = x[i];
    v.x = 2.0f * v.x + 1.0f;
    v.y = 2.0f * v.y + 1.0f;
    v.z = 2.0f * v.z + 1.0f;
    v.w = 2.0f * v.w + 1.0f;
    y[i] = v;
}

__global__ void chains_kernel(float* y, float factor, int rounds) {
    float a[8];
    for (int k = 0; k < 8; ++k) a[k] = threadIdx.x + k;
    for (int round = 0; round < rounds; ++round) {
        for (int k = 0; k < 8; ++k) a[k] = a[k] * factor + 1.0f;
    }
    float sum = 0.0f;
    for (int k = 0; k < 8; ++k) sum += a[k];
    y[(int64_t)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void empty_kernel() {}

void scale(torch::Tensor x, torch::Tensor y) {
    TORCH_CHECK(x.numel() % 4 == 0 && x.numel() > 0, "a whole number of float4");
    int64_t quads = x.numel() / 4;
    scale_kernel<<<(quads + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        reinterpret_cast<const float4*>(x.data_ptr<float>()), reinterpret_cast<float4*>(y.data_ptr<float>()), quads);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void chains(torch::Tensor y, int64_t rounds) {
    chains_kernel<<<y.numel() / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(y.data_ptr<float>(), 0.5f, rounds);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void empty() {
    empty_kernel<<<1, 32, 0, c10::cuda::getCurrentCUDAStream()>>>();
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""
CPP = "void scale(torch::Tensor x, torch::Tensor y); void chains(torch::Tensor y, int64_t rounds); void empty();"
FUNCTIONS = ["scale", "chains", "empty"]
THREADS = 132 * 2048  # chains: as many as an H200 holds at once
OPERATIONS = 16  # of one thread in one round of chains


def load() -> Any:
    """Build the kernels, once on a machine."""
    from torch.utils.cpp_extension import load_inline

    return load_inline(name="timing_kernels", cpp_sources=CPP, cuda_sources=CUDA, functions=FUNCTIONS)


# ---- clocks ----


def by_host(call, wait: bool = True) -> float:
    """Return the milliseconds of a call by the host's clock. wait: whether they include the wait for the GPU."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    if wait:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    torch.cuda.synchronize()
    return seconds * 1e3


def by_events(call, times: int = 1, ahead=None) -> float:
    """Return the milliseconds per call between two events. ahead: queued before, so that no launch is late."""
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    if ahead is not None:
        ahead()
    start.record()
    for _ in range(times):
        call()
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop) / times


def query_gpu(*fields: str) -> list[float]:
    """Return numbers that nvidia-smi reports."""
    query = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    return [
        float(text)
        for text in subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0].split(",")
    ]


class Pair:
    """Two arrays of n floats, and a call that scales one into the other."""

    def __init__(self, kernels, n: int):
        self.x, self.y = torch.rand(n, device="cuda"), torch.empty(n, device="cuda")
        self.scale = kernels.scale

    def __call__(self) -> None:
        self.scale(self.x, self.y)


def busy(kernels):
    """Return a call that keeps the GPU busy for some 300 microseconds and touches about one megabyte."""
    y = torch.empty(THREADS, device="cuda")
    return lambda: kernels.chains(y, 4000)


# ---- what is measured ----


def sync(kernels) -> dict:
    """Time a kernel with and without a wait, between events, and 20 in a row."""
    call = Pair(kernels, 1 << 26)
    warm_up(call)
    return {
        "elements": 1 << 26,
        "without": [by_host(call, wait=False) for _ in range(50)],
        "with": [by_host(call) for _ in range(50)],
        "events": [by_events(call) for _ in range(50)],
        "row": [by_events(call, 20) for _ in range(20)],
    }


def overhead(kernels) -> dict:
    """Time an empty kernel."""
    warm_up(kernels.empty)
    ahead = busy(kernels)
    return {
        "host": [by_host(kernels.empty) for _ in range(100)],
        "events": [by_events(kernels.empty) for _ in range(100)],
        "behind": [by_events(kernels.empty, ahead=ahead) for _ in range(100)],
        "row": [by_events(kernels.empty, 1000) for _ in range(10)],
    }


def first() -> dict:
    """Time the first calls in three new processes."""
    return {"elements": 1 << 22, "processes": [in_new_process("--first") for _ in range(3)]}


def first_calls() -> list[float]:
    """Time calls in a new process whose CUDA context exists and whose kernel has not been called."""
    kernels = load()
    call = Pair(kernels, 1 << 22)
    return [by_host(call) for _ in range(30)]


def clocks() -> dict:
    """Read the clock before this process uses the GPU: even an idle program on it may keep its clock high."""
    time.sleep(15)
    (idle,) = query_gpu("clocks.sm")
    return {"mhz_idle": idle} | in_new_process("--clocks")


def clocks_of_launches() -> dict:
    """Read the clock in a new process as soon as it uses the GPU, and time each of many launches."""
    kernels = load()
    y = torch.empty(THREADS, device="cuda")
    (began,) = query_gpu("clocks.sm")
    rounds, count = 2500, 600
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    events[0].record()
    for event in events[1:]:
        kernels.chains(y, rounds)
        event.record()
    torch.cuda.synchronize()
    taken = [a.elapsed_time(b) for a, b in itertools.pairwise(events)]
    return {
        "mhz_program": began,
        "mhz_after": query_gpu("clocks.sm")[0],
        "threads": THREADS,
        "rounds": rounds,
        "launches": taken,
    }


def in_new_process(option: str):
    """Run this script with an option in a new process and return the JSON that it prints."""
    done = subprocess.run([sys.executable, __file__, option], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def l2(kernels) -> dict:
    """Time reads and writes of growing arrays with a warm and with a flushed L2."""
    other = torch.empty(2 * torch.cuda.get_device_properties().L2_cache_size, dtype=torch.uint8, device="cuda")
    ahead, rows = busy(kernels), []
    for megabytes in (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512):  # read and written together
        call = Pair(kernels, megabytes * MIB // 8)
        warm_up(call)
        warm = [by_events(call, ahead=ahead) for _ in range(50)]
        cold = []
        for _ in range(50):
            other.zero_()
            cold.append(by_events(call, ahead=ahead))
        rows.append({"bytes": megabytes * MIB, "warm": statistics.median(warm), "cold": statistics.median(cold)})
    return {"l2_bytes": torch.cuda.get_device_properties().L2_cache_size, "rows": rows}


def samples(kernels) -> dict:
    """Time a kernel, its copy, and one with 3 % more elements, whose ratios are known to be 1 and about 1.03."""
    n = 1 << 24
    calls = {"kernel": Pair(kernels, n), "same": Pair(kernels, n), "more": Pair(kernels, n * 103 // 100)}
    order = random.Random(1)
    found: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        warm_up(call)
    for _ in range(500):
        for name in order.sample(list(calls), len(calls)):
            found[name].append(by_host(calls[name]))
    return {"elements": n, "more_elements": n * 103 // 100} | found


def streams(kernels) -> dict:
    """Time a kernel on another stream, as events and as the host's clock see it."""
    y, aside = torch.empty(THREADS, device="cuda"), torch.cuda.Stream()

    def honest() -> None:
        kernels.chains(y, 5000)

    def hidden() -> None:
        with torch.cuda.stream(aside):
            kernels.chains(y, 5000)

    warm_up(honest)
    return {
        "honest_events": [by_events(honest) for _ in range(20)],
        "hidden_events": [by_events(hidden) for _ in range(20)],
        "honest_host": [by_host(honest) for _ in range(20)],
        "hidden_host": [by_host(hidden) for _ in range(20)],
    }


def contents(kernels) -> dict:
    """Time a product of zeros and of normal numbers."""
    n = 8192
    out = torch.empty(n, n, dtype=torch.bfloat16, device="cuda")
    found: dict = {"n": n, "zeros": [], "normal": [], "zeros_mhz_watts": [], "normal_mhz_watts": []}
    made = {
        "zeros": torch.zeros(n, n, dtype=torch.bfloat16, device="cuda"),
        "normal": torch.randn(n, n, device="cuda").bfloat16(),
    }
    warm_up(lambda: torch.mm(made["zeros"], made["zeros"], out=out))
    for _ in range(5):  # interleaved, each long enough to reach the power limit
        for name, a in made.items():
            found[name].append(by_events(functools.partial(torch.mm, a, a, out=out), 200))
            for _ in range(400):
                torch.mm(a, a, out=out)
            found[f"{name}_mhz_watts"].append(query_gpu("clocks.sm", "power.draw"))  # while the queue is still full
            torch.cuda.synchronize()
    return found


def peaks(kernels) -> dict:
    """Measure the bandwidth of a copy and the rate of multiply-adds."""
    call = Pair(kernels, 1 << 28)
    warm_up(call)
    copied = min(by_events(call) for _ in range(20))
    y, rounds = torch.empty(THREADS, device="cuda"), 50_000
    for _ in range(20):
        kernels.chains(y, rounds)
    done = min(by_events(lambda: kernels.chains(y, rounds)) for _ in range(20))
    return {"bytes_a_second": (1 << 28) * 8 / copied * 1e3, "fp32_a_second": THREADS * rounds * OPERATIONS / done * 1e3}


def warm_up(call) -> None:
    """Run a call 20 times."""
    for _ in range(20):
        call()
    torch.cuda.synchronize()


ALONE = (clocks, first)  # before this process uses the GPU
TOGETHER = (sync, overhead, l2, samples, streams, contents, peaks)


def round_floats(value):
    """Round all floats to six digits, more than a clock has."""
    if isinstance(value, dict):
        return {name: round_floats(one) for name, one in value.items()}
    if isinstance(value, list):
        return [round_floats(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


@click.command(help=__doc__)
@click.option("--out", type=click.Path(path_type=Path), default=DATA, help="Where the data file goes.")
@click.option("--build", "alone", flag_value="build", hidden=True)
@click.option("--first", "alone", flag_value="first", hidden=True)
@click.option("--clocks", "alone", flag_value="clocks", hidden=True)
def main(out: Path, alone: str | None) -> None:
    if alone:
        print(
            json.dumps({"build": lambda: [load() and 0], "first": first_calls, "clocks": clocks_of_launches}[alone]())
        )
        return

    data: dict = {"machine": {}}

    def keep(part, *arguments) -> None:
        data[part.__name__] = round_floats(part(*arguments))
        print(part.__name__, json.dumps(data[part.__name__])[:300], flush=True)

    in_new_process("--build")
    for part in ALONE:
        keep(part)
    kernels = load()
    for part in TOGETHER:
        keep(part, kernels)
        torch.cuda.empty_cache()
    data["machine"] = describe_machine()
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(data) + "\n")


if __name__ == "__main__":
    main()
