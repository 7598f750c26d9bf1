"""Time a grading at each level of the sandbox that this machine has, beside one without a sandbox.

    python benchmarks/timing/sandbox.py [--rounds N] [--device cpu|cuda] [--unchanged] [--json] [--readme]

Each round grades one reference solution once per level, in random order, first with a kernel that is new and then once
more unchanged; the table has medians and their differences from level none. --unchanged leaves out the new kernels,
which nvcc takes half a minute for. --json keeps the figures under the device's
name in data/sandbox.json, --readme writes that file's tables into benchmarks/README.md. The exit status is 1 if a
grading does not pass, or if a level costs more than a second.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT
from benchmarks.publish.tables import describe_source, make_table, show_table, write_section

DATA = DATA_FOLDER / "sandbox.json"
SOLUTION = ROOT / "kernels_ref" / "groupnorm" / "solution.py"
LEVELS = ("none", "landlock", "bubblewrap")
KERNELS = ("new kernel", "same kernel")
BOUND_S = 1.0  # that a level may cost
_new = itertools.count(time.time_ns())


def write_new_submission(file: Path) -> None:
    """Write the solution with a kernel that no cache has: one more comment in its CUDA source."""
    source = SOLUTION.read_text(encoding="utf-8")
    assert source.count("__global__"), SOLUTION
    file.write_text(source.replace("__global__", f"/* {next(_new)} */ __global__", 1), encoding="utf-8")


def grade(file: Path, level: str, device: str) -> tuple[float, str, str]:
    """Grade a file at a level. Return the seconds of wall time, the outcome, and the sandbox that the verdict names."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [sys.executable, "-m", "grader", "grade", str(file), "--device", device, "--json", out.name]
        command += ["--problem", str(SOLUTION.with_name("model.py"))]
        started = time.perf_counter()
        environment = os.environ | {"GRADER_SANDBOX": level}
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - started
        text = Path(out.name).read_text(encoding="utf-8")
    if not text:
        return seconds, (done.stderr.strip().splitlines() or ["no message"])[-1], ""
    verdict = json.loads(text)
    return seconds, verdict["outcome"], verdict["sandbox"]


def measure(
    levels: list[str], kernels: Sequence[str], rounds: int, device: str, folder: Path
) -> dict[str, dict[str, list[float]]]:
    """Return the seconds of every round, by level and kernel. Raises ValueError if a grading does not pass."""
    found: dict[str, dict[str, list[float]]] = {level: {kernel: [] for kernel in kernels} for level in levels}
    for number in range(rounds + 1):  # the first round fills caches and is not counted
        for level in random.sample(levels, len(levels)):
            file = folder / level / "groupnorm.py"
            file.parent.mkdir(exist_ok=True)
            if "new kernel" in kernels or not number:
                write_new_submission(file)
            for kernel in kernels:
                seconds, outcome, sandbox = grade(file, level, device)
                if outcome != "passed" or not sandbox.lower().startswith(level):
                    raise ValueError(f"{level}: {outcome} (sandbox: {sandbox or 'not known'})")
                if number:
                    found[level][kernel].append(round(seconds, 3))
        print(f"round {number} of {rounds}", file=sys.stderr, flush=True)
    return found


def list_levels() -> list[str]:
    """Return the levels that this machine has."""
    program = "from grader.worker.levels import probe; print(probe().level)"
    found = []
    for level in LEVELS:
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"GRADER_SANDBOX": level},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        if done.stdout.strip() == level:
            found.append(level)
    return found


def make_heads(rounds: dict[str, dict[str, list[float]]]) -> list[str]:
    """Return the heads of the table."""
    return ["sandbox", *itertools.chain.from_iterable((f"{kernel}: s", "over none: s") for kernel in rounds["none"])]


def make_rows(rounds: dict[str, dict[str, list[float]]]) -> list[list[str]]:
    """Return cells under make_heads()."""
    medians = {level: {k: statistics.median(times) for k, times in each.items()} for level, each in rounds.items()}
    rows = []
    for level, each in medians.items():
        row = [level]
        for kernel in each:
            over = each[kernel] - medians["none"][kernel]
            row += [f"{each[kernel]:.2f}", "–" if level == "none" else f"{over:+.2f}"]
        rows.append(row)
    return rows


def describe_command(device: str, rounds: dict[str, dict[str, list[float]]]) -> str:
    """Return the command that measured these rounds."""
    kernels = rounds["none"]
    unchanged = "" if "new kernel" in kernels else " --unchanged"
    return f"timing/sandbox.py --device {device} --rounds {len(kernels['same kernel'])}{unchanged} --json --readme"


def is_cheap(rounds: dict[str, dict[str, list[float]]]) -> bool:
    """Return whether no level costs more than BOUND_S over none."""
    return all(
        statistics.median(times) - statistics.median(rounds["none"][kernel]) <= BOUND_S
        for each in rounds.values()
        for kernel, times in each.items()
    )


@click.command(help=__doc__)
@click.option("--rounds", default=7, show_default=True, type=click.IntRange(min=1))
@click.option("--device", default="cpu", show_default=True, type=click.Choice(["cpu", "cuda"]))
@click.option("--unchanged", is_flag=True, help="Grade the same kernel in every round.")
@click.option("--json", "keep", is_flag=True, help="Keep the figures in data/sandbox.json.")
@click.option(
    "--readme", is_flag=True, help="Write the data file's tables into benchmarks/README.md; alone, measure nothing."
)
def main(rounds: int, device: str, unchanged: bool, keep: bool, readme: bool) -> None:
    failed = False
    data = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    if keep or not readme:
        with tempfile.TemporaryDirectory(prefix="sandbox-") as folder:
            try:
                found = measure(list_levels(), KERNELS[unchanged:], rounds, device, Path(folder))
            except ValueError as error:
                sys.exit(f"A grading did not pass: {error}")
        show_table(make_heads(found), make_rows(found))
        failed = not is_cheap(found)
        data[device] = {"machine": describe_machine(), "rounds": found}
        if keep:
            DATA.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if readme:
        parts = [
            "\n".join(
                [
                    *make_table(make_heads(each["rounds"]), make_rows(each["rounds"])),
                    "",
                    describe_source(each["machine"], describe_command(name, each["rounds"])),
                ]
            )
            for name, each in sorted(data.items())
        ]
        write_section("sandbox", "\n\n".join(parts))
    sys.exit(failed)


if __name__ == "__main__":
    main()
