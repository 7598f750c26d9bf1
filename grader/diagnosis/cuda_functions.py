"""Read a CUDA source as tokens, with its functions, their parameters, and the tokens that no mutant may change."""

from __future__ import annotations

import dataclasses
import re

from simt.frontend.tokens import Token, find_angle_end, find_closing, find_directives, find_next, get_text, tokenize

INTS = {
    "int",
    "unsigned",
    "long",
    "short",
    "size_t",
    "int64_t",
    "int32_t",
    "uint32_t",
    "uint64_t",
    "int16_t",
    "uint16_t",
    "uint8_t",
    "int8_t",
}
FLOATS = {"float", "double", "scalar_t"}
OTHERS = {
    "void",
    "bool",
    "char",
    "auto",
    "dim3",
    "half",
    "__half",
    "half2",
    "float2",
    "float3",
    "float4",
    "int2",
    "int4",
    "uint4",
    "double2",
    "T",
}
TYPES = INTS | FLOATS | OTHERS
PAIRED = (
    "<<=",
    ">>=",
    "&&",
    "||",
    "==",
    "!=",
    "<=",
    ">=",
    "+=",
    "-=",
    "*=",
    "/=",
    "%=",
    "&=",
    "|=",
    "^=",
    "++",
    "--",
    "<<",
    ">>",
)
CHECKS = re.compile(r"TORCH_\w+|C10_\w+|AT_\w+|CHECK\w*|static_assert|printf|assert|cuda\w+|PYBIND11_MODULE")


@dataclasses.dataclass
class Variable:
    """A parameter or a local variable.

    kind: "int", "float", a pointer's type, or "" for what is not edited. at: the token where it is declared. end: where
    its scope ends. first: the name of a copy of its first value. bound: the text of its upper bound, as far as known.
    shape: of an array, its type and sizes, `float[TILE][D]`.
    """

    name: str
    kind: str
    at: int
    end: int
    parameter: bool = False
    const: bool = False
    first: str = ""
    bound: str = ""
    init: str = ""
    shape: str = ""


@dataclasses.dataclass
class Function:
    """A function with a body. barriers, shared: whether it has any __syncthreads, any __shared__ array."""

    name: str
    gpu: bool
    kernel: bool
    start: int  # its {
    end: int  # its }
    variables: list[Variable] = dataclasses.field(default_factory=list)
    barriers: bool = False
    shared: bool = False


