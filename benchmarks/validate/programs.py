"""Run the programs of a folder in tests/simt on a GPU and under simt, and compare what they print.

    python benchmarks/validate/programs.py               on a GPU machine: compile with nvcc, run, keep the outputs;
                                                         elsewhere: run under simt and compare with the kept outputs
    python benchmarks/validate/programs.py NAME …        elsewhere: these programs alone
    python benchmarks/validate/programs.py --corpus      the corpus instead; without a GPU, the programs whose output
                                                         was not kept must end with the line PASSED
    python benchmarks/validate/programs.py --hardware    those in tests/simt/hardware: each prints what many calls or
                                                         instructions give; a number may differ in its last digit
    python benchmarks/validate/programs.py --sanitize    on a GPU machine, also run each under compute-sanitizer's tools

The folder `expected` keeps the GPU's outputs, one file per program; machine.json has the machine and the date.
A program of the corpus is one file, or a folder with several. Its head says what it is:

    // title: heat equation with the temperatures in a texture
    // features: textures, cuda_arrays
    // args: 128 10                      if it is given any
    // files: helper.cpp table.c         if it has more source files than the one named as the folder
    // flags: -std=c++20 -fopenmp        beyond those of all programs
    // refused: mipmap                   if simt refuses it: words of the message
    // differs: …                        why simt prints something else than a GPU, if it does
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import ROOT
from benchmarks.publish.tables import show_table

PROGRAMS, CORPUS, HARDWARE = (ROOT / "tests/simt" / name for name in ("programs", "corpus", "hardware"))
FLAGS = ["-std=c++17", "-arch=sm_90"]
STRICT = ["-Werror", "all-warnings"]  # for the ten programs, which are examples; the corpus is as people write
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
NOT_COMPILED = 3  # exit status of `simt run` for a program that it refuses
LONGEST_S = 200.0  # that a program, its compiler or the sanitizer may run
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
    def group(self) -> Path:
        """PROGRAMS, CORPUS or HARDWARE."""
        return self.main.parent if self.main.parent in (PROGRAMS, CORPUS, HARDWARE) else self.main.parent.parent

    @property
    def expected(self) -> Path:
        """The file with what it printed on a GPU."""
        return self.group / "expected" / f"{self.name}.txt"

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
    """Return the programs of a folder by name."""
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
    words = [str(word) for word in command]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder, timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 124, "", f"It was still running after {LONGEST_S} s.")


# ---- on the GPU ----


def run_on_gpu(program: Program, folder: Path, sanitize: bool) -> dict:
    """Compile and run a program. Return its exit status, its output, and the sanitizer's summaries."""
    binary = folder / program.name
    flags = [*FLAGS, *(STRICT if program.group == PROGRAMS else []), *program.list_flags()]
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
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda program: run_on_gpu(program, Path(folder), sanitize), programs))
    rows, kept, about = [], {}, programs[0].expected.with_name("machine.json")
    about.parent.mkdir(exist_ok=True)
    for program, result in zip(programs, results):
        if result["status"] == 0:
            program.expected.write_text(result["output"])
        kept[program.name] = {k: v for k, v in result.items() if k != "output" or result["status"] != 0}
        rows.append([program.name, str(result["status"]), f"{len(result['output'].splitlines())} lines"])
    data = {"machine": describe_machine(), "flags": FLAGS, "programs": kept}
    about.write_text(json.dumps(data, indent=1) + "\n")
    show_table(["program", "exit status", "printed"], rows)
    return int(any(result["status"] != 0 for result in results))


# ---- on the CPU ----


def run_on_cpu(program: Program, command: str = "run", *options: str) -> subprocess.CompletedProcess:
    """Run a program under simt. command: run, check or count."""
    words = [*options, *program.list_flags(), *program.files, *program.arguments]
    return run(sys.executable, "-m", "simt", command, *words, folder=ROOT)


def judge(program: Program, ran: subprocess.CompletedProcess) -> str:
    """Return in a few words whether a program did under simt what it should; in capitals if it did not."""
    if refused := program.labels.get("refused"):
        return "refused by name" if ran.returncode == NOT_COMPILED and refused in ran.stderr else "NOT REFUSED"
    passed = ran.returncode == 0 and (program.group != CORPUS or ran.stdout.splitlines()[-1:] == [PASSED])
    if not program.expected.is_file() or not passed:
        return "passed" if passed else "FAILED"
    same = agree(ran.stdout, program.expected.read_text(), nearly=program.group == HARDWARE)
    if "differs" in program.labels:
        return "NOT DIFFERENT" if same else "passed, and differs as it says"
    return "as on the GPU" if same else "DIFFERENT"


def agree(got: str, want: str, nearly: bool = False) -> bool:
    """Return whether two outputs are the same. nearly: a number with a point may differ by one in its last digit."""
    if not nearly or got == want:
        return got == want
    here, there = ([line.split() for line in text.splitlines()] for text in (got, want))
    if [len(line) for line in here] != [len(line) for line in there]:
        return False
    return all(_is_near(a, b) for lines in zip(here, there) for a, b in zip(*lines))


def _is_near(got: str, want: str) -> bool:
    if got == want:
        return True
    try:
        a, b = Decimal(got), Decimal(want)
    except InvalidOperation:
        return False
    if not (a.is_finite() and b.is_finite()):
        return False
    last = min(int(number.as_tuple().exponent) for number in (a, b))
    return last < 0 and abs(a - b) <= Decimal(10) ** last


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
@click.option("--corpus", "folder", flag_value=CORPUS, type=Path, help="The programs of tests/simt/corpus.")
@click.option("--hardware", "folder", flag_value=HARDWARE, type=Path, help="The programs of tests/simt/hardware.")
@click.option("--sanitize", is_flag=True, help="Also run each under compute-sanitizer.")
def main(names: tuple[str, ...], folder: Path | None, sanitize: bool) -> None:
    programs = [one for one in list_programs(folder or PROGRAMS) if not names or one.name in names]
    if not programs:
        raise click.UsageError(f"There is no program {', '.join(names)}.")
    gpu = shutil.which("nvcc") and shutil.which("nvidia-smi") and run("nvidia-smi", "-L").returncode == 0
    if gpu and names:
        raise click.UsageError("On a GPU all programs are run, so that one machine's outputs are kept: name none.")
    sys.exit(keep_gpu_outputs(programs, sanitize) if gpu else compare_with_gpu(programs))


if __name__ == "__main__":
    main()
