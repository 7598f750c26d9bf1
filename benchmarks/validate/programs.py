"""Run the programs of tests/simt/programs or tests/simt/corpus on a GPU and under simt, and compare what they print.

    python benchmarks/validate/programs.py [NAME …]      on a GPU machine: compile with nvcc, run, keep the outputs;
                                                         elsewhere: run under simt and compare with the kept outputs
    python benchmarks/validate/programs.py --corpus      the corpus instead; without a GPU, the programs whose output
                                                         was not kept must end with the line PASSED
    python benchmarks/validate/programs.py --sanitize    on a GPU machine, also run each under compute-sanitizer's tools

The folder `expected` keeps the GPU's outputs, one file per program; machine.json has the machine and the date.
A program of the corpus is one file, or a folder with several. Its head says what it is:

    // title: heat equation with the temperatures in a texture
    // features: textures, cuda_arrays
    // args: 128 10                      if it is given any
    // files: helper.cpp table.c         if it has more source files than the one named as the folder
    // flags: -std=c++20 -fopenmp        beyond those of all programs
    // refused: mipmap                   if simt refuses it: words of the message
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import ROOT
from benchmarks.publish.tables import show_table

PROGRAMS, CORPUS = ROOT / "tests/simt/programs", ROOT / "tests/simt/corpus"
FLAGS = ["-std=c++17", "-arch=sm_90"]
STRICT = ["-Werror", "all-warnings"]  # for the ten programs, which are examples; the corpus is as people write
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
NOT_COMPILED = 3  # exit status of `simt run` for a program that it refuses
PASSED = "PASSED"  # the last line of a program of the corpus whose results are right


@dataclass(frozen=True)
class Program:
    """A program to compile and run. labels: what its head says (see above)."""

    main: Path
    labels: dict[str, str]

    @property
    def name(self) -> str:
        return self.main.stem

    @property
    def expected(self) -> Path:
        """The file with what it printed on a GPU."""
        folder = self.main.parent if self.main.parent in (PROGRAMS, CORPUS) else self.main.parent.parent
        return folder / "expected" / f"{self.name}.txt"

    @property
    def files(self) -> list[Path]:
        return [self.main, *(self.main.parent / name for name in self.labels.get("files", "").split())]

    @property
    def arguments(self) -> list[str]:
        return shlex.split(self.labels.get("args", ""))

    @property
    def features(self) -> list[str]:
        return [word.strip() for word in self.labels.get("features", "").split(",") if word.strip()]

    def list_flags(self) -> list[str]:
        """Return its options, as nvcc and simt both take them."""
        words = shlex.split(self.labels.get("flags", ""))
        return [part for word in words for part in (["-Xcompiler", word] if word.startswith("-f") else [word])]


def list_programs(folder: Path) -> list[Program]:
    """Return the programs of PROGRAMS or CORPUS by name."""
    found = [*folder.glob("*.cu"), *(file for file in folder.glob("*/*.cu") if file.stem == file.parent.name)]
    return [Program(file, read_labels(file)) for file in sorted(found, key=lambda file: file.stem)]


def read_labels(file: Path) -> dict[str, str]:
    """Return what the comment at the head of a program says, by name."""
    labels = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        found = re.match(r"// (\w+): (.+)", line)
        if not found:
            break
        labels[found[1]] = found[2].strip()
    return labels


def run(*command: object, folder: Path | None = None) -> subprocess.CompletedProcess:
    """Run a command and capture its output."""
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, cwd=folder, timeout=300
    )


# ---- on the GPU ----


def run_on_gpu(program: Program, folder: Path, sanitize: bool) -> dict:
    """Compile and run a program. Return its exit status, its output, and the sanitizer's summaries."""
    binary = folder / program.name
    flags = [*FLAGS, *(STRICT if program.main.parent == PROGRAMS else []), *program.list_flags()]
    compiled = run("nvcc", *flags, *(file.name for file in program.files), "-o", binary, folder=program.main.parent)
    if compiled.returncode:
        return {"status": None, "output": "", "said": compiled.stderr}
    ran = run(binary, *program.arguments)
    result = {"status": ran.returncode, "output": ran.stdout, "said": ran.stderr}
    if sanitize:
        options = {"memcheck": ["--leak-check", "full"]}
        result["sanitizer"] = {
            tool: find_summary(
                run("compute-sanitizer", "--tool", tool, *options.get(tool, []), binary, *program.arguments)
            )
            for tool in TOOLS
        }
    return result


