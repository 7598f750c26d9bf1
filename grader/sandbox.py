"""Starts the worker process shut off from the rest of the machine, and ends it with everything it started.

With bubblewrap the worker has no network, its own /tmp and process numbers, no home folder and nothing to write to but
build caches that are this submission's alone. Without it there are resource limits and a process group of its own, and reports say so.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import errno
import fcntl
import functools
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from simt.cache import cache_dir, trim, user_cache

PROJECT = Path(__file__).resolve().parent.parent
GIB = 1 << 30
MEMORY = 16 * GIB  # address space of a worker on the CPU
KEEP = 64 * 1024  # bytes kept of the beginning and of the end of what the worker prints
PIECE, MANY = 4096, 1000  # bytes of a piece that is small, and how many of them a program prints before they are let gather
MARK = "GRADER_WORKER"  # an environment variable by which a worker's stray children are found again
JUDGE = "GRADER_JUDGE"  # another with the judge's process number
NONE = "none: resource limits and a process group only"
BUBBLEWRAP = "bubblewrap: no network, private /tmp and processes, read-only files"


class SandboxError(Exception):
    """No sandbox can be had here; the text says why and what to do."""


# --- bubblewrap ------------------------------------------------------------------------------------------------------


@functools.cache
def why_not() -> str:
    """Empty if bubblewrap works here, else one sentence."""
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap is not installed (apt install bubblewrap)."
    with tempfile.TemporaryDirectory(prefix="grader-") as folder:
        command = [*bubblewrap(Path(folder), [], [], gpu=has_gpu()), sys.executable, "-c", "import msgspec"]
        try:
            tried = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=20)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"bubblewrap does not run here ({type(error).__name__})."
    if tried.returncode:
        last = (tried.stderr.strip().splitlines() or ["no message"])[-1]
        return f"bubblewrap is installed but does not run here ({last[:200]})."
    return ""


def has_gpu() -> bool:
    return any(Path("/dev").glob("nvidia[0-9]*"))


def bubblewrap(work: Path, writable: list[Path], readable: list[Path], gpu: bool) -> list[str]:
    """The command before the command: everything read-only, an empty /tmp, no homes, no solutions.

    What Python needs of the hidden folders is put back, and `readable` with it; work and `writable` can be written to.
    """
    command = [shutil.which("bwrap"), "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/"]
    command += ["--dev-bind", "/dev", "/dev"] if gpu else ["--dev", "/dev"]
    command += ["--proc", "/proc"]
    hidden = [Path(folder) for folder in ("/tmp", "/home", "/root", Path.home()) if Path(folder).is_dir()]
    hidden = [folder for folder in dict.fromkeys(hidden) if folder != Path("/")]
    for folder in hidden:
        command += ["--tmpfs", str(folder)]
    for folder in _python_folders():
        if any(Path(folder).is_relative_to(place) for place in hidden):
            command += ["--ro-bind", folder, folder]
    if (PROJECT / "kernels_ref").is_dir():
        command += ["--tmpfs", str(PROJECT / "kernels_ref")]
    for path in readable:
        command += ["--ro-bind", str(path), str(path)]
    for path in [work, *writable]:
        command += ["--bind", str(path), str(path)]
    return [*command, "--chdir", str(work), "--"]


def _python_folders() -> list[str]:
    """Folders that this Python, its packages, the project and CUDA live in, outermost first."""
    found = {str(PROJECT), sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parent)}
    found |= {str(Path(path).resolve()) for path in (*sys.path, os.environ.get("CUDA_HOME", "")) if path}
    return sorted((folder for folder in found if Path(folder).is_dir()), key=lambda folder: (folder.count("/"), folder))


# --- caches -----------------------------------------------------------------------------------------------------------


def extensions(sha256: str) -> Path:
    """Where torch builds for the file of this hash: another file's builds cannot get in its way."""
    return user_cache() / "grader" / "extensions" / sha256[:16]


def simt_cache() -> Path:
    """Where simt keeps its builds, as a path that means the same in the worker, whose current folder is another."""
    return cache_dir()


SUBMISSIONS = "submissions"  # a folder of simt's cache
KEPT = 100  # submissions whose builds are kept


def folders(builds: Path) -> tuple[list[Path], list[Path], dict[str, str]]:
    """Folders that a worker may write to, folders that it may read, and the variables that name them. builds: torch's, for its submission.

    In a sandbox simt's cache can be read alone: what the judge and other submissions' workers will load lies there. What this submission
    builds is kept beside it.
    """
    shared, named = simt_cache(), {"TORCH_EXTENSIONS_DIR": str(builds)}
    if why_not():
        return [builds, shared], [], named | {"SIMT_CACHE": str(shared)}
    own = shared / SUBMISSIONS / builds.name
    return [builds, own], [shared], named | {"SIMT_CACHE": str(own), "SIMT_CACHE_SHARED": str(shared)}


