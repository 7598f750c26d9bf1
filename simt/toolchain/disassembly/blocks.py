"""Write and read the list of a counted extension's basic blocks, with the successors and the arithmetic of each.

The runtime reads the list too (simt/src/count/flow.cpp). A block whose next probe is that of an access needs no probe
of its own: that call is removed from the code.
"""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from simt.toolchain.disassembly.accesses import format_accesses
from simt.toolchain.disassembly.addresses import fold_addresses, fold_operands
from simt.toolchain.disassembly.arithmetic import COLUMNS, count_instruction, count_issued, find_fused
from simt.toolchain.disassembly.control_flow import find_predicated, find_reached
from simt.toolchain.disassembly.decoding import (
    ACCESS_PROBE,
    BLOCK_PROBE,
    Function,
    Instruction,
    find_return_address,
    is_jump,
    read_functions,
)
from simt.toolchain.disassembly.indexing import count_indexing, follow_values
from simt.toolchain.disassembly.values import Values


@dataclass
class Block:
    """The work of a basic block.

    columns: the counts of COLUMNS. instructions: of each instruction the address, the instructions that nvcc would
    generate for it each time the block runs, and its floating-point operations. under: the offset of the block whose
    lanes all run through this block on a GPU, some of them predicated off; None if a GPU branches around this block.
    """

    columns: dict[str, float]
    under: int | None
    instructions: list[tuple[int, float, float]] = field(default_factory=list)


def read_blocks(extension: str) -> dict[int, Block]:
    """Return the extension's blocks, by the offset of the return address of each block's probe."""
    try:
        lines = Path(extension + ".blocks").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    blocks: dict[int, Block] = {}
    for words in (line.split() for line in lines):
        if words[0] == "block":
            under = None if words[6] == "-" else int(words[6], 16)
            current = blocks[int(words[1], 16)] = Block(dict(zip(COLUMNS, map(float, words[7:]))), under)
        elif words[0] == "at":
            current.instructions += [(int(a, 16), float(b), float(c)) for a, b, c in (w.split(":") for w in words[1:])]
    return blocks


def write_blocks(extension: Path) -> None:
    """Remove needless probes from the extension and write the list of its basic blocks to extension.so.blocks. Without
    objdump the list is empty.
    """
    functions = [f for f in read_functions(extension) if any(i.callee.startswith(BLOCK_PROBE) for i in f.instructions)]
    lines, needless = [], []
    for number, function in enumerate(functions):
        lines += [f"function {low:x} {high:x} {number}" for low, high in function.ranges]
        stand_ins = _find_stand_ins(function)
        needless += [function.instructions[i].address for i in stand_ins]
        lines += _format_blocks(function, number, stand_ins)
        lines += [
            f"increment {find_return_address(function.instructions, i):x}"
            for i in _find_increments(function.instructions)
        ]
    _take_out(extension, needless)
    extension.with_name(extension.name + ".blocks").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _format_blocks(function: Function, number: int, stand_ins: dict[int, int]) -> Iterable[str]:
    """Return two lines for each block: the probes that follow its own, and its instructions."""
    code = function.instructions
    probes = [i for i, instruction in enumerate(code) if instruction.callee.startswith(BLOCK_PROBE)]
    first = find_reached(code, 0, set(probes), include_start=True)[1]
    costs = [count_instruction(function, i) for i in range(len(code))]
    fold_addresses(code, costs)
    fold_operands(code, costs)
    reached = {i: find_reached(code, i, set(probes)) for i in probes}
    offsets = {i: f"{find_return_address(code, stand_ins.get(i, i)):x}" for i in probes}
    under = find_predicated(code, reached, costs)
    values = follow_values(code)
    jumps = _find_predicated_jumps(code, reached, under)
    for at, made in enumerate(count_indexing(values, costs, jumps)):
        costs[at] = costs[at] | {
            "indexing": made.issued,
            "indexing_rolled": made.rolled,
            "indexing64": made.wide,
        }
    if values:
        yield from format_accesses(values, reached, under)
        yield from _format_loops(values, reached, offsets)
    for i, (share, following, ends, is_open) in reached.items():
        total = dict.fromkeys(COLUMNS, 0.0)
        for at, part in share.items():
            for name in COLUMNS:
                total[name] += part * costs[at].get(name, 0.0)
        after = ",".join([*(offsets[n] for n in sorted(following)), *["end"] * ends]) or "-"
        yield (
            f"block {offsets[i]} {number} {'entry' if i in first else '-'} {'open' if is_open else 'closed'} "
            f"{after} {offsets[under[i]] if i in under else '-'} " + " ".join(f"{total[name]:.6g}" for name in COLUMNS)
        )
        fused = find_fused(share, costs)
        ran = [
            (at, part * count_issued(costs[at], fused), part * costs[at].get("flops", 0.0))
            for at, part in sorted(share.items())
        ]
        yield "at " + " ".join(f"{code[at].address:x}:{issued:.4g}:{flops:.4g}" for at, issued, flops in ran if issued)


