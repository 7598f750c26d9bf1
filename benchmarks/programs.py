"""The classic programs of tests/simt/programs on a GPU and on the CPU: do both print the same?

    python benchmarks/programs.py               on a GPU machine: compile by nvcc, run, keep what each prints;
                                                elsewhere: run by simt and compare with what is kept
    python benchmarks/programs.py --sanitize    on a GPU machine, also run each under compute-sanitizer's tools

What the GPU printed is kept in tests/simt/programs/expected, one file a program, and machine.json says where and when.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from machine import machine  # noqa: E402
from tables import show  # noqa: E402

PROGRAMS = sorted((ROOT / "tests/simt/programs").glob("*.cu"))
EXPECTED = ROOT / "tests/simt/programs/expected"
FLAGS = ["-std=c++17", "-arch=sm_90", "-Werror", "all-warnings"]
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


def run(*command: object, folder: Path | None = None) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, cwd=folder, timeout=300)


# ---- on the GPU ----


def on_gpu(program: Path, folder: Path, sanitize: bool) -> dict:
    """Compiles, runs, keeps the output; what happened."""
    binary = folder / program.stem
    compiled = run("nvcc", *FLAGS, program.name, "-o", binary, folder=program.parent)
    if compiled.returncode:
        return {"status": None, "output": "", "said": compiled.stderr}
    ran = run(binary)
    result = {"status": ran.returncode, "output": ran.stdout, "said": ran.stderr}
    if sanitize:
        result["sanitizer"] = {tool: last_line(run("compute-sanitizer", "--tool", tool, "--leak-check", "full", binary) if tool == "memcheck"
                                               else run("compute-sanitizer", "--tool", tool, binary)) for tool in TOOLS}  # fmt: skip
    return result


def last_line(done: subprocess.CompletedProcess) -> str:
    """The sanitizer's summary: its last lines begin with =========."""
    lines = [line.removeprefix("========= ") for line in done.stdout.splitlines() if "SUMMARY" in line]
    return "; ".join(lines) or f"no summary, exit status {done.returncode}"


def keep_gpu(sanitize: bool) -> int:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda program: on_gpu(program, Path(folder), sanitize), PROGRAMS))
    rows, kept = [], {}
    EXPECTED.mkdir(exist_ok=True)
    for program, result in zip(PROGRAMS, results):
        if result["status"] == 0:
            (EXPECTED / f"{program.stem}.txt").write_text(result["output"])
        kept[program.stem] = {k: v for k, v in result.items() if k != "output"}
        rows.append([program.stem, str(result["status"]), f"{len(result['output'].splitlines())} lines"])
    about = {"machine": machine(), "flags": FLAGS, "programs": kept}
    (EXPECTED / "machine.json").write_text(json.dumps(about, indent=1) + "\n")
    show(["program", "exit status", "printed"], rows)
    return int(any(result["status"] != 0 for result in results))


# ---- on the CPU ----


def compare_cpu() -> int:
    rows, different = [], 0
    for program in PROGRAMS:
        expected = EXPECTED / f"{program.stem}.txt"
        run(sys.executable, "-m", "simt", "run", program, folder=ROOT)  # compiled now, if it was not before
        start = time.perf_counter()
        ran = run(sys.executable, "-m", "simt", "run", program, folder=ROOT)
        seconds = time.perf_counter() - start
        same = ran.returncode == 0 and expected.is_file() and ran.stdout == expected.read_text()
        different += not same
        rows.append([program.stem, "as on the GPU" if same else "DIFFERENT", f"{seconds:.2f}"])
        if not same:
            print(f"{program.name} (exit status {ran.returncode}):\n{ran.stdout}{ran.stderr}")
    show(["program", "printed", "seconds, compiled before"], rows)
    about = json.loads((EXPECTED / "machine.json").read_text())["machine"]
    print(f"The GPU's side: {about['date']}, {about.get('gpu')}, {about.get('nvcc')}.")
    return int(different > 0)


@click.command(help=__doc__)
@click.option("--sanitize", is_flag=True, help="Also run each under compute-sanitizer.")
def main(sanitize: bool) -> None:
    gpu = shutil.which("nvcc") and shutil.which("nvidia-smi") and run("nvidia-smi", "-L").returncode == 0
    sys.exit(keep_gpu(sanitize) if gpu else compare_cpu())


if __name__ == "__main__":
    main()
