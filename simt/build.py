"""Compiles rewritten sources against precompiled headers and links them into an extension."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from . import cache, disassembly
from .compilers import MODES, compiler, flags
from .errors import CacheError, CompileError, Diagnostic, LinkError, MissingSources, NoCompiler, UndeclaredFunction
from .lines import TEXTS, compiled_lines
from .rewrite import Rewritten, rewrite, tokenize

_HERE = Path(__file__).parent
_TORCH = Path(importlib.util.find_spec("torch").origin).parent  # importing it takes a second, and programs need none of it

_RUNTIME = (
    *("fiber", "worker", "collectives", "copies", "fault", "instruction", "module", "memory", "launch", "program", "asked"),
    *("check", "check_findings", "check_launch", "check_memory", "check_order", "check_races"),
    *("count", "count_flow", "count_replay", "count_rules", "count_unique"),
)
_PROBE_PARTS = ("probe_check", "probe_count")  # linked into each extension of their mode

# torch:: and at:: functions that the light header declares; other names need the whole list of operators.
_LIGHT = set(
    """
    empty zeros ones full empty_like zeros_like ones_like full_like empty_strided Tensor TensorOptions IntArrayRef
    ArrayRef TensorList Scalar ScalarType Device DeviceType DeviceGuard Half BFloat16 optional nullopt Dtype dtype
    device requires_grad NoGradGuard kFloat kDouble kHalf kBFloat16 kInt kLong kShort kChar kByte kBool kUInt8 kInt8
    kInt16 kInt32 kInt64 kFloat16 kFloat32 kFloat64 kCPU kCUDA kStrided cuda MemoryFormat PackedTensorAccessor
    PackedTensorAccessor32 PackedTensorAccessor64 TensorAccessor GenericPackedTensorAccessor RestrictPtrTraits
    DefaultPtrTraits Layout device_of acc_type Error TypeMeta SmallVector c10 at kI32 kI64 kF16 kF32 kF64 kU8 kI8 kI16
    opmath_type OptionalDeviceGuard headeronly util
    """.split()
)
_LIGHT_HEADERS = {f"ATen/{name}.h" for name in ("AccumulateType", "Dispatch", "Dispatch_v2", "OpMathType", "NumericUtils", "core/Tensor", "core/TensorAccessor")}


@dataclass(frozen=True)
class Unit:
    """One translation unit: what the student knows it as, its text with #line marks, and its flags."""

    label: str
    text: str
    header: str  # precompiled: "prelude", or "prelude_full" with every operator of torch, or "prelude_cuda" with none
    flags: tuple[str, ...]
    lines: dict[tuple[str, int], str]  # the student's own lines, by label and number
    mode: str = "plain"


@dataclass(frozen=True)
class Built:
    """A linked extension and what building it took."""

    path: Path
    compiled: int  # units that were compiled now


def _includes(shim: bool = False, python: bool = False) -> list[str]:
    """shim: a student's #include lines find simt's stand-ins for CUDA's and torch's headers, already included."""
    flags = [f"-I{_HERE / 'include' / 'shim'}"] if shim else []
    flags.append(f"-I{_HERE / 'include'}")
    for f in (_TORCH / "include", _TORCH / "include/torch/csrc/api/include"):
        flags += ["-isystem", str(f)]
    if python:
        flags += ["-isystem", sysconfig.get_path("include"), f"-I{_HERE / 'src'}"]
    return flags


@lru_cache(maxsize=1)
def _toolchain() -> str:
    path, version, _ = compiler()
    return cache.key_of(path, version, (_TORCH / "version.py").read_text(encoding="utf-8"), str(_TORCH), sys.version, " ".join(flags()))


@lru_cache(maxsize=64)
def _key(*roots: str, flags: tuple[str, ...] = ()) -> str:
    """A key for what is compiled from these files of simt (by their paths in it) and from all of simt that they include."""
    texts = [text for path in _closure(*roots) for text in (str(path.relative_to(_HERE)), path.read_text(encoding="utf-8"))]
    return cache.key_of(_toolchain(), *flags, *texts)


