"""Make the mutants of values that change as a loop runs: overwritten too early, not rescaled, or counted wrongly."""

from __future__ import annotations

import re

from grader.diagnosis.cuda_functions import Variable
from grader.diagnosis.cuda_map import ASSIGNS, SourceMap


class SequenceMutants(SourceMap):
    """Mutates the current function where a value of another moment, or relative to another start, may be meant."""

    def copy_overwritten_values(self, blocks: list[list[tuple[int, int]]]) -> None:
        """Copy the value that `top = score;` overwrites, for the statements after it in the same { }.

        blocks: the statements of each { }, as their first and last tokens.
        """
        self.overwritten: list[tuple[str, str, int, int, int]] = []  # name, copy, first and last token of its use, line
        for block in blocks:
            for position, (i, end) in enumerate(block[:-1]):
                name = self.text(i)
                known = [v for v in self.visible(i) if v.name == name and v.kind in ("int", "float")]
                if not known or self.text(self.step(i)) != "=" or self.text(end) != ";" or i in self.protected:
                    continue
                if not (known[-1].init or known[-1].parameter) or self.tokens[i].line in self.skip:
                    continue
                last = block[-1][1]
                for begin, finish in block[position + 1 :]:
                    if any(self.text(k) == name and self.text(self.step(k)) in ASSIGNS for k in range(begin, finish)):
                        last = begin
                        break
                if any(self.text(k) == name for k in range(end, last)) and self.text(self.step(i, -1)) != ":":
                    copy = f"grader_before_{i}"
                    self.before.setdefault(i, []).insert(0, f"const auto {copy} = {name}; ")
                    self.overwritten.append((name, copy, end, last, self.tokens[i].line))

    def find_overwritten(self, i: int) -> tuple[str, int] | None:
        """Return the copy of what the variable at token i held before it was overwritten, and the line that did it."""
        found = [(copy, line) for name, copy, a, b, line in self.overwritten if name == self.text(i) and a < i < b]
        return found[-1] if found else None

    def find_own_value(self, i: int, variable: Variable) -> str:
        """Return the variable that a running sum starts from and so includes, where token i stores the sum; else "".

        `int upto = own; … upto += below; … begins[b] = before + upto;` stores an inclusive sum.
        """
        own = next((v.name for v in self.visible(i) if v.name == variable.init.strip() and v.kind == variable.kind), "")
        if not own or variable.kind not in ("int", "float") or self.bracket_around(i):
            return ""
        start = i
        while self.text(start - 1) not in (";", "{", "}"):
            start -= 1
        body = self.raw(self.function.start, self.function.end)
        stored = self.raw(start, i)
        if not re.search(rf"\b{variable.name}\s*\+=", body) or not re.search(r"\]\s*\+?=(?!=)", stored):
            return ""
        used = {self.text(k) for k in range(start, self.semicolon_after(i, self.function.end))}
        return "" if own in used else own

    def find_tile_starts(self, i: int, variable: Variable) -> list[str]:
        """Return the variables of loops over tiles around token i from which an integer may have to be counted.

        None in a statement that uses such a variable already, or in a loop's head.
        """
        if variable.kind != "int" or any(a < i < b for a, b in self.loops) or self.bracket_around(i):
            return []
        start = i
        while self.text(start - 1) not in (";", "{", "}"):
            start -= 1
        end = self.semicolon_after(i, self.function.end)
        used = {self.text(k) for k in range(start, end)}
        return [
            v.name
            for v in self.visible(i)
            if v.kind == "int"
            and v.name not in used
            and v.at > variable.at
            and any(a < v.at < b and "+=" in self.raw(a, b) for a, b in self.loops)
        ]

    def scale_other_sums(self, blocks: list[list[tuple[int, int]]]) -> None:
        """Multiply a sum by the factor by which a statement next to it multiplies another one."""
        body = self.raw(self.function.start, self.function.end)
        for block in blocks:
            text = self.raw(block[0][0], block[-1][1] + 1) if block else ""
            for i, end in block:
                statement = " ".join(self.raw(i, end).split())
                scaled = re.fullmatch(r"(?:for \([^{}]*\) )?(\w+)(?:\[\w+\])? \*= (\w+)", statement)
                if scaled is None:
                    continue
                known = [v for v in self.visible(i) if v.name == scaled[1]]
                for v in self.visible(i) if known else ():
                    if v.end < known[-1].end:  # it holds no sum over the same passes
                        continue
                    if v.kind != "float" or v.parameter or v.const or v.name in (scaled[1], scaled[2]):
                        continue
                    if not re.search(rf"\b{v.name} \+=", body) or re.search(rf"\b{v.name}\s*[-+*/]?=", text):
                        continue
                    number = self.add(i, "unscaled", anyway=True, what=v.name, needed=[scaled[2]])
                    if number is not None:
                        extra = f" if (grader_mutant == {number}) {v.name} *= {scaled[2]};"
                        self.after.setdefault(end, []).append(extra)

    def multiply_term(self, i: int, end: int) -> None:
        """Multiply the term of `sum += gy[c];` by the element of another input at the same index."""
        term = re.fullmatch(r"(\w+)\s*\+=\s*(\w+)\s*\[([^\[\]]+)\]\s*", self.raw(i, end))
        pointers = [v for v in self.function.variables if v.parameter and v.const and v.kind in ("float *", "double *")]
        if term is None or term[2] not in {v.name for v in pointers}:
            return
        for other in pointers:
            factor = f"{other.name}[{term[3].strip()}]"
            number = self.add(i, "sum factor", what=term[1], needed=[factor]) if other.name != term[2] else None
            if number is not None:
                text = f" * (grader_mutant == {number} ? {factor} : 1)"
                self.after.setdefault(self.step(end, -1), []).append(text)
