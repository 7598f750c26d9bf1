"""The C++ compilers that simt can use, and how each is told to compile plainly, with checks, and counting."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from .errors import NoCompiler

# -fno-strict-aliasing and -fwrapv: nvcc allows float4* casts and wraps integers; -fno-finite-loops: an endless
# kernel is endless; -fno-gnu-unique: two builds of one kernel must not share its variables; -fstack-clash-protection:
# a large local array meets the fence below the stack, and does not step over it.
_COMMON = (
    "-std=c++20 -O2 -g1 -gdwarf-4 -fPIC -w -fvisibility=hidden -fno-strict-aliasing -fno-finite-loops "
    "-fno-math-errno -fno-trapping-math -fno-semantic-interposition -fstack-clash-protection -D_GLIBCXX_USE_CXX11_ABI=1"
).split()
# The compiler's own instrumentation, as for a race detector, but the functions that it calls are simt's (src/probe_*.cpp):
# one call before each access to memory that threads can share. Without tail calls an atomic function returns to the
# student's line. trace-pc: one call a basic block. Where overflow is looked for, it can't be defined as wrapping.
_PROBES = "-DSIMT_PROBED=1 -fsanitize=thread -fno-optimize-sibling-calls".split()
_COUNTED = ["-DSIMT_COUNT=1", "-fwrapv", "-fsanitize-coverage=trace-pc"]


@dataclass(frozen=True)
class Family:
    """What compilers of one make have in common. modes: flags beyond `flags`; header: ending of a precompiled header."""

    name: str
    oldest: int
    flags: list[str]
    modes: dict[str, list[str]]
    header: str
    most_errors: str

    def including(self, header: Path) -> list[str]:
        """Flags that include a precompiled header: `header` with the ending of `self.header` is what was made."""
        return ["-include-pch", f"{header}.pch"] if self.header == ".pch" else ["-include", str(header)]


# Without scalar replacement a float4 stays one access of 16 bytes. What nvcc does not do to accesses: nothing merges two
# blocks or what they load or store, or makes vectors of what stands alone, or gives lanes that went different ways a copy
# each of what comes after. What it does: loops of constant length are unrolled, which spares loads (simt/unrolled.py; the
# pass that is disabled would unroll those of any length).
_GCC_PROBES = [*_PROBES, "-fno-tree-sra", "--param=tsan-instrument-func-entry-exit=0", "--param=tsan-distinguish-volatile=1"]
_GCC_APART = (
    "-fno-crossjumping -fno-tree-tail-merge -fno-tree-sink -fno-tree-vectorize -fno-ipa-icf -fno-thread-jumps -fno-split-paths -fno-code-hoisting "
    "-freorder-blocks-algorithm=simple "
    "-O3 -fno-unswitch-loops -fno-split-loops -fno-version-loops-for-strides -fno-loop-interchange -fno-loop-unroll-and-jam -fno-ipa-cp-clone "
    "-fno-tree-loop-distribution -fno-tree-loop-distribute-patterns -fno-peel-loops --param=max-completely-peel-times=64 "
    "--param=max-completely-peeled-insns=4000 -fdisable-rtl-loop2_unroll"
).split()
GCC = Family(
    "GCC",
    11,
    [*_COMMON, "-fno-gnu-unique"],
    {
        "plain": ["-fwrapv"],
        "check": [*_GCC_PROBES, "-DSIMT_CHECK=1", "-fsanitize=bounds-strict,signed-integer-overflow"],
        "count": [*_GCC_PROBES, *_COUNTED, *_GCC_APART],
    },
    ".gch",
    "-fmax-errors=20",
)
# clang puts its calls in after it has optimised, so what would merge or widen accesses is off in both modes.
_CLANG_PROBES = [
    *_PROBES, "-fno-vectorize", "-fno-slp-vectorize",
    *(word for flag in ("func-entry-exit=0", "memintrinsics=0", "atomics=1") for word in ("-mllvm", f"-tsan-instrument-{flag}")),
    "-mllvm", "-tsan-distinguish-volatile=1",
]  # fmt: skip
CLANG = Family(
    "clang",
    14,
    _COMMON,
    {
        "plain": ["-fwrapv"],
        "check": [*_CLANG_PROBES, "-DSIMT_CHECK=1", "-fsanitize=array-bounds,signed-integer-overflow"],
        "count": [*_CLANG_PROBES, *_COUNTED, "-fsanitize-coverage=no-prune"],
    },
    ".pch",
    "-ferror-limit=20",
)
MODES = tuple(GCC.modes)  # in the order of the runtime's enum


@lru_cache(maxsize=1)
def compiler() -> tuple[str, str, Family]:
    """The C++ compiler, which is $CXX, g++ or clang++, its version line, and its make. Raises NoCompiler."""
    named = os.environ.get("CXX", "")
    words = [w for w in shlex.split(named) if Path(w).name not in ("ccache", "sccache", "distcc")]
    mend = "install GCC 11 or later, on Debian and Ubuntu with `sudo apt install g++`"
    if words:
        mend = f"CXX is `{named}`: unset it, or set it to g++ 11 or clang++ 14 or later"
    for name in words[:1] or ["g++", "c++", "clang++"]:
        path = shutil.which(name)
        version = _output(path, "--version").split("\n")[0] if path else ""
        major = _output(path, "-dumpversion").split(".")[0] if version else ""
        if not version:
            continue
        family = CLANG if "clang" in version else GCC
        if major.isdigit() and int(major) < family.oldest:
            raise NoCompiler(f"The C++ compiler is too old ({version}): {mend}.")
        return path, version, family
    raise NoCompiler(f"No C++ compiler was found: {mend}.")


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace", check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def flags(mode: str = "plain") -> list[str]:
    """What every source is compiled with, in one of MODES."""
    family = compiler()[2]
    return [*family.flags, *family.modes[mode]]
