"""Turns CUDA C++ into C++ that g++ compiles against simt's headers: columns may move, lines may not."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .errors import Diagnostic, Unsupported

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|\\\r?\n)
    | (?P<comment>//(?:[^\\\n]|\\.|\\\n)*|/\*.*?\*/)
    | (?P<string>(?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")
    | (?P<char>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+')
    | (?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9a-zA-Z]|[0-9a-zA-Z_.])*)
    | (?P<word>[A-Za-z_]\w*)
    | (?P<mark><<<|>>>|::|->|.)
    """,
    re.VERBOSE | re.DOTALL,
)

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

# Names that say "on the GPU" to torch; here the tensors are on the CPU.
_PLACES = {"is_cuda": "is_cpu", "kCUDA": "kCPU"}

_FEATURES = {
    "asm": "inline PTX assembly",
    "__asm__": "inline PTX assembly",
    "wmma": "tensor-core fragments (wmma)",
    "cub": "the cub library",
    "thrust": "the thrust library",
    "cutlass": "the cutlass library",
    "cute": "the cute library",
    "curand_init": "cuRAND",
    "curandState": "cuRAND",
    "curandState_t": "cuRAND",
    "cudaTextureObject_t": "texture objects",
    "cudaSurfaceObject_t": "surface objects",
    "texture": "texture references",
    "tex1Dfetch": "textures",
    "tex1D": "textures",
    "tex2D": "textures",
    "tex3D": "textures",
    "cudaGraph_t": "CUDA graphs",
    "cudaStreamBeginCapture": "CUDA graphs",
    "cublasHandle_t": "cuBLAS",
    "cublasSgemm": "cuBLAS",
    "cudnnHandle_t": "cuDNN",
    "CUtensorMap": "tensor maps (TMA)",
    "__cluster_dims__": "thread block clusters",
    "__pipeline_memcpy_async": "asynchronous copies (__pipeline_*)",
    "__pipeline_commit": "asynchronous copies (__pipeline_*)",
    "__pipeline_wait_prior": "asynchronous copies (__pipeline_*)",
}
_LIBCUDACXX = {"std", "atomic", "atomic_ref", "barrier", "pipeline", "memcpy_async", "ptx", "aligned_size_t"}
_HEADERS = {
    "cub/": "the cub library",
    "thrust/": "the thrust library",
    "cutlass/": "the cutlass library",
    "cute/": "the cute library",
    "cuda/": "libcu++ (cuda/…)",
    "curand": "cuRAND",
    "cublas": "cuBLAS",
    "cudnn": "cuDNN",
    "mma.h": "tensor-core fragments (wmma)",
    "cuda_pipeline": "asynchronous copies",
}


@dataclass
class Token:
    """A piece of source text; `line` counts from 1."""

    kind: str
    text: str
    line: int


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


def tokenize(source: str) -> list[Token]:
    """Splits C++ source into tokens whose texts join to the source again."""
    tokens, line = [], 1
    for match in _TOKEN.finditer(source):
        text = match.group()
        tokens.append(Token(match.lastgroup if match.lastgroup != "tag" else "string", text, line))
        line += text.count("\n")
    return tokens


def rewrite(source: str, label: str, cuda: bool = True) -> Rewritten:
    """Rewrites one source.

    label: what the student knows the source as ("cuda_sources"), used in messages and in #line.
    cuda: False for C++ sources, in which only torch's words for the GPU change.
    Raises Unsupported where the source uses what has no counterpart on the CPU.
    """
    source = source.removeprefix("\ufeff")  # a byte order mark
    tokens = tokenize(source)
    _refuse(tokens, label, cuda)
    words = {t.text for t in tokens if t.kind == "word"}
    kernels, shared = {}, []
    if cuda:
        kernels = _kernels(tokens)
        _launches(tokens, kernels, label)
        _pointer_launches(tokens, kernels)
        shared = _shared(tokens, label)
        _qualifiers(tokens)
    _places(tokens)
    text = "".join(t.text for t in tokens)
    assert text.count("\n") == source.count("\n"), "a line was added or lost"
    return Rewritten(text, list(kernels), shared, words, "PYBIND11_MODULE" in words)


# ---- walking ----


def _next(tokens: list[Token], i: int, step: int = 1) -> int:
    """Index of the next token that is neither space nor comment, or -1."""
    i += step
    while 0 <= i < len(tokens):
        if tokens[i].kind not in ("space", "comment"):
            return i
        i += step
    return -1


