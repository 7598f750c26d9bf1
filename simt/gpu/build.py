"""Build an extension for a GPU: host code with the C++ compiler, device code with nvcc's device pass or NVRTC.

Both are compiled at once, and cached. nvcc alone is slow for its host pass, which reads torch's headers without a
precompiled one. Its device pass is not, and makes the very machine code that nvcc makes of the whole source. Where nvcc
is missing NVRTC, which torch brings, takes its place.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from simt.errors import CompileError
from simt.frontend.source import Source
from simt.gpu import nvrtc
from simt.gpu.flags import pick_architecture, pick_host_flags, refuse_architectures, translate
from simt.gpu.items import NotSplit
from simt.gpu.split import Split, split
from simt.toolchain import cache
from simt.toolchain.build import compile_unit
from simt.toolchain.compilers import (
    find_compiler,
    find_cpp_library,
    find_linker,
    flags,
    run_compiler,
    run_or_fail,
)
from simt.toolchain.cuda_toolkit import find_includes, find_nvcc, find_runtime, read_version
from simt.toolchain.diagnostics import read_link_errors
from simt.toolchain.half_macros import TORCH_FLAGS
from simt.toolchain.headers import SIMT, build_header, choose_header, make_header_key, make_key, torch_folder
from simt.toolchain.runtime_library import build_base, build_runtime, make_base_key
from simt.toolchain.units import Sources, Unit, check_bindings, check_declared, make_binding, number_lines

LAUNCHER = "src/gpu/launch.cpp"  # compiled once, linked into each extension
_DEVICE_HEADER, _CODE = "gpu/device.h", "device.cubin"
# Host code only prepares launches, and nvcc does not optimise it unless asked.
_QUICK = "-O1"
# What torch's headers bring of the C++ standard library: sources use it without an #include of their own. NVRTC has
# device.h for it.
_BROUGHT = (
    "algorithm array cassert climits cmath cstddef cstdint cstdio cstring limits tuple type_traits utility".split()
)
OLDEST_CUDA = (12, 6)  # the first whose runtime loads machine code and launches by handle


@dataclass(frozen=True)
class Built:
    """A linked extension. code: the file of its machine code, which has to be handed to it; None: it has no kernel."""

    path: Path
    code: Path | None
    compiled: int  # how many units this build compiled


def build(sources: Sources, cuda_flags: Sequence[str], architecture: str) -> Built:
    """Build an extension for one architecture, such as "sm_90".

    Raises NotSplit if it has to go to nvcc as it is, CompileError and its subclasses for mistakes in device code and
    for functions that are not declared, NoCompiler, CacheError. What the C++ compiler or the linker refuses goes to
    nvcc: its headers know more than the precompiled one, and its word counts.
    """
    if read_version() < OLDEST_CUDA:
        raise NotSplit(
            f"CUDA {'.'.join(map(str, read_version()))} is older than 12.6, the first that loads code this way"
        )
    check_declared(sources)
    if not any("#if" in text for text in (*sources.cpp, *sources.cuda)):  # which would hide one of two bindings
        check_bindings([s.label for s in (*sources.parsed_cpp, *sources.parsed_cuda) if s.binds_by_hand], sources)
    whole = Source("\n".join(sources.cuda), "cuda_sources")  # one file, as torch makes it
    parts = split(whole, standard=find_nvcc() is not None)
    cuda_flags, architecture = pick_architecture(cuda_flags, architecture)
    refuse_architectures(cuda_flags)
    units = _make_units(sources, parts, whole, tuple(pick_host_flags(cuda_flags)), architecture)
    with ThreadPoolExecutor(len(units) + 1) as pool:
        objects = [pool.submit(compile_unit, unit) for unit in units]
        kernels = None
        if parts.kernels and not parts.templates:
            kernels = pool.submit(_build_code, whole, parts, cuda_flags, architecture, ())
        try:
            made = [job.result() for job in objects]
        except CompileError as error:
            if kernels:
                kernels.result()  # nvcc's word on the device's half counts
            raise NotSplit(f"its host code alone does not compile ({error.diagnostics[0].message})") from None
        if parts.templates:
            versions = _list_versions(made[-1][0] / "unit.o", parts.templates)
            kernels = pool.submit(_build_code, whole, parts, cuda_flags, architecture, versions)
        linked = pool.submit(_link, sources, [place for place, _ in made])
        code, compiled = kernels.result() if kernels else (None, False)
        path, _ = linked.result()
    return Built(path, code, sum(new for _, new in made) + compiled)


def is_warm(text: str = "") -> bool:
    """Return whether warm_up(text) has nothing to do."""
    headers = all(cache.has_entry("header", make_header_key(*each)) for each in _list_headers(text))
    return headers and cache.has_entry("base", make_base_key()) and cache.has_entry("part", _make_launcher_key())


def warm_up(text: str = "") -> None:
    """Build what the first extension of a machine would wait for. text: any that contains the sources."""
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(build_base), *(pool.submit(build_header, *each) for each in _list_headers(text))]
        for job in [*jobs, pool.submit(_build_launcher)]:
            job.result()


def _list_headers(text: str) -> list[tuple[str, str, tuple[str, ...]]]:
    names = dict.fromkeys(_name_header(name) for name in ("prelude", choose_header([text])))
    return [(name, "plain", TORCH_FLAGS) for name in names]


def _name_header(name: str) -> str:
    """Return the precompiled header for a GPU's code that stands for one for the CPU's."""
    return name.replace("prelude", "prelude_gpu", 1)


# ---- the host's half ----


def _make_units(
    sources: Sources, parts: Split, whole: Source, host_flags: tuple[str, ...], architecture: str
) -> list[Unit]:
    """Return the units for the C++ compiler: the declarations with the binding, and the host's half of the source."""
    all_flags = (*TORCH_FLAGS, _QUICK, *sources.flags, *host_flags)
    header = _name_header(choose_header([*sources.cpp, parts.host]))
    units = []
    if sources.cpp or sources.functions is not None:
        texts = "".join(f'#line 1 "{s.label}"\n{s.text}\n' for s in sources.parsed_cpp)
        text = texts + make_binding(
            sources.functions if sources.functions is not None or _binds(sources) else {}, sources.cpp
        )
        units.append(Unit("cpp_sources", text, header, all_flags, number_lines(sources.parsed_cpp)))
    if sources.cuda:
        # Host code may ask which architectures nvcc compiles for. A kernel's function is found by its name in the table
        # of the dynamic linker.
        number = re.sub(r"\D", "", architecture)
        text = (
            f"#define __CUDA_ARCH_LIST__ {number}0\n#pragma GCC visibility push(default)\n"
            f'#line 1 "{whole.label}"\n{parts.host}\n#pragma GCC visibility pop\n'
        )
        units.append(Unit("cuda_sources", text, header, all_flags, number_lines([whole])))
    return units


