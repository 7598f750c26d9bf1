"""Draw a ladder: the times of the steps from a naive kernel to the reference, and of the student's kernel."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.pictures.picture import (
    BLUE,
    FAINT,
    INK,
    PANEL,
    SOFT,
    VERMILION,
    WIDTH,
    Picture,
    axes,
    clipped,
    new_figure,
    seconds,
)

NEAR = 1.02  # times as fast, up to which two kernels are about as fast
MEASURED = Path(__file__).resolve().parents[2] / "benchmarks" / "data" / "steps.json"


@dataclass(frozen=True)
class Step:
    """A kernel's name and seconds, predicted or measured."""

    name: str
    seconds: float
    predicted: bool = False


def steps_of(problem: str, data: Path | dict = MEASURED) -> list[Step]:
    """Return the measured steps of a problem (benchmarks/data/steps.json) in order; raise ValueError if it has none."""
    table = data if isinstance(data, dict) else json.loads(Path(data).read_text(encoding="utf-8"))
    found = sorted((key, value) for key, value in table["steps"].items() if key.split("/")[0] == problem)
    if not found:
        known = sorted({key.split("/")[0] for key in table["steps"]})
        raise ValueError(f"no steps of {problem!r} were measured, only of {', '.join(known)}")
    return [Step(key.split("/")[1], value["ms"] / 1e3) for key, value in found]


def ladder(steps: Sequence[Step], student: Step | None = None, *, device: str = "H200", problem: str = "") -> Picture:
    """Draw each step's time on one scale, and the student's kernel between the steps.

    steps: in order, the slowest first (see steps_of). student: None if it has no time yet. Raises ValueError without
    steps.
    """
    if not steps:
        raise ValueError("there are no steps to draw")
    first, last = steps[0], steps[-1]
    of = f" of {problem}" if problem else ""
    if any(step.predicted for step in steps):
        of += ", predicted" if all(step.predicted for step in steps) else ", partly predicted"
    if student is None:
        factor = times(first.seconds / last.seconds)
        alt = (
            f"Steps{of}: {last.name} ({seconds(last.seconds)}) is {factor} as fast as {first.name} "
            f"({seconds(first.seconds)})."
        )
    else:
        takes = "is predicted to take" if student.predicted else "takes"
        alt = f"Your kernel {takes} {seconds(student.seconds)} on the {device}: {describe_rank(steps, student)}."
    return Picture("Ladder", alt, lambda: _draw(steps, student, device, problem))


def times(factor: float) -> str:
    """Return a factor as "2.5 times" or "12 times"."""
    return f"{factor:.2g} times" if factor < 9.5 else f"{factor:,.0f} times"


def describe_rank(steps: Sequence[Step], student: Step) -> str:
    """Return which steps the student's time lies between, and how much faster the fastest step is."""
    fastest = min(steps, key=lambda s: s.seconds)
    near = min(steps, key=lambda s: abs(math.log(s.seconds / student.seconds)))
    if max(near.seconds, student.seconds) < NEAR * min(near.seconds, student.seconds):
        also = "" if near is fastest else f"; {fastest.name} is {times(student.seconds / fastest.seconds)} as fast"
        return f"about as fast as {near.name}{also}"
    slower = [s for s in steps if s.seconds >= student.seconds]
    faster = [s for s in steps if s.seconds < student.seconds]
    if not faster:
        return f"faster than every step, {times(fastest.seconds / student.seconds)} as fast as {fastest.name}"
    beyond = max(faster, key=lambda s: s.seconds)
    tail = f"; {fastest.name} is {times(student.seconds / fastest.seconds)} as fast"
    if not slower:
        return f"slower than every step{tail}"
    return f"between {min(slower, key=lambda s: s.seconds).name} and {beyond.name}{tail}"


def _draw(steps, student, device, problem):
    rows = [(s, False) for s in steps]
    if student is not None:
        position = sum(s.seconds >= student.seconds for s in steps) if _falling(steps) else len(steps)
        rows.insert(position, (student, True))
    top, each = 0.78, 0.36
    height = top + each * len(rows) + 0.55
    title = f"{problem}: the steps" if problem else "The steps"
    title += " and your kernel" if student is not None else ""
    scale = "one forward; in brackets: how many times as fast as the first step"
    predicted = [s.predicted for s, _ in rows]
    kind = "; predicted" if all(predicted) else "; filled: measured, hollow: predicted" if any(predicted) else ""
    figure = new_figure(height, f"{title}, on the {device}", scale + kind)
    names = max(len(s.name) for s, _ in rows)
    left = min(0.3 + 0.078 * names, 3.2)
    ax = axes(figure, left, top, WIDTH - left - 1.75, each * len(rows), bare=False)
    low, high = min(s.seconds for s, _ in rows), max(s.seconds for s, _ in rows)
    wide = high / low > 30
    if wide:
        ax.set_xscale("log")
        ax.set_xlim(10 ** math.floor(math.log10(low) - 0.05), 10 ** (math.log10(high) + 0.1))
    else:
        ax.set_xlim(0, high * 1.04)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    start = ax.get_xlim()[0]
    slowest = steps[0].seconds
    for y, (step, own) in enumerate(rows):
        colour = VERMILION if own else BLUE
        ax.plot(
            [start, step.seconds],
            [y, y],
            color=colour if own else FAINT,
            linewidth=2.2 if own else 5,
            solid_capstyle="butt",
            zorder=1,
        )
        look: dict[str, Any] = {
            "color": PANEL if step.predicted else colour,
            "markeredgecolor": colour,
            "markeredgewidth": 1.8,
            "markersize": 8,
        }
        ax.plot([step.seconds], [y], "D" if own else "o", zorder=3, clip_on=False, gid=f"ladder-{y}", **look)
        label: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": 9}
        label["fontweight"] = "bold" if own else None
        ax.text(-0.012, y, _short(step.name, own), ha="right", color=INK, **label)
        factor = f" ({times(slowest / step.seconds)})".replace(" times", " ×") if y else ""
        ax.text(1.02, y, seconds(step.seconds) + factor, ha="left", **label)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.minorticks_off()
    ax.xaxis.set_major_formatter(lambda value, _: seconds(value) if value > 0 else "0")
    if not wide:
        from matplotlib.ticker import MaxNLocator

        ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.tick_params(axis="x", labelcolor=SOFT)
    return figure


def _falling(steps) -> bool:
    return all(a.seconds >= b.seconds for a, b in itertools.pairwise(steps))


def _short(name: str, own: bool) -> str:
    return clipped(name or ("your kernel" if own else ""), 36)
