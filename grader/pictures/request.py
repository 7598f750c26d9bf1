"""One warp's request as plain data, and what it costs by the rules of simt (simt/src/count_rules.cpp), for pictures of requests
that nobody counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LANES, SECTOR, BANKS, WORD = 32, 32, 32, 4


@dataclass(frozen=True)
class Access:
    """The addresses that a warp's lanes ask for at once, in bytes from where an array begins (at a sector, at bank 0).

    addresses: up to 32, None where the lane is not active. bytes: that each lane asks for. what: in words, for the heading.
    Has what the maps need of a simt.Request, in whose place it can stand.
    """

    addresses: Sequence[int | None]
    bytes: int = 4
    what: str = ""
    start: int = 0

    def __post_init__(self) -> None:
        if not 0 < len(self.addresses) <= LANES:
            raise ValueError(f"a request has 1 to {LANES} lanes, not {len(self.addresses)}")
        if all(a is None for a in self.addresses):
            raise ValueError("no lane of the request is active")


def active(request) -> list[tuple[int, int]]:
    """(lane, address) of the active lanes, the address from the beginning of a sector on."""
    return [(lane, a + request.start) for lane, a in enumerate(request.addresses) if a is not None]


def sectors(request) -> list[int]:
    """The 32-byte sectors that the request touches, ascending."""
    return sorted({s for _, a in active(request) for s in range(a // SECTOR, (a + request.bytes - 1) // SECTOR + 1)})


def used_bytes(request) -> int:
    """Different bytes that the lanes ask for."""
    return len({b for _, a in active(request) for b in range(a, a + request.bytes)})


def ideal_sectors(request) -> int:
    """The fewest that could hold as many bytes."""
    return -(-used_bytes(request) // SECTOR)


def groups(request) -> list[range]:
    """The lanes that one pass through the banks can serve: 32 of up to 4 bytes, 16 of 8, 8 of 16; twice as many where
    neighbours, or lanes two apart, ask for the same."""
    each = 32 if request.bytes <= 4 else 16 if request.bytes <= 8 else 8
    most = min(LANES, 2 * each)
    found = []
    for first in range(0, LANES, most):
        lanes = range(first, first + most)
        found += [lanes] if most == each or _alike(request, lanes) else [lanes[:each], lanes[each:]]
    return found


def _alike(request, lanes: range) -> bool:
    here = {lane: request.addresses[lane] for lane in lanes if lane < len(request.addresses) and request.addresses[lane] is not None}
    return any(all(here.get(lane ^ apart) == address for lane, address in here.items()) for apart in (1, 2))


def words(request, lanes: range) -> dict[int, list[int]]:
    """For each bank, the different words of it that these lanes ask for, ascending."""
    asked: dict[int, set[int]] = {}
    for lane, a in active(request):
        if lane in lanes:
            for word in range(a // WORD, (a + request.bytes - 1) // WORD + 1):
                asked.setdefault(word % BANKS, set()).add(word)
    return {bank: sorted(found) for bank, found in asked.items()}


def wavefronts(request) -> int:
    """Passes through the banks of shared memory: of each bank one word a pass."""
    return sum(max(map(len, found.values())) for lanes in groups(request) if (found := words(request, lanes)))


def ideal_wavefronts(request) -> int:
    """The fewest for as many lanes."""
    return min(wavefronts(request), sum(1 for lanes in groups(request) if words(request, lanes)))


def padded(request, row: int, pad: int, element: int = 4) -> Access:
    """The same elements of an array whose rows of `row` elements have become row + pad long."""
    moved = []
    for address in request.addresses:
        index, inside = divmod(address, element) if address is not None else (None, 0)
        moved.append(None if index is None else (index + index // row * pad) * element + inside)
    return Access(moved, request.bytes)
