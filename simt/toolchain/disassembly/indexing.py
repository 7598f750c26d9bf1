"""Estimate the integer instructions and branches that nvcc generates for those of this machine's compiler.

A probe before each access keeps g++ from sharing work between accesses, and it does not unroll loops of unknown length.
nvcc computes a value once, moves out of a loop what does not change in it, puts constant offsets into loads and stores,
steps through an array by adding to a pointer, multiplies and adds in one instruction, and replaces short sides of
branches by predicates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from simt.toolchain.disassembly.arithmetic import ARGUMENT
from simt.toolchain.disassembly.copies import count_copies, has_slow_path, list_inside
from simt.toolchain.disassembly.decoding import Instruction, is_jump
from simt.toolchain.disassembly.flow_graph import Loop
from simt.toolchain.disassembly.sums import add
from simt.toolchain.disassembly.values import Values, split_operands

LONGEST = 100_000  # instructions of a function that is looked at
KNOWN_AGAIN = 0.5  # of a comparison whose result is in a predicate already: it is combined with another
PLAIN = 0.6  # of an integer instruction, where values are not followed
# Comparisons, choices, the greater and the smaller of two: instructions of their own on a GPU, unlike signs.
_FLOATING_TESTS = re.compile(r"^v?(u?comis[sd]|cmp\w*s[sd]|max[sp][sd]|min[sp][sd]|orp[sd]|blendv?p[sd])$")
_MULTIPLIES = ("imul", "shl", "sal")
_WIDENS = ("mov", "cltq", "cwtl")
_WIDE = re.compile(r"%r(?:[a-d]x|[sd]i|bp|\d+)")  # a register of 64 bits


def follow_values(code: list[Instruction]) -> Values | None:
    """Return the values of a function of x86, and the copies of its loops; None elsewhere."""
    if ARGUMENT != "%rdi" or not 0 < len(code) <= LONGEST:
        return None
    values = Values(code)
    for loop in values.graph.all_loops:
        loop.copies = count_copies(values, loop)
        loop.slow = has_slow_path(values, list_inside(values, loop))
    return values


@dataclass(frozen=True)
class Indexing:
    """What nvcc generates for an instruction each time: integer instructions and branches, and how many more because an
    integer has 64 bits. rolled: the first where a loop turns too few times for the copies that nvcc makes of its body.
    """

    issued: float = 0.0
    rolled: float = 0.0
    wide: float = 0.0


def count_indexing(values: Values | None, costs: list[dict[str, float]], predicated: set[int]) -> list[Indexing]:
    """Return what nvcc generates for each instruction. predicated: indices of the jumps that become predicates."""
    plain = [
        cost.get("integer", 0.0) - cost.get("divide32", 0.0) - cost.get("divide64", 0.0) + cost.get("branch", 0.0)
        for cost in costs
    ]
    if values is None:
        return [Indexing(PLAIN * amount, PLAIN * amount) for amount in plain]
    found = [Indexing()] * len(plain)
    seen: set[tuple] = set()
    graph = values.graph
    for block in graph.order:
        loop = graph.innermost[block]
        ends = loop is not None and graph.leaves(block, loop)
        for at in range(graph.starts[block], graph.ends[block]):
            if _FLOATING_TESTS.match(values.code[at].name):
                found[at] = Indexing(1.0, 1.0)
            elif plain[at] and is_jump(values.code[at].name):
                found[at] = Indexing() if at in predicated else _share(loop) if ends else Indexing(1.0, 1.0)
            elif plain[at] and at in values.compared:
                found[at] = _count_comparison(values, at, loop, ends, seen)
            elif plain[at]:
                found[at] = _count_value(values, at, loop, seen) if at in values.made else Indexing(1.0, 1.0)
    return found


def _share(loop: Loop | None) -> Indexing:
    """Return what is done once for all copies of a loop's body."""
    return Indexing(1 / loop.copies if loop else 1.0, 1.0)


def _count_comparison(values: Values, at: int, loop: Loop | None, ends: bool, seen: set) -> Indexing:
    both = values.compared[at]
    again = ("compared", *both) in seen
    seen.add(("compared", *both))
    if ends:
        return _share(loop)
    if loop and not any(values.changes(value, loop) for value in both):
        return Indexing()
    wide = any(_WIDE.fullmatch(operand) for operand in split_operands(values.code[at].operands))
    known = all(value in values.narrow or not value[1] for value in both)
    return Indexing(KNOWN_AGAIN, KNOWN_AGAIN) if again else Indexing(1.0, 1.0, float(wide and not known))


def _count_value(values: Values, at: int, loop: Loop | None, seen: set) -> Indexing:
    value, name = values.made[at], values.code[at].name
    operands = split_operands(values.code[at].operands) or [""]
    if not value[1] or name.startswith(_WIDENS) or (loop and not values.changes(value, loop)):
        return Indexing()
    again = value[1] in seen  # the same but for a constant
    seen.add(value[1])
    if loop and any(value == add((0, ((phi, 1),)), step) for phi, step in loop.steps.items()):
        return _share(loop)
    if again or operands[0].endswith("(%rip)"):  # of a variable: a constant
        return Indexing()
    if loop and values.steps_by_constants(value, loop):
        return _share(loop)
    wide = _WIDE.fullmatch(operands[-1]) is not None
    if name.startswith("lea"):
        return Indexing(1.0, 1.0, wide and at in values.indices and values.indices[at] not in values.narrow)
    if name.startswith(_MULTIPLIES):  # an addition follows, and both are one instruction
        return Indexing(wide=float(wide and name == "imul"))
    return Indexing(1.0, 1.0, float(wide and not name.startswith("add")))
