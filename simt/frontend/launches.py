"""Rewrite launches, kernel<<<grid, block>>>(…) and cudaLaunchKernel(kernel, …), to calls of simt's runtime."""

from __future__ import annotations

import re
from collections.abc import Iterator

from simt.errors import Unsupported
from simt.frontend.declarations import Kernel
from simt.frontend.source import Source
from simt.frontend.tokens import (
    Token,
    blank,
    find_angle_end,
    find_angle_start,
    find_closing,
    find_next,
    find_opening,
    flatten,
    get_text,
    keep_newlines,
    split_at_commas,
)


def rewrite_launches(tokens: list[Token], source: Source, kernels: dict[str, Kernel]) -> None:
    """Rewrite every `kernel<<<grid, block>>>(arguments)` of the source.

    tokens: a copy of the source's tokens. kernels: the kernels that may be launched, including those of other files.
    Raises Unsupported for a launch inside a kernel.
    """
    for start, i, closing, end in find_launches(tokens, source):
        token = tokens[i]
        if any(a < i < b for a, b in source.bodies):
            message = (
                "Launching a kernel from a kernel (dynamic parallelism) cannot run on the CPU. Launch it from the host."
            )
            raise Unsupported([source.make_error(token.line, message)])
        line, breaks = tokens[start].line, keep_newlines(tokens[start:i])
        kernel, typed, expression, name = _find_kernel(tokens[start:i], kernels)
        typed = typed or (kernel is None and _is_variable(tokens, start, i))
        in_macro = name in _find_macro_parameters(tokens, source.directives.get(i, -1))
        name = f"#{name}" if in_macro else f'"{name}"'  # the macro's argument is the kernel's name
        if end == closing:
            typed = typed and not (kernel and kernel.defaults)  # as many arguments as its users give it
        else:
            given = split_at_commas(tokens[find_next(tokens, closing) + 1 : end])
            _replace_null_pointers(given, kernel)
            if kernel and 0 < len(kernel.parameters) - len(given) <= kernel.defaults:
                typed = False  # only a call by the kernel's own name fills in default values
        for t in tokens[start:i]:
            t.kind, t.text = "space", ""
        visible = in_macro or (kernel is not None and (kernel.is_outermost or "::" in expression))
        head = breaks + _format_launch_head(expression, name, kernel, typed, source.label, line, visible)
        token.kind, token.text = "rewritten", head + token.text.removeprefix("<<<")
        tokens[closing].kind, tokens[closing].text = "rewritten", tokens[closing].text.removesuffix(">>>") + "))"


def find_launches(tokens: list[Token], source: Source) -> Iterator[tuple[int, int, int, int]]:
    """Yield, for every `kernel<<<grid, block>>>(arguments)`, the indices of its first token, of the <<<, of the >>> and
    of the last parenthesis. For a macro that ends with >>>, whose users write the arguments, the last two are the same.

    tokens: a copy of the source's tokens. A macro for `<<<grid, block>>>` loses its angle brackets: where it is used,
    the indices are those of its name and of its end. What is no whole launch is left to the compiler.
    """
    macros = _open_configuration_macros(tokens, source)
    for i, token in enumerate(tokens):
        if token.text == "<<<" and token.kind == "mark":
            closing = _find_launch_end(tokens, source, i)
        elif token.text in macros and token.kind == "word" and source.directives.get(i) != macros[token.text]:
            closing = _find_invocation_end(tokens, i, macros[token.text])
        else:
            continue
        start = _find_expression_start(tokens, i)
        arguments = find_next(tokens, closing) if closing > 0 else -1
        if closing > 0 and _ends_macro(tokens, source, closing):
            end = closing
        else:
            end = find_closing(tokens, arguments) if get_text(tokens, arguments) == "(" else -1
        if start >= 0 and end >= 0:
            yield start, i, closing, end


