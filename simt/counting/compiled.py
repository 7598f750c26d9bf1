"""Tell what nvcc makes of the accesses that were counted: it joins some, and lets others be under way together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simt.toolchain.disassembly.accesses import Accesses, Group

COPIED = 4.0  # copies of a loop's body at least
LOADS_AT_ONCE = 16.0  # of a warp, at most: nvcc begins those of 16 copies together (backward_kernels.cu: bias)
# Passes of a load of so many words: 8 or 16 lanes each, and twice as many lanes where neighbours use the same bytes.
_PASSES = {2: 2, 4: 4}
CROWD = 1.1  # distinct addresses of a request at most, for its lanes to add to one place
_SHARING = 16  # distinct addresses of a request, up to which neighbours are taken to use the same
_LOAD, _STORE, _ATOMIC = 2, 3, 4  # events
_GLOBAL, _SHARED = "0", "1"  # spaces


@dataclass
class Compiled:
    """What nvcc changes of a launch's counters, over the whole grid, at warp level.

    load_rounds: how often warps wait for global loads, those that are under way together counted once. joined_requests,
    joined_wavefronts: of shared memory, which fall away because neighbouring words are loaded at once. joined_atomics:
    passes of atomics on global memory that fall away because a warp's integers are added up first. float_atomics: lanes
    that add floats to global memory. shared_float_rounds: attempts to add floats in shared memory, which has no
    instruction for that; shared_float_crowds: those where all lanes of a warp add to one place.
    """

    load_rounds: float = 0.0
    joined_requests: float = 0.0
    joined_wavefronts: float = 0.0
    joined_atomics: float = 0.0
    float_atomics: float = 0.0
    shared_float_rounds: float = 0.0
    shared_float_crowds: float = 0.0


def find_copied(accesses: Accesses, ran: Mapping[int, float]) -> dict[int, float]:
    """Return for each loop the part of its turns that nvcc's copies of its body do, in steps of four; the others are
    done one by one. ran: how often each block ran, by the offset of its probe.
    """
    found = {}
    for number, turns in accesses.loops.items():
        begun = sum(ran.get(offset, 0.0) for offset in turns.before)
        each = ran.get(turns.first, 0.0) / begun if begun else 0.0
        found[number] = each // COPIED * COPIED / each if each else 1.0
    return found


def find_compiled(raw: Mapping, accesses: Accesses, copied: Mapping[int, float]) -> Compiled:
    """Return what nvcc makes of a launch. raw: its sums by place in the code, as the runtime tells them. copied: see
    find_copied().
    """
    ran: dict[str, dict[int, list[float]]] = {_GLOBAL: {}, _SHARED: {}}
    atomics: dict[str, dict[int, list[float]]] = {_GLOBAL: {}, _SHARED: {}}
    for spot in raw["spots"]:
        for space in (_GLOBAL, _SHARED):
            if spot["offset"] and space in spot["tally"] and spot["event"] in (_LOAD, _STORE, _ATOMIC):
                kind = atomics if spot["event"] == _ATOMIC else ran
                kind[space][spot["offset"]] = spot["tally"][space]
    found = Compiled(load_rounds=_count_load_rounds(accesses.groups, ran[_GLOBAL], copied))
    for group in accesses.groups:
        for one in group.each:
            if one.words > 1 and (tally := ran[_SHARED].get(one.offset)):
                requests, wavefronts, distinct = tally[0] / one.words, tally[6], tally[8]
                passes = _PASSES[one.words] / (2 if distinct <= tally[0] * _SHARING else 1)
                found.joined_requests += tally[0] - requests
                found.joined_wavefronts += wavefronts - max(wavefronts / one.words, requests * passes)
    for offset, tally in atomics[_GLOBAL].items():
        if offset in accesses.uniform:
            found.joined_atomics += max(0.0, tally[4] - tally[0])
        elif offset in accesses.floats:
            found.float_atomics += tally[1]
    floats = [tally for offset, tally in atomics[_SHARED].items() if offset in accesses.floats]
    found.shared_float_rounds = sum(tally[9] for tally in floats)
    found.shared_float_crowds = sum(tally[9] for tally in floats if tally[8] < CROWD * tally[0])
    return found


def _count_load_rounds(groups: list[Group], ran: dict[int, list[float]], copied: Mapping[int, float]) -> float:
    """Return the rounds of the loads of each block, and of the copies of a loop's body, up to a store to global memory:
    it may change what is loaded after it.
    """
    stored = {group.loop for group in groups if any(one.level < 0 and one.offset in ran for one in group.each)}
    total = 0.0
    for group in groups:
        apart = group.chased or (group.loop >= 0 and group.loop in stored)
        part = 0.0 if apart else copied.get(group.loop, 1.0)
        copies = 1 / (part / group.copies + 1 - part)
        levels: dict[int, list[float]] = {}
        for one in group.each:
            if one.offset in ran and one.level >= 0:
                levels.setdefault(one.level, []).append(ran[one.offset][0])
            elif one.offset in ran:
                total += _add_rounds(levels, copies)
                levels = {}
        total += _add_rounds(levels, copies)
    return total


def _add_rounds(levels: Mapping[int, list[float]], copies: float) -> float:
    return sum(sum(requests) / min(len(requests) * copies, LOADS_AT_ONCE) for requests in levels.values())
