"""Has loops of constant length unrolled, as nvcc does: g++ would not, because each block holds a probe's call."""

from __future__ import annotations

import re

from .tokens import Token, closing_of, directives_of, next_token, text_at

_MOST = 64  # times
_SAID = re.compile(r"#\s*pragma\s+(?:unroll\s*\(?\s*1\b|nounroll\b|GCC\s+unroll\b)")
_TYPES = frozenset("const unsigned signed char short int long size_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t sizeof float double".split())


def unroll(tokens: list[Token]) -> None:
    """Writes `_Pragma("GCC unroll 64")` before each `for` whose head is made of constants, unless a pragma says otherwise.

    (g++ would also unroll a loop that it only knows to be short, with a branch out of each copy; nvcc does not.)
    """
    directives = directives_of(tokens)
    constants = _constants(tokens, directives)
    for i, token in enumerate(tokens):
        if token.text != "for" or token.kind != "word" or i in directives or not _constant(tokens, next_token(tokens, i), constants):
            continue
        before = next_token(tokens, i, -1)
        start = directives.get(before, i)
        said = "".join(t.text for j, t in enumerate(tokens[start:i], start) if directives.get(j) == start)
        if text_at(tokens, before) == ")" and text_at(tokens, before - 3) == "_Pragma":
            said = "#pragma " + tokens[before - 1].text.strip('"')
        if not _SAID.match(said):
            token.text = f'_Pragma("GCC unroll {_MOST}") for'


def _constant(tokens: list[Token], opening: int, constants: set[str]) -> bool:
    """Whether all that a loop's head names is a constant or the variable that it declares itself."""
    head = [t for t in tokens[opening : closing_of(tokens, opening)] if t.kind not in ("space", "comment")]
    declared = {a.text for a, b in zip(head, head[1:]) if a.kind == "word" and b.text == "=" and a.text not in constants}
    words = {t.text for t in head if t.kind == "word"}
    return sum(t.text == ";" for t in head) == 2 and len(words & _TYPES) > 0 and words <= _TYPES | constants | declared and not any(t.text == "[" for t in head)


def _constants(tokens: list[Token], directives: dict[int, int]) -> set[str]:
    """Names of constexpr variables, of const ones that are made of constants, of macros, enumerators and template parameters."""
    words = [(i, t) for i, t in enumerate(tokens) if t.kind not in ("space", "comment")]
    found: set[str] = set()
    for at, (i, token) in enumerate(words):
        rest = [t for _, t in words[at + 1 : at + 60]]
        if i in directives and token.text == "define" and rest:
            found.add(rest[0].text)
        elif token.text in ("constexpr", "const", "enum"):
            found |= _declared(rest, found, sure=token.text != "const")
        elif token.text == "template" and rest[:1] and rest[0].text == "<":
            found |= {b.text for a, b in zip(rest, rest[1 : _end(rest, ">")]) if a.text in _TYPES | {"bool"} and b.kind == "word" and b.text not in _TYPES}
    return found


def _declared(rest: list[Token], known: set[str], sure: bool) -> set[str]:
    """The names before each = of one declaration; unless sure, those whose values are made of known constants."""
    found: set[str] = set()
    statement = rest[: _end(rest, ";", "{" if not sure else ";")]
    for a, b in zip(statement, statement[1:]):
        if a.kind == "word" and b.text in ("=", "{") and b.kind == "mark":
            found.add(a.text)
    if sure:
        return found
    value = statement[next((i for i, t in enumerate(statement) if t.text == "="), len(statement)) + 1 :]
    return found if value and all(t.kind != "word" or t.text in known | _TYPES for t in value) else set()


def _end(rest: list[Token], *marks: str) -> int:
    return next((i for i, t in enumerate(rest) if t.text in marks), len(rest))
