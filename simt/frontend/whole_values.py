"""Rewrite `*p = {a, b, c, d};` so that the value is stored as a whole.

For a float4, g++ splits such an assignment into four stores, and nvcc makes one store of 16 bytes. So it does for
`make_float4`, `float4{…}` and `float4()` of constants. If the value is the result of a function, both compilers make
one store.
"""

from __future__ import annotations

import re
from itertools import pairwise

from simt.frontend.tokens import Token, find_angle_start, find_closing, find_next, find_opening, get_text

_VECTOR = re.compile(r"(make_)?(u?(char|short|int|long|longlong)|float|double)[1-4]")
_CONTROL = ("if", "for", "while", "switch", "constexpr")


def store_whole(tokens: list[Token]) -> None:
    """Rewrite `LEFT = {…}` to `LEFT = ::simt::whole<decltype(LEFT)>({…})` where LEFT is something in memory and a
    statement begins with it; and so the values `float4{…}`, `float4()` and `make_float4(…)`.
    """
    for i, token in enumerate(tokens):
        if token.text != "=" or token.kind != "mark":
            continue
        value = find_next(tokens, i)
        braced = get_text(tokens, value) == "{"
        end = find_closing(tokens, value) if braced else _find_vector_end(tokens, value)
        start = find_left_start(tokens, i) if end >= 0 else -1
        if start < 0:
            continue
        left = tokens[start:i]
        if left[0].text != "*" and not any(t.text in ("[", "->") for t in left):
            continue
        if left[0].kind == "word" and _declares_pointers(left):
            continue
        words = "".join(" " if t.kind in ("space", "comment") else t.text for t in left).strip()
        token.text, token.kind = f"= ::simt::whole<decltype({words})>(", "rewritten"
        tokens[end].text, tokens[end].kind = tokens[end].text + ")", "rewritten"


def _find_vector_end(tokens: list[Token], i: int) -> int:
    """Return the index of the last token of the value `float4{…}`, `float4()` or `make_float4(…)` at i, or -1."""
    name, opening = get_text(tokens, i), find_next(tokens, i)
    if not _VECTOR.fullmatch(name) or get_text(tokens, opening) not in ("(", "{"):
        return -1
    end = find_closing(tokens, opening)
    if get_text(tokens, opening) == "(" and not name.startswith("make_") and end != find_next(tokens, opening):
        return -1
    return end if get_text(tokens, find_next(tokens, end)) == ";" else -1


def _declares_pointers(left: list[Token]) -> bool:
    """Return whether this is the declaration of pointers to functions: `void (*table[])(int)`."""
    texts = [t.text for t in left if t.kind not in ("space", "comment")]
    return texts[1:3] == ["(", "*"] and texts[-1] == ")" and (")", "(") in pairwise(texts)


def find_left_start(tokens: list[Token], i: int) -> int:
    """Return the index at which the expression before the = at i begins, or -1 if no statement begins there."""
    j = find_next(tokens, i, -1)
    while j >= 0:
        if tokens[j].text in ("]", ")"):
            start = find_opening(tokens, j, {"]": "[", ")": "("}[tokens[j].text], tokens[j].text)
            before = find_next(tokens, start, -1)
            if get_text(tokens, before) in _CONTROL:  # the brackets hold a condition
                j = find_next(tokens, j)
                break
            if get_text(tokens, before) in (">", ">>>") and tokens[start].text == "(":  # reinterpret_cast<float4*>(p)
                before = find_next(tokens, find_angle_start(tokens, before), -1)
            if before < 0 or not (get_text(tokens, before) in ("]", ")") or tokens[before].kind == "word"):
                j = start
                break
            j = before
        elif tokens[j].kind == "word":
            before = find_next(tokens, j, -1)
            cast = find_next(tokens, before, -1)
            if get_text(tokens, before) == "&" and get_text(tokens, cast) == ")":  # *(float4*)&tile[0]
                j = cast
                continue
            if get_text(tokens, before) not in (".", "->", "::"):
                break
            j = cast
        else:
            return -1
    while get_text(tokens, find_next(tokens, j, -1)) == "*" and _begins_statement(
        tokens, find_next(tokens, find_next(tokens, j, -1), -1), "*"
    ):
        j = find_next(tokens, j, -1)
    return (
        j
        if j >= 0
        and tokens[j].text not in ("else", "do", "return", "auto")
        and _begins_statement(tokens, find_next(tokens, j, -1))
        else -1
    )


def _begins_statement(tokens: list[Token], before: int, *more: str) -> bool:
    """Return whether a statement begins after the token at `before`."""
    text = get_text(tokens, before)
    if text == "}" and _closes_type(tokens, before):
        return False
    if text == ")":
        condition = find_next(tokens, find_opening(tokens, before, "(", ")"), -1)
        return get_text(tokens, condition) in _CONTROL
    return text in (";", "{", "}", ":", "else", "do", *more)


def _closes_type(tokens: list[Token], i: int) -> bool:
    """Return whether the } at i ends a type's body and variables follow: `struct { int n; } table[] = {…}`."""
    j = find_next(tokens, find_opening(tokens, i, "{", "}"), -1)
    while j >= 0 and (tokens[j].kind == "word" or tokens[j].text in ("::", ":", ",", "<", ">")):
        if tokens[j].text in ("struct", "class", "union", "enum"):
            return True
        j = find_next(tokens, j, -1)
    return False
