"""Mark the ends of __device__ functions that have a result, so that a checked build reports who gets there."""

from __future__ import annotations

from simt.frontend.source import Source
from simt.frontend.tokens import Token, find_next, find_opening, get_text


def mark_ends(tokens: list[Token], source: Source) -> None:
    """Add a call of simt::reach_end, on the same line, before the } of each such function.

    tokens: a copy of the source's tokens. Left out are functions whose last statement is a return or in whose head the
    word void stands, and lambdas. Which of the others have no result, as constructors, is seen when a thread is there.
    """
    for start, end in source.bodies:
        if end < 0 or tokens[end].text != "}":
            continue
        head = _find_head(source.tokens, start)
        is_constructor = ":" in head  # and the { belongs to a member's value
        if (
            "__device__" in head
            and "void" not in head
            and not is_constructor
            and not _ends_with_return(source.tokens, end)
        ):
            tokens[end].kind, tokens[end].text = "rewritten", "::simt::reach_end(__PRETTY_FUNCTION__); }"


def _find_head(tokens: list[Token], start: int) -> list[str]:
    """Return the words and marks before the { at start, back to the end of the declaration before."""
    head: list[str] = []
    i = start
    while (i := find_next(tokens, i, -1)) >= 0 and tokens[i].text not in (";", "{", "}"):
        if tokens[i].text == "]":  # a lambda's capture, or an array
            return []
        head.append(tokens[i].text)
    return head[::-1]


def _ends_with_return(tokens: list[Token], end: int) -> bool:
    """Return whether the last statement before the } at end is `return …;`, without a condition before it."""
    i = find_next(tokens, end, -1)
    first = i
    if get_text(tokens, i) != ";":
        return False
    while (i := find_next(tokens, i, -1)) >= 0 and tokens[i].text not in (";", "{"):
        if tokens[i].text == "}":
            opening = find_opening(tokens, i, "{", "}")
            before = find_next(tokens, opening, -1)
            if tokens[before].kind != "word" and get_text(tokens, before) != ">":  # ends the statement before
                break
            i = opening  # a value in braces: return Pair{a, b};
        elif tokens[i].text == ")":
            i = find_opening(tokens, i, "(", ")")
        first = i
    return get_text(tokens, first) == "return"
