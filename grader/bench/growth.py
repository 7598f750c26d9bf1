"""What a sweep found: for each row the time of a unit of work at each size, where torch.compile wins, and where a cliff is."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

from grader.bench.rows import OURS

CLIFF = 1.5  # times its smaller neighbour's time a unit
LONGER = 1.1  # times its larger neighbour's time, with less to do
SURE = 6  # runs
AXES = ("batch", "side")
UNITS = {"batch": "batch {}", "side": "{} pixels a side"}


@dataclasses.dataclass(frozen=True)
class Point:
    """One size of a curve: its place on the axis, milliseconds with their interval, and pixels of the input."""

    size: int
    ms: float
    low: float
    high: float
    pixels: int


@dataclasses.dataclass(frozen=True)
class Curve:
    """A row along an axis, by size. kind, precision: as a row's."""

    name: str
    kind: str
    precision: str
    points: tuple[Point, ...]

    def per_pixel(self) -> tuple[tuple[int, float], ...]:
        """(size, seconds a pixel)."""
        return tuple((p.size, p.ms / 1e3 / p.pixels) for p in self.points)

    @property
    def is_fast(self) -> bool:
        """Whether it is one of ours that is meant to be the fastest."""
        return self.kind in OURS and self.kind != "step"


def curves(made: dict) -> dict[str, list[Curve]]:
    """axis -> a curve for each row that was timed at one size of it at least; made: a problem's part of the data."""
    found: dict[str, list[Curve]] = {}
    for axis, other in zip(AXES, AXES[::-1], strict=True):
        lines = [s for s in made["sizes"] if s[other] == made["own"][other] and s[axis] is not None]
        rows: dict[tuple[str, str, str], list[Point]] = {}
        for line in sorted(lines, key=lambda s: s[axis]):
            pixels = line["batch"] * (line["side"] or 1) ** 2
            for row in line.get("rows", []):
                if "ms" in row and row["in_class"] is not False:
                    sure = row["n"] >= SURE  # of fewer runs no interval holds the median in 95 % of all cases
                    interval = (row["low"], row["high"]) if sure else (0.0, math.inf)
                    point = Point(line[axis], row["ms"], *interval, pixels)
                    rows.setdefault((row["name"], row["kind"], row["precision"]), []).append(point)
        if rows:
            found[axis] = [Curve(*key, tuple(points)) for key, points in rows.items()]
    return found


def cliffs(curve: Curve) -> Iterator[str]:
    """Where a unit of work surely costs more than CLIFF times what it costs at the next smaller size, or where less work
    takes longer than more."""
    for a, b in itertools.pairwise(curve.points):
        if b.low / b.pixels > CLIFF * a.high / a.pixels:
            yield f"from {a.size} to {b.size} a pixel becomes {b.ms / b.pixels / (a.ms / a.pixels):.1f} times as dear"
        elif a.low > LONGER * b.high:
            yield f"{a.size} takes {a.ms / b.ms:.1f} times as long as {b.size}"


def wins(ours: list[Curve], theirs: list[Curve]) -> list[tuple[int, float]]:
    """(size, times) where the fastest of theirs is surely faster than the fastest of ours."""

    def fastest(curves: list[Curve]) -> dict[int, Point]:
        every = sorted((p for c in curves for p in c.points), key=lambda p: -p.ms)
        return {p.size: p for p in every}

    mine, other = fastest(ours), fastest(theirs)
    both = sorted({*mine} & {*other})
    return [(size, mine[size].ms / other[size].ms) for size in both if other[size].high < mine[size].low]


def sentences(name: str, made: dict) -> list[str]:
    """A line on where torch.compile or eager wins and where there is a cliff, and one on what was not measured."""
    found = curves(made)
    lines = [" ".join([*_winning(found), _cliffs_of(found)])] if found else []
    return [f"{name}: {line}" for line in [*lines, *_left_out(made)]]


def _winning(found: dict[str, list[Curve]]) -> Iterator[str]:
    for precision in sorted({c.precision for cs in found.values() for c in cs if c.is_fast}):
        for kind, called in (("compile", "torch.compile"), ("eager", "eager")):
            where, compared = [], False
            for axis, every in found.items():
                ours = [c for c in every if c.is_fast and c.precision == precision]
                theirs = [c for c in every if c.kind == kind and c.precision == precision]
                compared |= bool(ours and theirs)
                where += [f"{UNITS[axis].format(size)} ({times:.2f} times as fast)" for size, times in wins(ours, theirs)]
            if where:
                yield f"In {precision} {called} is faster than the fastest of ours at {', '.join(where)}."
            elif compared:
                yield f"In {precision} {called} is faster at no size."


def _cliffs_of(found: dict[str, list[Curve]]) -> str:
    said = [
        f"{c.name}, {UNITS[axis].format('').strip()}: {words}"
        for axis, every in found.items() for c in every if c.is_fast for words in cliffs(c)
    ]  # fmt: skip
    return f"Cliffs: {'; '.join(said)}." if said else "No cliff."


def _left_out(made: dict) -> Iterator[str]:
    """A sentence for each reason."""
    reasons: dict[str, list[str]] = {}
    for line in made["sizes"]:
        if "skipped" in line:
            side = f" of {line['side']} pixels a side" if line["side"] else ""
            reasons.setdefault(line["skipped"], []).append(f"batch {line['batch']}{side}")
    for reason, where in reasons.items():
        yield f"not measured: {', '.join(where)}: {reason}."


def picture(name: str, made: dict, device: str = "H200"):
    """The curves of a problem as a Picture, whose words are the sentences."""
    from grader.pictures import Line, sweep

    found = curves(made)
    words = " ".join([*_winning(found), _cliffs_of(found)])
    panels = {axis: [Line(c.name, c.kind, c.precision, c.per_pixel()) for c in cs] for axis, cs in found.items()}
    return sweep(panels, name, words, device=device)
