"""Follow the integers in a function's registers, as sums of unknowns, to find equal values and those a constant apart.

x86 only: ARGUMENT tells.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from simt.toolchain.disassembly.decoding import ANY_ACCESS_PROBE, Instruction, is_jump
from simt.toolchain.disassembly.flow_graph import Graph, Loop
from simt.toolchain.disassembly.sums import NOTHING, Sum, add, constant, scale

_MAX_TERMS = 8

_FAMILIES = {
    name: f"r{base}"
    for base, names in {
        "ax": "rax eax ax al ah", "bx": "rbx ebx bx bl bh", "cx": "rcx ecx cx cl ch", "dx": "rdx edx dx dl dh",
        "si": "rsi esi si sil", "di": "rdi edi di dil", "bp": "rbp ebp bp bpl", "sp": "rsp esp",
    }.items()
    for name in names.split()
}  # fmt: skip
_ADDRESS = re.compile(r"^(%\w+:)?(-?0x[0-9a-f]+)?(?:\((%\w+)?(?:,(%\w+)(?:,([1248]))?)?\))?$")
_CLOBBERED = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")
_COMPARES = ("cmp", "test", "bt")
_NO_VALUE = ("push", "nop", "ucomi", "comi", "vucomi", "vcomi")
_TWO_RESULTS = re.compile(r"^i?(?:div|mul)[lq]?$")


def split_operands(text: str) -> list[str]:
    """Return the operands, which commas separate outside of parentheses."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def name_place(operand: str) -> str | None:
    """Return the name of a register, whole, or of a place on the stack; None for other operands."""
    if operand.startswith("%"):
        name = operand[1:]
        return _FAMILIES.get(name) or (re.sub(r"[dwb]$", "", name) if re.fullmatch(r"r\d+[dwb]?", name) else None)
    return operand if operand.endswith("(%rsp)") else None  # g++ uses no frame pointer


class Unknowns:
    """Numbers for what a program does not tell, one for each key.

    homes: of each unknown the blocks where it, or what it is made of, gets its value; loaded: likewise the loads from
    memory; uniform: whether all threads of a block have the same, as far as nvcc can tell. Sets of numbers are bits.
    """

    def __init__(self) -> None:
        self.numbers: dict[tuple, int] = {}
        self.kinds: list[str] = []
        self.homes: list[int] = []
        self.loaded: list[int] = []
        self.loads: list[int] = []  # the instructions, by the bits of `loaded`
        self.uniform: list[bool] = []

    def get(self, kind: str, *key: object, block: int | None = None, uniform: bool = False) -> Sum:
        """Return an unknown as a sum. key: its sums are what it is made of. block: where it gets its value."""
        whole = (kind, *key)
        if whole not in self.numbers:
            self.numbers[whole] = len(self.kinds)
            parts = [unknown for part in key if isinstance(part, tuple) for unknown, _ in part[1]]
            self.kinds.append(kind)
            self.homes.append(0 if block is None else 1 << block)
            self.loaded.append(0)
            self.uniform.append(uniform and all(self.uniform[part] for part in parts))
            if kind == "of":
                for part in parts:
                    self.homes[-1] |= self.homes[part]
                    self.loaded[-1] |= self.loaded[part]
            elif kind == "memory":
                self.loaded[-1] = 1 << len(self.loads)
                self.loads.append(key[0])  # type: ignore[arg-type]
        return 0, ((self.numbers[whole], 1),)


