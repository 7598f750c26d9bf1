"""Analyse a sweep: each row's time per pixel at each size, where torch is faster, and where the time has a cliff."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

from grader.bench.rows import OURS

CLIFF = 1.5  # times the time per pixel of the next smaller size
LONGER = 1.1  # times the time of the next larger size
LEAST_RUNS = 6  # for a 95 % interval
AXES = ("batch", "side")
UNITS = {"batch": "batch {}", "side": "{} pixels a side"}


@dataclasses.dataclass(frozen=True)
class Point:
    """One size of a curve: its position on the axis, milliseconds with their interval, and pixels of the input."""

    size: int
    ms: float
    low: float
    high: float
    pixels: int


@dataclasses.dataclass(frozen=True)
class Curve:
    """A row along an axis, by size. kind, precision: those of the row."""

    name: str
    kind: str
    precision: str
    points: tuple[Point, ...]

    def compute_per_pixel(self) -> tuple[tuple[int, float], ...]:
        """Return (size, seconds per pixel) for each point."""
        return tuple((p.size, p.ms / 1e3 / p.pixels) for p in self.points)

    @property
    def is_fast(self) -> bool:
        """Whether it is one of ours that should be the fastest."""
        return self.kind in OURS and self.kind != "step"


def find_curves(made: dict) -> dict[str, list[Curve]]:
    """Return axis -> a curve for each row timed at one size or more. made: a problem's part of the data."""
    found: dict[str, list[Curve]] = {}
    for axis, other in zip(AXES, AXES[::-1], strict=True):
        lines = [s for s in made["sizes"] if s[other] == made["own"][other] and s[axis] is not None]
        rows: dict[tuple[str, str, str], list[Point]] = {}
        for line in sorted(lines, key=lambda s: s[axis]):
            pixels = line["batch"] * (line["side"] or 1) ** 2
            for row in line.get("rows", []):
                if "ms" in row and row["in_class"] is not False:
                    sure = row["n"] >= LEAST_RUNS
                    interval = (row["low"], row["high"]) if sure else (0.0, math.inf)
                    point = Point(line[axis], row["ms"], *interval, pixels)
                    rows.setdefault((row["name"], row["kind"], row["precision"]), []).append(point)
        if rows:
            found[axis] = [Curve(*key, tuple(points)) for key, points in rows.items()]
    return found


def find_cliffs(curve: Curve) -> Iterator[str]:
    """Yield where a pixel takes more than CLIFF times as long as at the next smaller size, beyond both intervals, or
    where less work takes longer than more.
    """
    for a, b in itertools.pairwise(curve.points):
        if b.low / b.pixels > CLIFF * a.high / a.pixels:
            yield f"from {a.size} to {b.size} a pixel takes {b.ms / b.pixels / (a.ms / a.pixels):.1f} times as long"
        elif a.low > LONGER * b.high:
            yield f"{a.size} takes {a.ms / b.ms:.1f} times as long as {b.size}"


def find_wins(ours: list[Curve], theirs: list[Curve]) -> list[tuple[int, float]]:
    """Return (size, speed-up) where the fastest of theirs is faster than the fastest of ours, beyond both intervals."""

    def find_fastest(curves: list[Curve]) -> dict[int, Point]:
        every = sorted((p for c in curves for p in c.points), key=lambda p: -p.ms)
        return {p.size: p for p in every}

    mine, other = find_fastest(ours), find_fastest(theirs)
    both = sorted({*mine} & {*other})
    return [(size, mine[size].ms / other[size].ms) for size in both if other[size].high < mine[size].low]


def describe(name: str, made: dict) -> list[str]:
    """Return a line on where torch is faster and where the cliffs are, and one on the sizes that were not measured."""
    found = find_curves(made)
    lines = [" ".join([*_describe_wins(found), _describe_cliffs(found)])] if found else []
    return [f"{name}: {line}" for line in [*lines, *_describe_skipped(made)]]


def _describe_wins(found: dict[str, list[Curve]]) -> Iterator[str]:
    """Yield for each class a sentence on torch.compile and one on eager."""
    for precision in sorted({c.precision for cs in found.values() for c in cs if c.is_fast}):
        for kind, label in (("compile", "torch.compile"), ("eager", "eager")):
            where, compared = [], False
            for axis, every in found.items():
                ours = [c for c in every if c.is_fast and c.precision == precision]
                theirs = [c for c in every if c.kind == kind and c.precision == precision]
                compared |= bool(ours and theirs)
                where += [
                    f"{UNITS[axis].format(size)} ({times:.2f} times as fast)" for size, times in find_wins(ours, theirs)
                ]
            if where:
                yield f"In {precision} {label} is faster than the fastest of ours at {', '.join(where)}."
            elif compared:
                yield f"In {precision} {label} is faster at no size."


def _describe_cliffs(found: dict[str, list[Curve]]) -> str:
    cliffs = [
        f"{c.name}, {UNITS[axis].format('').strip()}: {words}"
        for axis, every in found.items() for c in every if c.is_fast for words in find_cliffs(c)
    ]  # fmt: skip
    return f"Cliffs: {'; '.join(cliffs)}." if cliffs else "No cliff."


def _describe_skipped(made: dict) -> Iterator[str]:
    """Yield a sentence for each reason."""
    reasons: dict[str, list[str]] = {}
    for line in made["sizes"]:
        if "skipped" in line:
            side = f" of {line['side']} pixels a side" if line["side"] else ""
            reasons.setdefault(line["skipped"], []).append(f"batch {line['batch']}{side}")
    for reason, where in reasons.items():
        yield f"not measured: {', '.join(where)}: {reason}."


def draw_curves(name: str, made: dict, device: str = "H200"):
    """Return a problem's curves as a Picture; its text describes them."""
    from grader.pictures import Line, sweep

    found = find_curves(made)
    words = " ".join([*_describe_wins(found), _describe_cliffs(found)])
    panels = {
        axis: [Line(c.name, c.kind, c.precision, c.compute_per_pixel()) for c in cs] for axis, cs in found.items()
    }
    return sweep(panels, name, words, device=device)
