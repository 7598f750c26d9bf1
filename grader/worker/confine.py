"""Confine a worker where bubblewrap does not run: Landlock, the seccomp filter, and another user number.

The supervisor's child calls it before it becomes the worker, so that the interpreter, the submission and the compilers
all start confined. Imports nothing outside the standard library and this room.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from grader.worker import landlock, seccomp
from grader.worker.view import PROJECT, START_CUDA, View, make_environment, make_view

_libc = ctypes.CDLL(None, use_errno=True)
# linux/prctl.h, linux/securebits.h, linux/seccomp.h and linux/capability.h
_PR_SET_KEEPCAPS, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 8, 22, 24, 47, 2
_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP = 28, 1 << 2
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION_3 = 0x20080522
_CAP_DAC_READ_SEARCH, _CAP_SETGID, _CAP_SETUID, _LAST_CAPABILITY = 2, 6, 7, 63

# User numbers that systemd assigns to nothing (https://systemd.io/UIDS-GIDS), and for a container with few numbers
# those of its dynamic users.
_USERS, _FEW_USERS = (0x70000000, 0x7FFD0000), (61184, 65520)
CUDA_SECONDS = 60.0  # that CUDA's driver has to start
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# What programs read about the machine and themselves; other processes' folders are not listed.
PROC = (
    "cpuinfo", "meminfo", "stat", "version", "filesystems", "loadavg", "self", "sys/vm", "sys/kernel", "devices",
    "driver/nvidia",
)  # fmt: skip


class Confinement(TypedDict):
    """What confine() does, as data that a command line can carry. seccomp: the filter in hexadecimal, or empty.

    user: the user number to take, 0 to keep the present one. opened: descriptors of files that may be read, which
    confine() closes.
    """

    readable: list[str]
    opened: list[int]
    writable: list[str]
    devices: list[str]
    seccomp: str
    user: int


def find_trouble(gpu: bool = False) -> str:
    """Return why this level does not work here, in one sentence; empty if it works. gpu: whether CUDA must start."""
    if not landlock.find_version():
        return "This kernel has no Landlock (Linux 5.13 or later with `landlock` in its list of security modules)."
    if not seccomp.is_supported():
        return f"There is no seccomp filter for {os.uname().machine}."
    return _find_cuda_trouble() if gpu else ""


def _find_cuda_trouble() -> str:
    """Start CUDA's driver in a confined process; return why it does not start, empty if it does."""
    program = (
        f"import json, sys\nsys.path.insert(0, {str(PROJECT)!r})\n"
        f"from grader.worker.confine import confine\nconfine(json.loads(sys.argv[1]))\n{START_CUDA}"
    )
    with tempfile.TemporaryDirectory(prefix="grader-") as folder:
        work = Path(folder).resolve()
        how = make_confinement(make_view(None, [work], None, True), True, 0)
        command = [sys.executable, "-c", program, json.dumps(how)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=CUDA_SECONDS,
                stdin=subprocess.DEVNULL, env=make_environment(work, {}), cwd=work,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"CUDA did not start with Landlock within {CUDA_SECONDS:g} s."
    last = (done.stderr.strip().splitlines() or ["no message"])[-1][:200]
    return f"Landlock does not work with this GPU ({last})." if done.returncode else ""


def make_confinement(view: View, gpu: bool, user: int, opened: Sequence[int] = ()) -> Confinement:
    """Return the confinement of a worker with this view. opened: the descriptor of its submission's file."""
    return Confinement(
        readable=[str(path) for path in view.readable],
        opened=list(opened),
        writable=[str(path) for path in view.writable],
        devices=[str(path) for path in view.devices],
        seccomp=seccomp.make_filter(unix_sockets=gpu).hex(),
        user=user,
    )


def confine(how: Confinement) -> None:
    """Confine this process and what it starts from now on. Raises OSError.

    It must have a single thread: Landlock and seccomp apply to the thread that asks for them.
    """
    readable = [*how["readable"], *(f"/proc/{name}" for name in PROC)]
    # CUDA's driver does not start unless it can name its threads, in /proc/self/task/*/comm
    changeable = [*how["devices"], "/proc/self/task"] if how["devices"] else []
    # Python finds a package's modules only where it can list its folder
    listable = [str(PROJECT / "grader")]
    ruleset = landlock.open_ruleset(readable, how["writable"], [*DEVICES, *changeable], listable, how["opened"])
    for descriptor in how["opened"]:
        os.close(descriptor)
    if os.geteuid() == 0:
        drop_capabilities(how["user"])
    landlock.restrict(ruleset)
    if how["seccomp"]:
        install_filter(bytes.fromhex(how["seccomp"]))


def install_filter(program: bytes) -> None:
    """Install a seccomp filter for the calling thread; no_new_privs is set. Raises OSError."""
    buffer = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: the number of instructions, and where they are
    description = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    if _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.c_char_p(description), 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_SECCOMP")


# --- another user ----------------------------------------------------------------------------------------------------


def choose_user(builds: Path, view: View) -> int:
    """Return the user number for the worker that builds in this folder, or 0 to keep the present one.

    The same submission has the same number each time, so that it can use its earlier builds.
    """
    if os.geteuid() != 0 or not _has_capability(_CAP_SETUID) or not _has_capability(_CAP_SETGID):
        return 0
    if not _has_capability(_CAP_DAC_READ_SEARCH) and not _is_public(view):
        return 0  # such a user could not read the files that it needs
    digest = int.from_bytes(hashlib.sha256(os.fsencode(builds)).digest()[:8], "little")
    for first, end in (_USERS, _FEW_USERS):
        number = first + digest % (end - first)
        if _is_mapped(number):
            return number
    return 0


def give_folders(folders: list[Path], user: int) -> None:
    """Make `user` the owner of empty folders. Raises OSError."""
    for folder in folders:
        os.chown(folder, user, user, follow_symlinks=False)


def _is_mapped(number: int) -> bool:
    """Return whether this user namespace has the number."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines():
            first, _, count = map(int, line.split())
            if first <= number < first + count:
                return True
    return False


def _is_public(view: View) -> bool:
    """Return whether every user may read what the view lists. Raises OSError where a path is gone."""
    read = [*view.readable, *filter(None, [view.submission])]
    reached = {parent for path in (*read, *view.writable) for parent in path.parents}
    return all(os.stat(folder).st_mode & stat.S_IXOTH for folder in reached) and all(
        os.stat(path).st_mode & stat.S_IROTH for path in read
    )


def _has_capability(number: int) -> bool:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name == "CapEff":
                return bool(int(value, 16) >> number & 1)
    return False


def drop_capabilities(user: int) -> None:
    """Give up the superuser's capabilities, and take another user number unless it is 0. Raises OSError.

    The one capability that stays, where there is another user, lets it read files of other owners: Landlock decides
    which. Without it the worker could not read an interpreter or a submission in a home folder.
    """
    keep = [_CAP_DAC_READ_SEARCH] if user and _has_capability(_CAP_DAC_READ_SEARCH) else []
    for number in range(_LAST_CAPABILITY + 1):
        if number not in keep:
            _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)  # fails for numbers that this kernel does not know
    if user:
        _libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0)
        # access(2) ignores this user's capabilities without it, and gcc then writes to no TMPDIR in a folder of root's
        _libc.prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    _set_capabilities(keep)
    for number in keep:
        _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, number, 0, 0)


def _set_capabilities(numbers: list[int]) -> None:
    """Keep these capabilities alone, for this program and those that it starts (capset(2))."""
    bits = sum(1 << number for number in numbers)
    words = [half for half in (bits & 0xFFFFFFFF, bits >> 32) for _ in range(3)]  # effective, permitted, inheritable
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    if _libc.capset(ctypes.c_char_p(header), ctypes.c_char_p(struct.pack("=6I", *words))):
        raise OSError(ctypes.get_errno(), "capset")