def _text(tokens: list[Token], i: int) -> str:
    return tokens[i].text if 0 <= i < len(tokens) else ""


_CLOSING = {"(": ")", "[": "]", "{": "}"}


def _match(tokens: list[Token], i: int) -> int:
    """Index of the bracket that closes the one at i, or -1."""
    opening, depth = tokens[i].text, 0
    closing = _CLOSING[opening]
    for j in range(i, len(tokens)):
        if tokens[j].text == opening and tokens[j].kind == "mark":
            depth += 1
        elif tokens[j].text == closing and tokens[j].kind == "mark":
            depth -= 1
            if depth == 0:
                return j
    return -1


def _match_back(tokens: list[Token], i: int, opening: str, closing: str) -> int:
    """Index of the bracket that opens the one at i, looking backwards, or -1."""
    depth = 0
    for j in range(i, -1, -1):
        if tokens[j].kind != "mark":
            continue
        depth += (tokens[j].text == closing) - (tokens[j].text == opening)
        if depth == 0:
            return j
    return -1


def _angle_start(tokens: list[Token], i: int) -> int:
    """Index of the < that opens the template arguments which end at i with > or >>>, or -1."""
    depth, j = 0, i
    while j >= 0:
        text = tokens[j].text
        if text in (">", ">>>"):
            depth += len(text)
        elif text == "<":
            depth -= 1
            if depth == 0:
                return j
        elif text in (")", "]"):  # what stands in brackets may compare
            j = _match_back(tokens, j, {")": "(", "]": "["}[text], text)
        elif text in (";", "{", "}"):
            return -1
        j -= 1
    return -1


def _angle_end(tokens: list[Token], i: int) -> int:
    """Index of the > that closes the < at i in a template head or argument list, or -1."""
    depth = parens = 0
    for j in range(i, len(tokens)):
        text = tokens[j].text
        if text == "(":
            parens += 1
        elif text == ")":
            parens -= 1
        elif parens:
            continue
        elif text == "<":
            depth += 1
        elif text in (">", ">>>"):
            depth -= len(text)
            if depth <= 0:
                return j
        elif text in (";", "{"):
            return -1
    return -1


def _split(tokens: list[Token]) -> list[list[Token]]:
    """Splits at commas that stand inside no bracket; an empty list gives no part."""
    parts, depth, angles = [[]], 0, 0
    for token in tokens:
        if token.kind == "mark":
            if token.text in ("(", "[", "{"):
                depth += 1
            elif token.text in (")", "]", "}"):
                depth -= 1
            elif token.text == "<" and depth == 0:
                angles += 1
            elif token.text in (">", ">>>") and depth == 0:
                angles -= len(token.text)
            elif token.text == "," and depth == 0 and angles <= 0:
                parts.append([])
                continue
        parts[-1].append(token)
    return parts if any(t.kind not in ("space", "comment") for p in parts for t in p) else []


def _newlines(tokens: list[Token]) -> str:
    """The newlines in the tokens, each with the backslash that continues a macro."""
    return "".join("".join(re.findall(r"\\?\r?\n", t.text)) for t in tokens)


def _blank(tokens: list[Token], start: int, end: int) -> None:
    """Removes the tokens [start, end) but keeps their newlines."""
    for token in tokens[start:end]:
        token.kind, token.text = "space", _newlines([token])


def _directives(tokens: list[Token]) -> dict[int, int]:
    """Where preprocessor lines stand: index of each token in one -> index of its #."""
    inside, start = {}, -1
    for i, token in enumerate(tokens):
        if start >= 0 and token.kind == "space" and token.text[:1] != "\\" and "\n" in token.text:
            start = -1
        if start < 0 and token.text == "#" and token.kind == "mark":
            start = i
        if start >= 0:
            inside[i] = start
    return inside


def _flat(tokens: list[Token]) -> str:
    """Text on one line, without comments."""
    return " ".join(
        "".join(" " if t.kind == "comment" or t.text[:1] == "\\" else t.text for t in tokens).split()
    )


# ---- refusing ----


