"""Time nvcc's build of each fastest file from nothing, one after another.

    python benchmarks/timing/builds.py            all fastest files; writes data/builds.json
    python benchmarks/timing/builds.py NAME …     only these: PROBLEM/fastest… is a fastest file, PROBLEM a solution.py

Each builds in a process and an extension folder of its own. The time is that of importing the file, in which
load_inline builds it; torch is imported before. Other load makes builds slower: the data file has the cores and the
load. `benchmarks/publish/fastest.py --write` publishes the figures. The exit status is 1 if a file took more than the
15 s that tests/kernels_ref/test_fastest.py allows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT
from grader.source.contract import code_digest

DATA = DATA_FOLDER / "builds.json"
BOUND_S = 15.0  # per file
IMPORT = """
import importlib.util, sys, time
import torch, torch.utils.cpp_extension
spec = importlib.util.spec_from_file_location("reference", sys.argv[1])
begun = time.perf_counter()
spec.loader.exec_module(importlib.util.module_from_spec(spec))
print("seconds", time.perf_counter() - begun)
"""


def find_files() -> dict[str, Path]:
    """Return the names and files that can be built."""
    solutions = {path.parent.name: path for path in sorted(ROOT.glob("kernels_ref/*/solution.py"))}
    return solutions | {
        f"{path.parent.name}/{path.stem}": path for path in sorted(ROOT.glob("kernels_ref/*/fastest*.py"))
    }


def measure_seconds(file: Path) -> float:
    """Return the seconds of the file's first import."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", IMPORT, str(file)],
            cwd=folder,
            env=os.environ | {"TORCH_EXTENSIONS_DIR": folder},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise click.ClickException(f"{file} does not build: {done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--out", type=click.Path(path_type=Path), default=DATA, help="Where the data file goes.")
def main(names: tuple[str, ...], out: Path) -> None:
    import torch

    if not torch.cuda.is_available():
        raise click.ClickException("nvcc builds for this machine's GPU, and it has none.")
    there = find_files()
    if unknown := set(names) - set(there):
        raise click.ClickException(f"{', '.join(sorted(unknown))}: no such reference; they are {', '.join(there)}.")
    data: dict = json.loads(out.read_text()) if names and out.exists() else {"files": {}}
    data |= {"machine": describe_machine(), "cores": len(os.sched_getaffinity(0))}
    late = False
    for name in names or [name for name in there if "/" in name]:
        seconds, load = measure_seconds(there[name]), os.getloadavg()[0]
        data["files"][name] = {
            "seconds": round(seconds, 2),
            "load": round(load, 1),
            "code": code_digest(there[name].read_text(encoding="utf-8")),
        }
        late |= seconds > BOUND_S
        print(
            f"{name}: {seconds:.1f} s, load {load:.1f}{f': more than {BOUND_S:g} s' if seconds > BOUND_S else ''}",
            flush=True,
        )
        out.write_text(json.dumps(data, indent=1) + "\n")
    sys.exit(late)


if __name__ == "__main__":
    main()
