"""Find the answers of exercises in what is handed out, and files that stay with instructors."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from grader.authoring.answers import Answers, Find
from grader.authoring.pieces import Unreadable, read_folder
from grader.paths import ROOT
from grader.problems.exercises import source_of

TEACHES = "teaches-"  # a cell with the tag teaches-NAME shows part of the answer of NAME on purpose
# What shows more than one answer, or a nearly right one: whole copies of these files are found too.
KEPT_BACK = [f"kernels_ref/*/{name}" for name in ("solution.py", "backward.py", "split.py", "fastest*.py")]
KEPT_BACK += ["kernels_ref/*/steps/*.py", "kernels_ref/*/fastest/*", "kernels_ref/shared/*", "tests/specimens/**/*.py"]
SHORT = 200  # characters of a file that shows nothing: specimens of broken files
MOST_SHOWN = 0.75  # of an exercise's answers that such a cell may show


@dataclass(frozen=True)
class Leak:
    """A place that gives an answer away."""

    place: str
    find: Find

    def __str__(self) -> str:
        first, last = self.find.lines
        lines = f"line {first}" if first == last else f"lines {first} to {last}"
        shown = f"{self.find.tokens} tokens in a row, {100 * self.find.share:.0f} % of the answer"
        return f"{self.place}, {lines}: {shown} of {self.find.exercise}"


@dataclass(frozen=True)
class Copy:
    """A place that holds a whole file which stays with instructors."""

    place: str
    of: str

    def __str__(self) -> str:
        return f"{self.place}: a copy of {self.of}"


@dataclass
class Leaks:
    """What was found. taught: what cells show on purpose, which is allowed; unread: what could not be looked into;
    texts: how many were.
    """

    found: list[Leak] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    taught: list[Leak] = field(default_factory=list)
    unread: list[Unreadable] = field(default_factory=list)
    texts: int = 0

    def __bool__(self) -> bool:
        return bool(self.found or self.copies or self.unread)


def find_leaks(folder: Path, answers: Answers, solved: Collection[str] = (), root: Path = ROOT) -> Leaks:
    """Look for answers in everything below a folder, or in one file, and for copies of what stays with instructors.

    solved: exercises whose solutions may be there. root: the course. Raises OSError.
    """
    leaks, kept = Leaks(), _read_kept(root, solved)
    for piece in read_folder(folder):
        if isinstance(piece, Unreadable):
            leaks.unread.append(piece)
            continue
        leaks.texts += 1
        if of := kept.get(_digest(piece.text)):
            leaks.copies.append(Copy(piece.place, of))
        for find in answers.find(piece.text):
            allowed = TEACHES + find.exercise in piece.tags and find.share < MOST_SHOWN
            (leaks.taught if allowed else leaks.found).append(Leak(piece.place, find))
    return leaks


def _read_kept(root: Path, solved: Collection[str]) -> dict[bytes, str]:
    """Return the digests of the files that stay with instructors, and the path of each."""
    files = {path for pattern in KEPT_BACK for path in root.glob(pattern) if path.is_file()}
    files -= {source_of(name) for name in solved}
    texts = {path: path.read_text("utf-8", "replace") for path in sorted(files)}
    return {_digest(text): path.relative_to(root).as_posix() for path, text in texts.items() if len(text) > SHORT}


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()
