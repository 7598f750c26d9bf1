"""Replace a program's own names of CUDA's qualifiers, as in `#define SHARED __shared__`, by what they stand for."""

from __future__ import annotations

import itertools
from collections import Counter

from simt.frontend.tokens import Token, find_directives, find_next, get_text

QUALIFIERS = frozenset(("__shared__", "__global__", "__constant__"))


def _take_line(tokens: list[Token], directives: dict[int, int], begins: int, start: int) -> list[Token]:
    """Return the tokens from `start` to the end of the directive whose # stands at `begins`."""
    inside = itertools.takewhile(lambda j: directives.get(j) == begins, itertools.count(start))
    return [tokens[j] for j in inside]


def expand_qualifier_macros(tokens: list[Token]) -> list[Token]:
    """Return the tokens with each use of such a macro replaced by its text, on the same line.

    A macro with parameters stays as it is, and so does one that is defined twice: which definition holds is for the
    preprocessor to tell. The passes that follow look for the qualifiers themselves.
    """
    directives = find_directives(tokens)
    defined: Counter[str] = Counter()
    meanings: dict[str, list[Token]] = {}
    for i, begins in directives.items():
        if tokens[i].text != "define" or find_next(tokens, begins) != i:
            continue
        name = find_next(tokens, i)
        defined[get_text(tokens, name)] += 1
        body = _take_line(tokens, directives, begins, name + 1)
        if QUALIFIERS.intersection(t.text for t in body) and body[0].text != "(":
            meanings[tokens[name].text] = [t for t in body if t.kind != "comment" and "\n" not in t.text]
    meanings = {name: body for name, body in meanings.items() if defined[name] == 1}
    if not meanings:
        return tokens
    expanded: list[Token] = []
    for i, token in enumerate(tokens):
        body = meanings.get(token.text) if token.kind == "word" and i not in directives else None
        expanded += [Token(t.kind, t.text, token.line) for t in body] if body else [token]
    return expanded
