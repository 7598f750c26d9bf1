"""Draw a launch map: the grid's blocks, a block's warps and lanes, and the output element that a thread writes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from grader.pictures.picture import (
    CELL,
    FAINT,
    INK,
    ORANGE,
    PANEL,
    SKY,
    SOFT,
    VERMILION,
    Picture,
    axes,
    count,
    new_figure,
    rectangles,
)

BLOCKS = (12, 8)  # most columns and rows of blocks drawn
OUTPUT = 64  # most elements per side of the output drawn
Index = tuple[int, int, int]  # a blockIdx or a threadIdx
Writes = Callable[[Index, Index], Sequence[int] | None] | Sequence[int] | None


def launch_map(
    grid,
    block: Sequence[int] | None = None,
    *,
    thread: Sequence[int] = (0, 0, 0),
    at: Sequence[int] = (0, 0, 0),
    shape: Sequence[int] | None = None,
    writes: Writes = None,
    kernel: str = "",
) -> Picture:
    """Draw the grid, the chosen block in it, its warps with the chosen thread's lane, and the element that it writes.

    grid, block: blocks and threads along (x, y, z), one to three numbers; or a simt.Launch as grid. thread, at: the
    chosen threadIdx and its blockIdx. shape: the output's shape. writes: the index of the element that the chosen
    thread writes; or a function of (blockIdx, threadIdx) that returns it, or None if the thread writes nothing: then
    every element that the block writes is drawn. Raises ValueError if the thread or the block does not exist.
    """
    kernel = kernel or getattr(grid, "kernel", "")
    if block is None:
        grid, block = grid.grid, grid.block
    grid, block, thread, at = (_three(v, fill) for v, fill in ((grid, 1), (block, 1), (thread, 0), (at, 0)))
    for where, size, name in ((thread, block, "thread"), (at, grid, "block")):
        if any(not 0 <= i < n for i, n in zip(where, size)):
            raise ValueError(f"there is no {name} {where}: the size is {size}")
    element = writes(at, thread) if callable(writes) else writes
    linear = _linear(thread, block)
    threads = math.prod(block)
    alt = (
        f"{count(math.prod(grid), 'block')} ({_times(grid)}) of {count(threads, 'thread')} ({_times(block)}), "
        f"which are {count(-(-threads // 32), 'warp')}."
    )
    alt += f" Thread {thread} of block {at} is lane {linear % 32} of warp {linear // 32}"
    if element is not None:
        alt += f" and writes output{list(element)}."
    elif callable(writes):
        alt += " and writes nothing."
    else:
        alt += "."
    if threads % 32:
        alt += f" The last warp has {count(32 - threads % 32, 'lane')} without a thread."
    return Picture("Launch map", alt, lambda: _draw(grid, block, thread, at, shape, writes, element, kernel))


def _three(value, fill: int) -> Index:
    values = (value,) if isinstance(value, int) else tuple(value)
    x, y, z = (*values, fill, fill, fill)[:3]
    return x, y, z


def _linear(thread, block) -> int:
    return thread[0] + block[0] * (thread[1] + block[1] * thread[2])


def _times(size) -> str:
    used = size[:3] if size[2] > 1 else size[:2] if size[1] > 1 else size[:1]
    return " × ".join(f"{n:,}" for n in used)


def _draw(grid, block, thread, at, shape, writes: Writes, element: Sequence[int] | None, kernel: str):
    threads, linear = math.prod(block), _linear(thread, block)
    warps = -(-threads // 32)
    top, tall = 1.3, min(2.9, max(1.5, 0.13 * warps))
    shown = element if shape is not None else None
    width = 2.15
    words = f"thread {thread} of block {at} = lane {linear % 32} of warp {linear // 32}"
    head = (
        f"Thread {thread} of block {at} writes output{list(shown)}"
        if shown is not None
        else f"{count(math.prod(grid), 'block')} of {count(threads, 'thread')}"
    )
    figure = new_figure(top + tall + 0.62, head, (f"{kernel}: " if kernel else "") + words)
    _grid(figure, grid, at, 0.35, top, width, tall)
    _block(figure, block, threads, linear, 3.08, top, width if shown is not None else 3.6, tall)
    if shown is not None:
        _output(figure, grid, block, at, shape, writes, shown, 5.7, top, 2.0, tall)
    return figure


def _heading(figure, left: float, top: float, title: str, below: str) -> None:
    wide, height = figure.get_size_inches()
    figure.text(left / wide, 1 - (top - 0.5) / height, title, fontsize=9.5, fontweight="bold", va="top")
    figure.text(left / wide, 1 - (top - 0.3) / height, below, fontsize=8.5, color=SOFT, va="top")


def _window(n: int, chosen: int, room: int) -> range:
    """Return a range of at most `room` of n indices around the chosen one."""
    if n <= room:
        return range(n)
    first = min(max(0, chosen - room // 2), n - room)
    return range(first, first + room)


def _grid(figure, grid, at, left, top, width, tall) -> None:
    """Draw the blocks, x to the right and y downwards; of z only the chosen block's layer."""
    xs, ys = _window(grid[0], at[0], BLOCKS[0]), _window(grid[1], at[1], BLOCKS[1])
    layer = f", layer z = {at[2]} of {grid[2]}" if grid[2] > 1 else ""
    _heading(figure, left, top, f"grid {_times(grid)}", f"{count(math.prod(grid), 'block')}{layer}")
    size = min(width / len(xs), tall / len(ys), 0.42)
    ax = axes(figure, left, top, size * len(xs), size * len(ys))
    ax.set_xlim(0, len(xs))
    ax.set_ylim(len(ys), 0)
    rectangles(
        ax,
        [(x + 0.05, y + 0.05, 0.9, 0.9) for x in range(len(xs)) for y in range(len(ys))],
        "launch-blocks",
        facecolor=CELL,
    )
    x, y = at[0] - xs[0], at[1] - ys[0]
    rectangles(ax, [(x + 0.05, y + 0.05, 0.9, 0.9)], facecolor=ORANGE)
    shown = [f"x {xs[0]} to {xs[-1]}"] * (len(xs) < grid[0]) + [f"y {ys[0]} to {ys[-1]}"] * (len(ys) < grid[1])
    below = f"drawn: {', '.join(shown)}" if shown else f"block {at}"
    ax.text(0, len(ys) + 0.06 / size, below, ha="left", va="top", fontsize=8, color=SOFT)


