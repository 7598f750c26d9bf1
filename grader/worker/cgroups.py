"""Limit memory, processes and CPU of a worker with everything that it starts, where a control group is delegated.

A control group of version 2 (https://docs.kernel.org/admin-guide/cgroup-v2.html) limits all processes together;
resource limits (setrlimit(2)) limit each one. The judge needs a folder of the group tree that it may write to: as root,
as a service with `Delegate=yes`, or in a desktop session.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
import time
from pathlib import Path

WANTED = ("memory", "pids", "cpu")
NEEDED = ("memory", "pids")
PERIOD_US = 100_000  # of cpu.max
REMOVAL_S = 2.0  # until the kernel has taken the last process out of a group
MEMORY_SHARE = 0.9  # of the machine's memory that a worker may have at most


@dataclasses.dataclass(frozen=True)
class Group:
    """A control group for one worker. description: its limits in words."""

    folder: Path
    description: str

    def end(self) -> None:
        """Kill what still runs in the group, and remove it. Raises nothing."""
        with contextlib.suppress(OSError):
            _set(self.folder / "cgroup.kill", "1")
        deadline = time.monotonic() + REMOVAL_S
        while self.folder.is_dir() and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                self.folder.rmdir()
                return
            time.sleep(0.01)


def make_group(memory: int, processes: int) -> Group | None:
    """Return a new control group with these limits, or None where none can be made."""
    parent = find_parent()
    if parent is None:
        return None
    folder = parent / f"grader-{secrets.token_hex(6)}"
    memory = min(memory, int(MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    cores = len(os.sched_getaffinity(0))
    group = Group(folder, f"together {memory / (1 << 30):.0f} GiB, {processes} processes, {cores} cores")
    try:
        folder.mkdir()
        _set(folder / "memory.max", str(memory))
        _set(folder / "pids.max", str(processes))
        with contextlib.suppress(OSError):  # what these limit is limited by the others, too
            _set(folder / "memory.oom.group", "1")
            _set(folder / "memory.swap.max", "0")
            _set(folder / "cpu.max", f"{cores * PERIOD_US} {PERIOD_US}")
    except OSError:
        group.end()
        return None
    return group


def find_parent() -> Path | None:
    """Return a folder in which a group with limits can be made: that of this process, or the one above it."""
    own = _find_own()
    if own is None:
        return None
    for folder in (own, own.parent):
        if os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK) and _delegates(folder):
            return folder
    return None


def _find_own() -> Path | None:
    """Return the folder of this process' group of version 2."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
        path = next(line[3:] for line in lines if line.startswith("0::"))
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
        mount = next(line.split()[4] for line in mounts if " - cgroup2 " in line)
        return Path(mount + path)
    return None


def _delegates(folder: Path) -> bool:
    """Return whether groups in this folder have the limits, after trying to turn them on."""
    with contextlib.suppress(OSError):
        active = (folder / "cgroup.subtree_control").read_text(encoding="ascii").split()
        available = (folder / "cgroup.controllers").read_text(encoding="ascii").split()
        missing = [name for name in WANTED if name in available and name not in active]
        if missing:
            with contextlib.suppress(OSError):  # EBUSY in a group that has processes of its own
                _set(folder / "cgroup.subtree_control", " ".join(f"+{name}" for name in missing))
            active = (folder / "cgroup.subtree_control").read_text(encoding="ascii").split()
        return all(name in active for name in NEEDED)
    return False


def _set(file: Path, text: str) -> None:
    """Write to a file of the control group, which must exist."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode("ascii"))
    finally:
        os.close(descriptor)
