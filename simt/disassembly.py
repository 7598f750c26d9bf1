"""Reads a counted extension's machine code: which basic block may follow which, and what arithmetic each one does.

The list that it writes beside the extension is read by the runtime (src/count_flow.cpp) and by simt/count.py. A block in
which the next probe after its own is an access needs no probe of its own: that call is taken out of the code.
"""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

# What is counted of a block's instructions, in the order of the list. calls: of functions that are neither the language's
# nor arithmetic. The library's functions are kept apart because a GPU makes different instructions of each; and of the
# integer ones those of 64 bits and those that divide, because a GPU needs several instructions for them.
COLUMNS = (
    "instructions", "flops", "fp32_add", "fp32_mul", "fp32_fma", "fp32_div", "fp32_sqrt", "fp32_exp", "fp32_log", "fp32_trig", "fp32_tanh",
    "fp32_pow", "fp32_fast", "fp32_other", "fp64_add", "fp64_mul", "fp64_fma", "fp64_div", "fp64_sqrt", "fp64_other", "convert", "integer",
    "branch", "calls", "integer64", "divide32", "divide64", "fp32_special",
)  # fmt: skip

# Floating-point operations that an H200 executes for one (nvcc 13, -O3, by ncu: benchmarks/micro/special.cu, division.cu):
# those of its arithmetic units, without the special-function unit's. Others are taken to be alike.
FLOPS = {
    "add": 1, "mul": 1, "fma": 2, "div": 10, "sqrt": 6, "exp": 10, "log": 24, "trig": 18, "tanh": 13, "pow": 40, "fast": 1, "other": 10,
}  # fmt: skip

# What nvcc makes of one operation: instructions, and how many of them the special-function unit takes. From ncu's counts of
# benchmarks/micro/special.cu and division.cu (nvcc 13, sm_90), whose loops hold nothing else.
EXPANSION: dict[str, tuple[float, float]] = {
    "fp32_div": (10, 1), "fp32_sqrt": (10, 1), "fp32_exp": (8.5, 1), "fp32_log": (26, 0), "fp32_trig": (25, 0.5), "fp32_tanh": (16, 2),
    "fp32_pow": (60, 2), "fp32_fast": (3, 1), "fp32_other": (20, 1), "fp64_div": (25, 1), "fp64_sqrt": (25, 1), "fp64_other": (60, 1),
    "divide32": (25, 3), "divide64": (32, 3), "convert": (1, 1),
    "fp32_special": (1, 1),
}  # fmt: skip
INTEGER64 = 2.0  # instructions of an integer operation of 64 bits: registers have 32 (one widens a number, or adds a distance to an address)

_PROBE = re.compile(r"__tsan_|__sanitizer_cov|simt_probe_|__tls_get_addr|mark_local")  # and what a GPU has no need of
_BLOCK = "__sanitizer_cov_trace_pc"
_NEVER_RETURNS = re.compile(
    r"device_assert|simt::trap|4simt4trap|misused|__cxa_throw|__cxa_rethrow|__cxa_bad|terminate|_Unwind_Resume|abort|__throw_|__assert_fail|"
    r"CheckFail|__stack_chk_fail"
)
_LIBRARY = {
    **dict.fromkeys("exp exp2 exp10 expm1".split(), "exp"),
    **dict.fromkeys("log log2 log10 log1p".split(), "log"),
    **dict.fromkeys("sin cos tan sincos".split(), "trig"),
    **dict.fromkeys("tanh".split(), "tanh"),
    **dict.fromkeys("pow".split(), "pow"),
    **dict.fromkeys("asin acos atan atan2 sinh cosh asinh acosh atanh cbrt rcbrt erf erfc erfinv tgamma lgamma hypot fmod remainder".split(), "other"),
    "fma": "fma",
    "sqrt": "sqrt",
}

