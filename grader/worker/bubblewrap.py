"""Build the bubblewrap command that runs a worker in an empty root folder with an allow-list of files.

bubblewrap (https://github.com/containers/bubblewrap) makes new user, mount, process, network, IPC, host name and cgroup
namespaces, so that no file, process or socket exists for the worker except those that the command names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from grader.worker import seccomp
from grader.worker.view import START_CUDA, View, make_environment, make_view

PROGRAM = "bwrap"
NOBODY = 65534  # the worker's user and group number inside
TMP_BYTES = 2 << 30  # of /tmp and of /dev/shm, which are memory
PASSWD = b"grader:x:65534:65534::/tmp:/bin/sh\n"
GROUP = b"grader:x:65534:\n"
PROBE_SECONDS = 20.0
PROBE_TRIES = 2  # a loaded machine may be slow once
# Parts of bubblewrap's messages where the machine grants no namespaces, which no retry changes.
NO_NAMESPACES = ("namespace", "Operation not permitted", "setting up uid map", "loopback", "Can't mount proc")


def is_installed() -> bool:
    """Return whether bubblewrap is on the PATH."""
    return shutil.which(PROGRAM) is not None


def make_command(
    view: View, work: Path, command: list[str], descriptors: dict[str, int], shown: Path | None = None
) -> list[str]:
    """Return the bubblewrap command that runs another one with this view, in the folder `work`.

    descriptors: what open_data() returned. shown: the file that is visible at the submission's path. It lies where only
    the judge writes: what is at that path outside may have become a link.
    """
    program = shutil.which(PROGRAM) or PROGRAM
    made = [program, "--unshare-all", "--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY)]
    made += ["--cap-drop", "ALL", "--die-with-parent", "--new-session", "--hostname", "grader"]
    made += ["--perms", "1777", "--size", str(TMP_BYTES), "--tmpfs", "/tmp", "--dir", "/run", "--proc", "/proc"]
    made += ["--dev", "/dev", "--perms", "1777", "--size", str(TMP_BYTES), "--tmpfs", "/dev/shm"]
    for device in view.devices:
        made += ["--dev-bind", str(device), str(device)]
    for path in view.readable:
        made += ["--ro-bind", str(path), str(path)]
    for path, target in sorted(view.links.items()):
        made += ["--symlink", target, str(path)]
    if view.submission is not None and shown is not None:
        made += ["--ro-bind", str(shown), str(view.submission)]
    for path in view.writable:
        made += ["--bind", str(path), str(path)]
    for name in ("passwd", "group"):
        made += ["--ro-bind-data", str(descriptors[name]), f"/etc/{name}"]
    if "seccomp" in descriptors:
        made += ["--seccomp", str(descriptors["seccomp"])]
    made += _make_proc_read_only(bool(view.devices))
    return [*made, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(work), "--", *command]


def _make_proc_read_only(gpu: bool) -> list[str]:
    """Return options that keep a worker from changing kernel parameters, as the superuser outside otherwise could.

    CUDA's driver names its threads by writing /proc/self/task/*/comm and does not start if that fails, so with a GPU
    all of /proc but the processes is made read-only.
    """
    if not gpu:
        return ["--remount-ro", "/proc"]
    found = [path for path in sorted(Path("/proc").iterdir()) if not path.name.isdigit() and not path.is_symlink()]
    kept = [path for path in found if path.is_dir() or path.stat().st_mode & 0o222]
    return [option for path in kept for option in ("--ro-bind", str(path), str(path))]


def open_data(gpu: bool) -> dict[str, int]:
    """Return open files for make_command: the seccomp filter, and a list of users and of groups."""
    contents = {"passwd": PASSWD, "group": GROUP}
    if seccomp.is_supported():
        contents["seccomp"] = seccomp.make_filter(unix_sockets=gpu)
    descriptors = {}
    for name, content in contents.items():
        descriptors[name] = os.memfd_create(name)
        os.write(descriptors[name], content)
        os.lseek(descriptors[name], 0, os.SEEK_SET)
    return descriptors


def close_data(descriptors: dict[str, int]) -> None:
    """Close the files of open_data()."""
    for descriptor in descriptors.values():
        os.close(descriptor)


def find_trouble(work: Path, gpu: bool) -> tuple[str, bool]:
    """Return why bubblewrap does not work here, empty if it does, and whether the machine grants no namespaces.

    work: a folder that may be used for the test. A failure is tried again once.
    """
    trouble, refused = "", False
    for _ in range(PROBE_TRIES):
        trouble, refused = _try(work, gpu)
        if not trouble or refused:
            break
    return trouble, refused


def _try(work: Path, gpu: bool) -> tuple[str, bool]:
    descriptors = open_data(gpu)
    imports = "import msgspec, simt, grader.worker.messages"
    program = [sys.executable, "-c", f"{imports}\n{START_CUDA if gpu else ''}"]
    try:
        command = make_command(make_view(None, [work], None, gpu), work, program, descriptors)
        done = subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=PROBE_SECONDS,
            stdin=subprocess.DEVNULL, env=make_environment(work, {}), pass_fds=tuple(descriptors.values()), cwd=work,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it did not end within {PROBE_SECONDS:g} s", False
    except OSError as error:
        return error.strerror or type(error).__name__, False
    finally:
        close_data(descriptors)
    if done.returncode == 0:
        return "", False
    last = (done.stderr.strip().splitlines() or ["no message"])[-1][:200]
    return last, last.startswith("bwrap: ") and any(words in last for words in NO_NAMESPACES)
