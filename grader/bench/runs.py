"""Run `grader bench`: measure the chosen problems one after another, each in child processes, into the data file."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import importlib.metadata
import json
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from grader.bench import part, sizes
from grader.bench.children import Measured, build_extensions, measure
from grader.bench.ncu import profile_launches
from grader.bench.order import Order
from grader.bench.rows import OURS, find_backwards, make_entries
from grader.bench.work import Work
from grader.judging import clock
from grader.judging.timing.clocks import Clocks
from grader.paths import KERNELS_REF, ROOT
from grader.problems import problem as _problem
from grader.worker.turns import take_gpu

DATA = ROOT / "benchmarks" / "data" / "bench.json"
# The problems that are timed if none is named.
SEEDS = ("groupnorm", "conv_groupnorm_logsumexp", "conv_groupnorm_maxpool", "conv_sigmoid_groupnorm")
SECONDS = {"forward": 60.0, "backward": 60.0, "sweep": sizes.SWEEP_SECONDS}  # per problem, by default

Chosen = list[tuple[_problem.Problem, list[Path]]]


@dataclasses.dataclass
class Options:
    """The options of `grader bench`.

    chosen: each problem and its submissions. omitted: kinds of rows to leave out (rows.SPARED). launches: whether ncu
    profiles them. add: whether other problems and other tasks in the data file stay. task: "forward", "backward" or
    "sweep".
    """

    chosen: Chosen
    sets: dict[str, str] = dataclasses.field(default_factory=dict)
    out: Path = DATA
    omitted: Sequence[str] = ()
    seconds: float = 60.0
    device: str = "cuda"
    seed: int = 0
    launches: bool = True
    add: bool = False
    task: str = "forward"


def choose(what: Sequence[str], problem: Path | None, sets: dict[str, str], task: str = "forward") -> Chosen:
    """Return each problem that is named, or that a submission answers, with its submissions; SEEDS if nothing is named.

    Raises ProblemError.
    """
    known, found = _problem.names(), {}

    def add_problem(path: Path) -> list[Path]:
        return found.setdefault(path.resolve(), [])

    if problem is not None:
        add_problem(problem)
    for word in what or ([] if problem is not None else SEEDS):
        if word in known:
            add_problem(KERNELS_REF / word / "model.py")
        elif not Path(word).is_file():
            raise _problem.ProblemError(f"{word} is neither a problem ({', '.join(known)}) nor a file.")
        else:
            add_problem(problem or _problem.find(Path(word)).path).append(Path(word))
    chosen = [(_problem.read(path, sets), files) for path, files in found.items()]
    for made, files in chosen:
        if task == "sweep":
            sizes.find_axes(made)
        if task == "backward" and not files and not find_backwards(made.path.parent):
            raise _problem.ProblemError(
                f"{made.name} has no backward.py, and no submission is named that has a backward."
            )
    return chosen


def incomplete(data: dict) -> bool:
    """Return whether a row of ours has no time."""
    return any("ms" not in row for made in data["problems"].values() for row in _list_rows(made) if row["kind"] in OURS)


def _list_rows(made: dict) -> list[dict]:
    """Return all rows of a problem's part: of forward, of forward and backward, or of a sweep's sizes."""
    swept = made.get("sizes")
    of_sizes = [row for size in swept for row in size.get("rows", [])] if isinstance(swept, list) else []
    return [*made.get("rows", []), *made.get("backward", {}).get("rows", []), *of_sizes]


class NoBenchData(Exception):
    """Raised where the file to add to is no data file of `grader bench`."""


def run(options: Options, notify: Callable[[str], None]) -> dict:
    """Measure the chosen problems, write the data file after each, and return the data.

    After an interruption (Ctrl-C) the file holds what was measured, and "interrupted" is true. Raises NoBenchData and
    OSError.
    """
    start = time.perf_counter()
    data: dict = {
        "machine": describe_machine(),
        "command": " ".join(sys.argv[1:]),
        "interrupted": False,
        "problems": {},
    }
    if options.add and options.out.exists():
        data["problems"] = _read_kept(options)
    with Clocks() as clocks:
        try:
            if options.device == "cuda":
                build_extensions(_list_sources(options), notify)
            for problem, submissions in options.chosen:
                with take_gpu(notify) if options.device == "cuda" else contextlib.nullcontext():
                    _measure_problem(problem, submissions, options, data, clocks, notify)
        except KeyboardInterrupt:
            data["interrupted"] = True
        data["seconds"] = round(time.perf_counter() - start, 1)
        clocks.read()
        data["clocks"] = clocks.log
        write_data(data, options.out)
    return data


def _read_kept(options: Options) -> dict:
    """Return the problems that the data file already has, each with its own run's command."""
    try:
        before = json.loads(options.out.read_text(encoding="utf-8"))
        problems = dict(before["problems"])
        swept = [isinstance(made.get("sizes"), list) for made in problems.values()]
        if any(is_sweep != (options.task == "sweep") for is_sweep in swept):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        what = "sweep" if options.task == "sweep" else "times"
        raise NoBenchData(f"{options.out} is no data file of grader bench with {what}.") from None
    stamp = {key: before[key] for key in ("command", "interrupted") if key in before}
    return {name: made if "command" in made else made | stamp for name, made in problems.items()}


