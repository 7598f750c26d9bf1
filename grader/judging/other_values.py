"""Give a case other values: a result that is kept from an earlier call is wrong for them."""

from __future__ import annotations

import dataclasses

from grader.judging.tolerance import compare
from grader.judging.trial import Trial, prepare_trial
from grader.problems.cases import ProblemError
from grader.problems.values import repeat_values, roll_values


def prepare_other_values(trial: Trial) -> Trial:
    """Return the case with other values of its inputs and their expected outputs.

    The values are moved on by one place. A sum or a histogram of all is the same then: if the outputs are, one half of
    the values replaces the other instead. Raises ProblemError where Model does not take the moved values.
    """
    moved = _prepare(trial, roll_values(trial.instance.inputs))
    if compare(trial.eager, moved.expected, moved.eager, trial.case, moved.noise) is not None:
        return moved
    try:
        return _prepare(trial, repeat_values(trial.instance.inputs))
    except ProblemError:
        return moved


def _prepare(trial: Trial, inputs: list) -> Trial:
    return prepare_trial(trial.case, dataclasses.replace(trial.instance, inputs=inputs))
