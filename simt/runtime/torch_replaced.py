"""Replace torch's functions where there is no GPU, in the threads that want it."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._guards

_NAMES_OF_GPU = ("cuda", "cuda:0")


class State(threading.local):
    """on: how many users in this thread want the replaced functions. A thread starts with what its starter has."""

    on = 0


state = State()
replaced: list[tuple[object, str, object]] = []
MISSING = object()


_own_is_available = torch.cuda.is_available


@functools.cache
def has_gpu() -> bool:
    """Return whether torch finds a GPU, whatever torch.cuda.is_available() says now."""
    return _own_is_available()


def is_on() -> bool:
    """Return whether "cuda" means the CPU in this thread now. torch's compiler sees the device as it is."""
    return state.on > 0 and getattr(torch._guards._TLS, "tracing_context", None) is None


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """Let "cuda" mean what it means to torch in the with-block."""
    before, state.on = state.on, 0
    try:
        yield
    finally:
        state.on = before


def to_cpu(place: Any) -> Any:
    """Return the CPU for the GPU's device or name, and any other value as it is. Raises RuntimeError for cuda:1."""
    if isinstance(place, str):
        return "cpu" if place in _NAMES_OF_GPU else refuse_second(place)
    if isinstance(place, torch.device) and place.type == "cuda":
        refuse_second(str(place))
        return torch.device("cpu")
    return place


def refuse_second(name: str) -> str:
    if name.startswith("cuda:") and name not in _NAMES_OF_GPU:
        raise RuntimeError(f"CUDA error: invalid device ordinal: {name}. There is one device, cuda:0.")
    return name


def replace(owner: object, name: str, value: object) -> None:
    """Set an attribute until disable()."""
    replaced.append((owner, name, vars(owner).get(name, MISSING)))
    setattr(owner, name, value)


def choose(stand_in: Callable, own: Callable) -> Callable:
    """Return a function that calls the stand-in where "cuda" means the CPU, and torch's own elsewhere."""

    @functools.wraps(own)
    def call(*args, **kwargs):
        return (stand_in if is_on() else own)(*args, **kwargs)

    return call
