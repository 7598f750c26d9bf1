"""Time builds and kernels on this machine's CPU, compared with stock load_inline and with plain C++.

    python benchmarks/timing/cpu.py             print the figures
    python benchmarks/timing/cpu.py --write     also write data/cpu.json and the tables of benchmarks/README.md
    python benchmarks/timing/cpu.py --readme    write the tables from the data file; nothing is measured

Every figure is a median; what is compared runs in interleaved rounds.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT
from benchmarks.publish.tables import describe_source, make_table_with_source, show_table, write_section

DATA = DATA_FOLDER / "cpu.json"
N = 1 << 22  # elements of the elementwise kernels: 16 MiB per tensor
SIDE = 256  # of the matrices

KERNELS = r"""
#include <torch/extension.h>
__global__ void saxpy(const float* x, float* y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
__global__ void sigmoid(const float* x, float* y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 1.0f / (1.0f + expf(-a * x[i]));
}
__global__ void matmul(const float* A, const float* B, float* C, int n) {
  __shared__ float a[16][16], b[16][16];
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.0f;
  for (int tile = 0; tile < n; tile += 16) {
    a[threadIdx.y][threadIdx.x] = A[row * n + tile + threadIdx.x];
    b[threadIdx.y][threadIdx.x] = B[(tile + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += a[threadIdx.y][k] * b[k][threadIdx.x];
    __syncthreads();
  }
  C[row * n + column] = sum;
}
void run_saxpy(torch::Tensor x, torch::Tensor y) {
  int n = x.numel();
  saxpy<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), 0.5f, n);
}
void run_sigmoid(torch::Tensor x, torch::Tensor y) {
  int n = x.numel();
  sigmoid<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), 0.5f, n);
}
void run_matmul(torch::Tensor a, torch::Tensor b, torch::Tensor c) {
  int n = a.size(0);
  matmul<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), n);
}
"""
DECLARED = """
void run_saxpy(torch::Tensor x, torch::Tensor y);
void run_sigmoid(torch::Tensor x, torch::Tensor y);
void run_matmul(torch::Tensor a, torch::Tensor b, torch::Tensor c);
"""
PLAIN = r"""
#include <cmath>
extern "C" void saxpy(const float* x, float* y, float a, int n) {
  for (int i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}
extern "C" void sigmoid(const float* x, float* y, float a, int n) {
  for (int i = 0; i < n; ++i) y[i] = 1.0f / (1.0f + expf(-a * x[i]));
}
"""


def _measure_seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _time_interleaved(calls: dict[str, Callable[[], object]], rounds: int = 15) -> dict[str, float]:
    """Return the median seconds of each call, from interleaved rounds, so that other load affects all calls alike."""
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(_measure_seconds(call))
    return {name: statistics.median(t) for name, t in times.items()}


def measure_run() -> dict[str, float]:
    """Time kernels on one core and the same loops in plain C++ at -O2. Return seconds and ratios."""
    import torch

    import simt

    torch.set_num_threads(1)
    module = simt.load_inline("bench", DECLARED, KERNELS, functions=["run_saxpy", "run_sigmoid", "run_matmul"])
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "plain.cpp").write_text(PLAIN)
        library = str(Path(folder) / "plain.so")
        subprocess.run(["g++", "-O2", "-shared", "-fPIC", str(Path(folder) / "plain.cpp"), "-o", library], check=True)
        plain = ctypes.CDLL(library)
    x, y = torch.rand(N), torch.rand(N)

    def make_loop(function):
        return lambda: function(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), ctypes.c_float(0.5), N)

    a, b, c = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE), torch.empty(SIDE, SIDE)
    times = _time_interleaved(
        {
            "saxpy_kernel": lambda: module.run_saxpy(x, y),
            "saxpy_loop": make_loop(plain.saxpy),
            "sigmoid_kernel": lambda: module.run_sigmoid(x, y),
            "sigmoid_loop": make_loop(plain.sigmoid),
            "matmul_kernel": lambda: module.run_matmul(a, b, c),
        }
    )
    assert torch.allclose(c, a @ b, rtol=1e-4), "the matmul is wrong"
    times["saxpy_ratio"] = times["saxpy_kernel"] / times["saxpy_loop"]
    times["sigmoid_ratio"] = times["sigmoid_kernel"] / times["sigmoid_loop"]
    return times


# A new process imports torch, then builds; it prints the seconds of load_inline alone.
_BUILD = """
import sys, time
sys.path.insert(0, {root!r})
import torch
{which}
source = open({source!r}).read()
start = time.perf_counter()
load_inline({name!r}, {declared!r}, {cuda}, functions=["run_saxpy", "run_sigmoid", "run_matmul"])
print(time.perf_counter() - start)
"""


def _build_once(folder: str, source: str, stock: bool, name: str) -> float:
    path = Path(folder) / "source.cu"
    path.write_text(source)
    which = "from torch.utils.cpp_extension import load_inline" if stock else "from simt import load_inline"
    if stock:  # without nvcc stock load_inline builds C++ only: the host functions without launches
        cuda, declared = "None", source
    else:
        cuda, declared = "source", DECLARED
    script = _BUILD.format(root=str(ROOT), which=which, source=str(path), name=name, declared=declared, cuda=cuda)
    environment = {**os.environ, "TORCH_EXTENSIONS_DIR": str(Path(folder) / "stock")}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout.split()[-1])


def _host_only() -> str:
    """Return the host functions without launches, which stock load_inline can build on this machine."""
    text = re.sub(r"__global__.*?\n}\n", "", KERNELS, flags=re.DOTALL)
    return re.sub(r"\n  \w+<<<.*?;\n", "\n", text)


def measure_build(rounds: int = 7) -> dict[str, float]:
    """Time load_inline in a new process: after an edit, with nothing changed, and stock's."""
    import simt

    simt.warm_up()
    edited, unchanged = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            source = KERNELS.replace("0.5f, n);", f"{0.5 + (time.time_ns() % 10**9) * 1e-10:.10f}f, n);", 1)
            edited.append(_build_once(folder, source, stock=False, name="bench_build"))
            unchanged.append(_build_once(folder, source, stock=False, name="bench_build"))
        stock_cold = _build_once(folder, _host_only(), stock=True, name="bench_stock")
        stock_edited = _build_once(folder, _host_only() + "// edited\n", stock=True, name="bench_stock")
        stock_same = _build_once(folder, _host_only() + "// edited\n", stock=True, name="bench_stock")
    return {
        "edited": statistics.median(edited),
        "edited_worst": max(edited),
        "unchanged": statistics.median(unchanged),
        "stock_cold": stock_cold,
        "stock_edited": stock_edited,
        "stock_unchanged": stock_same,
    }


def measure_warm_up() -> float:
    """Return the seconds of the one-time build in an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        script = "import simt, time; start = time.perf_counter(); simt.warm_up(); print(time.perf_counter() - start)"
        environment = {**os.environ, "SIMT_CACHE": folder, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
        )
    return float(done.stdout.split()[-1])


def measure() -> dict:
    """Return all figures."""
    build = measure_build()
    build["warm_up"] = measure_warm_up()
    # The kernels run in a process that is bound to one core from its start.
    script = [sys.executable, __file__, "--one-core"]
    if shutil.which("taskset"):
        script = ["taskset", "-c", str(min(os.sched_getaffinity(0))), *script]
    done = subprocess.run(script, capture_output=True, text=True, check=True, env={**os.environ, "SIMT_THREADS": "1"})
    return {"machine": describe_machine(), "build": build, "run": json.loads(done.stdout)}


def make_tables(data: dict) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return (name, heads, rows) of each table."""
    b, r = data["build"], data["run"]
    return [
        (
            "build",
            ["load_inline, seconds", "simt", "stock (C++ only)"],
            [
                ["first time on a machine", f"{b['warm_up'] + b['edited']:.0f}", f"{b['stock_cold']:.0f}"],
                [
                    "one line of a kernel changed",
                    f"{b['edited']:.1f} (worst {b['edited_worst']:.1f})",
                    f"{b['stock_edited']:.0f}",
                ],
                ["nothing changed, new process", f"{b['unchanged']:.2f}", f"{b['stock_unchanged']:.2f}"],
            ],
        ),
        (
            "run",
            ["on one core", "kernel", "plain C++ loop, -O2", "ratio"],
            [
                [
                    f"a·x + y, {N:,} elements",
                    f"{r['saxpy_kernel'] * 1e3:.1f} ms",
                    f"{r['saxpy_loop'] * 1e3:.1f} ms",
                    f"{r['saxpy_ratio']:.1f}",
                ],
                [
                    f"sigmoid, {N:,} elements",
                    f"{r['sigmoid_kernel'] * 1e3:.1f} ms",
                    f"{r['sigmoid_loop'] * 1e3:.1f} ms",
                    f"{r['sigmoid_ratio']:.1f}",
                ],
                [f"tiled matmul with barriers, {SIDE}³", f"{r['matmul_kernel'] * 1e3:.1f} ms", "", ""],
            ],
        ),
    ]


@click.command(help=__doc__)
@click.option("--write", is_flag=True, help="Keep the figures in data/cpu.json and in benchmarks/README.md.")
@click.option("--readme", is_flag=True, help="Only write the data file's tables into benchmarks/README.md.")
@click.option("--one-core", is_flag=True, hidden=True)
def main(write: bool, readme: bool, one_core: bool) -> None:
    if one_core:
        print(json.dumps(measure_run()))
        return
    data = json.loads(DATA.read_text()) if readme else measure()
    for name, heads, rows in make_tables(data):
        show_table(heads, rows)
        if write or readme:
            write_section(
                name, make_table_with_source(heads, rows, describe_source(data["machine"], "timing/cpu.py --write"))
            )
    if write:
        DATA.parent.mkdir(exist_ok=True)
        DATA.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
