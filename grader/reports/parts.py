"""The parts that a report consists of, for a terminal and for a notebook alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol


@dataclasses.dataclass(frozen=True)
class Words:
    """A paragraph. look: "title", "lead", "text" or "soft". tone: an outcome or status. `code` is in backquotes."""

    text: str
    look: str = "text"
    tone: str = ""


@dataclasses.dataclass(frozen=True)
class Table:
    """A table. tones: of the second cell of each row. head: column names. numbers: indices of numeric columns."""

    rows: Sequence[Sequence[str]]
    tones: Sequence[str] = ()
    head: Sequence[str] = ()
    numbers: Sequence[int] = ()


@dataclasses.dataclass(frozen=True)
class Code:
    """Lines of the student's source: (number, text, whether it is marked as wrong). caption: the text above them."""

    lines: Sequence[tuple[int, str, bool]]
    caption: str = ""


class Drawn(Protocol):
    """What a part needs of grader.pictures.Picture."""

    alt: str

    def svg(self) -> str: ...
    def html(self) -> str: ...


@dataclasses.dataclass(frozen=True)
class Image:
    """A picture of grader.pictures."""

    picture: Drawn
