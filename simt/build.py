"""Compiles rewritten sources against precompiled headers and links them into an extension."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import torch

from . import cache
from .errors import CompileError, Diagnostic, LinkError, MissingSources, NoCompiler, UndeclaredFunction
from .rewrite import Rewritten, rewrite, tokenize

_HERE = Path(__file__).parent
_TORCH = Path(torch.__file__).parent

# -fno-strict-aliasing and -fwrapv: nvcc allows float4* casts and wraps integers; -fno-finite-loops: an endless
# kernel is endless; -fno-gnu-unique: two builds of one kernel must not share its variables; -fstack-clash-protection:
# a large local array meets the fence below the stack, and does not step over it.
_FLAGS = (
    "-std=c++20 -O2 -g1 -gdwarf-4 -fPIC -w -fvisibility=hidden -fno-gnu-unique -fno-strict-aliasing -fwrapv -fno-finite-loops "
    "-fno-math-errno -fno-trapping-math -fno-semantic-interposition -fstack-clash-protection -D_GLIBCXX_USE_CXX11_ABI=1"
).split()
_RUNTIME = ("fiber", "worker", "collectives", "fault", "module", "memory", "launch")

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
    full: bool  # needs the header with every operator
    flags: tuple[str, ...]
    lines: dict[tuple[str, int], str]  # the student's own lines, by label and number


@dataclass(frozen=True)
class Built:
    """A linked extension and what building it took."""

    path: Path
    compiled: int  # units that were compiled now


@lru_cache(maxsize=1)
def compiler() -> tuple[str, str]:
    """The C++ compiler, which is $CXX or g++, and its version line. Raises NoCompiler."""
    named = os.environ.get("CXX", "")
    words = [w for w in shlex.split(named) if Path(w).name not in ("ccache", "sccache", "distcc")]
    mend = "install GCC 11 or later, on Debian and Ubuntu with `sudo apt install g++`"
    if words:
        mend = f"CXX is `{named}`: unset it, or set it to g++ 11 or later"
    for name in words[:1] or ["g++", "c++"]:
        path = shutil.which(name)
        version = _output(path, "--version").split("\n")[0] if path else ""
        major = _output(path, "-dumpversion").split(".")[0] if version else ""
        if not version or "clang" in version:
            continue
        if major.isdigit() and int(major) < 11:
            raise NoCompiler(f"The C++ compiler is too old ({version}): {mend}.")
        return path, version
    raise NoCompiler(f"No C++ compiler was found: {mend}.")


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


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
def _base_key() -> str:
    texts = []
    for folder in ("include", "src"):
        for path in sorted((_HERE / folder).rglob("*")):
            if path.is_file():
                texts += [str(path.relative_to(_HERE)), path.read_text()]
    path, version = compiler()
    return cache.key_of(path, version, torch.__version__, str(_TORCH), sys.version, " ".join(_FLAGS), *texts)


def base() -> Path:
    """The folder with the runtime, the binder and the precompiled header, built where there is none (about 20 s)."""
    place, made = cache.entry("base", _base_key(), _make_base)
    if made:
        cache.trim("base", 3)
    return place


def warm() -> bool:
    """Whether base() has nothing to do."""
    return cache.has("base", _base_key())


def full_header() -> Path:
    """The folder with the precompiled header that has every operator, built where there is none (about 25 s)."""
    place, made = cache.entry("full", _base_key(), lambda folder: _precompile(folder, "prelude_full"))
    if made:
        cache.trim("full", 3)
    return place


def _make_base(folder: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(_precompile, folder, "prelude"),
            pool.submit(_make_runtime, folder),
            pool.submit(_make_binder, folder),
        ]
        for job in jobs:
            job.result()
    # Linked last: the binder needs the runtime.
    libraries = [f"-L{_TORCH / 'lib'}", "-ltorch_python", "-ltorch_cpu", "-ltorch", "-lc10"]
    _run_or_fail(
        [compiler()[0], "-shared", str(folder / "bind.o"), "-o", str(folder / "_simt_bind.so"), f"-L{folder}", "-lsimt_runtime", *libraries]
    )
    (folder / "bind.o").unlink()


def _precompile(folder: Path, name: str) -> None:
    shutil.copy(_HERE / "include/simt" / f"{name}.h", folder / f"{name}.h")
    _run_or_fail([compiler()[0], *_FLAGS, *_includes(), "-x", "c++-header", str(folder / f"{name}.h"), "-o", str(folder / f"{name}.h.gch")])


def _make_runtime(folder: Path) -> None:
    sources = [str(_HERE / "src" / f"{name}.cpp") for name in _RUNTIME]
    _run_or_fail(
        [compiler()[0], *_FLAGS, f"-I{_HERE / 'include'}", f"-I{_HERE / 'src'}", "-shared", *sources, "-o",
         str(folder / "libsimt_runtime.so"), "-Wl,-soname,libsimt_runtime.so", "-Wl,-z,defs", "-lpthread", "-ldl"]
    )


def _make_binder(folder: Path) -> None:
    flags = [f for f in _FLAGS if f != "-O2"] + ["-O1"]
    _run_or_fail([compiler()[0], *flags, *_includes(python=True), "-c", str(_HERE / "src/bind.cpp"), "-o", str(folder / "bind.o")])


def _run(command: list[str]) -> subprocess.CompletedProcess:
    """Runs the compiler. Raises CacheError or NoCompiler where it failed for a reason that lies in the machine."""
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if result.returncode != 0:
        if full := re.search(r"No space left on device|Disk quota exceeded|Read-only file system", result.stderr):
            raise cache.unusable(f"{full[0]}, there or in {tempfile.gettempdir()}")
        if re.search(r"Killed signal terminated program|virtual memory exhausted|out of memory allocating", result.stderr):
            raise NoCompiler("The compiler ran out of memory: free some, it needs about 1 GB.")
    return result


def _run_or_fail(command: list[str]) -> None:
    result = _run(command)
    if result.returncode != 0:
        lines = [l for l in result.stderr.splitlines() if "error" in l][:3]
        raise NoCompiler(
            f"simt's own runtime did not build with {compiler()[1]} (exit status {result.returncode}): {' / '.join(lines) or 'no message'}"
        )


# ---- a submission ----


def build(name: str, cpp: list[str], cuda: list[str], functions: dict[str, str] | None, flags: list[str], links: list[str]) -> Built:
    """Builds an extension and returns where it lies.

    cpp, cuda: the sources; functions: names to bind and their docstrings, or None where the sources bind by hand.
    Raises CompileError and its kinds, NoCompiler.
    """
    _check_declared(cpp, cuda, functions)
    units, kernels, shared = _units(cpp, cuda, functions, flags)
    folder = base()
    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(lambda unit: _object(unit, folder), units))
    headers = [(path / "headers").read_text() for path, _ in objects]
    key = cache.key_of(name, _base_key(), *(str(path) for path, _ in objects), *headers, *links, ",".join(kernels), ",".join(shared))
    place, _ = cache.entry("extension", key, lambda made: _link(made, [p / "unit.o" for p, _ in objects], folder, links))
    compiled = sum(made for _, made in objects)
    if compiled:
        cache.trim("object", 400)
        cache.trim("extension", 200)
    return Built(place / "extension.so", compiled)


def _label(kind: str, i: int, count: int) -> str:
    return kind if count == 1 else f"{kind}[{i}]"


def _units(cpp, cuda, functions, flags) -> tuple[list[Unit], list[str], list[str]]:
    kernels, shared = [], []
    units = []
    by_hand = []
    rewritten_cpp = [rewrite(s, _label("cpp_sources", i, len(cpp)), cuda=False) for i, s in enumerate(cpp)]
    rewritten_cuda = [rewrite(s, _label("cuda_sources", i, len(cuda)), cuda=True) for i, s in enumerate(cuda)]
    by_hand = [_label("cpp_sources", i, len(cpp)) for i, r in enumerate(rewritten_cpp) if r.binds_by_hand]
    by_hand += [_label("cuda_sources", i, len(cuda)) for i, r in enumerate(rewritten_cuda) if r.binds_by_hand]
    _check_bindings(by_hand, functions)
    for r in rewritten_cuda:
        kernels += [k for k in r.kernels if k not in kernels]
        shared += [s for s in r.shared if s not in shared]
    if cpp or functions:
        text = _marked(rewritten_cpp, "cpp_sources") + _binding(functions)
        units.append(Unit("cpp_sources", text, _needs_all(rewritten_cpp), tuple(flags), _student_lines(cpp, "cpp_sources")))
    if cuda:
        text = _CUDA_MACROS + _names(kernels, shared) + _marked(rewritten_cuda, "cuda_sources")
        units.append(Unit("cuda_sources", text, _needs_all(rewritten_cuda), tuple(flags), _student_lines(cuda, "cuda_sources")))
    return units, kernels, shared


# The qualifiers are gone from the student's sources; headers of the student's own may have them.
_CUDA_MACROS = """#define __CUDACC__ 1
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


