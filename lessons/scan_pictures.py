"""Draw the pictures of lesson 13: each public function returns one small PNG with alt text."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
from IPython.display import Image
from matplotlib.patches import Rectangle
from pictures import BLUE, GREY, ORANGE, _in_few_colours, _ladder, _png

NUMBERS = [3, 1, 4, 1, 5, 9, 2, 6]
ROW = 1.55  # from one row of cells to the next
ARROW = {"arrowstyle": "->", "color": "#555555", "shrinkA": 0, "shrinkB": 0}


def _cells(ax, top: float, texts: Sequence[object], colours: Sequence[str], word: str = "", left: float = 0) -> None:
    """Draw a row of cells with its name to the left."""
    for i, (text, colour) in enumerate(zip(texts, colours, strict=True)):
        ax.add_patch(Rectangle((left + i, top), 0.94, 0.8, facecolor=colour, edgecolor="white", lw=1))
        ax.text(left + i + 0.47, top + 0.4, str(text), ha="center", va="center", fontsize=9)
    ax.text(left - 0.3, top + 0.4, word, ha="right", va="center", fontsize=8.5)


def _rounds(ax, rounds: Sequence[tuple[str, int, Sequence[int]]]) -> list[list[int]]:
    """Draw NUMBERS and what each round makes of them; return the rows. rounds: the name, the distance, and the places
    to which the value that far to their left is added.
    """
    rows = [NUMBERS]
    _cells(ax, 0, NUMBERS, [GREY] * len(NUMBERS), "x")
    for number, (word, distance, places) in enumerate(rounds, 1):
        before, top = rows[-1], ROW * number
        rows.append([value + (before[i - distance] if i in places else 0) for i, value in enumerate(before)])
        _cells(ax, top, rows[-1], [ORANGE if i in places else GREY for i in range(len(NUMBERS))], word)
        for i in places:
            ax.annotate("", (i + 0.4, top - 0.02), (i - distance + 0.47, top - ROW + 0.82), arrowprops=ARROW)
    ax.set_xlim(-3.4, len(NUMBERS))
    ax.set_ylim(ROW * len(rounds) + 0.85, -0.1)
    ax.axis("off")
    return rows


def rounds_of_a_scan() -> Image:
    """Draw Hillis and Steele's scan of eight numbers: three rounds of distance 1, 2 and 4."""
    figure, ax = plt.subplots(figsize=(6.6, 3.3))
    rows = _rounds(ax, [(f"distance {d}", d, range(d, len(NUMBERS))) for d in (1, 2, 4)])
    return _in_few_colours(
        _png(
            figure,
            f"Four rows of eight cells. The first one has x: {rows[0]}. In each of the next three, arrows come from "
            "the row above: in the first from 1 place to the left, then from 2, then from 4. Cells that receive an "
            f"arrow are orange: 7, then 6, then 4 of them. The last row has all running sums: {rows[-1]}.",
        )
    )


def two_trees() -> Image:
    """Draw the scan of eight numbers by a tree up and a tree down."""
    up = [(f"up, distance {d}", d, range(2 * d - 1, len(NUMBERS), 2 * d)) for d in (1, 2, 4)]
    down = [(f"down, distance {d}", d, range(3 * d - 1, len(NUMBERS), 2 * d)) for d in (2, 1)]
    figure, ax = plt.subplots(figsize=(6.6, 4.9))
    rows = _rounds(ax, up + down)
    return _in_few_colours(
        _png(
            figure,
            f"Six rows of eight cells. The first one has x: {rows[0]}. Three rows are the way up: 4 sums of two "
            "neighbours, 2 sums of four, 1 sum of all eight. Two rows are the way down: the sum of the first four is "
            "added to place 5, then three sums are added to places 2, 4 and 6. In all 11 additions. The last row has "
            f"all running sums: {rows[-1]}.",
        )
    )


