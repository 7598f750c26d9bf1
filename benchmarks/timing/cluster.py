"""Time a class on a dask cluster of one, then of two worker processes of this machine.

    python benchmarks/timing/cluster.py [--copies N] [--json]

The runs are one, two, two, one worker. If runs with as many workers disagree, or the ratio is over two, other programs
disturbed them. Each worker process and what it starts have one processor of their own, as two machines would have.
Every submission is distinct, and all must pass. --json keeps the figures in data/cluster.json.
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
from benchmarks.timing.distinct import make_attempts
from grader.classroom.journal import Journal
from tests.grader.classroom.class_folder import PROBLEMS, make_class
from tests.grader.classroom.dask_cluster import local_cluster

DATA = DATA_FOLDER / "cluster.json"
ORDER = (1, 2, 2, 1)  # workers of each run


def time_class(folder: Path, workers: int, copies: int, processors: list[int]) -> tuple[float, int, int]:
    """Grade so many distinct right submissions to each problem; return seconds, verdicts, and how many passed.

    The workers' first gradings load torch and are not counted.
    """
    folder.mkdir()
    timed = make_attempts(PROBLEMS, copies)
    warm = make_attempts(PROBLEMS[:1], workers)
    with local_cluster(folder, 0) as cluster:
        for at in range(workers):
            cluster.add_worker(cpus={processors[at]})
        for part, chosen in (("warm", warm), ("timed", timed)):
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


@click.command(help=__doc__)
@click.option("--copies", type=click.IntRange(2), default=8, show_default=True, help="Submissions to each problem.")
@click.option("--json", "keep", is_flag=True, help="Keep the figures in data/cluster.json.")
def main(copies: int, keep: bool) -> None:
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) < 2:
        raise click.UsageError("This needs two processors.")
    runs = []
    with tempfile.TemporaryDirectory(prefix="cluster-") as folder:
        for at, workers in enumerate(ORDER):
            seconds, gradings, passed = time_class(Path(folder) / str(at), workers, copies, processors)
            load = os.getloadavg()[0]
            runs.append(
                {"workers": workers, "seconds": seconds, "gradings": gradings, "passed": passed, "load_1_min": load}
            )
    one, two = (sum(run["seconds"] for run in runs if run["workers"] == workers) for workers in (1, 2))
    machine = describe_machine() | {name: version(name) for name in ("dask", "distributed")}
    heads = ["workers", "gradings", "seconds", "load"]
    show_table(
        heads,
        [[f"{r['workers']}", f"{r['gradings']}", f"{r['seconds']:.1f}", f"{r['load_1_min']:.1f}"] for r in runs],
    )
    print(f"two workers: {one / two:.2f} times one")
    if keep:
        data = {"machine": machine, "runs": runs, "ratio": round(one / two, 3)}
        DATA.write_text(json.dumps(data, indent=1) + "\n")
    sys.exit(any(run["passed"] != run["gradings"] for run in runs))


if __name__ == "__main__":
    main()
