"""Draw an error map: the wrong elements of an N x C x H x W output, with the borders of tiles and blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from grader.pictures.picture import (
    BLUE,
    CELL,
    INK,
    LINE,
    PANEL,
    VERMILION,
    WIDTH,
    Picture,
    axes,
    count,
    new_figure,
    rectangles,
)
from grader.verdict import WrongMap

PLANES = 3  # most planes drawn side by side
ROWS = 64  # most cells per side of a plane; a larger plane is drawn in cells of several elements
FOLD = 64  # columns into which an output of one dimension is folded
GRID = 40  # most cells per side of a plane for which grid lines separate the cells
GAP = 0.5  # inches between planes
BORDERS = 40  # most border lines of one kind in a plane: more would hide it


def error_map(
    wrong=None,
    *,
    expected=None,
    got=None,
    tolerance=None,
    tile: Sequence[int] | None = None,
    block: int | None = None,
    blocks: int | None = None,
    pattern: str | None = None,
    what: str = "the output",
) -> Picture:
    """Draw the planes (H x W) that have wrong elements, and how many each image and channel has.

    wrong: booleans of the output's shape, or the map in a verdict's evidence (Evidence.wrong).
    expected, got: arrays or tensors, given instead of wrong. An element is wrong if it differs by more than tolerance
        (a number or an array; by default 1e-4 of the value plus 1e-5), or is NaN where expected is not.
    tile: (rows, columns) of an output tile, whose borders are drawn.
    block: threads per block, if thread i of the grid writes element i of the flat output; the end of each block is
        drawn. blocks: how many blocks were launched, if known.
    pattern: which values are wrong, in words ("last row"), for the heading. what: the name of the tensor.
    Raises ValueError if nothing is wrong or the shapes do not agree.
    """
    mask, cell, shape = _cells(wrong, expected, got, tolerance)
    if not mask.any():
        raise ValueError("no element is wrong: there is nothing to draw")
    planes, folded = _planes(mask, shape)
    of_planes, sides = _find_names(wrong)
    # one value per image and channel: images are the rows of the picture, channels its columns
    if planes.shape[2] * planes.shape[3] == 1 < planes.size:
        planes, sides, cell = planes.reshape(1, 1, *planes.shape[:2]), of_planes, [*cell[:2], *cell[:2]]
    exact = max(cell) == 1
    share = (
        f"{int(mask.sum()):,} of {count(mask.size, 'value')}"
        if exact
        else f"Up to {100 * mask.mean():.2g} % of the {int(np.prod(shape)):,} values"  # a cell may hold right ones too
    )
    where = f": {pattern}" if pattern and pattern != "everything" else ""
    bad = [(n, c) for n in range(planes.shape[0]) for c in range(planes.shape[1]) if planes[n, c].any()]
    alt = f"{share} of {what} [{' × '.join(map(str, shape))}] {'are' if mask.sum() != 1 else 'is'} wrong{where}."
    if planes.shape[0] * planes.shape[1] > 1:
        has = "has" if len(bad) == 1 else "have"
        alt += f" {len(bad)} of {planes.shape[0] * planes.shape[1]} planes ({', '.join(of_planes)}) {has} wrong values."
    alt += _at_borders(planes, tile, block if exact else None, blocks, cell)
    layout = (cell, shape, folded, of_planes, sides)
    return Picture("Error map", alt, lambda: _draw(planes, layout, tile, block if exact else None, share, where))


def _cells(wrong, expected, got, tolerance):
    """Return the mask, the elements per cell of it in each dimension, and the output's shape."""
    if isinstance(wrong, WrongMap):
        from grader.verdict.wrong_map import unpack

        return unpack(wrong), list(wrong.cell), list(wrong.shape)
    if wrong is None:
        if expected is None or got is None:
            raise ValueError("give `wrong`, or both `expected` and `got`")
        y, g = np.asarray(expected, np.float64), np.asarray(got, np.float64)
        if y.shape != g.shape:
            raise ValueError(f"expected has the shape {list(y.shape)} and got {list(g.shape)}: they cannot be compared")
        allowed = 1e-5 + 1e-4 * np.abs(y) if tolerance is None else np.asarray(tolerance, np.float64)
        with np.errstate(invalid="ignore"):
            wrong = ~((np.abs(g - y) <= allowed) | (np.isnan(g) & np.isnan(y)) | (g == y))
    mask = np.asarray(wrong, bool)
    return mask, [1] * mask.ndim, list(mask.shape)


