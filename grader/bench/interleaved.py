"""Prepare a problem's rows in the child process, compare each with float64, and time them in interleaved rounds."""

from __future__ import annotations

import dataclasses
import functools
import gc
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from grader.bench import backward, models, times
from grader.bench.order import Order, Report
from grader.bench.rows import OURS, Entry
from grader.bench.work import allow_tf32
from grader.judging import clock
from grader.problems import problem as _problem

WARM_UPS = 3


@dataclasses.dataclass
class Job:
    """A row that can be timed.

    call: runs it once. measure_error: returns what is reported of the result of one call. drop: called before each
    call, outside of the timed part.
    """

    call: Callable[[], Any]
    measure_error: Callable[[Any], dict]
    drop: Callable[[], object] = lambda: None


def prepare_forward(order: Order, problem: _problem.Problem, instance: _problem.Instance) -> Callable[[Entry], Job]:
    """Return a function that makes a row's job of one forward."""
    inputs = models.Layouts(list(instance.inputs))
    expected = models.compute_expected(instance, inputs.plain)
    free_memory(order)

    def prepare(entry: Entry) -> Job:
        call = models.prepare_call(entry, problem, instance, inputs.choose(entry))
        return Job(call, lambda out: {"error": models.measure_error(out, expected)})

    return prepare


def prepare_backward(order: Order, problem: _problem.Problem, instance: _problem.Instance) -> Callable[[Entry], Job]:
    """Return a function that makes a row's job of one forward and backward."""
    inputs = models.Layouts(list(instance.inputs))
    upstream = models.Layouts(backward.make_upstream(problem, instance, order.seed))
    expected = backward.compute_expected(instance, inputs.plain, upstream.plain)
    free_memory(order)

    def prepare(entry: Entry) -> Job:
        both = backward.ForwardBackward(entry, problem, instance, inputs, upstream)
        return Job(both, lambda out: {"errors": backward.measure_errors(both, out, expected)}, both.drop)

    return prepare


def time_interleaved(
    order: Order,
    rows: Sequence[Entry],
    prepare: Callable[[Entry], Job],
    report: Report,
    prefix: str = "",
    seconds: float | None = None,
) -> None:
    """Prepare each row, measure its error, and time all rows that run in interleaved rounds.

    prefix: precedes the rows' names in reports, order.skip and order.profile. seconds: of the rounds; without it the
    order's.
    """
    time_one = times.EventTimer(clock.Flush().queue) if order.device == "cuda" else times.measure_wall_time
    ready: dict[str, Callable[[], float]] = {}
    for entry in rows:
        name = prefix + entry.name
        if name in order.skip or (order.profile and name not in order.profile):
            continue
        report({"trying": name})
        job = _prepare_row(order, entry, name, prepare, report)
        if job is None:
            free_memory(order)
        else:
            ready[name] = functools.partial(_time_row, entry, name, job, time_one, report)
    if ready:
        seconds = order.seconds if seconds is None else seconds
        times.run_rounds(ready, lambda found: report({"round": found}), seconds=seconds, seed=order.seed)


def _prepare_row(order: Order, entry: Entry, name: str, prepare: Callable[[Entry], Job], report: Report) -> Job | None:
    """Make the row's job, warm it up and report its error, or why it has none. Return None if it is not to be timed."""
    try:
        job = prepare(entry)
        for _ in range(WARM_UPS):
            job.drop()
            out = None  # two results at a time would not always fit
            out = job.call()
        clock.synchronize()
        if order.profile:
            _run_after_mark(job.call)
            return None
        report({"row": name, **job.measure_error(out)})
        job.drop()
        return job
    except backward.NoGradient as why:
        report({"row": name, "failed": str(why)} | ({"no_gradient": True} if entry.kind == "submission" else {}))
    except Exception as error:
        if order.device == "cuda" and not _is_gpu_usable():
            raise  # nothing more will run in this process: the next one leaves this row out
        report({"row": name, "failed": describe_error(error)})
    return None


def _time_row(entry: Entry, name: str, job: Job, time_one: Callable, report: Report) -> float:
    """Return the seconds of one call."""
    allow_tf32(entry.kind not in OURS and entry.precision == "tf32")
    report({"trying": name})
    job.drop()
    taken = time_one(job.call)
    job.drop()
    return taken


def free_memory(order: Order) -> None:
    """Return unused GPU memory to the device."""
    if order.device == "cuda":
        gc.collect()
        torch.cuda.empty_cache()


def describe_error(error: BaseException) -> str:
    """Return the exception's type and first line, or the line that a compiler marked as an error."""
    text = str(error).strip().splitlines() or [""]
    line = next((line for line in text if re.search(r"\berror( \w+)?: ", line)), text[0])
    return f"{type(error).__name__}: {line.strip()}"[:200].removesuffix(": ")


def _is_gpu_usable() -> bool:
    """Return whether this process can still use the GPU: after an illegal access in a kernel it cannot."""
    try:
        torch.zeros(1, device="cuda").item()
    except RuntimeError:
        return False
    return True


def _run_after_mark(call: Callable[[], object]) -> None:
    """Run a call once for ncu, after a kernel that does nothing and whose name separates the rows."""
    torch.cuda.profiler.start()
    torch.cuda._sleep(1)
    call()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()
