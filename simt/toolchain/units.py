"""Make translation units from sources: rewritten text, #line marks, bindings, and names for the runtime."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from simt.errors import CompileError, Diagnostic, MissingSources, UndeclaredFunction
from simt.frontend.declarations import Kernel
from simt.frontend.rewrite import Rewritten, rewrite
from simt.frontend.shared_memory import KEPT
from simt.frontend.source import Source
from simt.toolchain.compilers import unrolls_loops
from simt.toolchain.half_macros import TORCH_FLAGS
from simt.toolchain.headers import SIMT, choose_header
from simt.toolchain.preprocess import rewrite_taken

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<([\w/.]+)>", re.MULTILINE)


@dataclass(frozen=True)
class Unit:
    """A translation unit. label: its name in messages; text: with #line marks."""

    label: str
    text: str
    header: str  # precompiled: "prelude", "prelude_full" (with every operator of torch), "prelude_cuda" (without),
    # *_gpu*; "" for none
    flags: tuple[str, ...]
    lines: dict[tuple[str, int], str]  # the student's own lines, by label and number
    mode: str = "plain"
    device_lines: frozenset[tuple[str, int]] = frozenset()  # of `lines`: those that only a GPU would run

    @property
    def is_c(self) -> bool:
        """Whether the unit is C, as the name of its file says."""
        return self.label.endswith(".c")


@dataclass(frozen=True)
class Sources:
    """The arguments of a load_inline call, from which an extension can be built in any mode.

    functions: names to bind and their docstrings, or None if the sources define the binding. is_module: False for a
    library that only registers operators; it needs no binding. flags: of the C++ compiler for cpp; cuda_flags: for
    cuda, after torch's own. parsed_cpp, parsed_cuda: the sources, parsed once for all modes.
    """

    name: str
    cpp: list[str]
    cuda: list[str]
    functions: dict[str, str] | None
    flags: list[str]
    links: list[str]
    is_module: bool = True
    cuda_flags: Sequence[str] = ()
    parsed_cpp: list[Source] = field(init=False, repr=False, compare=False)
    parsed_cuda: list[Source] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parsed_cpp", _parse(self.cpp, "cpp_sources"))
        object.__setattr__(self, "parsed_cuda", _parse(self.cuda, "cuda_sources"))

    @property
    def registers_operators(self) -> bool:
        """Whether a source has a TORCH_LIBRARY, which registers operators when the extension is loaded."""
        return any(s.registers_operators for s in (*self.parsed_cpp, *self.parsed_cuda))


def _parse(texts: list[str], kind: str) -> list[Source]:
    return [Source(text, kind if len(texts) == 1 else f"{kind}[{i}]") for i, text in enumerate(texts)]


def make_units(sources: Sources, mode: str) -> tuple[list[Unit], list[str], list[str]]:
    """Return the units of an extension, the names of its kernels, and the names of its static shared variables.

    Raises CompileError and its subclasses if a source is refused or the bindings contradict each other.
    """
    functions = sources.functions
    # Torch compiles cpp with all operators of 16-bit floats. They need a header of their own, which is built when an
    # error asks for it (compile_unit): declarations compile with the one for cuda.
    flags, cuda_flags = (*TORCH_FLAGS, *sources.flags), (*TORCH_FLAGS, *sources.cuda_flags)
    cpp = [rewrite(s, cuda=False) for s in sources.parsed_cpp]
    cuda = _rewrite_cuda(sources, mode)
    by_hand = [r.source.label for r in (*cpp, *cuda) if r.source.binds_by_hand]
    check_bindings(by_hand, sources)
    if functions is None and not by_hand:
        functions = {}  # a library: the runtime still looks for the table of functions
    kernels = list(dict.fromkeys(name for r in cuda for name in r.kernels))
    shared = list(dict.fromkeys(name for r in cuda for name in r.shared))
    units = []
    bound = BOUND_CLASSES if any("class_" in r.source.words for r in (*cpp, *cuda)) else ""
    if cpp or functions is not None:
        text = bound + _mark_lines(cpp) + make_binding(functions, sources.cpp)
        # This unit has no kernels and needs no probes: one object serves all modes. Only the plain build of one that
        # registers operators may do so.
        built = mode if any(s.registers_operators for s in sources.parsed_cpp) else "plain"
        units.append(Unit("cpp_sources", text, _choose_header(cpp), flags, number_lines(sources.parsed_cpp), built))
    if cuda:
        text = (
            include_ptx(cuda)
            + bound
            + _choose_macros(cuda, mode)
            + include_early(cuda)
            + declare_names(kernels, shared, cuda)
            + _mark_lines(cuda)
        )
        lines = number_lines(sources.parsed_cuda)
        device = frozenset((s.label, n) for s in sources.parsed_cuda for n in s.device_lines)
        units.append(Unit("cuda_sources", text, _choose_header(cuda), cuda_flags, lines, mode, device))
    return units, kernels, shared


