"""Makes checks in a notebook quick: keeps a worker that has already loaded torch, and verdicts on unchanged kernels."""

from __future__ import annotations

import ast
import atexit
import contextlib
import hashlib
import importlib.metadata
import os
import sys
import threading
from pathlib import Path

from grader.source import syntax
from grader.verdict import Outcome, Reason, Verdict
from grader.worker import sandbox

PROJECT = Path(__file__).resolve().parents[2]
IDLE_TIMEOUT_S = 900.0  # a waiting spare worker holds about 300 MB


# --- a spare worker --------------------------------------------------------------------------------------------------


class Spare:
    """One worker started in advance for a file. `start` takes the arguments of sandbox.start and returns it."""

    def __init__(self):
        self.process: sandbox.Process | None = None
        self.wanted: tuple = ()
        self.arguments: tuple = ()
        self.timer: threading.Timer | None = None

    def start(self, submission: Path, content: bytes, **options) -> sandbox.Process:
        """Return the spare worker if it was started with the same arguments, else a new one.

        TORCH_EXTENSIONS_DIR, which must differ between files, is used on a GPU only, and there the spare worker is
        never older than the file's text.
        """
        process, self.process = self.process, None
        self._stop_clock()
        self.arguments = (submission, content, options)
        if process is not None and process.alive() and self.wanted == _situation(submission, options):
            if process.copy is not None:
                process.copy.write(content)
            return process
        if process is not None:
            process.kill()
        return sandbox.start(submission, content, **options)

    def prepare(self) -> None:
        """Start the next worker, for the file that was graded last. Does nothing if that fails, or before the first."""
        if self.process is not None or not self.arguments or threading.current_thread() is not threading.main_thread():
            return  # a worker ends with the thread that started it
        submission, content, options = self.arguments
        with contextlib.suppress(Exception):
            self.wanted = _situation(submission, options)
            self.process = sandbox.start(submission, content, **options)
            self.timer = threading.Timer(IDLE_TIMEOUT_S, self.close)
            self.timer.daemon = True
            self.timer.start()

    def close(self) -> None:
        """End the spare worker."""
        self._stop_clock()
        process, self.process = self.process, None
        if process is not None:
            process.kill()

    def _stop_clock(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def _situation(submission: Path, options: dict) -> tuple:
    """Return what a worker cannot change after its start: the code that it has loaded, and the file that it sees."""
    environment = dict(options.get("environment", {}))
    if not options.get("gpu"):
        environment.pop("TORCH_EXTENSIONS_DIR", None)
    # Landlock allows the file, not its name
    is_bound = not sandbox.why_not() and sandbox.probe().level is sandbox.Level.landlock
    bound = submission.lstat().st_ino if is_bound and os.path.lexists(submission) else 0
    outside = tuple(
        sorted((name, value) for name, value in os.environ.items() if not name.startswith(("COLUMNS", "LINES")))
    )
    return (
        str(submission.resolve()),
        options.get("gpu"),
        tuple(sorted(environment.items())),
        options.get("required"),
        outside,
        bound,
        ours(),
    )


SPARE, SECOND = Spare(), Spare()  # the judge's, and fault localization's
atexit.register(SPARE.close)
atexit.register(SECOND.close)


def prepare() -> None:
    """Start both workers for the file that was graded last."""
    SPARE.prepare()
    SECOND.arguments = SECOND.arguments or SPARE.arguments
    SECOND.prepare()


# --- verdicts kept ---------------------------------------------------------------------------------------------------

# What a verdict with one of these says depends on the moment, not on the file alone.
FLEETING = {
    *(
        Reason.timeout,
        Reason.kernel_timeout,
        Reason.build_timeout,
        Reason.out_of_memory,
        Reason.crash,
        Reason.nondeterministic,
    ),
    *(Reason.no_compiler, Reason.grader_error, Reason.interrupted, Reason.inconclusive, Reason.unreadable),
}
READERS = {
    "open",
    "exec",
    "eval",
    "compile",
    "__import__",
    "import_module",
    "__file__",
    "load",
    "read_text",
    "read_bytes",
    "environ",
    "getenv",
    "fromfile",
    "memmap",
}


def keepable(verdict: Verdict) -> bool:
    """Return whether the same file would get the same verdict: not if it is about time, memory, or the machine.

    Times on a GPU are measured again.
    """
    if verdict.outcome is Outcome.not_attempted:
        return True
    return (
        verdict.outcome in (Outcome.passed, Outcome.failed)
        and verdict.reason not in FLEETING
        and verdict.device.startswith("cpu")
    )


def self_contained(source: str, folder: Path) -> bool:
    """Whether the file's text is all that it consists of: it imports installed modules only, and reads no file that we
    can see.
    """
    try:
        tree = syntax.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return True  # that is the verdict
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            if node.level:
                return False
            names = [node.module or ""]
            if any(alias.name in READERS for alias in node.names):
                return False
        if any(_local(name.split(".")[0], folder) for name in names):
            return False
        if (isinstance(node, ast.Name) and node.id in READERS) or (
            isinstance(node, ast.Attribute) and node.attr in READERS - {"compile"}
        ):
            return False
        if isinstance(node, ast.keyword) and node.arg in ("extra_include_paths", "extra_ldflags"):
            return False
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and '#include "' in node.value:
            return False
    return True


def _local(name: str, folder: Path) -> bool:
    """Return whether a module is not an installed one, as far as is known without importing it."""
    if name in sys.stdlib_module_names or name in ("torch", "numpy"):
        return False
    return (
        (folder / f"{name}.py").exists()
        or (folder / name).exists()
        or name not in importlib.metadata.packages_distributions()
    )


def key(text: str, problem: Path | None, options: tuple) -> str:
    """Return a digest of everything that a verdict depends on.

    That is the file, the problem, the options, our own code, versions, and the environment.
    """
    digest = hashlib.sha256()
    parts = [
        text,
        problem.read_text(encoding="utf-8") if problem and problem.is_file() else "",
        repr(options),
        repr(ours()),
    ]
    environment = sorted(
        (name, value)
        for name, value in os.environ.items()
        if name.startswith(("SIMT", "CXX", "CUDA", "TORCH", "XDG", "PATH", "GRADER_SANDBOX"))
    )
    parts += [sys.version, importlib.metadata.version("torch"), repr(environment)]
    for part in parts:
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()


def ours() -> tuple:
    """The state of grader's and simt's own files: name, size, time of change."""
    found = []
    for root in ("grader", "simt"):
        for folder, inner, names in os.walk(PROJECT / root):
            inner[:] = [name for name in inner if name != "__pycache__"]
            for name in names:
                with contextlib.suppress(OSError):
                    stat = os.stat(os.path.join(folder, name))
                    found.append((folder, name, stat.st_size, stat.st_mtime_ns))
    return tuple(sorted(found))