def _open_configuration_macros(tokens: list[Token], source: Source) -> dict[str, int]:
    """Remove the angle brackets from every `#define NAME(…) <<<grid, block>>>`.

    Return the macros' names and the indices of their directives' #. Editors do not know <<<, so some programs write
    `kernel NAME(grid, block)(arguments)`.
    """
    found = {}
    for start in sorted(set(source.directives.values())):
        body = [i for i in _find_macro_body(tokens, source, start) if tokens[i].kind not in ("space", "comment")]
        if len(body) > 2 and (tokens[body[0]].text, tokens[body[-1]].text) == ("<<<", ">>>"):
            tokens[body[0]].text = tokens[body[-1]].text = ""
            found[get_text(tokens, find_next(tokens, find_next(tokens, start)))] = start
    return found


def _find_macro_body(tokens: list[Token], source: Source, start: int) -> list[int]:
    """Return the indices of the tokens that follow the name and the parameters of the macro defined at `start`."""
    define = find_next(tokens, start)
    if get_text(tokens, define) != "define":
        return []
    name = find_next(tokens, define)
    first = find_closing(tokens, name + 1) + 1 if get_text(tokens, name + 1) == "(" else name + 1
    body = []
    for i in range(first, len(tokens)):
        if source.directives.get(i) != start:
            break
        body.append(i)
    return body


def _find_invocation_end(tokens: list[Token], i: int, define: int) -> int:
    """Return the index of the last token of the invocation at i of the macro that is defined at `define`."""
    name = find_next(tokens, find_next(tokens, define))
    if get_text(tokens, name + 1) != "(":
        return i
    opening = find_next(tokens, i)
    return find_closing(tokens, opening) if get_text(tokens, opening) == "(" else -1


def _ends_macro(tokens: list[Token], source: Source, i: int) -> bool:
    """Return whether the token at i is the last one of a directive."""
    start = source.directives.get(i)
    return start is not None and source.directives.get(find_next(tokens, i)) != start


def _find_launch_end(tokens: list[Token], source: Source, i: int) -> int:
    """Return the index of the >>> that closes the <<< at i, or -1."""
    depth, directive = 0, source.directives.get(i)
    for j in range(i + 1, len(tokens)):
        text = tokens[j].text
        if source.directives.get(j) != directive and directive is not None:
            return -1
        if tokens[j].kind != "mark":
            continue
        if text in "([{":
            depth += 1
        elif text in ")]}":
            depth -= 1
        elif text == ">>>" and depth == 0:
            if get_text(tokens, find_next(tokens, j)) == "(" or _ends_macro(tokens, source, j):
                return j
        elif text == ";" and depth == 0:
            return -1
    return -1


def _find_expression_start(tokens: list[Token], i: int) -> int:
    """Return the index at which the kernel's name before the <<< at i begins, or -1: ns::name<…>, name[i], (name)."""
    j = find_next(tokens, i, -1)
    if j < 0:
        return -1
    if tokens[j].text in (">", ">>>"):
        j = find_next(tokens, find_angle_start(tokens, j), -1)
    elif tokens[j].text in ("]", ")"):
        opening = {"]": "[", ")": "("}[tokens[j].text]
        start = find_opening(tokens, j, opening, tokens[j].text)
        before = find_next(tokens, start, -1)
        if opening == "(" and (before < 0 or tokens[before].kind != "word"):
            return start
        j = before
    if j < 0 or tokens[j].kind != "word":
        return -1
    while True:
        before = find_next(tokens, j, -1)
        if before < 0 or tokens[before].text not in ("::", ".", "->"):
            return j
        owner = find_next(tokens, before, -1)
        if owner >= 0 and tokens[owner].text in (">", ">>>"):
            owner = find_next(tokens, find_angle_start(tokens, owner), -1)
        if owner < 0 or tokens[owner].kind != "word" or tokens[owner].text in ("return", "else", "do"):
            return before
        j = owner


