"""Have what a device function returns stored by the statement that calls it: `tile[i] = load(x, i);`.

Of a class that is copied as bytes, such as a uint4, g++ lets the call itself write to where the result goes, and a
checked build is told nothing of that store.
"""

from __future__ import annotations

from simt.frontend.source import Source
from simt.frontend.tokens import Token, find_next, find_opening, get_text
from simt.frontend.whole_values import find_left_start

# Results of these types are in a register, and the statement stores them.
_IN_REGISTERS = set("void bool char short int long unsigned signed float double * & &&".split())
_NO_TYPE = {"", "inline", "__inline__", "__noinline__", "__forceinline__", "__device__", "__host__", "const"}


def find_returned(tokens: list[Token], source: Source) -> list[tuple[int, int]]:
    """Return the places of the = and of the ; of each statement `LEFT = VALUE;` in device functions whose VALUE calls a
    function of the source that may return a class.

    tokens: a copy of the source's tokens, in which no cast is rewritten yet.
    """
    found = []
    functions = _find_functions(tokens, source)
    for start, end in source.bodies if functions else ():
        for i in range(start, end):
            if tokens[i].text != "=" or tokens[i].kind != "mark":
                continue
            semicolon = _find_end(tokens, i, end)
            if semicolon >= 0 and _calls(tokens, i, semicolon, functions) and find_left_start(tokens, i) >= 0:
                found.append((i, semicolon))
    return found


def store_returned(tokens: list[Token], found: list[tuple[int, int]]) -> None:
    """Rewrite these statements to `LEFT = ::simt::returned(VALUE);`."""
    for equal, semicolon in found:
        tokens[equal].text, tokens[equal].kind = "= ::simt::returned(", "rewritten"
        tokens[semicolon].text, tokens[semicolon].kind = ");", "rewritten"


def _find_functions(tokens: list[Token], source: Source) -> set[str]:
    """Return the names of device functions whose result may be of a class, those of lambdas, and operators."""
    names = set()
    for start, end in source.bodies:
        names |= {tokens[find_next(tokens, i, -1)].text for i in range(start, end) if _begins_lambda(tokens, i)}
        closing = find_next(tokens, start, -1)
        while closing >= 0 and tokens[closing].kind == "word":  # const, noexcept
            closing = find_next(tokens, closing, -1)
        if get_text(tokens, closing) != ")":
            continue
        name = first = find_next(tokens, find_opening(tokens, closing, "(", ")"), -1)
        if name < 0:
            continue
        if tokens[name].kind != "word":
            first = find_next(tokens, name, -1)
            if get_text(tokens, first) != "operator":
                continue
        if _find_type(tokens, first) not in _IN_REGISTERS:
            names.add(tokens[name].text)
    return names


def _begins_lambda(tokens: list[Token], i: int) -> bool:
    """Return whether the token at i is the = of `name = […](…) {…}`."""
    if tokens[i].text != "=" or get_text(tokens, find_next(tokens, i)) != "[":
        return False
    before = find_next(tokens, i, -1)
    return before >= 0 and tokens[before].kind == "word"


def _find_type(tokens: list[Token], name: int) -> str:
    """Return the last word of the type that stands before a function's name."""
    before = find_next(tokens, name, -1)
    while before >= 0 and tokens[before].text in _NO_TYPE:
        before = find_next(tokens, before, -1)
    return get_text(tokens, before)


def _find_end(tokens: list[Token], i: int, end: int) -> int:
    """Return the index of the semicolon that ends the value after the = at i, -1 if something else ends it."""
    depth = 0
    for j in range(i + 1, end):
        if tokens[j].kind != "mark":
            continue
        text = tokens[j].text
        depth += (text in "([{") - (text in ")]}")
        if depth < 0 or (depth == 0 and text in (",", "=", "#")):
            return -1
        if depth == 0 and text == ";":
            return j
    return -1


def _calls(tokens: list[Token], start: int, end: int, functions: set[str]) -> bool:
    """Return whether one of the functions or operators is called between two tokens."""
    return any(
        tokens[j].text in functions
        and (tokens[j].kind == "mark" or get_text(tokens, find_next(tokens, j)) in ("(", "<"))
        for j in range(start + 1, end)
    )
