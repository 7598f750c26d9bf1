"""Counting mode: do the warps of random programs part and meet where an interpreter of masks says?"""

import random
from collections import Counter

import pytest
import torch

import simt


class Program:
    """A random kernel of nested branches and loops, as CUDA and as what each warp does, statement by statement.

    Every condition reads a word of noise that no compiler knows; every access has a line of its own.
    """

    def __init__(self, seed: int):
        self.chance = random.Random(seed)
        self.noise = [self.chance.randrange(256) for _ in range(4096)]
        self.lines: list[str] = []
        self.statements = self.block(0, "")

    def block(self, depth: int, inside: str) -> list:
        """inside: "body" of a loop, an "if" in one, or neither."""
        made = []
        for _ in range(self.chance.randrange(1, 4)):
            kind = self.chance.choice(["touch", "touch", "if", "else", "for", "leave"] if depth < 4 else ["touch"])
            where = self.chance.randrange(4096)
            if kind == "touch":
                made.append(("touch", where))
            elif kind in ("if", "else"):
                within = "if" if inside else ""
                made.append(
                    (
                        "if",
                        where,
                        self.chance.randrange(256),
                        self.block(depth + 1, within),
                        self.block(depth + 1, within) if kind == "else" else [],
                    )
                )
            elif kind == "for":
                made.append(("for", where, self.block(depth + 1, "body")))
            elif inside and self.chance.random() < 0.8:
                made.append(
                    (
                        self.chance.choice(["break", "continue"] if inside == "body" else ["break"]),
                        where,
                        self.chance.randrange(60),
                    )
                )
            elif self.chance.random() < 0.3:
                made.append(("return", where, self.chance.randrange(40)))
        return made or [("touch", 0)]

    def source(self, name: str) -> str:
        self.lines = [
            f"__global__ void {name}(volatile const int* noise, int* out) {{ int t = threadIdx.x, n = 1, s = 0;"
        ]
        self.write(self.statements, 0)
        self.lines.append("out[t] = s; }")
        return "\n".join(self.lines)

    def noisy(self, where: int) -> str:
        return f"noise[({where} + t * 7 + n * 131) & 4095]"

    def write(self, statements: list, loops: int) -> None:
        for s in statements:
            if s[0] == "touch":
                self.lines.append(f"s += {self.noisy(s[1])}; n++;")
            elif s[0] == "if":
                self.lines.append(f"n++; if ({self.noisy(s[1])} < {s[2]}) {{")
                self.write(s[3], loops)
                if s[4]:
                    self.lines.append("} else {")
                    self.write(s[4], loops)
                self.lines.append("}")
            elif s[0] == "for":
                self.lines.append(
                    f"n++; for (int i{loops} = 0, e{loops} = {self.noisy(s[1])} % 5; i{loops} < e{loops}; "
                    f"i{loops}++) {{ n++;"
                )
                self.write(s[2], loops + 1)
                self.lines.append("}")
            else:
                what = "{ out[t] = -s; return; }" if s[0] == "return" else s[0] + ";"
                self.lines.append(f"n++; if ({self.noisy(s[1])} < {s[2]}) {what}")

    def expect(self, threads: int) -> tuple[Counter, Counter, list[int]]:
        """Requests and lanes of the reads of noise, by line; and each thread's sum."""
        self.requests, self.lanes, sums = Counter(), Counter(), []
        for start in range(0, threads, 32):
            lanes = range(start, min(start + 32, threads))
            self.n, self.s, self.gone = dict.fromkeys(lanes, 1), dict.fromkeys(lanes, 0), set()
            self.at = 1
            self.walk(self.statements, set(lanes), None, None)
            sums += [-self.s[t] if t in self.gone else self.s[t] for t in lanes]
        return self.requests, self.lanes, sums

    def read(self, where: int, line: int, mask: set[int]) -> dict[int, int]:
        if mask:
            self.requests[line] += 1
            self.lanes[line] += len(mask)
        return {t: self.noise[(where + t * 7 + self.n[t] * 131) & 4095] for t in mask}

    def walk(self, statements: list, mask: set[int], broken: set[int] | None, skipped: set[int] | None) -> set[int]:
        """Runs statements for the lanes of mask; returns those that come out at the end. self.at: the line."""
        for s in statements:
            line, self.at = self.at, self.at + 1
            if s[0] == "touch":
                for t, v in self.read(s[1], line, mask).items():
                    self.s[t] += v
                    self.n[t] += 1
                continue
            for t in mask:
                self.n[t] += 1
            values = self.read(s[1], line, mask)
            if s[0] == "if":
                yes = {t for t in mask if values[t] < s[2]}
                no = mask - yes
                yes = self.walk(s[3], yes, broken, skipped)
                if s[4]:
                    self.at += 1
                    no = self.walk(s[4], no, broken, skipped)
                self.at += 1
                mask = yes | no
            elif s[0] == "for":
                left, out, begin = {t: values[t] % 5 for t in mask}, set(), self.at
                inside = set(mask)
                while True:
                    inside = {t for t in inside if left[t] > 0}
                    for t in inside:
                        self.n[t] += 1
                        left[t] -= 1
                    self.at = begin
                    gone, again = set(), set()
                    inside = self.walk(s[2], inside, gone, again) | again
                    out |= gone
                    if not inside:
                        break
                self.at += 1
                mask = {t for t in mask if t not in self.gone}
            else:
                leaving = {t for t in mask if values[t] < s[2]}
                mask = mask - leaving
                if s[0] == "return":
                    self.gone |= leaving
                else:
                    (broken if s[0] == "break" else skipped).update(leaving)
        return mask


@pytest.fixture(scope="module")
def random_programs():
    programs = [Program(seed) for seed in range(40)]
    text, starts = ["#include <torch/extension.h>"], []
    for i, program in enumerate(programs):
        starts.append(sum(part.count("\n") + 1 for part in text))
        text.append(program.source(f"program{i}"))
    calls = "".join(
        f"if (i == {i}) program{i}<<<1, threads>>>(x.data_ptr<int>(), y.data_ptr<int>());\n"
        for i in range(len(programs))
    )
    text.append(f"void run(int i, torch::Tensor x, torch::Tensor y, int threads) {{ {calls} }}")
    with simt.run(mode="count"):
        module = simt.load_inline(
            "random_programs",
            "void run(int i, torch::Tensor x, torch::Tensor y, int threads);",
            "\n".join(text),
            functions=["run"],
        )
    return module, programs, starts


@pytest.mark.slow
@pytest.mark.parametrize("number", range(40))
def test_do_warps_of_random_programs_part_and_meet_where_their_blocks_end(random_programs, number):
    module, programs, starts = random_programs
    program, threads = programs[number], 84
    requests, lanes, sums = program.expect(threads)
    y = torch.empty(threads, dtype=torch.int32)
    with simt.count(schedule=number) as report:
        module.run(number, torch.tensor(program.noise, dtype=torch.int32), y, threads)
    assert y.tolist() == sums
    got = {
        row.line - starts[number] - 1: row.counters.global_loads
        for row in report.lines
        if row.counters.global_loads.requests
    }
    assert {n: t.lanes for n, t in got.items()} == {n: c for n, c in lanes.items() if c}
    assert {n: t.requests for n, t in got.items()} == {n: c for n, c in requests.items() if c}