class Values:
    """The sums that a function's instructions compute.

    made: by instruction, the sum that it writes; compared: the two that it compares. accessed: the address that a probe
    of an access, or an atomic operation, is given. narrow: sums of 32 bits. indices: those in addresses.
    """

    def __init__(self, code: list[Instruction]):
        self.code, self.graph, self.unknowns = code, Graph(code), Unknowns()
        self.made: dict[int, Sum] = {}
        self.compared: dict[int, tuple[Sum, Sum]] = {}
        self.accessed: dict[int, Sum] = {}
        self.narrow: set[Sum] = set()
        self.indices: dict[int, Sum] = {}
        self._run()

    def _run(self) -> None:
        states: dict[int, dict[str, Sum]] = {}
        written = {block: self._list_written(block) for block in self.graph.order}
        for block in self.graph.order:
            state = self._join(block, states, written)
            for at in range(self.graph.starts[block], self.graph.ends[block]):
                self._execute(at, block, state)
            states[block] = state
        for loop in self.graph.loops.values():
            backs = [b for b in self.graph.before[loop.header] if b in loop.blocks]
            for place, phi in loop.phis.items():
                ends = {states[b].get(place) for b in backs}
                if len(ends) == 1 and (end := ends.pop()) is not None:
                    loop.steps[phi] = add(end, (0, ((phi, 1),)), -1)

    def _list_written(self, block: int) -> set[str]:
        found: set[str] = set()
        for at in range(self.graph.starts[block], self.graph.ends[block]):
            if self.code[at].callee:
                found.update(_CLOBBERED)
            elif self.code[at].name.startswith((*_COMPARES, *_NO_VALUE)):
                continue
            elif (operands := split_operands(self.code[at].operands)) and (place := name_place(operands[-1])):
                found.add(place)
        return found

    def _join(self, block: int, states: dict[int, dict[str, Sum]], written: dict[int, set[str]]) -> dict[str, Sum]:
        ready = [states[b] for b in self.graph.before[block] if b in states]
        if not ready:
            return {}
        loop = self.graph.loops.get(block)
        changed = set().union(*(written[b] for b in loop.blocks)) if loop else set()
        state: dict[str, Sum] = {}
        for place in set(ready[0]).intersection(*ready[1:]):
            values = {each[place] for each in ready}
            if len(values) == 1 and place not in changed:
                state[place] = values.pop()
            else:
                state[place] = self.unknowns.get("phi", block, place, block=block)
                if loop:
                    loop.phis[place] = phi = state[place][1][0][0]
                    if len(values) == 1:
                        loop.starts[phi] = values.pop()
        return state

    def _read(self, operand: str, at: int, block: int, state: dict[str, Sum]) -> Sum:
        if operand.startswith("$"):
            return constant(int(operand[1:], 16))
        place = name_place(operand)
        if place is not None:
            if place not in state:
                state[place] = self.unknowns.get("given", place, uniform=True)
            return state[place]
        if operand.startswith("%fs:") or "(%rip)" in operand:  # threadIdx and its like; addresses of variables
            base = name_place("%" + operand.split("(%")[1].rstrip(")")) if "(%r" in operand else None
            known = state.get(base) if base and base != "rip" else None
            symbol = self.code[at].symbol
            text = symbol or (operand if known is None else operand.split("(")[0])
            return self.unknowns.get("special", text, known, uniform="threadIdx" not in text)
        address = self._address(operand, at, block, state)
        if len(address[1]) == 1 and self.unknowns.kinds[address[1][0][0]] == "given":  # an argument, in simt's record
            return self.unknowns.get("given", address, uniform=True)
        return self.unknowns.get("memory", at, address, block=block, uniform=True)

    def _address(self, operand: str, at: int, block: int, state: dict[str, Sum]) -> Sum:
        """Return the sum that a memory operand means."""
        found = _ADDRESS.match(operand)
        if not found or found[1]:
            return self.unknowns.get("special", operand)
        total = constant(int(found[2], 16)) if found[2] else NOTHING
        if found[3]:
            total = add(total, self._read(found[3], at, block, state))
        if found[4]:
            self.indices[at] = self._read(found[4], at, block, state)
            total = add(total, self.indices[at], int(found[5] or 1))
        return total

    def _operation(self, name: str, values: Sequence[Sum]) -> Sum:
        return self.unknowns.get("of", re.sub(r"[lq]$", "", name), *values, uniform=True)

    def _execute(self, at: int, block: int, state: dict[str, Sum]) -> None:
        instruction = self.code[at]
        if instruction.callee:
            if "rdi" in state and (ANY_ACCESS_PROBE.match(instruction.callee) or "atomic" in instruction.callee):
                self.accessed[at] = state["rdi"]
            for place in _CLOBBERED:
                state[place] = self.unknowns.get("call", at, place, block=block)
            return
        name, operands = instruction.name, split_operands(instruction.operands)
        if name in ("cltq", "cwtl"):
            self.made[at] = state["rax"] = self._read("%rax", at, block, state)
            self.narrow.add(state["rax"])
            return
        if name in ("cltd", "cqto"):
            self.made[at] = state["rdx"] = self._operation(name, [self._read("%rax", at, block, state)])
            return
        if not operands or is_jump(name) or name.startswith(_NO_VALUE):
            return
        if name.startswith(_COMPARES) and "%xmm" not in instruction.operands and len(operands) == 2:
            self.compared[at] = self._read(operands[0], at, block, state), self._read(operands[1], at, block, state)
            return
        place = name_place(operands[-1])
        if place == "rsp":
            return
        value = self._value(name, operands, at, block, state)
        if _TWO_RESULTS.match(name) and len(operands) == 1:
            state["rax"], state["rdx"] = value, self._operation(name + "%", [value])
            return
        if place is not None:
            state[place] = value
            self.made[at] = value

    def _value(self, name: str, operands: list[str], at: int, block: int, state: dict[str, Sum]) -> Sum:
        """Return what the instruction writes."""

        def read(operand: str) -> Sum:
            return self._read(operand, at, block, state)

        if name.startswith("lea"):
            return self._address(operands[0], at, block, state)
        if name.startswith("xor") and operands[0] == operands[-1]:
            return NOTHING
        if any("%xmm" in o or "%ymm" in o for o in operands):
            return self.unknowns.get("floating", at, block=block)
        if name.startswith("mov") and len(operands) == 2:
            value = read(operands[0])
            if name.startswith(("movsl", "movz")):
                self.narrow.add(value)
            return value
        values = [read(o) for o in operands]
        last = values[-1]
        if name.startswith("add") and len(operands) == 2:
            made = add(last, values[0])
        elif name.startswith("sub") and len(operands) == 2:
            made = add(last, values[0], -1)
        elif name.startswith(("inc", "dec")):
            made = add(last, constant(1 if name.startswith("inc") else -1))
        elif name.startswith("neg"):
            made = scale(last, -1)
        elif name.startswith(("shl", "sal")) and len(operands) <= 2 and not values[0][1]:
            made = scale(last, 1 << (values[0][0] & 63 if len(operands) == 2 else 1))
        elif name.startswith("imul") and len(operands) >= 2:
            a, b = values[0], values[1]
            made = (
                scale(b, a[0]) if not a[1] else scale(a, b[0]) if not b[1] else self._operation("imul", sorted((a, b)))
            )
        else:
            made = self._operation(name, values)
        return made if len(made[1]) <= _MAX_TERMS else self._operation("sum", [made])

    # ---- what changes in a loop ----

    def changes(self, value: Sum, loop: Loop) -> bool:
        return any(self.varies(unknown, loop) for unknown, _ in value[1])

    def varies(self, unknown: int, loop: Loop) -> bool:
        """Return whether an unknown is another one in each turn of the loop."""
        return self.unknowns.homes[unknown] & loop.bits != 0

    def list_loaded(self, value: Sum) -> list[int]:
        """Return the instructions that loaded from memory what the sum is made of."""
        bits = 0
        for unknown, _ in value[1]:
            bits |= self.unknowns.loaded[unknown]
        return [at for n, at in enumerate(self.unknowns.loads) if bits >> n & 1] if bits else []

    def is_uniform(self, value: Sum) -> bool:
        """Return whether the sum is the same in all threads of a block, as far as nvcc can tell."""
        return all(self.unknowns.uniform[unknown] for unknown, _ in value[1])

    def is_chased(self, value: Sum, loop: Loop) -> bool:
        """Return whether the sum depends on what a turn of the loop before loaded."""
        steps = [loop.steps[unknown] for unknown, _ in value[1] if unknown in loop.steps]
        return any(self.unknowns.loaded[u] and self.varies(u, loop) for step in steps for u, _ in step[1])

    def steps_by_constants(self, value: Sum, loop: Loop) -> bool:
        """Return whether the sum grows by a constant each time."""
        moving = [unknown for unknown, _ in value[1] if self.varies(unknown, loop)]
        return all(unknown in loop.steps and not loop.steps[unknown][1] for unknown in moving)
