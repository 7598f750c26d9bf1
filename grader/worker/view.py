"""Compute what a sandboxed worker sees of the disk: an allow-list, so that what is not listed does not exist for it.

Listed are the system's programs and libraries, this Python with its packages, the C++ compiler, CUDA where a GPU is
used, simt, the worker's own modules, simt's shared builds, the submission, and the folders that the worker writes to.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import shlex
import shutil
import site
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
# The folders of simt's cache that hold no kernel's code or program: what is built once for all submissions.
SHARED_KINDS = ("base", "binding", "header", "part", "runtime")
MAX_LINKS = 40  # that lead from one path to a file, as in the kernel
PACKAGES = ("site-packages", "dist-packages")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "alternatives", "localtime", "nvidia")
HARDWARE = ("/sys/devices/system/cpu", "/sys/devices/system/node")  # how many cores there are, and their caches
HARDWARE_GPU = ("/sys",)
PREFIX_PARTS = ("bin", "lib", "lib64", "libexec", "include", "share", "pyvenv.cfg", "x86_64-conda-linux-gnu")
GPU_DEVICES = ("nvidia*", "dxg")  # names in /dev; dxg is that of the Windows subsystem for Linux
# Variables that a worker inherits. All others stay with the judge: any of them may hold a secret.
VARIABLES = {
    "CC", "CPATH", "CPLUS_INCLUDE_PATH", "CXX", "C_INCLUDE_PATH", "CONDA_PREFIX", "LANG", "LANGUAGE", "LD_LIBRARY_PATH",
    "LIBRARY_PATH", "MAX_JOBS", "PATH", "TZ", "VIRTUAL_ENV",
}  # fmt: skip
VARIABLE_FAMILIES = (
    "LC_", "CUDA_", "CUDNN_", "CUBLAS_", "GOMP_", "KMP_", "MKL_", "NCCL_", "NUMEXPR_", "NVCC_", "NVIDIA_", "OMP_",
    "OPENBLAS_", "PYTHON", "PYTORCH_", "SIMT_", "TORCH_", "TRITON_",
)  # fmt: skip
SECRETS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "API_KEY")
# A program that ends with a sentence if CUDA's driver is there and does not start.
START_CUDA = """
import ctypes
try:
    status = ctypes.CDLL("libcuda.so.1").cuInit(0)
except OSError:
    status = 0
if status not in (0, 100):  # 100: there is no device, as outside
    raise SystemExit(f"CUDA does not start in it: error {status}")
