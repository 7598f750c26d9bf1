"""Make the mutants of numbers, variables and calls."""

from __future__ import annotations

import dataclasses
import re

from grader.diagnosis.cuda_functions import Variable
from grader.diagnosis.cuda_map import ASSIGNS
from grader.diagnosis.operator_mutants import OperatorMutants
from grader.diagnosis.sequence_mutants import SequenceMutants
from simt.frontend.tokens import find_closing

MATH = {
    "expf",
    "exp",
    "logf",
    "log",
    "sqrtf",
    "sqrt",
    "rsqrtf",
    "rsqrt",
    "tanhf",
    "tanh",
    "fabsf",
    "fabs",
    "__expf",
    "__logf",
}
EXCHANGED = {
    "fmaxf": "fminf",
    "fminf": "fmaxf",
    "sqrtf": "rsqrtf",
    "rsqrtf": "sqrtf",
    "max": "min",
    "min": "max",
    "fmax": "fmin",
    "fmin": "fmax",
}


@dataclasses.dataclass(frozen=True)
class Substitute:
    """An expression that may be meant instead of a variable. kind, what, needed, until: of its mutant."""

    text: str
    kind: str
    what: str
    needed: str = ""
    until: int = 0


def _list_other_numbers(text: str) -> list[str]:
    """Return what each mutant of a number has in its place, in the order of the cases in mutant_prelude."""
    digits = text.rstrip("fuUlL")
    suffix = text[len(digits) :]
    if "." not in text:
        value = int(digits, 8) if re.fullmatch("0[0-7]+", digits) else int(digits)
        return [f"{one}{suffix}" for one in (value + 1, value - 1, 2 * value, value // 2, 1, 0)]
    value = float(digits)
    others = [repr(one) + suffix for one in (value + 1, value - 1, 2 * value, value / 2, 1.0, 0.0)]
    return [*others, "-INFINITY", "INFINITY"]


class TokenMutants(OperatorMutants, SequenceMutants):
    """Mutates the tokens of the current function."""

    def edit_token(self, i: int) -> None:
        token, before, after = self.tokens[i], self.step(i, -1), self.step(i)
        if token.kind == "number":
            self._edit_number(i)
        elif token.kind == "word":
            self._edit_word(i, before, after)
        elif token.kind == "mark" and before >= 0 and self.ends_operand(before):
            self.edit_operator(i, before, after)

    def _edit_number(self, i: int) -> None:
        text = self.tokens[i].text
        if not re.fullmatch(r"\d+[uUlL]*|\d*\.\d*(?:e-?\d+)?f?", text):
            return
        count = 8 if "." in text else 6
        number = self.add(i, "number", count, what=text, needed=_list_other_numbers(text))
        if number is not None:
            self.wrap(
                i, f"(unsigned(grader_mutant - {number}) < {count}u ? grader_edits::number({number}, {text}) : ", i, ")"
            )
        if self.function.gpu and self.text(self.step(i, -1)) == "[" and self.text(self.step(i)) == "]":
            self._vary_fixed_index(i, text)

    def _vary_fixed_index(self, i: int, text: str) -> None:
        """Use the variable of a loop in place of a number that is a whole index."""
        names = sorted({v.name for v in self.visible(i) if v.kind == "int" and v.bound and not v.parameter})
        array = self.name_array(self.step(self.step(i, -1), -1))
        what, needed = text, names
        if array not in ("0", "") and "[" not in array:
            what, needed = f"{array}[{text}]", [f"{array}[{name}]" for name in names]
        number = self.add(i, "variable", len(names), what=what, needed=needed) if names else None
        if number is not None:
            chain = "".join(f"grader_mutant == {number + k} ? {name} : " for k, name in enumerate(names))
            self.wrap(i, f"({chain}", i, ")")

    def _edit_word(self, i: int, before: int, after: int) -> None:
        name = self.tokens[i].text
        if name in ("threadIdx", "blockIdx", "blockDim", "gridDim") and self.text(after) == ".":
            self._edit_builtin(i, after)
            return
        if self.text(before) in (".", "->", "::") or self.text(after) in ("::", ".", "->"):
            return
        if self.text(after) == "(":
            self._edit_call(i, name, after)
            return
        address = self.text(before) == "&" and not self.ends_operand(self.step(before, -1))
        if (
            self.text(after) in ASSIGNS
            or self.text(after) in ("++", "--")
            or self.text(before) in ("++", "--")
            or address
        ):
            return
        variable = next((v for v in reversed(self.visible(i)) if v.name == name), None)
        if variable is not None and variable.shape:
            self._exchange_array(i, variable)
        if variable is None or not variable.kind:
            return
        others = [
            Substitute(v.name, "variable", name, v.name)
            for v in self.visible(i)
            if v.kind == variable.kind and v.name != name and v.parameter is variable.parameter
        ]
        others += [Substitute(variable.first, "first value", name)] if variable.first else []
        if before_it := self.find_overwritten(i):
            others.append(Substitute(before_it[0], "too early", name, until=before_it[1]))
        for start in self.find_tile_starts(i, variable) if self.function.gpu else ():
            others.append(Substitute(f"({name} - {start})", "tile start", name, f"{name} - {start}"))
        if own := self.find_own_value(i, variable):
            others.append(Substitute(f"({name} - {own})", "own value", name, own))
        others += self._find_substitutes(i, variable)
        self._substitute(i, name, others, "*" in variable.kind)
        if variable.kind == "int" and not variable.parameter and self.function.gpu:
            self._swap_in_index(i, name)

    def _exchange_array(self, i: int, variable: Variable) -> None:
        """Read another array of the same type and sizes in place of this one."""
        closing = self.step(i)
        while self.text(closing) == "[" and (end := find_closing(self.tokens, closing)) > 0:
            closing = self.step(end)
        if not self.function.gpu or closing == self.step(i) or self.text(closing) in ASSIGNS:
            return
        others = sorted({v.name for v in self.visible(i) if v.shape == variable.shape and v.name != variable.name})
        self._substitute(i, variable.name, [Substitute(v, "variable", variable.name, v) for v in others], True)

    def _substitute(self, i: int, name: str, others: list[Substitute], pointer: bool) -> None:
        others = list(dict.fromkeys(others))
        if not others:
            return
        start = None
        for one in others:
            number = self.add(i, one.kind, until=one.until, what=one.what, needed=[one.needed])
            start = number if start is None else start
        if start is not None and pointer:
            self.instead[i] = f"grader_edits::pick({start}, {name}, {', '.join(one.text for one in others)})"
        elif start is not None:
            # A ternary of pointers before an index is not used: g++ 12 miscompiles it here, and crashes from -O1 on.
            chain = "".join(
                f"grader_mutant == {start + k} ? (decltype({name}))({one.text}) : " for k, one in enumerate(others)
            )
            self.instead[i] = f"(unsigned(grader_mutant - {start}) < {len(others)}u ? ({chain}{name}) : {name})"

    def _swap_in_index(self, i: int, name: str) -> None:
        """Swap the variable and another one in an index where each occurs once."""
        bracket = self.bracket_around(i)
        if bracket is None:
            return
        words = [t.text for t in self.tokens[bracket[0] : bracket[1]] if t.kind == "word"]
        others = {
            v.name
            for v in self.visible(i)
            if v.kind == "int" and not v.parameter and v.name != name and words.count(v.name) == 1
        }
        for other in sorted(others) if words.count(name) == 1 else ():
            key = (bracket[0], *sorted((name, other)))
            if key not in self.twins:
                self.twins[key] = self.add(i, "swapped", what=name, needed=[other]) or 0
            text = self.instead.get(i, name)
            self.instead[i] = (
                f"(grader_mutant == {self.twins[key]} ? (decltype({name}))({other}) : {text})"
                if self.twins[key]
                else text
            )

    def _edit_builtin(self, i: int, dot: int) -> None:
        axis = self.step(dot)
        if self.text(axis) not in ("x", "y", "z") or self.text(self.step(axis)) in ASSIGNS:
            return
        name = self.tokens[i].text
        others = [f"{name}.{other}" for other in "xyz" if other != self.text(axis)]
        if name == "threadIdx":
            others.append(f"(blockIdx.{self.text(axis)} * blockDim.{self.text(axis)} + threadIdx.{self.text(axis)})")
        what = f"{name}.{self.text(axis)}"
        number = self.add(i, "variable", len(others), what=what, needed=[other.strip("()") for other in others])
        if number is not None:
            self.wrap(i, f"grader_edits::pick({number}, ", axis, f", {', '.join(others)})")

    def _find_substitutes(self, i: int, variable: Variable) -> list[Substitute]:
        """Return expressions that may be meant instead of the variable.

        They add an outer index or an unused parameter to the variable, or rescale it.
        """
        found = []
        bracket = self.bracket_around(i)
        if variable.kind == "int" and bracket and variable.bound:
            inside = {t.text for t in self.tokens[bracket[0] : bracket[1]] if t.kind == "word"}
            array = self.name_array(self.step(bracket[0], -1)).partition("[")[0]
            for other in self.visible(i):
                if (
                    other.kind == "int"
                    and not other.parameter
                    and other.name not in inside
                    and other.name != variable.name
                ):
                    index = f"{other.name} * {variable.bound} + {variable.name}"
                    found.append(Substitute(f"({index})", "outer index", "" if array == "0" else array, index))
        if variable.kind == "float":
            used = [t.text for t in self.tokens[self.function.start : self.function.end] if t.kind == "word"]
            unused = [
                v.name for v in self.function.variables if v.parameter and v.kind == "float" and v.name not in used
            ]
            found += [
                Substitute(f"({variable.name} {sign} {name})", "unused", name, f"{variable.name} {sign} {name}")
                for name in unused
                for sign in "+-*"
            ]
            if self.assigned_by(i) == variable.name and {"expf", "exp"} & {*used}:
                floats = [v.name for v in self.visible(i) if v.kind == "float" and v.name != variable.name]
                factors = [f"expf({a} - {b})" for a in floats for b in floats if a != b]
                found += [
                    Substitute(f"({variable.name} * {factor})", "scale", variable.name, factor) for factor in factors
                ]
        return found

    def _edit_call(self, i: int, name: str, opening: int) -> None:
        closing = find_closing(self.tokens, opening)
        if closing < 0 or not self.function.gpu or not self.is_free(i, closing):
            return
        argument = self.raw(opening + 1, closing)
        own = next((f for f in self.functions if f.name == name and f.gpu and not f.kernel), None)
        single = name in MATH or (
            own is not None and len([v for v in own.variables if v.parameter]) == 1 and own.variables[0].kind == "float"
        )
        if single and (number := self.add(i, "call", what=name)) is not None:
            self.wrap(i, f"(grader_mutant == {number} ? ({argument}) : ", closing, ")")
        if name in MATH:
            self.instead[i] = (
                f"grader_edits::known({self.tokens[i].line}, [](auto grader_v) {{ return {name}(grader_v); }})"
            )
            floats = [v.name for v in self.visible(i) if v.kind == "float" and not v.parameter]
            choices = [f"(({argument}) {sign} {other})" for other in floats for sign in "-+*"]
            missing = [f"{sign} {other}" for other in floats for sign in "-+*"]
            number = self.add(i, "argument", len(choices), what=name, needed=missing) if choices else None
            if number is not None:
                text = "".join(f"grader_mutant == {number + k} ? {choice} : " for k, choice in enumerate(choices))
                self.wrap(self.step(opening), f"{text}(", self.step(closing, -1), ")")
        other = EXCHANGED.get(name, "")
        if other and (number := self.add(i, "function", what=name, needed=[other])) is not None:
            called = self.instead.get(i, f"[](auto... grader_v) {{ return {name}(grader_v...); }}")
            exchanged = f"[](auto... grader_v) {{ return {other}(grader_v...); }}"
            self.instead[i] = f"grader_edits::either({number}, {called}, {exchanged})"
