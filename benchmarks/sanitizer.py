"""Runs NVIDIA's compute-sanitizer on every labelled program of tests/simt/checks, for the table that checks.py prints.

    python benchmarks/sanitizer.py [NAME …] [--missing] [--out FILE]     on a machine with an NVIDIA GPU and the CUDA toolkit

Each program is compiled by nvcc with line numbers, run plainly, and run under each of the sanitizer's four tools. A defect may
hang the program: a run that takes too long is killed, and counts by what it had reported until then. Results of other programs
that the data file already holds stay.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

SPECIMENS = ROOT / "tests" / "simt" / "checks"
DATA = ROOT / "benchmarks" / "data" / "sanitizer.json"
COMPILE = ["nvcc", "-std=c++17", "-arch=sm_90", "-lineinfo"]
TOOLS = {
    "memcheck": ["--leak-check", "full"],
    "racecheck": ["--racecheck-report", "all"],
    "initcheck": [],
    "synccheck": [],
}


def digest(path: Path) -> str:
    """Tells whether a program is still the one that was measured; its comments, labels among them, don't count."""
    return hashlib.sha256(re.sub(r"[ \t]*//.*", "", path.read_text()).encode()).hexdigest()[:16]


def run(command: list[str], seconds: float) -> tuple[int | None, str]:
    """Exit status, None if it was killed for taking too long, and all that was printed."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    try:
        output, _ = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:  # stuck in the driver
        output = ""
    return None, output


def errors_in(output: str) -> int:
    """How many errors a tool's closing line tells. Warnings of racecheck count: they are hazards too."""
    hazards = re.search(r"RACECHECK SUMMARY: (\d+) hazards? displayed", output)
    errors = re.search(r"ERROR SUMMARY: (\d+) errors?", output)
    if hazards or errors:
        return int(hazards[1]) if hazards else int(errors[1])
    return 1 if first_words(output) else 0  # killed before its end


def first_words(output: str) -> str:
    """The first error's own line."""
    lines = [line.removeprefix("=========").strip() for line in output.splitlines() if line.startswith("=========")]
    told = [line for line in lines if re.match(r"Invalid|Error|Warning|Uninitialized|Barrier|Program hit|Leaked|Divergent|Malloc/Free", line)]
    return told[0] if told else ""


def examine(program: Path, tools: list[str], seconds: float) -> dict:
    """A plain run, and each tool's number of errors with its first words."""
    status, output = run([str(program)], seconds)
    found: dict = {"plain": {"exit": status, "output": output[:2000]}}
    for tool in tools:
        start = time.perf_counter()
        status, output = run(["compute-sanitizer", "--show-backtrace", "no", "--tool", tool, *TOOLS[tool], str(program)], seconds)
        errors = errors_in(output)
        found[tool] = {"errors": errors, "finished": status is not None, "seconds": round(time.perf_counter() - start, 1)}
        if errors and first_words(output):
            found[tool]["says"] = first_words(output)[:300]
    return found


def missing(source: Path, specimens: dict[str, dict]) -> bool:
    """Whether a program has not been measured as it is now, or a tool was not done with it though the program ends by itself."""
    told = specimens.get(source.stem)
    if told is None or told["source"] != digest(source):
        return True
    return told["plain"]["exit"] is not None and not all(told[tool]["finished"] for tool in TOOLS)


def version() -> str:
    _, output = run(["compute-sanitizer", "--version"], 60)
    return next((line.strip() for line in output.splitlines() if re.search(r"\d+\.\d+", line)), "unknown")


@click.command()
@click.argument("names", nargs=-1)
@click.option("--missing", "only_missing", is_flag=True, help="Only programs that the data file does not hold as they are now.")
@click.option("--out", type=click.Path(path_type=Path), default=DATA, help="The data file.")
@click.option("--jobs", default=os.cpu_count(), help="How many programs at a time.")
@click.option("--seconds", default=20.0, help="How long one run may take.")
def main(names: tuple[str, ...], only_missing: bool, out: Path, jobs: int, seconds: float) -> None:
    """Compiles and examines all programs, or those named."""
    from machine import machine

    kept: dict[str, dict] = json.loads(out.read_text())["specimens"] if out.exists() else {}
    there = sorted(SPECIMENS.glob("*.cu"))
    specimens = {p.stem: kept[p.stem] for p in there if p.stem in kept}
    sources = [p for p in there if p.stem in names or not names]
    if only_missing:
        sources = [p for p in sources if missing(p, specimens)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:

        def build(source: Path) -> Path | None:
            program = Path(folder) / source.stem
            status, output = run([*COMPILE, str(source), "-o", str(program)], 300)
            if status != 0:
                print(f"{source.name} does not compile:\n{output}", file=sys.stderr)
            return program if status == 0 else None

        start = time.perf_counter()
        programs = list(pool.map(build, sources))
        print(f"{len(programs)} programs compiled in {time.perf_counter() - start:.0f} s", flush=True)
        results = pool.map(lambda program: examine(program, list(TOOLS), seconds) if program else None, programs)
        options = {tool: " ".join(given) for tool, given in TOOLS.items()}
        data = {"machine": machine(), "sanitizer": version(), "options": options, "specimens": {}}
        for source, result in zip(sources, results):
            if result:
                specimens[source.stem] = {"source": digest(source), **result}
                data["specimens"] = dict(sorted(specimens.items()))
                out.write_text(json.dumps(data, indent=1) + "\n")  # each time: what there is survives an end by force
        print(f"all done in {time.perf_counter() - start:.0f} s")
    told = sum(any(s[tool]["errors"] for tool in TOOLS) for s in specimens.values())
    print(f"{told} of all {len(specimens)} programs made a tool report something; written to {out}")


if __name__ == "__main__":
    main()