def _refuse(tokens: list[Token], label: str, cuda: bool) -> None:
    found = []
    in_include = False
    include_text = ""
    for i, token in enumerate(tokens):
        if token.text == "include" and _text(tokens, _next(tokens, i, -1)) == "#":
            end = next((j for j in range(i, len(tokens)) if "\n" in tokens[j].text and tokens[j].kind == "space"), len(tokens))
            name = "".join(t.text for t in tokens[i + 1 : end]).strip().strip('<>"')
            feature = next((what for start, what in _HEADERS.items() if name.startswith(start)), None)
            if feature:
                found.append((token, f"#include <{name}>", feature))
            in_include, include_text = end > i + 1, end
            continue
        if in_include and i < include_text:
            continue
        if token.kind != "word":
            continue
        before = _text(tokens, _next(tokens, i, -1))
        if token.text in _FEATURES and before not in (".", "->") and (cuda or token.text not in ("asm", "__asm__")):
            if token.text in ("cub", "thrust", "cutlass", "cute", "wmma") and _text(tokens, _next(tokens, i)) != "::":
                continue
            if token.text == "texture" and _text(tokens, _next(tokens, i)) != "<":
                continue
            found.append((token, token.text, _FEATURES[token.text]))
        elif token.text == "cuda" and _text(tokens, _next(tokens, i)) == "::":
            after = _text(tokens, _next(tokens, _next(tokens, i)))
            if before != "::" and after in _LIBCUDACXX:
                found.append((token, f"cuda::{after}", "libcu++ (cuda::…)"))
        elif token.text == "autograd" and before == "::" and _text(tokens, _next(tokens, i)) == "::":
            found.append((token, "torch::autograd", "C++ autograd functions (write a torch.autograd.Function in Python)"))
        elif token.text == "nn" and before == "::" and _text(tokens, _next(tokens, _next(tokens, i, -1), -1)) == "torch":
            found.append((token, "torch::nn", "torch's C++ modules (at:: and torch:: functions work)"))
        elif token.text == "class_" and before == "::":
            found.append((token, "py::class_", "binding classes (only functions can be bound)"))
    if found:
        raise Unsupported(
            [
                Diagnostic(label, t.line, 1, "error", f"`{name}`: {what} can't run on the CPU; a GPU runs it.", _line(tokens, t.line))
                for t, name, what in found
            ]
        )


def _line(tokens: list[Token], line: int) -> str:
    return "".join(t.text for t in tokens).split("\n")[line - 1]


# ---- kernels and launches ----


def _kernels(tokens: list[Token]) -> dict[str, Kernel]:
    kernels: dict[str, Kernel] = {}
    directives = _directives(tokens)
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
        j = _next(tokens, j)
        if j < 0 or tokens[j].text in (";", "{", "}") or directives.get(i) != directives.get(j):
            return None
        if tokens[j].text in ("__launch_bounds__", "__attribute__", "alignas"):
            opening = _next(tokens, j)
            end = _match(tokens, opening) if _text(tokens, opening) == "(" else -1
            if end < 0:
                return None
            if tokens[j].text == "__launch_bounds__":
                parts = _split(tokens[opening + 1 : end])
                bounds = _flat(parts[0]) if parts else "0"
            j = end
        elif tokens[j].text == "<":
            j = _angle_end(tokens, j)
            if j < 0:
                return None
        elif tokens[j].text == "(":
            break
        elif tokens[j].kind == "word":
            name = tokens[j].text
    end = _match(tokens, j)
    if end < 0 or not name:
        return None
    parts = _split(tokens[j + 1 : end])
    kernel = Kernel(name, [_parameter_name(p) for p in parts], line=tokens[i].line, bounds=bounds, signature=_flat(tokens[j + 1 : end]))
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
    j = _next(tokens, i, -1)
    while j >= 0 and (tokens[j].text in ("static", "inline", "extern", "__forceinline__") or tokens[j].kind == "string"):
        j = _next(tokens, j, -1)
    if j >= 0 and tokens[j].text == ")":  # __launch_bounds__(…) before __global__
        j = _next(tokens, _next(tokens, _match_back(tokens, j, "(", ")"), -1), -1)
    if j >= 0 and tokens[j].text == "template":
        return False
    if j < 0 or tokens[j].text != ">":
        return True
    opening = _angle_start(tokens, j)
    if opening < 0 or _text(tokens, _next(tokens, opening, -1)) != "template":
        return True
    parts = _split(tokens[opening + 1 : j])
    kernel.template_parameters = len(parts)
    kernel.variadic = any("..." in _flat(p) or ". . ." in _flat(p) for p in parts)
    return bool(parts)


