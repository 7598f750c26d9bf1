"""Find the answers of exercises in what is handed out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from grader.authoring.answers import Answers, Find
from grader.authoring.pieces import Unreadable, read_folder

TEACHES = "teaches-"  # a cell with the tag teaches-NAME shows part of the answer of NAME on purpose
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


@dataclass
class Leaks:
    """What was found. taught: what cells show on purpose, which is allowed; unread: what could not be looked into;
    texts: how many were.
    """

    found: list[Leak] = field(default_factory=list)
    taught: list[Leak] = field(default_factory=list)
    unread: list[Unreadable] = field(default_factory=list)
    texts: int = 0

    def __bool__(self) -> bool:
        return bool(self.found or self.unread)


def find_leaks(folder: Path, answers: Answers) -> Leaks:
    """Look for answers in everything below a folder, or in one file. Raises OSError."""
    leaks = Leaks()
    for piece in read_folder(folder):
        if isinstance(piece, Unreadable):
            leaks.unread.append(piece)
            continue
        leaks.texts += 1
        for find in answers.find(piece.text):
            allowed = TEACHES + find.exercise in piece.tags and find.share < MOST_SHOWN
            (leaks.taught if allowed else leaks.found).append(Leak(piece.place, find))
    return leaks