class FunctionReader:
    """The tokens of a CUDA source, and its functions. protected: tokens to leave as they are."""

    def __init__(self, source: str):
        self.tokens = _join_operators(tokenize(source))
        self.protected: set[int] = set(find_directives(self.tokens))
        self.functions: list[Function] = []

    def step(self, i: int, step: int = 1) -> int:
        """Return the next token in this direction that is neither space nor comment."""
        return find_next(self.tokens, i, step)

    def text(self, i: int) -> str:
        """Return the text of a token."""
        return get_text(self.tokens, i)

    def raw(self, start: int, end: int) -> str:
        """Return the source of tokens [start, end) without comments."""
        return "".join(" " if t.kind == "comment" else t.text for t in self.tokens[start:end])

    def find_functions(self) -> list[Function]:
        """Return the functions with a body that are not inside others."""
        found, i, head = [], 0, 0
        while i < len(self.tokens):
            token = self.tokens[i]
            if token.kind in ("space", "comment") or i in self.protected:
                head = i + 1 if i in self.protected else head
            elif token.text in (";", "}"):
                head = i + 1
            elif token.text == "(" and token.kind == "mark":
                i = max(i, find_closing(self.tokens, i))
            elif token.text == "{" and token.kind == "mark":
                closing = self.step(i, -1)
                while closing >= 0 and self.text(closing) in ("const", "noexcept"):
                    closing = self.step(closing, -1)
                end = find_closing(self.tokens, i)
                if self.text(closing) == ")" and end > 0:
                    found.append(self._read_function(head, closing, i, end))
                    i = end
                elif self.text(closing) == "=" or (
                    end > 0 and {"struct", "class", "enum", "union"} & {t.text for t in self.tokens[head:i]}
                ):
                    i = end
                head = i + 1
            i += 1
        return found

    def _read_function(self, head: int, closing: int, start: int, end: int) -> Function:
        depth, opening = 0, closing
        while opening > head:
            depth += (self.text(opening) == ")") - (self.text(opening) == "(")
            if depth == 0:
                break
            opening -= 1
        words = {t.text for t in self.tokens[head:opening]}
        inside = [t.text for t in self.tokens[start:end]]
        gpu = bool({"__global__", "__device__"} & words)
        made = Function(self.text(self.step(opening, -1)), gpu, "__global__" in words, start, end)
        made.barriers, made.shared = "__syncthreads" in inside, "__shared__" in inside
        self.protected |= set(range(head, start))
        depth, begun = 0, opening + 1
        for i in range(opening + 1, closing + 1):
            depth += (self.text(i) in ("(", "<", "[")) - (self.text(i) in (")", ">", "]"))
            if (self.text(i) == "," and depth == 0) or i == closing:
                variable = self._read_parameter(begun, i, start, end)
                made.variables += [variable] if variable else []
                begun = i + 1
        return made

    def _read_parameter(self, begun: int, until: int, start: int, end: int) -> Variable | None:
        words = [
            t.text for t in self.tokens[begun:until] if t.kind == "word" and t.text not in ("__restrict__", "volatile")
        ]
        marks = [t.text for t in self.tokens[begun:until] if t.kind == "mark"]
        if len(words) < 2 or "[" in marks:
            return None
        kind = kind_of([w for w in words[:-1] if w != "const"], "*" in marks)
        return Variable(words[-1], kind, start, end, True, "const" in words)

    def protect(self) -> None:
        """Protect constant expressions and what is no expression: template arguments, case labels, checks."""
        for i, token in enumerate(self.tokens):
            if (
                token.text in ("constexpr", "case", "template", "using", "typedef", "enum", "__launch_bounds__", "asm")
                and token.kind == "word"
            ):
                self.protected |= set(
                    range(i, self._skip_to(i, (";", ":") if token.text == "case" else (";", "{", "}", ")")))
                )
            elif (
                token.kind == "word"
                and CHECKS.fullmatch(token.text)
                and self.text(self.step(i)) == "("
                and not token.text.startswith("AT_DISPATCH")
            ):
                self.protected |= set(range(i, find_closing(self.tokens, self.step(i)) + 1))
            elif token.text == "<" and self._is_template(i):
                self.protected |= set(range(i, find_angle_end(self.tokens, i) + 1))

    def _skip_to(self, i: int, ends: tuple[str, ...]) -> int:
        while i < len(self.tokens) and self.text(i) not in ends:
            i += 1
        return i

    def _is_template(self, i: int) -> bool:
        end = find_angle_end(self.tokens, i)
        if end < 0 or self.tokens[self.step(i, -1)].kind != "word":
            return False
        inside = [t for t in self.tokens[i + 1 : end] if t.kind not in ("space", "comment")]
        if any(t.text == ";" for t in inside):  # `if (i < n) …; if (v > 0) …`: two comparisons
            return False
        after = self.text(self.step(end))
        typed = any(t.text in TYPES | {"const", "torch", "std", "at"} for t in inside)
        plain = all(t.kind in ("word", "number") or t.text in (",", "::") for t in inside)
        called = after == "(" and self.text(self.step(i, -1)) in {function.name for function in self.functions}
        return typed or ((after in ("::", "{") or called) and plain) or (after == "<<<" and bool(inside))


def kind_of(words: list[str], pointer: bool) -> str:
    """Return the kind of a variable by the words of its type; see Variable."""
    base = "int" if words and all(w in INTS for w in words) else "float" if words and words[-1] in FLOATS else ""
    return f"{words[-1]} *" if pointer and words else base


def _join_operators(tokens: list[Token]) -> list[Token]:
    """Return the tokens with operators of two or three characters as one."""
    made: list[Token] = []
    i = 0
    while i < len(tokens):
        for operator in PAIRED:
            part = tokens[i : i + len(operator)]
            if len(part) == len(operator) and all(t.kind == "mark" and t.text == c for t, c in zip(part, operator)):
                made.append(Token("mark", operator, tokens[i].line))
                i += len(operator)
                break
        else:
            made.append(tokens[i])
            i += 1
    return made
