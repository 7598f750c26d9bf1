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
from grader.judging.timing.results import FAR_SHARE, NoResult, are_alike, draw_places, measure_distances
from grader.judging.trial import Finding, FindingError
from grader.problems.cases import Case
from grader.problems.instance import Instance
from grader.verdict import Evidence, Reason

VERIFY_SHARE = 0.1  # of the rounds between the first and the last, whose kept results are compared whole
# Results that lie this many times farther from eager's than those of calls that were compared whole are looked at
# closely: half precision is a thousand times farther than single.
UNUSUAL = 4.0
# Where rounding picks which of many sums is passed on, a few gradients go elsewhere: off by this share of the whole
# (Euclidean norms) at most.
PICKED_SHARE = 0.02
TIMED = Case("timed")


@dataclasses.dataclass
class Rounds:
    """What the judge does around each round. others: the baselines, of which eager is one. way: eager once more.

    usual: how far the results of calls that were compared whole lay from eager's, see measure_distances().
    """

    bench: Bench
    inputs: TimedInputs
    mine: Candidate
    others: Mapping[str, Other]
    way: Other
    count: int = 0
    usual: float = 0.0

    def __post_init__(self) -> None:
        picks = does_rounding_pick(self.bench.context.trials[0].instance)  # the smallest case answers it as well
        self.far = FAR_SHARE if picks else 0.0
        self.may_modify = modifies_inputs(self.bench.trial)
        for command in (self.mine, self.way, *self.others.values()):
            command.may_modify = self.may_modify

    def begin(self, numbers: Sequence[int]) -> None:
        """Draw new inputs while the submission is stopped, and choose which elements of the results are read."""
        self.mine.watch.end_own()
        self.inputs.rehearse(numbers)
        self.inputs.refresh(numbers)
        places = draw_places(self.bench.like)
        for command in (self.mine, self.way, *self.others.values()):
            command.probe.draw(places)

    def end(self, numbers: Sequence[int]) -> None:
        """Look at the inputs and at the elements that were read; compare the kept results whole now and then.

        Raises FindingError for the first thing that is wrong.
        """
        if not self.may_modify and self.inputs.find_modified(numbers):
            message = "The submission wrote to its inputs while it was timed."
            raise FindingError(Finding(Reason.input_modified, message, [Evidence(case=TIMED.name)]))
        if not self.count or secrets.randbelow(1000) < 1000 * VERIFY_SHARE:
            self.verify(numbers)
        mine, eager = self.mine.probe.values, self.others[EAGER].probe.values
        alike, distances = are_alike(mine, eager, self.far), measure_distances(mine, eager)
        for call, number in enumerate(numbers):
            is_usual = distances[call] <= UNUSUAL * self.usual or bool(self.far)
            if not is_usual or not alike[call]:
                self._verify_read(call, number)
                self.usual = max(self.usual, distances[call])
        self.count += 1

    def verify(self, numbers: Sequence[int] = ()) -> None:
        """Compare the kept results of one call whole, with inputs that are made once more. Raises FindingError.

        numbers: of the round, whose elements that were read show how far results are from eager's. Raises
        torch.OutOfMemoryError if numbers is empty; a round goes on without.
        """
        if self.mine.kept is None:
            return
        number, results = self.mine.kept
        try:
            self._compare(number, lambda _: results)
        except torch.OutOfMemoryError:
            if not numbers:
                raise
        if number in numbers:  # where memory was short, too: the last call is compared when there is more
            call = list(numbers).index(number)
            mine, eager = self.mine.probe.values[call], self.others[EAGER].probe.values[call]
            self.usual = max(self.usual, *measure_distances([mine], [eager]))

    def _verify_read(self, call: int, number: int) -> None:
        """Compare the elements that were read of one call with the same tolerance as in the stage correct."""
        read, places = self.mine.probe.values[call], self.mine.probe.places

        def put(eager: list[torch.Tensor]) -> list[torch.Tensor]:
            """Return eager's results with these elements in them."""
            return [one.flatten().index_put((at,), new).view(one.shape) for one, at, new in zip(eager, places, read)]

        try:
            self._compare(number, put)
        except torch.OutOfMemoryError:
            raise NoResult("the GPU has too little memory left to compare what a timed call returned") from None

    def _compare(self, number: int, make: Callable[[list[torch.Tensor]], list[torch.Tensor]]) -> None:
        """Compare what is made of eager's results with the expected ones for one list of inputs."""
        made, arity = self.inputs.again(number), self.inputs.arity
        instance = dataclasses.replace(self.bench.trial.instance, inputs=made[:arity])
        try:
            if self.bench.backward:
                finding = _compare_both_ways(self.bench, self.bench.backward, instance, made[arity:], make)
            else:
                eager = instance.eager()
                finding = _find_difference(make(eager), instance.expected(), eager, self.bench.trial.case)
        finally:
            del instance, made
            torch.cuda.empty_cache()
        if finding is not None:
            raise FindingError(finding)


def _find_difference(
    got: list[torch.Tensor], expected: list[torch.Tensor], eager: list[torch.Tensor], case: Case
) -> Finding | None:
    difference = tolerance.compare(got, expected, eager, case)
    return findings.of_difference(dataclasses.replace(difference, case=TIMED.name)) if difference else None


def _compare_both_ways(
    bench: Bench,
    backward: Backward,
    instance: Instance,
    upstream: list[torch.Tensor],
    make: Callable[[list[torch.Tensor]], list[torch.Tensor]],
) -> Finding | None:
    """Compare forward's floating outputs, then the gradients."""
    names = [instance.names()[n] for n in backward.inputs] + backward.parameters
    eager = [one for one in instance.eager() if one.is_floating_point()]
    expected = [one for one in instance.expected() if one.is_floating_point()]
    all_of_eager, most = instance.gradients(upstream)
    all_expected = instance.expected_gradients(upstream)
    pairs = [(a, b) for a, b in zip(all_of_eager, all_expected) if a is not None and b is not None]  # as in `names`
    picks = does_rounding_pick(instance)
    got = make([*eager, *(theirs for theirs, _ in pairs)])
    if found := _find_difference(got[: len(eager)], expected, eager, bench.trial.case):
        return found
    for name, mine, (theirs, right) in zip(names, got[len(eager) :], pairs, strict=True):
        if picks and _relative_distance(mine, right) <= PICKED_SHARE:
            continue
        difference = tolerance.compare(mine, right, theirs, TIMED, reduction=most)
        if difference is not None:
            found = findings.of_difference(difference)
            sentence = f"While it was timed, the gradient of `{name}` was wrong: {found.message}"
            return dataclasses.replace(found, reason=Reason.wrong_gradient, message=sentence)
    return None


def _relative_distance(got: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the norm of the difference over the norm of the expected; infinity where that is undefined."""
    if got.shape != expected.shape:
        return float("inf")
    apart = float((got.double() - expected).norm() / expected.norm())
    return apart if apart == apart else float("inf")
