"""Marks local variables that kernels declare without a value, so that a checked build sees them read before they are written."""

from __future__ import annotations

from .tokens import Token, angle_end, closing_of, next_token, text_at

_BUILTIN = {"unsigned", "signed", "long", "short", "int", "float", "double", "char", "bool", "volatile", "register", "const"}
_NO_TYPE = set(
    """
    return goto break continue if for while do else switch case default using typedef static extern constexpr auto delete new
    throw try catch asm namespace template class enum union friend operator sizeof typename struct static_assert decltype
    co_return co_await co_yield public private protected
    """.split()
)
# Functions of a warp and methods of a group that pass on one lane's value: whether it is a method.
_SHUFFLES = {f"__shfl{way}_sync": False for way in ("", "_up", "_down", "_xor")} | {f"shfl{way}": True for way in ("", "_up", "_down", "_xor")}


def mark_locals(tokens: list[Token], bodies: list[tuple[int, int]]) -> None:
    """Adds a call of simt::local, on the same line, after each such declaration in the bodies (first and last token of each)."""
    for start, end in bodies:
        skipped, names = start, set()
        for i in range(start, end):
            if i > skipped and tokens[i].kind == "mark" and tokens[i].text == "{" and _opens_type(tokens, i):
                skipped = closing_of(tokens, i)  # its members are no variables
            if i >= skipped and tokens[i].kind in ("mark", "rewritten") and tokens[i].text[:1] in (";", "{", "}"):
                names |= _mark(tokens, next_token(tokens, i), end)
        _copy_into_shuffles(tokens, start, end, names)


def _copy_into_shuffles(tokens: list[Token], start: int, end: int, names: set[str]) -> None:
    """A variable that stands alone as the value of a shuffle is copied unread: only a lane that others read from needs to have written it."""
    for i in range(start, end):
        method = _SHUFFLES.get(tokens[i].text) if tokens[i].kind == "word" else None
        j = next_token(tokens, i)
        if method is None or text_at(tokens, j) != "(" or method != (text_at(tokens, next_token(tokens, i, -1)) in (".", "->")):
            continue
        if not method:
            j = _initial_value_end(tokens, next_token(tokens, j), end)  # the comma after the mask
        value = next_token(tokens, j)
        if text_at(tokens, j) in ("(", ",") and text_at(tokens, value) in names and text_at(tokens, next_token(tokens, value)) == ",":
            tokens[value].kind, tokens[value].text = "rewritten", f"::simt::copied({tokens[value].text})"


def _opens_type(tokens: list[Token], i: int) -> bool:
    """Whether the { at i begins the members of a struct, union, class or enum."""
    while (i := next_token(tokens, i, -1)) >= 0 and tokens[i].text not in (";", "{", "}", ")", "="):
        if tokens[i].text in ("struct", "union", "class", "enum"):
            return True
    return False


def _mark(tokens: list[Token], i: int, end: int) -> set[str]:
    """Marks what the statement at i declares, if it is a declaration; returns the names of the marked variables."""
    j = _type_end(tokens, i)
    names: list[str] = []
    while 0 <= j < end:
        pointer = False
        while text_at(tokens, j) in ("*", "const", "__restrict__"):
            pointer, j = True, next_token(tokens, j)
        if j < 0 or tokens[j].kind != "word" or tokens[j].text in _NO_TYPE:
            break
        name, j = tokens[j].text, next_token(tokens, j)
        while text_at(tokens, j) == "[":
            j = next_token(tokens, closing_of(tokens, j))
        if text_at(tokens, j) in (",", ";"):
            names.append(name)
        elif text_at(tokens, j) in ("=", "(", "{"):
            j = _initial_value_end(tokens, j, end)
        if text_at(tokens, j) == ";":
            tokens[j].kind, tokens[j].text = "rewritten", ";" + "".join(f' ::simt::local({n}, "{n}");' for n in names)
            return set(names)
        if text_at(tokens, j) != ",":
            break
        j = next_token(tokens, j)
    return set()


def _type_end(tokens: list[Token], i: int) -> int:
    """Index of the first token after the type that begins at i, or -1 where none does."""
    if i < 0 or tokens[i].kind != "word" or tokens[i].text in _NO_TYPE:
        return -1
    j, builtin = i, False
    while j >= 0 and tokens[j].kind == "word" and tokens[j].text in _BUILTIN:
        builtin = builtin or tokens[j].text not in ("const", "volatile", "register")
        j = next_token(tokens, j)
    if builtin or j < 0:
        return j
    while tokens[j].kind == "word" and tokens[j].text not in _NO_TYPE:
        j = next_token(tokens, j)
        if text_at(tokens, j) == "<":
            j = next_token(tokens, angle_end(tokens, j))
        if text_at(tokens, j) != "::":
            return j
        j = next_token(tokens, j)
    return -1


def _initial_value_end(tokens: list[Token], i: int, end: int) -> int:
    """Index of the comma or semicolon that follows the initial value at i."""
    depth = 0
    for j in range(i, end):
        if tokens[j].kind != "mark":
            continue
        depth += (tokens[j].text in "([{") - (tokens[j].text in ")]}")
        if depth == 0 and tokens[j].text in (",", ";"):
            return j
    return -1
