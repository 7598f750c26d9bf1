"""Compare the machine code of the fastest files with that of the same files at an earlier commit.

    python benchmarks/validate/machine_code.py [--arch sm_90] [COMMIT]     needs nvcc, but no GPU

COMMIT defaults to 488ac8d, the last one at which the files were written by hand, as limit*.py. Each file's CUDA source
is compiled to a cubin, and the code, constants, shared memory and resource notes of every kernel are compared byte by
byte. Exits 1 if any differs.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BEFORE = "488ac8d"
SOURCES = ("cuda_source", "general_source", "once_source")  # those of a file, in this order, make one CUDA file
COMPARED = (".text", ".nv.constant", ".nv.shared", ".nv.info.")
NO_BITS = 8  # an ELF section that takes memory, but none of the file


def cuda_of(text: str) -> str:
    """Return the CUDA text of a KernelBench file's source strings."""
    found = {
        ast.unparse(node.targets[0]): str(node.value.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    }
    return "".join(found[name] for name in SOURCES if name in found)


def sections_of(cubin: bytes) -> dict[str, tuple[int, str]]:
    """Return size and hash of the compared sections of a 64-bit ELF file by name."""
    (offset,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names_at = struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, offset + i * size) for i in range(count)]
    names = cubin[headers[names_at][4] :]
    found = {}
    for name_at, kind, _, _, start, length, *_ in headers:
        name = names[name_at : names.index(b"\0", name_at)].decode()
        if name.startswith(COMPARED):
            content = b"" if kind == NO_BITS else cubin[start : start + length]
            found[name] = length, hashlib.sha256(content).hexdigest()
    return found


def compiled(text: str, arch: str, folder: Path) -> dict[str, tuple[int, str]]:
    source, cubin = folder / "kernels.cu", folder / "kernels.cubin"
    source.write_text(cuda_of(text), encoding="utf-8")
    subprocess.run(["nvcc", "-std=c++17", "-O3", "-cubin", f"-arch={arch}", source, "-o", cubin], check=True)
    return sections_of(cubin.read_bytes())


def get_text(commit: str, file: Path) -> str:
    """Return the file's text at a commit, there perhaps under its old name."""
    folder = file.parent.relative_to(ROOT)
    for name in (file.name, file.name.replace("fastest", "limit", 1)):
        done = subprocess.run(["git", "show", f"{commit}:{folder}/{name}"], cwd=ROOT, capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout
    raise SystemExit(f"{folder}/{file.name} is not at {commit}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", default=BEFORE)
    parser.add_argument("--arch", default="sm_90")
    options = parser.parse_args()
    differing = False
    with tempfile.TemporaryDirectory() as folder:
        for file in sorted(ROOT.glob("kernels_ref/*/fastest*.py")):
            before = compiled(get_text(options.commit, file), options.arch, Path(folder))
            now = compiled(file.read_text(encoding="utf-8"), options.arch, Path(folder))
            unlike = [name for name in before | now if before.get(name) != now.get(name)]
            differing = differing or bool(unlike)
            result = f"differs in {', '.join(unlike)}" if unlike else f"same: {len(now)} sections"
            print(f"{file.parent.name}/{file.stem}: {result}", flush=True)
    sys.exit(differing)


if __name__ == "__main__":
    main()
