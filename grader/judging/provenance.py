"""Find out who computed a result first: a kernel, or the host's code, whatever language it is written in.

In a run with How(record=True) simt's runtime reports, before each launch, the bytes that the host has changed since the
launch before, and after it the elements that the kernels have changed. A result is the kernels' work if they are the
first to write its values to memory. If the host has them in memory before, kernels only pass them on; if no kernel writes
them, the host makes them from something else. Values that are copied, converted, cut or permuted after a kernel has
written them are still the kernel's.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from grader.judging.tolerance import compare
from grader.judging.trial import Trial
from simt.runtime.monitor import Recorded, Report

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
LEAST_VALUES = 16  # fewer say nothing
SHARE = 0.5  # of the values that have to be someone's
SAME = 1 - 1e-10  # of a correlation: what a scale, an offset and rounding in float32 leave
SIMILAR = 0.999  # of an input and the result: in such a problem a copy of the input looks like the result

HOST_FIRST = "Code on the host computes the results before a kernel is launched; the kernels only pass them on."
NO_WRITER = "No kernel writes the values that forward returns: code on the host computes them."


def find_host_work(trial: Trial, outputs: list[torch.Tensor], report: Report, least: int, strict: bool) -> str:
    """Return in one sentence how the host has computed a result of at least so many elements; empty if it has not.

    strict: look also for results that kernels scale or shift, and for results that no kernel writes.
    """
    if report.overflow or report.writes or not report.launches:
        return ""
    for number, (got, expected) in enumerate(zip(outputs, trial.expected)):
        if got.dtype not in FLOATS or got.device.type != "cpu" or got.numel() < max(least, LEAST_VALUES):
            continue
        new = _Novelty(trial, got.dtype)
        if _had_before(trial, number, expected, report, new, strict):
            return HOST_FIRST
        if strict and not new.is_found(got, [one for one in report.recorded if one.by_kernel]):
            return NO_WRITER
    return ""


class _Novelty:
    """Knows the values of the inputs, which both sides have from the start."""

    def __init__(self, trial: Trial, dtype: torch.dtype):
        given = [one for one in _floats(trial) if one.numel()]
        self.dtype = dtype
        self.known = torch.cat([one.reshape(-1).to(dtype) for one in given]).unique() if given else None

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


def _had_before(
    trial: Trial, number: int, expected: torch.Tensor, report: Report, new: _Novelty, strict: bool
) -> bool:
    """Return whether the host had a result in memory before a launch, and no kernel had written it earlier."""
    against = (trial.eager[number], trial.case, trial.noise[number])
    shape = list(expected.shape)
    alike = [one for one in _floats(trial) if one.numel() == expected.numel()]
    if any(_passes(one.reshape(shape), expected, against) for one in alike):
        return False  # a copy of an input is a right result
    straight = strict and not any(_correlation(one, expected) > SIMILAR for one in alike)
    for record in report.recorded:
        if record.by_kernel:
            continue
        for held in _guess(record, expected.numel()):
            values = held.reshape(shape)
            same = _passes(values, expected, against) or (straight and _correlation(held, expected) > SAME)
            earlier = [one for one in report.recorded if one.by_kernel and one.launch < record.launch]
            if same and (not earlier or not new.is_found(held, earlier)):
                return True
    return False


def _floats(trial: Trial) -> Iterator[torch.Tensor]:
    """Iterate over the case's floating inputs."""
    for value in trial.instance.inputs:
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            yield value


def _read(data: memoryview, dtype: torch.dtype) -> list[torch.Tensor]:
    """Return the bytes as elements of a dtype, in a list that is empty if there is none."""
    count = len(data) // dtype.itemsize
    return [torch.frombuffer(bytearray(data), dtype=dtype, count=count)] if count else []


def _guess(record: Recorded, count: int) -> Iterator[torch.Tensor]:
    """Iterate over what so many elements at the beginning of a block may be."""
    for dtype in FLOATS:
        if len(record.data) >= count * dtype.itemsize:
            yield from (one[:count] for one in _read(record.data[: count * dtype.itemsize], dtype))


def _passes(values: torch.Tensor, expected: torch.Tensor, against: tuple) -> bool:
    if not bool(torch.isfinite(values).all()):
        return False
    eager, case, noise = against
    return compare([values.to(eager.dtype)], [expected], [eager], case, [noise]) is None


def _correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    """Return the absolute correlation of two tensors of as many elements; 0 if one is constant or not finite."""
    one, other = a.reshape(-1).double(), b.reshape(-1).double()
    one, other = one - one.mean(), other - other.mean()
    found = float((one @ other).abs() / (one.norm() * other.norm()))
    return found if found == found else 0.0
