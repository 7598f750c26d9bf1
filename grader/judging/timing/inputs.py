"""The inputs of the timed calls, drawn anew before each round.

The submission's worker maps memory of its own, into which they are written once its turn has begun: what could read
them before could compute before. Where backward is timed, the gradients that it starts with are drawn and given like
inputs.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence

import torch

from grader.judging import clock
from grader.problems.cases import Case
from grader.problems.problem import Problem
from grader.worker import protocol
from grader.worker.exchange import GpuMemory, same_bits

REHEARSALS = 2  # the first may be slow
# A giving of inputs may take this many times its median in rehearsals, and so many seconds more.
USUAL_FACTOR, USUAL_S = 1.03, 30e-6
SLOW_DRAW_S = 0.1  # for one list of inputs; they are then rolled instead of drawn


class TimedInputs:
    """Numbered lists of inputs of one case on the GPU, each with the gradients of `outputs` behind them.

    ours: the judge's view of them. sent: what the submission's rivals get. given: what the submission gets. arity: how
    many of a list are inputs. Each refresh() draws new values, which give() writes for the submission, and which
    again() can make once more.
    """

    def __init__(
        self,
        problem: Problem,
        case: Case,
        seed: int,
        memory: GpuMemory,
        count: int,
        outputs: Sequence[torch.Tensor] = (),
    ):
        self.problem, self.case, self.seed, self.memory = problem, case, seed, memory
        self.outputs, self.arity = list(outputs), 0
        self.serials = list(range(count))
        self.latest = count
        self.ours: list[list] = []
        self.theirs: list[list] = []
        self.sent: list[list[protocol.Value]] = []
        self.given: list[list[protocol.Value]] = []
        self.flush = clock.Flush()
        self.seconds: dict[int, list[float]] = {}
        took = 0.0
        for number in range(count):
            started = time.perf_counter()
            made = self._draw(number)
            took = time.perf_counter() - started  # the first includes what torch does once
            for views, sent in ((self.ours, self.sent), (self.theirs, self.given)):
                sent.append(memory.inputs(made))
                views.append([one.tensor if isinstance(one, protocol.Shared) else one for one, _ in memory.given[-1]])
                memory.given.clear()  # the originals are not needed: the judge owns the copies
        # what takes long to draw is drawn once, kept where no worker sees it, and rolled
        self.master = self._draw(0) if took > SLOW_DRAW_S else None

    def __len__(self) -> int:
        return len(self.ours)

    def _draw(self, serial: int) -> list:
        values = self.problem.draw_inputs(self.case, self.seed + serial, self.memory.device)
        self.arity = len(values)
        values += self.problem.upstream(self.case, self.seed + serial, self.outputs)
        clock.synchronize()
        return values

    def _make(self, number: int) -> list:
        """Return the present values of one list, made from its serial number alone."""
        serial = self.serials[number]
        if self.master is None:
            return self._draw(serial)
        draw = random.Random(f"{self.seed} {serial}")
        return [_roll(value, draw) if _is_floating(value) else value for value in self.master]

    def refresh(self, numbers: Sequence[int]) -> None:
        """Draw new values for the lists of these numbers. The submission's copies of them stay as they are."""
        for number in numbers:
            self.serials[number], self.latest = self.latest, self.latest + 1
        self.restore(numbers)

    def restore(self, numbers: Sequence[int]) -> None:
        """Write the values of the last refresh() again: a model that may modify its inputs has had them."""
        for number in numbers:
            for value, new in zip(self.ours[number], self._make(number)):
                if isinstance(value, torch.Tensor) and isinstance(new, torch.Tensor) and value.shape == new.shape:
                    value.copy_(new)
        clock.synchronize()

    def give(self, numbers: Sequence[int]) -> None:
        """Write the inputs of these numbers where the submission reads them, out of the L2 cache, and wait."""
        for number in numbers:
            for theirs, ours in zip(self.theirs[number], self.ours[number]):
                if isinstance(theirs, torch.Tensor):
                    theirs.copy_(ours)
        self.flush()

    def rehearse(self, numbers: Sequence[int]) -> None:
        """Time give() with the inputs of the round before, which are worth nothing any more."""
        for _ in range(REHEARSALS):
            self.flush()
            started = time.perf_counter()
            self.give(numbers)
            self.seconds.setdefault(len(numbers), []).append(time.perf_counter() - started)

    def most_seconds(self, count: int) -> float:
        """Return how long give() takes for so many lists at most: what a submission does meanwhile makes it longer."""
        return USUAL_FACTOR * statistics.median(self.seconds[count]) + USUAL_S

    def again(self, number: int) -> list:
        """Return a list of inputs as refresh() wrote it, in memory of the judge's own."""
        made = self._make(number)
        kept = zip(self.ours[number], made)
        return [new if isinstance(old, torch.Tensor) else old for old, new in kept]

    def find_modified(self, numbers: Sequence[int]) -> bool:
        """Return whether the submission has written to its inputs of these numbers since give()."""
        pairs = (pair for number in numbers for pair in zip(self.theirs[number], self.ours[number]))
        return any(isinstance(theirs, torch.Tensor) and not same_bits(theirs, ours) for theirs, ours in pairs)


def _is_floating(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _roll(value: torch.Tensor, draw: random.Random) -> torch.Tensor:
    return value.flatten().roll(draw.randrange(max(1, value.numel()))).view(value.shape)
