"""Mark types that end with an array without a length, `struct Row { int n; float values[]; };`.

g++ cannot compute where the padding of such a type is, and no template can ask whether a type is one. A checked build
leaves out the padding of the types that this pass marks with a member enumeration.
"""

from __future__ import annotations

from simt.frontend.source import Source
from simt.frontend.tokens import Token, find_next, get_text

_MARK = " enum { simt_flexible };"
_NO_MEMBER = ("extern", "static", "typedef", "using")


def mark_flexible_arrays(tokens: list[Token], source: Source) -> None:
    """Add the mark, on the same line, after each such member.

    tokens: a copy of the source's tokens.
    """
    for i, token in enumerate(tokens):
        if token.text != "[" or token.kind != "mark" or i in source.directives:
            continue
        closing = find_next(tokens, i)
        end = find_next(tokens, closing)
        if (get_text(tokens, closing), get_text(tokens, end)) == ("]", ";") and _is_member(tokens, i):
            tokens[end].kind, tokens[end].text = "rewritten", tokens[end].text + _MARK


def _is_member(tokens: list[Token], i: int) -> bool:
    """Return whether the array whose [ is at i is a member of a named type, or of one that has variables."""
    first = ""
    j = find_next(tokens, i, -1)
    while j >= 0 and tokens[j].text[:1] not in (";", "{", "}", ":", "(", ")", "="):
        first, j = tokens[j].text, find_next(tokens, j, -1)
    depth = 0
    while j >= 0:
        if tokens[j].kind == "mark":
            depth += (tokens[j].text == "}") - (tokens[j].text == "{")
            if depth < 0:
                break
        j -= 1
    if j < 0 or first in _NO_MEMBER:
        return False
    words = []
    while (j := find_next(tokens, j, -1)) >= 0 and tokens[j].text[:1] not in (";", "{", "}", ")", "="):
        words.append(tokens[j].text)
    return "struct" in words or "class" in words
