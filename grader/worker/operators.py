"""Watches which of PyTorch's operators compute something with large tensors while a submission's code runs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from grader.worker.failures import NAME, shorten
from grader.worker.messages import MAX_OPERATORS, Operator

# Operators that allocate, fill, convert or move elements and compute nothing. Views are known by their schema.
MOVING = frozenset(
    "alias arange cat clone constant_pad_nd contiguous copy copy_ detach detach_ empty empty_like empty_strided eye "
    "fill fill_ flip full full_like gather im2col index index_put_ index_select is_same_size item lift lift_fresh "
    "lift_fresh_copy new_empty new_empty_strided new_full new_ones new_zeros ones ones_like record_stream repeat "
    "resize_ roll scalar_tensor set_ stack unfold zero_ zeros zeros_like _local_scalar_dense _pin_memory _to_copy "
    "_unsafe_view".split()
)


class OperatorWatch(TorchDispatchMode):
    """Collects the operators that compute with a tensor of at least so many elements.

    lines: for the name of each, the line of the file `path` that called it first, or None.
    """

    def __init__(self, least: int, path: str):
        super().__init__()
        self.least, self.path = least, path
        self.lines: dict[str, int | None] = {}

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        """Run the operator and note it."""
        result = func(*args, **(kwargs or {}))
        name = getattr(getattr(func, "overloadpacket", func), "__name__", "")
        if name not in MOVING and name not in self.lines and not getattr(func, "is_view", False):
            tensors = (one for one in tree_leaves((args, kwargs, result)) if isinstance(one, torch.Tensor))
            if any(tensor.numel() >= self.least for tensor in tensors):
                self.lines[name] = self._find_line()
        return result

    def _find_line(self) -> int | None:
        frame = sys._getframe()
        while frame is not None and frame.f_code.co_filename != self.path:
            frame = frame.f_back
        return frame.f_lineno if frame else None


def watch(least: int, path: str) -> contextlib.AbstractContextManager[OperatorWatch | None]:
    """Return a watch of operators on tensors of at least so many elements; one that sees nothing for 0."""
    return OperatorWatch(least, path) if least else contextlib.nullcontext()


def list_operators(watched: OperatorWatch | None) -> list[Operator]:
    """Return what a watch has collected, as many operators as are reported."""
    found = watched.lines if watched else {}
    return [Operator(shorten(name, NAME), line) for name, line in list(found.items())[:MAX_OPERATORS]]
