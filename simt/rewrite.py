"""Turns CUDA C++ into C++ that g++ compiles against simt's headers: columns may move, lines may not."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .compilers import GCC, compiler
from .dropped_calls import mark_dropped
from .errors import Diagnostic, Unsupported
from .local_marks import mark_locals
from .ptx import translate
from .refuse import refuse
from .tokens import Token, angle_end, angle_start, blank, closing_of, directives_of, flat, newlines, next_token, opening_of, source_line, split_at_commas, text_at, tokenize
from .unrolled import unroll
from .whole_values import store_whole

# Qualifiers that mean nothing on a CPU, and what stands in their place.
_QUALIFIERS = {
    "__global__": "",
    "__device__": "",
    "__host__": "",
    "__constant__": "",
    "__managed__": "",
    "__grid_constant__": "",
    "__forceinline__": "inline",
    "__noinline__": "__attribute__((noinline))",
}

# As on a GPU, where shared memory begins at a multiple of this: tensor cores' tiles need 32. What asks for more, gets more.
_SHARED_PLACE = "__attribute__((aligned(128)))"

# Names that say "on the GPU" to torch; here the tensors are on the CPU.
_PLACES = {"is_cuda": "is_cpu", "kCUDA": "kCPU"}


@dataclass
class Kernel:
    """What a launch needs to know of a __global__ function."""

    name: str
    parameters: list[str] = field(default_factory=list)
    pointers: list[bool] = field(default_factory=list)  # whether each parameter is a pointer
    defaults: int = 0  # how many parameters have a default value
    signature: str = ""
    template_parameters: int = 0  # 0: no template
    variadic: bool = False
    line: int = 0
    bounds: str = "0"  # of __launch_bounds__, as C++ text
    overloaded: bool = False


@dataclass
class Rewritten:
    """The C++ text, with as many lines as the source, and the names that it defines."""

    text: str
    kernels: list[str]
    shared: list[str]
    words: set[str]
    binds_by_hand: bool
    constants: list[str] = field(default_factory=list)  # variables in constant memory
    ptx: int = 0  # the compute capability, times 10, that its inline PTX needs; 0 where it has none


def rewrite(source: str, label: str, cuda: bool = True, mode: str = "plain", known: dict[str, Kernel] | None = None) -> Rewritten:
    """Rewrites one source.

    label: what the student knows the source as ("cuda_sources"), used in messages and in #line.
    cuda: False for C++ sources, in which only torch's words for the GPU change.
    known: kernels of other files of the same program, which this one may launch.
    mode: what it is built for. With checks, local variables without a value get the mark of memory that nobody wrote, dynamic
    shared memory its name, and calls whose results are dropped are told of; counting with g++, loops of constant length are unrolled.
    Raises Unsupported where the source uses what has no counterpart on the CPU.
    """
    source = source.removeprefix("\ufeff")  # a byte order mark
    tokens = tokenize(source)
    refuse(tokens, label)
    words = {t.text for t in tokens if t.kind == "word"}
    kernels, shared, arrays, constants, ptx = {}, [], [], [], 0
    if cuda:
        bodies = _kernel_bodies(tokens, directives_of(tokens))
        kernels = _kernels(tokens)
        launched = {**(known or {}), **kernels}
        _launches(tokens, launched, label)
        _pointer_launches(tokens, launched)
        shared, arrays = _shared(tokens, label, mode == "check")
        constants = _constants(tokens)
        _qualifiers(tokens)
        store_whole(tokens)
        if mode == "check":
            mark_locals(tokens, bodies)
            mark_dropped(tokens)
        if mode == "count" and compiler()[2] is GCC:
            unroll(tokens)
    _places(tokens)
    for bracket in arrays:  # else g++ constructs an array of a class, of half for instance, when a thread first comes by
        bracket.text += " = {}" if bracket.text == "]" else ""
    if cuda:  # last, for what others rewrite may stand in an operand
        ptx = translate(tokens, source, label)
    text = "".join(t.text for t in tokens)
    assert text.count("\n") == source.count("\n"), "a line was added or lost"
    return Rewritten(text, list(kernels), shared, words, "PYBIND11_MODULE" in words, constants, ptx)


def kernels_of(source: str) -> dict[str, Kernel]:
    """The kernels that a source declares."""
    return _kernels(tokenize(source))


# ---- kernels and launches ----


def _kernels(tokens: list[Token]) -> dict[str, Kernel]:
    kernels: dict[str, Kernel] = {}
    directives = directives_of(tokens)
    for i, token in enumerate(tokens):
        if token.text != "__global__" or token.kind != "word":
            continue
        kernel = _kernel_at(tokens, i, directives)
        if kernel is None:
            continue
        known = kernels.get(kernel.name)
        if known and known.signature != kernel.signature:
            known.overloaded = True
        elif known:
            known.bounds = kernel.bounds if kernel.bounds != "0" else known.bounds
            known.defaults = max(known.defaults, kernel.defaults)
            known.line = kernel.line  # the last of its declarations is the definition
        else:
            kernels[kernel.name] = kernel
    return kernels


def _kernel_at(tokens: list[Token], i: int, directives: dict[int, int]) -> Kernel | None:
    """The kernel declared by the __global__ at i; None where the text declares none, or specialises a template."""
    bounds, name, j = "0", "", i
    while True:
        j = next_token(tokens, j)
        if j < 0 or tokens[j].text in (";", "{", "}") or directives.get(i) != directives.get(j):
            return None
        if tokens[j].text in ("__launch_bounds__", "__attribute__", "alignas"):
            opening = next_token(tokens, j)
            end = closing_of(tokens, opening) if text_at(tokens, opening) == "(" else -1
            if end < 0:
                return None
            if tokens[j].text == "__launch_bounds__":
                parts = split_at_commas(tokens[opening + 1 : end])
                bounds = flat(parts[0]) if parts else "0"
            j = end
        elif tokens[j].text == "<":
            j = angle_end(tokens, j)
            if j < 0:
                return None
        elif tokens[j].text == "(":
            break
        elif tokens[j].kind == "word":
            name = tokens[j].text
    end = closing_of(tokens, j)
    if end < 0 or not name:
        return None
    parts = split_at_commas(tokens[j + 1 : end])
    kernel = Kernel(name, [_parameter_name(p) for p in parts], line=tokens[i].line, bounds=bounds, signature=flat(tokens[j + 1 : end]))
    kernel.pointers = [any(t.text in ("*", "[") for t in p) for p in parts]
    kernel.defaults = sum(any(t.text == "=" for t in p) for p in parts)
    if not _template_of(tokens, i, kernel):
        return None
    if kernel.template_parameters and not bounds.isdigit():
        kernel.bounds = "0"  # may depend on a template parameter, which the launch can't name
    return kernel


def _parameter_name(tokens: list[Token]) -> str:
    name = ""
    for token in tokens:
        if token.text in ("=", "["):
            break
        if token.kind == "word":
            name = token.text
    return name


def _template_of(tokens: list[Token], i: int, kernel: Kernel) -> bool:
    """Finds `template <…>` before the __global__ at i; False for a specialisation, which is no kernel of its own."""
    j = next_token(tokens, i, -1)
    while j >= 0 and (tokens[j].text in ("static", "inline", "extern", "__forceinline__") or tokens[j].kind == "string"):
        j = next_token(tokens, j, -1)
    if j >= 0 and tokens[j].text == ")":  # __launch_bounds__(…) before __global__
        j = next_token(tokens, next_token(tokens, opening_of(tokens, j, "(", ")"), -1), -1)
    if j >= 0 and tokens[j].text == "template":
        return False
    if j < 0 or tokens[j].text != ">":
        return True
    opening = angle_start(tokens, j)
    if opening < 0 or text_at(tokens, next_token(tokens, opening, -1)) != "template":
        return True
    parts = split_at_commas(tokens[opening + 1 : j])
    kernel.template_parameters = len(parts)
    kernel.variadic = any("..." in flat(p) or ". . ." in flat(p) for p in parts)
    return bool(parts)


def _launches(tokens: list[Token], kernels: dict[str, Kernel], label: str) -> None:
    directives = directives_of(tokens)
    bodies = _kernel_bodies(tokens, directives)
    for i, token in enumerate(tokens):
        if token.text != "<<<" or token.kind != "mark":
            continue
        start = _expression_start(tokens, i)
        closing = _launch_end(tokens, i)
        arguments = next_token(tokens, closing) if closing > 0 else -1
        end = closing_of(tokens, arguments) if text_at(tokens, arguments) == "(" else -1
        if start < 0 or end < 0:
            continue  # the compiler will say what is wrong here
        if any(a < i < b for a, b in bodies):
            raise Unsupported(
                [Diagnostic(label, token.line, 1, "error", "A kernel launched from a kernel (dynamic parallelism) can't run on the CPU.", source_line(tokens, token.line))]
            )
        line, breaks = tokens[start].line, newlines(tokens[start:i])
        kernel, typed, expression, name = _kernel_of(tokens[start:i], kernels)
        typed = typed or (kernel is None and _is_pointer(tokens, start, i))
        if name in _macro_parameters(tokens, directives.get(i, -1)):
            name = f"#{name}"  # the macro's user knows the kernel
        else:
            name = f'"{name}"'
        given = split_at_commas(tokens[arguments + 1 : end])
        _null_pointers(given, kernel)
        if kernel and 0 < len(kernel.parameters) - len(given) <= kernel.defaults:
            typed = False  # the others have default values, which only a call of the kernel's own name finds
        for t in tokens[start:i]:
            t.kind, t.text = "space", ""
        token.kind, token.text = "rewritten", breaks + _launch_head(expression, name, kernel, typed, label, line)
        tokens[closing].text, tokens[closing].kind = "))", "rewritten"


def _is_pointer(tokens: list[Token], start: int, end: int) -> bool:
    """Whether the expression in [start, end), which names no kernel, is a variable: a member, an element, or a name that
    is declared somewhere as one."""
    words = [t for t in tokens[start:end] if t.kind not in ("space", "comment")]
    if any(t.text in (".", "->", "[") for t in words):
        return True
    if len(words) != 1 or words[0].kind != "word":
        return False
    for i, token in enumerate(tokens):
        if token.text != words[0].text or token is words[0]:
            continue
        before, after = next_token(tokens, i, -1), next_token(tokens, i)
        declared = before >= 0 and tokens[before].kind == "word" and tokens[before].text not in ("return", "else", "case", "goto", "define", "using")
        if (declared and text_at(tokens, after) in (",", ")", "=", ";", ":", "{")) or (text_at(tokens, before) == "*" and text_at(tokens, after) == ")"):
            return True
    return False


def _pointer_launches(tokens: list[Token], kernels: dict[str, Kernel]) -> None:
    """cudaLaunchKernel((void*)kernel, …) keeps the kernel's type and name: named(kernel, …) takes the cast's place."""
    for i, token in enumerate(tokens):
        opening = next_token(tokens, i)
        if token.text not in ("cudaLaunchKernel", "cudaLaunchCooperativeKernel") or text_at(tokens, opening) != "(":
            continue
        cast = next_token(tokens, opening)
        if text_at(tokens, cast) == "(" and "void" in flat(tokens[cast : closing_of(tokens, cast) + 1]):
            blank(tokens, cast, closing_of(tokens, cast) + 1)
        elif text_at(tokens, cast) == "reinterpret_cast":
            blank(tokens, cast, angle_end(tokens, next_token(tokens, cast)) + 1)
        first = split_at_commas(tokens[opening + 1 : closing_of(tokens, opening)])
        if not first:
            continue
        kernel, _, expression, name = _kernel_of([t for t in first[0] if t.kind not in ("space", "comment")], kernels)
        if kernel is None:
            continue
        token_of = next(t for t in first[0] if t.kind not in ("space", "comment"))
        last_of = [t for t in first[0] if t.kind not in ("space", "comment")][-1]
        names = ",".join(kernel.parameters)
        token_of.text = "::simt::named(" + token_of.text
        last_of.text += f', "{kernel.name}", "{names}", {kernel.line}, {kernel.bounds})'


def _launch_head(expression: str, name: str, kernel: Kernel | None, typed: bool, label: str, line: int) -> str:
    names = ",".join(kernel.parameters) if kernel else ""
    site = f'::simt::Site{{{name}, "{label}", {line}, "{names}", {kernel.line if kernel else 0}, {kernel.bounds if kernel else 0}}}'
    pointer = f"{expression}, " if typed else ""
    return f"::simt::launch({site}, {pointer}[&](const auto&... simt_a) {{ {expression}(simt_a...); }}, ::simt::config("


def _kernel_of(tokens: list[Token], kernels: dict[str, Kernel]) -> tuple[Kernel | None, bool, str, str]:
    """What the expression before <<< launches: the kernel if it is named, whether that name alone fixes the types of
    its parameters, the expression, and a name for messages."""
    expression = flat(tokens)
    opening = next((i for i, t in enumerate(tokens) if t.text == "<"), len(tokens))
    name = next((t.text for t in reversed(tokens[:opening]) if t.kind == "word"), "a kernel")
    if any(t.text in (".", "->", "[", "*", "?") for t in tokens[:opening]):
        return None, False, expression, name
    kernel = kernels.get(name)
    if kernel is None:
        return None, False, expression, name
    closing = angle_end(tokens, opening) if opening < len(tokens) else opening
    given = len(split_at_commas(tokens[opening + 1 : closing]))
    typed = not kernel.overloaded and not kernel.variadic and given == kernel.template_parameters
    return kernel, typed, expression, name


def _macro_parameters(tokens: list[Token], start: int) -> list[str]:
    """Parameters of the macro that the directive at `start` defines."""
    if start < 0 or text_at(tokens, next_token(tokens, start)) != "define":
        return []
    opening = next_token(tokens, next_token(tokens, start)) + 1
    if text_at(tokens, opening) != "(":
        return []
    return [t.text for t in tokens[opening : closing_of(tokens, opening)] if t.kind == "word"]


def _null_pointers(arguments: list[list[Token]], kernel: Kernel | None) -> None:
    """NULL, and 0 for a pointer, stop being null pointers once they are stored: nullptr does not."""
    for i, argument in enumerate(arguments):
        words = [t for t in argument if t.kind not in ("space", "comment")]
        if len(words) != 1:
            continue
        pointer = kernel is not None and i < len(kernel.pointers) and kernel.pointers[i]
        if words[0].text == "NULL" or (words[0].text == "0" and pointer):
            words[0].text = "nullptr"


def _expression_start(tokens: list[Token], i: int) -> int:
    """Where the kernel's name before the <<< at i begins: ns::name<arguments>, name[i], (name)."""
    j = next_token(tokens, i, -1)
    if j < 0:
        return -1
    if tokens[j].text in (">", ">>>"):
        j = next_token(tokens, angle_start(tokens, j), -1)
    elif tokens[j].text in ("]", ")"):
        opening = {"]": "[", ")": "("}[tokens[j].text]
        start = opening_of(tokens, j, opening, tokens[j].text)
        before = next_token(tokens, start, -1)
        if opening == "(" and (before < 0 or tokens[before].kind != "word"):
            return start
        j = before
    if j < 0 or tokens[j].kind != "word":
        return -1
    while True:
        before = next_token(tokens, j, -1)
        if before < 0 or tokens[before].text not in ("::", ".", "->"):
            return j
        owner = next_token(tokens, before, -1)
        if owner >= 0 and tokens[owner].text in (">", ">>>"):
            owner = next_token(tokens, angle_start(tokens, owner), -1)
        if owner < 0 or tokens[owner].kind != "word" or tokens[owner].text in ("return", "else", "do"):
            return before
        j = owner


