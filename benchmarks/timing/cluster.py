"""Time a class on a dask cluster of one, then of two worker processes of this machine.

    python benchmarks/timing/cluster.py [--copies N] [--json]

Each worker process and what it starts have one processor of their own, as two machines would have. Every submission
is distinct, and all must pass. --json keeps the figures in
data/cluster.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT
from benchmarks.publish.tables import show_table
from grader.classroom.collect import Attempt
from grader.classroom.journal import Journal
from tests.grader.classroom.class_folder import PROBLEMS, make_class
from tests.grader.classroom.dask_cluster import local_cluster

DATA = DATA_FOLDER / "cluster.json"


def time_class(folder: Path, workers: int, copies: int, processors: list[int]) -> tuple[float, int, int]:
    """Grade so many distinct right submissions to each problem; return seconds, verdicts, and how many passed.

    The workers' first gradings load torch and are not counted.
    """
    folder.mkdir()
    files = []
    for name in PROBLEMS:
        text = (ROOT / "kernels_ref" / name / "solution.py").read_text()
        for copy in range(copies):  # another kernel in each run, too: no build is found in the cache
            files.append(Attempt(f"{copy}", name, f"{name}{copy}.py", mark_kernel(text).encode(), None))
    with local_cluster(folder, 0) as cluster:
        for at in range(workers):
            cluster.add_worker(cpus={processors[at]})
        for part, chosen in (("warm", files[:workers]), ("timed", files[workers:])):
            course = folder / part
            course.mkdir()
            with make_class(course, chosen):
                pass
            words = ["class", "grade", "--course", str(course), "--device", "cpu", "--allow-unsandboxed"]
            begun = time.perf_counter()
            command = [sys.executable, "-m", "grader", *words, "--scheduler", cluster.address]
            subprocess.run(command, cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
            seconds = time.perf_counter() - begun
    with Journal(folder / "timed") as journal:
        outcomes = [outcome for (outcome,) in journal.read("SELECT outcome FROM verdicts")]
    return seconds, len(outcomes), outcomes.count("passed")


def mark_kernel(text: str) -> str:
    """Return a submission whose CUDA source differs from every other: a comment before its first kernel."""
    return text.replace("__global__", f"/* {time.time_ns()} */ __global__", 1)


@click.command(help=__doc__)
@click.option("--copies", type=click.IntRange(2), default=8, show_default=True, help="Submissions to each problem.")
@click.option("--json", "keep", is_flag=True, help="Keep the figures in data/cluster.json.")
def main(copies: int, keep: bool) -> None:
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) < 2:
        raise click.UsageError("This needs two processors.")
    rows: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="cluster-") as folder:
        for workers in (1, 2):
            seconds, gradings, passed = time_class(Path(folder) / str(workers), workers, copies, processors)
            rate = 60 * gradings / seconds
            rows[str(workers)] = {"seconds": round(seconds, 1), "per_minute": round(rate, 2)}
            rows[str(workers)] |= {"gradings": gradings, "passed": passed}
    ratio = rows["2"]["per_minute"] / rows["1"]["per_minute"]
    machine = describe_machine() | {name: version(name) for name in ("dask", "distributed")}
    cells = [[name, str(row["gradings"]), str(row["seconds"]), str(row["per_minute"])] for name, row in rows.items()]
    show_table(["workers", "gradings", "seconds", "a minute"], cells)
    print(f"two workers: {ratio:.2f} times one")
    if keep:
        load = os.getloadavg()[1]
        data = {"machine": machine, "load_5_min": round(load, 1), "workers": rows, "ratio": round(ratio, 3)}
        DATA.write_text(json.dumps(data, indent=1) + "\n")
    sys.exit(any(row["passed"] != row["gradings"] for row in rows.values()))


if __name__ == "__main__":
    main()
