"""Decode the output of objdump: functions, their instructions, and the successors of each instruction."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

PROBE = re.compile(
    r"__tsan_|__sanitizer_cov|simt_probe_|__tls_get_addr|mark_local"
)  # and calls that a GPU does not need
BLOCK_PROBE = "__sanitizer_cov_trace_pc"
ACCESS_PROBE = re.compile(r"__tsan_(?:volatile_)?(?:read|write)\d+\b")
ANY_ACCESS_PROBE = re.compile(r"__tsan_(?:volatile_|unaligned_)?(?:read|write)(?:\d+|_range)\b")
_NEVER_RETURNS = re.compile(
    r"device_assert|simt::trap|4simt4trap|misused|__cxa_throw|__cxa_rethrow|__cxa_bad|terminate|_Unwind_Resume|abort|__throw_|__assert_fail|"
    r"CheckFail|__stack_chk_fail"
)


@dataclass
class Instruction:
    address: int
    name: str
    operands: str
    next: int = -1  # index of the next instruction in the same function; -1: none
    target: int = -1  # index of the instruction to which it may jump; -1: none
    callee: str = ""  # the function that it calls
    open: bool = False  # whether it jumps to a place that is only known at run time
    symbol: str = ""  # the variable whose address it names, relative to the instruction's own


@dataclass
class Function:
    name: str
    ranges: list[tuple[int, int]] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)


def read_functions(extension: Path) -> list[Function]:
    """Return the functions in the extension's code, or none if objdump is missing or fails."""
    command = ["objdump", "-d", "-w", "--no-show-raw-insn", "-j", ".text", str(extension)]
    try:
        return _parse_functions(
            subprocess.run(
                command, capture_output=True, text=True, encoding="utf-8", errors="replace", check=True, timeout=120
            ).stdout
        )
    except (OSError, subprocess.SubprocessError):
        return []


_HEAD = re.compile(r"^([0-9a-f]+) <(.+)>:$")
_LINE = re.compile(r"^ *([0-9a-f]+):\t(\S+) *(.*)$")
_SYMBOL = re.compile(r"# [0-9a-f]+ <([^>]*)>")
_PLACE = re.compile(r"^([0-9a-f]+) <([^>]*)>$")
_COLD = re.compile(r"\.cold(\.\d+)?$")
_PREFIX = ("lock", "rep", "repz", "repnz", "bnd", "notrack", "data16")


def _parse_functions(text: str) -> list[Function]:
    """Return the functions in objdump's text. A cold part that the compiler moved away belongs to its function."""
    parts: list[Function] = []
    for line in text.splitlines():
        if head := _HEAD.match(line):
            current = Function(head[2], [(int(head[1], 16), int(head[1], 16))])
            parts.append(current)
        elif parts and (match := _LINE.match(line)):
            name, operands = match[2], match[3].split("#")[0].split("//")[0].strip()
            symbol = _SYMBOL.search(match[3])
            while name in _PREFIX and operands:
                name, _, operands = operands.partition(" ")
                operands = operands.strip()
            address = int(match[1], 16)
            current.instructions.append(Instruction(address, name, operands, symbol=symbol[1] if symbol else ""))
            current.ranges[-1] = (current.ranges[-1][0], address + 1)
    functions = [part for part in parts if not _COLD.search(part.name)]
    of_name = {function.name: function for function in functions}
    for cold in parts:
        if whole := of_name.get(_COLD.sub("", cold.name)) if _COLD.search(cold.name) else None:
            whole.ranges += cold.ranges
            whole.instructions += cold.instructions
    for function in functions:
        _connect(function)
    return functions


_CALLS = {"call", "callq", "bl", "blr"}
_ENDS = {"ret", "retq", "ud2", "hlt", "udf", "brk"}


def _connect(function: Function) -> None:
    """Set the successors of each instruction."""
    of_address = {instruction.address: i for i, instruction in enumerate(function.instructions)}
    starts = {low for low, _ in function.ranges}
    for i, instruction in enumerate(function.instructions):
        name, last = instruction.name, instruction.operands.split(",")[-1].strip()
        place = _PLACE.match(last)
        falls = name not in _ENDS
        if name in _CALLS:
            instruction.callee = place[2] if place else "*"
            falls = not _NEVER_RETURNS.search(instruction.callee)
        elif is_jump(name):
            falls = _is_conditional(name)
            if place and int(place[1], 16) in of_address:
                instruction.target = of_address[int(place[1], 16)]
            elif not place:
                instruction.open = True  # through a table, or to another function
        if falls and i + 1 < len(function.instructions) and function.instructions[i + 1].address not in starts:
            instruction.next = i + 1


def is_jump(name: str) -> bool:
    """Return whether the instruction of this name is a jump or branch."""
    return name[0] == "j" or name in ("b", "br", "cbz", "cbnz", "tbz", "tbnz") or name.startswith("b.")


def _is_conditional(name: str) -> bool:
    return name not in ("jmp", "jmpq", "b", "br")


def strip_callee(callee: str) -> str:
    """Return the function's name without the suffix of its entry in the linkage table."""
    return re.sub(r"@plt.*|\+0x.*", "", callee)


def find_return_address(code: list[Instruction], call: int) -> int:
    """Return the return address of the call at an index."""
    return code[call + 1].address if call + 1 < len(code) else code[call].address + 5