def _launches(tokens: list[Token], kernels: dict[str, Kernel], label: str) -> None:
    directives = _directives(tokens)
    bodies = _kernel_bodies(tokens, directives)
    for i, token in enumerate(tokens):
        if token.text != "<<<" or token.kind != "mark":
            continue
        start = _expression_start(tokens, i)
        closing = _launch_end(tokens, i)
        arguments = _next(tokens, closing) if closing > 0 else -1
        end = _match(tokens, arguments) if _text(tokens, arguments) == "(" else -1
        if start < 0 or end < 0:
            continue  # the compiler will say what is wrong here
        if any(a < i < b for a, b in bodies):
            raise Unsupported(
                [Diagnostic(label, token.line, 1, "error", "A kernel launched from a kernel (dynamic parallelism) can't run on the CPU.", _line(tokens, token.line))]
            )
        line, newlines = tokens[start].line, _newlines(tokens[start:i])
        kernel, typed, expression, name = _kernel_of(tokens[start:i], kernels)
        if name in _macro_parameters(tokens, directives.get(i, -1)):
            name = f"#{name}"  # the macro's user knows the kernel
        else:
            name = f'"{name}"'
        given = _split(tokens[arguments + 1 : end])
        _null_pointers(given, kernel)
        if kernel and 0 < len(kernel.parameters) - len(given) <= kernel.defaults:
            typed = False  # the others have default values, which only a call of the kernel's own name finds
        for t in tokens[start:i]:
            t.kind, t.text = "space", ""
        token.kind, token.text = "rewritten", newlines + _launch_head(expression, name, kernel, typed, label, line)
        tokens[closing].text, tokens[closing].kind = "))", "rewritten"


def _pointer_launches(tokens: list[Token], kernels: dict[str, Kernel]) -> None:
    """cudaLaunchKernel((void*)kernel, …) keeps the kernel's type and name: named(kernel, …) takes the cast's place."""
    for i, token in enumerate(tokens):
        opening = _next(tokens, i)
        if token.text not in ("cudaLaunchKernel", "cudaLaunchCooperativeKernel") or _text(tokens, opening) != "(":
            continue
        cast = _next(tokens, opening)
        if _text(tokens, cast) == "(" and "void" in _flat(tokens[cast : _match(tokens, cast) + 1]):
            _blank(tokens, cast, _match(tokens, cast) + 1)
        elif _text(tokens, cast) == "reinterpret_cast":
            _blank(tokens, cast, _angle_end(tokens, _next(tokens, cast)) + 1)
        first = _split(tokens[opening + 1 : _match(tokens, opening)])
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
    expression = _flat(tokens)
    opening = next((i for i, t in enumerate(tokens) if t.text == "<"), len(tokens))
    name = next((t.text for t in reversed(tokens[:opening]) if t.kind == "word"), "a kernel")
    if any(t.text in (".", "->", "[", "*", "?") for t in tokens[:opening]):
        return None, False, expression, name
    kernel = kernels.get(name)
    if kernel is None:
        return None, False, expression, name
    closing = _angle_end(tokens, opening) if opening < len(tokens) else opening
    given = len(_split(tokens[opening + 1 : closing]))
    typed = not kernel.overloaded and not kernel.variadic and given == kernel.template_parameters
    return kernel, typed, expression, name


def _macro_parameters(tokens: list[Token], start: int) -> list[str]:
    """Parameters of the macro that the directive at `start` defines."""
    if start < 0 or _text(tokens, _next(tokens, start)) != "define":
        return []
    opening = _next(tokens, _next(tokens, start)) + 1
    if _text(tokens, opening) != "(":
        return []
    return [t.text for t in tokens[opening : _match(tokens, opening)] if t.kind == "word"]


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
    j = _next(tokens, i, -1)
    if j < 0:
        return -1
    if tokens[j].text in (">", ">>>"):
        j = _next(tokens, _angle_start(tokens, j), -1)
    elif tokens[j].text in ("]", ")"):
        opening = {"]": "[", ")": "("}[tokens[j].text]
        start = _match_back(tokens, j, opening, tokens[j].text)
        before = _next(tokens, start, -1)
        if opening == "(" and (before < 0 or tokens[before].kind != "word"):
            return start
        j = before
    if j < 0 or tokens[j].kind != "word":
        return -1
    while True:
        before = _next(tokens, j, -1)
        if before < 0 or tokens[before].text not in ("::", ".", "->"):
            return j
        owner = _next(tokens, before, -1)
        if owner >= 0 and tokens[owner].text in (">", ">>>"):
            owner = _next(tokens, _angle_start(tokens, owner), -1)
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
        elif text == ">>>" and depth == 0 and _text(tokens, _next(tokens, j)) == "(":
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
        while 0 <= (j := _next(tokens, j)):
            text = tokens[j].text
            parens += (text == "(") - (text == ")")
            if parens == 0 and text in (";", "="):
                break
            if parens == 0 and text == "{":
                bodies.append((j, _match(tokens, j)))
                break
            if parens < 0:
                break
    return bodies


