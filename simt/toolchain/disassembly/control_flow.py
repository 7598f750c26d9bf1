"""Follow control flow between basic blocks, and find the branches that a GPU replaces by predication."""

from __future__ import annotations

from collections.abc import Iterable

from simt.toolchain.disassembly.arithmetic import EXPANSION, OWN_FUNCTIONS, count_issued
from simt.toolchain.disassembly.decoding import PROBE, Instruction


def _list_following(instruction: Instruction) -> list[int]:
    return [n for n in dict.fromkeys((instruction.next, instruction.target)) if n >= 0]


def find_reached(code: list[Instruction], start: int, probes: set[int], include_start: bool = False):
    """Return what follows the probe at `start` until the next probes.

    The instructions (index -> frequency, where a branch without a probe goes either way equally often), the next
    probes, whether the function may end, and whether it may continue at an unknown place.
    """
    ends = is_open = False
    order: list[int] = []
    found: set[int] = set()
    state: dict[int, int] = {}
    begin = [start] if include_start else [n for n in (code[start].next,) if n >= 0]
    stack = [(n, False) for n in begin]
    while stack:  # depth first, children before parents
        at, done = stack.pop()
        if done:
            order.append(at)
            continue
        if at in state:
            continue
        state[at] = 1
        if at in probes:
            found.add(at)
            continue
        stack.append((at, True))
        following = _list_following(code[at])
        is_open |= code[at].open
        ends |= not following and not code[at].open
        stack += [(n, False) for n in following if n not in state]
    share = dict.fromkeys(order, 0.0)
    for n in begin:
        if n in share:
            share[n] = 1.0
    for at in reversed(order):
        following = _list_following(code[at])
        for n in following:
            if n in share and n != at:
                share[n] = min(1.0, share[n] + share[at] / len(following))
    return share, found, ends, is_open


# In instructions. nvcc predicates so few instructions instead of branching around them.
_MAX_PREDICATED = 12


def find_predicated(code: list[Instruction], reached: dict, costs: list[dict[str, float]]) -> dict[int, int]:
    """Return the blocks that a GPU predicates, which are short sides of a branch -> the block with the branch.

    A side may branch again (a || (b && c)) if everything between the first branch and the point where its paths meet is
    short.
    """
    before: dict[int, set[int]] = {}
    for i, (_, following, _, _) in reached.items():
        for n in following:
            before.setdefault(n, set()).add(i)

    def cost(blocks: Iterable[int]) -> float:
        return sum(
            count_issued(costs[at], {}) if costs[at].keys() & EXPANSION.keys() else costs[at].get("instructions", 0.0)
            for i in blocks
            for at in reached[i][0]
        )

    def plain(i: int) -> bool:
        """Return whether the block has one predecessor, does not return, and calls no function that a GPU would branch
        around.
        """
        share, following, ends, is_open = reached[i]
        calls = [code[at].callee for at in share if code[at].callee and not PROBE.search(code[at].callee)]
        kept = all(any(p.match(c) for p, _ in OWN_FUNCTIONS[:8]) or "atomic" in c for c in calls)
        return len(before.get(i, ())) == 1 and bool(following) and not (ends or is_open or i in following) and kept

    def side(i: int, blocks: list[int]) -> set[int]:
        """Add this block, and those that follow only it, to `blocks`. Return the blocks after them."""
        if not plain(i) or len(blocks) > _MAX_PREDICATED:
            return {i}
        blocks.append(i)
        return set().union(*(side(n, blocks) for n in reached[i][1]))

    found: dict[int, int] = {}
    for parent, (_, following, _, _) in reached.items():
        if len(following) != 2:
            continue
        blocks: list[int] = []
        meets = set().union(*(side(n, blocks) for n in following))
        if not blocks or len(meets) != 1 or parent in meets or cost(blocks) > _MAX_PREDICATED:
            continue
        (after,) = meets
        # the lanes that skip the side only return
        leaves = reached[after][2] and not reached[after][1] and cost([after]) <= 1
        if not leaves:
            found.update((i, next(iter(before[i]))) for i in blocks)
    return found
