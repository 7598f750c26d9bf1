"""Find the headers of simt and torch, compute cache keys from them, and precompile them."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from simt.errors import NoTorch
from simt.toolchain import cache
from simt.toolchain.compilers import find_compiler, flags, run_or_fail
from simt.toolchain.cuda_toolkit import find_includes, read_version
from simt.toolchain.half_macros import list_hiding

SIMT = Path(__file__).resolve().parents[1]
_SHIMS = ("shim", "shim_torch")  # folders of headers that stand for CUDA's, and for torch's

# The torch:: and at:: names that the light header declares. Other names need the header with all operators.
_LIGHT = set(
    """
    empty zeros ones full empty_like zeros_like ones_like full_like empty_strided Tensor TensorOptions IntArrayRef
    ArrayRef TensorList Scalar ScalarType Device DeviceType DeviceGuard Half BFloat16 optional nullopt Dtype dtype
    device requires_grad NoGradGuard kFloat kDouble kHalf kBFloat16 kInt kLong kShort kChar kByte kBool kUInt8 kInt8
    kInt16 kInt32 kInt64 kFloat16 kFloat32 kFloat64 kCPU kCUDA kStrided cuda MemoryFormat PackedTensorAccessor
    PackedTensorAccessor32 PackedTensorAccessor64 TensorAccessor GenericPackedTensorAccessor RestrictPtrTraits
    DefaultPtrTraits Layout device_of acc_type Error TypeMeta SmallVector c10 at kI32 kI64 kF16 kF32 kF64 kU8 kI8 kI16
    opmath_type OptionalDeviceGuard headeronly util Float8_e4m3fn Float8_e5m2 kFloat8_e4m3fn kFloat8_e5m2
    """.split()
)
# The operators of which the light header declares the calls that are usual: simt/include/simt/tensors.h.
LIGHT_OPERATORS = set(
    """
    abs exp log mean neg relu rsqrt sigmoid sqrt square sum tanh bmm matmul maximum minimum mm softmax log_softmax addmm
    transpose linear
    """.split()
)
_LIGHT_HEADERS = {
    f"ATen/{name}.h"
    for name in (
        "AccumulateType",
        "Dispatch",
        "Dispatch_v2",
        "OpMathType",
        "NumericUtils",
        "core/Tensor",
        "core/TensorAccessor",
    )
}


@lru_cache(maxsize=1)
def torch_folder() -> Path:
    """Return the folder of the installed torch without importing it, which would take a second. Raises NoTorch."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        raise NoTorch(
            f"torch is not installed in this Python ({sys.executable}). Install it with `pip install torch`, or run "
            "simt with a Python that has it."
        )
    return Path(found.origin).parent


def is_for_gpu(header: str) -> bool:
    """Return whether a precompiled header is for code that a real GPU runs: with CUDA itself, not with simt's."""
    return header.startswith("prelude_gpu")


def include_flags(shim: bool = False, python: bool = False, gpu: bool = False) -> list[str]:
    """Return the flags that name the folders of headers.

    shim: for a student's sources, whose #include lines find simt's replacements for the headers of CUDA and torch; the
    precompiled header contains them all. python: for the binder. gpu: with the headers of CUDA itself.
    """
    flags = [f"-I{SIMT / 'include' / 'shim'}"] if shim and not gpu else []
    flags += [f"-I{SIMT / 'include' / 'shim_torch'}"] if shim else []
    flags.append(f"-I{SIMT / 'include'}")
    folders = [torch_folder() / "include", torch_folder() / "include/torch/csrc/api/include"]
    for f in (*folders, *(find_includes() if gpu else ())):
        flags += ["-isystem", str(f)]
    if python:
        flags += ["-isystem", sysconfig.get_path("include"), f"-I{SIMT / 'src'}"]
    return flags


@lru_cache(maxsize=1)
def _make_toolchain_key() -> str:
    path, version, _ = find_compiler()
    return cache.hash_texts(
        path,
        version,
        (torch_folder() / "version.py").read_text(encoding="utf-8"),
        str(torch_folder()),
        sys.version,
        " ".join(flags()),
    )


@lru_cache(maxsize=64)
def make_key(*roots: str, flags: tuple[str, ...] = ()) -> str:
    """Return a key for what is compiled from these files of simt, named by their paths in it, and from the files of
    simt that they include.
    """
    texts = [
        text
        for path in list_closure(*roots)
        for text in (str(path.relative_to(SIMT)), path.read_text(encoding="utf-8"))
    ]
    return cache.hash_texts(_make_toolchain_key(), *flags, *texts)


@lru_cache(maxsize=64)
def list_closure(*roots: str) -> tuple[Path, ...]:
    """Return the files and the files of simt that they include, directly or indirectly."""
    found: dict[Path, None] = {}
    waiting = [SIMT / root for root in roots]
    while waiting:
        path = waiting.pop()
        if path in found or not path.is_file():
            continue
        found[path] = None
        for inner, name in re.findall(r'^#include ([<"])([\w./]+)[>"]', path.read_text(encoding="utf-8"), re.MULTILINE):
            waiting += [path.parent / name, SIMT / "src" / name] if inner == '"' else [SIMT / "include" / name]
    return tuple(sorted(found))


# ---- precompiled headers ----


def build_header(name: str, mode: str, unit_flags: Sequence[str] = ()) -> Path:
    """Return a precompiled header for one mode; build it if it is missing (7 s; 25 s for prelude_full).

    unit_flags: of the unit that includes it. The macros that hide operators of 16-bit floats must be the same in both.
    """
    hiding = list_hiding(unit_flags)
    place, _ = cache.find_or_make(
        "header", make_header_key(name, mode, hiding), lambda folder: _precompile(folder, name, mode, hiding)
    )
    return place / f"{name}.h"


def make_header_key(name: str, mode: str, unit_flags: Sequence[str] = ()) -> str:
    """Return the key of a precompiled header."""
    cuda = (*map(str, find_includes()), str(read_version())) if is_for_gpu(name) else ()
    return make_key(f"include/simt/{name}.h", flags=(*flags(mode), *list_hiding(unit_flags), *cuda))


def _precompile(folder: Path, name: str, mode: str, hiding: Sequence[str]) -> None:
    path, _, family = find_compiler()
    source = SIMT / "include/simt" / f"{name}.h"
    if family.header == ".gch":  # g++ looks for it next to the header; clang stores the header's path in it
        source = Path(shutil.copy(source, folder / f"{name}.h"))
    made = folder / f"{name}.h{family.header}"
    own = [*flags(mode), *hiding, *include_flags(gpu=is_for_gpu(name))]
    run_or_fail([path, *own, "-x", "c++-header", str(source), "-o", str(made)])


def choose_header(texts: list[str]) -> str:
    """Return the full header if the texts name operators of torch or include a header that declares them."""
    names = {n for text in texts for n in re.findall(r"\b(?:torch|at)\s*::\s*([A-Za-z_]\w*)", text)}
    headers = {h for text in texts for h in re.findall(r"#\s*include\s*[<\"]((?:ATen|torch)/[^>\"]+)", text)}
    stand_ins = {h for h in headers for folder in _SHIMS if (SIMT / "include" / folder / h).is_file()}
    return "prelude" if names <= _LIGHT | LIGHT_OPERATORS and headers <= stand_ins | _LIGHT_HEADERS else "prelude_full"
