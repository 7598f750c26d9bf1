"""Refuse calls in device code that end or replace the host's process, and exceptions: nvcc refuses them too."""

from __future__ import annotations

import re
from collections.abc import Iterator

from simt.errors import CompileError
from simt.frontend.source import Source
from simt.frontend.tokens import Token, find_next, find_opening, get_text

_ENDS = re.compile(r"_?exit|_Exit|quick_exit|pthread_exit|terminate")
_JUMPS = re.compile(r"(_|sig)?longjmp")
_SYSTEM = re.compile(r"raise|kill|v?fork|exec[lv]p?e?")
_EXCEPTIONS = ("throw", "try")
_LEAVES = "write `return;` in the kernel to end a thread"

# Words that may stand before a call; any other word before a name declares it: `void exit(int)`, `auto exit = …`.
_BEFORE_CALLS = {"return", "else", "do", "goto", "case", "throw", "co_return", "and", "or", "not"}


def refuse_host_calls(source: Source) -> None:
    """Raise CompileError with each such call, and its line, in the bodies of __global__ and __device__ functions.

    A member, a name of another namespace than std, and a name that the source declares or defines are the student's
    own. Calls in __host__ __device__ functions are kept, as nvcc keeps them with a warning.
    """
    if not any(_is_refused_word(word) for word in source.words):
        return
    own = _find_own(source)
    macros = _find_macros(source, own)
    found: dict[int, str] = {}
    for first, last in source.bodies:
        of_both = _is_of_both(source.tokens, first)
        for i in range(first, last):
            if i in source.directives or source.tokens[i].kind != "word":
                continue
            name = macros.get(source.tokens[i].text) or _read_name(source.tokens, i, own)
            if name and (name in _EXCEPTIONS or not of_both):
                found.setdefault(source.tokens[i].line, _explain(name))
    if found:
        raise CompileError([source.make_error(line, text) for line, text in sorted(found.items())])


def _is_refused_word(word: str) -> bool:
    return word in _EXCEPTIONS or any(pattern.fullmatch(word) for pattern in (_ENDS, _JUMPS, _SYSTEM))


def _explain(name: str) -> str:
    if name == "throw":
        return f"Device code cannot throw exceptions; {_LEAVES}."
    if name == "try":
        return "Device code cannot catch exceptions; remove `try` and `catch`."
    if _ENDS.fullmatch(name.removeprefix("std::")):
        return f"Device code cannot call `{name}`, which ends a program on the CPU; {_LEAVES}."
    if _JUMPS.fullmatch(name.removeprefix("std::")):
        return f"Device code cannot call `{name}`, which jumps to another function on the CPU; {_LEAVES}."
    return f"Device code cannot call `{name}`, a function of the CPU's operating system; remove the call."


def _read_name(tokens: list[Token], i: int, own: set[str]) -> str:
    """Return the refused function that the token at i calls, as it is written; "throw" or "try"; or ""."""
    name = tokens[i].text
    if not _is_refused_word(name):
        return ""
    if name in _EXCEPTIONS:
        return name
    before, after = find_next(tokens, i, -1), find_next(tokens, i)
    qualified = ""
    if get_text(tokens, before) == "::":
        scope = find_next(tokens, before, -1)
        if scope >= 0 and tokens[scope].kind == "word" and tokens[scope].text not in _BEFORE_CALLS:
            qualified = tokens[scope].text
            before = find_next(tokens, scope, -1)
        else:
            before = scope
        if qualified not in ("", "std"):
            return ""
    if get_text(tokens, before) in (".", "->"):
        return ""
    if get_text(tokens, before) == "(" and get_text(tokens, after) == ")":  # (exit)(0)
        after = find_next(tokens, after)
    if get_text(tokens, after) != "(" or (not qualified and (name in own or name == "terminate")):
        return ""
    return f"std::{name}" if qualified else name


def _find_own(source: Source) -> set[str]:
    """Return the refused names that the source declares, or defines as a macro."""
    tokens, own = source.tokens, set()
    inside = {i for first, last in source.bodies for i in range(first, last)}
    for i, token in enumerate(tokens):
        if token.kind != "word" or not _is_refused_word(token.text):
            continue
        if token.text in source.macros:
            own.add(token.text)
            continue
        before, after = find_next(tokens, i, -1), get_text(tokens, find_next(tokens, i))
        if before < 0 or before in source.directives:
            continue
        if tokens[before].kind == "word":
            is_declared = tokens[before].text not in _BEFORE_CALLS
        else:  # `Node* exit(…)`, but in a body `n && kill(…)` is a call
            is_declared = tokens[before].text in ("*", "&", ">") and not (i in inside and after == "(")
        if is_declared:
            own.add(token.text)
    return own


def _find_macros(source: Source, own: set[str]) -> dict[str, str]:
    """Return the macros whose text contains a refused call, with the call's name.

    A macro that is defined more than once may be another one in device code, and is left out.
    """
    texts: dict[str, list[int]] = {}
    seen: set[str] = set()
    twice: set[str] = set()
    for name, body in _read_defines(source):
        twice |= {name} & seen
        seen.add(name)
        texts[name] = body
    macros: dict[str, str] = {}
    for _ in texts:  # a macro may use another one
        before = len(macros)
        for name in texts.keys() - twice - macros.keys():
            calls = (macros.get(source.tokens[i].text) or _read_name(source.tokens, i, own) for i in texts[name])
            if call := next(filter(None, calls), ""):
                macros[name] = call
        if len(macros) == before:
            break
    return macros


def _read_defines(source: Source) -> Iterator[tuple[str, list[int]]]:
    """Yield the name of each #define and the indices of the words in its text."""
    tokens = source.tokens
    lines: dict[int, list[int]] = {}
    for i, start in source.directives.items():
        if tokens[i].kind == "word":
            lines.setdefault(start, []).append(i)
    for words in lines.values():
        if len(words) >= 2 and tokens[words[0]].text == "define":
            yield tokens[words[1]].text, words[2:]


def _is_of_both(tokens: list[Token], start: int) -> bool:
    """Return whether the function whose body begins at start is a __host__ __device__ one."""
    i = start
    while (i := find_next(tokens, i, -1)) >= 0 and tokens[i].text not in (";", "{", "}"):
        if tokens[i].text == ")":
            i = find_opening(tokens, i, "(", ")")
        elif tokens[i].text == "__host__":
            return True
    return False
