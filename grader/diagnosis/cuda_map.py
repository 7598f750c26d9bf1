"""Find what a token of a CUDA function belongs to, and place mutants into the source without moving a line."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from grader.diagnosis.cuda_functions import TYPES, Function, FunctionReader, Variable
from simt.frontend.tokens import Token, find_closing

QUALIFIERS = {"const", "constexpr", "static", "volatile", "__shared__", "extern", "signed", "register"}
KEYWORDS = {
    "return",
    "else",
    "case",
    "do",
    "if",
    "for",
    "while",
    "switch",
    "sizeof",
    "break",
    "continue",
    "goto",
    "new",
    "delete",
    "throw",
}
ASSIGNS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
MOST_MUTANTS = 4000  # of one source: more would take the compiler too long
MOST_SHOWN = 60  # characters of an expression that a message quotes


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One edited copy of a source.

    line: of the source, from 1. kind: one of mutants.KINDS. until: for what is missing, the line before which it
    belongs. depth: the number of { } around it. what: the student's text that the mutant changes, such as `c / n`.
    needed: what the line needs instead, where that is a name or a part of the student's text; else empty.
    """

    number: int
    line: int
    kind: str
    until: int = 0
    depth: int = 0
    what: str = ""
    needed: str = ""


class SourceMap(FunctionReader):
    """The function that is being edited, and the mutants placed into the source so far.

    before, after, instead: text by token. skip: lines to leave as they are.
    """

    def __init__(self, source: str, first: int, skip: Collection[int]):
        super().__init__(source)
        self.next, self.skip = first, skip
        self.before: dict[int, list[str]] = {}
        self.after: dict[int, list[str]] = {}
        self.instead: dict[int, str] = {}
        self.mutants: list[Mutant] = []
        self.depth = 0  # of { } around the statement at hand
        self.twins: dict[tuple, int] = {}
        self.function: Function  # the one that is being edited
        self.loops: list[tuple[int, int]] = []  # ( and ) of each for of this function

    def wrap(self, start: int, head: str, end: int, tail: str) -> None:
        """Put text around the tokens from start to end, inside of text put there before."""
        self.before.setdefault(start, []).append(head)
        self.after.setdefault(end, []).insert(0, tail)

    def add(
        self,
        i: int,
        kind: str,
        count: int = 1,
        until: int = 0,
        anyway: bool = False,
        what: str = "",
        needed: Sequence[str] = (),
    ) -> int | None:
        """Add `count` mutants at token i; return the first one's number, or None where nothing may be edited.

        Nothing may be edited in lines to skip, and in protected tokens unless `anyway`. what: see Mutant. needed: of
        each mutant in turn; empty for those beyond its end.
        """
        line = self.tokens[i].line
        if line in self.skip or (i in self.protected and not anyway) or len(self.mutants) + count > MOST_MUTANTS:
            return None
        number = self.next
        each = [*needed, *[""] * (count - len(needed))]
        self.mutants += [Mutant(number + k, line, kind, until, what=what, needed=each[k]) for k in range(count)]
        self.next += count
        return number

    def quote(self, start: int, end: int) -> str:
        """Return the text of tokens [start, end) in one line; empty if it is too long for a message."""
        text = " ".join(self.raw(start, end).split())
        return text if len(text) <= MOST_SHOWN else ""

    # -- what a token belongs to --

    def visible(self, i: int) -> list[Variable]:
        """Return the variables that are visible at token i."""
        return [v for v in self.function.variables if v.at < i < v.end]

    def bracket_around(self, i: int) -> tuple[int, int] | None:
        """Return the [ and ] around token i."""
        depth = 0
        for j in range(i, self.function.start, -1):
            text = self.text(j)
            depth += (text == "]") - (text == "[")
            if depth < 0:
                return j, find_closing(self.tokens, j)
            if text in (";", "{", "}"):
                return None
        return None

    def opening_of(self, i: int) -> int:
        """Return the ( that the ) at token i closes."""
        depth = 0
        for j in range(i, -1, -1):
            depth += (self.text(j) == ")") - (self.text(j) == "(")
            if depth == 0:
                return j
        return 0

    def ends_operand(self, i: int) -> bool:
        """Return whether the token ends an operand, so that an operator after it has two operands."""
        token = self.tokens[i]
        if token.kind == "word":
            return token.text not in KEYWORDS | TYPES | QUALIFIERS
        if token.text == ")":
            opening = self.opening_of(i)
            inside = [t.text for t in self.tokens[opening + 1 : i] if t.kind not in ("space", "comment")]
            return not (inside and all(t in TYPES | QUALIFIERS | {"*"} for t in inside))
        return token.kind in ("number", "string") or token.text == "]"

    def operands(self, i: int) -> tuple[int, int]:
        """Return the first and the last token of the operation at token i, an operator between two operands."""
        loose = {"*", "/", "%", "+", "-"} if self.text(i) in ("+", "-") else {"*", "/", "%"}
        if self.text(i) in ("<", "<=", ">", ">="):
            loose |= {"+", "-"}
        first = self._start_of_unit(self.step(i, -1))
        while self.text(before := self.step(first, -1)) in loose and self.ends_operand(self.step(before, -1)):
            first = self._start_of_unit(self.step(before, -1))
        last = self._end_of_unit(self.step(i))
        tight = loose - {"+", "-"} if self.text(i) in ("+", "-") else loose
        tight = set() if self.text(i) in ("*", "/", "%") else tight
        while self.text(after := self.step(last)) in tight:
            last = self._end_of_unit(self.step(after))
        return first, last

    def _start_of_unit(self, i: int) -> int:
        """Return the first token of the name, number, call, index or bracket that ends at token i."""
        while True:
            if self.text(i) in (")", "]"):
                depth, mark = 0, self.text(i)
                opening = {")": "(", "]": "["}[mark]
                while i > self.function.start:
                    depth += (self.text(i) == mark) - (self.text(i) == opening)
                    if depth == 0:
                        break
                    i -= 1
                before = self.step(i, -1)
                if self.text(before) not in (")", "]") and self.tokens[before].kind != "word":
                    return i
                if self.text(before) in KEYWORDS:
                    return i
                i = before
            elif self.text(self.step(i, -1)) in (".", "->", "::"):
                i = self.step(self.step(i, -1), -1)
            else:
                return i

    def _end_of_unit(self, i: int) -> int:
        """Return the last token of the name, number, call, index or bracket that begins at token i."""
        while self.text(i) in ("-", "!", "*", "&"):
            i = self.step(i)
        while True:
            if self.text(i) in ("(", "["):
                closing = find_closing(self.tokens, i)
                if closing < 0:
                    return i
                i = closing
            after = self.step(i)
            if self.text(after) in (".", "->", "::"):
                i = self.step(after)
            elif self.text(after) in ("(", "[") or self._is_cast(i, after):
                i = after
            else:
                return i

    def _is_cast(self, closing: int, after: int) -> bool:
        """Return whether the ) at a token is that of a cast, as in `(float)n`."""
        return self.text(closing) == ")" and self.tokens[after].kind in ("word", "number")

    def is_free(self, start: int, end: int) -> bool:
        """Return whether tokens [start, end) are in one line and none is protected."""
        return "\n" not in self.raw(start, end) and not any(k in self.protected for k in range(start, end))

    def semicolon_after(self, i: int, limit: int) -> int:
        """Return the semicolon that ends the statement at token i."""
        depth = 0
        for j in range(i, limit):
            text = self.text(j)
            if self.tokens[j].kind == "mark":
                depth += (text in "([{") - (text in ")]}") if len(text) == 1 else 0
            if text == ";" and depth <= 0:
                return j
        return limit - 1

    def assigned_by(self, i: int) -> str:
        """Return the variable to which the statement around token i assigns."""
        start = i
        while start > 0 and self.text(start) not in (";", "{", "}"):
            start -= 1
        name = self.step(start)
        return self.text(name) if self.text(self.step(name)) == "=" else ""


def split_terms(tokens: list[Token], mark: str) -> list[list[Token]]:
    """Return the parts between the marks outside of brackets; one part if there is any operator but + and *."""
    parts, depth = [[]], 0
    for token in tokens:
        if token.kind == "mark" and len(token.text) == 1:
            depth += (token.text in "([{") - (token.text in ")]}")
        if depth == 0 and token.kind == "mark" and token.text in ("?", ":", "-", "/", ",", "%", "&&", "||", "<", ">"):
            return [tokens]
        if token.text == mark and depth == 0 and token.kind == "mark" and any(t.kind != "space" for t in parts[-1]):
            parts.append([])
        else:
            parts[-1].append(token)
    return parts
