"""Add to data/ncu.json the machine instructions that nvcc makes of kernels_ref's solutions and steps.

    python benchmarks/validate/sass.py [NAME …] [--check]

NAME is a solution or a step; without one, all that have no instructions in the data file are compiled. Needs nvcc and
cuobjdump, and no GPU. ncu.py does the same for what it builds on a GPU's host. nvcc must have the version that the data
file names, as others make other instructions. cuobjdump comes with the CUDA toolkit, or with
`pip install nvidia-cuda-cuobjdump`. --check compares with the data file and writes nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import references
from benchmarks.validate import ncu
from benchmarks.validate.nvidia import read_sass, run_tool

ARCHITECTURE = "-gencode=arch=compute_90,code=sm_90"  # an H200's


def read_cuda_source(file: Path) -> str:
    """Return the cuda_sources that the file gives load_inline, without building them."""
    import torch.utils.cpp_extension as extension

    caught: list[str] = []

    def load_inline(*_, cuda_sources=(), **__):
        caught.extend([cuda_sources] if isinstance(cuda_sources, str) else cuda_sources)

    stock, extension.load_inline = extension.load_inline, load_inline
    try:
        references.load(file)
    finally:
        extension.load_inline = stock
    return "\n".join(caught)


def count_instructions(file: Path, folder: Path) -> dict[str, dict]:
    """Compile a file as torch's load_inline does, and count each kernel's instructions."""
    from torch.utils import cpp_extension

    head = "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n"  # load_inline's own
    source, made = folder / "source.cu", folder / "source.cubin"
    source.write_text(head + read_cuda_source(file), encoding="utf-8")
    # A torch without CUDA lacks this header, which only says how libraries are linked.
    missing = folder / "c10" / "cuda" / "impl" / "cuda_cmake_macros.h"
    missing.parent.mkdir(parents=True)
    missing.write_text("#pragma once\n", encoding="utf-8")
    flags = [
        *cpp_extension.COMMON_NVCC_FLAGS,
        "-std=c++20",
        "-lineinfo",
        ARCHITECTURE,
        *(f"-I{path}" for path in [*cpp_extension.include_paths(), folder]),
    ]
    run_tool(["nvcc", "-cubin", *flags, "-o", str(made), str(source)])
    return read_sass(made)


def _drop_new_counts(kernels: dict[str, dict]) -> dict[str, dict]:
    """Return the counts without those that older data files lack."""
    return {
        kernel: {key: value for key, value in counts.items() if key != "predicated"}
        for kernel, counts in kernels.items()
    }


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--check", is_flag=True)
def main(names: tuple[str, ...], check: bool) -> None:
    data = json.loads(ncu.DATA.read_text(encoding="utf-8"))
    build = run_tool(["nvcc", "--version"]).strip().splitlines()[-1]
    if build != data["machine"]["nvcc"]:
        raise click.ClickException(
            f"This nvcc is {build}, and {ncu.DATA.name} was made with {data['machine']['nvcc']}."
        )
    known = {references.name(file): file for file in references.files()}
    if unknown := set(names) - set(known):
        raise click.UsageError(
            f"There is no solution or step {', '.join(sorted(unknown))}: there are {', '.join(known)}."
        )
    differs = False
    for name, file in known.items():
        row = data.setdefault("solutions" if file.name == "solution.py" else "steps", {}).setdefault(name, {})
        if name not in names and (names or "sass" in row):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = count_instructions(file, Path(folder))
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                raise click.ClickException(f"{name}: {error}") from None
        same = _drop_new_counts(row.get("sass", {})) == _drop_new_counts(found)
        totals = ", ".join(f"{kernel.split('(')[0]} {counts['total']}" for kernel, counts in found.items())
        click.echo(f"{name}: {totals}{' (as in the file)' if same else ''}")
        differs |= not same
        if not check:
            row["sass"] = found
    if not check:
        ncu.DATA.write_text(ncu.dumps(data), encoding="utf-8")
    sys.exit(1 if check and differs else 0)


if __name__ == "__main__":
    main()
