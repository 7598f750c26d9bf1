"""Capture and replay CUDA graphs without a GPU: a graph is the list of calls that the captured code made.

A capture runs the calls, because later ones need the shapes of their results, and then restores every tensor that was
there before it, as a GPU's capture runs nothing. A replay makes the calls again with the same tensors and copies what
they return into the tensors that the capture returned.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from simt.errors import NoGpu
from simt.runtime.torch_replaced import to_cpu
from simt.runtime.torch_streams import Stream, StreamContext, capturing

_BACKWARD = (torch.autograd.grad, torch.autograd.backward, torch.Tensor.backward)


def _find_tensors(values: object) -> list[torch.Tensor]:
    return [one for one in tree_leaves(values) if isinstance(one, torch.Tensor)]


def _read_bytes(storage: torch.UntypedStorage) -> bytes:
    """Return what the memory holds, without an operator of PyTorch, which the grader would count."""
    return ctypes.string_at(storage.data_ptr(), storage.nbytes()) if storage.device.type == "cpu" else b""


class _Recorder(TorchFunctionMode):
    """Records PyTorch's functions and those of extensions, each with its arguments and results, while it is active."""

    def __init__(self):
        super().__init__()
        self.calls: list[tuple[Callable, tuple, dict, object]] = []
        self.made: set[int] = set()
        self.before: dict[int, tuple[torch.UntypedStorage, bytes]] = {}
        self.inside = False

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in _BACKWARD:
            raise NoGpu("A backward in the capture of a CUDA graph")
        if getattr(function, "__name__", "") == "__get__":
            return function(*args, **(kwargs or {}))
        return self.call(function, args, kwargs or {})

    def call(self, function: Callable, args: tuple, kwargs: dict) -> object:
        """Make a call and record it, unless a recorded call makes it."""
        if self.inside:
            return function(*args, **kwargs)
        self.inside = True
        try:
            with torch._C.DisableTorchFunction():
                for tensor in _find_tensors((args, kwargs)):
                    self._keep(tensor.untyped_storage())
                result = function(*args, **kwargs)
                self.made |= {one.untyped_storage().data_ptr() for one in _find_tensors(result)} - self.before.keys()
        finally:
            self.inside = False
        self.calls.append((function, args, kwargs, result))
        return result

    def _keep(self, storage: torch.UntypedStorage) -> None:
        """Keep the bytes of memory that the capture has not allocated."""
        place = storage.data_ptr()
        if place not in self.made and place not in self.before:
            self.before[place] = (storage, _read_bytes(storage))

    def restore(self) -> None:
        """Restore what was there before the capture."""
        for storage, content in self.before.values():
            if storage.nbytes() == len(content) and _read_bytes(storage) != content:
                ctypes.memmove(storage.data_ptr(), content, len(content))
        self.before = {}


class CUDAGraph:
    """A graph of captured calls."""

    def __init__(self, keep_graph: bool = False):
        self.recorder: _Recorder | None = None
        self.captured = False

    def capture_begin(self, pool=None, capture_error_mode: str = "global") -> None:
        """Begin to record calls."""
        if capturing:
            raise RuntimeError("A CUDA graph is being captured already.")
        self.recorder, self.captured = _Recorder(), False
        self.recorder.__enter__()
        capturing.append(self.recorder)

    def capture_end(self) -> None:
        """Stop to record calls, and restore the tensors that were there before."""
        if self.recorder is None or capturing != [self.recorder]:
            raise RuntimeError("capture_end() needs a capture_begin() of the same graph.")
        capturing.clear()
        self.recorder.__exit__(None, None, None)
        self.recorder.restore()
        self.captured = True

    def replay(self) -> None:
        """Make the recorded calls again, on the same tensors."""
        if self.recorder is None or not self.captured:
            raise RuntimeError("replay() needs a captured graph. Capture one with torch.cuda.graph(graph).")
        with torch.no_grad():
            for function, args, kwargs, results in self.recorder.calls:
                again = function(*args, **kwargs)
                for old, new in zip(_find_tensors(results), _find_tensors(again)):
                    if new is not old and new.data_ptr() != old.data_ptr():
                        old.detach().copy_(new)

    def reset(self) -> None:
        """Forget the recorded calls."""
        self.recorder, self.captured = None, False

    def instantiate(self) -> None:
        """Do nothing: a captured graph can be replayed."""

    def pool(self) -> tuple[int, int]:
        """Return a handle for the argument pool."""
        return (0, 0)

    def enable_debug_mode(self) -> None:
        """Do nothing."""

    def debug_dump(self, debug_path: str) -> None:
        """Raise NoGpu."""
        raise NoGpu("CUDAGraph.debug_dump")


class graph:
    """Captures a graph in a with-block."""

    def __init__(self, cuda_graph: CUDAGraph, pool=None, stream: Stream | None = None, **_):
        self.cuda_graph = cuda_graph
        self.stream = StreamContext(stream if stream is not None else Stream())

    def __enter__(self) -> None:
        self.cuda_graph.capture_begin()
        self.stream.__enter__()

    def __exit__(self, *error) -> None:
        self.stream.__exit__(*error)
        self.cuda_graph.capture_end()


def record_extension(bound: dict) -> dict:
    """Return an extension's functions, so that a capture records their calls and a GPU's name means the CPU.

    Classes, whose methods are recorded already, and values stay as they are.
    """
    return {
        key: record(value) if callable(value) and not isinstance(value, type) else value for key, value in bound.items()
    }


def record(function: Callable) -> Callable:
    """Return a function of an extension as record_extension() does."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        if any(isinstance(value, torch.device) for value in (*args, *kwargs.values())):
            args, kwargs = tuple(map(to_cpu, args)), {key: to_cpu(value) for key, value in kwargs.items()}
        if capturing:
            return capturing[0].call(function, args, kwargs)
        return function(*args, **kwargs) if kwargs else function(*args)  # its errors tell the one from the other

    return call