@lru_cache(maxsize=64)
def _closure(*roots: str) -> tuple[Path, ...]:
    """The files and those of simt that they include, directly or not."""
    found: dict[Path, None] = {}
    waiting = [_HERE / root for root in roots]
    while waiting:
        path = waiting.pop()
        if path in found or not path.is_file():
            continue
        found[path] = None
        for inner, name in re.findall(r'^#include ([<"])([\w./]+)[>"]', path.read_text(encoding="utf-8"), re.MULTILINE):
            waiting.append(path.parent / name if inner == '"' else _HERE / "include" / name)
    return tuple(sorted(found))


@lru_cache(maxsize=1)
def _runtime_key() -> str:
    return cache.key_of(*(_key(f"src/{name}.cpp") for name in (*_RUNTIME, *_PROBE_PARTS)))


@lru_cache(maxsize=1)
def _base_key() -> str:
    return cache.key_of(_runtime_key(), _key("src/bind.cpp"))


def runtime() -> Path:
    """The folder with the runtime's library and the probes, built where there is none (about 10 s)."""
    place, made = cache.entry("runtime", _runtime_key(), _make_runtime)
    if made:
        cache.trim("runtime", 3)
    return place


def base() -> Path:
    """The folder with the binder, built where there is none, and so is the runtime (about 20 s)."""
    place, made = cache.entry("base", _base_key(), _make_base)
    if made:
        cache.trim("base", 3)
        cache.trim("part", 60)
    return place


def warm(text: str = "") -> bool:
    """Whether warm_up() has nothing to do."""
    return cache.has("base", _base_key()) and all(cache.has("header", _header_key(*each)) for each in _headers(text))


def program_warm(mode: str) -> bool:
    """Whether a program can be compiled without further ado."""
    return cache.has("runtime", _runtime_key()) and cache.has("header", _header_key("prelude_cuda", mode))


def _headers(text: str) -> list[tuple[str, str]]:
    """The precompiled headers of plain and checked builds; and those with every operator, if sources in this text need them."""
    names = dict.fromkeys(("prelude", _header_of([text])))
    return [(name, mode) for name in names for mode in ("plain", "check")]


def warm_up(text: str = "") -> None:
    """Builds what the first kernel would have to wait for: the base and the headers of plain and checked builds, here of sources that
    stand somewhere in the text."""
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(base), *(pool.submit(header, *each) for each in _headers(text))]
        for job in jobs:
            job.result()


def header(name: str, mode: str) -> Path:
    """A precompiled header for one mode, built where there is none (7 s; 25 s for prelude_full)."""
    place, made = cache.entry("header", _header_key(name, mode), lambda folder: _precompile(folder, name, mode))
    if made:
        cache.trim("header", 12)
    return place / f"{name}.h"


def _header_key(name: str, mode: str) -> str:
    return _key(f"include/simt/{name}.h", flags=tuple(flags(mode)))


def _make_runtime(folder: Path) -> None:
    names = (*_RUNTIME, *_PROBE_PARTS)
    with ThreadPoolExecutor(2) as pool:
        parts = dict(zip(names, pool.map(_part, names)))
    _run_or_fail(
        [compiler()[0], "-shared", *(str(parts[name]) for name in _RUNTIME), "-o", str(folder / "libsimt_runtime.so"),
         "-Wl,-soname,libsimt_runtime.so", "-Wl,-z,defs", "-lpthread", "-ldl"]
    )
    for name in _PROBE_PARTS:
        shutil.copy(parts[name], folder / f"{name}.o")


