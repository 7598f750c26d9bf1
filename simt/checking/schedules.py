"""Run a program again with its threads and blocks in other orders: its output must not change."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from simt.checking.findings import Finding
from simt.runtime import library
from simt.runtime.program_files import SUFFIXES
from simt.toolchain.lines import find_source_lines
from simt.toolchain.threads import map_on_threads

OTHERS = ("reverse", "1")
# Values of SIMT_COMPARED, which program.cpp in simt/src reads. Each makes it sort what kernels print.
_SAME_TIMES, _OTHER_TIMES = "same times", "other times"
# simt::Atomic's numbers of the operations whose result always depends on the order of the threads.
_EXCHANGES = (9, 10)


def compare(files: Sequence[Path], arguments: Sequence[str], options: list[str], seconds: float) -> list[Finding]:
    """Return a finding if the program prints or returns something else with another schedule.

    options: of `python -m simt run`, before the file. seconds: limit for one run; a run that takes longer is ignored.
    The program runs on one CPU thread: with several threads the order would change from run to run anyway. What kernels
    print is sorted, since blocks and threads may print in any order. Lines that differ between two runs of the same
    schedule, of which the second has clocks that jump, are ignored too: they hold times, addresses or random numbers.
    The finding names an atomic operation that the checked run executed as the likely cause. Raises OSError where no
    process can be started.
    """
    head = [sys.executable, "-m", "simt", "run", "--threads", "1", *options, "--schedule"]
    runs = (("forward", _SAME_TIMES), ("forward", _OTHER_TIMES), *((other, _SAME_TIMES) for other in OTHERS))

    def run(order: tuple[str, str]) -> tuple[int, str] | None:
        schedule, times = order
        return _run_to_end([*head, schedule, *map(str, files), *_keep_apart(arguments)], times, seconds)

    first, again, *others = map_on_threads(run, runs)
    if not first or not again or first[0] != again[0] or first[1].count("\n") != again[1].count("\n"):
        return []
    unsteady = _Unsteady(first[1].split("\n"), again[1].split("\n"))
    for schedule, other in zip(OTHERS, others):
        if other and unsteady.blank(first) != unsteady.blank(other):
            return [_make_finding(schedule, unsteady.blank(first), unsteady.blank(other))]
    return []


def _keep_apart(arguments: Sequence[str]) -> list[str]:
    """Return the program's arguments, with a -- before one that would be taken for a file of the program."""
    return ["--", *arguments] if arguments and Path(arguments[0]).suffix in SUFFIXES else [*arguments]


class _Unsteady:
    """The lines of a program's output that differ between two runs of one schedule."""

    def __init__(self, first: list[str], again: list[str]) -> None:
        """Compare the lines of the two runs, which are equally many."""
        pairs = [(n, a, b) for n, (a, b) in enumerate(zip(first, again)) if a != b]
        self.numbers = {n for n, _, _ in pairs}
        # Where only numbers differ, so may those of other lines of the same form, at other places in another order.
        self.forms = {_mask_numbers(a) for _, a, b in pairs if _mask_numbers(a) == _mask_numbers(b)}

    def blank(self, end: tuple[int, str]) -> tuple[int, str]:
        """Return the same status and output with the unsteady lines blank."""
        lines = (
            "" if n in self.numbers or _mask_numbers(line) in self.forms else line
            for n, line in enumerate(end[1].split("\n"))
        )
        return end[0], "\n".join(lines)


def _mask_numbers(line: str) -> str:
    return re.sub(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", "#", line)


def _run_to_end(command: list[str], times: str, seconds: float) -> tuple[int, str] | None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=seconds,
            env={**os.environ, "SIMT_COMPARED": times},
        )
    except subprocess.TimeoutExpired:
        return None
    return done.returncode, done.stdout


def _make_finding(schedule: str, first: tuple[int, str], other: tuple[int, str]) -> Finding:
    pairs = zip(first[1].splitlines(), other[1].splitlines())
    number, (a, b) = next(((n, pair) for n, pair in enumerate(pairs, 1) if pair[0] != pair[1]), (0, ("", "")))
    if number:
        what = f"line {number} of its output changes from “{_shorten(a)}” to “{_shorten(b)}”"
    elif first[0] != other[0]:
        what = f"it ends with status {other[0]} instead of {first[0]}"
    else:
        what = f"it prints {len(other[1].splitlines())} lines instead of {len(first[1].splitlines())}"
    kernel, source, line = _find_atomic()
    cause = (
        f" The likely cause is the atomic operation in line {line}: do not let the result depend on which thread "
        "executes it first."
        if line
        else ""
    )
    message = (
        "The program's result depends on the order in which threads and blocks run: "
        f"with --schedule {schedule}, {what}.{cause}"
    )
    return Finding("schedule", "error", message, kernel=kernel, source=source, line=line)


def _find_atomic() -> tuple[str, str, int]:
    """Return the kernel, source and line of the atomic operation that is the likeliest cause: an exchange if any."""
    sites = library.take_atomics()
    lines = find_source_lines(place for _, _, place in sites if place)
    found = [
        (kind not in _EXCHANGES, *line, kernel) for kernel, kind, place in sites if place and (line := lines.get(place))
    ]
    if not found:
        return "", "", 0
    _, source, line, kernel = min(found)
    return kernel, source, line


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"
