"""Find the variables that a CUDA function declares, their scopes and their bounds."""

from __future__ import annotations

import re

from grader.diagnosis.cuda_functions import TYPES, Variable, kind_of
from grader.diagnosis.cuda_map import ASSIGNS, QUALIFIERS, SourceMap
from simt.frontend.tokens import find_closing


class Declarations(SourceMap):
    """Records the variables of the current function; widens integers that are declared too narrow."""

    def declare(self, i: int, end: int, limit: int) -> bool:
        """Record the variables that a statement declares; return whether it declares any."""
        words, pointer, j, const = [], False, i, False
        while j < end and (self.tokens[j].kind == "word" and (self.text(j) in TYPES or self.text(j) in QUALIFIERS)):
            if self.text(j) in ("__shared__", "constexpr", "extern"):
                const = True
            words.append(self.text(j))
            j = self.step(j)
        while self.text(j) in ("*", "&", "__restrict__"):
            pointer |= self.text(j) == "*"
            j = self.step(j)
        if not {*words} & TYPES or self.tokens[j].kind != "word":
            return False
        self.protected |= set(range(i, j))
        base = kind_of([w for w in words if w not in QUALIFIERS], pointer)
        kind = "" if const else base
        depth, named, init = 0, j, -1
        for k in range(j, end + 1):
            text = self.text(k)
            if (text in (",", ";") and depth == 0) or k == end:
                self._declare_one(named, kind, init, k, limit, words)
                self._note_shape(named, base)
                named, init = self.step(k), -1
                while self.text(named) == "*":
                    named = self.step(named)
            elif text == "=" and depth == 0 and init < 0:
                init = self.step(k)
            elif self.tokens[k].kind == "mark" and len(text) == 1:
                depth += (text in "([{") - (text in ")]}")
            if init < 0 and depth > 0:
                self.protected.add(k)  # an array's size
        return True

    def _note_shape(self, named: int, base: str) -> None:
        """Note the type and the sizes of an array that was just declared."""
        sizes, opening = "", self.step(named)
        while self.text(opening) == "[" and (closing := find_closing(self.tokens, opening)) > 0:
            sizes += "".join(self.raw(opening, closing + 1).split())
            opening = self.step(closing)
        if sizes and base:
            self.function.variables[-1].shape = base + sizes

    def _declare_one(self, named: int, kind: str, init: int, end: int, limit: int, words: list[str]) -> None:
        self.protected.add(named)
        array = self.text(self.step(named)) in ("[", "(")
        made = Variable(
            self.text(named),
            "" if array else kind,
            end,
            limit,
            const="const" in words,
            init=self.raw(init, end) if init > 0 else "",
        )
        self.function.variables.append(made)
        remainder = re.search(r"%\s*(\w+)\s*$", made.init)
        made.bound = remainder[1] if remainder else ""
        if kind == "int" and init > 0 and {"short", "char"} & {*words}:
            self._widen(named, init, end, words)

    def _widen(self, named: int, init: int, end: int, words: list[str]) -> None:
        kind = " ".join(word for word in words if word not in QUALIFIERS)
        number = self.add(init, "type", what=self.text(named), needed=[kind])
        line = self.tokens[named].line
        begun = min(
            (
                i
                for i in range(named)
                if i in self.protected and self.tokens[i].line == line and self.text(i) in TYPES | QUALIFIERS
            ),
            default=-1,
        )
        if number is None or begun < 0:
            return
        for i in range(begun, named):
            self.instead[i] = "long long " if i == begun else ""
        self.wrap(
            init,
            f"grader_edits::narrow<{kind}>({number}, ",
            self.step(end, -1),
            ")",
        )

    def declare_in_for(self, opening: int, closing: int, limit: int) -> None:
        first = self.semicolon_after(opening + 1, closing)
        before = len(self.function.variables)
        self.declare(self.step(opening), first, limit)
        second = self.semicolon_after(first + 1, closing)
        bound = re.match(r"\s*(\w+)\s*<\s*(\w+)\s*$", self.raw(first + 1, second))
        for variable in self.function.variables[before:]:
            variable.end = self._loop_end(closing, limit)
            if bound and bound[1] == variable.name:
                variable.bound = bound[2]

    def _loop_end(self, closing: int, limit: int) -> int:
        """Return about where the body of a loop ends: at its }, or at the first semicolon outside of brackets."""
        start = self.step(closing)
        while self.text(start) in ("for", "if", "while"):
            start = self.step(find_closing(self.tokens, self.step(start)))
        return find_closing(self.tokens, start) if self.text(start) == "{" else self.semicolon_after(start, limit)

    def copy_first_values(self) -> None:
        """Copy the first value of each variable that is changed in place."""
        for variable in self.function.variables:
            changed = any(
                self.text(i) == variable.name
                and self.text(self.step(i)) in ASSIGNS - {"="}
                and i not in self.protected
                and variable.at < i < variable.end
                and not any(a < i < b for a, b in self.loops)
                for i in range(self.function.start, self.function.end)
            )
            local = variable.kind == "int" and not variable.parameter and self.text(variable.at) == ";"
            if changed and local and not any(a < variable.at < b for a, b in self.loops):
                variable.first = f"grader_first_{variable.name}"
                self.after.setdefault(variable.at, []).append(f" const auto {variable.first} = {variable.name};")
