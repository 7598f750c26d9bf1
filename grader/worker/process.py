"""A running worker as the judge sees it: what it prints, how it ended, and how to end it with all that it started."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from grader.worker.cgroups import Group
from grader.worker.quota import Quota
from grader.worker.shown_file import Copy
from grader.worker.supervisor import END_S, RENICE, find_descendants
from simt.runtime.monitor import Monitor
from simt.toolchain.removal import remove_tree

KEEP = 64 * 1024  # bytes kept of the beginning and of the end of what the worker prints
# bytes of a piece that is small, and how many of them a program prints before they are let gather
PIECE, MANY = 4096, 1000
MARK = "GRADER_WORKER"  # an environment variable by which a worker's stray children are found again
MARGIN_S = 2.0  # for the supervisor's own end
FREEZE_PASSES = 10
STOP_S = 1.0  # for all threads to stand still after a signal: one in a call of the GPU's driver stops after it
STRAYS_SECONDS = 5.0  # how long they are looked for
# What one of a submission's folders of builds may hold after its grading: many times what a kernel's builds take.
KEPT_BYTES, KEPT_ENTRIES = 48 << 20, 1000
JUDGE = "GRADER_JUDGE"  # another with the judge's process number


class Log:
    """The beginning and the end of what a process prints, read continuously so that the process never waits."""

    def __init__(self, descriptor: int):
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0
        self.thread = threading.Thread(target=self._drain, args=(descriptor,), daemon=True)
        self.thread.start()

    def _drain(self, descriptor: int) -> None:
        with contextlib.suppress(OSError), os.fdopen(descriptor, "rb", buffering=0) as stream:
            buffer = memoryview(bytearray(1 << 16))
            pieces = 0
            while size := stream.readinto(buffer):
                self._keep(bytes(buffer[:size]))
                pieces += size < PIECE
                if pieces > MANY:  # let some gather, or reading them takes as long as printing them
                    time.sleep(0.001)

    def _keep(self, data: bytes) -> None:
        self.total += len(data)
        room = max(0, KEEP - len(self.head))
        self.head += data[:room]
        self.tail += data[room:]
        if len(self.tail) > 4 * KEEP:  # now and then, not for every piece: it copies all that is kept
            del self.tail[:-KEEP]

    def text(self) -> str:
        """Return what was kept, as text."""
        tail = bytes(self.tail[-KEEP:])
        left_out = self.total - len(self.head) - len(tail)
        middle = f"\n[... {left_out} bytes left out ...]\n".encode() if left_out > 0 else b""
        return (bytes(self.head) + middle + tail).decode("utf-8", errors="replace")


@dataclasses.dataclass(eq=False)
class Process:
    """A running worker, with its supervisor as `popen`.

    sock: the judge's end of the connection. mark: by which stray processes are found. pipe: to the supervisor.
    description: the sandbox in words. maps_signals: whether an exit status above 128 means a signal, as bubblewrap
    reports it. folders: that the worker writes to. monitor: of simt's runtime in the worker, on the CPU. copy: of the
    submission's file, where the worker sees that and not the file itself.
    """

    popen: subprocess.Popen
    sock: socket.socket
    log: Log
    work: Path
    mark: str
    pipe: int
    description: str
    maps_signals: bool
    folders: list[Path]
    group: Group | None = None
    monitor: Monitor | None = None
    copy: Copy | None = None
    stopped: set[int] = dataclasses.field(default_factory=set)  # by freeze()

    def alive(self) -> bool:
        """Return whether the process still runs."""
        return self.popen.poll() is None

    def how_it_ended(self, seconds: float = 2.0) -> tuple[int | None, int | None]:
        """Wait a little; return (exit code, None) or (None, signal number), or (None, None) if it is still running."""
        try:
            code = self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return None, None
        if code < 0:
            return None, -code
        if self.maps_signals and code > 128 and code - 128 in {s.value for s in signal.Signals}:
            return None, code - 128
        return code, None

    def lower_priority(self, amount: int) -> None:
        """Lower the scheduling priority of the worker and of what it has started and will start."""
        with contextlib.suppress(OSError):
            os.write(self.pipe, RENICE + bytes([amount]))

    def freeze(self) -> None:
        """Stop the worker and everything it started, until thaw(), and wait until all stand still.

        Work that it has sent to a GPU goes on. Does nothing while they are stopped.
        """
        for _ in range(0 if self.stopped else FREEZE_PASSES):  # one may start another meanwhile
            running = set(find_descendants(self.popen.pid)) - self.stopped
            if not running:
                break
            self._signal(running, signal.SIGSTOP)
            self.stopped |= running
            deadline = time.monotonic() + STOP_S
            while any(map(_runs, running)) and time.monotonic() < deadline:
                time.sleep(0.0002)

    def thaw(self) -> None:
        """Let the worker and everything it started go on after freeze(); this takes microseconds."""
        self._signal(self.stopped, signal.SIGCONT)
        self.stopped = set()

    def _signal(self, processes: Iterable[int], number: signal.Signals) -> None:
        for process in processes:
            with contextlib.suppress(OSError):
                os.kill(process, number)

    def kill(self) -> None:
        """End the process and everything it started, and remove its folder. Does nothing the second time."""
        with contextlib.suppress(OSError):
            self.sock.close()
        pipe, self.pipe = self.pipe, -1
        with contextlib.suppress(OSError):
            os.write(pipe, b"\0")  # closing is not enough: a forked copy of the judge may hold the pipe open
        with contextlib.suppress(OSError):
            os.close(pipe)
        try:
            self.popen.wait(END_S + MARGIN_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.popen.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(10)
        _kill_strays(self.mark)
        if self.group is not None:
            self.group.end()
        if self.monitor is not None:
            self.monitor.close()
        self.log.thread.join(1.0)
        remove_tree(self.work)
        if self.copy is not None:
            self.copy.remove()
        _drop_excess([folder for folder in self.folders if folder != self.work])
        _started.pop(self, None)


def _runs(process: int) -> bool:
    """Return whether a thread of a process is neither stopped nor ended."""
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            with contextlib.suppress(OSError):
                status = (thread / "stat").read_text(encoding="utf-8", errors="replace")
                if status.rpartition(")")[2].split()[0] not in ("T", "t", "Z", "X"):
                    return True
    return False


def _drop_excess(folders: list[Path]) -> None:
    """Remove each folder that holds more than builds take: it would stay there for the next time."""
    for folder in folders:
        if Quota([folder], KEPT_BYTES, KEPT_ENTRIES).is_exceeded():
            remove_tree(folder)


_started: dict[Process, tuple[int, int]] = {}  # what still has to be killed, and the process and thread that started it


def register(process: Process) -> None:
    """Note that the calling thread has started a worker, which end_all() ends."""
    _started[process] = os.getpid(), threading.get_ident()


def has_started() -> bool:
    """Return whether a worker that this process has started has not been ended yet."""
    return any(process == os.getpid() for process, _ in list(_started.values()))


def end_all() -> None:
    """End every worker that this thread has started: an interruption may come before any caller holds one."""
    for process, starter in list(_started.items()):
        if starter == (os.getpid(), threading.get_ident()):
            process.kill()


atexit.register(end_all)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Defer Ctrl-C until the end of the block, in which something starts that would be lost otherwise."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    pressed = []
    signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if pressed:
            signal.raise_signal(signal.SIGINT)


def _kill_strays(mark: str) -> None:
    """Kill processes that carry the mark in their environment: without a sandbox a worker can kill its supervisor."""
    wanted = f"{MARK}={mark}".encode()
    deadline = time.monotonic() + STRAYS_SECONDS
    while time.monotonic() < deadline:  # a stray may fork while we look
        found = [entry for entry in Path("/proc").glob("[0-9]*") if _carries(entry, wanted)]
        if not found:
            return
        for entry in found:
            with contextlib.suppress(OSError):
                os.kill(int(entry.name), signal.SIGKILL)
        time.sleep(0.01)


def _carries(entry: Path, wanted: bytes) -> bool:
    try:
        return wanted in (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