def _launch_end(tokens: list[Token], i: int) -> int:
    """Index of the >>> that closes the <<< at i, or -1."""
    depth = 0
    for j in range(i + 1, len(tokens)):
        text = tokens[j].text
        if tokens[j].kind != "mark":
            continue
        if text in "([{":
            depth += 1
        elif text in ")]}":
            depth -= 1
        elif text == ">>>" and depth == 0 and text_at(tokens, next_token(tokens, j)) == "(":
            return j
        elif text == ";" and depth == 0:
            return -1
    return -1


def _kernel_bodies(tokens: list[Token], directives: dict[int, int]) -> list[tuple[int, int]]:
    """Token ranges of the bodies of __global__ and __device__ functions."""
    bodies = []
    for i, token in enumerate(tokens):
        if token.text not in ("__global__", "__device__") or i in directives:
            continue
        j, parens = i, 0
        while 0 <= (j := next_token(tokens, j)):
            text = tokens[j].text
            parens += (text == "(") - (text == ")")
            if parens == 0 and text in (";", "="):
                break
            if parens == 0 and text == "{":
                bodies.append((j, closing_of(tokens, j)))
                break
            if parens < 0:
                break
    return bodies


# ---- shared memory and qualifiers ----


def _shared(tokens: list[Token], label: str, named: bool) -> tuple[list[str], list[Token]]:
    """Rewrites __shared__ declarations; returns the names of the static variables, and where those that are arrays end.

    named: whether the runtime is told what dynamic shared memory is called.
    """
    names, arrays, everywhere = [], [], {}
    bodies = _kernel_bodies(tokens, directives_of(tokens))
    for i, token in enumerate(tokens):
        if token.text != "__shared__" or token.kind != "word":
            continue
        start = _declaration_start(tokens, i)
        end = _declaration_end(tokens, i)
        if end < 0:
            continue
        declaration = tokens[i + 1 : end]
        if any(t.text == "extern" for t in tokens[start:end]):
            _dynamic(tokens, start, end, everywhere, named)
            continue
        if any(t.text == "=" for part in split_at_commas(declaration) for t in _outside_brackets(part)):
            raise Unsupported(
                [Diagnostic(label, token.line, 1, "error", "A __shared__ variable can't have an initial value: let the threads write it, then __syncthreads().", source_line(tokens, token.line))]
            )
        names += [n for part in split_at_commas(declaration) if (n := _declared_name(part))]
        for part in split_at_commas(declaration):
            arrays += [t for t in reversed(part) if t.kind not in ("space", "comment")][:1]
        for j in range(start, end):
            if tokens[j].text in ("alignas", "__align__"):
                _alignment(tokens, j)
        static = any(t.text == "static" for t in tokens[start:i])
        token.kind, token.text = "rewritten", ("" if static else "static ") + f"__thread {_SHARED_PLACE}"
    for name, declaration in everywhere.items():
        _declare_inside(tokens, bodies, name, declaration)
    return names, arrays


