"""Time the grader on the submissions in tests/specimens/elsewhere, from the file to the verdict.

    python benchmarks/timing/elsewhere.py [NAME …] [--json]

The builds of the kernels are deleted before each, so that it is graded as a new file; simt's one-time builds stay, and
so does what was found out about its problem: the first submission for each problem is told apart. Next to the seconds
of wall time are those of all processors, which other work on the machine changes little, and those of each stage.
--json keeps the figures in data/elsewhere.json. The exit status is 1 if the median is above 4 seconds.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT
from benchmarks.publish.tables import show_table
from simt.toolchain.cache import cache_dir

DATA = DATA_FOLDER / "elsewhere.json"
FOLDER = ROOT / "tests" / "specimens" / "elsewhere"
MEDIAN_BOUND_S = 4.0
KERNEL_FOLDERS = ("extension", "object")  # of simt's cache, with the builds of submissions
STAGES = ("contract", "build", "correct", "safe", "gradient", "fast")
HEADS = ["submission", "outcome", "seconds", "of all processors", *STAGES]


def find_submissions() -> dict[str, Path]:
    """Return the submissions by name: files, and folders with a submission.py."""
    folders = {path.parent.name: path for path in FOLDER.glob("*/submission.py")}
    return dict(sorted(({path.stem: path for path in FOLDER.glob("*.py")} | folders).items()))


def find_problem(name: str) -> Path:
    """Return the problem whose name the submission's begins with."""
    return next(path for path in FOLDER.glob("problems/*.py") if name.startswith(path.stem))


def measure_processors() -> float:
    """Return the seconds that ended child processes have taken of all processors."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def grade(name: str, file: Path, cache: Path) -> dict:
    """Grade a file. Return its outcome, the seconds of wall time, of all processors and of each stage."""
    for folder in KERNEL_FOLDERS:
        shutil.rmtree(cache / folder, ignore_errors=True)
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = ["grader", "grade", str(file), "--problem", str(find_problem(name)), "--seed", "1"]
        used, started = measure_processors(), time.perf_counter()
        subprocess.run(
            [*command, "--json", out.name],
            env=os.environ | {"SIMT_CACHE": str(cache)},
            stdout=subprocess.DEVNULL,
            check=False,
        )
        seconds, used = time.perf_counter() - started, measure_processors() - used
        verdict = json.loads(Path(out.name).read_text())
    stages = {stage["name"]: round(stage.get("seconds", 0.0), 1) for stage in verdict["stages"]}
    return {"outcome": verdict["outcome"], "seconds": round(seconds, 1), "used": round(used, 1), "stages": stages}


def make_row(name: str, row: dict) -> list[str]:
    """Return cells under HEADS."""
    stages = [f"{row['stages'].get(stage, 0.0):.1f}" for stage in STAGES]
    return [name, row["outcome"], f"{row['seconds']:.1f}", f"{row['used']:.1f}", *stages]


def tell_first(names: list[str]) -> tuple[list[str], list[str]]:
    """Return the names of the first submission for each problem, and the others."""
    first = {find_problem(name): name for name in reversed(names)}
    return [name for name in names if name in first.values()], [name for name in names if name not in first.values()]


def find_median(rows: dict[str, dict], key: str) -> float:
    """Return the median of the rows' seconds."""
    return statistics.median(row[key] for row in rows.values())


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--json", "keep", is_flag=True, help="Keep the figures in data/elsewhere.json.")
def main(names: tuple[str, ...], keep: bool) -> None:
    load, found = os.getloadavg()[0], {}
    with tempfile.TemporaryDirectory(prefix="elsewhere-") as folder:
        cache = Path(folder) / "simt"
        shutil.copytree(cache_dir(), cache, symlinks=True, ignore=shutil.ignore_patterns(*KERNEL_FOLDERS, "problem"))
        for name, file in find_submissions().items():
            if not names or name in names:
                found[name] = grade(name, file, cache)
                print(f"{name}: {found[name]}", flush=True)
    if not found:
        raise click.UsageError(f"No submission in {FOLDER} has this name.")
    show_table(HEADS, [make_row(*one) for one in found.items()])
    worst = max(found, key=lambda name: found[name]["seconds"])
    median = find_median(found, "seconds")
    for words, part in zip(("first for their problem", "others"), tell_first(list(found))):
        if part:
            print(f"Median of the {len(part)} {words}: {find_median({n: found[n] for n in part}, 'seconds'):.1f} s.")
    print(f"Median {median:.1f} s, {find_median(found, 'used'):.1f} s of all processors, load before {load:.1f}.")
    print(f"Worst: {worst}, {found[worst]['seconds']:.1f} s.")
    if keep:
        DATA.write_text(
            json.dumps({"machine": describe_machine(), "load": load, "submissions": found}, indent=1) + "\n"
        )
    sys.exit(median > MEDIAN_BOUND_S)


if __name__ == "__main__":
    main()
