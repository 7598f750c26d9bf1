"""The command `grader doctor`: what this machine can do, what each missing part costs, and how to install it."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.cache import format_bytes
from grader.cli.statuses import CANNOT, PASSED
from grader.worker import bubblewrap, confine, levels, sandbox
from simt.toolchain.cache import measure

if TYPE_CHECKING:
    from rich.console import Console


@dataclasses.dataclass(frozen=True)
class Part:
    """One part of the machine. found: what is there, or empty. costs, fix: what its absence means, and the command."""

    name: str
    found: str
    costs: str = ""
    fix: str = ""


@click.command()
def doctor() -> None:
    """Show what this machine can do and what each missing part costs. Exit status 3 if kernels cannot be built here."""
    from rich.console import Console

    parts = examine()
    show(Console(highlight=False), parts)
    sys.exit(PASSED if can_grade(parts) else CANNOT)


def examine() -> list[Part]:
    """Return every part, the most needed first."""
    return [_compiler(), _ninja(), _torch(), _cache_folder(), _simt_cache(), _gpu(), _nvcc(), _sandbox(), *_levels()]


def can_grade(parts: list[Part]) -> bool:
    """Return whether kernels can be built and run here at all."""
    found = {part.name for part in parts if part.found}
    return {"C++ compiler", "torch", "cache folder"} <= found and (bool({"ninja"} & found) or "GPU" not in found)


def show(console: Console, parts: list[Part]) -> None:
    """Print one line per part and, below a missing one, the command that installs it."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for part in parts:
        state = Text("yes", "green") if part.found else Text("no", "bold red")
        table.add_row(part.name, state, Text(part.found or part.costs))
        if not part.found and part.fix:
            table.add_row("", "", Text(part.fix, "bold"))
    console.print(Padding(table, (0, 0, 0, 1)))


# --- parts -----------------------------------------------------------------------------------------------------------


def _version(*command: str) -> str:
    """Return the first line that a program prints about its version; empty if it does not run."""
    try:
        out = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    lines = (out.stdout or out.stderr).strip().splitlines()
    return lines[0] if out.returncode == 0 and lines else ""


def _compiler() -> Part:
    from simt.errors import NoCompiler
    from simt.toolchain.build import is_warm
    from simt.toolchain.compilers import find_compiler
    from simt.toolchain.runtime_library import load_runtime

    find_compiler.cache_clear()  # it may have been installed since
    try:
        found = find_compiler()[1]
        warm = False
        with contextlib.suppress(OSError, RuntimeError):  # another line tells of the cache
            warm = is_warm()
        if warm:
            load_runtime(ctypes.CDLL)
        return Part("C++ compiler", found)
    except NoCompiler as error:
        missing = str(error)
    except ValueError as error:  # shlex: a quotation mark is not closed
        missing = f"CXX cannot be read ({error}). Unset it, or set it to g++ 11 or clang++ 14 or later."
    costs = f"{missing} No CUDA code can be built, so only files without kernels can be graded."
    return Part("C++ compiler", "", costs, "" if os.environ.get("CXX", "").strip() else "apt install g++")


def _ninja() -> Part:
    found = _version("ninja", "--version") if shutil.which("ninja") else ""
    fix = "pip install ninja, or apt install ninja-build"
    return Part("ninja", f"ninja {found}" if found else "", "torch cannot build extensions (needed on a GPU).", fix)


def _torch() -> Part:
    try:
        import torch
    except ImportError:
        return Part("torch", "", "Nothing can be graded.", "pip install torch")
    return Part("torch", f"torch {torch.__version__}, Python {platform.python_version()}")


def _cache_folder() -> Part:
    """Try whether builds can be kept: make the cache folders if they are missing, and write a file in each."""
    costs = "No kernel can be built or graded"
    fix = "set SIMT_CACHE and XDG_CACHE_HOME to folders that can be written"
    try:
        for folder in (sandbox.simt_cache(), sandbox.extensions("")):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=folder) as file:
                    file.write(b"?")
            except OSError as error:
                return Part("cache folder", "", f"{costs}: {folder} cannot be written ({error.strerror}).", fix)
        return Part("cache folder", f"{sandbox.simt_cache()}, {format_bytes(measure(sandbox.simt_cache()))}")
    except RuntimeError as error:  # there is no home
        return Part("cache folder", "", f"{costs}: {str(error).rstrip('.')}.", fix)


def _simt_cache() -> Part:
    from simt.errors import BuildError
    from simt.toolchain import build

    costs = "The first build on this machine takes about 30 s longer."
    fix = "grading any file, or make demo, fills it"
    if not _cache_folder().found:  # the part above reports it
        return Part("warm cache", "", costs)
    try:
        return Part("warm cache", "filled" if build.is_warm() else "", costs, fix)
    except (ImportError, BuildError, ValueError):  # no torch, or no compiler
        return Part("warm cache", "", costs, fix)


def _gpu() -> Part:
    costs = "Kernels run on the CPU and stage fast is skipped; all other stages work."
    try:
        import torch

        if torch.cuda.is_available():
            memory = torch.cuda.get_device_properties(0).total_memory / 2**30
            return Part("GPU", f"{torch.cuda.get_device_name(0)}, {memory:.0f} GiB, CUDA {torch.version.cuda}")
        if sandbox.has_gpu() and torch.version.cuda is None:
            return Part(
                "GPU", "", "There is a GPU, but this torch is built for the CPU.", "pip install torch (with CUDA)"
            )
    except ImportError:
        pass
    return Part("GPU", "", costs)


def _nvcc() -> Part:
    home = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    program = shutil.which("nvcc") or str(Path(home) / "bin" / "nvcc")
    try:
        text = subprocess.run(
            [program, "--version"], capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=20
        ).stdout
    except (OSError, subprocess.SubprocessError):
        text = ""
    release = re.search(r"release ([\d.]+)", text)
    costs = "Needed on a machine with a GPU to compile kernels for it; without a GPU it is not used."
    return Part("nvcc", f"CUDA {release.group(1)}" if release else "", costs, "install the CUDA toolkit")


def _sandbox() -> Part:
    trouble, fix = sandbox.why_not(), "apt install bubblewrap"
    missing = f" ({fix})" in trouble  # else it is installed but does not run, which installing does not fix
    why = trouble.replace(f" ({fix})", "")
    costs = f"{levels.GAPS[levels.Level.none]} {why}"
    return Part("sandbox", "" if trouble else str(levels.probe().level), costs, fix if missing else "")


def _levels() -> list[Part]:
    """Return the two levels of sandbox: what each holds back, or why it does not work here."""
    with tempfile.TemporaryDirectory(prefix="grader-") as folder:
        if bubblewrap.is_installed():
            trouble, _ = bubblewrap.find_trouble(Path(folder).resolve(), levels.has_gpu())
            trouble = trouble and f"bubblewrap does not run here ({trouble})."
        else:
            trouble = "bubblewrap is not installed (apt install bubblewrap)."
    holds_back = {level: f"{levels.describe(level)}. {levels.GAPS[level]}".strip() for level in levels.Level}
    other = confine.find_trouble()
    return [
        Part("- level 1", "" if trouble else holds_back[levels.Level.bubblewrap], trouble),
        Part("- level 2", "" if other else holds_back[levels.Level.landlock], other),
    ]
