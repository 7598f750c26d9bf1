"""Handle signals to end: each raises an exception that no import discards."""

from __future__ import annotations

import contextlib
import importlib.machinery
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType, ModuleType

from grader.cli.statuses import end_interrupted
from grader.worker import sandbox

END_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
OURS = (signal.default_int_handler, end_interrupted)  # handlers of SIGINT that are replaced


class Interruption(KeyboardInterrupt):
    """A signal to end.

    Where a KeyboardInterrupt, and no subclass of it, leaves code that exec() runs (the methods of a dataclass), Python
    kills its process by SIGINT in the end, whatever its exit status.
    """


def raise_at_signals() -> None:
    """Have Ctrl-C, a request to terminate and a terminal that is closed raise an Interruption."""
    if signal.getsignal(signal.SIGINT) in OURS:
        signal.signal(signal.SIGINT, _interrupt)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves it
            signal.signal(number, _interrupt_as_ctrl_c)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def ignore() -> None:
    """Ignore further signals to end: they would cut short Python's own end, which ends the workers."""
    for number in END_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise Interruption


def _interrupt_as_ctrl_c(number: int, frame: FrameType | None) -> None:
    handler = signal.getsignal(signal.SIGINT)  # sandbox.undisturbed may have replaced it to defer the signal
    if not callable(handler):
        raise Interruption
    handler(number, frame)


@contextlib.contextmanager
def _ended_at_once() -> Iterator[None]:
    """Have Ctrl-C end the process without an exception until the end of the block."""
    if signal.getsignal(signal.SIGINT) is not _interrupt or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, end_interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, _interrupt)


class _Finder:
    """Raise nothing while torch is imported: its C++ code discards an exception that comes then.

    Ctrl-C ends the command at once, as the import may take seconds; where a worker has to be ended it is deferred.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the module's spec, with a loader that raises nothing; None for all modules but torch."""
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if name == "torch" else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            with sandbox.undisturbed() if sandbox.has_started() else _ended_at_once():
                execute(module)

        spec.loader.exec_module = exec_module
        return spec
