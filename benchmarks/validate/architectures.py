"""Compile the device code of every file of kernels_ref for each generation of GPUs with nvcc. Needs no GPU.

    python benchmarks/validate/architectures.py           all files; writes data/architectures.json after each
    python benchmarks/validate/architectures.py NAME …    only files whose name contains one of these; other rows stay

Host and device code are told apart as simt/gpu does it, and the versions of kernel templates are those that the host
code launches. A file that needs a newer GPU is to say so itself; here it fails. The exit status is 1 if one fails.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER
from benchmarks.timing.split import execute, find_files
from simt.errors import CompileError
from simt.frontend.source import Source
from simt.gpu import build
from simt.gpu.flags import pick_host_flags
from simt.gpu.items import NotSplit
from simt.gpu.split import split
from simt.runtime.extension import filter_flags, list_functions, list_sources
from simt.toolchain.build import compile_unit
from simt.toolchain.cuda_toolkit import find_nvcc
from simt.toolchain.units import Sources

DATA = DATA_FOLDER / "architectures.json"
# T4, A100, RTX 30, RTX 40 and L4, H100 and H200, B200, RTX 50
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
# What only torch's CUDA wheels contain: whether its libraries are shared ones.
MACROS = "#pragma once\n#define C10_CUDA_BUILD_SHARED_LIBS\n"


def list_calls(file: Path) -> list[dict]:
    """Return the arguments of the file's calls of load_inline."""
    calls: list[dict] = []

    def keep(**given: object) -> object:
        calls.append(given)
        return type("Module", (), {})()

    execute(file, keep)
    return calls


def compile_for_all(given: dict) -> dict[str, str]:
    """Return for each architecture what nvcc says against a call's device code, or ""."""
    sources = Sources(
        given["name"],
        list_sources(given["cpp_sources"]),
        list_sources(given["cuda_sources"]),
        list_functions(given["functions"]),
        filter_flags(list(given.get("extra_cflags") or [])),
        [],
    )
    flags = list(given.get("extra_cuda_cflags") or [])
    whole = Source("\n".join(sources.cuda), "cuda_sources")
    parts = split(whole)
    units = build._make_units(sources, parts, whole, tuple(pick_host_flags(flags)), "sm_90")
    host = compile_unit(units[-1])[0] / "unit.o"
    versions = build._list_versions(host, parts.templates) if parts.templates else ()
    said = {}
    for architecture in ARCHITECTURES:
        try:
            build._build_code(whole, parts, flags, architecture, versions)
            said[architecture] = ""
        except (CompileError, NotSplit) as error:
            said[architecture] = str(error)[:500]
    return said


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
def main(names: tuple[str, ...]) -> None:
    if find_nvcc() is None:
        raise click.ClickException("nvcc is not installed here.")
    data: dict = json.loads(DATA.read_text()) if names and DATA.exists() else {"files": {}}
    data["machine"] = describe_machine()
    wanted = {name: file for name, file in find_files().items() if not names or any(part in name for part in names)}
    with tempfile.TemporaryDirectory() as folder:
        header = Path(folder) / "c10/cuda/impl/cuda_cmake_macros.h"
        header.parent.mkdir(parents=True)
        header.write_text(MACROS)
        os.environ["CPLUS_INCLUDE_PATH"] = folder
        for name, file in wanted.items():
            said = [compile_for_all(call) for call in list_calls(file)]
            refused = {arch: [each[arch] for each in said if each[arch]] for arch in ARCHITECTURES}
            data["files"][name] = {arch: messages for arch, messages in refused.items() if messages}
            DATA.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")
            print(name, data["files"][name] or "compiles for all", flush=True)
    failed = [name for name in wanted if data["files"][name]]
    print(f"{len(wanted) - len(failed)} of {len(wanted)} files compile for {', '.join(ARCHITECTURES)}.")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
