"""Mark local variables that kernels declare without a value, so that a checked build sees a read before any write."""

from __future__ import annotations

from simt.frontend.source import Source
from simt.frontend.tokens import Token, find_angle_end, find_closing, find_next, get_text

_BUILTIN = {
    "unsigned",
    "signed",
    "long",
    "short",
    "int",
    "float",
    "double",
    "char",
    "bool",
    "volatile",
    "register",
    "const",
}
_NO_TYPE = set(
    """
    return goto break continue if for while do else switch case default using typedef static extern constexpr auto
    delete new throw try catch asm namespace template class enum union friend operator sizeof typename struct
    static_assert decltype co_return co_await co_yield public private protected
    """.split()
)
# Warp functions and group methods that pass on one lane's value -> whether it is a method.
_SHUFFLES = {f"__shfl{way}_sync": False for way in ("", "_up", "_down", "_xor")} | {
    f"shfl{way}": True for way in ("", "_up", "_down", "_xor")
}


def mark_locals(tokens: list[Token], source: Source) -> None:
    """Add a call of simt::local, on the same line, after each such declaration in a device function.

    tokens: a copy of the source's tokens.
    """
    for start, end in source.bodies:
        skipped, names = start, set()
        for i in range(start, end):
            if i > skipped and tokens[i].kind == "mark" and tokens[i].text == "{" and _opens_type(tokens, i):
                skipped = find_closing(tokens, i)  # members are not local variables
            if i >= skipped and tokens[i].kind in ("mark", "rewritten") and tokens[i].text[:1] in (";", "{", "}"):
                names |= _mark_declared(tokens, find_next(tokens, i), end)
        _copy_into_shuffles(tokens, start, end, names)


def _copy_into_shuffles(tokens: list[Token], start: int, end: int, names: set[str]) -> None:
    """Wrap a variable that is a shuffle's value in simt::copied, which does not count as a read.

    Only a lane that others read from must have written the variable.
    """
    for i in range(start, end):
        method = _SHUFFLES.get(tokens[i].text) if tokens[i].kind == "word" else None
        j = find_next(tokens, i)
        if (
            method is None
            or get_text(tokens, j) != "("
            or method != (get_text(tokens, find_next(tokens, i, -1)) in (".", "->"))
        ):
            continue
        if not method:
            j = _find_initial_value_end(tokens, find_next(tokens, j), end)  # the comma after the mask
        value = find_next(tokens, j)
        if (
            get_text(tokens, j) in ("(", ",")
            and get_text(tokens, value) in names
            and get_text(tokens, find_next(tokens, value)) == ","
        ):
            tokens[value].kind, tokens[value].text = "rewritten", f"::simt::copied({tokens[value].text})"


def _opens_type(tokens: list[Token], i: int) -> bool:
    """Return whether the { at i begins the members of a struct, union, class or enum."""
    while (i := find_next(tokens, i, -1)) >= 0 and tokens[i].text not in (";", "{", "}", ")", "="):
        if tokens[i].text in ("struct", "union", "class", "enum"):
            return True
    return False


def _mark_declared(tokens: list[Token], i: int, end: int) -> set[str]:
    """Mark what the statement at i declares, if it is a declaration; return the names of the marked variables."""
    j = _find_type_end(tokens, i)
    names: list[str] = []
    while 0 <= j < end:
        while get_text(tokens, j) in ("*", "const", "__restrict__"):
            j = find_next(tokens, j)
        if j < 0 or tokens[j].kind != "word" or tokens[j].text in _NO_TYPE:
            break
        name, j = tokens[j].text, find_next(tokens, j)
        while get_text(tokens, j) == "[":
            j = find_next(tokens, find_closing(tokens, j))
        if get_text(tokens, j) in (",", ";"):
            names.append(name)
        elif get_text(tokens, j) in ("=", "(", "{"):
            j = _find_initial_value_end(tokens, j, end)
        if get_text(tokens, j) == ";":
            tokens[j].kind, tokens[j].text = "rewritten", ";" + "".join(f' ::simt::local({n}, "{n}");' for n in names)
            return set(names)
        if get_text(tokens, j) != ",":
            break
        j = find_next(tokens, j)
    return set()


def _find_type_end(tokens: list[Token], i: int) -> int:
    """Return the index of the first token after the type that begins at i, or -1 if no type begins there."""
    if i < 0 or tokens[i].kind != "word" or tokens[i].text in _NO_TYPE:
        return -1
    j, builtin = i, False
    while j >= 0 and tokens[j].kind == "word" and tokens[j].text in _BUILTIN:
        builtin = builtin or tokens[j].text not in ("const", "volatile", "register")
        j = find_next(tokens, j)
    if builtin or j < 0:
        return j
    while tokens[j].kind == "word" and tokens[j].text not in _NO_TYPE:
        j = find_next(tokens, j)
        if get_text(tokens, j) == "<":
            end = find_angle_end(tokens, j)
            if end < 0:
                return -1
            j = find_next(tokens, end)
        if get_text(tokens, j) != "::":
            return j
        j = find_next(tokens, j)
    return -1


def _find_initial_value_end(tokens: list[Token], i: int, end: int) -> int:
    """Return the index of the comma or semicolon that follows the initial value at i."""
    depth = 0
    for j in range(i, end):
        if tokens[j].kind != "mark":
            continue
        depth += (tokens[j].text in "([{") - (tokens[j].text in ")]}")
        if depth == 0 and tokens[j].text in (",", ";"):
            return j
    return -1
