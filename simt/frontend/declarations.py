"""Find what a source declares for the GPU: kernels, function bodies, and constant memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from simt.frontend.tokens import (
    Token,
    find_angle_end,
    find_angle_start,
    find_closing,
    find_declaration_end,
    find_declared_name,
    find_next,
    find_opening,
    flatten,
    get_text,
    split_at_commas,
)


@dataclass
class Kernel:
    """The parts of a __global__ function that a launch needs."""

    name: str
    parameters: list[str] = field(default_factory=list)
    pointers: list[bool] = field(default_factory=list)  # whether each parameter is a pointer
    defaults: int = 0  # how many parameters have a default value
    signature: str = ""
    template_parameters: int = 0  # 0: not a template
    variadic: bool = False
    line: int = 0
    bounds: str = "0"  # the first argument of __launch_bounds__, as C++ text
    overloaded: bool = False
    is_outermost: bool = False  # declared in no namespace and no class
    is_global: bool = False  # declared in no namespace, in a file with `using namespace std;`


def find_kernels(tokens: list[Token], directives: dict[int, int]) -> dict[str, Kernel]:
    """Return the kernels that the tokens declare, by name. directives: the result of tokens.find_directives()."""
    kernels: dict[str, Kernel] = {}
    opens_std = "using namespace std ;" in " ".join(t.text for t in tokens if t.kind not in ("space", "comment"))
    depths = _find_depths(tokens) if any(t.text == "__global__" for t in tokens) else []
    for i, token in enumerate(tokens):
        if token.text != "__global__" or token.kind != "word":
            continue
        kernel = _read_kernel(tokens, i, directives)
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
            kernel.is_outermost = depths[i] == 0
            kernel.is_global = opens_std and kernel.is_outermost
    return kernels


def _find_depths(tokens: list[Token]) -> list[int]:
    """Return the number of braces around each token, without those of `extern "C" {…}`."""
    found, depths = [], [0]
    for j, token in enumerate(tokens):
        found.append(depths[-1])
        if token.kind != "mark":
            continue
        if token.text == "{":
            before = find_next(tokens, j, -1)
            linkage = get_text(tokens, before) == '"C"' and get_text(tokens, find_next(tokens, before, -1)) == "extern"
            depths.append(depths[-1] + (not linkage))
        elif token.text == "}" and len(depths) > 1:
            depths.pop()
    return found


def _read_kernel(tokens: list[Token], i: int, directives: dict[int, int]) -> Kernel | None:
    """Return the kernel that the __global__ at i declares, or None if it declares none or specialises a template."""
    bounds, name, j = "0", "", i
    while True:
        j = find_next(tokens, j)
        if j < 0 or tokens[j].text in (";", "{", "}") or directives.get(i) != directives.get(j):
            return None
        if tokens[j].text in ("__launch_bounds__", "__attribute__", "alignas"):
            opening = find_next(tokens, j)
            end = find_closing(tokens, opening) if get_text(tokens, opening) == "(" else -1
            if end < 0:
                return None
            if tokens[j].text == "__launch_bounds__":
                parts = split_at_commas(tokens[opening + 1 : end])
                bounds = flatten(parts[0]) if parts else "0"
            j = end
        elif tokens[j].text == "<":
            j = find_angle_end(tokens, j)
            if j < 0:
                return None
        elif tokens[j].text == "(":
            break
        elif tokens[j].kind == "word":
            name = tokens[j].text
    end = find_closing(tokens, j)
    if end < 0 or not name:
        return None
    parts = split_at_commas(tokens[j + 1 : end])
    kernel = Kernel(
        name,
        [_find_parameter_name(p) for p in parts],
        line=tokens[i].line,
        bounds=bounds,
        signature=flatten(tokens[j + 1 : end]),
    )
    kernel.pointers = [any(t.text in ("*", "[") for t in p) for p in parts]
    kernel.defaults = sum(any(t.text == "=" for t in p) for p in parts)
    if not _read_template(tokens, i, kernel):
        return None
    if kernel.template_parameters and not bounds.isdigit():
        kernel.bounds = "0"  # may depend on a template parameter, which the launch cannot name
    return kernel


def _find_parameter_name(tokens: list[Token]) -> str:
    name = ""
    for token in tokens:
        if token.text in ("=", "["):
            break
        if token.kind == "word":
            name = token.text
    return name


def _read_template(tokens: list[Token], i: int, kernel: Kernel) -> bool:
    """Read `template <…>` before the __global__ at i. Return False for a specialisation, which is not a new kernel."""
    j = find_next(tokens, i, -1)
    while j >= 0 and (
        tokens[j].text in ("static", "inline", "extern", "__forceinline__") or tokens[j].kind == "string"
    ):
        j = find_next(tokens, j, -1)
    if j >= 0 and tokens[j].text == ")":  # __launch_bounds__(…) before __global__
        j = find_next(tokens, find_next(tokens, find_opening(tokens, j, "(", ")"), -1), -1)
    if j >= 0 and tokens[j].text == "template":
        return False
    if j < 0 or tokens[j].text != ">":
        return True
    opening = find_angle_start(tokens, j)
    if opening < 0 or get_text(tokens, find_next(tokens, opening, -1)) != "template":
        return True
    parts = split_at_commas(tokens[opening + 1 : j])
    kernel.template_parameters = len(parts)
    kernel.variadic = any("..." in flatten(p) or ". . ." in flatten(p) for p in parts)
    return bool(parts)


def find_bodies(tokens: list[Token], directives: dict[int, int]) -> list[tuple[int, int]]:
    """Return the token ranges of the bodies of __global__ and __device__ functions, braces included."""
    bodies = []
    for i, token in enumerate(tokens):
        if token.text not in ("__global__", "__device__") or i in directives:
            continue
        j, parens = i, 0
        while (j := find_next(tokens, j)) >= 0:
            text = tokens[j].text
            parens += (text == "(") - (text == ")")
            if parens == 0 and text in (";", "="):
                break
            if parens == 0 and text == "{":
                bodies.append((j, find_closing(tokens, j)))
                break
            if parens < 0:
                break
    return bodies


def find_constants(tokens: list[Token]) -> list[str]:
    """Return the names of the __constant__ variables."""
    names = []
    for i, token in enumerate(tokens):
        if token.text != "__constant__" or token.kind != "word" or (end := find_declaration_end(tokens, i)) < 0:
            continue
        for part in split_at_commas(tokens[i + 1 : end]):
            declared = next((j for j, t in enumerate(part) if t.text == "=" and t.kind == "mark"), len(part))
            names += [name] if (name := find_declared_name(part[:declared])) else []
    return names


# ---- variables of the host ----

_OF_THE_GPU = {"__device__", "__constant__", "__managed__", "__shared__", "__global__"}
_NO_VARIABLE = {"typedef", "using", "extern", "friend", "static_assert", "constexpr", "concept", "thread_local"}


def find_host_variables(tokens: list[Token], directives: dict[int, int]) -> list[str]:
    """Return the names of the variables that the source defines outside of functions and types for the host.

    A definition in which a macro of the source may stand for __device__ does not count.
    """
    of_the_gpu = _OF_THE_GPU | _find_gpu_macros(tokens, directives)
    names, on_gpu, statement = [], set(), []
    i = -1
    while (i := find_next(tokens, i)) >= 0:
        if i in directives:
            continue
        token = tokens[i]
        if token.kind == "mark" and token.text == "{":
            words = {t.text for t in statement}
            if "namespace" in words or ("extern" in words and any(t.text == '"C"' for t in statement)):
                statement = []
                continue
            i = find_closing(tokens, i)
            if i < 0:
                break
            if any(t.text == "(" for t in statement) and "=" not in words:
                statement = []  # the body of a function
        elif token.text == ";" and token.kind == "mark":
            if any(t.text in of_the_gpu for t in statement):
                on_gpu.update(_find_defined(statement))
            else:
                names += _find_defined(statement)
            statement = []
        elif token.text != "}":
            statement.append(token)
    return [name for name in names if name not in on_gpu]  # the runtime compares names without their namespaces


def _find_gpu_macros(tokens: list[Token], directives: dict[int, int]) -> set[str]:
    """Return the names of the macros whose text holds one of CUDA's qualifiers."""
    return {
        get_text(tokens, find_next(tokens, find_next(tokens, hash_at)))
        for i, hash_at in directives.items()
        if tokens[i].text in _OF_THE_GPU
    }


def _find_defined(statement: list[Token]) -> list[str]:
    """Return the names of the variables that a statement outside of functions defines."""
    words = {t.text for t in statement if t.kind == "word"}
    if words & _NO_VARIABLE:
        return []
    if words & {"struct", "class", "union", "enum"} and len(words) < 3:
        return []
    names = []
    for part in split_at_commas(statement):
        value = next((j for j, t in enumerate(part) if t.text == "=" and t.kind == "mark"), len(part))
        if any(t.text == "(" for t in part[:value]):
            continue  # a function, or a pointer to one
        names += [name] if (name := find_declared_name(part[:value])) else []
    return names
