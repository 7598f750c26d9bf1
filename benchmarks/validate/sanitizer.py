"""Run NVIDIA's compute-sanitizer on every labelled program of tests/simt/checks, for the table of checks.py.

    python benchmarks/validate/sanitizer.py [NAME …] [--missing] [--out FILE]
    python benchmarks/validate/sanitizer.py --fastest [NAME …] [--out FILE]    kernels_ref's fastest files instead
    python benchmarks/validate/sanitizer.py --steps PROBLEM … [--out FILE]     the steps of these problems instead

Needs an NVIDIA GPU and the CUDA toolkit. nvcc compiles each program with line numbers; it runs plainly and under each
of the sanitizer's four tools. A defect may hang the program: a run that takes too long is killed, and what it reported
until then counts. The results of other programs in the data file stay.

A fastest file (kernels_ref/NAME/fastest*.py, named NAME/fastest) runs two images of full size (FEW: smaller ones; MORE:
further sizes), images with an outlier and with infinity, which take other paths in the code (OUTLIERS), and the
problem's counted cases; with gradients where it has a backward. Each of torch's allocations is a cudaMalloc of its own.
The results are in data/sanitizer_fastest.json, which fastest.py reads.

A problem's reference, backward and steps run the cases of its grading; the results are in data/sanitizer_steps.json.
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
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT
from grader.source.contract import code_digest

SPECIMENS = ROOT / "tests" / "simt" / "checks"
DATA = DATA_FOLDER / "sanitizer.json"
FASTEST = DATA_FOLDER / "sanitizer_fastest.json"
STEPS = DATA_FOLDER / "sanitizer_steps.json"
COMPILE = ["nvcc", "-std=c++17", "-arch=sm_90", "-lineinfo"]
# Sizes of a fastest file's run where two images of full size take too long. These are small, but a block refills its
# ring buffer in shared memory and reuses the groups' entries, so that a tool could find races there.
FEW = {
    "groupnorm": {"batch_size": 1122, "features": 8, "dim1": 32, "dim2": 32},
    "scan": {"length": 2**21 + 3},
    "int4_matvec": {"rows": 20000, "columns": 1184},
    "int8_matmul": {"batch_size": 130, "rows": 500, "columns": 1040},
    "attention": {"batch_size": 1, "heads": 2, "length": 1000, "causal": True},
}
# Sizes for kernels that neither the full size nor the counted cases reach, such as images too wide for the chip,
# several per block.
MORE = {
    "conv_sigmoid_groupnorm": [{"batch_size": 60, "height": 21, "width": 300}],
    "int4_matvec": [{"batch_size": 9, "rows": 500, "columns": 1184}],
    "attention": [{"batch_size": 1, "heads": 2, "length": 300, "head_dim": 128}],
}
# Values put into one of two images of ordinary numbers, and the sizes at which the convolutions' fastest files search
# for such values: the parity and the width of an image select the path that they then take.
OUTLIERS = (1e8, 1e17, float("inf"))
PATH_SIZES = ({}, {"height": 67, "width": 43}, {"height": 67, "width": 44}, {"height": 9, "width": 517})
TOOLS = {
    "memcheck": ["--leak-check", "full"],
    "racecheck": ["--racecheck-report", "all"],
    "initcheck": [],
    "synccheck": [],
}


def digest(path: Path) -> str:
    """Return a digest of a program; its comments, which hold the labels, do not count."""
    return hashlib.sha256(re.sub(r"[ \t]*//.*", "", path.read_text()).encode()).hexdigest()[:16]


def run(command: list[str], seconds: float) -> tuple[int | None, str]:
    """Return the exit status, None if the run took too long and was killed, and the output."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True
    )
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


def count_errors(output: str) -> int:
    """Return the number of errors in a tool's last line. Warnings of racecheck count: they are hazards too."""
    hazards = re.search(r"RACECHECK SUMMARY: (\d+) hazards? displayed", output)
    errors = re.search(r"ERROR SUMMARY: (\d+) errors?", output)
    if last := hazards or errors:
        return int(last[1])
    return 1 if find_first_error(output) else 0  # killed before its end


def find_first_error(output: str) -> str:
    """Return the first error's line, or ""."""
    lines = [line.removeprefix("=========").strip() for line in output.splitlines() if line.startswith("=========")]
    errors = [
        line
        for line in lines
        if re.match(r"Invalid|Error|Warning|Uninitialized|Barrier|Program hit|Leaked|Divergent|Malloc/Free", line)
    ]
    return errors[0] if errors else ""


