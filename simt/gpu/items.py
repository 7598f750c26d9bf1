"""Cut a CUDA C++ source into the declarations at namespace scope, and say on which side each of them is needed."""

from __future__ import annotations

from dataclasses import dataclass, field

from simt.frontend.source import Source
from simt.frontend.tokens import Token, find_angle_end, find_closing, find_next, get_text

# What a declaration is for: its side, or its kind where both sides need it in a form of their own.
KERNEL, DEVICE, HOST, BOTH, SYMBOL, SHARED_TYPE = "kernel", "device", "host", "both", "symbol", "type"

_TYPES = ("struct", "class", "union", "enum")
# Names of types that only host code can use. Those of the standard library count behind `std::`.
_HOST_NAMES = frozenset("Tensor TensorOptions TensorList IntArrayRef CUDAGuard CUDAStream pybind11 py".split())
_STANDARD_TYPES = frozenset(
    "vector string map unordered_map set unordered_set function mutex thread ostream cout cerr unique_ptr shared_ptr "
    "optional string_view tuple deque list atomic once_flag chrono".split()
)
_TORCH = frozenset(("torch", "at", "c10"))
_QUALIFIERS = frozenset(("__global__", "__device__", "__host__", "__constant__", "__managed__", "__shared__"))


class NotSplit(Exception):
    """Why a source has to go to nvcc as it is: a sentence that begins with "it" or a name, without a full stop."""


@dataclass
class Item:
    """A declaration at namespace scope: the tokens [start, end).

    kind: one of the names above. opening: the index of the brace that opens its body; -1: it has none. head: the index
    of its first token after `template <…>`. words: the words of the declaration outside its braces.
    """

    kind: str
    start: int
    end: int
    head: int
    opening: int = -1
    words: set[str] = field(default_factory=set)


def find_items(source: Source) -> tuple[list[Item], list[int]]:
    """Return the declarations of the source, and the index of the brace of each unnamed namespace.

    Raises NotSplit if brackets and preprocessor lines are interleaved in a way that has no clear answer.
    """
    tokens, items, unnamed, scopes = source.tokens, [], [], 0
    i = _find_code(source, 0)
    while i >= 0:
        text = tokens[i].text
        brace = _find_scope(source, i)
        if brace >= 0:
            unnamed += [brace] if _is_unnamed(tokens, i, brace) else []
            scopes += 1
            i = _find_code(source, brace + 1)
        elif text == "}" and scopes:
            scopes -= 1
            i = _find_code(source, i + 1)
        elif text == ";":
            i = _find_code(source, i + 1)
        elif text in source.macros and get_text(tokens, i + 1) == "(":
            raise NotSplit(f"the macro {text} declares something in line {tokens[i].line}")
        else:
            item = _read_item(source, i)
            _check_directives(source, item)
            items.append(item)
            i = _find_code(source, item.end)
    if scopes:
        raise NotSplit("it has a namespace whose brace is not closed")
    return items, unnamed


def _find_code(source: Source, i: int) -> int:
    """Return the index of the first token from i on that is code and no preprocessor line, or -1."""
    tokens = source.tokens
    while i < len(tokens) and (tokens[i].kind in ("space", "comment") or i in source.directives):
        i += 1
    return i if i < len(tokens) else -1


def _step(source: Source, i: int) -> int:
    return _find_code(source, i + 1)


def _find_scope(source: Source, i: int) -> int:
    """Return the index of the brace that a namespace or an extern "C" at i opens, or -1."""
    tokens = source.tokens
    if tokens[i].text == "inline" and get_text(tokens, _step(source, i)) == "namespace":
        i = _step(source, i)
    if tokens[i].text == "namespace":
        j = _step(source, i)
        while j >= 0 and (tokens[j].kind == "word" or tokens[j].text == "::"):
            j = _step(source, j)
    elif tokens[i].text == "extern" and get_text(tokens, _step(source, i)) == '"C"':
        j = _step(source, _step(source, i))
    else:
        return -1
    return j if get_text(tokens, j) == "{" else -1


def _is_unnamed(tokens: list[Token], start: int, brace: int) -> bool:
    return tokens[find_next(tokens, brace, -1)].text == "namespace" and tokens[start].text in ("namespace", "inline")