# ---- shared memory and qualifiers ----


def _shared(tokens: list[Token], label: str) -> list[str]:
    """Rewrites __shared__ declarations; returns the names of the static arrays."""
    names, everywhere = [], {}
    bodies = _kernel_bodies(tokens, _directives(tokens))
    for i, token in enumerate(tokens):
        if token.text != "__shared__" or token.kind != "word":
            continue
        start = _declaration_start(tokens, i)
        end = _declaration_end(tokens, i)
        if end < 0:
            continue
        declaration = tokens[i + 1 : end]
        if any(t.text == "extern" for t in tokens[start:end]):
            _dynamic(tokens, start, end, everywhere)
            continue
        if any(t.text == "=" for part in _split(declaration) for t in _outside_brackets(part)):
            raise Unsupported(
                [Diagnostic(label, token.line, 1, "error", "A __shared__ variable can't have an initial value: let the threads write it, then __syncthreads().", _line(tokens, token.line))]
            )
        names += [n for part in _split(declaration) if (n := _declared_name(part))]
        for j in range(start, end):
            if tokens[j].text in ("alignas", "__align__"):
                _alignment(tokens, j)
        static = any(t.text == "static" for t in tokens[start:i])
        token.kind, token.text = "rewritten", "__thread" if static else "static __thread"
    for name, declaration in everywhere.items():
        _declare_inside(tokens, bodies, name, declaration)
    return names


def _declaration_start(tokens: list[Token], i: int) -> int:
    """Where the declaration begins whose __shared__ stands at i."""
    start, j = i, _next(tokens, i, -1)
    while j >= 0:
        if tokens[j].text == ")":
            j = _next(tokens, _match_back(tokens, j, "(", ")"), -1)
            if _text(tokens, j) not in ("alignas", "__align__"):
                break
        elif tokens[j].text not in ("extern", "static", "volatile", "const", "__device__"):
            break
        start, j = j, _next(tokens, j, -1)
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
    opening = _next(tokens, i)
    if _text(tokens, opening) != "(":
        return
    end = _match(tokens, opening)
    if end < 0:
        return
    value = _flat(tokens[opening + 1 : end])
    newlines = _newlines(tokens[i : end + 1])
    for token in tokens[i : end + 1]:
        token.kind, token.text = "space", ""
    tokens[i].kind, tokens[i].text = "rewritten", f"__attribute__((aligned({value})))" + newlines


def _dynamic(tokens: list[Token], start: int, end: int, everywhere: dict[str, str]) -> None:
    """extern __shared__ T name[]; becomes a pointer to the block's dynamic shared memory."""
    newlines = _newlines(tokens[start:end])
    for j in range(start, end):
        if tokens[j].text in ("alignas", "__align__"):
            _blank(tokens, j, _match(tokens, _next(tokens, j)) + 1)
    bracket = next((j for j in range(start, end) if tokens[j].text == "["), end)
    name_at = _next(tokens, bracket, -1)
    name = tokens[name_at].text
    kind = _flat([t for t in tokens[start:name_at] if t.text not in ("extern", "__shared__", "static", "__device__")])
    if not kind:
        return
    rest = _flat(tokens[_match(tokens, bracket) + 1 : end]) if bracket < end else ""
    pointer, declared = (f"{kind} (*){rest}", f"{kind} (*{name}){rest}") if rest else (f"{kind}*", f"{kind}* {name}")
    declaration = f"{declared} = ({pointer})::simt::dynamic_shared()"
    for token in tokens[start:end]:
        token.kind, token.text = "space", ""
    if _at_namespace_scope(tokens, start):
        everywhere[name] = declaration
        tokens[start].text = newlines
    else:
        tokens[start].kind, tokens[start].text = "rewritten", declaration + newlines


