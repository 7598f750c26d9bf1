"""Find the instructions that compute addresses and operands, most of which a GPU does not need."""

from __future__ import annotations

import re

from simt.toolchain.disassembly.arithmetic import ARGUMENT, DIVIDES, count_own_function, writes_argument
from simt.toolchain.disassembly.decoding import ACCESS_PROBE, PROBE, Instruction, is_jump

_FAMILIES = {
    name: f"r{n}"
    for n, names in enumerate(("ax", "bx", "cx", "dx", "si", "di", "bp"))
    for name in (f"r{names}", f"e{names}")
}
_TO_ARGUMENT = re.compile(r"^%(r\w+),%rdi$")
_DISPLACED = re.compile(r"^-?0x[0-9a-f]+\(%\w+\),%\w+$")
_INDEXED = re.compile(r"^(?:-?0x[0-9a-f]+)?\(%\w+,(%\w+),[48]\)$")
_OF_SHARED = re.compile(r"^0x[0-9a-f]+\(%rax\),%r")
_MAX_CHAIN = 8


def _name_register(operand: str) -> str:
    """Return one name for all parts of a register, such as %rbx and %ebx."""
    name = operand.strip().lstrip("%")
    return _FAMILIES.get(name, name.removesuffix("d") if re.fullmatch(r"r\d+d?", name) else name)


def fold_addresses(code: list[Instruction], costs: list[dict[str, float]]) -> None:
    """Remove the cost of address computations that a GPU does not need.

    A chain of instructions computes the address of an access, which is the probe's argument. A GPU needs one
    instruction for index and base, and none for a constant offset, which is part of the load or store.
    """
    if ARGUMENT != "%rdi":
        return
    for i, instruction in enumerate(code):
        if (
            i
            and "__tls_get_addr" in code[i - 1].callee
            and instruction.name == "lea"
            and _OF_SHARED.match(instruction.operands)
        ):
            # the address of a variable in shared memory is a constant on a GPU
            costs[i] = costs[i] | {"instructions": 0.0, "issued": 0.0}
        if not ACCESS_PROBE.match(instruction.callee):
            continue
        copy = next((j for j in range(i - 1, max(-1, i - 6), -1) if code[j].callee or writes_argument(code[j])), -1)
        if copy < 0 or not (found := _TO_ARGUMENT.match(code[copy].operands)) or code[copy].name != "mov":
            continue
        chain, displaced = _find_chain(code, copy, _name_register(found[1]))
        ends_as = costs[chain[0]].get("issued", 1.0) if chain else 0.0
        for j in chain:
            costs[j] = costs[j] | {"instructions": 0.0, "issued": 0.0}
        if chain and not displaced:
            costs[chain[0]] |= {"instructions": 1.0, "issued": ends_as}


_OPERAND = re.compile(r"^(\$\S+|\S+\(%rip\)),%(r[ds]i|e[ds]i|[er][dc]x|r[89]d?)$|^[wx][0-7], #")


def fold_operands(code: list[Instruction], costs: list[dict[str, float]]) -> None:
    """Remove the cost of constants that are arguments of a function that is one instruction on a GPU."""
    for i, instruction in enumerate(code):
        if not instruction.callee or PROBE.search(instruction.callee) or count_own_function(instruction.callee) is None:
            continue
        for j in range(i - 1, max(-1, i - 12), -1):
            if code[j].callee or is_jump(code[j].name):
                break
            if _OPERAND.match(code[j].operands) and code[j].name.startswith(("mov", "lea", "adr")):
                costs[j] = costs[j] | {"instructions": 0.0, "issued": 0.0}


def _find_chain(code: list[Instruction], copy: int, register: str) -> tuple[list[int], bool]:
    """Return the instructions before `copy` that compute the register's value, the last one first, and whether they
    begin with a constant added to another register.
    """
    chain: list[int] = []
    for j in range(copy - 1, max(-1, copy - 24), -1):
        instruction = code[j]
        if (
            is_jump(instruction.name)
            or (instruction.callee and "__tls_get_addr" not in instruction.callee)
            or len(chain) == _MAX_CHAIN
        ):
            break
        source, _, target = instruction.operands.rpartition(",")
        if (
            instruction.callee
            or _name_register(target) != register
            or not target.startswith("%")
            or instruction.name.startswith(("cmp", "test"))
        ):
            continue
        if not instruction.name.startswith(("movs", "movz", "lea", "add", "sub", "shl", "sal")) or DIVIDES.match(
            instruction.name
        ):
            break
        if instruction.name.startswith("lea") and "(" in source:
            index = _INDEXED.match(source)
            return [*chain, j, *(_find_sum_before(code, j, _name_register(index[1])) if index else [])], bool(
                _DISPLACED.match(instruction.operands)
            )
        chain.append(j)
        if instruction.name.startswith("mov") and _name_register(source) != register:
            break
    return chain, False


def _find_sum_before(code: list[Instruction], lea: int, register: str) -> list[int]:
    """Return, for an address base + 4 * index, the instructions that compute the index as a sum with a widened integer.

    A GPU widens the 32-bit integer when it adds it to a pointer, and the pointer already contains the rest of the sum.
    """
    found: list[int] = []
    for j in range(lea - 1, max(-1, lea - 8), -1):
        instruction = code[j]
        source, _, target = instruction.operands.rpartition(",")
        if instruction.callee or is_jump(instruction.name):
            break
        if (
            not target.startswith("%")
            or _name_register(target) != register
            or instruction.name.startswith(("cmp", "test"))
        ):
            continue
        if instruction.name.startswith("movsl"):
            return [*found, j]
        if instruction.name != "add" or not source.startswith("%") or found:
            break
        found, register = [j], _name_register(source)
    return []
