"""Measure the fastest files on all GPUs of this machine in parallel, and merge the results into the data files.

    python benchmarks/timing/fastest_runs.py             builds, bench, tests, backward, sweeps and compute-sanitizer
    python benchmarks/timing/fastest_runs.py RUN …       only these; --list shows them
    python benchmarks/timing/fastest_runs.py --out DIR   write the data files there instead of into benchmarks/data

Each run has one GPU and its share of the cores. Builds run first and alone, as the host's time is measured; then the
longest. --minutes interrupts what still runs then, as Ctrl-C would: most runs keep what they have. --logs has the
output of each run, NAME.log. bench.json gets its forward rows from one run of `grader bench` and its backward rows from
one run per model, as does sweep.json. Afterwards `benchmarks/publish/fastest.py --count --write` writes the pages. The
exit status is 1 if a run failed or was interrupted.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.paths import BENCHMARKS, DATA_FOLDER, ROOT
from grader.bench import SEEDS
from grader.bench.runs import write_data

DATA = DATA_FOLDER
LOGS = ROOT / "reports" / "fastest_runs"
GRADER = (sys.executable, "-m", "grader")
WAIT = 60.0  # seconds that an interrupted run has to write what it knows
TESTS = "exact or view or same"  # of test_fastest.py's; builds quickly is what builds are for


@dataclasses.dataclass
class Run:
    """A program with a GPU. seconds: about what it takes on an H200. file: what it writes, a path that --out's folder
    precedes.
    """

    name: str
    command: tuple[str, ...]
    seconds: float
    file: str | None = None
    alone: bool = False


def runs(folder: Path) -> list[Run]:
    """Return all runs. folder: where each writes its data."""
    # Stays whole: it is a list of commands.
    script = [sys.executable, str(BENCHMARKS / "{}.py")]
    made = [
        Run(
            "builds",
            (script[0], script[1].format("timing/builds"), "--out", str(folder / "builds.json")),
            200,
            "builds.json",
            alone=True,
        ),
        Run(
            "bench",
            (
                *GRADER,
                "bench",
                *SEEDS,
                "--seconds",
                "6",
                "--out",
                str(folder / "bench.json"),
                "--pictures",
                str(folder / "bench"),
            ),
            430,
            "bench.json",
        ),
        Run(
            "tests",
            (
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-rfEs",
                "-m",
                "gpu",
                "-k",
                TESTS,
                "--runxfail",
                "tests/kernels_ref/test_fastest.py",
            ),
            250,
        ),
        Run(
            "sanitizer",
            (
                script[0],
                script[1].format("validate/sanitizer"),
                "--fastest",
                "--jobs",
                "8",
                "--out",
                str(folder / "sanitizer_fastest.json"),
            ),
            310,
            "sanitizer_fastest.json",
        ),
    ]
    for name in SEEDS:
        for task, seconds, rounds_s in (("backward", 150, "6"), ("sweep", 90, "150")):
            out = folder / f"{task}_{name}.json"
            command = (
                *GRADER,
                "bench",
                name,
                f"--{task}",
                "--seconds",
                rounds_s,
                "--out",
                str(out),
                "--pictures",
                str(folder / task),
            )
            made.append(Run(f"{task}:{name}", command, seconds, out.name))
    return made


@dataclasses.dataclass
class Under_way:
    run: Run
    gpu: int
    process: subprocess.Popen
    begun: float


def start(run: Run, gpu: int, cores: list[int], logs: Path) -> Under_way:
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]  # packages may be found by that alone
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": str(gpu), "PYTHONPATH": os.pathsep.join(paths)}
    with open(logs / f"{run.name.replace(':', '_')}.log", "wb") as log:
        process = subprocess.Popen(
            run.command,
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
    print(f"{run.name}: begun on GPU {gpu}", flush=True)
    return Under_way(run, gpu, process, time.monotonic())


def end(under_way: list[Under_way]) -> None:
    """As Ctrl-C would, and by force if that is not enough."""
    for one in under_way:
        if one.process.poll() is None:
            os.killpg(one.process.pid, signal.SIGINT)
    until = time.monotonic() + WAIT
    for one in under_way:
        try:
            one.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(one.process.pid, signal.SIGKILL)
            one.process.wait()


def carry_out(waiting: list[Run], gpus: list[int], logs: Path, until: float) -> dict[str, str]:
    """Name -> how it ended: "done" or what went wrong. Where somebody interrupts, all that run are ended and the rest
    is not begun.
    """
    cores = sorted(os.sched_getaffinity(0))
    share = max(1, len(cores) // len(gpus))
    waiting = sorted(waiting, key=lambda run: (not run.alone, -run.seconds))
    free, under_way, ended = list(gpus), [], {}

    def next_may_begin() -> bool:
        apart = any(one.run.alone for one in under_way) or (waiting and waiting[0].alone and under_way)
        return bool(waiting and free and not apart and time.monotonic() < until)

    early = ""
    try:
        while not early and (under_way or (waiting and time.monotonic() < until)):
            while next_may_begin():
                run, gpu = waiting.pop(0), free.pop(0)
                first = gpus.index(gpu) * share
                under_way.append(start(run, gpu, cores if run.alone else cores[first : first + share], logs))
            time.sleep(0.2)
            for one in [one for one in under_way if one.process.poll() is not None]:
                ended[one.run.name] = "done" if one.process.returncode == 0 else f"exit status {one.process.returncode}"
                print(f"{one.run.name}: {ended[one.run.name]}, {time.monotonic() - one.begun:.0f} s", flush=True)
                under_way.remove(one)
                free.append(one.gpu)
            if time.monotonic() >= until:
                early = "ended early, as the time was up"
    except KeyboardInterrupt:
        early = "interrupted"
    end(under_way)
    for one in under_way:
        ended[one.run.name] = early
    ended |= {run.name: "not begun" for run in waiting}
    for name in [one.run.name for one in under_way] + [run.name for run in waiting]:
        print(f"{name}: {ended[name]}", flush=True)
    return ended


def put_together(folder: Path, out: Path) -> list[Path]:
    """What the runs wrote -> the data files in `out`, where what was not measured now stays; those that changed."""
    found = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))}
    written = []

    def keep(name: str, data: dict) -> None:
        write_data(data, out / name)
        written.append(out / name)

    for name in ("builds", "sanitizer_fastest"):
        if name in found:
            keep(f"{name}.json", found[name])
    for target, task in (("bench", "backward"), ("sweep", "sweep")):
        parts = [data for stem, data in found.items() if stem.startswith(f"{task}_")]
        data = _under(out / f"{target}.json", found.get(target))
        for part in parts:
            data = data or {key: value for key, value in part.items() if key != "problems"} | {"problems": {}}
            for name, made in part["problems"].items():
                if task == "backward":
                    data["problems"].setdefault(name, {"rows": []})["backward"] = made["backward"]
                else:
                    data["problems"][name] = made
        if data and (parts or target in found):
            keep(f"{target}.json", data)
    return written


def _under(file: Path, new: dict | None) -> dict | None:
    """Return the new data with what only the file has: other problems, and backward rows."""
    if not file.exists():
        return new
    old = json.loads(file.read_text(encoding="utf-8"))
    if new is None:
        return old
    for name, made in old["problems"].items():
        if name not in new["problems"]:
            new["problems"][name] = made
        elif "backward" in made:
            new["problems"][name].setdefault("backward", made["backward"])
    return new


def gpus_there() -> list[int]:
    """Numbers of the GPUs that this process may use."""
    import torch

    count = torch.cuda.device_count()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    numbers = [int(word) for word in visible.split(",") if word.strip().isdigit()]
    return numbers[:count] if len(numbers) >= count else list(range(count))


@click.command(help=__doc__)
@click.argument("names", metavar="[RUN]...", nargs=-1)
@click.option("--list", "listed", is_flag=True, help="Only show the runs.")
@click.option(
    "--minutes", type=click.FloatRange(min=0), default=60.0, show_default=True, help="When what still runs is ended."
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=DATA, help="Where the data files go.")
@click.option(
    "--logs",
    type=click.Path(path_type=Path, file_okay=False),
    default=LOGS,
    help="Where each run's own data and what it printed go.",
)
def main(names: tuple[str, ...], listed: bool, minutes: float, out: Path, logs: Path) -> None:
    there = runs(logs)
    if listed:
        print("\n".join(f"{run.name}: {' '.join(run.command)}" for run in there))
        return
    if unknown := [name for name in names if name not in {run.name for run in there}]:
        raise click.UsageError(f"there is no run {unknown[0]}; there are {', '.join(run.name for run in there)}.")
    gpus = gpus_there()
    if not gpus:
        raise click.ClickException("this machine has no GPU, and all of it is measured on one.")
    logs.mkdir(parents=True, exist_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    for file in logs.glob("*.json"):
        file.unlink()
    ended = carry_out(
        [run for run in there if run.name in names or not names], gpus, logs, time.monotonic() + 60 * minutes
    )
    for file in put_together(logs, out):
        print(f"written: {file}")
    sys.exit(any(how != "done" for how in ended.values()))


if __name__ == "__main__":
    main()
