"""Draw an access map: which 32-byte sectors of global memory each lane of a warp's request touches."""

from __future__ import annotations

from typing import Any

from grader.pictures import request as rules
from grader.pictures.picture import (
    BLUE,
    CELL,
    DARK,
    GREEN,
    INK,
    SKY,
    SOFT,
    VERMILION,
    WIDTH,
    Picture,
    axes,
    count,
    new_figure,
    rectangles,
)
from grader.pictures.request import LANES, SECTOR, Access

LEFT, RIGHT = 0.62, 0.15  # inches to the left and to the right of the map
ROW, GAP = 0.052, 0.35  # inches per lane; width of a gap in sectors


def access_map(*requests, titles=(), text: str = "") -> Picture:
    """Draw the sectors that each request touches, lane by lane, all requests to one scale.

    requests: simt.Request (from simt.Line.requests) or Access. Below a single request that touches too many sectors,
        the same number of bytes is drawn as consecutive lanes would read them.
    titles: one per request. text: the source line, for the heading. Raises ValueError without a request.
    """
    if not requests:
        raise ValueError("there is no request to draw")
    shown = list(requests)
    named = [titles[i] if i < len(titles) else _title(r) for i, r in enumerate(shown)]
    if len(shown) == 1 and (ideal := coalesced(shown[0])):
        shown.append(ideal)
        named.append("The same number of bytes, requested by consecutive lanes")
    return Picture("Access map", _alt(requests, titles), lambda: _draw(shown, named, text))


def coalesced(request) -> Access | None:
    """Return the request of the same lanes for consecutive elements, or None if it touches no fewer sectors."""
    lanes = [lane for lane, _ in rules.active(request)]
    ideal = Access([lanes.index(i) * request.bytes if i in lanes else None for i in range(LANES)], request.bytes)
    return ideal if len(rules.sectors(ideal)) < len(rules.sectors(request)) else None


def _title(request) -> str:
    name = getattr(request, "array", "")
    kind = getattr(request, "kind", "").replace("global_", "").rstrip("s")
    who = f"Warp {request.warp} of block {request.block}: " if hasattr(request, "warp") else ""
    return getattr(request, "what", "") or who + (f"{kind} of `{name}`" if name else kind or "This request")


def lanes_text(lanes: list[int]) -> str:
    """Return "Lanes 0 to 31", "Lane 3" or "16 lanes"."""
    if len(lanes) == 1:
        return f"Lane {lanes[0]}"
    return f"Lanes {lanes[0]} to {lanes[-1]}" if lanes[-1] - lanes[0] + 1 == len(lanes) else f"{len(lanes)} lanes"


def _alt(requests, titles) -> str:
    sentences = []
    for i, request in enumerate(requests):
        n, ideal = len(rules.sectors(request)), rules.ideal_sectors(request)
        opening = lanes_text([lane for lane, _ in rules.active(request)])
        name = getattr(request, "array", "")
        possible = f"; {ideal} would be enough" if ideal < n else ", the minimum"
        subject = f"{titles[i]}: {opening[0].lower()}{opening[1:]}" if i < len(titles) else opening
        verb = "touches" if opening.startswith("Lane ") else "touch"
        sentences.append(f"{subject} {verb} {count(n, 'sector')}{f' of {name}' if name else ''}{possible}.")
    return " ".join(sentences)


def _places(found: list[int]) -> tuple[dict[int, float], float]:
    """Return the x at which each sector is drawn, and the end of the last one.

    Neighbouring sectors touch; a gap marks memory that is left out.
    """
    places, x = {}, 0.0
    for before, sector in zip([None, *found], found):
        x += GAP if before is not None and sector != before + 1 else 0
        places[sector] = x
        x += 1
    return places, x


def _draw(requests, titles, text):
    laid = [_places(rules.sectors(r)) for r in requests]
    widest = max(end for _, end in laid)
    scale = min((WIDTH - LEFT - RIGHT) / widest, 0.42)  # inches of a sector
    top, each = 0.74, LANES * ROW + 0.86
    height = top + each * len(requests) + 0.2
    first = requests[0]
    n, ideal = len(rules.sectors(first)), rules.ideal_sectors(first)
    finding = f"{count(n, 'sector')}; {ideal} would be enough" if ideal < n else f"{count(n, 'sector')}, the minimum"
    foot = "row: one lane; column: one sector of 32 bytes; blue: the bytes that the lane requests"
    figure = new_figure(height, f"A request of one warp touches {finding}", text or foot, foot if text else "")
    for i, (request, title, (places, end)) in enumerate(zip(requests, titles, laid)):
        _panel(figure, request, title, places, end, scale, top + i * each, i)
    return figure


