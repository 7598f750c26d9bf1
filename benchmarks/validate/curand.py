"""Ask libcurand for the numbers that tests/simt/cli/test_curand_quasi.py expects.

    python benchmarks/validate/curand.py FOLDER       its host generators, which need no GPU. FOLDER has include/ and
                                                      lib/, as nvidia/cu13 in the package nvidia-curand; CUDA's own
                                                      headers are those of nvcc
    python benchmarks/validate/curand.py              on a GPU machine: the GPU's generators

The test's program is compiled against the library; for the host generators, with memory of the host in place of a
GPU's. The exit status is 1 if a number differs from the test's. No data file is kept: the test holds the numbers.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from simt.toolchain.compilers import find_compiler
from simt.toolchain.cuda_toolkit import find_includes
from tests.simt.cli.curand_quasi_programs import HOST
from tests.simt.cli.test_curand_quasi import HASHES, NORMALS, read_cases

# Before the program's text: what it asks of CUDA, by the host.
HOST_MEMORY = r"""
#include <cstdlib>
#include <cstring>
#include <curand.h>
#define cudaMalloc(pointer, bytes) (*(void**)(pointer) = malloc(bytes))
#define cudaMemcpy(to, from, bytes, kind) memcpy(to, from, bytes)
#define cudaFree free
#define curandCreateGenerator curandCreateGeneratorHost
"""
CLOSE = 2e-6  # relative: of normal numbers, as in the test


def host_command(folder: Path) -> list[str]:
    """Return the words that compile for the host generators of the library in this folder."""
    library = next((folder / "lib").glob("libcurand.so.*"), None)
    if library is None:
        raise click.UsageError(f"{folder} has no lib/libcurand.so: name the folder nvidia/cu13 of nvidia-curand.")
    includes = [f"-I{place}" for place in (folder / "include", *find_includes())]
    linked = ["-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{library.parent.resolve()}"]
    return [find_compiler()[0], *includes, *linked, "-x", "c++"]


def ask_library(command: list[str], text: str) -> dict[tuple[str, str], list[str]]:
    """Return the words that the program prints for each case, compiled with this command."""
    with tempfile.TemporaryDirectory() as build:
        source, binary = Path(build) / "host.cu", Path(build) / "host"
        source.write_text(text, encoding="utf-8")
        if shutil.which(command[0]) is None:
            raise click.UsageError(f"{command[0]} is not installed: without a GPU, name a folder (see --help).")
        if subprocess.run([*command, "-std=c++20", "-O1", "-o", str(binary), str(source)], check=False).returncode:
            raise click.ClickException("The program does not compile: the messages above say why.")
        return read_cases(subprocess.run([binary], capture_output=True, text=True, check=True).stdout)


@click.command(help=__doc__)
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path | None) -> None:
    command, text = (host_command(folder), HOST_MEMORY + HOST) if folder else (["nvcc", "-lcurand"], HOST)
    cases = ask_library(command, text)
    differing = [f"{key}: {cases[key][4]}, not {want}" for key, want in HASHES.items() if cases[key][4] != want]
    for key, wanted in NORMALS.items():
        got = [float(word) for word in cases[key][5 : 5 + len(wanted)]]
        if not all(math.isclose(a, b, rel_tol=CLOSE, abs_tol=1e-12) for a, b in zip(got, wanted, strict=True)):
            differing.append(f"{key}: {got}, not {wanted}")
    print("\n".join(differing) or f"All {len(HASHES) + len(NORMALS)} results are the library's.")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
