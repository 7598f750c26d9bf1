"""Look at a machine from outside a grading: services, processes, mounts, shared memory, files."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from grader.worker.supervisor import find_descendants

SEGMENT_KEY = 0x47524452  # of the System V shared memory that an attack makes
END_S = 2.0  # for an orphan that is about to end
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


class Services:
    """Sockets at which programs of an arena listen: a port, an abstract name, and two paths."""

    def __init__(self) -> None:
        self.network = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.network.getsockname()[1]
        self.abstract, self.stream = (socket.socket(socket.AF_UNIX) for _ in range(2))
        self.datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    def listen(self, folder: Path) -> None:
        """Bind the other sockets: `socket` and `datagrams` in a folder, and the folder's name."""
        self.abstract.bind(f"\0{folder.name}")
        descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        for one, name in ((self.stream, "socket"), (self.datagrams, "datagrams")):
            one.bind(f"/proc/self/fd/{descriptor}/{name}")  # a socket's path has at most 107 characters
        os.close(descriptor)
        for one in (self.abstract, self.stream):
            one.listen()

    def take_reached(self) -> list[str]:
        """Return which sockets were reached since the last call."""
        found = []
        for name in ("network", "abstract", "stream", "datagrams"):
            one: socket.socket = getattr(self, name)
            while select.select([one], [], [], 0)[0]:
                if name == "datagrams":
                    one.recv(4096)
                else:
                    one.accept()[0].close()
                found.append(name)
        return sorted(set(found))

    def close(self) -> None:
        """Close all sockets."""
        for one in (self.network, self.abstract, self.stream, self.datagrams):
            one.close()


@contextlib.contextmanager
def gather_orphans() -> Iterator[list[str]]:
    """Become the parent of every orphan among this process's descendants; end and list those that are left.

    The list is filled when the block ends.
    """
    libc, before = ctypes.CDLL(None), set(find_descendants())
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    found: list[str] = []
    try:
        yield found
    finally:
        ended: set[int] = set()
        deadline = time.monotonic() + END_S
        while left := [number for number in find_descendants() if number not in before]:
            for number in left:
                if time.monotonic() > deadline and number not in ended:
                    with contextlib.suppress(OSError):
                        found.append(f"{number} ({read_command(number)})")
                        os.kill(number, signal.SIGKILL)
                        ended.add(number)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(number, os.WNOHANG)
            time.sleep(0.02)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def read_command(number: int) -> str:
    """Return a process's command line."""
    return Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]


def list_mounts() -> set[str]:
    """Return the places of this process's mounts."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    return {line.split()[4] for line in lines}


def unmount(place: str) -> None:
    """Remove a mount that an attack has left."""
    subprocess.run(["umount", "-l", place], check=False)


def has_segment() -> bool:
    """Return whether the System V shared memory with SEGMENT_KEY exists."""
    file = Path("/proc/sysvipc/shm")
    keys = [line.split()[0] for line in file.read_text().splitlines()[1:]] if file.exists() else []
    return str(SEGMENT_KEY) in keys


def remove_segment() -> None:
    """Remove that shared memory."""
    subprocess.run(["ipcrm", "-M", hex(SEGMENT_KEY)], check=False, capture_output=True)


def list_files(folder: Path, tops: list[str]) -> dict[str, str]:
    """Return a description of each file in these folders of a folder, which changes where the file does."""
    found: dict[str, str] = {}
    for top in tops:
        for place, folders, files in os.walk(folder / top):
            for name in [*folders, *files]:
                path = os.path.join(place, name)
                status = os.lstat(path)
                described = [status.st_mode, status.st_uid]
                if name not in folders:
                    described += [status.st_size, status.st_mtime_ns]
                link = os.readlink(path) if os.path.islink(path) else ""
                found[os.path.relpath(path, folder)] = f"{described} {link}"
    return found


def measure(folder: Path) -> tuple[int, int]:
    """Return the bytes and the entries in a folder, in which folders may be deeper than any path."""
    counts = []
    for options in (["--block-size=1"], ["--inodes"]):
        done = subprocess.run(["du", "-s", *options, str(folder)], capture_output=True, text=True, check=False)
        counts.append(int((done.stdout or "0").split()[0]))
    return counts[0], counts[1]