def _panel(
    figure, request, title: str, places: dict[int, float], end: float, scale: float, top: float, number: int
) -> None:
    height = figure.get_size_inches()[1]
    n, used, ideal = len(places), rules.used_bytes(request), rules.ideal_sectors(request)
    figure.text(0.16 / WIDTH, 1 - top / height, title, fontsize=9.5, fontweight="bold", va="top")
    moved = n * SECTOR
    colour = GREEN if n <= ideal else VERMILION
    traffic = f"{count(n, 'sector')} × 32 = {moved:,} bytes moved, {used:,} of them used ({100 * used / moved:.3g} %)"
    figure.text(0.16 / WIDTH, 1 - (top + 0.2) / height, traffic, fontsize=9, color=INK, va="top")
    ax = axes(figure, LEFT, top + 0.42, end * scale, LANES * ROW)
    ax.set_xlim(0, end)
    ax.set_ylim(LANES, 0)
    for i, x in enumerate(places.values()):
        rectangles(ax, [(x + 0.02, 0, 0.96, LANES)], f"access-{number}-sector-{i}", facecolor=CELL, edgecolor="none")
    marks = [mark for lane, address in rules.active(request) for mark in _marks(lane, address, request.bytes, places)]
    rectangles(
        ax,
        [(left + 0.02, lane + 0.02, 0.96, 0.96) for left, lane in _cells(request, places)],
        facecolor=SKY,
        alpha=0.45,
    )
    rectangles(ax, [(x, lane + 0.02, w, 0.96) for x, lane, w in marks], f"access-{number}-lanes", facecolor=BLUE)
    rectangles(ax, [(x + 0.02, LANES + 0.3, 0.96, 1.1) for x in places.values()], facecolor=colour, clip_on=False)
    for lane in (0, 8, 16, 24, 31):
        if lane < len(request.addresses):
            ax.text(-0.08 / scale, lane + 0.5, f"lane {lane}", ha="right", va="center", fontsize=8, color=SOFT)
    for sector, x in _labelled(places, scale):
        ax.text(x, LANES + 1.7, f"{sector * SECTOR - request.start:,}", ha="left", va="top", fontsize=8, color=SOFT)
    ax.text(-0.08 / scale, LANES + 1.7, "byte", ha="right", va="top", fontsize=8, color=SOFT)


def _marks(lane: int, address: int, size: int, places: dict[int, float]) -> list[tuple[float, int, float]]:
    """Return the bytes of a lane as (x, lane, width), one piece per sector."""
    found, at = [], address
    while at < address + size:
        to = min(address + size, (at // SECTOR + 1) * SECTOR)
        found.append((places[at // SECTOR] + at % SECTOR / SECTOR, lane, (to - at) / SECTOR))
        at = to
    return found


def _cells(request, places: dict[int, float]) -> list[tuple[float, int]]:
    """Return (x, lane) of each sector that each lane touches."""
    return [
        (places[s], lane)
        for lane, a in rules.active(request)
        for s in range(a // SECTOR, (a + request.bytes - 1) // SECTOR + 1)
    ]


def _labelled(places: dict[int, float], scale: float) -> list[tuple[int, float]]:
    """Return the sectors whose first byte is labelled below the map: as many as fit."""
    found, free = [], -1.0
    for sector, x in places.items():
        wide = 0.085 * len(f"{sector * SECTOR:,}")
        if free <= x * scale <= WIDTH - LEFT - wide:
            found.append((sector, x))
            free = x * scale + wide + 0.14
    return found


def out_of_bounds_map(
    array: str, index: int, elements: int, *, verb: str = "reads", thread=None, block=None, text: str = ""
) -> Picture:
    """Draw where an access outside an array lies: the elements at that end of the array, and the access.

    index, elements: in elements of the array. verb: "reads" or "writes". thread, block: (x, y, z) of the accessing
    thread. text: the source line. Raises ValueError if the index is inside.
    """
    if 0 <= index < elements:
        raise ValueError(f"element {index} lies inside {array}, which has {elements}")
    who = f"Thread {tuple(thread)} of block {tuple(block)}" if thread is not None and block is not None else "A thread"
    away = index - elements + 1 if index >= elements else -index
    side = "past the end" if index >= elements else "before the start"
    alt = (
        f"{who} {verb} element {index:,} of {array}, {count(away, 'element')} {side}: {array} has "
        f"{count(elements, 'element')}, 0 to {elements - 1:,}."
    )
    return Picture("Access map", alt, lambda: _draw_end(array, index, elements, verb, who, away, side, text))


def _draw_end(array, index, elements, verb, who, away, side, text):
    after = index >= elements
    cells: list[int | None] = list(range(max(0, elements - 6), elements)) if after else list(range(min(6, elements)))
    more: list[int | None] = [None] if elements > 6 else []
    if after:
        row = more + cells + (list(range(elements, index + 1)) if away <= 4 else [elements, None, index])
    else:
        row = (list(range(index, 0)) if away <= 4 else [index, None, -1]) + cells + more
    figure = new_figure(
        1.95,
        f"{who} {verb} {count(away, 'element')} {side} of `{array}`",
        text or f"`{array}` has {count(elements, 'element')}",
    )
    ax = axes(figure, 0.2, 0.82, WIDTH - 0.4, 0.72)
    ax.set_xlim(0, max(len(row), 8))
    ax.set_ylim(1, 0)
    for x, cell in enumerate(row):
        if cell is None:
            ax.text(x + 0.5, 0.5, "…", ha="center", va="center", fontsize=12, color=SOFT)
            continue
        inside = 0 <= cell < elements
        face = VERMILION if cell == index else CELL if not inside else SKY
        ax.add_patch(_cell(x, face, inside or cell == index))
        look: dict[str, Any] = {"color": DARK if inside else INK}
        if cell == index:
            look = {"color": "white", "fontweight": "bold"}
        ax.text(x + 0.5, 0.5, f"{cell:,}", ha="center", va="center", fontsize=min(9, 66 / len(f"{cell:,}")), **look)
    border = row.index(elements) if after else row.index(0)
    ax.plot([border, border], [-0.16, 1.16], color=INK, linewidth=2, clip_on=False, solid_capstyle="butt")
    to_left = after and border > 2
    label = f"the array {'ends' if after else 'begins'} here"
    ax.text(border + (-0.08 if to_left else 0.08), 1.22, label, ha="right" if to_left else "left", va="top", fontsize=9)
    return figure


def _cell(x: float, face: str, solid: bool):
    from matplotlib.patches import Rectangle

    return Rectangle(
        (x + 0.04, 0.05),
        0.92,
        0.9,
        facecolor=face,
        edgecolor=INK if solid else SOFT,
        linewidth=0.8,
        linestyle="-" if solid else (0, (3, 2)),
    )
