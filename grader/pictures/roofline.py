"""Draw a roofline: a kernel's operations per byte, and how near its rate comes to the roofline bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from grader.pictures.picture import (
    BLUE,
    GREEN,
    INK,
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

COLOURS = (VERMILION, BLUE, GREEN, ORANGE, PURPLE, SKY)
MARKS = ("o", "s", "D", "^", "v", "P")


@dataclass(frozen=True)
class Point:
    """A measured or predicted kernel: name, floating-point operations, bytes to and from DRAM, and seconds."""

    name: str
    flops: float
    bytes: float
    seconds: float
    predicted: bool = False

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.flops / self.bytes

    @property
    def rate(self) -> float:
        """Operations per second."""
        return self.flops / self.seconds


@dataclass(frozen=True)
class Roof:
    """A GPU's peak rates: bytes per second of DRAM and of L2, and float32 operations per second."""

    name: str
    dram: float
    l2: float
    fp32: float

    def at(self, intensity: float) -> float:
        """Return the roofline bound, in operations per second, at this many operations per byte of DRAM."""
        return min(self.fp32, intensity * self.dram)


def roof_of(device: str) -> Roof:
    """Return the roof of a GPU, named as simt.devices.find_name understands it. Raises UnknownDevice."""
    from simt.counting.time_model import GPUS
    from simt.devices import DEVICES, find_name

    name = find_name(device)
    chip, gpu = DEVICES[name], GPUS[name]
    return Roof(name, gpu.dram, gpu.l2, 2.0 * gpu.fp32 * chip.multiprocessors * chip.clock_khz * 1e3)


def point_of(name: str, launches: Sequence, device: str = "H200") -> Point:
    """Return the sum of the launches (simt.Launch) of one forward pass.

    It has the counted operations, the bytes that DRAM must transfer, and the predicted seconds.
    """
    from simt.counting import time_model
    from simt.devices import find_name

    gpu = find_name(device)
    flops = sum(launch.counters.flops for launch in launches)
    moved = sum(32 * (launch.unique_sectors_read + launch.unique_sectors_written) for launch in launches)
    return Point(
        name, flops, moved, sum(time_model.predict(launch, gpu).seconds for launch in launches), predicted=True
    )


def roofline(points: Sequence[Point], device: str | Roof = "H200") -> Picture:
    """Draw the points under a GPU's roof: limited by DRAM on the left, by float32 arithmetic on the right.

    points: the title and the alt text describe the first one. device: a Roof, or a GPU's name
    as simt.devices.find_name understands it. Raises ValueError without a point, or for a point without bytes,
    operations or time.
    """
    roof = device if isinstance(device, Roof) else roof_of(device)
    if not points:
        raise ValueError("there is no point to draw")
    for point in points:
        if min(point.flops, point.bytes, point.seconds) <= 0:
            raise ValueError(f"{point.name} has no operations, no bytes or no time: it cannot be drawn")
    first = points[0]
    share, limit = share_of(first, roof), "DRAM" if first.intensity * roof.dram < roof.fp32 else "float32 arithmetic"
    verb = "is predicted to reach" if first.predicted else "reaches"
    alt = (
        f"{first.name} {verb} {percent(share)} of the {roof.name}'s roofline bound, which {limit} sets at "
        f"{first.intensity:.2g} operations per byte"
    )
    rest = [f"{p.name} {percent(share_of(p, roof))}" for p in points[1:]]
    alt += f"; {', '.join(rest)}." if rest else "."
    return Picture("Roofline", alt, lambda: _draw(points, roof, share, limit))


def share_of(point: Point, roof: Roof) -> float:
    """Return the share of the roofline bound that a point reaches."""
    return point.rate / roof.at(point.intensity)


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.1g} %"


def _si(value: float) -> str:
    for prefix, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= 0.9995 * size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g} "