def find_summary(done: subprocess.CompletedProcess) -> str:
    """Return the sanitizer's summary."""
    lines = [line.removeprefix("========= ") for line in done.stdout.splitlines() if "SUMMARY" in line]
    return "; ".join(lines) or f"no summary, exit status {done.returncode}"


def keep_gpu_outputs(programs: list[Program], sanitize: bool) -> int:
    """Run programs on the GPU and keep their outputs. Return the exit status."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda program: run_on_gpu(program, Path(folder), sanitize), programs))
    rows, about = [], programs[0].expected.with_name("machine.json")
    about.parent.mkdir(exist_ok=True)
    kept = json.loads(about.read_text())["programs"] if about.is_file() else {}
    for program, result in zip(programs, results):
        if result["status"] == 0:
            program.expected.write_text(result["output"])
        kept[program.name] = {k: v for k, v in result.items() if k != "output"}
        rows.append([program.name, str(result["status"]), f"{len(result['output'].splitlines())} lines"])
    data = {"machine": describe_machine(), "flags": FLAGS, "programs": dict(sorted(kept.items()))}
    about.write_text(json.dumps(data, indent=1) + "\n")
    show_table(["program", "exit status", "printed"], rows)
    return int(any(result["status"] != 0 for result in results))


# ---- on the CPU ----


def run_on_cpu(program: Program, command: str = "run", *options: str) -> subprocess.CompletedProcess:
    """Run a program under simt. command: run, check or count."""
    words = [*options, *program.list_flags(), *program.files, *program.arguments]
    return run(sys.executable, "-m", "simt", command, *words, folder=ROOT)


def judge(program: Program, ran: subprocess.CompletedProcess) -> str:
    """Return in a few words whether a program did under simt what it should."""
    if refused := program.labels.get("refused"):
        return "refused by name" if ran.returncode == NOT_COMPILED and refused in ran.stderr else "NOT REFUSED"
    if program.expected.is_file():
        return "as on the GPU" if (ran.returncode, ran.stdout) == (0, program.expected.read_text()) else "DIFFERENT"
    return "passed" if ran.returncode == 0 and ran.stdout.splitlines()[-1:] == [PASSED] else "FAILED"


def compare_with_gpu(programs: list[Program]) -> int:
    """Run programs under simt and compare with the kept outputs. Return the exit status."""
    rows, wrong = [], 0
    for program in programs:
        run_on_cpu(program)  # compiles it first
        start = time.perf_counter()
        ran = run_on_cpu(program)
        seconds = time.perf_counter() - start
        word = judge(program, ran)
        rows.append([program.name, word, f"{seconds:.2f}"])
        if word.isupper():
            wrong += 1
            print(f"{program.name} (exit status {ran.returncode}):\n{ran.stdout}{ran.stderr}")
    show_table(["program", "printed", "seconds, compiled before"], rows)
    about = programs[0].expected.with_name("machine.json")
    if about.is_file():
        machine = json.loads(about.read_text())["machine"]
        print(f"The GPU: {machine['date']}, {machine.get('gpu')}, {machine.get('nvcc')}.")
    return int(wrong > 0)


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--corpus", is_flag=True, help="The programs of tests/simt/corpus.")
@click.option("--sanitize", is_flag=True, help="Also run each under compute-sanitizer.")
def main(names: tuple[str, ...], corpus: bool, sanitize: bool) -> None:
    programs = [one for one in list_programs(CORPUS if corpus else PROGRAMS) if not names or one.name in names]
    if not programs:
        raise click.UsageError(f"There is no program {', '.join(names)}.")
    gpu = shutil.which("nvcc") and shutil.which("nvidia-smi") and run("nvidia-smi", "-L").returncode == 0
    sys.exit(keep_gpu_outputs(programs, sanitize) if gpu else compare_with_gpu(programs))


if __name__ == "__main__":
    main()