def _find_names(wrong) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names of the first two and of the last two of four dimensions: the problem's, or a convolution's."""
    if isinstance(wrong, WrongMap) and len(wrong.axes) == 4:
        return wrong.axes[:2], wrong.axes[2:]
    return ("image", "channel"), ("row", "column")


def _planes(mask: np.ndarray, shape: list[int]) -> tuple[np.ndarray, bool]:
    """Return the mask as images x channels x rows x columns, and whether one long row was folded."""
    if mask.ndim >= 4:
        return mask.reshape(mask.shape[0], -1, *mask.shape[-2:]), False
    if mask.ndim == 3:
        return mask[:, None], False
    if mask.ndim == 2:
        return mask[None, None], False
    flat = mask.reshape(-1)
    columns = min(FOLD, flat.size)
    rows = -(-flat.size // columns)
    folded = np.zeros(rows * columns, bool)
    folded[: flat.size] = flat
    return folded.reshape(1, 1, rows, columns), True


def _at_borders(planes: np.ndarray, tile, block, blocks, cell) -> str:
    """Return a sentence if all wrong elements lie at borders of tiles, in the last block or after it; else ""."""
    if tile and max(cell) == 1:
        rows, columns = np.nonzero(planes.any((0, 1)))
        h, w = tile
        edge = (rows % h == 0) | (rows % h == h - 1) | (columns % w == 0) | (columns % w == w - 1)
        inside = (planes.shape[2] * planes.shape[3]) / ((planes.shape[2] / h) * (planes.shape[3] / w)) > 2 * (h + w)
        if edge.all() and inside:
            return f" All of them are at the borders of the {h} × {w} tiles."
    if block and blocks and blocks * block < planes.size and not planes.reshape(-1)[: blocks * block].any():
        return f" All of them lie after the last element that the {blocks} blocks of {_count_threads(block)} cover."
    if block and planes.reshape(-1)[: (planes.size - 1) // block * block].sum() == 0 and planes.size > block:
        return f" All of them belong to block {(planes.size - 1) // block}, the last block of {_count_threads(block)}."
    return ""


def _count_threads(block: int) -> str:
    return "1 thread" if block == 1 else f"{block:,} threads"


def _chosen(planes: np.ndarray) -> list[tuple[int, int, int]]:
    """Return (image, channel, number of planes with the same wrong elements) of planes that differ, in order."""
    alike: dict[bytes, list] = {}
    for n in range(planes.shape[0]):
        for c in range(planes.shape[1]):
            if planes[n, c].any():
                alike.setdefault(planes[n, c].tobytes(), [n, c, 0])[2] += 1
    return [tuple(found) for found in list(alike.values())[:PLANES]]


def _draw(planes, layout, tile, block, share, where):
    cell, shape, folded, of_planes, sides = layout
    chosen = _chosen(planes)
    several = planes.shape[0] * planes.shape[1] > 1
    rows, columns = planes.shape[2:]
    overview = 1.75 if several else 0.0
    left = 0.7 + overview
    room = (WIDTH - 0.2 - left - GAP * (len(chosen) - 1)) / len(chosen)
    side = min(room, 3.0 if len(chosen) > 1 else 5.2)
    tall = min(max(side * rows / columns, 0.5), 3.2)
    wide = max(min(side, tall * columns / rows), 0.35)
    top = 1.06 if several else 0.72
    overview_height = min(2.6, max(0.8, 0.22 * planes.shape[0])) if several else 0
    ends = block and any(_block_ends(_offset(planes, n, c), rows * columns, block) for n, c, _ in chosen)
    borders = (
        f"dashed: borders of {tile[0]} × {tile[1]} tiles"
        if tile
        else f"dashed: ends of blocks of {_count_threads(block)}"
        if ends
        else ""
    )
    height = top + max(tall, overview_height) + (0.78 if borders else 0.55)
    words = f"output {' × '.join(map(str, shape))}; orange: wrong values" + (
        f"; each cell {' × '.join(map(str, cell))} elements" if max(cell) > 1 else ""
    )
    figure = new_figure(height, f"{share[:1].upper() + share[1:]} wrong{where}", words, borders)
    if several:
        _overview(figure, planes, chosen, of_planes, (overview, top, overview_height))
    for i, (n, c, like) in enumerate(chosen):
        ax = axes(figure, left + i * (wide + GAP), top, wide, tall, bare=False)
        _plane(ax, planes[n, c], _offset(planes, n, c), tile, block, cell, math.prod(shape) if folded else 0, sides)
        if i:
            ax.set_ylabel("")
        if several:
            more = f", {like - 1:,} more like this" if like > 1 else ""
            name = f"{of_planes[0]} {n}, {of_planes[1]} {c}" if len(shape) >= 4 else f"item {n}"
            ax.set_title(f"{name}\n{planes[n, c].sum():,} wrong{more}", pad=5, fontsize=8.5)
    return figure


def _offset(planes: np.ndarray, image: int, channel: int) -> int:
    """Return the index of the plane's first element in the flat output."""
    return (image * planes.shape[1] + channel) * planes.shape[2] * planes.shape[3]