def _declaration_start(tokens: list[Token], i: int) -> int:
    """Where the declaration begins whose __shared__ stands at i."""
    start, j = i, next_token(tokens, i, -1)
    while j >= 0:
        if tokens[j].text == ")":
            j = next_token(tokens, opening_of(tokens, j, "(", ")"), -1)
            if text_at(tokens, j) not in ("alignas", "__align__"):
                break
        elif tokens[j].text not in ("extern", "static", "volatile", "const", "__device__"):
            break
        start, j = j, next_token(tokens, j, -1)
    return start


def _declaration_end(tokens: list[Token], i: int) -> int:
    """Index of the semicolon that ends the declaration at i, or -1."""
    depth = 0
    for j in range(i, len(tokens)):
        text = tokens[j].text
        if tokens[j].kind == "mark":
            depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
            if text == ";" and depth == 0:
                return j
            if depth < 0:
                return -1
    return -1


def _outside_brackets(tokens: list[Token]) -> list[Token]:
    kept, depth = [], 0
    for token in tokens:
        if token.text in ("(", "[", "{"):
            depth += 1
        elif token.text in (")", "]", "}"):
            depth -= 1
        elif depth == 0:
            kept.append(token)
    return kept


def _declared_name(tokens: list[Token]) -> str:
    name = ""
    for token in _outside_brackets(tokens):
        if token.kind == "word" and token.text not in ("alignas", "__align__"):
            name = token.text
    return name


