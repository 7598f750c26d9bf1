"""Compute what a warp's memory request costs, for pictures of requests that simt did not count.

The rules are those of simt/src/count/rules.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LANES, SECTOR, BANKS, WORD = 32, 32, 32, 4


@dataclass(frozen=True)
class Access:
    """The addresses that a warp's lanes request at once, in bytes from the start of an array (at a sector, at bank 0).

    addresses: up to 32, None for an inactive lane. bytes: per lane. what: a description, for the heading. The maps
    accept an Access instead of a simt.Request.
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
    """Return (lane, address) of the active lanes; addresses count from the start of a sector."""
    return [(lane, a + request.start) for lane, a in enumerate(request.addresses) if a is not None]


def sectors(request) -> list[int]:
    """Return the 32-byte sectors that the request touches, ascending."""
    return sorted({s for _, a in active(request) for s in range(a // SECTOR, (a + request.bytes - 1) // SECTOR + 1)})


def used_bytes(request) -> int:
    """Return how many different bytes the lanes request."""
    return len({b for _, a in active(request) for b in range(a, a + request.bytes)})


def ideal_sectors(request) -> int:
    """Return the fewest sectors that could hold the requested bytes."""
    return -(-used_bytes(request) // SECTOR)


def groups(request) -> list[range]:
    """Return the groups of lanes that one wavefront can serve.

    A group has 32 lanes of up to 4 bytes, 16 of 8 bytes or 8 of 16 bytes; twice as many if neighbouring lanes, or lanes
    two apart, request the same address.
    """
    each = 32 if request.bytes <= 4 else 16 if request.bytes <= 8 else 8
    most = min(LANES, 2 * each)
    found = []
    for first in range(0, LANES, most):
        lanes = range(first, first + most)
        found += [lanes] if most == each or _alike(request, lanes) else [lanes[:each], lanes[each:]]
    return found


def _alike(request, lanes: range) -> bool:
    here = {
        lane: request.addresses[lane]
        for lane in lanes
        if lane < len(request.addresses) and request.addresses[lane] is not None
    }
    return any(all(here.get(lane ^ apart) == address for lane, address in here.items()) for apart in (1, 2))


def words(request, lanes: range) -> dict[int, list[int]]:
    """Return for each bank the different words of it that these lanes request, ascending."""
    requested: dict[int, set[int]] = {}
    for lane, a in active(request):
        if lane in lanes:
            for word in range(a // WORD, (a + request.bytes - 1) // WORD + 1):
                requested.setdefault(word % BANKS, set()).add(word)
    return {bank: sorted(found) for bank, found in requested.items()}


def wavefronts(request) -> int:
    """Return the wavefronts of the request: in each, every bank of shared memory returns one word."""
    return sum(max(map(len, found.values())) for lanes in groups(request) if (found := words(request, lanes)))


def ideal_wavefronts(request) -> int:
    """Return the fewest wavefronts for the same lanes."""
    return min(wavefronts(request), sum(1 for lanes in groups(request) if words(request, lanes)))


def padded(request, row: int, pad: int, element: int = 4) -> Access:
    """Return the request for the same elements after padding the array's rows from `row` to row + pad elements."""
    moved = []
    for address in request.addresses:
        index, inside = divmod(address, element) if address is not None else (None, 0)
        moved.append(None if index is None else (index + index // row * pad) * element + inside)
    return Access(moved, request.bytes)
