"""Find out who computed a result first: a kernel, or the host's code, whatever language it is written in.

In a run with How(unseen=…) simt's runtime reports before each launch the bytes that the host has changed since the
last one, and after it the elements that the kernel has changed. A result is the kernels' work if they are the first to
write its values to memory. If the host has them in memory before, kernels only pass them on; if no kernel writes them,
the host makes them from something else. Values that are copied, converted, cut or permuted after a kernel has written
them are still the kernel's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import torch

from grader.judging.tolerance import compare
from grader.problems.cases import Case
from simt.runtime.monitor import Recorded, Report

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
LEAST_VALUES = 16  # fewer say nothing
SHARE = 0.5  # of the values that have to be someone's
SAME = 1 - 1e-10  # of a correlation: what a scale, an offset and rounding in float32 leave
TINY = 1e-30
SIMILAR = 0.999  # of an input and the result: in such a problem a copy of the input looks like the result

HOST_FIRST = "Code on the host computes the results before a kernel is launched; the kernels only pass them on."
TOO_MUCH = (
    "The grader cannot see who computes the results, because too much memory is written: allocate fewer or smaller "
    "tensors."
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


def find_host_work(results: list[Result], given: list, report: Report, least: int, summed: bool = False) -> str:
    """Return in one sentence how the host has computed a result, or why that cannot be known; empty if it has not.

    given: what the run got, tensors among it. least: elements from which on the host may not compute a tensor from
    others; below, it may add up a few partial sums of kernels. summed: the host may have added results of kernels.
    """
    if report.overflow:
        return TOO_MUCH
    inputs = [one for one in given if isinstance(one, torch.Tensor) and one.is_floating_point() and one.numel()]
    for result in results:
        got = result.got
        if got.dtype not in FLOATS or got.device.type != "cpu" or got.numel() < LEAST_VALUES:
            continue
        new = _Novelty(inputs, got.dtype)
        if _had_before(result, inputs, report, new, got.numel() < least):
            return HOST_FIRST
        by_kernels = [one for one in report.recorded if one.by_kernel]
        if got.numel() >= least and not summed and not new.is_found(got, by_kernels):
            return NO_WRITER
    return ""


class _Novelty:
    """Knows the values of the inputs, which both sides have from the start."""

    def __init__(self, inputs: list[torch.Tensor], dtype: torch.dtype):
        self.dtype = dtype
        self.known = torch.cat([one.reshape(-1).to(dtype) for one in inputs]).unique() if inputs else None

    def is_found(self, values: torch.Tensor, written: list[Recorded]) -> bool:
        """Return whether those of the values that are new are among what was written, by and large."""
        new = values.reshape(-1).to(self.dtype)
        new = new[torch.isfinite(new) & (new != 0)]
        if self.known is not None:
            new = new[~torch.isin(new, self.known)]
        if new.numel() < LEAST_VALUES:
            return True
        missing = new
        for dtype in FLOATS:
            pieces = [one for record in written for one in _read(record.data, dtype)]
            if pieces and missing.numel():
                missing = missing[~torch.isin(missing, torch.cat(pieces).to(self.dtype))]
        return missing.numel() <= (1 - SHARE) * new.numel()


def _had_before(result: Result, inputs: list[torch.Tensor], report: Report, new: _Novelty, only_first: bool) -> bool:
    """Return whether the host had a result in memory before a launch, and no kernel had written it earlier.

    only_first: look before the first launch alone.
    """
    alike = [one for one in inputs if one.numel() == result.expected.numel()]
    if any(result.accepts(one) for one in alike):
        return False  # a copy of an input is a right result
    straight = not any(_correlation(one, result.expected) > SIMILAR for one in alike)
    for record in report.recorded:
        if record.by_kernel or (only_first and record.launch > 1):
            continue
        earlier = [one for one in report.recorded if one.by_kernel and one.launch < record.launch]
        for held in _guess(record, result.expected.numel()):
            same = result.accepts(held) or (straight and _correlation(held, result.expected) > SAME)
            if same and (not earlier or not new.is_found(held, earlier)):
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
