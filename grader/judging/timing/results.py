"""Results of timed calls, read by the judge where the worker left them, the moment the worker reports that it is done.

A few thousand random elements of a few results, chosen when the worker has reported, are read within the timed region,
so that a result that is not there yet costs its own time or is wrong; those of the others are read next. After each
round they are compared with eager's elements for the same inputs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import torch

from grader.judging import clock
from grader.worker.channel import ChannelError
from grader.worker.protocol import Foreign, Location, name_of

SAMPLES = 2048  # elements of each result
READ_AT_ONCE = 4  # results: where one in six is late, one is among them in every second round
# Between results in float32 and in TF32, and below that of any other values: relative to the value or to the root mean
# square of all.
NEAR = 0.03
# A few elements may differ by more, but only where rounding picks which of many sums a gradient is passed on to: a
# share for all problems would let as much of each result be missing when it is read.
FAR_SHARE = 0.02


class NoResult(Exception):
    """Raised where a result is not where or what it should be; the text says which."""


class Probe:
    """Reads elements of results in a worker's memory.

    like: tensors of the results' dtypes and shapes. values: what the last read() read, by call and result.
    """

    def __init__(self, like: list[torch.Tensor], memory: Foreign | None = None):
        self.expected = [(name_of(one.dtype), list(one.shape)) for one in like]
        self.memory = memory or Foreign()
        self.places: list[torch.Tensor] = []
        self.values: list[list[torch.Tensor]] = []
        self.located: list[list[Location]] = []
        self.reported: list[list[Location | None]] = []
        self.early: dict[tuple[int, int], torch.Tensor] = {}

    def draw(self, places: list[torch.Tensor]) -> None:
        """Set which elements of each result the next read() reads, as numbers in row-major order."""
        self.places = places

    def read(self, results: list[list[Location | None]], calls: int) -> None:
        """Read the elements of a few results and wait until they are here. Raises NoResult."""
        if len(results) != calls:
            raise NoResult("the number of results is not that of the calls")
        self.reported, self.early = results, {}
        count = len(self.expected)
        for number in random.SystemRandom().sample(range(calls * count), min(READ_AT_ONCE, calls * count)):
            call, place = divmod(number, count)
            self.early[call, place] = self._read_one(self._check(results[call])[place], place)
        clock.synchronize()

    def read_rest(self) -> None:
        """Read the elements of the other results. Raises NoResult."""
        self.located = [self._check(each) for each in self.reported]
        self.values = [
            [
                self.early[call, n] if (call, n) in self.early else self._read_one(one, n)
                for n, one in enumerate(located)
            ]
            for call, located in enumerate(self.located)
        ]
        clock.synchronize()

    def _check(self, locations: list[Location | None]) -> list[Location]:
        found = [one for one in locations if one is not None]
        if len(found) < len(locations):
            raise NoResult(
                "a result is in memory that the grader cannot look at: allocate it with PyTorch in its usual way"
            )
        if [(one.dtype, one.shape) for one in found] != self.expected:
            raise NoResult("a result has another shape or dtype than in the stage correct")
        return found

    def _read_one(self, location: Location, number: int) -> torch.Tensor:
        try:
            view, places = self.memory.view(location), self.places[number]
        except ChannelError as error:
            raise NoResult(str(error)) from None
        if not view.numel():
            return view.reshape(-1)
        if view.is_contiguous():
            return view.view(-1).index_select(0, places)
        return view[torch.unravel_index(places, view.shape)]

    def copy(self, call: int) -> list[torch.Tensor]:
        """Return copies of one call's results."""
        return [self.memory.view(one).clone(memory_format=torch.contiguous_format) for one in self.located[call]]

    def release(self) -> None:
        """Unmap the worker's memory."""
        self.values, self.located, self.early = [], [], {}
        self.memory.release()


def draw_places(like: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return random places in tensors of these shapes, other ones each time."""
    seed = random.SystemRandom().getrandbits(62)
    generators = [torch.Generator(one.device).manual_seed(seed + number) for number, one in enumerate(like)]
    return [
        torch.randint(max(1, one.numel()), (SAMPLES,), device=one.device, generator=generator)
        for one, generator in zip(like, generators)
    ]


def are_alike(
    got: Sequence[list[torch.Tensor]], expected: Sequence[list[torch.Tensor]], far: float = 0.0
) -> list[bool]:
    """Return of each call whether elements of two programs' results are about the same; a share `far` of them need not
    be. All calls are compared at once: a GPU takes as long for one.
    """
    pairs = [_are_near(*_pair(mine, theirs), far) for mine, theirs in _by_result(got, expected)]
    return torch.stack(pairs).all(dim=0).tolist() if pairs else [True] * len(got)


def measure_distances(got: Sequence[list[torch.Tensor]], expected: Sequence[list[torch.Tensor]]) -> list[float]:
    """Return of each call the largest distance of two programs' elements of one result: the root mean square of the
    differences over that of the expected values, infinities and NaNs left out.
    """
    pairs = [_distance(*_pair(mine, theirs)) for mine, theirs in _by_result(got, expected)]
    return torch.stack(pairs).amax(dim=0).tolist() if pairs else [0.0] * len(got)


Pairs = Iterator[tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]]


def _by_result(got: Sequence[list[torch.Tensor]], expected: Sequence[list[torch.Tensor]]) -> Pairs:
    """Yield one result after another, each of all calls."""
    return zip(zip(*got, strict=True), zip(*expected, strict=True), strict=True)


def _pair(got: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the elements of one result as matrices with a row for each call, complex numbers as two each."""
    stacked = (torch.stack(tuple(one)) for one in (got, expected))
    mine, theirs = (torch.view_as_real(one.resolve_conj()) if one.is_complex() else one for one in stacked)
    return mine.flatten(1), theirs.flatten(1)


def _distance(got: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    x, y = got.double(), expected.double()
    finite = torch.isfinite(x) & torch.isfinite(y)
    size, apart = (torch.where(finite, one.square(), 0.0).sum(dim=1) for one in (y, x - y))
    return torch.where(size > 0, (apart / size).sqrt(), (apart > 0).double())


def _are_near(got: torch.Tensor, expected: torch.Tensor, far: float) -> torch.Tensor:
    if not expected.shape[1]:
        return torch.ones(len(expected), dtype=torch.bool, device=expected.device)
    if not expected.is_floating_point():
        return (got != expected).double().mean(dim=1) <= far
    x, y = got.double(), expected.double()
    finite = torch.isfinite(y)
    size = (torch.where(finite, y.square(), 0.0).sum(dim=1) / finite.sum(dim=1).clamp(min=1)).sqrt()
    near = (x - y).abs() <= NEAR * (y.abs() + size[:, None])
    same = (x == y) | (x.isnan() & y.isnan())
    return (~(near | same)).double().mean(dim=1) <= far
