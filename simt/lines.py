"""Finds the source lines of addresses in compiled extensions, all of them in one go."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable

# What #line calls the student's sources: load_inline's arguments, or a program's files, which are made known.
_STUDENTS = re.compile(r"(?:.*/)?((?:cuda|cpp)_sources(?:\[\d+\])?):(\d+)")
_labels: set[str] = set()
_known: dict[tuple[str, int], tuple[str, int] | None] = {}


def know(labels: Iterable[str]) -> None:
    """What messages call the files of a program."""
    _labels.update(labels)


def source_lines(places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], tuple[str, int] | None]:
    """The innermost place in the student's sources, (label, line), of each (module's path, offset); None where there is none."""
    places = set(places)
    unknown: dict[str, list[int]] = {}
    for path, offset in places:
        if (path, offset) not in _known:
            unknown.setdefault(path, []).append(offset)
    for path, offsets in unknown.items():
        _known.update({(path, offset): place for offset, place in _look_up(path, offsets).items()})
    return {place: _known.get(place) for place in places}


def _look_up(path: str, offsets: list[int]) -> dict[int, tuple[str, int] | None]:
    command = ["addr2line", "-a", "-i", "-e", path]
    try:
        out = subprocess.run(command, input="".join(f"{o:#x}\n" for o in offsets), capture_output=True, text=True, check=False, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        return dict.fromkeys(offsets)
    found: dict[int, tuple[str, int] | None] = {}
    current = None
    for line in out.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            current = int(line, 16)
            found[current] = None
        elif current is not None and found[current] is None:
            found[current] = _place(line)
    return found


def _place(text: str) -> tuple[str, int] | None:
    """The label and line that addr2line's `text` names; None where that is none of the student's."""
    if match := _STUDENTS.match(text):
        file, number = match[1], match[2]
    else:
        file, _, number = re.sub(r" \(discriminator \d+\)$", "", text).rpartition(":")
        file = next((label for label in sorted(_labels, key=len, reverse=True) if file == label or file.endswith("/" + label)), "")
    return (file, int(number)) if file and number.isdigit() and int(number) else None
