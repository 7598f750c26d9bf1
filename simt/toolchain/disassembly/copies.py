"""Tell how many copies of a loop's body nvcc makes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from simt.toolchain.disassembly.arithmetic import DIVIDES, find_function, is_known_call
from simt.toolchain.disassembly.decoding import ANY_ACCESS_PROBE
from simt.toolchain.disassembly.flow_graph import Loop
from simt.toolchain.disassembly.sums import NOTHING, Sum, add
from simt.toolchain.disassembly.values import Values, name_place, split_operands

# Copies that nvcc 13 makes of a loop's body, by the instructions that g++ makes of it: of small and of medium bodies
# where the step is constant and the length is not, and the most of one whose length is known. A step that is known at
# run time only, such as blockDim.x, keeps it from making any. (From the machine code of 17 loops for sm_90.)
_COPIES = ((40, 16.0), (160, 4.0))
_MOST_COPIES = 32.0
# Copies at most of a small body that is not simple: one that divides, calls more than an exponential, loads or calls
# under a condition, or takes an unsigned index. (From the machine code of 100 loops for sm_90.)
_OF_LESS_SIMPLE = 4.0
# Elements by which all accesses of a loop move on when its counter grows by one, x[i * 128] say, from which on the body
# is not simple either. (From the machine code of 40 loops for sm_90.)
_STRETCHED = 4
# What nvcc makes a branch of, to code for rare operands: loads after it do not begin before it. tanhf, logf and erff
# choose without a branch.
_BRANCHING = re.compile(r"^v?(?:div|sqrt)s[sd]$")
_BRANCHING_FUNCTIONS = ("trig", "pow", "sqrt")
_SIMPLE_FUNCTIONS = ("exp", "fma")
_NARROW = re.compile(r"%(?:e[a-ds][xip]|r\d+d)$")
_SIZED = re.compile(r"(?:read|write)(\d+)$")


def count_copies(values: Values, loop: Loop) -> float:
    """Return how many copies of the loop's body nvcc makes, if it knows by how much the loop gets on."""
    exits = [block for block in loop.blocks if values.graph.leaves(block, loop)]
    if len(exits) != 1 or any(other is not loop and other.header in loop.blocks for other in values.graph.all_loops):
        return 1.0
    inside = list_inside(values, loop)
    calls = [values.code[at].callee for at in inside if values.code[at].callee]
    if not all(is_known_call(callee) for callee in calls):
        return 1.0
    for value, bound in _find_conditions(values, exits[0]):
        moving = [unknown for unknown, _ in value[1] if values.varies(unknown, loop)]
        if len(moving) != 1 or not values.steps_by_constants(value, loop) or values.changes(bound, loop):
            continue
        step, start = loop.steps[moving[0]][0], loop.starts.get(moving[0])
        few = next((copies for most, copies in _COPIES if len(inside) <= most), 1.0)
        if not _is_simple(values, loop, inside) or (step and _is_stretched(values, loop, inside, step)):
            few = min(few, _OF_LESS_SIMPLE)
        way = add(bound, start, -1) if start is not None else bound
        if not step or start is None or way[1] or len(value[1]) > 1:
            return few
        turns = abs(way[0] / step)  # known
        return max(few, min(_MOST_COPIES, turns, _MOST_COPIES * _COPIES[0][0] / len(inside)))
    return 1.0


def list_inside(values: Values, loop: Loop) -> list[int]:
    """Return the instructions of a loop."""
    return [at for block in loop.blocks for at in range(values.graph.starts[block], values.graph.ends[block])]


def has_slow_path(values: Values, ats: Iterable[int]) -> bool:
    """Return whether nvcc makes a branch to code for rare operands of one of these instructions."""
    return any(
        _BRANCHING.match(values.code[at].name) or find_function(values.code[at].callee) in _BRANCHING_FUNCTIONS
        for at in ats
    )


def _is_simple(values: Values, loop: Loop, inside: list[int]) -> bool:
    """Return whether nvcc makes as many copies of a loop's body as its size allows."""
    graph, code = values.graph, values.code
    if has_slow_path(values, inside) or any(DIVIDES.match(code[at].name) for at in inside):
        return False
    always = graph.find_always(loop)
    for at in inside:
        callee = code[at].callee
        function = find_function(callee)
        if function and function not in _SIMPLE_FUNCTIONS:
            return False
        under_condition = graph.block_of[at] not in always
        if under_condition and (function or ANY_ACCESS_PROBE.match(callee)):
            return False
        if at in values.indices and values.changes(values.indices[at], loop) and _is_unsigned(values, at):
            return False
    return True


def _is_unsigned(values: Values, at: int) -> bool:
    """Return whether the index of a memory operand was widened from 32 bits without a sign."""
    found = re.search(r"\([^,]*,(%\w+)", values.code[at].operands)
    index = name_place(found[1]) if found else None
    for earlier in range(at - 1, values.graph.starts[values.graph.block_of[at]] - 1, -1):
        operands = split_operands(values.code[earlier].operands)
        if operands and name_place(operands[-1]) == index:
            return values.code[earlier].name == "mov" and all(_NARROW.match(operand) for operand in operands)
    return False


def _is_stretched(values: Values, loop: Loop, inside: list[int], step: int) -> bool:
    """Return whether each access of a loop moves on by a constant number of bytes, and by at least so many elements."""
    moved = []
    for at in inside:
        size = _SIZED.search(values.code[at].callee)
        if at not in values.accessed or not size:
            continue
        terms = [(unknown, times) for unknown, times in values.accessed[at][1] if values.varies(unknown, loop)]
        if not values.steps_by_constants((0, tuple(terms)), loop):
            return False
        bytes_ = abs(sum(times * loop.steps[unknown][0] for unknown, times in terms))
        moved.append(bytes_ >= _STRETCHED * int(size[1]) * abs(step))
    return bool(moved) and all(moved)


def _find_conditions(values: Values, block: int) -> list[tuple[Sum, Sum]]:
    """Return the two sums that the jump at the end of a block compares, in either order, if they are known."""
    for at in range(values.graph.ends[block] - 1, values.graph.starts[block] - 1, -1):
        if at in values.compared:
            left, right = values.compared[at]
            return [(left, right), (right, left)]
        if at in values.made and values.code[at].name.startswith(("add", "sub", "inc", "dec")):
            return [(values.made[at], NOTHING)]
    return []
