"""The expected gradients of a case: float64's autograd of the problem's Model."""

from __future__ import annotations

from typing import cast

import torch

from grader.judging import tolerance
from grader.judging.trial import ExpectedGradients, Trial
from grader.problems.instance import Instance
from grader.problems.problem import Problem


def compute_expected_gradients(problem: Problem, trial: Trial, seed: int) -> ExpectedGradients:
    """Return the expected gradients. Raises ProblemError where Model has none."""
    instance, case = trial.instance, trial.case
    upstream = problem.upstream(case, seed, trial.eager)
    eager, most = instance.gradients(upstream)
    inputs, parameters = instance.differentiable()
    called = instance.names()
    names = [called[n] for n in inputs] + parameters
    own = {number: value for number, value in enumerate(eager) if value is not None}
    expected = instance.expected_gradients(upstream)
    try:
        noise = instance.gradient_noise(upstream, expected)
    except torch.OutOfMemoryError:  # eager's own error gives the level too
        noise = [None] * len(expected)
    terms = sum(out.numel() for out in upstream) * (case.reduction or tolerance.DEFAULT_REDUCTION)
    return ExpectedGradients(
        names=[names[n] for n in own],
        inputs=[inputs[n] for n in own if n < len(inputs)],
        parameters=[parameters[n - len(inputs)] for n in own if n >= len(inputs)],
        upstream=upstream,
        expected=cast("list[torch.Tensor]", [expected[n] for n in own]),
        eager=list(own.values()),
        noise=[noise[n] for n in own],
        # As many as reach an element if each output is a sum of `reduction` terms, and no more than Model sums at once.
        reductions=[max(1, min(most, -(-terms // max(1, own[n].numel())))) for n in own],
    )


def does_rounding_pick(instance: Instance) -> bool:
    """Return whether Model passes on the largest or smallest of several sums.

    Among the many sums of a full size some are so near to each other that rounding decides which one is passed on.
    """
    watch = instance.watched()[1]
    return watch.picks and watch.reduction > 1
