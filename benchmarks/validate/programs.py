"""Run the programs of tests/simt/programs on a GPU and under simt, and compare what they print.

    python benchmarks/validate/programs.py               on a GPU machine: compile with nvcc, run, keep the outputs;
                                                         elsewhere: run under simt and compare with the kept outputs
    python benchmarks/validate/programs.py --sanitize    on a GPU machine, also run each under compute-sanitizer's tools

tests/simt/programs/expected keeps the GPU's outputs, one file per program; machine.json has the machine and the date.
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

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import ROOT
from benchmarks.publish.tables import show_table

PROGRAMS = sorted((ROOT / "tests/simt/programs").glob("*.cu"))
EXPECTED = ROOT / "tests/simt/programs/expected"
FLAGS = ["-std=c++17", "-arch=sm_90", "-Werror", "all-warnings"]
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


def run(*command: object, folder: Path | None = None) -> subprocess.CompletedProcess:
    """Run a command and capture its output."""
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, cwd=folder, timeout=300
    )


# ---- on the GPU ----


def run_on_gpu(program: Path, folder: Path, sanitize: bool) -> dict:
    """Compile and run a program. Return its exit status, its output, and the sanitizer's summaries."""
    binary = folder / program.stem
    compiled = run("nvcc", *FLAGS, program.name, "-o", binary, folder=program.parent)
    if compiled.returncode:
        return {"status": None, "output": "", "said": compiled.stderr}
    ran = run(binary)
    result = {"status": ran.returncode, "output": ran.stdout, "said": ran.stderr}
    if sanitize:
        options = {"memcheck": ["--leak-check", "full"]}
        result["sanitizer"] = {
            tool: find_summary(run("compute-sanitizer", "--tool", tool, *options.get(tool, []), binary))
            for tool in TOOLS
        }
    return result


def find_summary(done: subprocess.CompletedProcess) -> str:
    """Return the sanitizer's summary."""
    lines = [line.removeprefix("========= ") for line in done.stdout.splitlines() if "SUMMARY" in line]
    return "; ".join(lines) or f"no summary, exit status {done.returncode}"


def keep_gpu_outputs(sanitize: bool) -> int:
    """Run all programs on the GPU and keep their outputs. Return the exit status."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda program: run_on_gpu(program, Path(folder), sanitize), PROGRAMS))
    rows, kept = [], {}
    EXPECTED.mkdir(exist_ok=True)
    for program, result in zip(PROGRAMS, results):
        if result["status"] == 0:
            (EXPECTED / f"{program.stem}.txt").write_text(result["output"])
        kept[program.stem] = {k: v for k, v in result.items() if k != "output"}
        rows.append([program.stem, str(result["status"]), f"{len(result['output'].splitlines())} lines"])
    about = {"machine": describe_machine(), "flags": FLAGS, "programs": kept}
    (EXPECTED / "machine.json").write_text(json.dumps(about, indent=1) + "\n")
    show_table(["program", "exit status", "printed"], rows)
    return int(any(result["status"] != 0 for result in results))


# ---- on the CPU ----


def compare_with_gpu() -> int:
    """Run all programs under simt and compare with the kept outputs. Return the exit status."""
    rows, different = [], 0
    for program in PROGRAMS:
        expected = EXPECTED / f"{program.stem}.txt"
        run(sys.executable, "-m", "simt", "run", program, folder=ROOT)  # compiles it first
        start = time.perf_counter()
        ran = run(sys.executable, "-m", "simt", "run", program, folder=ROOT)
        seconds = time.perf_counter() - start
        same = ran.returncode == 0 and expected.is_file() and ran.stdout == expected.read_text()
        different += not same
        rows.append([program.stem, "as on the GPU" if same else "DIFFERENT", f"{seconds:.2f}"])
        if not same:
            print(f"{program.name} (exit status {ran.returncode}):\n{ran.stdout}{ran.stderr}")
    show_table(["program", "printed", "seconds, compiled before"], rows)
    about = json.loads((EXPECTED / "machine.json").read_text())["machine"]
    print(f"The GPU: {about['date']}, {about.get('gpu')}, {about.get('nvcc')}.")
    return int(different > 0)


@click.command(help=__doc__)
@click.option("--sanitize", is_flag=True, help="Also run each under compute-sanitizer.")
def main(sanitize: bool) -> None:
    gpu = shutil.which("nvcc") and shutil.which("nvidia-smi") and run("nvidia-smi", "-L").returncode == 0
    sys.exit(keep_gpu_outputs(sanitize) if gpu else compare_with_gpu())


if __name__ == "__main__":
    main()
