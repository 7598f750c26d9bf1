"""Compile sources against precompiled headers and link them into an extension or a program; cache both steps."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from simt.errors import CompileError, Diagnostic, LinkError
from simt.toolchain import cache
from simt.toolchain.compilers import find_compiler, find_cpp_library, find_last_line, find_linker, flags, run_compiler
from simt.toolchain.diagnostics import read_diagnostics, read_link_errors
from simt.toolchain.disassembly.blocks import write_blocks
from simt.toolchain.half_macros import TORCH_FLAGS, names_half
from simt.toolchain.headers import (
    LIGHT_OPERATORS,
    SIMT,
    build_header,
    choose_header,
    include_flags,
    is_for_gpu,
    list_closure,
    make_header_key,
    torch_folder,
)
from simt.toolchain.lines import TEXTS
from simt.toolchain.runtime_library import build_base, build_runtime, make_base_key, make_runtime_key
from simt.toolchain.threads import map_on_threads
from simt.toolchain.units import Sources, Unit, check_declared, make_units

# The cache's entries of warm_binding(), and how many are kept.
BINDING = "binding"
USUAL_MODES = ("plain", "check")  # what every grading builds; "count" is built to predict a time
_DISASSEMBLY = sorted((SIMT / "toolchain/disassembly").glob("*.py"))

# ---- what is built once ----


def is_warm(text: str = "", modes: Sequence[str] = USUAL_MODES) -> bool:
    """Return whether warm_up(text, modes) has nothing to do."""
    return cache.has_entry("base", make_base_key()) and all(
        cache.has_entry("header", make_header_key(*each, TORCH_FLAGS)) for each in _list_headers(text, modes)
    )


def is_program_warm(mode: str) -> bool:
    """Return whether the parts of simt that a program needs are all built."""
    return cache.has_entry("runtime", make_runtime_key()) and cache.has_entry(
        "header", make_header_key("prelude_cuda", mode)
    )


def _list_headers(text: str, modes: Sequence[str]) -> list[tuple[str, str]]:
    """Return the names and modes of the precompiled headers of builds in these modes.

    They include the headers with every operator of torch if the sources in this text need them.
    """
    names = dict.fromkeys(("prelude", choose_header([text])))
    return [(name, mode) for name in names for mode in modes]


def warm_up(text: str = "", modes: Sequence[str] = USUAL_MODES) -> None:
    """Build what the first kernel would wait for: the base, and the headers of builds in these modes.

    text: any text that contains the sources, such as a Python file.
    """
    headers = [functools.partial(build_header, *each, TORCH_FLAGS) for each in _list_headers(text, modes)]
    map_on_threads(lambda step: step(), [build_base, *headers])


def warm_binding(cpp: Sequence[str], functions: Sequence[str]) -> None:
    """Compile the binding of functions that these sources declare, once for all who keep the declarations as they are.

    It is found by builds that may read this cache only. Raises CompileError, NoCompiler, CacheError.
    """
    sources = Sources("binding", list(cpp), [], {name: name for name in functions}, [], [])
    for unit in make_units(sources, "plain")[0]:
        key = _make_object_key(unit)
        cache.find_or_make(BINDING, key, functools.partial(_compile, unit, _build_precompiled(unit)))


# ---- extensions and programs ----


@dataclass(frozen=True)
class Built:
    """A linked extension."""

    path: Path
    compiled: int  # units that this build compiled


def build(sources: Sources, mode: str = "plain") -> Built:
    """Build an extension in one of MODES.

    Raises CompileError and its subclasses, NoCompiler, NoTorch, CacheError.
    """
    check_declared(sources)
    units, kernels, shared = make_units(sources, mode)
    return link(sources.name, units, kernels, shared, sources.links)


def link(name: str, units: list[Unit], kernels: list[str], shared: list[str], links: list[str]) -> Built:
    """Compile the units, which have the same mode, and link them. kernels, shared: names that the units define."""
    mode = units[-1].mode
    objects = map_on_threads(compile_unit, units)
    folder = build_runtime()
    torch = any(unit.header not in ("", "prelude_cuda") for unit in units)
    headers = [(path / "headers").read_text(encoding="utf-8") for path, _ in objects]
    # The list of basic blocks of a counted extension depends on the code that makes it.
    reader = [path.read_text(encoding="utf-8") for path in _DISASSEMBLY] if mode == "count" else []
    key = cache.hash_texts(
        name,
        make_base_key(),
        *(str(path) for path, _ in objects),
        *headers,
        *links,
        *reader,
        ",".join(kernels),
        ",".join(shared),
    )
    files = [p / "unit.o" for p, _ in objects] + ([folder / f"probe_{mode}.o"] if mode != "plain" else [])
    files += [build_base() / "values.o"] if torch else []

    def make(made: Path) -> None:
        _link(made, files, folder, links, torch, mode)
        if mode == "check":
            (made / TEXTS).write_text(
                "".join(f"{path}\n" for object, _ in objects for path in _list_texts(object)), encoding="utf-8"
            )

    place, _ = cache.find_or_make("extension", key, make)
    return Built(place / "extension.so", sum(made for _, made in objects))


# ---- compiling and linking ----


def compile_unit(unit: Unit) -> tuple[Path, bool]:
    """Return the folder with the unit's object, and whether this call compiled it. Raises CompileError."""
    try:
        return _build_object_with(unit)
    except CompileError as error:
        fuller = _find_fuller(error, unit)
        if not fuller:
            raise
    return compile_unit(fuller)


