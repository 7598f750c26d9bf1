"""Measure a problem's rows at growing sizes, in the child process.

At each size the rows run in interleaved rounds, as in any run of `grader bench`. torch.compile compiles for each size
separately: code that it compiles once for all batches keeps the shape of the reductions of the first batch, which is
unfair at small sizes. As compiling takes seconds each time, torch.compile has a row at some of the batches only.
"""

from __future__ import annotations

import dataclasses
import time

from grader.bench.interleaved import describe_error, free_memory, prepare_forward, time_interleaved
from grader.bench.order import Order, Report
from grader.bench.sizes import Size, find_axes, list_sizes, make_entries_at, resize
from grader.bench.work import Work, count_work, estimate_memory, read_device_memory
from grader.problems import problem as _problem

MEMORY_SHARE = 0.8  # of the device that eager's tensors may take; the rest is for libraries' temporaries
ROUNDS_SECONDS = 2.0  # at most, per size


def measure_sizes(order: Order, report: Report) -> None:
    """Measure one problem at every size. Report for each size its rows, or why it is skipped."""
    problem, deadline = order.read_problem(), time.monotonic() + order.seconds
    axes, work, memory = find_axes(problem), count_work(problem), read_device_memory(order.device)
    report({"work": dataclasses.asdict(work), "roof": {}})
    for size in list_sizes(axes.own):
        if size.key in order.done:
            continue
        resized = resize(problem, axes.make_overrides(size))
        if time.monotonic() > deadline:
            report({"size": size.key, "skipped": "the time was up"})
        elif reason := _exceeds_memory(resized, memory):
            report({"size": size.key, "skipped": reason})
        else:
            _measure_size(order, size, axes.own, resized, work, report)
            free_memory(order)


def _exceeds_memory(problem: _problem.Problem, memory: int) -> str:
    """Return why the problem does not fit into the device's memory, or "" if it does or if that is not known."""
    try:
        need = estimate_memory(problem)
    except _problem.ProblemError:  # not every Model runs on the meta device: then only a run shows it
        return ""
    if need <= MEMORY_SHARE * memory:
        return ""
    return f"eager makes up to {need / 1e9:,.0f} GB of tensors, and the device has {memory / 1e9:,.0f} GB"


def _measure_size(order: Order, size: Size, own: Size, problem: _problem.Problem, work: Work, report: Report) -> None:
    """Measure all rows at one size; report it as skipped where the memory runs out."""
    try:
        instance = problem.instantiate(problem.full(), order.seed, order.device)
        rows = make_entries_at(size, own, order, problem, work)
        prepare = prepare_forward(order, problem, instance)
        time_interleaved(order, rows, prepare, report, f"{size.key}: ", ROUNDS_SECONDS)
        report({"size": size.key})
    except (RuntimeError, MemoryError) as error:
        if "out of memory" not in str(error).lower() and not isinstance(error, MemoryError):
            raise
        report({"size": size.key, "skipped": describe_error(error)})
