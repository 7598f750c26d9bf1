"""Find the basic blocks of a function's machine code, their order, and its loops."""

from __future__ import annotations

from dataclasses import dataclass, field

from simt.toolchain.disassembly.decoding import Instruction, is_jump
from simt.toolchain.disassembly.sums import Sum


@dataclass
class Loop:
    """header: number of its first block. blocks: their numbers. phis: unknowns that stand for what a place holds when a
    turn begins; starts: what they are at first; steps: what is added each time. copies: of its body that nvcc makes.
    slow: whether each of them branches to code for rare operands, for which the next one's loads wait. bits: the
    numbers of its blocks.
    """

    header: int
    blocks: set[int]
    phis: dict[str, int] = field(default_factory=dict)
    starts: dict[int, Sum] = field(default_factory=dict)
    steps: dict[int, Sum] = field(default_factory=dict)
    copies: float = 1.0
    slow: bool = False

    def __post_init__(self) -> None:
        self.bits = sum(1 << block for block in self.blocks)


class Graph:
    """starts, ends: of each block, indices of instructions; block_of: of each instruction, its block. following,
    before: the blocks after and before one. order: those that can be reached, each before what follows it, but for
    loops; position: in that order. loops: by header; all_loops: the smallest first. innermost: the smallest loop that a
    block belongs to.
    """

    def __init__(self, code: list[Instruction]):
        self.code = code
        self._find_blocks()
        self._find_loops()

    def number(self, loop: Loop) -> int:
        """Return the address at which the loop begins."""
        return self.code[self.starts[loop.header]].address

    def leaves(self, block: int, loop: Loop) -> bool:
        """Return whether the loop may end after this block."""
        return any(n not in loop.blocks for n in self.following[block])

    def find_always(self, loop: Loop) -> set[int]:
        """Return the blocks that each whole turn of the loop runs."""
        ends = {block for block in loop.blocks if loop.header in self.following[block]}
        found = set()
        for block in loop.blocks:
            reached, stack = {loop.header}, [loop.header] if loop.header != block else []
            while stack:
                after = [n for n in self.following[stack.pop()] if n in loop.blocks and n != block and n not in reached]
                reached.update(after)
                stack += after
            if block == loop.header or not reached & ends:
                found.add(block)
        return found

    def _find_blocks(self) -> None:
        code = self.code
        leaders = {0} | {i.target for i in code if i.target >= 0}
        leaders |= {n + 1 for n, i in enumerate(code[:-1]) if is_jump(i.name) or i.next != n + 1}
        self.starts = sorted(leaders)
        self.block_of = [0] * len(code)
        self.ends: list[int] = []
        for number, start in enumerate(self.starts):
            end = self.starts[number + 1] if number + 1 < len(self.starts) else len(code)
            self.ends.append(end)
            self.block_of[start:end] = [number] * (end - start)
        self.following = [
            [self.block_of[n] for n in dict.fromkeys((code[end - 1].next, code[end - 1].target)) if n >= 0]
            for end in self.ends
        ]
        self.order = self._sort()
        self.position = {block: at for at, block in enumerate(self.order)}
        self.before: dict[int, list[int]] = {block: [] for block in self.order}
        for block in self.order:
            for after in self.following[block]:
                self.before[after].append(block)

    def _sort(self) -> list[int]:
        order: list[int] = []
        seen: set[int] = set()
        stack: list[tuple[int, bool]] = [(0, False)]
        while stack:
            block, done = stack.pop()
            if done:
                order.append(block)
            elif block not in seen:
                seen.add(block)
                stack.append((block, True))
                stack += [(after, False) for after in self.following[block] if after not in seen]
        return order[::-1]

    def _find_loops(self) -> None:
        loops: dict[int, set[int]] = {}
        for block in self.order:
            for header in self.following[block]:
                if self.position[header] <= self.position[block]:
                    body = loops.setdefault(header, {header})
                    stack = [block]
                    while stack:
                        inside = stack.pop()
                        if inside not in body and self.position[inside] >= self.position[header]:
                            body.add(inside)
                            stack += self.before[inside]
        self.loops = {header: Loop(header, body) for header, body in loops.items()}
        self.all_loops = by_size = sorted(self.loops.values(), key=lambda loop: len(loop.blocks))
        self.innermost = {block: next((one for one in by_size if block in one.blocks), None) for block in self.order}
