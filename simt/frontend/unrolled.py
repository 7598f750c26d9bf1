"""Unroll loops of constant length, as nvcc does. g++ does not unroll a loop whose basic blocks call probes."""

from __future__ import annotations

import re
from itertools import pairwise

from simt.frontend.source import Source
from simt.frontend.tokens import Token, find_closing, find_next, get_text

_MAX_COPIES = 64
_UNROLL_PRAGMA = re.compile(r"#\s*pragma\s+(?:unroll\s*\(?\s*1\b|nounroll\b|GCC\s+unroll\b)")
_TYPES = frozenset(
    """
    const unsigned signed char short int long size_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
    sizeof float double
    """.split()
)


def unroll(tokens: list[Token], source: Source) -> None:
    """Write `_Pragma("GCC unroll 64")` before each `for` whose head is made of constants, unless a pragma forbids it.

    tokens: a copy of the source's tokens. (g++ would also unroll a loop that is only known to be short, with a branch
    out of each copy; nvcc does not.)
    """
    directives = source.directives
    constants = _find_constants(tokens, directives)
    for i, token in enumerate(tokens):
        if (
            token.text != "for"
            or token.kind != "word"
            or i in directives
            or not _has_constant_head(tokens, find_next(tokens, i), constants)
        ):
            continue
        before = find_next(tokens, i, -1)
        start = directives.get(before, i)
        pragma = "".join(t.text for j, t in enumerate(tokens[start:i], start) if directives.get(j) == start)
        if get_text(tokens, before) == ")" and get_text(tokens, before - 3) == "_Pragma":
            pragma = "#pragma " + tokens[before - 1].text.strip('"')
        if not _UNROLL_PRAGMA.match(pragma):
            token.text = f'_Pragma("GCC unroll {_MAX_COPIES}") for'


def _has_constant_head(tokens: list[Token], opening: int, constants: set[str]) -> bool:
    """Return whether a loop's head names only constants and the variable that it declares."""
    head = [t for t in tokens[opening : find_closing(tokens, opening)] if t.kind not in ("space", "comment")]
    declared = {a.text for a, b in pairwise(head) if a.kind == "word" and b.text == "=" and a.text not in constants}
    words = {t.text for t in head if t.kind == "word"}
    return (
        sum(t.text == ";" for t in head) == 2
        and len(words & _TYPES) > 0
        and words <= _TYPES | constants | declared
        and not any(t.text == "[" for t in head)
    )


def _find_constants(tokens: list[Token], directives: dict[int, int]) -> set[str]:
    """Return the names of constexpr variables, const variables with constant values, macros, enumerators and template
    parameters.
    """
    words = [(i, t) for i, t in enumerate(tokens) if t.kind not in ("space", "comment")]
    found: set[str] = set()
    for at, (i, token) in enumerate(words):
        rest = [t for _, t in words[at + 1 : at + 60]]
        if i in directives and token.text == "define" and rest:
            found.add(rest[0].text)
        elif token.text in ("constexpr", "const", "enum"):
            found |= _find_declared(rest, found, sure=token.text != "const")
        elif token.text == "template" and rest[:1] and rest[0].text == "<":
            found |= {
                b.text
                for a, b in pairwise(rest[: _find_end(rest, ">")])
                if a.text in _TYPES | {"bool"} and b.kind == "word" and b.text not in _TYPES
            }
    return found


def _find_declared(rest: list[Token], known: set[str], sure: bool) -> set[str]:
    """Return the names before each = of one declaration. Unless sure: only if their values are known constants."""
    found: set[str] = set()
    statement = rest[: _find_end(rest, ";", "{" if not sure else ";")]
    for a, b in pairwise(statement):
        if a.kind == "word" and b.text in ("=", "{") and b.kind == "mark":
            found.add(a.text)
    if sure:
        return found
    value = statement[next((i for i, t in enumerate(statement) if t.text == "="), len(statement)) + 1 :]
    return found if value and all(t.kind != "word" or t.text in known | _TYPES for t in value) else set()


def _find_end(rest: list[Token], *marks: str) -> int:
    return next((i for i, t in enumerate(rest) if t.text in marks), len(rest))