def _names(kernels: list[str], shared: list[str]) -> str:
    """Names for the runtime: which functions are kernels, and which variables are static shared arrays."""
    texts = {"simt_kernel_names": kernels, "simt_shared_names": shared}
    return '#line 1 "names"\n' + "".join(
        f'extern "C" SIMT_API const char {symbol}[]; const char {symbol}[] = "{"".join(n + "," for n in names)}";\n'
        for symbol, names in texts.items()
    )


def _needs_all(sources: list[Rewritten]) -> bool:
    """Whether the sources name operators of torch, or include a header that brings them."""
    names = {n for s in sources for n in re.findall(r"\b(?:torch|at)\s*::\s*([A-Za-z_]\w*)", s.text)}
    headers = {h for s in sources for h in re.findall(r"#\s*include\s*[<\"]((?:ATen|torch)/[^>\"]+)", s.text)}
    stand_ins = {h for h in headers if (_HERE / "include/shim" / h).is_file()}
    return not (names <= _LIGHT and headers <= stand_ins | _LIGHT_HEADERS)


def _names_operators(error: CompileError) -> bool:
    """Whether an error may come from the light header: an operator found by its arguments or by a using-directive."""
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


def _object(unit: Unit, folder: Path) -> tuple[Path, bool]:
    try:
        return _object_with(unit, folder)
    except CompileError as error:
        if unit.full or not _names_operators(error):
            raise
        return _object_with(replace(unit, full=True), folder)


