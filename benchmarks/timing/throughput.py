"""Count how many distinct right submissions a minute are graded, by `grader class grade` and by `grader grade`.

    python benchmarks/timing/throughput.py [--copies N] [--json] [--readme]

Each run gets new submissions, so none of their builds is in a cache. "cold" is a run whose simt cache is empty at the
start; before the others one submission to each problem is graded. --json keeps the figures in data/throughput.json,
--readme writes that file's table into benchmarks/README.md. The exit status is 1 if a submission does not pass.
"""

from __future__ import annotations

import json
import os
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
from benchmarks.timing.distinct import make_attempts
from grader.classroom.journal import Journal
from simt.toolchain.compilers import find_linker
from tests.grader.classroom.class_folder import make_class

DATA = DATA_FOLDER / "throughput.json"
PROBLEMS = ["conv2d", "groupnorm", "bias_scale_sigmoid", "logsumexp", "matmul"]
HEADS = ["command", "simt's cache", "gradings", "seconds", "a minute", "load before"]
GRADER = [sys.executable, "-m", "grader"]


def time_class(
    folder: Path, jobs: int, copies: int, environment: dict[str, str], device: str = "cpu"
) -> tuple[int, int, float]:
    """Return how many were graded by a class's command, how many passed, and the seconds."""
    with make_class(folder, make_attempts(PROBLEMS, copies), problems=PROBLEMS):
        pass
    words = ["class", "grade", "--course", str(folder), "--device", device, "--allow-unsandboxed", "--jobs", str(jobs)]
    seconds = time_run([*GRADER, *words], environment)
    with Journal(folder) as journal:
        outcomes = [outcome for (outcome,) in journal.read("SELECT outcome FROM verdicts")]
    return len(outcomes), outcomes.count("passed"), seconds


def time_files(folder: Path, copies: int, environment: dict[str, str]) -> tuple[int, int, float]:
    """Return the same of `grader grade`, which grades one file after another."""
    for attempt in make_attempts(PROBLEMS, copies):
        (folder / attempt.path).write_bytes(attempt.data)
    verdicts = folder / "verdicts.json"
    words = ["grade", *map(str, sorted(folder.glob("*.py"))), "--device", "cpu", "--allow-unsandboxed"]
    seconds = time_run([*GRADER, *words, "--json", str(verdicts)], environment)
    outcomes = [json.loads(line)["outcome"] for line in verdicts.read_text(encoding="utf-8").splitlines()]
    return len(outcomes), outcomes.count("passed"), seconds


def time_run(command: list[str], environment: dict[str, str]) -> float:
    """Return the seconds of a command that grades. Raises ClickException with what it says if it does not."""
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begun
    if done.returncode not in (0, 1):  # 1: a submission does not pass
        raise click.ClickException(f"{' '.join(command[1:5])} … ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return seconds


def make_rows(data: dict) -> list[list[str]]:
    return [
        [
            run["command"],
            run["cache"],
            str(run["gradings"]),
            f"{run['seconds']:.1f}",
            f"{60 * run['gradings'] / run['seconds']:.1f}",
            f"{run['load_before']:.1f}",
        ]
        for run in data["runs"]
    ]


@click.command(help=__doc__)
@click.option("--copies", type=click.IntRange(1), default=6, show_default=True, help="Submissions to each problem.")
@click.option("--json", "keep", is_flag=True, help="Keep the figures in data/throughput.json.")
@click.option("--readme", is_flag=True, help="Write the table into benchmarks/README.md.")
def main(copies: int, keep: bool, readme: bool) -> None:
    processors = len(os.sched_getaffinity(0))
    runs = []
    with tempfile.TemporaryDirectory(prefix="throughput-") as top:

        def run(command: str, cache: str, time_it, *arguments) -> None:
            folder = Path(tempfile.mkdtemp(dir=top))
            environment = {"SIMT_CACHE": tempfile.mkdtemp(dir=top)} if cache == "cold" else {}
            load = os.getloadavg()[0]
            gradings, passed, seconds = time_it(folder, *arguments, environment)
            row = {"command": command, "cache": cache, "gradings": gradings, "passed": passed}
            runs.append(row | {"seconds": seconds, "load_before": load})
            click.echo(json.dumps(runs[-1]))

        time_class(Path(tempfile.mkdtemp(dir=top)), processors, 1, {})
        for jobs in (processors, processors + 1):
            run(f"grader class grade --jobs {jobs}", "warm", time_class, jobs, copies)
        run("grader grade", "warm", time_files, copies)
        run(f"grader class grade --jobs {processors}", "warm", time_class, processors, copies)
        run(f"grader class grade --jobs {processors}", "cold", time_class, processors, copies)
    data = {"machine": describe_machine(), "linker": "".join(find_linker()), "runs": runs}
    show_table(HEADS, make_rows(data))
    if keep:
        DATA.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if readme:
        kept = json.loads(DATA.read_text(encoding="utf-8"))
        source = describe_source(kept["machine"], "timing/throughput.py --json --readme")
        write_section("throughput", make_table_with_source(HEADS, make_rows(kept), source))
    sys.exit(any(one["passed"] != one["gradings"] for one in runs))


if __name__ == "__main__":
    main()
