"""The values that go into a model and come out of it: as lists of tensors, copied, in float64, slightly perturbed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeGuard

import torch

from grader.worker import protocol
from grader.worker.layout import change_values, view_memory

MOST_AT_ONCE = 2**28  # random numbers drawn at once: a copy more of the largest inputs does not fit some GPUs
MOST_COMPARED = 2**26  # elements of a difference computed at once, for the same reason


def flatten(outputs: object) -> list[torch.Tensor]:
    """Return a model's result as a list of tensors, from any nest of tuples, lists and dicts of tensors and numbers."""
    return [tensor.detach() for tensor in ends(outputs)]


def ends(outputs: object) -> list[torch.Tensor]:
    """Return the tensors of a result, with the graph that they carry. Raises TypeError for what cannot be compared."""
    found: list[torch.Tensor] = []
    for end in protocol.tensors(outputs):
        what = protocol.unfit(end)
        if not isinstance(end, torch.Tensor):
            what = what or f"a {type(end).__name__}"
        elif is_narrow(end):  # one digit: no tolerance tells a wrong one from a right one
            what = f"a tensor of dtype {protocol.name_of(end.dtype)}"
        if what or not isinstance(end, torch.Tensor):
            raise TypeError(f"a model returns dense tensors of the usual dtypes, or numbers, not {what}")
        found.append(end)
    return found


def find_tensors(values: object) -> list[torch.Tensor]:
    """Return the tensors in a value, a list or a nest of lists."""
    if isinstance(values, torch.Tensor):
        return [values]
    return [t for value in values for t in find_tensors(value)] if isinstance(values, (list, tuple)) else []


def copy_values(inputs: list) -> list:
    """Return the inputs with copies of the tensors, which have their strides."""
    return [change_values(value, torch.clone) if isinstance(value, torch.Tensor) else value for value in inputs]


def is_floating(value: object) -> TypeGuard[torch.Tensor]:
    """Return whether a value is a tensor of floats that torch draws, rounds and adds.

    Floats of 8 bits are not: torch stores and converts them. Like integers, they keep the values of the file.
    """
    return isinstance(value, torch.Tensor) and value.is_floating_point() and not is_narrow(value)


def is_narrow(value: torch.Tensor) -> bool:
    """Return whether a tensor has floats of 8 bits."""
    return value.is_floating_point() and value.element_size() == 1


def roll_values(inputs: list) -> list:
    """Return the inputs with each floating tensor's values moved on by one place; all tensors' if none is floating.

    Integers next to floating tensors tend to be indices, which in another order may mean nothing, to Model either.
    """
    return _change_each(inputs, _roll)


def repeat_values(inputs: list) -> list:
    """Return the inputs with the first half of each tensor's values in place of the second, in the same tensors."""
    return _change_each(inputs, _repeat)


def _change_each(inputs: list, change: Callable[[torch.Tensor], torch.Tensor]) -> list:
    floats = [is_floating(value) for value in inputs]
    changed = floats if any(floats) else [isinstance(value, torch.Tensor) for value in inputs]
    return [change_values(value, change) if one else value for value, one in zip(inputs, changed)]


def _roll(value: torch.Tensor) -> torch.Tensor:
    return value.flatten().roll(1).view(value.shape)


def _repeat(value: torch.Tensor) -> torch.Tensor:
    values, half = value.flatten().clone(), value.numel() // 2
    values[half : 2 * half] = values[:half]
    return values.view(value.shape)


def differ(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    """Return whether results differ by more than the order of sums explains."""
    if [(x.shape, x.dtype) for x in a] != [(x.shape, x.dtype) for x in b]:
        return True
    for x, y in zip(a, b):
        x, y = x.double().nan_to_num(), y.double().nan_to_num()
        if x.numel() and (x - y).abs().max() > 1e-4 * x.abs().max():
            return True
    return False


def measure_distance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return |a - b| in float32, 0 where that is not finite or the tensors are not floating.

    Neither is written to: one gradient may be another's memory, or show one number at many places. The difference is
    computed in pieces, so that a full size needs no third tensor in float64.
    """
    distance = torch.zeros(a.shape, dtype=torch.float32, device=a.device)
    if not a.is_floating_point() or a.shape != b.shape or not a.numel():
        return distance
    pieces, a, b = torch.atleast_1d(distance, a, b)
    rows = max(1, MOST_COMPARED // a[0].numel())
    for piece, one, other in zip(pieces.split(rows), a.split(rows), b.split(rows), strict=True):
        piece.copy_((one - other).abs_()).nan_to_num_(0.0, 0.0, 0.0)
    return distance


def convert_to_double(inputs: list) -> list:
    """Return copies of the inputs, the floating ones in float64."""
    copies = copy_values(inputs)
    return [change_values(value, torch.Tensor.double) if is_floating(value) else value for value in copies]


def make_double(model: torch.nn.Module) -> torch.nn.Module:
    """Convert the model to float64, with the plain tensors that its modules hold as attributes; return it."""
    model = model.double()
    for part in model.modules():
        for name, value in list(vars(part).items()):
            if is_floating(value):
                setattr(part, name, value.double())
    return model


@contextlib.contextmanager
def double_by_default() -> Iterator[None]:
    """Make the tensors that a model's forward creates float64 inside."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def exact_float32() -> Iterator[None]:
    """Compute convolutions and products in full float32 inside: eager's TF32 default must not widen the tolerance."""
    convolution, product = torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()
    torch.backends.cudnn.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = convolution
        torch.set_float32_matmul_precision(product)


def perturb(model: torch.nn.Module, inputs: list, unit: float) -> None:
    """Multiply every floating input and weight by 1 + unit * (a normal number), in place, from a fixed seed."""
    floating = [value for value in [*inputs, *model.parameters()] if is_floating(value)]
    for number, tensor in enumerate(floating):
        generator = torch.Generator(tensor.device).manual_seed(number)
        with torch.no_grad():
            for part in view_memory(tensor.detach()).split(MOST_AT_ONCE):
                noise = torch.randn(part.shape, dtype=tensor.dtype, device=tensor.device, generator=generator)
                part.mul_(noise.mul_(unit).add_(1))