def _make_base(folder: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        binder, needed = pool.submit(_part, "bind"), pool.submit(runtime)
        libraries = [f"-L{needed.result()}", "-lsimt_runtime", f"-L{_TORCH / 'lib'}", "-ltorch_python", "-ltorch_cpu", "-ltorch", "-lc10"]
        _run_or_fail([compiler()[0], "-shared", str(binder.result()), "-o", str(folder / "_simt_bind.so"), *libraries])


def _part(name: str) -> Path:
    """The object of one of the runtime's sources, compiled where there is none: of an upgrade, only what has changed."""
    place, _ = cache.entry("part", _key(f"src/{name}.cpp"), lambda folder: _make_part(folder, name))
    return place / f"{name}.o"


def _make_part(folder: Path, name: str) -> None:
    own = [f"-I{_HERE / 'include'}", f"-I{_HERE / 'src'}"]
    if name == "bind":  # large, and no kernel waits for it
        own = ["-O1", *_includes(python=True)]
    _run_or_fail([compiler()[0], *flags(), *own, "-c", str(_HERE / "src" / f"{name}.cpp"), "-o", str(folder / f"{name}.o")])


def _precompile(folder: Path, name: str, mode: str) -> None:
    path, _, family = compiler()
    source = _HERE / "include/simt" / f"{name}.h"
    if family.header == ".gch":  # which is looked for beside the header; clang's names the header that it was made from
        source = Path(shutil.copy(source, folder / f"{name}.h"))
    made = folder / f"{name}.h{family.header}"
    _run_or_fail([path, *flags(mode), *_includes(), "-x", "c++-header", str(source), "-o", str(made)])


def _run(command: list[str]) -> subprocess.CompletedProcess:
    """Runs the compiler. Raises CacheError or NoCompiler where it failed for a reason that lies in the machine."""
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False)
    if result.returncode != 0:
        if full := re.search(r"No space left on device|Disk quota exceeded|Read-only file system", result.stderr):
            raise _full(full[0], result.stderr)
        if re.search(r"Killed signal terminated program|virtual memory exhausted|out of memory allocating", result.stderr):
            raise NoCompiler("The compiler ran out of memory: free some, it needs about 1 GB.")
    return result


def _full(why: str, said: str) -> CacheError:
    """What to raise where the compiler found no room: in the cache, or in its own folder for temporary files."""
    named = re.search(r"(?:writing to|closing|create temporary file in) (/.*)/(?:cc\w{6}\.\w+)?: ", said)
    if not named:
        return cache.unusable(why)
    return CacheError(
        f"The compiler's folder for temporary files, {named[1]}, can't be used ({why}): free some of it, or set TMPDIR to a folder on a disk with "
        "1 GB free."
    )


def _run_or_fail(command: list[str]) -> None:
    result = _run(command)
    if result.returncode != 0:
        lines = [l for l in result.stderr.splitlines() if "error" in l or "undefined reference" in l][:3]
        raise NoCompiler(
            f"simt's own runtime did not build with {compiler()[1]} (exit status {result.returncode}): {' / '.join(lines) or 'no message'}"
        )


# ---- a submission ----


@dataclass(frozen=True)
class Sources:
    """What load_inline was given: enough to build an extension in any mode.

    functions: names to bind and their docstrings, or None where the sources bind by hand.
    """

    name: str
    cpp: list[str]
    cuda: list[str]
    functions: dict[str, str] | None
    flags: list[str]
    links: list[str]


def build(sources: Sources, mode: str = "plain") -> Built:
    """Builds an extension in one of MODES and returns where it lies. Raises CompileError and its kinds, NoCompiler."""
    _check_declared(sources.cpp, sources.cuda, sources.functions)
    units, kernels, shared = _units(sources, mode)
    return link(sources.name, units, kernels, shared, sources.links)


def link(name: str, units: list[Unit], kernels: list[str], shared: list[str], links: list[str]) -> Built:
    """Compiles the units, all of one mode, and links them; kernels, shared: names that the units define."""
    mode = units[-1].mode
    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(_object, units))
    folder = runtime()
    torch = any(unit.header != "prelude_cuda" for unit in units)
    headers = [(path / "headers").read_text(encoding="utf-8") for path, _ in objects]
    reader = [Path(disassembly.__file__).read_text(encoding="utf-8")] if mode == "count" else []  # its list lies beside the extension
    key = cache.key_of(name, _base_key(), *(str(path) for path, _ in objects), *headers, *links, *reader, ",".join(kernels), ",".join(shared))
    files = [p / "unit.o" for p, _ in objects] + ([folder / f"probe_{mode}.o"] if mode != "plain" else [])

    def make(made: Path) -> None:
        _link(made, files, folder, links, torch, mode)
        if mode == "check":
            (made / TEXTS).write_text("".join(f"{path}\n" for object, _ in objects for path in _texts(object)), encoding="utf-8")

    place, _ = cache.entry("extension", key, make)
    compiled = sum(made for _, made in objects)
    if compiled:
        cache.trim("object", 1000)
        cache.trim("extension", 1000)
    return Built(place / "extension.so", compiled)


