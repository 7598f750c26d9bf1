"""Define what lint runs and what it finds: an attempt is a wrong computation of one case's outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch

from grader.judging import tolerance
from grader.judging.trial import Trial
from grader.problems.instance import Instance

DECOY, MUTANT = "decoy", "mutant"
SAME_IN_DOUBLE = 1e-9  # relative; another order of float64 sums moves a result by about 1e-13


@dataclasses.dataclass(frozen=True)
class Label:
    """What is wrong with a result. It is the same in each case.

    kind: DECOY or MUTANT. group: decoys or mutants of one sort. name: a few words. line, before, after: of a mutant,
    the line in the problem file and the expression that it replaces.
    """

    kind: str
    group: str
    name: str
    line: int | None = None
    before: str = ""
    after: str = ""


@dataclasses.dataclass(frozen=True)
class Attempt:
    """One wrong computation of one case's outputs.

    compute: returns the outputs, or None where the label means nothing for this case; raises ProblemError where the
    wrong model raises. instance: the wrong model with its inputs; None where the right outputs are edited instead.
    """

    label: Label
    compute: Callable[[], list[torch.Tensor] | None]
    instance: Instance | None = None


def is_accepted(trial: Trial, outputs: list[torch.Tensor]) -> bool:
    """Return whether the judge takes these outputs for right in this case, as the stage "correct" does."""
    return tolerance.compare(outputs, trial.expected, trial.eager, trial.case, trial.noise) is None


def has_effect(trial: Trial, instance: Instance) -> bool:
    """Return whether a wrong model's float64 outputs differ from the expected ones. Raises ProblemError."""
    made = instance.expected()
    shapes = [out.shape for out in trial.expected]
    return [out.shape for out in made] != shapes or any(map(_differs, made, trial.expected))


def _differs(got: torch.Tensor, expected: torch.Tensor) -> bool:
    if not expected.is_floating_point() or not got.is_floating_point():
        return not torch.equal(got, expected)
    finite = torch.isfinite(expected)
    if not torch.equal(torch.isfinite(got), finite):
        return True
    a, b = got[finite], expected[finite]
    return bool(b.numel()) and float((a - b).abs().max()) > SAME_IN_DOUBLE * float(b.abs().max())
