"""Rewrite CUDA code once, so that many mutants of it can run one after another without compiling again.

Each small edit (another comparison, another variable, a term dropped, a barrier added, …) is a mutant with a number.
The variable `grader_mutant` of the built extension selects the active one; 0 selects none. This technique is called
mutant schemata (Untch, Offutt, Harrold 1993). An operator is replaced by two operators around a tag, `a * b` by
`a * Mul{7} * b`, which keeps precedence without a parser.
"""

from __future__ import annotations

from collections.abc import Collection

from grader.diagnosis.cuda_functions import Function
from grader.diagnosis.cuda_map import Mutant
from grader.diagnosis.mutant_prelude import PRELUDE
from grader.diagnosis.sequence_mutants import SequenceMutants
from grader.diagnosis.statement_mutants import StatementMutants
from grader.diagnosis.token_mutants import TokenMutants
from simt.frontend.tokens import find_closing

__all__ = ["BIRTH", "KINDS", "Mutant", "schema"]

# What a mutant of each kind changes, likeliest first: of two mutants that make equally many cases pass, the one whose
# kind comes first is reported.
KINDS = (
    "guard", "comparison", "sign", "index", "variable", "swapped", "first value", "operator", "term", "number", "order",
    "parentheses", "type", "outer index", "first pass", "shared loop", "unused", "function", "bounds test", "barrier",
    "scale", "unscaled", "too early", "own value", "tile start", "argument", "call", "identity", "each value",
    "sum factor", "condition", "statement",
)  # fmt: skip
BIRTH = -1  # no mutant: the kernel stops where a finite number becomes infinity or NaN


def schema(
    source: str, first: int = 1, skip: Collection[int] = frozenset(), prelude: bool = True
) -> tuple[str, list[Mutant]]:
    """Return the rewritten source, line for line, and its mutants, numbered from `first`.

    skip: lines to leave as they are.

    prelude: whether this is the first source of the extension, which must define what the others use too.
    """
    return _Rewriter(source, first, skip).make(prelude)


class _Rewriter(StatementMutants, TokenMutants, SequenceMutants):
    """Walks the functions of a source and places every mutant."""

    def make(self, prelude: bool) -> tuple[str, list[Mutant]]:
        """Return the rewritten source and its mutants."""
        self.functions = self.find_functions()
        self.protect()
        for function in self.functions:
            self._edit_function(function)
        parts = []
        for i, token in enumerate(self.tokens):
            parts += [*self.before.get(i, []), self.instead.get(i, token.text), *self.after.get(i, [])]
        head = " ".join(PRELUDE.split("\n")) if prelude else ""
        return head + "".join(parts), self.mutants

    def _edit_function(self, function: Function) -> None:
        self.function = function
        self.statements: list[tuple[int, int, bool]] = []  # first and last token, whether it is directly in { }
        self.loops = []
        self.blocks: list[list[tuple[int, int]]] = []  # the statements of each { }, as their first and last tokens
        self._walk_block(function.start, function.end)
        self.copy_first_values()
        self.copy_overwritten_values(self.blocks if function.gpu else [])
        for start, end, inside in self.statements:
            self.edit_statement(start, end, inside)
            if function.gpu:
                self.multiply_term(start, end)
        for block in self.blocks if function.gpu else ():
            self.edit_after_loops(block)
        self.scale_other_sums(self.blocks if function.gpu else [])
        for opening, closing in self.loops:
            self.edit_loop(opening, closing)
        for i in range(function.start + 1, function.end):
            if i not in self.protected:
                self.edit_token(i)
        if function.gpu:
            self.reorder_divisions()

    def _walk_block(self, opening: int, closing: int) -> None:
        """Walk the statements between { and }."""
        i, begun = self.step(opening), []
        self.depth += 1
        while 0 <= i < closing:
            end = self._walk_statement(i, closing, True)
            begun.append((i, end))
            i = self.step(end)
        self.blocks.append(begun)
        if self.function.gpu and self.function.shared:
            self.add_barriers(begun, closing)
        self.depth -= 1

    def _walk_statement(self, i: int, limit: int, inside: bool) -> int:
        """Walk the statement that begins at i; return its last token."""
        if i in self.protected and self.text(i) == "#":
            while i + 1 in self.protected and i + 1 < limit:
                i += 1
            return i
        text = self.text(i)
        if text == "{":
            end = find_closing(self.tokens, i)
            self._walk_block(i, end)
            return end
        if text in ("if", "for", "while", "switch") and self.text(self.step(i)) in ("(", "constexpr"):
            opening = self.step(i)
            if self.text(opening) == "constexpr":
                opening = self.step(opening)
                self.protected |= set(range(opening, find_closing(self.tokens, opening)))
            closing = find_closing(self.tokens, opening)
            if text == "if":
                self.edit_condition(opening, closing)
            elif text == "for":
                self.loops.append((opening, closing))
                self.declare_in_for(opening, closing, limit)
            end = self._walk_statement(self.step(closing), limit, False)
            after = self.step(end)
            return (
                self._walk_statement(self.step(after), limit, False)
                if text == "if" and self.text(after) == "else"
                else end
            )
        if text == "do":
            end = self._walk_statement(self.step(i), limit, False)
            return self.semicolon_after(end, limit)
        end = self.semicolon_after(i, limit)
        self.declare(i, end, limit)
        self.statements.append((i, end, inside))
        return end
