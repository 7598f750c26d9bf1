"""Draw a bank map: which of the 32 banks of shared memory each lane of a request needs, and the conflicts."""

from __future__ import annotations

from grader.pictures import request as rules
from grader.pictures.access_map import lanes_text
from grader.pictures.picture import (
    BLUE,
    CELL,
    GREEN,
    INK,
    SOFT,
    VERMILION,
    Picture,
    axes,
    count,
    new_figure,
    rectangles,
)
from grader.pictures.request import BANKS, LANES, WORD

SIDE, LEFT = 3.05, 0.62  # inches: side of a map, margin to its left


def bank_map(*requests, titles=(), row: int | None = None, pad: int = 1, text: str = "") -> Picture:
    """Draw the banks that one or two requests need, lane by lane.

    requests: simt.Request (from simt.Line.requests, kind shared_...) or Access.
    row: elements per row of the array; a single request is drawn a second time with rows of row + pad elements.
    titles: one per request. text: the source line, for the heading. Raises ValueError unless there are one or two
    requests.
    """
    if not 0 < len(requests) <= 2:
        raise ValueError(f"a bank map shows one or two requests, not {len(requests)}")
    shown = list(requests)
    named = [titles[i] if i < len(titles) else getattr(r, "what", "") or _title(r) for i, r in enumerate(shown)]
    if len(shown) == 1 and row:
        shown.append(rules.padded(shown[0], row, pad, min(shown[0].bytes, WORD)))
        named = [named[0] if titles or named[0] else f"rows of {row}", f"rows of {row} + {pad}"]
    alt = " ".join(_describe(request, name if len(shown) > 1 else "") for request, name in zip(shown, named))
    return Picture("Bank map", alt, lambda: _draw(shown, named, text))


def wavefronts_of(request) -> int:
    """Return the request's wavefronts: simt's count if there is one, because atomic operations have their own rules."""
    counted = getattr(request, "wavefronts", 0)
    return counted or rules.wavefronts(request)


def fewest_wavefronts(request) -> int:
    """Return the wavefronts that the request would need without bank conflicts."""
    return getattr(request, "ideal_wavefronts", 0) or rules.ideal_wavefronts(request)


def _title(request) -> str:
    name, kind = getattr(request, "array", ""), getattr(request, "kind", "").replace("shared_", "").rstrip("s")
    return f"{kind} of `{name}`" if name and kind else kind


def _describe(request, name: str) -> str:
    lanes = lanes_text([lane for lane, _ in rules.active(request)])
    n, ideal = wavefronts_of(request), fewest_wavefronts(request)
    bank, deep = _worst(request)
    subject = f"{name}: {lanes[0].lower()}{lanes[1:]}" if name else lanes
    verb = "needs" if lanes.startswith("Lane ") else "need"
    if n <= ideal:
        return f"{subject} {verb} {count(n, 'wavefront')}: no bank conflict."
    return (
        f"{subject} {verb} {count(n, 'wavefront')} instead of {ideal} because of bank conflicts: "
        f"{count(deep, 'word')} of bank {bank} are requested at once."
    )


def _worst(request) -> tuple[int, int]:
    """Return the bank of which the most different words are requested at once, and their number."""
    found = [(len(w), -bank) for lanes in rules.groups(request) for bank, w in rules.words(request, lanes).items()]
    deep, bank = max(found)
    return -bank, deep


def _draw(requests, titles, text):
    height = 0.82 + 0.5 + SIDE + 0.86
    first = requests[0]
    n, ideal = wavefronts_of(first), fewest_wavefronts(first)
    head = f"{count(n, 'wavefront')} instead of {ideal}" if n > ideal else f"{count(n, 'wavefront')}: no bank conflict"
    foot = "row: one lane; column: one bank; orange: lanes that request different words of one bank at once"
    figure = new_figure(height, f"A request to shared memory takes {head}", text or foot, foot if text else "")
    for i, (request, title) in enumerate(zip(requests, titles)):
        _panel(figure, request, title, 0.82, LEFT + i * (SIDE + 0.72), i)
    return figure


def _panel(figure, request, title: str, top: float, left: float, number: int) -> None:
    wide, height = figure.get_size_inches()
    n, ideal = wavefronts_of(request), fewest_wavefronts(request)
    figure.text(left / wide, 1 - top / height, title, fontsize=9.5, fontweight="bold", va="top")
    colour = VERMILION if n > ideal else GREEN
    cost = count(n, "wavefront") + (f", {n - ideal} of them due to conflicts" if n > ideal else ", no conflict")
    figure.text(left / wide, 1 - (top + 0.2) / height, cost, fontsize=9, va="top")
    ax = axes(figure, left, top + 0.5, SIDE, SIDE)
    ax.set_xlim(0, BANKS)
    ax.set_ylim(LANES, 0)
    rectangles(ax, [(b + 0.04, 0, 0.92, LANES) for b in range(BANKS)], facecolor=CELL)
    clear, clash = _marks(request)
    rectangles(ax, [(b + 0.04, lane + 0.06, 0.92, 0.88) for lane, b in clear], f"bank-{number}-free", facecolor=BLUE)
    rectangles(
        ax, [(b + 0.04, lane + 0.06, 0.92, 0.88) for lane, b in clash], f"bank-{number}-conflict", facecolor=VERMILION
    )
    borders = [lanes[0] for lanes in rules.groups(request) if lanes[0]]
    ax.hlines(borders, 0, BANKS, color=INK, linewidth=0.9)
    for bank, deep in _deepest(request).items():
        rectangles(ax, [(bank + 0.04, LANES + 0.5, 0.92, 1.0)], facecolor=colour if deep > 1 else GREEN, clip_on=False)
    for lane in (0, 8, 16, 24, 31):
        ax.text(
            -0.7,
            lane + 0.5,
            f"lane {lane}" if number == 0 else f"{lane}",
            ha="right",
            va="center",
            fontsize=8,
            color=SOFT,
        )
    for bank in (0, 8, 16, 24, 31):
        ax.text(bank + 0.5, LANES + 1.9, f"{bank}", ha="center", va="top", fontsize=8, color=SOFT)
    bank, deep = _worst(request)
    below = f"bank {bank}: {deep} different words" if deep > 1 else "every bank: one word at once"
    ax.text(0, LANES + 3.7, below, ha="left", va="top", fontsize=9, color=INK)


def _deepest(request) -> dict[int, int]:
    """Return for each bank the most different words of it that one group of lanes requests."""
    found: dict[int, int] = {}
    for lanes in rules.groups(request):
        for bank, requested in rules.words(request, lanes).items():
            found[bank] = max(found.get(bank, 0), len(requested))
    return found


def _marks(request) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the (lane, bank) pairs without and with a conflict."""
    clear, clash = [], []
    for lanes in rules.groups(request):
        requested = rules.words(request, lanes)
        for lane, a in rules.active(request):
            if lane in lanes:
                for bank in sorted({word % BANKS for word in range(a // WORD, (a + request.bytes - 1) // WORD + 1)}):
                    (clash if len(requested[bank]) > 1 else clear).append((lane, bank))
    return clear, clash
