"""Refuse assignments to CUDA's built-in variables, such as threadIdx.x = 0: nvcc refuses them too."""

from __future__ import annotations

import re

from simt.errors import CompileError
from simt.frontend.source import Source
from simt.frontend.tokens import Token, find_next, get_text

BUILT_INS = frozenset(("threadIdx", "blockIdx", "blockDim", "gridDim"))
_ASSIGNS = re.compile(r"=(?!=)|\+\+|--|(?:[-+*/%&|^]|<<|>>)=(?!=)")


def refuse_assigned_built_ins(source: Source) -> None:
    """Raise CompileError with each line of a __global__ or __device__ function that assigns to a built-in variable.

    A macro or a variable of the source with such a name is the student's own.
    """
    names = (BUILT_INS & source.words) - source.macros
    if not names:
        return
    tokens = source.tokens
    names = {name for name in names if not _is_declared(source, name)}
    found: dict[int, str] = {}
    for first, last in source.bodies:
        for i in range(first, last):
            if tokens[i].kind == "word" and tokens[i].text in names and (name := _read_assigned(tokens, i)):
                found.setdefault(tokens[i].line, name)
    if found:
        text = "is a built-in variable, which cannot be assigned to"
        instead = "write `==` to compare, or assign to a variable of your own"
        raise CompileError(
            [source.make_error(line, f"`{name}` {text}; {instead}.") for line, name in sorted(found.items())]
        )


def _read_assigned(tokens: list[Token], i: int) -> str:
    """Return the built-in variable at i, with its member, if an operator before or behind it changes it, or ""."""
    if get_text(tokens, find_next(tokens, i, -1)) in (".", "->", "::"):
        return ""
    name, end = tokens[i].text, i
    dot = find_next(tokens, i)
    member = find_next(tokens, dot) if get_text(tokens, dot) == "." else -1
    if get_text(tokens, member) in ("x", "y", "z"):
        name, end = f"{name}.{tokens[member].text}", member
    before = "".join(t.text for t in tokens[max(i - 2, 0) : i])
    if before in ("++", "--"):
        return name
    operator = find_next(tokens, end)
    behind = "".join(t.text for t in tokens[operator : operator + 4]) if operator >= 0 else ""
    return name if _ASSIGNS.match(behind) else ""


def _is_declared(source: Source, name: str) -> bool:
    """Return whether the source declares a variable of this name: a type, or a & behind one, stands before it."""
    tokens = source.tokens
    for i, token in enumerate(tokens):
        if token.kind != "word" or token.text != name:
            continue
        before = find_next(tokens, i, -1)
        if get_text(tokens, before) in ("&", "*"):
            before = find_next(tokens, before, -1)
        if get_text(tokens, before) in ("uint3", "dim3", "int3", "auto", "int", "const"):
            return True
    return False