def _alignment(tokens: list[Token], i: int) -> None:
    opening = next_token(tokens, i)
    if text_at(tokens, opening) != "(":
        return
    end = closing_of(tokens, opening)
    if end < 0:
        return
    value = flat(tokens[opening + 1 : end])
    breaks = newlines(tokens[i : end + 1])
    for token in tokens[i : end + 1]:
        token.kind, token.text = "space", ""
    tokens[i].kind, tokens[i].text = "rewritten", f"__attribute__((aligned({value})))" + breaks


def _dynamic(tokens: list[Token], start: int, end: int, everywhere: dict[str, str], named: bool) -> None:
    """extern __shared__ T name[]; becomes a pointer to the block's dynamic shared memory."""
    breaks = newlines(tokens[start:end])
    for j in range(start, end):
        if tokens[j].text in ("alignas", "__align__"):
            blank(tokens, j, closing_of(tokens, next_token(tokens, j)) + 1)
    bracket = next((j for j in range(start, end) if tokens[j].text == "["), end)
    name_at = next_token(tokens, bracket, -1)
    name = tokens[name_at].text
    kind = flat([t for t in tokens[start:name_at] if t.text not in ("extern", "__shared__", "static", "__device__")])
    if not kind:
        return
    rest = flat(tokens[closing_of(tokens, bracket) + 1 : end]) if bracket < end else ""
    pointer, declared = (f"{kind} (*){rest}", f"{kind} (*{name}){rest}") if rest else (f"{kind}*", f"{kind}* {name}")
    told = f'"{name}", sizeof({kind})' if named else ""
    declaration = f"{declared} = ({pointer})::simt::dynamic_shared({told})"
    for token in tokens[start:end]:
        token.kind, token.text = "space", ""
    if _at_namespace_scope(tokens, start):
        everywhere[name] = declaration
        tokens[start].text = breaks
    else:
        tokens[start].kind, tokens[start].text = "rewritten", declaration + breaks


