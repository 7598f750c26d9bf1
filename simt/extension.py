"""load_inline on a CPU, the options that kernels run under, and the switch that puts it in torch's place."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import re
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from functools import lru_cache

import torch
import torch.utils.cpp_extension

from . import build, cache, runtime
from .errors import KernelError
from .lines import source_lines

_stock_load_inline = torch.utils.cpp_extension.load_inline


@lru_cache(maxsize=1)
def binder():
    """The compiled module that loads extensions, built on first use."""
    folder = build.base()
    path = str(folder / "_simt_bind.so")
    runtime.library()  # the binder and every extension find it by its name
    loader = importlib.machinery.ExtensionFileLoader("_simt_bind", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("_simt_bind", loader, origin=path))
    loader.exec_module(module)
    module.set_error_maker(_kernel_error)
    runtime.guard_tensors = module.guard_tensors
    runtime.apply()
    return module


def warm_up() -> bool:
    """Builds what every extension needs (about 20 s) unless it is there; returns whether it was built now."""
    built = not build.warm()
    build.warm_up()
    binder()
    return built


@contextlib.contextmanager
def run(
    schedule: str | int | None = None,
    guard: str | None = None,
    seconds: float | None = None,
    device: str | None = None,
    mode: str | None = None,
) -> Iterator[None]:
    """Options for the kernels launched inside.

    schedule: order in which a block's threads and a grid's blocks take turns: "forward", "reverse", or a seed. A
        sound kernel's result does not depend on it.
    guard: "end" puts every tensor made inside against an inaccessible page, so that reading or writing past its end
        is an error that names it; "front" puts the page before it. New memory then holds GLOBAL_MARK.
    seconds: limit for one launch.
    device: name of the GPU whose limits hold (DEVICES).
    mode: "plain", or "check" or "count", in which kernels are built and run with probes: see simt.check and simt.count,
        which also gather what the probes find.
    """
    binder()
    with runtime.run(schedule, guard, seconds, device, mode):
        yield


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
) -> types.ModuleType:
    """torch.utils.cpp_extension.load_inline, with the CUDA sources compiled for the CPU.

    Arguments as in torch; of the extra flags, -D, -U and -I count, and those that only nvcc or a GPU knows are
    passed over. The functions of the returned module take and return CPU tensors.
    Raises CompileError (and its kinds) with the student's lines, NoCompiler; the functions raise KernelError.
    """
    if sycl_sources or with_sycl:
        raise ValueError("simt runs CUDA sources; it has no SYCL.")
    flags = _kept_flags([*(extra_cflags or []), *(extra_cuda_cflags or [])])
    flags += [f"-I{path}" for path in extra_include_paths or []]
    links = [f for f in extra_ldflags or [] if f and not re.match(r"-l(cu|nv)", f)]
    sources = build.Sources(name, _listed(cpp_sources), _listed(cuda_sources), _bound(functions), flags, links)
    for mode in build_ahead:
        threading.Thread(target=_ahead, args=(sources, mode), daemon=True).start()
    path, bound = _load(sources, build.MODES.index(runtime.options.mode), verbose)
    module = types.ModuleType(name)
    module.__file__ = path
    module.__dict__.update(bound)
    return module


# Modes for which load_inline also starts a build, beside the one it waits for: whoever will check the kernels wants "check".
build_ahead: tuple[str, ...] = ()


def _ahead(sources: build.Sources, mode: str) -> None:
    with contextlib.suppress(Exception):  # the build that somebody waits for says it
        build.build(sources, mode)


# Entered while a loaded extension is built anew for another mode, with its sources: for whoever shows progress.
around_variant = contextlib.nullcontext


def _load(sources: build.Sources, mode: int, verbose: bool = False) -> tuple[str, dict]:
    """Where one mode's build lies, and its functions; called in another mode, they load that mode's."""
    made = build.build(sources, build.MODES[mode])
    if verbose:
        print(f"simt: {sources.name}: {'compiled' if made.compiled else 'unchanged'}", file=sys.stderr)
    others: dict[int, dict] = {}

    def of_mode(wanted: int) -> dict:
        if wanted not in others:
            with around_variant(sources):
                others[wanted] = _load(sources, wanted)[1]
        return others[wanted]

    try:
        return str(made.path), binder().load(str(made.path), mode, of_mode)
    except ImportError as error:
        raise cache.unusable(str(error)) from None


def _listed(sources: str | Sequence[str] | None) -> list[str]:
    if sources is None:
        return []
    return [sources] if isinstance(sources, str) else list(sources)


def _bound(functions) -> dict[str, str] | None:
    if functions is None:
        return None
    if isinstance(functions, str):
        functions = [functions]
    return dict(functions) if isinstance(functions, dict) else {f: f for f in functions}


def _kept_flags(flags: list[str]) -> list[str]:
    kept, take = [], False
    for flag in flags:
        if take:
            kept.append(flag)
            take = False
        elif flag in ("-D", "-U", "-I", "-include"):
            kept.append(flag)
            take = True
        elif re.match(r"-[DUI].", flag):
            kept.append(flag)
    return kept


def take_launches() -> list[tuple[str, tuple[int, int, int], tuple[int, int, int]]]:
    """(kernel, grid, block) of the launches since this was last called, oldest first, of many the last 16."""
    return runtime.take_launches()


# ---- faults ----


def _kernel_error(reason, message, kernel, source, line, defined, block, thread, code) -> KernelError:
    """Called by the binder with what the runtime recorded; finds the source line of a fault from its address."""
    if not line:
        found = source_lines(code)
        source, line = next((found[place] for place in code if found[place]), (source, defined))
    return KernelError(reason, message, kernel, source, line, block, thread)


# ---- in torch's place ----


def enable() -> bool:
    """Makes torch.utils.cpp_extension.load_inline the CPU one where there is no GPU; returns whether it did."""
    if torch.cuda.is_available():
        return False
    torch.utils.cpp_extension.load_inline = load_inline
    return True


def disable() -> None:
    """Gives torch its own load_inline back."""
    torch.utils.cpp_extension.load_inline = _stock_load_inline
