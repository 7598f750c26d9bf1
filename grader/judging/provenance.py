"""Find out who computed a result first: a kernel, or the host's code, whatever language it is written in.

In a run with How(unseen=…) simt's runtime reports before each launch the bytes that the host has changed since the
last one, and after it the elements that the kernel has changed. A result is the kernels' work if they are the first to
write its values to memory. If the host has them in memory before, kernels only pass them on; if no kernel writes them,
the host makes them from something else. Values that are copied, converted, cut or permuted after a kernel has written
them are still the kernel's. With the checks on, the runtime also tells what a kernel's threads write from what changes
while they run: a function of the host that a kernel calls is no kernel.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator

import torch

from grader.judging.cores import one_core
from grader.judging.tolerance import compare
from grader.problems.cases import Case
from grader.problems.values import is_narrow
from simt.runtime.monitor import Recorded, Report

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
LEAST_VALUES = 16  # fewer say nothing
SHARE = 0.5  # of the values that have to be someone's
SAME = 1 - 1e-10  # of a correlation: what a scale, an offset and rounding in float32 leave
TINY = 1e-30
REPEATED = 64  # values that occur more often each come from a table, which the host may make
SECONDS = 20.0  # of the processor, for one look
SIMILAR = 0.999  # of an input and the result: in such a problem a copy of the input looks like the result

HOST_FIRST = "Code on the host computes the results before a kernel is launched; the kernels only pass them on."
TOO_MUCH = (
    "The grader cannot see who computes the results, because too much memory is written: allocate fewer or smaller "
    "tensors."
)
TOO_LONG = (
    "The grader cannot see who computes the results, because it takes too long to look through what is written: write "
    "less, and launch fewer kernels."
)
MEANWHILE = (
    "Memory changes while a kernel runs, and none of the kernel's threads writes there: the kernel calls a function of "
    "the host or of the system, or another thread writes."
)
NO_WRITER = "No kernel writes the values that forward returns: code on the host computes them."


@dataclasses.dataclass(frozen=True)
class Result:
    """A tensor that the submission returned, with what tolerance.compare() needs to compare it."""

    got: torch.Tensor
    expected: torch.Tensor
    eager: torch.Tensor
    noise: torch.Tensor | None
    case: Case
    reduction: int | None = None

    def accepts(self, values: torch.Tensor) -> bool:
        """Return whether these values would be right too."""
        if not bool(torch.isfinite(values).all()):
            return False
        against = (self.expected, self.eager, self.case, self.noise, self.reduction)
        return compare(values.reshape(self.expected.shape).to(self.eager.dtype), *against) is None


class _TooLong(Exception):
    """Raised where the look takes longer than it may, because the submission has written very much."""


def find_host_work(results: list[Result], given: list, report: Report, least: int, summed: bool = False) -> str:
    """Return in one sentence how the host has computed a result, or why that cannot be known; empty if it has not.

    given: what the run got, tensors among it. least: elements from which on the host may not compute a tensor from
    others; below, it may add up a few partial sums of kernels. summed: the host may have added results of kernels.
    """
    if report.overflow:
        return TOO_MUCH
    floats = [one for one in given if isinstance(one, torch.Tensor) and one.is_floating_point() and one.numel()]
    inputs = [one.float() if is_narrow(one) else one for one in floats]
    history = _History(report.recorded)
    try:
        for result in results:
            got = result.got
            if got.dtype not in FLOATS or got.device.type != "cpu" or got.numel() < LEAST_VALUES:
                continue
            with one_core(got.numel()):
                new = _Novelty(inputs, got.dtype, history)
                small = got.numel() < least
                if _are_values_first(got, new, history, small) or _had_before(result, inputs, history, new, small):
                    return HOST_FIRST
                if not small and not summed and not new.is_found(got):
                    return NO_WRITER
    except _TooLong:
        return TOO_LONG
    return ""


class _History:
    """What was written, in order, and the values of each record, sorted once."""

    def __init__(self, recorded: list[Recorded]):
        self.recorded = recorded
        self.end = time.thread_time() + SECONDS
        self.sorted: dict[tuple[int, torch.dtype, torch.dtype], torch.Tensor] = {}

    def walk(self, before: int | None = None) -> Iterator[tuple[int, Recorded]]:
        """Iterate over the records with their numbers, of launches before this one alone. Raises _TooLong."""
        for number, record in enumerate(self.recorded):
            if before is not None and record.launch >= before:
                return
            self.check()
            yield number, record

    def check(self) -> None:
        """Raise _TooLong where the time is over."""
        if time.thread_time() > self.end:
            raise _TooLong

    def sort(self, number: int, read_as: torch.dtype, to: torch.dtype) -> torch.Tensor:
        """Return the different values of a record in order."""
        key = number, read_as, to
        if key not in self.sorted:
            pieces = _read(self.recorded[number].data, read_as)
            values = pieces[0].unique().to(to) if pieces else torch.empty(0, dtype=to)
            self.sorted[key] = values.sort().values
        return self.sorted[key]


class _Novelty:
    """Knows the values of the inputs, which both sides have from the start."""

    def __init__(self, inputs: list[torch.Tensor], dtype: torch.dtype, history: _History):
        self.dtype, self.history = dtype, history
        self.known = torch.cat([one.detach().reshape(-1).to(dtype) for one in inputs]).unique() if inputs else None

    def is_found(self, values: torch.Tensor, before: int | None = None) -> bool:
        """Return whether those of the values that are new are, by and large, among what kernels wrote; before: in the
        launches before this one.
        """
        new = values.reshape(-1).to(self.dtype)
        new = new[torch.isfinite(new) & (new != 0)]
        if self.known is not None:
            new = new[~_are_in(new, self.known)]
        if new.numel() < LEAST_VALUES:
            return True
        missing = new
        for number, record in self.history.walk(before):
            if not record.by_kernel:
                continue
            for dtype in FLOATS:
                missing = missing[~_are_in(missing, self.history.sort(number, dtype, self.dtype))]
            if missing.numel() <= (1 - SHARE) * new.numel():
                return True
        return False


def _are_values_first(got: torch.Tensor, new: _Novelty, history: _History, only_first: bool) -> bool:
    """Return whether the host wrote most of a result's new values, of either sign, before a kernel wrote them, wherever
    and in whatever order. only_first: before the first launch.

    Numbers of few digits do not count: others come upon them too. Where the host has written so many numbers that it
    has many that lie close to those of the result as well, they say nothing.
    """
    if got.dtype not in (torch.float32, torch.float64):
        return False
    digits = _pick_long(got.reshape(-1).abs())
    values = digits.unique()
    if new.known is not None:
        values = values[~_are_in(values, new.known.abs().sort().values)]
    if values.numel() < LEAST_VALUES or values.numel() * REPEATED < digits.numel():
        return False
    away = 2.0**-10 * (1 + torch.rand(values.numel(), generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    others = (values.double() * (1 + away)).to(got.dtype).unique()
    shares = [_measure_share(one, history, only_first) for one in (values, others[~_are_in(others, values)])]
    return shares[0] - shares[1] > SHARE


def _measure_share(values: torch.Tensor, history: _History, only_first: bool) -> float:
    """Return the share of these values, which are in order, that the host wrote before a kernel did."""
    first = torch.zeros(values.numel(), dtype=torch.int8)  # 1: the host, 2: a kernel
    if not values.numel():
        return 0.0
    for _, record in history.walk():
        if only_first and record.launch > 1:
            break
        for dtype in (torch.float32, torch.float64):
            for written in _read(record.data, dtype):
                written = written.to(values.dtype).abs()
                at = torch.searchsorted(values, written).clamp_(max=values.numel() - 1)
                at = at[values[at] == written]
                first[at[first[at] == 0]] = 2 if record.by_kernel else 1
                history.check()
    return float((first == 1).float().mean())


def _pick_long(values: torch.Tensor) -> torch.Tensor:
    """Return the finite values that have more digits than half precision, and a fraction."""
    short = (values == values.half().to(values.dtype)) | (values == values.bfloat16().to(values.dtype))
    return values[torch.isfinite(values) & ~short & (values != values.round())]


def _are_in(values: torch.Tensor, ordered: torch.Tensor) -> torch.Tensor:
    """Return for each value whether it is among others, which are in order."""
    if not ordered.numel():
        return torch.zeros_like(values, dtype=torch.bool)
    return ordered[torch.searchsorted(ordered, values).clamp_(max=ordered.numel() - 1)] == values


def _had_before(result: Result, inputs: list[torch.Tensor], history: _History, new: _Novelty, only_first: bool) -> bool:
    """Return whether the host had a result in memory before a launch, and no kernel had written it earlier.

    only_first: look before the first launch alone.
    """
    alike = [one for one in inputs if one.numel() == result.expected.numel()]
    if any(result.accepts(one) for one in alike):
        return False  # a copy of an input is a right result
    straight = not any(_correlation(one, result.expected) > SIMILAR for one in alike)
    for _, record in history.walk():
        if record.by_kernel or (only_first and record.launch > 1):
            continue
        earlier = any(one.by_kernel and one.launch < record.launch for one in history.recorded)
        for held in _guess(record, result.expected.numel()):
            same = result.accepts(held) or (straight and _correlation(held, result.expected) > SAME)
            if same and (not earlier or not new.is_found(held, record.launch)):
                return True
    return False


def _read(data: memoryview, dtype: torch.dtype) -> list[torch.Tensor]:
    """Return the bytes as elements of a dtype, in a list that is empty if there is none."""
    count = len(data) // dtype.itemsize
    return [torch.frombuffer(bytearray(data), dtype=dtype, count=count)] if count else []


def _guess(record: Recorded, count: int) -> Iterator[torch.Tensor]:
    """Iterate over what so many elements at the beginning of a block may be."""
    for dtype in FLOATS:
        if len(record.data) >= count * dtype.itemsize:
            yield from (one[:count] for one in _read(record.data[: count * dtype.itemsize], dtype))


def _correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    """Return the absolute correlation of two tensors of as many elements; 0 if one is constant, not finite, or tiny, as
    integers are that are read as floats.
    """
    sides = []
    for values in (a.reshape(-1).double(), b.reshape(-1).double()):
        centred = values - values.mean()
        largest = float(centred.abs().max())
        if not TINY < largest < float("inf"):
            return 0.0
        sides.append(centred / largest)
    return float((sides[0] @ sides[1]).abs() / (sides[0].norm() * sides[1].norm()))