def _find_fuller(error: CompileError, unit: Unit) -> Unit | None:
    """Return the unit with a header that declares more, if the error may come from what the unit's header lacks."""
    if unit.header in ("prelude", "prelude_gpu") and _names_operators(error, unit):
        return replace(unit, header=f"{unit.header}_full")
    own = unit.flags[len(TORCH_FLAGS) :]
    hides = unit.flags != own and unit.flags[: len(TORCH_FLAGS)] == TORCH_FLAGS
    if unit.label == "cpp_sources" and hides and names_half(d.message for d in error.diagnostics):
        return replace(unit, flags=own)
    return None


def _build_object_with(unit: Unit) -> tuple[Path, bool]:
    key = _make_object_key(unit)
    if place := cache.find_entry(BINDING, key):
        return place, False
    return cache.find_or_make(
        "object", key, lambda made: _compile(unit, _build_precompiled(unit), made), _are_headers_unchanged
    )


def _build_precompiled(unit: Unit) -> Path | None:
    return build_header(unit.header, unit.mode, unit.flags) if unit.header else None


def _make_object_key(unit: Unit) -> str:
    return cache.hash_texts(make_header_key(unit.header, unit.mode, unit.flags), unit.label, unit.text, *unit.flags)


def _compile(unit: Unit, precompiled: Path | None, folder: Path) -> None:
    source = folder / ("unit.c" if unit.is_c else "unit.cpp")
    source.write_text(unit.text, encoding="utf-8")
    command = [
        find_compiler()[0],
        *_choose_language_flags(unit),
        *unit.flags,
        *include_flags(shim=True, gpu=is_for_gpu(unit.header)),
        *(find_compiler()[2].including(precompiled) if precompiled else ()),
        "-fdiagnostics-color=never",
        find_compiler()[2].most_errors,
        "-MMD",
        "-MF",
        str(folder / "unit.d"),
        "-c",
        str(source),
        "-o",
        str(folder / "unit.o"),
    ]
    result = run_compiler(command)
    if result.returncode != 0:
        raise CompileError(
            read_diagnostics(result.stderr, unit) or [Diagnostic(unit.label, 0, 0, "error", find_last_line(result))]
        )
    listed = (folder / "unit.d").read_text(encoding="utf-8").replace("\\\n", " ")
    paths = [Path(p.replace("\\ ", " ")) for p in re.split(r"(?<!\\)\s+", listed)[1:] if p]
    preludes = list_closure(f"include/simt/{unit.header}.h")  # already part of the key
    own = [p for p in paths if p not in (source, precompiled, *preludes)]
    (folder / "headers").write_text(
        "".join(f"{cache.hash_texts(p.read_text(encoding='utf-8', errors='replace'))} {p}\n" for p in own),
        encoding="utf-8",
    )


