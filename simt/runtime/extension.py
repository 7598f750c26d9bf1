"""Provide load_inline on a CPU, and the options of launches."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import re
import shlex
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from simt.errors import KernelError
from simt.runtime import bound_classes, library, torch_graphs
from simt.runtime.torch_extension import cpp_extension
from simt.toolchain import build, cache
from simt.toolchain.compilers import MODES
from simt.toolchain.half_macros import read_directives
from simt.toolchain.lines import choose_place, find_source_lines
from simt.toolchain.runtime_library import build_base
from simt.toolchain.units import Sources

stock_load_inline, stock_load = cpp_extension.load_inline, cpp_extension.load
_CUDA_SUFFIXES, _CPP_SUFFIXES = (".cu", ".cuh"), (".cpp", ".cc", ".cxx", ".c++", ".c")


@lru_cache(maxsize=1)
def load_binder():
    """Return the compiled module that loads extensions. It is built on first use."""
    folder = build_base()
    path = str(folder / "_simt_bind.so")
    library.load_library()  # first: the binder and every extension look it up by its name
    loader = importlib.machinery.ExtensionFileLoader("_simt_bind", path)
    module = importlib.util.module_from_spec(importlib.machinery.ModuleSpec("_simt_bind", loader, origin=path))
    loader.exec_module(module)
    module.set_error_maker(_make_kernel_error)
    library.guard_tensors = module.guard_tensors
    library.apply_options()
    return module


def warm_up() -> bool:
    """Build what every extension needs, unless it is built (about 20 s). Return whether this call built it."""
    built = not build.is_warm()
    build.warm_up()
    load_binder()
    return built


@contextlib.contextmanager
def run(
    schedule: str | int | None = None,
    guard: str | None = None,
    seconds: float | None = None,
    device: str | None = None,
    mode: str | None = None,
    idle: bool | None = None,
) -> Iterator[None]:
    """Set options for the kernels that are launched in the with-block.

    schedule: the order in which the threads of a block and the blocks of a grid run: "forward", "reverse", or a seed.
        The result of a correct kernel does not depend on it.
    guard: "end" places every tensor that is made in the with-block directly before an inaccessible page, so that an
        access past its end is an error that names the tensor; "front" places the page before the tensor. New memory
        then holds GLOBAL_MARK.
    seconds: time limit for one launch.
    device: name of the GPU whose limits apply, as simt.devices.find_name understands it.
    mode: "plain", or "check" or "count", which build and run kernels with probes. simt.check and simt.count set the
        mode and also return the results of the probes.
    idle: True has launches examined and noted as ever, but runs no thread of theirs: what remains is the host's work.
    """
    load_binder()
    with library.run(schedule, guard, seconds, device, mode, idle):
        yield


def _is_list_of_names(sources: object) -> bool:
    """Return whether what was passed as sources are names of functions."""
    listed = list(sources) if isinstance(sources, (list, tuple, dict)) else [sources]
    return bool(listed) and all(isinstance(one, str) and one.isidentifier() for one in listed)


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    sycl_sources=None,
    functions: str | Sequence[str] | dict[str, str] | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags=None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl=None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
) -> Any:  # a module, or the path; torch names no type either
    """Build an extension as torch.utils.cpp_extension.load_inline does, with the CUDA sources compiled for the CPU.

    The arguments are those of torch. Of the extra flags, -D, -U, -I and -include are used and all others are ignored.
    As with torch, extra_cflags are for cpp_sources alone and extra_cuda_cflags for cuda_sources alone.
    The functions of the returned module take and return CPU tensors and raise KernelError. With is_python_module=False
    the extension is loaded, so that its TORCH_LIBRARY registers operators, and the path of its file is returned.
    Raises CompileError and its subclasses with the student's lines, NoCompiler, CacheError.
    """
    if _is_list_of_names(sycl_sources):  # torch before 2.7 had `functions` in this place
        raise ValueError(
            "The fourth argument of load_inline is sycl_sources, and has been since torch 2.7. "
            "Pass the names of your functions as functions=[…]."
        )
    if sycl_sources or with_sycl:
        raise ValueError("simt does not support SYCL. Pass cuda_sources instead.")
    folders = [f"-I{path}" for path in extra_include_paths or []]
    cuda_flags = filter_flags(list(extra_cuda_cflags or []))
    if no_implicit_headers:
        cuda_flags = [*read_directives(list_sources(cuda_sources)), *cuda_flags]
    links = [f for f in extra_ldflags or [] if f and not re.match(r"-l(cu|nv)", f)]
    sources = Sources(
        name,
        list_sources(cpp_sources),
        list_sources(cuda_sources),
        list_functions(functions),
        [*filter_flags(list(extra_cflags or [])), *folders],
        links,
        is_module=is_python_module,
        cuda_flags=[*cuda_flags, *folders],
    )
    if not is_python_module:  # operators have one build: torch.ops does not know simt's modes
        path, _ = _load(sources, MODES.index("plain"), verbose)
        torch.ops.loaded_libraries.add(path)
        return path
    loaded.append(sources)
    for mode in build_ahead:
        threading.Thread(target=_build_ahead, args=(sources, mode), daemon=True).start()
    if sources.registers_operators and library.options.mode != "plain":
        _load(sources, MODES.index("plain"))  # the other builds register nothing
    classes: dict[str, Callable] = {}
    path, bound = _load(sources, MODES.index(library.options.mode), verbose, classes)
    module = types.ModuleType(name)
    module.__file__ = path
    module.__dict__.update(torch_graphs.record_extension(bound_classes.collect(bound, classes)))
    return module


def load(
    name: str,
    sources: str | Sequence[str],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags=None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl=None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
) -> Any:
    """Build an extension of files as torch.utils.cpp_extension.load does; see load_inline.

    The files are compiled for the CPU, by their names' ends: .cu as CUDA sources, .cpp and its like as C++. Their
    folders are searched for what they include. Raises ValueError for another end and for a program of its own, and
    OSError for a file that cannot be read.
    """
    paths = [Path(source) for source in list_sources(sources)]
    other = [path.name for path in paths if path.suffix not in (*_CUDA_SUFFIXES, *_CPP_SUFFIXES)]
    if other or is_standalone:
        what = f"a file of this kind: {other[0]}" if other else "is_standalone=True"
        raise ValueError(f"simt.load does not support {what}. Pass .cu and .cpp files of a Python module.")
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    folders = [str(path.absolute().parent) for path in paths]
    return load_inline(
        name,
        [text for path, text in texts.items() if path.suffix in _CPP_SUFFIXES],
        [text for path, text in texts.items() if path.suffix in _CUDA_SUFFIXES],
        extra_cflags=extra_cflags,
        extra_cuda_cflags=extra_cuda_cflags,
        extra_ldflags=extra_ldflags,
        extra_include_paths=[*map(str, extra_include_paths or []), *dict.fromkeys(folders)],
        verbose=verbose,
        with_sycl=with_sycl,
        is_python_module=is_python_module,
        no_implicit_headers=True,
    )


# Modes that load_inline builds in parallel with the one that it waits for: ("check",) if the kernels will be checked.
build_ahead: tuple[str, ...] = ()


loaded: list[Sources] = []  # what load_inline was called with, in this process


def build_others(mode: str) -> None:
    """Build everything that was loaded for another mode, in a thread: the first call in that mode then waits less."""

    def build_all(all_sources: list[Sources]) -> None:
        for sources in all_sources:
            _build_ahead(sources, mode)

    threading.Thread(target=build_all, args=(list(loaded),), daemon=True).start()


def _build_ahead(sources: Sources, mode: str) -> None:
    with contextlib.suppress(Exception):  # the build that the caller waits for reports the error
        build.build(sources, mode)


# Called with the sources. The context that it returns is active while an extension is rebuilt for another mode.
around_variant = contextlib.nullcontext


def _load(
    sources: Sources, mode: int, verbose: bool = False, classes: dict[str, Callable] | None = None
) -> tuple[str, dict]:
    """Return the path of the build for one mode, and its functions. Called in another mode, they load that build.

    classes: C++ type of a bound class to what makes its object; of all modes, and filled by the caller.
    """
    classes = {} if classes is None else classes
    made = build.build(sources, MODES[mode])
    if verbose:
        print(f"simt: {sources.name}: {'compiled' if made.compiled else 'unchanged'}", file=sys.stderr)
    others: dict[int, dict] = {}

    def of_mode(wanted: int) -> dict:
        if wanted not in others:
            with around_variant(sources):
                others[wanted] = _load(sources, wanted, classes=classes)[1]
        return others[wanted]

    try:
        return str(made.path), load_binder().load(str(made.path), mode, of_mode, classes)
    except ImportError as error:
        raise cache.make_unusable_error(str(error)) from None


def list_sources(sources: str | Sequence[str] | None) -> list[str]:
    if sources is None:
        return []
    return [sources] if isinstance(sources, str) else list(sources)


def list_functions(functions) -> dict[str, str] | None:
    if functions is None:
        return None
    if isinstance(functions, str):
        functions = [functions]
    return dict(functions) if isinstance(functions, dict) else {f: f for f in functions}


# nvcc's long names of options, with their value behind "=" or in the next word.
_LONG_FLAGS = {"--define-macro": "-D", "--undefine-macro": "-U", "--include-path": "-I", "--pre-include": "-include"}


def filter_flags(flags: list[str]) -> list[str]:
    """Return those of extra_cflags or extra_cuda_cflags that are used, one word each. Torch has a shell split them."""
    kept, take = [], False
    for word in (word for flag in flags for word in shlex.split(flag)):
        long, equals, value = word.partition("=")
        if take:
            kept.append(word)
            take = False
        elif word in ("-D", "-U", "-I", "-include") or long in _LONG_FLAGS:
            kept += [_LONG_FLAGS.get(long, word), *([value] if equals else [])]
            take = not equals
        elif re.match(r"-[DUI].", word):
            kept.append(word)
    return kept


def take_launches() -> list[tuple[str, tuple[int, int, int], tuple[int, int, int]]]:
    """Return (kernel, grid, block) of the launches since the last call: at most the last 16, oldest first."""
    return library.take_launches()


# ---- faults ----


def _make_kernel_error(reason, message, kernel, source, line, defined, block, thread, code) -> KernelError:
    """Make the error for a fault that the runtime recorded. Find its source line from the code address."""
    found = find_source_lines(code)
    place = choose_place([found[each] for each in code], source, line, defined)
    return KernelError(reason, message, kernel, *place, block, thread)
