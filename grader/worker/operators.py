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

# Operators that allocate, fill, convert or move elements and compute nothing. Views are known by their schema or tags.
MOVING = frozenset(
    "_foreach_copy_ _local_scalar_dense _pin_memory _to_copy _unsafe_view alias arange as_strided_scatter block_diag "
    "cat channel_shuffle clone constant_pad_nd contiguous copy copy_ detach detach_ diagonal_scatter empty empty_like "
    "empty_permuted empty_strided eye fill fill_ flip full full_like gather im2col index index_copy index_copy_ "
    "index_put_ index_select is_same_size item lift lift_fresh lift_fresh_copy new_empty new_empty_strided new_full "
    "new_ones new_zeros ones ones_like pixel_shuffle pixel_unshuffle record_stream reflection_pad1d reflection_pad2d "
    "reflection_pad3d repeat replication_pad1d replication_pad2d replication_pad3d resize_ roll rot90 scalar_tensor "
    "select_scatter set_ slice_scatter stack take unfold zero_ zeros zeros_like".split()
)

# Their results are views, or copies of views.
VIEWING = {torch.Tag.inplace_view, torch.Tag.view_copy}
# The namespaces of PyTorch's own operators: this module is loaded before the submission, which may add others.
OF_TORCH = frozenset(name.partition("::")[0] for name in torch._C._dispatch_get_all_op_names())


class OperatorWatch(TorchDispatchMode):
    """Collects PyTorch's operators that compute with a tensor of at least so many elements.

    An operator that the submission has registered itself is not one of them, but those that it calls are.
    lines: for the name of each, the line of the file `path` that called it first, or None.
    """

    def __init__(self, least: int, path: str):
        super().__init__()
        self.least, self.path = least, path
        self.lines: dict[str, int | None] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: PyTorch would load its compiler, which takes long, to keep it out of __torch_dispatch__."""
        return False

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        """Run the operator and note it."""
        if getattr(func, "namespace", "aten") not in OF_TORCH:
            return self._run_own(func, args, kwargs or {})
        result = func(*args, **(kwargs or {}))
        name = getattr(getattr(func, "overloadpacket", func), "__name__", "")
        if name not in MOVING and name not in self.lines and not _is_view(func):
            tensors = _find_tensors((args, kwargs, result))
            if any(tensor.numel() >= self.least for tensor in tensors):
                self.lines[name] = self._find_line()
        return result

    def _run_own(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """Run an operator of the submission's own with the watch on, as this method is called with the watch off."""
        device = next((tensor.device.type for tensor in _find_tensors((args, kwargs))), "")
        keys = {"cpu": torch._C.DispatchKey.CPU, "cuda": torch._C.DispatchKey.CUDA}
        if device not in keys:
            return func(*args, **kwargs)
        with self:
            return func.redispatch(torch._C.DispatchKeySet(keys[device]), *args, **kwargs)

    def _find_line(self) -> int | None:
        frame = sys._getframe()
        while frame is not None and frame.f_code.co_filename != self.path:
            frame = frame.f_back
        return frame.f_lineno if frame else None


class CompilingWatch(OperatorWatch):
    """The same where a submission has loaded PyTorch's compiler, which must be kept out of __torch_dispatch__.

    PyTorch does so for the classes that define this method themselves.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return True."""
        return True

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        return super().__torch_dispatch__(func, types, args, kwargs)


def _find_tensors(values: object) -> list[torch.Tensor]:
    return [one for one in tree_leaves(values) if isinstance(one, torch.Tensor)]


def _is_view(func: Any) -> bool:
    return getattr(func, "is_view", False) or not VIEWING.isdisjoint(getattr(func, "tags", ()))


def watch(least: int, path: str) -> contextlib.AbstractContextManager[OperatorWatch | None]:
    """Return a watch of operators on tensors of at least so many elements; one that sees nothing for 0."""
    if not least:
        return contextlib.nullcontext()
    return (CompilingWatch if "torch._dynamo" in sys.modules else OperatorWatch)(least, path)


def list_operators(watched: OperatorWatch | None) -> list[Operator]:
    """Return what a watch has collected, as many operators as are reported."""
    found = watched.lines if watched else {}
    return [Operator(shorten(name, NAME), line) for name, line in list(found.items())[:MAX_OPERATORS]]
