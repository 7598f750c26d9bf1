"""Provide load_inline on a GPU, with host and device code compiled apart: the same call, the same sources."""

from __future__ import annotations

import ctypes
import sys
import types
from collections.abc import Sequence
from typing import Any

import torch

from simt.errors import Diagnostic, LinkError, NoCompiler
from simt.gpu import build
from simt.gpu.items import NotSplit
from simt.runtime.extension import filter_flags, list_functions, list_sources, load_binder, stock_load_inline
from simt.toolchain import cache
from simt.toolchain.compilers import find_cpp_library
from simt.toolchain.diagnostics import read_load_error
from simt.toolchain.units import Sources

# How each extension of this process was built, by name: "split", or "nvcc: " and why it could not be split.
ways: dict[str, str] = {}
_kept: list[ctypes.Array] = []  # machine code, which CUDA may read as long as the process lives


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
    **others,
) -> Any:
    """Build an extension as torch.utils.cpp_extension.load_inline does, for the GPU of this machine.

    The arguments are those of torch. Device code and host code are compiled at once (simt/gpu/build.py). What cannot be
    split so goes to nvcc as torch does it; `ways[name]` says which way it took and why.
    Where simt finds no compiler that it can use, it goes there, too. Raises CompileError and its subclasses with the
    lines of the sources, CacheError; what torch raises for nvcc.
    """
    try:
        if sycl_sources or with_sycl or not cuda_sources or extra_include_paths or with_cuda is False:
            raise NotSplit("the call asks for more than CUDA sources in one piece")
        sources = Sources(
            name,
            list_sources(cpp_sources),
            list_sources(cuda_sources),
            list_functions(functions),
            filter_flags(list(extra_cflags or [])),
            [flag for flag in extra_ldflags or [] if flag],
            is_module=is_python_module,
        )
        module = _load(sources, list(extra_cuda_cflags or []), verbose)
    except (NotSplit, NoCompiler) as reason:
        ways[name] = f"nvcc: {reason}"
        if verbose:
            print(f"simt: {name}: nvcc compiles it, because {reason}", file=sys.stderr)
        return stock_load_inline(
            name,
            cpp_sources,
            cuda_sources,
            functions=functions,
            extra_cflags=extra_cflags,
            extra_cuda_cflags=extra_cuda_cflags,
            extra_ldflags=[*(extra_ldflags or []), *find_cpp_library()],
            extra_include_paths=extra_include_paths,
            build_directory=build_directory,
            verbose=verbose,
            with_cuda=with_cuda,
            is_python_module=is_python_module,
            **others,
        )
    ways[name] = "split"
    return module


def name_architecture() -> str:
    """Return the architecture of the current GPU, such as "sm_90", as torch's load_inline chooses it."""
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}"


def _load(sources: Sources, cuda_flags: list[str], verbose: bool) -> Any:
    built = build.build(sources, cuda_flags, name_architecture())
    if verbose:
        print(f"simt: {sources.name}: {'compiled' if built.compiled else 'unchanged'}", file=sys.stderr)
    path = str(built.path / "extension.so")
    binder = load_binder()  # it loads simt's runtime, which extensions without a module need, too
    try:
        if not sources.is_module:
            torch.ops.load_library(path)
            _hand_over(path, built)
            return path
        bound = binder.load(path, 0, None)
    except (ImportError, OSError) as error:
        if missing := read_load_error(f"{error} {error.__cause__}"):
            raise LinkError([Diagnostic("", 0, 0, "error", missing)]) from None
        raise cache.make_unusable_error(str(error)) from None
    _hand_over(path, built)
    module = types.ModuleType(sources.name)
    module.__file__ = path
    module.__dict__.update(bound)
    return module


def _hand_over(path: str, built: build.Built) -> None:
    """Give the extension its machine code."""
    if built.code:
        code = ctypes.create_string_buffer(built.code.read_bytes())
        _kept.append(code)
        ctypes.CDLL(path).simt_gpu_set_code(code)
