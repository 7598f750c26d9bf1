"""Waterfall: a model's time launch by launch, eager beside fused, and the bytes that each launch moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.pictures.picture import BLUE, GREEN, INK, LINE, ORANGE, PURPLE, SKY, SOFT, VERMILION, WIDTH
from grader.pictures.picture import Picture, axes, bytes_text, clipped, count, new_figure, rectangles, seconds

COLOURS = (VERMILION, BLUE, GREEN, ORANGE, PURPLE, SKY)
ROWS = 14  # launches of a variant drawn one by one; more are drawn by kernel


@dataclass(frozen=True)
class Launched:
    """One kernel launch: name, seconds, bytes to and from DRAM; `launches`: of so many alike, together."""

    name: str
    seconds: float
    bytes: float
    launches: int = 1


def launches_of(report_launches: Sequence, device: str = "H200") -> list[Launched]:
    """Of simt.Launch each: predicted seconds, and the bytes that must pass DRAM."""
    from simt import model

    return [
        Launched(l.kernel, model.predict(l, device).seconds, 32 * (l.unique_sectors_read + l.unique_sectors_written)) for l in report_launches
    ]


def waterfall(variants: Mapping[str, Sequence[Launched]], *, device: str = "H200") -> Picture:
    """Of each variant ("eager", "fused") its launches one below the other, each where the one before it ends.

    ValueError for a variant without launches, or without any variant.
    """
    if not variants or not all(variants.values()):
        raise ValueError("there is a variant without a launch, or none at all")
    told = {name: _joined(list(launched)) for name, launched in variants.items()}
    said = [
        f"{name}: {count(sum(l.launches for l in rows), 'launch').replace('launchs', 'launches')}, {seconds(_time(rows))}, {bytes_text(_bytes(rows))} moved"
        for name, rows in told.items()
    ]
    names = list(told)
    alt = "; ".join(said) + "."
    if len(names) > 1:
        factor = _time(told[names[0]]) / _time(told[names[-1]])
        alt = f"{names[-1][:1].upper() + names[-1][1:]} is {factor:.2g} times as fast as {names[0]} on the {device}. " + alt
    return Picture("Waterfall", alt, lambda: _draw(told, device))


def _joined(launched: list[Launched]) -> list[Launched]:
    """By kernel, in the order of first launches, where there are too many to draw."""
    if len(launched) <= ROWS:
        return launched
    found: dict[str, list[float]] = {}
    for l in launched:
        sums = found.setdefault(l.name, [0.0, 0.0, 0])
        sums[0], sums[1], sums[2] = sums[0] + l.seconds, sums[1] + l.bytes, sums[2] + l.launches
    rows = [Launched(name, *sums) for name, sums in found.items()]
    if len(rows) <= ROWS:
        return rows
    kept = sorted(rows, key=lambda l: -l.seconds)[: ROWS - 1]
    rest = [l for l in rows if l not in kept]
    return [l for l in rows if l in kept] + [Launched(f"{len(rest)} other kernels", _time(rest), _bytes(rest), sum(l.launches for l in rest))]


def _time(rows) -> float:
    return sum(l.seconds for l in rows)


def _bytes(rows) -> float:
    return sum(l.bytes for l in rows)


def _draw(told, device):
    names = list(told)
    if len(names) > 1:
        factor = _time(told[names[0]]) / _time(told[names[-1]])
        title = f"{names[-1]} is {factor:.2g} times as fast as {names[0]}, on the {device}"
    else:
        title = f"{names[0]}: {seconds(_time(told[names[0]]))} on the {device}"
    top, each, head = 0.78, 0.27, 0.34
    rows = sum(map(len, told.values()))
    height = top + each * rows + (head + 0.14) * len(told) + 0.5
    figure = new_figure(height, title[:1].upper() + title[1:], "each bar a launch, which begins where the one before ends; beside it time and bytes moved")
    left, right = 2.35, 1.95
    ax = axes(figure, left, top, WIDTH - left - right, height - top - 0.5, bare=False)
    tall = (height - top - 0.5) / each
    end = max(map(_time, told.values()))
    ax.set_xlim(0, end * 1.01)
    ax.set_ylim(tall, 0)
    y, across = 0.0, ax.get_yaxis_transform()
    for i, (name, launched) in enumerate(told.items()):
        n = sum(l.launches for l in launched)
        ax.text(-2.15 / (WIDTH - left - right), y + 0.62, f"{name}", transform=across, ha="left", va="center", fontsize=9.5, fontweight="bold")
        whole = f"{seconds(_time(launched))}, {bytes_text(_bytes(launched))} in {n:,} launch{'' if n == 1 else 'es'}"
        ax.text(0.0, y + 0.62, whole, transform=across, ha="left", va="center", fontsize=9, fontweight="bold")
        y += head / each
        at = 0.0
        for k, l in enumerate(launched):
            rectangles(ax, [(at, y + 0.16, l.seconds, 0.68)], f"waterfall-{i}-{k}", facecolor=COLOURS[(i + 1) % len(COLOURS)], edgecolor=INK, linewidth=0.4)
            if k + 1 < len(launched):
                ax.plot([at + l.seconds] * 2, [y + 0.84, y + 1.16], color=LINE, linewidth=0.8)
            often = f" × {l.launches:,}" if l.launches > 1 else ""
            room = 29 - len(often)
            ax.text(-0.02, y + 0.5, clipped(l.name, room) + often, transform=across, ha="right", va="center", fontsize=8.5)
            ax.text(1.02, y + 0.5, f"{seconds(l.seconds)}, {bytes_text(l.bytes)}", transform=across, ha="left", va="center", fontsize=8.5, color=INK)
            at += l.seconds
            y += 1
        y += 0.14 / each
    ax.set_yticks([])
    ax.spines["left"].set_color(LINE)
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.xaxis.set_major_formatter(lambda value, _: seconds(value) if value > 0 else "0")
    ax.tick_params(axis="x", labelcolor=SOFT)
    return figure
