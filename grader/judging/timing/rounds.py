"""What the judge does around each round of timings: new inputs before it, a look at inputs and results after it."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Mapping, Sequence

import torch

from grader.judging import findings, tolerance
from grader.judging.gradients import does_rounding_pick
from grader.judging.side_effects import modifies_inputs
from grader.judging.timing.bench import Backward, Bench
from grader.judging.timing.commands import Candidate, Other
from grader.judging.timing.inputs import TimedInputs
from grader.judging.timing.others import EAGER
from grader.judging.timing.results import FAR_SHARE, are_alike, draw_places
from grader.judging.trial import Finding, FindingError
from grader.problems.cases import Case
from grader.problems.instance import Instance
from grader.verdict import Evidence, Reason

VERIFY_SHARE = 0.1  # of the rounds between the first and the last, whose kept results are compared whole
# Where rounding picks which of many sums is passed on, a few gradients go elsewhere: off by this share of the whole
# (Euclidean norms) at most.
PICKED_SHARE = 0.02
TIMED = Case("timed")


@dataclasses.dataclass
class Rounds:
    """What the judge does around each round. others: the baselines, of which eager is one."""

    bench: Bench
    inputs: TimedInputs
    mine: Candidate
    others: Mapping[str, Other]
    null: Other
    count: int = 0

    def __post_init__(self) -> None:
        self.may_modify = modifies_inputs(self.bench.trial)
        picks = does_rounding_pick(self.bench.context.trials[0].instance)  # the smallest case answers it as well
        self.far = FAR_SHARE if picks else 0.0

    def begin(self, numbers: Sequence[int]) -> None:
        """Write new inputs, and choose which elements of the results are read."""
        self.inputs.refresh(numbers)
        places = draw_places(self.bench.like)
        for command in (self.mine, self.null, *self.others.values()):
            command.probe.draw(places)

    def end(self, numbers: Sequence[int]) -> None:
        """Look at the inputs and at the elements that were read; compare the kept results whole now and then.

        Raises FindingError for the first thing that is wrong.
        """
        if not self.may_modify and self.inputs.find_modified(numbers):
            message = "forward changed its inputs while it was timed."
            raise FindingError(Finding(Reason.input_modified, message, [Evidence(case=TIMED.name)]))
        eager = self.others[EAGER].probe.values
        for call, number in enumerate(numbers):
            if not are_alike(self.mine.probe.values[call], eager[call], self.far):
                self._verify_read(call, number)
        if not self.count or secrets.randbelow(1000) < 1000 * VERIFY_SHARE:
            self.verify()
        self.count += 1

    def verify(self) -> None:
        """Compare the kept results of one call whole, with inputs that are made once more. Raises FindingError."""
        if self.mine.kept is not None:
            number, results = self.mine.kept
            self._compare(number, lambda _: results)

    def _verify_read(self, call: int, number: int) -> None:
        """Compare the elements that were read of one call with the same tolerance as in the stage correct."""
        read, places = self.mine.probe.values[call], self.mine.probe.places

        def put(eager: list[torch.Tensor]) -> list[torch.Tensor]:
            """Return eager's results with these elements in them."""
            return [one.flatten().index_put((at,), new).view(one.shape) for one, at, new in zip(eager, places, read)]

        self._compare(number, put)

    def _compare(self, number: int, make: Callable[[list[torch.Tensor]], list[torch.Tensor]]) -> None:
        """Compare what is made of eager's results with the expected ones for one list of inputs."""
        instance = dataclasses.replace(self.bench.trial.instance, inputs=self.inputs.again(number))
        try:
            if self.bench.backward:
                finding = _compare_gradients(self.bench.backward, instance, make)
            else:
                eager = instance.eager()
                difference = tolerance.compare(make(eager), instance.expected(), eager, self.bench.trial.case)
                found = difference and dataclasses.replace(difference, case=TIMED.name)
                finding = findings.of_difference(found) if found else None
        finally:
            del instance
            torch.cuda.empty_cache()
        if finding is not None:
            raise FindingError(finding)


def _compare_gradients(
    backward: Backward, instance: Instance, make: Callable[[list[torch.Tensor]], list[torch.Tensor]]
) -> Finding | None:
    """Compare gradients; skip it where the GPU is too small for the expected ones next to all that is timed."""
    names = [instance.names()[n] for n in backward.inputs] + backward.parameters
    try:
        all_of_eager, most = instance.gradients(backward.upstream)
        all_expected = instance.expected_gradients(backward.upstream)
        pairs = [(a, b) for a, b in zip(all_of_eager, all_expected) if a is not None and b is not None]  # as in `names`
        picks = does_rounding_pick(instance)
        got = make([theirs for theirs, _ in pairs])
        for name, mine, (theirs, right) in zip(names, got, pairs, strict=True):
            if picks and _relative_distance(mine, right) <= PICKED_SHARE:
                continue
            difference = tolerance.compare(mine, right, theirs, TIMED, reduction=most)
            if difference is not None:
                found = findings.of_difference(difference)
                sentence = f"While it was timed, the gradient of `{name}` was wrong: {found.message}"
                return dataclasses.replace(found, reason=Reason.wrong_gradient, message=sentence)
    except torch.OutOfMemoryError:
        pass
    return None


def _relative_distance(got: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the norm of the difference over the norm of the expected; infinity where that is undefined."""
    if got.shape != expected.shape:
        return float("inf")
    apart = float((got.double() - expected).norm() / expected.norm())
    return apart if apart == apart else float("inf")
