"""Grade what a class handed in and has no verdict yet, and keep each verdict before the next is waited for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Executor
from pathlib import Path

from grader.classroom.executor import carry_out, run_all
from grader.classroom.gradings import Grading, Verdicts
from grader.classroom.journal import Journal
from grader.judging.processes.judge import Order
from grader.judging.processes.judges import Result
from grader.verdict import Outcome, Verdict

OTHER_OPTIONS = "another --device or --timeout"  # why a verdict was made again
MOST_IN_A_ROW = 5  # gradings that fail one after another, from which on the machine is at fault


class MachineError(Exception):
    """The machine cannot grade; the text says why, in a sentence."""


@dataclasses.dataclass(frozen=True)
class Options:
    """How a class is graded; the fields are those of grading.grade().

    seconds: limit for one step of a submission. because: why all are graded again. send_model: whether an order
    contains the problem's file, because other machines may not have it. again: the keys of those that are graded again
    because their verdicts are for another device or time limit.
    """

    device: str | None = None
    require_sandbox: bool = True
    seconds: float = 20.0
    because: str = ""
    send_model: bool = False
    again: Collection[str] = ()


@dataclasses.dataclass(frozen=True)
class Step:
    """One grading that has ended. trouble: why it gave no verdict on the submission, in a sentence; else empty."""

    grading: Grading
    verdict: Verdict | None
    trouble: str


def grade_all(
    journal: Journal,
    gradings: list[Grading],
    executor: Executor,
    options: Options,
    jobs: int | Callable[[], int],
    task: Callable[[Order], Result] = carry_out,
) -> Iterator[Step]:
    """Carry out gradings and keep their verdicts; yield each as it ends.

    jobs: how many at once; task: what the executor runs for each. Raises JournalError, and MachineError once many
    have failed in a row.
    """
    verdicts, by_key = Verdicts(journal), {one.key: one for one in gradings}
    in_a_row = 0
    orders = ((one.key, _make_order(journal, one, options)) for one in gradings)
    for key, result in run_all(executor, orders, jobs, task):
        step = _make_step(by_key[key], result)
        if step.verdict is not None and step.verdict.outcome is not Outcome.error:
            in_a_row = 0
        else:
            in_a_row += 1
        if step.verdict is not None:
            verdicts.add(key, step.verdict, OTHER_OPTIONS if key in options.again else options.because)
        yield step
        if in_a_row >= min(MOST_IN_A_ROW, len(gradings)) and in_a_row > 1:
            raise MachineError(
                f"{in_a_row} gradings in a row gave no verdict, so this machine seems to be at fault, not the "
                f"submissions. The last one: {step.trouble} `grader doctor` looks for the cause."
            )


def _make_order(journal: Journal, one: Grading, options: Options) -> Order:
    return Order(
        name=f"{one.problem}.py",
        data=journal.content(one.sha256),
        model=one.model,
        settings=one.settings,
        seed=one.seed,
        device=options.device,
        require_sandbox=options.require_sandbox,
        seconds=options.seconds,
        model_data=Path(one.model).read_bytes() if one.model and options.send_model else None,
    )


def _make_step(grading: Grading, result: Result) -> Step:
    if result.answer is None:
        return Step(grading, None, f"The process that graded it {result.died}.")
    verdict = result.answer.verdict
    if verdict is None or verdict.outcome is not Outcome.error:
        return Step(grading, verdict, result.answer.trouble)
    stage = verdict.first_problem
    return Step(grading, verdict, stage.message if stage else "The grader failed.")
