"""Load the runtime library through ctypes, without torch; set options of launches and read what they recorded."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import resource
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache

from simt.devices import DEVICES, Device, find_name, read_default
from simt.toolchain.compilers import MODES
from simt.toolchain.runtime_library import load_runtime

# The 32-bit pattern of memory that was never written: a NaN as float32, its halves NaNs as float16 and bfloat16
GLOBAL_MARK = 0x7FC67FC6
SHARED_MARK = 0x7FC57FC5  # the same in shared memory

_GUARDS = {None: 0, "end": 1, "front": 2}


class _Options(threading.local):
    """The options of the next launches.

    device: a GPU's name, or None for $SIMT_DEVICE or the default one. threads: of the CPU, or None for $SIMT_THREADS or
    one thread per core.
    """

    schedule: str | int = "forward"
    guard: str | None = None
    seconds: float = 30.0
    device: str | None = None
    mode: str = "plain"
    threads: int | None = None
    idle: bool = False

    def find_device(self) -> Device:
        """Return the GPU whose limits apply. Raises UnknownDevice."""
        return DEVICES[read_default() if self.device is None else find_name(self.device)]


options = _Options()


def ignore_tensors(on: bool) -> None:
    """Do nothing. Without an extension there are no tensors."""


# Turns guarding of new tensors on or off. simt/runtime/extension.py sets it to the hook of torch's allocator.
guard_tensors: Callable[[bool], None] = ignore_tensors


@lru_cache(maxsize=1)
def load_library() -> ctypes.PyDLL:
    """Load the runtime once per process. Its functions are short, so they keep the interpreter's lock."""
    loaded = load_runtime(ctypes.PyDLL)
    loaded.simt_set_options.argtypes = [ctypes.c_int, ctypes.c_ulonglong, ctypes.c_double, *[ctypes.c_int] * 3]
    loaded.simt_set_device.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_longlong)]
    loaded.simt_now.restype = ctypes.c_ulonglong
    loaded.simt_leaks.argtypes = [ctypes.c_ulonglong]
    loaded.simt_count_begin.argtypes = [ctypes.c_uint64, ctypes.c_int]
    loaded.simt_open_monitor.argtypes = [ctypes.c_int] * 3
    for name in ("set_options", "set_guard", "set_device", "count_begin", "free_memory"):
        getattr(loaded, f"simt_{name}").restype = None
    for name in ("take_findings", "take_atomics", "leaks", "take_launches", "count_take", "input_writes"):
        getattr(loaded, f"simt_{name}").restype = ctypes.c_char_p
    return loaded


# ---- options ----


ADDRESS_SPACE_PER_THREAD = 2 << 30  # bytes, where a limit holds for it: stacks, malloc's areas and the checks' records


def read_threads() -> int:
    """Return the number of CPU threads to use: $SIMT_THREADS, or one per core.

    Where the process's address space is limited (ulimit -v), it is at most one per ADDRESS_SPACE_PER_THREAD bytes.
    Raises ValueError if the variable is not a positive integer.
    """
    named = os.environ.get("SIMT_THREADS")
    if named and not re.fullmatch(r"0*[1-9][0-9]{0,5}", named.strip()):
        raise ValueError(
            f"SIMT_THREADS is {named!r}. Set it to a positive integer, or unset it for one thread per core."
        )
    wanted = int(named) if named else len(os.sched_getaffinity(0))
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return wanted if limit == resource.RLIM_INFINITY else min(wanted, max(1, limit // ADDRESS_SPACE_PER_THREAD))


def apply_options() -> None:
    """Pass this thread's options to the runtime."""
    runtime = load_library()
    kind = {"forward": 0, "reverse": 1}.get(str(options.schedule), 2)
    seed = int(options.schedule) & (2**64 - 1) if kind == 2 else 0
    threads, mode = options.threads or read_threads(), MODES.index(options.mode)
    runtime.simt_set_options(kind, seed, float(options.seconds), threads, mode, options.idle)
    checked = options.mode == "check"  # needs fenced memory, which is poisoned when it is new
    guard = _GUARDS["end" if checked and options.guard is None else options.guard]
    runtime.simt_set_guard(guard)
    guard_tensors(guard != 0)
    name, *figures = options.find_device().fields()
    runtime.simt_set_device(name.encode(), (ctypes.c_longlong * len(figures))(*figures))


@contextlib.contextmanager
def run(
    schedule: str | int | None = None,
    guard: str | None = None,
    seconds: float | None = None,
    device: str | None = None,
    mode: str | None = None,
    idle: bool | None = None,
) -> Iterator[None]:
    """Set options as simt.run() does, without torch, for the kernels of programs."""
    names = ("schedule", "guard", "seconds", "device", "mode", "idle")
    before = {name: getattr(options, name) for name in names}
    if mode not in (None, *MODES):
        raise ValueError(f"Unknown mode {mode!r}. Choose one of {', '.join(MODES)}.")
    if guard not in _GUARDS:
        raise ValueError(f"Unknown guard {guard!r}. Choose None, 'end' or 'front'.")
    options.guard = guard
    for name, value in zip(names, (schedule, guard, seconds, device, mode, idle)):
        if value is not None:
            setattr(options, name, value)
    try:
        apply_options()
        yield
    finally:
        for name, value in before.items():
            setattr(options, name, value)
        apply_options()


def obey_monitor(orders: int, report: int, inputs: int) -> bool:
    """Have this process obey a monitor from now on (simt/runtime/monitor.py), by the descriptors that it inherited.

    Its orders come before the options. The first two descriptors are closed. Return False if there is one already.
    """
    return bool(load_library().simt_open_monitor(orders, report, inputs))


# ---- what launches recorded ----

Place = tuple[str, int]  # a module's path and an offset in it


def take_findings() -> list[dict]:
    """Return the findings of checked launches (struct Finding in simt/src) and forget them."""
    return decode(load_library().simt_take_findings())


def take_atomics() -> list[tuple[str, int, Place | None]]:
    """Return the kernel, kind and place of the atomic operations of checked kernels and forget them."""
    return decode(load_library().simt_take_atomics())


def take_launches() -> list[tuple[str, tuple[int, int, int], tuple[int, int, int]]]:
    """Return (kernel, grid, block) of the launches since the last call: at most the last 16, oldest first."""
    return decode(load_library().simt_take_launches())


def input_writes() -> list[tuple[int, str, tuple | None, tuple | None, Place | None]]:
    """Return the offset, kernel, block, thread and place of the first write to each input of a monitor."""
    return decode(load_library().simt_input_writes())


def now() -> int:
    """Return the current moment, to pass to leaks()."""
    return load_library().simt_now()


def leaks(since: int) -> list[tuple[int, Place | None]]:
    """Return the size and place of each allocation since a moment that the program has not freed."""
    return decode(load_library().simt_leaks(since))


def free_programs_memory() -> None:
    """Free the device memory that a program has left allocated. The program has ended, and its leaks are known."""
    load_library().simt_free_memory()


def decode(text: bytes) -> list:
    """Return what a text of the runtime's says, with tuples for lists."""
    return [_to_tuples(each) for each in json.loads(text.decode(errors="replace"))]


def _to_tuples(value):
    """Convert lists to tuples: messages show coordinates as tuples, and places are dictionary keys."""
    if isinstance(value, list):
        return tuple(map(_to_tuples, value))
    return {name: _to_tuples(each) for name, each in value.items()} if isinstance(value, dict) else value
