"""The file of `grader grade --json`: a verdict a line, whole lines only, and what it held before stays until there is a new one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from grader import contract
from grader.verdict import SCHEMA, Outcome, Verdict, from_json, spelled, to_json

BEGINS = f'{{"schema":"{SCHEMA.rpartition("/")[0]}/'.encode()  # as to_json writes it


class Unfit(Exception):
    """Verdicts are not written there; str() is one sentence."""


class Lines:
    """Verdicts on their way to a file, a pipe, standard output ("-") or nowhere (None).

    An ordinary file is replaced when the first verdict is there, and only if it held verdicts; until close() it is this grader's
    alone. used: files that must not be written over. resume: the verdicts that the file holds are `earlier`, and stay. Raises Unfit.
    """

    def __init__(self, name: str | None, used: Sequence[Path] = (), resume: bool = False):
        self.name = name
        self.earlier: list[Verdict] = []
        self.file: Path | None = None  # an ordinary file
        self.out = None  # what takes the lines; of an ordinary file only once there is one
        self.size = 0
        self.lock: tuple[Path, int] | None = None  # a file beside it, and the descriptor that locks it
        try:
            self._open(used, resume)
        except OSError as error:
            self.close()
            raise Unfit(f"{error.strerror}.") from None
        except Unfit:
            self.close()
            raise

    def _open(self, used: Sequence[Path], resume: bool) -> None:
        if self.name is None:
            return
        real = Path(os.path.realpath(self.name))
        if self.name == "-" or _is_stdout(real):
            self.out = open(os.dup(1), "wb", buffering=0)
        elif real.exists() and not real.is_file():
            self.out = open(real, "wb", buffering=0)
        else:
            self._prepare(real, used)
            self.earlier = _verdicts(real.read_bytes()) if resume and real.exists() else []
        if resume and self.file is None:
            raise Unfit("--resume goes on with an ordinary file.")

    def _prepare(self, real: Path, used: Sequence[Path]) -> None:
        """See to it that nothing else is lost with this file, and that it can be written."""
        if any(os.path.realpath(other) == str(real) or _same(other, real) for other in used):
            raise Unfit("this is what is to be graded, and not where the verdicts go.")
        if real.suffix == ".py":
            raise Unfit("this is a Python file; what stands after --json is the file that the verdicts go to.")
        self.lock = _locked(real.with_name(f".{real.name}.lock"))  # before it is read: what is in it stays until we replace it
        if real.exists():
            with open(real, "rb") as old:
                if old.read(len(BEGINS)) not in (b"", BEGINS):
                    raise Unfit("this file holds something other than verdicts and is left as it is: name another, or remove it.")
        self.file = real
        new = self._beside()
        open(new, "xb").close()
        new.unlink()

    def _beside(self) -> Path:
        return self.file.with_name(f".{self.file.name}.{os.getpid()}")

    def known(
        self, path: Path, problem: str, problem_sha256: str, settings: dict[str, str], seed: int | None, device: str | None
    ) -> Verdict | None:
        """The earlier verdict that grading this file again would only repeat. Others on the same question are left out of `earlier`."""
        asked = [old for old in self.earlier if _answers(old, path, problem, settings)]
        sha256 = contract.read(path)[0].sha256 if asked else ""
        standing = [old for old in asked if _stands(old, sha256, problem_sha256, seed, device)][-1:]
        self.earlier = [old for old in self.earlier if not any(old is one for one in asked) or any(old is one for one in standing)]
        return standing[0] if standing else None

    def write(self, verdict: Verdict) -> str:
        """Add a line; if that cannot be done, say why in a few words."""
        line = to_json(verdict) + b"\n"
        try:
            if self.out is None and self.file is not None:
                self._replace(b"".join(to_json(old) + b"\n" for old in self.earlier) + line)
            elif self.out is not None:
                self._put(line)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _put(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[self.out.write(left) :]
        except OSError:
            if self.file is not None:  # on a full disk, half a line
                with contextlib.suppress(OSError):
                    os.ftruncate(self.out.fileno(), self.size)
            raise
        self.size += len(data)

    def _replace(self, data: bytes) -> None:
        """Put a new file, which begins with this, in the old one's place in one step."""
        new = self._beside()
        try:
            self.out = open(new, "xb", buffering=0)
            self._put(data)
            if self.file.exists():
                shutil.copymode(self.file, new)
            os.replace(new, self.file)
        except BaseException:
            with contextlib.suppress(OSError):
                new.unlink()
            raise

    def close(self) -> None:
        """Nothing more is written, and another grader may use the file."""
        if self.out is not None:
            with contextlib.suppress(OSError):  # each line is out already
                self.out.close()
        if self.lock is not None:
            beside, descriptor = self.lock
            self.lock = None
            with contextlib.suppress(OSError):
                beside.unlink()
            os.close(descriptor)


def _is_stdout(file: Path) -> bool:
    """Whether this is standard output, as /dev/stdout is: opened again, it would be written from its beginning."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(1), file.stat())
    return False


def _locked(beside: Path) -> tuple[Path, int] | None:
    """This file, made and locked; None where the file system has no locks. Raises Unfit if another grader has it.

    The lock is the kernel's and falls with its process; the file that a killed one leaves is taken over.
    """
    while True:
        descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if beside.exists() and os.path.samestat(os.fstat(descriptor), beside.stat()):
                return beside, descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise Unfit("another grader is using this file: wait for its end, or name another file.") from None
        except FileNotFoundError:
            pass
        except OSError:
            os.close(descriptor)
            beside.unlink(missing_ok=True)
            return None
        os.close(descriptor)  # who had it has removed it since we opened it: ours has no name


def _same(one: Path, other: Path) -> bool:
    """Whether both are one file, by whatever names."""
    with contextlib.suppress(OSError):
        return os.path.samefile(one, other)
    return False


def _verdicts(data: bytes) -> list[Verdict]:
    """The verdicts in the lines; a last line that was cut off is none. Raises Unfit."""
    found = []
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            found.append(from_json(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unfit(f"line {number} is no verdict that this grader reads ({error}); the file is left as it is.") from None
    return found


def _answers(old: Verdict, path: Path, problem: str, settings: dict[str, str]) -> bool:
    """Whether a verdict is one on this file as an answer to this problem ("" if nobody knows which)."""
    return (old.submission.path, old.problem, old.settings) == (spelled(str(path)), spelled(problem) or old.problem, settings)


def _stands(old: Verdict, sha256: str, problem_sha256: str, seed: int | None, device: str | None) -> bool:
    """Whether grading these bytes by these again would say the same: nothing kept the grader from it, and it ran as is asked now.

    A line that does not know the problem's bytes, as older graders wrote them, may be of any: that is graded again.
    """
    if old.outcome is Outcome.error or not sha256 or not problem_sha256:
        return False
    if (old.submission.sha256, old.problem_sha256) != (sha256, problem_sha256):
        return False
    ran_on = "cpu" if old.device.startswith("cpu (") else "cuda"
    return seed in (None, old.seed) and device in (None, ran_on)