def _binds(sources: Sources) -> bool:
    return any(s.binds_by_hand for s in (*sources.parsed_cpp, *sources.parsed_cuda))


def _link(sources: Sources, objects: list[Path]) -> tuple[Path, bool]:
    launcher = _build_launcher()
    key = cache.hash_texts(sources.name, str(launcher), *map(str, objects), *sources.links, str(build_base()))

    def make(folder: Path) -> None:
        libraries = [name for name in ("torch_cuda", "c10_cuda") if (torch_folder() / f"lib/lib{name}.so").is_file()]
        command = [
            find_compiler()[0],
            "-shared",
            "-Wl,-Bsymbolic",  # its own kernels, whatever another extension calls alike
            *(str(place / "unit.o") for place in objects),
            str(launcher / "launch.o"),
            str(build_base() / "values.o"),
            "-o",
            str(folder / "extension.so"),
            f"-L{build_runtime()}",
            "-lsimt_runtime",
            f"-L{torch_folder() / 'lib'}",
            "-ltorch_cpu",
            "-lc10",
            *(f"-l{name}" for name in libraries),
            *find_runtime(),
            *find_cpp_library(),
            *sources.links,
        ]
        result = run_compiler([*command, *find_linker()])
        if result.returncode != 0 and find_linker():
            result = run_compiler(command)
        if result.returncode != 0:
            raise NotSplit(f"it does not link ({read_link_errors(result)[0].message})")

    return cache.find_or_make("gpu_extension", key, make)


def _build_launcher() -> Path:
    """Return the folder with launch.o, which finds and launches an extension's machine code."""

    def make(folder: Path) -> None:
        own = [f"-I{SIMT / 'include'}", *_include_cuda()]
        made = ["-c", str(SIMT / LAUNCHER), "-o", str(folder / "launch.o")]
        run_or_fail([find_compiler()[0], *flags(), *own, *made])

    return cache.find_or_make("part", _make_launcher_key(), make)[0]


def _make_launcher_key() -> str:
    return make_key(LAUNCHER, "include/gpu/host.h", flags=(*_include_cuda(), str(read_version())))


def _include_cuda() -> list[str]:
    return [part for folder in find_includes() for part in ("-isystem", str(folder))]