def _is_variable(tokens: list[Token], start: int, end: int) -> bool:
    """Return whether the expression in [start, end), which names no kernel, is a variable: a member, an element, or a
    declared name.
    """
    words = [t for t in tokens[start:end] if t.kind not in ("space", "comment")]
    if any(t.text in (".", "->", "[") for t in words):
        return True
    if len(words) != 1 or words[0].kind != "word":
        return False
    for i, token in enumerate(tokens):
        if token.text != words[0].text or token is words[0]:
            continue
        before, after = find_next(tokens, i, -1), find_next(tokens, i)
        declared = (
            before >= 0
            and tokens[before].kind == "word"
            and tokens[before].text not in ("return", "else", "case", "goto", "define", "using")
        )
        if (declared and get_text(tokens, after) in (",", ")", "=", ";", ":", "{")) or (
            get_text(tokens, before) == "*" and get_text(tokens, after) == ")"
        ):
            return True
    return False


def _find_kernel(tokens: list[Token], kernels: dict[str, Kernel]) -> tuple[Kernel | None, bool, str, str]:
    """Return what the expression before <<< launches.

    The kernel, or None if the expression names none; whether the name alone determines the types of its parameters; the
    expression; and a name for messages.
    """
    expression = flatten(tokens)
    opening = next((i for i, t in enumerate(tokens) if t.text == "<"), len(tokens))
    name = next((t.text for t in reversed(tokens[:opening]) if t.kind == "word"), "a kernel")
    if any(t.text in (".", "->", "[", "*", "?") for t in tokens[:opening]):
        return None, False, expression, name
    kernel = kernels.get(name)
    if kernel is None:
        return None, False, expression, name
    closing = find_angle_end(tokens, opening) if opening < len(tokens) else opening
    given = len(split_at_commas(tokens[opening + 1 : closing]))
    typed = not kernel.overloaded and not kernel.variadic and given == kernel.template_parameters
    return kernel, typed, expression, name


def _find_macro_parameters(tokens: list[Token], start: int) -> list[str]:
    """Return the parameters of the macro that the directive at `start` defines."""
    if start < 0 or get_text(tokens, find_next(tokens, start)) != "define":
        return []
    opening = find_next(tokens, find_next(tokens, start)) + 1
    if get_text(tokens, opening) != "(":
        return []
    return [t.text for t in tokens[opening : find_closing(tokens, opening)] if t.kind == "word"]


def _replace_null_pointers(arguments: list[list[Token]], kernel: Kernel | None) -> None:
    """Replace NULL, and 0 for a pointer, by nullptr, the only one that is still a null pointer when it is stored."""
    for i, argument in enumerate(arguments):
        words = [t for t in argument if t.kind not in ("space", "comment")]
        if len(words) != 1:
            continue
        pointer = kernel is not None and i < len(kernel.pointers) and kernel.pointers[i]
        if words[0].text == "NULL" or (words[0].text == "0" and pointer):
            words[0].text = "nullptr"


def _format_launch_head(
    expression: str, name: str, kernel: Kernel | None, typed: bool, label: str, line: int, visible: bool
) -> str:
    """Return the text that replaces the kernel's name and the <<<.

    visible: whether the expression has a meaning of its own, and not only as the name in a call, for which C++ also
    searches the namespaces of the arguments.
    """
    names = ",".join(kernel.parameters) if kernel else ""
    defined, bounds = (kernel.line, kernel.bounds) if kernel else (0, "0")
    site = f'::simt::Site{{{name}, "{label}", {line}, "{names}", {defined}, {bounds}}}'
    # After `using namespace std`, the name alone may stand for functions of std, too, such as std::apply.
    scope = "::" if kernel and kernel.is_global and re.match(rf"{kernel.name}\b", expression) else ""
    pointer = f"{scope}{expression}, " if typed else ""
    call = f"[&](const auto&... simt_a) {{ {expression}(simt_a...); }}"
    instance = f"::simt::instance(simt_f, {scope}{expression})"
    find = f"[&](auto* simt_f) -> decltype({instance}) {{ return {instance}; }}, " if visible and not typed else ""
    return f"::simt::launch({site}, {pointer}{call}, {find}::simt::config("


