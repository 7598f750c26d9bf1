"""Draw a race map: two accesses of different threads to one element, in both possible orders."""

from __future__ import annotations

import dataclasses

from grader.pictures.picture import (
    BLUE,
    CELL,
    INK,
    LINE,
    ORANGE,
    SOFT,
    VERMILION,
    Picture,
    axes,
    clipped,
    new_figure,
    rectangles,
)

KINDS = ("reads", "writes", "updates atomically", "updates")


@dataclasses.dataclass(frozen=True)
class RaceAccess:
    """One thread's access to the element.

    thread, block: (x, y, z). verb: one of KINDS. line: the line of the submission, 0 if unknown. text: that line.
    """

    thread: tuple[int, ...]
    block: tuple[int, ...]
    verb: str
    line: int = 0
    text: str = ""


def race_map(array: str, index: int, one: RaceAccess, other: RaceAccess) -> Picture:
    """Draw two accesses to element `index` of `array` in both orders, each with its outcome.

    Raises ValueError if this is no race: neither access writes, or one thread does both.
    """
    if "reads" == one.verb == other.verb:
        raise ValueError("two threads that read are no race: one must write")
    if (one.thread, one.block) == (other.thread, other.block):
        raise ValueError("a thread does not race with itself")
    same = "the same block" if tuple(one.block) == tuple(other.block) else "another block"
    alt = (
        f"{_who(one)} {one.verb} element {index} of {array}{_at(one)}; "
        f"{_who(other, False)} of {same} {other.verb} it{_at(other)}. "
        f"They can come in either order: {_describe_outcomes(one, other)}."
    )
    return Picture("Race map", alt, lambda: _draw(array, index, one, other))


def outcomes(one: RaceAccess, other: RaceAccess) -> tuple[str, str]:
    """Return the outcome if `one` comes first, and the outcome if `other` does."""
    readers = [access for access in (one, other) if access.verb == "reads"]
    if not readers:
        return f"{_name(other, one)}'s value stays", f"{_name(one, other)}'s value stays"
    return (
        ("the old value is read", "the new value is read")
        if readers[0] is one
        else ("the new value is read", "the old value is read")
    )


def _describe_outcomes(one: RaceAccess, other: RaceAccess) -> str:
    first, second = outcomes(one, other)
    return f"if {_name(one, other)} comes first, {first}; otherwise {second}"


def _who(access: RaceAccess, block: bool = True) -> str:
    where = f" of block {_tuple(access.block)}" if block else ""
    return f"Thread {_tuple(access.thread)}{where}" if block else f"thread {_tuple(access.thread)}"


def _short(access: RaceAccess) -> str:
    return f"thread {_tuple(access.thread)}"


def _name(access: RaceAccess, other: RaceAccess) -> str:
    """Return what distinguishes the two: the thread, or its block if the threads have the same index."""
    return f"block {_tuple(access.block)}" if access.thread == other.thread else _short(access)


def _at(access: RaceAccess) -> str:
    return f" in line {access.line}" if access.line else ""


def _tuple(values) -> str:
    return f"({', '.join(map(str, values))})"


def _draw(array: str, index: int, one: RaceAccess, other: RaceAccess):
    figure = new_figure(
        2.95,
        f"Two threads access element {index} of {array}, and nothing orders the accesses",
        "time runs downwards; both orders are possible",
    )
    for number, (first, second, outcome) in enumerate(zip((one, other), (other, one), outcomes(one, other))):
        ax = axes(figure, 0.16 + number * 3.92, 0.72, 3.76, 2.05)
        ax.set_xlim(0, 3.76)
        ax.set_ylim(2.05, 0)
        ax.text(0, 0.1, f"If {_name(first, second)} comes first", fontsize=9.5, fontweight="bold", va="center")
        for column, access in enumerate((one, other)):
            x = column * 1.92
            ax.plot([x + 0.9, x + 0.9], [0.5, 1.72], color=LINE, zorder=0)
            block = "" if tuple(one.block) == tuple(other.block) else f"block {_tuple(access.block)}"
            place = ", ".join(part for part in (f"line {access.line}" if access.line else "", block) if part)
            ax.text(x + 0.9, 0.36, _short(access), fontsize=8, color=SOFT, ha="center", va="center")
            top = 0.54 if access is first else 1.14
            colour = BLUE if access.verb == "reads" else ORANGE
            rectangles(ax, [(x, top, 1.8, 0.46)], facecolor=CELL)
            rectangles(
                ax,
                [(x, top, 0.07, 0.46)],
                f"race-{number}-{'first' if access is first else 'second'}-{column}",
                facecolor=colour,
            )
            ax.text(
                x + 0.14, top + 0.13, clipped(f"{access.verb} {array}[{index}]", 26), fontsize=9, color=INK, va="center"
            )
            ax.text(x + 0.14, top + 0.34, clipped(place, 28), fontsize=7.5, color=SOFT, va="center")
        ax.text(0, 1.9, outcome, fontsize=9, color=VERMILION, fontweight="bold", va="center")
    return figure