def _block(figure, block, threads, linear, left, top, width, tall) -> None:
    """Draw the block's warps as rows of 32 lanes."""
    warps = -(-threads // 32)
    _heading(
        figure, left, top, f"block {_times(block)}", f"{count(threads, 'thread')} = {count(warps, 'warp')}, one per row"
    )
    rows = min(tall / warps, 0.2)
    ax = axes(figure, left, top, width, rows * warps)
    ax.set_xlim(0, 32)
    ax.set_ylim(warps, 0)
    lanes = [(i % 32 + 0.06, i // 32 + 0.08, 0.88, 0.84) for i in range(threads)]
    mine = [box for i, box in enumerate(lanes) if i // 32 == linear // 32 and i != linear]
    rectangles(ax, [box for i, box in enumerate(lanes) if i // 32 != linear // 32], facecolor=FAINT)
    rectangles(ax, mine, "launch-warp", facecolor=SKY)
    rectangles(
        ax,
        [(i % 32 + 0.06, i // 32 + 0.08, 0.88, 0.84) for i in range(threads, warps * 32)],
        facecolor=PANEL,
        edgecolor=FAINT,
        linewidth=0.5,
    )
    rectangles(ax, [lanes[linear]], "launch-lane", facecolor=VERMILION)
    ax.text(0, warps + 0.06 / rows, "lane 0", ha="left", va="top", fontsize=8, color=SOFT)
    ax.text(32, warps + 0.06 / rows, "31", ha="right", va="top", fontsize=8, color=SOFT)
    far = min(max(linear % 32, 7), 24)
    ax.text(
        far + 0.5,
        warps + 0.23 / rows,
        f"warp {linear // 32}, lane {linear % 32}",
        ha="center",
        va="top",
        fontsize=8,
        color=VERMILION,
        fontweight="bold",
    )
    ax.text(-0.5, linear // 32 + 0.5, f"{linear // 32}", ha="right", va="center", fontsize=8, color=SOFT)


def _output(figure, grid, block, at, shape, writes: Writes, element: Sequence[int], left, top, width, tall) -> None:
    """Draw the plane of the output that holds the element, what the block writes of it, and the element."""
    rows, columns = (shape[-2], shape[-1]) if len(shape) > 1 else (1, shape[0])
    plane = tuple(element[:-2])
    y, x = (element[-2], element[-1]) if len(shape) > 1 else (0, element[0])
    _heading(
        figure,
        left,
        top,
        f"output {'×'.join(map(str, shape))}",
        f"plane [{', '.join(map(str, plane))}]" if plane else "row-major",
    )
    ys, xs = _window(rows, y, OUTPUT), _window(columns, x, OUTPUT)
    size = min(width / len(xs), tall / len(ys), 0.3)
    ax = axes(figure, left, top, size * len(xs), max(size * len(ys), 0.1))
    ax.set_xlim(xs[0], xs[-1] + 1)
    ax.set_ylim(ys[-1] + 1, ys[0])
    rectangles(ax, [(xs[0], ys[0], len(xs), len(ys))], facecolor=CELL)
    if callable(writes):
        own = set()
        for i in range(math.prod(block)):
            index = writes(at, (i % block[0], i // block[0] % block[1], i // (block[0] * block[1])))
            if index is not None and tuple(index[:-2]) == plane:
                own.add((index[-1], index[-2] if len(shape) > 1 else 0))
        rectangles(
            ax,
            [(cx + 0.05, cy + 0.05, 0.9, 0.9) for cx, cy in sorted(own) if cx in xs and cy in ys],
            "launch-written",
            facecolor=ORANGE,
        )
    rectangles(ax, [(x, y, 1, 1)], "launch-element", facecolor=VERMILION, edgecolor=INK, linewidth=0.8)
    part = "" if len(xs) == columns and len(ys) == rows else f"; rows {ys[0]} to {ys[-1]}, columns {xs[0]} to {xs[-1]}"
    own = "orange: what the block writes" if callable(writes) else "dark orange: what the thread writes"
    ax.text(
        xs[0],
        ys[-1] + 1 + 0.06 / size,
        f"{own}{part}".replace("; ", "\n"),
        ha="left",
        va="top",
        fontsize=8,
        color=SOFT,
        linespacing=1.3,
    )
