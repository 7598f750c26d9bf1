"""Split a CUDA C++ source into the device's text and the host's. Both keep every line's number.

The device's text has kernels, device functions, variables in device memory, types and constants. The host's text has
host functions, types and constants, and in place of each kernel a function of the same name, as nvcc makes one: it
passes the addresses of its arguments on. `k<<<grid, block>>>(x)` becomes a configuration and a call, so that overloads,
templates, conversions and default values are the C++ compiler's work.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from simt.frontend.launches import find_launches
from simt.frontend.source import Source
from simt.frontend.tokens import (
    Token,
    blank,
    find_angle_end,
    find_closing,
    find_declared_name,
    find_next,
    get_text,
    keep_newlines,
    split_at_commas,
)
from simt.gpu.items import BOTH, DEVICE, HOST, KERNEL, SHARED_TYPE, SYMBOL, Item, NotSplit, find_items

# Headers of device code.
_DEVICE_HEADERS = re.compile(
    r"cuda_(fp16|bf16|fp8|fp6|fp4|pipeline|pipeline_primitives|awbarrier\w*)\.h|mma\.h|cooperative_groups(/\w+)?(\.h)?"
    r"|math_constants\.h|cu(b|da)/.+|cuda\.h|vector_types\.h"
)
_STANDARD = frozenset(
    "algorithm array atomic cassert cfloat chrono climits cmath cstddef cstdint cstdio cstdlib cstring exception "
    "functional initializer_list iomanip iostream iterator limits map memory mutex new numeric optional random "
    "set sstream stdexcept string string_view thread tuple type_traits typeinfo unordered_map utility variant vector "
    "assert.h float.h limits.h math.h stddef.h stdint.h stdio.h stdlib.h string.h".split()
)
# Those that kernels use: constants, number types, std::min. NVRTC has simt/include/gpu/device.h in their place.
_STANDARD_ON_DEVICE = frozenset(
    "algorithm array cassert cfloat climits cmath cstddef cstdint cstdio limits type_traits utility assert.h float.h "
    "limits.h math.h stddef.h stdint.h stdio.h".split()
)
# Headers of host code, and of CUDA whose contents are built in.
_HOST_HEADERS = re.compile(
    r"(torch|ATen|c10|pybind11|caffe2)/.+|Python\.h|cuda_runtime(_api)?\.h|cuda_device_runtime_api\.h|driver_types\.h"
    r"|device_launch_parameters\.h|device_functions\.h|cuda_profiler_api\.h|nvToolsExt\.h|nvtx3/.+|sys/.+|unistd\.h"
    r"|vector_functions\.h|builtin_types\.h|host_defines\.h|sm_\d+_\w+\.h|device_atomic_functions\.h"
)
# Headers of host code that g++ cannot read, or in which it has no use for anything.
_ONLY_DEVICE = re.compile(r"mma\.h|cooperative_groups(/\w+)?(\.h)?|cuda_(pipeline|awbarrier)\w*\.h|cu(b|da)/.+")
_QUALIFIERS = frozenset(
    "__global__ __device__ __host__ __constant__ __grid_constant__ __forceinline__ __noinline__ static".split()
)
_WITH_PARENTHESES = ("__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__block_size__")
_REFUSED = {
    "__cudaLaunch": "it names what nvcc makes of a launch",
    "__CUDACC__": "it asks whether nvcc compiles it",
    "__NVCC__": "it asks whether nvcc compiles it",
    "texture": "it has texture references",
    "curand_kernel": "it needs cuRAND's device functions",
}
UNNAMED = "simt_unnamed"  # the name that an unnamed namespace gets, so that both sides see the same names


@dataclass
class Split:
    """The two texts of a source.

    kernels: the names of the kernels that it defines, without namespaces. templates: those of them that are templates,
    whose versions only the host code determines. symbols: the names of variables in device memory. host_functions: the
    names before the parameters of declarations that only the host has.
    """

    device: str
    host: str
    kernels: list[str] = field(default_factory=list)
    templates: list[str] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    host_functions: set[str] = field(default_factory=set)


def split(source: Source, standard: bool = True) -> Split:
    """Split the source. Raises NotSplit with the reason if it cannot be done safely.

    standard: the device's compiler reads headers of the C++ standard library, as nvcc does.
    """
    _refuse(source)
    items, unnamed = find_items(source)
    device, host = source.copy_tokens(), source.copy_tokens()
    for tokens in (device, host):
        for brace in unnamed:
            tokens[brace].text = f" {UNNAMED} {{"
    for brace in unnamed:  # found from outside by an unqualified name, as if it had no name
        for tokens in (device, host):
            _make_inline(tokens, brace)
    made = Split("", "")
    _rewrite_launches(host, source, items)
    for item in items:
        _keep_on_device(device, item)
        if item.kind == HOST:
            made.host_functions |= _name_function(source.tokens, item)
        _keep_on_host(host, source, item, made)
    _choose_headers(device, source, is_device=True, standard=standard)
    _choose_headers(host, source, is_device=False)
    made.device, made.host = _join(device, source), _join(host, source)
    return made


def _join(tokens: list[Token], source: Source) -> str:
    text = "".join(t.text for t in tokens)
    assert text.count("\n") == source.text.count("\n"), "a line was added or lost"
    return text


def _refuse(source: Source) -> None:
    for word, reason in _REFUSED.items():
        if word in source.words:
            line = next(t.line for t in source.tokens if t.text == word)
            raise NotSplit(f"{reason} (line {line})")


def _make_inline(tokens: list[Token], brace: int) -> None:
    keyword = find_next(tokens, brace, -1)
    if get_text(tokens, find_next(tokens, keyword, -1)) != "inline":
        tokens[keyword].text = "inline namespace"


# ---- the device's text ----


def _keep_on_device(tokens: list[Token], item: Item) -> None:
    if item.kind == HOST:
        _blank_item(tokens, item.start, item.end)
    elif item.kind in (KERNEL, SYMBOL):
        _drop_static(tokens, item)


def _name_function(tokens: list[Token], item: Item) -> set[str]:
    """Return the word before the first parenthesis of a declaration, which is a function's name."""
    opening = next((i for i in range(item.head, item.end) if tokens[i].text == "("), -1)
    before = find_next(tokens, opening, -1) if opening > item.head else -1
    return {tokens[before].text} if before >= 0 and tokens[before].kind == "word" else set()


