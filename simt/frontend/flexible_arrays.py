"""Mark types that end with an array without a length, `struct Row { int n; float values[]; };`.

g++ cannot compute where the padding of such a type is, and no template can ask whether a type is one. A checked build
leaves out the padding of the types that this pass marks with a member enumeration.
"""

from __future__ import annotations

from simt.frontend.source import Source
from simt.frontend.tokens import Token, find_closing, find_next, get_text

_MARK = " enum { simt_flexible };"
_NO_MEMBER = ("extern", "static", "typedef", "using")


def mark_flexible_arrays(tokens: list[Token], source: Source) -> None:
    """Add the mark, on the same line, after each such member, and after each member that is of such a type.

    tokens: a copy of the source's tokens.
    """
    marked: set[str] = set()
    for i, token in enumerate(tokens):
        if token.text == "[" and token.kind == "mark" and i not in source.directives:
            end = find_next(tokens, closing := find_next(tokens, i))
            while get_text(tokens, closing) == "]" and get_text(tokens, end) == "[":  # rows[][4]
                end = find_next(tokens, find_closing(tokens, end))
            if (get_text(tokens, closing), get_text(tokens, end)) == ("]", ";"):
                marked |= _mark(tokens, i, end)
    more = marked
    while more:
        marked, more = marked | more, set()
        for i, token in enumerate(tokens):
            if token.text not in marked or token.kind != "word" or i in source.directives:
                continue
            name = find_next(tokens, i)
            end = find_next(tokens, name)
            if name >= 0 and tokens[name].kind == "word" and get_text(tokens, end) == ";":
                more |= _mark(tokens, i, end)
        more -= marked


def _mark(tokens: list[Token], i: int, end: int) -> set[str]:
    """Add the mark at the end of the member in whose declaration i lies, and return the names of its type.

    Nothing is done if it is no member of a named type, or of one that has variables.
    """
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
        return set()
    after = find_next(tokens, find_closing(tokens, j))
    words = []
    while (j := find_next(tokens, j, -1)) >= 0 and tokens[j].text[:1] not in (";", "{", "}", ")", "="):
        words.append(tokens[j].text)
    at = next((k for k, word in enumerate(words) if word in ("struct", "class")), -1)
    if at < 0:
        return set()
    tokens[end].kind, tokens[end].text = "rewritten", tokens[end].text + _MARK
    return set(words[max(at - 1, 0) : at]) | ({get_text(tokens, after)} if "typedef" in words else set())
