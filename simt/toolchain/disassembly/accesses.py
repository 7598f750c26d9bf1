"""Write and read, beside a counted extension's basic blocks, what nvcc makes of their accesses.

Loads that do not wait for each other are under way together, loads of neighbouring words of shared memory become one,
and so do additions of a warp to one integer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from simt.toolchain.disassembly.copies import has_slow_path
from simt.toolchain.disassembly.decoding import ANY_ACCESS_PROBE, Instruction, find_return_address
from simt.toolchain.disassembly.flow_graph import Loop
from simt.toolchain.disassembly.values import Values

WORD = 4  # bytes
_FLOATS = re.compile(r"^_Z\d+atomicAdd(?:_block|_system)?P[fd]")
_FLOAT_COMPARE = re.compile(r"^v?u?comis[sd]$")
_INTEGERS = re.compile(r"^_Z\d+atomic(?:Add|Sub)(?:_block|_system)?P[ijy]")


@dataclass(frozen=True)
class Access:
    """offset: of the return address of its probe. level: 0 for a load that does not depend on another load here, 1 for
    one whose address or condition depends on such a load, and so on; -1 for a store. words: that nvcc would load at
    once, if they lie in shared memory.
    """

    offset: int
    level: int
    words: int


@dataclass(frozen=True)
class Group:
    """The accesses of a basic block and of the blocks that a GPU predicates with it, in order.

    copies: of its body that nvcc makes, if it belongs to a loop. loop: a number, or -1. chased: whether the loop's next
    turn needs what this one loads.
    """

    copies: float
    loop: int
    chased: bool
    each: tuple[Access, ...]


@dataclass(frozen=True)
class Turns:
    """The probes that tell how often a loop turns: the one that each turn calls first, and those called before it."""

    first: int
    before: tuple[int, ...]


@dataclass
class Accesses:
    """groups: see there. loops: by number. loop_of: of blocks, by the offset of their probe. floats: offsets of atomic
    additions of floats. uniform: of those of integers where nvcc knows that all lanes of a warp use one address.
    """

    groups: list[Group] = field(default_factory=list)
    loops: dict[int, Turns] = field(default_factory=dict)
    loop_of: dict[int, int] = field(default_factory=dict)
    floats: set[int] = field(default_factory=set)
    uniform: set[int] = field(default_factory=set)


def read_accesses(extension: str) -> Accesses:
    """Return what is known of the extension's accesses."""
    found = Accesses()
    try:
        lines = Path(extension + ".blocks").read_text(encoding="utf-8").splitlines()
    except OSError:
        return found
    for words in (line.split() for line in lines):
        if words[0] == "accesses":
            each = tuple(Access(int(a, 16), int(b), int(c)) for a, b, c in (w.split(":") for w in words[4:]))
            found.groups.append(Group(float(words[1]), int(words[2]), words[3] == "chased", each))
        elif words[0] == "loop":
            before = () if words[3] == "-" else tuple(int(word, 16) for word in words[3].split(","))
            found.loops[int(words[1])] = Turns(int(words[2], 16), before)
            found.loop_of |= {int(word, 16): int(words[1]) for word in words[4:]}
        elif words[0] == "atomic":
            (found.floats if words[2] == "floats" else found.uniform).add(int(words[1], 16))
    return found


def format_accesses(values: Values, reached: dict, under: dict[int, int]) -> Iterable[str]:
    """Return the lines of a function: reached, under: its blocks, and which of them are predicated."""
    code = values.code
    together: dict[int, set[int]] = {}
    guards: dict[int, set[int]] = {}
    for i, (share, _, _, _) in reached.items():
        top, awaited = i, set()
        while top in under:
            awaited |= _list_awaited(values, values.graph.block_of[top])
            top = under[top]
        ats = {at for at in share if ANY_ACCESS_PROBE.match(code[at].callee)}
        # a choice between two values without a jump ends a block of the source, but none of the machine code
        together.setdefault(values.graph.block_of[top], set()).update(ats)
        guards |= dict.fromkeys(ats, awaited)
    graph = values.graph
    for ats in together.values():
        if ats:  # as they run: a block may lie before the one that jumps to it
            in_order = sorted(ats, key=lambda at: (graph.position.get(graph.block_of[at], 0), at))
            yield _format_group(values, in_order, guards)
    for at, instruction in enumerate(code):
        offset = f"{find_return_address(code, at):x}" if "atomic" in instruction.callee else ""
        if offset and _FLOATS.match(instruction.callee):
            yield f"atomic {offset} floats"
        elif (
            offset
            and _INTEGERS.match(instruction.callee)
            and values.is_uniform(values.accessed.get(at, (0, ((0, 1),))))
        ):
            yield f"atomic {offset} uniform"


