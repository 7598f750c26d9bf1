"""Make the mutants of whole statements: left out, with a bounds test or a barrier after them, in another loop."""

from __future__ import annotations

import dataclasses
import re

from grader.diagnosis.cuda_map import KEYWORDS
from grader.diagnosis.declarations import Declarations
from simt.frontend.tokens import find_closing


class StatementMutants(Declarations):
    """Mutates the statements of the current function."""

    def edit_statement(self, i: int, end: int, inside: bool) -> None:
        """Leave a statement out, add a bounds test after it, add an unused parameter to its store."""
        function, text = self.function, self.text(i)
        if self.text(end) != ";" or not function.gpu:
            return
        if i not in self.protected and text not in KEYWORDS and self.step(i) < end:
            number = self.add(i, "statement", what=self.quote(i, end))
            if number is not None:
                self.wrap(i, f"{{ if (grader_mutant != {number}) ", end, " }")
            self._limit_to_first_pass(i, end)
            self._guard(i, end)
        self._add_to_store(i, end)
        self._return_argument(i, end)
        if inside and i in self.protected and not function.barriers:
            self._add_bounds_test(i, end)

    def _limit_to_first_pass(self, i: int, end: int) -> None:
        """Run `sum = 0;` in a loop for the loop's first pass alone."""
        if not re.fullmatch(r"(?:\w+\s*=\s*)+-?[\d.]+f?\s*", self.raw(i, end)):
            return
        names = re.findall(r"\w+(?=\s*=)", self.raw(i, end))
        for variable in self.visible(i):
            counts = variable.init and any(a < variable.at < b for a, b in self.loops)
            number = self.add(i, "first pass", what="` and `".join(names), needed=[variable.name]) if counts else None
            if number is not None:
                self.wrap(i, f"{{ if (grader_mutant != {number} || {variable.name} == ({variable.init})) ", end, " }")

    def _guard(self, i: int, end: int) -> None:
        """Run a store or an atomic operation only where what it uses is an element, as `n` in `v = i < n ? x[i] : 0`.

        Not a statement that a warp's lanes must reach together.
        """
        text = self.raw(i, end)
        if not re.search(r"\batomic\w+\s*\(|\]\s*[-+*]?=(?!=)", text) or re.search(r"_sync\s*\(|__sync", text):
            return
        words = {t.text for t in self.tokens[i:end] if t.kind == "word"}
        seen = {v.name for v in self.visible(i)}
        for variable in self.visible(i):
            chosen = re.fullmatch(r"(.+?[<>].+?)\?.*\[.*:\s*-?[\w.]+\s*", " ".join(variable.init.split()))
            if chosen is None or variable.name not in words:
                continue
            names = set(re.findall(r"(?<![\w.])[a-z]\w*", chosen[1])) - {"threadIdx", "blockIdx", "blockDim", "gridDim"}
            until, condition = self.tokens[variable.at].line, chosen[1].strip()
            if not names <= seen:
                continue
            number = self.add(i, "guard", until=until, what=condition, needed=[variable.name])
            if number is not None:
                self.wrap(i, f"{{ if (grader_mutant != {number} || ({condition})) ", end, " }")

    def _add_bounds_test(self, i: int, end: int) -> None:
        """Add `if (i >= total) return;` after the declaration of the thread's index."""
        made = [v for v in self.function.variables if i < v.at <= end and v.kind == "int" and "Idx" in v.init]
        limits = [v.name for v in self.function.variables if v.parameter and v.kind == "int"]
        for variable in made:
            for limit in limits:
                following = self.tokens[self.step(end)].line
                test = [f"{variable.name} >= {limit}"]
                number = self.add(i, "bounds test", until=following, anyway=True, what=variable.name, needed=test)
                if number is not None:
                    self.after.setdefault(end, []).append(
                        f" if (grader_mutant == {number} && {variable.name} >= {limit}) return;"
                    )

    def _return_argument(self, i: int, end: int) -> None:
        """Return the argument of a function of one float as it is."""
        parameters = [v for v in self.function.variables if v.parameter]
        alone = not self.function.kernel and len(parameters) == 1 and parameters[0].kind == "float"
        if (
            alone
            and self.text(i) == "return"
            and self.is_free(i, end)
            and (number := self.add(i, "identity", what=self.function.name, needed=[parameters[0].name])) is not None
        ):
            self.wrap(self.step(i), f"grader_mutant == {number} ? ({parameters[0].name}) : (", self.step(end, -1), ")")

    def _add_to_store(self, i: int, end: int) -> None:
        """Use a parameter in `y[i] = v` that the function never uses."""
        equals = next((k for k in range(i, end) if self.text(k) == "=" and self.text(self.step(k, -1)) == "]"), -1)
        if equals < 0 or not self.is_free(equals + 1, end):
            return
        used = [t.text for t in self.tokens[self.function.start : self.function.end] if t.kind == "word"]
        value = self.raw(equals + 1, end).strip()
        indices = [v.name for v in self.visible(i) if v.kind == "int" and not v.parameter]
        text = ""
        for variable in self.function.variables:
            terms: list[str] = []
            if variable.parameter and variable.name not in used and "*" in variable.kind and variable.const:
                terms = [f"{sign} {variable.name}[{index}]" for index in indices for sign in "+*"]
            elif variable.parameter and variable.name not in used and variable.kind == "float":
                terms = [f"{sign} {variable.name}" for sign in "+*-"]
            wanted = [f"{value} {term}" for term in terms]
            number = self.add(equals, "unused", len(terms), what=variable.name, needed=wanted) if terms else None
            if number is not None:
                chosen = (f"grader_mutant == {number + k} ? (({value}) {term}) : " for k, term in enumerate(terms))
                text += "".join(chosen)
        if text:
            self.wrap(self.step(equals), f"({text}(", self.step(end, -1), "))")

    def edit_after_loops(self, block: list[tuple[int, int]]) -> None:
        """Move `best *= s;` or `best = f(best);` into the loop before it that finds the best value."""
        for position, (i, end) in enumerate(block):
            name, sign = self.text(i), self.text(self.step(i))
            if sign not in ("=", "+=", "-=", "*=", "/=") or self.text(end) != ";" or not self.is_free(i, end):
                continue
            right = self.step(self.step(i))
            words = {t.text for t in self.tokens[right:end] if t.kind == "word"}
            if (sign == "=") is not (name in words):
                continue
            loop = next((pair for pair in reversed(block[:position]) if self.text(pair[0]) in ("for", "while")), None)
            values = self._find_compared(name, *loop) if loop else []
            known = {v.name: v for v in self.function.variables}
            values = [
                (a, b)
                for a, b in values
                if all(any(v.name == word for v in self.visible(a)) for word in words & {*known} - {name})
            ]
            number = self.add(i, "each value", what=name) if values else None
            if number is None:
                continue
            self.wrap(i, f"{{ if (grader_mutant != {number}) ", end, " }")
            for first, last in values:
                value = f"({self.raw(first, last + 1).strip()})"
                done = [
                    value if t.kind == "word" and t.text == name else t.text
                    for t in self.tokens[right:end]
                    if t.kind != "comment"
                ]
                text = "".join(done) if sign == "=" else f"{value} {sign[0]} ({''.join(done)})"
                self.wrap(first, f"(grader_mutant == {number} ? ({text}) : (", last, "))")

    def _find_compared(self, name: str, start: int, end: int) -> list[tuple[int, int]]:
        """Return first and last tokens of the values of which a loop keeps one in a variable.

        Of `float v = x[i]; if (v > best) best = v;` it is x[i].
        """
        kept = {
            self.text(self.step(self.step(k)))
            for k in range(start, end)
            if self.text(k) == name and self.text(self.step(k)) == "="
        }
        found = []
        for variable in self.function.variables:
            if variable.name in kept and variable.init and start < variable.at < end and variable.kind == "float":
                equals = next(k for k in range(variable.at, start, -1) if self.text(k) == "=")
                found.append((self.step(equals), self.step(variable.at, -1)))
        for k in range(start, end):
            opening = self.step(k)
            if self.text(k) not in ("fmaxf", "fminf", "fmax", "fmin", "max", "min") or self.text(opening) != "(":
                continue
            comma = self.step(self.step(opening))
            if self.text(self.step(opening)) == name and self.text(comma) == ",":
                found.append((self.step(comma), self.step(find_closing(self.tokens, opening), -1)))
        return [(a, b) for a, b in found if self.is_free(a, b + 1)]

    def add_barriers(self, statements: list[tuple[int, int]], closing: int) -> None:
        """Add a barrier before each statement of a { } but the first of the function, and at its end."""
        for (_, end), following in zip(statements, [*[start for start, _ in statements[1:]], closing]):
            if self.text(self.step(end, -1)) == ")" and "__syncthreads" in self.raw(max(0, end - 6), end):
                continue
            if following == self.function.end or self.text(self._find_first(statements, end)) == "return":
                continue
            number = self.add(end, "barrier", until=self.tokens[following].line)
            if number is not None:
                self.mutants[-1] = dataclasses.replace(self.mutants[-1], depth=self.depth)
                self.after.setdefault(end, []).append(f" if (grader_mutant == {number}) __syncthreads();")

    def _find_first(self, statements: list[tuple[int, int]], end: int) -> int:
        return next(start for start, last in statements if last == end)

    def edit_condition(self, opening: int, closing: int) -> None:
        if (
            any(self.text(k) == "=" for k in range(opening, closing))
            or opening in self.protected
            or not self.function.gpu
        ):
            return
        number = self.add(opening, "condition", 3, what=self.quote(self.step(opening), closing))
        if number is not None:
            self.wrap(self.step(opening), f"grader_edits::test({number}, (", self.step(closing, -1), "))")

    def edit_loop(self, opening: int, closing: int) -> None:
        """Divide the passes of a loop among the threads of a block, where every thread runs all of them."""
        if not self.function.gpu or self.tokens[opening].line in self.skip:
            return
        match = re.fullmatch(
            r"\s*\w+\s+(\w+)\s*=\s*0\s*;[^;]*;\s*(?:\1\+\+|\+\+\1|\1\s*\+=\s*1)\s*", self.raw(opening + 1, closing)
        )
        step = next((k for k in range(closing - 1, opening, -1) if self.text(k) == ";"), -1)
        zero = next((k for k in range(opening, closing) if self.text(k) == "0"), -1)
        number = self.add(opening, "shared loop", what=match[1]) if match and zero >= 0 else None
        if match is None or number is None:
            return
        self.instead[zero] = f"(grader_mutant == {number} ? (int)threadIdx.x : 0)"
        self.protected.add(zero)
        for k in range(step + 1, closing):
            self.instead[k] = f" {match[1]} += grader_mutant == {number} ? (int)blockDim.x : 1" if k == step + 1 else ""
            self.protected.add(k)

    def reorder_divisions(self) -> None:
        """Take `a = i % P; b = i / P % Q` in the other order: b = i % Q, a = i / Q % P."""
        plain = [v for v in self.function.variables if v.init]
        for one in plain:
            first = re.fullmatch(r"(\w+) % (\w+)", one.init.strip())
            if first is None:
                continue
            for other in plain:
                second = re.fullmatch(r"(\w+) / (\w+) % (\w+)", other.init.strip())
                if not second or (second[1], second[2]) != (first[1], first[2]) or not one.at < other.at:
                    continue
                i, p, q = first[1], first[2], second[3]
                until = self.tokens[self.step(other.at, -1)].line
                number = self.add(self.step(one.at, -1), "order", until=until, what=i, needed=[other.name])
                for variable, text in ((one, f"{i} / {q} % {p}"), (other, f"{i} % {q}")) if number is not None else ():
                    start = next(k for k in range(variable.at, -1, -1) if self.text(k) == "=")
                    self.before.setdefault(self.step(start), []).insert(0, f"grader_mutant == {number} ? {text} : ")