def _label(kind: str, i: int, count: int) -> str:
    return kind if count == 1 else f"{kind}[{i}]"


def _units(sources: Sources, mode: str) -> tuple[list[Unit], list[str], list[str]]:
    cpp, cuda, functions, flags = sources.cpp, sources.cuda, sources.functions, tuple(sources.flags)
    kernels, shared = [], []
    units = []
    by_hand = []
    rewritten_cpp = [rewrite(s, _label("cpp_sources", i, len(cpp)), cuda=False) for i, s in enumerate(cpp)]
    rewritten_cuda = [rewrite(s, _label("cuda_sources", i, len(cuda)), cuda=True, mode=mode) for i, s in enumerate(cuda)]
    by_hand = [_label("cpp_sources", i, len(cpp)) for i, r in enumerate(rewritten_cpp) if r.binds_by_hand]
    by_hand += [_label("cuda_sources", i, len(cuda)) for i, r in enumerate(rewritten_cuda) if r.binds_by_hand]
    _check_bindings(by_hand, functions)
    for r in rewritten_cuda:
        kernels += [k for k in r.kernels if k not in kernels]
        shared += [s for s in r.shared if s not in shared]
    if cpp or functions:
        text = _marked(rewritten_cpp, "cpp_sources") + _binding(functions)
        # No kernel is in there, so no probe is needed: one object serves all modes.
        units.append(Unit("cpp_sources", text, _header_for(rewritten_cpp), flags, _student_lines(cpp, "cpp_sources")))
    if cuda:
        text = ptx_header(rewritten_cuda) + _macros(cuda, rewritten_cuda) + names(kernels, shared, [c for r in rewritten_cuda for c in r.constants]) + _marked(rewritten_cuda, "cuda_sources")
        units.append(Unit("cuda_sources", text, _header_for(rewritten_cuda), flags, _student_lines(cuda, "cuda_sources"), mode))
    return units, kernels, shared


# The qualifiers are gone from the student's sources; headers of the student's own may have them.
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


def _macros(cuda: list[str], rewritten: list[Rewritten]) -> str:
    """A source with TF32 fragments or PTX is built as for the first GPUs that have them, so that what it keeps for older ones stays out."""
    newest = max(75, *(80 * ("precision::tf32" in s) for s in cuda), *(r.ptx for r in rewritten))
    return CUDA_MACROS.replace("__CUDA_ARCH__ 750", f"__CUDA_ARCH__ {newest}0")


def ptx_header(rewritten: list[Rewritten]) -> str:
    """What sources with inline PTX, or with addresses for it, include besides the prelude."""
    needed = any(r.ptx or any(word.startswith("__cvta_") for word in r.words) for r in rewritten)
    return "#include <simt/ptx.h>\n" if needed else ""


def _student_lines(sources: list[str], kind: str) -> dict[tuple[str, int], str]:
    labels = [_label(kind, i, len(sources)) for i in range(len(sources))]
    return {(label, n): line for label, s in zip(labels, sources) for n, line in enumerate(s.split("\n"), 1)}


def _marked(sources: list[Rewritten], kind: str) -> str:
    return "".join(f'#line 1 "{_label(kind, i, len(sources))}"\n{s.text}\n' for i, s in enumerate(sources))


def _binding(functions: dict[str, str] | None) -> str:
    if functions is None:
        return ""
    lines = ['#line 1 "functions"', 'extern "C" SIMT_API void simt_functions(void* into) {', "auto& all = *static_cast<std::vector<::simt::Function>*>(into);"]
    for name, doc in functions.items():
        escaped = doc.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'all.push_back(::simt::make_function("{name}", &{name})); all.back().doc = "{escaped}";')
    return "\n".join([*lines, "}", ""])


def names(kernels: list[str], shared: list[str], constants: list[str]) -> str:
    """Names for the runtime: which functions are kernels, and which variables are static shared arrays, or constants."""
    texts = {"simt_kernel_names": kernels, "simt_shared_names": shared, "simt_constant_names": constants}
    return '#line 1 "names"\n' + "".join(
        f'extern "C" SIMT_API const char {symbol}[]; const char {symbol}[] = "{"".join(n + "," for n in names)}";\n'
        for symbol, names in texts.items()
    )


