"""Find the C++ compiler, choose its flags for plain, checked and counted builds, and run it."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from simt.errors import CacheError, NoCompiler
from simt.toolchain import cache

# -fno-strict-aliasing and -fwrapv: nvcc allows float4* casts and wraps integers. -fno-finite-loops: an endless loop in
# a kernel must stay endless. -fno-gnu-unique: two builds of a kernel must not share its variables.
# -fstack-clash-protection: a large local array must hit the fence below the stack and not skip it. -gdwarf-4: GCC then
# names inlined functions too, which -g1 alone leaves out, and the student's line is found through them.
_COMMON = (
    "-std=c++20 -O2 -g1 -gdwarf-4 -fPIC -w -fvisibility=hidden -fno-strict-aliasing -fno-finite-loops "
    "-fno-math-errno -fno-trapping-math -fno-semantic-interposition -fstack-clash-protection -D_GLIBCXX_USE_CXX11_ABI=1"
).split()
# The compiler's instrumentation for race detectors, with simt's functions (src/*/probe_*.cpp) in the place of the
# sanitizer's: one call before each access to memory that threads can share. Without tail calls an atomic function
# returns to the student's line. trace-pc: one call per basic block. A checked build detects overflow, so it must not
# use -fwrapv.
_PROBES = "-DSIMT_PROBED=1 -fsanitize=thread -fno-optimize-sibling-calls".split()
# nvcc calls pow() for an exponent of 2 too. (simt/math.h lets constants be folded.)
_COUNTED = "-DSIMT_COUNT=1 -fwrapv -fsanitize-coverage=trace-pc -fno-builtin-pow -fno-builtin-powf".split()


@dataclass(frozen=True)
class Family:
    """A compiler, in all its versions. modes: flags in addition to `flags`; header: suffix of a precompiled header."""

    name: str
    oldest: int
    flags: Sequence[str]
    modes: dict[str, Sequence[str]]
    header: str
    most_errors: str

    def including(self, header: Path) -> list[str]:
        """Return the flags that include a precompiled header: the file `header` with the suffix `self.header`."""
        return ["-include-pch", f"{header}.pch"] if self.header == ".pch" else ["-include", str(header)]


# A checked build keeps every access. Copies of a constant length are calls, which report what they access (simt's own
# headers copy by the functions with the prefix __builtin_, which are no calls). A write through a constant null pointer
# is an access like others, not a path that cannot be reached.
_CHECKED = [
    "-DSIMT_CHECK=1",
    *"-fno-builtin-memcpy -fno-builtin-memmove -fno-builtin-memset -fno-delete-null-pointer-checks".split(),
]

# Without scalar replacement a float4 stays one access of 16 bytes. Optimizations that nvcc does not apply to accesses
# are off: merging two blocks or their loads and stores, vectorizing scalar accesses, and duplicating the code after a
# branch for each side. The unrolling of loops of constant length, which nvcc applies and which saves loads, is on
# (simt/frontend/unrolled.py); the disabled pass would unroll loops of any length.
_GCC_PROBES = [
    *_PROBES,
    "-fno-tree-sra",
    "--param=tsan-instrument-func-entry-exit=0",
    "--param=tsan-distinguish-volatile=1",
]
_GCC_APART = (
    "-fno-crossjumping -fno-tree-tail-merge -fno-tree-sink -fno-tree-vectorize -fno-ipa-icf -fno-thread-jumps "
    "-fno-split-paths -fno-code-hoisting -freorder-blocks-algorithm=simple "
    "-O3 -fno-unswitch-loops -fno-split-loops -fno-version-loops-for-strides -fno-loop-interchange "
    "-fno-loop-unroll-and-jam -fno-ipa-cp-clone -fno-tree-loop-distribution -fno-tree-loop-distribute-patterns "
    "-fno-peel-loops --param=max-completely-peel-times=64 "
    "--param=max-completely-peeled-insns=4000 -fdisable-rtl-loop2_unroll"
).split()
# GCC reads what the program may not read: a local variable before a loop whose turns read it under a condition, and
# both of two neighbouring members where a condition chooses one. And of a read that it moves it may forget the line.
_GCC_IN_PLACE = ["-fno-tree-loop-im", "-fno-hoist-adjacent-loads", "-fno-tree-pre"]
# GCC replaces a division by a constant 0 by a trap without a line.
_GCC_DIVISIONS = ["-fno-isolate-erroneous-paths-dereference"]
GCC = Family(
    "GCC",
    11,
    # Of debugging information only lines and inlined functions are read, and the rest takes long to write. nvcc
    # compiles host code without optimization, so a function that lacks a return statement returns all the same. With
    # -fsanitize=unreachable GCC does not assume that its end is never reached. (What it calls in the place of a
    # __builtin_unreachable is in simt/src/run/fault.cpp.)
    [
        *_COMMON,
        "-fsanitize=unreachable",
        *"-fno-gnu-unique -femit-struct-debug-baseonly -fno-var-tracking -fno-var-tracking-assignments".split(),
    ],
    {
        "plain": ["-fwrapv", *_GCC_DIVISIONS],
        "check": [
            *_GCC_PROBES,
            *_GCC_IN_PLACE,
            *_CHECKED,
            *_GCC_DIVISIONS,
            "-fsanitize=bounds-strict,signed-integer-overflow",
        ],
        "count": [*_GCC_PROBES, *_COUNTED, *_GCC_APART],
    },
    ".gch",
    "-fmax-errors=20",
)
# clang inserts the calls after its optimizations, so those that merge or widen accesses are off in both modes.
_CLANG_PROBES = [
    *_PROBES,
    "-fno-vectorize",
    "-fno-slp-vectorize",
    *("-mllvm", "-tsan-instrument-func-entry-exit=0"),
    *("-mllvm", "-tsan-instrument-memintrinsics=0"),
    *("-mllvm", "-tsan-instrument-atomics=1"),
    *("-mllvm", "-tsan-distinguish-volatile=1"),
]
CLANG = Family(
    "clang",
    14,
    [*_COMMON, "-fno-strict-return"],
    {
        "plain": ["-fwrapv"],
        "check": [*_CLANG_PROBES, *_CHECKED, "-fsanitize=array-bounds,signed-integer-overflow"],
        "count": [*_CLANG_PROBES, *_COUNTED, "-fsanitize-coverage=no-prune"],
    },
    ".pch",
    "-ferror-limit=20",
)
MODES = tuple(GCC.modes)  # in the order of the runtime's enum


@lru_cache(maxsize=1)
def find_compiler() -> tuple[str, str, Family]:
    """Return the path of the C++ compiler ($CXX, g++ or clang++), its version line and family. Raises NoCompiler."""
    named = os.environ.get("CXX", "")
    words = [w for w in shlex.split(named) if Path(w).name not in ("ccache", "sccache", "distcc")]
    remedy = "Install GCC 11 or later (on Debian and Ubuntu: `sudo apt install g++`)."
    if words:
        remedy = f"CXX is `{named}`. Unset it, or set it to g++ 11 or clang++ 14 or later."
    for name in words[:1] or ["g++", "c++", "clang++"]:
        path = shutil.which(name) or ""
        version = _output(path, "--version").split("\n")[0] if path else ""
        if not version:
            continue
        major = _output(path, "-dumpversion").split(".")[0]
        family = CLANG if "clang" in version else GCC
        if major.isdigit() and int(major) < family.oldest:
            raise NoCompiler(f"The C++ compiler is too old ({version}). {remedy}")
        return path, version, family
    raise NoCompiler(f"No C++ compiler was found. {remedy}")


def _output(*command: str) -> str:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", errors="replace", check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


@lru_cache(maxsize=1)
def find_linker() -> list[str]:
    """Return the flag for a quick linker, mold or lld, if one is installed: the usual one reads all of torch."""
    compiler = find_compiler()[0]
    found = (name for name in ("mold", "lld") if _output(compiler, f"-fuse-ld={name}", "-Wl,--version"))
    return [f"-fuse-ld={name}" for name in found][:1]


@lru_cache(maxsize=1)
def find_cpp_library() -> list[str]:
    """Return the path of the shared C++ library if the compiler knows it, to be linked by its name.

    Where a compiler finds only the archive, or is told to prefer it, every extension would have a copy of its own, and
    a message that torch formats with one copy and prints with another loses its numbers or crashes.
    """
    found = _output(find_compiler()[0], "-print-file-name=libstdc++.so.6").strip()
    return [found] if Path(found).is_absolute() and Path(found).is_file() else []


def unrolls_loops(mode: str) -> bool:
    """Return whether to unroll loops of constant length in the source, because the compiler does not."""
    return mode == "count" and find_compiler()[2] is GCC


def flags(mode: str = "plain") -> list[str]:
    """Return the flags for all sources in one of MODES."""
    family = find_compiler()[2]
    return [*family.flags, *family.modes[mode]]


# ---- running it ----


@lru_cache(1)
def _limit_compilers() -> contextlib.AbstractContextManager:
    """Return what a compiler runs in: with $MAX_JOBS, which torch reads too, at most so many run at once."""
    named = os.environ.get("MAX_JOBS", "").strip()
    return (
        threading.BoundedSemaphore(int(named))
        if re.fullmatch(r"0*[1-9][0-9]{0,5}", named)
        else contextlib.nullcontext()
    )


def run_compiler(command: list[str]) -> subprocess.CompletedProcess:
    """Run the compiler and return its result. Raises CacheError or NoCompiler if it ran out of disk or memory, or
    cannot be started.
    """
    try:
        with _limit_compilers():
            result = subprocess.run(
                command, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False
            )
    except OSError as error:  # no memory, or no process more
        raise NoCompiler(f"The compiler {command[0]} cannot be started: {error.strerror}.") from None
    if result.returncode != 0:
        if full := re.search(r"No space left on device|Disk quota exceeded|Read-only file system", result.stderr):
            raise _make_full_error(full[0], result.stderr)
        short = re.search(
            r"Killed signal terminated program|virtual memory exhausted|out of memory allocating", result.stderr
        )
        # After an error GCC may need more and more memory for what follows; the error is what counts then.
        if short and not re.search(r"^[^:\n]+:\d+:\d+: error: ", result.stderr, re.MULTILINE):
            raise NoCompiler("The compiler ran out of memory. It needs about 1 GB: close other programs.")
    return result


def _make_full_error(why: str, output: str) -> CacheError:
    """Return the error for a full or read-only disk: that of the cache, or of the folder for temporary files."""
    named = re.search(r"(?:writing to|closing|create temporary file in) (/.*)/(?:cc\w{6}\.\w+)?: ", output)
    if not named:
        return cache.make_unusable_error(why)
    return CacheError(
        f"The compiler's folder for temporary files, {named[1]}, cannot be used ({why}). Delete files there, or set "
        "TMPDIR to a folder on a disk with 1 GB free."
    )


def run_or_fail(command: list[str]) -> None:
    """Run the compiler on a part of simt itself. Raises NoCompiler if that part does not compile."""
    result = run_compiler(command)
    if result.returncode != 0:
        lines = [each for each in result.stderr.splitlines() if "error" in each or "undefined reference" in each][:3]
        raise NoCompiler(
            f"simt's own runtime does not build with {find_compiler()[1]} (exit status {result.returncode}). Install "
            f"another version of the compiler. Messages: {' / '.join(lines) or 'none'}"
        )


def find_last_line(result: subprocess.CompletedProcess) -> str:
    """Return the last line of the compiler's output, for a failure without an error message."""
    lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else f"The compiler ended with status {result.returncode} and no message."
