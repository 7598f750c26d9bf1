"""Make decoys from the right outputs of a case: constants, permutations, single errors, unwritten elements."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator

import torch

from grader.judging.trial import Trial
from grader.lint.attempt import DECOY, Attempt, Label

SMALL_ERROR = 0.01  # relative: no honest float32 computation is as far off, however the terms of a sum are ordered
VECTOR, TILE, BLOCK, FULL_BLOCK = 4, 32, 256, 1024  # elements of a float4, and usual numbers of threads
WHOLE_BLOCKS = "whole blocks"  # the group of decoys that only certain sizes reject
FIRST_BLOCK = f"only the first {FULL_BLOCK} elements written"
Edit = Callable[[torch.Tensor], torch.Tensor | None]


def make_output_decoys(trial: Trial) -> Iterator[Attempt]:
    """Return the decoys that edit one output of a case and leave its other outputs right."""
    for number, right in enumerate(trial.eager):
        where = f"output {number}: " if len(trial.eager) > 1 else ""
        for group, name, edit in (*_constants(trial, number), *_permutations(right), *_errors(right), *_gaps(right)):
            yield Attempt(Label(DECOY, group, where + name), functools.partial(_compute, trial, number, edit))


def make_copy_decoys(trial: Trial, trials: list[Trial]) -> Iterator[Attempt]:
    """Return the decoys that are another tensor at hand: an input, or the outputs of an earlier case.

    trials: all cases in order. An input counts if it has an output's shape in any case.
    """
    place = next((n for n, other in enumerate(trials) if other is trial), len(trials))
    previous = next((other for other in reversed(trials[:place]) if _shapes(other) == _shapes(trial)), None)
    if previous is not None:
        yield Attempt(Label(DECOY, "previous", "the outputs of an earlier case"), lambda: previous.eager)
    names = trial.instance.names()
    for (place, value), number in itertools.product(enumerate(trial.instance.inputs), range(len(trial.eager))):
        if isinstance(value, torch.Tensor) and any(_is_alike(other, place, number) for other in trials):
            where = f"output {number}: " if len(trial.eager) > 1 else ""
            label = Label(DECOY, "input", f"{where}the input `{names[place]}` unchanged")
            edit = functools.partial(_return_other, value)
            yield Attempt(label, functools.partial(_compute, trial, number, edit))


def _is_alike(trial: Trial, place: int, number: int) -> bool:
    """Return whether an input has an output's shape and dtype."""
    value, right = trial.instance.inputs[place], trial.eager[number]
    return isinstance(value, torch.Tensor) and (value.shape, value.dtype) == (right.shape, right.dtype)


def _shapes(trial: Trial) -> list[tuple[torch.Size, torch.dtype]]:
    return [(out.shape, out.dtype) for out in trial.eager]


def _compute(trial: Trial, number: int, edit: Edit) -> list[torch.Tensor] | None:
    edited = edit(trial.eager[number].clone())
    return None if edited is None else [*trial.eager[:number], edited, *trial.eager[number + 1 :]]


