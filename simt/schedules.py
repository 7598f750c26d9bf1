"""Runs a program again with its threads and blocks in other orders: what it prints must not change."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import runtime
from .checks import Finding
from .lines import source_lines

OTHERS = ("reverse", "1")
# simt::Atomic's numbers of the operations whose result depends on who came first, whatever the program does with it.
_EXCHANGES = (9, 10)


def compare(file: Path, arguments: tuple[str, ...], options: list[str], seconds: float) -> list[Finding]:
    """A finding where the program prints something else, or ends otherwise, with another schedule.

    options: of `python -m simt run`, before the file. seconds: limit for one run; a run that takes longer tells nothing.
    One thread of the CPU runs them: what happens in an order of its own each time can't be told from what is unsteady.
    Lines that differ between two runs of the same schedule (times, addresses) tell nothing either. The atomics that the
    checked run executed are told as the likely cause.
    """
    head = [sys.executable, "-m", "simt", "run", "--threads", "1", *options, "--schedule"]
    commands = [[*head, schedule, str(file), *arguments] for schedule in ("forward", "forward", *OTHERS)]
    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(lambda command: _end(command, seconds), commands))
    first, again, *others = ends
    if not first or not again or first[0] != again[0] or first[1].count("\n") != again[1].count("\n"):
        return []
    unsteady = {n for n, (a, b) in enumerate(zip(first[1].split("\n"), again[1].split("\n"))) if a != b}
    for schedule, other in zip(OTHERS, others):
        if other and _without(first, unsteady) != _without(other, unsteady):
            return [_finding(schedule, _without(first, unsteady), _without(other, unsteady))]
    return []


def _without(end: tuple[int, str], lines: set[int]) -> tuple[int, str]:
    """The same end with these lines of the output blank, counted from 0."""
    return end[0], "\n".join("" if n in lines else line for n, line in enumerate(end[1].split("\n")))


def _end(command: list[str], seconds: float) -> tuple[int, str] | None:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.returncode, done.stdout


def _finding(schedule: str, first: tuple[int, str], other: tuple[int, str]) -> Finding:
    pairs = zip(first[1].splitlines(), other[1].splitlines())
    number, (a, b) = next(((n, pair) for n, pair in enumerate(pairs, 1) if pair[0] != pair[1]), (0, ("", "")))
    if number:
        what = f"line {number} of its output, “{_short(a)}”, becomes “{_short(b)}”"
    elif first[0] != other[0]:
        what = f"it ends with status {other[0]} instead of {first[0]}"
    else:
        what = f"it prints {len(other[1].splitlines())} lines instead of {len(first[1].splitlines())}"
    kernel, source, line = _atomic()
    cause = f" The atomic operation in line {line} is a likely cause: the order in which threads come to it decides." if line else ""
    return Finding(
        "schedule", "error", f"The program's result depends on the order in which threads and blocks run: with --schedule {schedule}, {what}.{cause}",
        kernel=kernel, source=source, line=line,
    )  # fmt: skip


def _atomic() -> tuple[str, str, int]:
    """The kernel and line of the atomic operation that most likely decides: an exchange before a sum."""
    sites = runtime.take_atomics()
    lines = source_lines(place for _, _, place in sites if place)
    found = [(kind not in _EXCHANGES, *lines[place], kernel) for kernel, kind, place in sites if place and lines.get(place)]
    if not found:
        return "", "", 0
    _, source, line, kernel = min(found)
    return kernel, source, line


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"
