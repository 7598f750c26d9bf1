"""What the tests do to a problem's inputs, some of which may be no tensors: a number, say, or None."""

import copy
from collections.abc import Sequence

import torch


def is_floating(x) -> bool:
    """Whether x is a tensor that may have a gradient."""
    return isinstance(x, torch.Tensor) and x.is_floating_point()


def copied(inputs: Sequence) -> list:
    return [x.clone() if isinstance(x, torch.Tensor) else copy.deepcopy(x) for x in inputs]


def same(a, b) -> bool:
    """Whether two inputs have the same values, NaN where the other has NaN."""
    return torch.allclose(a, b, rtol=0, atol=0, equal_nan=True) if isinstance(a, torch.Tensor) else a == b


def to(inputs: Sequence, dtype: torch.dtype) -> list:
    """The inputs, each floating tensor in this dtype."""
    return [x.to(dtype) if is_floating(x) else x for x in inputs]


def without_images(instance) -> list:
    """The inputs of an empty batch: the first tensor has no rows or, where Model takes that by itself for none, nor has
    any that had as many.
    """
    first = next(x for x in instance.inputs if isinstance(x, torch.Tensor))
    alone = [x[:0] if x is first else x for x in instance.inputs]
    try:
        with torch.no_grad():
            instance.model(*alone)
        return alone
    except (RuntimeError, IndexError):
        return [
            x[:0] if isinstance(x, torch.Tensor) and x.dim() and len(x) == len(first) else x for x in instance.inputs
        ]
