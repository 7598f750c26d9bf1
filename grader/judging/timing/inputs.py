"""The inputs of the timed calls: in memory that workers map, drawn anew before each round from what no worker sees."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import torch

from grader.judging import clock
from grader.problems.cases import Case
from grader.problems.problem import Problem
from grader.worker import protocol
from grader.worker.exchange import GpuMemory

SLOW_DRAW_S = 0.1  # for one list of inputs; they are then rolled instead of drawn
SAMPLES = 4096  # elements of each input that are looked at after each round


class TimedInputs:
    """Numbered lists of inputs of one case on the GPU.

    ours: the judge's view of them. sent: what workers get. Each refresh() writes new values, which again() can make
    once more: a worker may have written to the memory.
    """

    def __init__(self, problem: Problem, case: Case, seed: int, memory: GpuMemory, count: int):
        self.problem, self.case, self.seed, self.memory = problem, case, seed, memory
        self.serials = list(range(count))
        self.latest = count
        self.ours: list[list] = []
        self.sent: list[list[protocol.Value]] = []
        seconds = 0.0
        for number in range(count):
            started = time.perf_counter()
            made = self._draw(number)
            seconds = time.perf_counter() - started  # the first includes what torch does once
            self.sent.append(memory.inputs(made))
            self.ours.append([one.tensor if isinstance(one, protocol.Shared) else one for one, _ in memory.given[-1]])
            memory.given.clear()  # the originals are not needed: the judge owns the copies
        # what takes long to draw is drawn once, kept where no worker sees it, and rolled
        self.master = self._draw(0) if seconds > SLOW_DRAW_S else None
        self.seen: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = {}

    def __len__(self) -> int:
        return len(self.ours)

    def _draw(self, serial: int) -> list:
        values = self.problem.draw_inputs(self.case, self.seed + serial, self.memory.device)
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
        """Write new values into the lists of these numbers, and remember some of their elements."""
        for number in numbers:
            self.serials[number], self.latest = self.latest, self.latest + 1
            for value, new in zip(self.ours[number], self._make(number)):
                if isinstance(value, torch.Tensor) and isinstance(new, torch.Tensor) and value.shape == new.shape:
                    value.copy_(new)
            self.seen[number] = [_sample(value) for value in self.ours[number] if isinstance(value, torch.Tensor)]
        clock.synchronize()

    def again(self, number: int) -> list:
        """Return a list of inputs as refresh() wrote it, in memory of the judge's own."""
        made = self._make(number)
        kept = zip(self.ours[number], made)
        return [new if isinstance(old, torch.Tensor) else old for old, new in kept]

    def find_modified(self, numbers: Sequence[int]) -> bool:
        """Return whether a worker has written to the inputs of these numbers, by the remembered elements."""
        for number in numbers:
            values = [value for value in self.ours[number] if isinstance(value, torch.Tensor)]
            for value, (places, before) in zip(values, self.seen[number]):
                if not torch.equal(value.reshape(-1)[places].view(torch.uint8), before.view(torch.uint8)):
                    return True
        return False


def _is_floating(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _roll(value: torch.Tensor, draw: random.Random) -> torch.Tensor:
    return value.flatten().roll(draw.randrange(max(1, value.numel()))).view(value.shape)


def _sample(value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return random places in a tensor, which nobody can predict, and the elements there."""
    generator = torch.Generator(value.device).manual_seed(random.SystemRandom().getrandbits(62))
    size = (min(SAMPLES, value.numel()),)
    places = torch.randint(max(1, value.numel()), size, device=value.device, generator=generator)
    return places, value.reshape(-1)[places].clone()