def _header_for(sources: list[Rewritten]) -> str:
    return _header_of([s.text for s in sources])


def _header_of(texts: list[str]) -> str:
    """The full header where the texts name operators of torch, or include a header that brings them."""
    names = {n for text in texts for n in re.findall(r"\b(?:torch|at)\s*::\s*([A-Za-z_]\w*)", text)}
    headers = {h for text in texts for h in re.findall(r"#\s*include\s*[<\"]((?:ATen|torch)/[^>\"]+)", text)}
    stand_ins = {h for h in headers if (_HERE / "include/shim" / h).is_file()}
    return "prelude" if names <= _LIGHT and headers <= stand_ins | _LIGHT_HEADERS else "prelude_full"


def _names_operators(error: CompileError) -> bool:
    """Whether an error may come from the light header: an operator found by its arguments or by a using-directive."""
    import torch

    for d in error.diagnostics:
        undeclared = re.match(r"‘(\w+)’ was not declared|there are no arguments to ‘(\w+)’", d.message)
        if undeclared and hasattr(torch.ops.aten, undeclared[1] or undeclared[2]):
            return True
        if re.search(r"incomplete type ‘(?:struct |class )?(?:at|torch|c10)::", d.message):
            return True
    return False


# ---- checks that stock load_inline makes by failing obscurely ----


def _check_declared(cpp: list[str], cuda: list[str], functions: dict[str, str] | None) -> None:
    if not functions:
        return
    words = {t.text for source in cpp for t in tokenize(source) if t.kind == "word"}
    missing = [name for name in functions if name not in words]
    if not missing:
        return
    listed = " and ".join(f"`{name}`" for name in missing)
    declared = _signature(missing[0], cuda)
    mend = f" Add its declaration, `{declared};`, to cpp_sources." if declared else " Add its declaration to cpp_sources."
    if not any(s.strip() for s in cpp):
        raise MissingSources(
            [Diagnostic("cpp_sources", 0, 0, "error", f"functions= names {listed}, but cpp_sources is empty: the binding is made there and must know the function.{mend}")]
        )
    raise UndeclaredFunction([Diagnostic("cpp_sources", 0, 0, "error", f"functions= names {listed}, which cpp_sources does not declare.{mend}")])


def _signature(name: str, cuda: list[str]) -> str:
    """The head of the function's definition in the CUDA sources, on one line; empty if there is none."""
    for source in cuda:
        match = re.search(rf"^[ \t]*((?:[\w:<>,&*]+[ \t]+)+{re.escape(name)}\s*\([^;{{]*\))\s*\{{", source, re.MULTILINE)
        if match:
            return " ".join(match[1].split())
    return ""


def _check_bindings(by_hand: list[str], functions: dict[str, str] | None) -> None:
    if len(by_hand) > 1:
        raise CompileError([Diagnostic(by_hand[1], 0, 0, "error", f"PYBIND11_MODULE stands in {by_hand[0]} and in {by_hand[1]}: an extension has one.")])
    if by_hand and functions is not None:
        raise CompileError(
            [Diagnostic(by_hand[0], 0, 0, "error", "functions= makes a PYBIND11_MODULE of its own, and the source has one too: keep one of the two.")]
        )
    if not by_hand and functions is None:
        raise CompileError([Diagnostic("functions", 0, 0, "error", "Nothing is bound: pass functions=[…] or write a PYBIND11_MODULE.")])


# ---- compiling and linking ----


def _object(unit: Unit) -> tuple[Path, bool]:
    try:
        return _object_with(unit)
    except CompileError as error:
        if unit.header != "prelude" or not _names_operators(error):
            raise
        return _object_with(replace(unit, header="prelude_full"))


def _object_with(unit: Unit) -> tuple[Path, bool]:
    key = cache.key_of(_header_key(unit.header, unit.mode), unit.label, unit.text, *unit.flags)
    return cache.entry("object", key, lambda made: _compile(unit, header(unit.header, unit.mode), made), _headers_unchanged)


