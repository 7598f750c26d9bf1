"""The inputs of the timed calls, drawn anew before each round.

Each worker has them in memory of its own, which the judge maps: a kernel reads memory of another process more slowly.
The submission's are written once its turn has begun: what could read them before could compute before. Where backward
is timed, the gradients that it starts with are drawn and given like inputs.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
import time
from collections.abc import Sequence

import torch

from grader.judging import clock
from grader.judging.timing.results import NoResult
from grader.problems.cases import Case
from grader.problems.problem import Problem
from grader.problems.values import is_floating
from grader.worker import protocol
from grader.worker.channel import ChannelError
from grader.worker.exchange import same_bits
from grader.worker.layout import change_values, copy_values_into, count_covered, find_strides

REHEARSALS = 2  # the first may be slow
# A giving of inputs may take this many times its median in rehearsals, and so many seconds more.
USUAL_FACTOR, USUAL_S = 1.03, 30e-6
SLOW_DRAW_S = 0.1  # for one list of inputs; they are then rolled instead of drawn


class TimedInputs:
    """Numbered lists of inputs of one case on the GPU, each with the gradients of `outputs` behind them.

    sent: what each worker makes room for. plain: the values that no worker has in its memory, None for the others.
    ours: the judge's view of the trusted worker's lists. copies: of those of its other rivals. theirs: of the
    submission's. arity: how many of a list are inputs. giving: see given(). Each refresh() draws new values for the
    rivals, which give() writes for the submission, and which again() can make once more.
    """

    def __init__(
        self, problem: Problem, case: Case, seed: int, count: int, outputs: Sequence[torch.Tensor] = (), device="cuda"
    ):
        self.problem, self.case, self.seed, self.device = problem, case, seed, device
        self.outputs, self.arity = list(outputs), 0
        self.serials = list(range(count))
        self.latest = count
        self.sent: list[list[protocol.Value]] = []
        self.plain: list[list] = []
        self.ours: list[list] = []
        self.copies: list[list[list]] = []
        self.theirs: list[list] = []
        self.mapped: list[protocol.Foreign] = []
        self.flush = clock.Flush()
        self.seconds: dict[int, list[float]] = {}
        self.giving = 0.0
        self.master: list | None = None
        took = 0.0
        for number in range(count):
            started = time.perf_counter()
            made = self._make(number)
            took = time.perf_counter() - started  # the first includes what torch does once
            self.sent.append([_describe(value) for value in made])
            self.plain.append([None if _has_elements(value) else value for value in made])
        # what takes long to draw is drawn once, kept where no worker sees it, and rolled
        self.master = self._draw(0) if took > SLOW_DRAW_S else None

    def __len__(self) -> int:
        return len(self.sent)

    def map(self, reply: protocol.Reply, submission: bool = False) -> None:
        """Map the memory in which a worker has made room for all lists, as it says, and write their values there.

        submission: the worker is the submission's; else it is a rival's, and the first one is trusted. Raises NoResult
        where memory is not what was asked for.
        """
        if not isinstance(reply, protocol.Prepared):
            raise NoResult("the worker did not say where its inputs are")
        lists = [[*batch, *more] for batch, more in zip(reply.batches, reply.upstream or [[]] * len(self))]
        if [len(each) for each in lists] != [len(each) for each in self.sent]:
            raise NoResult("the worker did not say where all of its inputs are")
        memory = protocol.Foreign()
        self.mapped.append(memory)
        views = [
            [
                _map_one(memory, at, room) if isinstance(room, protocol.Room) and math.prod(room.shape) else value
                for at, room, value in zip(located, rooms, values)
            ]
            for located, rooms, values in zip(lists, self.sent, self.plain)
        ]
        spans = sorted(_span(one) for each in views for one in each if isinstance(one, torch.Tensor))
        if any(end > start for (_, end), (start, _) in itertools.pairwise(spans)):
            raise NoResult("two of its inputs share memory")
        self.add(views, submission)

    def add(self, views: list[list], submission: bool = False) -> None:
        """Write the values of all lists into a worker's memory, as in map()."""
        everything = range(len(self))
        if submission:
            self.theirs = views
            self._copy(everything, views)
        elif self.ours:
            self.copies.append(views)
            self._copy(everything, views)
        else:
            self.ours = views
            self.restore(everything)

    def release(self) -> None:
        """Unmap all that was mapped."""
        self.ours, self.copies, self.theirs = [], [], []
        for memory in self.mapped:
            memory.release()
        self.mapped.clear()

    def _draw(self, serial: int) -> list:
        values = self.problem.draw_inputs(self.case, self.seed + serial, self.device)
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
        return [_roll(value, draw) if is_floating(value) else value for value in self.master]

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
                    copy_values_into(value, new)
        for views in self.copies:
            self._copy(numbers, views)
        clock.synchronize()

    def _copy(self, numbers: Sequence[int], views: list[list]) -> None:
        """Write the lists of these numbers into another worker's."""
        for number in numbers:
            for theirs, ours in zip(views[number], self.ours[number]):
                if isinstance(theirs, torch.Tensor):
                    copy_values_into(theirs, ours)

    def give(self, numbers: Sequence[int]) -> None:
        """Write the inputs of these numbers where the submission reads them, out of the L2 cache, and wait."""
        self._copy(numbers, self.theirs)
        self.flush()

    def rehearse(self, numbers: Sequence[int]) -> None:
        """Time give() with the inputs of the round before, which are worth nothing any more."""
        for _ in range(REHEARSALS):
            self.flush()
            started = time.perf_counter()
            self.give(numbers)
            self.seconds.setdefault(len(numbers), []).append(time.perf_counter() - started)

    def given(self, seconds: float, count: int) -> float:
        """Return how much of the time that give() has taken for so many lists is its own, and keep it in `giving`: what
        a submission does meanwhile makes it longer.
        """
        self.giving = min(seconds, USUAL_FACTOR * statistics.median(self.seconds[count]) + USUAL_S)
        return self.giving

    def again(self, number: int) -> list:
        """Return a list of inputs as refresh() wrote it, in memory of the judge's own."""
        kept = zip(self.plain[number], self._make(number))
        return [new if isinstance(new, torch.Tensor) else old for old, new in kept]

    def find_modified(self, numbers: Sequence[int]) -> bool:
        """Return whether the submission has written to its inputs of these numbers since give()."""
        pairs = (pair for number in numbers for pair in zip(self.theirs[number], self.ours[number]))
        return any(isinstance(theirs, torch.Tensor) and not same_bits(theirs, ours) for theirs, ours in pairs)