def _choose_language_flags(unit: Unit) -> list[str]:
    """Return the flags for all sources in the unit's mode, with the usual standard of its language."""
    if not unit.is_c:
        return flags(unit.mode)
    return ["-x", "c", *(f for f in flags(unit.mode) if not f.startswith("-std=")), "-std=gnu17"]


def _list_texts(folder: Path) -> list[str]:
    """Return the paths of the texts from which an object was compiled."""
    return [
        *map(str, folder.glob("unit.c*")),
        *(line.split(" ", 1)[1] for line in (folder / "headers").read_text(encoding="utf-8").splitlines()),
    ]


def _are_headers_unchanged(folder: Path) -> bool:
    """Return whether the student's headers from which an object was compiled are unchanged."""
    try:
        lines = [line.split(" ", 1) for line in (folder / "headers").read_text(encoding="utf-8").splitlines()]
        return all(cache.hash_texts(Path(p).read_text(encoding="utf-8", errors="replace")) == key for key, p in lines)
    except OSError:
        return False


def _names_operators(error: CompileError, unit: Unit) -> bool:
    """Return whether the light header may be the cause: an operator that is found without naming its namespace, or a
    call with arguments that the light header's declaration of an operator does not take.

    C++ finds it only where it is called with a tensor, as in `sum(x)`. Device code has no tensors, and a name before an
    operator such as += is a variable: an error about these is final, although torch has a `sum` and a `mean`.
    """
    import torch

    for d in error.diagnostics:
        if set(re.findall(r"\b(?:torch|at)\s*::\s*(\w+)\s*\(", d.text)) & LIGHT_OPERATORS:
            return True
        undeclared = re.match(r"‘(\w+)’ was not declared|there are no arguments to ‘(\w+)’", d.message)
        if undeclared and (d.source, d.line) not in unit.device_lines:
            name = undeclared[1] or undeclared[2]
            following = unit.lines.get((d.source, d.line + 1), "").lstrip()[:1]
            used = re.findall(rf"\b{name}\b\s*(.?)", f"{d.text}\n{following}")
            # A macro may turn its argument into a call, so a name before a comma or a parenthesis may be a function.
            if hasattr(torch.ops.aten, name) and (not used or not {"(", ",", ")", ""}.isdisjoint(used)):
                return True
        if re.search(r"incomplete type ‘(?:struct |class )?(?:at|torch|c10)::", d.message):
            return True
    return False


def _link(folder: Path, objects: list[Path], runtime_folder: Path, links: list[str], torch: bool, mode: str) -> None:
    # The extension keeps no paths to the libraries: Python has already loaded them.
    libraries = [
        f"-L{runtime_folder}",
        "-lsimt_runtime",
        *([f"-L{torch_folder() / 'lib'}", "-ltorch_cpu", "-lc10"] if torch else []),
    ]
    command = [
        find_compiler()[0],
        "-shared",
        *map(str, objects),
        "-o",
        str(folder / "extension.so"),
        *libraries,
        *find_cpp_library(),
        "-Wl,-z,defs",
        *links,
    ]
    quick = find_linker() if mode != "count" else []  # the disassembly reads what the usual one makes of library calls
    result = run_compiler([*command, *quick])
    if result.returncode != 0 and quick:
        result = run_compiler(command)  # its messages are known, and it may succeed with less
    if result.returncode == 0:
        if mode == "count":
            write_blocks(folder / "extension.so")
        return
    raise LinkError(read_link_errors(result))
