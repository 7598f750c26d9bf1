"""Draw a reduction tree: which thread adds whose value in each step, and where the threads wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grader.pictures.picture import (
    BLUE,
    CELL,
    DARK,
    FAINT,
    INK,
    MINT,
    PANEL,
    SOFT,
    VERMILION,
    WIDTH,
    Picture,
    axes,
    count,
    new_figure,
)

WIDEST = 32  # most values drawn side by side
KINDS = ("halving", "doubling", "shuffle")


@dataclass(frozen=True)
class Add:
    """Thread `into` adds the value of `other` to its own."""

    into: int
    other: int


def steps_of(values: int, kind: str = "halving") -> list[list[Add]]:
    """Return the steps that add this many values (a power of two, one per thread).

    kind: "halving": thread t adds the value of t + s for s = n/2, n/4, ..., 1, so that the active threads are
    neighbours; "doubling": for s = 1, 2, 4, ..., so that they are ever farther apart; "shuffle": as halving, with
    __shfl_down_sync in a warp. Raises ValueError for another kind or number.
    """
    if kind not in KINDS:
        raise ValueError(f"kind is one of {', '.join(KINDS)}, not {kind!r}")
    if values < 2 or values & (values - 1):
        raise ValueError(f"a tree adds a power of two of values, not {values}")
    strides = [1 << i for i in range(values.bit_length() - 1)]
    if kind == "doubling":
        return [[Add(t, t + s) for t in range(0, values, 2 * s)] for s in strides]
    return [[Add(t, t + s) for t in range(s)] for s in reversed(strides)]


def sums(values: Sequence[float], steps: Sequence[Sequence[Add]]) -> list[list[float]]:
    """Return each thread's value before the first step and after each step."""
    held = [list(values)]
    for step in steps:
        before, after = held[-1], list(held[-1])
        for add in step:
            after[add.into] = before[add.into] + before[add.other]
        held.append(after)
    return held


def reduction_tree(
    values: int | Sequence[float] = 16,
    steps: Sequence[Sequence[Add]] | None = None,
    *,
    kind: str = "halving",
    barriers: Sequence[bool] | None = None,
) -> Picture:
    """Draw the threads side by side, one step per row, with an arrow per addition and a line per barrier.

    values: their number (each is labelled with its thread's index), or the values themselves: then each row shows the
        threads' values.
    steps: by default those of `kind` (see steps_of).
    barriers: for each step, whether all threads wait before it; by default True, but False for a "shuffle", whose lanes
        exchange registers. A missing barrier is drawn in orange.
    Raises ValueError for more than 32 values, or unless there is one barrier per step.
    """
    given = None if isinstance(values, int) else list(values)
    n = values if isinstance(values, int) else len(values)
    if n > WIDEST:
        raise ValueError(f"a tree of {n} values is too wide to draw: at most {WIDEST}")
    steps = steps_of(n, kind) if steps is None else [list(step) for step in steps]
    shuffles = kind == "shuffle"
    waits = [not shuffles] * len(steps) if barriers is None else list(barriers)
    if len(waits) != len(steps):
        raise ValueError(f"there are {len(steps)} steps and {len(waits)} barriers: give one barrier per step")
    missing = [] if shuffles else [i for i, wait in enumerate(waits, 1) if not wait]
    additions = sum(map(len, steps))
    alt = f"{n} values are summed in {count(len(steps), 'step')} with {count(additions, 'addition')}"
    alt += (
        "; each lane adds the value that __shfl_down_sync returns."
        if shuffles
        else f" and {count(sum(waits), 'barrier')}."
    )
    if missing:
        alt += (
            f" There is no barrier before step {' or '.join(map(str, missing))}: a thread may add a value that is not "
            "written yet."
        )
    elif steps:
        step = steps[0]
        alt += f" In step 1, thread {step[0].into} adds the value of thread {step[0].other}"
        alt += f", and thread {step[1].into} that of thread {step[1].other}." if len(step) > 1 else "."
    return Picture("Reduction tree", alt, lambda: _draw(n, given, steps, waits, shuffles, missing))


