"""Time the grader on each reference solution, with all of simt's checks, from the file to the verdict.

    python benchmarks/timing/grading.py [NAME …] [--json] [--readme]

The builds of the kernels are deleted before each, so that it is graded as a new file; simt's one-time builds stay.
--json keeps the figures in data/grading.json, --readme writes that file's table into benchmarks/README.md. The exit
status is 1 if a solution does not pass or takes longer than 60 seconds.
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

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT
from benchmarks.publish.tables import describe_source, make_table_with_source, show_table, write_section
from simt.toolchain.cache import cache_dir

DATA = DATA_FOLDER / "grading.json"
BOUND_S = 60.0
KERNEL_FOLDERS = ("extension", "object")  # of simt's cache, with the builds of submissions
HEADS = ["reference solution", "verdict", "seconds"]


def grade(file: Path, cache: Path) -> dict:
    """Grade a file. Return the outcome and the seconds of wall time."""
    for name in KERNEL_FOLDERS:
        shutil.rmtree(cache / name, ignore_errors=True)
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        started = time.perf_counter()
        command = ["grader", "grade", str(file), "--problem", str(file.with_name("model.py")), "--json", out.name]
        subprocess.run(command, env=os.environ | {"SIMT_CACHE": str(cache)}, stdout=subprocess.DEVNULL, check=False)
        seconds = time.perf_counter() - started
        return {"outcome": json.loads(Path(out.name).read_text())["outcome"], "seconds": round(seconds, 1)}


def make_rows(data: dict) -> list[list[str]]:
    """Return cells under HEADS."""
    return [[name, row["outcome"], f"{row['seconds']:.1f}"] for name, row in data["solutions"].items()]


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--json", "keep", is_flag=True, help="Keep the figures in data/grading.json.")
@click.option(
    "--readme", is_flag=True, help="Write the data file's table into benchmarks/README.md; alone, measure nothing."
)
def main(names: tuple[str, ...], keep: bool, readme: bool) -> None:
    failed = False
    if keep or not readme:
        with tempfile.TemporaryDirectory(prefix="grading-") as folder:
            cache = Path(folder) / "simt"
            shutil.copytree(cache_dir(), cache, symlinks=True, ignore=shutil.ignore_patterns(*KERNEL_FOLDERS))
            files = [f for f in sorted(ROOT.glob("kernels_ref/*/solution.py")) if not names or f.parent.name in names]
            found = {}
            for file in files:
                found[file.parent.name] = grade(file, cache)
                print(f"{file.parent.name}: {found[file.parent.name]}", flush=True)
        data = {"machine": describe_machine(), "solutions": found}
        show_table(HEADS, make_rows(data))
        failed = any(row["outcome"] != "passed" or row["seconds"] > BOUND_S for row in found.values())
        if keep:
            DATA.write_text(json.dumps(data, indent=1) + "\n")
    if readme:
        data = json.loads(DATA.read_text())
        write_section(
            "grading",
            make_table_with_source(
                HEADS, make_rows(data), describe_source(data["machine"], "timing/grading.py --json --readme")
            ),
        )
    sys.exit(failed)


if __name__ == "__main__":
    main()
