"""Compile device code with NVRTC, NVIDIA's compiler as a library. torch brings one, so that no nvcc is needed."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from simt.errors import NoCompiler


@dataclass(frozen=True)
class Compiled:
    """What NVRTC made. cubin: empty if the source has errors. log: its messages. names: expression -> mangled name."""

    cubin: bytes
    log: str
    names: dict[str, str]


@lru_cache(maxsize=1)
def load_nvrtc() -> ctypes.CDLL:
    """Return the library: the one that torch has loaded, or torch's or the toolkit's. Raises NoCompiler."""
    for path in _list_candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        return library
    raise NoCompiler(
        "NVRTC, which compiles kernels, was not found. torch for CUDA brings it: install torch with CUDA, or the "
        "package nvidia-cuda-nvrtc."
    )


def _list_candidates() -> list[str]:
    import torch

    major = (torch.version.cuda or "13").split(".")[0]
    name = f"libnvrtc.so.{major}"
    site = Path(torch.__file__).resolve().parents[1]
    places = [site / f"nvidia/cu{major}/lib" / name, site / "nvidia/cuda_nvrtc/lib" / name, site / "torch/lib" / name]
    return [name, *(str(p) for p in places if p.is_file()), "libnvrtc.so"]


@lru_cache(maxsize=1)
def get_version() -> tuple[int, int]:
    """Return NVRTC's version: that of the CUDA toolkit to which it belongs."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(load_nvrtc().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return major.value, minor.value


def compile_device(text: str, options: Sequence[str], expressions: Sequence[str] = ()) -> Compiled:
    """Compile one text to machine code for the architecture in the options.

    expressions: names of variables and versions of kernel templates that the machine code must have.
    """
    library, program = load_nvrtc(), ctypes.c_void_p()
    _check(library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"device.cu", 0, None, None))
    try:
        for expression in expressions:
            _check(library.nvrtcAddNameExpression(program, expression.encode()))
        given = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
        status = library.nvrtcCompileProgram(program, len(options), given)
        log = _read(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        if status != 0:
            return Compiled(b"", log or library.nvrtcGetErrorString(status).decode(), {})
        names = {}
        for expression in expressions:
            name = ctypes.c_char_p()
            _check(library.nvrtcGetLoweredName(program, expression.encode(), ctypes.byref(name)))
            names[expression] = (name.value or b"").decode()
        return Compiled(_read(program, "CUBIN"), log, names)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _read(program: ctypes.c_void_p, what: str) -> bytes:
    library, size = load_nvrtc(), ctypes.c_size_t()
    _check(getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(getattr(library, f"nvrtcGet{what}")(program, buffer))
    return buffer.raw


def _check(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"NVRTC: {load_nvrtc().nvrtcGetErrorString(status).decode()}")
