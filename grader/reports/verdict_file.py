"""Writes the file of `grader grade --json`: one verdict per line, complete lines only. What the file held before stays
until there is a new verdict.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from grader.source import contract
from grader.verdict import SCHEMA, Outcome, Verdict, from_json, spelled, to_json
from grader.worker.levels import is_unprotected

BEGINS = f'{{"schema":"{SCHEMA.rpartition("/")[0]}/'.encode()  # as to_json writes it


class UnusableFile(Exception):
    """Verdicts cannot be written to this file; str() is one sentence."""


class VerdictWriter:
    """Writes verdicts to a file, a pipe, standard output ("-") or nowhere (None).

    A regular file is replaced when the first verdict is written, and only if it held verdicts; until close() no other
    grader can use it. used: files that must not be overwritten. resume: the file's verdicts become `earlier` and are
    kept. Raises UnusableFile.
    """

    def __init__(self, name: str | None, used: Sequence[Path] = (), resume: bool = False):
        self.name = name
        self.earlier: list[Verdict] = []
        self.file: Path | None = None  # a regular file
        self.out: io.FileIO | None = None  # receives the lines; for a regular file, from the first verdict on
        self.size = 0
        self.lock: tuple[Path, int] | None = None  # a file next to it, and the descriptor that locks it
        try:
            self._open(used, resume)
        except OSError as error:
            self.close()
            raise UnusableFile(f"{error.strerror}.") from None
        except UnusableFile:
            self.close()
            raise

    def _open(self, used: Sequence[Path], resume: bool) -> None:
        if self.name is None:
            return
        real = Path(os.path.realpath(self.name))
        if self.name == "-" or _is_stdout(real):
            self.out = io.FileIO(os.dup(1), "wb")
        elif real.exists() and not real.is_file():
            self.out = io.FileIO(real, "wb")
        else:
            self._prepare(real, used)
            self.earlier = _parse_verdicts(real.read_bytes()) if resume and real.exists() else []
        if resume and self.file is None:
            raise UnusableFile("--resume needs an ordinary file.")

    def _prepare(self, real: Path, used: Sequence[Path]) -> None:
        """Check that replacing this file loses nothing but verdicts, and that it can be written."""
        if any(os.path.realpath(other) == str(real) or _is_same_file(other, real) for other in used):
            raise UnusableFile("this file is graded, so the verdicts cannot be written to it.")
        if real.suffix == ".py":
            raise UnusableFile("this is a Python file. The name after --json is the file that receives the verdicts.")
        # before it is read, as its content stays until we replace it
        self.lock = _lock(real.with_name(f".{real.name}.lock"))
        if real.exists():
            with open(real, "rb") as old:
                if old.read(len(BEGINS)) not in (b"", BEGINS):
                    raise UnusableFile(
                        "this file holds something other than verdicts and was not changed. "
                        "Name another file, or delete it."
                    )
        self.file = real
        new = _temporary_name(real)
        open(new, "xb").close()
        new.unlink()

    def find_earlier(
        self,
        path: Path,
        problem: str,
        problem_sha256: str,
        settings: dict[str, str],
        seed: int | None,
        device: str | None,
        folder: Path | None = None,
        timeout: float | None = None,
        gpu: str | None = None,
        sandboxed: bool = False,
    ) -> Verdict | None:
        """Return the earlier verdict that grading this file again would repeat, or None. Outdated verdicts on the same
        file, problem and settings are removed from `earlier`. folder: as for contract.read. timeout, gpu: as for
        Verdict.holds_for. sandboxed: whether a verdict without a sandbox is not to be repeated.
        """
        matching = [old for old in self.earlier if _concerns(old, path, problem, settings)]
        sha256 = contract.read(path, folder)[0].sha256 if matching else ""
        valid = [
            old
            for old in matching
            if _is_valid(old, sha256, problem_sha256, seed)
            and old.holds_for(device, timeout, gpu)
            and not (sandboxed and is_unprotected(old.sandbox))
        ][-1:]
        self.earlier = [
            old for old in self.earlier if not any(old is one for one in matching) or any(old is one for one in valid)
        ]
        return valid[0] if valid else None

    def write(self, verdict: Verdict) -> str:
        """Add a line. Returns why it could not be written, or an empty string."""
        line = to_json(verdict) + b"\n"
        try:
            if self.out is None and self.file is not None:
                self._replace(self.file, b"".join(to_json(old) + b"\n" for old in self.earlier) + line)
            elif self.out is not None:
                self._append(self.out, line)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _append(self, out: io.FileIO, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[out.write(left) :]
        except OSError:
            if self.file is not None:  # remove the half line that fitted on a full disk
                with contextlib.suppress(OSError):
                    os.ftruncate(out.fileno(), self.size)
            raise
        self.size += len(data)

    def _replace(self, file: Path, data: bytes) -> None:
        """Replace the file in one step by a new one that begins with this data."""
        new = _temporary_name(file)
        try:
            self.out = io.FileIO(new, "xb")
            self._append(self.out, data)
            if file.exists():
                shutil.copymode(file, new)
            os.replace(new, file)
        except BaseException:
            with contextlib.suppress(OSError):
                new.unlink()
            raise

    def close(self) -> None:
        """Stop writing and release the file for other graders."""
        if self.out is not None:
            with contextlib.suppress(OSError):  # each line has been written already
                self.out.close()
        if self.lock is not None:
            lock_file, descriptor = self.lock
            self.lock = None
            with contextlib.suppress(OSError):
                lock_file.unlink()
            os.close(descriptor)


def _temporary_name(file: Path) -> Path:
    return file.with_name(f".{file.name}.{os.getpid()}")


def _is_stdout(file: Path) -> bool:
    """Return whether this is standard output, such as /dev/stdout: opened again, it would be written from its start."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(1), file.stat())
    return False