def _format_loops(values: Values, reached: dict, offsets: dict[int, str]) -> Iterable[str]:
    """Return a line for each loop: its number, the probe that each turn calls first, those that are called before it,
    and then those of the blocks of which it is the innermost loop.
    """
    graph = values.graph
    for loop in graph.all_loops:
        inside = [i for i in reached if graph.block_of[i] in loop.blocks]
        if not inside:
            continue
        first = min(inside, key=lambda i: (graph.position.get(graph.block_of[i], 0), i))
        before = ",".join(offsets[i] for i in reached if i not in inside and first in reached[i][1]) or "-"
        own = [offsets[i] for i in inside if graph.innermost[graph.block_of[i]] is loop]
        yield f"loop {graph.number(loop)} {offsets[first]} {before} " + " ".join(own)


def _find_predicated_jumps(code: list[Instruction], reached: dict, under: dict[int, int]) -> set[int]:
    """Return the indices of the jumps around blocks that a GPU predicates."""
    parents = set(under.values())
    return {at for i in parents for at in reached[i][0] if is_jump(code[at].name)}


# ---- probes that another probe replaces ----


def _find_stand_ins(function: Function) -> dict[int, int]:
    """Return the index of each block probe that is always and alone followed by an access probe -> its index."""
    code, found = function.instructions, {}
    targets = {i.target for i in code}
    for start, instruction in enumerate(code):
        if not instruction.callee.startswith(BLOCK_PROBE):
            continue
        at = instruction.next
        while at >= 0 and at not in targets and not code[at].callee and not is_jump(code[at].name):
            at = code[at].next
        if at >= 0 and at not in targets and ACCESS_PROBE.match(code[at].callee) and code[at].next >= 0:
            found[start] = at
    return found


_NOP = bytes.fromhex("0f1f440000" if platform.machine() in ("x86_64", "AMD64") else "1f2003d5")


def _take_out(extension: Path, calls: list[int]) -> None:
    """Overwrite the calls at these addresses with an instruction that does nothing."""
    if not calls:
        return
    shown = subprocess.run(
        ["objdump", "-h", "-w", "-j", ".text", str(extension)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=True,
    ).stdout
    words = next(line.split() for line in shown.splitlines() if " .text " in line)
    shift = int(words[5], 16) - int(words[3], 16)  # offset of the section in the file minus its address
    data = bytearray(extension.read_bytes())
    for address in calls:
        data[address + shift : address + shift + len(_NOP)] = _NOP
    extension.write_bytes(data)


# ---- atomic increments ----

_ADDS = re.compile(r"^_Z\d+atomicAdd(?:_block|_system)?P(?:ii|jj|yy)")
_ONE = re.compile(r"^(?:\$0x1,%[er]si|w1, #0x1|x1, #0x1)$")


def _find_increments(code: list[Instruction]) -> Iterable[int]:
    """Return the calls of atomicAdd that add 1. In shared memory a GPU adds all lanes of a warp at a word at once."""
    for i, instruction in enumerate(code):
        if _ADDS.match(instruction.callee):
            before = next(
                (
                    e
                    for e in reversed(code[max(0, i - 6) : i])
                    if e.callee or re.search(r",%[er]si$|^[wx]1,", e.operands)
                ),
                None,
            )
            if before and before.name.startswith("mov") and _ONE.match(before.operands):
                yield i