def _compile(unit: Unit, precompiled: Path, folder: Path) -> None:
    source = folder / "unit.cpp"
    source.write_text(unit.text, encoding="utf-8")
    command = [compiler()[0], *flags(unit.mode), *unit.flags, *_includes(shim=True), *compiler()[2].including(precompiled),
               "-fdiagnostics-color=never", compiler()[2].most_errors, "-MMD", "-MF", str(folder / "unit.d"), "-c", str(source), "-o", str(folder / "unit.o")]
    result = _run(command)
    if result.returncode != 0:
        raise CompileError(_diagnostics(result.stderr, unit) or [Diagnostic(unit.label, 0, 0, "error", _last_words(result))])
    listed = (folder / "unit.d").read_text(encoding="utf-8").replace("\\\n", " ")
    paths = [Path(p.replace("\\ ", " ")) for p in re.split(r"(?<!\\)\s+", listed)[1:] if p]
    preludes = _closure(f"include/simt/{unit.header}.h")  # the key has them already
    own = [p for p in paths if p not in (source, precompiled, *preludes)]
    (folder / "headers").write_text("".join(f"{cache.key_of(p.read_text(encoding='utf-8', errors='replace'))} {p}\n" for p in own), encoding="utf-8")


def _texts(folder: Path) -> list[str]:
    """Paths of the texts that an object was compiled from."""
    return [str(folder / "unit.cpp"), *(line.split(" ", 1)[1] for line in (folder / "headers").read_text(encoding="utf-8").splitlines())]


def _headers_unchanged(folder: Path) -> bool:
    """Whether the headers of the student that went into an object still read the same."""
    try:
        lines = [line.split(" ", 1) for line in (folder / "headers").read_text(encoding="utf-8").splitlines()]
        return all(cache.key_of(Path(p).read_text(encoding="utf-8", errors="replace")) == key for key, p in lines)
    except OSError:
        return False


def _last_words(result: subprocess.CompletedProcess) -> str:
    lines = [l.strip() for l in result.stderr.splitlines() if l.strip()]
    return lines[-1] if lines else f"The compiler ended with status {result.returncode} and no message."


_MESSAGE = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<severity>fatal error|error|warning|note): (?P<message>.*)$")
_VIA = re.compile(r"^(?:In file included|\s+) from ([^:]+):(\d+)|^([^:]+):(\d+):\d+:   required from here")


def _diagnostics(output: str, unit: Unit) -> list[Diagnostic]:
    """g++'s messages about the student's lines; an error inside a header is told at the line that led there."""
    compiled = compiled_lines(unit.text)
    found, via, severity = [], None, ""
    for text in output.splitlines():
        if inclusion := _VIA.match(text):
            place = inclusion[1] or inclusion[3], int(inclusion[2] or inclusion[4])
            via = place if place in compiled else via
        match = _MESSAGE.match(text)
        if not match:
            continue
        before, severity = severity, "error" if "error" in match["severity"] else match["severity"]
        place = match["file"], int(match["line"])
        message = _in_cuda(_asserted(match["message"]), unit.lines.get(place, ""))
        if severity == "note" and "to match this ‘{’" in message and before == "error" and place in unit.lines:
            first = 1 if found[0].message.startswith("unterminated") else 0
            found.insert(first, Diagnostic(*place, int(match["column"] or 0), "error", "This ‘{’ is never closed.", unit.lines[place]))
        elif place in unit.lines:
            kept = unit.lines[place] == compiled.get(place)  # else the columns have moved
            found.append(Diagnostic(*place, int(match["column"] or 0) if kept else 0, severity, message, unit.lines[place]))
        elif severity == "error":
            place = via or place
            if place[0] == "functions":
                found += _in_binding(message, compiled[place], unit, found)
            else:
                if not Path(match["file"]).is_relative_to(_HERE) and Path(match["file"]).is_file():
                    message = f"{Path(match['file']).name}, line {match['line']}: {message}"
                found.append(Diagnostic(*(place if place in unit.lines else (unit.label, 0)), 0, severity, message, unit.lines.get(place, "")))
        via = via if severity == "note" else None
    return _in_order(found)


def _in_order(found: list[Diagnostic]) -> list[Diagnostic]:
    """Errors first: notes and warnings explain, they don't lead. Of a launch that is not understood, one error a line."""
    errors = [d for d in found if d.severity == "error"]
    unread = {(d.source, d.line): d for d in reversed(errors) if d.message == _NO_LAUNCH}
    errors = [d for d in errors if unread.get((d.source, d.line), d) is d]
    return errors + [d for d in found if d.severity != "error"]


