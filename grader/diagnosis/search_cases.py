"""Make the cases on which mutants run: inputs, expected outputs or gradients, and their tolerances."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from grader.verdict import Stage, StageName, Status

if TYPE_CHECKING:
    import torch

    from grader.judging.trial import ExpectedGradients, Trial
    from grader.problems.cases import Case
    from grader.problems.instance import Instance
    from grader.problems.problem import Problem

MOST_PASSING = 4  # cases that passed, and must pass with a mutant too


@dataclasses.dataclass
class SearchCase:
    """A case on the CPU. fails: whether the submission failed it. seconds: the time of one run, once it is known.

    gradients: what backward needs, in a case that compares gradients; expected, eager and allowed are then those of
    gradients.
    """

    problem: Problem
    instance: Instance
    expected: list[torch.Tensor]
    eager: list[torch.Tensor]
    allowed: list[torch.Tensor]
    case: Case
    fails: bool
    gradients: ExpectedGradients | None = None
    seconds: float = 0.0


def choose_cases(cases: list[Case], went: dict[str, Status]) -> list[Case]:
    """Return the failing cases, and after them some that passed. went: each case's status, by its name."""
    failed = [case for case in cases if went.get(case.name) is Status.failed]
    return failed + [case for case in cases if went.get(case.name) is Status.passed][:MOST_PASSING]


def make_search_cases(problem: Problem, stage: Stage, trials: list[Trial]) -> list[SearchCase]:
    """Return the cases of a stage that failed and some that passed; with backward, also cases that compare outputs.

    trials: the judge's, with the expected outputs and gradients of each case.
    """
    went = {case.name: case.status for case in stage.cases}
    by_name = {trial.case.name: trial for trial in trials}
    picked = [by_name[case.name] for case in choose_cases([trial.case for trial in trials], went)]
    if stage.name is StageName.correct:
        return [_of_outputs(problem, trial, went[trial.case.name] is Status.failed) for trial in picked]
    picked = [trial for trial in picked if trial.gradients is not None]
    backward = [_of_gradients(problem, trial, went[trial.case.name] is Status.failed) for trial in picked]
    return backward + [_of_outputs(problem, trial, False) for trial in picked[:MOST_PASSING]]


def _of_outputs(problem: Problem, trial: Trial, fails: bool) -> SearchCase:
    """Return a case whose outputs are compared."""
    from grader.judging import tolerance

    case, reduction = trial.case, trial.case.reduction or tolerance.DEFAULT_REDUCTION
    allowed = [
        tolerance.tolerance(y, e, reduction, n, case.precision)
        for y, e, n in zip(trial.expected, trial.eager, trial.noise)
    ]
    return SearchCase(problem, trial.instance, trial.expected, trial.eager, allowed, case, fails)


def _of_gradients(problem: Problem, trial: Trial, fails: bool) -> SearchCase:
    """Return a case whose gradients are compared."""
    from grader.judging import tolerance

    right = trial.gradients
    assert right is not None
    allowed = [tolerance.tolerance(*each) for each in zip(right.expected, right.eager, right.reductions, right.noise)]
    return SearchCase(problem, trial.instance, right.expected, right.eager, allowed, trial.case, fails, right)