def _declare_inside(tokens: list[Token], bodies: list[tuple[int, int]], name: str, declaration: str) -> None:
    """Declares a pointer at the head of every function on the GPU that may name it; a parameter of that name hides it."""
    in_macro = any(tokens[i].text == name for i in directives_of(tokens))
    for start, end in bodies:
        if end < 0 or not (in_macro or any(t.text == name for t in tokens[start:end])):
            continue
        closing = next_token(tokens, start, -1)
        while closing >= 0 and tokens[closing].kind == "word":  # const, mutable
            closing = next_token(tokens, closing, -1)
        if text_at(tokens, closing) == ")" and any(t.text == name for t in tokens[opening_of(tokens, closing, "(", ")") : closing]):
            continue
        tokens[start].kind, tokens[start].text = "rewritten", f"{{ {declaration}; {tokens[start].text}"
        tokens[end].kind, tokens[end].text = "rewritten", f"{tokens[end].text} }}"


def _at_namespace_scope(tokens: list[Token], i: int) -> bool:
    """Whether every brace open at i belongs to a namespace or extern "C"."""
    stack = []
    for j in range(i):
        if tokens[j].kind != "mark":
            continue
        if tokens[j].text == "{":
            head, k = [], j
            while (k := next_token(tokens, k, -1)) >= 0 and tokens[k].text not in (";", "{", "}", ")"):
                head.append(tokens[k].text)
            stack.append("namespace" in head or ("extern" in head and '"C"' in head))
        elif tokens[j].text == "}" and stack:
            stack.pop()
    return all(stack)


