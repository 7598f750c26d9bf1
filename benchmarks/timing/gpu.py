"""Grade the reference solutions on a GPU at full size, and compare their times with eager and torch.compile.

    python benchmarks/timing/gpu.py [PROBLEM …] [--out FILE]     run on the GPU; writes the data file
    python benchmarks/timing/gpu.py --readme                     write the data file's table into benchmarks/README.md

All kernels are compiled first, in parallel; then each solution is graded alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT
from benchmarks.publish.tables import make_table_with_source, show_table, write_section

DATA = DATA_FOLDER / "gpu.json"
PROBLEMS = sorted(p.parent.name for p in (ROOT / "kernels_ref").glob("*/solution.py"))
HEADS = [
    "reference, full size",
    "verdict",
    "ours, ms",
    "eager, ms",
    "torch.compile, ms",
    "over eager",
    "over torch.compile",
]


def compile_all(problems: list[str]) -> None:
    """Build every solution's extension in parallel. One that fails fails again, with its reason, when graded."""
    start = [
        subprocess.Popen(
            [sys.executable, str(ROOT / "kernels_ref" / p / "solution.py")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for p in problems
    ]
    for process in start:
        process.wait()


def grade_one(problem: str) -> dict:
    """Return the verdict's outcome, its stages, failures and measurements."""
    from grader.judging.grading import grade
    from grader.verdict import Status

    start = time.perf_counter()
    verdict = grade(ROOT / "kernels_ref" / problem / "solution.py", device="cuda")
    failures = [f"{s.name}: {s.message}" for s in verdict.stages if s.status in (Status.failed, Status.error)]
    found = {
        m.name: {"value": m.value, "unit": m.unit, "low": m.low, "high": m.high, "samples": m.samples}
        for s in verdict.stages
        for m in s.measurements
    }
    stages = {str(s.name): str(s.status) for s in verdict.stages}
    notes = [s.message for s in verdict.stages if s.name == "fast" and s.message]
    return {
        "outcome": str(verdict.outcome),
        "stages": stages,
        "failures": failures,
        "notes": notes,
        "measurements": found,
        "seconds": time.perf_counter() - start,
    }


COLUMNS = {  # measurement -> digits
    "this submission": 3,
    "eager": 3,
    "torch.compile": 3,
    "speed-up over eager": 2,
    "speed-up over torch.compile": 2,
}


def make_rows(data: dict) -> list[list[str]]:
    """Return cells under HEADS."""
    made = []
    for problem, result in data["problems"].items():
        found = result["measurements"]
        cells = [f"{found[name]['value']:.{digits}f}" if name in found else "–" for name, digits in COLUMNS.items()]
        made.append([problem, result["outcome"], *cells])
    return made


@click.command(help=__doc__)
@click.argument("problems", nargs=-1, type=click.Choice(PROBLEMS))
@click.option("--out", type=click.Path(path_type=Path), default=DATA, help="Where the data file goes.")
@click.option("--readme", is_flag=True, help="Only write the data file's table into benchmarks/README.md.")
def main(problems: tuple[str, ...], out: Path, readme: bool) -> None:
    if readme:
        data = json.loads(DATA.read_text())
        m = data["machine"]
        versions = f"torch {m['torch']}, {m['nvcc']}"
        made = "`python benchmarks/timing/gpu.py` made this. Medians; L2 flushed."
        source = f"{m['date']}, {m['gpu']}, {versions}; {made}"
        write_section("gpu", make_table_with_source(HEADS, make_rows(data), source))
        return
    chosen = list(problems) or PROBLEMS
    data = {"machine": describe_machine(), "problems": {}}
    start = time.perf_counter()
    compile_all(chosen)
    data["compile_seconds"] = time.perf_counter() - start
    print(f"compiled in {data['compile_seconds']:.0f} s", flush=True)
    for problem in chosen:
        data["problems"][problem] = grade_one(problem)
        print(
            problem,
            json.dumps(data["problems"][problem]["failures"]),
            f"{data['problems'][problem]['seconds']:.0f} s",
            flush=True,
        )
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(data, indent=1) + "\n")
    show_table(HEADS, make_rows(data))


if __name__ == "__main__":
    main()