@contextlib.contextmanager
def sole_builder(folder: Path) -> Iterator[None]:
    """Wait until nobody else builds in this folder, and remove the locks that torch left in it when it was killed.

    A folder that cannot be written needs neither: what is in it can be used, and nobody builds there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / ".judge", "w")
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        yield
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for lock in folder.glob("*/lock"):
            lock.unlink(missing_ok=True)
        yield


# --- the process -----------------------------------------------------------------------------------------------------


class Log:
    """The beginning and the end of what a process prints, read as it comes so that it never waits for us."""

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
        """What was kept, as text."""
        tail = bytes(self.tail[-KEEP:])
        left_out = self.total - len(self.head) - len(tail)
        middle = f"\n[... {left_out} bytes left out ...]\n".encode() if left_out > 0 else b""
        return (bytes(self.head) + middle + tail).decode("utf-8", errors="replace")


@dataclasses.dataclass(eq=False)
class Process:
    """A running worker: its socket (judge's end), its log, and how to end it."""

    popen: subprocess.Popen
    sock: socket.socket
    log: Log
    work: Path
    mark: str
    sandboxed: bool

    def alive(self) -> bool:
        """Whether it still runs."""
        return self.popen.poll() is None

    def how_it_ended(self, seconds: float = 2.0) -> tuple[int | None, int | None]:
        """(exit code, None) or (None, signal number), waiting a little; (None, None) if it is still running."""
        try:
            code = self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return None, None
        if code < 0:
            return None, -code
        if self.sandboxed and code > 128 and code - 128 in {s.value for s in signal.Signals}:
            return None, code - 128
        return code, None

    def kill(self) -> None:
        """End it and everything it started, and remove its folder. Does nothing the second time."""
        with contextlib.suppress(OSError):
            self.sock.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(10)
        if not self.sandboxed:
            _kill_strays(self.mark)
        self.log.thread.join(1.0)
        shutil.rmtree(self.work, ignore_errors=True)
        _started.pop(self, None)


_started: dict[Process, tuple[int, int]] = {}  # what still has to be killed, and the process and thread that started it


def end_all() -> None:
    """End every worker that this thread has started: for an interruption, which may come before anybody else holds one."""
    for process, starter in list(_started.items()):
        if starter == (os.getpid(), threading.get_ident()):
            process.kill()


atexit.register(end_all)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Put Ctrl-C off until the end of the block, in which something is started that would be lost otherwise."""
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
    """Children that left the process group still carry the mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    for _ in range(20):  # a stray may fork while we look
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


def start(submission: Path, *, gpu: bool, builds: Path, required: bool = False) -> Process:
    """Start a worker for this file. gpu: whether it may use one. builds: the folder for torch's builds of it, made if missing.

    Raises SandboxError if a sandbox is required and cannot be had.
    """
    trouble = why_not()
    if trouble and required:
        raise SandboxError(f"A sandbox is required and there is none: {trouble}")
    writable, readable, environment = folders(builds)
    for folder in writable:
        folder.mkdir(parents=True, exist_ok=True)
    if not trouble:
        os.utime(writable[-1])
        trim(SUBMISSIONS, KEPT)
    if not gpu:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    with undisturbed():
        process = _start(submission, gpu, writable, readable, environment, sandboxed=not trouble)
        _started[process] = os.getpid(), threading.get_ident()
    return process


def _start(
    submission: Path, gpu: bool, writable: list[Path], readable: list[Path], environment: dict[str, str], sandboxed: bool
) -> Process:
    work = Path(tempfile.mkdtemp(prefix="grader-")).resolve()
    ours, theirs = socket.socketpair()
    reader, writer = os.pipe()
    mark = secrets.token_hex(8)
    command = [sys.executable, "-m", "grader.worker", str(theirs.fileno())]
    command += ["0" if gpu else str(MEMORY), "0" if sandboxed else str(os.getpid())]
    if sandboxed:
        command = bubblewrap(work, writable, [submission.resolve(), *readable], gpu) + command
    try:
        popen = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=writer,
            cwd=work,
            env=_environment(work, mark, environment),
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
    finally:
        os.close(writer)
        theirs.close()
    return Process(popen, ours, Log(reader), work, mark, sandboxed)


def _environment(work: Path, mark: str, extra: dict[str, str]) -> dict[str, str]:
    """The judge's environment without what looks like a secret, the project importable."""
    words = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "API_KEY")
    kept = {name: value for name, value in os.environ.items() if not any(word in name.upper() for word in words)}
    paths = [str(PROJECT), *filter(None, kept.get("PYTHONPATH", "").split(os.pathsep))]
    return kept | {
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": str(work),
        MARK: mark,
        JUDGE: str(os.getpid()),
        **extra,
    }
