"""Count the gradings a minute of a class with more and more processes at once, or with one GPU and with all.

    python benchmarks/timing/scaling.py [--at-once 1,2,4,8,16] [--gpus] [--each N] [--json] [--readme]

With N at once there are N times as many submissions as with one; all differ, and must pass. They have N processors, as
one grading alone would use several. The first run is repeated at the end; the others are compared with the mean of
these two. With --gpus submissions are timed, on one GPU and on as many as there are, with all processors: the same
kernels' times are compared, too. One submission to each problem is graded before. --json keeps the figures in
data/scaling.json, under "processes" or "gpus"; --readme writes their table into benchmarks/README.md. The exit status
is 1 if a submission does not pass.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import click
import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER
from benchmarks.publish.tables import describe_source, make_table_with_source, show_table, write_section
from benchmarks.timing.throughput import PROBLEMS, time_class
from grader.classroom.journal import Journal
from grader.verdict import StageName, Verdict
from grader.worker.sandbox import list_gpus

DATA = DATA_FOLDER / "scaling.json"
HEADS = ["at once", "gradings", "seconds", "a minute", "times the first", "of what is expected"]


def read_times(folder: Path) -> dict[str, list[float]]:
    """Return the milliseconds that a class's submissions were measured to take, by problem."""
    with Journal(folder) as journal:
        verdicts = [msgspec.json.decode(text, type=Verdict) for (text,) in journal.read("SELECT verdict FROM verdicts")]
    times = defaultdict(list)
    for verdict in verdicts:
        if (timed := verdict.stage(StageName.fast).find_time()) is not None:
            times[verdict.problem].append(timed.value)
    return times


def compare_times(runs: list[dict]) -> dict[str, float]:
    """Return for each problem the median time where most GPUs were used, divided by that where fewest were."""
    fewest, most = (find(run["at_once"] for run in runs) for find in (min, max))

    def median(problem: str, at_once: int) -> float:
        return statistics.median(
            time for run in runs if run["at_once"] == at_once for time in run["times"].get(problem, [])
        )

    problems = sorted(set.intersection(*(set(run["times"]) for run in runs)))
    return {problem: round(median(problem, most) / median(problem, fewest), 4) for problem in problems}


def make_rows(runs: list[dict]) -> list[list[str]]:
    one = statistics.mean(60 * run["gradings"] / run["seconds"] for run in runs if run["at_once"] == runs[0]["at_once"])
    rows = []
    for run in runs:
        rate, wanted = 60 * run["gradings"] / run["seconds"], run["at_once"] / runs[0]["at_once"]
        figures = [f"{run['seconds']:.1f}", f"{rate:.1f}", f"{rate / one:.2f}", f"{rate / one / wanted:.0%}"]
        rows.append([str(run["at_once"]), str(run["gradings"]), *figures])
    return rows


def measure(at_once: list[int], each: int, gpus: list[str], top: Path) -> list[dict]:
    """Time a class with so many gradings at once, for each of these numbers; `each`: submissions for one process."""
    device, processors = "cuda" if gpus else "cpu", sorted(os.sched_getaffinity(0))

    def run(number: int, copies: int) -> dict:
        folder = Path(tempfile.mkdtemp(dir=top))
        environment = {"CUDA_VISIBLE_DEVICES": ",".join(gpus[:number])} if gpus else {}
        os.sched_setaffinity(0, processors if gpus else processors[:number])  # what is started inherits it
        gradings, passed, seconds = time_class(folder, number, copies, environment, device)
        times = {"times": read_times(folder)} if gpus else {}
        return {"at_once": number, "gradings": gradings, "passed": passed, "seconds": seconds} | times

    run(max(at_once), 1)
    runs = []
    for number in [*at_once, at_once[0]]:
        runs.append(run(number, number * each // len(PROBLEMS)))
        click.echo(json.dumps(runs[-1]))
    os.sched_setaffinity(0, processors)
    return runs


@click.command(help=__doc__)
@click.option(
    "--at-once", "listed", help="How many gradings at once. Without it, 1, 2, 4, … to the processors or GPUs."
)
@click.option("--gpus", "on_gpus", is_flag=True, help="Time submissions on GPUs, one grading at a time on each.")
@click.option("--each", default=10, show_default=True, help="Submissions for each process; a multiple of 5.")
@click.option("--json", "keep", is_flag=True, help="Keep the figures in data/scaling.json.")
@click.option("--readme", is_flag=True, help="Write their table into benchmarks/README.md.")
def main(listed: str | None, on_gpus: bool, each: int, keep: bool, readme: bool) -> None:
    gpus = list_gpus() if on_gpus else []
    if on_gpus and len(gpus) < 2:
        raise click.UsageError(f"--gpus needs two GPUs; this machine has {len(gpus)}.")
    if each < 1 or each % len(PROBLEMS):
        raise click.UsageError(f"--each {each} is no multiple of {len(PROBLEMS)}, the number of problems.")
    most = len(gpus) or len(os.sched_getaffinity(0))
    try:
        at_once = [int(word) for word in listed.split(",")] if listed else []
    except ValueError:
        raise click.UsageError(f"--at-once {listed} is no list of numbers. Write it as 1,2,4.") from None
    at_once = at_once or sorted({*(1 << power for power in range(most.bit_length()) if 1 << power <= most), most})
    if not all(1 <= number <= most for number in at_once):
        raise click.UsageError(f"--at-once {listed}: this machine takes 1 to {most} at once.")
    name = "gpus" if gpus else "processes"
    with tempfile.TemporaryDirectory(prefix="scaling-") as top:
        runs = measure(at_once, each, gpus, Path(top))
    found = {"machine": describe_machine(), "runs": runs}
    show_table(HEADS, make_rows(runs))
    if gpus:
        found["times"] = compare_times(runs)
        click.echo(f"times on {max(at_once)} GPUs, divided by those on {min(at_once)}: {found['times']}")
    if keep:
        kept = json.loads(DATA.read_text(encoding="utf-8")) if DATA.is_file() else {}
        DATA.write_text(json.dumps(kept | {name: found}, indent=1) + "\n", encoding="utf-8")
    if readme:
        source = describe_source(found["machine"], f"timing/scaling.py{' --gpus' if gpus else ''} --json --readme")
        write_section(f"scaling_{name}", make_table_with_source(HEADS, make_rows(runs), source))
    sys.exit(any(run["passed"] != run["gradings"] for run in runs))


if __name__ == "__main__":
    main()