def _lock(lock_file: Path) -> tuple[Path, int] | None:
    """Create and lock this file; return None where the file system has no locks. Raises UnusableFile if another grader
    holds it.

    The operating system drops the lock when its process ends, so the file of a killed grader can be reused.
    """
    while True:
        descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock_file.exists() and os.path.samestat(os.fstat(descriptor), lock_file.stat()):
                return lock_file, descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise UnusableFile("another grader is using this file. Wait until it ends, or name another file.") from None
        except FileNotFoundError:
            pass
        except OSError:
            os.close(descriptor)
            lock_file.unlink(missing_ok=True)
            return None
        os.close(descriptor)  # its owner deleted it after we opened it: ours has no name


def _is_same_file(one: Path, other: Path) -> bool:
    """Return whether both paths lead to the same file."""
    with contextlib.suppress(OSError):
        return os.path.samefile(one, other)
    return False


def _parse_verdicts(data: bytes) -> list[Verdict]:
    """Return the verdicts in the lines, without a last line that was cut off. Raises UnusableFile."""
    found = []
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            found.append(from_json(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnusableFile(
                f"line {number} is not a verdict that this grader can read ({error}). The file was not changed."
            ) from None
    return found


def _concerns(old: Verdict, path: Path, problem: str, settings: dict[str, str]) -> bool:
    """Return whether a verdict is on this file, problem ("" if unknown) and settings."""
    return (old.submission.path, old.problem, old.settings) == (
        spelled(str(path)),
        spelled(problem) or old.problem,
        settings,
    )


def _is_valid(old: Verdict, sha256: str, problem_sha256: str, seed: int | None) -> bool:
    """Return whether a verdict is on the same submission, problem and seed, and no error.

    A verdict without the problem's hash, as older graders wrote it, is not valid.
    """
    if old.outcome is Outcome.error or not sha256 or not problem_sha256:
        return False
    if (old.submission.sha256, old.problem_sha256) != (sha256, problem_sha256):
        return False
    return seed in (None, old.seed)
