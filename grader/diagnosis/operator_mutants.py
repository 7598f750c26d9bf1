"""Make the mutants of operators, comparisons and indices."""

from __future__ import annotations

import dataclasses
import re

from grader.diagnosis.cuda_map import SourceMap, split_terms
from simt.frontend.tokens import find_closing

OPERATORS = {
    "+": ("Add", "term", 4),
    "-": ("Sub", "term", 3),
    "*": ("Mul", "operator", 4),
    "/": ("Div", "operator", 5),
    "%": ("Mod", "operator", 3),
}
# What an operation needs instead of its result, where that is no part of it.
ONE_MORE, ROUNDED_UP = "one more", "rounded up"
ONE_LESS = "one less"
# The tag of each comparison, and what its mutants compare by, in the order of the cases in mutant_prelude; two more are
# always true and always false.
COMPARISONS = {
    "<": ("Lt", ("<=", ">=", ">")),
    "<=": ("Le", ("<", ">", ">=")),
    ">": ("Gt", (">=", "<=", "<")),
    ">=": ("Ge", (">", "<", "<=")),
}


class OperatorMutants(SourceMap):
    """Mutates the operators of the current function."""

    def edit_operator(self, i: int, before: int, after: int) -> None:
        """Mutate an operator, a comparison, an index or an assignment at token i, between two operands."""
        token = self.tokens[i]
        if token.text in OPERATORS:
            tag, kind, count = OPERATORS[token.text]
            what, needed = self._quote_operation(i)
            number = self.add(i, kind, count, what=what, needed=needed)
            if number is not None:
                twin = self._find_twin(i, kind, count)
                line = token.line if self.function.gpu else -token.line
                self.after.setdefault(i, []).append(f" grader_edits::{tag}{{{number}, {line}, {twin}}} {token.text}")
        elif token.text in COMPARISONS:
            tag, instead = COMPARISONS[token.text]
            number = self.add(i, "comparison", len(instead) + 2, what=self._quote_operation(i)[0], needed=instead)
            if number is not None:
                self.after.setdefault(i, []).append(f" grader_edits::{tag}{{{number}}} {token.text}")
            self._test_for_zero(i)
        elif token.text == "[" and (closing := find_closing(self.tokens, i)) > 0 and self.function.gpu:
            array = self.name_array(before)
            what = "" if array == "0" else array.partition("[")[0]
            number = self.add(i, "index", 2, what=what, needed=[ONE_MORE, ONE_LESS])
            if number is not None and array:
                self.wrap(after, f"grader_edits::index({number}, {token.line}, {array}, ", self.step(closing, -1), ")")
        elif token.text == "=" or token.text in ("+=", "-="):
            self._regroup(i)

    def _test_for_zero(self, i: int) -> None:
        """Test `v != 0.0f` in place of `v > 0.0f`, wherever the source has this comparison with 0."""
        first, last = self.operands(i)
        sign = self.text(i)
        if (
            sign not in ("<", ">")
            or not self.function.gpu
            or not 0 <= first < i < last
            or not self.is_free(first, last)
        ):
            return
        left, right = self.raw(first, i).strip(), self.raw(i + 1, last + 1).strip()
        if not re.fullmatch(r"0?\.0*f?|0\.0*f?", right) or self.tokens[i].line in self.skip:
            return
        what, needed = self._quote_operation(i)[0], f"{' '.join(left.split())} != {right}"
        if ("zero", sign) not in self.twins:
            self.twins["zero", sign] = self.add(i, "sign", what=what, needed=[needed] if what else []) or 0
        if number := self.twins["zero", sign]:
            self.wrap(first, f"(grader_mutant == {number} ? ({left}) != ({right}) : (", last, "))")

    def _quote_operation(self, i: int) -> tuple[str, list[str]]:
        """Return the operation at token i as the student wrote it, and what each of its mutants needs instead.

        The order is that of the cases in mutant_prelude.
        """
        first, last = self.operands(i)
        if not 0 <= first < i < last:
            return "", []
        left, right = self.quote(first, self.step(i, -1) + 1), self.quote(self.step(i), last + 1)
        needed = {
            "+": [f"{left} - {right}", left, right, f"{left} * {right}"],
            "-": [f"{left} + {right}", left, ONE_MORE],
            "*": [f"{left} / {right}", left, right, f"{left} + {right}"],
            "/": [f"{left} * {right}", left, f"{left} % {right}", ROUNDED_UP, ONE_MORE],
            "%": [f"{left} / {right}", left, f"{left} * {right}"],
        }
        return self.quote(first, last + 1), needed.get(self.text(i), [])

    def _find_twin(self, i: int, kind: str, count: int) -> int:
        """Return the number of a mutant of all like operators in a statement `a = H - K, b = W - K`, or 0."""
        start, ordinal, place = i, 0, 0
        while start > self.function.start and self.text(start - 1) not in (";", "{", "}"):
            start -= 1
            ordinal += self.text(start) == self.text(i) and not place
            place = place or (start if self.text(start) == "=" else 0)
        end = self.semicolon_after(i, self.function.end)
        initials = [
            re.sub(r"\w+", "v", part.partition("=")[2].strip())
            for part in self.raw(start, end).split(",")
            if "=" in part
        ]
        if self.function.gpu or not place or len(initials) < 2 or len(set(initials)) == len(initials):
            return 0
        key = (start, self.text(i), ordinal, re.sub(r"\w+", "v", self.raw(place + 1, i).strip()))
        what, needed = self._quote_operation(i)
        if key not in self.twins:
            changes = [one if one in (ONE_MORE, ROUNDED_UP) else "" for one in needed]
            self.twins[key] = self.add(i, kind, count, what=what, needed=changes) or 0
        elif what:
            self._quote_also(self.twins[key], count, what)
        return self.twins[key]

    def _quote_also(self, number: int, count: int, what: str) -> None:
        """Let the mutants from `number` on quote one more expression that they change."""
        for at, one in enumerate(self.mutants):
            if number <= one.number < number + count:
                self.mutants[at] = dataclasses.replace(one, what=f"{one.what}` and `{what}" if one.what else what)

    def name_array(self, i: int) -> str:
        """Return the operand of a [ as an expression of the same type: `a`, or `a[0]` for a[k]."""
        brackets = ""
        while self.text(i) == "]":
            depth = 0
            while i > 0:
                depth += (self.text(i) == "]") - (self.text(i) == "[")
                if depth == 0:
                    break
                i -= 1
            i, brackets = self.step(i, -1), brackets + "[0]"
        plain = self.tokens[i].kind == "word" and self.text(self.step(i, -1)) not in (".", "->", "::")
        return self.text(i) + brackets if plain else "0"

    def _regroup(self, i: int) -> None:
        """Compute a + b * c as (a + b) * c, where that is all to the right of an assignment."""
        end = self.semicolon_after(i, self.function.end)
        if not self.function.gpu or not self.is_free(i + 1, end):
            return
        terms = split_terms(self.tokens[i + 1 : end], "+")
        if len(terms) != 2:
            return
        factors = split_terms(terms[1], "*")
        if len(factors) < 2:
            return
        first, *rest = ("".join(t.text for t in part) for part in factors)
        pointers = {v.name for v in self.visible(i) if "*" in v.kind}
        if any(
            t.text in pointers and not re.search(rf"\b{t.text}\s*\[", "".join(t.text for t in terms[0]))
            for t in terms[0]
        ):
            return
        summed = " + ".join(("".join(t.text for t in terms[0]).strip(), first.strip()))
        if (number := self.add(i, "parentheses", what=summed if "\n" not in summed else "")) is None:
            return
        text = f"(({''.join(t.text for t in terms[0])}) + ({first})) * {' * '.join(rest)}"
        self.before.setdefault(self.step(i), []).insert(0, f"grader_mutant == {number} ? ({text}) : (")
        self.after.setdefault(self.step(end, -1), []).append(")")