def _declare_inside(tokens: list[Token], bodies: list[tuple[int, int]], name: str, declaration: str) -> None:
    """Declares a pointer at the head of every function on the GPU that may name it; a parameter of that name hides it."""
    in_macro = any(tokens[i].text == name for i in _directives(tokens))
    for start, end in bodies:
        if end < 0 or not (in_macro or any(t.text == name for t in tokens[start:end])):
            continue
        closing = _next(tokens, start, -1)
        while closing >= 0 and tokens[closing].kind == "word":  # const, mutable
            closing = _next(tokens, closing, -1)
        if _text(tokens, closing) == ")" and any(t.text == name for t in tokens[_match_back(tokens, closing, "(", ")") : closing]):
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
            while (k := _next(tokens, k, -1)) >= 0 and tokens[k].text not in (";", "{", "}", ")"):
                head.append(tokens[k].text)
            stack.append("namespace" in head or ("extern" in head and '"C"' in head))
        elif tokens[j].text == "}" and stack:
            stack.pop()
    return all(stack)


def _qualifiers(tokens: list[Token]) -> None:
    for i, token in enumerate(tokens):
        if token.kind != "word":
            continue
        if token.text == "__forceinline__" and _inline_already(tokens, i):
            token.text = ""
        elif token.text in _QUALIFIERS:
            token.text = _QUALIFIERS[token.text]
        elif token.text == "__launch_bounds__":
            end = _match(tokens, _next(tokens, i)) if _text(tokens, _next(tokens, i)) == "(" else i
            _blank(tokens, i, end + 1)
        elif token.text == "__align__":
            _alignment(tokens, i)


def _inline_already(tokens: list[Token], i: int) -> bool:
    """Whether the declaration that the __forceinline__ at i belongs to says inline too, or is a lambda's."""
    for step in (1, -1):
        j = _next(tokens, i, step)
        while j >= 0 and (tokens[j].text in ("static", "constexpr", "") or tokens[j].text in _QUALIFIERS):
            j = _next(tokens, j, step)
        if _text(tokens, j) in ("inline", "__inline__", "__inline") or (step < 0 and _text(tokens, j) == "]"):
            return True
    return False


# ---- words that name the GPU, printf, assert ----


def _places(tokens: list[Token]) -> None:
    for i, token in enumerate(tokens):
        if token.kind != "word":
            continue
        before_at = _next(tokens, i, -1)
        before, after = _text(tokens, before_at), _text(tokens, _next(tokens, i))
        if token.text in _PLACES:
            token.text = _PLACES[token.text]
            if token.text == "is_cpu":
                _drop_type_call(tokens, i)
        elif token.text == "CUDA" and before == "::" and _text(tokens, _next(tokens, before_at, -1)) in ("DeviceType", "Backend"):
            token.text = "CPU"
        elif token.text == "cuda" and before == "." and after == "(":
            token.text = "cpu"
        elif token.text in ("Device", "device") and after == "(":
            literal = _next(tokens, _next(tokens, i))
            if tokens[literal].kind == "string" and tokens[literal].text.startswith('"cuda'):
                tokens[literal].text = '"cpu"'
        elif token.text == "printf" and before not in (".", "->"):
            if before == "::":
                owner = _next(tokens, before_at, -1)
                tokens[before_at].text = ""
                if _text(tokens, owner) == "std":
                    tokens[owner].text = ""
            token.text = "::simt::print"
        elif token.text == "assert" and after == "(" and before not in (".", "->", "::", "define"):
            token.text = "SIMT_ASSERT"


def _drop_type_call(tokens: list[Token], i: int) -> None:
    """x.type().is_cuda() becomes x.is_cpu(): the type object has no such question."""
    dot = _next(tokens, i, -1)
    closing = _next(tokens, dot, -1)
    opening = _next(tokens, closing, -1)
    name = _next(tokens, opening, -1)
    if _text(tokens, closing) == ")" and _text(tokens, opening) == "(" and _text(tokens, name) == "type":
        _blank(tokens, _next(tokens, name, -1), dot)
