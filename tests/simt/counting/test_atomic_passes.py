"""Does simt count an atomic operation's sectors as an H200 does, request by request? (benchmarks/data/atomics.json, by
ncu)
"""

import json
from collections import Counter

import pytest

from benchmarks.validate import atomics


def sectors_of_bytes(offsets):
    return len({at // 32 for at in offsets if at >= 0})


@pytest.mark.slow
def test_sectors_of_single_requests():
    """Has each of the 623 requests, of four operations, few lanes and all, one line and far ones, the sectors that ncu
    counted?
    """
    chosen, truth = atomics.make_patterns(), json.loads(atomics.DATA.read_text())["sectors"]
    wrong = [
        (operation, offsets, mine, theirs)
        for (operation, offsets), mine, theirs in zip(chosen, atomics.count_with_simt(chosen), truth, strict=True)
        if mine != theirs
    ]
    assert not wrong, f"{len(wrong)} of {len(truth)}, for example {wrong[0]}"


def test_the_requests_tell_rules_apart():
    """Would a rule that only looks at the sectors, or only at the lanes that meet at an address, be found wrong by
    these requests?
    """
    chosen, truth = atomics.make_patterns(), json.loads(atomics.DATA.read_text())["sectors"]
    by_sector = [sectors_of_bytes(offsets) for _, offsets in chosen]

    def in_turn(offsets):
        deepest = Counter()
        for at, lanes in Counter(at for at in offsets if at >= 0).items():
            deepest[at // 32] = max(deepest[at // 32], lanes)
        return deepest.total()

    by_turns = [in_turn(offsets) for _, offsets in chosen]
    assert sum(a != b for a, b in zip(by_sector, truth, strict=True)) > 100
    assert sum(a != b for a, b in zip(by_turns, truth, strict=True)) > 20
