"""Rewrite declarations in shared memory: static arrays become thread-local arrays, dynamic ones pointers."""

from __future__ import annotations

from simt.errors import Unsupported
from simt.frontend.source import Source
from simt.frontend.tokens import (
    Token,
    blank,
    find_angle_start,
    find_closing,
    find_declaration_end,
    find_declared_name,
    find_next,
    find_opening,
    flatten,
    get_text,
    keep_newlines,
    split_at_commas,
    take_outside_brackets,
)

# In bytes, as on a GPU. (The tiles of tensor cores need 32.) A declaration may request more.
_SHARED_ALIGNMENT = "__attribute__((__aligned__(128)))"
# In a checked build. Without it the compiler omits the stores to a variable that nothing reads, and takes 0 for one
# that nothing writes.
KEPT = " __attribute__((__used__))"


def rewrite_shared(tokens: list[Token], source: Source, checked: bool) -> tuple[list[str], list[Token]]:
    """Rewrite __shared__ declarations; return the names of the static variables and the last token of each.

    tokens: a copy of the source's tokens. checked: whether to keep each access to a static variable, and to pass the
    name of dynamic shared memory to the runtime. Raises Unsupported for a variable with an initial value.
    """
    names, arrays, everywhere = [], [], {}
    for i, token in enumerate(tokens):
        if token.text != "__shared__" or token.kind != "word":
            continue
        start = _find_declaration_start(tokens, source, i)
        end = find_declaration_end(tokens, i)
        if end < 0:
            continue
        declaration = tokens[i + 1 : end]
        if any(t.text == "extern" for t in tokens[start:end]):
            _rewrite_dynamic(tokens, start, end, everywhere, checked)
            continue
        if any(t.text == "=" for part in split_at_commas(declaration) for t in take_outside_brackets(part)):
            message = (
                "A __shared__ variable cannot have an initial value. Let a thread write it, then call "
                "`__syncthreads()`."
            )
            raise Unsupported([source.make_error(token.line, message)])
        names += [n for part in split_at_commas(declaration) if (n := find_declared_name(part))]
        for part in split_at_commas(declaration):
            arrays += [t for t in reversed(part) if t.kind not in ("space", "comment")][:1]
        for j in range(start, end):
            if tokens[j].text in ("alignas", "__align__"):
                rewrite_alignment(tokens, j)
        static = any(t.text == "static" for t in take_outside_brackets(tokens[start:end]))
        attributes = _SHARED_ALIGNMENT + (KEPT if checked else "")
        token.kind, token.text = "rewritten", ("" if static else "static ") + f"__thread {attributes}"
    for name, declaration in everywhere.items():
        _declare_inside(tokens, source, name, declaration)
    return names, arrays


def _find_declaration_start(tokens: list[Token], source: Source, i: int) -> int:
    """Return the index at which the declaration with the __shared__ at i begins. The type may stand on either side."""
    start, j = i, find_next(tokens, i, -1)
    while j >= 0 and source.directives.get(j) == source.directives.get(i):
        text = tokens[j].text
        if text == ")":
            j = find_next(tokens, find_opening(tokens, j, "(", ")"), -1)
            if get_text(tokens, j) not in ("alignas", "__align__"):
                break
        elif text in (">", ">>>"):
            opening = find_angle_start(tokens, j)
            if opening < 0:
                break
            j = find_next(tokens, opening, -1)
        elif text != "::" and (tokens[j].kind != "word" or text in ("else", "do", "define")):
            break
        start, j = j, find_next(tokens, j, -1)
    return start


def rewrite_alignment(tokens: list[Token], i: int) -> None:
    """Rewrite `alignas(n)` or `__align__(n)` at i to an attribute, which is allowed anywhere."""
    opening = find_next(tokens, i)
    if get_text(tokens, opening) != "(":
        return
    end = find_closing(tokens, opening)
    if end < 0:
        return
    value = flatten(tokens[opening + 1 : end])
    if tokens[i].text == "alignas" and value.replace("::", "").strip().isidentifier():
        # The name of a type or of a constant: only `alignas` takes both, and it must precede a declaration.
        value = f"[] {{ struct alignas({value}) Aligned {{}}; return alignof(Aligned); }}()"
    breaks = keep_newlines(tokens[i : end + 1])
    for token in tokens[i : end + 1]:
        token.kind, token.text = "space", ""
    tokens[i].kind, tokens[i].text = "rewritten", f"__attribute__((__aligned__({value})))" + breaks


def _rewrite_dynamic(tokens: list[Token], start: int, end: int, everywhere: dict[str, str], named: bool) -> None:
    """Rewrite `extern __shared__ T name[];` to a pointer to the block's dynamic shared memory."""
    breaks = keep_newlines(tokens[start:end])
    for j in range(start, end):
        if tokens[j].text in ("alignas", "__align__"):
            blank(tokens, j, find_closing(tokens, find_next(tokens, j)) + 1)
    bracket = next((j for j in range(start, end) if tokens[j].text == "["), end)
    name_at = find_next(tokens, bracket, -1)
    name = tokens[name_at].text
    kind = flatten([t for t in tokens[start:name_at] if t.text not in ("extern", "__shared__", "static", "__device__")])
    if not kind:
        return
    rest = flatten(tokens[find_closing(tokens, bracket) + 1 : end]) if bracket < end else ""
    pointer, declared = (f"{kind} (*){rest}", f"{kind} (*{name}){rest}") if rest else (f"{kind}*", f"{kind}* {name}")
    naming = f'"{name}", sizeof({kind})' if named else ""
    declaration = f"{declared} = ({pointer})::simt::dynamic_shared({naming})"
    for token in tokens[start:end]:
        token.kind, token.text = "space", ""
    if _at_namespace_scope(tokens, start):
        everywhere[name] = declaration
        tokens[start].text = breaks
    else:
        tokens[start].kind, tokens[start].text = "rewritten", declaration + breaks


def _declare_inside(tokens: list[Token], source: Source, name: str, declaration: str) -> None:
    """Declare a pointer in every device function that may use it, unless a parameter has the same name."""
    in_macro = any(tokens[i].text == name for i in source.directives)
    for start, end in source.bodies:
        if end < 0 or not (in_macro or any(t.text == name for t in tokens[start:end])):
            continue
        closing = find_next(tokens, start, -1)
        while closing >= 0 and tokens[closing].kind == "word":  # const, mutable
            closing = find_next(tokens, closing, -1)
        if get_text(tokens, closing) == ")" and any(
            t.text == name for t in tokens[find_opening(tokens, closing, "(", ")") : closing]
        ):
            continue
        tokens[start].kind, tokens[start].text = "rewritten", f"{{ {declaration}; {tokens[start].text}"
        tokens[end].kind, tokens[end].text = "rewritten", f"{tokens[end].text} }}"


def _at_namespace_scope(tokens: list[Token], i: int) -> bool:
    """Return whether every brace that is open at i belongs to a namespace or to extern "C"."""
    stack = []
    for j in range(i):
        if tokens[j].kind != "mark":
            continue
        if tokens[j].text == "{":
            head, k = [], j
            while (k := find_next(tokens, k, -1)) >= 0 and tokens[k].text not in (";", "{", "}", ")"):
                head.append(tokens[k].text)
            stack.append("namespace" in head or ("extern" in head and '"C"' in head))
        elif tokens[j].text == "}" and stack:
            stack.pop()
    return all(stack)