def rewrite_erased_kernels(tokens: list[Token], kernels: dict[str, Kernel]) -> None:
    """Wrap kernels that are cast to void* in erase(…), which keeps their parameters' types for later launches."""
    for i in range(len(tokens)):
        first = _find_erased(tokens, i)
        if first < 0:
            continue
        address = -1
        while get_text(tokens, first) in ("&", "("):
            address = first if tokens[first].text == "&" else address
            first = find_next(tokens, first)
        kernel = kernels.get(get_text(tokens, first))
        if kernel is None or tokens[first].kind != "word":
            continue
        after = find_next(tokens, first)
        last = find_angle_end(tokens, after) if get_text(tokens, after) == "<" else first
        if last < 0 or get_text(tokens, find_next(tokens, last)) == "(":
            continue
        names = ",".join(kernel.parameters)
        if address >= 0:
            tokens[address].text = ""
        tokens[first].text = "::simt::erase(" + tokens[first].text
        tokens[last].text += f', "{kernel.name}", "{names}", {kernel.line}, {kernel.bounds})'


def _find_erased(tokens: list[Token], i: int) -> int:
    """Return the index of the first token that the cast to void* at i applies to, or -1 if there is none."""
    if tokens[i].text == "reinterpret_cast" and tokens[i].kind == "word":
        opening = find_next(tokens, i)
        end = find_angle_end(tokens, opening)
    elif tokens[i].text == "(" and tokens[i].kind == "mark":
        opening, end = i, find_closing(tokens, i)
    else:
        return -1
    if end < 0 or not _is_void_pointer(tokens[opening + 1 : end]):
        return -1
    return find_next(tokens, end)


def _is_void_pointer(tokens: list[Token]) -> bool:
    return {t.text for t in tokens if t.kind not in ("space", "comment")} in ({"void", "*"}, {"const", "void", "*"})


# The argument of each that is the kernel.
_KERNEL_PLACES = {
    "cudaLaunchKernel": 0,
    "cudaLaunchCooperativeKernel": 0,
    "cudaLaunchKernelEx": 1,
    "cudaLaunchKernelExC": 1,
}


def rewrite_pointer_launches(tokens: list[Token], kernels: dict[str, Kernel]) -> None:
    """Replace the cast in cudaLaunchKernel((void*)kernel, …) by named(kernel, …), which keeps the type and the name.

    cudaLaunchKernelEx(&configuration, kernel, …) and cudaLaunchKernelExC have the kernel in the second place.
    """
    for i, token in enumerate(tokens):
        opening = find_next(tokens, i)
        place = _KERNEL_PLACES.get(token.text)
        if place is None or get_text(tokens, opening) != "(":
            continue
        closing = find_closing(tokens, opening)
        arguments = split_at_commas(tokens[opening + 1 : closing])
        if len(arguments) <= place:
            continue
        cast = next(j for j in range(opening, closing) if tokens[j] is arguments[place][0])
        if tokens[cast].kind in ("space", "comment"):
            cast = find_next(tokens, cast)
        if get_text(tokens, cast) == "(" and _is_void_pointer(tokens[cast + 1 : find_closing(tokens, cast)]):
            blank(tokens, cast, find_closing(tokens, cast) + 1)
        elif get_text(tokens, cast) == "reinterpret_cast":
            blank(tokens, cast, find_angle_end(tokens, find_next(tokens, cast)) + 1)
        given = [t for t in arguments[place] if t.kind not in ("space", "comment")]
        kernel, _, _, _ = _find_kernel(given, kernels)
        if kernel is None:
            continue
        names = ",".join(kernel.parameters)
        given[0].text = "::simt::named(" + given[0].text
        given[-1].text += f', "{kernel.name}", "{names}", {kernel.line}, {kernel.bounds})'