def examine(program: Path, tools: list[str], seconds: float) -> dict:
    """Run a program plainly and under each tool. Return each tool's number of errors with the first error."""
    status, output = run([str(program)], seconds)
    found: dict = {"plain": {"exit": status, "output": output[:2000]}}
    for tool in tools:
        found[tool], _ = examine_by(tool, TOOLS[tool], [str(program)], seconds)
    return found


def examine_by(tool: str, options: list[str], command: list[str], seconds: float) -> tuple[dict, str]:
    """Run a command under one tool. Return its number of errors with the first error, and the output."""
    start = time.perf_counter()
    status, output = run(["compute-sanitizer", "--show-backtrace", "no", "--tool", tool, *options, *command], seconds)
    errors = count_errors(output)
    found: dict = {"errors": errors, "finished": status is not None, "seconds": round(time.perf_counter() - start, 1)}
    if errors and find_first_error(output):
        found["says"] = find_first_error(output)[:300]
    return found, output


# ---- files of kernels_ref ----


def fastest_files() -> dict[str, Path]:
    return {f"{file.parent.name}/{file.stem}": file for file in sorted(ROOT.glob("kernels_ref/*/fastest*.py"))}


def files_of_steps(problems: tuple[str, ...]) -> dict[str, Path]:
    """Return the reference, the backward and the steps of these problems."""
    folders = [ROOT / "kernels_ref" / name for name in problems]
    files = [file for folder in folders for file in sorted(folder.glob("*.py")) + sorted(folder.glob("steps/*.py"))]
    return {
        f"{file.relative_to(ROOT / 'kernels_ref').with_suffix('')}".replace("/steps", ""): file
        for file in files
        if file.stem not in ("model", "anchors") and not file.stem.startswith("fastest")
    }


def choose_cases(file: Path) -> list:
    """Return the cases that a file runs under a tool, each with a value for one element of its input, or None."""
    from benchmarks import references

    if not file.stem.startswith("fastest"):
        return [(case, None) for case in references.problem(file).cases()]
    first = FEW.get(file.parent.name, {"batch_size": 2})
    sizes = [first, *MORE.get(file.parent.name, [])]
    cases = [
        (case, None) for case in [*(references.full(file, **size) for size in sizes), *references.counted_cases(file)]
    ]
    if file.parent.name.startswith("conv_"):
        cases += [(references.full(file, batch_size=2, **size), value) for size in PATH_SIZES for value in OUTLIERS]
    return cases


def run_file(file: Path) -> None:
    """Run the file's model at all its sizes, in a process of its own under a tool."""
    import torch

    from benchmarks import references

    module = references.load(file)
    for case, value in choose_cases(file):
        instance = references.problem(file).instantiate(case, 0, "cpu")
        if value is not None:
            instance.inputs[0][1, 0, 5, 7] = value
        model = module.ModelNew(*instance.init_args, **instance.init_kwargs)
        model.load_state_dict(instance.model.state_dict())
        model = model.to("cuda")
        if "backward" in file.stem:
            inputs = [x.to("cuda").requires_grad_() for x in instance.inputs]
            result = model(*inputs)
            result.backward(torch.ones(result.shape, device="cuda"))
        else:
            with torch.no_grad():
                model(*(x.to("cuda") for x in instance.inputs))
        torch.cuda.synchronize()
    print("all done", flush=True)


