"""Has `*p = {a, b, c, d};` store a value as a whole.

g++ turns such an assignment to a float4 into four stores before anything else sees it; nvcc makes one of 16 bytes. With a
value that a function returns both make one.
"""

from __future__ import annotations

from .tokens import Token, angle_start, closing_of, next_token, opening_of, text_at

_CONTROL = ("if", "for", "while", "switch", "constexpr")


def store_whole(tokens: list[Token]) -> None:
    """Rewrites `LEFT = {…}` to `LEFT = ::simt::whole<decltype(LEFT)>({…})` where LEFT is something in memory and a statement begins with it."""
    for i, token in enumerate(tokens):
        opening = next_token(tokens, i)
        if token.text != "=" or token.kind != "mark" or text_at(tokens, opening) != "{":
            continue
        end, start = closing_of(tokens, opening), _left_start(tokens, i)
        if end < 0 or start < 0:
            continue
        left = tokens[start:i]
        if left[0].text != "*" and not any(t.text in ("[", "->") for t in left):
            continue
        words = "".join(" " if t.kind in ("space", "comment") else t.text for t in left).strip()
        token.text, token.kind = f"= ::simt::whole<decltype({words})>(", "rewritten"
        tokens[end].text, tokens[end].kind = "})", "rewritten"


def _left_start(tokens: list[Token], i: int) -> int:
    """Where the expression that ends before the = at i begins, if a statement does there; else -1."""
    j = next_token(tokens, i, -1)
    while j >= 0:
        if tokens[j].text in ("]", ")"):
            start = opening_of(tokens, j, {"]": "[", ")": "("}[tokens[j].text], tokens[j].text)
            before = next_token(tokens, start, -1)
            if text_at(tokens, before) in _CONTROL:  # that was the condition
                j = next_token(tokens, j)
                break
            if text_at(tokens, before) in (">", ">>>") and tokens[start].text == "(":  # reinterpret_cast<float4*>(p)
                before = next_token(tokens, angle_start(tokens, before), -1)
            if before < 0 or not (text_at(tokens, before) in ("]", ")") or tokens[before].kind == "word"):
                j = start
                break
            j = before
        elif tokens[j].kind == "word":
            before = next_token(tokens, j, -1)
            if text_at(tokens, before) not in (".", "->", "::"):
                break
            j = next_token(tokens, before, -1)
        else:
            return -1
    while text_at(tokens, next_token(tokens, j, -1)) == "*" and _begins(tokens, next_token(tokens, next_token(tokens, j, -1), -1), "*"):
        j = next_token(tokens, j, -1)
    return j if j >= 0 and tokens[j].text not in ("else", "do", "return", "auto") and _begins(tokens, next_token(tokens, j, -1)) else -1


def _begins(tokens: list[Token], before: int, *more: str) -> bool:
    """Whether a statement begins after the token at `before`."""
    text = text_at(tokens, before)
    if text == ")":
        condition = next_token(tokens, opening_of(tokens, before, "(", ")"), -1)
        return text_at(tokens, condition) in _CONTROL
    return text in (";", "{", "}", ":", "else", "do", *more)