# Functions of simt's headers that a GPU has as one instruction or two: what they count as.
_OWN = (
    (re.compile(r"^(_Z\d+)?__(expf|exp10f|logf|log2f|log10f|sinf|cosf|tanf|tanhf|powf|fdividef)|^rsqrtf$"), {"instructions": 2.0, "fp32_fast": 1.0}),
    (re.compile(r"^_ZN4simt3ptx\d+(\w+_approx_ftz|tanh_approx)E"), {"instructions": 1.0, "fp32_special": 1.0}),
    (re.compile(r"^_ZN4simt3ptx\d+\w+_approxE"), {"instructions": 2.0, "fp32_fast": 1.0}),
    (re.compile(r"^_ZN4simt3ptx\d+(lop3I|min_nan|max_nan)|^_ZN4simt1[34]shared_(number|pointer)"), {"instructions": 1.0, "integer": 1.0}),
    (re.compile(r"^_ZN4simt3ptx\d+(add|sub)_f32_ftzE"), {"instructions": 1.0, "fp32_add": 1.0, "flops": 1.0}),
    (re.compile(r"^_ZN4simt3ptx\d+mul_f32_ftzE"), {"instructions": 1.0, "fp32_mul": 1.0, "flops": 1.0}),
    (re.compile(r"^_ZN4simt3ptx\d+fma_f32_ftzE"), {"instructions": 1.0, "fp32_fma": 1.0, "flops": 2.0}),
    (re.compile(r"^_ZN4simt\d+(half_to_float|float_to_half|float_to_bfloat16|narrowed|odd_sum)|^_ZN6nvcuda4wmma\d+__float_to_tf32|^_ZN4simt3ptx\d+cvt_"), {"instructions": 1.0, "convert": 1.0}),
    (re.compile(r"^_Z\d+__(reduce|match)|^_ZN4simt(8shuffled|6voters|8matching)"), {"instructions": 1.0}),
    (re.compile(r"^simt_barrier|^_ZN4simt(12barrier_vote|8exchange|11active_mask|12grid_barrier)|^_Z\d+(atomic|__threadfence)"), {"instructions": 1.0}),
)


@dataclass
class Instruction:
    address: int
    name: str
    operands: str
    next: int = -1  # index of the one after it in the same function; -1: none
    target: int = -1  # index of the one that it may jump to
    callee: str = ""  # of a call
    open: bool = False  # jumps to where the code doesn't say


@dataclass
class Function:
    name: str
    ranges: list[tuple[int, int]] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)


def write_blocks(extension: Path) -> None:
    """Takes needless probes out of the extension and writes the list of its basic blocks beside it, as
    extension.so.blocks; an empty one without objdump."""
    functions = [f for f in _read(extension) if any(i.callee.startswith(_BLOCK) for i in f.instructions)]
    lines, needless = [], []
    for number, function in enumerate(functions):
        lines += [f"function {low:x} {high:x} {number}" for low, high in function.ranges]
        stand_ins = _stand_ins(function)
        needless += [function.instructions[i].address for i in stand_ins]
        lines += _blocks(function, number, stand_ins)
        lines += [f"increment {_returns_to(function.instructions, i):x}" for i in _increments(function.instructions)]
    _take_out(extension, needless)
    extension.with_name(extension.name + ".blocks").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@dataclass
class Block:
    """What a basic block does: COLUMNS, and of each of its instructions the address, how many nvcc would make of it each time
    the block runs, and how many floating-point operations it is. under: the block, by its offset, whose lanes all run through this
    one on a GPU, some of them predicated off; None where there is a branch around it."""

    columns: dict[str, float]
    under: int | None
    instructions: list[tuple[int, float, float]] = field(default_factory=list)


def read_blocks(extension: str) -> dict[int, Block]:
    """The list beside an extension: offset of the return address of the block's probe -> Block."""
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


