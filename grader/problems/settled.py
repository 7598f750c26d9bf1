"""Keeps what running a problem's file has shown, for the next process: its cases, and that inputs and weights settle
Model's results. Both take a second to find out, and follow from the file's text, --set, torch and this package.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path

import torch

from grader.problems.cases import Case
from simt.errors import CacheError
from simt.toolchain import cache

_FILE = "found.txt"


def find_cases(text: str, overrides: dict[str, object], make: Callable[[], list[Case]]) -> list[Case]:
    """Return the cases that were kept for a problem's text, or those that make() returns. Raises what make() raises."""

    def write() -> str:
        made = repr([dataclasses.asdict(case) for case in make()])
        ast.literal_eval(made)  # what cannot be read back, such as an infinity, is not kept
        return made

    try:
        return [Case(**fields) for fields in ast.literal_eval(_find_or_make(text, overrides, "cases", write))]
    except (ValueError, SyntaxError, TypeError):
        return make()


def once(text: str, overrides: dict[str, object], what: str, check: Callable[[], None]) -> None:
    """Call check() unless it has raised nothing before for this text. what: a name of it. Raises what it raises."""

    def write() -> str:
        check()
        return ""

    _find_or_make(text, overrides, what, write)


def _find_or_make(text: str, overrides: dict[str, object], what: str, make: Callable[[], str]) -> str:
    key = cache.hash_texts(what, text, repr(overrides), torch.__version__, _hash_package())
    try:
        place, _ = cache.find_or_make("problem", key, lambda folder: _write(folder, make()))
        return (place / _FILE).read_text(encoding="utf-8")
    except (CacheError, OSError):  # it cannot be kept
        return make()


def _write(folder: Path, text: str) -> None:
    (folder / _FILE).write_text(text, encoding="utf-8")


@functools.cache
def _hash_package() -> str:
    """Return a hash of the code that finds cases."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return cache.hash_texts(*(file.read_text(encoding="utf-8") for file in files))