def _drop_static(tokens: list[Token], item: Item) -> None:
    """Give the name the same linkage on both sides, so that it is mangled alike."""
    for i in range(item.head, item.opening if item.opening >= 0 else item.end):
        if tokens[i].text == "static":
            tokens[i].text = ""
        if tokens[i].text == "(":
            return


def _blank_item(tokens: list[Token], start: int, end: int) -> None:
    """Remove a declaration, except #define lines: macros are needed wherever they are used later."""
    blank(tokens, start, end)


# ---- the host's text ----


def _keep_on_host(tokens: list[Token], source: Source, item: Item, made: Split) -> None:
    if item.kind == DEVICE:
        _blank_item(tokens, item.start, item.end)
    elif item.kind == KERNEL:
        _make_stub(tokens, item, made)
    elif item.kind == SYMBOL:
        _keep_symbol(tokens, source, item, made)
    elif item.kind in (BOTH, SHARED_TYPE):
        if item.kind == SHARED_TYPE:
            _drop_device_bodies(tokens, item)
        _drop_qualifiers(tokens, item.start, item.end, keep="static")


def _drop_qualifiers(tokens: list[Token], start: int, end: int, keep: str = "") -> None:
    for i in range(start, end):
        if tokens[i].kind != "word":
            continue
        if tokens[i].text in _QUALIFIERS and tokens[i].text != keep:
            tokens[i].text = "inline" if tokens[i].text == "__forceinline__" else ""
        elif tokens[i].text in _WITH_PARENTHESES and get_text(tokens, find_next(tokens, i)) == "(":
            blank(tokens, i, find_closing(tokens, find_next(tokens, i)) + 1)


def _drop_device_bodies(tokens: list[Token], item: Item) -> None:
    """Make a declaration of each member function of a type that only the device has."""
    i = item.opening
    while 0 <= i < item.end:
        if tokens[i].text == "__device__" and "__host__" not in _words_around(tokens, i):
            j = i
            while (j := find_next(tokens, j)) >= 0 and tokens[j].text not in (";", "{", ":"):
                if tokens[j].text == "(":
                    j = find_closing(tokens, j)
            if get_text(tokens, j) == ":":  # a constructor's initialisers
                start, j = j, _find_body(tokens, j)
                blank(tokens, start, j)
            if get_text(tokens, j) == "{":
                end = find_closing(tokens, j)
                breaks = keep_newlines(tokens[j : end + 1])
                blank(tokens, j, end + 1)
                tokens[j].text = ";" + breaks
                for t in tokens[j + 1 : end + 1]:
                    t.text = ""
                i = end
        i += 1


def _words_around(tokens: list[Token], i: int) -> set[str]:
    """Return the qualifiers next to the one at i."""
    found = set()
    for step in (1, -1):
        j = find_next(tokens, i, step)
        while j >= 0 and tokens[j].text in (
            "__host__",
            "__device__",
            "__forceinline__",
            "inline",
            "static",
            "constexpr",
        ):
            found.add(tokens[j].text)
            j = find_next(tokens, j, step)
    return found


