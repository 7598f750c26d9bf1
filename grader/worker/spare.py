"""A worker that has loaded torch before it is needed, for whoever grades the same file again and again."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from grader.worker import sandbox
from grader.worker.process import KEPT_BYTES, KEPT_ENTRIES
from grader.worker.quota import Quota

PROJECT = Path(__file__).resolve().parents[2]
IDLE_TIMEOUT_S = 900.0  # a waiting spare worker holds about 300 MB


class Spare:
    """One worker started in advance for a file. `start` takes the arguments of sandbox.start and returns it."""

    def __init__(self):
        self.process: sandbox.Process | None = None
        self.wanted: tuple = ()
        self.arguments: tuple = ()
        self.home: tuple = ()
        self.timer: threading.Timer | None = None

    def start(self, submission: Path, content: bytes, **options) -> sandbox.Process:
        """Return the spare worker if it was started for the same file in the same situation, else a new one.

        All texts of a file share one folder for torch's builds, that of the first: after an edit most of it is still
        valid. A folder that is half full is replaced by that of the present text, before its contents are removed.
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
        if not self.arguments or threading.current_thread() is not threading.main_thread():
            return  # a worker ends with the thread that started it
        submission, content, options = self.arguments
        with contextlib.suppress(Exception):
            wanted = _situation(submission, options)
            if self.process is not None and self.wanted == wanted:
                return
            self.close()
            self.wanted = wanted
            file = submission, options.get("gpu")
            if self.home[:-1] != file or _is_half_full(self.home[-1]):
                self.home = *file, options.get("builds")
            self.process = sandbox.start(submission, content, **options | {"builds": self.home[-1]})
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


def _is_half_full(builds: Path) -> bool:
    """Return whether a folder for torch's builds, or simt's beside it, holds half of what may stay there."""
    own = [folder for folder in sandbox.folders(builds)[0] if folder != sandbox.simt_cache()]
    return any(Quota([folder], KEPT_BYTES // 2, KEPT_ENTRIES // 2).is_exceeded() for folder in own)


def _situation(submission: Path, options: dict) -> tuple:
    """Return what a worker cannot change after its start: the code that it has loaded, and the file that it sees."""
    # Landlock allows the file, not its name
    is_bound = not sandbox.why_not() and sandbox.probe().level is sandbox.Level.landlock
    bound = submission.lstat().st_ino if is_bound and os.path.lexists(submission) else 0
    outside = tuple(
        sorted((name, value) for name, value in os.environ.items() if not name.startswith(("COLUMNS", "LINES")))
    )
    return (
        str(submission.resolve()),
        options.get("gpu"),
        options.get("required"),
        outside,
        bound,
        list_own_files(),
    )


def list_own_files() -> tuple:
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