def _read_item(source: Source, start: int) -> Item:
    """Return the declaration that begins at start."""
    tokens = source.tokens
    head = start
    while tokens[head].text == "template" and get_text(tokens, _step(source, head)) == "<":
        closing = find_angle_end(tokens, _step(source, head))
        if closing < 0:
            raise NotSplit(f"the template in line {tokens[head].line} has no clear end")
        head = _step(source, closing)
    words: set[str] = set()
    is_type = equals = called = False
    opening, j = -1, head
    while j >= 0:
        text = tokens[j].text
        if tokens[j].kind == "word":
            words.add(text)
            is_type |= text in _TYPES and not called
        elif text == ";":
            return _classify(source, Item(HOST, start, j + 1, head, opening, words))
        elif text == "=":
            equals = True
        elif text in ("(", "[", "{"):
            closing = find_closing(tokens, j)
            if closing < 0:
                raise NotSplit(f"a bracket in line {tokens[j].line} is not closed")
            if text == "{":
                opening = j if opening < 0 else opening
                if called and not is_type and not equals:
                    return _classify(source, Item(HOST, start, closing + 1, head, opening, words))
            else:
                words |= {t.text for t in tokens[j:closing] if t.kind == "word"}
                called |= text == "(" and not _is_attribute(tokens, j)
            j = closing
        j = _step(source, j)
    raise NotSplit(f"the declaration in line {tokens[start].line} has no end")


def _is_attribute(tokens: list[Token], i: int) -> bool:
    """Return whether the parenthesis at i belongs to an attribute or a macro in capitals, such as __align__(16)."""
    return get_text(tokens, find_next(tokens, i, -1)) in (
        *("__launch_bounds__", "__cluster_dims__", "__align__", "__builtin_align__", "__attribute__", "alignas"),
        "decltype",
    )


def _check_directives(source: Source, item: Item) -> None:
    """Raise NotSplit if an #if begins within the declaration and ends outside it, or the other way round."""
    tokens, depth = source.tokens, 0
    for start in sorted({source.directives[i] for i in range(item.start, item.end) if i in source.directives}):
        name = get_text(tokens, find_next(tokens, start))
        depth += name in ("if", "ifdef", "ifndef")
        depth -= name == "endif"
        if depth < 0 or (depth == 0 and name in ("else", "elif")):
            break
    else:
        if depth == 0:
            return
    raise NotSplit(f"an #if crosses the declaration in line {tokens[item.start].line}")


def _classify(source: Source, item: Item) -> Item:
    """Set the kind of the declaration."""
    tokens, words = source.tokens, item.words
    first = tokens[item.head].text
    outside = words & _QUALIFIERS
    if "__managed__" in outside:
        raise NotSplit(f"it has managed memory (line {tokens[item.start].line})")
    if not outside and tokens[item.start].text in source.macros:
        raise NotSplit(f"the macro {tokens[item.start].text} declares something in line {tokens[item.start].line}")
    is_function = item.opening >= 0 and tokens[item.end - 1].text == "}"
    inner = {t.text for t in tokens[item.start : item.end] if t.kind == "word"}
    hosts = bool(inner & _HOST_NAMES) or _names_standard_types(tokens, item)
    if "__global__" in outside:
        item.kind = KERNEL
    elif first in ("struct", "class", "union", "enum", "typedef", "using", "namespace", "static_assert", "concept"):
        item.kind = HOST if hosts or (inner & _TORCH and not inner & _QUALIFIERS) else SHARED_TYPE
    elif "__constant__" in outside or (
        "__device__" in outside and not is_function and not _has_parameters(tokens, item)
    ):
        item.kind = SYMBOL
    elif "__device__" in outside:
        item.kind = BOTH if "__host__" in outside else DEVICE
    elif "constexpr" in words or ("const" in words and not is_function and not _has_parameters(tokens, item)):
        item.kind = HOST if hosts or inner & _TORCH else BOTH
    else:
        item.kind = HOST
    return item


def _names_standard_types(tokens: list[Token], item: Item) -> bool:
    code = [t.text for t in tokens[item.start : item.end] if t.kind not in ("space", "comment")]
    return any(a == "std" and b == "::" and c in _STANDARD_TYPES for a, b, c in zip(code, code[1:], code[2:]))


def _has_parameters(tokens: list[Token], item: Item) -> bool:
    """Return whether the declaration, which has no body, is that of a function: a parenthesis follows its name."""
    for i in range(item.head, item.end):
        if tokens[i].kind == "mark" and tokens[i].text in ("=", "{", "["):
            return False
        if tokens[i].text == "(" and not _is_attribute(tokens, i):
            return True
    return False