def _has_elements(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() > 0


def _roll(value: torch.Tensor, draw: random.Random) -> torch.Tensor:
    places = draw.randrange(max(1, value.numel()))
    return change_values(value, lambda values: values.flatten().roll(places).view(values.shape))


def _describe(value: object) -> protocol.Value:
    """Return what a worker is told of a value: the room that it takes, or the value itself."""
    if isinstance(value, torch.Tensor):
        return protocol.Room(protocol.name_of(value.dtype), list(value.shape), find_strides(value))
    return protocol.pack(value)


def _map_one(memory: protocol.Foreign, at: protocol.Location | None, room: protocol.Room) -> torch.Tensor:
    """Return the judge's view of one tensor in a worker. Raises NoResult where it is not the one asked for."""
    if at is None:
        raise NoResult("an input is in memory that the grader cannot write to")
    strides = room.strides or [math.prod(room.shape[place + 1 :]) for place in range(len(room.shape))]
    if (at.dtype, at.shape) != (room.dtype, room.shape) or at.strides != strides:
        raise NoResult("an input has another dtype or shape than it should, or other strides")
    try:
        return memory.view(at)
    except ChannelError as error:
        raise NoResult(str(error).replace("a result", "an input")) from None


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    start = tensor.data_ptr()
    return start, start + count_covered(tensor.shape, tensor.stride()) * tensor.element_size()
