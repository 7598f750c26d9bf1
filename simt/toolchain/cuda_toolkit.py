"""Find CUDA's headers and its runtime library: those of an installed toolkit, or of the packages beside torch."""

from __future__ import annotations

import os
import re
import shutil
import sysconfig
from functools import lru_cache
from pathlib import Path

from simt.errors import NoCompiler


@lru_cache(maxsize=1)
def find_includes() -> tuple[Path, ...]:
    """Return the folders of CUDA's headers. Raises NoCompiler if there are none."""
    for folder in _list_roots():
        if (folder / "cuda_runtime.h").is_file():
            return tuple(f for f in (folder, folder / "cccl") if f.is_dir())
    raise NoCompiler(
        "CUDA's headers were not found. Install the CUDA toolkit, or the packages nvidia-cuda-runtime and "
        "nvidia-cuda-crt of torch's CUDA version."
    )


def _list_roots() -> list[Path]:
    nvcc = find_nvcc()
    named = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    homes = [Path(name) for name in named if name]
    homes += [nvcc.resolve().parents[1]] if nvcc else []
    homes += [Path("/usr/local/cuda")]
    if nvcc:  # a script that calls the real one
        found = re.search(r"(/\S+)/bin/nvcc", _read_script(nvcc))
        homes += [Path(found[1])] if found else []
    site = Path(sysconfig.get_path("purelib"))  # of torch's own dependencies
    packages = [*sorted(site.glob("nvidia/cu[0-9]*/include"), reverse=True), site / "nvidia/cuda_runtime/include"]
    return [*(home / "include" for home in homes), *packages]


@lru_cache(maxsize=1)
def find_nvcc() -> Path | None:
    """Return nvcc: that of $CUDA_HOME, or the first on the path, or that of /usr/local/cuda; None: there is none."""
    homes = [Path(os.environ[name]) / "bin" for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    found = (shutil.which("nvcc", path=str(place)) for place in homes)
    path = next(filter(None, found), None) or shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    return Path(path) if path else None


def _read_script(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(500).decode(errors="replace") if path.stat().st_size < 10_000 else ""


@lru_cache(maxsize=1)
def find_runtime() -> list[str]:
    """Return the linker's flags for CUDA's runtime library; none where it is not there."""
    for root in find_includes()[:1]:
        for folder in (root.parent / "lib64", root.parent / "lib"):
            if found := sorted(folder.glob("libcudart.so*")):
                return [f"-L{folder}", f"-l:{found[0].name}"]
    return []


@lru_cache(maxsize=1)
def read_version() -> tuple[int, int]:
    """Return the version of CUDA to which the headers belong, such as (13, 0)."""
    text = (find_includes()[0] / "cuda_runtime_api.h").read_text(encoding="utf-8", errors="replace")
    found = re.search(r"#define\s+CUDART_VERSION\s+(\d+)", text)
    number = int(found[1]) if found else 0
    return number // 1000, number % 1000 // 10
