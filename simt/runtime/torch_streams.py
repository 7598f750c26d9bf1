"""Provide torch.cuda's streams and events without a GPU: work is done in the program's order, before a call returns."""

from __future__ import annotations

import itertools
import time

import torch

GPU = torch.device("cuda", 0)
# Handles that no program takes for null, cudaStreamLegacy or cudaStreamPerThread. simt's C++ side never reads them.
_HANDLES = itertools.count(4096, 64)


capturing: list = []  # what records the capture of a graph, if one is being captured


def is_capturing() -> bool:
    """Return whether a graph is being captured."""
    return bool(capturing)


class Stream:
    """A stream. cuda_stream: the handle for C++, 0 for the default stream."""

    def __init__(self, device=None, priority: int = 0, stream_id=None, device_index=None, device_type=None, **_):
        self.device, self.device_index, self.device_type = GPU, 0, 1
        self.priority = priority
        self.cuda_stream = next(_HANDLES) if stream_id is None else stream_id

    @property
    def stream_id(self) -> int:
        """Return the handle."""
        return self.cuda_stream

    @property
    def _as_parameter_(self):
        import ctypes

        return ctypes.c_void_p(self.cuda_stream)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Return the lowest and the highest priority, as of most GPUs."""
        return (0, -5)

    def wait_event(self, event) -> None:
        """Do nothing: what the event follows is done."""

    def wait_stream(self, stream) -> None:
        """Do nothing: what the other stream had to do is done."""

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one if none is given, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Return True: all work is done."""
        return True

    def synchronize(self) -> None:
        """Do nothing: all work is done."""

    def is_capturing(self) -> bool:
        """Return whether a graph is being captured."""
        return is_capturing()

    def __eq__(self, other) -> bool:
        return isinstance(other, Stream) and self.cuda_stream == other.cuda_stream

    def __hash__(self) -> int:
        return hash(self.cuda_stream)

    def __enter__(self) -> Stream:
        self._context = StreamContext(self)
        self._context.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._context.__exit__(*error)

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device=cuda:0 cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that C++ has made."""

    def __init__(self, stream_ptr: int, device=None, **_):
        super().__init__(stream_id=int(stream_ptr))


_default = Stream(stream_id=0)
_current = [_default]


class Event:
    """An event. Its time is the CPU's, so it measures how long the CPU took."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        self.device, self.timed = GPU, enable_timing
        self.seconds: float | None = None
        self.cuda_event = next(_HANDLES)

    def record(self, stream=None) -> None:
        """Note the time."""
        self.seconds = time.perf_counter()

    def wait(self, stream=None) -> None:
        """Do nothing: what the event follows is done."""

    def query(self) -> bool:
        """Return True: what the event follows is done."""
        return True

    def synchronize(self) -> None:
        """Do nothing: what the event follows is done."""

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds between two recorded events that were made with enable_timing=True."""
        if not (self.timed and end_event.timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.seconds is None or end_event.seconds is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event.seconds - self.seconds) * 1e3

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {self.cuda_event:#x}>"


class DeviceEvent(Event):
    """torch.Event, which takes a device."""

    def __init__(self, device=None, **options):
        super().__init__(**options)


class StreamContext:
    """Makes a stream the current one in a with-block; None changes nothing."""

    def __init__(self, stream: Stream | None):
        self.stream = stream
        self.before: list[Stream] = []

    def __enter__(self) -> None:
        self.before.append(_current[0])
        if self.stream is not None:
            _current[0] = self.stream

    def __exit__(self, *error) -> None:
        _current[0] = self.before.pop()


def set_stream(stream: Stream | None) -> None:
    """Make a stream the current one."""
    if stream is not None:
        _current[0] = stream


def current_stream(device=None) -> Stream:
    """Return the current stream."""
    return _current[0]


def default_stream(device=None) -> Stream:
    """Return the default stream."""
    return _default
