"""Draw a waterfall: the time of each launch of a model's variants, and the bytes that each launch moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.pictures.picture import (
    BLUE,
    GREEN,
    INK,
    LINE,
    ORANGE,
    PURPLE,
    SKY,
    SOFT,
    VERMILION,
    WIDTH,
    Picture,
    axes,
    bytes_text,
    clipped,
    count,
    new_figure,
    rectangles,
    seconds,
)

COLOURS = (VERMILION, BLUE, GREEN, ORANGE, PURPLE, SKY)
ROWS = 14  # most launches of a variant that are drawn one by one; more are joined by kernel


@dataclass(frozen=True)
class TimedLaunch:
    """One kernel launch: name, seconds, bytes to and from DRAM. launches: how many equal ones are summed in it."""

    name: str
    seconds: float
    bytes: float
    launches: int = 1


def launches_of(report_launches: Sequence, device: str = "H200") -> list[TimedLaunch]:
    """Return for each simt.Launch its predicted seconds and the bytes that DRAM must transfer."""
    from simt.counting import time_model

    return [
        TimedLaunch(
            one.kernel,
            time_model.predict(one, device).seconds,
            32 * (one.unique_sectors_read + one.unique_sectors_written),
        )
        for one in report_launches
    ]


def waterfall(variants: Mapping[str, Sequence[TimedLaunch]], *, device: str = "H200") -> Picture:
    """Draw the launches of each variant ("eager", "fused"), each beginning where the previous one ends.

    Raises ValueError without a variant, or for a variant without launches.
    """
    if not variants or not all(variants.values()):
        raise ValueError("there is no variant, or a variant has no launches")
    shown = {name: _joined(list(launched)) for name, launched in variants.items()}
    sentences = [
        f"{name}: {count(sum(one.launches for one in rows), 'launch').replace('launchs', 'launches')}, "
        f"{seconds(_time(rows))}, {bytes_text(_bytes(rows))} moved"
        for name, rows in shown.items()
    ]
    names = list(shown)
    alt = "; ".join(sentences) + "."
    if len(names) > 1:
        factor = _time(shown[names[0]]) / _time(shown[names[-1]])
        alt = (
            f"{names[-1][:1].upper() + names[-1][1:]} is {factor:.2g} times as fast as {names[0]} on the {device}. "
            + alt
        )
    return Picture("Waterfall", alt, lambda: _draw(shown, device))


def _joined(launched: list[TimedLaunch]) -> list[TimedLaunch]:
    """Return the launches, summed by kernel in the order of their first launch if there are too many to draw."""
    if len(launched) <= ROWS:
        return launched
    found: dict[str, list[float]] = {}
    for one in launched:
        sums = found.setdefault(one.name, [0.0, 0.0, 0])
        sums[0], sums[1], sums[2] = sums[0] + one.seconds, sums[1] + one.bytes, sums[2] + one.launches
    rows = [TimedLaunch(name, sums[0], sums[1], int(sums[2])) for name, sums in found.items()]
    if len(rows) <= ROWS:
        return rows
    kept = sorted(rows, key=lambda one: -one.seconds)[: ROWS - 1]
    rest = [one for one in rows if one not in kept]
    return [one for one in rows if one in kept] + [
        TimedLaunch(f"{len(rest)} other kernels", _time(rest), _bytes(rest), sum(one.launches for one in rest))
    ]


def _time(rows) -> float:
    return sum(one.seconds for one in rows)


def _bytes(rows) -> float:
    return sum(one.bytes for one in rows)


# Stays whole: it places one picture from top to bottom.
def _draw(variants, device):
    names = list(variants)
    if len(names) > 1:
        factor = _time(variants[names[0]]) / _time(variants[names[-1]])
        title = f"{names[-1]} is {factor:.2g} times as fast as {names[0]}, on the {device}"
    else:
        title = f"{names[0]}: {seconds(_time(variants[names[0]]))} on the {device}"
    top, each, head = 0.78, 0.27, 0.34
    rows = sum(map(len, variants.values()))
    height = top + each * rows + (head + 0.14) * len(variants) + 0.5
    figure = new_figure(
        height,
        title[:1].upper() + title[1:],
        "bar: one launch, which begins where the previous one ends; right: time and bytes moved",
    )
    left, right = 2.35, 1.95
    ax = axes(figure, left, top, WIDTH - left - right, height - top - 0.5, bare=False)
    tall = (height - top - 0.5) / each
    end = max(map(_time, variants.values()))
    ax.set_xlim(0, end * 1.01)
    ax.set_ylim(tall, 0)
    y, across = 0.0, ax.get_yaxis_transform()
    for i, (name, launched) in enumerate(variants.items()):
        n = sum(one.launches for one in launched)
        ax.text(
            -2.15 / (WIDTH - left - right),
            y + 0.62,
            f"{name}",
            transform=across,
            ha="left",
            va="center",
            fontsize=9.5,
            fontweight="bold",
        )
        whole = f"{seconds(_time(launched))}, {bytes_text(_bytes(launched))} in {n:,} launch{'' if n == 1 else 'es'}"
        ax.text(0.0, y + 0.62, whole, transform=across, ha="left", va="center", fontsize=9, fontweight="bold")
        y += head / each
        at = 0.0
        for k, one in enumerate(launched):
            rectangles(
                ax,
                [(at, y + 0.16, one.seconds, 0.68)],
                f"waterfall-{i}-{k}",
                facecolor=COLOURS[(i + 1) % len(COLOURS)],
                edgecolor=INK,
                linewidth=0.4,
            )
            if k + 1 < len(launched):
                ax.plot([at + one.seconds] * 2, [y + 0.84, y + 1.16], color=LINE, linewidth=0.8)
            often = f" × {one.launches:,}" if one.launches > 1 else ""
            room = 29 - len(often)
            ax.text(
                -0.02, y + 0.5, clipped(one.name, room) + often, transform=across, ha="right", va="center", fontsize=8.5
            )
            ax.text(
                1.02,
                y + 0.5,
                f"{seconds(one.seconds)}, {bytes_text(one.bytes)}",
                transform=across,
                ha="left",
                va="center",
                fontsize=8.5,
                color=INK,
            )
            at += one.seconds
            y += 1
        y += 0.14 / each
    ax.set_yticks([])
    ax.spines["left"].set_color(LINE)
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.xaxis.set_major_formatter(lambda value, _: seconds(value) if value > 0 else "0")
    ax.tick_params(axis="x", labelcolor=SOFT)
    return figure