_NO_LAUNCH = "A launch is kernel<<<grid, block>>>(arguments): here the name, the >>> or a parenthesis is missing."


def _asserted(message: str) -> str:
    """What a static_assert says, without the compiler's words for that."""
    if said := re.match(r"static_assert failed (?:due to requirement '.*' )?\"(.*)\"$", message):  # clang
        return said[1].replace('\\"', '"')
    return message.removeprefix("static assertion failed: ")


def _in_cuda(message: str, line: str) -> str:
    """A message of g++ about what stands in place of a launch, in the words of the launch."""
    message = re.sub(r" \[-f[\w-]+\]$", "", message)
    if "<<<" not in line:
        return message
    if match := re.match(r"no match for call to ‘\(simt::TypedLaunch<.*lambda\(.*?\)>(?:, (.*))?>\) \((.*)\)’$", message):
        return f"The kernel's parameters are ({match[1] or ''}), but this launch gives ({_plain_types(match[2])})."
    match = re.match(r"no matching function for call to ‘(.+?)\((.*)\)’$", message)
    if match and re.search(rf"\b{re.escape(match[1].split('<')[0])}\b.*<<<", line):
        return f"No kernel `{match[1]}` takes the arguments ({_plain_types(match[2])})."
    if "simt::config(" in message:
        return "A launch has two to four arguments between <<< and >>>: grid, block, bytes of dynamic shared memory, stream."
    if re.match(r"expected primary-expression before ‘(<|<<|>)’ token", message):
        return _NO_LAUNCH
    return message


def _plain_types(types: str) -> str:
    return re.sub(r"const (\w[\w: ]*)&", r"\1", types.replace(" const&", "")).replace("&", "")


def _in_binding(message: str, line: str, unit: Unit, found: list[Diagnostic]) -> list[Diagnostic]:
    """What a message about the binding, which follows cpp_sources, says to the student; the first one says it all."""
    if found:
        return []
    if message.startswith("expected"):
        place, text = max((p, t) for p, t in unit.lines.items() if t.strip())
        return [Diagnostic(*place, 0, "error", "After this line something is missing: a ‘;’ or a ‘}’.", text)]
    name = re.search(r'make_function\("([^"]*)"', line)
    if "unresolved overloaded" in message:
        message = "several functions have this name, rename one of them"
    elif match := re.match(r"no matching function for call to ‘to_value\((.*)\)’$", message):
        message = f"its result, {match[1]}, has no counterpart in Python"
    return [Diagnostic("functions", 0, 0, "error", f"`{name[1] if name else 'functions='}` can't be bound: {message}.")]


def _link(folder: Path, objects: list[Path], runtime_folder: Path, links: list[str], torch: bool, mode: str) -> None:
    # No paths to the libraries are kept: Python has loaded them already, whatever their folders are called.
    libraries = [f"-L{runtime_folder}", "-lsimt_runtime", *([f"-L{_TORCH / 'lib'}", "-ltorch_cpu", "-lc10"] if torch else [])]
    command = [compiler()[0], "-shared", *map(str, objects), "-o", str(folder / "extension.so"), *libraries, "-Wl,-z,defs", *links]
    result = _run(command)
    if result.returncode == 0:
        if mode == "count":
            disassembly.write_blocks(folder / "extension.so")
        return
    found = []
    for text in result.stderr.splitlines():
        undefined = re.search(r"undefined reference to [`'](.+)'", text)
        twice = re.search(r"multiple definition of [`'](.+?)'", text)
        library = re.search(r"cannot find ([^:\s]+)", text)
        if undefined and undefined[1] != "simt_functions":
            found.append(f"`{undefined[1]}` is declared and called, but no source defines it with just these parameter types.")
        elif twice:
            found.append(f"`{twice[1]}` is defined in more than one source.")
        elif library:
            found.append(f"extra_ldflags= names {library[1]}, which is not found.")
    unique = list(dict.fromkeys(found)) or [_last_words(result)]
    raise LinkError([Diagnostic("", 0, 0, "error", message) for message in unique])
