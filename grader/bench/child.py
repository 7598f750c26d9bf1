"""Run a child's task: measure one problem in a process of its own and report each result as a line of JSON."""

from __future__ import annotations

import dataclasses

from grader.bench import sweep
from grader.bench.interleaved import prepare_backward, prepare_forward, time_interleaved
from grader.bench.order import Order, Report
from grader.bench.work import count_work, measure_roof


def run_task(order: Order, report: Report) -> None:
    """Measure one problem as the order says. Report its work, the roof, each row's error or failure, each round's
    seconds.
    """
    if order.task == "sweep":
        sweep.measure_sizes(order, report)
    else:
        measure_problem(order, report)


def measure_problem(order: Order, report: Report) -> None:
    """Measure forward, or forward and backward, at the problem's own size."""
    backward = order.task == "backward"
    problem = order.read_problem()
    work = count_work(problem, backward)
    if not order.profile:
        report({"work": dataclasses.asdict(work), "roof": measure_roof() if order.device == "cuda" else {}})
    instance = problem.instantiate(problem.full(), order.seed, order.device)
    prepare = (prepare_backward if backward else prepare_forward)(order, problem, instance)
    time_interleaved(order, order.make_entries(work), prepare, report)
