"""Draw a sweep: each kernel's time per unit of work against the size, so that a cliff is a step in a line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.pictures.picture import (
    BLUE,
    GREEN,
    LINE,
    ORANGE,
    PANEL,
    PURPLE,
    SKY,
    SOFT,
    VERMILION,
    WIDTH,
    Picture,
    axes,
    clipped,
    new_figure,
    seconds,
)

TITLES = {"batch": "batch size", "side": "side length in pixels"}
# Colour and mark of each kind of row in grader.bench; filled for fp32, hollow and dashed for TF32.
LOOKS = {
    "beside": (BLUE, "o"),
    "reference": (BLUE, "o"),
    "submission": (PURPLE, "D"),
    "step": (SKY, "s"),
    "eager": (VERMILION, "^"),
    "compile": (GREEN, "v"),
}


@dataclass(frozen=True)
class Line:
    """One kernel along an axis: (size, seconds per unit of work) in order. kind, precision: see grader.bench.rows."""

    name: str
    kind: str
    precision: str
    points: tuple[tuple[int, float], ...]


def sweep(
    panels: Mapping[str, Sequence[Line]],
    problem: str,
    words: str,
    *,
    unit: str = "pixel of the input",
    device: str = "H200",
) -> Picture:
    """Draw a panel per axis ("batch", "side") with a common scale of time per unit; both scales are logarithmic.

    words: sentences that state the finding, for the alt text. Raises ValueError without a point.
    """
    if not any(line.points for lines in panels.values() for line in lines):
        raise ValueError("there is no point to draw")
    axis = " and ".join(TITLES[name] for name in panels)
    alt = f"Time per {unit} of {problem} on the {device}, by {axis}. {words}"
    return Picture("Sweep", alt, lambda: _draw(panels, problem, unit, device))


def _draw(panels, problem, unit, device):
    names = list(dict.fromkeys((line.name, line.kind, line.precision) for lines in panels.values() for line in lines))
    height = 4.25 + 0.21 * math.ceil(len(names) / 2)
    scales = "lower is better; both scales are logarithmic; a horizontal line: twice the work takes twice the time"
    figure = new_figure(height, f"{problem}: time per {unit}, on the {device}", scales)
    values = [value for lines in panels.values() for line in lines for _, value in line.points]
    low, high = min(values) / 1.3, max(values) * 1.3
    wide = (WIDTH - 1.1 - 0.3 * (len(panels) - 1)) / len(panels)
    for number, (name, lines) in enumerate(panels.items()):
        ax = axes(figure, 0.9 + number * (wide + 0.3), 0.78, wide, 2.8, bare=False)
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.set_ylim(low, high)
        ax.grid(True, which="major", color=LINE, alpha=0.35, linewidth=0.6)
        for k, line in enumerate(lines):
            ax.plot(*zip(*line.points), gid=f"sweep-{name}-{k}", **_look(line.kind, line.precision))
        places = sorted({size for line in lines for size, _ in line.points})
        ax.set_xticks([p for p in places if p & (p - 1) == 0] or places)
        ax.minorticks_off()
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.yaxis.set_major_formatter(lambda value, _: seconds(value))
        ax.set_xlabel(TITLES[name])
        _ticks(ax, low, high)
        if number:
            ax.tick_params(axis="y", labelleft=False)
    for k, key in enumerate(names):
        _key(figure, 0.9 + 3.4 * (k % 2), height - (0.78 + 2.8 + 0.68 + 0.21 * (k // 2)), *key)
    return figure


def _ticks(ax, low: float, high: float) -> None:
    """Set three ticks per decade (1, 2 and 5), or one if there are many decades."""
    steps = (1, 2, 5) if high / low < 300 else (1,)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ax.set_yticks([s * 10.0**d for d in decades for s in steps if low <= s * 10.0**d <= high])


def _look(kind: str, precision: str) -> dict:
    colour, mark = LOOKS.get(kind, (ORANGE, "P"))
    hollow = precision == "tf32"
    return {
        "color": colour,
        "marker": mark,
        "linestyle": (0, (4, 2)) if hollow else "-",
        "markerfacecolor": PANEL if hollow else colour,
        "markeredgecolor": colour,
        "markeredgewidth": 1.4,
        "markersize": 5.5,
    }


def _key(figure, left: float, y: float, name: str, kind: str, precision: str) -> None:
    """Draw one entry of the key: a piece of the line, and its name."""
    from matplotlib.lines import Line2D

    wide, height = figure.get_size_inches()
    figure.add_artist(
        Line2D([left / wide, (left + 0.32) / wide], [y / height] * 2, linewidth=1.4, **_look(kind, precision))
    )
    figure.text((left + 0.42) / wide, y / height, clipped(name, 44), fontsize=9, va="center", color=SOFT)