def looking_back() -> Image:
    """Draw what six parts of a vector have published, and what part 4 adds up."""
    flags, values = [2, 2, 1, 1, 1, 0], ["end 14", "end 20", "sum 7", "sum 5", "sum 8", "–"]
    colours = {0: GREY, 1: BLUE, 2: ORANGE}
    figure, ax = plt.subplots(figsize=(7.4, 2.3))
    for part, (flag, value) in enumerate(zip(flags, values, strict=True)):
        ax.add_patch(Rectangle((2 * part, 1), 1.9, 1.1, facecolor=colours[flag], edgecolor="white"))
        ax.text(2 * part + 0.95, 1.35, f"part {part}", ha="center", va="center", fontsize=8.5, fontweight="bold")
        ax.text(2 * part + 0.95, 1.75, f"flag {flag}: {value}", ha="center", va="center", fontsize=8.5)
    for part in (3, 2, 1):
        bend = {**ARROW, "connectionstyle": f"arc3,rad={0.5 - 0.1 * (3 - part)}"}
        ax.annotate("", (2 * part + 0.95, 0.97), (8.95, 0.97), arrowprops=bend)
    ax.text(6, 2.5, "before part 4: 5 + 7 + 20 = 32; its end: 32 + 8 = 40", ha="center", va="center", fontsize=9)
    ax.set_xlim(-0.1, 12)
    ax.set_ylim(2.75, -0.75)
    ax.axis("off")
    return _in_few_colours(
        _png(
            figure,
            "Six parts of a vector. Parts 0 and 1, orange, have flag 2 and their ends, 14 and 20. Parts 2, 3 and 4, "
            "blue, have flag 1 and their sums, 7, 5 and 8. Part 5, grey, has flag 0 and nothing. Arrows go from part "
            "4 back to parts 3, 2 and 1. Before part 4 lie 5 + 7 + 20 = 32; its end is 32 + 8 = 40.",
        )
    )


def bins_of_a_range() -> Image:
    """Draw four bins of the range from 0 to 1, and to which of them six values belong."""
    values, bins = [-0.1, 0.0, 0.25, 0.6, 1.0, 1.1], 4
    inside = [v for v in values if 0 <= v <= 1]
    places = [min(int(v * bins), bins - 1) for v in inside]
    figure, ax = plt.subplots(figsize=(6.6, 2.1))
    for b in range(bins):
        ax.add_patch(Rectangle((b / bins, 1), 0.985 / bins, 0.6, facecolor=BLUE if b % 2 else ORANGE))
        ax.text((b + 0.5) / bins, 1.3, f"bin {b}: {places.count(b)}", ha="center", va="center", fontsize=9)
        ax.text(b / bins, 1.8, f"{b / bins:g}", ha="center", va="center", fontsize=8.5)
    ax.text(1, 1.8, "1", ha="center", va="center", fontsize=8.5)
    for v in values:
        ax.text(v, 0, f"{v:g}", ha="center", va="center", fontsize=9, color="black" if 0 <= v <= 1 else "#888888")
    for v, b in zip(inside, places, strict=True):
        ax.annotate("", ((b + 0.5) / bins, 0.97), (v, 0.17), arrowprops=ARROW)
    for v in (-0.1, 1.1):
        ax.text(v, 0.45, "not\ncounted", ha="center", va="center", fontsize=7.5, color="#888888")
    ax.set_xlim(-0.2, 1.2)
    ax.set_ylim(1.95, -0.15)
    ax.axis("off")
    return _in_few_colours(
        _png(
            figure,
            "A range from 0 to 1 in four bins, with edges at 0.25, 0.5 and 0.75. Arrows go from 0 to bin 0, from 0.25 "
            "to bin 1, from 0.6 to bin 2 and from 1 to bin 3, so that each bin has one value. -0.1 and 1.1 lie outside "
            "and are not counted.",
        )
    )


def scan_ladder() -> Image:
    """Draw the measured times of kernels_ref/scan/steps."""
    return _ladder("scan")