def _list_sources(options: Options) -> list[str]:
    """Return all files whose kernels must be compiled."""
    files: set[Path] = set()
    for problem, submissions in options.chosen:
        if options.task == "sweep":
            files.update(sizes.list_files(problem, _make_order(problem, submissions, options)))
        else:
            work, backward = Work(0, 0, 0, False), options.task == "backward"
            entries = make_entries(problem, submissions, [*options.omitted, "anchor"], work, backward)
            files.update(Path(entry.file) for entry in entries if entry.file)
    return sorted({str(f.resolve()) for f in files})


def _make_order(problem: _problem.Problem, submissions: list[Path], options: Options) -> Order:
    return Order(
        str(problem.path.resolve()), options.sets, options.device, [str(f.resolve()) for f in submissions],
        list(options.omitted), options.seconds, options.seed, task=options.task,
    )  # fmt: skip


def _measure_problem(
    problem: _problem.Problem, submissions: list[Path], options: Options, data: dict, clocks: Clocks, notify: Callable
) -> None:
    """Measure one problem, put its part into the data, and write the data file, also after an interruption."""
    order, start = _make_order(problem, submissions, options), time.perf_counter()
    clocks.read()
    found, before = Measured(), len(clocks.log)
    failed, interrupted = None, False
    try:
        measure(order, found, notify, clocks.read)
    except RuntimeError as error:
        failed = str(error)
    except KeyboardInterrupt:
        interrupted = True
        raise
    finally:  # also when interrupted
        clocks.read()
        make = part.make_sweep_part if options.task == "sweep" else part.make_part
        made = make(problem, order, found)
        made |= {"machine": data["machine"], "clocks": clocks.summarize(before), "command": data["command"]}
        made |= {"seconds": round(time.perf_counter() - start, 1)}
        made |= ({"failed": failed} if failed else {}) | ({"interrupted": True} if interrupted else {})
        _put_part(data["problems"], problem.name, options.task, made)
        write_data(data, options.out)
    if options.task == "forward" and options.device == "cuda" and options.launches and not failed:
        notify(f"{problem.name}: launches, under ncu")
        made["launches"] = {"failed": "it was interrupted"}
        made["launches"] = profile_launches(order, made)
        write_data(data, options.out)


def _put_part(problems: dict, name: str, task: str, made: dict) -> None:
    """Put a problem's part into the data and keep the part of the other task."""
    if task == "backward":
        problems.setdefault(name, {"rows": []})["backward"] = made
        return
    kept = problems.get(name, {}).get("backward") if task == "forward" else None
    if kept is not None:
        made["backward"] = kept
    problems[name] = made


def describe_machine() -> dict:
    """Return the date, the device and the versions of a run."""
    versions = {}
    for package in ("triton", "numpy"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    if torch.cuda.is_available():
        versions["cudnn"] = str(torch.backends.cudnn.version())
    stamp = {"date": datetime.date.today().isoformat(), "python": platform.python_version()}
    return stamp | clock.describe_device() | versions


def write_data(data: dict, out: Path) -> None:
    """Write the data file in one step, so that no reader finds a partial file."""
    out.parent.mkdir(parents=True, exist_ok=True)
    new = out.with_name(out.name + ".new")
    new.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    new.replace(out)