def _draw(points, roof, share, limit):
    first = points[0]
    title = f"{first.name}: {percent(share)} of the roofline bound ({limit}) on the {roof.name}"
    height = 4.58 + 0.21 * len(points)
    figure = new_figure(height, title, "up: more operations per second · right: more operations per byte of DRAM")
    ax = axes(figure, 0.85, 0.78, WIDTH - 1.1, 3.15, bare=False)
    ridge = roof.fp32 / roof.dram
    xs = [p.intensity for p in points] + [ridge]
    low, high = 10 ** math.floor(math.log10(min(xs) / 4)), 10 ** math.ceil(math.log10(max(xs) * 3))
    bottom = 10 ** math.floor(math.log10(min([p.rate for p in points] + [roof.at(low)]) / 1.2))
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(low, high)
    ax.set_ylim(bottom, roof.fp32 * 4)
    ax.grid(True, which="major", color=LINE, alpha=0.35, linewidth=0.6)
    ax.minorticks_off()
    l2_ridge = roof.fp32 / roof.l2
    if l2_ridge > low:
        ax.plot([low, l2_ridge], [low * roof.l2, roof.fp32], color=SOFT, linestyle=(0, (4, 3)), linewidth=1.1)
    ax.plot([low, ridge, high], [low * roof.dram, roof.fp32, roof.fp32], color=INK, linewidth=2.0)
    ax.text(high, roof.fp32 * 1.18, f"float32: {_si(roof.fp32)}FLOP/s", ha="right", va="bottom", fontsize=9)
    _along(ax, low, roof.dram, roof.fp32, f"DRAM {_si(roof.dram)}B/s", below=True)
    _along(ax, low, roof.l2, roof.fp32, f"L2 {_si(roof.l2)}B/s", below=False)
    for i, p in enumerate(points):
        colour, mark = COLOURS[i % len(COLOURS)], MARKS[i % len(MARKS)]
        ax.plot([p.intensity] * 2, [p.rate, roof.at(p.intensity)], color=colour, linewidth=1, linestyle=(0, (1, 2)))
        ax.plot([p.intensity], [p.rate], mark, markersize=9 if not i else 8, gid=f"roofline-{i}", **_filled(p, colour))
        y = height - (0.78 + 3.15 + 0.62 + 0.21 * i)
        _key(figure, 0.85, y, colour, mark, p, roof)
    ax.set_xlabel("floating-point operations per byte to or from DRAM")
    ax.set_ylabel("operations per second")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.yaxis.set_major_formatter(lambda value, _: _si(value).strip())
    return figure


def _along(ax, low: float, bandwidth: float, roof_top: float, words: str, below: bool) -> None:
    """Draw a label along the slope of a memory."""
    at = low * 1.5
    if at * bandwidth * 4 > roof_top:
        return
    box = ax.get_window_extent()
    (x0, x1), (y0, y1) = ax.get_xlim(), ax.get_ylim()
    slope = (box.height / math.log10(y1 / y0)) / (box.width / math.log10(x1 / x0))
    ax.text(
        at,
        at * bandwidth * (0.8 if below else 1.2),
        words,
        rotation=math.degrees(math.atan(slope)),
        rotation_mode="anchor",
        ha="left",
        va="top" if below else "bottom",
        fontsize=9,
        color=INK if below else SOFT,
    )


def _filled(p: Point, colour: str) -> dict:
    """Return the style of the point's mark: hollow if the point is predicted."""
    return {"color": PANEL if p.predicted else colour, "markeredgecolor": colour, "markeredgewidth": 1.8}


def _key(figure, left: float, y: float, colour: str, mark: str, p: Point, roof: Roof) -> None:
    """Draw one line of the key: mark, name, and numbers."""
    from matplotlib.lines import Line2D

    wide, height = figure.get_size_inches()
    figure.add_artist(
        Line2D([left / wide], [y / height], marker=mark, markersize=7, linestyle="", **_filled(p, colour))
    )
    name = clipped(p.name, 32)
    figure.text((left + 0.16) / wide, y / height, name, fontsize=9, va="center", fontweight="bold")
    rates = f"{_si(p.rate)}FLOP/s, {_si(p.bytes / p.seconds)}B/s"
    numbers = (
        f"{seconds(p.seconds)}{' predicted' if p.predicted else ''}, {rates}: {percent(share_of(p, roof))} of the bound"
    )
    figure.text((left + 2.95) / wide, y / height, numbers, fontsize=9, va="center")