def _constants(tokens: list[Token]) -> list[str]:
    """The names of the __constant__ variables."""
    names = []
    for i, token in enumerate(tokens):
        if token.text != "__constant__" or token.kind != "word" or (end := _declaration_end(tokens, i)) < 0:
            continue
        for part in split_at_commas(tokens[i + 1 : end]):
            declared = next((j for j, t in enumerate(part) if t.text == "=" and t.kind == "mark"), len(part))
            names += [name] if (name := _declared_name(part[:declared])) else []
    return names


def _qualifiers(tokens: list[Token]) -> None:
    for i, token in enumerate(tokens):
        if token.kind != "word":
            continue
        if token.text == "__forceinline__" and _inline_already(tokens, i):
            token.text = ""
        elif token.text in _QUALIFIERS:
            token.text = _QUALIFIERS[token.text]
        elif token.text == "__launch_bounds__":
            end = closing_of(tokens, next_token(tokens, i)) if text_at(tokens, next_token(tokens, i)) == "(" else i
            blank(tokens, i, end + 1)
        elif token.text == "__align__":
            _alignment(tokens, i)


def _inline_already(tokens: list[Token], i: int) -> bool:
    """Whether the declaration that the __forceinline__ at i belongs to says inline too, or is a lambda's."""
    for step in (1, -1):
        j = next_token(tokens, i, step)
        while j >= 0 and (tokens[j].text in ("static", "constexpr", "") or tokens[j].text in _QUALIFIERS):
            j = next_token(tokens, j, step)
        if text_at(tokens, j) in ("inline", "__inline__", "__inline") or (step < 0 and text_at(tokens, j) == "]"):
            return True
    return False