def examine_files(there: dict[str, Path], names: tuple[str, ...], out: Path, jobs: int, seconds: float) -> None:
    """Build the files in parallel, then run each under each tool."""
    from benchmarks import references

    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0")
    if unknown := [name for name in names if name not in there]:
        raise click.UsageError(f"there is no {unknown[0]} in kernels_ref; there are {', '.join(there)}")
    chosen = {name: file for name, file in there.items() if name in names or not names}
    kept = json.loads(out.read_text())["files"] if out.exists() else {}
    files = {name: report for name, report in kept.items() if out == STEPS or name in there}
    with ThreadPoolExecutor(jobs) as pool:
        for name, errors in zip(chosen, pool.map(references.build, chosen.values()), strict=True):
            if errors:
                raise click.ClickException(f"{name} does not build: {errors}")
        environment = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}  # otherwise a tool only sees torch's memory pools
        os.environ.update(environment)
        command = [sys.executable, __file__, "--run-file"]
        # torch frees nothing at its end
        tools = {tool: [] if tool == "memcheck" else given for tool, given in TOOLS.items()}

        def examined(name: str, tool: str) -> dict:
            report, output = examine_by(tool, tools[tool], [*command, str(chosen[name])], seconds)
            return report | (
                {} if re.search("^all done$", output, re.MULTILINE) else {"finished": False, "output": output[-600:]}
            )

        # the slowest first
        orders = [(name, tool) for tool in ("racecheck", "initcheck", "memcheck", "synccheck") for name in chosen]
        data = {
            "machine": describe_machine(),
            "sanitizer": read_version(),
            "options": {tool: " ".join(given) for tool, given in tools.items()},
            "files": {},
        }
        runs = {pool.submit(examined, *order): order for order in orders}
        for done in as_completed(runs):  # kept though a slower one is cut off
            (name, tool), report = runs[done], done.result()
            code = code_digest(chosen[name].read_text(encoding="utf-8"))
            if files.get(name, {}).get("code") != code:
                files[name] = {"code": code}
            files[name][tool] = report
            data["files"] = dict(sorted(files.items()))
            out.write_text(json.dumps(data, indent=1) + "\n")
            print(f"{name}, {tool}: {report}", flush=True)


def is_missing(source: Path, specimens: dict[str, dict]) -> bool:
    """Return whether the data lack a program as it is now, or a tool did not finish although the program ends."""
    found = specimens.get(source.stem)
    if found is None or found["source"] != digest(source):
        return True
    return found["plain"]["exit"] is not None and not all(found[tool]["finished"] for tool in TOOLS)


def read_version() -> str:
    """Return compute-sanitizer's version."""
    _, output = run(["compute-sanitizer", "--version"], 60)
    return next((line.strip() for line in output.splitlines() if re.search(r"\d+\.\d+", line)), "unknown")


def examine_programs(names: tuple[str, ...], only_missing: bool, out: Path, jobs: int, seconds: float) -> None:
    """Compile the labelled programs in parallel, then run each plainly and under each tool."""
    kept: dict[str, dict] = json.loads(out.read_text())["specimens"] if out.exists() else {}
    there = sorted(SPECIMENS.glob("*.cu"))
    specimens = {p.stem: kept[p.stem] for p in there if p.stem in kept}
    sources = [p for p in there if p.stem in names or not names]
    if only_missing:
        sources = [p for p in sources if is_missing(p, specimens)]
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
        data = {"machine": describe_machine(), "sanitizer": read_version(), "options": options, "specimens": {}}
        for source, result in zip(sources, results):
            if result:
                specimens[source.stem] = {"source": digest(source), **result}
                data["specimens"] = dict(sorted(specimens.items()))
                out.write_text(json.dumps(data, indent=1) + "\n")  # after each, so that results survive a kill
        print(f"all done in {time.perf_counter() - start:.0f} s")
    reported = sum(any(s[tool]["errors"] for tool in TOOLS) for s in specimens.values())
    print(f"{reported} of all {len(specimens)} programs made a tool report something; written to {out}")


@click.command()
@click.argument("names", nargs=-1)
@click.option(
    "--missing", "only_missing", is_flag=True, help="Only programs that the data file does not hold as they are now."
)
@click.option("--fastest", is_flag=True, help="Examine kernels_ref's fastest files instead.")
@click.option("--steps", is_flag=True, help="Examine the steps of these problems instead.")
@click.option("--out", type=click.Path(path_type=Path), help="The data file.")
@click.option("--jobs", default=os.cpu_count(), help="How many programs at a time.")
@click.option("--seconds", type=float, help="How long one run may take: 20, a fastest file's 300.")
@click.option("--run-file", "file", type=click.Path(path_type=Path), hidden=True)
def main(
    names: tuple[str, ...],
    only_missing: bool,
    fastest: bool,
    steps: bool,
    out: Path | None,
    jobs: int,
    seconds: float | None,
    file: Path | None,
) -> None:
    """Compile and examine all programs, or the named ones."""

    if file:
        run_file(file)
        return
    if fastest:
        examine_files(fastest_files(), names, out or FASTEST, jobs, seconds or 300.0)
        return
    if steps:
        if unknown := [name for name in names if not (ROOT / "kernels_ref" / name / "steps").is_dir()]:
            raise click.UsageError(f"kernels_ref/{unknown[0]} has no steps")
        examine_files(files_of_steps(names), (), out or STEPS, jobs, seconds or 300.0)
        return
    examine_programs(names, only_missing, out or DATA, jobs, seconds or 20.0)


if __name__ == "__main__":
    main()
