"""How a tensor lies in memory: its strides, the memory that it covers, and changes that keep both."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch


def find_strides(tensor: torch.Tensor) -> list[int] | None:
    """Return a tensor's strides in elements; None where they are those of a new tensor of its shape."""
    plain, step = [], 1
    for size in reversed(tensor.shape):
        plain.append(step)
        step *= size
    strides = list(tensor.stride())
    return None if not tensor.numel() or strides == plain[::-1] else strides


def count_covered(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return how many elements lie between the first and the last of a tensor that is not empty, with both."""
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))


def view_memory(tensor: torch.Tensor) -> torch.Tensor:
    """Return the memory that a tensor covers as a view of one dimension.

    An element that the tensor repeats is there once, and what lies between two of its elements is there too.
    """
    strides = find_strides(tensor)
    return tensor.view(-1) if strides is None else tensor.as_strided((count_covered(tensor.shape, strides),), (1,))


def lay_out(memory: torch.Tensor, shape: Sequence[int], strides: Sequence[int] | None) -> torch.Tensor:
    """Return a view of one-dimensional memory with this shape, and strides as find_strides() returns them."""
    return memory.view(shape) if strides is None else memory.as_strided(shape, strides)


def change_values(tensor: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Return a tensor with the same strides, whose values are what `change` makes of this one's.

    change: returns a new tensor of its argument's shape. Where the tensor is not contiguous, it is called on the memory
    that the tensor covers.
    """
    strides = find_strides(tensor)
    return change(tensor) if strides is None else lay_out(change(view_memory(tensor)), tensor.shape, strides)


def copy_values_into(target: torch.Tensor, source: torch.Tensor) -> None:
    """Write the source's values into the target, a tensor of its shape, whose elements may be repeated as its are."""
    if target.stride() == source.stride():
        target, source = view_memory(target), view_memory(source)
    target.copy_(source)
