"""The parent process of a worker: ends and waits for everything that descends from it, whatever the submission starts.

Started by the judge as `python -I -S supervisor.py JSON`. It is a subreaper (prctl(2), PR_SET_CHILD_SUBREAPER): a
process whose parent ended becomes its child, so that a daemon cannot leave it. It ends when the worker ends, when the
judge writes to or closes the pipe between them, and when the judge is gone; then it removes the worker's folders, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from grader.worker.confine import Confinement

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36  # linux/prctl.h
POLL_S = 1.0  # how often it looks whether the judge still runs: the pipe tells earlier
END_S = 20.0  # for ending everything
PAUSE_S = 0.002
START_STATUS = 70  # exit status if the worker could not be started
RENICE = b"n"  # followed by one byte: how much to lower the priority


class Plan(TypedDict):
    """What the supervisor starts, as data that a command line can carry.

    judge: its process number. pipe: the end of the judge's pipe. descriptors: open files that the worker alone keeps.
    group: the folder of a control group, or empty. confinement: of confine(), or None. folders: to remove if the judge
    is gone.
    """

    command: list[str]
    judge: int
    pipe: int
    descriptors: list[int]
    group: str
    confinement: Confinement | None
    folders: list[str]


def main(plan: Plan) -> None:
    """Start the worker, wait for its end or the judge's word, and end all descendants."""
    _control(_PR_SET_CHILD_SUBREAPER, 1)
    _control(_PR_SET_DUMPABLE, 0)  # the worker may have the same user and must not trace this process
    own = os.getpid()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    worker = os.fork()
    if worker == 0:
        _become_worker(plan, own)
    for descriptor in plan["descriptors"]:
        os.close(descriptor)
    status = _wait(worker, reader, plan)
    status = end_descendants(worker, status)
    if os.getppid() != plan["judge"]:
        _clear_up(plan)
    _end_as(status)


def _become_worker(plan: Plan, parent: int) -> None:
    """Confine this process and run the worker's program in it. Does not return."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        os.close(plan["pipe"])
        if plan["group"]:
            (Path(plan["group"]) / "cgroup.procs").write_text("0", encoding="ascii")
        for descriptor in plan["descriptors"]:
            os.set_inheritable(descriptor, True)
        if plan["confinement"] is not None:
            from grader.worker.confine import confine

            confine(plan["confinement"])
        _control(_PR_SET_PDEATHSIG, signal.SIGKILL)  # after a change of user, which resets it
        if os.getppid() != parent:
            os._exit(START_STATUS)
        os.execv(plan["command"][0], plan["command"])
    except BaseException as error:
        os.write(2, f"The worker could not be started: {error}\n".encode(errors="replace"))
    os._exit(START_STATUS)


def _control(operation: int, value: int) -> None:
    """Call prctl(2), which Linux alone has."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(operation, value, 0, 0, 0)


def _wait(worker: int, signals: int, plan: Plan) -> int | None:
    """Return the worker's wait status; None if the judge wants the end, or is gone, before the worker ends."""
    poller = select.poll()
    poller.register(signals, select.POLLIN)
    poller.register(plan["pipe"], select.POLLIN)
    while True:
        while (reaped := _reap()) is not None:
            number, status = reaped
            if number == worker:
                return status
        ready = [descriptor for descriptor, _ in poller.poll(1000 * POLL_S)]
        if signals in ready:
            os.read(signals, 4096)
        if plan["pipe"] in ready:
            words = os.read(plan["pipe"], 2)
            if words[:1] != RENICE or len(words) < 2:
                return None
            _lower_priority(words[1])
        if os.getppid() != plan["judge"]:
            return None


def _reap() -> tuple[int, int] | None:
    """Return the number and status of a child that has ended; None if there is none."""
    try:
        number, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (number, status) if number else None


def find_descendants(ancestor: int | None = None) -> list[int]:
    """Return all processes that descend from one, this one if None; none where there is no /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                children.setdefault(_read_parent(name), []).append(int(name))
    found, waiting = [], [ancestor or os.getpid()]
    while waiting:
        mine = children.get(waiting.pop(), [])
        found += mine
        waiting += mine
    return found


def _read_parent(process: str) -> int:
    """Return the number of a process's parent; a judge asks it of all processes before each turn on a GPU."""
    descriptor = os.open(f"/proc/{process}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        # the program's name, in brackets, may contain anything, up to 64 bytes
        return int(os.read(descriptor, 4096).rpartition(b")")[2].split()[1])
    finally:
        os.close(descriptor)


def end_descendants(worker: int, status: int | None) -> int:
    """Kill all descendants and wait for them; return the worker's wait status."""
    if status is None:
        with contextlib.suppress(OSError):  # it leads a session of its own
            os.killpg(worker, signal.SIGKILL)
    deadline = time.monotonic() + END_S
    while time.monotonic() < deadline:
        for number in find_descendants():  # again and again: one may fork meanwhile
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGKILL)
        try:
            while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
                if reaped[0] == worker:
                    status = reaped[1]
        except ChildProcessError:
            break
        time.sleep(PAUSE_S)
    return signal.SIGKILL if status is None else status


def _clear_up(plan: Plan) -> None:
    """Remove what the judge would have removed."""
    from grader.worker.cgroups import Group
    from simt.toolchain.removal import remove_tree

    os.chdir("/")  # away from the worker's folder
    for folder in plan["folders"]:
        remove_tree(Path(folder))
    if plan["group"]:
        Group(Path(plan["group"]), "").end()


def _lower_priority(amount: int) -> None:
    for number in find_descendants():
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, number, os.getpriority(os.PRIO_PROCESS, number) + amount)


def _end_as(status: int) -> None:
    """End this process as the worker ended: with its exit status, or by its signal."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        with contextlib.suppress(OSError, ValueError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main(json.loads(sys.argv[1]))