def _find_body(tokens: list[Token], colon: int) -> int:
    """Return the index of the brace of a constructor's body, after its initialisers: `: a(1), b{2} {`."""
    j = colon
    while (j := find_next(tokens, j)) >= 0:
        if tokens[j].text in ("(", "{"):
            closing = find_closing(tokens, j)
            after = find_next(tokens, closing)
            if get_text(tokens, after) == "{":
                return after
            if tokens[j].text == "{" and get_text(tokens, after) != ",":
                return j
            j = closing
    raise NotSplit(f"the constructor in line {tokens[colon].line} has no clear body")


def _keep_symbol(tokens: list[Token], source: Source, item: Item, made: Split) -> None:
    """Keep a variable in device memory as a variable whose address stands for it."""
    words = {t.text for t in tokens[item.start : item.end] if t.kind == "word"}
    end = item.end - 1
    for part in split_at_commas(tokens[item.head : end]):
        equals = next((i for i, t in enumerate(part) if t.text in ("=", "{") and t.kind == "mark"), len(part))
        name = find_declared_name(part[:equals])
        if name:
            made.symbols.append(name)
        for t in part[equals:]:  # only its address counts, and its initial value may call device functions
            t.kind, t.text = "space", keep_newlines([t])
    if words & {"const", "constexpr"}:
        if words & {"cudaMemcpyToSymbol"}:
            raise NotSplit(f"a constant variable in line {tokens[item.start].line} is both const and a symbol")
        _blank_item(tokens, item.start, item.end)
        return
    _drop_qualifiers(tokens, item.start, item.end)


def _make_stub(tokens: list[Token], item: Item, made: Split) -> None:
    """Replace a kernel's body by one that launches it."""
    opening = _find_parameters(tokens, item)
    closing = find_closing(tokens, opening)
    name, called = _name_kernel(tokens, item, opening)
    if item.opening < 0:
        _drop_qualifiers(tokens, item.start, item.end)
        return
    made.kernels.append(name)
    if item.head != item.start and item.kind == KERNEL:
        made.templates.append(name)
    names = _name_parameters(tokens, opening, closing)
    end = find_closing(tokens, item.opening)
    breaks = keep_newlines(tokens[item.opening : end + 1])
    _drop_qualifiers(tokens, item.start, item.opening)
    types = ", ".join(_without_default(part) for part in split_at_commas(tokens[opening + 1 : closing]))
    types = " ".join(types.split())
    pointers = ", ".join(names)
    body = (
        f"{{ void* simt_a[] = {{nullptr{', ' if pointers else ''}{pointers}}}; static const ::simt::gpu::Kernel simt_k("
        f"reinterpret_cast<const void*>(static_cast<void (*)({types})>(&{called}))); simt_k.launch(simt_a + 1); }}"
    )
    for t in tokens[item.opening : end + 1]:
        t.kind, t.text = "space", ""
    tokens[item.opening].kind, tokens[item.opening].text = "rewritten", body + breaks


def _find_parameters(tokens: list[Token], item: Item) -> int:
    """Return the index of the parenthesis that opens a kernel's parameters."""
    j, last = item.head, -1
    while 0 <= j < (item.opening if item.opening >= 0 else item.end):
        if tokens[j].text == "(":
            last = j
            j = find_closing(tokens, j)
            before = get_text(tokens, find_next(tokens, last, -1))
            if before not in (*_WITH_PARENTHESES, "__attribute__", "__align__", "alignas"):
                return last
        j = find_next(tokens, j)
    raise NotSplit(f"the kernel in line {tokens[item.start].line} has no parameters")


def _name_kernel(tokens: list[Token], item: Item, opening: int) -> tuple[str, str]:
    """Return a kernel's name, and the expression that names the version of it in which a stub is."""
    j = find_next(tokens, opening, -1)
    if tokens[j].text in (">", ">>>"):  # a specialisation that says its arguments
        start = j
        while tokens[start].text != "<":
            start -= 1
        j = find_next(tokens, start, -1)
        return tokens[j].text, "".join(t.text for t in tokens[j:opening]).strip()
    name = tokens[j].text
    arguments = _name_template_parameters(tokens, item)
    return name, f"{name}<{', '.join(arguments)}>" if arguments else name


