"""The runtime's library, through ctypes and without torch: the options that kernels run under, and what launches have left."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache

from . import build
from .devices import DEFAULT, DEVICES

GLOBAL_MARK = 0x7FC67FC6  # 32-bit words of memory that nobody wrote: a NaN as float32, its halves NaNs as float16 and bfloat16
SHARED_MARK = 0x7FC57FC5  # the same in shared memory

_GUARDS = {None: 0, "end": 1, "front": 2}


class _Options(threading.local):
    """What the next launches run under. threads: of the CPU; None: $SIMT_THREADS, or one a core."""

    schedule: str | int = "forward"
    guard: str | None = None
    seconds: float = 30.0
    device: str = os.environ.get("SIMT_DEVICE", DEFAULT)
    mode: str = "plain"
    threads: int | None = None


options = _Options()


def ignore_tensors(on: bool) -> None:
    """What guard_tensors is while no extension is loaded."""


guard_tensors: Callable[[bool], None] = ignore_tensors  # told whether a guard is on: simt/extension.py puts torch's allocator here


@lru_cache(maxsize=1)
def library() -> ctypes.PyDLL:
    """The runtime, in this process once. Its calls are short and keep the interpreter's lock."""
    loaded = ctypes.PyDLL(str(build.runtime() / "libsimt_runtime.so"))
    loaded.simt_set_options.argtypes = [ctypes.c_int, ctypes.c_ulonglong, ctypes.c_double, ctypes.c_int, ctypes.c_int]
    loaded.simt_set_device.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_longlong)]
    loaded.simt_now.restype = ctypes.c_ulonglong
    loaded.simt_leaks.argtypes = [ctypes.c_ulonglong]
    loaded.simt_count_begin.argtypes = [ctypes.c_uint64, ctypes.c_int]
    for name in ("set_options", "set_guard", "set_device", "count_begin"):
        getattr(loaded, f"simt_{name}").restype = None
    for name in ("take_findings", "take_atomics", "leaks", "take_launches", "count_take"):
        getattr(loaded, f"simt_{name}").restype = ctypes.c_char_p
    return loaded


# ---- options ----


def threads() -> int:
    """How many threads of the CPU to use: $SIMT_THREADS, or one a core. ValueError where the variable is no such number."""
    named = os.environ.get("SIMT_THREADS")
    if not named:
        return len(os.sched_getaffinity(0))
    if not re.fullmatch(r"0*[1-9][0-9]{0,5}", named.strip()):
        raise ValueError(f"SIMT_THREADS is {named!r}: set it to a whole number from 1 on, or unset it for one thread a core.")
    return int(named)


def apply() -> None:
    """Tells the runtime this thread's options."""
    runtime = library()
    kind = {"forward": 0, "reverse": 1}.get(options.schedule, 2)
    seed = int(options.schedule) & (2**64 - 1) if kind == 2 else 0
    runtime.simt_set_options(kind, seed, float(options.seconds), options.threads or threads(), build.MODES.index(options.mode))
    checked = options.mode == "check"  # bounds are checked against fenced memory that bears the mark when it is new
    guard = _GUARDS["end" if checked and options.guard is None else options.guard]
    runtime.simt_set_guard(guard)
    guard_tensors(guard != 0)
    if options.device not in DEVICES:
        raise ValueError(f"simt knows no device {options.device!r}: choose one of {', '.join(DEVICES)}.")
    name, *figures = DEVICES[options.device].fields()
    runtime.simt_set_device(name.encode(), (ctypes.c_longlong * len(figures))(*figures))


@contextlib.contextmanager
def run(
    schedule: str | int | None = None,
    guard: str | None = None,
    seconds: float | None = None,
    device: str | None = None,
    mode: str | None = None,
) -> Iterator[None]:
    """simt.run, for kernels that know no torch: those of programs."""
    names = ("schedule", "guard", "seconds", "device", "mode")
    before = {name: getattr(options, name) for name in names}
    if mode not in (None, *build.MODES):
        raise ValueError(f"mode is one of {', '.join(build.MODES)}, not {mode!r}.")
    if guard not in _GUARDS:
        raise ValueError(f"guard is None, 'end' or 'front', not {guard!r}.")
    options.guard = guard
    for name, value in zip(names, (schedule, guard, seconds, device, mode)):
        if value is not None:
            setattr(options, name, value)
    try:
        apply()
        yield
    finally:
        for name, value in before.items():
            setattr(options, name, value)
        apply()


# ---- what launches have left ----

Place = tuple[str, int]  # a module's path and an offset in it


def take_findings() -> list[dict]:
    """What checked launches found (Finding of src/check.h), and forgets it."""
    return _read(library().simt_take_findings())


def take_atomics() -> list[tuple[str, int, Place | None]]:
    """The kernel, kind and place of atomic operations that checked kernels executed, and forgets them."""
    return _read(library().simt_take_atomics())


def take_launches() -> list[tuple[str, tuple[int, int, int], tuple[int, int, int]]]:
    """(kernel, grid, block) of the launches since this was last called, oldest first, of many the last 16."""
    return _read(library().simt_take_launches())


def now() -> int:
    """A moment for leaks()."""
    return library().simt_now()


def leaks(since: int) -> list[tuple[int, Place | None]]:
    """Bytes that programs have allocated since a moment and not freed, and where."""
    return _read(library().simt_leaks(since))


def _read(text: bytes) -> list:
    return [_fixed(each) for each in json.loads(text.decode(errors="replace"))]


def _fixed(value):
    """Lists as tuples: coordinates are shown as such, and places are keys."""
    if isinstance(value, list):
        return tuple(map(_fixed, value))
    return {name: _fixed(each) for name, each in value.items()} if isinstance(value, dict) else value
