"""Adds to data/ncu.json which machine instructions nvcc makes of kernels_ref's solutions and steps. Needs nvcc and cuobjdump, and no GPU.

    python benchmarks/sass.py [NAME …] [--check]     those that the file has no instructions of; or those named

ncu.py does this, too, for what it builds on a GPU's host. nvcc must be the one that the file names: another makes other instructions.
cuobjdump comes with the CUDA toolkit, or with `pip install nvidia-cuda-cuobjdump`. --check compares with what the file has, and writes nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import ncu  # noqa: E402
import references  # noqa: E402

ARCHITECTURE = "-gencode=arch=compute_90,code=sm_90"  # an H200's


def cuda_source(file: Path) -> str:
    """What the file gives load_inline as cuda_sources, without building it."""
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


def instructions(file: Path, folder: Path) -> dict[str, dict]:
    """Kernel by kernel, as ncu.sass has them: compiled as torch's load_inline has nvcc compile."""
    from torch.utils import cpp_extension

    head = "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n"  # what load_inline puts before
    source, made = folder / "source.cu", folder / "source.cubin"
    source.write_text(head + cuda_source(file), encoding="utf-8")
    missing = folder / "c10" / "cuda" / "impl" / "cuda_cmake_macros.h"  # torch without CUDA lacks it; how libraries are linked is all it says
    missing.parent.mkdir(parents=True)
    missing.write_text("#pragma once\n", encoding="utf-8")
    flags = [*cpp_extension.COMMON_NVCC_FLAGS, "-std=c++20", "-lineinfo", ARCHITECTURE, *(f"-I{path}" for path in [*cpp_extension.include_paths(), folder])]
    ncu.output(["nvcc", "-cubin", *flags, "-o", str(made), str(source)])
    return ncu.sass(made)


def _comparable(kernels: dict[str, dict]) -> dict[str, dict]:
    """Without what older files do not have."""
    return {kernel: {key: value for key, value in counts.items() if key != "predicated"} for kernel, counts in kernels.items()}


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--check", is_flag=True)
def main(names: tuple[str, ...], check: bool) -> None:
    data = json.loads(ncu.DATA.read_text(encoding="utf-8"))
    build = ncu.output(["nvcc", "--version"]).strip().splitlines()[-1]
    if build != data["machine"]["nvcc"]:
        raise click.ClickException(f"This nvcc is {build}, and {ncu.DATA.name} was made with {data['machine']['nvcc']}.")
    known = {references.name(file): file for file in references.files()}
    if unknown := set(names) - set(known):
        raise click.UsageError(f"There is no solution or step {', '.join(sorted(unknown))}: there are {', '.join(known)}.")
    differs = False
    for name, file in known.items():
        row = data.setdefault("solutions" if file.name == "solution.py" else "steps", {}).setdefault(name, {})
        if name not in names and (names or "sass" in row):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = instructions(file, Path(folder))
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                raise click.ClickException(f"{name}: {error}") from None
        same = _comparable(row.get("sass", {})) == _comparable(found)
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