"""
LAST_PATHS = ("/usr/local/bin", "/usr/bin", "/bin")  # where a compiler looks for its assembler and linker


@dataclasses.dataclass(frozen=True)
class View:
    """What a worker sees: every path absolute and real, outer folders first.

    links: symbolic links outside these folders, by which a path leads into them. devices: in addition to /dev/null and
    its like. submission: the path at which it sees the file that the judge has read; None where one of these folders
    holds it.
    """

    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    devices: tuple[Path, ...]
    links: dict[Path, str]
    submission: Path | None = None


def make_view(submission: Path | None, writable: list[Path], shared: Path | None, gpu: bool) -> View:
    """Return what a worker sees. submission: the real path of its file, which is neither opened nor resolved here.

    shared: simt's cache, of which the worker reads what has no kernel.
    """
    links: dict[Path, str] = {}
    guarded = _list_guarded(submission)
    wanted = [*SYSTEM, *(f"/etc/{name}" for name in ETC), *_list_python(guarded), *_list_compiler(guarded)]
    wanted += [*_list_libraries(guarded), *_list_project(), *HARDWARE]
    if gpu:
        wanted += [*_list_cuda(guarded), *HARDWARE_GPU]
    if shared is not None:
        wanted += [shared / kind for kind in SHARED_KINDS]
    found = {trace(Path(path), links) for path in wanted if os.path.exists(path)}
    written = [trace(path, links) for path in writable]
    readable = _drop_inner(found)
    covered = [*readable, *written]
    outside = {at: to for at, to in links.items() if not any(at.is_relative_to(folder) for folder in covered)}
    if submission is not None and any(submission.is_relative_to(folder) for folder in covered):
        submission = None
    return View(tuple(readable), tuple(written), tuple(list_devices() if gpu else ()), outside, submission)


def trace(path: Path, links: dict[Path, str]) -> Path:
    """Return the real path, and add each symbolic link on the way to `links`. Raises OSError for a circle of links."""
    place, waiting, followed = Path("/"), list(reversed(Path(os.path.abspath(path)).parts[1:])), 0
    while waiting:
        part = waiting.pop()
        if part == "..":
            place = place.parent
            continue
        here = place / part
        if not here.is_symlink():
            place = here
            continue
        followed += 1
        if followed > MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        target = links[here] = os.readlink(here)
        parts = Path(target).parts
        if target.startswith("/"):
            place, parts = Path("/"), parts[1:]
        waiting += reversed(parts)
    return place


def _drop_inner(paths: set[Path]) -> list[Path]:
    """Return the paths that lie in no other one, outer folders first."""
    kept: list[Path] = []
    for path in sorted(paths, key=lambda path: (len(path.parts), path)):
        if not any(path.is_relative_to(folder) for folder in kept):
            kept.append(path)
    return kept


def _list_guarded(submission: Path | None) -> list[Path]:
    """Return folders that must not become visible as a whole: the project, homes, and that of the submissions."""
    folders = [Path("/"), Path("/tmp"), Path("/home"), Path("/root"), Path(os.path.expanduser("~"))]
    if submission is not None:
        folders.append(submission.parent)
    if PROJECT.name not in PACKAGES:
        folders.append(PROJECT)
    return [folder.resolve() for folder in folders]


def _is_narrow(path: str | Path, guarded: list[Path]) -> bool:
    """Return whether a folder holds no guarded one."""
    real = Path(path).resolve()
    return real.is_dir() and not any(folder.is_relative_to(real) for folder in guarded)


def _list_python(guarded: list[Path]) -> list[str]:
    """Return the interpreter with the links that lead to it, its library, and the folders of installed packages."""
    found = [sys.executable]
    for prefix in dict.fromkeys((sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)):
        if _is_narrow(prefix, guarded):
            found.append(prefix)
        else:
            found += [os.path.join(prefix, part) for part in PREFIX_PARTS]
    packages = [*sys.path, *site.getsitepackages(), site.getusersitepackages()]
    found += [path for path in packages if Path(path).name in PACKAGES]
    return [path for path in found if os.path.isabs(path)]


def _list_compiler(guarded: list[Path]) -> list[str]:
    """Return the C++ compilers that simt and torch may run, wherever PATH and CXX find them."""
    found: list[str] = []
    names = [word for name in ("CXX", "CC") for word in _split(os.environ.get(name, ""))]
    for name in [*names, "g++", "c++", "clang++", "gcc", "cc", "ninja", "as", "ld"]:
        path = shutil.which(name)
        if path is None:
            continue
        found.append(path)
        real = Path(path).resolve()
        prefix = real.parent.parent
        # a compiler outside /usr brings its library and its assembler along
        if real.parent.name == "bin" and (prefix / "lib").is_dir() and _is_narrow(prefix, guarded):
            found.append(str(prefix))
    return found


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # a quotation mark is not closed: simt reports it
        return []


def _list_libraries(guarded: list[Path]) -> list[str]:
    """Return the folders in which the environment has the linker and the compiler look for files."""
    names = ("LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH")
    folders = [folder for name in names for folder in os.environ.get(name, "").split(os.pathsep)]
    return [folder for folder in folders if os.path.isabs(folder) and _is_narrow(folder, guarded)]


def _list_project() -> list[Path]:
    """Return simt and the worker's room: not the judge, the reference kernels, the lessons or the tests."""
    return [PROJECT / "simt", PROJECT / "grader" / "__init__.py", PROJECT / "grader" / "worker"]


def _list_cuda(guarded: list[Path]) -> list[str]:
    """Return the CUDA toolkit's and the driver's folders."""
    folders = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda", "/usr/local/nvidia"]
    if nvcc := shutil.which("nvcc"):
        folders.append(str(Path(nvcc).resolve().parent.parent))
    return [folder for folder in folders if folder and _is_narrow(folder, guarded)]


def list_devices() -> list[Path]:
    """Return the device files of the GPUs."""
    return sorted(path for pattern in GPU_DEVICES for path in Path("/dev").glob(pattern))


def _find_compiler() -> str:
    """Return the C++ compiler that the judge uses, which is the one that `grader doctor` reports; empty for none."""
    from simt.errors import NoCompiler  # here, so that a confined process needs nothing but the standard library
    from simt.toolchain.compilers import find_compiler

    try:
        return find_compiler()[0]
    except (NoCompiler, ValueError):  # a quotation mark in CXX is not closed
        return ""


def make_environment(work: Path, extra: dict[str, str]) -> dict[str, str]:
    """Return a worker's environment: an allow-list of the judge's variables, a home in its own folder, and `extra`.

    A worker finds a compiler where the judge finds one, and then also its assembler and linker.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if (name in VARIABLES or name.startswith(VARIABLE_FAMILIES)) and not any(word in name for word in SECRETS)
    }
    folders = [folder for folder in kept.get("PATH", "").split(os.pathsep) if folder]
    if compiler := _find_compiler():
        last = [path for path in LAST_PATHS if path not in folders]
        folders += last
        if last and not kept.get("CXX"):  # there may be another compiler, which the judge does not use
            kept["CXX"] = compiler
    packages = [path for path in kept.get("PYTHONPATH", "").split(os.pathsep) if path and Path(path) != PROJECT]
    return kept | {
        "PATH": os.pathsep.join(folders),
        "HOME": str(work),
        "USER": "grader",
        "PYTHONPATH": os.pathsep.join([str(PROJECT), *packages]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": str(work),
        **extra,
    }