def _read(extension: Path) -> list[Function]:
    command = ["objdump", "-d", "-w", "--no-show-raw-insn", "-j", ".text", str(extension)]
    try:
        return _functions(subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace", check=True, timeout=120).stdout)
    except (OSError, subprocess.SubprocessError):
        return []


# ---- probes that another one stands for ----

_ACCESS = re.compile(r"__tsan_(?:volatile_)?(?:read|write)\d+\b")


def _stand_ins(function: Function) -> dict[int, int]:
    """Index of a block's probe -> index of the access's probe that tells as much: nothing leads in or out between."""
    code, found = function.instructions, {}
    targets = {i.target for i in code}
    for start, instruction in enumerate(code):
        if not instruction.callee.startswith(_BLOCK):
            continue
        at = instruction.next
        while at >= 0 and at not in targets and not code[at].callee and not _jumps(code[at].name):
            at = code[at].next
        if at >= 0 and at not in targets and _ACCESS.match(code[at].callee) and code[at].next >= 0:
            found[start] = at
    return found


_NOTHING = bytes.fromhex("0f1f440000" if platform.machine() in ("x86_64", "AMD64") else "1f2003d5")


def _take_out(extension: Path, calls: list[int]) -> None:
    if not calls:
        return
    shown = subprocess.run(["objdump", "-h", "-w", "-j", ".text", str(extension)], capture_output=True, text=True, encoding="utf-8", errors="replace", check=True).stdout
    words = next(line.split() for line in shown.splitlines() if " .text " in line)
    shift = int(words[5], 16) - int(words[3], 16)  # the section's place in the file less its address
    data = bytearray(extension.read_bytes())
    for address in calls:
        data[address + shift : address + shift + len(_NOTHING)] = _NOTHING
    extension.write_bytes(data)


# ---- reading ----

_HEAD = re.compile(r"^([0-9a-f]+) <(.+)>:$")
_LINE = re.compile(r"^ *([0-9a-f]+):\t(\S+) *(.*)$")
_PLACE = re.compile(r"^([0-9a-f]+) <([^>]*)>$")
_COLD = re.compile(r"\.cold(\.\d+)?$")
_PREFIX = ("lock", "rep", "repz", "repnz", "bnd", "notrack", "data16")


def _functions(text: str) -> list[Function]:
    """The functions in objdump's text; a cold part that the compiler moved away belongs to its function."""
    parts: list[Function] = []
    for line in text.splitlines():
        if head := _HEAD.match(line):
            current = Function(head[2], [(int(head[1], 16), int(head[1], 16))])
            parts.append(current)
        elif parts and (match := _LINE.match(line)):
            name, operands = match[2], match[3].split("#")[0].split("//")[0].strip()
            while name in _PREFIX and operands:
                name, _, operands = operands.partition(" ")
                operands = operands.strip()
            address = int(match[1], 16)
            current.instructions.append(Instruction(address, name, operands))
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
    """Finds what follows each instruction."""
    of_address = {instruction.address: i for i, instruction in enumerate(function.instructions)}
    starts = {low for low, _ in function.ranges}
    for i, instruction in enumerate(function.instructions):
        name, last = instruction.name, instruction.operands.split(",")[-1].strip()
        place = _PLACE.match(last)
        falls = name not in _ENDS
        if name in _CALLS:
            instruction.callee = place[2] if place else "*"
            falls = not _NEVER_RETURNS.search(instruction.callee)
        elif _jumps(name):
            falls = _conditional(name)
            if place and int(place[1], 16) in of_address:
                instruction.target = of_address[int(place[1], 16)]
            elif not place:
                instruction.open = True  # through a table, or to another function
        if falls and i + 1 < len(function.instructions) and function.instructions[i + 1].address not in starts:
            instruction.next = i + 1


def _jumps(name: str) -> bool:
    return name[0] == "j" or name in ("b", "br", "cbz", "cbnz", "tbz", "tbnz") or name.startswith("b.")


def _conditional(name: str) -> bool:
    return name not in ("jmp", "jmpq", "b", "br")


# ---- atomic increments ----

_ADDS = re.compile(r"^_Z\d+atomicAdd(?:_block|_system)?P(?:ii|jj|yy)")
_ONE = re.compile(r"^(?:\$0x1,%[er]si|w1, #0x1|x1, #0x1)$")


def _increments(code: list[Instruction]) -> Iterable[int]:
    """The calls of atomicAdd that add the constant 1: in shared memory a GPU counts a warp's lanes at a word at once."""
    for i, instruction in enumerate(code):
        if _ADDS.match(instruction.callee):
            before = next((e for e in reversed(code[max(0, i - 6) : i]) if e.callee or re.search(r",%[er]si$|^[wx]1,", e.operands)), None)
            if before and before.name.startswith("mov") and _ONE.match(before.operands):
                yield i


# ---- blocks ----


def _blocks(function: Function, number: int, stand_ins: dict[int, int]) -> Iterable[str]:
    """Two lines for each block: what follows the call of its probe until the next block's, and its instructions."""
    code = function.instructions
    probes = [i for i, instruction in enumerate(code) if instruction.callee.startswith(_BLOCK)]
    first = _reached(code, 0, set(probes), include_start=True)[1]
    costs = [_cost(function, i) for i in range(len(code))]
    _fold_addresses(code, costs)
    _fold_operands(code, costs)
    reached = {i: _reached(code, i, set(probes)) for i in probes}
    offsets = {i: f"{_returns_to(code, stand_ins.get(i, i)):x}" for i in probes}
    under = _predicated(code, reached, costs)
    for i, (share, following, ends, is_open) in reached.items():
        total = dict.fromkeys(COLUMNS, 0.0)
        for at, part in share.items():
            for name in COLUMNS:
                total[name] += part * costs[at].get(name, 0.0)
        yield (
            f"block {offsets[i]} {number} {'entry' if i in first else '-'} {'open' if is_open else 'closed'} "
            f"{','.join([*(offsets[n] for n in sorted(following)), *['end'] * ends]) or '-'} {offsets.get(under.get(i), '-')} "
            + " ".join(f"{total[name]:.6g}" for name in COLUMNS)
        )
        fused = _fused(share, costs)
        ran = [(at, part * _issued(costs[at], fused), part * costs[at].get("flops", 0.0)) for at, part in sorted(share.items())]
        yield "at " + " ".join(f"{code[at].address:x}:{issued:.4g}:{flops:.4g}" for at, issued, flops in ran if issued)


def _fused(share: dict[int, float], costs: list[dict[str, float]]) -> dict[str, float]:
    """fp32, fp64 -> how many instructions each multiplication and each addition of a block is: nvcc makes one of two where it can."""
    found = {}
    for width in ("fp32", "fp64"):
        added, multiplied = (sum(part * costs[at].get(f"{width}_{what}", 0.0) for at, part in share.items()) for what in ("add", "mul"))
        found[width] = max(added, multiplied) / (added + multiplied) if added and multiplied else 1.0
    return found


def _issued(cost: dict[str, float], fused: dict[str, float]) -> float:
    """How many instructions nvcc would make of one."""
    made = sum(EXPANSION[name][0] * value for name, value in cost.items() if name in EXPANSION)
    made += sum(fused[width] * (cost.get(f"{width}_add", 0.0) + cost.get(f"{width}_mul", 0.0)) for width in fused)
    return made or cost.get("issued", cost.get("instructions", 0.0))


# nvcc rather switches instructions off lane by lane than branches around a few of them.
_MOST_PREDICATED = 12


def _predicated(code: list[Instruction], reached: dict, costs: list[dict[str, float]]) -> dict[int, int]:
    """Short sides of a branch -> the block that branches: what a GPU runs predicated. A side may branch again (a || (b && c)), if all that
    lies between the first branch and where its ways meet is short; each block then stands with the one that branches to it."""
    before: dict[int, set[int]] = {}
    for i, (_, following, _, _) in reached.items():
        for n in following:
            before.setdefault(n, set()).add(i)

    def cost(blocks: Iterable[int]) -> float:
        return sum(_issued(costs[at], {}) if costs[at].keys() & EXPANSION.keys() else costs[at].get("instructions", 0.0) for i in blocks for at in reached[i][0])

    def plain(i: int) -> bool:
        """Whether the block is entered by one branch, is left for other blocks alone, and calls nothing that a GPU would branch around."""
        share, following, ends, is_open = reached[i]
        calls = [code[at].callee for at in share if code[at].callee and not _PROBE.search(code[at].callee)]
        kept = all(any(p.match(c) for p, _ in _OWN[:8]) or "atomic" in c for c in calls)
        return len(before.get(i, ())) == 1 and bool(following) and not (ends or is_open or i in following) and kept

    def side(i: int, blocks: list[int]) -> set[int]:
        """Where the ways from this block leave what only it leads to; the blocks before that are added to `blocks`."""
        if not plain(i) or len(blocks) > _MOST_PREDICATED:
            return {i}
        blocks.append(i)
        return set().union(*(side(n, blocks) for n in reached[i][1]))

    found: dict[int, int] = {}
    for parent, (_, following, _, _) in reached.items():
        if len(following) != 2:
            continue
        blocks: list[int] = []
        meets = set().union(*(side(n, blocks) for n in following))
        if not blocks or len(meets) != 1 or parent in meets or cost(blocks) > _MOST_PREDICATED:
            continue
        (after,) = meets
        leaves = reached[after][2] and not reached[after][1] and cost([after]) <= 1  # the lanes that go around it have nothing to do but return
        if not leaves:
            found.update((i, next(iter(before[i]))) for i in blocks)
    return found


def _returns_to(code: list[Instruction], call: int) -> int:
    """The return address of the call at an index."""
    return code[call + 1].address if call + 1 < len(code) else code[call].address + 5


def _reached(code: list[Instruction], start: int, probes: set[int], include_start: bool = False):
    """From after the probe at `start` on to the next probes: which instructions run (index -> how often, where branches
    without a probe go either way alike), the probes, whether the function may end, and whether it may go on elsewhere."""
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
        following = _following(code[at])
        is_open |= code[at].open
        ends |= not following and not code[at].open
        stack += [(n, False) for n in following if n not in state]
    share = dict.fromkeys(order, 0.0)
    for n in begin:
        if n in share:
            share[n] = 1.0
    for at in reversed(order):
        following = _following(code[at])
        for n in following:
            if n in share and n != at:
                share[n] = min(1.0, share[n] + share[at] / len(following))
    return share, found, ends, is_open


def _following(instruction: Instruction) -> list[int]:
    return [n for n in dict.fromkeys((instruction.next, instruction.target)) if n >= 0]


# ---- addresses ----

_FAMILIES = {name: f"r{n}" for n, names in enumerate(("ax", "bx", "cx", "dx", "si", "di", "bp")) for name in (f"r{names}", f"e{names}")}
_TO_ARGUMENT = re.compile(r"^%(r\w+),%rdi$")
_DISPLACED = re.compile(r"^-?0x[0-9a-f]+\(%\w+\),%\w+$")
_INDEXED = re.compile(r"^(?:-?0x[0-9a-f]+)?\(%\w+,(%\w+),[48]\)$")
_OF_SHARED = re.compile(r"^0x[0-9a-f]+\(%rax\),%r")
_MOST_IN_CHAIN = 8


def _register(operand: str) -> str:
    """%rbx, %ebx -> one name."""
    name = operand.strip().lstrip("%")
    return _FAMILIES.get(name, name.removesuffix("d") if re.fullmatch(r"r\d+d?", name) else name)


def _fold_addresses(code: list[Instruction], costs: list[dict[str, float]]) -> None:
    """An access's address is made by a chain of instructions, which end in the probe's argument: a GPU has one for index and
    base, and none for a constant distance from another address, which is part of the load or store."""
    if _ARGUMENT != "%rdi":
        return
    for i, instruction in enumerate(code):
        if i and "__tls_get_addr" in code[i - 1].callee and instruction.name == "lea" and _OF_SHARED.match(instruction.operands):
            costs[i] = costs[i] | {"instructions": 0.0, "issued": 0.0}  # a variable of the block's: where it lies is a constant
        if not _ACCESS.match(instruction.callee):
            continue
        copy = next((j for j in range(i - 1, max(-1, i - 6), -1) if code[j].callee or _writes_argument(code[j])), -1)
        if copy < 0 or not (found := _TO_ARGUMENT.match(code[copy].operands)) or code[copy].name != "mov":
            continue
        chain, displaced = _chain(code, copy, _register(found[1]))
        ends_as = costs[chain[0]].get("issued", 1.0) if chain else 0.0
        for j in chain:
            costs[j] = costs[j] | {"instructions": 0.0, "issued": 0.0}
        if chain and not displaced:
            costs[chain[0]] |= {"instructions": 1.0, "issued": ends_as}


_OPERAND = re.compile(r"^(\$\S+|\S+\(%rip\)),%(r[ds]i|e[ds]i|[er][dc]x|r[89]d?)$|^[wx][0-7], #")


def _fold_operands(code: list[Instruction], costs: list[dict[str, float]]) -> None:
    """Constants handed to a function that a GPU has as one instruction are operands of that."""
    for i, instruction in enumerate(code):
        if not instruction.callee or _PROBE.search(instruction.callee) or _own(instruction.callee) is None:
            continue
        for j in range(i - 1, max(-1, i - 12), -1):
            if code[j].callee or _jumps(code[j].name):
                break
            if _OPERAND.match(code[j].operands) and code[j].name.startswith(("mov", "lea", "adr")):
                costs[j] = costs[j] | {"instructions": 0.0, "issued": 0.0}


def _chain(code: list[Instruction], copy: int, register: str) -> tuple[list[int], bool]:
    """The instructions before `copy` that make the register's value, the last one first; whether it all begins with a
    constant added to another register."""
    chain: list[int] = []
    for j in range(copy - 1, max(-1, copy - 24), -1):
        instruction = code[j]
        if _jumps(instruction.name) or (instruction.callee and "__tls_get_addr" not in instruction.callee) or len(chain) == _MOST_IN_CHAIN:
            break
        source, _, target = instruction.operands.rpartition(",")
        if instruction.callee or _register(target) != register or not target.startswith("%") or instruction.name.startswith(("cmp", "test")):
            continue
        if not instruction.name.startswith(("movs", "movz", "lea", "add", "sub", "shl", "sal")) or _DIVIDES.match(instruction.name):
            break
        if instruction.name.startswith("lea") and "(" in source:
            index = _INDEXED.match(source)
            return [*chain, j, *(_sum_before(code, j, _register(index[1])) if index else [])], bool(_DISPLACED.match(instruction.operands))
        chain.append(j)
        if instruction.name.startswith("mov") and _register(source) != register:
            break
    return chain, False


def _sum_before(code: list[Instruction], lea: int, register: str) -> list[int]:
    """Of an address base + 4 * index, the instructions that make the index as a sum with one of 32 bits, widened: a GPU widens that
    as it adds it to a pointer, and the rest of the sum is in the pointer."""
    found: list[int] = []
    for j in range(lea - 1, max(-1, lea - 8), -1):
        instruction = code[j]
        source, _, target = instruction.operands.rpartition(",")
        if instruction.callee or _jumps(instruction.name):
            break
        if not target.startswith("%") or _register(target) != register or instruction.name.startswith(("cmp", "test")):
            continue
        if instruction.name.startswith("movsl"):
            return [*found, j]
        if instruction.name != "add" or not source.startswith("%") or found:
            break
        found, register = [j], _register(source)
    return []


# ---- what an instruction does ----

_X86_FP = re.compile(r"^v?(addsub|add|sub|mul|div|sqrt|f?n?m(?:add|sub)\d*)(ss|sd|ps|pd)$")
_LANES = {"ss": 1, "sd": 1, "ps": 4, "pd": 2}
# What keeps registers across calls, moves them, makes room for that, or finds variables that are a GPU's special registers;
# and what takes a value of 64 bits apart, which a GPU holds in two registers.
_STACK = re.compile(
    r"^v?mov(?:s[sd]|[lqd]|aps|apd|dqa)? (?:.*\(%rsp\)|%\w+,%\w+$|.*%fs:|\S+\(%rip\),%r)|^(?:sub|add) \S+,%rsp|^shr \$0x20,%r|"
    r"^(?:ldp|stp|ldr|str) .*\[sp|^(?:sub|add) sp,|^mov [wx]\d+, [wx]\d+$|^fmov [sd]\d+, [sd]\d+$|^lsr x\d+, x\d+, #32$|^mrs .*tpidr"
)
_ARM_FP = re.compile(r"^f(add|sub|mul|nmul|div|sqrt|n?madd|n?msub|mla|mls)$")
_DIVIDES = re.compile(r"^[us]?i?div")
_WIDE = re.compile(r"(?:^|,)\s*(?:%r(?:[a-d]x|[sd]i|bp|\d+)|x\d+)$")  # the result is in 64 bits
_WIDENS = ("movs", "movz", "cltq", "cqto", "sxt", "uxt", "lea")
_INTEGER = re.compile(
    r"^(add|sub|imul|mul|idiv|div|inc|dec|neg|not|and|or|xor|sh[lr]|sa[lr]|ro[lr]|lea|cmp|test|cdq|cqto|cltd|cltq|movs[lbwx]|movz|set|cmov|bt|bs[fr]|"
    r"popcnt|tzcnt|lzcnt|adc|sbb|madd|msub|smull|umull|sdiv|udiv|orr|eor|bic|ls[lr]|asr|ubfx|sbfx|csel|cset|csinc|sxt|uxt|subs|adds|tst|clz)"
)


def _cost(function: Function, i: int) -> dict[str, float]:
    """What one instruction adds to COLUMNS; nothing for a probe's call and for the instruction that makes its argument. issued: how
    many nvcc makes of an integer one, if not one."""
    code = function.instructions
    instruction = code[i]
    name = instruction.name
    if instruction.callee:
        return _call_cost(instruction.callee)
    if name.startswith(("nop", "endbr", "bti", "push", "pop", "leave")) or _makes_argument(code, i) or _STACK.search(f"{name} {instruction.operands}"):
        return {}
    # 0 is a register of a GPU, and whether two floats are in order is part of their comparison
    needless = name in ("jp", "jnp") or (name.endswith("xor") and len(set(instruction.operands.split(","))) == 1)
    cost = {"instructions": 0.0 if needless else 1.0}
    if kind := _floating(name, instruction.operands):
        operation, width, lanes = kind
        cost[f"{width}_{operation}"] = lanes
        cost["flops"] = lanes * FLOPS[operation]
    elif name.startswith(("cvt", "vcvt", "fcvt", "scvtf", "ucvtf")):
        cost["convert"] = 1.0
    elif _jumps(name):
        cost["branch"] = 1.0
    elif _INTEGER.match(name) and "%xmm" not in instruction.operands:
        cost["integer"] = 1.0
        wide = _WIDE.search(instruction.operands) is not None
        if _DIVIDES.match(name):
            cost["divide64" if wide else "divide32"] = 1.0
        elif wide:
            cost["integer64"] = 1.0
            if cost["instructions"] and not name.startswith(_WIDENS):
                cost["issued"] = INTEGER64
    return cost


def _floating(name: str, operands: str) -> tuple[str, str, float] | None:
    """(operation, width, how many at once) of an arithmetic instruction on floating-point numbers."""
    if match := _X86_FP.match(name):
        width, lanes = ("fp32" if match[2][1] == "s" else "fp64"), _LANES[match[2]]
    elif match := _ARM_FP.match(name):
        width, lanes = ("fp64" if operands.startswith("d") else "fp32"), 1
    else:
        return None
    what = match[1]
    operation = "fma" if re.search(r"ma|ms|ml[as]", what) else what if what in ("div", "sqrt") else "mul" if "mul" in what else "add"
    return operation, width, float(lanes)


def _call_cost(callee: str) -> dict[str, float]:
    if _PROBE.search(callee):
        return {}
    if cost := _own(callee):
        return {**cost, "flops": float(FLOPS["fast"])} if "fp32_fast" in cost else cost
    name = _named(callee)
    single = name.endswith("f") and name[:-1] in _LIBRARY
    what = _LIBRARY.get(name[:-1] if single else name)
    if what is None:
        return {"instructions": 1.0, "calls": 1.0}
    if not single and what not in ("fma", "sqrt"):
        what = "other"
    return {"instructions": 1.0, f"{'fp32' if single else 'fp64'}_{what}": 1.0, "flops": float(FLOPS[what])}


def _own(callee: str) -> dict[str, float] | None:
    """What one of the functions in simt's headers counts as; None for others."""
    return next((cost for pattern, cost in _OWN if pattern.match(_named(callee))), None)


def _named(callee: str) -> str:
    return re.sub(r"@plt.*|\+0x.*", "", callee)


_ARGUMENT = "%rdi" if platform.machine() in ("x86_64", "AMD64") else "x0"


def _makes_argument(code: list[Instruction], i: int) -> bool:
    """Whether the instruction only makes the address that a probe gets: the last to write the argument's register."""
    if not _writes_argument(code[i]):
        return False
    for later in code[i + 1 : i + 8]:
        if later.callee:
            return bool(_PROBE.search(later.callee)) and not later.callee.startswith(_BLOCK)
        if _writes_argument(later) or _jumps(later.name):
            return False
    return False


def _writes_argument(instruction: Instruction) -> bool:
    if _ARGUMENT == "%rdi":
        return instruction.operands.endswith(",%rdi") and not instruction.name.startswith(("cmp", "test"))
    return instruction.operands.startswith("x0,") and not instruction.name.startswith(("str", "stp", "cmp"))
