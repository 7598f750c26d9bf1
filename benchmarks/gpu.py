"""Grades the reference solutions on this machine's GPU at full size, with times beside eager and torch.compile.

    python benchmarks/gpu.py [PROBLEM …] [--out FILE]     run on the GPU; writes the data file
    python benchmarks/gpu.py --readme                     put the committed data file's table into the README

The kernels are compiled first, all at once; each is then graded alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from machine import machine  # noqa: E402
from tables import markdown, put_into_readme, show  # noqa: E402

DATA = ROOT / "benchmarks" / "data" / "gpu.json"
PROBLEMS = sorted(p.parent.name for p in (ROOT / "kernels_ref").glob("*/solution.py"))
HEADS = ["reference, full size", "verdict", "ours, ms", "eager, ms", "torch.compile, ms", "over eager", "over torch.compile"]


def compile_all(problems: list[str]) -> None:
    """Builds every solution's extension side by side; what fails here fails again, with its reason, when graded."""
    start = [
        subprocess.Popen([sys.executable, str(ROOT / "kernels_ref" / p / "solution.py")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for p in problems
    ]
    for process in start:
        process.wait()


def grade_one(problem: str) -> dict:
    """The verdict's outcome, its measurements, and the first failure's words."""
    from grader.judge import grade
    from grader.verdict import Status

    start = time.perf_counter()
    verdict = grade(ROOT / "kernels_ref" / problem / "solution.py", device="cuda")
    failures = [f"{s.name}: {s.message}" for s in verdict.stages if s.status in (Status.failed, Status.error)]
    found = {m.name: {"value": m.value, "unit": m.unit, "low": m.low, "high": m.high, "samples": m.samples} for s in verdict.stages for m in s.measurements}
    stages = {str(s.name): str(s.status) for s in verdict.stages}
    notes = [s.message for s in verdict.stages if s.name == "fast" and s.message]
    return {
        "outcome": str(verdict.outcome), "stages": stages, "failures": failures, "notes": notes, "measurements": found,
        "seconds": time.perf_counter() - start,
    }


def rows(data: dict) -> list[list[str]]:
    made = []
    for problem, result in data["problems"].items():
        found = result["measurements"]

        def cell(name: str, digits: int) -> str:
            return f"{found[name]['value']:.{digits}f}" if name in found else "–"

        made.append(
            [problem, result["outcome"], cell("this submission", 3), cell("eager", 3), cell("torch.compile", 3),
             cell("speed-up over eager", 2), cell("speed-up over torch.compile", 2)]
        )
    return made


@click.command(help=__doc__)
@click.argument("problems", nargs=-1, type=click.Choice(PROBLEMS))
@click.option("--out", type=click.Path(path_type=Path), default=DATA, help="Where the data file goes.")
@click.option("--readme", is_flag=True, help="Only put the data file's table into the README.")
def main(problems: tuple[str, ...], out: Path, readme: bool) -> None:
    if readme:
        data = json.loads(DATA.read_text())
        m = data["machine"]
        source = f"{m['date']}, {m['gpu']}, torch {m['torch']}, {m['nvcc']}; `python benchmarks/gpu.py` made this. Medians; L2 flushed."
        put_into_readme("gpu", markdown(HEADS, rows(data), source))
        return
    chosen = list(problems) or PROBLEMS
    data = {"machine": machine(), "problems": {}}
    start = time.perf_counter()
    compile_all(chosen)
    data["compile_seconds"] = time.perf_counter() - start
    print(f"compiled in {data['compile_seconds']:.0f} s", flush=True)
    for problem in chosen:
        data["problems"][problem] = grade_one(problem)
        print(problem, json.dumps(data["problems"][problem]["failures"]), f"{data['problems'][problem]['seconds']:.0f} s", flush=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(data, indent=1) + "\n")
    show(HEADS, rows(data))


if __name__ == "__main__":
    main()
