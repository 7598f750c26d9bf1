"""The child: measures one problem in a process of its own and says what it finds, a line of JSON each."""

from __future__ import annotations

import dataclasses
import functools
import gc
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from grader import clock
from grader import problem as _problem
from grader.bench import backward, models, times
from grader.bench.rows import OURS, Entry, entries
from grader.bench.work import Work, allow_tf32, roof_of, work_of

WARM_UPS = 3
TASKS = ("forward", "backward", "sweep")

Say = Callable[[dict], None]


@dataclasses.dataclass
class Order:
    """What a child is asked to do. task: one of TASKS. skip: rows that ended the one before. done: sizes of a sweep that
    it measured. profile: run these once each, for ncu."""

    problem: str
    sets: dict[str, str]
    device: str
    submissions: list[str]
    spared: list[str]
    seconds: float
    seed: int
    skip: list[str] = dataclasses.field(default_factory=list)
    profile: list[str] = dataclasses.field(default_factory=list)
    task: str = "forward"
    done: list[str] = dataclasses.field(default_factory=list)

    def command(self, descriptor: int) -> list[str]:
        """Which starts the child, whose lines come through the descriptor."""
        return [sys.executable, "-m", "grader.bench", str(descriptor), json.dumps(dataclasses.asdict(self))]

    def read(self) -> _problem.Problem:
        return _problem.read(Path(self.problem), self.sets)

    def files(self) -> list[Path]:
        return [Path(f) for f in self.submissions]

    def entries(self, work: Work) -> list[Entry]:
        return entries(self.read(), self.files(), self.spared, work, self.task == "backward")


@dataclasses.dataclass
class Job:
    """A row that can be timed. drop: called before each call, outside of the time. judge: what the child says of the
    result of one."""

    call: Callable[[], object]
    judge: Callable[[object], dict]
    drop: Callable[[], object] = lambda: None


def child(order: Order, say: Say) -> None:
    """Measure one problem and say what is found: work, roof, each row's error or failure, each round's seconds."""
    if order.task == "sweep":
        from grader.bench import sweep

        return sweep.child(order, say)
    problem = order.read()
    work = work_of(problem, order.task == "backward")
    if not order.profile:
        say({"work": dataclasses.asdict(work), "roof": roof_of() if order.device == "cuda" else {}})
    instance = problem.instantiate(problem.full(), order.seed, order.device)
    prepare = (both_ways if order.task == "backward" else forward)(order, problem, instance)
    in_turns(order, order.entries(work), prepare, say)


def forward(order: Order, problem: _problem.Problem, instance: _problem.Instance) -> Callable[[Entry], Job]:
    """Makes a row's job of one forward."""
    inputs = models.Layouts(list(instance.inputs))
    expected = models.expected_of(instance, inputs.plain)
    make_room(order)

    def prepare(entry: Entry) -> Job:
        call = models.prepared(entry, problem, instance, inputs.of(entry))
        return Job(call, lambda out: {"error": models.error_of(out, expected)})

    return prepare


def both_ways(order: Order, problem: _problem.Problem, instance: _problem.Instance) -> Callable[[Entry], Job]:
    """Makes a row's job of one forward and backward."""
    inputs = models.Layouts(list(instance.inputs))
    upstream = models.Layouts(backward.upstream_of(problem, instance, order.seed))
    expected = backward.expected_of(instance, inputs.plain, upstream.plain)
    make_room(order)

    def prepare(entry: Entry) -> Job:
        both = backward.Both(entry, problem, instance, inputs, upstream)
        return Job(both, lambda out: {"errors": backward.errors_of(both, out, expected)}, both.drop)

    return prepare


def in_turns(
    order: Order, rows: Sequence[Entry], prepare: Callable[[Entry], Job], say: Say, prefix: str = "", seconds: float | None = None
) -> None:
    """Prepare each row, hold it against float64, and time all that could be in turns. prefix: of the names that are said,
    which are those of order.skip and order.profile. seconds: of the rounds; else the order's."""
    time_one = times.Events(_eraser()) if order.device == "cuda" else times.wall
    ready: dict[str, Callable[[], float]] = {}
    for entry in rows:
        name = prefix + entry.name
        if name in order.skip or order.profile and name not in order.profile:
            continue
        say({"trying": name})
        try:
            job = prepare(entry)
            for _ in range(WARM_UPS):
                job.drop()
                out = None  # two results at a time would not always fit
                out = job.call()
            clock.synchronize()
            if order.profile:
                _between_marks(job.call)
                continue
            say({"row": name, **job.judge(out)})
            job.drop()
            ready[name] = functools.partial(_turn, entry, name, job, time_one, say)
        except backward.NoGradient as why:
            say({"row": name, "failed": str(why)} | ({"no_gradient": True} if entry.kind == "submission" else {}))
        except Exception as error:  # noqa: BLE001  (a baseline that fails is a row that says so)
            if order.device == "cuda" and not _usable():
                raise  # nothing more will run in this process: the next one leaves this row out
            say({"row": name, "failed": words_of(error)})
        job = out = None  # noqa: F841  (what a row that failed holds makes room)
        if name not in ready:
            make_room(order)
    if ready:
        seconds = order.seconds if seconds is None else seconds
        times.rounds(ready, lambda found: say({"round": found}), seconds=seconds, seed=order.seed)


def _turn(entry: Entry, name: str, job: Job, time_one, say: Say) -> float:
    allow_tf32(entry.kind not in OURS and entry.precision == "tf32")
    say({"trying": name})
    job.drop()
    taken = time_one(job.call)
    job.drop()
    return taken


def make_room(order: Order) -> None:
    """Give back the GPU's memory that nothing uses any more."""
    if order.device == "cuda":
        gc.collect()
        torch.cuda.empty_cache()


def words_of(error: BaseException) -> str:
    """Its kind and first line, or what a compiler called an error."""
    text = str(error).strip().splitlines() or [""]
    line = next((line for line in text if re.search(r"\berror( \w+)?: ", line)), text[0])
    return f"{type(error).__name__}: {line.strip()}"[:200].removesuffix(": ")


def _usable() -> bool:
    """Whether the GPU still answers this process: an illegal access in a kernel ends that."""
    try:
        torch.zeros(1, device="cuda").item()
    except RuntimeError:
        return False
    return True


def _eraser() -> Callable[[], object]:
    return clock.Flush().buffer.zero_


def _between_marks(call: Callable[[], object]) -> None:
    """One run for ncu, after a kernel that does nothing and by whose name rows are told apart."""
    torch.cuda.cudart().cudaProfilerStart()
    torch.cuda._sleep(1)
    call()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()