def _name_template_parameters(tokens: list[Token], item: Item) -> list[str]:
    """Return the names of the template's parameters, as arguments. Those without a name get one in the text."""
    if item.head == item.start:
        return []
    opening = find_next(tokens, item.start)
    closing = find_angle_end(tokens, opening)
    names = []
    for number, part in enumerate(split_at_commas(tokens[opening + 1 : closing])):
        code = [t for t in part if t.kind not in ("space", "comment")]
        equals = next((i for i, t in enumerate(code) if t.text == "="), len(code))
        pack = any(a.text == b.text == c.text == "." for a, b, c in zip(code, code[1:], code[2:]))
        last = code[equals - 1]
        if (
            equals > 1
            and last.kind == "word"
            and last.text not in ("typename", "class", "int", "bool", "unsigned", "long")
        ):
            name = last.text
        else:
            name = f"simt_p{number}"
            last.text += f" {name}"
        names.append(name + "..." if pack else name)
    return names


def _name_parameters(tokens: list[Token], opening: int, closing: int) -> list[str]:
    """Return the addresses of a kernel's parameters as C++ expressions. Those without a name get one in the text."""
    made = []
    for number, part in enumerate(split_at_commas(tokens[opening + 1 : closing])):
        code = [t for t in part if t.kind not in ("space", "comment")]
        if [t.text for t in code] == ["void"]:
            return []
        equals = next((i for i, t in enumerate(code) if t.text == "="), len(code))
        bracket = next((i for i, t in enumerate(code[:equals]) if t.text == "["), equals)
        if any(t.text == "(" for t in code[:equals]) and "alignas" not in {t.text for t in code}:
            raise NotSplit(f"a parameter in line {code[0].line} is a function pointer")
        pack = any(a.text == b.text == c.text == "." for a, b, c in zip(code, code[1:], code[2:]))
        last = code[bracket - 1]
        if last.kind == "word" and bracket > 1 and last.text not in _TYPE_WORDS and code[bracket - 2].text != "::":
            name = last.text
        else:
            name = f"simt_x{number}"
            last.text += f" {name}"
        made.append(f"(void*)&{name}" + ("..." if pack else ""))
    return made


_TYPE_WORDS = frozenset("int float double char short long unsigned signed bool const volatile half size_t".split())


def _without_default(part: list[Token]) -> str:
    kept = []
    for t in part:
        if t.text == "=" and t.kind == "mark":
            break
        kept.append(" " if t.kind == "comment" else t.text)
    return "".join(kept)


# ---- launches ----


def _rewrite_launches(tokens: list[Token], source: Source, items: list[Item]) -> None:
    """Rewrite `kernel<<<grid, block>>>(arguments)` to `(configure(grid, block) ? (void)0 : kernel(arguments))`."""
    inside = [(item.start, item.end) for item in items if item.kind in (KERNEL, DEVICE)]
    for start, opening, closing, end in find_launches(tokens, source):
        if any(a <= opening < b for a, b in inside):
            raise NotSplit(f"a kernel launches a kernel (line {tokens[opening].line})")
        if end == closing:
            raise NotSplit(f"the macro in line {tokens[opening].line} ends with a launch without its arguments")
        expression = "".join(" " if t.kind == "comment" else t.text for t in tokens[start:opening])
        breaks = keep_newlines(tokens[start:opening])
        for t in tokens[start:opening]:
            t.kind, t.text = "space", ""
        flat = " ".join(expression.replace("\\\n", " ").split())
        tokens[opening].text = f"{breaks}(::simt::gpu::configure(" + tokens[opening].text.removeprefix("<<<")
        tokens[closing].text = tokens[closing].text.removesuffix(">>>") + f") ? (void)0 : {flat}"
        tokens[end].text = "))"


# ---- headers ----


def _choose_headers(tokens: list[Token], source: Source, is_device: bool, standard: bool = False) -> None:
    """Remove the #include lines that a side has no use for. Raises NotSplit for a header that is not known."""
    for start in sorted(set(source.directives.values())):
        if get_text(source.tokens, find_next(source.tokens, start)) != "include":
            continue
        inside = [i for i, begun in source.directives.items() if begun == start]
        text = "".join(source.tokens[i].text for i in inside)
        found = re.search(r"include\s*<([^>]+)>|include\s*\"([^\"]+)\"", text)
        name = (found[1] or found[2]) if found else text
        on_device = bool(_DEVICE_HEADERS.fullmatch(name))
        if not on_device and name not in _STANDARD and not _HOST_HEADERS.fullmatch(name):
            raise NotSplit(f"it includes {name}")
        on_device |= standard and name in _STANDARD_ON_DEVICE
        if not on_device if is_device else _ONLY_DEVICE.fullmatch(name):
            blank(tokens, inside[0], inside[-1] + 1)
