"""Counting mode: do the counters say what a brute-force count of the same threads says, lane by lane, warp by warp?"""

import math
import random
from collections import Counter

import pytest
import torch

import simt
from tests.simt.counting.counted_kernels import BYTES, at

# ---- brute force ----


def warps_of(addresses: list[int | None], threads: int) -> list[dict[int, int]]:
    """Lane -> address, of each warp of each block of `threads`; None: the lane takes no part."""
    found = []
    for block in range(0, len(addresses), threads):
        for start in range(block, block + threads, 32):
            warp = {
                t - start: addresses[t]
                for t in range(start, min(start + 32, block + threads))
                if addresses[t] is not None
            }
            found.append(warp)
    return [w for w in found if w]


def sectors_of(warp: dict[int, int], size: int) -> int:
    return len({byte // 32 for a in warp.values() for byte in range(a, a + size)})


def used_by(warp: dict[int, int], size: int) -> int:
    return len({byte for a in warp.values() for byte in range(a, a + size)})


def passes(warp: dict[int, int], size: int) -> int:
    """The most words that one bank has to give."""
    words = {byte // 4 for a in warp.values() for byte in range(a, a + size)}
    return max(Counter(word % 32 for word in words).values(), default=0)


def neighbours_agree(warp: dict[int, int]) -> bool:
    return any(all(warp.get(lane ^ apart) == a for lane, a in warp.items()) for apart in (1, 2))


def wavefronts_of(warp: dict[int, int], size: int) -> tuple[int, int]:
    """Passes of a warp through the banks, and how many there would be without conflicts."""
    group = {8: 16, 16: 8}.get(size, 32)
    total = needed = 0
    for start in range(0, 32, min(32, 2 * group)):
        both = {lane: a for lane, a in warp.items() if start <= lane < start + 2 * group}
        parts = [both] if group == 32 or neighbours_agree(both) else [
            {lane: a for lane, a in both.items() if first <= lane < first + group} for first in (start, start + group)
        ]  # fmt: skip
        total += sum(passes(part, size) for part in parts)
        needed += len(both) * size / (2 if group < 32 and len(parts) == 1 else 1)
    return total, min(total, math.ceil(needed / 128))


def lookups_of(places: list[int]) -> int:
    """Passes in which the lines are looked up: in the lanes' order, one line of each of four banks."""
    found: list[dict[int, int]] = []
    for place in places:
        bank = (place & 0x2F7BD5A80).bit_count() % 2 + (place & 0x75D6AED00).bit_count() % 2 * 2
        if not found or found[-1].get(bank, place // 128) != place // 128:
            found.append({})
        found[-1][bank] = place // 128
    return max(1, len(found))


def patterns(kind: str, threads: int, count: int, elements: int) -> list[int]:
    """Which element each of count threads touches; -1: none."""
    chance = random.Random(f"{kind} {threads}")
    made = {
        "stride 1": lambda t: t,
        "stride 2": lambda t: 2 * t,
        "stride 8": lambda t: 8 * t,
        "stride 32": lambda t: 32 * t,
        "offset 1": lambda t: t + 1,
        "offset 5": lambda t: t + 5,
        "one for all": lambda t: 7,
        "one for two": lambda t: t // 2,
        "one for four": lambda t: t // 4,
        "one for sixteen": lambda t: t // 16 * 3,
        "backwards": lambda t: count - 1 - t,
        "odd lanes": lambda t: t if t % 2 else -1,
        "first lane": lambda t: t if t % 32 == 0 else -1,
        "random": lambda t: chance.randrange(elements),
        "random lanes": lambda t: chance.randrange(elements) if chance.random() < 0.4 else -1,
        "squares": lambda t: t * t,
    }[kind]
    return [-1 if (i := made(t)) < 0 else i % elements for t in range(count)]


KINDS = (
    "stride 1", "stride 2", "stride 8", "stride 32", "offset 1", "offset 5", "one for all", "one for two",
    "one for four", "one for sixteen", "backwards", "odd lanes", "first lane", "random", "random lanes", "squares",
)  # fmt: skip


# ---- accesses ----


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", BYTES)
@pytest.mark.parametrize("threads", [96, 20])
def test_are_the_sectors_of_global_accesses_those_of_the_bytes(kernels, kind, size, threads):
    a, b = torch.zeros(1024 * 16 + 1, dtype=torch.uint8), torch.zeros(1024 * 16, dtype=torch.uint8)
    index = torch.tensor(patterns(kind, threads, 480, 1024), dtype=torch.int32)
    with simt.count() as report:
        kernels.run_global_access(size, index, a, b, threads)
    for mark, tensor, name in (("global load", a, "global_loads"), ("global store", b, "global_stores")):
        warps = warps_of([tensor.data_ptr() + int(i) * BYTES[size] if i >= 0 else None for i in index], threads)
        got = getattr(at(report, mark), name)
        assert got.requests == len(warps)
        assert got.lanes == sum(map(len, warps))
        assert got.bytes == got.lanes * BYTES[size]
        assert got.sectors == sum(sectors_of(w, BYTES[size]) for w in warps)
        assert got.used == sum(used_by(w, BYTES[size]) for w in warps)
        assert got.ideal_sectors == sum(math.ceil(used_by(w, BYTES[size]) / 32) for w in warps)
        assert got.addresses == sum(len(set(w.values())) for w in warps)
        passes = [
            max(wavefronts_of(w, BYTES[size])[0], lookups_of([place - tensor.data_ptr() for place in w.values()]))
            for w in warps
        ]
        # which lines share a bank depends on more of the address than a request is recognised by
        assert got.wavefronts == pytest.approx(sum(passes), rel=0.1)
    assert at(report, "index").global_loads.requests == 480 // threads * math.ceil(threads / 32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", BYTES)
@pytest.mark.parametrize("threads", [96, 20])
def test_are_the_wavefronts_of_shared_accesses_those_of_the_banks(kernels, kind, size, threads):
    index = torch.tensor(patterns(kind, threads, 480, 1024), dtype=torch.int32)
    with simt.count() as report:
        kernels.run_shared_access(size, index, torch.zeros(1), torch.zeros(1024), threads)
    warps = warps_of([int(i) * BYTES[size] if i >= 0 else None for i in index], threads)
    expected = [wavefronts_of(w, BYTES[size]) for w in warps]
    for mark, name in (("shared load", "shared_loads"), ("shared store", "shared_stores")):
        got = getattr(at(report, mark), name)
        assert got.requests == len(warps)
        assert got.lanes == sum(map(len, warps))
        assert got.wavefronts == sum(total for total, _ in expected)
        assert got.conflicts == sum(total - ideal for total, ideal in expected)


@pytest.mark.parametrize("pad, conflicts", [(0, 31 * 32), (1, 0)])
def test_does_padding_end_the_conflicts_of_a_transposed_tile(kernels, pad, conflicts):
    x, y = torch.rand(32, 32), torch.empty(32, 32)
    with simt.count() as report:
        kernels.run_transposed(x, y, pad)
    assert torch.equal(y, x.T)
    assert at(report, "tile rows").shared_stores.conflicts == 0
    assert at(report, "tile columns").shared_loads.conflicts == conflicts


def test_are_structures_moved_in_pieces_that_their_alignment_allows(kernels):
    with simt.count() as report:
        kernels.run_structures(torch.zeros(512), torch.zeros(512))
    four, three = at(report, "four floats"), at(report, "three floats")
    assert (four.global_loads.requests, four.global_loads.bytes, four.global_loads.sectors) == (4, 512, 4 * 16)
    assert (three.global_stores.requests, three.global_stores.bytes) == (3, 384)


@pytest.mark.parametrize("line", ["braced", "made", "empty"])
def test_are_vectors_of_constants_stored_as_a_whole(kernels, line):
    y = torch.ones(3 * 128)
    with simt.count() as report:
        kernels.run_braced(y)
    assert (at(report, line).global_stores.requests, at(report, line).global_stores.sectors) == (1, 16)
    assert y[4:8].tolist() == [1, 2, 3, 4] and not y[128:].any()


def test_are_arguments_and_built_in_variables_no_accesses(kernels):
    x, y = torch.rand(640), torch.rand(640)
    with simt.count() as report:
        kernels.run_saxpy(x, y)
    (launch,) = report.launches
    c = launch.counters
    assert (c.global_loads.requests, c.global_stores.requests) == (40, 20)
    assert (
        c.shared_loads.requests == c.local_loads.requests == c.constant_loads.requests == c.local_stores.requests == 0
    )


# ---- atomics ----


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("spread", [1, 4, 64])
def test_is_contention_the_lanes_that_meet_at_one_address(kernels, spread, shared):
    to = torch.randint(spread, (1000,), generator=torch.Generator().manual_seed(3), dtype=torch.int32)
    count = torch.zeros(64, dtype=torch.int32)
    with simt.count() as report:
        (kernels.run_shared_bins if shared else kernels.run_bins)(to, count)
    assert torch.equal(count[:spread].long(), torch.bincount(to, minlength=spread))
    warps = warps_of([int(t) for t in to] + [None] * (-1000 % 128), 128)
    c = at(report, "shared atomic" if shared else "atomic")
    got = c.shared_atomics if shared else c.global_atomics
    assert (got.requests, got.lanes) == (len(warps), 1000)
    assert got.addresses == sum(len(set(w.values())) for w in warps)
    assert got.deepest == sum(max(Counter(w.values()).values()) for w in warps)
    assert got.lanes_per_address == got.deepest / got.requests


def test_are_lanes_at_one_word_of_shared_memory_served_in_turn_unless_they_add_one(kernels):
    to = torch.randint(40, (128,), generator=torch.Generator().manual_seed(5), dtype=torch.int32)
    with simt.count() as report:
        kernels.run_shared_sums(to, torch.zeros(64, dtype=torch.int32))
        kernels.run_shared_bins(to, torch.zeros(64, dtype=torch.int32))
    warps = warps_of([4 * int(t) for t in to], 128)
    in_turn = sum(max(Counter(a // 4 % 32 for a in w.values()).values()) for w in warps)
    at_once = sum(passes(w, 4) for w in warps)
    assert at_once < in_turn
    assert at(report, "shared sum").shared_atomics.wavefronts == in_turn
    assert at(report, "shared atomic").shared_atomics.wavefronts == at_once


def test_are_constants_a_memory_of_their_own(kernels):
    x, y = torch.rand(64), torch.empty(64)
    with simt.count() as report:
        kernels.run_weighted(x, y, 5)
    uniform, mixed = at(report, "constant"), at(report, "constants").constant_loads
    assert (uniform.constant_loads.requests, uniform.constant_loads.addresses) == (2 * 5, 2 * 5)
    assert (mixed.requests, mixed.addresses) == (2, 2 * 9)
    assert (
        at(report, "device variable").global_loads.requests,
        report.launches[0].counters.global_stores.requests,
    ) == (2, 2)


# ---- lanes ----


@pytest.mark.parametrize("n, threads", [(1000, 128), (1024, 128), (5, 64), (333, 48)])
def test_do_lanes_that_returned_no_longer_count(kernels, n, threads):
    blocks = -(-1024 // threads)
    x, y = torch.rand(blocks * threads), torch.empty(blocks * threads)
    with simt.count() as report:
        kernels.run_early(x, y, n, blocks, threads)
    warps = warps_of([t if t < n else None for t in range(blocks * threads)], threads)
    got = at(report, "early")
    assert (got.global_loads.requests, got.global_loads.lanes) == (len(warps), n)
    assert (got.global_stores.requests, got.global_stores.lanes) == (len(warps), n)


@pytest.mark.parametrize("schedule", ["forward", "reverse", 5])
@pytest.mark.parametrize("meet", [0, 1])
@pytest.mark.parametrize("threads", [32, 256, 1024])
def test_are_long_loops_of_different_lengths_counted_to_the_last_step(kernels, threads, meet, schedule):
    chance = random.Random(threads + meet)
    steps = torch.tensor(
        [chance.choice([0, 3, 50, 700, 2000]) if chance.random() < 0.2 else 40 for _ in range(1024)], dtype=torch.int32
    )
    x, y = torch.ones(64), torch.empty(1024)
    with simt.count(schedule=schedule) as report:
        kernels.run_long_loops(x, y, steps, threads, meet)
    assert torch.equal(y.int(), 3 * steps)
    got = at(report, "long").global_loads
    assert got.lanes == 3 * int(steps.sum())
    assert got.requests == 3 * sum(int(steps[w : w + 32].max()) for w in range(0, 1024, 32))
    assert at(report, "barrier").barriers == (3 * 32 if meet else 0)


@pytest.mark.parametrize("outside", [False, True])
def test_do_lanes_that_need_one_another_go_on(kernels, outside):
    lock, count = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    with simt.count() as report:
        kernels.run_locked(lock, count, outside)
    assert int(count) == 128
    if not outside:
        assert at(report, "locked").global_loads.lanes == 128


def test_do_lanes_meet_again_after_a_call_that_some_of_them_made(kernels):
    x, y = torch.rand(64), torch.empty(64)
    with simt.count() as report:
        kernels.run_calls(x, y)
    after = at(report, "after the call").global_loads
    assert (after.requests, after.lanes) == (2, 64)
    called = at(report, "called").global_loads
    assert called.lanes == 32 + 64  # depth 1 or 3 of the odd lanes, then depth 1 of all
    assert at(report, "depth").global_loads.lanes == 16 * 1 + 16 * 3 + 64


def test_do_lanes_meet_again_after_a_switch(kernels):
    with simt.count() as report:
        kernels.run_chosen(torch.ones(64, dtype=torch.int32), torch.empty(64, dtype=torch.int32))
    case, after = at(report, "case").global_loads, at(report, "after the switch").global_loads
    assert (case.requests, case.lanes) == (2, 8)
    assert (after.requests, after.lanes) == (2, 64)


@pytest.mark.parametrize("n", [1, 255, 300, 1000])
def test_do_lanes_meet_again_after_functions_in_which_they_part_and_shuffle(kernels, n):
    x, y = torch.arange(n, dtype=torch.int32), torch.empty(256, dtype=torch.int32)
    with simt.count() as report:
        kernels.run_summed(x, y)
    assert int(y[0]) == n * (n - 1) // 2
    assert report.launches[0].counters.exchanges == (8 + 1) * 5
    one, after = at(report, "a warp's sum").shared_stores, at(report, "after sums").global_stores
    assert (one.requests, one.lanes) == (8, 8) and (after.requests, after.lanes) == (8, 256)


def test_are_shuffles_and_barriers_counted_by_warp(kernels):
    x, y = torch.rand(128), torch.empty(4)
    with simt.count() as report:
        kernels.run_shuffled(x, y)
    assert torch.allclose(y, x.view(4, 32).sum(1))
    c = report.launches[0].counters
    assert c.exchanges == 4 * 5
    assert (c.global_loads.requests, c.global_stores.requests, c.global_stores.lanes) == (4, 4, 4)
