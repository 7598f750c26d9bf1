"""Time what checks and counters cost: a tiled matmul plain, checked and counted, and builds of an edited kernel.

    python benchmarks/validate/modes.py [--json] [--readme]

The modes run in interleaved rounds and the ratios are medians over rounds, so that other load on the machine affects
all modes. --json keeps the figures in data/modes.json, --readme writes that file's table into benchmarks/README.md. The
exit status is 1 if a ratio or a build exceeds its bound: 8 for checks, 6 for counters, 4 s for a build.
"""

from __future__ import annotations

import functools
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import simt
from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT
from benchmarks.publish.tables import describe_source, make_table_with_source, write_section

DATA = DATA_FOLDER / "modes.json"
LIMITS = {"check": 8.0, "count": 6.0, "build": 4.0}
N, ROUNDS = 256, 9
HOST = "torch::Tensor matmul(torch::Tensor a, torch::Tensor b);"
KERNEL = r"""
constexpr int TILE = 16;  // EDIT
__global__ void matmul_kernel(const float* a, const float* b, float* c, int n) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int tile = 0; tile < n / TILE; ++tile) {
    as[threadIdx.y][threadIdx.x] = a[row * n + tile * TILE + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(tile * TILE + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < TILE; ++k) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
torch::Tensor matmul(torch::Tensor a, torch::Tensor b) {
  const int n = a.size(0);
  auto c = torch::empty_like(a);
  matmul_kernel<<<dim3(n / TILE, n / TILE), dim3(TILE, TILE)>>>(
      a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), n);
  return c;
}
"""


def build(mark: str):
    """Build the kernel with this comment, as after an edit."""
    return simt.load_inline("modes", HOST, KERNEL.replace("EDIT", mark), functions=["matmul"])


def measure_seconds(call: Callable[[], object]) -> float:
    """Return the wall time of one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def measure() -> dict:
    """Return medians: milliseconds per call in each mode, ratios to plain in the same round, seconds per build."""
    a, b = torch.rand(N, N), torch.rand(N, N)
    simt.warm_up()
    module = build("first")
    times: dict[str, list[float]] = {mode: [] for mode in ("plain", "check", "count")}
    for mode in times:
        with simt.run(mode=mode):
            module.matmul(a, b)  # builds it
            assert torch.allclose(module.matmul(a, b), a @ b, rtol=1e-4, atol=1e-3)
    for _ in range(ROUNDS):
        for mode, all_times in times.items():
            with simt.run(mode=mode):
                all_times.append(min(measure_seconds(lambda: module.matmul(a, b)) for _ in range(3)))
    builds = {}
    for mode in times:
        taken = []
        for edit in range(3):
            with simt.run(mode=mode):
                mark = f"{mode} {edit} {time.time_ns()}"
                taken.append(measure_seconds(functools.partial(build, mark)))
        builds[mode] = statistics.median(taken)
    ratios = {
        mode: statistics.median(t / p for t, p in zip(times[mode], times["plain"])) for mode in ("check", "count")
    }
    return {
        "milliseconds": {mode: 1e3 * statistics.median(t) for mode, t in times.items()},
        "ratio to plain": ratios,
        "build of an edited kernel, seconds": builds,
    }


def write_table(data: dict) -> None:
    """Write the table into benchmarks/README.md."""
    rows = []
    for mode, ms in data["milliseconds"].items():
        ratio = data["ratio to plain"].get(mode, 1.0)
        rows.append([mode, f"{ms:.0f} ms", f"{ratio:.1f}", f"{data['build of an edited kernel, seconds'][mode]:.1f} s"])
    write_section(
        "modes",
        make_table_with_source(
            [f"tiled matmul, {N}³", "a call", "times plain", "build after an edit"],
            rows,
            describe_source(data["machine"], "validate/modes.py --json --readme"),
        ),
    )


@click.command(help=__doc__)
@click.option("--json", "keep", is_flag=True, help=f"Keep the figures in {DATA.relative_to(ROOT)}.")
@click.option(
    "--readme", is_flag=True, help="Write the data file's table into benchmarks/README.md; alone, measure nothing."
)
def main(keep: bool, readme: bool) -> None:
    if readme and not keep:
        write_table(json.loads(DATA.read_text()))
        return
    found = measure()
    for mode, ms in found["milliseconds"].items():
        ratio = f"{found['ratio to plain'][mode]:5.1f} times plain" if mode != "plain" else ""
        print(f"{mode:6} {ms:8.1f} ms  {ratio:18}  built in {found['build of an edited kernel, seconds'][mode]:.1f} s")
    if keep:
        DATA.write_text(json.dumps({"machine": describe_machine(), **found}, indent=1) + "\n")
        if readme:
            write_table(json.loads(DATA.read_text()))
    missed = [m for m, limit in LIMITS.items() if m in found["ratio to plain"] and found["ratio to plain"][m] > limit]
    missed += ["build"] if found["build of an edited kernel, seconds"]["check"] > LIMITS["build"] else []
    if missed:
        print(f"missed: {', '.join(missed)}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
