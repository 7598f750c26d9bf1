"""Build the runtime library, the probes and the binder from simt/src, once for all extensions and programs."""

from __future__ import annotations

import ctypes
import re
import shutil
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import TypeVar

from simt.errors import NoCompiler
from simt.toolchain import cache
from simt.toolchain.compilers import find_compiler, find_cpp_library, flags, run_or_fail
from simt.toolchain.headers import SIMT, include_flags, make_key, torch_folder
from simt.toolchain.threads import map_on_threads

Library = TypeVar("Library", ctypes.CDLL, ctypes.PyDLL)
_SOURCES = SIMT / "src"
_ROOMS = ("src", "run", "check", "count", "process")  # in the order in which they are linked; "gpu" is not of it


def _list_sources() -> list[str]:
    """Return the sources of the runtime's library, by their paths in simt/src without ".cpp"."""
    found = (path for path in _SOURCES.rglob("*.cpp") if path.parent.name in _ROOMS)
    sources = sorted(found, key=lambda path: (_ROOMS.index(path.parent.name), path.name))
    own = ("bind", "values")  # not of the library, which needs no torch
    return [_name(path) for path in sources if path.stem not in own and not path.stem.startswith("probe_")]


def _list_probes() -> list[str]:
    """Return the sources of the probes, which are linked into each extension of their mode."""
    return sorted(_name(path) for path in _SOURCES.rglob("probe_*.cpp"))


def _find_binder() -> str:
    return _name(next(_SOURCES.rglob("bind.cpp")))


def _find_values() -> str:
    """Return the source of what is linked into each extension of tensors, and into the binder."""
    return _name(next(_SOURCES.rglob("values.cpp")))


def _name(path: Path) -> str:
    return path.relative_to(_SOURCES).with_suffix("").as_posix()


@lru_cache(maxsize=1)
def make_runtime_key() -> str:
    """Return the key of the runtime's library and the probes."""
    parts = (make_key(f"src/{name}.cpp") for name in (*_list_sources(), *_list_probes()))
    return cache.hash_texts(*parts, *find_cpp_library())


@lru_cache(maxsize=1)
def make_base_key() -> str:
    """Return the key of the binder, and of what is linked into each extension of tensors."""
    return cache.hash_texts(
        make_runtime_key(), *(make_key(f"src/{name}.cpp") for name in (_find_binder(), _find_values()))
    )


def build_runtime() -> Path:
    """Return the folder with the runtime library and the probes; build them if they are missing (about 10 s)."""
    return cache.find_or_make("runtime", make_runtime_key(), _make_runtime)[0]


def load_runtime(kind: Callable[[str], Library]) -> Library:
    """Build the runtime library if it is missing, and load it. kind: ctypes.CDLL or ctypes.PyDLL.

    Raises NoCompiler where this Python has loaded an older C++ library than the compiler links with.
    """
    path = build_runtime() / "libsimt_runtime.so"
    try:
        return kind(str(path))
    except OSError as error:
        missing = re.search(r"version `(GLIBC\w*_[\d.]+)' not found", str(error))
        if not missing:
            raise
        raise NoCompiler(
            f"What {find_compiler()[1]} builds needs {missing[1]}, which the libraries of this Python lack: they are "
            "older than the compiler. Set CXX to the compiler that comes with this Python's environment, or to an "
            "older one; in a conda environment, `conda install -c conda-forge gxx` installs one that fits."
        ) from None


def build_base() -> Path:
    """Return the folder with the binder and values.o; build them and the runtime if they are missing (about 20 s)."""
    return cache.find_or_make("base", make_base_key(), _make_base)[0]


def _make_runtime(folder: Path) -> None:
    sources, probes = _list_sources(), _list_probes()
    names = (*sources, *probes)
    parts = dict(zip(names, map_on_threads(_build_part, names)))
    run_or_fail(
        [
            find_compiler()[0],
            "-shared",
            *(str(parts[name]) for name in sources),
            "-o",
            str(folder / "libsimt_runtime.so"),
            "-Wl,-soname,libsimt_runtime.so",
            "-Wl,-z,defs",
            "-lpthread",
            "-ldl",
            *find_cpp_library(),
        ]
    )
    for name in probes:
        shutil.copy(parts[name], folder)


def _make_base(folder: Path) -> None:
    steps = (build_runtime, partial(_build_part, _find_binder()), partial(_build_part, _find_values()))
    runtime, binder, values = map_on_threads(lambda step: step(), steps, len(steps))
    libraries = [
        f"-L{runtime}",
        "-lsimt_runtime",
        f"-L{torch_folder() / 'lib'}",
        "-ltorch_python",
        "-ltorch_cpu",
        "-ltorch",
        "-lc10",
        *find_cpp_library(),
    ]
    objects = [str(binder), str(values)]
    run_or_fail([find_compiler()[0], "-shared", *objects, "-o", str(folder / "_simt_bind.so"), *libraries])
    shutil.copy(values, folder)


def _build_part(name: str) -> Path:
    """Return the object of one source; compile it if it is missing or the source has changed."""
    place, _ = cache.find_or_make("part", make_key(f"src/{name}.cpp"), lambda folder: _make_part(folder, name))
    return place / f"{Path(name).name}.o"


def _make_part(folder: Path, name: str) -> None:
    own = [f"-I{SIMT / 'include'}", f"-I{SIMT / 'src'}"]
    if name in (_find_binder(), _find_values()):  # large, and their speed does not matter to kernels
        own = ["-O1", *include_flags(python=True)]
    source, target = _SOURCES / f"{name}.cpp", folder / f"{Path(name).name}.o"
    run_or_fail([find_compiler()[0], *flags(), *own, "-c", str(source), "-o", str(target)])
