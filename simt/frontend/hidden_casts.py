"""Hide from the compiler what a cast of a pointer points to, so that a checked build sees each access as a GPU does.

Of an address in a variable that it knows, such as `(float2*)&tile[1]`, g++ finds out that it is not aligned, and treats
the access as one of single bytes. A GPU stops there.
"""

from __future__ import annotations

from simt.frontend.source import Source
from simt.frontend.tokens import Token, find_angle_end, find_closing, find_next, get_text

_NO_OPERAND = {"const", "noexcept", "override", "final", "volatile", "mutable", "and", "or", "xor"}
_BEFORE_CAST = {"return", "else", "case", "do", "throw", "co_return", "and", "or", "not"}
_IN_TYPE = {"::", "<", ">", ",", "*"}


def hide_casts(tokens: list[Token], source: Source) -> None:
    """Rewrite casts to pointers and references in device functions and macros to those of simt/include/simt/runtime.h.

    tokens: a copy of the source's tokens.
    """
    ranges = [range(start, end) for start, end in source.bodies]
    for i in {i for each in ranges for i in each} | source.directives.keys():
        if tokens[i].text == "reinterpret_cast" and tokens[i].kind == "word":
            _hide_reinterpret_cast(tokens, i)
        elif tokens[i].text == "(" and tokens[i].kind == "mark" and (end := _find_cast_end(tokens, i)) >= 0:
            tokens[i].kind = tokens[end].kind = "rewritten"  # both, so that brackets around them still fit together
            tokens[end].text = ")(::simt::Hidden)"


def _hide_reinterpret_cast(tokens: list[Token], i: int) -> None:
    """Rewrite `reinterpret_cast<T*>(p)` at i, or `reinterpret_cast<T&>(x)`."""
    end = find_angle_end(tokens, find_next(tokens, i))
    last, opening = find_next(tokens, end, -1), find_next(tokens, end)
    closing = find_closing(tokens, opening) if end >= 0 and get_text(tokens, opening) == "(" else -1
    if closing < 0 or tokens[last].text not in ("*", "&"):
        return
    tokens[i].kind, tokens[i].text = "rewritten", "::simt::hidden_cast"
    if tokens[last].text == "&":
        tokens[i].text = "(*::simt::hidden_cast"
        tokens[last].text, tokens[opening].text, tokens[closing].text = "*", "(&(", ")))"
        tokens[opening].kind = tokens[closing].kind = "rewritten"


def _find_cast_end(tokens: list[Token], i: int) -> int:
    """Return the index of the ) that ends a cast `(T*)` whose ( is at i, or -1 if none begins there."""
    before = find_next(tokens, i, -1)
    if before >= 0 and (
        (tokens[before].kind == "word" and tokens[before].text not in _BEFORE_CAST)
        or tokens[before].text[-1:] in (")", "]")
    ):
        return -1
    j = find_next(tokens, i)
    if j < 0 or tokens[j].kind != "word":
        return -1
    last = i
    while j >= 0 and (tokens[j].kind in ("word", "number") or tokens[j].text in _IN_TYPE):
        last, j = j, find_next(tokens, j)
    operand = find_next(tokens, j)
    if get_text(tokens, j) != ")" or tokens[last].text != "*" or operand < 0:
        return -1
    is_operand = tokens[operand].kind in ("word", "number") and tokens[operand].text not in _NO_OPERAND
    return j if is_operand or tokens[operand].text in ("(", "&", "*") else -1