# ---- words that name the GPU, printf, assert ----


def _places(tokens: list[Token]) -> None:
    for i, token in enumerate(tokens):
        if token.kind != "word":
            continue
        before_at = next_token(tokens, i, -1)
        before, after = text_at(tokens, before_at), text_at(tokens, next_token(tokens, i))
        if token.text in _PLACES:
            token.text = _PLACES[token.text]
            if token.text == "is_cpu":
                _drop_type_call(tokens, i)
        elif token.text == "CUDA" and before == "::" and text_at(tokens, next_token(tokens, before_at, -1)) in ("DeviceType", "Backend"):
            token.text = "CPU"
        elif token.text == "cuda" and before == "." and after == "(":
            token.text = "cpu"
        elif token.text in ("Device", "device") and after == "(":
            literal = next_token(tokens, next_token(tokens, i))
            if tokens[literal].kind == "string" and tokens[literal].text.startswith('"cuda'):
                tokens[literal].text = '"cpu"'
        elif token.text == "printf" and before not in (".", "->"):
            if before == "::":
                owner = next_token(tokens, before_at, -1)
                tokens[before_at].text = ""
                if text_at(tokens, owner) == "std":
                    tokens[owner].text = ""
            token.text = "::simt::print"
        elif token.text == "assert" and after == "(" and before not in (".", "->", "::", "define"):
            token.text = "SIMT_ASSERT"


def _drop_type_call(tokens: list[Token], i: int) -> None:
    """x.type().is_cuda() becomes x.is_cpu(): the type object has no such question."""
    dot = next_token(tokens, i, -1)
    closing = next_token(tokens, dot, -1)
    opening = next_token(tokens, closing, -1)
    name = next_token(tokens, opening, -1)
    if text_at(tokens, closing) == ")" and text_at(tokens, opening) == "(" and text_at(tokens, name) == "type":
        blank(tokens, next_token(tokens, name, -1), dot)