def rewrite_all(sources: list[Source], mode: str, known: Mapping[str, Kernel] | None = None) -> list[Rewritten]:
    """Rewrite CUDA sources for a build in one of MODES. known: kernels of other files that each source may launch."""
    return [rewrite(s, checked=mode == "check", unrolled=unrolls_loops(mode), known=known) for s in sources]


def _rewrite_cuda(sources: Sources, mode: str) -> list[Rewritten]:
    """Rewrite the CUDA sources of an extension."""

    def write_probes(folder: Path, probes: list[str]) -> Path:
        (folder / "cuda_sources.cpp").write_text(CUDA_MACROS + "".join(probes), encoding="utf-8")
        return folder / "cuda_sources.cpp"

    parsed, header = sources.parsed_cuda, choose_header([s.text for s in sources.parsed_cuda])
    flags = (*TORCH_FLAGS, *sources.cuda_flags)
    return rewrite_taken(parsed, lambda each: rewrite_all(each, mode), write_probes, header, flags)


def number_lines(sources: list[Source]) -> dict[tuple[str, int], str]:
    """Return the lines of the sources by label and number, from 1."""
    return {(s.label, n): line for s in sources for n, line in enumerate(s.lines, 1)}


# Before the sources of an extension that binds classes: Python may pass and get objects of any class then.
BOUND_CLASSES = (
    "namespace simt { template <class T> "
    "struct MayBeBound<T, std::enable_if_t<std::is_class_v<T>>> : std::true_type {}; }\n"
)

# Macros for CUDA's qualifiers, which may occur in the student's own headers. In the sources they are rewritten.
CUDA_MACROS = """#define __CUDACC__ 1
#define __CUDA_ARCH__ 750
#define __NVCC__ 1
#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ static __thread
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __device_builtin__
"""


def define_macros(architecture: int, mode: str) -> str:
    """Return the text that defines CUDA's macros, for a compute capability times 100 and a build in one of MODES."""
    text = CUDA_MACROS.replace("__CUDA_ARCH__ 750", f"__CUDA_ARCH__ {architecture}")
    return text.replace("static __thread", f"static __thread{KEPT}") if mode == "check" else text


def _choose_macros(rewritten: list[Rewritten], mode: str) -> str:
    """Return the macros for the oldest GPU that has the TF32 fragments and the PTX of the sources, so that code for
    older GPUs is left out.
    """
    newest = max(75, *(80 * ("precision::tf32" in r.source.text) for r in rewritten), *(r.ptx for r in rewritten))
    return define_macros(newest * 10, mode)


def include_ptx(rewritten: list[Rewritten]) -> str:
    """Return the #include after the prelude for sources with inline PTX or addresses for it, else ""."""
    needed = any(r.ptx or any(word.startswith("__cvta_") for word in r.source.words) for r in rewritten)
    if any("wgmma" in r.source.text for r in rewritten):
        return "#include <simt/wgmma.h>\n"
    return "#include <simt/ptx.h>\n" if needed else ""


def include_early(rewritten: list[Rewritten]) -> str:
    """Return #include lines for those of simt's headers that sources with macros include further down: a macro such as
    M or N, which stands before the source's #include, would replace the same name in the header.
    """
    texts = [r.source.text for r in rewritten if r.source.macros]
    named = dict.fromkeys(name for text in texts for name in _INCLUDE.findall(text))
    return "".join(f"#include <{name}>\n" for name in named if (SIMT / "include" / "shim" / name).is_file())


def _mark_lines(rewritten: list[Rewritten]) -> str:
    return "".join(f'#line 1 "{r.source.label}"\n{r.text}\n' for r in rewritten)


# Global functions of CUDA's headers that a submission may well define for tensors. torch compiles the binding without
# these headers.
_CUDA_FUNCTIONS = frozenset("exp10 max min norm norm3d norm4d normcdf rnorm rsqrt".split())


def make_binding(functions: dict[str, str] | None, cpp: list[str]) -> str:
    """Return the text that binds the functions. cpp: the sources that declare them."""
    if functions is None:
        return ""
    lines = [
        '#line 1 "functions"',
        'extern "C" SIMT_API void simt_functions(void* simt_into) {',  # names that no function of a submission has
        "auto& simt_all = *static_cast<std::vector<::simt::Function>*>(simt_into);",
    ]
    for name, doc in functions.items():
        escaped = doc.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        declared = _find_signature(name, cpp, ";{") if name in _CUDA_FUNCTIONS else ""
        own = re.sub(r"\b(static|inline) ", "", declared) + ";"  # in a block it hides all others of its name
        lines.append(
            f'{{ {own} auto simt_made = ::simt::make_function("{name}", &{name}); simt_made.doc = "{escaped}"; '
            f"::simt::add_function(simt_all, std::move(simt_made)); }}"
        )
    return "\n".join([*lines, "}", ""])