def _object_with(unit: Unit, folder: Path) -> tuple[Path, bool]:
    header = full_header() / "prelude_full.h" if unit.full else folder / "prelude.h"
    key = cache.key_of(_base_key(), unit.label, unit.text, *unit.flags, str(unit.full))
    return cache.entry("object", key, lambda made: _compile(unit, header, made), _headers_unchanged)


def _compile(unit: Unit, header: Path, folder: Path) -> None:
    source = folder / "unit.cpp"
    source.write_text(unit.text)
    command = [compiler()[0], *_FLAGS, *unit.flags, *_includes(shim=True), "-include", str(header), "-fdiagnostics-color=never",
               "-fmax-errors=20", "-MMD", "-MF", str(folder / "unit.d"), "-c", str(source), "-o", str(folder / "unit.o")]
    result = _run(command)
    if result.returncode != 0:
        raise CompileError(_diagnostics(result.stderr, unit) or [Diagnostic(unit.label, 0, 0, "error", _last_words(result))])


    listed = (folder / "unit.d").read_text().replace("\\\n", " ")
    paths = [Path(p.replace("\\ ", " ")) for p in re.split(r"(?<!\\)\s+", listed)[1:] if p]
    own = [p for p in paths if p not in (source, header) and not p.is_relative_to(_HERE)]
    (folder / "headers").write_text("".join(f"{cache.key_of(p.read_text(errors='replace'))} {p}\n" for p in own))


def _headers_unchanged(folder: Path) -> bool:
    """Whether the headers of the student that went into an object still read the same."""
    try:
        lines = [line.split(" ", 1) for line in (folder / "headers").read_text().splitlines()]
        return all(cache.key_of(Path(p).read_text(errors="replace")) == key for key, p in lines)
    except OSError:
        return False


def _last_words(result: subprocess.CompletedProcess) -> str:
    lines = [l.strip() for l in result.stderr.splitlines() if l.strip()]
    return lines[-1] if lines else f"The compiler ended with status {result.returncode} and no message."


_MESSAGE = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<severity>fatal error|error|warning|note): (?P<message>.*)$")
_VIA = re.compile(r"^(?:In file included|\s+) from ([^:]+):(\d+)|^([^:]+):(\d+):\d+:   required from here")


def _diagnostics(output: str, unit: Unit) -> list[Diagnostic]:
    """g++'s messages about the student's lines; an error inside a header is told at the line that led there."""
    compiled = _compiled_lines(unit)
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
        message = _in_cuda(match["message"], unit.lines.get(place, ""))
        if severity == "note" and "to match this ‘{’" in message and before == "error" and place in unit.lines:
            first = 1 if found[0].message.startswith("unterminated") else 0
            found.insert(first, Diagnostic(*place, int(match["column"] or 0), "error", "This ‘{’ is never closed.", unit.lines[place]))
        elif place in unit.lines:
            kept = unit.lines[place] == compiled[place]  # else the columns have moved
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
    message = message.removeprefix("static assertion failed: ")
    return [Diagnostic("functions", 0, 0, "error", f"`{name[1] if name else 'functions='}` can't be bound: {message}.")]


def _compiled_lines(unit: Unit) -> dict[tuple[str, int], str]:
    lines, label, number = {}, "", 0
    for text in unit.text.split("\n"):
        mark = re.match(r'#line (\d+) "([^"]+)"$', text)
        if mark:
            label, number = mark[2], int(mark[1])
            continue
        if label:
            lines[label, number] = text
            number += 1
    return lines


def _link(folder: Path, objects: list[Path], base_folder: Path, links: list[str]) -> None:
    # No paths to the libraries are kept: Python has loaded them already, whatever their folders are called.
    command = [compiler()[0], "-shared", *map(str, objects), "-o", str(folder / "extension.so"), f"-L{base_folder}", "-lsimt_runtime",
               f"-L{_TORCH / 'lib'}", "-ltorch_cpu", "-lc10", "-Wl,-z,defs", *links]
    result = _run(command)
    if result.returncode == 0:
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