def _plane(ax, plane, offset: int, tile, block, cell, folded: int, sides: Sequence[str]) -> None:
    """Draw one plane: wrong cells in orange, borders on top. folded: elements of the row that was folded, or 0."""
    rows, columns = plane.shape
    by = max(1, -(-max(rows, columns) // ROWS)) if _runs(plane) > 1500 else 1
    ax.set_xlim(0, columns)
    ax.set_ylim(rows, 0)
    there = np.arange(rows * columns).reshape(rows, columns) < (folded or rows * columns)
    rectangles(ax, boxes(there), facecolor=CELL)
    if by == 1:
        rectangles(ax, boxes(plane), "error-map-wrong", facecolor=VERMILION)
    else:
        _shaded(ax, _share(plane, by), by)
    if max(rows, columns) <= GRID:
        ax.hlines(range(1, rows), 0, columns, color=PANEL, linewidth=0.6)
        ax.vlines(range(1, columns), 0, rows, color=PANEL, linewidth=0.6)
    look: dict[str, Any] = {"color": BLUE, "linewidth": 0.8, "linestyle": (0, (3, 2))}
    if tile:
        h, w = (max(1, round(t / c)) for t, c in zip(tile, cell[-2:]))
        if max(rows / h, columns / w) <= BORDERS:
            ax.hlines(range(h, rows, h), 0, columns, **look)
            ax.vlines(range(w, columns, w), 0, rows, **look)
    elif block:
        _block_borders(ax, rows, columns, offset, block, look)
    if folded:
        ax.set_xlabel(f"element, in rows of {columns}", labelpad=2)
    else:
        ax.set_xlabel(sides[1] + (f" / {cell[-1]}" if cell[-1] > 1 else ""), labelpad=2)
        ax.set_ylabel(sides[0] + (f" / {cell[-2]}" if cell[-2] > 1 else ""), labelpad=2)
    _number(ax.xaxis, columns, 1)
    _number(ax.yaxis, rows, columns if folded else 1)
    for spine in ax.spines.values():
        spine.set_visible(True)


def _number(axis, n: int, each: int) -> None:
    """Label some of n cells at their centres with the index times `each`."""
    step = next(
        s
        for s in (
            1,
            2,
            4,
            5,
            8,
            10,
            16,
            20,
            32,
            50,
            64,
            100,
            128,
            200,
            256,
            500,
            512,
            *(1000 * 2**i for i in range(40)),
        )
        if n / s <= 6
    )
    axis.set_ticks([i + 0.5 for i in range(0, n, step)], [f"{i * each:,}" for i in range(0, n, step)])


def _block_ends(offset: int, elements: int, block: int) -> Sequence[int]:
    """Return the elements of a plane at which a block begins; none if there are too many to draw."""
    starts = range(-(-max(offset, 1) // block) * block, offset + elements, block)
    return starts if len(starts) <= BORDERS else ()


def _block_borders(ax, rows: int, columns: int, offset: int, block: int, look: dict) -> None:
    """Draw a line where one block ends and the next begins, in the plane that begins at element `offset`."""
    for start in _block_ends(offset, rows * columns, block):
        row, column = divmod(start - offset, columns)
        ax.plot([columns, column, column, 0], [row, row, row + 1, row + 1], **look) if column else ax.hlines(
            row, 0, columns, **look
        )


def _overview(figure, planes, chosen, of_planes: Sequence[str], place: tuple[float, float, float]) -> None:
    """Draw all planes, images as rows and channels as columns: the fuller its colour, the more of a plane is wrong.

    of_planes: what images and channels are called. place: width, top and height in inches.
    """
    width, top, height = place
    part = planes.mean((2, 3))
    images, channels = part.shape
    ax = axes(figure, 0.45, top, min(width - 0.6, max(0.3, channels * 0.22)), height, bare=False)
    ax.set_xlim(0, channels)
    ax.set_ylim(images, 0)
    rectangles(ax, [(0, 0, channels, images)], facecolor=CELL)
    _shaded(ax, part, 1)
    for n, c, _ in chosen:
        rectangles(ax, [(c, n, 1, 1)], facecolor="none", edgecolor=INK, linewidth=1.2)
    ax.set_title("all planes\nfuller: more wrong", fontsize=8.5, pad=5)
    ax.set_xlabel(of_planes[1], labelpad=2)
    ax.set_ylabel(of_planes[0], labelpad=3)
    from matplotlib.ticker import FixedLocator

    for axis, n in ((ax.xaxis, channels), (ax.yaxis, images)):
        axis.set_major_locator(FixedLocator([0.5, n - 0.5] if n > 1 else [0.5]))
        axis.set_major_formatter(lambda value, _: f"{int(value)}")
        axis.set_tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_edgecolor(LINE)


def _runs(plane: np.ndarray) -> int:
    return int((np.diff(plane.astype(np.int8), axis=1, prepend=0) == 1).sum())


def _share(plane: np.ndarray, by: int) -> np.ndarray:
    """Return the wrong share of each cell of by x by elements."""
    rows, columns = plane.shape
    padded = np.full((-(-rows // by) * by, -(-columns // by) * by), np.nan)
    padded[:rows, :columns] = plane
    return np.nanmean(padded.reshape(padded.shape[0] // by, by, padded.shape[1] // by, by), (1, 3))


def _shaded(ax, part: np.ndarray, by: int) -> None:
    """Draw cells in three shades: up to 5 % wrong, up to half, more."""
    for low, high, alpha in ((0, 0.05, 0.35), (0.05, 0.5, 0.65), (0.5, 1.0, 1.0)):
        found = boxes((part > low) & (part <= high))
        rectangles(ax, [(x * by, y * by, w * by, h * by) for x, y, w, h in found], facecolor=VERMILION, alpha=alpha)


def boxes(plane: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Return boxes (x, y, width, height) that cover each true cell once: runs of a row, joined to equal runs below."""
    found, open_ = [], {}
    for y in range(plane.shape[0] + 1):
        row = plane[y].astype(np.int8) if y < plane.shape[0] else np.zeros(plane.shape[1], np.int8)
        edge = np.diff(row, prepend=0, append=0)
        runs = set(zip(np.nonzero(edge == 1)[0].tolist(), np.nonzero(edge == -1)[0].tolist()))
        for run in [run for run in open_ if run not in runs]:
            start = open_.pop(run)
            found.append((run[0], start, run[1] - run[0], y - start))
        for run in runs:
            open_.setdefault(run, y)
    return sorted(found, key=lambda box: (box[1], box[0]))