def declare_names(kernels: list[str], shared: list[str], rewritten: list[Rewritten]) -> str:
    """Return the text that passes the names of kernels and of variables to the runtime: those of static shared
    variables, constants, and the host's own.
    """
    constants = [name for r in rewritten for name in r.constants]
    host = [name for r in rewritten for name in r.host]
    texts = {
        "simt_kernel_names": kernels,
        "simt_shared_names": shared,
        "simt_constant_names": constants,
        "simt_host_names": host,
    }
    return '#line 1 "names"\n' + "".join(
        f'extern "C" SIMT_API const char {symbol}[]; const char {symbol}[] = "{"".join(n + "," for n in names)}";\n'
        for symbol, names in texts.items()
    )


def _choose_header(sources: list[Rewritten]) -> str:
    return choose_header([s.text for s in sources])


# ---- checks of mistakes for which torch's load_inline reports an obscure error ----


def check_declared(sources: Sources) -> None:
    """Raise MissingSources or UndeclaredFunction if cpp_sources does not declare every function to bind."""
    words = set().union(*(s.words for s in sources.parsed_cpp))
    missing = [name for name in sources.functions or {} if name not in words]
    if not missing:
        return
    listed = " and ".join(f"`{name}`" for name in missing)
    declared = _find_signature(missing[0], sources.cuda)
    remedy = (
        f" Add its declaration, `{declared};`, to cpp_sources." if declared else " Add its declaration to cpp_sources."
    )
    if not declared and len(missing) == 1 and (other := _find_other_name(missing[0], sources)):
        remedy = (
            f" No source defines `{missing[0]}`, and cpp_sources declares `{other}`. Write that name in functions=."
        )
    if not any(s.strip() for s in sources.cpp):
        raise MissingSources(
            [
                Diagnostic(
                    "cpp_sources",
                    0,
                    0,
                    "error",
                    f"functions= names {listed}, but cpp_sources is empty. The binding needs the function's "
                    f"declaration.{remedy}",
                )
            ]
        )
    raise UndeclaredFunction(
        [
            Diagnostic(
                "cpp_sources", 0, 0, "error", f"functions= names {listed}, which cpp_sources does not declare.{remedy}"
            )
        ]
    )


DECLARED = re.compile(r"\b(\w+)\s*\([^;{}()]*\)\s*;")


def _find_other_name(name: str, sources: Sources) -> str:
    """Return the function that may be meant by a name that is declared nowhere, or "".

    It is the only one that cpp_sources declares and functions= does not name, or of several the one with a near name.
    """
    found = [one for source in sources.cpp for one in DECLARED.findall(source) if one not in (sources.functions or {})]
    near = difflib.get_close_matches(name, found, 1, 0.5)
    return found[0] if len(found) == 1 else near[0] if near else ""


def _find_signature(name: str, sources: list[str], ends: str = "{") -> str:
    """Return the head of the function's definition in the sources, on one line, or "". ends: with ";", or of its
    declaration.
    """
    for source in sources:
        match = re.search(
            rf"^[ \t]*(?!return\b)((?:[\w:<>,&*]+[ \t]+)+{re.escape(name)}\s*\([^;{{]*\))\s*[{ends}]",
            source,
            re.MULTILINE,
        )
        if match:
            return " ".join(match[1].split())
    return ""


def check_bindings(by_hand: list[str], sources: Sources) -> None:
    """Raise CompileError if the sources have two bindings, or none and are to become a module."""
    if len(by_hand) > 1:
        raise _make_error(
            by_hand[1], f"PYBIND11_MODULE is defined in {by_hand[0]} and in {by_hand[1]}. Keep one of them."
        )
    if by_hand and sources.functions is not None:
        raise _make_error(
            by_hand[0], "functions= generates a PYBIND11_MODULE, and the source defines one too. Remove one of them."
        )
    if by_hand or sources.functions is not None or not sources.is_module:
        return
    if sources.registers_operators:
        raise _make_error(
            "functions",
            "The sources register operators with TORCH_LIBRARY and bind no function. Pass is_python_module=False to "
            "load_inline and call the operators through torch.ops, or bind functions with functions=[…].",
        )
    raise _make_error("functions", "No function is bound. Pass functions=[…] or define a PYBIND11_MODULE.")


def _make_error(source: str, message: str) -> CompileError:
    return CompileError([Diagnostic(source, 0, 0, "error", message)])
