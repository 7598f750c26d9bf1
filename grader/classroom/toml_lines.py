"""Find the lines of a TOML file on which its keys are. tomllib, which reads the values, does not keep them."""

from __future__ import annotations

import re
import tomllib

KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
DOTTED = rf"{KEY}(?:\s*\.\s*{KEY})*"
_TABLE = re.compile(rf"\s*(\[\[?)\s*({DOTTED})\s*\]")
_ASSIGNED = re.compile(rf"\s*({DOTTED})\s*=\s*(.*)")
_LONG = ('"""', "'''")

Path = tuple[str | int, ...]


def find_lines(text: str) -> dict[Path, int]:
    """Return the line of each table and key, counted from 1, by its path such as ("problems", "groupnorm", "due").

    The n-th table of an array has the number n, from 0, in its path. Keys of inline tables have no line of their own.
    text: TOML that tomllib reads.
    """
    found: dict[Path, int] = {}
    table: Path = ()
    counts: dict[Path, int] = {}
    ends, depth = "", 0  # what ends the string of several lines, and how many brackets are open
    for number, line in enumerate(text.splitlines(), 1):
        if ends or depth:
            ends, depth = _follow(line, ends, depth)
        elif match := _TABLE.match(line):
            table = _number(_split(match[2]), counts)
            if match[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            for length in range(1, len(table) + 1):  # [a.b] makes a, too
                found.setdefault(table[:length], number)
        elif match := _ASSIGNED.match(line):
            found.setdefault((*table, *_split(match[1])), number)
            ends, depth = _follow(match[2], "", 0)
    return found


def find_line(text: str, path: Path) -> int | None:
    """Return the line of a value, or of the innermost table around it that has one."""
    lines = find_lines(text)
    return next((lines[path[:length]] for length in range(len(path), 0, -1) if path[:length] in lines), None)


def _split(dotted: str) -> Path:
    """Return the keys of a dotted key, without their quotes."""
    value: object = tomllib.loads(f"{dotted} = 0")
    path: list[str] = []
    while isinstance(value, dict):
        ((key, value),) = value.items()
        path.append(key)
    return tuple(path)


def _number(path: Path, counts: dict[Path, int]) -> Path:
    """Return the path with the number of the last table after each array of tables in it but the last key."""
    made: Path = ()
    for place, key in enumerate(path):
        made = (*made, key)
        if made in counts and place < len(path) - 1:
            made = (*made, counts[made])
    return made


def _follow(line: str, ends: str, depth: int) -> tuple[str, int]:
    """Return what still ends a string, and how many brackets are open, at the end of a line."""
    place = 0
    while place < len(line):
        rest = line[place:]
        if ends:
            if ends[0] == '"' and rest[0] == "\\":
                place += 2
            elif rest.startswith(ends):
                place, ends = place + len(ends), ""
            else:
                place += 1
        elif rest[0] == "#":
            break
        else:
            ends = next((quote for quote in (*_LONG, '"', "'") if rest.startswith(quote)), "")
            depth += (rest[0] in "[{") - (rest[0] in "]}")
            place += len(ends) or 1
    return (ends if len(ends) == 3 else ""), depth
