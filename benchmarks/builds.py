"""Times how long a limit file takes to be built where nothing of it is there yet, with nvcc, one after another.

    python benchmarks/builds.py             all limit files; writes data/builds.json
    python benchmarks/builds.py NAME …      only these: PROBLEM/limit… is that limit file, PROBLEM alone is its solution.py

Each is built in a process and an extension folder of its own. Counted are the seconds of importing the file, in which load_inline
builds it; torch is imported before. `benchmarks/limits.py --write` puts the sentence into the README. What else the machine does
makes it slower: the cores at its disposal and the load stand in the file. The exit status is 1 if one took more than the 15 s that
tests/kernels_ref/test_limits.py allows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from grader.contract import code_digest  # noqa: E402

DATA = ROOT / "benchmarks" / "data" / "builds.json"
AT_MOST = 15.0  # seconds a file
IMPORT = """
import importlib.util, sys, time
import torch, torch.utils.cpp_extension
spec = importlib.util.spec_from_file_location("reference", sys.argv[1])
begun = time.perf_counter()
spec.loader.exec_module(importlib.util.module_from_spec(spec))
print("seconds", time.perf_counter() - begun)
"""


def files() -> dict[str, Path]:
    """The references' names and files."""
    solutions = {path.parent.name: path for path in sorted(ROOT.glob("kernels_ref/*/solution.py"))}
    return solutions | {f"{path.parent.name}/{path.stem}": path for path in sorted(ROOT.glob("kernels_ref/*/limit*.py"))}


def seconds_of(file: Path) -> float:
    """How long the file's first import takes."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", IMPORT, str(file)], cwd=folder, env=os.environ | {"TORCH_EXTENSIONS_DIR": folder}, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise click.ClickException(f"{file} does not build: {done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--out", type=click.Path(path_type=Path), default=DATA, help="Where the data file goes.")
def main(names: tuple[str, ...], out: Path) -> None:
    import torch

    from machine import machine

    if not torch.cuda.is_available():
        raise click.ClickException("nvcc builds for the GPU of a machine, and this one has none.")
    there = files()
    if unknown := set(names) - set(there):
        raise click.ClickException(f"{', '.join(sorted(unknown))}: no such reference; they are {', '.join(there)}.")
    data = json.loads(out.read_text()) if names and out.exists() else {"files": {}}
    data |= {"machine": machine(), "cores": len(os.sched_getaffinity(0))}
    late = False
    for name in names or [name for name in there if "/" in name]:
        seconds, load = seconds_of(there[name]), os.getloadavg()[0]
        data["files"][name] = {"seconds": round(seconds, 2), "load": round(load, 1), "code": code_digest(there[name].read_text(encoding="utf-8"))}
        late |= seconds > AT_MOST
        print(f"{name}: {seconds:.1f} s, load {load:.1f}{f': more than {AT_MOST:g} s' if seconds > AT_MOST else ''}", flush=True)
        out.write_text(json.dumps(data, indent=1) + "\n")
    sys.exit(late)


if __name__ == "__main__":
    main()