def _list_awaited(values: Values, block: int) -> set[int]:
    """Return the loads on which it depends whether a basic block is run."""
    found: set[int] = set()
    for before in values.graph.before.get(block, ()):
        if len(values.graph.following[before]) < 2:
            continue
        start, end = values.graph.starts[before], values.graph.ends[before]
        for at in range(end - 1, start - 1, -1):
            if at in values.compared:
                found.update(load for side in values.compared[at] for load in values.list_loaded(side))
                break
            if _FLOAT_COMPARE.match(values.code[at].name):  # floats are not followed: it compares what was just loaded
                found.update(n + 1 for n in range(start, at) if _is_load(values.code[n]))
                break
    return found


def _format_group(values: Values, ats: Sequence[int], guards: Mapping[int, set[int]]) -> str:
    code = values.code
    loop = values.graph.innermost.get(values.graph.block_of[ats[0]])
    levels: dict[int, int] = {}
    chased = False
    apart = 0  # the level of what is loaded after a branch to a slow path
    for before, at in zip([ats[0], *ats], ats):
        same_block = values.graph.block_of[before] == values.graph.block_of[at]
        if same_block and has_slow_path(values, range(before, at)):
            apart = 1 + max(levels.values())
        levels[at] = -1
        if not _is_load(code[at]):
            continue
        address = values.accessed.get(at, (0, ()))
        awaited = guards[at].union(values.list_loaded(address))
        probes = [max((n for n in ats if n < load), default=-1) for load in awaited]  # the load's probe
        levels[at] = max(apart, 1 + max((levels[n] for n in probes if n in levels), default=-1))
        chased |= loop is not None and values.is_chased(address, loop)
    words = _find_words(values, ats)
    number = values.graph.number(loop) if loop else -1
    copies = loop.copies if loop and not loop.slow else 1.0
    each = " ".join(f"{find_return_address(code, at):x}:{levels[at]}:{words.get(at, 1)}" for at in ats)
    return f"accesses {copies:.4g} {number} {'chased' if chased else '-'} {each}"


def _is_load(instruction: Instruction) -> bool:
    return "read" in instruction.callee


def _find_words(values: Values, ats: Sequence[int]) -> dict[int, int]:
    """Return, for loads of a word that nvcc joins with loads of its neighbours, how many words it loads at once.

    It must know that the first lies at a multiple of 8 or 16 bytes from the array, whose start it may align.
    """
    found: dict[int, int] = {}
    run: dict[tuple, dict[int, int]] = {}
    for at in [*ats, -1]:
        if at >= 0 and values.code[at].callee.endswith("read4") and at in values.accessed:
            constant, terms = values.accessed[at]
            run.setdefault(terms, {}).setdefault(constant, at)
        elif at < 0 or not _is_load(values.code[at]):
            for terms, places in run.items():
                found |= _join_words(values, terms, places)
            run = {}
    return found


def _join_words(values: Values, terms: tuple, places: dict[int, int]) -> dict[int, int]:
    """Return what belongs together among loads whose addresses differ by constants (places: constant -> load)."""
    found: dict[int, int] = {}
    loop = values.graph.innermost.get(values.graph.block_of[next(iter(places.values()))])
    steps = [(unknown, times) for unknown, times in terms if loop and unknown in loop.steps]
    known = [term for term in terms if term not in steps]
    for words in (4, 2):
        size = words * WORD
        # one of the unknowns is the array itself, whose factor is 1
        if not any(times == 1 for _, times in known) or sum(times % size != 0 for _, times in known) > 1:
            continue
        for constant, at in places.items():
            whole = [places.get(constant - constant % size + WORD * n) for n in range(words)]
            if at not in found and None not in whole and not any(times % size for _, times in steps):
                found.update((one, words) for one in whole if one is not None)
        if loop and len(steps) == len(places) == 1 and _are_turns_joined(loop, *steps[0], words):
            found.setdefault(*places.values(), words)  # type: ignore[misc]
    return found


def _are_turns_joined(loop: Loop, unknown: int, times: int, words: int) -> bool:
    """Return whether nvcc loads at once what so many turns of a loop load, one word after the other."""
    step, start, size = loop.steps[unknown], loop.starts.get(unknown), words * WORD
    if start is None or start[0] * times % size or loop.copies < words:
        return False
    in_words = times in (1, 2, 4) and step == (WORD // times, ())
    return in_words and sum(factor * times % size != 0 for _, factor in start[1]) <= 1  # the array itself