def _return_other(other: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return other


# --- constants -------------------------------------------------------------------------------------------------------


def _constants(trial: Trial, number: int) -> Iterator[tuple[str, str, Edit]]:
    yield "constant", "zeros", torch.zeros_like
    if trial.eager[number].numel() > 1:
        yield (
            "constant",
            "a constant (the mean of the expected output)",
            functools.partial(_fill_mean, trial.expected[number]),
        )


def _fill_mean(expected: torch.Tensor, right: torch.Tensor) -> torch.Tensor | None:
    if right.is_complex():
        return torch.full_like(right, complex(expected.mean()))
    finite = expected.double()[torch.isfinite(expected)]
    if not finite.numel():
        return None
    mean = float(finite.mean())
    return torch.full_like(right, mean if right.is_floating_point() else round(mean))


# --- permutations ----------------------------------------------------------------------------------------------------


def _permutations(right: torch.Tensor) -> Iterator[tuple[str, str, Edit]]:
    long = [d for d in range(right.dim()) if right.shape[d] > 1]
    for d in long:
        yield "permuted", f"dimension {d} shifted by one", functools.partial(torch.roll, shifts=1, dims=d)
    for a, b in itertools.combinations(long, 2):
        yield "permuted", f"dimensions {a} and {b} exchanged", functools.partial(_exchange, a, b)
    if long:
        yield "permuted", "the elements in reverse order", _reverse


def _exchange(a: int, b: int, right: torch.Tensor) -> torch.Tensor:
    """Store the transposed values in the memory of the right shape, as a kernel with exchanged strides does."""
    return right.transpose(a, b).reshape(right.shape)


def _reverse(right: torch.Tensor) -> torch.Tensor:
    return right.flatten().flip(0).view(right.shape)


# --- errors ----------------------------------------------------------------------------------------------------------


def _errors(right: torch.Tensor) -> Iterator[tuple[str, str, Edit]]:
    if right.is_floating_point():
        percent = f"{100 * SMALL_ERROR:.0f} %"
        yield "one element", f"one element wrong by {percent} of the root mean square", _spoil_one
        yield "one element", "one element NaN", _set_one_nan
        yield "scaled", f"all values {percent} too large", _scale
    elif not right.is_complex():
        yield "one element", "one element off by one", _step_one


def _find_place(flat: torch.Tensor) -> int | None:
    """Return the index of the finite element nearest to the middle; None if there is none."""
    finite = torch.isfinite(flat).nonzero().flatten()
    return int(finite[len(finite) // 2]) if len(finite) else None


def _spoil_one(right: torch.Tensor) -> torch.Tensor | None:
    place = _find_place(right.flatten())
    if place is None:
        return None
    size = float(right[torch.isfinite(right)].double().square().mean().sqrt())
    right.view(-1)[place] += SMALL_ERROR * size
    return right


def _set_one_nan(right: torch.Tensor) -> torch.Tensor | None:
    place = _find_place(right.flatten())
    if place is None:
        return None
    right.view(-1)[place] = float("nan")
    return right


def _step_one(right: torch.Tensor) -> torch.Tensor:
    flat = right.view(-1)
    flat[len(flat) // 2] = ~flat[len(flat) // 2] if right.dtype == torch.bool else flat[len(flat) // 2] + 1
    return right


def _scale(right: torch.Tensor) -> torch.Tensor:
    return right * (1 + SMALL_ERROR)


# --- gaps ------------------------------------------------------------------------------------------------------------


def _gaps(right: torch.Tensor) -> Iterator[tuple[str, str, Edit]]:
    """Unwritten elements, which hold 0 in fresh memory, or NaN where the memory was poisoned."""
    for d in range(right.dim()):
        if right.shape[d] > 1:
            yield "unwritten", f"the last index of dimension {d} left at 0", functools.partial(_drop_last, d, 0)
        if right.shape[d] > 1 and right.is_floating_point():
            yield (
                "unwritten",
                f"the last index of dimension {d} left at NaN",
                functools.partial(_drop_last, d, float("nan")),
            )
        name = f"dimension {d} written in whole tiles of {TILE} only"
        yield WHOLE_BLOCKS, name, functools.partial(_drop_rest, d, TILE)
    for size in (VECTOR, BLOCK):
        yield (
            WHOLE_BLOCKS,
            f"written in whole blocks of {size} elements only",
            functools.partial(_drop_rest, None, size),
        )
    yield WHOLE_BLOCKS, FIRST_BLOCK, _keep_first


def _drop_last(dimension: int, value: float, right: torch.Tensor) -> torch.Tensor:
    right.select(dimension, -1).fill_(value)
    return right


def _drop_rest(dimension: int | None, size: int, right: torch.Tensor) -> torch.Tensor:
    """Zero what lies behind the last whole tile, along a dimension or of all elements in a row (None)."""
    whole, d = (right.view(-1), 0) if dimension is None else (right, dimension)
    kept = whole.shape[d] // size * size
    whole.narrow(d, kept, whole.shape[d] - kept).zero_()
    return right


def _keep_first(right: torch.Tensor) -> torch.Tensor:
    right.view(-1)[FULL_BLOCK:].zero_()
    return right
