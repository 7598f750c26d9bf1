"""Runs NVIDIA's compute-sanitizer on every labelled program of tests/simt/checks, for the table that checks.py prints.

    python benchmarks/sanitizer.py [NAME …] [--missing] [--out FILE]     on a machine with an NVIDIA GPU and the CUDA toolkit
    python benchmarks/sanitizer.py --limits [NAME …] [--out FILE]        the same tools on kernels_ref's limit files instead

Each program is compiled by nvcc with line numbers, run plainly, and run under each of the sanitizer's four tools. A defect may
hang the program: a run that takes too long is killed, and counts by what it had reported until then. Results of other programs
that the data file already holds stay. A limit file (kernels_ref/NAME/limit*.py, said as NAME/limit) runs two images of full size
(FEW: smaller ones; MORE: others besides), images with an outlier and with infinity, for which a file has ways of its own (BESIDE), and
the problem's counted cases, with gradients where it has a backward, each allocation of torch's a cudaMalloc of its own;
data/sanitizer_limits.json keeps what the tools told, for limits.py.
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

from grader.contract import code_digest  # noqa: E402

SPECIMENS = ROOT / "tests" / "simt" / "checks"
DATA = ROOT / "benchmarks" / "data" / "sanitizer.json"
LIMITS = ROOT / "benchmarks" / "data" / "sanitizer_limits.json"
COMPILE = ["nvcc", "-std=c++17", "-arch=sm_90", "-lineinfo"]
# Sizes of a limit file's run where two images of full size take too long. These are small, but a block refills its ring of places in
# shared memory and uses the groups' places again, without which a tool has nothing to find there.
FEW = {"groupnorm": {"batch_size": 1122, "features": 8, "dim1": 32, "dim2": 32}}
# And a size for a kernel that neither the full size nor the counted cases reach: images too wide for the chip, several for each block.
MORE = {"conv_sigmoid_groupnorm": [{"batch_size": 60, "height": 21, "width": 300}]}
# What ordinary numbers stand beside in one of two images, and the sizes for which the convolutions' limit files look for it: by their
# parity and width they choose among the ways that they then go.
BESIDE = (1e8, 1e17, float("inf"))
WAYS = ({}, {"height": 67, "width": 43}, {"height": 67, "width": 44}, {"height": 9, "width": 517})
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
        found[tool], _ = examine_by(tool, TOOLS[tool], [str(program)], seconds)
    return found


def examine_by(tool: str, options: list[str], command: list[str], seconds: float) -> tuple[dict, str]:
    """One tool's number of errors with its first words, and all that was printed."""
    start = time.perf_counter()
    status, output = run(["compute-sanitizer", "--show-backtrace", "no", "--tool", tool, *options, *command], seconds)
    errors = errors_in(output)
    found: dict = {"errors": errors, "finished": status is not None, "seconds": round(time.perf_counter() - start, 1)}
    if errors and first_words(output):
        found["says"] = first_words(output)[:300]
    return found, output


# ---- limit files ----


def limit_files() -> dict[str, Path]:
    return {f"{file.parent.name}/{file.stem}": file for file in sorted(ROOT.glob("kernels_ref/*/limit*.py"))}


def run_limit(file: Path) -> None:
    """In a process of its own, under a tool: the file's model at all its sizes."""
    import references
    import torch

    module = references.load(file)
    first = FEW.get(file.parent.name, {"batch_size": 2})
    sizes = [first, *MORE.get(file.parent.name, [])]
    cases = [(case, None) for case in [*(references.full(file, **size) for size in sizes), *references.counted_cases(file)]]
    if file.parent.name.startswith("conv_"):
        cases += [(references.full(file, batch_size=2, **size), value) for size in WAYS for value in BESIDE]
    for case, value in cases:
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


def examine_limits(names: tuple[str, ...], out: Path, jobs: int, seconds: float) -> None:
    """Builds the files side by side, then runs each under each tool."""
    import references
    from machine import machine

    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0")
    there = limit_files()
    if unknown := [name for name in names if name not in there]:
        raise click.UsageError(f"there is no {unknown[0]} in kernels_ref; there are {', '.join(there)}")
    chosen = {name: file for name, file in there.items() if name in names or not names}
    kept = json.loads(out.read_text())["files"] if out.exists() else {}
    files = {name: told for name, told in kept.items() if name in there}
    with ThreadPoolExecutor(jobs) as pool:
        for name, errors in zip(chosen, pool.map(references.build, chosen.values()), strict=True):
            if errors:
                raise click.ClickException(f"{name} does not build: {errors}")
        environment = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}  # or else a tool knows torch's pools alone
        os.environ.update(environment)
        command = [sys.executable, __file__, "--run-limit"]
        tools = {tool: [] if tool == "memcheck" else given for tool, given in TOOLS.items()}  # torch frees nothing at its end

        def examined(name: str, tool: str) -> dict:
            told, output = examine_by(tool, tools[tool], [*command, str(chosen[name])], seconds)
            return told | ({} if re.search("^all done$", output, re.MULTILINE) else {"finished": False, "output": output[-600:]})

        orders = [(name, tool) for tool in ("racecheck", "initcheck", "memcheck", "synccheck") for name in chosen]  # the slowest first
        data = {"machine": machine(), "sanitizer": version(), "options": {tool: " ".join(given) for tool, given in tools.items()}, "files": {}}
        for (name, tool), told in zip(orders, pool.map(lambda order: examined(*order), orders), strict=True):
            code = code_digest(chosen[name].read_text(encoding="utf-8"))
            if files.get(name, {}).get("code") != code:
                files[name] = {"code": code}
            files[name][tool] = told
            data["files"] = dict(sorted(files.items()))
            out.write_text(json.dumps(data, indent=1) + "\n")
            print(f"{name}, {tool}: {told}", flush=True)


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
@click.option("--limits", is_flag=True, help="Examine kernels_ref's limit files instead.")
@click.option("--out", type=click.Path(path_type=Path), help="The data file.")
@click.option("--jobs", default=os.cpu_count(), help="How many programs at a time.")
@click.option("--seconds", type=float, help="How long one run may take: 20, a limit file's 300.")
@click.option("--run-limit", "limit", type=click.Path(path_type=Path), hidden=True)
def main(names: tuple[str, ...], only_missing: bool, limits: bool, out: Path | None, jobs: int, seconds: float | None, limit: Path | None) -> None:
    """Compiles and examines all programs, or those named."""
    from machine import machine

    if limit:
        run_limit(limit)
        return
    if limits:
        examine_limits(names, out or LIMITS, jobs, seconds or 300.0)
        return
    out, seconds = out or DATA, seconds or 20.0

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