def _list_versions(path: Path, templates: Sequence[str]) -> tuple[str, ...]:
    """Return the versions of kernel templates that the host's object has, as C++ declarations: void k<4>(float*)."""
    done = subprocess.run(["nm", "-C", "--defined-only", str(path)], capture_output=True, text=True, check=False)
    names = "|".join(map(re.escape, templates))
    found = re.findall(rf"^[0-9a-f]+ [WVTtu] (void (?:[\w:]+::)?(?:{names})<.*)$", done.stdout, re.MULTILINE)
    return tuple(sorted({name for name in found if not name.endswith("]")}))


# ---- the device's half ----


def _build_code(
    whole: Source, parts: Split, flags: Sequence[str], architecture: str, versions: Sequence[str]
) -> tuple[Path, bool]:
    """Return the file of the machine code, and whether this call compiled it. Raises CompileError, NotSplit."""
    wanted = "".join(f"template __global__ {version};\n" for version in versions)
    compiler = find_nvcc()
    brought = "".join(f"#include <{header}>\n" for header in _BROUGHT) if compiler else ""
    text = f'{brought}#line 1 "{whole.label}"\n{parts.device}\n#line 1 "versions"\n{wanted}'
    command = [*flags, f"-arch={architecture}"] if compiler else _make_options(flags, architecture)
    version = (str(compiler), *map(str, read_version())) if compiler else tuple(map(str, nvrtc.get_version()))
    header = (SIMT / "include" / _DEVICE_HEADER).read_text(encoding="utf-8")
    key = cache.hash_texts(text, header, *command, *version)

    def make(folder: Path) -> None:
        log = _run_nvcc(compiler, text, command, folder) if compiler else _run_nvrtc(text, command, parts, folder)
        if not (folder / _CODE).is_file():
            raise _make_error(whole, parts, log)

    place, made = cache.find_or_make("gpu_code", key, make)
    return place / _CODE, made


def _run_nvcc(compiler: Path, text: str, flags: Sequence[str], folder: Path) -> str:
    """Compile with nvcc's pass for the device alone, so that the machine code is nvcc's own. Return its messages."""
    source = folder / "device.cu"
    source.write_text(text, encoding="utf-8")
    fixed = ["-cubin", "-std=c++20", "-w", "--expt-relaxed-constexpr", *TORCH_FLAGS]
    result = run_compiler([str(compiler), *fixed, *flags, str(source), "-o", str(folder / _CODE)])
    return result.stdout + result.stderr


def _make_options(flags: Sequence[str], architecture: str) -> list[str]:
    fixed = [f"--gpu-architecture={architecture}", "-default-device", "--std=c++20", f"--pre-include={_DEVICE_HEADER}"]
    return [*fixed, *(f"-I{folder}" for folder in (SIMT / "include", *find_includes())), *translate(flags)]


def _run_nvrtc(text: str, options: Sequence[str], parts: Split, folder: Path) -> str:
    compiled = nvrtc.compile_device(text, options, [f"&{name}" for name in parts.symbols])
    if compiled.cubin:
        (folder / _CODE).write_bytes(compiled.cubin)
    return compiled.log


_MESSAGE = re.compile(
    r"^(?P<file>[^()\n]+)\((?P<line>\d+)\): (?:catastrophic )?error(?: #\S+)?: (?P<message>.*)$", re.M
)
# What a message or its line names where NVRTC or a half of the source lacks what the whole has for nvcc.
_FOREIGN = re.compile(r"\b((std|at|c10|torch|cuda|thrust|cub)\b|(C10|AT|TORCH|CUDA)_[A-Z])")


def _make_error(whole: Source, parts: Split, log: str) -> Exception:
    """Return CompileError for mistakes in the student's lines; NotSplit where nvcc may know more of the whole."""
    found = []
    for match in _MESSAGE.finditer(log):
        line, message = int(match["line"]), match["message"]
        if match["file"] != whole.label or not 0 < line <= len(whole.lines):
            return NotSplit(f"its device code alone does not compile ({message})")
        if _FOREIGN.search(message + whole.lines[line - 1]):
            return NotSplit(f"line {line} alone does not compile ({message})")
        unknown = re.fullmatch(r'identifier "(\w+)" is undefined', message)
        if unknown and unknown[1] in parts.host_functions:
            message = f'calling a __host__ function("{unknown[1]}") from device code is not allowed'
        found.append(whole.make_error(line, message))
    return CompileError(found) if found else NotSplit(f"its device code does not compile ({log.strip()[:200]})")
