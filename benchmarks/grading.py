"""How long the grader takes for each reference solution, with all of simt's checks on, from the file to the verdict.

    python benchmarks/grading.py [NAME …] [--json] [--readme]

Each is graded with the kernels' builds thrown away, as a file is that nobody has graded before; what simt builds of itself, once
a machine, stays. --json keeps the figures in benchmarks/data/grading.json, --readme puts that file's table into the README.
Exit status 1 if a solution does not pass or takes longer than 60 seconds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from machine import machine  # noqa: E402
from tables import markdown, put_into_readme, show, source  # noqa: E402
from simt.cache import cache_dir  # noqa: E402

DATA = ROOT / "benchmarks" / "data" / "grading.json"
LIMIT = 60.0
OF_A_KERNEL = ("extension", "object")  # folders of simt's cache that hold what is built of a submission
HEADS = ["reference solution", "verdict", "seconds"]


def grade(file: Path, cache: Path) -> dict:
    """The outcome, and seconds of wall time."""
    for name in OF_A_KERNEL:
        shutil.rmtree(cache / name, ignore_errors=True)
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        started = time.perf_counter()
        command = ["grader", "grade", str(file), "--problem", str(file.with_name("model.py")), "--json", out.name]
        subprocess.run(command, env=os.environ | {"SIMT_CACHE": str(cache)}, stdout=subprocess.DEVNULL, check=False)
        seconds = time.perf_counter() - started
        return {"outcome": json.loads(Path(out.name).read_text())["outcome"], "seconds": round(seconds, 1)}


def rows(data: dict) -> list[list[str]]:
    return [[name, row["outcome"], f"{row['seconds']:.1f}"] for name, row in data["solutions"].items()]


@click.command(help=__doc__.split("\n")[0])
@click.argument("names", nargs=-1)
@click.option("--json", "keep", is_flag=True, help="Keep the figures in benchmarks/data/grading.json.")
@click.option("--readme", is_flag=True, help="Put the data file's table into the README; alone, nothing is measured.")
def main(names: tuple[str, ...], keep: bool, readme: bool) -> None:
    failed = False
    if keep or not readme:
        with tempfile.TemporaryDirectory(prefix="grading-") as folder:
            cache = Path(folder) / "simt"
            shutil.copytree(cache_dir(), cache, symlinks=True, ignore=shutil.ignore_patterns(*OF_A_KERNEL))
            files = [f for f in sorted(ROOT.glob("kernels_ref/*/solution.py")) if not names or f.parent.name in names]
            found = {}
            for file in files:
                found[file.parent.name] = grade(file, cache)
                print(f"{file.parent.name}: {found[file.parent.name]}", flush=True)
        data = {"machine": machine(), "solutions": found}
        show(HEADS, rows(data))
        failed = any(row["outcome"] != "passed" or row["seconds"] > LIMIT for row in found.values())
        if keep:
            DATA.write_text(json.dumps(data, indent=1) + "\n")
    if readme:
        data = json.loads(DATA.read_text())
        put_into_readme("grading", markdown(HEADS, rows(data), source(data["machine"], "grading.py --json --readme")))
    sys.exit(failed)


if __name__ == "__main__":
    main()
