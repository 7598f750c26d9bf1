"""Looks at this machine: what it can do, what each missing part costs, and the command that mends it."""

from __future__ import annotations

import dataclasses
import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from grader import sandbox


@dataclasses.dataclass(frozen=True)
class Part:
    """One part of the machine. found: what is there, or empty. costs, mend: what its absence means, and the command."""

    name: str
    found: str
    costs: str = ""
    mend: str = ""


def examine() -> list[Part]:
    """Look at every part, most needed first."""
    return [_compiler(), _ninja(), _torch(), _cache_folder(), _simt_cache(), _gpu(), _nvcc(), _sandbox()]


def can_grade(parts: list[Part]) -> bool:
    """Whether kernels can be built and run here at all."""
    found = {part.name for part in parts if part.found}
    return {"C++ compiler", "torch", "cache folder"} <= found and (bool({"ninja"} & found) or "GPU" not in found)


def show(console, parts: list[Part]) -> None:
    """Print a line for each part, and under the table what to do."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for part in parts:
        state = Text("yes", "green") if part.found else Text("no", "bold red")
        table.add_row(part.name, state, Text(part.found or part.costs))
        if not part.found and part.mend:
            table.add_row("", "", Text(part.mend, "bold"))
    console.print(Padding(table, (0, 0, 0, 1)))


# --- parts -----------------------------------------------------------------------------------------------------------


def _version(*command: str) -> str:
    """The first line that a program says about its version; empty if it does not run."""
    try:
        out = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    return (out.stdout or out.stderr).strip().splitlines()[0] if out.returncode == 0 and (out.stdout or out.stderr) else ""


def _compiler() -> Part:
    from simt.compilers import compiler
    from simt.errors import NoCompiler

    compiler.cache_clear()  # it may have been installed since
    try:
        return Part("C++ compiler", compiler()[1])
    except NoCompiler as error:
        said, _, mend = str(error).rstrip(".").partition(": ")
    except ValueError as error:  # of a quotation mark that stands alone
        said, mend = f"CXX cannot be read ({error})", "unset CXX, or set it to g++ 11 or clang++ 14 or later"
    costs = f"{said}. No CUDA code can be built, so only files without kernels can be graded."
    return Part("C++ compiler", "", costs, mend if os.environ.get("CXX", "").strip() else "apt install g++")


def _ninja() -> Part:
    found = _version("ninja", "--version") if shutil.which("ninja") else ""
    mend = "pip install ninja, or apt install ninja-build"
    return Part("ninja", f"ninja {found}" if found else "", "torch cannot build extensions (needed on a GPU).", mend)


def _torch() -> Part:
    try:
        import torch
    except ImportError:
        return Part("torch", "", "Nothing can be graded.", "pip install torch")
    return Part("torch", f"torch {torch.__version__}, Python {platform.python_version()}")


def _cache_folder() -> Part:
    """Whether what is built can be kept. It is tried: the folders are made if they are missing, and something is written."""
    costs = "Nothing can be built, and so nothing graded"
    mend = "set SIMT_CACHE and XDG_CACHE_HOME to folders that can be written"
    try:
        for folder in (sandbox.simt_cache(), sandbox.extensions("")):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=folder) as file:
                    file.write(b"?")
            except OSError as error:
                return Part("cache folder", "", f"{costs}: {folder} cannot be written ({error.strerror}).", mend)
        return Part("cache folder", str(sandbox.simt_cache()))
    except RuntimeError as error:  # there is no home
        return Part("cache folder", "", f"{costs}: {str(error).rstrip('.')}.", mend)


def _simt_cache() -> Part:
    from simt import build
    from simt.errors import BuildError

    costs = "The first build on this machine takes about 30 s longer."
    mend = "grading any file, or make demo, fills it"
    if not _cache_folder().found:  # said above, and so is the rest
        return Part("warm cache", "", costs)
    try:
        return Part("warm cache", "filled" if build.warm() else "", costs, mend)
    except (ImportError, BuildError, ValueError):  # no torch, or no compiler
        return Part("warm cache", "", costs, mend)


def _gpu() -> Part:
    costs = "Kernels run on the CPU and the stage fast is skipped; all others work."
    try:
        import torch

        if torch.cuda.is_available():
            memory = torch.cuda.get_device_properties(0).total_memory / 2**30
            return Part("GPU", f"{torch.cuda.get_device_name(0)}, {memory:.0f} GiB, CUDA {torch.version.cuda}")
        if sandbox.has_gpu() and torch.version.cuda is None:
            return Part("GPU", "", "There is a GPU, but this torch is built for the CPU.", "pip install torch (with CUDA)")
    except ImportError:
        pass
    return Part("GPU", "", costs)


def _nvcc() -> Part:
    home = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    program = shutil.which("nvcc") or str(Path(home) / "bin" / "nvcc")
    try:
        text = subprocess.run([program, "--version"], capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        text = ""
    release = re.search(r"release ([\d.]+)", text)
    costs = "Needed on a machine with a GPU to compile kernels for it; without a GPU it is not used."
    return Part("nvcc", f"CUDA {release.group(1)}" if release else "", costs, "install the CUDA toolkit")


def _sandbox() -> Part:
    trouble, mend = sandbox.why_not(), "apt install bubblewrap"
    lacks = f" ({mend})" in trouble  # else it is there and does not run, which an installation would not mend
    costs = f"Submissions run with resource limits only and can read your files and use the network: {trouble.replace(f' ({mend})', '')}"
    return Part("sandbox", "" if trouble else sandbox.BUBBLEWRAP, costs, mend if lacks else "")
