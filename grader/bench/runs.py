"""A run of `grader bench`: which problems, one after another, each by children of its own, into the data file."""

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

from grader import clock
from grader import problem as _problem
from grader.bench import ncu, part, sweep
from grader.bench.child import Order
from grader.bench.children import ROOT, Measured, build, measure
from grader.bench.clocks import Clocks
from grader.bench.rows import OURS, backward_of, ladder_of

DATA = ROOT / "benchmarks" / "data" / "bench.json"
# Timed if none is named.
SEEDS = ("groupnorm", "conv_groupnorm_logsumexp", "conv_groupnorm_maxpool", "conv_sigmoid_groupnorm")
SECONDS = {"forward": 60.0, "backward": 60.0, "sweep": sweep.SECONDS}  # of a problem, if nothing is said

Chosen = list[tuple[_problem.Problem, list[Path]]]


@dataclasses.dataclass
class Options:
    """What `grader bench` was asked for. chosen: each problem and the submissions to it. add: what the data file has
    already of other problems and other tasks stays in it. task: one of child.TASKS."""

    chosen: Chosen
    sets: dict[str, str] = dataclasses.field(default_factory=dict)
    out: Path = DATA
    spared: Sequence[str] = ()
    seconds: float = 60.0
    device: str = "cuda"
    seed: int = 0
    launches: bool = True
    add: bool = False
    task: str = "forward"


def choose(what: Sequence[str], problem: Path | None, sets: dict[str, str], task: str = "forward") -> Chosen:
    """Each problem that is named, or that a submission answers, with its submissions; SEEDS if nothing is named. Raises
    ProblemError."""
    known, found = _problem.names(), {}

    def of(path: Path) -> list[Path]:
        return found.setdefault(path.resolve(), [])

    if problem is not None:
        of(problem)
    for word in what or ([] if problem is not None else SEEDS):
        if word in known:
            of(_problem.KERNELS_REF / word / "model.py")
        elif not Path(word).is_file():
            raise _problem.ProblemError(f"{word} is neither a problem ({', '.join(known)}) nor a file.")
        else:
            of(problem or _problem.find(Path(word)).path).append(Path(word))
    chosen = [(_problem.read(path, sets), files) for path, files in found.items()]
    for made, files in chosen:
        if task == "sweep":
            sweep.axes_of(made)
        if task == "backward" and not files and not backward_of(made.path.parent):
            raise _problem.ProblemError(f"{made.name} has no backward.py, and no submission is named that has a backward.")
    return chosen


def incomplete(data: dict) -> bool:
    """Whether a row of ours has no time."""
    return any("ms" not in row for made in data["problems"].values() for row in _every_row(made) if row["kind"] in OURS)


def _every_row(made: dict) -> list[dict]:
    """Of forward, of forward and backward, or of a sweep's sizes."""
    sizes = made.get("sizes")
    of_sizes = [row for size in sizes for row in size.get("rows", [])] if isinstance(sizes, list) else []
    return [*made.get("rows", []), *made.get("backward", {}).get("rows", []), *of_sizes]


class NoData(Exception):
    """What was to be added to is not what this module writes."""


def run(options: Options, say: Callable[[str], None]) -> dict:
    """Measure, and write the data file after each problem; the data. If somebody interrupts, what was measured is
    written and "interrupted" is true. Raises NoData, OSError."""
    start = time.perf_counter()
    data: dict = {"machine": machine(), "command": " ".join(sys.argv[1:]), "interrupted": False, "problems": {}}
    if options.add and options.out.exists():
        data["problems"] = _kept(options)
    with Clocks() as clocks:
        try:
            if options.device == "cuda":
                build(sorted({str(f.resolve()) for p, s in options.chosen for f in _files(p, s, options)}), say)
            for problem, submissions in options.chosen:
                _one(problem, submissions, options, data, clocks, say)
        except KeyboardInterrupt:
            data["interrupted"] = True
        data["seconds"] = round(time.perf_counter() - start, 1)
        clocks.read()
        data["clocks"] = clocks.log
        write(data, options.out)
    return data


def _kept(options: Options) -> dict:
    """The problems that the data file has; each says from which run it is."""
    try:
        before = json.loads(options.out.read_text(encoding="utf-8"))
        problems = dict(before["problems"])
        swept = [isinstance(made.get("sizes"), list) for made in problems.values()]
        if any(is_sweep != (options.task == "sweep") for is_sweep in swept):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        what = "sweep" if options.task == "sweep" else "times"
        raise NoData(f"{options.out} is no data file of grader bench with {what}.") from None
    stamp = {key: before[key] for key in ("command", "interrupted") if key in before}
    return {name: made if "command" in made else made | stamp for name, made in problems.items()}


def _files(problem: _problem.Problem, submissions: list[Path], options: Options) -> list[Path]:
    """What has kernels to be compiled."""
    if options.task == "sweep":
        return sweep.files_of(problem, _order(problem, submissions, options))
    ladder = (backward_of if options.task == "backward" else ladder_of)(problem.path.parent)
    return [*(f for _, f in ladder), *submissions]


def _order(problem: _problem.Problem, submissions: list[Path], options: Options) -> Order:
    return Order(
        str(problem.path.resolve()), options.sets, options.device, [str(f.resolve()) for f in submissions],
        list(options.spared), options.seconds, options.seed, task=options.task,
    )  # fmt: skip


def _one(problem: _problem.Problem, submissions: list[Path], options: Options, data: dict, clocks: Clocks, say) -> None:
    order, start = _order(problem, submissions, options), time.perf_counter()
    clocks.read()
    found, before = Measured(), len(clocks.log)
    failed, interrupted = None, False
    try:
        measure(order, found, say, clocks.read)
    except RuntimeError as error:
        failed = str(error)
    except KeyboardInterrupt:
        interrupted = True
        raise
    finally:  # also when interrupted
        clocks.read()
        made = (sweep if options.task == "sweep" else part).told(problem, order, found)
        made |= {"machine": data["machine"], "clocks": clocks.told(before), "command": data["command"]}
        made |= {"seconds": round(time.perf_counter() - start, 1)}
        made |= ({"failed": failed} if failed else {}) | ({"interrupted": True} if interrupted else {})
        _put(data["problems"], problem.name, options.task, made)
        write(data, options.out)
    if options.task == "forward" and options.device == "cuda" and options.launches and not failed:
        say(f"{problem.name}: launches, under ncu")
        made["launches"] = {"failed": "it was interrupted"}
        made["launches"] = ncu.launches(order, made)
        write(data, options.out)


def _put(problems: dict, name: str, task: str, made: dict) -> None:
    """Into the data, beside what the other task has left there."""
    if task == "backward":
        problems.setdefault(name, {"rows": []})["backward"] = made
        return
    kept = problems.get(name, {}).get("backward") if task == "forward" else None
    if kept is not None:
        made["backward"] = kept
    problems[name] = made


def machine() -> dict:
    """What the times were taken on, when, and with which versions."""
    versions = {}
    for package in ("triton", "numpy"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    if torch.cuda.is_available():
        versions["cudnn"] = str(torch.backends.cudnn.version())
    stamp = {"date": datetime.date.today().isoformat(), "python": platform.python_version()}
    return stamp | clock.describe_device() | versions


def write(data: dict, out: Path) -> None:
    """All at once, so that nobody finds half of it."""
    out.parent.mkdir(parents=True, exist_ok=True)
    new = out.with_name(out.name + ".new")
    new.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    new.replace(out)
