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
    signature: str = ""
    template_parameters: int = 0  # 0: no template
    variadic: bool = False
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
    tokens = tokenize(source)
    _refuse(tokens, label, cuda)
    words = {t.text for t in tokens if t.kind == "word"}
    kernels, shared = {}, []
    if cuda:
        kernels = _kernels(tokens)
        _launches(tokens, kernels, label)
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
        text = tokens[j].text
        if text in (";", "{", "}") and closing == ">":
            return -1
        if text == closing:
            depth += 1
        elif text == ">>>" and closing == ">":
            depth += 3
        elif text == opening:
            depth -= 1
            if depth == 0:
                return j
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
    parts, depth = [[]], 0
    for token in tokens:
        if token.kind == "mark":
            if token.text in "([{<":
                depth += 1
            elif token.text in ")]}>":
                depth -= 1
            elif token.text == "," and depth == 0:
                parts.append([])
                continue
        parts[-1].append(token)
    return parts if any(t.kind not in ("space", "comment") for p in parts for t in p) else []


def _blank(tokens: list[Token], start: int, end: int) -> None:
    """Removes the tokens [start, end) but keeps their newlines."""
    for token in tokens[start:end]:
        token.kind, token.text = "space", "\n" * token.text.count("\n")


def _flat(tokens: list[Token]) -> str:
    """Text on one line, without comments."""
    return " ".join(
        "".join(" " if t.kind == "comment" else t.text for t in tokens).replace("\\\n", " ").split()
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
    for i, token in enumerate(tokens):
        if token.text != "__global__" or token.kind != "word":
            continue
        kernel = _kernel_at(tokens, i)
        if kernel is None:
            continue
        known = kernels.get(kernel.name)
        if known and known.signature != kernel.signature:
            known.overloaded = True
        elif known:
            known.bounds = kernel.bounds if kernel.bounds != "0" else known.bounds
        else:
            kernels[kernel.name] = kernel
    return kernels


def _kernel_at(tokens: list[Token], i: int) -> Kernel | None:
    """The kernel declared by the __global__ at i, or None where the text is no declaration."""
    bounds, name, j = "0", "", i
    while True:
        j = _next(tokens, j)
        if j < 0 or tokens[j].text in (";", "{", "}"):
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
        elif tokens[j].text == "(":
            break
        elif tokens[j].kind == "word":
            name = tokens[j].text
    end = _match(tokens, j)
    if end < 0 or not name:
        return None
    parts = _split(tokens[j + 1 : end])
    kernel = Kernel(name, [_parameter_name(p) for p in parts], _flat(tokens[j + 1 : end]), bounds=bounds)
    _template_of(tokens, i, kernel)
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


def _template_of(tokens: list[Token], i: int, kernel: Kernel) -> None:
    """Finds `template <…>` before the __global__ at i."""
    j = _next(tokens, i, -1)
    while j >= 0 and (tokens[j].text in ("static", "inline", "extern", "__forceinline__") or tokens[j].kind == "string"):
        j = _next(tokens, j, -1)
    if j >= 0 and tokens[j].text == ")":  # __launch_bounds__(…) before __global__
        j = _next(tokens, _next(tokens, _match_back(tokens, j, "(", ")"), -1), -1)
    if j < 0 or tokens[j].text != ">":
        return
    opening = _match_back(tokens, j, "<", ">")
    if opening < 0 or _text(tokens, _next(tokens, opening, -1)) != "template":
        return
    parts = _split(tokens[opening + 1 : j])
    kernel.template_parameters = max(1, len(parts))
    kernel.variadic = any("..." in _flat(p) or ". . ." in _flat(p) for p in parts)


def _launches(tokens: list[Token], kernels: dict[str, Kernel], label: str) -> None:
    bodies = _kernel_bodies(tokens)
    for i, token in enumerate(tokens):
        if token.text != "<<<" or token.kind != "mark":
            continue
        start = _expression_start(tokens, i)
        closing = _launch_end(tokens, i)
        arguments = _next(tokens, closing) if closing > 0 else -1
        if start < 0 or closing < 0 or _text(tokens, arguments) != "(":
            continue  # the compiler will say what is wrong here
        if any(a < i < b for a, b in bodies):
            raise Unsupported(
                [Diagnostic(label, token.line, 1, "error", "A kernel launched from a kernel (dynamic parallelism) can't run on the CPU.", _line(tokens, token.line))]
            )
        expression = _flat(tokens[start:i])
        lines = sum(t.text.count("\n") for t in tokens[start:i])
        line = tokens[start].line
        _blank(tokens, start, i)
        tokens[start].text = ""
        for t in tokens[start:i]:
            t.text = ""
        token.kind, token.text = "rewritten", "\n" * lines + _launch_head(expression, kernels, label, line)
        tokens[closing].text, tokens[closing].kind = "))", "rewritten"


def _launch_head(expression: str, kernels: dict[str, Kernel], label: str, line: int) -> str:
    base = re.sub(r"<.*", "", expression).split("::")[-1].strip()
    kernel = kernels.get(base)
    given = _template_arguments(expression)
    typed = kernel is not None and not kernel.overloaded and not kernel.variadic and given == kernel.template_parameters
    names = ",".join(kernel.parameters) if kernel else ""
    site = f'::simt::Site{{"{base}", "{label}", {line}, "{names}", {kernel.bounds if kernel else 0}}}'
    pointer = f"{expression}, " if typed else ""
    return f"::simt::launch({site}, {pointer}[&](const auto&... simt_a) {{ {expression}(simt_a...); }}, ::simt::config("


def _template_arguments(expression: str) -> int:
    tokens = tokenize(expression)
    opening = next((i for i, t in enumerate(tokens) if t.text == "<"), -1)
    if opening < 0:
        return 0
    return len(_split(tokens[opening + 1 : len(tokens) - 1]))


def _expression_start(tokens: list[Token], i: int) -> int:
    """Where the kernel's name before the <<< at i begins: ns::name<arguments>, name[i], (name)."""
    j = _next(tokens, i, -1)
    if j < 0:
        return -1
    if tokens[j].text == ">":
        j = _next(tokens, _match_back(tokens, j, "<", ">"), -1)
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
        if owner >= 0 and tokens[owner].text == ">":
            owner = _next(tokens, _match_back(tokens, owner, "<", ">"), -1)
        if owner < 0 or tokens[owner].kind != "word":
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
        elif text == ">>>" and depth == 0:
            return j
        elif text == ";" and depth == 0:
            return -1
    return -1


def _kernel_bodies(tokens: list[Token]) -> list[tuple[int, int]]:
    """Token ranges of the bodies of __global__ and __device__ functions."""
    bodies = []
    for i, token in enumerate(tokens):
        if token.text not in ("__global__", "__device__"):
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
    for i, token in enumerate(tokens):
        if token.text != "__shared__" or token.kind != "word":
            continue
        before = _next(tokens, i, -1)
        end = next((j for j in range(i, len(tokens)) if tokens[j].text in (";", "{")), -1)
        if end < 0 or tokens[end].text == "{" and "=" not in _flat(tokens[i:end]) and _text(tokens, before) != "extern":
            end = next((j for j in range(i, len(tokens)) if tokens[j].text == ";"), -1)
            if end < 0:
                continue
        if _text(tokens, before) == "extern":
            _dynamic(tokens, before, i, end, everywhere)
            continue
        declaration = tokens[i + 1 : end]
        if any(t.text == "=" for part in _split(declaration) for t in _outside_brackets(part)):
            raise Unsupported(
                [Diagnostic(label, token.line, 1, "error", "A __shared__ variable can't have an initial value: let the threads write it, then __syncthreads().", _line(tokens, token.line))]
            )
        names += [n for part in _split(declaration) if (n := _declared_name(part))]
        for j in range(i + 1, end):
            if tokens[j].text in ("alignas", "__align__"):
                _alignment(tokens, j)
        token.kind = "rewritten"
        token.text = "__thread" if _text(tokens, before) == "static" else "static __thread"
    for name, text in everywhere.items():
        for i, token in enumerate(tokens):
            if token.kind == "word" and token.text == name and _text(tokens, _next(tokens, i, -1)) not in (".", "->"):
                token.text = text
    return names


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
    lines = sum(t.text.count("\n") for t in tokens[i : end + 1])
    for token in tokens[i : end + 1]:
        token.kind, token.text = "space", ""
    tokens[i].kind, tokens[i].text = "rewritten", f"__attribute__((aligned({value})))" + "\n" * lines


def _dynamic(tokens: list[Token], start: int, i: int, end: int, everywhere: dict[str, str]) -> None:
    """extern __shared__ T name[]; becomes a pointer to the block's dynamic shared memory."""
    for j in range(i + 1, end):
        if tokens[j].text in ("alignas", "__align__"):
            opening = _next(tokens, j)
            closing = _match(tokens, opening)
            _blank(tokens, j, closing + 1)
    bracket = next((j for j in range(i, end) if tokens[j].text == "["), end)
    name_at = _next(tokens, bracket, -1)
    if name_at <= i:
        return
    kind, name = _flat(tokens[i + 1 : name_at]), tokens[name_at].text
    first_end = _match(tokens, bracket) if bracket < end else bracket
    rest = _flat(tokens[first_end + 1 : end]) if bracket < end else ""
    pointer = f"{kind} (*){rest}" if rest else f"{kind}*"
    value = f"(({pointer})::simt::dynamic_shared())"
    lines = sum(t.text.count("\n") for t in tokens[start:end])
    for token in tokens[start:end]:
        token.kind, token.text = "space", ""
    if _at_namespace_scope(tokens, start):
        everywhere[name] = value
        tokens[start].text = "\n" * lines
    else:
        declared = f"{kind} (*{name}){rest}" if rest else f"{kind}* {name}"
        tokens[start].kind, tokens[start].text = "rewritten", f"{declared} = {value}" + "\n" * lines


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
        if token.text in _QUALIFIERS:
            token.text = _QUALIFIERS[token.text]
        elif token.text == "__launch_bounds__":
            end = _match(tokens, _next(tokens, i)) if _text(tokens, _next(tokens, i)) == "(" else i
            _blank(tokens, i, end + 1)
        elif token.text == "__align__":
            _alignment(tokens, i)
        elif token.text in ("cudaLaunchKernel", "cudaLaunchCooperativeKernel"):
            _strip_cast(tokens, i)


def _strip_cast(tokens: list[Token], i: int) -> None:
    """cudaLaunchKernel((void*)kernel, …) keeps the kernel's type: the cast before the first argument goes."""
    opening = _next(tokens, i)
    cast = _next(tokens, opening)
    if _text(tokens, opening) != "(":
        return
    if _text(tokens, cast) == "(" and "void" in _flat(tokens[cast : _match(tokens, cast) + 1]):
        _blank(tokens, cast, _match(tokens, cast) + 1)
    elif _text(tokens, cast) == "reinterpret_cast":
        _blank(tokens, cast, _angle_end(tokens, _next(tokens, cast)) + 1)


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
