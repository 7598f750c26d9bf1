"""Draw an alignment map: where a wide access lies in its array, and where an access of its width may begin."""

from __future__ import annotations

import itertools
import math

from grader.pictures.picture import (
    BLUE,
    CELL,
    INK,
    SOFT,
    VERMILION,
    WIDTH,
    Picture,
    axes,
    count,
    new_figure,
    rectangles,
)

WORD = 4  # largest cell, in bytes
LEFT = 1.05  # inches to the left of the bytes


def alignment_map(
    array: str,
    byte: int,
    width: int,
    past: int,
    *,
    size: int = 0,
    verb: str = "reads",
    thread=None,
    block=None,
    text: str = "",
) -> Picture:
    """Draw the bytes of an array around an access that begins `past` bytes after a multiple of its width.

    byte: where the access begins in the array. width: its bytes. size: bytes of the array, 0 if unknown. verb: "reads"
    or "writes". thread, block: (x, y, z) of the accessing thread. text: the source line. Raises ValueError if the
    access is not misaligned (past is 0, or not less than width) or begins outside the array.
    """
    if not 0 < past < width or byte < 0 or (size and byte >= size):
        raise ValueError(
            f"an access of {width} bytes at byte {byte} of {array}, {past} past a multiple of {width}, "
            "is not misaligned"
        )
    who = f"Thread {tuple(thread)} of block {tuple(block)}" if thread is not None and block is not None else "A thread"
    low, high = window(byte, width, past, size)
    allowed = starts(byte, width, past, low, high)
    before = f"byte {byte - past:,}" if byte >= past else "an address"
    alt = (
        f"{who} {verb} {width} bytes of {array} at once, starting at byte {byte:,}: {count(past, 'byte')} past "
        f"{before}, which is a multiple of {width}."
    )
    alt += (
        f" Between bytes {low:,} and {high - 1:,}, an access of {width} bytes may begin at {_listed(allowed)}."
        if allowed
        else ""
    )
    return Picture("Alignment map", alt, lambda: _draw(array, byte, width, past, (low, high), verb, who, text))


def window(byte: int, width: int, past: int, size: int) -> tuple[int, int]:
    """Return the range of bytes to draw: one width before the access's own to one after it, inside the array."""
    low = max(0, byte - past - width)
    return low, min(byte - past + 3 * width, size or byte - past + 3 * width)


def starts(byte: int, width: int, past: int, low: int, high: int) -> list[int]:
    """Return where in a window an access of this width may begin."""
    return [at for at in range(byte - past - width, high, width) if at >= low]


def _listed(numbers: list[int]) -> str:
    texts = [f"{n:,}" for n in numbers]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _draw(array, byte, width, past, drawn, verb, who, text):
    low, high = drawn
    head = f"{who} {verb} {width} bytes of {array} at byte {byte:,}, {past} past a multiple of {width}"
    figure = new_figure(
        2.2,
        head,
        text,
        f"blue lines: addresses that are multiples of {width}, where an access of {width} bytes may begin",
    )
    ax = axes(figure, LEFT, 0.74, WIDTH - LEFT - 0.35, 1.08)
    span = max(high - low, 4 * width)
    ax.set_xlim(low, low + span)
    ax.set_ylim(1.08, 0)
    grain = math.gcd(byte, past, width, WORD)
    gap = span / 700
    cells = [(at + gap, 0.26, min(grain, high - at) - 2 * gap, 0.3) for at in range(low, high, grain)]
    rectangles(ax, cells, "alignment-cells", facecolor=CELL)
    allowed = starts(byte, width, past, low, high)
    rectangles(
        ax, [(at - gap, 0.2, 2 * gap, 0.76) for at in allowed], "alignment-starts", facecolor=BLUE, clip_on=False
    )
    for at in allowed:
        ax.text(at, 0.14, f"{at:,}", ha="center", va="bottom", fontsize=8.5, color=BLUE)
    edges = [byte, *(at for at in allowed if byte < at < byte + width), byte + width]
    rectangles(
        ax,
        [(a + gap, 0.66, b - a - 2 * gap, 0.3) for a, b in itertools.pairwise(edges)],
        "alignment-access",
        facecolor=VERMILION,
        clip_on=False,
    )
    ax.text(byte, 1.0, f"{byte:,}", ha="center", va="top", fontsize=8.5, color=INK)
    for y, label in ((0.41, "the array"), (0.81, "this access")):
        ax.text(low - span / 80, y, label, ha="right", va="center", fontsize=8.5, color=SOFT)
    return figure