# Stays whole: it places one picture from top to bottom.
def _draw(n, given, steps, waits, shuffles, missing):
    from matplotlib.patches import FancyArrowPatch

    top, each = 0.9 if given else 0.76, 0.72
    height = top + each * (len(steps) + 0.5) + 0.15
    title = f"{n} values are summed in {count(len(steps), 'step')}"
    if missing:
        title = f"No barrier before step {' or '.join(map(str, missing))}"
    how = "arrow: from the value that is added to the thread that adds it; green: active thread; line: __syncthreads()"
    if shuffles:
        how = "arrow: __shfl_down_sync, by which the lanes of a warp exchange registers"
    figure = new_figure(height, title, how)
    left, right = 0.95, 1.35
    ax = axes(figure, left, top, WIDTH - left - right, each * (len(steps) + 0.5))
    ax.set_xlim(-0.5, n - 0.5)
    ax.set_ylim(len(steps) + 0.25, -0.25)
    held = sums(given, steps) if given else None
    size = min(0.3, (WIDTH - left - right) / n * 0.86)
    for row in range(len(steps) + 1):
        working = {add.into for add in steps[row - 1]} if row else set(range(n))
        live = _live(n, steps[row:])
        for t in range(n):
            _node(ax, t, row, t in working, t in live, held[row][t] if held else t, size, n, each)
        words = "at first" if row == 0 else f"step {row}"
        ax.text(-0.5 - 0.1 * n / (WIDTH - left - right), row, words, ha="right", va="center", fontsize=9)
        if row:
            n_adds = len(steps[row - 1])
            at = (
                f"{count(n_adds, 'sum')} used"
                if shuffles
                else f"{count(n_adds, 'thread')} add" + ("s" if n_adds == 1 else "")
            )
            ax.text(n - 0.5 + 0.1 * n / (WIDTH - left - right), row, at, ha="left", va="center", fontsize=9, color=SOFT)
    for t in range(n if given else 0):
        ax.text(
            t,
            -size / 2 / each - 0.05,
            f"thread {t}" if n <= 8 else f"{t}",
            ha="center",
            va="bottom",
            fontsize=8,
            color=SOFT,
        )
    reach = size / 2 / each
    for row, step in enumerate(steps):
        for i, add in enumerate(step):
            start, end = (add.other, row + reach), (add.into, row + 1 - reach)
            look: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 7, "color": BLUE, "linewidth": 1.0}
            look |= {"shrinkA": 0, "shrinkB": 0}
            ax.add_patch(FancyArrowPatch(start, end, gid=f"tree-{row}-{i}", **look))
        if shuffles:
            continue
        y = row + 0.5
        if waits[row]:
            ax.plot([-0.5, n - 0.5], [y, y], color=INK, linewidth=1.1, alpha=0.75, gid=f"tree-barrier-{row}")
        else:
            ax.plot([-0.5, n - 0.5], [y, y], color=VERMILION, linewidth=1.4, linestyle=(0, (2, 3)))
            ax.text(
                n - 0.5 + 0.1 * n / (WIDTH - left - right),
                y,
                "no barrier!",
                ha="left",
                va="center",
                fontsize=9,
                color=VERMILION,
                fontweight="bold",
            )
    return figure


def _live(n: int, steps) -> set[int]:
    """Return the threads whose value is still used, by a later step or as the result."""
    return {t for step in steps for add in step for t in (add.into, add.other)} or {0}


def _node(ax, t: int, row: int, working: bool, live: bool, label, size: float, n: int, each: float) -> None:
    from matplotlib.patches import Rectangle

    wide = 0.86 if n > 1 else 0.3
    tall = size / each
    adds = working and row
    face = MINT if adds else CELL if live else PANEL
    ax.add_patch(
        Rectangle(
            (t - wide / 2, row - tall / 2),
            wide,
            tall,
            facecolor=face,
            edgecolor=SOFT if live else FAINT,
            linewidth=0.7,
            zorder=2,
        )
    )
    text = f"{label}" if isinstance(label, int) else f"{label:.4g}"
    colour = DARK if adds else INK if live else SOFT
    ax.text(t, row, text, ha="center", va="center", fontsize=9 if n <= 16 else 6.5, color=colour, zorder=3)
