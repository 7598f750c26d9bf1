"""What a dask worker runs: one grading, in a process of its own, once the machine has room for it."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import platform
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import filelock

from grader.classroom.executor import count_jobs
from grader.judging.processes.judge import Order
from grader.judging.processes.judges import Judges, Result
from grader.paths import ROOT
from grader.worker.sandbox import has_gpu

KIT = ("grader", "simt", "kernels_ref")  # folders that must be the same everywhere
SLOT_POLL_S = 0.2


@dataclass(frozen=True)
class Versions:
    """What must be the same on each machine. kit: a digest of the course kit's files; torch: without "+cpu"."""

    kit: str
    torch: str


@dataclass(frozen=True)
class Machine:
    """What a worker's machine has. slots: gradings at once, for all workers of `name` together; limit: why so many."""

    versions: Versions
    name: str
    slots: int
    limit: str
    gpu: bool


@functools.cache
def read_versions() -> Versions:
    """Return the versions on this machine."""
    digest = hashlib.sha256()
    for folder in KIT:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                name = file.relative_to(ROOT).as_posix()
                digest.update(f"{name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return Versions(digest.hexdigest(), importlib.metadata.version("torch").split("+")[0])


@functools.cache
def describe_machine() -> Machine:
    """Return what this machine has. Free memory is measured once: later gradings would count as taken."""
    slots, limit = count_jobs()
    return Machine(read_versions(), _name_machine(), slots, limit, has_gpu())


def _name_machine() -> str:
    """Return a name of the processors and the memory that this process may use: equal for those that share them."""
    with contextlib.suppress(OSError):
        group = Path("/proc/self/cgroup").read_text(encoding="utf-8")
        return _join_name(group)
    return _join_name("")


def _join_name(group: str) -> str:
    parts = repr((sorted(os.sched_getaffinity(0)), group))
    return f"{platform.node()}-{hashlib.sha256(parts.encode()).hexdigest()[:12]}"


class _Runs:
    """The processes that grade, by the run of `class grade` that they grade for."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.judges: dict[str, Judges] = {}
        self.ended: set[str] = set()

    def find(self, run: str) -> Judges | None:
        """Return the processes of a run; None if it has ended. A new run ends the idle ones of earlier runs."""
        with self.lock:
            if run in self.ended:
                return None
            if run not in self.judges:
                for other in self.judges.values():  # of a client that was killed, perhaps
                    other.close_idle()
                self.judges[run] = Judges()
            return self.judges[run]

    def end(self, run: str) -> None:
        with self.lock:
            self.ended.add(run)
            judges = self.judges.pop(run, None)
        if judges is not None:
            judges.close()


_runs = _Runs()


def end_run(run: str) -> None:
    """End the gradings of a run on this worker, and start no more of them."""
    _runs.end(run)


def carry_out_on_worker(order: Order, run: str, versions: Versions) -> Result:
    """Grade one file on this machine once it has room. versions: of the client; others give no verdict."""
    machine = describe_machine()
    if machine.versions != versions:
        return Result(None, f"was not started: {machine.name} has another version of the course kit or of torch")
    with _take_slot(machine, run):
        judges = _runs.find(run)
        if judges is None:
            return Result(None, "was stopped")
        return judges.carry_out(order, max(1, len(os.sched_getaffinity(0)) // machine.slots))


def _make_slots_folder() -> Path:
    """Return this user's folder of locks, made if missing. Raises PermissionError if another user could have made it.

    Its name can be guessed and it lies where everyone may write, so it must be this user's own, and no link.
    """
    folder = Path(tempfile.gettempdir()) / f"grader-slots-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{folder} is not a folder of this user's own: remove it")
    return folder


@contextlib.contextmanager
def _take_slot(machine: Machine, run: str) -> Iterator[None]:
    """Wait until fewer gradings run on the machine than it can take, or the run has ended."""
    folder = _make_slots_folder() / machine.name
    folder.mkdir(exist_ok=True)
    while run not in _runs.ended:
        for number in range(machine.slots):
            lock = filelock.FileLock(folder / f"{number}.lock", timeout=0, thread_local=False)
            try:
                lock.acquire()
            except filelock.Timeout:
                continue
            try:
                yield
            finally:
                lock.release()
            return
        time.sleep(SLOT_POLL_S)
    yield
